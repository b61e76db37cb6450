//! The compiled rules against a plain reading of the chain, over rules and statements made from
//! bytes.
//!
//! [`World::told`] is the reference: it walks over the rows one by one, as the columns are
//! documented, with no index, no filter and no memory. [`World::decided`] is what ships.
//! `tests/differential.rs` runs many thousands, and shows that planted mistakes are seen; the fuzz
//! target `plan_rules` looks for more.

use crate::{Answer, Digest, SessionFacts, Statement, pick_by, plan, plan_with};
use config::{
    Dialect, FastRoutingRow, Memo, Pattern, Replacement, RuleRow, Rules, Snapshot, User, UserRow,
    Users, Variables,
};
use sql::DigestOptions;
use std::sync::Arc;

/// Rules, and statements that ask for decisions.
#[derive(Debug)]
pub struct World {
    /// Rows of `mysql_query_rules`.
    pub rules: Vec<RuleRow>,
    fast: Vec<FastRoutingRow>,
    variables: Variables,
    dialect: Dialect,
    questions: Vec<Question>,
}

#[derive(Debug)]
struct Question {
    user: Arc<User>,
    schema: &'static str,
    client: &'static str,
    proxy_addr: &'static str,
    proxy_port: u16,
    flag: Option<u32>,
    text: Vec<u8>,
    digest: Option<(u64, Vec<u8>)>,
    random: u64,
}

/// Choices, from bytes; zeros behind their end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }

    /// Once in so many times.
    fn once_in(&mut self, times: u8) -> bool {
        self.byte() % times == times - 1
    }

    fn some<T>(&mut self, times: u8, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.once_in(times).then(|| value(self))
    }
}

const USERS: [&str; 3] = ["anna", "bob", "an"];
const SCHEMAS: [&str; 3] = ["shop", "s", "logs"];
const CLIENTS: [&str; 5] = ["10.0.0.1", "10.0.0.12", "10.1.0.1", "192.168.0.1", ""];
const CLIENT_PATTERNS: [&str; 8] = [
    "10.0.0.1",
    "10.%",
    "10.0.0.1%",
    "%.1",
    "%",
    "192.%.1",
    "",
    "10.0.%",
];
const ADDRESSES: [&str; 2] = ["127.0.0.1", "::1"];
const PORTS: [u16; 2] = [6033, 6034];
const HEADS: [&str; 6] = [
    "SELECT a",
    "INSERT INTO",
    "UPDATE",
    "select",
    "DELETE FROM",
    "SELECT (a)",
];
const TABLES: [&str; 6] = ["t1", "t10", "users", "t2", "Users", "or"];
const TAILS: [&str; 7] = [
    "",
    " WHERE id=7",
    " FOR UPDATE",
    " WHERE n='x;FROM t1'",
    "\n",
    " LIMIT 10\nFOR UPDATE",
    " JOIN t2 USING (id)",
];
const EXPRESSIONS: [&str; 14] = [
    "",
    ".*",
    "^",
    "$",
    "a|b",
    "^SELECT(?!.*FOR UPDATE)",
    r"(\w)\1",
    "^(SELECT|UPDATE)",
    "[Tt]1",
    r"^\s*SELECT",
    "FROM (t1|users)$",
    "(?i)select",
    "(?:FROM )?t1",
    "^SELECT a?(?=.*t1)",
];
const RULES_OF_A_LARGE_WORLD: i64 = 3000;
const REPLACEMENTS: [&str; 5] = ["t2", r"\0 ", "users", "", "UPDATE t10"];

