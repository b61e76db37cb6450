//! Mails of scripts: a core hands one over, and a control thread sends it.

use std::fmt;

/// A mail as a script has written it, and the server that takes it.
#[derive(Clone, PartialEq, Eq)]
pub struct Letter {
    /// Name or address of the mail server.
    pub host: String,
    /// Its port. At 465 TLS comes before the first word, at others when the server offers it.
    pub port: u16,
    /// User and password, where the server wants some.
    pub login: Option<(String, String)>,
    /// Address of the sender.
    pub from: String,
    /// Addresses of those who get it.
    pub to: Vec<String>,
    /// Subject: one line.
    pub subject: String,
    /// Text.
    pub body: String,
}

/// A mail on its way to the thread that sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The mail itself.
    pub letter: Letter,
    /// Mails that the process sends in a minute at most (`mysql-script_mails_per_minute`).
    pub per_minute: u32,
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Letter({}:{} {:?})", self.host, self.port, self.subject)
    }
}
