//! Errors of partitions, in words that name the table as applications know it.

use crate::map::Map;

impl Map {
    /// Words of an error about a duplicate key, by which MySQL names the key with its table: here with
    /// the name that applications know. `None` where no partition on this hostgroup is named, or which
    /// table it belongs to is not certain.
    #[must_use]
    pub fn duplicate_key(&self, hostgroup: u32, words: &[u8]) -> Option<Vec<u8>> {
        // MariaDB names the key alone, and the value before it may have quotes of its own.
        let before_end = words.strip_suffix(b"'")?;
        let begins = before_end.iter().rposition(|byte| *byte == b'\'')? + 1;
        let key = &before_end[begins..];
        let rest_of = |table: &str| {
            let (name, rest) = key.split_at_checked(table.len())?;
            let is_it = name.eq_ignore_ascii_case(table.as_bytes()) && rest.starts_with(b".");
            is_it.then_some(rest)
        };
        let mut found: Option<(&str, &[u8])> = None;
        for table in self.tables() {
            let there = table.homes.iter();
            let there = there.filter(|home| home.hostgroup == hostgroup);
            let Some(rest) = there.filter_map(|home| rest_of(&home.table)).next() else {
                continue;
            };
            if found.is_some_and(|(name, _)| name != table.name) {
                return None;
            }
            found = Some((&table.name, rest));
        }
        let (name, rest) = found?;
        Some([&words[..begins], name.as_bytes(), rest, b"'"].concat())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Map, PartitionRow, TableRow};

    fn map() -> Map {
        let table = |schema: &str, name: &str, default: &str| TableRow {
            schemaname: schema.into(),
            table_name: name.into(),
            key_column: "id".into(),
            key_type: "INT".into(),
            function: "MOD(4)".into(),
            default_table: default.into(),
            default_hostgroup: 1,
            ..TableRow::default()
        };
        let partition = |schema: &str, table: &str, value: &str, physical: &str| PartitionRow {
            schemaname: schema.into(),
            table_name: table.into(),
            partition_name: format!("p{value}"),
            partition_value: value.into(),
            hostgroup_id: 2,
            physical_table: physical.into(),
            ..PartitionRow::default()
        };
        Map::build(
            vec![
                table("", "t", "t_all"),
                table("a", "u", "u_0"),
                table("b", "v", "v_0"),
            ],
            vec![
                partition("", "t", "1", "t_1"),
                partition("a", "u", "1", "x"),
                partition("b", "v", "1", "x"),
            ],
        )
        .unwrap()
    }

    #[test]
    fn a_duplicate_key_is_one_of_the_logical_table() {
        let map = map();
        let said = |hostgroup, words: &str| {
            let said = map.duplicate_key(hostgroup, words.as_bytes());
            said.map(|words| String::from_utf8(words).unwrap())
        };
        for (hostgroup, words, wanted) in [
            (
                1,
                "Duplicate entry '4' for key 't_all.PRIMARY'",
                "Duplicate entry '4' for key 't.PRIMARY'",
            ),
            (
                2,
                "Duplicate entry 't_1.a' for key 'T_1.by.name'",
                "Duplicate entry 't_1.a' for key 't.by.name'",
            ),
        ] {
            assert_eq!(said(hostgroup, words).as_deref(), Some(wanted));
        }
        for (hostgroup, words) in [
            // Another server's, MariaDB's, a plain table's, a value that looks like a key.
            (1, "Duplicate entry '4' for key 't_1.PRIMARY'"),
            (2, "Duplicate entry '4' for key 'PRIMARY'"),
            (2, "Duplicate entry '4' for key 't_11.PRIMARY'"),
            (2, "Duplicate entry 't_1.a' for key 'PRIMARY'"),
            (2, "Duplicate entry 't_1.a'' for key 'PRIMARY'"),
            // Two tables have partitions of this name, in schemas of their own.
            (2, "Duplicate entry '4' for key 'x.PRIMARY'"),
            (2, ""),
            (2, "'"),
        ] {
            assert_eq!(said(hostgroup, words), None, "{words}");
        }
    }
}
