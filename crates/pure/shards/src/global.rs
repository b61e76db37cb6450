//! A global transaction: one of a session that has a branch on each hostgroup that it needs. What each
//! branch is told when it begins, its savepoints, and the phases in which all commit.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/xa-statements.html>

use crate::xa::Branch;
use sql::words::{Kind, Words};

/// Statements that a branch may change in a transaction: `READ ONLY` or `READ WRITE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// As the session's variables have it.
    Usual,
    /// No table may be changed.
    ReadOnly,
    /// Tables may be changed, whatever the session's variables say.
    ReadWrite,
}

impl Access {
    /// Of `BEGIN` or `START TRANSACTION …`. `None` for what asks for more, such as a consistent snapshot.
    #[must_use]
    pub fn of_begin(words: Words<'_>) -> Option<Self> {
        let mut words = words.peekable();
        let verb = words.next()?;
        if verb.is("BEGIN") {
            words.next_if(|token| token.is("WORK"));
            return ends(words).then_some(Self::Usual);
        }
        if !(verb.is("START") && words.next()?.is("TRANSACTION")) {
            return None;
        }
        let mut access = Self::Usual;
        if words.next_if(|token| token.is("READ")).is_some() {
            access = match words.next()? {
                token if token.is("ONLY") => Self::ReadOnly,
                token if token.is("WRITE") => Self::ReadWrite,
                _ => return None,
            };
        }
        ends(words).then_some(access)
    }

    /// The statement that is said before a transaction of this access begins.
    const fn before(self) -> Option<&'static str> {
        match self {
            Self::Usual => None,
            Self::ReadOnly => Some("SET TRANSACTION READ ONLY"),
            Self::ReadWrite => Some("SET TRANSACTION READ WRITE"),
        }
    }
}

/// Whether nothing but the end of a statement follows.
fn ends<'a>(mut words: impl Iterator<Item = sql::words::Token<'a>>) -> bool {
    words.all(|token| token.is_sign(b';'))
}

/// Statement about a savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// SAVEPOINT.
    Set,
    /// ROLLBACK TO.
    RollBackTo,
    /// RELEASE SAVEPOINT.
    Release,
}

/// Reads a statement about a savepoint, and its name. `None` for any other.
#[must_use]
pub fn mark(words: Words<'_>) -> Option<(Mark, Box<[u8]>)> {
    let mut words = words.peekable();
    let verb = words.next()?;
    let mark = if verb.is("SAVEPOINT") {
        Mark::Set
    } else if verb.is("RELEASE") {
        words.next_if(|token| token.is("SAVEPOINT"))?;
        Mark::Release
    } else if verb.is("ROLLBACK") {
        words.next_if(|token| token.is("WORK"));
        words.next_if(|token| token.is("TO"))?;
        words.next_if(|token| token.is("SAVEPOINT"));
        Mark::RollBackTo
    } else {
        return None;
    };
    let name = words.next()?;
    let is_name = matches!(name.kind, Kind::Word | Kind::Name);
    let bare = name.text.strip_prefix(b"`").unwrap_or(name.text);
    let bare = bare.strip_suffix(b"`").unwrap_or(bare);
    (is_name && ends(words)).then(|| (mark, bare.to_ascii_lowercase().into()))
}

/// A savepoint that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Savepoint {
    name: Box<[u8]>,
    /// Statement that has set it.
    text: Box<[u8]>,
}

/// A branch that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    hostgroup: u32,
    writes: bool,
}

/// Hostgroups whose branches commit, by how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Phases {
    /// In one phase each, before all others.
    pub one: Vec<u32>,
    /// In two phases; none, or more than one.
    pub two: Vec<u32>,
}

/// A transaction, as far as its branches go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global {
    name: String,
    /// Access mode of all branches.
    pub access: Access,
    begun: Vec<Begun>,
    savepoints: Vec<Savepoint>,
}

impl Global {
    /// A transaction of this name, none of whose branches has begun.
    #[must_use]
    pub const fn new(name: String, access: Access) -> Self {
        Self {
            name,
            access,
            begun: Vec::new(),
            savepoints: Vec::new(),
        }
    }

    /// The branch on a hostgroup.
    #[must_use]
    pub fn branch(&self, hostgroup: u32) -> Branch {
        Branch {
            transaction: self.name.clone(),
            hostgroup,
        }
    }

    /// Hostgroups on which branches have begun, in the order of their numbers.
    #[must_use]
    pub fn hostgroups(&self) -> Vec<u32> {
        let mut all: Vec<_> = self.begun.iter().map(|one| one.hostgroup).collect();
        all.sort_unstable();
        all
    }

    /// Whether a branch has begun there.
    #[must_use]
    pub fn has_begun(&self, hostgroup: u32) -> bool {
        self.begun.iter().any(|one| one.hostgroup == hostgroup)
    }

    /// Whether something may have been written there.
    #[must_use]
    pub fn has_written(&self, hostgroup: u32) -> bool {
        let mut begun = self.begun.iter();
        begun.any(|one| one.hostgroup == hostgroup && one.writes)
    }

    /// Statements by which a branch begins on a hostgroup.
    #[must_use]
    pub fn beginning(&self, hostgroup: u32) -> Vec<Vec<u8>> {
        let before = self.access.before().map(|text| text.as_bytes().to_vec());
        let start = format!("XA START {}", self.branch(hostgroup)).into_bytes();
        let marks = self.savepoints.iter().map(|one| one.text.to_vec());
        before.into_iter().chain([start]).chain(marks).collect()
    }

