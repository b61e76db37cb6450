-- proxy.auto-config: options of scripts, shown and set by statements.
local proxy = ...
local M = {}

local TEXT_MAX = 128

local function refuse(words)
  proxy.response = { type = proxy.MYSQLD_PACKET_ERR, errmsg = words }
  return proxy.PROXY_SEND_RESULT
end

local function sorted(of)
  local keys = {}
  for key in pairs(of) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

local function show()
  local rows = {}
  local config = proxy.global.config
  for _, name in ipairs(sorted(config)) do
    if type(config[name]) == "table" then
      for _, option in ipairs(sorted(config[name])) do
        local value = config[name][option]
        rows[#rows + 1] = { name, option, tostring(value), type(value) }
      end
    end
  end
  local fields = {}
  for at, name in ipairs({ "module", "option", "value", "type" }) do
    fields[at] = { name = name, type = proxy.MYSQL_TYPE_STRING }
  end
  proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
  return proxy.PROXY_SEND_RESULT
end

-- A value as it is written: a string in quotes, a number without a fraction, true or false.
local function value_of(text)
  local inside = text:match('^"([^"]*)"$') or text:match("^'([^']*)'$")
  if inside then return inside end
  if text:lower() == "true" then return true end
  if text:lower() == "false" then return false end
  if text:match("^%-?%d+$") then return tonumber(text) end
end

local function set(name, option, text)
  local value = value_of(text)
  if value == nil then return nil end
  local options = proxy.global.config[name]
  if type(options) ~= "table" then return refuse("module not known") end
  -- MySQL Proxy's own words.
  if options[option] == nil then return refuse("option not know") end
  if type(options[option]) ~= type(value) then
    return refuse("(auto-config) expected a " .. type(options[option]) .. ", got " .. type(value))
  end
  options[option] = value
  proxy.response = { type = proxy.MYSQLD_PACKET_OK, affected_rows = 1 }
  return proxy.PROXY_SEND_RESULT
end

local NO_FILES = "(auto-config) files are not available to this script"

-- Answers a statement that is about options: by a script's own name for it, or as a method.
function M.handle(of, cmd)
  cmd = cmd or of
  if type(cmd) ~= "table" or cmd.type ~= proxy.COM_QUERY or #cmd.query > TEXT_MAX then return nil end
  local words = cmd.query:match("^%s*[Pp][Rr][Oo][Xx][Yy]%s+(.-)%s*$")
  if not words then return nil end
  local upper = words:upper():gsub("%s+", " ")
  if upper == "SHOW CONFIG" then return show() end
  if upper:match("^SAVE CONFIG INTO ") or upper:match("^LOAD CONFIG FROM ") then return refuse(NO_FILES) end
  local name, option, text = words:match("^[Ss][Ee][Tt]%s+[Gg][Ll][Oo][Bb][Aa][Ll]%s+([%w_]+)%.([%w_]+)%s*=%s*(.+)$")
  if name then return set(name, option, text) end
end

function M.save() error(NO_FILES, 2) end

function M.load() error(NO_FILES, 2) end

setmetatable(proxy.global.config, { __index = M })
return M
