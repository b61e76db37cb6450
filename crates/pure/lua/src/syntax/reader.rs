//! Statements and expressions from tokens.

use super::lexer::{Kind, Token};
use super::{Block, DEPTH_MAX, Expression, Function, Statement, Unread, Value, What};
use std::rc::Rc;

pub(super) struct Reader {
    tokens: Vec<Token>, // the last one is the end
    at: usize,
    depth: usize,
}

const OPERATORS: &[&str] = &[
    "<<", ">>", "~>>", "&&", "||", "!=", "??", "&", "|", "~", "+", "-", "*", "/", "%", "^", "..",
    "==", "~=", "<=", ">=", "<", ">",
];

impl Reader {
    pub(super) fn over(tokens: Vec<Token>) -> Self {
        Self {
            tokens,
            at: 0,
            depth: 0,
        }
    }

    pub(super) fn whole(mut self) -> Result<Block, Unread> {
        let block = self.block()?;
        match self.kind() {
            Kind::End => Ok(block),
            _ => Err(self.unexpected()),
        }
    }

    fn kind(&self) -> &Kind {
        self.tokens
            .get(self.at)
            .map_or(&Kind::End, |token| &token.kind)
    }

    fn line(&self) -> u32 {
        let token = self.tokens.get(self.at).or_else(|| self.tokens.last());
        token.map_or(1, |token| token.line)
    }

    fn unexpected(&self) -> Unread {
        let found = match self.kind() {
            Kind::Name(name) => format!("'{name}'"),
            Kind::Word(word) => format!("'{word}'"),
            Kind::Sign(sign) => format!("'{sign}'"),
            Kind::Text(_) => "a text".into(),
            Kind::Number => "a number".into(),
            Kind::End => "the end".into(),
        };
        Unread {
            line: self.line(),
            words: format!("unexpected {found}"),
        }
    }

    fn is(&self, expected: &str) -> bool {
        matches!(self.kind(), Kind::Word(found) | Kind::Sign(found) if *found == expected)
    }

    fn take(&mut self, expected: &str) -> bool {
        let is = self.is(expected);
        self.at += usize::from(is);
        is
    }

