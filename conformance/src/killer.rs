//! Somebody who ends what a client runs, by the number that the client itself was told: a scenario
//! says `INSERT INTO conf2.victims (id, how) VALUES (CONNECTION_ID(), 'QUERY')` (or `'CONNECTION'`)
//! and then a statement that sleeps.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::by_hand::Raw;
use crate::clients::Login;

/// Table that a killer needs on the server: numbers from 1 on for each run.
pub const FIXTURE: &str =
    "CREATE TABLE IF NOT EXISTS conf2.victims (n INT AUTO_INCREMENT PRIMARY KEY, id BIGINT, how VARCHAR(20)) ENGINE=InnoDB;
     TRUNCATE conf2.victims";

/// Who says that he is the next victim has heard of the end before; so who sleeps then is he, or
/// somebody whose session was ended and who has not noticed yet.
const ASLEEP: &str = "SELECT id FROM information_schema.processlist WHERE state = 'User sleep'";

const PAUSE: Duration = Duration::from_millis(10);

/// At work in a thread of its own.
pub struct Killer {
    over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<u64>>,
}

impl Killer {
    /// Looks at the `server`, and says KILL where the client `comes` in. The table of [`FIXTURE`]
    /// is there, and the client is not yet.
    ///
    /// # Errors
    /// It does not come in there itself.
    pub fn start(server: &Login<'_>, comes: &Login<'_>) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let mut looks = Raw::log_in_as(server, 0, 0)?;
        // Some have themselves ended in a transaction.
        looks.ask("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")?;
        // Whom the one before has ended.
        let dying = looks.ask(ASLEEP)?;
        let says = Raw::log_in_as(comes, 0, 0)?;
        Ok(Self {
            over,
            thread: thread::spawn(move || kill(looks, says, dying, &until)),
        })
    }

    /// How many it has ended.
    ///
    /// # Errors
    /// It could not look, or a KILL was refused.
    pub fn stop(self) -> Result<u64, String> {
        self.over.store(true, Ordering::Release);
        self.thread
            .join()
            .map_err(|_| "the killer panicked".to_owned())?
            .map_err(|error| format!("the killer: {error}"))
    }
}

fn kill(
    mut looks: Raw,
    mut says: Raw,
    mut dying: Vec<Vec<String>>,
    over: &AtomicBool,
) -> io::Result<u64> {
    let (mut last, mut ended) = (0_u64, 0);
    while !over.load(Ordering::Acquire) {
        // Looked for before and after: whoever sleeps between them is the same that has said last
        // that he is next. Who has found no way to sleep is left alone.
        let said = format!(
            "SELECT n, how, id FROM conf2.victims WHERE n > {last} ORDER BY n DESC LIMIT 1"
        );
        let next = looks.ask(&said)?;
        let mut asleep = if next.is_empty() {
            Vec::new()
        } else {
            looks.ask(ASLEEP)?
        };
        asleep.retain(|one| !dying.contains(one));
        if !asleep.is_empty() && looks.ask(&said)? != next {
            continue;
        }
        match next.first().map(Vec::as_slice) {
            Some([n, how, id]) if !asleep.is_empty() => {
                let told = says.ask(&format!("KILL {how} {id}"));
                told.map_err(|error| {
                    io::Error::other(format!("KILL {how} {id}, number {n}: {error}"))
                })?;
                last = n.parse().map_err(io::Error::other)?;
                ended += 1;
                if how == "CONNECTION" {
                    dying.append(&mut asleep);
                }
            }
            _ => thread::sleep(PAUSE),
        }
    }
    Ok(ended)
}
