//! `proxysql_servers`: the proxies that share their configuration.

use crate::refusal::Refusals;
use crate::{ProxyRow, Refusal};

/// The rows, in the order of host and port.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Proxies(Vec<ProxyRow>);

/// More are not asked: each is a connection, and each asks all others.
const MAX: usize = 1000;

impl Proxies {
    /// From the rows of `proxysql_servers`.
    ///
    /// # Errors
    /// Every row that names no place.
    pub fn build(rows: impl IntoIterator<Item = ProxyRow>) -> Result<Self, Vec<Refusal>> {
        let mut refusals = Refusals::of("proxysql_servers");
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_unstable_by(|a, b| (&a.hostname, a.port).cmp(&(&b.hostname, b.port)));
        for row in &rows {
            let which = || format!("hostname {}, port {}", row.hostname, row.port);
            let _port: u16 = refusals.number(which, "port", row.port, (1, 65_535));
            if row.hostname.trim().is_empty() {
                refusals.add(which, "hostname", "must not be empty");
            }
        }
        if rows.len() > MAX {
            refusals.add(
                String::new,
                "",
                format!("has {} rows; {MAX} are the most", rows.len()),
            );
        }
        refusals.or(Self(rows))
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[ProxyRow] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_an_order_and_a_place() {
        let row = |hostname: &str, port| ProxyRow {
            hostname: hostname.into(),
            port,
            ..ProxyRow::default()
        };
        let built = Proxies::build([row("b", 6032), row("a", 7032), row("a", 6032)]).unwrap();
        let places: Vec<_> = built
            .rows()
            .iter()
            .map(|row| (row.hostname.as_str(), row.port))
            .collect();
        assert_eq!(places, [("a", 6032), ("a", 7032), ("b", 6032)]);
        let refused = Proxies::build([row("", 6032), row("a", 70_000)]).unwrap_err();
        let words: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "proxysql_servers (hostname , port 6032): hostname must not be empty",
                "proxysql_servers (hostname a, port 70000): port must be from 1 to 65535; '70000' is not"
            ]
        );
    }
}
