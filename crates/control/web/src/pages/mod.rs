//! The pages: one file each, with the questions that it asks.

mod asked;
mod cache;
mod cluster;
mod history;
mod log;
mod overview;
mod queries;
mod rules;
mod servers;
mod sessions;

pub(crate) use asked::{Asked, Done, Outcome};

use crate::page::Page;

/// The page at a path, if there is one.
pub(crate) async fn show(path: &str, asked: &Asked<'_>) -> Option<Page> {
    Some(match path {
        "/" => overview::show(asked).await,
        "/queries" => queries::show(asked).await,
        "/queries/rule" => queries::rule(asked).await,
        "/servers" => servers::show(asked).await,
        "/sessions" => sessions::show(asked).await,
        "/rules" => rules::show(asked).await,
        "/cache" => cache::show(asked).await,
        "/cluster" => cluster::show(asked).await,
        "/history" => history::show(asked).await,
        "/log" => log::show(asked),
        _ => return None,
    })
}

/// Does what an administrator's form says, if there is such a form.
pub(crate) async fn act(path: &str, asked: &Asked<'_>) -> Option<Outcome> {
    Some(match path {
        "/queries/route" => queries::route(asked).await,
        "/sessions/kill" => sessions::kill(asked).await,
        "/cache/flush" => cache::flush(asked).await,
        _ => return None,
    })
}
