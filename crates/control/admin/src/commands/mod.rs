//! The admin grammar: a text becomes one value, or is left to SQLite. Letters' case and blanks do
//! not matter.
//!
//! ProxySQL matches whole texts, so a comment before or behind a LOAD makes it a syntax error; so
//! here.

mod command;
mod elsewhere;
mod gui;
mod help;
mod learn;
mod moves;
mod proxysql;
mod route;
mod set;
mod show;
mod words;

pub use command::{Assignment, Command, Layer, Lesson, OfFleet, Question, Source, Subject, Verb};
pub(crate) use proxysql::is_uuid;
pub(crate) use words::literal;

use crate::engine::View;
use words::{after, is, unquoted};

/// No command of ours has so many words; a text of 64 MiB may.
const WORDS_MAX: usize = 1000;
/// Nor is any that is compared without its blanks longer than this with them.
const COMPACT_BYTES_MAX: usize = 4096;

/// Understands a text.
#[must_use]
pub fn parse(text: &str, view: View) -> Command {
    let text = text.trim();
    let text = text.strip_suffix(';').unwrap_or(text).trim_end();
    let text = without_first_comments(text);
    let first = text.split_whitespace().next().unwrap_or_default();
    if ["INSERT", "REPLACE", "UPDATE", "DELETE"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word))
    {
        // Scripts have tens of thousands of them, and no command of ours begins like this.
        return Command::Sql(insert_or_ignore(text).unwrap_or_else(|| text.to_owned()));
    }
    let words: Vec<&str> = text.split_whitespace().take(WORDS_MAX).collect();
    let [first, ..] = words[..] else {
        return Command::Blank;
    };
    let known = match first.to_ascii_uppercase().as_str() {
        "SELECT" => select(text, &words, view),
        "SHOW" if view == View::Admin && is(&words, &["SHOW FLEET HISTORY"]) => {
            Some(Command::Fleet(OfFleet::History))
        }
        "SHOW" => show::parse(text, &words, view)
            .or_else(|| gui::parse(text, &words, view).map(Command::Query)),
        "DESCRIBE" | "DESC" => show::fields(&words, view).map(Command::Query),
        "SET" => set::parse(text, &words),
        "HELP" | "?" => Some(Command::Query(help::answer(view))),
        "LOAD" | "SAVE" | "CHECKSUM" | "PROXYSQL" | "KILL" | "LOGENTRY" | "TRUNCATE" | "USE"
        | "EXPLAIN" | "LEARN" | "PULL" | "SIGNAL" | "HSCALE" | "FLEET"
            if view == View::Stats =>
        {
            None
        }
        "LOAD" | "SAVE" => moves::parse(text, &words),
        "FLEET" => moves::fleet(&words),
        "CHECKSUM" => moves::checksum(&words),
        "PROXYSQL" => proxysql::parse(&words),
        "KILL" => kill(&words),
        "LOGENTRY" if words.len() > 1 => {
            Some(Command::Log(text[first.len()..].trim_start().to_owned()))
        }
        "TRUNCATE" => truncate(&words),
        "EXPLAIN" => route::parse(text, &words),
        "LEARN" => learn::parse(&words),
        "HSCALE" => shards::command(text).map(Command::Hscale),
        "PULL" => Some(Command::NotAvailable(
            "waiting for other threads is not needed here, and not available",
        )),
        // Nothing has to be woken up: a LOAD is answered when all cores have it.
        "SIGNAL" if is(&words, &["SIGNAL MYSQL THREADS"]) => Some(Command::Accept),
        "USE" if words.len() == 2 => Some(Command::Use(unquoted(words[1]).to_owned())),
        // Every form of them: SQLite would begin a transaction that all operators are in.
        "BEGIN" | "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" => Some(Command::Accept),
        "START" if after(&words, "START TRANSACTION").is_some() => Some(Command::Accept),
        "LOCK" | "UNLOCK"
            if words
                .get(1)
                .is_some_and(|word| word.to_ascii_uppercase().starts_with("TABLE")) =>
        {
            Some(Command::Accept)
        }
        comment if comment.starts_with("/*!") && is_set_in_comment(text) => Some(Command::Accept),
        _ => None,
    };
    let known = known.or_else(|| {
        if view == View::Admin {
            ours_said_wrongly(&words).or_else(|| elsewhere::refused(&words))
        } else {
            None
        }
    });
    known.unwrap_or_else(|| Command::Sql(text.to_owned()))
}

