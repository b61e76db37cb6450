//! `mysql_users`: who may log in, and as whom servers are logged in to.

mod attributes;

use crate::refusal::Refusals;
use crate::{Refusal, Split, UserRow, Variables};
pub use attributes::{Attributes, CausalScope, Certificate, PartitionChanges, Transactions};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use wire::auth;

/// All active users. Looks allocate nothing; a million users take some 200 MB.
#[derive(Debug, Default)]
pub struct Users {
    // One name may stand for two rows: what clients log in with, and what servers are logged in
    // with.
    frontend: HashTable<Arc<User>>,
    backend: HashTable<Arc<User>>,
    /// A user of each kind of password that clients log in with.
    kinds: Vec<Arc<User>>,
    /// Of all users, without the tables.
    bytes: usize,
    /// Whether somebody has a rate.
    has_rates: bool,
    /// Hostgroups of users whose transactions have branches.
    with_branches: BTreeSet<u32>,
}

/// One row, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "one field per column of the operator"
)]
pub struct User {
    /// Name.
    pub username: Box<str>,
    /// Password, as far as it is known.
    pub password: Password,
    /// Only with TLS.
    pub use_ssl: bool,
    /// Where statements go that no rule sends elsewhere.
    pub default_hostgroup: u32,
    /// Schema of a session whose client names none.
    pub default_schema: Option<Box<str>>,
    /// Without effect in ProxySQL and here.
    pub schema_locked: bool,
    /// A transaction stays on the hostgroup where it began.
    pub transaction_persistent: bool,
    /// A connection of its own for every client, and no rules.
    pub fast_forward: bool,
    /// Clients that may be connected at once; 0 for none.
    pub max_connections: u32,
    /// `attributes`, if there are any.
    pub attributes: Option<Box<Attributes>>,
    /// For the operator.
    pub comment: Option<Box<str>>,
}

impl User {
    /// Whether a read of one of his sessions sees what another has written.
    #[must_use]
    pub fn shares_writes(&self) -> bool {
        let attributes = self.attributes.as_ref();
        attributes.is_some_and(|own| own.causal_scope == CausalScope::User)
    }

    fn bytes(&self) -> usize {
        let password = match &self.password {
            Password::Clear(text) | Password::CachingSha2(text) => text.len(),
            Password::Empty | Password::Native(_) => 0,
        };
        let texts = [&self.default_schema, &self.comment];
        let texts = texts.into_iter().flatten().map(|text| text.len());
        let attributes = self
            .attributes
            .as_ref()
            .map_or(0, |own| size_of_val(&**own));
        size_of::<Self>() + self.username.len() + password + attributes + texts.sum::<usize>()
    }
}

/// Password, as far as it is known.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// There is none.
    Empty,
    /// The password itself.
    Clear(Box<str>),
    /// SHA1(SHA1(password)): enough to verify a client, and to log in to a server once a client
    /// has.
    Native([u8; 20]),
    /// `$A$005$`, salt and hash: enough to verify a client that sends its password.
    CachingSha2(Box<str>),
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::Clear(_) => "Clear(..)",
            Self::Native(_) => "Native(..)",
            Self::CachingSha2(_) => "CachingSha2(..)",
        })
    }
}

/// `$A$005$`, 20 bytes of salt, 43 of hash.
const SHA2_LEN: usize = 70;

impl Password {
    /// Reads `mysql_users.password`. What is no hash is the password itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Empty);
        }
        if let Some(stage2) = auth::native_parse(text) {
            return Ok(Self::Native(stage2));
        }
        if is_sha2(text.as_bytes()) {
            return Ok(Self::CachingSha2(text.into()));
        }
        // The salt may hold bytes that are hard to type, so MySQL's HEX(authentication_string) is
        // fine too.
        if let Some(bytes) = unhex(text).filter(|bytes| is_sha2(bytes)) {
            let text = String::from_utf8(bytes)
                .map_err(|_| "is the hexadecimal form of a hash whose salt is no text")?;
            return Ok(Self::CachingSha2(text.into()));
        }
        Ok(Self::Clear(text.into()))
    }

    /// As `mysql_users.password` has it. Hexadecimal forms are not restored.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Clear(text) | Self::CachingSha2(text) => text.to_string(),
            Self::Native(stage2) => auth::native_text(stage2),
        }
    }
}

