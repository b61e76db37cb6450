//! All partitions of a statement are asked at once, and their connections part from it.

use crate::command::job::Job;
use crate::core::alone;
use crate::partitions::asking::{Answering, Asking, LEFT_MAX, LEFT_WITHIN, LOOKS, Stopped};
use crate::session::Session;
use backend::Backend;

impl Session {
    /// A connection for each hostgroup and text that is asked there, and then its question.
    pub(crate) async fn ask_all(
        &self,
        job: &Job<'_>,
        asking: &Asking<'_>,
        asked: &[(u32, &[u8])],
        parts: &mut Vec<Answering>,
    ) -> Result<(), Stopped> {
        if let Some(legs) = &asking.legs {
            let asking = (asking, &**legs);
            return Box::pin(self.ask_branches(job, asking, asked, parts)).await;
        }
        // All take connections in the same order, so that two do not wait for each other.
        let mut order: Vec<(usize, u32)> = asked
            .iter()
            .map(|(hostgroup, _)| *hostgroup)
            .enumerate()
            .collect();
        order.sort_by_key(|(_, hostgroup)| *hostgroup);
        let mut connected = Vec::with_capacity(order.len());
        for (at, hostgroup) in order {
            let backend = match self
                .connection_for(job, (asking, &asking.state), hostgroup)
                .await
            {
                Ok(backend) => backend,
                Err(stopped) => {
                    self.give_back_unused(connected);
                    return Err(stopped);
                }
            };
            if connected.is_empty() {
                self.entry.works_on(hostgroup, &backend);
            }
            connected.push((at, backend));
        }
        connected.sort_by_key(|(at, _)| *at);
        let mut connected = connected.into_iter();
        for (_, text) in asked {
            let Some((_, mut backend)) = connected.next() else {
                break;
            };
            alone::takes(&mut backend);
            match self.ask_on(job, asking, text, backend).await {
                Ok(part) => parts.push(part),
                Err(stopped) => {
                    self.give_back_unused(connected);
                    return Err(stopped);
                }
            }
        }
        Ok(())
    }

    /// Gives back connections on which nothing was asked.
    fn give_back_unused(&self, connected: impl IntoIterator<Item = (usize, Box<Backend>)>) {
        for (_, backend) in connected {
            self.core.pools.release(backend);
        }
    }

    /// Parts with the connections. What nobody reads any more ends at its server.
    pub(crate) async fn part_from(
        &self,
        parts: Vec<Answering>,
        asking: &Asking<'_>,
        is_whole: bool,
        is_gone: bool,
    ) {
        let v = &self.core.epoch().snapshot.variables;
        let ends = !is_gone || v.mysql_kill_backend_connection_when_disconnect;
        for mut part in parts {
            if let Some(legs) = &asking.legs {
                let asking = (asking, &**legs);
                Box::pin(self.part_from_leg(part, asking, is_gone)).await;
                continue;
            }
            if is_whole && !part.ended {
                // Behind the last row that was needed little is left.
                let left = Box::pin(part.rest(LEFT_MAX));
                let _late_or_too_much = self.core.rt.timeout(LEFT_WITHIN, left).await;
            }
            let Some(mut backend) = part.backend else {
                continue;
            };
            if !part.ended {
                if ends {
                    self.end_on_server(&backend);
                }
                self.core.pools.abandon(backend);
                continue;
            }
            alone::learn(&mut backend, &asking.class, &part.response);
            let set = match asking.moment_us {
                Some(_) => {
                    let set = Box::pin(backend.set_moment(None));
                    matches!(self.core.rt.timeout(LOOKS, set).await, Ok(Ok(())))
                }
                None => true,
            };
            match set {
                true => alone::gives_back(&self.core, backend),
                false => self.core.pools.abandon(backend),
            }
        }
    }
}
