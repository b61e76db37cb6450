//! Prepared statements of a client: its ids, the types it bound, the long data it sent ahead.

use crate::answer::{self, Complaint};
use crate::epoch::Epoch;
use crate::session::{Ended, Session};
use crate::statement::What;
use backend::{Interest, Prepared};
use bridge::Counter;
use rt::Chunk;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::command::{COM_STMT_SEND_LONG_DATA, Execute, LAST_STATEMENT};
use wire::execute::{CURSOR_FLAGS, Parts};
use wire::packet;

/// A statement that the client may execute.
pub(crate) struct ClientStatement {
    prepared: Interest,
    /// Two bytes a parameter, as last bound.
    types: Option<Vec<u8>>,
    /// What COM_STMT_SEND_LONG_DATA brought, by parameter.
    long: BTreeMap<u16, Vec<u8>>,
    /// Too much of it came: the next execution says so.
    overflow: bool,
    /// The hostgroup on whose connection it has an open cursor.
    pub(crate) cursor: Option<u32>,
}

/// By the client's id.
#[derive(Default)]
pub(crate) struct ClientStatements {
    by_id: BTreeMap<u32, ClientStatement>,
    last: u32,
}

impl ClientStatements {
    fn next_id(&mut self) -> u32 {
        self.last = if self.last >= LAST_STATEMENT - 1 { 1 } else { self.last + 1 };
        self.last
    }

    pub(crate) fn add(&mut self, id: u32, prepared: Rc<Prepared>) {
        let prepared = Interest::new(prepared);
        let fresh = ClientStatement { prepared, types: None, long: BTreeMap::new(), overflow: false, cursor: None };
        self.by_id.insert(id, fresh);
    }

    /// The statement that the client means by this id, and the id that it has: -1 stands for the last one that was prepared.
    pub(crate) fn get(&mut self, id: u32) -> Option<(u32, &mut ClientStatement)> {
        let id = if id == LAST_STATEMENT { self.last } else { id };
        self.by_id.get_mut(&id).map(|statement| (id, statement))
    }

    /// Returns how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        let n = self.by_id.len();
        self.by_id.clear();
        n
    }
}

/// A COM_STMT_EXECUTE that is complete, whichever connection it goes to.
pub(crate) struct Execution<'a> {
    pub(crate) prepared: &'a Rc<Prepared>,
    /// The client's id of it.
    pub(crate) client: u32,
    /// The hostgroup where it got one.
    pub(crate) cursor: Cell<Option<u32>>,
    /// The payload, with a statement id that is to be filled in.
    payload: Vec<u8>,
    long: &'a BTreeMap<u16, Vec<u8>>,
}

/// An execution that outlives its command.
pub(crate) struct Kept {
    pub(crate) prepared: Rc<Prepared>,
    payload: Vec<u8>,
    long: BTreeMap<u16, Vec<u8>>,
}

impl Kept {
    pub(crate) fn bytes(&self) -> usize {
        self.payload.len() + self.long.values().map(Vec::len).sum::<usize>()
    }

    /// As [`Execution::write`].
    pub(crate) fn write(&self, out: &mut Vec<u8>, id: u32) {
        write_execution(&self.payload, out, id);
    }

    /// As [`Execution::long_data`].
    pub(crate) fn long_data(&self, id: u32) -> impl Iterator<Item = Chunk> {
        long_data(&self.long, id)
    }
}

impl Execution<'_> {
    /// The same for later, without a cursor: nobody would fetch from it.
    pub(crate) fn keep(&self) -> Kept {
        let mut payload = self.payload.clone();
        if let Some(flags) = payload.get_mut(5) {
            *flags &= !CURSOR_FLAGS;
        }
        Kept { prepared: self.prepared.clone(), payload, long: self.long.clone() }
    }

    /// The client wants to fetch the rows piece by piece.
    pub(crate) fn opens_cursor(&self) -> bool {
        self.payload.get(5).is_some_and(|flags| flags & CURSOR_FLAGS != 0)
    }

    /// Flags, and types and values of the parameters.
    pub(crate) fn params(&self) -> &[u8] {
        self.payload.get(5..).unwrap_or_default()
    }

    /// Parameters that came ahead, in order.
    pub(crate) fn long(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.long.iter().map(|(param, data)| (*param, data.as_slice()))
    }

    /// The payload for a server that knows the statement by this id.
    pub(crate) fn write(&self, out: &mut Vec<u8>, id: u32) {
        write_execution(&self.payload, out, id);
    }

    /// The commands that carry the long data there.
    pub(crate) fn long_data(&self, id: u32) -> impl Iterator<Item = Chunk> {
        long_data(self.long, id)
    }
}

