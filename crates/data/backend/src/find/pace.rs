//! The pace of new connections: a hostgroup may open so many in a second, all cores together. Who
//! needs one beyond that waits beside the line, in one of their own, so as to be in nobody's way
//! for whom a connection is idle: until one of theirs is, or they may open one. So does who was
//! refused by servers that are full, or failed to connect, before it tries again.
//!
//! What comes free is offered to the first of those who wait for one of its kind, then to the next,
//! until one takes it. Who comes later leaves it to them meanwhile.

use crate::connection::backend::Backend;
use crate::cores::neighbours::LOOK_AGAIN;
use crate::cores::word::Why;
use crate::hostgroup::chooser::working;
use crate::hostgroup::group::Group;
use crate::hostgroup::queue::{Standing, Turn};
use crate::pool::pools::Pools;
use crate::session::key::Key;
use crate::session::want::Want;
use config::Snapshot;
use rt::permits::Permits;
use rt::{Instant, Rt};
use std::sync::Arc;
use std::time::Duration;

/// How often those behind the first look by themselves: a server that was shunned may be back.
const LOOK_SELDOM: Duration = Duration::from_millis(100);

/// So many connections per second are no limit.
const UNLIMITED: u64 = 1_000_000;

/// Connections opened in the last second, over all cores, and how many may be.
pub(crate) struct Rate {
    permits: Arc<Permits>,
    max: u32,
}

impl Rate {
    pub(crate) fn is_used_up(&self) -> bool {
        self.permits.taken() >= self.max
    }

    /// One of them, unless there are as many as may be.
    pub(crate) fn take(&self) -> Option<Token> {
        self.permits
            .try_take(self.max)
            .then(|| Token(Some(self.permits.clone())))
    }
}

/// The right to open one. Given back when dropped: another core may have lent one meanwhile.
pub(crate) struct Token(Option<Arc<Permits>>);

