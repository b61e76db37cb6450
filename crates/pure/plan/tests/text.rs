//! The decisions as texts: each `*.txt` beside this file has rules, sessions, statements and the
//! plans that come of them. `UPDATE_EXPECT=1 cargo test -p plan` writes the plans anew.
//!
//! ```text
//! # a remark                                          rules stay until `clear`
//! rule 1: match_digest=^SELECT | destination_hostgroup=2 | apply=1
//! fast: sbtest | shard_1 | 0 | 7                      username, schemaname, flagIN, destination_hostgroup
//! firewall user: u | 10.0.0.1 | PROTECTING            username, client_address, mode
//! firewall rule: u | 10.0.0.1 | s | 0 | SELECT 1      username, client_address, schemaname, flagIN, a statement of that digest
//! firewall fingerprint: s&1o1
//! hscale SETUP_TABLE('users', 'nickname', 'users_default', 1, 'PREFIX(3)')
//! set mysql-query_processor_iterations=1
//! session: user=u schema=s default_hostgroup=0 client=10.0.0.1 listener=127.0.0.1:6033
//! > SELECT 1
//!   hostgroup 2, by rule 1                            hits: follow if there are any
//! >> SELECT 1                                         the same, explained
//! off: 1 2                                            nobody serves in these hostgroups
//! stale: 1                                            nobody there has what the session wrote, or a hint wants
//! prepared: SELECT 2                                  what follows are executions of it, until `prepared:`
//! ```

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use config::{
    FastRoutingRow, Firewall, FirewallFingerprintRow, FirewallRuleRow, FirewallUserRow,
    HostgroupAttributesRow, ReplicationHostgroupRow, RuleRow, Rules, Servers, ShardPartitionRow,
    ShardTableRow, Snapshot, TopologyRows, User, UserRow, Users, Variables,
};
use plan::{AnsiQuotes, Digest, Guarded, SessionFacts, SplitFacts, Statement, explain, plan};
use sql::digest::digest_with_comment;
use std::fmt::Write as _;
use std::sync::Arc;

#[test]
fn the_plans_are_those_of_the_texts() {
    let mut files: Vec<_> = std::fs::read_dir("tests")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    for path in files {
        check(&path);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test reads its data and the flag that says to write it anew"
)]
fn check(path: &std::path::Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let told = World::default().run(&text);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, told).unwrap();
        return;
    }
    for (number, (line, told)) in (1..).zip(text.lines().zip(told.lines())) {
        assert_eq!(
            told,
            line,
            "{}:{number} (UPDATE_EXPECT=1 writes it anew)",
            path.display()
        );
    }
    assert_eq!(
        text.lines().count(),
        told.lines().count(),
        "{}",
        path.display()
    );
}

#[derive(Default)]
struct World {
    rules: Vec<RuleRow>,
    fast: Vec<FastRoutingRow>,
    firewall: (
        Vec<FirewallUserRow>,
        Vec<FirewallRuleRow>,
        Vec<FirewallFingerprintRow>,
    ),
    variables: Vec<(String, String)>,
    hostgroups: Vec<HostgroupAttributesRow>,
    pairs: Vec<ReplicationHostgroupRow>,
    /// Hostgroups in which nobody serves, and in which nobody has what the session wrote.
    off: Vec<u32>,
    sharded: Vec<ShardTableRow>,
    partitions: Vec<ShardPartitionRow>,
    stale: Vec<u32>,
    prepared: Option<String>,
    session: Session,
}

struct Session {
    user: UserRow,
    schema: String,
    client: String,
    listener: (String, u16),
    transaction: Option<u32>,
    locked: Option<u32>,
    flag: Option<u32>,
    autocommit: bool,
    digests: bool,
    guarded: Guarded,
    routed: plan::Routed,
    lexing: sql::Lexing,
    sql_mode: Option<String>,
    wrote: Option<u64>,
    random: u64,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            user: UserRow {
                username: "u".into(),
                ..UserRow::default()
            },
            schema: "s".into(),
            client: "10.0.0.1".into(),
            listener: ("127.0.0.1".into(), 6033),
            transaction: None,
            locked: None,
            flag: None,
            autocommit: true,
            digests: true,
            guarded: Guarded::Text,
            routed: plan::Routed::default(),
            lexing: sql::Lexing::Escapes,
            sql_mode: None,
            wrote: None,
            random: 0,
        }
    }
}

impl Session {
    fn ansi_quotes(&self) -> AnsiQuotes<'_> {
        self.sql_mode
            .as_deref()
            .map_or(AnsiQuotes::Unknown, AnsiQuotes::Written)
    }
}

