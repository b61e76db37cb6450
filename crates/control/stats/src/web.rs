//! HTTP at `admin-restapi_port`: `GET /metrics`, and the programs of `restapi_routes`.

use crate::Work;
use crate::families::Format;
use crate::rest;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, HeaderValue};
use hyper::{Method, Request, StatusCode};
use site::{Answer, Site, typed};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// Listens where the variables say, or not at all. The log has why it cannot.
pub(crate) async fn load(site: &mut Site, work: &Rc<Work>) {
    let wanted = work.wanted_address();
    let asked = work.clone();
    let answer = async move |_peer, request: Request<Incoming>| match request
        .uri()
        .path()
        .starts_with(rest::PREFIX)
    {
        true => rest::answer(&asked, request).await,
        false => answer(&asked, &request).await,
    };
    if let Err(error) = site.serve(wanted, None, answer).await {
        let address = wanted.map_or_else(String::new, |address| address.to_string());
        (work.note)(&format!("metrics: cannot listen on {address}: {error}"));
    }
}

/// The address that `admin-restapi_interface` and `admin-restapi_port` name.
pub(crate) fn address(interface: &str, port: u64) -> Option<SocketAddr> {
    let ip: IpAddr = interface.trim().parse().ok()?;
    let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
    Some(SocketAddr::new(ip, port))
}

async fn answer(work: &Work, request: &Request<Incoming>) -> Answer {
    if request.uri().path() != "/metrics" {
        return words(
            StatusCode::NOT_FOUND,
            "there is /metrics, and /sync/ with what restapi_routes has\n",
        );
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = words(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        refusal.headers_mut().insert(ALLOW, allowed);
        return refusal;
    }
    let accept = request.headers().get(ACCEPT);
    let format = Format::of_accept(accept.and_then(|value| value.to_str().ok()).unwrap_or(""));
    match work.metrics(format).await {
        Ok(text) => typed(StatusCode::OK, format.content_type(), text),
        Err(error) => words(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n")),
    }
}

fn words(status: StatusCode, words: &str) -> Answer {
    typed(status, "text/plain; charset=utf-8", words.to_owned())
}
