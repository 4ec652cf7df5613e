--- Epilogues of products to tune: named ones (kernels/tuned/epilogues.lua), and
-- those that the user writes in files.
--
-- A Lua file returns a function of the product's operands, which returns the
-- epilogue and further options:
--
--     local cute = require "cute"
--     return function(given)
--       local bias, residual = given:col(), given:tile()
--       return function(acc, at)
--         return cute.ops.silu(acc + at:col(bias)) + at:tile(residual)
--       end                               -- or ..., {gated = true}
--     end
--
-- given:row(), given:col() and given:tile() are tensors (M), (N) and (M,N), of
-- D's type or of the type passed; given.m, given.n are D's extents. For every
-- product the function must request the same tensors in the same order.
local core = require "cute.core"
local NAMED = require "kernels.tuned.epilogues"

local epilogues = {}

--- Sorted names of the epilogues that need no file.
epilogues.NAMES = {}
for name in pairs(NAMED) do table.insert(epilogues.NAMES, name) end
table.sort(epilogues.NAMES)

--- Returns the name under which an epilogue is recorded in tables, and the
-- function that makes the epilogue. word: a name, or the path of a file.
---@param word string
---@return string? name
---@return function|string # makes the epilogue, or the reason why there is none
function epilogues.load(word)
  if NAMED[word] then return word, NAMED[word] end
  if core.file_kind(word) ~= "file" then
    return nil, ("'%s' is neither a file nor one of %s"):format(
      core.visible(word), table.concat(epilogues.NAMES, ", "))
  end
  local f, why = loadfile(word)
  if not f then return nil, why end
  local ok, make = pcall(f)
  if not ok then return nil, tostring(make) end
  if type(make) ~= "function" then
    return nil, ("%s returns %s; a function is needed"):format(word,
                                                            core.show(make))
  end
  return word:match "([^/]*)$":gsub("%.lua$", ""):gsub("[^%w_]", "_"), make
end

local Given = {}
Given.__index = Given

for _, kind in ipairs {"row", "col", "tile"} do
  Given[kind] = function(self, dtype)
    dtype = dtype and core.find_dtype(tostring(dtype)) or self.dtype
    self.count = self.count + 1
    return self.new(kind, dtype, self.count)
  end
end

--- Calls `make` for a product whose D has the extents (m,n). Returns the
-- options, with the epilogue if there is one, and C. new(kind, dtype, number)
-- makes the tensors that the epilogue requests.
---@param make function
---@param d table {m =, n =, dtype =}
---@param new fun(kind: string, dtype: any, number: integer): any
---@return table {epilogue =, gated =}
---@return any C
function epilogues.made(make, d, new)
  local f, more = make(setmetatable({m = d.m, n = d.n, dtype = d.dtype,
                                     new = new, count = 0}, Given))
  local C = make == NAMED.C and more.C or nil
  more = type(more) == "table" and more or {}
  if not C and type(f) ~= "function" then
    core.fail("bad-argument", ("the epilogue's file must return a function "
      .. "that returns an epilogue for each product, got %s"):format(
      core.show(f)))
  end
  return {epilogue = f, gated = more.gated or nil}, C
end

return epilogues
-- SPDX-License-Identifier: MIT
