//! Forms of what is in force here, made when a ProxySQL asks for them or is compared with.

use super::form::{self, Form, Speech};
use crate::cluster::subjects::{At, SUBJECTS};
use crate::said::Said;
use crate::shared::Shared;
use config::Help as _;

impl Shared {
    /// Makes the forms that are missing, of what is in force.
    pub(super) async fn settle_forms(&self, speech: &Speech) -> Result<(), Said> {
        self.settle().await?;
        for at in 0..SUBJECTS.len() {
            self.settle_form(at, speech).await?;
        }
        Ok(())
    }

    pub(super) async fn settle_form(&self, at: At, speech: &Speech) -> Result<(), Said> {
        let Some(module) = SUBJECTS.get(at).map(|subject| subject.module) else {
            return Ok(());
        };
        let is_untold = module.prefix().is_some() && speech.variables.is_empty();
        if speech.dialect.asked(module).is_empty() || is_untold || self.cluster.form(at).is_some() {
            return Ok(());
        }
        let (serial, snapshot) = (self.cluster.serial(at), self.snapshot.borrow().clone());
        let (helpers, dialect) = (self.aside.helpers(), speech.dialect);
        let variables = (*speech.variables).clone();
        let work = move || {
            let results = form::results(module, &snapshot, dialect, &variables, &|| {
                helpers.pause();
            });
            Form::of(module, results)
        };
        let form = self.aside.done(work).await;
        let form = form.ok_or("a defect ended it; the log has it")?;
        // Something else may be in force by now, or the names of variables be others.
        let is_so_still = self.cluster.serial(at) == serial
            && self
                .cluster
                .proxysql
                .speech()
                .is_none_or(|now| now.version == speech.version);
        if let (Some(serial), true) = (serial, is_so_still && self.cluster.form(at).is_none()) {
            self.cluster.proxysql.keep(at, serial, form);
        }
        Ok(())
    }
}
