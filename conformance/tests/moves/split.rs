//! Partitions of which a part becomes one of its own.

use std::thread;

use conformance::beside::asked;
use conformance::proxy::{Driver, Proxy};
use conformance::servers::Vendor;
use conformance::trials::{expect, same, soon, vendors_in_turn};

use super::{COLUMNS, MAP, Outcome, World, last, log_in, sqlite, under_load_of, world};

/// A71, A79, A80: both halves are read and written all the while, and whoever has an old map finds no
/// table.
pub(super) fn splits(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = world(driver, vendor)?;
        it.fill_default(2000)?;
        let stale = Proxy::start(driver, &it.wish)?;
        stale.admin(MAP)?;
        it.pace(100)?;
        under_load_of(&mut it, (&[2, 3], ""), |it, load| {
            // The second is beside the default table, as the first commands of the page have it; it
            // waits for the first.
            it.add("c", "2", 2)?;
            it.add("d", "3", 1)?;
            same(&it.last("state")?, "waiting")?;
            same(&it.default_table()?, "t_default")?;
            let other = it.add("e", "3", 1).err().unwrap_or_default();
            expect(
                other.contains("overlaps with the value of partition 'd'"),
                || other,
            )?;
            it.pace(0)?;
            it.becomes("done")?;
            load.more(200)
        })
        .map_err(|error| format!("{vendor}: {error}"))?;
        let shown = it.proxy.admin("HSCALE SHOW MOVES")?;
        expect(shown.contains("conf.t_default_old_"), || shown.clone())?;
        expect(shown.contains("conf.t_default_v2_old_"), || shown)?;
        for (server, table, class) in [(&it.two, "t_c", "2"), (&it.one, "t_d", "3")] {
            let sql = format!("SELECT GROUP_CONCAT(DISTINCT id % 4) FROM conf.{table}");
            same(&World::number(server, &sql)?, class)?;
            let sql = format!("SELECT COUNT(*) FROM conf.{table} WHERE name LIKE 'n%'");
            same(&World::number(server, &sql)?, "2000")?;
        }
        let left = "SELECT COUNT(*) FROM conf.t_default_v3";
        same(&World::number(&it.one, left)?, "0")?;
        let mut late = log_in(stale.port)?;
        for sql in [
            "SELECT x FROM t WHERE id = 2",
            "INSERT INTO t (id) VALUES (4000002)",
            "SELECT COUNT(*) FROM t",
        ] {
            let said = asked(&mut late, sql).err().unwrap_or_default();
            expect(said.contains("1146"), || format!("{vendor}: {sql}: {said}"))?;
        }
        for partition in ["c", "d"] {
            it.proxy
                .admin(&format!("HSCALE DROP_OLD('t', '{partition}')"))?;
        }
        let old =
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE '%\\_old\\_%'";
        same(&World::number(&it.one, old)?, "0")?;
        let mut client = log_in(it.proxy.port)?;
        same(
            &asked(&mut client, "SELECT COUNT(*) FROM t WHERE name LIKE 'n%'")?
                .concat()
                .concat(),
            "4000",
        )?;
    }
    Ok(())
}

