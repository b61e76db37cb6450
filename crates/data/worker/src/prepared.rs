//! Prepared statements of a client: its ids, the types it bound, the long data it sent ahead.

use crate::answer::{self, Complaint};
use crate::epoch::Epoch;
use crate::session::{Ended, Session};
use crate::statement::What;
use backend::Prepared;
use bridge::Counter;
use rt::Chunk;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::command::{Execute, LAST_STATEMENT};
use wire::execute::Parts;
use wire::packet;

/// A statement that the client may execute.
struct ClientStatement {
    prepared: Rc<Prepared>,
    /// Two bytes a parameter, as last bound.
    types: Option<Vec<u8>>,
    /// What COM_STMT_SEND_LONG_DATA brought, by parameter.
    long: BTreeMap<u16, Vec<u8>>,
    /// Too much of it came: the next execution says so.
    overflow: bool,
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
        let fresh = ClientStatement { prepared, types: None, long: BTreeMap::new(), overflow: false };
        self.by_id.insert(id, fresh);
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
    /// The payload, with a statement id that is to be filled in.
    payload: Vec<u8>,
    long: &'a BTreeMap<u16, Vec<u8>>,
}

impl Execution<'_> {
    /// The payload for a server that knows the statement by this id.
    pub(crate) fn write(&self, out: &mut Vec<u8>, id: u32) {
        out.extend_from_slice(&self.payload);
        if let Some(at) = out.get_mut(1..5) {
            at.copy_from_slice(&id.to_le_bytes());
        }
    }

    /// The commands that carry the long data there.
    pub(crate) fn long_data(&self, id: u32) -> impl Iterator<Item = Chunk> {
        self.long.iter().map(move |(param, data)| {
            let mut payload = Vec::with_capacity(data.len() + 7);
            payload.push(0x18);
            payload.extend_from_slice(&id.to_le_bytes());
            payload.extend_from_slice(&param.to_le_bytes());
            payload.extend_from_slice(data);
            let mut framed = Vec::with_capacity(payload.len() + packet::HEADER_LEN);
            packet::append(&mut framed, &mut 0, &payload);
            Chunk::from(framed)
        })
    }
}

fn unknown(id: u32, what: &str) -> Complaint {
    Complaint::with(1243, "HY000", format!("Unknown prepared statement handler ({id}) given to {what}"))
}

impl Session {
    /// COM_STMT_PREPARE: on a server of the statement's hostgroup, which says what is in it.
    pub(crate) async fn prepare(&mut self, epoch: &Epoch, sql: &[u8]) -> Result<(), Ended> {
        self.core.tally.up(Counter::ComFrontendStmtPrepare);
        let class = sql::class(sql);
        let statement = self.core.statements.intern(&self.state.schema, sql);
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
            return self.refuse(&unknown(execute.id, "COM_STMT_EXECUTE")).await;
        };
        let outcome = self.execute_known(epoch, execute, &mut statement).await;
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
        statement: &mut ClientStatement,
    ) -> Result<(), Ended> {
        if statement.overflow {
            let words = "Parameter of prepared statement which is set through COM_STMT_SEND_LONG_DATA is longer than 'mysql-max_allowed_packet' bytes";
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
        let prepared = statement.prepared.clone();
        let execution = Execution { prepared: &prepared, payload, long: &statement.long };
        let class = sql::class(&prepared.sql);
        self.whole(epoch, &prepared.sql, &class, "Execute", What::Execute(&execution)).await
    }

    /// COM_STMT_SEND_LONG_DATA has no answer; what is wrong with it is said at the execution.
    pub(crate) fn keep_long_data(&mut self, epoch: &Epoch, id: u32, param: u16, data: &[u8]) -> Result<(), Ended> {
        let limit = usize::try_from(epoch.snapshot.variables.mysql_max_allowed_packet).unwrap_or(usize::MAX);
        if let Some(statement) = self.statements.by_id.get_mut(&id) {
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
        if self.statements.by_id.remove(&id).is_some() {
            self.core.tally.down(Counter::StmtClientActiveTotal);
        }
    }

    /// COM_STMT_RESET: the long data is forgotten. There are no cursors to close.
    pub(crate) async fn reset_statement(&mut self, id: u32) -> Result<(), Ended> {
        let Some(statement) = self.statements.by_id.get_mut(&id) else {
            return self.refuse(&unknown(id, "COM_STMT_RESET")).await;
        };
        statement.long.clear();
        statement.overflow = false;
        let flags = answer::flags(self.state.autocommit);
        Ok(answer::say_ok(&mut self.client, 1, self.caps, flags, "").await?)
    }
}