/// Weighted flags, as a rule's `attributes` has them and as they are.
const FLAG_OUTS: [(&str, &[(i64, u32)]); 3] = [
    (
        r#""flagOUTs":[{"id":1,"weight":2},{"id":2,"weight":3}]"#,
        &[(1, 2), (2, 3)],
    ),
    (
        r#""flagOUTs":[{"id":0,"weight":0},{"id":2,"weight":1},{"id":0,"weight":1}]"#,
        &[(0, 0), (2, 1), (0, 1)],
    ),
    (r#""flagOUTs":[{"id":3,"weight":7}]"#, &[(3, 7)]),
];

fn attributes(c: &mut Choices<'_>) -> String {
    let parts = [
        c.some(20, |c| c.of(&FLAG_OUTS).0.to_owned()),
        c.some(16, |c| format!("\"cache_invalidate\":{}", c.once_in(2))),
        c.some(16, |c| format!("\"max_rows\":{}", u64::from(c.byte()) + 1)),
        c.some(16, |c| format!("\"mirror_compare\":{}", c.once_in(2))),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", parts.join(","))
    }
}

/// An expression of this dialect.
fn expression(c: &mut Choices<'_>, dialect: Dialect) -> String {
    let made = any_expression(c);
    // RE2 neither looks around nor back.
    if dialect == Dialect::Re2 && Pattern::compile(&made, false, dialect).is_err() {
        "^SELECT".into()
    } else {
        made
    }
}

fn any_expression(c: &mut Choices<'_>) -> String {
    if c.once_in(4) {
        return c.of(&EXPRESSIONS).into();
    }
    let start = c.of(&["^", "^", ""]);
    let head = c.of(&HEADS).replace('(', r"\(").replace(')', r"\)");
    let between = c.of(&[".*", ".* FROM ", " ", ".*(FROM|INTO) ", ".+"]);
    let end = c.of(&["", "$", " ", ".*", "|x", "?"]);
    match c.byte() % 4 {
        0 => format!("{start}{head}{end}"),
        1 => format!("{}{end}", c.of(&TABLES)),
        _ => format!("{start}{head}{between}{}{end}", c.of(&TABLES)),
    }
}

/// Style of most rules of a world: by names or by expressions, and by which.
#[derive(Clone, Copy)]
struct Style {
    named: u8,
    match_digest: u8,
    match_pattern: u8,
}

const STYLES: [Style; 4] = [
    Style {
        named: 3,
        match_digest: 2,
        match_pattern: 3,
    },
    Style {
        named: 40,
        match_digest: 1,
        match_pattern: 12,
    },
    Style {
        named: 40,
        match_digest: 12,
        match_pattern: 1,
    },
    Style {
        named: 2,
        match_digest: 8,
        match_pattern: 8,
    },
];

fn row(
    c: &mut Choices<'_>,
    rule_id: i64,
    digests: &[u64],
    style: Style,
    dialect: Dialect,
) -> RuleRow {
    let text = |text: &str| text.to_owned();
    // An empty name asks nothing.
    let name = |c: &mut Choices<'_>, names: &[&str]| {
        if c.once_in(12) {
            String::new()
        } else {
            text(c.of(names))
        }
    };
    let match_pattern = c.some(style.match_pattern, |c| expression(c, dialect));
    RuleRow {
        rule_id,
        active: i64::from(!c.once_in(16)),
        username: c.some(style.named, |c| name(c, &USERS)),
        schemaname: c.some(style.named, |c| name(c, &SCHEMAS)),
        flagIN: c.some(3, |c| i64::from(c.byte() % 3)).unwrap_or_default(),
        client_addr: c.some(6, |c| text(c.of(&CLIENT_PATTERNS))),
        proxy_addr: c.some(12, |c| text(c.of(&ADDRESSES))),
        proxy_port: c.some(12, |c| i64::from(c.of(&PORTS))),
        digest: c.some(8, |c| format!("0x{:X}", c.of(digests))),
        match_digest: c.some(style.match_digest, |c| expression(c, dialect)),
        negate_match_pattern: i64::from(c.once_in(12)),
        re_modifiers: c
            .of(&[
                Some("CASELESS"),
                Some("CASELESS,GLOBAL"),
                None,
                Some("GLOBAL"),
            ])
            .map(text),
        flagOUT: c.some(5, |c| i64::from(c.byte() % 3)),
        replace_pattern: if match_pattern.is_some() {
            c.some(2, |c| text(c.of(&REPLACEMENTS)))
        } else {
            None
        },
        match_pattern,
        destination_hostgroup: c.some(2, |c| i64::from(c.byte() % 8) - 1),
        cache_ttl: c.some(16, |c| i64::from(c.byte()) + 1),
        cache_empty_result: c.some(16, |c| i64::from(c.byte() % 2)),
        cache_timeout: c.some(16, |c| i64::from(c.byte())),
        reconnect: c.some(16, |c| i64::from(c.byte() % 2)),
        timeout: c.some(16, |c| i64::from(c.byte())),
        retries: c.some(16, |c| i64::from(c.byte())),
        delay: c.some(16, |c| i64::from(c.byte())),
        next_query_flagIN: c.some(16, |c| i64::from(c.byte() % 3)),
        mirror_hostgroup: c.some(24, |c| i64::from(c.byte() % 4) + 50),
        mirror_flagOUT: c.some(32, |c| i64::from(c.byte() % 4)),
        gtid_from_hostgroup: c.some(32, |c| i64::from(c.byte() % 4) - 1),
        error_msg: c.some(24, |_| format!("error {rule_id}")),
        OK_msg: c.some(24, |_| format!("ok {rule_id}")),
        multiplex: c.some(16, |c| i64::from(c.byte() % 3)),
        log: c.some(16, |c| i64::from(c.byte() % 2)),
        apply: i64::from(c.once_in(8)),
        attributes: attributes(c),
        ..RuleRow::default()
    }
}

