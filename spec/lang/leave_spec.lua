-- Tests cute.break_if, cute.return_if and cute.func: the values of variables
-- after an early exit, the emitted text, and the simulator's reports about
-- threads that have exited.
local cute = require "cute"
local kernels = require "spec.kernels"
local T = require "spec.values"
local arch = cute.arch
local raises = require "spec.support".raises

local run = kernels.run

-- Returns the emitted text of kernel f for a block of 32 threads, without its
-- head.
local function text_of(f, ...)
  local program = cute.kernel("k", f)(...):trace {block = 32}
  return program, program.source:gsub("%s*//[^\n]*", "")
end

local function fault_of(f, block)
  local o = cute.zeros({64}, cute.i32)
  local report = T.launch(f, {o}, {block = block or 64})
  return {kind = T.first_fault(report).kind, text = tostring(report)}
end

describe("cute.break_if", function()
  it("keeps assignments, whatever the loop's end assigns",
    function()
    assert.same({5, 13, 2}, run(3, function(o, n)
      local last, sum = -1, 10
      local t = {count = 0}
      for k in cute.range(n) do
        last, sum = k, sum + k
        cute.break_if(sum:gt(15))
        sum, t.count = sum - last + 1, t.count + 1
        last = last - 1
        cute.break_if(sum:eq(n + 3))
        last = last + 2
      end
      o[0], o[1], o[2] = last + 4, sum, t.count - 1
    end, 10))
  end)

  it("leaves the loop around branches, not that around it", function()
    assert.same({12, 4}, run(2, function(o)
      local n, rounds = 0, 0
      for _ in cute.range(4) do
        rounds = rounds + 1
        for k in cute.range(100) do
          n = n + 1
          cute.when(k:ge(1), function()
            cute.when(k:eq(2), function() cute.break_if(true) end)
          end)
        end
      end
      o[0], o[1] = n, rounds
    end))
  end)

  it("takes conditions that Lua knows", function()
    assert.same({9, 4}, run(2, function(o, n)
      local a, b = 0, 0
      for _ in cute.range(n) do
        a = a + 3
        cute.break_if(false)
      end
      for _ in cute.range(n) do
        b = b + 4
        cute.break_if(true)
      end
      o[0], o[1] = a, b
    end, 3))
  end)

  it("is C's break if possible, else a goto", function()
    local o = cute.zeros({4}, cute.i32)
    local program, text = text_of(function(out, n)
      local sum = 0
      for k in cute.range(n) do
        cute.break_if(k:gt(out[0]))
        sum = sum + k
      end
      local f = cute.func(function(x)
        for k in cute.range(n) do
          for j in cute.range(n) do cute.return_if((x * j):eq(k)) end
        end
        out[2] = x
      end)
      f(sum)
      cute.return_if(sum:eq(7))
      out[1] = sum
    end, o, 5)
    assert.matches("for %(int k_1 = 0; k_1 < n; %+%+k_1%) {\n"
      .. "    if %(out%[0%] < k_1%) break;\n    sum %+= k_1;\n  }", text)
    assert.matches("goto done;\n      }\n    }\n    out%[2%] = x;\n"
      .. "  } while %(false%);\n  done:;\n  if %(x == 7%) return;\n"
      .. "  out%[1%] = x;\n}", text)
    if not kernels.compiles(program, {"sm_80", "sm_90a"}) then
      pending "needs NVRTC"
    end
  end)

  it("must be inside a loop of the kernel", function()
    local message = "): it is not inside a traced loop (cute.range, cute.loop) "
      .. "[loop-exit]"
    raises(message, run, 1, function(o) cute.break_if(o[0]:eq(0)) end)
    raises("cute.break_if(true" .. message, cute.break_if, true)
    raises("cute.return_if works only inside a kernel or a function created by "
      .. "cute.func [not-tracing]", cute.return_if, true)
    raises(message, run, 1, function(o)
      for _ in cute.range(3) do
        cute.func(function() cute.break_if(o[0]:eq(0)) end)()
      end
    end)
    raises("the condition is i32, not a boolean", run, 1, function(o)
      for k in cute.range(3) do cute.break_if(k) end
      o[0] = 1
    end)
    raises("cute.break_if was called in a coroutine that started in the loop",
      run, 1, function(o)
      for k in cute.range(3) do
        coroutine.wrap(function() cute.break_if(k:eq(o[0])) end)()
      end
    end)
    raises("local 'x' changes from i32 to f32 in this loop", run, 1,
      function(o)
      local x = o[0]
      for k in cute.range(3) do
        local was = x
        x = x:to(cute.f32) + k:to(cute.f32)
        cute.break_if(x:eq(1))
        x = was
      end
      o[0] = x
    end)
  end)
end)

