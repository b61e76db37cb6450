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

local function answered(words)
  if words then return refuse("(auto-config) " .. words) end
  proxy.response = { type = proxy.MYSQLD_PACKET_OK, affected_rows = 0 }
  return proxy.PROXY_SEND_RESULT
end

local PLAIN = { number = true, string = true, boolean = true }

-- Writes all options to a file of the script's, as Lua. Returns nothing, or why that cannot be.
function M.save(of, name)
  local config, lines = proxy.global.config, { "return {" }
  for _, module in ipairs(sorted(config)) do
    if type(module) == "string" and type(config[module]) == "table" then
      lines[#lines + 1] = ("  [%q] = {"):format(module)
      for _, option in ipairs(sorted(config[module])) do
        local value = config[module][option]
        if type(option) == "string" and PLAIN[type(value)] then
          local text = type(value) == "string" and ("%q"):format(value) or tostring(value)
          lines[#lines + 1] = ("    [%q] = %s,"):format(option, text)
        end
      end
      lines[#lines + 1] = "  },"
    end
  end
  lines[#lines + 1] = "}\n"
  local file, words = io.open(name or of, "w")
  if not file then return words end
  file:write(table.concat(lines, "\n"))
  file:close()
end

-- Sets the options that a file says.
function M.load(of, name)
  local chunk, words = loadfile(name or of)
  if not chunk then return words end
  local ok, made = pcall(setfenv(chunk, {}))
  if not ok then return made end
  if type(made) ~= "table" then return "the file returns a " .. type(made) .. ", and no table" end
  local config = proxy.global.config
  for module, options in pairs(made) do
    if type(options) ~= "table" then return tostring(module) .. " is no table in the file" end
    config[module] = config[module] or {}
    for option, value in pairs(options) do config[module][option] = value end
  end
end

-- The file that a client names. It is one of the script's first folder: any client may say this.
local function file_of(words, verb)
  local name = words:match("^" .. verb .. "%s+(.+)$")
  return name and (name:match('^"([^"/]+)"$') or name:match("^'([^'/]+)'$"))
end

local SAVE = "[Ss][Aa][Vv][Ee]%s+[Cc][Oo][Nn][Ff][Ii][Gg]%s+[Ii][Nn][Tt][Oo]"
local LOAD = "[Ll][Oo][Aa][Dd]%s+[Cc][Oo][Nn][Ff][Ii][Gg]%s+[Ff][Rr][Oo][Mm]"

-- Answers a statement that is about options: by a script's own name for it, or as a method.
function M.handle(of, cmd)
  cmd = cmd or of
  if type(cmd) ~= "table" or cmd.type ~= proxy.COM_QUERY or #cmd.query > TEXT_MAX then return nil end
  local words = cmd.query:match("^%s*[Pp][Rr][Oo][Xx][Yy]%s+(.-)%s*$")
  if not words then return nil end
  local upper = words:upper():gsub("%s+", " ")
  if upper == "SHOW CONFIG" then return show() end
  local saved, loaded = file_of(words, SAVE), file_of(words, LOAD)
  if saved then return answered(M.save(saved)) end
  if loaded then return answered(M.load(loaded)) end
  if upper:match("^SAVE CONFIG INTO ") or upper:match("^LOAD CONFIG FROM ") then
    return answered("the name of a file in quotes is wanted, without a folder")
  end
  local name, option, text = words:match("^[Ss][Ee][Tt]%s+[Gg][Ll][Oo][Bb][Aa][Ll]%s+([%w_]+)%.([%w_]+)%s*=%s*(.+)$")
  if name then return set(name, option, text) end
end

setmetatable(proxy.global.config, { __index = M })
return M
