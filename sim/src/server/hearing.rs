//! Judgement of what a server hears: by whom, in which schema, and on which connection.

use super::Guest;
use crate::belongings::client;
use crate::mind::Mind;

impl Guest {
    /// A text has come.
    pub(super) fn hears(&mut self, text: &str, mind: &Mind) {
        self.tell(text);
        self.comes(client(text), mind);
        self.is_copy(text, mind);
        if self.server.must_not_hear(text, mind.only_reads()) {
            let words = format!(
                "{text} on connection {}, of a server that only reads",
                self.id
            );
            self.server
                .judge
                .accuse(&format!("server {}", self.server.name), &words);
        }
        let tag = text.split('\'').nth(1).unwrap_or_default();
        // What we bring there for it comes before its schema.
        let counts =
            !(self.server.mirrors || mind.sandbox || is_of_lock(text) || text.starts_with("SET "));
        if counts && let Some(schemas) = self.server.judge.schemas_of(tag) {
            self.server.judge.check(
                schemas.contains(&mind.schema),
                &format!("server {}", self.server.name),
                || {
                    format!(
                        "{text} on connection {}, in schema {:?}, and its client is in {schemas:?}",
                        self.id, mind.schema
                    )
                },
            );
        }
        if let Some((whose, what)) = mind.has.of_somebody_else(text) {
            let words = format!("{text} on connection {}, where {whose} has {what}", self.id);
            self.server
                .judge
                .accuse(&format!("server {}", self.server.name), &words);
        }
    }

    /// A client speaks, if this is known.
    pub(super) fn comes(&mut self, client: Option<&str>, mind: &Mind) {
        let Some(client) = client else { return };
        if self.last.as_deref().is_some_and(|last| last != client) {
            let words = || {
                format!(
                    "{client} on connection {}, where {:?} has a cursor",
                    self.id, self.last
                )
            };
            let who = format!("server {}", self.server.name);
            self.server
                .judge
                .check(mind.cursors.is_empty(), &who, words);
            self.server.judge.check(!self.said_expired, &who, || {
                format!(
                    "{client} on connection {}, where {:?} was told of an expired password",
                    self.id, self.last
                )
            });
            self.server.judge.check(!self.is_courier, &who, || {
                format!(
                    "{client} on connection {}, which was to be {:?}'s alone",
                    self.id, self.last
                )
            });
            self.server.judge.hit("handed on", 1);
            for what in std::mem::take(&mut self.had) {
                self.server.judge.hit(what, 1);
            }
        }
        self.last = Some(client.to_owned());
    }
}

/// Whether it is about a lock, which a server keeps for all of its schemas.
fn is_of_lock(text: &str) -> bool {
    ["SELECT GET_LOCK(", "SELECT RELEASE_LOCK("]
        .iter()
        .any(|begin| text.starts_with(begin))
}
