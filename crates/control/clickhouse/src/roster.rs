//! Who is inside, over all threads: for KILL, and for what a user may have at once.

use door::Refused;
use rt::mailbox::{self, Receiver, Sender};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::errors;

/// Order to a client to end something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Statement that runs just now.
    Query,
    /// Its session.
    Session,
}

/// All clients by their number.
#[derive(Default)]
pub(crate) struct Roster {
    inside: Mutex<Inside>,
}

impl std::fmt::Debug for Roster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Roster")
    }
}

#[derive(Default)]
struct Inside {
    clients: HashMap<u32, (String, Sender<Stop>)>,
    /// Statements that run, by user.
    running: HashMap<String, u64>,
}

/// A client's place; it is given back when it is dropped.
pub(crate) struct Seat {
    roster: Arc<Roster>,
    id: u32,
    user: String,
    /// Orders that the client gets.
    pub(crate) told: Receiver<Stop>,
}

/// A statement's; as a [`Seat`].
pub(crate) struct Turn {
    roster: Arc<Roster>,
    user: String,
}

impl Roster {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more client of a user, who may have so many.
    pub(crate) fn enter(self: &Arc<Self>, id: u32, user: &str, max: u64) -> Result<Seat, Refused> {
        let mut inside = self.inside();
        // A client that changes its user has its number already.
        let others = inside
            .clients
            .iter()
            .filter(|(other, (name, _))| **other != id && name == user);
        if others.count() as u64 >= max {
            let words = format!("User '{user}' has exceeded the 'max_user_connections' resource");
            return Err(Refused::new(errors::TOO_MANY_USER_CONNECTIONS, words));
        }
        let (tell, told) = mailbox::channel(4);
        inside.clients.insert(id, (user.to_owned(), tell));
        Ok(Seat {
            roster: self.clone(),
            id,
            user: user.to_owned(),
            told,
        })
    }

    /// A turn for one more statement of a user, who may have so many at once; 0: any number.
    pub(crate) fn turn(self: &Arc<Self>, user: &str, max: u64) -> Result<Turn, Refused> {
        let mut inside = self.inside();
        let running = inside.running.entry(user.to_owned()).or_default();
        if max > 0 && *running >= max {
            let words = format!("User '{user}' has {max} statements running, and may have no more");
            return Err(Refused::new(errors::USER_LIMIT_REACHED, words));
        }
        *running += 1;
        Ok(Turn {
            roster: self.clone(),
            user: user.to_owned(),
        })
    }

    /// KILL of a client, by another of the same user.
    pub(crate) fn kill(&self, by: &str, id: u32, stop: Stop) -> Result<(), Refused> {
        let inside = self.inside();
        match inside.clients.get(&id) {
            None => Err(Refused::new(
                errors::NO_SUCH_THREAD,
                format!("Unknown thread id: {id}"),
            )),
            Some((user, _)) if user != by => {
                let words = format!("You are not owner of thread {id}");
                Err(Refused::new(errors::KILL_DENIED, words))
            }
            Some((_, tell)) => {
                // It has been told already if there is no room.
                drop(tell.try_send(stop));
                Ok(())
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inside = self.roster.inside();
        if inside
            .clients
            .get(&self.id)
            .is_some_and(|(user, _)| *user == self.user)
        {
            inside.clients.remove(&self.id);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut inside = self.roster.inside();
        if let Some(running) = inside.running.get_mut(&self.user) {
            *running -= 1;
            if *running == 0 {
                inside.running.remove(&self.user);
            }
        }
    }
}
