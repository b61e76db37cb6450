//! attributes: any bytes, see `wire::attributes::fuzz_attributes`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::attributes::fuzz_attributes(data));
