//! From the rows in memory to the next snapshot: all reasons against it at once, or the whole.

use crate::engine::SqlError;
use crate::rows::{self, sql_refusal};
use crate::tables::{Kind, Module, Runtime};
use crate::{access, engine::Engine};
use config::{
    Alone, FastRoutingRow, Firewall, FirewallFingerprintRow, FirewallRuleRow, FirewallUserRow,
    Help, HostgroupAttributesRow, Refusal, ServerRow, SslParamsRow,
};
use config::{
    Proxies, ProxyRow, RewriteRow, Rewrites, RuleRow, Rules, Servers, Snapshot, UserRow, Users,
    Variable, Variables,
};
use rusqlite::Connection;
use std::sync::Arc;

/// Rows that were read, and what is to be made of them: on this thread or on another.
pub(crate) struct Read(Box<Making>);

/// A snapshot, and what there is to say about it; or every reason against it.
pub(crate) type Built = Result<(Snapshot, Vec<Refusal>), Vec<Refusal>>;
/// What there is to say about what was built, or every reason against it.
pub(crate) type Outcome = Result<Vec<Refusal>, Vec<Refusal>>;
type Making = dyn FnOnce(&dyn Help) -> Built + Send;

impl Read {
    /// A snapshot that differs in one module from that for which was read.
    pub(crate) fn build(self, help: &dyn Help) -> Built {
        (self.0)(help)
    }
}

/// A snapshot that differs from `now` in one module, and what there is to say about it.
pub(crate) fn module(engine: &Engine, now: &Snapshot, module: Module) -> Built {
    read(engine, now, module)?.build(&Alone)
}

/// What counts at the start where what was saved cannot be understood: nobody is let past a
/// firewall that may have been on.
pub(crate) const IF_UNREADABLE: &[(&str, &str)] = &[
    ("mysql-firewall_whitelist_enabled", "true"),
    ("mysql-automatic_detect_sqli", "true"),
];
/// Of these no default counts: everybody knows it.
const CREDENTIALS: [&str; 2] = ["admin-admin_credentials", "admin-stats_credentials"];

/// For the start: what memory has of a module, if it can be in force, and what cannot be. Of
/// variables, each counts for itself. Unless all of it `must` be, the admin port is put into force
/// as far as it is safe: whoever was saved as an administrator is one, and nobody else.
pub(crate) fn at_start(
    engine: &Engine,
    now: &Snapshot,
    module: Module,
    must: bool,
) -> (Option<(Snapshot, Vec<Refusal>)>, Vec<Refusal>) {
    let mut refused = Vec::new();
    let built = match module.prefix() {
        None => with_idle_rows(engine, now, module).or_else(|refused| {
            if must || module != Module::Rules {
                Err(refused)
            } else {
                unchecked(engine, now, refused)
            }
        }),
        Some(prefix) => saved_variables(engine.conn(), prefix)
            .map_err(|error| vec![sql_refusal("global_variables", error)])
            .and_then(|pairs| {
                let (usable, unusable) = if must {
                    usable(pairs)
                } else {
                    safe(pairs, prefix)
                };
                refused = unusable;
                let next = Snapshot {
                    generation: now.generation + 1,
                    ..now.clone()
                };
                let family = if must { prefix } else { "" };
                making(next, move |next, help| {
                    checked_variables(usable, family, next, help)
                })
                .build(&Alone)
            }),
    };
    match built {
        Ok(built) => (Some(built), refused),
        Err(more) => (None, [refused, more].concat()),
    }
}

/// A module of which some tables may have rows that nothing acts on yet: a start keeps them and
/// says so.
fn with_idle_rows(engine: &Engine, now: &Snapshot, module: Module) -> Built {
    let (next, mut notices) = rows_of(engine, now, module)?.build(&Alone)?;
    let idle = not_yet(engine.conn(), module, |count, does| {
        let (rows, stay, them) = match count {
            1 => ("1 row".to_owned(), "stays saved and does", "it"),
            _ => (format!("{count} rows"), "stay saved and do", "them"),
        };
        format!(
            "has {rows}, which {stay} nothing: this version {does} yet; LOAD {} TO RUNTIME refuses \
             {them}",
            module.words()
        )
    });
    notices.extend(idle);
    Ok((next, notices))
}

