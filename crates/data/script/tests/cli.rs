//! `millrace script check` and `millrace script test`, with files that are made up.

use script::cli::{self, World};

/// Returns what a command says, and what is wrong.
fn run(
    files: &[(&str, &str)],
    what: impl Fn(&[String], &mut World<'_>) -> Result<(), Vec<String>>,
) -> (Vec<String>, Vec<String>) {
    let read = |path: &str| {
        let found = files.iter().find(|(of, _)| *of == path);
        let missing = || "cannot be read: there is no such file".to_owned();
        found
            .map(|(_, text)| (*text).to_owned())
            .ok_or_else(missing)
    };
    let mut said = Vec::new();
    let mut say = |line: &str| said.push(line.to_owned());
    let mut world = World {
        read: &read,
        say: &mut say,
    };
    let path = files.first().map_or("none.lua", |(path, _)| path);
    let wrong = what(&[path.to_owned()], &mut world)
        .err()
        .unwrap_or_default();
    (said, wrong)
}

fn check(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    run(files, cli::check)
}

#[test]
fn a_script_is_looked_through_with_what_it_requires() {
    let good = "local m = require('millrace')\nlocal tools = require('tools')\n-- globals: site\nfunction m.on.statement(s)\n  helper(site)\n  for row in s:query('x') do print(row.a) end\n  return m.rewrite(s.text .. tools.x)\nend\nfunction m.on.result(s, r) return r:map(function(row) return row end) end";
    let tools = ("tools.lua", "function helper() end return { x = 'y' }");
    assert_eq!(
        check(&[("a.lua", good), tools]),
        (vec!["a.lua: well".into()], vec![])
    );
    let of_tests = "function test_a(t) equal(t:query('x').rows, nil) end";
    assert_eq!(
        check(&[("a_test.lua", of_tests)]),
        (vec!["a_test.lua: well".into()], vec![])
    );
    let old = "function read_query(packet)\n  if packet:byte() ~= proxy.COM_QUERY then return end\n  proxy.queries:append(1, packet, { resultset_is_needed = true })\n  return proxy.PROXY_SEND_QUERY\nend\nfunction read_handshake() end";
    let never = "a.lua: read_handshake() is called only where logins are relayed, and for a script that serves all users";
    assert_eq!(
        check(&[("a.lua", old)]),
        (vec![never.into(), "a.lua: well".into()], vec![])
    );
}

#[test]
fn what_is_wrong_is_told_with_file_and_line() {
    let bad = "local m = require('millrace')\nrequire('tools')\nfunction m.on.statement(s)\n  if s.knd == 'select' then return m.rout { hostgroup = 1 } end\n  error('no')\n  print(prxy.COM_QUERY, proxy.COM_QEURY)\nend\nfunction m.on.reslt() end";
    let tools = ("tools.lua", "return nothing");
    let (said, wrong) = check(&[("a.lua", bad), tools]);
    assert_eq!(said, Vec::<String>::new());
    assert_eq!(
        wrong,
        [
            "a.lua:4: a statement has no 'knd': is 'kind' meant?",
            "a.lua:4: millrace has no 'rout': is 'route' meant?",
            "a.lua:6: 'prxy' is nowhere defined: is 'proxy' meant?",
            "a.lua:6: nothing comes here: line 5 has left already",
            "a.lua:6: proxy has no 'COM_QEURY': is 'COM_QUERY' meant?",
            "a.lua:8: millrace.on has no 'reslt': is 'result' meant?",
            "tools.lua:1: 'nothing' is nowhere defined",
        ]
    );
    let (_, wrong) = check(&[("a.lua", "local x = = 1")]);
    assert_eq!(wrong, ["a.lua:1: unexpected symbol near '='"]);
    let (_, wrong) = check(&[]);
    assert!(
        wrong
            .first()
            .is_some_and(|words| words.contains("there is no such file")),
        "{wrong:?}"
    );
}

const SCRIPT: &str = "local m = require('millrace')
function m.on.statement(s)
  if s.kind == 'delete' then
    return m.error(1175, 'HY000', 'not here')
  end
  if s.text:find('report') then return m.route { hostgroup = 20, cache_ttl = 5000 } end
  if s.text:find('owner') then
    local r, words = s:query('SELECT owner FROM tenants WHERE id = ?', s.parameters and s.parameters[1] or 7)
    if not r then return m.error(1105, 'HY000', words) end
    return m.rewrite(s.prepared and s.text or s.text .. ' /* ' .. r[1].owner .. ' */')
  end
  if m.shared.add(s.user, 1, 1000) > m.setting('limit', 100) then
    m.log('warning', s.user)
    return m.error(1226, '42000', 'too many')
  end
end
function m.on.result(s, r)
  return r:map(function(row) row.card = 'xxxx' return row end, { 'card', optional = true })
end
m.every(500, function()
  local r = m.query('SELECT MAX(id) AS top FROM users')
  m.shared.set('top', r and r[1] and r[1].top)
end)
function never()
  print('never', m.shared.get('top'))
end";

const TESTS: &str = "function test_a_delete_is_refused(t)
  local r = t:query('DELETE FROM t')
  equal(r.error, { code = 1175, state = 'HY000', message = 'not here' })
  equal(t.sent, {})
end
function test_reports_go_elsewhere(t)
  t:query('SELECT 1 -- report')
  equal(t.routes[1], { hostgroup = 20, cache_ttl = 5000 })
end
function test_cards_are_hidden(t)
  t:answers('FROM users', { columns = { { name = 'id', type = 'integer' }, 'card' }, rows = { { 1, '1234' }, { 2, nil } } })
  equal(t:query('SELECT * FROM users').rows[1].card, 'xxxx')
  local r = t:execute('SELECT * FROM users WHERE id < ?', 3)
  equal(r.columns, { 'id', 'card' })
  equal(r.rows, { { 1, 'xxxx', id = 1, card = 'xxxx' }, { 2, 'xxxx', id = 2, card = 'xxxx' } })
end
function test_the_owner_is_asked_for(t)
  t:answers('FROM tenants', function(sql) return { columns = { 'owner' }, rows = { { sql:match('id = (%d+)') } } } end)
  t:query('SELECT owner')
  equal(t.sent, { 'SELECT owner /* 7 */' })
  t:answers('FROM tenants', { error = { 1146, '42S02', 'no table' } })
  equal(t:query('SELECT owner').error.message, 'no table')
  equal(t.asked[1], 'SELECT owner FROM tenants WHERE id = 7')
end
function test_who_asks_too_often_waits(t)
  t:setting('limit', 1)
  t:is { user = 'ann' }
  equal(t:query('SELECT 1').error, nil)
  equal(t:query('SELECT 1').error.code, 1226)
  t:wait(1000)
  equal(t:query('SELECT 1').error, nil)
  equal(t.log, { '[warning] ann' })
end
function test_a_timer_looks_at_times(t)
  t:answers('MAX(id)', { columns = { { name = 'top', type = 'integer' } }, rows = { { 7 } } })
  t:wait(499)
  equal(#t.asked, 0)
  t:wait(1001)
  equal(#t.asked, 3)
end
function test_that_fails(t)
  print('on the way')
  equal(t:query('INSERT').affected_rows, 5)
end
function test_of_a_script_that_fails(t)
  t:is { user = '' }
  t:answers('FROM users', { columns = { 'a' }, rows = { { 'b' } } })
  t:setting('limit', 'many')
  t:query('SELECT 1')
end";

#[test]
fn tests_of_a_script_run_without_a_server() {
    let files = [("a.lua", SCRIPT), ("a_test.lua", TESTS)];
    let (said, wrong) = run(&files, |paths, world| cli::test(paths, true, world));
    assert_eq!(
        wrong,
        [
            "a.lua: test_that_fails: a_test.lua:43: wanted 5, got 0",
            "a.lua: test_of_a_script_that_fails: a_test.lua:49: (on.statement) a.lua:12: attempt to compare string with number",
        ]
    );
    assert_eq!(
        said,
        [
            "a.lua: test_a_delete_is_refused: well",
            "a.lua: test_reports_go_elsewhere: well",
            "a.lua: test_cards_are_hidden: well",
            "a.lua: test_the_owner_is_asked_for: well",
            "a.lua: test_who_asks_too_often_waits: well",
            "a.lua: test_a_timer_looks_at_times: well",
            "    on the way",
            "a.lua: 6 passed, 2 failed",
            "a.lua: lines never run: 25",
        ]
    );
    let (said, wrong) = run(&files[..1], |paths, world| cli::test(paths, false, world));
    assert!(
        said.is_empty() && wrong[0].starts_with("a_test.lua: cannot be read"),
        "{wrong:?}"
    );
    let none = [("a.lua", SCRIPT), ("a_test.lua", "function tests() end")];
    let (_, wrong) = run(&none, |paths, world| cli::test(paths, false, world));
    assert_eq!(
        wrong,
        ["a_test.lua: has no function whose name begins with test_"]
    );
}

/// MySQL Proxy's scripts have tests, too, and a hook that does not end is ended.
#[test]
fn scripts_of_mysql_proxy_have_tests() {
    let script = "function read_query(packet)
          if packet == '\\3LOOP' then while true do end end
          proxy.queries:append(1, packet:gsub('SLECT', 'SELECT'), { resultset_is_needed = true })
          proxy.queries:append(2, '\\3SECOND')
          return proxy.PROXY_SEND_QUERY
        end
        function read_query_result(inj)
          if inj.id == 2 then return proxy.PROXY_IGNORE_RESULT end
        end";
    let tests = "function test_a_typo(t)
          t:answers('SELECT 1', { columns = { '1' }, rows = { { 1 } } })
          equal(t:query('SLECT 1').rows[1][1], '1')
          equal(t.sent, { 'SELECT 1', 'SECOND' })
          local ok, words = pcall(t.query, t, 'LOOP')
          equal(words:match('too long'), 'too long')
        end";
    let script = script.replace(
        "packet:gsub('SLECT', 'SELECT')",
        "(packet:gsub('SLECT', 'SELECT'))",
    );
    let files = [("p.lua", &*script), ("p_test.lua", tests)];
    let (said, wrong) = run(&files, |paths, world| cli::test(paths, false, world));
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(
        said,
        ["p.lua: test_a_typo: well", "p.lua: 1 passed, 0 failed"]
    );
}
