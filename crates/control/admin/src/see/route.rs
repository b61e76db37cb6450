//! EXPLAIN ROUTE: the plan of a statement, with every rule that was looked at; and what rules in
//! memory would change.

use crate::commands::Question;
use crate::grid::Grid;
use bridge::DigestRow;
use config::{Balance, Order, Password, Server, Snapshot, User, WeightZero};
use plan::{COLUMNS, Digest, Guarded, Plan, SessionFacts, Settled, Sight, Statement};
use shards::{Making, Numbering};
use sql::template::Read;
use std::borrow::Cow;
use topology::{Place, Placed, ServerKey, Serves, Why};

/// The steps to the decision, as rows. Of several statements each is decided as behind those before
/// it.
pub(crate) fn explain(
    snapshot: &Snapshot,
    placed: &Placed,
    question: &Question,
    random: u64,
) -> Result<Grid, String> {
    let nobody = anybody();
    let user = match &question.user {
        Some(name) => {
            let known = snapshot.users.frontend(name);
            known
                .ok_or_else(|| {
                    format!("user '{name}' is not in runtime_mysql_users, or is no frontend user")
                })?
                .as_ref()
        }
        None => &nobody,
    };
    let schema = question
        .schema
        .as_deref()
        .or(user.default_schema.as_deref());
    let mut schema = Cow::Borrowed(schema.unwrap_or(&snapshot.variables.mysql_default_schema));
    let (proxy_addr, proxy_port) = question
        .listener
        .as_ref()
        .map_or(("", 0), |(address, port)| (address.as_str(), *port));
    let sql = question.sql.as_bytes();
    let several = if user.fast_forward {
        None
    } else {
        sql::split(sql, LEXING)
    };
    let parts = several.unwrap_or_else(|| std::iter::once(0..sql.len()).collect());
    let (mut next_flag_in, mut in_transaction) = (question.flag, None);
    let mut grid = Grid::new(COLUMNS);
    scripts(&mut grid, snapshot, user);
    for (at, part) in (1..).zip(&parts) {
        let text = &sql[part.clone()];
        if parts.len() > 1 {
            before(
                &mut grid,
                "statement",
                format!("{at} of {}: {}", parts.len(), String::from_utf8_lossy(text)),
            );
        }
        let class = LEXING.class(text);
        if let Some(name) = &class.use_db {
            schema = name.to_string().into();
        }
        let client_addr = question.client.as_deref().unwrap_or_default();
        let facts = SessionFacts {
            client_addr,
            proxy_addr,
            proxy_port,
            next_flag_in,
            in_transaction,
            begun: in_transaction.is_some(),
            branches: in_transaction.is_some() && plan::has_branches(snapshot, user),
            ..somebody(user, &schema)
        };
        let plan = one(&mut grid, (snapshot, placed), &facts, text, random);
        if matches!(
            plan.answer,
            Some(plan::Answer::Refuse(_) | plan::Answer::NotSupported(_))
        ) && at < parts.len()
        {
            before(
                &mut grid,
                "statement",
                "an error ends the text: what stands behind is not reached".to_owned(),
            );
            break;
        }
        next_flag_in = plan.next_flag_in.or(next_flag_in);
        in_transaction = match (class.begins_transaction, class.ends_transaction) {
            (true, _) => Some(plan.hostgroup()),
            (false, true) => None,
            (false, false) => in_transaction,
        };
    }
    Ok(grid)
}

/// The servers as they are for a session that has written nothing.
struct Placement<'a>(&'a Snapshot, &'a Placed);