describe("cute.func", function()
  it("gives the results of the way that was taken", function()
    assert.same({1, 5, 0, 20, 7, 3}, run(6, function(o)
      local calls = 0
      local f = cute.func(function(x, unit)
        calls = calls + 1
        cute.return_if(x:lt(0), 1, unit)
        calls = calls + 1
        cute.return_if(x:eq(0), 0, 20)
        calls = calls + 1
        return 7, unit
      end)
      local x = o[0]
      o[0], o[1] = f(x - 3, x + 5)
      o[2], o[3] = f(x, 5)
      local a = f(x + 3, 5)
      o[4], o[5] = a, calls - 3
    end))
  end)

  it("takes numbers for the type that traced results have", function()
    local o = cute.zeros({3}, cute.f32)
    cute.kernel("k", function(out)
      local f = cute.func(function(x, pair)
        cute.return_if(x:gt(2.5), 9, pair)
        return x * 0.5, {pair[2], pair[1]}
      end)
      local a, p = f(out[0] + 1, {2, 3})
      out[0], out[1], out[2] = a, p[1]:to(cute.f32), p[2]:to(cute.f32)
    end)(o):launch {grid = 1, block = 1, device = "sim"}
    assert.same({0.5, 3.0, 2.0}, {o(0), o(1), o(2)})
  end)

  it("returns tensors and vectors, and values common to all returns", function()
    local x = cute.zeros({4, 2}, cute.i32)
    for i = 0, 7 do x[i] = i end
    assert.same({2, 6, 20, 1, 5, 3}, run(6, function(o, t)
      local row = cute.func(function(k)
        cute.return_if(k:lt(2), t(2, cute._), t(0, cute._):load() * 10, "same")
        return t(k, cute._), t(1, cute._):load(), "same"
      end)
      local a, v, word = row(o[0] + 1)
      o[0], o[1] = a[0], a[1]
      o[2], o[3] = v[1] - 20, v[0]:eq(0):to(cute.i32)
      if word == "same" then o[4] = 5 end
      local b = row(o[4] - 2)
      o[5] = b[0]
      o[2] = v[1] - v[1] + 20
    end, x))
  end)

  it("is transparent if it only returns late", function()
    local _, text = text_of(function(o)
      local twice = cute.func(function(x) return x * 2 end)
      o[0] = twice(o[1])
    end, cute.zeros({2}, cute.i32))
    assert.matches("o%[0%] = o%[1%] %* 2;", text)
    assert.is_nil(text:find("do {", 1, true))
  end)

  it("is a function on the host", function()
    local f = cute.func(function(x)
      cute.return_if(x > 3, "big", x)
      return "small"
    end)
    assert.same({"big", 5}, {f(5)})
    assert.same({"small"}, {f(1)})
    raises("boom", cute.func(function() error "boom" end))
  end)

  it("changes outer variables, in loops", function()
    assert.same({6, 12}, run(2, function(o, n)
      local total, seen = 0, {n = 0}
      local add = cute.func(function(k)
        seen.n = seen.n + 2
        cute.return_if((k % 2):eq(1))
        total = total + k
      end)
      for k in cute.range(n) do add(k) end
      o[0], o[1] = total, seen.n
    end, 6))
  end)

  it("reports how its returns differ", function()
    local function fails(message, f) raises(message, run, 1, f) end
    fails("2 values here, but the function's other return has 1", function(o)
      cute.func(function(x)
        cute.return_if(x:gt(3), 1, 2)
        return x
      end)(o[0])
    end)
    fails("changes from", function(o)
      cute.func(function(x)
        cute.return_if(x:gt(3), 1.5)
        return x
      end)(o[0])
    end)
    fails("changes from string to i32 in cute.func", function(o)
      cute.func(function(x)
        cute.return_if(x:gt(3), "a")
        return x
      end)(o[0])
    end)
    fails("cute.return_if: a kernel cannot return values", function(o)
      cute.return_if(o[0]:eq(1), 3)
    end)
  end)
end)

describe("threads that have returned", function()
  it("do nothing more, wherever they returned", function()
    local o = cute.zeros({64}, cute.i32)
    T.ok(T.launch(function(out)
      local tid = arch.thread_idx()
      out[tid] = 1
      cute.return_if(tid:lt(8))
      out[tid] = 2
      cute.when(tid:lt(20), function()
        for k in cute.range(10) do
          cute.when((k * 3):gt(tid - 8), function()
            cute.return_if((tid % 2):eq(0))
          end, function() out[tid] = 10 + k end)
        end
        out[tid] = 3
      end, function()
        cute.return_if(true)
      end)
      out[tid] = out[tid] + 100
    end, {o}, {block = 32}))
    for t = 0, 31 do
      local want = t < 8 and 1 or t >= 20 and 2 or 103
      if t >= 8 and t < 20 and t % 2 == 0 then
        want = 10 + (t - 8) // 3
      end
      assert.equal(want, o(t), t)
    end
  end)

  it("are missed at barriers and by their warp", function()
    local few = fault_of(function(_)
      cute.return_if(arch.thread_idx():gt(50))
      arch.sync_threads()
    end)
    assert.equal("divergent", few.kind)
    assert.matches("19 of the warp's 32 threads .- 13 have returned", few.text)
    local warp = fault_of(function(_)
      cute.return_if(arch.thread_idx():ge(32))
      arch.sync_threads()
    end)
    assert.equal("deadlock", warp.kind)
    assert.matches("1 warp exited without arriving", warp.text)
    local shuffle = fault_of(function(o)
      local tid = arch.thread_idx()
      cute.return_if(tid:eq(9))
      o[tid] = arch.shuffle_sync(tid, 0)
    end)
    assert.equal("divergent", shuffle.kind)
    assert.matches("names lanes 0xffffffff; 1 has returned", shuffle.text)
    local left = fault_of(function(o)
      for k in cute.range(3) do
        cute.break_if((o[arch.thread_idx()] + arch.lane_idx()):gt(k + 20))
        arch.sync_threads()
      end
    end)
    assert.equal("divergent", left.kind)
  end)

  it("may be all threads: then none is missing", function()
    local o = cute.zeros({64}, cute.i32)
    T.ok(T.launch(function(out)
      local tid = arch.thread_idx()
      cute.return_if(arch.block_idx():eq(0))
      for k in cute.range(4) do
        cute.break_if(k:eq(arch.block_idx() + 1))
        arch.sync_threads()
        arch.atomic_add(out.iterator + tid, 1)
      end
    end, {o}, {block = 64, grid = 2}))
    for t = 0, 63 do assert.equal(2, o(t)) end
  end)
end)
-- SPDX-License-Identifier: MIT
