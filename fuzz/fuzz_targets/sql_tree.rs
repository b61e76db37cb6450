//! trees: any bytes, see `sql::tree::fuzz_tree`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::tree::fuzz_tree(data));
