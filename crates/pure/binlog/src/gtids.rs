//! GTIDs as events and commands have them.

use gtid::{Gtid, Set, Source};
use wire::Malformed;
use wire::read::Reader;

/// Characters of a tag.
const TAG_MAX: usize = 32;
/// First and last byte of a set that has tags.
const TAGGED: u64 = 1 << 56 | 1;
/// Sources that one event may name.
const SOURCES_MAX: u64 = 1 << 20;
/// MariaDB keeps the number of GTIDs of a list in so many bits; others are flags.
const LIST_LEN: u32 = (1 << 28) - 1;

const NO_NUMBER: Malformed = Malformed::new("a GTID without a number");
const NO_TAG: Malformed = Malformed::new("the tag of a GTID is no tag");
const TOO_MANY: Malformed = Malformed::new("a set of GTIDs has too many sources");
const NO_INTERVAL: Malformed = Malformed::new("an interval of GTIDs ends before it begins");

/// Reads a GTID_LOG_EVENT.
pub(crate) fn mysql(body: &mut Reader<'_>) -> Result<Gtid, Malformed> {
    let _flags = body.u8()?;
    let uuid = body.array()?;
    let number = positive(body.u64()?)?;
    let source = Source::MySql { uuid, tag: None };
    Ok(Gtid { source, number })
}

/// Reads a GTID_TAGGED_LOG_EVENT: fields with numbers, of which the first four are needed.
///
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/PageLibsMysqlSerialization.html>
pub(crate) fn tagged(body: &mut Reader<'_>) -> Result<Gtid, Malformed> {
    let (_version, _len, _last) = (varlen(body)?, varlen(body)?, varlen(body)?);
    let (mut uuid, mut number, mut tag) = ([0; 16], 0, None);
    while !body.is_empty() {
        match varlen(body)? {
            0 => drop(varlen(body)?),
            1 => {
                for byte in &mut uuid {
                    *byte = u8::try_from(varlen(body)?).map_err(|_| NO_NUMBER)?;
                }
            }
            // The lowest bit is a sign.
            2 => number = varlen(body)? >> 1,
            3 => tag = read_tag(body)?,
            _ => break,
        }
    }
    let source = Source::MySql { uuid, tag };
    Ok(Gtid {
        source,
        number: positive(number)?,
    })
}

/// Reads the GTID of a MariaDB's GTID_EVENT, up to its flags.
pub(crate) fn mariadb(body: &mut Reader<'_>) -> Result<Gtid, Malformed> {
    let number = positive(body.u64()?)?;
    let domain = body.u32()?;
    let source = Source::MariaDb { domain };
    Ok(Gtid { source, number })
}

fn positive(number: u64) -> Result<u64, Malformed> {
    match number {
        1..=0x7FFF_FFFF_FFFF_FFFF => Ok(number),
        _ => Err(NO_NUMBER),
    }
}

/// Reads an integer whose first byte has as many ones at its end as bytes follow it.
fn varlen(from: &mut Reader<'_>) -> Result<u64, Malformed> {
    let first = from.u8()?;
    let more = first.trailing_ones() as usize;
    let mut bytes = [0; 8];
    bytes[..more].copy_from_slice(from.take(more)?);
    let high = u64::from_le_bytes(bytes);
    Ok(match more {
        7 | 8 => high,
        _ => u64::from(first) >> (more + 1) | high << (7 - more),
    })
}

fn read_tag(from: &mut Reader<'_>) -> Result<Option<Box<str>>, Malformed> {
    let len = usize::try_from(varlen(from)?).map_err(|_| NO_TAG)?;
    let tag = std::str::from_utf8(from.take(len)?).map_err(|_| NO_TAG)?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if tag.len() > TAG_MAX || !tag.chars().all(fits) {
        return Err(NO_TAG);
    }
    Ok((!tag.is_empty()).then(|| tag.into()))
}

