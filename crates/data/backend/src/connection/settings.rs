//! Settings of a connection that have commands of their own: the schema, several statements in one
//! text, the time.

use crate::connection::ask::Answer;
use crate::connection::backend::{Backend, refusal};
use crate::failure::BackendFailed;
use crate::session::state::Names;
use bridge::Counter;
use std::rc::Rc;
use wire::command::{
    COM_SET_OPTION, SET_OPTION_MULTI_STATEMENTS_OFF, SET_OPTION_MULTI_STATEMENTS_ON,
};
use wire::response::Expect;

impl Backend {
    /// Goes into a schema, be it the one that it is in.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] when the server refuses; the connection broke.
    pub async fn enter(&mut self, schema: &Rc<str>) -> Result<(), BackendFailed> {
        self.init_db(schema).await
    }

    /// Changes the schema. Its name is UTF-8, and the server reads it in the character set of the
    /// client.
    pub(crate) async fn init_db(&mut self, schema: &Rc<str>) -> Result<(), BackendFailed> {
        if schema.is_ascii() || self.state.speaks_utf8() {
            return self.change_schema(schema).await;
        }
        let written = self.ask_for_one("SELECT @@character_set_client").await?;
        let Some(written) = written.filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric()))
        else {
            return Err(BackendFailed::Unfit);
        };
        // Until it is said again, nobody knows.
        let names = std::mem::replace(&mut self.state.names, Names::Unknown);
        self.ask("SET character_set_client=utf8mb4").await?;
        let changed = self.change_schema(schema).await;
        if let Answer::Rows(_) = self
            .ask(&format!("SET character_set_client={written}"))
            .await?
        {
            self.state.names = names;
        }
        changed
    }

    async fn change_schema(&mut self, schema: &Rc<str>) -> Result<(), BackendFailed> {
        self.tally.up(Counter::ComBackendInitDb);
        let mut payload = Vec::with_capacity(schema.len() + 1);
        payload.push(0x02);
        payload.extend_from_slice(schema.as_bytes());
        let response = self.command(&payload, Expect::Simple).await?;
        #[cfg(debug_assertions)]
        if crate::planted::PASS_OVER.get() {
            self.state.schema = schema.clone();
            return Ok(());
        }
        refusal(&response)?;
        self.state.schema = schema.clone();
        Ok(())
    }

    /// Does the server take several statements in one text here? One whose client did not ask for
    /// it must not.
    #[must_use]
    pub fn takes_several(&self) -> bool {
        self.lasting.several
    }

    /// COM_SET_OPTION: several statements in one text, from now on or no longer.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] when the server does not know the command.
    pub async fn take_several(&mut self, on: bool) -> Result<(), BackendFailed> {
        let option = if on {
            SET_OPTION_MULTI_STATEMENTS_ON
        } else {
            SET_OPTION_MULTI_STATEMENTS_OFF
        };
        let [low, high] = option.to_le_bytes();
        let response = self
            .command(&[COM_SET_OPTION, low, high], Expect::Simple)
            .await?;
        refusal(&response)?;
        self.lasting.several = on;
        Ok(())
    }

    /// Sets the time that statements here are told, in millionths of a second since 1970, or has the
    /// server tell its own again.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] when the server refuses it.
    pub async fn set_moment(&mut self, at_us: Option<u64>) -> Result<(), BackendFailed> {
        let set = match at_us {
            Some(us) => format!("SET timestamp = {}.{:06}", us / 1_000_000, us % 1_000_000),
            None => "SET timestamp = DEFAULT".to_owned(),
        };
        let mut payload = Vec::with_capacity(set.len() + 1);
        wire::command::write_query(&mut payload, set.as_bytes(), self.hello.caps);
        let response = self.command(&payload, Expect::Query).await?;
        refusal(&response)
    }
}
