//! Questions to ClickHouse, and their answers on the way to the client.

use super::{Ended, LOOKED_AT, Session, inserted, is_read, written};
use crate::data::Data;
use crate::dialect;
use crate::errors;
use crate::native::{Head, Reading, Stop as Broken};
use crate::query::{Asker, Running};
use crate::roster::{Seat, Stop, Turn};
use crate::types::{self, Type};
use crate::zone::Zones;
use crate::{Force, cells, literals};
use door::dialect as common;
use door::dialect::Said;
use door::{Answer, Done, Out, Refused};
use http::Http;
use rt::{Either, select};
use std::io;
use std::ops::Range;
use std::pin::pin;
use wire::errors::{Code, NOT_ALLOWED, UNKNOWN_SYSTEM_VARIABLE};
use wire::execute::Value;
use wire::resultset::Column;

/// A format whose first lines are names and types.
const NAMED: &str = "TabSeparatedWithNamesAndTypes";
/// Bytes of a block, at most: a client's thread has as many in memory.
const BLOCK_BYTES_MAX: usize = 256 << 20;

const INTERRUPTED: Code = Code {
    number: 1317,
    state: "70100",
};

impl Session {
    /// Asks ClickHouse, and sends what it answers.
    pub(super) async fn ask(
        &mut self,
        force: &Force,
        sql: &[u8],
        _turn: Turn,
        out: &mut Out<'_>,
    ) -> io::Result<Ended> {
        let mut asker = self.asker_for(force, sql);
        self.wrote |= !is_read(sql);
        // What was told while nothing ran is none of this statement's.
        while self
            .seat
            .told
            .try_recv()
            .is_some_and(|stop| stop == Stop::Query)
        {}
        let ended = self.ask_as(&asker, sql, out).await?;
        let Ended::WantsText = ended else {
            return Ok(ended);
        };
        asker.wants_json_as_text();
        let ended = self.ask_as(&asker, sql, out).await?;
        self.json_as_text = matches!(ended, Ended::Answered);
        Ok(match ended {
            Ended::WantsText => Ended::Refused(json_is_its_own()),
            Ended::Refused(refused) if refused.code == UNKNOWN_SYSTEM_VARIABLE.number => {
                Ended::Refused(json_is_its_own())
            }
            ended => ended,
        })
    }

    /// Asks once. Whoever goes away, or says KILL, ends it there.
    async fn ask_as(&mut self, asker: &Asker, sql: &[u8], out: &mut Out<'_>) -> io::Result<Ended> {
        let reads = is_read(sql);
        let mut running = Running::new(&self.port.rt, asker);
        let (mut http, is_old) = match self.connection(asker).await {
            Ok(found) => found,
            Err(refused) => {
                running.is_over();
                return Ok(Ended::Refused(refused));
            }
        };
        let asked = asker.ask(&mut http, &running.id, "Native", sql);
        let mut asked = watched(&self.seat, out, asked).await?;
        if is_old && reads && matches!(asked, Ok(Err(_))) {
            // It was closed just when we asked.
            http = match self.open(asker).await {
                Ok(http) => http,
                Err(refused) => return Ok(Ended::Refused(refused)),
            };
            let again = asker.ask(&mut http, &running.id, "Native", sql);
            asked = watched(&self.seat, out, again).await?;
        }
        let answer = match asked {
            Err(interrupted) => return Ok(Ended::Refused(interrupted)),
            Ok(Err(lost)) => return Ok(Ended::Refused(errors::lost(&lost.0))),
            Ok(Ok(Err(refused))) => {
                running.is_over();
                self.http = Some(http);
                return Ok(Ended::Refused(refused));
            }
            Ok(Ok(Ok(answer))) => answer,
        };
        self.port.note(asker, None);
        match self.relay(asker, sql, &mut http, out).await? {
            Relayed::Rows => {
                running.is_over();
                self.http = Some(http);
                out.end(self.status()).await?;
                Ok(Ended::Answered)
            }
            Relayed::Nothing => {
                running.is_over();
                self.http = Some(http);
                if reads {
                    return self.without_rows(asker, sql, out).await;
                }
                let told = answer.header("x-clickhouse-summary").and_then(written);
                let done = Done {
                    affected: told.unwrap_or_else(|| inserted(sql)),
                    ..Done::default()
                };
                out.ok(&done, self.status()).await?;
                Ok(Ended::Answered)
            }
            Relayed::WantsText if reads => Ok(Ended::WantsText),
            Relayed::WantsText => Ok(Ended::Refused(json_is_its_own())),
            Relayed::Failed(refused) => Ok(Ended::Refused(refused)),
        }
    }

