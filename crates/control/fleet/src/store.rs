//! etcd, asked through its gateway for JSON: one question after another to one node, and to the next
//! when that one is silent.
//!
//! <https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/>

use crate::place::Place;
use http::{Http, Lost};
use openssl::base64::{decode_block, encode_block};
use rt::Rt;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// How long it may take to reach a node.
const CONNECT: Duration = Duration::from_secs(1);
/// How long a node may take to answer: an election takes a second or two.
const ANSWER: Duration = Duration::from_secs(3);
/// Bytes of an answer, or of an event, at most.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Codes of gRPC: nobody answers in time,
const DEADLINE: i64 = 4;
/// or nobody can,
const UNAVAILABLE: i64 = 14;
/// or the token is none any more.
const UNAUTHENTICATED: i64 = 16;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// No node answers.
    Lost(String),
    /// etcd says no.
    Said(String),
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Lost(words) | Self::Said(words)) = self;
        f.write_str(words)
    }
}

impl std::error::Error for Failed {}

impl From<Lost> for Failed {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost.0)
    }
}

/// Why one node has not answered as was wished.
enum Refused {
    /// Another may.
    Lost(String),
    /// Another token may do.
    Token,
    /// All would say so.
    Said(String),
}

impl From<Lost> for Refused {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost.0)
    }
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) key: String,
    pub(crate) value: Vec<u8>,
    /// Revision of the store in which it was written last.
    pub(crate) revision: u64,
}

/// An etcd.
pub(crate) struct Store {
    rt: Rt,
    place: Place,
    /// The node that has answered last.
    at: Cell<usize>,
    token: RefCell<Option<String>>,
    idle: RefCell<Option<Http>>,
}

