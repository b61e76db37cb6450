//! Settings of traces (docs/features/traces.md).

use std::sync::Arc;
use std::time::Duration;

/// Which statements are traced, and who takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traces {
    /// `mysql-traces_endpoint`.
    pub to: Arc<str>,
    /// `mysql-traces_per_million`.
    pub per_million: u64, // <= 1_000_000
    /// `mysql-traces_slow_ms`; none if being slow is no reason.
    pub slow: Option<Duration>,
    /// `mysql-traces_parent`.
    pub parents: bool,
}

/// A collector, as `mysql-traces_endpoint` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    /// Whether it is reached by TLS.
    pub tls: bool,
    /// Name or address.
    pub host: String,
    /// Of TCP; by default 80, or 443 with TLS.
    pub port: u16,
    /// Path with its leading `/`.
    pub path: String,
}

impl Collector {
    /// Reads an address like `http://host:4318/v1/traces`.
    ///
    /// # Errors
    /// What is wrong with it, in words that follow the variable's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            Err(format!(
                "must be like http://host:4318/v1/traces; '{text}' {why}"
            ))
        };
        let (tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return wrong("begins with neither http:// nor https://"),
        };
        let (place, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        if place.contains('@') {
            return wrong("has a user, and collectors are asked without one");
        }
        // [::1]:4318, host:4318, host
        let (host, port) = match place
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => match place.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let port = match port.map(str::parse) {
            None => {
                if tls {
                    443
                } else {
                    80
                }
            }
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return wrong("has no port from 1 to 65535"),
        };
        if host.is_empty() {
            return wrong("names no host");
        }
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("has a path that no address has");
        }
        Ok(Self {
            tls,
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_address_of_http() {
        let of =
            |text: &str| Collector::parse(text).map(|all| (all.tls, all.host, all.port, all.path));
        let well = |tls, host: &str, port, path: &str| Ok((tls, host.into(), port, path.into()));
        assert_eq!(
            of("http://127.0.0.1:4318/v1/traces"),
            well(false, "127.0.0.1", 4318, "/v1/traces")
        );
        assert_eq!(of("https://tempo"), well(true, "tempo", 443, "/"));
        assert_eq!(
            of("http://[::1]:80/x?y=1"),
            well(false, "::1", 80, "/x?y=1")
        );
        for (text, part) in [
            ("collector:4318", "begins with neither"),
            ("http://:4318/", "names no host"),
            ("http://host:0/", "no port"),
            ("http://host:70000/", "no port"),
            ("http://me:secret@host/", "has a user"),
            ("http://host/a b", "a path that no address has"),
        ] {
            let said = of(text).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
