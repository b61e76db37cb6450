//! What the firewall noticed: counted, kept as a row, and told in the log. The refusal itself is an answer of the plan.

use crate::epoch::Epoch;
use crate::session::Session;
use crate::stats::{Alarmed, Raised};
use bridge::Counter;
use plan::{Action, Alarm, AnsiQuotes};
use sql::Lexing;

impl Session {
    /// Whether somebody seems to have put one of several statements behind the other: taken apart, nothing of that would be seen.
    pub(crate) fn looks_stacked(&self, epoch: &Epoch, text: &[u8]) -> bool {
        epoch.snapshot.variables.mysql_automatic_detect_sqli && sql::injection(text, self.lexing()).is_some()
    }

    /// Whether the digest of a statement shows all that a server reads, for those who learn from digests. Nothing is held against a statement because the server's
    /// mode is not known.
    pub(crate) fn is_shown(&self, epoch: &Epoch, sent: &[u8], lexing: Lexing) -> bool {
        let quotes = self.ansi_quotes();
        sql::is_shown(sent, lexing, quotes != AnsiQuotes::Unknown && quotes.may_be(), &epoch.digest)
    }

    /// `schema`: the one that it was decided by. `rewritten`: what would be sent, if that is not what the client sent. `text` is the digest's, of what the client sent.
    #[cold]
    pub(crate) fn raise(&self, epoch: &Epoch, alarm: &Alarm, schema: &str, rewritten: Option<&[u8]>, text: Option<&[u8]>) {
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
            digest: alarm.digest.unwrap_or_default(),
            action: alarm.action,
            fingerprint: alarm.fingerprint.as_deref().unwrap_or_default(),
            now_s: self.core.rt.wall_us() / 1_000_000,
        };
        let text = || {
            let mut digest = Vec::new();
            let shown = rewritten.map(|rewritten| {
                sql::digest(rewritten, &epoch.digest, &mut digest);
                &*digest
            });
            String::from_utf8_lossy(shown.or(text).unwrap_or_default()).into_owned()
        };
        let Raised { kept, told } = self.core.alarms.raise(&alarmed, text);
        if !kept {
            tally.up(Counter::FirewallAlarmsDropped);
        }
        if told {
            self.core.note(&words(&alarmed, alarm.digest));
        }
    }
}

/// ProxySQL's words, which scripts look for; the statement itself is not among them.
fn words(alarmed: &Alarmed<'_>, digest: Option<u64>) -> String {
    let digest = digest.map_or_else(|| "unknown".to_owned(), |digest| format!("0x{digest:016X}"));
    let Alarmed { user, client_address, fingerprint, .. } = alarmed;
    let unshown = if alarmed.action.shows() == Some(false) { ": a server may read what its digest does not show" } else { "" };
    match alarmed.action {
        Action::Injection => {
            format!(
                "SQLinjection detected with fingerprint of '{fingerprint}' from client {user}@{client_address} . Its digest is {digest}"
            )
        }
        Action::Blocked | Action::BlockedUnshown => {
            format!("Firewall blocked query with digest {digest} from user {user}@{client_address}{unshown}")
        }
        Action::Detected | Action::DetectedUnshown | Action::Harmless => {
            format!("Firewall detected unknown query with digest {digest} from user {user}@{client_address}{unshown}")
        }
    }
}