impl World {
    /// The text with the outcomes written anew.
    fn run(mut self, text: &str) -> String {
        let mut out = String::new();
        for line in text.lines().filter(|line| !line.starts_with("  ")) {
            let _ = writeln!(out, "{line}");
            if let Some(sql) = line.strip_prefix(">> ") {
                self.answer(sql, true, &mut out);
            } else if let Some(sql) = line.strip_prefix("> ") {
                self.answer(sql, false, &mut out);
            } else if let Some(rest) = line.strip_prefix("rule ") {
                self.rules.push(rule(rest));
            } else if let Some(rest) = line.strip_prefix("fast: ") {
                self.fast.push(fast(rest));
            } else if let Some(rest) = line.strip_prefix("firewall ") {
                self.firewall_row(rest);
            } else if line.starts_with("hscale ") {
                self.hscale(line);
            } else if let Some(rest) = line.strip_prefix("set ") {
                let (name, value) = rest.split_once('=').expect("set name=value");
                self.variables.push((name.into(), value.into()));
            } else if let Some(rest) = line.strip_prefix("hostgroup ") {
                let (id, settings) = rest.split_once(": ").expect("hostgroup id: settings");
                let hostgroup_settings = settings.into();
                self.hostgroups.push(HostgroupAttributesRow {
                    hostgroup_id: id.parse().unwrap(),
                    hostgroup_settings,
                    ..HostgroupAttributesRow::default()
                });
            } else if let Some(rest) = line.strip_prefix("pair ") {
                let (writer, reader) = rest.split_once(' ').expect("pair writer reader");
                self.pairs.push(ReplicationHostgroupRow {
                    writer_hostgroup: writer.parse().unwrap(),
                    reader_hostgroup: reader.parse().unwrap(),
                    ..ReplicationHostgroupRow::default()
                });
            } else if let Some(rest) = line.strip_prefix("off:") {
                let all = rest.split_whitespace().map(|id| id.parse().unwrap());
                self.off = all.collect();
            } else if let Some(rest) = line.strip_prefix("stale:") {
                let all = rest.split_whitespace().map(|id| id.parse().unwrap());
                self.stale = all.collect();
            } else if let Some(rest) = line.strip_prefix("prepared:") {
                self.prepared = Some(rest.trim().to_owned()).filter(|text| !text.is_empty());
            } else if let Some(rest) = line.strip_prefix("session:") {
                self.session = session(rest);
            } else if line == "clear" {
                self = Self::default();
            } else {
                assert!(
                    line.is_empty() || line.starts_with('#'),
                    "what is '{line}'?"
                );
            }
        }
        out
    }

    fn hscale(&mut self, text: &str) {
        match shards::command(text) {
            Some(Ok(shards::Command::SetupTable {
                schema,
                table,
                column,
                default_table,
                hostgroup,
                function,
            })) => self.sharded.push(ShardTableRow {
                schemaname: schema,
                table_name: table,
                key_column: column,
                default_table,
                default_hostgroup: hostgroup.into(),
                function: function.to_string(),
                ..ShardTableRow::default()
            }),
            Some(Ok(shards::Command::AddPartition {
                schema,
                table,
                name,
                value,
                hostgroup,
                physical,
            })) => self.partitions.push(ShardPartitionRow {
                schemaname: schema,
                table_name: table,
                partition_name: name,
                partition_value: value,
                hostgroup_id: hostgroup.into(),
                physical_table: physical,
                ..ShardPartitionRow::default()
            }),
            other => panic!("what is {text}? {other:?}"),
        }
    }

    fn firewall_row(&mut self, text: &str) {
        let (table, columns) = text.split_once(':').expect("firewall table: columns");
        let parts: Vec<String> = columns
            .split('|')
            .map(|part| part.trim().to_owned())
            .collect();
        match (table, &parts[..]) {
            ("user", [user, client, mode]) => self.firewall.0.push(FirewallUserRow {
                username: user.clone(),
                client_address: client.clone(),
                mode: mode.clone(),
                ..FirewallUserRow::default()
            }),
            ("rule", [user, client, schema, flag, sql]) => self.firewall.1.push(FirewallRuleRow {
                username: user.clone(),
                client_address: client.clone(),
                schemaname: schema.clone(),
                flagIN: flag.parse().unwrap(),
                digest: format!(
                    "0x{:X}",
                    sql::digest(sql.as_bytes(), &sql::DigestOptions::WHOLE, &mut Vec::new())
                ),
                ..FirewallRuleRow::default()
            }),
            ("fingerprint", [print]) => self.firewall.2.push(FirewallFingerprintRow {
                active: 1,
                fingerprint: print.clone(),
            }),
            _ => panic!("what is firewall {text}?"),
        }
    }

