//! COM_STMT_EXECUTE: its parameters found, rewritten for another server connection, or decoded for
//! a server of ours.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html> A client
//! sends the types of its parameters with the first execution and may leave them out later (the
//! server remembers them). Through a proxy the next execution may go to a server that never saw
//! them, so they are put back.

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::codes::COM_STMT_EXECUTE;
use crate::read::Reader;
use crate::types::{Layout, PARAM_UNSIGNED, Type};
use crate::write::Write as _;
use std::borrow::Cow;

/// A statement has at most so many parameters.
pub const PARAMS_MAX: usize = 65535;
/// Flags: open a read-only cursor.
pub const CURSOR_READ_ONLY: u8 = 0x01;
/// Flags: all that ask for a cursor (read only, for update, scrollable).
pub const CURSOR_FLAGS: u8 = 0x07;
/// Flags: the count of parameters is sent even if the statement has none (CLIENT_QUERY_ATTRIBUTES).
pub const PARAMETER_COUNT_AVAILABLE: u8 = 0x08;

/// A COM_STMT_EXECUTE, whose parameters can only be read by somebody who knows how many there are:
/// see [`Parts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The statement.
    pub id: u32,
    /// CURSOR_TYPE_* and PARAMETER_COUNT_AVAILABLE.
    pub flags: u8,
    /// Bytes that follow the count of iterations: null bitmap, types, values.
    pub params: &'a [u8],
}

impl<'a> Execute<'a> {
    /// Reads what follows the command byte.
    pub(crate) fn read(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (id, flags) = (r.u32()?, r.u8()?);
        // Iterations: always 1, and nobody looks.
        r.u32()?;
        Ok(Self {
            id,
            flags,
            params: r.rest(),
        })
    }

    /// Reads a payload of one.
    fn of_payload(payload: &'a [u8]) -> Option<Self> {
        let rest = payload.strip_prefix(&[COM_STMT_EXECUTE])?;
        Self::read(&mut Reader::new(rest)).ok()
    }
}

/// The parts of a COM_STMT_EXECUTE, borrowed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The statement.
    pub id: u32,
    /// Flags as sent.
    pub flags: u8,
    /// How many parameters follow; more than the statement has when there are query attributes.
    pub count: usize,
    /// One bit per parameter, set where it is NULL.
    pub nulls: &'a [u8],
    /// The types were sent along.
    pub bound: bool,
    /// Types, two bytes per parameter, names between them when the client has
    /// CLIENT_QUERY_ATTRIBUTES; empty if not `bound`.
    pub types: &'a [u8],
    /// Values, one after another, without those which are NULL or were sent by
    /// COM_STMT_SEND_LONG_DATA.
    pub values: &'a [u8],
    named: bool,
}

impl<'a> Parts<'a> {
    /// Finds the parts. `params` is the number of parameters that the statement has, `caps` what
    /// the client agreed on.
    pub fn read(execute: &Execute<'a>, params: usize, caps: Caps) -> Result<Self, Malformed> {
        let mut r = Reader::new(execute.params);
        let named = caps::has(caps, caps::QUERY_ATTRIBUTES);
        let mut parts = Self {
            id: execute.id,
            flags: execute.flags,
            count: params,
            nulls: &[],
            bound: false,
            types: &[],
            values: &[],
            named,
        };
        if named && (params > 0 || execute.flags & PARAMETER_COUNT_AVAILABLE != 0) {
            parts.count = usize::try_from(r.lenenc_int()?).unwrap_or(usize::MAX);
        }
        if parts.count > PARAMS_MAX {
            return Err(Malformed::new("COM_STMT_EXECUTE with too many parameters"));
        }
        if parts.count < params {
            return Err(Malformed::new(
                "COM_STMT_EXECUTE with fewer parameters than the statement has",
            ));
        }
        if parts.count > 0 {
            parts.nulls = r.take(parts.count.div_ceil(8))?;
            parts.bound = r.u8()? != 0;
            if parts.bound {
                let before = r.peek();
                for _ in 0..parts.count {
                    r.u16()?;
                    if named {
                        r.lenenc_bytes()?;
                    }
                }
                parts.types = &before[..before.len() - r.left()];
            }
        }
        parts.values = r.rest();
        Ok(parts)
    }

