//! Statements that mean to be answered anew each time: their result is nobody else's, or nobody can
//! tell when it is over.

use crate::lexing::Lexing;
use crate::words::{Kind, unquote};

/// Functions whose answer is another one each time, or whose call is what matters. Sorted.
const FUNCTIONS: &[&str] = &[
    "ASYMMETRIC_ENCRYPT",
    "BENCHMARK",
    "CONNECTION_ID",
    "CREATE_ASYMMETRIC_PRIV_KEY",
    "CREATE_DH_PARAMETERS",
    "ENCRYPT",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LOAD_FILE",
    "MASTER_GTID_WAIT",
    "MASTER_POS_WAIT",
    "MYSQL_QUERY_ATTRIBUTE_STRING",
    "PS_THREAD_ID",
    "RAND",
    "RANDOM_BYTES",
    "SLEEP",
    "SOURCE_POS_WAIT",
    "SYS_GUID",
    "UUID",
    "UUID_SHORT",
    "UUID_V4",
    "UUID_V7",
    "WAIT_FOR_EXECUTED_GTID_SET",
    "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS",
    "WSREP_LAST_SEEN_GTID",
    "WSREP_LAST_WRITTEN_GTID",
    "WSREP_SYNC_WAIT_UPTO_GTID",
];

/// The longest of them.
const LONGEST: usize = 33;

/// Whether a statement calls such a function, reads a variable of the server (`@@x`, also
/// `@@global.x`: a SET GLOBAL of anybody changes it), or has an executable comment that servers
/// read differently. NOW() and its like are not among them: how old they may be is what a time to
/// live says.
#[must_use]
pub fn is_volatile(sql: &[u8], lexing: Lexing) -> bool {
    let mut words = lexing.words(sql);
    while let Some(token) = words.next() {
        if token.is_sign(b'@') && words.is_before(b'@') {
            return true;
        }
        // A name in backquotes can be a function too.
        let text = unquote(token.text);
        if matches!(token.kind, Kind::Word | Kind::Name)
            && text.len() <= LONGEST
            && words.is_before(b'(')
        {
            let mut upper = [0; LONGEST];
            let upper = &mut upper[..text.len()];
            upper.copy_from_slice(&text);
            upper.make_ascii_uppercase();
            if FUNCTIONS
                .binary_search_by(|known| known.as_bytes().cmp(upper))
                .is_ok()
            {
                return true;
            }
        }
    }
    words.is_conditional()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_another_answer_each_time_is_volatile() {
        assert!(FUNCTIONS.is_sorted() && FUNCTIONS.iter().all(|name| name.len() <= LONGEST));
        for sql in [
            "SELECT uuid()",
            "SELECT * FROM t ORDER BY RAND() LIMIT 1",
            "SELECT a FROM t WHERE b = Sleep (1)",
            "SELECT `uuid`()",
            "SELECT CREATE_ASYMMETRIC_PRIV_KEY('RSA', 2048), create_dh_parameters(1024)",
            "SELECT ENCRYPT('a'), ASYMMETRIC_ENCRYPT('RSA', 'a', @@x)",
            "SELECT WSREP_LAST_SEEN_GTID()",
            "SELECT wsrep_last_written_gtid()",
            "SELECT WSREP_SYNC_WAIT_UPTO_GTID('00-1', 5)",
            "SELECT wait_until_sql_thread_after_gtids('u:1', 1)",
            "SELECT 1 /*!80000 + 1 */",
            "SELECT @@global.read_only",
            "SELECT a FROM t WHERE @@ GLOBAL.gtid_executed <> ''",
        ] {
            assert!(is_volatile(sql.as_bytes(), Lexing::Escapes), "{sql}");
        }
        for sql in [
            "SELECT '@@x'",
            "SELECT a FROM `@@global`",
            "SELECT uuid FROM t",
            "SELECT NOW()",
            "SELECT 'rand()'",
            "SELECT 1 -- sleep()",
            "SELECT COUNT(*) FROM rand",
        ] {
            assert!(!is_volatile(sql.as_bytes(), Lexing::Escapes), "{sql}");
        }
    }
}
