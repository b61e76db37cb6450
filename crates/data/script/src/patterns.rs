//! `string.find`, `match`, `gmatch` and `gsub` with a bound: a VM cannot be interrupted in its own, and some
//! patterns take longer than a core lives.
//!
//! <https://www.lua.org/manual/5.1/manual.html#5.4>

use lua::pattern::{self, Broken, Budget, Capture, Found};
use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};
use std::cell::Cell;
use std::rc::Rc;

/// Bytes that one call may compare.
const STEPS_MAX: u64 = 20_000_000;
/// So many compared bytes later the clock is looked at.
const STEPS_UNSEEN: u64 = 100_000;
/// Bytes that `gsub` may make.
const MADE_MAX: usize = 64 << 20;
/// Bytes of a pattern that mean something else than themselves.
const SPECIALS: &[u8] = b"^$*+?.([%-";

/// Question that is asked before a script goes on.
pub(crate) type IsOver = Rc<dyn Fn() -> bool>;

/// Counts what the patterns of all scripts cost.
struct Watch {
    is_over: IsOver,
    steps: Cell<u64>,
    is_deep: IsOver,
}

impl Watch {
    /// Each call of the script takes of the stack of the core's thread.
    fn calls_back(&self) -> mlua::Result<()> {
        match (self.is_deep)() {
            true => Err(mlua::Error::runtime("C stack overflow")),
            false => Ok(()),
        }
    }

    fn run<T>(&self, look: impl FnOnce(&mut Budget) -> Result<T, Broken>) -> mlua::Result<T> {
        let mut budget = Budget(STEPS_MAX);
        let found = look(&mut budget);
        let steps = self.steps.get() + STEPS_MAX.saturating_sub(budget.0);
        self.steps.set(steps);
        if steps > STEPS_UNSEEN {
            self.steps.set(0);
            if (self.is_over)() {
                return Err(mlua::Error::runtime("the hook has run for too long"));
            }
        }
        found.map_err(|broken| mlua::Error::runtime(broken.to_string()))
    }
}

/// Puts them in the place of Lua's.
pub(crate) fn put_in(lua: &Lua, is_over: IsOver, is_deep: IsOver) -> mlua::Result<()> {
    let watch = Rc::new(Watch {
        is_over,
        steps: Cell::new(0),
        is_deep,
    });
    let string: Table = lua.globals().get("string")?;
    let of = watch.clone();
    let find = move |lua: &Lua, (subject, pattern, from, plain): Asked<Value>| {
        let (subject, pattern) = (
            text(lua, 1, "find", subject)?,
            text(lua, 2, "find", pattern)?,
        );
        let is_plain = !matches!(plain, None | Some(Value::Nil | Value::Boolean(false)));
        find(lua, &of, (&subject, &pattern), from, is_plain)
    };
    string.set("find", lua.create_function(find)?)?;
    let of = watch.clone();
    let matches = move |lua: &Lua, (subject, pattern, from, _): Asked<Value>| {
        let subject = text(lua, 1, "match", subject)?;
        let pattern = text(lua, 2, "match", pattern)?;
        let (bytes, pattern) = (subject.as_bytes(), pattern.as_bytes());
        let at = offset(from, bytes.len());
        match of.run(|budget| pattern::find(&bytes, &pattern, at, budget))? {
            Some(found) => captures(lua, &bytes, &found),
            None => Ok(MultiValue::from_iter([Value::Nil])),
        }
    };
    string.set("match", lua.create_function(matches)?)?;
    let of = watch.clone();
    let gmatch = move |lua: &Lua, (subject, pattern): (Value, Value)| {
        let subject = text(lua, 1, "gmatch", subject)?;
        each(lua, of.clone(), subject, text(lua, 2, "gmatch", pattern)?)
    };
    let gmatch = lua.create_function(gmatch)?;
    string.set("gfind", gmatch.clone())?;
    string.set("gmatch", gmatch)?;
    let gsub =
        move |lua: &Lua, (subject, pattern, with, most): (Value, Value, Value, Option<f64>)| {
            let (subject, pattern) = (
                text(lua, 1, "gsub", subject)?,
                text(lua, 2, "gsub", pattern)?,
            );
            let with = With::of(lua, with)?;
            gsub(lua, &watch, (&subject, &pattern), &with, most)
        };
    string.set("gsub", lua.create_function(gsub)?)
}

