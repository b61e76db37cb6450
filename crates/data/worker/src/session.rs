//! A session: all that a client that is logged in has.

pub(crate) mod cached;
pub(crate) mod course;
pub(crate) mod global;
pub(crate) mod held;
pub(crate) mod insert_id;
pub(crate) mod lexing;
pub(crate) mod remembered;
pub(crate) mod through;
pub(crate) mod written;

use crate::command::prepared::ClientStatements;
use crate::core::roster::Entry;
use crate::core::{Core, Seat};
use crate::known::answer::Turn;
use crate::known::reading::Reading;
use crate::scripts::chain::Chain;
use crate::session::cached::Cached;
use crate::session::course::Course;
use crate::session::global::GlobalTransaction;
use crate::session::held::Held;
use crate::session::remembered::{Remembered, Sent};
use crate::session::through::Through;
use backend::State;
use config::User;
use net::{Conn, Secret};
use rt::{Alarm, Instant};
use std::rc::Rc;
use std::sync::Arc;
use wire::caps;
use wire::connect_attributes::ConnectAttributes;

/// A client that is logged in.
pub(crate) struct Session {
    pub(crate) core: Rc<Core>,
    pub(crate) client: Conn,
    pub(crate) caps: caps::Caps,
    pub(crate) user: Arc<User>,
    pub(crate) user_name: Rc<str>,
    pub(crate) secret: Secret,
    pub(crate) nonce: wire::auth::Nonce,
    /// Collation of the login.
    pub(crate) collation: u16,
    /// Attributes that the client has told of itself.
    pub(crate) attributes: Rc<ConnectAttributes>,
    /// State that the client has set.
    pub(crate) state: State,
    /// How servers read its texts.
    pub(crate) reading: Reading,
    /// Number of the session's life, to which belongs what servers remember of statements (ids,
    /// warnings). Another life begins when all is forgotten.
    pub(crate) life: u64,
    /// Connections that cannot be shared just now.
    pub(crate) held: Held,
    pub(crate) remembered: Remembered,
    pub(crate) statements: ClientStatements,
    /// Entries of the cache that the session fills, and the tables whose results it ends.
    pub(crate) cached: Cached,
    pub(crate) turn: Turn,
    /// Limits what the session waits for.
    pub(crate) alarm: Alarm,
    /// Its transaction, if that has branches on the hostgroups that it needs.
    pub(crate) global: Option<Rc<GlobalTransaction>>,
    /// Look-ups that were asked and told for its statement.
    pub(crate) looked: Rc<shards::LookedUp>,
    /// Statements of its transaction, where that may be replayed.
    pub(crate) course: Option<Box<Course>>,
    /// A SET that a server has accepted, until all that it has set is known.
    pub(crate) sent: Option<Box<Sent>>,
    /// Where its bytes go as they come, if they do.
    pub(crate) through: Option<Box<Through>>,
    /// Scripts in its way.
    pub(crate) scripts: Option<Box<Chain>>,
    /// `next_query_flagIN` of the last statement's rule.
    pub(crate) next_flag_in: Option<u32>,
    /// When it may have written last.
    pub(crate) wrote: Option<Instant>,
    /// COM_CHANGE_USERs that failed.
    pub(crate) refused_changes: u8,
    pub(crate) entry: Rc<Entry>,
    /// Address that it came to.
    pub(crate) local: Box<str>,
    pub(crate) local_port: u16,
    pub(crate) seats: [Seat; 2],
}
