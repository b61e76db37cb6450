//! What a KILL asks for: `KILL [HARD | SOFT] [CONNECTION | QUERY] number`.

use crate::words::Words;

/// A KILL that was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kill {
    /// Whom; none is the session itself, by `CONNECTION_ID()`.
    pub session: Option<u64>,
    /// Only the statement that it runs.
    pub statement_only: bool,
}

/// Reads a KILL; none for what kills by something else than the number of a session (a user's name, a statement's number, an expression).
#[must_use]
pub fn kill(text: &[u8]) -> Option<Kill> {
    let mut words = Words::new(text);
    if !words.next()?.is("KILL") {
        return None;
    }
    let mut word = words.next()?;
    if word.is_any(&["HARD", "SOFT"]) {
        word = words.next()?;
    }
    let statement_only = word.is("QUERY");
    if statement_only || word.is("CONNECTION") {
        word = words.next()?;
    }
    let session = if word.is("CONNECTION_ID") {
        let called = words.next()?.is_sign(b'(') && words.next()?.is_sign(b')');
        called.then_some(None)?
    } else {
        Some(std::str::from_utf8(word.text).ok()?.parse().ok()?)
    };
    let ended = words.all(|rest| rest.is_sign(b';'));
    ended.then_some(Kill { session, statement_only })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_understood_in_every_form() {
        let whole = Kill { session: Some(7), statement_only: false };
        for text in ["KILL 7", "kill connection 7;", "KILL HARD CONNECTION /* x */ 7", "KILL SOFT 7"] {
            assert_eq!(kill(text.as_bytes()), Some(whole), "{text}");
        }
        assert_eq!(kill(b"KILL QUERY 7"), Some(Kill { statement_only: true, ..whole }));
        assert_eq!(kill(b"KILL CONNECTION_ID()"), Some(Kill { session: None, ..whole }));
    }

    #[test]
    fn what_is_no_number_of_a_session_is_not() {
        for text in [
            "KILL",
            "KILL QUERY",
            "KILL USER app",
            "KILL QUERY ID 7",
            "KILL @id",
            "KILL 7 8",
            "KILL 7; SELECT 1",
            "KILL -1",
            "SELECT 7",
        ] {
            assert_eq!(kill(text.as_bytes()), None, "{text}");
        }
    }
}