fn question(c: &mut Choices<'_>, users: &[Arc<User>]) -> Question {
    let table = c.of(&TABLES);
    let text = match c.byte() % 8 {
        0 => format!("{} {table} VALUES ({})", c.of(&HEADS), c.byte()),
        1 => format!("{}{}", c.of(&HEADS), c.of(&TAILS)),
        2 => format!("{table} ").repeat(usize::from(c.byte())),
        _ => format!("{} FROM {table}{}", c.of(&HEADS), c.of(&TAILS)),
    };
    let mut digest = Vec::new();
    let hash = sql::digest(text.as_bytes(), &DigestOptions::default(), &mut digest);
    Question {
        user: Arc::clone(&users[usize::from(c.byte()) % users.len()]),
        schema: c.of(&SCHEMAS),
        client: c.of(&CLIENTS),
        proxy_addr: c.of(&ADDRESSES),
        proxy_port: c.of(&PORTS),
        flag: c.some(6, |c| u32::from(c.byte() % 4)),
        text: text.into_bytes(),
        digest: (!c.once_in(12)).then_some((hash, digest)),
        random: u64::from_le_bytes(std::array::from_fn(|_| c.byte())),
    }
}

impl World {
    /// From bytes: the more there are, the richer it is. [`Self::LARGE`] of them make thousands of
    /// rules.
    ///
    /// # Panics
    /// Never: users and variables are valid.
    #[must_use]
    pub fn made_of(bytes: &[u8]) -> Self {
        let mut c = Choices(bytes);
        let iterations = c.of(&["0", "0", "1", "3"]);
        let (dialect, regex) = if c.once_in(4) {
            (Dialect::Re2, "2")
        } else {
            (Dialect::Pcre, "1")
        };
        let values = [
            ("mysql-query_processor_iterations", iterations),
            ("mysql-query_processor_regex", regex),
        ];
        let (variables, _) = Variables::build(values).expect("valid values");
        let rows = USERS.map(|name| UserRow {
            username: name.into(),
            default_hostgroup: 9,
            ..UserRow::default()
        });
        let users = Users::build(rows, &variables).expect("valid users");
        let users: Vec<_> = USERS
            .iter()
            .filter_map(|name| users.frontend(name).map(Arc::clone))
            .collect();
        let questions: Vec<_> = (0..4 + c.byte() % 24)
            .map(|_| question(&mut c, &users))
            .collect();
        let digests: Vec<u64> = questions
            .iter()
            .map(|question| question.digest.as_ref().map_or(1, |(hash, _)| *hash))
            .collect();
        let fast = (0..c.byte() % 6).map(|n| FastRoutingRow {
            username: if c.once_in(3) {
                String::new()
            } else {
                c.of(&USERS).into()
            },
            schemaname: c.of(&SCHEMAS).into(),
            flagIN: i64::from(n % 3),
            destination_hostgroup: 100 + i64::from(n),
            comment: String::new(),
        });
        let mut fast: Vec<_> = fast.collect();
        fast.sort_by(|a, b| {
            (&a.username, &a.schemaname, a.flagIN).cmp(&(&b.username, &b.schemaname, b.flagIN))
        });
        fast.dedup_by(|a, b| {
            (&a.username, &a.schemaname, a.flagIN) == (&b.username, &b.schemaname, b.flagIN)
        });
        let few = 1 + i64::from(c.byte() % 80);
        let count = if bytes.len() < Self::LARGE {
            few
        } else {
            RULES_OF_A_LARGE_WORLD
        };
        let style = c.of(&STYLES);
        let rules = (0..count)
            .map(|rule_id| row(&mut c, rule_id, &digests, style, dialect))
            .collect();
        Self {
            rules,
            fast,
            variables,
            dialect,
            questions,
        }
    }

