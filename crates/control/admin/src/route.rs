//! EXPLAIN ROUTE: the plan of a statement, with every rule that was looked at.

use crate::commands::Question;
use crate::grid::Grid;
use config::{Password, Snapshot, User};
use plan::{COLUMNS, Digest, SessionFacts, Statement};
use sql::DigestOptions;

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
    let options = digest_options(snapshot);
    let mut text = Vec::new();
    let digested = sql::digest_with_comment(question.sql.as_bytes(), &options, &mut text);
    let statement = Statement {
        text: question.sql.as_bytes(),
        digest: variables.mysql_query_digests.then_some(Digest { hash: digested.hash, text: &text }),
        comment: digested.comment.and_then(|range| question.sql.as_bytes().get(range)),
    };
    let facts = SessionFacts {
        user,
        schema,
        client_addr: "",
        proxy_addr: "",
        proxy_port: 0,
        in_transaction: None,
        locked: None,
        next_flag_in: None,
        autocommit: true,
    };
    let mut grid = Grid::new(COLUMNS);
    for row in plan::explain(snapshot, &facts, &statement, random).rows() {
        grid.push_row(row);
    }
    Ok(grid)
}

/// How statements are digested under this configuration.
fn digest_options(snapshot: &Snapshot) -> DigestOptions {
    let variables = &snapshot.variables;
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    DigestOptions {
        max_digest_length: size(variables.mysql_query_digests_max_digest_length),
        max_query_length: size(variables.mysql_query_digests_max_query_length),
        grouping_limit: size(variables.mysql_query_digests_grouping_limit),
        groups_grouping_limit: size(variables.mysql_query_digests_groups_grouping_limit),
        lowercase: variables.mysql_query_digests_lowercase,
        replace_null: variables.mysql_query_digests_replace_null,
        no_digits: variables.mysql_query_digests_no_digits,
        keep_comment: variables.mysql_query_digests_keep_comment,
        normalize_digest_text: variables.mysql_query_digests_normalize_digest_text,
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