    /// True if parameter `i` is NULL.
    pub fn is_null(&self, i: usize) -> bool {
        self.nulls.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 != 0)
    }

    /// The types without names, two bytes for each of the first `params`: what to remember for
    /// executions that leave them out. `None` if they were left out.
    pub fn plain_types(&self, params: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(params * 2);
        let mut r = Reader::new(self.types);
        for _ in 0..params.min(self.count) {
            out.bytes(r.take(2).ok()?);
            if self.named {
                r.lenenc_bytes().ok()?;
            }
        }
        (self.bound || self.count == 0).then_some(out)
    }

    /// The names of the first `params` parameters, each with its length; `None` if no parameter has
    /// one, as is usual.
    pub fn names(&self, params: usize) -> Option<Vec<u8>> {
        if !self.named || !self.bound {
            return None;
        }
        let mut out = Vec::new();
        let mut r = Reader::new(self.types);
        for at in 0..params.min(self.count) {
            r.take(2).ok()?;
            let name = r.lenenc_bytes().ok()?;
            if name.is_empty() && out.is_empty() {
                continue;
            }
            if out.is_empty() {
                out.resize(at, 0);
            }
            out.lenenc_bytes(name);
        }
        (!out.is_empty()).then_some(out)
    }

    /// Writes a COM_STMT_EXECUTE for a server connection with which CLIENT_QUERY_ATTRIBUTES was not
    /// agreed on: with its own statement id and with `remembered` types if the client left them
    /// out. Query attributes are left behind, see [`crate::attributes`]. `sent_long(i)` tells which
    /// parameters were sent by COM_STMT_SEND_LONG_DATA.
    pub fn rewrite(
        &self,
        out: &mut Vec<u8>,
        id: u32,
        params: usize,
        remembered: Option<&[u8]>,
        sent_long: impl Fn(usize) -> bool,
    ) -> Result<(), Malformed> {
        self.write_head(out, id);
        if params == 0 {
            return Ok(());
        }
        let types = self.types_of(params, remembered)?;
        if self.count == params {
            out.bytes(self.nulls);
        } else {
            let at = out.len();
            out.bytes(
                self.nulls
                    .get(..params.div_ceil(8))
                    .ok_or(Malformed::new("COM_STMT_EXECUTE with a short NULL bitmap"))?,
            );
            // The bits of the attributes that are left behind.
            if !params.is_multiple_of(8)
                && let Some(last) = out[at..].last_mut()
            {
                *last &= (1 << (params % 8)) - 1;
            }
        }
        out.u8(1);
        out.bytes(&types);
        if self.count == params {
            out.bytes(self.values);
        } else {
            let mut r = Reader::new(self.values);
            for (i, t) in types.chunks_exact(2).enumerate() {
                if !self.is_null(i) && !sent_long(i) {
                    skip_value(&mut r, Type(t[0]))?;
                }
            }
            out.bytes(&self.values[..self.values.len() - r.left()]);
        }
        Ok(())
    }

    /// From the command byte to the count of iterations.
    pub(crate) fn write_head(&self, out: &mut Vec<u8>, id: u32) {
        out.u8(COM_STMT_EXECUTE);
        out.u32(id);
        out.u8(self.flags & !PARAMETER_COUNT_AVAILABLE);
        out.u32(1);
    }

    /// The types of the first `params` parameters, two bytes each, as sent or else as remembered.
    /// Where all are NULL, servers do without: a driver for R2DBC leaves them out of a first
    /// execution then.
    pub(crate) fn types_of<'t>(
        &self,
        params: usize,
        remembered: Option<&'t [u8]>,
    ) -> Result<Cow<'t, [u8]>, Malformed>
    where
        'a: 't,
    {
        if self.bound && !self.named {
            self.types
                .get(..params * 2)
                .map(Cow::Borrowed)
                .ok_or(Malformed::new("COM_STMT_EXECUTE with too few types"))
        } else if self.bound {
            self.plain_types(params)
                .map(Cow::Owned)
                .ok_or(Malformed::new("COM_STMT_EXECUTE with too few types"))
        } else if remembered.is_none() && (0..params).all(|i| self.is_null(i)) {
            Ok(Cow::Owned([Type::NULL.0, 0].repeat(params)))
        } else {
            remembered
                .filter(|t| t.len() == params * 2)
                .map(Cow::Borrowed)
                .ok_or(Malformed::new(
                    "COM_STMT_EXECUTE leaves out the types of its parameters and never sent them",
                ))
        }
    }

    /// Decodes the values of the first `params` parameters. `long(i)` gives what
    /// COM_STMT_SEND_LONG_DATA brought for one.
    pub fn decode<'v>(
        &self,
        params: usize,
        remembered: Option<&[u8]>,
        long: impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Result<Vec<Value<'v>>, Malformed>
    where
        'a: 'v,
    {
        let types = self.types_of(params, remembered)?;
        let mut r = Reader::new(self.values);
        types
            .chunks_exact(2)
            .enumerate()
            .map(|(i, t)| match long(i) {
                Some(data) => Ok(Value::Bytes(data)),
                None if self.is_null(i) => Ok(Value::Null),
                None => Value::read(&mut r, Type(t[0]), t[1] & PARAM_UNSIGNED != 0),
            })
            .collect()
    }
}

