//! What an operator says with a slip, and files that are not as they should be: nothing is lost by it.

use crate::answer::{Asker, Said};
use crate::engine::{DISK_FILE, Engine, Reply, View};
use crate::open::Options;
use crate::testing::{self, Directory};
use rusqlite::types::Value;

#[test]
fn a_comment_behind_a_value_hides_no_condition() {
    testing::with(Options::default(), |bench| async move {
        let others = "SELECT * FROM global_variables WHERE variable_name <> 'mysql-max_connections' ORDER BY 1";
        let before = bench.rows(others).await;
        for (text, value) in [
            ("SET mysql-max_connections=101 -- note", "101"),
            ("SET mysql-max_connections=102 /* note */", "102"),
            ("SET mysql-max_connections=103; -- note", "103"),
            ("SET mysql-max_connections='104' -- it's a note", "104"),
            ("SET mysql-max_connections=-5", "-5"),
        ] {
            assert_eq!(bench.run(text).await, 1, "{text}");
            let now = bench.rows("SELECT variable_value FROM global_variables WHERE variable_name='mysql-max_connections'").await;
            assert_eq!(now, [[value]], "{text}");
            assert_eq!(bench.rows(others).await, before, "{text}");
        }
        for text in [
            "SET mysql-max_connections=105 /* note",
            "SET mysql-max_connections=106) /* note",
            "SET mysql-max_connections='107",
            "SET mysql-max_connections=108) WHERE (1",
        ] {
            bench.refused(text).await;
            let now =
                bench.rows("SELECT DISTINCT variable_value FROM global_variables WHERE variable_name='mysql-max_connections'");
            assert_eq!(now.await, [["-5"]], "{text}");
            assert_eq!(bench.rows(others).await, before, "{text}");
        }
    });
}

#[test]
fn what_is_asked_of_information_schema_may_be_prepared_and_is_one_statement() {
    testing::with(Options::default(), |bench| async move {
        let sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?";
        for view in [View::Admin, View::Stats] {
            let asker = Asker { id: 1, user: "u".into(), host: "h".into(), view };
            assert_eq!(bench.shared.describe(&asker, sql), Ok((2, vec!["count(*)".into()])));
            assert_eq!(bench.shared.describe(&asker, "SELECT USER()"), Ok((0, vec!["user()".into()])));
            let name = if view == View::Admin { "mysql_servers" } else { "stats_mysql_global" };
            let values = ["main", name].map(|text| Value::Text(text.into()));
            match bench.shared.answer(&asker, sql, &values).await {
                Ok(Reply::Rows(grid)) => assert_eq!(grid.texts(), [["1"]]),
                other => panic!("{other:?}"),
            }
            let without = bench.shared.answer(&asker, sql, &[]).await;
            assert!(matches!(&without, Err(Said::Sql(words)) if words.contains("needed 2")), "{without:?}");
            let text = "SELECT count(*) > 5 FROM information_schema.tables; PRAGMA query_only=0; DELETE FROM nowhere";
            match bench.ask(view, text).await {
                Ok(Reply::Rows(grid)) => assert_eq!(grid.texts(), [["1"]]),
                other => panic!("{other:?}"),
            }
        }
        let like = "SELECT count(*) FROM stats_mysql_query_digest WHERE digest_text LIKE '%from mysql.%'";
        assert_eq!(bench.rows(like).await, [["0"]]);
    });
}

#[test]
fn a_database_that_cannot_be_opened_anew_leaves_the_one_of_before() {
    let directory = Directory::new("reopen");
    let engine = Engine::open(Some(&directory.0), View::Admin).unwrap();
    let count = || match engine.run("SELECT count(*) FROM disk.mysql_users", &[]) {
        Ok(Reply::Rows(grid)) => grid.texts(),
        other => panic!("{other:?}"),
    };
    let [file, aside] = [DISK_FILE, "aside"].map(|name| directory.0.join(name));
    std::fs::rename(&file, &aside).unwrap();
    std::fs::write(&file, "this is no database, and long enough to be none: ".repeat(100)).unwrap();
    for _ in 0..2 {
        assert!(engine.reopen_disk().unwrap_err().0.contains("not a database"));
        assert_eq!(count(), [["0"]], "the file of before");
    }
    std::fs::rename(&aside, &file).unwrap();
    engine.reopen_disk().unwrap();
    assert_eq!(count(), [["0"]]);
}
