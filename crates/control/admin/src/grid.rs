//! Rows as text, packed: an answer of a million rows is two allocations.

/// A result: names of columns, and cells row by row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grid {
    /// Names of the columns; never empty.
    pub names: Vec<String>,
    bytes: Vec<u8>,
    /// Per cell the end of its text in `bytes`, and whether it is NULL.
    ends: Vec<(usize, bool)>,
}

impl Grid {
    /// Without rows.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// One row of one column.
    pub fn one(name: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
        let mut grid = Self::new([name.into()]);
        grid.push(Some(value.as_ref()));
        grid
    }

    /// The next cell; rows fill up from the left.
    pub fn push(&mut self, cell: Option<&[u8]>) {
        self.bytes.extend_from_slice(cell.unwrap_or_default());
        self.ends.push((self.bytes.len(), cell.is_none()));
    }

    /// The next cell, written by `write`.
    pub(crate) fn push_display(&mut self, value: impl std::fmt::Display) {
        use std::io::Write as _;
        write!(self.bytes, "{value}").expect("memory takes every byte");
        self.ends.push((self.bytes.len(), false));
    }

    /// A row.
    pub fn push_row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = Option<S>>) {
        for cell in cells {
            self.push(cell.as_ref().map(|text| text.as_ref().as_bytes()));
        }
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len() / self.names.len().max(1)
    }

    /// The memory that its cells take, in bytes.
    #[must_use]
    pub fn bytes_held(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<(usize, bool)>()
    }

    /// No rows?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Row by row.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Option<&[u8]>>> {
        let width = self.names.len().max(1);
        let mut start = 0;
        self.ends.chunks(width).map(move |row| {
            let cell = |&(end, null): &(usize, bool)| {
                let text = &self.bytes[start..end];
                start = end;
                (!null).then_some(text)
            };
            row.iter().map(cell).collect()
        })
    }

    /// For tests and messages: every cell as text.
    #[must_use]
    pub fn texts(&self) -> Vec<Vec<String>> {
        let text = |cell: Option<&[u8]>| {
            cell.map_or_else(
                || "NULL".into(),
                |text| String::from_utf8_lossy(text).into_owned(),
            )
        };
        self.rows()
            .map(|row| row.into_iter().map(text).collect())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_as_they_went_in() {
        let mut grid = Grid::new(["a", "b"]);
        grid.push_row([Some("1"), None]);
        grid.push(Some(b""));
        grid.push_display(2.5);
        assert_eq!(grid.len(), 2);
        assert_eq!(
            grid.rows().collect::<Vec<_>>(),
            [[Some(&b"1"[..]), None], [Some(&b""[..]), Some(b"2.5")]]
        );
    }
}
