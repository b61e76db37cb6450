//! Readiness by kqueue(2): which changes are told to the kernel, and what its events mean.
//!
//! Nothing here makes a system call. [`Queue`] does, so all of this is tested wherever tests run.

use super::kernel::{Kernel, News, Watched};
use crate::bell::Bell;
use crate::kevent::{
    EV_ADD, EV_CLEAR, EV_DELETE, EV_EOF, EV_ERROR, EVFILT_READ, EVFILT_WRITE, Kevent,
};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// A kqueue of the kernel, or what stands for one in a test.
pub(crate) trait Queue: Sized {
    /// The queue of a core that this bell wakes.
    fn open(bell: &Bell) -> io::Result<Self>;

    /// Makes changes in order, up to the first that fails. Any thread may.
    fn change(&self, changes: &[Kevent]) -> io::Result<()>;

    /// Waits for events, at most so long (`None`: for ever), and says how many there are.
    fn wait(&self, events: &mut [Kevent], at_most: Option<Duration>) -> io::Result<usize>;
}

#[cfg(target_os = "freebsd")]
impl Queue for std::sync::Arc<crate::kevent::Calls> {
    fn open(bell: &Bell) -> io::Result<Self> {
        Ok(bell.kqueue())
    }

    fn change(&self, changes: &[Kevent]) -> io::Result<()> {
        (**self).change(changes)
    }

    fn wait(&self, events: &mut [Kevent], at_most: Option<Duration>) -> io::Result<usize> {
        (**self).wait(events, at_most)
    }
}

/// Words that a core and a kqueue exchange.
pub(crate) struct Kqueue<Q: Queue>(Q);

/// Filters that a descriptor of this kind has.
fn filters(kind: Watched) -> &'static [i16] {
    match kind {
        Watched::Connection => &[EVFILT_READ, EVFILT_WRITE],
        Watched::Listener => &[EVFILT_READ],
    }
}

impl<Q: Queue> Kernel for Kqueue<Q> {
    type Event = Kevent;
    const BLANK: Kevent = Kevent::ringing();

    fn open(of: &Bell) -> io::Result<Self> {
        let queue = Q::open(of)?;
        queue.change(&[Kevent::bell()])?;
        Ok(Self(queue))
    }

    fn watch(&self, fd: RawFd, kind: Watched, place: u32) -> io::Result<()> {
        // One call for both filters. If the second fails, whoever asked closes the descriptor, and
        // the first is gone with it.
        let mut changes = [Self::BLANK; 2];
        let filters = filters(kind);
        for (change, filter) in changes.iter_mut().zip(filters) {
            *change = Kevent::new(fd as usize, *filter, EV_ADD | EV_CLEAR, place as usize);
        }
        self.0.change(&changes[..filters.len()])
    }

    fn forget(&self, fd: RawFd, kind: Watched) {
        // One call each: a change behind one that fails would not be made.
        for filter in filters(kind) {
            let _gone = self
                .0
                .change(&[Kevent::new(fd as usize, *filter, EV_DELETE, 0)]);
        }
    }

    fn wait(&self, events: &mut [Kevent], at_most: Option<Duration>) -> io::Result<usize> {
        self.0.wait(events, at_most)
    }

