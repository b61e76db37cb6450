//! What a client has set and a connection must have before it may serve that client.

use std::collections::BTreeMap;
use std::rc::Rc;

/// The character set of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// That of the login: a collation id.
    Collation(u16),
    /// `SET NAMES …` or `SET CHARACTER SET …`, the words after SET as the client wrote them: what they mean is the server's to say.
    Written(Rc<str>),
    /// Nobody knows: the connection was reset.
    Unknown,
}

impl Names {
    /// What the server gives to who says nothing of it.
    #[must_use]
    pub fn of_the_server() -> Self {
        Self::Written("NAMES DEFAULT".into())
    }

    /// The words after SET that bring it about; `None` when there are none.
    pub(crate) fn words(&self) -> Option<String> {
        match self {
            Self::Collation(id) => {
                let collation = wire::charset::by_id(*id)?;
                Some(format!("NAMES {} COLLATE {}", collation.charset, collation.name))
            }
            Self::Written(words) => Some(words.to_string()),
            Self::Unknown => None,
        }
    }
}

/// Session variables by lower-case name, values as the client wrote them.
type Variables = BTreeMap<Box<str>, Box<str>>;

/// Schema, character set, autocommit and session variables.
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
}

impl State {
    /// After a login with this collation.
    #[must_use]
    pub fn new(schema: &str, collation: u16) -> Self {
        Self { schema: schema.into(), names: Names::Collation(collation), autocommit: true, variables: None }
    }

    /// All variables.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().flat_map(|all| all.iter().map(|(name, value)| (&**name, &**value)))
    }

    /// The value that the client gave a variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.as_ref()?.get(name).map(|value| &**value)
    }

    /// A variable was set.
    pub fn set(&mut self, name: &str, value: &str) {
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

    /// SET NAMES or SET CHARACTER SET: it overrides what was set of character sets one by one.
    pub fn set_names(&mut self, names: Names) {
        self.names = names;
        for name in CHARSET_VARIABLES {
            self.unset(name);
        }
    }

    /// Same variables, compared cheaply when both come from one.
    pub(crate) fn same_variables(&self, other: &Self) -> bool {
        match (&self.variables, &other.variables) {
            (None, None) => true,
            (Some(a), Some(b)) => Rc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

/// What SET NAMES and SET CHARACTER SET also set.
pub(crate) const CHARSET_VARIABLES: [&str; 5] =
    ["character_set_client", "character_set_results", "character_set_connection", "collation_connection", "character_set_database"];
