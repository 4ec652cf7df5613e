--- The epilogues that `cutelua tune gemm` supports: the named epilogues
-- (kernels/tuned/epilogues.lua), and epilogues in the user's Lua files.
--
-- A Lua file returns a function. This function takes an object that provides
-- the epilogue's operands, and returns the epilogue and further options:
--
--     local cute = require "cute"
--     return function(given)
--       local bias, residual = given:col(), given:tile()
--       return function(acc, at)
--         return cute.ops.silu(acc + at:col(bias)) + at:tile(residual)
--       end                               -- or ..., {gated = true}
--     end
--
-- given:row(), given:col() and given:tile() return tensors of the shapes (M),
-- (N) and (M,N). Their type is D's type or the type passed. given.m and given.n
-- are D's extents. The function must request the same tensors in the same order
-- for every product.
local core = require "cute.core"
local NAMED = require "kernels.tuned.epilogues"

local epilogues = {}

--- The sorted names of the named epilogues.
epilogues.NAMES = {}
for name in pairs(NAMED) do table.insert(epilogues.NAMES, name) end
table.sort(epilogues.NAMES)

--- Loads an epilogue. Returns its name in tuned tables, and the function that
-- creates it.
---@param word string a name, or the path of a Lua file
---@return string? name
---@return function|string # creates the epilogue, or the reason of the failure
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

--- Calls `make` for a product whose result D has the extents (m,n). Returns the
-- options, including the epilogue, and the operand C. new(kind, dtype, number)
-- creates the tensors that the epilogue requests.
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
