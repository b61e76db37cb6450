-- MySQL Proxy's `proxy` table, over a few functions of the VM: what scripts read and write at every
-- statement stays in Lua, where a compiled trace does not end.
local native = ...
local setmetatable, rawget, rawset, type, tostring, error, newproxy, getmetatable, insert, pairs =
    setmetatable, rawget, rawset, type, tostring, error, newproxy, getmetatable, table.insert, pairs

local raw_loadstring, next = loadstring, next
local create, status = coroutine.create, coroutine.status
local floor = math.floor
local packed = raw_loadstring(native.written("packed"), "=packed")(native)
local bounds = raw_loadstring(native.written("bounds"), "=bounds")(native)
local WAIT, raw_pcall, raw_resume, raw_yield = bounds.WAIT, bounds.pcall, bounds.resume, bounds.yield

local constants = native.constants

local function weak() return setmetatable({}, { __mode = "k" }) end

local modules = native.modules
modules["mysql.tokenizer"].tokenize = raw_loadstring(native.written("tokens"), "=tokenizer")(native, packed)
constants.tokenizer = modules["mysql.tokenizer"]
constants.tokenize = constants.tokenizer.tokenize

-- The session whose hook runs.
local current

-- Waits for this, and returns what came of it.
local function wait(...)
  if not (current and current.thread) then
    error("this hook cannot wait: only read_query, read_query_result, read_auth and the main chunk can", 3)
  end
  return raw_yield(WAIT, ...)
end

-- `proxy` outside of a session's environment, in modules: that of the session that calls them.
local everywhere = setmetatable({}, {
  __index = function(_, key)
    if current then return current.proxy[key] end
    return constants[key]
  end,
  __newindex = function(_, key, value)
    if current then current.proxy[key] = value else constants[key] = value end
  end,
})
_G.proxy = everywhere

-- What reaches out of the VM.
local reach = raw_loadstring(native.written("reach"), "=io")(native, function() return current end, wait, bounds.compiled, newproxy)

-- A module runs once for all sessions of its script on this core.
local SHORT = {
  ["mysql.tokenizer"] = "tokenizer", ["mysql.proto"] = "proto", ["mysql.password"] = "password",
  glib2 = "glib2", lfs = "lfs", posix = "posix", chassis = "chassis", md5 = "md5", json = "json", cjson = "cjson",
}
-- Files of these names beside a script are what it means.
local BESIDE = { md5 = true, json = true, cjson = true, ["cjson.safe"] = true, dkjson = true }
local FIELD = {
  ["proxy.commands"] = "commands", ["proxy.parser"] = "parser", ["proxy.balance"] = "balance",
}

local function run_written(name)
  local chunk = raw_loadstring(native.written(name), "=" .. name)
  return chunk(everywhere, native, function() return current end, wait, newproxy, packed)
end

-- The API of today, made below.
local today

local LIBRARIES = {
  _G = true, string = true, table = true, math = true, os = true, io = true, coroutine = true, debug = true,
  bit = true, package = true,
}

local function built_in(loaded, name)
  if LIBRARIES[name] then return _G[name] end
  if name == "millrace" then return today end
  if modules[name] then return modules[name] end
  if BESIDE[name] and name ~= "md5" then
    loaded["=json"] = loaded["=json"] or run_written("json")
    return name == "cjson.safe" and loaded["=json"].safe or loaded["=json"]
  end
  if SHORT[name] then
    loaded["=others"] = loaded["=others"] or run_written("others")
    return loaded["=others"][name]()
  end
  local part = name:match("^optivo%.common%.log4lua%.(.+)$") or name:match("^log4lua%.(.+)$")
  if name == "luasql" then name = "luasql.mysql" end
  if name == "optivo.common.utils" then part = "utils" end
  if part then
    loaded["=log4lua"] = loaded["=log4lua"] or run_written("log4lua")
    return loaded["=log4lua"][part]
  end
  -- Those without a dot are parts of ours.
  if name:find(".", 1, true) and native.written(name) then return run_written(name) end
