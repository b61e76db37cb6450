//! The events log as the admin port sees it: its thread is told, and says what came of it.

use crate::hooks::Told;
use crate::said::Said;
use crate::shared::Shared;
use crate::tables::Module;
use config::{Logs, Snapshot};
use rt::mailbox;
use std::time::Duration;

/// How long the thread may take. It waits for the disk, behind all that cores have handed over.
const ANSWER: Duration = Duration::from_secs(10);

/// Consequence of a LOAD for the events log.
pub(crate) struct Consequence {
    /// A log ends with what was in force before.
    pub(crate) ends: bool,
    /// Words on what the operator may have overlooked.
    pub(crate) notice: Option<String>,
}

impl Shared {
    /// Has a log begin its file before the first statement or client that is to be in it.
    ///
    /// # Errors
    /// There can be no such file: nothing was changed.
    pub(crate) async fn events_after(
        &self,
        module: Module,
        next: &Snapshot,
    ) -> Result<Consequence, Said> {
        let (wish, before) = (
            next.variables.logs(),
            self.snapshot.borrow().variables.logs(),
        );
        // What ends goes on until the LOAD is in force.
        let both = Logs {
            events: wish.events.clone().or_else(|| before.events.clone()),
            audit: wish.audit.clone().or_else(|| before.audit.clone()),
        };
        if both != before {
            let begun = self.log_like(both.clone()).await;
            if begun.is_err() {
                // It may come to what it was told when nobody waits any more: what is in force is
                // told behind it.
                (self.hooks.log_like)(before, Box::new(|_done| {}));
            }
            begun.map_err(|words| {
                format!(
                    "{} not loaded, nothing was changed: {words}",
                    module.words()
                )
            })?;
        }
        let wanted = next.variables.mysql_eventslog_default_log == 1
            || next.rules.chain().iter().any(|rule| rule.log == Some(true));
        let is_about_it = matches!(module, Module::Rules | Module::MysqlVariables);
        let notice = (is_about_it && wanted && wish.events.is_none()).then(|| {
            "statements are to be logged, and are not while mysql-eventslog_filename is empty"
                .to_owned()
        });
        Ok(Consequence {
            ends: both != wish,
            notice,
        })
    }

    /// `PROXYSQL FLUSH LOGS`. What was counted before is in the files of before.
    pub(crate) async fn flush_logs(&self) -> Result<(), Said> {
        let all_handed_over = self.cores.hand_over_events().await;
        self.told(|told| (self.hooks.flush_logs)(told)).await?;
        Ok(all_handed_over?)
    }

    /// Has statements and clients logged like this from now on.
    pub(crate) async fn log_like(&self, wish: Logs) -> Result<(), String> {
        self.told(|told| (self.hooks.log_like)(wish, told)).await
    }

    async fn told(&self, tell: impl FnOnce(Told)) -> Result<(), String> {
        let (answers, arrived) = mailbox::channel(1);
        // Nobody waits any more if it comes too late.
        tell(Box::new(move |answer| drop(answers.try_send(answer))));
        match self.rt.timeout(ANSWER, arrived.recv()).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err("the events log does not listen".into()),
            Err(_late) => Err(format!(
                "the events log has not answered within {} seconds: its disk is slow",
                ANSWER.as_secs()
            )),
        }
    }
}
