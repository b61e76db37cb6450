//! Lua's own texts, read as far as somebody who looks a script through needs it: names, what stands
//! where, and which lines do something. It is lenient: what LuaJIT takes is read, and what it refuses
//! may be.
//!
//! <https://www.lua.org/manual/5.1/manual.html#8>

mod arguments;
mod lexer;
mod reader;

pub use arguments::with_arguments;

use std::rc::Rc;

/// Expressions and blocks inside one another at most.
const DEPTH_MAX: usize = 200;

/// A text that is not Lua.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Line, from 1 on.
    pub line: u32,
    /// Why.
    pub words: String,
}

/// Statements one after the other.
pub type Block = Vec<Statement>;

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Line on which it begins.
    pub line: u32,
    /// The rest.
    pub what: What,
}

/// Kind of a statement, with its parts.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// `local a, b = …`
    Local(Vec<Rc<str>>, Vec<Expression>),
    /// `local function name`
    LocalFunction(Rc<str>, Function),
    /// `a, b.c = …`, also of `function a.b()`.
    Assign(Vec<Expression>, Vec<Expression>),
    /// A call.
    Call(Expression),
    /// `do … end`
    Do(Block),
    /// `while … do … end`, and whether a `break` leaves it.
    While(Expression, Block),
    /// `repeat … until …`
    Repeat(Block, Expression),
    /// Conditions with their blocks, and that of `else`.
    If(Vec<(Expression, Block)>, Option<Block>),
    /// `for a, b in …` or `for a = …`.
    For(Vec<Rc<str>>, Vec<Expression>, Block),
    /// `return …`
    Return(Vec<Expression>),
    /// `break`
    Break,
    /// `goto name`
    Goto,
    /// `::name::`
    Label,
}

/// A function, without its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Names of what it is given; `self` among them.
    pub parameters: Vec<Rc<str>>,
    /// Its body.
    pub body: Block,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Line.
    pub line: u32,
    /// The rest.
    pub value: Value,
}

/// Kind of an expression, with its parts.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A name.
    Name(Rc<str>),
    /// A string, as it is written between its quotes.
    Text(Rc<str>),
    /// `nil`, `true`, `...` or a number; `true` is told apart.
    Constant {
        /// Whether the constant is `true`.
        is_true: bool,
    },
    /// `a.b`, and `a["b"]`.
    Field(Box<Expression>, Rc<str>),
    /// `a[…]`
    Index(Box<Expression>, Box<Expression>),
    /// `a(…)`; of `a:b(…)` the first is the field.
    Call(Box<Expression>, Vec<Expression>),
    /// A function.
    Function(Function),
    /// Operands of an operator, or the values of a table.
    Of(Vec<Expression>),
}

/// Reads a whole text.
///
/// # Errors
/// If it is none of Lua.
pub fn read(text: &str) -> Result<Block, Unread> {
    let tokens = lexer::tokens(text)?;
    reader::Reader::over(tokens).whole()
}

/// Calls `each` with every block, the outer ones first.
pub fn blocks(block: &Block, each: &mut dyn FnMut(&Block)) {
    each(block);
    for statement in block {
        match &statement.what {
            What::Do(inner)
            | What::Repeat(inner, _)
            | What::While(_, inner)
            | What::For(_, _, inner) => {
                blocks(inner, each);
            }
            What::If(cases, other) => {
                cases.iter().for_each(|(_, inner)| blocks(inner, each));
                if let Some(inner) = other {
                    blocks(inner, each);
                }
            }
            What::LocalFunction(_, function) => blocks(&function.body, each),
            _ => {}
        }
        for expression in statement.expressions() {
            functions(expression, &mut |function| blocks(&function.body, each));
        }
    }
}

impl Statement {
    /// Expressions that stand in it itself.
    pub fn expressions(&self) -> Vec<&Expression> {
        match &self.what {
            What::Local(_, values) | What::Return(values) | What::For(_, values, _) => {
                values.iter().collect()
            }
            What::Assign(places, values) => places.iter().chain(values).collect(),
            What::Call(call) => vec![call],
            What::While(condition, _) | What::Repeat(_, condition) => vec![condition],
            What::If(cases, _) => cases.iter().map(|(condition, _)| condition).collect(),
            What::LocalFunction(..) | What::Do(_) | What::Break | What::Goto | What::Label => {
                Vec::new()
            }
        }
    }
}

/// Calls `each` with the functions that stand in an expression, and not in one another.
fn functions(expression: &Expression, each: &mut dyn FnMut(&Function)) {
    match &expression.value {
        Value::Function(function) => each(function),
        Value::Field(of, _) => functions(of, each),
        Value::Index(of, at) => {
            functions(of, each);
            functions(at, each);
        }
        Value::Call(of, values) => {
            functions(of, each);
            values.iter().for_each(|value| functions(value, each));
        }
        Value::Of(values) => values.iter().for_each(|value| functions(value, each)),
        Value::Name(_) | Value::Text(_) | Value::Constant { .. } => {}
    }
}

/// Lines on which a statement begins that does something, in order and each once.
#[must_use]
pub fn lines(block: &Block) -> Vec<u32> {
    let mut lines = Vec::new();
    blocks(block, &mut |block| {
        let does = |statement: &&Statement| match &statement.what {
            // LuaJIT has no instruction of its own for these.
            What::Label | What::Do(_) | What::Break | What::Goto => false,
            What::Local(_, values) => !values.is_empty(),
            What::Repeat(..) => false,
            _ => true,
        };
        lines.extend(block.iter().filter(does).map(|statement| statement.line));
    });
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Fuzz target: any text is read, or refused.
pub fn fuzz_syntax(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let made = with_arguments(&text);
    assert_eq!(made.lines().count(), text.lines().count());
    if let Ok(block) = read(&text) {
        let _lines = lines(&block);
        let _findings = crate::lint::lint(&block, &crate::lint::Known::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_lua_is_read() {
        let text = r#"#!/usr/bin/lua
            local a, b = 1, 0xFFULL -- a comment
            --[==[ another
            ]] ]==] local function f(x, ...) return x, ... end
            function a.b:c(y) self.z = y end
            for i = 1, 10, 2 do if i > 3 then break elseif not i then f 'x' else f { 1; b = 2, [3] = 4 } end end
            for k, v in pairs(t) do print(k .. v, #t, -k ^ 2, k == v and 1 or 2.5e-3) end
            while true do goto on end ::on::
            repeat local q = function() end until q()
            a["b"].c[1] = ("x"):rep(3) .. [[
long]]
            a.b.c(1)(2):d "e"; if !a && a?.b != 1 << 2 | ~3 then do return end end"#;
        let block = read(text).unwrap();
        assert_eq!(block.len(), 11);
        assert_eq!(lines(&block), [2, 4, 5, 6, 7, 8, 9, 10, 12]);
        for (bad, line) in [
            ("local x = = 1", 1),
            ("if a then\n", 2),
            ("x", 1),
            ("a = 'b\nc'", 1),
            ("--[[ no end", 1),
            ("a = }", 1),
            ("\n\nend", 3),
        ] {
            assert_eq!(read(bad).unwrap_err().line, line, "{bad}");
        }
        let deep = format!("a = {}1", "(".repeat(100_000));
        assert!(read(&deep).is_err());
        assert!(read(&format!("a = {}1", "not ".repeat(100_000))).is_err());
        assert!(read(&format!("a = 1{}", " .. 1".repeat(100_000))).is_ok());
    }
}
