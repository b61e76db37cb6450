//! The simulated world keeps its promises: it repeats, it ends, and its faults are those that were
//! asked for.
#![allow(clippy::unwrap_used, reason = "tests")]

use rt::sim::{Faults, Limits, run, run_with};
use rt::{Address, ListenOptions, Listener, Rt, Socket};
use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

fn rough() -> Faults {
    Faults {
        latency_min: Duration::from_micros(50),
        latency_max: Duration::from_millis(3),
        split: 0.3,
        partial: 0.3,
        stall: 0.05,
        stall_max: Duration::from_millis(200),
        reset: 0.0,
        refuse: 0.0,
        lose_connect: 0.0,
        shuffle: true,
        slow: Duration::ZERO,
    }
}

fn at(text: &str) -> Address {
    text.parse().unwrap()
}

fn listen(rt: &Rt, address: &str) -> Listener {
    rt.listen(&at(address), ListenOptions::default()).unwrap()
}

async fn echo(s: Socket) {
    while let Ok(chunk) = s.recv().await {
        if chunk.is_empty() || s.send(chunk).await.is_err() {
            break;
        }
    }
}

fn serve_echo(rt: &Rt, address: &str) {
    let listener = listen(rt, address);
    let rt2 = rt.clone();
    rt.spawn(async move {
        while let Ok(s) = listener.accept().await {
            rt2.spawn(echo(s));
        }
    });
}

/// Eight clients echo for a while; the result is everything that was seen, in order, with its time.
fn story(seed: u64, faults: Faults) -> Vec<String> {
    run(seed, faults, |rt| async move {
        serve_echo(&rt, "10.0.0.1:3306");
        let log = Rc::new(RefCell::new(Vec::new()));
        let left = Rc::new(Cell::new(8));
        for client in 0..8u8 {
            let (rt2, log, left) = (rt.clone(), log.clone(), left.clone());
            rt.spawn(async move {
                let note = |what: String| {
                    log.borrow_mut()
                        .push(format!("{} {client} {what}", rt2.now().as_ns()))
                };
                match rt2.connect(&at("10.0.0.1:3306")).await {
                    Err(e) => note(format!("not connected: {e}")),
                    Ok(s) => {
                        for i in 0..10 {
                            let n = 1 + rt2.random() as usize % 40_000;
                            if let Err(e) = s.send(vec![client; n]).await {
                                note(format!("not sent: {e}"));
                                break;
                            }
                            let mut got = 0;
                            while got < n {
                                match s.recv().await {
                                    Ok(c) if c.is_empty() => break,
                                    Ok(c) => {
                                        assert!(
                                            c.iter().all(|b| *b == client),
                                            "bytes of another connection"
                                        );
                                        got += c.len();
                                        note(format!("{i}: {}", c.len()));
                                    }
                                    Err(e) => {
                                        note(format!("not received: {e}"));
                                        break;
                                    }
                                }
                            }
                            if got < n {
                                break;
                            }
                        }
                    }
                }
                left.set(left.get() - 1);
            });
        }
        while left.get() > 0 {
            rt.sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(rt.panics(), 0);
        log.take()
    })
}

#[test]
fn the_same_seed_is_the_same_run_and_another_seed_is_another() {
    let faults = Faults {
        reset: 0.01,
        refuse: 0.1,
        ..rough()
    };
    for seed in 0..20 {
        let first = story(seed, faults.clone());
        assert_eq!(first, story(seed, faults.clone()));
        assert_ne!(first, story(seed + 1_000, faults.clone()));
    }
}

#[test]
fn without_resets_every_byte_arrives_whatever_else_goes_wrong() {
    for seed in 0..50 {
        let log = story(seed, rough());
        assert!(
            !log.iter().any(|l| l.contains("not ")),
            "seed {seed}: {log:?}"
        );
    }
}

#[test]
fn faults_happen_when_asked_for_and_only_then() {
    let count = |faults: Faults, words: &str| {
        (0..20)
            .flat_map(|seed| story(seed, faults.clone()))
            .filter(|l| l.contains(words))
            .count()
    };
    assert_eq!(count(Faults::perfect(), "not"), 0);
    assert!(
        count(
            Faults {
                refuse: 0.3,
                ..Faults::perfect()
            },
            "not connected: Connection refused"
        ) > 20
    );
    assert!(
        count(
            Faults {
                lose_connect: 0.3,
                ..Faults::perfect()
            },
            "timed out"
        ) > 20
    );
    assert!(
        count(
            Faults {
                reset: 0.05,
                ..Faults::perfect()
            },
            "reset"
        ) > 20
    );
    let pieces = count(Faults::perfect(), ": ");
    assert!(
        count(
            Faults {
                split: 0.5,
                ..Faults::perfect()
            },
            ": "
        ) > pieces * 3 / 2
    );
}

#[test]
fn a_run_in_which_nothing_can_happen_says_so() {
    let panic = catch_unwind(|| run(5, rough(), |_| std::future::pending::<()>())).unwrap_err();
    let words = panic.downcast_ref::<String>().unwrap();
    assert!(
        words.starts_with("deadlock: nothing can ever happen (seed 5, "),
        "{words}"
    );
}

#[test]
fn a_run_without_end_is_ended() {
    let limits = Limits {
        time_max: Duration::from_secs(60),
        turns_max: 10_000,
    };
    let end = |f: fn(Rt) -> std::pin::Pin<Box<dyn Future<Output = ()>>>| {
        let panic = catch_unwind(|| run_with(1, Faults::perfect(), limits, f)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    let words = end(|rt| {
        Box::pin(async move {
            loop {
                rt.sleep(Duration::from_secs(1)).await;
            }
        })
    });
    assert!(words.starts_with("the limit of virtual time"), "{words}");
    let words = end(|rt| {
        Box::pin(async move {
            loop {
                rt.yield_now().await;
            }
        })
    });
    assert!(words.starts_with("the limit of turns"), "{words}");
}

#[test]
fn a_world_that_panicked_leaves_the_thread_for_the_next() {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        run(1, rough(), |_| async { panic!("on purpose") })
    }));
    assert_eq!(run(1, rough(), |_| async { 5 }), 5);
}

