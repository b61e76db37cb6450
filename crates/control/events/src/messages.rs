//! Messages of the log, counted by what they say: `stats_proxysql_message_metrics`.

use bridge::MessageRow;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Kinds of messages that are told apart at most; further ones are counted as [`OTHERS`].
const KINDS_MAX: usize = 1000;

/// Form of all messages that are too many to be told apart.
const OTHERS: &str = "…";

/// Characters of a form that count.
const FORM_MAX: usize = 200;

/// Counts of messages, by the thread that says them and their form.
#[derive(Debug, Default)]
pub(crate) struct Messages(BTreeMap<(String, String), Count>);

#[derive(Debug, Clone, Copy)]
struct Count {
    times: u64,
    first_s: u64,
    last_s: u64,
}

impl Messages {
    /// Counts a message that is said now.
    pub(crate) fn count(&mut self, thread: &str, words: &str) {
        let now_s = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        self.count_at(thread, words, now_s);
    }

    fn count_at(&mut self, thread: &str, words: &str, now_s: u64) {
        // All cores say the same.
        let thread = thread.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ' || c == '-');
        let mut key = (thread.to_owned(), form(words));
        if self.0.len() >= KINDS_MAX && !self.0.contains_key(&key) {
            key.1 = OTHERS.to_owned();
        }
        let count = self.0.entry(key).or_insert(Count {
            times: 0,
            first_s: now_s,
            last_s: now_s,
        });
        count.times += 1;
        count.last_s = now_s;
    }

    /// All that were counted; `reset`: from now on they are counted anew.
    pub(crate) fn rows(&mut self, reset: bool) -> Vec<MessageRow> {
        let row = |((thread, form), count): (&(String, String), &Count)| MessageRow {
            id: number(form),
            thread: thread.clone(),
            form: form.clone(),
            times: count.times,
            first_s: count.first_s,
            last_s: count.last_s,
        };
        let rows = self.0.iter().map(row).collect();
        if reset {
            self.0.clear();
        }
        rows
    }
}

/// Form of a message, which all of its kind have in common: names in quotes are `'…'`, and what has a
/// digit in it is `#`.
fn form(words: &str) -> String {
    let mut form = String::new();
    let mut quoted = false;
    for (at, part) in words.split('\'').enumerate() {
        // An apostrophe stands inside of a word, a quote does not.
        let opens = at > 0 && !quoted && !form.ends_with(|c: char| c.is_alphanumeric());
        if at > 0 && !quoted && !opens {
            form.push('\'');
        }
        quoted = opens;
        if quoted {
            form.push_str("'…'");
            continue;
        }
        let mut first = true;
        for word in part.split(' ') {
            if !std::mem::take(&mut first) {
                form.push(' ');
            }
            let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
            form.push_str(if has_digit { "#" } else { word });
        }
    }
    form.chars().take(FORM_MAX).collect()
}

/// Number of a form, five digits: the same in each process.
fn number(form: &str) -> String {
    let hash = form.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:05}", hash % 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_differ_in_names_and_numbers_have_one_form() {
        for (words, wanted) in [
            (
                "session 7 of 'app' from 10.0.0.1:5 has ended: it was silent",
                "session # of '…' from # has ended: it was silent",
            ),
            ("'db1' is found again", "'…' is found again"),
            (
                "the server's clock and the proxy's",
                "the server's clock and the proxy's",
            ),
            ("user 'o' asks", "user '…' asks"),
            ("", ""),
        ] {
            assert_eq!(form(words), wanted);
        }
    }

    #[test]
    fn messages_are_counted_by_form_and_their_number_is_bounded() {
        let mut messages = Messages::default();
        messages.count_at("core 0", "session 1 has ended", 10);
        messages.count_at("core 1", "session 22 has ended", 12);
        messages.count_at("admin", "session 22 has ended", 11);
        let rows = messages.rows(true);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (&*row.thread, &*row.form, row.times, row.first_s, row.last_s))
            .collect();
        assert_eq!(
            seen,
            [
                ("admin", "session # has ended", 1, 11, 11),
                ("core", "session # has ended", 2, 10, 12)
            ]
        );
        assert_eq!(rows[0].id, rows[1].id);
        assert!(messages.rows(false).is_empty());
        let letters = |n: usize| {
            n.to_string()
                .bytes()
                .map(|b| char::from(b + 49))
                .collect::<String>()
        };
        (0..KINDS_MAX + 7).for_each(|n| messages.count_at("t", &letters(n), 1));
        let rows = messages.rows(false);
        assert_eq!(rows.len(), KINDS_MAX + 1);
        assert!(rows.iter().any(|row| row.form == OTHERS && row.times == 7));
    }
}