/// A76: a part of a partition becomes one of its own, under load, and with a proxy that is killed behind
/// the moment at which the old table gets its name.
pub(super) fn of_another(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = world(driver, vendor)?;
        it.proxy.admin("UPDATE mysql_shard_partitions SET partition_value = '0,2..3' WHERE partition_name = 'a'; \
             LOAD MYSQL SHARDS TO RUNTIME; SAVE MYSQL SHARDS TO DISK")?;
        let rows: Vec<_> = (0..1000)
            .flat_map(|n| [0, 2, 3].map(|class| format!("({}, 'n{n}', 1000)", n * 4 + class)))
            .collect();
        it.one
            .root(&format!("INSERT INTO conf.t_a VALUES {}", rows.join(", ")))?;
        under_load_of(&mut it, (&[0, 2], ""), |it, load| {
            it.add("c", "2", 2)?;
            it.becomes("done")?;
            load.more(200)
        })
        .map_err(|error| format!("{vendor}: {error}"))?;
        let shown = "SELECT GROUP_CONCAT(partition_name || ' ' || partition_value || ' ' || physical_table, '; ') FROM \
             (SELECT * FROM disk.mysql_shard_partitions ORDER BY partition_name)";
        same(&last(&it.proxy.admin(shown)?), "a 0,3 t_a_v2; b 1 ; c 2 ")?;
        let mut open = log_in(it.one.port)?;
        asked(&mut open, "BEGIN")?;
        asked(&mut open, "SELECT COUNT(*) FROM t_a_v2")?;
        it.add("d", "3", 1)?;
        soon("true", || Ok((it.last("tries")? != "0").to_string()))?;
        it.proxy.kill();
        asked(&mut open, "COMMIT")?;
        sqlite(
            &it,
            "UPDATE saved_moves SET record = json_set(record, '$.state', 'cutting_over', '$.fence', 't_a_v2_old_7') WHERE id = 2",
        )?;
        it.one
            .root("RENAME TABLE conf.t_a_v2 TO conf.t_a_v2_old_7")?;
        it.proxy.restart()?;
        it.becomes("done")
            .map_err(|error| format!("{vendor}: {error}"))?;
        same(
            &last(&it.proxy.admin(shown)?),
            "a 0 t_a_v3; b 1 ; c 2 ; d 3 ",
        )?;
        for (server, table, class) in [
            (&it.one, "t_a_v3", "0"),
            (&it.two, "t_c", "2"),
            (&it.one, "t_d", "3"),
        ] {
            let sql = format!("SELECT GROUP_CONCAT(DISTINCT id % 4) FROM conf.{table}");
            same(&World::number(server, &sql)?, class)?;
            let sql = format!("SELECT COUNT(*) FROM conf.{table} WHERE name LIKE 'n%'");
            same(&World::number(server, &sql)?, "1000")?;
        }
        let mut client = log_in(it.proxy.port)?;
        let read = "SELECT COUNT(*) FROM t WHERE name LIKE 'n%'";
        same(&asked(&mut client, read)?.concat().concat(), "3000")?;
    }
    Ok(())
}

/// While rows are copied, and at both sides of the moment at which the old table gets its name.
pub(super) fn killed_splitting(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        for is_renamed in [None, Some(true), Some(false)] {
            let mut it = world(driver, vendor)?;
            it.fill_default(1500)?;
            it.pace(600)?;
            let mut open = log_in(it.one.port)?;
            asked(&mut open, "BEGIN")?;
            asked(&mut open, "SELECT COUNT(*) FROM t_default")?;
            it.add("c", "2", 2)?;
            if is_renamed.is_some() {
                it.pace(0)?;
                soon("true", || Ok((it.last("tries")? != "0").to_string()))?;
            } else {
                // This one waits, and is gone on with as well.
                it.add("d", "3", 2)?;
                let kept =
                    "SELECT COUNT(*) FROM disk.saved_moves WHERE record LIKE '%\"copied_to\":[%'";
                soon("1", || Ok(last(&it.proxy.admin(kept)?)))?;
            }
            it.proxy.kill();
            asked(&mut open, "COMMIT")?;
            if is_renamed.is_none() {
                it.one.root("UPDATE conf.t_default SET x = 2 WHERE id IN (2, 3, 5998); DELETE FROM conf.t_default WHERE id IN (6, 7); \
                     UPDATE conf.t_default SET id = 16002 WHERE id = 11; UPDATE conf.t_default SET id = 16003 WHERE id = 10")?;
            } else {
                let edit = "UPDATE saved_moves SET record = json_set(record, '$.state', 'cutting_over', '$.fence', 't_default_old_7')";
                sqlite(&it, edit)?;
            }
            let all = "SELECT COUNT(*), SUM(x), SUM(CRC32(CONCAT(id, ':', name, ':', x))) FROM";
            let mut client = log_in(it.one.port)?;
            let wanted = asked(&mut client, &format!("{all} t_default"))?;
            if is_renamed == Some(true) {
                it.one
                    .root("RENAME TABLE conf.t_default TO conf.t_default_old_7")?;
            }
            it.proxy.restart()?;
            it.pace(0)?;
            it.becomes("done")
                .map_err(|error| format!("{vendor}, {is_renamed:?}: {error}"))?;
            let mut client = log_in(it.proxy.port)?;
            let found = asked(&mut client, &format!("{all} t"))?;
            expect(found == wanted, || {
                format!("{vendor}, {is_renamed:?}: {found:?} instead of {wanted:?}")
            })?;
            let sql = "SELECT GROUP_CONCAT(DISTINCT id % 4) FROM conf.t_c";
            same(&World::number(&it.two, sql)?, "2")?;
            let (server, table) = match is_renamed {
                None => (&it.two, "t_d"),
                Some(_) => (&it.one, "t_default_v2"),
            };
            let sql = format!("SELECT GROUP_CONCAT(DISTINCT id % 4) FROM conf.{table}");
            same(&World::number(server, &sql)?, "3")?;
        }
    }
    Ok(())
}