impl Token {
    /// One is being opened: it counts for a second, whatever becomes of it.
    pub(crate) fn use_up(mut self, rt: &Rt) {
        if let Some(permits) = self.0.take() {
            let clock = rt.clone();
            rt.spawn(async move {
                clock.sleep(Duration::from_secs(1)).await;
                permits.give();
            });
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(permits) = &self.0 {
            permits.give();
        }
    }
}

impl Pools {
    /// A place among those who wait for the pace. It is taken once: who leaves this line calls the
    /// next, and two who leave it and come back would call each other without end. `for_pace`: it
    /// is the pace that it waits for.
    pub(crate) fn stand_aside<'a>(
        &self,
        group: &'a Group,
        want: &Want<'_>,
        standing: Standing,
        for_pace: bool,
    ) -> Turn<'a> {
        let key = (!want.new_connection).then(|| self.key_of(group, want));
        // What rests as a lane may be what is waited for.
        group.lanes.ring();
        group.paced.join_for(standing, key, for_pace)
    }

    /// Waits until there is a connection for this session, or one may be opened, or the time is
    /// over.
    pub(crate) async fn wait_for_pace(
        &self,
        group: &Group,
        want: &Want<'_>,
        turn: &Turn<'_>,
        until: Instant,
        asked: &mut Option<Instant>,
    ) -> Option<Box<Backend>> {
        let goes_on = || self.must_slow_down(group, want, turn.since());
        self.wait_for_offer(group, want, turn, until, asked, goes_on)
            .await
    }

    /// A pause of a session that may open no connection just now, or has tried in vain, within its
    /// `limit`: what comes free meanwhile is offered to it in its turn.
    pub(crate) async fn wait_beside(
        &self,
        group: &Group,
        want: &Want<'_>,
        standing: Standing,
        limit: Duration,
        pause: Duration,
    ) -> Option<Box<Backend>> {
        let until = (self.rt.now() + pause).min(standing.came + limit);
        let turn = self.stand_aside(group, want, standing, false);
        self.wait_for_offer(group, want, &turn, until, &mut None, || true)
            .await
    }

    /// Waits for one of the connections that come free, until there is one, or the time is over, or
    /// `goes_on` says no. The first who waits for connections of its kind asks the other cores.
    async fn wait_for_offer(
        &self,
        group: &Group,
        want: &Want<'_>,
        turn: &Turn<'_>,
        until: Instant,
        asked: &mut Option<Instant>,
        goes_on: impl Fn() -> bool,
    ) -> Option<Box<Backend>> {
        loop {
            let backend = self.take_offered(group, want, turn);
            let left = until - self.rt.now();
            if backend.is_some() || left.is_zero() || !goes_on() {
                return backend;
            }
            let first = turn.is_first() || turn.is_first_of_its_kind();
            if first {
                self.ask_now_and_then(
                    want,
                    Why::Pace {
                        since: turn.since(),
                    },
                    asked,
                );
            }
            let nap = if first { LOOK_AGAIN } else { LOOK_SELDOM };
            let _called_or_time_to_look = self.rt.timeout(nap.min(left), turn.called()).await;
        }
    }

    /// Takes an idle connection, of any server, unless somebody who came before is about to look.
    fn take_offered(
        &self,
        group: &Group,
        want: &Want<'_>,
        turn: &Turn<'_>,
    ) -> Option<Box<Backend>> {
        let key = turn.key()?;
        let since = turn.since();
        if group.queue.first_since().is_some_and(|first| first < since)
            || group.paced.is_offered(key, since)
        {
            turn.has_looked();
            return None;
        }
        let backend = self.take_idle(group, want, (since, false));
        self.pass_offer(group, turn);
        backend
    }

    /// Who was offered what came free has looked: if there is one still, it is offered to the next.
    pub(crate) fn pass_offer(&self, group: &Group, turn: &Turn<'_>) {
        if turn.has_looked()
            && let Some(key) = turn.key()
            && self.has_idle(group, key)
        {
            turn.offer_next();
        }
    }

    fn has_idle(&self, group: &Group, key: &Key) -> bool {
        let now = self.rt.now();
        let places = group.places.borrow();
        working(&places, now).any(|place| {
            place
                .idle
                .borrow()
                .iter()
                .any(|backend| backend.key == *key)
        })
    }

    /// Whether so many connections were opened in the last second that another has to wait, or
    /// others have waited for that longer.
    pub(crate) fn must_slow_down(&self, group: &Group, want: &Want<'_>, begun: Instant) -> bool {
        let others_first = || {
            group
                .paced
                .first_slow_since()
                .is_some_and(|first| first < begun)
        };
        self.rate(group, want)
            .is_some_and(|rate| rate.is_used_up() || others_first())
    }

    /// Whether one more may be opened in this second; then it counts.
    pub(crate) fn keeps_pace(&self, group: &Group, want: &Want<'_>) -> bool {
        self.rate(group, want)
            .is_none_or(|rate| rate.take().map(|token| token.use_up(&self.rt)).is_some())
    }

    /// How many connections to the hostgroup all cores together may open in a second, if that is
    /// limited.
    pub(crate) fn rate(&self, group: &Group, want: &Want<'_>) -> Option<Rate> {
        // What a LOAD has said since the command began holds for it, too.
        let max = group
            .pace_max
            .get()
            .unwrap_or_else(|| pace_of(want.snapshot, want.hostgroup));
        let permits = || {
            group.opened.get_or_init(|| {
                self.registry
                    .get(&format!("opened in hostgroup {}", want.hostgroup))
            })
        };
        (max < UNLIMITED).then(|| Rate {
            permits: permits().clone(),
            max: u32::try_from(max).unwrap_or(u32::MAX),
        })
    }
}

