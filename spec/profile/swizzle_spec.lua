-- Tests find_swizzle. For the scripts' kernels without their swizzles, it must
-- find layouts that are as good as the original ones. It must predict the
-- passes that the simulator counts. It is also compared with brute force. Also
-- tests the constraints of vectors, memory, TMA and wgmma.
local core = require "cute.core"
local cute = require "cute"
local harness = require "cutelua.bench.harness"
local lessonlib = require "cutelua.bench.lessonlib"
local plain = require "spec.profile.plain"
local real = require "cutelua.bench.lesson"
local row_major = require "spec.kernels".row_major
local support = require "spec.support"
local raises = support.raises
local cpasync = cute.nvgpu.cpasync

-- Runs f three times: unchanged, without its swizzles, and with the swizzles
-- that find_swizzle finds for the second run. f returns a report, or a list
-- whose last element is a report.
local function compare(f, least)
  local ours = plain.as_is(f)
  local bare, n = plain.without(f)
  assert.is_true(n >= least, "swizzles taken out: " .. n)
  local list, by = plain.found(bare)
  local predicted = bare:total "wavefronts"
  for _, found in ipairs(list) do
    assert.is_nil(found.why)
    predicted = predicted - found.was.passes + found.now.passes
    assert.is_true(found.now.passes < found.was.passes or found.kept)
    assert.equal(found.cured, found.now.conflicts == 0)
  end
  local after = plain.with(by, f)
  assert.equal(predicted, after:total "wavefronts", tostring(list))
  assert.is_true(after:total "conflicts" <= ours:total "conflicts",
                 tostring(list))
  return bare:total "conflicts", after:total "conflicts", list
end

