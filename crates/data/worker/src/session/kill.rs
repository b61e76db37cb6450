//! KILL: a session by its number, wherever it is, and what it runs on a server.

use crate::command::job::{Job, Told, What};
use crate::command::prepared::Execution;
use crate::command::trouble::Ended;
use crate::core::{Core, SESSIONS_FROM};
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::{Backend, Joined, Killing};
use bridge::{Killed, Kills, ToCore};
use config::Snapshot;
use rt::mailbox;
use sql::{Computed, Kill, Whom};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::execute::Value;

/// How long another core may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a server may take to end a statement after it was told to.
pub(crate) const OBEYS: Duration = Duration::from_secs(10);

/// Index of the core that a session of this number is on, of so many.
#[must_use]
pub fn core_of(session: u32, cores: u32) -> u32 {
    session.wrapping_sub(SESSIONS_FROM) % cores.max(1)
}

impl Core {
    /// Ends a session of this user, or what it runs, on whichever core it is.
    async fn kill_anywhere(&self, session: u32, statement_only: bool, owner: &str) -> Killed {
        // Sessions are numbered so that the number says the core: see `next_session_id`.
        let core = core_of(session, self.cores);
        if core == self.index {
            return self.roster.kill(session, statement_only, Some(owner));
        }
        let Some(Some(peer)) = self.peers.get(core as usize) else {
            return Killed::Unknown;
        };
        let (answer, answered) = mailbox::channel(1);
        let reply = Box::new(move |killed| drop(answer.try_send(killed)));
        if peer
            .control
            .try_send(ToCore::Kill {
                session,
                statement_only,
                owner: Some(Arc::from(owner)),
                reply,
            })
            .is_err()
        {
            return Killed::Unknown;
        }
        self.rt
            .timeout(ANSWER, answered.recv())
            .await
            .ok()
            .flatten()
            .unwrap_or(Killed::Unknown)
    }

    /// Ends the sessions of a user but one, or what they run, on all cores. How many there are.
    async fn kill_user_anywhere(
        &self,
        user: &str,
        host: Option<&str>,
        but: u32,
        does: Kills,
    ) -> u64 {
        let mut n = self.roster.kill_user(user, host, but, does);
        for peer in self.peers.iter().flatten() {
            let (answer, answered) = mailbox::channel(1);
            let reply = Box::new(move |killed| drop(answer.try_send(killed)));
            let message = ToCore::KillUser {
                user: Arc::from(user),
                host: host.map(Arc::from),
                but,
                does,
                reply,
            };
            if peer.control.try_send(message).is_ok() {
                n += self
                    .rt
                    .timeout(ANSWER, answered.recv())
                    .await
                    .ok()
                    .flatten()
                    .unwrap_or(0);
            }
        }
        n
    }
}

impl Session {
    /// The stage: a KILL is ours to do, since the number in it is ours and no server's.
    pub(crate) async fn kill_stage(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        let parameter = match job.what {
            // Nothing is ended yet, and servers differ in what they prepare: one of them says it.
            What::Prepare(preparing) if preparing.naming.is_none() => {
                return Ok(ControlFlow::Continue(()));
            }
            What::Query(_) => None,
            What::Execute(execution) => number(execution),
            _ => {
                let words = "This command is not supported in the prepared statement protocol yet";
                self.refuse(&Complaint::with(1295, "HY000", words)).await?;
                return Ok(ControlFlow::Break(Told::default()));
            }
        };
        let order = if job.class.multi {
            None
        } else {
            sql::kill(job.sent(), self.lexing_of(job.what))
        };
        let Some(Kill {
            whom,
            statement_only,
        }) = order
        else {
            return self.refuse_kill().await;
        };
        let session = match whom {
            Whom::Session(session) => session,
            Whom::Computed(computed) => match self.computed(&computed).await? {
                Some(session) => session,
                None => return self.refuse_kill().await,
            },
            Whom::Parameter => match parameter {
                Some(session) => session,
                None => return self.refuse_kill().await,
            },
            Whom::Statement => {
                let words = "KILL QUERY ID is not supported: the number of a statement is a server's own, and nobody can tell whose it is. Say KILL QUERY with \
                             the number of a session, or KILL QUERY ID to the server itself";
                self.refuse(&Complaint::with(1235, "42000", words)).await?;
                return Ok(ControlFlow::Break(Told::default()));
            }
            Whom::User { name, host } if job.epoch.claims_mariadb() => {
                let told = self
                    .kill_user(job.epoch, name, host, statement_only)
                    .await?;
                return Ok(ControlFlow::Break(told));
            }
            Whom::User { .. } => return self.refuse_kill().await,
        };
        self.kill(job.epoch, session, statement_only).await?;
        Ok(ControlFlow::Break(Told::default()))
    }

