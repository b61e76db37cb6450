//! SELECT and what joins several of them, and the tables that a statement reads.

use super::reader::Reader;
use super::{Expression, walk};
use super::{Item, Join, Joined, Joint, Limit, Name, Node, Query, Select, Source, TableName};
use crate::words::Kind;

/// Words that stand behind a table or an item and are no alias.
const NO_ALIAS: &[&str] = &[
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "MINUS",
    "FOR",
    "LOCK",
    "WINDOW",
    "PROCEDURE",
    "INTO",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "CROSS",
    "NATURAL",
    "STRAIGHT_JOIN",
    "ON",
    "USING",
    "USE",
    "FORCE",
    "IGNORE",
    "SET",
    "PARTITION",
    "TABLESAMPLE",
    "FETCH",
    "OFFSET",
    "VALUES",
    "VALUE",
    "RETURNING",
    "FULL",
    "QUALIFY",
    "SELECT",
];

/// Words behind a query in parentheses that go on with it.
const BEHIND_QUERY: &[&str] = &[
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "MINUS",
    "ORDER",
    "LIMIT",
    "ON",
    "RETURNING",
];

const BEFORE_ITEMS: &[&str] = &[
    "ALL",
    "HIGH_PRIORITY",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_NO_CACHE",
    "SQL_CACHE",
];

impl<'a> Reader<'a> {
    /// Whether a query is next, its own parentheses before it. `(SELECT 1) + 1` is none.
    pub(super) fn is_query(&self) -> bool {
        let mut steps = 0;
        while self.ahead(steps).is_some_and(|token| token.is_sign(b'(')) {
            steps += 1;
        }
        let word = self.ahead(steps);
        word.is_some_and(|word| word.is("SELECT") || word.is("WITH") && steps == 0)
            && (steps == 0 || self.is_whole_query())
    }

    /// Whether the parentheses that are next end where a query may.
    fn is_whole_query(&self) -> bool {
        let (mut steps, mut open) = (0, 0);
        while let Some(token) = self.ahead(steps) {
            open += usize::from(token.is_sign(b'('));
            open -= usize::from(token.is_sign(b')'));
            steps += 1;
            if open == 0 {
                let behind = self.ahead(steps);
                return behind.is_none_or(|behind| {
                    behind.is_sign(b')') || behind.is_sign(b';') || behind.is_any(BEHIND_QUERY)
                });
            }
        }
        false
    }

