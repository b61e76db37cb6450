-- LuaSQL for MySQL: environments, connections and cursors. A script that asks waits, and nobody else
-- does: the question is handed to the session, which asks the server.
local proxy, native, session, wait, newproxy, packed = ...

local states = setmetatable({}, { __mode = "k" })

-- A kind of object: its methods, and what they refuse.
local function kind_of(name, methods)
  local template = newproxy(true)
  local meta = getmetatable(template)
  local kind = { name = name, template = template }
  meta.__index = methods
  meta.__metatable = "LuaSQL: you're not allowed to get this metatable"
  meta.__tostring = function(self)
    local state = states[self]
    local where = state and not state.closed and tostring(state):match("0x%x+") or "closed"
    return "MySQL " .. name .. " (" .. where .. ")"
  end
  meta.__gc = function(self)
    local state = states[self]
    if state and state.drop and not state.closed then state.drop(state) end
  end
  return kind
end

local function made(kind, state)
  local object = newproxy(kind.template)
  state.kind = kind
  states[object] = state
  return object
end

local function state_of(object, kind)
  local state = states[object]
  if not state or state.kind ~= kind then error("LuaSQL: " .. kind.name .. " expected", 3) end
  return state
end

local function open(object, kind)
  local state = states[object]
  if not state or state.kind ~= kind then error("LuaSQL: " .. kind.name .. " expected", 3) end
  if state.closed then error("LuaSQL: " .. kind.name .. " is closed", 3) end
  return state
end

local function closing(object, kind, label)
  local state = state_of(object, kind)
  if state.closed then return false, label .. " is already closed" end
  state.closed = true
  return true, nil, state
end

local Environment, Connection, Cursor = {}, {}, {}
local environment = kind_of("environment", Environment)
local connection = kind_of("connection", Connection)
local cursor = kind_of("cursor", Cursor)

-- Cursors.

function Cursor.fetch(self, into, mode)
  local state = open(self, cursor)
  state.at = state.at + 1
  local row = state.rows[state.at]
  local names = state.names
  if not row then
    state.at = #state.rows
    return nil
  end
  if into == nil then return unpack(row, 1, #names) end
  mode = mode or "n"
  for at = 1, #names do
    if mode:find("n", 1, true) then into[at] = row[at] end
    if mode:find("a", 1, true) then into[names[at]] = row[at] end
  end
  return into
end

function Cursor.getcolnames(self) return open(self, cursor).names end

function Cursor.getcoltypes(self) return open(self, cursor).types end

function Cursor.numrows(self) return #open(self, cursor).rows end

function Cursor.seek(self, at)
  local state = open(self, cursor)
  state.at = math.max(0, math.min(at, #state.rows))
end

function Cursor.nextresult(self)
  open(self, cursor)
  return false, -1
end

function Cursor.hasnextresult(self)
  open(self, cursor)
  return false
end

function Cursor.close(self)
  local ok, words, state = closing(self, cursor, "Cursor")
  if state then state.rows = {} end
  return ok, words
end

-- Connections.

local function ask(state, sql)
  local ok, what, id = wait("execute", state.id, sql)
  if not ok then return nil, what end
  if type(what) == "number" then state.insert_id = id end
  return what
end

function Connection.execute(self, sql)
  local state = open(self, connection)
  if type(sql) ~= "string" then error("LuaSQL: a statement must be a string", 2) end
  local what, words = ask(state, sql)
  if what == nil then return nil, "LuaSQL: error executing query. MySQL: " .. words end
  if type(what) == "number" then return what end
  what = packed.decode(what)
  return made(cursor, { rows = what.rows, names = what.names, types = what.types, at = 0 })
end

function Connection.commit(self) return ask(open(self, connection), "COMMIT") ~= nil end

function Connection.rollback(self) return ask(open(self, connection), "ROLLBACK") ~= nil end

function Connection.setautocommit(self, on)
  return ask(open(self, connection), "SET autocommit = " .. (on and 1 or 0)) ~= nil
end

function Connection.ping(self)
  local state = state_of(self, connection)
  return not state.closed and ask(state, "DO 1") ~= nil
end

function Connection.getlastautoid(self) return open(self, connection).insert_id or 0 end

local ESCAPES = {
  ["\0"] = "\\0", ["\n"] = "\\n", ["\r"] = "\\r", ["\\"] = "\\\\", ["'"] = "\\'", ['"'] = '\\"', ["\26"] = "\\Z",
}

function Connection.escape(self, text)
  open(self, connection)
  return (text:gsub("[%z\n\r\\'\"\26]", ESCAPES))
end

function Connection.close(self)
  local ok, words, state = closing(self, connection, "Connection")
  if state then native.close(state.id) end
  return ok, words
end

-- A connection that nobody has any more is given back when its session has its turn.
local function drop(state)
  local unused = state.session.unused
  unused[#unused + 1] = state.id
end

-- Environments.

function Environment.connect(self, schema, user, password, host, port)
  open(self, environment)
  local ok, id = wait("connect", schema, user, password, host, tonumber(port))
  if not ok then return nil, "LuaSQL: error connecting to database. MySQL: " .. id end
  return made(connection, { id = id, session = session(), drop = drop })
end

function Environment.close(self)
  local ok, words = closing(self, environment, "Environment")
  return ok, words
end

local M = {
  mysql = function() return made(environment, {}) end,
  _COPYRIGHT = "Written for Millrace",
  _DESCRIPTION = "LuaSQL's interface to MySQL, over the proxy's connections",
  _VERSION = "LuaSQL 2.1.1",
  _MYSQLVERSION = "8.0",
  _CLIENTVERSION = "8.0",
}
_G.luasql = _G.luasql or {}
_G.luasql.mysql = M.mysql
return M
