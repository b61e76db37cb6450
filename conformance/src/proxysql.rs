//! A model of a ProxySQL in a cluster, written after the facts in
//! `docs/features/proxysql-cluster.md`: it asks its peer as ProxySQL does, takes over what has the
//! announced checksum, and answers. It routes nothing.

mod ask;
mod serve;
mod texts;

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sql::spooky::hash64_of;

pub use texts::{Rows, cells};

/// Looks that must differ before something is taken over.
const ENOUGH: u64 = 3;

/// A running model; it ends with the test.
pub struct ProxySql {
    /// Its admin port, on 127.0.0.1.
    pub port: u16,
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
}

/// Module of a model.
#[derive(Clone, Default)]
pub struct Module {
    /// LOADs.
    pub version: u64,
    /// When what is in force was made.
    pub epoch: u64,
    /// Text of the checksum.
    pub checksum: String,
    /// Answers to the texts of the module, in their order.
    pub results: Vec<Rows>,
}

struct State {
    version: &'static str,
    modules: BTreeMap<&'static str, Module>,
    /// Announcements of the peer: version, epoch, checksum, looks that differed.
    peer: BTreeMap<String, (u64, u64, String, u64)>,
    /// How often the peer had another version.
    strangers: u64,
    /// Why something was not taken over.
    failures: Vec<String>,
    /// Something else is given than what was announced.
    lies: bool,
}

impl ProxySql {
    /// Starts one that follows the Millrace at `peer`, as `cluster` with this password.
    pub fn start(version: &'static str, peer: u16, password: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let modules = texts::modules(version);
        let state = Arc::new(Mutex::new(State {
            version,
            modules: modules.map(|name| (name, Module::started(name))).collect(),
            peer: BTreeMap::new(),
            strangers: 0,
            failures: Vec::new(),
            lies: false,
        }));
        let ended = Arc::new(AtomicBool::new(false));
        {
            let (state, ended) = (state.clone(), ended.clone());
            thread::spawn(move || serve::serve(&listener, &state, &ended));
        }
        {
            let (state, ended, password) = (state.clone(), ended.clone(), password.to_owned());
            thread::spawn(move || ask::follow(peer, &password, &state, &ended));
        }
        Ok(Self { port, state, ended })
    }

    /// Module as it has it.
    pub fn module(&self, name: &str) -> Module {
        lock(&self.state)
            .modules
            .get(name)
            .cloned()
            .unwrap_or_default()
    }

    /// Rows of the nth result of a module, as texts.
    pub fn rows(&self, name: &str, nth: usize) -> Vec<String> {
        let module = self.module(name);
        let rows = module.results.get(nth).into_iter().flatten();
        rows.map(|row| texts::line(row)).collect()
    }

    /// An operator has written these results, and says LOAD. ProxySQL's epochs are seconds: the
    /// next one that is later than what either side has.
    pub fn load(&self, name: &'static str, results: Vec<Rows>) {
        loop {
            let mut state = lock(&self.state);
            let seen = state.peer.get(name).map_or(0, |(_, epoch, ..)| *epoch);
            let module = state.modules.entry(name).or_default();
            if now_s() > module.epoch.max(seen) {
                module.version += 1;
                module.epoch = now_s();
                module.checksum = texts::checksum(name, &results);
                module.results = results;
                return;
            }
            drop(state);
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Loads other values of variables: names with values, of those that the module has.
    pub fn set(&self, name: &'static str, values: &[(&str, &str)]) {
        let mut rows = self.module(name).results.concat();
        for row in &mut rows {
            let variable = texts::line(row.get(..1).unwrap_or_default());
            if let Some((_, value)) = values.iter().find(|(name, _)| *name == variable) {
                row[1] = Some(value.as_bytes().to_vec());
            }
        }
        self.load(name, vec![rows]);
    }

    /// Gives something else than it announces, or does not.
    pub fn lies(&self, lies: bool) {
        lock(&self.state).lies = lies;
    }

    /// Why it has not taken something over.
    pub fn failures(&self) -> Vec<String> {
        lock(&self.state).failures.clone()
    }

    /// How often the peer had another version than this one.
    pub fn strangers(&self) -> u64 {
        lock(&self.state).strangers
    }
}

impl Drop for ProxySql {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // The listener looks up.
        let _nobody = std::net::TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Module {
    /// A module without rows, as after a start.
    fn started(name: &str) -> Self {
        let results = texts::empty(name);
        Self {
            version: 1,
            epoch: now_s(),
            checksum: texts::checksum(name, &results),
            results,
        }
    }
}

impl State {
    /// Number over all modules.
    fn global(&self) -> u64 {
        let mut bytes = Vec::new();
        for module in self.modules.values() {
            bytes.extend_from_slice(module.checksum.as_bytes());
            bytes.extend_from_slice(&module.version.to_le_bytes());
        }
        hash64_of(&bytes, [9, 5])
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|lock| lock.into_inner())
}

fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
