//! probe: any bytes, see `topology::fuzz_probe`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| topology::fuzz_probe(data));
