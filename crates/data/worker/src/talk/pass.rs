//! Bytes for the client pass, or go to the scripts that gather them.

use crate::session::Session;
use net::NetError;
use rt::Chunk;
use wire::outline::Outline;

impl Session {
    /// Hands bytes of an answer to the client, or to who collects them.
    ///
    /// # Errors
    /// The client has gone.
    #[inline]
    pub(crate) fn pass(&mut self, out: impl Into<Chunk>) -> Result<(), NetError> {
        match self.scripts.is_none() {
            true => self.client.queue(out),
            false => self.pass_by(out.into()),
        }
    }

    #[cold]
    fn pass_by(&mut self, out: Chunk) -> Result<(), NetError> {
        let now = self.core.rt.now();
        let collects = self
            .scripts
            .as_mut()
            .and_then(|chain| chain.collects.as_mut());
        let on = match collects {
            None => Some(out),
            Some(collected) => collected.add(out, now),
        };
        on.map_or(Ok(()), |out| self.client.queue(out))
    }

    /// Returns the outline that the client was told of an execution's columns, which a server
    /// therefore leaves out. Who collects an answer was told nothing: it gets all.
    pub(crate) fn outline_told(&self, told: Option<Outline>) -> Option<Outline> {
        let collects = self
            .scripts
            .as_ref()
            .is_some_and(|chain| chain.collects.is_some());
        told.filter(|_| !collects)
    }

    /// Tells the client what was collected so far: it is asked for something in the middle of its
    /// answer.
    ///
    /// # Errors
    /// The client has gone.
    pub(crate) fn pass_collected(&mut self) -> Result<(), NetError> {
        let collects = self
            .scripts
            .as_mut()
            .and_then(|chain| chain.collects.as_mut());
        let Some(collected) = collects else {
            return Ok(());
        };
        for out in collected.interrupt() {
            if !out.is_empty() {
                self.client.queue(out)?;
            }
        }
        Ok(())
    }
}
