//! Statements for the events log: a core gathers them in memory, within a bound, and hands them
//! over to the thread that writes files.

use bridge::{Event, Events, Fate};
use std::cell::RefCell;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many bytes are handed over at once; fewer when a sweep comes by.
const PIECE_LEN: usize = 64 << 10;
/// Bytes of a record besides its texts, at most.
const NUMBERS_LEN_MAX: u64 = 128;

/// Takes records to the log's thread, or gives them back if it cannot. It does not wait.
pub type Hand = Arc<dyn Fn(Events) -> Result<(), Events> + Send + Sync>;

/// Records of this core's statements, gathered for the events log.
pub(crate) struct Outbox {
    pub(crate) gathered: RefCell<Gathered>,
    flow: Arc<Flow>,
    hand: Hand,
}

#[derive(Default)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    records: u64,
    /// Where addresses are put together.
    pub(crate) client: Vec<u8>,
    pub(crate) server: Vec<u8>,
}

/// Told by the log's thread, read by the core.
#[derive(Default)]
struct Flow {
    /// Bytes that are handed over and not written.
    waiting: AtomicU64,
    written: AtomicU64,
    lost: AtomicU64,
}

impl Outbox {
    pub(crate) fn new(hand: Hand) -> Self {
        Self {
            gathered: RefCell::default(),
            flow: Arc::default(),
            hand,
        }
    }

    /// Gathers a statement, if no more than `bytes_max` wait with it.
    pub(crate) fn put(&self, event: &Event<'_>, gathered: &mut Gathered, bytes_max: u64) {
        let texts = [
            event.user,
            event.schema,
            event.client,
            event.text,
            event.server.map_or(b"", |(_, server)| server),
        ];
        let len = texts.iter().map(|text| text.len() as u64).sum::<u64>() + NUMBERS_LEN_MAX;
        if self.flow.waiting.load(Ordering::Relaxed) + gathered.bytes.len() as u64 + len > bytes_max
        {
            self.flow.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if gathered.bytes.is_empty() {
            gathered.bytes.reserve(PIECE_LEN + PIECE_LEN / 8);
        }
        event.write(&mut gathered.bytes);
        gathered.records += 1;
        if gathered.bytes.len() >= PIECE_LEN {
            self.hand_over_these(gathered);
        }
    }

    /// Hands over what is gathered.
    pub(crate) fn hand_over(&self) {
        self.hand_over_these(&mut self.gathered.borrow_mut());
    }

    fn hand_over_these(&self, gathered: &mut Gathered) {
        let (mut bytes, records) = (
            std::mem::take(&mut gathered.bytes),
            std::mem::take(&mut gathered.records),
        );
        if records == 0 {
            return;
        }
        if bytes.capacity() > 2 * bytes.len() {
            // It may wait long, and what is counted is what is in it.
            bytes.shrink_to_fit();
        }
        let (flow, len) = (self.flow.clone(), bytes.len() as u64);
        flow.waiting.fetch_add(len, Ordering::Relaxed);
        let done = move |fate: Fate| {
            flow.waiting.fetch_sub(len, Ordering::Relaxed);
            flow.written.fetch_add(fate.written, Ordering::Relaxed);
            flow.lost.fetch_add(fate.lost, Ordering::Relaxed);
        };
        if let Err(back) = (self.hand)(Events {
            bytes,
            records,
            done: Box::new(done),
        }) {
            (back.done)(Fate {
                written: 0,
                lost: records,
            });
        }
    }

    /// Records that are in files, and records that will never be.
    pub(crate) fn written_and_lost(&self) -> (u64, u64) {
        (
            self.flow.written.load(Ordering::Relaxed),
            self.flow.lost.load(Ordering::Relaxed),
        )
    }
}

pub(crate) fn write_address(out: &mut Vec<u8>, host: &str, port: u16) {
    out.clear();
    out.extend_from_slice(host.as_bytes());
    if port != 0 {
        write!(out, ":{port}").expect("memory can be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bridge::EventKind;

    const EVENT: Event<'_> = Event {
        kind: EventKind::Query,
        session: 1,
        user: b"u",
        schema: b"",
        client: b"",
        server: None,
        began_us: 0,
        ended_us: 0,
        statement_id: 0,
        rows_affected: 0,
        insert_id: 0,
        rows_sent: 0,
        digest: 0,
        text: &[b'x'; 1000],
    };

    fn put(outbox: &Outbox, bytes_max: u64) {
        outbox.put(&EVENT, &mut outbox.gathered.borrow_mut(), bytes_max);
    }

    #[test]
    fn what_the_disk_does_not_take_in_time_is_bounded_and_counted() {
        let (hand, taken) = rt::mailbox::channel(10);
        let outbox = Outbox::new(Arc::new(move |events| {
            hand.try_send(events)
                .map_err(rt::mailbox::SendError::into_inner)
        }));
        for _ in 0..100 {
            put(&outbox, 10_000);
        }
        outbox.hand_over();
        // Nine of about 1,030 bytes; nothing was written yet.
        assert_eq!(outbox.written_and_lost(), (0, 91));
        put(&outbox, 10_000);
        assert_eq!(
            outbox.written_and_lost(),
            (0, 92),
            "what was handed over still counts"
        );
        let events = taken.try_recv().unwrap();
        assert_eq!(events.records, 9);
        (events.done)(Fate {
            written: 6,
            lost: 3,
        });
        assert_eq!(outbox.written_and_lost(), (6, 95));
        put(&outbox, 10_000);
        assert_eq!(outbox.written_and_lost(), (6, 95), "there is room again");
    }

    #[test]
    fn nobody_to_write_is_a_loss_that_leaves_room() {
        let outbox = Outbox::new(Arc::new(Err));
        for _ in 0..100 {
            put(&outbox, 10_000);
            outbox.hand_over();
        }
        assert_eq!(outbox.written_and_lost(), (0, 100));
    }
    /// A disk that hangs leaves pieces waiting, four a second from each core.
    #[test]
    fn a_piece_that_waits_takes_about_as_much_memory_as_is_counted() {
        let (hand, taken) = rt::mailbox::channel(10);
        let outbox = Outbox::new(Arc::new(move |events| {
            hand.try_send(events)
                .map_err(rt::mailbox::SendError::into_inner)
        }));
        for count in [1, 10, 100] {
            (0..count).for_each(|_| put(&outbox, 1_000_000));
            outbox.hand_over();
            let mut memory = 0;
            while let Some(events) = taken.try_recv() {
                assert!(
                    events.bytes.capacity() <= 2 * events.bytes.len(),
                    "{} for {events:?}",
                    events.bytes.capacity()
                );
                memory += events.bytes.len();
            }
            assert!(memory > count * 1000);
        }
    }
}
