//! Clients who write lines that nobody else writes, and look for them.

use super::book::Book;
use super::node::{INSERT, READ_ONLY, SELECT};
use crate::chance::Chance;
use crate::client::{Broken, Client, Due, Reply};
use crate::judge::Fate;
use rt::{Address, Rt};
use std::rc::Rc;
use std::time::Duration;
use wire::command::COM_QUERY;

/// No command takes longer.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) struct Guest {
    rt: Rt,
    book: Rc<Book>,
    proxy: Address,
    name: String,
    chance: Chance,
    said: u64,
    /// Transactions that a server refuses to go on with are run again on the next.
    replays: bool,
    /// Lines of this connection that were acknowledged.
    own: Vec<String>,
}

/// How a statement has ended.
enum End {
    Done(Reply),
    /// With this error; the connection stands.
    Refused(u16),
    /// Connection that is gone.
    Gone,
}

impl Guest {
    pub(super) fn new(
        rt: &Rt,
        book: &Rc<Book>,
        proxy: &Address,
        number: u64,
        chance: Chance,
        replays: bool,
    ) -> Self {
        Self {
            rt: rt.clone(),
            book: book.clone(),
            proxy: proxy.clone(),
            name: format!("g{number}"),
            chance,
            said: 0,
            replays,
            own: Vec::new(),
        }
    }

    pub(super) async fn lives(mut self, steps: u64) {
        let mut client = None;
        for _ in 0..steps {
            let ms = self.chance.below(300);
            self.rt.sleep(Duration::from_millis(ms)).await;
            if client.is_none() {
                self.own.clear();
                let entered = Client::log_in(
                    &self.rt,
                    &self.proxy,
                    "miller",
                    None,
                    45,
                    0,
                    &mut self.chance,
                );
                match entered.await {
                    Ok(entered) => client = Some(entered),
                    Err(refused) => {
                        self.excuse(&format!("is not let in: {refused}"));
                        continue;
                    }
                }
            }
            let Some(own) = &mut client else { continue };
            let stays = match self.chance.below(100) {
                0..45 => self.writes(own).await,
                45..75 => self.looks(own).await,
                _ => self.transacts(own).await,
            };
            if !stays {
                client = None;
            }
        }
    }

    fn excuse(&self, what: &str) {
        self.book.judge.excuse(&self.name, what);
    }

    fn line(&mut self) -> String {
        self.said += 1;
        format!("{}-{}", self.name, self.said)
    }

    async fn says(&self, client: &mut Client, text: &str) -> End {
        let payload = [&[COM_QUERY], text.as_bytes()].concat();
        let asked = client.ask(&payload, Due::Text);
        let Ok(end) = self.rt.timeout(PATIENCE, asked).await else {
            self.book
                .judge
                .accuse(&self.name, &format!("{text} is never answered"));
            return End::Gone;
        };
        match end {
            Ok(Reply::Err { code, message }) => {
                self.book
                    .judge
                    .tell(&self.name, &format!("{text}: error {code}: {message}"));
                End::Refused(code)
            }
            Ok(reply) => {
                self.book.judge.was_answered();
                End::Done(reply)
            }
            Err(Broken::Net(error)) => {
                self.book
                    .judge
                    .tell(&self.name, &format!("{text}: {error}"));
                End::Gone
            }
            Err(Broken::Protocol(words)) => {
                self.book
                    .judge
                    .accuse(&self.name, &format!("{text}: {words}"));
                End::Gone
            }
        }
    }

    /// A write by itself; whether the connection stands.
    async fn writes(&mut self, client: &mut Client) -> bool {
        let line = self.line();
        self.book.fate(&line, Fate::Unknown);
        let text = format!("{INSERT}{line}')");
        let end = self.says(client, &text).await;
        self.is_over(&text, &[line], &end)
    }

