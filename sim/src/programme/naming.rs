//! PREPARE, EXECUTE and DEALLOCATE PREPARE: names that are each session's own, wherever its
//! statements run.

use super::{Goes, Over, Session};
use crate::client::Reply;
use crate::mind::{Complaint, NAMED_INSERT, no_statement};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const NAMES: [&str; 3] = ["p", "q", "r"];

/// Meaning of a name.
#[derive(Debug, Clone)]
pub(super) enum Means {
    /// Two values that are given.
    Both,
    /// This tag, and a value that is given.
    Tag(String),
    Insert,
}

/// By name: what it means, and the schema in which it was prepared.
pub(super) type Named = BTreeMap<&'static str, (Means, String)>;

impl Session<'_> {
    /// Something with names, which may mean nothing.
    pub(super) async fn by_name(&mut self) -> Goes {
        for _ in 0..self.chance.between(1, 6) {
            let name = *self.chance.one_of(&NAMES);
            let known = self.named.contains_key(name);
            match self.chance.below(10) {
                0 => self.prepare_by_name(name).await?,
                1 => self.deallocate(name).await?,
                2..=7 if !known => self.prepare_by_name(name).await?,
                _ => self.execute_by_name(name).await?,
            }
            if self.chance.percent(20) {
                // In the meantime something else is set, or another schema is used.
                Box::pin(self.step()).await?;
            }
        }
        Ok(())
    }

    /// Prepares and executes by name, without anything in between.
    pub(super) async fn by_name_alone(&mut self) -> Goes {
        let name = *self.chance.one_of(&NAMES);
        self.prepare_by_name(name).await?;
        self.execute_by_name(name).await
    }

    async fn prepare_by_name(&mut self, name: &'static str) -> Goes {
        let tag = self.tag();
        let (text, means) = match self.chance.below(8) {
            0..=2 => ("SELECT ?, ? FROM named".to_owned(), Some(Means::Both)),
            3 | 4 => (
                format!("SELECT ''{tag}'', ? FROM named"),
                Some(Means::Tag(tag)),
            ),
            5 | 6 => (NAMED_INSERT.to_owned(), Some(Means::Insert)),
            _ => ("SELEKT ?".to_owned(), None),
        };
        let mut sql = format!("PREPARE {name} FROM '{text}'");
        if !text.contains('\'') && self.chance.percent(30) {
            if !self.set_variable("text", &text).await? {
                return Ok(());
            }
            sql = format!("PREPARE {name} FROM @text");
        }
        // Whatever comes of it, the name means nothing any more that it has meant.
        self.named.remove(name);
        match (self.query(&sql).await?, means) {
            (Some(Reply::Ok), Some(means)) => {
                self.named.insert(name, (means, self.own.schema.clone()));
            }
            (
                Some(Reply::Err {
                    code: 1064,
                    message,
                }),
                None,
            ) => self.twin.fail(&Complaint(1064, message)),
            (Some(Reply::Err { code, message }), _) => {
                self.complained(&sql, code, &message);
                if self.refused.is_some() {
                    return self.give_up(name).await;
                }
                // Whether what had the name was given up before that is not known.
                return Box::pin(self.prepare_by_name(name)).await;
            }
            (other, _) => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
        Ok(())
    }

    async fn deallocate(&mut self, name: &'static str) -> Goes {
        let sql = format!("DEALLOCATE PREPARE {name}");
        match self.query(&sql).await? {
            Some(Reply::Ok) if self.named.remove(name).is_some() => {}
            Some(Reply::Err {
                code: 1243,
                message,
            }) if !self.named.contains_key(name) => {
                self.is_unknown(&sql, no_statement(name, "DEALLOCATE PREPARE"), &message);
            }
            Some(Reply::Err { code, message }) => {
                self.complained(&sql, code, &message);
                // Whether it was done is not known.
                self.named.remove(name);
                if self.refused.is_some() {
                    return Err(Over);
                }
                return self.prepare_by_name(name).await;
            }
            other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
        Ok(())
    }

    /// From now on the name means nothing, whatever it has meant.
    async fn give_up(&mut self, name: &'static str) -> Goes {
        let sql = format!("DEALLOCATE PREPARE {name}");
        match self.query(&sql).await? {
            Some(Reply::Ok) => Ok(()),
            Some(Reply::Err {
                code: 1243,
                message,
            }) => {
                self.is_unknown(&sql, no_statement(name, "DEALLOCATE PREPARE"), &message);
                Ok(())
            }
            Some(Reply::Err { code, message }) => {
                self.complained(&sql, code, &message);
                Err(Over)
            }
            other => {
                self.judge.accuse(&self.who, &format!("{sql}: {other:?}"));
                Err(Over)
            }
        }
    }

    async fn execute_by_name(&mut self, name: &'static str) -> Goes {
        let tag = self.tag();
        if !self.set_variable("t", &tag).await? {
            return Ok(());
        }
        let Some((means, schema)) = self.named.get(name).cloned() else {
            let sql = format!("EXECUTE {name} USING @t");
            match self.query(&sql).await? {
                Some(Reply::Err {
                    code: 1243,
                    message,
                }) => self.is_unknown(&sql, no_statement(name, "EXECUTE"), &message),
                Some(Reply::Err { code, message }) => self.complained(&sql, code, &message),
                other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
            }
            return Ok(());
        };
        if self.chance.percent(8) {
            let sql = format!("EXECUTE {name} USING @t, @t, @t");
            match self.query(&sql).await? {
                Some(Reply::Err {
                    code: 1210,
                    message,
                }) => self.twin.fail(&Complaint(1210, message)),
                Some(Reply::Err { code, message }) => self.complained(&sql, code, &message),
                other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
            }
            return Ok(());
        }
        let a = self.twin.user.get("a").cloned().flatten();
        let (given, first) = match means {
            Means::Insert => {
                return self
                    .insert_by(&format!("EXECUTE {name} USING @t"), tag)
                    .await;
            }
            Means::Both => ("@t, @a", tag),
            Means::Tag(tag) => ("@a", tag),
        };
        let sql = format!("EXECUTE {name} USING {given}");
        let reply = self.query(&sql).await?;
        if matches!(reply, Some(Reply::Rows(_))) {
            self.own.use_tables();
        }
        if let ControlFlow::Continue(rows) = self.rows(&sql, &first, (2, 3), reply) {
            // Of one that was prepared without a schema, none of our servers' clients can see where
            // it is.
            let right = |row: &Vec<Option<String>>| {
                row.len() == 5
                    && row.get(1) == Some(&a)
                    && (schema.is_empty() || row.get(4) == Some(&Some(schema.clone())))
            };
            self.judge
                .check(rows.len() == 1 && rows.iter().all(right), &self.who, || {
                    format!("{sql}: {rows:?} instead of {first}, {a:?} in {schema}")
                });
        }
        Ok(())
    }

    /// The server says that there is no such name.
    fn is_unknown(&mut self, sql: &str, wanted: Complaint, message: &str) {
        self.judge.check(wanted.1 == message, &self.who, || {
            format!("{sql}: {message} instead of {}", wanted.1)
        });
        self.twin.fail(&wanted);
    }

    /// `SET @name='text'`, and whether it was done.
    async fn set_variable(&mut self, name: &str, text: &str) -> Goes<bool> {
        let mut done = false;
        self.run(&format!("SET @{name}='{text}'"), false, |_| done = true)
            .await?;
        if done {
            self.twin
                .user
                .insert(name.to_owned(), Some(text.to_owned()));
        }
        Ok(done)
    }
}
