//! What statements are, what they leave on a connection and what they read there.

use sql::CommandCounter as C;
use sql::{Blank, Leaves, Lexing, Reads, class, class_without_escapes};

fn leaves(sql: &str) -> Leaves {
    class(sql.as_bytes()).leaves
}

fn reads(sql: &str) -> Reads {
    class(sql.as_bytes()).reads
}

#[test]
fn what_selects_and_what_is_cut_is_seen_wherever_it_stands() {
    let is = |text: &str| {
        let class = class(text.as_bytes());
        (class.selects, class.limits)
    };
    for text in [
        "SELECT a FROM t",
        "INSERT INTO t VALUES (1)",
        "SET @x = 1",
        "UPDATE t SET a = 1",
        "BEGIN",
        "DELETE FROM t WHERE a = 'LIMIT'",
    ] {
        assert_eq!(is(text), (false, false), "{text}");
    }
    let long = format!(
        "INSERT INTO t VALUES {}(1) RETURNING a",
        "(1), ".repeat(200)
    );
    let list = format!(
        "SELECT * FROM t WHERE a IN (1{}) LIMIT 3",
        ", 1".repeat(200)
    );
    for (text, selects, limits) in [
        ("SELECT a FROM t limit 5", false, true),
        ("SELECT a FROM t UNION (SELECT 1)", true, true),
        ("(SELECT 1) UNION SELECT 2", true, true),
        ("SELECT a FROM t OFFSET 2 ROWS", false, true),
        ("SET @x = (SELECT 1)", true, false),
        ("INSERT INTO t TABLE s", true, false),
        ("INSERT INTO t SELECT(1)", true, false),
        ("DELETE FROM t WHERE a IN (SELECT a FROM s)", true, false),
        ("INSERT INTO t VALUES (1) RETURNING a", true, false),
        (long.as_str(), true, false),
        (list.as_str(), false, true),
    ] {
        assert_eq!(is(text), (selects, limits), "{text}");
    }
}

#[test]
fn one_row_for_all_rows_is_told() {
    let groups = |text: &str| class(text.as_bytes()).groups;
    for text in [
        "SELECT COUNT(*) FROM t",
        "select max (a) from t where 0",
        "SELECT GROUP_CONCAT(a) FROM t",
        "SELECT f(json_arrayagg(a)) FROM t",
        "SELECT 1 FROM t HAVING 1",
        "SELECT 1 FROM t HAVING (1)",
        "SELECT 1 FROM t HAVING/**/(1)",
        "INSERT INTO t SELECT STDDEV_POP(a) FROM s",
        "WITH c AS (SELECT /*!50000 bit_or(a) */ FROM t) TABLE c",
        "SELECT ST_Collect(a), variance(b) FROM t",
    ] {
        assert!(groups(text), "{text}");
    }
    for text in [
        "SELECT a FROM t WHERE id = 1",
        "SELECT 'count(', `max` FROM t",
        "SELECT counter(a), count FROM t",
        "INSERT INTO t VALUES (1)",
    ] {
        assert!(!groups(text), "{text}");
    }
}

/// A58: statements are counted by kind without being parsed.
#[test]
fn statements_are_counted_as_proxysql_counts_them() {
    for (sql, command) in [
        ("SELECT 1", C::Select),
        ("(SELECT 1)", C::Select),
        ("/* a */ select * from t for update", C::SelectForUpdate),
        ("EXPLAIN SELECT 1", C::Unknown),
        ("DESC t", C::Unknown),
        ("WITH a AS (SELECT 1) SELECT * FROM a", C::Unknown),
        ("DO 1", C::Unknown),
        ("USE x", C::Unknown),
        ("LOCK TABLES t READ", C::Unknown),
        ("LOCK TABLE t READ", C::LockTable),
        ("TRUNCATE TABLE t", C::Unknown),
        ("DROP INDEX i ON t", C::Unknown),
        ("CREATE TEMPORARY TABLE t (a INT)", C::CreateTemporary),
        ("create table t(a int)", C::CreateTable),
        ("SHOW TABLE STATUS", C::ShowTableStatus),
        ("SHOW TABLES", C::Show),
        ("ROLLBACK TO s", C::RollbackSavepoint),
        ("ROLLBACK", C::Rollback),
        ("START TRANSACTION", C::StartTransaction),
        ("START SLAVE", C::Unknown),
        ("INSERT INTO t VALUES(1)", C::Insert),
        ("REPLACE INTO t VALUES(1)", C::Replace),
        ("SET STATEMENT max_statement_time=1 FOR SELECT 1", C::Set),
        ("/*!40101 SET NAMES utf8 */", C::Set),
        ("nonsense", C::Unknown),
        ("", C::Unknown),
        ("'x'", C::Unknown),
        ("SELECT 1; DELETE FROM t", C::Select),
    ] {
        assert_eq!(class(sql.as_bytes()).command, command, "{sql}");
    }
}

