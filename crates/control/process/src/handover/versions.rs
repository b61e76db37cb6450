//! Words of other versions, as they were recorded or may come to be.

use super::*;
use bridge::{PoolRow, Report, ServerState};
use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Words of a build of 1 December 2026, which did not say their number, in both parts. One a line.
const SAID: &str = include_str!("2026-12-01.jsonl");

/// Words of that time which begin so.
fn said(beginning: &str) -> &'static str {
    let beginning = format!("{{\"{beginning}\"");
    let mut all = SAID.lines().filter(|line| line.starts_with(&beginning));
    all.next().unwrap()
}

/// Whoever waits longer waits for ever.
const GIVES_UP: Duration = Duration::from_secs(120);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("millrace-versions-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// Says words as they stand here.
fn say_as_it_is(stream: &UnixStream, words: &str, fd: Option<BorrowedFd<'_>>) {
    let word: serde_json::Value = serde_json::from_str(words).unwrap();
    say_any(stream, &word, fd).unwrap();
}

/// An older process that says these to whoever takes over, with something for each descriptor.
fn older(folder: &Folder, words: Vec<String>) -> JoinHandle<UnixStream> {
    let listener = UnixListener::bind(folder.0.join(SOCKET)).unwrap();
    let lock = File::create(folder.0.join("lock")).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let asked = hear(&stream).unwrap();
        assert!(matches!(asked.0, Word::TakesOver { .. }), "{asked:?}");
        for words in words {
            let fd = match &words {
                lock_comes if lock_comes.contains("Lock") => Some(lock.as_fd()),
                port_comes if port_comes.contains("Listener") => Some(port.as_fd()),
                session if session.contains("Session") => Some(port.as_fd()),
                _ => None,
            };
            say_as_it_is(&stream, &words, fd);
        }
        stream
    })
}

