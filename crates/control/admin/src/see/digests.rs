//! The digests of all cores: replayed through rules that are not in force yet, and kept on disk.

use crate::aside::give_way;
use crate::engine::Reply;
use crate::force;
use crate::said::Said;
use crate::see::{beside, observe, route};
use crate::shared::Shared;
use crate::tables::Module;
use bridge::{Ask, Report};
use rt::Instant;
use std::rc::Rc;
use std::time::Duration;

/// Where digests are kept.
const HISTORY: &str = "stats_history.history_mysql_query_digest";

const NO_DIGESTS: &str = "a defect: the cores have answered something else than digests";

impl Shared {
    /// `EXPLAIN ROUTE AGAINST DIGESTS`: rules, a firewall and a map that LOAD would refuse are
    /// refused here in the same words.
    pub(crate) async fn replay_digests(&self, all: bool) -> Result<Reply, Said> {
        let now = self.snapshot.borrow().clone();
        let (next, _) = force::build(self, Module::Rules, now.clone()).await?;
        let (next, _) = force::build(self, Module::Firewall, next).await?;
        let (next, _) = force::build(self, Module::Shards, next).await?;
        let Report::Digests(digests) = self.cores.ask(Ask::Digests).await? else {
            return Err(NO_DIGESTS.into());
        };
        let replayed = self
            .aside
            .done(move || route::replay(&now, &next, &digests, all, &give_way))
            .await;
        Ok(Reply::Rows(
            replayed.ok_or("a defect ended the replay; the log has it")?,
        ))
    }

    /// `SAVE MYSQL DIGEST TO DISK`: what was counted goes to the history, and the cores begin anew.
    /// What cannot be written is written with the next that can.
    pub(crate) async fn keep_digests(&self) -> Result<Reply, Said> {
        let taken = self.cores.take(Ask::Digests).await?;
        let Report::Digests(digests) = taken.report() else {
            return Err(NO_DIGESTS.into());
        };
        let now = i64::try_from(self.rt.wall_us() / 1_000_000).unwrap_or(i64::MAX);
        let kept = self.engine.borrow().transaction(|conn| {
            let mut insert = observe::Into::append(conn, HISTORY, 15)?;
            digests.iter().try_for_each(|row| {
                observe::digest_row(row, |values| {
                    let mut all: Vec<&dyn rusqlite::types::ToSql> = vec![&now];
                    all.extend_from_slice(values);
                    insert.row(&all)
                })
            })
        });
        let count = digests.len();
        if let Err(error) = kept {
            let (waiting, lost) = taken.put_back();
            let also = if lost > 0 {
                format!("; {lost} others are lost, there were too many")
            } else {
                String::new()
            };
            return Err(Said::Sql(format!(
                "{error}: {waiting} digests wait for the next attempt{also}"
            )));
        }
        taken.delivered();
        Ok(Reply::Done {
            affected: count as u64,
            info: String::new(),
        })
    }

    /// Does what is due from time to time: snapshots that are in force no more are taken apart;
    /// every `admin-stats_mysql_query_digest_to_disk` seconds digests are kept.
    pub(crate) async fn housekeeping(self: Rc<Self>) {
        let mut kept = self.rt.now();
        loop {
            self.rt.sleep(Duration::from_secs(1)).await;
            self.cores.sweep(&self.aside);
            beside::tell_facts(&self);
            let variables = self.snapshot.borrow().variables.clone();
            if self.is_time(&mut kept, variables.admin_stats_mysql_query_digest_to_disk)
                && let Err(said) = self.keep_digests().await
            {
                let every = variables.admin_stats_mysql_query_digest_to_disk;
                (self.hooks.log)(&format!(
                    "the digests of the last {every} seconds were not kept: {said:?}"
                ));
            }
        }
    }

    fn is_time(&self, last: &mut Instant, every_s: u64) -> bool {
        let now = self.rt.now();
        let is_time = every_s > 0 && now - *last >= Duration::from_secs(every_s);
        if is_time {
            *last = now;
        }
        is_time
    }
}
