//! Errors by which a server says that it takes no writes any more.

use wire::errors::{
    OPTION_PREVENTS_STATEMENT, READ_ONLY_MODE, READ_ONLY_TRANSACTION, UNKNOWN_COMMAND,
};

/// Whether this error says that the server takes no writes. 1290 is said of other options as well, and 1047 by a node of Galera
/// that has lost its cluster ("WSREP has not yet prepared node for application use").
pub(crate) fn is_meant(code: u16, message: &[u8]) -> bool {
    let has = |words: &[u8]| {
        let mut parts = message.windows(words.len());
        parts.any(|part| part.eq_ignore_ascii_case(words))
    };
    match code {
        code if code == OPTION_PREVENTS_STATEMENT.number => has(b"read-only"),
        code if code == UNKNOWN_COMMAND.number => has(b"wsrep"),
        code => [READ_ONLY_MODE.number, READ_ONLY_TRANSACTION.number].contains(&code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_of_a_writer_no_more_by_its_number_and_words() {
        for (code, message, wanted) in [
            (
                1290,
                "The MySQL server is running with the --super-read-only option so it cannot",
                true,
            ),
            (
                1290,
                "The MariaDB server is running with the --read-only option",
                true,
            ),
            (
                1290,
                "The MySQL server is running with the --secure-file-priv option",
                false,
            ),
            (1836, "Running in read-only mode", true),
            (
                1792,
                "Cannot execute statement in a READ ONLY transaction.",
                true,
            ),
            (
                1047,
                "WSREP has not yet prepared node for application use",
                true,
            ),
            (1047, "Unknown command", false),
            (
                1062,
                "Duplicate entry 'read-only wsrep' for key 'PRIMARY'",
                false,
            ),
        ] {
            assert_eq!(is_meant(code, message.as_bytes()), wanted, "{message}");
        }
    }
}
