//! The tables that a statement names, each with the scope in which its columns are called.

use crate::map::{Kind, Map, Table};
use sql::tree::{Expression, Item, Join, Joined, Name, Node, Query, Source, Statement, TableName};
use sql::tree::{bounds, expressions, walk};

/// All tables of a scope are seen.
pub(crate) const ALL_SEEN: usize = usize::MAX;

/// A table of the map, as a statement names it.
#[derive(Clone, Copy)]
pub(crate) struct Use<'t, 'a, 'm> {
    pub(crate) table: &'m Table,
    pub(crate) name: &'t TableName<'a>,
    /// Which of the scopes.
    pub(crate) scope: usize,
    /// Which table of the scope.
    pub(crate) position: usize,
}

/// A table that the map does not know, as a statement names it.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'t, 'a> {
    pub(crate) name: &'t TableName<'a>,
    /// Which of the scopes.
    pub(crate) scope: usize,
    /// Which table of the scope.
    pub(crate) position: usize,
}

impl Plain<'_, '_> {
    /// For people, without its schema.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.name.name.text).into_owned()
    }
}

/// Tables that are joined, and what their rows must fulfil.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'t, 'a> {
    pub(crate) tables: &'t [Joined<'a>],
    pub(crate) condition: Option<&'t Expression<'a>>,
    /// Whether the scope is a part of the statement itself: no query inside another.
    pub(crate) top: bool,
}

/// Names in a statement.
pub(crate) struct Named<'t, 'a, 'm> {
    pub(crate) uses: Vec<Use<'t, 'a, 'm>>,
    pub(crate) scopes: Vec<Scope<'t, 'a>>,
    /// Tables that the map does not know.
    pub(crate) plain: Vec<Plain<'t, 'a>>,
    pub(crate) map: &'m Map,
    schema: &'m [u8],
    /// Queries that have a name of their own here.
    with: Vec<&'t Name<'a>>,
}

/// Everything that a statement names.
pub(crate) fn named<'t, 'a, 'm>(
    statement: &'t Statement<'a>,
    map: &'m Map,
    schema: &'m [u8],
) -> Named<'t, 'a, 'm> {
    let mut named = Named {
        uses: Vec::new(),
        scopes: Vec::new(),
        plain: Vec::new(),
        map,
        schema,
        with: Vec::new(),
    };
    match statement {
        Statement::Query(query) => named.query(query, true),
        Statement::Insert(insert) => {
            named.scopes.push(Scope {
                tables: &[],
                condition: None,
                top: true,
            });
            named.table(&insert.table, 0, 0);
            if let Some(query) = &insert.query {
                named.query(query, false);
            }
            let values = insert.rows.iter().flat_map(|row| &row.values);
            let more = insert.duplicate.iter().map(|(_, value)| value);
            let returned = insert.returning.iter().map(|item| &item.expression);
            named.inside(values.chain(more).chain(returned));
        }
        Statement::Update(update) => {
            named.scope(&update.tables, update.condition.as_ref(), true);
            let values = update.assigned.iter().map(|(_, value)| value);
            let keys = update.order.iter().map(|key| &key.expression);
            let rows = of_rows(&update.tables, update.condition.as_ref());
            named.inside(values.chain(keys).chain(rows));
        }
        Statement::Delete(delete) => {
            named.scope(&delete.tables, delete.condition.as_ref(), true);
            let rows = of_rows(&delete.tables, delete.condition.as_ref());
            let keys = delete.order.iter().map(|key| &key.expression);
            let returned = delete.returning.iter().map(|item| &item.expression);
            named.inside(keys.chain(rows).chain(returned));
        }
        Statement::Describe(table) => {
            named.scopes.push(Scope {
                tables: &[],
                condition: None,
                top: true,
            });
            named.table(table, 0, 0);
        }
    }
    named
}

/// Expressions that say which rows are meant: WHERE, and ON of each join.
fn of_rows<'t, 'a>(
    tables: &'t [Joined<'a>],
    condition: Option<&'t Expression<'a>>,
) -> impl Iterator<Item = &'t Expression<'a>> {
    let ons = tables.iter().filter_map(|joined| joined.on.as_ref());
    condition.into_iter().chain(ons)
}

impl<'t, 'a, 'm> Named<'t, 'a, 'm> {
    /// Why nobody knows where rows of one of its sharded tables are, if so.
    pub(crate) fn unknown(&self) -> Option<String> {
        let all = self.uses.iter().map(|one| one.table);
        all.filter(|table| table.kind == Kind::Sharded)
            .find_map(|table| Some(format!("{}: {}", table.shown(), table.unknown()?)))
    }