fn is_sha2(bytes: &[u8]) -> bool {
    bytes.len() == SHA2_LEN
        && bytes.starts_with(b"$A$")
        && bytes[3..6].iter().all(u8::is_ascii_hexdigit)
        && bytes[6] == b'$'
        && bytes[27..]
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/'))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 2 * SHA2_LEN {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8);
    text.as_bytes().chunks_exact(2).map(pair).collect()
}

fn hash(name: &str) -> u64 {
    FixedState::default().hash_one(name)
}

impl Users {
    /// From the rows of `mysql_users`; inactive ones are left out.
    pub fn build(
        rows: impl IntoIterator<Item = UserRow>,
        variables: &Variables,
    ) -> Result<Self, Vec<Refusal>> {
        let rows = rows.into_iter();
        let mut builder = UsersBuilder::new(variables, rows.size_hint().0);
        rows.for_each(|row| builder.add(row));
        builder.build()
    }

    /// Who a client logs in as.
    #[must_use]
    pub fn frontend(&self, name: &str) -> Option<&Arc<User>> {
        self.frontend
            .find(hash(name), |user| *user.username == *name)
    }

    /// As if it had whose kind of password a client is to be answered whose name nobody has: always
    /// the same for a name, or those who try names could tell. `None` if nobody can log in.
    #[must_use]
    pub fn decoy(&self, name: &str) -> Option<&Arc<User>> {
        // Who could foretell the choice would see which names are not as foretold: it depends on
        // what nobody outside knows.
        let secrets: Vec<_> = self
            .kinds
            .iter()
            .flat_map(|user| user.passwords().map(Password::text))
            .collect();
        let at = FixedState::default().hash_one((name, secrets)) % (self.kinds.len().max(1) as u64);
        self.kinds.get(usize::try_from(at).unwrap_or_default())
    }

    /// As whom servers are logged in to for that client.
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<&Arc<User>> {
        self.backend
            .find(hash(name), |user| *user.username == *name)
    }

    /// Number of names that clients can log in with.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frontend.len()
    }

    /// Whether nobody can log in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frontend.is_empty()
    }

    /// Everybody a client can log in as, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<User>> {
        self.frontend.iter()
    }

    /// Whether somebody has a rate.
    #[must_use]
    pub fn has_rates(&self) -> bool {
        self.has_rates
    }

    /// Own hostgroups of users whose transactions have branches.
    #[must_use]
    pub const fn with_branches(&self) -> &BTreeSet<u32> {
        &self.with_branches
    }

    /// Bytes they take, nearly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes + self.frontend.allocation_size() + self.backend.allocation_size()
    }

    /// The rows of `runtime_mysql_users`: a row for each side of a user, in the order of their
    /// names.
    #[must_use]
    pub fn rows(&self) -> Vec<UserRow> {
        let side = |users: &HashTable<Arc<User>>, frontend: bool| {
            users
                .iter()
                .map(|user| user.row(frontend))
                .collect::<Vec<_>>()
        };
        let mut rows = side(&self.frontend, true);
        rows.extend(side(&self.backend, false));
        rows.sort_unstable_by(|a, b| (&a.username, a.backend).cmp(&(&b.username, b.backend)));
        rows
    }
}

impl User {
    /// Returns what the user says of the semantic split; `Some(None)` is "not for me".
    #[must_use]
    pub fn split(&self) -> Option<Option<&Split>> {
        self.attributes.as_ref()?.split.as_ref().map(Option::as_ref)
    }

    /// Returns what becomes of the user's changes of several partitions.
    #[must_use]
    pub fn partition_changes(&self) -> PartitionChanges {
        self.attributes
            .as_ref()
            .map_or_else(PartitionChanges::default, |attributes| {
                attributes.partition_changes
            })
    }

    /// Returns on how many hostgroups a transaction of the user may be.
    #[must_use]
    pub fn transactions(&self) -> Transactions {
        let attributes = self.attributes.as_ref();
        attributes.map_or_else(Transactions::default, |one| one.transactions)
    }

