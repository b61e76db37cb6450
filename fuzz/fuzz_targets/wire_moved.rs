//! moved: any bytes, see `wire::moved::fuzz_moved`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::moved::fuzz_moved(data));
