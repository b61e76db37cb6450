//! Cores, as they are started in a world.

use crate::judge::Judge;
use bridge::{Sign, ToCore};
use config::Snapshot;
use rt::permits::Registry;
use rt::{Address, Rt, mailbox};
use std::rc::Rc;
use std::sync::Arc;
use topology::ServerKey;

/// Settings of all cores of a world.
pub(crate) struct Start {
    pub(crate) seed: u64,
    pub(crate) cores: u32,
    pub(crate) snapshot: Arc<Snapshot>,
    /// Where clients come.
    pub(crate) proxy: Address,
    /// Words of the cores for an operator.
    pub(crate) notes: mailbox::Sender<String>,
    /// Hears of servers with which there was trouble.
    pub(crate) look: Arc<dyn Fn(ServerKey, Sign) + Send + Sync>,
}

/// Starts cores that share their listening address, their limits and their cache, all in this one
/// thread. Returns what directs each, and its end.
pub(crate) fn start(
    rt: &Rt,
    judge: &Rc<Judge>,
    start: &Start,
) -> (Vec<mailbox::Sender<ToCore>>, Vec<rt::local::Receiver<()>>) {
    let (registry, kept) = (
        Registry::new(),
        worker::Kept::new(start.seed, Arc::new(|_| false)),
    );
    let cores = start.cores;
    let (tells, letters): (Vec<_>, Vec<_>) = (0..cores).map(|_| mailbox::channel(64)).unzip();
    let (hands, handed): (Vec<_>, Vec<_>) = (0..cores).map(|_| mailbox::channel(64)).unzip();
    let all = tells.iter().zip(hands).map(|(control, hand)| worker::Peer {
        control: control.clone(),
        hand,
    });
    let all: Vec<_> = all.collect();
    let mut ended = Vec::new();
    for ((index, mailbox), from_peers) in (0..cores).zip(letters).zip(handed) {
        let notes = start.notes.clone();
        let setup = worker::Setup {
            index,
            cores,
            snapshot: start.snapshot.clone(),
            registry: registry.clone(),
            kept: kept.clone(),
            listen: vec![start.proxy.clone()],
            open: true,
            acceptor: None,
            peers: (0..cores)
                .zip(&all)
                .map(|(other, peer)| (other != index).then(|| peer.clone()))
                .collect(),
            from_peers,
            mailbox,
            // The judge is of this thread, the core's note of any.
            note: Arc::new(move |words: &str| drop(notes.try_send(words.to_owned()))),
            look: start.look.clone(),
            wants: Arc::new(|_| false),
            events: Arc::new(Err),
            audit: Arc::new(|_| false),
            traces: Arc::new(|_| false),
            doing: Arc::default(),
            ready: Box::new(|()| ()),
        };
        let (done, core_ended) = rt::local::oneshot();
        let (core_rt, core_judge) = (rt.clone(), judge.clone());
        rt.spawn(async move {
            if let Err(error) = worker::run(core_rt, setup).await {
                core_judge.accuse("core", &error.to_string());
            }
            let _nobody = done.send(());
        });
        ended.push(core_ended);
    }
    (tells, ended)
}
