//! What a client has set and a connection must have before it may serve that client.

use crate::session::variables::{CHARSET_VARIABLES, METADATA, other_name};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// How the names of variables begin that say what a server tells of changes.
const TRACKS: &str = "session_track_";

/// The character set of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// That of the login: a collation id.
    Collation(u16),
    /// `SET NAMES …` or `SET CHARACTER SET …`, the words after SET as the client wrote them: what
    /// they mean is the server's to say.
    Written(Rc<str>),
    /// Nobody knows: the connection was reset.
    Unknown,
}

impl Names {
    /// Returns the character set that the server gives to who says nothing of it.
    #[must_use]
    pub fn of_the_server() -> Self {
        Self::Written("NAMES DEFAULT".into())
    }

    /// Does `SET NAMES` of this collation mean the same everywhere? MySQL and MariaDB share the ids
    /// up to 247, but for six that MariaDB does not have or calls otherwise; above, each has its
    /// own.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(
            self,
            Self::Collation(76 | 122 | 149 | 181 | 213 | 245 | 248..)
        )
    }

    /// The words after SET that bring it about on such a server; `None` when there are none. A
    /// login with a collation that the server does not know gives the server's default instead of
    /// an error, which nothing can say again.
    pub(crate) fn words_for(&self, knows: Collations) -> Option<String> {
        let known = match (self, knows) {
            (Self::Collation(..576), Collations::Mysql)
            | (Self::Collation(576..), Collations::Mariadb) => true,
            _ => self.is_shared(),
        };
        if known { self.words() } else { None }
    }

    /// The words after SET that bring it about where they are known; `None` when there are none.
    pub(crate) fn words(&self) -> Option<String> {
        match self {
            Self::Collation(id) => {
                let collation = wire::charset::by_id(*id)?;
                Some(format!(
                    "NAMES {} COLLATE {}",
                    collation.charset, collation.name
                ))
            }
            Self::Written(words) => Some(words.to_string()),
            Self::Unknown => None,
        }
    }
}

/// Which collations a server knows besides those that all have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collations {
    /// None that we can be sure of.
    Shared,
    /// Those of MySQL 8.0 and later, `utf8mb4_0900_ai_ci` and its like.
    Mysql,
    /// Those of MariaDB 10.10 and later, `utf8mb4_uca1400_ai_ci` and its like.
    Mariadb,
}

impl Collations {
    /// By the version that the server says at login: `8.4.0`, `5.5.5-10.11.6-MariaDB`,
    /// `11.4.2-MariaDB`.
    pub(crate) fn of(version: &str) -> Self {
        let mariadb = version.to_ascii_lowercase().contains("mariadb");
        let own = if mariadb {
            version.strip_prefix("5.5.5-").unwrap_or(version)
        } else {
            version
        };
        let mut numbers = own
            .split(|c: char| !c.is_ascii_digit())
            .map(|number| number.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        match mariadb {
            true if version >= (10, 10) => Self::Mariadb,
            false if version >= (8, 0) => Self::Mysql,
            _ => Self::Shared,
        }
    }
}

/// Session variables by lower-case name, values as the client wrote them.
pub(crate) type Variables = BTreeMap<Box<str>, Box<str>>;

/// All user variables of a session take at most so many bytes, names included.
const USER_VARIABLES_LEN_MAX: usize = 64 << 10;

/// The value of a user variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserValue {
    /// A literal.
    pub literal: Box<str>,
    /// The character set that it was written in, if its meaning depends on that: that of a string
    /// does.
    pub names: Option<Names>,
    /// Whether the value is NULL, and of the type of `literal`: set to NULL, a variable keeps the
    /// type that it had (<https://dev.mysql.com/doc/refman/9.4/en/user-variables.html>).
    pub null: bool,
}

impl UserValue {
    /// A literal.
    #[must_use]
    pub fn new(literal: &str, names: Option<Names>) -> Self {
        Self {
            literal: literal.into(),
            names,
            null: false,
        }
    }

