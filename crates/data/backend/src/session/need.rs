//! From the state that a connection has to the state that a session wants: as few commands as can
//! be.

use crate::session::state::{Collations, Names, State};
use crate::session::variables::{
    ACCESS, BIG_SELECTS, CHARSET_VARIABLES, DEFAULT, ISOLATION, JOIN_MAX, METADATA, ROLE, TOLD,
};
use sql::set::{Assignment, Scope, Setting, Value};
use wire::caps::{self, Caps};

/// Need of a statement: what must be done before it runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing.
    Nothing,
    /// Statements, in order, and then a schema to change to.
    Steps {
        /// SET statements.
        sets: Vec<String>,
        /// Whether COM_INIT_DB follows.
        schema: bool,
    },
    /// COM_RESET_CONNECTION, then ask again.
    Reset,
    /// Another connection: what is needed cannot be done on this one.
    Another,
}

/// Variables that `init_connect` has set: of each of [`PLAIN`] a bit, and one for those of the
/// character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun(u64);

/// Variables that nothing sets but a SET by this name.
const PLAIN: [&str; 27] = [
    "cte_max_recursion_depth",
    "default_week_format",
    "div_precision_increment",
    "explicit_defaults_for_timestamp",
    "foreign_key_checks",
    "group_concat_max_len",
    "innodb_lock_wait_timeout",
    "innodb_strict_mode",
    "interactive_timeout",
    "join_buffer_size",
    "lc_time_names",
    "lock_wait_timeout",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_sort_length",
    "max_statement_time",
    "net_read_timeout",
    "net_write_timeout",
    "optimizer_switch",
    "sort_buffer_size",
    "sql_mode",
    "sql_notes",
    "sql_safe_updates",
    "time_zone",
    "unique_checks",
    "wait_timeout",
];

impl Begun {
    pub(crate) const WITH_NOTHING: Self = Self(0);
    /// Whatever it was.
    pub(crate) const WITH_ANYTHING: Self = Self(u64::MAX);
    const CHARSET: u64 = 1 << 63;

    /// With this statement, too.
    pub(crate) fn and(self, statement: &[u8]) -> Self {
        let Ok(settings) = sql::set::parse(statement) else {
            return Self::WITH_ANYTHING;
        };
        let all = settings
            .iter()
            .try_fold(self.0, |all, setting| Some(all | Self::bit(setting)?));
        all.map_or(Self::WITH_ANYTHING, Self)
    }

    fn bit(setting: &Setting<'_>) -> Option<u64> {
        match setting {
            // An expression may call what sets something else.
            Setting::Variable(Assignment {
                value: Value::Expression(_),
                ..
            }) => None,
            Setting::Variable(Assignment {
                scope: Scope::User, ..
            }) => Some(0),
            Setting::Variable(Assignment {
                scope: Scope::Session,
                name,
                ..
            }) => PLAIN
                .iter()
                .position(|plain| plain == name)
                .map(|at| 1 << at),
            Setting::Names { .. } | Setting::CharacterSet(_) => Some(Self::CHARSET),
            _ => None,
        }
    }

    fn sets(self, name: &str) -> bool {
        let bit = match PLAIN.iter().position(|plain| *plain == name) {
            Some(at) => 1 << at,
            None if CHARSET_VARIABLES.contains(&name) => Self::CHARSET,
            None => 1 << PLAIN.len(),
        };
        self.0 & bit != 0
    }
}

/// Properties of one connection, whatever is set on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways {
    /// Collations that are known there: what can be said of character sets.
    pub(crate) knows: Collations,
    /// Settings that init_connect has made: only a reset brings them back.
    pub(crate) begun: Begun,
    /// The character set that a reset leaves, if that is known.
    pub(crate) after_reset: Option<u16>,
    /// Capabilities of its login that have set a variable there: its default is another then, which
    /// only a reset brings back.
    pub(crate) set_by_login: Caps,
    /// Its login has agreed that definitions of columns may be left out. Another always has them,
    /// and cannot be told.
    pub(crate) describes_on_demand: bool,
    /// Its server tells all, whatever the session has asked for, and goes on doing so.
    pub(crate) tells_all: bool,
    /// Its server was asked to tell GTIDs, and does so for sessions that say nothing of it.
    pub(crate) asked_for_gtids: bool,
}

