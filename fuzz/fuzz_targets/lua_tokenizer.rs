//! tokenizer: any bytes, see `lua::tokenizer::fuzz_tokenizer`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| lua::tokenizer::fuzz_tokenizer(data));
