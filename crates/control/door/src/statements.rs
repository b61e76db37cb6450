//! The prepared statements of one client.

use crate::{Prepared, Refused};
use std::collections::HashMap;
use wire::caps::Caps;
use wire::command::{Execute, LAST_STATEMENT};
use wire::errors;
use wire::execute::{Parts, Value};

#[derive(Default)]
pub(crate) struct Statements {
    by_id: HashMap<u32, Statement>,
    last: u32,
}

pub(crate) struct Statement {
    pub(crate) sql: String,
    prepared: Prepared,
    /// Types of the parameters, as they came with an earlier execution.
    types: Option<Vec<u8>>,
    /// What COM_STMT_SEND_LONG_DATA brought; an answer of its own it has not, so what is wrong with it is told later.
    long: HashMap<u16, Vec<u8>>,
    too_long: bool,
}

impl Statements {
    pub(crate) fn keep(&mut self, sql: &str, prepared: Prepared, max: usize) -> Result<(u32, &Prepared), Refused> {
        if self.by_id.len() >= max {
            return Err(Refused::new(errors::UNKNOWN_ERROR, format!("More than {max} prepared statements; close some")));
        }
        self.last = self.last.wrapping_add(1).max(1);
        let statement = Statement { sql: sql.to_owned(), prepared, types: None, long: HashMap::new(), too_long: false };
        let kept = self.by_id.entry(self.last).insert_entry(statement).into_mut();
        Ok((self.last, &kept.prepared))
    }

    fn find(&mut self, id: u32) -> Result<&mut Statement, Refused> {
        let id = if id == LAST_STATEMENT { self.last } else { id };
        let unknown = || Refused { code: 1243, state: *b"HY000", message: format!("Unknown prepared statement handler ({id})") };
        self.by_id.get_mut(&id).ok_or_else(unknown)
    }

    /// The values of an execution's parameters, and the statement.
    pub(crate) fn bind<'v>(&'v mut self, execute: &Execute<'v>, caps: Caps) -> Result<(Vec<Value<'v>>, &'v Statement), Refused> {
        let statement = self.find(execute.id)?;
        if statement.too_long {
            return Err(Refused::new(errors::PACKET_TOO_LARGE, "A parameter that was sent in pieces is too large"));
        }
        let malformed = |malformed: wire::Malformed| Refused::new(errors::UNKNOWN_ERROR, malformed.to_string());
        let params = usize::from(statement.prepared.params);
        let parts = Parts::read(execute, params, caps).map_err(malformed)?;
        if let Some(types) = parts.plain_types(params).filter(|_| params > 0) {
            statement.types = Some(types);
        }
        let statement = &*statement;
        if params == 0 {
            return Ok((Vec::new(), statement));
        }
        let long = |i: usize| u16::try_from(i).ok().and_then(|i| statement.long.get(&i)).map(Vec::as_slice);
        let values = parts.decode(params, statement.types.as_deref(), long).map_err(malformed)?;
        Ok((values, statement))
    }

    pub(crate) fn keep_long(&mut self, id: u32, param: u16, data: &[u8], max: usize) {
        let Ok(statement) = self.find(id) else { return };
        let sum: usize = statement.long.values().map(Vec::len).sum();
        if sum + data.len() > max || param >= statement.prepared.params {
            statement.too_long = true;
        } else {
            statement.long.entry(param).or_default().extend_from_slice(data);
        }
    }

    pub(crate) fn forget_long(&mut self, id: u32) {
        let _ = self.reset(id);
    }

    pub(crate) fn reset(&mut self, id: u32) -> Result<(), Refused> {
        let statement = self.find(id)?;
        statement.long = HashMap::new();
        statement.too_long = false;
        Ok(())
    }

    pub(crate) fn close(&mut self, id: u32) {
        self.by_id.remove(&id);
    }
}
