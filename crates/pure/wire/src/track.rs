//! Session changes inside of OK packets (CLIENT_SESSION_TRACK).
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html#sect_protocol_basic_ok_packet_sessinfo>
//! Each change is a type byte and a length-encoded block, so several OK packets' changes can be
//! read as one sequence.

use crate::read::Reader;
use crate::write::Write as _;

/// One change. Bytes are what the server sent; values are as `SELECT @@name` shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// A system variable has this value now.
    Variable {
        /// Its name, as the server spells it.
        name: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// The current schema is this one now; empty when there is none any more.
    Schema(&'a [u8]),
    /// Something of the session changed (`session_track_state_change`).
    State(bool),
    /// GTIDs of what was just done, in MySQL's text form.
    Gtids(&'a [u8]),
    /// Statements that would begin the current transaction anew, such as `SET TRANSACTION READ
    /// ONLY; START TRANSACTION;`.
    TransactionCharacteristics(&'a [u8]),
    /// Eight characters, such as `T___W___`: the state of the transaction.
    TransactionState(&'a [u8]),
    /// A kind that we do not know, or a block that is not what its kind says.
    Other(u8),
}

/// All changes, in order. Stops where the bytes stop making sense.
pub fn changes(raw: &[u8]) -> impl Iterator<Item = Change<'_>> {
    let mut r = Reader::new(raw);
    std::iter::from_fn(move || {
        let kind = r.u8().ok()?;
        let block = r.lenenc_bytes().ok()?;
        Some(change(kind, block).unwrap_or(Change::Other(kind)))
    })
}

/// The change that tells of this schema, as [`changes`] reads it; nothing where there is none.
#[must_use]
pub fn schema(name: &str) -> Vec<u8> {
    let (mut block, mut out) = (Vec::new(), Vec::new());
    if !name.is_empty() {
        block.lenenc_bytes(name.as_bytes());
        out.u8(0x01);
        out.lenenc_bytes(&block);
    }
    out
}

fn change(kind: u8, block: &[u8]) -> Option<Change<'_>> {
    let mut r = Reader::new(block);
    Some(match kind {
        0x00 => Change::Variable {
            name: r.lenenc_bytes().ok()?,
            value: r.lenenc_bytes().ok()?,
        },
        0x01 => Change::Schema(r.lenenc_bytes().ok()?),
        // The manual wraps the '1' into a string of its own; MySQL 9 and MariaDB 10.11 do not.
        0x02 => Change::State(block.last() == Some(&b'1')),
        0x03 => {
            // One byte says how GTIDs are encoded; only "text" (0) exists.
            r.u8().ok()?;
            Change::Gtids(r.lenenc_bytes().ok()?)
        }
        0x04 => Change::TransactionCharacteristics(r.lenenc_bytes().ok()?),
        0x05 => Change::TransactionState(r.lenenc_bytes().ok()?),
        other => Change::Other(other),
    })
}

/// Changes that a session wants to be told of, in the words of its `session_track_` variables. Of
/// GTIDs it is told all that the server says, and of transactions too, unless the server was asked
/// for that on behalf of somebody else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// `session_track_system_variables`; `None` for `*`.
    variables: Option<Vec<Box<str>>>,
    schema: bool,
    state: bool,
    transactions: Transactions,
    /// Whether it is not told GTIDs: the server was asked for them on behalf of somebody else.
    hides_gtids: bool,
}

/// Changes of transactions that a session is told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Transactions {
    /// All that the server tells.
    #[default]
    All,
    /// Changes that MySQL tells who has not asked: that a transaction was begun by a statement, or
    /// is over. Whether one is open before the response.
    Begun(bool),
}

impl Transactions {
    /// Returns what remains of this change.
    fn of(&mut self, state: &[u8]) -> Option<&'static [u8; 8]> {
        let Self::Begun(open) = self else { return None };
        let begun = state.starts_with(b"T");
        match (std::mem::replace(open, begun), begun) {
            (false, true) if state == b"T_R_____" => Some(b"T_R_____"),
            (false, true) => Some(b"T_______"),
            (true, false) => Some(b"________"),
            _ => None,
        }
    }
}

impl Wish {
    /// Variables as their names with commas between, or `*`; the schema; that something of the
    /// session changed.
    #[must_use]
    pub fn new(variables: &str, schema: bool, state: bool) -> Self {
        let names = || {
            variables
                .split(',')
                .map(|name| name.trim().to_ascii_lowercase().into())
                .collect()
        };
        Self {
            variables: (variables.trim() != "*").then(names),
            schema,
            state,
            transactions: Transactions::All,
            hides_gtids: false,
        }
    }

    /// Returns the wish without GTIDs.
    #[must_use]
    pub fn without_gtids(self) -> Self {
        Self {
            hides_gtids: true,
            ..self
        }
    }

    /// Returns the wish without what MySQL tells of transactions only who has asked for it. `open`:
    /// whether one is that a statement has begun.
    #[must_use]
    pub fn without_transactions(self, open: bool) -> Self {
        Self {
            transactions: Transactions::Begun(open),
            ..self
        }
    }

    /// Returns the wish of a session that has said some of it by itself.
    #[must_use]
    pub fn with(&self, variables: Option<&str>, schema: Option<bool>, state: Option<bool>) -> Self {
        let schema = schema.unwrap_or(self.schema);
        let state = state.unwrap_or(self.state);
        let variables = match variables {
            Some(variables) => Self::new(variables, schema, state).variables,
            None => self.variables.clone(),
        };
        Self {
            variables,
            schema,
            state,
            transactions: self.transactions,
            hides_gtids: self.hides_gtids,
        }
    }

