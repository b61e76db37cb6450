//! Scripts that see a client before it is greeted: they choose the server that greets it, and see
//! what that says. So it is where logins are relayed.
//!
//! docs/decisions/0049-a-script-chooses-a-server.md

use crate::core::Core;
use crate::core::guests::{At, Claim, Owner, Visitor};
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::scripts::home;
use crate::scripts::home::Runs;
use crate::scripts::rows::failed_script;
use crate::scripts::servers::Counted;
use crate::scripts::timers::{CAPS, nobody};
use backend::Greeted;
use bridge::Counter;
use config::{OnError, Script};
use net::Secret;
use script::{AtLogin, Chosen, Failed, Response, Server};
use std::rc::Rc;
use std::sync::Arc;
use wire::auth::Plugin;
use wire::connect_attributes::ConnectAttributes;
use wire::handshake::Login;
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
    /// The login was shown to those that judge it.
    has_judged: bool,
}

/// A script that has met a client before its session was: itself, its session, and whether it has
/// judged the login.
pub(crate) struct Met {
    pub(crate) script: Arc<Script>,
    pub(crate) made: Result<Runs, Failed>,
    pub(crate) has_judged: bool,
}

fn judges(script: &Script) -> bool {
    script::judges_logins(&script.text, &script.modules)
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
            let words = "only an error can be said here: nobody has checked who it is. A script with serves = 'console' answers without a server";
            tell(core, id, script, &Failed(format!("({hook}) {words}")));
            failed_script(script)
        }
    }
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
        has_judged: false,
    });
    for script in &epoch.scripts_at_the_door {
        let visitor = Visitor {
            id,
            client: client.clone(),
            schema: String::new(),
            owner: owner.clone(),
        };
        let scripts = &epoch.snapshot.scripts;
        let made = home::meet(core, scripts, script, visitor, None).await;
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
                    return Err(failed_script(script));
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
            auth_plugin: greeting.auth_plugin.clone(),
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
                        return Err(failed_script(script));
                    }
                }
            }
        }
        Ok(())
    }

    /// Shows them a login that nobody has checked. What goes to the server instead, if one says so.
    ///
    /// # Errors
    /// Words of a script instead of an answer.
    pub(crate) async fn said(&mut self, login: &Login) -> Result<Option<Login>, Complaint> {
        self.has_judged = true;
        let claim = self.claim(login);
        let mut other = None;
        for (script, made) in &self.all {
            let Some(runs) = made.as_ref().ok().filter(|_| judges(script)) else {
                continue;
            };
            self.core.tally.up(Counter::ScriptCalls);
            let at = (self.id, &**script);
            match runs.read_auth(&claim).await {
                Ok(AtLogin::PassOn) => {}
                Ok(AtLogin::Instead(response)) => {
                    return Err(said(&self.core, at, "read_auth", response));
                }
                Ok(AtLogin::Login(packet)) => match Login::read(&packet) {
                    Ok(read) => other = Some(read),
                    Err(malformed) => {
                        let words = format!("(read_auth) what it queues is no login: {malformed}");
                        self.fails(script, &Failed(words))?;
                    }
                },
                Err(error) => self.fails(script, &error)?,
            }
        }
        Ok(other.map(|own: Login| Login {
            user: own.user,
            auth_response: own.auth_response,
            auth_plugin: own.auth_plugin.filter(|plugin| !plugin.is_empty()),
            database: own.database.filter(|schema| !schema.is_empty()),
            ..login.clone()
        }))
    }

    fn claim(&self, login: &Login) -> Claim {
        let native = Plugin::MysqlNative.name();
        let plugin = login.auth_plugin.as_deref().unwrap_or(native);
        let stand_in = match login.auth_response.len() {
            0 => Vec::new(),
            // A proof for one challenge. Others may be the password itself.
            20 if plugin == native => login.auth_response.clone(),
            _ => self.core.rt.random().to_le_bytes().to_vec(),
        };
        Claim {
            user: login.user.clone(),
            schema: login.database.clone().unwrap_or_default(),
            stand_in,
            auth_plugin: plugin.to_owned(),
        }
    }

    /// Shows them a server's answer to the login.
    ///
    /// # Errors
    /// Words of a script instead of it.
    pub(crate) async fn judged(&self, packet: &[u8]) -> Result<(), Complaint> {
        let is_error = packet.first() == Some(&wire::ok::ERR_HEADER);
        for (script, made) in &self.all {
            let Some(runs) = made.as_ref().ok().filter(|_| judges(script)) else {
                continue;
            };
            self.core.tally.up(Counter::ScriptCalls);
            match runs.read_auth_result(packet).await {
                Ok(None) => {}
                // What is well by its word is well by the server's, too.
                Ok(Some(Response::Ok { .. })) if !is_error => {}
                Ok(Some(response)) => {
                    let at = (self.id, &**script);
                    return Err(said(&self.core, at, "read_auth_result", response));
                }
                Err(error) => self.fails(script, &error)?,
            }
        }
        Ok(())
    }

    fn fails(&self, script: &Script, error: &Failed) -> Result<(), Complaint> {
        tell(&self.core, self.id, script, error);
        match script.on_error {
            OnError::Forward => Ok(()),
            _ => Err(failed_script(script)),
        }
    }

    /// Takes over one of this name, which may be older than the one in force now.
    pub(crate) fn take(&mut self, script: &Script) -> Option<Met> {
        let at = self.all.iter().position(|(of, _)| of.name == script.name)?;
        let (script, made) = self.all.remove(at);
        Some(Met {
            has_judged: self.has_judged && judges(&script),
            script,
            made,
        })
    }

    /// The session counts as one on the server that has greeted it.
    pub(crate) fn counted(mut self) -> Option<Counted> {
        self.counted.take()
    }
}
