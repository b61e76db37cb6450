//! Sessions of the process before are taken in.

use crate::core::Core;
use crate::core::roster::Entry;
use crate::life::live::{Comer, live};
use crate::login::moving::{Facts, Password};
use crate::session::Session;
use bridge::{Counter, Moved};
use net::{Conn, Entered, Secret};
use rt::Handed;
use std::rc::Rc;
use wire::connect_attributes::ConnectAttributes;
use wire::handshake::Login;

impl Core {
    /// Goes on with a session of the process that this one takes over from.
    pub(crate) fn settle(self: &Rc<Self>, moved: Moved) {
        let session = moved.session;
        if let Err(words) = self.settled(moved) {
            self.note(&format!(
                "session {session} of the process before has ended: {words}"
            ));
        }
    }

    fn settled(self: &Rc<Self>, moved: Moved) -> Result<(), String> {
        let Moved {
            session,
            facts,
            rest,
            socket,
        } = moved;
        let mut facts: Facts = serde_json::from_str(&facts)
            .map_err(|error| format!("it is not understood: {error}"))?;
        let epoch = self.epoch();
        let user = epoch.snapshot.users.frontend(&facts.user).cloned();
        let user = user.ok_or_else(|| format!("there is no user '{}'", facts.user))?;
        let socket = self.rt.adopt(Handed::of(socket));
        let conn = Conn::with_rest(socket.map_err(|error| error.to_string())?, rest);
        backend::probe_when_silent(conn.socket(), &epoch.snapshot.variables);
        let seats = self.seats_from_another(&user.username);
        let seats = seats.ok_or("there is no room for it")?;
        if self.roster.has(session) {
            return Err("another has its number".to_owned());
        }
        let entry = Rc::new(Entry::new(
            session,
            std::mem::take(&mut facts.client),
            self.rt.now(),
        ));
        self.enrol(entry.clone());
        let pairs: Vec<_> = std::mem::take(&mut facts.attributes);
        let entered = Entered {
            login: Login {
                caps: facts.caps,
                charset: facts.collation,
                user: facts.user.clone(),
                database: Some(facts.schema.clone()),
                attributes: ConnectAttributes::of(&pairs),
                ..Login::default()
            },
            secret: match &facts.secret {
                Password::None => Secret::None,
                Password::Clear(password) => Secret::Clear(password.clone()),
                Password::NativeStage1(hash) => Secret::NativeStage1(*hash),
            },
            nonce: facts.nonce,
            vouch: Vec::new(),
        };
        let local = std::mem::take(&mut facts.local);
        let core = self.clone();
        let session = Session::new(core, conn, entered, user, entry, local, seats);
        let mut session = Box::new(session);
        session.is_as_it_was(facts);
        self.tally.up(Counter::SessionsSettled);
        let core = self.clone();
        let place = self.loads_here();
        self.rt.spawn(async move {
            let _until_it_leaves = place;
            live(core, Comer::Session(session)).await;
        });
        Ok(())
    }
}
