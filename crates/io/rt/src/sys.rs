//! The system calls that the drivers share, each wrapped once, safely.

use crate::address::Address;
use crate::listen::ListenOptions;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
#[cfg(target_os = "freebsd")]
use std::ptr::null;
use std::ptr::null_mut;

/// Turns -1 into the error of this thread.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn checked_len(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Memory straight from the kernel: zeroed, on page boundaries.
pub(crate) struct Map {
    start: *mut u8,
    len: usize,
}

impl Map {
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let len = len.max(1);
        // SAFETY: a fresh anonymous mapping touches no memory of ours.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANON,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are what mmap gave us; whoever hands out pointers into it keeps
        // the Map alive.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// Nanoseconds of the monotonic clock, the same for all threads.
pub(crate) fn monotonic_ns() -> u64 {
    // SAFETY: a timespec of zeros is valid.
    let mut t: libc::timespec = unsafe { zeroed() };
    // SAFETY: `t` is writable. CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    (t.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(t.tv_nsec as u64)
}

/// Nanoseconds of the processor that this thread has had.
pub(crate) fn thread_cpu_ns() -> u64 {
    // SAFETY: a timespec of zeros is valid.
    let mut t: libc::timespec = unsafe { zeroed() };
    // SAFETY: `t` is writable. Where the clock does not exist it stays zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    (t.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(t.tv_nsec as u64)
}

/// Microseconds of the processor that this process has had: those of the program, and those of the
/// kernel for it. None where the kernel does not say.
pub fn cpu_us() -> Option<[u64; 2]> {
    // SAFETY: zeros are a valid rusage.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: `usage` is writable.
    checked(unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) }).ok()?;
    Some([usage.ru_utime, usage.ru_stime].map(|time| {
        (time.tv_sec as u64)
            .wrapping_mul(1_000_000)
            .wrapping_add(time.tv_usec as u64)
    }))
}

/// Number of descriptors that this process has open. None where the kernel does not say.
#[cfg(target_os = "linux")]
pub fn open_descriptors() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

/// Number of descriptors that this process has open. None where the kernel does not say.
// <https://man.freebsd.org/cgi/man.cgi?query=sysctl&sektion=3>: `kern.proc.nfds`, of process 0, which
// stands for the one that asks.
#[cfg(target_os = "freebsd")]
pub fn open_descriptors() -> Option<u64> {
    let name = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_NFDS, 0];
    let mut count: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>();
    // SAFETY: `name` is readable for four numbers, `count` is writable for `len` bytes; nothing is
    // set.
    checked(unsafe {
        libc::sysctl(
            name.as_ptr(),
            name.len() as libc::c_uint,
            (&raw mut count).cast(),
            &raw mut len,
            null(),
            0,
        )
    })
    .ok()?;
    u64::try_from(count).ok()
}

/// Microseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the wall clock"
)]
pub(crate) fn wall_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

/// Eight bytes from the kernel's generator.
pub(crate) fn entropy() -> u64 {
    let mut seed = 0u64;
    // SAFETY: eight writable bytes.
    let n = unsafe { libc::getrandom((&raw mut seed).cast(), size_of::<u64>(), 0) };
    if n == size_of::<u64>() as libc::ssize_t {
        seed
    } else {
        // An ancient or forbidding kernel: the clock and an address are better than a constant.
        monotonic_ns() ^ ((&raw const seed as u64) << 20)
    }
}

/// Bytes of an address of a Unix socket in front of its path.
const BEFORE_PATH: usize = offset_of!(libc::sockaddr_un, sun_path);

/// Bytes that the path of a Unix socket may have, and the one that ends it: 108 on Linux, 104 on
/// FreeBSD.
const PATH_ROOM: usize = size_of::<libc::sockaddr_un>() - BEFORE_PATH;

/// An address as the kernel reads and writes it.
#[derive(Clone, Copy)]
pub(crate) struct RawAddress {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl RawAddress {
    pub(crate) fn empty() -> Self {
        Self {
            // SAFETY: zeros are a valid sockaddr_storage (family AF_UNSPEC).
            storage: unsafe { zeroed() },
            len: size_of::<libc::sockaddr_storage>() as libc::socklen_t,
        }
    }

