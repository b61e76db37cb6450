//! `mysql_scripts`: Lua that stands between clients and servers, and whom it serves.

use crate::Refusal;
use crate::refusal::Refusals;
use crate::{Rules, Users};
use lua::required::{self, Module};
use shards::{BucketScript, Runner};

use crate::folders::Folders;
use crate::http_hosts::HttpHosts;
pub use shards::Runner as BucketRunner;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

/// `mysql_scripts`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "columns are described once, in the table of the admin interface"
)]
pub struct ScriptRow {
    pub script_name: String,
    pub active: i64,
    pub position: i64,
    pub usernames: String,
    pub path: String,
    pub body: String,
    pub api: String,
    pub on_error: String,
    pub hook_ms_max: i64,
    pub result_mb_max: i64,
    pub settings: String,
    pub serves: String,
    pub globals: String,
    pub http_hosts: String,
    pub folders: String,
    pub comment: String,
}

impl Default for ScriptRow {
    fn default() -> Self {
        Self {
            script_name: String::new(),
            active: 1,
            position: 0,
            usernames: String::new(),
            path: String::new(),
            body: String::new(),
            api: "auto".into(),
            on_error: "forward".into(),
            hook_ms_max: 1000,
            result_mb_max: 64,
            settings: String::new(),
            serves: "clients".into(),
            globals: String::new(),
            http_hosts: String::new(),
            folders: String::new(),
            comment: String::new(),
        }
    }
}

/// Whom a script serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Serves {
    /// Clients: it stands between them and their servers.
    #[default]
    Clients,
    /// Operators who come to the console: it answers them itself.
    Console,
    /// The map: it says buckets of sharded tables.
    Buckets,
}

/// Behaviour after an error in a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The client's statement goes on as if there were no script, as in MySQL Proxy.
    #[default]
    Forward,
    /// The client is told an error.
    Error,
    /// Its session ends.
    Disconnect,
}

/// Level of MySQL Proxy's interface that a script was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScriptApi {
    /// Decided by its text.
    #[default]
    Auto,
    /// MySQL Proxy 0.6 and the trunk of 2008.
    V06,
    /// MySQL Proxy 0.7 and 0.8.
    V08,
}

/// A script that is in force.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// Unique among all.
    pub name: Box<str>,
    /// Users whom it serves; empty for all.
    pub users: Vec<Box<str>>,
    /// Path of its file, or its name in brackets, for messages.
    pub chunk: Box<str>,
    /// Lua.
    pub text: Arc<str>,
    /// Files beside it that it may require.
    pub modules: Vec<Module>,
    /// Its sessions share what they keep in `proxy.global`, whichever core they are on.
    pub shares_globals: bool,
    /// Name of its `proxy.global`: scripts of one name have one.
    pub globals: Box<str>,
    /// Whom it serves.
    pub serves: Serves,
    /// Level of the interface.
    pub api: ScriptApi,
    /// After an error.
    pub on_error: OnError,
    /// Milliseconds that a hook may run, from 1 to 60,000.
    pub hook_ms_max: u32,
    /// Bytes of a result that is collected for it.
    pub result_len_max: usize,
    /// Settings of the script by the operator, by name.
    pub settings: Vec<(Box<str>, Setting)>,
    /// Hosts that it may call by HTTP.
    pub http_hosts: HttpHosts,
    /// Folders beneath which it may have files, beside its own.
    pub folders: Folders,
}

/// A value that an operator has set for a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A number.
    Number(Number),
    /// A text.
    Text(Box<str>),
    /// True or false.
    Flag(bool),
}

/// A number of JSON, which is finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(pub f64);

impl Eq for Number {}

impl Script {
    /// Whether sessions of this user have it in their way.
    #[must_use]
    pub fn serves(&self, user: &str) -> bool {
        let is_one = || self.users.is_empty() || self.users.iter().any(|one| **one == *user);
        self.serves == Serves::Clients && is_one()
    }

    /// Whether it is in the way of every client, whoever that will be.
    #[must_use]
    pub fn serves_all(&self) -> bool {
        self.serves == Serves::Clients && self.users.is_empty()
    }
}

/// All scripts, in the order in which a statement meets them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scripts {
    rows: Vec<ScriptRow>,
    active: Vec<Arc<Script>>,
    given: Given,
}

