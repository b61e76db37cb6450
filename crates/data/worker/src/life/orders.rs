//! Orders of the control plane: a configuration, a drain, a KILL, an end.

use crate::core::Core;
use bridge::{Ask, Take, ToCore};
use config::Snapshot;
use net::tls::Acceptor;
use rt::mailbox;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Time that PROXYSQL STOP waits for sessions that were told to end.
const CLOSES_WITHIN: Duration = Duration::from_secs(2);

/// How often a core that another process has taken over from looks whether it is deserted.
const LOOKS_AGAIN: Duration = Duration::from_millis(20);

impl Core {
    pub(crate) async fn sweep(self: Rc<Self>) {
        loop {
            self.rt.sleep(Duration::from_millis(250)).await;
            self.pools.sweep(&self.epoch().snapshot);
            self.outbox.hand_over();
        }
    }

    /// Works under another configuration from now on.
    fn load(self: &Rc<Self>, snapshot: &Snapshot) {
        let before = self.epoch();
        let epoch = Rc::new(before.next(snapshot));
        let same = Arc::ptr_eq(&before.snapshot.servers, &epoch.snapshot.servers)
            && Arc::ptr_eq(&before.snapshot.variables, &epoch.snapshot.variables)
            && backend::ask_for_the_same_gtids(&before.snapshot, &epoch.snapshot);
        if same {
            self.pools.renew();
        } else {
            self.adopt(&epoch.snapshot);
        }
        self.epoch.replace(epoch.clone());
        let users = &epoch.snapshot.users;
        let shares = |user: &str| {
            users
                .frontend(user)
                .is_some_and(|user| user.shares_writes())
        };
        self.shared_writes.keep(shares);
        self.watch_as(&before.snapshot.rules, &epoch.snapshot.rules);
        self.fit_cache();
        // What was counted under the configuration before is written under it.
        self.outbox.hand_over();
        if !Arc::ptr_eq(&before.snapshot.scripts, &epoch.snapshot.scripts) {
            self.begin_timers(&epoch.snapshot.scripts);
        }
    }

    /// Does what the control plane says until it is told to stop; during a drain, too.
    pub(crate) async fn obey(self: &Rc<Self>, mailbox: &mailbox::Receiver<ToCore>) {
        while let Some(message) = mailbox.recv().await {
            match message {
                ToCore::Load { snapshot, done } => {
                    self.load(&snapshot);
                    done(());
                }
                ToCore::Observe(observed) => {
                    self.observed.replace(observed);
                    self.adopt(&self.epoch().snapshot);
                }
                ToCore::Executed { server, what } => self.pools.executed(&server, &what),
                ToCore::AsOf { server, ms } => self.pools.is_as_of(&server, ms),
                ToCore::Touched(touched) => self.others_wrote(&touched),
                ToCore::Ask {
                    what: Ask::QueryCache,
                    reply,
                    ..
                } if self.index == 0 => {
                    self.rt.spawn(self.clone().list_cache(reply));
                }
                ToCore::Ask {
                    what: Ask::Digests,
                    reset,
                    reply,
                } => {
                    let listing = self.digests.list(reset);
                    self.rt.spawn(self.clone().list_digests(listing, reply));
                }
                ToCore::Ask {
                    what: Ask::Prepared,
                    reply,
                    ..
                } => {
                    self.rt.spawn(self.clone().list_prepared(reply));
                }
                ToCore::ClientHost { address, failed } => {
                    self.note_login(address, failed);
                }
                ToCore::FlushClientHosts { done } => {
                    self.hosts.flush();
                    done(());
                }
                ToCore::FlushCache { which, reply } => match self.index {
                    0 => self.rt.spawn(self.clone().flush_cache(which, reply)),
                    // It is one for all cores.
                    _ => reply(0),
                },
                ToCore::Ask { what, reset, reply } => reply(self.report(what, reset)),
                ToCore::Fetching { key, reply } => self.fetching(&key, reply),
                ToCore::Kill {
                    session,
                    statement_only,
                    owner,
                    reply,
                } => {
                    reply(self.roster.kill(session, statement_only, owner.as_deref()));
                }
                ToCore::KillUser {
                    user,
                    host,
                    but,
                    does,
                    reply,
                } => {
                    reply(self.roster.kill_user(&user, host.as_deref(), but, does));
                }
                ToCore::Gate {
                    partition,
                    closed_for,
                    done,
                } => self.gates.set(&self.rt, partition, closed_for, done),
                ToCore::HandOverEvents { done } => {
                    self.outbox.hand_over();
                    done(());
                }
                ToCore::Accept(open) => {
                    self.accepting.set(open);
                    self.closed.set(self.closed.get() && !open);
                    self.doors.notify_all();
                }
                ToCore::Close { done } => self.close(done),
                ToCore::ReloadTls {
                    certificate,
                    key,
                    authorities,
                } => match Acceptor::asking(&certificate, &key, &authorities) {
                    Ok(acceptor) => {
                        self.acceptor.replace(Some(acceptor));
                    }
                    Err(error) => self.note(&format!("the certificate was not reloaded: {error}")),
                },
                ToCore::Drain { done } => self.drain(done),
                ToCore::Leave { take, done } => self.leave(take, done),
                ToCore::Settle(moved) => self.settle(moved),
                ToCore::Stop => return,
            }
        }
    }

