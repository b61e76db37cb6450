//! template: pattern, replacement and statement between 0xFF, see `sql::template::fuzz_template`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::template::fuzz_template(data));
