-- Tests random kernels (spec/random.lua): the emitted text, compiled for the
-- host, must give the simulator's results. `make fuzz` tests as many kernels as
-- time allows.
local cudahost = require "spec.cudahost"
local kernels = require "spec.kernels"
local random = require "spec.random"
local support = require "spec.support"

describe("random kernels", function()
  for first = 1, 51, 10 do
    it(("mean the same as text and in the simulator, seeds from %d")
      :format(first) .. support.long(first), function()
        if not cudahost.compiler() then
          return pending "needs a C++ compiler"
        end
        local batch = {}
        for i = 1, 10 do batch[i] = random.program(first + i - 1) end
        for i, wrong in ipairs(random.host(batch)) do
          assert.is_false(wrong, ("seed %d: %s\n%s"):format(batch[i].seed,
            tostring(wrong), random.text(batch[i])))
        end
      end)
  end

  it("are accepted by NVRTC if the simulator ran them", function()
    for seed = 501, 512 do
      local target = seed % 2 == 0 and "sm_80" or "sm_90a"
      if not kernels.compiled(random.traced(random.program(seed)), target) then
        return pending "needs NVRTC"
      end
    end
  end)

  it("are reported if the text is wrong #long", function()
    if not cudahost.compiler() then return pending "needs a C++ compiler" end
    local sound = cudahost.run
    finally(function() cudahost.run = sound end)
    function cudahost.run(runs)  -- Simulates a compiler that reads | as +.
      for _, run in ipairs(runs) do run.text = run.text:gsub(" | ", " + ") end
      return sound(runs)
    end
    local batch, found = {}, 0
    for i = 1, 20 do batch[i] = random.program(i) end
    for _, wrong in ipairs(random.host(batch)) do
      found = found + (wrong and wrong:find "on the simulator" and 1 or 0)
    end
    assert.is_true(found > 2)
  end)

  it("are shrunk to the wrong statement", function()
    local function wrong(p) return random.text(p):find(":fill(", 1, true) end
    local p = random.program(2)
    while not wrong(p) do p = random.program(p.seed + 1) end
    random.shrink(p, wrong)
    local _, fills = random.text(p):gsub(":fill%(", "")
    local lines = #support.lines(random.text(p))
    p.body = {}  -- leaves only the text around the body
    assert.equal(1, fills)
    assert.is_true(lines - #support.lines(random.text(p)) <= 4)
  end)

  for first = 1, 161, 40 do
    it(("mean the same on the GPU, seeds from %d #gpu"):format(first),
      function()
        for seed = first, first + 39 do
          local p = random.program(seed)
          local wrong = random.gpu(p)
          assert.is_false(wrong, ("seed %d: %s\n%s"):format(seed,
            tostring(wrong), random.text(p)))
        end
      end)
  end
end)
-- SPDX-License-Identifier: MIT
