//! Addresses of the console of scripts.

use config::Variables;
use rt::Address;

/// Where it is.
pub(crate) fn addresses(variables: &Variables) -> Vec<Address> {
    let all = config::interfaces(&variables.mysql_script_console_ifaces);
    all.filter_map(|at| at.parse().ok()).collect()
}

/// Whether a client that came to this address is at the console.
pub(crate) fn is_at(console: &[Address], (host, port): &(String, u16)) -> bool {
    console.iter().any(|address| match address {
        Address::Tcp(at) => {
            let ip = at.ip().to_canonical();
            at.port() == *port && (ip.is_unspecified() || ip.to_string() == *host)
        }
        Address::Unix(path) => *port == 0 && path.display().to_string() == *host,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_at_the_console_by_the_address_that_it_came_to() {
        let console = ["0.0.0.0:4041", "127.0.0.2:5", "/tmp/c.sock"];
        let console = console.map(|at| at.parse::<Address>().unwrap());
        let is = |host: &str, port| is_at(&console, &(host.to_owned(), port));
        assert!(is("10.0.0.1", 4041) && is("127.0.0.2", 5) && is("/tmp/c.sock", 0));
        assert!(!is("10.0.0.1", 4040) && !is("127.0.0.1", 5) && !is("/tmp/d.sock", 0));
    }
}
