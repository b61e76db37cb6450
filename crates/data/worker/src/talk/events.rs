//! Records of the events log for a session's statements.

use crate::command::job::{Job, Told, What};
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::seen::events::write_address;
use crate::session::Session;
use bridge::{Event, EventKind};
use rt::Instant;

/// Parts of a record that are not the session's.
struct Done<'a> {
    kind: EventKind,
    statement_id: u32,
    text: &'a [u8],
    digest: u64,
    began: Instant,
    told: Told,
    /// As [`What::prepared_in`].
    prepared_in: Option<&'a std::rc::Rc<str>>,
    /// Rules have sent it somewhere.
    is_routed: bool,
}

impl Session {
    /// Logs a statement that has been answered, or whose session ended before. `digest` is that of
    /// what a server got.
    pub(crate) fn log(&self, job: &Job<'_>, digest: u64, began: Instant, told: Told) {
        let (kind, statement_id) = match job.what {
            What::Query(_) | What::Dynamic(_) | What::Refused(_) => (EventKind::Query, 0),
            What::Prepare(preparing) if preparing.naming.is_some() => (EventKind::Query, 0),
            // What could not be prepared has no number.
            What::Prepare(preparing) => (
                EventKind::Prepare,
                if self.turn.failed {
                    0
                } else {
                    preparing.client
                },
            ),
            What::Execute(execution) => (EventKind::Execute, execution.client),
            What::Raw(..) => return,
        };
        let (text, prepared_in) = (job.sent(), job.what.prepared_in());
        self.put_event(
            job.epoch,
            &Done {
                kind,
                statement_id,
                text,
                digest,
                began,
                told,
                prepared_in,
                is_routed: true,
            },
        );
    }

    /// Refuses a statement about which rules are not asked any more. Whether it is logged is said
    /// by `mysql-eventslog_default_log` then.
    pub(crate) async fn refuse_unasked(
        &mut self,
        epoch: &Epoch,
        (kind, statement_id): (EventKind, u32),
        text: &[u8],
        complaint: &Complaint,
    ) -> Result<(), Ended> {
        let began = self.core.rt.now();
        let refused = self.refuse(complaint).await;
        if epoch.logs == Some(true) {
            let told = Told::default();
            self.put_event(
                epoch,
                &Done {
                    kind,
                    statement_id,
                    text,
                    digest: 0,
                    began,
                    told,
                    prepared_in: None,
                    is_routed: false,
                },
            );
        }
        refused
    }

    fn put_event(&self, epoch: &Epoch, done: &Done<'_>) {
        let v = &epoch.snapshot.variables;
        let schema = done.prepared_in.unwrap_or(&self.state.schema);
        let schema = if schema.is_empty() {
            &*v.mysql_default_schema
        } else {
            schema
        };
        let ended_us = self.core.rt.wall_us();
        let took_us =
            u64::try_from((self.core.rt.now() - done.began).as_micros()).unwrap_or(u64::MAX);
        let outbox = &self.core.outbox;
        let mut gathered = outbox.gathered.borrow_mut();
        let (mut client, mut server) = (
            std::mem::take(&mut gathered.client),
            std::mem::take(&mut gathered.server),
        );
        let (host, port) = &self.entry.client;
        write_address(&mut client, host, *port);
        let asked = self.entry.server.borrow();
        let asked = asked
            .as_ref()
            .filter(|_| done.is_routed && self.entry.asks_a_server())
            .zip(self.entry.hostgroup.get());
        if let Some(((place, _), _)) = asked {
            write_address(&mut server, place.host(), place.server().port);
        }
        let event = Event {
            kind: done.kind,
            session: u64::from(self.entry.id),
            user: self.user_name.as_bytes(),
            schema: schema.as_bytes(),
            client: &client,
            server: asked.map(|(_, hostgroup)| (u64::from(hostgroup), &*server)),
            began_us: ended_us.saturating_sub(took_us),
            ended_us,
            statement_id: u64::from(done.statement_id),
            rows_affected: done.told.rows_affected,
            insert_id: done.told.insert_id,
            rows_sent: done.told.rows_sent,
            digest: done.digest,
            text: done.text,
        };
        outbox.put(
            &event,
            &mut gathered,
            self.core.share(v.mysql_eventslog_buffer_MB << 20),
        );
        (gathered.client, gathered.server) = (client, server);
    }
}
