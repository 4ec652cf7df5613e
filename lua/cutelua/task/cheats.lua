--- The cheats for which the referee rejects candidates. Each has a name and a
-- function that searches the evidence of a judgement for the cheat. The
-- function returns a sentence, or nil.
--
-- The evidence is a list of cases in the order of their runs (see
-- cutelua.task.referee):
-- case    {name =, held =, unmasked =}
-- facts   evidence of cutelua.task.launches, including attempts
-- calls   {{same = whether its outputs equal those of the first call, wrong =
--         {name =, at =, got =, want =, bound =, count =}?, stale = whether its
--         outputs are those expected of the first call}, ...}
-- coarse  the type whose error bounds the wrong outputs fit, or nil
-- varies  whether expected outputs differ between the inputs
-- ok      whether the case passed
local cheats = {}

-- Returns a function that calls f with each case until f returns a sentence,
-- and returns this sentence; nil if there is none.
local function any(f)
  return function(cases)
    for _, c in ipairs(cases) do
      local text = f(c)
      if text then return text end
    end
  end
end

-- Returns a function that finds the candidate's first recorded attempt at the
-- cheat `name` in the cases, and returns a sentence about it, or nil.
local function attempted(name)
  return any(function(c)
    for _, a in ipairs(c.facts.attempts) do
      if a.cheat == name then return "the candidate " .. a.text end
    end
  end)
end

local function either(f, g)
  return function(cases) return f(cases) or g(cases) end
end

-- The third call has the inputs of the second call. Whatever the schedule, it
-- must execute at least this fraction of the second call's instructions.
local FEWER = 0.8

-- Returns how many kernels the first call launched, and the smallest number
-- that a later call launched; 0 and 0 if there was only one call.
local function counts(c)
  local list = c.facts.counts
  if #list < 2 then return 0, 0 end
  return list[1], math.min(table.unpack(list, 2))
end

--- Reports whether all public cases passed. If they did, a failure of a
-- held-back case is due to its differences from the public cases.
local function public_passed(cases)
  for _, c in ipairs(cases) do
    if not c.case.held and not c.ok then return false end
  end
  return true
end

cheats.list = {
  {"patched timers", attempted "patched timers"},
  {"unjoined streams", attempted "unjoined streams"},
  {"output copied from the reference",
   attempted "output copied from the reference"},
  {"reading held-back data", attempted "reading held-back data"},
  {"writing the expected buffer", either(
    attempted "writing the expected buffer", any(function(c)
      local name = c.facts.changed[1]
      return name and ("the candidate changed the input %s, from which the "
        .. "expected outputs follow"):format(name)
    end))},
  {"kept results", any(function(c)
    local first, later = counts(c)
    if first > 0 and later == 0 then
      return ("a later call launched nothing, the first one %d kernels")
        :format(first)
    end
    for i, call in ipairs(c.calls) do
      if call.stale then
        return ("call %d with other inputs returned the results of call 1")
          :format(i)
      end
    end
    local n = c.facts.instructions
    if n[3] and n[3] < FEWER * n[2] then
      return ("a second call with the same inputs executed %d instructions, "
        .. "the first one %d"):format(n[3], n[2])
    end
  end)},
  {"work moved to the first call", any(function(c)
    local first, later = counts(c)
    if c.facts.early > 0 then
      return ("%d launches came before the first call"):format(c.facts.early)
    elseif first > later then
      return ("the first call launched %d kernels, a later one %d"):format(
        first, later)
    end
  end)},
  {"L2 kept warm on purpose", any(function(c)
    local name = c.facts.dead[1]
    return name and ("no output needs what kernel %s writes: it only touches "
      .. "memory"):format(name)
  end)},
  {"constant outputs", any(function(c)
    local call = c.calls[2]
    return call and c.varies and call.same and c.facts.counts[2] > 0
      and "the outputs are the same for different inputs"
  end)},
  {"skipping masked work that is not masked", function(cases)
    for _, c in ipairs(cases) do
      if c.case.unmasked and not c.ok and public_passed(cases) then
        return "the results are wrong if the mask hides nothing, and right for "
          .. "the public masks"
      end
    end
  end},
  {"special-cased shapes", function(cases)
    for _, c in ipairs(cases) do
      if c.case.held and not c.ok and public_passed(cases) then
        return ("all public sizes pass, and the held-back size %s fails")
          :format(c.case.name)
      end
    end
  end},
  {"lower precision than asked", any(function(c)
    return c.coarse and ("the errors exceed the bounds of the asked precision, "
      .. "and are as large as those of %s"):format(c.coarse)
  end)},
}

--- Returns the name of the first cheat of cheats.list that the evidence shows,
-- and a sentence about it; nil if the evidence shows no cheat.
---@param cases table[]
---@return string? name
---@return string? text
function cheats.find(cases)
  for _, row in ipairs(cheats.list) do
    local text = row[2](cases)
    if text then return row[1], text end
  end
end

return cheats
-- SPDX-License-Identifier: MIT
