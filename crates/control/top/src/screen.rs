//! The screen: counters above, rows below, keys at the bottom.

use crate::state::State;
use crate::views::{VIEWS, View};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Row, Table};
use web::show::{grouped, short, time};

const KEYS: &str = "1-4 view  s sort  p pause  space now  arrows scroll  h help  q quit";

const HELP: &str = "\
1 2 3 4  queries, servers, sessions, errors
Tab      the next of them
s        sort by something else
p        pause, or go on
space    ask now
arrows   scroll, also by page
h ?      this
q        quit

Times are of all since the start, /S is since the screen before.
Any key goes on.";

/// Draws all.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &State, title: &str) {
    let parts = [
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ];
    let [above, tabs, middle, below] = Layout::vertical(parts).areas(frame.area());
    let counters = Paragraph::new(vec![
        Line::from(title.to_owned()),
        Line::from(counters(state)),
    ]);
    frame.render_widget(counters, above);
    frame.render_widget(Paragraph::new(names(state)), tabs);
    rows(frame, state, middle);
    let said = match &state.words {
        Some(words) => Line::styled(words.clone(), Style::new().add_modifier(Modifier::REVERSED)),
        None if state.stands => Line::from(format!("paused   {KEYS}")),
        None => Line::from(KEYS),
    };
    frame.render_widget(Paragraph::new(said), below);
    if state.helps {
        frame.render_widget(Clear, middle);
        frame.render_widget(Paragraph::new(HELP), middle);
    }
}

fn counters(state: &State) -> String {
    let now = |name: &str| {
        let value = state.now.get(name).copied().unwrap_or(0.0);
        grouped(&format!("{value:.0}"))
    };
    let rate = |name: &str| {
        state
            .rate(name)
            .map_or_else(String::new, |rate| format!(" ({}/s)", short(rate)))
    };
    format!(
        "statements {}{}, slow {}, clients {} ({} with a statement), connections to servers {}, up {}",
        now("Questions"),
        rate("Questions"),
        now("Slow_queries"),
        now("Client_Connections_connected"),
        now("Client_Connections_non_idle"),
        now("Server_Connections_connected"),
        up(state.now.get("ProxySQL_Uptime").copied().unwrap_or(0.0)),
    )
}

/// Seconds for which the proxy is there, in words.
fn up(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds => time(seconds * 1e6),
    }
}

/// Names of the views, with what the one that is shown is sorted by.
fn names(state: &State) -> Line<'static> {
    let (view, chosen) = (
        state.view(),
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
    );
    let mut all = Vec::new();
    for (at, one) in VIEWS.iter().enumerate() {
        let style = if one.name == view.name {
            chosen
        } else {
            Style::new()
        };
        all.push(Span::styled(format!("{} {}", at + 1, one.name), style));
        all.push(Span::raw("   "));
    }
    let order = view.orders[state.order()].0;
    all.push(Span::raw(format!("by {order}, {} rows", state.rows.len())));
    Line::from(all)
}

fn rows(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let view = state.view();
    if state.rows.is_empty() {
        return frame.render_widget(Paragraph::new(view.empty), area);
    }
    let header = Row::new(
        view.columns
            .iter()
            .enumerate()
            .map(|(at, column)| aligned(view, at, column.0)),
    );
    let shown = state
        .rows
        .iter()
        .skip(state.above)
        .take(usize::from(area.height));
    let shown = shown.map(|row| {
        Row::new(
            row.iter()
                .enumerate()
                .map(|(at, cell)| aligned(view, at, cell)),
        )
    });
    let table = Table::new(shown, widths(view))
        .header(header.style(Style::new().add_modifier(Modifier::REVERSED)));
    frame.render_widget(table, area);
}

fn widths(view: &View) -> Vec<Constraint> {
    let width = |width: u16| match width {
        0 => Constraint::Min(10),
        width => Constraint::Length(width),
    };
    view.columns.iter().map(|column| width(column.1)).collect()
}

fn aligned(view: &View, at: usize, text: &str) -> Line<'static> {
    let line = Line::from(text.to_owned());
    let is_number = view
        .columns
        .get(at)
        .is_some_and(|column| column.2.is_number() && column.1 > 0);
    if is_number {
        line.right_aligned()
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::rows;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Instant;

    fn drawn(state: &State, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| draw(frame, state, "millrace top"))
            .unwrap();
        crate::text(terminal.backend().buffer())
    }

    #[test]
    fn a_screen_has_counters_rows_and_keys() {
        let mut state = State::of("servers").unwrap();
        assert!(drawn(&state, (100, 12)).contains("There are no servers."));
        let row = [
            "key", "0", "db:3306", "ONLINE", "12345", "NULL", "1", "2", "0", "1500", "1024", "0",
        ];
        state.take(&rows(&[&row]), Instant::now());
        state.count(
            &rows(&[&["Questions", "12345"], &["ProxySQL_Uptime", "90"]]),
            Instant::now(),
        );
        let screen = drawn(&state, (130, 12));
        for words in [
            "statements 12\u{202f}345, slow 0",
            "up 90 s",
            "2 servers",
            "by hostgroup, 1 rows",
            "db:3306",
            "1.5 ms",
            KEYS,
        ] {
            assert!(screen.contains(words), "no {words:?} in\n{screen}");
        }
        state.helps = true;
        assert!(drawn(&state, (100, 20)).contains("sort by something else"));
    }

    #[test]
    fn a_small_terminal_is_no_panic() {
        let mut state = State::of("queries").unwrap();
        state.take(&rows(&[&["k"; 10], &["<b>\u{1f600}"; 10]]), Instant::now());
        for size in [(1, 1), (10, 3), (20, 5), (80, 24), (300, 4)] {
            drawn(&state, size);
        }
        state.above = 1;
        assert!(!drawn(&state, (200, 10)).contains(" k "));
    }
}
