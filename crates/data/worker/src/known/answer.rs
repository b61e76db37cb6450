//! Answers that we give ourselves.

use backend::BackendFailed;
use bridge::Failure;
use wire::caps::Caps;
use wire::errors::Code;
use wire::{errors, ok, packet, status};

/// An error for the client.
#[derive(Debug, Clone)]
pub(crate) struct Complaint {
    pub(crate) code: u16,
    pub(crate) state: [u8; 5],
    pub(crate) words: String,
}

impl Complaint {
    pub(crate) fn new(code: Code, words: impl Into<String>) -> Self {
        Self::with(code.number, code.state, words)
    }

    pub(crate) fn with(code: u16, state: &str, words: impl Into<String>) -> Self {
        let mut five = *b"HY000";
        if state.len() == 5 {
            five.copy_from_slice(state.as_bytes());
        }
        Self {
            code,
            state: five,
            words: words.into(),
        }
    }

    /// Words of a failure.
    pub(crate) fn of(failure: &impl Failure) -> Self {
        let (code, sqlstate, words) = failure.to_client();
        Self::with(code, sqlstate, words)
    }

    /// Error 1317, for a statement that somebody has ended.
    pub(crate) fn interrupted() -> Self {
        Self::new(errors::QUERY_INTERRUPTED, "Query execution was interrupted")
    }

    /// Whether its number is one that client libraries say themselves. They do so when a connection
    /// is closed.
    pub(crate) fn is_of_libraries(&self) -> bool {
        (2000..3000).contains(&self.code)
    }

    /// Words for a program with MariaDB's client library whose session goes on: that library takes
    /// such a number for a malformed packet. There it has the number of a connection that broke.
    pub(crate) fn for_libmariadb(&self) -> Self {
        if self.is_of_libraries() {
            Self::new(errors::NET_READ, self.words.as_str())
        } else {
            self.clone()
        }
    }

    /// Appends it as packet `seq`.
    pub(crate) fn append(&self, out: &mut Vec<u8>, mut seq: u8) {
        packet::append_with(out, &mut seq, |payload| {
            ok::Err {
                code: self.code,
                state: self.state,
                message: self.words.as_bytes(),
            }
            .write(payload);
        });
    }
}

/// How far the answer to a command has got: several statements of one text are answered one after
/// another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// Number of the last packet that the client was sent; if it was sent none, of the last that it
    /// has sent.
    pub(crate) sent: u8,
    /// The answer to another statement follows.
    pub(crate) more: bool,
    /// The last statement was answered with an error.
    pub(crate) failed: bool,
}

impl Turn {
    /// Of a command with so many bytes of payload.
    pub(crate) const fn after(len: usize) -> Self {
        Self {
            sent: packet::last_seq(len),
            more: false,
            failed: false,
        }
    }

    /// One statement, one answer.
    pub(crate) const fn is_first_and_last(self) -> bool {
        self.sent == 0 && !self.more
    }

    /// Number of the next packet.
    pub(crate) const fn next(self) -> u8 {
        self.sent.wrapping_add(1)
    }

    /// SERVER_STATUS_* flags of an answer.
    pub(crate) const fn flags(self) -> u16 {
        if self.more { status::MORE_RESULTS } else { 0 }
    }
}

/// An ERR packet as packet `seq`, for the wire.
pub(crate) fn error(seq: u8, complaint: &Complaint) -> Vec<u8> {
    let mut framed = Vec::with_capacity(packet::HEADER_LEN + 16 + complaint.words.len());
    complaint.append(&mut framed, seq);
    framed
}

/// An OK packet as packet `seq`, for the wire.
pub(crate) fn ok(mut seq: u8, caps: Caps, flags: u16, info: &str) -> Vec<u8> {
    let ok = ok::Ok {
        affected: 0,
        insert_id: 0,
        status: flags,
        warnings: 0,
        info: info.as_bytes(),
        changes: &[],
    };
    let mut framed = Vec::with_capacity(packet::HEADER_LEN + 16 + info.len());
    packet::append_with(&mut framed, &mut seq, |payload| ok.write(payload, caps));
    framed
}

/// An OK packet as packet `seq` that tells of these session changes, and of so many warnings, for
/// the wire.
pub(crate) fn ok_with(
    mut seq: u8,
    caps: Caps,
    flags: u16,
    (changes, warnings): (&[u8], u16),
) -> Vec<u8> {
    let status = if changes.is_empty() {
        flags
    } else {
        flags | status::SESSION_STATE_CHANGED
    };
    let ok = ok::Ok {
        status,
        changes,
        warnings,
        ..ok::Ok::default()
    };
    let mut framed = Vec::with_capacity(packet::HEADER_LEN + 16 + changes.len());
    packet::append_with(&mut framed, &mut seq, |payload| ok.write(payload, caps));
    framed
}

/// An EOF packet, or what stands for it, as the whole answer.
pub(crate) fn eof(caps: Caps, flags: u16) -> Vec<u8> {
    let mut framed = Vec::with_capacity(packet::HEADER_LEN + 8);
    packet::append_with(&mut framed, &mut 1, |payload| {
        ok::Ok {
            status: flags,
            ..ok::Ok::default()
        }
        .write_end(payload, caps)
    });
    framed
}

/// Flags of a session that is in no transaction.
pub(crate) const fn flags(autocommit: bool) -> u16 {
    if autocommit { status::AUTOCOMMIT } else { 0 }
}

pub(crate) fn killed() -> Complaint {
    Complaint::new(
        errors::QUERY_INTERRUPTED,
        "The session was ended by the proxy's operator",
    )
}

pub(crate) fn going_down() -> Complaint {
    Complaint::with(1053, "08S01", "Server shutdown in progress")
}

/// For a client that has lost something, and waits for nothing just now.
pub(crate) fn cut_off() -> Complaint {
    Complaint::of(&BackendFailed::CutOff)
}