    /// Notes what has become of lines whose last word was this; whether the connection stands.
    fn is_over(&mut self, text: &str, lines: &[String], end: &End) -> bool {
        let fate = match end {
            End::Done(_) => Fate::Acknowledged,
            End::Refused(READ_ONLY) => Fate::Never,
            End::Refused(_) | End::Gone => Fate::Unknown,
        };
        for line in lines {
            self.book.fate(line, fate);
        }
        match end {
            End::Done(_) => {
                lines.iter().for_each(|line| self.book.acknowledges(line));
                self.own.extend(lines.iter().cloned());
                self.book
                    .judge
                    .tell(&self.name, &format!("{lines:?} acknowledged"));
                true
            }
            End::Refused(code) => {
                self.excuse(&format!("{text} ends with {code}"));
                !client_is_gone(*code)
            }
            End::Gone => {
                self.excuse(&format!("{text} ends with the connection"));
                false
            }
        }
    }

    /// Looks for a line that this session has written.
    async fn looks(&mut self, client: &mut Client) -> bool {
        let line = match self.own.len() {
            0 => "nothing".to_owned(),
            _ if self.chance.percent(60) => self.own.last().cloned().unwrap_or_default(),
            _ => self.chance.one_of(&self.own).clone(),
        };
        let text = format!("{SELECT}{line}'");
        match self.says(client, &text).await {
            End::Done(Reply::Rows(rows)) => {
                let server = rows.first().and_then(|row| row.get(1)).cloned().flatten();
                let server = server.unwrap_or_default();
                let has = |row: &&crate::client::Row| row.first() == Some(&Some(line.clone()));
                let times = rows.iter().filter(has).count();
                let is_own = self.own.contains(&line);
                let is_well =
                    times == usize::from(is_own) || times == 0 && self.book.may_be_missing(&line);
                if server != self.book.writer().name {
                    self.book.judge.hit("a read of a replica", 1);
                    self.book.judge.hit(
                        "an own line read of a replica",
                        (is_own && times == 1).into(),
                    );
                }
                self.book.judge.check(is_well, &self.name, || {
                    format!("{line}, which was acknowledged, is {times} times on {server}")
                });
                true
            }
            End::Done(other) => {
                self.book
                    .judge
                    .accuse(&self.name, &format!("{text}: {other:?}"));
                false
            }
            // A read that nobody has answered is asked elsewhere.
            End::Refused(code) => {
                self.book
                    .judge
                    .accuse(&self.name, &format!("{text} ends with {code}"));
                false
            }
            End::Gone => {
                self.excuse(&format!("{text} ends with the connection"));
                false
            }
        }
    }

    /// A transaction of a few lines.
    async fn transacts(&mut self, client: &mut Client) -> bool {
        let lines: Vec<_> = (0..self.chance.between(1, 3))
            .map(|_| self.line())
            .collect();
        for line in &lines {
            self.book.fate(line, Fate::Never);
        }
        let mut texts = vec!["BEGIN".to_owned()];
        texts.extend(lines.iter().map(|line| format!("{INSERT}{line}')")));
        let gives_up = self.chance.percent(10);
        for text in &texts {
            if self.chance.percent(30) {
                let ms = self.chance.below(200);
                self.rt.sleep(Duration::from_millis(ms)).await;
            }
            match self.says(client, text).await {
                End::Done(_) => {}
                End::Refused(code) => {
                    self.excuse_transaction(text, code);
                    if client_is_gone(code) {
                        return false;
                    }
                    return matches!(self.says(client, "ROLLBACK").await, End::Done(_));
                }
                End::Gone => {
                    self.excuse(&format!("{text} in a transaction ends with the connection"));
                    return false;
                }
            }
        }
        if gives_up {
            return matches!(self.says(client, "ROLLBACK").await, End::Done(_));
        }
        for line in &lines {
            self.book.fate(line, Fate::Unknown);
        }
        let end = self.says(client, "COMMIT").await;
        if let End::Refused(code @ READ_ONLY) = end {
            self.excuse_transaction("COMMIT", code);
            for line in &lines {
                self.book.fate(line, Fate::Never);
            }
            return true;
        }
        self.is_over("COMMIT", &lines, &end)
    }

    /// A server that has become read-only may refuse what is in a transaction, unless that is run again
    /// elsewhere.
    fn excuse_transaction(&self, text: &str, code: u16) {
        let words = format!("{text} in a transaction ends with {code}");
        match code {
            READ_ONLY if !self.replays => self.book.judge.tell(&self.name, &words),
            _ => self.excuse(&words),
        }
    }
}

/// Errors behind which nothing can be said any more.
fn client_is_gone(code: u16) -> bool {
    matches!(code, 1053 | 2006 | 2013)
}
