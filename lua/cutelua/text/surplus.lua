--- Detects calls that receive unintended results of an inner call. Lua passes
-- all results of a call that is the last argument. For example, `cute.min(7,
-- cute.arch.thread_idx())` also receives the thread's y and z.
local core = require "cute.core"

local surplus = {}

-- The functions that return three values: x, y and z of an index or extent.
local THREE = {}
for name in ([[thread_idx block_idx block_dim grid_dim cluster_idx cluster_dim
  block_in_cluster_idx block_in_cluster_dim]]):gmatch "%S+" do
  THREE["cute.arch." .. name] = true
end

-- Variadic functions that would use y and z as additional numbers. A call with
-- only x, y and z may be intended.
local NUMBERS = {["cute.min"] = true, ["cute.max"] = true, ["cute.gcd"] = true,
                 ["cute.sum"] = true}

local function takes_more(name, parameters, fixed)
  if not parameters:find("...", 1, true) then return true end
  return NUMBERS[name] and fixed > 0 or parameters:find("modes...", 1, true)
    and name ~= "cute.E" and name ~= "cute.ScaledBasis"
    or name == "cute.make_layout"
end

--- Checks a call of `callee` whose last argument is a call of `inner`. `fixed`
-- is the number of the other arguments. Returns an error message if the results
-- of `inner` are probably not all intended, or nil.
---@param callee any
---@param fixed integer
---@param inner any
---@return string? message
function surplus.surplus(callee, fixed, inner)
  local from = type(inner) == "function" and core.signature(inner)
  from = from and from:match "^[^(]+"
  local to = from and THREE[from] and type(callee) == "function"
    and core.signature(callee)
  if not to then return nil end
  local name, parameters = to:match "^([^(]+)(.*)$"
  if not takes_more(name, parameters, fixed) then return nil end
  return ("%s gets x, y and z of %s\n  write (%s()) in parentheses for x only, "
    .. "or name the component: local x, y, z = %s()"):format(name,
    from, from, from)
end

return surplus
-- SPDX-License-Identifier: MIT
