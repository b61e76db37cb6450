//! A statement is prepared as another one, whose parameters are the first one's: in another order,
//! repeated, or without some of them.
//!
//! The client goes on with its own statement: it is told of its own parameters, and its executions
//! are bound to those of the other.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_prepare.html>
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html>

use crate::caps::{self, Caps};
use crate::execute::{Parts, skip_value};
use crate::packet::{self, HEADER_LEN};
use crate::read::Reader;
use crate::resultset::Column;
use crate::types::Type;
use crate::write::Write as _;
use crate::{Malformed, ok};

/// Which parameter of the statement before each parameter of the statement behind is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    before: u16,
    from: Box<[u16]>, // each < before
}

/// Where the number of parameters lies in the first payload of an answer to COM_STMT_PREPARE.
const PARAMS_AT: std::ops::Range<usize> = 7..9;
/// Where it says whether definitions follow, for a client with
/// `CLIENT_OPTIONAL_RESULTSET_METADATA`.
const FOLLOWS_AT: usize = 12;

impl Moved {
    /// Of a statement with `before` parameters; `from` has one of them for each parameter behind.
    /// `None` if all are where they were, or one is not there at all.
    #[must_use]
    pub fn new(before: u16, from: &[u16]) -> Option<Self> {
        let stay = from.len() == usize::from(before)
            && (0..before).zip(from).all(|(at, from)| at == *from);
        let known = from.iter().all(|from| *from < before) && u16::try_from(from.len()).is_ok();
        (known && !stay).then(|| Self {
            before,
            from: from.into(),
        })
    }

    /// Parameters before: those that the client knows.
    #[must_use]
    pub const fn before(&self) -> u16 {
        self.before
    }

    /// For each parameter behind, which one before it is.
    #[must_use]
    pub fn from(&self) -> &[u16] {
        &self.from
    }

    /// The answer to COM_STMT_PREPARE as somebody gets it who has prepared the statement before.
    /// `answer`: whole packets for a client with these caps. `status`: SERVER_STATUS_* flags of an
    /// EOF that the server did not send.
    ///
    /// # Errors
    /// It is not the answer to a statement with these parameters.
    pub fn answer(&self, answer: &[u8], client: Caps, status: u16) -> Result<Vec<u8>, Malformed> {
        let mut seq = packet::whole(answer).map_or(1, |(_, seq)| seq);
        let mut packets = Packets(answer);
        let first = packets.next()?;
        let number =
            |at: std::ops::Range<usize>| Some(u16::from_le_bytes(first.get(at)?.try_into().ok()?));
        if number(PARAMS_AT).map(usize::from) != Some(self.from.len()) {
            return Err(Malformed::new(
                "answer to COM_STMT_PREPARE with other parameters than the statement has",
            ));
        }
        let mut out = Vec::with_capacity(answer.len() + 64);
        packet::append_with(&mut out, &mut seq, |out| {
            out.bytes(first);
            let at = out.len() - first.len() + PARAMS_AT.start;
            out[at..at + 2].copy_from_slice(&self.before.to_le_bytes());
        });
        let bare = caps::has(client, caps::OPTIONAL_METADATA) && first.get(FOLLOWS_AT) == Some(&0);
        let ends = !caps::has(client, caps::DEPRECATE_EOF);
        let described = if bare { &[] } else { &*self.from };
        let known = described
            .iter()
            .map(|_| packets.next())
            .collect::<Result<Vec<_>, _>>()?;
        let end = if ends && !self.from.is_empty() {
            Some(packets.next()?)
        } else {
            None
        };
        for param in (0..self.before).filter(|_| !bare) {
            // What the server says of a parameter is nearly nothing, and of one that it has not
            // seen nothing at all.
            match self
                .from
                .iter()
                .position(|from| *from == param)
                .and_then(|at| known.get(at))
            {
                Some(definition) => packet::append(&mut out, &mut seq, definition),
                None => packet::append_with(&mut out, &mut seq, |out| {
                    Column::parameter().write(out, client);
                }),
            }
        }
        match end {
            Some(end) => packet::append(&mut out, &mut seq, end),
            None if ends && self.before > 0 => {
                packet::append_with(&mut out, &mut seq, |out| ok::write_eof(out, 0, status))
            }
            None => {}
        }
        while !packets.0.is_empty() {
            packet::append(&mut out, &mut seq, packets.next()?);
        }
        Ok(out)
    }

