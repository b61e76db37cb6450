//! What the parts of a SET mean for a session, and which statements may see what it has set.

use backend::{CHARSET_VARIABLES, Hold, Names, Sees, State, UserValue, characteristic};
use sql::set::{Access, Scope, Setting, Value};
use sql::{Class, CommandCounter, Leaves, Reads};

type Change<'a> = Box<dyn Fn(&mut State) -> bool + 'a>;

/// Meaning of a part of a SET for the session.
pub(crate) enum Meaning<'a> {
    /// Setting that concerns the server.
    Nothing,
    /// On or off, if its words are certain; the flags of the answer tell it anyway.
    Autocommit(Option<bool>),
    /// Setting that stays on the connection, by this name.
    Keep(Hold),
    /// Setting that travels. False if there is no room for it: then it stays on the connection.
    Travels(Change<'a>),
    /// The value of this session variable is the server's to tell.
    Ask(&'a str),
    /// The value of this user variable is.
    AskUser(&'a str),
}

/// A longer list of roles stays on its connection.
const ROLE_LEN_MAX: usize = 1024;

/// Variables whose value is used up, or means this very connection.
pub(crate) const BOUND: [&str; 17] = [
    "insert_id",
    "last_insert_id",
    "identity",
    "rand_seed1",
    "rand_seed2",
    THREAD,
    "sql_log_bin",
    // The next transaction uses them up: a server that has seen its number before passes over what
    // it writes.
    "gtid_next",
    "gtid_seq_no",
    "original_commit_timestamp",
    "original_server_version",
    "immediate_server_version",
    PROFILING,
    // A USE ends them.
    "character_set_database",
    "collation_database",
    // SET NAMES means what they were when it was said, and nothing when they are.
    "default_collation_for_utf8mb4",
    "character_set_collations",
];

/// Variable whose value `CONNECTION_ID()` is.
pub(crate) const THREAD: &str = "pseudo_thread_id";

/// The server keeps the texts of the session's statements; no reset makes it forget them.
const PROFILING: &str = "profiling";

/// Likewise, with values that the statements have read.
const OPTIMIZER_TRACE: &str = "optimizer_trace";

/// Whether the server keeps texts of the session's statements where this variable is set, which
/// only the end of the connection makes it forget.
pub(crate) fn leaves_texts(name: &str) -> bool {
    name == PROFILING || name == OPTIMIZER_TRACE
}

/// Whether a text names one of them.
pub(crate) fn mentions_texts(text: &[u8]) -> bool {
    [PROFILING, OPTIMIZER_TRACE].iter().any(|name| {
        text.windows(name.len())
            .any(|part| part.eq_ignore_ascii_case(name.as_bytes()))
    })
}

/// The place in a state of the variable that this sets to its default, if that is taken to be what
/// a connection begins with.
pub(crate) fn put_back<'a>(setting: &'a Setting<'_>) -> Option<&'a str> {
    let Setting::Variable(one) = setting else {
        return None;
    };
    let is_default = one.scope == Scope::Session && matches!(one.value, Value::Default);
    if !is_default
        || one.name == "autocommit"
        || BOUND.contains(&&*one.name)
        || CHARSET_VARIABLES.contains(&&*one.name)
    {
        return None;
    }
    Some(
        characteristic(&one.name, "DEFAULT")
            .and_then(Result::ok)
            .map_or(one.name.as_str(), |(place, _)| place),
    )
}

/// `before` is the state in which the statement was written.
pub(crate) fn meaning<'a>(setting: &'a Setting<'a>, before: &State) -> Meaning<'a> {
    match setting {
        Setting::Variable(one) => match one.scope {
            Scope::Global | Scope::Persist | Scope::PersistOnly => Meaning::Nothing,
            Scope::NextTransaction => Meaning::Keep(Hold::NextTransaction),
            Scope::User => user_variable(&one.name, &one.value, before),
            Scope::Session => session_variable(&one.name, &one.value, before),
        },
        Setting::Names { charset, collate } => {
            let mut words = format!("NAMES {}", charset.as_deref().unwrap_or("DEFAULT"));
            if let Some(collate) = collate {
                words.push_str(" COLLATE ");
                words.push_str(collate);
            }
            names(words)
        }
        Setting::CharacterSet(charset) => names(format!(
            "CHARACTER SET {}",
            charset.as_deref().unwrap_or("DEFAULT")
        )),
        Setting::Transaction {
            scope: Scope::Session,
            isolation,
            access,
        } => {
            let (isolation, access) = (*isolation, *access);
            travels(move |state| {
                if let Some(isolation) = isolation {
                    // The variable's spelling has hyphens, the statement's has blanks.
                    state.set(
                        backend::ISOLATION,
                        &format!("ISOLATION LEVEL {}", isolation.name().replace('-', " ")),
                    );
                }
                match access {
                    Some(Access::ReadOnly) => state.set(backend::ACCESS, "READ ONLY"),
                    Some(Access::ReadWrite) => state.set(backend::ACCESS, "READ WRITE"),
                    None => {}
                }
            })
        }
        Setting::Transaction {
            scope: Scope::NextTransaction,
            ..
        } => Meaning::Keep(Hold::NextTransaction),
        Setting::Transaction { .. } | Setting::Password | Setting::DefaultRole => Meaning::Nothing,
        Setting::Role(words) => match role(words) {
            Some(words) => travels(move |state| state.set(backend::ROLE, words)),
            None => Meaning::Keep(Hold::UnknownState),
        },
        Setting::ResourceGroup(_) | Setting::Statement { .. } => Meaning::Keep(Hold::UnknownState),
    }
}

/// Returns what follows SET ROLE, if it means the same wherever it is said.
fn role(words: &[u8]) -> Option<&str> {
    let certain = words.len() <= ROLE_LEN_MAX
        && words.is_ascii()
        && !words
            .iter()
            .any(|byte| matches!(byte, b'\\' | b'#' | b'-' | b'/' | b';' | b'\n'));
    std::str::from_utf8(words).ok().filter(|_| certain)
}

fn travels<'a>(change: impl Fn(&mut State) + 'a) -> Meaning<'a> {
    Meaning::Travels(Box::new(move |state| {
        change(state);
        true
    }))
}

