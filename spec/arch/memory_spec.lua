-- Tests atomics, and loads and stores with hints. The simulator must give the
-- expected results, invalid calls must raise errors, and NVRTC must accept the
-- emitted text.
local core = require "cute.core"
local cute = require "cute"
local arch = cute.arch
local T = require "spec.values"
local raises = require "spec.support".raises
local launch, ok, first_fault, random_words =
  T.launch, T.ok, T.first_fault, T.random_words

describe("atomics", function()
  local OPS = {
    {"atomic_add", function(a, b) return a + b end},
    {"atomic_min", math.min}, {"atomic_max", math.max},
    {"atomic_and", function(a, b) return a & b end},
    {"atomic_or", function(a, b) return a | b end},
    {"atomic_xor", function(a, b) return a ~ b end},
  }

  it("of global and shared memory return the old value", function()
    for _, type in ipairs {"i32", "u32", "i64"} do
      for _, op in ipairs(OPS) do
        local x, v = random_words(128, 255)
        for i = 0, 127 do v[i] = v[i] + 128; x[i] = v[i] end
        local out, old = cute.zeros({4}, type), cute.zeros({128}, type)
        for i = 0, 3 do out[i] = 77 end
        ok(launch(function(a, o, was)
          local t = arch.thread_idx()
          local s = cute.make_smem_tensor(cute[type], cute.make_layout(2))
          cute.when(t:eq(0), function()
            s[0] = core.cvt(77, cute[type])
            s[1] = core.cvt(77, cute[type])
          end)
          arch.sync_threads()
          local y = a[t]:to(cute[type])
          was[t] = arch[op[1]](o.iterator + t % 2, y)
          arch[op[1]](s.iterator + t % 2, y, {sem = "relaxed", scope = "cta"})
          arch.sync_threads()
          cute.when(t:lt(2), function() o[t + 2] = s[t] end)
        end, {x, out, old}, {block = 128}))
        local want = {[0] = 77, 77}
        for i = 0, 127 do want[i % 2] = op[2](want[i % 2], v[i]) end
        for i = 0, 3 do assert.equal(want[i % 2], out[i], op[1] .. type) end
      end
    end
  end)

  it("of floats, exchanged, compared and swapped", function()
    local x, v = random_words(64, 255)
    local o, n = cute.zeros({5}, "f32"), cute.zeros({2}, "i32")
    o[1], o[2] = -1e9, 1e9
    ok(launch(function(a, out, count)
      local t = arch.thread_idx()
      local y = a[t]:to(cute.f32)
      arch.red(out.iterator, y, {op = "add"})
      arch.atomic_fmax(out.iterator + 1, y)
      arch.atomic_fmin(out.iterator + 2, y)
      arch.atomic_exch(out.iterator + 3, 5.0)
      -- adds y to a number in memory, by a loop of compare-and-swap
      local p = out.iterator + 4
      local seen = cute.var(arch.load(p, nil, {sem = "relaxed"}))
      local done = cute.var(0)
      cute.loop(function() return done:get():eq(0) end, function()
        local was = seen:get()
        local got = arch.atomic_cas(p, {cmp = was, val = was + y})
        cute.when(got:eq(was), function() done:set(1) end)
        seen:set(got)
      end)
      arch.atomic_cas(count.iterator, {cmp = 0, val = t + 1})
      arch.atomic_cas(count.iterator + 1, {cmp = 7, val = t, sem = "acq_rel"})
    end, {x, o, n}, {block = 64}))
    local sum, most, least = 0, -1e9, 1e9
    for i = 0, 63 do
      sum, most, least = sum + v[i], math.max(most, v[i]),
        math.min(least, v[i])
    end
    assert.same({sum * 1.0, most * 1.0, least * 1.0, 5.0, sum * 1.0},
                {o[0], o[1], o[2], o[3], o[4]})
    assert.is_true(n[0] > 0 and n[0] <= 64)
    assert.equal(0, n[1])
  end)

  it("race with plain accesses, not with each other", function()
    local o = cute.zeros({64}, "i32")
    local function kernel(plain, wait)
      return function(out)
        local t = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout(1))
        cute.when(t:eq(0), function() s[0] = core.cvt(0, cute.i32) end)
        arch.sync_threads()
        arch.atomic_add(s.iterator, 1)
        if wait then arch.sync_threads() end
        out[t] = plain and s[0] or arch.atomic_add(s.iterator, 1)
      end
    end
    ok(launch(kernel(false, false), {o}, {block = 64}))
    ok(launch(kernel(true, true), {o}, {block = 64}))
    assert.equal(64, o[5])
    assert.is_truthy(first_fault(launch(kernel(true, false), {o},
                                        {block = 64})).kind:find "race$")
  end)

  it("report unsupported operands", function()
    local o, f = cute.zeros({4}, "i32"), cute.zeros({4}, "f32")
    raises("no sem 'strong'", launch, function(a)
      arch.atomic_add(a.iterator, 1, {sem = "strong"})
    end, {o})
    raises("no option 'cop'", launch, function(a)
      arch.atomic_add(a.iterator, 1, {cop = "cg"})
    end, {o})
    raises("bitwise atomic operation needs an integer type, not f32", launch,
           function(a)
      arch.atomic_or(a.iterator, 1.0)
    end, {f})
    raises("cmp = x, val = y", launch, function(a)
      arch.atomic_cas(a.iterator, {val = 3})
    end, {o})
    raises("no op 'mul'", launch, function(a)
      arch.red(a.iterator, 3, {op = "mul"})
    end, {o})
    raises("global or shared memory", launch, function(_)
      arch.atomic_add(cute.make_rmem_tensor({2}, cute.i32), 1)
    end, {o})
  end)
