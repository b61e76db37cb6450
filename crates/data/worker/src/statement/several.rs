//! Several statements in one COM_QUERY, each with its own route, digest and counters, answered one
//! after another.

use crate::command::job::{Text, What};
use crate::command::trouble::Ended;
use crate::known::answer::killed;
use crate::known::epoch::Epoch;
use crate::reach::names::DYNAMIC;
use crate::session::Session;
use crate::statement::internal;
use std::ops::Range;
use wire::attributes::Attributes;
use wire::caps;

impl Session {
    /// COM_QUERY.
    pub(crate) async fn query(
        &mut self,
        epoch: &Epoch,
        text: &[u8],
        attributes: &Attributes,
    ) -> Result<(), Ended> {
        match self
            .parts(text)
            .filter(|_| !self.looks_stacked(epoch, text))
        {
            Some(parts) => self.each(epoch, text, &parts, attributes).await,
            None => self.single(epoch, text, attributes).await,
        }
    }

    /// The statements of a text, if its client may send several and they can be told apart for
    /// certain.
    fn parts(&self, text: &[u8]) -> Option<Vec<Range<usize>>> {
        if caps::has(self.caps, caps::MULTI_STATEMENTS) {
            sql::split(text, self.lexing())
        } else {
            None
        }
    }

    /// One after the other; the first error is the last answer. The attributes are those of each of
    /// them.
    async fn each(
        &mut self,
        epoch: &Epoch,
        text: &[u8],
        parts: &[Range<usize>],
        attributes: &Attributes,
    ) -> Result<(), Ended> {
        for (at, part) in parts.iter().enumerate() {
            self.turn.more = at + 1 < parts.len();
            self.single(
                epoch,
                text.get(part.clone()).unwrap_or_default(),
                attributes,
            )
            .await?;
            #[cfg(debug_assertions)]
            let failed = self.turn.failed && !backend::planted::GO_ON.get();
            #[cfg(not(debug_assertions))]
            let failed = self.turn.failed;
            if failed {
                break;
            }
            if self.entry.released.get() && self.turn.more {
                // The server ends the session here, whatever it has said of more answers.
                return Err(Ended::ByClient);
            }
            if self.entry.killed.get() && self.turn.more {
                // The client waits for the next answer.
                return Err(Ended::Told(killed()));
            }
        }
        Ok(())
    }

    /// One statement, or what goes whole to one server.
    async fn single(
        &mut self,
        epoch: &Epoch,
        sql: &[u8],
        attributes: &Attributes,
    ) -> Result<(), Ended> {
        let rewritten = self.rewritten(epoch, sql);
        let sql = rewritten.as_ref().map_or(sql, |(_, made)| &made.text);
        let lexing = self.lexing();
        let known = epoch
            .skeletons
            .borrow_mut()
            .find(sql, lexing, &epoch.digest);
        if let Some(known) = &known
            && let said = (sql, &known.judged)
            && let what = What::Query(attributes)
            && self.express(epoch, said, "Query", what).await?.is_break()
        {
            return Ok(());
        }
        let read;
        let text = if let Some(known) = &known {
            Text {
                sql,
                class: &known.judged.class,
                judged: Some(&known.judged),
            }
        } else {
            read = lexing.class(sql);
            Text::of(sql, &read)
        };
        let class = text.class;
        if let Some(what) = internal::asked(sql, class, lexing) {
            return Box::pin(self.internal(what)).await;
        }
        if class.leaves.intersects(DYNAMIC) && !class.multi {
            return Box::pin(self.dynamic(epoch, sql, class.clone(), attributes)).await;
        }
        self.whole_of(epoch, text, "Query", What::Query(attributes))
            .await
    }
}
