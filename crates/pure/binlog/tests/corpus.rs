//! The corpus of every fuzz target of this crate, replayed, whole and cut short; and what the
//! recordings of real servers among it say.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use binlog::{Log, Place, Transaction, fuzz_log};

const FOLDER: &str = "../../../fuzz/corpus/binlog_log";

#[test]
fn the_corpus_is_there_and_no_input_of_it_panics() {
    let files = std::fs::read_dir(FOLDER).unwrap();
    let inputs: Vec<Vec<u8>> = files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(inputs.len() >= 2, "there are no recordings");
    for input in inputs {
        for end in (0..=input.len()).step_by(5) {
            fuzz_log(&input[..end]);
            fuzz_log(&input[end..]);
        }
        // One byte is another, with a checksum that does not tell.
        for at in (0..input.len()).step_by(3) {
            let mut input = input.clone();
            input[at] ^= 0xff;
            fuzz_log(&input);
        }
    }
}

/// Transactions of a recording: all of its events, one behind the other.
fn transactions(name: &str) -> Vec<Transaction> {
    followed(name).1
}

fn followed(name: &str) -> (Log, Vec<Transaction>) {
    let recording = std::fs::read(format!("{FOLDER}/{name}")).unwrap();
    let (mut log, mut rest, mut all) = (Log::default(), recording.as_slice(), Vec::new());
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
        let (event, behind) = rest.split_at(len);
        all.extend(log.follow(event).unwrap());
        rest = behind;
    }
    (log, all)
}

/// A line for each: its number, and those of these tables that it touches.
fn shown(all: &[Transaction]) -> String {
    let mut lines = String::new();
    for Transaction { gtid, touched } in all {
        let gtid = gtid.as_ref().unwrap();
        let source = gtid.source.to_string();
        let source = source
            .split_once(':')
            .map_or(String::new(), |(_, tag)| format!("{tag} "));
        let domain = match &gtid.source {
            gtid::Source::MariaDb { domain } => format!("{domain}-"),
            gtid::Source::MySql { .. } => source,
        };
        let named = |name: &&str| touched.names().any(|one| one == (b"shop", name.as_bytes()));
        let tables: Vec<_> = ["a", "b", "c", "m", "q"]
            .into_iter()
            .filter(named)
            .collect();
        let tables = match touched.is_everything() {
            true => "everything".to_owned(),
            false => tables.join(" "),
        };
        lines.push_str(&format!("{domain}{}: {tables}\n", gtid.number));
    }
    lines
}

/// Rows, statements in both modes of strings, a compressed transaction, XA, a table made of another; and tags.
#[test]
fn a_log_of_mysql_is_followed() {
    let lines = concat!(
        "1: \n",
        "2: a\n",
        "3: b\n",
        "4: a b\n",
        "tag_one 1: a\n",
        "tag_two 1: b\n",
        "5: b\n",
        "6: a b\n",
        "7: b\n",
        "8: a\n",
        "9: b\n",
        "10: everything\n",
        "11: a c\n",
        "12: c\n",
        "13: c\n",
        "14: c\n",
        "15: c\n",
        "16: everything\n",
    );
    assert_eq!(shown(&transactions("mysql-9.7")), lines);
}

#[test]
fn a_log_of_mariadb_is_followed() {
    let lines = concat!(
        "0-1: \n",
        "0-2: a\n",
        "0-3: b\n",
        "0-4: m\n",
        "0-5: a b\n",
        "3-1: a\n",
        "0-6: m\n",
        "0-7: b\n",
        "0-8: a b\n",
        "0-9: b\n",
        "0-10: a\n",
        "0-11: b\n",
        "0-12: b\n",
        "0-13: everything\n",
        "0-14: a c\n",
        "0-15: q\n",
        "0-16: q\n",
        "0-17: c\n",
        "0-18: c\n",
        "0-19: c\n",
        "0-20: everything\n",
    );
    assert_eq!(shown(&transactions("mariadb-10.11")), lines);
}

/// The second file begins with what the first one had.
#[test]
fn a_log_goes_on_in_another_file() {
    for name in ["mysql-9.7", "mariadb-10.11"] {
        let (log, all) = followed(name);
        let files = [Place::new("log.000002", 0), Place::new("log.000003", 0)];
        assert!(files[0] < *log.place() && *log.place() < files[1]);
        let last = all.iter().map(|one| one.gtid.as_ref().unwrap());
        let last = last.filter(|gtid| !log.before().contains(gtid)).count();
        assert_eq!(last, 3, "{name}: {}", log.before());
    }
}

/// LOAD DATA, which names a column `a`; variables, ids and chance that a statement needs; and what is compressed.
#[test]
fn what_stands_between_is_passed_over() {
    let mysql = transactions("mysql-9.7-statements");
    assert_eq!(
        shown(&mysql),
        "1: \n2: b\n3: a b\n4: b\n5: b\n6: everything\n"
    );
    let mariadb = transactions("mariadb-10.11-statements");
    let lines = "0-1: \n0-2: b\n0-3: a b\n0-4: b\n0-5: b\n0-6: b\n0-7: everything\n";
    assert_eq!(shown(&mariadb), lines);
}

#[test]
fn a_checksum_that_is_wrong_ends_it() {
    let recording = std::fs::read(format!("{FOLDER}/mysql-9.7")).unwrap();
    let (mut log, mut rest, mut failed) = (Log::default(), recording.as_slice(), 0);
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
        let (event, behind) = rest.split_at(len);
        let mut other = event.to_vec();
        // The second that it was written in.
        other[0] ^= 1;
        failed += usize::from(log.follow(&other).is_err());
        log.follow(event).unwrap();
        rest = behind;
    }
    assert!(failed > 50, "{failed}");
}
