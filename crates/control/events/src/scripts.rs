//! Files of scripts, their logs above all: a thread of its own has them, since a disk may hang and no
//! core waits for it.

use bridge::{FileDeed, FileWork};
use config::Place;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

/// Pieces of work that wait at most.
const WAITING_MAX: usize = 16_384;
/// Bytes of texts that wait at most, beside one that is alone.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Files that are open at most: with one more, all are closed and opened anew.
const OPEN_MAX: usize = 64;
/// Files that could not be written and whose names are remembered.
const REFUSED_MAX: usize = 1000;

/// Where scripts' texts go.
#[derive(Clone)]
pub(crate) struct Files {
    work: SyncSender<FileWork>,
    waiting: Arc<Waiting>,
}

/// Sizes of what waits.
#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    /// Texts that were dropped.
    lost: AtomicU64,
}

impl Files {
    /// Files of this folder, which is made with the first, and of those that rows allow. `note`
    /// hears what an operator should read.
    pub(crate) fn below(folder: PathBuf, note: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        let (work, undone) = sync_channel(WAITING_MAX);
        let waiting = Arc::<Waiting>::default();
        let mut hands = Hands {
            folder,
            open: HashMap::new(),
            refused: HashSet::new(),
            note: Box::new(note),
        };
        let counted = waiting.clone();
        thread::Builder::new()
            .name("script logs".into())
            .spawn(move || hands.all(&undone, &counted))?;
        Ok(Self { work, waiting })
    }

    /// Has this done. Texts that there is no room for are dropped and counted; whoever waits is told.
    pub(crate) fn take(&self, work: FileWork) {
        let len = bytes_of(&work.deed);
        let before = self.waiting.bytes.fetch_add(len, Ordering::Relaxed);
        let unsent = match before > 0 && len > 0 && before + len > WAITING_BYTES_MAX {
            true => Some(work),
            false => match self.work.try_send(work) {
                Ok(()) => None,
                Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => Some(work),
            },
        };
        if let Some(work) = unsent {
            self.waiting.bytes.fetch_sub(len, Ordering::Relaxed);
            self.waiting.lost.fetch_add(1, Ordering::Relaxed);
            work.is_done(Err("too much work on files waits: the disk is slow".into()));
        }
    }
}

fn bytes_of(deed: &FileDeed) -> usize {
    match deed {
        FileDeed::Append(text) => text.len(),
        _ => 0,
    }
}

/// The thread's own.
struct Hands {
    folder: PathBuf,
    open: HashMap<PathBuf, File>,
    /// Those that could not be opened. Each is named once.
    refused: HashSet<PathBuf>,
    note: Box<dyn Fn(&str) + Send>,
}

impl Hands {
    fn all(&mut self, undone: &Receiver<FileWork>, waiting: &Waiting) {
        for work in undone {
            waiting
                .bytes
                .fetch_sub(bytes_of(&work.deed), Ordering::Relaxed);
            let said = self.path(&work.place);
            let said = said.and_then(|path| self.does(&path, &work.deed));
            work.is_done(said.map_err(|error| words(&error)));
            let lost = waiting.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                (self.note)(&format!(
                    "{lost} messages of scripts were dropped: the disk has not taken them"
                ));
            }
        }
    }

    fn does(&mut self, path: &Path, deed: &FileDeed) -> io::Result<Vec<u8>> {
        match deed {
            FileDeed::Append(text) => {
                let done = self.append(path, text);
                self.tell_of(path, "written", done)?;
            }
            FileDeed::Empty => {
                self.open.remove(path);
                let done = made_in_folder(path).and_then(|()| File::create(path).map(drop));
                self.tell_of(path, "opened for writing", done)?;
            }
            FileDeed::Read(len_max) => return read(path, *len_max),
            FileDeed::Remove => {
                self.open.remove(path);
                fs::remove_file(path)?;
            }
            FileDeed::Rename(to) => {
                let to = self.path(to)?;
                self.open.remove(path);
                self.open.remove(&to);
                made_in_folder(&to)?;
                fs::rename(path, to)?;
            }
        }
        Ok(Vec::new())
    }

    /// Names a file that could not be had, once until it could.
    fn tell_of(&mut self, path: &Path, how: &str, done: io::Result<()>) -> io::Result<()> {
        if let Err(error) = &done {
            self.open.remove(path);
            if self.refused.len() < REFUSED_MAX && self.refused.insert(path.to_owned()) {
                let shown = path.display();
                (self.note)(&format!(
                    "a script's file '{shown}' cannot be {how}: {error}"
                ));
            }
        } else if !self.refused.is_empty() {
            self.refused.remove(path);
        }
        done
    }

    fn append(&mut self, path: &Path, text: &[u8]) -> io::Result<()> {
        if !self.open.contains_key(path) {
            if self.open.len() >= OPEN_MAX {
                self.open.clear();
            }
            made_in_folder(path)?;
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            self.open.insert(path.to_owned(), file);
        }
        self.open
            .get_mut(path)
            .map_or(Ok(()), |file| file.write_all(text))
    }

    fn path(&self, place: &Place) -> io::Result<PathBuf> {
        match place {
            Place::At(path) => Ok(path.into()),
            Place::Own(name) if is_below(name) => Ok(self.folder.join(name)),
            Place::Own(name) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("'{name}' leads out of {}", self.folder.display()),
            )),
        }
    }
}

