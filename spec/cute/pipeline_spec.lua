-- Tests cute.pipeline on cp.async: data that pass through stages must arrive,
-- and each omitted step must be reported.
local core = require "cute.core"
local cute = require "cute"
local arch = cute.arch
local T = require "spec.values"
local raises = require "spec.support".raises
local launch = T.launch
local _ = cute._

local TILES, STAGES = 7, 3

-- Computes column sums of tiles of 32 x 4. Each thread reads elements that
-- other threads copied. `flaw` names the step of the pipeline that the kernel
-- omits.
local function summing(flaw, device_loop)
  return function(A, O)
    local t = arch.thread_idx()
    local pipe = cute.pipeline.PipelineCpAsync {num_stages = STAGES}
    local s = cute.make_smem_tensor(cute.f32,
      cute.make_layout({128, STAGES}, {1, 128}), 16)    -- (element, stage)
    local g = cute.make_tensor(A.iterator,
      cute.make_layout({128, TILES}, {1, 128}))         -- (element, tile)
    local atom = cute.make_copy_atom(
      "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", cute.f32)
    local write = pipe:make_producer_state()
    local read = pipe:make_consumer_state()
    local function fill(tile)
      cute.copy(atom, cute.local_tile(g(_, tile), {4}, {t}),
                cute.local_tile(s(_, write.index), {4}, {t}))
    end
    local function ahead(k, last)
      pipe:producer_acquire(write)
      if last then fill(k) else
        cute.when(cute.lt(k, TILES), function() fill(k) end)
      end
      if flaw ~= "commit" then pipe:producer_commit(write) end
      write:advance()
    end
    for k = 0, STAGES - 2 do ahead(k, true) end
    local sum = core.cvt(0.0, cute.f32)
    local function body(k)
      if flaw == "wait" then arch.sync_threads()
      elseif flaw == "barrier" then arch.cp_async_wait_group(STAGES - 2)
      else pipe:consumer_wait(read) end
      for i = 0, 3 do sum = sum + s[{(t + 9) % 32 * 4 + i, read.index}] end
      pipe:consumer_release(read)
      read:advance()
      ahead(k + STAGES - 1)
    end
    if device_loop then
      for k in cute.range(TILES) do body(k) end
    else
      for k = 0, TILES - 1 do body(k) end
    end
    pipe:producer_tail(write)
    O[t] = sum
  end
end

local function summed(flaw, device_loop, seed)
  local A, O = cute.zeros({128 * TILES}, "f32"), cute.zeros({32}, "f32")
  for i = 0, 128 * TILES - 1 do A[i] = i % 97 end
  local r = launch(summing(flaw, device_loop), {A, O}, {seed = seed})
  return r, A, O
end

describe("PipelineCpAsync", function()
  it("moves tiles through its stages, in any schedule", function()
    for seed = 1, 50 do
      local r, A, O = summed(nil, seed % 2 == 0, seed)
      assert.is_true(r.ok, tostring(r))
      for t = 0, 31 do
        local want = 0
        for k = 0, TILES - 1 do
          for i = 0, 3 do want = want + A[k * 128 + (t + 9) % 32 * 4 + i] end
        end
        assert.equal(want * 1.0, O[t])
      end
    end
  end)

  it("without a wait, a commit or a barrier is found out", function()
    for _, flaw in ipairs {"wait", "commit", "barrier"} do
      for _, device_loop in ipairs {false, true} do
        local r = summed(flaw, device_loop, 3)
        assert.is_false(r.ok, flaw)
        assert.is_truthy(r.reports[1].kind:find "race"
          or r.reports[1].kind == "async-in-flight", r.reports[1].kind)
      end
    end
  end)

  it("counts stages, rounds and phases", function()
    local s = cute.pipeline.make_pipeline_state("producer", 3)
    local seen = {}
    for i = 1, 7 do
      seen[i] = ("%d/%d/%d"):format(s.index, s.phase, s.count)
      s:advance()
    end
    assert.same({"0/1/0", "1/1/1", "2/1/2", "0/0/3", "1/0/4", "2/0/5",
                 "0/1/6"}, seen)
    local c = s:clone()
    s:reverse()
    s:reverse()
    assert.same({2, 0, 5}, {s.index, s.phase, s.count})
    assert.equal(1, c.index)
    c:reset_count()
    assert.equal(0, c.count)
    raises("no user 'writer'", cute.pipeline.make_pipeline_state, "writer", 2)
    raises("2 or more", cute.pipeline.PipelineCpAsync, {num_stages = 1})
  end)
end)

describe("NamedBarrier", function()
  it("synchronizes some warps", function()
    local O = cute.zeros({64}, "i32")
    local r = launch(function(out)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))
      local b = cute.pipeline.NamedBarrier {barrier_id = 2, num_threads = 64}
      s[t] = t * 3
      b:arrive_and_wait()
      out[t] = s[63 - t]
      cute.pipeline.arrive_and_wait(3, 64)
      s[t] = t
      cute.pipeline.sync()
      out[t] = out[t] + s[t]
    end, {O}, {block = 64})
    assert.is_true(r.ok, tostring(r))
    for t = 0, 63 do assert.equal((63 - t) * 3 + t, O[t]) end
    raises("no separate wait", function()
      cute.pipeline.NamedBarrier {barrier_id = 1, num_threads = 32}:wait()
    end)
    raises("no separate wait", cute.pipeline.wait)
    raises("a multiple of 32", cute.pipeline.NamedBarrier,
           {barrier_id = 1, num_threads = 40})
  end)

  it("signals one warp that the other arrived", function()
    local O = cute.zeros({64}, "i32")
    local r = launch(function(out)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(32))
      cute.when(t:lt(32), function()
        s[t] = t * t
        cute.pipeline.arrive(1, 64)
      end, function()
        cute.pipeline.arrive_and_wait(1, 64)
        out[t] = s[t - 32]
      end)
    end, {O}, {block = 64})
    assert.is_true(r.ok, tostring(r))
    assert.equal(49, O[39])
  end)
end)

describe("a state that advances", function()
  it("is the result", function()
    local O = cute.zeros({2}, "i32")
    launch(function(out)
      local pipe = cute.pipeline.PipelineCpAsync {num_stages = 3}
      local write = pipe:make_producer_state()
      out[0] = write:advance().index
      write = write:advance(4)
      out[1] = write.index
    end, {O}, {block = 1})
    assert.same({1, 2}, {O[0], O[1]})
  end)
end)

---------------------------------------------------------------------------
-- SPDX-License-Identifier: MIT
