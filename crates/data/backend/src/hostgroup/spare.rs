//! Connections that copies of statements may have: none that a client will miss.

use crate::connection::place::Place;
use crate::hostgroup::chooser::in_turn;
use crate::hostgroup::group::Group;

impl Group {
    /// Whether a copy may have a connection, as far as this core sees: nobody waits for one, but
    /// where a server takes no more of a user, and a quarter is left for clients.
    pub(crate) fn has_spare(&self) -> bool {
        let places = self.places.borrow();
        let somebody_waits = !self.queue.is_empty() || self.paced.first_slow_since().is_some();
        if somebody_waits || places.iter().any(|place| place.room.of_server.wanted() > 0) {
            return false;
        }
        let working = || in_turn(&places, Place::is_working);
        let idle: u64 = working()
            .map(|place| place.idle.borrow().len() as u64)
            .sum();
        let own: u64 = working().map(|place| place.own()).sum();
        let left: u64 = working()
            .map(|place| u64::from(place.server_max().saturating_sub(place.taken())))
            .sum();
        let left_of_group = places.first().map_or(0, |place| {
            place
                .group_max
                .get()
                .saturating_sub(place.room.of_group.taken())
                .into()
        });
        is_spare(idle, own, left.min(left_of_group), self.most())
    }

    /// Connections that may be open, to all servers that take work.
    fn most(&self) -> u64 {
        let places = self.places.borrow();
        let of_servers = in_turn(&places, Place::is_working)
            .map(|place| u64::from(place.connections_max()))
            .sum::<u64>();
        of_servers.min(
            places
                .first()
                .map_or(0, |place| place.group_max.get().into()),
        )
    }

    /// Connections that copies may have at once, over all cores: however few of the others this
    /// core sees, a quarter of all is never theirs.
    pub(crate) fn copies_max(&self) -> u32 {
        match self.most() {
            // Whoever asks hears why there is none.
            0 => u32::MAX,
            most => u32::try_from(most - most / 4).unwrap_or(u32::MAX),
        }
    }

    /// Whether other cores have connections.
    pub(crate) fn is_elsewhere(&self) -> bool {
        in_turn(&self.places.borrow(), Place::is_working)
            .any(|place| u64::from(place.taken()) > place.own())
    }
}

/// Whether one of `idle` connections here, or of those that are `left` to be opened, is more than a
/// quarter of `most`; where the others are other cores', and what they do is not known, whether one
/// of those here is more than a quarter of this core's `own`, or the only one.
fn is_spare(idle: u64, own: u64, left: u64, most: u64) -> bool {
    // Where none can be had at all, whoever asks for one hears why.
    most == 0
        || idle + left > most / 4
        || own < most && (idle > own.div_ceil(4) || (idle, own) == (1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_for_clients_of_all_or_of_what_a_core_has() {
        // All of them are here, or may be opened.
        assert!(is_spare(2, 4, 0, 4) && !is_spare(1, 4, 0, 4) && !is_spare(0, 3, 1, 4));
        assert!(is_spare(0, 0, 1, 1) && is_spare(1, 1, 0, 1) && !is_spare(0, 1, 0, 1));
        // All are open and idle: a quarter of them on each of four cores, an eighth on each of
        // eight; one on each.
        assert!(
            is_spare(25, 25, 0, 100)
                && is_spare(12, 12, 0, 100)
                && is_spare(1, 1, 0, 4)
                && is_spare(1, 1, 0, 8)
        );
        // Clients have most of what is here.
        assert!(
            !is_spare(7, 25, 0, 100)
                && is_spare(8, 25, 0, 100)
                && !is_spare(0, 1, 0, 4)
                && !is_spare(1, 3, 0, 4)
        );
        // Everything is elsewhere.
        assert!(!is_spare(0, 0, 0, 4));
        assert!(is_spare(0, 0, 0, 0), "there is no server");
    }
}
