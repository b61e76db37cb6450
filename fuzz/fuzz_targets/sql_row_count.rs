//! with_row_count: any bytes, see `sql::fuzz_with_row_count`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::fuzz_with_row_count(data));
