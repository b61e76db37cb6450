//! What servers compress in their logs.

use std::io::Read;
use wire::Malformed;
use wire::read::Reader;

/// A transaction or statement may have so many bytes before it was compressed.
const UNPACKED_MAX: u64 = 64 << 20;

const TOO_LONG: Malformed = Malformed::new("something compressed is too long");
const BROKEN: Malformed = Malformed::new("something compressed is broken");

/// Unpacks the body of a TRANSACTION_PAYLOAD_EVENT: fields of a type, a length and a value, an end,
/// and the events. None if it is too long, or compressed in a way that is not known.
///
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Transaction__payload__event.html>
pub(crate) fn payload(body: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    const END: u64 = 0;
    const ALGORITHM: u64 = 2;
    const ZSTD: u64 = 0;
    const NONE: u64 = 255;
    let mut r = Reader::new(body);
    let mut algorithm = NONE;
    loop {
        match r.lenenc_int()? {
            END => break,
            ALGORITHM => algorithm = Reader::new(r.lenenc_bytes()?).lenenc_int()?,
            _ => drop(r.lenenc_bytes()?),
        }
    }
    match algorithm {
        ZSTD => {
            let decoder = zstd::stream::read::Decoder::new(r.rest()).map_err(|_| BROKEN)?;
            match unpacked(decoder) {
                Err(TOO_LONG) => Ok(None),
                unpacked => unpacked.map(Some),
            }
        }
        NONE => Ok(Some(r.rest().to_vec())),
        _ => Ok(None),
    }
}

/// Unpacks a text of a MariaDB: the length of its length, that length, and zlib. None if it is too
/// long.
pub(crate) fn text(packed: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    const LEN_LEN: u8 = 7;
    let mut r = Reader::new(packed);
    let len_len = r.u8()? & LEN_LEN;
    r.take(usize::from(len_len))?;
    match unpacked(flate2::read::ZlibDecoder::new(r.rest())) {
        Err(TOO_LONG) => Ok(None),
        unpacked => unpacked.map(Some),
    }
}

/// Unpacks what a MariaDB has compressed in a column, or in an event of rows. `how`: the way, whether
/// there is a header of zlib, and bytes of the length that comes first.
pub(crate) fn column(how: u8, packed: &[u8]) -> Result<Vec<u8>, Malformed> {
    const ZLIB: u8 = 8;
    const HAS_HEADER: u8 = 8;
    if how >> 4 != ZLIB {
        return Err(Malformed::new(
            "a column that is compressed in no known way",
        ));
    }
    let mut r = Reader::new(packed);
    r.take(usize::from(how & 7))?;
    match how & HAS_HEADER {
        0 => unpacked(flate2::read::DeflateDecoder::new(r.rest())),
        _ => unpacked(flate2::read::ZlibDecoder::new(r.rest())),
    }
}

fn unpacked(from: impl Read) -> Result<Vec<u8>, Malformed> {
    let mut out = Vec::new();
    let read = from.take(UNPACKED_MAX + 1).read_to_end(&mut out);
    let read = read.map_err(|_| BROKEN)? as u64;
    match read > UNPACKED_MAX {
        true => Err(TOO_LONG),
        false => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn what_grows_too_much_is_not_unpacked() {
        let zeros = vec![0; usize::try_from(UNPACKED_MAX).unwrap() + 1];
        // The algorithm, the end, the events.
        let payload_of = |events: &[u8]| {
            let packed = zstd::encode_all(events, 1).unwrap();
            payload(&[&[2, 1, 0, 0][..], &packed].concat())
        };
        assert_eq!(payload_of(b"events"), Ok(Some(b"events".to_vec())));
        assert_eq!(payload_of(&zeros), Ok(None));
        let text_of = |sql: &[u8]| {
            let mut packed = vec![0x81, 6];
            let mut encoder =
                flate2::write::ZlibEncoder::new(&mut packed, flate2::Compression::fast());
            encoder.write_all(sql).unwrap();
            encoder.finish().unwrap();
            text(&packed)
        };
        assert_eq!(text_of(b"DO 1"), Ok(Some(b"DO 1".to_vec())));
        assert_eq!(text_of(&zeros), Ok(None));
    }

    #[test]
    fn what_is_packed_in_no_known_way_is_not_unpacked() {
        assert_eq!(payload(&[2, 1, 7, 0, b'x']), Ok(None));
        assert_eq!(
            payload(&[2, 3, 0xfc, 255, 0, 0, b'x']),
            Ok(Some(b"x".to_vec()))
        );
        assert_eq!(payload(&[2, 1, 0, 0, b'x']), Err(BROKEN));
        assert!(payload(&[2]).is_err());
    }
}
