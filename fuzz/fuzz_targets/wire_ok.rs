//! ok: any bytes, see `wire::ok::fuzz_ok`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::ok::fuzz_ok(data));
