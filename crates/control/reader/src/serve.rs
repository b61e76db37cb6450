//! Clients of a reader: proxies, which say nothing and are told what becomes visible.

use crate::follow::{Server, Told, follow};
use gtid::{Set, Teller};
use rt::local::Bell;
use rt::{Address, ListenOptions, Rt, Socket};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// So many clients are served.
const CLIENTS_MAX: usize = 10_000;
/// A server that cannot be followed is tried again after this.
const RETRY: Duration = Duration::from_secs(1);
/// An attempt to accept that failed is made again after this.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How clients are served.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    pub(crate) listen: Address,
    /// Time for which what has become visible waits.
    pub(crate) every: Duration,
    /// Clients understand intervals.
    pub(crate) intervals: bool,
    /// Bytes that may wait for a client, besides the set that it begins with.
    pub(crate) unsent_max: usize,
}

struct Client {
    socket: Socket,
    teller: RefCell<Option<Teller>>,
    /// Bytes that may wait for it.
    unsent_max: Cell<usize>,
    /// Rings when it is sent away.
    over: Bell,
}

struct Reader {
    rt: Rt,
    manner: Manner,
    /// All that is visible; none while the server is not followed.
    known: RefCell<Option<Set>>,
    /// GTIDs that are visible and were not told: with `every` only.
    owed: RefCell<Set>,
    clients: RefCell<BTreeMap<u64, Rc<Client>>>,
    number: Cell<u64>,
    note: Box<dyn Fn(&str)>,
}

/// Listens, and follows the server for as long as the process lives.
pub(crate) async fn serve(
    rt: Rt,
    server: Server,
    manner: Manner,
    note: impl Fn(&str) + 'static,
) -> Result<(), String> {
    let listener = rt.listen(&manner.listen, ListenOptions::default());
    let listener =
        listener.map_err(|error| format!("cannot listen on {}: {error}", manner.listen))?;
    let reader = Rc::new(Reader {
        rt: rt.clone(),
        manner,
        known: RefCell::default(),
        owed: RefCell::default(),
        clients: RefCell::default(),
        number: Cell::default(),
        note: Box::new(note),
    });
    (reader.note)(&format!(
        "reader: follows {}:{} for who connects to {}",
        server.host,
        server.port,
        listener.local()
    ));
    rt.spawn(reader.clone().follow(server));
    if !reader.manner.every.is_zero() {
        rt.spawn(reader.clone().tell_in_turns());
    }
    loop {
        match listener.accept().await {
            Ok(socket) => reader.enter(socket),
            Err(error) => {
                (reader.note)(&format!("reader: cannot accept: {error}"));
                rt.sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

impl Reader {
    async fn follow(self: Rc<Self>, server: Server) {
        let said = RefCell::new(String::new());
        loop {
            let why = follow(&self.rt, &server, |told| {
                if matches!(told, Told::Begins(_)) && !said.borrow().is_empty() {
                    (self.note)("reader: the server is followed again");
                    said.borrow_mut().clear();
                }
                self.learn(told);
            })
            .await;
            self.forget();
            if *said.borrow() != why {
                let (host, port) = (&server.host, server.port);
                (self.note)(&format!("reader: {host}:{port} is not followed: {why}"));
                said.replace(why);
            }
            self.rt.sleep(RETRY).await;
        }
    }

    fn learn(&self, told: Told) {
        match told {
            Told::Begins(executed) => {
                self.known.replace(Some(executed));
                self.begin_all();
            }
            Told::Visible { gtids, .. } => {
                if let Some(known) = &mut *self.known.borrow_mut() {
                    known.union(&gtids);
                }
                self.begin_all();
                match self.manner.every.is_zero() {
                    true => self.tell(&gtids),
                    false => self.owed.borrow_mut().union(&gtids),
                }
            }
        }
    }

    /// Sends all clients away: what they know may be of a server that is not there any more.
    fn forget(&self) {
        self.known.take();
        self.owed.take();
        let clients = self.clients.take();
        clients.values().for_each(|client| client.over.ring());
    }

    async fn tell_in_turns(self: Rc<Self>) {
        loop {
            self.rt.sleep(self.manner.every).await;
            let owed = self.owed.take();
            if !owed.is_empty() {
                self.tell(&owed);
            }
        }
    }

    /// Lets a client in. Nothing of it is read: whoever says something, or leaves, is gone.
    fn enter(self: &Rc<Self>, socket: Socket) {
        let is_followed = self.known.borrow().is_some();
        if !is_followed || self.clients.borrow().len() >= CLIENTS_MAX {
            return;
        }
        let number = self.number.get();
        self.number.set(number + 1);
        let client = Rc::new(Client {
            socket,
            teller: RefCell::default(),
            unsent_max: Cell::new(self.manner.unsent_max),
            over: Bell::new(),
        });
        self.clients.borrow_mut().insert(number, client.clone());
        self.begin(&client);
        let reader = self.clone();
        self.rt.spawn(async move {
            let _said_or_gone = rt::select(client.socket.recv(), client.over.heard()).await;
            reader.clients.borrow_mut().remove(&number);
        });
    }

    fn begin_all(&self) {
        for client in self.clients.borrow().values() {
            self.begin(client);
        }
    }

    /// Tells a client all that is visible. As long as that is nothing, it waits.
    fn begin(&self, client: &Client) {
        let known = self.known.borrow();
        let Some(known) = known.as_ref().filter(|known| !known.is_empty()) else {
            return;
        };
        let mut teller = client.teller.borrow_mut();
        if teller.is_none() {
            let (own, line) = Teller::begin(known, self.manner.intervals);
            client.unsent_max.set(self.manner.unsent_max + line.len());
            // One that is gone is noticed by who reads.
            let _gone = client.socket.queue(line.into_bytes());
            teller.replace(own);
        }
    }

    fn tell(&self, more: &Set) {
        self.clients.borrow_mut().retain(|_, client| {
            let mut teller = client.teller.borrow_mut();
            let Some(teller) = teller.as_mut() else {
                return true;
            };
            let lines = teller.more(more);
            let stays = client.socket.queue(lines.into_bytes()).is_ok()
                && client.socket.unsent() <= client.unsent_max.get();
            if !stays {
                client.over.ring();
            }
            stays
        });
    }
}
