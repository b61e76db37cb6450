//! From options to a configuration: what stands under a configuration file, and what stands over it.

use crate::declared::Becomes;
use crate::said::Said;
use crate::{Wish, address, asked};
use admin::Laid;
use admin::file::{Place, Setting, Value};
use std::path::{Path, PathBuf};

/// Hostgroup of the servers that read and write.
const WRITERS: u32 = 0;
/// Hostgroup of those that only read.
const READERS: u32 = 1;
/// Port for clients.
const PORT: u16 = 4040;
/// Port for operators, if an address without one is named.
const ADMIN_PORT: u16 = 4041;
/// Connections to a server: each client has one.
const CONNECTIONS_MAX: u32 = 3_000;
/// Of these, so many in a hundred may be idle.
const FREE_PCT: u32 = 1;
/// Milliseconds that an option of seconds may come to.
const MS_MAX: f64 = 31_536_000_000.0;

/// A configuration for one process, which is in memory alone.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The settings.
    pub laid: Laid,
    /// A configuration file that was named.
    pub config: Option<PathBuf>,
    /// Where the log goes instead of standard error.
    pub log: Option<PathBuf>,
    /// A data directory that was named.
    pub datadir: Option<PathBuf>,
    /// Where the process id is written.
    pub pidfile: Option<PathBuf>,
    /// Runs in the background.
    pub is_behind: bool,
    /// Is begun again there after a crash.
    pub begins_again: bool,
    /// A driver that was named.
    pub driver: Option<String>,
    /// Lines for the log: what has no effect, or is not as one may expect.
    pub notices: Vec<String>,
    servers: Vec<(String, u16)>,
}

impl Given {
    /// Returns what these options mean; none if nothing was said.
    ///
    /// # Errors
    /// All options that make no sense, each with its name.
    pub fn of(wish: &Wish) -> Result<Option<Self>, Vec<String>> {
        let said = &wish.0;
        if !wish.is_there() {
            return Ok(None);
        }
        let mut against = Vec::new();
        let mut given = Self {
            config: said.path("config"),
            log: said.path("log-file"),
            pidfile: said.path("pid-file"),
            datadir: said.path("datadir"),
            driver: said.one("io-driver").map(str::to_owned),
            is_behind: said.has("daemon") && !said.has("foreground"),
            begins_again: said.has("keepalive"),
            ..Self::default()
        };
        given.servers(said, &mut against);
        given.variables(said, &mut against);
        given.scripts(said, &mut against);
        given.tell(said, &mut against);
        if against.is_empty() {
            Ok(Some(given))
        } else {
            Err(against)
        }
    }

    /// The scripts, with one `proxy.global`: that of the proxy's, if it has one.
    fn scripts(&mut self, said: &Said, against: &mut Vec<String>) {
        let name = |path: &Path| {
            let stem = path.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        };
        // Whoever names a script here lets it have files where he may have them, as in MySQL Proxy.
        let folders = || ("folders", format!("{}, /", said.folder().display()));
        let mut rows = Vec::new();
        let of_proxy = said.path("proxy-lua-script");
        if let Some(path) = &of_proxy {
            rows.push(vec![
                ("script_name", name(path)),
                ("path", path.display().to_string()),
                folders(),
            ]);
        }
        if let Some(path) = said.path("admin-lua-script") {
            for option in ["admin-username", "admin-password"] {
                if !said.has(option) {
                    against.push(format!("--admin-lua-script needs --{option}: whoever knows it may come in where the script answers"));
                }
            }
            let own = format!("{} (admin)", name(&path));
            let globals = of_proxy.as_deref().map_or_else(|| own.clone(), name);
            rows.push(vec![
                ("script_name", own),
                ("path", path.display().to_string()),
                ("serves", "console".to_owned()),
                ("globals", globals),
                folders(),
            ]);
        }
        if !rows.is_empty() {
            self.laid.over.settings.push(list("mysql_scripts", rows));
        }
    }

