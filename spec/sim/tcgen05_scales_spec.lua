-- Tests tcgen05.mma with scale factors on the simulator. Tiles must equal sums
-- on the host, which are exact. Single results must equal those of the
-- arithmetic that `make golden` compares with a B200. NVRTC must compile each
-- kernel.
local block = require "spec.tensor_block"
local cute = require "cute"
local sim = require "spec.hardware.units"
local support = require "spec.support"
local umma = require "spec.umma_kernel"
local arch, tcgen05, utils, _ = cute.arch, cute.nvgpu.tcgen05, cute.utils,
  cute._

local DEVICE, M, COLUMNS = "sim:sm_100a", 128, 256
local FACTORS_A, FACTORS_B = 128, 160  -- columns

-- Copies a matrix (row by row), or a list of numbers, to shared memory.
local function copy_in(s, t)
  local tid = arch.thread_idx()
  if cute.rank(t) == 2 then
    cute.when(cute.lt(tid, cute.size(t, 0)), function()
      for k = 0, cute.size(t, 1) - 1 do s[{tid, k}] = t[{tid, k}] end
    end)
    return
  end
  local to = cute.make_tensor(s.iterator, cute.make_layout(cute.size(t)))
  for first = 0, cute.size(t) - 1, 128 do to[first + tid] = t[first + tid] end
end

