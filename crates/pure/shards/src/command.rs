//! `HSCALE …`: the commands that make a map, as a value.

use crate::function::Function;

/// Command that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A table is spread from now on.
    SetupTable {
        /// Its schema, or empty.
        schema: String,
        /// Its name.
        table: String,
        /// The key.
        column: String,
        /// The name that it has from now on.
        default_table: String,
        /// Where it is.
        hostgroup: u32,
        /// From the key to a bucket.
        function: Function,
    },
    /// A partition more.
    AddPartition {
        /// The table's schema, or empty.
        schema: String,
        /// The table.
        table: String,
        /// The partition.
        name: String,
        /// Its buckets.
        value: String,
        /// Where it is.
        hostgroup: u32,
        /// Its table there, if that is not `table_name`.
        physical: String,
    },
    /// Rows of a table get numbers from a sequence.
    AddSequence {
        /// The table's schema, or empty.
        schema: String,
        /// The table.
        table: String,
        /// The column that is numbered.
        column: String,
    },
    /// Values of another column tell buckets.
    AddLookup {
        /// The table's schema, or empty.
        schema: String,
        /// The table.
        table: String,
        /// The column that is looked up.
        column: String,
        /// Where the look-up's table is.
        hostgroup: u32,
        /// Its name there, with or without a schema, if that is not `table_column_lookup`.
        named: String,
    },
    /// A look-up gets entries of the rows that are there.
    FillLookup {
        /// The table's schema, or empty.
        schema: String,
        /// The table.
        table: String,
        /// The column that is looked up.
        column: String,
    },
    /// A partition goes elsewhere.
    MovePartition {
        /// The table's schema, or empty.
        schema: String,
        /// The table.
        table: String,
        /// The partition.
        name: String,
        /// Where to.
        hostgroup: u32,
    },
    /// A partition goes, and its buckets with their rows to another one.
    MergePartition {
        /// The table's schema, or empty.
        schema: String,
        /// The table.
        table: String,
        /// The partition.
        name: String,
        /// The partition that gets all of it; empty for the default one.
        into: String,
    },
    /// A partition goes nowhere after all.
    CancelMove {
        /// The table's schema, or empty.
        schema: String,
        /// The table.
        table: String,
        /// The partition.
        name: String,
    },
    /// The table is dropped that a partition has left behind.
    DropOld {
        /// The table's schema, or empty.
        schema: String,
        /// The table.
        table: String,
        /// The partition.
        name: String,
    },
    /// Something is shown.
    Show(Shown),
}

/// Things that can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// How much there is.
    Status,
    /// Settings.
    Variables,
    /// Statements that read every partition.
    FullPartitionScans,
    /// Tables.
    Tables,
    /// Partitions.
    Partitions,
    /// Partitions that move.
    Moves,
    /// Look-ups.
    Lookups,
    /// The commands that would make this map.
    Commands,
}

const FORMS: &str = "use HSCALE SETUP_TABLE('table', 'column', 'default table', hostgroup, 'function'), ADD_PARTITION('table', 'partition', 'value', hostgroup[, 'physical table']), ADD_SEQUENCE('table', 'column'), ADD_LOOKUP('table', 'column', hostgroup[, 'look-up table']), FILL_LOOKUP('table', 'column'), MOVE_PARTITION('table', 'partition', hostgroup), MERGE_PARTITION('table', 'partition', 'into'), CANCEL_MOVE('table', 'partition'), DROP_OLD('table', 'partition'), or SHOW STATUS | VARIABLES | TABLES | PARTITIONS | LOOKUPS | MOVES | COMMANDS | FULL_PARTITION_SCANS";

/// Longer commands are not read.
const BYTES_MAX: usize = 65_536;

/// Quotes that open and close: the seed's page has typographic ones.
const QUOTES: &[char] = &['\'', '"', '`', '‘', '’', '′', '“', '”', '″'];

