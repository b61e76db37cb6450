//! A lint of scripts: names that nobody defines, fields that are misspelt, and statements that nothing
//! reaches.

use crate::syntax::{Block, Expression, Function, Statement, Value, What, blocks};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A place that looks wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Line, from 1 on.
    pub line: u32,
    /// Words that say what is wrong there.
    pub words: String,
}

/// Names that are there without being defined.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Globals, those of modules among them.
    pub globals: BTreeSet<String>,
    /// Tables whose fields are known, by what makes them: `proxy` is a global, `millrace` a module, and
    /// others are what their hooks are given, or fields (`millrace.on`).
    pub fields: BTreeMap<String, BTreeSet<String>>,
}

/// Looks a script through. Findings are in the order of their lines.
#[must_use]
pub fn lint(block: &Block, known: &Known) -> Vec<Finding> {
    let mut linter = Linter {
        known,
        defined: defined(block),
        written: fields_written(block),
        scopes: Vec::new(),
        findings: Vec::new(),
    };
    linter.block(block, &[]);
    linter.findings.sort();
    linter.findings.dedup();
    linter.findings
}

/// Names that a text makes globals of: it gives them a value somewhere.
#[must_use]
pub fn defined(block: &Block) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    blocks(block, &mut |block| {
        for statement in block {
            if let What::Assign(places, _) = &statement.what {
                for place in places {
                    if let Value::Name(name) = &place.value {
                        names.insert(name.to_string());
                    }
                    // `_G.name = …`
                    if let Value::Field(of, name) = &place.value
                        && is_name(of, "_G")
                    {
                        names.insert(name.to_string());
                    }
                }
            }
        }
    });
    names
}

fn is_name(expression: &Expression, name: &str) -> bool {
    matches!(&expression.value, Value::Name(found) if **found == *name)
}

/// Fields to which a text gives values: they are there.
fn fields_written(block: &Block) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    blocks(block, &mut |block| {
        for statement in block {
            if let What::Assign(places, _) = &statement.what {
                for place in places {
                    if let Value::Field(of, name) = &place.value
                        && is_name(of, "proxy")
                    {
                        names.insert(name.to_string());
                    }
                }
            }
        }
    });
    names
}

/// A name in a scope, and the kind of table that it is, if that is known.
type Local = (Rc<str>, Option<String>);

struct Linter<'a> {
    known: &'a Known,
    defined: BTreeSet<String>,
    written: BTreeSet<String>,
    scopes: Vec<Vec<Local>>,
    findings: Vec<Finding>,
}

