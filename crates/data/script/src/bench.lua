-- What a script's tests have: a client `t`, a server whose answers the test says, and `equal`.
local native, tests = ...

local function shown(value)
  if type(value) == "string" then return string.format("%q", value) end
  return tostring(value)
end

local function alike(one, other)
  if type(one) ~= "table" or type(other) ~= "table" then return one == other end
  for key, value in pairs(one) do
    if not alike(value, rawget(other, key)) then return false end
  end
  for key in pairs(other) do
    if rawget(one, key) == nil then return false end
  end
  return true
end

local function described(value)
  if type(value) ~= "table" then return shown(value) end
  local parts = {}
  for _, part in ipairs(value) do parts[#parts + 1] = described(part) end
  local count = #parts
  local names = {}
  for key in pairs(value) do
    if type(key) ~= "number" or key < 1 or key > count then names[#names + 1] = key end
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(names) do parts[#parts + 1] = tostring(key) .. " = " .. described(value[key]) end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- Fails the test unless both are the same; of tables all that is in them.
function tests.equal(got, wanted)
  if not alike(got, wanted) then
    error("wanted " .. described(wanted) .. ", got " .. described(got), 2)
  end
end

local function cell(value)
  if type(value) == "boolean" then return value and 1 or 0 end
  return value
end

local TYPES = {
  string = 253, integer = 8, double = 5, decimal = 246, date = 10, time = 11, datetime = 12, timestamp = 7,
  blob = 252, json = 245,
}

-- An answer as a test says it, as the server gives it.
local function response(made)
  if made == nil then return { type = 0 } end
  if made.error then
    local code, state, words = made.error[1], made.error[2], made.error[3]
    return { type = 255, errcode = code or 1105, sqlstate = state or "HY000", errmsg = words or "" }
  end
  if not made.columns then return { type = 0, affected_rows = made.affected_rows, insert_id = made.insert_id } end
  local fields, rows = {}, {}
  for at, column in ipairs(made.columns) do
    local of = type(column) == "table" and column or { name = column }
    local kind = TYPES[of.type or "string"]
    if not kind then error("there is no type '" .. tostring(of.type) .. "'", 0) end
    fields[at] = { name = of.name, type = kind }
  end
  for at, row in ipairs(made.rows or {}) do
    rows[at] = {}
    for column = 1, #fields do rows[at][column] = cell(row[column]) end
  end
  return { type = 0, resultset = { fields = fields, rows = rows } }
end

local Client = {}
Client.__index = Client

-- Answers of the server to statements that contain this text: a table, or a function of the statement.
-- What is said last is asked first.
function Client:answers(text, made)
  table.insert(self.replies, 1, { text = text, made = made })
end

function Client:reply(text)
  for _, reply in ipairs(self.replies) do
    if text:find(reply.text, 1, true) then
      local made = reply.made
      if type(made) == "function" then made = made(text) end
      return response(made)
    end
  end
  return { type = 0 }
end

-- What others say to HTTP calls whose method and address contain this text: a status and a body, or a function of both that
-- returns them. A call that nobody answers has failed.
function Client:called_back(text, status, body)
  table.insert(self.callbacks, 1, { text = text, status = status, body = body })
end

function Client:answered(asked, sent)
  for _, one in ipairs(self.callbacks) do
    if asked:find(one.text, 1, true) then
      if type(one.status) == "function" then return one.status(asked, sent) end
      return one.status or 200, one.body or ""
    end
  end
  error("nobody is there", 0)
end

-- Who the client is: user, schema, client; before the first statement.
function Client:is(facts) native.facts(facts) end

function Client:setting(name, value) native.setting(name, value) end

-- Time passes.
function Client:wait(ms) native.pass(ms) end

-- Sends a statement. Returns what the client gets.
function Client:query(text)
  local answer, words = native.query(self, text)
  if not answer then error(words, 2) end
  return answer
end

-- Prepares a statement and executes it with values.
function Client:execute(text, ...)
  local answer, words = native.execute(self, text, { n = select("#", ...), ... })
  if not answer then error(words, 2) end
  return answer
end

-- A client before a new server.
return function()
  return setmetatable({
    replies = {}, callbacks = {}, sent = {}, routes = {}, asked = {}, called = {}, log = {},
  }, Client)
end
