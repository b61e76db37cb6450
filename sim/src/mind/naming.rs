//! PREPARE and EXECUTE in SQL, as servers have them.

use super::{Mind, Said, quoted, syntax};
use crate::belongings::Answer;
use crate::mind::Complaint;

/// One of those that are prepared by name.
pub(crate) const NAMED_INSERT: &str = "INSERT INTO log VALUES (?)";

/// Complains that what was said to be executed, or to be forgotten, was never prepared.
pub(crate) fn no_statement(name: &str, verb: &str) -> Complaint {
    Complaint(
        1243,
        format!("Unknown prepared statement handler ({name}) given to {verb}"),
    )
}

impl Mind {
    /// PREPARE in SQL. Whatever had the name has it no more, also where the new text is none.
    pub(super) fn name(&mut self, name: &str, sql: &str) -> Result<Said, Complaint> {
        let name = name.trim_matches('`');
        self.named.remove(name);
        let source = sql
            .split_once(" FROM ")
            .map_or("", |(_, source)| source)
            .trim();
        let text = match source.strip_prefix('@') {
            Some(variable) => self.has.user.get(variable).cloned().flatten(),
            None => sql::dynamic::string(source.as_bytes(), true)
                .map(|text| String::from_utf8_lossy(&text).into_owned()),
        };
        let text = text.ok_or_else(|| syntax(source))?;
        if !text.ends_with(" FROM named") && text != NAMED_INSERT {
            return Err(syntax(&text));
        }
        self.executed.remove(name);
        self.named
            .insert(name.to_owned(), (text, self.schema.clone()));
        Ok(Said::Ok)
    }

    pub(super) fn execute_by_name(
        &mut self,
        name: &str,
        given: &[&str],
        log: &mut Vec<String>,
    ) -> Result<Said, Complaint> {
        let (text, schema) = self
            .named
            .get(name.trim_matches('`'))
            .cloned()
            .ok_or_else(|| no_statement(name.trim_matches('`'), "EXECUTE"))?;
        let names: Vec<&str> = given
            .iter()
            .skip(1)
            .map(|name| name.trim_end_matches(',').trim_start_matches('@'))
            .collect();
        if names.len() != text.matches('?').count() {
            return Err(Complaint(1210, "Incorrect arguments to EXECUTE".to_owned()));
        }
        let given = names
            .iter()
            .map(|name| self.has.user.get(*name).cloned().flatten());
        let values: Vec<_> = quoted(&text)
            .ok()
            .map(Some)
            .into_iter()
            .chain(given)
            .collect();
        if text == NAMED_INSERT {
            self.insert(values.first().cloned().flatten().unwrap_or_default(), log);
            return Ok(Said::Answer(Answer {
                affected: 1,
                ..Answer::default()
            }));
        }
        self.use_tables();
        Ok(Said::Named { values, schema })
    }
}
