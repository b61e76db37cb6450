//! Found rows of a session, and what FOUND_ROWS() and ROW_COUNT() would say.

use crate::command::job::{Job, What};
use crate::command::trouble::Failed;
use crate::known::finds::{Finds, found_by};
use crate::memory::row::{After, Asking, Memory, SILENT, lingers_until};
use crate::session::Session;
use crate::session::remembered::{Found, Recall, Remembered};
use backend::{Backend, BackendFailed, Hold, Unreported};
use sql::{Class, CommandCounter, Leaves, Reads};
use wire::response::{Response, Tail};
use wire::status;

pub(crate) static MEMORY: Memory = Memory {
    holds: &[Hold::FoundRows],
    reads: Reads::FOUND_ROWS,
    fragile: true,
    is_there: |session, backend| {
        // What programs have left there is asked for with questions.
        let forgets = || {
            backend.says_what_is_left().is_some()
                && session.knows_found_rows(backend)
                && session.found_rows().is_none()
        };
        backend.holds.has(Hold::FoundRows) || forgets()
    },
    ask: |session, backend, how| Box::pin(session.ask_found_rows(backend, how)),
    lose: |session| session.keep_found_rows(None),
};

impl Remembered {
    /// The proxy has answered with one row.
    pub(crate) fn has_found_one_row(&self) {
        self.has_found(Found::Rows(1));
    }

    /// Notes what FOUND_ROWS() is, which no connection knows.
    pub(crate) fn has_found(&self, found: Found) {
        self.found_rows.set(Recall { found, by: None });
    }
}

impl Session {
    /// Whether its LIMIT is where [`found_by`] looks for it: strings may end elsewhere for this
    /// session.
    pub(crate) fn limits_are_read(&self, job: &Job<'_>) -> bool {
        // Nothing but a backslash, or what is not ASCII, is read in two ways.
        let is_plain = || job.sent().is_ascii() && !job.sent().contains(&b'\\');
        !job.class.limits || self.lexing_of(job.what) == sql::Lexing::Escapes || is_plain()
    }

    /// FOUND_ROWS(), if the session knows it.
    pub(crate) fn found_rows(&self) -> Option<u32> {
        match self.remembered.found_rows.get().found {
            Found::Rows(rows) => Some(rows),
            Found::Unknown | Found::Lost => None,
        }
    }

    /// Whether FOUND_ROWS() on this connection is about the statement that it is about for the
    /// session.
    pub(crate) fn knows_found_rows(&self, backend: &Backend) -> bool {
        let by = self.remembered.found_rows.get().by;
        #[cfg(debug_assertions)]
        if backend::planted::FORGET_HOLD.get() == Some(Hold::FoundRows) {
            // Nobody looks who was there.
            return by.is_some();
        }
        let is_about_it = || {
            by.is_some() && backend.lasting.last_session == self.life && backend.local.finder == by
        };
        backend.holds.has(Hold::FoundRows) || is_about_it()
    }

    /// Why the server of this connection cannot be asked for FOUND_ROWS(), of which the text has a
    /// call.
    pub(crate) fn unknown_found_rows(&self) -> BackendFailed {
        let words = match self.remembered.found_rows.get().found {
            Found::Lost => "The connection that knew FOUND_ROWS() is lost, and it is lost with it",
            Found::Unknown | Found::Rows(_) => {
                "What FOUND_ROWS() is here is known on another connection only: ask with SELECT FOUND_ROWS() right behind the statement that it is about, \
                 or have SQL_CALC_FOUND_ROWS in that"
            }
        };
        BackendFailed::Sync {
            code: 1235,
            state: *b"42000",
            message: words.to_owned(),
        }
    }

    async fn ask_found_rows(
        &mut self,
        backend: &mut Backend,
        how: Asking,
    ) -> Result<After, Failed> {
        let (mariadb, mut found) = (backend.hello.is_mariadb(), None);
        let untold = backend.local.unreported != Unreported::Nothing;
        if untold {
            // The answer would take it.
            self.hear(backend, how.limit_ms, how.answered).await?;
        }
        if untold && !mariadb {
            // MySQL has it changed by what we said to hear the rest.
            backend.holds.remove(Hold::FoundRows);
        } else {
            let stopped = self.entry.told_to_leave();
            found = self
                .watched(how.limit_ms, backend.ask_found_rows(), stopped)
                .await?;
        }
        self.keep_found_rows(found);
        Ok(After::Told)
    }

