//! Looks at other proxies: each is asked again and again what it has, and what is newer there is
//! taken over.

use super::decide::{Sum, Verdict};
use super::knowledge::up;
use super::peer::{Met, Peer, Seen, read_sum};
use super::subjects::{At, MILLRACE, SUBJECTS};
use crate::said::Said;
use crate::shared::Shared;
use config::Variables;
use line::{Failed, Line, Tls, Who, on_one_line, words_of_another};
use rt::Instant;
use std::rc::Rc;
use std::time::Duration;

/// Time after which what of another proxy could not be taken over is tried again.
const AGAIN: Duration = Duration::from_secs(30);
/// A module comes within that, or others are asked for theirs, too.
const PROMPT: Duration = Duration::from_secs(10);
/// Between two looks at least, for the others on this thread.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// After so many times as many looks as are enough, a difference that nobody takes over is told
/// again.
const TOLD_AGAIN: u64 = 10;

/// Names of `stats_mysql_global` that are kept, in the order of [`Known::metrics`].
const METRICS: [&str; 4] = [
    "ProxySQL_Uptime",
    "Questions",
    "Client_Connections_connected",
    "Client_Connections_created",
];

impl Shared {
    /// Looks at the proxies of `proxysql_servers`, each in a task of its own, for as long as they
    /// are there.
    pub(crate) async fn keep_company(self: Rc<Self>) {
        loop {
            self.meet();
            self.cluster.changed.heard().await;
        }
    }

    fn meet(self: &Rc<Self>) {
        let wanted = self.snapshot.borrow().proxies.clone();
        let mut peers = self.cluster.peers.borrow_mut();
        peers.retain(|peer| {
            let stays = wanted.rows().contains(&peer.row);
            peer.gone.set(!stays);
            // How often it is looked at, and as whom, may be other than before.
            peer.bell.ring();
            stays
        });
        for row in wanted.rows() {
            if !peers.iter().any(|peer| peer.row == *row) {
                let peer = Rc::new(Peer::new(row.clone()));
                peers.push(peer.clone());
                self.rt.spawn(self.clone().watch(peer));
            }
        }
    }

    async fn watch(self: Rc<Self>, peer: Rc<Peer>) {
        let (mut line, mut looks) = (None, 0);
        while !peer.gone.get() {
            let began = self.rt.now();
            let variables = self.snapshot.borrow().variables.clone();
            let is_in_fleet = !variables.admin_cluster_store.is_empty();
            if variables.admin_cluster_username.is_empty() || is_in_fleet && !self.is_bridge() {
                // Nobody is asked, or all Millraces look into one store, and another one asks
                // ProxySQLs.
                line = None;
            } else {
                let looked = self.look(&peer, &mut line, &variables, looks).await;
                looks += 1;
                if self.note(&peer, looked) {
                    line = None;
                }
            }
            let every =
                Duration::from_millis(variables.admin_cluster_check_interval_ms).max(PAUSE_MIN);
            self.pause(&peer, began + every).await;
        }
    }

    /// Until then, or until something was loaded here; the looks keep their pace all the same.
    async fn pause(&self, peer: &Peer, until: Instant) {
        let earliest = self.rt.now() + PAUSE_MIN;
        let before = self.snapshot.borrow().variables.clone();
        while !peer.gone.get() && self.rt.now() < until.max(earliest) {
            let _or_rung = self
                .rt
                .timeout(until.max(earliest) - self.rt.now(), peer.bell.heard())
                .await;
            let now = self.snapshot.borrow().variables.clone();
            let pace = |v: &Variables| {
                (
                    v.admin_cluster_check_interval_ms,
                    v.admin_cluster_username.clone(),
                    v.admin_cluster_password.clone(),
                )
            };
            if pace(&before) != pace(&now) {
                return;
            }
        }
    }

    /// Notes what came of a look; whether the connection is of no use any more.
    fn note(&self, peer: &Peer, looked: Result<(), String>) -> bool {
        let mut known = peer.known.borrow_mut();
        known.looked = Some(self.rt.now());
        let Err(why) = looked else {
            known.fine += 1;
            if known.why.take().is_some() {
                (self.hooks.log)(&format!("cluster: {} answers again", peer.name()));
            }
            return false;
        };
        known.failed += 1;
        up(&self.cluster.tally.failed);
        let now = self.rt.now();
        // One that says something else each time, as the time of the day, does not fill the log.
        if known.why.is_none()
            || known.why.as_ref() != Some(&why) && known.told.is_none_or(|told| now - told >= AGAIN)
        {
            (self.hooks.log)(&format!(
                "cluster: {} is not followed: {}",
                peer.name(),
                on_one_line(&why)
            ));
            (known.why, known.told) = (Some(why), Some(now));
        }
        true
    }

