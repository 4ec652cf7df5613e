-- Tests the functions of cute.utils that return layouts of shared memory and
-- that choose atoms by the types of operands.
local core = require "cute.core"
local cute = require "cute"
local utils = cute.utils
local T = require "spec.values"
local raises = require "spec.support".raises
local launch = T.launch
local _ = cute._

describe("shared layouts", function()
  it("have the widest swizzle that fits", function()
    local layout, kind = utils.get_smem_layout_atom_ab("K", cute.bf16,
                                                       {128, 64})
    assert.equal("SW128", kind)
    assert.equal("Sw<3,3,3> o 0 o (8,64):(64,1)", tostring(layout))
    for k, want in pairs {[32] = "SW64", [16] = "SW32", [8] = "INTER",
                          [24] = "INTER"} do
      assert.equal(want, (select(2, utils.get_smem_layout_atom_ab("K",
        cute.bf16, {64, k}))))
    end
    assert.equal("SW128", (select(2, utils.get_smem_layout_atom_ab("MN",
      cute.f32, {32, 8}))))
    assert.equal("SW64", (select(2, utils.get_smem_layout_atom_epi("row",
      cute.bf16, {64, 32}))))
    raises("not a multiple of 128", utils.get_smem_layout_atom_ab, "K",
           cute.bf16, {64, 4})
    raises("no major 'M'", utils.get_smem_layout_atom_ab, "M", cute.bf16,
           {64, 64})
  end)

  it("cover a tile and its stages once", function()
    local function covers(l, m, n, stages)
      local seen, count = {}, 0
      for s = 0, stages - 1 do
        for j = 0, n - 1 do
          for i = 0, m - 1 do
            local at = l(i, j, s)
            assert.is_nil(seen[at])
            seen[at], count = true, count + 1
          end
        end
      end
      assert.equal(count, core.cosize(l))
    end
    covers(utils.make_smem_layout_a(nil, {64, 32, 64}, cute.bf16, 3), 64, 64,
           3)
    covers(utils.make_smem_layout_b(nil, {64, 32, 64}, cute.bf16, 2,
                                    {is_k_major = false}), 32, 64, 2)
    covers(utils.make_smem_layout_epi(cute.f32, "col", {32, 16}, 2), 32, 16,
           2)
    covers(utils.make_smem_layout("K", {16, 32}, cute.e4m3, 2), 16, 32, 2)
    for _, name in ipairs {"make_smem_layout_a", "make_smem_layout_b"} do
      raises("bad argument #1 to 'utils." .. name .. "' (tiled "
        .. "expected, got \"zigzag\")", utils[name], "zigzag", {64, 32, 64},
        cute.bf16, 3)
    end
  end)
end)

describe("atoms by types", function()
  it("are named, and tiled", function()
    local mma = utils.make_trivial_tiled_mma(cute.bf16, cute.bf16, "K", "K",
      cute.f32, {2, 2, 1}, {128, 128}, {arch = "sm_80"})
    assert.equal(128, mma:size())
    assert.equal("SM80_16x8x16_F32BF16BF16F32_TN", mma.name)
    mma = utils.make_trivial_tiled_mma(cute.f16, cute.f16, "K", "MN",
      cute.f32, {1, 1, 1}, {64, 128})
    assert.equal("SM90_64x128x16_F32F16F16_SS<K,MN>", mma.name)
    mma = utils.make_trivial_tiled_mma(cute.e4m3, cute.e4m3, "K", "K",
      cute.f32, {2, 1, 1}, {128, 64}, {a_source = "rmem"})
    assert.equal("SM90_64x64x32_F32E4M3E4M3_RS_TN", mma.name)
    raises("K-major", utils.make_trivial_tiled_mma, cute.e4m3, cute.e4m3,
           "MN", "K", cute.f32, {1, 1, 1}, {64, 64})
    assert.equal("SM90_U32x4_STSM_N",
      utils.get_smem_store_op("row", cute.bf16, cute.f32).name)
    assert.equal("SM90_U16x8_STSM_T",
      utils.get_smem_store_op("col", cute.f16, cute.f32).name)
    assert.equal("UniversalCopy<uint32_t>",
      utils.get_smem_store_op("col", cute.f32).name)
    assert.same({128, 32}, utils.compute_tile_shape_or_override(
      {128, 128, 64}, cute.bf16, true))
    assert.same({64, 64}, utils.compute_tile_shape_or_override(
      {128, 128, 64}, cute.e4m3))
    assert.same({8, 8}, utils.compute_tile_shape_or_override(
      {128, 128, 64}, cute.e4m3, false, {8, 8}))
    assert.equal("SM80_16x8x16_F32F16F16F32_TN",
      cute.make_atom "SM80_16x8x16_F32F16F16F32_TN".name)
    assert.equal("UniversalCopy<uint16_t>",
      cute.make_atom("UniversalCopy", cute.f16).name)
  end)

  it("copy with all threads of a block", function()
    local a, b = cute.zeros({16, 8}, "f32"), cute.zeros({16, 8}, "f32")
    for i = 0, 127 do a[i] = i end
    local r = launch(function(x, y)
      utils.block_copy(cute.make_tiled_copy(cute.make_copy_atom(
        "UniversalCopy", cute.f32), cute.make_layout({8, 4}),
        cute.make_layout({2, 2})), x, y)
      local v = cute.empty_like(cute.make_rmem_tensor({4}, cute.f32))
      assert.equal(4, #v)
    end, {a, b})
    assert.is_true(r.ok, tostring(r))
    for i = 0, 127 do assert.equal(a[i], b[i]) end
  end)

  it("know the hardware, or the simulator's", function()
    local info, why = utils.HardwareInfo()
    local sms = info:get_device_multiprocessor_count()
    assert.equal(sms, info:get_max_active_clusters(1))
    assert.is_true(info:get_l2_cache_size_in_bytes() > 0)
    if not why then return end
    assert.is_truthy(why:find "%[no%-gpu%]" or why:find "%[driver%-error%]")
    assert.equal("sm_90a", info:get_arch())
    assert.equal("simulator (sm_90a): 132 multiprocessors", tostring(info))
    local list = {}
    for k, n in ipairs {1, 2, 4, 8, 16} do
      list[k] = info:get_max_active_clusters(n)
    end
    assert.same({132, 66, 30, 15, 7}, list)
    assert.has_error(function() info:get_max_active_clusters(17) end)
  end)
end)

---------------------------------------------------------------------------
-- SPDX-License-Identifier: MIT
