-- `io`, `os` and `debug`, as far as a script reaches: lines go to the log, files to a thread of their own,
-- and what is not to be had says so by its name.
local native, session, wait, raw_loadstring, newproxy = ...
local type, tostring, tonumber, error, select, setmetatable = type, tostring, tonumber, error, select, setmetatable
local find, sub, match, concat = string.find, string.sub, string.match, table.concat

-- A library whose other functions refuse by their names.
local function rest_refuses(name, of, why)
  return setmetatable(of, {
    __index = function(_, key)
      if type(key) ~= "string" then return nil end
      return function() error(name .. "." .. key .. " is not available to this script: " .. why, 2) end
    end,
  })
end

-- What io.write has begun and not ended is kept until its line ends.
local LINE_LEN_MAX = 8192

local function log(line) native.log(line) end

local function begun(of)
  local before = of and of.line
  if before then of.line = nil end
  return before or ""
end

local function say(text)
  local of = session()
  if not of then return end
  text = begun(of) .. text
  local from = 1
  while true do
    local at = find(text, "\n", from, true)
    if not at then break end
    log(sub(text, from, at - 1))
    from = at + 1
  end
  local rest = sub(text, from)
  if #rest > LINE_LEN_MAX then
    log(rest)
  elseif rest ~= "" then
    of.line = rest
  end
end

local function flush()
  local rest = begun(session())
  if rest ~= "" then log(rest) end
end

local function joined(...)
  local count = select("#", ...)
  if count == 1 then return (tostring((...))) end
  local words = { ... }
  for at = 1, count do words[at] = tostring(words[at]) end
  return concat(words, "\t", 1, count)
end

local function print(...)
  log(begun(session()) .. joined(...))
end

-- Values that a `write` gets, as one text.
local function written(at, ...)
  local count = select("#", ...)
  local texts = { ... }
  for n = 1, count do
    local kind = type(texts[n])
    if kind ~= "string" and kind ~= "number" then
      error("bad argument #" .. n + at - 1 .. " to 'write' (string expected, got " .. kind .. ")", 3)
    end
  end
  return concat(texts)
end

-- Files. A script sees a userdata; what it is stands here.
local states = setmetatable({}, { __mode = "k" })
local File = {}
local meta
local handle = newproxy(true)
do
  meta = getmetatable(handle)
  meta.__index = File
  meta.__tostring = function(of)
    local state = states[of]
    return not state and "file (none)" or state.is_closed and "file (closed)" or "file (" .. state.name .. ")"
  end
  meta.__metatable = false
end

local function opened(state)
  local of = newproxy(handle)
  states[of] = state
  return of
end

local function state_of(of, name)
  local state = type(of) == "userdata" and states[of]
  if not state then error("bad argument #1 to '" .. name .. "' (FILE* expected, got " .. type(of) .. ")", 3) end
  if state.is_closed then error("attempt to use a closed file", 3) end
  return state
end

local function asked(...)
  local ok, said = wait("file", ...)
  if ok then return said end
  return nil, said
end

-- What a file that is read has, from `at` on.
local function load(state)
  if state.text then return true end
  local text, words = asked("read", state.name)
  if not text then return nil, words end
  state.text, state.at = text, 1
  return true
end

