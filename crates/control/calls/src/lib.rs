//! HTTP calls of scripts. Cores hand them over and wait for nothing; a thread of the control plane
//! makes them, each on a connection of its own, and sends the answers back.
//!
//! docs/features/scripts.md
#![forbid(unsafe_code)]

use bridge::{HttpAnswer, HttpCall, HttpCalls};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::rt::{Read, Write};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use openssl::ssl::{SslConnector, SslMethod};
use rt::mailbox::{self, Receiver};
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;
use tokio_openssl::SslStream;

/// Calls that may wait for this thread, of all cores together.
const WAITING_MAX: usize = 4096;
/// Bytes of an answer's head at most.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Headers that a call has of itself.
const OWN: [HeaderName; 5] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
];

/// Begins the thread that makes calls. It ends when nobody is left who could call.
///
/// # Errors
/// The system has no room for it.
pub fn begin() -> Result<HttpCalls, Vec<String>> {
    let (hand, calls) = mailbox::channel(WAITING_MAX);
    let none = |error: std::io::Error| vec![format!("no thread for HTTP calls: {error}")];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(none)?;
    thread::Builder::new()
        .name("calls".into())
        .spawn(move || LocalSet::new().block_on(&runtime, make(calls)))
        .map_err(none)?;
    Ok(Arc::new(move |call| hand.try_send(call).is_ok()))
}

/// Makes calls that come, side by side.
async fn make(calls: Receiver<HttpCall>) {
    while let Some(call) = calls.recv().await {
        spawn_local(one(call));
    }
}

/// Makes one call, within its time.
async fn one(mut call: HttpCall) {
    let done = std::mem::replace(&mut call.done, Box::new(|_| ()));
    let limit = Duration::from_millis(call.timeout_ms.into());
    let said = match timeout(limit, asked(&call)).await {
        Ok(said) => said,
        Err(_late) => Err(format!("no answer within {} ms", call.timeout_ms)),
    };
    done(said);
}

async fn asked(call: &HttpCall) -> Result<HttpAnswer, String> {
    let request = request(call)?;
    let socket = TcpStream::connect((call.host.as_str(), call.port)).await;
    let socket = socket.map_err(|error| error.to_string())?;
    // A call is small, and somebody waits for it.
    let _as_it_is = socket.set_nodelay(true);
    let answer = match call.tls {
        false => spoken(TokioIo::new(socket), request).await?,
        true => {
            let words = |error: openssl::error::ErrorStack| error.to_string();
            let connector = SslConnector::builder(SslMethod::tls()).map_err(words)?;
            let ssl = connector.build().configure().map_err(words)?;
            let ssl = ssl.into_ssl(&call.host).map_err(words)?;
            let mut stream = SslStream::new(ssl, socket).map_err(words)?;
            let agreed = Pin::new(&mut stream).connect().await;
            agreed.map_err(|error| format!("TLS: {error}"))?;
            spoken(TokioIo::new(stream), request).await?
        }
    };
    read(answer, call.answer_len_max).await
}

fn request(call: &HttpCall) -> Result<Request<Full<Bytes>>, String> {
    let host = match call.host.contains(':') {
        true => format!("[{}]:{}", call.host, call.port),
        false => format!("{}:{}", call.host, call.port),
    };
    let mut request = Request::builder()
        .method(call.method)
        .uri(&call.target)
        .header(header::HOST, host)
        .header(header::USER_AGENT, "millrace")
        .body(Full::new(Bytes::from(call.body.clone())))
        .map_err(|error| error.to_string())?;
    for (name, value) in &call.headers {
        let wrong = || format!("'{name}' is no header that can be sent");
        let named = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        if OWN.contains(&named) {
            return Err(format!("the proxy says the header '{name}' itself"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        request.headers_mut().insert(named, value);
    }
    Ok(request)
}

/// Asks, and returns the head of the answer. The connection goes on with its body.
async fn spoken<I>(io: I, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String>
where
    I: Read + Write + Unpin + 'static,
{
    let words = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(io)
        .await
        .map_err(words)?;
    // Whoever drops the answer ends it.
    spawn_local(async move {
        let _gone = connection.await;
    });
    sender.send_request(request).await.map_err(words)
}

async fn read(answer: Response<Incoming>, len_max: usize) -> Result<HttpAnswer, String> {
    let (head, body) = answer.into_parts();
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let headers = headers.collect();
    let body = Limited::new(body, len_max).collect().await;
    let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(error) => error.to_string(),
        Err(_too_long) => {
            "the answer has more bytes than the script's result_mb_max allows".to_owned()
        }
    })?;
    Ok(HttpAnswer {
        status: head.status.as_u16(),
        headers,
        body: body.to_bytes().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;

    /// Answers of a server that says this to each who has asked, and what it was asked.
    fn server(says: &'static [u8]) -> (u16, mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = BufReader::new(client.unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if client.read_line(&mut head).unwrap() == 0 {
                        break;
                    }
                }
                let _nobody = tell.send(head);
                client.get_mut().write_all(says).unwrap();
            }
        });
        (port, told)
    }

    /// The answer to a call.
    fn call(port: u16, change: impl FnOnce(&mut HttpCall)) -> Result<HttpAnswer, String> {
        let take = begin().unwrap();
        let (tell, told) = mpsc::channel();
        let mut call = HttpCall {
            tls: false,
            host: "127.0.0.1".into(),
            port,
            method: "GET",
            target: "/a?b=c".into(),
            headers: vec![("X-Own".into(), "1".into())],
            body: Vec::new(),
            timeout_ms: 10_000,
            answer_len_max: 10,
            done: Box::new(move |said| tell.send(said).unwrap()),
        };
        change(&mut call);
        assert!(take(call));
        told.recv().unwrap()
    }

    #[test]
    fn a_call_has_its_answer() {
        let (port, asked) = server(b"HTTP/1.1 201 Made\r\nX-It: is\r\nContent-Length: 2\r\n\r\nok");
        let answer = call(port, |_| ()).unwrap();
        assert_eq!((answer.status, &*answer.body), (201, &b"ok"[..]));
        assert!(answer.headers.contains(&("x-it".into(), "is".into())));
        let head = asked.recv().unwrap().to_lowercase();
        assert!(head.starts_with("get /a?b=c http/1.1\r\n"), "{head}");
        let host = format!("\r\nhost: 127.0.0.1:{port}\r\n");
        assert!(
            head.contains(&host) && head.contains("\r\nx-own: 1\r\n"),
            "{head}"
        );
        let posted = call(port, |call| {
            (call.method, call.body) = ("POST", b"body".to_vec());
        });
        assert!(posted.is_ok());
        let head = asked.recv().unwrap().to_lowercase();
        assert!(
            head.starts_with("post /a") && head.contains("content-length: 4"),
            "{head}"
        );
    }

    #[test]
    fn an_answer_that_is_too_long_or_none_is_an_error() {
        let (port, _) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890");
        let said = call(port, |_| ()).unwrap_err();
        assert!(said.contains("result_mb_max"), "{said}");
        let (port, _) = server(b"what\r\n\r\n");
        assert!(call(port, |_| ()).is_err());
        let (port, _) = server(b"");
        let said = call(port, |call| call.timeout_ms = 1).unwrap_err();
        assert!(!said.is_empty());
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let said = call(port, |call| call.timeout_ms = 50).unwrap_err();
        assert_eq!(said, "no answer within 50 ms");
        for name in ["Host", "Transfer-Encoding", "a b"] {
            let headers = vec![(name.to_owned(), "x".to_owned())];
            assert!(call(port, |call| call.headers = headers).is_err(), "{name}");
        }
    }
}
