//! Bytes are handed over to the client, as fast as it may have them.

use crate::command::job::Told;
use crate::command::trouble::Ended;
use crate::session::Session;
use bridge::Counter;
use net::NetError;
use rt::Either;
use std::ops::ControlFlow;
use std::time::Duration;

impl Session {
    /// Gives the client rows that no server was asked for, `seq` being the number of their last
    /// packet.
    pub(crate) async fn say_rows(
        &mut self,
        out: Vec<u8>,
        seq: u8,
        rows: u64,
    ) -> Result<ControlFlow<Told>, Ended> {
        self.turn.sent = seq;
        self.core
            .tally
            .add(Counter::QueriesFrontendsBytesSent, out.len() as u64);
        self.hand_over(out).await?;
        Ok(ControlFlow::Break(Told {
            rows_sent: rows,
            row_count: -1,
            ..Told::default()
        }))
    }
}

impl Session {
    /// Sends what is there as a whole. A client that does not read it stays until it is ended, or
    /// has been silent for too long.
    pub(crate) async fn hand_over(&mut self, out: Vec<u8>) -> Result<(), Ended> {
        let per_second = self
            .core
            .epoch()
            .snapshot
            .variables
            .mysql_throttle_max_bytes_per_second_to_client;
        if per_second > 0 {
            return Box::pin(self.hand_over_slowly(out, per_second)).await;
        }
        self.pass(out)?;
        if self.client.socket().is_full() {
            Box::pin(self.read_or_killed()).await
        } else {
            Ok(())
        }
    }

    async fn hand_over_slowly(&mut self, out: Vec<u8>, per_second: u64) -> Result<(), Ended> {
        let entry = self.entry.clone();
        for piece in out.chunks(rt::CHUNK_LEN) {
            self.pass(piece)?;
            let nap = entry
                .pace
                .spend(self.core.rt.now(), piece.len(), per_second);
            let killed = async {
                while !entry.killed.get() {
                    entry.bell.heard().await;
                }
            };
            let ended = rt::select(killed, self.client.socket().closed());
            if let Either::Left(_) = rt::select(ended, self.core.rt.sleep(nap)).await {
                return Err(Ended::Broken);
            }
            if self.client.socket().is_full() {
                Box::pin(self.read_or_killed()).await?;
            }
        }
        Ok(())
    }

    /// Waits for a client that has not read what it was sent.
    pub(crate) async fn read_or_killed(&self) -> Result<(), Ended> {
        let killed = async {
            while !self.entry.killed.get() {
                self.entry.bell.heard().await;
            }
        };
        let patience = match self.core.epoch().snapshot.variables.mysql_wait_timeout {
            0 => Duration::MAX,
            patience => Duration::from_millis(patience),
        };
        match self
            .core
            .rt
            .timeout(patience, rt::select(self.client.socket().room(), killed))
            .await
        {
            Ok(Either::Left(sent)) => Ok(sent.map_err(NetError::from)?),
            Ok(Either::Right(())) | Err(_) => Err(Ended::Broken),
        }
    }
}