#[test]
fn plain_reads_are_those_that_nobody_notices_twice() {
    for sql in [
        "SELECT 1",
        "SELECT c FROM sbtest1 WHERE id=7",
        "(SELECT a FROM t) UNION (SELECT b FROM u)",
        "WITH a AS (SELECT COUNT(*) FROM t) SELECT * FROM a",
        "SHOW TABLES",
        "SHOW GRANTS FOR 'a'@'%'",
        "EXPLAIN SELECT 1",
        "SELECT @@version_comment LIMIT 1",
        "SELECT ':=', '@a', \"INTO\" -- FOR UPDATE",
        "SELECT IF(a IN (1,2),JSON_EXTRACT(b,'$.x'),NOW()) FROM t",
        "TABLE t",
        "SELECT `update`, a.lock FROM t",
        "SELECT EXTRACTVALUE(a, '//b') FROM t",
    ] {
        let class = class(sql.as_bytes());
        assert!(class.plain_read, "{sql}: {class:?}");
    }
    for sql in [
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t FOR SHARE",
        "SELECT * FROM t LOCK IN SHARE MODE",
        "SELECT * FROM t LOCK /* x */ IN SHARE MODE",
        "SELECT 1 INTO @a",
        "SELECT 1 INTO OUTFILE 'x'",
        "SELECT @a",
        "SELECT @a:=1",
        "SELECT GET_LOCK ('a',1)",
        "SELECT LAST_INSERT_ID()",
        "SELECT my_function(1)",
        "SELECT db.my_function(1)",
        "SELECT `my_function`(1)",
        "SELECT NEXT VALUE FOR s",
        "SELECT SQL_CALC_FOUND_ROWS 1",
        "WITH a AS (SELECT 1) DELETE FROM t",
        "EXPLAIN ANALYZE SELECT 1",
        "SHOW WARNINGS",
        "SELECT 1; SELECT 2",
        "INSERT INTO t VALUES (1)",
        "SELECT 1 /*! INTO @a */",
        "SELECT 1 /*!99999 x */",
        "",
    ] {
        assert!(!class(sql.as_bytes()).plain_read, "{sql}");
    }
}

#[test]
fn a_set_for_a_statement_writes_what_the_statement_writes() {
    let writes = |sql: &str| class(sql.as_bytes()).may_write();
    for verb in [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DELETE FROM t",
    ] {
        assert!(
            writes(&format!("SET STATEMENT max_statement_time=1 FOR {verb}")),
            "{verb}"
        );
    }
    assert!(!writes("SET sql_mode=''") && !writes("SET @a = 1"));
}

