//! Accepts clients, within limits, and starts a session for each.

use crate::{Host, Refused, session};
use rt::{Listener, Rt, Socket};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use wire::{errors, ok, packet};

/// Limits of what a client may ask of a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Clients at once.
    pub connections_max: usize,
    /// Bytes of one command, and of all that is kept of a client's prepared statements.
    pub packet_bytes_max: usize,
    /// Milliseconds that a login may take.
    pub login_ms_max: u64,
    /// Milliseconds that a client may take to read a piece of its answer; then it is gone.
    pub read_ms_max: u64,
    /// Prepared statements of one client.
    pub statements_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            packet_bytes_max: 64 << 20,
            login_ms_max: 10_000,
            read_ms_max: 60_000,
            statements_max: 1024,
        }
    }
}

/// A door with somebody behind it.
pub struct Door<H: Host> {
    pub(crate) host: Rc<H>,
    pub(crate) limits: Limits,
    inside: Cell<usize>,
    last_id: Cell<u32>,
    /// From one number of a client to the next.
    step: u32,
}

impl<H: Host> Door<H> {
    /// A door that leads to `host`.
    pub fn new(host: Rc<H>, limits: Limits) -> Rc<Self> {
        Self::numbered(host, limits, 0, 1)
    }

    /// One of several doors, whose clients have no number twice: this is the `nth` of so many.
    pub fn numbered(host: Rc<H>, limits: Limits, nth: u32, of: u32) -> Rc<Self> {
        Rc::new(Self {
            host,
            limits,
            inside: Cell::new(0),
            last_id: Cell::new(nth),
            step: of,
        })
    }

    /// How many clients are inside.
    pub fn inside(&self) -> usize {
        self.inside.get()
    }

    /// Lets clients in. Drop it to let nobody else in; who is inside stays.
    pub async fn serve(self: Rc<Self>, rt: Rt, listener: Listener) {
        loop {
            match listener.accept().await {
                Ok(socket) => self.clone().admit(&rt, socket),
                // Out of files, most likely: those who wait will be served when some are closed.
                Err(_) => rt.sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn admit(self: Rc<Self>, rt: &Rt, socket: Socket) {
        let rt2 = rt.clone();
        if self.inside.get() >= self.limits.connections_max {
            rt.spawn(async move {
                let refused = Refused::new(errors::TOO_MANY_CONNECTIONS, "Too many connections");
                let err = ok::Err {
                    code: refused.code,
                    state: refused.state,
                    message: refused.message.as_bytes(),
                };
                let mut out = Vec::new();
                packet::append_with(&mut out, &mut 0, |out| err.write(out));
                let _ = rt2.timeout(Duration::from_secs(1), socket.send(out)).await;
            });
            return;
        }
        let next = self.last_id.get().checked_add(self.step);
        self.last_id
            .set(next.unwrap_or_else(|| self.last_id.get() % self.step + self.step));
        let id = self.last_id.get();
        let inside = Inside::of(self);
        rt.spawn(async move {
            // A client that goes, or breaks the protocol, ends its own session and nobody else's.
            let _ = session::live(&inside.0, socket, id, &rt2).await;
        });
    }
}

/// Counts a client for as long as it is inside, however its session ends.
struct Inside<H: Host>(Rc<Door<H>>);

impl<H: Host> Inside<H> {
    fn of(door: Rc<Door<H>>) -> Self {
        door.inside.set(door.inside.get() + 1);
        Self(door)
    }
}

impl<H: Host> Drop for Inside<H> {
    fn drop(&mut self) {
        self.0.inside.set(self.0.inside.get() - 1);
    }
}
