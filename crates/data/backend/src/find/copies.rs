//! Copies of statements wait for connections that no client will miss.

use crate::cores::neighbours::LOOK_AGAIN;
use crate::failure::BackendFailed;
use crate::hostgroup::group::Group;
use crate::pool::pools::Pools;
use crate::session::want::Want;
use rt::permits::Permits;
use std::sync::Arc;
use std::time::Duration;

/// A copy that has a connection, or is about to: one of a limited number over all cores. Given back
/// when dropped.
pub struct Spare(Arc<Permits>);

impl std::fmt::Debug for Spare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spare({} taken)", self.0.taken())
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.0.give();
    }
}

impl Pools {
    /// Waits until a copy may have a connection, because no client waits for one or will soon. What
    /// is taken then has to be taken at once, and the copy counts as one until what this returns is
    /// dropped.
    ///
    /// # Errors
    /// [`BackendFailed::Timeout`] after `mysql-connect_timeout_server_max`.
    pub async fn until_spare(&self, want: &Want<'_>) -> Result<Spare, BackendFailed> {
        let (begun, group) = (self.rt.now(), self.group(want.hostgroup));
        let limit = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server_max);
        let copies = group.copies.get_or_init(|| {
            self.registry
                .get(&format!("copies in hostgroup {}", want.hostgroup))
        });
        loop {
            let spare = group.has_spare() && !group.paced.waits_for(&self.key_of(&group, want));
            if spare && copies.try_take(group.copies_max()) {
                return Ok(Spare(copies.clone()));
            }
            if !spare {
                self.ask_for_spare(&group, want);
            }
            let waited = self.rt.now() - begun;
            if waited >= limit {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                return Err(BackendFailed::Timeout {
                    hostgroup: want.hostgroup,
                    waited_ms,
                    last: None,
                });
            }
            self.rt.sleep(LOOK_AGAIN.min(limit - waited)).await;
        }
    }

    /// Other cores may have a connection idle that they can spare: what they send is idle here.
    /// Asked once in a while, however many copies wait.
    fn ask_for_spare(&self, group: &Group, want: &Want<'_>) {
        let now = self.rt.now();
        let just_asked = group
            .asked_for_spare
            .get()
            .is_some_and(|asked| now - asked < LOOK_AGAIN);
        if !just_asked && group.queue.is_empty() && group.is_elsewhere() {
            group.asked_for_spare.set(Some(now));
            self.ask_to_spare(want);
        }
    }
}
