//! dynamic: any bytes, see `sql::dynamic::fuzz_dynamic`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::dynamic::fuzz_dynamic(data));
