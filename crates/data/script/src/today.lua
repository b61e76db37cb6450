-- `require("millrace")`: the script API of today, over the hooks of a session.
local native, Session, lists, enter, session_of, wait, packed, counts_of = ...
local setmetatable, getmetatable, rawset, rawget, type, tostring, error, ipairs, pairs, select =
    setmetatable, getmetatable, rawset, rawget, type, tostring, error, ipairs, pairs, select

local VERSION = 1
local QUERY, PREPARE, EXECUTE, LONG_DATA, CLOSE, RESET, RESET_CONNECTION, BULK =
    0x03, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1f, 0xfa
-- Flags of an execution that ask for a cursor.
local CURSORS = 8

-- Raises, and names the script's line; of a hook that has returned what a call made, its first line.
local function blame(words, ...)
  local path, line = native.caller()
  local hook = session_of() and session_of().hook
  local at = path and path .. ":" .. line or hook and native.where(hook) or "millrace"
  error(at .. ": " .. words:format(...), 0)
end

-- Checks what a script says.
local function want(ok, words, ...)
  if not ok then blame(words, ...) end
end

local function is_whole(value, least, most)
  return type(value) == "number" and value >= least and value <= most and value % 1 == 0
end

-- A table that cannot be written, and has nothing but these fields.
local function fixed(name, fields)
  return setmetatable({}, {
    __index = function(_, key)
      local value = fields[key]
      if value == nil then blame("%s has no \'%s\'", name, tostring(key)) end
      return value
    end,
    __newindex = function(_, key) blame("%s.%s is not writable", name, tostring(key)) end,
    __metatable = false,
  })
end

local M = { version = VERSION }

-- Answers of hooks.

local Answer = { __metatable = false }

local function answer(kind, fields)
  fields.kind = kind
  return setmetatable(fields, Answer)
end

local function is_answer(value) return type(value) == "table" and rawget(value, "kind") ~= nil end

local PASS = answer("pass", {})

function M.pass() return PASS end

local ROUTE = { hostgroup = 4294967295, cache_ttl = 4294967295 }

local function route(options, of)
  want(type(options) == "table", "%s wants a table such as { hostgroup = 20, cache_ttl = 5000 }", of)
  for name, value in pairs(options) do
    local most = ROUTE[name]
    want(most, "%s has no '%s': there are hostgroup and cache_ttl", of, tostring(name))
    want(is_whole(value, 0, most), "%s: %s must be a whole number from 0 to %d", of, name, most)
  end
  return { hostgroup = options.hostgroup, cache_ttl = options.cache_ttl }
end

function M.route(options) return answer("route", { route = route(options, "m.route") }) end

function M.rewrite(text, options)
  -- Of `m.rewrite(s.text:gsub("a", "b"))` the second is a count.
  if type(options) == "number" then options = nil end
  want(type(text) == "string", "m.rewrite wants a text, it got a %s", type(text))
  want(text ~= "", "m.rewrite wants a text, it got an empty one")
  return answer("rewrite", { text = text, route = options and route(options, "m.rewrite") })
end

function M.error(code, state, words)
  want(is_whole(code, 1, 65535), "m.error wants the number of an error first, such as 1105")
  want(type(state) == "string" and state:find("^[0-9A-Z][0-9A-Z][0-9A-Z][0-9A-Z][0-9A-Z]$"),
    "m.error wants a SQLSTATE second, such as \"HY000\"")
  want(type(words) == "string", "m.error wants words third, it got a %s", type(words))
  return answer("error", { response = { type = 255, errcode = code, sqlstate = state, errmsg = words } })
end

-- Types of columns that a script makes up.
local TYPES = {
  string = 253, integer = 8, double = 5, decimal = 246, date = 10, time = 11, datetime = 12, timestamp = 7,
  blob = 252, json = 245,
}

-- A value as a row has it.
local function cell(value, where)
  local kind = type(value)
  if kind == "boolean" then return value and 1 or 0 end
  if kind == "table" and rawget(value, "digits") then return value.digits end
  want(kind == "nil" or kind == "string" or kind == "number",
    "%s must be a text, a number, true, false or nil; it is a %s", where, kind)
  return value
end

