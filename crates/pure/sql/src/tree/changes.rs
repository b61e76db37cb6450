//! INSERT, REPLACE, UPDATE, DELETE, and what describes a table.

use super::reader::Reader;
use super::{
    Delete, Expression, Insert, Item, Join, Joined, Name, Node, Row, Source, Statement, TableName,
    Update, walk,
};
use crate::words::Kind;

impl<'a> Reader<'a> {
    pub(super) fn statement(&mut self) -> Option<Statement<'a>> {
        if self.is_query() {
            return self.query().map(Statement::Query);
        }
        if self.is_any(&["INSERT", "REPLACE"]) {
            return self.insert().map(Statement::Insert);
        }
        if self.skip("UPDATE") {
            return self.update().map(Statement::Update);
        }
        if self.skip("DELETE") {
            return self.delete().map(Statement::Delete);
        }
        self.describe().map(Statement::Describe)
    }

    fn describe(&mut self) -> Option<TableName<'a>> {
        if self.skip("SHOW") {
            if self.skip("CREATE TABLE") {
                return self.table_name();
            }
            self.skip_all(&["FULL", "EXTENDED"]);
            self.is_any(&["COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS"])
                .then_some(())?;
            self.next();
            (self.skip("FROM") || self.skip("IN")).then_some(())?;
            let mut table = self.table_name()?;
            if self.skip("FROM") || self.skip("IN") {
                table.schema.is_none().then_some(())?;
                // The schema stands behind the table, where no cut looks for it.
                table.alias = Some(self.name()?);
            }
            if self.skip("LIKE") {
                (self.next()?.kind == Kind::String).then_some(())?;
            } else if self.skip("WHERE") {
                let condition = self.expression()?;
                let mut is_plain = true;
                walk(&condition, &mut |inner| {
                    is_plain &= !matches!(inner.node, Node::Query(_) | Node::Parameter(_));
                });
                is_plain.then_some(())?;
            }
            return Some(table);
        }
        self.is_any(&["DESC", "DESCRIBE", "EXPLAIN"])
            .then_some(())?;
        self.next();
        let table = self.table_name()?;
        self.is_at_end_but_for_semicolon().then_some(table)
    }

    fn is_at_end_but_for_semicolon(&self) -> bool {
        self.is_at_end() || self.is_sign(b';')
    }

    fn insert(&mut self) -> Option<Insert<'a>> {
        let replaces = self.is("REPLACE");
        self.next();
        self.skip_all(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"]);
        let mut insert = Insert {
            table: self.table_name()?,
            columns: None,
            rows: Vec::new(),
            query: None,
            duplicate: Vec::new(),
            replaces,
            returning: Vec::new(),
        };
        if self.skip("SET") {
            let start = self.start();
            let (columns, values): (Vec<_>, Vec<_>) = self.assignments()?.into_iter().unzip();
            let last = |mut parts: Vec<Name<'a>>| parts.pop();
            insert.columns = Some(columns.into_iter().filter_map(last).collect());
            let at = self.since(start);
            insert.rows.push(Row { values, at });
        } else {
            if self.is_sign(b'(') && !self.is_query() {
                insert.columns = Some(self.columns()?);
            }
            self.source(&mut insert)?;
        }
        if self.skip("AS") {
            self.name()?;
            if self.is_sign(b'(') {
                self.skip_parentheses()?;
            }
        }
        if self.skip("ON DUPLICATE KEY UPDATE") {
            insert.duplicate = self.assignments()?;
        }
        insert.returning = self.returning()?;
        Some(insert)
    }

    /// VALUES, or a query.
    fn source(&mut self, insert: &mut Insert<'a>) -> Option<()> {
        if self.is_query() {
            let braced = self.skip_sign(b'(');
            insert.query = Some(Box::new(self.query()?));
            if braced {
                self.expect_sign(b')')?;
            }
            return Some(());
        }
        (self.skip("VALUES") || self.skip("VALUE")).then_some(())?;
        loop {
            let start = self.start();
            self.skip("ROW");
            self.expect_sign(b'(')?;
            let values = if self.is_sign(b')') {
                Vec::new()
            } else {
                self.values()?
            };
            self.expect_sign(b')')?;
            let at = self.since(start);
            insert.rows.push(Row { values, at });
            if !self.skip_sign(b',') {
                return Some(());
            }
        }
    }

    /// Values with commas between them; DEFAULT is one.
    fn values(&mut self) -> Option<Vec<Expression<'a>>> {
        let mut all = Vec::new();
        loop {
            all.push(self.value()?);
            if !self.skip_sign(b',') {
                return Some(all);
            }
        }
    }

    fn value(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        let is_default =
            self.is("DEFAULT") && !self.ahead(1).is_some_and(|next| next.is_sign(b'('));
        if !is_default {
            return self.expression();
        }
        self.next();
        Some(Expression {
            node: Node::Other(Vec::new()),
            at: self.since(start),
        })
    }

    fn columns(&mut self) -> Option<Vec<Name<'a>>> {
        self.expect_sign(b'(')?;
        let mut all = Vec::new();
        while !self.skip_sign(b')') {
            let mut parts = self.qualified()?;
            all.push(parts.pop()?);
            if !self.is_sign(b')') {
                self.expect_sign(b',')?;
            }
        }
        Some(all)
    }

    fn qualified(&mut self) -> Option<Vec<Name<'a>>> {
        let mut parts = vec![self.name()?];
        while self.skip_sign(b'.') {
            parts.push(self.name()?);
        }
        Some(parts)
    }

    /// `a = 1, t.b = 2`
    fn assignments(&mut self) -> Option<Vec<(Vec<Name<'a>>, Expression<'a>)>> {
        let mut all = Vec::new();
        loop {
            let column = self.qualified()?;
            (self.skip_signs(b":=") || self.skip_sign(b'=')).then_some(())?;
            all.push((column, self.value()?));
            if !self.skip_sign(b',') {
                return Some(all);
            }
        }
    }

    fn returning(&mut self) -> Option<Vec<Item<'a>>> {
        let mut items = Vec::new();
        if self.skip("RETURNING") {
            items.push(self.item()?);
            while self.skip_sign(b',') {
                items.push(self.item()?);
            }
        }
        Some(items)
    }

    /// Behind UPDATE.
    fn update(&mut self) -> Option<Update<'a>> {
        self.skip_all(&["LOW_PRIORITY", "IGNORE"]);
        let tables = self.tables()?;
        self.expect("SET")?;
        let mut update = Update {
            tables,
            assigned: self.assignments()?,
            condition: None,
            order: Vec::new(),
            limit: None,
        };
        if self.skip("WHERE") {
            update.condition = Some(self.expression()?);
        }
        if self.skip("ORDER BY") {
            update.order = self.keys()?;
        }
        if self.is("LIMIT") {
            update.limit = Some(self.limit()?);
        }
        Some(update)
    }

    /// Behind DELETE.
    fn delete(&mut self) -> Option<Delete<'a>> {
        self.skip_all(&["LOW_PRIORITY", "QUICK", "IGNORE"]);
        let mut delete = Delete {
            targets: Vec::new(),
            tables: Vec::new(),
            condition: None,
            order: Vec::new(),
            limit: None,
            returning: Vec::new(),
        };
        if self.skip("FROM") {
            let first = self.table_name()?;
            if self.is_sign(b',') || self.is("USING") || self.is_sign(b'.') {
                delete.targets = self.targets(first)?;
                self.expect("USING")?;
                delete.tables = self.tables()?;
            } else {
                // Some servers know an alias here, and some do not.
                self.is_any(&["WHERE", "ORDER", "LIMIT", "RETURNING"])
                    .then_some(())
                    .or_else(|| self.is_at_end_but_for_semicolon().then_some(()))?;
                delete.tables.push(Joined {
                    source: Source::Table(first),
                    join: Join::Inner,
                    on: None,
                    using: Vec::new(),
                });
            }
        } else {
            let first = self.table_name()?;
            delete.targets = self.targets(first)?;
            self.expect("FROM")?;
            delete.tables = self.tables()?;
        }
        if self.skip("WHERE") {
            delete.condition = Some(self.expression()?);
        }
        if self.skip("ORDER BY") {
            delete.order = self.keys()?;
        }
        if self.is("LIMIT") {
            delete.limit = Some(self.limit()?);
        }
        delete.returning = self.returning()?;
        Some(delete)
    }

    /// `a, b.*` of a DELETE over several tables.
    fn targets(&mut self, first: TableName<'a>) -> Option<Vec<TableName<'a>>> {
        let mut all = vec![first];
        loop {
            if self.skip_sign(b'.') {
                self.expect_sign(b'*')?;
            }
            if !self.skip_sign(b',') {
                return Some(all);
            }
            all.push(self.table_name()?);
        }
    }
}
