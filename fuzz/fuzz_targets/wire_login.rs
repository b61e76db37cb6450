//! login: any bytes, see `wire::handshake::fuzz_login`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::handshake::fuzz_login(data));
