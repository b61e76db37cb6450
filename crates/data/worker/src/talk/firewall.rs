//! What the firewall noticed: counted, kept as a row, and told in the log. The refusal itself is an
//! answer of the plan.

use crate::known::epoch::Epoch;
use crate::seen::stats::{Alarmed, Raised};
use crate::session::Session;
use bridge::Counter;
use plan::{Action, Alarm, AnsiQuotes};
use sql::{DigestOptions, Lexing, Shape};

impl Session {
    /// Whether somebody seems to have put one of several statements behind the other: taken apart,
    /// nothing of that would be seen.
    pub(crate) fn looks_stacked(&self, epoch: &Epoch, text: &[u8]) -> bool {
        epoch.snapshot.variables.mysql_automatic_detect_sqli
            && sql::injection(text, self.lexing()).is_some()
    }

    /// Returns the shape by which the firewall knows a statement, for those who learn from digests.
    /// Nothing is held against a statement because the server's mode is not known.
    pub(crate) fn shape(&self, sent: &[u8], lexing: Lexing) -> Shape {
        let quotes = self.ansi_quotes();
        sql::shape(
            sent,
            lexing,
            quotes != AnsiQuotes::Unknown && quotes.may_be(),
            &mut Vec::new(),
        )
    }

    /// `schema`: the one that it was decided by. `sent`: what would be sent.
    #[cold]
    pub(crate) fn raise(&self, epoch: &Epoch, alarm: &Alarm, schema: &str, sent: &[u8]) {
        let tally = &self.core.tally;
        let counter = match alarm.action {
            Action::Detected | Action::DetectedUnshown => Some(Counter::FirewallDetected),
            Action::Blocked | Action::BlockedUnshown => Some(Counter::FirewallBlocked),
            Action::Injection => Some(Counter::AutomaticDetectedSqlInjection),
            Action::Harmless => None,
        };
        if let Some(counter) = counter {
            tally.up(counter);
        }
        if alarm.fingerprint.is_some() && alarm.action != Action::Injection {
            tally.up(Counter::WhitelistedSqliFingerprint);
        }
        if alarm.action == Action::Harmless {
            return;
        }
        let alarmed = Alarmed {
            user: &self.user_name,
            client_address: &self.entry.client.0,
            schema,
            flag: alarm.flag,
            digest: alarm.digest,
            action: alarm.action,
            fingerprint: alarm.fingerprint.as_deref().unwrap_or_default(),
            now_s: self.core.rt.wall_us() / 1_000_000,
        };
        let text = || {
            let mut digest = Vec::new();
            sql::digest(sent, &DigestOptions::WHOLE, &mut digest);
            // For people. Rows are bounded by their number, so they may not be long.
            digest.truncate(epoch.digest.max_digest_length);
            String::from_utf8_lossy(&digest).into_owned()
        };
        let Raised { kept, told } = self.core.alarms.raise(&alarmed, text);
        if !kept {
            tally.up(Counter::FirewallAlarmsDropped);
        }
        if told {
            self.core.note(&words(&alarmed));
        }
    }
}

/// ProxySQL's words, which scripts look for; the statement itself is not among them.
fn words(alarmed: &Alarmed<'_>) -> String {
    let Alarmed {
        user,
        client_address,
        fingerprint,
        digest,
        ..
    } = alarmed;
    let digest = format!("0x{digest:016X}");
    let unshown = if alarmed.action.shows() == Some(false) {
        ": a server may read what its digest does not show"
    } else {
        ""
    };
    match alarmed.action {
        Action::Injection => {
            format!(
                "SQLinjection detected with fingerprint of '{fingerprint}' from client {user}@{client_address} . Its digest is {digest}"
            )
        }
        Action::Blocked | Action::BlockedUnshown => {
            format!(
                "Firewall blocked query with digest {digest} from user {user}@{client_address}{unshown}"
            )
        }
        Action::Detected | Action::DetectedUnshown | Action::Harmless => {
            format!(
                "Firewall detected unknown query with digest {digest} from user {user}@{client_address}{unshown}"
            )
        }
    }
}