impl Ways {
    /// Of a connection on which nothing was said yet. `asked`: capabilities of its client; `agreed`:
    /// those that its server has as well.
    pub(crate) fn of_login(knows: Collations, asked: Caps, agreed: Caps) -> Self {
        Self {
            knows,
            begun: Begun::WITH_NOTHING,
            after_reset: None,
            set_by_login: asked & (caps::IGNORE_SPACE | caps::INTERACTIVE),
            describes_on_demand: caps::has(agreed, caps::OPTIONAL_METADATA),
            tells_all: false,
            asked_for_gtids: false,
        }
    }

    /// As [`begins_otherwise`], on this connection.
    pub(crate) fn begins_otherwise(self, name: &str) -> bool {
        begins_otherwise(name, self.begun.sets(name), self.set_by_login)
    }
}

impl Ways {
    /// The server's name of a variable by its name in a state.
    pub(crate) fn variable(self, name: &str) -> &str {
        // MySQL 8.0 has given up the names that it had before, which MariaDB still has.
        let old = self.knows != Collations::Mysql;
        match name {
            ISOLATION if old => "tx_isolation",
            ISOLATION => "transaction_isolation",
            ACCESS if old => "tx_read_only",
            ACCESS => "transaction_read_only",
            other => other,
        }
    }
}

/// Whether `=DEFAULT` is not what a connection begins with: one that began with init_connect, or
/// whose login had these capabilities.
#[must_use]
pub fn begins_otherwise(name: &str, begun: bool, login: Caps) -> bool {
    let by = match name {
        "sql_mode" => caps::IGNORE_SPACE,
        "wait_timeout" => caps::INTERACTIVE,
        _ => return begun,
    };
    begun || login & by != 0
}

/// Remains of somebody else that there may be on a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Foreign {
    /// The server remembers a statement, and the session will ask for what it remembers.
    pub(crate) statement: bool,
    /// Its user variables, if there are any.
    pub(crate) variables: bool,
    /// User variables that nobody knows of.
    pub(crate) strange: bool,
}

/// Returns what it takes to get from any state to the one that is wanted. `user`: with the
/// session's user variables.
pub(crate) fn whole_need(
    have: &State,
    want: &State,
    user: bool,
    foreign: Foreign,
    ways: Ways,
) -> Need {
    // Set to NULL, a variable of somebody else keeps its type; after a reset it never was.
    let others = foreign.statement
        || foreign.strange
        || foreign.variables && has_others_variables(have, want);
    let need = if others {
        Need::Reset
    } else {
        need(have, want, user, ways)
    };
    match need {
        Need::Reset if self::need(&reset(have, ways), want, user, ways) == Need::Another => {
            Need::Another
        }
        other => other,
    }
}

