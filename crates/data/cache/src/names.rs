//! The tables that a kept result was read from, for who flushes by table and who lists what is
//! kept.

use std::fmt;

/// Names of tables, each with its schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
// schema, NUL, name, NUL, and so on: a name may have any other sign
pub struct TableNames(Box<str>);

impl TableNames {
    /// In order, each once. What is no UTF-8 is replaced; a name with a NUL, which no server takes,
    /// is left out.
    #[must_use]
    pub fn of(tables: &[(Vec<u8>, Vec<u8>)]) -> Self {
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut all: Vec<_> = tables
            .iter()
            .map(|(schema, name)| [words(schema), words(name)])
            .collect();
        all.retain(|pair| pair.iter().all(|part| !part.contains('\0')));
        all.sort_unstable();
        all.dedup();
        Self(
            all.iter()
                .flatten()
                .flat_map(|part| [part, "\0"])
                .collect::<String>()
                .into(),
        )
    }

    /// Schema and name of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.0.split_terminator('\0');
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Bytes on the heap.
    pub(crate) const fn heap_len(&self) -> usize {
        self.0.len()
    }
}

/// `schema.name` with commas between; what could not be told apart so is in backquotes.
impl fmt::Display for TableNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (schema, name)) in self.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "," })?;
            written(f, schema)?;
            f.write_str(".")?;
            written(f, name)?;
        }
        Ok(())
    }
}

fn written(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    if name.contains(['.', ',', '`', ' ']) {
        write!(f, "`{}`", name.replace('`', "``"))
    } else {
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_whatever_signs_they_have() {
        let of = |pairs: &[(&str, &str)]| {
            TableNames::of(
                &pairs
                    .iter()
                    .map(|(schema, name)| (schema.as_bytes().to_vec(), name.as_bytes().to_vec()))
                    .collect::<Vec<_>>(),
            )
        };
        let names = of(&[
            ("shop", "t"),
            ("a.b", "c,d"),
            ("shop", "t"),
            ("", "x"),
            ("s", "a`b"),
            ("s", "no\0"),
        ]);
        assert_eq!(
            names.iter().collect::<Vec<_>>(),
            [("", "x"), ("a.b", "c,d"), ("s", "a`b"), ("shop", "t")]
        );
        assert_eq!(names.to_string(), ".x,`a.b`.`c,d`,s.`a``b`,shop.t");
        assert_eq!(
            (of(&[]).iter().count(), of(&[]).to_string()),
            (0, String::new())
        );
    }
}