#[test]
fn what_a_statement_may_leave_behind_is_marked() {
    for (sql, marks) in [
        ("SELECT 1", Leaves::NONE),
        ("UPDATE t SET a='@x:=1', b=a+1 WHERE c IN (1)", Leaves::NONE),
        (
            "INSERT INTO t(a,b) VALUES (1,CONCAT('a','b')) ON DUPLICATE KEY UPDATE a=VALUES(a)",
            Leaves::NONE,
        ),
        ("GRANT ALL ON *.* TO a@localhost, 'b'@'%'", Leaves::NONE),
        ("CREATE DEFINER=`a`@`%` VIEW v AS SELECT 1", Leaves::NONE),
        ("DELETE FROM t WHERE a=1", Leaves::NONE),
        ("SELECT @a := 1", Leaves::USER_VARIABLE),
        ("SELECT a INTO @x, @y FROM t", Leaves::USER_VARIABLE),
        (
            "LOAD DATA INFILE 'f' INTO TABLE t (a, @b) SET c=@b",
            Leaves::USER_VARIABLE,
        ),
        ("GET DIAGNOSTICS @n = NUMBER", Leaves::USER_VARIABLE),
        ("SET @x=1", Leaves::SET | Leaves::USER_VARIABLE),
        ("SET sql_mode=''", Leaves::SET),
        ("SET STATEMENT sql_mode='' FOR SELECT 1", Leaves::NONE),
        (
            "SET STATEMENT sql_mode='' FOR CALL p()",
            Leaves::UNKNOWN_STATE | Leaves::UNKNOWN_FUNCTION,
        ),
        ("SHOW TABLES WHERE f(1)", Leaves::UNKNOWN_FUNCTION),
        ("CREATE TEMPORARY TABLE t (a INT)", Leaves::TEMP_TABLE),
        (
            "CREATE OR REPLACE TEMPORARY TABLE t (a INT)",
            Leaves::TEMP_TABLE,
        ),
        ("DROP TEMPORARY TABLE t", Leaves::DROP_TEMP_TABLE),
        ("LOCK TABLES t WRITE", Leaves::LOCK_TABLES),
        ("UNLOCK TABLES", Leaves::UNLOCK_TABLES),
        ("DO GET_LOCK('a',1)", Leaves::GET_LOCK),
        (
            "INSERT INTO t SELECT RELEASE_ALL_LOCKS()",
            Leaves::RELEASE_LOCK,
        ),
        ("FLUSH TABLES WITH READ LOCK", Leaves::FLUSH_READ_LOCK),
        ("FLUSH TABLES t FOR EXPORT", Leaves::FLUSH_READ_LOCK),
        ("FLUSH STATUS", Leaves::NONE),
        ("SELECT SQL_CALC_FOUND_ROWS * FROM t", Leaves::FOUND_ROWS),
        ("PREPARE s FROM 'SELECT 1'", Leaves::SQL_PREPARE),
        ("EXECUTE s", Leaves::SQL_EXECUTE),
        ("DEALLOCATE PREPARE s", Leaves::SQL_DEALLOCATE),
        ("DROP PREPARE s", Leaves::SQL_DEALLOCATE),
        ("SAVEPOINT a", Leaves::SAVEPOINT),
        ("XA START 'a'", Leaves::XA),
        ("HANDLER t OPEN", Leaves::HANDLER),
        ("DROP DATABASE d", Leaves::DATABASE),
        ("CREATE OR REPLACE SCHEMA d", Leaves::DATABASE),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", Leaves::NONE),
        ("SELECT s.nextval FROM dual", Leaves::NEXTVAL),
        (
            "INSERT INTO t VALUES (d.s . \"NextVal\", 'a')",
            Leaves::NEXTVAL,
        ),
        ("UPDATE t SET a = `s`.`nextval`", Leaves::NEXTVAL),
        ("SELECT nextval FROM t", Leaves::NONE),
        ("SELECT 'x' INTO 1.e@a", Leaves::USER_VARIABLE),
        (
            "SELECT `GET_LOCK`('a', 0)",
            Leaves::GET_LOCK | Leaves::UNKNOWN_FUNCTION,
        ),
        (
            "INSERT INTO t (a) TABLE u ON DUPLICATE KEY UPDATE a = f(b)",
            Leaves::UNKNOWN_FUNCTION,
        ),
        (
            "INSERT INTO t TABLE u ORDER BY f(b)",
            Leaves::UNKNOWN_FUNCTION,
        ),
        (
            "CREATE TABLE t (a TIMESTAMP ON UPDATE NOW(), KEY k (a))",
            Leaves::NONE,
        ),
        (
            "SET STATEMENT a = SUBSTRING('ANSI' FROM 1 FOR REPLACE('4','4','4')) FOR SET @@sql_mode='ANSI'",
            Leaves::SET,
        ),
        ("UPDATE t SET a=LAST_INSERT_ID(a+1)", Leaves::LAST_INSERT_ID),
        ("INSERT INTO t(a) VALUES (f(1))", Leaves::UNKNOWN_FUNCTION),
        ("SELECT SETVAL(s, 1)", Leaves::SEQUENCE),
        ("BEGIN NOT ATOMIC SET @a=1; END", Leaves::UNKNOWN_STATE),
        // Names before brackets that are no calls.
        (
            "WITH a (x) AS (SELECT 1), b (y, z) AS (SELECT 2, 3) SELECT * FROM a, b",
            Leaves::NONE,
        ),
        (
            "WITH RECURSIVE a(x) AS (SELECT 1), `b` (`y`) AS (SELECT 2) SELECT * FROM a JOIN b",
            Leaves::NONE,
        ),
        (
            "SELECT * FROM (SELECT 1, 2) d (a, b) JOIN LATERAL (SELECT d.a) `e` (c)",
            Leaves::NONE,
        ),
        (
            "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a, b)",
            Leaves::NONE,
        ),
        (
            "LOAD DATA INFILE 'f' INTO TABLE `t` CHARACTER SET latin1 LINES TERMINATED BY \"\\n\" IGNORE 1 LINES (a, b)",
            Leaves::NONE,
        ),
        (
            "ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (10), PARTITION q VALUES LESS THAN (f))",
            Leaves::NONE,
        ),
        (
            "CREATE TABLE t (c CHAR(2) CHARACTER SET ascii, KEY k (c), CHECK (c <> ''), UNIQUE `u` (c))",
            Leaves::NONE,
        ),
        (
            "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, ADD INDEX i (c)",
            Leaves::NONE,
        ),
        // And what only looks alike.
        (
            "WITH a (x) AS (SELECT f(1)) SELECT * FROM a",
            Leaves::UNKNOWN_FUNCTION,
        ),
        ("SELECT b(y) AS c, (SELECT 1)", Leaves::UNKNOWN_FUNCTION),
        ("SELECT (1), f(2)", Leaves::UNKNOWN_FUNCTION),
        ("SELECT (1) AND f(2)", Leaves::UNKNOWN_FUNCTION),
        ("SELECT than(1)", Leaves::UNKNOWN_FUNCTION),
        (
            "SELECT * FROM (SELECT f(1)) d (a)",
            Leaves::UNKNOWN_FUNCTION,
        ),
        (
            "LOAD DATA INFILE 'f' INTO TABLE t (a, @b) SET c = f(@b)",
            Leaves::USER_VARIABLE | Leaves::UNKNOWN_FUNCTION,
        ),
        (
            "INSERT INTO d.character SET a = f(1)",
            Leaves::UNKNOWN_FUNCTION,
        ),
        (
            "INSERT INTO t (a) SELECT 1 ON DUPLICATE KEY UPDATE a = (1) + f(2)",
            Leaves::UNKNOWN_FUNCTION,
        ),
        ("nonsense", Leaves::UNKNOWN_STATE),
        ("/*!99999 SELECT */ CALL p", Leaves::UNKNOWN_STATE),
    ] {
        let found = leaves(sql);
        assert!(
            found.contains(marks) && (!marks.is_empty() || found.is_empty()),
            "{sql}: {found:?}"
        );
    }
}

