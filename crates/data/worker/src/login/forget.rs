//! All that a session has set and holds is forgotten: another life begins.

use crate::session::{Session, held};
use backend::{Names, State};

impl Session {
    /// As after a login, except for the character set: COM_RESET_CONNECTION.
    pub(crate) fn forget_everything(&mut self, names: Names) {
        let schema = self.state.schema.clone();
        self.global = None;
        self.let_go();
        let role = self.state.variable(backend::ROLE).map(str::to_owned);
        self.state = State::new(&schema, self.collation);
        self.state.set_names(names);
        if let Some(role) = role {
            // No server takes a role away with it.
            self.state.set(backend::ROLE, &role);
        }
        self.forget_modes();
        self.next_flag_in = None;
        self.life = self.core.next_life();
        self.remembered.forget();
    }

    /// Frees what others may wait for. When this returns, that is free on the servers, as it is
    /// when a server answers COM_RESET_CONNECTION or COM_CHANGE_USER.
    pub(crate) async fn let_go_of_locks(&mut self) {
        self.forget_branches().await;
        while let Some((_, backend)) = self.held.take_that(|_, backend| held::may_lock(backend)) {
            self.core.pools.clean(backend).await;
        }
    }
}
