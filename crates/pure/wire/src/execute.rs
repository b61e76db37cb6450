//! COM_STMT_EXECUTE: its parameters found, rewritten for another server connection, or decoded for a server of ours.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html>
//! A client sends the types of its parameters with the first execution and may leave them out later (the server
//! remembers them). Through a proxy the next execution may go to a server that never saw them, so they are put back.

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::command::{COM_STMT_EXECUTE, Execute};
use crate::read::Reader;
use crate::types::{Layout, PARAM_UNSIGNED, Type};
use crate::write::Write as _;

/// A statement has at most so many parameters.
pub const PARAMS_MAX: usize = 65535;
/// Flags: open a read-only cursor.
pub const CURSOR_READ_ONLY: u8 = 0x01;
/// Flags: all that ask for a cursor (read only, for update, scrollable).
pub const CURSOR_FLAGS: u8 = 0x07;
/// Flags: the count of parameters is sent even if the statement has none (CLIENT_QUERY_ATTRIBUTES).
pub const PARAMETER_COUNT_AVAILABLE: u8 = 0x08;

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
    /// Types, two bytes per parameter, names between them when the client has CLIENT_QUERY_ATTRIBUTES; empty if not `bound`.
    pub types: &'a [u8],
    /// Values, one after another, without those which are NULL or were sent by COM_STMT_SEND_LONG_DATA.
    pub values: &'a [u8],
    named: bool,
}

