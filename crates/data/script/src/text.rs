//! A script's text, as far as it tells something before it runs.

use lua::required::Module;

/// Level of MySQL Proxy's interface that a script was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// 0.6, and the trunk of 2008: every queued query's result is there, and an OK has no fields.
    V06,
    /// 0.7 and 0.8: a result is there if `resultset_is_needed` says so, and an OK has an empty list
    /// of fields.
    V08,
}

impl Level {
    /// Decides by what the text mentions.
    #[must_use]
    pub fn of(text: &str) -> Self {
        if mentions(text, "resultset_is_needed") {
            Self::V08
        } else {
            Self::V06
        }
    }
}

/// Hooks that a script defines and that run before anybody knows who comes.
#[must_use]
pub fn hooks_of_the_greeting(text: &str) -> Vec<&'static str> {
    ["connect_server", "read_handshake"]
        .into_iter()
        .filter(|hook| defines(text, hook))
        .collect()
}

/// Whether a script judges logins before a server does. One that asks servers itself needs somebody
/// who is in.
#[must_use]
pub fn judges_logins(text: &str, modules: &[Module]) -> bool {
    let hooks = ["read_auth", "read_auth_result"];
    let mut texts = modules.iter().map(|module| &*module.text).chain([text]);
    hooks.iter().any(|hook| defines(text, hook)) && !texts.any(|text| text.contains("luasql"))
}

fn defines(text: &str, hook: &str) -> bool {
    mentions(text, &format!("function {hook}")) || mentions(text, &format!("{hook} ="))
}

/// Whether a script may wait in its middle: its hooks run in coroutines then, which cost more.
pub(crate) fn may_wait(text: &str) -> bool {
    let of_today = ["\"millrace\"", "'millrace'"]
        .iter()
        .any(|word| text.contains(word));
    let asks = [".query", ":query", ".http"]
        .iter()
        .any(|word| text.contains(word));
    let waits = [
        "luasql",
        "usleep",
        "io.open",
        "io.lines",
        "io.input",
        "io.tmpfile",
        "os.execute",
        "os.remove",
        "os.rename",
        "dofile",
        "loadfile",
        "auto-config",
    ];
    of_today && asks || waits.iter().any(|word| text.contains(word))
}

/// Whether a script may look at the rows of an answer, or put something in its place: it mentions a
/// word without which that cannot be done.
pub(crate) fn may_read_results(text: &str) -> bool {
    let words = [
        "rows",
        "fields",
        "raw",
        "resultsets",
        "SEND_RESULT",
        "IGNORE_RESULT",
    ];
    // Names that are put together could be any.
    let makes_names = ["..", "gsub", "format", "char", "pairs", "millrace"];
    let indexes = || text.contains("resultset[") || text.contains("resultset,");
    let by_name = || text.contains('[') && makes_names.iter().any(|one| text.contains(one));
    words.iter().any(|word| text.contains(word)) || indexes() || by_name()
}

/// Whether a script takes the status of a query for less than 0 after an error, as it was in 0.6.
pub(crate) fn compares_status(text: &str) -> bool {
    text.lines().any(|line| {
        let code = line.split_once("--").map_or(line, |(code, _)| code);
        let mut behind = code.split("query_status").skip(1);
        behind.any(|rest| rest.trim_start().starts_with('<'))
    })
}

/// Whether a script has hooks of `require("millrace")`.
#[must_use]
pub fn is_of_today(text: &str) -> bool {
    text.contains("millrace") && text.contains(".on.")
}

/// Whether a script may have timers.
#[must_use]
pub fn may_have_timers(text: &str) -> bool {
    text.contains("millrace") && text.contains(".every")
}

/// Whether the text says this outside of comments of a line.
fn mentions(text: &str, word: &str) -> bool {
    let begins = |code: &str, at: usize| {
        let before = code[..at].chars().next_back();
        let behind = code[at + word.len()..].chars().next();
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    };
    text.lines().any(|line| {
        let code = line.split_once("--").map_or(line, |(code, _)| code);
        code.match_indices(word).any(|(at, _)| begins(code, at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_goes_by_what_is_mentioned_outside_of_comments() {
        let queue = "proxy.queries:append(1, packet, {resultset_is_needed = true})";
        assert_eq!(Level::of(queue), Level::V08);
        assert_eq!(Level::of(&format!("-- {queue}")), Level::V06);
        assert_eq!(Level::of("resultset_is_needed_too = 1"), Level::V06);
    }

    #[test]
    fn a_status_below_zero_is_that_of_0_6() {
        assert!(compares_status(
            "if res.query_status and (res.query_status < 0 ) then"
        ));
        assert!(compares_status("if r.query_status<=-1 then"));
        for other in [
            "if res.query_status == proxy.MYSQLD_PACKET_ERR and n < 0 then",
            "-- query_status < 0",
            "return query_status",
        ] {
            assert!(!compares_status(other), "{other}");
        }
    }

    #[test]
    fn what_only_counts_reads_no_results() {
        let counts = "function read_query_result(inj) n = n + inj.resultset.row_count end";
        assert!(!may_read_results(counts));
        for reads in [
            "for row in inj.resultset.rows do end",
            "return proxy.PROXY_IGNORE_RESULT",
            "local r = inj.resultset[name]",
            "local r = inj.resultset x = r['ro' .. 'ws']",
            "return proxy['PROXY_' .. what]",
        ] {
            assert!(may_read_results(reads), "{reads}");
        }
    }

    #[test]
    fn who_asks_servers_judges_no_logins() {
        assert!(judges_logins("function read_auth(auth) end", &[]));
        assert!(judges_logins("read_auth_result = f", &[]));
        let asks = "require('luasql.mysql') function read_auth(auth) end";
        assert!(!judges_logins(asks, &[]));
        assert!(!judges_logins("function read_query(packet) end", &[]));
    }

    #[test]
    fn hooks_of_the_greeting_are_found() {
        let text = "function read_handshake()\nend\n-- function read_auth()\nlocal function read_query() end\nconnect_server = nil";
        assert_eq!(
            hooks_of_the_greeting(text),
            ["connect_server", "read_handshake"]
        );
    }
}
