//! The detector of injections against the forms that attacks are known by, each with a harmless
//! statement that looks like it. Every verdict is named: a form that is not seen, or a statement
//! that is blamed, stands here with its reason, and a verdict that changes shows.

use sql::{Lexing, injection};

/// Verdict that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// An attack that is seen.
    Seen,
    /// A statement that is let alone.
    Meant,
    /// An attack that is let alone: it asks for nothing that an application would not ask for.
    Missed,
    /// Meant well, and blamed all the same.
    Blamed,
}
use Verdict::{Blamed, Meant, Missed, Seen};

/// (form, verdict, statement)
const FORMS: &[(&str, Verdict, &str)] = &[
    // Always true, to read every row or to log in without a password.
    (
        "tautology",
        Seen,
        "SELECT id FROM staff WHERE login = 'boss' AND pin = '' OR '7'='7'",
    ),
    (
        "tautology",
        Seen,
        "SELECT id FROM staff WHERE login = '' OR 12=12 -- ' AND pin = 'x'",
    ),
    (
        "tautology",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR 9=9",
    ),
    (
        "tautology",
        Seen,
        "SELECT id FROM staff WHERE (badge = 5) OR (4=4)",
    ),
    (
        "tautology",
        Seen,
        "SELECT id FROM staff WHERE (badge = 5 OR ((2)=(2)))",
    ),
    (
        "tautology",
        Seen,
        "SELECT id FROM staff WHERE login = 'x'\n\tOR\n\t'q'='q'",
    ),
    (
        "tautology",
        Seen,
        "DELETE FROM notes WHERE owner = 3 OR 1=1",
    ),
    (
        "tautology",
        Seen,
        "UPDATE staff SET pay = 1 WHERE login = 'x' OR 'z'='z'",
    ),
    (
        "tautology, unequal",
        Seen,
        "SELECT id FROM staff WHERE login = 'x' OR 'a'<'b'",
    ),
    (
        "tautology, unequal",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR 3>=2",
    ),
    (
        "tautology, unequal",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR 3<=>3",
    ),
    (
        "tautology, words",
        Seen,
        "SELECT id FROM staff WHERE login = 'x' OR 'abc' LIKE 'a%'",
    ),
    (
        "tautology, words",
        Seen,
        "SELECT id FROM staff WHERE login = 'x' OR 'abc' REGEXP '^a'",
    ),
    (
        "tautology, words",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR 4 BETWEEN 1 AND 9",
    ),
    (
        "tautology, words",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR 2 IN (1, 2)",
    ),
    (
        "tautology, words",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR 1 IS NOT NULL",
    ),
    (
        "tautology, words",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR NULL IS NULL",
    ),
    (
        "tautology, one value",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR 1 LIMIT 1",
    ),
    (
        "tautology, one value",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR TRUE ORDER BY id",
    ),
    (
        "tautology, one value",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR NOT FALSE",
    ),
    (
        "tautology, signs",
        Seen,
        "SELECT id FROM staff WHERE login = 'x' || 'a'='a'",
    ),
    (
        "tautology, signs",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 || 1=1",
    ),
    (
        "tautology, signs",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR !0",
    ),
    (
        "tautology, signs",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR ~0",
    ),
    (
        "tautology, exclusive",
        Seen,
        "SELECT id FROM staff WHERE login = 'x' XOR 1=1",
    ),
    (
        "tautology, hexadecimal",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 OR 0x41=0x41",
    ),
    (
        "tautology, comments between",
        Seen,
        "SELECT id FROM staff WHERE badge = 5/**/OR/**/6=6",
    ),
    (
        "tautology, comments between",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 /*!OR*/ 6=6",
    ),
    (
        "tautology, comments between",
        Seen,
        "SELECT id FROM staff WHERE badge = 5 /*!50001 OR*/ 6=6",
    ),
    (
        "tautology, of a column",
        Missed,
        "SELECT id FROM staff WHERE badge = 5 OR badge = badge",
    ),
    (
        "tautology, of a column",
        Missed,
        "SELECT id FROM staff WHERE badge = 5 OR badge IS NOT NULL",
    ),
    (
        "tautology, of a function",
        Missed,
        "SELECT id FROM staff WHERE badge = 5 OR PI() > 3",
    ),
    (
        "tautology, sums",
        Missed,
        "SELECT id FROM staff WHERE badge = 5 OR 2+2=4",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE badge = 5 OR badge = 6",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE 1=1 AND login = 'x'",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE 0=1 OR login = 'x'",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' OR 1=0",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' OR 5 < pay",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' OR 'day' = shift",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' OR ('day', 1) = (shift, floor)",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' OR 1 IN (floor, shift)",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' OR 2 * floor = 4",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' OR NOT floor",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' OR 1 + floor > 2",
    ),
    (
        "harmless condition",
        Meant,
        "SELECT IF(1 = 1 OR 0, 'a', 'b') || '1' FROM staff",
    ),
    (
        "harmless condition",
        Blamed,
        "SELECT id FROM staff WHERE (floor > 3 OR 1=1) AND login = 'x'",
    ),
    // A second SELECT with the same number of columns.
    (
        "union of constants",
        Seen,
        "SELECT a, b FROM t WHERE c = 1 UNION SELECT 8, 9",
    ),
    (
        "union of constants",
        Seen,
        "SELECT a, b FROM t WHERE c = 'x' UNION ALL SELECT 'p', NULL -- '",
    ),
    (
        "union of constants",
        Seen,
        "SELECT a, b FROM t WHERE (c = 1) UNION (SELECT 8, 9)",
    ),
    (
        "union of constants",
        Seen,
        "SELECT a, b FROM t WHERE c = 1 UNION DISTINCT SELECT 8, 9 FROM dual",
    ),
    (
        "union of constants",
        Seen,
        "SELECT a, b FROM t WHERE c = 1 /*!UNION*/ /*!ALL*/ SELECT 8, 9",
    ),
    (
        "union of secrets",
        Seen,
        "SELECT a FROM t WHERE c = 1 UNION SELECT column_name FROM information_schema.columns",
    ),
    (
        "union of secrets",
        Seen,
        "SELECT a FROM t WHERE c = 1 UNION SELECT GROUP_CONCAT(table_name) FROM `INFORMATION_SCHEMA`.`tables`",
    ),
    (
        "union of secrets",
        Seen,
        "SELECT a FROM t WHERE c = 1 UNION SELECT user FROM mysql.user",
    ),
    (
        "union of secrets",
        Seen,
        "SELECT a FROM t WHERE c = 1 UNION SELECT CONCAT(@@hostname, ':', @@port)",
    ),
    (
        "union of secrets",
        Seen,
        "SELECT a FROM t WHERE c = 1 UNION SELECT current_user()",
    ),
    (
        "union of secrets",
        Seen,
        "SELECT a FROM t WHERE c = 1 UNION SELECT LOAD_FILE(0x2f6574632f706173737764)",
    ),
    (
        "union into a file",
        Seen,
        "SELECT a FROM t WHERE c = 1 UNION SELECT '<?php' INTO OUTFILE '/srv/x.php'",
    ),
    (
        "union into a file",
        Seen,
        "SELECT a FROM t WHERE c = 1 UNION SELECT 0x90 INTO DUMPFILE '/usr/lib/x.so'",
    ),
    (
        "union with a table of the application's",
        Missed,
        "SELECT a FROM t WHERE c = 1 UNION SELECT secret FROM vault",
    ),
    (
        "harmless union",
        Meant,
        "SELECT a FROM t WHERE c = 1 UNION SELECT a FROM t_old WHERE c = 1",
    ),
    (
        "harmless union",
        Meant,
        "SELECT a, 'new' FROM t WHERE c = 1 UNION ALL SELECT a, 'old' FROM t_old WHERE c = 1",
    ),
    ("harmless union", Meant, "SELECT 1 UNION SELECT 2"),
    (
        "harmless union",
        Meant,
        "SELECT a FROM t WHERE c IN (SELECT 4 UNION SELECT 5)",
    ),
    (
        "harmless union",
        Blamed,
        "SELECT a FROM t WHERE c = 1 UNION SELECT 0",
    ),
    // A delay says yes or no.
    ("delay", Seen, "SELECT a FROM t WHERE c = 1 AND SLEEP(4)"),
    ("delay", Seen, "SELECT a FROM t WHERE c = 'x' OR SLEEP(4)='"),
    (
        "delay",
        Seen,
        "SELECT a FROM t WHERE c = 1 AND (SELECT SLEEP(4))",
    ),
    ("delay", Seen, "SELECT a FROM t WHERE c = 1-SLEEP(4)"),
    (
        "delay",
        Seen,
        "SELECT a FROM t WHERE c = (SELECT * FROM (SELECT(sleep(4)))q)",
    ),
    (
        "delay",
        Seen,
        "SELECT a FROM t WHERE c = 1 AND IF(ASCII(SUBSTR(DATABASE(),1,1))>77,SLEEP(4),0)",
    ),
    (
        "delay",
        Seen,
        "SELECT a FROM t WHERE c = 1 AND CASE WHEN 1=1 THEN sleep(4) ELSE 0 END",
    ),
    (
        "delay",
        Seen,
        "SELECT a FROM t WHERE c = 1 AND BENCHMARK(9000000, SHA2('x', 512))",
    ),
    (
        "delay",
        Seen,
        "INSERT INTO t (a, b) VALUES (1, (SELECT SLEEP(4)))",
    ),
    (
        "delay",
        Seen,
        "UPDATE t SET a = 'x' AND SLEEP(4) WHERE b = 1",
    ),
    (
        "delay, behind ORDER BY",
        Missed,
        "SELECT a FROM t ORDER BY (SELECT SLEEP(4))",
    ),
    (
        "delay, by work",
        Missed,
        "SELECT a FROM t WHERE c = 1 AND (SELECT COUNT(*) FROM big x, big y, big z)",
    ),
    ("harmless delay", Meant, "SELECT SLEEP(0.5)"),
    ("harmless delay", Meant, "DO SLEEP(1)"),
    (
        "harmless delay",
        Meant,
        "SELECT sleep FROM habits WHERE sleep > 8",
    ),
    (
        "harmless delay",
        Meant,
        "INSERT INTO habits (name) VALUES ('sleep(8)')",
    ),
    // The text of an error has the answer.
    (
        "error",
        Seen,
        "SELECT a FROM t WHERE c = 1 AND EXTRACTVALUE(3, CONCAT(0x5c, (SELECT user())))",
    ),
    (
        "error",
        Seen,
        "SELECT a FROM t WHERE c = 1 AND UPDATEXML(0, CONCAT('.', database()), 0)",
    ),
    (
        "error",
        Seen,
        "SELECT a FROM t WHERE c = 'x' OR updatexml(1,concat(0x7e,(version())),0) OR ''",
    ),
    (
        "error, by a sum",
        Missed,
        "SELECT a FROM t WHERE c = 1 AND EXP(~(SELECT * FROM (SELECT secret FROM vault) x))",
    ),
    (
        "error, by grouping",
        Missed,
        "SELECT a FROM t WHERE c = 1 AND (SELECT COUNT(*) FROM vault GROUP BY CONCAT(secret, FLOOR(RAND(0)*2)))",
    ),
    (
        "harmless XML",
        Meant,
        "SELECT EXTRACTVALUE(body, '/order/id') FROM mails WHERE id = 4",
    ),
    (
        "harmless XML",
        Meant,
        "UPDATE mails SET body = UPDATEXML(body, '/order/id', '<id>5</id>') WHERE id = 4",
    ),
    // The rest of the statement is a comment.
    (
        "cut off",
        Seen,
        "SELECT id FROM staff WHERE login = 'boss' -- ' AND pin = 'x'",
    ),
    (
        "cut off",
        Seen,
        "SELECT id FROM staff WHERE login = 'boss'#' AND pin = 'x'",
    ),
    (
        "cut off",
        Seen,
        "SELECT id FROM staff WHERE login = 'boss' --\t' AND pin = 'x'",
    ),
    (
        "cut off",
        Seen,
        "SELECT id FROM staff WHERE (login = 'boss') # ' AND pin = 'x')",
    ),
    (
        "cut off",
        Seen,
        "UPDATE staff SET pay = 9 WHERE login = 'me' -- ' AND boss = 'x'",
    ),
    (
        "cut off, without a quote",
        Missed,
        "SELECT id FROM staff WHERE badge = 5 -- AND pin = 4",
    ),
    (
        "cut off, by a comment that does not end",
        Missed,
        "SELECT id FROM staff WHERE login = 'boss'/*' AND pin = 'x'",
    ),
    (
        "harmless comment",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' -- who's that?",
    ),
    (
        "harmless comment",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' # can't be NULL\nAND pin = 1",
    ),
    (
        "harmless comment",
        Meant,
        "SELECT id FROM staff WHERE login = 'x' /* page: 'start' */",
    ),
    (
        "harmless comment",
        Meant,
        "SELECT id FROM staff WHERE badge = 5 -- the boss",
    ),
    (
        "harmless comment",
        Meant,
        "INSERT INTO posts (text) VALUES ('it''s -- not'' a comment')",
    ),
    // Another statement behind it.
    (
        "stacked",
        Seen,
        "SELECT a FROM t WHERE c = 1; DROP TABLE t -- ",
    ),
    (
        "stacked",
        Seen,
        "SELECT a FROM t WHERE c = 'x'; INSERT INTO staff (login) VALUES ('me') -- '",
    ),
    (
        "stacked",
        Seen,
        "SELECT a FROM t WHERE c = 1; TRUNCATE t # LIMIT 1",
    ),
    (
        "stacked",
        Seen,
        "SELECT a FROM t WHERE c = (1); ALTER TABLE t DROP b -- )",
    ),
    (
        "stacked",
        Seen,
        "SELECT a FROM t WHERE c = 1; GRANT ALL ON *.* TO me -- ",
    ),
    (
        "stacked, without a comment",
        Missed,
        "SELECT a FROM t WHERE c = 1; DROP TABLE t",
    ),
    (
        "stacked, a call",
        Missed,
        "SELECT a FROM t WHERE c = 1; CALL pay('me') -- ",
    ),
    (
        "harmless script",
        Meant,
        "UPDATE t SET a = 1 WHERE c = 1; UPDATE u SET a = 1 WHERE c = 1",
    ),
    (
        "harmless script",
        Meant,
        "INSERT INTO t VALUES (1); DELETE FROM u WHERE c = 1;",
    ),
    (
        "harmless script",
        Blamed,
        "UPDATE t SET a = 1 WHERE c = 1; DELETE FROM u WHERE c = 2; -- both",
    ),
    // One bit at a time.
    ("blind", Seen, "SELECT a FROM t WHERE c = 'x' AND 'k'='k'"),
    (
        "blind, of numbers",
        Missed,
        "SELECT a FROM t WHERE c = 5 AND 6=6",
    ),
    (
        "blind, of the data",
        Missed,
        "SELECT a FROM t WHERE c = 5 AND ASCII(SUBSTRING((SELECT secret FROM vault LIMIT 1),3,1))>80",
    ),
    (
        "blind, of the data",
        Missed,
        "SELECT a FROM t WHERE c = 5 AND (SELECT secret FROM vault LIMIT 1) LIKE 'a%'",
    ),
    (
        "harmless check",
        Meant,
        "SELECT a FROM t WHERE c = 5 AND LEFT(d, 1) > 'm'",
    ),
    (
        "harmless check",
        Meant,
        "SELECT a FROM t WHERE c = 5 AND EXISTS (SELECT 1 FROM u WHERE u.c = t.c)",
    ),
    // Words of attacks in values are values.
    (
        "a value",
        Meant,
        "INSERT INTO posts (text) VALUES ('1 OR 1=1')",
    ),
    (
        "a value",
        Meant,
        "INSERT INTO posts (text) VALUES ('x'' OR ''1''=''1')",
    ),
    (
        "a value",
        Meant,
        r"INSERT INTO posts (text) VALUES ('x\' UNION SELECT 1, 2 -- ')",
    ),
    (
        "a value",
        Meant,
        "SELECT id FROM posts WHERE text LIKE '%; DROP TABLE%'",
    ),
    (
        "a value",
        Meant,
        "SELECT id FROM posts WHERE text = \"' OR 1=1 #\"",
    ),
    (
        "a name",
        Meant,
        "SELECT `or 1=1` FROM `union select` WHERE `sleep(5)` = 1",
    ),
];

#[test]
fn every_form_gets_the_verdict_that_is_written_beside_it() {
    let mut wrong = Vec::new();
    for (form, verdict, text) in FORMS {
        let print = injection(text.as_bytes(), Lexing::Escapes);
        let wanted = matches!(verdict, Seen | Blamed);
        if print.is_some() != wanted {
            wrong.push(format!("{form}, {verdict:?}: {text} ({print:?})"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        FORMS.len(),
        wrong.join("\n")
    );
}

/// Text around a joint is not what decides: case, blanks and comments in place of blanks.
#[test]
fn blanks_case_and_comments_do_not_change_a_verdict() {
    for (form, verdict, text) in FORMS
        .iter()
        .filter(|(_, _, text)| !text.contains(['\'', '"', '`', '#', '-', '*']))
    {
        let wanted = matches!(verdict, Seen | Blamed);
        for changed in [
            text.to_ascii_uppercase(),
            text.to_ascii_lowercase(),
            text.replace(' ', "\n"),
            text.replace(' ', "/**/"),
            text.replace(' ', " /* a word */ "),
        ] {
            assert_eq!(
                injection(changed.as_bytes(), Lexing::Escapes).is_some(),
                wanted,
                "{form}: {changed}"
            );
        }
    }
}