impl Placement<'_> {
    /// Whether a server may serve by its weight, if others cannot.
    fn has_weight(&self, server: &Server) -> bool {
        let zero = self.0.servers.weight_zero(server.hostgroup);
        server.weight > 0 || zero == WeightZero::Last
    }

    /// Whether a server takes work that another with a weight would take.
    fn is_first(place: &Place) -> bool {
        place.serves == Serves::Yes && place.server.weight > 0
    }

    fn of(&self, hostgroup: u32) -> impl Iterator<Item = &Place> + Clone {
        self.1.hostgroups.get(&hostgroup).into_iter().flatten()
    }

    /// Addresses of names in a hostgroup that are not in use, and why.
    fn elsewhere(&self, hostgroup: u32) -> impl Iterator<Item = (&ServerKey, &str, &Why)> {
        let rows = self.0.servers.hostgroup(hostgroup);
        let rows = rows.map_or(&[][..], |one| one.servers.as_slice());
        let is_here = move |name: &str, port: u16| {
            let of_row = rows
                .iter()
                .any(|row| *row.hostname == *name && row.port == port);
            let mut placed = self.of(hostgroup);
            of_row || placed.any(|place| *place.server.hostname == *name)
        };
        let all = self.1.elsewhere.iter();
        let here = all.filter(move |(key, (name, _))| is_here(name, key.port));
        here.map(|(key, (name, why))| (key, &**name, why))
            .filter(|(_, _, why)| **why != Why::ByAddress)
    }

    /// Whether a server may serve, in an operator's words.
    fn told(&self, place: &Place) -> String {
        let server = &place.server;
        match &place.serves {
            Serves::Yes if server.weight > 0 => "may serve".to_owned(),
            Serves::Yes if !self.has_weight(server) => "no: its weight is 0".to_owned(),
            Serves::Yes if self.of(server.hostgroup).any(Self::is_first) => {
                "serves when no other can: its weight is 0".to_owned()
            }
            Serves::Yes => "may serve, since no other can: its weight is 0".to_owned(),
            Serves::Drains(why) => format!("gets nothing new: {why}"),
            Serves::No(why) => format!("no: {why}"),
        }
    }
}

impl Sight for Placement<'_> {
    fn takes(&self, hostgroup: u32, _for_ms: u64) -> bool {
        self.of(hostgroup)
            .any(|place| place.serves == Serves::Yes && self.has_weight(&place.server))
    }

    fn sees(&self, _hostgroup: u32, _writer: u32) -> bool {
        true
    }

    fn has(&self, _hostgroup: u32, _gtids: &gtid::Set) -> bool {
        true
    }

    fn is_fresh(&self, _hostgroup: u32, _age: plan::Age) -> bool {
        true
    }
}

/// Who could serve there, and why the others do not; and where the statement goes instead, if nobody
/// does.
fn servers(
    grid: &mut Grid,
    (snapshot, placed): (&Snapshot, &Placed),
    plan: &mut Plan,
    asked: &[u8],
    user: &User,
) {
    let placement = Placement(snapshot, placed);
    let priority = plan::priority(Some(user), &snapshot.rules, plan.why.hits());
    let mut step = |what: &str, told: String| {
        grid.push_row([None, None, Some(what.into()), Some(told)]);
    };
    let mut list = |hostgroup: u32| {
        if placement.of(hostgroup).next().is_none() {
            step("server", format!("hostgroup {hostgroup} has none"));
        }
        let attributes = snapshot.servers.hostgroup(hostgroup);
        if let Some(balance) = attributes.map(|one| one.attributes.balance)
            && balance != Balance::Weight
        {
            let balance = balance.name();
            step(
                "server",
                format!("hostgroup {hostgroup} chooses by {balance}"),
            );
        }
        let admission = attributes.map(|one| one.attributes.admission);
        if admission.is_some_and(|one| one.order == Order::Priority) {
            let (priority, by) = priority;
            let by = match by {
                Some(rule_id) => format!("rule {rule_id}"),
                None if user.priority().is_some() => "its user".to_owned(),
                None => "nobody: the usual one".to_owned(),
            };
            step(
                "priority",
                format!("{priority} among those who wait for hostgroup {hostgroup}, said by {by}"),
            );
        }
        for place in placement.of(hostgroup) {
            let told = placement.told(place);
            let why = place.why.as_ref().map(|why| format!(" ({why})"));
            let key = ServerKey::of(&place.server);
            let why = why.unwrap_or_default();
            let at = place.at.map(|ip| format!(" at {ip}")).unwrap_or_default();
            step(
                "server",
                format!("{key}{at} in hostgroup {hostgroup}: {told}{why}"),
            );
        }
        for (key, name, why) in placement.elsewhere(hostgroup) {
            step("server", format!("{name} at {key}: not used: {why}"));
        }
    };
    list(plan.hostgroup());
    let (class, writer) = (LEXING.class(asked), user.default_hostgroup);
    let settled = plan.settle(&snapshot.servers, writer, &class, &placement);
    if settled != Settled::AsPlanned {
        list(plan.hostgroup());
    }
}

/// How statements are read: as of a session that has set nothing.
const LEXING: sql::Lexing = sql::Lexing::Escapes;

