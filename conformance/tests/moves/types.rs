//! Values of all types on their way.

use conformance::beside::asked;
use conformance::proxy::Driver;
use conformance::servers::Vendor;
use conformance::trials::{expect, vendors_in_turn};

use super::{Outcome, log_in, logged, world};

/// Columns of all types that both have, and rows at their ends; a key of two columns.
const TYPES: &str = "(k1 VARBINARY(4), k2 VARCHAR(20) CHARACTER SET latin1, a TINYINT, b TINYINT UNSIGNED, c SMALLINT, d MEDIUMINT, \
    e MEDIUMINT UNSIGNED, f INT UNSIGNED, g BIGINT, h BIGINT UNSIGNED, i FLOAT, j DOUBLE, l DECIMAL(30,10), m DECIMAL(5,0), n BIT(1), \
    o BIT(64), p YEAR, q DATE, r TIME, s TIME(3), t DATETIME, u DATETIME(6), v TIMESTAMP NULL, w TIMESTAMP(2) NULL, x CHAR(5), \
    y CHAR(255) CHARACTER SET utf8mb4, z VARCHAR(300) CHARACTER SET ucs2, aa BINARY(5), ab VARBINARY(400), ac TINYBLOB, ad BLOB, \
    ae MEDIUMTEXT, af LONGBLOB, ag ENUM('a','b','c'), ah SET('a','b','c'), ai JSON, aj GEOMETRY, ak INT AS (a + 1) STORED, \
    PRIMARY KEY (k1, k2)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4";

const ROWS: &[&str] = &[
    "X'0001', 'a', -128, 255, -32768, -8388608, 16777215, 4294967295, -9223372036854775808, 18446744073709551615, 1.1, \
     -2.2250738585072014e-308, -12345678901234567890.0123456789, 99999, b'1', 18446744073709551615, 2155, '9999-12-31', '-838:59:59', \
     '-00:00:00.001', '9999-12-31 23:59:59', '2008-12-24 13:14:15.123456', '2008-12-24 13:14:15', '2008-12-24 13:14:15.12', 'ab', 'ü', \
     'ü€', 'a', REPEAT('x', 300), '', 'b', 'text', X'00FF', 'c', 'a,c', \
     '{\"a\": [1, -70000, 5000000000, 1.5, true, null, \"x\\\\\"y\"], \"b\": {}}', ST_GeomFromText('POINT(1 2)')",
    "X'00', 'B', 127, 0, 32767, 8388607, 0, 0, 9223372036854775807, 0, -3.4e38, 1.7976931348623157e308, 0.0000000001, -1, b'0', 1, 1901, \
     '1000-01-01', '838:59:59', '12:13:14.5', '1000-01-01 00:00:00', '1970-01-02 00:00:00', '1970-01-02 00:00:01', \
     '2037-12-31 23:59:59.99', '', '', '', '', '', REPEAT('y', 255), REPEAT('z', 3000), '', '', 'a', '', '[]', \
     ST_GeomFromText('LINESTRING(0 0, 1 1)')",
    "X'', '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
     NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
];

/// All columns but the key's and the last; how they are shown as a log has them.
const SHOWN: &str = "a, b, c, d, e, f, g, h, i + 0e0, j, l, m, n + 0, CAST(o AS UNSIGNED), p, q, r, s, t, u, v, w, HEX(x), HEX(y), HEX(z), \
    HEX(TRIM(TRAILING X'00' FROM aa)), HEX(ab), HEX(ac), HEX(ad), HEX(ae), HEX(af), ag + 0, ah + 0, JSON_EXTRACT(ai, '$'), HEX(aj), ak";

pub(super) fn shown(value: &binlog::Value) -> String {
    use binlog::Value;
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) | Value::Bits(number) => number.to_string(),
        // As numbers: the texts of servers differ.
        Value::Float(number) => f64::from(*number).to_string(),
        Value::Double(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Json(text) => text.clone(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
    }
}

/// Compares what a server selects with what is read in its log, of the same rows.
pub(super) fn types(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = world(driver, vendor)?;
        it.one.root(&format!(
            "SET time_zone = '+00:00'; USE conf; DROP TABLE t_a; CREATE TABLE t_a {TYPES}"
        ))?;
        if vendor == Vendor::MariaDb {
            it.one
                .root("SET GLOBAL log_bin_compress = ON, log_bin_compress_min_len = 10")?;
        } else {
            it.one
                .root("SET GLOBAL binlog_transaction_compression = ON")?;
        }
        let names: Vec<String> = {
            let sql = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 't_a' AND COLUMN_NAME <> 'ak' ORDER BY ORDINAL_POSITION";
            it.one
                .root(sql)?
                .lines()
                .filter(|line| *line != "COLUMN_NAME")
                .map(|line| line.trim().to_owned())
                .collect()
        };
        for row in ROWS {
            let sql = format!(
                "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = ''; INSERT INTO conf.t_a ({}) VALUES ({row})",
                names.join(", ")
            );
            it.one.root(&sql)?;
        }
        let mut client = log_in(it.one.port)?;
        asked(&mut client, "SET time_zone = '+00:00'")?;
        let selected = asked(
            &mut client,
            &format!("SELECT {SHOWN} FROM t_a ORDER BY k1 DESC"),
        )?;
        let logged = logged(&it.one, vendor)?;
        expect(logged.len() == ROWS.len(), || {
            format!("{vendor}: {} rows in the log", logged.len())
        })?;
        let order = [0, 1, 2];
        for (selected, at) in selected.iter().zip(order) {
            for (column, (want, found)) in selected.iter().zip(&logged[at]).enumerate() {
                let number = |text: &str| text.parse::<f64>().ok();
                let is_same = want == found
                    || (8..10).contains(&column) && number(want) == number(found)
                    // JSON of a MariaDB is a text, as it was written.
                    || column == 33 && vendor == Vendor::MariaDb;
                expect(is_same, || {
                    format!("{vendor}, row {at}, column {column}: selected {want}, logged {found}")
                })?;
            }
        }
        // And all of it moves.
        it.begin(2)?;
        it.becomes("done")
            .map_err(|error| format!("{vendor}: {error}"))?;
        let mut there = log_in(it.two.port)?;
        asked(&mut there, "SET time_zone = '+00:00'")?;
        let moved = asked(
            &mut there,
            &format!("SELECT {SHOWN} FROM t_a ORDER BY k1 DESC"),
        )?;
        expect(moved == selected, || {
            format!("{vendor}: {moved:?}\ninstead of {selected:?}")
        })?;
    }
    Ok(())
}
