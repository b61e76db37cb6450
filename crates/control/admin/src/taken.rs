//! What the cores have counted and given away, so that they count anew: until somebody has it, it
//! is kept here, and a read that fails loses nothing.

use bridge::{Ask, Report};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes of one kind of report are kept; what was seen last stays.
const BYTES_MAX: usize = 64 << 20;

/// Counts that nobody has had. Whoever asks next gets them with those of the cores.
#[derive(Default)]
pub(crate) struct Kept {
    reports: RefCell<Vec<(Ask, Report)>>,
    lost: Cell<u64>,
    /// How many rows wait.
    rows: Arc<AtomicUsize>,
}

impl Kept {
    /// `rows` will say how many rows wait.
    pub(crate) fn counted_by(rows: Arc<AtomicUsize>) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// Rows that were too many to be kept, since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.get()
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    /// Adds what nobody has had to what the cores report now.
    pub(crate) fn add_to(&self, what: Ask, report: &mut Report) {
        if let Some((_, kept)) = self.reports.borrow().iter().find(|(kind, _)| *kind == what) {
            report.and_before(kept.clone());
        }
    }

    fn take(&self, what: Ask) -> Option<Report> {
        let mut reports = self.reports.borrow_mut();
        let at = reports.iter().position(|(kind, _)| *kind == what)?;
        let (_, report) = reports.swap_remove(at);
        self.rows.fetch_sub(report.rows(), Ordering::Relaxed);
        Some(report)
    }

    /// How many rows were too many.
    fn put(&self, what: Ask, mut report: Report) -> usize {
        if let Some(before) = self.take(what) {
            report.and_before(before);
        }
        let lost = report.shorten(BYTES_MAX);
        self.lost.set(self.lost.get() + lost as u64);
        self.rows.fetch_add(report.rows(), Ordering::Relaxed);
        self.reports.borrow_mut().push((what, report));
        lost
    }
}

/// Report that cores have given away. Dropped before it is [`Taken::delivered`], it is kept for
/// whoever asks next.
pub(crate) struct Taken {
    kept: Rc<Kept>,
    what: Ask,
    report: Option<Report>,
}

impl Taken {
    pub(crate) fn new(kept: Rc<Kept>, what: Ask, report: Report) -> Self {
        Self {
            kept,
            what,
            report: Some(report),
        }
    }

    /// Another core's.
    pub(crate) fn merge(&mut self, other: Report) {
        if let Some(report) = &mut self.report {
            report.merge(other);
        }
    }

    /// All cores have answered: with what nobody has had before, here and of the process before.
    pub(crate) fn and_before(mut self, earlier: Option<Report>) -> Self {
        let before = [self.kept.take(self.what), earlier];
        if let Some(report) = &mut self.report {
            let before = before.into_iter().flatten();
            before.for_each(|before| report.and_before(before));
        }
        self
    }

    pub(crate) fn report(&self) -> &Report {
        self.report
            .as_ref()
            .expect("it goes when this is delivered or dropped")
    }

    /// Somebody has it.
    pub(crate) fn delivered(mut self) {
        self.report = None;
    }

