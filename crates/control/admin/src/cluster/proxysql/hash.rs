//! Checksums as ProxySQL makes them: over texts of results, in the order of the rows.

use crate::tables::Module;
use line::Rows;
use sql::spooky::hash64_of;

const RESULT: [u64; 2] = [19, 3];
const USER: [u64; 2] = [13, 4];
const NAME: [u64; 2] = [1, 2];
const ALL: [u64; 2] = [9, 5];

/// Checksum of a module, as a number that has the digits of its text.
pub(crate) fn of_module(module: Module, results: &[Rows]) -> u64 {
    number(match module {
        Module::Rules => results.iter().map(of_result).fold(0, u64::wrapping_add),
        Module::Servers => {
            let hashes = results.iter().map(of_result);
            let bytes: Vec<u8> = hashes
                .filter(|hash| *hash != 0)
                .flat_map(u64::to_le_bytes)
                .collect();
            if bytes.is_empty() {
                0
            } else {
                hash64_of(&bytes, RESULT)
            }
        }
        Module::Users => results.first().map_or(0, of_users),
        _ => results.first().map_or(0, of_result),
    })
}

/// Checksum of one result alone.
pub(crate) fn of_rows(rows: &Rows) -> u64 {
    number(of_result(rows))
}

/// Number that stands for all modules: each with its checksum and its version.
pub(crate) fn of_all(modules: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut bytes = Vec::new();
    for (checksum, version) in modules {
        bytes.extend_from_slice(text(checksum).as_bytes());
        bytes.extend_from_slice(&version.to_le_bytes());
    }
    hash64_of(&bytes, ALL)
}

/// Text of such a number.
pub(crate) fn text(number: u64) -> String {
    format!("0x{number:016X}")
}

/// Number that has the digits of ProxySQL's text of a hash: the lower half first, both without
/// leading zeros, and filled up behind.
fn number(hash: u64) -> u64 {
    let (low, high) = (hash & u64::from(u32::MAX), hash >> 32);
    let digits = format!("{low:X}{high:X}");
    u64::from_str_radix(&format!("{digits:0<16}"), 16).expect("sixteen digits fit")
}

