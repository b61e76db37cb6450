//! One suite for all drivers: what is true of sockets and tasks is true whoever moves the bytes.
//!
//! Whoever includes this file says with the macro `on_every_driver` what the drivers are.

use super::common::*;
use rt::local::Notify;
use rt::{Address, Chunk, Either, ListenOptions, NotHanded, Rt, select};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

on_every_driver! {
    an_echo_comes_back;
    the_other_end_has_the_right_address;
    megabytes_go_both_ways_at_once_in_order;
    a_slow_reader_stops_its_writer;
    many_small_messages_unread_hold_few_buffers;
    a_received_chunk_is_sent_on_without_a_copy;
    sends_of_one_turn_keep_their_order;
    a_finished_side_is_seen_and_the_other_still_speaks;
    connecting_to_nobody_is_refused;
    what_was_queued_is_sent_though_the_socket_is_dropped;
    a_peer_that_never_reads_cannot_keep_a_dropped_socket;
    sending_to_a_peer_that_left_fails_in_the_end;
    a_dropped_recv_loses_no_byte;
    an_idle_socket_knows_when_its_peer_closes;
    an_idle_socket_knows_when_bytes_wait;
    closed_resolves_without_consuming;
    timers_fire_in_order;
    a_timeout_that_is_not_needed_sets_no_timer;
    a_timeout_ends_what_takes_too_long;
    an_alarm_wakes_at_every_limit_whichever_comes_first;
    an_alarm_that_is_dropped_is_gone;
    ten_thousand_timers_cancelled_are_gone;
    a_panic_ends_its_task_only;
    tasks_are_dropped_when_main_ends;
    many_waiters_are_woken_once_each;
    select_prefers_the_first;
    a_yield_lets_the_others_run;
    two_hundred_connections_at_once;
    the_pool_may_run_dry;
    two_tasks_send_on_one_socket;
    a_listener_that_is_dropped_accepts_no_more;
    an_accept_can_be_cancelled;
    a_connection_that_is_handed_over_speaks_on;
    a_connection_that_is_not_idle_is_not_handed_over;
    a_unix_socket_echoes_and_may_be_used_by_whom_it_is_for;
    a_literal_address_resolves_at_once;
    random_lives_leave_nothing_behind;
}

async fn the_other_end_has_the_right_address(rt: Rt) {
    let listener = listen(&rt);
    let a = rt.connect(&listener.local()).await.unwrap();
    let b = listener.accept().await.unwrap();
    assert_eq!(a.peer(), listener.local());
    assert_eq!(b.local(), listener.local());
    assert_eq!(a.local(), b.peer());
    assert_ne!(a.local().port(), 0);
    a.keepalive(Some(60)).unwrap();
    a.keepalive(None).unwrap();
}

async fn a_connection_that_is_handed_over_speaks_on(rt: Rt) {
    let (a, b) = pair(&rt).await;
    let mut b = b;
    for turn in 0..20u8 {
        a.send(vec![turn]).await.unwrap();
        assert_eq!(&*b.recv().await.unwrap(), [turn]);
        let peer = b.peer();
        let handed = b.hand_over().await.expect("nothing is on its way");
        drop(b);
        // What comes while it belongs to nobody is not lost.
        a.send(vec![turn, turn]).await.unwrap();
        rt.sleep(Duration::from_millis(2)).await;
        b = rt.adopt(handed).unwrap();
        assert_eq!(b.peer(), peer);
        assert_eq!(&*b.recv().await.unwrap(), [turn, turn]);
        b.send(vec![turn]).await.unwrap();
        assert_eq!(&*a.recv().await.unwrap(), [turn]);
    }
    drop(b);
    assert!(
        a.recv().await.map_or(true, |end| end.is_empty()),
        "its end is seen"
    );
}

