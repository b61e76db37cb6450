//! The packets that end things: OK, ERR and EOF.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html>
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_err_packet.html>
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_eof_packet.html> An OK
//! begins with 0x00, or with 0xFE where it stands in the place of an EOF (CLIENT_DEPRECATE_EOF,
//! after rows); an old EOF begins with 0xFE and has 5 bytes, so it is below 9 where no row that
//! begins with 0xFE can be.

use crate::caps::{self, Caps};
use crate::read::Reader;
use crate::write::Write as _;
use crate::{Malformed, errors, status};

/// First byte of an OK packet.
pub const OK_HEADER: u8 = 0x00;
/// First byte of an EOF packet, and of an OK packet in its place.
pub const EOF_HEADER: u8 = 0xFE;
/// First byte of an ERR packet.
pub const ERR_HEADER: u8 = 0xFF;

/// Content of an OK packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ok<'a> {
    /// Rows affected (or found, with CLIENT_FOUND_ROWS).
    pub affected: u64,
    /// The first AUTO_INCREMENT value that the statement made, or 0.
    pub insert_id: u64,
    /// SERVER_STATUS_* flags.
    pub status: u16,
    /// Number of warnings.
    pub warnings: u16,
    /// Words for a person, such as "Rows matched: 1".
    pub info: &'a [u8],
    /// Session changes as they are on the wire; read them with [`crate::track::changes`].
    pub changes: &'a [u8],
}

impl<'a> Ok<'a> {
    /// Reads the payload of an OK packet, header byte 0x00 or 0xFE included.
    pub fn read(payload: &'a [u8], caps: Caps) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if !matches!(r.u8()?, OK_HEADER | EOF_HEADER) {
            return Err(Malformed::new("OK packet with another header"));
        }
        let mut ok = Self {
            affected: r.lenenc_int()?,
            insert_id: r.lenenc_int()?,
            ..Self::default()
        };
        if caps & (caps::PROTOCOL_41 | caps::TRANSACTIONS) != 0 {
            ok.status = r.u16()?;
        }
        if caps::has(caps, caps::PROTOCOL_41) {
            ok.warnings = r.u16()?;
        }
        if caps::has(caps, caps::SESSION_TRACK) {
            // A server leaves both strings out when there is nothing to say.
            if !r.is_empty() {
                ok.info = r.lenenc_bytes()?;
            }
            if ok.status & status::SESSION_STATE_CHANGED != 0 && !r.is_empty() {
                ok.changes = r.lenenc_bytes()?;
            }
        } else {
            ok.info = r.rest();
            // MySQL writes the length even for clients that know nothing of session tracking; take
            // it off when it is one.
            let mut inner = Reader::new(ok.info);
            if let Ok(text) = inner.lenenc_bytes()
                && inner.is_empty()
            {
                ok.info = text;
            }
        }
        Ok(ok)
    }

    /// Returns the packet with these session changes, which may be none.
    pub(crate) const fn with_changes<'b>(self, changes: &'b [u8]) -> Ok<'b>
    where
        'a: 'b,
    {
        let status = if changes.is_empty() {
            self.status & !status::SESSION_STATE_CHANGED
        } else {
            self.status
        };
        Ok {
            status,
            changes,
            ..self
        }
    }

    /// Writes the payload with header byte 0x00, as `caps` of the reader want it.
    pub fn write(&self, out: &mut Vec<u8>, caps: Caps) {
        self.write_as(out, OK_HEADER, caps);
    }

    /// Writes what ends the rows of a result set: an EOF packet, or with CLIENT_DEPRECATE_EOF an OK
    /// packet with header 0xFE.
    pub fn write_end(&self, out: &mut Vec<u8>, caps: Caps) {
        if caps::has(caps, caps::DEPRECATE_EOF) {
            self.write_as(out, EOF_HEADER, caps);
        } else {
            write_eof(
                out,
                self.warnings,
                self.status & !status::SESSION_STATE_CHANGED,
            );
        }
    }

    fn write_as(&self, out: &mut Vec<u8>, header: u8, caps: Caps) {
        // MySQL sets the flag for an empty list as well (COMMIT AND CHAIN).
        let changed = self.status & status::SESSION_STATE_CHANGED != 0 || !self.changes.is_empty();
        let track = caps::has(caps, caps::SESSION_TRACK) && changed;
        let mut flags = self.status & !status::SESSION_STATE_CHANGED;
        if track {
            flags |= status::SESSION_STATE_CHANGED;
        }
        out.u8(header);
        out.lenenc_int(self.affected);
        out.lenenc_int(self.insert_id);
        out.u16(flags);
        out.u16(self.warnings);
        if track {
            out.lenenc_bytes(self.info);
            out.lenenc_bytes(self.changes);
        } else if !self.info.is_empty() {
            // Every client since 5.7 reads this string with a length, and older ones were sent it
            // with one as well.
            out.lenenc_bytes(self.info);
        }
    }
}

