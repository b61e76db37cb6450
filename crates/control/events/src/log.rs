//! The log's thread: what cores hand over goes into the file that is open.

use crate::audit::Audit;
use crate::file::{Files, Words};
use crate::json;
use bridge::{Audited, Event, Events, Fate, Reply};
use config::{EventsForm, EventsLog, Logs};
use rt::mailbox::Receiver;
use std::path::PathBuf;
use std::rc::Rc;

/// The log in words.
const WORDS: Words = Words {
    log: "the events log",
    variable: "mysql-eventslog_filename",
    records: "statements",
    dropped: "Millrace_events_dropped",
};
/// A larger buffer is given back.
const BUFFER_LEN_KEPT: usize = 1 << 20;

/// Letter to the log.
pub enum Letter {
    /// Records of a core.
    Write(Events),
    /// Action of a client.
    Audit(Audited),
    /// Work like this from now on.
    Use {
        /// The logs that there are to be.
        wish: Logs,
        /// Even if no file can be begun now: it is tried again.
        anyway: bool,
        /// Whether a file could be begun. If not, and not `anyway`, all stays as it was.
        done: Reply<Result<(), String>>,
    },
    /// Begin the next file.
    Next(Reply<Result<(), String>>),
    /// Say when all that came before is done.
    Done(Reply<()>),
}

/// The log, as its thread has it.
pub struct Log {
    audit: Audit,
    wish: Option<EventsLog>,
    files: Files,
    buffer: Vec<u8>,
}

impl Log {
    /// `folder`: where names without `/` in front are. `note` takes a line for an operator.
    pub fn new(folder: PathBuf, note: impl Fn(&str) + 'static) -> Self {
        let note: Rc<dyn Fn(&str)> = Rc::new(note);
        Self {
            audit: Audit::new(folder.clone(), note.clone()),
            wish: None,
            files: Files::new(folder, note, WORDS),
            buffer: Vec::new(),
        }
    }

    /// Does what it is told, until nobody is left who could tell.
    pub async fn obey(mut self, letters: Receiver<Letter>) {
        while let Some(letter) = letters.recv().await {
            match letter {
                Letter::Write(events) => self.take(events),
                Letter::Audit(audited) => self.audit.write(&audited),
                Letter::Use { wish, anyway, done } => done(self.log_like(wish, anyway)),
                Letter::Next(done) => {
                    let (events, clients) = (self.files.next(), self.audit.files.next());
                    done(events.and(clients));
                }
                Letter::Done(done) => done(()),
            }
        }
    }

    /// Takes the records of a core. What comes when there is no log any more was answered under a
    /// configuration of before: it is no loss.
    fn take(&mut self, events: Events) {
        let fate = match self.wish {
            None => Fate::default(),
            Some(_) => {
                let lost = self.write(&events.bytes, events.records);
                Fate {
                    written: events.records - lost,
                    lost,
                }
            }
        };
        (events.done)(fate);
    }

    /// Both logs, or neither, unless `anyway`: then each as far as it can be.
    fn log_like(&mut self, wish: Logs, anyway: bool) -> Result<(), String> {
        let before = self.audit.wish().cloned();
        let clients = self.audit.work_like(wish.audit, anyway);
        if clients.is_err() && !anyway {
            return clients;
        }
        let statements = self.work_like(wish.events, anyway);
        if statements.is_err() && !anyway {
            // What was open is open still, or is begun again.
            let _as_before = self.audit.work_like(before, true);
        }
        clients.and(statements)
    }

    fn work_like(&mut self, wish: Option<EventsLog>, anyway: bool) -> Result<(), String> {
        let Some(new) = &wish else {
            self.files.end();
            self.wish = None;
            return Ok(());
        };
        let other_form = self.wish.as_ref().is_some_and(|old| old.form != new.form);
        let begun = self.files.begin(&new.name, other_form, anyway);
        if begun.is_ok() || anyway {
            self.wish = wish;
        }
        begun
    }

    /// Returns how many of the records were lost.
    fn write(&mut self, bytes: &[u8], records: u64) -> u64 {
        let mut buffer = std::mem::take(&mut self.buffer);
        let lost = self.write_by(&mut buffer, bytes, records);
        // What one large statement needed is not kept.
        if buffer.capacity() <= BUFFER_LEN_KEPT {
            self.buffer = buffer;
        }
        self.files.lost(lost);
        lost
    }