/// Makes the folder of a file. A pipe is refused: it would hold up all files for as long as nobody
/// is at its other end.
fn made_in_folder(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(data) if data.file_type().is_fifo() => Err(no_file("a pipe")),
        Ok(_there) => Ok(()),
        Err(_none) => path.parent().map_or(Ok(()), fs::create_dir_all),
    }
}

fn read(path: &Path, len_max: usize) -> io::Result<Vec<u8>> {
    let data = path.metadata()?;
    if data.is_dir() {
        return Err(no_file("a folder"));
    }
    if !data.is_file() {
        return Err(no_file("no regular file"));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(len_max).unwrap_or(u64::MAX);
    let mut some = File::open(path)?.take(most.saturating_add(1));
    some.read_to_end(&mut bytes)?;
    match bytes.len() <= len_max {
        true => Ok(bytes),
        false => Err(io::Error::other(format!(
            "it has more than {len_max} bytes, which the script's result_mb_max allows"
        ))),
    }
}

fn no_file(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}"))
}

/// Words of an error, as Lua's libraries have them: without its number.
fn words(error: &io::Error) -> String {
    let words = error.to_string();
    match words.find(" (os error ") {
        Some(at) => words[..at].to_owned(),
        None => words,
    }
}

/// Whether a name leads nowhere else than below a folder.
fn is_below(name: &str) -> bool {
    let is_name = |part| matches!(part, Component::Normal(_));
    !name.is_empty() && Path::new(name).components().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    struct Bench {
        files: Files,
        folder: PathBuf,
    }

    impl Bench {
        fn new(name: &str, note: impl Fn(&str) + Send + 'static) -> Self {
            let name = format!("millrace-script-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let files = Files::below(folder.clone(), note).unwrap();
            Self { files, folder }
        }

        fn does(&self, place: Place, deed: FileDeed) -> Result<String, String> {
            let (tell, told) = channel();
            let done = move |said| drop(tell.send(said));
            self.files.take(FileWork {
                place,
                deed,
                done: Some(Box::new(done)),
            });
            let said = told.recv().unwrap();
            said.map(|bytes| String::from_utf8(bytes).unwrap())
        }

        fn append(&self, place: Place, text: &str) {
            let deed = FileDeed::Append(text.as_bytes().into());
            self.files.take(FileWork {
                place,
                deed,
                done: None,
            });
        }
    }

    fn own(name: &str) -> Place {
        Place::Own(name.into())
    }

    #[test]
    fn texts_go_into_files_of_the_folder_and_nowhere_else() {
        let (told, tells) = channel();
        let bench = Bench::new("logs", move |words| drop(told.send(words.to_owned())));
        bench.append(own("a.log"), "one\n");
        bench.append(own("deep/b.log"), "two\n");
        bench.append(own("a.log"), "three\n");
        (0..OPEN_MAX).for_each(|n| bench.append(own(&format!("many/{n}")), "x"));
        bench.append(own("../up.log"), "no\n");
        // A folder is no file.
        for _ in 0..2 {
            bench.append(own("many"), "no\n");
        }
        let folder = bench.folder.clone();
        drop(bench);
        let told: Vec<String> = tells.iter().collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("/many' cannot be written: "), "{told:?}");
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            (read("a.log"), read("deep/b.log")),
            ("one\nthree\n".into(), "two\n".into())
        );
        assert_eq!(read("many/63"), "x");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_is_read_emptied_renamed_and_removed_in_order() {
        let bench = Bench::new("files", |_| ());
        let elsewhere = bench.folder.join("elsewhere/x");
        let at = Place::At(elsewhere.display().to_string());
        bench.append(own("a"), "one");
        let read = |place: &Place, most| bench.does(place.clone(), FileDeed::Read(most));
        assert_eq!(read(&own("a"), 3), Ok("one".into()));
        let said = read(&own("a"), 2).unwrap_err();
        assert!(said.contains("result_mb_max"), "{said}");
        assert_eq!(bench.does(own("a"), FileDeed::Empty), Ok(String::new()));
        bench.append(own("a"), "two");
        let renamed = bench.does(own("a"), FileDeed::Rename(at.clone()));
        assert_eq!(renamed, Ok(String::new()));
        bench.append(own("a"), "new");
        assert_eq!(read(&at, 9), Ok("two".into()));
        assert_eq!(read(&own("a"), 9), Ok("new".into()));
        assert_eq!(bench.does(own("a"), FileDeed::Remove), Ok(String::new()));
        let gone = Err("No such file or directory".to_owned());
        assert_eq!(read(&own("a"), 9), gone);
        assert_eq!(bench.does(own("a"), FileDeed::Remove), gone);
        assert_eq!(read(&own("elsewhere"), 9), Err("it is a folder".into()));
        assert!(read(&own("../x"), 9).unwrap_err().contains("leads out of"));
        fs::remove_dir_all(&bench.folder).unwrap();
    }

    #[test]
    fn texts_that_wait_have_a_bound_in_bytes() {
        let (work, _nobody_works) = sync_channel(WAITING_MAX);
        let waiting = Arc::<Waiting>::default();
        let files = Files {
            work,
            waiting: waiting.clone(),
        };
        let text = || FileDeed::Append(vec![b'x'; WAITING_BYTES_MAX / 2].into());
        for _ in 0..4 {
            files.take(FileWork {
                place: own("a"),
                deed: text(),
                done: None,
            });
        }
        let lost = waiting.lost.load(Ordering::Relaxed);
        assert_eq!(lost, 2);
        assert_eq!(waiting.bytes.load(Ordering::Relaxed), WAITING_BYTES_MAX);
    }
}
