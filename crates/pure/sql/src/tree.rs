//! A statement as a tree, with the place of every part in its text: for tables that are sharded.
//!
//! The reader is made to be certain, not complete. A text that it does not understand to its last
//! token has no tree.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/select.html>

mod changes;
mod expressions;
mod queries;
mod reader;

use crate::lexing::Lexing;
use reader::Reader;
use std::borrow::Cow;
use std::ops::Range;

/// Meaning of double quotes, which the session's `sql_mode` decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DoubleQuotes {
    /// They make strings.
    #[default]
    Strings,
    /// They make names or strings: nobody knows.
    Unsure,
}

/// A name, without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name<'a> {
    /// Letters as they were written.
    pub text: Cow<'a, [u8]>,
    /// Place in the text, quotes included.
    pub at: Range<usize>,
}

impl Name<'_> {
    /// Whether it names the same column or alias, for which letters' case does not matter.
    #[must_use]
    pub fn is(&self, other: &[u8]) -> bool {
        self.text.eq_ignore_ascii_case(other)
    }
}

/// A statement that was understood.
#[derive(Debug, PartialEq, Eq)]
pub struct Tree<'a> {
    /// Statement, taken apart.
    pub statement: Statement<'a>,
    /// How many `?` it has.
    pub parameters: usize,
}

/// Statement by what it does.
#[derive(Debug, PartialEq, Eq)]
pub enum Statement<'a> {
    /// SELECT, with or without UNION.
    Query(Query<'a>),
    /// INSERT or REPLACE.
    Insert(Insert<'a>),
    /// UPDATE.
    Update(Update<'a>),
    /// DELETE.
    Delete(Delete<'a>),
    /// DESCRIBE, SHOW COLUMNS and their like, which tell of one table.
    Describe(TableName<'a>),
}

/// SELECTs joined by UNION, EXCEPT and INTERSECT, and what is done with their rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// Queries that have a name of their own before it.
    pub with: Vec<(Name<'a>, Self)>,
    /// WITH RECURSIVE: each of them is known by its name in itself, and in those before it.
    pub recursive: bool,
    /// The parts; one is the usual case.
    pub selects: Vec<Select<'a>>,
    /// Words between the parts.
    pub joints: Vec<Joint>,
    /// ORDER BY behind all.
    pub order: Vec<Order<'a>>,
    /// LIMIT behind all.
    pub limit: Option<Limit<'a>>,
    /// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.
    pub locks: bool,
    /// Place in the text.
    pub at: Range<usize>,
}

/// A word between two SELECTs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// UNION or UNION DISTINCT.
    Union,
    /// UNION ALL.
    UnionAll,
    /// EXCEPT, INTERSECT, MINUS.
    Other,
}

/// One SELECT.
#[derive(Debug, PartialEq, Eq)]
pub struct Select<'a> {
    /// DISTINCT.
    pub distinct: bool,
    /// SQL_CALC_FOUND_ROWS.
    pub counts_found: bool,
    /// Items that are selected.
    pub items: Vec<Item<'a>>,
    /// Tables, in order.
    pub tables: Vec<Joined<'a>>,
    /// WHERE.
    pub condition: Option<Expression<'a>>,
    /// GROUP BY.
    pub group: Vec<Order<'a>>,
    /// WITH ROLLUP.
    pub rollup: bool,
    /// HAVING.
    pub having: Option<Expression<'a>>,
    /// HAVING with its keyword.
    pub having_at: Range<usize>,
    /// WINDOW, or OVER somewhere.
    pub windows: bool,
    /// Expressions by which windows with a name are partitioned and ordered.
    pub window: Vec<Expression<'a>>,
    /// ORDER BY.
    pub order: Vec<Order<'a>>,
    /// ORDER BY with its keywords; empty without.
    pub order_at: Range<usize>,
    /// LIMIT.
    pub limit: Option<Limit<'a>>,
    /// Place in the text.
    pub at: Range<usize>,
}

/// One thing that is selected.
#[derive(Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Expression that is selected.
    pub expression: Expression<'a>,
    /// Its name in the result, if one is given.
    pub alias: Option<Name<'a>>,
    /// Place in the text, alias included.
    pub at: Range<usize>,
}

/// A key of ORDER BY or GROUP BY.
#[derive(Debug, PartialEq, Eq)]
pub struct Order<'a> {
    /// By what.
    pub expression: Expression<'a>,
    /// DESC.
    pub descending: bool,
}

