//! reading: any bytes, see `sql::fuzz_reading`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::fuzz_reading(data));