/// Subject, pattern, where to begin, and one more.
type Asked<T> = (Value, Value, Option<f64>, Option<T>);

/// A string, or a number as one.
fn text(lua: &Lua, at: usize, function: &str, value: Value) -> mlua::Result<LuaString> {
    let kind = value.type_name();
    let given = lua.coerce_string(value)?;
    given.ok_or_else(|| {
        mlua::Error::runtime(format!(
            "bad argument #{at} to '{function}' (string expected, got {kind})"
        ))
    })
}

/// Offset from 0 of a place that is counted from 1, or backwards from -1.
fn offset(from: Option<f64>, len: usize) -> usize {
    let from = from.unwrap_or(1.0);
    let at = match from < 0.0 {
        true => len as f64 + from,
        false => from - 1.0,
    };
    (at.max(0.0) as usize).min(len)
}

fn find(
    lua: &Lua,
    watch: &Watch,
    (subject, pattern): (&LuaString, &LuaString),
    from: Option<f64>,
    is_plain: bool,
) -> mlua::Result<MultiValue> {
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let at = offset(from, subject.len());
    let range = |range: &std::ops::Range<usize>| {
        [
            Value::Number((range.start + 1) as f64),
            Value::Number(range.end as f64),
        ]
    };
    if is_plain || !pattern.iter().any(|byte| SPECIALS.contains(byte)) {
        let found = memchr::memmem::find(&subject[at..], &pattern);
        let found = found.map(|start| at + start..at + start + pattern.len());
        return Ok(match found {
            Some(found) => MultiValue::from_iter(range(&found)),
            None => MultiValue::from_iter([Value::Nil]),
        });
    }
    let found = watch.run(|budget| pattern::find(&subject, &pattern, at, budget))?;
    let Some(found) = found else {
        return Ok(MultiValue::from_iter([Value::Nil]));
    };
    let mut all = range(&found.range).to_vec();
    for one in &found.captures {
        all.push(capture(lua, &subject, one)?);
    }
    Ok(MultiValue::from_vec(all))
}

fn capture(lua: &Lua, subject: &[u8], one: &Capture) -> mlua::Result<Value> {
    Ok(match one {
        Capture::Text(range) => Value::String(lua.create_string(&subject[range.clone()])?),
        Capture::Position(at) => Value::Number((at + 1) as f64),
    })
}

/// Captures, or all that matched where there are none.
fn captures(lua: &Lua, subject: &[u8], found: &Found) -> mlua::Result<MultiValue> {
    if found.captures.is_empty() {
        let whole = Capture::Text(found.range.clone());
        return Ok(MultiValue::from_iter([capture(lua, subject, &whole)?]));
    }
    let all = found.captures.iter().map(|one| capture(lua, subject, one));
    all.collect()
}

/// The function that `gmatch` returns.
fn each(
    lua: &Lua,
    watch: Rc<Watch>,
    subject: LuaString,
    pattern: LuaString,
) -> mlua::Result<Function> {
    let next = Cell::new(0);
    lua.create_function(move |lua, _: MultiValue| {
        let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
        let found = watch.run(|budget| pattern::next(&subject, &pattern, next.get(), budget))?;
        let Some(found) = found else {
            next.set(subject.len() + 1);
            return Ok(MultiValue::from_iter([Value::Nil]));
        };
        let is_empty = found.range.is_empty();
        next.set(found.range.end + usize::from(is_empty));
        captures(lua, &subject, &found)
    })
}

/// Replacement of a match.
enum With {
    Text(LuaString),
    Table(Table),
    Function(Function),
}