#[test]
fn reads_of_what_is_bound_to_a_connection_are_marked() {
    for (sql, marks) in [
        ("SELECT 1", Reads::NONE),
        ("SELECT LAST_INSERT_ID()", Reads::LAST_INSERT_ID),
        ("SELECT @@identity", Reads::LAST_INSERT_ID),
        ("SELECT FOUND_ROWS ( )", Reads::FOUND_ROWS),
        ("SELECT ROW_COUNT()", Reads::ROW_COUNT),
        ("SELECT CONNECTION_ID()", Reads::CONNECTION_ID),
        ("SELECT @@session.warning_count", Reads::WARNINGS),
        ("SHOW COUNT(*) WARNINGS", Reads::WARNINGS),
        ("SELECT @`a b`", Reads::USER_VARIABLE),
        ("SELECT @@sql_mode", Reads::SESSION_VARIABLE),
        ("SELECT @@session.last_gtid", Reads::LAST_GTID),
        ("SELECT @@global.sql_mode", Reads::NONE),
        ("EXECUTE s USING @a", Reads::PREPARED | Reads::USER_VARIABLE),
        ("SELECT PREVIOUS VALUE FOR s", Reads::SEQUENCE),
        ("SELECT s.currval, `s`.`CURRVAL`", Reads::CURRVAL),
        ("SELECT currval, t.a FROM t", Reads::NONE),
        ("SELECT `FOUND_ROWS`()", Reads::FOUND_ROWS),
        ("SELECT \"ROW_COUNT\"()", Reads::ROW_COUNT),
        ("SELECT EXTRACTVALUE(a, '//b[$@i]') FROM t", Reads::XPATH),
        ("SELECT updatexml (a, b, c) FROM t", Reads::XPATH),
    ] {
        assert_eq!(reads(sql), marks, "{sql}");
    }
    assert!(leaves("SELECT LAST_INSERT_ID()").is_empty());
}

