//! A core, from its setup to its end: listeners, and clients that come in.

use crate::core::lasting::{Once, lasting};
use crate::core::peers::FromPeer;
use crate::core::{Core, Setup};
use bridge::Counter;
use rt::{Address, Either, ListenOptions, Listener, Rt, mailbox};
use std::rc::Rc;
use std::time::Duration;

/// Runs a core until it is told to stop.
///
/// # Errors
/// A listener cannot be opened; the error names it.
pub async fn run(rt: Rt, setup: Setup) -> std::io::Result<()> {
    let (core, ways) = Core::new(rt, setup);
    begin_tasks(&core, ways.listen, ways.from_peers)?;
    core.fit_cache();
    core.begin_timers(&core.epoch().snapshot.scripts);
    (ways.ready)(());
    core.obey(&ways.mailbox).await;
    Ok(())
}

/// Where the core accepts, unless it does not yet. A process that this one takes over from may have
/// had more cores: the last one here accepts for those, too.
fn listeners(
    core: &Core,
    addresses: Vec<Address>,
) -> std::io::Result<Vec<(Address, Option<Listener>)>> {
    let mut all = Vec::new();
    let is_last = core.index + 1 == core.cores;
    for address in addresses {
        if !core.accepting.get() {
            all.push((address, None));
            continue;
        }
        if rt::is_inherited(&address) {
            core.overlooked_until
                .set(Some(core.rt.now() + LEAVES_WITHIN));
        }
        all.push((address.clone(), Some(listen(&core.rt, &address)?)));
        while is_last && rt::is_inherited(&address) {
            all.push((address.clone(), Some(listen(&core.rt, &address)?)));
        }
    }
    Ok(all)
}

/// Begins the tasks that a core lives by.
fn begin_tasks(
    core: &Rc<Core>,
    addresses: Vec<Address>,
    from_peers: mailbox::Receiver<FromPeer>,
) -> std::io::Result<()> {
    for (address, listener) in listeners(core, addresses)? {
        core.listening.set(core.listening.get() + 1);
        let (host, first) = (core.clone(), Once::new(listener));
        lasting(core, format!("accept on {address}"), move || {
            host.clone()
                .welcome(address.clone(), first.take().flatten())
        });
    }
    let (host, from_peers) = (core.clone(), Rc::new(from_peers));
    lasting(core, "hear the other cores".into(), move || {
        host.clone().hear_peers(from_peers.clone())
    });
    let host = core.clone();
    lasting(core, "sweep".into(), move || host.clone().sweep());
    if core.index == 0 {
        // It is one for all cores.
        let host = core.clone();
        lasting(core, "sweep the cache".into(), move || {
            host.clone().sweep_cache()
        });
    }
    Ok(())
}

/// How long a process that has left its listeners may be told of clients: its rings are in the
/// kernel's line beside ours until it has cancelled them.
const LEAVES_WITHIN: Duration = Duration::from_secs(10);
/// So long such a client may wait.
const OVERLOOKED_FOR: Duration = Duration::from_millis(50);

fn listen(rt: &Rt, address: &Address) -> std::io::Result<Listener> {
    let reuse_port = matches!(address, Address::Tcp(_));
    rt.listen(
        address,
        ListenOptions {
            backlog: 4096,
            reuse_port,
            ..ListenOptions::default()
        },
    )
    .map_err(|error| {
        std::io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    })
}

impl Core {
    /// Accepts clients while the door is open.
    async fn welcome(self: Rc<Self>, address: Address, mut listener: Option<Listener>) {
        loop {
            if self.draining.get() {
                return;
            }
            if self.left_to_another.get() {
                // Another process accepts now; what has been accepted here already is served here.
                if let Some(open) = &listener {
                    while let Some(client) = open.accept_last().await {
                        self.place(client);
                    }
                }
                self.listening.set(self.listening.get() - 1);
                return;
            }
            if !self.accepting.get() {
                listener = None;
                self.doors.wait().await;
                continue;
            }
            let open = match listener.take() {
                Some(open) => open,
                None => match listen(&self.rt, &address) {
                    Ok(open) => open,
                    Err(error) => {
                        self.note(&error.to_string());
                        self.rt.sleep(Duration::from_secs(1)).await;
                        continue;
                    }
                },
            };
            let comes = rt::select(open.accept_for_any(), self.doors.wait());
            let came = match self.looks_for_overlooked() {
                false => comes.await,
                true => match self.rt.timeout(OVERLOOKED_FOR, comes).await {
                    Ok(came) => came,
                    Err(_nobody) => {
                        open.look_again();
                        listener = Some(open);
                        continue;
                    }
                },
            };
            match came {
                Either::Left(Ok(client)) => {
                    self.tally.up(Counter::ClientConnectionsCreated);
                    self.place(client);
                }
                Either::Left(Err(error)) => {
                    // Too many open files, most often: wait for some to close.
                    self.note(&format!("cannot accept on {address}: {error}"));
                    self.rt.sleep(Duration::from_millis(100)).await;
                }
                Either::Right(()) => {}
            }
            listener = Some(open);
        }
    }

    /// Whether a listener that another process has left may have a client that the kernel told only
    /// that one of.
    fn looks_for_overlooked(&self) -> bool {
        let until = self.overlooked_until.get();
        until.is_some_and(|until| self.rt.now() < until)
    }
}