    fn write_by(&mut self, buffer: &mut Vec<u8>, bytes: &[u8], records: u64) -> u64 {
        let (mut rest, mut left) = (bytes, records);
        while left > 0 {
            let Some(wish) = &self.wish else { return left };
            let (form, bytes_max) = (wish.form, wish.bytes_max);
            let Some(open) = self.files.with_room(bytes_max) else {
                return left;
            };
            let before = open.len;
            // As many as go into this file, and at least one: none is in two files.
            let (mut taken, mut len) = (0, 0);
            buffer.clear();
            while taken < left && (taken == 0 || before + (buffer.len() as u64) < bytes_max) {
                let Ok(Some((event, one))) = Event::read(rest.get(len..).unwrap_or_default())
                else {
                    break;
                };
                if form == EventsForm::Json {
                    json::append(&event, buffer);
                } else {
                    buffer.extend_from_slice(rest.get(len..len + one).unwrap_or_default());
                }
                (taken, len) = (taken + 1, len + one);
            }
            if taken == 0 {
                self.files
                    .note("a defect: the events log was handed what is no record");
                return left;
            }
            if !self.files.write(buffer) {
                return left;
            }
            rest = rest.get(len..).unwrap_or_default();
            left -= taken;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Open;
    use bridge::EventKind;
    use std::cell::RefCell;
    use std::fs;
    use std::path::Path;
    use std::rc::Rc;
    use std::sync::mpsc;

    /// A folder, a log in it, and what it has noted.
    struct Bench {
        folder: PathBuf,
        log: Log,
        notes: Rc<RefCell<Vec<String>>>,
    }

    impl Bench {
        fn new(words: &str) -> Self {
            let folder = std::env::temp_dir()
                .join(format!("millrace-events-{words}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            let notes = Rc::new(RefCell::new(Vec::new()));
            let heard = notes.clone();
            let log = Log::new(folder.clone(), move |words| {
                heard.borrow_mut().push(words.to_owned())
            });
            Self { folder, log, notes }
        }

        /// With a log whose files are called `ev` and have no more bytes than these.
        fn begun(words: &str, bytes_max: u64) -> Self {
            let mut bench = Self::new(words);
            bench.begin("ev", bytes_max, EventsForm::Binary).unwrap();
            bench
        }

        fn begin(&mut self, name: &str, bytes_max: u64, form: EventsForm) -> Result<(), String> {
            self.log.work_like(
                Some(EventsLog {
                    name: name.into(),
                    bytes_max,
                    form,
                }),
                false,
            )
        }

        /// How many of these are lost.
        fn write(&mut self, texts: &[&str]) -> u64 {
            let (bytes, records) = records(texts);
            self.log.write(&bytes, records)
        }

        fn file(&self, number: u32) -> Vec<u8> {
            fs::read(self.folder.join(format!("ev.{number:08}"))).unwrap_or_default()
        }

        /// The statements in a file.
        fn texts(&self, number: u32) -> Vec<String> {
            texts(&self.file(number))
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.folder);
        }
    }

    fn records(texts: &[&str]) -> (Vec<u8>, u64) {
        let mut out = Vec::new();
        for text in texts {
            let event = Event {
                kind: EventKind::Query,
                session: 1,
                user: b"u",
                schema: b"s",
                client: b"c:1",
                server: None,
                began_us: 1,
                ended_us: 2,
                statement_id: 0,
                rows_affected: 0,
                insert_id: 0,
                rows_sent: 0,
                digest: 0,
                text: text.as_bytes(),
            };
            event.write(&mut out);
        }
        (out, texts.len() as u64)
    }

    fn texts(mut bytes: &[u8]) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some((event, len)) = Event::read(bytes).unwrap() {
            texts.push(String::from_utf8(event.text.to_vec()).unwrap());
            bytes = &bytes[len..];
        }
        assert!(bytes.is_empty(), "half a record is left");
        texts
    }

    #[test]
    fn a_full_file_is_followed_by_the_next_and_no_record_is_in_two() {
        let mut bench = Bench::new("full");
        fs::write(bench.folder.join("ev.00000041"), "of before").unwrap();
        fs::write(bench.folder.join("ev.00000099.gz"), "of somebody else").unwrap();
        let four = ["one", "two", "three", "four"];
        bench
            .begin(
                "ev",
                records(&four).0.len() as u64 / 2 - 3,
                EventsForm::Binary,
            )
            .unwrap();
        assert_eq!(bench.write(&four), 0);
        assert_eq!(bench.texts(42), ["one", "two"]);
        assert_eq!(bench.texts(43), ["three", "four"]);
        bench.log.files.next().unwrap();
        assert_eq!(bench.write(&["five"]), 0);
        assert_eq!(bench.texts(44), ["five"]);
        assert!(bench.notes.borrow().is_empty(), "{:?}", bench.notes);
    }

    #[test]
    fn one_log_that_cannot_be_begun_keeps_the_other_from_nothing_at_a_start_only() {
        for (anyway, statements) in [(true, vec!["one"]), (false, vec![])] {
            let mut bench = Bench::new(if anyway { "start" } else { "load" });
            let wish = Logs {
                events: Some(EventsLog {
                    name: "ev".into(),
                    bytes_max: 1000,
                    form: EventsForm::Binary,
                }),
                audit: Some(config::AuditLog {
                    name: "nosuch/au".into(),
                    bytes_max: 1000,
                }),
            };
            let refused = bench.log.log_like(wish, anyway).unwrap_err();
            assert!(refused.contains("mysql-auditlog_filename"), "{refused}");
            bench.write(&["one"]);
            assert_eq!(bench.texts(1), statements);
        }
    }

    #[test]
    fn another_format_begins_another_file() {
        let mut bench = Bench::begun("form", 1000);
        bench.write(&["one"]);
        bench.begin("ev", 2000, EventsForm::Binary).unwrap();
        bench.write(&["two"]);
        bench.begin("ev", 2000, EventsForm::Json).unwrap();
        bench.write(&["three"]);
        assert_eq!(bench.texts(1), ["one", "two"]);
        let json = String::from_utf8(bench.file(2)).unwrap();
        assert!(
            json.contains(r#""query":"three""#) && json.ends_with("}\n"),
            "{json}"
        );
    }

    #[test]
    fn a_name_that_cannot_be_is_refused_and_what_was_there_goes_on() {
        let mut bench = Bench::begun("names", 1000);
        let folder = bench.folder.display().to_string();
        fs::write(bench.folder.join("file"), "").unwrap();
        for (name, words) in [
            (
                "logs/",
                "that is a directory, and not the beginning of a file's name".to_owned(),
            ),
            (
                "..",
                "that is a directory, and not the beginning of a file's name".to_owned(),
            ),
            (
                "nosuch/ev",
                format!("the directory {folder}/nosuch does not exist"),
            ),
            ("file/ev", format!("{folder}/file is not a directory")),
        ] {
            let refused = bench.begin(name, 1000, EventsForm::Binary).unwrap_err();
            assert_eq!(
                refused,
                format!("mysql-eventslog_filename = '{name}': {words}")
            );
        }
        assert_eq!(bench.write(&["one"]), 0);
        assert_eq!(bench.texts(1), ["one"]);
        assert!(bench.notes.borrow().is_empty(), "{:?}", bench.notes);
    }

    #[test]
    fn what_cannot_be_written_is_counted_told_once_and_tried_again() {
        let mut bench = Bench::new("missing");
        let wish = EventsLog {
            name: "later/ev".into(),
            bytes_max: 1000,
            form: EventsForm::Binary,
        };
        assert!(bench.log.work_like(Some(wish), true).is_err());
        assert_eq!(bench.write(&["one", "two"]), 2);
        assert_eq!(bench.write(&["one", "two"]), 2);
        assert_eq!(bench.notes.borrow().len(), 1, "{:?}", bench.notes);
        fs::create_dir(bench.folder.join("later")).unwrap();
        bench.log.files.next().unwrap();
        assert_eq!(bench.write(&["one", "two"]), 0);
        let told = bench.notes.borrow().last().cloned().unwrap();
        assert_eq!(
            told,
            "the events log is written again; 4 statements are not in it"
        );
        assert_eq!(
            texts(&fs::read(bench.folder.join("later/ev.00000001")).unwrap()),
            ["one", "two"]
        );
    }

    #[test]
    fn a_full_disk_leaves_whole_records() {
        let mut bench = Bench::begun("disk", 1000);
        if !Path::new("/dev/full").exists() {
            return;
        }
        assert_eq!(bench.write(&["one"]), 0);
        let written = bench.log.files.open.take().unwrap();
        bench.log.files.open = Some(Open::that_is_full());
        assert_eq!(bench.write(&["lost"]), 1);
        // Nothing can be taken back from a device: another file is begun.
        assert!(bench.log.files.open.is_none());
        assert_eq!(bench.notes.borrow().len(), 1, "{:?}", bench.notes);
        assert_eq!(bench.write(&["two"]), 0);
        assert_eq!(bench.texts(2), ["two"]);
        bench.log.files.open = Some(written);
        assert_eq!(bench.write(&["three"]), 0);
        assert_eq!(bench.texts(1), ["one", "three"]);
        assert_eq!(bench.notes.borrow().len(), 2, "{:?}", bench.notes);
    }

    #[test]
    fn what_comes_when_the_log_has_ended_is_neither_written_nor_lost() {
        let mut bench = Bench::begun("ended", 1000);
        let (tell, told) = mpsc::channel();
        let fate = |log: &mut Log| {
            let (tell, (bytes, records)) = (tell.clone(), records(&["one", "two"]));
            log.take(Events {
                bytes,
                records,
                done: Box::new(move |fate| tell.send(fate).unwrap()),
            });
            told.recv().unwrap()
        };
        assert_eq!(
            fate(&mut bench.log),
            Fate {
                written: 2,
                lost: 0
            }
        );
        bench.log.files.open = None;
        fs::remove_dir_all(&bench.folder).unwrap();
        assert_eq!(
            fate(&mut bench.log),
            Fate {
                written: 0,
                lost: 2
            }
        );
        bench.log.work_like(None, false).unwrap();
        assert_eq!(fate(&mut bench.log), Fate::default());
    }
}