#[test]
fn a_crashed_server_resets_refuses_and_comes_back() {
    run(3, rough(), |rt| async move {
        let server = at("10.0.0.1:3306");
        serve_echo(&rt, "10.0.0.1:3306");
        let s = rt.connect(&server).await.unwrap();
        s.send(b"x").await.unwrap();
        assert_eq!(&*s.recv().await.unwrap(), b"x");
        let hand = rt.sim_faults().unwrap();
        hand.crash(&server);
        assert_eq!(
            s.recv().await.unwrap_err().kind(),
            ErrorKind::ConnectionReset
        );
        assert!(!s.is_idle());
        assert_eq!(
            rt.connect(&server).await.unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        drop(s);
        rt.sleep(Duration::from_secs(1)).await;
        assert_eq!(hand.open(), 0);
        hand.restore(&server);
        let s = rt.connect(&server).await.unwrap();
        s.send(b"y").await.unwrap();
        assert_eq!(&*s.recv().await.unwrap(), b"y");
    });
}

#[test]
fn a_frozen_server_loses_nothing() {
    run(4, rough(), |rt| async move {
        let server = at("10.0.0.1:3306");
        serve_echo(&rt, "10.0.0.1:3306");
        let s = rt.connect(&server).await.unwrap();
        let hand = rt.sim_faults().unwrap();
        hand.freeze(&server);
        s.send(b"x").await.unwrap();
        assert!(rt.timeout(Duration::from_secs(30), s.recv()).await.is_err());
        assert!(
            rt.timeout(Duration::from_secs(30), rt.connect(&server))
                .await
                .is_err()
        );
        hand.thaw(&server);
        assert_eq!(&*s.recv().await.unwrap(), b"x");
        assert!(rt.connect(&server).await.is_ok());
    });
}

#[test]
fn faults_may_change_while_it_runs() {
    run(4, Faults::perfect(), |rt| async move {
        serve_echo(&rt, "10.0.0.1:3306");
        let hand = rt.sim_faults().unwrap();
        rt.connect(&at("10.0.0.1:3306")).await.unwrap();
        hand.set(Faults {
            refuse: 1.0,
            ..hand.get()
        });
        assert!(rt.connect(&at("10.0.0.1:3306")).await.is_err());
        hand.set(Faults::perfect());
        assert!(rt.connect(&at("10.0.0.1:3306")).await.is_ok());
    });
}

#[test]
fn six_days_take_no_time() {
    run(1, rough(), |rt| async move {
        for _ in 0..6 * 24 {
            rt.sleep(Duration::from_secs(3600)).await;
        }
    });
}

#[test]
fn a_name_always_has_the_same_address() {
    let one = run(1, rough(), |rt| async move {
        rt.resolve("db1.example", 3306).await.unwrap()
    });
    let two = run(2, rough(), |rt| async move {
        rt.resolve("db1.example", 3306).await.unwrap()
    });
    assert_eq!(one, two);
    assert!(one[0].to_string().starts_with("10."));
}

#[test]
fn what_a_server_said_before_it_closed_can_still_be_read() {
    run(
        9,
        Faults {
            latency_min: Duration::from_millis(1),
            ..Faults::perfect()
        },
        |rt| async move {
            let listener = listen(&rt, "10.0.0.1:3306");
            let client = rt.connect(&listener.local()).await.unwrap();
            let server = listener.accept().await.unwrap();
            server.send(b"too many connections").await.unwrap();
            drop(server);
            client.send(b"my login").await.unwrap();
            rt.sleep(Duration::from_millis(50)).await;
            assert_eq!(&*client.recv().await.unwrap(), b"too many connections");
        },
    );
}

#[test]
fn what_nobody_adopts_is_closed() {
    run(
        9,
        Faults {
            latency_min: Duration::from_millis(1),
            ..Faults::perfect()
        },
        |rt| async move {
            let listener = listen(&rt, "10.0.0.1:3306");
            let client = rt.connect(&listener.local()).await.unwrap();
            let server = listener.accept().await.unwrap();
            let handed = client.hand_over().await.unwrap();
            drop(client);
            rt.sleep(Duration::from_millis(50)).await;
            assert!(
                rt.timeout(Duration::from_millis(50), server.closed())
                    .await
                    .is_err(),
                "somebody may adopt it"
            );
            drop(handed);
            rt.timeout(Duration::from_millis(50), server.closed())
                .await
                .expect("it is open although nobody has it");
        },
    );
}

#[test]
fn two_listeners_share_an_address_if_both_agree() {
    run(2, rough(), |rt| async move {
        let o = ListenOptions {
            reuse_port: true,
            ..ListenOptions::default()
        };
        let one = rt.listen(&at("0.0.0.0:6033"), o).unwrap();
        let two = rt.listen(&at("0.0.0.0:6033"), o).unwrap();
        assert_eq!(
            rt.listen(&at("0.0.0.0:6033"), ListenOptions::default())
                .unwrap_err()
                .kind(),
            ErrorKind::AddrInUse
        );
        let mut all = Vec::new();
        for _ in 0..40 {
            all.push(rt.connect(&at("127.0.0.1:6033")).await.unwrap());
        }
        let mut taken = [0, 0];
        for (listener, n) in [&one, &two].into_iter().zip(&mut taken) {
            while rt
                .timeout(Duration::from_secs(1), listener.accept())
                .await
                .is_ok()
            {
                *n += 1;
            }
        }
        assert_eq!(taken[0] + taken[1], 40);
        assert!(taken[0] > 5 && taken[1] > 5, "{taken:?}");
    });
}

#[test]
fn a_writer_learns_that_its_reader_has_left() {
    run(6, rough(), |rt| async move {
        let listener = listen(&rt, "10.0.0.1:3306");
        let client = rt.connect(&listener.local()).await.unwrap();
        let server = listener.accept().await.unwrap();
        assert!(
            rt.timeout(Duration::from_secs(5), server.send(vec![0; 1 << 20]))
                .await
                .is_err(),
            "nobody reads"
        );
        drop(client);
        assert!(
            rt.timeout(Duration::from_secs(5), server.flush())
                .await
                .unwrap()
                .is_err()
        );
    });
}
