//! Taking away what a session has left on a connection, all of it.

use crate::connection::ask::{Answer, INTERRUPTED, without_zeros};
use crate::connection::backend::{Backend, Idle, refusal};
use crate::connection::lease::Local;
use crate::failure::BackendFailed;
use crate::session::hold::{Hold, Holds};
use crate::session::login::UNNAMED;
use crate::session::need::{self, Ways};
use crate::session::state::Names;
use crate::session::variables::ROLE;
use bridge::Counter;
use net::NetError;
use std::rc::Rc;
use wire::caps;
use wire::connect_attributes::ConnectAttributes;
use wire::response::Expect;

impl Backend {
    /// COM_RESET_CONNECTION, or COM_CHANGE_USER if `mysql-reset_connection_algorithm` is 1:
    /// everything that a session left is gone, but for the schema; what init_connect set is set
    /// again.
    ///
    /// # Errors
    /// The server refuses it, or the connection broke: close it.
    pub async fn reset(&mut self) -> Result<(), BackendFailed> {
        self.tally.up(Counter::ComBackendChangeUser);
        self.tally.up(Counter::MyhgmPoolReset);
        // A server reads a schema's name in the character set of the login. Who may come in with an
        // expired password would come into a sandbox, which nobody tells.
        let by_login = self.place.resets_by_login.get()
            && self.state.schema.is_ascii()
            && self.hello.proof.can_be_said_again()
            && !caps::has(self.key.caps, caps::EXPIRED_PASSWORDS);
        self.reset_by(by_login)
            .await
            .map_err(|failed| match failed {
                // It is about what others have left on this connection, and not about the statement
                // that waits for it: another will do.
                BackendFailed::Sync { .. } => BackendFailed::BrokeBefore(NetError::Closed),
                other => other,
            })
    }

    /// ROLLBACK, where that leaves nothing of the session's: [`Holds::end_with_transaction`].
    ///
    /// # Errors
    /// The server refuses it, or the connection broke: close it.
    pub(crate) async fn roll_back(&mut self) -> Result<(), BackendFailed> {
        // Whatever `completion_type` says.
        let mut payload = Vec::new();
        let text = b"ROLLBACK AND NO CHAIN NO RELEASE";
        wire::command::write_query(&mut payload, text, self.hello.caps);
        let response = self.command(&payload, Expect::Query).await?;
        refusal(&response)?;
        self.holds.status(response.status());
        if self.holds.has(Hold::Transaction) {
            return Err(BackendFailed::Unfit);
        }
        if self.holds.has(Hold::InsertId) {
            self.lasting.insert_id = None;
        }
        self.holds.clear();
        self.lease.reads_by_split = false;
        Ok(())
    }

    /// A reset by COM_CHANGE_USER or not.
    pub(crate) async fn reset_by(&mut self, by_login: bool) -> Result<(), BackendFailed> {
        let result = self.reset_all(by_login).await;
        if result.is_err() {
            // Who knows how far it came.
            self.idle = Idle::Doubtful;
        }
        result
    }

    async fn reset_all(&mut self, by_login: bool) -> Result<(), BackendFailed> {
        if self.holds.has(Hold::Xa) || self.holds.has(Hold::Branch) {
            // After the reset of a prepared XA transaction MariaDB 10.11 takes no table of InnoDB
            // there any more (error 1031), whoever asks.
            return Err(BackendFailed::Unfit);
        }
        let takes_roles = by_login && !self.hello.is_mariadb();
        let may_set_one = [
            Hold::Procedure,
            Hold::Routine,
            Hold::Untold,
            Hold::UnknownState,
        ];
        if !takes_roles && may_set_one.iter().any(|hold| self.holds.has(*hold)) {
            self.refuse_a_role().await?;
        }
        let status = if by_login {
            self.log_in_again().await?
        } else {
            let response = self.command(&[0x1F], Expect::Simple).await?;
            refusal(&response)?;
            response.status()
        };
        self.is_as_new(status, by_login).await
    }

    /// The server has taken away what there was, by a new login or not.
    pub(crate) async fn is_as_new(
        &mut self,
        status: u16,
        by_login: bool,
    ) -> Result<(), BackendFailed> {
        let takes_roles = by_login && !self.hello.is_mariadb();
        let gone = self.prepared.clear() + self.slots.clear();
        self.tally.add(
            Counter::StmtServerActiveTotal,
            0u64.wrapping_sub(gone as u64),
        );
        // A login has its own character set anew.
        let names = by_login.then(|| self.hello.proof.charset());
        self.state = need::reset(
            &self.state,
            Ways {
                after_reset: names,
                ..self.lasting.ways
            },
        );
        if takes_roles {
            self.state.unset(ROLE);
        }
        self.holds = Holds::default();
        self.local = Local::default();
        self.lease.reads_by_split = false;
        let lasting = &mut self.lasting;
        (lasting.insert_id, lasting.warnings_left) = (Some(0), false);
        (lasting.last_session, lasting.drew) = (0, 0);
        (lasting.tracking, lasting.told_of_transactions) = (None, false);
        self.holds.status(status);
        // Whether a server resets this too differs.
        if self.lasting.several {
            self.take_several(false).await?;
        }
        if self.hello.is_mariadb() {
            self.set_as_login_did().await?;
            if !by_login && !self.state.schema.is_empty() {
                // It stays in the schema, and forgets the schema's character set.
                let schema = self.state.schema.clone();
                // Where it was dropped since, nobody knows in which one the connection is now.
                self.init_db(&schema).await?;
            }
        }
        if let Some(text) = self.init_connect.clone() {
            self.begin(text).await?;
        }
        if std::mem::take(&mut self.lasting.ways.asked_for_gtids) {
            self.ask_for_gtids().await?;
        }
        Ok(())
    }

