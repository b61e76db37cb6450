//! The web page: what the admin port knows, for people who look.
//!
//! | to see | read |
//! |---|---|
//! | who may come in | `visitors.rs`, `slowness.rs` |
//! | what a request is answered with | `answer.rs` |
//! | what a page looks like | `page.rs`, `listing.rs`, `plot.rs` |
//! | which pages there are | `pages/` |
//!
//! docs/features/web-page.md
#![forbid(unsafe_code)]

mod answer;
mod busiest;
mod desk;
mod fields;
mod listing;
mod page;
mod pages;
mod plot;
mod pulse;
pub mod show;
mod slowness;
mod visitors;
mod work;

use answer::answer;
use bridge::ToAdmin;
use config::{Refusal, Snapshot, Variables};
use door::Behind;
use events::lines::Log;
use net::tls::Acceptor;
use site::Site;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use work::Work;

/// Neighbours of the thread.
pub struct Setup {
    /// Sends a letter to the admin thread; whether there was room for it.
    pub admin: Box<dyn Fn(ToAdmin) -> bool + Send>,
    /// Tells where the page is served, if it is, or why it cannot be.
    pub address: fn(&Variables) -> Result<Option<SocketAddr>, Refusal>,
    /// The log, for its last lines and for new ones.
    pub log: Log,
}

/// The thread of the web page, from outside.
#[derive(Debug)]
pub struct Web {
    /// The latest is what counts.
    variables: watch::Sender<Arc<Variables>>,
    certificate: Certificate,
}

/// Certificate that is shown to whoever comes, until a new one is offered.
#[derive(Debug, Clone)]
struct Certificate(Arc<Mutex<Acceptor>>);

impl Certificate {
    fn held(&self) -> MutexGuard<'_, Acceptor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Web {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn begin(snapshot: &Snapshot, acceptor: Acceptor, setup: Setup) -> io::Result<Self> {
        let (variables, latest) = watch::channel(snapshot.variables.clone());
        let certificate = Certificate(Arc::new(Mutex::new(acceptor)));
        let shown = certificate.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::Builder::new().name("web".into()).spawn(move || {
            let work = Rc::new(Work::new(setup.admin, setup.address, setup.log));
            LocalSet::new().block_on(&runtime, obey(work, latest, shown));
        })?;
        Ok(Self {
            variables,
            certificate,
        })
    }
}

impl Behind for Web {
    fn load(&self, snapshot: &Snapshot) {
        self.variables.send_replace(snapshot.variables.clone());
    }

    fn offer(&self, acceptor: &Acceptor) {
        *self.certificate.held() = acceptor.clone();
    }
}

/// Serves where the variables say, until nobody can change them any more.
async fn obey(
    work: Rc<Work>,
    mut latest: watch::Receiver<Arc<Variables>>,
    certificate: Certificate,
) {
    let mut site = Site::default();
    let tls: site::Tls = Rc::new(move || certificate.held().clone());
    let mut pulse: Option<JoinHandle<()>> = None;
    loop {
        let variables = latest.borrow_and_update().clone();
        let wanted = wanted(&work, &variables);
        let asked = work.clone();
        let answer = async move |from, request| answer(&asked, from, request).await;
        let served = site.serve(wanted, Some(tls.clone()), answer).await;
        let serves = served.is_ok() && wanted.is_some();
        if let (Err(error), Some(address)) = (served, wanted) {
            work.log
                .line(&format!("web: cannot listen on {address}: {error}"));
        }
        if !serves {
            // A connection that is still there finds that nobody is in.
            work.visitors.borrow_mut().clear();
            pulse.take().inspect(JoinHandle::abort);
        } else if pulse.is_none() {
            pulse = Some(spawn_local(pulse::take(work.clone())));
        }
        if latest.changed().await.is_err() {
            return;
        }
    }
}

/// Address at which the page is served by these variables.
fn wanted(work: &Work, variables: &Variables) -> Option<SocketAddr> {
    match (work.address)(variables) {
        Ok(address) => address,
        Err(words) => {
            work.log
                .line(&format!("web: the page is not served: {words}"));
            None
        }
    }
}
