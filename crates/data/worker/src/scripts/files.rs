//! Files of a script: a thread of the control plane has them, and only the session waits that reads one.

use crate::core::Core;
use bridge::{FileDeed, FileWork};
use config::Place;
use rt::{Either, mailbox};
use script::{FileAsk, Reply};
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

/// Bytes that a hook has written and that are still here at most.
const KEPT_LEN_MAX: usize = 16 << 10;

/// The files of one script in one session.
pub(crate) struct Files {
    core: Rc<Core>,
    /// Texts that the hook which runs has written, one a file.
    kept: RefCell<Vec<(Place, Vec<u8>)>>,
    /// Bytes that a file may have which is read.
    len_max: usize,
}

impl Drop for Files {
    fn drop(&mut self) {
        self.send();
    }
}

impl Files {
    pub(crate) fn new(core: Rc<Core>, len_max: usize) -> Self {
        Self {
            core,
            kept: RefCell::default(),
            len_max,
        }
    }

    /// Puts a text at the end of a file, together with others of the same hook.
    pub(crate) fn append(&self, place: &Place, text: &[u8]) {
        let mut kept = self.kept.borrow_mut();
        match kept.last_mut().filter(|(of, _)| of == place) {
            Some((_, before)) => before.extend_from_slice(text),
            None => kept.push((place.clone(), text.to_vec())),
        }
        let bytes: usize = kept.iter().map(|(_, text)| text.len()).sum();
        drop(kept);
        if bytes > KEPT_LEN_MAX {
            self.send();
        }
    }

    /// Makes a file, or makes it empty.
    pub(crate) fn empty(&self, place: &Place) {
        self.send();
        self.hand(place.clone(), FileDeed::Empty);
    }

    /// Hands over what the hook has written.
    pub(crate) fn send(&self) {
        if self.kept.borrow().is_empty() {
            return;
        }
        for (place, text) in self.kept.take() {
            self.hand(place, FileDeed::Append(text.into()));
        }
    }

    fn hand(&self, place: Place, deed: FileDeed) {
        self.core.file(FileWork {
            place,
            deed,
            done: None,
        });
    }

    /// Does what a hook waits for. `told` ends the waiting: somebody has killed the session, or its
    /// statement.
    pub(crate) async fn ask(
        &self,
        (place, ask): (Place, FileAsk),
        told: impl Future<Output = ()>,
    ) -> Reply {
        self.send();
        let deed = match ask {
            FileAsk::Read => FileDeed::Read(self.len_max),
            FileAsk::Remove => FileDeed::Remove,
            FileAsk::Rename(to) => FileDeed::Rename(to),
        };
        let (tell, answer) = mailbox::channel(1);
        self.core.file(FileWork {
            place,
            deed,
            done: Some(Box::new(move |said| {
                let _session_has_gone = tell.try_send(said);
            })),
        });
        match rt::select(pin!(answer.recv()), pin!(told)).await {
            Either::Left(Some(Ok(bytes))) => Reply::File(bytes),
            Either::Left(Some(Err(words))) => Reply::Refused(words),
            Either::Left(None) => Reply::Refused("nobody works on files any more".into()),
            Either::Right(()) => Reply::Refused("it was interrupted".into()),
        }
    }
}