/// Returns what it takes to get from one state to another, but for what [`whole_need`] adds.
fn need(have: &State, want: &State, user: bool, ways: Ways) -> Need {
    let schema = have.schema != want.schema;
    if schema && want.schema.is_empty() {
        return Need::Another;
    }
    let user = user && !have.same_user_variables(want);
    let mut names = have.names != want.names;
    if !schema && !names && !user && have.autocommit == want.autocommit && have.same_variables(want)
    {
        return Need::Nothing;
    }
    let theirs = if user {
        user_variables(have, want)
    } else {
        UserSets::default()
    };
    names |= !theirs.foreign.is_empty();
    let mut list: Vec<String> = Vec::new();
    let mut alone: Vec<String> = Vec::new();
    if names {
        match want.names.words_for(ways.knows) {
            Some(words) => list.push(words),
            None => return Need::Another,
        }
    }
    if have.autocommit != want.autocommit {
        list.push(format!("autocommit={}", u8::from(want.autocommit)));
    }
    let known = |name: &str| match name {
        METADATA => ways.describes_on_demand,
        _ => !(ways.tells_all && TOLD.contains(&name)),
    };
    for (name, _) in have.variables().filter(|(name, _)| known(name)) {
        if want.variable(name).is_none() {
            if name == ROLE {
                #[cfg(debug_assertions)]
                if crate::planted::FORGET_ROLE.get() {
                    continue;
                }
                return Need::Another;
            }
            if ways.begins_otherwise(name) {
                return Need::Reset;
            }
            // SET NAMES above has already undone it.
            if !(names && CHARSET_VARIABLES.contains(&name)) {
                if CHARSET_VARIABLES.contains(&name) {
                    match want.names.words_for(ways.knows) {
                        Some(words) => list.insert(0, words),
                        None => return Need::Another,
                    }
                } else {
                    list.push(format!("@@SESSION.{}=DEFAULT", ways.variable(name)));
                }
            }
        }
    }
    let renamed = list
        .first()
        .is_some_and(|first| first.starts_with("NAMES") || first.starts_with("CHAR"));
    let undone = |name: &str| have.variable(name).is_some() && want.variable(name).is_none();
    let mut role = None;
    for (name, value) in want.variables().filter(|(name, _)| known(name)) {
        let again = renamed && CHARSET_VARIABLES.contains(&name)
            || name == JOIN_MAX && undone(BIG_SELECTS)
            // The limit stands before it, by the alphabet, and so does what is undone.
            || name == BIG_SELECTS && have.variable(JOIN_MAX) != want.variable(JOIN_MAX);
        if have.variable(name) != Some(value) || again {
            if name == ROLE {
                role = Some(format!("SET ROLE {value}"));
            } else if (name == ISOLATION || name == ACCESS) && value != DEFAULT {
                alone.push(format!("SET SESSION TRANSACTION {value}"));
            } else {
                list.push(format!("@@SESSION.{}={value}", ways.variable(name)));
            }
        }
    }
    // What a literal means is decided before its statement begins.
    let apart = list.iter().any(|set| {
        ["NAMES", "CHAR", "@@SESSION.c", "@@SESSION.sql_mode"]
            .iter()
            .any(|p| set.starts_with(p))
    });
    if !theirs.own.is_empty() && apart {
        alone.push(format!("SET {}", theirs.own.join(", ")));
    } else {
        list.extend(theirs.own);
    }
    if !list.is_empty() {
        alone.insert(0, format!("SET {}", list.join(", ")));
    }
    alone.splice(0..0, theirs.foreign);
    // What follows may need what the role may do.
    alone.splice(0..0, role);
    Need::Steps {
        sets: alone,
        schema,
    }
}

/// Assignments and statements that bring user variables about.
#[derive(Default)]
struct UserSets {
    /// Whole statements for strings that were written in another character set than the session has
    /// now; they leave that set.
    foreign: Vec<String>,
    /// Assignments.
    own: Vec<String>,
}

/// Does the connection have user variables that the session has not, or not with any type? No SET
/// takes a type away.
pub(crate) fn has_others_variables(have: &State, want: &State) -> bool {
    let Some(has) = &have.user else { return false };
    has.iter().any(
        |(name, value)| match want.user.as_ref().and_then(|wants| wants.get(name)) {
            Some(wanted) => wanted.is_untyped() && !value.is_untyped(),
            None => true,
        },
    )
}

fn user_variables(have: &State, want: &State) -> UserSets {
    let mut sets = UserSets::default();
    let all = |state: &State| state.user.clone().unwrap_or_default();
    let (has, wants) = (all(have), all(want));
    for name in has.keys().filter(|name| !wants.contains_key(*name)) {
        sets.own.push(format!("@{}=NULL", sql::literal::name(name)));
    }
    for (name, value) in wants
        .iter()
        .filter(|(name, value)| has.get(*name) != Some(*value))
    {
        let named = sql::literal::name(name);
        let null = if value.null {
            format!(", @{named}=NULL")
        } else {
            String::new()
        };
        let assignment = format!("@{named}={}{null}", value.literal);
        // Where a part of the session's own was set by itself, it is not that of the literal any
        // more.
        let others = |names: &&Names| **names != want.names || want.names_of_literals().is_none();
        match value.names.as_ref().filter(others).and_then(Names::words) {
            Some(words) => sets
                .foreign
                .extend([format!("SET {words}"), format!("SET {assignment}")]),
            None => sets.own.push(assignment),
        }
    }
    sets
}

