//! An upgrade: a newer process takes over from the one that serves, over a socket in the data
//! directory. Listeners go first, sessions follow when they are idle.
//!
//! docs/features/upgrade.md

use crate::counted::{self, Counted, Told};
use crate::folder::{self, Owned};
use bridge::{Ask, Earlier, MOVED_FORMAT, MOVED_OLDEST, Moved, Take, Totals};
use rt::permits::{Beside, Registry};
use rt::{Address, Driver};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

#[cfg(test)]
mod versions;

/// Name of the socket in the data directory.
const SOCKET: &str = "millrace_upgrade.sock";
/// Time that the process that takes over has until it serves.
const SERVES_WITHIN: Duration = Duration::from_secs(10);
/// Time for each step before.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// Time in which all of a process that serves have begun to listen.
const LISTENS_WITHIN: Duration = Duration::from_secs(5);
/// How often the process that leaves says what it has of limits.
const HAS_EVERY: Duration = Duration::from_millis(100);
/// How often it says what it has counted.
const COUNTS_EVERY: Duration = Duration::from_millis(250);
/// Time for answers to whoever has asked before it left.
const ANSWERED_WITHIN: Duration = Duration::from_millis(100);
/// Bytes of a word at most: a session may have as many statements, as JSON.
const WORD_MAX: usize = 64 << 20;

/// Number of the words that this version says. It is one more than before when whoever does not know a new word
/// would do something wrong; a word or a field that can be ignored leaves it.
const WORDS: u32 = 1;
/// Oldest words that are understood.
const WORDS_OLDEST: u32 = 1;

/// Number of the words of a version that does not say it.
const fn first_words() -> u32 {
    1
}

/// Word that one of the two processes says to the other. Each comes with one descriptor or none. The other may
/// be of another version: fields that it does not know are ignored, and those that it does not say have a
/// default.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// Of the newer one: who it is, the words that it says, the formats of sessions that it understands (the
    /// oldest, and the newest if that is another), and whether it understands [`Word::Has`] and [`Word::Counted`].
    TakesOver {
        #[serde(default)]
        version: String,
        #[serde(default = "first_words")]
        words: u32,
        #[serde(default)]
        sessions: u32,
        #[serde(default)]
        sessions_newest: Option<u32>,
        #[serde(default)]
        limits: bool,
        #[serde(default)]
        counts: bool,
    },
    /// Of the older one: who it is, the words that it says, how it talks to the kernel, and whether sessions,
    /// what it has of limits and what it has counted will follow.
    Welcome {
        #[serde(default)]
        version: String,
        #[serde(default = "first_words")]
        words: u32,
        driver: String,
        #[serde(default)]
        sessions: bool,
        #[serde(default)]
        limits: bool,
        #[serde(default)]
        counts: bool,
    },
    /// With the lock of the data directory.
    Lock,
    /// With a listener.
    Listener { at: String },
    /// Nothing more until the newer one serves.
    All,
    /// Clients are served by the newer one.
    Serves,
    /// With the connection of a client.
    Session {
        number: u32,
        facts: String,
        rest: Vec<u8>,
    },
    /// Connections and clients that the older one has, by the limits that they count for.
    Has { limits: Vec<(String, u32)> },
    /// Totals of the older one.
    Counted(Counted),
    /// Why it cannot be.
    Refused {
        #[serde(default)]
        why: String,
    },
    /// A word of another version, which means nothing here.
    #[serde(skip)]
    Unknown,
}

/// Everything that the older process has left.
pub struct Heritage {
    /// The data directory.
    pub owned: Owned,
    /// How listeners were opened for the kernel.
    pub driver: Driver,
    listeners: Vec<(Address, OwnedFd)>,
    stream: UnixStream,
    /// Limits of both processes.
    permits: Registry,
    /// Totals of the older one.
    told: Arc<Told>,
}

