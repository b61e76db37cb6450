//! The answer to a queued query, as a script looks at it.

use std::cell::OnceCell;
use wire::caps::Caps;
use wire::definition;
use wire::response::{self, Expect, Response};
use wire::rows::{self, Rows};

/// Numbers of an answer, which are there whether or not its rows are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Whether the answer ended with an error.
    pub failed: bool,
    /// Whether the answer has columns.
    pub has_rows: bool,
    /// Rows.
    pub rows: u64,
    /// Bytes of the answer, headers included.
    pub bytes: u64,
    /// SERVER_STATUS_* flags.
    pub status: u16,
    /// Warnings.
    pub warnings: u16,
    /// Affected rows.
    pub affected: u64,
    /// `LAST_INSERT_ID()` of it.
    pub insert_id: u64,
}

/// One answer.
#[derive(Debug, Default)]
pub struct Outcome {
    /// All of its packets with their headers, as the client would get them; none if they have gone
    /// there already.
    pub packets: Option<Vec<u8>>,
    /// Capabilities that those packets were written for.
    pub caps: Caps,
    /// Its rows are binary, as those of COM_STMT_EXECUTE.
    pub is_binary: bool,
    /// Numbers of it.
    pub counts: Counts,
    /// Microseconds until its first packet.
    pub query_us: u64,
    /// Microseconds until its last packet.
    pub response_us: u64,
    read: OnceCell<Rows>,
    parts: OnceCell<Vec<Self>>,
}

impl Outcome {
    /// Of these packets, or of what has gone to the client.
    #[must_use]
    pub fn new(packets: Option<Vec<u8>>, caps: Caps, is_binary: bool, counts: Counts) -> Self {
        Self {
            packets,
            caps,
            is_binary,
            counts,
            ..Self::default()
        }
    }

    /// Payload of the first packet.
    pub(crate) fn first(&self) -> Option<Vec<u8>> {
        let (payload, ..) = wire::packet::join(self.packets.as_deref()?)?;
        Some(payload.into_owned())
    }

    /// Columns and rows. What cannot be read has none.
    pub(crate) fn rows(&self) -> &Rows {
        self.read.get_or_init(|| {
            let packets = self.packets.as_deref().unwrap_or_default();
            let read = match self.is_binary {
                true => rows::read_executed(packets, self.caps),
                false => rows::read(packets, self.caps),
            };
            read.unwrap_or_default()
        })
    }

    /// Whether another result follows the first one.
    pub(crate) fn is_several(&self) -> bool {
        let packets = self.packets.as_deref().unwrap_or_default();
        rows::are_several(packets, self.caps)
    }

    /// Its results, one after another; none where they have gone to the client.
    pub(crate) fn parts(&self) -> &[Self] {
        self.parts.get_or_init(|| {
            let packets = self.packets.as_deref().unwrap_or_default();
            let all = rows::results(packets, self.caps).into_iter();
            all.map(|one| Self::of_one(one, self.caps, self.is_binary))
                .collect()
        })
    }

    /// One whose numbers stand in its packets.
    fn of_one(packets: &[u8], caps: Caps, is_binary: bool) -> Self {
        let expect = match is_binary {
            true => Expect::Execute,
            false => Expect::Query,
        };
        let mut response = Response::expect(expect, caps);
        // The whole was followed on its way; what follows this one is of no matter to it.
        let _followed = response.follow(packets);
        let counts = Counts {
            failed: matches!(response.outcome(), response::Outcome::Err { .. }),
            has_rows: response.columns() > 0,
            rows: response.rows(),
            bytes: packets.len() as u64,
            status: response.status(),
            warnings: response.warnings(),
            affected: response.affected_rows(),
            insert_id: response.insert_id(),
        };
        Self::new(Some(packets.to_vec()), caps, is_binary, counts)
    }

    /// Names of a column: its own, its original one, its table's and that one's original.
    pub(crate) fn names(&self, column: usize) -> [&[u8]; 4] {
        let definition = self.rows().definitions.get(column);
        let names = definition.and_then(|definition| definition::names(definition).ok());
        names.map_or([b""; 4], |[_, _, table, org_table, name, org_name]| {
            [name, org_name, table, org_table]
        })
    }
}
