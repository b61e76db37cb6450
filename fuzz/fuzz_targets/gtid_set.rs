//! sets of GTIDs: any bytes, see `gtid::fuzz_set`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gtid::fuzz_set(data));
