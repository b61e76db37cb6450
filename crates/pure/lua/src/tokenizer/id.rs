//! Numbers and names of tokens, in the order of MySQL Proxy 0.8.

/// Kind of a token. Numbers changed between versions of MySQL Proxy; names did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(u16);

/// Declares kinds in the order of their numbers, each with its name.
macro_rules! kinds {
    ($($number:literal $constant:ident)*) => {
        impl Id {
            $(
                #[doc = concat!("`TK_", stringify!($constant), "`.")]
                pub const $constant: Self = Self($number);
            )*
        }

        const KINDS: &[&str] = &[$(concat!("TK_", stringify!($constant))),*];
    };
}

/// Declares keywords in the order of their numbers.
macro_rules! keywords {
    ($($word:ident)*) => {
        const KEYWORDS: &[&str] = &[$(concat!("TK_SQL_", stringify!($word))),*];
    };
}

kinds! {
    0 UNKNOWN 1 LE 2 GE 3 LT 4 GT 5 EQ 6 NE 7 STRING 8 COMMENT 9 LITERAL 10 FUNCTION 11 INTEGER
    12 FLOAT 13 DOT 14 COMMA 15 ASSIGN 16 OBRACE 17 CBRACE 18 SEMICOLON 19 STAR 20 PLUS 21 MINUS
    22 DIV 23 BITWISE_AND 24 BITWISE_OR 25 BITWISE_XOR 26 LOGICAL_AND 27 LOGICAL_OR
}

keywords! {
    ACCESSIBLE ACTION ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN BIGINT BINARY BIT
    BLOB BOTH BY CALL CASCADE CASE CHANGE CHAR CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT
    CONTINUE CONVERT CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR
    DATABASE DATABASES DATE DAY_HOUR DAY_MICROSECOND DAY_MINUTE DAY_SECOND DEC DECIMAL DECLARE
    DEFAULT DELAYED DELETE DESC DESCRIBE DETERMINISTIC DISTINCT DISTINCTROW DIV DOUBLE DROP DUAL
    EACH ELSE ELSEIF ENCLOSED ENUM ESCAPED EXISTS EXIT EXPLAIN FALSE FETCH FLOAT FLOAT4 FLOAT8 FOR
    FORCE FOREIGN FROM FULLTEXT GRANT GROUP HAVING HIGH_PRIORITY HOUR_MICROSECOND HOUR_MINUTE
    HOUR_SECOND IF IGNORE IN INDEX INFILE INNER INOUT INSENSITIVE INSERT INT INT1 INT2 INT3 INT4
    INT8 INTEGER INTERVAL INTO IS ITERATE JOIN KEY KEYS KILL LEADING LEAVE LEFT LIKE LIMIT LINEAR
    LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LOOP LOW_PRIORITY
    MASTER_SSL_VERIFY_SERVER_CERT MATCH MEDIUMBLOB MEDIUMINT MEDIUMTEXT MIDDLEINT
    MINUTE_MICROSECOND MINUTE_SECOND MOD MODIFIES NATURAL NO NOT NO_WRITE_TO_BINLOG NULL NUMERIC ON
    OPTIMIZE OPTION OPTIONALLY OR ORDER OUT OUTER OUTFILE PRECISION PRIMARY PROCEDURE PURGE RANGE
    READ READ_ONLY READS READ_WRITE REAL REFERENCES REGEXP RELEASE RENAME REPEAT REPLACE REQUIRE
    RESTRICT RETURN REVOKE RIGHT RLIKE SCHEMA SCHEMAS SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR
    SET SHOW SMALLINT SPATIAL SPECIFIC SQL SQL_BIG_RESULT SQL_CALC_FOUND_ROWS SQLEXCEPTION
    SQL_SMALL_RESULT SQLSTATE SQLWARNING SSL STARTING STRAIGHT_JOIN TABLE TERMINATED TEXT THEN TIME
    TIMESTAMP TINYBLOB TINYINT TINYTEXT TO TRAILING TRIGGER TRUE UNDO UNION UNIQUE UNLOCK UNSIGNED
    UPDATE USAGE USE USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES VARBINARY VARCHAR VARCHARACTER
    VARYING WHEN WHERE WHILE WITH WRITE X509 XOR YEAR_MONTH ZEROFILL
}

