-- Lists of tokens, made of what `cut` returns: a text with two numbers for each token, its kind and the length of its text,
-- and all texts in one. A call of the VM for each field of each token would take ten times as long.
local cut, name_of = ...
local byte, sub = string.byte, string.sub

local names = setmetatable({}, {
  __index = function(names, id)
    local name = name_of(id)
    names[id] = name
    return name
  end,
})

-- Numbers of single bytes. `string.byte` is slow beyond the first byte of a text.
local number_of = {}
for number = 0, 255 do number_of[string.char(number)] = number end

-- The number of four bytes behind the place of a 255, and the place behind them.
local function long(text, at)
  local a, b, c, d = byte(text, at + 1, at + 4)
  return a + b * 256 + c * 65536 + d * 16777216, at + 5
end

return function(sql)
  local numbers, texts = cut(sql)
  local list, at, from = {}, 1, 1
  for place = 1, #numbers do
    local id = number_of[sub(numbers, at, at)]
    if not id then break end
    if id < 255 then at = at + 1 else id, at = long(numbers, at) end
    local length = number_of[sub(numbers, at, at)]
    if length < 255 then at = at + 1 else length, at = long(numbers, at) end
    list[place] = { token_name = names[id], token_id = id, text = sub(texts, from, from + length - 1) }
    from = from + length
  end
  return list
end