    /// NULL of this literal's type.
    #[must_use]
    pub fn null_like(literal: &str, names: Option<Names>) -> Self {
        Self {
            null: true,
            ..Self::new(of_its_type(literal).as_ref(), names)
        }
    }

    /// NULL for a variable that had no type before. Nothing makes it that of one that had.
    pub(crate) fn is_untyped(&self) -> bool {
        &*self.literal == NULL
    }
}

const NULL: &str = "NULL";

/// User variables by lower-case name.
pub(crate) type UserVariables = BTreeMap<Box<str>, UserValue>;

/// Schema, character set, autocommit, session variables and user variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Current schema; empty for none.
    pub schema: Rc<str>,
    /// Character set.
    pub names: Names,
    /// autocommit.
    pub autocommit: bool,
    /// `None` when there are none, which is most often so.
    pub(crate) variables: Option<Rc<Variables>>,
    /// `None` when there are none. On a connection, those that are not listed are NULL.
    pub(crate) user: Option<Rc<UserVariables>>,
}

impl State {
    /// After a login with this collation.
    #[must_use]
    pub fn new(schema: &str, collation: u16) -> Self {
        Self {
            schema: schema.into(),
            names: Names::Collation(collation),
            autocommit: true,
            variables: None,
            user: None,
        }
    }

