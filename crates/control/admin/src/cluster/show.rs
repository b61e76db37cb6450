//! The tables in which operators see the other proxies.

use super::peer::{Peer, ms_since};
use super::subjects::SUBJECTS;
use super::{proxysql, sums};
use crate::engine::{SqlError, View};
use crate::said::Said;
use crate::see::observe::{Into, signed};
use crate::shared::Shared;
use crate::tables::Observe;
use bridge::{AskerFacts, ModuleFacts, PeerFacts};
use rusqlite::Connection;

/// The map of sharded tables among what proxies have in common.
const MAP: &str = "mysql_shards";

impl Shared {
    /// Fills `runtime_checksums_values`.
    pub(crate) async fn fill_checksums(&self) -> Result<(), Said> {
        self.settle().await?;
        let variables = self.snapshot.borrow().variables.clone();
        self.engine.borrow().transaction(|conn| {
            let mut into = Into::table(conn, "main.runtime_checksums_values", 4)?;
            for (at, subject) in SUBJECTS.iter().enumerate() {
                let sum = self.cluster.sum(at, &variables);
                let text = if sum.version == 0 {
                    String::new()
                } else {
                    sums::text(sum.checksum)
                };
                into.row(&[
                    &subject.name,
                    &signed(sum.version),
                    &signed(sum.epoch),
                    &text,
                ])?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// One number for all of them.
    pub(crate) async fn global_checksum(&self) -> Result<u64, Said> {
        self.settle().await?;
        let variables = self.snapshot.borrow().variables.clone();
        let all = SUBJECTS.iter().enumerate().filter_map(|(at, subject)| {
            let sum = self.cluster.sum(at, &variables);
            (sum.version > 0).then(|| format!("{}{}", subject.name, sums::text(sum.checksum)))
        });
        Ok(sql::spooky::hash64(all.collect::<String>().as_bytes(), 0))
    }

    /// Other proxies that have another map of sharded tables in force, or do not answer.
    pub(crate) async fn without_this_map(&self) -> Result<Vec<String>, Said> {
        self.settle().await?;
        let variables = self.snapshot.borrow().variables.clone();
        let is_map = |subject: &super::subjects::Subject| subject.name == MAP;
        let at = SUBJECTS.iter().position(is_map).unwrap_or_default();
        let own = self.cluster.sum(at, &variables);
        let peers = self.cluster.peers.borrow();
        let has_it = |peer: &Peer| {
            let (names, known) = (self.cluster.names_on(peer), peer.known.borrow());
            let mut seen = names.iter().zip(&known.seen);
            seen.any(|(name, seen)| *name == MAP && seen.sum.checksum == own.checksum)
        };
        let others = peers
            .iter()
            .filter(|peer| !peer.speaks_proxysql.get() && !has_it(peer));
        let name = |peer: &std::rc::Rc<Peer>| format!("{}:{}", peer.row.hostname, peer.row.port);
        let mut without: Vec<String> = others.map(name).collect();
        without.extend(self.fleet_without(MAP));
        Ok(without)
    }

    /// Knowledge of other proxies, for the metrics.
    pub(crate) fn peer_facts(&self) -> Vec<PeerFacts> {
        let peers = self.cluster.peers.borrow();
        peers.iter().map(|peer| self.facts_of(peer)).collect()
    }

    fn facts_of(&self, peer: &Peer) -> PeerFacts {
        let known = peer.known.borrow();
        let [uptime_s, queries, connected, created] = known.metrics;
        let names = self.cluster.names_on(peer);
        let modules = names.iter().zip(&known.seen);
        PeerFacts {
            hostname: peer.row.hostname.clone(),
            port: peer.row.port,
            weight: peer.row.weight.max(0).cast_unsigned(),
            response_ms: u64::try_from(known.response.as_millis()).unwrap_or(u64::MAX),
            last_check_ms: ms_since(&self.rt, known.measured),
            uptime_s,
            queries,
            connected,
            created,
            modules: modules
                // ProxySQL has not all of our modules.
                .filter(|(_, seen)| !peer.speaks_proxysql.get() || seen.sum.version > 0)
                .map(|(name, seen)| ModuleFacts {
                    name,
                    version: seen.sum.version,
                    epoch: seen.sum.epoch,
                    changed_s: seen.changed_s,
                    updated_s: seen.updated_s,
                    looks: seen.looks,
                })
                .collect(),
        }
    }

    /// Proxies that ask here, for the metrics.
    pub(crate) fn asker_facts(&self) -> Vec<AskerFacts> {
        let clients = self.cluster.clients.borrow();
        let facts = clients.iter().map(|client| AskerFacts {
            uuid: client.uuid.clone(),
            hostname: client.host.clone(),
            port: client.port,
            ifaces: client.ifaces.clone(),
            seen_s: client.seen_s,
        });
        facts.collect()
    }

    /// Fills one of the tables of other proxies; `table` is its name with its schema.
    pub(crate) fn fill_peers(
        &self,
        conn: &Connection,
        table: &str,
        observe: Observe,
        view: View,
    ) -> Result<(), SqlError> {
        let peers = self.cluster.peers.borrow();
        match observe {
            Observe::PeerChecksums => {
                let mut into = Into::table(conn, table, 9)?;
                for peer in peers.iter() {
                    let is_proxysql = peer.speaks_proxysql.get();
                    let names = self.cluster.names_on(peer);
                    for (name, seen) in names.iter().zip(&peer.known.borrow().seen) {
                        if is_proxysql && seen.sum.version == 0 {
                            // ProxySQL has no such module.
                            continue;
                        }
                        // They are made of passwords, too, and who has one can try what fits.
                        let checksum = if view == View::Stats {
                            String::new()
                        } else if is_proxysql {
                            proxysql::text(seen.sum.checksum)
                        } else {
                            sums::text(seen.sum.checksum)
                        };
                        #[rustfmt::skip]
                        into.row(&[
                            &peer.row.hostname, &peer.row.port, name, &signed(seen.sum.version), &signed(seen.sum.epoch),
                            &checksum, &signed(seen.changed_s), &signed(seen.updated_s), &signed(seen.looks),
                        ])?;
                    }
                }
            }
            Observe::PeerMetrics => {
                let mut into = Into::table(conn, table, 10)?;
                for peer in peers.iter() {
                    let facts = self.facts_of(peer);
                    #[rustfmt::skip]
                    into.row(&[
                        &facts.hostname, &facts.port, &peer.row.weight, &peer.row.comment, &signed(facts.response_ms),
                        &signed(facts.uptime_s), &signed(facts.last_check_ms), &signed(facts.queries),
                        &signed(facts.connected), &signed(facts.created),
                    ])?;
                }
            }
            Observe::PeerStatus => {
                let mut into = Into::table(conn, table, 9)?;
                for peer in peers.iter() {
                    let known = peer.known.borrow();
                    let versions = known
                        .seen
                        .iter()
                        .fold(0_u64, |sum, seen| sum.saturating_add(seen.sum.version));
                    let age = signed(ms_since(&self.rt, known.looked).saturating_mul(1000));
                    let ping = i64::try_from(known.ping.as_micros()).unwrap_or(i64::MAX);
                    #[rustfmt::skip]
                    into.row(&[
                        &peer.row.hostname, &peer.row.port, &peer.row.weight, &"", &signed(versions), &age, &ping,
                        &signed(known.fine), &signed(known.failed),
                    ])?;
                }
            }
            _ => {
                let mut into = Into::table(conn, table, 5)?;
                for client in self.cluster.clients.borrow().iter() {
                    into.row(&[
                        &client.uuid,
                        &client.host,
                        &client.port,
                        &client.ifaces,
                        &signed(client.seen_s),
                    ])?;
                }
            }
        }
        Ok(())
    }
}
