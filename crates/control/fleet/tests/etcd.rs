//! The books in a real etcd: one node, and three of which one dies. Without etcd these tests say
//! SKIPPED.
#![forbid(unsafe_code)]

use fleet::{Books, HISTORY_MAX, Head, Place, Seal, Status, Written};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, io, process};

/// Nodes in a temporary folder; they end with this.
struct Etcd {
    nodes: Vec<Child>,
    ports: Vec<u16>,
    folder: PathBuf,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            let _gone = node.kill();
            let _gone = node.wait();
        }
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

impl Etcd {
    /// `None` where etcd is not installed.
    fn start(name: &str, count: usize) -> Option<Self> {
        let folder = env::temp_dir().join(format!("millrace-fleet-{name}-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let free = || {
            let bound = TcpListener::bind("127.0.0.1:0").expect("a port");
            bound.local_addr().expect("it is bound").port()
        };
        let ports: Vec<(u16, u16)> = (0..count).map(|_| (free(), free())).collect();
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let peer = |(nth, (_, peer)): (usize, &(u16, u16))| format!("n{nth}={}", url(*peer));
        let all: Vec<_> = ports.iter().enumerate().map(peer).collect();
        let mut etcd = Self {
            nodes: Vec::new(),
            ports: ports.iter().map(|(port, _)| *port).collect(),
            folder,
        };
        for (nth, (port, peer)) in ports.iter().enumerate() {
            let node = Command::new("etcd")
                .args(["--name", &format!("n{nth}"), "--data-dir"])
                .arg(etcd.folder.join(format!("n{nth}")))
                .args([
                    "--listen-client-urls",
                    &url(*port),
                    "--advertise-client-urls",
                    &url(*port),
                ])
                .args([
                    "--listen-peer-urls",
                    &url(*peer),
                    "--initial-advertise-peer-urls",
                    &url(*peer),
                ])
                .args([
                    "--initial-cluster",
                    &all.join(","),
                    "--heartbeat-interval",
                    "50",
                ])
                .args(["--election-timeout", "500", "--unsafe-no-fsync"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            match node {
                Ok(node) => etcd.nodes.push(node),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    eprintln!("SKIPPED: there is no etcd");
                    return None;
                }
                Err(error) => panic!("etcd: {error}"),
            }
        }
        Some(etcd)
    }

    fn place(&self) -> Place {
        let hosts: Vec<_> = self
            .ports
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        Place::parse(&format!("etcd://{}/shop", hosts.join(","))).expect("a place")
    }
}

/// Runs with books that answer.
fn with<F>(place: Place, body: impl FnOnce(rt::Rt, Books) -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let done = rt::run(rt::Driver::READINESS, move |rt| async move {
        for host in &place.hosts {
            let one = Place {
                hosts: vec![host.clone()],
                ..place.clone()
            };
            let mut tries = 0;
            while let Err(failed) = Books::new(rt.clone(), one.clone()).look().await {
                tries += 1;
                assert!(tries < 200, "{failed}");
                rt.sleep(Duration::from_millis(100)).await;
            }
        }
        let books = Books::new(rt.clone(), place);
        body(rt, books).await;
    });
    done.expect("a runtime");
}

fn head(generation: u64, id: &str) -> Head {
    Head {
        generation,
        id: id.to_owned(),
        by: "one:6032".to_owned(),
        ..Head::default()
    }
}

/// A text of several parts.
fn long() -> Vec<u8> {
    (0..200_000_u32)
        .flat_map(|n| format!("[{n}]\n").into_bytes())
        .collect()
}

#[test]
fn a_module_is_written_whole_by_one_and_the_other_is_told_who_was_faster() {
    let Some(etcd) = Etcd::start("one", 1) else {
        return;
    };
    with(etcd.place(), |_rt, books| async move {
        let none = books.look().await.unwrap();
        assert!(none.modules.is_empty() && none.proxies.is_empty());
        let mut watch = books.watch(&none).await.unwrap();
        let text = long();
        let first = books.write("users", (head(1, "a"), 0), &text, None).await;
        let Ok(Written::Done(revision)) = first else {
            panic!("{first:?}")
        };
        watch.next().await.unwrap();
        let seen = books.look().await.unwrap();
        let truth = &seen.modules["users"];
        assert_eq!((truth.revision, truth.head.parts > 1), (revision, true));
        assert_eq!(books.text("users", &truth.head, None).await.unwrap(), text);
        // Whoever has not seen it is slower, with many parts and with one, and leaves nothing.
        for slow in [&text[..], b"#t\n"] {
            let second = books.write("users", (head(1, "b"), 0), slow, None).await;
            assert_eq!(second, Ok(Written::Slower(Some(truth.clone()))));
            assert!(
                books
                    .text(
                        "users",
                        &Head {
                            parts: 1,
                            ..head(1, "b")
                        },
                        None
                    )
                    .await
                    .is_err()
            );
        }
        let next = books
            .write("users", (head(2, "c"), revision), b"#t\n[1]\n", None)
            .await;
        let Ok(Written::Done(revision)) = next else {
            panic!("{next:?}")
        };
        books.prune("users", revision).await.unwrap();
        let history = books.history("users").await.unwrap();
        let ids: Vec<_> = history.iter().map(|head| &*head.id).collect();
        assert_eq!(ids, ["c", "a"]);
        assert_eq!(
            books.text("users", &history[1], None).await.unwrap(),
            text,
            "of before"
        );
    });
}

#[test]
fn what_is_sealed_is_read_with_the_key_only_and_history_has_a_bound() {
    let Some(etcd) = Etcd::start("sealed", 1) else {
        return;
    };
    with(etcd.place(), |_rt, books| async move {
        let (key, other) = (Seal::of(&[1; 32]).unwrap(), Seal::of(&[2; 32]).unwrap());
        let mut revision = 0;
        for generation in 1..=HISTORY_MAX as u64 + 3 {
            let head = head(generation, &format!("id{generation}"));
            let wrote = books.write("users", (head, revision), b"#u\n[\"s3cret\"]\n", Some(&key));
            let Ok(Written::Done(now)) = wrote.await else {
                panic!("{generation}")
            };
            revision = now;
            books.prune("users", revision).await.unwrap();
        }
        let head = books.look().await.unwrap().modules["users"].head.clone();
        assert!(books.text("users", &head, Some(&key)).await.is_ok());
        for (seal, words) in [(None, "is not set"), (Some(&other), "another key")] {
            let said = books
                .text("users", &head, seal)
                .await
                .unwrap_err()
                .to_string();
            assert!(said.contains(words) && !said.contains("s3cret"), "{said}");
        }
        let history = books.history("users").await.unwrap();
        assert_eq!(
            (history.len(), history[0].generation),
            (HISTORY_MAX, HISTORY_MAX as u64 + 3)
        );
        let gone = Head {
            parts: 1,
            is_sealed: true,
            ..head_of(2)
        };
        assert!(books.text("users", &gone, Some(&key)).await.is_err());
    });
}

fn head_of(generation: u64) -> Head {
    head(generation, &format!("id{generation}"))
}

#[test]
fn a_node_that_dies_is_replaced_and_a_lease_ends_with_its_proxy() {
    let Some(mut etcd) = Etcd::start("three", 3) else {
        return;
    };
    with(etcd.place(), move |rt, books| async move {
        let status = Status {
            uuid: "u".into(),
            name: "one".into(),
            ..Status::default()
        };
        let lease = books.say(&status, None).await.unwrap();
        assert!(books.live(lease).await.unwrap());
        assert_eq!(books.look().await.unwrap().proxies, [status]);
        let seen = books.look().await.unwrap();
        let mut watch = books.watch(&seen).await.unwrap();
        etcd.nodes[0].kill().unwrap();
        let ended = rt.timeout(Duration::from_secs(5), watch.next()).await;
        assert!(matches!(ended, Ok(Err(_))), "its node has died");
        let wrote = loop {
            match books.write("users", (head(1, "a"), 0), b"#t\n", None).await {
                Ok(wrote) => break wrote,
                Err(_election) => rt.sleep(Duration::from_millis(100)).await,
            }
        };
        assert!(matches!(wrote, Written::Done(_)), "{wrote:?}");
        let mut waited = 0;
        while !books.look().await.unwrap().proxies.is_empty() {
            waited += 1;
            assert!(waited < 300, "the lease has not ended");
            rt.sleep(Duration::from_millis(100)).await;
        }
        assert!(!books.live(lease).await.unwrap());
        etcd.nodes[1].kill().unwrap();
        etcd.nodes[2].kill().unwrap();
        let lost = books.look().await.unwrap_err();
        assert!(matches!(lost, fleet::Failed::Lost(_)), "{lost}");
    });
}

/// Asks a node as an administrator of etcd would.
fn post(port: u16, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let head = format!(
        "POST {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all((head + body).as_bytes())
        .expect("it reads");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("it answers");
    said
}

#[test]
fn a_user_logs_in_and_a_wrong_password_is_told() {
    let Some(etcd) = Etcd::start("user", 1) else {
        return;
    };
    let (place, port) = (etcd.place(), etcd.ports[0]);
    with(place.clone(), move |rt, _| async move {
        for (path, body) in [
            ("/v3/auth/user/add", r#"{"name":"root","password":"pw"}"#),
            ("/v3/auth/role/add", r#"{"name":"root"}"#),
            ("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
            ("/v3/auth/enable", "{}"),
        ] {
            let said = post(port, path, body);
            assert!(said.contains(" 200 "), "{path}: {said}");
        }
        let books = |password: &str| {
            let user = Some(("root".to_owned(), password.to_owned()));
            let place = Place {
                user,
                ..place.clone()
            };
            Books::new(rt.clone(), place)
        };
        let fine = books("pw");
        let wrote = fine.write("users", (head(1, "a"), 0), b"#t\n", None).await;
        assert!(matches!(wrote, Ok(Written::Done(_))), "{wrote:?}");
        let seen = fine.look().await.unwrap();
        let mut watch = fine.watch(&seen).await.unwrap();
        let revision = seen.modules["users"].revision;
        let next = fine
            .write("users", (head(2, "b"), revision), b"#t\n", None)
            .await;
        assert!(matches!(next, Ok(Written::Done(_))), "{next:?}");
        watch.next().await.unwrap();
        for wrong in ["hush", ""] {
            let said = books(wrong).look().await.unwrap_err().to_string();
            assert!(said.contains("authentication failed"), "{said}");
        }
    });
}