impl With {
    fn of(lua: &Lua, value: Value) -> mlua::Result<Self> {
        Ok(match value {
            Value::Table(table) => Self::Table(table),
            Value::Function(function) => Self::Function(function),
            value @ (Value::String(_) | Value::Number(_) | Value::Integer(_)) => {
                Self::Text(text(lua, 3, "gsub", value)?)
            }
            other => {
                let kind = other.type_name();
                return Err(mlua::Error::runtime(format!(
                    "bad argument #3 to 'gsub' (string/function/table expected, got {kind})"
                )));
            }
        })
    }

    /// Appends it.
    fn write(
        &self,
        (lua, watch): (&Lua, &Watch),
        out: &mut Vec<u8>,
        subject: &[u8],
        found: &Found,
    ) -> mlua::Result<()> {
        let value = match self {
            Self::Text(text) => return template(out, &text.as_bytes(), subject, found),
            Self::Table(table) => {
                let first = captures(lua, subject, found)?;
                watch.calls_back()?;
                table.get(first.into_iter().next().unwrap_or(Value::Nil))?
            }
            Self::Function(function) => {
                let given = captures(lua, subject, found)?;
                watch.calls_back()?;
                function.call(given)?
            }
        };
        match value {
            Value::Nil | Value::Boolean(false) => {
                out.extend_from_slice(&subject[found.range.clone()]);
            }
            value @ (Value::String(_) | Value::Number(_) | Value::Integer(_)) => {
                out.extend_from_slice(&text(lua, 3, "gsub", value)?.as_bytes());
            }
            other => {
                let kind = other.type_name();
                let words = format!("invalid replacement value (a {kind})");
                return Err(mlua::Error::runtime(words));
            }
        }
        Ok(())
    }
}

/// Appends a text in which `%1` is the first capture and `%0` all that matched.
fn template(out: &mut Vec<u8>, with: &[u8], subject: &[u8], found: &Found) -> mlua::Result<()> {
    let mut bytes = with.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        // Lua reads the zero behind its string's end.
        let named = bytes.next().unwrap_or(0);
        let number = match named {
            b'0' => None,
            b'1'..=b'9' => Some(usize::from(named - b'1')),
            other => {
                out.push(other);
                continue;
            }
        };
        let one = number.and_then(|number| found.captures.get(number));
        match (number, one) {
            (None, _) | (Some(0), None) if number.is_none() || found.captures.is_empty() => {
                out.extend_from_slice(&subject[found.range.clone()]);
            }
            (_, Some(Capture::Text(range))) => out.extend_from_slice(&subject[range.clone()]),
            (_, Some(Capture::Position(at))) => {
                out.extend_from_slice((at + 1).to_string().as_bytes());
            }
            (_, None) => return Err(mlua::Error::runtime("invalid capture index")),
        }
    }
    Ok(())
}