fn names<'a>(words: String) -> Meaning<'a> {
    travels(move |state| state.set_names(Names::Written(words.as_str().into())))
}

/// Variables that are sets of flags: a SET changes those that it names, and leaves the others
/// (MySQL manual, "Switchable Optimizations").
const FLAGS: [&str; 3] = [
    "optimizer_switch",
    OPTIMIZER_TRACE,
    "optimizer_trace_features",
];

/// The name of the flags that this sets to a literal, if it does.
pub(crate) fn sets_flags<'a>(setting: &'a Setting<'_>) -> Option<&'a str> {
    let Setting::Variable(one) = setting else {
        return None;
    };
    (one.scope == Scope::Session
        && FLAGS.contains(&&*one.name)
        && matches!(one.value, Value::Literal(_)))
    .then_some(&one.name)
}

/// Returns flags after one more SET, in words that mean the same wherever they are said. These are
/// the flags that the session has named, and the server's own of all others. `None` where what was
/// there before is not written so.
fn flags_after(before: Option<&str>, literal: &str) -> Option<String> {
    let items = |literal: &str| -> Option<Vec<String>> {
        let inner = literal.strip_prefix('\'')?.strip_suffix('\'')?;
        Some(
            inner
                .split(',')
                .map(|item| item.trim().to_ascii_lowercase())
                .filter(|item| !item.is_empty())
                .collect(),
        )
    };
    let Some(said) = items(literal) else {
        // A number is all of them.
        return Some(literal.to_owned());
    };
    let is_default = |item: &String| item == "default";
    let mut all = match before.filter(|_| !said.iter().any(is_default)) {
        None => Vec::new(),
        Some(before) => items(before).filter(|before| before.first().is_some_and(is_default))?,
    };
    for item in said {
        let name = item
            .split('=')
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned();
        all.retain(|one| {
            one.split('=')
                .next()
                .is_none_or(|other| other.trim_end() != name)
        });
        all.push(item);
    }
    all.retain(|item| !is_default(item));
    all.insert(0, "default".to_owned());
    Some(format!("'{}'", all.join(",")))
}

fn flags<'a>(name: &'a str, literal: &'a str, before: &State) -> Meaning<'a> {
    if flags_after(before.variable(name), literal).is_none() {
        return Meaning::Ask(name);
    }
    Meaning::Travels(Box::new(move |state| {
        let words = flags_after(state.variable(name), literal);
        let fits =
            words.filter(|words| words.len() <= backend::value_len_max(name, words.as_bytes()));
        fits.map(|words| state.set(name, &words)).is_some()
    }))
}

