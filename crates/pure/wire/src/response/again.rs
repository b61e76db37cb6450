//! Answers to a statement that was answered before: what stands before their rows is the same bytes
//! again, and only rows and their end are looked at.

use super::{Expect, Follow, Form, Next, Recode, Response, Said};
use crate::caps::{self, Caps};
use crate::packet::{self, HEADER_LEN, MAX_PAYLOAD};
use crate::{ok, status};

/// Bytes before the rows that are remembered at most.
const HEAD_LEN_MAX: usize = 1 << 10;
/// Payload of an end that says flags and warnings only: header, affected rows, insert id, flags,
/// warnings.
const END_LEN: usize = 7;
/// Length of an EOF packet.
const EOF_LEN: usize = HEADER_LEN + 5;

/// Beginning of a result up to its rows, as a server has sent it and as a client has got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    server: Caps,
    client: Caps,
    columns: u32,
    came: Box<[u8]>,
    /// Bytes for the client; the EOF behind the definitions, if it wants one, is the last packet.
    written: Box<[u8]>,
}

/// Answer of which everything is known.
#[derive(Debug)]
pub struct Again {
    /// As if it had been followed.
    pub response: Response,
    /// Number of the last packet that the client gets.
    pub last_seq: u8,
    /// Bytes for the client, if not those that came.
    pub out: Option<Vec<u8>>,
}

/// Where the packets of a beginning end: its number of columns, then as many definitions.
fn end_of(bytes: &[u8], packets: u32) -> Option<usize> {
    (0..packets).try_fold(0, |at, _| {
        let (len, _) = packet::whole(bytes.get(at..)?)?;
        (len < MAX_PAYLOAD).then_some(at + HEADER_LEN + len)
    })
}

/// Whether the rows of such an answer end in an EOF for a client.
const fn wants_eof(client: Caps) -> bool {
    !caps::has(client, caps::DEPRECATE_EOF)
}

impl Head {
    /// The beginning of an answer that was whole in `came`, of which the client with these caps got
    /// `out`. `None` if there are no rows, definitions were left out, it is long, or
    /// there were warnings.
    pub fn of(
        response: &Response,
        (server, client): (Caps, Caps),
        came: &[u8],
        out: &[u8],
    ) -> Option<Self> {
        let is_usual = caps::has(server, caps::DEPRECATE_EOF)
            && response.columns() > 0
            && response.results() == 1
            // An EOF before rows says them, too.
            && response.warnings() == 0
            && !response.is_bare();
        if !is_usual {
            return None;
        }
        let columns = response.columns();
        let end = end_of(came, columns.checked_add(1)?)?;
        let eof = u32::from(wants_eof(client));
        let written = end_of(out, columns.checked_add(1 + eof)?)?;
        (end <= HEAD_LEN_MAX).then(|| Self {
            server,
            client,
            columns,
            came: came[..end].into(),
            written: out[..written].into(),
        })
    }

    /// Columns of the result.
    pub const fn columns(&self) -> u32 {
        self.columns
    }

    /// The answer, if all of it came, begins so, and ends with flags only. `before`: the connection's
    /// flags before the command, for an EOF that the server does not send ([`super::Recode::expect`]).
    pub fn answer(
        &self,
        expect: Expect,
        (server, client): (Caps, Caps),
        came: &[u8],
        before: u16,
    ) -> Option<Again> {
        let rows = came.strip_prefix(&*self.came)?;
        if server != self.server || client != self.client {
            return None;
        }
        let (ends, count, last) = rows_end(rows, self.columns)?;
        let payload: &[u8; END_LEN] = rows.get(ends + HEADER_LEN..)?.first_chunk()?;
        let [ok::EOF_HEADER, 0, 0, f0, f1, 0, 0] = *payload else {
            return None;
        };
        let flags = u16::from_le_bytes([f0, f1]);
        let says_more = flags
            & (status::SESSION_STATE_CHANGED
                | status::MORE_RESULTS
                | status::CURSOR_EXISTS
                | status::PS_OUT_PARAMS);
        if says_more != 0 {
            return None;
        }
        let mut response = Response::expect(expect, server);
        response.next = Next::Ended;
        response.form = Form::End;
        response.next_seq = u16::from(last.wrapping_add(1));
        response.said = Said {
            status: flags,
            status_known: true,
            rows: count,
            columns: self.columns,
            results: 1,
            ..Said::default()
        };
        let (out, last_seq) = match wants_eof(client) {
            false if self.came == self.written => (None, last),
            false => {
                let mut out = Vec::with_capacity(self.written.len() + rows.len());
                out.extend_from_slice(&self.written);
                out.extend_from_slice(rows);
                (Some(out), last)
            }
            true => {
                let out = self.with_eofs(&rows[..ends], (before, flags), last);
                (Some(out), last.wrapping_add(1))
            }
        };
        Some(Again {
            response,
            last_seq,
            out,
        })
    }