    /// Sends blocks as rows, until the end of the answer is proven.
    async fn relay(
        &mut self,
        asker: &Asker,
        sql: &[u8],
        http: &mut Http,
        out: &mut Out<'_>,
    ) -> io::Result<Relayed> {
        let (mut bytes, mut head, mut zones) =
            (Vec::new(), None::<(Head, Vec<Column>)>, Zones::utc());
        let mut reading = Reading::default();
        loop {
            let more = match watched(&self.seat, out, http.body(&mut bytes)).await? {
                Err(interrupted) => return Ok(Relayed::Failed(interrupted)),
                Ok(Err(lost)) => return Ok(Relayed::Failed(errors::lost(&lost.0))),
                Ok(Ok(more)) => more,
            };
            if !more {
                return Ok(match (bytes.is_empty(), head) {
                    (false, _) => Relayed::Failed(broken(&bytes)),
                    (true, Some(_)) => Relayed::Rows,
                    (true, None) => Relayed::Nothing,
                });
            }
            loop {
                match reading.go_on(head.as_ref().map(|(head, _)| head), &bytes) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(Broken::Unknown(words)) => {
                        return Ok(Relayed::Failed(Refused::new(NOT_ALLOWED, words)));
                    }
                    Err(Broken::Json) if head.is_none() => return Ok(Relayed::WantsText),
                    Err(_) => {
                        // What it says may come in pieces; there is not much of it.
                        while matches!(http.body(&mut bytes).await, Ok(true))
                            && bytes.len() < BLOCK_BYTES_MAX
                        {}
                        return Ok(Relayed::Failed(broken(&bytes)));
                    }
                }
                let Ok((data, rows, used)) = reading.block(&bytes) else {
                    return Ok(Relayed::Failed(broken(&bytes)));
                };
                if head.is_none() {
                    let known = self.zoned(asker, sql, reading.head());
                    let (found, known) = match watched(&self.seat, out, known).await? {
                        Ok(Ok(known)) => known,
                        Ok(Err(refused)) | Err(refused) => return Ok(Relayed::Failed(refused)),
                    };
                    zones = known;
                    let columns = found.names.iter().zip(&found.types).zip(&data);
                    let columns: Vec<_> = columns
                        .map(|((name, of), data)| of.column(name, cells::is_text(of, data, rows)))
                        .collect();
                    out.columns(columns.clone(), self.status());
                    head = Some((found, columns));
                }
                if let Some((head, columns)) = &head
                    && !send(&self.seat, head, columns, &data, rows, &zones, out).await?
                {
                    return Ok(Relayed::Failed(interrupted()));
                }
                drop(data);
                bytes.drain(..used);
                reading = Reading::default();
                if bytes.is_empty() {
                    break;
                }
            }
            if bytes.len() > BLOCK_BYTES_MAX {
                let words = format!(
                    "a block has more than {BLOCK_BYTES_MAX} bytes: make clickhouse-max_block_rows smaller"
                );
                return Ok(Relayed::Failed(Refused::new(NOT_ALLOWED, words)));
            }
        }
    }

    /// Columns with the time zones that they have, and these.
    async fn zoned(
        &self,
        asker: &Asker,
        sql: &[u8],
        mut head: Head,
    ) -> Result<(Head, Zones), Refused> {
        self.find_zones(asker, sql, &mut head).await?;
        let zones = self.zones(asker, &head.types).await?;
        Ok((head, zones))
    }

    /// The time zones of columns: of a session that has one, its own for those that name none.
    async fn zones(&self, asker: &Asker, types: &[Type]) -> Result<Zones, Refused> {
        let mut named = Vec::new();
        types.iter().for_each(|of| of.zones(&mut named));
        let wanted = self
            .variables
            .get("time_zone")
            .filter(|zone| !zone.eq_ignore_ascii_case("SYSTEM"));
        let known = self.zone.borrow().clone();
        let usual = match (wanted, known) {
            (Some(zone), _) => zone.clone(),
            (None, Some(zone)) => zone,
            (None, None) if named.contains(&None) => {
                let found = asker
                    .little(&self.port.rt, "TabSeparated", "SELECT timezone()")
                    .await?;
                let zone = found
                    .first()
                    .and_then(|row| row.first())
                    .cloned()
                    .unwrap_or_default();
                self.zone.borrow_mut().insert(zone).clone()
            }
            (None, None) => "UTC".to_owned(),
        };
        let mut zones = Zones::of(&usual);
        named.iter().flatten().for_each(|name| zones.learn(name));
        Ok(zones)
    }

    /// Asks what the columns of a statement are, by names and types, where ClickHouse says so: in
    /// another format than Native.
    async fn columns_of(&self, asker: &Asker, sql: &[u8]) -> Result<Vec<(String, Type)>, Refused> {
        let rows = match self.little_of(asker, sql).await {
            Ok(rows) => rows,
            Err(_) => {
                let text = String::from_utf8_lossy(sql);
                asker.little(&self.port.rt, NAMED, &text).await?
            }
        };
        named(&rows)
    }

    /// Asks what the columns of a statement are, in brackets, so that little is done for it. That
    /// fails where two columns have one name, and where it is no SELECT.
    async fn little_of(&self, asker: &Asker, sql: &[u8]) -> Result<Vec<Vec<String>>, Refused> {
        let sql = format!("SELECT * FROM ({}\n) LIMIT 0", String::from_utf8_lossy(sql));
        asker.little(&self.port.rt, NAMED, &sql).await
    }

    /// Asks what the columns of a prepared statement will be, as far as it can be said while its
    /// parameters are NULL. Clients that bind results do so before they execute.
    pub(super) async fn columns_ahead(&self, sql: &[u8], params: u16) -> Vec<Column> {
        let text = String::from_utf8_lossy(&sql[..sql.len().min(LOOKED_AT)]).into_owned();
        let is_asked = matches!(common::parse(&text), Said::Sql(_)) && !self.is_monitor;
        let force = self.port.server.force();
        let told = dialect::told(&text, &self.database(&force));
        if !is_asked || told.is_some() || !is_read(sql) {
            return Vec::new();
        }
        let bound = literals::bound(sql, &vec![Value::Null; usize::from(params)]);
        let found = self
            .little_of(&self.asker(&force), bound.trim_ascii_end())
            .await;
        let columns = found.and_then(|rows| named(&rows)).unwrap_or_default();
        let column = |(name, of): (String, Type)| match of.bare() {
            // A parameter may be anything yet.
            Type::Nothing => Column::text(name),
            _ => of.column(&name, true),
        };
        columns.into_iter().map(column).collect()
    }

    /// ClickHouse says nothing of columns where there are no rows.
    async fn without_rows(
        &mut self,
        asker: &Asker,
        sql: &[u8],
        out: &mut Out<'_>,
    ) -> io::Result<Ended> {
        let found = match watched(&self.seat, out, self.columns_of(asker, sql)).await? {
            Ok(Ok(found)) => found,
            Ok(Err(refused)) | Err(refused) => return Ok(Ended::Refused(refused)),
        };
        if found.is_empty() {
            self.done(out).await?;
            return Ok(Ended::Answered);
        }
        let columns = found.iter().map(|(name, of)| of.column(name, true));
        out.columns(columns.collect(), self.status());
        out.end(self.status()).await?;
        Ok(Ended::Answered)
    }

    /// In Native a moment loses its time zone: ClickHouse takes us for one of its oldest clients.
    async fn find_zones(&self, asker: &Asker, sql: &[u8], head: &mut Head) -> Result<(), Refused> {
        if !is_read(sql) || !head.types.contains(&Type::DateTime(None)) {
            return Ok(());
        }
        let found = self.columns_of(asker, sql).await?;
        for (of, (_, better)) in head.types.iter_mut().zip(found) {
            if matches!((&*of, &better), (Type::DateTime(None), Type::DateTime(_))) {
                *of = better;
            }
        }
        Ok(())
    }
}