-- Returns a kernel that computes one tile (128,n) with K = k. With o.fields,
-- the scale factors are passed as fields of the MMA.
local function product(o)
  local mma = cute.make_tiled_mma(o.op)
  local n, k, sf = o.n, o.k, cute[o.sf]
  local vs, dtype = mma.sf_vec_size, cute[o.type]
  local tile = {M, n, k}
  local atom = tcgen05.make_smem_layout_atom(o.swizzle or "K_SW128", dtype)
  local fa = utils.make_smem_layout_sfa(mma, tile, vs, 1)(_, _, _, 0)
  local fb = utils.make_smem_layout_sfb(mma, tile, vs, 1)(_, _, _, 0)
  local ta = utils.make_tmem_layout_sfa(mma, tile, vs, fa)
  local tb = utils.make_tmem_layout_sfb(mma, tile, vs, fb)
  local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(16), cute.f32)
  return cute.kernel("product", function(A, FA, B, FB, C)
    local tid, warp = arch.thread_idx(), arch.warp_idx()
    local function meet()
      arch.tcgen05_before_thread_sync()
      arch.sync_threads()
      arch.tcgen05_after_thread_sync()
    end
    local sA = cute.make_smem_tensor(dtype, cute.tile_to_shape(atom, {M, k}),
                                     1024)
    local sB = cute.make_smem_tensor(dtype, cute.tile_to_shape(atom, {n, k}),
                                     1024)
    local sFA = cute.make_smem_tensor(sf, fa, 128)
    local sFB = cute.make_smem_tensor(sf, fb, 128)
    local bar = arch.alloc_smem(cute.i64, 1)
    local address = arch.alloc_smem(cute.i32, 1)
    cute.when(warp:eq(0), function()
      arch.alloc_tmem(COLUMNS, address)
      cute.when(tid:eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
      end)
    end)
    copy_in(sA, A)
    copy_in(sB, B)
    copy_in(sFA, FA)
    copy_in(sFB, FB)
    arch.fence_view_async_shared()
    meet()
    local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
    local factors = cute.recast_ptr(ptr, nil, sf)
    local tFA = cute.make_tensor(factors + 4 * FACTORS_A, ta)
    local tFB = cute.make_tensor(factors + 4 * FACTORS_B, tb)
    local thr = mma:get_slice(0)
    local tCrA = mma:make_fragment_A(thr:partition_A(sA))
    local tCrB = mma:make_fragment_B(thr:partition_B(sB))
    local acc = cute.make_tensor(ptr, mma:make_fragment_C(
      thr:partition_C(C)).layout)
    local copy_a, copy_b = block.s2t(sFA, tFA, sf), block.s2t(sFB, tFB, sf)
    cute.when(tid:eq(0), function()
      copy_a()
      copy_b()
      mma:set(tcgen05.Field.ACCUMULATE, false)
      if o.fields then  -- the fields differ for each instruction, so each
                        -- instruction has its own call
        for step = 0, k // mma.shape_mnk[3] - 1 do
          mma:set(tcgen05.Field.SFA, tFA(_, _, step).iterator)
          mma:set(tcgen05.Field.SFB, tFB(_, _, step).iterator)
          cute.gemm(mma, acc, tCrA(_, _, step), tCrB(_, _, step), acc)
          mma:set(tcgen05.Field.ACCUMULATE, true)
        end
      else
        cute.gemm(mma, acc, {tCrA, tFA}, {tCrB, tFB}, acc)
      end
      tcgen05.commit(bar)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    local tC = acc({_, _}, 0, 0)
    local t2r = tcgen05.make_tmem_copy(load, tC):get_slice(tid)
    local part = t2r:partition_D(C)
    local r = cute.make_rmem_tensor(part.shape, cute.f32)
    cute.copy(load, t2r:partition_S(tC), r)
    arch.fence_view_async_tmem_load()
    cute.basic_copy(r, part)
    meet()
    cute.when(warp:eq(0), function() arch.dealloc_tmem(ptr, COLUMNS) end)
  end)
end

local CASES = {
  {"mxf8f6f4 of e4m3, K of 4 instructions", type = "e4m3", sf = "ue8m0",
   n = 32, k = 128, op = tcgen05.MmaMXF8Op("e4m3", {128, 32, 32})},
  {"mxf8f6f4 of e5m2, K of 8", type = "e5m2", sf = "ue8m0", n = 48, k = 256,
   op = tcgen05.MmaMXF8Op("e5m2", {128, 48, 32})},
  {"mxf4", type = "e2m1", sf = "ue8m0", n = 64, k = 256,
   op = tcgen05.MmaMXF4Op {128, 64, 64}},
  {"mxf4nvf4 of e4m3", type = "e2m1", sf = "e4m3", n = 64, k = 256,
   op = tcgen05.MmaMXF4NVF4Op("e4m3", {128, 64, 64})},
  {"mxf4, whose fields are scale factors", type = "e2m1", sf = "ue8m0",
   n = 64, k = 256, fields = true, op = tcgen05.MmaMXF4Op {128, 64, 64}},
  {"mxf4nvf4 of ue8m0", type = "e2m1", sf = "ue8m0", n = 32, k = 128,
   swizzle = "K_SW64", op = tcgen05.MmaMXF4NVF4Op("ue8m0", {128, 32, 64})},
}

-- Returns the operands of a case, small numbers, and the layouts of their scale
-- factors.
local function operands(o)
  local vs = cute.make_tiled_mma(o.op).sf_vec_size
  local list = {}
  for i, rows in ipairs {M, o.n} do
    local t = cute.zeros({rows, o.k}, o.type)
    for e = 0, cute.size(t) - 1 do t[e] = (e * (5 + i) + e // 13) % 5 - 2 end
    local f, places = block.factors(rows, o.k, vs, o.sf, i)
    list[#list + 1] = {t = t, f = f, at = places}
  end
  return list[1], list[2]
end

local function check(o)
  local a, b = operands(o)
  local C = cute.zeros({M, o.n}, cute.f32)
  local call = product(o)(a.t, a.f, b.t, b.f, C)
  local report = support.report(
    call:launch {grid = 1, block = 128, device = DEVICE})
  assert.same({}, report:notes())
  local scaled = {}
  for which, x in ipairs {a, b} do
    scaled[which] = {}
    for i = 0, cute.size(x.t, 0) - 1 do
      for k = 0, o.k - 1 do
        scaled[which][i * o.k + k] = x.t(i, k) * x.f[x.at(i, k, 0)]
      end
    end
  end
  for i = 0, M - 1, 3 do
    for j = 0, o.n - 1 do
      local s = 0
      for k = 0, o.k - 1 do
        s = s + scaled[1][i * o.k + k] * scaled[2][j * o.k + k]
      end
      if s ~= C(i, j) then
        assert.equal(s, C(i, j), ("C(%d,%d)"):format(i, j))
      end
    end
  end
  return call
end

describe("tcgen05.mma with scale factors", function()
  for i, o in ipairs(CASES) do
    it("multiplies tiles: " .. o[1] .. support.long(i), function()
      local call = check(o)
      if not cute.jit.version() then return end
      for _, target in ipairs {"sm_100a", "sm_103f", "sm_110a"} do
        local program = call:compile {arch = target, grid = 1, block = 128}
        assert(cute.jit.compile(program.source, {arch = target}))
      end
    end)
  end

  it("rejects shapes, types and operands that no instruction has", function()
    local raises = support.raises
    raises("M must be 128, N a multiple of 8 up to 256, K 64",
           tcgen05.MmaMXF4Op, {64, 64, 64})
    raises("N a multiple of 8", tcgen05.MmaMXF8Op, "e4m3", {128, 12, 32})
    raises("K 32", tcgen05.MmaMXF8Op, "e4m3", {128, 64, 64})
    raises("M must be 128 or 256, N a multiple of 16", tcgen05.MmaMXF4Op,
           {256, 24, 64}, 2)
    raises("the operands' type is bf16; it may be e4m3, e5m2",
           tcgen05.MmaMXF8Op, "bf16", {128, 64, 32})
    raises("the scale factors' type is f32; it may be e4m3, ue8m0",
           tcgen05.MmaMXF4NVF4Op, "f32", {128, 64, 64})
    raises("A must come from SMEM or TMEM", tcgen05.MmaMXF4Op, {128, 64, 64}, 1,
           "RMEM")
    raises("has a scale factor of e4m3 for 32 elements",
           utils.make_blockscaled_trivial_tiled_mma, "e4m3", "e4m3", "K", "K",
           "e4m3", 32, 1, {128, 64})
    raises("has no field 'SFA'", function()
      cute.kernel("k", function()
        cute.make_tiled_mma(tcgen05.MmaTF32Op {128, 64, 8}):set("SFA", 1)
      end)():trace {block = 128}
    end)
  end)

  -- Returns n random codes of a type, including NaNs and infinities.
  local function codes(n, dtype)
    local list = {}
    for i = 1, n do list[i] = math.random(0, (1 << cute[dtype].bits) - 1) end
    return list
  end

  it("has the arithmetic of each kind", function()
    math.randomseed(5)
    for _, kind in ipairs {
      {kind = "mxf8f6f4", a = "e4m3", b = "e5m2", scale = "ue8m0", scales = 1},
      {kind = "mxf8f6f4", a = "e2m1", b = "e3m2", scale = "ue8m0", scales = 1},
      {kind = "mxf4", a = "e2m1", b = "e2m1", scale = "ue8m0", scales = 2},
      {kind = "mxf4nvf4", a = "e2m1", b = "e2m1", scale = "ue8m0", scales = 4},
      {kind = "mxf4nvf4", a = "e2m1", b = "e2m1", scale = "e4m3", scales = 4}}
      do
      kind.d = "f32"
      local k = kind.kind == "mxf8f6f4" and 32 or 64
      for _ = 1, 8 do
        local a, b = codes(k, kind.a), codes(k, kind.b)
        local fa, fb = {}, {}
        for i = 1, kind.scales do
          fa[i], fb[i] = math.random(96, 126), math.random(96, 126)
        end
        local c = math.random(0, 0x50000000)
        local want = sim.umma_tile(kind, 1, 1, a, b, {c}, fa, fb, {})[1]
        assert.equal(want, umma.dot(kind, a, b, c, fa, fb), kind.kind)
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
