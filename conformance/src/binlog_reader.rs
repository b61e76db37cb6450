//! `millrace binlog-reader` as a process of a test, and a client of it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::by_hand;
use crate::process::{Process, TempFolder, free_port};
use crate::proxy::program;
use crate::servers::{Server, tail};
use crate::trials::soon;
use crate::watch::HANGS;

/// A running reader. Dropping it kills it.
pub struct Reader {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    _process: Process,
    folder: TempFolder,
}

/// Whoever is told, line by line.
pub struct Told(BufReader<TcpStream>);

impl Reader {
    /// Follows a server as [`by_hand::USER`].
    pub fn of(server: &Server, flags: &[&str]) -> Result<Self, String> {
        Self::of_user(server, by_hand::USER, flags)
    }

    /// Follows a server as this user, who has no password.
    pub fn of_user(server: &Server, user: &str, flags: &[&str]) -> Result<Self, String> {
        let folder = TempFolder::new("reader").map_err(|error| error.to_string())?;
        let port = free_port().map_err(|error| error.to_string())?;
        let mut arguments: Vec<String> = vec!["binlog-reader".into()];
        arguments.push(format!("--server=127.0.0.1:{}", server.port));
        arguments.push(format!("--user={user}"));
        arguments.push(format!("--listen=127.0.0.1:{port}"));
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let process = Process::start(&program()?, &arguments, &folder.path().join("log"))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            port,
            _process: process,
            folder,
        })
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        tail(&self.folder.path().join("log"))
    }

    /// A client, and the set that it begins with: as soon as the server is followed.
    pub fn client(&self) -> Result<(Told, String), String> {
        let mut found = None;
        soon("told", || {
            let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
                return Ok("nobody listens".to_owned());
            };
            let waits = stream.set_read_timeout(Some(HANGS));
            waits.map_err(|error| error.to_string())?;
            let mut told = Told(BufReader::new(stream));
            let Some(line) = told.line()? else {
                return Ok("sent away".to_owned());
            };
            found = Some((told, line));
            Ok("told".to_owned())
        })
        .map_err(|words| format!("{words}\n{}", self.log()))?;
        found.ok_or_else(|| "nothing was told".to_owned())
    }
}

impl Told {
    /// The next line; none if the reader has ended the connection.
    pub fn line(&mut self) -> Result<Option<String>, String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line);
        let read = read.map_err(|error| format!("nothing is told: {error}"))?;
        Ok((read > 0).then(|| line.trim_end().to_owned()))
    }

    /// Says something, which no client does.
    pub fn say(&mut self, words: &str) -> Result<(), String> {
        let said = self.0.get_mut().write_all(words.as_bytes());
        said.map_err(|error| error.to_string())
    }
}
