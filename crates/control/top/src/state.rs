//! State of the screen: which view, in which order, with which rows; and what keys do to it.

use crate::views::{VIEWS, View};
use line::{Rows, on_one_line};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::HashMap;
use std::time::Instant;
use web::show::As;

/// Work to be done after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    /// The screen is drawn anew.
    Draw,
    /// The proxy is asked anew.
    Ask,
    End,
}

/// Counters of the proxy, by name.
pub(crate) type Counters = HashMap<String, f64>;

/// State of the screen.
#[derive(Default)]
pub(crate) struct State {
    view: usize,
    orders: [usize; VIEWS.len()],
    pub(crate) helps: bool,
    pub(crate) stands: bool,
    /// Rows that are above the screen.
    pub(crate) above: usize,
    /// Cells as they are shown.
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) now: Counters,
    before: Option<(Instant, Counters)>,
    taken: Option<Instant>,
    /// Counts of the rows, as they were when the rows were asked for last.
    counted: HashMap<String, f64>,
    counted_at: Option<(usize, Instant)>,
    /// Why there is nothing new.
    pub(crate) words: Option<String>,
}

impl State {
    /// State that begins with a view, by its name.
    pub(crate) fn of(name: &str) -> Result<Self, String> {
        let found = VIEWS.iter().position(|view| view.name == name);
        let names: Vec<_> = VIEWS.iter().map(|view| view.name).collect();
        let view =
            found.ok_or_else(|| format!("there is no view {name}: use {}", names.join(", ")))?;
        Ok(Self {
            view,
            ..Self::default()
        })
    }

    pub(crate) fn view(&self) -> &'static View {
        &VIEWS[self.view]
    }

    /// Returns which of the view's orders the rows are sorted by.
    pub(crate) fn order(&self) -> usize {
        self.orders[self.view]
    }

    /// Does what a key says.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Then {
        if key.kind == KeyEventKind::Release {
            return Then::Nothing;
        }
        if self.helps {
            self.helps = false;
            return Then::Draw;
        }
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Then::End;
            }
            KeyCode::Char('q') | KeyCode::Esc => return Then::End,
            KeyCode::Char('h' | '?') => self.helps = true,
            KeyCode::Char('p') => self.stands = !self.stands,
            KeyCode::Char('s') => {
                let orders = self.view().orders.len();
                self.orders[self.view] = (self.order() + 1) % orders;
                self.above = 0;
                return Then::Ask;
            }
            KeyCode::Char(digit @ '1'..='4') => {
                self.view = digit as usize - '1' as usize;
                self.above = 0;
                return Then::Ask;
            }
            KeyCode::Tab => {
                self.view = (self.view + 1) % VIEWS.len();
                self.above = 0;
                return Then::Ask;
            }
            KeyCode::Char(' ') => return Then::Ask,
            KeyCode::Down => self.above = (self.above + 1).min(self.rows.len().saturating_sub(1)),
            KeyCode::Up => self.above = self.above.saturating_sub(1),
            KeyCode::PageDown => {
                self.above = (self.above + 10).min(self.rows.len().saturating_sub(1))
            }
            KeyCode::PageUp => self.above = self.above.saturating_sub(10),
            KeyCode::Home => self.above = 0,
            _ => return Then::Nothing,
        }
        Then::Draw
    }

    /// Takes what the proxy counts.
    pub(crate) fn count(&mut self, rows: &Rows, at: Instant) {
        let counters = rows
            .iter()
            .map(|row| (text(row.first()), number(row.get(1))));
        let counters = counters.collect();
        let before = std::mem::replace(&mut self.now, counters);
        self.before = self.taken.replace(at).map(|taken| (taken, before));
    }

    /// Growth of a counter in a second, since the screen before.
    pub(crate) fn rate(&self, counter: &str) -> Option<f64> {
        let (then, before) = self.before.as_ref()?;
        let seconds = (self.taken? - *then).as_secs_f64();
        let growth = self.now.get(counter)? - before.get(counter)?;
        (seconds > 0.0 && growth >= 0.0).then(|| growth / seconds)
    }

    /// Takes the rows of the view.
    pub(crate) fn take(&mut self, rows: &Rows, at: Instant) {
        let view = self.view();
        let seconds = match self.counted_at.replace((self.view, at)) {
            Some((of, then)) if of == self.view => (at - then).as_secs_f64(),
            _ => 0.0,
        };
        let mut counted = HashMap::new();
        self.rows = Vec::with_capacity(rows.len());
        for row in rows {
            let mut cells: Vec<_> = (0..view.columns.len())
                .map(|at| shown(view.columns[at].2, row.get(at + 1)))
                .collect();
            if let Some(counts) = view.counts {
                let (key, count) = (text(row.first()), number(row.get(counts + 1)));
                let growth = self.counted.get(&key).map(|before| count - before);
                if let Some(growth) = growth.filter(|growth| seconds > 0.0 && *growth >= 0.0) {
                    cells[counts + 1] = As::Number.words(&format!("{:.1}", growth / seconds));
                }
                counted.insert(key, count);
            }
            self.rows.push(cells);
        }
        self.counted = counted;
        self.above = self.above.min(self.rows.len().saturating_sub(1));
        self.words = None;
    }
}

