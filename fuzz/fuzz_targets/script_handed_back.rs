//! script: whatever scripts hand back is refused or can be read, see `script::fuzz_handed_back`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| script::fuzz_handed_back(data));
