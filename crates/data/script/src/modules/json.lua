-- JSON, by the names that modules for it have: `encode` and `decode` of json, cjson and dkjson.
-- <https://www.rfc-editor.org/rfc/rfc8259>
local _, native, _, _, newproxy = ...
local type, tostring, tonumber, error, pairs, select = type, tostring, tonumber, error, pairs, select
local format, find, sub, byte, char, gsub, match = string.format, string.find, string.sub, string.byte, string.char, string.gsub, string.match
local concat, floor = table.concat, math.floor

local DEPTH_MAX = 200

-- What stands for null in tables, where nil would be nothing.
local null = newproxy(false)

local SHORT = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function escaped(c) return SHORT[c] or format("\\u%04x", byte(c)) end

local function quoted(text) return '"' .. gsub(text, '[%c"\\\127]', escaped) .. '"' end

-- The length of a table whose keys are 1 to that number, else nil.
local function length(of)
  local count, most = 0, 0
  for key in pairs(of) do
    if type(key) ~= "number" or key < 1 or key % 1 ~= 0 then return nil end
    count = count + 1
    if key > most then most = key end
  end
  if count == 0 or most > 2 * count + 10 then return nil end
  return most
end

local write

local function write_table(of, out, depth)
  if depth > DEPTH_MAX then error("json: tables are nested more than " .. DEPTH_MAX .. " deep", 0) end
  local most = length(of)
  if most then
    out[#out + 1] = "["
    for at = 1, most do
      if at > 1 then out[#out + 1] = "," end
      write(of[at], out, depth)
    end
    out[#out + 1] = "]"
    return
  end
  local sign = "{"
  for key, value in pairs(of) do
    if type(key) ~= "string" and type(key) ~= "number" then error("json: a key is a " .. type(key), 0) end
    out[#out + 1] = sign .. quoted(tostring(key)) .. ":"
    write(value, out, depth)
    sign = ","
  end
  out[#out + 1] = sign == "{" and "{}" or "}"
end

function write(value, out, depth)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = quoted(value)
  elseif kind == "number" then
    if value ~= value or value - value ~= 0 then error("json: a number is not finite", 0) end
    out[#out + 1] = value == floor(value) and format("%.0f", value) or format("%.14g", value)
  elseif kind == "boolean" then
    out[#out + 1] = tostring(value)
  elseif kind == "table" then
    write_table(value, out, depth + 1)
  elseif value == nil or value == null then
    out[#out + 1] = "null"
  else
    error("json: a " .. kind .. " cannot be written", 0)
  end
end

local function encode(value)
  local out = {}
  write(value, out, 0)
  return concat(out)
end

-- Reading.

local function fails(at, words) error("json: " .. words .. " at byte " .. at, 0) end

local function behind_blanks(text, at) return find(text, "[^ \t\r\n]", at) or #text + 1 end

-- A code point as UTF-8.
local function utf8(code)
  if code < 0x80 then return char(code) end
  if code < 0x800 then return char(0xC0 + floor(code / 0x40), 0x80 + code % 0x40) end
  if code < 0x10000 then return char(0xE0 + floor(code / 0x1000), 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40) end
  return char(0xF0 + floor(code / 0x40000), 0x80 + floor(code / 0x1000) % 0x40, 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
end

local MEANT = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

-- What stands behind a backslash, and where it ends.
local function unescaped(text, at)
  local c = sub(text, at, at)
  if c ~= "u" then
    return MEANT[c] or fails(at, "an escape that there is not"), at + 1
  end
  local code = tonumber(match(text, "^%x%x%x%x", at + 1) or fails(at, "an escape that there is not"), 16)
  if code >= 0xD800 and code < 0xDC00 then
    local low = tonumber(match(text, "^\\u([dD][c-fC-F]%x%x)", at + 5) or "", 16)
    if low then return utf8(0x10000 + (code - 0xD800) * 0x400 + low - 0xDC00), at + 11 end
  end
  return utf8(code), at + 5
end

local function read_text(text, at)
  local from, out = at + 1, {}
  while true do
    local stop = find(text, '["\\]', from) or fails(at, "a text that does not end")
    out[#out + 1] = sub(text, from, stop - 1)
    if byte(text, stop) == 34 then return concat(out), stop + 1 end
    out[#out + 1], from = unescaped(text, stop + 1)
  end
end

local WORDS = { { "true", true }, { "false", false }, { "null", null } }

local read

local function read_list(text, at, depth)
  local list, count = {}, 0
  at = behind_blanks(text, at + 1)
  if sub(text, at, at) == "]" then return list, at + 1 end
  while true do
    count = count + 1
    list[count], at = read(text, at, depth)
    at = behind_blanks(text, at)
    local sign = sub(text, at, at)
    if sign == "]" then return list, at + 1 end
    if sign ~= "," then fails(at, "no comma in a list") end
    at = at + 1
  end
end

local function read_object(text, at, depth)
  local object, key = {}, nil
  at = behind_blanks(text, at + 1)
  if sub(text, at, at) == "}" then return object, at + 1 end
  while true do
    at = behind_blanks(text, at)
    if sub(text, at, at) ~= '"' then fails(at, "no key") end
    key, at = read_text(text, at)
    at = behind_blanks(text, at)
    if sub(text, at, at) ~= ":" then fails(at, "no colon") end
    object[key], at = read(text, at + 1, depth)
    at = behind_blanks(text, at)
    local sign = sub(text, at, at)
    if sign == "}" then return object, at + 1 end
    if sign ~= "," then fails(at, "no comma in an object") end
    at = at + 1
  end
end

function read(text, at, depth)
  if depth > DEPTH_MAX then fails(at, "more than " .. DEPTH_MAX .. " lists and objects in one another") end
  at = behind_blanks(text, at)
  local sign = sub(text, at, at)
  if sign == "{" then return read_object(text, at, depth + 1) end
  if sign == "[" then return read_list(text, at, depth + 1) end
  if sign == '"' then return read_text(text, at) end
  for _, word in pairs(WORDS) do
    if sub(text, at, at + #word[1] - 1) == word[1] then return word[2], at + #word[1] end
  end
  local number = match(text, "^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  local value = number and tonumber(number)
  if value then return value, at + #number end
  return fails(at, "no value")
end

local function decode(text)
  if type(text) ~= "string" then error("json: a text is wanted, a " .. type(text) .. " was given", 2) end
  local value, at = read(text, 1, 0)
  at = behind_blanks(text, at)
  if at <= #text then fails(at, "something behind the value") end
  return value
end

local M = { encode = encode, decode = decode, null = null, _VERSION = "1" }
function M.new() return M end

-- Functions that give nil and words instead of raising.
local function safe(does)
  return function(...)
    local ok, made = pcall(does, ...)
    if ok then return made end
    return nil, made
  end
end
M.safe = { encode = safe(encode), decode = safe(decode), null = null }
return M
