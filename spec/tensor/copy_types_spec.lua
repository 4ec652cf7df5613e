-- Tests the types that each copy accepts. Every copy atom and the plain copy
-- run with all pairs of types of one width, also with atoms made for a third
-- type.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local TYPES = {
  [8] = {"boolean", "i8", "u8", "e4m3", "e5m2", "ue8m0"},
  [16] = {"i16", "u16", "f16", "bf16"},
  [32] = {"i32", "u32", "f32", "tf32"},
  [64] = {"i64", "u64", "f64"},
}

-- Returns three layouts for a warp: of its threads, of a thread's values, and
-- of the tile. Each of 8 rows has 4 threads with `words` 32-bit words each.
-- Tiles of transposing copies are column-major.
local function tile_of(name, bits, words)
  local n = words * 32 // bits
  return cute.make_layout({8, 4}, {4, 1}), cute.make_layout({1, n}),
    cute.make_layout({8, 4 * n}, name:find "SM_T" and {1, 8} or {4 * n, 1})
end

-- name, memory of source, of destination, words per thread, widths in bits
local ATOMS = {
  {"UniversalCopy", "gmem", "gmem", 2, 8, 64},
  {"UniversalCopy", "smem", "rmem", 2, 8, 64},
  {"AutoVectorizingCopyWithAssumedAlignment<64>", "gmem", "smem", 2, 8, 64},
  {"DefaultCopy", "gmem", "rmem", 2, 8, 64},
  {"SM80_CP_ASYNC_CACHEALWAYS", "gmem", "smem", 4, 8, 64, 128},
  {"SM80_CP_ASYNC_CACHEGLOBAL_ZFILL", "gmem", "smem", 4, 8, 64, 128},
  {"SM75_U32x1_LDSM_N", "smem", "rmem", 1, 8, 32},
  {"SM75_U16x2_LDSM_T", "smem", "rmem", 1, 16, 16},
  {"SM90_U32x1_STSM_N", "rmem", "smem", 1, 8, 32},
  {"SM90_U16x2_STSM_T", "rmem", "smem", 1, 16, 16},
  {"SM50_Shuffle_U32_2x2Trans_XOR1", "rmem", "rmem", 2, 8, 32},
  {"SM75_U32x1_MOVM_T", "rmem", "rmem", 1, 16, 16},
}

local function tensor(space, type, layout, arg)
  if space == "gmem" then return cute.make_tensor(arg.iterator, layout) end
  if space == "smem" then
    return cute.make_smem_tensor(cute[type], layout, 128)
  end
  return nil
end

-- Traces a copy from a tensor of type `from` to one of type `to`, by an atom
-- made for the type `own`. Returns the error or nil.
local function trace(a, from, to, own)
  local name, sspace, dspace, words, _, _, bits = table.unpack(a)
  local width = cute[from].bits
  local kernel = cute.kernel("k", function(x, y)
    local thr, val, layout = tile_of(name, width, words)
    local atom = cute.make_copy_atom(name, cute[own], bits)
    local tiled = cute.make_tiled_copy(atom, thr, val)
    local slice = tiled:get_slice(arch.thread_idx())
    local function part(space, type, arg, which)
      local t = tensor(space, type, layout, arg)
      local p = which == "S" and slice:partition_S(t or arg)
        or slice:partition_D(t or arg)
      if t then return p end
      local r = cute.make_rmem_tensor(cute.make_layout(p.shape), cute[type])
      r:fill(0)
      return r
    end
    cute.copy(tiled, part(sspace, from, x, "S"), part(dspace, to, y, "D"))
  end)
  local _, _, layout = tile_of(name, width, words)
  local x, y = cute.zeros({cute.size(layout)}, from),
    cute.zeros({cute.size(layout)}, to)
  x, y = cute.make_tensor(x.iterator, layout),
    cute.make_tensor(y.iterator, layout)
  local ok, err = pcall(cute.compile, kernel, x, y,
                        {grid = 1, block = 32, arch = "sm_90"})
  return not ok and tostring(err) or nil
