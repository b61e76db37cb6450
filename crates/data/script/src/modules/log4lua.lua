-- Log4LUA: loggers by category, with levels, patterns and appenders. Nothing is written here: lines
-- go to the proxy's log, texts to files by way of a thread.
local proxy, native, session = ...
local M = {}

local LEVELS = { "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF" }
local DEPTH_MAX = 5

-- Messages.

local shown

local function entries(of, depth)
  local indent = ("  "):rep(depth)
  if depth > DEPTH_MAX then return indent .. "[... more table data ...]" end
  local keys = {}
  for key in pairs(of) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then return a < b end
    return tostring(a) < tostring(b)
  end)
  local lines = {}
  for _, key in ipairs(keys) do
    local value = of[key]
    if type(value) == "table" then
      lines[#lines + 1] = indent .. tostring(key) .. " = {"
      lines[#lines + 1] = entries(value, depth + 1)
      lines[#lines + 1] = indent .. "}"
    else
      lines[#lines + 1] = indent .. tostring(key) .. " = " .. shown(value)
    end
  end
  return table.concat(lines, "\n")
end

function shown(message)
  if type(message) == "table" then return entries(message, 0) end
  if type(message) == "function" then return "[function]" end
  return tostring(message)
end

M.utils = { convertTableToString = function(of) return entries(of, 0) end }

-- Patterns.

local function file_of(path) return path and (path:match("([^/]*)$")) or "n/a" end

-- What a placeholder stands for. The caller is looked for once a message, and only if asked for.
local VALUES = {
  DATE = function() return os.date("%a %b %e %H:%M:%S %Y", (native.wall())) end,
  LEVEL = function(of) return of.level end,
  MESSAGE = function(of) return shown(of.message) end,
  ERROR = function(of) return of.exception ~= nil and tostring(of.exception) or "" end,
  CATEGORY = function(of) return of.logger._category end,
  THREAD = function() return tostring(session() and session().name) end,
  SESSION = function() return tostring(native.client("thread") or "n/a") end,
  FILE = function(of) return file_of(of.caller()[1]) end,
  PATH = function(of) return of.caller()[1] or "n/a" end,
  LINE = function(of) return tostring(of.caller()[2] or "n/a") end,
  METHOD = function(of) return of.caller()[3] or "n/a" end,
  STACKTRACE = function(of) return of.caller()[4] or "n/a" end,
}
VALUES.FUNCTION = VALUES.METHOD

local function filled(pattern, of)
  return (pattern:gsub("%%(%u+)", function(word)
    for len = #word, 1, -1 do
      local value = VALUES[word:sub(1, len)]
      if value then return value(of) .. word:sub(len + 1) end
    end
  end))
end

-- Loggers.

local logger = {
  LOG_LEVELS = {},
  DEFAULT_PATTERN = "[%DATE] [%LEVEL] %MESSAGE at %FILE:%LINE(%METHOD)\n",
}
for number, level in ipairs(LEVELS) do
  logger[level] = level
  logger.LOG_LEVELS[level] = number
end

local function number_of(level, depth)
  return logger.LOG_LEVELS[level] or error("Unknown log level '" .. tostring(level) .. "'.", depth + 1)
end

local Logger = {}
Logger.__index = Logger
logger.Logger = Logger

function Logger.new(appenders, category, level)
  if type(appenders) == "function" then appenders = { appenders } end
  if type(appenders) ~= "table" then error("an appender must be a function or a list of functions", 2) end
  for _, appender in ipairs(appenders) do
    if type(appender) ~= "function" then error("an appender must be a function", 2) end
  end
  if category == nil then error("a category is needed", 2) end
  number_of(level or "INFO", 2)
  return setmetatable({ _appenders = appenders, _category = tostring(category), _level = level or "INFO" }, Logger)
end
logger.new = Logger.new

function Logger:isLevel(level) return number_of(level, 2) >= logger.LOG_LEVELS[self._level] end

function Logger:setLevel(level)
  number_of(level, 2)
  self._level = level
end

function Logger:log(level, message, exception)
  if number_of(level, 2) < logger.LOG_LEVELS[self._level] or level == "OFF" then return end
  for _, appender in ipairs(self._appenders) do appender(self, level, message, exception) end
end

for _, level in ipairs(LEVELS) do
  if level ~= "OFF" then
    Logger[level:lower()] = function(self, message, exception) self:log(level, message, exception) end
  end
end

function Logger:formatMessage(pattern, level, message, exception)
  local caller
  return filled(pattern or logger.DEFAULT_PATTERN, {
    logger = self, level = level, message = message, exception = exception,
    caller = function()
      caller = caller or { native.caller() }
      return caller
    end,
  })
end

-- Appenders.

local function to_log(text)
  for line in text:gmatch("[^\n]+") do print(line) end
end

M["appenders.console"] = {
  new = function(pattern)
    return function(of, level, message, exception) to_log(of:formatMessage(pattern, level, message, exception)) end
  end,
}

M["appenders.file"] = {
  new = function(name, date_pattern, pattern)
    if type(name) ~= "string" then error("a file appender needs the name of its file", 2) end
    local last
    return function(of, level, message, exception)
      local file = name
      if date_pattern then file = string.format(name, os.date(date_pattern, (native.wall()))) end
      local words = native.append(file, of:formatMessage(pattern, level, message, exception))
      if words and words ~= last then print("Log4LUA: no file is written: " .. words) end
      last = words
    end
  end,
}

M["appenders.smtp"] = {
  new = function(mail, ...)
    if type(mail) ~= "table" or type(mail.headers) ~= "table" then error("a mail needs headers", 2) end
    for _, header in ipairs({ "from", "to", "subject" }) do
      if mail.headers[header] == nil then error("a mail needs the header '" .. header .. "'", 2) end
    end
    if mail.body == nil then error("a mail needs a body", 2) end
    local to = mail.headers.to
    if type(to) ~= "table" then to = { to } end
    -- A level is the threshold, wherever it stands; the others are host, port, user and password.
    local threshold, host, port, user, password = "WARN", nil, nil, nil, nil
    for at = 1, select("#", ...) do
      local given = select(at, ...)
      if given ~= nil and logger.LOG_LEVELS[given] then
        threshold = given
      elseif given == nil then
        -- An argument that is left out.
      elseif host == nil then
        host = tostring(given)
      elseif port == nil and tonumber(given) then
        port = tonumber(given)
      elseif user == nil then
        user = tostring(given)
      else
        password = tostring(given)
      end
    end
    if host == nil then error("a mail needs the name of a mail server", 2) end
    port = port or 25
    if port < 1 or port > 65535 or port % 1 ~= 0 then error("'" .. port .. "' is no port", 2) end
    local last
    return function(of, level, message, exception)
      if logger.LOG_LEVELS[level] < logger.LOG_LEVELS[threshold] then return end
      local function text(pattern) return of:formatMessage(tostring(pattern), level, message, exception) end
      local words = native.mail({
        host = host, port = port, user = user, password = password, from = tostring(mail.headers.from),
        to = to, subject = text(mail.headers.subject), body = text(mail.body),
      })
      -- Said once, not for each message.
      if words and words ~= last then print("Log4LUA: no mail is sent: " .. words) end
      last = words
    end
  end,
}

-- Configuration.

local loggers

local function default() return { ROOT = Logger.new(M["appenders.console"].new(), "ROOT", "INFO") } end

local function run_config(name)
  local code = session().library.files["file:" .. name]
  if not code then return nil, "there is no such file, or its name was not written out when the script was loaded" end
  local chunk, words = loadstring(code.text, "@" .. code.chunk)
  if not chunk then return nil, words end
  local ok, made = pcall(chunk)
  if not ok then return nil, made end
  if type(made) ~= "table" then return nil, "it returns no table" end
  if not made.ROOT then return nil, "it has no category ROOT" end
  return made
end

function logger.loadConfig(name)
  local made, words = run_config(name)
  if not made then error("Log4LUA configuration '" .. tostring(name) .. "' cannot be used: " .. tostring(words), 2) end
  loggers = made
end

function logger.getLogger(name)
  if not loggers then
    -- A configuration may ask for a logger itself.
    loggers = default()
    if session().library.files["file:LOG4LUA_CONFIG_FILE"] then
      local made, words = run_config("LOG4LUA_CONFIG_FILE")
      if made then
        loggers = made
      else
        loggers.ROOT:info("Log4LUA configuration cannot be used: " .. tostring(words))
      end
    end
  end
  if name == nil then return loggers.ROOT end
  if loggers[name] then return loggers[name] end
  local best
  for category in pairs(loggers) do
    if type(category) == "string" and name:sub(1, #category) == category and (not best or #category > #best) then
      best = category
    end
  end
  return loggers[best or "ROOT"]
end

M.logger = logger
return M
