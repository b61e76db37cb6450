//! Prepared statements of a client: its ids, the types it bound, the long data it sent ahead, and an
//! execution of one.

use crate::command::cursor::Cursor;
use crate::command::dynamic::NamedStatements;
use crate::known::answer::Complaint;
use crate::known::bound::{Bound, Kept, long_data};
use crate::known::epoch::Epoch;
use backend::{Backend, BackendFailed, Bindings, Executes, Interest, Prepared, State};
use rt::Chunk;
use sql::Lexing;
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::attributes::Attributes;
use wire::caps::Caps;
use wire::command::{Execute, LAST_STATEMENT};
use wire::execute::{CURSOR_FLAGS, Parts, Value};
use wire::moved::Moved;
use wire::outline::{Count, Outline};
use wire::types::Type;
use wire::{Malformed, status};

/// Error of servers that cannot execute in bulk: its number and its words.
pub(crate) const UNSUPPORTED: (u16, &str) = (
    1295,
    "This command is not supported in the prepared statement protocol yet",
);

/// Bytes that a parameter that comes ahead counts for besides its own.
const PARAM_AHEAD: usize = 64;
/// All texts of a client's statements, and all parameters that come ahead for them, may be so many
/// times as long as one packet.
const PACKETS_AHEAD: usize = 2;

/// A statement that the client may execute.
pub(crate) struct ClientStatement {
    pub(crate) prepared: Interest,
    /// How its text was read when it was prepared: servers keep to that.
    pub(crate) lexing: Lexing,
    /// Its parameters, as the server said to this client: under other modes the same text may have
    /// others.
    behind: u16,
    /// Text that rules are asked with, where they have made something else of the statement when it
    /// was prepared.
    pub(crate) asked: Option<Box<[u8]>>,
    /// Where the parameters of what was prepared come from, where a template has moved them.
    pub(crate) moved: Option<Rc<Moved>>,
    /// As last bound.
    pub(crate) types: Option<Box<Types>>,
    /// Values that COM_STMT_SEND_LONG_DATA brought, by parameter.
    pub(crate) long: BTreeMap<u16, Vec<u8>>,
    /// Too much of it came: the next execution says so.
    pub(crate) overflow: bool,
    /// Its open cursor.
    pub(crate) cursor: Option<Box<Cursor>>,
    /// Outline of the statement's columns that the client was told last, if it remembers that.
    pub(crate) outline: Option<Outline>,
    /// Columns that the client knows of; 0 if it was told of none when it was prepared.
    pub(crate) columns: u16,
}

/// Types that a client has bound.
#[derive(Debug)]
pub(crate) struct Types {
    /// Two bytes a parameter.
    plain: Vec<u8>,
    /// Kinds of the types to a server, in the order of what it has prepared. A NULL without a type
    /// is of the kind of before.
    kinds: Vec<u8>,
    pub(crate) bindings: Bindings,
}

/// Type and sign as MySQL takes them: as the widest of their family (Item_param,
/// `set_data_type_actual`).
const fn kind(of: u8, flags: u8) -> u8 {
    match of {
        // TINY, SHORT, LONG, LONGLONG, INT24, YEAR; those without a sign.
        1 | 2 | 3 | 8 | 9 | 13 => 8 | flags & 0x80,
        // FLOAT.
        4 => 5,
        // DECIMAL.
        0 => 246,
        // VARCHAR, VAR_STRING.
        15 | 253 => 254,
        // TINY_BLOB, MEDIUM_BLOB, LONG_BLOB.
        249..=251 => 252,
        other => other,
    }
}

const NULL: u8 = 6;

impl Types {
    /// Adds the types that the client binds now to those that it has bound. `moved`: where the
    /// server's parameters come from.
    pub(crate) fn bind(known: &mut Option<Box<Self>>, plain: Vec<u8>, moved: Option<&Moved>) {
        let of = |at: usize| Some(kind(*plain.get(2 * at)?, *plain.get(2 * at + 1)?));
        let mut kinds: Vec<u8> = match moved {
            Some(moved) => moved
                .from()
                .iter()
                .filter_map(|from| of(usize::from(*from)))
                .collect(),
            None => (0..plain.len() / 2).filter_map(of).collect(),
        };
        let Some(types) = known else {
            let bindings = if kinds.is_empty() {
                Bindings::NONE
            } else {
                Bindings::NONE.then(&kinds)
            };
            *known = Some(Box::new(Self {
                plain,
                kinds,
                bindings,
            }));
            return;
        };
        for (kind, before) in kinds.iter_mut().zip(&types.kinds) {
            if *kind == NULL {
                *kind = *before;
            }
        }
        types.bindings = if kinds == types.kinds {
            types.bindings.again()
        } else {
            types.bindings.then(&kinds)
        };
        (types.plain, types.kinds) = (plain, kinds);
    }
}

