//! what partitions are asked: any bytes, see `gather::fuzz_recipe`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gather::fuzz_recipe(data));
