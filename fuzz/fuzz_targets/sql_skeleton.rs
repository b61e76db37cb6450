//! skeleton: any bytes, see `sql::fuzz_skeleton`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::fuzz_skeleton(data));
