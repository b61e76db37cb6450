-- Lists of tokens: tables of a name, a number and a text. Names are texts that the buffer has.
local native, packed = ...
local cut, buffer = native.cut, native.buffer.new({ dict = packed.decode(native.names()) })

return function(sql) return buffer:set(cut(sql)):decode() end