    fn servers(&mut self, said: &Said, against: &mut Vec<String>) {
        let readers = said.many("proxy-read-only-backend-addresses");
        let usual = ["127.0.0.1:3306".to_owned()];
        let writers = match said.many("proxy-backend-addresses") {
            [] => &usual,
            writers => writers,
        };
        let mut rows = Vec::new();
        let all = writers.iter().map(|text| (WRITERS, text));
        let all = all.chain(readers.iter().map(|text| (READERS, text)));
        let mut known = Vec::new();
        for (hostgroup, text) in all {
            let option = match hostgroup {
                WRITERS => "--proxy-backend-addresses",
                _ => "--proxy-read-only-backend-addresses",
            };
            let (host, port) = match address::of_server(text) {
                Ok(found) => found,
                Err(words) => {
                    against.push(format!("{option}: {words}"));
                    continue;
                }
            };
            let one = (hostgroup, host.clone(), port);
            if known.contains(&one) {
                against.push(format!("{option}: '{text}' is named twice"));
                continue;
            }
            rows.push(vec![
                ("hostgroup_id", hostgroup.to_string()),
                ("hostname", host.clone()),
                ("port", port.to_string()),
                ("max_connections", CONNECTIONS_MAX.to_string()),
            ]);
            self.servers.push((host, port));
            known.push(one);
        }
        self.laid.over.settings.push(list("mysql_servers", rows));
    }

    fn variables(&mut self, said: &Said, against: &mut Vec<String>) {
        let mut under = vec![
            // Nobody has given names to ask servers by.
            ("monitor_enabled", "false".to_owned()),
            ("relay_logins", "true".to_owned()),
            ("relay_logins_hostgroup", WRITERS.to_string()),
            ("relay_logins_beside_hostgroup", READERS.to_string()),
            // Each login opens a connection; few of those that are left are ever taken.
            ("free_connections_pct", FREE_PCT.to_string()),
        ];
        let mut over = Vec::new();
        let mut at = |option: &str, variable, usual| match said.one(option) {
            Some(text) => match address::to_listen(text, usual) {
                Ok(at) => Some((variable, at)),
                Err(words) => {
                    against.push(format!("--{option}: {words}"));
                    None
                }
            },
            None => None,
        };
        under.push(("interfaces", format!("0.0.0.0:{PORT}")));
        over.extend(at("proxy-address", "interfaces", PORT));
        let console = said.has("admin-lua-script");
        let operators = match (console, said.has("admin-address")) {
            (true, true) => {
                over.extend(at("admin-address", "script_console_ifaces", ADMIN_PORT));
                None
            }
            (true, false) => {
                over.push(("script_console_ifaces", format!("0.0.0.0:{ADMIN_PORT}")));
                None
            }
            (false, _) => at("admin-address", "mysql_ifaces", ADMIN_PORT),
        };
        let ms = [
            ("proxy-connect-timeout", "connect_timeout_server", 2.0),
            ("proxy-read-timeout", "wait_timeout", 28800.0),
        ];
        for (option, variable, usual) in ms {
            let text = said.one(option);
            let ms = text.map_or(Some(usual), |text| text.parse().ok());
            match ms.map(|seconds: f64| seconds * 1000.0) {
                Some(ms) if (1.0..=MS_MAX).contains(&ms) => match text {
                    Some(_) => over.push((variable, format!("{ms:.0}"))),
                    None => under.push((variable, format!("{ms:.0}"))),
                },
                _ => against.push(format!(
                    "--{option} is a number of seconds, from 0.001 to a year"
                )),
            }
        }
        if let Some(threads) = said.one("event-threads") {
            over.push(("threads", threads.to_owned()));
        }
        self.laid
            .under
            .settings
            .push(group("mysql_variables", under));
        self.laid.over.settings.push(group("mysql_variables", over));
        let mut admin: Vec<_> = operators.into_iter().collect();
        if said.has("admin-username") || said.has("admin-password") {
            let or_admin = |name| said.one(name).unwrap_or("admin");
            let (name, password) = (or_admin("admin-username"), or_admin("admin-password"));
            if [name, password]
                .iter()
                .any(|text| text.is_empty() || text.contains([':', ';']))
            {
                against.push("--admin-username and --admin-password: neither is empty, nor has it ':' or ';'".to_owned());
            }
            admin.push(("admin_credentials", format!("{name}:{password}")));
        }
        self.laid
            .over
            .settings
            .push(group("admin_variables", admin));
    }

