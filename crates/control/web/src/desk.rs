//! Questions to the admin thread, and what it answers in time.

use bridge::{Pass, Table, ToAdmin, Unanswered};
use std::net::IpAddr;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time in which the admin thread has to answer.
pub(crate) const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The way to the admin thread.
pub(crate) struct Desk {
    send: Box<dyn Fn(ToAdmin) -> bool + Send>,
}

impl Desk {
    pub(crate) fn new(send: Box<dyn Fn(ToAdmin) -> bool + Send>) -> Self {
        Self { send }
    }

    /// Lets somebody in, or says why not.
    pub(crate) async fn enter(
        &self,
        user: &str,
        password: &str,
        from: IpAddr,
    ) -> Result<Pass, String> {
        let (tell, told) = oneshot::channel();
        let letter = ToAdmin::Enter {
            user: user.to_owned(),
            password: password.to_owned(),
            from,
            reply: Box::new(move |pass| drop(tell.send(pass))),
        };
        self.told(letter, told).await.unwrap_or_else(Err)
    }

    /// Answers a statement of his, or of the proxy itself.
    pub(crate) async fn ask(&self, pass: Option<&Pass>, sql: &str) -> Result<Table, Unanswered> {
        let (tell, told) = oneshot::channel();
        let letter = ToAdmin::Ask {
            pass: pass.cloned(),
            sql: sql.to_owned(),
            reply: Box::new(move |table| drop(tell.send(table))),
        };
        let told = self.told(letter, told).await;
        told.unwrap_or_else(|words| Err(Unanswered::Said(words)))
    }

    async fn told<T>(&self, letter: ToAdmin, told: oneshot::Receiver<T>) -> Result<T, String> {
        if !(self.send)(letter) {
            return Err("too many questions wait for the admin thread; try again".to_owned());
        }
        match timeout(ANSWERS_WITHIN, told).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_gone)) => Err("the admin thread has ended".to_owned()),
            Err(_late) => Err(late()),
        }
    }
}

/// Words about an answer that has not come in time.
pub(crate) fn late() -> String {
    format!(
        "the admin thread has not answered within {} seconds: a statement of an operator may take that long",
        ANSWERS_WITHIN.as_secs()
    )
}
