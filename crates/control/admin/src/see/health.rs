//! Whether the proxy lives and may be sent clients, over HTTP, for whoever balances or restarts it.

use crate::shared::{Clients, Shared};
use bridge::{Ask, Report, ServerState};
use rt::{Address, ListenOptions, Socket};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Askers at once at most.
const ASKERS_MAX: usize = 64;
/// Bytes of a request at most.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Time in which a request has to arrive.
const ASKS_WITHIN: Duration = Duration::from_secs(5);

/// A status of HTTP, and the reason in words.
type Verdict = (&'static str, String);

const FINE: &str = "200 OK";
const NOT_NOW: &str = "503 Service Unavailable";

impl Shared {
    /// Answers at `admin-health_port`, if there is one.
    pub(crate) async fn tell_health(self: Rc<Self>) {
        let port = self.snapshot.borrow().variables.admin_health_port;
        let Some(port) = u16::try_from(port).ok().filter(|port| *port > 0) else {
            return;
        };
        let address = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let listener = match self.rt.listen(&address, ListenOptions::default()) {
            Ok(listener) => listener,
            Err(error) => {
                let words = format!("nobody hears how we are: cannot listen on {address}: {error}");
                return (self.hooks.log)(&words);
            }
        };
        let askers = Rc::new(Cell::new(0));
        loop {
            let Ok(socket) = listener.accept().await else {
                self.rt.sleep(Duration::from_millis(100)).await;
                continue;
            };
            if askers.get() >= ASKERS_MAX {
                continue;
            }
            let (shared, asker) = (self.clone(), Asker::among(&askers));
            self.rt.spawn(async move {
                let _counted = asker;
                shared.tell(&socket).await;
            });
        }
    }

    async fn tell(&self, socket: &Socket) {
        let Ok(Some(path)) = self.rt.timeout(ASKS_WITHIN, path_asked(socket)).await else {
            return;
        };
        let (status, words) = match path.as_str() {
            "/live" | "/healthz" => self.is_live().await,
            "/ready" | "/readyz" => self.is_ready().await,
            _ => (
                "404 Not Found",
                "there is /live, and there is /ready".to_owned(),
            ),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{words}\n",
            words.len() + 1
        );
        // Whoever has gone did not want to know.
        let _gone = self
            .rt
            .timeout(ASKS_WITHIN, socket.send(answer.into_bytes()))
            .await;
    }

    /// Every core turns and answers.
    async fn is_live(&self) -> Verdict {
        match self.cores.ask(Ask::Core).await {
            Ok(_) => (FINE, format!("{} cores answer", self.cores.len())),
            Err(_) => (NOT_NOW, "not all cores answer within 5 seconds".to_owned()),
        }
    }

    /// Clients that come now are served: or why not.
    async fn is_ready(&self) -> Verdict {
        let not_now = |words: &str| (NOT_NOW, words.to_owned());
        if self.hooks.ending.load(Ordering::Relaxed) {
            return not_now("the proxy is about to end");
        }
        match self.clients.get() {
            Clients::Welcome => {}
            Clients::PartlyWelcome => return not_now("not all cores let clients in"),
            Clients::Paused => return not_now("PROXYSQL PAUSE: no new clients"),
            Clients::Stopped => return not_now("no clients until PROXYSQL START"),
        }
        let behind = self.cores.behind();
        if behind > 0 {
            return (
                NOT_NOW,
                format!("{behind} cores do not work by the latest configuration yet"),
            );
        }
        let Ok(Report::Pool(pool)) = self.cores.ask(Ask::Pool).await else {
            return not_now("not all cores answer within 5 seconds");
        };
        let snapshot = self.snapshot.borrow();
        let users = snapshot.users.iter();
        let defaults: BTreeSet<_> = users.map(|user| user.default_hostgroup).collect();
        let wanted = pool.iter().filter(|row| defaults.contains(&row.hostgroup));
        let online = wanted
            .clone()
            .filter(|row| row.state == ServerState::Online)
            .count();
        match (online, wanted.count()) {
            (0, 0) => not_now("no server is in the default hostgroup of any user"),
            (0, all) => (
                NOT_NOW,
                format!("none of the {all} servers of the users' default hostgroups serves"),
            ),
            (online, all) => (
                FINE,
                format!("{online} of {all} servers of the users' default hostgroups serve"),
            ),
        }
    }
}

/// One who asks, counted.
struct Asker(Rc<Cell<usize>>);

impl Asker {
    fn among(all: &Rc<Cell<usize>>) -> Self {
        all.set(all.get() + 1);
        Self(all.clone())
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The path of a GET or HEAD; nothing if this is no such request.
async fn path_asked(socket: &Socket) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let more = socket.recv().await.ok()?;
        if more.is_empty() || request.len() + more.len() > REQUEST_BYTES_MAX {
            return None;
        }
        request.extend_from_slice(&more);
    }
    let line = request.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let is_read = matches!(words.next(), Some("GET" | "HEAD"));
    let path = words.next().filter(|_| is_read)?;
    Some(path.split('?').next().unwrap_or_default().to_owned())
}
