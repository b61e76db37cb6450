//! Scripts that say buckets of sharded tables: a pure function from a key to a bucket, without anything
//! that another process, or another moment, could answer otherwise.
//!
//! docs/features/bucket-scripts.md

use crate::now::Depth;
use crate::patterns;
use mlua::{Function, HookTriggers, Lua, Table, Value, VmState};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Instructions of one call at most, in thousands.
const THOUSANDS_MAX: u32 = 100;
/// Thousands that a hundred thousand compared bytes of patterns count for.
const PATTERN_THOUSANDS: u32 = 20;
/// Bytes of a VM at most.
const MEMORY_MAX: usize = 4 << 20;
/// Bytes of a bucket at most.
const BUCKET_MAX: usize = 700;
/// Buckets of one script that a thread remembers at most.
const REMEMBERED_MAX: usize = 10_000;
/// Scripts that a thread has at most; older ones are compiled again when they are asked.
const SCRIPTS_MAX: usize = 16;

/// A script on this thread.
struct Compiled {
    of: Arc<str>,
    lua: Lua,
    main: Function,
    /// Makes what it sees.
    surroundings: Function,
    /// Thousands of instructions that are left.
    left: Rc<Cell<u32>>,
    depth: Rc<Depth>,
    known: HashMap<Box<[u8]>, Box<[u8]>>,
}

