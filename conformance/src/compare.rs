//! Two transcripts side by side: where they part, and what may differ.

/// Leaves out of a line what two runs of the same steps may differ in. That is a clock, the number
/// of a connection or statement, and what we mean to differ in.
fn plain(line: &str) -> String {
    // A refused login names us (docs/compatibility.md), and the extended types of MariaDB are not
    // offered to clients.
    let mut words = line
        .trim_end()
        .replace("ProxySQL Error: ", "")
        .replace("BLOB (format=json)", "BLOB");
    if words.trim_start().starts_with("column json_col JSON ") && words.contains(" length=0 ") {
        // Connector/J of MariaDB. Columns of MySQL have a length.
        words = words.replacen(" JSON ", " LONGTEXT ", 1);
    }
    // Each side counts statements in its own way.
    if let Some((before, after)) = words.split_once("prepared statement handler (") {
        let rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
        words = format!("{before}prepared statement handler ({rest}");
    }
    for (before, after) in [
        ("Connection id:", ""),
        ("(Current connection id", ""),
        ("Lost connection to ", ""),
    ] {
        if let Some(at) = words.find(before) {
            words.truncate(at + before.len());
            words.push_str(after);
        }
    }
    words
}

/// Nothing if they are alike; else the places where they part, with the step that each belongs to.
pub fn difference(expected: &str, found: &str) -> Option<String> {
    let expected = steps(expected);
    let found = steps(found);
    let mut report = String::new();
    let mut parted = 0;
    for at in 0..expected.len().max(found.len()) {
        let nothing = (String::new(), Vec::new());
        let (step, wanted) = expected.get(at).unwrap_or(&nothing);
        let (other, seen) = found.get(at).unwrap_or(&nothing);
        if step == other && wanted == seen {
            continue;
        }
        parted += 1;
        if parted > 12 {
            continue;
        }
        report.push_str(&format!("{}\n", if step.is_empty() { other } else { step }));
        for line in wanted.iter().filter(|line| !seen.contains(line)).take(8) {
            report.push_str(&format!("  - direct:  {line}\n"));
        }
        for line in seen.iter().filter(|line| !wanted.contains(line)).take(8) {
            report.push_str(&format!("  + through: {line}\n"));
        }
    }
    (parted > 0).then(|| format!("{parted} steps of {} differ\n{report}", expected.len()))
}

/// A transcript as steps: the line that begins with `>` or the echo of a statement, and what
/// followed.
fn steps(transcript: &str) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    let mut lines = transcript.lines().peekable();
    while let Some(line) = lines.next() {
        // The command line clients echo a statement between two lines of dashes.
        if line == "--------------" {
            let mut statement = String::from("> ");
            for line in lines.by_ref().take_while(|line| *line != "--------------") {
                statement.push_str(line);
            }
            all.push((statement, Vec::new()));
        } else if line.starts_with("> ") || all.is_empty() {
            all.push((line.to_owned(), Vec::new()));
        } else if let Some((step, said)) = all.last_mut() {
            // MySQL asks somebody whom it does not know for a plugin that it draws by the name, so
            // that clients fail in ways of their own.
            let drawn = step.contains("user=nobody") && line.trim_start().starts_with("error");
            said.push(if drawn {
                "  error".to_owned()
            } else {
                plain(line)
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_transcripts_have_no_difference() {
        let text = "## a\n> query SELECT 1\n  row int 1\n  ok\n";
        assert_eq!(difference(text, text), None);
    }

    #[test]
    fn a_different_value_an_extra_line_and_a_missing_step_are_told_with_their_step() {
        let direct = "> query SELECT 1\n  row int 1\n> query SELECT 2\n  row int 2\n> ping\n  ok\n";
        let through = "> query SELECT 1\n  row int 7\n> query SELECT 2\n  row int 2\n  warning\n";
        let words = difference(direct, through).unwrap();
        assert!(words.contains("3 steps of 3 differ"), "{words}");
        assert!(
            words
                .contains("> query SELECT 1\n  - direct:    row int 1\n  + through:   row int 7\n"),
            "{words}"
        );
        assert!(words.contains("> ping"), "{words}");
    }

    #[test]
    fn the_number_of_a_statement_is_no_difference() {
        let text = "> fetch\n  error 1243 Unknown prepared statement handler (8) given to mysqld_stmt_fetch\n";
        assert_eq!(difference(text, &text.replace("(8)", "(17)")), None);
        assert!(difference(text, &text.replace("fetch\n  error", "fetch\n  no error")).is_some());
    }

    #[test]
    fn the_echo_of_a_command_line_begins_a_step() {
        let direct = "--------------\nSELECT 1\n--------------\n\n| 1 |\n";
        let words = difference(direct, &direct.replace("| 1 |", "| 2 |")).unwrap();
        assert!(
            words.starts_with("1 steps of 1 differ\n> SELECT 1\n"),
            "{words}"
        );
    }
}
