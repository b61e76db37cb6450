//! pattern: any bytes, see `config::fuzz_pattern`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| config::fuzz_pattern(data));
