//! Expressions. Only what tells which rows are meant is read apart; the rest is known by what is in
//! it.

use super::reader::{DEPTH_MAX, Reader};
use super::{Call, Comparison, DoubleQuotes, Expression, Literal, Name, Node, Order};
use crate::dynamic;
use crate::words::{Kind, Token};

/// Words behind which an expression has ended, and which are no column.
const NEVER_A_COLUMN: &[&str] = &[
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "ON",
    "USING",
    "INTO",
    "SET",
    "AND",
    "OR",
    "XOR",
    "IN",
    "LIKE",
    "BETWEEN",
    "IS",
    "AS",
    "WHEN",
    "THEN",
    "ELSE",
    "BY",
    "JOIN",
    "SELECT",
    "DIV",
    "MOD",
    "REGEXP",
    "RLIKE",
    "COLLATE",
    "FOR",
    "WINDOW",
    "PROCEDURE",
    "ASC",
    "DESC",
];

/// Units of INTERVAL.
const UNITS: &[&str] = &[
    "MICROSECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
    "SECOND_MICROSECOND",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "HOUR_MICROSECOND",
    "HOUR_SECOND",
    "HOUR_MINUTE",
    "DAY_MICROSECOND",
    "DAY_SECOND",
    "DAY_MINUTE",
    "DAY_HOUR",
    "YEAR_MONTH",
];

/// Whether a word makes a literal of what stands behind it: `x'00'`, `_utf8'a'`, `_utf8 0x61`,
/// `DATE '2008-12-22'`. Behind any other word a string is an alias.
fn is_typed(word: Token<'_>, next: Token<'_>) -> bool {
    let touches = next.start == word.end();
    if next.kind == Kind::Word && next.text.starts_with(b"0x") {
        return word.text.starts_with(b"_");
    }
    next.kind == Kind::String
        && (word.text.starts_with(b"_")
            || word.is_any(&["DATE", "TIME", "TIMESTAMP"])
            || touches && word.is_any(&["X", "B", "N"]))
}

/// Words between an operand and what it is tested by.
const TESTS: &[&str] = &["NOT", "IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE"];

