//! For tests: an admin side in memory (or in a directory) with one core that does nothing but
//! answer.

use crate::engine::{Reply, View};
use crate::hooks::Hooks;
use crate::open::{Admin, Options};
use crate::said::{Asker, Said};
use crate::shared::Shared;
use bridge::{AlarmRow, Ask, Counts, DigestRow, Report, ToCore};
use rt::{Driver, Rt, mailbox};
use std::cell::RefCell;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;

/// A directory of its own for a test, removed when it ends.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("millrace-admin-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The admin side, and what its core was told.
pub(crate) struct Bench {
    pub(crate) shared: Rc<Shared>,
    pub(crate) loaded: Rc<RefCell<Vec<config::Snapshot>>>,
}

/// Answers of the core when it is asked.
pub(crate) type Reports = Box<dyn Fn(Ask, bool) -> Option<Report>>;

/// A statement that ran once, in schema `s`.
pub(crate) fn digest_row(user: &str, client_address: &str, digest: u64, text: &str) -> DigestRow {
    DigestRow {
        hostgroup: 0,
        schema: "s".into(),
        user: user.into(),
        client_address: client_address.into(),
        digest,
        text: text.into(),
        shown: Some(true),
        guarded: digest,
        alike: false,
        count: 1,
        first_seen: 1,
        last_seen: 1,
        sum_time_us: 1,
        min_time_us: 1,
        max_time_us: 1,
        rows_affected: 0,
        rows_sent: 0,
        latency: bridge::Latency::default(),
    }
}

/// A statement that the firewall noticed once.
pub(crate) fn alarm_row(
    user: &str,
    schema: &str,
    flag: u32,
    digest: u64,
    action: &'static str,
) -> AlarmRow {
    AlarmRow {
        user: user.into(),
        client_address: "10.0.0.1".into(),
        schema: schema.into(),
        flag,
        digest,
        text: "SELECT ?".into(),
        action,
        fingerprint: "".into(),
        count: 1,
        first_seen: 1,
        last_seen: 1,
    }
}

/// Runs a test with an admin side.
pub(crate) fn with<F: Future<Output = ()>>(options: Options, test: impl FnOnce(Bench) -> F) {
    with_reports(options, Box::new(|_, _| None), test);
}

/// Runs a test with an admin side, and with a core that reports something.
pub(crate) fn with_reports<F: Future<Output = ()>>(
    options: Options,
    reports: Reports,
    test: impl FnOnce(Bench) -> F,
) {
    let admin = Admin::open(&options).unwrap_or_else(|refused| panic!("{refused:?}"));
    let main = |rt: Rt| async move {
        let (sender, receiver) = mailbox::channel(16);
        let loaded = Rc::new(RefCell::new(Vec::new()));
        rt.spawn(core(receiver, loaded.clone(), reports));
        let shared = Rc::new(Shared::new(admin, rt, vec![sender], Hooks::default()));
        test(Bench { shared, loaded }).await;
    };
    rt::run(Driver::READINESS, main).unwrap();
}

/// Runs a test with an admin side, in virtual time, and with a second core that listens and never
/// says a word.
pub(crate) fn with_a_silent_core<F: Future<Output = ()>>(
    reports: Reports,
    test: impl FnOnce(Bench) -> F,
) {
    with_a_second_core(
        1000,
        |_rt, unread| {
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(unread)
            })
        },
        reports,
        test,
    );
}

/// Runs a test with an admin side, in virtual time, and with a second core: `second` is what that
/// does with its mailbox.
pub(crate) fn with_a_second_core<F: Future<Output = ()>>(
    mailbox_len: usize,
    second: impl FnOnce(Rt, mailbox::Receiver<ToCore>) -> Pin<Box<dyn Future<Output = ()>>>,
    reports: Reports,
    test: impl FnOnce(Bench) -> F,
) {
    let limits = rt::sim::Limits {
        time_max: std::time::Duration::from_secs(3600),
        turns_max: 1_000_000,
    };
    rt::sim::run_with(1, rt::sim::Faults::perfect(), limits, |rt| async move {
        let admin =
            Admin::open(&Options::default()).unwrap_or_else(|refused| panic!("{refused:?}"));
        let (sender, receiver) = mailbox::channel(16);
        let (to_second, unread) = mailbox::channel(mailbox_len);
        let loaded = Rc::new(RefCell::new(Vec::new()));
        rt.spawn(core(receiver, loaded.clone(), reports));
        rt.spawn(second(rt.clone(), unread));
        let shared = Rc::new(Shared::new(
            admin,
            rt,
            vec![sender, to_second],
            Hooks::default(),
        ));
        test(Bench { shared, loaded }).await;
    });
}