    /// Written with an EOF before the rows and one behind them. `last`: the number of the server's
    /// last packet.
    fn with_eofs(&self, rows: &[u8], (before, behind): (u16, u16), last: u8) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.written.len() + rows.len() + EOF_LEN);
        out.extend_from_slice(&self.written);
        if let Some(flags) = out.last_chunk_mut::<2>() {
            *flags = before.to_le_bytes();
        }
        let mut at = out.len();
        out.extend_from_slice(rows);
        while let Some(header) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            let (len, seq) = packet::header(header);
            header[3] = seq.wrapping_add(1);
            at += HEADER_LEN + len;
        }
        let [f0, f1] = behind.to_le_bytes();
        let [e0, e1, e2, e3] = packet::make_header(EOF_LEN - HEADER_LEN, last.wrapping_add(1));
        out.extend_from_slice(&[e0, e1, e2, e3, ok::EOF_HEADER, 0, 0, f0, f1]);
        out
    }
}

impl Again {
    /// The answer to a statement without rows, if it is one OK packet that tells of no session change
    /// and says the same to every client. `sent`: the number of the command's last packet.
    pub fn ok(expect: Expect, server: Caps, came: &[u8], sent: u8) -> Option<Self> {
        let (header, payload) = came.split_first_chunk::<HEADER_LEN>()?;
        let (len, seq) = packet::header(header);
        let is_one = len == payload.len() && seq == sent.wrapping_add(1);
        if !is_one || payload.first() != Some(&ok::OK_HEADER) {
            return None;
        }
        let said = ok::Ok::read(payload, server).ok()?;
        let says_more = status::SESSION_STATE_CHANGED | status::MORE_RESULTS;
        let is_plain = said.status & says_more == 0 && said.changes.is_empty();
        let bare = 5 + lenenc_len(said.affected) + lenenc_len(said.insert_id);
        let words = match said.info.len() {
            0 => 0,
            len => lenenc_len(len as u64) + len,
        };
        if !is_plain || payload.len() != bare + words {
            return None;
        }
        let mut response = Response::expect(expect, server);
        response.next = Next::Ended;
        response.form = Form::Ok;
        response.next_seq = u16::from(seq.wrapping_add(1));
        if words > 0 {
            response.keep(payload);
        }
        response.said = Said {
            status: said.status,
            status_known: true,
            warnings: said.warnings,
            affected_last: said.affected,
            affected_rows: said.affected,
            insert_id_last: said.insert_id,
            insert_id: said.insert_id,
            results: 1,
            ..Said::default()
        };
        Some(Self {
            response,
            last_seq: seq,
            out: None,
        })
    }
}

/// Bytes that a number takes as MySQL writes it: with its length in front if it is large.
const fn lenenc_len(n: u64) -> usize {
    match n {
        0..=0xfa => 1,
        0xfb..=0xffff => 3,
        0x1_0000..=0xff_ffff => 4,
        _ => 9,
    }
}

