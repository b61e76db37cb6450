//! The network of the simulator: ends of connections, what is on its way between them, and a
//! calendar of events.
//!
//! Every loop here goes over a `BTreeMap` or a queue, never over a hash map: the order must come
//! from the seed alone.

use super::faults::Faults;
use crate::address::Address;
use crate::chunk::{CHUNK_LEN, Chunk, Pool};
use crate::conn::{Conn, Finish, Listening, NOWHERE, errno};
use crate::listen::ListenOptions;
use crate::random::Random;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;

/// So many bytes may be on their way in one direction: the kernels' buffers.
const WINDOW: usize = 128 * 1024;

const CONNECT_LOST_NS: u64 = 127_000_000_000;
const SYN_AGAIN_NS: u64 = 1_000_000_000;
const PIECE_LATER_NS: u64 = 200_000;
/// How often a slow processor ends a turn before a task.
const DAWDLES: f64 = 0.25;

pub(super) struct World {
    pub(super) faults: Faults,
    random: Random,
    now: Rc<Cell<u64>>,
    pool: Rc<Pool>,
    calendar: BTreeMap<(u64, u64), Event>, // by time, then in the order of their making
    made: u64,
    ends: BTreeMap<u32, End>,
    listeners: BTreeMap<u32, Listens>,
    next_place: u32,
    next_port: u16,
    crashed: BTreeSet<Address>,
    frozen: BTreeSet<Address>,
}

/// One end of a connection.
struct End {
    conn: Rc<Conn>,
    peer: u32, // NOWHERE until it is connected
    local: Address,
    remote: Address,
    coming: VecDeque<(u64, Item)>, // with the time of its arrival, which never goes back
    coming_bytes: usize,           // the sum of `coming`, <= WINDOW
    finished: bool,                // its own end is on the way to the peer
}

enum Item {
    Bytes(Chunk),
    Fin,
}

struct Listens {
    listening: Rc<Listening>,
    queue: VecDeque<Rc<Conn>>,
    backlog: usize,
}

enum Event {
    /// A connect reaches its host.
    Syn { client: u32 },
    /// A connect has its answer.
    Connected { client: u32, result: i32 },
    /// The first of what is coming is there.
    Arrive { end: u32 },
    /// There may be room for more on the way.
    Pump { end: u32 },
    /// The connection of this end is broken.
    Reset { end: u32 },
}

impl World {
    pub(super) fn new(random: Random, faults: Faults, now: Rc<Cell<u64>>, pool: Rc<Pool>) -> Self {
        // Of another world.
        drop(crate::handed::left());
        Self {
            faults,
            random,
            now,
            pool,
            calendar: BTreeMap::new(),
            made: 0,
            ends: BTreeMap::new(),
            listeners: BTreeMap::new(),
            next_place: 0,
            next_port: 20_000,
            crashed: BTreeSet::new(),
            frozen: BTreeSet::new(),
        }
    }

    // Time.

    fn at(&mut self, time: u64, event: Event) {
        self.made += 1;
        self.calendar.insert((time, self.made), event);
    }

    fn soon(&mut self, event: Event) {
        self.at(self.now.get(), event);
    }

    pub(super) fn next_event(&self) -> Option<u64> {
        self.calendar.first_key_value().map(|((time, _), _)| *time)
    }

    /// Lets all events happen whose time has come. Did any?
    pub(super) fn happen(&mut self) -> bool {
        let mut any = false;
        for place in crate::handed::left() {
            if let Some(conn) = self.conn(place) {
                any = true;
                conn.state.borrow_mut().abandon();
                self.pump(place);
            }
        }
        while let Some(entry) = self.calendar.first_entry() {
            if entry.key().0 > self.now.get() {
                break;
            }
            any = true;
            match entry.remove() {
                Event::Syn { client } => self.syn(client),
                Event::Connected { client, result } => self.connected(client, result),
                Event::Arrive { end } => self.arrive(end),
                Event::Pump { end } => self.pump(end),
                Event::Reset { end } => self.reset(end),
            }
        }
        any
    }

