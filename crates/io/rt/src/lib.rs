//! The runtime of a core: one thread, its tasks, its timers and its sockets, over io_uring, epoll,
//! kqueue, or a simulated world.
//!
//! ```
//! use rt::{Driver, ListenOptions};
//!
//! let answer = rt::run(Driver::Auto, |rt| async move {
//!     let listener = rt.listen(&"127.0.0.1:0".parse().unwrap(), ListenOptions::default())?;
//!     let here = listener.local();
//!     rt.spawn(async move {
//!         let client = listener.accept().await.expect("the one who connects below");
//!         while let Ok(bytes) = client.recv().await
//!             && !bytes.is_empty()
//!         {
//!             let _ = client.send(bytes).await; // the buffer goes from socket to socket; nothing is copied
//!         }
//!     });
//!     let server = rt.connect(&here).await?;
//!     server.send(b"hello").await?;
//!     let answer = server.recv().await?;
//!     Ok::<_, std::io::Error>(answer.to_vec())
//! });
//! assert_eq!(answer.unwrap().unwrap(), b"hello");
//! ```
//!
//! # Why not the runtime that everybody uses
//!
//! A proxy spends most of its time in the kernel's TCP code. What it can save is system calls,
//! wakes and copies, and that decides the design:
//!
//! * **One thread is one core.** [`run`] turns the calling thread into a core until its main future
//!   ends. Futures are not `Send`, nothing is shared, nothing is locked. Cores talk through
//!   [`mailbox`]es and count together in [`permits`]; inside a core tasks use [`local`].
//! * **A turn of the loop is one system call** (uring). Tasks run first; what they send is only
//!   queued. At the end of the turn every connection with news gets one gathered send, all of them
//!   enter the kernel together, and the same call waits for what comes next.
//! * **A query costs two polls of its task**: its bytes arrive and are sent to the backend; the
//!   result arrives and is sent to the client. [`Socket::send`] is ready at once; the completion of
//!   a send wakes nobody unless somebody waits.
//! * **Bytes are not copied.** The kernel receives into a buffer of the core's pool; the task gets
//!   it as a [`Chunk`] and gives it to another socket's `send`; when the kernel has taken the
//!   bytes, the buffer is back in the pool.
//! * **Idle connections own no buffer.** Their receive waits in the kernel (uring) or nowhere at
//!   all (epoll, kqueue), so a server that closes a pooled connection is seen at once: [`Socket::is_idle`].
//!
//! # The code map
//!
//! | file | noun |
//! |---|---|
//! | `run.rs` | how a thread becomes a core |
//! | `core.rs` | the loop, and [`Rt`], the handle that everything is asked of |
//! | `hub.rs` | what tasks, sockets and the driver of a core share; a driver sees this of its core and no more |
//! | `executor.rs` | tasks, wakers, the ready queue |
//! | `timer.rs` | the wheel |
//! | `vigil.rs` | how long a core looks before it sleeps |
//! | `chunk.rs` | [`Chunk`]s and the pool of buffers |
//! | `conn.rs` | what all drivers keep of a connection: inbox, outbox, who waits; `gathered.rs`: several pieces in one send |
//! | `socket.rs` | [`Socket`] and [`Listener`], the same over all drivers |
//! | `io.rs` | the seam: an enum of the drivers |
//! | `uring/`, `readiness/`, [`sim`] | the drivers; that of readiness has two kernels, epoll and kqueue |
//! | `bell.rs`, `kevent.rs` | how a core is woken; words and calls of kqueue(2) |
//! | `sys.rs` | system calls, wrapped once |
//! | `handed.rs` | a connection between two cores |
//! | `inherit.rs` | listeners between two processes |
//! | `recycled.rs` | futures on the heap whose memory is used again |
//! | `mailbox.rs`, `local.rs`, `permits.rs`, `flow.rs`, `select.rs` | how tasks and cores meet |
//! | `names.rs`, `resolve.rs` | names that were asked for, and asking |
//! | `address.rs`, `listen.rs`, `instant.rs`, `random.rs`, `driver.rs` | the rest |
//!
//! # What is bounded
//!
//! | what | by |
//! |---|---|
//! | bytes unread on a socket | 64 KiB, then receiving stops until half is read; TCP stops the peer |
//! | bytes unsent on a socket | 64 KiB and the one chunk that crossed it, then `send` waits |
//! | receive buffers of a core | [`Options::buffers`]; under a quarter free, arriving bytes move to the heap, where the bounds above hold them |
//! | a dropped socket with unsent bytes | one second |
//! | accepted connections that nobody asked for | 256 (uring), then the listener's backlog |
//! | polls before the driver gets its turn | 256 |
//! | messages in a mailbox | its capacity; a full one gives the message back |
//! | lookups of names at once | one of a name on a core, 64 in the process |
//! | names whose addresses are known | 256 on a core |
//!
//! # Invariants
//!
//! **The kernel's memory outlives the kernel's interest.** A buffer that was given to the kernel
//! belongs to the driver's table until its completion has come, whatever happens to the future, the
//! task or the socket that began it. At the end of a core everything is cancelled and awaited; what
//! does not come back is leaked, never freed.
//!
//! **`unsafe` is here and nowhere else** in the workspace, and here in `sys.rs`, `chunk.rs`, `bell.rs`,
//! `gathered.rs`, `kevent.rs`, `readiness/epoll.rs`, `uring/`, `recycled.rs` and where futures are pinned inside others; each block says who
//! guarantees what.
//!
//! **Wakers may go anywhere.** They are `Arc`s, they outlive tasks and cores, and may be woken from
//! any thread.
//!
//! **A panic ends one task.** It is caught, counted ([`Rt::panics`]) and told to a hook
//! ([`Rt::on_panic`]).
//!
//! **No clock, no chance, no network but through [`Rt`].** So the same code runs in [`sim`], where
//! all three come from a seed.
//!
//! # Measured
//!
//! `examples/relay.rs` is the least that a proxy on this runtime costs. `sysbench
//! oltp_point_select`, 64 connections, one worker, three rounds side by side on a busy machine, so
//! read the ratios: 24 to 26 µs of CPU per query with uring (0.07 system calls), 36 to 40 with
//! epoll (3.9), 37 to 42 for HAProxy in TCP mode with one thread (3.9). One to two microseconds of
//! the uring relay's are spent in user space. An idle socket takes about 600 bytes of memory.
#![allow(
    unsafe_code,
    reason = "this crate is where the kernel is met; every block says why it is sound"
)]

