//! Copies of statements that wait for their mirror.

use crate::known::bound::Kept;
use crate::seen::compare::Pair;
use backend::State;
use cache::Writing;
use config::User;
use net::Secret;
use sql::Lexing;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use wire::attributes::Attributes;
use wire::connect_attributes::ConnectAttributes;

/// Bytes of statements that wait on a core; what would be more is dropped.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 << 20;

/// The copies of a core.
#[derive(Default)]
pub(crate) struct Mirrors {
    pub(crate) running: Cell<u64>,
    pub(crate) waiting: RefCell<VecDeque<Copy>>,
    /// Bytes of those that wait.
    pub(crate) bytes: Cell<usize>,
}

/// Content of a copy: a text or an execution.
pub(crate) enum Payload {
    Text(Box<[u8]>, Attributes),
    Execution(Kept),
}

/// A statement on its way to a mirror.
pub(crate) struct Copy {
    pub(crate) hostgroup: u32,
    pub(crate) payload: Payload,
    pub(crate) user: Arc<User>,
    pub(crate) user_name: Rc<str>,
    pub(crate) secret: Secret,
    pub(crate) caps: wire::caps::Caps,
    pub(crate) collation: u16,
    pub(crate) session: u32,
    pub(crate) attributes: Rc<ConnectAttributes>,
    pub(crate) state: State,
    /// How servers read its text.
    pub(crate) lexing: Lexing,
    pub(crate) client_address: Box<str>,
    pub(crate) timeout_ms: Option<u64>,
    /// So long it is held back.
    pub(crate) delay_ms: u32,
    pub(crate) pair: Option<Rc<Pair>>,
    /// Tables that it writes, from now until it has ended, if a rule wants to know.
    pub(crate) writing: Option<Writing>,
}