/// LIMIT with its OFFSET.
#[derive(Debug, PartialEq, Eq)]
pub struct Limit<'a> {
    /// At most so many rows.
    pub rows: Expression<'a>,
    /// After so many.
    pub offset: Option<Expression<'a>>,
    /// Place in the text, from LIMIT on.
    pub at: Range<usize>,
}

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName<'a> {
    /// The schema, if it is written.
    pub schema: Option<Name<'a>>,
    /// The table.
    pub name: Name<'a>,
    /// The alias, if there is one.
    pub alias: Option<Name<'a>>,
}

impl TableName<'_> {
    /// Place of the name in the text, with its schema and without its alias.
    #[must_use]
    pub fn at(&self) -> Range<usize> {
        let start = self
            .schema
            .as_ref()
            .map_or(self.name.at.start, |schema| schema.at.start);
        start..self.name.at.end
    }

    /// The name by which columns call it.
    #[must_use]
    pub fn called(&self) -> &[u8] {
        &self.alias.as_ref().unwrap_or(&self.name).text
    }
}

/// A table, or a query in its place.
#[derive(Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// A table.
    Table(TableName<'a>),
    /// A query in parentheses.
    Query(Box<Query<'a>>, Option<Name<'a>>),
}

/// How a table is joined to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// First table, or one behind a comma, JOIN, INNER JOIN, CROSS JOIN, STRAIGHT_JOIN.
    Inner,
    /// LEFT JOIN.
    Left,
    /// RIGHT JOIN, NATURAL JOIN, or anything in parentheses.
    Other,
}

/// A table with how it is joined.
#[derive(Debug, PartialEq, Eq)]
pub struct Joined<'a> {
    /// Table or query.
    pub source: Source<'a>,
    /// How.
    pub join: Join,
    /// ON.
    pub on: Option<Expression<'a>>,
    /// USING.
    pub using: Vec<Name<'a>>,
}

/// INSERT or REPLACE.
#[derive(Debug, PartialEq, Eq)]
pub struct Insert<'a> {
    /// Into which table.
    pub table: TableName<'a>,
    /// Its columns; none are listed if `None`.
    pub columns: Option<Vec<Name<'a>>>,
    /// Its rows; empty if they come from a query.
    pub rows: Vec<Row<'a>>,
    /// Where its rows come from, if it is a query.
    pub query: Option<Box<Query<'a>>>,
    /// Columns that ON DUPLICATE KEY UPDATE assigns, with their qualifiers, and values.
    pub duplicate: Vec<(Vec<Name<'a>>, Expression<'a>)>,
    /// Whether the statement is REPLACE.
    pub replaces: bool,
    /// Items of RETURNING; none without.
    pub returning: Vec<Item<'a>>,
}

/// The values of one row.
#[derive(Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// One a column.
    pub values: Vec<Expression<'a>>,
    /// Place in the text, parentheses included.
    pub at: Range<usize>,
}

/// UPDATE.
#[derive(Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// Tables, in order.
    pub tables: Vec<Joined<'a>>,
    /// Columns with the values that they are assigned.
    pub assigned: Vec<(Vec<Name<'a>>, Expression<'a>)>,
    /// WHERE.
    pub condition: Option<Expression<'a>>,
    /// ORDER BY.
    pub order: Vec<Order<'a>>,
    /// LIMIT.
    pub limit: Option<Limit<'a>>,
}