/// The others stay in their table. If a row comes meanwhile, it moves.
pub(super) fn bare(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        bare_unfinished(driver, vendor)?;
        for comes in [false, true] {
            let it = world(driver, vendor)?;
            let rows: Vec<_> = (0..1000)
                .map(|n| format!("({}, 'n', 1)", n * 4 + 3))
                .collect();
            let fills = format!("INSERT INTO conf.t_default VALUES {}", rows.join(", "));
            it.one.root(&fills)?;
            let (mut client, mut open) = (log_in(it.proxy.port)?, log_in(it.one.port)?);
            if comes {
                // Nothing is cut over while this is open.
                asked(&mut open, "BEGIN")?;
                asked(&mut open, "SELECT COUNT(*) FROM t_default")?;
            }
            it.add("c", "2", 2)?;
            if comes {
                soon("true", || Ok((it.last("tries")? != "0").to_string()))?;
                asked(&mut client, "INSERT INTO t (id, x) VALUES (2, 7)")?;
                asked(&mut open, "COMMIT")?;
            }
            it.becomes("done")
                .map_err(|error| format!("{vendor}: {error}"))?;
            same(&it.default_table()?, "t_default_v2")?;
            let tables = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 't\\_default%'";
            let (copied, left) = if comes { ("1001", "2") } else { ("0", "1") };
            same(&it.last("rows_copied")?, copied)?;
            same(&World::number(&it.one, tables)?, left)?;
            asked(&mut client, "INSERT INTO t (id, x) VALUES (6, 7)")?;
            let count = "SELECT COUNT(*) FROM conf.t_c";
            same(
                &World::number(&it.two, count)?,
                if comes { "2" } else { "1" },
            )?;
            let read = "SELECT COUNT(*) FROM t WHERE name = 'n'";
            same(&asked(&mut client, read)?.concat().concat(), "1000")?;
            let drops = it.proxy.admin("HSCALE DROP_OLD('t', 'c')");
            expect(drops.is_ok() == comes, || format!("{vendor}: {drops:?}"))?;
        }
    }
    Ok(())
}

/// The table has its new name, and the process ends before the map is changed.
fn bare_unfinished(driver: Driver, vendor: Vendor) -> Outcome {
    let mut it = world(driver, vendor)?;
    it.one
        .root("INSERT INTO conf.t_default VALUES (3, 'n', 1)")?;
    let mut open = log_in(it.one.port)?;
    asked(&mut open, "BEGIN")?;
    asked(&mut open, "SELECT COUNT(*) FROM t_default")?;
    it.add("c", "2", 2)?;
    soon("true", || Ok((it.last("tries")? != "0").to_string()))?;
    it.proxy.kill();
    asked(&mut open, "COMMIT")?;
    let edit = "UPDATE saved_moves SET record = json_set(record, '$.state', 'cutting_over', '$.fence', 't_default_v2')";
    sqlite(&it, edit)?;
    it.one
        .root("RENAME TABLE conf.t_default TO conf.t_default_v2")?;
    it.proxy.restart()?;
    it.becomes("done")
        .map_err(|error| format!("{vendor}: {error}"))?;
    let drops = it.proxy.admin("HSCALE DROP_OLD('t', 'c')");
    expect(drops.is_err(), || format!("{vendor}: {drops:?}"))?;
    let mut client = log_in(it.proxy.port)?;
    let read = "SELECT GROUP_CONCAT(id) FROM t";
    same(&asked(&mut client, read)?.concat().concat(), "3")
}

