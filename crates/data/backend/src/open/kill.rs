//! Ending what a server does for us, over a connection of its own.

use crate::connection::backend::Idle;
use crate::connection::killing::Killing;
use crate::connection::meant::{self, Found, Ours};
use crate::pool::pools::Pools;
use crate::session::login::Attempt;
use crate::session::state::State;
use crate::session::want::Want;
use bridge::Counter;
use rt::Address;
use std::time::Duration;
use wire::connect_attributes::ConnectAttributes;

/// Connections that are open at once only to say KILL, per core. They are not counted among a
/// server's `max_connections`, which may be reached just because of what is to be killed.
const KILLS_MAX: u32 = 32;
/// Of these, and beside them, those that wait at servers that let nobody more in: others are said
/// meanwhile where there is room.
const WAITING_MAX: u32 = 16;
/// How long one may take, the login included.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries where the server lets nobody more in.
const FULL_PAUSE: Duration = Duration::from_millis(100);

impl Pools {
    /// Says KILL to the server; whether it said OK. False at once when too many do so now. It is
    /// not said where the number may be another connection's.
    pub async fn kill(&self, killing: &Killing) -> bool {
        let Some(one) = One::of(&self.kills, KILLS_MAX) else {
            return false;
        };
        let said = self.rt.timeout(PATIENCE, self.say_kill(killing, one)).await;
        let done = matches!(said, Ok(Ok(())));
        if done {
            self.tally.up(Counter::KillsSent);
            if killing.statement_only {
                self.tally.up(Counter::KilledBackendQueries);
            }
        }
        done
    }

    async fn say_kill<'a>(&'a self, killing: &Killing, one: One<'a>) -> Result<(), ()> {
        let (state, attributes) = (State::new("", 45), ConnectAttributes::default());
        let who = (&*killing.user, &killing.secret);
        let want = Want {
            hostgroup: killing.place.server().hostgroup,
            client: killing.client,
            ..Want::of_nobody(who, &killing.snapshot, &state, &attributes)
        };
        if killing.secret.is_relayed() {
            return self.say_it_on_another(killing).await;
        }
        let (mut one, mut waits, mut gave) = (Some(one), None, false);
        let (mut conn, hello) = loop {
            let why = match self
                .log_in_at(&killing.address, Duration::MAX, &killing.place, &want)
                .await
            {
                Ok(found) => break found,
                Err(Attempt::Again(_) | Attempt::Unreached(_) | Attempt::Final(_)) => {
                    return Err(());
                }
                // What is closed makes no room before the hour is over, and could not be opened
                // again.
                Err(Attempt::Full { why, .. }) if why.contains("max_connections_per_hour") => {
                    return Err(());
                }
                Err(Attempt::Full { why, .. } | Attempt::Lacking(why)) => why,
            };
            if waits.is_none() {
                waits = Some(One::of(&self.kills_waiting, WAITING_MAX).ok_or(())?);
                drop(one.take());
            }
            // It may be full of what is to be killed. Each that is makes room for the next, and so
            // does one that nobody uses: one, since others may be quicker.
            if !gave {
                gave = killing.place.give_up_idle(&killing.user, &self.tally);
            }
            if !gave && killing.place.known.may_tell(self.rt.now()) {
                let (host, port, id) = (
                    killing.place.host(),
                    killing.place.server().port,
                    killing.thread_id,
                );
                self.note(&format!(
                    "KILL of connection {id} waits for room at {host}:{port}: {why}"
                ));
            }
            self.rt.sleep(FULL_PAUSE).await;
        };
        let told = killing.place.client_of(&want).and(want.client);
        let end = told.map_or_else(|| conn.socket().local(), Address::Tcp);
        let own = Ours {
            thread_id: hello.thread_id,
            end: &end,
        };
        let found = meant::look_for(
            Ours {
                thread_id: killing.thread_id,
                end: &killing.our_end,
            },
            &mut conn,
            &hello,
            own,
        )
        .await?;
        #[cfg(debug_assertions)]
        let found = if crate::planted::KILL_ANYBODY.get() {
            Found::It
        } else {
            found
        };
        self.may_be_said(killing, found)?;
        let done = meant::say(&mut conn, &hello, &words(killing)).await?;
        if done { Ok(()) } else { Err(()) }
    }

    /// On a connection of the user that is idle: only the server could open one more.
    async fn say_it_on_another(&self, killing: &Killing) -> Result<(), ()> {
        let mut backend = self.take_any_of(&killing.place, &killing.user).ok_or(())?;
        backend.idle = Idle::Doubtful;
        let end = backend.our_end();
        let own = Ours {
            thread_id: backend.hello.thread_id,
            end: &end,
        };
        let meant = Ours {
            thread_id: killing.thread_id,
            end: &killing.our_end,
        };
        let hello = backend.hello.clone();
        let said = async {
            let found = meant::look_for(meant, &mut backend.conn, &hello, own).await?;
            self.may_be_said(killing, found)?;
            meant::say(&mut backend.conn, &hello, &words(killing)).await
        };
        let said = said.await;
        if said.is_ok() {
            backend.idle = Idle::Proven;
        }
        self.release(backend);
        if said? { Ok(()) } else { Err(()) }
    }

    /// Only where the number is surely that connection's.
    fn may_be_said(&self, killing: &Killing, found: Found) -> Result<(), ()> {
        if found == Found::Another && killing.place.known.may_tell(self.rt.now()) {
            let (host, port, id) = (
                killing.place.host(),
                killing.place.server().port,
                killing.thread_id,
            );
            self.note(&format!("KILL is not said to {host}:{port}: connection {id} is, or may be, no longer ours there"));
        }
        if found == Found::It { Ok(()) } else { Err(()) }
    }
}