#[test]
fn a_process_of_an_older_version_is_taken_over_from() {
    let folder = Folder::new("older");
    let mut words: Vec<_> = ["Welcome", "Listener"].map(said).map(str::to_owned).into();
    words.insert(1, "\"Lock\"".to_owned());
    // Words and fields that nobody knows yet.
    words.insert(1, r#"{"Weather": {"is": "fine"}}"#.to_owned());
    words.insert(2, "\"Hurry\"".to_owned());
    words.push(r#"{"Listener": {"at": "127.0.0.1:6033", "backlog": 5}}"#.to_owned());
    words.push("\"All\"".to_owned());
    let older = older(&folder, words);
    let heritage = take_over(&folder.0, "9.0.0").unwrap();
    assert_eq!(heritage.listeners.len(), 2);
    let (moved, comes) = mpsc::channel();
    let moved = Mutex::new(moved);
    let settle = move |one: Moved| drop(moved.lock().unwrap().send((one.session, one.facts)));
    let _owned = heritage.serves(settle).unwrap();
    let stream = older.join().unwrap();
    assert!(matches!(hear(&stream), Ok((Word::Serves, _))));
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    say_as_it_is(&stream, r#"{"Weather": {"is": "bad"}}"#, None);
    say_as_it_is(&stream, said("Session"), Some(port.as_fd()));
    let (session, facts) = comes.recv().unwrap();
    assert!(said("Session").contains(&session.to_string()));
    assert!(facts.contains("\"row_count\""), "{facts}");
}

#[test]
fn a_process_that_is_too_old_is_not_taken_over_from_and_hears_why() {
    let folder = Folder::new("too-old");
    let words =
        r#"{"Welcome": {"version": "0.0.1", "words": 0, "driver": "epoll", "sessions": true}}"#;
    let older = older(&folder, vec![words.to_owned()]);
    let why = take_over(&folder.0, "9.0.0").err().unwrap();
    assert!(
        why.contains("version 0.0.1, is too old for version 9.0.0"),
        "{why}"
    );
    let heard = hear(&older.join().unwrap());
    assert!(matches!(&heard, Ok((Word::Refused { why: said }, _)) if *said == why));
}

/// A process that serves, as whoever takes over sees it: its socket, and what it does.
struct Serving {
    notes: Arc<Mutex<Vec<String>>>,
    changes: Arc<AtomicBool>,
    left: Receiver<Successor>,
    /// Statements of its one server: one more whenever they are counted.
    counted: Arc<AtomicU64>,
}

fn one_server(queries: u64) -> Totals {
    let row = PoolRow {
        hostgroup: 1,
        host: "db".into(),
        port: 3306,
        state: ServerState::Online,
        used: 0,
        free: 0,
        ok: 0,
        err: 0,
        used_max: 0,
        queries,
        queries_gtid_sync: 0,
        bytes_sent: 0,
        bytes_received: 0,
        latency_us: 0,
    };
    Totals {
        reports: vec![Report::Pool(vec![row])],
        monitor: None,
    }
}

impl Serving {
    fn begin(folder: &Folder) -> Self {
        let owned = folder::take(&folder.0).unwrap();
        let (notes, changes) = (
            Arc::<Mutex<Vec<_>>>::default(),
            Arc::new(AtomicBool::new(true)),
        );
        let (noted, may_change, (leaves, left)) = (notes.clone(), changes.clone(), mpsc::channel());
        let counted = Arc::<AtomicU64>::default();
        let counts = counted.clone();
        let does = Leaves {
            count: Arc::new(move |of| {
                let more = u64::from(of.contains(&Ask::Pool));
                let queries = counts.fetch_add(more, Ordering::SeqCst) + more;
                Some(one_server(queries))
            }),
            begins: Box::new(move |begins| {
                may_change.store(!begins, Ordering::SeqCst);
                Ok(())
            }),
            left: Box::new(move |successor| drop(leaves.send(successor))),
            note: Box::new(move |words| noted.lock().unwrap().push(words.to_owned())),
            permits: Registry::new(),
            version: "9.0.0".to_owned(),
        };
        drop(offer(&folder.0, &owned, Driver::Auto, does).unwrap());
        Self {
            notes,
            changes,
            left,
            counted,
        }
    }
}

/// They follow while both serve, and for the last time when nobody is left.
#[test]
fn totals_follow_whoever_understands_them() {
    let folder = Folder::new("totals");
    let serving = Serving::begin(&folder);
    let heritage = take_over(&folder.0, "9.0.0").unwrap();
    let earlier = heritage.earlier();
    let queries = || match earlier.report(Ask::Pool, false) {
        Some(Report::Pool(rows)) => rows[0].queries,
        _ => 0,
    };
    assert!(!earlier.is_known(Ask::Pool));
    let _owned = heritage.serves(|_| {}).unwrap();
    let successor = serving.left.recv().unwrap();
    while queries() < 2 {
        thread::yield_now();
    }
    assert!(earlier.is_known(Ask::Pool) && !earlier.is_known(Ask::Errors));
    successor.is_all();
    // Nothing more is to come.
    while !earlier.is_known(Ask::Errors) {
        thread::yield_now();
    }
    assert_eq!(queries(), serving.counted.load(Ordering::SeqCst));
}

#[test]
fn a_process_of_an_older_version_takes_over_with_sessions() {
    let folder = Folder::new("newer");
    let serving = Serving::begin(&folder);
    let stream = UnixStream::connect(folder.0.join(SOCKET)).unwrap();
    say_as_it_is(&stream, said("TakesOver"), None);
    let mut names = Vec::new();
    loop {
        match hear(&stream).unwrap() {
            (Word::Welcome { sessions, .. }, _) => assert!(sessions),
            (Word::All, _) => break,
            (word, fd) => names.push((format!("{word:?}"), fd.is_some())),
        }
    }
    assert_eq!(names, [("Lock".to_owned(), true)]);
    assert!(!serving.changes.load(Ordering::SeqCst));
    say_as_it_is(&stream, "\"Serves\"", None);
    let successor = serving.left.recv().unwrap();
    assert!(successor.take().is_some());
    successor.is_all();
}

#[test]
fn who_is_too_old_is_told_so_and_the_next_may_take_over() {
    let folder = Folder::new("refused");
    let serving = Serving::begin(&folder);
    let ask = |words: &str| {
        let stream = UnixStream::connect(folder.0.join(SOCKET)).unwrap();
        say_as_it_is(&stream, words, None);
        hear(&stream).unwrap().0
    };
    let refused = ask(r#"{"TakesOver": {"version": "0.0.1", "words": 0, "sessions": 1}}"#);
    let wanted = "version 0.0.1 is too old to take over from version 9.0.0";
    assert!(matches!(&refused, Word::Refused { why } if why.contains(wanted)));
    assert!(matches!(
        ask(r#"{"Greets": {}}"#),
        Word::Refused { why } if why.contains("does not say what it wants")
    ));
    // Formats of sessions that this version does not write, and one that has more to say than we know.
    let sessions = |words: &str| match ask(words) {
        Word::Welcome { sessions, .. } => sessions,
        other => panic!("{other:?}"),
    };
    assert!(!sessions(
        r#"{"TakesOver": {"version": "9.9", "words": 7, "sessions": 2, "sessions_newest": 5}}"#
    ));
    assert!(sessions(
        r#"{"TakesOver": {"version": "9.9", "words": 7, "sessions": 1, "sessions_newest": 5, "mood": "good"}}"#
    ));
    // Nobody has served so far.
    let until = Instant::now() + GIVES_UP;
    while !serving.changes.load(Ordering::SeqCst) {
        assert!(Instant::now() < until, "changes stay forbidden");
        thread::yield_now();
    }
    let notes = serving.notes.lock().unwrap().join("\n");
    assert!(notes.contains(wanted), "{notes}");
}

/// Clients are told as they are, connections to servers with one more, which is all that this process keeps.
#[test]
fn what_a_process_has_of_limits_is_told_by_their_kinds() {
    let permits = Registry::new();
    let kinds = [
        "clients",
        "user app",
        "user idle",
        "server 1 db:3306",
        "hostgroup 1",
        "copies",
    ];
    for kind in kinds.iter().filter(|kind| **kind != "user idle") {
        let limit = permits.get(kind);
        assert!(limit.try_take(9) && limit.try_take(9));
    }
    drop(permits.get("user idle"));
    let mut told = kept(&permits);
    told.sort();
    let wanted = [
        ("clients", 2),
        ("hostgroup 1", 3),
        ("server 1 db:3306", 3),
        ("user app", 2),
    ];
    assert_eq!(told, wanted.map(|(kind, has)| (kind.to_owned(), has)));
    let may_take = |kind: &str| permits.get(kind).of(9);
    assert_eq!(["user app", "hostgroup 1"].map(may_take), [9, 3]);
}
