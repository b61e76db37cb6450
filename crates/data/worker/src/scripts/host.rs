//! The surroundings of a script: its session's facts and connections, servers, and lines in the log.

use crate::core::guests::{At, Facts, Room};
use crate::scripts::connections::Connections;
use crate::scripts::files::Files;
use crate::scripts::servers;
use bridge::Letter;
use config::{HttpHosts, Place, Setting};
use script::{Ask, Call, Connect, Host, Keep, Kept, Reading, Reply, Server};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// So long a script may sleep at once.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// Bytes of a line of a script in the log; what is behind them is left out.
const LINE_LEN_MAX: usize = 8192;

/// One script's view of its session, with the connections that it has of its own.
pub(crate) struct View {
    script: Arc<config::Script>,
    facts: Rc<Facts>,
    connections: Connections,
    files: Files,
}

impl View {
    /// One script's.
    pub(crate) fn new(facts: Rc<Facts>, script: Arc<config::Script>) -> Self {
        Self {
            connections: Connections::new(facts.core.clone(), script.result_len_max),
            files: Files::new(facts.core.clone(), script.result_len_max),
            script,
            facts,
        }
    }
}

impl Host for View {
    fn now_us(&self) -> u64 {
        self.facts.core.rt.precise_now().as_ns() / 1000
    }

    fn wall_us(&self) -> u64 {
        self.facts.core.rt.wall_us()
    }

    fn log(&self, line: &str) {
        let line = &line[..line.floor_char_boundary(LINE_LEN_MAX)];
        let (scripting, name) = (&self.facts.core.scripting, &self.script.name);
        match scripting.lines.take(self.facts.core.rt.now()) {
            Room::Some => self.facts.core.note(&format!("script '{name}': {line}")),
            Room::Again { left_out } => self.facts.core.note(&format!(
                "script '{name}': {line} ({left_out} lines of scripts before it were left out)"
            )),
            Room::None => {}
        }
    }

    fn place(&self, file: &str) -> Result<Place, String> {
        self.script.folders.place(file)
    }

    fn append(&self, file: &Place, text: &[u8]) {
        self.files.append(file, text);
    }

    fn empty(&self, file: &Place) {
        self.files.empty(file);
    }

    fn environment(&self, name: &str) -> Option<String> {
        let epoch = self.facts.core.epoch();
        let found = epoch.snapshot.scripts.given().variable(name);
        found.map(str::to_owned)
    }

    fn mail(&self, letter: Letter) -> Result<(), String> {
        let epoch = self.facts.core.epoch();
        let variables = &epoch.snapshot.variables;
        let hosts = HttpHosts::parse(&variables.mysql_script_mail_hosts)?;
        let host = letter.host.trim_matches(['[', ']']).to_ascii_lowercase();
        if !hosts.allow_mail(&host, letter.port) {
            return Err(format!(
                "{host}:{} is none of mysql-script_mail_hosts, the mail servers that scripts may use",
                letter.port
            ));
        }
        self.facts.core.mail(bridge::Mail {
            letter: Letter { host, ..letter },
            per_minute: u32::try_from(variables.mysql_script_mails_per_minute).unwrap_or(0),
        });
        Ok(())
    }

    fn ran(&self, call: Call<'_>) {
        self.files.send();
        let core = &self.facts.core;
        core.scripting
            .hooks
            .count(&self.script.name, call, || core.rt.wall_us() / 1_000_000);
    }

