//! Query attributes: named values that a client sends along with a statement
//! (CLIENT_QUERY_ATTRIBUTES, MySQL 8.0.23 and later).
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query.html>
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html> In a
//! COM_QUERY they stand before the text, in a COM_STMT_EXECUTE among the statement's parameters,
//! behind them.

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::command::{COM_QUERY, write_query as write_plain_query};
use crate::execute::{PARAMETER_COUNT_AVAILABLE, PARAMS_MAX, Parts, skip_value};
use crate::read::Reader;
use crate::types::Type;
use crate::write::Write as _;

/// The attributes of one statement, in the order in which they came: of two with one name, servers
/// see the first. Empty, it owns nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Of each: type, whether it is NULL, name and value, the last two with their lengths.
    entries: Vec<u8>,
    len: usize, // <= PARAMS_MAX
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The type of the value and its sign, as a parameter's.
    pub kind: [u8; 2],
    /// Name.
    pub name: &'a [u8],
    /// The value as it is on the wire, its own length included; `None` for NULL.
    pub value: Option<&'a [u8]>,
}

/// Bytes of a COM_STMT_EXECUTE from the command to the count of iterations.
const HEAD_LEN: usize = 10;

impl Attributes {
    /// No attribute.
    pub const NONE: Self = Self {
        entries: Vec::new(),
        len: 0,
    };

    /// Of a COM_QUERY: [`crate::command::Query::attributes`].
    ///
    /// # Errors
    /// It is not such a block.
    pub fn of_query(block: &[u8]) -> Result<Self, Malformed> {
        let mut all = Self::default();
        if block.is_empty() {
            return Ok(all);
        }
        let mut r = Reader::new(block);
        read_block(&mut r, |attribute| all.push(attribute))?;
        Ok(all)
    }

    /// Of a COM_STMT_EXECUTE: what it has beyond the `params` parameters of its statement.
    /// `sent_long` as for [`Parts::rewrite`].
    ///
    /// # Errors
    /// Attributes without types and names: servers remember none of them.
    pub fn of_execution(
        parts: &Parts<'_>,
        params: usize,
        sent_long: impl Fn(usize) -> bool,
    ) -> Result<Self, Malformed> {
        let mut all = Self::default();
        if parts.count <= params {
            return Ok(all);
        }
        if !parts.bound {
            return Err(NOT_BOUND);
        }
        let (mut types, mut values) = (Reader::new(parts.types), Reader::new(parts.values));
        for at in 0..parts.count {
            let kind: [u8; 2] = types.array()?;
            let name = types.lenenc_bytes()?;
            let left = values.peek();
            let left_out = parts.is_null(at) || at < params && sent_long(at);
            if !left_out {
                skip_value(&mut values, Type(kind[0]))?;
            }
            if at >= params {
                let value = (!left_out).then(|| &left[..left.len() - values.left()]);
                all.push(Attribute { kind, name, value });
            }
        }
        Ok(all)
    }

    /// None?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.entries
    }

    /// One more, unless there are as many as a statement can have.
    pub fn push(&mut self, attribute: Attribute<'_>) {
        if self.len == PARAMS_MAX {
            return;
        }
        self.len += 1;
        self.entries.bytes(&attribute.kind);
        self.entries.u8(attribute.value.is_none().into());
        self.entries.lenenc_bytes(attribute.name);
        self.entries
            .lenenc_bytes(attribute.value.unwrap_or_default());
    }

    /// One more, a string.
    pub fn push_text(&mut self, name: &str, text: &str) {
        let mut value = Vec::with_capacity(text.len() + 9);
        value.lenenc_bytes(text.as_bytes());
        self.push(Attribute {
            kind: [Type::VAR_STRING.0, 0],
            name: name.as_bytes(),
            value: Some(&value),
        });
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = Attribute<'_>> {
        let mut r = Reader::new(&self.entries);
        std::iter::from_fn(move || {
            let kind = r.array().ok()?;
            let null = r.u8().ok()? != 0;
            let name = r.lenenc_bytes().ok()?;
            let value = r.lenenc_bytes().ok()?;
            Some(Attribute {
                kind,
                name,
                value: (!null).then_some(value),
            })
        })
    }

    /// Writes NULL bits from bit `before` on, then what `between` writes, then types and names.
    fn write_types(&self, out: &mut Vec<u8>, bitmap: usize, before: usize) {
        for (at, attribute) in (before..).zip(self.iter()) {
            if let Some(byte) = out.get_mut(bitmap + at / 8) {
                *byte |= u8::from(attribute.value.is_none()) << (at % 8);
            }
        }
        for attribute in self.iter() {
            out.bytes(&attribute.kind);
            out.lenenc_bytes(attribute.name);
        }
    }

    fn write_values(&self, out: &mut Vec<u8>) {
        self.iter()
            .for_each(|attribute| out.bytes(attribute.value.unwrap_or_default()));
    }
}

