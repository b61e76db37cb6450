//! Scripts that misbehave in every way: each ends in time, says what it did, and leaves the next
//! session of its VM as it was.
#![expect(
    clippy::disallowed_methods,
    reason = "a script that blocks its core does so in real time"
)]

mod session;

use script::{Decision, Failed};
use session::{FORWARD, Session, begin, begin_before, query, vm};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Far more than any of them may take, and far less than one that nothing ends.
const HANGS: Duration = Duration::from_secs(120);

/// Outcome of `read_query` with this body, by a clock that goes; and that the next session of the
/// script is none the worse for it.
fn outcome(body: &str) -> Result<Decision, Failed> {
    let (vm, began) = (vm(), Instant::now());
    let text = format!(
        "function read_query(packet) if packet:sub(2) == 'well' then return end {body} end"
    );
    let text = text.as_str().into();
    let host = || Rc::new(Session::of(Instant::now()));
    let world = begin_before(&vm, &text, &[], host()).expect("a script that loads");
    let done = world.script.read_query(&query("x"));
    assert!(began.elapsed() < HANGS, "{body}: {:?}", began.elapsed());
    drop(world);
    let next = begin_before(&vm, &text, &[], host()).expect("a script that loads");
    assert_eq!(
        next.script.read_query(&query("well")),
        Ok(FORWARD),
        "{body}"
    );
    done
}

/// Each fails with one of these words.
fn all_fail(bodies: &[&str], words: &[&str]) {
    for body in bodies {
        let done = outcome(body);
        match done {
            Ok(Decision::Unsayable(Failed(said))) | Err(Failed(said)) => {
                let is_said = words.iter().any(|word| said.contains(word));
                assert!(is_said, "{body}: {said}");
            }
            Ok(done) => panic!("{body}: {done:?}"),
        }
    }
}

const LATE: &str = "the hook has run for too long";
const MEMORY: &str = "not enough memory";

#[test]
fn loops_end_wherever_they_are() {
    all_fail(
        &[
            "while true do end",
            "repeat until false",
            "local function f() return f() end f()",
            "for i = 1, math.huge do end",
            "local t = setmetatable({}, { __index = function(t, k) while true do end end }) return t.x",
            "local t = setmetatable({}, { __lt = function() while true do end end }) return t < t",
            "local t = setmetatable({}, { __tostring = function() while true do end end }) print(t)",
            "local t = setmetatable({}, { __concat = function() while true do end end }) return t .. t",
            "table.sort({ 3, 2, 1 }, function() while true do end end)",
            "('x'):gsub('x', function() while true do end end)",
            "for _ in ('x'):gmatch('x') do while true do end end",
            "local co = coroutine.create(function() while true do coroutine.yield() end end) while true do coroutine.resume(co) end",
            "while true do pcall(error, 'x') end",
            "xpcall(function() error('x') end, function() while true do end end)",
            "pcall(function() while true do end end) while true do end",
            "loadstring('while true do end')()",
            "proxy.response = setmetatable({}, { __index = function() while true do end end }) return proxy.PROXY_SEND_RESULT",
            "while true do proxy.queries:append(1, packet) proxy.queries:reset() end",
            "while true do print('x') end",
            "local t = {} while true do table.sort(t) end",
            "return (setmetatable({}, { __call = function() while true do end end }))()",
        ],
        &[LATE],
    );
}

#[test]
fn few_instructions_that_work_on_much_end_too() {
    all_fail(
        &[
            "local s = ('x'):rep(2e7) while true do local t = s .. 'y' end",
            "local s = ('x'):rep(2e7) while true do local t = s:sub(2) end",
            "local s = ('x'):rep(2e7) while true do local t = s:upper() end",
            "local s = ('x'):rep(2e7) while true do local t = s:reverse() end",
            "local s = ('x'):rep(2e7) while true do local t = ('%s'):format(s) end",
            "while true do local t = ('x'):rep(3e7) end",
            "local t = {} for i = 1, 1e6 do t[i] = i end while true do table.insert(t, 1, 0) table.remove(t, 1) end",
            "local t = {} for i = 1, 1e6 do t[i] = 'x' end while true do local s = table.concat(t) end",
            "local t = {} for i = 1, 1e6 do t[i] = -i end while true do table.sort(t) end",
            "local t = {} for i = 1, 1e6 do t[i] = (i * 7919) % 1000003 end while true do table.sort(t, function(a, b) return a > b end) end",
            "local t = {} for i = 1, 1e6 do t['k' .. i % 1e5] = i end while true do collectgarbage() end",
            "local t = {} for i = 1, 1e6 do t[i] = i end while true do local k = next(t) t[k] = nil t[1e7] = 1 end",
            "while true do loadstring(('x = 1 '):rep(5e5)) end",
            "while true do proxy.tokenize(('a '):rep(1e6)) end",
            "local s = ('a'):rep(1e6) while true do s:find('b') end",
            "local s = ('a'):rep(1e5) while true do s:find('.-.-.-b') end",
            "local s = ('a'):rep(1e6) while true do s:gsub('a', 'b') end",
            "while true do require('json').encode({ ('x'):rep(1e6) }) end",
            "while true do require('glib2').md5(('x'):rep(1e7)) end",
        ],
        &[LATE, MEMORY, "pattern takes too long"],
    );
}

