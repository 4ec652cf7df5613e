-- Tests tcgen05.mma with scale factors by a pair of CTAs on the simulator. Its
-- tiles must equal sums on the host, which are exact. Each block has the
-- factors of its own rows of A, and the factors of all rows of B. NVRTC must
-- compile each kernel.
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05, utils, _ = cute.arch, cute.nvgpu.tcgen05, cute.utils,
  cute._
local helpers = utils.blackwell_helpers

local DEVICE, COLUMNS = "sim:sm_100a", 512
local PAIR, BOTH = tcgen05.CtaGroup.TWO, 3

local function sync_pair()
  arch.tcgen05_before_thread_sync()
  arch.cluster_arrive()
  arch.cluster_wait()
  arch.tcgen05_after_thread_sync()
end

-- Returns a function that copies scale factors from shared to tensor memory, in
-- both blocks.
local function s2t(s, t, dtype)
  local op = tcgen05.Cp4x32x128bOp(PAIR)
  local from, to = cute.filter_zeros(s), cute.filter_zeros(t)
  local copy = tcgen05.make_s2t_copy(cute.make_copy_atom(op, dtype), to)
  local thr = copy:get_slice(0)
  local rows = tcgen05.get_s2t_smem_desc_tensor(copy,
    thr:partition_S(tcgen05.append_s2t_broadcast_mode(op, from)))
  return function() cute.copy(copy, rows, thr:partition_D(to)) end
end

-- Copies elements of t, from element `first` on, to shared memory.
local function copy_in(s, t, first)
  local n = cute.size(s)
  for from = 0, n - 1, 128 do
    local i = arch.thread_idx() + from
    cute.when(cute.lt(i, n), function() s[i] = t[i + (first or 0)] end)
  end
end