    /// Tells what has no effect, and what is refused.
    fn tell(&mut self, said: &Said, against: &mut Vec<String>) {
        for option in said.options() {
            let name = option.name;
            match option.becomes {
                Becomes::Nothing(why) => self.notices.push(format!("--{name}: {why}")),
                Becomes::Refused(why) => against.push(format!("--{name} is refused: {why}")),
                Becomes::Everywhere | Becomes::Meant => {}
            }
        }
        let others = said.many("plugins").iter();
        for other in others.filter(|name| !["proxy", "admin"].contains(&name.trim())) {
            against.push(format!(
                "--plugins: there are 'proxy' and 'admin', and no '{other}'"
            ));
        }
        if self.begins_again && !self.is_behind {
            self.notices
                .push("--keepalive: it has no effect without --daemon".to_owned());
        }
        self.notices.push(
            "started by the options of MySQL Proxy: SAVE … TO DISK keeps nothing beyond this process"
                .to_owned(),
        );
    }

    /// The settings, with the version of the first server that says one, and lines for the log. Servers are
    /// asked in the order of the options; one that says nothing takes two seconds. Clients are told the version
    /// of the server that each comes to: this one is for what the proxy says itself.
    #[must_use]
    pub fn asked(&self) -> (Laid, Vec<String>) {
        let (mut laid, mut notices) = (self.laid.clone(), self.notices.clone());
        let mut versions = self
            .servers
            .iter()
            .map(|(host, port)| asked::version(host, *port));
        match versions.find_map(|version| version) {
            Some(version) => {
                let variable = vec![("server_version", version)];
                let setting = group("mysql_variables", variable);
                laid.under.settings.push(setting);
            }
            None => notices.push(
                "no server says its version: what the proxy says itself is said as mysql-server_version has it"
                    .to_owned(),
            ),
        }
        (laid, notices)
    }
}

fn at() -> Place {
    Place {
        file: Path::new("the options of MySQL Proxy")
            .display()
            .to_string()
            .into(),
        line: 1,
    }
}

fn group(name: &str, of: Vec<(&str, String)>) -> Setting {
    let setting = |(name, value): (&str, String)| Setting {
        name: name.to_owned(),
        at: at(),
        value: Value::Scalar(value),
    };
    Setting {
        name: name.to_owned(),
        at: at(),
        value: Value::Group(of.into_iter().map(setting).collect()),
    }
}