/// Tells, before the steps that are counted, which scripts are in the way of this user's
/// statements. What is decided below is decided of what they make of the statements.
fn scripts(grid: &mut Grid, snapshot: &Snapshot, user: &User) {
    let serving = |script: &&std::sync::Arc<config::Script>| script.serves(&user.username);
    let names = snapshot.scripts.active().iter().filter(serving);
    let name = |script: &std::sync::Arc<config::Script>| {
        let mut rules = snapshot.rules.chain().iter();
        let is_it = |rule: &config::Rule| rule.script.as_deref() == Some(&*script.name);
        match rules.any(is_it) {
            true => format!("{} (if a rule that names it matches)", script.name),
            false => script.name.to_string(),
        }
    };
    let names: Vec<String> = names.map(name).collect();
    if !names.is_empty() && !user.fast_forward {
        let told = format!(
            "{} sees the statement first, and may answer it or send another",
            names.join(", then ")
        );
        before(grid, "script", told);
    }
}

fn before(grid: &mut Grid, what: &str, told: String) {
    grid.push_row([Some("0".into()), None, Some(what.into()), Some(told)]);
}

/// One statement of a session of which these are the facts.
fn one(
    grid: &mut Grid,
    (snapshot, placed): (&Snapshot, &Placed),
    facts: &SessionFacts<'_>,
    sql: &[u8],
    random: u64,
) -> Plan {
    let (user, schema) = (facts.user, facts.schema);
    let options = snapshot.variables.digest_options();
    let (mut text, mut shown) = (Vec::new(), Vec::new());
    let rewritten = |sql: &[u8]| {
        snapshot
            .rewrites
            .find(&user.username, schema, sql, Read::PLAIN)
            .filter(|_| !user.fast_forward)
    };
    let mut template = |sql: &[u8]| {
        let (rewrite_id, made) = rewritten(sql)?;
        before(
            grid,
            "rewrite",
            format!(
                "template {rewrite_id}: {}",
                String::from_utf8_lossy(&made.text)
            ),
        );
        Some(made.text)
    };
    let mut asked = Cow::Borrowed(sql);
    asked = template(&asked).map_or(asked, Cow::Owned);
    let inside = if user.fast_forward {
        Inside::Nothing
    } else {
        inside(&asked, LEXING)
    };
    if let Inside::Followed { text, prepared } = &inside {
        // Of what is executed at once, none counts.
        let made = if *prepared { template(text) } else { None };
        asked = made.unwrap_or_else(|| text.clone()).into();
    }
    if let Some(words) = inside.words() {
        before(grid, "inside", words);
    }
    let asked = &*asked;
    let digested = sql::digest_with_comment(asked, LEXING, &options, &mut text);
    let statement = Statement {
        text: asked,
        digest: snapshot.needs_digests().then_some(Digest {
            hash: digested.hash,
            text: &text,
        }),
        comment: digested.comment.and_then(|range| asked.get(range)),
        prepared: None,
        parameters: None,
        prepares: false,
        guarded: Guarded::Text,
        routed: plan::Routed::default(),
        numbers: Numbering::Whichever,
        making: Making::Whichever,
        columns: None,
        looked: None,
        answered: None,
    };
    let explained = plan::explain(snapshot, facts, &statement, random);
    let mut plan = explained.plan.clone();
    // The last is the decision.
    let mut rows: Vec<_> = explained.rows().collect();
    let decision = rows.pop();
    for row in rows {
        grid.push_row(row);
    }
    if plan.answer.is_none() {
        servers(grid, (snapshot, placed), &mut plan, asked, user);
    }
    if let Some([step, rule, what, _]) = decision {
        let told = plan.shown(&snapshot.rules).to_string();
        grid.push_row([step, rule, what, Some(told)]);
    }
    if let Inside::Kept(text) = &inside {
        let hash = sql::digest(text, &options, &mut shown);
        let digest = snapshot
            .needs_digests()
            .then_some(Digest { hash, text: &shown });
        let within = Statement {
            text,
            digest,
            comment: None,
            ..statement
        };
        let told = plan::plan(snapshot, facts, &within, random)
            .shown(&snapshot.rules)
            .to_string();
        grid.push_row([
            None,
            None,
            Some("inside".into()),
            Some(format!("by itself: {told}")),
        ]);
    }
    plan
}

