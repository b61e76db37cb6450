//! Answers of partitions to a change, one by one and all together, and how a client is told of them.

use crate::command::job::Told;
use crate::command::trouble::Ended;
use crate::partitions::returned::Returned;
use crate::partitions::said::Answer;
use crate::session::Session;
use sql::words::Words;
use wire::caps::Caps;
use wire::{ok, packet};

/// Words before the INTO of an INSERT, and it.
const WORDS_BEFORE_INTO: usize = 4;

/// A partition's answer to a change, or that of all together.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) affected: u64,
    pub(crate) insert_id: u64,
    pub(crate) warnings: u16,
    /// Numbers of the words of an OK, as `Records: 3`.
    pub(crate) words: Vec<(String, u64)>,
    /// Rows, where it was answered with them.
    pub(crate) returned: Option<Returned>,
}

/// Tells the client, as one server would.
pub(crate) async fn answer(session: &mut Session, sum: &Made) -> Result<Told, Ended> {
    let flags = session.flags() | session.turn.flags();
    let words: Vec<_> = sum
        .words
        .iter()
        .map(|(name, number)| format!("{name}: {number}"))
        .collect();
    let mut bytes = Vec::new();
    let mut writer = session.writer(&mut bytes, session.turn.sent, flags);
    writer.ok(&ok::Ok {
        affected: sum.affected,
        insert_id: sum.insert_id,
        warnings: sum.warnings,
        info: words.join("  ").as_bytes(),
        ..ok::Ok::default()
    });
    session.turn.sent = writer.last_seq();
    session.turn.failed = false;
    session.hand_over(bytes).await?;
    Ok(Told {
        rows_affected: sum.affected,
        insert_id: sum.insert_id,
        row_count: i64::try_from(sum.affected).unwrap_or(i64::MAX),
        ..Told::default()
    })
}

impl Made {
    /// Of a change that has no row, in these words.
    pub(crate) fn of_no_rows(words: &[&str]) -> Self {
        let words = words.iter().map(|word| ((*word).to_owned(), 0));
        Self {
            words: words.collect(),
            ..Self::default()
        }
    }

    pub(crate) fn of(answer: &Answer, caps: Caps) -> Self {
        let (response, payload) = (&answer.response, packet::join(&answer.bytes));
        let ok = payload
            .as_ref()
            .and_then(|(payload, _, _)| ok::Ok::read(payload, caps).ok());
        Self {
            affected: response.affected_rows(),
            insert_id: response.insert_id(),
            warnings: response.warnings(),
            words: ok.map_or_else(Vec::new, |ok| numbers(ok.info)),
            returned: None,
        }
    }

    /// Words that servers leave out where an INSERT has one row only, and that it has here as a part
    /// of more.
    pub(crate) fn of_one_row(&self, text: &[u8]) -> Vec<(String, u64)> {
        let ignores = || {
            Words::new(text)
                .take(WORDS_BEFORE_INTO)
                .any(|word| word.is("IGNORE"))
        };
        let duplicates = match self.affected {
            0 => u64::from(ignores()),
            affected => affected - 1,
        };
        let numbers = [1, duplicates, self.warnings.into()];
        let names = ["Records", "Duplicates", "Warnings"].map(str::to_owned);
        names.into_iter().zip(numbers).collect()
    }

    /// Rows that an UPDATE has found.
    pub(crate) fn matched(&self) -> u64 {
        let mut words = self.words.iter();
        let matched = words.find(|(name, _)| name == "Rows matched");
        matched.map_or(self.affected, |(_, number)| *number)
    }

    pub(crate) fn add(&mut self, part: Self) {
        self.affected = self.affected.saturating_add(part.affected);
        self.warnings = self.warnings.saturating_add(part.warnings);
        if part.insert_id != 0 {
            self.insert_id = part.insert_id;
        }
        for (name, number) in part.words {
            match self.words.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum = sum.saturating_add(number),
                None => self.words.push((name, number)),
            }
        }
        match (&mut self.returned, part.returned) {
            (Some(all), Some(returned)) => all.add(returned),
            (all, returned) => *all = all.take().or(returned),
        }
    }
}

/// The numbers of `Records: 3  Duplicates: 0  Warnings: 0`.
fn numbers(info: &[u8]) -> Vec<(String, u64)> {
    let info = String::from_utf8_lossy(info);
    let pairs = info.split("  ").filter_map(|word| word.split_once(": "));
    pairs
        .filter_map(|(name, number)| Some((name.to_owned(), number.trim().parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_the_words_of_an_ok_are_read() {
        let wanted = [("Rows matched".to_owned(), 2), ("Changed".to_owned(), 1)];
        assert_eq!(numbers(b"Rows matched: 2  Changed: 1"), wanted);
        assert_eq!(numbers(b""), []);
        assert_eq!(numbers(b"what: is this"), []);
    }
}