/// Returns the state that a connection has after COM_RESET_CONNECTION.
pub(crate) fn reset(have: &State, ways: Ways) -> State {
    let mut state = State {
        names: ways.after_reset.map_or(Names::Unknown, Names::Collation),
        ..State::new(&have.schema, 0)
    };
    if let Some(role) = have.variable(ROLE) {
        state.set(ROLE, role);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: Ways = Ways {
        knows: Collations::Mysql,
        begun: Begun::WITH_NOTHING,
        after_reset: None,
        set_by_login: 0,
        describes_on_demand: false,
        tells_all: false,
        asked_for_gtids: false,
    };
    #[test]
    fn what_init_connect_may_set_alone_has_no_other_name() {
        for name in PLAIN {
            assert_eq!(crate::session::variables::other_name(name), None, "{name}");
        }
    }

    const MARIADB: Ways = Ways {
        knows: Collations::Mariadb,
        ..MYSQL
    };
    const IDLE: Foreign = Foreign {
        statement: false,
        variables: true,
        strange: false,
    };
    const HELD: Foreign = Foreign {
        variables: false,
        ..IDLE
    };

    fn steps(have: &State, want: &State) -> String {
        steps_on(MARIADB, have, want)
    }

    fn steps_on(ways: Ways, have: &State, want: &State) -> String {
        match need(have, want, true, ways) {
            Need::Steps { sets, schema } => {
                let mut all = sets;
                if schema {
                    all.push(format!("USE {}", want.schema));
                }
                all.join("; ")
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_same_state_needs_nothing() {
        let a = State::new("test", 45);
        assert_eq!(steps(&a, &a.clone()), "Nothing");
    }

    #[test]
    fn what_differs_is_one_set_and_a_schema() {
        let have = State::new("a", 45);
        let mut want = State::new("b", 8);
        want.autocommit = false;
        want.set("sql_mode", "'ANSI'");
        assert_eq!(
            steps(&have, &want),
            "SET NAMES latin1 COLLATE latin1_swedish_ci, autocommit=0, @@SESSION.sql_mode='ANSI'; USE b"
        );
    }

    #[test]
    fn what_another_client_had_set_goes_back_to_the_default() {
        let mut have = State::new("a", 45);
        have.set("sql_mode", "'ANSI'");
        have.set("time_zone", "'+01:00'");
        let mut want = State::new("a", 45);
        want.set("time_zone", "'+02:00'");
        assert_eq!(
            steps(&have, &want),
            "SET @@SESSION.sql_mode=DEFAULT, @@SESSION.time_zone='+02:00'"
        );
    }

    #[test]
    fn a_limit_of_joins_is_said_again_where_what_it_turns_off_is_put_back() {
        let limited = |extra: &[(&str, &str)]| {
            let mut state = State::new("a", 45);
            extra
                .iter()
                .for_each(|(name, value)| state.set(name, value));
            state
        };
        let (allowed, limit) = (("sql_big_selects", "1"), ("max_join_size", "1000"));
        assert_eq!(
            steps(&limited(&[limit, allowed]), &limited(&[limit])),
            "SET @@SESSION.sql_big_selects=DEFAULT, @@SESSION.max_join_size=1000"
        );
        // The limit that is set later turns it off.
        assert_eq!(
            steps(&limited(&[]), &limited(&[allowed, limit])),
            "SET @@SESSION.max_join_size=1000"
        );
        // So it is with one that is put in the place of another, or taken away, which turns it on.
        let (wider, none) = (("max_join_size", "2000"), ("sql_big_selects", "0"));
        assert_eq!(
            steps(&limited(&[limit, allowed]), &limited(&[wider, allowed])),
            "SET @@SESSION.max_join_size=2000, @@SESSION.sql_big_selects=1"
        );
        assert_eq!(
            steps(&limited(&[limit, none]), &limited(&[none])),
            "SET @@SESSION.max_join_size=DEFAULT, @@SESSION.sql_big_selects=0"
        );
        // One variable by two names.
        let (one, other) = (
            ("default_storage_engine", "InnoDB"),
            ("storage_engine", "Aria"),
        );
        assert_eq!(
            steps(&limited(&[]), &limited(&[one, other])),
            "SET @@SESSION.storage_engine=Aria"
        );
    }

    #[test]
    fn definitions_are_left_out_where_that_can_be_said() {
        let plain = State::new("a", 45);
        let mut bare = plain.clone();
        bare.set(METADATA, "NONE");
        let able = Ways {
            describes_on_demand: true,
            ..MYSQL
        };
        assert_eq!(
            steps_on(able, &plain, &bare),
            "SET @@SESSION.resultset_metadata=NONE"
        );
        assert_eq!(
            steps_on(able, &bare, &plain),
            "SET @@SESSION.resultset_metadata=DEFAULT"
        );
        for ways in [MYSQL, MARIADB] {
            assert_eq!(
                (steps_on(ways, &plain, &bare), steps_on(ways, &bare, &plain)),
                (String::new(), String::new())
            );
        }
    }

    #[test]
    fn what_a_session_is_to_be_told_is_not_set_where_all_is_told() {
        let plain = State::new("a", 45);
        let mut one = plain.clone();
        one.set("session_track_schema", "1");
        one.set("session_track_gtids", "OWN_GTID");
        assert_eq!(
            steps(&plain, &one),
            "SET @@SESSION.session_track_gtids=OWN_GTID, @@SESSION.session_track_schema=1"
        );
        let all = Ways {
            tells_all: true,
            begun: Begun::WITH_ANYTHING,
            ..MYSQL
        };
        assert_eq!(
            steps_on(all, &plain, &one),
            "SET @@SESSION.session_track_gtids=OWN_GTID"
        );
        one.unset("session_track_gtids");
        assert_eq!(
            (steps_on(all, &plain, &one), steps_on(all, &one, &plain)),
            (String::new(), String::new())
        );
        assert_eq!(
            steps(&one, &plain),
            "SET @@SESSION.session_track_schema=DEFAULT"
        );
    }

    /// Neither COM_RESET_CONNECTION nor MariaDB's COM_CHANGE_USER takes a role away.
    #[test]
    fn a_role_stays_on_its_connection() {
        let plain = State::new("a", 45);
        let mut reader = State::new("a", 45);
        reader.set(ROLE, "reader");
        reader.set("sql_mode", "'ANSI'");
        assert_eq!(
            steps(&plain, &reader),
            "SET ROLE reader; SET @@SESSION.sql_mode='ANSI'"
        );
        assert_eq!(steps(&reader, &plain), "Another");
        assert_eq!(steps(&reset(&reader, MYSQL), &plain), "Another");
        let mut none = plain.clone();
        none.set(ROLE, "NONE");
        assert_eq!(
            steps(&reader, &none),
            "SET ROLE NONE; SET @@SESSION.sql_mode=DEFAULT"
        );
    }

    #[test]
    fn a_session_without_schema_never_gets_a_connection_with_one() {
        assert_eq!(steps(&State::new("a", 45), &State::new("", 45)), "Another");
    }

    #[test]
    fn character_sets_set_one_by_one_are_set_again_after_names() {
        let have = State::new("a", 45);
        let mut want = State::new("a", 8);
        want.set("character_set_results", "NULL");
        assert_eq!(
            steps(&have, &want),
            "SET NAMES latin1 COLLATE latin1_swedish_ci, @@SESSION.character_set_results=NULL"
        );
        assert_eq!(
            steps(&want, &State::new("a", 8)),
            "SET NAMES latin1 COLLATE latin1_swedish_ci"
        );
    }

    /// MariaDB takes a login with MySQL's utf8mb4_0900_ai_ci (255) and uses its own default; SET
    /// NAMES it refuses.
    #[test]
    fn a_collation_of_one_vendor_gets_a_connection_of_its_own() {
        assert_eq!(
            steps(&State::new("a", 45), &State::new("a", 255)),
            "Another"
        );
        assert_eq!(
            steps(&State::new("a", 255), &State::new("a", 255)),
            "Nothing"
        );
        assert_eq!(
            steps(&State::new("a", 255), &State::new("a", 45)),
            "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"
        );
        // Where it is known, it can be said.
        let said = steps_on(MYSQL, &State::new("a", 45), &State::new("a", 255));
        assert_eq!(said, "SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci");
    }

    #[test]
    fn a_connection_that_could_not_be_put_right_after_a_reset_is_not_reset() {
        let begun = |ways| Ways {
            begun: Begun::WITH_ANYTHING,
            ..ways
        };
        let mut have = State::new("a", 255);
        have.set("sql_mode", "'ANSI'");
        let want = State::new("b", 255);
        assert_eq!(
            whole_need(&have, &want, false, IDLE, begun(MARIADB)),
            Need::Another
        );
        assert_eq!(
            whole_need(&have, &want, false, IDLE, begun(MYSQL)),
            Need::Reset
        );
        // MariaDB keeps the character set of the login, whatever it made of it.
        let kept = Ways {
            after_reset: Some(255),
            ..begun(MARIADB)
        };
        assert_eq!(whole_need(&have, &want, false, IDLE, kept), Need::Reset);
        have.unset("sql_mode");
        let remembers = Foreign {
            statement: true,
            ..IDLE
        };
        assert_eq!(
            whole_need(&have, &have.clone(), false, remembers, MARIADB),
            Need::Another
        );
        assert_eq!(
            whole_need(&have, &have.clone(), false, remembers, MYSQL),
            Need::Reset
        );
        have.set_user("x", written("1", None));
        assert_eq!(
            whole_need(&have, &State::new("a", 255), true, IDLE, MARIADB),
            Need::Another
        );
        assert_eq!(
            whole_need(&have, &State::new("a", 255), false, HELD, MARIADB),
            Need::Nothing
        );
    }

    #[test]
    fn where_init_connect_has_set_something_a_default_is_found_by_a_reset() {
        let mut have = State::new("a", 45);
        have.set("sql_mode", "''");
        assert_eq!(
            steps_on(
                Ways {
                    begun: Begun::WITH_ANYTHING,
                    ..MYSQL
                },
                &have,
                &State::new("a", 45)
            ),
            "Reset"
        );
        assert_eq!(
            steps_on(
                Ways {
                    set_by_login: caps::IGNORE_SPACE,
                    ..MYSQL
                },
                &have,
                &State::new("a", 45)
            ),
            "Reset"
        );
        assert_ne!(
            steps_on(
                Ways {
                    set_by_login: caps::INTERACTIVE,
                    ..MYSQL
                },
                &have,
                &State::new("a", 45)
            ),
            "Reset"
        );
        assert_eq!(
            steps_on(MYSQL, &have, &State::new("a", 45)),
            "SET @@SESSION.sql_mode=DEFAULT"
        );
    }

    #[test]
    fn what_init_connect_does_not_set_has_its_default() {
        let begun = |text: &str| {
            sql::words::statements(text.as_bytes()).fold(Begun::WITH_NOTHING, |begun, at| {
                begun.and(&text.as_bytes()[at])
            })
        };
        let undone = |text: &str, name: &str| {
            let mut have = State::new("a", 45);
            have.set(name, "1");
            steps_on(
                Ways {
                    begun: begun(text),
                    ..MYSQL
                },
                &have,
                &State::new("a", 45),
            )
        };
        for (text, kept) in [
            (
                "SET time_zone = '+01:00', @@SESSION.wait_timeout = 60",
                &["time_zone", "wait_timeout"][..],
            ),
            (
                "SET sql_mode = 'ANSI'; SET @x = 1; set names utf8mb4",
                &["sql_mode"],
            ),
            (
                "/* ours */ SET SESSION innodb_lock_wait_timeout = DEFAULT;",
                &["innodb_lock_wait_timeout"],
            ),
        ] {
            for name in PLAIN
                .iter()
                .copied()
                .chain(["sql_auto_is_null", "tx_priority"])
            {
                let wanted = if kept.contains(&name) {
                    "Reset".to_owned()
                } else {
                    format!("SET @@SESSION.{name}=DEFAULT")
                };
                assert_eq!(undone(text, name), wanted, "{text}");
            }
        }
        // Names that have others, what an expression calls, what nobody reads.
        for text in [
            "SET storage_engine = 'InnoDB'",
            "SET tx_isolation = 'SERIALIZABLE'",
            "SET TRANSACTION READ ONLY",
            "SET time_zone = (SELECT f())",
            "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')",
            "SET @x = f()",
            "SET GLOBAL time_zone = '+01:00'",
            "SET ROLE ALL",
            "CALL begins()",
            "SET time_zone = '+01:00'; DO f()",
            "SET time_zone = '\\0'",
            "SET /*!99999 wait_timeout = 1, */ time_zone = '+01:00'",
        ] {
            assert_eq!(
                [undone(text, "wait_timeout"), undone(text, "tx_priority")],
                ["Reset", "Reset"],
                "{text}"
            );
        }
        // The character set that the session has is said anyway, and may bring these back.
        assert_eq!(
            undone("SET CHARACTER SET latin1", "character_set_results"),
            "Reset"
        );
        assert_ne!(
            undone("SET time_zone = SYSTEM", "character_set_results"),
            "Reset"
        );
    }

    fn written(literal: &str, names: Option<Names>) -> crate::UserValue {
        crate::UserValue::new(literal, names)
    }

    #[test]
    fn user_variables_are_brought_only_when_they_are_asked_for() {
        let mut have = State::new("a", 45);
        have.set_user("x", written("1", None));
        have.set_user("y", written("2", None));
        let mut want = State::new("a", 45);
        want.set_user("y", written("2", None));
        want.set_user("z", written("'it'", Some(Names::Collation(45))));
        assert_eq!(steps(&have, &want), "SET @`x`=NULL, @`z`='it'");
        assert_eq!(need(&have, &want, false, MARIADB), Need::Nothing);
        assert_eq!(whole_need(&have, &want, true, IDLE, MARIADB), Need::Reset);
        assert_eq!(
            whole_need(&have, &want, false, HELD, MARIADB),
            Need::Nothing
        );
    }

    /// A session may name such variables later, when it has kept the connection by then.
    #[test]
    fn variables_of_others_are_taken_away_for_a_statement_that_sees_none() {
        let (mut have, want) = (State::new("a", 45), State::new("a", 45));
        let strange = Foreign {
            strange: true,
            ..IDLE
        };
        assert_eq!(
            whole_need(&have, &want, false, IDLE, MARIADB),
            Need::Nothing
        );
        assert_eq!(
            whole_need(&have, &want, false, strange, MARIADB),
            Need::Reset
        );
        have.set_user("x", written("1", None));
        assert_eq!(whole_need(&have, &want, false, IDLE, MARIADB), Need::Reset);
        // The same variable with another value is not: it is set when it is named.
        let mut own = want.clone();
        own.set_user("x", written("2", None));
        assert_eq!(whole_need(&have, &own, false, IDLE, MARIADB), Need::Nothing);
    }

    #[test]
    fn a_type_is_brought_and_taken_away() {
        let mut have = State::new("a", 45);
        have.set_user("x", written("1.5", None));
        let mut want = State::new("a", 45);
        want.set_user("x", written("18446744073709551615", None));
        want.set_user_null("x");
        assert_eq!(
            steps(&have, &want),
            "SET @`x`=CAST(0 AS UNSIGNED), @`x`=NULL"
        );
        assert_eq!(
            whole_need(&have, &want, false, IDLE, MARIADB),
            Need::Nothing
        );
        // Where it had a type before, no NULL is without one.
        let mut untyped = State::new("a", 45);
        untyped.set_user_null("x");
        assert_eq!(
            whole_need(&have, &untyped, false, IDLE, MARIADB),
            Need::Reset
        );
        assert_eq!(
            whole_need(&untyped, &untyped, true, IDLE, MARIADB),
            Need::Nothing
        );
        assert_eq!(steps(&State::new("a", 45), &untyped), "SET @`x`=NULL");
    }

    #[test]
    fn a_string_is_written_in_the_character_set_that_it_was_written_in() {
        let have = State::new("a", 45);
        let mut want = State::new("a", 45);
        want.set_user("x", written("'it'", Some(Names::Collation(8))));
        want.set_user("y", written("'is'", Some(Names::Collation(45))));
        assert_eq!(
            steps(&have, &want),
            "SET NAMES latin1 COLLATE latin1_swedish_ci; SET @`x`='it'; SET NAMES utf8mb4 COLLATE utf8mb4_general_ci; SET @`y`='is'"
        );
    }

    #[test]
    fn a_string_that_was_written_before_a_part_of_the_character_set_was_set_keeps_its_collation() {
        let have = State::new("a", 45);
        let mut want = State::new("a", 45);
        want.set_user("x", written("'it'", Some(Names::Collation(45))));
        want.set("collation_connection", "'utf8mb4_bin'");
        assert_eq!(
            steps(&have, &want),
            "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci; SET @`x`='it'; \
             SET NAMES utf8mb4 COLLATE utf8mb4_general_ci, @@SESSION.collation_connection='utf8mb4_bin'"
        );
    }

    #[test]
    fn a_mode_is_there_before_a_literal_is_read() {
        let have = State::new("a", 45);
        let mut want = State::new("a", 45);
        want.set("sql_mode", "''");
        want.set_user("x", written("1", None));
        assert_eq!(steps(&have, &want), "SET @@SESSION.sql_mode=''; SET @`x`=1");
    }

    #[test]
    fn an_isolation_level_is_undone_by_the_name_that_the_server_has_for_it() {
        let (plain, mut have) = (State::new("a", 45), State::new("a", 45));
        have.set(ISOLATION, "ISOLATION LEVEL SERIALIZABLE");
        have.set(ACCESS, "READ ONLY");
        assert_eq!(
            steps_on(MARIADB, &have, &plain),
            "SET @@SESSION.tx_read_only=DEFAULT, @@SESSION.tx_isolation=DEFAULT"
        );
        assert_eq!(
            steps_on(MYSQL, &have, &plain),
            "SET @@SESSION.transaction_read_only=DEFAULT, @@SESSION.transaction_isolation=DEFAULT"
        );
        have.unset(ACCESS);
        assert_eq!(
            steps(&plain, &have),
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"
        );
    }

    /// Where init_connect or the login set it, `SET x=DEFAULT` is no return to where the connection
    /// began.
    #[test]
    fn a_default_that_a_connection_did_not_begin_with_travels() {
        let plain = State::new("a", 45);
        let begun = Ways {
            begun: Begun::WITH_ANYTHING,
            ..MYSQL
        };
        for (name, set) in [
            ("sql_mode", "sql_mode"),
            (ISOLATION, "transaction_isolation"),
        ] {
            let mut have = plain.clone();
            have.set(name, DEFAULT);
            assert_eq!(steps_on(begun, &have, &plain), "Reset");
            assert_eq!(
                steps_on(begun, &plain, &have),
                format!("SET @@SESSION.{set}=DEFAULT")
            );
            assert_eq!(steps_on(begun, &have, &have.clone()), "Nothing");
        }
    }

    #[test]
    fn after_a_reset_the_character_set_is_said_anew() {
        let mut have = State::new("a", 45);
        have.set("sql_mode", "''");
        assert_eq!(
            steps(&reset(&have, MARIADB), &State::new("a", 45)),
            "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"
        );
    }
}
