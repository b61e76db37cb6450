//! rows of a file that a client loads, however it is cut: see `shards::fuzz_file`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| shards::fuzz_file(data));