    /// So many bytes make a large world: enough for each of its rules.
    pub const LARGE: usize = 200_000;

    /// Tells what the compiled form of these rows decides, one line for each statement. Every other
    /// one is asked with `memo`.
    ///
    /// # Errors
    /// The rows are refused, with the reasons.
    pub fn decided(&self, rules: &[RuleRow], memo: &mut Memo) -> Result<Vec<String>, String> {
        let rules = Rules::build(rules.to_vec(), self.fast.clone(), &self.variables);
        let rules = rules.map_err(|refused| {
            refused
                .iter()
                .map(|one| format!("{one}; "))
                .collect::<String>()
        })?;
        let variables = Arc::new(self.variables.clone());
        let snapshot = Snapshot {
            rules: Arc::new(rules),
            variables,
            ..Snapshot::default()
        };
        let decide = |(n, question): (usize, &Question)| {
            let statement = question.statement();
            let session = question.session();
            let plan = if n.is_multiple_of(2) {
                plan_with(&snapshot, &session, &statement, question.random, memo)
            } else {
                plan(&snapshot, &session, &statement, question.random)
            };
            let hits: Vec<_> = plan
                .why
                .hits()
                .iter()
                .map(|at| snapshot.rules.chain()[*at as usize].rule_id)
                .collect();
            let text = plan.leg.statement.of(&question.text);
            let said = match (&plan.answer, plan.hostgroup()) {
                (Some(Answer::Say(words)), _) => format!("ok '{words}'"),
                (Some(Answer::Refuse(words) | Answer::NotSupported(words)), _) => {
                    format!("error '{words}'")
                }
                (Some(Answer::Number { count, .. }), _) => format!("numbers for {count}"),
                (Some(Answer::Partition { bucket, .. }), _) => format!("partition {bucket:?}"),
                (Some(Answer::Columns(_) | Answer::LookUp(_)), _) => "more".to_owned(),
                (None, hostgroup) => format!("hostgroup {hostgroup}"),
            };
            let mirror = plan.mirror.as_ref().map(|mirror| {
                let text = mirror.leg.statement.of(&question.text);
                let limits = (
                    mirror.timeout_ms.map(u64::cast_signed),
                    mirror.delay_ms.map(i64::from),
                );
                copied_to(
                    i64::from(mirror.leg.hostgroup),
                    text,
                    limits,
                    mirror.compare,
                )
            });
            let set = Set {
                cache_ttl: plan.cache_ttl_ms.map(u64::cast_signed),
                cache_empty_result: plan.cache_empty_result.map(i64::from),
                cache_timeout: plan.cache_timeout_ms.map(i64::from),
                cache_invalidate: plan.cache_invalidate.map(i64::from),
                max_rows: plan.rows_max().map(u64::cast_signed),
                gtid_from_hostgroup: plan.gtid_from_hostgroup.map(i64::from),
                reconnect: plan.reconnect.map(i64::from),
                timeout: plan.timeout_ms.map(u64::cast_signed),
                retries: plan.retries.map(i64::from),
                delay: plan.delay_ms.map(i64::from),
                next_query_flag_in: plan.next_flag_in.map(i64::from),
                multiplex: plan.multiplex.map(i64::from),
                log: plan.log.map(i64::from),
                ..Set::default()
            };
            line(&said, &hits, text, &set, mirror.as_deref())
        };
        Ok(self.questions.iter().enumerate().map(decide).collect())
    }