    pub(crate) fn of(address: &Address) -> io::Result<Self> {
        let mut raw = Self::empty();
        match address {
            Address::Tcp(SocketAddr::V4(at)) => {
                // SAFETY: sockaddr_storage is larger than, and aligned for, every sockaddr; zeros
                // are valid in all.
                let sin = unsafe { &mut *(&raw mut raw.storage).cast::<libc::sockaddr_in>() };
                sin.sin_family = libc::AF_INET as libc::sa_family_t;
                sin.sin_port = at.port().to_be();
                sin.sin_addr.s_addr = u32::from_ne_bytes(at.ip().octets());
                raw.len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            }
            Address::Tcp(SocketAddr::V6(at)) => {
                // SAFETY: as above.
                let sin = unsafe { &mut *(&raw mut raw.storage).cast::<libc::sockaddr_in6>() };
                sin.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                sin.sin6_port = at.port().to_be();
                sin.sin6_addr.s6_addr = at.ip().octets();
                sin.sin6_flowinfo = at.flowinfo();
                sin.sin6_scope_id = at.scope_id();
                raw.len = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            }
            Address::Unix(path) => {
                // SAFETY: as above.
                let sun = unsafe { &mut *(&raw mut raw.storage).cast::<libc::sockaddr_un>() };
                sun.sun_family = libc::AF_UNIX as libc::sa_family_t;
                let bytes = path.as_os_str().as_bytes();
                // One byte stays 0: the end of the path.
                if bytes.is_empty() || bytes.len() >= sun.sun_path.len() || bytes.contains(&0) {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        format!(
                            "the path of a unix socket must have 1 to {} bytes and no zero byte",
                            PATH_ROOM - 1
                        ),
                    ));
                }
                for (to, from) in sun.sun_path.iter_mut().zip(bytes) {
                    *to = *from as libc::c_char;
                }
                raw.len = (BEFORE_PATH + bytes.len() + 1) as libc::socklen_t;
            }
        }
        Ok(raw)
    }

    pub(crate) fn to_address(self) -> Address {
        match libc::c_int::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says what it is, and the storage is large and aligned enough.
                let sin = unsafe { *(&raw const self.storage).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(sin.sin_addr.s_addr.to_ne_bytes());
                Address::Tcp(SocketAddr::new(IpAddr::V4(ip), u16::from_be(sin.sin_port)))
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let sin = unsafe { *(&raw const self.storage).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(sin.sin6_addr.s6_addr);
                let port = u16::from_be(sin.sin6_port);
                Address::Tcp(SocketAddr::V6(SocketAddrV6::new(
                    ip,
                    port,
                    sin.sin6_flowinfo,
                    sin.sin6_scope_id,
                )))
            }
            _ => {
                // SAFETY: as above; all bytes of the path are initialised, at worst with zeros.
                let sun = unsafe { *(&raw const self.storage).cast::<libc::sockaddr_un>() };
                let filled = (self.len as usize).saturating_sub(BEFORE_PATH);
                let path: Vec<u8> = sun
                    .sun_path
                    .iter()
                    .take(filled)
                    .map(|&c| c as u8)
                    .take_while(|&c| c != 0)
                    .collect();
                Address::Unix(PathBuf::from(OsStr::from_bytes(&path)))
            }
        }
    }

    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(crate) fn len(&self) -> libc::socklen_t {
        self.len
    }
}

/// A stream socket for this kind of address.
pub(crate) fn stream_socket(for_address: &Address, nonblocking: bool) -> io::Result<OwnedFd> {
    let family = match for_address {
        Address::Tcp(SocketAddr::V4(_)) => libc::AF_INET,
        Address::Tcp(SocketAddr::V6(_)) => libc::AF_INET6,
        Address::Unix(_) => libc::AF_UNIX,
    };
    let flags = libc::SOCK_CLOEXEC | if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
    // SAFETY: no pointers.
    let fd = checked(unsafe { libc::socket(family, libc::SOCK_STREAM | flags, 0) })?;
    // SAFETY: fresh, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn set_option(
    fd: RawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is readable for its length.
    checked(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) }).map(drop)
}

/// The pending error of a socket, if any; asking clears it.
pub(crate) fn take_error(fd: RawFd) -> io::Result<()> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is writable for `len` bytes.
    checked(unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut value).cast(),
            &raw mut len,
        )
    })?;
    if value == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(value))
    }
}

/// TCP_NODELAY; a listener's goes over to what it accepts.
pub(crate) fn no_delay(fd: RawFd, address: &Address) -> io::Result<()> {
    match address {
        Address::Tcp(_) => set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1),
        Address::Unix(_) => Ok(()),
    }
}

