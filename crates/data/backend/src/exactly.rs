//! A connection to one server of a hostgroup, for whoever has named it: the weights have no say.

use crate::BackendFailed;
use crate::acquire::{LOOK_AGAIN, Taken};
use crate::backend::Backend;
use crate::connect::Attempt;
use crate::pools::{Pools, Want};
use bridge::Counter;
use std::time::Duration;

impl Pools {
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
            let is_it =
                |of: &&std::rc::Rc<crate::Place>| **of.host() == *host && of.server().port == port;
            let place = group.places.borrow().iter().find(is_it).cloned();
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