/// Where the packet begins that ends the rows and is the last of these bytes, how many rows there
/// are, and its number.
fn rows_end(rows: &[u8], columns: u32) -> Option<(usize, u64, u8)> {
    let (mut at, mut count, mut next) = (0, 0, (columns as u8).wrapping_add(2));
    loop {
        let &[a, b, c, seq, first] = rows.get(at..)?.first_chunk()?;
        let len = u32::from_le_bytes([a, b, c, 0]) as usize;
        if seq != next || len == 0 || len == MAX_PAYLOAD {
            return None;
        }
        if first >= ok::EOF_HEADER {
            let is_end = len == END_LEN && at + HEADER_LEN + len == rows.len();
            return is_end.then_some((at, count, seq));
        }
        (at, count, next) = (at + HEADER_LEN + len, count + 1, seq.wrapping_add(1));
    }
}

/// Fuzz target: an answer that is told by how it begins is the one that [`super::Recode`] writes. The first byte
/// chooses the client's caps, the second which byte of the answer is another the second time.
pub fn fuzz_again(data: &[u8]) {
    let [kind, at, bytes @ ..] = data else {
        return;
    };
    let server = caps::PROTOCOL_41 | caps::DEPRECATE_EOF | caps::SESSION_TRACK;
    let client = caps::PROTOCOL_41
        | if kind & 1 != 0 {
            caps::DEPRECATE_EOF
        } else {
            0
        };
    let expect = if kind & 2 != 0 {
        Expect::Execute
    } else {
        Expect::Query
    };
    let before = u16::from(*kind) >> 2;
    let written = |came: &[u8]| {
        let mut recode = Recode::expect(expect, server, client, before).to_packet(0);
        let mut out = Vec::new();
        let followed = recode.follow(came, &mut out).ok()?;
        let is_whole = matches!(followed, Follow::Ended { used } if used == came.len());
        is_whole.then_some((recode, out))
    };
    let same = |came: &[u8], again: &Again| {
        let (anew, out) = written(came).expect("an answer that is whole");
        assert_eq!(again.out.as_deref().unwrap_or(came), out);
        let said = |response: &Response| {
            let numbers = (response.rows(), response.columns(), response.results());
            let flags = (response.status(), response.warnings(), response.last_seq());
            let changed = (response.affected_rows(), response.insert_id());
            let tail = format!("{:?}", response.tail());
            (numbers, flags, changed, tail, response.is_ended())
        };
        assert_eq!(said(&again.response), said(anew.response()));
        assert_eq!(again.last_seq, anew.last_seq());
    };
    if let Some(again) = Again::ok(expect, server, bytes, 0) {
        same(bytes, &again);
    }
    let Some((first, out)) = written(bytes) else {
        return;
    };
    let Some(head) = Head::of(first.response(), (server, client), bytes, &out) else {
        return;
    };
    let mut other = bytes.to_vec();
    if let Some(byte) = other.get_mut(usize::from(*at)) {
        *byte ^= kind.rotate_left(3);
    }
    for came in [bytes, &other] {
        let Some(again) = head.answer(expect, (server, client), came, before) else {
            continue;
        };
        same(came, &again);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resultset::{Column, Writer};

    const SERVER: Caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF | caps::SESSION_TRACK;

    fn rows(name: &str, rows: &[&str], flags: u16, warnings: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, 0, SERVER, flags);
        writer.columns(&[Column::integer(name), Column::integer("n")]);
        for row in rows {
            writer.text_row([Some(row.as_bytes()), None]);
        }
        writer.end(warnings);
        bytes
    }

    fn written(came: &[u8], client: Caps) -> (Recode, Vec<u8>) {
        let mut recode = Recode::expect(Expect::Query, SERVER, client, 0x401).to_packet(0);
        let mut out = Vec::new();
        recode.follow(came, &mut out).unwrap();
        (recode, out)
    }

    #[test]
    fn an_answer_that_begins_as_before_is_the_one_that_is_written_packet_by_packet() {
        for client in [SERVER, caps::PROTOCOL_41] {
            let first = rows("a", &["1"], 2, 0);
            let (recode, out) = written(&first, client);
            let head = Head::of(recode.response(), (SERVER, client), &first, &out).unwrap();
            let answer = |came: &[u8]| head.answer(Expect::Query, (SERVER, client), came, 0x401);
            let many = vec!["x"; 600];
            for (came, flags) in [(&[][..], 2), (&["1"], 2), (&["22", "4"], 3), (&many, 0x22)] {
                let came = rows("a", came, flags, 0);
                let again = answer(&came).unwrap_or_else(|| panic!("{} {came:?}", head.came.len()));
                let (recode, out) = written(&came, client);
                assert_eq!(again.out.unwrap_or(came), out);
                assert_eq!(again.last_seq, recode.last_seq());
                assert_eq!(again.response.status(), flags);
                assert_eq!(again.response.rows(), recode.response().rows());
            }
            // Another name, warnings, another result to come, or not all of it.
            assert!(answer(&rows("b", &["1"], 2, 0)).is_none());
            assert!(answer(&rows("a", &["1"], 2, 1)).is_none());
            assert!(answer(&rows("a", &["1"], 2 | status::MORE_RESULTS, 0)).is_none());
            assert!((0..first.len()).all(|end| answer(&first[..end]).is_none()));
            let behind = [&first[..], &[0]].concat();
            assert!(answer(&behind).is_none());
            let caps = (SERVER | caps::FOUND_ROWS, client);
            assert!(head.answer(Expect::Query, caps, &first, 2).is_none());
        }
    }

    #[test]
    fn an_ok_that_tells_of_no_change_is_the_one_that_is_written_anew() {
        let write = |ok: ok::Ok<'_>| {
            let mut came = Vec::new();
            packet::append_with(&mut came, &mut 1, |out| ok.write(out, SERVER));
            came
        };
        let ok = ok::Ok {
            affected: 300,
            insert_id: 70_000,
            status: 3,
            warnings: 2,
            ..ok::Ok::default()
        };
        for ok in [
            ok,
            ok::Ok {
                info: b"Rows matched: 1  Changed: 1  Warnings: 0",
                ..ok
            },
        ] {
            let came = write(ok);
            let again = Again::ok(Expect::Query, SERVER, &came, 0).unwrap();
            let (recode, out) = written(&came, caps::PROTOCOL_41);
            assert_eq!((again.out, out), (None, came.clone()));
            assert_eq!(again.last_seq, recode.last_seq());
            assert_eq!(again.response.tail(), recode.response().tail());
            assert_eq!(again.response.affected_rows(), 300);
            assert_eq!(again.response.insert_id(), 70_000);
            assert_eq!(again.response.row_count(), recode.response().row_count());
            assert!(
                (0..came.len())
                    .all(|end| { Again::ok(Expect::Query, SERVER, &came[..end], 0).is_none() })
            );
            assert!(Again::ok(Expect::Query, SERVER, &came, 1).is_none());
        }
        let more = write(ok::Ok {
            status: status::MORE_RESULTS,
            ..ok
        });
        assert!(Again::ok(Expect::Query, SERVER, &more, 0).is_none());
        let changed = write(ok::Ok {
            status: status::SESSION_STATE_CHANGED,
            changes: &[1, 3, 2, b'd', b'b'],
            ..ok
        });
        assert!(Again::ok(Expect::Query, SERVER, &changed, 0).is_none());
    }

    #[test]
    fn what_has_no_rows_or_is_long_or_warns_is_not_remembered() {
        let warned = rows("n", &["1"], 2, 1);
        let (recode, out) = written(&warned, caps::PROTOCOL_41);
        let caps = (SERVER, caps::PROTOCOL_41);
        assert!(Head::of(recode.response(), caps, &warned, &out).is_none());
        let long = rows(&"n".repeat(HEAD_LEN_MAX), &[], 2, 0);
        let (recode, out) = written(&long, SERVER);
        assert!(Head::of(recode.response(), (SERVER, SERVER), &long, &out).is_none());
        let ok = [7, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
        let (recode, out) = written(&ok, SERVER);
        assert!(Head::of(recode.response(), (SERVER, SERVER), &ok, &out).is_none());
    }
}
