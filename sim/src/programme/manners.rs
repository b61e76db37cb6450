//! Manners of the clients of a world.

use std::time::Duration;

/// How clients behave in a world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manners {
    /// There are connections for everybody: who keeps one and waits for another waits for nobody.
    pub(super) room: bool,
    pub(super) users: usize,
    pub(super) bytes_per_second: u64,
    /// Networks break, and nobody is told why.
    pub(super) breaks: bool,
    /// Whether the client is served over connections of its own, sometimes.
    pub(super) courier: bool,
    /// As [`World::mariadb`](crate::World::mariadb).
    pub(super) mariadb: bool,
    /// As [`World::kills`](crate::World::kills).
    pub(super) kills: u64,
    /// Reads go to the replica, but so many milliseconds after a write of their session.
    pub(super) split: Option<u32>,
    /// The replica is behind by no more than this.
    pub(super) lag: Duration,
    /// As [`World::mirror`](crate::World::mirror).
    pub(super) mirror: bool,
    /// As [`World::cached`](crate::World::cached).
    pub(super) cached: bool,
    /// As [`World::missing`](crate::World::missing).
    pub(super) missing: [Option<&'static str>; 2],
    /// Whether the client is one whose password expires, sometimes.
    pub(crate) sleeper: bool,
    /// Nothing breaks, nothing is late, and nobody waits by order.
    pub(super) calm: bool,
    /// The replica is in service all the time.
    pub(super) steady: bool,
    /// Whether a transaction may go on elsewhere, because its server may be lost.
    pub(super) moves: bool,
}

impl Manners {
    pub(crate) fn of(world: &crate::World, courier: bool) -> Self {
        Self {
            room: u64::from(world.connections) >= world.clients,
            users: world.users,
            bytes_per_second: world.bytes_per_second,
            kills: world.kills,
            breaks: world.breaks(),
            courier,
            mariadb: world.mariadb,
            split: world.split,
            lag: world.lag,
            cached: world.cached,
            missing: world.missing,
            sleeper: false,
            mirror: world.mirror,
            calm: world.weather == crate::Weather::Calm
                && !world.operator
                && world.pace == 0
                && world.bytes_per_second == 0,
            steady: !world.rough() && !world.operator,
            moves: world.replays && (world.rough() || world.operator),
        }
    }

    /// Whether no server has the schema that somebody names who comes in.
    pub(super) fn is_nowhere(&self, schema: Option<&'static str>) -> bool {
        schema.is_some() && self.missing == [schema; 2]
    }
}