pub(super) fn split_lacking(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = world(driver, vendor)?;
        let refused = |adds: &str, words: &str| {
            let said = it.proxy.admin(&format!("HSCALE ADD_PARTITION({adds})"));
            let said = said.map_or_else(|said| said, |_| "it has begun".to_owned());
            expect(said.contains(words), || {
                format!("{vendor}: {adds}: {said}\nlacks: {words}")
            })
        };
        // An empty table: nothing moves, and so nothing is needed.
        it.one
            .root("CREATE TABLE conf.small_default (k VARCHAR(9)) ENGINE=MyISAM")?;
        it.proxy.admin("HSCALE SETUP_TABLE('small', 'k', 'small_default', 1, 'PREFIX(3)'); HSCALE ADD_PARTITION('small', 'one', 'one', 2)")?;
        it.one
            .root("INSERT INTO conf.small_default VALUES ('twofold')")?;
        refused(
            "'small', 'two', 'two', 2",
            "conf.small_default is a BASE TABLE MyISAM",
        )?;
        refused(
            "'small', 'two', 'two', 2",
            "whoever moves them by hand adds the row to mysql_shard_partitions",
        )?;
        // A key that a collation may take for another.
        it.one.root("DROP TABLE conf.small_default; CREATE TABLE conf.small_default (n INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(9) CHARACTER SET utf8mb4) ENGINE=InnoDB; \
             SET NAMES utf8mb4; INSERT INTO conf.small_default (k) VALUES ('Zo\u{eb}'), ('tw\u{f6}'), ('twofold')")?;
        it.proxy
            .admin("HSCALE ADD_PARTITION('small', 'two', 'two', 2)")?;
        it.becomes("failed")?;
        let said = it.last("error")?;
        expect(said.contains("nobody but the server knows whether a row with k 'tw\u{f6}' belongs to the partition 'two'"), || said.clone())?;
        let left =
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'small\\_%'";
        same(&World::number(&it.one, left)?, "1")?;
        same(&World::number(&it.two, left)?, "0")?;
        // Without it: numbers go on behind the one that goes.
        it.one.root("DELETE FROM conf.small_default WHERE n = 2")?;
        it.proxy
            .admin("HSCALE ADD_PARTITION('small', 'two', 'two', 2)")?;
        it.becomes("done")?;
        it.one
            .root("INSERT INTO conf.small_default_v2 (k) VALUES ('x')")?;
        let numbers = "SELECT GROUP_CONCAT(n ORDER BY n) FROM conf.small_default_v2";
        same(&World::number(&it.one, numbers)?, "1,4")?;
        same(
            &World::number(&it.two, "SELECT GROUP_CONCAT(n, k) FROM conf.small_two")?,
            "3twofold",
        )?;
        it.fill_default(500)?;
        it.pace(30)?;
        it.two.root(&format!("CREATE TABLE conf.t_c {COLUMNS}"))?;
        refused(
            "'t', 'c', '2', 2",
            "the target has a table conf.t_c already",
        )?;
        it.two.root("DROP TABLE conf.t_c")?;
        refused(
            "'t', 'c', '2', 2, 't_b'",
            "its table t_b has rows of 'b' as well",
        )?;
        refused(
            "'t', 'c', '0', 2",
            "overlaps with the value of partition 'a'",
        )?;
        refused("'t', 'c', '2', 2", "it has begun")?;
        refused(
            "'t', 'c', '3', 2",
            "has a partition 'c' already, or gets one",
        )?;
        refused("'t', 'd', '3', 2", "it has begun")?;
        it.proxy.admin("HSCALE CANCEL_MOVE('t', 'd')")?;
        it.becomes("cancelled")?;
        same(
            &it.proxy
                .admin("SELECT state FROM stats_millrace_moves WHERE partition_name = 'c'")?,
            "copying",
        )?;
        it.proxy.admin("HSCALE CANCEL_MOVE('t', 'c')")?;
        let of_c = "SELECT state FROM stats_millrace_moves WHERE partition_name = 'c'";
        soon("cancelled", || Ok(last(&it.proxy.admin(of_c)?)))?;
        same(&it.default_table()?, "t_default")?;
        // Rows cannot be told apart any more as they were.
        refused("'t', 'c', '2', 2", "it has begun")?;
        it.proxy.admin("UPDATE mysql_shard_tables SET key_type = 'BIGINT' WHERE table_name = 't'; LOAD MYSQL SHARDS TO RUNTIME; \
             SET mysql-sharding_move_rows_per_second = 0; LOAD MYSQL VARIABLES TO RUNTIME")?;
        it.becomes("failed")?;
        let said = it.last("error")?;
        expect(said.contains("t is not spread any more as it was"), || said)?;
        for table in ["t_c", "t_default_v2"] {
            let sql = format!(
                "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = '{table}'"
            );
            for server in [&it.one, &it.two] {
                same(&World::number(server, &sql)?, "0")?;
            }
        }
        made_by_another(&it)?;
        sees_all(&it, vendor)?;
        it.one.root("DROP USER monitor@'%'")?;
        refused(
            "'t', 'c', '2', 2",
            "it cannot be looked whether `t_default`",
        )?;
    }
    Ok(())
}