    /// Refuses a connection with a role: what nobody tells may have set one, which no reset would
    /// take away. Such a connection is for nobody else.
    async fn refuse_a_role(&mut self) -> Result<(), BackendFailed> {
        let has_none = match self.ask("SELECT CURRENT_ROLE()").await? {
            Answer::Rows(rows) => rows
                .rows
                .first()
                .and_then(|row| row.first())
                .is_some_and(|role| self.is_no_role(role.as_deref())),
            // A server without roles. A KILL QUERY that was meant for a statement says nothing.
            Answer::Refused(code) => code != INTERRUPTED,
            Answer::TooLong => false,
        };
        if self.state.variable(ROLE).is_some() || !has_none {
            return Err(BackendFailed::Unfit);
        }
        Ok(())
    }

    /// Whether this answer surely means none: it comes in the character set that the session has
    /// asked for, and what cannot be read is a role. MariaDB says NULL, and names a role as it is;
    /// MySQL says NONE, and has each name in backquotes.
    fn is_no_role(&self, said: Option<&[u8]>) -> bool {
        let Some(said) = said else { return true };
        !self.hello.is_mariadb() && without_zeros(said) == b"NONE"
    }

    /// COM_CHANGE_USER to the user that it is. COM_STMT_CLOSEs that wait are for statements that
    /// are gone then.
    async fn log_in_again(&mut self) -> Result<u16, BackendFailed> {
        if !self.conn.is_idle() {
            return Err(BackendFailed::BrokeBefore(NetError::Closed));
        }
        self.lasting.closing.clear();
        self.idle = Idle::Doubtful;
        self.local.undisturbed = None;
        let attributes = ConnectAttributes::default().with(&[], UNNAMED);
        let schema = self.state.schema.clone();
        let status = match net::log_in_again(
            &mut self.conn,
            &self.hello,
            &self.key.user,
            &schema,
            &attributes,
        )
        .await
        {
            Ok(status) => status,
            Err(net::Refused::Net(error)) => return Err(BackendFailed::BrokeAfter(error)),
            // It is about this connection, and not about the statement that waits for it: another
            // will do.
            Err(
                net::Refused::Server { .. } | net::Refused::Impossible(_) | net::Refused::NoTls,
            ) => {
                return Err(BackendFailed::BrokeBefore(NetError::Closed));
            }
        };
        self.idle = Idle::Proven;
        Ok(status)
    }

    /// Sets what capabilities of a login set and a reset of MariaDB undoes.
    async fn set_as_login_did(&mut self) -> Result<(), BackendFailed> {
        let sets = [
            (
                caps::INTERACTIVE,
                "wait_timeout = @@session.interactive_timeout",
            ),
            (
                caps::IGNORE_SPACE,
                "sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'IGNORE_SPACE')",
            ),
        ];
        let sets: Vec<_> = sets
            .iter()
            .filter(|(by, _)| self.key.caps & by != 0)
            .map(|(_, set)| *set)
            .collect();
        if sets.is_empty() {
            return Ok(());
        }
        let mut payload = Vec::new();
        wire::command::write_query(
            &mut payload,
            format!("SET {}", sets.join(", ")).as_bytes(),
            self.hello.caps,
        );
        refusal(&self.command(&payload, Expect::Query).await?).map(drop)
    }

    /// Runs init_connect, now and after every reset.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] with the server's words when it refuses.
    pub(crate) async fn begin(&mut self, text: Rc<str>) -> Result<(), BackendFailed> {
        self.init_connect = Some(text.clone());
        let pieces: Vec<_> = sql::words::statements(text.as_bytes()).collect();
        for piece in pieces {
            let piece = &text.as_bytes()[piece];
            self.lasting.ways.begun = self.lasting.ways.begun.and(piece);
            let mut payload = Vec::with_capacity(piece.len() + 1);
            wire::command::write_query(&mut payload, piece, self.hello.caps);
            let response = self.command(&payload, Expect::Query).await?;
            refusal(&response)?;
            self.holds.status(response.status());
            self.state.autocommit = response.status() & wire::status::AUTOCOMMIT != 0;
        }
        let text = text.to_ascii_lowercase();
        if text.contains("names") || text.contains("char") || text.contains("collation") {
            // It may have changed what the login said.
            self.state.names = Names::Unknown;
        }
        Ok(())
    }
}
