//! Files that scripts write their logs to: appended to by a thread of its own, since a disk may
//! hang and no core waits for it.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

/// Texts that wait to be written at most.
const WAITING_MAX: usize = 16_384;
/// Files that are open at most: with one more, all are closed and opened anew.
const OPEN_MAX: usize = 64;

/// Where scripts' texts go.
#[derive(Clone)]
pub(crate) struct Files {
    letters: SyncSender<(Box<str>, Box<[u8]>)>,
    lost: Arc<AtomicU64>,
}

impl Files {
    /// Files of this folder, which is made with the first. `note` hears what an operator should read.
    pub(crate) fn below(folder: PathBuf, note: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        let (letters, unread) = sync_channel(WAITING_MAX);
        let lost = Arc::<AtomicU64>::default();
        let mut written = Written {
            folder,
            open: HashMap::new(),
            refused: HashSet::new(),
            note: Box::new(note),
        };
        let counted = lost.clone();
        thread::Builder::new()
            .name("script logs".into())
            .spawn(move || written.all(&unread, &counted))?;
        Ok(Self { letters, lost })
    }

    /// Appends a text to a file. What there is no room for is dropped and counted.
    pub(crate) fn append(&self, file: &str, text: &[u8]) {
        if let Err(TrySendError::Full(_)) = self.letters.try_send((file.into(), text.into())) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Files that the thread has open.
struct Written {
    folder: PathBuf,
    open: HashMap<Box<str>, File>,
    /// Those that could not be opened. Each is named once.
    refused: HashSet<Box<str>>,
    note: Box<dyn Fn(&str) + Send>,
}

impl Written {
    fn all(&mut self, unread: &Receiver<(Box<str>, Box<[u8]>)>, lost: &AtomicU64) {
        for (name, text) in unread {
            self.append(&name, &text);
            let lost = lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                (self.note)(&format!(
                    "{lost} messages of scripts were dropped: the disk has not taken them"
                ));
            }
        }
    }

    fn append(&mut self, name: &str, text: &[u8]) {
        if !self.open.contains_key(name) {
            match self.opened(name) {
                Ok(file) => _ = self.open.insert(name.into(), file),
                Err(error) if self.refused.insert(name.into()) => {
                    (self.note)(&format!(
                        "a script's log '{name}' cannot be opened for writing: {error}"
                    ));
                }
                Err(_told_already) => {}
            }
        }
        if let Some(file) = self.open.get_mut(name)
            && let Err(error) = file.write_all(text)
        {
            self.open.remove(name);
            (self.note)(&format!(
                "a script's log '{name}' cannot be written: {error}"
            ));
        }
    }

    fn opened(&mut self, name: &str) -> io::Result<File> {
        if !is_below(name) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "logs of scripts have relative names, and are in {}",
                    self.folder.display()
                ),
            ));
        }
        if self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        let path = self.folder.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().create(true).append(true).open(path)
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

    #[test]
    fn texts_go_into_files_of_the_folder_and_nowhere_else() {
        let folder =
            std::env::temp_dir().join(format!("millrace-script-logs-{}", std::process::id()));
        let (told, tells) = channel();
        let files = Files::below(folder.clone(), move |words| {
            drop(told.send(words.to_owned()));
        });
        let files = files.unwrap();
        files.append("a.log", b"one\n");
        files.append("deep/b.log", b"two\n");
        files.append("a.log", b"three\n");
        (0..OPEN_MAX).for_each(|n| files.append(&format!("many/{n}"), b"x"));
        for _ in 0..2 {
            files.append("../up.log", b"no\n");
            files.append("/tmp/other.log", b"no\n");
        }
        drop(files);
        let told: Vec<String> = tells.iter().collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains(
            "'../up.log' cannot be opened for writing: logs of scripts have relative names"
        ));
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            (read("a.log"), read("deep/b.log")),
            ("one\nthree\n".into(), "two\n".into())
        );
        assert_eq!(read("many/63"), "x");
        fs::remove_dir_all(folder).unwrap();
    }
}
