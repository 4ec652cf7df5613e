-- Tests random programs in PTX (spec/ptx/random.lua). Without a GPU: ptxas must
-- accept them, and their results on the simulator must not depend on the
-- schedule. With a GPU: its results must equal the simulator's.
local random = require "spec.ptx.random"
local support = require "spec.support"

local ptxas = "/usr/local/cuda/bin/ptxas"

local function try(first, last)
  local dir = support.folder()
  local there = support.read(ptxas)
  for seed = first, last do
    local text = random.program(seed)
    if there then
      support.write(dir .. "/k.ptx", text)
      local out, err, code = support.exec {ptxas, "-arch=sm_90a", "-O0", "-o",
        dir .. "/k.cubin", dir .. "/k.ptx"}
      assert.equal(0, code, ("seed %d: %s%s"):format(seed, out, err))
    end
    local one = random.run(text, seed, {seed = 1})
    local other = random.run(text, seed, {seed = 2, threads = 1})
    assert.is_nil(random.difference(one, other), "seed " .. seed)
  end
  support.remove(dir)
end

describe("random PTX", function()
  it("is accepted by ptxas and independent of the schedule", function()
    try(1, 8)
  end)

  it("is so in 80 programs #long", function() try(9, 80) end)

  it("uses most registers and depends on the seed", function()
    local a, b = random.program(1), random.program(2)
    assert.not_equal(a, b)
    assert.equal(a, random.program(1))
    local one, other = random.run(a, 1, {}), random.run(a, 2, {})
    assert.is_truthy(random.difference(one, other))
  end)

  it("has the same results on a GPU #gpu", function()
    for seed = 1, 200 do
      local text = random.program(seed)
      local at = random.difference(random.run(text, seed, {}),
        random.run(text, seed, {device = "gpu"}, 0))
      assert.is_nil(at, "seed " .. seed)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
