//! Where doors, and whoever else serves, listen.

use rt::{Address, ListenOptions, Listener, Rt};

/// The addresses of a list as variables have it; an empty one is the usual.
///
/// # Errors
/// One is none.
pub fn addresses(list: &str, usual: &str) -> Result<Vec<Address>, Vec<String>> {
    let list = if list.trim().is_empty() { usual } else { list };
    let mut found = Vec::new();
    for text in config::interfaces(list) {
        found.push(
            text.parse()
                .map_err(|error| vec![format!("'{text}' is not an address: {error}")])?,
        );
    }
    Ok(found)
}

/// Where one of several threads listens: a Unix socket has one owner; the kernel spreads TCP over
/// all.
#[must_use]
pub fn owned(listen: &[Address], nth: u32) -> Vec<Address> {
    let is_own = |at: &&Address| nth == 0 || matches!(at, Address::Tcp(_));
    listen.iter().filter(is_own).cloned().collect()
}

/// Cores share their ports, so the kernel would let another process share them too, and spread the
/// clients over both.
///
/// # Errors
/// Another process listens there.
pub fn nobody_listens(at: &Address) -> Result<(), Vec<String>> {
    if rt::is_inherited(at) {
        // That one leaves it to us.
        return Ok(());
    }
    let Address::Tcp(at) = at else { return Ok(()) };
    match std::net::TcpListener::bind(at) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Err(vec![in_use(at, &error)])
        }
        // Anything else, the core will say.
        _ => Ok(()),
    }
}

fn in_use(at: impl std::fmt::Display, error: &std::io::Error) -> String {
    format!("cannot listen on {at}: {error}: another process listens there (`ss -ltnp` names it)")
}

/// Listens at all of them.
///
/// # Errors
/// That cannot be, and why.
pub fn listen_all(
    rt: &Rt,
    addresses: &[Address],
    options: ListenOptions,
) -> Result<Vec<Listener>, String> {
    let open = |at: &Address| {
        rt.listen(at, options).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => in_use(at, &error),
            _ => format!("cannot listen on {at}: {error}"),
        })
    };
    addresses.iter().map(open).collect()
}
