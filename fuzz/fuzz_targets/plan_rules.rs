//! rules: any bytes, see `plan::differential::fuzz_rules`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| plan::differential::fuzz_rules(data));