impl ClientStatement {
    /// Whether it is no more than a text that means what it would mean now, read so, in the state of
    /// its session: nothing is open, and nothing came ahead.
    pub(crate) fn is_plain(&self, lexing: Lexing, state: &State) -> bool {
        self.lexing == lexing
            && self.moved.is_none()
            && self.long.is_empty()
            && !self.overflow
            && self.cursor.is_none()
            && self.outline.is_none()
            && self.prepared.own().is_none()
            && self.prepared.means_as_now(state)
    }

    /// Its parameters on a server.
    pub(crate) const fn behind(&self) -> u16 {
        self.behind
    }

    pub(crate) fn new(
        prepared: &Rc<Prepared>,
        lexing: Lexing,
        behind: u16,
        asked: Option<Box<[u8]>>,
        moved: Option<Rc<Moved>>,
        outline: Option<Outline>,
    ) -> Self {
        let columns = prepared.columns.get();
        let prepared = Interest::new(prepared.clone());
        let long = BTreeMap::new();
        Self {
            prepared,
            lexing,
            behind,
            asked,
            moved,
            types: None,
            long,
            overflow: false,
            cursor: None,
            outline,
            columns,
        }
    }

    pub(crate) fn prepared(&self) -> &Rc<Prepared> {
        &self.prepared
    }

    /// How its text was read when it was prepared.
    pub(crate) const fn lexing(&self) -> Lexing {
        self.lexing
    }

    /// Returns the text that rules are asked with, if not with what was prepared.
    pub(crate) fn asked(&self) -> Option<&[u8]> {
        self.asked.as_deref()
    }

    /// Its parameters are not where the client thinks they are.
    pub(crate) const fn moves(&self) -> bool {
        self.moved.is_some()
    }

    pub(crate) fn types(&self) -> Option<&[u8]> {
        self.types.as_ref().map(|types| types.plain.as_slice())
    }

    pub(crate) fn remember(&mut self, types: Vec<u8>) {
        Types::bind(&mut self.types, types, None);
    }

    /// Long data serves one execution.
    pub(crate) fn forget_long(&mut self) {
        self.long.clear();
        self.overflow = false;
    }

    /// Its text, that of the client where it is another, and what came ahead for it, in bytes.
    fn kept(&self) -> usize {
        self.prepared.bytes() + self.asked().map_or(0, <[u8]>::len) + self.ahead()
    }

    /// Bytes that came ahead for it.
    fn ahead(&self) -> usize {
        let all = self.long.values();
        all.map(|data| data.len() + PARAM_AHEAD).sum()
    }

    /// Parameters that the client knows of.
    pub(crate) fn params(&self) -> usize {
        usize::from(seen_params(self.behind, self.moved.as_deref()))
    }

    /// Takes what came ahead, for the parameters of what was prepared.
    pub(crate) fn take_long(&mut self) -> BTreeMap<u16, Vec<u8>> {
        let long = std::mem::take(&mut self.long);
        match &self.moved {
            Some(moved) if !long.is_empty() => (0..)
                .zip(moved.from())
                .filter_map(|(at, from)| Some((at, long.get(from)?.clone())))
                .collect(),
            _ => long,
        }
    }
}

/// Parameters that a client knows of, where servers have so many.
pub(crate) fn seen_params(behind: u16, moved: Option<&Moved>) -> u16 {
    moved.map_or(behind, Moved::before)
}

/// By the client's id.
#[derive(Default)]
pub(crate) struct ClientStatements {
    /// None for one that is being executed.
    by_id: BTreeMap<u32, Option<Box<ClientStatement>>>,
    last: u32,
    /// Bytes that are kept for the statements in `by_id`, as [`ClientStatement::kept`] counts them.
    kept: u32,
    /// Those that were prepared in SQL; most clients have none.
    pub(crate) names: Option<Box<NamedStatements>>,
}

