//! Settings that are read of a text, and what becomes of them.

use super::*;

/// Prints what is understood on one line.
fn shown(sql: &str) -> String {
    let Ok(settings) = parse(sql.as_bytes()) else {
        return "?".to_owned();
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let variable = |a: &Assignment<'_>| {
        let value = match a.value {
            Value::Default => "DEFAULT".to_owned(),
            Value::Literal(bytes) => text(bytes),
            Value::Expression(bytes) => format!("<{}>", text(bytes)),
        };
        format!("{:?} {} = {value}", a.scope, a.name)
    };
    let one = |setting: &Setting<'_>| match setting {
        Setting::Variable(a) => variable(a),
        Setting::Statement {
            settings,
            statement,
        } => {
            let settings: Vec<_> = settings.iter().map(variable).collect();
            format!("Statement [{}] {}", settings.join(", "), text(statement))
        }
        Setting::Role(bytes) => format!("Role {}", text(bytes)),
        Setting::ResourceGroup(bytes) => format!("ResourceGroup {}", text(bytes)),
        other => format!("{other:?}"),
    };
    settings.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[test]
fn every_form_of_set_is_understood() {
    for (sql, wanted) in [
        ("SET a=1", "Session a = 1"),
        ("set A = 'x' ;", "Session a = 'x'"),
        (
            "SET a=1, @@session.b=DEFAULT, @@c = ON",
            "Session a = 1; Session b = DEFAULT; Session c = ON",
        ),
        ("SET SESSION a=1, b=2", "Session a = 1; Session b = 2"),
        ("SET GLOBAL a:=1", "Global a = 1"),
        (
            "SET GLOBAL a=1, @@session.b=2, @c=3, SESSION d=4, e=5",
            "Global a = 1; Session b = 2; User c = 3; Session d = 4; Session e = 5",
        ),
        (
            "SET GLOBAL a=1, b=2, @@c=DEFAULT",
            "Global a = 1; Session b = <2>; Session c = <DEFAULT>",
        ),
        ("SET LOCAL a=1, GLOBAL b=2", "Session a = 1; Global b = 2"),
        (
            "SET PERSIST a=1, @@PERSIST_ONLY.b=2",
            "Persist a = 1; PersistOnly b = 2",
        ),
        ("SET @@`a`=-1.5e3", "Session a = -1.5e3"),
        (
            "SET @@global.hot.key_buffer_size=1",
            "Global hot.key_buffer_size = 1",
        ),
        (
            "SET @u:=1, @`A b`=NULL, @'c'=0x41, @d.e='x'",
            "User u = 1; User a b = NULL; User c = 0x41; User d.e = 'x'",
        ),
        (
            "SET sql_mode=STRICT_ALL_TABLES",
            "Session sql_mode = STRICT_ALL_TABLES",
        ),
        (
            "SET sql_mode=CONCAT(@@sql_mode, ',x')",
            "Session sql_mode = <CONCAT(@@sql_mode, ',x')>",
        ),
        (
            "SET sql_mode=(SELECT 1, 2), a=1",
            "Session sql_mode = <(SELECT 1, 2)>; Session a = 1",
        ),
        ("SET a = @b", "Session a = <@b>"),
        ("SET a = @@b", "Session a = <@@b>"),
        ("SET a = 1 + 1", "Session a = <1 + 1>"),
        ("SET a = - 1", "Session a = - 1"),
        (
            "SET a = 1 /* x */ , b = .5",
            "Session a = 1; Session b = .5",
        ),
        ("SET a = 'x' 'y'", "Session a = <'x' 'y'>"),
        (
            "SET a = CURRENT_TIMESTAMP",
            "Session a = <CURRENT_TIMESTAMP>",
        ),
        ("SET a = x----\0 y", "Session a = <x-->"),
        (
            "SET a = _utf8mb4'x', b=x'41'",
            "Session a = _utf8mb4'x'; Session b = x'41'",
        ),
        ("SET a = `b`", "Session a = <`b`>"),
        (
            "SET /* x */ a -- y\n = # z\n 'it''s; ,'",
            "Session a = 'it''s; ,'",
        ),
        (
            "/*!40101 SET character_set_client = utf8 */;",
            "Session character_set_client = utf8",
        ),
        (
            "/*!40103 SET TIME_ZONE='+00:00' */",
            "Session time_zone = '+00:00'",
        ),
        (
            "SET NAMES utf8",
            r#"Names { charset: Some("utf8"), collate: None }"#,
        ),
        (
            "SET NAMES 'UTF8MB4' COLLATE \"utf8mb4_bin\", a=1",
            r#"Names { charset: Some("utf8mb4"), collate: Some("utf8mb4_bin") }; Session a = 1"#,
        ),
        (
            "SET NAMES DEFAULT",
            "Names { charset: None, collate: None }",
        ),
        ("SET names=1", "Session names = 1"),
        (
            "SET CHARACTER SET latin1",
            r#"CharacterSet(Some("latin1"))"#,
        ),
        ("SET CHARSET DEFAULT", "CharacterSet(None)"),
        ("SET CHAR SET 'binary'", r#"CharacterSet(Some("binary"))"#),
        (
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
            "Transaction { scope: NextTransaction, isolation: Some(ReadCommitted), access: Some(ReadOnly) }",
        ),
        (
            "SET SESSION TRANSACTION READ WRITE, ISOLATION LEVEL SERIALIZABLE;",
            "Transaction { scope: Session, isolation: Some(Serializable), access: Some(ReadWrite) }",
        ),
        (
            "SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "Transaction { scope: Global, isolation: Some(RepeatableRead), access: None }",
        ),
        (
            "SET @@transaction_isolation='READ-COMMITTED'",
            "NextTransaction transaction_isolation = 'READ-COMMITTED'",
        ),
        (
            "SET @@session.transaction_isolation='x'",
            "Session transaction_isolation = 'x'",
        ),
        (
            "SET transaction_isolation='x'",
            "Session transaction_isolation = 'x'",
        ),
        ("SET PASSWORD = 'x'", "Password"),
        ("SET PASSWORD FOR a@localhost = PASSWORD('x')", "Password"),
        (
            "SET PASSWORD = CONCAT('x', 'y') RETAIN CURRENT PASSWORD",
            "Password",
        ),
        ("SET ROLE ALL EXCEPT a, b;", "Role ALL EXCEPT a, b"),
        (
            "SET ROLE 'a'@'%', `b` , c@localhost",
            "Role 'a'@'%', `b` , c@localhost",
        ),
        ("SET DEFAULT ROLE ALL TO a", "DefaultRole"),
        ("SET DEFAULT ROLE a, b@'%' TO c, d@localhost", "DefaultRole"),
        ("SET DEFAULT ROLE a FOR c@localhost", "DefaultRole"),
        ("SET RESOURCE GROUP g", "ResourceGroup g"),
        (
            "SET STATEMENT max_statement_time=1, sort_buffer_size=DEFAULT FOR SELECT 1 FOR UPDATE;",
            "Statement [Session max_statement_time = 1, Session sort_buffer_size = DEFAULT] SELECT 1 FOR UPDATE",
        ),
    ] {
        assert_eq!(shown(sql), wanted, "{sql}");
    }
}

#[test]
fn a_backslash_is_understood_by_who_knows_the_mode() {
    let value = |sql: &'static str, escapes| match parse_in(sql.as_bytes(), escapes).as_deref() {
        Ok([Setting::Variable(a)]) => {
            format!("{:?}", a.value == Value::Expression(&sql.as_bytes()[6..]))
        }
        Ok(several) => several.len().to_string(),
        Err(NotUnderstood) => "?".to_owned(),
    };
    assert_eq!(value(r"SET a='x\ny'", true), "true");
    assert_eq!(value(r"SET a='\', b=', c=1 -- '", true), "2");
    assert_eq!(value(r"SET a='\', b=1", false), "2");
    assert_eq!(value(r"SET a='\'", true), "?");
}