/// DELETE.
#[derive(Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// Names of the tables from which rows go, for a DELETE over several; else none.
    pub targets: Vec<TableName<'a>>,
    /// Tables, in order.
    pub tables: Vec<Joined<'a>>,
    /// WHERE.
    pub condition: Option<Expression<'a>>,
    /// ORDER BY.
    pub order: Vec<Order<'a>>,
    /// LIMIT.
    pub limit: Option<Limit<'a>>,
    /// Items of RETURNING; none without.
    pub returning: Vec<Item<'a>>,
}

/// An expression and its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Expression<'a> {
    /// Kind of the expression, with its parts.
    pub node: Node<'a>,
    /// Place in the text.
    pub at: Range<usize>,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<=>`
    NullSafe,
    /// `<>`, `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A value that is written out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal<'a> {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Truth(bool),
    /// A number as written, and whether a minus stands before it.
    Number(&'a [u8], bool),
    /// A string without its quotes.
    Text(Cow<'a, [u8]>),
}

/// Kind of an expression, with its parts.
#[derive(Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// A column, its qualifiers before it.
    Column(Vec<Name<'a>>),
    /// `*`, with what stands before it.
    Star(Vec<Name<'a>>),
    /// A value.
    Literal(Literal<'a>),
    /// `?`, counted from 0.
    Parameter(usize),
    /// AND.
    And(Vec<Expression<'a>>),
    /// OR.
    Or(Vec<Expression<'a>>),
    /// NOT, and what has a NOT in it.
    Not(Box<Expression<'a>>),
    /// A comparison.
    Compare(Comparison, Box<[Expression<'a>; 2]>),
    /// IN with a list.
    In(Box<Expression<'a>>, Vec<Expression<'a>>),
    /// BETWEEN.
    Between(Box<[Expression<'a>; 3]>),
    /// IS NULL.
    IsNull(Box<Expression<'a>>),
    /// A function.
    Call(Box<Call<'a>>),
    /// Several in parentheses: `(a, b)`.
    Row(Vec<Expression<'a>>),
    /// A query in parentheses.
    Query(Box<Query<'a>>),
    /// A variable, or an assignment to one.
    Variable(Vec<Expression<'a>>),
    /// Anything else, and what is in it.
    Other(Vec<Expression<'a>>),
}

/// A function with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// Name, without a schema.
    pub name: Name<'a>,
    /// DISTINCT.
    pub distinct: bool,
    /// Arguments of the call.
    pub arguments: Vec<Expression<'a>>,
    /// ORDER BY inside.
    pub order: Vec<Order<'a>>,
    /// SEPARATOR, as written.
    pub separator: Option<&'a [u8]>,
    /// OVER: rows of a window.
    pub over: bool,
    /// Expressions by which the window is partitioned and ordered.
    pub window: Vec<Expression<'a>>,
    /// Whether a word stands between the arguments, as in `CAST(a AS CHAR)`.
    pub has_words: bool,
}

/// Calls `each` with an expression and all that are in it; what is in queries there is left out.
pub fn walk<'t, 'a>(expression: &'t Expression<'a>, each: &mut dyn FnMut(&'t Expression<'a>)) {
    each(expression);
    inside(expression).for_each(|inner| walk(inner, each));
}

/// Returns what stands in an expression, one step down.
fn inside<'t, 'a>(
    expression: &'t Expression<'a>,
) -> Box<dyn Iterator<Item = &'t Expression<'a>> + 't> {
    match &expression.node {
        Node::And(all)
        | Node::Or(all)
        | Node::Row(all)
        | Node::Variable(all)
        | Node::Other(all) => Box::new(all.iter()),
        Node::Not(one) | Node::IsNull(one) => Box::new(std::iter::once(&**one)),
        Node::Compare(_, two) => Box::new(two.iter()),
        Node::Between(three) => Box::new(three.iter()),
        Node::In(one, list) => Box::new(std::iter::once(&**one).chain(list)),
        Node::Call(call) => {
            let keys = call.order.iter().map(|key| &key.expression);
            Box::new(call.arguments.iter().chain(keys).chain(&call.window))
        }
        Node::Column(_)
        | Node::Star(_)
        | Node::Literal(_)
        | Node::Parameter(_)
        | Node::Query(_) => Box::new(std::iter::empty()),
    }
}

/// The expressions of a SELECT itself: what it selects, its conditions, keys and bounds.
pub fn expressions<'t, 'a>(
    select: &'t Select<'a>,
) -> impl Iterator<Item = &'t Expression<'a>> + use<'t, 'a> {
    let items = select.items.iter().map(|item| &item.expression);
    let ons = select.tables.iter().filter_map(|table| table.on.as_ref());
    let keys = select.group.iter().chain(&select.order);
    let bounds = select.limit.iter().flat_map(bounds);
    items
        .chain(ons)
        .chain(&select.condition)
        .chain(&select.having)
        .chain(&select.window)
        .chain(keys.map(|key| &key.expression))
        .chain(bounds)
}

/// Both numbers of a LIMIT.
pub fn bounds<'t, 'a>(limit: &'t Limit<'a>) -> impl Iterator<Item = &'t Expression<'a>> {
    std::iter::once(&limit.rows).chain(&limit.offset)
}

/// The tree of a statement; `None` for what is not understood whole. A `;` may end it.
#[must_use]
pub fn tree(text: &[u8], lexing: Lexing, quotes: DoubleQuotes) -> Option<Tree<'_>> {
    if lexing.hides(text) {
        return None;
    }
    let mut reader = Reader::new(text, lexing, quotes)?;
    let statement = reader.statement()?;
    reader.skip_sign(b';');
    reader.is_at_end().then(|| Tree {
        statement,
        parameters: reader.parameters(),
    })
}

/// Reads anything without a panic; every place is in the text, and what is in a part is in its place.
#[doc(hidden)]
pub fn fuzz_tree(data: &[u8]) {
    let Some(tree) = tree(data, Lexing::Escapes, DoubleQuotes::Strings) else {
        return;
    };
    let mut check = |expression: &Expression<'_>| {
        assert!(
            data.get(expression.at.clone())
                .is_some_and(|text| !text.is_empty())
        );
        inside(expression).for_each(|inner| {
            assert!(expression.at.start <= inner.at.start && inner.at.end <= expression.at.end);
        });
    };
    if let Statement::Query(query) = &tree.statement {
        for select in &query.selects {
            assert!(data.get(select.at.clone()).is_some());
            expressions(select).for_each(|expression| walk(expression, &mut check));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Tree<'_>> {
        tree(text.as_bytes(), Lexing::Escapes, DoubleQuotes::Strings)
    }

    #[test]
    fn what_is_read_is_read_to_its_end() {
        for text in [
            "SELECT 1",
            "SELECT id, category FROM small WHERE small.category='books' /* Added */",
            "select a.*, count(*) n, `b`.`c` as 'x y' from s.t a left join b on a.i = b.i and b.j is not null where a.x in (1, -2, 3.5e-3) or not (a.y between 'a' and 'b') group by a.z desc having n > 1 order by 2 desc, a.k limit 10 offset 5;",
            "SELECT * FROM (SELECT a FROM t UNION ALL SELECT b FROM u) d, (v JOIN w USING (i)) WHERE EXISTS (SELECT 1 FROM x WHERE x.i = v.i)",
            "(SELECT a FROM t LIMIT 1) UNION (SELECT b FROM u ORDER BY b) ORDER BY 1 LIMIT 3, 4",
            "WITH c (n) AS (SELECT 1 UNION SELECT 2) SELECT * FROM c",
            "SELECT CAST(a AS DECIMAL(10,2)), EXTRACT(YEAR FROM d), GROUP_CONCAT(DISTINCT a ORDER BY b DESC SEPARATOR '; '), CASE WHEN a THEN 1 ELSE 2 END, TRIM(BOTH ' ' FROM b), d + INTERVAL 1 DAY FROM t",
            "SELECT SUM(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t FORCE INDEX FOR JOIN (i, j) FOR UPDATE SKIP LOCKED",
            "SELECT a FROM t WHERE MATCH (a, b) AGAINST ('x' IN BOOLEAN MODE) AND j->>'$.a' LIKE 'x%' ESCAPE '|' COLLATE utf8mb4_bin LOCK IN SHARE MODE",
            "INSERT IGNORE INTO s.t (a, `b`) VALUES (1, DEFAULT), (?, NOW()) ON DUPLICATE KEY UPDATE t.b = VALUES(b), a = a + 1",
            "REPLACE t SET a = 1, t.b := 'x'",
            "insert into t (a) select b from u where c = 1",
            "INSERT INTO t VALUES (1, 'a') AS new ON DUPLICATE KEY UPDATE a = new.a",
            "UPDATE LOW_PRIORITY t AS x, u SET x.a = u.b WHERE x.i = u.i",
            "UPDATE t SET a = 1 WHERE b = 2 ORDER BY c LIMIT 1",
            "DELETE FROM t WHERE a = 1 ORDER BY b LIMIT 2",
            "DELETE a, b.* FROM a JOIN b ON a.i = b.i WHERE a.x > 1",
            "DELETE FROM a USING a JOIN b ON a.i = b.i",
            "DESC t",
            "SHOW FULL COLUMNS FROM t IN s",
            "SHOW COLUMNS FROM t LIKE 'a%'",
            "SHOW KEYS FROM `t` WHERE Key_name = 'PRIMARY'",
            "SHOW INDEX IN t FROM s",
            "SHOW CREATE TABLE s.t;",
            "EXPLAIN t",
            "SELECT @a := 1, @@session.sql_mode, x'00', _utf8'a', DATE '2008-12-22', ROW(1, 2) = (1, 2)",
            "(SELECT a FROM t) ORDER BY a LIMIT 3",
            "(SELECT a FROM t LIMIT 3) LIMIT 1",
            "((SELECT a FROM t UNION SELECT b FROM u)) ORDER BY 1",
            "SELECT {d '2008-12-22'}, {ts '2008-12-22 10:00:00'}",
            "SELECT CASE 'a' WHEN b THEN 1 END, d + INTERVAL '3' MONTH, INTERVAL(a, 1, 2) unit, CAST(b AS CHAR(3) CHARACTER SET latin1)",
            "SELECT GROUP_CONCAT(a ORDER BY b LIMIT 2), NTH_VALUE(a, 2) FROM FIRST RESPECT NULLS OVER (ORDER BY b), FIRST_VALUE(a) IGNORE NULLS OVER w FROM first",
            "SELECT COALESCE((SELECT MAX(a) FROM t), 0), ((SELECT 1) + 1) FROM ((SELECT 1) d JOIN u), (SELECT 2) e WHERE ((SELECT 1) > 0 AND b) OR a IN ((SELECT 2), 3)",
            "INSERT INTO t (SELECT a FROM u) ON DUPLICATE KEY UPDATE a = 1",
            "SELECT a DIV 2, b MOD 3, -c, !d, ~e, f ^ g, h << 1, i XOR j, k REGEXP 'x', l SOUNDS LIKE 'm' FROM t WHERE (a, b) IN ((1, 2), (3, 4)) AND a > ALL (SELECT 1)",
        ] {
            assert!(read(text).is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_has_no_tree() {
        for text in [
            "",
            ";",
            "SELECT",
            "SELECT 1; SELECT 2",
            "SELECT a FROM t ORDER BY a ORDER BY b",
            "(SELECT a FROM t UNION SELECT b FROM u LIMIT 3) LIMIT 1",
            "(SELECT a FROM t UNION SELECT b FROM u) UNION SELECT 1",
            "((SELECT a FROM t) LIMIT 3) UNION SELECT 1",
            "SELECT a FROM t WHERE",
            "SELECT a FROM t WHERE (a = 1",
            "SELECT a INTO OUTFILE 'x' FROM t",
            "SELECT a INTO @x FROM t",
            "SELECT * FROM t PROCEDURE ANALYSE()",
            "ALTER TABLE t ADD c INT",
            "SHOW KEYS FROM t WHERE Key_name IN (SELECT a FROM u)",
            "SHOW CREATE VIEW t",
            "SELECT 'a",
            "SELECT {x '2008-12-22'}",
            "INSERT INTO t (a) VALUES (1",
            "SELECT 1 FROM JSON_TABLE('[]', '$' COLUMNS (a INT PATH '$')) x",
            "SELECT /*!50713 a, */ b FROM t",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let deep = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
        assert_eq!(read(&deep), None);
        for (first, more) in [
            ("1", " = 1"),
            ("a", " COLLATE utf8mb4_bin"),
            ("a", " IS NULL"),
            ("a", "->'$.b'"),
        ] {
            let chain = format!("SELECT {first}{}", more.repeat(200_000));
            assert_eq!(read(&chain), None, "{more}");
        }
    }

    #[test]
    fn operators_bind_as_in_mysql() {
        let shown = |text: &str| {
            let text = format!("SELECT {text}");
            let tree = tree(text.as_bytes(), Lexing::Escapes, DoubleQuotes::Strings).unwrap();
            let Statement::Query(query) = &tree.statement else {
                panic!("a query")
            };
            format!("{:?}", query.selects[0].items[0].expression.node)
        };
        assert!(shown("a = 1 OR b = 2 AND c = 3").starts_with("Or"));
        assert!(shown("NOT a = 1").starts_with("Not(Expression { node: Compare"));
        assert!(shown("a = 1 + 2").starts_with("Compare"));
        assert!(shown("a AND b BETWEEN 1 AND 2 AND c").starts_with("And"));
        assert!(
            shown("a || b").starts_with("Other"),
            "PIPES_AS_CONCAT may be set"
        );
        assert!(shown("a NOT IN (1)").starts_with("Not"));
        assert!(shown("'a' 'b'").starts_with("Other"));
        for text in ["a 'x'", "a \"x\"", "x 'y'"] {
            assert!(shown(text).starts_with("Column"), "{text}: an alias");
        }
        for text in ["x'00'", "_latin1 'a'", "DATE '2008-12-22'", "n'a'"] {
            assert!(shown(text).starts_with("Other"), "{text}: one value");
        }
        assert!(shown("-7").starts_with("Literal(Number"));
        assert!(shown("a = 'x' COLLATE utf8mb4_bin").contains("Other"));
    }

    #[test]
    fn nothing_is_too_strange() {
        let pieces = [
            "SELECT ",
            "FROM ",
            "t ",
            "(",
            ")",
            ",",
            "a",
            ".",
            "1",
            "'x'",
            "=",
            "<",
            ">",
            " AND ",
            " OR ",
            " NOT ",
            " IN ",
            " BETWEEN ",
            "?",
            "*",
            " JOIN ",
            " ON ",
            " GROUP BY ",
            " ORDER BY ",
            " LIMIT ",
            " UNION ",
            "INSERT INTO ",
            " VALUES ",
            "UPDATE ",
            " SET ",
            "DELETE ",
            " CASE WHEN ",
            " END ",
            "@",
            ":=",
        ];
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..14 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text += pieces[(seed >> 33) as usize % pieces.len()];
            }
            fuzz_tree(text.as_bytes());
            fuzz_tree(format!("SELECT {text}").as_bytes());
        }
    }
}