describe("find_swizzle repairs the scripts' kernels without their swizzles:",
   function()
  for i, name in ipairs {"gemm_base", "gemm2stage", "gemm3stage",
                         "gemm_sm80_best", "gemm_sm70", "gemm_int8",
                         "gemm_fp8_sm89", "gemm_tf32", "gemm_f64"} do
    it(name, function()
      for _, layout in ipairs {i % 2 == 0 and "tn" or "nt",
                               i == 1 and "tn" or nil} do
        local before, after = compare(function()
          local rung = require "spec.lesson"("scripts/" .. name .. ".lua")
          local p = real.problem(rung, {128, 256, 64}, {layout = layout})
          local r = real.simulate(rung, p, "sim:sm_90a", {})
          assert(r.ok and real.verify(rung, p))
          return r
        end, 2)
        assert.is_true(before > 1000)
        if name ~= "gemm_f64" then assert.equal(0, after) end
      end
    end)
  end

  -- Runs case i of a script of copies on 256 x 256 elements. With `other`, runs
  -- the kernel without a swizzle with which the case is compared.
  local function copied(name, i, other)
    local spec = assert(lessonlib.script_spec("scripts/" .. name .. ".lua",
      "cutelua.bench.copylesson", "run"))
    local case = spec.cases and spec.cases[i] or spec
    local dtype, tile, n = case.dtype or cute.bf16, case.tile, 256
    local a = core.buffer(dtype, n * n):fill_int(1, -9, 9)
    local b = core.buffer(dtype, n * n)
    local r = (other and case.compare[1] or case).kernel(row_major(a, n, n),
      row_major(b, n, n)):profile {block = spec.block, device = "sim:sm_80",
                                   grid = n * n // (tile[1] * tile[2])}
    assert.is_true(a:equal(name == "transpose" and b:transpose(n, n) or b))
    return r
  end

  for _, name in ipairs {"copy_swizzled", "transpose"} do
    it(name, function()
      for i = 1, name == "transpose" and 2 or 1 do
        local before, after = compare(function() return copied(name, i) end, 1)
        assert.is_true(before > 1000)
        assert.equal(0, after)
        -- The script's own kernel without a swizzle must have as many conflicts
        -- as our kernel without its swizzle.
        local r = copied(name, i, true)
        assert.equal(before, r:total "conflicts")
        local list = r:find_swizzle "sA"
        assert.is_true(#list == 1 and list[1].cured)
      end
    end)
  end

  for _, name in ipairs {"attention", "attention_decode", "conv2d"} do
    it(name .. " #long", function()
      local spec = assert(lessonlib.script_spec("scripts/" .. name .. ".lua",
        "cutelua.bench.harness", "run"))
      local before, after = compare(function()
        local p = harness.problem(spec, spec.sim[1], {sm = 90})
        local ok, reports, wrong = harness.try(p, "sim:sm_90a")
        assert.is_true(ok, wrong)
        return reports[1]
      end, 2)
      assert.is_true(before > 10000)
      assert.equal(0, after)
    end)
  end
end)

-- Computes, independently of cute, the number of passes of accesses of `width`
-- bytes that are not merged. In each bank, a group of lanes accesses a number
-- of different words. The group needs as many passes as the largest of these
-- numbers.
local function by_hand(layout, at, count, threads, width, bytes)
  local total = 0
  for step = 0, count - 1 do
    for first = 0, threads - 1, 128 // math.max(width, 4) do
      local words, most = {}, 0
      for t = first, first + 128 // math.max(width, 4) - 1 do
        local byte = layout(at(t, step)) * bytes
        for w = byte // 4, (byte + width - 1) // 4 do
          local bank = words[w % 32] or {n = 0}
          if not bank[w] then bank[w], bank.n = true, bank.n + 1 end
          words[w % 32], most = bank, math.max(most, bank.n)
        end
      end
      total = total + most
    end
  end
  return total
end

describe("find_swizzle", function()
  it("is as good as all swizzles by brute force #long", function()
    math.randomseed(5)
    for _ = 1, 8 do
      local rows, cols = 1 << math.random(4, 6), 1 << math.random(4, 6)
      local layout = cute.make_layout({rows, cols}, {cols, 1})
      local down, wide = math.random(0, 3), 1 << math.random(0, 2)
      local function at(t, i)  -- in each group of 2^down lanes, lanes access
                               -- different rows, and `wide` floats of a row
        local n = t + 32 * i
        return {(n % (1 << down) * 8 + n // (1 << down)) % rows,
                n * 5 % (cols // wide) * wide}
      end
      local access = {op = "st", at = at, count = 8, width = 4 * wide}
      local found = cute.find_swizzle(layout, {access}, {type = "f32"})
      assert.equal(by_hand(layout, at, 8, 32, 4 * wide, 4), found.was.passes)
      assert.equal(by_hand(found.layout, at, 8, 32, 4 * wide, 4),
                   found.now.passes)
      local best = found.was.passes
      for b = 1, 3 do
        for m = wide == 1 and 0 or wide == 2 and 1 or 2, 4 do
          for s = b, 8 do
            local sw = cute.composition(cute.make_swizzle(b, m, s), layout)
            if 1 << (m + s) < rows * cols and m + b <= 5 then
              best = math.min(best, by_hand(sw, at, 8, 32, 4 * wide, 4))
            end
          end
        end
      end
      assert.is_true(found.now.passes <= best, tostring(found))
    end
  end)

  local transposed = {
    {op = "st", at = function(t, i) return {i, t} end, count = 32},
    {op = "ld", at = function(t, i) return {t, i} end, count = 32}}

  it("finds the well-known swizzles", function()
    local found = cute.find_swizzle(cute.make_layout({32, 32}, {32, 1}),
                                    transposed, {type = cute.f32})
    assert.is_true(found.cured)
    assert.equal("Sw<5,0,5> o 0 o (32,32):(32,1)", tostring(found.layout))
    assert.same({passes = 1056, conflicts = 992}, found.was)
    assert.same({passes = 64, conflicts = 0}, found.now)
    assert.equal("cute.composition(cute.make_swizzle(5, 0, 5), "
      .. "cute.make_layout({32, 32}, {32, 1}))", found.lua)
    local again = assert(load("local cute = ... return " .. found.lua))(cute)
    assert.is_true(again:equals(found.layout))
  end)

  it("pads if no swizzle helps, and there is room", function()
    local l = cute.make_layout({32, 16}, {16, 1})
    local accesses = {
      {op = "ld", count = 16, at = function(t, i) return {t, i} end},
      {op = "ld", count = 32, at = function(t, i)
        return {(2 * t + i) % 32, t % 16}
      end}}
    local found = cute.find_swizzle(l, accesses, {type = cute.f32})
    assert.is_true(found.cured)
    assert.equal("(32,16):(17,1)", tostring(found.layout))
    assert.same({was = 2048, now = 2172}, found.bytes)
    local small = cute.find_swizzle(l, accesses, {type = cute.f32,
                                                  budget = 2171})
    assert.is_false(small.cured)
    assert.equal(2048, small.bytes.now)
    -- If the original layout is padded, find_swizzle proposes one without
    -- padding.
    found = cute.find_swizzle(cute.make_layout({32, 16}, {40, 1}),
                              {accesses[1]}, {type = cute.f32})
    assert.is_true(found.cured and found.bytes.now == 2048)
  end)

  it("keeps vectors whole", function()
    for _, l in ipairs {cute.make_layout({32, 24}, {24, 1}),
                        cute.make_layout({32, 32}, {32, 1}),
                        cute.make_layout({32, 24}, {36, 1})} do
      for _, width in ipairs {8, 16} do
        local n = width // 4
        local found = cute.find_swizzle(l, {{op = "ld", width = width,
          at = function(t, i) return {t, i * n} end, count = 24 // n}},
          {type = cute.f32})
        assert.is_true(found.cured)
        for row = 0, 31 do
          for col = 0, 23, n do
            local first = found.layout(row, col)
            assert.equal(0, first % n)
            assert.equal(first + n - 1, found.layout(row, col + n - 1))
          end
        end
      end
    end
  end)

  it("reports if nothing helps, and the minimum", function()
    local one = cute.find_swizzle(cute.make_layout {32, 32}, {{op = "ld",
      at = function(t) return {0, t} end}, {op = "ld", at = function(t)
        return {t, 0} end}, {op = "ld", at = function(t) return {t, t} end},
      {op = "ld", at = function(t) return {t, (33 - t) % 32} end}},
      {type = cute.f32, budget = 4096})
    assert.is_false(one.cured)
    assert.is_true(one.now.conflicts > 0 and one.now.conflicts < 31)
    assert.is_truthy(tostring(one):find("conflicts become "
      .. one.now.conflicts, 1, true))
    local none = cute.find_swizzle(cute.make_layout {32}, {{op = "ld",
      at = function(t) return t end}}, {type = cute.f32})
    assert.is_truthy(tostring(none):find("no conflicts in 1 passes", 1, true))
  end)
end)

describe("find_swizzle", function()
  it("takes tiled copies, as they are run", function()
    local l = cute.make_layout({128, 64}, {64, 1})
    local g2s = cute.make_tiled_copy(cute.make_copy_atom(
      "SM80_CP_ASYNC_CACHEGLOBAL", cute.bf16, 128),
      cute.make_layout({16, 8}, {8, 1}), cute.make_layout({1, 8}))
    local mma = cute.make_tiled_mma(cute.make_mma_atom(
      "SM80_16x8x16_F32BF16BF16F32_TN"), cute.make_layout {2, 2})
    local x = cute.make_tensor(cute.zeros({8192}, cute.bf16).iterator, l)
    for _, name in ipairs {"SM75_U32x4_LDSM_N", "SM75_U32x2_LDSM_N",
                           "SM75_U32x1_LDSM_N", "UniversalCopy"} do
      -- A thread has at most two 8x8 matrices of B, so atoms that load four
      -- matrices (x4) are only tested with A.
      for _, which in ipairs {"A", not name:find "x4" and "B" or nil} do
        local s2r = cute["make_tiled_copy_" .. which](cute.make_copy_atom(name,
          cute.bf16, name == "UniversalCopy" and 32 or nil), mma)
        local told = cute.find_swizzle(l, {{copy = g2s, side = "D"},
                                           {copy = s2r, side = "S"}})
        local function run(layout)
          local r = cute.kernel("run", function(t)
            local tid = cute.arch.thread_idx()
            local s = cute.make_smem_tensor(cute.bf16, layout)
            local thr, own = g2s:get_slice(tid), s2r:get_slice(tid)
            cute.copy(g2s, thr:partition_S(t), thr:partition_D(s))
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            local part = own:partition_S(s)
            local frag = mma:get_slice(tid)["partition_fragment_" .. which](
              mma:get_slice(tid), s)
            cute.copy(s2r, part, own:retile(frag))
            cute.autovec_copy(frag, cute.make_fragment_like(frag))
          end)(x):profile {grid = 1, block = 128, device = "sim:sm_80"}
          return r
        end
        local bare = run(l)
        assert.equal(bare:total "wavefronts", told.was.passes, name .. which)
        assert.equal(bare:total "conflicts", told.was.conflicts)
        assert.is_true(told.cured)
        assert.equal(run(told.layout):total "wavefronts", told.now.passes)
      end
    end
  end)

  it("rejects invalid accesses", function()
    local l = cute.make_layout {32}
    raises('access 1 needs copy = a tiled copy, side = "S" or "D"',
           cute.find_swizzle, l, {{copy = 3, side = "S"}})
    raises("the list of accesses is empty", cute.find_swizzle, l, {})
    raises("access 1 must be a table with op = one of cp.async cp.async.cg ld "
      .. 'ldmatrix st stmatrix, not "move"', cute.find_swizzle, l,
      {{op = "move"}})
    raises("access 1 needs at", cute.find_swizzle, l, {{op = "ld"}})
    raises("access 1 has 3 bytes", cute.find_swizzle, l,
      {{op = "ld", width = 3, at = function(t) return t end}})
    raises("access 1 has count = 0; an integer of 1 or more",
      cute.find_swizzle, l,
      {{op = "ld", count = 0, at = function(t) return t end}})
  end)
end)

-- Threads write the rows of a (64,64) tile of bf16 to shared memory, and TMA
-- stores the tile.
local function by_tma(layout)
  local D = cute.zeros({64, 64}, cute.bf16)
  D = cute.make_tensor(D.iterator, cute.make_layout({64, 64}, {64, 1}))
  local store, cD = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileS2GOp(), D, layout, {64, 64})
  local k = cute.kernel("store", function(tma, out)
    local tid = cute.arch.thread_idx()
    local sD = cute.make_smem_tensor(cute.bf16, layout, 1024)
    local from, to = cpasync.tma_partition(tma, 0, cute.make_layout(1),
      cute.group_modes(sD, 0, 2), cute.group_modes(cute.local_tile(out,
        {64, 64}, {0, 0}), 0, 2))
    local r = cute.make_rmem_tensor({1, 8}, cute.bf16)
    r:fill(1)
    for i = 0, 7 do
      cute.autovec_copy(r, cute.local_tile(sD, {1, 8}, {tid, i}))
    end
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()
    cute.when(tid:eq(0), function()
      cute.copy(tma, from, to)
      cute.arch.cp_async_bulk_commit_group()
      cute.arch.cp_async_bulk_wait_group(0)
    end)
  end)
  local r = k(store, cD):profile {grid = 1, block = 64}
  for i = 0, 63 do assert.equal(1, D(i, 63 - i)) end
  return r
end

describe("for a kernel, find_swizzle", function()
  it("only tries canonical layouts if TMA copies", function()
    local r = by_tma(cute.make_layout({64, 64}, {64, 1}))
    local f = r:find_swizzle("sD")[1]
    assert.is_true(f.cured and f.was.conflicts > 0)
    assert.equal("tma", f.agent)
    assert.equal("cute.tile_to_shape(cute.nvgpu.warpgroup."
      .. 'make_smem_layout_atom("K_SW128", cute.bf16), {64, 64})', f.lua)
    local again = by_tma(f.layout)
    assert.equal(0, again:total "conflicts")
    assert.equal(f.now.passes, again:total "wavefronts")
  end)

  it("finds the best layout for a warpgroup's MMA", function()
    local text = support.read "scripts/gemm_wgmma.lua"
    for _, kind in ipairs {"INTER", "SW32", "SW64"} do
      local r = plain.as_is(function()
        local rung = require "spec.lesson"("scripts/gemm_wgmma.lua", nil,
          (text:gsub("K_SW128", "K_" .. kind)))
        local p = real.problem(rung, {128, 128, 128}, {})
        local report = real.simulate(rung, p, "sim:sm_90a", {})
        assert(report.ok and real.verify(rung, p))
        return report
      end)
      local list = r:find_swizzle()
      assert.equal(2, #list)
      for _, f in ipairs(list) do
        assert.equal("wgmma", f.agent)
        assert.is_true(f.cured and f.was.conflicts > 0)
        -- The proposed layout must be the script's original one.
        assert.equal("cute.tile_to_shape(cute.nvgpu.warpgroup."
          .. 'make_smem_layout_atom("K_SW128", cute.bf16), {128, 64, 3})',
          f.lua)
      end
    end
  end)

  it("handles tensors that are views of part of the memory", function()
    local l = cute.make_layout({32, 32}, {32, 1})
    local function kernel(layout)
      return cute.kernel("views", function(x)
        local tid = cute.arch.thread_idx()
        local s = cute.utils.SmemAllocator():allocate(cute.struct {
          {"first", cute.f32, 8}, {"tile", cute.f32, 1024, align = 128}})
        local sX = cute.make_tensor(s.tile, layout)
        for i = 0, 31 do sX[{i, tid}] = x[i * 32 + tid] end
        cute.arch.sync_warp()
        for i = 0, 31 do x[i * 32 + tid] = sX[{tid, i}] end
      end)
    end
    local function run(layout, o)
      local list = kernel(layout)(cute.zeros({1024}, cute.f32)):find_swizzle {
        grid = 1, block = 32, tensor = o}
      return list
    end
    local f = run(l)[1]
    assert.equal("(32,32):(32,1)", f.text)
    assert.equal(992, f.was.conflicts)
    assert.is_true(f.cured)
    local swizzled = run(f.layout, f.tensor)[1]
    assert.equal(0, swizzled.was.conflicts)
    -- If the kernel has a swizzle that does not help, find_swizzle must propose
    -- a better layout.
    local bad = run(cute.composition(cute.make_swizzle(1, 0, 5), l))[1]
    assert.equal(480, bad.was.conflicts)
    assert.is_true(bad.cured)
    raises("no shared tensor 'sY'", run, l, "sY")
  end)

  it("does not search tensors with several swizzles", function()
    local l = cute.make_layout({32, 32}, {32, 1})
    local sw = cute.composition(cute.make_swizzle(5, 0, 5), l)
    local list = cute.kernel("two", function(x)
      local tid = cute.arch.thread_idx()
      local p = cute.arch.alloc_smem(cute.f32, 1024)
      local a, b = cute.make_tensor(p, l), cute.make_tensor(p, sw)
      for i = 0, 31 do b[{i, tid}] = x[tid] end
      cute.arch.sync_warp()
      for i = 0, 31 do x[tid] = a[{tid, i}] end
    end)(cute.zeros({32}, cute.f32)):find_swizzle {grid = 1, block = 32}
    assert.equal(1, #list)
    assert.is_truthy(tostring(list):find("not searched: it is accessed through "
      .. "layouts with different swizzles", 1, true))
  end)

  it("searches tiles of 128 x 64", function()
    local r = plain.without(function()
      local rung = require "spec.lesson" "scripts/gemm3stage.lua"
      return real.simulate(rung, real.problem(rung, {128, 128, 256}, {}),
                           "sim:sm_90a", {})
    end)
    assert.equal(2, #r:find_swizzle())
  end)
end)
-- SPDX-License-Identifier: MIT