    /// Tells what a plain reading of the chain says, one line for each statement.
    ///
    /// # Panics
    /// An expression does not compile; made ones do.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let mut chain: Vec<_> = self
            .rules
            .iter()
            .filter(|row| row.active == 1)
            .map(|row| Read::of(row, self.dialect))
            .collect();
        chain.sort_by_key(|read| read.row.rule_id);
        self.questions
            .iter()
            .map(|question| self.answer(&chain, question))
            .collect()
    }

    fn answer(&self, chain: &[Read<'_>], question: &Question) -> String {
        let begin = i64::from(question.flag.unwrap_or(0));
        let mut walked = self.walk(chain, question, begin, question.text.clone());
        let said = match (&walked.ok, &walked.error) {
            (Some(words), _) => format!("ok '{words}'"),
            (None, Some(words)) => format!("error '{words}'"),
            (None, None) => {
                format!("hostgroup {}", walked.hostgroup.unwrap_or(9))
            }
        };
        let mut mirror = None;
        let (hostgroup, flag) = (walked.set.mirror_hostgroup, walked.set.mirror_flag_out);
        if (hostgroup.is_some() || flag.is_some()) && !walked.is_answered() {
            let (text, compare) = (walked.text.clone(), walked.set.mirror_compare == Some(1));
            let default = hostgroup.unwrap_or(9);
            mirror = match flag.map(|flag| self.walk(chain, question, flag, text.clone())) {
                None => Some(copied_to(default, &text, (None, None), compare)),
                Some(copy) => {
                    walked.hits.extend(&copy.hits);
                    let to = copy.hostgroup.unwrap_or(default);
                    (!copy.is_answered()).then(|| {
                        copied_to(to, &copy.text, (copy.set.timeout, copy.set.delay), compare)
                    })
                }
            };
        }
        if walked.set.gtid_from_hostgroup.is_some() {
            // What must see the latest writes is not cached.
            (walked.set.cache_ttl, walked.set.cache_empty_result) = (None, None);
            (walked.set.cache_timeout, walked.set.cache_invalidate) = (None, None);
        }
        // The rest of the line has no place for what the copy says by itself.
        (
            walked.set.mirror_hostgroup,
            walked.set.mirror_flag_out,
            walked.set.mirror_compare,
        ) = (None, None, None);
        line(
            &said,
            &walked.hits,
            &walked.text,
            &walked.set,
            mirror.as_deref(),
        )
    }

    fn walk<'a>(
        &self,
        chain: &[Read<'a>],
        question: &Question,
        mut flag: i64,
        mut text: Vec<u8>,
    ) -> Walked<'a> {
        let mut again = self.variables.mysql_query_processor_iterations;
        let (mut hits, mut set, mut hostgroup) = (Vec::new(), Set::default(), None);
        let (mut ok, mut error, mut applied) = (None, None, false);
        let mut at = 0;
        while let Some(read) = chain.get(at) {
            let position = at as u32;
            at += 1;
            if !read.matches(question, flag, &text) {
                continue;
            }
            let row = read.row;
            hits.push(row.rule_id);
            hostgroup = row
                .destination_hostgroup
                .filter(|hostgroup| *hostgroup >= 0)
                .or(hostgroup);
            set.overrule(row);
            ok = row.OK_msg.as_ref().or(ok);
            error = row.error_msg.as_ref().or(error);
            if let (Some(pattern), Some(with)) = (&read.pattern, &row.replace_pattern) {
                let with = Replacement::parse(with, pattern.groups()).expect("made ones are valid");
                let everywhere = row
                    .re_modifiers
                    .as_ref()
                    .is_some_and(|words| words.contains("GLOBAL"));
                if let Ok(Some(replaced)) = pattern.replace(&text, &with, everywhere) {
                    text = replaced.into();
                }
            }
            let mut out = row.flagOUT;
            if out.is_none()
                && let Some((_, outs)) = FLAG_OUTS
                    .iter()
                    .find(|(words, _)| row.attributes.contains(words))
            {
                out = pick_by(
                    outs,
                    |(_, weight)| *weight,
                    question.random.rotate_left(position & 63),
                )
                .map(|at| outs[at].0);
            }
            flag = out.unwrap_or(flag);
            if row.apply == 1 {
                applied = true;
                break;
            }
            if out.is_some() && again > 0 {
                again -= 1;
                at = 0;
            }
        }
        if !applied {
            let find = |user: &str| {
                let same = |row: &&FastRoutingRow| {
                    row.username == user && row.schemaname == question.schema && row.flagIN == flag
                };
                self.fast
                    .iter()
                    .find(same)
                    .map(|row| row.destination_hostgroup)
            };
            hostgroup = find(&question.user.username)
                .or_else(|| find(""))
                .or(hostgroup);
        }
        Walked {
            hits,
            set,
            hostgroup,
            ok,
            error,
            text,
        }
    }

    /// Calls `each` with the compiled rules, a session and its digest, for each statement that has
    /// one.
    #[cfg(test)]
    pub(crate) fn each_digest(
        &self,
        mut each: impl FnMut(&Snapshot, &SessionFacts<'_>, Digest<'_>),
    ) {
        let rules = Rules::build(self.rules.clone(), self.fast.clone(), &self.variables)
            .expect("made rows are valid");
        let variables = Arc::new(self.variables.clone());
        let snapshot = Snapshot {
            rules: Arc::new(rules),
            variables,
            ..Snapshot::default()
        };
        for question in &self.questions {
            if let Some((hash, text)) = &question.digest {
                each(&snapshot, &question.session(), Digest { hash: *hash, text });
            }
        }
    }

    /// The first statement of which the two do not say the same, in words.
    ///
    /// # Errors
    /// The rows are refused, with the reasons.
    pub fn disagreement(
        &self,
        rules: &[RuleRow],
        memo: &mut Memo,
    ) -> Result<Option<String>, String> {
        let (decided, told) = (self.decided(rules, memo)?, self.told());
        let pairs = decided.iter().zip(&told).zip(&self.questions);
        let wrong = |((decided, told), question): ((&String, &String), &Question)| {
            (decided != told)
                .then(|| format!("{question:?}\n  plain:    {told}\n  compiled: {decided}"))
        };
        Ok(pairs.filter_map(wrong).next())
    }
}

