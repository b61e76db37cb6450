//! A password that expires: whom a server refuses what, until when, and that nobody else has
//! anything of it.

use super::schema::Refusal;
use super::{Goes, Over, Session};
use crate::client::Reply;
use crate::mind::Complaint;
use crate::server::{PASSWORD, SLEEPER};

impl Session<'_> {
    /// Whether a new password would be taken, and end nothing.
    pub(super) fn may_set_password(&self) -> bool {
        let alone = self.own.autocommit
            && !self.own.in_transaction
            && self.own.next.is_none()
            && !self.reading;
        self.user == SLEEPER && self.able && alone
    }

    /// A new password, which is the old one.
    pub(super) async fn set_password(&mut self) -> Goes {
        let sql = *self
            .chance
            .one_of(&["ALTER USER USER() IDENTIFIED BY", "SET PASSWORD ="]);
        let sql = format!("{sql} '{PASSWORD}'");
        // It may keep its connection as long as the session is there.
        self.pinned = true;
        match self.query(&sql).await? {
            Some(Reply::Ok) => {
                self.judge.hit("a new password", 1);
                (self.renewed, self.stranded) = (self.rt.now(), false);
            }
            Some(Reply::Err {
                code: code @ 1820,
                message,
            }) => {
                self.judge
                    .accuse(&self.who, &format!("{sql}: error {code}: {message}"));
            }
            Some(Reply::Err { code, message }) => {
                self.complained(&sql, code, &message);
                if self.refused.is_none() {
                    // Whether it was done is not known.
                    return Err(Over);
                }
            }
            other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
        Ok(())
    }

    /// Error 1820, or 1862 for who cannot handle it: right where the password had expired, and not
    /// since this session has set another.
    pub(super) fn has_expired(&mut self, words: &str, code: u16, message: &str) -> bool {
        let since = match code {
            1820 if self.able => self.renewed,
            1862 if !self.able => self.asked,
            _ => return false,
        };
        let right = self.user == SLEEPER && self.judge.was_expired_since(since);
        if right {
            self.judge.tell(&self.who, &format!("{words}: {message}"));
            self.judge.hit(
                if code == 1820 {
                    "a password that is to be set"
                } else {
                    "a password that has expired"
                },
                1,
            );
            self.twin.fail(&Complaint(code, message.to_owned()));
            self.refused = Some(Refusal::OnTheWay);
            // It keeps the connection that wants a new password, and with it what else cannot go
            // elsewhere then: a name that is prepared goes as it is, and draws.
            self.drawn |= code == 1820;
        }
        right
    }

    /// Something was done where the server wants a new password.
    pub(super) fn is_not_stranded(&self, words: &str) {
        self.judge
            .check(!self.stranded || !self.manners.steady, &self.who, || {
                format!(
                    "{words}: done on another connection than the one that wants a new password"
                )
            });
    }
}