/// Values that scripts are given by whoever starts the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Environment of the process when it was started.
    pub environment: Arc<BTreeMap<String, String>>,
    /// Whoever runs scripts that say buckets.
    pub runner: Runner,
}

/// Variable of the environment that names the configuration of Log4LUA.
const LOG4LUA_CONFIG_FILE: &str = "LOG4LUA_CONFIG_FILE";
/// Parts of names of the environment whose values no script sees.
const SECRET: [&str; 6] = ["PASS", "PWD", "SECRET", "TOKEN", "KEY", "CREDENTIAL"];

impl Given {
    /// From the environment, as far as it is text, and whoever runs scripts that say buckets.
    #[must_use]
    pub fn new(environment: impl Iterator<Item = (OsString, OsString)>, runner: Runner) -> Self {
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            environment: Arc::new(environment.filter_map(text).collect()),
            runner,
        }
    }

    /// A variable of the environment as scripts see it. Those whose names are those of secrets are
    /// not there.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        let capitals = name.to_ascii_uppercase();
        let is_secret = capitals != "PWD" && SECRET.iter().any(|part| capitals.contains(part));
        let found = self.environment.get(name).map(String::as_str);
        found.filter(|_| !is_secret)
    }
}

/// Names of users that are told at once.
const NAMES_MAX: usize = 5;
/// Scripts at most.
const MAX: usize = 1000;
/// Bytes of a script's text at most.
const TEXT_LEN_MAX: usize = 4 << 20;
/// Files that a script may require at most.
const MODULES_MAX: usize = 500;
/// Modules that configure, by what is in front of their names.
pub const FILE: &str = "file:";
/// Name of the module that Log4LUA is configured by.
pub const LOG4LUA_CONFIG: &str = "file:LOG4LUA_CONFIG_FILE";

