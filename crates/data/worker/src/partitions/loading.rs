//! LOAD DATA LOCAL INFILE into a sharded table: the client's file is taken apart row by row, and each
//! partition gets its own rows, some at a time. All rows are loaded, or none.
//!
//! While a server loads rows nobody reads the file on: the client waits, and the proxy keeps little.

use crate::command::job::{Job, Told};
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::partitions::asking::{Asking, Stopped, not_supported};
use crate::partitions::changing::{Begun, Change};
use crate::partitions::made::{Made, answer};
use crate::session::Session;
use backend::BackendFailed;
use bridge::{Counter, Failure, Retry};
use config::PartitionChanges;
use plan::Gather;
use rt::{Chunk, Either, select};
use shards::loaded::{Rows, Step};
use shards::{Loaded, Table};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use wire::infile::FilePackets;
use wire::packet;

/// Bytes of one partition's rows that are loaded at once,
const LOADED_AT_ONCE: usize = 1 << 20;
/// and of all partitions' that are kept.
const KEPT_MAX: usize = 16 << 20;
/// Bytes of a row.
const ROW_LEN_MAX: usize = 64 << 20;
/// Words of the answer.
const WORDS: &[&str] = &["Records", "Deleted", "Skipped", "Warnings"];
/// First byte of the packet that asks a client for a file.
const FILE_WANTED: u8 = 0xFB;

/// File of a client, as far as it has come.
struct File {
    packets: FilePackets,
    has_ended: bool,
}

/// Loads a client's file.
pub(crate) async fn load(
    session: &mut Session,
    job: &Job<'_>,
    (gather, loaded): (&Gather, &Loaded),
) -> Result<Told, Ended> {
    if let ControlFlow::Break(told) = session.wait_as_asked(job).await? {
        return Ok(told);
    }
    session.core.tally.up(Counter::PartitionChanges);
    ask_for_file(session, &loaded.file).await?;
    let theirs = session.turn.sent.wrapping_add(1);
    let counts = session.client.compression().is_none();
    let mut file = File {
        packets: FilePackets::new(theirs, counts.then_some(theirs)),
        has_ended: false,
    };
    // One whose file broke off does not go on.
    session.client.in_order(true);
    let asking = session.asking(job, true);
    let mut loading = Loading {
        job,
        asking: &asking,
        gather,
        loaded,
        rows: Rows::of(loaded),
        waiting: vec![Vec::new(); loaded.places.len()],
        kept: 0,
        number: 0,
        only: None,
        sum: Made::of_no_rows(WORDS),
    };
    let made = Box::pin(loading.run(session, &mut file)).await;
    let complaint = match made {
        Ok(()) => None,
        Err(Stopped::Gone) => return Err(Ended::Gone),
        Err(Stopped::Told) if session.entry.killed.get() => {
            return Err(Ended::Told(Complaint::interrupted()));
        }
        Err(Stopped::Told) => Some(Complaint::interrupted()),
        Err(Stopped::Failed(failed)) => Some(Complaint::of(&failed)),
        Err(Stopped::Said(complaint)) => Some(complaint),
    };
    // The client hears of an error when it has said all, as from a server.
    Box::pin(file.pass(session)).await?;
    session.client.in_order(false);
    session.turn.sent = file.packets.last();
    match complaint {
        None => {
            for part in &gather.parts {
                session.has_written_at(part.hostgroup);
            }
            answer(session, &loading.sum).await
        }
        Some(complaint) => {
            session.may_write_yet();
            session.refuse(&complaint).await?;
            Ok(Told {
                row_count: -1,
                ..Told::default()
            })
        }
    }
}

/// Asks the client for its file.
async fn ask_for_file(session: &mut Session, name: &[u8]) -> Result<(), Ended> {
    let (mut bytes, mut next) = (Vec::new(), session.turn.sent.wrapping_add(1));
    packet::append(&mut bytes, &mut next, &[&[FILE_WANTED], name].concat());
    session.turn.sent = next.wrapping_sub(1);
    session.hand_over(bytes).await?;
    session.pass_collected().map_err(|_| Ended::Gone)
}

