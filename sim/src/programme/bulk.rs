//! A prepared INSERT: executed with one row, or with many at once, where MariaDB's bulk execute is
//! offered. All of its rows are there, or none is.

use super::{Goes, Session};
use crate::client::{Due, Reply};
use crate::judge::Fate;
use crate::mind::INSERT;
use crate::server::row;
use wire::bulk::CLIENT_SEND_TYPES;

/// Types as the protocol has them.
const TINY: u8 = 1;
const LONGLONG: u8 = 8;
const BLOB: u8 = 0xFC;
const VAR_STRING: u8 = 0xFD;

/// A statement of two parameters.
pub(super) struct Inserter {
    id: u32,
    /// Types as last bound.
    types: Option<[u8; 2]>,
}

/// Kind of what stands for a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    Value = 0,
    Null = 1,
    Default = 2,
}

impl Session<'_> {
    /// Some executions, one after another.
    pub(super) async fn many_rows(&mut self) -> Goes {
        for _ in 0..self.chance.between(1, 5) {
            self.rows_at_once().await?;
        }
        Ok(())
    }

    /// Rows that go into the log together.
    async fn rows_at_once(&mut self) -> Goes {
        if self.inserter.is_none() {
            self.prepare_insert().await?;
        }
        let Some(Inserter { id, types: before }) = self.inserter.take() else {
            return Ok(());
        };
        let bulk = self.chance.percent(80);
        let same = before.filter(|_| self.chance.percent(60));
        let types = same.unwrap_or_else(|| {
            [
                *self.chance.one_of(&[VAR_STRING, BLOB]),
                *self.chance.one_of(&[TINY, LONGLONG, VAR_STRING]),
            ]
        });
        // Who is alone with a server has told it types before; ours remembers none.
        let told = same.is_some() && self.chance.percent(70) && !self.through;
        let (rows, lines) = self.rows_of(types[1], bulk);
        let payload = if bulk {
            let flags = if told { 0 } else { CLIENT_SEND_TYPES };
            let typed: Vec<u8> = if told {
                Vec::new()
            } else {
                types.iter().flat_map(|kind| [*kind, 0]).collect()
            };
            [
                &[0xFA][..],
                &id.to_le_bytes(),
                &flags.to_le_bytes(),
                &typed,
                &rows,
            ]
            .concat()
        } else {
            let typed: Vec<u8> = if told {
                vec![0]
            } else {
                [1, types[0], 0, types[1], 0].to_vec()
            };
            // In the only row nothing stands for a value but the value, or a NULL.
            let null = lines.iter().all(|line| line.ends_with(" NULL"));
            let values = strip(&rows, null);
            [
                &[0x17][..],
                &id.to_le_bytes(),
                &[0, 1, 0, 0, 0, u8::from(null) << 1],
                &typed,
                &values,
            ]
            .concat()
        };
        let words = format!(
            "EXECUTE {id}, {} rows of {types:?}, told before: {told}, in bulk: {bulk}: {lines:?}",
            lines.len()
        );
        let alone = self.own.autocommit && !self.own.in_transaction;
        for line in &lines {
            self.judge
                .fate(line, if alone { Fate::Unknown } else { Fate::Never });
        }
        self.inserter = Some(Inserter {
            id,
            types: Some(types),
        });
        self.twin.begin("EXECUTE");
        match self.ask(&words, &payload, Due::Binary).await? {
            Some(Reply::Ok) => {
                let affected = self.client.affected;
                self.judge
                    .check(affected == lines.len() as u64, &self.who, || {
                        format!("{words}: {affected} rows")
                    });
                self.own.use_tables();
                for line in lines {
                    if alone {
                        self.judge.fate(&line, Fate::Acknowledged)
                    } else {
                        self.pending.push(line)
                    }
                }
            }
            // Of many rows some may be done, for all that who is between knows: nobody says it
            // again. Here none is.
            Some(Reply::Err {
                code: 1615,
                message,
            }) if bulk => {
                self.judge.tell(&self.who, &format!("{words}: {message}"));
                for line in &lines {
                    self.judge.fate(line, Fate::Never);
                }
            }
            Some(Reply::Err { code, message }) => {
                self.complained(&words, code, &message);
                for line in lines.iter().filter(|_| self.refused.is_some()) {
                    self.judge.fate(line, Fate::Never);
                }
            }
            other => self.judge.accuse(&self.who, &format!("{words}: {other:?}")),
        }
        Ok(())
    }

    /// Rows as a bulk has them, and what they are in the log.
    fn rows_of(&mut self, kind: u8, bulk: bool) -> (Vec<u8>, Vec<String>) {
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        for _ in 0..if bulk { self.chance.between(1, 12) } else { 1 } {
            let tag = self.tag();
            rows.extend([Stands::Value as u8, u8::try_from(tag.len()).unwrap_or(0)]);
            rows.extend_from_slice(tag.as_bytes());
            let stands = match self.chance.below(10) {
                0 | 1 => Stands::Null,
                2 if bulk => Stands::Default,
                _ => Stands::Value,
            };
            rows.push(stands as u8);
            let number = self.chance.below(100);
            let shown = match stands {
                Stands::Null => "NULL".to_owned(),
                Stands::Default => "DEFAULT".to_owned(),
                Stands::Value => number.to_string(),
            };
            if stands == Stands::Value {
                match kind {
                    TINY => rows.push(u8::try_from(number).unwrap_or(0)),
                    LONGLONG => rows.extend_from_slice(&number.to_le_bytes()),
                    _ => {
                        rows.push(u8::try_from(shown.len()).unwrap_or(0));
                        rows.extend_from_slice(shown.as_bytes());
                    }
                }
            }
            lines.push(row(&tag, &shown));
        }
        (rows, lines)
    }

    async fn prepare_insert(&mut self) -> Goes {
        self.twin.begin("PREPARE");
        match self
            .ask(
                "PREPARE an insert",
                &[&[0x16], INSERT.as_bytes()].concat(),
                Due::Prepared,
            )
            .await?
        {
            Some(Reply::Prepared { id, params: 2 }) => {
                self.inserter = Some(Inserter { id, types: None })
            }
            Some(Reply::Err { code, message }) => self.complained("PREPARE", code, &message),
            other => self.judge.accuse(&self.who, &format!("PREPARE: {other:?}")),
        }
        Ok(())
    }
}

/// The values of a single row, without what says what stands for them.
fn strip(row: &[u8], null: bool) -> Vec<u8> {
    let tag_to = row.get(1).map_or(0, |len| 2 + usize::from(*len));
    let number = if null {
        &[][..]
    } else {
        row.get(tag_to + 1..).unwrap_or_default()
    };
    [row.get(1..tag_to).unwrap_or_default(), number].concat()
}
