-- Tests the gradients of attention on the simulator, against plain Lua. Cases:
-- every head size, masks, heads that share keys, partial tiles, and
-- concatenated sequences. The simulator must detect the removal of any barrier,
-- wait or predicate.
local core = require "cute.core"
local cute = require "cute"
local attention = require "kernels.attention"
local attention_bwd = require "kernels.attention_bwd"
local compiled = require "spec.kernels".compiled
local oracle = require "spec.attention"
local support = require "spec.support"

local function options(p)
  return {head = p.d, window = {p.left or false, p.right or false}}
end

local function launch(k, grid, seed, ...)
  return support.report(k.kernel(...):launch {grid = grid, block = k.block,
    device = "sim:sm_80", faults = "return", seed = seed})
end

local function forward(p)
  local f = attention(options(p))
  assert.is_true(launch(f, f.grid(p.s, p.h, p.b), 1, p.Q, p.K, p.V, p.O,
                        p.LSE, p.scale).ok)
end

-- Runs all kernels. Returns their reports, up to the first faulty one.
local function run(make, p, seed)
  local list = {}
  for i, k in ipairs(make(options(p))) do
    list[i] = launch(k, k.grid(p.s, p.t, p.h, p.g, p.b), seed, p.Q, p.K, p.V,
      p.O, p.dO, p.LSE, p.delta, p.dQ, p.dK, p.dV, p.scale)
    if not list[i].ok then return list, list[i] end
  end
  return list
end

local NAMES = {"dQ", "dK", "dV"}

local function check(o)
  local p = oracle.problem(o)
  forward(p)
  local _, fault = run(attention_bwd, p, 3)
  assert.is_nil(fault, tostring(fault))
  for i, want in ipairs {oracle.backward(p)} do
    local mean, most = oracle.distance(p[NAMES[i]], want)
    assert.is_true(mean < (o.dtype == cute.f16 and 2e-3 or 1e-2)
      and most < 0.1, ("%s of s=%d t=%d d=%d: %g, %g"):format(NAMES[i], p.s,
      p.t, p.d, mean, most))
  end
end

describe("the gradients of attention", function()
  for i, d in ipairs {32, 64, 96, 128, 192, 256} do
    it("are right with heads of " .. d .. support.long(i), function()
      check {s = 70, t = 100, d = d, right = 0}
      check {s = 64, t = 64, d = d, h = 2, g = 1, dtype = cute.f16}
    end)
  end

  it("are right at any size #long", function()
    for i, c in ipairs {{1, 3}, {129, 2}, {65, 63}, {200, 72}, {64, 200}} do
      check {s = c[1], t = c[2], d = 32, seed = i}
      check {s = c[1], t = c[2], d = 64, right = 0, seed = i}
    end
  end)

  it("are right in batches, of heads that share keys, in windows #long",
     function()
    check {b = 2, s = 40, t = 70, h = 4, g = 2, d = 32, right = 0}
    check {s = 100, t = 130, h = 3, g = 1, d = 32, left = 20, right = 30}
    check {s = 100, t = 100, d = 64, left = 40, right = 0}
  end)

  it("leave registers to no memory", function()
    local p = oracle.problem {s = 256, d = 64}
    for i, k in ipairs(attention_bwd {head = 64}) do
      local program = k.kernel(p.Q, p.K, p.V, p.O, p.dO, p.LSE, p.delta, p.dQ,
        p.dK, p.dV, p.scale):trace {block = k.block}
      local c = compiled(program, i == 2 and "sm_80" or "sm_90a")
      if c then assert.equal(0, c.resources.spill_stores) end
    end
  end)
end)

---------------------------------------------------------------------------
-- Concatenated sequences of different lengths
---------------------------------------------------------------------------

local LENGTHS = {{5, 70}, {130, 130}, {64, 3}, {1, 200}}