fn gsub(
    lua: &Lua,
    watch: &Watch,
    (subject, pattern): (&LuaString, &LuaString),
    with: &With,
    most: Option<f64>,
) -> mlua::Result<(LuaString, f64)> {
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let (is_bound, pattern) = match &*pattern {
        [b'^', rest @ ..] => (true, rest),
        all => (false, all),
    };
    let most = most.unwrap_or(f64::INFINITY);
    let (mut out, mut at, mut n) = (Vec::new(), 0, 0.0);
    while n < most {
        let found = watch.run(|budget| pattern::at(&subject, pattern, at, budget))?;
        let end = match &found {
            Some(found) => {
                n += 1.0;
                with.write((lua, watch), &mut out, &subject, found)?;
                found.range.end
            }
            None => at,
        };
        if end > at {
            at = end;
        } else if let Some(byte) = subject.get(at) {
            out.push(*byte);
            at += 1;
        } else {
            break;
        }
        if out.len() > MADE_MAX {
            return Err(mlua::Error::runtime("resulting string too large"));
        }
        if is_bound {
            break;
        }
    }
    out.extend_from_slice(subject.get(at..).unwrap_or_default());
    Ok((lua.create_string(&out)?, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a pattern does, as one text.
    const ASK: &str = r#"
        local function told(...)
            local out = {}
            for i = 1, select('#', ...) do out[i] = type((select(i, ...))) .. ':' .. tostring((select(i, ...))) end
            return table.concat(out, ',')
        end
        local function try(f, ...)
            local all = { pcall(f, ...) }
            if not all[1] then return 'failed' end
            return told(unpack(all, 2, 40))
        end
        local s, p, r = ...
        local out = {}
        for _, init in ipairs({ 1, 2, 4, -2, 0, 100, -100 }) do
            out[#out + 1] = try(string.find, s, p, init)
            out[#out + 1] = try(string.match, s, p, init)
        end
        out[#out + 1] = try(string.find, s, p, 1, true)
        out[#out + 1] = try(function()
            local all = {}
            for a, b in string.gmatch(s, p) do
                all[#all + 1] = told(a, b)
                if #all > 50 then break end
            end
            return table.concat(all, ';')
        end)
        out[#out + 1] = try(string.gsub, s, p, r)
        out[#out + 1] = try(string.gsub, s, p, r, 2)
        out[#out + 1] = try(string.gsub, s, p, 7)
        out[#out + 1] = try(string.gsub, s, p, function(a, b) return b and a or nil end)
        out[#out + 1] = try(string.gsub, s, p, { a = 'A', b = 2, x = false })
        out[#out + 1] = try(string.gsub, s, p, function() return {} end)
        return table.concat(out, '\n')
    "#;

    #[test]
    fn scripts_find_what_luajit_finds() {
        let (own, theirs) = (Lua::new(), Lua::new());
        put_in(&own, Rc::new(|| false), Rc::new(|| false)).unwrap();
        let ask =
            |lua: &Lua, args: (&str, &str, &str)| -> String { lua.load(ASK).call(args).unwrap() };
        let subjects = [
            "",
            "a",
            "abc",
            "hello world",
            "  x = (1, (2), 3) ",
            "SELECT a.b FROM t",
            "aaa\nbb",
        ];
        let patterns = [
            "",
            "a",
            ".",
            "a*",
            "a-",
            "(a)(b)",
            "()",
            "^a",
            "^",
            "$",
            "%w+",
            "(%w+)%s*=?%s*(%S+)",
            "%b()",
            "%f[%w]%w+",
            "[^%s]+",
            "[a-c]+",
            "(a*(.)%w(%s*))",
            "%d",
            "l+",
            "(.)%1",
            "[",
            "%",
            "a$",
            "x?",
            "[]]",
            "[%a_][%w_]*",
            "^%s*(.-)%s*$",
        ];
        for subject in subjects {
            for pattern in patterns {
                for with in ["", "<%0>", "%1-%2", "%%", "%x", "[%1]"] {
                    let args = (subject, pattern, with);
                    assert_eq!(ask(&own, args), ask(&theirs, args), "{args:?}");
                }
            }
        }
        let number: String = own
            .load("return (1234):rep(1) .. tostring((12.5 .. ''):find('%.')) .. string.gsub(127, '2', 'x')")
            .call(())
            .unwrap_or_else(|_| own.load("return tostring(string.find(127, 2)) .. string.gsub(127, '2', 'x')").call(()).unwrap());
        assert!(number.ends_with("1x7"), "{number}");
    }

    #[test]
    fn a_pattern_that_would_never_end_is_an_error() {
        let lua = Lua::new();
        put_in(&lua, Rc::new(|| false), Rc::new(|| false)).unwrap();
        let never = "return string.find(string.rep('a', 5000), string.rep('a-', 40) .. 'b')";
        let said = lua.load(never).call::<Value>(()).unwrap_err().to_string();
        assert!(said.contains("pattern takes too long"), "{said}");
        // Many small ones are seen by the clock.
        let lua = Lua::new();
        put_in(&lua, Rc::new(|| true), Rc::new(|| false)).unwrap();
        let many = "for i = 1, 1e9 do string.find(string.rep('a', 500), 'a-a-a-b') end";
        let said = lua.load(many).call::<Value>(()).unwrap_err().to_string();
        assert!(said.contains("run for too long"), "{said}");
    }
}
