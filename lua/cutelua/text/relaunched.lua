--- Emits a note if a launch adds the same sums to an output as the previous
-- launch did. This is the case if both launches have equal inputs, and the
-- output was not cleared in between. Only outputs to which atomics add loaded
-- elements are checked.
local core = require "cute.core"
local simreport = require "cute.lang.simreport"
local words = require "cute.lang.report"

local relaunched = {}

-- Returns a hash of the arguments values[n] for which is(n) is true.
local function hash_of(values, is)
  local sum = 1
  for n, v in ipairs(values) do
    if is(n) then
      if core.typename(v[1]) == "buffer" then sum = core.buffer_sum(v[1], sum)
      else
        for byte in tostring(v[1]):gmatch "." do
          sum = sum * 31 + byte:byte()
        end
      end
    end
  end
  return sum
end

-- The last launch of each program: {inputs, before, after, place}.
-- - inputs: a hash of the inputs.
-- - before, after: hashes of the outputs before and after the launch.
-- - place: the line of the script that launches it.
local last = setmetatable({}, {__mode = "k"})

--- Hashes the arguments before a launch on the simulator. Returns a function to
-- call with the report after the launch. Returns nil if the program has no
-- outputs to check.
---@param program table
---@param values table[] the arguments, in the form that core.sim_run takes
---@return function?
function relaunched.relaunched(program, values)
  program.added = program.added or core.lint_added(program.fn)
  if not program.added[1] then return end
  local out = {}
  for _, n in ipairs(program.added) do out[n] = true end
  local function outputs()
    return hash_of(values, function(n) return out[n] end)
  end
  local inputs = hash_of(values, function(n) return not out[n] end)
  local before, earlier = outputs(), last[program]
  return function(report)
    local after = outputs()
    local place = simreport.at(report.file, report.line) or "?"
    if report.ok and earlier and earlier.inputs == inputs
      and earlier.after == before and earlier.before ~= before then
      words.note(("kernel %s: %s: this launch adds to '%s', which still has "
        .. "the sums of the launch at %s; write 0 first, as by t:fill(0)")
        :format(report.kernel, place,
        program.info.args[program.added[1]].name, earlier.place))
    end
    last[program] = report.ok and {inputs = inputs, before = before,
                                   after = after, place = place} or nil
  end
end

return relaunched
-- SPDX-License-Identifier: MIT
