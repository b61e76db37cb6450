//! A framed MySQL connection that one can await: packets, TLS over memory buffers, compression, and
//! both sides of the login. Knows the protocol and the sockets; knows nothing of configuration,
//! pools or SQL.
#![forbid(unsafe_code)]

mod client;
mod conn;
mod error;
pub mod keys;
mod packed;
mod relay;
mod server;
pub mod tls;

pub use client::{
    Account, Compression, Hello, Proof, Refused, Secret, greeting, log_in_again, login,
};
pub use conn::{Conn, Packet, Parted};
pub use error::NetError;
pub use relay::{RelayFailed, Unsaid, change_user_for, log_in_beside, log_in_for};
pub use server::{
    Credential, Door, Entered, Found, Heard, LoginFailed, Proven, authenticate_again, introduce,
    welcome,
};
pub use tls::Shown;
