//! pattern: any pattern, a line's end, any subject; see `lua::pattern::fuzz_pattern`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| lua::pattern::fuzz_pattern(data));