    fn want(&mut self, expected: &str) -> Result<(), Unread> {
        match self.take(expected) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn name(&mut self) -> Result<Rc<str>, Unread> {
        match self.kind() {
            Kind::Name(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Goes in by one, as long as there is room.
    fn within<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        if self.depth == DEPTH_MAX {
            return Err(Unread {
                line: self.line(),
                words: "too much stands inside of one another".into(),
            });
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    fn block(&mut self) -> Result<Block, Unread> {
        self.within(|reader| {
            let mut block = Vec::new();
            loop {
                while reader.take(";") {}
                let ends = ["end", "else", "elseif", "until"];
                if *reader.kind() == Kind::End || ends.iter().any(|word| reader.is(word)) {
                    return Ok(block);
                }
                block.push(reader.statement()?);
            }
        })
    }

    fn block_to_end(&mut self) -> Result<Block, Unread> {
        let block = self.block()?;
        self.want("end")?;
        Ok(block)
    }

    fn statement(&mut self) -> Result<Statement, Unread> {
        let line = self.line();
        let what = match self.kind().clone() {
            Kind::Word(word) => {
                self.at += 1;
                self.of_word(word)?
            }
            Kind::Sign("::") => {
                self.at += 1;
                self.name()?;
                self.want("::")?;
                What::Label
            }
            Kind::Name(name) if &*name == "goto" && self.is_name_behind() => {
                self.at += 2;
                What::Goto
            }
            _ => self.plain()?,
        };
        Ok(Statement { line, what })
    }

    fn is_name_behind(&self) -> bool {
        let behind = self.tokens.get(self.at + 1);
        behind.is_some_and(|token| matches!(token.kind, Kind::Name(_)))
    }

    fn of_word(&mut self, word: &str) -> Result<What, Unread> {
        Ok(match word {
            "local" if self.take("function") => {
                let name = self.name()?;
                What::LocalFunction(name, self.function(false)?)
            }
            "local" => {
                let names = self.names()?;
                let values = match self.take("=") {
                    true => self.expressions()?,
                    false => Vec::new(),
                };
                What::Local(names, values)
            }
            "function" => self.named_function()?,
            "do" => What::Do(self.block_to_end()?),
            "while" => {
                let condition = self.expression()?;
                self.want("do")?;
                What::While(condition, self.block_to_end()?)
            }
            "repeat" => {
                let block = self.block()?;
                self.want("until")?;
                What::Repeat(block, self.expression()?)
            }
            "if" => self.cases()?,
            "for" => {
                let names = self.names()?;
                if !self.take("=") {
                    self.want("in")?;
                }
                let values = self.expressions()?;
                self.want("do")?;
                What::For(names, values, self.block_to_end()?)
            }
            "return" => {
                let ends = ["end", "else", "elseif", "until", ";"];
                let is_bare = *self.kind() == Kind::End || ends.iter().any(|end| self.is(end));
                let values = match is_bare {
                    true => Vec::new(),
                    false => self.expressions()?,
                };
                self.take(";");
                What::Return(values)
            }
            "break" => What::Break,
            _ => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        })
    }

    fn cases(&mut self) -> Result<What, Unread> {
        let (mut cases, mut other) = (Vec::new(), None);
        loop {
            let condition = self.expression()?;
            self.want("then")?;
            cases.push((condition, self.block()?));
            if self.take("elseif") {
                continue;
            }
            if self.take("else") {
                other = Some(self.block()?);
            }
            self.want("end")?;
            return Ok(What::If(cases, other));
        }
    }

    fn names(&mut self) -> Result<Vec<Rc<str>>, Unread> {
        let mut names = vec![self.name()?];
        while self.take(",") {
            names.push(self.name()?);
        }
        Ok(names)
    }

    fn named_function(&mut self) -> Result<What, Unread> {
        let line = self.line();
        let mut place = Expression {
            line,
            value: Value::Name(self.name()?),
        };
        let mut is_method = false;
        while !is_method && (self.is(".") || self.is(":")) {
            is_method = self.is(":");
            self.at += 1;
            let value = Value::Field(Box::new(place), self.name()?);
            place = Expression { line, value };
        }
        let value = Value::Function(self.function(is_method)?);
        Ok(What::Assign(vec![place], vec![Expression { line, value }]))
    }

    fn function(&mut self, is_method: bool) -> Result<Function, Unread> {
        let mut parameters: Vec<Rc<str>> = Vec::new();
        if is_method {
            parameters.push("self".into());
        }
        self.want("(")?;
        while !self.take(")") {
            if !self.take("...") {
                parameters.push(self.name()?);
            }
            if !self.is(")") {
                self.want(",")?;
            }
        }
        let body = self.block_to_end()?;
        Ok(Function { parameters, body })
    }

    /// An assignment or a call.
    fn plain(&mut self) -> Result<What, Unread> {
        let first = self.suffixed()?;
        if !self.is("=") && !self.is(",") {
            return match first.value {
                Value::Call(..) => Ok(What::Call(first)),
                _ => Err(self.unexpected()),
            };
        }
        let mut places = vec![first];
        while self.take(",") {
            places.push(self.suffixed()?);
        }
        self.want("=")?;
        Ok(What::Assign(places, self.expressions()?))
    }

    fn expressions(&mut self) -> Result<Vec<Expression>, Unread> {
        let mut values = vec![self.expression()?];
        while self.take(",") {
            values.push(self.expression()?);
        }
        Ok(values)
    }

    /// Operands between operators. Which one binds more does not matter here.
    fn expression(&mut self) -> Result<Expression, Unread> {
        self.within(|reader| {
            let line = reader.line();
            let mut operands = vec![reader.operand()?];
            while OPERATORS.iter().any(|sign| reader.is(sign))
                || reader.is("and")
                || reader.is("or")
            {
                reader.at += 1;
                operands.push(reader.operand()?);
            }
            Ok(match operands.len() {
                1 => operands.remove(0),
                _ => Expression {
                    line,
                    value: Value::Of(operands),
                },
            })
        })
    }

    fn operand(&mut self) -> Result<Expression, Unread> {
        let line = self.line();
        if ["not", "-", "#", "!", "~"].iter().any(|sign| self.is(sign)) {
            self.at += 1;
            let operand = self.within(Self::operand)?;
            let value = Value::Of(vec![operand]);
            return Ok(Expression { line, value });
        }
        let value = match self.kind().clone() {
            Kind::Number | Kind::Word("nil" | "true" | "false") | Kind::Sign("...") => {
                let is_true = self.is("true");
                self.at += 1;
                Value::Constant { is_true }
            }
            Kind::Text(text) => {
                self.at += 1;
                Value::Text(text)
            }
            Kind::Word("function") => {
                self.at += 1;
                Value::Function(self.function(false)?)
            }
            Kind::Sign("{") => self.table()?,
            _ => return self.suffixed(),
        };
        Ok(Expression { line, value })
    }

    /// A name or an expression in parentheses, and what is done with it.
    fn suffixed(&mut self) -> Result<Expression, Unread> {
        let depth = self.depth;
        let read = self.suffixed_within();
        self.depth = depth;
        read
    }

    fn suffixed_within(&mut self) -> Result<Expression, Unread> {
        let line = self.line();
        let mut of = match self.kind() {
            Kind::Sign("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.want(")")?;
                let value = Value::Of(vec![inner]);
                Expression { line, value }
            }
            _ => Expression {
                line,
                value: Value::Name(self.name()?),
            },
        };
        loop {
            let line = self.line();
            let value = match self.kind().clone() {
                Kind::Sign("." | "?.") => {
                    self.at += 1;
                    Value::Field(Box::new(of), self.name()?)
                }
                Kind::Sign(":") => {
                    self.at += 1;
                    let value = Value::Field(Box::new(of), self.name()?);
                    let method = Expression { line, value };
                    Value::Call(Box::new(method), self.given()?)
                }
                Kind::Sign("[") => {
                    self.at += 1;
                    let at = self.expression()?;
                    self.want("]")?;
                    match at.value {
                        Value::Text(name) => Value::Field(Box::new(of), name),
                        value => Value::Index(Box::new(of), Box::new(Expression { line, value })),
                    }
                }
                Kind::Sign("(" | "{") | Kind::Text(_) => Value::Call(Box::new(of), self.given()?),
                _ => return Ok(of),
            };
            of = Expression { line, value };
            // What is done with it stands around it.
            self.within(|_| Ok(()))?;
            self.depth += 1;
        }
    }

    /// Reads what a call is given.
    fn given(&mut self) -> Result<Vec<Expression>, Unread> {
        let line = self.line();
        match self.kind().clone() {
            Kind::Text(text) => {
                self.at += 1;
                let value = Value::Text(text);
                Ok(vec![Expression { line, value }])
            }
            Kind::Sign("{") => {
                let value = self.table()?;
                Ok(vec![Expression { line, value }])
            }
            _ => {
                self.want("(")?;
                if self.take(")") {
                    return Ok(Vec::new());
                }
                let values = self.expressions()?;
                self.want(")")?;
                Ok(values)
            }
        }
    }

    fn table(&mut self) -> Result<Value, Unread> {
        self.within(|reader| {
            reader.want("{")?;
            let mut values = Vec::new();
            while !reader.take("}") {
                if reader.take("[") {
                    values.push(reader.expression()?);
                    reader.want("]")?;
                    reader.want("=")?;
                } else if reader.is_named_field() {
                    reader.at += 2;
                }
                values.push(reader.expression()?);
                if !reader.is("}") && !reader.take(",") {
                    reader.want(";")?;
                }
            }
            Ok(Value::Of(values))
        })
    }

    fn is_named_field(&self) -> bool {
        let behind = self.tokens.get(self.at + 1);
        matches!(self.kind(), Kind::Name(_))
            && behind.is_some_and(|token| token.kind == Kind::Sign("="))
    }
}