/// Reads a command; `None` for what does not begin with HSCALE.
#[must_use]
pub fn command(text: &str) -> Option<Result<Command, String>> {
    let text = text.trim().trim_end_matches(';').trim_end();
    let rest = text.get(6..)?;
    let is_ours = text
        .get(..6)
        .is_some_and(|word| word.eq_ignore_ascii_case("HSCALE"));
    if !is_ours || !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    if text.len() > BYTES_MAX {
        return Some(Err(format!("the command is longer than {BYTES_MAX} bytes")));
    }
    Some(read(rest.trim()))
}

fn read(text: &str) -> Result<Command, String> {
    let (head, arguments) = match text.split_once('(') {
        Some((head, rest)) => (head, Some(rest)),
        None => (text, None),
    };
    let name = head
        .split_whitespace()
        .collect::<Vec<_>>()
        .join("_")
        .to_ascii_uppercase();
    let Some(arguments) = arguments else {
        return shown(&name).map(Command::Show).ok_or_else(|| FORMS.into());
    };
    let arguments = match name.as_str() {
        "SETUP_TABLE" | "ADD_PARTITION" | "ADD_SEQUENCE" | "ADD_LOOKUP" | "FILL_LOOKUP"
        | "MOVE_PARTITION" | "MERGE_PARTITION" | "CANCEL_MOVE" | "DROP_OLD" => split(arguments)?,
        _ => return Err(FORMS.into()),
    };
    let arguments = Arguments { all: &arguments };
    match name.as_str() {
        "SETUP_TABLE" => setup(arguments),
        "ADD_PARTITION" => add(arguments),
        "ADD_SEQUENCE" => sequence(arguments),
        "ADD_LOOKUP" => lookup(arguments),
        "FILL_LOOKUP" => {
            arguments.count(2..=2, "FILL_LOOKUP('table', 'column')")?;
            let (schema, table) = arguments.table()?;
            Ok(Command::FillLookup {
                schema,
                table,
                column: arguments.text(1, "column")?,
            })
        }
        "CANCEL_MOVE" | "DROP_OLD" => ends(&name, arguments),
        "MERGE_PARTITION" => {
            arguments.count(3..=3, "MERGE_PARTITION('table', 'partition', 'into')")?;
            let (schema, table) = arguments.table()?;
            Ok(Command::MergePartition {
                schema,
                table,
                name: arguments.text(1, "partition")?,
                into: arguments.any(2),
            })
        }
        _ => {
            arguments.count(3..=3, "MOVE_PARTITION('table', 'partition', hostgroup)")?;
            let (schema, table) = arguments.table()?;
            Ok(Command::MovePartition {
                schema,
                table,
                name: arguments.text(1, "partition")?,
                hostgroup: arguments.hostgroup(2)?,
            })
        }
    }
}

fn shown(name: &str) -> Option<Shown> {
    Some(match name.strip_prefix("SHOW_")? {
        "STATUS" => Shown::Status,
        "VARIABLES" => Shown::Variables,
        "FULL_PARTITION_SCANS" => Shown::FullPartitionScans,
        "TABLES" => Shown::Tables,
        "PARTITIONS" => Shown::Partitions,
        "MOVES" => Shown::Moves,
        "LOOKUPS" => Shown::Lookups,
        "COMMANDS" => Shown::Commands,
        _ => return None,
    })
}

/// Reads a command about the move of a partition.
fn ends(command: &str, arguments: Arguments<'_>) -> Result<Command, String> {
    arguments.count(2..=2, &format!("{command}('table', 'partition')"))?;
    let ((schema, table), name) = (arguments.table()?, arguments.text(1, "partition")?);
    Ok(match command {
        "DROP_OLD" => Command::DropOld {
            schema,
            table,
            name,
        },
        _ => Command::CancelMove {
            schema,
            table,
            name,
        },
    })
}

