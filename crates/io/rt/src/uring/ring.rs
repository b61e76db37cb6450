//! The two queues shared with the kernel: what we ask (SQ) and what has happened (CQ).

use crate::chunk::CHUNK_LEN;
use crate::conn::errno;
use crate::sys;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue, types};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Of a send that says when it is over, and waits in the kernel until all of it has gone.
pub(super) const PATIENT: i32 = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

/// Of one that does not wait. What goes whole does not say so: the call that hands it over can
/// sleep at once for what comes next. If there is no room for all of it, it says how much has gone.
pub(super) const QUICK: i32 = PATIENT | libc::MSG_DONTWAIT;

const ENTRIES: u32 = 1024;
const COMPLETIONS: u32 = 8192;

/// One completion.
#[derive(Clone, Copy)]
pub(super) struct Done {
    pub(super) data: u64,
    pub(super) result: i32,
    pub(super) flags: u32,
}

pub(super) struct Ring {
    ring: IoUring,
    backlog: VecDeque<squeue::Entry>, // what did not fit into the SQ; it goes first
    pending: usize,                   // operations whose last completion has not come
    flags_work: bool,                 // the kernel sets a flag when it has completions to make
}

impl Ring {
    /// A ring of this thread alone, with completions gathered until we ask for them; on older
    /// kernels with less.
    pub(super) fn new(entries: u32, completions: u32) -> io::Result<Self> {
        let mut flags_work = true;
        let built = IoUring::builder()
            .setup_cqsize(completions)
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(entries)
            .or_else(|_| {
                IoUring::builder()
                    .setup_cqsize(completions)
                    .setup_coop_taskrun()
                    .setup_taskrun_flag()
                    .build(entries)
            })
            .or_else(|_| {
                flags_work = false;
                IoUring::builder().setup_cqsize(completions).build(entries)
            })?;
        if !built.params().is_feature_ext_arg() || !built.params().is_feature_nodrop() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel's io_uring is too old",
            ));
        }
        Ok(Self {
            ring: built,
            backlog: VecDeque::new(),
            pending: 0,
            flags_work,
        })
    }

    pub(super) fn of_a_core() -> io::Result<Self> {
        Self::new(ENTRIES, COMPLETIONS)
    }

    pub(super) fn io(&self) -> &IoUring {
        &self.ring
    }

    /// Operations that the kernel has not finished.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Queues an operation for the next `enter`.
    ///
    /// # Safety
    ///
    /// What the entry points to must stay valid, and unmoved, until its last completion has been
    /// taken by `reap`.
    pub(super) unsafe fn push(&mut self, entry: squeue::Entry) {
        self.pending += 1;
        // SAFETY: the caller's promise.
        if self.backlog.is_empty() && unsafe { self.ring.submission().push(&entry) }.is_ok() {
            return;
        }
        self.backlog.push_back(entry);
        // Full: the kernel takes what is there, which makes room. If it cannot now, the backlog
        // waits for the next turn.
        let _ = self.ring.submit();
        self.move_backlog();
    }

    fn move_backlog(&mut self) {
        while let Some(entry) = self.backlog.front() {
            // SAFETY: `push` got the promise for it.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }

    /// Whether the kernel leaves out completions that only say that all is well, and says of a send
    /// that did not go whole how much of it went. The first 6.0 kernels said `EAGAIN`, so that its
    /// beginning would be sent twice: neither version nor flag tells, it is tried.
    pub(super) fn can_be_silent() -> bool {
        silence().unwrap_or(false)
    }

    /// The kernel has taken all that was queued, and `reap` will take all that it had to say of it.
    pub(super) fn has_told_all(&mut self) -> bool {
        let queue = self.ring.submission();
        self.backlog.is_empty() && queue.is_empty() && !queue.cq_overflow()
    }

    /// So many operations have ended without a word.
    pub(super) fn ended_in_silence(&mut self, count: usize) {
        self.pending = self.pending.saturating_sub(count);
    }

    /// Hands over what is queued. With `wait`, sleeps until something has happened or the time is
    /// over; `None` in it is for ever.
    pub(super) fn enter(&mut self, wait: Option<Option<Duration>>) {
        if !self.backlog.is_empty() {
            self.move_backlog();
        }
        let (len, work) = {
            let queue = self.ring.submission();
            (queue.len() as u32, queue.taskrun() || queue.cq_overflow())
        };
        let submitter = self.ring.submitter();
        let events = EnterFlags::GETEVENTS.bits();
        // Errors: ETIME and EINTR end the sleep; EAGAIN and EBUSY leave the entries for the next
        // turn.
        let _ = match wait {
            // The kernel's flag says that it has nothing for us, nor have we for it.
            None if len == 0 && !work && self.flags_work => return,
            // SAFETY: no argument; the entries are kept by those who pushed them.
            None => unsafe { submitter.enter::<libc::sigset_t>(len, 0, events, None) },
            // SAFETY: as above.
            Some(None) => unsafe { submitter.enter::<libc::sigset_t>(len, 1, events, None) },
            Some(Some(time)) => {
                let time = Timespec::from(time);
                let args = SubmitArgs::new().timespec(&time);
                // SAFETY: `args` has the kernel's layout, as the crate's own `submit_with_args`
                // relies on, and lives, like `time`, until the call returns; the entries are kept
                // by those who pushed them.
                unsafe { submitter.enter(len, 1, events | EnterFlags::EXT_ARG.bits(), Some(&args)) }
            }
        };
    }

    /// Takes all completions.
    pub(super) fn reap(&mut self, into: &mut Vec<Done>) {
        for entry in self.ring.completion() {
            if !io_uring::cqueue::more(entry.flags()) {
                self.pending = self.pending.saturating_sub(1);
            }
            into.push(Done {
                data: entry.user_data(),
                result: entry.result(),
                flags: entry.flags(),
            });
        }
    }
}

/// The free buffers that the kernel may fill: a ring of its own, which we fill and it empties.
pub(super) struct Buffers {
    memory: sys::Map,
    mask: u16,
    tail: u16,
}

pub(super) const GROUP: u16 = 0;

impl Buffers {
    /// Registers a ring for `count` buffers.
    pub(super) fn new(ring: &Ring, count: usize) -> io::Result<Self> {
        let entries = count.next_power_of_two().clamp(1, 32_768) as u16;
        let memory = sys::Map::new(usize::from(entries) * size_of::<types::BufRingEntry>())?;
        // SAFETY: the memory is page-aligned, large enough, and lives as long as this value;
        // `Uring` closes the ring first.
        unsafe {
            ring.io().submitter().register_buf_ring_with_flags(
                memory.start() as u64,
                entries,
                GROUP,
                0,
            )
        }?;
        Ok(Self {
            memory,
            mask: entries - 1,
            tail: 0,
        })
    }

    /// Adds a buffer; `publish` shows it to the kernel.
    pub(super) fn add(&mut self, index: u16, start: *mut u8) {
        let entries = self.memory.start().cast::<types::BufRingEntry>();
        // SAFETY: the masked index lies inside the ring. The kernel reads entries only up to the
        // published tail, and we are beyond it: there are never more buffers than entries.
        let entry = unsafe { &mut *entries.add(usize::from(self.tail & self.mask)) };
        entry.set_addr(start as u64);
        entry.set_len(CHUNK_LEN as u32);
        entry.set_bid(index);
        self.tail = self.tail.wrapping_add(1);
    }

    pub(super) fn publish(&self) {
        let base = self.memory.start().cast::<types::BufRingEntry>();
        // SAFETY: `base` is the first entry of the ring; the tail lies in its reserved field, is
        // aligned, and is written by us only. Release: the kernel sees the entries before it sees
        // the tail.
        unsafe {
            let tail = types::BufRingEntry::tail(base).cast::<std::sync::atomic::AtomicU16>();
            (*tail).store(self.tail, std::sync::atomic::Ordering::Release);
        }
    }
}

/// One send that fits, and one that does not, into a pair of sockets that nobody reads meanwhile.
fn silence() -> io::Result<bool> {
    let mut ring = Ring::new(8, 16)?;
    if !ring.ring.params().is_feature_skip_cqe_on_success() {
        return Ok(false);
    }
    let (ours, mut theirs) = UnixStream::pair()?;
    let large = vec![b'?'; 8 << 20];
    for len in [1, large.len() as u32] {
        let send = opcode::Send::new(types::Fd(ours.as_raw_fd()), large.as_ptr(), len)
            .flags(QUICK)
            .build();
        // SAFETY: it does not wait, so it is over when `enter` returns; `large` is dropped after
        // `ring` is, below, all the same.
        unsafe { ring.push(send.flags(squeue::Flags::SKIP_SUCCESS)) };
        ring.enter(None);
    }
    let mut done = Vec::new();
    ring.reap(&mut done);
    let said: Vec<_> = done.iter().map(|one| one.result).collect();
    theirs.set_nonblocking(true)?;
    let mut came = 0;
    let mut buffer = vec![0; 1 << 20];
    while let Ok(n @ 1..) = io::Read::read(&mut theirs, &mut buffer) {
        came += n;
    }
    drop(ring);
    drop(large);
    // All of the first, of which nothing was said, and of the second what was said.
    Ok(
        matches!(said[..], [went] if went > 0 && usize::try_from(went).is_ok_and(|went| came == went + 1)),
    )
}

/// Does all that the driver needs work here? Tries it on a pair of sockets, since neither version
/// nor probe tells.
pub(super) fn probe() -> io::Result<()> {
    let mut ring = Ring::new(8, 16)?;
    let mut buffers = Buffers::new(&ring, 2)?;
    let memory = sys::Map::new(2 * CHUNK_LEN)?;
    buffers.add(0, memory.start());
    buffers.publish();
    let (ours, mut theirs) = UnixStream::pair()?;
    let receive = opcode::RecvMulti::new(types::Fd(ours.as_raw_fd()), GROUP).build();
    // SAFETY: the entry points to nothing of ours; the buffer is in `memory`, which is dropped
    // after `ring` is, below.
    unsafe { ring.push(receive) };
    ring.enter(None);
    theirs.write_all(b"?")?;
    ring.enter(Some(Some(Duration::from_secs(1))));
    let mut done = Vec::new();
    ring.reap(&mut done);
    drop(theirs);
    drop(ours);
    // Before the memory: the receive is over with its sockets or with the ring.
    let worked = done
        .first()
        .map(|d| (d.result, io_uring::cqueue::more(d.flags)));
    drop(ring);
    drop((buffers, memory));
    match worked {
        Some((1, true)) => Ok(()),
        Some((e, _)) if e < 0 => Err(errno(-e)),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the kernel has no multishot receive",
        )),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_kernel_that_has_io_uring_says_how_much_of_a_send_went() {
        // Elsewhere every send says that it is over, which costs, and nothing else.
        assert!(
            super::probe().is_err() || super::silence().is_ok(),
            "{:?}",
            super::silence()
        );
    }
}
