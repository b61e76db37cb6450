//! A framed MySQL connection that one can await: packets, TLS over memory buffers, and both sides of
//! the login. Knows the protocol and the sockets; knows nothing of configuration, pools or SQL.
#![forbid(unsafe_code)]

mod client;
mod conn;
mod error;
mod server;
pub mod tls;

pub use client::{Account, Hello, Refused, Secret, login};
pub use conn::{Conn, Packet};
pub use error::NetError;
pub use server::{Credential, Door, Entered, LoginFailed, authenticate_again, welcome};
