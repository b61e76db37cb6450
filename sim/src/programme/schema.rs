//! Servers that do not all have the same schemas: where a statement is refused for its session's
//! schema, and that it runs in no other.

use super::lines::CACHED;
use super::{Goes, Session};
use crate::mind::{Complaint, SCHEMAS};

/// How what was said was refused, as it should be, so that nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Refusal by the server to which the statement came.
    Told,
    /// Refusal on the way to a server: what no server has heard has left no warnings.
    OnTheWay,
}

impl Session<'_> {
    /// The server that a statement belongs to, where that is certain.
    pub(super) fn place_of(&self, sql: &str) -> Option<&'static str> {
        let master = self.own.in_transaction
            || !self.own.autocommit
            || sql.ends_with("FOR UPDATE")
            || sql.starts_with(CACHED);
        // One that only reads is where it began, and without the readers their writer reads.
        let anywhere = self.reading
            || !master
                && self
                    .manners
                    .split
                    .is_some_and(|ms| ms > 0 || !self.manners.steady);
        let draws = self.pinned || self.drawn || self.announced;
        (!draws && !anywhere).then_some(if master { "a" } else { "b" })
    }

    /// Whether this server has a schema of that name.
    fn knows(&self, server: &str, schema: &str) -> bool {
        let missing = match server {
            "a" => self.manners.missing[0],
            "b" => self.manners.missing[1],
            _ => None,
        };
        missing != Some(schema)
    }

    /// Whether there is a server that does not have the session's schema.
    pub(super) fn is_somewhere_unknown(&self) -> bool {
        ["a", "b"]
            .iter()
            .any(|server| !self.knows(server, &self.own.schema))
    }

    /// One of the schemas, with a point behind.
    pub(super) fn any_schema(&mut self) -> String {
        format!("{}.", self.chance.one_of(&SCHEMAS))
    }

    /// Servers are told in which schema a statement of this client is to run.
    pub(super) fn say_where(&self, words: &str) {
        let tag = words.split('\'').nth(1).unwrap_or_default();
        if tag
            .strip_prefix(&self.own_name())
            .is_some_and(|rest| rest.starts_with('-'))
        {
            self.judge.said_in(tag, &self.own.schema);
        }
    }

    /// Error 1049: right where the statement belongs to a server that lacks what it needs, and then
    /// nothing was done.
    pub(super) fn is_unknown_there(&mut self, words: &str, message: &str) -> bool {
        let name = message.split('\'').nth(1).unwrap_or_default();
        let prepared = || {
            self.prepared
                .iter()
                .any(|statement| statement.schema == name)
        };
        let named = || self.named.values().any(|(_, schema)| schema == name);
        let asked = name == self.own.schema
            || words.contains(name)
            || words.starts_with("EXECUTE") && (prepared() || named());
        // Where others go than those that have rows of their server's is not certain.
        let reads = words.starts_with("SELECT '")
            && ["few", "slow", "big", "state", "log"]
                .iter()
                .any(|table| words.contains(&format!(" FROM {table}")));
        let place = if reads { self.place_of(words) } else { None };
        let right = asked
            && SCHEMAS.contains(&name)
            && ["a", "b"].iter().any(|server| {
                place.is_none_or(|place| place == *server) && !self.knows(server, name)
            });
        if right {
            self.judge.tell(&self.who, &format!("{words}: {message}"));
            self.judge.hit("a schema that is not there", 1);
            self.twin.fail(&Complaint(1049, message.to_owned()));
            let told = words.contains(name) && name != self.own.schema;
            self.refused = Some(if told {
                Refusal::Told
            } else {
                Refusal::OnTheWay
            });
        }
        right
    }

    /// Rows came from a server: it has the schema that they were asked for in. What is executed is
    /// where it was prepared.
    pub(super) fn may_be_answered(&self, sql: &str, server: &str) {
        let executes = sql.starts_with("EXECUTE");
        self.judge.check(
            executes || self.knows(server, &self.own.schema),
            &self.who,
            || {
                format!(
                    "{sql}: answered by server {server}, which has no schema {}",
                    self.own.schema
                )
            },
        );
    }

    /// A USE was said, and was done or not: where it goes there is that schema.
    pub(super) fn has_used(&mut self, name: &str, done: bool) -> Goes {
        if done {
            let server = if self.reading {
                self.spot.as_ref().map_or("", |(server, _)| server.as_str())
            } else {
                "a"
            };
            self.judge.check(self.knows(server, name), &self.who, || {
                format!("USE {name}: done by server {server}, which has none")
            });
            name.clone_into(&mut self.own.schema);
        }
        Ok(())
    }
}
