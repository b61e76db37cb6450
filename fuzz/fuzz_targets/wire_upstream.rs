//! upstream: any bytes, see `wire::upstream::fuzz_upstream`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::upstream::fuzz_upstream(data));
