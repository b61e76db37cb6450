//! A client of mysql_async in this very process: the user and schema that every test server has.

use mysql_async::{Conn, OptsBuilder};

/// How it logs in. What it would ask the server for on its own is told here, so that it sends
/// nothing unasked.
pub fn options(port: u16) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port)
        .user(Some("app"))
        .pass(Some("secret"))
        .db_name(Some("conf"))
        .prefer_socket(false)
        .max_allowed_packet(Some(64 << 20))
        .wait_timeout(Some(28800))
}

/// Logs in.
///
/// # Errors
/// As the client puts it.
pub async fn come_in(port: u16) -> Result<Conn, mysql_async::Error> {
    Conn::new(options(port)).await
}