impl<'a> Reader<'a> {
    pub(super) fn expression(&mut self) -> Option<Expression<'a>> {
        self.deeper(Self::disjunction)
    }

    /// Expressions with commas between them.
    pub(super) fn list(&mut self) -> Option<Vec<Expression<'a>>> {
        let mut all = vec![self.expression()?];
        while self.skip_sign(b',') {
            all.push(self.expression()?);
        }
        Some(all)
    }

    fn disjunction(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        let mut all = vec![self.exclusive()?];
        let mut pipes = false;
        loop {
            if self.skip_signs(b"||") {
                pipes = true;
            } else if !self.skip("OR") {
                break;
            }
            all.push(self.exclusive()?);
        }
        // Two bars are an OR, or join strings.
        let node = if pipes { Node::Other } else { Node::Or };
        self.joined(start, all, node)
    }

    fn exclusive(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        let mut all = vec![self.conjunction()?];
        while self.skip("XOR") {
            all.push(self.conjunction()?);
        }
        self.joined(start, all, Node::Other)
    }

    fn conjunction(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        let mut all = vec![self.negation()?];
        while self.skip("AND") || self.skip_signs(b"&&") {
            all.push(self.negation()?);
        }
        self.joined(start, all, Node::And)
    }

    /// The only one, or the node of all.
    fn joined(
        &self,
        start: usize,
        mut all: Vec<Expression<'a>>,
        node: impl FnOnce(Vec<Expression<'a>>) -> Node<'a>,
    ) -> Option<Expression<'a>> {
        if all.len() == 1 {
            return all.pop();
        }
        Some(Expression {
            node: node(all),
            at: self.since(start),
        })
    }

    fn negation(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        if !self.skip("NOT") {
            return self.predicate();
        }
        let inner = self.deeper(Self::negation)?;
        Some(self.not(start, inner))
    }

    fn not(&self, start: usize, inner: Expression<'a>) -> Expression<'a> {
        Expression {
            node: Node::Not(Box::new(inner)),
            at: self.since(start),
        }
    }

    fn predicate(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        let mut left = self.sum()?;
        // `1 = 1 = 1` is one inside another, and so is what reads it.
        for _ in 0..DEPTH_MAX {
            let node = if let Some(comparison) = self.comparison() {
                self.compared(comparison, left)?
            } else if self.skip("IS") {
                self.is_what(start, left)?
            } else if self.is_any(TESTS) && !self.is_search_mode() {
                let negated = self.skip("NOT");
                let node = self.tested(left)?;
                if negated {
                    let at = self.since(start);
                    Node::Not(Box::new(Expression { node, at }))
                } else {
                    node
                }
            } else if self.skip("SOUNDS LIKE") || self.skip("MEMBER OF") {
                Node::Other(vec![left, self.sum()?])
            } else {
                return Some(left);
            };
            left = Expression {
                node,
                at: self.since(start),
            };
        }
        None
    }

    fn comparison(&mut self) -> Option<Comparison> {
        const SIGNS: &[(&[u8], Comparison)] = &[
            (b"<=>", Comparison::NullSafe),
            (b"<>", Comparison::Unequal),
            (b"!=", Comparison::Unequal),
            (b"<=", Comparison::LessOrEqual),
            (b">=", Comparison::GreaterOrEqual),
            (b"=", Comparison::Equal),
            (b"<", Comparison::Less),
            (b">", Comparison::Greater),
        ];
        if self.are_signs(b"<<") || self.are_signs(b">>") {
            return None;
        }
        let found = SIGNS.iter().find(|(signs, _)| self.skip_signs(signs))?;
        Some(found.1)
    }

    fn compared(&mut self, comparison: Comparison, left: Expression<'a>) -> Option<Node<'a>> {
        if self.is_any(&["ALL", "ANY", "SOME"]) && self.ahead(1)?.is_sign(b'(') {
            self.next();
            return Some(Node::Other(vec![left, self.primary()?]));
        }
        Some(Node::Compare(comparison, Box::new([left, self.sum()?])))
    }

    /// Behind IS.
    fn is_what(&mut self, start: usize, left: Expression<'a>) -> Option<Node<'a>> {
        let negated = self.skip("NOT");
        let node = if self.skip("NULL") {
            Node::IsNull(Box::new(left))
        } else {
            self.is_any(&["TRUE", "FALSE", "UNKNOWN"]).then_some(())?;
            self.next();
            Node::Other(vec![left])
        };
        if !negated {
            return Some(node);
        }
        let at = self.since(start);
        Some(Node::Not(Box::new(Expression { node, at })))
    }

    /// `IN BOOLEAN MODE`, `IN NATURAL LANGUAGE MODE`.
    fn is_search_mode(&self) -> bool {
        self.is("IN") && !self.ahead(1).is_some_and(|next| next.is_sign(b'('))
    }

    /// IN, BETWEEN, LIKE and the like.
    fn tested(&mut self, left: Expression<'a>) -> Option<Node<'a>> {
        if self.skip("IN") {
            self.expect_sign(b'(')?;
            if self.is_query() {
                let query = self.query_in_parentheses()?;
                return Some(Node::Other(vec![left, query]));
            }
            let list = self.list()?;
            self.expect_sign(b')')?;
            return Some(Node::In(Box::new(left), list));
        }
        if self.skip("BETWEEN") {
            let low = self.sum()?;
            self.expect("AND")?;
            let high = self.sum()?;
            return Some(Node::Between(Box::new([left, low, high])));
        }
        self.is_any(&["LIKE", "REGEXP", "RLIKE"]).then_some(())?;
        self.next();
        let mut all = vec![left, self.sum()?];
        if self.skip("ESCAPE") {
            all.push(self.sum()?);
        }
        Some(Node::Other(all))
    }

    /// Reads what binds closer than a comparison: one operand, or several with operators between.
    fn sum(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        let mut all = vec![self.operand()?];
        while self.skip_operator() {
            all.push(self.operand()?);
        }
        self.joined(start, all, Node::Other)
    }

    fn skip_operator(&mut self) -> bool {
        if self.are_signs(b"||") || self.are_signs(b"&&") {
            return false;
        }
        if self.skip_signs(b"<<") || self.skip_signs(b">>") {
            return true;
        }
        if self.is_any(&["DIV", "MOD"]) {
            self.next();
            return true;
        }
        let is_operator = |token: Token<'_>| {
            token.kind == Kind::Sign
                && matches!(
                    token.text,
                    b"|" | b"&" | b"^" | b"+" | b"-" | b"*" | b"/" | b"%"
                )
        };
        if self.peek().is_some_and(is_operator) {
            self.next();
            return true;
        }
        false
    }

    /// A primary with what stands before and behind it.
    fn operand(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        let sign = self.peek()?;
        if sign.kind == Kind::Sign && matches!(sign.text, b"-" | b"+" | b"!" | b"~") {
            self.next();
            let inner = self.deeper(Self::operand)?;
            let node = match inner.node {
                Node::Literal(Literal::Number(digits, false)) if sign.is_sign(b'-') => {
                    Node::Literal(Literal::Number(digits, true))
                }
                Node::Literal(Literal::Number(..)) if sign.is_sign(b'+') => inner.node,
                _ => Node::Other(vec![inner]),
            };
            let at = self.since(start);
            return Some(Expression { node, at });
        }
        let mut inner = self.primary()?;
        for _ in 0..DEPTH_MAX {
            if self.skip("COLLATE") {
                self.alias()?;
            } else if self.skip_signs(b"->>") || self.skip_signs(b"->") {
                (self.next()?.kind == Kind::String).then_some(())?;
            } else if self.skip("AGAINST") {
                let arguments = self.arguments()?.arguments;
                let all = std::iter::once(inner).chain(arguments).collect();
                inner = self.other(start, all);
                continue;
            } else {
                return Some(inner);
            }
            inner = self.other(start, vec![inner]);
        }
        None
    }

    fn other(&self, start: usize, inner: Vec<Expression<'a>>) -> Expression<'a> {
        Expression {
            node: Node::Other(inner),
            at: self.since(start),
        }
    }

    fn primary(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        let token = self.peek()?;
        match token.kind {
            Kind::Sign => self.signed(start, token),
            Kind::String => self.string(start),
            Kind::Name => self.named(start),
            Kind::Word if token.text[0].is_ascii_digit() => self.number(start),
            Kind::Word => self.word(start, token),
        }
    }

    /// Reads what begins with a sign.
    fn signed(&mut self, start: usize, token: Token<'a>) -> Option<Expression<'a>> {
        let node = match token.text {
            b"(" => {
                self.next();
                return self.in_parentheses(start);
            }
            b"?" => {
                self.next();
                Node::Parameter(self.parameter())
            }
            b"*" => {
                self.next();
                Node::Star(Vec::new())
            }
            b"@" => {
                self.next();
                return self.variable(start);
            }
            b"." => return self.number(start),
            b"{" => return self.escaped(start),
            _ => return None,
        };
        let at = self.since(start);
        Some(Expression { node, at })
    }

    /// `{d '2008-12-22'}`, as ODBC has it.
    fn escaped(&mut self, start: usize) -> Option<Expression<'a>> {
        self.next();
        self.is_any(&["D", "T", "TS"]).then_some(())?;
        self.next();
        (self.next()?.kind == Kind::String).then_some(())?;
        self.expect_sign(b'}')?;
        Some(self.other(start, Vec::new()))
    }

    /// Behind the parenthesis that opens.
    fn in_parentheses(&mut self, start: usize) -> Option<Expression<'a>> {
        if self.is_query() {
            let query = self.query_in_parentheses()?;
            let at = self.since(start);
            return Some(Expression { at, ..query });
        }
        let mut all = self.list()?;
        self.expect_sign(b')')?;
        if all.len() > 1 {
            let at = self.since(start);
            let node = Node::Row(all);
            return Some(Expression { node, at });
        }
        let inner = all.pop()?;
        // A sum in parentheses stays whole.
        Some(Expression {
            at: self.since(start),
            ..inner
        })
    }

    /// A query and the parenthesis that closes.
    fn query_in_parentheses(&mut self) -> Option<Expression<'a>> {
        let start = self.start();
        let query = self.deeper(Self::query)?;
        self.expect_sign(b')')?;
        Some(Expression {
            node: Node::Query(Box::new(query)),
            at: self.since(start),
        })
    }

    /// Behind `@`.
    fn variable(&mut self, start: usize) -> Option<Expression<'a>> {
        self.skip_sign(b'@');
        loop {
            let name = self.next()?;
            (name.kind != Kind::Sign).then_some(())?;
            if !self.skip_sign(b'.') {
                break;
            }
        }
        let mut all = Vec::new();
        if self.skip_signs(b":=") {
            all.push(self.expression()?);
        }
        Some(Expression {
            node: Node::Variable(all),
            at: self.since(start),
        })
    }

    fn string(&mut self, start: usize) -> Option<Expression<'a>> {
        let token = self.next()?;
        let unsure = self.quotes == DoubleQuotes::Unsure && token.text[0] == b'"';
        let mut several = false;
        while self.peek().is_some_and(|next| next.kind == Kind::String) {
            several = true;
            self.next();
        }
        let text = dynamic::string(token.text, self.escapes)?;
        let node = if several || unsure {
            Node::Other(Vec::new())
        } else {
            Node::Literal(Literal::Text(text))
        };
        let at = self.since(start);
        Some(Expression { node, at })
    }

    /// Digits, a dot, digits, an exponent: whatever of it stands together.
    fn number(&mut self, start: usize) -> Option<Expression<'a>> {
        let first = self.next()?;
        let mut text = first.text.to_vec();
        while let Some(next) = self.peek().filter(|next| next.start == self.end()) {
            let may_be_more = match next.kind {
                Kind::Word => text.ends_with(b".") || text.ends_with(b"-") || text.ends_with(b"+"),
                Kind::Sign if next.is_sign(b'.') => !text.contains(&b'.'),
                Kind::Sign => {
                    let exponent = matches!(text.last(), Some(b'e' | b'E'))
                        && text[..text.len() - 1]
                            .iter()
                            .all(|b| b.is_ascii_digit() || *b == b'.');
                    exponent && (next.is_sign(b'-') || next.is_sign(b'+'))
                }
                _ => false,
            };
            if !may_be_more {
                break;
            }
            text.extend_from_slice(next.text);
            self.next();
        }
        let at = self.since(start);
        let node = match text.iter().all(u8::is_ascii_digit) {
            true => Node::Literal(Literal::Number(first.text, false)),
            false if crate::literal::is_number(&text) => self.fraction(at.clone())?,
            // Hexadecimal digits, or a name that begins with a digit.
            false => Node::Other(Vec::new()),
        };
        Some(Expression { node, at })
    }

    /// A number of several tokens: its text as it stands.
    fn fraction(&self, at: std::ops::Range<usize>) -> Option<Node<'a>> {
        let text = self.text(at)?;
        Some(Node::Literal(Literal::Number(text, false)))
    }

    fn word(&mut self, start: usize, token: Token<'a>) -> Option<Expression<'a>> {
        let next = self.ahead(1);
        if next.is_some_and(|next| is_typed(token, next)) {
            self.next();
            self.next();
            return Some(self.other(start, Vec::new()));
        }
        let calls = next.is_some_and(|next| next.is_sign(b'('));
        let literal = match token.text.to_ascii_uppercase().as_slice() {
            b"NULL" => Some(Literal::Null),
            b"TRUE" => Some(Literal::Truth(true)),
            b"FALSE" => Some(Literal::Truth(false)),
            _ => None,
        };
        if let Some(literal) = literal {
            self.next();
            let at = self.since(start);
            let node = Node::Literal(literal);
            return Some(Expression { node, at });
        }
        if token.is("CASE") {
            self.next();
            return self.case(start);
        }
        if token.is("INTERVAL") {
            self.next();
            let inner = self.expression()?;
            // INTERVAL(1, 2) is a function, and has no unit.
            if self.is_any(UNITS) {
                self.next();
            }
            return Some(self.other(start, vec![inner]));
        }
        if token.is_any(&["BINARY", "EXISTS", "ROW"]) && (calls || token.is("BINARY")) {
            self.next();
            let inner = self.deeper(Self::operand)?;
            return Some(self.other(start, vec![inner]));
        }
        if token.is_any(NEVER_A_COLUMN) && !calls {
            return None;
        }
        self.named(start)
    }

    /// Behind CASE, up to END.
    fn case(&mut self, start: usize) -> Option<Expression<'a>> {
        let mut all = Vec::new();
        while !self.skip("END") {
            self.skip_all(&["WHEN", "THEN", "ELSE"]);
            all.push(self.expression()?);
        }
        Some(self.other(start, all))
    }

    /// A column, `t.*` or a function.
    fn named(&mut self, start: usize) -> Option<Expression<'a>> {
        let mut parts = vec![self.name()?];
        while self.skip_sign(b'.') {
            if self.skip_sign(b'*') {
                let at = self.since(start);
                let node = Node::Star(parts);
                return Some(Expression { node, at });
            }
            parts.push(self.name()?);
        }
        if self.is_sign(b'(') {
            return self.call(start, parts.pop()?);
        }
        (parts.len() <= 3).then(|| Expression {
            node: Node::Column(parts),
            at: self.since(start),
        })
    }

    fn call(&mut self, start: usize, name: Name<'a>) -> Option<Expression<'a>> {
        let mut call = self.deeper(Self::arguments)?;
        call.name = name;
        self.skip_before_window()?;
        if self.skip("OVER") {
            call.over = true;
            if self.is_sign(b'(') {
                call.window = self.window()?;
            } else {
                self.name()?;
            }
        }
        Some(Expression {
            node: Node::Call(Box::new(call)),
            at: self.since(start),
        })
    }

    /// `FROM FIRST`, `RESPECT NULLS`, `WITHIN GROUP (…)`: words between a function and its window.
    fn skip_before_window(&mut self) -> Option<()> {
        const NULLS: &[&str] = &["RESPECT", "IGNORE"];
        let goes_on = self
            .ahead(2)
            .is_some_and(|token| token.is("OVER") || token.is_any(NULLS));
        if goes_on && !self.skip("FROM FIRST") {
            self.skip("FROM LAST");
        }
        let is_nulls = self.ahead(1).is_some_and(|token| token.is("NULLS"));
        if is_nulls && self.is_any(NULLS) {
            self.next();
            self.next();
        }
        match self.skip("WITHIN GROUP") {
            true => self.skip_parentheses(),
            false => Some(()),
        }
    }

    /// A window in parentheses: what it is partitioned and ordered by. Its frame is not read.
    pub(super) fn window(&mut self) -> Option<Vec<Expression<'a>>> {
        const BEGINS: &[&str] = &["PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"];
        self.expect_sign(b'(')?;
        if !self.is_sign(b')') && !self.is_any(BEGINS) {
            self.name()?;
        }
        let mut all = Vec::new();
        if self.skip("PARTITION BY") {
            all.extend(self.list()?);
        }
        if self.skip("ORDER BY") {
            all.extend(self.keys()?.into_iter().map(|key| key.expression));
        }
        self.skip_to_end()?;
        Some(all)
    }

    /// Everything between two parentheses, unread.
    pub(super) fn skip_parentheses(&mut self) -> Option<()> {
        self.expect_sign(b'(')?;
        self.skip_to_end()
    }

    /// Everything up to the parenthesis that closes, unread.
    fn skip_to_end(&mut self) -> Option<()> {
        let mut open = 1;
        while open > 0 {
            let token = self.next()?;
            // A sharded table may be read there.
            (!token.is("SELECT") && !token.is("TABLE") && !token.is_sign(b'?')).then_some(())?;
            open += usize::from(token.is_sign(b'('));
            open -= usize::from(token.is_sign(b')'));
        }
        Some(())
    }

    /// The arguments of a function, whose name is not here yet.
    fn arguments(&mut self) -> Option<Call<'a>> {
        let at = self.start()..self.start();
        self.expect_sign(b'(')?;
        let mut call = Call {
            name: Name {
                text: std::borrow::Cow::Borrowed(b""),
                at,
            },
            distinct: self.skip("DISTINCT"),
            arguments: Vec::new(),
            order: Vec::new(),
            separator: None,
            over: false,
            window: Vec::new(),
            has_words: false,
        };
        while !self.skip_sign(b')') {
            if self.is_query() {
                let query = self.query_in_parentheses()?;
                call.arguments.push(query);
                return Some(call);
            }
            if self.skip("ORDER BY") {
                call.order = self.keys()?;
            } else if self.skip("SEPARATOR") {
                let text = self.next().filter(|text| text.kind == Kind::String)?;
                call.separator = Some(text.text);
            } else if self.is("LIMIT") {
                // Of MariaDB's GROUP_CONCAT.
                self.limit()?;
                call.has_words = true;
            } else if self.skip("CHARACTER SET") {
                self.alias()?;
                call.has_words = true;
            } else if self.skip_sign(b',') {
            } else if self.is_between_arguments() {
                call.has_words = true;
                self.next();
            } else {
                call.arguments.push(self.expression()?);
            }
        }
        Some(call)
    }

    /// `CAST(a AS CHAR)`, `TRIM(LEADING 'x' FROM y)`, `AGAINST ('x' IN BOOLEAN MODE)`.
    fn is_between_arguments(&self) -> bool {
        self.is_any(&[
            "AS",
            "FROM",
            "USING",
            "FOR",
            "IN",
            "BOOLEAN",
            "NATURAL",
            "LANGUAGE",
            "MODE",
            "BOTH",
            "LEADING",
            "TRAILING",
            "WITH",
            "QUERY",
            "EXPANSION",
            "UNSIGNED",
            "SIGNED",
            "CHARACTER",
            "ARRAY",
            "RETURNING",
            "ON",
        ]) && !self.ahead(1).is_some_and(|next| next.is_sign(b'.'))
    }

    /// The keys of ORDER BY or GROUP BY.
    pub(super) fn keys(&mut self) -> Option<Vec<Order<'a>>> {
        let mut all = Vec::new();
        loop {
            let expression = self.expression()?;
            let descending = self.skip("DESC");
            if !descending {
                self.skip("ASC");
            }
            all.push(Order {
                expression,
                descending,
            });
            if !self.skip_sign(b',') {
                return Some(all);
            }
        }
    }
}