pub(crate) fn skip_value(r: &mut Reader<'_>, t: Type) -> Result<(), Malformed> {
    match t
        .layout()
        .ok_or(Malformed::new("parameter of an unknown type"))?
    {
        Layout::Fixed(n) => r.take(n)?,
        Layout::Short => {
            let n = usize::from(r.u8()?);
            r.take(n)?
        }
        Layout::Lenenc => long_value(r)?,
    };
    Ok(())
}

/// A value with its length. Servers look at four bytes of a length of eight, and there is a driver
/// that writes nonsense into the others.
fn long_value<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let len = r.lenenc_int()? & 0xFFFF_FFFF;
    r.take(usize::try_from(len).unwrap_or(usize::MAX))
}

/// A date with or without a time of day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "a calendar")]
pub struct DateTime {
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub micros: u32,
}

/// A length of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "a clock")]
pub struct Time {
    pub negative: bool,
    pub days: u32,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub micros: u32,
}

/// A value of the binary protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Value<'a> {
    Null,
    Int(i64),
    Uint(u64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
    Date(DateTime),
    DateTime(DateTime),
    Time(Time),
}

impl<'a> Value<'a> {
    /// Reads a value of this type.
    pub fn read(r: &mut Reader<'a>, t: Type, unsigned: bool) -> Result<Self, Malformed> {
        Ok(match t {
            Type::NULL => Self::Null,
            Type::TINY if unsigned => Self::Uint(r.u8()?.into()),
            Type::TINY => Self::Int(i8::from_le_bytes(r.array()?).into()),
            Type::SHORT | Type::YEAR if unsigned => Self::Uint(r.u16()?.into()),
            Type::SHORT | Type::YEAR => Self::Int(i16::from_le_bytes(r.array()?).into()),
            Type::LONG | Type::INT24 if unsigned => Self::Uint(r.u32()?.into()),
            Type::LONG | Type::INT24 => Self::Int(i32::from_le_bytes(r.array()?).into()),
            Type::LONGLONG if unsigned => Self::Uint(r.u64()?),
            Type::LONGLONG => Self::Int(i64::from_le_bytes(r.array()?)),
            Type::FLOAT => Self::Float(f32::from_le_bytes(r.array()?)),
            Type::DOUBLE => Self::Double(f64::from_le_bytes(r.array()?)),
            Type::DATE => Self::Date(read_datetime(r)?),
            Type::DATETIME | Type::TIMESTAMP => Self::DateTime(read_datetime(r)?),
            Type::TIME => Self::Time(read_time(r)?),
            other => match other.layout() {
                Some(Layout::Lenenc) => Self::Bytes(long_value(r)?),
                _ => return Err(Malformed::new("parameter of an unknown type")),
            },
        })
    }
}