/// Reads the set of a PREVIOUS_GTIDS_LOG_EVENT.
pub(crate) fn set(body: &mut Reader<'_>) -> Result<Set, Malformed> {
    let head = body.u64()?;
    let is_tagged = head & TAGGED == TAGGED;
    let sources = if is_tagged {
        head >> 8 & 0xFFFF_FFFF_FFFF
    } else {
        head
    };
    if sources > SOURCES_MAX {
        return Err(TOO_MANY);
    }
    let mut set = Set::default();
    for _ in 0..sources {
        let uuid = body.array()?;
        let tag = if is_tagged { read_tag(body)? } else { None };
        let source = Source::MySql { uuid, tag };
        for _ in 0..body.u64()? {
            let (first, end) = (positive(body.u64()?)?, body.u64()?);
            if end <= first {
                return Err(NO_INTERVAL);
            }
            set.add_interval(&source, (first, end - 1));
        }
    }
    Ok(set)
}

/// Reads the set of a MariaDB's GTID_LIST_EVENT.
pub(crate) fn list(body: &mut Reader<'_>) -> Result<Set, Malformed> {
    let mut set = Set::default();
    for _ in 0..body.u32()? & LIST_LEN {
        let (domain, _server, number) = (body.u32()?, body.u32()?, body.u64()?);
        set.add(&Source::MariaDb { domain }, number);
    }
    Ok(set)
}

/// Writes MySQL's part of a set as COM_BINLOG_DUMP_GTID has it: the form with tags only where there
/// are some, since older servers do not know it.
pub(crate) fn write_set(out: &mut Vec<u8>, set: &Set) {
    let mysql = || {
        set.iter().filter_map(|(source, intervals)| match source {
            Source::MySql { uuid, tag } => Some((uuid, tag.as_deref(), intervals)),
            Source::MariaDb { .. } => None,
        })
    };
    let sources = mysql().count() as u64;
    let is_tagged = mysql().any(|(_, tag, _)| tag.is_some());
    let head = if is_tagged {
        TAGGED | sources << 8
    } else {
        sources
    };
    out.extend(head.to_le_bytes());
    for (uuid, tag, intervals) in mysql() {
        out.extend(uuid);
        if is_tagged {
            let tag = tag.unwrap_or_default();
            out.push(u8::try_from(tag.len() << 1).expect("a tag has 32 characters"));
            out.extend(tag.as_bytes());
        }
        out.extend((intervals.len() as u64).to_le_bytes());
        for (first, last) in intervals {
            out.extend(first.to_le_bytes());
            out.extend(last.saturating_add(1).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_they_are_written() {
        const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        for text in [
            String::new(),
            format!("{A}:1-5:7"),
            format!("{A}:1-3,{A}:tag_a:2,{A}:tag_b:4-9"),
        ] {
            let mut bytes = Vec::new();
            write_set(&mut bytes, &text.parse().unwrap());
            let read = set(&mut Reader::new(&bytes)).unwrap();
            assert_eq!(read.to_string(), text);
            for end in 0..bytes.len() {
                assert!(
                    set(&mut Reader::new(&bytes[..end])).is_err(),
                    "{text} {end}"
                );
            }
        }
    }

    #[test]
    fn an_integer_says_in_its_first_byte_how_long_it_is() {
        for (bytes, number) in [
            (&[0x04][..], 2),
            (&[0x78], 60),
            (&[0x01, 0x02], 128),
            (&[0xad, 0x03], 0xeb),
            (&[0x7f, 1, 0, 0, 0, 0, 0, 0], 1),
            (&[0xff, 1, 0, 0, 0, 0, 0, 0, 0x80], 0x8000_0000_0000_0001),
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!(varlen(&mut reader), Ok(number), "{bytes:02x?}");
            assert!(reader.is_empty());
        }
        assert!(varlen(&mut Reader::new(&[0x01])).is_err());
    }
}