#[test]
fn transactions_begin_and_end() {
    for (sql, begins, ends, releases) in [
        ("BEGIN", true, false, false),
        ("BEGIN WORK;", true, false, false),
        (
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            true,
            false,
            false,
        ),
        ("COMMIT", false, true, false),
        ("ROLLBACK WORK AND NO CHAIN", false, true, false),
        ("COMMIT AND CHAIN", true, false, false),
        ("COMMIT RELEASE", false, true, true),
        ("COMMIT NO RELEASE", false, true, false),
        ("ROLLBACK TO SAVEPOINT a", false, false, false),
        ("SELECT 'BEGIN'", false, false, false),
    ] {
        let class = class(sql.as_bytes());
        assert_eq!(
            (
                class.begins_transaction,
                class.ends_transaction,
                class.releases
            ),
            (begins, ends, releases),
            "{sql}"
        );
    }
}

#[test]
fn use_names_its_database() {
    let name = |sql: &'static str| {
        class(sql.as_bytes())
            .use_db
            .map(std::borrow::Cow::into_owned)
    };
    assert_eq!(name("USE a"), Some("a".to_owned()));
    assert_eq!(name("use /* x */ `a``b` ;"), Some("a`b".to_owned()));
    assert_eq!(name("USE a b"), None);
    assert!(leaves("USE a b").contains(Leaves::UNKNOWN_STATE));
}

#[test]
fn several_statements_are_told_from_one() {
    assert!(!class(b"SELECT ';' ; ").multi);
    assert!(class(b"SELECT 1;;SELECT 2").multi);
    assert!(!class(b"CREATE PROCEDURE p() BEGIN SET @a=1; END").multi);
    assert!(leaves("CREATE PROCEDURE p() BEGIN SET @a=1; END;").is_empty());
    let both = class(b"CREATE PROCEDURE p() SELECT 1; SET @a=1");
    assert!(both.multi && both.leaves.contains(Leaves::USER_VARIABLE));
    let hidden = class(b"CREATE PROCEDURE p() BEGIN SELECT 1; END; SET @a=1");
    assert!(hidden.multi && hidden.leaves.contains(Leaves::USER_VARIABLE));
}

#[test]
fn the_body_of_a_program_ends_where_its_blocks_do() {
    const MIGRATION: &str = "CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.x = 1; END; SET foreign_key_checks=0;
        CREATE TEMPORARY TABLE tmp (a INT); CREATE TRIGGER b BEFORE UPDATE ON t FOR EACH ROW BEGIN SET NEW.x = 2; END";
    let class_of = |sql: &str| (class(sql.as_bytes()).multi, leaves(sql));
    assert_eq!(
        class_of(MIGRATION),
        (true, Leaves::SET | Leaves::TEMP_TABLE)
    );
    for one in [
        "CREATE PROCEDURE p() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; END; IF 1 THEN SELECT 1; END IF; SELECT 2; END",
        "CREATE PROCEDURE p() l: BEGIN CASE x WHEN 1 THEN SELECT 1; ELSE BEGIN END; END CASE; SET @a = CASE WHEN 1 THEN 2 END; END l;",
        "CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW BEGIN WHILE 1 DO SET NEW.end = NEW.begin; END WHILE; REPEAT SET @x=1; UNTIL 1 END REPEAT; END",
        "CREATE PROCEDURE p() BEGIN SELECT a FROM t ORDER BY CASE WHEN x THEN 1 END FOR UPDATE; END",
        "CREATE PROCEDURE p() BEGIN SELECT begin, a FROM t WHERE end > 1 ORDER BY end; DELETE FROM t; END",
        "CREATE PROCEDURE p() BEGIN CASE x WHEN 1 THEN IF a THEN SELECT 1; END IF; ELSE BEGIN END; END CASE; SELECT 1 AS end; END",
        "CREATE PROCEDURE p() BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN SET @done = 1; END; SELECT 1; END",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN SELECT start, end FROM t; LOOP LEAVE l; END LOOP; END;;",
    ] {
        assert_eq!(class_of(one), (false, Leaves::NONE), "{one}");
    }
    for several in [
        "CREATE PROCEDURE p() BEGIN SELECT 1 AS end; END; SET foreign_key_checks=0; SELECT 1 AS END",
        "CREATE PROCEDURE p() BEGIN SELECT 1; END p; SET foreign_key_checks=0; SELECT 1 AS END",
        "CREATE FUNCTION f() RETURNS INT BEGIN RETURN 1; END; nonsense; CREATE FUNCTION g() RETURNS INT BEGIN RETURN 1; END",
    ] {
        let (multi, leaves) = class_of(several);
        assert!(multi && !leaves.is_empty(), "{several}: {leaves:?}");
    }
}