    fn ask<'a>(&'a self, ask: Ask) -> Pin<Box<dyn Future<Output = Reply> + 'a>> {
        let (facts, core) = (&*self.facts, &self.facts.core);
        self.files.send();
        Box::pin(async move {
            match ask {
                Ask::Sleep(us) => {
                    let most = Duration::from_micros(us).min(SLEEP_MAX);
                    let _time_or_told =
                        rt::select(core.rt.sleep(most), Box::pin(facts.told())).await;
                    Reply::Slept
                }
                Ask::Connect(wish) => {
                    let owner = facts.owner();
                    self.connections.connect(&owner, facts.id, &wish).await
                }
                Ask::File(place, ask) => self.files.ask((place, ask), facts.told()).await,
                Ask::Http(wish) => {
                    let calls = &core.scripting.calls;
                    calls.make(&self.script, wish, facts.told()).await
                }
                Ask::Query(sql, hostgroup) => {
                    let wish = Connect {
                        schema: facts.schema.borrow().to_string(),
                        hostgroup,
                        ..Connect::default()
                    };
                    let owner = facts.owner();
                    self.connections
                        .query(&owner, facts.id, (&wish, &sql), facts.told())
                        .await
                }
                Ask::Execute { connection, sql } => {
                    self.connections
                        .execute(connection, &sql, facts.told())
                        .await
                }
            }
        })
    }

    fn close(&self, connection: u32) {
        self.connections.close(connection);
    }

    fn stand_in(&self) -> Vec<u8> {
        self.facts.owner().stand_in.clone()
    }

    fn auth_plugin(&self) -> Option<String> {
        self.facts.auth_plugin.borrow().clone()
    }

    fn servers(&self) -> Vec<Server> {
        let own = self.facts.own_pools.borrow().clone();
        let (core, owner) = (&self.facts.core, self.facts.owner());
        servers::servers(core, &owner, &self.script.globals, own.as_deref())
    }

    fn current(&self) -> usize {
        let own = self.facts.own_pools.borrow().clone();
        let servers = self.servers();
        match own {
            None if self.facts.owner().secret.is_relayed() => 0,
            None => servers.len().min(1),
            Some(own) => {
                let at = |server: &Server| own.current == Some(At::from(server));
                servers.iter().position(at).map_or(0, |at| at + 1)
            }
        }
    }

    fn noted(&self, server: &Server, field: &str) -> Option<Kept> {
        servers::noted(&self.facts.core, &self.script.globals, server, field)
    }

    fn note(&self, server: &Server, field: &str, value: Option<Kept>) -> Result<(), String> {
        let globals = &self.script.globals;
        servers::note(&self.facts.core, globals, (server, field), value)
    }

    fn user(&self) -> String {
        let claimed = self.facts.claimed.borrow().clone();
        claimed.unwrap_or_else(|| self.facts.owner().user.username.to_string())
    }

    fn schema(&self) -> String {
        self.facts.schema.borrow().to_string()
    }

    fn thread(&self) -> u32 {
        self.facts.id
    }

    fn version(&self) -> u32 {
        let epoch = self.facts.core.epoch();
        script::version(&epoch.snapshot.variables.mysql_server_version)
    }

    fn result_len_max(&self) -> usize {
        self.script.result_len_max
    }

    fn reading(&self) -> Reading {
        let epoch = self.facts.core.epoch();
        Reading {
            digest: epoch.digest.clone(),
            lexing: self.facts.lexing.get(),
        }
    }

    fn caps(&self) -> wire::caps::Caps {
        self.facts.owner().caps
    }

    fn charset(&self) -> Option<&'static str> {
        script::charset(self.facts.owner().collation)
    }

    fn setting(&self, name: &str) -> Option<Kept> {
        let found = self.script.settings.iter().find(|(of, _)| **of == *name);
        found.map(|(_, setting)| match setting {
            Setting::Number(number) => Kept::Number(number.0),
            Setting::Text(text) => Kept::Text(text.as_bytes().to_vec()),
            Setting::Flag(flag) => Kept::Flag(*flag),
        })
    }

    fn shared(&self, key: &[u8], what: Keep, ttl_us: Option<u64>) -> Result<Option<Kept>, String> {
        let shared = &self.facts.core.scripting.shared;
        shared.keep((&self.script.globals, key), what, (self.now_us(), ttl_us))
    }

    fn ends(&self) -> [(String, u16); 2] {
        let owner = self.facts.owner();
        let local = &owner.local;
        [self.facts.client.clone(), (local.0.to_string(), local.1)]
    }
}
