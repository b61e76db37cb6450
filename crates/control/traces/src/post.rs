//! One connection to a collector, and one question at a time.

use config::Collector;
use http::{Http, Lost, Place, Tls};
use rt::Rt;
use std::time::Duration;

/// A collector has so long to take a batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of its answer that are read.
const ANSWER_MAX: usize = 64 << 10;
/// Characters of its answer that an operator reads.
const SHOWN_MAX: usize = 200;

/// A batch was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) why: String,
    /// Whether the same batch may be taken later.
    pub(crate) may_go_on_later: bool,
}

impl From<Lost> for Refused {
    fn from(lost: Lost) -> Self {
        Self {
            why: lost.0,
            may_go_on_later: true,
        }
    }
}

/// Sends batches.
pub(crate) struct Post {
    rt: Rt,
    open: Option<Http>,
}

impl Post {
    pub(crate) fn new(rt: Rt) -> Self {
        Self { rt, open: None }
    }

    /// Sends a batch; what the collector says of it, if it has not taken all.
    pub(crate) async fn send(&mut self, to: &str, body: &[u8]) -> Result<Option<String>, Refused> {
        let never = |why| Refused {
            why,
            may_go_on_later: false,
        };
        let collector = Collector::parse(to).map_err(never)?;
        let place = Place {
            host: collector.host,
            port: collector.port,
            tls: collector.tls.then(Tls::default),
        };
        let rt = self.rt.clone();
        match rt
            .timeout(PATIENCE, self.ask(&place, &collector.path, body))
            .await
        {
            Ok(done) => done,
            Err(_late) => {
                self.open = None;
                Err(Refused {
                    why: format!("no answer within {} s", PATIENCE.as_secs()),
                    may_go_on_later: true,
                })
            }
        }
    }

    async fn ask(
        &mut self,
        place: &Place,
        path: &str,
        body: &[u8],
    ) -> Result<Option<String>, Refused> {
        let mut http = match self.open.take().filter(|open| open.is_free(place)) {
            Some(open) => open,
            None => Http::open(&self.rt, place).await?,
        };
        let headers = [("Content-Type", "application/json")];
        http.ask(path, &headers, Some(body)).await?;
        let answer = http.answer().await?;
        let mut said = Vec::new();
        while said.len() < ANSWER_MAX && http.body(&mut said).await? {}
        if http.is_free(place) {
            self.open = Some(http);
        }
        judge(answer.status, &said)
    }
}

/// Tells what an answer means. <https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>
fn judge(status: u16, said: &[u8]) -> Result<Option<String>, Refused> {
    if (200..300).contains(&status) {
        let said: serde_json::Value = serde_json::from_slice(said).unwrap_or_default();
        let partial = said.get("partialSuccess");
        let words = partial.and_then(|partial| partial.get("errorMessage")?.as_str());
        return Ok(words.filter(|words| !words.is_empty()).map(shown));
    }
    Err(Refused {
        why: format!("status {status}: {}", shown(&String::from_utf8_lossy(said))),
        may_go_on_later: matches!(status, 429 | 502 | 503 | 504),
    })
}

/// On one line, and no longer than somebody reads.
fn shown(words: &str) -> String {
    let chars = words.chars().take(SHOWN_MAX);
    chars
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_whether_a_batch_may_come_again() {
        assert_eq!(judge(200, b"{}"), Ok(None));
        assert_eq!(judge(202, b"not JSON"), Ok(None));
        let partial = br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too\nold"}}"#;
        assert_eq!(judge(200, partial), Ok(Some("too old".into())));
        let of = |status| judge(status, b"no").unwrap_err().may_go_on_later;
        assert_eq!(
            [400, 401, 404, 429, 500, 502, 503, 504].map(of),
            [false, false, false, true, false, true, true, true]
        );
        let why = judge(400, &[b'x'; 1000]).unwrap_err().why;
        assert_eq!(why.len(), "status 400: ".len() + SHOWN_MAX);
    }
}