impl Linter<'_> {
    fn find(&mut self, line: u32, words: String) {
        self.findings.push(Finding { line, words });
    }

    fn local(&mut self, name: &Rc<str>, kind: Option<String>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((name.clone(), kind));
        }
    }

    fn block(&mut self, block: &Block, locals: &[Local]) {
        self.scopes.push(locals.to_vec());
        self.statements(block);
        self.scopes.pop();
    }

    fn statements(&mut self, block: &Block) {
        let mut ended_at = None;
        for statement in block {
            if let Some(line) = ended_at
                && statement.what != What::Label
            {
                let words = format!("nothing comes here: line {line} has left already");
                self.find(statement.line, words);
                ended_at = None;
            }
            self.statement(statement);
            ended_at = match statement.what {
                What::Label => None,
                _ => ended_at.or_else(|| leaves(statement)),
            };
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.what {
            What::Local(names, values) => {
                values.iter().for_each(|value| self.expression(value));
                for (at, name) in names.iter().enumerate() {
                    let kind = values.get(at).and_then(|value| self.kind(value));
                    self.local(name, kind);
                }
            }
            What::LocalFunction(name, function) => {
                self.local(name, None);
                self.function(function, &[]);
            }
            What::Assign(places, values) => self.assign(places, values),
            What::Call(call) => self.expression(call),
            What::Do(inner) => self.block(inner, &[]),
            What::While(condition, inner) => {
                self.expression(condition);
                self.block(inner, &[]);
            }
            What::Repeat(inner, condition) => {
                // Its condition sees its locals.
                self.scopes.push(Vec::new());
                self.statements(inner);
                self.expression(condition);
                self.scopes.pop();
            }
            What::If(cases, other) => {
                for (condition, inner) in cases {
                    self.expression(condition);
                    self.block(inner, &[]);
                }
                if let Some(inner) = other {
                    self.block(inner, &[]);
                }
            }
            What::For(names, values, inner) => {
                values.iter().for_each(|value| self.expression(value));
                let names: Vec<_> = names.iter().map(|name| (name.clone(), None)).collect();
                self.block(inner, &names);
            }
            What::Return(values) => values.iter().for_each(|value| self.expression(value)),
            What::Break | What::Goto | What::Label => {}
        }
    }

    fn assign(&mut self, places: &[Expression], values: &[Expression]) {
        for place in places {
            match &place.value {
                Value::Name(_) => {}
                _ => self.expression(place),
            }
        }
        for (at, value) in values.iter().enumerate() {
            let hook = places.get(at).and_then(|place| self.kind_at(place));
            match &value.value {
                Value::Function(function) => self.function(function, &given(hook.as_deref())),
                _ => self.expression(value),
            }
        }
    }

    fn function(&mut self, function: &Function, kinds: &[&str]) {
        let parameters = function.parameters.iter().enumerate();
        let kind = |at: usize| kinds.get(at).map(|kind| (*kind).to_owned());
        let locals: Vec<_> = parameters
            .map(|(at, name)| (name.clone(), kind(at)))
            .collect();
        self.block(&function.body, &locals);
    }

    fn expression(&mut self, expression: &Expression) {
        match &expression.value {
            Value::Name(name) => self.name(expression.line, name),
            Value::Text(_) | Value::Constant { .. } => {}
            Value::Field(of, name) => {
                self.expression(of);
                if let Some(kind) = self.kind(of) {
                    self.field(expression.line, &kind, name);
                }
            }
            Value::Index(of, at) => {
                self.expression(of);
                self.expression(at);
            }
            Value::Call(of, values) => {
                self.expression(of);
                values.iter().for_each(|value| self.expression(value));
            }
            Value::Function(function) => self.function(function, &[]),
            Value::Of(values) => values.iter().for_each(|value| self.expression(value)),
        }
    }

    fn name(&mut self, line: u32, name: &str) {
        let is_local = self
            .scopes
            .iter()
            .flatten()
            .any(|(local, _)| **local == *name);
        if is_local || self.defined.contains(name) || self.known.globals.contains(name) {
            return;
        }
        let all = self.defined.iter().chain(&self.known.globals);
        let locals: BTreeSet<_> = self
            .scopes
            .iter()
            .flatten()
            .map(|(name, _)| name.to_string())
            .collect();
        let like = nearest(name, all.chain(&locals));
        self.find(line, format!("'{name}' is nowhere defined{like}"));
    }

    fn field(&mut self, line: u32, kind: &str, name: &str) {
        let Some(fields) = self.known.fields.get(kind) else {
            return;
        };
        if fields.contains(name) || kind == "proxy" && self.written.contains(name) {
            return;
        }
        let like = nearest(name, fields.iter());
        let shown = match kind {
            "s" => "a statement",
            "r" => "a result",
            kind => kind,
        };
        self.find(line, format!("{shown} has no '{name}'{like}"));
    }

    /// The kind of table that an expression is.
    fn kind(&self, expression: &Expression) -> Option<String> {
        match &expression.value {
            Value::Name(name) => {
                let mut locals = self.scopes.iter().flatten().rev();
                match locals.find(|(local, _)| local == name) {
                    Some((_, kind)) => kind.clone(),
                    None => (**name == *"proxy").then(|| name.to_string()),
                }
            }
            Value::Call(of, values) if is_name(of, "require") => match &values.first()?.value {
                Value::Text(name) if self.known.fields.contains_key(&**name) => {
                    Some(name.to_string())
                }
                _ => None,
            },
            Value::Field(of, name) => {
                let kind = format!("{}.{name}", self.kind(of)?);
                self.known.fields.contains_key(&kind).then_some(kind)
            }
            _ => None,
        }
    }

    /// The place of a hook, such as `millrace.on.statement`.
    fn kind_at(&self, place: &Expression) -> Option<String> {
        match &place.value {
            Value::Field(of, name) => Some(format!("{}.{name}", self.kind(of)?)),
            Value::Name(name) => Some(name.to_string()),
            _ => None,
        }
    }
}

/// Kinds of what a hook is given.
fn given(hook: Option<&str>) -> Vec<&'static str> {
    match hook {
        Some("millrace.on.statement") => vec!["s"],
        Some("millrace.on.result" | "millrace.on.rows") => vec!["s", "r"],
        Some("read_query_result") => vec!["inj"],
        _ => Vec::new(),
    }
}

/// The line that nothing goes on from, if a statement has one: a `return`, `break` or `error` on
/// each of its ways.
fn leaves(statement: &Statement) -> Option<u32> {
    match &statement.what {
        What::Return(_) | What::Break | What::Goto => Some(statement.line),
        What::Call(call) => match &call.value {
            Value::Call(of, _) => is_name(of, "error").then_some(statement.line),
            _ => None,
        },
        What::Do(inner) => inner.iter().find_map(leaves),
        What::If(cases, Some(other)) => {
            let mut ways = cases.iter().map(|(_, inner)| inner).chain([other]);
            let is_left = |inner: &Block| inner.iter().any(|one| leaves(one).is_some());
            ways.all(is_left).then_some(statement.line)
        }
        What::While(condition, inner) => {
            let is_endless = matches!(condition.value, Value::Constant { is_true: true });
            (is_endless && !breaks(inner)).then_some(statement.line)
        }
        _ => None,
    }
}

