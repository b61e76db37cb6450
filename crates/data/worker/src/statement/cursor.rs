//! Rows of a cursor are fetched over the one connection that has them.

use crate::command::prepared::{ClientStatement, unknown};
use crate::command::trouble::{Ended, Trouble};
use crate::forward::learn::keeps_warnings;
use crate::forward::relay::{Ask, doubt_interrupted, relay};
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::{Answered, Backend, Hold, Idle, Unreported};
use bridge::Counter;
use rt::Chunk;
use wire::command::COM_STMT_FETCH;
use wire::response::{Expect, Outcome};
use wire::{packet, status};

/// A fetch opens nothing and leaves nothing but warnings. It is no SELECT: what FOUND_ROWS() says
/// stays.
const FETCH: &[u8] = b"DO 0";

impl Session {
    /// COM_STMT_FETCH.
    pub(crate) async fn fetch(&mut self, epoch: &Epoch, id: u32, rows: u32) -> Result<(), Ended> {
        let Some((id, statement)) = self.statements.get(id) else {
            return self.refuse(&unknown(epoch, id, "mysqld_stmt_fetch")).await;
        };
        let at = statement.cursor.as_ref().map(|cursor| cursor.hostgroup);
        let Some((hostgroup, mut backend)) =
            at.and_then(|hostgroup| Some((hostgroup, self.held.take(hostgroup)?)))
        else {
            let stop = if epoch.claims_mariadb() { "" } else { "." };
            let words = format!("The statement ({id}) has no open cursor{stop}");
            return self.refuse(&Complaint::with(1421, "HY000", words)).await;
        };
        self.core.tally.up(Counter::Questions);
        self.entry.begins("Fetch", b"", self.core.rt.now());
        self.entry.works_on(hostgroup, &backend);
        let fetched = self
            .fetch_from(epoch, hostgroup, &mut backend, id, rows)
            .await;
        if fetched.is_ok() && backend.idle == Idle::Proven {
            self.put_back(hostgroup, backend);
            return Ok(());
        }
        if fetched.is_ok() && backend.holds.is_empty() {
            // The client has its answer, and nothing of the session is there: only a KILL that may
            // come late.
            self.core.pools.release(backend);
            return Ok(());
        }
        // The rows that are left go with the connection.
        self.core.pools.abandon(backend);
        Err(fetched.map_or_else(Trouble::ends, |()| Ended::Broken))
    }

    async fn fetch_from(
        &mut self,
        epoch: &Epoch,
        hostgroup: u32,
        backend: &mut Backend,
        id: u32,
        rows: u32,
    ) -> Result<(), Trouble> {
        // A cursor that the server closed by itself has no id any more; the server says what it
        // thinks of 0.
        let known = backend.cursor(id).unwrap_or_default();
        let mut command = Vec::with_capacity(13);
        packet::append_with(&mut command, &mut 0, |payload| {
            payload.push(COM_STMT_FETCH);
            payload.extend_from_slice(&known.to_le_bytes());
            payload.extend_from_slice(&rows.to_le_bytes());
        });
        backend.send(Chunk::from(command)).await?;
        let v = &epoch.snapshot.variables;
        let (mut limit_ms, per_second) = (
            v.mysql_default_query_timeout,
            v.mysql_throttle_max_bytes_per_second_to_client,
        );
        let mut ask = Ask {
            per_second,
            ..Ask::for_all_of(Expect::Fetch)
        };
        if let Some(cursor) = self
            .statements
            .get(id)
            .and_then(|(_, statement)| statement.cursor.as_ref())
        {
            limit_ms = crate::command::reads::limit_ms(cursor.timeout_ms, v);
            (ask.rows_max, ask.rows_before) = (cursor.rows_max, cursor.rows);
        }
        ask.limit_ms = limit_ms;
        let reply = relay(self, backend, &ask).await?;
        let response = reply.response();
        let rows = ask.rows_before + response.rows();
        let is_cut = ask.rows_max.is_some_and(|most| rows > most);
        let failed = matches!(response.outcome(), Outcome::Err { .. });
        let flags = response.is_status_known().then(|| response.status());
        let answered = Answered {
            ok: !failed,
            status: flags,
            warnings: response.warnings(),
            used_tables: true,
        };
        backend.holds.after(&sql::class(FETCH), &answered);
        backend.lease.warned = (!failed).then(|| response.warnings());
        if failed || response.warnings() > 0 {
            (backend.lasting.warnings_left, backend.local.others_warnings) = (true, false);
        }
        if backend.holds.has(Hold::Diagnostics) {
            if keeps_warnings(&epoch.snapshot, hostgroup) {
                self.keep_warnings_for_a_while(backend, &epoch.snapshot.variables);
            } else {
                backend.holds.remove(Hold::Diagnostics);
            }
        }
        self.remembered.row_count.set(-1);
        let ended = failed || flags.is_some_and(|flags| flags & status::LAST_ROW_SENT != 0);
        if ended {
            backend.cursor_ended(id);
        } else if is_cut {
            // The client has no use for the rows that are left.
            backend.close_cursor(id);
        }
        if let Some((_, statement)) = self.statements.get(id) {
            statement.cursor = statement.cursor.take().filter(|_| !ended && !is_cut);
            if let Some(cursor) = &mut statement.cursor {
                cursor.rows = rows;
            }
        }
        doubt_interrupted(backend);
        Ok(())
    }

    /// A statement of the client is executed anew, reset or closed: its cursor ends.
    pub(crate) fn close_cursor(&mut self, id: u32, statement: &mut ClientStatement) {
        let Some(cursor) = statement.cursor.take() else {
            return;
        };
        let hostgroup = cursor.hostgroup;
        if let Some(mut backend) = self.held.take(hostgroup) {
            backend.close_cursor(id);
            self.put_back(hostgroup, backend);
        }
    }

    /// Keeps a connection that still holds something, gives back one that does not.
    fn put_back(&mut self, hostgroup: u32, mut backend: Box<Backend>) {
        if backend.holds.is_empty() && backend.local.unreported != Unreported::Nothing {
            // What a statement that failed has changed is still to be told.
            backend.holds.add(Hold::Unread);
        }
        self.held
            .keep_or_release(hostgroup, backend, &self.core.pools);
    }
}