thread_local! {
    /// A cache: what is answered does not depend on it.
    static COMPILED: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

/// The bucket that the function `bucket` of a script says of a key. Without a key the script is looked
/// at, and nothing said.
///
/// # Errors
/// A sentence: it does not compile, fails, runs for too long, or says no bucket.
pub fn bucket(chunk: &str, text: &Arc<str>, key: Option<&[u8]>) -> Result<Vec<u8>, String> {
    COMPILED.with_borrow_mut(|all| {
        let at = all.iter().position(|one| Arc::ptr_eq(&one.of, text));
        let at = match at {
            Some(at) => at,
            None => {
                let compiled = Compiled::new(chunk, text).map_err(|error| words(&error))?;
                if all.len() >= SCRIPTS_MAX {
                    all.remove(0);
                }
                all.push(compiled);
                all.len() - 1
            }
        };
        let one = &mut all[at];
        let Some(key) = key else {
            let begun = one.begun().map_err(|error| words(&error));
            return begun.map(|_| Vec::new());
        };
        if let Some(known) = one.known.get(key) {
            return Ok(known.to_vec());
        }
        let said = one.ask(key).map_err(|error| words(&error))?;
        if one.known.len() >= REMEMBERED_MAX {
            one.known.clear();
        }
        one.known.insert(key.into(), said.as_slice().into());
        Ok(said)
    })
}

fn words(error: &mlua::Error) -> String {
    let words = match error {
        mlua::Error::CallbackError { cause, .. } => cause.to_string(),
        error => error.to_string(),
    };
    let first = words.lines().next().unwrap_or_default();
    first.trim_start_matches("runtime error: ").to_owned()
}

impl Compiled {
    fn new(chunk: &str, text: &Arc<str>) -> mlua::Result<Self> {
        let lua = Lua::new();
        let left = Rc::new(Cell::new(THOUSANDS_MAX));
        let spends = |left: &Cell<u32>, thousands: u32| {
            left.set(left.get().saturating_sub(thousands));
            left.get() == 0
        };
        let of = left.clone();
        let depth = Rc::new(Depth::default());
        let deep = depth.clone();
        patterns::put_in(
            &lua,
            Rc::new(move || spends(&of, PATTERN_THOUSANDS)),
            Rc::new(move || deep.is_reached()),
        )?;
        let surroundings: Function = lua
            .load(include_str!("buckets.lua"))
            .set_name("=buckets")
            .call(())?;
        let of = left.clone();
        let thousand = HookTriggers::new().every_nth_instruction(1000);
        lua.set_global_hook(thousand, move |_, _| match spends(&of, 1) {
            true => Err(mlua::Error::runtime("it runs for too long")),
            false => Ok(VmState::Continue),
        })?;
        lua.set_memory_limit(MEMORY_MAX)?;
        let main = lua.load(&**text).set_name(format!("@{chunk}"));
        let main = main
            .set_mode(mlua::chunk::ChunkMode::Text)
            .into_function()?;
        Ok(Self {
            of: text.clone(),
            lua,
            main,
            surroundings,
            left,
            depth,
            known: HashMap::new(),
        })
    }

    /// Its function, as it is when nothing has run yet.
    fn begun(&self) -> mlua::Result<Function> {
        self.left.set(THOUSANDS_MAX);
        self.depth.begins();
        let sees: Table = self.surroundings.call(())?;
        self.main.set_environment(sees.clone())?;
        self.main.call::<()>(())?;
        match sees.raw_get("bucket")? {
            Value::Function(bucket) => Ok(bucket),
            _ => Err(mlua::Error::runtime("it has no function bucket(key)")),
        }
    }

    fn ask(&self, key: &[u8]) -> mlua::Result<Vec<u8>> {
        let said: Value = self.begun()?.call(self.lua.create_string(key)?)?;
        let bucket = match said {
            Value::String(text) => text.as_bytes().to_vec(),
            Value::Integer(number) => number.to_string().into_bytes(),
            // Up to here each whole number has a float of its own.
            Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                format!("{number:.0}").into_bytes()
            }
            other => {
                let kind = other.type_name();
                return Err(mlua::Error::runtime(format!(
                    "bucket() must return a string or a whole number, not a {kind}"
                )));
            }
        };
        if bucket.is_empty() || bucket.len() > BUCKET_MAX {
            return Err(mlua::Error::runtime(format!(
                "bucket() must return from 1 to {BUCKET_MAX} bytes"
            )));
        }
        Ok(bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, key: &str) -> String {
        match bucket("[t]", &text.into(), Some(key.as_bytes())) {
            Ok(bucket) => String::from_utf8(bucket).unwrap(),
            Err(words) => format!("error: {words}"),
        }
    }

    #[test]
    fn a_key_has_the_bucket_that_its_script_says() {
        let first = "function bucket(key) return key:match('^(%a+)-') or 'none' end";
        assert_eq!(said(first, "acme-17"), "acme");
        assert_eq!(said(first, "17"), "none");
        let number = "local m = 7 function bucket(key) return tonumber(key) % m end";
        assert_eq!(said(number, "16"), "2");
        assert_eq!(said(number, "-1"), "6");
        let float = "function bucket(key) return key / 2 end";
        assert_eq!(said(float, "4"), "2");
        assert!(said(float, "3").contains("must return a string or a whole number"));
    }

    /// A second call finds nothing that a first one has left, and nothing tells where or when it is.
    #[test]
    fn nothing_is_kept_and_nothing_is_of_a_process() {
        let text: Arc<str> =
            "local n = 0 seen = (seen or 0) + 1 string.mine = (string.mine or 0) + 1 \
            function bucket(key) n = n + 1 return key .. n .. seen .. string.mine end"
                .into();
        for key in ["a", "b", "c"] {
            let bucket = bucket("[t]", &text, Some(key.as_bytes())).unwrap();
            assert_eq!(String::from_utf8(bucket).unwrap(), format!("{key}111"));
        }
        for (text, wanted) in [
            (
                "local function f() return (key:gsub('.', f)) end return f()",
                "C stack overflow",
            ),
            ("return tostring({})", "no text that is the same everywhere"),
            (
                "return string.format('%s', {})",
                "no text that is the same everywhere",
            ),
            (
                "return ('%p'):format({})",
                "no text that is the same everywhere",
            ),
            ("return os.time()", "'os'"),
            ("return io.open('/etc/passwd')", "'io'"),
            ("return math.random(3)", "'random'"),
            ("for _, v in pairs({1}) do return v end", "'pairs'"),
            ("return require('x')", "'require'"),
            ("return getmetatable('').x", "'getmetatable'"),
            ("return ('%5p'):format('x')", "an address"),
            ("return nil", "not a nil"),
            ("return ''", "from 1 to 700 bytes"),
            ("return key.x.y", "attempt to index"),
        ] {
            let text = format!("function bucket(key) {text} end");
            let said = said(&text, "k");
            assert!(
                said.starts_with("error: ") && said.contains(wanted),
                "{text}: {said}"
            );
        }
        assert!(said("x = 1", "k").contains("it has no function bucket(key)"));
        assert!(said("function", "k").starts_with("error: "));
    }

    #[test]
    fn what_takes_too_long_or_too_much_ends() {
        for (text, wanted) in [
            ("while true do end", "it runs for too long"),
            ("local s = 'x' while true do s = s .. s end", ""),
            ("local t = {} for i = 1, 1e9 do t[i] = i end", ""),
            ("return ('x'):rep(1e9)", "too much"),
            (
                "local s = ('a'):rep(60000) return s:find(('a*'):rep(30) .. 'b')",
                "",
            ),
        ] {
            let text = format!("function bucket(key) {text} end");
            let said = said(&text, "k");
            assert!(
                said.starts_with("error: ") && said.contains(wanted),
                "{text}: {said}"
            );
        }
        // And whoever comes next finds all as before.
        assert_eq!(said("function bucket(key) return key end", "k"), "k");
    }
}