impl ClientStatements {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len() + self.names.as_ref().map_or(0, |names| names.len())
    }

    /// All but those that were prepared in SQL, and the one that is being executed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &ClientStatement)> {
        let all = self.by_id.iter();
        all.filter_map(|(id, statement)| Some((*id, statement.as_deref()?)))
    }

    /// Number of the last that was prepared.
    pub(crate) const fn last_id(&self) -> u32 {
        self.last
    }

    /// The next is behind this one.
    pub(crate) const fn follows(&mut self, last: u32) {
        self.last = last;
    }

    pub(crate) fn next_id(&mut self) -> u32 {
        self.last = if self.last >= LAST_STATEMENT - 1 {
            1
        } else {
            self.last + 1
        };
        self.last
    }

    /// Whether there is no room for one more of this text, and how to say so: there is a bound for
    /// their number, `mysql-stmts_per_client_max`, and one for what is kept for them,
    /// [`PACKETS_AHEAD`] times `mysql-max_allowed_packet`.
    pub(crate) fn is_full_for(&self, sql: &[u8], epoch: &Epoch) -> Option<Complaint> {
        let v = &epoch.snapshot.variables;
        let max = v.mysql_stmts_per_client_max;
        if self.len() as u64 >= max {
            let words = format!(
                "Can't create more than max_prepared_stmt_count statements (current value: {max})"
            );
            return Some(Complaint::with(1461, "42000", words));
        }
        let most = v
            .mysql_max_allowed_packet
            .saturating_mul(PACKETS_AHEAD as u64);
        let bytes =
            self.names.as_ref().map_or(0, |names| names.bytes()) + self.kept as usize + sql.len();
        let too_much = || {
            let words = format!(
                "Can't create more statements: those of this client would take {bytes} bytes, and {most} are allowed ({PACKETS_AHEAD} times 'mysql-max_allowed_packet')"
            );
            Complaint::with(1461, "42000", words)
        };
        (bytes as u64 > most).then(too_much)
    }

    /// A new one.
    pub(crate) fn add(&mut self, id: u32, statement: ClientStatement) {
        self.count(statement.kept(), 0);
        if let Some(Some(before)) = self.by_id.insert(id, Some(Box::new(statement))) {
            self.count(0, before.kept());
        }
    }

    fn count(&mut self, more: usize, less: usize) {
        let clamped = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
        self.kept = self
            .kept
            .saturating_add(clamped(more))
            .saturating_sub(clamped(less));
    }

    /// Keeps what comes ahead for a parameter, unless it is more than `limit` for one statement or
    /// [`PACKETS_AHEAD`] times that for all, their texts among it: then the statement has nothing,
    /// and cannot be executed.
    pub(crate) fn keep_ahead(&mut self, id: u32, param: u16, data: &[u8], limit: usize) {
        let all = self.kept as usize;
        let Some((_, statement)) = self.get(id) else {
            return;
        };
        let before = statement.kept();
        let bytes: usize = statement.long.values().map(Vec::len).sum();
        let new = if statement.long.contains_key(&param) {
            0
        } else {
            PARAM_AHEAD
        };
        if bytes + data.len() > limit
            || all + data.len() + new > limit.saturating_mul(PACKETS_AHEAD)
        {
            statement.overflow = true;
            statement.long = BTreeMap::new();
        } else if !statement.overflow {
            statement
                .long
                .entry(param)
                .or_default()
                .extend_from_slice(data);
        }
        let now = statement.kept();
        self.count(now, before);
    }

    /// The statement that the client means by this id, and the id that it has: -1 stands for the
    /// last one that was prepared. Nothing comes ahead for it.
    pub(crate) fn get(&mut self, id: u32) -> Option<(u32, &mut ClientStatement)> {
        let id = if id == LAST_STATEMENT { self.last } else { id };
        let statement = self.by_id.get_mut(&id)?.as_deref_mut()?;
        Some((id, statement))
    }

    /// As [`Self::get`], lent while it is executed. What came ahead for it is not counted meanwhile.
    pub(crate) fn lend(&mut self, id: u32) -> Option<(u32, Box<ClientStatement>)> {
        let id = if id == LAST_STATEMENT { self.last } else { id };
        let statement = self.by_id.get_mut(&id)?.take()?;
        self.count(0, statement.ahead());
        Some((id, statement))
    }

    /// Takes back what was lent.
    pub(crate) fn take_back(&mut self, id: u32, statement: Box<ClientStatement>) {
        self.count(statement.ahead(), 0);
        if let Some(place) = self.by_id.get_mut(&id) {
            *place = Some(statement);
        }
    }

    /// As [`Self::get`], gone for good.
    pub(crate) fn remove(&mut self, id: u32) -> Option<(u32, Box<ClientStatement>)> {
        let id = if id == LAST_STATEMENT { self.last } else { id };
        let statement = self.by_id.remove(&id)??;
        self.count(0, statement.kept());
        Some((id, statement))
    }

    /// Returns how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        let n = self.len();
        self.by_id.clear();
        self.kept = 0;
        self.names = None;
        n
    }
}

