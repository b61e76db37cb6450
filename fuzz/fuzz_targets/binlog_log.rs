//! a server's log: any bytes as events, see `binlog::fuzz_log`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| binlog::fuzz_log(data));