impl Question {
    fn statement(&self) -> Statement<'_> {
        let digest = self.digest.as_ref();
        Statement {
            text: &self.text,
            digest: digest.map(|(hash, text)| Digest { hash: *hash, text }),
            comment: None,
            prepared: None,
            parameters: None,
            prepares: false,
            guarded: crate::Guarded::Text,
            routed: crate::Routed::default(),
            numbers: shards::Numbering::Whichever,
            making: shards::Making::Whichever,
            columns: None,
            looked: None,
            answered: None,
        }
    }

    fn session(&self) -> SessionFacts<'_> {
        SessionFacts {
            user: &self.user,
            schema: self.schema,
            client_addr: self.client,
            proxy_addr: self.proxy_addr,
            proxy_port: self.proxy_port,
            in_transaction: None,
            begun: false,
            branches: false,
            locked: None,
            next_flag_in: self.flag,
            autocommit: true,
            split: crate::SplitFacts::NONE,
        }
    }
}

/// Result of a walk along the chain.
struct Walked<'a> {
    hits: Vec<i64>,
    set: Set,
    hostgroup: Option<i64>,
    ok: Option<&'a String>,
    error: Option<&'a String>,
    text: Vec<u8>,
}

impl Walked<'_> {
    const fn is_answered(&self) -> bool {
        self.ok.is_some() || self.error.is_some()
    }
}

/// A row with its expressions.
struct Read<'a> {
    row: &'a RuleRow,
    digest: Option<u64>,
    match_digest: Option<Pattern>,
    pattern: Option<Pattern>,
}

impl<'a> Read<'a> {
    fn of(row: &'a RuleRow, dialect: Dialect) -> Self {
        let caseless = row
            .re_modifiers
            .as_ref()
            .is_some_and(|words| words.contains("CASELESS"));
        let compiled = |text: &Option<String>| {
            text.as_ref()
                .map(|text| Pattern::compile(text, caseless, dialect).expect("made ones are valid"))
        };
        let hex = |text: &String| {
            u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("made so")
        };
        Self {
            row,
            digest: row.digest.as_ref().map(hex),
            match_digest: compiled(&row.match_digest),
            pattern: compiled(&row.match_pattern),
        }
    }

    fn matches(&self, question: &Question, flag: i64, text: &[u8]) -> bool {
        let row = self.row;
        let same = |asked: &Option<String>, is: &str| {
            asked
                .as_ref()
                .is_none_or(|asked| asked.is_empty() || asked == is)
        };
        let digest = question.digest.as_ref();
        let wanted = row.negate_match_pattern == 0;
        row.flagIN == flag
            && same(&row.username, &question.user.username)
            && same(&row.schemaname, question.schema)
            && row.client_addr.as_ref().is_none_or(|like| {
                like.is_empty() || is_like(like.as_bytes(), question.client.as_bytes())
            })
            && same(&row.proxy_addr, question.proxy_addr)
            && row
                .proxy_port
                .is_none_or(|port| port == i64::from(question.proxy_port))
            && self
                .digest
                .is_none_or(|hash| digest.is_some_and(|(is, _)| *is == hash))
            && self
                .match_digest
                .as_ref()
                .is_none_or(|it| digest.is_some_and(|(_, text)| it.is_match(text) == wanted))
            && self
                .pattern
                .as_ref()
                .is_none_or(|it| it.is_match(text) == wanted)
    }
}

