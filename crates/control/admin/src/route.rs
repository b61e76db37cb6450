//! EXPLAIN ROUTE: the plan of a statement, with every rule that was looked at; and what rules in
//! memory would change.

use crate::commands::Question;
use crate::grid::Grid;
use bridge::DigestRow;
use config::{Password, Snapshot, User};
use plan::{COLUMNS, Digest, Guarded, Plan, SessionFacts, Statement};
use sql::template::Read;
use std::borrow::Cow;

/// The steps to the decision, as rows. Of several statements each is decided as behind those before
/// it.
pub(crate) fn explain(
    snapshot: &Snapshot,
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
            ..somebody(user, &schema)
        };
        let plan = one(&mut grid, snapshot, &facts, text, random);
        if matches!(plan.answer, Some(plan::Answer::Refuse(_))) && at < parts.len() {
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

/// How statements are read: as of a session that has set nothing.
const LEXING: sql::Lexing = sql::Lexing::Escapes;

/// What is so before the steps that are counted.
fn before(grid: &mut Grid, what: &str, told: String) {
    grid.push_row([Some("0".into()), None, Some(what.into()), Some(told)]);
}

/// One statement of a session of which these are the facts.
fn one(
    grid: &mut Grid,
    snapshot: &Snapshot,
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
        guarded: Guarded::Text,
    };
    let explained = plan::explain(snapshot, facts, &statement, random);
    for row in explained.rows() {
        grid.push_row(row);
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
            prepared: None,
            guarded: Guarded::Text,
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
    explained.plan
}

/// What a statement of SQL prepares or executes.
enum Inside {
    Nothing,
    /// Rules are asked with this text, and it runs where they say.
    Followed {
        text: Vec<u8>,
        prepared: bool,
    },
    /// It stays on one connection, where the words outside lead.
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

/// A digest under one rule set.
struct Replayed {
    /// The template that fits it, and what that makes of it.
    template: Option<(i64, Box<[u8]>)>,
    replay: plan::Replay,
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
            return Self {
                template: None,
                replay,
            };
        };
        let mut text = Vec::new();
        let hash = sql::digest(&made.text, &snapshot.variables.digest_options(), &mut text);
        let whole = sql::digest(&made.text, &sql::DigestOptions::WHOLE, &mut Vec::new());
        let mut replay = plan::replay(snapshot, facts, Digest { hash, text: &text }, shaped(whole));
        // Whether a statement fits depends on its values, too.
        replay.certain = false;
        Self {
            template: Some((rewrite_id, made.text.into())),
            replay,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let made = |one: &Self| one.template.as_ref().map(|(_, text)| text.clone());
        made(self) == made(other) && self.replay.is_same(&other.replay)
    }

    fn shown(&self, snapshot: &Snapshot) -> String {
        let decided = self.replay.plan.shown(&snapshot.rules);
        match &self.template {
            Some((rewrite_id, text)) => format!(
                "{decided}; template {rewrite_id}: {}",
                String::from_utf8_lossy(text)
            ),
            None => decided.to_string(),
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
