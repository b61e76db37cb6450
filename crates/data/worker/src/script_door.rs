//! Scripts that see a client before it is greeted: they choose the server that greets it, and see
//! what that says. So it is where logins are relayed.
//!
//! docs/decisions/0049-a-script-chooses-a-server.md

use crate::answer::Complaint;
use crate::core::Core;
use crate::epoch::Epoch;
use crate::script_home::{self, Runs, Visitor};
use crate::script_servers::{At, Counted};
use crate::script_sql::Owner;
use crate::script_timers::{CAPS, nobody};
use backend::Greeted;
use bridge::Counter;
use config::{OnError, Script};
use net::Secret;
use script::{Chosen, Failed, Response, Server};
use std::rc::Rc;
use std::sync::Arc;
use wire::connect_attributes::ConnectAttributes;
use wire::resultset::UTF8MB4;

/// Addresses of a client, and the one that it came to: host or path, and port, 0 for none.
pub(crate) type Ends<'a> = (&'a (String, u16), &'a (String, u16));

/// Scripts that have met a client.
pub(crate) struct Early {
    core: Rc<Core>,
    id: u32,
    all: Vec<(Arc<Script>, Result<Runs, Failed>)>,
    server: Option<Server>,
    counted: Option<Counted>,
}

impl Drop for Early {
    /// Tells those that nobody has taken over that the client has gone.
    fn drop(&mut self) {
        for (script, made) in &self.all {
            if let Some(Err(failed)) = made.as_ref().ok().map(Runs::disconnect_client) {
                tell(&self.core, self.id, script, &failed);
            }
        }
    }
}

fn tell(core: &Core, id: u32, script: &Script, failed: &Failed) {
    core.tally.up(Counter::ScriptErrors);
    let name = &script.name;
    core.note_seldom(&format!("script '{name}', session {id}: {failed}"));
}

/// Words of a script to a client that has heard nothing yet.
fn said(core: &Core, (id, script): (u32, &Script), hook: &str, response: Response) -> Complaint {
    match response {
        Response::Err {
            code,
            state,
            message,
        } => {
            let (state, words) = (
                String::from_utf8_lossy(&state),
                String::from_utf8_lossy(&message),
            );
            Complaint::with(code, &state, words)
        }
        _ => {
            let words = "only an error can be said instead of a greeting";
            tell(core, id, script, &Failed(format!("({hook}) {words}")));
            failed(script)
        }
    }
}

fn failed(script: &Script) -> Complaint {
    let words = format!(
        "The script '{}' has failed. Check the proxy's log",
        script.name
    );
    Complaint::with(1105, "07000", words)
}

/// Has the scripts that stand at the door meet client `id`, and asks them for a server.
///
/// # Errors
/// Words of a script instead of a greeting.
pub(crate) async fn meet(
    core: &Rc<Core>,
    epoch: &Epoch,
    id: u32,
    (client, local): Ends<'_>,
) -> Result<Option<Box<Early>>, Complaint> {
    if epoch.scripts_at_the_door.is_empty() {
        return Ok(None);
    }
    let owner = Owner {
        user: nobody(),
        secret: Secret::Relayed,
        caps: CAPS,
        collation: UTF8MB4,
        attributes: ConnectAttributes::default(),
        stand_in: Vec::new(),
        local: (local.0.as_str().into(), local.1),
        is_at_console: false,
    };
    let mut early = Box::new(Early {
        core: core.clone(),
        id,
        all: Vec::new(),
        server: None,
        counted: None,
    });
    for script in &epoch.scripts_at_the_door {
        let visitor = Visitor {
            id,
            client: client.clone(),
            schema: String::new(),
            owner: owner.clone(),
        };
        let scripts = &epoch.snapshot.scripts;
        let made = script_home::meet(core, scripts, script, visitor, None).await;
        let asked = match &made {
            Ok(runs) => {
                core.tally.up(Counter::ScriptCalls);
                runs.connect_server().await
            }
            // Whoever goes on with it is told then.
            Err(_) => Ok((Chosen::Unsaid, None)),
        };
        early.all.push((script.clone(), made));
        match asked {
            Ok((_, Some(response))) => {
                return Err(said(core, (id, script), "connect_server", response));
            }
            Ok((Chosen::At(server), None)) => early.server = Some(server),
            Ok((Chosen::Unsaid | Chosen::Nowhere, None)) => {}
            Err(error) => {
                tell(core, id, script, &error);
                if script.on_error != OnError::Forward {
                    return Err(failed(script));
                }
            }
        }
    }
    Ok(Some(early))
}

impl Early {
    /// The server that they have chosen.
    pub(crate) fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// Shows them the greeting of a server.
    ///
    /// # Errors
    /// Words of a script instead of it.
    pub(crate) async fn greeted(&mut self, greeted: &Greeted) -> Result<(), Complaint> {
        let (row, greeting) = (greeted.server(), greeted.greeting());
        self.counted = Some(Counted::on(
            &self.core,
            At {
                hostgroup: row.hostgroup,
                host: row.hostname.clone(),
                port: row.port,
            },
        ));
        let server = match row.port {
            0 => row.hostname.to_string(),
            port => format!("{}:{port}", row.hostname),
        };
        let shown = script::Greeted {
            challenge: greeting.scramble.to_vec(),
            version: script::version(&greeting.server_version),
            thread: greeting.thread_id,
            server,
        };
        for (script, made) in &self.all {
            let Ok(runs) = made else { continue };
            match runs.read_handshake(&shown).await {
                Ok(None) => {}
                Ok(Some(response)) => {
                    let at = (self.id, &**script);
                    return Err(said(&self.core, at, "read_handshake", response));
                }
                Err(error) => {
                    tell(&self.core, self.id, script, &error);
                    if script.on_error != OnError::Forward {
                        return Err(failed(script));
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes over one of this name, which may be older than the one in force now.
    pub(crate) fn take(&mut self, script: &Script) -> Option<(Arc<Script>, Result<Runs, Failed>)> {
        let at = self.all.iter().position(|(of, _)| of.name == script.name)?;
        Some(self.all.remove(at))
    }

    /// The session counts as one on the server that has greeted it.
    pub(crate) fn counted(mut self) -> Option<Counted> {
        self.counted.take()
    }
}