    /// Returns the bytes that the state takes in memory, nearly, shared or not.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // Name and value in a map.
        const EACH: usize = 48;
        let of_names = |names: &Names| {
            if let Names::Written(words) = names {
                words.len()
            } else {
                0
            }
        };
        let variables: usize = self
            .variables()
            .map(|(name, value)| EACH + name.len() + value.len())
            .sum();
        let of_user =
            |value: &UserValue| value.literal.len() + value.names.as_ref().map_or(0, of_names);
        let user: usize = self
            .user_variables()
            .map(|(name, value)| 2 * EACH + name.len() + of_user(value))
            .sum();
        self.schema.len() + of_names(&self.names) + variables + user
    }

    /// Whether the same character set, autocommit and variables are set.
    #[must_use]
    pub fn is_set_alike(&self, other: &Self) -> bool {
        self.names == other.names
            && self.autocommit == other.autocommit
            && self.same_variables(other)
    }

    /// Whether it is like another, with no variable set in either.
    pub(crate) fn is_bare_and_like(&self, other: &Self) -> bool {
        let bare = |state: &Self| state.variables.is_none() && state.user.is_none();
        let in_schema = || Rc::ptr_eq(&self.schema, &other.schema) || *self.schema == *other.schema;
        bare(self)
            && bare(other)
            && self.autocommit == other.autocommit
            && self.names == other.names
            && in_schema()
    }

    /// Character set, autocommit and variables become those of another state.
    pub fn set_like(&mut self, other: &Self) {
        self.names = other.names.clone();
        self.autocommit = other.autocommit;
        self.variables = other.variables.clone();
    }

    /// Returns what is set but for the schema and user variables.
    #[must_use]
    pub fn without_schema_and_user(&self) -> Self {
        Self {
            schema: Rc::default(),
            user: None,
            ..self.clone()
        }
    }

    /// Whether the client has set any variable.
    #[must_use]
    pub fn has_variables(&self) -> bool {
        self.variables.is_some()
    }

    /// All variables.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .flat_map(|all| all.iter().map(|(name, value)| (&**name, &**value)))
    }

    /// The value that the client gave a variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.as_ref()?.get(name).map(|value| &**value)
    }

    /// Whether the client wants no definitions of columns. Only clients that can do without may
    /// have set that.
    #[must_use]
    pub fn leaves_out_definitions(&self) -> bool {
        self.variable(METADATA).is_some_and(|value| {
            let word = value.trim_matches(['\'', '"']);
            word == "0" || word.eq_ignore_ascii_case("NONE") || word.eq_ignore_ascii_case("FALSE")
        })
    }

    /// Whether the client has set something of what the server is to tell of changes.
    #[must_use]
    pub fn tracks(&self) -> bool {
        self.variables().any(|(name, _)| name.starts_with(TRACKS))
    }

    /// Forgets what the client has set of what the server is to tell of changes: that is of no
    /// interest.
    pub fn track_nothing(&mut self) {
        let names: Vec<String> = self
            .variables()
            .map(|(name, _)| name.to_owned())
            .filter(|name| name.starts_with(TRACKS))
            .collect();
        names.iter().for_each(|name| self.unset(name));
    }

    /// A variable was set. A character set and its collation are one thing with two names: the one
    /// that was set last tells both.
    pub fn set(&mut self, name: &str, value: &str) {
        if let Some(other) = other_name(name) {
            self.unset(other);
        }
        let all = self.variables.get_or_insert_default();
        Rc::make_mut(all).insert(name.into(), value.into());
    }

    /// A variable is what the server says again.
    pub fn unset(&mut self, name: &str) {
        if let Some(all) = &mut self.variables {
            Rc::make_mut(all).remove(name);
            if all.is_empty() {
                self.variables = None;
            }
        }
    }

    /// All user variables.
    pub fn user_variables(&self) -> impl Iterator<Item = (&str, &UserValue)> {
        self.user
            .iter()
            .flat_map(|all| all.iter().map(|(name, value)| (&**name, value)))
    }

    /// A user variable was set. False if there is no room for it: then it is not known here any
    /// more.
    pub fn set_user(&mut self, name: &str, value: UserValue) -> bool {
        let others: usize = self
            .user_variables()
            .filter(|(n, _)| *n != name)
            .map(|(n, v)| n.len() + v.literal.len())
            .sum();
        if others + name.len() + value.literal.len() > USER_VARIABLES_LEN_MAX {
            self.unset_user(name);
            return false;
        }
        Rc::make_mut(self.user.get_or_insert_default()).insert(name.into(), value);
        true
    }

    /// A user variable was set to NULL. As [`State::set_user`].
    pub fn set_user_null(&mut self, name: &str) -> bool {
        let value = match self.user.as_ref().and_then(|all| all.get(name)) {
            Some(before) if !before.is_untyped() => {
                UserValue::null_like(&before.literal, before.names.clone())
            }
            _ => UserValue::new(NULL, None),
        };
        self.set_user(name, value)
    }

    /// A user variable is NULL, or nobody knows.
    pub fn unset_user(&mut self, name: &str) {
        if let Some(all) = &mut self.user
            && all.contains_key(name)
        {
            Rc::make_mut(all).remove(name);
            if all.is_empty() {
                self.user = None;
            }
        }
    }

    /// In which character set a string literal is written that comes now; `None` when that cannot
    /// be said in a word.
    #[must_use]
    pub fn names_of_literals(&self) -> Option<&Names> {
        let one_by_one = CHARSET_VARIABLES
            .iter()
            .any(|name| self.variable(name).is_some());
        (!one_by_one && self.names.is_shared() && self.names.words().is_some())
            .then_some(&self.names)
    }

    /// Whether the server surely reads what the client writes as UTF-8.
    #[must_use]
    pub fn speaks_utf8(&self) -> bool {
        // What it reads is another matter: Connector/J has results as they are.
        let one_by_one = CHARSET_VARIABLES
            .iter()
            .any(|name| *name != "character_set_results" && self.variable(name).is_some());
        let utf8 = match &self.names {
            Names::Collation(id) => wire::charset::by_id(*id)
                .is_some_and(|collation| collation.charset.starts_with("utf8")),
            Names::Written(words) => {
                // NAMES utf8mb4 COLLATE …, CHARACTER SET 'utf8': a collation by itself is not
                // taken.
                let name = words
                    .strip_prefix("NAMES ")
                    .or_else(|| words.strip_prefix("CHARACTER SET "))
                    .unwrap_or_default();
                let name = name.trim_start_matches(['\'', '"', '`']);
                name.get(..4)
                    .is_some_and(|name| name.eq_ignore_ascii_case("utf8"))
            }
            Names::Unknown => false,
        };
        utf8 && !one_by_one
    }

    /// SET NAMES or SET CHARACTER SET: it overrides what was set of character sets one by one.
    pub fn set_names(&mut self, names: Names) {
        self.names = names;
        for name in CHARSET_VARIABLES {
            self.unset(name);
        }
    }

    /// Same user variables, compared cheaply when both come from one.
    pub(crate) fn same_user_variables(&self, other: &Self) -> bool {
        match (&self.user, &other.user) {
            (None, None) => true,
            (Some(a), Some(b)) => Rc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }

    /// Same variables, compared cheaply when both come from one.
    pub(crate) fn same_variables(&self, other: &Self) -> bool {
        same(&self.variables, &other.variables)
    }
}

