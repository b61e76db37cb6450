//! Limits that hold for the whole fleet: this proxy says what it has and needs of them, obeys the
//! ledger, and writes the next one when it is the first of those that live.
//!
//! No statement waits for the store. Cores look at their share, which is a number beside the counter
//! that they look at anyway. While the store is silent it stays.

use crate::shared::Shared;
use bridge::{Ask, HostgroupPoolRow, PoolRow, Report as Said};
use config::Snapshot;
use fleet::{Books, Failed, Partner, Report, Shares, Use, settle};
use rt::permits::{Permits, Registry};
use rt::{Instant, Rt};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

/// How often a proxy looks at its needs, and at the ledger.
const LOOK: Duration = Duration::from_millis(500);
/// How often it says that it lives.
const LIVES: Duration = Duration::from_secs(2);
/// Time after which a proxy says a need again that has changed a little.
const SAID_AGAIN: Duration = Duration::from_secs(10);

/// Line of the log for who wonders why a limit was passed.
const GIVEN_UP: &str = "fleet: etcd has not heard of this proxy for 6 s and has given its shares to others; what it had beyond is given back now";

/// Place of this proxy in the ledger of one store.
struct Seat {
    books: Rc<Books>,
    partner: Partner,
    lease: Option<u64>,
    /// Report that this proxy has said last, and when.
    said: Option<(Report, Instant)>,
    lived: Instant,
    /// When turns were counted last.
    counted: Instant,
    /// Whether the store has given this proxy up, and nobody was told.
    was_given_up: bool,
}

impl Seat {
    fn new(books: Rc<Books>, rt: &Rt) -> Self {
        Self {
            books,
            partner: Partner::default(),
            lease: None,
            said: None,
            lived: rt.now(),
            counted: rt.now(),
            was_given_up: false,
        }
    }

    /// Says what it has and needs, if that is news, and that it lives.
    async fn say(&mut self, report: Report, now: Instant) -> Result<(), Failed> {
        if let Some(given) = self.lease.filter(|_| now - self.lived >= LIVES) {
            self.lived = now;
            if !self.books.live(given).await? {
                self.lease = None;
                self.was_given_up = true;
            }
        }
        let is_news = self.said.as_ref().is_none_or(|(said, when)| {
            Partner::is_news(said, &report) || *said != report && now - *when >= SAID_AGAIN
        });
        if is_news || self.lease.is_none() {
            match self.books.say_needs(&report, self.lease).await {
                Ok(given) => (self.lease, self.said) = (Some(given), Some((report, now))),
                Err(Failed::Said(_)) if self.lease.is_some() => {
                    (self.lease, self.was_given_up) = (None, true);
                }
                Err(failed) => return Err(failed),
            }
        }
        Ok(())
    }
}

impl Shared {
    /// Keeps this proxy's shares, as long as there is a store.
    pub(crate) async fn keep_shares(self: Rc<Self>) {
        let mut seat: Option<Seat> = None;
        loop {
            let books = self.books();
            self.hooks.permits.hold_for_several(books.is_some());
            let Some(books) = books else {
                (seat, _) = (None, self.cluster.fleet.shares.take());
                self.cluster.fleet.shares_bell.heard().await;
                continue;
            };
            let is_same = |seat: &Seat| Rc::ptr_eq(&seat.books, &books);
            let mut sits = match seat.take().filter(is_same) {
                Some(seat) => seat,
                None => Seat::new(books, &self.rt),
            };
            if let Err(failed) = self.share_out(&mut sits).await {
                self.cannot_share(&failed);
            }
            if std::mem::take(&mut sits.was_given_up) {
                (self.hooks.log)(GIVEN_UP);
            }
            seat = Some(sits);
            self.rt.sleep(LOOK).await;
        }
    }

    async fn share_out(&self, seat: &mut Seat) -> Result<(), Failed> {
        let uuid = self.cluster.uuid().to_owned();
        let Shares {
            ledger,
            revision,
            reports,
        } = seat.books.shares().await?;
        seat.partner.obey(&ledger, &uuid);
        let permits = &self.hooks.permits;
        for limit in ledger.limits.keys() {
            if let Some(share) = seat.partner.share(&ledger, &uuid, limit) {
                permits.shared(limit).set_share(share);
            }
        }
        permits.each_shared(|limit, permits| {
            if let Some(share) = seat.partner.share(&ledger, &uuid, limit) {
                permits.set_share(share);
            }
        });
        let Some(uses) = self.uses(&mut seat.counted).await else {
            // A core hangs; the next look asks it again.
            return Ok(());
        };
        let name = self.fleet_name();
        let report = seat.partner.report(&ledger, (&uuid, &name), &uses);
        seat.say(report, self.rt.now()).await?;
        if seat.partner.settles(&uuid, &reports)
            && let Some(next) = settle(&ledger, &reports)
        {
            // Another may have been faster: the next look sees what it has written.
            let _is_written = seat.books.write_ledger(&next, revision).await?;
        }
        let seen = Shares {
            ledger,
            revision,
            reports,
        };
        self.cluster.fleet.shares.replace(Some(seen));
        Ok(())
    }