/// The text behind its first comments, if it is a SELECT or a SHOW. Drivers put their name there, and
/// ProxySQL finds these two behind a comment, too.
fn without_first_comments(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with("/*") && !rest.starts_with("/*!") {
        let Some((_, behind)) = rest.split_once("*/") else {
            return text;
        };
        rest = behind.trim_start();
    }
    let first = rest.split_whitespace().next().unwrap_or_default();
    if first.eq_ignore_ascii_case("SELECT") || first.eq_ignore_ascii_case("SHOW") {
        rest
    } else {
        text
    }
}

/// Whether a statement of SQL inserts rows.
pub(crate) fn inserts(sql: &str) -> bool {
    let first = crate::engine::words(sql).next().unwrap_or_default();
    first.eq_ignore_ascii_case("INSERT") || first.eq_ignore_ascii_case("REPLACE")
}

/// MySQL's INSERT IGNORE in SQLite's words.
fn insert_or_ignore(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let (insert, ignore) = (words.next()?, words.next()?);
    (insert.eq_ignore_ascii_case("INSERT") && ignore.eq_ignore_ascii_case("IGNORE"))
        .then(|| format!("INSERT OR {}", words::from(text, ignore)))
}

/// Of a command that is our own nobody knows the form by heart, and SQLite's `near "ROUTE"` would
/// not help.
fn ours_said_wrongly(words: &[&str]) -> Option<Command> {
    const FORMS: &[(&str, &str)] = &[
        (
            "EXPLAIN ROUTE",
            "use EXPLAIN ROUTE '<sql>' [AS user] [IN schema] [FROM client] [ON address:port] [FLAG n], or EXPLAIN ROUTE AGAINST DIGESTS [ALL]",
        ),
        (
            "LEARN",
            "use LEARN MYSQL FIREWALL [FROM DIGESTS | FROM HISTORY | FROM DETECTED | FROM BLOCKED] [FOR user]",
        ),
        (
            "PROXYSQL FLUSH QUERY CACHE",
            "use PROXYSQL FLUSH QUERY CACHE [FOR TABLE [schema.]name | FOR DIGEST 0x…]",
        ),
        (
            "CHECKSUM",
            "use CHECKSUM [MEMORY | DISK] MYSQL SERVERS | MYSQL USERS | MYSQL QUERY RULES | MYSQL VARIABLES | \
             MYSQL REPLICATION HOSTGROUPS; those of all modules in force are in runtime_checksums_values",
        ),
        ("SAVE COREDUMP", "use LOAD COREDUMP TO RUNTIME"),
    ];
    FORMS
        .iter()
        .find(|(begin, _)| after(words, begin).is_some())
        .map(|(_, form)| Command::NotAvailable(form))
}

fn is_set_in_comment(text: &str) -> bool {
    let inside = text
        .trim_start_matches("/*!")
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start();
    inside
        .get(..3)
        .is_some_and(|word| word.eq_ignore_ascii_case("set"))
        && text.ends_with("*/")
}

