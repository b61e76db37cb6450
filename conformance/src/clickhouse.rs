//! A ClickHouse of the test's own, and a proxy with a port to it.

use crate::process::{Process, TempFolder, free_port, output};
use crate::proxy::{Driver, Proxy, Wish, command_line};
use crate::servers::{in_path, tail, tls_files};
use crate::trials::soon;
use crate::watch::HANGS;
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

/// A running ClickHouse. Dropping it kills it and removes its data.
pub struct ClickHouse {
    /// Its port of HTTP.
    pub http: u16,
    /// Its port of HTTPS, if it has one.
    pub https: u16,
    tcp: u16,
    process: Process,
    folder: TempFolder,
    client: PathBuf,
}

impl ClickHouse {
    /// Starts one; the error says why there is none.
    pub fn start() -> Result<Self, String> {
        Self::begin(|_, _| Ok(String::new()))
    }

    /// Starts one that has a port of HTTPS as well, at 127.0.0.1 and 127.0.0.2. Its certificate is for
    /// the first of them, and [`ClickHouse::authority`] has signed it.
    pub fn with_tls() -> Result<Self, String> {
        Self::begin(|folder, https| {
            let at = folder.path().display();
            tls_files(folder.path())?;
            Ok(format!(
                "<https_port>{https}</https_port><listen_host>127.0.0.2</listen_host><openSSL><server>\
                 <certificateFile>{at}/server-cert.pem</certificateFile><privateKeyFile>{at}/server-key.pem</privateKeyFile>\
                 <verificationMode>none</verificationMode></server></openSSL>"
            ))
        })
    }

    /// The file of the authority that has signed its certificate.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Starts one with more of a configuration, which may have one more port.
    fn begin(more: impl Fn(&TempFolder, u16) -> Result<String, String>) -> Result<Self, String> {
        let missing = || "there is no clickhouse-server: scripts/setup.sh test".to_owned();
        let server = in_path("clickhouse-server").ok_or_else(missing)?;
        let client = in_path("clickhouse-client").ok_or_else(missing)?;
        let io = |error: std::io::Error| error.to_string();
        let folder = TempFolder::new("clickhouse").map_err(io)?;
        let mut last = String::new();
        for _ in 0..3 {
            // Somebody may take a port between the look and the start.
            let ports = [
                free_port().map_err(io)?,
                free_port().map_err(io)?,
                free_port().map_err(io)?,
            ];
            let ([http, tcp, _], https) = (ports, free_port().map_err(io)?);
            let config = config(&folder, ports, &more(&folder, https)?);
            fs::write(folder.path().join("config.xml"), config).map_err(io)?;
            fs::write(folder.path().join("users.xml"), USERS).map_err(io)?;
            let file = format!("--config-file={}/config.xml", folder.path().display());
            let process =
                Process::start(&server, &[file], &folder.path().join("log")).map_err(io)?;
            let mut one = Self {
                http,
                https,
                tcp,
                process,
                folder: TempFolder::new("clickhouse").map_err(io)?,
                client: client.clone(),
            };
            match one.serves() {
                Ok(()) => {
                    one.folder = folder;
                    return Ok(one);
                }
                Err(why) => last = format!("{why}\n{}", tail(&folder.path().join("log"))),
            }
        }
        Err(last)
    }

    fn serves(&mut self) -> Result<(), String> {
        soon("true", || match self.process.ended() {
            Some(status) => Err(format!("it ended: {status}")),
            None => Ok(TcpStream::connect(("127.0.0.1", self.http))
                .is_ok()
                .to_string()),
        })
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on its ports, with what it had.
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill();
        let server = in_path("clickhouse-server").ok_or("there is no clickhouse-server")?;
        let file = format!("--config-file={}/config.xml", self.folder.path().display());
        let log = self.folder.path().join("log");
        let process = Process::start(&server, &[file], &log).map_err(|error| error.to_string())?;
        self.process = process;
        self.serves()
    }

    /// Output of ClickHouse's own client.
    pub fn ask(&self, sql: &str) -> Result<String, String> {
        let mut command = Command::new(&self.client);
        command.args([
            "--host",
            "127.0.0.1",
            "--port",
            &self.tcp.to_string(),
            "--query",
            sql,
        ]);
        let (fine, words) = output(&mut command, HANGS)?;
        if fine { Ok(words) } else { Err(words) }
    }

    /// How many queries of the proxy run just now.
    pub fn running(&self) -> Result<String, String> {
        let sql = "SELECT count() FROM system.processes WHERE query_id LIKE 'millrace-%'";
        self.ask(sql).map(|said| said.trim().to_owned())
    }
}

