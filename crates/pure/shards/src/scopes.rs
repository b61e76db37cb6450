//! The tables that a statement names, each with the scope in which its columns are called.

use crate::map::{Kind, Map, Table};
use sql::tree::{Expression, Join, Joined, Name, Node, Query, Source, Statement, TableName};
use sql::tree::{bounds, expressions, walk};

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
            named.inside(values.chain(more));
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
            named.inside(keys.chain(rows));
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

    /// The conditions that every row of a table must fulfil to matter.
    pub(crate) fn conditions(self, position: usize) -> impl Iterator<Item = &'t Expression<'a>> {
        // An outer join to the left, or in parentheses: what ON asks is nothing that rows must be.
        let clear = self.tables.iter().all(|joined| joined.join != Join::Other);
        let joined =
            self.tables.iter().enumerate().filter(move |(at, joined)| {
                clear && (joined.join == Join::Inner || *at == position)
            });
        self.condition
            .into_iter()
            .chain(joined.filter_map(|(_, joined)| joined.on.as_ref()))
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
    match statement {
        Statement::Query(query) => every_of_query(query, each),
        Statement::Insert(insert) => {
            for row in &insert.rows {
                row.values.iter().for_each(|value| deep(value, each));
            }
            insert
                .duplicate
                .iter()
                .for_each(|(_, value)| deep(value, each));
            if let Some(query) = &insert.query {
                every_of_query(query, each);
            }
        }
        Statement::Update(update) => {
            every_of_tables(&update.tables, each);
            update
                .assigned
                .iter()
                .for_each(|(_, value)| deep(value, each));
            update.condition.iter().for_each(|one| deep(one, each));
            update
                .order
                .iter()
                .for_each(|key| deep(&key.expression, each));
        }
        Statement::Delete(delete) => {
            every_of_tables(&delete.tables, each);
            delete.condition.iter().for_each(|one| deep(one, each));
            delete
                .order
                .iter()
                .for_each(|key| deep(&key.expression, each));
        }
        Statement::Describe(_) => {}
    }
}

fn every_of_query<'t, 'a>(query: &'t Query<'a>, each: &mut dyn FnMut(&'t Expression<'a>)) {
    query
        .with
        .iter()
        .for_each(|(_, inner)| every_of_query(inner, each));
    for select in &query.selects {
        expressions(select).for_each(|one| deep(one, each));
        for joined in &select.tables {
            if let Source::Query(inner, _) = &joined.source {
                every_of_query(inner, each);
            }
        }
    }
    query
        .order
        .iter()
        .for_each(|key| deep(&key.expression, each));
    query
        .limit
        .iter()
        .flat_map(bounds)
        .for_each(|one| deep(one, each));
}

fn every_of_tables<'t, 'a>(tables: &'t [Joined<'a>], each: &mut dyn FnMut(&'t Expression<'a>)) {
    for joined in tables {
        joined.on.iter().for_each(|on| deep(on, each));
        if let Source::Query(inner, _) = &joined.source {
            every_of_query(inner, each);
        }
    }
}

fn deep<'t, 'a>(expression: &'t Expression<'a>, each: &mut dyn FnMut(&'t Expression<'a>)) {
    let mut queries = Vec::new();
    walk(expression, &mut |inner| {
        each(inner);
        if let Node::Query(query) = &inner.node {
            queries.push(&**query);
        }
    });
    queries
        .into_iter()
        .for_each(|query| every_of_query(query, each));
}
