//! How to listen.

/// Wishes for a listener.
#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    /// How many connections may wait to be accepted.
    pub backlog: u32,
    /// Several listeners share the address, and the kernel spreads new connections over them.
    pub reuse_port: bool,
    /// Who may connect at the path of a Unix socket: permission bits, whatever the umask. To
    /// connect is to write.
    pub unix_mode: u32,
}

impl Default for ListenOptions {
    /// Everybody may connect.
    fn default() -> Self {
        Self {
            backlog: 1024,
            reuse_port: false,
            unix_mode: 0o777,
        }
    }
}