impl Store {
    pub(crate) fn new(rt: Rt, place: Place) -> Self {
        Self {
            rt,
            place,
            at: Cell::new(0),
            token: RefCell::default(),
            idle: RefCell::default(),
        }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The answer of the first node that has one. A question may so be asked twice: each of ours is
    /// the same then.
    pub(crate) async fn ask(&self, path: &str, question: &Value) -> Result<Value, Failed> {
        let mut why = String::new();
        let mut tokens = 0;
        let mut tries = 0;
        while tries < self.place.hosts.len() {
            match self.ask_node(path, question).await {
                Ok(answer) => return Ok(answer),
                Err(Refused::Said(words)) => return Err(Failed::Said(words)),
                Err(Refused::Token) if tokens < 2 => {
                    tokens += 1;
                    self.token.take();
                }
                Err(Refused::Token) => return Err(Failed::Said("it takes no token".into())),
                Err(Refused::Lost(words)) => {
                    tries += 1;
                    why = format!("{}: {words}", self.node());
                    self.at.set(self.at.get().wrapping_add(1));
                }
            }
        }
        Err(Failed::Lost(why))
    }

    fn host(&self) -> (String, u16) {
        self.place.hosts[self.at.get() % self.place.hosts.len()].clone()
    }

    fn node(&self) -> String {
        let (host, port) = self.host();
        format!("{host}:{port}")
    }

    async fn open(&self) -> Result<Http, Refused> {
        let (host, port) = self.host();
        let tls = self.place.tls.clone();
        let place = http::Place { host, port, tls };
        let opened = self.rt.timeout(CONNECT, Http::open(&self.rt, &place)).await;
        Ok(opened.map_err(|_late| Refused::Lost("it cannot be reached in time".to_owned()))??)
    }

    async fn line(&self) -> Result<Http, Refused> {
        let (host, port) = self.host();
        let tls = self.place.tls.clone();
        let place = http::Place { host, port, tls };
        match self.idle.take().filter(|line| line.is_free(&place)) {
            Some(line) => Ok(line),
            None => self.open().await,
        }
    }

    async fn ask_node(&self, path: &str, question: &Value) -> Result<Value, Refused> {
        let mut line = self.line().await?;
        let token = self.token(&mut line).await?;
        let asked = asked(&mut line, path, token.as_deref(), question);
        let answer = self.rt.timeout(ANSWER, asked).await;
        let answer = answer.map_err(|_late| silent())??;
        self.idle.replace(Some(line));
        Ok(answer)
    }

    /// A token for a user, fetched if there is none.
    async fn token(&self, line: &mut Http) -> Result<Option<String>, Refused> {
        let Some((name, password)) = &self.place.user else {
            return Ok(None);
        };
        if let Some(token) = self.token.borrow().clone() {
            return Ok(Some(token));
        }
        let question = json!({ "name": name, "password": password });
        let asked = asked(line, "/v3/auth/authenticate", None, &question);
        let answer = self.rt.timeout(ANSWER, asked).await;
        let answer = answer.map_err(|_late| silent())??;
        let token = answer["token"].as_str().map(str::to_owned);
        let token = token.ok_or_else(|| Refused::Said("it has given no token".to_owned()))?;
        self.token.replace(Some(token.clone()));
        Ok(Some(token))
    }

    /// All keys with this beginning, in order; with the store's revision.
    pub(crate) async fn range(
        &self,
        beginning: &str,
        keys_only: bool,
    ) -> Result<(u64, Vec<Kept>), Failed> {
        let question = json!({
            "key": coded(beginning.as_bytes()), "range_end": coded(&end_of(beginning)), "keys_only": keys_only,
        });
        let answer = self.ask("/v3/kv/range", &question).await?;
        let kept = answer["kvs"].as_array().into_iter().flatten().map(kept);
        let kept = kept.collect::<Option<Vec<_>>>().ok_or_else(no_answer)?;
        Ok((number(&answer["header"]["revision"]), kept))
    }

    /// One key.
    pub(crate) async fn read(&self, key: &str) -> Result<Option<Kept>, Failed> {
        let question = json!({ "key": coded(key.as_bytes()) });
        let answer = self.ask("/v3/kv/range", &question).await?;
        match answer["kvs"].get(0) {
            Some(found) => kept(found).map(Some).ok_or_else(no_answer),
            None => Ok(None),
        }
    }

    /// `lease`: with which the key goes; 0 for none.
    pub(crate) async fn put(&self, key: &str, value: &[u8], lease: u64) -> Result<(), Failed> {
        let question = json!({ "key": coded(key.as_bytes()), "value": coded(value), "lease": lease.to_string() });
        self.ask("/v3/kv/put", &question).await.map(drop)
    }

    /// Drops all keys with this beginning.
    pub(crate) async fn drop_all(&self, beginning: &str) -> Result<(), Failed> {
        let question =
            json!({ "key": coded(beginning.as_bytes()), "range_end": coded(&end_of(beginning)) });
        self.ask("/v3/kv/deleterange", &question).await.map(drop)
    }

    /// Drops one.
    pub(crate) async fn drop_one(&self, key: &str) -> Result<(), Failed> {
        let question = json!({ "key": coded(key.as_bytes()) });
        self.ask("/v3/kv/deleterange", &question).await.map(drop)
    }

    /// Writes these at once, if a key was written last in this revision (0: if it is not there). The
    /// revision of that, or none.
    pub(crate) async fn put_if(
        &self,
        (key, revision): (&str, u64),
        puts: &[(String, Vec<u8>)],
    ) -> Result<Option<u64>, Failed> {
        let put = |(key, value): &(String, Vec<u8>)| json!({ "request_put": { "key": coded(key.as_bytes()), "value": coded(value) } });
        let question = json!({
            "compare": [{
                "target": "MOD", "result": "EQUAL",
                "key": coded(key.as_bytes()), "mod_revision": revision.to_string(),
            }],
            "success": puts.iter().map(put).collect::<Vec<_>>(),
        });
        let answer = self.ask("/v3/kv/txn", &question).await?;
        let revision = number(&answer["header"]["revision"]);
        Ok((answer["succeeded"] == true).then_some(revision))
    }

    /// A lease of so many seconds; its number.
    pub(crate) async fn lease(&self, seconds: u64) -> Result<u64, Failed> {
        let question = json!({ "TTL": seconds.to_string() });
        let answer = self.ask("/v3/lease/grant", &question).await?;
        match number(&answer["ID"]) {
            0 => Err(no_answer()),
            id => Ok(id),
        }
    }

    /// Whether the lease is still there, from now on for its whole time.
    pub(crate) async fn keep_alive(&self, lease: u64) -> Result<bool, Failed> {
        let question = json!({ "ID": lease.to_string() });
        let answer = self.ask("/v3/lease/keepalive", &question).await?;
        Ok(number(&answer["result"]["TTL"]) > 0)
    }

    /// Watches what is written to keys with this beginning, from this revision on.
    pub(crate) async fn watch(&self, beginning: &str, from: u64) -> Result<Watch, Failed> {
        let question = json!({ "create_request": {
            "key": coded(beginning.as_bytes()), "range_end": coded(&end_of(beginning)),
            "start_revision": from.to_string(),
        }});
        let opened = async {
            let mut line = self.open().await?;
            let token = self.token(&mut line).await?;
            let body = question.to_string();
            let headers = headers(token.as_deref());
            line.ask("/v3/watch", &headers, Some(body.as_bytes()))
                .await?;
            let answer = line.answer().await?;
            match answer.status {
                200 => Ok(line),
                status => Err(Refused::Lost(format!("a watch is answered with {status}"))),
            }
        };
        let opened = self.rt.timeout(ANSWER, opened).await;
        match opened.unwrap_or_else(|_late| Err(silent())) {
            Ok(line) => Ok(Watch {
                line,
                bytes: Vec::new(),
            }),
            Err(Refused::Lost(words) | Refused::Said(words)) => {
                let node = self.node();
                self.at.set(self.at.get().wrapping_add(1));
                Err(Failed::Lost(format!("{node}: {words}")))
            }
            Err(Refused::Token) => {
                self.token.take();
                Err(Failed::Lost("its token is none any more".to_owned()))
            }
        }
    }
}

/// Rings when something was written.
#[derive(Debug)]
pub struct Watch {
    line: Http,
    /// Bytes that came and are no whole line yet.
    bytes: Vec<u8>,
}

impl Watch {
    /// Waits for the next writing. What is dropped while it waits has lost nothing.
    ///
    /// # Errors
    /// The watch has ended; a new one begins behind what is read then.
    pub async fn next(&mut self) -> Result<(), Failed> {
        loop {
            while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                let said: Value = serde_json::from_slice(&line).unwrap_or_default();
                let result = &said["result"];
                if !result.is_object() || result["canceled"] == true {
                    return Err(Failed::Lost("the watch was ended by etcd".to_owned()));
                }
                if result["events"].is_array() {
                    return Ok(());
                }
            }
            if self.bytes.len() > ANSWER_BYTES_MAX || !self.line.body(&mut self.bytes).await? {
                return Err(Failed::Lost("the watch has ended".to_owned()));
            }
        }
    }
}