/// Actions of the older process for the newer one.
pub(crate) struct Leaves {
    /// Has what is in force kept, and accepts no change; or (`false`) does so again.
    pub(crate) begins: Box<dyn Fn(bool) -> Result<(), String> + Send>,
    /// The newer one serves: where sessions go that it takes, if it takes any.
    pub(crate) left: Box<dyn Fn(Successor) + Send>,
    /// Totals of these kinds, if the admin's thread tells them in time.
    pub(crate) count: Arc<dyn Fn(&'static [Ask]) -> Option<Totals> + Send + Sync>,
    /// Hears what an operator should read.
    pub(crate) note: Box<dyn Fn(&str) + Send>,
    /// Limits that hold for both processes.
    pub(crate) permits: Registry,
    /// Version of this process.
    pub(crate) version: String,
}

/// Which part of a limit this process has, as the one that takes over from it sees it.
fn left_to(limit: &str) -> Beside {
    let is_of = |kinds: &[&str]| kinds.iter().any(|kind| limit.starts_with(kind));
    match limit {
        "clients" => Beside::Clients,
        _ if is_of(&["user "]) => Beside::Clients,
        _ if is_of(&["server ", "hostgroup "]) => Beside::Connections,
        _ => Beside::Nothing,
    }
}

/// The process that has taken over, as the one that leaves reaches it.
pub struct Successor {
    to: Sender<Next>,
    takes_sessions: bool,
}

/// Message that is sent next.
enum Next {
    Session(Moved),
    Counted(Vec<Counted>),
    /// Nothing but the last totals.
    End,
}

impl Successor {
    /// Takes sessions; none if it understands none of ours.
    pub fn take(&self) -> Option<Take> {
        let to = self.to.clone();
        let take = move |moved| {
            to.send(Next::Session(moved))
                .map_err(|unsent| match unsent.0 {
                    Next::Session(moved) => moved,
                    _ => unreachable!("a session was sent"),
                })
        };
        self.takes_sessions.then(|| Arc::new(take) as Take)
    }

    /// Nothing more is sent: the thread of [`offer`] ends behind the last.
    pub fn is_all(&self) {
        drop(self.to.send(Next::End));
    }
}

/// Waits for a process that takes over, on a thread of its own, which ends when one has.
///
/// # Errors
/// There can be no socket in the data directory, or no thread.
pub(crate) fn offer(
    datadir: &Path,
    owned: &Owned,
    driver: Driver,
    leaves: Leaves,
) -> io::Result<JoinHandle<()>> {
    let path = datadir.join(SOCKET);
    // The directory is ours: whoever made it is gone.
    let _none = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    let lock = owned.duplicate()?;
    thread::Builder::new()
        .name("upgrade".into())
        .spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                match leave(&stream, &lock, driver, &leaves) {
                    Ok(None) => {}
                    Ok(Some(follows)) => {
                        drop(listener);
                        return send_all(&stream, &follows, &leaves);
                    }
                    Err(words) => {
                        drop(say(&stream, &Word::Refused { why: words.clone() }, None));
                        (leaves.note)(&format!("nobody has taken over: {words}"));
                        drop((leaves.begins)(false));
                    }
                }
            }
        })
}

/// Sessions that follow, with everything else.
struct Follows {
    next: Receiver<Next>,
    /// Whether limits do.
    limits: bool,
    /// Whether totals do: counts them from time to time.
    counts: bool,
}