/// Reads what a format that names columns and types has said of them.
fn named(rows: &[Vec<String>]) -> Result<Vec<(String, Type)>, Refused> {
    let [names, said, ..] = rows else {
        return Ok(Vec::new());
    };
    let column = |(name, said): (&String, &String)| match types::parse(said) {
        Ok(of) => Ok((name.clone(), of)),
        Err(words) => Err(Refused::new(NOT_ALLOWED, words)),
    };
    names.iter().zip(said).map(column).collect()
}

/// JSON comes as a text, or in a form of ClickHouse's own.
pub(super) fn json_is_its_own() -> Refused {
    let words = "this ClickHouse cannot send the type JSON as text: convert it with toString() in the statement";
    Refused::new(NOT_ALLOWED, words)
}

fn interrupted() -> Refused {
    Refused::new(INTERRUPTED, "Query execution was interrupted")
}

/// How blocks ended.
enum Relayed {
    Rows,
    /// There was none.
    Nothing,
    /// As [`Ended::WantsText`].
    WantsText,
    Failed(Refused),
}

/// Waits for `what`, unless the client goes away (an error) or somebody says KILL.
pub(super) async fn watched<T>(
    seat: &Seat,
    out: &Out<'_>,
    what: impl Future<Output = T>,
) -> io::Result<Result<T, Refused>> {
    let ends = select(seat.told.recv(), out.gone());
    match select(what, ends).await {
        Either::Left(came) => Ok(Ok(came)),
        Either::Right(Either::Left(Some(Stop::Query))) => Ok(Err(interrupted())),
        Either::Right(_) => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Sends rows; false if somebody has said KILL QUERY meanwhile.
async fn send(
    seat: &Seat,
    head: &Head,
    columns: &[Column],
    data: &[Data<'_>],
    rows: usize,
    zones: &Zones,
    out: &mut Out<'_>,
) -> io::Result<bool> {
    let (mut texts, is_binary) = (Vec::new(), out.is_binary());
    for row in 0..rows {
        if is_binary {
            let columns = head.types.iter().zip(data).zip(columns);
            values(columns, row, zones, &mut texts, out);
        } else {
            out.text_row(|cells| {
                for (of, data) in head.types.iter().zip(data) {
                    cells::cell(of, data, row, zones, cells);
                }
            });
        }
        if out.is_long() && !room(seat, out).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes a row of values. `texts`: room for those that are texts.
fn values<'h, 'b: 'h>(
    columns: impl Iterator<Item = ((&'h Type, &'h Data<'b>), &'h Column)>,
    row: usize,
    zones: &Zones,
    texts: &mut Vec<u8>,
    out: &mut Out<'_>,
) {
    texts.clear();
    let mut cells: Vec<Result<Range<usize>, Value<'static>>> = Vec::new();
    for ((of, data), column) in columns {
        let from = texts.len();
        cells.push(match cells::value(column.kind, of, data, row, zones) {
            Some(value) => Err(value),
            None if cells::text(of, data, row, zones, texts) => Ok(from..texts.len()),
            None => Err(Value::Null),
        });
    }
    let value = |cell: &Result<Range<usize>, Value<'static>>| match cell {
        Ok(span) => Value::Bytes(&texts[span.clone()]),
        Err(value) => *value,
    };
    out.row(&cells.iter().map(value).collect::<Vec<_>>());
}

/// Waits while the client does not read: KILL ends its session meanwhile, KILL QUERY the statement
/// when it has read.
async fn room(seat: &Seat, out: &mut Out<'_>) -> io::Result<bool> {
    let mut goes_on = true;
    let mut room = pin!(out.room());
    loop {
        match select(room.as_mut(), seat.told.recv()).await {
            Either::Left(read) => return read.map(|()| goes_on),
            Either::Right(Some(Stop::Query)) => goes_on = false,
            Either::Right(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

/// Makes an error of bytes that are no block: ClickHouse's words, or nobody knows what.
fn broken(bytes: &[u8]) -> Refused {
    match errors::read(bytes) {
        Some((number, words)) => errors::refused(number, &words),
        None => errors::lost("its answer ends within a block, or is in another format than Native"),
    }
}
