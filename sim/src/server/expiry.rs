//! A password that has expired: who can handle that is let in, and heard of nothing but a new one;
//! others are not let in.

use super::{Guest, SLEEPER};
use crate::mind::{Complaint, Mind, Said};
use wire::caps::{self, Caps};
use wire::command::Command;

/// Whether it sets a password.
pub(super) fn changes_password(text: &str) -> bool {
    text.starts_with("ALTER USER ") || text.starts_with("SET PASSWORD")
}

impl Guest {
    /// Whether this user is let in to nothing but a new password.
    pub(super) fn is_expired(&self, user: &str, caps: Caps) -> Result<bool, Complaint> {
        if user != SLEEPER || !self.server.judge.is_expired() {
            return Ok(false);
        }
        if caps::has(caps, caps::EXPIRED_PASSWORDS) {
            return Ok(true);
        }
        let words = "Your password has expired. To log in you must change it using a client that supports expired passwords.";
        Err(Complaint(1862, words.to_owned()))
    }

    /// Returns what is said to anything but a new password, where one is wanted.
    pub(super) fn wants_another_password(
        &mut self,
        command: &Command<'_>,
        mind: &mut Mind,
    ) -> Option<Complaint> {
        let text = match command {
            Command::Query(query) => String::from_utf8_lossy(query.sql).into_owned(),
            Command::Ping | Command::Close(_) => return None,
            _ => String::new(),
        };
        if !mind.sandbox || changes_password(&text) {
            return None;
        }
        self.hears(&text, mind);
        self.said_expired = true;
        self.server
            .judge
            .hit("a server that wants a new password", 1);
        let words = "You must reset your password using ALTER USER statement before executing this statement.";
        let complaint = Complaint(1820, words.to_owned());
        mind.has.begin(&text);
        mind.has.fail(&complaint);
        Some(complaint)
    }

    /// The account has a new password, and this connection does as others do.
    pub(super) fn has_new_password(&mut self, text: &str, mind: &mut Mind) -> Said {
        self.said_expired = false;
        if !self.server.mirrors {
            self.server.judge.renew();
        }
        mind.sandbox = false;
        mind.has.begin(text);
        mind.has.row_count = 0;
        Said::Ok
    }
}
