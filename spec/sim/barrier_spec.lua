-- Tests barriers with constant and traced numbers: which threads wait for each
-- other, the reports of invalid numbers and counts, and the emitted text.
local cute = require "cute"
local kernels = require "spec.kernels"
local T = require "spec.values"
local arch = cute.arch
local raises = require "spec.support".raises

-- Runs f(o, 1) in a block of 64 threads, where o is a tensor of 128 integers.
-- Returns the kind of the first fault, and the text of the report.
local function told(f)
  local o = cute.zeros({128}, cute.i32)
  local report = T.launch(f, {o, 1}, {block = 64})
  return T.first_fault(report).kind, tostring(report)
end

-- Returns a kernel of 128 threads in which warps 2 k and 2 k + 1 exchange data
-- through the named barrier with the number number(k).
local function pairs_meet(number)
  return function(o)
    local tid = arch.thread_idx()
    local pair = arch.warp_idx() // 2
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout {128})
    for k in cute.range(4) do
      s[tid] = tid + k
      arch.barrier(number(pair, k), 64)
      o[tid] = o[tid] + s[tid ~ 32]
      arch.barrier(number(pair, k + 1), 64)
    end
  end
end

describe("a barrier whose number is traced", function()
  it("synchronizes the threads that use its number", function()
    for _, number in ipairs {
      function(pair) return pair + 1 end,
      function(pair, k) return pair * 7 + k + 1 end,
      function(pair, k) return cute.where(pair:eq(0), k, 15 - k) end} do
      local o = cute.zeros({128}, cute.i32)
      for seed = 1, 3 do
        o:fill(0)
        T.ok(T.launch(pairs_meet(number), {o}, {block = 128, seed = seed}))
        for t = 0, 127 do assert.equal(4 * (t ~ 32) + 6, o(t)) end
      end
    end
  end)

  it("orders no other threads", function()
    local o = cute.zeros({128}, cute.i32)
    local report = T.launch(function(out)
      local tid = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {128})
      s[tid] = tid
      arch.barrier(arch.warp_idx() // 2 + 1, 64)
      out[tid] = s[tid ~ 64]
    end, {o}, {block = 128})
    assert.equal("race", T.first_fault(report).kind)
  end)

  it("passes data from stage to stage, by arrive and sync", function()
    local STAGES = 3
    local function rounds(wait_empty)
      local o = cute.zeros({32}, cute.i32)
      return T.launch(function(out)
        local lane = arch.lane_idx()
        local s = cute.make_smem_tensor(cute.i32,
          cute.make_layout({32, STAGES}))
        cute.when(arch.warp_idx():eq(0), function()
          for k in cute.range(7) do
            local stage = k % STAGES
            cute.when(k:ge(STAGES), function()
              if wait_empty then arch.barrier(stage + 1 + STAGES, 64) end
            end)
            s[{lane, stage}] = lane * 10 + k
            arch.barrier_arrive(stage + 1, 64)
          end
        end, function()
          local sum = 0
          for k in cute.range(7) do
            local stage = k % STAGES
            arch.barrier(stage + 1, 64)
            sum = sum + s[{31 - lane, stage}]
            cute.when((k + STAGES):lt(7), function()
              if wait_empty then arch.barrier_arrive(stage + 1 + STAGES, 64) end
            end)
          end
          out[lane] = sum
        end)
      end, {o}, {block = 64}), o
    end
    local report, o = rounds(true)
    T.ok(report)
    for l = 0, 31 do assert.equal(70 * (31 - l) + 21, o(l)) end
    assert.is_false((rounds(false)).ok)
  end)

  it("is one of 0 to 15, the same for a warp", function()
    local function fails(want, f)
      local kind, text = told(f)
      assert.equal("barrier-mismatch", kind)
      assert.equal(want, text:match "spec.lua:%d+: ([^\n]+) %[")
    end
    fails("barrier 16 does not exist: a block has barriers 0 to 15",
      function(_, one)
      arch.barrier(one * 16, 64)
    end)
    fails("barrier -1 does not exist: a block has barriers 0 to 15",
      function(_, one)
      arch.barrier_arrive(-one, 64)
    end)
    fails("lanes of a warp are at barriers 1 and 2", function(_, one)
      arch.barrier(one + arch.lane_idx() // 31, 64)
    end)
    fails("lanes of a warp name different thread counts for a barrier: 64 and "
      .. "32",
      function(_, one)
      arch.barrier(one, 64 - arch.lane_idx() // 31 * 32)
    end)
    raises("cute.arch.barrier: id 16 to 47 is not in 0 to 15 [bad-argument]",
      T.launch, function()
        arch.barrier(arch.lane_idx() + 16, 64)
      end, {})
    raises("id 16 is not in 0 to 15", T.launch, function()
      arch.barrier(16, 64)
    end, {})
  end)

  it("is not sync_threads' barrier 0 for fewer threads", function()
    local wrong = {}
    for seed = 1, 8 do  -- The seeds cover all orders of arrival.
      local report = T.launch(function(_, one)
        cute.when(arch.warp_idx():eq(0), function()
          arch.barrier(one - 1, 32)
        end)
        arch.sync_threads()
      end, {cute.zeros({1}, cute.i32), 1}, {block = 64, seed = seed})
      if not report.ok then wrong[#wrong + 1] = tostring(report) end
    end
    assert.equal(8, #wrong)
    for _, text in ipairs(wrong) do
      assert.matches("%[barrier%-mismatch%]", text)
      assert.truthy(text:find("a barrier for 32 threads that other warps use "
        .. "for 64 (barrier 0 is the barrier of sync_threads)", 1, true)
        or text:find("arrival at barrier 0 after the barrier's "
          .. "previous phase", 1, true))
    end
  end)
end)

describe("a barrier whose number is traced", function()
  it("reports arrivals that may belong to the previous round", function()
    local function rounds(f)
      for seed = 1, 4 do
        local r = T.launch(function(out)
          f(arch.warp_idx())
          out[0] = 1
        end, {cute.zeros({1}, cute.i32)}, {block = 128, seed = seed})
        local text = tostring(r)
        assert.equal(not r.ok, text:find("nothing orders this arrival at "
          .. "barrier 1 after the barrier's previous phase: that phase may "
          .. "count it instead of another arrival [barrier-mismatch]",
          1, true) ~= nil, text)
        if seed == 4 then return r.ok end
      end
    end
    -- Returns a kernel in which two pairs of warps use the same barrier one
    -- after the other. With `between`, all warps meet at another barrier in
    -- between.
    local function pairs_of(between)
      return function(w)
        cute.when(w:lt(2), function() arch.barrier(1, 64) end)
        if between then arch.sync_threads() end
        cute.when(w:ge(2), function() arch.barrier(1, 64) end)
      end
    end
    assert.is_true(rounds(pairs_of(true)))
    assert.is_false(rounds(pairs_of(false)))
    -- Returns a kernel in which warp 0 signals at barrier 1 that a stage is
    -- full. With `back`, the other warps signal at barrier 2 that it is empty.
    local function hand_over(back)
      return function(w)
        for _ in cute.range(3) do
          cute.when(w:eq(0), function()
            arch.barrier_arrive(1, 128)
            if back then arch.barrier(2, 128) end
          end, function()
            arch.barrier(1, 128)
            if back then arch.barrier_arrive(2, 128) end
          end)
        end
      end
    end
    assert.is_true(rounds(hand_over(true)))
    local seen = 0
    for seed = 1, 8 do
      local r = T.launch(function(out)
        hand_over(false)(arch.warp_idx())
        out[0] = 1
      end, {cute.zeros({1}, cute.i32)}, {block = 128, seed = seed})
      if r.ok then break end
      assert.equal("barrier-mismatch", r.reports[1].kind)
      seen = seen + 1
    end
    assert.equal(8, seen)
  end)

  it("is reported if it is undefined", function()
    local kind = told(function(_, _)
      local r = cute.make_rmem_tensor({1}, cute.i32)
      arch.barrier(r[0], 64)
    end)
    assert.equal("uninitialised", kind)
  end)

  it("is an operand in the text", function()
    local o = cute.zeros({128}, cute.i32)
    local program = cute.kernel("k", function(out, n)
      arch.barrier(n, 64)
      arch.barrier(n)
      arch.barrier(3, n * 32)
      arch.barrier_arrive(n + 1, n * 32)
      arch.barrier(3, 64)
      arch.barrier(3)
      arch.sync_threads()
      out[0] = 1
    end)(o, 2):trace {block = 128}
    local list = {}
    for line in program.source:gmatch "  (asm volatile%b();)" do
      list[#list + 1] = line
    end
    assert.same({
      'asm volatile("bar.sync %0, 64;" :: "r"(n) : "memory");',
      'asm volatile("bar.sync %0;" :: "r"(n) : "memory");',
      'asm volatile("bar.sync 3, %0;" :: "r"(i0) : "memory");',
      'asm volatile("bar.arrive %0, %1;" :: "r"(n + 1), "r"(i0) : "memory");',
      'asm volatile("bar.sync 3, 64;" ::: "memory");',
      'asm volatile("bar.sync 3;" ::: "memory");'}, list)
    return kernels.compiles(program, {"sm_75", "sm_90a"}) or
      pending "needs NVRTC"
  end)
end)
-- SPDX-License-Identifier: MIT
