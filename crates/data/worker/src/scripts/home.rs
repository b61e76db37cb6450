//! Scripts that share `proxy.global` over all sessions: their hooks run on one core, their home, and
//! sessions of other cores are guests there. What is asked and answered is sent from core to core.

use crate::core::Core;
use crate::core::guests::{Claim, Errand, Facts, Guest, Key, OwnPools, Owner, Visitor};
use crate::core::roster::Entry;
use crate::scripts::host::View;
use config::{Script, ScriptApi, Scripts};
use rt::mailbox;
use script::{
    AtLogin, Chosen, Code, Decision, Failed, Greeted, Item, Level, Outcome, Response, Scripted,
    Verdict, Wishes,
};
use sql::Lexing;
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::sync::Arc;

/// Where the hooks of a script run, for one session.
pub(crate) enum Runs {
    Here(Scripted, Rc<Facts>),
    There(Remote),
}

/// A script that runs on another core.
pub(crate) struct Remote {
    core: Rc<Core>,
    home: usize,
    key: Key,
    schema: RefCell<Rc<str>>,
    lexing: Cell<Lexing>,
    own_pools: RefCell<Option<Rc<OwnPools>>>,
    wishes: RefCell<Wishes>,
}

/// Runs the main chunk of a script for a session. Without an entry it is not in yet.
pub(crate) async fn meet(
    core: &Rc<Core>,
    scripts: &Arc<Scripts>,
    script: &Arc<Script>,
    visitor: Visitor,
    entry: Option<Rc<Entry>>,
) -> Result<Runs, Failed> {
    let home = home_of(core, script);
    if home == core.index as usize {
        let facts = Rc::new(Facts::new(core.clone(), &visitor, entry));
        let runs = begin(&facts, scripts, script).await?;
        return Ok(Runs::Here(runs, facts));
    }
    let guests = &core.scripting.guests;
    guests.last.set(guests.last.get() + 1);
    let remote = Remote {
        core: core.clone(),
        home,
        key: (core.index, guests.last.get()),
        schema: RefCell::new((&*visitor.schema).into()),
        lexing: Cell::default(),
        own_pools: RefCell::default(),
        wishes: RefCell::default(),
    };
    let (tell, told) = mailbox::channel(1);
    let (key, scripts, script) = (remote.key, scripts.clone(), script.clone());
    remote.send(move |home| {
        let home = home.clone();
        home.clone().rt.spawn(async move {
            let facts = Rc::new(Facts::new(home.clone(), &visitor, None));
            let met = begin(&facts, &scripts, &script).await.map(|runs| {
                let guest = Rc::new(Guest { runs, facts });
                home.scripting.guests.all.borrow_mut().insert(key, guest);
            });
            let _session_has_gone = tell.try_send(met);
        });
    })?;
    told.recv().await.unwrap_or_else(|| Err(gone()))?;
    Ok(Runs::There(remote))
}

async fn begin(
    facts: &Rc<Facts>,
    scripts: &Arc<Scripts>,
    script: &Arc<Script>,
) -> Result<Scripted, Failed> {
    let level = match script.api {
        ScriptApi::Auto => Level::of(&script.text),
        ScriptApi::V06 => Level::V06,
        ScriptApi::V08 => Level::V08,
    };
    let vm = facts.core.scripting.vm(scripts, script)?;
    let code = Code {
        chunk: &script.chunk,
        text: &script.text,
        modules: &script.modules,
        has_folders: !script.folders.is_empty(),
    };
    let view = Rc::new(View::new(facts.clone(), script.clone()));
    Scripted::begin(&vm, &script.globals, code, level, view, script.hook_ms_max).await
}

/// The core on which the hooks of a script run: that of the session, unless sessions of several
/// cores share something.
fn home_of(core: &Core, script: &Script) -> usize {
    if !script.shares_globals || core.cores < 2 {
        return core.index as usize;
    }
    home_by_name(core, script)
}

/// The core that a script has as its home, if it needs one.
pub(crate) fn home_by_name(core: &Core, script: &Script) -> usize {
    let mut hash = DefaultHasher::new();
    script.globals.hash(&mut hash);
    (hash.finish() % u64::from(core.cores)) as usize
}