#[cfg(test)]
extern crate self as rt; // the suites in tests/ are run from inside, too

mod address;
mod bell;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "buffers are lent to the kernel of io_uring")
)]
mod chunk;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "parts of it are for the driver of io_uring")
)]
mod conn;
mod core;
mod driver;
mod executor;
pub mod flow;
#[cfg(target_os = "linux")]
mod gathered;
mod handed;
mod hub;
mod inherit;
mod instant;
mod io;
#[cfg(any(target_os = "freebsd", test))]
mod kevent;
mod listen;
pub mod local;
pub mod mailbox;
mod names;
pub mod permits;
mod random;
mod readiness;
mod recycled;
mod resolve;
mod run;
mod select;
pub mod sim;
mod socket;
mod sys;
mod timer;
mod turns;
#[cfg(target_os = "linux")]
mod uring;
mod vigil;

pub use address::{Address, NotAnAddress};
pub use chunk::{CHUNK_LEN, Chunk};
pub use core::{Alarm, Elapsed, Rt};
pub use driver::{Driver, NotADriver, Options};
pub use executor::panic_words;
pub use handed::{Handed, NotHanded};
pub use inherit::{
    Registered, close_inherited, have_left, inherit, is_inherited, leave_listeners, left,
    listeners, take_inherited,
};
pub use instant::Instant;
pub use listen::ListenOptions;
pub use recycled::{Recycled, recycled};
pub use run::{choose, run, run_with};
pub use select::{Either, select};
pub use socket::{Listener, Socket};
pub use sys::{
    SIGHUP, Signal, clock_ns, cpu_us, end_with_parent, is_short_of, keep_descriptors,
    open_descriptors, signal, signal_group,
};
pub use turns::{LONG_US, Turns};