/// Statement that a statement of SQL prepares or executes.
enum Inside {
    Nothing,
    /// Rules are asked with this text, and it runs where they say.
    Followed {
        text: Vec<u8>,
        prepared: bool,
    },
    /// Statement that stays on one connection, where the words outside lead.
    Kept(Vec<u8>),
    /// A session's own, or a server's.
    Unknown(String),
}

impl Inside {
    fn words(&self) -> Option<String> {
        Some(match self {
            Self::Nothing => return None,
            Self::Followed { text, .. } => format!(
                "goes as the text that it holds: {}",
                String::from_utf8_lossy(text)
            ),
            Self::Kept(text) => format!(
                "goes by its own words, and its connection stays with the session; of the text that it holds only error_msg and the firewall are obeyed: {}",
                String::from_utf8_lossy(text)
            ),
            Self::Unknown(why) => why.clone(),
        })
    }
}

fn inside(sql: &[u8], lexing: sql::Lexing) -> Inside {
    use sql::dynamic::{Dynamic, Source};
    let (source, prepared) = match sql::dynamic::dynamic(sql, lexing, false) {
        Some(Dynamic::Prepare { source, .. }) => (source, true),
        Some(Dynamic::Immediate {
            source: Source::Text(text),
            computes: true,
            ..
        }) => return Inside::Kept(text.into_owned()),
        Some(Dynamic::Immediate { computes: true, .. }) => (None, false),
        Some(Dynamic::Immediate { source, .. }) => (Some(source), false),
        Some(Dynamic::Execute { computes: true, .. }) => return Inside::Nothing,
        Some(Dynamic::Execute { name, .. }) => {
            return Inside::Unknown(format!(
                "goes as the text that its session has prepared as '{name}': EXPLAIN ROUTE of that text tells where"
            ));
        }
        Some(Dynamic::Deallocate { .. }) | None => return Inside::Nothing,
    };
    match source {
        Some(Source::Text(text)) if sql::dynamic::goes_anywhere(&lexing.class(&text)) => {
            Inside::Followed { text: text.into_owned(), prepared }
        }
        Some(Source::Text(text)) => Inside::Kept(text.into_owned()),
        Some(Source::Variable(name)) => Inside::Unknown(format!(
            "goes as the text that its session has in @{name}, if that is known: EXPLAIN ROUTE of that text tells where"
        )),
        None => Inside::Unknown(
            "only a server can tell what its text is: it goes by its own words, and its connection stays with the session"
                .to_owned(),
        ),
    }
}

/// A template's number, and what it makes of a text.
type Made = (i64, Box<[u8]>);

/// A digest under one rule set.
struct Replayed {
    /// The template that fits it, and what that makes of it.
    template: Option<Made>,
    replay: plan::Replay,
    /// The partitions that it needs, if it names a sharded table.
    width: Option<plan::Width>,
}

impl Replayed {
    fn of(snapshot: &Snapshot, facts: &SessionFacts<'_>, row: &DigestRow) -> Self {
        let text = row.text.as_bytes();
        let found = snapshot
            .rewrites
            .find(&facts.user.username, facts.schema, text, Read::PLAIN);
        let shaped = |digest| {
            (
                sql::Shape {
                    digest,
                    is_shown: row.shown.unwrap_or(true),
                },
                row.shown.is_some() && !row.alike,
            )
        };
        let Some((rewrite_id, made)) = found.filter(|_| !facts.user.fast_forward) else {
            let replay = plan::replay(
                snapshot,
                facts,
                Digest {
                    hash: row.digest,
                    text,
                },
                shaped(row.guarded),
            );
            return Self::spread(snapshot, facts, (None, text), replay);
        };
        let mut text = Vec::new();
        let hash = sql::digest(&made.text, &snapshot.variables.digest_options(), &mut text);
        let whole = sql::digest(&made.text, &sql::DigestOptions::WHOLE, &mut Vec::new());
        let mut replay = plan::replay(snapshot, facts, Digest { hash, text: &text }, shaped(whole));
        // Whether a statement fits depends on its values, too.
        replay.certain = false;
        let template = Some((rewrite_id, made.text.into()));
        Self::spread(snapshot, facts, (template, &text), replay)
    }