    pub(super) fn shuffle(&mut self) -> Option<u64> {
        self.faults.shuffle.then(|| self.random.next())
    }

    /// How much longer this turn takes.
    pub(super) fn slowness(&mut self) -> u64 {
        let most = self.faults.slow.as_nanos() as u64;
        if most == 0 {
            0
        } else {
            self.random.below(most + 1)
        }
    }

    /// Does the turn end here, whoever is still ready?
    pub(super) fn dawdles(&mut self) -> bool {
        !self.faults.slow.is_zero() && self.random.chance(DAWDLES)
    }

    fn latency(&mut self) -> u64 {
        let min = self.faults.latency_min.as_nanos() as u64;
        let max = self.faults.latency_max.as_nanos() as u64;
        min + self.random.below(max.saturating_sub(min) + 1)
    }

    // Connecting.

    fn place(&mut self) -> u32 {
        // Never used twice, so that an event of the past finds nobody instead of somebody else.
        self.next_place += 1;
        self.next_place
    }

    fn port(&mut self) -> u16 {
        let taken = |port: u16, world: &Self| {
            world
                .listeners
                .values()
                .any(|l| l.listening.local.port() == port)
        };
        loop {
            self.next_port = self.next_port.checked_add(1).unwrap_or(20_000);
            if !taken(self.next_port, self) {
                return self.next_port;
            }
        }
    }

    fn enter(&mut self, local: Address, remote: Address, peer: u32) -> Rc<Conn> {
        let place = self.place();
        let conn = Rc::new(Conn::new(None, Some(remote.clone()), Some(local.clone())));
        conn.place.set(place);
        let end = End {
            conn: conn.clone(),
            peer,
            local,
            remote,
            coming: VecDeque::new(),
            coming_bytes: 0,
            finished: false,
        };
        self.ends.insert(place, end);
        conn
    }

    pub(super) fn connect(&mut self, to: &Address) -> Rc<Conn> {
        let local = match to {
            Address::Tcp(at) => {
                let ip = match at.ip() {
                    IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                    IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
                };
                Address::Tcp(SocketAddr::new(ip, self.port()))
            }
            Address::Unix(_) => Address::Unix(PathBuf::new()),
        };
        let conn = self.enter(local, to.clone(), NOWHERE);
        let client = conn.place.get();
        let (lost, refused) = (self.faults.lose_connect, self.faults.refuse);
        if self.random.chance(lost) {
            let later = self.now.get() + CONNECT_LOST_NS;
            self.at(
                later,
                Event::Connected {
                    client,
                    result: -libc::ETIMEDOUT,
                },
            );
        } else {
            let there = self.now.get() + self.latency();
            if self.random.chance(refused) {
                self.at(
                    there,
                    Event::Connected {
                        client,
                        result: -libc::ECONNREFUSED,
                    },
                );
            } else {
                self.at(there, Event::Syn { client });
            }
        }
        conn
    }

    fn syn(&mut self, client: u32) {
        let Some(end) = self.ends.get(&client) else {
            return;
        };
        let (to, from) = (end.remote.clone(), end.local.clone());
        if self.frozen.contains(&to) {
            let again = self.now.get() + SYN_AGAIN_NS;
            return self.at(again, Event::Syn { client });
        }
        let back = self.now.get() + self.latency();
        let candidates: Vec<u32> = if self.crashed.contains(&to) {
            Vec::new()
        } else {
            self.listeners
                .iter()
                .filter(|(_, l)| listens_at(&l.listening.local, &to))
                .map(|(place, _)| *place)
                .collect()
        };
        if candidates.is_empty() {
            return self.at(
                back,
                Event::Connected {
                    client,
                    result: -libc::ECONNREFUSED,
                },
            );
        }
        let choice = candidates[self.random.below(candidates.len() as u64) as usize];
        let listens = &self.listeners[&choice];
        if listens.queue.len() >= listens.backlog {
            let again = self.now.get() + SYN_AGAIN_NS;
            return self.at(again, Event::Syn { client });
        }
        let conn = self.enter(to, from, client);
        conn.state.borrow_mut().connected = Some(0);
        if let Some(end) = self.ends.get_mut(&client) {
            end.peer = conn.place.get();
        }
        if let Some(listens) = self.listeners.get_mut(&choice) {
            listens.queue.push_back(conn);
            listens.listening.state.borrow_mut().waker.fire();
        }
        self.at(back, Event::Connected { client, result: 0 });
    }

