//! `mysql_query_rewrite`: templates on the statement's structure, found by a fingerprint however
//! many there are.

use crate::refusal::Refusals;
use crate::{Refusal, RewriteRow};
use hashbrown::HashMap;
use sql::template::{Read, Rewritten, Template, Unusable, fingerprint};

/// The active templates.
#[derive(Debug, Default)]
pub struct Rewrites {
    /// In the order of rewrite_id.
    list: Vec<(RewriteRow, Template)>,
    by_fingerprint: HashMap<u64, Vec<usize>, foldhash::fast::FixedState>,
}

impl Rewrites {
    /// From the rows of `mysql_query_rewrite`; inactive ones are left out. `parsed`: replacements
    /// have to be what a MySQL or MariaDB can parse.
    ///
    /// # Errors
    /// Every template that cannot be used.
    pub fn build(
        rows: impl IntoIterator<Item = RewriteRow>,
        parsed: bool,
    ) -> Result<Self, Vec<Refusal>> {
        let mut refusals = Refusals::of("mysql_query_rewrite");
        let mut rows: Vec<_> = rows.into_iter().filter(|row| row.active != 0).collect();
        rows.sort_by_key(|row| row.rewrite_id);
        let mut built = Self::default();
        for row in rows {
            let unparsed = || {
                sql::grammar::mistake(&row.replacement)
                    .filter(|_| parsed)
                    .map(Unusable::Replacement)
            };
            match Template::compile(&row.pattern, &row.replacement)
                .and_then(|built| unparsed().map_or(Ok(built), Err))
            {
                Ok(template) => {
                    built
                        .by_fingerprint
                        .entry(template.fingerprint())
                        .or_default()
                        .push(built.list.len());
                    built.list.push((row, template));
                }
                Err(unusable) => {
                    let (column, words) = match unusable {
                        Unusable::Pattern(words) => ("pattern", words),
                        Unusable::Replacement(words) => ("replacement", words),
                    };
                    refusals.add(|| format!("rewrite_id {}", row.rewrite_id), column, words);
                }
            }
        }
        refusals.or(built)
    }

    /// Whether there are none: then nobody needs to look.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The rewrite_id of the first template that matches for this user and schema, and what it
    /// makes of the statement.
    #[must_use]
    pub fn find(
        &self,
        user: &str,
        schema: &str,
        sql: &[u8],
        read: Read,
    ) -> Option<(i64, Rewritten)> {
        if self.list.is_empty() {
            return None;
        }
        let fits = |wanted: &Option<String>, is: &str| {
            wanted
                .as_deref()
                .is_none_or(|wanted| wanted.is_empty() || wanted == is)
        };
        self.by_fingerprint
            .get(&fingerprint(sql, read.lexing))?
            .iter()
            .find_map(|at| {
                let (row, template) = self.list.get(*at)?;
                let mine = fits(&row.username, user) && fits(&row.schemaname, schema);
                Some((row.rewrite_id, template.apply(sql, read).filter(|_| mine)?))
            })
    }

    /// The rows of `runtime_mysql_query_rewrite`.
    pub fn rows(&self) -> impl Iterator<Item = &RewriteRow> {
        self.list.iter().map(|(row, _)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rewrite_id: i64, pattern: &str, replacement: &str) -> RewriteRow {
        RewriteRow {
            rewrite_id,
            active: 1,
            pattern: pattern.into(),
            replacement: replacement.into(),
            ..RewriteRow::default()
        }
    }

    #[test]
    fn the_first_template_that_fits_the_session_is_taken() {
        let mut of_user = row(1, "SELECT a FROM t WHERE b = ?", "SELECT 1");
        of_user.username = Some("u".into());
        let mut off = row(0, "SELECT a FROM t WHERE b = ?", "SELECT 0");
        off.active = 0;
        let rows = [
            row(3, "SELECT a FROM t WHERE b = ?", "SELECT 3"),
            row(2, "SELECT a FROM t WHERE b = 5", "SELECT 2"),
            of_user,
            off,
        ];
        let rewrites = Rewrites::build(rows, true).unwrap();
        let found = |user, sql: &str| {
            rewrites
                .find(user, "s", sql.as_bytes(), Read::PLAIN)
                .map(|(id, _)| id)
        };
        assert_eq!(found("u", "select a from t where b=5"), Some(1));
        assert_eq!(found("v", "select a from t where b=5"), Some(2));
        assert_eq!(found("v", "select a from t where b=6"), Some(3));
        assert_eq!(found("v", "select a from t where c=6"), None);
        assert_eq!(
            rewrites
                .rows()
                .map(|row| row.rewrite_id)
                .collect::<Vec<_>>(),
            [1, 2, 3]
        );
    }

    #[test]
    fn every_template_that_cannot_be_used_is_refused_at_once() {
        let rows = || {
            [
                row(1, "SELECT 'a", "SELECT 1"),
                row(2, "SELECT ?", "SELECT ?2"),
                row(3, "SELECT 1", "SELECT FROM WHERE"),
            ]
        };
        let refused = Rewrites::build(rows(), true).unwrap_err();
        let words: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "mysql_query_rewrite (rewrite_id 1): pattern ends inside a string, a name or a comment",
                "mysql_query_rewrite (rewrite_id 2): replacement has '?2', but pattern has 1 placeholders",
                "mysql_query_rewrite (rewrite_id 3): replacement lacks a value before 'FROM WHERE'",
            ]
        );
        assert_eq!(Rewrites::build(rows(), false).unwrap_err().len(), 2);
    }
}
