//! Hosts that scripts may call by HTTP, or send mails to: a list.

/// Ports of a host that says none: those of HTTP and HTTPS.
const USUAL: [u16; 2] = [80, 443];
/// Ports of a mail server that says none: SMTP between servers, over TLS, and from programs.
const USUAL_FOR_MAIL: [u16; 3] = [25, 465, 587];

/// Hosts, each with its port or the usual ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpHosts(Vec<(Box<str>, Option<u16>)>);

impl HttpHosts {
    /// From names and addresses with commas between them, each with `:port` behind it, or without.
    /// An address of IPv6 is in brackets.
    ///
    /// # Errors
    /// Words about one that is none.
    pub fn parse(list: &str) -> Result<Self, String> {
        let entries = list.split(',').map(str::trim);
        let hosts = entries.filter(|entry| !entry.is_empty()).map(|entry| {
            let wrong = || {
                format!("'{entry}' is no host; one is auth.example.org, 10.0.0.5:8080 or [::1]:80")
            };
            let (host, port) = match entry.strip_prefix('[') {
                Some(rest) => rest.split_once(']').ok_or_else(wrong)?,
                None => entry.split_at(entry.find(':').unwrap_or(entry.len())),
            };
            let port = match port.strip_prefix(':') {
                Some(port) => Some(
                    port.parse()
                        .ok()
                        .filter(|port| *port > 0)
                        .ok_or_else(wrong)?,
                ),
                None if port.is_empty() => None,
                None => return Err(wrong()),
            };
            let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
            match !host.is_empty() && host.chars().all(is_part) {
                true => Ok((host.to_ascii_lowercase().into(), port)),
                false => Err(wrong()),
            }
        });
        hosts.collect::<Result<_, String>>().map(Self)
    }

    /// Whether a script may call there. The host is in small letters, without brackets.
    #[must_use]
    pub fn allow(&self, host: &str, port: u16) -> bool {
        self.name(host, port, &USUAL)
    }

    /// Whether a script may send mails there. The host is as in [`HttpHosts::allow`].
    #[must_use]
    pub fn allow_mail(&self, host: &str, port: u16) -> bool {
        self.name(host, port, &USUAL_FOR_MAIL)
    }

    fn name(&self, host: &str, port: u16, usual: &[u16]) -> bool {
        let allows = |(of, at): &(Box<str>, Option<u16>)| {
            **of == *host && at.map_or(usual.contains(&port), |at| at == port)
        };
        self.0.iter().any(allows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_allows_what_it_names() {
        let hosts = HttpHosts::parse("Auth.example.org, 10.0.0.5:8080,[::1]:81, ").unwrap();
        for (host, port, allowed) in [
            ("auth.example.org", 80, true),
            ("auth.example.org", 443, true),
            ("auth.example.org", 8080, false),
            ("10.0.0.5", 8080, true),
            ("10.0.0.5", 80, false),
            ("::1", 81, true),
            ("example.org", 80, false),
        ] {
            assert_eq!(hosts.allow(host, port), allowed, "{host}:{port}");
        }
        assert!(!HttpHosts::parse("").unwrap().allow("", 80));
        let mail = |port| hosts.allow_mail("auth.example.org", port);
        assert!(mail(25) && mail(587) && !mail(80));
        for wrong in [
            "*", "a b", "a:0", "a:x", "a:70000", "[::1", "[::1]x", ":80", "http://a",
        ] {
            assert!(HttpHosts::parse(wrong).is_err(), "{wrong}");
        }
    }
}