fn write_execution(payload: &[u8], out: &mut Vec<u8>, id: u32) {
    let begin = out.len();
    out.extend_from_slice(payload);
    if let Some(at) = out.get_mut(begin + 1..begin + 5) {
        at.copy_from_slice(&id.to_le_bytes());
    }
}

fn long_data(long: &BTreeMap<u16, Vec<u8>>, id: u32) -> impl Iterator<Item = Chunk> {
    long.iter().map(move |(param, data)| {
        let mut framed = Vec::with_capacity(data.len() + 7 + packet::HEADER_LEN);
        packet::append_with(&mut framed, &mut 0, |out| {
            out.push(COM_STMT_SEND_LONG_DATA);
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&param.to_le_bytes());
            out.extend_from_slice(data);
        });
        Chunk::from(framed)
    })
}

/// In the words of the vendor that we claim to be: MariaDB names its function, MySQL always the same one.
pub(crate) fn unknown(epoch: &Epoch, id: u32, what: &str) -> Complaint {
    let what = if epoch.claims_mariadb() { what } else { "mysql_stmt_precheck" };
    Complaint::with(1243, "HY000", format!("Unknown prepared statement handler ({id}) given to {what}"))
}

impl Session {
    /// COM_STMT_PREPARE: on a server of the statement's hostgroup, which says what is in it.
    pub(crate) async fn prepare(&mut self, epoch: &Epoch, sql: &[u8]) -> Result<(), Ended> {
        self.core.tally.up(Counter::ComFrontendStmtPrepare);
        let v = &epoch.snapshot.variables;
        let max = v.mysql_stmts_per_client_max;
        if self.statements.by_id.len() as u64 >= max {
            let words = format!("Can't create more than max_prepared_stmt_count statements (current value: {max})");
            return self.refuse(&Complaint::with(1461, "42000", words)).await;
        }
        let rewritten = self.rewritten(epoch, sql);
        if let Some((rewrite_id, made)) = &rewritten
            && !made.keeps_params()
        {
            let words = format!("mysql_query_rewrite (rewrite_id {rewrite_id}) moves or drops parameters, which a prepared statement cannot follow");
            return self.refuse(&Complaint::with(1235, "42000", words)).await;
        }
        let sql = rewritten.as_ref().map_or(sql, |(_, made)| &made.text);
        let class = self.lexing().class(sql);
        let remembered = usize::try_from(v.mysql_max_stmts_cache).unwrap_or(usize::MAX);
        let statement = self.core.statements.intern(&self.user_name, &self.state.schema, sql, remembered);
        let id = self.statements.next_id();
        // Preparing does nothing yet of what the statement will do.
        let quiet = sql::Class { leaves: sql::Leaves::NONE, use_db: None, ..class };
        self.whole(epoch, sql, &quiet, "Prepare", What::Prepare(&statement, id)).await
    }

    /// A rule answers the statement by itself: it can be prepared, and is answered when it is executed.
    pub(crate) async fn pretend_to_prepare(&mut self, statement: &Rc<Prepared>, id: u32) -> Result<(), Ended> {
        let mut params: u16 = 0;
        for token in sql::words::Words::new(&statement.sql) {
            params = params.saturating_add(u16::from(token.is_sign(b'?')));
        }
        statement.params.set(params);
        let mut out = Vec::new();
        let flags = answer::flags(self.state.autocommit);
        let mut writer = wire::resultset::Writer::new(&mut out, 0, self.caps, flags);
        writer.prepared(id, params, &[]);
        self.statements.add(id, statement.clone());
        self.core.tally.up(Counter::StmtClientActiveTotal);
        Ok(self.client.send(out).await?)
    }

