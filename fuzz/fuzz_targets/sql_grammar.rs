//! grammar: any bytes, see `sql::grammar::fuzz_grammar`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sql::grammar::fuzz_grammar(data));
