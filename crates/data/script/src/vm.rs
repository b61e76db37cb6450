//! The VM of a core, and the environments of its sessions.

use crate::host::Failed;
use crate::natives::natives;
use crate::now::Now;
use crate::packed::Packing;
use crate::text::{compares_status, hooks_of_the_greeting, may_read_results, may_wait};
use lua::lint::Known;
use lua::required::Module;
use lua::syntax::with_arguments;
use mlua::debug::{Debug, DebugEvent};
use mlua::{FromLuaMulti, Function, HookTriggers, IntoLuaMulti, Lua, Table, Value, VmState};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Instructions between two looks at the clock, while scripts have little.
const STEPS: u32 = 100_000;
/// Those where they have much: an instruction may work on all of it.
const STEPS_MIN: u32 = 200;
/// Bytes that are little. With n times as many the clock is looked at n times n times as often.
const LITTLE: usize = 2 << 20;

/// How much scripts may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of all scripts of a core.
    pub memory_max: usize,
}

/// Compiles a script, without running it: what its author should know, or why it cannot run.
/// `chunk` names it in messages.
///
/// # Errors
/// Lua's words, with the line.
pub fn check(chunk: &str, text: &str) -> Result<Vec<String>, String> {
    let limits = Limits {
        memory_max: 64 << 20,
    };
    let vm = Vm::new(limits).map_err(|failed| failed.0)?;
    vm.check(chunk, text).map_err(|failed| failed.0)?;
    let never = hooks_of_the_greeting(text);
    let told = |hook| {
        format!(
            "has {hook}(), which is called only where logins are relayed (mysql-relay_logins), and for a script that serves all users"
        )
    };
    Ok(never.into_iter().map(told).collect())
}

/// Lines of scripts that were run, by the file.
#[derive(Debug, Default)]
pub(crate) struct Lines(RefCell<BTreeMap<String, BTreeSet<u32>>>);

impl Lines {
    fn ran(&self, debug: &Debug<'_>) {
        let source = debug.source();
        let path = source
            .source
            .as_deref()
            .and_then(|source| source.strip_prefix('@'));
        let line = debug
            .current_line()
            .and_then(|line| u32::try_from(line).ok());
        if let (Some(path), Some(line)) = (path, line) {
            let mut all = self.0.borrow_mut();
            match all.get_mut(path) {
                Some(lines) => drop(lines.insert(line)),
                None => drop(all.insert(path.to_owned(), [line].into())),
            }
        }
    }

    /// Whether a line of this file was run.
    pub(crate) fn has(&self, path: &str, line: u32) -> bool {
        let all = self.0.borrow();
        all.get(path).is_some_and(|lines| lines.contains(&line))
    }
}

/// A script's text, and what it requires.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    /// Its name in messages.
    pub chunk: &'a str,
    /// Lua.
    pub text: &'a Arc<str>,
    /// Files beside it that it may require.
    pub modules: &'a [Module],
    /// Whether its row allows it files in folders, which it may require.
    pub has_folders: bool,
}

/// A script on this core, for all of its sessions.
struct Compiled {
    of: Arc<str>,
    main: Function,
    /// Modules: those that are loaded, and the texts of its own.
    library: Table,
}

/// Lua, on one core.
pub struct Vm {
    lua: Lua,
    session: Table,
    packing: Packing,
    /// Those of its functions that were called.
    known: RefCell<Vec<(&'static str, Function)>>,
    now: Rc<Now>,
    watch: Rc<Watch>,
    /// Scripts that were compiled, by their texts.
    compiled: RefCell<Vec<Compiled>>,
}

impl fmt::Debug for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vm({} bytes)", self.lua.used_memory())
    }
}

impl Drop for Vm {
    /// Functions of ours are gone before the garbage is.
    fn drop(&mut self) {
        let _no_memory_is_needed = self.call::<()>("ends", ());
    }
}

