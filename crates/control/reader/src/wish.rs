//! What can be said to `millrace binlog-reader`: flags of our own, those of ProxySQL's reader, and
//! the environment of its container.

use crate::follow::Server;
use crate::serve::{Manner, serve};
use events::lines::Log;
use line::{Tls, Who};
use std::path::PathBuf;
use std::time::Duration;

/// Port of a reader.
const LISTEN: u16 = 6020;
/// Port of a server.
const PORT: u16 = 3306;
/// Bytes that wait for a client.
const UNSENT_MAX: usize = 2 << 20;
/// A login, and an answer, may take so long.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Whom to follow, and how to tell of it.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(disable_help_flag = true)]
pub struct Wish {
    /// Whom to follow: host, host:port or the path of a socket [default: MYSQL_HOST and MYSQL_PORT of the environment, else
    /// 127.0.0.1:3306]
    #[arg(short = 'h', long, visible_alias = "host", value_name = "HOST[:PORT]")]
    pub server: Option<String>,
    /// Its port, if --server has none
    #[arg(short = 'P', long, value_name = "PORT")]
    pub port: Option<u16>,
    /// An account with REPLICATION SLAVE there [default: MYSQL_USER of the environment]
    #[arg(short, long, value_name = "NAME")]
    pub user: Option<String>,
    /// Its password; everybody on this machine can read it here [default: MYSQL_PASSWORD of the
    /// environment]
    #[arg(short, long, value_name = "PASSWORD")]
    pub password: Option<String>,
    /// Where proxies connect: a port, or address:port [default: LISTEN_PORT of the environment, else
    /// 6020]
    #[arg(short, long, value_name = "[ADDRESS:]PORT")]
    pub listen: Option<String>,
    /// File of the log [default: standard error]
    #[arg(short = 'L', long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Milliseconds between what a client is told; 0: at once [default: UPDATE_FREQ_MS of the
    /// environment, else 0]
    #[arg(short = 't', long, value_name = "MS")]
    pub every_ms: Option<u64>,
    /// 1: intervals of numbers in place of numbers, for Millrace and for ProxySQL from 3.0.8 on
    /// [default: BATCHING of the environment, else 0]
    #[arg(short, long, value_name = "0|1")]
    pub batching: Option<u8>,
    /// Bytes that may wait for a client; one that takes nothing is sent away
    #[arg(short = 'B', long, value_name = "BYTES")]
    pub buffer: Option<usize>,
    /// Has no effect: it stays in the foreground
    #[arg(short, long)]
    pub foreground: bool,
    /// Has no effect: the log has all that there is to say
    #[arg(short, long)]
    pub verbose: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

/// Follows the server, and serves whoever connects, until the process ends. `environment`: a
/// variable of it.
///
/// # Errors
/// A flag says nothing that makes sense, or it cannot listen.
pub fn run(wish: &Wish, environment: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
    let (server, manner) = wish.understood(environment)?;
    let log = match &wish.log {
        Some(path) => Log::file(path).map_err(|error| format!("{}: {error}", path.display())),
        None => Log::stderr().map_err(|error| error.to_string()),
    }?;
    let note = move |words: &str| log.line(words);
    rt::run(rt::Driver::READINESS, |rt| serve(rt, server, manner, note))
        .map_err(|error| error.to_string())?
}

impl Wish {
    fn understood(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Server, Manner), String> {
        let or = |flag: &Option<String>, name: &str| {
            let set = |value: &String| !value.is_empty();
            flag.clone().or_else(|| environment(name).filter(set))
        };
        let number = |name: &str| -> Result<Option<u64>, String> {
            let Some(value) = environment(name).filter(|value| !value.is_empty()) else {
                return Ok(None);
            };
            let read = value.parse().map(Some);
            read.map_err(|_| format!("{name}: '{value}' is no number"))
        };
        let place = or(&self.server, "MYSQL_HOST").unwrap_or_else(|| "127.0.0.1".to_owned());
        // An address of IPv6 has colons of its own.
        let parts = place.rsplit_once(':');
        let parts = parts.filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
        let port = |text: &str| -> Result<u16, String> {
            text.parse().map_err(|_| format!("'{text}' is no port"))
        };
        let (host, own) = match parts {
            Some((host, text)) => (host, Some(port(text)?)),
            None => (place.as_str(), None),
        };
        let from_environment = match number("MYSQL_PORT")? {
            Some(number) => Some(port(&number.to_string())?),
            None => None,
        };
        let named = own.or(self.port).or(from_environment).unwrap_or(PORT);
        let port = if host.starts_with('/') { 0 } else { named };
        let listen = or(&self.listen, "LISTEN_PORT").unwrap_or_else(|| LISTEN.to_string());
        let listen = match listen.contains(':') {
            true => listen,
            false => format!("0.0.0.0:{listen}"),
        };
        let listen = listen.parse().map_err(|error| format!("{error}"))?;
        let batching = self.batching.map(u64::from).or(number("BATCHING")?);
        let every_ms = self.every_ms.or(number("UPDATE_FREQ_MS")?).unwrap_or(0);
        let user = or(&self.user, "MYSQL_USER").ok_or("--user says who asks, or MYSQL_USER")?;
        let server = Server {
            host: host.trim_matches(['[', ']']).into(),
            port,
            who: Who {
                user: user.into(),
                password: or(&self.password, "MYSQL_PASSWORD")
                    .unwrap_or_default()
                    .into(),
                never_in_clear: false,
                proxy_protocol: 0,
                tls: Tls::IfOffered,
                connect: ANSWERS_WITHIN,
                silent: ANSWERS_WITHIN,
                whole: ANSWERS_WITHIN,
            },
            may_be_mariadb: false,
        };
        let manner = Manner {
            listen,
            every: Duration::from_millis(every_ms),
            intervals: batching == Some(1),
            unsent_max: self.buffer.unwrap_or(UNSENT_MAX),
        };
        Ok((server, manner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(wish: Wish, environment: &[(&str, &str)]) -> Result<String, String> {
        let found = |name: &str| {
            let mut all = environment.iter();
            all.find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let (server, manner) = wish.understood(&found)?;
        let Server {
            host, port, who, ..
        } = server;
        let (user, password) = (who.user, who.password);
        let (listen, every, batches) = (manner.listen, manner.every, manner.intervals);
        Ok(format!(
            "{user}:{password}@{host}:{port} at {listen} every {every:?} {batches}"
        ))
    }

    #[test]
    fn flags_count_before_the_environment() {
        let container = [
            ("MYSQL_HOST", "db"),
            ("MYSQL_PORT", "3307"),
            ("MYSQL_USER", "u"),
            ("MYSQL_PASSWORD", "p"),
            ("LISTEN_PORT", "6021"),
            ("UPDATE_FREQ_MS", "50"),
            ("BATCHING", "1"),
        ];
        let all = understood(Wish::default(), &container);
        assert_eq!(all.unwrap(), "u:p@db:3307 at 0.0.0.0:6021 every 50ms true");
        let wish = Wish {
            server: Some("db1:3308".into()),
            user: Some("own".into()),
            listen: Some("127.0.0.1:1".into()),
            batching: Some(0),
            every_ms: Some(0),
            ..Wish::default()
        };
        let all = understood(wish.clone(), &container);
        assert_eq!(
            all.unwrap(),
            "own:p@db1:3308 at 127.0.0.1:1 every 0ns false"
        );
        let wish = Wish {
            server: Some("[::1]:3308".into()),
            ..wish
        };
        let all = understood(wish.clone(), &[]);
        assert_eq!(all.unwrap(), "own:@::1:3308 at 127.0.0.1:1 every 0ns false");
        let wish = Wish {
            server: Some("/run/mysqld.sock".into()),
            ..wish
        };
        let all = understood(wish.clone(), &container).unwrap();
        assert!(all.starts_with("own:p@/run/mysqld.sock:0 "), "{all}");
        let wish = Wish {
            server: Some("::1".into()),
            ..wish
        };
        let all = understood(wish, &[]);
        assert_eq!(all.unwrap(), "own:@::1:3306 at 127.0.0.1:1 every 0ns false");
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let user = ("MYSQL_USER", "u");
        for (environment, words) in [
            (&[][..], "--user says"),
            (&[user, ("MYSQL_PORT", "x")], "MYSQL_PORT"),
            (&[user, ("MYSQL_HOST", "db:x")], "'x' is no port"),
            (&[user, ("LISTEN_PORT", "x")], "x"),
        ] {
            let error = understood(Wish::default(), environment).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
