-- Tests random accesses to tensors (spec/places.lua). Plain Lua, which computes
-- no offset, gives the expected results for the simulator and for the emitted
-- text, compiled for the host. `make fuzz` tests as many accesses as time
-- allows.
local cudahost = require "spec.cudahost"
local places = require "spec.places"
local support = require "spec.support"

local function programs(first, last)
  local list = {}
  for seed = first, last do list[#list + 1] = places.program(seed) end
  return list
end

describe("random coordinates", function()
  for first = 1, 16, 15 do
    it(("are the same in plain Lua, the simulator and the text, from %d on")
       :format(first) .. support.long(first), function()
      if not cudahost.compiler() then return pending "needs a C++ compiler" end
      local list = programs(first, first + 14)
      for i, wrong in ipairs(places.host(list)) do
        assert.is_false(wrong, ("seed %d: %s\n%s"):format(list[i].seed,
          tostring(wrong), list[i].text))
      end
    end)
  end

  it("are reported if the text is wrong #long", function()
    if not cudahost.compiler() then return pending "needs a C++ compiler" end
    local sound = cudahost.run
    finally(function() cudahost.run = sound end)
    -- Simulates a compiler that drops the constant parts of addresses.
    function cudahost.run(runs)
      for _, run in ipairs(runs) do
        run.text = run.text:gsub("(_%w+)<[%d, -]+>%(", "%1(")
      end
      return sound(runs)
    end
    local found = 0
    for _, wrong in ipairs(places.host(programs(1, 12))) do
      found = found + (wrong and wrong:find "the text has" and 1 or 0)
    end
    assert.is_true(found > 2)
  end)

  it("use all ways to address a tensor", function()
    local all = {}
    for i, p in ipairs(programs(1, 30)) do all[i] = p.text end
    local text = table.concat(all)
    for _, what in ipairs {"matrix%(", "eight%(", "true%)", "make_swizzle",
                           "x%[{", "w%[{", "when%("} do
      assert.is_truthy(text:find(what), what)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