/// `%` is any run of characters.
fn is_like(like: &[u8], text: &[u8]) -> bool {
    match like {
        [] => text.is_empty(),
        [b'%', rest @ ..] => (0..=text.len()).any(|at| is_like(rest, &text[at..])),
        [first, rest @ ..] => text.first() == Some(first) && is_like(rest, &text[1..]),
    }
}

/// Values that rules set besides the hostgroup and the text.
#[derive(Debug, Default)]
struct Set {
    cache_ttl: Option<i64>,
    cache_empty_result: Option<i64>,
    cache_timeout: Option<i64>,
    cache_invalidate: Option<i64>,
    max_rows: Option<i64>,
    gtid_from_hostgroup: Option<i64>,
    mirror_hostgroup: Option<i64>,
    mirror_flag_out: Option<i64>,
    mirror_compare: Option<i64>,
    reconnect: Option<i64>,
    timeout: Option<i64>,
    retries: Option<i64>,
    delay: Option<i64>,
    next_query_flag_in: Option<i64>,
    multiplex: Option<i64>,
    log: Option<i64>,
}

impl Set {
    fn overrule(&mut self, row: &RuleRow) {
        let member = |name: &str| {
            let value = row
                .attributes
                .split_once(&format!("\"{name}\":"))?
                .1
                .split([',', '}'])
                .next()?;
            value
                .parse::<bool>()
                .map(i64::from)
                .or_else(|_| value.parse())
                .ok()
        };
        for (earlier, later) in [
            (&mut self.cache_ttl, row.cache_ttl),
            (&mut self.cache_empty_result, row.cache_empty_result),
            (&mut self.cache_timeout, row.cache_timeout),
            (&mut self.cache_invalidate, member("cache_invalidate")),
            (&mut self.max_rows, member("max_rows")),
            (
                &mut self.gtid_from_hostgroup,
                row.gtid_from_hostgroup.filter(|hostgroup| *hostgroup >= 0),
            ),
            (&mut self.mirror_hostgroup, row.mirror_hostgroup),
            (&mut self.mirror_flag_out, row.mirror_flagOUT),
            (&mut self.mirror_compare, member("mirror_compare")),
            (&mut self.reconnect, row.reconnect),
            (&mut self.timeout, row.timeout),
            (&mut self.retries, row.retries),
            (&mut self.delay, row.delay),
            (&mut self.next_query_flag_in, row.next_query_flagIN),
            (&mut self.multiplex, row.multiplex),
            (&mut self.log, row.log),
        ] {
            *earlier = later.or(*earlier);
        }
    }
}

fn line(said: &str, hits: &[i64], text: &[u8], set: &Set, mirror: Option<&str>) -> String {
    format!(
        "{said}; hits {hits:?}; text {:?}; {set:?}; {}",
        String::from_utf8_lossy(text),
        mirror.unwrap_or("no copy")
    )
}

fn copied_to(
    hostgroup: i64,
    text: &[u8],
    (timeout, delay): (Option<i64>, Option<i64>),
    compare: bool,
) -> String {
    let text = String::from_utf8_lossy(text);
    format!(
        "copied to {hostgroup}, timeout {timeout:?}, delay {delay:?}, compared {compare}: {text:?}"
    )
}

/// Body of a fuzz target: rules and statements from bytes; the compiled form decides what a plain
/// reading says.
///
/// # Panics
/// It does not, or the rows are refused.
pub fn fuzz_rules(data: &[u8]) {
    let world = World::made_of(data);
    let mut memo = Memo::default();
    for _ in 0..2 {
        // The second time, what digests match is remembered.
        let wrong = world
            .disagreement(&world.rules, &mut memo)
            .expect("made rows are valid");
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    }
}
