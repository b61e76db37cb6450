//! set: any bytes, see `sql::set::fuzz_set`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::set::fuzz_set(data));
