--- Runs kernels without their swizzles, and with the swizzles that find_swizzle
-- found.
local core = require "cute.core"
local cute = require "cute"

local plain = {}

-- Runs f() with core.make_smem_tensor replaced: the kth shared tensor gets the
-- layout make(k, layout).
local function made_by(make, f, ...)
  local own, run, k = core.make_smem_tensor, core.sim_run, 0
  local function hook(dtype, layout, align)
    if type(layout) == "table" then layout = core.make_layout(layout) end
    k = k + 1
    return own(dtype, make(k, layout), align)
  end
  core.make_smem_tensor, cute.make_smem_tensor = hook, hook
  core.sim_run = function(fn, o)
    o.record = true
    return run(fn, o)
  end
  local out = table.pack(pcall(f, ...))
  core.make_smem_tensor, cute.make_smem_tensor = own, own
  core.sim_run = run
  assert(out[1], out[2])
  return table.unpack(out, 2, out.n)
end

--- Runs f() with the swizzles of all shared tensors removed. Returns the report
-- that f returns, and the number of swizzles.
function plain.without(f, ...)
  local n = 0
  local r = made_by(function(_, layout)
    if not layout.is_composed then return layout end
    n = n + 1
    return layout.outer
  end, f, ...)
  return r, n
end

--- Runs f() with other layouts: list[k] for the kth shared tensor or, if it is
-- absent, the tensor's own layout without its swizzle.
function plain.with(list, f, ...)
  return made_by(function(k, layout)
    return list[k] or layout.is_composed and layout.outer or layout
  end, f, ...)
end

--- Runs f() unchanged, with the counters recorded.
function plain.as_is(f, ...)
  return made_by(function(_, layout) return layout end, f, ...)
end

--- Returns the findings of find_swizzle for a report, and their layouts in the
-- order of the shared tensors.
function plain.found(report)
  local list, by = report:find_swizzle(), {}
  for _, f in ipairs(list) do
    for k, o in ipairs(report.program.fn:shared()) do
      if o.index == f.index then by[k] = f.layout end
    end
  end
  return list, by
end

return plain
-- SPDX-License-Identifier: MIT
