//! Errors by which a server says that it takes no writes any more.

use wire::errors::{OPTION_PREVENTS_STATEMENT, READ_ONLY_MODE, READ_ONLY_TRANSACTION};

/// Whether this error says that the server takes no writes. 1290 is said of other options as well.
pub(crate) fn is_meant(code: u16, message: &[u8]) -> bool {
    const OPTION: &[u8] = b"read-only";
    match code {
        code if code == OPTION_PREVENTS_STATEMENT.number => message
            .windows(OPTION.len())
            .any(|part| part.eq_ignore_ascii_case(OPTION)),
        code => [READ_ONLY_MODE.number, READ_ONLY_TRANSACTION.number].contains(&code),
    }
}