/// Whether the variables are the same, compared cheaply when both come from one.
pub(crate) fn same(a: &Option<Rc<Variables>>, b: &Option<Rc<Variables>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Rc::ptr_eq(a, b) || a == b,
        _ => false,
    }
}

/// Variables besides those of character sets that decide what a text means when it is prepared: how
/// it is read, and what MySQL, which resolves a statement once, takes from them for good
/// (`WEEK(d)`, `MONTHNAME(d)`, a literal with an offset). MariaDB looks at most of them in each
/// execution.
const READ_BY: [&str; 7] = [
    "sql_mode",
    "old_mode",
    "div_precision_increment",
    "group_concat_max_len",
    "default_week_format",
    "lc_time_names",
    "time_zone",
];

/// Settings that decide how servers read the text of a statement: they stay with a statement that
/// is prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meant {
    names: Names,
    /// Most often none.
    variables: Vec<(&'static str, Box<str>)>,
    /// The user variables that it names, each with a value of the type that it had, if it was set:
    /// to MySQL it has that type in the statement from then on
    /// (<https://dev.mysql.com/doc/refman/9.4/en/user-variables.html>). Most often none.
    user: Vec<(Box<str>, Option<UserValue>)>,
}

impl Meant {
    fn read_by() -> impl Iterator<Item = &'static str> {
        READ_BY.into_iter().chain(CHARSET_VARIABLES)
    }

    /// This text, by what its session has set.
    pub(crate) fn of(state: &State, text: &[u8]) -> Self {
        let with_type = |name: Box<str>| {
            let value = typed(state, &name);
            (name, value)
        };
        let user = named_in(text, state).into_iter().map(with_type).collect();
        Self {
            names: state.names.clone(),
            variables: Self::set_in(state),
            user,
        }
    }

    fn set_in(state: &State) -> Vec<(&'static str, Box<str>)> {
        let set = |name: &'static str| Some((name, state.variable(name)?.into()));
        if state.variables.is_none() {
            Vec::new()
        } else {
            Self::read_by().filter_map(set).collect()
        }
    }

    /// Whether the same text would mean the same by what is set here.
    pub(crate) fn is_of(&self, state: &State) -> bool {
        self.names == state.names
            && self.variables == Self::set_in(state)
            && self
                .user
                .iter()
                .all(|(name, value)| typed(state, name) == *value)
    }

    /// Appends it to a key.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match &self.names {
            Names::Collation(id) => {
                out.push(1);
                out.extend_from_slice(&id.to_le_bytes());
            }
            Names::Written(words) => part(out, 2, words),
            Names::Unknown => out.push(3),
        }
        for (name, value) in &self.variables {
            part(out, 4, name);
            part(out, 5, value);
        }
        for (name, value) in &self.user {
            part(out, 6, name);
            if let Some(value) = value {
                part(out, 7, &value.literal);
                part(
                    out,
                    8,
                    &value
                        .names
                        .as_ref()
                        .and_then(Names::words)
                        .unwrap_or_default(),
                );
            }
        }
        out.push(0);
    }

    /// Returns the bytes that the settings take, nearly.
    pub(crate) fn bytes(&self) -> usize {
        let variables = self
            .variables
            .iter()
            .map(|(_, value)| size_of::<(&str, Box<str>)>() + value.len());
        let literal =
            |value: &Option<UserValue>| value.as_ref().map_or(0, |value| value.literal.len());
        let user = self.user.iter().map(|(name, value)| {
            size_of::<(Box<str>, Option<UserValue>)>() + name.len() + literal(value)
        });
        variables.sum::<usize>() + user.sum::<usize>()
    }

    /// Whether the user variables of its session have to be there when it is prepared.
    pub(crate) fn sees(&self) -> Sees {
        if self.user.is_empty() {
            Sees::Nothing
        } else {
            Sees::Variables
        }
    }

    /// A state that is as it was then, of user variables too if `user`; `None` if this one is.
    pub(crate) fn put_into(&self, now: &State, user: bool) -> Option<State> {
        let is_read_so = || self.names == now.names && self.variables == Self::set_in(now);
        if self.names == Names::Unknown || self.is_of(now) || !user && is_read_so() {
            return None;
        }
        let mut then = now.clone();
        Self::read_by().for_each(|name| then.unset(name));
        then.names = self.names.clone();
        self.variables
            .iter()
            .for_each(|(name, value)| then.set(name, value));
        for (name, value) in self
            .user
            .iter()
            .filter(|(name, value)| user && typed(now, name) != *value)
        {
            then.unset_user(name);
            if let Some(value) = value {
                then.set_user(name, value.clone());
            }
        }
        Some(then)
    }
}