/// On a stack as that of a core: a test's own is smaller.
#[test]
fn nothing_is_too_deep() {
    let core = std::thread::Builder::new().stack_size(8 << 20);
    let ran = core.spawn(too_deep).expect("a thread").join();
    ran.expect("no panic");
}

fn too_deep() {
    all_fail(
        &[
            "local function f() return 1 + f() end f()",
            "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. 'x'] end return t.x",
            "local function f() coroutine.wrap(f)() end f()",
            "local function f() assert(coroutine.resume(coroutine.create(f))) end f()",
            "local function f() return (('x'):gsub('x', f)) end f()",
            "local function f() for _ in ('x'):gmatch('x') do f() end end f()",
            "local function f() table.sort({ 2, 1 }, f) end f()",
            "local t t = setmetatable({}, { __tostring = function() return ('%s'):format(t) end }) return tostring(t)",
            "local t t = setmetatable({}, { __tostring = function() return tostring(t) .. 'x' end }) return tostring(t)",
            "local t t = setmetatable({}, { __lt = function() table.sort({ t, t, t }) return true end }) table.sort({ t, t, t })",
            "local function f() local ok, words = pcall(f) error(words, 0) end f()",
            "local function f() xpcall(f, f) error('x') end f()",
            "local t = {} t[1] = t require('json').encode(t)",
            "require('json').decode(('['):rep(1e5))",
            "assert(loadstring(('('):rep(1e5)))",
            "local p = newproxy(true) getmetatable(p).__index = function(p, k) return p[k] .. 'x' end return p.x",
        ],
        &[
            "overflow",
            LATE,
            "deep",
            MEMORY,
            "in one another",
            "too many",
            "nested",
        ],
    );
}

#[test]
fn memory_has_an_end() {
    all_fail(
        &[
            "local t = {} while true do t[#t + 1] = {} end",
            "local s = 'x' while true do s = s .. s end",
            "return ('x'):rep(1e9)",
            "proxy.global.x = {} for i = 1, 1e9 do proxy.global.x[i] = { i } end",
            "local t = {} for i = 1, 1e6 do t[i] = ('x'):rep(100) .. i end return table.concat(t)",
            "local t = {} for i = 1, 1e9 do t[i] = function() return i end end",
            "local t = {} while true do t[#t + 1] = coroutine.create(print) end",
            "local t = {} while true do t[#t + 1] = newproxy(true) end",
            "while true do proxy.queries:append(1, ('x'):rep(1000) .. #proxy.queries) end",
        ],
        &[
            MEMORY,
            LATE,
            "result too long",
            "string length overflow",
            "queries were queued",
            "resulting string too large",
        ],
    );
}

