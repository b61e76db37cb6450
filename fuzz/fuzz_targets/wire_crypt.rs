//! crypt: any bytes, see `wire::crypt::fuzz_crypt`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::crypt::fuzz_crypt(data));
