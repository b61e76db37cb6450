//! What the fuzzer has found interesting, and what a ClickHouse has said, replayed.

#[test]
fn blocks_are_read_as_before() {
    let mut files = 0;
    for file in std::fs::read_dir("../../../fuzz/corpus/clickhouse_native").unwrap() {
        clickhouse::fuzz_native(&std::fs::read(file.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0);
}
