-- Surroundings of a script that says buckets, anew for each call: nothing that it keeps outlives it.
-- Without `pairs`, whose order differs between processes, and without `pcall`, which would catch the
-- end of its time.

jit.off()
local rep, format, find, kind, show, fail =
    string.rep, string.format, string.find, type, tostring, error
string.rep = function(text, times)
    if #text * times > 65536 then fail("string.rep makes too much", 2) end
    return rep(text, times)
end
local function plain(value)
    local is = kind(value)
    if is ~= "string" and is ~= "number" and is ~= "boolean" and is ~= "nil" then
        fail("a " .. is .. " has no text that is the same everywhere", 3)
    end
    return value
end
string.format = function(form, ...)
    for at = 1, select("#", ...) do plain((select(at, ...))) end
    if find(form, "%%[^%a%%]*p") then
        fail("an address is not the same everywhere", 2)
    end
    return format(form, ...)
end
string.dump, math.random, math.randomseed = nil, nil, nil
table.foreach = nil
local whole = { string = string, table = table, math = math, bit = bit }
local bare = {
    assert = assert, error = error, ipairs = ipairs, select = select, tonumber = tonumber,
    type = type, unpack = unpack,
    tostring = function(value) return show(plain(value)) end,
}
local each = pairs
return function()
    local seen = {}
    for name, value in each(bare) do seen[name] = value end
    for name, library in each(whole) do
        local copy = {}
        for key, value in each(library) do copy[key] = value end
        seen[name] = copy
    end
    seen._G = seen
    return seen
end