/// A monitor's user without rights knows of no table, and one who sees another table only does not, either.
fn sees_all(it: &World, vendor: Vendor) -> Outcome {
    let refused = |arguments: &str, words: &str| {
        let said = it
            .proxy
            .admin(&format!("HSCALE ADD_PARTITION({arguments})"))
            .err()
            .unwrap_or_else(|| "it has begun".to_owned());
        expect(said.contains(words), || {
            format!("{vendor}: {arguments}: {said}")
        })
    };
    it.one
        .root("REVOKE ALL PRIVILEGES, GRANT OPTION FROM monitor@'%'")?;
    refused("'t', 'c', '2', 2", "GRANT SELECT")?;
    it.one.root(
        "CREATE TABLE conf.other_table (a INT); GRANT SELECT ON conf.other_table TO monitor@'%'",
    )?;
    refused("'t', 'c', '2', 2", "GRANT SELECT")?;
    // Nor does who may read other schemas, or be shown the rights of others.
    it.one
        .root("CREATE DATABASE elsewhere; GRANT SELECT ON elsewhere.* TO monitor@'%'; GRANT SELECT ON mysql.* TO monitor@'%'; \
             GRANT SELECT ON `m%`.* TO monitor@'%'")?;
    refused("'t', 'c', '2', 2", "may not see all schemas")?;
    if vendor == Vendor::MySql {
        it.one.root("SET GLOBAL partial_revokes = ON; REVOKE SELECT ON `m%`.* FROM monitor@'%'; GRANT SELECT ON *.* TO monitor@'%'; \
             REVOKE SELECT ON conf.* FROM monitor@'%'")?;
        refused("'t', 'c', '2', 2", "may not see all schemas")?;
    }
    // Who may read all of them knows that there is none.
    it.one.root("GRANT SELECT ON *.* TO monitor@'%'")?;
    if vendor == Vendor::MySql {
        it.one.root("GRANT SELECT ON conf.* TO monitor@'%'")?;
    }
    it.one.root("RENAME TABLE conf.t_default TO conf.hidden")?;
    it.add("none", "3", 2)?;
    it.one.root("RENAME TABLE conf.hidden TO conf.t_default")?;
    Ok(())
}

/// Somebody else makes the table at the same time: it is his.
fn made_by_another(it: &World) -> Outcome {
    let other = it.two.port;
    let makes = thread::spawn(move || {
        let mut client = log_in(other)?;
        asked(
            &mut client,
            "CREATE TABLE t_c ENGINE=InnoDB AS SELECT SLEEP(8) AS theirs",
        )
        .map(drop)
    });
    let makes_it =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'CREATE TABLE t\\_c%'";
    soon("1", || World::number(&it.two, makes_it))?;
    if it.add("c", "2", 2).is_ok() {
        it.becomes("failed")?;
        let said = it.last("error")?;
        expect(said.contains("has a table conf.t_c already"), || said)?;
    }
    makes.join().map_err(|_| "a panic".to_owned())??;
    same(
        &World::number(&it.two, "SELECT COUNT(theirs) FROM conf.t_c")?,
        "1",
    )?;
    it.two.root("DROP TABLE conf.t_c").map(drop)
}
