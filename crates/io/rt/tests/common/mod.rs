//! What the suites share: two ends of a connection, bytes that can be checked, and a guard against
//! tests that hang.
#![allow(dead_code, reason = "each suite uses its part")]

use rt::local::Notify;
use rt::{Address, Driver, ListenOptions, Listener, Rt, Socket};
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// Runs `main` on a real driver, but never for longer than five minutes: an emulated processor is slow.
pub(crate) fn run<F: Future<Output = ()>>(driver: Driver, main: impl FnOnce(Rt) -> F) {
    let (tx, rx) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        if rx.recv_timeout(Duration::from_secs(300))
            == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            eprintln!("a test hangs");
            std::process::abort();
        }
    });
    rt::run(driver, |rt| {
        assert_eq!(rt.driver(), driver);
        main(rt)
    })
    .unwrap();
    drop(tx);
}

pub(crate) fn anywhere() -> Address {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn listen(rt: &Rt) -> Listener {
    rt.listen(&anywhere(), ListenOptions::default()).unwrap()
}

/// Two ends of one connection.
pub(crate) async fn pair(rt: &Rt) -> (Socket, Socket) {
    let listener = listen(rt);
    let a = rt.connect(&listener.local()).await.unwrap();
    (a, listener.accept().await.unwrap())
}

pub(crate) async fn recv_exactly(s: &Socket, n: usize) -> Vec<u8> {
    let mut got = Vec::new();
    while got.len() < n {
        let chunk = s.recv().await.unwrap();
        assert!(
            !chunk.is_empty(),
            "the end after {} of {n} bytes",
            got.len()
        );
        got.extend_from_slice(&chunk);
    }
    assert_eq!(got.len(), n);
    got
}

pub(crate) async fn recv_all(s: &Socket) -> io::Result<Vec<u8>> {
    let mut got = Vec::new();
    loop {
        let chunk = s.recv().await?;
        if chunk.is_empty() {
            return Ok(got);
        }
        got.extend_from_slice(&chunk);
    }
}

pub(crate) fn pattern(from: usize, n: usize) -> Vec<u8> {
    (from..from + n)
        .map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8)
        .collect()
}

/// Sends `n` bytes of the pattern in pieces of changing size.
pub(crate) async fn send_pattern(s: &Socket, n: usize) {
    let mut at = 0;
    while at < n {
        let len = (1 + (at * 7919) % 30_000).min(n - at);
        s.send(pattern(at, len)).await.unwrap();
        at += len;
    }
}

pub(crate) async fn check_pattern(s: &Socket, n: usize) {
    let mut at = 0;
    while at < n {
        let chunk = s.recv().await.unwrap();
        assert!(!chunk.is_empty(), "the end after {at} of {n} bytes");
        assert!(
            chunk[..] == pattern(at, chunk.len())[..],
            "wrong bytes at {at}"
        );
        at += chunk.len();
    }
}

pub(crate) async fn connections(rt: Rt, n: usize) {
    let listener = listen(&rt);
    let to = listener.local();
    rt.spawn({
        let rt = rt.clone();
        async move {
            loop {
                let s = listener.accept().await.unwrap();
                rt.spawn(async move {
                    while let Ok(chunk) = s.recv().await
                        && !chunk.is_empty()
                    {
                        s.send(chunk).await.unwrap();
                    }
                });
            }
        }
    });
    let mut all = Vec::new();
    for _ in 0..n {
        all.push(rt.connect(&to).await.unwrap());
    }
    for round in 0..3u8 {
        for s in &all {
            s.send(vec![round; 100]).await.unwrap();
        }
        for s in &all {
            assert_eq!(recv_exactly(s, 100).await, [round; 100]);
        }
    }
    assert_eq!(rt.panics(), 0);
    drop(all);
    rt.sleep(Duration::from_millis(50)).await;
    let (free, all) = rt.buffers();
    assert_eq!(free, all);
}

pub(crate) async fn an_echo_comes_back(rt: Rt) {
    let listener = listen(&rt);
    let to = listener.local();
    rt.spawn(async move {
        let s = listener.accept().await.unwrap();
        loop {
            let chunk = s.recv().await.unwrap();
            if chunk.is_empty() {
                break;
            }
            s.send(chunk).await.unwrap();
        }
    });
    let s = rt.connect(&to).await.unwrap();
    for i in 0..100u8 {
        s.send(vec![i; usize::from(i) + 1]).await.unwrap();
        assert_eq!(
            recv_exactly(&s, usize::from(i) + 1).await,
            vec![i; usize::from(i) + 1]
        );
    }
}

pub(crate) async fn megabytes_go_both_ways_at_once_in_order(rt: Rt) {
    const N: usize = 6_000_000;
    let (a, b) = pair(&rt).await;
    let (a, b) = (Rc::new(a), Rc::new(b));
    let left = Rc::new(Cell::new(3));
    let done = Rc::new(Notify::new());
    let finish = || {
        let (left, done) = (left.clone(), done.clone());
        move || {
            left.set(left.get() - 1);
            done.notify_one();
        }
    };
    let (s, f) = (a.clone(), finish());
    rt.spawn(async move {
        send_pattern(&s, N).await;
        s.flush().await.unwrap();
        assert_eq!(s.unsent(), 0);
        f();
    });
    let (s, f) = (b.clone(), finish());
    rt.spawn(async move {
        send_pattern(&s, N).await;
        f();
    });
    let (s, f) = (a.clone(), finish());
    rt.spawn(async move {
        check_pattern(&s, N).await;
        f();
    });
    check_pattern(&b, N).await;
    while left.get() > 0 {
        done.wait().await;
    }
    assert_eq!(rt.panics(), 0);
}