    /// Whether this variable is among them.
    #[must_use]
    pub fn has(&self, name: &[u8]) -> bool {
        self.variables.as_ref().is_none_or(|names| {
            names
                .iter()
                .any(|known| known.as_bytes().eq_ignore_ascii_case(name))
        })
    }

    /// Returns what remains of the changes of an OK packet, as [`changes`] reads them.
    #[must_use]
    pub fn of(&self, raw: &[u8]) -> Vec<u8> {
        let mut r = Reader::new(raw);
        let mut out = Vec::with_capacity(raw.len());
        let mut transactions = self.transactions;
        while let (Ok(kind), Ok(block)) = (r.u8(), r.lenenc_bytes()) {
            let wanted = match change(kind, block) {
                Some(Change::Variable { name, .. }) => self.has(name),
                Some(Change::Schema(_)) => self.schema,
                Some(Change::State(_)) => self.state,
                Some(Change::Gtids(_)) => !self.hides_gtids,
                Some(Change::TransactionCharacteristics(_)) => transactions == Transactions::All,
                Some(Change::TransactionState(state)) if transactions != Transactions::All => {
                    if let Some(state) = transactions.of(state) {
                        out.u8(kind);
                        out.lenenc_bytes(&[&[8][..], state].concat());
                    }
                    false
                }
                _ => true,
            };
            if wanted {
                out.u8(kind);
                out.lenenc_bytes(block);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_told_what_it_wished_for() {
        let raw = b"\x00\x0f\x0aautocommit\x03OFF\x00\x05\x01b\x02ON\x01\x05\x04test\x02\x011\x05\x09\x08T_______";
        let told = |wish: Wish| {
            changes(&wish.of(raw))
                .map(|change| format!("{change:?}"))
                .collect::<Vec<_>>()
                .len()
        };
        assert_eq!(told(Wish::new("*", true, true)), 5);
        assert_eq!(told(Wish::new("time_zone, AUTOCOMMIT", true, false)), 3);
        assert_eq!(told(Wish::new("", false, false)), 1);
        assert_eq!(Wish::new("*", true, true).of(raw), raw);
        let ours = Wish::new("*", true, true).without_transactions(true);
        assert_eq!(ours.with(Some("*"), None, None), ours);
        let of = |open: bool, raw: &[u8]| {
            Wish::new("*", true, true)
                .without_transactions(open)
                .of(raw)
        };
        let state = |state: &[u8; 8]| [&b"\x05\x09\x08"[..], state].concat();
        for (open, said, wanted) in [
            (false, b"T_______", Some(b"T_______")),
            (false, b"T_R_____", Some(b"T_R_____")),
            (false, b"T_R___S_", Some(b"T_______")),
            (false, b"I_R___S_", None),
            (false, b"________", None),
            (true, b"T_R_W_S_", None),
            (true, b"________", Some(b"________")),
        ] {
            assert_eq!(
                of(open, &state(said)),
                wanted.map(state).unwrap_or_default(),
                "{open} {said:?}"
            );
        }
        assert_eq!(of(true, b"\x04\x0b\x0aSTART TRAN\x02\x011"), b"\x02\x011");
        let gtid = b"\x03\x29\x00\x273e11fa47-71ca-11e1-9e33-c80aa9429562:23";
        assert_eq!(Wish::new("*", true, true).of(gtid), gtid);
        assert_eq!(Wish::new("*", true, true).without_gtids().of(gtid), b"");
        let common = Wish::new("time_zone", true, false);
        assert_eq!(common.with(None, None, None), common);
        assert_eq!(
            common.with(Some("autocommit"), None, Some(true)),
            Wish::new("autocommit", true, true)
        );
        assert_eq!(
            common.with(None, Some(false), None),
            Wish::new("time_zone", false, false)
        );
    }

    #[test]
    fn a_schema_is_told_if_there_is_one() {
        assert_eq!(schema("test"), b"\x01\x05\x04test");
        assert_eq!(
            changes(&schema("größe")).collect::<Vec<_>>(),
            [Change::Schema("größe".as_bytes())]
        );
        assert_eq!(schema(""), b"");
    }

    #[test]
    fn every_kind_of_change_is_read() {
        let raw: Vec<u8> = [
            &b"\x00\x0f\x0aautocommit\x03OFF"[..],
            b"\x01\x05\x04test",
            b"\x01\x01\x00",
            b"\x02\x02\x011",
            b"\x02\x011",
            b"\x03\x29\x00\x273e11fa47-71ca-11e1-9e33-c80aa9429562:23",
            b"\x04\x0b\x0aSTART TRAN",
            b"\x05\x09\x08T_______",
            b"\x09\x01x",
        ]
        .concat();
        let all: Vec<_> = changes(&raw).collect();
        assert_eq!(
            all,
            [
                Change::Variable {
                    name: b"autocommit",
                    value: b"OFF"
                },
                Change::Schema(b"test"),
                Change::Schema(b""),
                Change::State(true),
                Change::State(true),
                Change::Gtids(b"3e11fa47-71ca-11e1-9e33-c80aa9429562:23"),
                Change::TransactionCharacteristics(b"START TRAN"),
                Change::TransactionState(b"T_______"),
                Change::Other(9),
            ]
        );
    }

    #[test]
    fn bytes_that_make_no_sense_end_the_sequence() {
        assert_eq!(changes(b"\x01\x05\x04te").count(), 0);
        assert_eq!(
            changes(b"\x00\x01\x05").collect::<Vec<_>>(),
            [Change::Other(0)]
        );
    }
}
