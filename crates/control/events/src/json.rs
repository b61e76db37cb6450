//! Format 2: a line of JSON for each statement.

use bridge::{Event, utc};
use serde::Serialize;

/// Keys in the order in which they are written.
#[derive(Serialize)]
struct Line<'a> {
    hostgroup_id: i64,
    thread_id: u64,
    event: &'a str,
    username: &'a str,
    schemaname: &'a str,
    client: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    rows_affected: u64,
    last_insert_id: u64,
    rows_sent: u64,
    query: &'a str,
    starttime_timestamp_us: u64,
    starttime: &'a str,
    endtime_timestamp_us: u64,
    endtime: &'a str,
    duration_us: u64,
    digest: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_stmt_id: Option<u64>,
}

/// Appends the statement as a line. What is not UTF-8 becomes U+FFFD.
pub(crate) fn append(event: &Event<'_>, out: &mut Vec<u8>) {
    let text = |bytes| String::from_utf8_lossy(bytes);
    let server = event.server.map(|(_, server)| text(server));
    let line = Line {
        hostgroup_id: event.server.map_or(-1, |(hostgroup, _)| {
            i64::try_from(hostgroup).unwrap_or(i64::MAX)
        }),
        thread_id: event.session,
        event: &event.kind.name(),
        username: &text(event.user),
        schemaname: &text(event.schema),
        client: &text(event.client),
        server: server.as_deref(),
        rows_affected: event.rows_affected,
        last_insert_id: event.insert_id,
        rows_sent: event.rows_sent,
        query: &text(event.text),
        starttime_timestamp_us: event.began_us,
        starttime: &utc(event.began_us),
        endtime_timestamp_us: event.ended_us,
        endtime: &utc(event.ended_us),
        duration_us: event.ended_us.saturating_sub(event.began_us),
        digest: &format!("0x{:016X}", event.digest),
        client_stmt_id: event.has_statement_id().then_some(event.statement_id),
    };
    serde_json::to_writer(&mut *out, &line)
        .expect("texts and numbers are JSON, and memory is written");
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use bridge::EventKind;

    #[test]
    fn a_line_has_the_keys_of_format_2() {
        let event = Event {
            kind: EventKind::Execute,
            session: 7,
            user: b"app",
            schema: b"shop",
            client: b"10.0.0.1:5000",
            server: Some((2, b"db1:3306")),
            began_us: 1_700_000_000_000_001,
            ended_us: 1_700_000_000_250_001,
            statement_id: 3,
            rows_affected: 1,
            insert_id: 9,
            rows_sent: 0,
            digest: 0xAB,
            text: b"SELECT \"\n\xff\"",
        };
        let mut out = Vec::new();
        append(&event, &mut out);
        let wanted = concat!(
            r#"{"hostgroup_id":2,"thread_id":7,"event":"COM_STMT_EXECUTE","username":"app","schemaname":"shop","#,
            r#""client":"10.0.0.1:5000","server":"db1:3306","rows_affected":1,"last_insert_id":9,"rows_sent":0,"#,
            r#""query":"SELECT \"\n"#,
            "\u{fffd}",
            r#"\"","starttime_timestamp_us":1700000000000001,"starttime":"2023-11-14 22:13:20.000001","#,
            r#""endtime_timestamp_us":1700000000250001,"endtime":"2023-11-14 22:13:20.250001","duration_us":250000,"#,
            r#""digest":"0x00000000000000AB","client_stmt_id":3}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(out.clone()).unwrap(), wanted);
        out.clear();
        append(
            &Event {
                kind: EventKind::Query,
                server: None,
                ..event
            },
            &mut out,
        );
        let line = String::from_utf8(out).unwrap();
        assert!(
            line.starts_with(r#"{"hostgroup_id":-1,"#)
                && !line.contains(r#""server""#)
                && !line.contains("stmt_id"),
            "{line}"
        );
    }
}