    /// Notes a branch that has begun.
    pub fn begins(&mut self, hostgroup: u32) {
        if !self.has_begun(hostgroup) {
            self.begun.push(Begun {
                hostgroup,
                writes: false,
            });
        }
    }

    /// Notes that something may be written on a hostgroup from now on.
    pub fn writes(&mut self, hostgroup: u32) {
        let mut begun = self.begun.iter_mut();
        if let Some(one) = begun.find(|one| one.hostgroup == hostgroup) {
            one.writes = true;
        }
    }

    /// Whether a savepoint of this name is set.
    #[must_use]
    pub fn has_mark(&self, name: &[u8]) -> bool {
        self.savepoints.iter().any(|one| *one.name == *name)
    }

    /// Notes a statement about a savepoint that was done.
    pub fn marks(&mut self, mark: Mark, name: &[u8], text: &[u8]) {
        let at = self.savepoints.iter().position(|one| *one.name == *name);
        match (mark, at) {
            (Mark::Set, at) => {
                at.map(|at| self.savepoints.remove(at));
                self.savepoints.push(Savepoint {
                    name: name.into(),
                    text: text.into(),
                });
            }
            // Those behind it are gone.
            (Mark::RollBackTo, Some(at)) => self.savepoints.truncate(at + 1),
            (Mark::Release, Some(at)) => self.savepoints.truncate(at),
            (Mark::RollBackTo | Mark::Release, None) => {}
        }
    }

    /// Tells how the branches commit. What has written nothing has nothing to lose, and one that is
    /// left alone needs no outcome.
    #[must_use]
    pub fn phases(&self) -> Phases {
        let all = self.hostgroups();
        let (two, mut one): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|hostgroup| self.has_written(*hostgroup));
        match two.len() {
            0 | 1 => {
                one.extend(two);
                let two = Vec::new();
                Phases { one, two }
            }
            _ => Phases { one, two },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begin_says_what_its_transaction_may_do() {
        let of = |text: &str| Access::of_begin(Words::new(text.as_bytes()));
        for (text, access) in [
            ("BEGIN", Access::Usual),
            ("begin work;", Access::Usual),
            ("/* why */ START TRANSACTION", Access::Usual),
            ("START TRANSACTION READ ONLY", Access::ReadOnly),
            ("start transaction read write", Access::ReadWrite),
        ] {
            assert_eq!(of(text), Some(access), "{text}");
        }
        for text in [
            "",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "START SLAVE",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT",
            "START TRANSACTION READ",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn savepoints_have_names() {
        let of = |text: &str| {
            let (mark, name) = mark(Words::new(text.as_bytes()))?;
            Some((mark, String::from_utf8_lossy(&name).into_owned()))
        };
        for (text, mark) in [
            ("SAVEPOINT A", Mark::Set),
            ("savepoint `a`;", Mark::Set),
            ("ROLLBACK TO a", Mark::RollBackTo),
            ("ROLLBACK WORK TO SAVEPOINT `A`", Mark::RollBackTo),
            ("RELEASE SAVEPOINT a", Mark::Release),
        ] {
            assert_eq!(of(text), Some((mark, "a".to_owned())), "{text}");
        }
        for text in [
            "",
            "ROLLBACK",
            "SAVEPOINT",
            "SAVEPOINT 'a'",
            "RELEASE a",
            "SAVEPOINT a b",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    fn texts(global: &Global, hostgroup: u32) -> Vec<String> {
        let texts = global.beginning(hostgroup).into_iter();
        texts
            .map(|text| String::from_utf8(text).unwrap_or_default())
            .collect()
    }

    #[test]
    fn a_branch_that_begins_late_has_the_savepoints_that_are_set() {
        let mut global = Global::new("millrace-1".into(), Access::ReadOnly);
        let start = "XA START 'millrace-1','2',1296847427";
        assert_eq!(texts(&global, 2), ["SET TRANSACTION READ ONLY", start]);
        for name in ["a", "b", "c"] {
            let text = format!("SAVEPOINT {name}");
            global.marks(Mark::Set, name.as_bytes(), text.as_bytes());
        }
        global.marks(Mark::Set, b"a", b"savepoint a");
        assert_eq!(
            texts(&global, 2)[2..],
            ["SAVEPOINT b", "SAVEPOINT c", "savepoint a"]
        );
        global.marks(Mark::RollBackTo, b"c", b"");
        assert_eq!(texts(&global, 2)[2..], ["SAVEPOINT b", "SAVEPOINT c"]);
        global.marks(Mark::Release, b"b", b"");
        assert_eq!(texts(&global, 2).len(), 2);
        assert!(!global.has_mark(b"c"));
    }

    #[test]
    fn only_branches_that_may_have_written_commit_in_two_phases() {
        let mut global = Global::new("millrace-1".into(), Access::Usual);
        assert_eq!(global.phases(), Phases::default());
        [3, 1, 2]
            .into_iter()
            .for_each(|hostgroup| global.begins(hostgroup));
        let phases = |one: &[u32], two: &[u32]| Phases {
            one: one.to_vec(),
            two: two.to_vec(),
        };
        assert_eq!(global.phases(), phases(&[1, 2, 3], &[]));
        global.writes(1);
        assert_eq!(global.phases(), phases(&[2, 3, 1], &[]));
        global.writes(3);
        global.writes(7);
        assert_eq!(global.phases(), phases(&[2], &[1, 3]));
    }
}
