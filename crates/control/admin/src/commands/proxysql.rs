//! `PROXYSQL …`: what is done to the proxy as a whole.

use super::command::{Command, Verb};
use super::words::{after, is, unquoted};
use bridge::FlushCache;

const VERBS: &[(&str, Verb)] = &[
    ("PROXYSQL START", Verb::Start),
    ("PROXYSQL STOP", Verb::Stop),
    ("PROXYSQL RESTART", Verb::Restart),
    ("PROXYSQL PAUSE", Verb::Pause),
    ("PROXYSQL RESUME", Verb::Resume),
    ("PROXYSQL SHUTDOWN SLOW", Verb::Shutdown),
    ("PROXYSQL SHUTDOWN", Verb::Shutdown),
    ("PROXYSQL KILL", Verb::Kill),
    ("PROXYSQL READONLY", Verb::ReadOnly),
    ("PROXYSQL READWRITE", Verb::ReadWrite),
    ("PROXYSQL FLUSH LOGS", Verb::FlushLogs),
    ("PROXYSQL FLUSH CONFIGDB", Verb::FlushConfigDb),
    ("PROXYSQL RELOAD TLS", Verb::ReloadTls),
];

const NOT_AVAILABLE: &[(&str, &str)] = &[
    (
        "PROXYSQL COREDUMP",
        "PROXYSQL COREDUMP is not available in this version",
    ),
    (
        "PROXYSQL COMPRESSEDCOREDUMP",
        "PROXYSQL COMPRESSEDCOREDUMP is not available in this version",
    ),
    (
        "PROXYSQL MEMPROFILE START",
        "PROXYSQL MEMPROFILE is not available in this version",
    ),
    (
        "PROXYSQL MEMPROFILE STOP",
        "PROXYSQL MEMPROFILE is not available in this version",
    ),
    (
        "PROXYSQL GCOV DUMP",
        "PROXYSQL GCOV is not available in this version",
    ),
    (
        "PROXYSQL GCOV RESET",
        "PROXYSQL GCOV is not available in this version",
    ),
];

pub(super) fn parse(words: &[&str]) -> Option<Command> {
    if let Some(which) = after(words, "PROXYSQL FLUSH QUERY CACHE") {
        return flush_cache(which).map(Command::FlushCache);
    }
    if let Some([uuid, ifaces @ ..]) = after(words, "PROXYSQL CLUSTER_NODE_UUID") {
        return (is_uuid(uuid) && ifaces.len() <= 1).then(|| Command::ClusterNode {
            uuid: (*uuid).to_ascii_lowercase(),
            ifaces: ifaces.first().copied().unwrap_or_default().to_owned(),
        });
    }
    if let Some([name]) = after(words, "PROXYSQL CLUSTER_PULL") {
        return Some(Command::ClusterPull((*name).to_owned()));
    }
    if is(words, &["PROXYSQL FLUSH MYSQL CLIENT HOSTS"]) {
        return Some(Command::FlushClientHosts);
    }
    let verb = VERBS
        .iter()
        .find(|(text, _)| is(words, &[text]))
        .map(|(_, verb)| Command::Proxysql(*verb));
    let not_available = || {
        NOT_AVAILABLE
            .iter()
            .find(|(text, _)| after(words, text).is_some())
            .map(|(_, why)| Command::NotAvailable(why))
    };
    verb.or_else(not_available)
}