fn select(text: &str, words: &[&str], view: View) -> Option<Command> {
    if view == View::Admin {
        if is(words, &["SELECT CONFIG FILE"]) {
            return Some(Command::ShowConfig);
        }
        if let Some(path) = after(words, "SELECT CONFIG INTO OUTFILE") {
            return Some(Command::WriteConfig {
                path: path.join(" "),
                select: true,
            });
        }
    }
    if is(words, &["SELECT $$"]) {
        return Some(Command::DollarProbe);
    }
    let short = if text.len() <= COMPACT_BYTES_MAX {
        text
    } else {
        ""
    };
    let compact: String = short
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        .to_ascii_uppercase();
    let answered = match compact.as_str() {
        "SELECT@@VERSION_COMMENT" | "SELECT@@VERSION_COMMENTLIMIT1" => {
            "SELECT '(ProxySQL Admin Module)'"
        }
        "SELECTVERSION()" => "SELECT :version AS 'version()'",
        "SELECTDATABASE()" => "SELECT 'admin' AS 'DATABASE()'",
        "SELECTDATABASE(),USER()LIMIT1" | "SELECTUSER(),DATABASE()LIMIT1" => {
            "SELECT 'admin' AS 'DATABASE()', :name AS 'USER()'"
        }
        "SELECTUSER()" => "SELECT :user AS 'user()'",
        "SELECTCURRENT_USER()" | "SELECTCURRENT_USER" => "SELECT :user AS 'current_user()'",
        "SELECTCONNECTION_ID()" => "SELECT :id AS 'CONNECTION_ID()'",
        "SELECTGLOBAL_CHECKSUM()" => return Some(Command::Checksum(Subject::Global)),
        "SELECTCONCAT(@@VERSION,'',@@VERSION_COMMENT)" => "SELECT :version || ' Admin Module'",
        "SELECTSCHEMA()" => "SELECT 'admin' AS 'SCHEMA()'",
        "SELECTNOW()" => "SELECT datetime('now') AS 'NOW()'",
        _ => {
            return door::hello::variables_asked(text)
                .map(Command::Variables)
                .or_else(|| information_schema(text, view));
        }
    };
    Some(Command::Query(answered.into()))
}

/// Dump tools and graphical clients read what schemas, tables and columns there are.
fn information_schema(text: &str, view: View) -> Option<Command> {
    let schemas: door::catalog::Schemas<'_> = match view {
        View::Admin => &[
            ("main", "main"),
            ("disk", "disk"),
            ("stats", "stats"),
            ("monitor", "monitor"),
            ("stats_history", "stats_history"),
        ],
        View::Stats => &[
            ("main", "main"),
            ("monitor", "monitor"),
            ("stats_history", "stats_history"),
        ],
    };
    door::catalog::replace(text, schemas).map(Command::Query)
}

fn kill(words: &[&str]) -> Option<Command> {
    let statement_only = after(words, "KILL QUERY").is_some();
    let [id] = after(words, "KILL QUERY")
        .or_else(|| after(words, "KILL CONNECTION"))
        .or_else(|| after(words, "KILL"))?
    else {
        return None;
    };
    Some(Command::Kill {
        session: id.parse().ok()?,
        statement_only,
    })
}

