//! Columns of a table as a log has them: types, what is needed to read values, and signs where the
//! server tells them.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Table__map__event.html>

use wire::Malformed;
use wire::read::Reader;

/// Servers allow 4,096 columns.
const COLUMNS_MAX: u64 = 4096;
/// Field of optional metadata: a bit for each column of numbers, set where it has no sign.
const SIGNEDNESS: u8 = 1;

const UNKNOWN: Malformed = Malformed::new("a table with a column of a type that is not known");
const WIDE: Malformed = Malformed::new("a table with too many columns");

/// How the values of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An integer of so many bytes.
    Integer(u8),
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// DECIMAL, with its digits and those behind the point.
    Decimal(u8, u8),
    /// YEAR.
    Year,
    /// DATE.
    Date,
    /// TIME of before MySQL 5.6.
    OldTime,
    /// DATETIME of before MySQL 5.6.
    OldDatetime,
    /// TIMESTAMP of before MySQL 5.6.
    OldTimestamp,
    /// TIME, with so many digits of a second.
    Time(u8),
    /// DATETIME, with so many digits of a second.
    Datetime(u8),
    /// TIMESTAMP, with so many digits of a second.
    Timestamp(u8),
    /// BIT, of so many bytes.
    Bit(u8),
    /// ENUM, of so many bytes.
    Enum(u8),
    /// SET, of so many bytes.
    Set(u8),
    /// VARCHAR, VARBINARY, CHAR or BINARY of at most so many bytes.
    Text(u16),
    /// BLOB, TEXT, GEOMETRY or VECTOR, whose length has so many bytes.
    Blob(u8),
    /// JSON of MySQL, whose length has so many bytes.
    Json(u8),
    /// VARCHAR that a MariaDB has compressed, of at most so many bytes.
    PackedText(u16),
    /// BLOB that a MariaDB has compressed, whose length has so many bytes.
    PackedBlob(u8),
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// How its values are written.
    pub kind: Kind,
    /// Whether its numbers have no sign; none if nobody has told.
    pub unsigned: Option<bool>,
    /// Whether its values may be NULL.
    pub nullable: bool,
}

/// Reads the columns of a table: what is behind its name.
///
/// # Errors
/// They are cut, too many, or of a type that is not known.
pub fn columns(bytes: &[u8]) -> Result<Vec<Column>, Malformed> {
    let mut r = Reader::new(bytes);
    let count = r.lenenc_int()?;
    if count > COLUMNS_MAX {
        return Err(WIDE);
    }
    let count = usize::try_from(count).map_err(|_| WIDE)?;
    let types = r.take(count)?;
    let mut more = Reader::new(r.lenenc_bytes()?);
    let nullable = r.take(count.div_ceil(8))?;
    let mut columns = Vec::with_capacity(count);
    for (at, code) in types.iter().enumerate() {
        columns.push(Column {
            kind: kind(*code, &mut more)?,
            unsigned: None,
            nullable: is_set(nullable, at),
        });
    }
    while !r.is_empty() {
        let (field, value) = (r.u8()?, r.lenenc_bytes()?);
        if field == SIGNEDNESS {
            tell_signs(&mut columns, value);
        }
    }
    Ok(columns)
}

/// Bits are counted from the lowest of each byte.
pub(crate) fn is_set(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8)
        .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// Here bits are counted from the highest of each byte.
fn tell_signs(columns: &mut [Column], bits: &[u8]) {
    let is_number = |column: &&mut Column| {
        matches!(
            column.kind,
            Kind::Integer(_) | Kind::Float | Kind::Double | Kind::Decimal(..)
        )
    };
    for (at, column) in columns.iter_mut().filter(is_number).enumerate() {
        column.unsigned = bits.get(at / 8).map(|byte| byte >> (7 - at % 8) & 1 == 1);
    }
}

/// Reads a type. `more`: what types are told besides their number.
fn kind(code: u8, more: &mut Reader<'_>) -> Result<Kind, Malformed> {
    let digits = |more: &mut Reader<'_>| match more.u8()? {
        digits @ 0..=6 => Ok(digits),
        _ => Err(UNKNOWN),
    };
    let length = |more: &mut Reader<'_>| match more.u8()? {
        bytes @ 1..=4 => Ok(bytes),
        _ => Err(UNKNOWN),
    };
    Ok(match code {
        1 => Kind::Integer(1),
        2 => Kind::Integer(2),
        9 => Kind::Integer(3),
        3 => Kind::Integer(4),
        8 => Kind::Integer(8),
        4 | 5 => match (code, more.u8()?) {
            (4, 4) => Kind::Float,
            (5, 8) => Kind::Double,
            _ => return Err(UNKNOWN),
        },
        7 => Kind::OldTimestamp,
        10 | 14 => Kind::Date,
        11 => Kind::OldTime,
        12 => Kind::OldDatetime,
        13 => Kind::Year,
        17 => Kind::Timestamp(digits(more)?),
        18 => Kind::Datetime(digits(more)?),
        19 => Kind::Time(digits(more)?),
        15 | 253 => Kind::Text(more.u16()?),
        16 => bits(more.u8()?, more.u8()?)?,
        140 => Kind::PackedBlob(length(more)?),
        141 => Kind::PackedText(more.u16()?),
        242 | 249..=252 | 255 => Kind::Blob(length(more)?),
        245 => Kind::Json(length(more)?),
        246 => match (more.u8()?, more.u8()?) {
            (digits @ 1..=65, scale @ 0..=38) if scale <= digits => Kind::Decimal(digits, scale),
            _ => return Err(UNKNOWN),
        },
        247 => Kind::Enum(bytes_of(more, 2)?),
        248 => Kind::Set(bytes_of(more, 8)?),
        254 => text(more.u8()?, more.u8()?)?,
        _ => return Err(UNKNOWN),
    })
}

fn bytes_of(more: &mut Reader<'_>, max: u8) -> Result<u8, Malformed> {
    let (_type, bytes) = (more.u8()?, more.u8()?);
    match (1..=max).contains(&bytes) {
        true => Ok(bytes),
        false => Err(UNKNOWN),
    }
}

fn bits(single: u8, whole: u8) -> Result<Kind, Malformed> {
    match whole + u8::from(single > 0) {
        bytes @ 1..=8 if single < 8 && whole <= 8 => Ok(Kind::Bit(bytes)),
        _ => Err(UNKNOWN),
    }
}

/// CHAR, BINARY, ENUM and SET share a number. Two bits of a long CHAR's length are kept in the byte
/// of the type, inverted.
fn text(first: u8, second: u8) -> Result<Kind, Malformed> {
    const LENGTH_BITS: u8 = 0x30;
    if first & LENGTH_BITS != LENGTH_BITS {
        let high = u16::from(first & LENGTH_BITS ^ LENGTH_BITS) << 4;
        return Ok(Kind::Text(high | u16::from(second)));
    }
    match (first, second) {
        (247, bytes @ 1..=2) => Ok(Kind::Enum(bytes)),
        (248, bytes @ 1..=8) => Ok(Kind::Set(bytes)),
        (253 | 254, bytes) => Ok(Kind::Text(bytes.into())),
        _ => Err(UNKNOWN),
    }
}
