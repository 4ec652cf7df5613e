-- Tests notes on results in registers that nothing reads: accumulators of an
-- MMA, and fragments that are loaded again before an MMA reads them.
local cute = require "cute"
local support = require "spec.support"
local arch, _ = cute.arch, cute._

local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
local STEPS = 4
local count = 0

-- Runs a kernel that calls `body` with a table of functions that load
-- fragments, multiply them and store accumulators. Returns the messages.
local function told(body)
  count = count + 1  -- Each kernel name gets a note only once.
  local k = cute.kernel("k" .. count, function(a, b, c)
    local thr = mma:get_slice(arch.thread_idx())
    local A, B = thr:partition_A(a), thr:partition_B(b)
    local C = thr:partition_C(c)
    local own = {}
    function own.fragments()
      return {a = thr:make_fragment_A(A)(_, _, 0),
              b = thr:make_fragment_B(B)(_, _, 0)}
    end
    function own.sums()
      local acc = thr:make_fragment_C(C)
      acc:fill(0)
      return acc
    end
    function own.load(to, step)
      cute.autovec_copy(A(_, _, step), to.a)
      cute.autovec_copy(B(_, _, step), to.b)
    end
    function own.add(acc, from) cute.gemm(mma, acc, from.a, from.b, acc) end
    function own.store(acc) cute.autovec_copy(acc, C) end
    body(own)
  end)
  local said, r = support.told(function()
    return support.report(k(cute.ones({16, 16 * STEPS}, cute.bf16),
      cute.ones({8, 16 * STEPS}, cute.bf16), cute.zeros({16, 8}, cute.f32))
      :launch {grid = 1, block = 32, device = "sim", faults = "return"})
  end)
  assert.is_true(r.ok, tostring(r))
  return said
end

local function expect(n, text, body)
  local said = told(body)
  assert.equal(n, #said, table.concat(said, "\n"))
  for _, line in ipairs(said) do
    assert.matches("^cutelua: note: kernel k%d+: unread_results_spec.lua:%d+: "
      .. text .. " cute.partial_ok says that this is intended$", line)
  end
end

describe("a note tells of", function()
  it("sums of an MMA that nothing reads", function()
    expect(1, "nothing reads the sums that this MMA writes to 'acc'; does the "
      .. "epilogue store another fragment%?", function(k)
      local acc, lost, f = k.sums(), k.sums(), k.fragments()
      for step = 0, STEPS - 1 do
        k.load(f, step)
        k.add(lost, f)
      end
      k.store(acc)
    end)
  end)

  it("sums that are stored before the last product", function()
    local text = "nothing reads 'acc' after this MMA, although earlier sums in "
      .. "it are read; should the line that reads them come after the last "
      .. "product%?"
    expect(1, text, function(k)
      local acc, f = k.sums(), k.fragments()
      for step = 0, STEPS - 1 do
        k.load(f, step)
        if step == STEPS - 1 then k.store(acc) end
        k.add(acc, f)
      end
    end)
  end)

  it("fragments that the load of the next step overwrites", function()
    local text = "this line loads elements of '[%w_]+' that are overwritten "
      .. "before anything reads them; does a load for the next step come "
      .. "before this step's MMA, or does the MMA take the fragment of another "
      .. "step%?"
    expect(2, text, function(k)
      local acc, f = k.sums(), k.fragments()
      k.load(f, 0)
      for step = 0, STEPS - 1 do
        if step + 1 < STEPS then k.load(f, step + 1) end
        k.add(acc, f)
      end
      k.store(acc)
    end)
    -- The mistake: the MMA reads the fragments that were just loaded for the
    -- next step, not those of its own step.
    expect(2, text, function(k)
      local acc, f = k.sums(), {[0] = k.fragments(), k.fragments()}
      k.load(f[0], 0)
      for step = 0, STEPS - 1 do
        if step + 1 < STEPS then k.load(f[(step + 1) % 2], step + 1) end
        k.add(acc, f[math.min(step + 1, STEPS - 1) % 2])
      end
      k.store(acc)
    end)
  end)
end)

it("a note tells of fragments that are loaded while others are multiplied",
   function()
  local said = told(function(k)
    local acc, f, g = k.sums(), k.fragments(), k.fragments()
    k.load(f, 0)
    for step = 1, STEPS - 1 do
      k.load(g, step)
      k.add(acc, f)
    end
    k.store(acc)
  end)
  assert.equal(2, #said)
  for _, line in ipairs(said) do
    assert.matches("elements of fragment '[%w_]+' are loaded here, but no MMA "
      .. "reads them;", line)
  end
end)

describe("no note tells of", function()
  local function quiet(body) assert.same({}, told(body)) end

  it("right loops, unrolled or not", function()
    quiet(function(k)
      local acc, f = k.sums(), {[0] = k.fragments(), k.fragments()}
      k.load(f[0], 0)
      for step = 0, STEPS - 1 do
        if step + 1 < STEPS then k.load(f[(step + 1) % 2], step + 1) end
        k.add(acc, f[step % 2])
      end
      k.store(acc)
    end)
    quiet(function(k)
      local acc, f = k.sums(), k.fragments()
      k.load(f, 0)
      for step in cute.range(STEPS) do
        k.add(acc, f)
        k.load(f, cute.min(step + 1, STEPS - 1))
      end
      k.store(acc)
    end)
  end)

  it("loads that only some iterations overwrite", function()
    quiet(function(k)
      local acc, f = k.sums(), k.fragments()
      k.load(f, 0)
      for step in cute.range(STEPS) do
        cute.when(step:gt(1), function() k.load(f, 1) end)
        k.add(acc, f)
      end
      k.store(acc)
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