    fn snapshot(&self) -> Result<(Snapshot, Arc<User>), String> {
        let (variables, _) =
            Variables::build(self.variables.iter().map(|(n, v)| (n, v))).map_err(in_lines)?;
        let rules =
            Rules::build(self.rules.clone(), self.fast.clone(), &variables).map_err(in_lines)?;
        let users = Users::build([self.session.user.clone()], &variables).map_err(in_lines)?;
        let user = Arc::clone(
            users
                .frontend(&self.session.user.username)
                .expect("it was just made"),
        );
        let pairs = TopologyRows {
            replication: self.pairs.clone(),
            ..TopologyRows::default()
        };
        let servers = Servers::build([], self.hostgroups.clone(), []);
        let servers = servers.and_then(|servers| servers.with_topologies(pairs));
        let servers = Arc::new(servers.map_err(in_lines)?);
        let (guarded, listed, prints) = self.firewall.clone();
        let firewall = Arc::new(Firewall::build(guarded, listed, prints).map_err(in_lines)?);
        let shards = config::shard_map(self.sharded.clone(), self.partitions.clone());
        let shards = Arc::new(shards.map_err(in_lines)?);
        let (variables, rules, users) = (Arc::new(variables), Arc::new(rules), Arc::new(users));
        Ok((
            Snapshot {
                variables,
                rules,
                users,
                servers,
                firewall,
                shards,
                ..Snapshot::default()
            },
            user,
        ))
    }

    fn answer(&self, sql: &str, explained: bool, out: &mut String) {
        let (snapshot, user) = match self.snapshot() {
            Ok(built) => built,
            Err(words) => {
                out.push_str(&words);
                return;
            }
        };
        let sql = sql.replace("\\n", "\n");
        let mut text = Vec::new();
        let digested = digest_with_comment(
            sql.as_bytes(),
            self.session.lexing,
            &snapshot.variables.digest_options(),
            &mut text,
        );
        let digest = Digest {
            hash: digested.hash,
            text: &text,
        };
        let session = &self.session;
        let prepared = self.prepared.as_deref().map(str::as_bytes);
        let class = session.lexing.class(prepared.unwrap_or(sql.as_bytes()));
        let facts = SessionFacts {
            user: &user,
            schema: &session.schema,
            client_addr: &session.client,
            proxy_addr: &session.listener.0,
            proxy_port: session.listener.1,
            in_transaction: session.transaction,
            begun: session.transaction.is_some(),
            branches: (session.transaction.is_some() || !session.autocommit)
                && plan::has_branches(&snapshot, &user),
            locked: session.locked,
            next_flag_in: session.flag,
            autocommit: session.autocommit,
            split: SplitFacts {
                class: Some(&class),
                lexing: session.lexing,
                ansi_quotes: session.ansi_quotes(),
                since_write_ms: session.wrote,
            },
        };
        let statement = Statement {
            text: sql.as_bytes(),
            digest: session.digests.then_some(digest),
            comment: digested.comment.map(|range| &sql.as_bytes()[range]),
            prepared,
            parameters: None,
            prepares: false,
            guarded: session.guarded,
            routed: session.routed,
            numbers: shards::Numbering::Whichever,
            making: shards::Making::Whichever,
            columns: None,
            looked: None,
            answered: None,
        };
        let mut decided = plan(&snapshot, &facts, &statement, session.random);
        let told = explain(&snapshot, &facts, &statement, session.random);
        assert_eq!(decided, told.plan, "plan and explain disagree on {sql}");
        if explained {
            for step in &told.steps {
                let _ = writeln!(out, "  {step}");
            }
            return;
        }
        decided.settle(&snapshot.servers, user.default_hostgroup, &class, self);
        let _ = write!(out, "  {}", decided.shown(&snapshot.rules));
        let hits: Vec<_> = decided
            .why
            .hits()
            .iter()
            .map(|&at| rule_id(&snapshot, at))
            .collect();
        if !hits.is_empty() {
            let _ = write!(out, "; hits: {}", hits.join(" "));
        }
        out.push('\n');
    }
}

impl plan::Sight for World {
    fn takes(&self, hostgroup: u32, _for_ms: u64) -> bool {
        !self.off.contains(&hostgroup)
    }

    fn sees(&self, hostgroup: u32, _writer: u32) -> bool {
        self.takes(hostgroup, 0) && !self.stale.contains(&hostgroup)
    }

    fn has(&self, hostgroup: u32, _gtids: &gtid::Set) -> bool {
        self.sees(hostgroup, 0)
    }

    fn is_fresh(&self, hostgroup: u32, _age: plan::Age) -> bool {
        self.sees(hostgroup, 0)
    }
}

fn in_lines(refusals: Vec<config::Refusal>) -> String {
    refusals
        .iter()
        .map(|refusal| format!("  {refusal}\n"))
        .collect()
}