fn session_variable<'a>(name: &'a str, value: &'a Value<'a>, before: &State) -> Meaning<'a> {
    if name == "autocommit" {
        let is = |text: &[u8], words: [&[u8]; 3]| {
            words.iter().any(|word| text.eq_ignore_ascii_case(word))
        };
        return Meaning::Autocommit(match value {
            Value::Literal(text) if is(text, [b"1", b"ON", b"TRUE"]) => Some(true),
            Value::Literal(text) if is(text, [b"0", b"OFF", b"FALSE"]) => Some(false),
            _ => None,
        });
    }
    // It is about the row of the connection's last INSERT.
    let kept = name == "sql_auto_is_null" && !is_off(value)
        || name == OPTIMIZER_TRACE && !traces_nothing(value);
    if BOUND.contains(&name) || kept {
        return Meaning::Keep(Hold::UnknownState);
    }
    let literal = match value {
        Value::Default => Some("DEFAULT"),
        // Whether double quotes make a string or a name, and a backslash escapes, depends on the
        // mode.
        Value::Literal([b'"', ..]) | Value::Expression(_) => None,
        Value::Literal(text)
            if text.contains(&b'\\') || text.len() > backend::value_len_max(name, text) =>
        {
            None
        }
        Value::Literal(text) => std::str::from_utf8(text)
            .ok()
            .filter(|text| text.is_ascii()),
    };
    match literal.map(|literal| (literal, characteristic(name, literal))) {
        None | Some((_, Some(Err(())))) => Meaning::Ask(name),
        Some((_, Some(Ok((key, words))))) if words.is_empty() => {
            travels(move |state| state.unset(key))
        }
        Some((_, Some(Ok((key, words))))) => travels(move |state| state.set(key, &words)),
        // Their default is the server's, not that of the login.
        Some(("DEFAULT", None)) if !CHARSET_VARIABLES.contains(&name) => {
            travels(move |state| state.unset(name))
        }
        Some((literal, None)) if FLAGS.contains(&name) => flags(name, literal, before),
        Some((literal, None)) => travels(move |state| state.set(name, literal)),
    }
}

fn is_off(value: &Value<'_>) -> bool {
    match value {
        Value::Literal(text) => {
            *text == b"0"
                || text.eq_ignore_ascii_case(b"OFF")
                || text.eq_ignore_ascii_case(b"FALSE")
        }
        Value::Default => true,
        Value::Expression(_) => false,
    }
}

fn traces_nothing(value: &Value<'_>) -> bool {
    match value {
        Value::Literal(text) => {
            let text = text.to_ascii_lowercase();
            let has = |words: &str| {
                text.windows(words.len())
                    .any(|part| part == words.as_bytes())
            };
            has("enabled=off") && !has("enabled=on") && !has("default")
        }
        Value::Default => true,
        Value::Expression(_) => false,
    }
}

fn user_variable<'a>(name: &'a str, value: &'a Value<'a>, before: &State) -> Meaning<'a> {
    if !name.is_ascii() {
        // Its bytes depend on the character set.
        return Meaning::Keep(Hold::UserVariable);
    }
    let Value::Literal(text) = value else {
        return Meaning::AskUser(name);
    };
    let Some(text) = std::str::from_utf8(text)
        .ok()
        .filter(|text| text.is_ascii())
    else {
        return Meaning::AskUser(name);
    };
    if text.contains('\\') {
        // It would mean something else, or end elsewhere, under another sql_mode.
        return Meaning::AskUser(name);
    }
    let first = text.bytes().next().unwrap_or(b' ');
    let names = match first {
        b'\'' => match before.names_of_literals() {
            Some(names) => Some(names.clone()),
            None => return Meaning::AskUser(name),
        },
        b'0'..=b'9' | b'+' | b'-' | b'.' => None,
        _ if ["NULL", "TRUE", "FALSE"]
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word)) =>
        {
            None
        }
        _ => return Meaning::AskUser(name),
    };
    if text.eq_ignore_ascii_case("NULL") {
        // Of the type that it has by then.
        return Meaning::Travels(Box::new(move |state| state.set_user_null(name)));
    }
    let value = UserValue::new(text, names);
    Meaning::Travels(Box::new(move |state| state.set_user(name, value.clone())))
}

/// A literal that no server refuses or warns of.
pub(crate) fn is_certain(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let number = !digits.is_empty() && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit);
    let word = ["NULL", "TRUE", "FALSE"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    number || word || text.first() == Some(&b'\'')
}

/// May this statement see user variables? Those that name one do; writes may run triggers, and
/// functions and procedures of the user's own may read any.
pub(crate) fn sees_user_variables(class: &Class<'_>) -> Sees {
    if class.reads.intersects(Reads::USER_VARIABLE | Reads::XPATH) || may_run_programs(class) {
        return Sees::Variables;
    }
    use CommandCounter as C;
    let reads_nothing = matches!(
        class.command,
        C::Begin
            | C::Commit
            | C::ReleaseSavepoint
            | C::Rollback
            | C::RollbackSavepoint
            | C::Savepoint
            | C::StartTransaction
    );
    if reads_nothing || class.use_db.is_some() {
        Sees::Nothing
    } else {
        Sees::InViews
    }
}

