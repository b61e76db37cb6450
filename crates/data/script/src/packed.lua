-- Values on their way out of what `native` says, and into what it hears, many at a time: the other side of `packed.rs`.
local native = ...
local encode, decode, type, rawget = native.buffer.encode, native.buffer.decode, type, rawget

-- Rows that are packed in one turn, and bytes after which no further one is.
local ROWS_MAX, BYTES_MAX = 32, 16384

local P = { encode = encode, decode = decode }

-- A function that returns the next row of a result each time, and nothing behind the last one; only the columns at these places,
-- where there are such. `gone` raises, and is called where the session's hook has returned.
function P.each(session, serial, part, gone, places)
  local behind, at, left, rows = 1, 0, 0, nil
  return function()
    if session.live ~= serial then gone() end
    if at == left then
      local packed
      left, packed = native.rows(serial, behind, part, places)
      if left == 0 then return nil end
      rows, at, behind = decode(packed), 0, behind + left
    end
    at = at + 1
    return rows[at]
  end
end

-- Columns of a result, as scripts see them.
function P.fields(part) return decode(native.fields(part)) end

-- Some rows of a list, from this one on, one behind another. Returns what was packed, or nothing where a row is no table; and the
-- row to go on with. `false` is a row that is left out, where there are such.
function P.rows(rows, at, width, leaves_out)
  local values, last, bytes = {}, 0, 0
  for _ = 1, ROWS_MAX do
    local row = rawget(rows, at)
    if row == nil then return encode(values), nil end
    if row == false and leaves_out then
      last = last + 1
      values[last] = true
    elseif type(row) ~= "table" then
      return nil, nil
    else
      for column = 1, width do
        local value = row[column]
        local kind = type(value)
        if kind == "string" then bytes = bytes + #value elseif kind ~= "number" then value = false end
        last = last + 1
        values[last] = value
      end
    end
    at = at + 1
    if bytes > BYTES_MAX then break end
  end
  return encode(values), at
end

local function plain(value)
  local kind = type(value)
  return (kind == "string" or kind == "number") and value
end

-- Names and types of some columns of a list, in the same way; and how many columns there are, if these are the last ones.
function P.columns(fields, at)
  local values, bytes = {}, 0
  while bytes < BYTES_MAX do
    local field = rawget(fields, at)
    if field == nil then return encode(values), nil, at - 1 end
    if type(field) ~= "table" then return nil, nil, nil end
    local name = field.name
    name = name == nil and "no-field-name" or plain(name)
    values[#values + 1] = name
    values[#values + 1] = plain(field.type)
    at, bytes = at + 1, bytes + 8 + (type(name) == "string" and #name or 0)
  end
  return encode(values), at, nil
end

return P
