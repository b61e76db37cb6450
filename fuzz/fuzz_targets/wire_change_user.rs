//! change_user: any bytes, see `wire::handshake::fuzz_change_user`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::handshake::fuzz_change_user(data));