/// Probes of an idle connection: the first after `idle_secs`, then every tenth of that, five times.
pub(crate) fn keepalive(fd: RawFd, idle_secs: Option<u32>) -> io::Result<()> {
    let Some(idle) = idle_secs else {
        return set_option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 0);
    };
    set_option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    if idle == 0 {
        return Ok(());
    }
    let idle = libc::c_int::try_from(idle.min(32_767)).unwrap_or(32_767);
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, idle)?;
    set_option(
        fd,
        libc::IPPROTO_TCP,
        libc::TCP_KEEPINTVL,
        (idle / 10).max(1),
    )?;
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 5)
}

pub(crate) fn local_address(fd: RawFd) -> io::Result<Address> {
    let mut raw = RawAddress::empty();
    // SAFETY: `raw` is writable for `len` bytes.
    checked(unsafe { libc::getsockname(fd, (&raw mut raw.storage).cast(), &raw mut raw.len) })?;
    Ok(raw.to_address())
}

pub(crate) fn peer_address(fd: RawFd) -> io::Result<Address> {
    let mut raw = RawAddress::empty();
    // SAFETY: `raw` is writable for `len` bytes.
    checked(unsafe { libc::getpeername(fd, (&raw mut raw.storage).cast(), &raw mut raw.len) })?;
    Ok(raw.to_address())
}

/// Option by which several listeners share an address and the kernel spreads clients over them.
#[cfg(target_os = "linux")]
const SHARED_PORT: libc::c_int = libc::SO_REUSEPORT;
/// Option by which several listeners share an address and the kernel spreads clients over them. With
/// the option of Linux's name the last listener gets all.
#[cfg(target_os = "freebsd")]
const SHARED_PORT: libc::c_int = libc::SO_REUSEPORT_LB;

/// Binds and listens. A unix socket that a dead process left behind is replaced; a live one is not.
pub(crate) fn listener(
    at: &Address,
    options: ListenOptions,
    nonblocking: bool,
) -> io::Result<OwnedFd> {
    if let Some(fd) = crate::inherit::take_inherited(at) {
        return Ok(fd);
    }
    if let Address::Unix(path) = at {
        // Nonblocking: a live listener whose backlog is full must not hold us up.
        let asks = stream_socket(at, true)?;
        let answer = connect(asks.as_raw_fd(), &RawAddress::of(at)?);
        if answer.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
            std::fs::remove_file(path)?;
        }
    }
    let fd = stream_socket(at, nonblocking)?;
    if let Address::Tcp(tcp) = at {
        set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        if options.reuse_port {
            set_option(fd.as_raw_fd(), libc::SOL_SOCKET, SHARED_PORT, 1)?;
        }
        if tcp.is_ipv6() {
            // `::` and `0.0.0.0` are two addresses, and both may be listened at.
            set_option(fd.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        no_delay(fd.as_raw_fd(), at)?;
    }
    let raw = RawAddress::of(at)?;
    // SAFETY: `raw` is readable for its length.
    checked(unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.len()) })?;
    if let Address::Unix(path) = at {
        // Nobody can connect before the socket listens.
        std::fs::set_permissions(path, Permissions::from_mode(options.unix_mode))?;
    }
    let backlog = libc::c_int::try_from(options.backlog).unwrap_or(libc::c_int::MAX);
    // SAFETY: no pointers.
    checked(unsafe { libc::listen(fd.as_raw_fd(), backlog) })?;
    Ok(fd)
}

pub(crate) fn accept(fd: RawFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: null says that we do not want the address.
    let fd = checked(unsafe { libc::accept4(fd, null_mut(), null_mut(), flags) })?;
    // SAFETY: fresh, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn connect(fd: RawFd, to: &RawAddress) -> io::Result<()> {
    // SAFETY: `to` is readable for its length.
    checked(unsafe { libc::connect(fd, to.as_ptr(), to.len()) }).map(drop)
}

/// Makes a descriptor blocking again.
#[cfg(target_os = "linux")]
pub(crate) fn blocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: no pointers. Of the flags that can be set, our sockets have no other.
    checked(unsafe { libc::fcntl(fd, libc::F_SETFL, 0) }).map(drop)
}

/// Ends both directions at once, whatever is queued.
pub(crate) fn shutdown(fd: RawFd) {
    // SAFETY: no pointers. An error means that it is over already.
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}