/// May it run triggers, procedures, functions of users, or statements that its text does not show?
pub(crate) fn may_run_programs(class: &Class<'_>) -> bool {
    use CommandCounter as C;
    class.multi
        || class.leaves.intersects(Leaves::UNKNOWN_STATE | Leaves::UNKNOWN_FUNCTION | Leaves::SQL_EXECUTE)
        // MariaDB's SET STATEMENT … FOR a statement.
        || class.sets && !class.leaves.intersects(Leaves::SET)
        || matches!(class.command, C::Insert | C::Replace | C::Update | C::Delete | C::Load | C::Call | C::Execute)
        || class.against == Some(sql::Against::Change)
}

/// The number of the last transaction: a variable of MariaDB that only it sets.
pub(crate) const LAST_GTID: &[u8] = b"last_gtid";

#[cfg(test)]
mod tests {
    use super::*;

    fn state_after(sql: &str) -> State {
        let before = State::new("", 45);
        let mut state = before.clone();
        for setting in &sql::set::parse_in(sql.as_bytes(), true).unwrap() {
            match meaning(setting, &before) {
                Meaning::Travels(change) => assert!(change(&mut state)),
                _ => state.set("?", sql),
            }
        }
        state
    }

    #[test]
    fn literals_travel() {
        let state =
            state_after("SET @A='x', @b=-1, sql_mode='ANSI', NAMES latin1, time_zone=DEFAULT");
        assert_eq!(state.variable("sql_mode"), Some("'ANSI'"));
        let flags = state_after(
            "SET optimizer_switch='MRR=off,index_merge=off', optimizer_switch='mrr=on', optimizer_trace='enabled=off'",
        );
        assert_eq!(
            flags.variable("optimizer_switch"),
            Some("'default,index_merge=off,mrr=on'")
        );
        assert_eq!(
            flags.variable("optimizer_trace"),
            Some("'default,enabled=off'")
        );
        assert_eq!(
            flags_after(Some("'default,mrr=on'"), "'default,icp=off'").as_deref(),
            Some("'default,icp=off'")
        );
        assert_eq!(
            flags_after(Some("'default,mrr=on'"), "'mrr=default'").as_deref(),
            Some("'default,mrr=default'")
        );
        assert_eq!(flags_after(Some("'mrr=on,icp=off'"), "'mrr=off'"), None);
        assert_eq!(
            (
                flags_after(None, "3").as_deref(),
                flags_after(Some("3"), "'mrr=off'")
            ),
            (Some("3"), None)
        );
        let user: Vec<_> = state
            .user_variables()
            .map(|(n, v)| (n, &*v.literal, v.names.clone()))
            .collect();
        // A string is read in the character set before its statement.
        assert_eq!(
            user,
            [("a", "'x'", Some(Names::Collation(45))), ("b", "-1", None)]
        );
    }

    #[test]
    fn what_is_set_to_null_keeps_its_type() {
        let state = state_after("SET @a=7, @b='x', @A=NULL, @b=null, @c=NULL");
        let user: Vec<_> = state
            .user_variables()
            .map(|(n, v)| (n, &*v.literal, v.names.is_some(), v.null))
            .collect();
        assert_eq!(
            user,
            [
                ("a", "0", false, true),
                ("b", "''", true, true),
                ("c", "NULL", false, false)
            ]
        );
    }

