--- Output functions for Lua states of libcutelua whose application has set a
-- print hook. The library calls this chunk first, with a table of C functions.
-- The chunk adds the functions `stream` and `printer` to this table.
local host = ...

-- Functions of Lua's libraries are kept here, so that a script that replaces
-- them does not affect this module.
local concat, pack, tostring = table.concat, table.pack, tostring

--- Returns an object with the methods of an output file, whose text goes to
-- emit(number, text).
function host.stream(emit, number)
  local s = {}
  function s:write(...)
    local list = pack(...)
    for i = 1, list.n do emit(number, tostring(list[i])) end
    return self
  end
  function s:flush() return self end
  function s.setvbuf() return true end
  function s.close() return true end
  return s
end

--- Returns a function `print` whose text goes to emit(1, text).
function host.printer(emit)
  return function(...)
    local list = pack(...)
    for i = 1, list.n do list[i] = tostring(list[i]) end
    emit(1, concat(list, "\t", 1, list.n) .. "\n")
  end
end

return host
-- SPDX-License-Identifier: MIT