/// A COM_STMT_EXECUTE that is complete, whichever connection it goes to.
pub(crate) struct Execution<'a> {
    pub(crate) known: &'a Rc<Prepared>,
    /// Statement that is executed instead: the same on another partition of its table.
    pub(crate) instead: OnceCell<Rc<Prepared>>,
    /// How servers read its text.
    pub(crate) lexing: Lexing,
    /// The client's id of it.
    pub(crate) client: u32,
    /// The one that it got.
    pub(crate) cursor: Cell<Option<Box<Cursor>>>,
    /// Outline of the statement's columns, as the client remembers it.
    pub(crate) outline: Cell<Option<Outline>>,
    /// Columns that it knows of, or 0.
    pub(crate) columns: Cell<u16>,
    pub(crate) attributes: Attributes,
    pub(crate) bound: Bound,
    /// Types that the client has bound to the statement, with those of this execution.
    pub(crate) bindings: &'a Bindings,
}

impl Execution<'_> {
    /// Returns the statement that is executed.
    pub(crate) fn prepared(&self) -> &Rc<Prepared> {
        self.instead.get().unwrap_or(self.known)
    }

    /// By this a connection is preferred.
    pub(crate) fn for_choice(&self) -> Executes<'_> {
        Executes {
            statement: self.prepared(),
            bindings: self.bindings,
        }
    }

    /// Columns that the client knows of, if their number is to be watched.
    pub(crate) fn known_columns(&self) -> Option<u16> {
        Some(self.columns.get()).filter(|known| *known > 0)
    }

    /// The client is told of so many columns.
    pub(crate) fn told_columns(&self, columns: u32) {
        if let (Some(_), Ok(columns @ 1..)) = (self.known_columns(), u16::try_from(columns)) {
            self.columns.set(columns);
        }
    }

    /// SERVER_STATUS_METADATA_CHANGED, where the client is told of other columns than it knows.
    pub(crate) fn columns_flags(&self, columns: Count) -> u16 {
        let differs = self
            .known_columns()
            .is_some_and(|known| columns.may_differ(known));
        if let Count::Columns(columns) = columns {
            self.told_columns(columns);
        }
        if differs { status::METADATA_CHANGED } else { 0 }
    }

    /// Returns the execution for later, without a cursor: nobody would fetch from it.
    pub(crate) fn keep(&self) -> Kept {
        let mut bound = self.bound.clone();
        if let Some(flags) = bound.payload.get_mut(5) {
            *flags &= !CURSOR_FLAGS;
        }
        Kept {
            prepared: self.prepared().clone(),
            bindings: self.bindings.alone(),
            attributes: self.attributes.clone(),
            bound,
        }
    }

    /// The server's id of the statement, if it is prepared there and has the parameters that the client
    /// was told of. It counts as executed there.
    pub(crate) fn known_there(&self, backend: &mut Backend) -> Option<u32> {
        let id = backend.has_id(self.prepared(), self.client, self.bindings)?;
        self.fits(backend, id).is_ok().then_some(id)
    }

    /// Whether the execution has many rows of parameters.
    pub(crate) fn is_bulk(&self) -> bool {
        self.bound.is_bulk()
    }

    /// Whether something goes ahead of it.
    pub(crate) fn has_long(&self) -> bool {
        !self.bound.long.is_empty()
    }

    /// Bytes of the command, nearly: what it has besides is short.
    pub(crate) fn len(&self) -> usize {
        const MORE: usize = 32;
        self.bound.payload.len() + MORE
    }

    /// The client wants to fetch the rows piece by piece.
    pub(crate) fn opens_cursor(&self) -> bool {
        !self.is_bulk()
            && self
                .bound
                .payload
                .get(5)
                .is_some_and(|flags| flags & CURSOR_FLAGS != 0)
    }

    /// Whether the statement of this id has the parameters there that the client was told of. A
    /// bulk execute says itself how many values its rows have.
    pub(crate) fn fits(&self, backend: &Backend, id: u32) -> Result<(), BackendFailed> {
        self.bound.fits(backend, id)
    }

    /// Parameters that a server is sent.
    pub(crate) const fn sent_params(&self) -> usize {
        self.bound.params
    }

    /// Flags, and types and values of the parameters.
    pub(crate) fn params(&self) -> &[u8] {
        self.bound.payload.get(5..).unwrap_or_default()
    }

    /// Its parameters, those that came ahead among them.
    pub(crate) fn values(&self) -> Result<Vec<Value<'_>>, Malformed> {
        let Bound {
            payload,
            params,
            long,
            ..
        } = &self.bound;
        // Behind the command, the id, the flags and the count of iterations.
        let execute = Execute {
            id: 0,
            flags: 0,
            params: payload.get(10..).unwrap_or_default(),
        };
        let long = |at| {
            u16::try_from(at)
                .ok()
                .and_then(|at| long.get(&at))
                .map(Vec::as_slice)
        };
        Parts::read(&execute, *params, 0)?.decode(*params, None, long)
    }

    /// Whether a parameter was bound as bytes, not as text.
    pub(crate) fn is_binary(&self, at: usize) -> bool {
        // Behind the command, the id, the flags and the count of iterations: which are NULL, a one, types.
        let types = 10 + self.bound.params.div_ceil(8) + 1;
        let blobs = Type::TINY_BLOB.0..=Type::BLOB.0;
        let kind = self.bound.payload.get(types + 2 * at);
        kind.is_some_and(|kind| blobs.contains(kind))
    }

    /// Parameters that came ahead, in order.
    pub(crate) fn long(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.bound
            .long
            .iter()
            .map(|(param, data)| (*param, data.as_slice()))
    }

    /// The payload for a server with these caps that knows the statement by this id.
    pub(crate) fn write(&self, out: &mut Vec<u8>, id: u32, attributes: &Attributes, caps: Caps) {
        self.bound.write(out, id, attributes, caps);
    }

    /// The commands that carry the long data there.
    pub(crate) fn long_data(&self, id: u32) -> impl Iterator<Item = Chunk> {
        long_data(&self.bound.long, id)
    }
}

