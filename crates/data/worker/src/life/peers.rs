//! Messages of other cores are heard, and a client is placed on the core that has the fewest.

use crate::core::peers::{FromPeer, Said};
use crate::core::{Core, Seat};
use crate::life::live::{Comer, live};
use bridge::Counter;
use rt::Handed;
use rt::mailbox::Receiver;
use std::rc::Rc;

impl Core {
    /// Serves a client that came to us, or hands it to a core that has fewer.
    pub(crate) fn place(self: &Rc<Self>, client: Handed) {
        let to = self.loads.emptiest();
        let seat = self.loads.seat(to);
        let Some(Some(peer)) = self.peers.get(to) else {
            return self.serve(client, seat);
        };
        match peer.hand.try_send(FromPeer(Said::Client(client, seat))) {
            Ok(()) => self.tally.up(Counter::ClientsHandedOver),
            // It has enough to do, or ends.
            Err(back) => {
                if let FromPeer(Said::Client(client, _there)) = back.into_inner() {
                    self.serve(client, self.loads.seat(self.index as usize));
                }
            }
        }
    }

    fn serve(self: &Rc<Self>, client: Handed, seat: Seat) {
        match self.rt.adopt(client) {
            Ok(socket) => {
                let core = self.clone();
                self.rt.spawn(async move {
                    let _until_it_leaves = seat;
                    live(core, Comer::Client(socket)).await;
                });
            }
            Err(error) => self.note(&format!("cannot take a client from another core: {error}")),
        }
    }

    /// Does what the other cores say.
    pub(crate) async fn hear_peers(self: Rc<Self>, mailbox: Rc<Receiver<FromPeer>>) {
        while let Some(FromPeer(said)) = mailbox.recv().await {
            match said {
                Said::Client(..) if self.is_draining() || self.is_closed() => {}
                Said::Client(client, seat) => self.serve(client, seat),
                Said::Pools(from, word) => self.pools.hear(from, word),
                Said::Errand(errand) => errand.run(&self),
                Said::Wrote(user, news) => self.hear_of_write(&user, &news),
                Said::ForgetSchemas => self.epoch().schemas.forget(),
                Said::ForgetColumns => self.epoch().descriptions.forget(),
                Said::AsksLastval(user) => _ = self.asking_lastval.hear(&Rc::from(user)),
            }
        }
    }
}
