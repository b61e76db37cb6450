//! What servers are asked, by their version, and what their answers say.

use crate::kinds;
use crate::seen::Channels;
use config::{AuroraHostgroupRow, Servers, TopologyKind, TopologyRows};

/// Rows of an answer: texts, or NULL.
pub type Rows = [Vec<Option<Vec<u8>>>];

/// Whether this is a version of MariaDB's.
pub(crate) fn is_mariadb(version: &str) -> bool {
    version.to_ascii_lowercase().contains("mariadb")
}

/// The question for how far a server is behind: MySQL 8.4 has no `SHOW SLAVE STATUS`, and MariaDB
/// shows all of its channels by a form of its own.
#[must_use]
pub fn lag_question(version: &str) -> &'static str {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let version_number = [(); 3].map(|()| numbers.next().unwrap_or(0));
    if is_mariadb(version) {
        // Those before 10.0 have one channel; nobody runs them.
        "SHOW ALL SLAVES STATUS"
    } else if version_number >= [8, 0, 22] {
        "SHOW REPLICA STATUS"
    } else {
        "SHOW SLAVE STATUS"
    }
}

/// The question for the age of the row that pt-heartbeat writes. `None` if this is no name of a
/// table.
#[must_use]
pub fn heartbeat_question(table: &str) -> Option<String> {
    let plain = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
    };
    let (schema, name) = table.trim().split_once('.')?;
    let (schema, name) = (schema.trim_matches('`'), name.trim_matches('`'));
    (plain(schema) && plain(name)).then(|| {
        format!(
            "SELECT MAX(ROUND(TIMESTAMPDIFF(MICROSECOND, ts, SYSDATE(6))/1000000)) FROM `{schema}`.`{name}`"
        )
    })
}

