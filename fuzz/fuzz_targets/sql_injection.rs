//! injection: any bytes, see `sql::fuzz_injection`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::fuzz_injection(data));