    fn news(event: &Kevent) -> Option<News> {
        if event.flags & EV_ERROR != 0 {
            return None;
        }
        let place = u32::try_from(event.udata).ok()?;
        let readable = event.filter == EVFILT_READ;
        let writable = event.filter == EVFILT_WRITE;
        (readable || writable).then_some(News {
            place,
            readable,
            writable,
            // An end of writing says nothing of the peer: our own shutdown(2) makes one. Where the
            // peer has reset the connection, reading has ended, too.
            ended: readable && event.flags & EV_EOF != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kevent::{EVFILT_USER, NOTE_TRIGGER};
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A kernel that writes down what it is told, and fails from the change with this number on.
    #[derive(Clone, Default)]
    struct Scripted {
        told: Rc<RefCell<Vec<String>>>,
        fails_at: Option<usize>,
        events: Rc<RefCell<Vec<Kevent>>>,
    }

    fn drawn(change: &Kevent) -> String {
        let filter = match change.filter {
            EVFILT_READ => "READ",
            EVFILT_WRITE => "WRITE",
            EVFILT_USER => "USER",
            _ => "?",
        };
        let names = [(EV_ADD, "ADD"), (EV_DELETE, "DELETE"), (EV_CLEAR, "CLEAR")];
        let flags: Vec<_> = names
            .iter()
            .filter(|(bit, _)| change.flags & bit != 0)
            .map(|(_, name)| *name)
            .collect();
        let trigger = if change.fflags & NOTE_TRIGGER != 0 {
            " TRIGGER"
        } else {
            ""
        };
        let (ident, udata) = (change.ident, change.udata);
        format!(
            "{filter} {ident}: {}{trigger} udata {udata}",
            flags.join("|")
        )
    }

    impl Queue for Scripted {
        fn open(_bell: &Bell) -> io::Result<Self> {
            Ok(Self::default())
        }

        fn change(&self, changes: &[Kevent]) -> io::Result<()> {
            let mut told = self.told.borrow_mut();
            for (number, change) in changes.iter().enumerate() {
                if self.fails_at == Some(number) {
                    told.push("fails".to_owned());
                    return Err(io::Error::from_raw_os_error(libc::ENOMEM));
                }
                told.push(drawn(change));
            }
            told.push("-".to_owned());
            Ok(())
        }

        fn wait(&self, events: &mut [Kevent], _at_most: Option<Duration>) -> io::Result<usize> {
            let mut all = self.events.borrow_mut();
            let n = all.len().min(events.len());
            for (event, from) in events.iter_mut().zip(all.drain(..n)) {
                *event = from;
            }
            Ok(n)
        }
    }

    fn told(kernel: &Kqueue<Scripted>) -> Vec<String> {
        kernel.0.told.take()
    }

    /// A55: a core asks a kqueue for edges alone, and takes them back before a connection is
    /// another core's.
    #[test]
    fn a_connection_is_two_filters_and_a_listener_one() {
        let kernel = Kqueue::<Scripted>::open(&Bell::new().unwrap()).unwrap();
        assert_eq!(told(&kernel), ["USER 0: ADD|CLEAR udata 0", "-"]);
        kernel.watch(7, Watched::Connection, 3).unwrap();
        assert_eq!(
            told(&kernel),
            [
                "READ 7: ADD|CLEAR udata 3",
                "WRITE 7: ADD|CLEAR udata 3",
                "-"
            ]
        );
        kernel.watch(8, Watched::Listener, 4).unwrap();
        assert_eq!(told(&kernel), ["READ 8: ADD|CLEAR udata 4", "-"]);
        kernel.forget(8, Watched::Listener);
        assert_eq!(told(&kernel), ["READ 8: DELETE udata 0", "-"]);
        kernel.forget(7, Watched::Connection);
        assert_eq!(
            told(&kernel),
            [
                "READ 7: DELETE udata 0",
                "-",
                "WRITE 7: DELETE udata 0",
                "-"
            ]
        );
        assert_eq!(drawn(&Kevent::ringing()), "USER 0:  TRIGGER udata 0");
    }

    #[test]
    fn a_kernel_that_is_short_of_memory_is_heard_at_once() {
        let kernel = Kqueue(Scripted {
            fails_at: Some(1),
            ..Scripted::default()
        });
        let refused = kernel.watch(7, Watched::Connection, 3).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOMEM));
        assert_eq!(told(&kernel), ["READ 7: ADD|CLEAR udata 3", "fails"]);
        let kernel = Kqueue(Scripted {
            fails_at: Some(0),
            ..Scripted::default()
        });
        // A filter that is gone already keeps nobody from taking back the other.
        kernel.forget(7, Watched::Connection);
        assert_eq!(told(&kernel), ["fails", "fails"]);
    }

    /// A55: meaning of each event of kqueue(2).
    #[test]
    fn an_event_says_what_may_be_done_and_whether_the_peer_has_ended() {
        let drawn = |filter, flags, fflags, data| {
            let event = Kevent {
                fflags,
                data,
                ..Kevent::new(7, filter, flags, 3)
            };
            Kqueue::<Scripted>::news(&event).map_or_else(
                || "nothing".to_owned(),
                |news| {
                    assert_eq!(news.place, 3);
                    let words = [
                        (news.readable, "readable"),
                        (news.writable, "writable"),
                        (news.ended, "ended"),
                    ];
                    let words: Vec<_> = words
                        .iter()
                        .filter(|(is, _)| *is)
                        .map(|(_, w)| *w)
                        .collect();
                    words.join(" ")
                },
            )
        };
        let reset = libc::ECONNRESET as u32;
        for (about, filter, flags, fflags, data, means) in [
            ("bytes", EVFILT_READ, EV_CLEAR, 0, 5, "readable"),
            (
                "an error in passing",
                EVFILT_READ,
                EV_CLEAR,
                0,
                0,
                "readable",
            ),
            (
                "an end behind bytes",
                EVFILT_READ,
                EV_CLEAR | EV_EOF,
                0,
                5,
                "readable ended",
            ),
            (
                "an end",
                EVFILT_READ,
                EV_CLEAR | EV_EOF,
                0,
                0,
                "readable ended",
            ),
            (
                "a reset",
                EVFILT_READ,
                EV_CLEAR | EV_EOF,
                reset,
                0,
                "readable ended",
            ),
            (
                "room, or a connect",
                EVFILT_WRITE,
                EV_CLEAR,
                0,
                65536,
                "writable",
            ),
            (
                "our own end",
                EVFILT_WRITE,
                EV_CLEAR | EV_EOF,
                0,
                65536,
                "writable",
            ),
            (
                "a connect that failed",
                EVFILT_WRITE,
                EV_CLEAR | EV_EOF,
                reset,
                0,
                "writable",
            ),
            ("the bell", EVFILT_USER, EV_CLEAR, 0, 0, "nothing"),
            (
                "a change that failed",
                EVFILT_READ,
                EV_ERROR,
                0,
                12,
                "nothing",
            ),
        ] {
            assert_eq!(drawn(filter, flags, fflags, data), means, "{about}");
        }
    }
}
