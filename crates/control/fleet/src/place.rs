//! Where the store is, as `admin-cluster_store` has it.

use http::Tls;

/// The port of etcd for its clients.
const PORT: u16 = 2379;
/// Nodes of an etcd, at most.
const HOSTS_MAX: usize = 16;

/// An etcd, and the part of it that is this fleet's.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// A user and its password, if etcd wants them.
    pub user: Option<(String, String)>,
    /// Its nodes, in the order in which they are tried.
    pub hosts: Vec<(String, u16)>,
    /// Beginning of all keys: no slash at its end.
    pub prefix: String,
    /// Files for TLS, where etcd is asked over it.
    pub tls: Option<Tls>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Place({:?}{})", self.hosts, self.prefix)
    }
}

impl Place {
    /// Reads `etcd://user:password@host:port,host:port/prefix`, or with TLS
    /// `etcds://…/prefix?ca=FILE&cert=FILE&key=FILE`. Without `ca` any certificate is taken; `cert`
    /// and `key` are ours, for an etcd that asks for one.
    ///
    /// # Errors
    /// What is wrong with it, without the password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, tls) = match (text.strip_prefix("etcd://"), text.strip_prefix("etcds://")) {
            (Some(rest), _) => (rest, None),
            (None, Some(rest)) => {
                let (rest, files) = rest.split_once('?').unwrap_or((rest, ""));
                (rest, Some(files_of(files)?))
            }
            (None, None) => {
                return Err("must be empty or begin with 'etcd://' or 'etcds://'".to_owned());
            }
        };
        let (user, rest) = match rest.rsplit_once('@') {
            Some((who, rest)) => {
                let (user, password) = who
                    .split_once(':')
                    .ok_or("has a user without a password: 'user:password@' is meant")?;
                (Some((user.to_owned(), password.to_owned())), rest)
            }
            None => (None, rest),
        };
        let (hosts, prefix) = rest
            .split_once('/')
            .ok_or("has no prefix: '/name' behind the hosts is meant")?;
        let prefix = prefix.trim_end_matches('/');
        if prefix.is_empty() {
            return Err("has no prefix: '/name' behind the hosts is meant".to_owned());
        }
        let hosts = hosts.split(',').map(host).collect::<Result<Vec<_>, _>>()?;
        if hosts.len() > HOSTS_MAX {
            return Err(format!("has more than {HOSTS_MAX} hosts"));
        }
        Ok(Self {
            user,
            hosts,
            prefix: format!("/{prefix}"),
            tls,
        })
    }
}

/// Files for TLS: `ca=FILE&cert=FILE&key=FILE`, each of which may be missing.
fn files_of(text: &str) -> Result<Tls, String> {
    let mut tls = Tls::default();
    for part in text.split('&').filter(|part| !part.is_empty()) {
        let (name, file) = part.split_once('=').unwrap_or((part, ""));
        let field = match name {
            "ca" => &mut tls.ca,
            "cert" => &mut tls.cert,
            "key" => &mut tls.key,
            other => {
                return Err(format!(
                    "has '{other}' behind its prefix: ca=FILE, cert=FILE and key=FILE are meant"
                ));
            }
        };
        if file.is_empty() {
            return Err(format!("has no file for {name}="));
        }
        file.clone_into(field);
    }
    if tls.cert.is_empty() != tls.key.is_empty() {
        return Err("has cert= without key=, or key= without cert=".to_owned());
    }
    Ok(tls)
}

fn host(text: &str) -> Result<(String, u16), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => {
            let port = port.parse().ok().filter(|port| *port > 0);
            (host, port.ok_or("has a host with a port that is none")?)
        }
        None => (text, PORT),
    };
    if host.is_empty() {
        return Err("has a host without a name".to_owned());
    }
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_hosts_a_prefix_and_perhaps_a_user() {
        let place = Place::parse("etcd://u:p@w@h1:2379,h2/shop/").unwrap();
        assert_eq!(place.user, Some(("u".into(), "p@w".into())));
        assert_eq!(place.hosts, [("h1".into(), 2379), ("h2".into(), 2379)]);
        assert_eq!(place.prefix, "/shop");
        assert!(!format!("{place:?}").contains("p@w"));
        assert_eq!(Place::parse("etcd://h/a/b").unwrap().prefix, "/a/b");
        assert_eq!(place.tls, None);
        let place = Place::parse("etcds://h/shop?ca=/a/ca.pem&cert=/c&key=/k").unwrap();
        let [ca, cert, key] = ["/a/ca.pem", "/c", "/k"].map(str::to_owned);
        assert_eq!(place.tls, Some(Tls { ca, cert, key }));
        assert_eq!(place.prefix, "/shop");
        assert_eq!(
            Place::parse("etcds://h/s").unwrap().tls,
            Some(Tls::default())
        );
    }

    #[test]
    fn what_is_no_place_is_told_without_its_password() {
        for wrong in [
            "h:1/x",
            "etcd://h",
            "etcd://h/",
            "etcd:///x",
            "etcd://h:0/x",
            "etcd://h:x/y",
            "etcd://h,/x",
            "etcd://hush@h/x",
            "etcds://u:hush@h/x?ca=",
            "etcds://u:hush@h/x?cert=/c",
            "etcds://u:hush@h/x?cacert=/c",
        ] {
            let words = Place::parse(wrong).unwrap_err();
            assert!(!words.contains("hush"), "{words}");
        }
    }
}