    /// The passwords that are valid: its own, and while it is being changed another.
    pub fn passwords(&self) -> impl Iterator<Item = &Password> {
        let additional = self
            .attributes
            .as_ref()
            .and_then(|attributes| attributes.additional_password.as_ref());
        std::iter::once(&self.password).chain(additional)
    }

    /// Returns what the certificate of the user's clients must say, if they must show one.
    #[must_use]
    pub fn certificate(&self) -> Option<&Certificate> {
        self.attributes.as_ref()?.certificate.as_deref()
    }

    /// How many statements of its clients are sent in a second, if that is limited.
    #[must_use]
    pub fn statements_per_sec(&self) -> Option<u32> {
        self.attributes.as_ref()?.statements_per_sec
    }

    /// Returns the priority of its clients' statements, if it has one.
    #[must_use]
    pub fn priority(&self) -> Option<u8> {
        self.attributes.as_ref()?.priority
    }

    /// Returns the kinds of the user's passwords, on which it depends what a client is asked for.
    fn kind(&self) -> (Discriminant<Password>, Option<Discriminant<Password>>) {
        let mut kinds = self.passwords().map(discriminant);
        (discriminant(&self.password), kinds.nth(1))
    }

    fn row(&self, frontend: bool) -> UserRow {
        UserRow {
            username: self.username.to_string(),
            password: Some(self.password.text()),
            active: 1,
            use_ssl: self.use_ssl.into(),
            default_hostgroup: self.default_hostgroup.into(),
            default_schema: Some(
                self.default_schema
                    .as_deref()
                    .unwrap_or_default()
                    .to_owned(),
            ),
            schema_locked: self.schema_locked.into(),
            transaction_persistent: self.transaction_persistent.into(),
            fast_forward: self.fast_forward.into(),
            backend: (!frontend).into(),
            frontend: frontend.into(),
            max_connections: self.max_connections.into(),
            attributes: self
                .attributes
                .as_ref()
                .map(|attributes| attributes.json.to_string())
                .unwrap_or_default(),
            comment: self.comment.as_deref().unwrap_or_default().to_owned(),
        }
    }
}

/// Builds [`Users`] row by row, so that a million rows need not be held twice.
#[derive(Debug)]
pub struct UsersBuilder {
    users: Users,
    refusals: Refusals,
    have_ssl: bool,
}

impl UsersBuilder {
    /// For about this many rows.
    #[must_use]
    pub fn new(variables: &Variables, rows: usize) -> Self {
        let frontend = HashTable::with_capacity(rows);
        let users = Users {
            frontend,
            backend: HashTable::with_capacity(rows),
            kinds: Vec::new(),
            bytes: 0,
            has_rates: false,
            with_branches: BTreeSet::new(),
        };
        Self {
            users,
            refusals: Refusals::of("mysql_users"),
            have_ssl: variables.mysql_have_ssl,
        }
    }

    /// One more row.
    pub fn add(&mut self, row: UserRow) {
        if row.active == 0 {
            return;
        }
        let (frontend, backend) = (row.frontend != 0, row.backend != 0);
        let user = Arc::new(self.check(row));
        self.users.bytes += user.bytes();
        self.users.has_rates |= user.statements_per_sec().is_some();
        if user.transactions() == Transactions::Xa {
            self.users.with_branches.insert(user.default_hostgroup);
        }
        for (wanted, side, column) in [
            (frontend, &mut self.users.frontend, "frontend"),
            (backend, &mut self.users.backend, "backend"),
        ] {
            if !wanted {
                continue;
            }
            let hashed = hash(&user.username);
            if side
                .find(hashed, |other| other.username == user.username)
                .is_some()
            {
                self.refusals.add(
                    || key(&user.username),
                    column,
                    "has a row already for this username",
                );
                continue;
            }
            side.insert_unique(hashed, Arc::clone(&user), |user| hash(&user.username));
        }
    }