/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html> (date
/// and time values): fields from the right are left out while they are zero, so the length is 0, 4,
/// 7 or 11.
fn read_datetime(r: &mut Reader<'_>) -> Result<DateTime, Malformed> {
    let n = r.u8()?;
    let mut d = DateTime::default();
    if !matches!(n, 0 | 4 | 7 | 11) {
        return Err(Malformed::new("date of an impossible length"));
    }
    if n >= 4 {
        (d.year, d.month, d.day) = (r.u16()?, r.u8()?, r.u8()?);
    }
    if n >= 7 {
        (d.hour, d.minute, d.second) = (r.u8()?, r.u8()?, r.u8()?);
    }
    if n == 11 {
        d.micros = r.u32()?;
    }
    Ok(d)
}

/// Reads a time: fields from the right are left out while they are zero, so the length is 0, 8 or
/// 12.
fn read_time(r: &mut Reader<'_>) -> Result<Time, Malformed> {
    let n = r.u8()?;
    let mut t = Time::default();
    if !matches!(n, 0 | 8 | 12) {
        return Err(Malformed::new("time of an impossible length"));
    }
    if n >= 8 {
        t.negative = r.u8()? != 0;
        t.days = r.u32()?;
        (t.hour, t.minute, t.second) = (r.u8()?, r.u8()?, r.u8()?);
    }
    if n == 12 {
        t.micros = r.u32()?;
    }
    Ok(t)
}

/// Fuzz target: first byte chooses caps, second is the number of parameters, the rest a
/// COM_STMT_EXECUTE. What can be rewritten is well formed afterwards and has the same values.
pub fn fuzz_execute(data: &[u8]) {
    let [bits, params, payload @ ..] = data else {
        return;
    };
    let caps = caps::PROTOCOL_41
        | if bits & 1 != 0 {
            caps::QUERY_ATTRIBUTES
        } else {
            0
        };
    let params = usize::from(*params);
    let Some(execute) = Execute::of_payload(payload) else {
        return;
    };
    let Ok(parts) = Parts::read(&execute, params, caps) else {
        return;
    };
    let remembered = [Type::VAR_STRING.0, 0].repeat(params);
    let before = parts.decode(params, Some(&remembered), |_| None);
    let mut out = Vec::new();
    if parts
        .rewrite(&mut out, 77, params, Some(&remembered), |_| false)
        .is_ok()
    {
        let again = Execute::of_payload(&out).expect("a rewritten COM_STMT_EXECUTE is one");
        let again = Parts::read(&again, params, caps::PROTOCOL_41)
            .expect("a rewritten COM_STMT_EXECUTE is well formed");
        assert_eq!(again.id, 77);
        if let Ok(before) = before {
            let after = again
                .decode(params, None, |_| None)
                .expect("the values are the same");
            assert_eq!(format!("{before:?}"), format!("{after:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;

    const CAPS: Caps = caps::PROTOCOL_41;
    const NAMED: Caps = CAPS | caps::QUERY_ATTRIBUTES;

    fn parts(payload: &[u8], params: usize, caps: Caps) -> Result<Parts<'_>, Malformed> {
        match Command::read(payload, caps) {
            Ok(Command::Execute(e)) => Parts::read(&e, params, caps),
            other => panic!("{other:?}"),
        }
    }

    /// Statement 5, read-only cursor: 7, NULL, "ab".
    const THREE: &[u8] = b"\x17\x05\0\0\0\x01\x01\0\0\0\x02\x01\x03\0\x06\0\xfd\0\x07\0\0\0\x02ab";

    #[test]
    fn the_parts_of_an_execution_are_found() {
        let p = parts(THREE, 3, CAPS).expect("well formed");
        assert_eq!(
            (p.id, p.flags, p.count, p.bound),
            (5, CURSOR_READ_ONLY, 3, true)
        );
        assert_eq!(
            (p.nulls, p.types, p.values),
            (
                &b"\x02"[..],
                &b"\x03\0\x06\0\xfd\0"[..],
                &b"\x07\0\0\0\x02ab"[..]
            )
        );
        assert_eq!([0, 1, 2].map(|i| p.is_null(i)), [false, true, false]);
        let none = |_| None;
        assert_eq!(
            p.decode(3, None, none),
            Ok(vec![Value::Int(7), Value::Null, Value::Bytes(b"ab")])
        );
        assert_eq!(p.plain_types(3).as_deref(), Some(p.types));
        // No parameters: nothing follows.
        let p = parts(b"\x17\x05\0\0\0\0\x01\0\0\0", 0, CAPS).expect("well formed");
        assert_eq!(p.decode(0, None, none), Ok(vec![]));
    }

    #[test]
    fn a_rewritten_execution_has_another_id_and_the_same_cursor() {
        let mut out = Vec::new();
        parts(THREE, 3, CAPS)
            .expect("well formed")
            .rewrite(&mut out, 77, 3, None, |_| false)
            .expect("bound");
        let mut want = THREE.to_vec();
        want[1] = 77;
        assert_eq!(out, want);
    }

    #[test]
    fn four_bytes_of_a_length_count_as_on_servers() {
        let payload = b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01\xfd\0\xfe\x02\0\0\0\x02\0\0\0ab";
        assert_eq!(
            parts(payload, 1, CAPS).and_then(|p| p.decode(1, None, |_| None)),
            Ok(vec![Value::Bytes(b"ab")])
        );
    }

    #[test]
    fn types_that_were_left_out_are_put_back() {
        let bare = b"\x17\x05\0\0\0\0\x01\0\0\0\0\0\x07\0\0\0\x02ab";
        let p = parts(bare, 2, CAPS).expect("well formed");
        assert!(!p.bound && p.plain_types(2).is_none());
        let types = b"\x03\x80\xfd\0";
        let mut out = Vec::new();
        p.rewrite(&mut out, 5, 2, Some(types), |_| false)
            .expect("remembered");
        assert_eq!(
            out,
            b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01\x03\x80\xfd\0\x07\0\0\0\x02ab"
        );
        assert_eq!(
            p.decode(2, Some(types), |_| None),
            Ok(vec![Value::Uint(7), Value::Bytes(b"ab")])
        );
        assert!(
            p.rewrite(&mut out, 5, 2, None, |_| false).is_err(),
            "nobody knows the types"
        );
        assert!(
            p.rewrite(&mut out, 5, 2, Some(b"\x03\0"), |_| false)
                .is_err(),
            "types of another statement"
        );
        assert!(p.decode(2, None, |_| None).is_err());
    }

    #[test]
    fn nothing_but_null_needs_no_types() {
        let nulls = b"\x17\x05\0\0\0\0\x01\0\0\0\x03\0";
        let p = parts(nulls, 2, CAPS).expect("well formed");
        let mut out = Vec::new();
        p.rewrite(&mut out, 5, 2, None, |_| false)
            .expect("nobody asks for types");
        assert_eq!(out, b"\x17\x05\0\0\0\0\x01\0\0\0\x03\x01\x06\0\x06\0");
        assert_eq!(
            p.decode(2, None, |_| None),
            Ok(vec![Value::Null, Value::Null])
        );
        out.clear();
        p.rewrite(&mut out, 5, 2, Some(b"\x03\x80\xfd\0"), |_| false)
            .expect("remembered");
        assert_eq!(out, b"\x17\x05\0\0\0\0\x01\0\0\0\x03\x01\x03\x80\xfd\0");
    }

    #[test]
    fn query_attributes_and_names_are_left_behind() {
        // Two parameters (7, "ab") and one attribute k = "v", all with names (the parameters' are
        // empty).
        let named = b"\x17\x05\0\0\0\x08\x01\0\0\0\x03\x00\x01\x03\0\0\xfd\0\0\xfd\0\x01k\x07\0\0\0\x02ab\x01v";
        let p = parts(named, 2, NAMED).expect("well formed");
        assert_eq!(p.count, 3);
        let mut out = Vec::new();
        p.rewrite(&mut out, 5, 2, None, |_| false).expect("bound");
        assert_eq!(
            out,
            b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01\x03\0\xfd\0\x07\0\0\0\x02ab"
        );
        assert_eq!(
            p.decode(2, None, |_| None),
            Ok(vec![Value::Int(7), Value::Bytes(b"ab")])
        );
        // The attribute is NULL: its bit goes too.
        let named = b"\x17\x05\0\0\0\x08\x01\0\0\0\x02\x02\x01\x03\0\0\xfd\0\x01k\x07\0\0\0";
        let p = parts(named, 1, NAMED).expect("well formed");
        out.clear();
        p.rewrite(&mut out, 5, 1, None, |_| false).expect("bound");
        assert_eq!(out, b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01\x03\0\x07\0\0\0");
        // A statement without parameters, with an attribute.
        let named = b"\x17\x05\0\0\0\x08\x01\0\0\0\x01\x00\x01\xfd\0\x01k\x01v";
        let p = parts(named, 0, NAMED).expect("well formed");
        out.clear();
        p.rewrite(&mut out, 5, 0, None, |_| false).expect("bound");
        assert_eq!(out, b"\x17\x05\0\0\0\0\x01\0\0\0");
    }

    #[test]
    fn a_parameter_that_was_sent_before_has_no_value_here() {
        let p = parts(
            b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01\xfc\0\x03\0\x07\0\0\0",
            2,
            CAPS,
        )
        .expect("well formed");
        let long = |i| (i == 0).then_some(&b"long data"[..]);
        assert_eq!(
            p.decode(2, None, long),
            Ok(vec![Value::Bytes(b"long data"), Value::Int(7)])
        );
    }

    #[test]
    fn values_of_every_type_are_decoded() {
        let date = DateTime {
            year: 2024,
            month: 2,
            day: 29,
            hour: 13,
            minute: 14,
            second: 15,
            micros: 678,
        };
        let cases: &[(u8, u8, &[u8], Value<'_>, &str)] = &[
            (0x01, 0, b"\xff", Value::Int(-1), "-1"),
            (0x01, 0x80, b"\xff", Value::Uint(255), "255"),
            (0x02, 0, b"\xfe\xff", Value::Int(-2), "-2"),
            (0x0D, 0x80, b"\xe8\x07", Value::Uint(2024), "2024"),
            (0x03, 0, b"\xfd\xff\xff\xff", Value::Int(-3), "-3"),
            (
                0x09,
                0x80,
                b"\xff\xff\xff\0",
                Value::Uint(0xFF_FFFF),
                "16777215",
            ),
            (
                0x08,
                0,
                b"\0\0\0\0\0\0\0\x80",
                Value::Int(i64::MIN),
                "-9223372036854775808",
            ),
            (
                0x08,
                0x80,
                b"\xff\xff\xff\xff\xff\xff\xff\xff",
                Value::Uint(u64::MAX),
                "18446744073709551615",
            ),
            (0x04, 0, b"\0\0\xc0\x3f", Value::Float(1.5), "1.5"),
            (0x05, 0, b"\0\0\0\0\0\0\xf8\x3f", Value::Double(1.5), "1.5"),
            (0xF6, 0, b"\x041.50", Value::Bytes(b"1.50"), "1.50"),
            (
                0x0A,
                0,
                b"\x04\xe8\x07\x02\x1d",
                Value::Date(DateTime {
                    hour: 0,
                    minute: 0,
                    second: 0,
                    micros: 0,
                    ..date
                }),
                "2024-02-29",
            ),
            (
                0x0C,
                0,
                b"\0",
                Value::DateTime(DateTime::default()),
                "0000-00-00 00:00:00",
            ),
            (
                0x07,
                0,
                b"\x07\xe8\x07\x02\x1d\x0d\x0e\x0f",
                Value::DateTime(DateTime { micros: 0, ..date }),
                "2024-02-29 13:14:15",
            ),
            (
                0x0C,
                0,
                b"\x0b\xe8\x07\x02\x1d\x0d\x0e\x0f\xa6\x02\0\0",
                Value::DateTime(date),
                "2024-02-29 13:14:15.000678",
            ),
            (0x0B, 0, b"\0", Value::Time(Time::default()), "00:00:00"),
            (
                0x0B,
                0,
                b"\x0c\x01\x02\0\0\0\x03\x04\x05\x06\0\0\0",
                Value::Time(Time {
                    negative: true,
                    days: 2,
                    hour: 3,
                    minute: 4,
                    second: 5,
                    micros: 6,
                }),
                "-51:04:05.000006",
            ),
            (
                0x0B,
                0,
                b"\x08\0\xff\xff\xff\xff\x17\x3b\x3b",
                Value::Time(Time {
                    negative: false,
                    days: u32::MAX,
                    hour: 23,
                    minute: 59,
                    second: 59,
                    micros: 0,
                }),
                "103079215103:59:59",
            ),
            (0x06, 0, b"", Value::Null, "NULL"),
        ];
        for (kind, sign, bytes, want, text) in cases {
            let mut payload = b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01".to_vec();
            payload.extend_from_slice(&[*kind, *sign]);
            payload.extend_from_slice(bytes);
            let p = parts(&payload, 1, CAPS).expect("well formed");
            assert_eq!(
                p.decode(1, None, |_| None).as_deref(),
                Ok(&[*want][..]),
                "{kind:#x}"
            );
            assert_eq!(want.to_string(), *text);
            payload.pop();
            if !bytes.is_empty() {
                assert!(
                    parts(&payload, 1, CAPS).is_ok_and(|p| p.decode(1, None, |_| None).is_err()),
                    "{kind:#x} cut"
                );
            }
        }
    }

    #[test]
    fn broken_executions_are_refused() {
        for bytes in [
            &b"\x17\x05\0\0\0\0\x01\0\0\0"[..],      // no bitmap
            b"\x17\x05\0\0\0\0\x01\0\0\0\0",         // no flag
            b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01\x03", // half a type
        ] {
            assert!(parts(bytes, 1, CAPS).is_err());
        }
        assert!(
            parts(
                b"\x17\x05\0\0\0\x08\x01\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
                1,
                NAMED
            )
            .is_err(),
            "2^64 parameters"
        );
        assert!(
            parts(
                b"\x17\x05\0\0\0\x08\x01\0\0\0\x01\0\x01\x03\0\0\x07\0\0\0",
                2,
                NAMED
            )
            .is_err(),
            "too few"
        );
        for kind in [0x0E, 0x11, 0x7F, 0xF0] {
            let payload = [
                &b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01"[..],
                &[kind, 0, 1, 2, 3],
            ]
            .concat();
            assert!(
                parts(&payload, 1, CAPS).is_ok_and(|p| p.decode(1, None, |_| None).is_err()),
                "{kind:#x}"
            );
        }
        for bad in [
            &b"\x0a\0\x05\xe8\x07\x02\x1d\0"[..],
            b"\x0b\0\x07\0\0\0\0\0\0\0",
        ] {
            let payload = [&b"\x17\x05\0\0\0\0\x01\0\0\0\0\x01"[..], bad].concat();
            assert!(
                parts(&payload, 1, CAPS).is_ok_and(|p| p.decode(1, None, |_| None).is_err()),
                "{bad:02x?}"
            );
        }
    }
}