fn rule_id(snapshot: &Snapshot, position: u32) -> String {
    snapshot.rules.chain()[position as usize]
        .rule_id
        .to_string()
}

fn fast(text: &str) -> FastRoutingRow {
    let parts: Vec<_> = text.split('|').map(str::trim).collect();
    let [user, schema, flag, hostgroup] = parts[..] else {
        panic!("fast: user | schema | flag | hostgroup")
    };
    FastRoutingRow {
        username: user.into(),
        schemaname: schema.into(),
        flagIN: flag.parse().unwrap(),
        destination_hostgroup: hostgroup.parse().unwrap(),
        comment: String::new(),
    }
}

fn session(text: &str) -> Session {
    let mut session = Session::default();
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').expect("name=value");
        let number = || value.parse().unwrap();
        match name {
            "user" => session.user.username = value.into(),
            "default_hostgroup" => session.user.default_hostgroup = number(),
            "transaction_persistent" => session.user.transaction_persistent = number(),
            "fast_forward" => session.user.fast_forward = number(),
            "schema" => session.schema = value.into(),
            "client" => session.client = value.into(),
            "listener" => {
                let (address, port) = value.rsplit_once(':').expect("listener=address:port");
                session.listener = (address.into(), port.parse().unwrap());
            }
            "transaction" => session.transaction = Some(value.parse().unwrap()),
            "locked" => session.locked = Some(value.parse().unwrap()),
            "script_hostgroup" => session.routed.hostgroup = Some(value.parse().unwrap()),
            "script_cache_ttl" => session.routed.cache_ttl_ms = Some(value.parse().unwrap()),
            "flag" => session.flag = Some(value.parse().unwrap()),
            "autocommit" => session.autocommit = value == "1",
            "attributes" => session.user.attributes = value.into(),
            "wrote" => session.wrote = Some(value.parse().unwrap()),
            "lexing" => {
                session.lexing = if value == "shifts" {
                    sql::Lexing::Shifts(sql::Shift::Gbk)
                } else {
                    sql::Lexing::NoEscapes
                }
            }
            "sql_mode" => session.sql_mode = Some(value.to_owned()),
            "digests" => session.digests = value == "1",
            "command" if value == "init_db" => session.guarded = Guarded::Schema,
            "command" => session.guarded = Guarded::Nothing,
            "random" => session.random = (value.parse::<f64>().unwrap() * u64::MAX as f64) as u64,
            _ => panic!("what is {name}?"),
        }
    }
    session
}

fn rule(text: &str) -> RuleRow {
    let (rule_id, columns) = text.split_once(':').expect("rule <id>: columns");
    let mut row = RuleRow {
        rule_id: rule_id.parse().unwrap(),
        active: 1,
        ..RuleRow::default()
    };
    for pair in columns.split(" | ").filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=').expect("column=value");
        let (name, value) = (name.trim(), value.trim_end());
        let text = || (value != "NULL").then(|| value.to_owned());
        let number = || Some(value.parse().unwrap());
        let given = value.parse().unwrap_or_default();
        match name {
            "active" => row.active = given,
            "username" => row.username = text(),
            "schemaname" => row.schemaname = text(),
            "flagIN" => row.flagIN = given,
            "client_addr" => row.client_addr = text(),
            "proxy_addr" => row.proxy_addr = text(),
            "proxy_port" => row.proxy_port = number(),
            "digest" => row.digest = text(),
            "match_digest" => row.match_digest = text(),
            "match_pattern" => row.match_pattern = text(),
            "negate_match_pattern" => row.negate_match_pattern = given,
            "re_modifiers" => row.re_modifiers = text(),
            "flagOUT" => row.flagOUT = number(),
            "replace_pattern" => row.replace_pattern = text(),
            "destination_hostgroup" => row.destination_hostgroup = number(),
            "cache_ttl" => row.cache_ttl = number(),
            "cache_empty_result" => row.cache_empty_result = number(),
            "cache_timeout" => row.cache_timeout = number(),
            "reconnect" => row.reconnect = number(),
            "timeout" => row.timeout = number(),
            "retries" => row.retries = number(),
            "delay" => row.delay = number(),
            "next_query_flagIN" => row.next_query_flagIN = number(),
            "mirror_hostgroup" => row.mirror_hostgroup = number(),
            "mirror_flagOUT" => row.mirror_flagOUT = number(),
            "error_msg" => row.error_msg = text(),
            "OK_msg" => row.OK_msg = text(),
            "sticky_conn" => row.sticky_conn = number(),
            "multiplex" => row.multiplex = number(),
            "gtid_from_hostgroup" => row.gtid_from_hostgroup = number(),
            "log" => row.log = number(),
            "apply" => row.apply = given,
            "attributes" => row.attributes = value.into(),
            _ => panic!("what is {name}?"),
        }
    }
    row
}
