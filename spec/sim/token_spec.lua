-- Arrivals at mbarriers that give tokens, waits for those, and waits that end
-- after a time.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"

-- Two warps write, arrive and read what the other wrote, n times; wait(bar,
-- token) is how they wait.
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

  it("are the instruction's own", function()
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

  it("are needed for what they order", function()
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
    assert.matches("is asked for phase 0 by a token, and phase 2 is at work: a "
      .. "token is good for the phase of its arrival and the one behind it",
      tostring(report), 1, true)
  end)

  it("are refused where there are none", function()
    local function refused(f)
      return (support.message(function()
        cute.kernel("k", function()
          f(arch.alloc_smem(cute.i64, 1))
        end)():trace {block = 1}
      end))
    end
    assert.equal("cute.arch.mbarrier_arrive: the barrier of another block "
      .. "gives no token [bad-argument]", refused(function(bar)
        arch.mbarrier_arrive(bar, 1, 1, {token = true})
      end))
    assert.equal("cute.arch.mbarrier_arrive: token = 3: a boolean is needed "
      .. "[bad-argument]", refused(function(bar)
        arch.mbarrier_arrive(bar, nil, 1, {token = 3})
      end))
    assert.equal("cute.arch.mbarrier_try_wait: time_limit = -1: nanoseconds, "
      .. "0 to 2147483647, are needed [bad-argument]", refused(function(bar)
        arch.mbarrier_try_wait(bar, 0, {time_limit = -1})
      end))
  end)
end)
