//! execute: any bytes, see `wire::execute::fuzz_execute`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::execute::fuzz_execute(data));
