-- Tests arrivals at mbarriers that return tokens, waits by these tokens, and
-- waits with a time limit.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"

-- Returns a kernel in which two warps write, arrive, wait by wait(bar, token)
-- and read each other's values, n times. With `forget`, they read without a
-- wait.
local function swap(wait, forget)
  return cute.kernel("swap", function(o, n)
    local tid, arch = cute.arch.thread_idx(), cute.arch
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64})
    local bar = arch.alloc_smem(cute.i64, 1)
    for _ in cute.when(tid:eq(0)) do
      arch.mbarrier_init(bar, 64)
      arch.mbarrier_init_fence()
    end
    arch.sync_threads()
    local sum = 0
    for k in cute.range(n) do
      s[tid] = tid + k
      local token = arch.mbarrier_arrive(bar, nil, 1, {token = true})
      if not forget then wait(bar, token) end
      sum = sum + s[63 - tid]
      wait(bar, arch.mbarrier_arrive(bar, nil, 1, {token = true}))
    end
    o[tid] = sum
  end)
end

local arch = cute.arch
local WAYS = {
  wait = arch.mbarrier_wait,
  test = function(bar, token)
    cute.loop(function() return ~arch.mbarrier_test_wait(bar, token) end,
              function() arch.nanosleep(20) end)
  end,
  try = function(bar, token)
    local done = arch.mbarrier_try_wait(bar, token)
    for _ in cute.when(~done) do arch.mbarrier_wait(bar, token) end
  end,
  ["for"] = function(bar, token)
    cute.loop(function()
      return ~arch.mbarrier_try_wait(bar, token, {time_limit = 100})
    end, function() cute.testing.assert_(true) end)
  end,
}

-- Returns the kinds of the faults of f(bar, t), which gets two mbarriers that
-- count 32 arrivals.
local function faults(f)
  local r = support.report(cute.kernel("k", function()
    local bar, t = arch.alloc_smem(cute.i64, 2), arch.thread_idx()
    cute.when(t:eq(0), function()
      arch.mbarrier_init(bar, 32)
      arch.mbarrier_init(bar + 1, 32)
      arch.mbarrier_init_fence()
    end)
    arch.sync_threads()
    f(bar, t, function(b)
      return arch.mbarrier_arrive(b, nil, 1, {token = true})
    end)
  end)():launch {grid = 1, block = 32, device = "sim", faults = "return"})
  return r.reports[1] and r.reports[1].message, #r.reports
end
local FOREIGN = "mbarrier 'bar'[%d] is waited on with a token that none of its "
  .. "arrivals returned: a token is valid only for its own mbarrier"