/// Leaves all to who asks: what follows; nothing if nobody asked.
fn leave(
    stream: &UnixStream,
    lock: &OwnedFd,
    driver: Driver,
    leaves: &Leaves,
) -> Result<Option<Follows>, String> {
    within(stream, ANSWERS_WITHIN)?;
    let (version, takes_sessions, has_limits, has_counts) = match hear(stream) {
        Ok((
            Word::TakesOver {
                version,
                words,
                sessions,
                sessions_newest,
                limits,
                counts,
            },
            _,
        )) => {
            if words < WORDS_OLDEST {
                return Err(format!(
                    "version {version} is too old to take over from version {own}; end this process, and start that one without --take-over",
                    own = leaves.version
                ));
            }
            let formats = sessions..=sessions_newest.unwrap_or(sessions);
            (version, formats.contains(&MOVED_FORMAT), limits, counts)
        }
        Ok(_) => return Err("it does not say what it wants".to_owned()),
        // A look whether somebody is here.
        Err(_) => return Ok(None),
    };
    (leaves.note)(&format!("version {version} takes over"));
    (leaves.begins)(true)?;
    let welcome = Word::Welcome {
        version: leaves.version.clone(),
        words: WORDS,
        driver: driver.to_string(),
        sessions: takes_sessions,
        limits: true,
        counts: true,
    };
    say(stream, &welcome, None)?;
    say(stream, &Word::Lock, Some(lock.as_fd()))?;
    let listeners = rt::listeners().map_err(|error| error.to_string())?;
    for (at, fd) in &listeners {
        let at = at.to_string();
        say(stream, &Word::Listener { at }, Some(fd.as_fd()))?;
    }
    drop(listeners);
    say(stream, &Word::All, None)?;
    within(stream, SERVES_WITHIN)?;
    match hear(stream) {
        Ok((Word::Serves, _)) => {}
        Ok((Word::Refused { why }, _)) => return Err(why),
        _ => {
            let seconds = SERVES_WITHIN.as_secs();
            return Err(format!(
                "it has not served within {seconds} seconds, or has ended"
            ));
        }
    }
    rt::leave_listeners();
    if has_limits {
        drop(kept(&leaves.permits));
    }
    let (to, next) = mpsc::channel();
    if has_counts {
        let (count, to) = (leaves.count.clone(), to.clone());
        let counting = move || count_until_the_end(&*count, &to);
        // Without it there are the last totals still.
        drop(thread::Builder::new().name("counts".into()).spawn(counting));
    }
    (leaves.left)(Successor { to, takes_sessions });
    Ok(Some(Follows {
        next,
        limits: has_limits,
        counts: has_counts,
    }))
}