local function fields_of(columns)
  local fields = {}
  for at, column in ipairs(columns) do
    local of = type(column) == "table" and column or { name = column }
    want(type(of.name) == "string", "m.result: column %d wants a name", at)
    local kind = of.type or "string"
    want(TYPES[kind], "m.result: column %d has the type '%s', which there is not", at, tostring(kind))
    fields[at] = { name = of.name, type = TYPES[kind] }
  end
  want(#fields > 0, "m.result wants columns, such as { \"id\", \"name\" }")
  return fields
end

-- A result, or an OK with affected_rows and insert_id.
function M.result(result)
  want(type(result) == "table", "m.result wants a table such as { columns = { \"id\" }, rows = { { 1 } } }")
  if result.columns == nil then
    want(result.rows == nil, "m.result has rows without columns")
    for _, name in ipairs({ "affected_rows", "insert_id" }) do
      local value = result[name]
      want(value == nil or is_whole(value, 0, 2 ^ 53), "m.result: %s must be a whole number", name)
    end
    local ok = { type = 0, affected_rows = result.affected_rows, insert_id = result.insert_id }
    return answer("result", { response = ok })
  end
  want(type(result.columns) == "table", "m.result: columns must be a table")
  local fields, rows = fields_of(result.columns), {}
  want(type(result.rows or rows) == "table", "m.result: rows must be a table")
  for at, row in ipairs(result.rows or {}) do
    want(type(row) == "table", "m.result: row %d must be a table", at)
    local values = {}
    for column = 1, #fields do
      local value = row[column]
      if value == nil and type(fields[column].name) == "string" then value = row[fields[column].name] end
      values[column] = cell(value, "m.result: a value of row " .. at)
    end
    rows[at] = values
  end
  return answer("result", { response = { type = 0, resultset = { fields = fields, rows = rows } } })
end

-- Rows: values by their place and by their column's name.

local function typed(text, kind)
  if text == nil or kind == "t" then return text end
  local number = tonumber(text)
  -- More digits than `tostring` shows stay a text.
  if kind == "f" or number and number > -1e14 and number < 1e14 then return number end
  return text
end

local function row_of(names, of)
  local places, more = {}, {}
  for at, name in pairs(names) do
    if places[name] then
      more[name] = more[name] or {}
      more[name][#more[name] + 1] = at
    else
      places[name] = at
    end
  end
  local function place(key)
    local at = places[key]
    if not at then blame("%s has no column '%s'", of, tostring(key)) end
    return at
  end
  return {
    __index = function(row, key)
      if type(key) == "number" then return nil end
      return rawget(row, place(key))
    end,
    __newindex = function(row, key, value)
      if type(key) == "number" then return rawset(row, key, value) end
      rawset(row, place(key), value)
      -- Several columns may have one name, and what is hidden in one shows in none.
      for _, at in ipairs(more[key] or {}) do rawset(row, at, value) end
    end,
  }
end

-- Statements of a script's own.

local WAITS = "waits for a server, which m.on.statement, m.on.result, timers and the top of a script can"

-- The text with its values.
local function filled(text, ...)
  want(type(text) == "string", "query wants a text, it got a %s", type(text))
  want(session_of().thread, "a query " .. WAITS)
  local made, words = native.fill(text, { n = select("#", ...), ... })
  want(made, "query: %s", words)
  return made
end

-- What a server has answered, as scripts have it.
local function answered(ok, what, id)
  if not ok then return nil, what end
  if type(what) == "number" then return { affected_rows = what, insert_id = id } end
  local answer = packed.decode(what)
  local names, kinds, rows = answer.names, answer.kinds, answer.rows
  local meta = row_of(names, "the result")
  for at = 1, #rows do
    local row = rows[at]
    for column = 1, #kinds do row[column] = typed(row[column], kinds[column]) end
    setmetatable(row, meta)
  end
  rows.columns = names
  return rows
end

local function query_at(hostgroup, text, ...) return answered(wait("query", filled(text, ...), hostgroup)) end

local function query(text, ...) return query_at(nil, text, ...) end

M.query = query

-- A hostgroup to ask, in the place of the session's own.
local function at(hostgroup, of)
  want(is_whole(hostgroup, 0, 4294967295), "%s wants the number of a hostgroup", of)
  return fixed(of .. "(" .. hostgroup .. ")", {
    query = function(_, text, ...) return query_at(hostgroup, text, ...) end,
  })
end

function M.at(hostgroup) return at(hostgroup, "m.at") end

-- A connection of the script's own: what one statement leaves there, the next one finds.
local function connection(hostgroup, of)
  want(hostgroup == nil or is_whole(hostgroup, 0, 4294967295), "%s wants the number of a hostgroup", of)
  want(session_of().thread, "%s " .. WAITS, of)
  local ok, id = wait("connect", (native.client("schema")), nil, nil, nil, nil, hostgroup)
  if not ok then return nil, id end
  return fixed(of, {
    query = function(_, text, ...)
      want(id, "this connection is closed")
      return answered(wait("execute", id, filled(text, ...)))
    end,
    close = function()
      if id then native.close(id) end
      id = nil
    end,
  })
end

function M.connection(hostgroup) return connection(hostgroup, "m.connection") end

-- Lists of rows that are sorted become one.

-- What rows are sorted by: columns, and whether the largest comes first.
local function order_of(by)
  want(type(by) == "table" and #by > 0, "m.merge wants columns second, such as { \"name\", { \"id\", descending = true } }")
  local order = {}
  for index, column in ipairs(by) do
    local of = type(column) == "table" and column or { column }
    want(type(of[1]) == "string" or type(of[1]) == "number", "m.merge: column %d wants a name or a number", index)
    for name in pairs(of) do want(name == 1 or name == "descending", "m.merge: a column has no '%s'", tostring(name)) end
    order[index] = { of[1], of.descending and true or false }
  end
  return order
end

-- Whether a value comes before another one: -1, 0 or 1. NULL comes first, as servers have it.
local function compared(a, b)
  if a == b then return 0 end
  if a == nil then return -1 end
  if b == nil then return 1 end
  if type(a) ~= type(b) then a, b = tostring(a), tostring(b) end
  if type(a) == "boolean" then return b and -1 or 1 end
  return a < b and -1 or a > b and 1 or 0
end

local function is_before(a, b, order)
  for index = 1, #order do
    local column = order[index]
    local which = compared(a[column[1]], b[column[1]])
    if which ~= 0 then return (which < 0) ~= column[2] end
  end
  return false
end

function M.merge(lists, by, limit)
  want(type(lists) == "table", "m.merge wants a list of lists first, it got a %s", type(lists))
  want(limit == nil or is_whole(limit, 0, 2 ^ 53), "m.merge wants a whole number third")
  local order, places, made = order_of(by), {}, {}
  for index, list in ipairs(lists) do
    want(type(list) == "table", "m.merge: list %d is a %s", index, type(list))
    places[index] = 1
  end
  while not limit or #made < limit do
    local first, of
    for index = 1, #places do
      local row = lists[index][places[index]]
      if row ~= nil then
        want(type(row) == "table", "m.merge: row %d of list %d is a %s", places[index], index, type(row))
        if not first or is_before(row, first, order) then first, of = row, index end
      end
    end
    if not first then break end
    made[#made + 1], places[of] = first, places[of] + 1
  end
  return made
end

-- Calls by HTTP.

local HTTP_MS, HTTP_MS_MAX = 5000, 60000

-- Headers as a list of names and values.
local function headers_of(given, of)
  local list = {}
  want(given == nil or type(given) == "table", "%s: headers must be a table", of)
  for name, value in pairs(given or {}) do
    want(type(name) == "string" and (type(value) == "string" or type(value) == "number"),
      "%s: a header is a name and a text", of)
    list[#list + 1] = { name, tostring(value) }
  end
  return list
end

local function call(of, is_post, url, body, options)
  want(type(url) == "string", "%s wants an address first, it got a %s", of, type(url))
  local wrong = native.url(url)
  want(not wrong, "%s: %s", of, tostring(wrong))
  want(session_of().thread, "%s waits for an answer, which m.on.statement, m.on.result, timers and the top of a script can", of)
  want(options == nil or type(options) == "table", "%s wants a table last, such as { timeout = 1000 }", of)
  options = options or {}
  for name in pairs(options) do
    want(name == "headers" or name == "timeout", "%s has no '%s': there are headers and timeout", of, tostring(name))
  end
  local ms = options.timeout or HTTP_MS
  want(is_whole(ms, 1, HTTP_MS_MAX), "%s: timeout must be milliseconds, from 1 to %d", of, HTTP_MS_MAX)
  local ok, status, text, headers = wait("http", is_post, url, body, ms, headers_of(options.headers, of))
  if not ok then return nil, status end
  return { status = status, body = text, headers = headers }
end

M.http = fixed("m.http", {
  get = function(url, options) return call("m.http.get", false, url, nil, options) end,
  post = function(url, body, options)
    want(type(body) == "string", "m.http.post wants a text second, it got a %s", type(body))
    return call("m.http.post", true, url, body, options)
  end,
})

-- Digits of a number that Lua has no room for.
function M.number(digits)
  digits = tostring(digits)
  want(digits:find("^%-?%d+$") or digits:find("^%-?%d+%.%d+$"), "m.number wants digits, it got '%s'", digits)
  return setmetatable({ digits = digits }, { __tostring = function() return digits end })
end

-- Statements of clients.

local DATA = {}

local function meaning(d)
  d.kind, d.digest, d.digest_text, d.tables = native.meaning(d.text)
end

local function client()
  local host, port = native.client("src")
  return port and host .. ":" .. port or host
end

local READS = {
  kind = meaning, digest = meaning, digest_text = meaning, tables = meaning,
  user = function(d) d.user = native.client("user") end,
  schema = function(d) d.schema = native.client("schema") end,
  session = function(d) d.session = native.client("thread") end,
  client = function(d) d.client = client() end,
  parameters = function(d)
    local known = d.known
    if known and not known.long and d.code == EXECUTE then
      d.parameters = native.parameters(d.packet, known.params, known.types)
    end
  end,
}
local KNOWN = { text = true, prepared = true }

local Statement = { __metatable = false }

local Methods = {
  query = function(_, text, ...) return query(text, ...) end,
  at = function(_, hostgroup) return at(hostgroup, "s:at") end,
  connection = function(_, hostgroup) return connection(hostgroup, "s:connection") end,
}

function Statement.__index(s, key)
  local d = rawget(s, DATA)
  local value = d[key]
  if KNOWN[key] then return value end
  local read = READS[key]
  if read then
    if value == nil then read(d) end
    return d[key]
  end
  return Methods[key] or blame("a statement has no '%s'", tostring(key))
end

function Statement.__newindex(_, key)
  blame("s.%s is not writable: return m.rewrite, m.route, m.error or m.result", tostring(key))
end

local function id_of(packet, at)
  local a, b, c, d = packet:byte(at, at + 3)
  if d then return a + b * 0x100 + c * 0x10000 + d * 0x1000000 end
end

-- What a command is to the hook, or nothing.
local READ = {
  [QUERY] = function(_, packet) return { text = packet:sub(2), prepared = false } end,
  [PREPARE] = function(session, packet)
    session.last_prepared = nil
    return { text = packet:sub(2), prepared = "prepare" }
  end,
  [CLOSE] = function(session, packet) session.prepared[id_of(packet, 2) or 0] = nil end,
  [LONG_DATA] = function(session, packet)
    local known = session.prepared[id_of(packet, 2) or 0]
    if known then known.long = true end
  end,
  [RESET] = function(session, packet)
    local known = session.prepared[id_of(packet, 2) or 0]
    if known then known.long = nil end
  end,
  [RESET_CONNECTION] = function(session) session.prepared, session.last_prepared = {}, nil end,
}

local function executed(session, packet)
  local id = id_of(packet, 2) or 0
  if id == 0xffffffff then id = session.last_prepared or 0 end
  local known = session.prepared[id]
  if not known then return nil end
  if packet:byte() == EXECUTE then known.types = native.types(packet, known.params) or known.types end
  return { text = known.text, prepared = "execute", known = known }
end
READ[EXECUTE], READ[BULK] = executed, executed

local function told(hook, name, words, ...)
  error(native.where(hook) .. ": " .. name .. " " .. words:format(...), 0)
end

local function shown(value)
  if is_answer(value) then return "what m." .. value.kind .. " has made" end
  return "a " .. type(value)
end

-- What is prepared for a statement that the script answers itself.
local function stand_in(text)
  local places = native.places(text)
  return places == 0 and "DO 0" or "DO " .. ("?, "):rep(places - 1) .. "?"
end

-- The packet that goes on.
local function packet_of(hook, d, said)
  local known = d.known
  if d.prepared ~= "execute" then
    d.sent = said.kind == "result" and stand_in(d.text) or said.text or d.text
    return said.kind == "pass" and d.packet or string.char(d.code) .. d.sent
  end
  if said.kind == "rewrite" and said.text ~= known.sent then
    told(hook, "on.statement", "has rewritten a statement when it was executed: a prepared statement is rewritten when it is prepared, and the same way each time")
  end
  if known.stands_in then
    told(hook, "on.statement", "answered this statement when it was prepared, and lets it pass when it is executed")
  end
  return d.packet
end

-- With a script that reads the rows, all of them come with the answer.
local function without_cursor(packet)
  local flags = packet:byte(6)
  if not flags or flags % CURSORS == 0 then return packet end
  return packet:sub(1, 5) .. string.char(flags - flags % CURSORS) .. packet:sub(7)
end

local HOOKS = { statement = true, result = true, rows = true }

-- The client's command. Returns whether the script has looked at it, what it has decided, and how
-- many commands run instead.
Session["on.statement"] = function(session, packet)
  enter(session)
  if lists[session.queries][1] ~= nil then lists[session.queries] = {} end
  session.pending, session.live = nil, nil
  local hooks, read = session.on, READ[packet:byte()]
  local d = read and read(session, packet)
  if not d then return false, 0, 0 end
  d.packet, d.code = packet, packet:byte()
  local s, hook, said = setmetatable({ [DATA] = d }, Statement), hooks.statement, PASS
  if hook then
    session.hook = hook
    said = hook(s)
    if said == nil then said = PASS end
    if not is_answer(said) or said.kind == "rows" then
      told(hook, "on.statement", "must return nothing, or what m.pass, m.rewrite, m.route, m.error or m.result makes; it returned %s", shown(said))
    end
  end
  local kind = said.kind
  local is_prepared_later = kind == "result" and d.prepared == "prepare"
  if (kind == "error" or kind == "result") and not is_prepared_later then
    if d.code == BULK and kind == "result" then told(hook, "on.statement", "cannot answer an execution with many rows by m.result") end
    rawset(session.proxy, "response", said.response)
    return true, 2, 0
  end
  local on = packet_of(hook, d, said)
  local collected = d.prepared == "prepare" or hooks.result ~= nil and d.code ~= BULK
  local streamed = d.prepared ~= "prepare" and hooks.rows ~= nil
  if (hooks.result or streamed) and d.code == EXECUTE then on = without_cursor(on) end
  if not collected and not streamed and on == packet and not said.route then return hook ~= nil, 0, 0 end
  d.stands_in = is_prepared_later
  session.pending = { s = s, d = d, collected = collected }
  lists[session.queries] = { { id = 0, packet = on, needed = collected, streamed = streamed, route = said.route } }
  return hook ~= nil, 1, 1
end

-- Answers of servers.

local function there(r)
  local d = rawget(r, DATA)
  if session_of().live ~= d.serial then blame("the result is gone: its hook has returned") end
  return d
end

local function failure(part)
  local first = native.first(part)
  if not first or first:byte() ~= 255 then return { code = 0, state = "HY000", message = "" } end
  local low, high = first:byte(2, 3)
  local state, words = first:match("^#(.....)(.*)$", 4)
  return { code = low + high * 256, state = state or "HY000", message = words or first:sub(4) }
end

local Result = { __metatable = false }

-- A whole answer, or one of its results, with its numbers.
local function result_of(serial, counts, part)
  return setmetatable({ [DATA] = { serial = serial, counts = counts, part = part } }, Result)
end

local RESULT = {
  fields = function(d) return d.counts.has_rows and packed.fields(d.part) or {} end,
  columns = function(d)
    local names = {}
    if d.counts.has_rows then
      for at, field in ipairs(packed.fields(d.part)) do names[at] = field.name end
    end
    return names
  end,
  results = function(d)
    if d.part then blame("one of several results has no 'results': the answer has them") end
    if not d.results then
      d.results = {}
      for part = 1, native.results() do
        d.results[part] = result_of(d.serial, counts_of(native.counts(part)), part)
      end
    end
    return d.results
  end,
  has_rows = function(d) return d.counts.has_rows end,
  row_count = function(d) return d.counts.has_rows and d.counts.row_count or 0 end,
  affected_rows = function(d) return d.counts.has_rows and 0 or d.counts.affected end,
  insert_id = function(d) return d.counts.has_rows and 0 or d.counts.insert end,
  warnings = function(d) return d.counts.warning_count end,
  error = function(d) return d.counts.failed and failure(d.part) or nil end,
}

-- The columns that a script asks for: their places, how they are read, and what a row is.
local function chosen(r, columns)
  local d = there(r)
  want(d.part or d.streamed or not native.is_several(), "the answer has several results: r.results is a list of them")
  want(not native.is_bare(d.part), "the client has asked for results without names of columns")
  if not d.names then d.names, d.kinds = r.columns, packed.decode(native.kinds(d.part)) end
  local places, names = {}, {}
  if columns == nil then
    for at, name in ipairs(d.names) do places[at], names[at] = at, name end
    return places, row_of(names, "the result"), d.kinds
  end
  want(type(columns) == "table", "columns must be a table of names")
  for _, name in ipairs(columns) do
    local found = false
    for at, known in ipairs(d.names) do
      if at == name or known:lower() == tostring(name):lower() then
        found, places[#places + 1], names[at] = true, at, at == name and known or name
      end
    end
    want(found or columns.optional, "the result has no column '%s'", tostring(name))
  end
  return places, row_of(names, "map was told of other columns: the row"), d.kinds
end

local Reads = {}

function Reads.rows(r, columns)
  there(r)
  if not r.has_rows then return function() end end
  local places, meta, kinds = chosen(r, columns)
  local d = there(r)
  local each = packed.each(session_of(), d.serial, d.part, function() there(r) end, places)
  return function()
    local cells = each()
    if not cells then return nil end
    for index = 1, #places do
      local place = places[index]
      cells[place] = typed(cells[place], kinds[place])
    end
    return setmetatable(cells, meta)
  end
end

-- Each row as a function returns it. A row for which it returns false is left out.
function Reads.map(r, of, columns)
  there(r)
  want(type(of) == "function", "map wants a function first, it got a %s", type(of))
  -- Rows before an error are no result.
  if not r.has_rows or r.error then return r end
  local places, meta, kinds = chosen(r, columns)
  if #places == 0 then return r end
  local d, where, rows = there(r), native.where(of), {}
  local part, each = d.part, packed.each(session_of(), d.serial, d.part, function() there(r) end, places)
  for at = 1, r.row_count do
    local row, texts = each(), {}
    for index = 1, #places do
      local place = places[index]
      texts[index] = row[place]
      row[place] = typed(row[place], kinds[place])
    end
    local made = of(setmetatable(row, meta))
    if made == nil then made = row end
    if made == false then
      rows[at] = false
    else
      if type(made) ~= "table" then error(where .. ": the function of map must return a row, or false; it returned a " .. type(made), 0) end
      local values = {}
      for index = 1, #places do
        local value, text = made[places[index]], texts[index]
        -- A value that reads as it did is as it was, with zeros in front and all digits.
        local is_same = value == typed(text, kinds[places[index]])
        values[index] = is_same and text or cell(value, "a value of a row")
      end
      rows[at] = values
    end
  end
  return answer("rows", { response = { type = 0, mapped = { columns = places, rows = rows, part = part } } })
end

function Result.__index(r, key)
  local method = Reads[key]
  if method then return method end
  local read = RESULT[key]
  if not read then blame("a result has no '%s'", tostring(key)) end
  return read(there(r))
end

function Result.__newindex(_, key) blame("r.%s is not writable: return r:map, m.result or m.error", tostring(key)) end

-- Rows on their way: the columns of a result are known, and its rows are not.

local Stream = { __metatable = false }

local STREAM = { fields = RESULT.fields, columns = RESULT.columns, has_rows = RESULT.has_rows, number = function(d) return d.number end }

local Streams = {}

-- What a function of map is given later: its columns, and what to call.
function Streams.map(r, of, columns, last)
  there(r)
  want(type(of) == "function", "map wants a function first, it got a %s", type(of))
  want(last == nil or type(last) == "function", "map wants a function third, it got a %s", type(last))
  local as = type(columns) == "table" and columns.as
  want(not as or TYPES[as], "map: the columns have the type '%s', which there is not", tostring(as))
  local places, meta, kinds = chosen(r, columns)
  return answer("stream", {
    of = of, last = last, places = places, meta = meta, kinds = kinds, as = as and TYPES[as] or 0, where = native.where(of),
  })
end

function Stream.__index(r, key)
  local method = Streams[key]
  if method then return method end
  local read = STREAM[key]
  if not read then
    local late = RESULT[key] or Reads[key]
    if late then blame("r.%s is known when all rows are: m.on.result has it, and the third function of map their number", tostring(key)) end
    blame("a result has no '%s'", tostring(key))
  end
  return read(there(r))
end

Stream.__newindex = Result.__newindex

-- The columns of a result. Returns what the script has decided: 0 for nothing, 1 for a function that sees each row, 2 for an
-- answer; the places of the columns that it sees, and their new type.
Session["on.rows"] = function(session, number)
  local hook = session.on.rows
  enter(session)
  session.stream = nil
  local d = { serial = native.serial(), counts = counts_of(native.counts()), streamed = true, number = number }
  local r = setmetatable({ [DATA] = d }, Stream)
  session.hook, session.live = hook, d.serial
  local said = hook(session.pending.s, r)
  session.live = nil
  if said == nil or said == PASS or said == r then return 0 end
  if is_answer(said) and said.kind == "error" then
    rawset(session.proxy, "response", said.response)
    return 2
  end
  if not is_answer(said) or said.kind ~= "stream" then
    told(hook, "on.rows", "must return nothing, the result, or what r:map or m.error makes; it returned %s", shown(said))
  end
  if #said.places == 0 and not said.last then return 0 end
  session.stream = said
  return 1, said.places, said.as
end

-- So many rows, by the texts of their columns that are seen, one row behind another. Returns places among those of what is
-- changed, the new values, and the rows that are left out, each packed.
local function pass_rows(session, count, packed_texts)
  local stream = session.stream
  enter(session)
  local of, places, meta, kinds = stream.of, stream.places, stream.meta, stream.kinds
  local width, base, texts = #places, 0, packed.decode(packed_texts)
  local changed, values, out = {}, {}, {}
  for row = 1, count do
    local cells = {}
    for index = 1, width do
      local place = places[index]
      cells[place] = typed(texts[base + index], kinds[place])
    end
    local made = of(setmetatable(cells, meta))
    if made == nil then made = cells end
    if made == false then
      out[#out + 1] = row
    elseif type(made) ~= "table" then
      error(stream.where .. ": the function of map must return a row, or false; it returned a " .. type(made), 0)
    else
      for index = 1, width do
        local place = places[index]
        local value, text = made[place], texts[base + index]
        -- A value that reads as it did is as it was: leading zeros stay, and digits that Lua does not show.
        if value ~= typed(text, kinds[place]) then
          value = cell(value, "a value of a row")
          changed[#changed + 1] = base + index
          values[#changed] = value == nil and false or value
        end
      end
    end
    base = base + width
  end
  return packed.encode(changed), packed.encode(values), packed.encode(out)
end
Session.rows = pass_rows

-- The rows are over; there were so many.
function Session.last(session, count)
  local stream = session.stream
  session.stream = nil
  enter(session)
  if stream and stream.last then stream.last(count) end
end

local function remember(session, d)
  local first = native.first()
  local id = first and first:byte() == 0 and id_of(first, 2)
  if not id then return end
  local low, high = first:byte(8, 9)
  session.prepared[id] = {
    text = d.text, sent = d.sent, stands_in = d.stands_in, params = low and high and low + high * 256 or 0,
  }
  session.last_prepared = id
end

-- One of the results that a hook returns.
local function element(hook, said, is_last)
  local d = type(said) == "table" and rawget(said, DATA)
  if d and d.part then return { ["=same"] = d.part } end
  local response = is_answer(said) and said.response
  if not response then
    told(hook, "on.result", "must return results in its list: those of r.results, or what their map, m.result and m.error make; it has %s", shown(said))
  end
  if response.mapped then
    if not response.mapped.part then told(hook, "on.result", "has r:map in its list: map those of r.results") end
    return { ["=mapped"] = response.mapped }
  end
  if said.kind == "error" and not is_last then told(hook, "on.result", "has an error in its list that is not the last result") end
  return response.resultset or response
end

-- A list of results in the place of an answer.
local function listed(hook, said)
  if type(said) ~= "table" then return nil end
  if rawget(said, DATA) then said = { said } elseif getmetatable(said) ~= nil then return nil end
  if #said == 0 then return nil end
  local all = {}
  for at, one in ipairs(said) do all[at] = element(hook, one, at == #said) end
  return { type = 0, resultsets = all }
end

-- The answer to a command. Returns whether the script has looked at it, and what it has decided.
Session["on.result"] = function(session, _, _, _, _, serial, ...)
  local pending, hook = session.pending, session.on.result
  session.pending = nil
  if not pending or not pending.collected then return false, 0 end
  enter(session)
  if pending.d.prepared == "prepare" then
    remember(session, pending.d)
    return false, 0
  end
  if pending.d.known then pending.d.known.long = nil end
  if not hook then return false, 0 end
  local r = result_of(serial, counts_of(...))
  session.hook, session.live = hook, serial
  local said = hook(pending.s, r)
  session.live = nil
  if said == nil or said == PASS or said == r then return true, 0 end
  local response = is_answer(said) and said.response or listed(hook, said)
  if not response then
    told(hook, "on.result", "must return nothing, the result, what r:map, m.error or m.result makes, or a list of results; it returned %s", shown(said))
  end
  rawset(session.proxy, "response", response)
  return true, 2
end

-- Hooks are each session's own: its script's main chunk has set them.

M.on = setmetatable({}, {
  __index = function(_, key)
    want(HOOKS[key], "there is no m.on.%s: there are m.on.statement, m.on.result and m.on.rows", tostring(key))
    return session_of().on[key]
  end,
  __newindex = function(_, key, hook)
    want(HOOKS[key], "there is no m.on.%s: there are m.on.statement, m.on.result and m.on.rows", tostring(key))
    want(type(hook) == "function", "m.on.%s must be a function, it is a %s", tostring(key), type(hook))
    local session = session_of()
    want(session.is_beginning, "m.on.%s is set at the top of a script, not in a hook", key)
    want(not session.is_in_module, "m.on.%s is set in the script itself: a module runs once for all sessions", key)
    session.on[key] = hook
  end,
  __metatable = false,
})

-- Values for all cores.

local function ttl(ms, of)
  want(ms == nil or type(ms) == "number" and ms > 0, "%s: how long it lasts must be milliseconds", of)
  return ms
end

local function key(value, of)
  want(type(value) == "string", "%s wants a key first, a text", of)
  return value
end

M.shared = fixed("m.shared", {
  get = function(name)
    local value = native.shared("get", key(name, "m.shared.get"))
    return value
  end,
  set = function(name, value, ms)
    local kind = type(value)
    want(kind == "nil" or kind == "string" or kind == "number" or kind == "boolean",
      "m.shared.set keeps texts, numbers, true and false; it got a %s", kind)
    return native.shared("set", key(name, "m.shared.set"), value, ttl(ms, "m.shared.set"))
  end,
  add = function(name, by, ms)
    by = by == nil and 1 or by
    want(type(by) == "number", "m.shared.add wants a number second, it got a %s", type(by))
    return native.shared("add", key(name, "m.shared.add"), by, ttl(ms, "m.shared.add"))
  end,
})

function M.setting(name, default)
  want(type(name) == "string", "m.setting wants a name, it got a %s", type(name))
  local value = native.setting(name)
  if value == nil then return default end
  return value
end

-- Timers are the script's own, not a session's: they run where it has its home.

local TIMERS_MAX = 100

function M.every(ms, of)
  local session = session_of()
  want(is_whole(ms, 10, 86400000), "m.every wants milliseconds first, from 10 to 86400000")
  want(type(of) == "function", "m.every wants a function second, it got a %s", type(of))
  want(session.is_beginning and not session.is_in_module, "m.every is called at the top of a script, not in a hook nor in a module")
  local timers = session.timers
  if not timers then return end
  want(#timers < TIMERS_MAX, "a script has %d timers at most", TIMERS_MAX)
  timers[#timers + 1] = { ms = ms, of = of }
end

-- Milliseconds of each timer of the script.
function Session.periods(session)
  local periods = {}
  for at, timer in ipairs(session.timers or {}) do periods[at] = timer.ms end
  return periods
end

function Session.every(session, at)
  enter(session)
  local of = session.timers[at].of
  session.hook = of
  of()
  return true
end

local LEVELS = { error = true, warning = true, info = true, debug = true }

function M.log(level, words)
  want(LEVELS[level], "m.log wants error, warning, info or debug first, it got '%s'", tostring(level))
  native.log("[" .. level .. "] " .. tostring(words))
end

-- Names of fields, for who looks a script through.
local function names(...)
  local all = {}
  for _, fields in ipairs({ ... }) do
    for name in pairs(fields) do all[#all + 1] = name end
  end
  return all
end

local SHARED = { get = true, set = true, add = true }
local HTTP = { get = true, post = true }

-- Those of MySQL Proxy's tables.
local function list(words)
  local all = {}
  for word in words:gmatch("%S+") do all[#all + 1] = word end
  return all
end

local SOCKET = "default_db username thread_id mysqld_version scrambled_password auth_plugin_name scramble_buffer src dst address"

function Session.known()
  return {
    ["proxy.response"] = list("type resultset resultsets errmsg errcode errno sqlstate packets affected_rows insert_id"),
    ["proxy.connection"] = list("client server backend_ndx connection_close default_db thread_id mysqld_version"),
    ["proxy.connection.client"] = list(SOCKET),
    ["proxy.connection.server"] = list(SOCKET),
    ["proxy.queries"] = list("append prepend reset len"),
    inj = list("id type query query_time response_time resultset resultsets"),
    ["inj.resultset"] = list(
      "fields rows row_count bytes raw flags warning_count affected_rows insert_id query_status"),
    millrace = names(M), ["millrace.on"] = names(HOOKS), ["millrace.shared"] = names(SHARED),
    ["millrace.http"] = names(HTTP),
    s = names(READS, KNOWN, Methods), r = names(RESULT, Reads, STREAM),
  }
end

return fixed("millrace", M)