local function line_of(state, keeps)
  local text, at = state.text, state.at
  if at > #text then return nil end
  local stop = find(text, "\n", at, true)
  state.at = stop and stop + 1 or #text + 1
  return sub(text, at, stop and (keeps and stop or stop - 1) or #text)
end

local function piece_of(state, format)
  local text, at = state.text, state.at
  if type(format) == "number" then
    if at > #text then return nil end
    state.at = at + format
    return sub(text, at, at + format - 1)
  end
  local kind = type(format) == "string" and match(format, "^%*?([lLan])")
  if kind == "a" then
    state.at = #text + 1
    return sub(text, at)
  elseif kind == "n" then
    local stop, _, number = select(2, find(text, "^%s*()([+-]?[%w.]+)", at))
    if not stop or not tonumber(number) then return nil end
    state.at = stop + 1
    return tonumber(number)
  elseif kind then
    return line_of(state, kind == "L")
  end
  error("bad argument #1 to 'read' (invalid format)", 4)
end

local function read(state, ...)
  if not state.reads then return nil, "Bad file descriptor", 9 end
  local ok, words = load(state)
  if not ok then return nil, words end
  local count = select("#", ...)
  if count == 0 then return line_of(state) end
  local got = {}
  for n = 1, count do
    got[n] = piece_of(state, (select(n, ...)))
    if got[n] == nil then return unpack(got, 1, n) end
  end
  return unpack(got, 1, count)
end

function File.write(of, ...)
  local state = state_of(of, "write")
  local text = written(1, ...)
  if state.says then
    say(text)
    return true
  end
  if not state.writes then return nil, "Bad file descriptor", 9 end
  state.text, state.len = nil, (state.len or 0) + #text
  local words = native.append(state.name, text)
  if words then return nil, words end
  return true
end

function File.read(of, ...) return read(state_of(of, "read"), ...) end

function File.lines(of)
  local state = state_of(of, "lines")
  if not state.reads then error("the file is not open for reading", 2) end
  return function()
    if state.is_closed then error("file is already closed", 2) end
    return (read(state))
  end
end

function File.flush(of)
  if state_of(of, "flush").says then flush() end
  return true
end

function File.close(of)
  local state = state_of(of, "close")
  if state.says then
    flush()
  else
    state.is_closed, state.text = true, nil
  end
  return true
end

function File.setvbuf(of)
  state_of(of, "setvbuf")
  return true
end

function File.seek(of, whence, by)
  local state = state_of(of, "seek")
  if type(whence) == "number" then whence, by = "cur", whence end
  whence, by = whence or "cur", by or 0
  if not state.reads then
    -- What is written stands at the end.
    if state.says or whence == "set" then return nil, "Illegal seek", 29 end
    return (state.len or 0) + by
  end
  local ok, words = load(state)
  if not ok then return nil, words end
  local from = whence == "set" and 0 or whence == "end" and #state.text or state.at - 1
  if from + by < 0 then return nil, "Invalid argument", 22 end
  state.at = from + by + 1
  return from + by
end

-- io.

local out, err = opened({ name = "stdout", says = true }), opened({ name = "stderr", says = true })
local input = opened({ name = "stdin", reads = true, text = "", at = 1 })

-- A file that does not stand where its name says is named in the log, once for a name.
local told, told_count = {}, 0

local function tell_of_place(name, does)
  local stands, words = native.place(name)
  if words then return words end
  if not stands and sub(name, 1, 1) == "/" and not told[name] and told_count < 1000 then
    told[name], told_count = true, told_count + 1
    log("the file " .. name .. " is " .. does .. " below script-logs in the data directory: the column `folders` of "
      .. "its row in mysql_scripts allows other places")
  end
end

local MODES = {
  r = { reads = true }, w = { writes = true, empties = true }, a = { writes = true },
  ["w+"] = { writes = true, reads = true, empties = true }, ["a+"] = { writes = true, reads = true },
}

local function open(name, mode, at)
  if type(name) == "number" then name = tostring(name) end
  if type(name) ~= "string" then
    error("bad argument #1 to 'open' (string expected, got " .. type(name) .. ")", at + 1)
  end
  mode = mode == nil and "r" or tostring(mode):gsub("b", "", 1)
  if mode == "r+" then return nil, name .. ": a script writes at the end of a file alone: open it with a, a+, w or w+", 22 end
  local of = MODES[mode]
  if not of then return nil, name .. ": Invalid argument", 22 end
  local words = tell_of_place(name, of.writes and "written" or "looked for")
  if words then return nil, words, 22 end
  local state = { name = name, reads = of.reads, writes = of.writes }
  if of.empties then native.empty(name) end
  if not of.writes then
    local ok, why = load(state)
    if not ok then return nil, name .. ": " .. why, 2 end
  end
  return opened(state)
end

local io = { stdout = out, stderr = err, stdin = input }
local default = { input = input, output = out }

function io.open(name, mode) return open(name, mode, 1) end

function io.write(...)
  if default.output == out then
    say(written(1, ...))
    return true
  end
  return default.output:write(...)
end

function io.read(...) return default.input:read(...) end

function io.flush() return default.output:flush() end

function io.close(of) return (of or default.output):close() end

local function kept(which, mode)
  return function(of)
    if type(of) == "string" then
      local made, words = open(of, mode, 1)
      if not made then error(words, 2) end
      default[which] = made
    elseif of ~= nil then
      state_of(of, which)
      default[which] = of
    end
    return default[which]
  end
end

io.input, io.output = kept("input", "r"), kept("output", "w")

function io.lines(name)
  if name == nil then return default.input:lines() end
  local of, words = open(name, "r", 1)
  if not of then error(words, 2) end
  return of:lines()
end

function io.type(of)
  local state = type(of) == "userdata" and states[of]
  return state and (state.is_closed and "closed file" or "file") or nil
end

function io.popen()
  error("io.popen is not available to this script: it starts no programs. m.http of require('millrace') asks others, "
    .. "luasql.mysql asks servers", 2)
end

local temporary = 0

function os.tmpname()
  temporary = temporary + 1
  return "tmp/lua_" .. native.pid() .. "_" .. temporary
end

function io.tmpfile() return open(os.tmpname(), "w+", 1) end

rest_refuses("io", io, "Lua 5.1 has no such function")

-- os.

local function done(...)
  local said, words = asked(...)
  if said then return true end
  return nil, tostring((select(2, ...))) .. ": " .. words, 2
end

function os.remove(name)
  local words = tell_of_place(tostring(name), "looked for")
  if words then return nil, words, 22 end
  return done("remove", tostring(name))
end

function os.rename(from, to)
  local words = tell_of_place(tostring(from), "looked for") or tell_of_place(tostring(to), "written")
  if words then return nil, words, 22 end
  return done("rename", tostring(from), tostring(to))
end

local SECONDS = { [""] = 1, s = 1, m = 60, h = 3600, d = 86400 }

function os.execute(command)
  if command == nil then return 0 end
  local number, unit = match(tostring(command), "^%s*sleep%s+([%d.]+)([smhd]?)%s*$")
  if not tonumber(number) then
    error("os.execute is not available to this script: it starts no programs; `sleep` with a number of seconds is the "
      .. "only one that it may name. m.http of require('millrace') asks others, and the table scheduler starts programs", 2)
  end
  wait("sleep", tonumber(number) * SECONDS[unit] * 1000000)
  return 0
end

function os.exit()
  error("os.exit is not available to this script: it does not end the proxy. proxy.connection.connection_close = true "
    .. "ends its session", 2)
end

-- Settings of the script's row come first: there an operator says what the environment does not.
function os.getenv(name)
  if type(name) ~= "string" then
    error("bad argument #1 to 'getenv' (string expected, got " .. type(name) .. ")", 2)
  end
  local set = native.setting(name)
  if set ~= nil then return tostring(set) end
  return native.environment(name)
end

function os.setlocale(locale)
  return (locale == nil or locale == "" or locale == "C" or locale == "POSIX") and "C" or nil
end

-- debug.

local debug = {}

function debug.traceback(first, ...)
  local words, level = first, (...)
  if type(first) == "thread" then words, level = ... end
  if words ~= nil and type(words) ~= "string" and type(words) ~= "number" then return words end
  local said = native.traceback(words and tostring(words), (tonumber(level) or 1) + 1)
  return said
end

function debug.getinfo(of, ...)
  if type(of) == "thread" then of = ... end
  if type(of) == "function" then return native.described(of) end
  if type(of) ~= "number" then error("bad argument #1 to 'getinfo' (function or level expected)", 2) end
  if of < 0 then return nil end
  local found = native.stack(of + 1)
  return found
end

function debug.getmetatable(of) return getmetatable(of) end

rest_refuses("debug", debug, "it reaches other scripts")

function string.dump()
  error("string.dump is not available to this script: compiled code is not loaded", 2)
end

-- A text that is read and compiled.
local function compiled(name)
  if type(name) ~= "string" then error("the name of a file is wanted", 3) end
  local of, words = open(name, "r", 2)
  if not of then return nil, "cannot open " .. words end
  return raw_loadstring(of:read("*a"), "@" .. name)
end

function _G.loadfile(name)
  local chunk, words = compiled(name)
  return chunk, words
end

function _G.dofile(name)
  local chunk, words = compiled(name)
  if not chunk then error(words, 2) end
  return chunk()
end

_G.io, _G.debug, _G.print = io, debug, print

return { flush = flush, compiled = compiled }
