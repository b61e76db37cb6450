//! Places of servers in hostgroups, with the reasons, and the policy by which they are found.

use crate::seen::ServerKey;
use config::{Server, Status, Topology, Variables};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// All hostgroups with a server, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placed {
    /// By number.
    pub hostgroups: BTreeMap<u32, Vec<Place>>,
    /// Writer of each topology, by the writers' hostgroup: to be remembered.
    pub writers: BTreeMap<u32, ServerKey>,
    /// Servers that no row names, each with the topology whose servers know it.
    pub found: BTreeMap<ServerKey, (Arc<Topology>, Arc<Server>)>,
    /// Addresses of names that get nothing new, and why.
    pub elsewhere: Elsewhere,
}

/// An address of a name that gets nothing new, by the address and its port.
pub type Elsewhere = BTreeMap<ServerKey, (Arc<str>, Why)>;

/// A server in a hostgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The operator's row, or that of its other hostgroup if it was moved here.
    pub server: Arc<Server>,
    /// The address of its name that is in use; `None` if it has one anyway, or nobody has looked.
    pub at: Option<IpAddr>,
    /// Whether it serves.
    pub serves: Serves,
    /// Why it is here although no row says so, or what it says of itself.
    pub why: Option<Why>,
}

/// Whether a server serves in a hostgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// The server takes work.
    Yes,
    /// The server takes no new work, and ends what it has.
    Drains(Why),
    /// The server takes no work, and what it has is cut off.
    No(Why),
}

/// A reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Its row has this status.
    Status(Status),
    /// The server does not answer.
    Missing(Arc<str>),
    /// Seconds behind: so many, and so many are allowed.
    Lags(u32, u32),
    /// A ping takes so many milliseconds, and may take so many.
    IsSlow(u32, u32),
    /// The server says that it may write.
    Writes,
    /// The server says that it only reads.
    Reads,
    /// The server is a writer and reads as well, where writers do.
    WriterReads,
    /// The server says that it may write, and so does another, which is the writer.
    NotTheWriter(ServerKey),
    /// The server says that it may write, and replicates from another that may be the writer.
    Follows,
    /// The server says that it may write, and so do others. Which of them is the writer is not
    /// known, or the operator wants none then.
    TooManyWriters,
    /// The server has not said for too long, and another says that it may write.
    Missed,
    /// Elected: the writer of its cluster, or one of them.
    IsWriter,
    /// Elected are others; this one could write.
    CouldWrite,
    /// Reading is all it may do, in its own words.
    OnlyReads(&'static str),
    /// Nothing is all it may do, in its own words.
    IsNoUse(&'static str),
    /// Silence to the check of its cluster for too long, while others answer.
    IsSilent,
    /// Silence to the check of its cluster from the beginning, while others answer.
    IsUnseen,
    /// Transactions still to apply: so many, and so many are allowed.
    IsBehind(u32, u32),
    /// Milliseconds behind: so many, and so many are allowed.
    IsLate(u32, u32),
    /// Another address of its name is in use.
    NotTheFirst(IpAddr),
    /// Its name leads there no more.
    LeftBehind,
    /// Its addresses serve, each by itself.
    ByAddress,
    /// No check has seen it, and others of its name are there.
    Unchecked,
}

impl Why {
    /// Whether the server says that it may write, and gets no writes for this reason.
    #[must_use]
    pub const fn denies_writes(&self) -> bool {
        matches!(
            self,
            Self::NotTheWriter(_) | Self::Follows | Self::TooManyWriters
        )
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::Missing(why) => write!(f, "does not answer: {why}"),
            Self::Lags(is, may) => write!(f, "{is} s behind, more than {may}"),
            Self::IsSlow(is, may) => write!(f, "a ping takes {is} ms, more than {may}"),
            Self::Writes => f.write_str("read_only is 0"),
            Self::Reads => f.write_str("read_only is 1"),
            Self::WriterReads => f.write_str("the writer is also a reader"),
            Self::NotTheWriter(writer) => write!(f, "read_only is 0, but {writer} is the writer"),
            Self::Follows => f.write_str("read_only is 0, but it replicates from another"),
            Self::TooManyWriters => {
                f.write_str("others have read_only 0, too, and none is the writer")
            }
            Self::Missed => f.write_str("has not said read_only, and another has 0"),
            Self::IsWriter => f.write_str("the writer"),
            Self::CouldWrite => f.write_str("could write, and there are writers enough"),
            Self::OnlyReads(why) | Self::IsNoUse(why) => f.write_str(why),
            Self::IsSilent => f.write_str("does not answer the check of its cluster any more"),
            Self::IsUnseen => f.write_str("has not answered the check of its cluster yet"),
            Self::IsBehind(is, may) => {
                write!(f, "{is} transactions still to apply, more than {may}")
            }
            Self::IsLate(is, may) => write!(f, "{is} ms behind, more than {may}"),
            Self::NotTheFirst(first) => write!(f, "the first that answers is {first}"),
            Self::ByAddress => f.write_str("each of its addresses is a server"),
            Self::Unchecked => f.write_str("no check has seen it yet"),
            Self::LeftBehind => f.write_str("the name leads there no more"),
        }
    }
}

/// Policy by the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// `mysql-monitor_writer_is_also_reader`.
    pub writer_is_also_reader: bool,
    /// `mysql-default_max_latency_ms`.
    pub max_latency_ms: u32,
    /// `mysql-monitor_groupreplication_max_transactions_behind_for_read_only`.
    pub groups_behind: Behind,
}

/// Servers that get nothing new while they have too many transactions still to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behind {
    /// Writers.
    Writers,
    /// Readers and backup writers.
    #[default]
    Readers,
    /// Both of them.
    All,
}

impl Policy {
    /// As the variables say.
    #[must_use]
    pub fn of(variables: &Variables) -> Self {
        let max_ms = variables.mysql_default_max_latency_ms;
        let v_behind =
            variables.mysql_monitor_groupreplication_max_transactions_behind_for_read_only;
        Self {
            writer_is_also_reader: variables.mysql_monitor_writer_is_also_reader,
            max_latency_ms: u32::try_from(max_ms).unwrap_or(u32::MAX),
            groups_behind: match v_behind {
                0 => Behind::Writers,
                1 => Behind::Readers,
                _ => Behind::All,
            },
        }
    }
}
