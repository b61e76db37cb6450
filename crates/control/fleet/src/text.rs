//! A module as a text: the rows that another proxy would be given, and their tables.

/// Module as it is in force: tables, each with rows of JSON, a line each. A table may come several
/// times.
pub type Pieces = Vec<(String, Vec<u8>)>;

/// A row is JSON and begins with `[`; this begins a table.
const TABLE: u8 = b'#';
/// Rows of about so many bytes are one piece.
const PIECE_BYTES: usize = 64 << 10;

/// A table is a line with its name, and its rows follow.
pub fn write(pieces: &Pieces) -> Vec<u8> {
    let mut text = Vec::new();
    for (table, rows) in pieces {
        text.push(TABLE);
        text.extend_from_slice(table.as_bytes());
        text.push(b'\n');
        text.extend_from_slice(rows);
        text.push(b'\n');
    }
    text
}

/// The pieces again; `None` if the text is none of a module.
pub fn read(text: &[u8]) -> Option<Pieces> {
    let mut pieces = Pieces::new();
    for line in text.split(|byte| *byte == b'\n') {
        match (line.split_first(), pieces.last_mut()) {
            (None, _) => {}
            (Some((&TABLE, name)), _) => {
                pieces.push((std::str::from_utf8(name).ok()?.to_owned(), Vec::new()));
            }
            (Some(_), None) => return None,
            (Some(_), Some((table, rows))) if rows.len() >= PIECE_BYTES => {
                let table = table.clone();
                pieces.push((table, line.to_vec()));
            }
            (Some(_), Some((_, rows))) => {
                if !rows.is_empty() {
                    rows.push(b'\n');
                }
                rows.extend_from_slice(line);
            }
        }
    }
    pieces.retain(|(_, rows)| !rows.is_empty());
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let pieces = vec![
            ("a".to_owned(), b"[1]\n[\"#x\"]".to_vec()),
            ("b".to_owned(), b"[2]".to_vec()),
        ];
        assert_eq!(read(&write(&pieces)), Some(pieces));
        assert_eq!(read(b""), Some(Vec::new()));
        assert_eq!(read(b"[1]\n"), None);
        assert_eq!(read(b"#\xff\n[1]"), None);
        let long = vec![("a".to_owned(), b"[1234567]\n".repeat(20_000))];
        let read = read(&write(&long)).unwrap();
        assert!(read.len() > 2 && read.iter().all(|(_, rows)| rows.len() < 70_000));
    }
}