    /// With the partitions that statements of this digest need, if nothing else answers them.
    fn spread(
        snapshot: &Snapshot,
        facts: &SessionFacts<'_>,
        (template, text): (Option<Made>, &[u8]),
        mut replay: plan::Replay,
    ) -> Self {
        let width = match replay.plan.answer {
            None => plan::width(snapshot, facts, text),
            Some(_) => None,
        };
        replay.certain &= width.as_ref().is_none_or(|width| width.certain);
        Self {
            template,
            replay,
            width,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let made = |one: &Self| one.template.as_ref().map(|(_, text)| text.clone());
        made(self) == made(other)
            && self.width == other.width
            && match self.width {
                // Rules do not choose the hostgroup of a partition.
                Some(_) => self.replay.is_same_elsewhere(&other.replay),
                None => self.replay.is_same(&other.replay),
            }
    }

    fn shown(&self, snapshot: &Snapshot) -> String {
        let decided = match &self.width {
            Some(width) => format!("by the map of sharded tables: {}", width.words),
            None => self.replay.plan.shown(&snapshot.rules).to_string(),
        };
        match &self.template {
            Some((rewrite_id, text)) => format!(
                "{decided}; template {rewrite_id}: {}",
                String::from_utf8_lossy(text)
            ),
            None => decided,
        }
    }
}

/// Where known digests go under two rule sets: those that would go elsewhere, or `all`. `pause` is
/// called between two of them.
pub(crate) fn replay(
    now: &Snapshot,
    next: &Snapshot,
    digests: &[DigestRow],
    all: bool,
    pause: &dyn Fn(),
) -> Grid {
    let columns = [
        "hostgroup",
        "schemaname",
        "username",
        "client_address",
        "digest",
        "digest_text",
        "count_star",
        "sum_time",
        "changes",
        "certain",
        "runtime",
        "memory",
    ];
    let mut grid = Grid::new(columns);
    for row in digests {
        pause();
        let unknown;
        let user = match now.users.frontend(&row.user) {
            Some(user) => user.as_ref(),
            None => {
                unknown = User {
                    username: row.user.as_ref().into(),
                    ..anybody()
                };
                &unknown
            }
        };
        let facts = SessionFacts {
            client_addr: &row.client_address,
            ..somebody(user, &row.schema)
        };
        let (before, after) = (
            Replayed::of(now, &facts, row),
            Replayed::of(next, &facts, row),
        );
        let changes = !before.is_same(&after);
        if !changes && !all {
            continue;
        }
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        grid.push_row([
            Some(row.hostgroup.to_string()),
            Some(row.schema.to_string()),
            Some(row.user.to_string()),
            Some(row.client_address.to_string()),
            Some(format!("0x{:016X}", row.digest)),
            Some(row.text.to_string()),
            Some(row.count.to_string()),
            Some(row.sum_time_us.to_string()),
            Some(yes(changes)),
            Some(yes(before.replay.certain && after.replay.certain)),
            Some(before.shown(now)),
            Some(after.shown(next)),
        ]);
    }
    grid
}

/// The flag with which the chain ends for a digest, and whether that can be said without the
/// statement's literals.
pub(crate) fn flag_at_end(
    snapshot: &Snapshot,
    user: &str,
    schema: &str,
    client: &str,
    digest: Digest<'_>,
) -> (u32, bool) {
    let unknown;
    let user = match snapshot.users.frontend(user) {
        Some(user) => user.as_ref(),
        None => {
            unknown = User {
                username: user.into(),
                ..anybody()
            };
            &unknown
        }
    };
    plan::flag_at_end(
        snapshot,
        &SessionFacts {
            client_addr: client,
            ..somebody(user, schema)
        },
        digest,
    )
}

/// A session that has done nothing yet.
const fn somebody<'a>(user: &'a User, schema: &'a str) -> SessionFacts<'a> {
    SessionFacts {
        user,
        schema,
        client_addr: "",
        proxy_addr: "",
        proxy_port: 0,
        in_transaction: None,
        begun: false,
        branches: false,
        locked: None,
        next_flag_in: None,
        autocommit: true,
        // As for a session that has not set its sql_mode.
        split: plan::SplitFacts {
            ansi_quotes: plan::AnsiQuotes::Asked,
            ..plan::SplitFacts::NONE
        },
    }
}

/// A user of whom nothing is known: hostgroup 0, no schema.
fn anybody() -> User {
    User {
        username: "".into(),
        password: Password::Empty,
        use_ssl: false,
        default_hostgroup: 0,
        default_schema: None,
        schema_locked: false,
        transaction_persistent: true,
        fast_forward: false,
        max_connections: 0,
        attributes: None,
        comment: None,
    }
}