/// The rules that were saved, without [`Variables::mysql_query_rewrite_check`]: what an older
/// version took is no reason to serve without any rule. What is wrong with them is said.
fn unchecked(engine: &Engine, now: &Snapshot, refused: Vec<Refusal>) -> Built {
    let mut variables = Variables::clone(&now.variables);
    variables.mysql_query_rewrite_check = false;
    let lenient = Snapshot {
        variables: Arc::new(variables),
        ..now.clone()
    };
    let Ok((next, mut notices)) = module(engine, &lenient, Module::Rules) else {
        return Err(refused);
    };
    notices.extend(refused.into_iter().map(|refusal| Refusal {
        words: format!("{} (a LOAD would be refused)", refusal.words),
        ..refusal
    }));
    Ok((
        Snapshot {
            variables: now.variables.clone(),
            ..next
        },
        notices,
    ))
}

pub(crate) type Pairs = Vec<(String, String)>;

/// The variables that can have the values that they are given, and why others cannot.
fn usable(pairs: Vec<(String, Vec<u8>)>) -> (Pairs, Vec<Refusal>) {
    let (mut usable, mut refused) = (Vec::new(), Vec::new());
    for (name, bytes) in pairs {
        let (why, value) = match String::from_utf8(bytes) {
            Ok(value) => (Variables::build([(&name, &value)]).err(), value),
            Err(error) => (
                Some(not_utf8(&name)),
                String::from_utf8_lossy(error.as_bytes()).into_owned(),
            ),
        };
        let Some(why) = why else {
            usable.push((name, value));
            continue;
        };
        let credentials = CREDENTIALS.contains(&name.as_str()).then_some(value);
        let instead = IF_UNREADABLE
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value);
        refused.extend(why.into_iter().map(|refusal| match instead {
            Some(value) => Refusal {
                words: format!("{}; until then it is {value}", refusal.words),
                ..refusal
            },
            None => refusal,
        }));
        usable.extend(
            instead
                .map(str::to_owned)
                .or(credentials)
                .map(|value| (name, value)),
        );
    }
    (usable, refused)
}

fn not_utf8(name: &str) -> Vec<Refusal> {
    let column = Variable::named(name).map_or("", |known| known.name);
    vec![Refusal {
        table: "global_variables",
        row: name.into(),
        column,
        words: "must be a text in UTF-8".into(),
    }]
}

/// The same, and of the admin port's only what lets nobody in who knows no more than the defaults.
fn safe(pairs: Vec<(String, Vec<u8>)>, prefix: &str) -> (Pairs, Vec<Refusal>) {
    let (mut usable, mut refused) = usable(pairs);
    if prefix == "admin-"
        && let Ok((wanted, _)) = Variables::build(usable.iter().map(|(name, value)| (name, value)))
    {
        let (listens, more) = access::closed(&wanted);
        usable.extend(listens.map(|list| ("admin-mysql_ifaces".to_owned(), list)));
        refused.extend(more);
    }
    (usable, refused)
}

/// Why variables in memory would not be in force after a start.
pub(crate) fn unusable_variables(
    conn: &Connection,
    prefix: &str,
) -> Result<Vec<Refusal>, SqlError> {
    Ok(safe(saved_variables(conn, prefix)?, prefix).1)
}

/// Reads what a snapshot is made of that differs from `now` in one module.
pub(crate) fn read(engine: &Engine, now: &Snapshot, module: Module) -> Result<Read, Vec<Refusal>> {
    let refused = not_yet(engine.conn(), module, |count, does| match count {
        1 => format!("has 1 row, but this version {does} yet; without it, the rest can be loaded"),
        _ => format!(
            "has {count} rows, but this version {does} yet; without them, the rest can be loaded"
        ),
    });
    match rows_of(engine, now, module) {
        Ok(read) if refused.is_empty() => Ok(read),
        // What the rows themselves have against it is said as well.
        Ok(read) => Err(refused
            .into_iter()
            .chain(read.build(&Alone).err().unwrap_or_default())
            .collect()),
        Err(more) => Err(refused.into_iter().chain(more).collect()),
    }
}

