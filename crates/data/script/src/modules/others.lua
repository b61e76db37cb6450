-- Small modules: each is as much of the original as a script can have without files and processes.
local proxy, native, _, wait = ...
local M = {}

-- A module whose other functions refuse by their names.
local function rest_refuses(name, of, why)
  return setmetatable(of, {
    __index = function(_, key)
      if type(key) ~= "string" then return nil end
      return function() error(name .. "." .. key .. " is not available: " .. why, 2) end
    end,
  })
end

function M.glib2()
  return {
    get_current_time = function()
      local seconds, micros = native.wall()
      return { tv_sec = seconds, tv_usec = micros }
    end,
    usleep = function(us) wait("sleep", us) end,
    md5 = native.md5,
  }
end

function M.md5()
  local function bytes(hex) return (hex:gsub("%x%x", function(two) return string.char(tonumber(two, 16)) end)) end
  return { sumhexa = native.md5, sum = function(text) return bytes(native.md5(text)) end }
end

function M.posix()
  return rest_refuses("posix", { getpid = native.pid }, "a script does not reach processes and accounts")
end

function M.lfs()
  return rest_refuses("lfs", { _VERSION = "LuaFileSystem 1.8.0" }, "io and os have files")
end

function M.chassis()
  local chassis = {
    log = function(level, text) print("[" .. tostring(level) .. "] " .. tostring(text)) end,
    set_shutdown = function() error("chassis.set_shutdown is not available: a script does not end the proxy", 2) end,
    get_stats = function() return {} end,
    mem_profile = function() end,
  }
  for _, level in ipairs({ "critical", "warning", "message", "info", "debug" }) do
    chassis[level] = function(text) chassis.log(level, text) end
  end
  -- What it prints goes to the log already.
  os.print = print
  return chassis
end

return M
