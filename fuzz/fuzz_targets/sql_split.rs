//! split: any bytes, see `sql::split::fuzz_split`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::split::fuzz_split(data));
