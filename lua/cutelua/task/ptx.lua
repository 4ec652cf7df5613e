--- Candidates in PTX. A LAUNCH description in Lua (docs/ptx.md) says how to
-- launch the entry. In it, the task's sizes are globals, and strings in `args`
-- name arguments and sizes of the task.
local core = require "cute.core"
local cute = require "cute"

local ptx = {}

local KEYS = {entry = true, grid = true, block = true, cluster = true,
  smem = true, args = true, cooperative = true}

-- The globals of Lua that a LAUNCH description can use.
local LIBRARY = {ipairs = ipairs, math = math, pairs = pairs}

local function fail(...) core.fail("bad-launch", string.format(...)) end

-- Runs the LAUNCH description with these sizes as globals. Returns its table;
-- raises an error if the table is not valid.
local function describe(request, sizes)
  local env = setmetatable({}, {__index = function(_, k)
    return sizes[k] or LIBRARY[k]
  end})
  local f, why = load(request.launch, "@LAUNCH", "t", env)
  if not f then fail("%s", why) end
  local t = f()
  if type(t) ~= "table" then
    fail("the LAUNCH description returns %s, not a table", core.show(t))
  end
  for k in pairs(t) do
    if not KEYS[k] then fail("LAUNCH: there is no key %s", core.show(k)) end
  end
  if type(t.args) ~= "table" then fail "LAUNCH needs args, a list" end
  return t
end

--- Returns the function that launches a candidate in PTX.
---@param request table of cutelua.task.worker
---@return fun(a: table)
function ptx.candidate(request)
  local module = cute.ptx(request.text)
  return function(a)
    local t = describe(request, request.sizes)
    local entry = module:kernel(t.entry or module:entries()[1],
                                {smem = t.smem})
    local args = {}
    for i, v in ipairs(t.args) do
      args[i] = type(v) == "string" and a[v] or v
    end
    entry(table.unpack(args, 1, #t.args)):launch {grid = t.grid,
      block = t.block, cluster = t.cluster, cooperative = t.cooperative}
  end
end

return ptx
-- SPDX-License-Identifier: MIT