fn setup(arguments: Arguments<'_>) -> Result<Command, String> {
    arguments.count(
        5..=5,
        "SETUP_TABLE('table', 'column', 'default table', hostgroup, 'function')",
    )?;
    let (schema, table) = arguments.table()?;
    let function = arguments.text(4, "function")?;
    let function =
        Function::parse(&function).map_err(|words| format!("argument 5 (function) {words}"))?;
    let default_table = arguments.text(2, "default table")?;
    if default_table.eq_ignore_ascii_case(&table) {
        return Err("argument 3 (default table) must not be the name of the table itself: that is what applications go on saying".into());
    }
    Ok(Command::SetupTable {
        schema,
        table,
        column: arguments.text(1, "column")?,
        default_table,
        hostgroup: arguments.hostgroup(3)?,
        function,
    })
}

fn sequence(arguments: Arguments<'_>) -> Result<Command, String> {
    arguments.count(2..=2, "ADD_SEQUENCE('table', 'column')")?;
    let (schema, table) = arguments.table()?;
    Ok(Command::AddSequence {
        schema,
        table,
        column: arguments.text(1, "column")?,
    })
}

fn lookup(arguments: Arguments<'_>) -> Result<Command, String> {
    arguments.count(
        3..=4,
        "ADD_LOOKUP('table', 'column', hostgroup[, 'look-up table'])",
    )?;
    let (schema, table) = arguments.table()?;
    let named = match arguments.all.len() {
        4 => arguments.text(3, "look-up table")?,
        _ => String::new(),
    };
    Ok(Command::AddLookup {
        schema,
        table,
        column: arguments.text(1, "column")?,
        hostgroup: arguments.hostgroup(2)?,
        named,
    })
}

fn add(arguments: Arguments<'_>) -> Result<Command, String> {
    arguments.count(
        4..=5,
        "ADD_PARTITION('table', 'partition', 'value', hostgroup[, 'physical table'])",
    )?;
    let (schema, table) = arguments.table()?;
    let physical = match arguments.all.len() {
        5 => arguments.text(4, "physical table")?,
        _ => String::new(),
    };
    Ok(Command::AddPartition {
        schema,
        table,
        name: arguments.text(1, "partition")?,
        value: arguments.any(2),
        hostgroup: arguments.hostgroup(3)?,
        physical,
    })
}

/// The arguments of a command, without their quotes.
#[derive(Clone, Copy)]
struct Arguments<'a> {
    all: &'a [String],
}

impl Arguments<'_> {
    fn count(self, wanted: std::ops::RangeInclusive<usize>, form: &str) -> Result<(), String> {
        match wanted.contains(&self.all.len()) {
            true => Ok(()),
            false => Err(format!(
                "{} arguments are not as many as there should be: {form}",
                self.all.len()
            )),
        }
    }

    /// One that may be empty.
    fn any(self, at: usize) -> String {
        self.all.get(at).cloned().unwrap_or_default()
    }

    fn text(self, at: usize, what: &str) -> Result<String, String> {
        match self.all.get(at) {
            Some(text) if !text.is_empty() => Ok(text.clone()),
            _ => Err(format!("argument {} ({what}) must not be empty", at + 1)),
        }
    }

    /// `table` or `schema.table`.
    fn table(self) -> Result<(String, String), String> {
        let text = self.text(0, "table")?;
        match text.split_once('.') {
            None => Ok((String::new(), text)),
            Some((schema, table)) if !schema.is_empty() && !table.is_empty() => {
                Ok((schema.to_owned(), table.to_owned()))
            }
            Some(_) => Err(format!(
                "argument 1 (table) must be a table or schema.table; '{text}' is neither"
            )),
        }
    }

    fn hostgroup(self, at: usize) -> Result<u32, String> {
        let text = self.text(at, "hostgroup")?;
        let number = text
            .parse::<u32>()
            .ok()
            .filter(|number| *number <= i32::MAX as u32);
        number.ok_or_else(|| {
            format!(
                "argument {} (hostgroup) must be a number from 0 to {}; '{text}' is not",
                at + 1,
                i32::MAX
            )
        })
    }
}

