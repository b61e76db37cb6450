//! Executions of statements on sharded tables: the values of their `?` say which partition they go to,
//! and there the statement has the name of that partition's table.

use crate::command::job::What;
use crate::known::epoch::Epoch;
use crate::session::Session;
use plan::Plan;
use sql::bound::Bound;
use std::rc::Rc;
use wire::execute::{DateTime, Time, Value};

/// Values of an execution, as one would write them in SQL. None where no table is sharded, or the values are not those of one
/// row.
pub(crate) fn values(epoch: &Epoch, what: What<'_>) -> Option<Vec<Bound>> {
    let What::Execute(execution) = what else {
        return None;
    };
    if epoch.snapshot.shards.is_empty() || execution.is_bulk() {
        return None;
    }
    let values = execution.values().ok()?;
    let bound = values.iter().enumerate();
    Some(
        bound
            .map(|(at, value)| written(value, execution.is_binary(at)))
            .collect(),
    )
}

/// A value; `is_binary`: it was bound as bytes.
fn written(value: &Value<'_>, is_binary: bool) -> Bound {
    // With an exponent, a number is of floating point.
    let float = |number: f64| Bound::Number(format!("{:e}", number.abs()), number < 0.0);
    match value {
        Value::Null => Bound::Null,
        Value::Int(number) => Bound::Number(number.unsigned_abs().to_string(), *number < 0),
        Value::Uint(number) => Bound::Number(number.to_string(), false),
        Value::Bytes(bytes) if is_binary => Bound::Bytes(bytes.to_vec()),
        Value::Bytes(text) => Bound::Text(text.to_vec()),
        Value::Date(date) => Bound::Date(day(date)),
        Value::DateTime(moment) => Bound::Moment(second(moment)),
        Value::Float(number) => float(f64::from(*number)),
        Value::Double(number) => float(*number),
        Value::Time(time) => Bound::Time(clock(time)),
    }
}

fn clock(time: &Time) -> String {
    let sign = if time.negative { "-" } else { "" };
    let hours = u64::from(time.days) * 24 + u64::from(time.hour);
    let whole = format!("{sign}{hours:02}:{:02}:{:02}", time.minute, time.second);
    match time.micros {
        0 => whole,
        micros => format!("{whole}.{micros:06}"),
    }
}

fn day(at: &DateTime) -> String {
    format!("{:04}-{:02}-{:02}", at.year, at.month, at.day)
}

fn second(at: &DateTime) -> String {
    let time = format!(
        "{} {:02}:{:02}:{:02}",
        day(at),
        at.hour,
        at.minute,
        at.second
    );
    match at.micros {
        0 => time,
        micros => format!("{time}.{micros:06}"),
    }
}

impl Session {
    /// Has an execution run what its partition is to be told, if that is another text than what was
    /// prepared.
    pub(crate) fn go_to_its_partition(&self, epoch: &Epoch, what: What<'_>, plan: &Plan) {
        let (What::Execute(execution), Some(text)) = (what, plan.remade()) else {
            return;
        };
        let known = execution.known;
        let instead = match known.means_as_now(&self.state) && known.schema == self.state.schema {
            true => self.intern(epoch, text, self.lexing().class(text).reads),
            // It was prepared when its session had other modes, or another schema.
            false => self.core.statements.once(known, text),
        };
        if Rc::ptr_eq(&instead, known) {
            return;
        }
        instead.params.set(known.params.get());
        instead.columns.set(known.columns.get());
        let _set_once = execution.instead.set(instead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_sql_has_them() {
        let moment = DateTime {
            year: 2008,
            month: 12,
            day: 1,
            hour: 3,
            minute: 4,
            second: 5,
            micros: 60,
        };
        let values = [
            Value::Null,
            Value::Int(-7),
            Value::Uint(u64::MAX),
            Value::Bytes(b"mar"),
            Value::Date(moment),
            Value::DateTime(moment),
            Value::Double(-1.5),
            Value::Time(Time {
                negative: true,
                days: 1,
                hour: 2,
                minute: 3,
                second: 4,
                micros: 0,
            }),
        ];
        let number = |digits: &str, minus| Bound::Number(digits.into(), minus);
        let wanted = [
            Bound::Null,
            number("7", true),
            number("18446744073709551615", false),
            Bound::Text(b"mar".to_vec()),
            Bound::Date("2008-12-01".into()),
            Bound::Moment("2008-12-01 03:04:05.000060".into()),
            number("1.5e0", true),
            Bound::Time("-26:03:04".into()),
        ];
        for (value, wanted) in values.iter().zip(wanted) {
            assert_eq!(written(value, false), wanted);
        }
        let bytes = written(&Value::Bytes(b"mar"), true);
        assert_eq!(bytes, Bound::Bytes(b"mar".to_vec()));
    }
}