fn gone() -> Failed {
    Failed("(script) the core on which it runs has lost it".into())
}

impl Remote {
    fn send(&self, errand: impl FnOnce(&Rc<Core>) + Send + 'static) -> Result<(), Failed> {
        let busy = || {
            let home = self.home;
            Failed(format!(
                "(script) core {home}, on which it runs, has too much to do"
            ))
        };
        let peer = self.core.peers.get(self.home).and_then(Option::as_ref);
        let peer = peer.ok_or_else(busy)?;
        peer.send_errand(Errand(Box::new(errand)))
            .map_err(|()| busy())
    }

    /// Has the script asked on its core. Nobody asks it anything else until it has answered.
    async fn ask<T: Send + 'static>(
        &self,
        job: impl AsyncFnOnce(&Guest) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let (tell, told) = mailbox::channel(1);
        let (key, schema) = (self.key, self.schema.borrow().to_string());
        let lexing = self.lexing.get();
        let own_pools = self.own_pools.borrow().as_deref().cloned();
        self.send(move |home| {
            let guest = home.scripting.guests.all.borrow().get(&key).cloned();
            // Without one the session hears that from `tell`, which is dropped.
            if let Some(guest) = guest {
                guest.facts.schema.replace((&*schema).into());
                guest.facts.lexing.set(lexing);
                guest.facts.own_pools.replace(own_pools.map(Rc::new));
                home.rt.spawn(async move {
                    let done = job(&guest).await;
                    let _session_has_gone = tell.try_send((done, guest.runs.wishes()));
                });
            }
        })?;
        let (done, wishes) = told.recv().await.ok_or_else(gone)?;
        self.wishes.replace(wishes);
        done
    }
}

impl Drop for Remote {
    /// The session has ended.
    fn drop(&mut self) {
        let key = self.key;
        // A core that is too busy for that keeps what was its guest's until it ends.
        let _kept = self.send(move |home| {
            let guest = home.scripting.guests.all.borrow_mut().remove(&key);
            if let Some(Err(failed)) = guest.map(|guest| guest.runs.disconnect_client()) {
                home.tally.up(bridge::Counter::ScriptErrors);
                home.note_seldom(&format!("script, a session that has ended: {failed}"));
            }
        });
    }
}

impl Runs {
    /// The session is in this schema, its texts are read so, and these connections are at hand.
    pub(crate) fn stands_in(&self, schema: &Rc<str>, lexing: Lexing, own: Option<Rc<OwnPools>>) {
        let (of, read, pools) = match self {
            Self::Here(_, facts) => (&facts.schema, &facts.lexing, &facts.own_pools),
            Self::There(remote) => (&remote.schema, &remote.lexing, &remote.own_pools),
        };
        of.replace(schema.clone());
        read.set(lexing);
        pools.replace(own);
    }

    /// The script, where it runs on the session's core.
    pub(crate) fn here(&self) -> Option<&Scripted> {
        match self {
            Self::Here(runs, _) => Some(runs),
            Self::There(_) => None,
        }
    }

    /// Asks for a server before the client is greeted.
    pub(crate) async fn connect_server(&self) -> Result<(Chosen, Option<Response>), Failed> {
        match self {
            Self::Here(runs, _) => runs.connect_server().await,
            Self::There(remote) => {
                let job = async |guest: &Guest| guest.runs.connect_server().await;
                remote.ask(job).await
            }
        }
    }

    /// Shows the greeting of a server.
    pub(crate) async fn read_handshake(
        &self,
        greeted: &Greeted,
    ) -> Result<Option<Response>, Failed> {
        match self {
            Self::Here(runs, _) => runs.read_handshake(greeted).await,
            Self::There(remote) => {
                let greeted = greeted.clone();
                let job = async move |guest: &Guest| guest.runs.read_handshake(&greeted).await;
                remote.ask(job).await
            }
        }
    }