/// How far the channels of a server are behind, in seconds; NULL where one does not run. `None` if
/// the answer has no such column.
#[must_use]
pub fn lags(names: &[Box<str>], rows: &Rows) -> Option<Vec<Option<u32>>> {
    if rows.is_empty() {
        return Some(Vec::new());
    }
    let is_it = |name: &str| {
        ["Seconds_Behind_Source", "Seconds_Behind_Master"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    };
    // The question for the heartbeat has one column, however it is called.
    let at = match names {
        [_] => 0,
        names => names.iter().position(|name| is_it(name))?,
    };
    let seconds = |row: &Vec<Option<Vec<u8>>>| {
        let text = std::str::from_utf8(row.get(at)?.as_deref()?).ok()?;
        let seconds: i64 = text.parse().ok()?;
        // Clocks differ.
        Some(u32::try_from(seconds.max(0)).unwrap_or(u32::MAX))
    };
    Some(rows.iter().map(seconds).collect())
}

/// The question for a server's own number, to which [`channels`] has the rest.
pub const NUMBER_QUESTION: &str = "SELECT @@global.server_id";

/// Servers that a server replicates from, by its answers to [`NUMBER_QUESTION`] and [`lag_question`]. A channel
/// that was stopped is none. `None` if the answers do not say.
#[must_use]
pub fn channels(number: &Rows, (names, rows): (&[Box<str>], &Rows)) -> Option<Channels> {
    let number_in = |cell: Option<&Option<Vec<u8>>>| -> Option<u32> {
        let text = std::str::from_utf8(cell?.as_deref()?).ok()?;
        text.parse().ok()
    };
    let own = number_in(number.first()?.first())?;
    let place = |all: [&str; 2]| {
        let is_it = |name: &str| all.iter().any(|known| known.eq_ignore_ascii_case(name));
        names.iter().position(|name| is_it(name))
    };
    let mut from = Vec::new();
    if !rows.is_empty() {
        let runs = place(["Replica_IO_Running", "Slave_IO_Running"])?;
        let source = place(["Source_Server_Id", "Master_Server_Id"])?;
        for row in rows {
            let state = row.get(runs).and_then(Option::as_deref).unwrap_or_default();
            if !state.eq_ignore_ascii_case(b"no") {
                from.push(number_in(row.get(source)).unwrap_or_default());
            }
        }
    }
    Some(Channels { own, from })
}

/// Whether a server has done all that it got from others, by its answer to [`lag_question`]: it has read no
/// further than it has executed, on all channels. What it has not got yet it does not know.
#[must_use]
pub fn has_applied_all(names: &[Box<str>], rows: &Rows) -> bool {
    let place = |all: [&str; 2]| {
        let is_it = |name: &str| all.iter().any(|known| known.eq_ignore_ascii_case(name));
        names.iter().position(|name| is_it(name))
    };
    let [read, done] = [
        [
            ["Source_Log_File", "Master_Log_File"],
            ["Read_Source_Log_Pos", "Read_Master_Log_Pos"],
        ],
        [
            ["Relay_Source_Log_File", "Relay_Master_Log_File"],
            ["Exec_Source_Log_Pos", "Exec_Master_Log_Pos"],
        ],
    ]
    .map(|both| both.map(place));
    rows.iter().all(|row| {
        let cell = |at: Option<usize>| row.get(at?).and_then(Option::as_deref);
        let [read, done] = [read, done].map(|both| both.map(cell));
        read == done && read.iter().all(Option::is_some)
    })
}

/// Reads anything without a panic.
#[doc(hidden)]
pub fn fuzz_probe(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = (lag_question(&text), heartbeat_question(&text));
    let rows = [text.split(',').map(|cell| Some(cell.into())).collect()];
    let names: Vec<Box<str>> = text.split(';').map(Into::into).collect();
    let _ = (lags(&names, &rows), has_applied_all(&names, &rows));
    let _ = channels(&rows, (&names, &rows));
    let cell = |cell: &str| (cell != "NULL").then(|| cell.into());
    let rows: Vec<_> = text
        .lines()
        .map(|line| line.split(',').map(cell).collect())
        .collect();
    let declared = Servers::default().with_topologies(TopologyRows {
        aurora: vec![AuroraHostgroupRow::default()],
        ..TopologyRows::default()
    });
    for topology in declared.iter().flat_map(Servers::topologies) {
        for kind in TopologyKind::ALL.map(kinds::of) {
            let _ = (kind.peers(topology, &rows), kind.name(&rows));
            let _ = kind.question(topology, &text);
            if let Ok(role) = kind.told(topology, &rows) {
                let _ = (kind.words(&role), role.behind());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[Option<&str>]) -> Vec<Option<Vec<u8>>> {
        let cell = |cell: &Option<&str>| cell.map(|text| text.as_bytes().to_vec());
        cells.iter().map(cell).collect()
    }

    #[test]
    fn each_version_is_asked_in_its_own_words() {
        for (version, wanted) in [
            ("9.7.1", "SHOW REPLICA STATUS"),
            ("8.0.22", "SHOW REPLICA STATUS"),
            ("8.0.21-log", "SHOW SLAVE STATUS"),
            ("5.7.44", "SHOW SLAVE STATUS"),
            ("5.5.5-10.11.6-MariaDB", "SHOW ALL SLAVES STATUS"),
            ("", "SHOW SLAVE STATUS"),
        ] {
            assert_eq!(lag_question(version), wanted, "{version}");
        }
    }

    #[test]
    fn lag_is_found_by_the_name_of_its_column() {
        let names = ["Channel", "Seconds_Behind_Source"].map(Into::into);
        let rows = [row(&[Some(""), Some("3")]), row(&[Some("b"), None])];
        assert_eq!(lags(&names, &rows), Some(vec![Some(3), None]));
        assert_eq!(lags(&names, &[]), Some(Vec::new()));
        let heartbeat = ["MAX(…)".into()];
        assert_eq!(lags(&heartbeat, &[row(&[Some("-1")])]), Some(vec![Some(0)]));
        let strange = ["a", "b"].map(Into::into);
        assert_eq!(lags(&strange, &rows), None);
        assert!(heartbeat_question("percona.heartbeat").is_some());
        for strange in ["heartbeat", "a.b; DROP TABLE c", "", "a.`b`.c"] {
            assert!(heartbeat_question(strange).is_none(), "{strange}");
        }
    }

    #[test]
    fn channels_that_run_lead_to_their_sources() {
        let own = [row(&[Some("7")])];
        for (runs, source) in [
            ("Replica_IO_Running", "Source_Server_Id"),
            ("Slave_IO_Running", "Master_Server_Id"),
        ] {
            let names = [runs, "Other", source].map(Into::into);
            let rows = [
                row(&[Some("Yes"), None, Some("1")]),
                row(&[Some("Connecting"), None, Some("0")]),
                row(&[Some("No"), None, Some("3")]),
            ];
            let wanted = Channels {
                own: 7,
                from: vec![1, 0],
            };
            assert_eq!(channels(&own, (&names, &rows)), Some(wanted));
        }
        let none = Channels {
            own: 7,
            from: Vec::new(),
        };
        assert_eq!(channels(&own, (&[], &[])), Some(none));
        assert_eq!(channels(&[], (&[], &[])), None);
        assert_eq!(channels(&own, (&["a".into()], &[row(&[Some("1")])])), None);
    }

    #[test]
    fn a_server_has_applied_what_it_has_read() {
        let names = |source: &str| -> Vec<Box<str>> {
            let all = [
                format!("{source}_Log_File"),
                format!("Read_{source}_Log_Pos"),
                format!("Relay_{source}_Log_File"),
                format!("Exec_{source}_Log_Pos"),
            ];
            all.map(Into::into).into()
        };
        let at = |cells: [&str; 4]| row(&cells.map(Some));
        for source in ["Source", "Master"] {
            let all = |rows: &Rows| has_applied_all(&names(source), rows);
            assert!(all(&[]));
            let done = at(["b.7", "400", "b.7", "400"]);
            assert!(all(std::slice::from_ref(&done)));
            assert!(!all(&[done.clone(), at(["b.7", "401", "b.7", "400"])]));
            assert!(!all(&[at(["b.8", "400", "b.7", "400"])]));
            assert!(!all(&[row(&[Some("b.7"), None, Some("b.7"), None])]));
            assert!(!has_applied_all(&["Seconds".into()], &[done]));
        }
    }
}
