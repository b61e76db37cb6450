//! values: any bytes, see `sql::fuzz_values`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::fuzz_values(data));
