//! Changes and events of kqueue(2), and on FreeBSD the calls that make and hear them.
// <https://man.freebsd.org/cgi/man.cgi?query=kqueue&sektion=2>

/// A struct kevent, with the layout that FreeBSD has had since its version 12.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kevent {
    /// Descriptor, or the number of a user's event.
    pub(crate) ident: usize,
    pub(crate) filter: i16,
    pub(crate) flags: u16,
    /// Flags of the filter; in an event of an end, the error of the socket or 0.
    pub(crate) fflags: u32,
    /// Bytes to read, clients to accept or room to write.
    pub(crate) data: i64,
    /// Place in the driver's table; the kernel gives it back as it is.
    pub(crate) udata: usize,
    pub(crate) ext: [u64; 4],
}

pub(crate) const EVFILT_READ: i16 = -1;
pub(crate) const EVFILT_WRITE: i16 = -2;
pub(crate) const EVFILT_USER: i16 = -11;
pub(crate) const EV_ADD: u16 = 0x0001;
pub(crate) const EV_DELETE: u16 = 0x0002;
/// Has an event told once, when it begins: an edge.
pub(crate) const EV_CLEAR: u16 = 0x0020;
/// Mark of a change that failed.
pub(crate) const EV_ERROR: u16 = 0x4000;
pub(crate) const EV_EOF: u16 = 0x8000;
pub(crate) const NOTE_TRIGGER: u32 = 0x0100_0000;

/// Number of the one user's event of a core.
const BELL: usize = 0;

impl Kevent {
    pub(crate) const fn new(ident: usize, filter: i16, flags: u16, udata: usize) -> Self {
        Self {
            ident,
            filter,
            flags,
            fflags: 0,
            data: 0,
            udata,
            ext: [0; 4],
        }
    }

    /// Change that makes the event of the bell.
    pub(crate) const fn bell() -> Self {
        Self::new(BELL, EVFILT_USER, EV_ADD | EV_CLEAR, 0)
    }

    /// Change that has the bell rung.
    pub(crate) const fn ringing() -> Self {
        Self {
            fflags: NOTE_TRIGGER,
            ..Self::new(BELL, EVFILT_USER, 0, 0)
        }
    }
}

#[cfg(target_os = "freebsd")]
pub(crate) use calls::Calls;

#[cfg(target_os = "freebsd")]
mod calls {
    use super::*;
    use crate::sys::checked;
    use std::io;
    use std::mem::offset_of;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::ptr::{null, null_mut};
    use std::time::Duration;

    // The kernel reads and writes `Kevent` in place of its own struct.
    const _: () = {
        assert!(size_of::<Kevent>() == size_of::<libc::kevent>());
        assert!(align_of::<Kevent>() == align_of::<libc::kevent>());
        assert!(offset_of!(Kevent, ident) == offset_of!(libc::kevent, ident));
        assert!(offset_of!(Kevent, filter) == offset_of!(libc::kevent, filter));
        assert!(offset_of!(Kevent, flags) == offset_of!(libc::kevent, flags));
        assert!(offset_of!(Kevent, fflags) == offset_of!(libc::kevent, fflags));
        assert!(offset_of!(Kevent, data) == offset_of!(libc::kevent, data));
        assert!(offset_of!(Kevent, udata) == offset_of!(libc::kevent, udata));
        assert!(offset_of!(Kevent, ext) == offset_of!(libc::kevent, ext));
        assert!(EVFILT_READ == libc::EVFILT_READ);
        assert!(EVFILT_WRITE == libc::EVFILT_WRITE);
        assert!(EVFILT_USER == libc::EVFILT_USER);
        assert!(EV_ADD == libc::EV_ADD);
        assert!(EV_DELETE == libc::EV_DELETE);
        assert!(EV_CLEAR == libc::EV_CLEAR);
        assert!(EV_ERROR == libc::EV_ERROR);
        assert!(EV_EOF == libc::EV_EOF);
        assert!(NOTE_TRIGGER == libc::NOTE_TRIGGER);
    };

    /// A kqueue. A process that this one begins does not inherit it.
    pub(crate) struct Calls(OwnedFd);

    impl Calls {
        /// Opens one that watches nothing.
        pub(crate) fn new() -> io::Result<Self> {
            // SAFETY: no pointers; fresh, and nobody else's.
            let fd = checked(unsafe { libc::kqueue() })?;
            // SAFETY: see above.
            Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
        }

        /// Makes changes in order, up to the first that fails. Any thread may.
        pub(crate) fn change(&self, changes: &[Kevent]) -> io::Result<()> {
            let n = libc::c_int::try_from(changes.len()).unwrap_or(libc::c_int::MAX);
            // SAFETY: `changes` is readable for `n` entries, whose layout is checked above; no
            // events are asked for, so there is nothing to wait for.
            checked(unsafe {
                libc::kevent(
                    self.0.as_raw_fd(),
                    changes.as_ptr().cast(),
                    n,
                    null_mut(),
                    0,
                    null(),
                )
            })
            .map(drop)
        }

        /// Waits for events, at most so long, and says how many there are.
        pub(crate) fn wait(
            &self,
            events: &mut [Kevent],
            at_most: Option<Duration>,
        ) -> io::Result<usize> {
            let max = libc::c_int::try_from(events.len()).unwrap_or(libc::c_int::MAX);
            let limit = at_most.map(|most| libc::timespec {
                tv_sec: libc::time_t::try_from(most.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: most.subsec_nanos() as libc::c_long,
            });
            let limit = limit.as_ref().map_or(null(), |limit| &raw const *limit);
            // SAFETY: `events` is writable for `max` entries, whose layout is checked above;
            // `limit` is null or points to a timespec that lives until the call returns.
            let n = checked(unsafe {
                libc::kevent(
                    self.0.as_raw_fd(),
                    null(),
                    0,
                    events.as_mut_ptr().cast(),
                    max,
                    limit,
                )
            })?;
            Ok(n as usize)
        }
    }
}
