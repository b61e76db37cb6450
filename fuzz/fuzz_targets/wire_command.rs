//! command: any bytes, see `wire::command::fuzz_command`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::command::fuzz_command(data));
