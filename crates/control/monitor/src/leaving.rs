//! Addresses to which a name leads no more: they are watched as long as some core has connections
//! there, so that those end when the server does.

use crate::Monitor;
use bridge::{Ask, Report, ToCore};
use rt::mailbox;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Cores are asked so often.
const PAUSE: Duration = Duration::from_secs(1);

/// A core that does not answer within that is asked again later.
const PATIENCE: Duration = Duration::from_secs(2);

/// So many cores can answer.
const CORES_MAX: usize = 1024;

/// Forgets addresses of before that nobody has connections to, again and again.
pub(crate) async fn forget(monitor: Rc<Monitor>) {
    loop {
        monitor.rt.sleep(PAUSE).await;
        if !monitor.names.any_before() {
            continue;
        }
        let Some(used) = used(&monitor).await else {
            continue;
        };
        let has_some = |host: &str, ip: std::net::IpAddr| {
            let ip = ip.to_string();
            let mut used = used.iter();
            used.any(|(name, address)| **name == *host && **address == *ip)
        };
        if monitor.names.keep_before(has_some) {
            monitor.names_have_changed();
        }
    }
}

/// Names, each with an address to which some core has connections; `None` if not all have said.
async fn used(monitor: &Monitor) -> Option<BTreeSet<(Arc<str>, Arc<str>)>> {
    let (tx, rx) = mailbox::channel(CORES_MAX);
    let asked = Cell::new(0_usize);
    let all = (monitor.tell_cores)(&|| {
        asked.set(asked.get() + 1);
        let tx = tx.clone();
        ToCore::Ask {
            what: Ask::Addresses,
            reset: false,
            reply: Box::new(move |report| drop(tx.try_send(report))),
        }
    });
    if !all {
        return None;
    }
    let mut used = BTreeSet::new();
    for _ in 0..asked.get() {
        let heard = monitor.rt.timeout(PATIENCE, rx.recv()).await;
        let Ok(Some(Report::Addresses(rows))) = heard else {
            return None;
        };
        let rows = rows.into_iter().filter(|row| row.used + row.free > 0);
        used.extend(rows.map(|row| (row.host, row.address)));
    }
    Some(used)
}
