//! Addresses of HTTP that scripts call.

/// Bytes of one at most.
const LEN_MAX: usize = 8192;

/// Host, and what is asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) tls: bool,
    /// In small letters, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query.
    pub(crate) target: String,
}

impl Url {
    /// Reads `http://host:port/path?query`, and `https://`.
    ///
    /// # Errors
    /// Words for the script's author.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |words: &str| Err(format!("'{text}' is no address of HTTP: {words}"));
        if text.len() > LEN_MAX {
            return Err(format!("an address has {LEN_MAX} bytes at most"));
        }
        let is_sign = |c: char| c.is_ascii_graphic() && !"\\^`{|}<>\"".contains(c);
        if !text.chars().all(is_sign) {
            return wrong("blanks and signs beyond ASCII are written as %20 and its like");
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let tls = match &*scheme.to_ascii_lowercase() {
            "http" => false,
            "https" => true,
            _ => return wrong("it begins with http:// or https://"),
        };
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (place, target) = rest.split_at(at);
        if place.contains('@') {
            return wrong("a name and a password go into a header");
        }
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some(parts) => parts,
                None => return wrong("its bracket is not closed"),
            },
            None => place.split_at(place.find(':').unwrap_or(place.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port > 0),
            None if port.is_empty() => Some(if tls { 443 } else { 80 }),
            None => None,
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        let (true, true, Some(port)) = (!host.is_empty(), host.chars().all(is_part), port) else {
            return wrong("it needs a host, and perhaps a port");
        };
        let target = target.split('#').next().unwrap_or_default();
        Ok(Self {
            tls,
            host: host.to_ascii_lowercase(),
            port,
            target: match target.starts_with('/') {
                true => target.to_owned(),
                false => format!("/{target}"),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused() {
        for (text, wanted) in [
            ("http://a", (false, "a", 80, "/")),
            (
                "HTTPS://Auth.Example.org/x?y=1#z",
                (true, "auth.example.org", 443, "/x?y=1"),
            ),
            ("http://10.0.0.1:8080?q", (false, "10.0.0.1", 8080, "/?q")),
            ("http://[::1]:81/%20", (false, "::1", 81, "/%20")),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(
                (url.tls, &*url.host, url.port, &*url.target),
                wanted,
                "{text}"
            );
        }
        for wrong in [
            "",
            "a",
            "ftp://a",
            "http://",
            "http:///x",
            "http://u:p@a/",
            "http://a b/",
            "http://a:0/",
            "http://a:x/",
            "http://[::1/",
            "http://a\\@b/",
            "http://a\r\nHost: b/",
            "http://\u{e4}/",
            "http://a%2f/",
        ] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Url::parse(&format!("http://a/{}", "x".repeat(LEN_MAX))).is_err());
    }
}