/// A cell as it is shown: on one line, without what would do something to a terminal.
fn shown(show: As, cell: Option<&Option<Vec<u8>>>) -> String {
    match cell {
        Some(Some(_)) => on_one_line(&show.words(&text(cell))),
        _ => String::new(),
    }
}

fn text(cell: Option<&Option<Vec<u8>>>) -> String {
    let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(cell: Option<&Option<Vec<u8>>>) -> f64 {
    text(cell).parse().unwrap_or(0.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::time::Duration;

    pub(crate) fn rows(all: &[&[&str]]) -> Rows {
        let cell = |cell: &&str| (*cell != "NULL").then(|| cell.as_bytes().to_vec());
        all.iter()
            .map(|row| row.iter().map(cell).collect())
            .collect()
    }

    fn press(state: &mut State, key: char) -> Then {
        state.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE))
    }

    #[test]
    fn keys_choose_views_and_orders_and_each_view_keeps_its_own() {
        let mut state = State::of("queries").unwrap();
        assert_eq!(press(&mut state, 's'), Then::Ask);
        assert!(
            state
                .view()
                .statement(state.order())
                .contains("ORDER BY count_star DESC")
        );
        assert_eq!(
            (press(&mut state, '2'), state.view().name, state.order()),
            (Then::Ask, "servers", 0)
        );
        assert_eq!((press(&mut state, '1'), state.order()), (Then::Ask, 1));
        for _ in 0..4 {
            press(&mut state, 's');
        }
        assert_eq!(state.order(), 0);
        assert_eq!((press(&mut state, 'h'), state.helps), (Then::Draw, true));
        // Any key ends the help, and nothing else.
        assert_eq!((press(&mut state, 'q'), state.helps), (Then::Draw, false));
        assert_eq!(
            (press(&mut state, 'z'), press(&mut state, 'q')),
            (Then::Nothing, Then::End)
        );
        assert!(
            State::of("none")
                .err()
                .unwrap()
                .contains("queries, servers, sessions, errors")
        );
    }

    #[test]
    fn a_row_that_was_there_before_has_a_rate() {
        let mut state = State::of("servers").unwrap();
        let (begun, wide) = (Instant::now(), Duration::from_secs(2));
        let row = |queries: &'static str| {
            [
                "key", "0", "db:3306", "ONLINE", queries, "NULL", "1", "2", "0", "100", "1", "1",
            ]
        };
        state.take(&rows(&[&row("100")]), begun);
        assert_eq!(state.rows[0][4], "");
        state.take(&rows(&[&row("125")]), begun + wide);
        assert_eq!(state.rows[0][4], "12.5");
        // It was counted from 0 again.
        state.take(&rows(&[&row("3")]), begun + wide * 2);
        assert_eq!(state.rows[0][4], "");
        let counters = |questions| rows(&[&["Questions", questions]]);
        state.count(&counters("10"), begun);
        assert_eq!(state.rate("Questions"), None);
        state.count(&counters("30"), begun + wide);
        assert_eq!(state.rate("Questions"), Some(10.0));
    }

    #[test]
    fn nothing_that_somebody_wrote_does_anything_to_a_terminal() {
        let mut state = State::of("sessions").unwrap();
        let evil = "\u{1b}[2J\u{9b}31m\nSELECT";
        state.take(
            &rows(&[&["1", "1", evil, evil, evil, "0", "Query", "5", "NULL", evil]]),
            Instant::now(),
        );
        let all = state.rows[0].concat();
        assert!(!all.contains(char::is_control), "{all:?}");
        // A row that is too short is no panic.
        state.take(&rows(&[&["1"], &[]]), Instant::now());
    }
}
