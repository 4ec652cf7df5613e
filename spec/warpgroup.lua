--- What specs share about a warpgroup's MMA: one tile of every family, from
-- canonical shared memory, and its sums by the tensor cores' rules.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local units = require "spec.sim.units"
local warpgroup = cute.nvgpu.warpgroup
local _ = cute._

local specs = {}

-- The operation of a case, {a, b, acc, n, src =, a_major =, b_major =}.
local function op_of(c)
  local src, a, b = c.src or "SMEM", c.a_major, c.b_major
  if c.a == "tf32" then return warpgroup.MmaTF32Op({64, c.n}, src) end
  local make = core[c.a].bits == 16 and function(_, _, acc, shape)
    return warpgroup.MmaF16BF16Op(c.a, acc, shape, src, a, b)
  end or core[c.a].is_float and warpgroup.MmaF8Op or warpgroup.MmaI8Op
  return make(c.a, c.b or c.a, c.acc, {64, c.n}, src)
end

--- What a case is called.
function specs.name(c)
  return ("%s x %s -> %s, 64x%d, A in %s %s, B %s, %s"):format(c.a,
    c.b or c.a, c.acc or "f32", c.n, c.src or "SMEM", c.a_major or "K",
    c.b_major or "K", (c.swizzle or "SW128") .. (c.ldsm and ", ldmatrix" or ""))
end

--- K of a case: rows of 128 bytes.
function specs.depth(c) return 1024 // core[c.a].bits end

-- The layout of (rows,k) that a swizzle of at most the case's span has.
local function smem_layout(c, dtype, rows, k, major)
  local kinds, from = {"SW128", "SW64", "SW32", "INTER"}, 1
  while kinds[from] ~= (c.swizzle or "SW128") do from = from + 1 end
  local run = major == "MN" and rows or k
  while run % ((1024 >> from - 1) // dtype.bits) ~= 0 do from = from + 1 end
  local atom = warpgroup.make_smem_layout_atom(
    (major or "K") .. "_" .. kinds[from], dtype)
  return cute.tile_to_shape(atom, {rows, k})
end

--- The kernel D = A * B, or D += A * B where c.add: A (64 * groups,K) and
-- B (N,K) are row-major.
function specs.kernel(c)
  local mma = cute.make_tiled_mma(op_of(c),
                                  cute.make_layout {c.groups or 1, 1, 1})
  local shared = (c.src or "SMEM") == "SMEM"
  return cute.kernel("tile", function(mA, mB, mD)
    local tid, threads = cute.arch.thread_idx(), mma:size()
    local thr, k = mma:get_slice(tid), specs.depth(c)
    local function fill(g, s, rows)
      for i = 0, rows * k // threads - 1 do
        local e = tid + i * threads
        s[{e // k, e % k}] = g[{e // k, e % k}]
      end
    end
    local sA = cute.make_smem_tensor(mA.element_type, smem_layout(c,
      mA.element_type, mA.shape[1], k, c.a_major), 1024)
    local sB = cute.make_smem_tensor(mB.element_type, smem_layout(c,
      mB.element_type, c.n, k, c.b_major), 1024)
    if shared or c.ldsm then fill(mA, sA, mA.shape[1]) end
    fill(mB, sB, c.n)
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
    warpgroup.fence()
    mma:set(warpgroup.Field.ACCUMULATE, c.add or false)
    if c.slices then  -- (V,M) x (V,N), a block of K each
      for kb = 0, cute.size(tCrA, 2) - 1 do
        cute.gemm(mma, acc, tCrA(_, _, kb), tCrB(_, _, kb), acc)
        mma:set(warpgroup.Field.ACCUMULATE, true)
      end
    else
      cute.gemm(mma, acc, tCrA, tCrB, acc)
    end
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, tCgD)
  end), mma:size()
end

--- Operands of a case: A, B and D, the values of floats over many exponents.
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
  return matrix(c.src == "RMEM" and c.a or in_shared, m, k),
    matrix(c.b or in_shared, c.n, k),
    matrix(c.acc or "f32", m, c.n, not c.add)
end

--- The elements of a tensor as raw bits.
function specs.raw(t)
  return cute.recast_tensor(t, core["u" .. t.element_type.bits])
end

--- D as the rules have it: each element one sum of an instruction's K after
-- the other.
function specs.reference(c, A, B, D)
  local step = 256 // core[c.a].bits
  local acc = c.acc or "f32"
  local kind = {a = c.a, b = c.b or c.a, c = acc, k = step, wgmma = true,
                arch = 90}
  A, B, D = specs.raw(A), specs.raw(B), specs.raw(D)
  local function words(t, row)
    local list = {}
    for k = 0, specs.depth(c) - 1 do list[k + 1] = t[{row, k}] end
    return list
  end
  local b = {}
  for n = 0, c.n - 1 do b[n] = words(B, n) end
  return function(m, n)
    local a = words(A, m)
    local d = c.add and D[{m, n}] or 0
    for k = 1, specs.depth(c), step do
      d = units.mma_dot(kind, {table.unpack(a, k, k + step - 1)},
                        {table.unpack(b[n], k, k + step - 1)}, d)
    end
    return d
  end
end

--- Every family: all types, least and odd and largest N, A in shared memory
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
}

return specs
