//! Commands that ask a server for its log.

use crate::gtids::write_set;
use gtid::Set;
use wire::command::{COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID};

/// BINLOG_THROUGH_GTID: a set says where to begin.
const BY_GTID: u16 = 4;
/// Bytes in front of the first event of a file.
const FIRST: u8 = 4;

/// Asks a MySQL for all transactions that are not in a set.
///
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_binlog_dump_gtid.html>
#[must_use]
pub fn dump_from_gtids(number: u32, known: &Set) -> Vec<u8> {
    let mut set = Vec::new();
    write_set(&mut set, known);
    let mut out = vec![COM_BINLOG_DUMP_GTID];
    out.extend(BY_GTID.to_le_bytes());
    out.extend(number.to_le_bytes());
    out.extend(0_u32.to_le_bytes()); // no name of a file
    out.extend(u64::from(FIRST).to_le_bytes());
    let len = u32::try_from(set.len()).expect("a set is shorter than a packet");
    out.extend(len.to_le_bytes());
    out.extend(set);
    out
}

/// Asks a MariaDB for all that follows `@slave_connect_state`.
///
/// <https://mariadb.com/docs/server/reference/clientserver-protocol/replication-protocol/com_binlog_dump>
#[must_use]
pub fn dump_from_state(number: u32) -> Vec<u8> {
    let mut out = vec![COM_BINLOG_DUMP];
    out.extend(u32::from(FIRST).to_le_bytes());
    out.extend(0_u16.to_le_bytes());
    out.extend(number.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_goes_into_the_command_with_its_length() {
        let set: Set = "01020304-0506-0708-090a-0b0c0d0e0f10:1-5:7"
            .parse()
            .unwrap();
        let command = dump_from_gtids(9, &set);
        assert_eq!(command[..11], [0x1e, 4, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(command[19..23], 64_u32.to_le_bytes());
        assert_eq!(command.len(), 23 + 64);
        // One source, two intervals; an end is the number behind the last.
        assert_eq!(command[23], 1);
        assert_eq!(command[23 + 24], 2);
        assert_eq!(command[23 + 24 + 16], 6);
        assert_eq!(dump_from_state(9), [0x12, 4, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
    }
}
