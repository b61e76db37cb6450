//! syntax: any text is read and looked through, see `lua::syntax::fuzz_syntax`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| lua::syntax::fuzz_syntax(data));
