-- Tests the error messages about invalid uses of tensor memory and tcgen05:
-- columns, shapes, scale factors, mixtures of pairs and blocks, targets.
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05 = cute.arch, cute.nvgpu.tcgen05
local raises = support.raises

-- Launches a kernel that allocates n columns and then calls f with the pointer
-- to these columns and the number of the warp.
local function launch(n, f, o)
  o = o or {}
  return cute.kernel("k", function()
    local address, warp = arch.alloc_smem(cute.i32, 1), arch.warp_idx()
    cute.when(warp:eq(0), function() arch.alloc_tmem(n, address, o.pair) end)
    arch.sync_threads()
    f(arch.retrieve_tmem_ptr(cute.f32, 16, address), warp)
  end)():launch {grid = o.cluster or 1, cluster = o.cluster, block = 128,
                 device = o.device or "sim:sm_100a"}
end

-- Returns a function in which warp `warp` frees n columns, `times` times.
local function free(n, warp, times)
  return function(ptr, own)
    cute.when(own:eq(warp or 0), function()
      for _ = 1, times or 1 do arch.dealloc_tmem(ptr, n) end
    end)
  end
end

-- Checks that launch(...) fails with this text.
local function fails(text, ...)
  local ok, why = pcall(launch, ...)
  assert.is_false(ok)
  assert.truthy(tostring(why):find(text, 1, true), tostring(why))
end

describe("tensor memory", function()
  it("has a power of two of columns, at most 512", function()
    for _, n in ipairs {48, 16, 0, 1024, 513, -32} do
      fails(("cute.arch.alloc_tmem: %d columns; a power of two from 32 to 512 "
        .. "is needed"):format(n), n, free(n))
    end
  end)

  it("is freed once, by the warp that allocated it, as a whole", function()
    fails("tensor memory is freed that is not allocated, or no longer", 32,
          free(32, 0, 2))
    fails("warp 1 frees tensor memory that warp 0 allocated", 32, free(32, 1))
    fails("32 columns of tensor memory are freed, but 64 were allocated", 64,
          free(32))
    fails("64 columns of tensor memory are never freed", 64, function() end)
  end)

  it("is of one cta_group in a kernel, and of clusters for pairs", function()
    fails("tcgen05.alloc (line 14) works on a pair of CTAs, but "
      .. "tcgen05.dealloc (line 25) on one CTA: all tcgen05 instructions of a "
      .. "kernel have the same cta_group", 32, free(32),
      {pair = true, cluster = 2})
    fails("needs a pair of CTAs (CtaGroup.TWO), but a cluster has 1 block", 32,
          function(ptr, warp)
      cute.when(warp:eq(0), function() arch.dealloc_tmem(ptr, 32, true) end)
    end, {pair = true})
  end)

  it("needs a target that has it", function()
    for _, target in ipairs {"sm_90a", "sm_120a"} do
      fails(("tcgen05 (line 14) needs sm_100a or its own family, the target is "
        .. "%s"):format(target:sub(1, -2)), 32, free(32),
        {device = "sim:" .. target})
    end
    fails("tcgen05 (line 14) is a feature of one family of chips: it needs "
      .. "sm_100a or sm_100f, the target is sm_100", 32, free(32),
      {device = "sim:sm_100"})
  end)
end)

describe("an operation of tcgen05", function()
  it("has a shape that an instruction has", function()
    for shape, n in pairs {["96, 64, 16"] = 8, ["128, 24, 16"] = 16,
        ["128, 264, 16"] = 16, ["64, 12, 16"] = 8, ["128, 64, 8"] = 16} do
      local m, columns, k = shape:match "(%d+), (%d+), (%d+)"
      raises(("no instruction of shape {%s} for one CTA: M must be 64 or 128, "
        .. "N a multiple of 8 (M = 64) or 16 (M = 128) from %d to 256, K "
        .. "16"):format(shape, n), tcgen05.MmaF16BF16Op, "f16", "f32",
        {m // 1, columns // 1, k // 1})
    end
    raises("cta_group must be CtaGroup.ONE or TWO, not 3",
           tcgen05.MmaF16BF16Op, "f16", "f32", {128, 64, 16}, 3)
  end)

  it("has scale factors that an instruction has", function()
    local make = cute.utils.make_blockscaled_trivial_tiled_mma
    for _, c in ipairs {{"e2m1", "ue8m0", 64, "ue8m0 for 32 or 16 elements, or "
        .. "e4m3 for 16"}, {"e2m1", "e4m3", 32, "ue8m0 for 32 or 16 elements, "
        .. "or e4m3 for 16"}, {"e4m3", "ue8m0", 16, "ue8m0 for 32 elements"}} do
      raises(("no instruction for %s and %s has a scale factor of %s for %d "
        .. "elements; they have %s"):format(c[1], c[1], c[2], c[3], c[4]), make,
        c[1], c[1], "K", "K", c[2], c[3], 1, {128, 64})
    end
  end)
end)
-- SPDX-License-Identifier: MIT
