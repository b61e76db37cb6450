//! frame: any bytes, see `wire::frame::fuzz_frame`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::frame::fuzz_frame(data));