/// The engine of a current ClickHouse, which comes as a library, behind as much of HTTP as a proxy asks
/// for. Dropping it kills it.
pub struct Engine {
    _process: Process,
}

impl Engine {
    /// A proxy in front of a port where an engine may be started, with the user, and that port.
    pub fn front(driver: Driver) -> Result<(u16, Front), String> {
        let port = free_port().map_err(|error| error.to_string())?;
        let front = Front::to(driver, port, "")?;
        front.let_in()?;
        Ok((port, front))
    }

    /// Starts one there; none where the library cannot be had, which is said.
    pub fn start(port: u16, front: &Front) -> Result<Option<Self>, String> {
        let script = crate::cache::root().join("scripts/clients.sh");
        let (fine, folder) = output(Command::new(script).arg("chdb"), HANGS)?;
        if !fine {
            eprintln!("SKIPPED: chdb: {folder}");
            return Ok(None);
        }
        let python = format!("{}/venv/bin/python", folder.trim());
        let serve = crate::cache::root().join("conformance/clients/chdb/serve.py");
        let arguments = [serve.display().to_string(), port.to_string()];
        let log = front.proxy.data().join("engine.log");
        let process = Process::start(python.as_ref(), &arguments, &log);
        let process = process.map_err(|error| error.to_string())?;
        // Nobody serves there before: an error for each statement, and then an answer.
        soon("7", || {
            let said = front.ask("SELECT 7");
            Ok(said.map_or_else(|_| String::new(), |said| said.trim().to_owned()))
        })?;
        Ok(Some(Self { _process: process }))
    }
}

/// A proxy in front of it, with the user clicku, whose password is clickp.
pub struct Front {
    /// The proxy.
    pub proxy: Proxy,
    /// Its port to ClickHouse.
    pub port: u16,
}

impl Front {
    /// Starts one, with more variables of MySQL's family.
    pub fn start(driver: Driver, house: &ClickHouse, variables: &str) -> Result<Self, String> {
        Self::to(driver, house.http, variables)
    }

    /// As [`Front::start`], to whoever serves this port of HTTP.
    pub fn to(driver: Driver, http: u16, variables: &str) -> Result<Self, String> {
        let port = free_port().map_err(|error| error.to_string())?;
        let wish = Wish {
            variables: format!(
                "{variables}\n}}\nclickhouse_variables =\n{{\n    mysql_ifaces = \"127.0.0.1:{port}\"\n    http_port = {}\n",
                http
            ),
            flags: vec!["--clickhouse-server".to_owned()],
            ..Wish::default()
        };
        let proxy = Proxy::start(driver, &wish)?;
        Ok(Self { proxy, port })
    }

    /// As [`Front::start`], with the user.
    pub fn with_user(driver: Driver, house: &ClickHouse) -> Result<Self, String> {
        let front = Self::start(driver, house, "")?;
        front.let_in()?;
        Ok(front)
    }

    /// Makes the user.
    pub fn let_in(&self) -> Result<(), String> {
        let made = self.proxy.admin(
            "INSERT INTO clickhouse_users (username,password) VALUES ('clicku','clickp'); \
             LOAD CLICKHOUSE USERS TO RUNTIME",
        );
        made.map(drop)
    }

    /// Output of MySQL's command line client at the port to ClickHouse.
    pub fn ask(&self, sql: &str) -> Result<String, String> {
        command_line(self.port, "clicku", "clickp", &[], sql)
    }
}

fn config(folder: &TempFolder, [http, tcp, between]: [u16; 3], more: &str) -> String {
    let at = folder.path().display();
    format!(
        "<yandex><logger><level>warning</level><console>1</console></logger>\
         <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{between}</interserver_http_port>\
         <listen_host>127.0.0.1</listen_host><path>{at}/data/</path><tmp_path>{at}/tmp/</tmp_path>\
         <user_files_path>{at}/files/</user_files_path><format_schema_path>{at}/schemas/</format_schema_path>\
         <mark_cache_size>67108864</mark_cache_size><uncompressed_cache_size>67108864</uncompressed_cache_size>\
         <users_config>users.xml</users_config><default_profile>default</default_profile>\
         <default_database>default</default_database><timezone>UTC</timezone>{more}</yandex>\n"
    )
}

/// The user `few` may ask two questions an hour.
const USERS: &str = "<yandex><profiles><default/></profiles><quotas><default/><few><interval><duration>3600</duration>\
     <queries>2</queries></interval></few></quotas><users><default>\
     <password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>\
     </default><few><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>\
     <quota>few</quota></few></users></yandex>\n";
