//! The prepared statements of one client.

use crate::Refused;
use std::collections::HashMap;
use wire::caps::Caps;
use wire::command::{Execute, LAST_STATEMENT};
use wire::errors;
use wire::execute::{Parts, Value};

#[derive(Default)]
pub(crate) struct Statements {
    by_id: HashMap<u32, Statement>,
    last: u32,
    /// Bytes of all texts, and of what came in pieces.
    held: usize,
}

/// How much is kept for one client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Statements.
    pub(crate) statements: usize,
    /// Bytes of all their texts, and of their parameters that came in pieces.
    pub(crate) bytes: usize,
}

/// Bytes that a parameter that came in pieces takes besides its own: it may have none.
const PER_PARAM: usize = 64;

pub(crate) struct Statement {
    pub(crate) sql: Vec<u8>,
    params: u16,
    /// Types of the parameters, as they came with an earlier execution.
    types: Option<Vec<u8>>,
    /// Bytes that COM_STMT_SEND_LONG_DATA brought; an answer of its own it has not, so what is
    /// wrong with it is told later.
    long: HashMap<u16, Vec<u8>>,
    long_bytes: usize,
    too_long: bool,
}

impl Statements {
    /// Keeps one with so many parameters; its number.
    pub(crate) fn keep(&mut self, sql: &[u8], params: u16, max: Bounds) -> Result<u32, Refused> {
        if self.by_id.len() >= max.statements {
            return Err(Refused::new(
                errors::UNKNOWN_ERROR,
                format!(
                    "More than {} prepared statements; close some",
                    max.statements
                ),
            ));
        }
        if self.held + sql.len() > max.bytes {
            let words = format!(
                "Prepared statements of more than {} bytes; close some",
                max.bytes
            );
            return Err(Refused::new(errors::UNKNOWN_ERROR, words));
        }
        self.last = self.last.wrapping_add(1).max(1);
        self.close(self.last);
        self.held += sql.len();
        let statement = Statement {
            sql: sql.to_owned(),
            params,
            types: None,
            long: HashMap::new(),
            long_bytes: 0,
            too_long: false,
        };
        self.by_id.insert(self.last, statement);
        Ok(self.last)
    }

    fn find(&mut self, id: u32) -> Result<&mut Statement, Refused> {
        let id = if id == LAST_STATEMENT { self.last } else { id };
        let unknown = || Refused {
            code: 1243,
            state: *b"HY000",
            message: format!("Unknown prepared statement handler ({id})"),
        };
        self.by_id.get_mut(&id).ok_or_else(unknown)
    }

    /// The values of an execution's parameters, and the statement.
    pub(crate) fn bind<'v>(
        &'v mut self,
        execute: &Execute<'v>,
        caps: Caps,
    ) -> Result<(Vec<Value<'v>>, &'v Statement), Refused> {
        let statement = self.find(execute.id)?;
        if statement.too_long {
            return Err(Refused::new(
                errors::PACKET_TOO_LARGE,
                "A parameter that was sent in pieces is too large",
            ));
        }
        let malformed =
            |malformed: wire::Malformed| Refused::new(errors::UNKNOWN_ERROR, malformed.to_string());
        let params = usize::from(statement.params);
        let parts = Parts::read(execute, params, caps).map_err(malformed)?;
        if let Some(types) = parts.plain_types(params).filter(|_| params > 0) {
            statement.types = Some(types);
        }
        let statement = &*statement;
        if params == 0 {
            return Ok((Vec::new(), statement));
        }
        let long = |i: usize| {
            u16::try_from(i)
                .ok()
                .and_then(|i| statement.long.get(&i))
                .map(Vec::as_slice)
        };
        let values = parts
            .decode(params, statement.types.as_deref(), long)
            .map_err(malformed)?;
        Ok((values, statement))
    }

    pub(crate) fn keep_long(&mut self, id: u32, param: u16, data: &[u8], max: Bounds) {
        let held = self.held;
        let Ok(statement) = self.find(id) else { return };
        let more = data.len()
            + if statement.long.contains_key(&param) {
                0
            } else {
                PER_PARAM
            };
        if held + more > max.bytes || param >= statement.params {
            statement.too_long = true;
        } else {
            statement
                .long
                .entry(param)
                .or_default()
                .extend_from_slice(data);
            statement.long_bytes += more;
            self.held += more;
        }
    }

    pub(crate) fn forget_long(&mut self, id: u32) {
        let _ = self.reset(id);
    }

    pub(crate) fn reset(&mut self, id: u32) -> Result<(), Refused> {
        let statement = self.find(id)?;
        statement.long = HashMap::new();
        statement.too_long = false;
        let freed = std::mem::take(&mut statement.long_bytes);
        self.held -= freed;
        Ok(())
    }

    pub(crate) fn close(&mut self, id: u32) {
        if let Some(closed) = self.by_id.remove(&id) {
            self.held -= closed.sql.len() + closed.long_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(statements: &mut Statements, id: u32) -> Result<usize, u16> {
        let body = [
            &id.to_le_bytes()[..],
            &[0],
            &1_u32.to_le_bytes(),
            &[0, 1, 0xfd, 0],
        ]
        .concat();
        let payload = [&[0x17][..], &body].concat();
        let Ok(wire::command::Command::Execute(execute)) =
            wire::command::Command::read(&payload, Caps::default())
        else {
            panic!("it is one")
        };
        statements
            .bind(&execute, Caps::default())
            .map(|(values, _)| values.len())
            .map_err(|refused| refused.code)
    }

    #[test]
    fn what_is_kept_for_one_client_has_a_bound_over_all_his_statements() {
        let max = Bounds {
            statements: 10,
            bytes: 1000,
        };
        let mut statements = Statements::default();
        let first = statements.keep(&[b'x'; 300], 1, max).unwrap();
        let second = statements.keep(&[b'x'; 300], 1, max).unwrap();
        assert!(
            statements
                .keep(&[b'x'; 500], 0, max)
                .unwrap_err()
                .message
                .ends_with("close some")
        );
        statements.keep_long(first, 0, &[0; 200], max);
        assert_eq!(bind(&mut statements, first), Ok(1));
        statements.keep_long(second, 0, &[0; 200], max);
        assert_eq!(
            bind(&mut statements, second),
            Err(errors::PACKET_TOO_LARGE.number),
            "both together are too much"
        );
        statements.reset(second).unwrap();
        statements.forget_long(first);
        statements.keep_long(second, 0, &[0; 200], max);
        assert_eq!(bind(&mut statements, second), Ok(1));
        statements.close(second);
        statements.close(first);
        assert_eq!(statements.held, 0);
        statements.keep(&[b'x'; 1000], 0, max).unwrap();
    }

    #[test]
    fn empty_pieces_count_too() {
        let max = Bounds {
            statements: 10,
            bytes: 1000,
        };
        let mut statements = Statements::default();
        let id = statements.keep(b"", 100, max).unwrap();
        (0..100).for_each(|param| statements.keep_long(id, param, &[], max));
        assert!(statements.held <= 1000 && statements.by_id[&id].too_long);
    }
}
