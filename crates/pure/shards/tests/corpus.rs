//! The corpus of the fuzz target of this crate, replayed, whole and in pieces.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use shards::{fuzz_file, fuzz_routes};

#[test]
fn the_corpus_is_there_and_no_input_of_it_panics() {
    let files = std::fs::read_dir("../../../fuzz/corpus/shards_spread").unwrap();
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
    inputs.iter().for_each(|input| fuzz_routes(input));
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
        fuzz_routes(&mixed);
    }
}

#[test]
fn files_of_the_corpus_are_read_alike_however_they_are_cut() {
    let files = std::fs::read_dir("../../../fuzz/corpus/shards_file").unwrap();
    let inputs: Vec<Vec<u8>> = files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(inputs.len() > 1);
    for input in &inputs {
        for at in 0..input.len() {
            for kind in 0..=255 {
                let mut data = input[..at].to_vec();
                if data.len() > 1 {
                    data[1] = kind;
                }
                fuzz_file(&data);
            }
        }
    }
}

/// Pieces of statements about the two tables, put together without much sense.
#[test]
fn no_statement_is_too_strange() {
    const BEGINS: &[&str] = &[
        "SELECT * FROM users ",
        "SELECT users.id FROM users, orders o ",
        "UPDATE users SET users.name = 'x' ",
        "DELETE FROM users ",
        "DELETE users FROM users JOIN orders ON users.id = orders.user_id ",
        "INSERT INTO users (id, name) VALUES ",
        "REPLACE INTO shop.users (name, id) VALUES ",
        "EXPLAIN SELECT id FROM users ",
        "WITH x AS (SELECT id FROM users WHERE id = 1) SELECT * FROM x ",
        "SELECT COUNT(*) FROM users u LEFT JOIN orders o ON u.id = o.user_id ",
        "UPDATE users u, orders o SET u.name = o.name ",
        "UPDATE shop.users SET id = 7, name = users.name ",
        "INSERT INTO users (id, name) SELECT id, users.name FROM users ",
        "INSERT INTO users (name, id) SELECT o.id, o.user_id FROM orders o JOIN users ON users.id = o.user_id ",
        "INSERT INTO users VALUES (1, 2) ",
        "CREATE TABLE x LIKE users ",
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE users FIELDS TERMINATED BY ',' (id, name) ",
    ];
    const PIECES: &[&str] = &[
        "WHERE ",
        "AND ",
        "OR ",
        "NOT ",
        "id = 1 ",
        "users.id = 2 ",
        "shop.users.id IN (1, 2, 3) ",
        "o.user_id = u.id ",
        "id BETWEEN 3 AND 4 ",
        "id <=> NULL ",
        "id IS NULL ",
        "id = '7' ",
        "(1, 2) ",
        ", (2, 'a') ",
        "(3, NULL), (4, ?) ",
        "ON DUPLICATE KEY UPDATE users.name = users.id ",
        "GROUP BY users.name ",
        "ORDER BY id DESC ",
        "LIMIT 3 ",
        "UNION ALL SELECT user_id FROM orders ",
        "JOIN orders USING (id) ",
        "EXISTS (SELECT 1 FROM orders WHERE user_id = 1) ",
        "FOR UPDATE ",
        "; ",
        "id > 5 ",
        "users.name = shop.users.name ",
        "( ",
        ") ",
        "/* c */ ",
    ];
    let mut seed = 3u64;
    let mut below = |limit: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for _ in 0..20_000 {
        let mut text = format!("\n{}", BEGINS[below(BEGINS.len())]);
        for _ in 0..below(7) {
            text += PIECES[below(PIECES.len())];
        }
        fuzz_routes(text.as_bytes());
    }
}
