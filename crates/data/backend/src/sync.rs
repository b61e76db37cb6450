//! From the state that a connection has to the state that a session wants: as few commands as can be.

use crate::state::{CHARSET_VARIABLES, Names, State};

/// A session variable of ours for what `SET SESSION TRANSACTION …` sets: its name differs between servers, its statement does not.
pub const ISOLATION: &str = "transaction isolation level";
/// Likewise for READ ONLY and READ WRITE.
pub const ACCESS: &str = "transaction access mode";

/// What must be done.
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
    /// It cannot be done on this connection.
    Another,
}

/// Does `SET NAMES` of this collation work everywhere? MySQL and MariaDB share the ids up to 247; above, each has its own, and a
/// login with one that the server does not know gives the server's default instead of an error. So a connection of its own.
fn is_shared(names: &Names) -> bool {
    !matches!(names, Names::Collation(248..))
}

/// What it takes.
pub(crate) fn need(have: &State, want: &State) -> Need {
    let schema = have.schema != want.schema;
    if schema && want.schema.is_empty() {
        return Need::Another;
    }
    let names = have.names != want.names;
    if !schema && !names && have.autocommit == want.autocommit && have.same_variables(want) {
        return Need::Nothing;
    }
    let mut list: Vec<String> = Vec::new();
    let mut alone: Vec<String> = Vec::new();
    if names {
        match want.names.words() {
            Some(words) if is_shared(&want.names) => list.push(words),
            _ => return Need::Another,
        }
    }
    if have.autocommit != want.autocommit {
        list.push(format!("autocommit={}", u8::from(want.autocommit)));
    }
    for (name, _) in have.variables() {
        if want.variable(name).is_none() {
            if [ISOLATION, ACCESS].contains(&name) {
                return Need::Reset;
            }
            // SET NAMES above has already undone it.
            if !(names && CHARSET_VARIABLES.contains(&name)) {
                if CHARSET_VARIABLES.contains(&name) {
                    match want.names.words() {
                        Some(words) if is_shared(&want.names) => list.insert(0, words),
                        _ => return Need::Another,
                    }
                } else {
                    list.push(format!("@@SESSION.{name}=DEFAULT"));
                }
            }
        }
    }
    let renamed = list.first().is_some_and(|first| first.starts_with("NAMES") || first.starts_with("CHAR"));
    for (name, value) in want.variables() {
        let again = renamed && CHARSET_VARIABLES.contains(&name);
        if have.variable(name) != Some(value) || again {
            if name == ISOLATION || name == ACCESS {
                alone.push(format!("SET SESSION TRANSACTION {value}"));
            } else {
                list.push(format!("@@SESSION.{name}={value}"));
            }
        }
    }
    if !list.is_empty() {
        alone.insert(0, format!("SET {}", list.join(", ")));
    }
    Need::Steps { sets: alone, schema }
}

/// What a connection has after COM_RESET_CONNECTION.
pub(crate) fn reset(have: &State) -> State {
    State { names: Names::Unknown, ..State::new(&have.schema, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(have: &State, want: &State) -> String {
        match need(have, want) {
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
        assert_eq!(steps(&have, &want), "SET @@SESSION.sql_mode=DEFAULT, @@SESSION.time_zone='+02:00'");
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
        assert_eq!(steps(&want, &State::new("a", 8)), "SET NAMES latin1 COLLATE latin1_swedish_ci");
    }

    /// MariaDB takes a login with MySQL's utf8mb4_0900_ai_ci (255) and uses its own default; SET NAMES it refuses.
    #[test]
    fn a_collation_of_one_vendor_gets_a_connection_of_its_own() {
        assert_eq!(steps(&State::new("a", 45), &State::new("a", 255)), "Another");
        assert_eq!(steps(&State::new("a", 255), &State::new("a", 255)), "Nothing");
        assert_eq!(steps(&State::new("a", 255), &State::new("a", 45)), "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci");
    }

    #[test]
    fn an_isolation_level_is_undone_by_a_reset() {
        let mut have = State::new("a", 45);
        have.set(ISOLATION, "ISOLATION LEVEL SERIALIZABLE");
        assert_eq!(steps(&have, &State::new("a", 45)), "Reset");
        assert_eq!(steps(&State::new("a", 45), &have), "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    }

    #[test]
    fn after_a_reset_the_character_set_is_said_anew() {
        let mut have = State::new("a", 45);
        have.set("sql_mode", "''");
        assert_eq!(
            steps(&reset(&have), &State::new("a", 45)),
            "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"
        );
    }
}
