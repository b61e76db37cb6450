//! `PROXYSQL INTERNAL SESSION`: a client reads what the proxy knows of its session, as JSON.
//!
//! The names are ProxySQL's where it has one. Secrets and other sessions are not in it.

use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::session::Session;
use backend::Backend;
use bridge::Counter;
use sql::{Class, CommandCounter, Lexing};
use std::fmt::Write as _;
use wire::resultset::Column;

/// The largest length that the column is described with.
const SHOWN_MAX: u32 = 1 << 24;

/// Looks for the words `PROXYSQL INTERNAL` at the beginning of a statement; returns the next word,
/// and whether it is the last.
pub(crate) fn asked<'a>(
    sql: &'a [u8],
    class: &Class<'_>,
    lexing: Lexing,
) -> Option<(&'a [u8], bool)> {
    if class.command != CommandCounter::Unknown {
        return None;
    }
    let mut words = lexing.words(sql);
    let mut is = |keyword| words.next().is_some_and(|word| word.is_any(&[keyword]));
    if !is("PROXYSQL") || !is("INTERNAL") {
        return None;
    }
    let word = words.next().map_or(&b""[..], |word| word.text);
    let is_last = words.all(|token| token.is_sign(b';'));
    Some((word, is_last))
}

impl Session {
    /// Answers `PROXYSQL INTERNAL …`, which no server understands.
    pub(crate) async fn internal(&mut self, what: (&[u8], bool)) -> Result<(), Ended> {
        self.next_statement();
        let (word, is_last) = what;
        if !is_last || !word.eq_ignore_ascii_case(b"SESSION") {
            let words = "Unknown PROXYSQL INTERNAL command: there is PROXYSQL INTERNAL SESSION";
            return self.refuse(&Complaint::with(1148, "42000", words)).await;
        }
        let json = self.described();
        let mut out = Vec::with_capacity(json.len() + 128);
        let mut writer = self.writer(&mut out, self.turn.sent, self.flags() | self.turn.flags());
        writer.columns(&[Column {
            length: SHOWN_MAX,
            ..Column::text("session_info")
        }]);
        writer.text_row([Some(json.as_bytes())]);
        writer.end(0);
        self.turn.sent = writer.last_seq();
        self.remembered.counts_by_itself(-1);
        self.core
            .tally
            .add(Counter::QueriesFrontendsBytesSent, out.len() as u64);
        self.hand_over(out).await
    }

    /// The session as JSON.
    fn described(&self) -> String {
        let mut json = Json::default();
        json.open(None, '{');
        json.number("thread_session_id", self.entry.id);
        json.open(Some("client"), '{');
        json.address("client_addr", &self.entry.client.0, self.entry.client.1);
        json.address("proxy_addr", &self.local, self.local_port);
        json.open(Some("userinfo"), '{');
        json.text("username", &self.user_name);
        json.close('}');
        json.open(Some("prepared_statements"), '{');
        json.number("count", self.statements.len());
        json.close('}');
        json.close('}');
        json.open(Some("conn"), '{');
        json.number("autocommit", self.state.autocommit);
        json.number("client_flag", self.caps);
        json.number("status", self.flags());
        json.open(Some("session_variables"), '{');
        for (name, value) in self.state.variables() {
            json.text(name, value);
        }
        json.close('}');
        json.close('}');
        json.text("schemaname", &self.state.schema);
        json.number("default_hostgroup", self.user.default_hostgroup);
        if let Some(hostgroup) = self.entry.hostgroup.get() {
            json.number("current_hostgroup", hostgroup);
        }
        if let Some(schema) = &self.user.default_schema {
            json.text("default_schema", schema);
        }
        json.number("transaction_persistent", self.user.transaction_persistent);
        json.open(Some("backends"), '[');
        for (hostgroup, backend) in self.held.iter() {
            json.backend(hostgroup, backend);
        }
        json.close(']');
        json.close('}');
        json.0
    }
}

/// A text of JSON while it is written.
#[derive(Default)]
struct Json(String);

impl Json {
    /// Begins a member or an element, behind a comma if it is not the first.
    fn begin(&mut self, name: Option<&str>) {
        if !self.0.is_empty() && !self.0.ends_with(['{', '[']) {
            self.0.push(',');
        }
        if let Some(name) = name {
            self.quoted(name);
            self.0.push(':');
        }
    }

    fn quoted(&mut self, text: &str) {
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                c if c < ' ' => {
                    let _ = write!(self.0, "\\u{:04x}", u32::from(c));
                }
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }

    fn open(&mut self, name: Option<&str>, bracket: char) {
        self.begin(name);
        self.0.push(bracket);
    }

    fn close(&mut self, bracket: char) {
        self.0.push(bracket);
    }

    fn text(&mut self, name: &str, value: &str) {
        self.begin(Some(name));
        self.quoted(value);
    }

    /// A number or a boolean.
    fn number(&mut self, name: &str, value: impl std::fmt::Display) {
        self.begin(Some(name));
        let _ = write!(self.0, "{value}");
    }

    fn address(&mut self, name: &str, host: &str, port: u16) {
        self.open(Some(name), '{');
        self.text("address", host);
        self.number("port", port);
        self.close('}');
    }

    /// A connection that the session keeps, and why.
    fn backend(&mut self, hostgroup: u32, backend: &Backend) {
        self.open(None, '{');
        self.number("hostgroup_id", hostgroup);
        let server = backend.place().server();
        self.address("server", &server.hostname, server.port);
        self.open(Some("conn"), '{');
        self.number("thread_id", backend.hello.thread_id);
        self.text("server_version", &backend.hello.version);
        self.close('}');
        self.open(Some("holds"), '[');
        for hold in backend.holds.iter() {
            self.begin(None);
            self.quoted(&format!("{hold:?}"));
        }
        self.close(']');
        self.close('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statements_that_begin_so_are_ours() {
        let lexing = Lexing::default();
        let found = |sql: &'static str| {
            asked(sql.as_bytes(), &lexing.class(sql.as_bytes()), lexing)
                .map(|(word, is_last)| (String::from_utf8_lossy(word).into_owned(), is_last))
        };
        let is = |word: &str, last| Some((word.to_owned(), last));
        assert_eq!(found("PROXYSQL INTERNAL SESSION"), is("SESSION", true));
        assert_eq!(
            found(" proxysql /* x */ internal session ;"),
            is("session", true)
        );
        assert_eq!(found("PROXYSQL INTERNAL NOSUCH 1"), is("NOSUCH", false));
        assert_eq!(found("PROXYSQL INTERNAL"), is("", true));
        for other in [
            "PROXYSQL",
            "SELECT 1",
            "PROXYSQL FLUSH LOGS",
            "`PROXYSQL` INTERNAL SESSION",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn words_are_quoted_and_members_separated() {
        let mut json = Json::default();
        json.open(None, '{');
        json.text("a\"b", "c\\d\n");
        json.open(Some("list"), '[');
        json.begin(None);
        json.quoted("x");
        json.begin(None);
        json.quoted("y");
        json.close(']');
        json.number("n", 1);
        json.close('}');
        assert_eq!(json.0, r#"{"a\"b":"c\\d\u000a","list":["x","y"],"n":1}"#);
    }
}