/// Splits what stands between the parentheses into its arguments.
fn split(text: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let number = all.len() + 1;
        let (argument, behind) = match rest.chars().next() {
            Some(quote) if QUOTES.contains(&quote) => {
                quoted(&rest[quote.len_utf8()..], quote, number)?
            }
            _ => {
                let end = rest.find([',', ')']).ok_or("there is no ')' at the end")?;
                (rest[..end].trim().to_owned(), &rest[end..])
            }
        };
        all.push(argument);
        rest = behind.trim_start();
        if let Some(more) = rest.strip_prefix(',') {
            rest = more.trim_start();
        } else if let Some(end) = rest.strip_prefix(')') {
            return match end.trim() {
                "" => Ok(all),
                more => Err(format!("nothing may follow the ')'; '{more}' does")),
            };
        } else if rest.is_empty() {
            return Err("there is no ')' at the end".into());
        } else {
            return Err(format!(
                "argument {number} lacks a quote, or the ',' behind it: '{}' stands there",
                first_of(rest)
            ));
        }
    }
}

fn first_of(text: &str) -> String {
    text.chars().take(20).collect()
}

/// Behind the quote that opens: up to one of its kind. Two of the same plain quote are one.
fn quoted(text: &str, opened: char, number: usize) -> Result<(String, &str), String> {
    let is_single = |c: char| matches!(c, '\'' | '‘' | '’' | '′');
    let is_double = |c: char| matches!(c, '"' | '“' | '”' | '″');
    let closes = |c: char| match opened {
        '`' => c == '`',
        opened if is_single(opened) => is_single(c),
        _ => is_double(c),
    };
    let mut out = String::new();
    let mut rest = text.char_indices();
    while let Some((at, next)) = rest.next() {
        if !closes(next) {
            out.push(next);
            continue;
        }
        let behind = &text[at + next.len_utf8()..];
        if next == opened && behind.starts_with(next) && next.is_ascii() {
            out.push(next);
            rest.next();
            continue;
        }
        return Ok((out, behind));
    }
    Err(format!("argument {number} lacks the quote at its end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        command(text).unwrap().unwrap_err()
    }

    /// A70: the seed's example with the quote that its page has lost, its typographic quotes kept.
    #[test]
    fn the_seeds_setup_is_read_with_its_quotes() {
        let wanted = Command::SetupTable {
            schema: String::new(),
            table: "users".into(),
            column: "nickname".into(),
            default_table: "users_default".into(),
            hostgroup: 1,
            function: Function::Prefix(3),
        };
        for text in [
            "HSCALE SETUP_TABLE(‘users‘, ‘nickname‘, ‘users_default‘, 1, ‘PREFIX(3)‘)",
            "hscale setup_table('users','nickname','users_default',1,'PREFIX(3)');",
            "HSCALE SETUP TABLE (\"users\", \"nickname\", \"users_default\", 1, \"PREFIX(3)\")",
        ] {
            assert_eq!(command(text), Some(Ok(wanted.clone())), "{text}");
        }
        let sequence = Command::AddSequence {
            schema: "shop".into(),
            table: "users".into(),
            column: "id".into(),
        };
        assert_eq!(
            command("HSCALE ADD SEQUENCE('shop.users', 'id')"),
            Some(Ok(sequence))
        );
        let lookup = Command::AddLookup {
            schema: String::new(),
            table: "users".into(),
            column: "email".into(),
            hostgroup: 1,
            named: "shop.emails".into(),
        };
        assert_eq!(
            command("HSCALE ADD LOOKUP('users', 'email', 1, 'shop.emails')"),
            Some(Ok(lookup))
        );
        assert_eq!(
            error("HSCALE ADD_LOOKUP('users', '', 1)"),
            "argument 2 (column) must not be empty"
        );
        assert_eq!(
            error("HSCALE ADD_SEQUENCE('users')"),
            "1 arguments are not as many as there should be: ADD_SEQUENCE('table', 'column')"
        );
        assert_eq!(
            error("HSCALE SETUP_TABLE(‘users, ‘nickname‘, ‘users_default‘, 1, ‘PREFIX(3)‘)"),
            "argument 1 lacks a quote, or the ',' behind it: 'nickname‘, ‘users_de' stands there"
        );
    }

    /// A71, A78: verbatim, and in the spelling of the seed's first page.
    #[test]
    fn partitions_are_added_and_moved_in_both_spellings() {
        let wanted = Command::AddPartition {
            schema: String::new(),
            table: "users".into(),
            name: "nick1".into(),
            value: "mar".into(),
            hostgroup: 1,
            physical: String::new(),
        };
        for text in [
            "HSCALE ADD_PARTITION(‘users’, ‘nick1′, ‘mar’, 1)",
            "HSCALE ADD PARTITION ('users', 'nick1', 'mar', 1)",
        ] {
            assert_eq!(command(text), Some(Ok(wanted.clone())), "{text}");
        }
        let wanted = Command::MovePartition {
            schema: "shop".into(),
            table: "users".into(),
            name: "nick1".into(),
            hostgroup: 2,
        };
        assert_eq!(
            command("HSCALE MOVE_PARTITION('shop.users', 'nick1', 2)"),
            Some(Ok(wanted))
        );
        let wanted = Command::CancelMove {
            schema: "shop".into(),
            table: "users".into(),
            name: "nick1".into(),
        };
        assert_eq!(
            command("HSCALE CANCEL MOVE('shop.users', 'nick1')"),
            Some(Ok(wanted))
        );
        let Some(Ok(Command::DropOld { name, .. })) = command("HSCALE DROP_OLD('users', 'nick1')")
        else {
            panic!("not read")
        };
        assert_eq!(name, "nick1");
    }

    #[test]
    fn what_is_wrong_is_named_by_its_argument() {
        for (text, words) in [
            (
                "HSCALE ADD_PARTITION('users', '', 'mar', 1)",
                "argument 2 (partition) must not be empty",
            ),
            (
                "HSCALE ADD_PARTITION('users', 'nick1', 'mar', one)",
                "argument 4 (hostgroup) must be a number from 0 to 2147483647; 'one' is not",
            ),
            (
                "HSCALE SETUP_TABLE('users', 'n', 'd', 1, 'MD5()')",
                "argument 5 (function) must be one of NONE(), MOD(n), DIV(n), PREFIX(n), DATE('format'), RANGE(), LIST(), HASH(n), LUA('name'); 'MD5()' is not",
            ),
            (
                "HSCALE SETUP_TABLE('users', 'n', 'users', 1, 'NONE()')",
                "argument 3 (default table) must not be the name of the table itself: that is what applications go on saying",
            ),
            (
                "HSCALE MOVE_PARTITION('users', 'nick1')",
                "2 arguments are not as many as there should be: MOVE_PARTITION('table', 'partition', hostgroup)",
            ),
            (
                "HSCALE MOVE_PARTITION('users', 'nick1",
                "argument 2 lacks the quote at its end",
            ),
            (
                "HSCALE MOVE_PARTITION('users', 'nick1', 2",
                "there is no ')' at the end",
            ),
            (
                "HSCALE MOVE_PARTITION('.users', 'nick1', 2)",
                "argument 1 (table) must be a table or schema.table; '.users' is neither",
            ),
        ] {
            assert_eq!(error(text), words);
        }
        assert!(error("HSCALE").starts_with("use HSCALE SETUP_TABLE("));
        assert!(error("HSCALE SHOW NOTHING").starts_with("use HSCALE SETUP_TABLE("));
        assert_eq!(command("SELECT 1"), None);
        assert_eq!(command("HSCALES X"), None);
        assert_eq!(
            command("hscale show full_partition_scans"),
            Some(Ok(Command::Show(Shown::FullPartitionScans)))
        );
    }

    #[test]
    fn a_quote_in_a_value_is_written_twice() {
        let Some(Ok(Command::AddPartition {
            value, physical, ..
        })) = command("HSCALE ADD_PARTITION('t', 'p', 'it''s', 1, 't_other')")
        else {
            panic!("not read")
        };
        assert_eq!((value.as_str(), physical.as_str()), ("it's", "t_other"));
    }
}
