//! again: any bytes, see `wire::response::fuzz_again`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::response::fuzz_again(data));
