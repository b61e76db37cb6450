//! A checksum over the rows of a response, while it is followed: to tell whether two servers gave
//! the same rows.

use super::{Expect, Follow, Response, Taken, Watch};
use crate::Malformed;
use crate::caps::Caps;
use crate::packet::{self, HEADER_LEN};

/// Sums over the rows of a response. Definitions and the packets between results do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowSum {
    /// Rows; one of 16 MiB or more counts once for each of its packets.
    pub rows: u64,
    /// Checksum that is the same for the same rows in the same order.
    pub ordered: u64,
    /// Checksum that is the same for the same rows in any order.
    pub unordered: u64,
}

/// Follows a response and sums up its rows.
#[derive(Debug)]
pub struct Summed {
    response: Response,
    rows: Rows,
}

impl Summed {
    /// As [`Response::expect`].
    #[must_use]
    pub fn expect(expect: Expect, caps: Caps) -> Self {
        Self {
            response: Response::expect(expect, caps),
            rows: Rows::default(),
        }
    }

    /// As [`Response::to_packet`].
    #[must_use]
    pub fn to_packet(mut self, sent: u8) -> Self {
        self.response = self.response.to_packet(sent);
        self
    }

    /// As [`Response::follow`].
    pub fn follow(&mut self, bytes: &[u8]) -> Result<Follow, Malformed> {
        self.response.walk(bytes, &mut self.rows)
    }

    /// The response, as far as it has been followed.
    #[must_use]
    pub const fn response(&self) -> &Response {
        &self.response
    }

    /// Returns the sums over the response's rows so far.
    #[must_use]
    pub const fn sum(&self) -> RowSum {
        self.rows.sum
    }
}

const SEED: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01B3;

#[derive(Debug, Default)]
struct Rows {
    sum: RowSum,
    /// Rows come now.
    in_rows: bool,
    /// The packet that has begun is the last that is no row.
    rows_next: bool,
    /// Bytes of the current row that are still to come.
    left: usize,
    hash: u64,
}

impl Rows {
    fn start(&mut self, len: usize) {
        self.left = len;
        self.hash = SEED;
    }

    fn add(&mut self, bytes: &[u8]) {
        self.left = self.left.saturating_sub(bytes.len());
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
        if self.left == 0 {
            // Well mixed, so that the sum of two rows is not that of two others.
            let mut row = (self.hash ^ (self.hash >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            row ^= row >> 32;
            self.sum.rows += 1;
            self.sum.unordered = self.sum.unordered.wrapping_add(row);
            self.sum.ordered = (self.sum.ordered.rotate_left(7) ^ row).wrapping_mul(PRIME);
        }
    }
}

impl Watch for Rows {
    fn begin(&mut self, len: usize, _: u8, held: &[u8]) {
        if std::mem::take(&mut self.rows_next) {
            self.in_rows = true;
        }
        self.left = 0;
        if self.in_rows && len > 0 {
            self.start(len);
            if !held.is_empty() {
                self.add(held);
            }
        }
    }

    fn pass(&mut self, bytes: &[u8]) {
        if self.left > 0 && !bytes.is_empty() {
            self.add(bytes);
        }
    }

    fn rows(&mut self, mut bytes: &[u8]) {
        self.in_rows |= std::mem::take(&mut self.rows_next);
        while let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LEN>() {
            let (len, _) = packet::header(header);
            let here = len.min(rest.len());
            self.start(len);
            self.add(&rest[..here]);
            bytes = &rest[here..];
        }
    }

    fn definitions_end(&mut self) {
        self.rows_next = true;
    }

    fn take(&mut self, taken: Taken, _: u8, _: &[u8], _: Option<usize>) {
        self.rows_next = false;
        self.left = 0;
        self.in_rows = taken == Taken::DefinitionsEof;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps;
    use crate::resultset::Writer;

    fn result(rows: &[&str], caps: Caps, name: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, 0, caps, 2);
        writer.columns(&[crate::resultset::Column::text(name)]);
        for row in rows {
            writer.text_row([Some(row.as_bytes())]);
        }
        writer.end(0);
        out
    }

    fn sum(bytes: &[u8], caps: Caps, piece: usize) -> RowSum {
        let mut summed = Summed::expect(Expect::Query, caps);
        for chunk in bytes.chunks(piece) {
            summed.follow(chunk).unwrap();
        }
        assert!(summed.response().is_ended());
        summed.sum()
    }

    #[test]
    fn the_sum_is_that_of_the_rows_however_they_come() {
        let long = "x".repeat(300);
        let rows = ["a", "b", &long, ""];
        let (old, new) = (caps::PROTOCOL_41, caps::PROTOCOL_41 | caps::DEPRECATE_EOF);
        let want = sum(&result(&rows, old, "c"), old, usize::MAX);
        assert_eq!(want.rows, 4);
        for caps in [old, new] {
            for piece in [1, 2, 3, 5, 7, 64, 1000] {
                assert_eq!(
                    sum(&result(&rows, caps, "another name"), caps, piece),
                    want,
                    "{piece}"
                );
            }
        }
        let other = sum(&result(&["b", "a", &long, ""], old, "c"), old, 9);
        assert_eq!((other.rows, other.unordered), (want.rows, want.unordered));
        assert_ne!(other.ordered, want.ordered);
        assert_ne!(
            sum(&result(&["a", "c", &long, ""], old, "c"), old, 9).unordered,
            want.unordered
        );
    }
}