    fn connected(&mut self, client: u32, result: i32) {
        let Some(end) = self.ends.get(&client) else {
            return;
        };
        let mut state = end.conn.state.borrow_mut();
        if state.connected.is_some() {
            return; // a crash was faster
        }
        state.connected = Some(result);
        state.wake_writers();
    }

    pub(super) fn listen(&mut self, at: &Address, o: ListenOptions) -> io::Result<Rc<Listening>> {
        let local = match at {
            Address::Tcp(tcp) if tcp.port() == 0 => {
                Address::Tcp(SocketAddr::new(tcp.ip(), self.port()))
            }
            _ => at.clone(),
        };
        if !o.reuse_port && self.listeners.values().any(|l| l.listening.local == local) {
            return Err(errno(libc::EADDRINUSE));
        }
        let listening = Rc::new(Listening::new(None, local));
        let place = self.place();
        listening.place.set(place);
        let backlog = (o.backlog as usize).max(1);
        self.listeners.insert(
            place,
            Listens {
                listening: listening.clone(),
                queue: VecDeque::new(),
                backlog,
            },
        );
        Ok(listening)
    }

    /// The connection whose end is there.
    pub(super) fn conn(&self, place: u32) -> Option<Rc<Conn>> {
        self.ends.get(&place).map(|end| end.conn.clone())
    }

    pub(super) fn accept(&mut self, place: u32) -> Option<Rc<Conn>> {
        self.listeners.get_mut(&place)?.queue.pop_front()
    }

    pub(super) fn unlisten(&mut self, place: u32) {
        if let Some(listens) = self.listeners.remove(&place) {
            for conn in listens.queue {
                self.break_off(conn.place.get());
            }
        }
    }

    // Bytes.

    /// Moves what an end has to send onto the way, as far as there is room; and its end, if that is
    /// next.
    pub(super) fn pump(&mut self, place: u32) {
        let Some(end) = self.ends.get(&place) else {
            return;
        };
        let conn = end.conn.clone();
        let (peer, finished) = (end.peer, end.finished);
        let mut state = conn.state.borrow_mut();
        if state.connected != Some(0) {
            // Still connecting, or never connected.
            if state.dropped {
                drop(state);
                self.break_off(place);
            }
            return;
        }
        let (partial, reset) = (self.faults.partial, self.faults.reset);
        while let Some(first) = state.outbox.front_mut() {
            if finished || !self.ends.contains_key(&peer) {
                // Nobody is there to take it.
                drop(state);
                let back = self.now.get() + self.latency();
                return self.at(back, Event::Reset { end: place });
            }
            if self.random.chance(reset) {
                drop(state);
                return self.break_both(place);
            }
            let room = WINDOW - self.ends[&peer].coming_bytes;
            if room == 0 {
                return; // `arrive` calls again
            }
            let mut n = first.len().min(room);
            let some = self.random.chance(partial);
            if some {
                n = 1 + self.random.below(n as u64) as usize;
            }
            let piece = first.split_to(n);
            if first.is_empty() {
                state.outbox.pop_front();
            }
            state.sent(n);
            self.on_its_way(peer, Item::Bytes(piece));
            if some && !state.outbox.is_empty() {
                let later = self.now.get() + self.random.below(PIECE_LATER_NS);
                return self.at(later, Event::Pump { end: place });
            }
        }
        let over = state.dropped || state.finish == Finish::Asked;
        if over {
            state.finish = Finish::Done;
        }
        let dropped = state.dropped;
        drop(state);
        if over && !finished {
            if let Some(end) = self.ends.get_mut(&place) {
                end.finished = true;
            }
            self.on_its_way(peer, Item::Fin);
        }
        if dropped {
            conn.place.set(NOWHERE);
            let unread = self
                .ends
                .remove(&place)
                .is_some_and(|end| end.coming_bytes > 0);
            if unread {
                // Closing with bytes unread is a reset, behind what was sent.
                let sent = self
                    .ends
                    .get(&peer)
                    .and_then(|end| end.coming.back())
                    .map_or(0, |(time, _)| *time);
                let time = sent.max(self.now.get() + self.latency());
                self.at(time, Event::Reset { end: peer });
            }
        }
    }