#[test]
fn a_variable_with_dots_in_its_name_is_assigned() {
    for sql in [
        "SELECT @a.b := 1",
        "SELECT @.a := 1",
        "SELECT @a..b:=1",
        "SELECT @a.1:=1",
        "SHOW TABLES WHERE@v:=1",
        "SHOW TABLES WHERE x@v:=1",
    ] {
        assert_eq!(leaves(sql), Leaves::USER_VARIABLE, "{sql}");
        assert!(reads(sql).contains(Reads::USER_VARIABLE), "{sql}");
    }
    for sql in [
        "CREATE OR REPLACE TABLE t AS SELECT@v:=1",
        "SHOW TABLES WHERE(SELECT ALL@`v`:=5)",
        "SHOW TABLES WHERE x OR ESCAPE@'v':=5",
        "GRANT SELECT ON x TO a@`v`:=5",
        "CREATE OR REPLACE TABLE t AS SELECT SQL_NO_CACHE@\"v\" := 5",
    ] {
        assert_eq!(leaves(sql), Leaves::USER_VARIABLE, "{sql}");
    }
    assert!(leaves("SET @x = (SELECT ALL@`v`:=5)").contains(Leaves::USER_VARIABLE));
    assert!(
        leaves("SET x = HIGH_PRIORITY@v").is_empty()
            || reads("SET x = HIGH_PRIORITY@v").contains(Reads::USER_VARIABLE)
    );
    assert_eq!(reads("SET PASSWORD FOR a@b = 'x'"), Reads::NONE);
    assert!(reads("SHOW TABLES WHERE 1 OR@v").contains(Reads::USER_VARIABLE));
    for sql in [
        "SHOW GRANTS FOR a@b.c",
        "DROP USER a@b, 'c'@'d.e', `f`@`g`",
        "SHOW GRANTS FOR app@localhost",
    ] {
        assert_eq!(
            (leaves(sql), reads(sql)),
            (Leaves::NONE, Reads::NONE),
            "{sql}"
        );
    }
    assert_eq!(leaves("SELECT @a.b, c.d FROM t"), Leaves::NONE);
}

#[test]
fn other_marks() {
    assert!(class(b"LOAD DATA LOW_PRIORITY LOCAL INFILE 'x' INTO TABLE t").local_infile);
    // As MySQL 9 has it.
    assert!(class(b"LOAD DATA CONCURRENT FROM LOCAL INFILE 'x' INTO TABLE t").local_infile);
    assert!(!class(b"LOAD DATA INFILE 'LOCAL' INTO TABLE t").local_infile);
    assert!(class(b"KILL 5").kills);
    assert!(class(b"ALTER TABLE t ADD a INT").ddl);
    assert!(!class(b"CREATE TEMPORARY TABLE t (a INT)").ddl);
    assert!(class(b"SET NAMES utf8").sets);
}

#[test]
fn a_backslash_escapes_unless_the_session_says_otherwise() {
    let sql = br"SELECT '\', @a:=1 -- '";
    assert!(class(sql).leaves.is_empty());
    assert_eq!(class_without_escapes(sql).leaves, Leaves::USER_VARIABLE);
}

#[test]
fn where_nobody_knows_whether_it_escapes_a_text_is_what_it_may_be() {
    let unsure = Lexing::Unsure { shifts: false };
    let both = unsure.class(br"SELECT '\', @a:=1 -- '");
    assert_eq!(
        (both.leaves, both.plain_read),
        (Leaves::USER_VARIABLE | Leaves::UNKNOWN_STATE, false)
    );
    assert!(unsure.class(br"SELECT '\'; KILL 5 -- '").kills);
    // Most texts are the same either way.
    assert!(
        unsure.class(br"SELECT 'a\n', b FROM t").plain_read
            && unsure.is_sure_of(br"SELECT 'a\n', b FROM t")
    );
    assert!(
        unsure
            .class(br"INSERT INTO t VALUES ('it\'s')")
            .leaves
            .is_empty()
    );
    assert!(
        !unsure.is_sure_of(br"SELECT 'it\'s'")
            && !sql::reads_alike(br"SELECT 'it\'s'")
            && sql::reads_alike(b"SELECT 'its'")
    );
    assert!(sql::injection(br"SELECT a FROM t WHERE b='\' OR 1=1 -- '", unsure).is_some());
}