    /// Computes the number that a KILL names, if that is certain. Where a variable is set to NULL,
    /// or not at all, the number is 0, as servers read NULL.
    async fn computed(&mut self, computed: &Computed) -> Result<Option<u64>, Ended> {
        if computed.names_variables() && !self.has_read_variables().await? {
            return Ok(None);
        }
        let of = |name: &str| match self
            .state
            .user_variables()
            .find(|(known, _)| *known == name)
        {
            Some((_, value)) if !value.null => sql::digits(value.literal.as_bytes())
                .or_else(|| sql::digits(&sql::literal::said(&value.literal)?))
                .map(Some),
            _ => Some(None),
        };
        Ok(computed.value(u64::from(self.entry.id), of))
    }

    async fn refuse_kill(&mut self) -> Result<ControlFlow<Told>, Ended> {
        let words = "The proxy understands KILL [HARD | SOFT] [CONNECTION | QUERY] with the number of a session, or what comes of such numbers, \
                     CONNECTION_ID() and the session's user variables by +, - and *, or, as MariaDB, USER and a name";
        self.refuse(&Complaint::with(1235, "42000", words)).await?;
        Ok(ControlFlow::Break(Told::default()))
    }

    /// KILL USER. One's own session is the last.
    async fn kill_user(
        &mut self,
        epoch: &Epoch,
        name: Option<String>,
        host: Option<String>,
        statement_only: bool,
    ) -> Result<Told, Ended> {
        let name = name.unwrap_or_else(|| self.user_name.to_string());
        let is_own = *name == *self.user_name;
        let does = match (is_own, statement_only) {
            (false, _) => Kills::Nothing,
            (true, true) => Kills::Statement,
            (true, false) => Kills::Session,
        };
        let core = self.core.clone();
        let n = core
            .kill_user_anywhere(&name, host.as_deref(), self.entry.id, does)
            .await;
        if !is_own && n > 0 {
            let words = format!(
                "Operation KILL USER failed for {name}@{}",
                host.as_deref().unwrap_or("%")
            );
            self.refuse(&Complaint::with(1095, "HY000", words)).await?;
            return Ok(Told::default());
        }
        if is_own && host.is_none_or(|host| host == self.entry.client.0) {
            self.kill(epoch, u64::from(self.entry.id), statement_only)
                .await?;
            return Ok(Told::default());
        }
        let mut out = Vec::new();
        let mut writer = self.writer(&mut out, self.turn.sent, self.flags() | self.turn.flags());
        writer.ok(&wire::ok::Ok {
            affected: n,
            ..wire::ok::Ok::default()
        });
        self.turn.sent = writer.last_seq();
        self.hand_over(out).await?;
        Ok(Told {
            rows_affected: n,
            row_count: i64::try_from(n).unwrap_or(i64::MAX),
            ..Told::default()
        })
    }