/// New connections per second that a configuration allows.
pub(crate) fn pace_of(snapshot: &Snapshot, hostgroup: u32) -> u64 {
    let of_all = snapshot
        .variables
        .mysql_throttle_connections_per_sec_to_hostgroup;
    let of_group = snapshot
        .servers
        .hostgroup(hostgroup)
        .map(|group| group.attributes.throttle_connections_per_sec);
    of_group.map_or(of_all, |max| of_all.min(u64::from(max)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::word::Word;
    use crate::{BackendFailed, State, testing};
    use config::Variables;
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn who_waits_for_the_pace_keeps_no_core_busy() {
        testing::with_several(|rt, pools, place| async move {
            pools.group(0).places.borrow_mut().push(place);
            let settings = [
                ("mysql-throttle_connections_per_sec_to_hostgroup", "1"),
                ("mysql-connect_timeout_server_max", "2000"),
            ];
            let (variables, _) = Variables::build(settings).unwrap();
            let snapshot = Snapshot {
                variables: Arc::new(variables),
                ..Snapshot::default()
            };
            // Somebody else has opened as many as may be.
            assert!(pools.registry.get("opened in hostgroup 0").try_take(1));
            let words = Rc::new(Cell::new(0));
            let count = words.clone();
            let speak = move |_core, word| {
                assert!(matches!(word, Word::Wanted(_)));
                count.set(count.get() + 1);
                Ok(())
            };
            pools.meet(vec![1], Box::new(speak));
            let pools = Rc::new(pools);
            let waiting: Vec<_> = (0..5)
                .map(|_| {
                    let (pools, snapshot) = (pools.clone(), snapshot.clone());
                    let (tell, told) = rt::local::oneshot();
                    rt.spawn(async move {
                        let state = State::new("", 45);
                        let attributes = wire::connect_attributes::ConnectAttributes::default();
                        let want = Want {
                            new_connection: false,
                            ..testing::want(&snapshot, &state, &attributes)
                        };
                        let _nobody = tell.send(pools.acquire(&want).await.err());
                    });
                    told
                })
                .collect();
            rt.sleep(Duration::from_secs(1)).await;
            assert_eq!(pools.group(0).paced.len(), 5);
            for one in waiting {
                assert!(matches!(
                    one.await,
                    Some(Some(BackendFailed::Timeout { .. }))
                ));
            }
            // The first asks fifty times a second, and each once more that is the first when all
            // give up.
            assert!((50..110).contains(&words.get()), "{}", words.get());
            assert!(pools.group(0).paced.is_empty() && pools.group(0).queue.is_empty());
        });
    }

    #[test]
    fn who_waits_at_a_full_server_is_not_before_those_who_may_open_one() {
        testing::with_several(|rt, pools, place| async move {
            let group = pools.group(0);
            group.places.borrow_mut().push(place);
            let settings = [("mysql-throttle_connections_per_sec_to_hostgroup", "10")];
            let snapshot = Snapshot {
                variables: Arc::new(Variables::build(settings).unwrap().0),
                ..Snapshot::default()
            };
            let (state, attributes) = (
                State::new("", 45),
                wire::connect_attributes::ConnectAttributes::default(),
            );
            let want = Want {
                new_connection: false,
                ..testing::want(&snapshot, &state, &attributes)
            };
            let begun = rt.now();
            let full = pools.stand_aside(
                &group,
                &Want {
                    user: "few",
                    ..want
                },
                begun.into(),
                false,
            );
            rt.sleep(Duration::from_millis(1)).await;
            let want = Want {
                new_connection: false,
                ..testing::want(&snapshot, &state, &attributes)
            };
            assert!(!pools.must_slow_down(&group, &want, rt.now()));
            assert!(group.has_spare());
            let slow = pools.stand_aside(&group, &want, begun.into(), true);
            assert!(pools.must_slow_down(&group, &want, rt.now()));
            assert!(!group.has_spare());
            drop((full, slow));
            assert!(group.has_spare());
        });
    }

    #[test]
    fn what_is_not_opened_after_all_does_not_count() {
        testing::with_several(|rt, _pools, _place| async move {
            let rate = Rate {
                permits: Arc::default(),
                max: 1,
            };
            drop(rate.take());
            assert!(!rate.is_used_up());
            rate.take().expect("none is taken").use_up(&rt);
            assert!(rate.take().is_none());
            rt.sleep(Duration::from_millis(1001)).await;
            assert!(!rate.is_used_up());
        });
    }

    #[test]
    fn each_kind_is_asked_for_and_a_pace_that_is_raised_is_for_those_who_wait() {
        testing::with_several(|rt, pools, place| async move {
            let of = |pace: &str| {
                let settings = [
                    ("mysql-throttle_connections_per_sec_to_hostgroup", pace),
                    ("mysql-connect_timeout_server_max", "2000"),
                ];
                Snapshot {
                    variables: Arc::new(Variables::build(settings).unwrap().0),
                    ..Snapshot::default()
                }
            };
            let slow = of("1");
            assert!(pools.registry.get("opened in hostgroup 0").try_take(1));
            let users = Rc::new(std::cell::RefCell::new(std::collections::BTreeSet::new()));
            let named = users.clone();
            let speak = move |_core, word| {
                if let Word::Wanted(wanted) = word {
                    named.borrow_mut().insert(wanted.user.to_string());
                }
                Ok(())
            };
            pools.meet(vec![1], Box::new(speak));
            pools.adopt(&slow, &testing::placed(&slow));
            pools.group(0).places.borrow_mut().push(place);
            let pools = Rc::new(pools);
            for user in ["one", "one", "other"] {
                let (pools, snapshot) = (pools.clone(), slow.clone());
                rt.spawn(async move {
                    let state = State::new("", 45);
                    let attributes = wire::connect_attributes::ConnectAttributes::default();
                    let want = Want {
                        new_connection: false,
                        user,
                        ..testing::want(&snapshot, &state, &attributes)
                    };
                    let _nobody = pools.acquire(&want).await;
                });
            }
            rt.sleep(Duration::from_millis(300)).await;
            let group = pools.group(0);
            assert!(
                users.borrow().iter().eq(["one", "other"])
                    && group.paced.len() == 3
                    && group.queue.is_empty()
            );
            let fast = of("1000");
            pools.adopt(&fast, &testing::placed(&fast));
            rt.sleep(Duration::from_millis(300)).await;
            // The server is in no row any more: they are in the other line.
            assert!(!group.queue.is_empty());
        });
    }
}
