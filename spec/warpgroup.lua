--- Helpers for specs of wgmma. For each case they make a kernel of one tile,
-- with operands in canonical shared-memory layouts. They compute the expected
-- result by the rounding rules of the tensor cores.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local units = require "spec.hardware.units"
local warpgroup = cute.nvgpu.warpgroup
local _ = cute._

local specs = {}

-- Returns the operation of a case. Fields of a case: a, b, and acc, the types
-- of A, B, and the accumulators; n, the columns of the MMA; src, the memory
-- from which A is read; a_major and b_major; sparse, the selector of the
-- metadata.
local function op_of(c)
  local src, a, b, sparse = c.src or "SMEM", c.a_major, c.b_major, c.sparse
  local function op(kind)
    return warpgroup["Mma" .. kind .. (sparse and "Sparse" or "") .. "Op"]
  end
  if c.a == "tf32" then return op "TF32"({64, c.n}, src, sparse) end
  local make = core[c.a].bits == 16 and function(_, _, acc, shape)
    return op "F16BF16"(c.a, acc, shape, src, a, b, sparse)
  end or core[c.a].is_float and op "F8" or op "I8"
  return make(c.a, c.b or c.a, c.acc, {64, c.n}, src)
end

--- Returns the title of a case.
function specs.name(c)
  return ("%s x %s -> %s, 64x%d, %sA in %s %s, B %s, %s"):format(c.a,
    c.b or c.a, c.acc or "f32", c.n,
    c.sparse and ("sparse (%d) "):format(c.sparse) or "", c.src or "SMEM",
    c.a_major or "K", c.b_major or "K",
    (c.swizzle or "SW128") .. (c.ldsm and ", ldmatrix" or ""))
end

--- Returns K of a case: the elements in a row of 128 bytes.
function specs.depth(c) return 1024 // core[c.a].bits end

