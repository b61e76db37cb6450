//! Words of ours to the client: OK, a refusal, rows, and their flags.

use crate::command::prepared::ClientStatements;
use crate::command::trouble::Ended;
use crate::core::roster::Entry;
use crate::core::{Core, Seat};
use crate::known::answer;
use crate::known::answer::{Complaint, Turn};
use crate::known::reading::Reading;
use crate::seen::traces::{Leg, Mark};
use crate::session::Session;
use crate::session::cached::Cached;
use crate::session::held::Held;
use crate::session::remembered::Remembered;
use backend::{Backend, State};
use bridge::Counter;
use config::User;
use net::{Conn, Entered};
use rt::Alarm;
use std::rc::Rc;
use std::sync::Arc;
use wire::caps;
use wire::resultset::Writer;

impl Session {
    /// SERVER_STATUS_* of the session's transactions, wherever they are open.
    pub(crate) fn transaction_flags(&self) -> u16 {
        let held = self.held.transaction_flags();
        let transaction = self.global.as_ref();
        transaction.map_or(held, |transaction| held | transaction.flags())
    }

    /// Tells the log why the session has ended.
    pub(crate) fn note_end(&self, why: &str) {
        let from = match self.entry.address {
            Some(address) => address.to_string(),
            None => "a Unix socket".to_owned(),
        };
        let (id, user) = (self.entry.id, &self.user.username);
        self.core.note_seldom(&format!(
            "session {id} of '{user}' from {from} has ended: {why}"
        ));
    }

    /// Flags of an answer of ours. A driver that is told of no transaction sends no COMMIT.
    pub(crate) fn flags(&self) -> u16 {
        answer::flags(self.state.autocommit) | self.reading.flags() | self.transaction_flags()
    }

    /// Writes an answer of ours behind packet `sent`, with these SERVER_STATUS_* flags.
    pub(crate) fn writer<'o>(&self, out: &'o mut Vec<u8>, sent: u8, flags: u16) -> Writer<'o> {
        let writer = Writer::new(out, sent, self.caps, flags);
        let bare =
            caps::has(self.caps, caps::OPTIONAL_METADATA) && self.state.leaves_out_definitions();
        if bare { writer.bare() } else { writer }
    }

    /// Whether a backslash escapes in strings.
    pub(crate) fn escapes(&self) -> bool {
        self.reading.flags() & wire::status::NO_BACKSLASH_ESCAPES == 0
    }

    /// Notes what happens to the statement, for its trace.
    pub(crate) fn mark(&self, mark: Mark) {
        self.core.tracer.mark(self.entry.id, &self.core.rt, mark);
    }

    /// Notes a question to one of several partitions, for the statement's trace.
    pub(crate) fn leg(&self, backend: &Backend) -> Leg {
        let (tracer, rt) = (&self.core.tracer, &self.core.rt);
        tracer.leg(self.entry.id, rt, backend.place())
    }

    /// Tells the client what is wrong, as the whole answer to its command.
    pub(crate) async fn refuse(&mut self, complaint: &Complaint) -> Result<(), Ended> {
        self.core.tally.up(Counter::GeneratedErrorPackets);
        let seq = self.turn.next();
        (self.turn.sent, self.turn.failed) = (seq, true);
        self.mark(Mark::Failed(complaint.code));
        self.remembered.row_count.set(-1);
        self.remembered
            .refused
            .set(Some(Box::new(complaint.clone())));
        let told = self.told(seq, complaint);
        self.hand_over(told).await
    }

    /// An error as this client's library reads it.
    pub(crate) fn told(&self, seq: u8, complaint: &Complaint) -> Vec<u8> {
        let is_libmariadb = self
            .attributes
            .iter()
            .any(|said| said == (&b"_client_name"[..], &b"libmariadb"[..]));
        if is_libmariadb {
            answer::error(seq, &complaint.for_libmariadb())
        } else {
            answer::error(seq, complaint)
        }
    }

    /// Tells the client that all is well, as the whole answer to its statement.
    pub(crate) async fn say(&mut self, words: &str) -> Result<(), Ended> {
        let flags = self.flags() | self.turn.flags();
        let seq = self.turn.next();
        self.turn.sent = seq;
        self.hand_over(answer::ok(seq, self.caps, flags, words))
            .await
    }

    /// Another statement has come.
    pub(crate) fn next_statement(&self) {
        self.entry.next_statement();
        self.remembered.refused.take();
    }

    /// Gives back what it holds and drops what it has prepared.
    pub(crate) fn let_go(&mut self) {
        for backend in self.held.drain() {
            self.core.pools.give_up(backend);
        }
        self.cached.forget(&self.core);
        let gone = self.statements.clear();
        self.core.tally.add(
            Counter::StmtClientActiveTotal,
            0u64.wrapping_sub(gone as u64),
        );
    }

    /// Gives back what nothing holds any more.
    pub(crate) fn let_go_of_free(&mut self) {
        while let Some(backend) = self.held.take_free(self.core.rt.now()) {
            self.core.pools.release(backend);
        }
    }

    pub(crate) fn new(
        core: Rc<Core>,
        client: Conn,
        entered: Entered,
        user: Arc<User>,
        entry: Rc<Entry>,
        (address, port): (String, u16),
        seats: [Seat; 2],
    ) -> Self {
        let user_name: Rc<str> = user.username.as_ref().into();
        let schema = entered
            .login
            .database
            .as_deref()
            .or(user.default_schema.as_deref())
            .unwrap_or("");
        let collation = entered.login.charset;
        let state = State::new(schema, collation);
        let (life, alarm) = (core.next_life(), Alarm::new(&core.rt));
        let session = Self {
            core,
            client,
            caps: entered.login.caps,
            user,
            user_name,
            secret: entered.secret,
            nonce: entered.nonce,
            collation,
            attributes: Rc::new(entered.login.attributes),
            state,
            reading: Reading::default(),
            life,
            held: Held::default(),
            remembered: Remembered::default(),
            statements: ClientStatements::default(),
            cached: Cached::default(),
            turn: Turn::after(0),
            alarm,
            global: None,
            looked: Rc::default(),
            course: None,
            sent: None,
            through: None,
            scripts: None,
            next_flag_in: None,
            wrote: None,
            refused_changes: 0,
            entry,
            local: address.into_boxed_str(),
            local_port: port,
            seats,
        };
        session.show_who();
        session
    }

    /// Lets the processlist know.
    pub(crate) fn show_who(&self) {
        self.entry.user.replace(self.user_name.clone());
        self.entry.schema.replace(self.state.schema.clone());
        self.entry.attributes.replace(self.attributes.clone());
        self.entry.rests(self.core.rt.now());
    }
}