/// One text can stand in an answer a million times, and be copied as often.
#[test]
fn an_answer_has_an_end() {
    let send = "return proxy.PROXY_SEND_RESULT";
    let of_rows = "local row, rows = { ('x'):rep(1e5) }, {} for i = 1, 1e4 do rows[i] = row end";
    let fields = "fields = { { name = 'x' } }";
    for made in [
        format!(
            "{of_rows} proxy.response = {{ type = 0, resultset = {{ {fields}, rows = rows }} }} {send}"
        ),
        format!(
            "{of_rows} proxy.response = {{ type = 0, resultsets = {{ {{ {fields}, rows = rows }} }} }} {send}"
        ),
        format!(
            "local s, p = ('x'):rep(1e6), {{}} for i = 1, 1e4 do p[i] = s end proxy.response = {{ type = proxy.MYSQLD_PACKET_RAW, packets = p }} {send}"
        ),
        format!(
            "proxy.response = {{ type = proxy.MYSQLD_PACKET_ERR, errmsg = ('x'):rep(1e7) }} {send}"
        ),
        format!(
            "local f = {{}} for i = 1, 4000 do f[i] = {{ name = ('x'):rep(1e5) }} end proxy.response = {{ type = 0, resultset = {{ fields = f, rows = {{}} }} }} {send}"
        ),
    ] {
        let Ok(Decision::Unsayable(Failed(said))) = outcome(&made) else {
            panic!("{made} can be said")
        };
        let words = "proxy.response has more than 1 MiB, which is result_mb_max of the script";
        assert_eq!(said, format!("(read_query) {words}"), "{made}");
    }
}

/// Code that the garbage collector calls cannot be ended.
#[test]
fn nothing_runs_in_the_garbage_collector() {
    let text = "local p = newproxy(true)
        getmetatable(p).__gc = function() while true do end end
        getmetatable(p).__len = function() return 7 end
        getmetatable(p).__index = { a = 1 }
        getmetatable(p).__call = function(_, n) return n + 1 end
        print(#p, p.a, p(1), p == newproxy(p), pcall(function() return p + 1 end))
        print(pcall(function() return newproxy(true) < 1 end))
        p = nil
        collectgarbage()
        collectgarbage()";
    let world = begin(&vm(), &format!("function read_query() {text} end")).unwrap();
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    let lines = world.host.lines.borrow();
    assert_eq!(
        lines[0],
        "7\t1\t2\tfalse\tfalse\tt.lua:6: attempt to perform arithmetic on a userdata value"
    );
    assert!(lines[1].contains("attempt to compare"), "{}", lines[1]);
}

#[test]
fn errors_of_every_kind_are_one_short_line() {
    for body in [
        "error(('x'):rep(1e6))",
        "error('a\\nb\\nc')",
        "error({})",
        "error(nil)",
        "error(setmetatable({}, { __tostring = function() error('again') end }))",
        "error(function() end)",
        "local ok = xpcall(error, function() error('in the handler') end) error(ok)",
        "error(('\\255'):rep(3000))",
    ] {
        let Failed(said) = outcome(body).unwrap_err();
        assert!(said.len() < 2100, "{body}: {} bytes", said.len());
        assert!(!said.contains('\n'), "{body}: {said}");
        assert!(said.starts_with("(read_query)"), "{body}: {said}");
    }
}

/// Lists that are sorted by a function are sorted as Lua sorts them, and stay as they are where that
/// raises.
#[test]
fn sorting_is_as_in_lua() {
    let text = "function read_query()
        for _, n in ipairs({ 0, 1, 2, 7, 8, 9, 16, 17, 100, 1000, 10001 }) do
          local t, seen = {}, {}
          for i = 1, n do t[i] = (i * 7919) % 10007 end
          table.sort(t, function(a, b) return a > b end)
          local well = #t == n
          for i = 1, n do
            well = well and (i == 1 or t[i - 1] >= t[i])
            seen[t[i]] = (seen[t[i]] or 0) + 1
          end
          for i = 1, n do seen[(i * 7919) % 10007] = seen[(i * 7919) % 10007] - 1 end
          for _, left in pairs(seen) do well = well and left == 0 end
          table.sort(t)
          for i = 2, n do well = well and t[i - 1] <= t[i] end
          if not well then print('wrong', n) end
        end
        local t = { 3, 1, 2 }
        print(pcall(table.sort, t, function() error('x', 0) end), table.concat(t))
        print(pcall(table.sort, { 1, 'a' }))
        print(pcall(table.sort, 7))
        print(pcall(table.sort, {}, 7))
        table.sort(t, function() return true end)
        print(#t)
      end";
    let world = begin(&vm(), text).unwrap();
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    let lines = world.host.lines.borrow();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!(lines[0], "false\t312");
    assert!(lines[1].contains("attempt to compare"), "{}", lines[1]);
    assert!(
        lines[2].contains("bad argument #1 to 'sort'"),
        "{}",
        lines[2]
    );
    assert!(
        lines[3].contains("bad argument #2 to 'sort'"),
        "{}",
        lines[3]
    );
    assert_eq!(lines[4], "3");
}
