//! The firewall: statements that none of its rules name, and statements that look like an
//! injection.

use crate::trace::Trace;
use crate::{Answer, By, Case, Guarded, Plan};
use config::Mode;
use sql::Shape;
use std::sync::Arc;

/// Alarm of the firewall about a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// Action that the firewall took.
    pub action: Action,
    /// By what it looks like an injection; one that is let through has a fingerprint that the
    /// operator has called harmless.
    pub fingerprint: Option<Box<str>>,
    /// The flag with which the chain ended: a rule of the firewall would have to name it.
    pub flag: u32,
    /// The digest of what would be sent, as [`sql::Shape`] has it: a rule of the firewall would
    /// have to name it.
    pub digest: u64,
}

impl Alarm {
    /// Returns what the firewall knows the statement by, if it has looked whether that is all that
    /// a server reads.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        self.action.shows().map(|is_shown| Shape {
            digest: self.digest,
            is_shown,
        })
    }
}

/// Knowledge of whether `ANSI_QUOTES` is in a session's `sql_mode`: whether double quotes make a
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsiQuotes<'a> {
    /// A server has said that it is.
    Told,
    /// The session has set its `sql_mode` to this.
    Written(&'a str),
    /// Nothing, but the server is asked before it gets the statement, which it does not get if it
    /// is.
    Asked,
    /// Nothing.
    Unknown,
}

/// The modes of MariaDB and MySQL that are `ANSI_QUOTES` or imply it.
const QUOTING_MODES: [&str; 6] = ["ANSI", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL"];

impl AnsiQuotes<'_> {
    /// Whether double quotes may make a name.
    #[must_use]
    pub fn may_be(self) -> bool {
        match self {
            // Of a number or an expression, nothing is known.
            Self::Written(mode) => {
                let mode = mode.to_ascii_uppercase();
                !mode.starts_with(['\'', '"'])
                    || QUOTING_MODES.iter().any(|name| mode.contains(name))
            }
            Self::Told | Self::Unknown => true,
            Self::Asked => false,
        }
    }
}

/// Action that the firewall took on a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// No rule names it, and it was let through: the user's mode is DETECTING.
    Detected,
    /// No rule can name it, since a server may read what its digest does not show, and it was let
    /// through.
    DetectedUnshown,
    /// No rule names it, and it was refused.
    Blocked,
    /// No rule can name it, and it was refused.
    BlockedUnshown,
    /// The statement looks like an injection, and was refused.
    Injection,
    /// The statement looks like an injection, but its fingerprint is harmless.
    Harmless,
}

impl Action {
    /// As tables spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Detected => "detected",
            Self::DetectedUnshown => "detected_unshown",
            Self::Blocked => "blocked",
            Self::BlockedUnshown => "blocked_unshown",
            Self::Injection => "injection",
            Self::Harmless => "harmless",
        }
    }

    /// Whether the client was refused.
    #[must_use]
    pub const fn refuses(self) -> bool {
        matches!(self, Self::Blocked | Self::BlockedUnshown | Self::Injection)
    }

    /// Whether its digest shows all that a server reads, so that a rule could name it; `None` if
    /// nobody has looked.
    #[must_use]
    pub const fn shows(self) -> Option<bool> {
        match self {
            Self::Detected | Self::Blocked => Some(true),
            Self::DetectedUnshown | Self::BlockedUnshown => Some(false),
            Self::Injection | Self::Harmless => None,
        }
    }

    /// Returns what is done in a mode about what no rule names.
    #[must_use]
    pub const fn of_unlisted(mode: Mode, is_shown: bool) -> Option<Self> {
        match (mode, is_shown) {
            (Mode::Off, _) => None,
            (Mode::Detecting, true) => Some(Self::Detected),
            (Mode::Detecting, false) => Some(Self::DetectedUnshown),
            (Mode::Protecting, true) => Some(Self::Blocked),
            (Mode::Protecting, false) => Some(Self::BlockedUnshown),
        }
    }
}

/// While it is off, this is all of it.
#[inline]
pub(crate) fn guard<T: Trace>(plan: &mut Plan, case: Case<'_>, flag: u32, trace: &mut T) {
    let v = &case.snapshot.variables;
    if v.mysql_firewall_whitelist_enabled | v.mysql_automatic_detect_sqli {
        look(plan, case, flag, trace);
    }
}