impl Vm {
    /// An empty one.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new(limits: Limits) -> Result<Self, Failed> {
        Self::made(limits, None).map_err(|error| Failed::of("start", &error))
    }

    /// One that tells which lines of scripts it has run.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn watched(limits: Limits, lines: Rc<Lines>) -> Result<Self, Failed> {
        Self::made(limits, Some(lines)).map_err(|error| Failed::of("start", &error))
    }

    fn made(limits: Limits, lines: Option<Rc<Lines>>) -> Result<Self, mlua::Error> {
        let lua = Lua::new();
        let now = Rc::new(Now::default());
        // Compiled code ends at each loop and each call while a hook is set, and here one always is (decision 0035).
        lua.load("jit.off()").exec()?;
        let watch = Rc::new(Watch {
            now: now.clone(),
            lines,
            steps: Cell::new(0),
        });
        watch.clone().looks_every(&lua, STEPS)?;
        let native = natives(&lua, &now)?;
        tame(&lua)?;
        let (over, deep) = (now.clone(), now.clone());
        crate::patterns::put_in(
            &lua,
            Rc::new(move || over.is_over()),
            Rc::new(move || deep.depth.is_reached()),
        )?;
        let of = watch.clone();
        let collected = move |lua: &Lua, ()| of.clone().collected(lua);
        native.set("collected", lua.create_function(collected)?)?;
        let session: Table = lua
            .load(include_str!("proxy.lua"))
            .set_name("=proxy")
            .call(native)?;
        lua.set_memory_limit(limits.memory_max)?;
        Ok(Self {
            lua,
            packing: Packing::of(&session.get("packed")?)?,
            known: RefCell::default(),
            session,
            now,
            watch,
            compiled: RefCell::default(),
        })
    }

    /// Bytes that all scripts use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.lua.used_memory()
    }

    /// Compiles a script, without running it. `chunk` names it in messages.
    ///
    /// # Errors
    /// Lua's words, with the line.
    pub fn check(&self, chunk: &str, text: &str) -> Result<(), Failed> {
        let text = with_arguments(text);
        let loaded = self.lua.load(&*text);
        let loaded = loaded.set_name(format!("@{chunk}"));
        let loaded = loaded.into_function();
        loaded.map(drop).map_err(|error| Failed::of("load", &error))
    }

    /// Returns what there is without being defined: globals, and tables whose fields are known.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn known(&self) -> Result<Known, Failed> {
        type Names = (BTreeSet<String>, BTreeSet<String>);
        let names: (Vec<String>, Vec<String>) = self.call("names", ())?;
        let (globals, proxy): Names =
            (names.0.into_iter().collect(), names.1.into_iter().collect());
        let tables: BTreeMap<String, Vec<String>> = self.call("known", ())?;
        let tables = tables.into_iter();
        let mut fields: BTreeMap<_, BTreeSet<_>> = tables
            .map(|(name, fields)| (name, fields.into_iter().collect()))
            .collect();
        fields.insert("proxy".into(), proxy);
        Ok(Known { globals, fields })
    }

    /// Drops what was compiled: other scripts are in force.
    pub fn forget_compiled(&self) {
        self.compiled.borrow_mut().clear();
    }

    pub(crate) fn compile(&self, code: Code<'_>) -> Result<(Function, Table), Failed> {
        let mut compiled = self.compiled.borrow_mut();
        let known = compiled.iter().find(|one| Arc::ptr_eq(&one.of, code.text));
        if let Some(known) = known {
            return Ok((known.main.clone(), known.library.clone()));
        }
        let failed = |error| Failed::of("load", &error);
        let text = with_arguments(code.text);
        let loaded = self.lua.load(&*text);
        let loaded = loaded.set_name(format!("@{}", code.chunk));
        let main = loaded.into_function().map_err(failed)?;
        let library = self.library(code).map_err(failed)?;
        compiled.push(Compiled {
            of: code.text.clone(),
            main: main.clone(),
            library: library.clone(),
        });
        Ok((main, library))
    }

    fn library(&self, code: Code<'_>) -> Result<Table, mlua::Error> {
        let modules = code.modules;
        let texts = modules.iter().map(|module| &module.text);
        let mut texts = texts.chain([code.text]);
        let reads_nothing = !texts.clone().any(|text| may_read_results(text));
        let old_status = texts.clone().any(|text| compares_status(text));
        let waits = texts.any(|text| may_wait(text));
        let files = self.lua.create_table()?;
        for module in modules {
            let file = self.lua.create_table()?;
            file.set("chunk", &*module.chunk)?;
            file.set("text", &*module.text)?;
            files.set(&*module.name, file)?;
        }
        let library = self.lua.create_table()?;
        library.set("loaded", self.lua.create_table()?)?;
        library.set("files", files)?;
        library.set("waits", waits || code.has_folders)?;
        library.set("folders", code.has_folders)?;
        library.set("reads_nothing", reads_nothing)?;
        library.set("old_status", old_status)?;
        Ok(library)
    }

    pub(crate) fn call<R: FromLuaMulti>(
        &self,
        name: &'static str,
        args: impl IntoLuaMulti,
    ) -> Result<R, Failed> {
        let failed = |error| Failed::of(name, &error);
        self.function(name)
            .map_err(failed)?
            .call(args)
            .map_err(failed)
    }

    /// Functions that pack the rows that its scripts make up.
    pub(crate) const fn packing(&self) -> &Packing {
        &self.packing
    }

    /// Facts that hooks may ask.
    pub(crate) fn now(&self) -> &Now {
        &self.now
    }

    /// A turn of a hook is over.
    pub(crate) fn calms_down(&self) {
        self.watch.calms_down(&self.lua);
    }

    pub(crate) const fn lua(&self) -> &Lua {
        &self.lua
    }

    /// One of the functions of `proxy.lua`.
    pub(crate) fn function(&self, name: &'static str) -> Result<Function, mlua::Error> {
        let mut known = self.known.borrow_mut();
        if let Some((_, function)) = known.iter().find(|(of, _)| *of == name) {
            return Ok(function.clone());
        }
        let function: Function = self.session.get(name)?;
        known.push((name, function.clone()));
        Ok(function)
    }
}

