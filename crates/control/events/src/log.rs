//! The log's thread: what cores hand over goes into the file that is open. Whatever fails is told
//! once, and tried again.

use crate::file::Open;
use crate::json;
use bridge::{Event, Events, Fate, Reply};
use config::{EventsForm, EventsLog};
use rt::mailbox::Receiver;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A file that could not be begun is tried again so often.
const AGAIN: Duration = Duration::from_secs(1);
/// A larger buffer is given back.
const BUFFER_LEN_KEPT: usize = 1 << 20;

/// What the log is told.
pub enum Letter {
    /// Records of a core.
    Write(Events),
    /// Work like this from now on.
    Use {
        /// None for no log.
        wish: Option<EventsLog>,
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
    folder: PathBuf,
    note: Box<dyn Fn(&str)>,
    wish: Option<EventsLog>,
    open: Option<Open>,
    /// It cannot be written, and that has cost so many records.
    failing: Option<u64>,
    /// When a file could not be begun.
    tried: Option<Instant>,
    buffer: Vec<u8>,
}

impl Log {
    /// `folder`: where names without `/` in front are. `note` takes a line for an operator.
    pub fn new(folder: PathBuf, note: impl Fn(&str) + 'static) -> Self {
        Self {
            folder,
            note: Box::new(note),
            wish: None,
            open: None,
            failing: None,
            tried: None,
            buffer: Vec::new(),
        }
    }

    /// Does what it is told, until nobody is left who could tell.
    pub async fn obey(mut self, letters: Receiver<Letter>) {
        while let Some(letter) = letters.recv().await {
            match letter {
                Letter::Write(events) => self.take(events),
                Letter::Use { wish, anyway, done } => done(self.work_like(wish, anyway)),
                Letter::Next(done) => done(self.next()),
                Letter::Done(done) => done(()),
            }
        }
    }

    /// What comes when there is no log any more was answered under a configuration of before: it is
    /// no loss.
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

    fn work_like(&mut self, wish: Option<EventsLog>, anyway: bool) -> Result<(), String> {
        let Some(new) = &wish else {
            (self.wish, self.open, self.failing) = (None, None, None);
            return Ok(());
        };
        let same_file = self
            .wish
            .as_ref()
            .is_some_and(|old| old.name == new.name && old.form == new.form);
        if same_file && self.open.is_some() {
            self.wish = wish;
            return Ok(());
        }
        match Open::next(&self.folder, &new.name) {
            Ok(open) => {
                (self.wish, self.open, self.tried) = (wish, Some(open), None);
                Ok(())
            }
            Err(words) => {
                if anyway {
                    (self.wish, self.open) = (wish, None);
                    self.failed(&words);
                }
                Err(words)
            }
        }
    }

    /// What is open stays open if there can be no other.
    fn next(&mut self) -> Result<(), String> {
        let Some(wish) = &self.wish else {
            return Ok(());
        };
        let next = Open::next(&self.folder, &wish.name);
        match next {
            Ok(open) => {
                (self.open, self.tried) = (Some(open), None);
                Ok(())
            }
            Err(words) => {
                let first = self.tried.replace(Instant::now()).is_none();
                match &self.open {
                    Some(open) if first => (self.note)(&format!(
                        "the events log goes on in {}: {words}",
                        open.path.display()
                    )),
                    Some(_) => {}
                    None => self.failed(&words),
                }
                Err(words)
            }
        }
    }

    /// Returns how many of the records were lost.
    fn write(&mut self, bytes: &[u8], records: u64) -> u64 {
        let mut buffer = std::mem::take(&mut self.buffer);
        let lost = self.write_by(&mut buffer, bytes, records);
        // What one large statement needed is not kept.
        if buffer.capacity() <= BUFFER_LEN_KEPT {
            self.buffer = buffer;
        }
        match &mut self.failing {
            Some(so_far) if lost > 0 => *so_far += lost,
            None => {}
            Some(so_far) => {
                (self.note)(&format!(
                    "the events log is written again; {so_far} statements are not in it"
                ));
                self.failing = None;
            }
        }
        lost
    }

    fn write_by(&mut self, buffer: &mut Vec<u8>, bytes: &[u8], records: u64) -> u64 {
        let (mut rest, mut left) = (bytes, records);
        while left > 0 {
            let Some(wish) = &self.wish else { return left };
            let (form, bytes_max) = (wish.form, wish.bytes_max);
            let is_full = self.open.as_ref().is_none_or(|open| open.len >= bytes_max);
            if is_full && self.tried.is_none_or(|tried| tried.elapsed() >= AGAIN) {
                // One that is full is better than none.
                let _told = self.next();
            }
            let Some(open) = &mut self.open else {
                return left;
            };
            // As many as go into this file, and at least one: none is in two files.
            let (mut taken, mut len) = (0, 0);
            buffer.clear();
            while taken < left && (taken == 0 || open.len + (buffer.len() as u64) < bytes_max) {
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
                (self.note)("a defect: the events log was handed what is no record");
                return left;
            }
            if let Err(failed) = open.write(buffer) {
                let words = format!(
                    "{} cannot be written: {}",
                    open.path.display(),
                    failed.error
                );
                if !failed.is_whole {
                    self.open = None;
                }
                self.failed(&words);
                return left;
            }
            rest = rest.get(len..).unwrap_or_default();
            left -= taken;
        }
        0
    }

    /// Told once, until it is well again.
    fn failed(&mut self, words: &str) {
        if self.failing.is_none() {
            (self.note)(&format!(
                "the events log: {words}; until that is well statements are not in it (Millrace_events_dropped), and traffic goes on"
            ));
            self.failing = Some(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        bench.log.next().unwrap();
        assert_eq!(bench.write(&["five"]), 0);
        assert_eq!(bench.texts(44), ["five"]);
        assert!(bench.notes.borrow().is_empty(), "{:?}", bench.notes);
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
        bench.log.next().unwrap();
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
        let written = bench.log.open.take().unwrap();
        bench.log.open = Some(Open::that_is_full());
        assert_eq!(bench.write(&["lost"]), 1);
        // Nothing can be taken back from a device: another file is begun.
        assert!(bench.log.open.is_none());
        assert_eq!(bench.notes.borrow().len(), 1, "{:?}", bench.notes);
        assert_eq!(bench.write(&["two"]), 0);
        assert_eq!(bench.texts(2), ["two"]);
        bench.log.open = Some(written);
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
        bench.log.open = None;
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