/// Writes the payload of an old EOF packet.
pub fn write_eof(out: &mut Vec<u8>, warnings: u16, status: u16) {
    out.u8(EOF_HEADER);
    out.u16(warnings);
    out.u16(status);
}

/// Warnings and status of an old EOF packet's payload.
pub fn read_eof(payload: &[u8]) -> Result<(u16, u16), Malformed> {
    let mut r = Reader::new(payload);
    if r.u8()? != EOF_HEADER {
        return Err(Malformed::new("EOF packet with another header"));
    }
    // Before 4.1 there was nothing more; nobody else leaves it out.
    Ok((r.u16()?, r.u16()?))
}

/// Content of an ERR packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Err<'a> {
    /// Error number.
    pub code: u16,
    /// SQLSTATE.
    pub state: [u8; 5],
    /// Words for a person.
    pub message: &'a [u8],
}

impl<'a> Err<'a> {
    /// An error of ours.
    pub fn new(code: errors::Code, message: &'a str) -> Self {
        let mut state = *b"HY000";
        for (to, from) in state.iter_mut().zip(code.state.bytes()) {
            *to = from;
        }
        Self {
            code: code.number,
            state,
            message: message.as_bytes(),
        }
    }

    /// Reads the payload of an ERR packet. One without SQLSTATE (sent before the handshake, or by
    /// something old) gets the one that belongs to its number.
    pub fn read(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if r.u8()? != ERR_HEADER {
            return Err(Malformed::new("ERR packet with another header"));
        }
        let code = r.u16()?;
        let mut state = *b"HY000";
        if r.peek().first() == Some(&b'#') && r.left() >= 6 {
            r.u8()?;
            state = r.array()?;
        } else {
            state.copy_from_slice(errors::state_of(code).as_bytes());
        }
        Ok(Self {
            code,
            state,
            message: r.rest(),
        })
    }

    /// Writes the payload, with SQLSTATE.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.u8(ERR_HEADER);
        out.u16(self.code);
        out.u8(b'#');
        out.bytes(&self.state);
        out.bytes(self.message);
    }
}

