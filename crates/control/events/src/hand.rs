//! How cores hand statements over to the log, and the last of them at the end of the process.

use crate::Letter;
use bridge::ToCore;
use rt::mailbox::{SendError, Sender};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Gives statements to the events log, or has them back where there is no room.
///
/// # Errors
/// There was no room: they come back.
pub fn hand_over(letters: &Sender<Letter>, events: bridge::Events) -> Result<(), bridge::Events> {
    let sent = letters.try_send(Letter::Write(events));
    match sent.map_err(SendError::into_inner) {
        Err(Letter::Write(back)) => Err(back),
        _ => Ok(()),
    }
}

/// Gives the audit log what a client has done. Whether there was room for it.
pub fn hand_audited(letters: &Sender<Letter>, audited: bridge::Audited) -> bool {
    letters.try_send(Letter::Audit(audited)).is_ok()
}

/// Writes what the events log still lacks, if cores and disk are quick. Half of the time is the
/// disk's, however long a core takes.
pub fn write_what_is_left(cores: &[Sender<ToCore>], letters: &Sender<Letter>, within: Duration) {
    let began = Instant::now();
    let wait = |heard: &mpsc::Receiver<()>, within| {
        heard.recv_timeout((began + within).saturating_duration_since(Instant::now()))
    };
    let (tell, heard) = mpsc::channel();
    for core in cores {
        let tell = tell.clone();
        let done = Box::new(move |()| {
            let _late = tell.send(());
        });
        drop(core.try_send(ToCore::HandOverEvents { done }));
    }
    drop(tell);
    // Until the last has said so, or has ended.
    while wait(&heard, within / 2).is_ok() {}
    let (tell, heard) = mpsc::channel();
    let done = Box::new(move |()| {
        let _late = tell.send(());
    });
    drop(letters.try_send(Letter::Done(done)));
    let _late = wait(&heard, within);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::mailbox;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn a_core_that_is_silent_leaves_the_disk_its_time() {
        let (silent, _unread) = mailbox::channel(1);
        let (letters, unread) = mailbox::channel(1);
        let written = Arc::new(AtomicBool::new(false));
        let writes = written.clone();
        let disk = thread::spawn(move || {
            rt::run(rt::Driver::READINESS, |_rt| async move {
                let Some(Letter::Done(done)) = unread.recv().await else {
                    panic!("something else")
                };
                thread::sleep(Duration::from_millis(20));
                writes.store(true, Ordering::SeqCst);
                done(());
            })
        });
        write_what_is_left(&[silent], &letters, Duration::from_secs(4));
        assert!(
            written.load(Ordering::SeqCst),
            "the end has not waited for the disk"
        );
        disk.join().unwrap().unwrap();
    }
}