end)

describe("loads and stores", function()
  it("take hints, types and pointers", function()
    local x, v = random_words(64, 0xffff)
    local o, flag = cute.zeros({64}, "i32"), cute.zeros({1}, "i32")
    ok(launch(function(a, out, f)
      local t = arch.thread_idx()
      local p = a.iterator + t
      local y = arch.load(p, nil, {cop = "cg"})
        + arch.load(p, cute.u32, {level1_eviction_priority =
            "evict_no_allocate"}):to(cute.i32)
        + arch.load(p)
      arch.store(out.iterator + t, y, {cop = "wt"})
      -- the shared word by which warp 1 signals warp 0
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(1))
      cute.when(t:eq(0), function() s[0] = core.cvt(0, cute.i32) end)
      arch.sync_threads()
      cute.when(t:eq(40), function()
        arch.store(s.iterator, 9, {sem = "release", scope = "cta"})
      end)
      cute.when(t:eq(0), function()
        cute.loop(function()
          return arch.load(s.iterator, nil, {sem = "acquire", scope = "cta"})
            :eq(0)
        end, function() end)
        f[0] = arch.load(s.iterator, nil, {sem = "relaxed"})
      end)
    end, {x, o, flag}, {block = 64}))
    for i = 0, 63 do assert.equal(3 * v[i], o[i]) end
    assert.equal(9, flag[0])
    raises("either cop or sem", launch, function(a)
      arch.load(a.iterator, nil, {cop = "cg", sem = "relaxed"})
    end, {o})
    raises("no sem 'release'", launch, function(a)
      arch.load(a.iterator, nil, {sem = "release"})
    end, {o})
  end)

  it("see pointers as other types", function()
    local x, o = cute.zeros({4}, "f32"), cute.zeros({4}, "u32")
    for i = 0, 3 do x[i] = 1.5 * i end
    ok(launch(function(a, out)
      local t = arch.thread_idx()
      cute.when(t:lt(4), function()
        local p = cute.recast_ptr(a.iterator + t, cute.u32)
        assert.equal(cute.u32, p.element_type)
        out[t] = arch.load(p)
      end)
    end, {x, o}))
    for i = 0, 3 do
      assert.equal((string.unpack("<I4", string.pack("<f", 1.5 * i))), o[i])
    end
    local p = cute.make_ptr("f32", x, "host")
    assert.equal(3.0, cute.make_tensor(p + 2, cute.make_layout(1))(0))
    raises("is to host, not gmem", cute.make_ptr, "f32", x, "gmem")
  end)
end)

---------------------------------------------------------------------------
-- SPDX-License-Identifier: MIT
