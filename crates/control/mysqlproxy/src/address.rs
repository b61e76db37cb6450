//! Addresses as MySQL Proxy writes them: `host:port`, `:port`, `host`, or the path of a socket.

/// Host and port of a server; a socket has its path and port 0.
pub(crate) fn of_server(text: &str) -> Result<(String, u16), String> {
    if text.starts_with('/') {
        return Ok((text.to_owned(), 0));
    }
    let (host, port) = parts(text, 3306)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let host = if bare.is_empty() { "127.0.0.1" } else { bare };
    Ok((host.to_owned(), port))
}

/// Where to listen, as a list of interfaces has it. `usual` is the port if none is named.
pub(crate) fn to_listen(text: &str, usual: u16) -> Result<String, String> {
    if text.starts_with('/') {
        return Ok(text.to_owned());
    }
    let (host, port) = parts(text, usual)?;
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    Ok(format!("{host}:{port}"))
}

fn parts(text: &str, usual: u16) -> Result<(&str, u16), String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("an address is empty".to_owned());
    }
    if text.contains([';', ' ']) {
        return Err(format!("'{text}' is no address"));
    }
    // The colons of an address of IPv6 are between brackets.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err(format!(
            "'{text}': an IPv6 address stands in brackets, as in [::1]:3306"
        ));
    }
    let port = match port {
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| format!("'{text}': a port is a number from 1 to 65535"))?,
        None => usual,
    };
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_out_its_host_or_its_port() {
        let server = |text| of_server(text).unwrap();
        assert_eq!(server("db:3307"), ("db".into(), 3307));
        assert_eq!(server("db"), ("db".into(), 3306));
        assert_eq!(server(":3307"), ("127.0.0.1".into(), 3307));
        assert_eq!(server("[::1]:3307"), ("::1".into(), 3307));
        assert_eq!(server("[::1]"), ("::1".into(), 3306));
        assert_eq!(server("/tmp/mysql.sock"), ("/tmp/mysql.sock".into(), 0));
        assert_eq!(to_listen(":4040", 1).unwrap(), "0.0.0.0:4040");
        assert_eq!(to_listen("[::]:4040", 1).unwrap(), "[::]:4040");
        assert_eq!(to_listen("127.0.0.1", 4040).unwrap(), "127.0.0.1:4040");
        assert_eq!(
            to_listen("/tmp/proxy.sock", 4040).unwrap(),
            "/tmp/proxy.sock"
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let refused = |text| of_server(text).unwrap_err();
        assert_eq!(refused(""), "an address is empty");
        assert_eq!(
            refused("db:x"),
            "'db:x': a port is a number from 1 to 65535"
        );
        assert_eq!(
            refused("db:0"),
            "'db:0': a port is a number from 1 to 65535"
        );
        assert_eq!(refused("a;b"), "'a;b' is no address");
        assert_eq!(
            refused("::1:3306"),
            "'::1:3306': an IPv6 address stands in brackets, as in [::1]:3306"
        );
    }
}