/// The user variables that a text may name: in either reading of a backslash; all of the session's
/// where that is not certain.
fn named_in(text: &[u8], state: &State) -> Vec<Box<str>> {
    if !text.contains(&b'@') {
        return Vec::new();
    }
    let read = |escapes| sql::user_variables::mentioned(text, escapes);
    let mut names: Vec<Box<str>> = match (read(true), read(false)) {
        (Some(one), Some(other)) => one
            .into_iter()
            .chain(other)
            .map(String::into_boxed_str)
            .collect(),
        _ => state
            .user_variables()
            .map(|(name, _)| name.into())
            .collect(),
    };
    names.sort_unstable();
    names.dedup();
    names
}

/// A value of the type that this user variable has; `None` if it is not set.
fn typed(state: &State, name: &str) -> Option<UserValue> {
    let value = state.user.as_ref()?.get(name)?;
    Some(UserValue::new(
        &of_its_type(&value.literal),
        value.names.clone(),
    ))
}

/// Returns one literal for all literals that are of this one's type.
fn of_its_type(literal: &str) -> Cow<'_, str> {
    if let (Some(first), Some(last)) = (literal.find('\''), literal.rfind('\'')) {
        return format!("{}{}", &literal[..=first], &literal[last..]).into();
    }
    let has = |words: &str| literal.to_ascii_uppercase().contains(words);
    match literal {
        _ if has("UNSIGNED") => "CAST(0 AS UNSIGNED)",
        _ if has("DECIMAL") => "0.0",
        _ if has("SIGNED") || has("TRUE") || has("FALSE") => "0",
        _ if literal.eq_ignore_ascii_case(NULL) => NULL,
        _ if has("0X") || has("0B") => "X''",
        _ if has("E") => "0e0",
        _ if literal.contains('.') => "0.0",
        _ => match literal.parse::<i128>() {
            Ok(number) if i64::try_from(number).is_ok() => "0",
            Ok(number) if u64::try_from(number).is_ok() => "CAST(0 AS UNSIGNED)",
            _ => "0.0",
        },
    }
    .into()
}

