//! The bell of a core: any thread may ring it, and the core wakes from its sleep in the kernel.

#[cfg(target_os = "linux")]
pub(crate) use by_eventfd::Bell;
#[cfg(target_os = "freebsd")]
pub(crate) use by_kqueue::Bell;

#[cfg(target_os = "linux")]
mod by_eventfd {
    use crate::sys::checked;
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

    /// An eventfd(2). Listeners are edge-triggered, so nobody ever reads the count.
    pub(crate) struct Bell(OwnedFd);

    impl Bell {
        pub(crate) fn new() -> io::Result<Self> {
            // SAFETY: no pointers; a valid result is a descriptor that nobody else owns.
            let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
            // SAFETY: see above.
            Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
        }

        pub(crate) fn ring(&self) {
            let one = 1u64;
            // SAFETY: eight readable bytes. It cannot fail but by being full, and then it rings
            // already.
            unsafe {
                libc::write(
                    self.0.as_raw_fd(),
                    (&raw const one).cast(),
                    size_of::<u64>(),
                )
            };
        }

        pub(crate) fn fd(&self) -> RawFd {
            self.0.as_raw_fd()
        }
    }
}

#[cfg(target_os = "freebsd")]
mod by_kqueue {
    use crate::kevent::{Calls, Kevent};
    use std::io;
    use std::sync::Arc;

    /// The kqueue of the core itself, in which a user's event is triggered. It stays open for as
    /// long as anybody may ring.
    pub(crate) struct Bell(Arc<Calls>);

    impl Bell {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(Arc::new(Calls::new()?)))
        }

        pub(crate) fn ring(&self) {
            // It fails where the core has not begun to listen, and then it looks before it sleeps.
            let _early = self.0.change(&[Kevent::ringing()]);
        }

        pub(crate) fn kqueue(&self) -> Arc<Calls> {
            self.0.clone()
        }
    }
}
