-- proxy.commands: a command's packet as a table, and as a line to read.
local proxy, native = ...
local M = {}

local names = {}
for name, value in pairs(native.constants) do
  if type(name) == "string" and name:sub(1, 4) == "COM_" then names[value] = name end
end

local QUIET = {
  COM_QUIT = true, COM_PING = true, COM_SHUTDOWN = true, COM_BINLOG_DUMP = true, COM_BINLOG_DUMP_GTID = true,
}
local TEXT = {
  COM_QUERY = "query", COM_STMT_PREPARE = "query",
  COM_INIT_DB = "schema", COM_CREATE_DB = "schema", COM_DROP_DB = "schema",
}
local ID = { COM_STMT_EXECUTE = true, COM_STMT_CLOSE = true, COM_STMT_RESET = true, COM_STMT_FETCH = true }

local function number(packet, at, bytes)
  local sum = 0
  for i = bytes, 1, -1 do sum = sum * 256 + (packet:byte(at + i - 1) or 0) end
  return sum
end

function M.parse(packet)
  local code = packet:byte()
  local cmd = { type = code, type_name = names[code] }
  local name = cmd.type_name or ""
  if TEXT[name] then
    cmd[TEXT[name]] = packet:sub(2)
  elseif ID[name] then
    cmd.stmt_handler_id = number(packet, 2, 4)
  elseif name == "COM_FIELD_LIST" then
    cmd.table = packet:match("^[^%z]*", 2)
  elseif name == "COM_SET_OPTION" then
    cmd.option = number(packet, 2, 2)
  elseif not QUIET[name] then
    print("[debug] (command) unhandled type name:" .. tostring(cmd.type_name) .. " byte:" .. tostring(code))
  end
  return cmd
end

function M.pretty_print(cmd)
  local name = tostring(cmd.type_name)
  local text = TEXT[name] and name ~= "COM_CREATE_DB" and name ~= "COM_DROP_DB" and cmd[TEXT[name]]
  if text then return "[" .. name .. "] " .. text end
  if name == "COM_QUIT" or name == "COM_FIELD_LIST" then return "[" .. name .. "]" end
  if name == "COM_STMT_EXECUTE" then return "[" .. name .. "] " .. tostring(cmd.stmt_handler_id) end
  return "[" .. name .. "] ... no idea"
end

return M
