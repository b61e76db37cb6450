//! what a binlog reader says: any bytes, see `gtid::fuzz_feed`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gtid::fuzz_feed(data));