/// Ends our direction: the peer sees the end behind what was sent.
pub(crate) fn finish(fd: RawFd) {
    // SAFETY: no pointers. An error means that it is over already.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

pub(crate) fn recv(fd: RawFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `into` is writable for its length.
    checked_len(unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), 0) })
}

/// How many bytes, or 1 for an end or an error, wait in the kernel; 0 for nothing.
pub(crate) fn peek(fd: RawFd) -> usize {
    let mut byte = [0u8; 1];
    // SAFETY: `byte` is writable for one byte.
    let n = checked_len(unsafe {
        libc::recv(
            fd,
            byte.as_mut_ptr().cast(),
            1,
            libc::MSG_PEEK | libc::MSG_DONTWAIT,
        )
    });
    match n {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
        _ => 1,
    }
}

/// Sends from several pieces with one call. Never raises SIGPIPE.
pub(crate) fn send(fd: RawFd, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
    if let [piece] = pieces {
        // SAFETY: the piece is readable for its length.
        return checked_len(unsafe {
            libc::send(fd, piece.as_ptr().cast(), piece.len(), libc::MSG_NOSIGNAL)
        });
    }
    // SAFETY: zeros are a valid msghdr.
    let mut message: libc::msghdr = unsafe { zeroed() };
    // IoSlice is guaranteed to have the layout of iovec; sendmsg does not write to it.
    message.msg_iov = pieces.as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.len() as _;
    // SAFETY: `message` points to `pieces`, which are readable; all live until the call returns.
    checked_len(unsafe { libc::sendmsg(fd, &raw const message, libc::MSG_NOSIGNAL) })
}

/// Wish for the end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// To end when it can: SIGTERM.
    Terminate,
    /// To end now: SIGKILL.
    Kill,
}

/// The signal by which a process is asked to open its log anew.
pub const SIGHUP: i32 = libc::SIGHUP;

/// Sends a signal to a child, and to nobody else.
pub fn signal(child: &std::process::Child, number: i32) {
    let Some(id) = libc::pid_t::try_from(child.id()).ok().filter(|id| *id > 1) else {
        return;
    };
    // SAFETY: as below, no memory is passed, and the child is borrowed.
    unsafe { libc::kill(id, number) };
}

/// Has this process asked to end (SIGTERM) when whoever began it is gone.
pub fn end_with_parent() {
    #[cfg(target_os = "linux")]
    // SAFETY: two numbers; no memory is passed. It cannot fail with a signal that there is.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM)
    };
    #[cfg(target_os = "freebsd")]
    {
        let mut signal = libc::SIGTERM;
        // SAFETY: 0 means this process, and `signal` is readable for an int. It cannot fail with a
        // signal that there is.
        unsafe {
            libc::procctl(
                libc::P_PID,
                0,
                libc::PROC_PDEATHSIG_CTL,
                (&raw mut signal).cast(),
            )
        };
    }
}

/// Nanoseconds on the clock of [`crate::Rt::beat`].
pub fn clock_ns() -> u64 {
    monotonic_ns()
}

/// Sends a signal to the group that this child leads: it was begun with a group of its own
/// (`process_group(0)`).
pub fn signal_group(leader: &std::process::Child, signal: Signal) {
    let number = match signal {
        Signal::Terminate => libc::SIGTERM,
        Signal::Kill => libc::SIGKILL,
    };
    // 0 would be our own group, and 1 everybody.
    let Some(group) = libc::pid_t::try_from(leader.id()).ok().filter(|id| *id > 1) else {
        return;
    };
    // SAFETY: no memory is passed. `leader` is borrowed, so nobody has waited for it meanwhile; had
    // somebody before, its number might belong to another, which is no matter of memory.
    unsafe { libc::kill(-group, number) };
}

