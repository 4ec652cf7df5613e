--- Restores functions that a script removed from Lua's standard libraries.
-- Error reports need these functions.
local libraries = {}

local next, type, rawget, rawset = next, type, rawget, rawset
local texts = getmetatable ""

-- The contents of each library when the program started. `os` is not included,
-- because cutelua.mcp.guard removes functions from it on purpose.
local saved = {}
for _, t in next, {_G, string, table, math, io, debug, coroutine, utf8, package,
    texts} do
  local copy = {}
  for k, v in next, t do copy[k] = v end
  saved[t] = copy
end

--- Restores entries of the libraries that are missing, or whose type is not the
-- one at the program's start. Other changes are kept.
function libraries.restore()
  for t, copy in next, saved do
    for k, v in next, copy do
      if type(rawget(t, k)) ~= type(v) then rawset(t, k, v) end
    end
  end
end

return libraries
-- SPDX-License-Identifier: MIT