    /// KILL and COM_PROCESS_KILL.
    pub(crate) async fn kill(
        &mut self,
        epoch: &Epoch,
        session: u64,
        statement_only: bool,
    ) -> Result<(), Ended> {
        if session == u64::from(self.entry.id) {
            let complaint = match (statement_only, epoch.claims_mariadb()) {
                (false, true) => Complaint::with(1927, "70100", "Connection was killed"),
                _ => Complaint::interrupted(),
            };
            return if statement_only {
                self.refuse(&complaint).await
            } else {
                Err(Ended::Told(complaint))
            };
        }
        let killed = match u32::try_from(session) {
            Ok(number) => {
                self.core
                    .clone()
                    .kill_anywhere(number, statement_only, &self.user_name.clone())
                    .await
            }
            Err(_) => Killed::Unknown,
        };
        match killed {
            Killed::Done => self.say("").await,
            Killed::Unknown => {
                self.refuse(&Complaint::with(
                    1094,
                    "HY000",
                    format!("Unknown thread id: {session}"),
                ))
                .await
            }
            Killed::NotYours => {
                self.refuse(&Complaint::with(
                    1095,
                    "HY000",
                    format!("You are not owner of thread {session}"),
                ))
                .await
            }
        }
    }

    fn killing(&self, backend: &Backend, snapshot: &Snapshot, statement_only: bool) -> Killing {
        Killing {
            place: backend.place().clone(),
            address: backend.conn.socket().peer(),
            our_end: backend.our_end(),
            thread_id: backend.hello.thread_id,
            statement_only,
            user: self.user.username.to_string(),
            secret: self.secret.clone(),
            client: self.entry.address,
            snapshot: snapshot.clone(),
        }
    }

    /// Of a statement that shares its connection.
    pub(crate) fn killing_of(&self, joined: &Joined) -> Killing {
        Killing {
            place: joined.place().clone(),
            address: joined.peer().clone(),
            our_end: joined.our_end().clone(),
            thread_id: joined.thread_id(),
            statement_only: false,
            user: self.user.username.to_string(),
            secret: self.secret.clone(),
            client: self.entry.address,
            snapshot: self.core.epoch().snapshot.clone(),
        }
    }

    /// Nobody waits for the answer any more: the server shall not go on with it.
    pub(crate) fn end_on_server(&self, backend: &Backend) {
        let epoch = self.core.epoch();
        let killing = self.killing(backend, &epoch.snapshot, false);
        let pools = self.core.pools.clone();
        self.core.rt.spawn(async move {
            let _if_not_the_closed_connection_ends_it = pools.kill(&killing).await;
        });
    }

    /// The statement shall end, and its connection stay: the server itself tells the client. The
    /// cell gets the outcome, and then the bell of the session rings.
    pub(crate) fn interrupt_on_server(&self, backend: &Backend) -> Rc<Cell<Option<bool>>> {
        self.interruption(backend)()
    }

    /// Returns a function that does as [`Self::interrupt_on_server`], for who cannot look at the
    /// session when it is time.
    pub(crate) fn interruption(
        &self,
        backend: &Backend,
    ) -> impl FnOnce() -> Rc<Cell<Option<bool>>> + use<> {
        let epoch = self.core.epoch();
        let killing = self.killing(backend, &epoch.snapshot, true);
        let (core, entry) = (self.core.clone(), self.entry.clone());
        move || {
            let outcome = Rc::new(Cell::new(None));
            let (told, pools) = (outcome.clone(), core.pools.clone());
            core.rt.spawn(async move {
                told.set(Some(pools.kill(&killing).await));
                entry.bell.ring();
            });
            outcome
        }
    }
}

/// The one parameter as the number of a session, as servers read it: `NULL` is 0, a fraction is
/// rounded. `None` for what is no number.
fn number(execution: &Execution<'_>) -> Option<u64> {
    match execution.values().ok()?.as_slice() {
        [Value::Null] => Some(0),
        [Value::Int(number)] => Some(number.cast_unsigned()),
        [Value::Uint(number)] => Some(*number),
        [Value::Bytes(text)] => sql::digits(text),
        // Libraries whose language has one kind of numbers send those.
        [Value::Float(number)] => rounded(f64::from(*number)),
        [Value::Double(number)] => rounded(*number),
        _ => None,
    }
}

fn rounded(number: f64) -> Option<u64> {
    sql::digits(format!("{:.0}", number.round()).as_bytes())
}
