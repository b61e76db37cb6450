//! COM_STMT_PREPARE: which statement servers are to prepare for the client's.

use crate::command::job::{Job, Told, What};
use crate::command::prepared::seen_params;
use crate::command::preparing::{Preparing, params};
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::session::Session;
use sql::{Class, Leaves};
use std::ops::ControlFlow;

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