    /// Lets nobody in, and sessions end when they hold nothing. Answers when they are gone, or have
    /// had their time.
    fn drain(self: &Rc<Self>, done: bridge::Reply<()>) {
        self.draining.set(true);
        let deadline_ms = self.epoch().snapshot.variables.mysql_shutdown_deadline_ms;
        if self.index == 0 {
            self.note(&format!(
                "draining: sessions have {deadline_ms} ms to end; a second signal ends at once"
            ));
        }
        self.doors.notify_all();
        self.roster.ring();
        let core = self.clone();
        self.rt.spawn(async move {
            let _gone_or_late = core
                .rt
                .timeout(Duration::from_millis(deadline_ms), core.drained())
                .await;
            done(());
        });
    }

    /// Lets sessions that can go to another process go, now and whenever one can. Answers when none
    /// is left, or all have had their time.
    fn leave(self: &Rc<Self>, take: Option<Take>, done: bridge::Reply<()>) {
        self.left_to_another.set(true);
        self.takes_sessions.replace(take);
        self.doors.notify_all();
        self.roster.ring();
        let epoch = self.epoch();
        let variables = &epoch.snapshot.variables;
        let deadline_ms = variables.mysql_upgrade_deadline_ms;
        let last_ms = variables.mysql_shutdown_deadline_ms;
        let core = self.clone();
        self.rt.spawn(async move {
            let time = Duration::from_millis(deadline_ms);
            let _gone_or_late = core.rt.timeout(time, core.deserted()).await;
            // Who is in the middle of something ends behind it.
            core.draining.set(true);
            core.roster.ring();
            let time = Duration::from_millis(last_ms);
            let _gone_or_late = core.rt.timeout(time, core.drained()).await;
            done(());
        });
    }

    /// Lets nobody in and ends every session. Answers when they are gone, or have had their time.
    fn close(self: &Rc<Self>, done: bridge::Reply<()>) {
        self.accepting.set(false);
        self.closed.set(true);
        self.doors.notify_all();
        self.roster.kill_all();
        let core = self.clone();
        self.rt.spawn(async move {
            let _gone_or_late = core.rt.timeout(CLOSES_WITHIN, core.drained()).await;
            done(());
        });
    }

    /// Resolves when nobody is here any more, and nobody is about to come in.
    async fn deserted(&self) {
        while self.listening.get() > 0 || self.clients_here() > 0 {
            self.rt.sleep(LOOKS_AGAIN).await;
        }
    }

    async fn drained(&self) {
        while self.roster.len() > 0 {
            self.left.wait().await;
        }
    }
}
