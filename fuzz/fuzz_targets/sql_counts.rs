//! counts: any bytes, see `sql::fuzz_with_counts`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::fuzz_with_counts(data));
