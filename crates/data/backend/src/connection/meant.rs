//! Whether the connection that a server knows by a number is the one that is meant.
//!
//! A server that vanished without a word may have a successor at its address, which numbers
//! connections by itself; so may one of several servers to which something between us and them
//! leads. What tells connections apart is where they come from, if the server sees that as we do:
//! its own row shows a connection whether it does.

use net::{Conn, Hello};
use rt::Address;
use wire::command::write_query;
use wire::packet;
use wire::response::{Expect, Follow, Response};

/// Bytes of an answer: it has two short rows at most.
const ANSWER_LEN_MAX: usize = 1 << 16;

/// Where servers list connections. Everybody sees those of his own user.
const OF_MARIADB: &[&str] = &["information_schema.PROCESSLIST"];
/// MySQL's first is empty without its performance schema, and may be too small for all; it would
/// have the second no more used.
const OF_MYSQL: &[&str] = &[
    "performance_schema.processlist",
    "information_schema.PROCESSLIST",
];

/// A connection, as we know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ours<'a> {
    /// The server's number of it.
    pub(crate) thread_id: u32,
    /// Our end, as the server was to see it.
    pub(crate) end: &'a Address,
}

/// Owner of the number that a connection has had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The connection that is meant, as far as can be seen.
    It,
    /// Nothing that our user may see.
    Gone,
    /// Somebody else's, or nobody knows.
    Another,
}

/// Looks for a connection, over another to the same address and of the same user.
///
/// # Errors
/// The server has not answered.
pub(crate) async fn look_for(
    meant: Ours<'_>,
    conn: &mut Conn,
    hello: &Hello,
    own: Ours<'_>,
) -> Result<Found, ()> {
    // Servers count upwards: who is older than the other has the lower number.
    let mut found = if meant.thread_id < own.thread_id {
        Found::It
    } else {
        Found::Another
    };
    for list in if hello.is_mariadb() {
        OF_MARIADB
    } else {
        OF_MYSQL
    } {
        let (one, two) = (own.thread_id, meant.thread_id);
        let text = format!("SELECT ID, HOST FROM {list} WHERE ID IN ({one}, {two}) LIMIT 2");
        let answer = ask(conn, hello, &text).await?;
        // What is no result has no rows.
        let rows = wire::rows::read(&answer, hello.caps).map_err(drop)?.rows;
        match judge(meant, own, &rows) {
            Seen::Nothing => {}
            Seen::Vaguely(what) => found = what,
            Seen::Clearly(what) => return Ok(what),
        }
    }
    Ok(found)
}

/// Evidence that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Not even who asks.
    Nothing,
    /// No ports, or others than ours (something on the way changes them), or not all connections.
    Vaguely(Found),
    /// Where connections come from.
    Clearly(Found),
}

fn judge(meant: Ours<'_>, own: Ours<'_>, rows: &[Vec<Option<Vec<u8>>>]) -> Seen {
    let host_of = |id: u32| {
        let row = rows.iter().find(|row| {
            row.first().and_then(Option::as_deref) == Some(id.to_string().as_bytes())
        })?;
        Some(parted(std::str::from_utf8(row.get(1)?.as_deref()?).ok()?))
    };
    let Some((own_name, own_port)) = host_of(own.thread_id) else {
        return Seen::Nothing;
    };
    let Some((name, port)) = host_of(meant.thread_id) else {
        return Seen::Vaguely(Found::Gone);
    };
    let of = |is: bool| if is { Found::It } else { Found::Another };
    match (own.end, meant.end) {
        (Address::Tcp(here), Address::Tcp(there)) if own_port == Some(here.port()) => {
            Seen::Clearly(of(name == own_name && port == Some(there.port())))
        }
        _ => Seen::Vaguely(of(name == own_name && meant.thread_id < own.thread_id)),
    }
}

/// `127.0.0.1:40000`, `::1:40000`, `app.example.com:40000`, `localhost`.
fn parted(host: &str) -> (&str, Option<u16>) {
    let with_port = host
        .rsplit_once(':')
        .and_then(|(name, port)| Some((name, port.parse().ok()?)));
    with_port.map_or((host, None), |(name, port)| (name, Some(port)))
}