    /// Returns what this proxy has and needs of each limit; `None` if a core does not say so in
    /// time. `counted`: when turns were counted last.
    async fn uses(&self, counted: &mut Instant) -> Option<BTreeMap<String, Use>> {
        let (servers, groups) = (
            self.cores.ask(Ask::Pool).await.ok()?,
            self.cores.ask(Ask::HostgroupPool).await.ok()?,
        );
        let (Said::Pool(servers), Said::HostgroupPool(groups)) = (servers, groups) else {
            return None;
        };
        let snapshot = self.snapshot.borrow().clone();
        let now = self.rt.now();
        let since = std::mem::replace(counted, now);
        let (permits, times) = (&self.hooks.permits, (since, now));
        Some(uses(permits, &snapshot, (&servers, &groups), times))
    }

    /// Whoever follows the store says that it is silent; what else it refuses is said here.
    fn cannot_share(&self, failed: &Failed) {
        if let Failed::Said(words) = failed {
            let words = format!("fleet: limits are not shared out anew: {words}");
            if self.cluster.fleet.refused.replace(words.clone()) != words {
                (self.hooks.log)(&words);
            }
        }
    }
}

/// `max_connections` of servers, as rows have it.
struct Rows<'s> {
    there: HashMap<(u32, &'s str, u16), u32>,
    /// A server that checks have moved has the row of the hostgroup that it comes from.
    anywhere: HashMap<(&'s str, u16), u32>,
}

impl<'s> Rows<'s> {
    fn of(snapshot: &'s Snapshot) -> Self {
        let mut rows = Self {
            there: HashMap::new(),
            anywhere: HashMap::new(),
        };
        for group in snapshot.servers.iter() {
            for row in &group.servers {
                let (host, port, max) = (&*row.hostname, row.port, row.max_connections);
                rows.there.insert((group.id, host, port), max);
                rows.anywhere.insert((host, port), max);
            }
        }
        rows
    }

    fn max(&self, hostgroup: u32, host: &str, port: u16) -> Option<u32> {
        let there = self.there.get(&(hostgroup, host, port));
        there.or_else(|| self.anywhere.get(&(host, port))).copied()
    }
}

fn uses(
    permits: &Registry,
    snapshot: &Snapshot,
    (servers, groups): (&[PoolRow], &[HostgroupPoolRow]),
    (since, now): (Instant, Instant),
) -> BTreeMap<String, Use> {
    let rows = Rows::of(snapshot);
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let mut asked = BTreeMap::new();
    for group in groups {
        if let Some(max) = group.max {
            let limit = format!("hostgroup {}", group.hostgroup);
            asked.insert(limit, (max, narrow(group.used), narrow(group.waiting)));
        }
    }
    for server in servers {
        let Some(max) = rows.max(server.hostgroup, &server.host, server.port) else {
            continue;
        };
        let waiting = groups
            .iter()
            .find(|group| group.hostgroup == server.hostgroup);
        let waiting = waiting.map_or(0, |group| narrow(group.waiting));
        let limit = format!(
            "server {} {}:{}",
            server.hostgroup, server.host, server.port
        );
        asked.insert(limit, (max, narrow(server.used), waiting));
    }
    let mut uses = BTreeMap::new();
    permits.each_shared(|limit, permits| {
        if let Some(whose) = limit.strip_prefix("rate of ") {
            if let Some(per_s) = rate(snapshot, whose) {
                uses.insert(limit.to_owned(), turns(permits, per_s, (since, now)));
            }
            return;
        }
        let (taken, refused) = (permits.taken(), permits.refused());
        let user = limit.strip_prefix("user ");
        let user = user.and_then(|name| snapshot.users.frontend(name));
        let (max, used, waiting) = match (asked.get(limit), user) {
            (Some((max, used, waiting)), _) => {
                // Who waits where there is room waits for something else.
                let is_full = taken >= permits.of(*max);
                (*max, *used, if is_full { *waiting } else { 0 })
            }
            (None, Some(user)) => (user.max_connections, taken, refused),
            (None, None) => return,
        };
        let now = Use {
            max,
            share: permits.of(max),
            taken,
            used,
            waiting,
            is_standing: user.is_none(),
        };
        uses.insert(limit.to_owned(), now);
    });
    uses
}

/// Statements a second of a user, a hostgroup or a rule, as the worker names it.
fn rate(snapshot: &Snapshot, whose: &str) -> Option<u32> {
    let (kind, name) = whose.split_once(' ')?;
    match kind {
        "user" => snapshot.users.frontend(name)?.statements_per_sec(),
        "hostgroup" => {
            let group = snapshot.servers.hostgroup(name.parse().ok()?)?;
            group.attributes.statements_per_sec
        }
        _ => {
            let id: i64 = name.parse().ok()?;
            let mut chain = snapshot.rules.chain().iter();
            chain.find(|rule| rule.rule_id == id)?.statements_per_sec
        }
    }
}

/// Turns of a rate, for a second.
fn turns(permits: &Permits, per_s: u32, (since, now): (Instant, Instant)) -> Use {
    let ms = (now - since).as_millis().max(1);
    let a_second = |count: u32| u32::try_from(u128::from(count) * 1000 / ms).unwrap_or(u32::MAX);
    let (turns, refused) = (permits.turns(), permits.refused());
    Use {
        max: per_s,
        share: permits.of(per_s),
        taken: 0,
        used: a_second(turns),
        waiting: permits.taken().saturating_add(a_second(refused)),
        is_standing: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bridge::ServerState;
    use config::{ServerRow, Servers, UserRow};
    use rt::permits::Share;
    use std::sync::Arc;

    fn server(hostgroup: u32, used: u64) -> PoolRow {
        PoolRow {
            hostgroup,
            host: "db".into(),
            port: 3306,
            state: ServerState::Online,
            used,
            free: 0,
            ok: 0,
            err: 0,
            used_max: 0,
            queries: 0,
            queries_gtid_sync: 0,
            bytes_sent: 0,
            bytes_received: 0,
            latency_us: 0,
        }
    }

    #[test]
    fn a_proxy_needs_what_is_used_and_what_waits_for_its_share() {
        let row = ServerRow {
            hostgroup_id: 1,
            hostname: "db".into(),
            max_connections: 30,
            ..ServerRow::default()
        };
        let user = UserRow {
            username: "app".into(),
            max_connections: 8,
            attributes: r#"{"statements_per_sec":100}"#.into(),
            ..UserRow::default()
        };
        let mut users = config::UsersBuilder::new(&config::Variables::default(), 1);
        users.add(user);
        let snapshot = Snapshot {
            servers: Arc::new(Servers::build(vec![row], Vec::new(), Vec::new()).unwrap()),
            users: Arc::new(users.build().unwrap()),
            ..Snapshot::default()
        };
        let permits = Registry::new();
        permits.hold_for_several(true);
        // Checks have moved it to hostgroup 2.
        let (one, two) = (
            permits.shared("server 1 db:3306"),
            permits.shared("server 2 db:3306"),
        );
        let (app, _gone) = (permits.shared("user app"), permits.shared("user gone"));
        one.set_share(Share::Of(2));
        two.set_share(Share::Of(9));
        assert!(one.try_take(30) && one.try_take(30) && app.try_take(8) && !app.try_take(8));
        let paced = permits.shared("rate of user app");
        let _of_a_rule_that_is_gone = permits.shared("rate of rule 7");
        paced.set_share(Share::Of(10));
        let now_ns = 500_000_000;
        // Two are sent, another waits, and one is refused.
        (0..2).for_each(|_| paced.take_turn(now_ns, 100));
        paced.refuse();
        assert!(paced.try_take(u32::MAX));
        let group = |hostgroup| HostgroupPoolRow {
            hostgroup,
            max: None,
            connections: 2,
            used: 1,
            free: 1,
            waiting: 5,
            longest_wait_ms: 0,
        };
        let found = uses(
            &permits,
            &snapshot,
            (&[server(1, 1), server(2, 0)], &[group(1), group(2)]),
            (Instant::from_ns(0), Instant::from_ns(500_000_000)),
        );
        let found: Vec<_> = found
            .iter()
            .map(|(limit, one)| {
                (
                    &**limit,
                    one.max,
                    one.share,
                    one.taken,
                    one.used,
                    one.waiting,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("rate of user app", 100, 10, 0, 4, 3),
                ("server 1 db:3306", 30, 2, 2, 1, 5),
                ("server 2 db:3306", 30, 9, 0, 0, 0),
                ("user app", 8, 1, 1, 1, 1),
            ]
        );
    }
}