/// Reads the rows of a module that the proxy works by.
fn rows_of(engine: &Engine, now: &Snapshot, module: Module) -> Result<Read, Vec<Refusal>> {
    let conn = engine.conn();
    let next = Snapshot {
        generation: now.generation + 1,
        ..now.clone()
    };
    match module {
        Module::Servers => servers(conn, next),
        Module::Users => rows::read::<UserRow>(conn, "")
            .map(|rows| making(next, |next, help| users(next, rows, help))),
        Module::Rules => all_rules(conn, next),
        Module::Firewall => firewall(conn, next),
        Module::ProxysqlServers => {
            rows::read::<ProxyRow>(conn, "").map(|rows| making(next, |next, _| proxies(next, rows)))
        }
        other => match other.prefix() {
            Some(prefix) => read_variables(conn, prefix)
                .map(|pairs| {
                    making(next, move |next, help| {
                        checked_variables(pairs, prefix, next, help)
                    })
                })
                .map_err(|error| vec![sql_refusal("global_variables", error)]),
            None => Ok(making(next, |_, _| Ok(Vec::new()))),
        },
    }
}

fn making(
    mut next: Snapshot,
    change: impl FnOnce(&mut Snapshot, &dyn Help) -> Result<Vec<Refusal>, Vec<Refusal>> + Send + 'static,
) -> Read {
    Read(Box::new(move |help| {
        let notices = change(&mut next, help)?;
        Ok((next, notices))
    }))
}

/// A snapshot in which one user is as memory has it, and what there is to say about that user.
pub(crate) fn one_user(engine: &Engine, now: &Snapshot, name: &str) -> Built {
    let only = format!("WHERE username = {}", crate::commands::literal(name));
    let mine = rows::read::<UserRow>(engine.conn(), &only)?;
    if mine.is_empty() {
        return Err(vec![Refusal {
            table: "mysql_users",
            row: String::new(),
            column: "username",
            words: format!("'{name}' is not there"),
        }]);
    }
    let mut next = Snapshot {
        generation: now.generation + 1,
        ..now.clone()
    };
    let others = now
        .users
        .rows()
        .into_iter()
        .filter(|row| row.username != name);
    let before = unseen(now);
    let mut notices = users(&mut next, others.chain(mine).collect(), &Alone)?;
    // What is so for others has been said when they were loaded.
    notices.retain(|notice| !before.contains(notice) || notice.row == of_user(name));
    Ok((next, notices))
}

/// Words about tables with rows that nothing here works by: `words` of how many there
/// are, and of what this version does not do.
fn not_yet(conn: &Connection, module: Module, words: impl Fn(i64, &str) -> String) -> Vec<Refusal> {
    let mut told = Vec::new();
    for table in module.tables() {
        let Kind::Declared {
            runtime: Runtime::NotYet { unless, does },
            ..
        } = table.kind
        else {
            continue;
        };
        let harmless = if unless.is_empty() { "0" } else { unless };
        let count = format!(
            "SELECT count(*) FROM main.{} WHERE NOT ({harmless})",
            table.name
        );
        let words = match conn.query_row(&count, [], |row| row.get(0)) {
            Ok(0) => continue,
            Ok(count) => words(count, does),
            Err(error) => SqlError::from(error).0,
        };
        told.push(Refusal {
            table: table.name,
            row: String::new(),
            column: "",
            words,
        });
    }
    told
}

/// All of them, or the reasons against each.
fn together<A, B, C>(
    a: Result<A, Vec<Refusal>>,
    b: Result<B, Vec<Refusal>>,
    c: Result<C, Vec<Refusal>>,
) -> Result<(A, B, C), Vec<Refusal>> {
    match (a, b, c) {
        (Ok(a), Ok(b), Ok(c)) => Ok((a, b, c)),
        (a, b, c) => Err([a.err(), b.err(), c.err()]
            .into_iter()
            .flatten()
            .flatten()
            .collect()),
    }
}

fn servers(conn: &Connection, next: Snapshot) -> Result<Read, Vec<Refusal>> {
    let (servers, attributes, ssl) = together(
        rows::read::<ServerRow>(conn, ""),
        rows::read::<HostgroupAttributesRow>(conn, ""),
        rows::read::<SslParamsRow>(conn, ""),
    )?;
    Ok(making(next, move |next, _| {
        all_servers(next, servers, attributes, ssl)
    }))
}

pub(crate) fn all_servers(
    next: &mut Snapshot,
    servers: Vec<ServerRow>,
    attributes: Vec<HostgroupAttributesRow>,
    ssl: Vec<SslParamsRow>,
) -> Outcome {
    let servers = Servers::build(servers, attributes, ssl)?;
    let notices = servers.notices().to_vec();
    next.servers = Arc::new(servers);
    Ok(notices)
}

