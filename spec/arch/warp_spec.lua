-- Tests warp-wide operations and special registers. The simulator must give the
-- expected results, invalid calls must raise errors, and NVRTC must accept the
-- emitted text.
local core = require "cute.core"
local cute = require "cute"
local arch = cute.arch
local T = require "spec.values"
local raises = require "spec.support".raises
local launch, ok, first_fault, random_words =
  T.launch, T.ok, T.first_fault, T.random_words

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

  it("know which values all of them share", function()
    ok(launch(function()
      local t = arch.thread_idx()
      local x = t * 8 + 16
      for _, y in ipairs {arch.shuffle_sync(x, 3), arch.shuffle_sync_up(x, 1),
                          arch.shuffle_sync_down(x, 1),
                          arch.shuffle_sync_bfly(x, 1),
                          arch.make_warp_uniform(x)} do
        assert.same({lo = 16, hi = 63 * 8 + 16, div = 8}, core.fact(y))
      end
      local word = arch.make_warp_uniform(t:to(cute.u32))
      assert.same({lo = 0, hi = 63, div = 1}, core.fact(word))
    end, {}, {block = 64}))
  end)
end)

describe("lanes", function()
  it("reduce floats, and vote", function()
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
    raises("'fmax' of f64; f32 or a narrower type is needed", launch,
      function(a) arch.warp_redux_sync(a[0]:to(cute.f64), "fmax") end, {x})
  end)

  it("form groups of a power of two", function()
    local o = cute.zeros({32}, "f32")
    for _, width in ipairs {33, 0, 12, -4, 8.0} do
      raises("a width of " .. width .. " lanes; a power of two from 1 to 32",
        launch, function(x)
          x[0] = arch.warp_reduction_sum(x[arch.lane_idx()], width)
        end, {o})
    end
    -- The mask stands before the width, as in the Python DSL.
    for _, mask in ipairs {0xffffffff, -1, 0xff} do
      raises(("a width of %d lanes; a power of two from 2 to 32 is needed "
        .. "[bad-argument]\n  the mask follows the width; "
        .. "shuffle_sync_op(value, offset, mask, mask_and_clamp, kind) has the "
        .. "Python DSL's order"):format(mask), launch, function(x)
          x[0] = arch.shuffle_sync_down(x[0], 1, mask, 31)
        end, {o})
    end
    raises("bad argument #2 to 'cute.arch.shuffle_sync_up'",
      launch, function(x) x[0] = arch.shuffle_sync_up(x[0]) end, {o})
  end)

  it("must all take part if a mask names them", function()
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

describe("special registers", function()
  it("are read again if they change", function()
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

  it("require a version", function()
    if not require "cute.jit".version() then
      return pending "needs NVRTC"
    end
    assert.is_true(arch.target_version {min_version = "11.4"})
    assert.is_false(arch.target_version {min_version = "99.1"})
    assert.is_false(arch.target_version {exact_version = "9.0"})
    assert.is_true(arch.target_version {max_version = "99"})
    raises("is not a version", arch.target_version, {min_version = "new"})
  end)
end)

---------------------------------------------------------------------------
describe("Lua numbers in shuffles", function()
  it("are i32 or f32, also if a loop changes them", function()
    local o = cute.zeros({32}, "i32")
    launch(function(x)
      local last, sum, t = 0, 1.5, arch.lane_idx()
      for _ in cute.range(3) do last = arch.shuffle_sync_up(last, 1) + t end
      sum = arch.warp_reduction_sum(sum)
      x[t] = last + sum:to(cute.i32) + arch.shuffle_sync(7, 0)
    end, {o})
    local want = {}
    for t = 0, 31 do want[t] = 0 end
    for _ = 1, 3 do
      local old = table.move(want, 0, 31, 0, {})
      for t = 0, 31 do want[t] = old[math.max(t - 1, 0)] + t end
    end
    for t = 0, 31 do assert.equal(want[t] + 48 + 7, o[t]) end
  end)
end)
-- SPDX-License-Identifier: MIT
