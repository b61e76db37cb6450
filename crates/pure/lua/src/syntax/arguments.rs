//! The table `arg` of Lua 5.1: a function with `...` that does not use it has its arguments there. LuaJIT
//! has no such table, so it is made by a statement that is put in.
//!
//! <https://www.lua.org/manual/5.1/manual.html#7.1>

use super::lexer::{self, Kind, Token};
use std::borrow::Cow;

/// Statement that makes the table.
const MADE: &str = " local arg = { n = select('#', ...), ... };";

/// A block that is open.
struct Open {
    /// Offset behind the parameters, where it is a function that takes any number.
    takes_any: Option<usize>,
    /// Whether it is a function.
    is_function: bool,
    uses_dots: bool,
    uses_table: bool,
}

/// A text whose functions have the table `arg` where Lua 5.1 gives it to them. Lines stay as they are,
/// and a text that is not Lua does, too.
#[must_use]
pub fn with_arguments(text: &str) -> Cow<'_, str> {
    if !(text.contains("...") && text.contains("arg")) {
        return Cow::Borrowed(text);
    }
    let Ok(tokens) = lexer::tokens(text) else {
        return Cow::Borrowed(text);
    };
    let places = places(&tokens);
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut made, mut from) = (String::with_capacity(text.len() + 64), 0);
    for place in places {
        made.push_str(text.get(from..place).unwrap_or_default());
        made.push_str(MADE);
        from = place;
    }
    made.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(made)
}

/// Offsets at which the table has to be made, in order.
fn places(tokens: &[Token]) -> Vec<usize> {
    let (mut places, mut open) = (Vec::new(), Vec::<Open>::new());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match &token.kind {
            Kind::Word("function") => {
                let (behind, takes_any) = parameters(tokens, at);
                at = behind;
                open.push(Open {
                    takes_any,
                    is_function: true,
                    uses_dots: false,
                    uses_table: false,
                });
            }
            Kind::Word("do" | "if" | "repeat") => open.push(Open {
                takes_any: None,
                is_function: false,
                uses_dots: false,
                uses_table: false,
            }),
            Kind::Word("end" | "until") => {
                let closed = open.pop();
                let place = closed
                    .filter(|one| one.uses_table && !one.uses_dots)
                    .and_then(|one| one.takes_any);
                places.extend(place);
            }
            Kind::Sign("...") => {
                if let Some(inner) = open.iter_mut().rev().find(|one| one.is_function) {
                    inner.uses_dots = true;
                }
            }
            // A function within sees the table of the one around it.
            Kind::Name(name) if &**name == "arg" => {
                open.iter_mut().for_each(|one| one.uses_table = true);
            }
            _ => {}
        }
    }
    places.sort_unstable();
    places
}

/// The token behind the parameters of a function whose word stands before `at`; and the offset behind
/// them, if `...` is the last one.
fn parameters(tokens: &[Token], mut at: usize) -> (usize, Option<usize>) {
    let mut before = None;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.kind {
            Kind::Sign(")") => {
                let takes_any = before == Some(&Kind::Sign("..."));
                return (at, takes_any.then_some(token.end));
            }
            Kind::End => break,
            _ => before = Some(&token.kind),
        }
    }
    (tokens.len(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_table_that_lua_gave_them() {
        let marked = |text| with_arguments(text).replace(MADE, "@");
        for (text, wanted) in [
            (
                "function f(a, ...) print(unpack(arg)) end",
                "function f(a, ...)@ print(unpack(arg)) end",
            ),
            // Who uses the dots has no table.
            (
                "function f(...) local arg = {...} end",
                "function f(...) local arg = {...} end",
            ),
            (
                "function f(arg) return arg end",
                "function f(arg) return arg end",
            ),
            (
                "local f = function(...)\n if x then for i = 1, arg.n do g(function() return arg[i] end) end end\nend",
                "local f = function(...)@\n if x then for i = 1, arg.n do g(function() return arg[i] end) end end\nend",
            ),
            (
                "function t:f(...) return function(...) return arg end, function() repeat local a = ... until 1 end end",
                "function t:f(...)@ return function(...)@ return arg end, function() repeat local a = ... until 1 end end",
            ),
            ("print(arg, ...) -- arg", "print(arg, ...) -- arg"),
            (
                "function f(...) print('arg') end",
                "function f(...) print('arg') end",
            ),
            ("function f(... arg", "function f(... arg"),
            ("x = 'arg ...", "x = 'arg ..."),
        ] {
            assert_eq!(marked(text), wanted);
        }
    }
}