    /// COM_STMT_EXECUTE: routed anew each time, on whichever connection it gets.
    pub(crate) async fn execute(&mut self, epoch: &Epoch, execute: &Execute<'_>) -> Result<(), Ended> {
        self.core.tally.up(Counter::ComFrontendStmtExecute);
        let id = if execute.id == LAST_STATEMENT { self.statements.last } else { execute.id };
        let Some(mut statement) = self.statements.by_id.remove(&id) else {
            return self.refuse(&unknown(epoch, execute.id, "mysqld_stmt_execute")).await;
        };
        // Executing a statement closes its cursor, wherever that is.
        self.close_cursor(id, &mut statement);
        let outcome = self.execute_known(epoch, execute, id, &mut statement).await;
        // Long data serves one execution.
        statement.long.clear();
        statement.overflow = false;
        self.statements.by_id.insert(id, statement);
        outcome
    }

    async fn execute_known(
        &mut self,
        epoch: &Epoch,
        execute: &Execute<'_>,
        id: u32,
        statement: &mut ClientStatement,
    ) -> Result<(), Ended> {
        if statement.overflow {
            let words = "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes";
            return self.refuse(&Complaint::with(1105, "HY000", words)).await;
        }
        let params = usize::from(statement.prepared.params.get());
        let mut payload = Vec::with_capacity(execute.params.len() + 16);
        let parts = Parts::read(execute, params, self.caps).and_then(|parts| {
            let long = |i: usize| u16::try_from(i).is_ok_and(|i| statement.long.contains_key(&i));
            parts.rewrite(&mut payload, 0, params, statement.types.as_deref(), long)?;
            Ok(parts)
        });
        match parts {
            Ok(parts) => {
                if let Some(types) = parts.plain_types(params) {
                    statement.types = Some(types);
                }
            }
            Err(malformed) => {
                self.core.tally.up(Counter::UnexpectedFrontendPackets);
                return self.refuse(&Complaint::with(1210, "HY000", malformed.what)).await;
            }
        }
        let prepared = Rc::clone(&statement.prepared);
        let execution = Execution {
            prepared: &prepared,
            client: id,
            cursor: Cell::new(None),
            payload,
            long: &statement.long,
        };
        let class = self.lexing().class(&prepared.sql);
        let outcome = self.whole(epoch, &prepared.sql, &class, "Execute", What::Execute(&execution)).await;
        statement.cursor = execution.cursor.get();
        outcome
    }

    /// COM_STMT_SEND_LONG_DATA has no answer; what is wrong with it is said at the execution.
    pub(crate) fn keep_long_data(&mut self, epoch: &Epoch, id: u32, param: u16, data: &[u8]) -> Result<(), Ended> {
        let limit = usize::try_from(epoch.snapshot.variables.mysql_max_allowed_packet).unwrap_or(usize::MAX);
        if let Some((_, statement)) = self.statements.get(id) {
            let have: usize = statement.long.values().map(Vec::len).sum();
            if have + data.len() > limit {
                statement.overflow = true;
                statement.long.clear();
            } else if !statement.overflow {
                statement.long.entry(param).or_default().extend_from_slice(data);
            }
        }
        Ok(())
    }

    /// COM_STMT_CLOSE has no answer.
    pub(crate) fn close_statement(&mut self, id: u32) {
        self.core.tally.up(Counter::ComFrontendStmtClose);
        let id = if id == LAST_STATEMENT { self.statements.last } else { id };
        if let Some(mut statement) = self.statements.by_id.remove(&id) {
            self.close_cursor(id, &mut statement);
            self.core.tally.down(Counter::StmtClientActiveTotal);
        }
    }

    /// COM_STMT_RESET: long data is forgotten, a cursor closed.
    pub(crate) async fn reset_statement(&mut self, epoch: &Epoch, id: u32) -> Result<(), Ended> {
        let found = if id == LAST_STATEMENT { self.statements.last } else { id };
        let Some(mut statement) = self.statements.by_id.remove(&found) else {
            return self.refuse(&unknown(epoch, id, "mysqld_stmt_reset")).await;
        };
        statement.long.clear();
        statement.overflow = false;
        self.close_cursor(found, &mut statement);
        self.statements.by_id.insert(found, statement);
        let flags = answer::flags(self.state.autocommit);
        Ok(answer::say_ok(&mut self.client, 1, self.caps, flags, "").await?)
    }
}