    /// Writes the COM_STMT_EXECUTE of the statement behind, as [`Parts::rewrite`] does; `parts`,
    /// `remembered` and `sent_long` are about the statement before.
    ///
    /// # Errors
    /// As there.
    pub fn execute(
        &self,
        parts: &Parts<'_>,
        out: &mut Vec<u8>,
        id: u32,
        remembered: Option<&[u8]>,
        sent_long: impl Fn(usize) -> bool,
    ) -> Result<(), Malformed> {
        parts.write_head(out, id);
        if self.before == 0 || self.from.is_empty() {
            return Ok(());
        }
        let types = parts.types_of(usize::from(self.before), remembered)?;
        let mut r = Reader::new(parts.values);
        let mut values: Vec<&[u8]> = Vec::with_capacity(usize::from(self.before));
        for (param, kind) in types.chunks_exact(2).enumerate() {
            let left = r.peek();
            if !parts.is_null(param) && !sent_long(param) {
                skip_value(&mut r, Type(kind[0]))?;
            }
            values.push(&left[..left.len() - r.left()]);
        }
        let from = || self.from.iter().map(|from| usize::from(*from));
        let nulls = out.len();
        out.resize(nulls + self.from.len().div_ceil(8), 0);
        for (at, from) in from().enumerate() {
            out[nulls + at / 8] |= u8::from(parts.is_null(from)) << (at % 8);
        }
        out.u8(1);
        from().for_each(|from| out.bytes(&types[from * 2..from * 2 + 2]));
        from().for_each(|from| out.bytes(values[from]));
        Ok(())
    }
}

/// Whole packets, one payload after another.
struct Packets<'a>(&'a [u8]);

impl<'a> Packets<'a> {
    fn next(&mut self) -> Result<&'a [u8], Malformed> {
        let bytes = self.0;
        let (len, _) =
            packet::whole(bytes).ok_or(Malformed::new("answer to COM_STMT_PREPARE that is cut"))?;
        let (packet, rest) = bytes.split_at(HEADER_LEN + len);
        self.0 = rest;
        Ok(&packet[HEADER_LEN..])
    }
}

