//! Addresses of clients that fail to log in: after so many failures without a success between them they are
//! turned away at once.
//!
//! Each core has the whole list: who notes something tells the others.

use crate::known::answer::Complaint;
use bridge::ClientHostRow;
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u64,
    /// Seconds since 1970.
    last_s: u64,
    /// Its key in the order of age.
    turn: u64,
}

/// The list, with the oldest first to go.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    all: RefCell<HashMap<IpAddr, Failures>>,
    by_age: RefCell<BTreeMap<u64, IpAddr>>,
    turns: Cell<u64>,
}

impl Hosts {
    /// Counts a failure; how many there are now. The list keeps so many addresses at most.
    pub(crate) fn failed(&self, address: IpAddr, size_max: usize, now_s: u64) -> u64 {
        let (mut all, mut by_age) = (self.all.borrow_mut(), self.by_age.borrow_mut());
        let turn = self.turns.replace(self.turns.get() + 1);
        let count = match all.get(&address) {
            Some(known) => {
                by_age.remove(&known.turn);
                known.count + 1
            }
            None => {
                while all.len() >= size_max.max(1) {
                    let Some((_, oldest)) = by_age.pop_first() else {
                        break;
                    };
                    all.remove(&oldest);
                }
                1
            }
        };
        all.insert(
            address,
            Failures {
                count,
                last_s: now_s,
                turn,
            },
        );
        by_age.insert(turn, address);
        count
    }

    /// Forgets an address; whether it was known.
    pub(crate) fn succeeded(&self, address: IpAddr) -> bool {
        let gone = self.all.borrow_mut().remove(&address);
        gone.is_some_and(|gone| self.by_age.borrow_mut().remove(&gone.turn).is_some())
    }

    pub(crate) fn failures(&self, address: IpAddr) -> u64 {
        self.all
            .borrow()
            .get(&address)
            .map_or(0, |known| known.count)
    }

    pub(crate) fn flush(&self) {
        self.all.take();
        self.by_age.take();
    }

    pub(crate) fn rows(&self) -> Vec<ClientHostRow> {
        let row = |(address, known): (&IpAddr, &Failures)| ClientHostRow {
            address: *address,
            errors: known.count,
            last_s: known.last_s,
        };
        self.all.borrow().iter().map(row).collect()
    }
}

/// Returns the complaint, in a server's words, for a client that is turned away.
pub(crate) fn turned_away(host: &str) -> Complaint {
    let words = format!(
        "Host '{host}' is blocked because of many connection errors; unblock with 'PROXYSQL FLUSH MYSQL CLIENT HOSTS'"
    );
    Complaint::with(1129, "HY000", words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn failures_add_up_until_a_success() {
        let hosts = Hosts::default();
        assert_eq!(
            (
                hosts.failed(ip(1), 9, 5),
                hosts.failed(ip(2), 9, 6),
                hosts.failed(ip(1), 9, 7)
            ),
            (1, 1, 2)
        );
        let mut rows = hosts.rows();
        rows.sort_by_key(|row| row.address);
        assert_eq!(
            rows[0],
            ClientHostRow {
                address: ip(1),
                errors: 2,
                last_s: 7
            }
        );
        assert!(hosts.succeeded(ip(1)) && !hosts.succeeded(ip(1)));
        assert_eq!((hosts.failures(ip(1)), hosts.failures(ip(2))), (0, 1));
    }

    #[test]
    fn the_address_that_failed_longest_ago_makes_room() {
        let hosts = Hosts::default();
        for last in [1, 2, 3, 1] {
            hosts.failed(ip(last), 3, 0);
        }
        hosts.failed(ip(4), 3, 0);
        assert_eq!(
            [1, 2, 3, 4].map(|last| hosts.failures(ip(last))),
            [2, 0, 1, 1]
        );
        // Another size counts from the next failure on.
        hosts.failed(ip(5), 1, 0);
        assert_eq!((hosts.rows().len(), hosts.by_age.borrow().len()), (1, 1));
        hosts.flush();
        assert_eq!((hosts.rows().len(), hosts.by_age.borrow().len()), (0, 0));
    }
}
