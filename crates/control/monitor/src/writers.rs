//! Who was the writer of each topology, in a file of the data directory: after a start one of two
//! servers that both may write is known to be right.

use crate::Writers;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fs, io};
use topology::ServerKey;

/// A line a topology: hostgroup of its writers, port and host, with tabs between.
pub(crate) struct File(PathBuf);

impl File {
    /// The one of a data directory.
    pub(crate) fn of(datadir: &Path) -> Self {
        Self(datadir.join("writers"))
    }

    /// Reads what was kept. Nothing, if there is no file yet; lines that say nothing are left out.
    pub(crate) fn read(&self) -> io::Result<Writers> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(parse(&text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }

    /// Keeps this instead of what was kept, whole or not at all.
    pub(crate) fn write(&self, writers: &Writers) -> io::Result<()> {
        let beside = self.0.with_extension("new");
        fs::write(&beside, text_of(writers))?;
        fs::rename(&beside, &self.0)
    }
}

fn parse(text: &str) -> Writers {
    let line = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let hostgroup = parts.next()?.parse().ok()?;
        let port = parts.next()?.parse().ok()?;
        let host = parts.next().filter(|host| !host.is_empty())?.into();
        Some((hostgroup, ServerKey { host, port }))
    };
    text.lines().filter_map(line).collect()
}

fn text_of(writers: &Writers) -> String {
    let line = |(hostgroup, key): (&u32, &ServerKey)| {
        let ServerKey { host, port } = key;
        format!("{hostgroup}\t{port}\t{host}\n")
    };
    writers.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nonsense_is_left_out() {
        let key = |host: &str, port| ServerKey {
            host: host.into(),
            port,
        };
        let writers = Writers::from([(10, key("db1", 3306)), (20, key("/run/a b.sock", 0))]);
        assert_eq!(parse(&text_of(&writers)), writers);
        assert_eq!(parse("x\n10\n10\t3306\t\n10\t99999\ta\n"), Writers::new());
    }
}
