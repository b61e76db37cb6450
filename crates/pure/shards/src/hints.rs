//! Hints of a statement's first comment: `hscale.partitionKey(t) = 'k'`, `hscale.partition(t) = 'p'`,
//! `hscale.forceFullPartitionScan()`.

/// Wishes of the hints in a comment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// Every partition is read, whatever the conditions.
    pub(crate) scan: bool,
    /// Tables with what is said of them.
    pub(crate) said: Vec<(String, Said)>,
}

/// Word of a hint about a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The partition of this key.
    Key(String),
    /// The partition of this name; empty for the default one.
    Partition(String),
}

/// Reads a comment; others than ours are in it as well.
///
/// # Errors
/// One of ours is not written as it should be.
pub(crate) fn hints(comment: &[u8]) -> Result<Hints, String> {
    let mut hints = Hints::default();
    for piece in String::from_utf8_lossy(comment).split(';') {
        let Some(rest) = piece.trim().strip_prefix("hscale.") else {
            continue;
        };
        let wrong = || {
            format!(
                "the hint 'hscale.{rest}' must be hscale.partitionKey(table) = 'key', hscale.partition(table) = 'name' or hscale.forceFullPartitionScan()"
            )
        };
        let (name, behind) = rest.split_once('(').ok_or_else(wrong)?;
        let (table, value) = behind.split_once(')').ok_or_else(wrong)?;
        let value = value.trim().strip_prefix('=').map(str::trim);
        let value = value.map(|value| {
            let quoted = value
                .strip_prefix('\'')
                .and_then(|inside| inside.strip_suffix('\''));
            quoted.unwrap_or(value).to_owned()
        });
        let table = table.trim().to_owned();
        match (name.trim(), value) {
            ("forceFullPartitionScan", None) if table.is_empty() => hints.scan = true,
            ("partitionKey", Some(key)) if !table.is_empty() => {
                hints.said.push((table, Said::Key(key)))
            }
            ("partition", Some(name)) if !table.is_empty() => {
                hints.said.push((table, Said::Partition(name)));
            }
            _ => return Err(wrong()),
        }
    }
    Ok(hints)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A86: the hints as HSCALE had them.
    #[test]
    fn hints_stand_among_others() {
        let read =
            hints(b" hostgroup=1; hscale.partitionKey(t) = 'k' ; hscale.partition(u)='nick1'")
                .unwrap();
        let wanted = [
            ("t".to_owned(), Said::Key("k".into())),
            ("u".to_owned(), Said::Partition("nick1".into())),
        ];
        assert_eq!(read.said, wanted);
        assert!(hints(b"hscale.forceFullPartitionScan()").unwrap().scan);
        assert!(hints(b"hscale.partitionKey = 'k'").is_err());
        assert_eq!(hints(b"anything").unwrap(), Hints::default());
    }
}