    fn query(&mut self, query: &'t Query<'a>, top: bool) {
        let before = self.with.len();
        if query.recursive {
            self.with.extend(query.with.iter().map(|(name, _)| name));
        }
        for (name, inner) in &query.with {
            self.query(inner, false);
            // Without RECURSIVE, the name within is that of a table.
            if !query.recursive {
                self.with.push(name);
            }
        }
        for select in &query.selects {
            self.scope(&select.tables, select.condition.as_ref(), top);
            self.inside(expressions(select));
        }
        self.inside(query.order.iter().map(|key| &key.expression));
        self.inside(query.limit.iter().flat_map(bounds));
        self.with.truncate(before);
    }

    fn scope(
        &mut self,
        tables: &'t [Joined<'a>],
        condition: Option<&'t Expression<'a>>,
        top: bool,
    ) {
        let scope = self.scopes.len();
        self.scopes.push(Scope {
            tables,
            condition,
            top,
        });
        for (position, joined) in tables.iter().enumerate() {
            match &joined.source {
                Source::Table(name) => self.table(name, scope, position),
                Source::Query(query, _) => self.query(query, false),
            }
        }
    }

    fn table(&mut self, name: &'t TableName<'a>, scope: usize, position: usize) {
        if name.schema.is_none() && self.with.iter().any(|with| with.is(&name.name.text)) {
            return;
        }
        let schema = name
            .schema
            .as_ref()
            .map_or(self.schema, |schema| &schema.text);
        match self.map.table(schema, &name.name.text) {
            Some(table) => self.uses.push(Use {
                table,
                name,
                scope,
                position,
            }),
            None => self.plain.push(Plain {
                name,
                scope,
                position,
            }),
        }
    }

    /// Queries inside of expressions.
    fn inside(&mut self, all: impl Iterator<Item = &'t Expression<'a>>) {
        for expression in all {
            let mut queries = Vec::new();
            walk(expression, &mut |inner| {
                if let Node::Query(query) = &inner.node {
                    queries.push(&**query);
                }
            });
            for query in queries {
                self.query(query, false);
            }
        }
    }
}

impl<'t, 'a> Scope<'t, 'a> {
    /// Conditions that a row of a table must fulfil to matter: joined by AND, and apart. Of what an
    /// outer join may make up rows of, only its own ON counts.
    pub(crate) fn conjuncts(self, position: usize) -> Vec<&'t Expression<'a>> {
        let mut all = Vec::new();
        let is_clear = self.tables.iter().all(|joined| joined.join != Join::Other);
        let Some(own) = self.tables.get(position).filter(|_| is_clear) else {
            return all;
        };
        if own.join == Join::Left {
            own.on.iter().for_each(|on| apart(on, &mut all));
            return all;
        }
        let inner = |joined: &&Joined<'a>| joined.join == Join::Inner;
        let ons = self
            .tables
            .iter()
            .filter(inner)
            .filter_map(|joined| joined.on.as_ref());
        self.condition
            .into_iter()
            .chain(ons)
            .for_each(|one| apart(one, &mut all));
        all
    }

    /// Whether a column's name without its table is certain to be that of this table, which has one,
    /// where so many of the tables are seen. If another table had it as well, servers would refuse it as
    /// ambiguous. Only what USING makes of two columns is the left one's.
    pub(crate) fn is_certain(self, position: usize, seen: usize, column: &str) -> bool {
        let is_left_of_using = |(at, joined): (usize, &Joined<'a>)| {
            let names_it = joined.using.iter().any(|name| name.is(column.as_bytes()));
            joined.join != Join::Other && (position < at || !names_it)
        };
        let mut tables = self.tables.iter().enumerate();
        self.tables.len() == 1 || position < seen && tables.all(is_left_of_using)
    }

    /// The conditions that every row of a table must fulfil to matter, and how many of the tables are
    /// seen there: all in WHERE. ON sees none behind it, and maybe none before a comma.
    pub(crate) fn conditions(
        self,
        position: usize,
    ) -> impl Iterator<Item = (&'t Expression<'a>, usize)> {
        // An outer join to the left, or in parentheses: what ON asks is nothing that rows must be.
        let clear = self.tables.iter().all(|joined| joined.join != Join::Other);
        let joined =
            self.tables.iter().enumerate().filter(move |(at, joined)| {
                clear && (joined.join == Join::Inner || *at == position)
            });
        let ons = joined.filter_map(move |(at, joined)| {
            let is_linked = |one: &Joined<'a>| one.on.is_some() || !one.using.is_empty();
            let behind_first = self.tables.get(1..=at).unwrap_or_default();
            let seen = match behind_first.iter().all(is_linked) {
                true => at + 1,
                false => 0,
            };
            Some((joined.on.as_ref()?, seen))
        });
        let all = self.condition.into_iter();
        all.map(|condition| (condition, ALL_SEEN)).chain(ons)
    }
}

