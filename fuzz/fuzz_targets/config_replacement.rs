//! replacement: any bytes, see `config::fuzz_replacement`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| config::fuzz_replacement(data));