/// Whoever may run it is not asked whether it looks like an injection.
#[inline(never)]
fn look<T: Trace>(plan: &mut Plan, case: Case<'_>, flag: u32, trace: &mut T) {
    let Case {
        snapshot,
        session,
        statement,
    } = case;
    let v = &snapshot.variables;
    if matches!(statement.guarded, Guarded::Nothing | Guarded::Schema) {
        return;
    }
    let sent = statement
        .prepared
        .or_else(|| plan.remade())
        .unwrap_or(statement.text);
    let (mut unlisted, mut known) = (None, None);
    if v.mysql_firewall_whitelist_enabled {
        match listed(case, flag, sent, trace) {
            Listed::Yes => return,
            Listed::No { mode, shape } => {
                (unlisted, known) = (Action::of_unlisted(mode, shape.is_shown), Some(shape))
            }
        }
    }
    let fingerprint = if v.mysql_automatic_detect_sqli && statement.guarded == Guarded::Text {
        sql::injection(statement.text, session.split.lexing)
    } else {
        None
    };
    let harmless = fingerprint
        .as_deref()
        .is_some_and(|print| snapshot.firewall.is_harmless(print));
    if let Some(print) = &fingerprint {
        trace.saw("firewall", || {
            let but = if harmless {
                ", but that fingerprint is in mysql_firewall_whitelist_sqli_fingerprints"
            } else {
                ""
            };
            format!("it looks like an injection, fingerprint {print}{but}")
        });
    }
    let action = match unlisted {
        _ if fingerprint.is_some() && !harmless => Action::Injection,
        Some(action) => action,
        None if harmless => Action::Harmless,
        None => return,
    };
    let digest = known.unwrap_or_else(|| shape(case, sent)).digest;
    // What a rule answers reaches no server either. Only an injection gets no answer but this.
    if action == Action::Injection || action.refuses() && plan.answer.is_none() {
        plan.send_to(session.user.default_hostgroup, By::Firewall);
        plan.answer = Some(Answer::Refuse(Arc::from(
            &*v.mysql_firewall_whitelist_errormsg,
        )));
    }
    plan.alarm = Some(Box::new(Alarm {
        action,
        fingerprint: fingerprint.map(Into::into),
        flag,
        digest,
    }));
}

/// Whether a statement may run.
enum Listed {
    /// A rule names it, or the user's mode is OFF.
    Yes,
    No {
        mode: Mode,
        shape: Shape,
    },
}

/// A user without a row may run what rules name.
fn listed<T: Trace>(case: Case<'_>, flag: u32, sent: &[u8], trace: &mut T) -> Listed {
    let Case {
        snapshot, session, ..
    } = case;
    let firewall = &snapshot.firewall;
    let user = &*session.user.username;
    let row = firewall.mode(user, session.client_addr);
    let (mode, client) = row.unwrap_or((Mode::Protecting, ""));
    let whose = || match row {
        Some((mode, client)) => format!(
            "user '{user}', client_address '{client}' is {}",
            mode.name()
        ),
        None => format!(
            "user '{user}' has no row in mysql_firewall_whitelist_users, which is PROTECTING"
        ),
    };
    if mode == Mode::Off {
        trace.saw("firewall", whose);
        return Listed::Yes;
    }
    let shape = shape(case, sent);
    let named = firewall.allows(user, client, session.schema, flag, shape.digest);
    // A digest says what runs only where a server reads nothing else.
    let allowed = named && shape.is_shown;
    trace.saw("firewall", || {
        let key = format!(
            "schemaname '{}', flagIN {flag}, digest 0x{:016X}",
            session.schema, shape.digest
        );
        let is = if named { "is" } else { "is not" };
        let but = if named && !allowed {
            ", but a server may read what the digest does not show"
        } else {
            ""
        };
        format!(
            "{}; for client_address '{client}', {key} {is} in mysql_firewall_whitelist_rules{but}",
            whose()
        )
    });
    if allowed {
        Listed::Yes
    } else {
        Listed::No { mode, shape }
    }
}

/// Rules of the firewall name what is sent, if a rule has rewritten it: that is what the statistics
/// count, too, but by digests that options change.
fn shape(
    Case {
        session, statement, ..
    }: Case<'_>,
    sent: &[u8],
) -> Shape {
    match statement.guarded {
        Guarded::Shape(shape) => shape,
        Guarded::Text | Guarded::Nothing | Guarded::Schema => sql::shape(
            sent,
            session.split.lexing,
            session.split.ansi_quotes.may_be(),
            &mut Vec::new(),
        ),
    }
}