/// The conditions that AND joins.
fn apart<'t, 'a>(condition: &'t Expression<'a>, all: &mut Vec<&'t Expression<'a>>) {
    match &condition.node {
        Node::And(several) => several.iter().for_each(|one| apart(one, all)),
        _ => all.push(condition),
    }
}

/// Calls `each` with every expression of a statement, those of queries inside included.
pub(crate) fn every<'t, 'a>(
    statement: &'t Statement<'a>,
    each: &mut dyn FnMut(&'t Expression<'a>),
) {
    every_that_sees(statement, None, each);
}

/// Calls `each` with every expression of a statement in which a table of the statement itself is called
/// so: in a query inside, another one may have this name.
pub(crate) fn every_that_sees<'t, 'a>(
    statement: &'t Statement<'a>,
    called: Option<&[u8]>,
    each: &mut dyn FnMut(&'t Expression<'a>),
) {
    let mut every = Every { called, each };
    match statement {
        Statement::Query(query) => every.of_query(query),
        Statement::Insert(insert) => {
            let values = insert.rows.iter().flat_map(|row| &row.values);
            let assigned = insert.duplicate.iter().map(|(_, value)| value);
            values.chain(assigned).for_each(|one| every.deep(one));
            if let Some(query) = &insert.query {
                every.of_query(query);
            }
            every.of_items(&insert.returning);
        }
        Statement::Update(update) => {
            every.of_tables(&update.tables);
            let assigned = update.assigned.iter().map(|(_, value)| value);
            let keys = update.order.iter().map(|key| &key.expression);
            let all = assigned.chain(&update.condition).chain(keys);
            all.for_each(|one| every.deep(one));
        }
        Statement::Delete(delete) => {
            every.of_tables(&delete.tables);
            let keys = delete.order.iter().map(|key| &key.expression);
            let all = delete.condition.iter().chain(keys);
            all.for_each(|one| every.deep(one));
            every.of_items(&delete.returning);
        }
        Statement::Describe(_) => {}
    }
}

/// A walk through all expressions.
struct Every<'w, 't, 'a> {
    /// A name that is another table's in a query inside: expressions there are left out.
    called: Option<&'w [u8]>,
    each: &'w mut dyn FnMut(&'t Expression<'a>),
}

impl<'t, 'a> Every<'_, 't, 'a> {
    fn of_query(&mut self, query: &'t Query<'a>) {
        query
            .with
            .iter()
            .for_each(|(_, inner)| self.of_query(inner));
        let mut hides = false;
        for select in &query.selects {
            let is_hidden = select.tables.iter().any(|joined| self.is_called(joined));
            hides |= is_hidden;
            if !is_hidden {
                expressions(select).for_each(|one| self.deep(one));
            }
            self.of_sources(&select.tables);
        }
        if !hides {
            let keys = query.order.iter().map(|key| &key.expression);
            let bounds = query.limit.iter().flat_map(bounds);
            keys.chain(bounds).for_each(|one| self.deep(one));
        }
    }

    fn is_called(&self, joined: &Joined<'a>) -> bool {
        let Some(called) = self.called else {
            return false;
        };
        match &joined.source {
            Source::Table(name) => name.called().eq_ignore_ascii_case(called),
            Source::Query(_, alias) => alias.as_ref().is_some_and(|alias| alias.is(called)),
        }
    }

    fn of_tables(&mut self, tables: &'t [Joined<'a>]) {
        let ons = tables.iter().filter_map(|joined| joined.on.as_ref());
        ons.for_each(|on| self.deep(on));
        self.of_sources(tables);
    }

    fn of_sources(&mut self, tables: &'t [Joined<'a>]) {
        for joined in tables {
            if let Source::Query(inner, _) = &joined.source {
                self.of_query(inner);
            }
        }
    }

    fn of_items(&mut self, items: &'t [Item<'a>]) {
        items.iter().for_each(|item| self.deep(&item.expression));
    }

    fn deep(&mut self, expression: &'t Expression<'a>) {
        let mut queries = Vec::new();
        walk(expression, &mut |inner| {
            (self.each)(inner);
            if let Node::Query(query) = &inner.node {
                queries.push(&**query);
            }
        });
        queries.into_iter().for_each(|query| self.of_query(query));
    }
}
