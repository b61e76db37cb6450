//! Places in a log: a file, and bytes in it.

/// Where an event ends. Later places are greater.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Names of files grow when their numbers do.
    name_len: usize,
    file: Box<str>,
    end: u64,
}

impl Place {
    /// So many bytes into this file.
    #[must_use]
    pub fn new(file: &str, end: u64) -> Self {
        Self {
            name_len: file.len(),
            file: file.into(),
            end,
        }
    }

    /// So many bytes into the same file.
    #[must_use]
    pub(crate) fn at(&self, end: u64) -> Self {
        Self {
            end,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_places_are_greater() {
        let all = [
            Place::default(),
            Place::new("log.000009", 5),
            Place::new("log.000009", 70),
            Place::new("log.000010", 4),
            Place::new("log.999999", 4),
            Place::new("log.1000000", 4),
        ];
        assert!(all.is_sorted());
    }
}