-- Returns a problem of concatenated sequences: one batch that contains #LENGTHS
-- sequences. Also returns the ends of the sequences.
local function sequences(o)
  local ends = {q = cute.zeros({#LENGTHS + 1}, cute.i32),
                k = cute.zeros({#LENGTHS + 1}, cute.i32)}
  local s, t = 0, 0
  for i, l in ipairs(LENGTHS) do
    s, t = s + l[1], t + l[2]
    ends.q[i], ends.k[i] = s, t
  end
  o.s, o.t = s, t
  local p = oracle.problem(o)
  for _, name in ipairs {"Q", "K", "V", "O", "dO", "dQ", "dK", "dV"} do
    p[name] = p[name](0, cute._, cute._, cute._)
  end
  p.LSE, p.delta = p.LSE(0, cute._, cute._), p.delta(0, cute._, cute._)
  return p, ends
end

-- Returns the elements of sequence i in x, a list or tensor with n heads.
local function slice(p, x, ends, i, n)
  local b = type(x) == "table" and x or core.param_memory(x)
  local from, list = ends[i - 1] * n * p.d, {}
  for j = 0, (ends[i] - ends[i - 1]) * n * p.d - 1 do list[j] = b[from + j] end
  return list
end

local function close(p, t, ends, i, n, want)
  local got = slice(p, t, ends, i, n)
  local copy = cute.zeros({#got + 1}, p.dtype)
  for j = 0, #got do copy[j] = got[j] end
  local mean = oracle.distance(copy, want)
  assert.is_true(mean < 6e-3, ("sequence %d: %g"):format(i, mean))
end

describe("attention of concatenated sequences", function()
  for nth, right in ipairs {false, 0} do
    it("is that of each, " .. (right and "causal" or "full")
       .. support.long(nth), function()
      local p, ends = sequences {h = 2, g = 1, d = 64, right = right or nil}
      local n, longest = #LENGTHS, 200
      local f = attention(options(p))
      assert.is_true(launch(f, f.grid(longest, p.h, n), 1, p.Q, p.K, p.V, p.O,
        p.LSE, p.scale, ends.q, ends.k).ok)
      for _, k in ipairs(attention_bwd(options(p))) do
        assert.is_true(launch(k, k.grid(longest, longest, p.h, p.g, n), 2, p.Q,
          p.K, p.V, p.O, p.dO, p.LSE, p.delta, p.dQ, p.dK, p.dV, p.scale,
          ends.q, ends.k).ok)
      end
      for i, l in ipairs(LENGTHS) do
        local one = {b = 1, s = l[1], t = l[2], h = p.h, g = p.g, d = p.d,
          right = p.right, scale = p.scale, q = slice(p, p.q, ends.q, i, p.h),
          k = slice(p, p.k, ends.k, i, p.g), v = slice(p, p.v, ends.k, i, p.g),
          go = slice(p, p.go, ends.q, i, p.h)}
        local dq, dk, dv = oracle.backward(one)
        close(p, p.O, ends.q, i, p.h, (oracle.forward(one)))
        close(p, p.dQ, ends.q, i, p.h, dq)
        close(p, p.dK, ends.k, i, p.g, dk)
        close(p, p.dV, ends.k, i, p.g, dv)
      end
    end)
  end
end)

---------------------------------------------------------------------------
-- Faults
---------------------------------------------------------------------------

local WAIT = "cute.arch.cp_async_wait_group(0)"
local SYNC = "cute.arch.sync_threads()"
local COMMIT = "cute.arch.cp_async_commit_group()"
local OWN = "attention_bwd"
local FAULTS = {
  {"flash", COMMIT, 1}, {"flash", COMMIT, 2}, {"flash", WAIT, 1},
  {OWN, "cute.arch.sync_threads,", 1, "function() end,"},
  {OWN, SYNC, 1, far = true}, {OWN, WAIT, 1, far = true}, {OWN, SYNC, 2},
  {"flash", "cute.when(cute.gt(i, first),", 1, "cute.when(true,"},
  {OWN, "cute.when(cute.lt(at, S),", 1, "cute.when(true,"},
  {OWN, "cute.when(cute.lt(row, cute.size(O, 0)),", 1, "cute.when(true,"},
  {OWN, "dst(_, stage), inside)", 1, "dst(_, stage))"},
  {OWN, "cute.when(cute.lt(team.tid, n),", 1, "cute.when(true,"},
  {"flash", "acc:fill(0)", 1},
  {"flash", SYNC, 1},
  {"flash", "not inner and inside(0)", 1, "inner and inside(0)"},
}

describe("faults of attention's gradients are reported:", function()
  local near = oracle.problem {s = 130, t = 150, d = 32, h = 2, g = 1}
  -- In this problem, the rows of the first tiles see no key.
  local far = oracle.problem {s = 300, t = 64, d = 32, h = 2, g = 1, right = 0}
  forward(near)
  forward(far)
  for i, f in ipairs(FAULTS) do
    it(oracle.title(f) .. support.long(i, 4), function()
      local make = oracle.changed(OWN, table.unpack(f, 1, 4))
      local _, fault = run(make, f.far and far or near, 5)
      assert.is_truthy(fault)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