impl Scripts {
    /// From the rows of `mysql_scripts`. `read` reads a file, or says why it cannot.
    ///
    /// # Errors
    /// Every row that cannot be honoured.
    pub fn build(
        rows: impl IntoIterator<Item = ScriptRow>,
        given: Given,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, Vec<Refusal>> {
        let mut refusals = Refusals::of("mysql_scripts");
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_by(|a, b| (a.position, &a.script_name).cmp(&(b.position, &b.script_name)));
        let mut active = Vec::new();
        for row in &rows {
            let which = || format!("script_name '{}'", row.script_name);
            let hook_ms_max = refusals.number(which, "hook_ms_max", row.hook_ms_max, (1, 60_000));
            let mb: u32 = refusals.number(which, "result_mb_max", row.result_mb_max, (1, 1024));
            let is_active = refusals.flag(which, "active", row.active);
            let Some((api, on_error, serves)) = choices_of(row, &mut refusals) else {
                continue;
            };
            let (settings, http_hosts, folders) = match given_to(row) {
                Ok(given) => given,
                Err((column, words)) => {
                    refusals.add(which, column, words);
                    continue;
                }
            };
            if row.script_name.is_empty() {
                refusals.add(which, "script_name", "must not be empty");
            }
            if row.path.is_empty() == row.body.is_empty() {
                refusals.add(
                    which,
                    "path",
                    "or body must have the script, and only one of them",
                );
                continue;
            }
            if !is_active {
                continue;
            }
            let text = match text_of(row, &read) {
                Ok(text) => text,
                Err(words) => {
                    refusals.add(which, "path", words);
                    continue;
                }
            };
            let chunk = match row.path.is_empty() {
                true => format!("[{}]", row.script_name).into(),
                false => row.path.as_str().into(),
            };
            let beside = Beside {
                folder: folder_of(&row.path),
                given: &given,
                read: &read,
            };
            let modules = match beside.of(&text) {
                Ok(modules) => modules,
                Err(words) => {
                    refusals.add(which, "path", words);
                    continue;
                }
            };
            let users = row.usernames.split(',').map(str::trim);
            let globals = match row.globals.is_empty() {
                true => &row.script_name,
                false => &row.globals,
            };
            active.push(Script {
                name: row.script_name.as_str().into(),
                globals: globals.as_str().into(),
                serves,
                users: users
                    .filter(|user| !user.is_empty())
                    .map(Into::into)
                    .collect(),
                chunk,
                shares_globals: required::shares_globals(&text)
                    || modules
                        .iter()
                        .any(|module| required::shares_globals(&module.text)),
                text: text.into(),
                modules,
                api,
                on_error,
                hook_ms_max,
                result_len_max: mb as usize * (1 << 20),
                settings,
                http_hosts,
                folders,
            });
        }
        share(&mut active);
        if rows.len() > MAX {
            let words = format!("has {} rows; {MAX} are the most", rows.len());
            refusals.add(String::new, "", words);
        }
        refusals.or(Self {
            rows,
            active: active.into_iter().map(Arc::new).collect(),
            given,
        })
    }

    /// None yet, with what all will be given.
    #[must_use]
    pub fn none_with(given: Given) -> Self {
        Self {
            given,
            ..Self::default()
        }
    }

    /// Returns what scripts are given by whoever started the process.
    #[must_use]
    pub fn given(&self) -> &Given {
        &self.given
    }

    /// Notices about rules that name a script which is not in force.
    #[must_use]
    pub fn missed_by(&self, rules: &Rules) -> Vec<Refusal> {
        let mut notices = Refusals::of("mysql_query_rules");
        for rule in rules.chain() {
            let Some(name) = &rule.script else { continue };
            if !self.active.iter().any(|script| *script.name == **name) {
                let which = || format!("rule_id {}", rule.rule_id);
                let words = format!("names the script '{name}', and no such script is in force");
                notices.add(which, "attributes", words);
            }
        }
        notices.or(()).err().unwrap_or_default()
    }

    /// Notices about users whom a script would serve and who meet none.
    #[must_use]
    pub fn bypassed_by(&self, users: &Users) -> Vec<Refusal> {
        let mut notices = Refusals::of("mysql_scripts");
        for script in &self.active {
            let served = users
                .iter()
                .filter(|user| user.fast_forward && script.serves(&user.username));
            let names: BTreeSet<_> = served.map(|user| &*user.username).collect();
            if names.is_empty() {
                continue;
            }
            let some: Vec<_> = names.iter().take(NAMES_MAX).copied().collect();
            let rest = match names.len() - some.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let words = format!(
                "leave out {}{rest}: users with fast_forward meet no scripts",
                some.join(", ")
            );
            let which = || format!("script_name '{}'", script.name);
            notices.add(which, "usernames", words);
        }
        notices.or(()).err().unwrap_or_default()
    }

    /// All rows.
    #[must_use]
    pub fn rows(&self) -> &[ScriptRow] {
        &self.rows
    }

    /// Those that say buckets.
    #[must_use]
    pub fn of_buckets(&self) -> Vec<Arc<BucketScript>> {
        let all = self.active.iter();
        let own = all.filter(|script| script.serves == Serves::Buckets);
        let script = |script: &Arc<Script>| {
            Arc::new(BucketScript {
                name: script.name.clone(),
                chunk: script.chunk.clone(),
                text: script.text.clone(),
                sum: lua::md5::hex(script.text.as_bytes()).into(),
                runner: self.given.runner,
            })
        };
        own.map(script).collect()
    }

    /// Those that are in force.
    #[must_use]
    pub fn active(&self) -> &[Arc<Script>] {
        &self.active
    }
}

/// Columns of a row that have one of several words; none where a word is another.
fn choices_of(row: &ScriptRow, refusals: &mut Refusals) -> Option<(ScriptApi, OnError, Serves)> {
    let mut refuse = |column, words: &str, text: &str| {
        let which = || format!("script_name '{}'", row.script_name);
        refusals.add(which, column, format!("must be {words}; '{text}' is not"));
    };
    let api = match &*row.api {
        "auto" => Some(ScriptApi::Auto),
        "0.6" => Some(ScriptApi::V06),
        "0.8" => Some(ScriptApi::V08),
        other => {
            refuse("api", "auto, 0.6 or 0.8", other);
            None
        }
    };
    let on_error = match &*row.on_error {
        "forward" => Some(OnError::Forward),
        "error" => Some(OnError::Error),
        "disconnect" => Some(OnError::Disconnect),
        other => {
            refuse("on_error", "forward, error or disconnect", other);
            None
        }
    };
    let serves = match &*row.serves {
        "clients" => Some(Serves::Clients),
        "console" => Some(Serves::Console),
        "buckets" => Some(Serves::Buckets),
        other => {
            refuse("serves", "clients, console or buckets", other);
            None
        }
    };
    Some((api?, on_error?, serves?))
}

/// Where one of several with the same `proxy.global` shares it, all of them do.
fn share(scripts: &mut [Script]) {
    let sharing = scripts.iter().filter(|script| script.shares_globals);
    let sharing: Vec<Box<str>> = sharing.map(|script| script.globals.clone()).collect();
    for script in scripts {
        script.shares_globals = sharing.contains(&script.globals);
    }
}

/// Reads what a script requires, and what that requires.
struct Beside<'a> {
    folder: Option<&'a Path>,
    given: &'a Given,
    read: &'a dyn Fn(&str) -> Result<String, String>,
}