-- Returns a kernel that computes one tile (256,n) with K = k. `fault` is the
-- text of a fault in the list below.
local function product(o, fault)
  local mma = cute.make_tiled_mma(o.op)
  local n, k, sf = o.n, o.k, cute[o.sf]
  local vs, dtype, b_dtype = mma.sf_vec_size, cute[o.type],
    cute[o.b_type or o.type]
  local tile = {256, n, k}
  local fa = utils.make_smem_layout_sfa(mma, tile, vs, 1)(_, _, _, 0)
  local fb = utils.make_smem_layout_sfb(mma, tile, vs, 1)(_, _, _, 0)
  local ta = utils.make_tmem_layout_sfa(mma, tile, vs, fa)
  local tb = utils.make_tmem_layout_sfb(mma, tile, vs, fb)
  local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(16), cute.f32)
  local at_b = n + utils.compute_tmem_cols_from_layout(ta, sf)
  return cute.kernel("product", function(A, FA, B, FB, C)
    local rank, tid, warp = arch.block_idx_in_cluster(), arch.thread_idx(),
      arch.warp_idx()
    local sA = cute.make_smem_tensor(dtype,
      helpers.make_smem_layout_a(mma, tile, dtype, 1), 1024)
    local sB = cute.make_smem_tensor(b_dtype,
      helpers.make_smem_layout_b(mma, tile, b_dtype, 1), 1024)
    local sFA = cute.make_smem_tensor(sf, fa, 128)
    local sFB = cute.make_smem_tensor(sf, fb, 128)
    local bar = arch.alloc_smem(cute.i64, 1)
    local address = arch.alloc_smem(cute.i32, 1)
    cute.when(warp:eq(0), function()
      arch.alloc_tmem(COLUMNS, address, true)
      arch.relinquish_tmem_alloc_permit(true)
      cute.when(arch.elect_one(), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
      end)
    end)
    local thr = mma:get_slice(rank)
    copy_in(sA, thr:partition_A(A))
    copy_in(sB, thr:partition_B(B))
    local flat_a = cute.make_tensor(sFA.iterator,
                                    cute.make_layout(cute.cosize(fa)))
    copy_in(flat_a, FA, rank * cute.cosize(fa))
    local function copy_b()
      copy_in(cute.make_tensor(sFB.iterator,
                               cute.make_layout(cute.cosize(fb))), FB)
    end
    if fault == "factors of B in the leader only" then
      cute.when(rank:eq(0), copy_b)
    else
      copy_b()
    end
    arch.fence_view_async_shared()
    sync_pair()
    local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
    local tFA = cute.make_tensor(cute.recast_ptr(ptr + n, nil, sf), ta)
    local tFB = cute.make_tensor(cute.recast_ptr(ptr + at_b, nil, sf), tb)
    local part = thr:partition_C(C)
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
    local a, b = mma:make_fragment_A(sA), mma:make_fragment_B(sB)
    local copy_fa, copy_fb = s2t(sFA, tFA, sf), s2t(sFB, tFB, sf)
    cute.when(rank:eq(0) & tid:eq(0), function()
      copy_fa()
      if fault ~= "factors of B are not copied" then copy_fb() end
      mma:set(tcgen05.Field.ACCUMULATE, false)
      cute.gemm(mma, sums, {a(_, _, _, 0), tFA}, {b(_, _, _, 0), tFB}, sums)
      tcgen05.commit(bar, BOTH, PAIR)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    local from, to = sums({_, _}, 0, 0), part({_, _}, 0, 0)
    local t2r = tcgen05.make_tmem_copy(load, from):get_slice(tid)
    local mine = t2r:partition_D(to)
    local r = cute.make_rmem_tensor(mine.shape, cute.f32)
    cute.copy(load, t2r:partition_S(from), r)
    arch.fence_view_async_tmem_load()
    cute.basic_copy(r, mine)
    sync_pair()
    cute.when(warp:eq(0), function() arch.dealloc_tmem(ptr, COLUMNS, true) end)
  end)
end

local CASES = {
  {"mxf8f6f4 of e4m3", type = "e4m3", sf = "ue8m0", n = 32, k = 128,
   op = tcgen05.MmaMXF8Op("e4m3", {256, 32, 32}, PAIR)},
  {"mxf8f6f4 of e5m2 by e4m3", type = "e5m2", b_type = "e4m3", sf = "ue8m0",
   n = 128, k = 128, op = tcgen05.MmaMXF8F6F4Op("e5m2", "e4m3", {256, 128, 32},
                                                PAIR)},
  {"mxf4", type = "e2m1", sf = "ue8m0", n = 64, k = 128,
   op = tcgen05.MmaMXF4Op({256, 64, 64}, PAIR)},
  {"mxf4nvf4 of e4m3", type = "e2m1", sf = "e4m3", n = 160, k = 128,
   op = tcgen05.MmaMXF4NVF4Op("e4m3", {256, 160, 64}, PAIR)},
  {"mxf4nvf4 of ue8m0", type = "e2m1", sf = "ue8m0", n = 32, k = 128,
   op = tcgen05.MmaMXF4NVF4Op("ue8m0", {256, 32, 64}, PAIR)},
}

-- Returns an operand of small integers, its scale factors, and the layout of
-- these factors.
local function operand(o, which, rows)
  local dtype = which == 2 and o.b_type or o.type
  local t = cute.zeros({rows, o.k}, dtype)
  for e = 0, cute.size(t) - 1 do
    t[e] = (e * (5 + which) + e // 13) % 5 - 2
  end
  local at = utils.tile_atom_to_shape_SF({cute.round_up(rows, 128), o.k, 1},
    cute.make_tiled_mma(o.op).sf_vec_size)
  local f = cute.zeros({cute.cosize(at)}, o.sf)
  for e = 0, cute.size(f) - 1 do
    f[e] = 2.0 ^ ((e * (2 * which + 1) + e // 7) % 3 - 1)
  end
  return t, f, at
end

-- Returns the elements multiplied by their factors, as a list of rows.
local function scaled(o, t, f, at)
  local list = {}
  for i = 0, cute.size(t, 0) - 1 do
    list[i] = {}
    for k = 0, o.k - 1 do list[i][k] = t(i, k) * f[at(i, k, 0)] end
  end
  return list
end

local LAUNCH = {grid = 2, block = 128, cluster = 2, device = DEVICE}

describe("tcgen05.mma with scale factors by a pair", function()
  for nth, o in ipairs(CASES) do
    it("multiplies tiles: " .. o[1] .. support.long(nth), function()
      local A, FA, at_a = operand(o, 1, 256)
      local B, FB, at_b = operand(o, 2, o.n)
      local C = cute.zeros({256, o.n}, cute.f32)
      local call = product(o)(A, FA, B, FB, C)
      assert.same({}, support.report(call:launch(LAUNCH)):notes())
      local a, b = scaled(o, A, FA, at_a), scaled(o, B, FB, at_b)
      for i = 0, 255, 5 do
        for j = 0, o.n - 1 do
          local s = 0
          for k = 0, o.k - 1 do s = s + a[i][k] * b[j][k] end
          if s ~= C(i, j) then
            assert.equal(s, C(i, j), ("C(%d,%d)"):format(i, j))
          end
        end
      end
      if not cute.jit.version() then return end
      for _, target in ipairs {"sm_100a", "sm_103f", "sm_110a"} do
        local program = call:compile {arch = target, grid = 2, block = 128,
                                      cluster = 2}
        assert(cute.jit.compile(program.source, {arch = target}))
      end
    end)
  end

  for fault, want in pairs {
    ["factors of B in the leader only"] = "uninitialised",
    ["factors of B are not copied"] = "tensor%-memory"} do
    it("is reported: " .. fault .. " #long", function()
      local o = CASES[1]
      local A, FA = operand(o, 1, 256)
      local B, FB = operand(o, 2, o.n)
      local report = support.report(product(o, fault)(A, FA, B, FB,
        cute.zeros({256, o.n}, cute.f32)):launch {grid = 2, block = 128,
          cluster = 2, device = DEVICE, faults = "return"})
      assert.matches(want, report.reports[1].kind)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