impl<'a> Parts<'a> {
    /// Finds the parts. `params` is the number of parameters that the statement has, `caps` what the client agreed on.
    pub fn read(execute: &Execute<'a>, params: usize, caps: Caps) -> Result<Self, Malformed> {
        let mut r = Reader::new(execute.params);
        let named = caps::has(caps, caps::QUERY_ATTRIBUTES);
        let mut parts =
            Self { id: execute.id, flags: execute.flags, count: params, nulls: &[], bound: false, types: &[], values: &[], named };
        if named && (params > 0 || execute.flags & PARAMETER_COUNT_AVAILABLE != 0) {
            parts.count = usize::try_from(r.lenenc_int()?).unwrap_or(usize::MAX);
        }
        if parts.count > PARAMS_MAX {
            return Err(Malformed::new("COM_STMT_EXECUTE with too many parameters"));
        }
        if parts.count < params {
            return Err(Malformed::new("COM_STMT_EXECUTE with fewer parameters than the statement has"));
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

    /// The types without names, two bytes for each of the first `params`: what to remember for executions that leave
    /// them out. `None` if they were left out.
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

    /// Writes a COM_STMT_EXECUTE for a server connection with which CLIENT_QUERY_ATTRIBUTES was not agreed on: with its own
    /// statement id, without a cursor, and with `remembered` types if the client left them out. Query attributes
    /// are left behind. `sent_long(i)` tells which parameters were sent by COM_STMT_SEND_LONG_DATA.
    pub fn rewrite(
        &self,
        out: &mut Vec<u8>,
        id: u32,
        params: usize,
        remembered: Option<&[u8]>,
        sent_long: impl Fn(usize) -> bool,
    ) -> Result<(), Malformed> {
        out.u8(COM_STMT_EXECUTE);
        out.u32(id);
        out.u8(self.flags & !(CURSOR_FLAGS | PARAMETER_COUNT_AVAILABLE));
        out.u32(1);
        if params == 0 {
            return Ok(());
        }
        let plain;
        let types = if self.bound && !self.named {
            self.types.get(..params * 2).ok_or(Malformed::new("COM_STMT_EXECUTE with too few types"))?
        } else if self.bound {
            plain = self.plain_types(params).ok_or(Malformed::new("COM_STMT_EXECUTE with too few types"))?;
            &plain
        } else {
            remembered
                .filter(|t| t.len() == params * 2)
                .ok_or(Malformed::new("COM_STMT_EXECUTE leaves out the types of its parameters and never sent them"))?
        };
        if self.count == params {
            out.bytes(self.nulls);
        } else {
            let at = out.len();
            out.bytes(self.nulls.get(..params.div_ceil(8)).ok_or(Malformed::new("COM_STMT_EXECUTE with a short NULL bitmap"))?);
            // The bits of the attributes that are left behind.
            if params % 8 != 0
                && let Some(last) = out[at..].last_mut()
            {
                *last &= (1 << (params % 8)) - 1;
            }
        }
        out.u8(1);
        out.bytes(types);
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

    /// Decodes the values of the first `params` parameters. `long(i)` gives what COM_STMT_SEND_LONG_DATA brought for one.
    pub fn decode<'v>(
        &self,
        params: usize,
        remembered: Option<&[u8]>,
        long: impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Result<Vec<Value<'v>>, Malformed>
    where
        'a: 'v,
    {
        let plain = self.plain_types(params);
        let types = plain
            .as_deref()
            .or(remembered)
            .filter(|t| t.len() == params * 2)
            .ok_or(Malformed::new("COM_STMT_EXECUTE leaves out the types of its parameters and never sent them"))?;
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

/// Skips the attributes of a COM_QUERY: null bitmap, flag, types with names, values.
pub(crate) fn skip_attributes(r: &mut Reader<'_>, count: usize) -> Result<(), Malformed> {
    let nulls = r.take(count.div_ceil(8))?;
    if r.u8()? != 1 {
        return Err(Malformed::new("query attributes without their types"));
    }
    let mut types = *r;
    for _ in 0..count {
        r.u16()?;
        r.lenenc_bytes()?;
    }
    for i in 0..count {
        let [t, _] = types.array()?;
        types.lenenc_bytes()?;
        if nulls[i / 8] >> (i % 8) & 1 == 0 {
            skip_value(r, Type(t))?;
        }
    }
    Ok(())
}

fn skip_value(r: &mut Reader<'_>, t: Type) -> Result<(), Malformed> {
    match t.layout().ok_or(Malformed::new("parameter of an unknown type"))? {
        Layout::Fixed(n) => r.take(n)?,
        Layout::Short => {
            let n = usize::from(r.u8()?);
            r.take(n)?
        }
        Layout::Lenenc => r.lenenc_bytes()?,
    };
    Ok(())
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
                Some(Layout::Lenenc) => Self::Bytes(r.lenenc_bytes()?),
                _ => return Err(Malformed::new("parameter of an unknown type")),
            },
        })
    }
}

/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html> (date and time values):
/// fields from the right are left out while they are zero, so the length is 0, 4, 7 or 11.
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

/// The same for times: 0, 8 or 12.
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

/// Fuzz target: first byte chooses caps, second is the number of parameters, the rest a COM_STMT_EXECUTE. What can be
/// rewritten is well formed afterwards and has the same values.
pub fn fuzz_execute(data: &[u8]) {
    let [bits, params, payload @ ..] = data else { return };
    let caps = caps::PROTOCOL_41 | if bits & 1 != 0 { caps::QUERY_ATTRIBUTES } else { 0 };
    let params = usize::from(*params);
    let Ok(crate::command::Command::Execute(execute)) = crate::command::Command::read(payload, caps) else { return };
    let Ok(parts) = Parts::read(&execute, params, caps) else { return };
    let remembered = vec![Type::VAR_STRING.0, 0].repeat(params);
    let before = parts.decode(params, Some(&remembered), |_| None);
    let mut out = Vec::new();
    if parts.rewrite(&mut out, 77, params, Some(&remembered), |_| false).is_ok() {
        let Ok(crate::command::Command::Execute(again)) = crate::command::Command::read(&out, caps::PROTOCOL_41) else {
            panic!("a rewritten COM_STMT_EXECUTE is one");
        };
        let again = Parts::read(&again, params, caps::PROTOCOL_41).expect("a rewritten COM_STMT_EXECUTE is well formed");
        assert_eq!(again.id, 77);
        if let Ok(before) = before {
            let after = again.decode(params, None, |_| None).expect("the values are the same");
            assert_eq!(format!("{before:?}"), format!("{after:?}"));
        }
    }
}