/// Asks, and reads the answer to its end.
async fn asked(
    line: &mut Http,
    path: &str,
    token: Option<&str>,
    question: &Value,
) -> Result<Value, Refused> {
    let body = question.to_string();
    line.ask(path, &headers(token), Some(body.as_bytes()))
        .await?;
    let status = line.answer().await?.status;
    let mut bytes = Vec::new();
    while line.body(&mut bytes).await? {
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err(Refused::Lost("its answer is too long".to_owned()));
        }
    }
    let answer: Value = serde_json::from_slice(&bytes)
        .map_err(|_error| Refused::Lost(format!("its answer ({status}) is no JSON")))?;
    let error = match answer.get("error") {
        None if status == 200 => return Ok(answer),
        error => error.and_then(Value::as_str).unwrap_or("it fails"),
    };
    let words: String = error
        .chars()
        .filter(|c| !c.is_control())
        .take(300)
        .collect();
    Err(match answer["code"].as_i64() {
        Some(DEADLINE | UNAVAILABLE) => Refused::Lost(words),
        Some(UNAUTHENTICATED) if token.is_some() => Refused::Token,
        _ => Refused::Said(words),
    })
}

fn headers(token: Option<&str>) -> Vec<(&str, &str)> {
    let token = token.map(|token| ("Authorization", token));
    [("Content-Type", "application/json")]
        .into_iter()
        .chain(token)
        .collect()
}

fn silent() -> Refused {
    Refused::Lost(format!("no answer within {} s", ANSWER.as_secs()))
}

fn no_answer() -> Failed {
    Failed::Said("its answer cannot be understood".to_owned())
}

fn coded(bytes: &[u8]) -> String {
    encode_block(bytes)
}

/// The first key behind all with this beginning.
fn end_of(beginning: &str) -> Vec<u8> {
    let mut end = beginning.as_bytes().to_vec();
    // A key of ours is never made of the last byte alone: it is a text.
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}

/// A number of 64 bits is a text in JSON, and left out where it is 0.
fn number(value: &Value) -> u64 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| value.as_u64()).unwrap_or_default()
}

fn kept(value: &Value) -> Option<Kept> {
    let bytes = |name: &str| match value.get(name).and_then(Value::as_str) {
        None | Some("") => Some(Vec::new()),
        Some(text) => decode_block(text).ok(),
    };
    Some(Kept {
        key: String::from_utf8(bytes("key")?).ok()?,
        value: bytes("value")?,
        revision: number(&value["mod_revision"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_keys_are_read_as_the_gateway_writes_them() {
        assert_eq!(
            [json!("7"), json!(7), json!(null), json!("x")].map(|value| number(&value)),
            [7, 7, 0, 0]
        );
        let given = json!({ "key": coded(b"/a"), "mod_revision": "3", "value": coded(b"v") });
        let wanted = Kept {
            key: "/a".into(),
            value: b"v".to_vec(),
            revision: 3,
        };
        assert_eq!(kept(&given), Some(wanted));
        assert_eq!(kept(&json!({ "key": "?" })), None);
        assert_eq!(end_of("/a/"), b"/a0");
    }
}