    /// Nobody will have it now: how many rows wait for whoever asks next, and how many were too
    /// many.
    pub(crate) fn put_back(mut self) -> (usize, usize) {
        let Some(report) = self.report.take() else {
            return (0, 0);
        };
        let all = report.rows();
        let lost = self.kept.put(self.what, report);
        (all - lost, lost)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(report) = self.report.take() {
            self.kept.put(self.what, report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::View;
    use crate::testing::{self, digest_row};
    use bridge::{CoreRow, PoolRow, ServerState};
    use std::time::Duration;

    /// A core that has counted one more digest, with a count of one, each time that it is asked.
    fn one_more() -> testing::Reports {
        let given = Cell::new(0);
        Box::new(move |what, reset| {
            let n = given.get() + u64::from(reset && what == Ask::Digests);
            given.set(n);
            (what == Ask::Digests && reset)
                .then(|| Report::Digests(vec![digest_row("u", "", n, "SELECT ?")]))
        })
    }

    const READ: &str = "SELECT count(*), sum(count_star) FROM stats_mysql_query_digest_reset";

    #[test]
    fn what_a_reader_did_not_get_the_next_one_gets() {
        testing::with_reports(crate::Options::default(), one_more(), |bench| async move {
            let asker = bench.asker(View::Admin);
            let shared = &bench.shared;
            // It failed when it ran; its reader was gone; a constraint was against it.
            for (read, sql) in [
                "SELECT count(*) + abs(-9223372036854775807 - 1) FROM stats_mysql_query_digest_reset",
                READ,
                "INSERT INTO mysql_collations SELECT NULL, NULL, NULL, NULL FROM stats_mysql_query_digest_reset",
            ]
            .iter()
            .enumerate()
            {
                let answered = shared.answer(&asker, sql, &[]).await;
                assert_eq!(answered.is_ok(), read == 1, "{sql}");
                drop(answered);
                let waits = bench.rows("SELECT count(*) FROM stats_mysql_query_digest").await;
                assert_eq!(waits, [[(read + 1).to_string()]], "{sql}: those who do not reset it see it as well");
            }
            assert_eq!(bench.rows(READ).await, [["4", "4"]]);
            assert_eq!(bench.rows(READ).await, [["1", "1"]], "and nobody else");
        });
    }

    #[test]
    fn what_is_truncated_and_what_is_inserted_is_had() {
        testing::with_reports(crate::Options::default(), one_more(), |bench| async move {
            drop(
                bench
                    .shared
                    .answer(&bench.asker(View::Admin), READ, &[])
                    .await,
            );
            bench
                .run("TRUNCATE TABLE stats.stats_mysql_query_digest")
                .await;
            assert_eq!(bench.rows(READ).await, [["1", "1"]]);
            bench.script("CREATE TABLE mine (n INT)").await;
            let insert = "INSERT INTO mine SELECT count_star FROM stats_mysql_query_digest_reset";
            drop(
                bench
                    .shared
                    .answer(&bench.asker(View::Admin), insert, &[])
                    .await,
            );
            assert_eq!(bench.rows(READ).await, [["1", "1"]]);
            assert_eq!(bench.rows("SELECT sum(n) FROM mine").await, [["1"]]);
        });
    }

    /// One of two cores answers after seven seconds: whoever asked has gone by then.
    #[test]
    fn what_a_core_gives_too_late_is_kept() {
        testing::with_a_second_core(
            16,
            |rt, unread| {
                Box::pin(async move {
                    while let Some(message) = unread.recv().await {
                        let bridge::ToCore::Ask { what, reset, reply } = message else {
                            continue;
                        };
                        if reset {
                            rt.sleep(Duration::from_secs(7)).await;
                        }
                        let rows = if reset {
                            vec![digest_row("v", "", 7, "SELECT ?")]
                        } else {
                            Vec::new()
                        };
                        reply(if what == Ask::Digests {
                            Report::Digests(rows)
                        } else {
                            Report::Rules(Vec::new())
                        });
                    }
                })
            },
            one_more(),
            |bench| async move {
                assert!(bench.refused(READ).await.contains("only 1 of 2 cores"));
                bench.shared.rt.sleep(Duration::from_secs(10)).await;
                assert_eq!(
                    bench
                        .rows("SELECT sum(count_star) FROM stats_mysql_query_digest")
                        .await,
                    [["2"]]
                );
            },
        );
    }

    #[test]
    fn what_is_kept_is_bounded_in_bytes_and_what_is_too_much_is_counted() {
        let reports: testing::Reports = Box::new(|what, reset| {
            let row = |n: u64| bridge::DigestRow {
                last_seen: n,
                ..digest_row("u", "", n, &"x".repeat(1 << 20))
            };
            (what == Ask::Digests && reset).then(|| Report::Digests((0..100).map(row).collect()))
        });
        testing::with_reports(crate::Options::default(), reports, |bench| async move {
            drop(
                bench
                    .shared
                    .answer(&bench.asker(View::Admin), READ, &[])
                    .await,
            );
            let kept = bench
                .rows("SELECT count(*), min(last_seen) FROM stats_mysql_query_digest")
                .await;
            assert_eq!(kept, [["63", "37"]], "the last ones");
            let lost = "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_rows_lost'";
            assert_eq!(bench.rows(lost).await, [["37"]]);
            assert_eq!(bench.shared.cores.waiting(), 63);
            bench
                .run("TRUNCATE TABLE stats.stats_mysql_query_digest")
                .await;
            assert_eq!(bench.shared.cores.waiting(), 0);
        });
    }

    /// Gauges are as they are now; maxima of two times are not added up.
    #[test]
    fn counts_of_before_do_not_change_what_is_so_now() {
        let server = |host: &str, used, ok, used_max| PoolRow {
            hostgroup: 1,
            host: host.into(),
            port: 3306,
            state: ServerState::Online,
            used,
            free: used,
            ok,
            err: ok,
            used_max,
            queries: ok,
            queries_gtid_sync: 0,
            bytes_sent: ok,
            bytes_received: ok,
            latency_us: used,
        };
        let mut now = Report::Pool(vec![server("a", 2, 5, 3), server("b", 1, 1, 1)]);
        now.and_before(Report::Pool(vec![
            server("a", 9, 7, 9),
            server("gone", 1, 1, 1),
        ]));
        let Report::Pool(rows) = now else {
            panic!("a pool")
        };
        assert_eq!(rows, [server("a", 2, 12, 9), server("b", 1, 1, 1)]);
        let core = |sessions, n| CoreRow {
            core: 0,
            sessions,
            tasks: sessions,
            turns: n,
            busy_us: n,
            longest_us: n,
            longest_cpu_us: n,
            long: n,
            long_cpu: n,
        };
        let mut now = Report::Cores(vec![core(3, 10)]);
        now.and_before(Report::Cores(vec![core(8, 4)]));
        let Report::Cores(rows) = now else {
            panic!("cores")
        };
        assert_eq!(
            rows,
            [CoreRow {
                longest_us: 10,
                longest_cpu_us: 10,
                ..core(3, 14)
            }]
        );
    }
}