fn list(name: &str, rows: Vec<Vec<(&str, String)>>) -> Setting {
    let rows = rows.into_iter().map(|row| group("", row).value).collect();
    Setting {
        name: name.to_owned(),
        at: at(),
        value: Value::List(rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Own;
    use clap::{Args as _, Command, FromArgMatches as _};

    fn given(args: &[&str]) -> Result<Given, Vec<String>> {
        let command = Own::augment_args(Command::new("proxy").no_binary_name(true));
        let matches = command.try_get_matches_from(args).unwrap();
        let wish = Own::from_arg_matches(&matches).unwrap().with_file();
        Given::of(&wish.unwrap()).map(Option::unwrap)
    }

    /// Settings, one a line, without their places.
    fn drawn(settings: &[Setting]) -> String {
        fn one(value: &Value) -> String {
            match value {
                Value::Scalar(text) => text.clone(),
                Value::Truth(truth) => truth.to_string(),
                Value::Group(group) => group
                    .iter()
                    .map(|setting| format!(" {}={}", setting.name, one(&setting.value)))
                    .collect(),
                Value::List(rows) => rows.iter().map(|row| format!("\n {}", one(row))).collect(),
            }
        }
        settings
            .iter()
            .map(|setting| format!("{}:{}\n", setting.name, one(&setting.value)))
            .collect()
    }

    #[test]
    fn options_are_rows_over_a_file_and_variables_on_both_sides_of_it() {
        let args = "-b one:1,two -r /tmp/three.sock -s dir/x.lua -P :4042 --admin-address=:4041 \
                    --admin-username=op --proxy-connect-timeout=0.5 --event-threads=3 --basedir=/etc";
        let given = given(&args.split_whitespace().collect::<Vec<_>>()).unwrap();
        let over = "mysql_servers:\n  hostgroup_id=0 hostname=one port=1 max_connections=3000\n  \
                    hostgroup_id=0 hostname=two port=3306 max_connections=3000\n  \
                    hostgroup_id=1 hostname=/tmp/three.sock port=0 max_connections=3000\n\
                    mysql_variables: interfaces=0.0.0.0:4042 connect_timeout_server=500 threads=3\n\
                    admin_variables: mysql_ifaces=0.0.0.0:4041 admin_credentials=op:admin\n\
                    mysql_scripts:\n  script_name=x path=/etc/dir/x.lua folders=/etc, /\n";
        assert_eq!(drawn(&given.laid.over.settings), over);
        let under = "mysql_variables: monitor_enabled=false relay_logins=true relay_logins_hostgroup=0 \
             relay_logins_beside_hostgroup=1 free_connections_pct=1 interfaces=0.0.0.0:4040 wait_timeout=28800000\n";
        assert_eq!(drawn(&given.laid.under.settings), under);
        assert!(!given.is_behind);
    }

    #[test]
    fn a_script_for_operators_has_the_port_of_mysql_proxy() {
        let drawn = |args: &str| {
            let given = given(&args.split_whitespace().collect::<Vec<_>>())?;
            Ok::<_, Vec<String>>(drawn(&given.laid.over.settings))
        };
        let args = "--basedir=/b \
            -s /p/rw.lua --admin-lua-script=/p/admin.lua --admin-username=op --admin-password=x";
        let over = "mysql_servers:\n  hostgroup_id=0 hostname=127.0.0.1 port=3306 max_connections=3000\n\
                    mysql_variables: script_console_ifaces=0.0.0.0:4041\n\
                    admin_variables: admin_credentials=op:x\n\
                    mysql_scripts:\n  script_name=rw path=/p/rw.lua folders=/b, /\n  \
                    script_name=admin (admin) path=/p/admin.lua serves=console globals=rw folders=/b, /\n";
        assert_eq!(drawn(args).unwrap(), over);
        let at = format!("{args} --admin-address=127.0.0.1:5041");
        let there = over.replace("0.0.0.0:4041", "127.0.0.1:5041");
        assert_eq!(drawn(&at).unwrap(), there);
        let against = drawn("--admin-lua-script=/p/admin.lua --admin-username=op").unwrap_err();
        assert_eq!(
            against,
            [
                "--admin-lua-script needs --admin-password: whoever knows it may come in where the script answers"
            ]
        );
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let args = "-b a:x,b,b --proxy-read-timeout=long --plugins=proxy,debug --user=nobody \
                    --admin-password=a:b --proxy-address=:0";
        let against = given(&args.split_whitespace().collect::<Vec<_>>()).unwrap_err();
        assert_eq!(
            against,
            [
                "--proxy-backend-addresses: 'a:x': a port is a number from 1 to 65535",
                "--proxy-backend-addresses: 'b' is named twice",
                "--proxy-address: ':0': a port is a number from 1 to 65535",
                "--proxy-read-timeout is a number of seconds, from 0.001 to a year",
                "--admin-username and --admin-password: neither is empty, nor has it ':' or ';'",
                "--user is refused: Millrace does not change its user: start it as that one",
                "--plugins: there are 'proxy' and 'admin', and no 'debug'",
            ]
        );
    }

    #[test]
    fn what_has_no_effect_is_told_with_its_reason() {
        let given = given(&["--log-use-syslog", "--keepalive", "--daemon", "-f"]).unwrap();
        assert_eq!(
            given.notices[0],
            "--log-use-syslog: it has no effect here: the log goes to standard error or to a file"
        );
        assert_eq!(
            given.notices[1],
            "--keepalive: it has no effect without --daemon"
        );
        assert!(!given.is_behind);
    }

    #[test]
    fn nothing_said_is_no_configuration() {
        assert!(Given::of(&Wish::default()).unwrap().is_none());
    }
}