const PREFIX: usize = "TK_SQL_".len();
const KEYWORD_FIRST: u16 = 28;
/// Keywords are 28 to 260, and what follows is the comment that MySQL executes.
const _: () = assert!(KINDS.len() == 28 && KEYWORDS.len() == 233);

/// First keyword of each letter, and the end of the last one's.
const LETTERS: [usize; 27] = letters();

const fn letters() -> [usize; 27] {
    let mut starts = [0; 27];
    let mut letter = 0;
    let mut index = 0;
    while letter < 26 {
        starts[letter] = index;
        while index < KEYWORDS.len() && KEYWORDS[index].as_bytes()[PREFIX] == b'A' + letter as u8 {
            index += 1;
        }
        letter += 1;
    }
    starts[26] = index;
    starts
}

const _: () = assert!(LETTERS[26] == KEYWORDS.len(), "keywords are not by letter");

impl Id {
    /// `TK_COMMENT_MYSQL`, a comment that MySQL executes.
    pub const COMMENT_MYSQL: Self = Self(261);

    /// Keyword of a word in any case.
    pub fn keyword(word: &[u8]) -> Option<Self> {
        let letter = usize::from(word.first()?.to_ascii_uppercase().checked_sub(b'A')?);
        let (start, end) = (*LETTERS.get(letter)?, *LETTERS.get(letter + 1)?);
        let fits = |name: &str| name.as_bytes()[PREFIX..].eq_ignore_ascii_case(word);
        let index = start + KEYWORDS[start..end].iter().position(|name| fits(name))?;
        Some(Self(KEYWORD_FIRST + u16::try_from(index).ok()?))
    }

    /// Kind of this number, if there is one.
    #[must_use]
    pub fn of(number: u16) -> Option<Self> {
        (number <= Self::COMMENT_MYSQL.0).then_some(Self(number))
    }

    /// Number, as scripts read it in `token_id`.
    pub fn number(self) -> u16 {
        self.0
    }

    /// Name, as scripts read it in `token_name`.
    pub fn name(self) -> &'static str {
        let number = usize::from(self.0);
        let keyword = || KEYWORDS.get(number.checked_sub(usize::from(KEYWORD_FIRST))?);
        match KINDS.get(number).or_else(keyword) {
            Some(name) => name,
            None => "TK_COMMENT_MYSQL",
        }
    }

    /// Names of all kinds in the order of their numbers, from 0 on.
    pub fn names() -> impl Iterator<Item = &'static str> {
        (0..=Self::COMMENT_MYSQL.0).map(|number| Self(number).name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_by_its_name_in_any_case() {
        for (index, name) in KEYWORDS.iter().enumerate() {
            let word = name[PREFIX..].to_ascii_lowercase();
            let id = Id::keyword(word.as_bytes()).unwrap();
            assert_eq!(usize::from(id.number()), 28 + index);
            assert_eq!(id.name(), *name);
        }
        assert_eq!(Id::keyword(b"ZEROFILL").unwrap().number(), 260);
    }

    #[test]
    fn words_of_newer_versions_are_none() {
        let words: [&[u8]; 7] = [b"COMMIT", b"OFFSET", b"x", b"", b"_", b"{", b"\xc3"];
        for word in words {
            assert_eq!(Id::keyword(word), None);
        }
    }

    #[test]
    fn names_are_one_for_each_number() {
        assert_eq!(Id::names().count(), 262);
        assert_eq!(Id::names().last(), Some("TK_COMMENT_MYSQL"));
    }
}
