//! Lists of networks, as `mysql-proxy_protocol_networks` has them.

use std::net::IpAddr;

/// Is the address in one of the networks: CIDRs or addresses, separated by ','; `*` is every
/// address.
#[must_use]
pub fn in_networks(networks: &str, address: IpAddr) -> bool {
    let address = address.to_canonical();
    split(networks).any(|one| {
        one == "*" || network(one).is_some_and(|(base, bits)| contains(base, bits, address))
    })
}

/// Is every part of the list a network?
pub(crate) fn are_networks(networks: &str) -> bool {
    split(networks).all(|one| one == "*" || network(one).is_some())
}

fn split(networks: &str) -> impl Iterator<Item = &str> {
    networks
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty())
}

/// Its address, and how many bits of it count.
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text
        .split_once('/')
        .map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => most,
        Some(bits) => bits.parse().ok().filter(|bits| *bits <= most)?,
    };
    Some((address, bits))
}

fn contains(base: IpAddr, bits: u32, address: IpAddr) -> bool {
    match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            let differing = base.to_bits() ^ address.to_bits();
            differing.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => {
            let differing = base.to_bits() ^ address.to_bits();
            differing.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(networks: &str, address: &str) -> bool {
        in_networks(networks, address.parse().unwrap())
    }

    #[test]
    fn an_address_is_in_its_networks_and_no_others() {
        assert!(is_in("10.0.0.0/8", "10.255.0.1") && !is_in("10.0.0.0/8", "11.0.0.1"));
        assert!(is_in("192.168.1.7", "192.168.1.7") && !is_in("192.168.1.7", "192.168.1.8"));
        assert!(
            is_in("172.16.0.0/12, 10.1.2.0/31", "10.1.2.1")
                && !is_in("172.16.0.0/12,10.1.2.0/31", "10.1.2.2")
        );
        assert!(is_in("0.0.0.0/0", "203.0.113.9") && !is_in("0.0.0.0/0", "::1"));
        assert!(
            is_in("fd00::/8,::1", "fd12::9")
                && is_in("::1/128", "::1")
                && !is_in("fd00::/8", "fe00::1")
        );
        assert!(is_in("::/0", "2001:db8::1") && is_in("*", "2001:db8::1") && is_in("*", "1.2.3.4"));
        assert!(is_in("10.0.0.0/8", "::ffff:10.0.0.1"));
        assert!(!is_in("", "10.0.0.1"));
    }

    #[test]
    fn what_is_no_network_is_told() {
        for fine in ["", "*", "10.0.0.0/8", "10.0.0.0/8, ::1/128 ,1.2.3.4"] {
            assert!(are_networks(fine), "{fine}");
        }
        for wrong in [
            "10.0.0.0/33",
            "10.0.0/8",
            "somewhere",
            "10.0.0.0/8;1.2.3.4",
            "::/129",
            "1.2.3.4/",
        ] {
            assert!(!are_networks(wrong), "{wrong}");
        }
    }
}
