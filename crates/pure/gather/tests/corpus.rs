//! The corpus of the fuzz target of this crate, replayed, whole and in pieces.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use gather::fuzz_recipe;

#[test]
fn the_corpus_is_there_and_no_input_of_it_panics() {
    let files = std::fs::read_dir("../../../fuzz/corpus/gather_recipe").unwrap();
    let inputs: Vec<Vec<u8>> = files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(inputs.len() > 5);
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit.max(1) as u64) as usize
    };
    inputs.iter().for_each(|input| fuzz_recipe(input));
    for _ in 0..20_000 {
        let mut mixed = Vec::new();
        for _ in 0..1 + below(3) {
            let from = &inputs[below(inputs.len())];
            let start = below(from.len());
            mixed.extend_from_slice(&from[start..start + below(from.len() - start + 1)]);
        }
        if !mixed.is_empty() {
            let at = below(mixed.len());
            mixed[at] = b"'\"`()*/-+!#;,.@= \n\\?0aN\x00\xff"[below(25)];
        }
        fuzz_recipe(&mixed);
    }
}

/// Pieces of SELECTs, put together without much sense.
#[test]
fn no_select_is_too_strange() {
    const ITEMS: &[&str] = &[
        "a",
        "b AS c",
        "*",
        "t.*",
        "COUNT(*)",
        "SUM(a) s",
        "AVG(t.b)",
        "MIN(c)",
        "GROUP_CONCAT(a)",
        "a + 1",
        "DISTINCT a",
        "NOW()",
        "STDDEV(a)",
        "1",
    ];
    const PIECES: &[&str] = &[
        "WHERE a = 1 ",
        "GROUP BY a ",
        "GROUP BY a, 2 ",
        "HAVING COUNT(*) > 1 ",
        "HAVING s IS NULL OR NOT MIN(a) = 2 ",
        "ORDER BY a ",
        "ORDER BY 1 DESC, c ",
        "ORDER BY COUNT(*), b ",
        "LIMIT 3 ",
        "LIMIT 1, 2 ",
        "LIMIT 0 OFFSET 9 ",
        "FOR UPDATE ",
        "UNION ALL SELECT a FROM t ",
    ];
    let mut seed = 5u64;
    let mut below = |limit: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for _ in 0..20_000 {
        let items: Vec<_> = (0..1 + below(3))
            .map(|_| ITEMS[below(ITEMS.len())])
            .collect();
        let mut text = format!("SELECT {} FROM t ", items.join(", "));
        let mut at = 0;
        while at < PIECES.len() {
            at += below(5);
            text += PIECES.get(at).unwrap_or(&"");
            at += 1;
        }
        fuzz_recipe(text.as_bytes());
    }
}
