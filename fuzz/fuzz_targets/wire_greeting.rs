//! greeting: any bytes, see `wire::handshake::fuzz_greeting`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::handshake::fuzz_greeting(data));