    pub(super) fn query(&mut self) -> Option<Query<'a>> {
        let start = self.start();
        let (mut with, mut recursive) = (Vec::new(), false);
        if self.skip("WITH") {
            recursive = self.skip("RECURSIVE");
            loop {
                with.push(self.named_query()?);
                if !self.skip_sign(b',') {
                    break;
                }
            }
        }
        let mut query = Query {
            with,
            recursive,
            selects: Vec::new(),
            joints: Vec::new(),
            order: Vec::new(),
            limit: None,
            locks: false,
            at: start..start,
        };
        let braced = self.is_sign(b'(');
        loop {
            let first = query.selects.len();
            self.part(&mut query)?;
            let Some(joint) = self.joint() else {
                break;
            };
            // What is joined or limited in parentheses, beside another, would be another order of
            // things.
            let is_one = query.selects.len() == first + 1;
            (is_one && query.order.is_empty() && query.limit.is_none()).then_some(())?;
            query.joints.push(joint);
        }
        if query.selects.len() > 1 || braced {
            self.query_end(&mut query)?;
        }
        query.at = self.since(start);
        Some(query)
    }

    fn named_query(&mut self) -> Option<(Name<'a>, Query<'a>)> {
        let name = self.name()?;
        if self.is_sign(b'(') {
            self.skip_parentheses()?;
        }
        self.expect("AS")?;
        self.expect_sign(b'(')?;
        let query = self.deeper(Self::query)?;
        self.expect_sign(b')')?;
        Some((name, query))
    }

    /// One SELECT, or a query in parentheses; that of several SELECTs stands alone.
    fn part(&mut self, query: &mut Query<'a>) -> Option<()> {
        if self.skip_sign(b'(') {
            let inner = self.deeper(Self::query)?;
            self.expect_sign(b')')?;
            let has_end = !inner.order.is_empty() || inner.limit.is_some();
            let is_one = inner.selects.len() == 1 && !has_end;
            let is_first = query.selects.is_empty();
            (inner.with.is_empty() && !inner.locks && (is_one || is_first)).then_some(())?;
            query.selects.extend(inner.selects);
            query.joints.extend(inner.joints);
            query.order.extend(inner.order);
            query.limit = inner.limit;
            return Some(());
        }
        let select = self.select(&mut query.locks)?;
        query.selects.push(select);
        Some(())
    }

    fn joint(&mut self) -> Option<Joint> {
        if self.skip("UNION ALL") {
            return Some(Joint::UnionAll);
        }
        if self.skip("UNION DISTINCT") || self.skip("UNION") {
            return Some(Joint::Union);
        }
        if self.skip("EXCEPT") || self.skip("INTERSECT") || self.skip("MINUS") {
            self.skip_all(&["ALL", "DISTINCT"]);
            return Some(Joint::Other);
        }
        None
    }

    /// ORDER BY and LIMIT behind several SELECTs, or behind parentheses. A last SELECT without
    /// parentheses has read them.
    fn query_end(&mut self, query: &mut Query<'a>) -> Option<()> {
        if let Some(last) = query.selects.last_mut()
            && last.at.end == self.end()
        {
            query.order = std::mem::take(&mut last.order);
            query.limit = last.limit.take();
        }
        // Rows that have an order and a limit get no second one here.
        if self.skip("ORDER BY") {
            (query.order.is_empty() && query.limit.is_none()).then_some(())?;
            query.order = self.keys()?;
        }
        if self.is("LIMIT") {
            query.limit.is_none().then_some(())?;
            query.limit = Some(self.limit()?);
        }
        Some(())
    }

    fn select(&mut self, locks: &mut bool) -> Option<Select<'a>> {
        let start = self.start();
        self.expect("SELECT")?;
        let (mut distinct, mut counts_found) = (false, false);
        loop {
            self.skip_all(BEFORE_ITEMS);
            if self.skip("DISTINCT") || self.skip("DISTINCTROW") {
                distinct = true;
            } else if self.skip("SQL_CALC_FOUND_ROWS") {
                counts_found = true;
            } else if !self.skip("STRAIGHT_JOIN") {
                break;
            }
        }
        let mut items = vec![self.item()?];
        while self.skip_sign(b',') {
            items.push(self.item()?);
        }
        let none = self.end()..self.end();
        let mut select = Select {
            distinct,
            counts_found,
            items,
            tables: Vec::new(),
            condition: None,
            group: Vec::new(),
            rollup: false,
            having: None,
            having_at: none.clone(),
            windows: false,
            window: Vec::new(),
            order: Vec::new(),
            order_at: none,
            limit: None,
            at: start..start,
        };
        if self.skip("FROM") && !self.skip("DUAL") {
            select.tables = self.tables()?;
        }
        self.conditions(&mut select)?;
        *locks |= self.lock()?;
        select.at = self.since(start);
        let windows = super::expressions(&select).any(has_window);
        select.windows |= windows;
        Some(select)
    }

    /// From WHERE to LIMIT.
    fn conditions(&mut self, select: &mut Select<'a>) -> Option<()> {
        if self.skip("WHERE") {
            select.condition = Some(self.expression()?);
        }
        if self.skip("GROUP BY") {
            select.group = self.keys()?;
            select.rollup = self.skip("WITH ROLLUP");
        }
        let start = self.start();
        if self.skip("HAVING") {
            select.having = Some(self.expression()?);
            select.having_at = self.since(start);
        }
        while self.skip("WINDOW") || select.windows && self.skip_sign(b',') {
            select.windows = true;
            self.name()?;
            self.expect("AS")?;
            select.window.extend(self.window()?);
        }
        let start = self.start();
        if self.skip("ORDER BY") {
            select.order = self.keys()?;
            select.order_at = self.since(start);
        }
        if self.is("LIMIT") {
            select.limit = Some(self.limit()?);
        } else if self.is_any(&["OFFSET", "FETCH"]) {
            select.limit = Some(self.fetch()?);
        }
        Some(())
    }

    /// Locks behind a SELECT; whether there are any.
    fn lock(&mut self) -> Option<bool> {
        let mut found = false;
        loop {
            if self.skip("LOCK IN SHARE MODE") {
                found = true;
            } else if self.is("FOR") {
                self.next();
                self.is_any(&["UPDATE", "SHARE"]).then_some(())?;
                self.next();
                found = true;
                if self.skip("OF") {
                    self.name()?;
                    while self.skip_sign(b',') {
                        self.name()?;
                    }
                }
                let _is_there = self.skip("SKIP LOCKED") || self.skip("NOWAIT");
            } else {
                return Some(found);
            }
        }
    }

    pub(super) fn item(&mut self) -> Option<Item<'a>> {
        let start = self.start();
        let expression = self.expression()?;
        let alias = self.maybe_alias()?;
        Some(Item {
            expression,
            alias,
            at: self.since(start),
        })
    }

    /// An alias, if one follows; `None` where AS is followed by no name.
    fn maybe_alias(&mut self) -> Option<Option<Name<'a>>> {
        if self.skip("AS") {
            return Some(Some(self.alias()?));
        }
        let is_alias = self.peek().is_some_and(|token| match token.kind {
            Kind::Name | Kind::String => true,
            Kind::Word => !token.is_any(NO_ALIAS),
            Kind::Sign => false,
        });
        if is_alias {
            return Some(Some(self.alias()?));
        }
        Some(None)
    }

    /// `LIMIT n`, `LIMIT m, n`, `LIMIT n OFFSET m`.
    pub(super) fn limit(&mut self) -> Option<Limit<'a>> {
        let start = self.start();
        self.expect("LIMIT")?;
        let first = self.bound()?;
        let (rows, offset) = if self.skip_sign(b',') {
            (self.bound()?, Some(first))
        } else if self.skip("OFFSET") {
            (first, Some(self.bound()?))
        } else {
            (first, None)
        };
        Some(Limit {
            rows,
            offset,
            at: self.since(start),
        })
    }

    /// `OFFSET m ROWS FETCH FIRST n ROWS ONLY`.
    ///
    /// <https://mariadb.com/docs/server/reference/sql-statements/data-manipulation/selecting-data/select-offset-fetch>
    fn fetch(&mut self) -> Option<Limit<'a>> {
        let start = self.start();
        let mut offset = None;
        if self.skip("OFFSET") {
            offset = Some(self.bound()?);
            (self.skip("ROWS") || self.skip("ROW")).then_some(())?;
        }
        (self.skip("FETCH FIRST") || self.skip("FETCH NEXT")).then_some(())?;
        let rows = self.bound()?;
        (self.skip("ROWS ONLY") || self.skip("ROW ONLY")).then_some(())?;
        Some(Limit {
            rows,
            offset,
            at: self.since(start),
        })
    }

    fn bound(&mut self) -> Option<Expression<'a>> {
        let bound = self.expression()?;
        matches!(bound.node, Node::Literal(_) | Node::Parameter(_)).then_some(bound)
    }

    /// Tables with their joins.
    pub(super) fn tables(&mut self) -> Option<Vec<Joined<'a>>> {
        let mut all = Vec::new();
        self.table_group(&mut all, Join::Inner)?;
        Some(all)
    }

    /// Tables up to what is no join.
    fn table_group(&mut self, all: &mut Vec<Joined<'a>>, mut join: Join) -> Option<()> {
        loop {
            let first = all.len();
            self.table(all, join)?;
            self.join_condition(all, first)?;
            join = if self.skip_sign(b',')
                || self.skip("JOIN")
                || self.skip("INNER JOIN")
                || self.skip("CROSS JOIN")
                || self.skip("STRAIGHT_JOIN")
            {
                Join::Inner
            } else if self.skip("LEFT JOIN") || self.skip("LEFT OUTER JOIN") {
                Join::Left
            } else if self.skip("RIGHT JOIN") || self.skip("RIGHT OUTER JOIN") {
                Join::Other
            } else if self.skip("NATURAL") {
                self.skip_all(&["INNER", "LEFT", "RIGHT", "OUTER"]);
                self.expect("JOIN")?;
                Join::Other
            } else {
                return Some(());
            };
        }
    }

    /// ON or USING of the table that was just read.
    fn join_condition(&mut self, all: &mut [Joined<'a>], first: usize) -> Option<()> {
        let joined = all.get_mut(first)?;
        let is_at = |step: usize, word: &str| self.ahead(step).is_some_and(|token| token.is(word));
        if is_at(1, "DUPLICATE") && is_at(2, "KEY") {
            // Of the INSERT whose query it is.
            return Some(());
        }
        if self.skip("ON") {
            joined.on = Some(self.expression()?);
        } else if self.skip("USING") {
            self.expect_sign(b'(')?;
            joined.using.push(self.name()?);
            while self.skip_sign(b',') {
                joined.using.push(self.name()?);
            }
            self.expect_sign(b')')?;
        }
        Some(())
    }

    fn table(&mut self, all: &mut Vec<Joined<'a>>, join: Join) -> Option<()> {
        self.skip("LATERAL");
        let source = if self.skip_sign(b'(') {
            if !self.is_query() {
                self.deeper(|reader| reader.table_group(all, Join::Other))?;
                return self.expect_sign(b')');
            }
            let query = self.deeper(Self::query)?;
            self.expect_sign(b')')?;
            let alias = self.maybe_alias()?;
            if alias.is_some() && self.is_sign(b'(') {
                self.skip_parentheses()?;
            }
            Source::Query(Box::new(query), alias)
        } else {
            let mut table = self.table_name()?;
            (!self.is_sign(b'(')).then_some(())?;
            table.alias = self.maybe_alias()?;
            self.index_hints()?;
            Source::Table(table)
        };
        all.push(Joined {
            source,
            join,
            on: None,
            using: Vec::new(),
        });
        Some(())
    }

    /// A table with its schema, without an alias.
    pub(super) fn table_name(&mut self) -> Option<TableName<'a>> {
        let mut name = self.name()?;
        let mut schema = None;
        // `b.*` of a DELETE is not read here.
        let is_star = self.ahead(1).is_some_and(|next| next.is_sign(b'*'));
        if !is_star && self.skip_sign(b'.') {
            schema = Some(std::mem::replace(&mut name, self.name()?));
        }
        Some(TableName {
            schema,
            name,
            alias: None,
        })
    }

    fn index_hints(&mut self) -> Option<()> {
        while self.is_any(&["USE", "FORCE", "IGNORE"])
            && self
                .ahead(1)
                .is_some_and(|next| next.is_any(&["INDEX", "KEY"]))
        {
            self.next();
            self.next();
            if self.skip("FOR") && !self.skip("JOIN") {
                self.is_any(&["ORDER", "GROUP"]).then_some(())?;
                self.next();
                self.expect("BY")?;
            }
            self.skip_parentheses()?;
            self.skip_sign(b',');
        }
        Some(())
    }
}

fn has_window(expression: &Expression<'_>) -> bool {
    let mut found = false;
    walk(expression, &mut |inner| {
        found |= matches!(&inner.node, Node::Call(call) if call.over);
    });
    found
}