/// Fuzz target: the first byte chooses caps, the second is the number of parameters before, the
/// third of those behind, which follow; then an execution and, cut at a third of the rest, an
/// answer. What can be moved is well formed and has the values of the parameters that were meant.
pub fn fuzz_moved(data: &[u8]) {
    let [bits, before, behind, rest @ ..] = data else {
        return;
    };
    let (before, behind) = (u16::from(*before % 32), usize::from(*behind % 64));
    let Some((from, rest)) = rest.split_at_checked(behind) else {
        return;
    };
    if before == 0 {
        return;
    }
    let from: Vec<u16> = from.iter().map(|from| u16::from(*from) % before).collect();
    let Some(moved) = Moved::new(before, &from) else {
        return;
    };
    let caps = caps::PROTOCOL_41
        | if bits & 1 != 0 {
            caps::QUERY_ATTRIBUTES
        } else {
            0
        }
        | if bits & 2 != 0 {
            caps::DEPRECATE_EOF
        } else {
            0
        };
    let (payload, answer) = rest.split_at(rest.len() - rest.len() / 3);
    if let Ok(told) = moved.answer(answer, caps, 2) {
        let mut packets = Packets(&told);
        let first = packets.next().expect("a first packet");
        assert_eq!(first[PARAMS_AT], before.to_le_bytes());
        for _ in 0..before {
            packets.next().expect("one for each parameter");
        }
    }
    let Ok(crate::command::Command::Execute(execute)) =
        crate::command::Command::read(payload, caps)
    else {
        return;
    };
    let params = usize::from(before);
    let Ok(parts) = Parts::read(&execute, params, caps) else {
        return;
    };
    let remembered = [Type::VAR_STRING.0, 0].repeat(params);
    let Ok(values) = parts.decode(params, Some(&remembered), |_| None) else {
        return;
    };
    let mut out = Vec::new();
    moved
        .execute(&parts, &mut out, 77, Some(&remembered), |_| false)
        .expect("what can be decoded can be moved");
    let Ok(crate::command::Command::Execute(again)) =
        crate::command::Command::read(&out, caps::PROTOCOL_41)
    else {
        panic!("a moved COM_STMT_EXECUTE is one");
    };
    let again = Parts::read(&again, from.len(), caps::PROTOCOL_41)
        .expect("a moved COM_STMT_EXECUTE is well formed");
    let after = again
        .decode(from.len(), None, |_| None)
        .expect("the values are the same");
    for (from, after) in from.iter().zip(after) {
        assert_eq!(
            format!("{:?}", values[usize::from(*from)]),
            format!("{after:?}")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::execute::Value;
    use crate::resultset::Writer;

    const CAPS: Caps = caps::PROTOCOL_41;

    fn moved(before: u16, from: &[u16]) -> Moved {
        Moved::new(before, from).expect("something moves")
    }

    #[test]
    fn parameters_that_stay_are_not_moved_and_unknown_ones_cannot_be() {
        assert_eq!(Moved::new(0, &[]), None);
        assert_eq!(Moved::new(2, &[0, 1]), None);
        assert_eq!(Moved::new(1, &[1]), None);
        assert_eq!(moved(2, &[0]).before(), 2);
        assert_eq!(moved(1, &[0, 0]).from(), [0, 0]);
    }

    fn answer(params: u16, columns: &[&str], caps: Caps) -> Vec<u8> {
        let mut out = Vec::new();
        let columns: Vec<_> = columns.iter().map(|name| Column::text(*name)).collect();
        Writer::new(&mut out, 0, caps, 2).prepared(7, params, &columns);
        out
    }

    #[test]
    fn the_client_is_told_of_its_own_parameters() {
        for caps in [CAPS, CAPS | caps::DEPRECATE_EOF] {
            for columns in [&["a", "b"][..], &[]] {
                for (before, from) in [
                    (3, &[2, 0][..]),
                    (2, &[1, 0]),
                    (1, &[0, 0, 0]),
                    (2, &[]),
                    (300, &[299]),
                ] {
                    let behind = answer(u16::try_from(from.len()).expect("few"), columns, caps);
                    let told = moved(before, from)
                        .answer(&behind, caps, 2)
                        .expect("its answer");
                    assert_eq!(
                        told,
                        answer(before, columns, caps),
                        "{before} {from:?} {columns:?} {caps}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_the_server_says_of_a_parameter_goes_along_with_it() {
        let mut behind = answer(0, &[], CAPS | caps::DEPRECATE_EOF);
        behind[HEADER_LEN + 7] = 2;
        let mut seq = 2;
        for name in ["x", "y"] {
            packet::append_with(&mut behind, &mut seq, |out| {
                Column::integer(name).write(out, 0);
            });
        }
        let told = moved(3, &[2, 0])
            .answer(&behind, CAPS | caps::DEPRECATE_EOF, 2)
            .expect("its answer");
        let mut packets = Packets(&told);
        packets.next().expect("first");
        for wanted in [
            Column::integer("y"),
            Column::parameter(),
            Column::integer("x"),
        ] {
            let mut payload = Vec::new();
            wanted.write(&mut payload, 0);
            assert_eq!(packets.next(), Ok(&payload[..]));
        }
    }

    #[test]
    fn an_answer_with_other_parameters_or_cut_is_refused() {
        let behind = answer(2, &["a"], CAPS);
        assert!(moved(3, &[2]).answer(&behind, CAPS, 2).is_err());
        for cut in 0..behind.len() {
            // Where it is cut between packets of columns, nobody here can tell.
            let told = moved(3, &[2, 0]).answer(&behind[..cut], CAPS, 2);
            assert!(
                told.is_err() || packet_starts(&behind).contains(&cut),
                "{cut}"
            );
        }
    }

    fn packet_starts(bytes: &[u8]) -> Vec<usize> {
        let mut packets = Packets(bytes);
        std::iter::from_fn(|| packets.next().ok().map(|_| bytes.len() - packets.0.len())).collect()
    }

    fn execution<'p>(payload: &'p [u8], params: usize, caps: Caps) -> Parts<'p> {
        match Command::read(payload, caps) {
            Ok(Command::Execute(execute)) => {
                Parts::read(&execute, params, caps).expect("well formed")
            }
            other => panic!("{other:?}"),
        }
    }

    fn values(payload: &[u8], params: usize) -> Vec<Value<'_>> {
        execution(payload, params, CAPS)
            .decode(params, None, |_| None)
            .expect("well formed")
    }

    /// Statement 5, read-only cursor: 7, NULL, "ab".
    const THREE: &[u8] = b"\x17\x05\0\0\0\x01\x01\0\0\0\x02\x01\x03\0\x06\0\xfd\0\x07\0\0\0\x02ab";

    #[test]
    fn values_types_and_nulls_follow_their_parameters() {
        let parts = execution(THREE, 3, CAPS);
        let (seven, null, ab) = (Value::Int(7), Value::Null, Value::Bytes(b"ab"));
        for (from, wanted) in [
            (&[2, 1, 0][..], vec![ab, null, seven]),
            (&[2, 0], vec![ab, seven]),
            (
                &[1, 2, 2, 0, 1, 1, 0, 2, 1],
                vec![null, ab, ab, seven, null, null, seven, ab, null],
            ),
        ] {
            let mut out = Vec::new();
            moved(3, from)
                .execute(&parts, &mut out, 77, None, |_| false)
                .expect("bound");
            assert_eq!(values(&out, from.len()), wanted);
            assert_eq!(
                (out[1], out[5]),
                (77, 1),
                "its id, and the cursor that was asked for"
            );
        }
        let mut out = Vec::new();
        moved(3, &[])
            .execute(&parts, &mut out, 77, None, |_| false)
            .expect("nothing is left");
        assert_eq!(out, b"\x17\x4d\0\0\0\x01\x01\0\0\0");
    }

    #[test]
    fn types_that_were_left_out_are_put_back_where_their_parameters_went() {
        let again = b"\x17\x05\0\0\0\0\x01\0\0\0\x01\0\x02yz";
        let remembered = b"\x03\0\xfd\0";
        let mut out = Vec::new();
        let parts = execution(again, 2, CAPS);
        moved(2, &[1, 0])
            .execute(&parts, &mut out, 77, Some(remembered), |_| false)
            .expect("remembered");
        assert_eq!(out, b"\x17\x4d\0\0\0\0\x01\0\0\0\x02\x01\xfd\0\x03\0\x02yz");
        assert!(
            moved(2, &[1, 0])
                .execute(&parts, &mut out, 77, None, |_| false)
                .is_err()
        );
        assert!(
            moved(2, &[1, 0])
                .execute(&parts, &mut out, 77, Some(b"\x03\0"), |_| false)
                .is_err()
        );
    }

    #[test]
    fn parameters_that_came_ahead_have_no_value_wherever_they_go() {
        // The first came by COM_STMT_SEND_LONG_DATA: its type is here, its value is not.
        let payload = b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01\xfc\0\x01\0\x09";
        let mut out = Vec::new();
        moved(2, &[1, 0, 0])
            .execute(&execution(payload, 2, CAPS), &mut out, 1, None, |param| {
                param == 0
            })
            .expect("bound");
        assert_eq!(
            out,
            b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x01\0\xfc\0\xfc\0\x09"
        );
    }

    #[test]
    fn query_attributes_are_left_behind() {
        let caps = CAPS | caps::QUERY_ATTRIBUTES;
        // Two parameters and an attribute "n" = "v".
        let payload =
            b"\x17\x05\0\0\0\x08\x01\0\0\0\x03\0\x01\x01\0\0\xfd\0\0\xfe\0\x01n\x05\x02ab\x01v";
        let mut out = Vec::new();
        moved(2, &[1, 0])
            .execute(&execution(payload, 2, caps), &mut out, 1, None, |_| false)
            .expect("bound");
        assert_eq!(values(&out, 2), [Value::Bytes(b"ab"), Value::Int(5)]);
        assert_eq!(out[5], 0, "nobody counts them there");
    }

    #[test]
    fn values_that_are_cut_are_refused() {
        for cut in 18..THREE.len() {
            let parts = execution(&THREE[..cut], 3, CAPS);
            assert!(
                moved(3, &[2, 1, 0])
                    .execute(&parts, &mut Vec::new(), 1, None, |_| false)
                    .is_err(),
                "{cut}"
            );
        }
    }
}
