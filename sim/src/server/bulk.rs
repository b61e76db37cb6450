//! Rows that a prepared INSERT brings: one by COM_STMT_EXECUTE, many by MariaDB's
//! COM_STMT_BULK_EXECUTE, which are there all or none.

use super::Guest;
use crate::belongings::{Answer, client};
use crate::mind::{Complaint, Mind, Said};
use wire::Malformed;
use wire::bulk::Bulk;
use wire::caps::Caps;
use wire::command::Command;
use wire::execute::{Parts, Value};
use wire::read::Reader;

/// A line of the log.
pub(crate) fn row(tag: &str, number: &str) -> String {
    format!("{tag} number {number}")
}

impl Guest {
    /// The execution of an INSERT with two parameters.
    pub(super) fn insert_rows(
        &mut self,
        command: &Command<'_>,
        caps: Caps,
        mind: &mut Mind,
    ) -> Result<Said, Complaint> {
        let rows = match command {
            Command::Execute(execute) => Parts::read(execute, 2, caps)
                .and_then(|parts| Ok(vec![one(&parts.decode(2, None, |_| None)?)])),
            Command::BulkExecute { flags, params, .. } => {
                Bulk::read(*flags, params, 2).and_then(|bulk| many(&bulk))
            }
            _ => Ok(Vec::new()),
        };
        let rows = rows.map_err(|malformed| {
            // Whoever it is from, it comes by way of the proxy.
            self.server.judge.accuse(
                &format!("server {}", self.server.name),
                &format!("rows that nobody can read: {malformed}"),
            );
            Complaint(1210, malformed.to_string())
        })?;
        if let Some((tag, _)) = rows.first() {
            self.comes(client(&format!("'{tag}'")), mind);
        }
        if matches!(command, Command::BulkExecute { .. }) {
            self.server.judge.hit("rows in bulk", rows.len() as u64);
        }
        let affected = rows.len() as u64;
        let lines = rows.iter().map(|(tag, number)| row(tag, number)).collect();
        mind.insert_all(lines, &mut self.server.ground.borrow_mut().log);
        mind.has.row_count = i64::try_from(affected).unwrap_or(0);
        Ok(Said::Answer(Answer {
            affected,
            ..Answer::default()
        }))
    }
}

fn one(values: &[Value<'_>]) -> (String, String) {
    let shown = |at: usize| match values.get(at) {
        Some(Value::Bytes(text)) => String::from_utf8_lossy(text).into_owned(),
        Some(Value::Int(number)) => number.to_string(),
        Some(Value::Uint(number)) => number.to_string(),
        _ => "NULL".to_owned(),
    };
    (shown(0), shown(1))
}

/// Reads the rows of a bulk. Nobody else has told the server their types: they have to come each
/// time.
fn many(bulk: &Bulk<'_>) -> Result<Vec<(String, String)>, Malformed> {
    let types = bulk.types.ok_or(Malformed::new("a bulk without types"))?;
    let mut r = Reader::new(bulk.rows);
    let mut rows = Vec::new();
    while !r.is_empty() {
        let mut values = Vec::new();
        for kind in types.chunks_exact(2) {
            values.push(match (r.u8()?, kind[0]) {
                (0, 1) => r.u8()?.to_string(),
                (0, 8) => {
                    let (low, high) = (r.u32()?, r.u32()?);
                    (u64::from(high) << 32 | u64::from(low)).to_string()
                }
                (0, _) => String::from_utf8_lossy(r.lenenc_bytes()?).into_owned(),
                (1, _) => "NULL".to_owned(),
                (2, _) => "DEFAULT".to_owned(),
                _ => return Err(Malformed::new("a value that is none")),
            });
        }
        let number = values.pop().unwrap_or_default();
        rows.push((values.pop().unwrap_or_default(), number));
    }
    Ok(rows)
}
