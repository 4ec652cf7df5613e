--- Runs kernels on the simulator under several seeds and collects the reports.
local cute = require "cute"
local support = require "spec.support"

local seeds = {COUNT = 5}

--- Returns two functions that launch kernels with these default options.
-- launch(f, opts, ...) returns the report. found(f, opts, ...) runs all
-- seeds. It returns the faults, one per line, and the number of seeds with a
-- fault.
---@param defaults table
---@return function launch, function found
function seeds.with(defaults)
  local function launch(f, opts, ...)
    local all = {device = "sim:sm_90a", output = false, faults = "return"}
    for _, from in ipairs {defaults, opts} do
      for name, value in pairs(from) do all[name] = value end
    end
    local kernel = type(f) == "function" and cute.kernel("k", f) or f
    return support.report(kernel(...):launch(all))
  end
  local function found(f, opts, ...)
    local list, some, kernel = {}, 0, cute.kernel("k", f)
    for seed = 1, seeds.COUNT do
      opts.seed = seed
      local report = launch(kernel, opts, ...)
      if not report.ok then some = some + 1 end
      for _, r in ipairs(report.reports) do
        local text = ("%d %s: %s"):format(r.line, r.kind, r.message)
        if not list[text] then list[#list + 1] = text end
        list[text] = true
      end
    end
    table.sort(list)
    return table.concat(list, "\n"), some
  end
  return launch, found
end

return seeds
-- SPDX-License-Identifier: MIT