end

local function moves(a, b)
  if a == b then return true end
  return (a == "f32" and b == "tf32") or (a == "tf32" and b == "f32")
end

describe("copies and types:", function()
  for i, a in ipairs(ATOMS) do
    it(("%s, %s to %s"):format(a[1], a[2], a[3]) .. support.long(i, 3),
       function()
      local n = 0
      for width, types in pairs(TYPES) do
        if width >= a[5] and width <= a[6] then
          for _, from in ipairs(types) do
            for _, to in ipairs(types) do
              for _, own in ipairs {from, to, types[#types]} do
                local what = ("%s to %s for %s"):format(from, to, own)
                local good = moves(from, to) and moves(own, from)
                if a[1]:find "^Auto" or a[1]:find "^Default" then
                  -- Atoms named Auto... and Default... do not convert, so both
                  -- types must be equal.
                  good = good and from == to
                end
                local err = trace(a, from, to, own)
                if good then
                  assert.is_nil(err, what)
                else
                  assert.is_truthy(err, what .. " passed")
                  assert.is_truthy(err:find("[type-mismatch]", 1, true), err)
                  n = n + 1
                end
              end
            end
          end
        end
      end
      assert.is_true(n > 20)
    end)
  end

  it("the plain copy", function()
    for _, types in pairs(TYPES) do
      for _, from in ipairs(types) do
        for _, to in ipairs(types) do
          local ok, err = pcall(cute.compile, cute.kernel("k", function(x, y)
            cute.autovec_copy(x, y)
          end), cute.zeros({8}, from), cute.zeros({8}, to),
            {grid = 1, block = 1})
          assert.equal(from == to, ok, tostring(err))
        end
      end
    end
  end)

  it("an MMA's operands are of its types", function()
    local function gemm(name, a, b)
      return pcall(cute.compile, cute.kernel("k", function()
        local mma = cute.make_tiled_mma(name)
        local m, n, k = table.unpack(mma.shape_mnk)
        local thr = mma:get_slice(arch.thread_idx())
        local function fragment(part, rows, cols, type)
          local t = part(thr, cute.make_layout {rows, cols})
          local r = cute.make_rmem_tensor(t.layout, cute[type or "f32"])
          r:fill(0)
          return r
        end
        local c = fragment(thr.partition_fragment_C, m, n,
                           name:find "S32U?S?8" and "i32")
        cute.gemm(mma, c, fragment(thr.partition_fragment_A, m, k, a),
                  fragment(thr.partition_fragment_B, n, k, b), c)
      end), {grid = 1, block = 32, arch = "sm_120a"})
    end
    local rows = {
      {"SM80_16x8x16_F32BF16BF16F32_TN", "bf16", "bf16", TYPES[16]},
      {"SM80_16x8x32_S32S8U8S32_TN", "i8", "u8", TYPES[8]},
      {"SM89_16x8x32_F32E4M3E5M2F32_TN", "e4m3", "e5m2", TYPES[8]},
      {"SM80_16x8x8_F32TF32TF32F32_TN", "tf32", "tf32", TYPES[32]},
    }
    for _, row in ipairs(rows) do
      local name, a, b, types = table.unpack(row)
      for _, x in ipairs(types) do
        for _, y in ipairs(types) do
          local ok, err = gemm(name, x, y)
          local good = (x == a or a == "tf32" and x == "f32")
            and (y == b or b == "tf32" and y == "f32")
          assert.equal(good, ok, ("%s of %s and %s: %s"):format(name, x, y,
                                                               tostring(err)))
        end
      end
    end
  end)

  it("arch.store takes what the pointer is of", function()
    for _, to in ipairs(TYPES[16]) do
      local ok, err = pcall(cute.compile, cute.kernel("k", function(x, y)
        arch.store(y.iterator, x[0])
      end), cute.zeros({8}, "f16"), cute.zeros({8}, to), {grid = 1, block = 1})
      assert.equal(to == "f16", ok, tostring(err))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