const NOT_BOUND: Malformed = Malformed::new("query attributes without their types");

/// Reads what stands before the text of a COM_QUERY and hands out each attribute.
pub(crate) fn read_block<'a>(
    r: &mut Reader<'a>,
    mut each: impl FnMut(Attribute<'a>),
) -> Result<(), Malformed> {
    let count = r.lenenc_int()?;
    if r.lenenc_int()? != 1 {
        return Err(Malformed::new(
            "COM_QUERY with another number of parameter sets than one",
        ));
    }
    if count == 0 {
        return Ok(());
    }
    let count = usize::try_from(count)
        .ok()
        .filter(|n| *n <= PARAMS_MAX)
        .ok_or(Malformed::new("too many query attributes"))?;
    let nulls = r.take(count.div_ceil(8))?;
    if r.u8()? != 1 {
        return Err(NOT_BOUND);
    }
    let mut types = *r;
    for _ in 0..count {
        r.u16()?;
        r.lenenc_bytes()?;
    }
    for at in 0..count {
        let kind: [u8; 2] = types.array()?;
        let name = types.lenenc_bytes()?;
        let left = r.peek();
        let null = nulls[at / 8] >> (at % 8) & 1 != 0;
        if !null {
            skip_value(r, Type(kind[0]))?;
        }
        each(Attribute {
            kind,
            name,
            value: (!null).then(|| &left[..left.len() - r.left()]),
        });
    }
    Ok(())
}

/// Writes a COM_QUERY's payload, with the attributes if CLIENT_QUERY_ATTRIBUTES was agreed on with
/// the server.
pub fn write_query(out: &mut Vec<u8>, sql: &[u8], attributes: &Attributes, caps: Caps) {
    if attributes.is_empty() || !caps::has(caps, caps::QUERY_ATTRIBUTES) {
        return write_plain_query(out, sql, caps);
    }
    out.u8(COM_QUERY);
    out.lenenc_int(attributes.len as u64);
    out.u8(1);
    let bitmap = out.len();
    out.resize(bitmap + attributes.len.div_ceil(8), 0);
    out.u8(1);
    attributes.write_types(out, bitmap, 0);
    attributes.write_values(out);
    out.bytes(sql);
}

/// Writes a COM_STMT_EXECUTE's payload for a server with these caps. `plain` is what
/// [`Parts::rewrite`] wrote for `params` parameters; `names` are theirs, as [`Parts::names`] gives
/// them.
pub fn write_execution(
    out: &mut Vec<u8>,
    plain: &[u8],
    params: usize,
    names: Option<&[u8]>,
    attributes: &Attributes,
    caps: Caps,
) {
    let all = params + attributes.len;
    let Some((head, rest)) = plain
        .split_at_checked(HEAD_LEN)
        .filter(|_| all > 0 && caps::has(caps, caps::QUERY_ATTRIBUTES))
    else {
        return out.bytes(plain);
    };
    out.reserve(plain.len() + params + attributes.entries.len() + 16);
    out.bytes(head);
    if let Some(flags) = out.iter_mut().nth_back(HEAD_LEN - 6) {
        *flags |= PARAMETER_COUNT_AVAILABLE;
    }
    out.lenenc_int(all as u64);
    let bitmap = out.len();
    out.resize(bitmap + all.div_ceil(8), 0);
    out.u8(1);
    // Without parameters nothing follows the head.
    let (nulls, rest) = rest
        .split_at_checked(params.div_ceil(8))
        .unwrap_or_default();
    out[bitmap..bitmap + nulls.len()].copy_from_slice(nulls);
    let bound = rest.get(usize::from(params > 0)..).unwrap_or_default();
    let (types, values) = bound.split_at_checked(params * 2).unwrap_or_default();
    let mut names = names.map(Reader::new);
    for kind in types.chunks_exact(2) {
        out.bytes(kind);
        match &mut names {
            None => out.u8(0),
            Some(names) => out.lenenc_bytes(names.lenenc_bytes().unwrap_or_default()),
        }
    }
    attributes.write_types(out, bitmap, params);
    out.bytes(values);
    attributes.write_values(out);
}

