//! Results that are read to their end before anything is done with them: of tables that are described,
//! and of SELECTs whose rows are inserted.

use crate::command::job::Job;
use crate::partitions::asking::{Answering, Asking, Stopped, broke};
use crate::session::Session;
use wire::row_stream::Row;

/// Asks these texts at these hostgroups, all at once, and reads all rows of each.
pub(crate) async fn rows_of(
    session: &Session,
    job: &Job<'_>,
    asking: &Asking<'_>,
    asked: &[(u32, &[u8])],
) -> Result<Vec<Vec<Row>>, Stopped> {
    let mut parts = Vec::new();
    let read = read(session, job, asking, asked, &mut parts).await;
    let is_gone = matches!(read, Err(Stopped::Gone));
    session
        .part_from(parts, asking, read.is_ok(), is_gone)
        .await;
    read
}

async fn read(
    session: &Session,
    job: &Job<'_>,
    asking: &Asking<'_>,
    asked: &[(u32, &[u8])],
    parts: &mut Vec<Answering>,
) -> Result<Vec<Vec<Row>>, Stopped> {
    session.ask_all(job, asking, asked, parts).await?;
    session.until_described(parts, asking).await?;
    let mut all = Vec::new();
    for at in 0..parts.len() {
        let mut rows = Vec::new();
        loop {
            session.next_row_of(parts, at, true, asking).await?;
            match parts[at].rows.next_row().map_err(broke)? {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        all.push(rows);
    }
    Ok(all)
}