describe("tokens of mbarriers", function()
  for name, wait in pairs(WAYS) do
    it("name the phase of their arrival: " .. name, function()
      local o = cute.zeros({64}, "i32")
      local k = swap(wait)
      for seed = 1, 3 do
        k(o, 4):launch {grid = 1, block = 64, device = "sim", seed = seed}
        for t = 0, 63 do assert.equal(4 * (63 - t) + 6, o(t)) end
      end
      kernels.compiles(k(o, 4):trace {block = 64}, {"sm_90a"})
    end)

    it("do so on a card: " .. name .. " #gpu", function()
      local o = cute.zeros({64}, "i32")
      swap(wait)(o, 1000):launch {grid = 1, block = 64, device = "gpu"}
      for t = 0, 63 do
        assert.equal(1000 * (63 - t) + 999 * 500, o(t))
      end
    end)
  end

  it("are the values that the instruction returns", function()
    local text = swap(WAYS["for"])(cute.zeros({64}, "i32"), 4)
      :trace {block = 64}.source
    assert.matches('mbarrier.arrive.shared::cta.b64 %0, [%1];', text, 1, true)
    assert.matches('mbarrier.try_wait.shared::cta.b64 p, [%1], %2, %3;', text,
                   1, true)
    text = cute.kernel("k", function()
      local bar = arch.alloc_smem(cute.i64, 1)
      arch.mbarrier_init(bar, 3)
      local token = arch.mbarrier_arrive(bar, nil, 3, {token = true,
                                                      scope = "cluster"})
      arch.mbarrier_wait(bar, token, {scope = "cluster"})
      for _ in cute.when(arch.mbarrier_try_wait(bar, 1, {time_limit = 5})) do
        arch.mbarrier_inval(bar)
      end
    end)():trace {block = 1}
    kernels.compiles(text, {"sm_90a"})
    for _, line in ipairs {
      "mbarrier.arrive.release.cluster.shared::cta.b64 %0, [%1], %2;",
      "mbarrier.try_wait.acquire.cluster.shared::cta.b64 p, [%0], %1;",
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3;"} do
      assert.matches(line, text.source, 1, true)
    end
  end)

  it("are needed to order accesses", function()
    local o = cute.zeros({64}, "i32")
    local report = support.report(swap(WAYS.wait, true)(o, 4):launch {grid = 1,
      block = 64, device = "sim", faults = "return"})
    assert.equal("race", report.reports[1].kind)
  end)

  it("are good for their phase and the next", function()
    local report = support.report(cute.kernel("old", function()
      local bar = arch.alloc_smem(cute.i64, 1)
      arch.mbarrier_init(bar, 1)
      local first = arch.mbarrier_arrive(bar, nil, 1, {token = true})
      local second = arch.mbarrier_arrive(bar, nil, 1, {token = true})
      arch.mbarrier_wait(bar, second)
      arch.mbarrier_wait(bar, first)
    end)():launch {grid = 1, block = 1, device = "sim", faults = "return"})
    local r = report.reports[#report.reports]
    assert.equal("mbarrier", r.kind)
    assert.matches("is waited on with a token of phase 0 while phase 2 is "
      .. "current: a token is valid in the phase of its arrival and in the "
      .. "next one",
      tostring(report), 1, true)
  end)

  it("belong to their mbarrier", function()
    for name, wait in pairs {
      wait = arch.mbarrier_wait,
      test = function(b, x)
        cute.when(arch.mbarrier_test_wait(b, x), function()
          arch.nanosleep(1)
        end)
      end,
      try = function(b, x)
        cute.when(~arch.mbarrier_try_wait(b, x), function()
          arch.nanosleep(1)
        end)
      end} do
      assert.equal(FOREIGN:format(1), faults(function(b, _, arrive)
        local x = arrive(b)
        arrive(b + 1)
        wait(b + 1, x)
      end), name)
    end
    assert.equal(FOREIGN:format(1), faults(function(b, _, arrive)
      -- fault: no thread arrives at b + 1; the token is from mbarrier b
      arch.mbarrier_wait(b + 1, arrive(b))
    end))
  end)
end)

describe("tokens of mbarriers", function()
  it("are followed through variables, branches, choices, memory", function()
    local function mixed(right)
      return function(b, t, arrive)
        local x, y, low = arrive(b), arrive(b + 1), t:lt(16)
        local z = x
        cute.when(low, function() z = y end)
        arch.mbarrier_wait(right and b + cute.where(low, 1, 0) or b, z)
        arch.mbarrier_wait(b + cute.where(low, 1, 0), cute.where(low, y, x))
      end
    end
    assert.equal(FOREIGN:format(0), faults(mixed(false)))
    assert.is_nil(faults(mixed(true)))
    for _, k in ipairs {0, 1} do
      assert.equal(k == 1 and FOREIGN:format(0) or nil,
                   faults(function(b, t, arrive)
        local r = cute.make_rmem_tensor({2}, cute.u64)
        r[0], r[1] = arrive(b), arrive(b + 1)
        for i in cute.range(2) do arch.mbarrier_wait(b + i, r[i]) end
        local s = cute.make_smem_tensor(cute.u64, cute.make_layout {32})
        s[t] = r[k]
        arch.mbarrier_wait(b, s[t])
      end))
    end
    assert.is_nil(faults(function(b, _, arrive)
      local x = arrive(b)
      for _ in cute.range(3) do
        arch.mbarrier_wait(b, x)
        x = arrive(b)
      end
      arch.mbarrier_wait(b, x)
    end))
    assert.equal(FOREIGN:format(0), faults(function(b, t, arrive)
      arch.mbarrier_wait(b, cute.where(t:lt(16), arrive(b), 0))
    end))
  end)

  it("are opaque", function()
    local number = "the token of an mbarrier is used as a number: it is opaque "
      .. "[type-mismatch]"
    local phase = "the phase to wait for is a 64-bit value that is not a token "
      .. "[type-mismatch]"
    local function refused(want, f)
      local text, line = support.message(function()
        cute.kernel("k", function(o)
          local bar = arch.alloc_smem(cute.i64, 1)
          f(arch.mbarrier_arrive(bar, nil, 1, {token = true}), bar, o)
        end)(cute.zeros({32}, cute.u64)):trace {block = 32}
      end)
      assert.equal(want, text:match "[^\n]*")
      assert.equal(debug.getinfo(f, "S").linedefined + 1, line)
    end
    refused(number, function(x, b)
      arch.mbarrier_wait(b, x + 1)
    end)
    refused(number, function(x, b)
      arch.mbarrier_wait(b, x ~ 1)
    end)
    refused(number, function(x, _, o)
      o[0] = cute.where(x:eq(0), 1, 2):to(cute.u64)
    end)
    refused(number, function(x, _, o)
      o[x] = 1
    end)
    refused(number, function(x, _, o)
      o[0] = x:to(cute.i32):to(cute.u64)
    end)
    refused(number, function(x, _, o)
      arch.atomic_add(o.iterator, x)
    end)
    refused("the token of an mbarrier is stored in global memory, where its "
      .. "bits mean nothing [type-mismatch]", function(x, _, o)
      o[0] = x
    end)
    refused(phase, function(_, b)
      arch.mbarrier_wait(b, arch.thread_idx():to(cute.u64))
    end)
    refused(phase, function(_, b)
      arch.mbarrier_wait(b, arch.thread_idx():to(cute.u64) + 1)
    end)
  end)

  it("are rejected where no mbarrier returns one", function()
    local function refused(f)
      return (support.message(function()
        cute.kernel("k", function()
          f(arch.alloc_smem(cute.i64, 1))
        end)():trace {block = 1}
      end))
    end
    assert.equal("cute.arch.mbarrier_arrive: token = true needs the "
      .. "block's own barrier: an arrival at another block's barrier returns "
      .. "no token [bad-argument]", refused(function(bar)
        arch.mbarrier_arrive(bar, 1, 1, {token = true})
      end))
    assert.equal("cute.arch.mbarrier_arrive: token = 3; a boolean is needed "
      .. "[bad-argument]", refused(function(bar)
        arch.mbarrier_arrive(bar, nil, 1, {token = 3})
      end))
    assert.equal("cute.arch.mbarrier_try_wait: time_limit = -1; nanoseconds, 0 "
      .. "to 2147483647, are needed [bad-argument]", refused(function(bar)
        arch.mbarrier_try_wait(bar, 0, {time_limit = -1})
      end))
  end)
end)
-- SPDX-License-Identifier: MIT
