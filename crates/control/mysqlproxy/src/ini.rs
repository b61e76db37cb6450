//! `--defaults-file`: the lines of one section.

/// A line `name = value`, or a name alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

/// The entries of all parts of the file that have this name. Dashes and underscores are alike in
/// names of options. An error has its line.
pub(crate) fn section(text: &str, wanted: &str) -> Result<Vec<Entry>, (usize, String)> {
    let mut entries = Vec::new();
    let mut is_wanted = false;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = text.strip_prefix('[') {
            let name = head.strip_suffix(']');
            let name = name.ok_or_else(|| (line, "a section ends with ']'".to_owned()))?;
            is_wanted = name.trim() == wanted;
            continue;
        }
        if !is_wanted {
            continue;
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(unquoted(value.trim()).to_owned())),
            None => (text, None),
        };
        let name = name.trim().trim_start_matches('-').replace('_', "-");
        if name.is_empty() {
            return Err((line, "an option has a name in front of '='".to_owned()));
        }
        entries.push(Entry { line, name, value });
    }
    Ok(entries)
}

fn unquoted(value: &str) -> &str {
    let within = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_names_values_comments_and_quotes() {
        let text = "a = 0\n[mysql-proxy]\n# b = 1\n c=\"x y\" \n;d\n--e_f\n[other]\ng = 2\n[mysql-proxy]\nh = \n";
        let entry = |line, name: &str, value: Option<&str>| Entry {
            line,
            name: name.into(),
            value: value.map(str::to_owned),
        };
        assert_eq!(
            section(text, "mysql-proxy"),
            Ok(vec![
                entry(4, "c", Some("x y")),
                entry(6, "e-f", None),
                entry(10, "h", Some("")),
            ])
        );
        assert_eq!(
            section("[mysql-proxy]\n= 1\n", "mysql-proxy"),
            Err((2, "an option has a name in front of '='".to_owned()))
        );
    }
}
