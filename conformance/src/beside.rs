//! Sessions that meet on a connection: clients of one core, and what the proxy says of what they
//! hold.

use crate::by_hand::Raw;
use crate::proxy::Proxy;

/// The rows that a client gets.
pub fn asked(client: &mut Raw, sql: &str) -> Result<Vec<Vec<String>>, String> {
    client.ask(sql).map_err(|error| format!("{sql}: {error}"))
}

/// Variables of the proxy, in force.
pub fn set(proxy: &Proxy, assignments: &str) -> Result<(), String> {
    proxy
        .admin(&format!("{assignments}; LOAD MYSQL VARIABLES TO RUNTIME"))
        .map(drop)
}

/// All sessions have one connection to the server between them.
pub fn narrow(proxy: &Proxy) -> Result<(), String> {
    proxy
        .admin("UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME")
        .map(drop)
}

/// Names of the holds of this session when its last statement is over. An answer does not wait
/// for what a server is asked behind it; that to a ping does, and no server hears of it.
pub fn settled(proxy: &Proxy, client: &mut Raw) -> Result<String, String> {
    client
        .command(&[0x0e])
        .and_then(|()| client.packet())
        .map_err(|error| error.to_string())?;
    held(proxy, client)
}

/// Returns the names of what holds connections of this session now.
pub fn held(proxy: &Proxy, client: &Raw) -> Result<String, String> {
    let said = proxy.admin(&format!(
        "SELECT hold FROM stats_mysql_session_holds WHERE SessionID = {} ORDER BY hold",
        client.id
    ))?;
    Ok(said.lines().collect::<Vec<_>>().join(" "))
}

/// A client on the same core as `other`: the proxy has two, and gives numbers that tell them apart.
pub fn beside(proxy: &Proxy, other: &Raw) -> Result<Raw, String> {
    beside_with(proxy, other, 45)
}

/// Logs a client in on the same core as `other`, with another collation than `utf8mb4_general_ci`.
pub fn beside_with(proxy: &Proxy, other: &Raw, collation: u8) -> Result<Raw, String> {
    // Those on the other core stay until it is found: who comes goes where the fewest are.
    let mut elsewhere = Vec::new();
    loop {
        let (client, _) =
            Raw::log_in_with(proxy.port, b"", collation).map_err(|error| error.to_string())?;
        if client.id % 2 == other.id % 2 {
            return Ok(client);
        }
        elsewhere.push(client);
    }
}