    /// Learns what this answer leaves to be asked for.
    pub(crate) fn learn_recall(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        response: &Response,
        error: bool,
    ) {
        let class = job.class;
        let mariadb = backend.hello.is_mariadb();
        let measured = like_those_measured(backend.hello.numbers, mariadb);
        let finds = Finds::of(class, job.sent(), measured);
        if matches!(job.what, What::Prepare(_)) || finds == Finds::Nothing {
            return;
        }
        let certain = finds_its_rows(job, response.rows(), mariadb);
        if class.leaves.intersects(Leaves::FOUND_ROWS)
            && !class.multi
            && (error || !certain)
            && !backend.lease.knew_found_rows
        {
            // The server may have left the number as it was, and that is another session's.
            backend.holds.remove(Hold::FoundRows);
        }
        if error && !class.multi && backend::is_select(class) && !mariadb {
            // To MySQL, one that fails finds nothing.
            return;
        }
        // A WITH may begin a change, too.
        let selects = finds == Finds::Rows && (backend::is_select(class) || response.columns() > 0);
        let plain = !class.multi
            && !error
            && response.results() == 1
            && matches!(
                job.what,
                What::Query(_) | What::Execute(_) | What::Dynamic(_)
            );
        let counted =
            selects && response.columns() > 0 && !class.leaves.intersects(Leaves::FOUND_ROWS);
        let whole = response.status() & status::CURSOR_EXISTS == 0 && job.plan.rows_max().is_none();
        let as_many = certain || self.found_rows() == Some(1);
        let rows = match finds {
            _ if !plain => None,
            Finds::Rows if counted => found_by(class, job.sent(), response.rows(), measured)
                .filter(|_| whole && as_many && self.limits_are_read(job)),
            // MySQL counts what goes into variables.
            Finds::Rows
                if selects
                    && measured == Some(false)
                    && class.leaves.intersects(Leaves::USER_VARIABLE)
                    && !class.limits =>
            {
                u32::try_from(response.affected_rows())
                    .ok()
                    .filter(|_| response.columns() == 0)
            }
            Finds::One => Some(1),
            Finds::Matched => matched(response).filter(|rows| *rows > 0),
            _ => None,
        };
        // What may have changed it, or not, is known where it was known before only.
        let called = backend::is_call(class) && !class.multi && !error && response.results() > 1;
        let own = match finds {
            Finds::Rows => selects && certain,
            Finds::Server | Finds::One => true,
            Finds::Matched => rows.is_some(),
            Finds::Nothing | Finds::Unknown => false,
        };
        let is_known_here = plain && own || called || self.knows_found_rows(backend);
        let by = is_known_here.then(|| self.entry.statement.get());
        backend.local.finder = by;
        self.remembered.found_rows.set(Recall {
            found: rows.map_or(Found::Unknown, Found::Rows),
            by,
        });
        if counted && plain {
            backend.holds.remove(Hold::FoundRows);
        }
        let is_calculated = class.leaves.intersects(Leaves::FOUND_ROWS);
        if backend.lease.found_rows_until.take().is_some() && !is_calculated {
            // That was of the statement before.
            backend.holds.remove(Hold::FoundRows);
        }
        if rows.is_none()
            && by.is_some()
            && (plain || called)
            && !is_calculated
            && self.core.asking_found_rows.has(&self.user_name)
        {
            self.linger_for_found_rows(backend, job);
        }
        self.remembered.of_mariadb.set(Some(mariadb));
        // Elsewhere nobody knows of this one.
        self.end_found_rows();
    }

    /// The session may ask for FOUND_ROWS() at once, or when time is over: that ends it in any case.
    fn linger_for_found_rows(&self, backend: &mut Backend, job: &Job<'_>) {
        let now = self.core.rt.now();
        backend.holds.add(Hold::FoundRows);
        backend.lease.found_rows_until =
            lingers_until(&job.epoch.snapshot, now).or(Some(now + SILENT));
    }

    /// A statement has failed, and nobody knows how far it came.
    pub(crate) fn doubt_found_rows(&self, job: &Job<'_>) {
        let lost = self.remembered.found_rows.get().found == Found::Lost;
        if !lost
            && !matches!(job.what, What::Prepare(_))
            && Finds::of(job.class, job.sent(), None) != Finds::Nothing
        {
            self.remembered.has_found(Found::Unknown);
        }
    }

    /// Forgets that a connection of the session knows FOUND_ROWS(), and lets go of those that are
    /// free.
    pub(crate) fn end_found_rows(&mut self) {
        if self.held.end_found_rows() {
            self.let_go_of_free();
        }
    }

    /// The connection where `SQL_CALC_FOUND_ROWS` ran is given back, or gone; `None` if it could
    /// not be asked.
    fn keep_found_rows(&self, rows: Option<u64>) {
        let rows = rows.and_then(|rows| u32::try_from(rows).ok());
        self.remembered
            .has_found(rows.map_or(Found::Lost, Found::Rows));
    }
}

/// Whether a statement that runs now wants to know. A definition does not, nor do several
/// statements that may find rows themselves.
pub(crate) fn asks_for_found_rows(class: &Class<'_>) -> bool {
    let is_program = class.leaves.intersects(Leaves::UNKNOWN_STATE) && !backend::is_call(class);
    let defines = class.ddl && class.command != CommandCounter::CreateTable;
    class.reads.intersects(Reads::FOUND_ROWS) && !class.multi && !is_program && !defines
}

/// Whether a result of so many rows is as many that were found. MariaDB finds none for the one row
/// of a maximum or a count, if it sees beforehand that no row is to be looked at: FOUND_ROWS()
/// stays what it was.
pub(crate) fn finds_its_rows(job: &Job<'_>, rows: u64, mariadb: bool) -> bool {
    let is_one_for_all =
        || job.class.groups || job.class.leaves.intersects(Leaves::UNKNOWN_FUNCTION);
    !mariadb || rows != 1 || !is_one_for_all()
}

/// Whether a server is a MariaDB; `None` if it is an older MySQL, which was not measured. Those
/// since 8.0.22 execute statements as those do that were.
pub(crate) fn like_those_measured(version: [u32; 3], mariadb: bool) -> Option<bool> {
    (mariadb || version >= [8, 0, 22]).then_some(mariadb)
}

/// How many rows an UPDATE has looked at, if its answer says so in English.
fn matched(response: &Response) -> Option<u32> {
    let Some(Tail::Ok(ok)) = response.tail() else {
        return None;
    };
    let said = std::str::from_utf8(ok.info)
        .ok()?
        .strip_prefix("Rows matched: ")?;
    said.split_once(' ')?.0.parse().ok()
}
