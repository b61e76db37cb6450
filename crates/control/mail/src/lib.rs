//! Mails of scripts. Cores hand them over and wait for nothing; a thread of the control plane sends
//! them, one after another, each on a connection of its own.
//!
//! docs/features/scripts.md
#![forbid(unsafe_code)]

use bridge::{Letter, Mail};
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Address, Message, SmtpTransport, Transport as _};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Mails that wait to be sent at most.
const WAITING_MAX: usize = 256;
/// Characters of a subject at most.
const SUBJECT_CHARS_MAX: usize = 200;
/// Port at which TLS comes before the first word (RFC 8314).
const PORT_OF_TLS: u16 = 465;
/// Limits each step of a conversation with a mail server.
const STEP_WITHIN: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);

/// Takes mails.
#[derive(Clone)]
pub struct Mails {
    letters: SyncSender<Mail>,
    lost: Arc<AtomicU64>,
}

impl Mails {
    /// Begins the thread that sends. It ends when nobody is left who could hand over. `note` hears
    /// of mails that were not sent.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn begin(note: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        let (letters, unread) = sync_channel(WAITING_MAX);
        let lost = Arc::<AtomicU64>::default();
        let counted = lost.clone();
        thread::Builder::new()
            .name("mail".into())
            .spawn(move || send_all(&unread, &counted, &note))?;
        Ok(Self { letters, lost })
    }

    /// Hands a mail over. One that there is no room for is dropped and counted.
    pub fn send(&self, mail: Mail) {
        if let Err(TrySendError::Full(_)) = self.letters.try_send(mail) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Mails of the minute that runs.
struct Pace {
    began: Instant,
    sent: u32,
    left_out: u64,
}

impl Pace {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            sent: 0,
            left_out: 0,
        }
    }

    /// Whether the minute has room for one more.
    fn takes(&mut self, per_minute: u32) -> bool {
        let takes = self.sent < per_minute;
        match takes {
            true => self.sent += 1,
            false => self.left_out += 1,
        }
        takes
    }

    fn rest(&self) -> Duration {
        MINUTE.saturating_sub(self.began.elapsed())
    }
}

