//! What a client may ask: the command byte and what follows it.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html>

pub use crate::codes::*;
pub use crate::execute::Execute;

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::read::Reader;
use crate::write::Write as _;

/// A COM_QUERY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// The text.
    pub sql: &'a [u8],
    /// The query attributes as they were on the wire, from the count of parameters to their last
    /// value; empty if the client did not agree on CLIENT_QUERY_ATTRIBUTES.
    pub attributes: &'a [u8],
}

/// A command, borrowed from its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each is the command of its name; the fields say what follows"
)]
pub enum Command<'a> {
    Quit,
    InitDb(&'a [u8]),
    Query(Query<'a>),
    FieldList {
        table: &'a [u8],
        wildcard: &'a [u8],
    },
    Statistics,
    ProcessKill(u32),
    Debug,
    Ping,
    ChangeUser(&'a [u8]),
    ResetConnection,
    SetOption(u16),
    Prepare(&'a [u8]),
    Execute(Execute<'a>),
    /// MariaDB's bulk execute: statement and the rest.
    BulkExecute {
        id: u32,
        flags: u16,
        params: &'a [u8],
    },
    SendLongData {
        id: u32,
        param: u16,
        data: &'a [u8],
    },
    Close(u32),
    Reset(u32),
    Fetch {
        id: u32,
        rows: u32,
    },
    BinlogDump(&'a [u8]),
    BinlogDumpGtid(&'a [u8]),
    RegisterSlave(&'a [u8]),
    /// Anything else, withdrawn or unheard of.
    Unknown(u8),
}

/// COM_SET_OPTION: several statements per query from now on.
pub const SET_OPTION_MULTI_STATEMENTS_ON: u16 = 0;
/// COM_SET_OPTION: no longer.
pub const SET_OPTION_MULTI_STATEMENTS_OFF: u16 = 1;

/// The statement id that MariaDB clients use for "the one that was prepared last".
pub const LAST_STATEMENT: u32 = 0xFFFF_FFFF;

impl<'a> Command<'a> {
    /// Reads a payload. `caps` are those that the client agreed on.
    pub fn read(payload: &'a [u8], caps: Caps) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        let byte = r.u8().map_err(|_| Malformed::new("command of no bytes"))?;
        Ok(match byte {
            COM_QUERY => Self::Query(Query::read(&mut r, caps)?),
            COM_STMT_EXECUTE => Self::Execute(Execute::read(&mut r)?),
            COM_QUIT => Self::Quit,
            COM_INIT_DB => Self::InitDb(r.rest()),
            COM_PING => Self::Ping,
            COM_STMT_PREPARE => Self::Prepare(r.rest()),
            COM_STMT_CLOSE => Self::Close(r.u32()?),
            COM_STMT_RESET => Self::Reset(r.u32()?),
            COM_STMT_SEND_LONG_DATA => Self::SendLongData {
                id: r.u32()?,
                param: r.u16()?,
                data: r.rest(),
            },
            COM_STMT_FETCH => Self::Fetch {
                id: r.u32()?,
                rows: r.u32()?,
            },
            COM_STMT_BULK_EXECUTE => Self::BulkExecute {
                id: r.u32()?,
                flags: r.u16()?,
                params: r.rest(),
            },
            COM_RESET_CONNECTION => Self::ResetConnection,
            COM_CHANGE_USER => Self::ChangeUser(r.rest()),
            COM_SET_OPTION => Self::SetOption(r.u16()?),
            COM_STATISTICS => Self::Statistics,
            COM_FIELD_LIST => Self::FieldList {
                table: r.nul_str_or_rest(),
                wildcard: r.rest(),
            },
            COM_PROCESS_KILL => Self::ProcessKill(r.u32()?),
            COM_DEBUG => Self::Debug,
            COM_BINLOG_DUMP => Self::BinlogDump(r.rest()),
            COM_BINLOG_DUMP_GTID => Self::BinlogDumpGtid(r.rest()),
            COM_REGISTER_SLAVE => Self::RegisterSlave(r.rest()),
            other => Self::Unknown(other),
        })
    }

    /// False for the commands that have no answer at all.
    pub const fn is_answered(&self) -> bool {
        !matches!(
            self,
            Self::Quit | Self::Close(_) | Self::SendLongData { .. }
        )
    }
}

/// Whether a command has an answer at all, by its first byte.
pub const fn has_answer(command: u8) -> bool {
    !matches!(command, COM_QUIT | COM_STMT_CLOSE | COM_STMT_SEND_LONG_DATA)
}

impl<'a> Query<'a> {
    fn read(r: &mut Reader<'a>, caps: Caps) -> Result<Self, Malformed> {
        if !caps::has(caps, caps::QUERY_ATTRIBUTES) {
            return Ok(Self {
                sql: r.rest(),
                attributes: &[],
            });
        }
        let before = r.peek();
        crate::attributes::read_block(r, |_| {})?;
        let attributes = &before[..before.len() - r.left()];
        Ok(Self {
            sql: r.rest(),
            attributes,
        })
    }
}

/// Writes a COM_QUERY's payload for a server with which CLIENT_QUERY_ATTRIBUTES was not (or was)
/// agreed on.
pub fn write_query(out: &mut Vec<u8>, sql: &[u8], caps: Caps) {
    out.u8(COM_QUERY);
    if caps::has(caps, caps::QUERY_ATTRIBUTES) {
        out.bytes(&[0, 1]);
    }
    out.bytes(sql);
}

/// Fuzz target: any payload is a command or is refused; the first byte chooses the caps.
pub fn fuzz_command(data: &[u8]) {
    let Some((&bits, payload)) = data.split_first() else {
        return;
    };
    let caps = caps::PROTOCOL_41
        | if bits & 1 != 0 {
            caps::QUERY_ATTRIBUTES
        } else {
            0
        };
    match Command::read(payload, caps) {
        Ok(Command::Query(q)) => assert_eq!(q.sql.len() + q.attributes.len() + 1, payload.len()),
        Ok(Command::ChangeUser(body)) => {
            crate::handshake::ChangeUser::read(body, caps).ok();
        }
        Ok(c) => {
            c.is_answered();
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Caps = caps::PROTOCOL_41;

    #[test]
    fn every_command_is_read_by_its_byte() {
        let cases: &[(&[u8], Command<'_>)] = &[
            (b"\x01", Command::Quit),
            (b"\x02shop", Command::InitDb(b"shop")),
            (
                b"\x03select 1",
                Command::Query(Query {
                    sql: b"select 1",
                    attributes: b"",
                }),
            ),
            (
                b"\x03",
                Command::Query(Query {
                    sql: b"",
                    attributes: b"",
                }),
            ),
            (
                b"\x04t\0a%",
                Command::FieldList {
                    table: b"t",
                    wildcard: b"a%",
                },
            ),
            (b"\x09", Command::Statistics),
            (b"\x0c\x07\0\0\0", Command::ProcessKill(7)),
            (b"\x0d", Command::Debug),
            (b"\x0e", Command::Ping),
            (b"\x11bob\0", Command::ChangeUser(b"bob\0")),
            (b"\x16select ?", Command::Prepare(b"select ?")),
            (
                b"\x17\x01\0\0\0\0\x01\0\0\0rest",
                Command::Execute(Execute {
                    id: 1,
                    flags: 0,
                    params: b"rest",
                }),
            ),
            (
                b"\x18\x01\0\0\0\x02\0data",
                Command::SendLongData {
                    id: 1,
                    param: 2,
                    data: b"data",
                },
            ),
            (b"\x19\x01\0\0\0", Command::Close(1)),
            (b"\x1a\x01\0\0\0", Command::Reset(1)),
            (b"\x1b\x01\0", Command::SetOption(1)),
            (
                b"\x1c\x01\0\0\0\x05\0\0\0",
                Command::Fetch { id: 1, rows: 5 },
            ),
            (b"\x12x", Command::BinlogDump(b"x")),
            (b"\x1ex", Command::BinlogDumpGtid(b"x")),
            (b"\x15x", Command::RegisterSlave(b"x")),
            (b"\x1f", Command::ResetConnection),
            (
                b"\xfa\x01\0\0\0\x80\0x",
                Command::BulkExecute {
                    id: 1,
                    flags: 0x80,
                    params: b"x",
                },
            ),
            (b"\x08\0", Command::Unknown(8)),
            (b"\xee", Command::Unknown(0xEE)),
        ];
        for (bytes, want) in cases {
            assert_eq!(Command::read(bytes, CAPS).as_ref(), Ok(want));
        }
        assert_eq!(
            (name(0x03), name(0x17), name(0xEE)),
            ("Query", "Execute", "Unknown")
        );
    }

    #[test]
    fn commands_that_are_cut_are_refused() {
        for bytes in [
            &b""[..],
            b"\x0c\x01",
            b"\x17\x01\0\0\0\0\x01\0\0",
            b"\x18\x01\0\0\0\x01",
            b"\x19\x01\0\0",
            b"\x1a",
            b"\x1b\x01",
            b"\x1c\x01\0\0\0\x01",
        ] {
            assert!(Command::read(bytes, CAPS).is_err(), "{bytes:02x?}");
        }
    }

    #[test]
    fn the_commands_without_an_answer_are_three() {
        let silent: Vec<u8> = (0..=255)
            .filter(|b| {
                Command::read(&[&[*b][..], &[0; 16]].concat(), CAPS).is_ok_and(|c| !c.is_answered())
            })
            .collect();
        assert_eq!(silent, [COM_QUIT, COM_STMT_SEND_LONG_DATA, COM_STMT_CLOSE]);
    }

    #[test]
    fn query_attributes_stand_before_the_text() {
        let caps = CAPS | caps::QUERY_ATTRIBUTES;
        let q = |bytes: &'static [u8]| match Command::read(bytes, caps) {
            Ok(Command::Query(q)) => Some((q.attributes, q.sql)),
            _ => None,
        };
        assert_eq!(
            q(b"\x03\0\x01select 1"),
            Some((&b"\0\x01"[..], &b"select 1"[..]))
        );
        // Two attributes, n = 'v' and m = NULL.
        let bytes = b"\x03\x02\x01\x02\x01\xfe\0\x01n\xfe\0\x01m\x01vselect 1";
        assert_eq!(q(bytes), Some((&bytes[1..15], &b"select 1"[..])));
        // One that promises a value which is not there, one of an unknown type, one without types.
        assert_eq!(q(b"\x03\x01\x01\0\x01\xfe\0\x01n\x7fshort"), None);
        assert_eq!(q(b"\x03\x01\x01\0\x01\x7f\0\x01nx"), None);
        assert_eq!(q(b"\x03\x01\x01\0\0select 1"), None);
        assert_eq!(q(b"\x03\xfd\0\0\x01\x01"), None);
        let mut out = Vec::new();
        write_query(&mut out, b"select 1", caps);
        assert_eq!(out, b"\x03\0\x01select 1");
        out.clear();
        write_query(&mut out, b"select 1", CAPS);
        assert_eq!(out, b"\x03select 1");
    }
}
