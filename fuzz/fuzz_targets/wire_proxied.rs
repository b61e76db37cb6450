//! proxied: any bytes, see `wire::proxied::fuzz_proxied`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::proxied::fuzz_proxied(data));