/// In the words of the vendor that we claim to be: MariaDB names its function, MySQL always the
/// same one.
pub(crate) fn unknown(epoch: &Epoch, id: u32, what: &str) -> Complaint {
    let what = if epoch.claims_mariadb() {
        what
    } else {
        "mysql_stmt_precheck"
    };
    Complaint::with(
        1243,
        "HY000",
        format!("Unknown prepared statement handler ({id}) given to {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_comes_ahead_has_a_bound_and_what_is_used_makes_room() {
        const LIMIT: usize = 10_000;
        let mut statements = ClientStatements::default();
        let texts = backend::Statements::default();
        for id in 1..=30 {
            let prepared = texts.intern(
                &"app".into(),
                &State::new("", 45),
                b"SELECT ?",
                backend::Remembered {
                    statements: 100,
                    bytes: 1 << 20,
                },
            );
            statements.add(
                id,
                ClientStatement::new(&prepared, Lexing::default(), 1, None, None, None),
            );
        }
        let is_over = |statements: &mut ClientStatements, id| {
            statements
                .get(id)
                .is_some_and(|(_, statement)| statement.overflow)
        };
        for id in 1..=30 {
            statements.keep_ahead(id, 0, &[0; 1_900], LIMIT);
        }
        assert!(
            !is_over(&mut statements, 10)
                && is_over(&mut statements, 11)
                && is_over(&mut statements, 30)
        );
        const TEXTS: u32 = 30 * "SELECT ?".len() as u32;
        assert_eq!(statements.kept, TEXTS + 10 * (1_900 + PARAM_AHEAD as u32));
        // Executed, closed, and one that has more than one packet may have.
        let (id, mut statement) = statements.lend(1).unwrap();
        assert!(statements.lend(1).is_none() && statements.get(1).is_none());
        assert_eq!((statements.len(), statements.iter().count()), (30, 29));
        assert_eq!(statement.take_long().len(), 1);
        statement.forget_long();
        statements.take_back(id, statement);
        assert!(statements.remove(2).is_some());
        statements.keep_ahead(3, 0, &[0; 9_000], LIMIT);
        assert!(is_over(&mut statements, 3));
        assert_eq!(
            statements.kept,
            TEXTS - 8 + 7 * (1_900 + PARAM_AHEAD as u32)
        );
        // Parameters without a byte are something, too.
        for param in 0..200 {
            statements.keep_ahead(1, param, b"", LIMIT);
        }
        assert!(is_over(&mut statements, 1));
        statements.clear();
        assert_eq!(statements.kept, 0);
    }
}