/// A name may begin with a digit.
#[test]
fn a_function_is_seen_whatever_its_name_begins_with() {
    for sql in [
        "SELECT 2fa_use_code(5)",
        "SELECT 1, 2 , 3f (4)",
        "SELECT 1,2,3,4fa/* x */(5)",
        "DO 1e_(2)",
    ] {
        assert_eq!(leaves(sql), Leaves::UNKNOWN_FUNCTION, "{sql}");
        let far = format!(
            "SELECT /*{}*/ (1), {}",
            "-".repeat(300),
            &sql[3..].trim_start_matches("ECT")
        );
        assert_eq!(leaves(&far), Leaves::UNKNOWN_FUNCTION, "{far}");
    }
    let long = format!(
        "SELECT a FROM t WHERE b IN ({}2fa_use_code(5), 7)",
        "1,".repeat(400)
    );
    assert_eq!(leaves(&long), Leaves::UNKNOWN_FUNCTION);
    assert_eq!(leaves("SELECT a FROM t LIMIT 5"), Leaves::NONE);
}

#[test]
fn values_far_from_the_beginning_hide_nothing() {
    let numbers: Vec<_> = (0..500).map(|n| n.to_string()).collect();
    let list = numbers.join(",");
    let seen = |tail: &str| {
        let sql = format!("SELECT a FROM t WHERE b IN ({list},'c',-1.5, 'it''s', {tail}");
        (leaves(&sql), reads(&sql), class(sql.as_bytes()).multi)
    };
    let nothing = (Leaves::NONE, Reads::NONE, false);
    assert_eq!(seen("2)"), nothing);
    assert_eq!(seen("'GET_LOCK(1,2)')"), nothing);
    assert_eq!(
        seen("3,GET_LOCK('a',1))"),
        (Leaves::GET_LOCK, Reads::NONE, false)
    );
    assert_eq!(
        seen("4, NULL, null(1), s.f)"),
        (Leaves::UNKNOWN_FUNCTION, Reads::NONE, false)
    );
    assert_eq!(
        seen("s.f (1))"),
        (Leaves::UNKNOWN_FUNCTION, Reads::NONE, false)
    );
    assert_eq!(seen("5,@a)"), (Leaves::NONE, Reads::USER_VARIABLE, false));
    assert_eq!(seen("6,'b' );DO 1"), (Leaves::NONE, Reads::NONE, true));
    assert_eq!(seen(r"7,'\');DO 1')"), nothing);
    assert_eq!(seen("8)-- );DO 1"), nothing);
    let long = format!("'{}''; '", "x".repeat(300));
    assert_eq!(seen(&format!("9,{long})")), nothing);
    assert_eq!(
        seen(&format!("9,{long};DO 1")),
        (Leaves::NONE, Reads::NONE, true)
    );
}

#[test]
fn what_makes_ids_is_seen_inside_of_what() {
    let inserts = |sql: &str| class(sql.as_bytes()).inserts;
    for sql in [
        "INSERT INTO t VALUES (1)",
        "REPLACE t SET a = 1",
        "LOAD DATA INFILE 'f' INTO TABLE t",
        "SET STATEMENT max_statement_time=9 FOR INSERT INTO t(v) VALUES (1) RETURNING id",
        "ANALYZE INSERT INTO t VALUES (1)",
        "SET STATEMENT a=1 FOR ANALYZE FORMAT=JSON REPLACE INTO t VALUES (1)",
        "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY) SELECT 1 AS b",
        "CREATE TEMPORARY TABLE t SELECT 1 AS b",
    ] {
        assert!(inserts(sql), "{sql}");
    }
    for sql in [
        "SELECT 1",
        "UPDATE t SET a = REPLACE(a, 'b', 'c')",
        "SET STATEMENT a=1 FOR DELETE FROM t",
        "CREATE TABLE t (a INT)",
    ] {
        assert!(!inserts(sql), "{sql}");
    }
}

