//! Sessions of others beside a client's: a relay in front of a proxy brings two for each kind of
//! client that comes. They are of the same user and have the same flags, so that they share the few
//! connections to the server, and they leave on them all that a session can leave.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::by_hand::Raw;
use crate::clients::Login;
use crate::relay;
use crate::watch::HANGS;

/// The flags of a client that its connections to servers have, too.
const FOLLOWED: u32 = 1 << 1 | 1 << 4 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 17 | 1 << 18 | 1 << 22;
/// Of each kind: one for each of two cores.
const EACH: usize = 2;

/// Statements that strangers say, over and over. The table is theirs; whoever starts them has made
/// it.
const SAID: &[&str] = &[
    "SET NAMES latin1 COLLATE latin1_german1_ci",
    "SELECT 'no' + 1, @a, @b",
    "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
    "INSERT INTO conf2.strangers (words) VALUES ('stranger'), ('stranger')",
    "SET @a = 'stranger', @b = 4711, @x = 1, @y = 2",
    "SELECT @a, LAST_INSERT_ID()",
    "USE conf2",
    "SELECT SQL_CALC_FOUND_ROWS words FROM strangers LIMIT 1",
    "SELECT no_such_column FROM strangers",
    "SET time_zone = '+07:00', lock_wait_timeout = 99",
    "BEGIN",
    "INSERT INTO strangers (words) VALUES ('stranger')",
    "SAVEPOINT strange",
    "COMMIT",
    "PREPARE one FROM 'SELECT ? + 1'",
    "EXECUTE one USING @b",
    "DEALLOCATE PREPARE one",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET autocommit = 0",
    "DELETE FROM strangers",
    "ROLLBACK",
    "SET autocommit = 1",
    "SELECT GET_LOCK('stranger', 0)",
    "SELECT RELEASE_LOCK('stranger')",
    "CREATE TEMPORARY TABLE strange (n INT)",
    "DROP TEMPORARY TABLE strange",
    "DELETE FROM strangers",
    "SET NAMES utf8mb4, sql_mode = DEFAULT, time_zone = DEFAULT, @a = NULL",
    "USE conf",
];

/// Table that strangers need on the server.
pub const FIXTURE: &str = "CREATE TABLE IF NOT EXISTS conf2.strangers (id INT AUTO_INCREMENT PRIMARY KEY, words VARCHAR(20)) ENGINE=InnoDB";

/// The relay, and who is there.
pub struct Strangers {
    /// Where clients come in.
    pub port: u16,
    here: Arc<Here>,
}

struct Here {
    proxy: u16,
    login: Login<'static>,
    leave: AtomicBool,
    by_flags: Mutex<HashMap<u32, Vec<JoinHandle<u64>>>>,
}

impl Strangers {
    /// Starts a relay to a proxy. Strangers log in as `login`.
    pub fn start(login: Login<'static>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let here = Arc::new(Here {
            proxy: login.port,
            login,
            leave: AtomicBool::new(false),
            by_flags: Mutex::default(),
        });
        let all = here.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let here = all.clone();
                thread::spawn(move || here.carry(client));
            }
        });
        Ok(Self { port, here })
    }

    /// All of them leave. How many statements they have said.
    ///
    /// # Errors
    /// One of them has panicked.
    pub fn leave(&self) -> Result<u64, String> {
        self.here.leave.store(true, Ordering::Release);
        let all: Vec<_> = self
            .here
            .by_flags
            .lock()
            .map_err(|_| "a thread panicked")?
            .drain()
            .flat_map(|(_, each)| each)
            .collect();
        let said = all
            .into_iter()
            .map(|one| one.join().map_err(|_| "a stranger panicked".to_owned()))
            .sum();
        self.here.leave.store(false, Ordering::Release);
        said
    }
}

impl Here {
    /// Brings those who are like this client before its login goes on.
    fn carry(self: &Arc<Self>, mut client: TcpStream) {
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", self.proxy)) else {
            return;
        };
        let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else {
            return;
        };
        let back = thread::spawn(move || {
            relay::pour(server_too, client_too, &relay::LastWords::default())
        });
        // A login, or the request of TLS before it: a header of four bytes, then the flags.
        let mut first = vec![0; 8];
        if client.read_exact(&mut first).is_ok() {
            self.bring(u32::from_le_bytes([first[4], first[5], first[6], first[7]]) & FOLLOWED);
            if server.write_all(&first).is_ok() {
                relay::pour(client, server, &relay::LastWords::default());
            }
        }
        let _ = back.join();
    }

    fn bring(self: &Arc<Self>, flags: u32) {
        let Ok(mut by_flags) = self.by_flags.lock() else {
            return;
        };
        by_flags.entry(flags).or_insert_with(|| {
            let (began, begins) = mpsc::channel();
            let each = (0..EACH).map(|_| {
                let (here, began) = (self.clone(), began.clone());
                thread::spawn(move || here.live(flags, &began))
            });
            let each = each.collect();
            drop(began);
            // Those who cannot come say nothing, and are missed in the end.
            for _ in 0..EACH {
                let _nobody = begins.recv_timeout(HANGS);
            }
            each
        });
    }

    /// One of them, until it has to leave: what it has said.
    fn live(&self, flags: u32, began: &mpsc::Sender<()>) -> u64 {
        let Ok(mut raw) = Raw::log_in_as(&self.login, flags, FOLLOWED) else {
            return 0;
        };
        let mut said = 0;
        loop {
            for sql in SAID {
                // Errors are part of it; a connection that is over is not, and ends it.
                if raw
                    .ask(sql)
                    .is_err_and(|error| error.kind() != io::ErrorKind::Other)
                {
                    return said;
                }
                said += 1;
                if self.leave.load(Ordering::Acquire) {
                    return said;
                }
                thread::sleep(Duration::from_micros(300));
            }
            // All of it lies about when the client comes.
            let _nobody = began.send(());
        }
    }
}
