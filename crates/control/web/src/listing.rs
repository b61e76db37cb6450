//! Listings: what a question to the admin port is shown as.

use crate::show::As;
use bridge::{Table, Unanswered};
use maud::{Markup, html};

/// Characters of a cell that are shown at most.
const CELL_CHARS_MAX: usize = 2000;

/// A column.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) show: As,
}

/// Column of this title.
pub(crate) const fn col(title: &'static str, show: As) -> Column {
    Column { title, show }
}

/// A table on a page, and the statement whose answer it shows.
pub(crate) struct Listing {
    /// Caption of the table.
    pub(crate) caption: &'static str,
    /// Statement with as many columns as there are here.
    pub(crate) sql: &'static str,
    pub(crate) columns: &'static [Column],
    /// Words where there are no rows.
    pub(crate) empty: &'static str,
}

/// A row of an answer.
pub(crate) type Row = [Option<Box<str>>];

/// The text of a cell; empty for NULL, and where there is none.
pub(crate) fn cell(row: &Row, at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

impl Listing {
    /// The table, or why there is none.
    pub(crate) fn show(&self, answer: &Result<Table, Unanswered>) -> Markup {
        self.show_with(answer, None, |_| html! {})
    }

    /// The table with one more column, which `last` fills.
    pub(crate) fn show_with(
        &self,
        answer: &Result<Table, Unanswered>,
        title: Option<&str>,
        last: impl Fn(&Row) -> Markup,
    ) -> Markup {
        let rows = match answer {
            Ok(table) => &table.rows,
            Err(unanswered) => {
                return html! {
                    h2 { (self.caption) }
                    (complaint(words(unanswered)))
                };
            }
        };
        if rows.is_empty() {
            return html! { h2 { (self.caption) } p.none { (self.empty) } };
        }
        html! {
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table {
                    caption { (self.caption) " " span.count { "(" (rows.len()) ")" } }
                    thead { tr {
                        @for column in self.columns {
                            th scope="col" .number[column.show.is_number()] { (column.title) }
                        }
                        @if let Some(title) = title { th scope="col" { (title) } }
                    } }
                    tbody {
                        @for row in rows {
                            tr {
                                @for (at, column) in self.columns.iter().enumerate() {
                                    (field(column.show, at, row.get(at).and_then(Option::as_deref)))
                                }
                                @if title.is_some() { td { (last(row)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A cell; the first of a row names it.
fn field(show: As, at: usize, value: Option<&str>) -> Markup {
    let inside = html! {
        @match value {
            None => span.none { "none" },
            Some(value) => @match show {
                As::Code => code { (cut(value)) },
                As::State => span class=(state(value)) { (value) },
                _ => (cut(&show.words(value))),
            }
        }
    };
    html! {
        @if at == 0 {
            th scope="row" .number[show.is_number()] { (inside) }
        } @else {
            td .number[show.is_number()] .moment[show == As::Moment] { (inside) }
        }
    }
}

/// Class of a server's state.
fn state(value: &str) -> &'static str {
    match value {
        "ONLINE" => "state good",
        "OFFLINE_SOFT" => "state warn",
        _ => "state bad",
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CELL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Why something is not there.
pub(crate) fn complaint(words: &str) -> Markup {
    html! { p.bad role="alert" { (words) } }
}

/// Words of one that has no answer.
pub(crate) fn words(unanswered: &Unanswered) -> &str {
    match unanswered {
        Unanswered::Out => "the credentials have changed: log in again",
        Unanswered::Said(words) => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: Listing = Listing {
        caption: "Two",
        sql: "",
        columns: &[
            col("name", As::Text),
            col("n", As::Number),
            col("sql", As::Code),
            col("is", As::State),
        ],
        empty: "nothing",
    };

    #[test]
    fn every_value_is_escaped_whatever_its_column_is() {
        let evil = r#"<script>alert("1")</script>"#;
        let table = Table {
            names: Vec::new(),
            rows: vec![vec![Some(evil.into()); 4], vec![None; 4]],
        };
        let shown = LISTING.show_with(
            &Ok(table),
            Some("do"),
            |row| html! { a href=(cell(row, 0)) { (cell(row, 1)) } },
        );
        let shown = shown.into_string();
        assert!(!shown.contains("<script"), "{shown}");
        assert_eq!(shown.matches("&lt;script&gt;").count(), 6, "{shown}");
        let failed = LISTING
            .show(&Err(Unanswered::Said(evil.into())))
            .into_string();
        assert!(failed.contains("&lt;script&gt;") && !failed.contains("<script"));
        assert!(
            LISTING
                .show(&Ok(Table::default()))
                .into_string()
                .contains("nothing")
        );
    }

    #[test]
    fn a_cell_has_a_bound() {
        let long = "é".repeat(CELL_CHARS_MAX + 1);
        assert_eq!(cut(&long).chars().count(), CELL_CHARS_MAX + 1);
        assert!(cut(&long).ends_with('…'));
        assert_eq!(cut("short"), "short");
    }
}