/// Has totals sent, now and again, for as long as something is sent. Whoever asks the newer process waits
/// for the first.
fn count_until_the_end(count: &dyn Fn(&'static [Ask]) -> Option<Totals>, to: &Sender<Next>) {
    let tell = |of| match count(of) {
        Some(totals) => to.send(Next::Counted(Counted::of(totals))).is_ok(),
        None => true,
    };
    thread::sleep(ANSWERED_WITHIN);
    let mut goes_on = tell(counted::OFTEN) && tell(counted::SELDOM);
    while goes_on {
        thread::sleep(COUNTS_EVERY);
        goes_on = tell(counted::OFTEN);
    }
}

/// Sends sessions and totals as they come, until nobody has any more, and tells what this process has of
/// limits.
fn send_all(stream: &UnixStream, follows: &Follows, leaves: &Leaves) {
    let mut told = None;
    loop {
        let now = Instant::now();
        if follows.limits && told.is_none_or(|at| now - at >= HAS_EVERY) {
            told = Some(now);
            // Whoever does not hear it takes no sessions, either.
            let limits = kept(&leaves.permits);
            drop(say(stream, &Word::Has { limits }, None));
        }
        match follows.next.recv_timeout(HAS_EVERY) {
            Ok(Next::Session(moved)) => send(stream, moved, &leaves.note),
            Ok(Next::Counted(words)) => say_counted(stream, words),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Next::End) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if let Some(totals) = follows
        .counts
        .then(|| (leaves.count)(counted::ALL))
        .flatten()
    {
        say_counted(stream, Counted::of(totals));
    }
}

fn say_counted(stream: &UnixStream, words: Vec<Counted>) {
    for word in words {
        drop(say(stream, &Word::Counted(word), None));
    }
}

fn send(stream: &UnixStream, moved: Moved, note: &dyn Fn(&str)) {
    let word = Word::Session {
        number: moved.session,
        facts: moved.facts,
        rest: moved.rest,
    };
    if let Err(words) = say(stream, &word, Some(moved.socket.as_fd())) {
        note(&format!(
            "session {} ends, since the process that has taken over does not take it: {words}",
            moved.session
        ));
    }
}

/// Part of limits that this process has. Of connections to servers it keeps as much as it has, and one more that
/// somebody may need: the rest is its successor's. No clients come to it any more.
fn kept(permits: &Registry) -> Vec<(String, u32)> {
    let mut limits = Vec::new();
    permits.each(|limit, permits| {
        let taken = permits.taken();
        let has = match left_to(limit) {
            Beside::Nothing => return,
            Beside::Clients if taken == 0 => return,
            Beside::Clients => taken,
            Beside::Connections => {
                let keeps = taken.saturating_add(1);
                permits.keep(keeps);
                keeps
            }
        };
        limits.push((limit.to_owned(), has));
    });
    limits
}

/// Looks whether a process serves with this data directory that can be taken over from.
///
/// # Errors
/// There is none.
pub fn look_for(datadir: &Path) -> Result<UnixStream, String> {
    let path = datadir.join(SOCKET);
    UnixStream::connect(&path).map_err(|error| {
        format!(
            "no Millrace can be taken over from: {}: {error}; without --take-over this one starts by itself",
            path.display()
        )
    })
}

/// Takes over from the process that serves with this data directory.
///
/// # Errors
/// There is none, or it does not let us.
pub fn take_over(datadir: &Path, version: &str) -> Result<Heritage, String> {
    let stream = look_for(datadir)?;
    within(&stream, ANSWERS_WITHIN)?;
    let asks = Word::TakesOver {
        version: version.to_owned(),
        words: WORDS,
        // Versions that compare it with their own format know no other.
        sessions: MOVED_OLDEST,
        sessions_newest: Some(MOVED_FORMAT),
        limits: true,
        counts: true,
    };
    say(&stream, &asks, None)?;
    let (mut lock, mut listeners, mut driver) = (None, Vec::new(), Driver::Auto);
    let (mut permits, told) = (Registry::new(), Arc::<Told>::default());
    loop {
        match hear(&stream)? {
            (
                Word::Welcome {
                    version: theirs,
                    words,
                    driver: of,
                    limits,
                    counts,
                    ..
                },
                _,
            ) => {
                if words < WORDS_OLDEST {
                    let why = format!(
                        "the process that serves, version {theirs}, is too old for version {version} to take over from it; end it, and start this one without --take-over"
                    );
                    drop(say(&stream, &Word::Refused { why: why.clone() }, None));
                    return Err(why);
                }
                driver = of.parse().map_err(|_| format!("it has the driver {of}"))?;
                if limits {
                    permits = Registry::beside_another(left_to);
                }
                if counts {
                    told.expect();
                }
            }
            (Word::Lock, fd) => lock = fd,
            (Word::Listener { at }, Some(fd)) => {
                let address = at.parse().map_err(|_| format!("it listens at {at}"))?;
                listeners.push((address, fd));
            }
            (Word::All, _) => break,
            (Word::Refused { why }, _) => return Err(why),
            (Word::Unknown, _) => {}
            _ => return Err("it says what makes no sense".to_owned()),
        }
    }
    let lock = lock.ok_or("it does not leave its data directory")?;
    Ok(Heritage {
        owned: folder::inherit(lock)?,
        driver,
        listeners,
        stream,
        permits,
        told,
    })
}

impl Heritage {
    /// Has the listeners of the older process used here.
    pub fn listen(&mut self) {
        rt::inherit(std::mem::take(&mut self.listeners));
    }

    /// Limits, of which the older process has a part until it ends.
    pub fn permits(&self) -> Registry {
        self.permits.clone()
    }

    /// Totals of the older process.
    pub fn earlier(&self) -> Earlier {
        self.told.clone()
    }

    /// Tells the older process that this one cannot go on.
    pub fn refuse(&self, why: &str) {
        let why = why.to_owned();
        // It finds out anyway.
        drop(say(&self.stream, &Word::Refused { why }, None));
    }

    /// Clients are served here: the older process accepts none any more, and its sessions come when
    /// they can, on a thread of their own.
    ///
    /// # Errors
    /// The older process is gone.
    pub fn serves(self, settle: impl Fn(Moved) + Send + 'static) -> Result<Owned, String> {
        let Self {
            owned,
            stream,
            permits,
            told,
            ..
        } = self;
        say(&stream, &Word::Serves, None)?;
        told.begins();
        stream
            .set_read_timeout(None)
            .map_err(|error| error.to_string())?;
        let taking = thread::Builder::new().name("upgrade".into());
        let closes = move || {
            thread::sleep(LISTENS_WITHIN);
            drop(rt::close_inherited());
        };
        let body = move || {
            // What nobody listens at here keeps clients waiting for nothing.
            drop(thread::Builder::new().spawn(closes));
            while let Ok(heard) = hear(&stream) {
                match heard {
                    (
                        Word::Session {
                            number,
                            facts,
                            rest,
                        },
                        Some(socket),
                    ) => settle(Moved {
                        session: number,
                        facts,
                        rest,
                        socket,
                    }),
                    (Word::Has { limits }, _) => {
                        permits.leave_out(limits.into_iter().collect());
                    }
                    (Word::Counted(counted), _) => told.hear(counted),
                    _ => {}
                }
            }
            // It has ended, and has nothing any more.
            permits.leave_out(HashMap::new());
            told.ends();
        };
        let begun = taking.spawn(body).map_err(|error| error.to_string());
        begun.map(|_| owned)
    }
}

fn within(stream: &UnixStream, time: Duration) -> Result<(), String> {
    stream
        .set_read_timeout(Some(time))
        .and_then(|()| stream.set_write_timeout(Some(ANSWERS_WITHIN)))
        .map_err(|error| error.to_string())
}

fn say(stream: &UnixStream, word: &Word, fd: Option<BorrowedFd<'_>>) -> Result<(), String> {
    say_any(stream, word, fd)
}

fn say_any(
    mut stream: &UnixStream,
    word: &impl Serialize,
    fd: Option<BorrowedFd<'_>>,
) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let words = serde_json::to_vec(word).map_err(|error| error.to_string())?;
    let len = u32::try_from(words.len()).map_err(|error| error.to_string())?;
    let fds: Vec<_> = fd.into_iter().collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let len = len.to_be_bytes();
    let sent = rustix::net::sendmsg(
        stream,
        &[IoSlice::new(&len)],
        &mut beside,
        SendFlags::NOSIGNAL,
    );
    let sent = sent.map_err(|error| said(error.into()))?;
    // A descriptor goes with the first byte.
    stream.write_all(&len[sent..]).map_err(said)?;
    stream.write_all(&words).map_err(said)
}

fn hear(mut stream: &UnixStream) -> Result<(Word, Option<OwnedFd>), String> {
    let said = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "it has ended".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer".to_owned(),
        _ => error.to_string(),
    };
    let mut len = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::net::recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut len)],
        &mut beside,
        RecvFlags::CMSG_CLOEXEC,
    );
    let got = got.map_err(|error| said(error.into()))?.bytes;
    if got == 0 {
        return Err("it has ended".to_owned());
    }
    let mut fd = None;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            fd = fds.last();
        }
    }
    stream.read_exact(&mut len[got..]).map_err(said)?;
    let len = u32::from_be_bytes(len) as usize;
    if len > WORD_MAX {
        return Err("it says what makes no sense".to_owned());
    }
    let mut words = vec![0; len];
    stream.read_exact(&mut words).map_err(said)?;
    match serde_json::from_slice(&words) {
        Ok(word) => Ok((word, fd)),
        Err(error) if error.is_data() => Ok((Word::Unknown, fd)),
        Err(error) => Err(error.to_string()),
    }
}
