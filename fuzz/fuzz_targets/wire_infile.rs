//! infile: any bytes, see `wire::infile::fuzz_infile`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::infile::fuzz_infile(data));