    /// Connects and finds out whether it is one of us.
    async fn join(&self, peer: &Peer, variables: &Variables) -> Result<(Line, Met), String> {
        let port = u16::try_from(peer.row.port).unwrap_or_default();
        let opened = Line::open(&self.rt, &peer.row.hostname, port, &who(variables)).await;
        let mut line = opened.map_err(|failed| failed.to_string())?;
        let hello = format!(
            "PROXYSQL CLUSTER_NODE_UUID {} {}",
            self.cluster.uuid,
            variables.admin_mysql_ifaces.replace(' ', "")
        );
        line.ask(&hello)
            .await
            .map_err(|failed| failed.to_string())?;
        let ours = [
            Some(variables.admin_version.to_string()),
            Some(MILLRACE.to_owned()),
        ];
        let rows = line
            .ask("SELECT @@version, @@millrace_version, @@millrace_uuid")
            .await
            .unwrap_or_default();
        let text =
            |cell: Option<Vec<u8>>| cell.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let mut theirs: Vec<_> = rows
            .into_iter()
            .next()
            .unwrap_or_default()
            .into_iter()
            .map(text)
            .collect();
        let uuid = if theirs.len() > ours.len() {
            theirs.pop().flatten()
        } else {
            None
        };
        if theirs.is_empty() {
            // A ProxySQL does not understand that.
            self.join_proxysql(peer, &mut line, variables).await?;
            return Ok((line, Met::Another));
        }
        peer.speaks_proxysql.set(false);
        if theirs != ours {
            let theirs = words_of_another(&format!("{theirs:?}"));
            return Err(format!(
                "it is not a Millrace of this version: @@version and @@millrace_version are {theirs}, here {ours:?}"
            ));
        }
        Ok((
            line,
            if uuid.as_deref() == Some(self.cluster.uuid()) {
                Met::Itself
            } else {
                Met::Another
            },
        ))
    }

    async fn look(
        &self,
        peer: &Peer,
        line: &mut Option<Line>,
        variables: &Variables,
        looks: u64,
    ) -> Result<(), String> {
        let mut met = peer.met();
        let line = match line {
            Some(line) if line.is_as(&who(variables)) => line,
            line => {
                let (joined, who) = self.join(peer, variables).await?;
                met = who;
                line.insert(joined)
            }
        };
        if !variables.admin_cluster_store.is_empty() && !peer.speaks_proxysql.get() {
            // The store has what Millraces share.
            return Ok(());
        }
        let words = |failed: Failed| failed.to_string();
        if let Err(Said::Sql(why) | Said::Coded(_, _, why)) = self.settle_for(peer).await {
            return Err(why);
        }
        let began = self.rt.precise_now();
        line.ask("SELECT GLOBAL_CHECKSUM()").await.map_err(words)?;
        peer.known.borrow_mut().ping = self.rt.precise_now() - began;
        // Also where its checksum is the same: a LOAD here has to be later than what it replaces
        // anywhere.
        let rows = line
            .ask("SELECT * FROM runtime_checksums_values ORDER BY name")
            .await
            .map_err(words)?;
        let names = self.cluster.names_on(peer);
        let is_garbage = |name: &&&str| {
            rows.iter()
                .find_map(|row| read_sum(row, name))
                .is_some_and(|sum| !sum.is_possible())
        };
        if let Some(name) = names.iter().find(is_garbage) {
            return Err(format!(
                "its {name} has a version, or an epoch, that nobody can have"
            ));
        }
        let (own, now_s) = (|at| self.cluster.sum_on(peer, at, variables), self.now_s());
        peer.take_in(&rows, &names, now_s);
        peer.meets(met);
        peer.compare(own, now_s);
        let every = variables.admin_cluster_check_status_frequency;
        if every > 0 && looks.is_multiple_of(every) {
            self.measure(peer, line).await.map_err(words)?;
        }
        let mut all: [At; SUBJECTS.len()] = std::array::from_fn(|at| at);
        all.sort_by_key(|at| self.cluster.turn(*at, peer.seen(*at).sum));
        for at in all {
            self.follow(peer, line, at).await.map_err(words)?;
        }
        Ok(())
    }

    async fn measure(&self, peer: &Peer, line: &mut Line) -> Result<(), Failed> {
        if peer.speaks_proxysql.get() {
            self.measure_proxysql(peer, line).await?;
        }
        let began = self.rt.precise_now();
        let rows = line
            .ask("SELECT * FROM stats_mysql_global ORDER BY Variable_Name")
            .await?;
        let mut known = peer.known.borrow_mut();
        (known.response, known.measured) = (self.rt.precise_now() - began, Some(self.rt.now()));
        known.metrics = METRICS.map(|name| {
            rows.iter()
                .find_map(|row| read_number(row, name))
                .unwrap_or_default()
        });
        Ok(())
    }

