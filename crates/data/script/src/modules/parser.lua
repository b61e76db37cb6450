-- proxy.parser: which tables a statement reads and writes, by its tokens.
local proxy = ...
local M = {}

-- A name with its schema: the client's, where none is said.
function M.tablename_expand(name, schema)
  if not schema then schema = proxy.connection.client.default_db end
  return (schema and schema .. "." or "") .. name
end

-- What ends the list of tables of a SELECT or DELETE.
local ENDS = { TK_SQL_WHERE = true, TK_SQL_GROUP = true, TK_SQL_ORDER = true, TK_SQL_LIMIT = true }
local WRITES = { TK_SQL_INSERT = true, TK_SQL_UPDATE = true, TK_SQL_DELETE = true, TK_SQL_REPLACE = true }
local DEFINES = { TK_SQL_CREATE = true, TK_SQL_DROP = true, TK_SQL_ALTER = true, TK_SQL_RENAME = true }

-- Tokens that mean something, one behind the other.
local function reader(tokens)
  local at, list = 0, {}
  for i = 1, #tokens do
    local name = tokens[i].token_name
    if name ~= "TK_COMMENT" then list[#list + 1] = { name, tokens[i].text } end
  end
  local self = {}
  function self.peek(ahead) return (list[at + (ahead or 1)] or {})[1] end
  function self.next()
    at = at + 1
    local one = list[at] or {}
    return one[1], one[2]
  end
  return self
end

-- A table's name that begins here, with its schema.
local function name_at(read)
  local _, first = read.next()
  if read.peek() ~= "TK_DOT" then return M.tablename_expand(first) end
  read.next()
  local _, second = read.next()
  return M.tablename_expand(second or "", first)
end

-- The list behind FROM: commas, joins, aliases; what stands in braces is skipped.
local function list(read, found, how)
  local awaits, depth = true, 0
  while read.peek() do
    local kind = read.peek()
    if kind == "TK_OBRACE" or kind == "TK_CBRACE" then
      depth = depth + (kind == "TK_OBRACE" and 1 or -1)
      if depth < 0 then return end
      awaits = false
      read.next()
    elseif depth > 0 then
      read.next()
    elseif ENDS[kind] or kind == "TK_SEMICOLON" then
      return
    elseif kind == "TK_COMMA" or kind == "TK_SQL_JOIN" then
      awaits = true
      read.next()
    elseif kind == "TK_SQL_AS" then
      read.next()
      read.next()
    elseif kind == "TK_LITERAL" and awaits then
      found[name_at(read)] = how
      awaits = false
    else
      read.next()
    end
  end
end

-- Goes on to this token, over what stands before it.
local function seek(read, wanted)
  while read.peek() do
    if read.next() == wanted then return true end
  end
  return false
end

function M.get_tables(tokens)
  local found, read = {}, reader(tokens)
  local kind = read.next()
  if kind == "TK_SQL_SELECT" or kind == "TK_SQL_DELETE" then
    local how = kind == "TK_SQL_SELECT" and "read" or "write"
    if seek(read, "TK_SQL_FROM") then list(read, found, how) end
  elseif kind == "TK_SQL_UPDATE" then
    while read.peek() and read.peek() ~= "TK_SQL_SET" do
      if read.peek() == "TK_LITERAL" then found[name_at(read)] = "write" else read.next() end
    end
  elseif WRITES[kind] then
    if seek(read, "TK_SQL_INTO") and (read.peek() == "TK_LITERAL" or read.peek() == "TK_FUNCTION") then
      found[name_at(read)] = "write"
    end
  elseif DEFINES[kind] then
    if seek(read, "TK_SQL_TABLE") then
      while read.peek() and read.peek() ~= "TK_LITERAL" do read.next() end
      if read.peek() then found[name_at(read)] = "write" end
    end
  elseif kind then
    print("(parser) unhandled token: " .. kind)
  end
  return found
end

return M
