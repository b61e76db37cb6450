-- proxy.balance: which server comes next, as MySQL Proxy chose it.
local proxy = ...
local M = {}

local function serves(backend, kind)
  local user = proxy.connection.client.username or ""
  return backend.type == kind
    and backend.state ~= proxy.BACKEND_STATE_DOWN
    and backend.pool.users[user].cur_idle_connections > 0
end

-- The first server that is written to and has a connection for this user, or 0.
function M.idle_failsafe_rw()
  for at = 1, #proxy.backends do
    if serves(proxy.backends[at], proxy.BACKEND_TYPE_RW) then return at end
  end
  return 0
end

-- The server for reads that has a connection for this user and the fewest clients, or 0.
function M.idle_ro()
  local best, fewest = 0, nil
  for at = 1, #proxy.backends do
    local backend = proxy.backends[at]
    if serves(backend, proxy.BACKEND_TYPE_RO) and (not fewest or backend.connected_clients < fewest) then
      best, fewest = at, backend.connected_clients
    end
  end
  return best
end

return M
