//! The digests that a running ProxySQL 2.7.1 gave, reproduced byte for byte: text and hash, under
//! every option.

use sql::digest::{DigestOptions, digest};

/// Undoes the escapes of the tables: `\t`, `\n`, `\\`.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(other) => other,
                None => b'\\',
            },
            other => other,
        });
    }
    out
}

fn options(setting: &str) -> DigestOptions {
    let mut o = DigestOptions::default();
    let Some((name, value)) = setting.split_once('=') else {
        return o;
    };
    let number = || value.parse().expect("a number");
    let flag = value == "true";
    match name {
        "query_digests_grouping_limit" => o.grouping_limit = number(),
        "query_digests_groups_grouping_limit" => o.groups_grouping_limit = number(),
        "query_digests_keep_comment" => o.keep_comment = flag,
        "query_digests_lowercase" => o.lowercase = flag,
        "query_digests_max_digest_length" => o.max_digest_length = number(),
        "query_digests_no_digits" => o.no_digits = flag,
        "query_digests_normalize_digest_text" => o.normalize_digest_text = flag,
        "query_digests_replace_null" => o.replace_null = flag,
        other => panic!("unknown option {other}"),
    }
    o
}

/// Compares every row and lists those that differ.
fn check(table: &str, rows_expected: usize, options_of: impl Fn(&str) -> DigestOptions) {
    let (mut rows, mut different) = (0, Vec::new());
    let mut text = Vec::new();
    for line in table.lines().skip(1) {
        let [setting, statement, hash, wanted] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not four columns: {line}")
        };
        rows += 1;
        let found = digest(&unescape(statement), &options_of(setting), &mut text);
        if text != unescape(wanted) || format!("0x{found:016X}") != hash {
            different.push(format!(
                "[{setting}] {:.300}\n   want {wanted:.300}\n   have {:.300}",
                statement,
                String::from_utf8_lossy(&text)
            ));
        }
    }
    assert_eq!(rows, rows_expected);
    assert!(
        different.is_empty(),
        "{} of {rows} rows differ:\n{}",
        different.len(),
        different.join("\n")
    );
}

#[test]
fn every_digest_under_the_default_options_is_as_recorded() {
    check(include_str!("golden/digests.tsv"), 1649, |_| {
        DigestOptions::default()
    });
}

#[test]
fn every_digest_under_each_option_is_as_recorded() {
    check(include_str!("golden/digests_options.tsv"), 1346, options);
}

/// Statements of servers' own tests, whose digests differed once.
#[test]
fn lists_signs_and_ends_are_as_a_running_one_gave_them() {
    let mut text = Vec::new();
    for (statement, wanted) in [
        (
            "INSERT INTO t1 VALUES (11, 1, 2, 3, 4, 5, 6, 7, NULL)",
            "INSERT INTO t1 VALUES (?,?,?,...,NULL)",
        ),
        (
            "INSERT INTO t1 VALUES (?, ?, ?, ?,?, ?, NOW(), ?, ?)",
            "INSERT INTO t1 VALUES (?,?,?,...,NOW(),?,?)",
        ),
        (
            "SELECT f(1,'2',3,4,5,6,7,8,9,10,x'5555AAAA00')",
            "SELECT f(?,?,?,...,x?)",
        ),
        (
            "SELECT INTERVAL(0, ROW(1,1), 1, 1, 1, 1, 1, 1, 1) AS f",
            "SELECT INTERVAL(?,ROW(?,?),?,?,?,?,?,?,?) AS f",
        ),
        (
            "BEGIN NOT ATOMIC SELECT a; END;\n;",
            "BEGIN NOT ATOMIC SELECT a; END",
        ),
        ("begin not atomic do a; end;;", "begin not atomic do a; end"),
        (
            "select (select max(c1) from t1) + c1, c1*93563%100 from t1",
            "select (select max(c1) from t1)  c1,c1*?%? from t1",
        ),
        (
            "SELECT INTERVAL 1 DAY + \"1997-12-31\"",
            "SELECT INTERVAL ? DAY ?",
        ),
        (
            "SELECT min(a) over () + a FROM t",
            "SELECT min(a) over () + a FROM t",
        ),
        (";", ";"),
    ] {
        digest(statement.as_bytes(), &DigestOptions::default(), &mut text);
        assert_eq!(String::from_utf8_lossy(&text), wanted, "{statement}");
    }
}