fn part(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// User variables that a statement may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// None.
    Nothing,
    /// Perhaps some: it reads what may be a view, and the view's function may read any. So none of
    /// another session's may be there. Its own are brought only where some have to be changed
    /// anyway: a variable that no statement mentions costs nothing.
    InViews,
    /// Any: it names one, or may run programs.
    Variables,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> UserValue {
        UserValue::new(text, None)
    }

    #[test]
    fn what_a_session_writes_is_utf8_however_it_reads() {
        let mut state = State::new("", 45);
        state.set("character_set_results", "NULL");
        assert!(state.speaks_utf8());
        state.set("character_set_client", "latin1");
        assert!(!state.speaks_utf8());
        assert!(!State::new("", 8).speaks_utf8());
    }

    #[test]
    fn user_variables_have_a_bound() {
        let mut state = State::new("", 45);
        assert!(state.set_user("a", literal("1")));
        assert!(!state.set_user("a", literal(&"1".repeat(USER_VARIABLES_LEN_MAX))));
        // What is too large is not known any more: an older value would be a lie.
        assert_eq!(state.user_variables().count(), 0);
        assert!(state.set_user("b", literal("2")));
        state.unset_user("b");
        assert_eq!(state, State::new("", 45));
    }

    #[test]
    fn a_statement_keeps_the_types_of_the_variables_that_it_names() {
        let with = |value: &str| {
            let mut state = State::new("", 45);
            state.set_user("a", literal(value));
            state.set_user("b", literal("1"));
            state
        };
        let meant = |value: &str| Meant::of(&with(value), b"SELECT @A + 1");
        for alike in [
            &["1", "-5", "+7", "TRUE", "9223372036854775807"][..],
            &[
                "9223372036854775808",
                "18446744073709551615",
                "CAST(5 AS UNSIGNED)",
            ],
            &[
                "1.5",
                "-.5",
                "18446744073709551616",
                "CAST(-15 AS DECIMAL(2,0))",
            ],
            &["1e3", "-1.5E0"],
            &["'a'", "'it''s @b'", "''"],
            &[
                "_latin1 x'41' COLLATE latin1_bin",
                "_latin1 x'' COLLATE latin1_bin",
            ],
            &["X'41'", "0x41"],
            &["NULL", "null"],
        ] {
            let first = meant(alike[0]);
            alike
                .iter()
                .for_each(|other| assert_eq!(meant(other), first, "{other}"));
            for strange in ["1", "9223372036854775808", "1.5", "1e3", "'a'", "NULL"]
                .iter()
                .filter(|one| !alike.contains(one))
            {
                assert_ne!(meant(strange), first, "{strange}");
            }
            // Set to NULL it is of the type that it had.
            let mut null = with(alike[0]);
            assert!(null.set_user_null("a"));
            assert_eq!(
                (Meant::of(&null, b"SELECT @A + 1"), null == with(alike[0])),
                (first.clone(), first == meant("NULL"))
            );
            // Wherever it is prepared, the variable has the type that it had; others are as they
            // are.
            let then = first.put_into(&with("'another'"), true);
            assert_eq!(
                then.map(|then| (first.is_of(&then), then.user_variables().count())),
                (alike[0] != "'a'").then_some((true, 2))
            );
        }
        let unset = Meant::of(&State::new("", 45), b"SELECT @a");
        assert_eq!(unset.put_into(&with("1"), false), None);
        assert_eq!(
            unset
                .put_into(&with("1"), true)
                .map(|then| then.user_variables().count()),
            Some(1)
        );
        assert_eq!(
            Meant::of(&with("1"), b"SELECT '@a', @@a"),
            Meant::of(&State::new("", 45), b"SELECT 1")
        );
    }

    #[test]
    fn of_a_character_set_and_its_collation_the_last_that_was_set_tells_both() {
        let mut state = State::new("", 45);
        for (name, value) in [
            ("collation_connection", "utf8mb4_bin"),
            ("character_set_connection", "latin1"),
            ("character_set_server", "latin1"),
            ("collation_server", "utf8mb4_bin"),
        ] {
            state.set(name, value);
        }
        assert_eq!(
            state.variables().collect::<Vec<_>>(),
            [
                ("character_set_connection", "latin1"),
                ("collation_server", "utf8mb4_bin")
            ]
        );
    }

    #[test]
    fn a_string_is_written_in_a_character_set_unless_that_was_set_piece_by_piece() {
        let mut state = State::new("", 45);
        assert_eq!(state.names_of_literals(), Some(&Names::Collation(45)));
        state.set("collation_connection", "'utf8mb4_bin'");
        assert_eq!(state.names_of_literals(), None);
    }
}