    /// Takes a module over if it is time.
    async fn follow(&self, peer: &Peer, line: &mut Line, at: At) -> Result<(), Failed> {
        let (Some(subject), seen) = (SUBJECTS.get(at), peer.seen(at)) else {
            return Ok(());
        };
        // As it is now: what was taken over a moment ago may be what says so.
        let variables = self.snapshot.borrow().variables.clone();
        let enough = (subject.enough)(&variables);
        let is_time_to_tell = seen.looks == enough
            || seen.looks > 0 && seen.looks % (enough * TOLD_AGAIN).max(1) == 0;
        let tell = |words: &str| {
            if is_time_to_tell {
                (self.hooks.log)(&format!(
                    "cluster: {} of {} {words}",
                    subject.name,
                    peer.name()
                ));
            }
        };
        match self
            .cluster
            .verdict_on(peer, at, (seen.sum, seen.had), seen.looks, &variables)
        {
            Verdict::Same | Verdict::Apart | Verdict::Ours | Verdict::Later => {}
            Verdict::Unloaded => {
                tell(
                    "is other than here, and has not been loaded there since that proxy was started, or met another: it is taken over after a LOAD there",
                );
            }
            Verdict::Past => {
                if is_time_to_tell {
                    up(&self.cluster.tally.conflicts);
                }
                tell(
                    "is other than here, and no newer than what was here before this start, which has found other rows than were saved: nothing is \
                     taken over until one of both is loaded",
                );
            }
            Verdict::Conflict => {
                if is_time_to_tell {
                    up(&self.cluster.tally.conflicts);
                }
                tell(
                    "is other than here, and was loaded in the same second: nothing is taken over until one of both is loaded again",
                );
            }
            Verdict::Pull => {
                let is_refused = seen
                    .refused
                    .is_some_and(|(sum, until)| sum == seen.sum && self.rt.now() < until);
                if is_refused
                    || self.is_newer_elsewhere(at, seen.sum)
                    || self.comes_from_another(peer, at, seen.sum)
                {
                    return Ok(());
                }
                let pulled = match peer.speaks_proxysql.get() {
                    true => self.pull_from_proxysql(peer, line, at, seen.had).await,
                    false => self.pull(peer, line, at, seen.had).await,
                };
                match pulled {
                    Ok(()) => {}
                    Err(Failed::Lost(why)) => {
                        return Err(Failed::Lost(format!(
                            "{} was not taken over: {why}",
                            subject.name
                        )));
                    }
                    Err(Failed::Said { words: why, .. }) => {
                        up(&self.cluster.tally.refused);
                        (self.hooks.log)(&format!(
                            "cluster: {} of {} is not taken over, nothing was changed: {}",
                            subject.name,
                            peer.name(),
                            on_one_line(&why)
                        ));
                        if let Some(seen) = peer.known.borrow_mut().seen.get_mut(at) {
                            seen.refused = Some((seen.sum, self.rt.now() + AGAIN));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether another proxy that answers has a newer one, which will be taken over instead.
    pub(super) fn is_newer_elsewhere(&self, at: At, sum: Sum) -> bool {
        let peers = self.cluster.peers.borrow();
        peers.iter().any(|peer| {
            let known = peer.known.borrow();
            let refused =
                |seen: &Seen| seen.refused.is_some_and(|(refused, _)| refused == seen.sum);
            known.why.is_none()
                && !known
                    .pulling
                    .is_some_and(|(which, since)| which == at && self.rt.now() - since >= PROMPT)
                && known.seen.get(at).is_some_and(|seen| {
                    seen.sum.version > 1 && seen.sum.epoch > sum.epoch && !refused(seen)
                })
        })
    }

    /// Whether the same is on its way from another one.
    pub(super) fn comes_from_another(&self, peer: &Peer, at: At, sum: Sum) -> bool {
        let peers = self.cluster.peers.borrow();
        peers
            .iter()
            .filter(|other| !std::ptr::eq(&***other, peer))
            .any(|other| {
                let known = other.known.borrow();
                let comes = known
                    .pulling
                    .is_some_and(|(which, since)| which == at && self.rt.now() - since < PROMPT);
                comes && known.seen.get(at).is_some_and(|seen| seen.sum == sum)
            })
    }
}

fn read_number(row: &[Option<Vec<u8>>], name: &str) -> Option<u64> {
    let text = |at: usize| std::str::from_utf8(row.get(at)?.as_deref()?).ok();
    if text(0)? == name {
        text(1)?.parse().ok()
    } else {
        None
    }
}

/// As whom other proxies are asked. One may have a LOAD of its own to do before it answers.
fn who(variables: &Variables) -> Who {
    Who {
        user: variables.admin_cluster_username.clone(),
        password: variables.admin_cluster_password.clone(),
        never_in_clear: true,
        proxy_protocol: 0,
        tls: Tls::IfOffered,
        connect: Duration::from_secs(5),
        silent: Duration::from_secs(15),
        whole: Duration::from_secs(120),
    }
}
