//! A connection for one client alone, over which bytes go as they come.

use crate::connection::backend::{Backend, Idle, refusal};
use crate::connection::place::bump;
use crate::failure::BackendFailed;
use crate::hostgroup::chooser::working;
use crate::pool::pools::Pools;
use crate::session::want::{Like, Want};
use bridge::Counter;
use wire::caps;
use wire::response::Expect;

impl Pools {
    /// A new connection that is [`like`](Want::like) the client's; none if the server has not all
    /// that the client was offered. It counts among the server's `max_connections`, and waits in
    /// line for its room, as any other. It is never shared: released, it is closed.
    ///
    /// # Errors
    /// As [`Pools::acquire`].
    pub async fn open_like(&self, want: &Want<'_>) -> Result<Option<Box<Backend>>, BackendFailed> {
        debug_assert!(want.new_connection);
        let mut backend = self.acquire(want).await?;
        // Nobody sees the statements that go over it.
        backend.lands();
        let differs = |like: &Like<'_>| (like.caps ^ backend.hello.caps) & caps::SHAPE != 0;
        backend.idle = Idle::Doubtful;
        if want.like.as_ref().is_some_and(differs) {
            let server = backend.place().server();
            self.note(&format!(
                "{}:{} cannot do all that clients are offered (capabilities {:#x}): user '{}' is served statement by statement there, without fast_forward",
                server.hostname,
                server.port,
                backend.hello.caps & caps::SHAPE,
                want.user
            ));
            self.release(backend);
            return Ok(None);
        }
        Ok(Some(backend))
    }

    /// Whether a new connection to the hostgroup would have to wait for one that is in use.
    #[must_use]
    pub fn is_full(&self, hostgroup: u32) -> bool {
        let (now, group) = (self.rt.now(), self.group(hostgroup));
        let places = group.places.borrow();
        let mut open = working(&places, now).peekable();
        open.peek().is_some() && open.all(|place| place.is_full() && place.idle.borrow().is_empty())
    }
}

impl Backend {
    /// As a server leaves it that refuses to let a client become somebody else: what was set is
    /// gone, the character set is the server's.
    ///
    /// # Errors
    /// It refuses that, or the connection broke.
    pub async fn renew(&mut self) -> Result<(), BackendFailed> {
        // Its schema is the client's affair, and COM_CHANGE_USER would have to name it.
        self.reset_by(false).await?;
        let mut payload = Vec::new();
        wire::command::write_query(&mut payload, b"SET NAMES DEFAULT", self.hello.caps);
        let response = self.command(&payload, Expect::Query).await?;
        refusal(&response)
    }

    /// So many bytes of the client's were passed on, and among them so many commands began.
    pub fn carried_up(&mut self, bytes: usize, commands: u64) {
        self.lasting.queries += commands;
        bump(&self.place.numbers.queries, commands);
        bump(&self.place.numbers.sent, bytes as u64);
        self.tally
            .add(Counter::QueriesFrontendsBytesRecv, bytes as u64);
        self.tally
            .add(Counter::QueriesBackendsBytesSent, bytes as u64);
    }

    /// So many bytes of the server's were passed on.
    pub fn carried_down(&self, bytes: usize) {
        bump(&self.place.numbers.received, bytes as u64);
        self.tally
            .add(Counter::QueriesBackendsBytesRecv, bytes as u64);
        self.tally
            .add(Counter::QueriesFrontendsBytesSent, bytes as u64);
    }
}