/// Fuzz target: the first byte is the number of parameters, the rest a COM_QUERY or
/// COM_STMT_EXECUTE. Attributes that can be read are the same after they were written, in both
/// commands, and hide no byte of the statement.
pub fn fuzz_attributes(data: &[u8]) {
    use crate::command::Command;
    let Some((&params, payload)) = data.split_first() else {
        return;
    };
    let params = usize::from(params % 40);
    let caps = caps::PROTOCOL_41 | caps::QUERY_ATTRIBUTES;
    let same = |attributes: &Attributes| {
        let mut out = Vec::new();
        write_query(&mut out, b"SELECT 1", attributes, caps);
        let Ok(Command::Query(query)) = Command::read(&out, caps) else {
            panic!("our own COM_QUERY is one")
        };
        assert_eq!(query.sql, b"SELECT 1");
        assert_eq!(
            Attributes::of_query(query.attributes).as_ref(),
            Ok(attributes)
        );
    };
    match Command::read(payload, caps) {
        Ok(Command::Query(query)) => {
            same(&Attributes::of_query(query.attributes).expect("it was read once"))
        }
        Ok(Command::Execute(execute)) => {
            let Ok(parts) = Parts::read(&execute, params, caps) else {
                return;
            };
            let Ok(attributes) = Attributes::of_execution(&parts, params, |_| false) else {
                return;
            };
            same(&attributes);
            let remembered = [Type::VAR_STRING.0, 0].repeat(params);
            let mut plain = Vec::new();
            if parts
                .rewrite(&mut plain, 7, params, Some(&remembered), |_| false)
                .is_err()
            {
                return;
            }
            let mut out = Vec::new();
            write_execution(
                &mut out,
                &plain,
                params,
                parts.names(params).as_deref(),
                &attributes,
                caps,
            );
            let Ok(Command::Execute(again)) = Command::read(&out, caps) else {
                panic!("our own COM_STMT_EXECUTE is one")
            };
            let again =
                Parts::read(&again, params, caps).expect("our own COM_STMT_EXECUTE is well formed");
            assert_eq!(
                Attributes::of_execution(&again, params, |_| false),
                Ok(attributes)
            );
            let mut after = Vec::new();
            again
                .rewrite(&mut after, 7, params, None, |_| false)
                .expect("its parameters are the same");
            assert_eq!(after, plain);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;

    const CAPS: Caps = caps::PROTOCOL_41 | caps::QUERY_ATTRIBUTES;

    fn texts(all: &[(&str, &str)]) -> Attributes {
        let mut attributes = Attributes::default();
        all.iter()
            .for_each(|(name, text)| attributes.push_text(name, text));
        attributes
    }

    #[test]
    fn attributes_of_a_query_are_read_and_written() {
        // A string, a NULL and a number.
        let payload =
            b"\x03\x03\x01\x02\x01\xfd\0\x01a\xfe\0\x01b\x03\x80\x01c\x02v1\x05\0\0\0SELECT 1";
        let Ok(Command::Query(query)) = Command::read(payload, CAPS) else {
            panic!("a query")
        };
        let attributes = Attributes::of_query(query.attributes).unwrap();
        let seen: Vec<_> = attributes.iter().map(|one| (one.name, one.value)).collect();
        assert_eq!(
            seen,
            [
                (&b"a"[..], Some(&b"\x02v1"[..])),
                (b"b", None),
                (b"c", Some(b"\x05\0\0\0"))
            ]
        );
        let mut out = Vec::new();
        write_query(&mut out, query.sql, &attributes, CAPS);
        assert_eq!(out, payload);
        out.clear();
        write_query(&mut out, query.sql, &attributes, caps::PROTOCOL_41);
        assert_eq!(
            out, b"\x03SELECT 1",
            "a server that does not speak it gets none"
        );
        out.clear();
        write_query(&mut out, query.sql, &Attributes::default(), CAPS);
        assert_eq!(out, b"\x03\0\x01SELECT 1");
    }

    #[test]
    fn attributes_of_an_execution_are_found_behind_its_parameters() {
        // 7, NULL, "ab"; attributes k = "v" and a NULL.
        let payload =
            b"\x17\x05\0\0\0\x08\x01\0\0\0\x05\x12\x01\x03\0\0\x06\0\0\xfd\0\x01p\xfe\0\x01k\xfe\0\x01n\x07\0\0\0\x02ab\x01v";
        let Ok(Command::Execute(execute)) = Command::read(payload, CAPS) else {
            panic!("an execution")
        };
        let parts = Parts::read(&execute, 3, CAPS).unwrap();
        let attributes = Attributes::of_execution(&parts, 3, |_| false).unwrap();
        let seen: Vec<_> = attributes.iter().map(|one| (one.name, one.value)).collect();
        assert_eq!(seen, [(&b"k"[..], Some(&b"\x01v"[..])), (b"n", None)]);
        let mut plain = Vec::new();
        parts.rewrite(&mut plain, 5, 3, None, |_| false).unwrap();
        assert_eq!(
            plain,
            b"\x17\x05\0\0\0\0\x01\0\0\0\x02\x01\x03\0\x06\0\xfd\0\x07\0\0\0\x02ab"
        );
        let mut out = Vec::new();
        write_execution(
            &mut out,
            &plain,
            3,
            parts.names(3).as_deref(),
            &attributes,
            CAPS,
        );
        assert_eq!(out, payload);
        out.clear();
        write_execution(&mut out, &plain, 3, None, &attributes, caps::PROTOCOL_41);
        assert_eq!(out, plain, "a server that does not speak it gets none");
        out.clear();
        write_execution(&mut out, &plain, 3, None, &Attributes::default(), CAPS);
        assert_eq!(
            out,
            b"\x17\x05\0\0\0\x08\x01\0\0\0\x03\x02\x01\x03\0\0\x06\0\0\xfd\0\0\x07\0\0\0\x02ab"
        );
    }

    #[test]
    fn an_execution_without_parameters_is_the_same_for_all_servers_but_for_its_attributes() {
        let plain = b"\x17\x05\0\0\0\x01\x01\0\0\0";
        let mut out = Vec::new();
        write_execution(&mut out, plain, 0, None, &Attributes::default(), CAPS);
        assert_eq!(out, plain);
        out.clear();
        write_execution(&mut out, plain, 0, None, &texts(&[("k", "v")]), CAPS);
        assert_eq!(
            out,
            b"\x17\x05\0\0\0\x09\x01\0\0\0\x01\0\x01\xfd\0\x01k\x01v"
        );
    }

    #[test]
    fn null_bits_of_parameters_and_attributes_share_their_bytes() {
        let mut plain = b"\x17\x05\0\0\0\0\x01\0\0\0\xff\x01\x01".to_vec();
        plain.extend_from_slice(&[6, 0].repeat(9));
        let mut attributes = texts(&[("a", "")]);
        attributes.push(Attribute {
            kind: [6, 0],
            name: b"b",
            value: None,
        });
        let mut out = Vec::new();
        write_execution(&mut out, &plain, 9, None, &attributes, CAPS);
        let Ok(Command::Execute(execute)) = Command::read(&out, CAPS) else {
            panic!("an execution")
        };
        let parts = Parts::read(&execute, 9, CAPS).unwrap();
        let nulls: Vec<bool> = (0..11).map(|at| parts.is_null(at)).collect();
        assert_eq!(
            nulls,
            [
                true, true, true, true, true, true, true, true, true, false, true
            ]
        );
        assert_eq!(
            Attributes::of_execution(&parts, 9, |_| false),
            Ok(attributes)
        );
    }

    #[test]
    fn what_servers_call_malformed_is_refused() {
        for payload in [
            &b"\x03"[..],
            b"\x03\0",
            b"\x03\0\x02SELECT 1",
            b"\x03\x01\x01\0\0\x02v1SELECT 1",
            b"\x03\x05\x01\0\x01\x03\0SELECT 1",
            b"\x03\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01SELECT 1",
        ] {
            assert!(Command::read(payload, CAPS).is_err(), "{payload:?}");
        }
        let unbound = b"\x17\x05\0\0\0\x08\x01\0\0\0\x01\0\0\x01v";
        let Ok(Command::Execute(execute)) = Command::read(unbound, CAPS) else {
            panic!("an execution")
        };
        let parts = Parts::read(&execute, 0, CAPS).unwrap();
        assert!(Attributes::of_execution(&parts, 0, |_| false).is_err());
    }

    #[test]
    fn a_parameter_that_was_sent_before_has_no_value_among_them() {
        let payload = b"\x17\x05\0\0\0\x08\x01\0\0\0\x02\0\x01\xfc\0\0\xfe\0\x01k\x01v";
        let Ok(Command::Execute(execute)) = Command::read(payload, CAPS) else {
            panic!("an execution")
        };
        let parts = Parts::read(&execute, 1, CAPS).unwrap();
        let attributes = Attributes::of_execution(&parts, 1, |at| at == 0).unwrap();
        assert_eq!(attributes, {
            let mut wanted = Attributes::default();
            wanted.push(Attribute {
                kind: [0xFE, 0],
                name: b"k",
                value: Some(b"\x01v"),
            });
            wanted
        });
    }
}
