//! packet: any bytes, see `wire::packet::fuzz_packet`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::packet::fuzz_packet(data));