    /// All of them, or all that speaks against it.
    pub fn build(mut self) -> Result<Users, Vec<Refusal>> {
        // Of each kind the first by name, so that a LOAD of the same rows changes nothing.
        let mut kinds: Vec<Arc<User>> = Vec::new();
        for user in &self.users.frontend {
            match kinds.iter_mut().find(|other| other.kind() == user.kind()) {
                Some(other) if user.username < other.username => *other = user.clone(),
                Some(_) => {}
                None => kinds.push(user.clone()),
            }
        }
        kinds.sort_unstable_by(|a, b| a.username.cmp(&b.username));
        self.users.kinds = kinds;
        self.refusals.or(self.users)
    }

    fn check(&mut self, row: UserRow) -> User {
        let refusals = &mut self.refusals;
        let key = || key(&row.username);
        let hostgroup_max = i64::from(i32::MAX);
        for (column, value) in [
            ("active", row.active),
            ("backend", row.backend),
            ("frontend", row.frontend),
        ] {
            refusals.flag(key, column, value);
        }
        let password =
            Password::parse(row.password.as_deref().unwrap_or_default()).unwrap_or_else(|words| {
                refusals.add(key, "password", words);
                Password::Empty
            });
        let use_ssl = refusals.flag(key, "use_ssl", row.use_ssl);
        if use_ssl && row.frontend != 0 && !self.have_ssl {
            refusals.add(
                key,
                "use_ssl",
                "is 1, but mysql-have_ssl is false: this user could never log in",
            );
        }
        let default_hostgroup = refusals.number(
            key,
            "default_hostgroup",
            row.default_hostgroup,
            (0, hostgroup_max),
        );
        let schema_locked = refusals.flag(key, "schema_locked", row.schema_locked);
        let transaction_persistent =
            refusals.flag(key, "transaction_persistent", row.transaction_persistent);
        let fast_forward = refusals.flag(key, "fast_forward", row.fast_forward);
        let max_connections = refusals.number(
            key,
            "max_connections",
            row.max_connections,
            (0, i64::from(u32::MAX)),
        );
        let attributes = Attributes::check(&row.attributes, |words| {
            refusals.add(key, "attributes", words)
        });
        if let Some(Some(split)) = attributes
            .as_ref()
            .and_then(|attributes| attributes.split.as_ref())
        {
            if split.read_hostgroup == default_hostgroup {
                refusals.add(
                    key,
                    "attributes",
                    "has a 'read_hostgroup' that is the default_hostgroup: nothing would be split",
                );
            }
            if fast_forward {
                refusals.add(
                    key,
                    "attributes",
                    "has a 'read_hostgroup', but fast_forward is 1: nothing would be split",
                );
            }
        }
        if let Some(attributes) = &attributes {
            if attributes.additional_password.is_some() && password == Password::Empty {
                refusals.add(
                    key,
                    "attributes",
                    "has an 'additional_password', but the password is empty: nobody needs another one",
                );
            }
            if attributes.certificate.is_some() && row.frontend != 0 && !self.have_ssl {
                refusals.add(
                    key,
                    "attributes",
                    "asks for a certificate, but mysql-have_ssl is false: this user could never log in",
                );
            }
        }
        User {
            password,
            use_ssl,
            default_hostgroup,
            default_schema: row
                .default_schema
                .filter(|schema| !schema.is_empty())
                .map(Into::into),
            schema_locked,
            transaction_persistent,
            fast_forward,
            max_connections,
            attributes: attributes.map(Box::new),
            comment: (!row.comment.is_empty()).then(|| row.comment.into()),
            username: row.username.into(),
        }
    }
}

