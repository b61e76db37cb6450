//! HTTP calls of scripts: handed to a thread of the control plane, while only the session waits that has
//! asked.

use bridge::{HttpCall, HttpCalls};
use config::Script;
use rt::{Either, mailbox};
use script::{HttpWish, Reply};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls of a core that may be on their way at once.
const CALLS_MAX: usize = 64;

/// The calls of a core.
pub(crate) struct Calls {
    take: HttpCalls,
    under_way: Arc<AtomicUsize>, // <= CALLS_MAX
}

/// One of them, until its answer has come or nobody makes it any more.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Calls {
    pub(crate) fn new(take: HttpCalls) -> Self {
        Self {
            take,
            under_way: Arc::default(),
        }
    }

    /// A place among those under way.
    fn place(&self) -> Option<Place> {
        // This core alone adds to it.
        if self.under_way.load(Ordering::Relaxed) >= CALLS_MAX {
            return None;
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Some(Place(self.under_way.clone()))
    }

    /// Makes a call for a script. `told` ends the waiting: somebody has killed the session, or its
    /// statement.
    pub(crate) async fn make(
        &self,
        script: &Script,
        wish: HttpWish,
        told: impl Future<Output = ()>,
    ) -> Reply {
        let (host, port) = (&wish.host, wish.port);
        if !script.http_hosts.allow(host, port) {
            let words = format!(
                "{host}:{port} is none of the http_hosts that the script's row in mysql_scripts has"
            );
            return Reply::Refused(words);
        }
        if wish.body.len() > script.result_len_max {
            let words = "the body has more bytes than the script's result_mb_max allows";
            return Reply::Refused(words.into());
        }
        let Some(place) = self.place() else {
            let words = format!("{CALLS_MAX} calls of scripts are under way on this core already");
            return Reply::Refused(words);
        };
        let (tell, answer) = mailbox::channel(1);
        let call = HttpCall {
            tls: wish.tls,
            host: wish.host,
            port: wish.port,
            method: if wish.is_post { "POST" } else { "GET" },
            target: wish.target,
            headers: wish.headers,
            body: wish.body,
            timeout_ms: wish.timeout_ms,
            answer_len_max: script.result_len_max,
            done: Box::new(move |said| {
                let _under_way_until_here = place;
                let _session_has_gone = tell.try_send(said);
            }),
        };
        if !(self.take)(call) {
            return Reply::Refused("too many calls of scripts wait".into());
        }
        match rt::select(pin!(answer.recv()), pin!(told)).await {
            Either::Left(Some(Ok(answer))) => {
                Reply::Http(answer.status, answer.body, answer.headers)
            }
            Either::Left(Some(Err(words))) => Reply::Refused(words),
            Either::Left(None) => Reply::Refused("nobody makes calls any more".into()),
            Either::Right(()) => Reply::Refused("the call was interrupted".into()),
        }
    }
}