fn words(killing: &Killing) -> String {
    let what = if killing.statement_only {
        "QUERY"
    } else {
        "CONNECTION"
    };
    let thread_id = killing.thread_id;
    #[cfg(debug_assertions)]
    let thread_id = if crate::planted::KILL_ANOTHER.get() {
        thread_id - 1
    } else {
        thread_id
    };
    format!("KILL {what} {thread_id}")
}

/// One of those that are being said, or wait; one less when it is dropped.
struct One<'a>(&'a std::cell::Cell<u32>);

impl<'a> One<'a> {
    /// None if there are `max` already.
    fn of(all: &'a std::cell::Cell<u32>, max: u32) -> Option<Self> {
        (all.get() < max).then(|| {
            all.set(all.get() + 1);
            Self(all)
        })
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use config::Snapshot;
    use net::Secret;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A name with several addresses stands for several servers, whose connections have the same
    /// numbers.
    #[test]
    fn a_kill_goes_where_the_connection_leads_and_not_where_the_name_does() {
        testing::with_several(|rt, pools, place| async move {
            let there: Address = "10.9.9.9:3306".parse().unwrap();
            let by_name = rt.resolve("several", 3306).await.unwrap();
            assert!(!by_name.contains(&there));
            let came = Rc::new(Cell::new((0, 0)));
            for at in by_name.iter().chain([&there]) {
                let listener = rt.listen(at, rt::ListenOptions::default()).unwrap();
                let (came, right) = (came.clone(), *at == there);
                rt.spawn(async move {
                    let _socket = listener.accept().await.unwrap();
                    let (good, bad) = came.get();
                    came.set(if right {
                        (good + 1, bad)
                    } else {
                        (good, bad + 1)
                    });
                });
            }
            let (user, secret, snapshot) = ("app".to_owned(), Secret::None, Snapshot::default());
            let our_end = "127.0.0.1:40000".parse().unwrap();
            let killing = Killing {
                place,
                address: there,
                our_end,
                thread_id: 7,
                statement_only: false,
                user,
                secret,
                client: None,
                snapshot,
            };
            assert!(!pools.kill(&killing).await, "nobody answers");
            assert_eq!(came.get(), (1, 0));
        });
    }
}
