//! What ClickHouse says went wrong, under the numbers that MySQL's clients know.

use door::Refused;
use wire::errors::{self, Code};

/// Bytes of ClickHouse's words that are told, at most.
const WORDS_MAX: usize = 2000;

/// ClickHouse's number and words, out of `Code: 60, e.displayText() = DB::Exception: …`.
pub(crate) fn read(text: &[u8]) -> Option<(u32, String)> {
    let text = String::from_utf8_lossy(text);
    let at = text.find("Code: ")?;
    let rest = &text[at + 6..];
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let number = rest[..digits].parse().ok()?;
    let words = rest[digits..]
        .split_once("Exception: ")
        .map_or(&rest[digits..], |(_, words)| words);
    let words = words
        .rsplit_once(", e.what()")
        .map_or(words, |(words, _)| words);
    let words: String = words.trim().chars().take(WORDS_MAX).collect();
    Some((number, words))
}

/// As the client is told.
pub(crate) fn refused(number: u32, words: &str) -> Refused {
    let code = |number, state| Code { number, state };
    let code = match number {
        36 | 42 | 43 => code(1210, "HY000"),
        46 => code(1305, "42000"),
        47 => errors::UNKNOWN_COLUMN,
        57 => code(1050, "42S01"),
        60 => errors::NO_SUCH_TABLE,
        62 => errors::PARSE,
        81 => errors::UNKNOWN_DATABASE,
        82 => code(1007, "HY000"),
        115 => errors::UNKNOWN_SYSTEM_VARIABLE,
        159 => code(3024, "HY000"),
        164 => code(1290, "HY000"),
        192 | 193 | 194 | 516 => errors::ACCESS_DENIED,
        201 => errors::USER_LIMIT_REACHED,
        202 => errors::TOO_MANY_CONNECTIONS,
        241 => errors::OUT_OF_RESOURCES,
        394 => code(1317, "70100"),
        497 => code(1142, "42000"),
        _ => errors::UNKNOWN_ERROR,
    };
    Refused::new(code, format!("ClickHouse {number}: {words}"))
}

/// ClickHouse is not there. A number of MySQL's own clients, such as 2003, would be none that a server
/// may say.
pub(crate) fn unreachable(words: &str) -> Refused {
    let gone = Code {
        number: 1429,
        state: "HY000",
    };
    Refused::new(gone, format!("ClickHouse cannot be reached: {words}"))
}

/// Whether ClickHouse is not there, or has gone.
pub(crate) fn is_gone(refused: &Refused) -> bool {
    matches!(refused.code, 1429 | 1430)
}

/// ClickHouse was there, and what it says is not whole.
pub(crate) fn lost(words: &str) -> Refused {
    let gone = Code {
        number: 1430,
        state: "HY000",
    };
    Refused::new(gone, format!("ClickHouse is lost: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_are_those_of_clickhouse() {
        let old = b"Code: 47, e.displayText() = DB::Exception: Unknown identifier: a, e.what() = DB::Exception\n";
        assert_eq!(read(old), Some((47, "Unknown identifier: a".into())));
        let new = b"Code: 60. DB::Exception: Table default.x does not exist. (UNKNOWN_TABLE) (version 25.8)";
        let words = "Table default.x does not exist. (UNKNOWN_TABLE) (version 25.8)";
        assert_eq!(read(new), Some((60, words.into())));
        assert_eq!(read(b"anything"), None);
        assert_eq!(refused(60, "x").code, 1146);
        assert_eq!(refused(99_999, "x").message, "ClickHouse 99999: x");
    }
}
