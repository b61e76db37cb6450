//! COM_CHANGE_USER: the same connection, somebody else.

use crate::command::trouble::Ended;
use crate::core::Seat;
use crate::known::answer;
use crate::known::epoch::Epoch;
use crate::login::certificate::unfit;
use crate::login::door::{denied, found, known_charset, preferred_plugin, wide_charset};
use crate::session::Session;
use crate::session::through::{Said, Through};
use backend::{Like, Names, State};
use bridge::{Auditable, Counter};
use config::User;
use net::{LoginFailed, Proven};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::handshake::ChangeUser;

/// Failed attempts to become somebody else before the connection is closed; MariaDB allows as many.
const REFUSED_CHANGES_MAX: u8 = 3;

impl Session {
    /// The collation that a client gets for the one that it asks for, or keeps.
    fn collation_for(&self, epoch: &Epoch, asked: Option<u16>) -> Result<u16, answer::Complaint> {
        let v = &epoch.snapshot.variables;
        asked.map_or(Ok(self.collation), |asked| {
            known_charset(&self.core, v, &self.entry.client, asked)
        })
    }

    /// The connection of a `fast_forward` user; of anybody else it is seen that the schema is there
    /// which he names.
    async fn opened_for(
        &mut self,
        epoch: &Epoch,
        said: &Said<'_>,
        named: Option<&str>,
    ) -> Result<Option<Box<Through>>, answer::Complaint> {
        if said.user.fast_forward {
            return Box::pin(self.change_through(epoch, said)).await;
        }
        let known = self.core.has_schema(epoch, &self.entry, said, named);
        Box::pin(known).await.map(|()| None)
    }

    /// The command of a client that wants to be somebody else.
    pub(crate) fn read_change(&self, body: &[u8]) -> Result<ChangeUser, Ended> {
        ChangeUser::read(body, self.caps).map_err(|malformed| {
            self.core.tally.up(Counter::UnexpectedFrontendPackets);
            Ended::Told(answer::Complaint::with(
                1043,
                "08S01",
                malformed.to_string(),
            ))
        })
    }

    pub(crate) async fn change_user(&mut self, body: &[u8]) -> Result<(), Ended> {
        if self.is_due_through() {
            self.leave_through();
            return Err(Ended::Broken);
        }
        let change = self.read_change(body)?;
        // Servers say so before they ask for a proof.
        if let Some(complaint) = change.charset.and_then(wide_charset) {
            return self.turned_away(&complaint).await;
        }
        let epoch = self.core.epoch();
        let limit = Duration::from_millis(epoch.snapshot.variables.mysql_connect_timeout_client);
        let core = self.core.clone();
        let acceptor = core.acceptor();
        let find = |user: &str| found(&core, user);
        let plugin = preferred_plugin(&epoch.snapshot.variables);
        let login = net::authenticate_again(
            &mut self.client,
            acceptor.as_ref(),
            self.nonce,
            &change,
            self.caps,
            plugin,
            find,
        );
        let Proven { secret, vouch } = match core.rt.timeout(limit, login).await {
            Ok(Ok(proven)) => proven,
            Ok(Err(LoginFailed::Denied {
                user,
                with_password,
            })) => {
                // As a server does: who fails to become somebody else is nobody.
                core.tally.up(Counter::AccessDeniedWrongPassword);
                core.login_failed(self.entry.address.map(|at| at.ip()));
                return self
                    .turned_away(&denied(&user, &self.entry.client.0.clone(), with_password))
                    .await;
            }
            Ok(Err(LoginFailed::Net(_) | LoginFailed::TurnedAway)) | Err(_) => {
                return Err(Ended::Gone);
            }
        };
        // It may have been loaded while the client thought about its password.
        let epoch = self.core.epoch();
        let Some(user) = epoch.snapshot.users.frontend(&change.user).cloned() else {
            core.tally.up(Counter::AccessDeniedWrongPassword);
            return self
                .turned_away(&denied(&change.user, &self.entry.client.0.clone(), true))
                .await;
        };
        if let Some(complaint) = unfit(&core, &user, &self.client) {
            return self.turned_away(&complaint).await;
        }
        let collation = match self.collation_for(&epoch, change.charset) {
            Ok(known) => known,
            Err(complaint) => return self.turned_away(&complaint).await,
        };
        let same = user.username == self.user.username;
        let seat = match self.seat_for(&user) {
            Ok(seat) => seat,
            Err(complaint) => return self.turned_away(&complaint).await,
        };
        let named = change.database.as_deref();
        let schema = named.or(user.default_schema.as_deref());
        let said = Said {
            user: &user,
            secret: &secret,
            collation,
            attributes: &change.attributes,
            like: Like {
                caps: self.caps,
                database: schema,
            },
        };
        // Whoever it is from now on: what it held ends, as at a server, and before a connection is
        // asked for, which may be the one that it holds.
        self.let_go_of_locks().await;
        self.let_go();
        let had_one = self.through.is_some();
        if !user.fast_forward {
            self.leave_through();
        }
        let through = match self.opened_for(&epoch, &said, named).await {
            Ok(through) => through,
            Err(complaint) => {
                let has_none = had_one && self.through.is_none();
                self.turned_away(&complaint).await?;
                // There is nothing left on which it could stay who it was.
                return if has_none { Err(Ended::Broken) } else { Ok(()) };
            }
        };
        if let Some(seat) = seat {
            self.seats[1] = seat;
        }
        self.secret = secret;
        self.collation = collation;
        self.attributes = Rc::new(change.attributes);
        // MariaDB lets who stays himself keep his role, MySQL does not.
        let role = self
            .state
            .variable(backend::ROLE)
            .filter(|_| same && epoch.claims_mariadb())
            .map(str::to_owned);
        #[cfg(debug_assertions)]
        let before = self.state.clone();
        self.state = State::new(schema.unwrap_or(""), self.collation);
        #[cfg(debug_assertions)]
        if backend::planted::KEEP_STATE.get() {
            self.state = before;
        }
        if let Some(role) = role {
            self.state.set(backend::ROLE, &role);
        }
        self.becomes(user);
        self.leave_through();
        self.through = through;
        self.tells_that_it_is_in(&vouch).await
    }

