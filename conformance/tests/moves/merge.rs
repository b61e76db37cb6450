//! Partitions whose rows come together with those of another one.

use conformance::beside::asked;
use conformance::proxy::Driver;
use conformance::trials::{expect, same, soon, vendors_in_turn};

use super::{Outcome, World, last, log_in, sqlite, under_load_of, world};

const MAP: &str = "SELECT default_table || ': ' || COALESCE((SELECT GROUP_CONCAT(partition_name || ' ' || partition_value || ' ' || physical_table, '; ') FROM \
     (SELECT * FROM disk.mysql_shard_partitions ORDER BY partition_name)), '') FROM disk.mysql_shard_tables";

impl World {
    fn merge(&self, partition: &str, into: &str) -> Outcome {
        let command = format!("HSCALE MERGE_PARTITION('t', '{partition}', '{into}')");
        self.proxy.admin(&command).map(drop)
    }
}

/// A76: from one server to the other, and into the default partition, while all rows are read and
/// written.
pub(super) fn merges(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = world(driver, vendor)?;
        it.fill_default(1000)?;
        it.fill(0, 1000)?;
        let rows = (0..1000).map(|n| format!("({}, 'n{n}', 1000)", n * 4 + 1));
        let rows: Vec<_> = rows.collect();
        let fills = format!("INSERT INTO conf.t_b VALUES {}", rows.join(", "));
        it.two.root(&fills)?;
        under_load_of(&mut it, (&[0, 1, 2], ""), |it, load| {
            it.merge("b", "a")?;
            it.becomes("done")?;
            same(&last(&it.proxy.admin(MAP)?), "t_default: a 0..1 t_a_v2")?;
            load.more(200)?;
            it.merge("a", "")?;
            it.becomes("done")?;
            load.more(200)
        })
        .map_err(|error| format!("{vendor}: {error}"))?;
        same(&last(&it.proxy.admin(MAP)?), "t_default_v2:")?;
        let count = "SELECT COUNT(*) FROM conf.t_default_v2 WHERE name LIKE 'n%'";
        same(&World::number(&it.one, count)?, "4000")?;
        let old =
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE '%\\_old\\_%'";
        same(&World::number(&it.one, old)?, "3")?;
        same(&World::number(&it.two, old)?, "1")?;
        for partition in ["b", "a"] {
            it.proxy
                .admin(&format!("HSCALE DROP_OLD('t', '{partition}')"))?;
        }
        for server in [&it.one, &it.two] {
            same(&World::number(server, old)?, "0")?;
        }
        // And back.
        it.add("a", "0", 2)?;
        it.becomes("done")?;
        let count = "SELECT COUNT(*) FROM conf.t_a WHERE name LIKE 'n%'";
        same(&World::number(&it.two, count)?, "1000")?;
    }
    Ok(())
}

