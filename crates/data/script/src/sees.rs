//! Turns of `m.on.rows`: the columns of a result, its rows piece by piece, and their end. None of
//! them waits.

use crate::host::Failed;
use crate::outcome::Outcome;
use crate::packed::{self, Packed};
use crate::response::{Bad, Response};
use crate::scripted::{Scripted, Turns};
use mlua::{LuaString, Value};
use std::borrow::Cow;

/// Words of a failure in a function of the VM, with the name of the hook that it is a part of.
fn of_hook(part: &str, Failed(words): Failed) -> Failed {
    Failed(words.replacen(&format!("({part})"), "(on.rows)", 1))
}

/// Places that Lua has packed, which counts from 1.
fn places(packed: &[u8]) -> Vec<usize> {
    let values = packed::list(packed).unwrap_or_default().into_iter();
    let places = values.filter_map(|value| value.place()?.checked_sub(1));
    places.collect()
}

/// A script's wish for the rows of a result.
#[derive(Debug)]
pub(crate) enum Sees {
    /// They pass unread.
    Nothing,
    /// Each row shows these columns, from 0, to a function.
    Rows {
        /// Columns.
        columns: Vec<usize>,
        /// Type that the client gets them as, if the script says one.
        kind: Option<u8>,
    },
    /// The client gets this error.
    Error(Response),
}

/// A turn that is over, and the microseconds that it took.
pub(crate) struct Turned<T> {
    pub(crate) done: Result<T, Failed>,
    pub(crate) us: u64,
}

/// Changes that a function has made in some rows.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Places among the texts that it saw, ascending, and the new text; none is NULL.
    pub(crate) changed: Vec<(usize, Option<Vec<u8>>)>,
    /// Rows that are left out, from 0, ascending.
    pub(crate) dropped: Vec<usize>,
}

impl Scripted {
    /// Asks `m.on.rows` about the columns of the answer's result of this number.
    pub(crate) fn sees_columns(&self, outcome: Outcome, number: usize) -> Turned<(Sees, Outcome)> {
        let mut turns = self.turns(Some(outcome));
        let done = self.asked_about(&mut turns, number);
        let done = done.map(|sees| (sees, turns.outcome.take().unwrap_or_default()));
        Turned {
            done,
            us: turns.used_us,
        }
    }

    fn asked_about(&self, turns: &mut Turns, number: usize) -> Result<Sees, Failed> {
        type Said = (u8, Option<Vec<usize>>, Option<u8>);
        let args = (self.session.clone(), number);
        let (decision, places, kind): Said = self.turn(turns, || self.vm.call("on.rows", args))?;
        Ok(match decision {
            1 => {
                let places = places.unwrap_or_default().into_iter();
                Sees::Rows {
                    columns: places.filter_map(|place| place.checked_sub(1)).collect(),
                    kind: kind.filter(|kind| *kind != 0),
                }
            }
            2 => {
                let value: Value = self.vm.call("response", self.session.clone())?;
                let made = Response::of(&value, None, &self.reader());
                Sees::Error(made.map_err(|Bad(words)| Failed(format!("(on.rows) {words}")))?)
            }
            _ => Sees::Nothing,
        })
    }

    /// Shows so many rows to the function, by the texts of the columns that it wants.
    pub(crate) fn sees_rows(&self, count: usize, texts: &[Option<Cow<'_, [u8]>>]) -> Turned<Batch> {
        let mut turns = self.turns(None);
        let mut packed = Packed::default();
        packed.list(texts.len());
        for text in texts {
            packed.text(text.as_deref());
        }
        let done = self.turn(&mut turns, || {
            let failed = |error| Failed::of("on.rows", &error);
            let texts = packed.told(self.vm.lua()).map_err(failed)?;
            let args = (self.session.clone(), count, texts);
            let (changed, values, out): (LuaString, LuaString, LuaString) =
                self.vm.call("rows", args)?;
            let room = self.reader().room;
            let (changed, values, out) = (changed.as_bytes(), values.as_bytes(), out.as_bytes());
            let values = packed::list(&values).unwrap_or_default();
            let changed = places(&changed).into_iter().zip(values);
            let changed = changed.map(|(place, value)| {
                let value = room.value(value.text());
                let value = value.map_err(|Bad(words)| Failed(format!("(on.rows) {words}")))?;
                Ok((place, value))
            });
            Ok(Batch {
                changed: changed.collect::<Result<_, Failed>>()?,
                dropped: places(&out),
            })
        });
        Turned {
            done: done.map_err(|failed| of_hook("rows", failed)),
            us: turns.used_us,
        }
    }

    /// Tells the function's companion how many rows there were.
    pub(crate) fn sees_last(&self, rows: u64) -> Turned<()> {
        let mut turns = self.turns(None);
        let args = (self.session.clone(), rows as f64);
        let done = self.turn(&mut turns, || self.vm.call::<()>("last", args));
        Turned {
            done: done.map_err(|failed| of_hook("last", failed)),
            us: turns.used_us,
        }
    }
}
