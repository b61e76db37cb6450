-- Lua 5.1's own library as scripts know it, as far as it must be ours: what could block a core, end the
-- process or reach other scripts is bounded here.
local native = ...
local type, error, select, getmetatable, rawget, pairs = type, error, select, getmetatable, rawget, pairs
local find = string.find

string.gfind = string.gmatch
math.mod = math.fmod
table.setn = function() end

local function wants(name, kind, ...)
  local given = select("#", ...) > 0 and type((...)) or "no value"
  if kind and given ~= kind or given == "no value" then
    error("bad argument #1 to '" .. name .. "' (" .. (kind or "value") .. " expected, got " .. given .. ")", 3)
  end
end

-- Texts that are compiled.

-- A compiler is not interrupted.
local TEXT_LEN_MAX = 4 * 1024 * 1024
local raw_loadstring, concat = loadstring, table.concat

local function compiled(text, name)
  if #text > TEXT_LEN_MAX then return nil, "a text of more than 4 MiB is not compiled" end
  if find(text, "arg", 1, true) then text = native.with_arguments(text) end
  return raw_loadstring(text, name)
end

-- Compiled code could be anything: only text is loaded.
function _G.loadstring(text, name)
  if type(text) ~= "string" then return raw_loadstring(text, name) end
  if text:byte() == 27 then return nil, "compiled code is not loaded" end
  return compiled(text, name)
end
local loadstring = _G.loadstring

