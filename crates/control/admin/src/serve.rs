//! How the admin port is served: its tasks, its door and its sessions.

use crate::access;
use crate::aside::Aside;
use crate::desk;
use crate::hooks::Hooks;
use crate::open::Admin;
use crate::session::Session;
use crate::shared::Shared;
use bridge::ToCore;
use door::{Door, Entry, Host, Limits, Refused, Who};
use net::tls::Acceptor;
use rt::mailbox::Sender;
use rt::{Address, Listener, Rt};
use std::rc::Rc;

impl Admin {
    /// Serves the admin port until it is dropped: run it on an executor thread of its own.
    pub async fn serve(
        mut self,
        rt: Rt,
        listeners: Vec<Listener>,
        cores: Vec<Sender<ToCore>>,
        hooks: Hooks,
    ) {
        let (letters, wanted) = (self.letters.take(), self.wanted.take());
        let mut shared = Shared::new(self, rt.clone(), cores, hooks);
        match Aside::thread() {
            Ok(aside) => shared.aside = aside,
            Err(error) => (shared.hooks.log)(&format!(
                "long work on the admin port holds up its operators: no thread for it: {error}"
            )),
        }
        shared.open_at = listeners.iter().map(Listener::local).collect();
        let shared = Rc::new(shared);
        rt.spawn(shared.clone().housekeeping());
        rt.spawn(shared.clone().keep_company());
        rt.spawn(shared.clone().keep_fleet());
        rt.spawn(shared.clone().keep_shares());
        rt.spawn(shared.clone().tell_health());
        rt.spawn(shared.clone().keep_moves());
        rt.spawn(shared.clone().look_at_scripts());
        if let Some(letters) = letters {
            rt.spawn(desk::serve(shared.clone(), letters));
        }
        if let Some(wanted) = wanted {
            rt.spawn(shared.clone().do_wanted(wanted));
        }
        let door = Door::new(Rc::new(Port(shared)), Limits::default());
        for listener in listeners {
            rt.spawn(door.clone().serve(rt.clone(), listener));
        }
        std::future::pending::<()>().await;
    }
}

/// The port as its door sees it.
struct Port(Rc<Shared>);

impl Host for Port {
    type Session = Session;

    fn server_version(&self) -> String {
        self.0
            .snapshot
            .borrow()
            .variables
            .mysql_server_version
            .to_string()
    }

    fn acceptor(&self) -> Option<Acceptor> {
        let wanted = self.0.snapshot.borrow().variables.mysql_have_ssl;
        if wanted {
            self.0.acceptor.borrow().clone()
        } else {
            None
        }
    }

    fn prefix(&self) -> &'static str {
        "ProxySQL Error: "
    }

    fn entry(&self, user: &str, peer: &Address) -> Entry {
        access::entry(&self.0.snapshot.borrow().variables, user, peer)
    }

    fn session(self: &Rc<Self>, who: Who) -> Result<Session, Refused> {
        let view = access::view(&self.0.snapshot.borrow().variables, &who.user);
        Ok(Session::new(self.0.clone(), who, view))
    }
}
