--- Restores Lua's standard libraries, so that errors are reported even if a
-- script removed functions that the report needs.
local libraries = {}

local next, type, rawget, rawset = next, type, rawget, rawset
local texts = getmetatable ""

-- The contents of each library when the program started. `os` is left out,
-- because cutelua.mcp.guard removes functions from it.
local saved = {}
for _, t in next, {_G, string, table, math, io, debug, coroutine, utf8, package,
    texts} do
  local copy = {}
  for k, v in next, t do copy[k] = v end
  saved[t] = copy
end

--- Restores entries of the libraries that are missing or have another type than
-- when the program started. Other changes stay.
function libraries.restore()
  for t, copy in next, saved do
    for k, v in next, copy do
      if type(rawget(t, k)) ~= type(v) then rawset(t, k, v) end
    end
  end
end

return libraries
-- SPDX-License-Identifier: MIT