/// Whether a `break` or `goto` may leave the loop around a block.
fn breaks(block: &Block) -> bool {
    block.iter().any(|statement| match &statement.what {
        What::Break | What::Goto => true,
        What::Do(inner) => breaks(inner),
        What::If(cases, other) => {
            let mut ways = cases.iter().map(|(_, inner)| inner).chain(other);
            ways.any(breaks)
        }
        // What leaves an inner loop does not leave this one.
        _ => false,
    })
}

/// Letters of a name at most for which another one is looked for.
const NAME_LEN_MAX: usize = 64;

/// Words about the name that may have been meant.
fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a String>) -> String {
    let short = |other: &&String| other.len() <= NAME_LEN_MAX && name.len() <= NAME_LEN_MAX;
    let distances = all
        .filter(short)
        .map(|other| (distance(name, other), other));
    let best = distances
        .min()
        .filter(|(distance, _)| *distance <= 1 + name.len() / 5 && *distance < name.len());
    best.map_or_else(String::new, |(_, other)| format!(": is '{other}' meant?"))
}

/// Letters to be changed, put in or left out; two that change places count once.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<_>>()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(a != b))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax;

    fn found(text: &str) -> Vec<String> {
        let set = |names: &str| names.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
        let fields = [
            ("proxy", "COM_QUERY queries response PROXY_SEND_QUERY"),
            ("millrace", "on pass rewrite shared"),
            ("millrace.on", "statement result"),
            ("millrace.shared", "get set add"),
            ("s", "text kind query"),
            ("r", "rows map"),
            ("proxy.response", "type errcode"),
            ("inj", "id resultset"),
            ("inj.resultset", "rows"),
        ];
        let known = Known {
            globals: set("_G print require proxy string error pairs type"),
            fields: fields
                .into_iter()
                .map(|(name, fields)| (name.to_owned(), set(fields)))
                .collect(),
        };
        let block = syntax::read(text).unwrap();
        let findings = lint(&block, &known);
        findings
            .iter()
            .map(|one| format!("{} {}", one.line, one.words))
            .collect()
    }

    #[test]
    fn names_that_nobody_defines_are_found() {
        let text = "local count = 0
            function helper(a, ...) later = a return cuont + ... end
            for k, v in pairs({}) do print(k, v, w) end
            repeat local done = true until done
            _G.other = 1
            print(helper, later, other, count.x.y, prnt('x'))
            local function f() return f end
            do local inner = 1 end return inner";
        assert_eq!(
            found(text),
            [
                "2 'cuont' is nowhere defined: is 'count' meant?",
                "3 'w' is nowhere defined",
                "6 'prnt' is nowhere defined: is 'print' meant?",
                "8 'inner' is nowhere defined",
            ]
        );
    }

    #[test]
    fn fields_that_are_misspelt_are_found() {
        let text = "local m = require('millrace')
            function m.on.statement(s)
              if s.txt then return m.rewirte(s.text) end
              m.shared.ad('x')
              s:qeury('x')
              local function inner(s) return s.anything end
            end
            m.on.result = function(s, r) return r:mapp(print), proxy.COM_QURY end
            function m.on.statment() end
            proxy.mine = 1 print(proxy.mine, proxy['COM_QUERY'], proxy.queries.anything)
            function read_query_result(inj) local r = inj.resultset
              proxy.response.errocde = r.row, inj.idd, inj.id, other(inj).anything end
            function other(inj) return inj.anything end";
        assert_eq!(
            found(text),
            [
                "3 a statement has no 'txt': is 'text' meant?",
                "3 millrace has no 'rewirte': is 'rewrite' meant?",
                "4 millrace.shared has no 'ad': is 'add' meant?",
                "5 a statement has no 'qeury': is 'query' meant?",
                "8 a result has no 'mapp': is 'map' meant?",
                "8 proxy has no 'COM_QURY': is 'COM_QUERY' meant?",
                "9 millrace.on has no 'statment': is 'statement' meant?",
                "12 inj has no 'idd': is 'id' meant?",
                "12 inj.resultset has no 'row': is 'rows' meant?",
                "12 proxy.response has no 'errocde': is 'errcode' meant?",
            ]
        );
    }

    #[test]
    fn statements_that_nothing_reaches_are_found() {
        let text = "local function f(x)
              do return end
              print(1)
              print(2)
            end
            local function g(x)
              if x then return 1 else error('no') end
              print(3)
            end
            while true do
              if f then break end
            end
            print(4)
            while true do while true do break end end
            print(5)
            for i = 1, 2 do goto on print(6) ::on:: print(7) end
            if f then return end
            print(8)";
        assert_eq!(
            found(text),
            [
                "3 nothing comes here: line 2 has left already",
                "8 nothing comes here: line 7 has left already",
                "15 nothing comes here: line 14 has left already",
                "16 nothing comes here: line 16 has left already",
            ]
        );
    }
}