    /// One more seat of another user.
    pub(crate) fn seat_for(&self, user: &User) -> Result<Option<Seat>, answer::Complaint> {
        if user.username == self.user.username {
            return Ok(None);
        }
        match self.core.user_seat(&user.username, user.max_connections) {
            Some(seat) => Ok(Some(seat)),
            None => {
                let words = format!(
                    "User '{}' has exceeded the 'max_user_connections' resource",
                    user.username
                );
                Err(answer::Complaint::with(1226, "42000", words))
            }
        }
    }

    /// The session is another user's from now on, and knows nothing of what was before.
    pub(crate) fn becomes(&mut self, user: Arc<User>) {
        self.forget_modes();
        self.next_flag_in = None;
        self.life = self.core.next_life();
        self.remembered.forget();
        self.core.user_went(&self.user_name);
        self.user_name = user.username.as_ref().into();
        self.core.user_came(&self.user_name);
        if self.user.fast_forward {
            // Nobody has looked at what it said until now.
            self.wrote = Some(self.core.rt.now());
        }
        self.user = user;
    }

    /// Tells the client that it is somebody else; `vouch` proves that to it.
    pub(crate) async fn tells_that_it_is_in(&mut self, vouch: &[u8]) -> Result<(), Ended> {
        self.show_who();
        self.audit(Auditable::ChangeUserOk, None);
        let mut payload = Vec::new();
        let schema = wire::track::schema(&self.state.schema);
        let ok = wire::ok::Ok {
            affected: 0,
            insert_id: 0,
            status: self.flags(),
            warnings: 0,
            info: vouch,
            changes: &schema,
        };
        ok.write(&mut payload, self.caps);
        let framed = self.client.frame(&payload);
        self.hand_over(framed).await
    }

    /// Tells the client, as the next packet of its dialogue, that it is not.
    pub(crate) async fn tells_that_it_is_not_in(
        &mut self,
        complaint: &answer::Complaint,
    ) -> Result<(), Ended> {
        self.core.tally.up(Counter::GeneratedErrorPackets);
        let mut payload = Vec::new();
        wire::ok::Err {
            code: complaint.code,
            state: complaint.state,
            message: complaint.words.as_bytes(),
        }
        .write(&mut payload);
        let framed = self.client.frame(&payload);
        self.hand_over(framed).await
    }

    /// MariaDB lets it stay who it was, without anything that it had set, so often; MySQL closes
    /// the connection. We do as the server that we claim to be.
    async fn turned_away(&mut self, complaint: &answer::Complaint) -> Result<(), Ended> {
        self.audit(Auditable::ChangeUserErr, Some(&complaint.words));
        self.let_go_of_locks().await;
        self.forget_everything(Names::of_the_server());
        self.tells_that_it_is_not_in(complaint).await?;
        self.refused_changes += 1;
        if !self.core.epoch().claims_mariadb() || self.refused_changes >= REFUSED_CHANGES_MAX {
            return Err(Ended::Broken);
        }
        self.stay_through().await
    }
}
