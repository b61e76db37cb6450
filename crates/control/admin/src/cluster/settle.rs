//! Checksums of what is in force here, made when somebody asks for them.

use super::knowledge::Cluster;
use super::subjects::{At, SUBJECTS, at};
use super::sums;
use crate::said::Said;
use crate::shared::Shared;
use crate::tables::Module;
use config::Help as _;

/// Only one makes checksums.
struct Settling<'a>(&'a Cluster);

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        self.0.settling.set(false);
        self.0.settled.notify_all();
    }
}

impl Shared {
    /// Makes the checksums that are missing, of what is in force.
    pub(crate) async fn settle(&self) -> Result<(), Said> {
        for at in 0..SUBJECTS.len() {
            self.settle_one(at).await?;
        }
        Ok(())
    }

    pub(super) async fn settle_one(&self, at: At) -> Result<(), Said> {
        let Some(module) = SUBJECTS.get(at).map(|subject| subject.module) else {
            return Ok(());
        };
        if self.cluster.unsettled(at).is_none() {
            return Ok(());
        }
        while self.cluster.settling.replace(true) {
            self.cluster.settled.wait().await;
        }
        let _only = Settling(&self.cluster);
        while let Some(serial) = self.cluster.unsettled(at) {
            let (snapshot, helpers) = (self.snapshot.borrow().clone(), self.aside.helpers());
            let work = move || sums::checksum(module, &snapshot, &|| helpers.pause());
            let checksum = self
                .aside
                .done(work)
                .await
                .ok_or("a defect ended the checksum; the log has it")?;
            // Unless it was loaded meanwhile.
            self.cluster.settle(at, serial, checksum);
        }
        Ok(())
    }

    /// Before a SAVE: other proxies go by what is kept beside the rows.
    pub(crate) async fn settle_if_shared(&self, module: Module) -> Result<(), Said> {
        let is_shared = !self
            .snapshot
            .borrow()
            .variables
            .admin_cluster_username
            .is_empty();
        match at(module).filter(|_| is_shared) {
            Some(at) => self.settle_one(at).await,
            None => Ok(()),
        }
    }
}