    /// Shows the login of the session, which is this owner's, and its answer; returns what is said
    /// against it.
    pub(crate) async fn has_logged_in(
        &self,
        owner: &Owner,
        entry: &Rc<Entry>,
        welcome: &[u8],
    ) -> Result<Option<Response>, Failed> {
        match self {
            Self::Here(runs, facts) => {
                facts.belongs_to(owner);
                facts.entry.replace(Some(entry.clone()));
                runs.has_logged_in(welcome).await
            }
            Self::There(remote) => {
                let (owner, welcome) = (owner.clone(), welcome.to_vec());
                let job = async move |guest: &Guest| {
                    guest.facts.belongs_to(&owner);
                    guest.runs.has_logged_in(&welcome).await
                };
                remote.ask(job).await
            }
        }
    }

    /// The session is this owner's by now, and the script has judged its login.
    pub(crate) async fn is_in(&self, owner: &Owner, entry: &Rc<Entry>) -> Result<(), Failed> {
        match self {
            Self::Here(_, facts) => {
                facts.belongs_to(owner);
                facts.entry.replace(Some(entry.clone()));
                Ok(())
            }
            Self::There(remote) => {
                let owner = owner.clone();
                let job = async move |guest: &Guest| {
                    guest.facts.belongs_to(&owner);
                    Ok(())
                };
                remote.ask(job).await
            }
        }
    }

    /// Shows what a client says at its login.
    pub(crate) async fn read_auth(&self, claim: &Claim) -> Result<AtLogin, Failed> {
        match self {
            Self::Here(runs, facts) => {
                facts.claims(claim);
                runs.read_auth().await
            }
            Self::There(remote) => {
                let claim = claim.clone();
                remote.schema.replace((&*claim.schema).into());
                let job = async move |guest: &Guest| {
                    guest.facts.claims(&claim);
                    guest.runs.read_auth().await
                };
                remote.ask(job).await
            }
        }
    }

    /// Shows the answer of a server to a login.
    pub(crate) async fn read_auth_result(&self, packet: &[u8]) -> Result<Option<Response>, Failed> {
        match self {
            Self::Here(runs, _) => runs.read_auth_result(packet).await,
            Self::There(remote) => {
                let packet = packet.to_vec();
                let job = async move |guest: &Guest| guest.runs.read_auth_result(&packet).await;
                remote.ask(job).await
            }
        }
    }

    pub(crate) async fn read_query(&self, packet: &[u8]) -> Result<Decision, Failed> {
        match self {
            Self::Here(runs, _) => runs.read_query(packet).await,
            Self::There(remote) => {
                let packet = packet.to_vec();
                let job = async move |guest: &Guest| guest.runs.read_query(&packet).await;
                remote.ask(job).await
            }
        }
    }

    pub(crate) async fn next(&self) -> Result<Option<Item>, Failed> {
        match self {
            Self::Here(runs, _) => runs.next(),
            Self::There(remote) => remote.ask(async |guest: &Guest| guest.runs.next()).await,
        }
    }

    pub(crate) async fn read_query_result(
        &self,
        item: &Item,
        outcome: Outcome,
    ) -> Result<Verdict, Failed> {
        match self {
            Self::Here(runs, _) => runs.read_query_result(item, outcome).await,
            Self::There(remote) => {
                let item = item.clone();
                let job =
                    async move |guest: &Guest| guest.runs.read_query_result(&item, outcome).await;
                remote.ask(job).await
            }
        }
    }

    /// Drops what is still queued.
    pub(crate) fn forget(&self) {
        match self {
            Self::Here(runs, _) => runs.forget(),
            Self::There(remote) => {
                let key = remote.key;
                // What is queued is dropped before the next command anyway.
                let _kept = remote.send(move |home| {
                    if let Some(guest) = home.scripting.guests.all.borrow().get(&key) {
                        guest.runs.forget();
                    }
                });
            }
        }
    }

    /// Tells the script that its client has gone. One elsewhere is told when this is dropped.
    pub(crate) fn disconnect_client(&self) -> Result<(), Failed> {
        match self {
            Self::Here(runs, _) => runs.disconnect_client(),
            Self::There(_) => Ok(()),
        }
    }

    /// Wishes of the script about the session.
    pub(crate) fn wishes(&self) -> Wishes {
        match self {
            Self::Here(runs, _) => runs.wishes(),
            Self::There(remote) => remote.wishes.borrow().clone(),
        }
    }
}