impl Beside<'_> {
    /// Modules of a text. A name without a file may be one that is built in: whoever asks for it is
    /// told.
    fn of(&self, text: &str) -> Result<Vec<Module>, String> {
        let (mut found, mut at) = (Vec::<Module>::new(), 0);
        self.needed(text, &mut found);
        while let Some(module) = found.get(at) {
            let text = module.text.clone();
            self.needed(&text, &mut found);
            at += 1;
            let bytes: usize = found.iter().map(|module| module.text.len()).sum();
            if found.len() > MODULES_MAX || bytes > TEXT_LEN_MAX {
                return Err(format!(
                    "requires more than {MODULES_MAX} files or {TEXT_LEN_MAX} bytes of them"
                ));
            }
        }
        Ok(found)
    }

    fn needed(&self, text: &str, found: &mut Vec<Module>) {
        for name in required::required(text) {
            if name.contains("log4lua.logger")
                && let Some(path) = self.given.environment.get(LOG4LUA_CONFIG_FILE)
            {
                self.take(LOG4LUA_CONFIG, std::slice::from_ref(path), found);
            }
            if let Some(folder) = self.folder {
                let places = required::places(name).map(|place| shown(&folder.join(place)));
                self.take(name, &places, found);
            }
        }
        for name in required::configured(text) {
            let path = self
                .folder
                .map_or_else(|| name.into(), |folder| shown(&folder.join(name)));
            self.take(&format!("{FILE}{name}"), &[path], found);
        }
    }

    /// Reads the first of these files that there is.
    fn take(&self, name: &str, paths: &[String], found: &mut Vec<Module>) {
        if found.iter().any(|module| &*module.name == name) {
            return;
        }
        let read = |path: &String| Some((path.clone(), (self.read)(path).ok()?));
        if let Some((path, text)) = paths.iter().find_map(read) {
            found.push(Module {
                name: name.into(),
                chunk: path.into(),
                text: text.into(),
            });
        }
    }
}

/// Settings by their names.
type Settings = Vec<(Box<str>, Setting)>;

/// Settings of a script, the hosts that it may call and the folders of its files.
type Rights = (Settings, HttpHosts, Folders);

/// Reads what a row gives to its script; or the column that is wrong, and why.
fn given_to(row: &ScriptRow) -> Result<Rights, (&'static str, String)> {
    let settings = settings_of(&row.settings).map_err(|words| ("settings", words))?;
    let hosts = HttpHosts::parse(&row.http_hosts).map_err(|words| ("http_hosts", words))?;
    let folders = Folders::parse(&row.folders).map_err(|words| ("folders", words))?;
    Ok((settings, hosts, folders))
}

/// Settings of a row: an object of JSON, whose values are texts, numbers, true and false.
fn settings_of(json: &str) -> Result<Settings, String> {
    if json.is_empty() {
        return Ok(Vec::new());
    }
    let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json);
    let object = object.map_err(|error| format!("must be an object of JSON: {error}"))?;
    let setting = |(name, value): (String, serde_json::Value)| {
        let setting = match value {
            serde_json::Value::Bool(flag) => Setting::Flag(flag),
            serde_json::Value::String(text) => Setting::Text(text.into()),
            serde_json::Value::Number(number) => {
                Setting::Number(Number(number.as_f64().unwrap_or(0.0)))
            }
            _ => {
                let words = format!("'{name}' must be a text, a number, true or false");
                return Err(words);
            }
        };
        Ok((name.into(), setting))
    };
    object.into_iter().map(setting).collect()
}

