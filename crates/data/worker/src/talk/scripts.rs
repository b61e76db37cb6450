//! Facts that scripts in a session's way have left on it.

use crate::scripts::chain::Chain;
use crate::scripts::door::Early;
use crate::session::Session;
use plan::Routed;

impl Session {
    /// Whether scripts alone answer it.
    pub(crate) fn is_console(&self) -> bool {
        let chain = self.scripts.as_ref();
        chain.is_some_and(|chain| chain.is_at_console)
    }

    /// Keeps scripts that have seen its client before the greeting.
    pub(crate) fn was_seen_by(&mut self, early: Box<Early>) {
        self.scripts = Some(Box::new(Chain::new(Some(early), false)));
    }

    /// Puts the scripts of the console in its way, and no server behind them.
    pub(crate) fn is_of_an_operator(&mut self) {
        self.scripts = Some(Box::new(Chain::new(None, true)));
    }

    /// Where scripts send the statement that runs now.
    #[inline]
    pub(crate) fn routed(&self) -> Routed {
        let chain = self.scripts.as_ref();
        chain.map_or_else(Routed::default, |chain| chain.route)
    }
}
