//! rows: any bytes, see `wire::rows::fuzz_rows`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::rows::fuzz_rows(data));
