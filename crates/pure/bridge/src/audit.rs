//! The words of the audit log: who came, who was refused, who left.

/// Something that a client has done to its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Event that was audited.
    pub what: Auditable,
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// When the client came, for what ends its connection; likewise.
    pub came_us: Option<u64>,
    /// Number of the session; 0 for a client that has none yet.
    pub session: u64,
    /// The user; of a refused client the one that it has named.
    pub user: String,
    /// The schema of the session; empty for none.
    pub schema: String,
    /// `address:port` of the client; `localhost` by a Unix socket.
    pub client: String,
    /// `address:port` where it came in, or the path of the socket.
    pub local: String,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Why it was refused, or closed.
    pub why: Option<String>,
}

/// Events that are audited. The names are ProxySQL's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auditable {
    /// A client is logged in.
    ConnectOk,
    /// A client was refused.
    ConnectErr,
    /// COM_CHANGE_USER was accepted.
    ChangeUserOk,
    /// COM_CHANGE_USER was refused.
    ChangeUserErr,
    /// The schema of the session is another: COM_INIT_DB or USE.
    InitDb,
    /// A client has said goodbye.
    Quit,
    /// A client's connection is closed.
    Close,
}

impl Auditable {
    /// Its name in the log, behind `MySQL_Client_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConnectOk => "Connect_OK",
            Self::ConnectErr => "Connect_ERR",
            Self::ChangeUserOk => "Change_User_OK",
            Self::ChangeUserErr => "Change_User_ERR",
            Self::InitDb => "Init_DB",
            Self::Quit => "Quit",
            Self::Close => "Close",
        }
    }
}