/// ProxySQL measures cells by their first zero.
fn up_to_zero(cell: &[u8]) -> &[u8] {
    cell.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn of_result(rows: &Rows) -> u64 {
    if rows.is_empty() {
        return 0;
    }
    let cells = rows.iter().flatten().flatten();
    let bytes: Vec<u8> = cells.flat_map(|cell| up_to_zero(cell)).copied().collect();
    hash64_of(&bytes, RESULT)
}

/// Places of columns in the answer about users.
mod column {
    pub(super) const USERNAME: usize = 0;
    pub(super) const PASSWORD: usize = 1;
    pub(super) const USE_SSL: usize = 2;
    pub(super) const DEFAULT_HOSTGROUP: usize = 3;
    pub(super) const DEFAULT_SCHEMA: usize = 4;
    pub(super) const SCHEMA_LOCKED: usize = 5;
    pub(super) const TRANSACTION_PERSISTENT: usize = 6;
    pub(super) const FAST_FORWARD: usize = 7;
    pub(super) const BACKEND: usize = 8;
    pub(super) const FRONTEND: usize = 9;
    pub(super) const MAX_CONNECTIONS: usize = 10;
    pub(super) const ATTRIBUTES: usize = 11;
    pub(super) const COMMENT: usize = 12;
}

fn of_users(rows: &Rows) -> u64 {
    let of = |side| {
        let mut users: Vec<_> = rows
            .iter()
            .filter(|row| is_one(row, side))
            .map(|row| (hash64_of(cell(row, column::USERNAME), NAME), row))
            .collect();
        users.sort_by_key(|(name, _)| *name);
        users.dedup_by_key(|(name, _)| *name);
        users.retain(|(_, row)| int(row, column::DEFAULT_HOSTGROUP) >= 0);
        let mut bytes = Vec::new();
        users.iter().for_each(|(_, row)| add_user(row, &mut bytes));
        match users.is_empty() {
            true => 0,
            false => hash64_of(&bytes, USER),
        }
    };
    of(column::BACKEND).wrapping_add(of(column::FRONTEND))
}

fn add_user(row: &[Option<Vec<u8>>], out: &mut Vec<u8>) {
    use column::{
        ATTRIBUTES, COMMENT, DEFAULT_HOSTGROUP, DEFAULT_SCHEMA, FAST_FORWARD, MAX_CONNECTIONS,
        PASSWORD, SCHEMA_LOCKED, TRANSACTION_PERSISTENT, USE_SSL, USERNAME,
    };
    out.push(is_one(row, USE_SSL).into());
    out.extend_from_slice(&int(row, DEFAULT_HOSTGROUP).to_le_bytes());
    for flag in [SCHEMA_LOCKED, TRANSACTION_PERSISTENT, FAST_FORWARD] {
        out.push(is_one(row, flag).into());
    }
    out.extend_from_slice(&int(row, MAX_CONNECTIONS).to_le_bytes());
    for text in [USERNAME, PASSWORD, DEFAULT_SCHEMA, COMMENT, ATTRIBUTES] {
        out.extend_from_slice(cell(row, text));
    }
}

fn cell(row: &[Option<Vec<u8>>], at: usize) -> &[u8] {
    row.get(at)
        .and_then(Option::as_deref)
        .map_or(&[], up_to_zero)
}

fn is_one(row: &[Option<Vec<u8>>], at: usize) -> bool {
    cell(row, at) == b"1"
}

/// A number of 32 bits, as C's `atoi` reads it; what is none is 0.
fn int(row: &[Option<Vec<u8>>], at: usize) -> i32 {
    let text = std::str::from_utf8(cell(row, at)).unwrap_or_default();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "ProxySQL keeps 32 bits of it"
    )]
    let number = text.trim().parse::<i64>().unwrap_or_default() as i32;
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[&[&str]]) -> Rows {
        let cell = |text: &&str| (*text != "NULL").then(|| text.as_bytes().to_vec());
        all.iter()
            .map(|row| row.iter().map(cell).collect())
            .collect()
    }

    /// From a cluster of two ProxySQLs 2.7.0, reported in public in October 2024; see
    /// docs/features/proxysql-cluster.md.
    #[test]
    fn a_list_of_proxies_has_the_checksum_that_proxysql_has_shown() {
        let list = rows(&[
            &["192.168.0.11", "6032", "0", "proxysql_node1"],
            &["192.168.0.12", "6032", "0", "proxysql_node2"],
        ]);
        assert_eq!(
            text(of_module(Module::ProxysqlServers, &[list])),
            "0xEB7F779029A89859"
        );
        for module in [Module::Rules, Module::Servers, Module::Users] {
            assert_eq!(text(of_module(module, &[])), "0x0000000000000000");
        }
    }

    #[test]
    fn a_text_has_both_halves_without_their_leading_zeros() {
        assert_eq!(text(number(0x0000_0012_0000_00AB)), "0xAB12000000000000");
        assert_eq!(text(number(0x8765_4321_FEDC_BA98)), "0xFEDCBA9887654321");
        assert_eq!(text(number(0)), "0x0000000000000000");
    }

    #[test]
    fn rules_are_added_and_servers_are_hashed_once_more() {
        let (one, other) = (rows(&[&["1", "NULL", "a"]]), rows(&[&["u", "s"]]));
        let sum = of_result(&one).wrapping_add(of_result(&other));
        assert_eq!(
            of_module(Module::Rules, &[one.clone(), other.clone()]),
            number(sum)
        );
        assert_eq!(
            of_module(Module::Rules, &[other.clone(), one.clone()]),
            number(sum)
        );
        let whole = of_module(Module::Servers, &[one.clone(), other.clone()]);
        assert_ne!(
            whole,
            of_module(Module::Servers, &[other.clone(), one.clone()])
        );
        // A table without rows is as none.
        assert_eq!(
            whole,
            of_module(
                Module::Servers,
                &[Rows::new(), one.clone(), Rows::new(), other]
            )
        );
        assert_ne!(
            of_module(Module::Servers, std::slice::from_ref(&one)),
            of_rows(&one)
        );
        // NULL, and what stands behind a zero, is nothing.
        assert_eq!(of_rows(&one), of_rows(&rows(&[&["1", "", "a\0b"]])));
    }

    #[test]
    fn users_are_hashed_by_what_they_mean_in_any_order() {
        #[rustfmt::skip]
        let user = |name: &str, hostgroup: &str, backend: &str, frontend: &str| -> Vec<Option<Vec<u8>>> {
            let row: &[&str] = &[
                name, "secret", "0", hostgroup, "NULL", "0", "1", "0", backend, frontend, "10000", "", "",
            ];
            rows(&[row]).remove(0)
        };
        let of = |all: Rows| of_module(Module::Users, &[all]);
        let both = [user("a", "1", "1", "1"), user("b", "2", "1", "1")];
        let [a, b] = both.clone();
        assert_eq!(
            of(vec![a.clone(), b.clone()]),
            of(vec![b.clone(), a.clone()])
        );
        assert_ne!(of(vec![a.clone()]), of(vec![b]));
        // One row for both sides, or one for each.
        let apart = vec![user("a", "1", "1", "0"), user("a", "1", "0", "1")];
        assert_eq!(of(vec![a.clone()]), of(apart));
        // Who has no hostgroup is not hashed.
        assert_eq!(of(vec![a.clone(), user("c", "-1", "1", "1")]), of(vec![a]));
        assert_eq!(of(vec![user("c", "-1", "1", "1")]), 0);
    }
}