fn key(username: &str) -> String {
    format!("username '{username}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(username: &str) -> UserRow {
        UserRow {
            username: username.into(),
            ..UserRow::default()
        }
    }

    fn refused(rows: Vec<UserRow>) -> Vec<String> {
        let refusals = Users::build(rows, &Variables::default()).unwrap_err();
        refusals.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn passwords_have_five_spellings() {
        let crypt = format!("$A$005${}{}", "s".repeat(20), "h".repeat(43));
        let hex: String = crypt.bytes().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(Password::parse(""), Ok(Password::Empty));
        assert_eq!(Password::parse("demo"), Ok(Password::Clear("demo".into())));
        assert_eq!(
            Password::parse("*not forty digits"),
            Ok(Password::Clear("*not forty digits".into()))
        );
        let native = Password::parse("*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19").unwrap();
        assert_eq!(native, Password::Native(auth::native_stage2(b"password")));
        assert_eq!(native.text(), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        assert_eq!(
            Password::parse(&crypt),
            Ok(Password::CachingSha2(crypt.as_str().into()))
        );
        assert_eq!(
            Password::parse(&hex),
            Ok(Password::CachingSha2(crypt.as_str().into()))
        );
        assert_eq!(
            format!("{:?}", Password::Clear("secret".into())),
            "Clear(..)"
        );
    }

    #[test]
    fn a_name_that_nobody_has_is_like_a_user_of_some_kind() {
        assert!(Users::default().decoy("x").is_none());
        let with = |name: &str, password: &str| UserRow {
            password: Some(password.into()),
            ..named(name)
        };
        let rows = || {
            vec![
                with("a", "clear"),
                with("b", "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"),
                with("c", "other"),
            ]
        };
        let build = |rows| Users::build(rows, &Variables::default()).unwrap();
        let (users, again) = (build(rows()), build(rows().into_iter().rev().collect()));
        let mut kinds = [0, 0];
        for n in 0..100 {
            let name = format!("nobody{n}");
            let decoy = users.decoy(&name).unwrap();
            assert_eq!(Some(decoy), again.decoy(&name));
            kinds[usize::from(matches!(decoy.password, Password::Native(_)))] += 1;
        }
        assert!(kinds.iter().all(|n| *n > 20), "{kinds:?}");
    }

    #[test]
    fn a_user_has_two_sides_which_may_be_two_rows() {
        let mut front = named("a");
        (front.password, front.backend) = (Some("x".into()), 0);
        let mut back = named("a");
        (back.password, back.frontend) = (Some("y".into()), 0);
        let mut gone = named("c");
        gone.active = 0;
        let users =
            Users::build(vec![front, back, named("b"), gone], &Variables::default()).unwrap();
        assert_eq!(users.len(), 2);
        assert_eq!(
            users.frontend("a").unwrap().password,
            Password::Clear("x".into())
        );
        assert_eq!(
            users.backend("a").unwrap().password,
            Password::Clear("y".into())
        );
        assert!(users.frontend("c").is_none());
        let sides: Vec<_> = users
            .rows()
            .into_iter()
            .map(|row| (row.username, row.frontend, row.backend))
            .collect();
        assert_eq!(
            sides,
            [
                ("a".into(), 1, 0),
                ("a".into(), 0, 1),
                ("b".into(), 1, 0),
                ("b".into(), 0, 1)
            ]
        );
    }

    #[test]
    fn all_that_speaks_against_users_is_said_at_once() {
        let mut negative = named("a");
        negative.default_hostgroup = -1;
        let mut spiffe = named("b");
        spiffe.attributes = r#"{"spiffe_id":"x"}"#.into();
        let words = refused(vec![negative, spiffe, named("c"), named("c")]);
        assert_eq!(
            words,
            [
                "mysql_users (username 'a'): default_hostgroup must be from 0 to 2147483647; '-1' is not",
                "mysql_users (username 'b'): attributes has 'spiffe_id', which must be a text that begins with 'spiffe://'; \"x\" is not",
                "mysql_users (username 'c'): frontend has a row already for this username",
                "mysql_users (username 'c'): backend has a row already for this username",
            ]
        );
        let (variables, _) = Variables::build([("mysql-have_ssl", "false")]).unwrap();
        let mut tls = named("d");
        tls.use_ssl = 1;
        assert!(Users::build(vec![tls], &variables).is_err());
    }

    /// A50: millions of users.
    #[test]
    fn a_user_is_found_among_very_many() {
        let rows = (0..100_000).map(|n| UserRow {
            password: Some(format!("pw{n}")),
            ..named(&format!("user{n}"))
        });
        let users = Users::build(rows, &Variables::default()).unwrap();
        assert_eq!(users.len(), 100_000);
        assert_eq!(
            users.backend("user99999").unwrap().password,
            Password::Clear("pw99999".into())
        );
        assert!(users.frontend("user100000").is_none());
    }
}