function _G.load(chunk, name)
  if type(chunk) ~= "function" then return loadstring(chunk, name) end
  local pieces = {}
  for piece in chunk do
    if piece == "" then break end
    pieces[#pieces + 1] = piece
  end
  return loadstring(concat(pieces), name)
end

-- Calls that catch errors, and coroutines.

-- A hook whose time is over does not go on because its script has caught the error.
local function checked(ok, ...)
  if not ok and native.is_over() then error("the hook has run for too long", 0) end
  return ok, ...
end

local raw_pcall, raw_xpcall, raw_resume = pcall, xpcall, coroutine.resume
local raw_yield, create = coroutine.yield, coroutine.create

function _G.pcall(...)
  if select("#", ...) == 0 then wants("pcall") end
  return checked(raw_pcall(...))
end

-- One that has handlers within handlers would go on for as many as there are.
local function in_time(handler)
  return function(...)
    if native.is_over() then return (...) end
    return handler(...)
  end
end

function _G.xpcall(...)
  local of, handler = ...
  if select("#", ...) < 2 then error("bad argument #2 to 'xpcall' (value expected)", 2) end
  if type(handler) == "function" then handler = in_time(handler) end
  return checked(raw_xpcall(of, handler, select(3, ...)))
end

-- What is waited for inside of a script's own coroutines passes through them.
local WAIT = {}

local function through(co, ok, mark, ...)
  if ok and mark == WAIT then return through(co, raw_resume(co, raw_yield(WAIT, ...))) end
  return checked(ok, mark, ...)
end

-- Coroutines within one another take of the stack of the core's thread, which has an end.
function coroutine.resume(...)
  if type((...)) ~= "thread" then wants("resume", "thread", ...) end
  if native.is_deep() then return false, "C stack overflow" end
  return through((...), raw_resume(...))
end

local function or_raise(ok, ...)
  if not ok then error((...), 0) end
  return ...
end

function coroutine.wrap(...)
  if type((...)) ~= "function" then wants("wrap", "function", ...) end
  local co = create((...))
  return function(...) return or_raise(coroutine.resume(co, ...)) end
end

-- table.sort: Lua's own is not interrupted, and nothing can wait in the function that compares.

local raw_sort = table.sort
-- So many numbers or texts take no time.
local AT_ONCE_MAX = 10000
local RUN = 8

local function smaller(a, b) return a < b end

-- Sorts short runs of `of` in itself.
local function sort_runs(of, count, less)
  for low = 1, count, RUN do
    local high = low + RUN - 1
    if high > count then high = count end
    for at = low + 1, high do
      local value, to = of[at], at - 1
      while to >= low and less(value, of[to]) do
        of[to + 1] = of[to]
        to = to - 1
      end
      of[to + 1] = value
    end
  end
end

-- Merges the runs before and from `middle` on; both ends are behind their last one.
local function merge(from, to, low, middle, high, less)
  local left, right = low, middle
  for at = low, high - 1 do
    if left < middle and (right >= high or not less(from[right], from[left])) then
      to[at], left = from[left], left + 1
    else
      to[at], right = from[right], right + 1
    end
  end
end

local function sort(list, count, less)
  -- The list stays as it is until all is compared.
  local from, to, width = {}, {}, RUN
  for at = 1, count do from[at] = list[at] end
  sort_runs(from, count, less)
  while width < count do
    for low = 1, count, 2 * width do
      local middle, high = low + width, low + 2 * width
      if middle > count + 1 then middle = count + 1 end
      if high > count + 1 then high = count + 1 end
      merge(from, to, low, middle, high, less)
    end
    from, to, width = to, from, 2 * width
  end
  for at = 1, count do list[at] = from[at] end
end

function table.sort(...)
  local list, less = ...
  if type(list) ~= "table" then wants("sort", "table", ...) end
  if less ~= nil and type(less) ~= "function" then
    error("bad argument #2 to 'sort' (function expected, got " .. type(less) .. ")", 2)
  end
  local count = #list
  local kind = type(list[1])
  if not less and count <= AT_ONCE_MAX and (kind == "number" or kind == "string") then return raw_sort(list) end
  sort(list, count, less or smaller)
end

-- Userdata. `__gc` would run where nothing can end it, so metatables of scripts stand behind ones of ours.

local raw_newproxy = newproxy

local function of_two(meta, shadow, name, words)
  meta[name] = function(a, b)
    local does = rawget(shadow, name)
    if does == nil then error(words, 2) end
    return does(a, b)
  end
end

local function forwards(meta, shadow)
  meta.__metatable = shadow
  for _, name in pairs({ "__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm" }) do
    of_two(meta, shadow, name, "attempt to perform arithmetic on a userdata value")
  end
  of_two(meta, shadow, "__concat", "attempt to concatenate a userdata value")
  of_two(meta, shadow, "__lt", "attempt to compare two userdata values")
  of_two(meta, shadow, "__le", "attempt to compare two userdata values")
  of_two(meta, shadow, "__len", "attempt to get length of a userdata value")
  function meta.__eq(a, b)
    local does = rawget(shadow, "__eq")
    return does ~= nil and does(a, b)
  end
  function meta.__tostring(of)
    local does = rawget(shadow, "__tostring")
    return does ~= nil and does(of) or "userdata"
  end
  function meta.__index(of, key)
    local does = rawget(shadow, "__index")
    if does == nil then error("attempt to index a userdata value", 2) end
    if type(does) == "function" then return does(of, key) end
    return does[key]
  end
  function meta.__newindex(of, key, value)
    local does = rawget(shadow, "__newindex")
    if does == nil then error("attempt to index a userdata value", 2) end
    if type(does) == "function" then return does(of, key, value) end
    does[key] = value
  end
  function meta.__call(of, ...)
    local does = rawget(shadow, "__call")
    if does == nil then error("attempt to call a userdata value", 2) end
    return does(of, ...)
  end
end

function _G.newproxy(of)
  local made = raw_newproxy(of)
  if of == true then forwards(getmetatable(made), {}) end
  return made
end

-- All sessions of a script on a core have one VM: what is the VM's is no script's.
do
  local collectgarbage, setfenv, setmetatable = collectgarbage, setfenv, setmetatable
  local REAL = { collect = true, count = true, step = true }

  function _G.collectgarbage(what, by)
    what = what == nil and "collect" or what
    if not REAL[what] then return 0 end
    return collectgarbage(what, by)
  end

  function _G.setfenv(of, env)
    if of == 0 then error("setfenv(0, …) is not available to this script: all scripts of a core have one thread", 2) end
    local of_ours = native.is_ours(type(of) == "number" and of + 1 or of)
    if of_ours then error("setfenv changes functions of scripts alone", 2) end
    local changed = setfenv(type(of) == "number" and of + 1 or of, env)
    return changed
  end

  -- A metatable of _G would be in the way of all.
  function _G.setmetatable(...)
    if (...) == _G then return _G end
    return setmetatable(...)
  end
end

-- Looks at the clock whenever the garbage collector has gone round: instructions that make large texts
-- are few, and take long.
local is_ending = false
local function sentinel()
  getmetatable(raw_newproxy(true)).__gc = function()
    if is_ending then return end
    sentinel()
    native.collected()
  end
end
sentinel()

-- What it would call is gone while the VM ends.
local function ends() is_ending = true end

return {
  WAIT = WAIT, loadstring = loadstring, compiled = compiled, raw_loadstring = raw_loadstring, pcall = raw_pcall,
  resume = raw_resume, yield = raw_yield, newproxy = raw_newproxy, ends = ends,
}