/// The answer to a statement of ours, with the headers of its packets.
async fn ask(conn: &mut Conn, hello: &Hello, text: &str) -> Result<Vec<u8>, ()> {
    let (mut payload, mut framed) = (Vec::new(), Vec::new());
    write_query(&mut payload, text.as_bytes(), hello.caps);
    packet::append(&mut framed, &mut 0, &payload);
    conn.send_commands(framed).await.map_err(drop)?;
    let (mut response, mut answer) = (Response::expect(Expect::Query, hello.caps), Vec::new());
    loop {
        let chunk = conn.recv().await.map_err(drop)?;
        if chunk.is_empty() || answer.len() + chunk.len() > ANSWER_LEN_MAX {
            return Err(());
        }
        answer.extend_from_slice(&chunk);
        match response.follow(&chunk) {
            Ok(Follow::More) => {}
            Ok(Follow::Ended { .. }) => return Ok(answer),
            Err(_malformed) => return Err(()),
        }
    }
}

/// Says something that is answered with OK or an error. Whether it was OK.
pub(crate) async fn say(conn: &mut Conn, hello: &Hello, text: &str) -> Result<bool, ()> {
    let answer = ask(conn, hello, text).await?;
    Ok(answer.get(packet::HEADER_LEN) == Some(&wire::ok::OK_HEADER))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges what is behind number 7 for connection `own`, whose end has port 41000; that of the
    /// one that is meant has 40000.
    fn judged(own: u32, listed: &[(u32, &str)]) -> Seen {
        let (here, there): (Address, Address) = (
            "10.0.0.5:41000".parse().unwrap(),
            "10.0.0.5:40000".parse().unwrap(),
        );
        let row = |(id, host): &(u32, &str)| {
            vec![
                Some(id.to_string().into_bytes()),
                Some(host.as_bytes().to_vec()),
            ]
        };
        let rows: Vec<_> = listed.iter().map(row).collect();
        judge(
            Ours {
                thread_id: 7,
                end: &there,
            },
            Ours {
                thread_id: own,
                end: &here,
            },
            &rows,
        )
    }

    #[test]
    fn a_port_tells_the_connection_from_a_strangers() {
        let clearly = |listed: &[(u32, &str)], what| {
            assert_eq!(judged(9, listed), Seen::Clearly(what), "{listed:?}")
        };
        clearly(&[(7, "10.0.0.5:40000"), (9, "10.0.0.5:41000")], Found::It);
        clearly(
            &[(9, "app.example.com:41000"), (7, "app.example.com:40000")],
            Found::It,
        );
        clearly(
            &[(7, "10.0.0.5:40001"), (9, "10.0.0.5:41000")],
            Found::Another,
        );
        clearly(
            &[(7, "10.0.0.6:40000"), (9, "10.0.0.5:41000")],
            Found::Another,
        );
        clearly(&[(7, "localhost"), (9, "10.0.0.5:41000")], Found::Another);
        // Its numbers may have begun anew.
        assert_eq!(
            judged(3, &[(7, "::1:40000"), (3, "::1:41000")]),
            Seen::Clearly(Found::It)
        );
    }

    #[test]
    fn where_ports_are_not_ours_the_younger_connection_has_the_higher_number() {
        let vaguely = |own, listed: &[(u32, &str)], what| {
            assert_eq!(judged(own, listed), Seen::Vaguely(what), "{own} {listed:?}")
        };
        for (seven, nine) in [
            ("10.1.1.1:1025", "10.1.1.1:1026"),
            ("localhost", "localhost"),
            ("10.1.1.1", "10.1.1.1"),
        ] {
            vaguely(9, &[(7, seven), (9, nine)], Found::It);
            vaguely(3, &[(7, seven), (3, nine)], Found::Another);
        }
        vaguely(
            9,
            &[(7, "10.1.1.2:1025"), (9, "10.1.1.1:1026")],
            Found::Another,
        );
        vaguely(9, &[(9, "10.0.0.5:41000")], Found::Gone);
        // It is the one that asks.
        vaguely(7, &[(7, "10.1.1.1:1025")], Found::Another);
        assert_eq!(judged(9, &[]), Seen::Nothing);
        assert_eq!(judged(9, &[(7, "10.0.0.5:40000")]), Seen::Nothing);
    }

    #[test]
    fn a_place_is_parted_from_its_port() {
        assert_eq!(parted("10.0.0.5:40000"), ("10.0.0.5", Some(40_000)));
        assert_eq!(parted("fe80::1:40000"), ("fe80::1", Some(40_000)));
        for without in ["localhost", "", "db:", "db:70000"] {
            assert_eq!(parted(without), (without, None));
        }
    }
}
