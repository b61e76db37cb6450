//! HTTP that a control thread serves to strangers, with or without TLS: who is heard, how long and
//! how much.
#![forbid(unsafe_code)]

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use net::tls::Acceptor;
use rt::{Address, Registered};
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};
use tokio_openssl::SslStream;

/// Connections at once at most.
const CONNECTIONS_MAX: usize = 64;
/// Connections from one address at once at most: one stranger keeps nobody else out.
const CONNECTIONS_OF_ONE_MAX: usize = 32;
/// Time in which TLS has to be agreed upon, and the head of a request to arrive.
const ASKS_WITHIN: Duration = Duration::from_secs(5);
/// Time that one connection may stay.
const STAYS_MAX: Duration = Duration::from_secs(600);
/// Bytes of a request's head at most.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Lines of a request's head at most.
const HEADERS_MAX: usize = 64;

/// A response, with its whole body.
pub type Answer = Response<Full<Bytes>>;

/// The certificate of now, where TLS is spoken.
pub type Tls = Rc<dyn Fn() -> Acceptor>;

/// The place where requests are heard, if they are.
#[derive(Default)]
pub struct Site {
    at: Option<SocketAddr>,
    task: Option<JoinHandle<()>>,
}

impl Site {
    /// Listens at `wanted`, or not at all, and has requests answered there. Runs on a `LocalSet`.
    ///
    /// # Errors
    /// Nobody can listen there.
    pub async fn serve<S>(
        &mut self,
        wanted: Option<SocketAddr>,
        tls: Option<Tls>,
        answer: S,
    ) -> io::Result<()>
    where
        S: AsyncFn(IpAddr, Request<Incoming>) -> Answer + 'static,
    {
        let serves = self.task.as_ref().is_some_and(|task| !task.is_finished());
        if wanted == self.at && serves == wanted.is_some() {
            return Ok(());
        }
        if let Some(task) = self.task.take() {
            task.abort();
            // The port is free when it has ended.
            let _ended = task.await;
        }
        self.at = None;
        let Some(address) = wanted else {
            return Ok(());
        };
        let at = Address::Tcp(address);
        let listener = match rt::take_inherited(&at) {
            Some(left) => TcpListener::from_std(left.into())?,
            None => TcpListener::bind(address).await?,
        };
        let left = Registered::of(&at, &listener);
        self.task = Some(spawn_local(async move {
            listen(listener, tls, Rc::new(answer)).await;
            drop(left);
        }));
        self.at = wanted;
        Ok(())
    }
}

/// A response with a text.
#[must_use]
pub fn typed(status: StatusCode, content: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let content = HeaderValue::from_static(content);
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}

/// Serves whoever comes, until another process does with the same listener.
async fn listen<S>(listener: TcpListener, tls: Option<Tls>, answer: Rc<S>)
where
    S: AsyncFn(IpAddr, Request<Incoming>) -> Answer + 'static,
{
    let open = Open::default();
    let mut left = pin!(rt::left());
    loop {
        let comes = poll_fn(|context| match left.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => listener.poll_accept(context).map(Some),
        });
        let Some(comes) = comes.await else { return };
        let Ok((socket, peer)) = comes else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let peer = peer.ip().to_canonical();
        let Some(counted) = Counted::among(&open, peer) else {
            continue;
        };
        let (tls, answer) = (tls.clone(), answer.clone());
        spawn_local(async move {
            let _counted = counted;
            // Whoever has gone, or makes no sense, is not answered.
            let _gone = timeout(STAYS_MAX, attend(socket, peer, tls, answer)).await;
        });
    }
}

async fn attend<S>(socket: TcpStream, peer: IpAddr, tls: Option<Tls>, answer: Rc<S>)
where
    S: AsyncFn(IpAddr, Request<Incoming>) -> Answer + 'static,
{
    let Some(tls) = tls else {
        return speak(TokioIo::new(socket), peer, answer).await;
    };
    let stream = tls().ssl().map(|ssl| SslStream::new(ssl, socket));
    let Ok(Ok(mut stream)) = stream else { return };
    let agreed = timeout(ASKS_WITHIN, Pin::new(&mut stream).accept()).await;
    if matches!(agreed, Ok(Ok(()))) {
        speak(TokioIo::new(stream), peer, answer).await;
    }
}

async fn speak<I, S>(io: I, peer: IpAddr, answer: Rc<S>)
where
    I: Read + Write + Unpin,
    S: AsyncFn(IpAddr, Request<Incoming>) -> Answer + 'static,
{
    let service = service_fn(|request| {
        let answer = answer.clone();
        async move {
            let mut answer = answer(peer, request).await;
            if rt::have_left() {
                // Whoever asks again asks the other process.
                let close = HeaderValue::from_static("close");
                answer.headers_mut().insert(CONNECTION, close);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ASKS_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(io, service);
    let _gone = connection.await;
}

/// Connections that are open, by where they come from.
type Open = Rc<RefCell<HashMap<IpAddr, usize>>>;

/// One connection, counted.
struct Counted(Open, IpAddr);

impl Counted {
    /// Counts one more, if there is room for it.
    fn among(open: &Open, peer: IpAddr) -> Option<Self> {
        let mut all = open.borrow_mut();
        if all.values().sum::<usize>() >= CONNECTIONS_MAX {
            return None;
        }
        let own = all.entry(peer).or_default();
        if *own >= CONNECTIONS_OF_ONE_MAX {
            return None;
        }
        *own += 1;
        Some(Self(open.clone(), peer))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut all = self.0.borrow_mut();
        if let Some(own) = all.get_mut(&self.1) {
            *own -= 1;
            if *own == 0 {
                all.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_room_for_another_and_all_together_have_a_bound() {
        let (open, of) = (Open::default(), |last: u8| IpAddr::from([192, 0, 2, last]));
        let mut all: Vec<_> = (0..CONNECTIONS_MAX)
            .filter_map(|_| Counted::among(&open, of(1)))
            .collect();
        assert_eq!(all.len(), CONNECTIONS_OF_ONE_MAX);
        all.extend((0..CONNECTIONS_MAX).filter_map(|_| Counted::among(&open, of(2))));
        assert_eq!(all.len(), CONNECTIONS_MAX);
        assert!(Counted::among(&open, of(3)).is_none());
        all.remove(0);
        assert!(Counted::among(&open, of(3)).is_some());
        drop(all);
        assert!(open.borrow().is_empty());
    }
}
