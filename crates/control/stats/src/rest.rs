//! `/sync/…`: programs of `restapi_routes`, which answer requests.

use crate::Work;
use config::RestRouteRow;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, Request, StatusCode};
use site::{Answer, typed};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Where the addresses of the table begin.
pub(crate) const PREFIX: &str = "/sync/";

/// Programs that run at once at most.
const RUNNING_MAX: usize = 16;
/// Bytes of a request's JSON at most; the kernel takes no argument of 128 KiB.
const ASKED_BYTES_MAX: usize = 64 << 10;
/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Time in which the body of a request has to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);
/// Pause between two looks at a program.
const LOOKS_EVERY: Duration = Duration::from_millis(5);
/// Time that the output of one that has ended may still take.
const SAID_WITHIN: Duration = Duration::from_millis(500);

const JSON: &str = "application/json";

/// A status, and why there is no other.
type Refused = (StatusCode, String);

/// Answers a request to an address of the table.
pub(crate) async fn answer(work: &Work, request: Request<Incoming>) -> Answer {
    match answered(work, request).await {
        Ok(text) => typed(StatusCode::OK, JSON, text),
        Err((status, words)) => {
            let text = serde_json::json!({ "error": words }).to_string();
            typed(status, JSON, text)
        }
    }
}

async fn answered(work: &Work, request: Request<Incoming>) -> Result<String, Refused> {
    let (head, body) = request.into_parts();
    if is_of_a_page(&head.headers) {
        let words = "a page in a browser may not have programs run".to_owned();
        return Err((StatusCode::FORBIDDEN, words));
    }
    let uri = head.uri.path().strip_prefix(PREFIX).unwrap_or_default();
    let found = work.snapshot().rest.at(head.method.as_str(), uri).cloned();
    let Some(route) = found else {
        let words = format!("restapi_routes has no active row for {} {uri}", head.method);
        return Err((StatusCode::NOT_FOUND, words));
    };
    let asked = match head.method {
        Method::POST => posted(body).await?,
        _ => arguments(head.uri.query().unwrap_or_default()),
    };
    if asked.len() > ASKED_BYTES_MAX {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, "more than 64 KiB".to_owned()));
    }
    let running = work.running.clone();
    if Rc::strong_count(&running) > RUNNING_MAX + 1 {
        let words = format!("{RUNNING_MAX} programs run already");
        return Err((StatusCode::SERVICE_UNAVAILABLE, words));
    }
    let id = route.id;
    let ran = tokio::task::spawn_blocking(move || run(&route, &asked)).await;
    drop(running);
    let failed = |words: String| {
        (
            StatusCode::FAILED_DEPENDENCY,
            format!("restapi_routes (id {id}): {words}"),
        )
    };
    let said = ran
        .map_err(|error| failed(error.to_string()))?
        .map_err(failed)?;
    match serde_json::from_str::<serde_json::Value>(&said) {
        Ok(_) => Ok(said),
        Err(error) => Err(failed(format!("what the program says is no JSON: {error}"))),
    }
}

/// Whether a page asks, be it one of somebody else that a person looks at: browsers say so.
fn is_of_a_page(headers: &HeaderMap) -> bool {
    let fetched = headers.get(HeaderName::from_static("sec-fetch-site"));
    headers.contains_key(ORIGIN) || fetched.is_some_and(|site| site != "none")
}

/// JSON of a body.
async fn posted(body: Incoming) -> Result<String, Refused> {
    let bad = |words: &str| (StatusCode::BAD_REQUEST, words.to_owned());
    let whole = timeout(
        ARRIVES_WITHIN,
        Limited::new(body, ASKED_BYTES_MAX).collect(),
    )
    .await;
    let whole = whole.map_err(|_late| bad("the body did not arrive within 5 seconds"))?;
    let whole =
        whole.map_err(|_| (StatusCode::PAYLOAD_TOO_LARGE, "more than 64 KiB".to_owned()))?;
    let text =
        String::from_utf8(whole.to_bytes().into()).map_err(|_| bad("the body is no UTF-8"))?;
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(bad(&format!("the body is no JSON: {error}"))),
    }
}

/// Arguments of an address as JSON: an object of texts.
fn arguments(query: &str) -> String {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let pairs = pairs.map(|(name, value)| (name.into_owned(), value.into_owned().into()));
    serde_json::Value::Object(pairs.collect()).to_string()
}

