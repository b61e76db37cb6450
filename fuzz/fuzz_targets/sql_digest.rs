//! digest: any bytes, see `sql::digest::fuzz_digest`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::digest::fuzz_digest(data));
