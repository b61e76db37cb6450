//! class: any bytes, see `sql::class::fuzz_class`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::class::fuzz_class(data));