/// Folder of a script that is a file.
fn folder_of(path: &str) -> Option<&Path> {
    Path::new(path).parent().filter(|_| !path.is_empty())
}

/// Text of a script's file, unless it has too many bytes.
fn text_of(
    row: &ScriptRow,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let text = match row.path.is_empty() {
        true => row.body.clone(),
        false => read(&row.path)?,
    };
    match text.len() <= TEXT_LEN_MAX {
        true => Ok(text),
        false => Err(format!(
            "has {} bytes; {TEXT_LEN_MAX} are the most",
            text.len()
        )),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, body: &str) -> ScriptRow {
        ScriptRow {
            script_name: name.into(),
            body: body.into(),
            ..ScriptRow::default()
        }
    }

    #[test]
    fn scripts_are_met_in_the_order_of_their_positions() {
        let late = ScriptRow {
            position: 2,
            usernames: "app, web".into(),
            ..row("a", "x = 1")
        };
        let off = ScriptRow {
            active: 0,
            ..row("c", "z = 1")
        };
        let file = ScriptRow {
            path: "/s.lua".into(),
            ..row("b", "")
        };
        let read = |path: &str| Ok(format!("-- {path}"));
        let scripts = Scripts::build([late, off, file], Given::default(), read).unwrap();
        let shown: Vec<_> = scripts
            .active()
            .iter()
            .map(|one| format!("{} {} {}", one.name, one.chunk, one.text))
            .collect();
        assert_eq!(shown, ["b /s.lua -- /s.lua", "a [a] x = 1"]);
        let [b, a] = scripts.active() else {
            panic!("two are active")
        };
        assert!(b.serves("app") && a.serves("web") && !a.serves("other"));
        assert_eq!(scripts.rows().len(), 3);
    }

    #[test]
    fn scripts_of_one_global_share_it_if_one_does() {
        let named = |name, body, serves: &str| ScriptRow {
            globals: "g".into(),
            serves: serves.into(),
            ..row(name, body)
        };
        let rows = [
            named("a", "x = #proxy.global.backends", "console"),
            named("b", "proxy.global.x = 1", "clients"),
            row("c", "x = 1"),
        ];
        let read = |_: &str| Err(String::new());
        let scripts = Scripts::build(rows, Given::default(), read).unwrap();
        let shown: Vec<_> = scripts
            .active()
            .iter()
            .map(|one| (&*one.globals, one.shares_globals, one.serves_all()))
            .collect();
        assert_eq!(
            shown,
            [("g", true, false), ("g", true, true), ("c", false, true)]
        );
        let strange = named("d", "x = 1", "nobody");
        let refused = Scripts::build([strange], Given::default(), read).unwrap_err();
        assert_eq!(
            refused[0].to_string(),
            "mysql_scripts (script_name 'd'): serves must be clients, console or buckets; 'nobody' is not"
        );
    }

    #[test]
    fn files_that_a_script_requires_are_read_with_it() {
        let files = [
            (
                "/s/a.lua",
                "require 'tools.text' require('proxy.commands') l.loadConfig('log.lua')",
            ),
            ("/s/tools/text.lua", "local b = require('b'), require('a')"),
            ("/s/b/init.lua", "require('optivo.common.log4lua.logger')"),
            ("/s/log.lua", ""),
            ("/etc/log4lua.lua", ""),
        ];
        let read = |path: &str| {
            let found = files.iter().find(|(of, _)| *of == path);
            found
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(String::new)
        };
        let file = ScriptRow {
            path: "/s/a.lua".into(),
            ..row("a", "")
        };
        let environment = [(LOG4LUA_CONFIG_FILE.into(), "/etc/log4lua.lua".into())];
        let given = Given {
            environment: Arc::new(environment.into()),
            ..Given::default()
        };
        let scripts = Scripts::build([file], given, read).unwrap();
        let modules = scripts.active()[0].modules.iter();
        let shown: Vec<_> = modules
            .map(|one| format!("{} {}", one.name, one.chunk))
            .collect();
        assert_eq!(
            shown,
            [
                "tools.text /s/tools/text.lua",
                "file:log.lua /s/log.lua",
                "b /s/b/init.lua",
                "a /s/a.lua",
                "file:LOG4LUA_CONFIG_FILE /etc/log4lua.lua",
            ]
        );
    }

    #[test]
    fn users_who_meet_no_scripts_are_told() {
        let read = |_: &str| Err(String::new());
        let own = ScriptRow {
            usernames: "u0, slow".into(),
            ..row("b", "x = 1")
        };
        let rows = [row("a", "x = 1"), own];
        let scripts = Scripts::build(rows, Given::default(), read).unwrap();
        let user = |username: &str, fast_forward| crate::UserRow {
            username: username.into(),
            fast_forward,
            ..crate::UserRow::default()
        };
        let mut users: Vec<_> = (0..7).map(|at| user(&format!("u{at}"), 1)).collect();
        users.push(user("slow", 0));
        let users = Users::build(users, &crate::Variables::default()).unwrap();
        let told = scripts.bypassed_by(&users);
        let told: Vec<_> = told.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "mysql_scripts (script_name 'a'): usernames leave out u0, u1, u2, u3, u4 and 2 more: users with fast_forward meet no scripts",
                "mysql_scripts (script_name 'b'): usernames leave out u0: users with fast_forward meet no scripts",
            ]
        );
    }

    #[test]
    fn rules_that_name_no_script_in_force_are_told() {
        let read = |_: &str| Err(String::new());
        let scripts = Scripts::build([row("a", "x = 1")], Given::default(), read).unwrap();
        let rule = |rule_id, script: &str| crate::RuleRow {
            rule_id,
            active: 1,
            match_digest: Some("^SELECT".into()),
            attributes: format!("{{\"script\":{script}}}"),
            ..crate::RuleRow::default()
        };
        let variables = crate::Variables::default();
        let rows = [rule(1, "\"a\""), rule(2, "\"b\"")];
        let rules = Rules::build(rows, [], &variables).unwrap();
        let told: Vec<_> = scripts
            .missed_by(&rules)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            [
                "mysql_query_rules (rule_id 2): attributes names the script 'b', and no such script is in force"
            ]
        );
        let refused = Rules::build([rule(3, "5")], [], &variables).unwrap_err();
        assert_eq!(
            refused[0].to_string(),
            "mysql_query_rules (rule_id 3): attributes has script, which must be the name of a script; 5 is not"
        );
    }

    #[test]
    fn a_script_sees_the_environment_without_its_secrets() {
        let environment = ["DEBUG", "PWD", "MYSQL_PWD", "api_token", "DB_PASSWORD"];
        let environment = environment.map(|name| (name.into(), "x".into()));
        let given = Given {
            environment: Arc::new(environment.into()),
            ..Given::default()
        };
        assert_eq!(given.variable("DEBUG"), Some("x"));
        assert_eq!(given.variable("PWD"), Some("x"));
        for name in ["MYSQL_PWD", "api_token", "DB_PASSWORD", "NONE"] {
            assert_eq!(given.variable(name), None, "{name}");
        }
    }

    #[test]
    fn rows_without_a_script_or_with_two_are_refused() {
        let both = ScriptRow {
            path: "/s.lua".into(),
            ..row("a", "x = 1")
        };
        let strange = ScriptRow {
            api: "0.9".into(),
            hook_ms_max: 0,
            ..row("b", "x = 1")
        };
        let absent = ScriptRow {
            path: "/none".into(),
            ..row("c", "")
        };
        let nested = ScriptRow {
            settings: r#"{"a": []}"#.into(),
            ..row("d", "x = 1")
        };
        let read = |_: &str| Err("cannot be read: there is no such file".to_owned());
        let refused =
            Scripts::build([both, strange, absent, nested], Given::default(), read).unwrap_err();
        let shown: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "mysql_scripts (script_name 'a'): path or body must have the script, and only one of them",
                "mysql_scripts (script_name 'b'): hook_ms_max must be from 1 to 60000; '0' is not",
                "mysql_scripts (script_name 'b'): api must be auto, 0.6 or 0.8; '0.9' is not",
                "mysql_scripts (script_name 'c'): path cannot be read: there is no such file",
                "mysql_scripts (script_name 'd'): settings 'a' must be a text, a number, true or false",
            ]
        );
    }
}
