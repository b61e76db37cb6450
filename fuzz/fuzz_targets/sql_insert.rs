//! reading: any bytes, see `sql::fuzz_insert`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::fuzz_insert(data));
