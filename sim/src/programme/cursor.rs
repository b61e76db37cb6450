//! Cursors: rows that come a few at a time, from where they are.

use super::{Bound, Goes, Over, Session};
use crate::client::{Due, Reply};
use crate::mind::rows_of_cursor;
use std::time::Duration;
use wire::status::LAST_ROW_SENT;

/// COM_STMT_RESET and COM_STMT_FETCH.
const RESET: u8 = 0x1A;
const FETCH: u8 = 0x1C;

impl Session<'_> {
    /// A cursor, some of its rows or all, and other things meanwhile.
    pub(super) async fn with_cursor(&mut self) -> Goes {
        let Some(bound) = self.bind(true).await? else {
            return Ok(());
        };
        // Whoever ends it in the middle ends the session.
        self.keeps += 1;
        self.with_rows(bound).await?;
        self.keeps = self.keeps.saturating_sub(1);
        Ok(())
    }

    async fn with_rows(&mut self, bound: Bound) -> Goes {
        match self.ask(&bound.words, &bound.payload, Due::Cursor).await? {
            Some(Reply::Opened) => {}
            Some(Reply::Err { code, message }) => {
                self.complained(&bound.words, code, &message);
                return Ok(());
            }
            other => self
                .judge
                .accuse(&self.who, &format!("{}: {other:?}", bound.words)),
        }
        // Tables may get others, of which an open cursor does not know.
        let columns = self.client.columns;
        let mut left = rows_of_cursor(&bound.tag);
        loop {
            if self.chance.percent(30) {
                self.few().await?;
            }
            if self.chance.percent(30) {
                self.rt
                    .sleep(Duration::from_micros(self.chance.below(20_000)))
                    .await;
            }
            if self.chance.percent(10) {
                return self.drop_cursor(bound.id, columns).await;
            }
            let n = u32::try_from(self.chance.between(1, 4)).unwrap_or(1);
            let Some(rows) = self.fetch((bound.id, columns), n, None).await? else {
                return Ok(());
            };
            let right = rows.len() == left.min(n) as usize && rows.iter().all(|row| bound.is(row));
            self.judge.check(right, &self.who, || {
                format!(
                    "FETCH {n} of {left}: {rows:?} instead of {:?}",
                    bound.values
                )
            });
            let over = self.client.status & LAST_ROW_SENT != 0;
            self.judge.check(over == (n > left), &self.who, || {
                format!("FETCH {n} of {left}: it is over: {over}")
            });
            if over {
                return self
                    .fetch((bound.id, columns), 1, Some(1421))
                    .await
                    .map(drop);
            }
            left = left.saturating_sub(n);
        }
    }

    async fn fetch(
        &mut self,
        (id, columns): (u32, usize),
        n: u32,
        wanted: Option<u16>,
    ) -> Goes<Option<Vec<crate::client::Row>>> {
        let words = format!("FETCH {n} of {id}");
        let payload = [&[FETCH][..], &id.to_le_bytes(), &n.to_le_bytes()].concat();
        match self.ask(&words, &payload, Due::Fetched { columns }).await? {
            Some(Reply::Rows(rows)) if wanted.is_none() => Ok(Some(rows)),
            Some(Reply::Err { code, .. }) if Some(code) == wanted => Ok(None),
            Some(Reply::Err { code, message }) => {
                // The rows went with the session.
                self.complained(&words, code, &message);
                Err(Over)
            }
            other => {
                self.judge.accuse(&self.who, &format!("{words}: {other:?}"));
                Ok(None)
            }
        }
    }

    /// Nobody wants the rest.
    async fn drop_cursor(&mut self, id: u32, columns: usize) -> Goes {
        match self.chance.below(3) {
            0 => self.execute_that(id).await,
            1 => {
                let payload = [&[0x19][..], &id.to_le_bytes()].concat();
                self.judge.tell(&self.who, &format!("CLOSE {id}"));
                self.prepared.retain(|statement| statement.id != id);
                let _later = self.client.send(&payload).await;
                Ok(())
            }
            _ => {
                let words = format!("RESET {id}");
                let payload = [&[RESET][..], &id.to_le_bytes()].concat();
                match self.ask(&words, &payload, Due::Text).await? {
                    Some(Reply::Ok) => self.fetch((id, columns), 1, Some(1421)).await.map(drop),
                    Some(Reply::Err { code, message }) => {
                        self.complained(&words, code, &message);
                        Ok(())
                    }
                    other => {
                        self.judge.accuse(&self.who, &format!("{words}: {other:?}"));
                        Ok(())
                    }
                }
            }
        }
    }

    /// The statement again, without a cursor.
    async fn execute_that(&mut self, id: u32) -> Goes {
        if let Some(at) = self
            .prepared
            .iter()
            .position(|statement| statement.id == id)
        {
            let others = self.prepared.split_off(at + 1);
            let before: Vec<_> = self.prepared.drain(..at).collect();
            let done = self.execute().await;
            self.prepared.extend(others);
            self.prepared.splice(0..0, before);
            done?;
        }
        Ok(())
    }
}