impl File {
    /// Adds what comes next to these bytes.
    async fn next(
        &mut self,
        session: &mut Session,
        asking: &Asking<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Stopped> {
        let (entry, rt) = (session.entry.clone(), session.core.rt.clone());
        let came = select(session.client.recv(), entry.told(false));
        let came = match asking.left(rt.now()) {
            None => came.await,
            Some(left) => match rt.timeout(left, came).await {
                Ok(came) => came,
                Err(_late) => return Err(asking.too_slow().into()),
            },
        };
        let chunk = match came {
            Either::Left(came) => came.map_err(|_| Stopped::Gone)?,
            Either::Right(()) if entry.cut.get() && !entry.killed.get() => {
                return Err(BackendFailed::CutOff.into());
            }
            Either::Right(()) => return Err(Stopped::Told),
        };
        self.take(session, chunk, bytes)
    }

    /// Passes over what is left: the statement is over. Only the end of the session ends that.
    async fn pass(&mut self, session: &mut Session) -> Result<(), Ended> {
        while !self.has_ended {
            let entry = session.entry.clone();
            let chunk = loop {
                if entry.cut.get() {
                    break session.client.recv().await.map_err(|_| Ended::Gone)?;
                }
                match select(session.client.recv(), entry.told(true)).await {
                    Either::Left(came) => break came.map_err(|_| Ended::Gone)?,
                    Either::Right(()) if entry.killed.get() => return Err(Ended::Gone),
                    Either::Right(()) => {}
                }
            };
            self.take(session, chunk, &mut Vec::new())
                .map_err(|_| Ended::Gone)?;
        }
        Ok(())
    }

    /// Takes a piece of what the client sends.
    fn take(
        &mut self,
        session: &mut Session,
        mut chunk: Chunk,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Stopped> {
        if chunk.is_empty() {
            return Err(Stopped::Gone);
        }
        // Who could not read his file and has gone on to his next command is told nothing, as by a
        // server.
        let end = self.packets.read(&mut chunk, bytes);
        let end = end.map_err(|_| Stopped::Gone)?;
        self.has_ended = end.is_some();
        if let Some(used) = end
            && used < chunk.len()
        {
            let part = chunk.split_to(used);
            session.client.put_back(std::mem::replace(&mut chunk, part));
        }
        let received = Counter::QueriesFrontendsBytesRecv;
        session.core.tally.add(received, chunk.len() as u64);
        Ok(())
    }
}

/// A file on its way to partitions.
struct Loading<'a, 'j> {
    job: &'a Job<'j>,
    asking: &'a Asking<'j>,
    gather: &'a Gather,
    loaded: &'a Loaded,
    rows: Rows<'a>,
    /// Rows that wait, by place.
    waiting: Vec<Vec<u8>>,
    kept: usize,
    /// Rows so far.
    number: u64,
    /// The only place that may get rows.
    only: Option<usize>,
    sum: Made,
}

/// State of a file's reader.
enum Next {
    /// More of the file is needed.
    Needs,
    /// The first row has told its place, or rows of this place are to be loaded.
    Full(usize),
    /// All rows wait for their places.
    End,
}

impl Loading<'_, '_> {
    async fn run(&mut self, session: &mut Session, file: &mut File) -> Result<(), Stopped> {
        let mut begun = Begun::default();
        let loaded = self.fill(session, file, &mut begun).await;
        let mut change = Change::again(session, self.job, self.asking, begun);
        match loaded {
            Ok(()) => Box::pin(change.end()).await,
            Err(stopped) => {
                Box::pin(change.undo(false)).await;
                Err(stopped)
            }
        }
    }

    /// Has all rows loaded, in a transaction that is open at the end.
    async fn fill(
        &mut self,
        session: &mut Session,
        file: &mut File,
        begun: &mut Begun,
    ) -> Result<(), Stopped> {
        let map = &self.job.epoch.snapshot.shards;
        let table = map.numbered(self.loaded.table).cloned();
        let table = table.ok_or_else(|| {
            refused("the map of sharded tables has changed meanwhile; say it again")
        })?;
        let is_one = session.user.partition_changes() == PartitionChanges::Refuse;
        loop {
            let next = self.add(&table, is_one)?;
            let place = match next {
                Next::Needs => {
                    let mut bytes = Vec::new();
                    file.next(session, self.asking, &mut bytes).await?;
                    self.rows.push(&bytes);
                    if file.has_ended {
                        self.rows.end();
                    }
                    continue;
                }
                Next::Full(place) => Some(place),
                Next::End => self.waiting.iter().position(|rows| !rows.is_empty()),
            };
            let Some(place) = place else {
                return Ok(());
            };
            self.load(session, begun, place).await?;
        }
    }

    /// Takes rows as they have come, until enough of one place wait.
    fn add(&mut self, table: &Table, is_one: bool) -> Result<Next, Stopped> {
        loop {
            let (row, key) = match self.rows.step() {
                Step::Needs if self.rows.unread() > ROW_LEN_MAX => {
                    return Err(refused(&format!(
                        "row {} of the file has more than {} megabytes; look for a quote that is not closed",
                        self.number + 1,
                        ROW_LEN_MAX >> 20
                    )));
                }
                Step::Needs => return Ok(Next::Needs),
                Step::End => return Ok(Next::End),
                Step::Row(row, key) => (row, key),
            };
            self.number += 1;
            let place = self.loaded.place(table, &key);
            let place = place
                .map_err(|words| refused(&format!("row {} of the file: {words}", self.number)))?;
            if is_one && *self.only.get_or_insert(place) != place {
                return Err(refused(
                    "its rows go to several partitions, and one is all that a change of this user can have; load the rows of each partition by themselves, or have an operator set partition_changes to xa in the user's attributes",
                ));
            }
            let waiting = &mut self.waiting[place];
            waiting.extend_from_slice(self.rows.bytes(&row));
            self.kept += row.len();
            if waiting.len() >= LOADED_AT_ONCE {
                return Ok(Next::Full(place));
            }
            if self.kept >= KEPT_MAX {
                let most = |place: &usize| self.waiting[*place].len();
                let fullest = (0..self.waiting.len()).max_by_key(most);
                return Ok(Next::Full(fullest.unwrap_or(place)));
            }
        }
    }

    /// Has the rows of a place loaded that wait.
    async fn load(
        &mut self,
        session: &Session,
        begun: &mut Begun,
        place: usize,
    ) -> Result<(), Stopped> {
        let mut change = Change::again(session, self.job, self.asking, std::mem::take(begun));
        let done = async {
            if !change.is_open() {
                let all = self.loaded.places.iter().map(|place| place.hostgroup);
                let hostgroups: BTreeSet<u32> = match self.only {
                    Some(_) => [self.loaded.places[place].hostgroup].into(),
                    None => all.collect(),
                };
                // Nothing was done yet: a connection that was found broken is no reason to give up.
                let mut tries = session.tries(self.job);
                while let Err(stopped) = change.open(hostgroups.clone()).await {
                    change.undo(false).await;
                    match stopped {
                        Stopped::Failed(failed) if failed.retry() != Retry::Never && tries > 0 => {
                            tries -= 1;
                            session.core.tally.up(Counter::StatementsRetried);
                        }
                        other => return Err(other),
                    }
                }
            }
            let rows = &self.waiting[place];
            change.load(&self.gather.parts[place], rows).await
        };
        let done = Box::pin(done).await;
        *begun = change.pause();
        self.sum.add(done?);
        self.kept -= self.waiting[place].len();
        self.waiting[place].clear();
        Ok(())
    }
}

fn refused(words: &str) -> Stopped {
    Stopped::Said(not_supported(format!("HSCALE-1000: {words}")))
}