    fn on_its_way(&mut self, to: u32, item: Item) {
        let mut time = self.now.get() + self.latency();
        let (stall, most) = (self.faults.stall, self.faults.stall_max.as_nanos() as u64);
        if self.random.chance(stall) {
            time += self.random.below(most + 1);
        }
        let Some(end) = self.ends.get_mut(&to) else {
            return;
        };
        // TCP keeps the order.
        let time = end.coming.back().map_or(time, |(last, _)| time.max(*last));
        if let Item::Bytes(bytes) = &item {
            end.coming_bytes += bytes.len();
        }
        end.coming.push_back((time, item));
        self.at(time, Event::Arrive { end: to });
    }

    fn arrive(&mut self, place: u32) {
        loop {
            let Some(end) = self.ends.get_mut(&place) else {
                return;
            };
            if self.frozen.contains(&end.local) || self.frozen.contains(&end.remote) {
                return; // `thaw` calls again
            }
            let Some((time, item)) = end.coming.front_mut() else {
                return;
            };
            if *time > self.now.get() {
                return; // it has an event of its own
            }
            let mut state = end.conn.state.borrow_mut();
            if state.recv_error != 0 {
                // After a reset nothing comes, or there would be a hole in what was read.
                end.coming.clear();
                end.coming_bytes = 0;
                return;
            }
            let Item::Bytes(bytes) = item else {
                state.ended(0);
                drop(state);
                end.coming.pop_front();
                continue;
            };
            if state.dropped {
                // A closed socket answers bytes with a reset.
                drop(state);
                return self.break_off(place);
            }
            if state.is_full() {
                return; // `made_room` calls again
            }
            let mut n = bytes.len().min(CHUNK_LEN);
            let cut = n > 1 && self.random.chance(self.faults.split);
            if cut {
                n = 1 + self.random.below(n as u64 - 1) as usize;
            }
            let piece = bytes.split_to(n);
            state.arrived(pooled(&self.pool, piece));
            drop(state);
            end.coming_bytes -= n;
            let peer = end.peer;
            if bytes.is_empty() {
                end.coming.pop_front();
            } else if cut {
                let later = self.now.get() + 1 + self.random.below(PIECE_LATER_NS);
                *time = later;
                // All that comes behind it comes behind it.
                for (behind, _) in end.coming.iter_mut() {
                    *behind = later.max(*behind);
                }
                let again = end
                    .coming
                    .iter()
                    .map(|(time, _)| *time)
                    .collect::<BTreeSet<_>>();
                for time in again {
                    self.at(time, Event::Arrive { end: place });
                }
            }
            self.soon(Event::Pump { end: peer });
            if cut {
                return;
            }
        }
    }

    pub(super) fn made_room(&mut self, place: u32) {
        if self.ends.get(&place).is_some_and(|end| {
            end.coming
                .front()
                .is_some_and(|(time, _)| *time <= self.now.get())
        }) {
            self.soon(Event::Arrive { end: place });
        }
    }

    // Endings.

