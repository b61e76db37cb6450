//! A connection to one server of a hostgroup, for whoever has named it: the weights have no say.

use crate::connection::backend::Backend;
use crate::cores::neighbours::LOOK_AGAIN;
use crate::failure::BackendFailed;
use crate::open::taken::Taken;
use crate::pool::pools::Pools;
use crate::session::login::Attempt;
use crate::session::want::Want;
use bridge::Counter;
use std::time::Duration;

/// Facts of a server in a hostgroup, as this core knows them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// New work may go there, and nobody has failed to connect lately.
    pub serves: bool,
    /// Connections of the proxy there, over all cores.
    pub connected: u32,
    /// Connections of this user that are idle here.
    pub idle_own: u32,
    /// Connections of anybody that are idle here.
    pub idle_any: u32,
}

impl Pools {
    /// Returns what is known of a server; `user` is whose connections are counted.
    #[must_use]
    pub fn seen(&self, hostgroup: u32, (host, port): (&str, u16), user: &str) -> Seen {
        let now = self.rt.now();
        let Some(place) = self.place_at(hostgroup, (host, port)) else {
            return Seen::default();
        };
        let idle = place.idle.borrow();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Seen {
            serves: place.serves(now) && !place.known.has_failed(now),
            connected: place.taken(),
            idle_own: number(idle.iter().filter(|one| *one.key.user == *user).count()),
            idle_any: number(idle.len()),
        }
    }

    /// An idle connection to this server of the hostgroup, if there is one and nobody waits for it.
    #[must_use]
    pub fn at_once_at(&self, want: &Want<'_>, at: (&str, u16)) -> Option<Box<Backend>> {
        let place = self.place_at(want.hostgroup, at)?;
        self.at_once_to(&self.group(want.hostgroup), &place, want)
    }

    /// A connection to this server of the hostgroup, for this session alone until it is released.
    /// Others are not kept from coming first.
    ///
    /// # Errors
    /// [`BackendFailed::Timeout`] after `mysql-connect_timeout_server_max`, or at once if the
    /// server is not there; [`BackendFailed::Refused`] when it refuses the user.
    pub async fn acquire_at(
        &self,
        want: &Want<'_>,
        (host, port): (&str, u16),
    ) -> Result<Box<Backend>, BackendFailed> {
        self.tally.up(Counter::MyhgmPoolGet);
        let (group, begun) = (self.group(want.hostgroup), self.rt.now());
        let limit = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server_max);
        let mut last = None;
        loop {
            let place = self.place_at(want.hostgroup, (host, port));
            let waited = self.rt.now() - begun;
            let Some(place) = place.filter(|_| waited < limit || last.is_none()) else {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                self.tally.up(Counter::ConnPoolGetConnFailure);
                return Err(BackendFailed::Timeout {
                    hostgroup: want.hostgroup,
                    waited_ms,
                    last,
                });
            };
            if let Some(backend) = self.at_once_to(&group, &place, want) {
                return Ok(backend);
            }
            let serves = place.serves_for(want, self.rt.now());
            let room = serves.then(|| Taken::of(&place, place.row_max()));
            last = Some(match room.flatten() {
                None => "it takes no more connections".to_owned(),
                Some(room) => {
                    let key = self.key_of(&group, want);
                    match Box::pin(self.open(room, want, key)).await {
                        Ok(backend) if backend.place().is_cut_off() => {
                            self.release(backend);
                            "it was taken away".to_owned()
                        }
                        Ok(backend) => {
                            self.tally.up(Counter::ConnPoolGetConnSuccess);
                            return Ok(backend);
                        }
                        Err(Attempt::Final(failed)) => return Err(failed),
                        Err(
                            Attempt::Again(why)
                            | Attempt::Unreached(why)
                            | Attempt::Full { why, .. }
                            | Attempt::Lacking(why),
                        ) => why,
                    }
                }
            });
            self.rt.sleep(LOOK_AGAIN).await;
        }
    }
}
