//! MariaDB's COM_STMT_BULK_EXECUTE: one statement, many rows of parameters.
//!
//! <https://mariadb.com/kb/en/com_stmt_bulk_execute/> After the flags come the types, if a flag
//! says so, and then for each row and parameter a byte that says what stands for its value, and the
//! value.

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::command::COM_STMT_BULK_EXECUTE;
use crate::write::Write as _;

/// Flags: one result for each row is wanted.
pub const SEND_UNIT_RESULTS: u16 = 64;
/// Flags: the types of the parameters are sent along.
pub const CLIENT_SEND_TYPES: u16 = 128;

/// Its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bulk<'a> {
    /// Flags as sent.
    pub flags: u16,
    /// Two bytes a parameter, if they were sent.
    pub types: Option<&'a [u8]>,
    /// The rows.
    pub rows: &'a [u8],
}

impl<'a> Bulk<'a> {
    /// Finds the parts: `rest` is what follows the flags, `params` the number of parameters that
    /// the statement has.
    ///
    /// # Errors
    /// There are fewer types than parameters.
    pub fn read(flags: u16, rest: &'a [u8], params: usize) -> Result<Self, Malformed> {
        if flags & CLIENT_SEND_TYPES == 0 {
            return Ok(Self {
                flags,
                types: None,
                rows: rest,
            });
        }
        let (types, rows) = rest
            .split_at_checked(params * 2)
            .ok_or(Malformed::new("COM_STMT_BULK_EXECUTE with too few types"))?;
        Ok(Self {
            flags,
            types: Some(types),
            rows,
        })
    }

    /// Writes the command for a connection that knows the statement by this id and has never seen
    /// the types; `remembered` are those of the execution before.
    ///
    /// # Errors
    /// The types were not sent, neither now nor before.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        id: u32,
        params: usize,
        remembered: Option<&[u8]>,
    ) -> Result<(), Malformed> {
        let types = self
            .types
            .or(remembered)
            .filter(|types| types.len() == params * 2);
        let types = types.ok_or(Malformed::new(
            "COM_STMT_BULK_EXECUTE leaves out the types of its parameters and never sent them",
        ))?;
        out.u8(COM_STMT_BULK_EXECUTE);
        out.u32(id);
        out.u16(self.flags | CLIENT_SEND_TYPES);
        out.bytes(types);
        out.bytes(self.rows);
        Ok(())
    }
}

/// Whether both sides know the command.
#[must_use]
pub const fn is_known(caps: Caps) -> bool {
    caps::has(caps, caps::MARIADB_BULK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_were_left_out_are_put_back() {
        let first = Bulk::read(CLIENT_SEND_TYPES, b"\x03\0\0\x05\0\0\0", 1).unwrap();
        assert_eq!(
            (first.types, first.rows),
            (Some(&b"\x03\0"[..]), &b"\0\x05\0\0\0"[..])
        );
        let second = Bulk::read(0, b"\x01", 1).unwrap();
        let mut out = Vec::new();
        second.write(&mut out, 7, 1, first.types).unwrap();
        assert_eq!(out, b"\xfa\x07\0\0\0\x80\0\x03\0\x01");
        assert!(
            second.write(&mut out, 7, 1, None).is_err()
                && second.write(&mut out, 7, 2, first.types).is_err()
        );
        assert!(Bulk::read(CLIENT_SEND_TYPES, b"\x03", 1).is_err());
    }
}