    #[test]
    fn what_is_no_literal_is_asked_or_stays() {
        let asked = |sql: &str| match meaning(
            &sql::set::parse_in(sql.as_bytes(), true).unwrap()[0],
            &State::new("", 45),
        ) {
            Meaning::Nothing => "nothing".to_owned(),
            Meaning::Autocommit(Some(on)) => format!("autocommit {on}"),
            Meaning::Autocommit(None) => "autocommit is the server's to tell".to_owned(),
            Meaning::Keep(hold) => format!("{hold:?}"),
            Meaning::Travels(_) => "travels".to_owned(),
            Meaning::Ask(name) | Meaning::AskUser(name) => format!("ask {name}"),
        };
        let zeros = format!("SET sort_buffer_size = {}1", "0".repeat(100));
        let twice = format!("SET sql_mode = '{}'", "ANSI,".repeat(1_000));
        let names = format!(
            "SET session_track_system_variables = '{}'",
            "time_zone,".repeat(30)
        );
        assert_eq!(
            [&zeros, &twice, &names].map(|sql| asked(sql)),
            [
                "sort_buffer_size",
                "sql_mode",
                "session_track_system_variables"
            ]
            .map(|name| format!("ask {name}"))
        );
        for (sql, wanted) in [
            ("SET sql_mode=CONCAT(@@sql_mode, ',ANSI')", "ask sql_mode"),
            ("SET sql_mode=\"ANSI\"", "ask sql_mode"),
            ("SET SESSION x=@@global.x", "ask x"),
            (
                "SET transaction_isolation=@old",
                "ask transaction_isolation",
            ),
            ("SET transaction_isolation='SERIALIZABLE'", "travels"),
            ("SET @a=@a+1", "ask a"),
            ("SET @a=_utf8mb4'x'", "ask a"),
            ("SET @a='x'", "travels"),
            (r"SET @a='x\'y'", "ask a"),
            (r"SET SESSION init_connect='x\'y'", "ask init_connect"),
            ("SET GLOBAL x=1", "nothing"),
            ("SET autocommit=ON", "autocommit true"),
            ("SET TRANSACTION READ ONLY", "NextTransaction"),
            ("SET insert_id=5", "UnknownState"),
            ("SET sql_auto_is_null=1", "UnknownState"),
            ("SET gtid_next='AUTOMATIC'", "UnknownState"),
            ("SET @@SESSION.gtid_seq_no=7", "UnknownState"),
            ("SET optimizer_trace='enabled=on'", "UnknownState"),
            ("SET optimizer_trace=1", "UnknownState"),
            ("SET optimizer_trace=@old", "UnknownState"),
            ("SET optimizer_trace='enabled=off,one_line=off'", "travels"),
            ("SET optimizer_trace=DEFAULT", "travels"),
            ("SET timestamp=1000000000", "travels"),
            ("SET SQL_AUTO_IS_NULL = 0", "travels"),
            ("SET SESSION sql_auto_is_null=off", "travels"),
            ("SET ROLE x", "travels"),
            ("SET ROLE ALL EXCEPT `a`@'%', b", "travels"),
            ("SET ROLE 'a\\'b'", "UnknownState"),
            ("SET ROLE `\u{e9}`", "UnknownState"),
        ] {
            assert_eq!(asked(sql), wanted, "{sql}");
        }
    }

    #[test]
    fn a_default_is_known_where_it_is_set() {
        let of = |sql: &str| {
            let settings = sql::set::parse_in(sql.as_bytes(), true).unwrap();
            put_back(&settings[0]).map(str::to_owned)
        };
        assert_eq!(of("SET SQL_mode = DEFAULT").as_deref(), Some("sql_mode"));
        assert_eq!(
            of("SET SESSION transaction_isolation=default").as_deref(),
            Some(backend::ISOLATION)
        );
        for sql in [
            "SET GLOBAL sql_mode=DEFAULT",
            "SET sql_mode=''",
            "SET NAMES DEFAULT",
            "SET gtid_next=DEFAULT",
            "SET @a=1",
        ] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }

    #[test]
    fn writes_may_run_triggers_that_read_user_variables() {
        let sees = |sql: &str| sees_user_variables(&sql::class(sql.as_bytes()));
        for sql in [
            "INSERT INTO t VALUES (1)",
            "SELECT @a",
            "SELECT my_function(1)",
            "CALL p()",
            "SET STATEMENT a=1 FOR INSERT INTO t VALUES (1)",
            "ANALYZE INSERT INTO t VALUES (1)",
            "ANALYZE FORMAT=JSON UPDATE t SET a=1",
            "SELECT EXTRACTVALUE(a, '//b[$@i]') FROM t",
        ] {
            assert_eq!(sees(sql), Sees::Variables, "{sql}");
        }
        for sql in [
            "SELECT 1 FROM t",
            "SELECT a FROM v FOR UPDATE",
            "WITH x AS (SELECT 1) SELECT a FROM v, x FOR SHARE",
            "DO (SELECT a FROM v)",
            "CREATE TABLE t AS SELECT a FROM v",
            "SET SESSION sort_buffer_size = (SELECT a FROM v)",
            "EXPLAIN SELECT a FROM v",
        ] {
            assert_ne!(sees(sql), Sees::Nothing, "{sql}");
        }
        for sql in ["USE conf", "BEGIN", "COMMIT"] {
            assert_eq!(sees(sql), Sees::Nothing, "{sql}");
        }
    }
}