#[test]
fn analyze_runs_what_it_analyzes() {
    for sql in [
        "ANALYZE INSERT INTO t VALUES (1)",
        "ANALYZE FORMAT=JSON UPDATE t SET a=1",
        "ANALYZE DELETE FROM t",
    ] {
        let class = class(sql.as_bytes());
        assert!(
            class.against == Some(sql::Against::Change) && class.may_write(),
            "{sql}: {class:?}"
        );
    }
    assert!(leaves("ANALYZE INSERT INTO t (a) VALUES (1)").is_empty());
}

#[test]
fn a_blank_above_ascii_hides_nothing() {
    const LATIN: Lexing = Lexing::Blanks {
        blank: Blank::Latin,
        escapes: true,
    };
    for lexing in [
        LATIN,
        Lexing::Blanks {
            blank: Blank::Latin,
            escapes: false,
        },
        Lexing::Blanks {
            blank: Blank::Any,
            escapes: true,
        },
        Lexing::Unsure { shifts: false },
        Lexing::Shifts(sql::Shift::Unknown),
    ] {
        for sql in [
            &b"WITH x AS (SELECT 1)\xa0UPDATE t SET a=1"[..],
            b"SELECT 1\xa0INTO\xa0@a",
            b"SELECT SQL_CALC_FOUND_ROWS\xa0a FROM t",
            b"SELECT 1 --\x81 '\n INTO @a -- '",
        ] {
            assert!(class(sql).leaves.is_empty(), "{}", sql.escape_ascii());
            let found = lexing.class(sql);
            assert!(
                !found.plain_read && found.leaves.contains(Leaves::UNKNOWN_STATE),
                "{}: {found:?}",
                sql.escape_ascii()
            );
            assert!(
                lexing.hides(sql) && !lexing.is_sure_of(sql),
                "{}",
                sql.escape_ascii()
            );
        }
        assert!(
            lexing.class(b"SELECT '\xa0', caf\xe9 FROM t").plain_read
                && lexing.class(b"SELECT a\xa0FROM t").plain_read
        );
    }
    // Of a string that ends elsewhere without escapes.
    let open = br"SELECT 'a\'\xa0INTO @a -- '"
        .iter()
        .map(|&byte| if byte == b'x' { 0xA0 } else { byte })
        .collect::<Vec<_>>();
    assert!(LATIN.class(&open).plain_read, "{}", open.escape_ascii());
    let calls = |sql| sql::calls(sql, LATIN).len();
    assert_eq!(
        (
            calls(b"SELECT f(a)"),
            calls(b"SELECT f(1) --\x81 '\n, g(2) -- '")
        ),
        (1, 2)
    );
}

#[test]
fn what_dollars_quote_is_not_known() {
    for sql in [
        "CREATE FUNCTION f(n INT) RETURNS INT LANGUAGE JAVASCRIPT AS $$ // don't\nreturn n $$; UPDATE t SET a=1",
        "CREATE PROCEDURE p() LANGUAGE JAVASCRIPT AS $a$ x $a$",
        "CREATE LIBRARY l LANGUAGE JAVASCRIPT AS $$ let m={}; delete m.a $$",
    ] {
        assert!(leaves(sql).contains(Leaves::UNKNOWN_STATE), "{sql}");
    }
    assert!(leaves("CREATE FUNCTION f(a$b$ INT) RETURNS INT RETURN a$b$").is_empty());
}

#[test]
fn what_is_of_the_connection_is_marked() {
    for sql in [
        "SHOW VARIABLES LIKE 'last_gtid'",
        r"SHOW SESSION VARIABLES WHERE Variable_name = 'Last\_GTID'",
        "SHOW LOCAL VARIABLES LIKE 'last_gtid';",
    ] {
        assert!(reads(sql).contains(Reads::LAST_GTID), "{sql}");
    }
    for sql in [
        "SHOW VARIABLES LIKE 'last%'",
        "SHOW GLOBAL VARIABLES LIKE 'last_gtid'",
        "SHOW VARIABLES LIKE 'a'; SELECT 'last_gtid'",
        "SHOW TABLES LIKE 'last_gtid'",
    ] {
        assert!(!reads(sql).contains(Reads::LAST_GTID), "{sql}");
    }
    assert!(reads("SELECT WSREP_LAST_SEEN_GTID() = ?").contains(Reads::WSREP_GTID));
    assert!(reads("INSERT INTO t VALUES (wsrep_last_written_gtid())").contains(Reads::WSREP_GTID));
    assert!(!reads("SELECT wsrep_last_seen_gtid FROM t").contains(Reads::WSREP_GTID));
}
