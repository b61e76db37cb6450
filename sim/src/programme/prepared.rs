//! Statements that are prepared, executed and closed.

use super::{Goes, Session};
use crate::client::{Due, Reply, Row};
use crate::mind::{ADDED, ECHO};
use std::ops::ControlFlow;

/// A statement that this client has prepared.
pub(super) struct Statement {
    pub(super) id: u32,
    pub(super) schema: String,
    /// Settings of the session when the statement was prepared: its character set, mode, clock and
    /// role.
    pub(super) meant: [String; 4],
    /// Types as last bound.
    pub(super) types: Option<[u8; 4]>,
}

/// An execution.
pub(super) struct Bound {
    pub(super) id: u32,
    pub(super) tag: String,
    pub(super) words: String,
    pub(super) payload: Vec<u8>,
    /// Values of each row, but for the connection and the server that sent it.
    pub(super) values: Row,
}

impl Bound {
    pub(super) fn is(&self, row: &Row) -> bool {
        let shown = |at: usize| at < 4 || at == 6 && self.values.last() != Some(&None);
        // Somebody may have added columns to the table since it was prepared.
        let added = row
            .iter()
            .skip(self.values.len())
            .all(|value| value.as_deref() == Some(ADDED));
        added
            && row.len() >= self.values.len()
            && (0..self.values.len())
                .filter(|at| shown(*at))
                .all(|at| row.get(at) == self.values.get(at))
    }
}

impl Session<'_> {
    pub(super) async fn prepare(&mut self) -> Goes {
        let mut payload = vec![0x16];
        payload.extend_from_slice(ECHO.as_bytes());
        self.twin.begin("PREPARE");
        match self.ask("PREPARE", &payload, Due::Prepared).await? {
            Some(Reply::Prepared { id, params: 4 }) => {
                let known = self.prepared.iter().any(|statement| statement.id == id);
                self.judge.check(!known, &self.who, || {
                    format!("PREPARE: id {id} is given twice")
                });
                let (schema, meant) = (self.own.schema.clone(), self.meaning());
                self.prepared.push(Statement {
                    id,
                    schema,
                    meant,
                    types: None,
                });
            }
            Some(Reply::Err { code, message }) => self.complained("PREPARE", code, &message),
            other => self.judge.accuse(&self.who, &format!("PREPARE: {other:?}")),
        }
        Ok(())
    }

    /// Returns the settings that decide how a statement is read.
    pub(super) fn meaning(&self) -> [String; 4] {
        [
            self.own.names.clone(),
            self.own.sql_mode.to_owned(),
            self.own.time_zone.clone(),
            self.own.role.to_owned(),
        ]
    }

    /// An execution of one of the prepared statements, with a cursor or without.
    pub(super) async fn bind(&mut self, cursor: bool) -> Goes<Option<Bound>> {
        if self.prepared.is_empty() {
            self.prepare().await?;
        }
        if self.prepared.is_empty() {
            return Ok(None);
        }
        let tag = self.tag();
        let now = self.meaning();
        let at = usize::try_from(self.chance.below(self.prepared.len() as u64)).unwrap_or(0);
        let Some(statement) = self.prepared.get_mut(at) else {
            return Ok(None);
        };
        // Where a connection is kept it may have to be prepared as things are now, and is the
        // session's own there from then on.
        self.drawn |= statement.meant != now
            && (self.own.in_transaction || !self.own.autocommit || self.keeps > 0);
        let mut values: Vec<Option<String>> = vec![Some(tag.clone())];
        // VAR_STRING is 0xFD, LONGLONG is 8, TINY is 1.
        let same = statement.types.filter(|_| self.chance.percent(60));
        let types = same.unwrap_or_else(|| {
            [
                0xFD,
                *self.chance.one_of(&[8, 0xFD]),
                *self.chance.one_of(&[1, 8]),
                0xFD,
            ]
        });
        let mut body = Vec::new();
        let mut nulls = 0u8;
        for (at, kind) in types.iter().enumerate() {
            if at > 0 && self.chance.percent(25) {
                nulls |= 1 << at;
                values.push(None);
                continue;
            }
            let number = self.chance.below(100);
            match kind {
                1 => body.push(u8::try_from(number).unwrap_or(0)),
                8 => body.extend_from_slice(&number.to_le_bytes()),
                _ => {
                    let text = if at == 0 {
                        tag.clone()
                    } else {
                        format!("{tag}:{}", "y".repeat(usize::try_from(number).unwrap_or(0)))
                    };
                    body.push(u8::try_from(text.len()).unwrap_or(0));
                    body.extend_from_slice(text.as_bytes());
                    if at > 0 {
                        values.push(Some(text));
                    }
                    continue;
                }
            }
            values.push(Some(number.to_string()));
        }
        let mut payload = vec![0x17];
        payload.extend_from_slice(&statement.id.to_le_bytes());
        payload.extend_from_slice(&[u8::from(cursor), 1, 0, 0, 0, nulls]);
        // Who is alone with a server has told it types before; ours remembers none.
        if same.is_some() && self.chance.percent(70) && !self.through {
            payload.push(0);
        } else {
            payload.push(1);
            payload.extend(types.iter().flat_map(|kind| [*kind, 0]));
        }
        payload.extend_from_slice(&body);
        statement.types = Some(types);
        let (id, schema) = (statement.id, statement.schema.clone());
        let words = format!("EXECUTE {id} with {values:?}");
        // Of a statement that was prepared without a schema, none of our servers' clients can see
        // where it is.
        values.extend([None, None, Some(schema).filter(|name| !name.is_empty())]);
        self.twin.begin("EXECUTE");
        Ok(Some(Bound {
            id,
            tag,
            words,
            payload,
            values,
        }))
    }

    pub(super) async fn execute(&mut self) -> Goes {
        let Some(bound) = self.bind(false).await? else {
            return Ok(());
        };
        let words = &bound.words;
        let reply = self.ask(words, &bound.payload, Due::Binary).await?;
        if let ControlFlow::Continue(rows) = self.rows(words, &bound.tag, (4, 5), reply) {
            let right = rows.len() == 1 && rows.first().is_some_and(|row| bound.is(row));
            self.judge.check(right, &self.who, || {
                format!("{words}: {rows:?} instead of {:?}", bound.values)
            });
        }
        Ok(())
    }

    pub(super) async fn close(&mut self) -> Goes {
        if let Some(statement) = self.prepared.pop() {
            let mut payload = vec![0x19];
            payload.extend_from_slice(&statement.id.to_le_bytes());
            self.judge
                .tell(&self.who, &format!("CLOSE {}", statement.id));
            // It has no answer; what is wrong shows with the next command.
            let _later = self.client.send(&payload).await;
        }
        Ok(())
    }
}
