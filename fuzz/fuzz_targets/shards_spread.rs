//! routing by a map: any bytes, see `shards::fuzz_routes`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| shards::fuzz_routes(data));
