//! Spans of statements on their way to a collector: what cores hand over is put into OTLP's JSON and
//! sent by HTTP (docs/features/traces.md).
#![forbid(unsafe_code)]

mod otlp;
mod post;

use bridge::{Lines, Traced};
use post::Post;
use rt::mailbox::{self, Receiver};
use rt::{Instant, Rt};
use std::sync::Arc;
use std::time::Duration;

/// So many statements may wait, of all cores together.
const WAITING_MAX: usize = 8192;
/// So many are sent at once,
const BATCH_MAX: usize = 512;
/// or as many as have come in this time.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// Times that a batch is sent again, after twice as long each.
const AGAIN: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];
/// Time after which something that is wrong is said again.
const TOLD_AGAIN: Duration = Duration::from_secs(60);

/// Takes a statement that is traced. It does not wait; `false` if there was no room.
pub type Take = Arc<dyn Fn(Traced) -> bool + Send + Sync>;

/// For cores, and for [`send`].
pub fn channel() -> (Take, Receiver<Traced>) {
    let (traced, unsent) = mailbox::channel(WAITING_MAX);
    (Arc::new(move |one| traced.try_send(one).is_ok()), unsent)
}

/// Sends what comes, until nobody is left who could trace. `log` is the operator's.
///
/// # Errors
/// None: what a collector does not take is counted.
pub async fn send(rt: Rt, traced: Receiver<Traced>, log: impl Lines) -> Result<(), String> {
    let mut sender = Sender {
        post: Post::new(rt.clone()),
        rt,
        log,
        told: None,
    };
    while let Some(first) = traced.recv().await {
        let until = sender.rt.now() + BATCH_TIME;
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX {
            let left = until - sender.rt.now();
            match sender.rt.timeout(left, traced.recv()).await {
                Ok(Some(one)) => batch.push(one),
                Ok(None) | Err(_) => break,
            }
        }
        while let Some(to) = batch.first().map(|one| one.to.clone()) {
            let (these, others) = batch.into_iter().partition(|one| one.to == to);
            batch = others;
            sender.send(&to, these).await;
        }
    }
    Ok(())
}

struct Sender<L> {
    post: Post,
    rt: Rt,
    log: L,
    /// When something was said last.
    told: Option<Instant>,
}

impl<L: Lines> Sender<L> {
    async fn send(&mut self, to: &Arc<str>, batch: Vec<Traced>) {
        let body = otlp::body(&batch);
        let mut pauses = AGAIN.iter();
        let why = loop {
            let refused = match self.post.send(to, &body).await {
                Ok(told) => {
                    batch.iter().for_each(|one| one.fates.take(1));
                    if let Some(words) = told {
                        self.tell(&format!("traces: {to} did not take all: {words}"));
                    }
                    return;
                }
                Err(refused) => refused,
            };
            match pauses.next().filter(|_| refused.may_go_on_later) {
                Some(pause) => self.rt.sleep(*pause).await,
                None => break refused.why,
            }
        };
        batch.iter().for_each(|one| one.fates.lose(1));
        let many = batch.len();
        self.tell(&format!(
            "traces: {many} statements are dropped, since {to} does not take them: {why}"
        ));
    }

    fn tell(&mut self, words: &str) {
        let now = self.rt.now();
        if self.told.is_none_or(|told| now - told >= TOLD_AGAIN) {
            self.told = Some(now);
            self.log.line(words);
        }
    }
}