/// While rows are copied, and with none, one or both of the old tables renamed.
pub(super) fn killed_merging(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        for renamed in [None, Some(0), Some(1), Some(2)] {
            let mut it = world(driver, vendor)?;
            it.fill_default(500)?;
            it.fill(0, 500)?;
            it.pace(600)?;
            let mut open = log_in(it.one.port)?;
            asked(&mut open, "BEGIN")?;
            asked(&mut open, "SELECT COUNT(*) FROM t_default")?;
            it.merge("a", "")?;
            if renamed.is_some() {
                it.pace(0)?;
                soon("true", || Ok((it.last("tries")? != "0").to_string()))?;
            } else {
                let kept =
                    "SELECT COUNT(*) FROM disk.saved_moves WHERE record LIKE '%\"copied_to\":[%'";
                soon("1", || Ok(last(&it.proxy.admin(kept)?)))?;
            }
            it.proxy.kill();
            asked(&mut open, "COMMIT")?;
            if renamed.is_none() {
                // A row of one partition goes to the other.
                it.one.root("UPDATE conf.t_a SET x = 2 WHERE id IN (0, 4, 1996); DELETE FROM conf.t_a WHERE id IN (8, 12); \
                     INSERT INTO conf.t_default VALUES (12, 'went', 3); UPDATE conf.t_default SET id = 16003 WHERE id = 3; \
                     DELETE FROM conf.t_default WHERE id = 6")?;
            } else {
                let edit = "UPDATE saved_moves SET record = json_set(record, '$.state', 'cutting_over', '$.fence', 't_a_old_7', \
                     '$.merge.fence', 't_default_old_7')";
                sqlite(&it, edit)?;
            }
            if matches!(renamed, Some(0 | 1)) {
                // Nobody is kept off before the table has its new name.
                it.one
                    .root("INSERT INTO conf.t_default VALUES (16003, 'late', 1)")?;
            }
            let mut client = log_in(it.one.port)?;
            let all = |of: &str| {
                format!(
                    "SELECT COUNT(*), SUM(x), SUM(CRC32(CONCAT(id, ':', name, ':', x))) FROM {of}"
                )
            };
            let both = "(SELECT * FROM t_a UNION ALL SELECT * FROM t_default) AS both_of_them";
            let wanted = asked(&mut client, &all(both))?;
            for table in ["t_a", "t_default"].iter().take(renamed.unwrap_or(0)) {
                it.one
                    .root(&format!("RENAME TABLE conf.{table} TO conf.{table}_old_7"))?;
            }
            it.proxy.restart()?;
            it.pace(0)?;
            it.becomes("done")
                .map_err(|error| format!("{vendor}, {renamed:?}: {error}"))?;
            let mut client = log_in(it.proxy.port)?;
            let found = asked(&mut client, &all("t"))?;
            expect(found == wanted, || {
                format!("{vendor}, {renamed:?}: {found:?} instead of {wanted:?}")
            })?;
            same(&last(&it.proxy.admin(MAP)?), "t_default_v2: b 1")?;
        }
    }
    Ok(())
}

/// Rows that do not go together, and partitions that cannot.
pub(super) fn merge_lacking(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = world(driver, vendor)?;
        let refused = |partition: &str, into: &str, words: &str| {
            let said = it.merge(partition, into).err().unwrap_or_default();
            expect(said.contains(words), || format!("{vendor}: {said}"))
        };
        refused("a", "a", "must be another one")?;
        refused("", "a", "must not be empty")?;
        refused("a", "z", "has no partition 'z'")?;
        it.two
            .root("ALTER TABLE conf.t_b ADD COLUMN y INT NOT NULL DEFAULT 0")?;
        refused("b", "a", "differ in their columns or keys")?;
        it.two.root("ALTER TABLE conf.t_b DROP COLUMN y")?;
        it.one.root("CREATE TABLE conf.t_a_v2 (a INT)")?;
        refused("b", "a", "has a table conf.t_a_v2 already")?;
        it.one.root("DROP TABLE conf.t_a_v2")?;
        // A key that both have: nothing is lost, and nothing is left.
        it.fill(0, 10)?;
        it.two
            .root("INSERT INTO conf.t_b VALUES (8, 'stray', 1), (5, 'own', 1)")?;
        it.merge("b", "a")?;
        it.becomes("failed")?;
        let said = it.last("error")?;
        expect(
            said.contains("both partitions have a row with the key (8)"),
            || said,
        )?;
        let made =
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 't\\_a\\_%'";
        same(&World::number(&it.one, made)?, "0")?;
        same(
            &World::number(&it.one, "SELECT COUNT(*) FROM conf.t_a")?,
            "10",
        )?;
        same(
            &World::number(&it.two, "SELECT COUNT(*) FROM conf.t_b")?,
            "2",
        )?;
        same(&last(&it.proxy.admin(MAP)?), "t_default: a 0 ; b 1")?;
    }
    Ok(())
}