fn send_all(unread: &Receiver<Mail>, lost: &AtomicU64, note: &dyn Fn(&str)) {
    let mut pace = Pace::new();
    loop {
        let taken = unread.recv_timeout(pace.rest());
        if pace.rest().is_zero() {
            let left_out = std::mem::replace(&mut pace, Pace::new()).left_out;
            let lost = lost.swap(0, Ordering::Relaxed);
            if left_out > 0 {
                note(&format!(
                    "{left_out} mails of scripts were left out: mysql-script_mails_per_minute allows no more"
                ));
            }
            if lost > 0 {
                note(&format!(
                    "{lost} mails of scripts were dropped: the mail server has not taken those before them"
                ));
            }
        }
        match taken {
            Ok(Mail { letter, per_minute }) if pace.takes(per_minute) => {
                if let Err(why) = sent(&letter) {
                    note(&format!(
                        "a mail of a script was not taken by {}:{}: {why}",
                        letter.host, letter.port
                    ));
                }
            }
            Ok(_left_out) => {}
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn sent(mail: &Letter) -> Result<(), String> {
    let message = message(mail)?;
    let transport = transport(mail)?;
    transport.send(&message).map(drop).map_err(|error| {
        // Its own words name the kind of error only.
        let source = std::error::Error::source(&error);
        source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
    })
}

fn transport(mail: &Letter) -> Result<SmtpTransport, String> {
    let parameters = TlsParameters::builder(mail.host.clone())
        // Without a password the server may be whoever it likes: without TLS it might be, too.
        .dangerous_accept_invalid_certs(mail.login.is_none() && mail.port != PORT_OF_TLS)
        .build()
        .map_err(|error| error.to_string())?;
    let tls = match mail.port {
        PORT_OF_TLS => Tls::Wrapper(parameters),
        _ => Tls::Opportunistic(parameters),
    };
    let mut builder = SmtpTransport::builder_dangerous(&mail.host)
        .port(mail.port)
        .timeout(Some(STEP_WITHIN))
        .tls(tls);
    if let Some((user, password)) = &mail.login {
        builder = builder
            .credentials(Credentials::new(user.clone(), password.clone()))
            .authentication(vec![Mechanism::Plain, Mechanism::Login]);
    }
    Ok(builder.build())
}

/// A mail as it is sent.
fn message(mail: &Letter) -> Result<Message, String> {
    let mailbox = |address: &String| {
        let address = address.trim();
        // `Name <address>`, or an address whose domain has no dot.
        address
            .parse::<Mailbox>()
            .or_else(|error| match address.rsplit_once('@') {
                Some((user, domain)) => {
                    Address::new(user, domain).map(|address| Mailbox::new(None, address))
                }
                None => Err(error),
            })
            .map_err(|error| format!("'{address}' is no address: {error}"))
    };
    let mut builder = Message::builder()
        .from(mailbox(&mail.from)?)
        .subject(one_line(&mail.subject));
    for to in &mail.to {
        builder = builder.to(mailbox(to)?);
    }
    builder
        .body(mail.body.clone())
        .map_err(|error| error.to_string())
}

/// A header's value: whatever would end a line is a blank.
fn one_line(text: &str) -> String {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    text.trim_end()
        .chars()
        .map(blank)
        .take(SUBJECT_CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;

    /// A mail server that takes what comes, and what it was told, a conversation at a time.
    fn server(offers: &'static str, refuses: &'static str) -> (u16, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = BufReader::new(client.unwrap());
                let mut heard = String::new();
                let mut is_text = false;
                client.get_mut().write_all(b"220 here\r\n").unwrap();
                loop {
                    let mut line = String::new();
                    if client.read_line(&mut line).unwrap_or(0) == 0 {
                        break;
                    }
                    heard.push_str(&line);
                    let says = match line.trim_end() {
                        "." => {
                            is_text = false;
                            "250 taken".to_owned()
                        }
                        _ if is_text => continue,
                        word if !refuses.is_empty() && word.starts_with(refuses) => {
                            "550 not you".to_owned()
                        }
                        "DATA" => {
                            is_text = true;
                            "354 go on".to_owned()
                        }
                        "QUIT" => "221 bye".to_owned(),
                        word if word.starts_with("EHLO") => format!("{offers}250 8BITMIME"),
                        word if word.starts_with("AUTH") => "235 known".to_owned(),
                        _ => "250 ok".to_owned(),
                    };
                    client.get_mut().write_all(says.as_bytes()).unwrap();
                    client.get_mut().write_all(b"\r\n").unwrap();
                }
                let _nobody = tell.send(heard);
            }
        });
        (port, told)
    }

    fn mail(port: u16) -> Mail {
        of(letter(port))
    }

    fn of(letter: Letter) -> Mail {
        Mail {
            letter,
            per_minute: 3,
        }
    }

    fn letter(port: u16) -> Letter {
        Letter {
            host: "127.0.0.1".into(),
            port,
            login: None,
            from: "myserver@mydomain.com".into(),
            to: vec!["admin@mydomain.com".into(), "B <b@localhost>".into()],
            subject: "WARN: a\r\nBcc: all@mydomain.com".into(),
            body: "line\n.\nend \u{e4}\n".into(),
        }
    }

    fn mails() -> (Mails, Receiver<String>) {
        let (tell, told) = mpsc::channel();
        let note = move |words: &str| drop(tell.send(words.to_owned()));
        (Mails::begin(note).unwrap(), told)
    }

    /// A100: a mail as a server gets it.
    #[test]
    fn a_mail_is_sent_as_it_was_meant() {
        let (port, told) = server("250-here\r\n", "");
        let (mails, notes) = mails();
        mails.send(mail(port));
        let heard = told.recv().unwrap();
        for has in [
            "MAIL FROM:<myserver@mydomain.com>",
            "RCPT TO:<admin@mydomain.com>\r\n",
            "RCPT TO:<b@localhost>\r\n",
            "From: myserver@mydomain.com\r\n",
            "Subject: WARN: a  Bcc: all@mydomain.com\r\n",
        ] {
            assert!(heard.contains(has), "{has}: {heard}");
        }
        assert!(!heard.contains("\r\nBcc:"), "{heard}");
        drop(mails);
        assert_eq!(notes.recv().ok(), None);
    }

    #[test]
    fn a_password_is_told_to_a_server_that_asks() {
        let (port, told) = server("250-AUTH PLAIN LOGIN\r\n", "");
        let (mails, _notes) = mails();
        let login = Some(("me".into(), "secret".into()));
        mails.send(of(Letter {
            login,
            ..letter(port)
        }));
        let heard = told.recv().unwrap();
        assert!(heard.contains("AUTH PLAIN AG1lAHNlY3JldA=="), "{heard}");
    }

    #[test]
    fn what_cannot_be_sent_is_told_and_the_next_one_goes() {
        let (port, _told) = server("250-here\r\n", "RCPT TO:<admin@");
        let (mails, notes) = mails();
        mails.send(mail(port));
        let said = notes.recv().unwrap();
        let begins = format!("a mail of a script was not taken by 127.0.0.1:{port}: ");
        assert!(
            said.starts_with(&begins) && said.contains("550") && said.contains("not you"),
            "{said}"
        );
        let to = vec!["nobody".to_owned()];
        mails.send(of(Letter { to, ..letter(port) }));
        let said = notes.recv().unwrap();
        assert!(said.contains("'nobody' is no address"), "{said}");
        let (open, told) = server("250-here\r\n", "");
        mails.send(mail(open));
        assert!(told.recv().is_ok());
    }

    #[test]
    fn a_minute_has_so_many_mails() {
        let mut pace = Pace::new();
        let taken = (0..5).filter(|_| pace.takes(3)).count();
        assert_eq!((taken, pace.left_out), (3, 2));
        assert!(!Pace::new().takes(0));
    }
}