-- Returns the canonical layout of a matrix (rows,k) with the case's swizzle. If
-- the swizzle's atom does not divide the matrix, the layout has the next
-- narrower swizzle whose atom does.
local function smem_layout(c, dtype, rows, k, major)
  local kinds, from = {"SW128", "SW64", "SW32", "INTER"}, 1
  while kinds[from] ~= (c.swizzle or "SW128") do from = from + 1 end
  local run = major == "MN" and rows or k
  while run % ((1024 >> from - 1) // dtype.bits) ~= 0 do from = from + 1 end
  local atom = warpgroup.make_smem_layout_atom(
    (major or "K") .. "_" .. kinds[from], dtype)
  return cute.tile_to_shape(atom, {rows, k})
end

--- Returns a kernel that computes D = A * B^T or, with c.add, D += A * B^T. A
-- (64 * groups,K) and B (N,K) are row-major. A sparse A has only its stored
-- elements, and its metadata is the argument after D.
function specs.kernel(c)
  local mma = cute.make_tiled_mma(op_of(c),
                                  cute.make_layout {c.groups or 1, 1, 1})
  local shared = (c.src or "SMEM") == "SMEM"
  return cute.kernel("tile", function(mA, mB, mD, mE)
    local tid, threads = cute.arch.thread_idx(), mma:size()
    local thr, depth = mma:get_slice(tid), specs.depth(c)
    local depth_a = mA.shape[2]
    local function fill(g, s, rows, k)
      for i = 0, rows * k // threads - 1 do
        local e = tid + i * threads
        s[{e // k, e % k}] = g[{e // k, e % k}]
      end
    end
    local sA = cute.make_smem_tensor(mA.element_type, smem_layout(c,
      mA.element_type, mA.shape[1], depth_a, c.a_major), 1024)
    local sB = cute.make_smem_tensor(mB.element_type, smem_layout(c,
      mB.element_type, c.n, depth, c.b_major), 1024)
    if shared or c.ldsm then fill(mA, sA, mA.shape[1], depth_a) end
    fill(mB, sB, c.n, depth)
    local tCrA = mma:make_fragment_A(thr:partition_A(shared and sA or mA))
    local tCrB = mma:make_fragment_B(thr:partition_B(sB))
    local tCgD = thr:partition_C(mD)
    local acc = mma:make_fragment_C(tCgD)
    if c.add then cute.autovec_copy(tCgD, acc) end
    if not (shared or c.ldsm) then
      cute.autovec_copy(thr:partition_A(mA), tCrA)
    end
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()
    if c.ldsm then
      local s2r = cute.make_tiled_copy_A(cute.make_copy_atom(
        "SM75_U32x4_LDSM_N", mA.element_type), mma)
      local from = s2r:get_slice(tid)
      cute.copy(s2r, from:partition_S(sA), from:retile(tCrA))
    end
    local tCrE
    if c.sparse then
      local tCgE = thr:partition_E(mE)
      tCrE = mma:make_fragment_E(tCgE)
      cute.autovec_copy(tCgE, tCrE)
    end
    warpgroup.fence()
    mma:set(warpgroup.Field.ACCUMULATE, c.add or false)
    -- one call for each block of K; fragments have the shapes (V,M) and (V,N)
    if c.slices then
      for kb = 0, cute.size(tCrA, 2) - 1 do
        local a = tCrA(_, _, kb)
        cute.gemm(mma, acc, tCrE and {a, tCrE(_, _, kb)} or a,
                  tCrB(_, _, kb), acc)
        mma:set(warpgroup.Field.ACCUMULATE, true)
      end
    else
      cute.gemm(mma, acc, tCrE and {tCrA, tCrE} or tCrA, tCrB, acc)
    end
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, tCgD)
  end), mma:size()
end

-- Pairs of positions in a group of four elements, in ascending order.
local PAIRS = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}

-- Returns the positions of the elements that row m of a sparse A stores in the
-- group that begins at k.
local function kept(c, m, k)
  if c.a == "tf32" then return {k + (m * 3 + k // 2 * 5 + m // 8) % 2} end
  local pair = PAIRS[1 + (m * 7 + k // 4 * 5 + m // 8) % 6]
  return {k + pair[1], k + pair[2]}
end

--- Returns the operands of a case: A, B and D, floats with many different
-- exponents. For a sparse A, also returns the metadata and the dense matrix.
function specs.operands(c)
  local k, m = specs.depth(c), 64 * (c.groups or 1)
  local seed = c.n
  local function value(dtype)
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    local r = seed >> 8
    if not core[dtype].is_float then
      return r % 256 - (dtype == "u8" and 0 or 128)
    end
    return (r % 255 - 127) * 2.0 ^ ((r >> 8) % 7 - 9)
  end
  local function matrix(dtype, rows, cols, zero)
    return kernels.tensor({rows, cols}, dtype, function()
      return zero and 0 or value(dtype)
    end)
  end
  local in_shared = c.a == "tf32" and "f32" or c.a
  local A = matrix(c.src == "RMEM" and c.a or in_shared, m, k, c.sparse)
  local B = matrix(c.b or in_shared, c.n, k)
  local D = matrix(c.acc or "f32", m, c.n, not c.add)
  if not c.sparse then return A, B, D end
  for row = 0, m - 1 do
    for first = 0, k - 1, c.a == "tf32" and 2 or 4 do
      for _, at in ipairs(kept(c, row, first)) do
        A[{row, at}] = value(c.a == "tf32" and "f32" or c.a)
      end
    end
  end
  local values, metadata = cute.nvgpu.sparse.compress(A)
  return values, B, D, metadata, A
end

--- Returns the elements of a tensor as raw bits.
function specs.raw(t)
  return cute.recast_tensor(t, core["u" .. t.element_type.bits])
end

--- Returns D with the rounding of the tensor cores: each wgmma instruction adds
-- one sum, over its part of K, to an element of D. A is the dense matrix.
function specs.reference(c, A, B, D)
  -- number of products along K in one instruction
  local step = 256 // core[c.a].bits
  local acc = c.acc or "f32"
  local kind = {a = c.a, b = c.b or c.a, c = acc, k = step, wgmma = true,
                arch = 90}
  A, B, D = specs.raw(A), specs.raw(B), specs.raw(D)
  -- Returns the columns of the elements that row m of A stores.
  local function columns(m)
    local list = {}
    for k = 0, specs.depth(c) - 1 do
      if not c.sparse then list[k + 1] = k
      elseif k % (c.a == "tf32" and 2 or 4) == 0 then
        table.move(kept(c, m, k), 1, 2, #list + 1, list)
      end
    end
    return list
  end
  return function(m, n)
    local at, a, b = columns(m), {}, {}
    for i, k in ipairs(at) do a[i], b[i] = A[{m, k}], B[{n, k}] end
    local d = c.add and D[{m, n}] or 0
    for k = 1, #at, step do
      d = units.mma_dot(kind, {table.unpack(a, k, k + step - 1)},
                        {table.unpack(b, k, k + step - 1)}, d)
    end
    return d
  end
end

--- Cases: all types, the smallest, odd and the largest N, A in shared memory
-- and in registers, both majors, every swizzle, one and two warpgroups.
specs.cases = {
  {a = "bf16", acc = "f32", n = 64},
  {a = "bf16", acc = "f32", n = 8, swizzle = "SW64", add = true},
  {a = "bf16", acc = "f32", n = 256, groups = 2},
  {a = "f16", acc = "f32", n = 200, a_major = "MN", swizzle = "SW32"},
  {a = "f16", acc = "f16", n = 64, b_major = "MN", add = true},
  {a = "f16", acc = "f16", n = 8, src = "RMEM", b_major = "MN",
   swizzle = "INTER"},
  {a = "bf16", acc = "f32", n = 64, a_major = "MN", b_major = "MN"},
  {a = "bf16", acc = "f32", n = 128, a_major = "MN", b_major = "MN",
   swizzle = "SW64", groups = 2},
  {a = "bf16", acc = "f32", n = 72, swizzle = "INTER", a_major = "MN"},
  {a = "bf16", acc = "f32", n = 200, src = "RMEM", groups = 2, add = true},
  {a = "bf16", acc = "f32", n = 104, src = "RMEM", ldsm = true, groups = 2},
  {a = "f16", acc = "f16", n = 16, src = "RMEM", ldsm = true, b_major = "MN",
   swizzle = "SW32", slices = true},
  {a = "bf16", acc = "f32", n = 248, slices = true, add = true, groups = 2},
  {a = "tf32", n = 64},
  {a = "tf32", n = 200, swizzle = "SW64", add = true},
  {a = "tf32", n = 8, src = "RMEM", swizzle = "SW32"},
  {a = "e4m3", acc = "f32", n = 64},
  {a = "e4m3", b = "e5m2", acc = "f16", n = 8, swizzle = "SW32"},
  {a = "e5m2", b = "e4m3", acc = "f32", n = 200, src = "RMEM"},
  {a = "e5m2", acc = "f32", n = 256, swizzle = "INTER", add = true},
  {a = "i8", acc = "i32", n = 64},
  {a = "i8", b = "u8", acc = "i32", n = 256, swizzle = "SW64", add = true},
  {a = "u8", acc = "i32", n = 8, src = "RMEM"},
  {a = "u8", b = "i8", acc = "i32", n = 96, swizzle = "INTER"},
  {a = "bf16", acc = "f32", n = 64, sparse = 0},
  {a = "bf16", acc = "f32", n = 8, sparse = 1, add = true, slices = true},
  {a = "f16", acc = "f32", n = 200, sparse = 0, a_major = "MN",
   b_major = "MN"},
  {a = "f16", acc = "f16", n = 72, sparse = 1, swizzle = "INTER"},
  {a = "bf16", acc = "f32", n = 128, sparse = 1, src = "RMEM", groups = 2,
   b_major = "MN", swizzle = "SW64"},
  {a = "f16", acc = "f16", n = 16, sparse = 0, src = "RMEM", ldsm = true,
   slices = true},
  {a = "bf16", acc = "f32", n = 256, sparse = 0, groups = 2},
  {a = "tf32", n = 64, sparse = 0},
  {a = "tf32", n = 8, sparse = 1, swizzle = "INTER", add = true},
  {a = "tf32", n = 40, sparse = 1, src = "RMEM", swizzle = "SW64"},
  {a = "e4m3", acc = "f32", n = 64, sparse = 0},
  {a = "e4m3", b = "e5m2", acc = "f16", n = 200, sparse = 0, swizzle = "SW64",
   add = true},
  {a = "e5m2", acc = "f32", n = 24, sparse = 0, src = "RMEM"},
  {a = "i8", b = "u8", acc = "i32", n = 256, sparse = 0},
  {a = "u8", acc = "i32", n = 16, sparse = 0, swizzle = "INTER", add = true},
  {a = "u8", b = "i8", acc = "i32", n = 32, sparse = 0, src = "RMEM"},
}

return specs
-- SPDX-License-Identifier: MIT
