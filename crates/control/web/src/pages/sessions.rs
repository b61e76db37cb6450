//! Sessions: who is there, what he does, what he holds; and KILL.

use super::asked::{Asked, Done, Outcome, only_for_administrators};
use crate::listing::{Listing, Row, cell, col};
use crate::page::{Page, token};
use crate::show::As;
use bridge::Unanswered;
use maud::{Markup, html};

const SESSIONS: Listing = Listing {
    caption: "Sessions, the longest statement first",
    sql: "SELECT SessionID, user, db, cli_host || ':' || cli_port, hostgroup, srv_host || ':' || srv_port, command, time_ms, info \
          FROM stats_mysql_processlist ORDER BY command = 'Sleep', time_ms DESC LIMIT 200",
    columns: &[
        col("Session", As::Text),
        col("User", As::Text),
        col("Schema", As::Text),
        col("Client", As::Text),
        col("Hostgroup", As::Number),
        col("Server", As::Text),
        col("Does", As::Text),
        col("For", As::Ms),
        col("Statement", As::Code),
    ],
    empty: "Nobody is connected.",
};

/// The sessions without their statements, which have literals.
const SESSIONS_WITHOUT_STATEMENTS: Listing = Listing {
    sql: "SELECT SessionID, user, db, cli_host || ':' || cli_port, hostgroup, srv_host || ':' || srv_port, command, time_ms \
          FROM stats_mysql_processlist ORDER BY command = 'Sleep', time_ms DESC LIMIT 200",
    columns: SESSIONS.columns.split_at(8).0,
    ..SESSIONS
};

const HOLDS: Listing = Listing {
    caption: "Why connections cannot be shared, the longest first",
    sql: "SELECT SessionID, user, hostgroup, srv_host || ':' || srv_port, srv_thread_id, hold, held_ms \
          FROM stats_mysql_session_holds ORDER BY held_ms DESC LIMIT 200",
    columns: &[
        col("Session", As::Text),
        col("User", As::Text),
        col("Hostgroup", As::Number),
        col("Server", As::Text),
        col("Thread there", As::Text),
        col("Hold", As::Text),
        col("For", As::Ms),
    ],
    empty: "No session holds a connection.",
};

pub(super) async fn show(asked: &Asked<'_>) -> Page {
    let sessions = match asked.may_act() {
        true => SESSIONS.show_with(&asked.ask(SESSIONS.sql).await, Some("End"), |row| {
            kills(asked, row)
        }),
        false => html! {
            (asked.list(&SESSIONS_WITHOUT_STATEMENTS).await)
            (only_for_administrators("Statements"))
        },
    };
    Page {
        path: "/sessions",
        title: "Sessions",
        live: html! { (asked.list(&HOLDS).await) (sessions) },
        every_ms: 3000,
        still: html! {},
    }
}

fn kills(asked: &Asked<'_>, row: &Row) -> Markup {
    let session = cell(row, 0);
    html! {
        @for (how, name) in [("QUERY", "Statement"), ("CONNECTION", "Session")] {
            form method="post" action="/sessions/kill" {
                (token(asked.visitor))
                input type="hidden" name="session" value=(session);
                input type="hidden" name="how" value=(how);
                button.danger aria-label=(format!("End the {} {session}", name.to_lowercase())) { (name) }
            }
        }
    }
}

/// `KILL`, as the form says.
pub(super) async fn kill(asked: &Asked<'_>) -> Outcome {
    let said = |words: &str| Unanswered::Said(words.to_owned());
    let session: u32 = asked
        .field("session")
        .parse()
        .map_err(|_| said("a session has a number"))?;
    let how @ ("QUERY" | "CONNECTION") = asked.field("how") else {
        return Err(said(
            "a statement can be ended (QUERY), or a session (CONNECTION)",
        ));
    };
    let sql = format!("KILL {how} {session}");
    asked.note(&sql);
    asked.ask(&sql).await?;
    Ok(Done::To("/sessions"))
}
