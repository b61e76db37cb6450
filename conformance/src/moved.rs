//! Templates that change nothing but where the parameters are: with them, a client sees what it
//! sees without.

use crate::proxy::Proxy;

/// Patterns, and statements that mean the same with their parameters elsewhere, more than once, or
/// not at all.
const TEMPLATES: &[(&str, &str)] = &[
    (
        "SELECT ? AS a, ? AS b",
        "WITH moved AS (SELECT ?2) SELECT ?1 AS a, ?2 AS b",
    ),
    (
        "SELECT ? AS a, ? AS b, ? AS c",
        "WITH moved AS (SELECT ?3, ?2) SELECT ?1 AS a, ?2 AS b, ?3 AS c",
    ),
    (
        "SELECT ?, LENGTH(?)",
        "WITH moved AS (SELECT ?2) SELECT ?1 AS `?`, LENGTH(?2) AS `LENGTH(?)`",
    ),
    (
        "SELECT 'first', ?",
        "WITH moved AS (SELECT ?1, ?1) SELECT 'first', ?1 AS `?`",
    ),
    (
        "SELECT * FROM types WHERE id = ?",
        "WITH moved AS (SELECT 1) SELECT * FROM types WHERE id = ?1 AND ?1 = id",
    ),
    (
        "INSERT INTO scratch (id, words) VALUES (?, ?)",
        "INSERT INTO scratch (words, id) VALUES (?2, ?1)",
    ),
    (
        "UPDATE scratch SET words = ? WHERE id >= ?",
        "UPDATE scratch SET words = CASE WHEN id >= ?2 THEN ?1 END WHERE ?2 <= id",
    ),
    (
        "SELECT id, id * 2 AS twice FROM conf.numbers WHERE id < ? ORDER BY id",
        "SELECT id, id * 2 AS twice FROM conf.numbers WHERE id < ?1 AND ?1 > id ORDER BY id",
    ),
    (
        "SELECT id FROM conf.numbers WHERE (? IS NULL OR 1 = 1) AND id < ? ORDER BY id",
        "SELECT id FROM conf.numbers WHERE id < ?2 ORDER BY id",
    ),
    (
        "SELECT 'none' AS a FROM DUAL WHERE ? IS NULL OR ? IS NULL OR 1 = 1",
        "WITH moved AS (SELECT 1) SELECT 'none' AS a",
    ),
];

/// Loads them.
pub fn load(proxy: &Proxy) -> Result<(), String> {
    let quoted = |text: &str| text.replace('\'', "''");
    let rows: Vec<String> = (1..)
        .zip(TEMPLATES)
        .map(|(id, (pattern, replacement))| {
            format!(
                "({id}, 1, '{}', '{}')",
                quoted(pattern),
                quoted(replacement)
            )
        })
        .collect();
    let sql = "INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES";
    proxy
        .admin(&format!(
            "{sql} {}; LOAD MYSQL QUERY RULES TO RUNTIME",
            rows.join(", ")
        ))
        .map(drop)
}

/// An error if no statement was one of them since this was asked last.
pub fn was_used(proxy: &Proxy) -> Result<(), String> {
    let moved = "digest_text LIKE 'WITH moved%' OR digest_text LIKE '%(words,id)%' OR digest_text LIKE '%numbers WHERE id < ? AND ? > id%'";
    match proxy
        .admin(&format!(
            "SELECT COUNT(*) FROM stats.stats_mysql_query_digest_reset WHERE {moved}"
        ))?
        .trim()
    {
        "0" => Err("no template was used".into()),
        _ => Ok(()),
    }
}