/// Has every descriptor above standard error close when another program is executed: also those
/// that whoever started us left open. An old kernel cannot; then it is an error.
pub fn keep_descriptors() -> io::Result<()> {
    const CLOEXEC: libc::c_uint = 1 << 2;
    let (first, last): (libc::c_uint, _) = (3, libc::c_uint::MAX);
    #[cfg(target_os = "linux")]
    // SAFETY: three numbers; no memory is passed, and nothing is closed now.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, CLOEXEC) };
    #[cfg(target_os = "freebsd")]
    // SAFETY: as on Linux.
    let done = unsafe { libc::close_range(first, last, CLOEXEC as libc::c_int) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Names what this machine has no more of, if an error says so: such an error is about nobody else.
pub fn is_short_of(error: &io::Error) -> Option<&'static str> {
    let (ports, files, watches) = if cfg!(target_os = "freebsd") {
        (
            "local ports (net.inet.ip.portrange.first)",
            "file descriptors (kern.maxfiles)",
            "watches",
        )
    } else {
        (
            "local ports (net.ipv4.ip_local_port_range)",
            "file descriptors",
            "watches (fs.epoll.max_user_watches)",
        )
    };
    match error.raw_os_error()? {
        libc::EMFILE => Some("file descriptors for this process (ulimit -n)"),
        libc::ENFILE => Some(files),
        libc::EADDRNOTAVAIL => Some(ports),
        libc::ENOSPC => Some(watches),
        libc::ENOBUFS | libc::ENOMEM => Some("memory for sockets"),
        _ => None,
    }
}

/// Whether the resolver has answered that there is no such host: the standard library has that in
/// the C library's words only. That a host has no address of some kind is no such answer: it is
/// said, too, where only the question for the other kind failed.
pub(crate) fn says_no_such_host(error: &io::Error) -> bool {
    // SAFETY: it gives a static string for any number.
    let said = unsafe { std::ffi::CStr::from_ptr(libc::gai_strerror(libc::EAI_NONAME)) };
    said.to_str()
        .is_ok_and(|said| !said.is_empty() && error.to_string().ends_with(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A55: numbers of the process, whichever system they are asked of.
    #[test]
    fn a_process_knows_its_descriptors_and_its_time() {
        let files: Vec<_> = (0..64)
            .map(|_| stream_socket(&Address::Unix(PathBuf::from("/x")), true).unwrap())
            .collect();
        assert!(open_descriptors().unwrap() >= 64);
        drop(files);
        let [user, system] = cpu_us().unwrap();
        // A machine has been up for less than a century.
        assert!((1..3_000_000_000_000_000).contains(&(user + system)));
    }

    #[test]
    fn what_is_short_here_is_about_nobody_else() {
        let of = |code| is_short_of(&io::Error::from_raw_os_error(code)).is_some();
        assert!(
            [
                libc::EMFILE,
                libc::ENFILE,
                libc::EADDRNOTAVAIL,
                libc::ENOBUFS
            ]
            .into_iter()
            .all(of)
        );
        assert!(
            ![
                libc::ECONNREFUSED,
                libc::EHOSTUNREACH,
                libc::ETIMEDOUT,
                libc::ECONNRESET
            ]
            .into_iter()
            .any(of)
        );
    }

    /// A66: Nagle's delay is off on both ends of every TCP connection, whichever driver made it.
    #[test]
    fn small_packets_are_never_held_back() {
        fn is_undelayed(fd: RawFd) -> bool {
            let mut value: libc::c_int = 0;
            let mut len = size_of::<libc::c_int>() as libc::socklen_t;
            // SAFETY: `value` is writable for `len` bytes.
            let done = unsafe {
                libc::getsockopt(
                    fd,
                    libc::IPPROTO_TCP,
                    libc::TCP_NODELAY,
                    (&raw mut value).cast(),
                    &raw mut len,
                )
            };
            done == 0 && value != 0
        }
        for driver in [
            crate::choose(crate::Driver::Auto).0,
            crate::Driver::READINESS,
        ] {
            crate::run(driver, |rt| async move {
                let at: Address = "127.0.0.1:0".parse().expect("an address");
                let listener = rt
                    .listen(&at, ListenOptions::default())
                    .expect("a free port");
                let mine = rt.connect(&listener.local()).await.expect("it listens");
                let theirs = listener.accept().await.expect("it connected");
                assert!(
                    is_undelayed(mine.descriptor()),
                    "the connecting end, {driver}"
                );
                assert!(
                    is_undelayed(theirs.descriptor()),
                    "the accepting end, {driver}"
                );
            })
            .expect("a runtime");
        }
    }

    #[test]
    fn addresses_survive_the_kernels_form() {
        for text in [
            "1.2.3.4:6033",
            "[2001:db8::1%3]:6032",
            "[::1]:1",
            "/tmp/x.sock",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(RawAddress::of(&address).unwrap().to_address(), address);
        }
    }

    #[test]
    fn a_path_too_long_for_the_kernel_is_refused() {
        assert!(RawAddress::of(&Address::Unix(PathBuf::from("/x".repeat(100)))).is_err());
        assert!(RawAddress::of(&Address::Unix(PathBuf::new())).is_err());
    }
}