end

local LOADING = {}

-- A module that is a file in one of the row's folders, by `package.path`.
local function found(name)
  if not (current.thread and current.library.folders) then return nil end
  local tried = {}
  for template in tostring(package.path):gmatch("[^;]+") do
    local file = template:gsub("%?", (name:gsub("%.", "/")))
    local chunk, words = reach.compiled(file)
    if chunk then return chunk end
    if not words:find("^cannot open") then error(words, 0) end
    tried[#tried + 1] = file
  end
  return nil, "nor is there " .. table.concat(tried, ", ")
end

local function load_module(library, name)
  local loaded = library.loaded
  loaded[name] = LOADING
  local preload = _G.package.preload[name]
  if preload then
    local given = preload(name)
    if loaded[name] == LOADING then loaded[name] = given == nil and true or given end
    return loaded[name]
  end
  local module = not (BESIDE[name] and library.files[name]) and built_in(loaded, name)
  if module then
    if SHORT[name] then _G[SHORT[name]] = module end
    if FIELD[name] then constants[FIELD[name]] = module end
  else
    local code, chunk, words = library.files[name], nil, nil
    if code then
      chunk, words = bounds.compiled(code.text, "@" .. code.chunk)
      if not chunk then loaded[name] = nil error(words, 0) end
    else
      chunk, words = found(name)
    end
    if not chunk then
      loaded[name] = nil
      local why = native.refused(name)
      return nil, "module '" .. name .. "' is not available to this script: " .. why .. (words and ", " .. words or "")
    end
    current.is_in_module = true
    local ok, given = raw_pcall(chunk, name)
    current.is_in_module = false
    if not ok then error(given, 0) end
    module = given ~= nil and given or loaded[name]
    if module == LOADING then module = true end
  end
  loaded[name] = module
  return module
end

function _G.require(name)
  if type(name) ~= "string" then error("require wants the name of a module", 2) end
  local library = current.library
  local module = library.loaded[name]
  if module == LOADING then error("module '" .. name .. "' requires itself", 2) end
  if module ~= nil then return module end
  local ok, made, words = pcall(load_module, library, name)
  if not ok then
    library.loaded[name] = nil
    error(made, 0)
  end
  if made == nil then error(words, 2) end
  return made
end

-- What modules of Lua 5.1 call first.
local function of_name(name)
  local of, last = _G, name
  for part, rest in name:gmatch("([^.]+)%.([^.]+)") do
    if of[part] == nil then of[part] = {} end
    of, last = of[part], rest
  end
  return of, last
end

function _G.module(name, ...)
  local loaded = current.library.loaded
  local of, last = of_name(name)
  local made = type(loaded[name]) == "table" and loaded[name] ~= LOADING and loaded[name] or of[last]
  if type(made) ~= "table" then made = {} end
  of[last], loaded[name] = made, made
  made._M, made._NAME, made._PACKAGE = made, name, name:match("^(.*%.)[^.]*$") or ""
  setfenv(2, made)
  for _, wants in ipairs({ ... }) do wants(made) end
end

_G.package = setmetatable({
  path = "./?.lua", cpath = "", config = "/\n;\n?\n!\n-", preload = {}, loaders = {},
  loadlib = function(name)
    return nil, "package.loadlib is not available to this script: it loads no code that is not Lua: " .. tostring(name), "absent"
  end,
  seeall = function(module)
    local meta = getmetatable(module) or {}
    meta.__index = _G
    setmetatable(module, meta)
  end,
}, {
  __index = function(_, key)
    if key == "loaded" then return current.library.loaded end
  end,
})

-- proxy.queries: `#` must work, and Lua 5.1 asks only userdata for it.
local lists = weak()
local Queries = {}

local function item(id, packet, options)
  if type(id) ~= "number" then error("bad argument #1 to 'append' (number expected, got " .. type(id) .. ")", 3) end
  if type(packet) ~= "string" then error("bad argument #2 to 'append' (string expected, got " .. type(packet) .. ")", 3) end
  if options ~= nil and type(options) ~= "table" then
    error("bad argument #3 to 'append' (table expected, got " .. type(options) .. ")", 3)
  end
  local needed = options and options.resultset_is_needed
  if needed ~= nil and type(needed) ~= "boolean" then
    error("resultset_is_needed must be a boolean, it is a " .. type(needed), 3)
  end
  local backend_ndx = options and options.backend_ndx
  if backend_ndx ~= nil and type(backend_ndx) ~= "number" then
    error("backend_ndx must be a number, it is a " .. type(backend_ndx), 3)
  end
  if backend_ndx and (backend_ndx < 0 or backend_ndx > native.backends() or backend_ndx % 1 ~= 0) then
    error("backend_ndx must be from 0 to " .. native.backends() .. ", that of the last backend", 3)
  end
  return { id = id, packet = packet, needed = needed or false, backend_ndx = backend_ndx }
end

function Queries.append(self, id, packet, options)
  local list = lists[self]
  list[#list + 1] = item(id, packet, options)
end

function Queries.prepend(self, id, packet, options) insert(lists[self], 1, item(id, packet, options)) end

function Queries.reset(self) lists[self] = {} end

function Queries.len(self) return #lists[self] end

local queries = newproxy(true)
do
  local meta = getmetatable(queries)
  meta.__index = Queries
  meta.__len = Queries.len
  meta.__newindex = function() error("proxy.queries is not writable", 2) end
  meta.__metatable = false
end

-- Addresses, as proxy.connection and proxy.backends have them.
local function address(name, host, port)
  return { name = name, address = host, port = port, type = port and 2 or 1 }
end

-- proxy.backends, alias proxy.global.backends: asked for when they are looked at. What scripts write
-- there is noted for all of their sessions.
local function not_writable(key) error("proxy.global.backends[...]." .. tostring(key) .. " is not writable", 3) end

local function users_of(at)
  return setmetatable({}, {
    __index = function(_, name)
      local found = native.backend(at)
      if not found then return { cur_idle_connections = 0 } end
      local is_own = name == native.client("user")
      return { cur_idle_connections = is_own and found.idle_own or found.idle_any }
    end,
  })
end

local NUMBERS = { max_idle_connections = true, min_idle_connections = true }

local function pool(at)
  local users = users_of(at)
  return setmetatable({}, {
    __index = function(_, key)
      if key == "users" then return users end
      if NUMBERS[key] then return native.noted(at, key) or 0 end
    end,
    __newindex = function(_, key, value)
      if not NUMBERS[key] then not_writable("pool." .. tostring(key)) end
      if type(value) ~= "number" then error("proxy.global.backends[...].pool." .. key .. " must be a number", 2) end
      native.note(at, key, value)
    end,
  })
end

-- DOWN takes a server out for these scripts; any other state takes that back.
local function set_state(at, value)
  if type(value) ~= "number" or value < 0 or value > 3 or value % 1 ~= 0 then
    error("proxy.global.backends[...].state must be one of proxy.BACKEND_STATE_…", 3)
  end
  native.note(at, "state", value >= 2 and 2 or nil)
end

local WRITES = {
  state = set_state,
  uuid = function(at, value)
    if value ~= nil and type(value) ~= "string" then
      error("proxy.global.backends[...].uuid must be a string or nil", 3)
    end
    if value == "" then value = nil end
    native.note(at, "uuid", value)
  end,
}

local function backend(at, found)
  local name = found.port and found.host .. ":" .. found.port or found.host
  return setmetatable({}, {
    __index = function(_, key)
      if key == "address" then return name end
      if key == "dst" then return address(name, found.host, found.port) end
      if key == "type" then return found.type end
      if key == "connected_clients" then return found.clients end
      if key == "pool" then return pool(at) end
      if key == "uuid" then return native.noted(at, key) end
      if key == "state" then
        local now = native.backend(at)
        return now and now.state or 2
      end
    end,
    __newindex = function(_, key, value)
      local writes = WRITES[key]
      if not writes then not_writable(key) end
      writes(at, value)
    end,
  })
end

local backends = newproxy(true)
do
  local meta = getmetatable(backends)
  meta.__len = function() return native.backends() end
  meta.__index = function(_, at)
    if type(at) ~= "number" then return nil end
    local found = native.backend(at)
    return found and backend(at, found)
  end
  meta.__newindex = function() error("proxy.global.backends is not writable", 2) end
  meta.__metatable = false
end

-- proxy.servers, of MySQL Proxy 0.5: the same servers, with the number of idle connections.
local servers = newproxy(true)
do
  local meta = getmetatable(servers)
  meta.__len = function() return native.backends() end
  meta.__index = function(_, at)
    local found = type(at) == "number" and native.backend(at)
    if not found then return nil end
    local of = backend(at, found)
    return setmetatable({ idling_connections = found.idle_any }, {
      __index = of,
      __newindex = function(_, key, value) of[key] = value end,
    })
  end
  meta.__newindex = function() error("proxy.servers is not writable", 2) end
  meta.__metatable = false
end

-- proxy.global of a script: one for all of its sessions on this core.
local globals = {}

local function global_of(name)
  local global = globals[name]
  if not global then
    global = { config = {}, backends = backends }
    globals[name] = global
  end
  return global
end

-- proxy.connection.
local Socket = {
  default_db = function() return (native.client("schema")) end,
  username = function() return (native.client("user")) end,
  thread_id = function() return (native.client("thread")) end,
  mysqld_version = function() return (native.client("version")) end,
  scrambled_password = function() return (native.client("stand_in")) end,
}

local function end_of(host, port)
  return address(port and host .. ":" .. port or host, host, port)
end

-- The server that the session is on: the one it has chosen, or the one that has greeted it.
local function server_of(session)
  local at = session.backend_ndx or native.current()
  local found = at > 0 and native.backend(at)
  if found then return end_of(found.host, found.port) end
  local greeted = session.greeted_by
  if not greeted then return nil end
  local host, port = greeted:match("^(.*):(%d+)$")
  return end_of(host or greeted, tonumber(port))
end

local function socket(session, is_server)
  return setmetatable({}, {
    __index = function(_, key)
      if is_server and key == "mysqld_version" and session.greeted_version then return session.greeted_version end
      if key == "auth_plugin_name" then return is_server and session.greeted_plugin or native.client("auth_plugin") end
      local read = Socket[key]
      if read then return read() end
      if key == "scramble_buffer" then return session.scramble end
      if key ~= "src" and key ~= "dst" and key ~= "address" then return nil end
      local found
      if key == (is_server and "src" or "dst") then
        found = end_of(native.client("dst"))
      elseif is_server then
        found = server_of(session)
      else
        found = end_of(native.client("src"))
      end
      return found and (key == "address" and found.name or found)
    end,
    __newindex = function(_, key) error("proxy.connection." .. tostring(key) .. " is not writable", 2) end,
  })
end

local function connection(session)
  local client, server = socket(session, false), socket(session, true)
  return setmetatable({}, {
    __index = function(_, key)
      if key == "client" then return client end
      if key == "backend_ndx" then return session.backend_ndx or native.current() end
      if key == "server" then
        local at = session.backend_ndx or native.current()
        -- Before the first command it is the one that has greeted.
        return (at > 0 or session.is_greeted) and server or nil
      end
      if key == "default_db" or key == "thread_id" or key == "mysqld_version" then return client[key] end
    end,
    __newindex = function(_, key, value)
      if key == "backend_ndx" then
        local most = native.backends()
        if type(value) ~= "number" or value < 0 or value > most or value % 1 ~= 0 then
          error("proxy.connection.backend_ndx must be a number from 0 to " .. most .. ", that of the last backend", 2)
        end
        session.backend_ndx = value
        return
      end
      if key == "connection_close" then
        if type(value) ~= "boolean" then error("proxy.connection.connection_close must be a boolean", 2) end
        session.closes = value
        return
      end
      error("proxy.connection." .. tostring(key) .. " is not writable", 2)
    end,
  })
end

-- Numbers of answers in 0.6, for scripts that compare them with 0.
local STATUS_OF_0_6 = { ERR = -1, EOF = -2, RAW = -6 }

-- Numbers of an answer by their names. They come as `natives.rs` has them.
local function counts_of(collected, failed, has_rows, rows, bytes, warnings, status, affected, insert_id)
  return {
    collected = collected, failed = failed, has_rows = has_rows, row_count = rows, bytes = bytes, warning_count = warnings,
    status = status, affected = affected, insert = insert_id,
  }
end

-- Flags of a status.
local function flags_of(status)
  local function has(bit) return floor(status / bit) % 2 == 1 end
  return { in_trans = has(1), auto_commit = has(2), no_good_index_used = has(16), no_index_used = has(32) }
end

local ResultSet = {}

local function gone() error(".resultset is gone: its hook has returned", 3) end

local function look_collected(r, name)
  if r.session.live ~= r.serial then gone() end
  if not r.counts.collected then
    error(".resultset." .. name .. " isn't available if 'resultset_is_needed ~= true'", 3)
  end
end

local COUNTED = {
  has_rows = function(counts) return counts.has_rows end,
  row_count = function(counts) return counts.row_count end,
  bytes = function(counts) return counts.bytes end,
  warning_count = function(counts) return counts.warning_count end,
  flags = function(counts) return flags_of(counts.status) end,
  affected_rows = function(counts)
    if not counts.has_rows and not counts.failed then return counts.affected end
  end,
  insert_id = function(counts)
    if not counts.has_rows and not counts.failed then return counts.insert end
  end,
}

function ResultSet.query_status(r)
  if not r.counts.failed then return 0 end
  return r.session.library.old_status and STATUS_OF_0_6.ERR or 255
end

function ResultSet.fields(r)
  look_collected(r, "fields")
  if r.counts.has_rows then return packed.fields(r.part) end
  return r.session.level >= 8 and {} or nil
end

function ResultSet.rows(r)
  look_collected(r, "rows")
  if not r.counts.has_rows then return nil end
  return packed.each(r.session, r.serial, r.part, gone)
end

function ResultSet.raw(r)
  look_collected(r, "raw")
  return native.first(r.part)
end

-- What a table of a script's stands for; scripts do not see the key.
local DATA = {}

local ResultSetMeta = {
  __index = function(set, key)
    local r = rawget(set, DATA)
    if not r then return nil end
    local counted = COUNTED[key]
    if counted then return counted(r.counts) end
    local read = ResultSet[key]
    if read then return read(r) end
  end,
}

-- The result of a queued query, or one of several. It is there until its hook has returned; its numbers stay.
local function resultset(session, serial, counts, part)
  return setmetatable({ [DATA] = { session = session, serial = serial, counts = counts, part = part } }, ResultSetMeta)
end

local InjectionMeta = {
  -- All results of a queued query: of a CALL, or of several statements.
  __index = function(inj, key)
    if key ~= "resultsets" then return nil end
    local set = rawget(inj, "resultset")
    local r = type(set) == "table" and rawget(set, DATA)
    if not r then return nil end
    if not r.counts.collected then
      error(".resultsets isn't available if 'resultset_is_needed ~= true'", 2)
    end
    local all = {}
    for part = 1, native.results() do
      all[part] = resultset(r.session, r.serial, counts_of(native.counts(part)), part)
    end
    return all
  end,
}

local Session = {}

-- A session of a script, whose main chunk runs in an environment of its own.
function Session.new(name, chunk, level, library)
  local session = {
    name = name, level = level, closes = false, library = library, chunk = chunk, unused = {},
    on = {}, prepared = {},
  }
  session.queries = newproxy(queries)
  lists[session.queries] = {}
  local kept = {
    queries = session.queries,
    response = {},
    connection = connection(session),
    global = global_of(name),
    backends = backends,
    servers = servers,
  }
  if library.old_status then
    for name, number in pairs(STATUS_OF_0_6) do kept["MYSQLD_PACKET_" .. name] = number end
  end
  session.proxy = setmetatable(kept, { __index = constants, __metatable = false })
  session.env = setmetatable({ proxy = session.proxy }, { __index = _G })
  return session
end

-- Makes it the script's own session, which has its timers and no client.
function Session.own(session) session.timers = {} end

-- Runs the main chunk in the session's environment.
function Session.main(session)
  current = session
  setfenv(session.chunk, session.env)
  session.is_beginning = true
  session.chunk()
  session.is_beginning = false
  local env = session.env
  if Session.is_of_today(session) and (env.read_query or env.read_query_result) then
    error("a script has read_query and read_query_result, or m.on.statement and m.on.result; this one has both", 0)
  end
  return true
end

-- Whether it has hooks of the API of today.
function Session.is_of_today(session) return next(session.on) ~= nil end

-- What has come of a hook that was begun or went on: whether it waits, and for what; or its results.
local function went(session, ok, mark, ...)
  if not ok then
    session.thread = nil
    error(mark, 0)
  end
  if mark == WAIT then return true, ... end
  if status(session.thread) ~= "dead" then error("attempt to yield from a hook", 0) end
  session.thread = nil
  return false, mark, ...
end

-- Begins a hook of a script that may wait: in a coroutine.
function Session.begin(session, name, ...)
  current = session
  for at, id in pairs(session.unused) do
    native.close(id)
    session.unused[at] = nil
  end
  local is_there = name == "main" or name == "every" or session.env[name] ~= nil or session.on[name:sub(4)]
  if not is_there then return false, Session[name](session, ...) end
  session.thread = create(Session[name])
  return went(session, raw_resume(session.thread, session, ...))
end

-- Goes on with a hook that has waited.
function Session.resume(session, ...)
  current = session
  return went(session, raw_resume(session.thread, ...))
end

-- Hooks return first whether the script has them.

-- The client's command. Returns what the script has decided, and how many queries it has queued.
function Session.read_query(session, packet)
  current, session.is_greeted, session.live = session, false, nil
  -- Empty ones are as good as new ones.
  if lists[session.queries][1] ~= nil then lists[session.queries] = {} end
  local response = rawget(session.proxy, "response")
  if type(response) ~= "table" or next(response) ~= nil then rawset(session.proxy, "response", {}) end
  local env = session.env
  if not env.read_query then return false, 0, 0, session.backend_ndx end
  local decision = env.read_query(packet)
  if type(decision) ~= "number" then decision = 0 end
  return true, decision, #lists[session.queries], session.backend_ndx
end

-- The next query of the queue: its id, its packet, and whether its result is needed.
function Session.next(session)
  local one = table.remove(lists[session.queries], 1)
  if one then
    local route = one.route or one
    local backend_ndx = one.backend_ndx or session.backend_ndx
    local has_hook = session.env.read_query_result ~= nil
    if session.pending then has_hook = session.pending.collected end
    return one.id, one.packet, one.needed, route.hostgroup, route.cache_ttl, backend_ndx, one.streamed or false, has_hook
  end
end

function Session.forget(session) lists[session.queries] = {} end

-- The answer to one, with its numbers. Returns what the script has decided.
function Session.read_query_result(session, id, packet, query_us, response_us, serial, ...)
  local env = session.env
  if not env.read_query_result then return false, 0 end
  current = session
  local inj = {
    id = id, type = id, query = packet, query_time = query_us, response_time = response_us,
    resultset = resultset(session, serial, counts_of(...)),
  }
  session.live = serial
  local decision = env.read_query_result(setmetatable(inj, InjectionMeta))
  session.live = nil
  if type(decision) ~= "number" then decision = 0 end
  return true, decision
end

-- A client that has not been greeted yet. Returns what the script has decided, and the server that it has chosen.
function Session.connect_server(session)
  local env = session.env
  if not env.connect_server then return false, 0, nil end
  current = session
  session.backend_ndx = 0
  local decision = env.connect_server()
  local chosen = session.backend_ndx
  -- From now on the session is where it has been greeted.
  session.backend_ndx = nil
  return true, type(decision) == "number" and decision or 0, chosen > 0 and chosen or nil
end

-- The greeting of a server.
function Session.read_handshake(session, scramble, version, thread_id, server_addr, auth_plugin)
  local env = session.env
  session.scramble, session.is_greeted = scramble, true
  session.greeted_by, session.greeted_version, session.greeted_plugin = server_addr, version, auth_plugin
  if not env.read_handshake then return false, 0 end
  current = session
  local decision = env.read_handshake({
    scramble = scramble, mysqld_version = version, thread_id = thread_id, server_addr = server_addr,
    client_addr = session.proxy.connection.client.address,
  })
  return true, type(decision) == "number" and decision or 0
end

-- The login, perhaps over by now. Returns what the script has decided, and the packet that goes to the server instead.
function Session.read_auth(session)
  local env = session.env
  if not env.read_auth then return false, 0 end
  current = session
  lists[session.queries] = {}
  local client = session.proxy.connection.client
  local auth = { username = client.username, password = client.scrambled_password, default_db = client.default_db }
  local decision = env.read_auth(auth)
  local queue = lists[session.queries]
  lists[session.queries] = {}
  if decision == 1 and #queue > 1 then
    error("read_auth has queued " .. #queue .. " packets: one goes to the server in the place of the login", 0)
  end
  return true, type(decision) == "number" and decision or 0, queue[1] and queue[1].packet
end

-- The answer to it.
function Session.read_auth_result(session, packet)
  local env = session.env
  if not env.read_auth_result then return false, 0 end
  current = session
  local decision = env.read_auth_result({ packet = packet })
  return true, type(decision) == "number" and decision or 0
end

function Session.disconnect_client(session)
  local env = session.env
  current, session.thread = session, nil
  reach.flush()
  if env.disconnect_client == nil then return false end
  env.disconnect_client()
  reach.flush()
  return true
end

function Session.response(session) return rawget(session.proxy, "response") end

-- Its columns and rows, packed, if it is a result: what is left of the rows stands behind. Otherwise it is returned as it is.
function Session.result(session)
  local response = Session.response(session)
  local result = type(response) == "table" and response.type == 0 and not response.mapped and not response.resultsets
    and response.resultset
  if not result or type(result) ~= "table" or type(result.fields) ~= "table" then return response end
  local columns, behind, width = packed.columns(result.fields, 1)
  if behind ~= nil or not columns or width == 0 then return response end
  if type(result.rows) ~= "table" then return nil, columns end
  local rows, left = packed.rows(result.rows, 1, width)
  if not rows then return response end
  return nil, columns, rows, left, result.rows
end

Session.packed = packed

function Session.wishes(session) return session.closes, session.backend_ndx end

local function enter(session) current = session end

-- The VM is about to end.
Session.ends = bounds.ends

-- Names of globals, and of the fields of `proxy`.
function Session.names()
  local globals, fields = {}, {}
  for name in pairs(_G) do globals[#globals + 1] = name end
  for _, name in pairs(SHORT) do globals[#globals + 1] = name end
  globals[#globals + 1] = "luasql"
  for name in pairs(constants) do fields[#fields + 1] = name end
  for _, name in pairs(FIELD) do fields[#fields + 1] = name end
  for _, name in ipairs({ "queries", "response", "connection", "global", "backends", "servers" }) do fields[#fields + 1] = name end
  return globals, fields
end

today = raw_loadstring(native.written("today"), "=millrace")(
  native, Session, lists, enter, function() return current end, wait, packed, counts_of)

-- Nothing is compiled to machine code, whatever a script says (decision 0035).
local jit = jit
local function nothing() end
_G.jit = { version = jit.version, version_num = jit.version_num, os = jit.os, arch = jit.arch, on = nothing, off = nothing,
  flush = nothing, status = jit.status }

return Session