/// Rows, with a pause now and then.
fn paused<'p, T: 'p>(rows: Vec<T>, help: &'p dyn Help) -> impl Iterator<Item = T> + 'p {
    let at_once = |(at, row)| {
        if at % 64 == 0 {
            help.pause();
        }
        row
    };
    rows.into_iter().enumerate().map(at_once)
}

pub(crate) fn users(next: &mut Snapshot, rows: Vec<UserRow>, help: &dyn Help) -> Outcome {
    next.users = Arc::new(Users::build(paused(rows, help), &next.variables)?);
    Ok(unseen(next))
}

fn all_rules(conn: &Connection, next: Snapshot) -> Result<Read, Vec<Refusal>> {
    let (rules, fast, rewrites) = together(
        rows::read::<RuleRow>(conn, ""),
        rows::read::<FastRoutingRow>(conn, ""),
        rows::read::<RewriteRow>(conn, ""),
    )?;
    Ok(making(next, move |next, help| {
        rules_and_rewrites(next, rules, fast, rewrites, help)
    }))
}

pub(crate) fn rules_and_rewrites(
    next: &mut Snapshot,
    rules: Vec<RuleRow>,
    fast: Vec<FastRoutingRow>,
    rewrites: Vec<RewriteRow>,
    help: &dyn Help,
) -> Outcome {
    let rules = Rules::build_with_help(&next.rules, rules, fast, &next.variables, help);
    let (rules, rewrites, ()) = together(
        rules,
        Rewrites::build(rewrites, next.variables.mysql_query_rewrite_check),
        Ok(()),
    )?;
    let notices = rules.notices().to_vec();
    (next.rules, next.rewrites) = (Arc::new(rules), Arc::new(rewrites));
    Ok(notices)
}

pub(crate) fn proxies(next: &mut Snapshot, rows: Vec<ProxyRow>) -> Outcome {
    next.proxies = Arc::new(Proxies::build(rows)?);
    let is_alone =
        next.proxies.rows().is_empty() || !next.variables.admin_cluster_username.is_empty();
    let words = "is empty: no other proxy is asked for anything".into();
    let notice = Refusal {
        table: "global_variables",
        row: String::new(),
        column: "admin-cluster_username",
        words,
    };
    Ok(if is_alone { Vec::new() } else { vec![notice] })
}

fn firewall(conn: &Connection, next: Snapshot) -> Result<Read, Vec<Refusal>> {
    let (users, rules, fingerprints) = together(
        rows::read::<FirewallUserRow>(conn, ""),
        rows::read::<FirewallRuleRow>(conn, ""),
        rows::read::<FirewallFingerprintRow>(conn, ""),
    )?;
    Ok(making(next, move |next, help| {
        whole_firewall(next, users, rules, fingerprints, help)
    }))
}

pub(crate) fn whole_firewall(
    next: &mut Snapshot,
    users: Vec<FirewallUserRow>,
    rules: Vec<FirewallRuleRow>,
    fingerprints: Vec<FirewallFingerprintRow>,
    help: &dyn Help,
) -> Outcome {
    let firewall = Firewall::build(paused(users, help), paused(rules, help), fingerprints)?;
    next.firewall = Arc::new(firewall);
    Ok([
        everybody_is_refused(next),
        others_are_counted(next),
        unseen(next),
    ]
    .concat())
}

/// A firewall that nobody has told anything is easily switched on.
fn everybody_is_refused(next: &Snapshot) -> Vec<Refusal> {
    let is_empty =
        next.firewall.user_rows().next().is_none() && next.firewall.rule_rows().next().is_none();
    if !next.variables.mysql_firewall_whitelist_enabled || !is_empty {
        return Vec::new();
    }
    let words = "is true, and the firewall has neither users nor rules in force: every statement of every user is refused".into();
    Vec::from([Refusal {
        table: "global_variables",
        row: String::new(),
        column: "mysql-firewall_whitelist_enabled",
        words,
    }])
}

/// Options with which the statistics have other digests than the rules of the firewall.
fn others_are_counted(next: &Snapshot) -> Vec<Refusal> {
    let v = &next.variables;
    if !v.mysql_firewall_whitelist_enabled || v.digest_options().are_as_whole() {
        return Vec::new();
    }
    let notice = |column: &'static str| {
        let variable = Variable::named(column)?;
        let (is, always) = (variable.text(v), variable.default);
        let words = format!(
            "is {is}: the digests of the statistics are not those of the firewall, for which it is always {always}, and rules made of them may allow \
             nothing; LEARN MYSQL FIREWALL, stats_mysql_firewall and EXPLAIN ROUTE have the firewall's"
        );
        (is != always).then(|| Refusal {
            table: "global_variables",
            row: String::new(),
            column,
            words,
        })
    };
    let names = [
        "mysql-query_digests_grouping_limit",
        "mysql-query_digests_groups_grouping_limit",
        "mysql-query_digests_keep_comment",
        "mysql-query_digests_lowercase",
        "mysql-query_digests_no_digits",
        "mysql-query_digests_replace_null",
    ];
    names.into_iter().filter_map(notice).collect()
}