    /// This end is broken now.
    fn reset(&mut self, place: u32) {
        let Some(end) = self.ends.get_mut(&place) else {
            return;
        };
        let mut state = end.conn.state.borrow_mut();
        // What has arrived can still be read; what is on its way is lost.
        for (time, item) in std::mem::take(&mut end.coming) {
            match item {
                _ if time > self.now.get() => break,
                Item::Bytes(bytes) => state.arrived(Chunk::from(&bytes[..])),
                Item::Fin => state.ended(0),
            }
        }
        end.coming_bytes = 0;
        if state.connected.is_none() {
            state.connected = Some(-libc::ECONNREFUSED);
        }
        state.send_failed(libc::ECONNRESET);
        if !state.eof {
            state.ended(libc::ECONNRESET);
        }
        let dropped = state.dropped;
        drop(state);
        if dropped {
            end.conn.place.set(NOWHERE);
            self.ends.remove(&place);
        }
    }

    /// This end is gone at once, and its peer hears of it.
    fn break_off(&mut self, place: u32) {
        let Some(end) = self.ends.get(&place) else {
            return;
        };
        let (peer, conn) = (end.peer, end.conn.clone());
        self.reset(place);
        if self.ends.remove(&place).is_some() {
            conn.place.set(NOWHERE);
        }
        let there = self.now.get() + self.latency();
        self.at(there, Event::Reset { end: peer });
    }

    /// The network breaks a connection: both ends hear of it, each in its time.
    fn break_both(&mut self, place: u32) {
        let peer = self.ends.get(&place).map_or(NOWHERE, |end| end.peer);
        for end in [place, peer] {
            let time = self.now.get() + self.latency();
            self.at(time, Event::Reset { end });
        }
    }

    pub(super) fn abort(&mut self, place: u32) {
        self.break_off(place);
    }

    pub(super) fn crash(&mut self, at: &Address) {
        self.crashed.insert(at.clone());
        for listens in self
            .listeners
            .values_mut()
            .filter(|l| l.listening.local == *at)
        {
            for conn in listens.queue.drain(..) {
                conn.state.borrow_mut().dropped = true; // nobody will accept it
            }
        }
        let touched: Vec<(u32, bool)> = self
            .ends
            .iter()
            .filter(|(_, end)| end.local == *at || end.remote == *at)
            .map(|(place, end)| (*place, end.local == *at))
            .collect();
        for (place, theirs) in touched {
            if theirs {
                self.reset(place);
            } else {
                let time = self.now.get() + self.latency();
                self.at(time, Event::Reset { end: place });
            }
        }
    }

    pub(super) fn restore(&mut self, at: &Address) {
        self.crashed.remove(at);
    }

    pub(super) fn freeze(&mut self, at: &Address) {
        self.frozen.insert(at.clone());
    }

    pub(super) fn thaw(&mut self, at: &Address) {
        self.frozen.remove(at);
        let waiting: Vec<u32> = self.ends.keys().copied().collect();
        for end in waiting {
            self.soon(Event::Arrive { end });
        }
    }

    pub(super) fn open(&self) -> usize {
        self.ends.len()
    }

    /// The run is over. What still has handles sees errors.
    pub(super) fn close(&mut self) {
        self.calendar.clear();
        for end in std::mem::take(&mut self.ends).into_values() {
            end.conn.place.set(NOWHERE);
            let mut state = end.conn.state.borrow_mut();
            state.send_failed(libc::ESHUTDOWN);
            state.ended(libc::ESHUTDOWN);
        }
        for listens in std::mem::take(&mut self.listeners).into_values() {
            listens.listening.place.set(NOWHERE);
        }
    }
}

/// Does a listener at `local` take connections to `to`?
fn listens_at(local: &Address, to: &Address) -> bool {
    match (local, to) {
        (Address::Tcp(local), Address::Tcp(to)) if local.ip().is_unspecified() => {
            local.port() == to.port() && local.is_ipv4() == to.is_ipv4()
        }
        _ => local == to,
    }
}

/// Puts bytes into a buffer of the pool, as a real receive does, while there are enough.
fn pooled(pool: &Rc<Pool>, piece: Chunk) -> Chunk {
    if !pool.is_low()
        && let Some(mut buffer) = pool.take()
    {
        buffer.bytes_mut()[..piece.len()].copy_from_slice(&piece);
        return Chunk::pooled(buffer, piece.len());
    }
    Chunk::from(&piece[..])
}
