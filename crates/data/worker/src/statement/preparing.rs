//! COM_STMT_PREPARE: which statement servers are to prepare for the client's, and where its
//! parameters go there.

use crate::command::job::{Job, Told, What};
use crate::command::prepared::seen_params;
use crate::command::preparing::{Preparing, params};
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::seen::internal;
use crate::session::Session;
use bridge::{Counter, EventKind};
use sql::{Class, Leaves};
use std::cell::{Cell, OnceCell};
use std::ops::ControlFlow;
use std::rc::Rc;
use wire::moved::Moved;

/// Preparing does nothing yet of what the statement will do.
pub(crate) fn quiet(class: Class<'_>) -> Class<'_> {
    Class {
        leaves: Leaves::NONE,
        use_db: None,
        ddl: false,
        begins_transaction: false,
        begins_read_only: false,
        ends_transaction: false,
        releases: false,
        inserts: false,
        ..class
    }
}

impl Session {
    /// COM_STMT_PREPARE: on a server of the statement's hostgroup, which says what is in it.
    pub(crate) async fn prepare(&mut self, epoch: &Epoch, sql: &[u8]) -> Result<(), Ended> {
        self.core.tally.up(Counter::ComFrontendStmtPrepare);
        // Before anything can be wrong with it: what refers to the last statement that was prepared
        // is not about the one before.
        let client = self.statements.next_id();
        if let Some(complaint) = self.statements.is_full_for(sql, epoch) {
            return self
                .refuse_unasked(epoch, (EventKind::Prepare, 0), sql, &complaint)
                .await;
        }
        let rewritten = self.rewritten(epoch, sql);
        let moved = rewritten
            .as_ref()
            .and_then(|(_, made)| Moved::new(made.params_before, &made.params));
        let sql = rewritten.as_ref().map_or(sql, |(_, made)| &made.text);
        let class = quiet(self.lexing().class(sql));
        if internal::asked(sql, &class, self.lexing()).is_some() {
            let words = "This command is not supported in the prepared statement protocol yet";
            let complaint = Complaint::with(1295, "HY000", words);
            return self
                .refuse_unasked(epoch, (EventKind::Prepare, 0), sql, &complaint)
                .await;
        }
        let (moved, outline) = (moved.map(Rc::new), Cell::new(None));
        let preparing = Preparing {
            client,
            moved,
            naming: None,
            statement: OnceCell::new(),
            outline,
        };
        self.whole(epoch, sql, &class, "Prepare", What::Prepare(&preparing))
            .await
    }

    /// The stage: the statement is known now. Rules may have changed its text, but nobody could
    /// tell what became of its parameters if there were fewer or more of them now.
    pub(crate) async fn settle_prepared(
        &mut self,
        job: &Job<'_>,
    ) -> Result<ControlFlow<Told>, Ended> {
        let preparing = match job.what {
            What::Prepare(preparing) => Some(preparing),
            What::Dynamic(_) => None,
            _ => return Ok(ControlFlow::Continue(())),
        };
        if !job.is_as_written() {
            let lexing = self.lexing();
            let (before, behind) = (params(job.text, lexing), params(job.sent(), lexing));
            if before != behind {
                let words = format!(
                    "Rewritten by mysql_query_rules (rule_id {}), the statement has {behind} parameters instead of {before}, which a prepared statement cannot follow",
                    replacing(job)
                );
                self.refuse(&Complaint::with(1235, "42000", words)).await?;
                return Ok(ControlFlow::Break(Told::default()));
            }
        }
        if let Some(preparing) = preparing {
            // What it means is what is set now, wherever that was.
            self.read_all_back().await?;
            preparing
                .statement
                .get_or_init(|| self.intern(job.epoch, job.sent(), job.class.reads));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A rule answers the statement by itself, or no server has all of its tables: it can be prepared,
    /// and is answered when it is executed.
    pub(crate) async fn pretend_to_prepare(
        &mut self,
        job: &Job<'_>,
        preparing: &Preparing,
    ) -> Result<(), Ended> {
        preparing
            .statement
            .get_or_init(|| self.intern(job.epoch, job.text, job.class.reads));
        let params = params(job.text, self.lexing());
        if preparing.naming.is_some() {
            self.add_prepared(job, preparing, params);
            return self.say("Statement prepared").await;
        }
        let seen = seen_params(params, preparing.moved.as_deref());
        let mut out = Vec::new();
        let flags = self.flags();
        self.writer(&mut out, 0, flags)
            .prepared(preparing.client, seen, &[]);
        self.add_prepared(job, preparing, params);
        self.hand_over(out).await
    }
}

/// The rules that may have rewritten it.
fn replacing(job: &Job<'_>) -> String {
    let chain = job.epoch.snapshot.rules.chain();
    let hits = job
        .plan
        .why
        .hits()
        .iter()
        .filter_map(|at| chain.get(*at as usize));
    let ids: Vec<_> = hits
        .filter(|rule| rule.replace.is_some())
        .map(|rule| rule.rule_id.to_string())
        .collect();
    ids.join(", ")
}