async fn core(
    messages: mailbox::Receiver<ToCore>,
    loaded: Rc<RefCell<Vec<config::Snapshot>>>,
    reports: Reports,
) {
    while let Some(message) = messages.recv().await {
        match message {
            ToCore::Load { snapshot, done } => {
                loaded.borrow_mut().push((*snapshot).clone());
                done(());
            }
            ToCore::Ask { what, reset, reply } => {
                reply(reports(what, reset).unwrap_or_else(|| empty(what)))
            }
            ToCore::Kill { reply, .. } => reply(bridge::Killed::Unknown),
            ToCore::FlushCache { reply, .. } | ToCore::KillUser { reply, .. } => reply(0),
            ToCore::FlushClientHosts { done }
            | ToCore::HandOverEvents { done }
            | ToCore::Gate { done, .. }
            | ToCore::Close { done } => done(()),
            ToCore::Accept(_)
            | ToCore::Observe(_)
            | ToCore::Executed { .. }
            | ToCore::AsOf { .. }
            | ToCore::Touched(_)
            | ToCore::ClientHost { .. }
            | ToCore::Fetching { .. }
            | ToCore::ReloadTls { .. }
            | ToCore::Drain { .. }
            | ToCore::Leave { .. }
            | ToCore::Settle(_)
            | ToCore::Stop => {}
        }
    }
}

fn empty(what: Ask) -> Report {
    match what {
        Ask::Global => Report::Global(Counts::zero()),
        Ask::Pool => Report::Pool(Vec::new()),
        Ask::Processes => Report::Processes(Vec::new()),
        Ask::Digests => Report::Digests(Vec::new()),
        Ask::Rules => Report::Rules(Vec::new()),
        Ask::Commands => Report::Commands(Vec::new()),
        Ask::Hostgroups => Report::Hostgroups(Vec::new()),
        Ask::Choice => Report::Choice(Vec::new()),
        Ask::Addresses => Report::Addresses(Vec::new()),
        Ask::Admission => Report::Admission(Vec::new()),
        Ask::Concurrency => Report::Concurrency(Vec::new()),
        Ask::HostgroupPool => Report::HostgroupPool(Vec::new()),
        Ask::Users => Report::Users(Vec::new()),
        Ask::Errors => Report::Errors(Vec::new()),
        Ask::FreeConnections => Report::FreeConnections(Vec::new()),
        Ask::Prepared => Report::Prepared(Vec::new()),
        Ask::Mirror => Report::Mirror(Vec::new()),
        Ask::Hooks => Report::Hooks(Vec::new()),
        Ask::Shards => Report::Shards(Vec::new()),
        Ask::ShardDdl => Report::ShardDdl(Vec::new()),
        Ask::Alarms => Report::Alarms(Vec::new()),
        Ask::Core => Report::Cores(Vec::new()),
        Ask::ClientHosts => Report::ClientHosts(Vec::new()),
        Ask::QueryCache => Report::QueryCache(Vec::new()),
    }
}

impl Bench {
    /// Runs a statement, and returns what an operator gets.
    pub(crate) async fn ask(&self, view: View, sql: &str) -> Result<Reply, Said> {
        let answered = self.shared.answer(&self.asker(view), sql, &[]).await?;
        let reply = answered.reply.clone();
        answered.delivered();
        Ok(reply)
    }

    pub(crate) fn asker(&self, view: View) -> Asker {
        let user = if view == View::Admin {
            "admin"
        } else {
            "stats"
        };
        Asker {
            id: 1,
            user: user.into(),
            host: "127.0.0.1".into(),
            port: 1,
            view,
        }
    }

    /// Runs a statement that must be done, and returns how many rows it changed.
    pub(crate) async fn run(&self, sql: &str) -> u64 {
        match self.ask(View::Admin, sql).await {
            Ok(Reply::Done { affected, .. }) => affected,
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// A whole script, one statement after the other.
    pub(crate) async fn script(&self, sql: &str) {
        for statement in door::split::statements(sql) {
            self.run(statement).await;
        }
    }

    /// Runs a statement that must answer rows, and returns these.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        match self.ask(View::Admin, sql).await {
            Ok(Reply::Rows(grid)) => grid.texts(),
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// Runs a statement that must be refused, and returns the words of the refusal.
    pub(crate) async fn refused(&self, sql: &str) -> String {
        match self.ask(View::Admin, sql).await {
            Err(Said::Sql(words)) => words,
            other => panic!("{sql}: {other:?}"),
        }
    }
}
