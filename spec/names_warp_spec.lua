-- Warp-wide operations, atomics, accesses with hints, printf, inline PTX:
-- what the simulator computes and refuses, and that NVRTC takes their text.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local arch = cute.arch
local T = require "spec.names_support"
local raises = require "spec.support".raises
local launch = T.launch

local function ok(report)
  assert.is_true(report.ok, tostring(report))
  return report
end

local function first_fault(report)
  assert.is_false(report.ok)
  return report.reports[1]
end

local function random_words(n, mask)
  local t, list = cute.zeros({n}, "i32"), {}
  for i = 0, n - 1 do
    list[i] = (T.random() & mask) - mask // 2
    t[i] = list[i]
  end
  return t, list
end

describe("lanes", function()
  it("have masks", function()
    local o = cute.zeros({32, 7}, "u32")
    ok(launch(function(out)
      local t = arch.lane_idx()
      local r = {arch.lanemask_lt(), arch.lanemask_le(), arch.lanemask_eq(),
                 arch.lanemask_ge(), arch.lanemask_gt(), arch.activemask()}
      for j, v in ipairs(r) do out[{t, j - 1}] = v end
      cute.when(t:lt(5), function() out[{t, 6}] = arch.activemask() end)
    end, {o}))
    for l = 0, 31 do
      local eq = 1 << l
      assert.same({eq - 1, 2 * eq - 1, eq, 0xffffffff & ~(eq - 1),
                   0xffffffff & ~(2 * eq - 1), 0xffffffff, l < 5 and 31 or 0},
        {o(l, 0), o(l, 1), o(l, 2), o(l, 3), o(l, 4), o(l, 5), o(l, 6)})
    end
  end)

  it("vote, in groups too", function()
    local x, v = random_words(32, 3)
    local o = cute.zeros({32, 9}, "i32")
    ok(launch(function(a, out)
      local t = arch.lane_idx()
      local p = a[t]:gt(0)
      local function int(q) return q:to(cute.i32) end
      local r = {int(arch.vote_any_sync(p)), int(arch.vote_all_sync(p)),
                 int(arch.vote_uni_sync(p)), int(arch.vote_ballot_sync(p)),
                 int(arch.vote_uni_sync(t:lt(99)))}
      for j, q in ipairs(r) do out[{t, j - 1}] = q end
      cute.when(t:lt(8), function()
        out[{t, 5}] = int(arch.vote_any_sync(p, 0xff))
        out[{t, 6}] = int(arch.vote_sync_op(p, "all", 0xff))
        out[{t, 7}] = int(arch.vote_ballot_sync(p, 0xff))
        out[{t, 8}] = int(arch.vote_uni_sync(p, 0xff))
      end)
    end, {x, o}))
    local function votes(n)
      local ballot, all = 0, true
      for l = 0, n - 1 do
        if v[l] > 0 then ballot = ballot | 1 << l else all = false end
      end
      local function b(p) return p and 1 or 0 end
      return b(ballot ~= 0), b(all), b(all or ballot == 0),
        ballot >= 1 << 31 and ballot - (1 << 32) or ballot
    end
    local any, all, uni, ballot = votes(32)
    for l = 0, 31 do
      assert.same({any, all, uni, ballot, 1},
        {o(l, 0), o(l, 1), o(l, 2), o(l, 3), o(l, 4)})
    end
    any, all, uni, ballot = votes(8)
    assert.same({any, all, ballot, uni}, {o(3, 5), o(3, 6), o(3, 7), o(3, 8)})
  end)

  it("match, shuffle and reduce in groups", function()
    local x, v = random_words(32, 7)
    local o = cute.zeros({32, 12}, "i32")
    ok(launch(function(a, out)
      local t = arch.lane_idx()
      local y = a[t]
      local wide = y:to(cute.i64) << 33 | t:to(cute.i64)
      local r = {arch.match_sync(0xffffffff, y):to(cute.i32),
                 arch.match_sync(0xffffffff, y * 0 + 9, "all"):to(cute.i32),
                 arch.match_sync(0xffffffff, y, "all"):to(cute.i32),
                 arch.match_sync(0xffffffff, y:to(cute.i64) << 40)
                   :to(cute.i32)}
      for j, q in ipairs(r) do out[{t, j - 1}] = q end
      cute.when(t:ge(16), function()
        local m = 0xffff0000
        out[{t, 4}] = arch.shuffle_sync(y, 3, 16, m)
        out[{t, 5}] = arch.shuffle_sync_up(y, 2, 16, m)
        out[{t, 6}] = arch.shuffle_sync_down(y, 5, 16, m)
        out[{t, 7}] = arch.shuffle_sync_bfly(y, 6, 16, m)
        out[{t, 8}] = (arch.shuffle_sync_op(wide, 17, m) >> 33):to(cute.i32)
        out[{t, 9}] = arch.warp_redux_sync(y, "max", m)
        out[{t, 10}] = arch.warp_redux_sync(y, "xor", m)
        out[{t, 11}] = arch.warp_redux_sync(y, "umin", m)
      end)
    end, {x, o}))
    local function s32(u) return u >= 1 << 31 and u - (1 << 32) or u end
    for l = 0, 31 do
      local same, one = 0, true
      for k = 0, 31 do
        if v[k] == v[l] then same = same | 1 << k else one = false end
      end
      assert.same({s32(same), -1, one and -1 or 0, s32(same)},
                  {o(l, 0), o(l, 1), o(l, 2), o(l, 3)})
      if l >= 16 then
        local most, all, least = -99, 0, 1 << 32
        for k = 16, 31 do
          most, all = math.max(most, v[k]), all ~ v[k]
          least = math.min(least, v[k] & 0xffffffff)
        end
        assert.same({v[19], v[l - 2 >= 16 and l - 2 or l],
                     v[l + 5 <= 31 and l + 5 or l], v[l ~ 6], v[17], most,
                     all, s32(least)},
          {o(l, 4), o(l, 5), o(l, 6), o(l, 7), o(l, 8), o(l, 9), o(l, 10),
           o(l, 11)})
      end
    end
  end)

  it("reduce floats, and agree on one", function()
    local x, v = random_words(32, 1023)
    local o = cute.zeros({32, 6}, "f32")
    ok(launch(function(a, out)
      local t = arch.lane_idx()
      local y = a[t]:to(cute.f32)
      local r = {arch.warp_reduction_max(y), arch.warp_reduction_sum(y, 8),
                 arch.warp_redux_sync(y, "fmin"),
                 arch.warp_redux_sync(y, "fmax", nil, {abs = true}),
                 arch.make_warp_uniform(y),
                 core.cvt(arch.warpsize(), cute.f32)}
      for j, q in ipairs(r) do out[{t, j - 1}] = q end
    end, {x, o}))
    local most, least, mag = -1e9, 1e9, 0
    for l = 0, 31 do
      most, least = math.max(most, v[l]), math.min(least, v[l])
      mag = math.max(mag, math.abs(v[l]))
    end
    for l = 0, 31 do
      local sum, f = 0, l // 8 * 8
      for k = f, f + 7 do sum = sum + v[k] end
      assert.same({most * 1.0, sum * 1.0, least * 1.0, mag * 1.0, v[0] * 1.0,
                   32.0},
        {o(l, 0), o(l, 1), o(l, 2), o(l, 3), o(l, 4), o(l, 5)})
    end
  end)

  it("reduce floats of a mask, and NaN", function()
    local nan = 0 / 0
    local x, o = cute.zeros({32}, "f32"), cute.zeros({32, 6}, "f32")
    local v = {}
    for l = 0, 31 do
      v[l] = l % 8 == 3 and nan or l % 8 == 5 and -0.0 or l // 8 - l % 8 * 0.5
      if l >= 24 then v[l] = nan end
      x[l] = v[l]
    end
    ok(launch(function(a, out)
      local t = arch.lane_idx()
      local m = arch.match_sync(0xffffffff, t // 8)
      local y, r = a[t], {}
      for _, kind in ipairs {"fmax", "fmin"} do
        for _, opts in ipairs {{}, {nan = true}, {abs = true}} do
          r[#r + 1] = arch.warp_redux_sync(y, kind, m, opts)
        end
      end
      for j, q in ipairs(r) do out[{t, j - 1}] = q end
    end, {x, o}))
    local function bits(f) return (string.unpack("I4", string.pack("f", f))) end
    for l = 0, 31 do
      local most, least, far, near = -math.huge, math.huge, 0, math.huge
      for k = l // 8 * 8, l // 8 * 8 + 7 do
        if v[k] == v[k] then
          most, far = math.max(most, v[k]), math.max(far, math.abs(v[k]))
          near = math.min(near, math.abs(v[k]))
          least = math.min(least, v[k])
        end
      end
      local want = {most, nan, far, least, nan, near}
      for j = 1, 6 do
        local w = l >= 24 and nan or want[j]
        if w ~= w then assert.equal(0x7fffffff, bits(o(l, j - 1)))
        else assert.equal(w, o(l, j - 1)) end
      end
    end
    raises("'fmax' of f64: f32 or narrower is needed", launch, function(a)
      arch.warp_redux_sync(a[0]:to(cute.f64), "fmax")
    end, {x})
  end)

  it("come in groups of a power of two", function()
    local o = cute.zeros({32}, "f32")
    for _, width in ipairs {33, 0, 12, -4, 8.0} do
      raises("a width of " .. width .. " lanes: a power of two from 1 to 32",
        launch, function(x)
          x[0] = arch.warp_reduction_sum(x[arch.lane_idx()], width)
        end, {o})
    end
    raises("bad argument #2 to 'cute.arch.shuffle_sync_up'",
      launch, function(x) x[0] = arch.shuffle_sync_up(x[0]) end, {o})
  end)

  it("are all to come where a mask names them", function()
    local o = cute.zeros({32}, "i32")
    local r = first_fault(launch(function(out)
      local t = arch.lane_idx()
      cute.when(t:lt(8), function()
        out[t] = arch.vote_uni_sync(t:lt(4), 0xffff):to(cute.i32)
      end)
    end, {o}))
    assert.equal("divergent", r.kind)
    r = first_fault(launch(function(out)
      local t = arch.lane_idx()
      out[t] = arch.shuffle_sync(t, 3, 32, 0xff)
    end, {o}))
    assert.equal("divergent", r.kind)
    raises("no kind 'most'", launch, function(_)
      arch.vote_sync_op(arch.lane_idx():lt(3), "most")
    end, {o})
    raises("no kind 'some'", launch, function(_)
      arch.match_sync(1, arch.lane_idx(), "some")
    end, {o})
  end)
end)

describe("the machine", function()
  it("answers, anew where it changes", function()
    local o = cute.zeros({32, 12}, "i32")
    ok(launch(function(out)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout(100))
      s[t] = 0.0
      local a, b = arch.clock(), arch.clock()
      local c, d = arch.clock64(), arch.clock64()
      local r = {b - a, (d - c):to(cute.i32), arch.nsmid(), arch.nwarpid(),
                 arch.physical_warp_id(), arch.dynamic_smem_size(),
                 arch.total_smem_size(), arch.aggr_smem_size(),
                 arch.gridid(), arch.get_dyn_smem_size(), arch.smid(),
                 (arch.globaltimer() - arch.globaltimer_lo():to(cute.i64))
                   :to(cute.i32)}
      for j, v in ipairs(r) do out[{t, j - 1}] = v end
    end, {o}))
    assert.is_true(o(0, 0) > 0 and o(0, 1) > 0)
    assert.is_true(o(0, 10) < o(0, 2) and o(0, 4) < o(0, 3))
    assert.same({400, 512, 1536, 400}, {o(0, 5), o(0, 6), o(0, 7), o(0, 9)})
  end)

  it("is of a version", function()
    if not require "cute.jit".version() then
      return pending "NVRTC is not here"
    end
    assert.is_true(arch.target_version {min_version = "11.4"})
    assert.is_false(arch.target_version {min_version = "99.1"})
    assert.is_false(arch.target_version {exact_version = "9.0"})
    assert.is_true(arch.target_version {max_version = "99"})
    raises("is no version", arch.target_version, {min_version = "new"})
  end)
end)

---------------------------------------------------------------------------

describe("atomics", function()
  local OPS = {
    {"atomic_add", function(a, b) return a + b end},
    {"atomic_min", math.min}, {"atomic_max", math.max},
    {"atomic_and", function(a, b) return a & b end},
    {"atomic_or", function(a, b) return a | b end},
    {"atomic_xor", function(a, b) return a ~ b end},
  }

  it("of global and shared memory give what was there", function()
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
      -- a sum by compare and swap
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

  it("say what they do not take", function()
    local o, f = cute.zeros({4}, "i32"), cute.zeros({4}, "f32")
    raises("no sem 'strong'", launch, function(a)
      arch.atomic_add(a.iterator, 1, {sem = "strong"})
    end, {o})
    raises("no option 'cop'", launch, function(a)
      arch.atomic_add(a.iterator, 1, {cop = "cg"})
    end, {o})
    raises("bitwise atomic on f32", launch, function(a)
      arch.atomic_or(a.iterator, 1.0)
    end, {f})
    raises("cmp = x, val = y", launch, function(a)
      arch.atomic_cas(a.iterator, 3)
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
      -- one warp tells the other
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
    raises("an address is no pointer", cute.make_ptr, "f32", 4096)
    raises("is to host, not gmem", cute.make_ptr, "f32", x, "gmem")
  end)
end)

---------------------------------------------------------------------------

describe("printf", function()
  local function print_all(out)
    local t = arch.thread_idx()
    local b = arch.block_idx()
    cute.printf("{} of %d: {} %5.2f %x%%\n", t, b, t:to(cute.f32) / 2,
                t:to(cute.bf16), t * 17)
    arch.sync_threads()
    cute.printf("done {}\n", t:eq(3))
    out[t] = t
  end

  it("writes what threads say, in their order", function()
    local o = cute.zeros({64}, "i32")
    local want = {}
    for b = 0, 1 do
      for w = 0, 1 do
        for t = w * 32, w * 32 + 31 do
          want[#want + 1] = ("%d of %d: %f %5.2f %x%%\n"):format(t, b, t / 2,
            t * 1.0, t * 17)
        end
        for t = w * 32, w * 32 + 31 do
          want[#want + 1] = ("done %d\n"):format(t == 3 and 1 or 0)
        end
      end
    end
    for seed = 1, 5 do
      local r = ok(launch(print_all, {o}, {grid = 2, block = 64, seed = seed}))
      assert.equal(table.concat(want), r.output)
    end
    local written = {}
    local file = {write = function(_, text) written[#written + 1] = text end}
    launch(print_all, {o}, {grid = 2, block = 64, output = file})
    assert.same({table.concat(want)}, written)
  end)

  it("prints a value by its type where the conversion does not fit",
    function()
    local o = cute.zeros({1}, "i32")
    local program
    local r = ok(launch(function(_)
      local t = arch.thread_idx()
      cute.printf("%d %3i %.2f %lld\n", t:to(cute.f32) + 1.5, t:to(cute.u8),
                  t + 7, t - 1)
    end, {o}, {grid = 1, block = 1}))
    assert.equal("1.5   0 7.00 -1\n", r.output)
    program = cute.kernel("k", function()
      local t = arch.thread_idx()
      cute.printf("%d %3i %.2f %lld\n", t:to(cute.f32) + 1.5, t:to(cute.u8),
                  t + 7, t - 1)
    end)():trace {block = 1}
    assert.matches('printf%("%%g %%3u %%%.2f %%d\\n"', program.source)
  end)

  it("checks its format", function()
    local o = cute.zeros({64}, "i32")
    raises("2 conversions and 1 value follows", launch, function(_)
      cute.printf("{} {}\n", arch.lane_idx())
    end, {o})
    for _, bad in ipairs {"%s", "%*d", "%5-5d", "%..2f", "%1.2.3f", "%lllld",
        "%------d", "%5", "%"} do
      raises("is no conversion", launch, function(_)
        cute.printf(bad, arch.lane_idx())
      end, {o})
    end
    for _, wide in ipairs {"%999999999d", "%1000d", "%.99999999f",
        "%-5.1234e"} do
      raises({"a width or precision has at most three digits", "[limit]"},
        launch, function(_) cute.printf(wide, arch.lane_idx()) end, {o})
    end
    raises("1 conversion and 3 values follow", launch, function(_)
      cute.printf("%d\n", arch.thread_idx())
    end, {o})
    raises("gives three values: write (thread_idx())", launch, function(_)
      cute.printf("%d\n", arch.thread_idx())
    end, {o})
    raises("only meaningful inside a kernel", cute.printf, "hello\n")
  end)
end)

describe("inline PTX", function()
  it("is refused by the simulator, and taken by NVRTC", function()
    local o = cute.zeros({32, 4}, "i32")
    raises("the simulator cannot execute inline PTX", launch, T.inline_ptx, {o})
    local program = cute.kernel("k", T.inline_ptx)(o):trace {block = 32}
    assert.is_truthy(program.source:find("max.s32 %0, %1, %2;", 1, true))
    assert.is_truthy(program.source:find("%%laneid", 1, true))
    return kernels.compiles(program, {"sm_90a"}) or
      pending "NVRTC is not here"
  end)

  it("names its operands", function()
    local o = cute.zeros({1}, "i32")
    raises("{$r1} names no operand", launch, function(_)
      arch.inline_ptx("mov.u32 {$w0}, {$r1};",
        {write_only_types = {cute.i32}, read_only_args = {1}})
    end, {o})
  end)
end)