/// Fuzz target: reading any payload as OK, ERR or EOF is total, and what was read can be written
/// and read again.
pub fn fuzz_ok(data: &[u8]) {
    let Some((&bits, payload)) = data.split_first() else {
        return;
    };
    let caps = caps::PROTOCOL_41
        | if bits & 1 != 0 {
            caps::SESSION_TRACK
        } else {
            0
        }
        | if bits & 2 != 0 {
            caps::DEPRECATE_EOF
        } else {
            0
        };
    if let Ok(ok) = Ok::read(payload, caps) {
        crate::track::changes(ok.changes).for_each(drop);
        let mut out = Vec::new();
        ok.write(&mut out, caps);
        let again = Ok::read(&out, caps).expect("our own packet is well formed");
        assert_eq!(
            (
                again.affected,
                again.insert_id,
                again.warnings,
                again.changes
            ),
            (ok.affected, ok.insert_id, ok.warnings, ok.changes)
        );
    }
    if let Ok(err) = Err::read(payload) {
        let mut out = Vec::new();
        err.write(&mut out);
        assert_eq!(Err::read(&out), Ok(err));
    }
    read_eof(payload).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Caps = caps::PROTOCOL_41;
    const TRACK: Caps = OLD | caps::SESSION_TRACK;

    fn written(ok: &Ok<'_>, caps: Caps) -> Vec<u8> {
        let mut out = Vec::new();
        ok.write(&mut out, caps);
        out
    }

    #[test]
    fn an_ok_is_written_as_its_reader_wants_it() {
        let ok = Ok {
            affected: 1,
            insert_id: 251,
            status: status::AUTOCOMMIT,
            warnings: 3,
            info: b"hi",
            changes: b"\x02\x02\x011",
        };
        assert_eq!(written(&ok, OLD), b"\0\x01\xfc\xfb\0\x02\0\x03\0\x02hi");
        assert_eq!(
            written(&ok, TRACK),
            b"\0\x01\xfc\xfb\0\x02\x40\x03\0\x02hi\x04\x02\x02\x011"
        );
        assert_eq!(
            Ok::read(&written(&ok, TRACK), TRACK),
            Ok(Ok {
                status: status::AUTOCOMMIT | status::SESSION_STATE_CHANGED,
                ..ok
            })
        );
        assert_eq!(
            Ok::read(&written(&ok, OLD), OLD),
            Ok(Ok { changes: b"", ..ok })
        );
        // Nothing to say: both strings are left out. A flag that promises changes needs its list,
        // be it empty.
        assert_eq!(written(&Ok::default(), TRACK), b"\0\0\0\0\0\0\0");
        let plain = Ok {
            status: status::SESSION_STATE_CHANGED,
            ..Ok::default()
        };
        assert_eq!(written(&plain, TRACK), b"\0\0\0\0\x40\0\0\0\0");
        assert_eq!(written(&plain, OLD), b"\0\0\0\0\0\0\0");
    }

    #[test]
    fn words_without_a_length_are_read_as_old_servers_send_them() {
        assert_eq!(
            Ok::read(b"\0\0\0\x02\0\0\0hello", OLD).map(|o| o.info),
            Ok(&b"hello"[..])
        );
        assert_eq!(
            Ok::read(b"\0\0\0\x02\0\0\0\x05hello", OLD).map(|o| o.info),
            Ok(&b"hello"[..])
        );
    }

    #[test]
    fn an_err_has_its_state_even_when_it_was_sent_without_one() {
        let err = Err::new(errors::ACCESS_DENIED, "no");
        let mut out = Vec::new();
        err.write(&mut out);
        assert_eq!(out, b"\xff\x15\x04#28000no");
        assert_eq!(Err::read(&out), Ok(err));
        assert_eq!(Err::read(b"\xff\x15\x04no"), Ok(err));
        assert_eq!(
            Err::read(b"\xff\x10\x04Too many connections").map(|e| e.state),
            Ok(*b"08004")
        );
        assert!(Err::read(b"\xff\x10").is_err());
    }

    #[test]
    fn truncated_packets_are_refused_at_every_length() {
        let ok = written(
            &Ok {
                affected: 300,
                info: b"hi",
                changes: b"\x02\x02\x011",
                ..Ok::default()
            },
            TRACK,
        );
        // After the fixed part the strings may be missing, but not half there.
        let fine: Vec<usize> = (0..=ok.len())
            .filter(|n| Ok::read(&ok[..*n], TRACK).is_ok())
            .collect();
        assert_eq!(fine, [9, 12, ok.len()]);
    }

    #[test]
    fn an_eof_has_warnings_before_status() {
        let mut out = Vec::new();
        write_eof(&mut out, 1, 2);
        assert_eq!(out, b"\xfe\x01\0\x02\0");
        assert_eq!(read_eof(&out), Ok((1, 2)));
    }
}