async fn a_connection_that_is_not_idle_is_not_handed_over(rt: Rt) {
    let (a, b) = pair(&rt).await;
    a.send(vec![1]).await.unwrap();
    while b.is_idle() {
        rt.sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(b.hand_over().await.err(), Some(NotHanded::Over));
    drop(b);
    assert!(a.recv().await.map_or(true, |end| end.is_empty()));
    let (a, b) = pair(&rt).await;
    drop(a);
    while b.is_idle() {
        rt.sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(b.hand_over().await.err(), Some(NotHanded::Over));
}

async fn a_slow_reader_stops_its_writer(rt: Rt) {
    let (a, b) = pair(&rt).await;
    let sent = Rc::new(Cell::new(0usize));
    let count = sent.clone();
    rt.spawn(async move {
        while a.send(vec![7; 32 * 1024]).await.is_ok() {
            count.set(count.get() + 32 * 1024);
        }
    });
    rt.sleep(Duration::from_millis(400)).await;
    let at_rest = sent.get();
    // What the two kernels' buffers hold, and our 64 KiB on either side. A writer whom nobody stops
    // has sent more than that a hundred times. (No longer than this: with
    // net.ipv4.tcp_notsent_lowat a kernel fills its buffer by and by, for half a minute.)
    assert!(at_rest < 16 << 20, "{at_rest} bytes");
    let (free, all) = rt.buffers();
    assert!(free >= all * 3 / 4, "{free} of {all} buffers are free");
    let mut got = 0;
    while got < at_rest + (1 << 20) {
        got += b.recv().await.unwrap().len();
    }
    assert!(sent.get() > at_rest, "the writer never started again");
}

async fn many_small_messages_unread_hold_few_buffers(rt: Rt) {
    let (a, b) = pair(&rt).await;
    let mut expected = Vec::new();
    for i in 0..500u32 {
        a.send(&i.to_le_bytes()).await.unwrap();
        expected.extend_from_slice(&i.to_le_bytes());
        a.flush().await.unwrap();
        if i % 10 == 0 {
            rt.sleep(Duration::from_millis(1)).await;
        }
    }
    rt.sleep(Duration::from_millis(20)).await;
    let (free, all) = rt.buffers();
    assert!(all - free <= 32, "{} buffers are held", all - free);
    assert_eq!(recv_exactly(&b, expected.len()).await, expected);
}

async fn a_received_chunk_is_sent_on_without_a_copy(rt: Rt) {
    let (a, b) = pair(&rt).await;
    let (c, d) = pair(&rt).await;
    a.send(pattern(0, 5_000)).await.unwrap();
    let mut got = 0;
    while got < 5_000 {
        let chunk = b.recv().await.unwrap();
        got += chunk.len();
        let at = chunk.as_ptr();
        let mut chunk = chunk;
        let front = chunk.split_to(0);
        assert!(front.is_empty() && chunk.as_ptr() == at);
        c.send(chunk).await.unwrap();
    }
    check_pattern(&d, 5_000).await;
    c.flush().await.unwrap();
    let (free, all) = rt.buffers();
    assert_eq!(free, all, "every buffer is back");
}

async fn sends_of_one_turn_keep_their_order(rt: Rt) {
    let (a, b) = pair(&rt).await;
    let pieces: Vec<Vec<u8>> = (0..600usize)
        .map(|i| pattern(i * 31, [1, 3_000, 10, 40, 20_000, 0][i % 6]))
        .collect();
    let expected = pieces.concat();
    rt.spawn(async move {
        for piece in pieces {
            a.send(piece).await.unwrap();
        }
    });
    assert!(recv_exactly(&b, expected.len()).await == expected);
}

async fn a_finished_side_is_seen_and_the_other_still_speaks(rt: Rt) {
    let (a, b) = pair(&rt).await;
    a.send(b"last words").await.unwrap();
    a.finish();
    assert!(a.send(b"more").await.is_err());
    assert_eq!(recv_all(&b).await.unwrap(), b"last words");
    assert!(b.recv().await.unwrap().is_empty(), "the end stays the end");
    b.send(b"I heard you").await.unwrap();
    assert_eq!(recv_exactly(&a, 11).await, b"I heard you");
    drop(b);
    assert!(a.recv().await.unwrap().is_empty());
}

async fn connecting_to_nobody_is_refused(rt: Rt) {
    let listener = listen(&rt);
    let nobody = listener.local();
    drop(listener);
    rt.sleep(Duration::from_millis(10)).await;
    let e = rt.connect(&nobody).await.unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::ConnectionRefused);
}

async fn what_was_queued_is_sent_though_the_socket_is_dropped(rt: Rt) {
    const N: usize = 60_000;
    for _ in 0..20 {
        let (a, b) = pair(&rt).await;
        a.send(pattern(0, N)).await.unwrap();
        drop(a);
        check_pattern(&b, N).await;
        assert!(b.recv().await.unwrap().is_empty());
    }
}

async fn a_peer_that_never_reads_cannot_keep_a_dropped_socket(rt: Rt) {
    let (a, b) = pair(&rt).await;
    let filled = rt
        .timeout(Duration::from_millis(200), async {
            loop {
                a.send(vec![1; 60_000]).await.unwrap();
            }
        })
        .await;
    assert!(filled.is_err());
    assert!(a.unsent() > 0);
    drop(a);
    rt.sleep(Duration::from_millis(1_500)).await;
    // It is over for the peer: an end or an error behind what got through.
    let ended = rt.timeout(Duration::from_secs(5), recv_all(&b)).await;
    assert!(ended.is_ok(), "still open");
}

async fn sending_to_a_peer_that_left_fails_in_the_end(rt: Rt) {
    let (a, b) = pair(&rt).await;
    drop(b);
    let failed = rt
        .timeout(Duration::from_secs(5), async {
            while a.send(b"hello?").await.is_ok() {
                rt.sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    assert!(failed.is_ok(), "it never failed");
    assert!(a.flush().await.is_err());
    assert!(!a.is_idle());
}

async fn a_dropped_recv_loses_no_byte(rt: Rt) {
    const N: usize = 100_000;
    let (a, b) = pair(&rt).await;
    rt.spawn({
        let rt = rt.clone();
        async move {
            let mut at = 0;
            while at < N {
                a.send(pattern(at, 1_000)).await.unwrap();
                at += 1_000;
                rt.sleep(Duration::from_millis(1)).await;
            }
            rt.sleep(Duration::from_secs(3)).await;
        }
    });
    let mut at = 0;
    while at < N {
        if let Ok(chunk) = rt.timeout(Duration::from_micros(300), b.recv()).await {
            let chunk = chunk.unwrap();
            assert_eq!(chunk[..], pattern(at, chunk.len())[..]);
            at += chunk.len();
        }
    }
}

async fn an_idle_socket_knows_when_its_peer_closes(rt: Rt) {
    let (a, b) = pair(&rt).await;
    a.send(b"x").await.unwrap();
    assert_eq!(recv_exactly(&b, 1).await, b"x");
    assert!(a.is_idle() && b.is_idle());
    drop(b);
    rt.sleep(Duration::from_millis(20)).await;
    assert!(!a.is_idle());
}

async fn an_idle_socket_knows_when_bytes_wait(rt: Rt) {
    let (a, b) = pair(&rt).await;
    assert!(a.is_idle() && b.is_idle());
    a.send(vec![9; rt::CHUNK_LEN]).await.unwrap();
    rt.sleep(Duration::from_millis(20)).await;
    assert!(!b.is_idle());
    assert!(a.is_idle());
    recv_exactly(&b, rt::CHUNK_LEN).await;
    assert!(
        b.is_idle(),
        "all was read, though it filled the buffer exactly"
    );
}

async fn closed_resolves_without_consuming(rt: Rt) {
    let (a, b) = pair(&rt).await;
    a.send(b"bye").await.unwrap();
    let early = rt.timeout(Duration::from_millis(20), b.closed()).await;
    assert!(early.is_err(), "bytes are not an end");
    drop(a);
    rt.timeout(Duration::from_secs(5), b.closed())
        .await
        .unwrap();
    assert_eq!(recv_all(&b).await.unwrap(), b"bye");
}

async fn timers_fire_in_order(rt: Rt) {
    let order = Rc::new(RefCell::new(Vec::new()));
    let began = rt.now();
    for ms in [50u64, 10, 30, 20, 40, 1, 0, 130, 70] {
        let (rt2, order) = (rt.clone(), order.clone());
        rt.spawn(async move {
            rt2.sleep(Duration::from_millis(ms)).await;
            let took = rt2.now() - began;
            assert!(took >= Duration::from_millis(ms), "{took:?} for {ms} ms");
            order.borrow_mut().push(ms);
        });
    }
    rt.sleep_until(began + Duration::from_millis(200)).await;
    assert_eq!(*order.borrow(), [0, 1, 10, 20, 30, 40, 50, 70, 130]);
    rt.sleep_until(began).await;
    assert_eq!(rt.panics(), 0);
}

async fn a_timeout_that_is_not_needed_sets_no_timer(rt: Rt) {
    for _ in 0..1_000 {
        assert_eq!(rt.timeout(Duration::from_secs(1), async { 5 }).await, Ok(5));
    }
    let slow = async {
        rt.sleep(Duration::from_millis(5)).await;
        6
    };
    assert_eq!(rt.timeout(Duration::from_secs(5), slow).await, Ok(6));
}

async fn a_timeout_ends_what_takes_too_long(rt: Rt) {
    let began = rt.now();
    let never = std::future::pending::<()>();
    assert_eq!(
        rt.timeout(Duration::from_millis(30), never).await,
        Err(rt::Elapsed)
    );
    let took = rt.now() - began;
    assert!(
        took >= Duration::from_millis(30) && took < Duration::from_secs(5),
        "{took:?}"
    );
}

async fn an_alarm_wakes_at_every_limit_whichever_comes_first(rt: Rt) {
    let alarm = rt::Alarm::new(&rt);
    let ms = Duration::from_millis;
    let never = std::future::pending::<()>;
    // What is ready needs no timer, and what is late is late at once.
    assert_eq!(alarm.until(rt.now() + ms(9_000), async { 5 }).await, Ok(5));
    assert_eq!(alarm.until(rt.now(), never()).await, Err(rt::Elapsed));
    // Set for hours, then for less, then for more than it is set for.
    let began = rt.now();
    let soon = alarm.until(began + Duration::from_secs(36_000), rt.sleep(ms(2)));
    assert_eq!(soon.await, Ok(()));
    for limit in [20, 40, 30, 60] {
        let until = rt.now() + ms(limit);
        assert_eq!(alarm.until(until, never()).await, Err(rt::Elapsed));
        assert!(rt.now() >= until && rt.now() - began < Duration::from_secs(30));
    }
    // Two waits of one task: the earlier one wakes it, and the later one is not lost.
    let (first, last) = (rt.now() + ms(20), rt.now() + ms(50));
    let inner = alarm.until(first, never());
    let outer = alarm.until(last, async {
        assert_eq!(inner.await, Err(rt::Elapsed));
        never().await;
    });
    assert_eq!(outer.await, Err(rt::Elapsed));
    assert!(rt.now() >= last);
}

async fn an_alarm_that_is_dropped_is_gone(rt: Rt) {
    for _ in 0..1_000 {
        let alarm = rt::Alarm::new(&rt);
        let later = rt.now() + Duration::from_secs(1_000);
        assert_eq!(alarm.until(later, rt.yield_now()).await, Ok(()));
    }
    // One that has fired may be dropped, too.
    let alarm = rt::Alarm::new(&rt);
    let soon = rt.now() + Duration::from_millis(1);
    assert!(
        alarm
            .until(soon, std::future::pending::<()>())
            .await
            .is_err()
    );
}

async fn ten_thousand_timers_cancelled_are_gone(rt: Rt) {
    let mut all = Vec::new();
    for i in 0..10_000u64 {
        let rt2 = rt.clone();
        let mut sleep = Box::pin(async move { rt2.sleep(Duration::from_millis(1 + i)).await });
        std::future::poll_fn(|cx| {
            assert!(sleep.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        all.push(sleep);
    }
    drop(all);
    let began = rt.now();
    rt.sleep(Duration::from_millis(5)).await;
    assert!(rt.now() - began >= Duration::from_millis(5));
}

async fn a_panic_ends_its_task_only(rt: Rt) {
    struct Dropped(Rc<Cell<bool>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let words = Rc::new(RefCell::new(String::new()));
    let heard = words.clone();
    rt.on_panic(move |w| heard.borrow_mut().push_str(w));
    let dropped = Rc::new(Cell::new(false));
    let guard = Dropped(dropped.clone());
    rt.spawn(async move {
        let _guard = guard;
        panic!("on purpose, number {}", 7);
    });
    rt.sleep(Duration::from_millis(5)).await;
    assert!(dropped.get());
    assert_eq!(rt.panics(), 1);
    assert_eq!(*words.borrow(), "on purpose, number 7");
    an_echo_comes_back(rt).await;
}

async fn tasks_are_dropped_when_main_ends(rt: Rt) {
    // The socket of a task that never ends is closed with it; the next run proves that the thread
    // is free again.
    let (a, b) = pair(&rt).await;
    rt.spawn(async move {
        let _a = a;
        std::future::pending::<()>().await;
    });
    rt.yield_now().await;
    b.send(b"x").await.unwrap();
}

async fn many_waiters_are_woken_once_each(rt: Rt) {
    let notify = Rc::new(Notify::new());
    let woken = Rc::new(Cell::new(0));
    for _ in 0..100 {
        let (notify, woken) = (notify.clone(), woken.clone());
        rt.spawn(async move {
            notify.wait().await;
            woken.set(woken.get() + 1);
        });
    }
    rt.sleep(Duration::from_millis(2)).await;
    notify.notify_one();
    rt.sleep(Duration::from_millis(2)).await;
    assert_eq!(woken.get(), 1);
    notify.notify_all();
    rt.sleep(Duration::from_millis(2)).await;
    assert_eq!(woken.get(), 100);
}

async fn select_prefers_the_first(rt: Rt) {
    assert_eq!(select(async { 1 }, async { 2 }).await, Either::Left(1));
    let slow = rt.sleep(Duration::from_secs(10));
    assert_eq!(select(slow, async { 2 }).await, Either::Right(2));
}

async fn a_yield_lets_the_others_run(rt: Rt) {
    let turns = Rc::new(Cell::new(0));
    let seen = turns.clone();
    let rt2 = rt.clone();
    rt.spawn(async move {
        for _ in 0..10 {
            seen.set(seen.get() + 1);
            rt2.yield_now().await;
        }
    });
    for _ in 0..30 {
        rt.yield_now().await;
    }
    assert_eq!(turns.get(), 10);
}

async fn two_hundred_connections_at_once(rt: Rt) {
    connections(rt, 200).await;
}

async fn the_pool_may_run_dry(rt: Rt) {
    let (_, all) = rt.buffers();
    let (a, b) = pair(&rt).await;
    let (a, b) = (Rc::new(a), b);
    let n = (all + all / 2) * rt::CHUNK_LEN;
    let writer = a.clone();
    rt.spawn(async move { send_pattern(&writer, n).await });
    // Hold every buffer we can get.
    let mut held: Vec<Chunk> = Vec::new();
    let (mut at, mut pooled) = (0, 0);
    while at < n {
        let chunk = b.recv().await.unwrap();
        assert!(
            chunk[..] == pattern(at, chunk.len())[..],
            "wrong bytes at {at}"
        );
        at += chunk.len();
        pooled += usize::from(chunk.is_pooled());
        held.push(chunk);
    }
    assert!(pooled < all, "a quarter of the pool stays for the others");
    let (c, d) = pair(&rt).await;
    c.send(b"still alive").await.unwrap();
    assert_eq!(recv_exactly(&d, 11).await, b"still alive");
    held.clear();
    let (free, all) = rt.buffers();
    assert_eq!(free, all);
}

async fn two_tasks_send_on_one_socket(rt: Rt) {
    let (a, b) = pair(&rt).await;
    let a = Rc::new(a);
    for byte in [1u8, 2] {
        let a = a.clone();
        rt.spawn(async move {
            for _ in 0..100 {
                a.send(vec![byte; 8_000]).await.unwrap();
            }
        });
    }
    let got = recv_exactly(&b, 1_600_000).await;
    assert_eq!(got.iter().filter(|&&x| x == 1).count(), 800_000);
    for message in got.chunks(8_000) {
        assert!(
            message.iter().all(|x| *x == message[0]),
            "two messages were mixed"
        );
    }
}

async fn a_listener_that_is_dropped_accepts_no_more(rt: Rt) {
    let listener = listen(&rt);
    let at = listener.local();
    let a = rt.connect(&at).await.unwrap();
    let b = listener.accept().await.unwrap();
    drop(listener);
    rt.sleep(Duration::from_millis(10)).await;
    assert!(rt.connect(&at).await.is_err());
    a.send(b"we live on").await.unwrap();
    assert_eq!(recv_exactly(&b, 10).await, b"we live on");
    let again = rt.listen(&at, ListenOptions::default()).unwrap();
    assert_eq!(again.local(), at);
}

async fn an_accept_can_be_cancelled(rt: Rt) {
    let listener = listen(&rt);
    for _ in 0..5 {
        assert!(
            rt.timeout(Duration::from_millis(2), listener.accept())
                .await
                .is_err()
        );
    }
    let a = rt.connect(&listener.local()).await.unwrap();
    let b = listener.accept().await.unwrap();
    a.send(b"x").await.unwrap();
    assert_eq!(recv_exactly(&b, 1).await, b"x");
}

async fn a_unix_socket_echoes_and_may_be_used_by_whom_it_is_for(rt: Rt) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = std::env::temp_dir().join(format!("rt-{}-{}.sock", std::process::id(), rt.random()));
    let at = Address::Unix(path.clone());
    for unix_mode in [ListenOptions::default().unix_mode, 0o700] {
        // The second time, the socket of the dead listener is in the way.
        let listener = rt
            .listen(
                &at,
                ListenOptions {
                    unix_mode,
                    ..ListenOptions::default()
                },
            )
            .unwrap();
        // The simulated world has no files.
        if let Ok(there) = std::fs::metadata(&path) {
            assert_eq!(
                there.permissions().mode() & 0o777,
                unix_mode,
                "whatever the umask"
            );
        }
        let a = rt.connect(&at).await.unwrap();
        let b = listener.accept().await.unwrap();
        assert_eq!(a.peer(), at);
        assert_eq!(b.local(), at);
        a.send(pattern(0, 100_000)).await.unwrap_or(());
        check_pattern(&b, 100_000).await;
        b.send(b"thanks").await.unwrap();
        assert_eq!(recv_exactly(&a, 6).await, b"thanks");
    }
    let _ = std::fs::remove_file(path);
}

async fn a_literal_address_resolves_at_once(rt: Rt) {
    assert_eq!(
        rt.resolve("10.1.2.3", 3306).await.unwrap(),
        ["10.1.2.3:3306".parse().unwrap()]
    );
    assert_eq!(
        rt.resolve("::1", 3306).await.unwrap(),
        ["[::1]:3306".parse().unwrap()]
    );
    assert_eq!(
        rt.resolve("/tmp/my.sock", 0).await.unwrap(),
        ["/tmp/my.sock".parse().unwrap()]
    );
    let local: Vec<Address> = rt.resolve("localhost", 3306).await.unwrap();
    assert!(
        local
            .iter()
            .all(|a| a.ip().is_some_and(|ip| ip.is_loopback()) && a.port() == 3306),
        "{local:?}"
    );
    assert_eq!(
        rt.resolve("localhost", 3307).await.unwrap().len(),
        local.len()
    );
}

/// Connections that are cancelled, dropped, finished and reset in every state: no byte of one
/// reaches another, and in the end every buffer, task and waiting send is gone.
pub(crate) async fn random_lives_leave_nothing_behind(rt: Rt) {
    let listener = listen(&rt);
    let to = listener.local();
    let rt2 = rt.clone();
    let server = async move {
        loop {
            let s = listener.accept().await.unwrap();
            let rt3 = rt2.clone();
            rt2.spawn(async move {
                while let Ok(chunk) = s.recv().await
                    && !chunk.is_empty()
                {
                    if rt3.random().is_multiple_of(50) || s.send(chunk).await.is_err() {
                        return;
                    }
                    if rt3.random().is_multiple_of(20) {
                        rt3.sleep(Duration::from_millis(rt3.random() % 4)).await;
                    }
                }
            });
        }
    };
    let left = Rc::new(Cell::new(300));
    for life in 0..300u32 {
        let (rt, to, left) = (rt.clone(), to.clone(), left.clone());
        rt.clone().spawn(async move {
            rt.sleep(Duration::from_millis(rt.random() % 300)).await;
            let patience = Duration::from_micros(rt.random() % 3_000);
            if let Ok(Ok(s)) = rt.timeout(patience, rt.connect(&to)).await {
                one_life(&rt, &s, life as u8).await;
            }
            left.set(left.get() - 1);
        });
    }
    let lives = async {
        while left.get() > 0 {
            rt.sleep(Duration::from_millis(5)).await;
        }
    };
    assert_eq!(select(server, lives).await, Either::Right(()));
    // What lingers does so for a second.
    rt.sleep(Duration::from_millis(1_500)).await;
    assert_eq!((rt.panics(), rt.tasks()), (0, 0));
    let (free, all) = rt.buffers();
    assert_eq!(free, all);
}

async fn one_life(rt: &Rt, s: &rt::Socket, byte: u8) {
    for _ in 0..rt.random() % 30 {
        let patience = Duration::from_micros(rt.random() % 2_000);
        match rt.random() % 10 {
            0..4 => {
                let len = 1 << (rt.random() % 18);
                if let Ok(Err(_)) = rt.timeout(patience, s.send(vec![byte; len])).await {
                    return;
                }
            }
            4..8 => match rt.timeout(patience, s.recv()).await {
                Ok(Ok(chunk)) if chunk.is_empty() => return,
                Ok(Ok(chunk)) => assert!(
                    chunk.iter().all(|b| *b == byte),
                    "bytes of another connection"
                ),
                Ok(Err(_)) => return,
                Err(_) => {}
            },
            8 if rt.random().is_multiple_of(8) => s.finish(),
            8 => drop(rt.timeout(patience, s.flush()).await),
            _ => drop(rt.timeout(patience, s.closed()).await),
        }
    }
}
