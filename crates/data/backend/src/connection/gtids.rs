//! GTIDs of what sessions write. Servers of hostgroups whose writes a rule wants to be seen
//! elsewhere are asked to tell them; clients who have not asked are not shown them.
//!
//! <https://dev.mysql.com/doc/refman/en/server-system-variables.html#sysvar_session_track_gtids>

use crate::connection::ask::Answer;
use crate::connection::backend::Backend;
use crate::failure::BackendFailed;
use crate::session::state::State;
use config::Snapshot;
use hashbrown::HashSet;
use std::sync::Arc;
use wire::caps;
use wire::track::Wish;

const VARIABLE: &str = "session_track_gtids";

/// The hostgroups whose servers are asked for the GTIDs of what is written there: a rule has them in
/// `gtid_from_hostgroup`, their own `read_after_write` is `gtid`, or
/// `mysql-default_session_track_gtids` wants it of all.
#[derive(PartialEq, Eq)]
pub(crate) struct Sources {
    of_all: bool,
    named: HashSet<u32, foldhash::fast::RandomState>,
}

impl Sources {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let rules = snapshot.rules.chain().iter();
        let by_rules = rules.filter_map(|rule| rule.gtid_from_hostgroup);
        let hostgroups = snapshot.servers.iter();
        let own = hostgroups.filter(|one| one.attributes.reads_see_writes);
        Self {
            of_all: &*snapshot.variables.mysql_default_session_track_gtids == "OWN_GTID",
            named: by_rules.chain(own.map(|one| one.id)).collect(),
        }
    }

    pub(crate) fn has(&self, hostgroup: u32) -> bool {
        self.of_all || self.named.contains(&hostgroup)
    }
}

/// Whether two configurations ask the same servers for GTIDs: rules say so, too.
#[must_use]
pub fn ask_for_the_same_gtids(one: &Snapshot, other: &Snapshot) -> bool {
    let same = Arc::ptr_eq(&one.rules, &other.rules) && Arc::ptr_eq(&one.servers, &other.servers);
    same || Sources::of(one) == Sources::of(other)
}

impl Backend {
    /// Has the server tell the GTIDs of what is written here, now and after every reset. MariaDB
    /// has no such thing.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn ask_for_gtids(&mut self) -> Result<(), BackendFailed> {
        if self.hello.is_mariadb() || !caps::has(self.hello.caps, caps::SESSION_TRACK) {
            return Ok(());
        }
        let told = self.ask("SET SESSION session_track_gtids=OWN_GTID").await?;
        self.lasting.ways.asked_for_gtids = !matches!(told, Answer::Refused(_));
        Ok(())
    }

    /// Whether the server tells the GTID of whatever is written here.
    #[must_use]
    pub fn tells_gtids(&self) -> bool {
        self.lasting.ways.asked_for_gtids && self.state.variable(VARIABLE).is_none()
    }

    /// The session brought its own wish, or took it back: it is that from now on.
    pub(crate) fn gtids_are_said(&mut self, before: &State, want: &State) {
        let says = |state: &State| state.variable(VARIABLE).is_some();
        self.lasting.ways.asked_for_gtids &= !says(before) && !says(want);
    }

    /// Returns what the connection's client is told of all that the server tells: `None` for
    /// everything.
    #[must_use]
    pub fn wish(&self) -> Option<Arc<Wish>> {
        let hides = self.tells_gtids() || self.place.hides_gtids.get();
        match (self.wish_of_tracking(), hides) {
            (None, true) => Some(self.place.without_gtids.clone()),
            (Some(wish), true) => Some(Arc::new(Wish::clone(&wish).without_gtids())),
            (wish, false) => wish,
        }
    }
}
