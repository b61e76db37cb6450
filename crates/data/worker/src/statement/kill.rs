//! KILL as a statement and as a command: whose session or statement it ends.

use crate::command::job::{Job, Told, What};
use crate::command::prepared::Execution;
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::session::Session;
use bridge::{Killed, Kills};
use sql::{Computed, Kill, Whom};
use std::ops::ControlFlow;
use wire::execute::Value;

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
