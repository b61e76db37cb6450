//! Statements as OTLP's JSON has spans: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>,
//! with the names of <https://opentelemetry.io/docs/specs/semconv/database/>.

use bridge::{Traced, TracedLeg};
use serde_json::{Value, json};

/// SPAN_KIND_* of OTLP.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
/// STATUS_CODE_ERROR.
const ERROR: u8 = 2;

/// A body with the spans of these.
pub(crate) fn body(batch: &[Traced]) -> Vec<u8> {
    let spans: Vec<Value> = batch.iter().flat_map(spans).collect();
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": [
            text("service.name", "millrace"),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ]},
        "scopeSpans": [{
            "scope": {"name": "millrace", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]});
    body.to_string().into_bytes()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Numbers of 64 bits are strings there.
fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

/// Nanoseconds, of microseconds.
fn time(us: u64) -> String {
    format!("{us}000")
}

struct Span<'a> {
    id: u64,
    parent: Option<u64>,
    name: &'a str,
    kind: u8,
    from_us: u64,
    to_us: u64,
    attributes: Vec<Value>,
    events: Vec<Value>,
    error: Option<u16>,
}

impl Span<'_> {
    fn of(self, traced: &Traced) -> Value {
        let mut span = json!({
            "traceId": format!("{:032x}", traced.trace),
            "spanId": format!("{:016x}", self.id),
            "name": self.name,
            "kind": self.kind,
            "startTimeUnixNano": time(self.from_us),
            "endTimeUnixNano": time(self.to_us),
            "attributes": self.attributes,
            "events": self.events,
            "status": match self.error {
                Some(_) => json!({"code": ERROR}),
                None => json!({}),
            },
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        span
    }
}

/// A number for a span within the statement's.
fn within(traced: &Traced, which: u64) -> u64 {
    traced.span.wrapping_add(which).max(1)
}

/// The spans of a statement: its own first.
fn spans(traced: &Traced) -> Vec<Value> {
    let mut attributes = vec![
        text("db.system.name", "mysql"),
        text("db.operation.name", traced.command),
        text("client.address", &traced.client),
        text("enduser.id", &traced.user),
        number("db.response.returned_rows", traced.rows_sent),
        number("millrace.hostgroup", traced.hostgroup.into()),
        number("millrace.session", traced.session),
        json!({"key": "millrace.cached", "value": {"boolValue": traced.cached}}),
    ];
    if !traced.schema.is_empty() {
        attributes.push(text("db.namespace", &traced.schema));
    }
    if !traced.text.is_empty() {
        attributes.push(text("db.query.text", &traced.text));
        attributes.push(text(
            "millrace.digest",
            &format!("0x{:016X}", traced.digest),
        ));
    }
    if traced.legs_asked > 0 {
        attributes.push(number("millrace.legs", traced.legs_asked));
    }
    attributes.extend(error_named(traced.error));
    let name = match traced.schema.is_empty() {
        true => traced.command.to_owned(),
        false => format!("{} {}", traced.command, traced.schema),
    };
    let whole = Span {
        id: traced.span,
        parent: traced.parent,
        name: &name,
        kind: SERVER,
        from_us: traced.began_us,
        to_us: traced.ended_us,
        attributes,
        events: Vec::new(),
        error: traced.error,
    };
    let mut all = vec![whole.of(traced)];
    if let Some((from_us, to_us)) = traced.waited_us {
        let waited = Span {
            id: within(traced, 1),
            parent: Some(traced.span),
            name: "connection",
            kind: INTERNAL,
            from_us,
            to_us,
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        };
        all.push(waited.of(traced));
    }
    if let Some((from_us, first)) = traced.asked_us {
        let server = traced.server.as_ref();
        let asked = Span {
            id: within(traced, 2),
            parent: Some(traced.span),
            name: "server",
            kind: CLIENT,
            from_us,
            to_us: traced.ended_us,
            attributes: asked_there(server.map(|(host, port)| (&**host, *port)), traced.error),
            events: begins(first),
            error: traced.error,
        };
        all.push(asked.of(traced));
    }
    let legs = (3..).zip(&traced.legs);
    all.extend(legs.map(|(which, leg)| of_leg(leg, within(traced, which), traced)));
    all
}

/// A question to one of several partitions.
fn of_leg(leg: &TracedLeg, id: u64, traced: &Traced) -> Value {
    let mut attributes = asked_there(Some((&leg.host, leg.port)), leg.error);
    attributes.push(number("millrace.hostgroup", leg.hostgroup.into()));
    let span = Span {
        id,
        parent: Some(traced.span),
        name: "leg",
        kind: CLIENT,
        from_us: leg.asked_us,
        to_us: leg.ended_us,
        attributes,
        events: begins(leg.answered_us),
        error: leg.error,
    };
    span.of(traced)
}

/// Attributes of what was asked at a server.
fn asked_there(server: Option<(&str, u16)>, error: Option<u16>) -> Vec<Value> {
    let mut attributes = vec![text("db.system.name", "mysql")];
    if let Some((host, port)) = server {
        attributes.push(text("server.address", host));
        attributes.push(number("server.port", port.into()));
    }
    attributes.extend(error_named(error));
    attributes
}

/// Attributes of an error; 0 is one whose number nobody knows.
fn error_named(error: Option<u16>) -> Vec<Value> {
    match error {
        None => Vec::new(),
        Some(0) => vec![text("error.type", "_OTHER")],
        Some(code) => vec![
            text("error.type", &code.to_string()),
            text("db.response.status_code", &code.to_string()),
        ],
    }
}

/// The moment at which an answer began.
fn begins(answered_us: Option<u64>) -> Vec<Value> {
    let event = |us| json!({"name": "first byte", "timeUnixNano": time(us)});
    answered_us.map(event).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn traced() -> Traced {
        Traced {
            fates: Arc::default(),
            to: Arc::from(""),
            trace: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            span: 7,
            parent: None,
            began_us: 1_000_000,
            ended_us: 1_000_900,
            waited_us: None,
            asked_us: None,
            legs: Vec::new(),
            legs_asked: 0,
            command: "SELECT",
            session: 3,
            user: "app".into(),
            schema: "shop".into(),
            client: "10.0.0.9".into(),
            server: None,
            hostgroup: 20,
            digest: 0xAB,
            text: "SELECT ?".into(),
            rows_sent: 1,
            cached: false,
            error: None,
        }
    }

    #[test]
    fn a_statement_from_the_cache_is_one_span_without_a_parent() {
        let all = spans(&Traced {
            cached: true,
            ..traced()
        });
        assert_eq!(all.len(), 1);
        assert_eq!(all[0]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(all[0]["spanId"], "0000000000000007");
        assert_eq!(all[0]["name"], "SELECT shop");
        assert_eq!(all[0]["startTimeUnixNano"], "1000000000");
        assert_eq!(all[0]["endTimeUnixNano"], "1000900000");
        assert!(all[0].get("parentSpanId").is_none());
        assert_eq!(all[0]["status"], json!({}));
    }

    #[test]
    fn what_it_waited_for_and_its_server_are_spans_within() {
        let all = spans(&Traced {
            parent: Some(0xF0),
            waited_us: Some((1_000_100, 1_000_200)),
            asked_us: Some((1_000_300, Some(1_000_800))),
            server: Some(("10.0.0.1".into(), 3306)),
            error: Some(1146),
            ..traced()
        });
        let names: Vec<_> = all.iter().map(|span| &span["name"]).collect();
        assert_eq!(names, ["SELECT shop", "connection", "server"]);
        assert_eq!(all[0]["parentSpanId"], "00000000000000f0");
        assert_eq!(all[1]["parentSpanId"], all[0]["spanId"]);
        assert_eq!(all[2]["parentSpanId"], all[0]["spanId"]);
        assert_ne!(all[1]["spanId"], all[2]["spanId"]);
        assert_eq!(all[2]["events"][0]["timeUnixNano"], "1000800000");
        assert_eq!(all[2]["attributes"][1], text("server.address", "10.0.0.1"));
        let codes: Vec<_> = all.iter().map(|span| &span["status"]).collect();
        assert_eq!(
            codes,
            [&json!({"code": 2}), &json!({}), &json!({"code": 2})]
        );
    }

    #[test]
    fn each_partition_that_was_asked_is_a_span_with_an_end_and_an_error_of_its_own() {
        let leg = |port, error| TracedLeg {
            hostgroup: 4,
            host: "10.0.0.1".into(),
            port,
            asked_us: 1_000_100,
            answered_us: Some(1_000_200),
            ended_us: 1_000_300,
            error,
        };
        let all = spans(&Traced {
            legs: vec![leg(3306, None), leg(3307, Some(1146))],
            legs_asked: 2,
            error: Some(1146),
            ..traced()
        });
        let ids: std::collections::BTreeSet<_> =
            all.iter().map(|span| span["spanId"].to_string()).collect();
        assert_eq!(ids.len(), 3);
        let attributes = all[0]["attributes"].as_array().cloned().unwrap_or_default();
        assert!(attributes.contains(&number("millrace.legs", 2)));
        for (span, (port, status)) in all[1..]
            .iter()
            .zip([(3306, json!({})), (3307, json!({"code": 2}))])
        {
            assert_eq!(span["parentSpanId"], all[0]["spanId"]);
            assert_eq!(span["name"], "leg");
            assert_eq!(span["endTimeUnixNano"], "1000300000");
            assert_eq!(span["attributes"][2], number("server.port", port));
            assert_eq!(span["status"], status);
        }
    }

    #[test]
    fn an_error_whose_number_nobody_knows_is_one_all_the_same() {
        let all = spans(&Traced {
            error: Some(0),
            ..traced()
        });
        let attributes = all[0]["attributes"].as_array().cloned().unwrap_or_default();
        assert!(attributes.contains(&text("error.type", "_OTHER")));
    }
}
