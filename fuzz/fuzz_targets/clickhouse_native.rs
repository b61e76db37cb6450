//! native: any bytes, see `clickhouse::fuzz_native`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| clickhouse::fuzz_native(data));