/// Runs the program of a row, with the JSON as its argument; what it says. Blocks.
fn run(route: &RestRouteRow, asked: &str) -> Result<String, String> {
    let until = Instant::now() + Duration::from_millis(route.timeout_ms.max(0).cast_unsigned());
    // A name without a slash is a file of this folder, and not looked for in PATH.
    let begun = Command::new(Path::new(".").join(&route.script))
        .arg0(&route.script)
        .arg(asked)
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let mut child = begun.map_err(|error| format!("the program could not be begun: {error}"))?;
    let (tell, told) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        let read = move || {
            let mut said = Vec::new();
            let read = out.take(ANSWER_BYTES_MAX as u64 + 1).read_to_end(&mut said);
            let _late = tell.send(read.map(|_| said));
        };
        let reader = thread::Builder::new().name("rest".into()).spawn(read);
        reader.map_err(|error| format!("no thread for its output: {error}"))?;
    }
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if Instant::now() < until => thread::sleep(LOOKS_EVERY),
            Ok(None) => {
                break Err(format!(
                    "the program was ended after {} ms",
                    route.timeout_ms
                ));
            }
            Err(error) => break Err(error.to_string()),
        }
    };
    // Whoever it has begun ends with it.
    rt::signal_group(&child, rt::Signal::Kill);
    if ended.is_err() {
        let _ended = child.wait();
    }
    let status = ended?;
    if !status.success() {
        return Err(format!("the program ended with {status}"));
    }
    let said = told
        .recv_timeout(SAID_WITHIN)
        .map_err(|_| "its output did not end".to_owned())?;
    let said = said.map_err(|error| error.to_string())?;
    if said.len() > ANSWER_BYTES_MAX {
        return Err("the program says more than 1 MiB".to_owned());
    }
    String::from_utf8(said).map_err(|_| "what the program says is no UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;
    use std::os::unix::fs::PermissionsExt as _;

    fn ran(script: &str, timeout_ms: i64) -> Result<String, String> {
        let path = std::env::temp_dir().join(format!(
            "millrace-rest-{}-{}",
            std::process::id(),
            script.len()
        ));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let route = RestRouteRow {
            timeout_ms,
            script: path.display().to_string(),
            ..RestRouteRow::default()
        };
        let said = run(&route, r#"{"a":"it's"}"#);
        std::fs::remove_file(&path).unwrap();
        said
    }

    #[test]
    fn a_program_gets_the_json_and_is_ended_in_time_with_whom_it_began() {
        assert_eq!(ran("echo \"$1\"", 10_000).unwrap(), "{\"a\":\"it's\"}\n");
        assert!(
            ran("exit 3", 10_000)
                .unwrap_err()
                .contains("exit status: 3")
        );
        let begun = Instant::now();
        assert_eq!(
            ran("sleep 100 & sleep 100", 200).unwrap_err(),
            "the program was ended after 200 ms"
        );
        assert!(ran("head -c 2000000 /dev/zero", 10_000).is_err());
        assert!(
            ran("printf '\\377'", 10_000)
                .unwrap_err()
                .contains("no UTF-8")
        );
        // What it leaves behind does not keep its answer.
        assert_eq!(ran("sleep 100 & echo 1", 10_000).unwrap(), "1\n");
        assert!(begun.elapsed() < Duration::from_secs(60));
        let missing = RestRouteRow {
            script: "/no/such".into(),
            ..RestRouteRow::default()
        };
        assert!(
            run(&missing, "{}")
                .unwrap_err()
                .contains("could not be begun")
        );
    }

    #[test]
    fn arguments_are_texts_whatever_they_look_like() {
        assert_eq!(arguments("a=1&b=%22%7D&c"), r#"{"a":"1","b":"\"}","c":""}"#);
        assert_eq!(arguments(""), "{}");
    }

    #[test]
    fn a_page_of_somebody_has_nothing_run() {
        let of = |name: HeaderName, value| {
            is_of_a_page(
                &[(name, HeaderValue::from_static(value))]
                    .into_iter()
                    .collect(),
            )
        };
        let site = || HeaderName::from_static("sec-fetch-site");
        assert!(
            of(ORIGIN, "https://evil.example") && of(ORIGIN, "null") && of(site(), "cross-site")
        );
        assert!(!of(site(), "none") && !of(hyper::header::HOST, "x"));
    }
}
