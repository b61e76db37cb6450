//! rows that arrive in pieces: any bytes, see `wire::row_stream::fuzz_row_stream`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::row_stream::fuzz_row_stream(data));
