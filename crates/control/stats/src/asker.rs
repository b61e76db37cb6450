//! Questions to the cores and to the monitor, on a line of their own: nobody waits behind an
//! operator's statement.

use bridge::{Ask, Done, Earlier, Reply, Report, ToCore, ToMonitor};
use rt::mailbox::{SendError, Sender};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

/// Time that cores, or the monitor, have for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// Pause before one whose mailbox is full is tried again.
const AGAIN: Duration = Duration::from_millis(5);

/// Mailboxes of all cores, and of the monitor.
pub(crate) struct Asker {
    pub(crate) cores: Vec<Sender<ToCore>>,
    pub(crate) monitor: Sender<ToMonitor>,
    /// Counts of the process before.
    pub(crate) earlier: Earlier,
}

impl Asker {
    /// The reports of all cores, joined, with what the process before has counted; or the reason why that would not
    /// be the whole.
    pub(crate) async fn ask(&self, what: Ask) -> Result<Report, String> {
        let until = Instant::now() + ANSWER;
        while !self.earlier.is_known(what) && Instant::now() < until {
            sleep(AGAIN).await;
        }
        let mut report = self.ask_cores(what, Instant::now() + ANSWER).await?;
        if let Some(before) = self.earlier.report(what, false) {
            report.and_before(before);
        }
        Ok(report)
    }

    /// Work of the monitor, with that of the process before.
    pub(crate) async fn done(&self) -> Result<Done, String> {
        let mut done = self.monitor(ToMonitor::Counts).await?;
        done.add(&self.earlier.monitor());
        Ok(done)
    }

    async fn ask_cores(&self, what: Ask, until: Instant) -> Result<Report, String> {
        let (tell, mut told) = mpsc::channel(self.cores.len().max(1));
        for core in &self.cores {
            let tell = tell.clone();
            let letter = ToCore::Ask {
                what,
                reset: false,
                reply: Box::new(move |report| drop(tell.try_send(report))),
            };
            deliver(core, letter, until).await;
        }
        drop(tell);
        let (mut joined, mut answered): (Option<Report>, _) = (None, 0);
        while let Ok(Some(report)) = timeout_at(until, told.recv()).await {
            answered += 1;
            match &mut joined {
                Some(all) => all.merge(report),
                None => joined = Some(report),
            }
        }
        let all = self.cores.len();
        joined.filter(|_| answered == all).ok_or_else(|| {
            format!("only {answered} of {all} cores have answered within 5 seconds; try again")
        })
    }

    /// Answer of the monitor.
    pub(crate) async fn monitor<T: Send + 'static>(
        &self,
        letter: impl FnOnce(Reply<T>) -> ToMonitor,
    ) -> Result<T, String> {
        let until = Instant::now() + ANSWER;
        let (tell, mut told) = mpsc::channel(1);
        let reply = Box::new(move |answer| drop(tell.try_send(answer)));
        deliver(&self.monitor, letter(reply), until).await;
        let answer = timeout_at(until, told.recv()).await.ok().flatten();
        answer.ok_or_else(|| "the monitor has not answered within 5 seconds; try again".to_owned())
    }
}

/// Leaves a letter, again and again while the mailbox is full.
async fn deliver<T>(to: &Sender<T>, mut letter: T, until: Instant) {
    while let Err(SendError::Full(back)) = to.try_send(letter) {
        if Instant::now() >= until {
            return;
        }
        letter = back;
        sleep(AGAIN).await;
    }
}