#[test]
fn what_is_not_certain_is_not_understood() {
    for sql in [
        "",
        "SELECT 1",
        "SET",
        "SET a",
        "SET a=",
        "SET a=1,",
        "SET a=1 b=2; x",
        "SET a=1; SET b=2",
        r"SET a='\'",
        r"SET a='\', b=', c=1 -- '",
        "SET =1",
        "SET a=(1",
        "SET a=1)",
        "SET a='x",
        "SET a=`x",
        "SET @=1",
        "SET @ a=1",
        "SET @a=DEFAULT",
        "SET @@=1",
        "SET 1a=1",
        "SET ``=1",
        "SET a: =1",
        "SET NAMES",
        "SET NAMES utf8 COLLATE",
        "SET NAMES DEFAULT COLLATE x",
        "SET NAMES utf8 x",
        "SET NAMES @a",
        "SET NAMES 'a b'",
        "SET TRANSACTION",
        "SET TRANSACTION ISOLATION LEVEL x",
        "SET TRANSACTION READ ONLY, READ WRITE",
        "SET TRANSACTION READ ONLY, a=1",
        "SET a=1, TRANSACTION READ ONLY",
        "SET PERSIST TRANSACTION READ ONLY",
        "SET SESSION",
        "SET SESSION NAMES utf8",
        "SET DEFAULT x",
        "SET ROLE",
        // MariaDB does all parts.
        "SET ROLE NONE, foreign_key_checks=0",
        "SET ROLE NONE, @u:='alice'",
        "SET ROLE NONE, a, @@b=1",
        "SET ROLE NONE, NAMES gbk",
        "SET ROLE NONE, CHARSET gbk",
        "SET ROLE NONE, ROLE NONE",
        "SET ROLE a, SESSION b=1",
        "SET ROLE a@b, c.d=1",
        "SET ROLE a,",
        "SET DEFAULT ROLE NONE, sql_mode='ANSI_QUOTES', @u='alice'",
        "SET DEFAULT ROLE NONE FOR a, NAMES gbk",
        "SET DEFAULT ROLE NONE FOR a, PASSWORD='x'",
        "SET PASSWORD='', @u='bob'",
        "SET PASSWORD FOR a@b = PASSWORD('x'), NAMES gbk",
        "SET PASSWORD='', PASSWORD FOR a=''",
        "SET @u='bob', PASSWORD=''",
        "SET @u='bob', PASSWORD FOR a=''",
        "SET @u='bob', ROLE NONE",
        "SET @u='bob', DEFAULT ROLE NONE",
        "SET STATEMENT a=1",
        "SET STATEMENT a=1 FOR",
        "/*!80000 SET a=1 */",
        "SET a=1 /*M! , b=2 */",
        "SET a=1 /*!99999 , b=2 */",
    ] {
        assert_eq!(shown(sql), "?", "{sql}");
    }
}
