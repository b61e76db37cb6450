//! Tests of the real world alone: other threads, other people's sockets, thousands of descriptors.
//!
//! Whoever includes this file says with the macro `on_real_drivers` what the drivers are.

use super::common::*;
use rt::Driver;
use std::io;
use std::time::Duration;

on_real_drivers! {
    a_mailbox_wakes_another_core;
    a_panicking_main_leaves_the_thread_usable;
    a_waker_may_outlive_its_core;
    ends_and_resets_of_other_peoples_sockets_are_told_apart;
    everything_queued_is_sent_though_main_ends;
    what_did_not_fit_at_once_goes_when_there_is_room;
    two_thousand_connections_are_served;
    a_socket_that_outlives_its_core_only_fails;
    a_small_pool_serves_many;
    a_watchful_core_answers_the_quick_and_the_slow_and_hears_other_threads;
}

fn a_mailbox_wakes_another_core(driver: Driver) {
    const N: u64 = 50_000;
    let (tx, rx) = rt::mailbox::channel::<u64>(1_000);
    let reader = std::thread::spawn(move || {
        rt::run(driver, |_| async move {
            let (mut sum, mut n) = (0, 0);
            while let Some(m) = rx.recv().await {
                sum += m;
                n += 1;
            }
            (n, sum)
        })
        .unwrap()
    });
    std::thread::scope(|s| {
        for _ in 0..2 {
            let tx = tx.clone();
            s.spawn(move || {
                for i in 0..N {
                    let mut m = i;
                    while let Err(e) = tx.try_send(m) {
                        m = e.into_inner();
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    drop(tx);
    assert_eq!(reader.join().unwrap(), (2 * N, N * (N - 1)));
}

fn a_panicking_main_leaves_the_thread_usable(driver: Driver) {
    let panicked = std::panic::catch_unwind(|| {
        rt::run(driver, |rt| async move {
            let (a, b) = pair(&rt).await;
            a.send(vec![1; 50_000]).await.unwrap();
            b.recv().await.unwrap();
            panic!("on purpose");
        })
    });
    assert!(panicked.is_err());
    run(driver, an_echo_comes_back);
}

fn a_waker_may_outlive_its_core(driver: Driver) {
    let waker = rt::run(driver, |_| {
        std::future::poll_fn(|cx| std::task::Poll::Ready(cx.waker().clone()))
    })
    .unwrap();
    waker.wake_by_ref();
    run(driver, move |rt| async move {
        waker.wake();
        an_echo_comes_back(rt).await;
    });
}

fn ends_and_resets_of_other_peoples_sockets_are_told_apart(driver: Driver) {
    use std::io::{Read, Write};
    let theirs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = theirs.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        // One half-closes and still reads.
        let (mut s, _) = theirs.accept().unwrap();
        s.write_all(b"hello").unwrap();
        s.shutdown(std::net::Shutdown::Write).unwrap();
        let mut got = String::new();
        s.read_to_string(&mut got).unwrap();
        assert_eq!(got, "good bye");
        // One closes with our bytes unread: a reset.
        let (mut s, _) = theirs.accept().unwrap();
        s.read_exact(&mut [0; 1]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        drop(s);
    });
    run(driver, |rt| async move {
        let s = rt.connect(&at.into()).await.unwrap();
        assert_eq!(recv_all(&s).await.unwrap(), b"hello");
        s.closed().await;
        s.send(b"good bye").await.unwrap();
        drop(s);
        let s = rt.connect(&at.into()).await.unwrap();
        s.send(b"12345678").await.unwrap();
        assert_eq!(
            s.recv().await.unwrap_err().kind(),
            io::ErrorKind::ConnectionReset
        );
        assert!(!s.is_idle());
    });
    thread.join().unwrap();
}

fn everything_queued_is_sent_though_main_ends(driver: Driver) {
    use std::io::Read;
    let theirs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = theirs.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut s, _) = theirs.accept().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let mut got = Vec::new();
        s.read_to_end(&mut got).unwrap();
        got
    });
    run(driver, |rt| async move {
        let s = rt.connect(&at.into()).await.unwrap();
        // Far more than the kernel takes at once.
        let _ = rt
            .timeout(Duration::ZERO, s.send(pattern(0, 8_000_000)))
            .await;
    });
    let got = thread.join().unwrap();
    assert!(got == pattern(0, 8_000_000), "{} bytes", got.len());
}

fn two_thousand_connections_are_served(driver: Driver) {
    run(driver, |rt| connections(rt, 2_000));
}

fn a_socket_that_outlives_its_core_only_fails(driver: Driver) {
    let (a, listener, chunk) = rt::run(driver, |rt| async move {
        let listener = listen(&rt);
        let a = rt.connect(&listener.local()).await.unwrap();
        let b = listener.accept().await.unwrap();
        b.send(b"kept").await.unwrap();
        let chunk = a.recv().await.unwrap();
        (a, listener, chunk)
    })
    .unwrap();
    assert_eq!(&*chunk, b"kept");
    run(driver, |rt| async move {
        let _ = a.send(b"x").await;
        let r = rt.timeout(Duration::from_millis(20), a.recv()).await;
        assert!(!matches!(r, Ok(Ok(c)) if !c.is_empty()));
        drop((a, listener, chunk));
        an_echo_comes_back(rt).await;
    });
}

fn a_watchful_core_answers_the_quick_and_the_slow_and_hears_other_threads(driver: Driver) {
    use std::io::{Read as _, Write as _};
    let (tell, told) = rt::mailbox::channel::<u8>(100);
    let options = rt::Options {
        watch: Duration::from_micros(100),
        ..driver.into()
    };
    let heard = rt::run_with(options, |rt| async move {
        let listener = listen(&rt);
        let rt::Address::Tcp(at) = listener.local() else {
            panic!()
        };
        let client = std::thread::spawn(move || {
            let mut socket = std::net::TcpStream::connect(at).unwrap();
            socket.set_nodelay(true).unwrap();
            for n in 0..2000_u16 {
                if n % 500 == 499 {
                    std::thread::sleep(Duration::from_millis(20));
                    while tell.try_send(1).is_err() {}
                }
                let (sent, mut came) = (n.to_le_bytes(), [0; 2]);
                socket.write_all(&sent).unwrap();
                socket.read_exact(&mut came).unwrap();
                assert_eq!(came, sent);
            }
        });
        let socket = listener.accept().await.unwrap();
        rt.spawn(async move {
            while let Ok(bytes) = socket.recv().await
                && !bytes.is_empty()
            {
                socket.send(bytes).await.unwrap();
            }
        });
        let mut heard = 0;
        while let Some(more) = told.recv().await {
            // Timers go on, too.
            rt.sleep(Duration::from_millis(1)).await;
            heard += more;
        }
        client.join().unwrap();
        heard
    });
    assert_eq!(heard.unwrap(), 4);
}

fn a_small_pool_serves_many(driver: Driver) {
    let options = rt::Options {
        buffers: 8,
        ..driver.into()
    };
    rt::run_with(options, |rt| async move {
        megabytes_go_both_ways_at_once_in_order(rt.clone()).await;
        connections(rt, 50).await;
    })
    .unwrap();
}

/// The other end is another thread's, and nothing else happens on this core: no timer, no other
/// connection wakes it.
fn what_did_not_fit_at_once_goes_when_there_is_room(driver: Driver) {
    const ALL: usize = 24 << 20;
    let bytes: Vec<u8> = (0..ALL).map(|at| (at / 7 % 251) as u8).collect();
    for piece in [ALL, 1 << 20, 64 << 10, 3000] {
        for waits in [false, true] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let all = if piece < 4096 { ALL / 64 } else { ALL };
            let wanted = bytes[..all].to_vec();
            let reader = std::thread::spawn(move || {
                let (mut peer, _) = listener.accept().unwrap();
                std::thread::sleep(Duration::from_millis(50));
                let mut got = vec![0; wanted.len()];
                io::Read::read_exact(&mut peer, &mut got).unwrap();
                assert!(got == wanted, "other bytes came than were sent");
                io::Write::write_all(&mut peer, b"!").unwrap();
                let mut end = [0];
                assert_eq!(io::Read::read(&mut peer, &mut end).unwrap(), 0);
            });
            let bytes = &bytes[..all];
            rt::run(driver, |rt| async move {
                let socket = rt
                    .connect(&format!("127.0.0.1:{port}").parse().unwrap())
                    .await
                    .unwrap();
                // The timer that ends it is the only one.
                let done = rt.timeout(Duration::from_secs(20), async {
                    for part in bytes.chunks(piece) {
                        if waits {
                            socket.send(part.to_vec()).await.unwrap();
                        } else {
                            socket.queue(part.to_vec()).unwrap();
                            if piece < 4096 {
                                rt.yield_now().await;
                            }
                        }
                    }
                    if waits {
                        socket.flush().await.unwrap();
                    }
                    assert_eq!(socket.recv().await.unwrap()[..], *b"!");
                });
                done.await.unwrap_or_else(|_| {
                    panic!("pieces of {piece}, waits: {waits}: it slept beside its own bytes")
                });
            })
            .unwrap();
            reader.join().unwrap();
        }
    }
}
