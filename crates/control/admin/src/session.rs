//! One operator: statements in, answers out.

use crate::answer::Answered;
use crate::engine::{Reply, STATS_VALUE_BYTES, View};
use crate::said::{Asker, Said};
use crate::shared::Shared;
use door::{Answer, Done, Out, Prepared, Refused, Who};
use rusqlite::types::Value as Sqlite;
use std::io;
use std::rc::Rc;
use wire::errors::{ACCESS_DENIED, Code};
use wire::execute::Value;
use wire::resultset::Column;
use wire::status;
use wire::types::NOT_NULL_FLAG;

/// One operator's session.
pub(crate) struct Session {
    shared: Rc<Shared>,
    asker: Asker,
}

/// Words that stand before every error: scripts look for them.
const PREFIX: &str = "ProxySQL Admin Error: ";
/// SQLite knows no backslash in strings: clients that are told so double their quotes instead of
/// escaping them.
const STATUS: u16 = status::AUTOCOMMIT | status::NO_BACKSLASH_ESCAPES;
/// Bytes of a statistics user's prepared statements, of which a program has a few dozen.
const STATS_KEPT_BYTES: usize = 4 << 20;
/// Bytes of a command of his: a statement that is a little too long is told so in words of its own.
const STATS_COMMAND_BYTES: usize = STATS_VALUE_BYTES as usize + 1024;
/// utf8_general_ci, as ProxySQL says of all its columns.
const UTF8: u16 = 33;

impl Session {
    pub(crate) fn new(shared: Rc<Shared>, who: Who, view: View) -> Self {
        let host = who
            .peer
            .ip()
            .map_or_else(|| "localhost".to_owned(), |ip| ip.to_string());
        let port = who.peer.port();
        Self {
            shared,
            asker: Asker {
                id: who.id,
                user: who.user,
                host,
                port,
                view,
            },
        }
    }

    async fn say(&self, said: Result<Answered, Said>, out: &mut Out<'_>) -> io::Result<()> {
        match said {
            Ok(answered) => {
                self.tell(&answered.reply, out).await?;
                answered.delivered();
                Ok(())
            }
            Err(said) => out.err(&refused(said)).await,
        }
    }

    async fn tell(&self, reply: &Reply, out: &mut Out<'_>) -> io::Result<()> {
        match reply {
            Reply::Done { affected, info } => {
                out.ok(
                    &Done {
                        affected: *affected,
                        insert_id: 0,
                        info: info.clone(),
                        warnings: 0,
                    },
                    STATUS,
                )
                .await
            }
            Reply::Rows(grid) => {
                let _until_it_is_read = self.shared.hold(self.asker.view, grid.bytes_held());
                out.columns(grid.names.iter().map(|name| column(name)).collect(), STATUS);
                for row in grid.rows() {
                    let values: Vec<_> = row
                        .into_iter()
                        .map(|cell| cell.map_or(Value::Null, Value::Bytes))
                        .collect();
                    out.row(&values);
                    out.room().await?;
                }
                out.end(STATUS).await
            }
        }
    }
}

fn column(name: &str) -> Column {
    Column {
        charset: UTF8,
        length: 15,
        flags: NOT_NULL_FLAG,
        ..Column::text(name)
    }
}

fn refused(said: Said) -> Refused {
    match said {
        Said::Sql(words) => Refused::new(ACCESS_DENIED, format!("{PREFIX}{words}")),
        Said::Coded(number, state, words) => {
            Refused::new(Code { number, state }, format!("{PREFIX}{words}"))
        }
    }
}

impl Answer for Session {
    fn status(&self) -> u16 {
        STATUS
    }

    async fn query(&mut self, sql: &[u8], out: &mut Out<'_>) -> io::Result<()> {
        let sql = match door::text(sql) {
            Ok(sql) => sql,
            Err(refused) => return out.err(&refused).await,
        };
        let said = self.shared.answer(&self.asker, sql, &[]).await;
        self.say(said, out).await
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared, Refused> {
        let sql = door::text(sql)?;
        let (params, names) = self.shared.describe(&self.asker, sql).map_err(refused)?;
        let params =
            u16::try_from(params).map_err(|_| refused(Said::Sql("too many parameters".into())))?;
        Ok(Prepared {
            params,
            columns: names.iter().map(|name| column(name)).collect(),
        })
    }

    fn command_bytes_max(&self) -> usize {
        if self.asker.view == View::Stats {
            STATS_COMMAND_BYTES
        } else {
            usize::MAX
        }
    }

    fn kept_bytes_max(&self) -> usize {
        if self.asker.view == View::Stats {
            STATS_KEPT_BYTES
        } else {
            usize::MAX
        }
    }

    async fn execute(
        &mut self,
        sql: &[u8],
        values: &[Value<'_>],
        out: &mut Out<'_>,
    ) -> io::Result<()> {
        let sql = match door::text(sql) {
            Ok(sql) => sql,
            Err(refused) => return out.err(&refused).await,
        };
        let values: Vec<_> = values.iter().map(sqlite).collect();
        let said = self.shared.answer(&self.asker, sql, &values).await;
        self.say(said, out).await
    }

    fn use_schema(&mut self, schema: &str) -> Result<(), Refused> {
        self.shared.use_schema(schema).map_err(refused)
    }

    fn fields(&mut self, table: &str) -> Result<Vec<Column>, Refused> {
        let sql = format!("SELECT * FROM \"{}\"", table.replace('"', "\"\""));
        let (_, names) = self.shared.describe(&self.asker, &sql).map_err(refused)?;
        Ok(names.iter().map(|name| column(name)).collect())
    }

    fn reset(&mut self) {}

    fn statistics(&self) -> String {
        let uptime = self.shared.rt.now() - self.shared.started;
        format!(
            "Uptime: {}  Threads: {}",
            uptime.as_secs(),
            self.shared.cores.len()
        )
    }
}

fn sqlite(value: &Value<'_>) -> Sqlite {
    match value {
        Value::Null => Sqlite::Null,
        Value::Int(number) => Sqlite::Integer(*number),
        Value::Uint(number) => i64::try_from(*number)
            .map_or_else(|_| Sqlite::Text(number.to_string()), Sqlite::Integer),
        Value::Float(number) => Sqlite::Real(f64::from(*number)),
        Value::Double(number) => Sqlite::Real(*number),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Sqlite::Text(text.to_owned()),
            Err(_) => Sqlite::Blob(bytes.to_vec()),
        },
        other => Sqlite::Text(other.to_string()),
    }
}
