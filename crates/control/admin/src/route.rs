//! EXPLAIN ROUTE: the plan of a statement, with every rule that was looked at; and what rules in memory would change.

use crate::commands::Question;
use crate::grid::Grid;
use bridge::DigestRow;
use config::{Password, Snapshot, User};
use plan::{COLUMNS, Digest, Guarded, SessionFacts, Statement};

/// The steps to the decision, as rows.
pub(crate) fn explain(snapshot: &Snapshot, question: &Question, random: u64) -> Result<Grid, String> {
    let nobody = anybody();
    let user = match &question.user {
        Some(name) => {
            let known = snapshot.users.frontend(name);
            known.ok_or_else(|| format!("user '{name}' is not in runtime_mysql_users, or is no frontend user"))?.as_ref()
        }
        None => &nobody,
    };
    let variables = &snapshot.variables;
    let schema = question.schema.as_deref().or(user.default_schema.as_deref()).unwrap_or(&variables.mysql_default_schema);
    let options = variables.digest_options();
    let mut text = Vec::new();
    let lexing = sql::Lexing::Escapes;
    let rewritten = snapshot.rewrites.find(&user.username, schema, question.sql.as_bytes(), lexing).filter(|_| !user.fast_forward);
    let asked = rewritten.as_ref().map_or(question.sql.as_bytes(), |(_, made)| &made.text);
    let digested = sql::digest_with_comment(asked, lexing, &options, &mut text);
    let statement = Statement {
        text: asked,
        digest: snapshot.needs_digests().then_some(Digest { hash: digested.hash, text: &text }),
        comment: digested.comment.and_then(|range| asked.get(range)),
        prepared: None,
        guarded: Guarded::Text,
    };
    let (proxy_addr, proxy_port) = question.listener.as_ref().map_or(("", 0), |(address, port)| (address.as_str(), *port));
    let facts = SessionFacts {
        client_addr: question.client.as_deref().unwrap_or_default(),
        proxy_addr,
        proxy_port,
        next_flag_in: question.flag,
        ..somebody(user, schema)
    };
    let mut grid = Grid::new(COLUMNS);
    if let Some((rewrite_id, made)) = &rewritten {
        let told = format!("template {rewrite_id}: {}", String::from_utf8_lossy(&made.text));
        grid.push_row([Some("0".into()), None, Some("rewrite".into()), Some(told)]);
    }
    for row in plan::explain(snapshot, &facts, &statement, random).rows() {
        grid.push_row(row);
    }
    Ok(grid)
}

/// Where known digests go under two rule sets: those that would go elsewhere, or `all`.
pub(crate) fn replay(now: &Snapshot, next: &Snapshot, digests: &[DigestRow], all: bool) -> Grid {
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
        let unknown;
        let user = match now.users.frontend(&row.user) {
            Some(user) => user.as_ref(),
            None => {
                unknown = User { username: row.user.as_ref().into(), ..anybody() };
                &unknown
            }
        };
        let facts = SessionFacts { client_addr: &row.client_address, ..somebody(user, &row.schema) };
        let digest = Digest { hash: row.digest, text: row.text.as_bytes() };
        let (before, after) = (plan::replay(now, &facts, digest), plan::replay(next, &facts, digest));
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
            Some(yes(before.certain && after.certain)),
            Some(before.plan.shown(&now.rules).to_string()),
            Some(after.plan.shown(&next.rules).to_string()),
        ]);
    }
    grid
}

/// The flag with which the chain ends for a digest, and whether that can be said without the statement's literals.
pub(crate) fn flag_at_end(snapshot: &Snapshot, user: &str, schema: &str, client: &str, digest: Digest<'_>) -> (u32, bool) {
    let unknown;
    let user = match snapshot.users.frontend(user) {
        Some(user) => user.as_ref(),
        None => {
            unknown = User { username: user.into(), ..anybody() };
            &unknown
        }
    };
    plan::flag_at_end(snapshot, &SessionFacts { client_addr: client, ..somebody(user, schema) }, digest)
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
        split: plan::SplitFacts::NONE,
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