fn of_user(name: &str) -> String {
    format!("username '{name}'")
}

/// Users of the firewall whose statements nobody looks at.
fn unseen(next: &Snapshot) -> Vec<Refusal> {
    let forwarded = |row: &FirewallUserRow| {
        next.users
            .frontend(&row.username)
            .is_some_and(|user| user.fast_forward)
    };
    let rows = next
        .firewall
        .user_rows()
        .filter(|row| !row.mode.eq_ignore_ascii_case("OFF") && forwarded(row));
    let told = rows.map(|row| Refusal {
        table: "mysql_firewall_whitelist_users",
        row: of_user(&row.username),
        column: "mode",
        words: format!(
            "is {}, but the user has fast_forward = 1: the firewall sees none of its statements",
            row.mode
        ),
    });
    told.collect()
}

/// The same, if others cannot come in on the admin port by what everybody knows.
pub(crate) fn checked_variables(
    pairs: Pairs,
    prefix: &str,
    next: &mut Snapshot,
    help: &dyn Help,
) -> Outcome {
    let mut notices = variables(pairs, next, help)?;
    if prefix == "admin-" {
        access::check(&next.variables)?;
        notices.extend(access::check_cluster(&next.variables));
    }
    Ok(notices)
}

fn variables(pairs: Pairs, next: &mut Snapshot, help: &dyn Help) -> Outcome {
    let (built, mut notices) = next.variables.with(pairs)?;
    let old = std::mem::replace(&mut next.variables, Arc::new(built));
    // What was built under other values of these must be as valid under the new ones.
    if old.mysql_have_ssl != next.variables.mysql_have_ssl {
        users(next, next.users.rows(), help)?;
    }
    if old.mysql_query_processor_regex != next.variables.mysql_query_processor_regex {
        let fast: Vec<_> = next.rules.fast().rows().collect();
        let rules = next.rules.rows().cloned();
        next.rules = Arc::new(Rules::build_with_help(
            &next.rules,
            rules,
            fast,
            &next.variables,
            help,
        )?);
    }
    if !old.mysql_query_rewrite_check && next.variables.mysql_query_rewrite_check {
        next.rewrites = Arc::new(Rewrites::build(next.rewrites.rows().cloned(), true)?);
    }
    if !old.mysql_firewall_whitelist_enabled {
        notices.extend(everybody_is_refused(next));
    }
    let digests = |v: &Variables| (v.mysql_firewall_whitelist_enabled, v.digest_options());
    if digests(&old) != digests(&next.variables) {
        notices.extend(others_are_counted(next));
    }
    Ok(notices)
}

pub(crate) fn read_variables(conn: &Connection, prefix: &str) -> Result<Pairs, SqlError> {
    let text = |(name, bytes): (String, Vec<u8>)| match String::from_utf8(bytes) {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(SqlError(format!("{name} must be a text in UTF-8"))),
    };
    saved_variables(conn, prefix)?
        .into_iter()
        .map(text)
        .collect()
}

/// The same, as bytes: a value that is no text takes no other with it.
fn saved_variables(conn: &Connection, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, SqlError> {
    let mut select = conn.prepare(
        "SELECT variable_name, CAST(variable_value AS TEXT) FROM main.global_variables \
         WHERE substr(variable_name, 1, length(?1)) = ?1 ORDER BY 1",
    )?;
    let bytes = |row: &rusqlite::Row<'_>, at| {
        Ok::<_, rusqlite::Error>(row.get_ref(at)?.as_bytes()?.to_vec())
    };
    let pairs = select.query_map([prefix], |row| {
        Ok((
            String::from_utf8_lossy(&bytes(row, 0)?).into_owned(),
            bytes(row, 1)?,
        ))
    })?;
    Ok(pairs.collect::<Result<_, _>>()?)
}