pub(crate) fn is_uuid(text: &str) -> bool {
    let is_fine = |(at, byte): (usize, u8)| {
        if matches!(at, 8 | 13 | 18 | 23) {
            byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    };
    text.len() == 36 && text.bytes().enumerate().all(is_fine)
}

/// `[FOR TABLE [schema.]name | FOR DIGEST 0x…]`, of which only the first three words are
/// ProxySQL's.
fn flush_cache(which: &[&str]) -> Option<FlushCache> {
    match which {
        [] => Some(FlushCache::All),
        [r#for, kind, name @ ..]
            if r#for.eq_ignore_ascii_case("FOR") && kind.eq_ignore_ascii_case("TABLE") =>
        {
            let whole = name.join(" ");
            let (first, rest) = name_at(&whole)?;
            let (schema, name) = match rest.strip_prefix('.') {
                Some(rest) => (
                    Some(first),
                    name_at(rest).filter(|(_, rest)| rest.is_empty())?.0,
                ),
                None => (None, Some(first).filter(|_| rest.is_empty())?),
            };
            Some(FlushCache::Table {
                schema: schema.map(Into::into),
                name: name.into(),
            })
        }
        [r#for, kind, digest]
            if r#for.eq_ignore_ascii_case("FOR") && kind.eq_ignore_ascii_case("DIGEST") =>
        {
            let digest = unquoted(digest).to_ascii_lowercase();
            u64::from_str_radix(digest.strip_prefix("0x")?, 16)
                .ok()
                .map(FlushCache::Digest)
        }
        _ => None,
    }
}

/// The name that a text begins with, and what follows it. In quotes it may have any sign, a quote
/// twice.
fn name_at(text: &str) -> Option<(String, &str)> {
    let Some(quote) = text
        .chars()
        .next()
        .filter(|sign| ['`', '"', '\''].contains(sign))
    else {
        let end = text.find(['.', ' ']).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_owned(), &text[end..]));
    };
    let (mut name, mut rest) = (String::new(), &text[1..]);
    loop {
        let (inside, behind) = rest.split_once(quote)?;
        name.push_str(inside);
        match behind.strip_prefix(quote) {
            Some(more) => {
                name.push(quote);
                rest = more;
            }
            None => return Some((name, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_proxy_says_who_it_is_and_where_it_listens() {
        let parsed = |text: &str| parse(&text.split_whitespace().collect::<Vec<_>>());
        let uuid = "01234567-89ab-4cde-8f01-23456789ABCD";
        let node = |ifaces: &str| {
            Some(Command::ClusterNode {
                uuid: uuid.to_lowercase(),
                ifaces: ifaces.into(),
            })
        };
        assert_eq!(
            parsed(&format!(
                "proxysql cluster_node_uuid {uuid} 127.0.0.1:6032;/tmp/a"
            )),
            node("127.0.0.1:6032;/tmp/a")
        );
        assert_eq!(
            parsed(&format!("PROXYSQL CLUSTER_NODE_UUID {uuid}")),
            node("")
        );
        for wrong in [
            "",
            "x",
            &uuid[1..],
            &uuid.replace('-', "0"),
            &format!("{uuid} a b"),
        ] {
            assert_eq!(
                parsed(&format!("PROXYSQL CLUSTER_NODE_UUID {wrong}")),
                None,
                "{wrong}"
            );
        }
        assert_eq!(
            parsed("PROXYSQL CLUSTER_PULL mysql_users"),
            Some(Command::ClusterPull("mysql_users".into()))
        );
        assert_eq!(parsed("PROXYSQL CLUSTER_PULL"), None);
    }

    #[test]
    fn results_are_flushed_whole_by_table_or_by_digest() {
        let flushed = |text: &str| match parse(&text.split_whitespace().collect::<Vec<_>>()) {
            Some(Command::FlushCache(which)) => Some(which),
            _ => None,
        };
        assert_eq!(flushed("proxysql flush query cache"), Some(FlushCache::All));
        let table = |schema: Option<&str>, name: &str| {
            Some(FlushCache::Table {
                schema: schema.map(Into::into),
                name: name.into(),
            })
        };
        assert_eq!(
            flushed("PROXYSQL FLUSH QUERY CACHE FOR TABLE t"),
            table(None, "t")
        );
        assert_eq!(
            flushed("PROXYSQL FLUSH QUERY CACHE for table `shop`.`t`"),
            table(Some("shop"), "t")
        );
        for (name, schema, table_name) in [
            ("`t`", None, "t"),
            ("'shop'.\"t\"", Some("shop"), "t"),
            ("`a.b`.`c,d`", Some("a.b"), "c,d"),
            ("`a``b`", None, "a`b"),
            ("shop.`my table`", Some("shop"), "my table"),
        ] {
            assert_eq!(
                flushed(&format!("PROXYSQL FLUSH QUERY CACHE FOR TABLE {name}")),
                table(schema, table_name),
                "{name}"
            );
        }
        for name in ["", "a.b.c", "`a", "my table", "a.", ".a", "`a`b"] {
            assert_eq!(
                flushed(&format!("PROXYSQL FLUSH QUERY CACHE FOR TABLE {name}")),
                None,
                "{name}"
            );
        }
        assert_eq!(
            flushed("PROXYSQL FLUSH QUERY CACHE FOR DIGEST '0xAB'"),
            Some(FlushCache::Digest(0xAB))
        );
        assert_eq!(flushed("PROXYSQL FLUSH QUERY CACHE FOR DIGEST 12"), None);
        assert_eq!(flushed("PROXYSQL FLUSH QUERY CACHE NOW"), None);
    }
}