/// Ends hooks that run for too long.
struct Watch {
    now: Rc<Now>,
    /// Lines that were run, if somebody wants to know.
    lines: Option<Rc<Lines>>,
    /// Instructions between two looks at the clock.
    steps: Cell<u32>,
}

impl Watch {
    /// Has the clock looked at once in so many instructions.
    fn looks_every(self: Rc<Self>, lua: &Lua, steps: u32) -> Result<(), mlua::Error> {
        self.steps.set(steps);
        let triggers = HookTriggers::new().every_nth_instruction(steps);
        let triggers = match self.lines {
            Some(_) => triggers.every_line(),
            None => triggers,
        };
        lua.set_global_hook(triggers, move |lua, debug| {
            if let (Some(lines), DebugEvent::Line) = (&self.lines, debug.event()) {
                lines.ran(debug);
                return Ok(VmState::Continue);
            }
            self.clone().looks(lua)
        })
    }

    fn looks(self: Rc<Self>, lua: &Lua) -> Result<VmState, mlua::Error> {
        let steps = self.steps.get();
        if self.now.looks_up(steps) {
            return Err(mlua::Error::runtime("the hook has run for too long"));
        }
        let wanted = steps_with(lua.used_memory());
        if wanted != steps {
            self.looks_every(lua, wanted)?;
        }
        Ok(VmState::Continue)
    }

    /// The garbage collector has gone round. Nothing can be ended where that is told, but the next
    /// instruction can be.
    fn collected(self: Rc<Self>, lua: &Lua) -> Result<(), mlua::Error> {
        match self.now.is_over() {
            true => self.looks_every(lua, 1),
            false => Ok(()),
        }
    }

    /// A turn of a hook is over.
    fn calms_down(self: &Rc<Self>, lua: &Lua) {
        if self.steps.get() == 1 {
            let _still_slow = self.clone().looks_every(lua, steps_with(lua.used_memory()));
        }
    }
}

/// Instructions between two looks at the clock, with so many bytes in use. There are few such numbers, so
/// that they seldom change.
fn steps_with(bytes: usize) -> u32 {
    let times = (bytes / LITTLE).max(1).next_power_of_two();
    let times = u32::try_from(times).unwrap_or(u32::MAX);
    (STEPS / times.saturating_mul(times)).max(STEPS_MIN)
}

/// Takes away what would block the core, end the process, or reach its files. `modules/reach.lua`
/// has what there is instead.
fn tame(lua: &Lua) -> Result<(), mlua::Error> {
    let globals = lua.globals();
    for library in ["io", "package", "dofile", "loadfile"] {
        globals.set(library, Value::Nil)?;
    }
    let os: Table = globals.get("os")?;
    for function in [
        "execute",
        "exit",
        "remove",
        "rename",
        "tmpname",
        "setlocale",
        "getenv",
    ] {
        os.set(function, Value::Nil)?;
    }
    Ok(())
}