fn truncate(words: &[&str]) -> Option<Command> {
    let [name] = after(words, "TRUNCATE TABLE").or_else(|| after(words, "TRUNCATE"))? else {
        return None;
    };
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("stats.").unwrap_or(&name);
    matches!(
        name,
        "stats_mysql_query_digest" | "stats_mysql_query_digest_reset"
    )
    .then_some(Command::ForgetDigests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Module;

    fn admin(text: &str) -> Command {
        parse(text, View::Admin)
    }

    #[test]
    fn a_command_of_our_own_that_is_said_wrongly_is_told_its_form() {
        for text in [
            "EXPLAIN ROUTE",
            "explain route 'SELECT 1' IN",
            "EXPLAIN ROUTE SELECT 1",
            "LEARN MYSQL FIREWALL FROM NOWHERE",
            "PROXYSQL FLUSH QUERY CACHE FOR DIGEST 1",
            "CHECKSUM ADMIN VARIABLES",
            "CHECKSUM DISK MYSQL GALERA HOSTGROUPS",
            "SAVE COREDUMP TO DISK",
        ] {
            assert!(
                matches!(parse(text, View::Admin), Command::NotAvailable(form) if form.starts_with("use ")),
                "{text}"
            );
            assert!(
                matches!(parse(text, View::Stats), Command::Sql(_)),
                "{text}"
            );
        }
    }

    #[test]
    fn blanks_case_and_one_semicolon_do_not_matter_and_comments_do() {
        let wanted = Command::Move {
            module: Module::Servers,
            from: Layer::Memory,
            to: Layer::Runtime,
        };
        for text in [
            "LOAD MYSQL SERVERS TO RUNTIME",
            " load  mysql\tservers\nto run ;",
            "LOAD MYSQL SERVERS FROM MEMORY",
            "load mysql servers from mem;",
        ] {
            assert_eq!(admin(text), wanted, "{text}");
        }
        for text in [
            "LOAD MYSQL SERVERS TO RUNTIME;;",
            "/* c */ LOAD MYSQL SERVERS TO RUNTIME",
            "LOAD MYSQL SERVERS TO RUNTIME; -- x",
            "LOAD",
        ] {
            assert!(matches!(admin(text), Command::Sql(_)), "{text}");
        }
        assert_eq!(admin(" ; "), Command::Blank);
    }

    #[test]
    fn what_only_an_operator_may_do_is_plain_sql_for_the_statistics_user() {
        for text in [
            "LOAD MYSQL SERVERS TO RUNTIME",
            "PROXYSQL SHUTDOWN",
            "KILL CONNECTION 1",
            "USE main",
            "SAVE CONFIG TO FILE x",
        ] {
            assert_eq!(
                parse(text, View::Stats),
                Command::Sql(text.into()),
                "{text}"
            );
            assert_ne!(admin(text), Command::Sql(text.into()), "{text}");
        }
        assert_eq!(
            parse("SELECT CONFIG FILE", View::Stats),
            Command::Sql("SELECT CONFIG FILE".into())
        );
    }

    /// Texts of all kinds of pieces, put together without sense.
    fn nonsense(mut seed: u64, pieces: &[&str]) -> String {
        let mut text = String::new();
        for _ in 0..seed % 12 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text += pieces[(seed >> 33) as usize % pieces.len()];
        }
        text
    }

    #[test]
    fn no_text_is_too_strange() {
        const PIECES: &[&str] = &[
            "LOAD",
            "SAVE ",
            " MYSQL USER ",
            "ä",
            "'",
            "\"",
            "`",
            ";",
            "/*",
            "*/",
            "/*!",
            "--",
            "\n",
            "\0",
            "=",
            "SET ",
            "SHOW TABLES ",
            "FROM ",
            "LIKE ",
            "%",
            "SELECT @@",
            "EXPLAIN ROUTE '",
            "AS ",
            "IN ",
            "CONFIG TO FILE ",
            "INTO OUTFILE ",
            "information_schema.",
            "tables",
            ".",
            "KILL CONNECTION ",
            "99999999999",
            "USE ",
            "TRUNCATE ",
            "limit 1",
            "\u{fffd}",
            "SHOW CREATE TABLE ",
            "SHOW FIELDS FROM ",
            "SHOW TABLE STATUS LIKE ",
        ];
        for seed in 0..200_000 {
            let text = nonsense(seed, PIECES);
            let commands = [parse(&text, View::Admin), parse(&text, View::Stats)];
            drop(commands);
            door::split::statements(&text).for_each(drop);
            crate::engine::words(&text).for_each(drop);
        }
    }

    #[test]
    fn client_start_up_queries_are_known() {
        for text in [
            "select @@version_comment limit 1",
            "SELECT DATABASE()",
            "SELECT $$",
            "SET NAMES utf8mb4",
            "/*!40101 SET NAMES utf8 */",
            "/*!40014 SET FOREIGN_KEY_CHECKS=0*/;",
            "LOCK TABLES `mysql_servers` READ",
            "UNLOCK TABLES",
            "SELECT /* x */ @@session.tx_isolation",
        ] {
            assert!(!matches!(admin(text), Command::Sql(_)), "{text}");
        }
    }
}
