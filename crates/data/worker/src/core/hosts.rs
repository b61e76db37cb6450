//! Clients that fail to log in are noted on all cores, and turned away where they fail too often.

use crate::core::Core;
use crate::core::peers::PEERS_MAX;
use bridge::{Counter, ToCore};
use std::net::IpAddr;

impl Core {
    /// Whether clients of this address are turned away.
    pub(crate) fn turns_away(&self, address: IpAddr) -> bool {
        let epoch = self.epoch();
        let v = &epoch.snapshot.variables;
        let (size, max) = (
            v.mysql_client_host_cache_size,
            v.mysql_client_host_error_counts,
        );
        let away = size > 0 && max > 0 && self.hosts.failures(address) >= max;
        if away {
            self.tally.up(Counter::ClientHostErrorKilledConnections);
        }
        away
    }

    /// A client has failed to log in; `None` for one that came by a Unix socket.
    pub(crate) fn login_failed(&self, address: Option<IpAddr>) {
        let Some(address) = address else { return };
        let count = self.note_login(address, true);
        let max = self
            .epoch()
            .snapshot
            .variables
            .mysql_client_host_error_counts;
        if max > 0 && count == max {
            self.note(&format!(
                "clients of {address} are turned away from now on: {count} failed logins (mysql-client_host_error_counts)"
            ));
        }
        if count > 0 {
            self.tell_peers(address, true);
        }
    }

    /// A client is in.
    pub(crate) fn login_succeeded(&self, address: Option<IpAddr>) {
        if let Some(address) = address
            && self.note_login(address, false) > 0
        {
            self.tell_peers(address, false);
        }
    }

    /// Notes it here; how many failures there are, or of a success, whether there was something to
    /// forget.
    pub(crate) fn note_login(&self, address: IpAddr, failed: bool) -> u64 {
        let size = self.epoch().snapshot.variables.mysql_client_host_cache_size;
        match failed {
            _ if size == 0 => 0,
            true => self.hosts.failed(
                address,
                usize::try_from(size).unwrap_or(usize::MAX),
                self.rt.wall_us() / 1_000_000,
            ),
            false => self.hosts.succeeded(address).into(),
        }
    }

    fn tell_peers(&self, address: IpAddr, failed: bool) {
        for peer in self.peers.iter().flatten() {
            // One that has no time for it misses a failure.
            if peer.control.len() < PEERS_MAX {
                let _missed = peer
                    .control
                    .try_send(ToCore::ClientHost { address, failed });
            }
        }
    }
}
