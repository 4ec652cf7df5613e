--- The kernel of kernels/gemm_sm100: its shared and tensor memory, and the
-- roles of its warps.
local core = require "cute.core"
local cute = require "cute"
local producer = require "kernels.gemm_sm90.producer"
local scale_factors = require "kernels.gemm_sm100.scale_factors"
local smem = require "kernels.gemm_sm90.smem"
local store_tile = require "kernels.gemm_sm90.store_tile"
local tile_order = require "kernels.gemm_sm90.tile_order"

local _ = cute._
local arch, cpasync, pipeline = cute.arch, cute.nvgpu.cpasync, cute.pipeline
local tcgen05 = cute.nvgpu.tcgen05
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

-- Warps 0 to 3 execute the epilogue. Warp LOADER requests tiles by TMA. Warp
-- ISSUER issues MMAs, and allocates tensor memory.
local LOADER, ISSUER = 4, 5

-- Returns the MMA operation for the operands' types.
local function op_of(o)
  local a, b, bits = o.a_dtype, o.b_dtype, o.a_dtype.bits
  if o.scales and bits == 8 then
    return tcgen05.MmaMXF8F6F4Op(a, b, {o.tile[1], o.tile[2], 32})
  elseif o.scales then
    local shape = {o.tile[1], o.tile[2], 64}
    return o.vs == 32 and tcgen05.MmaMXF4Op(shape)
      or tcgen05.MmaMXF4NVF4Op(o.sf, shape)
  end
  local shape = {o.tile[1], o.tile[2], 256 // bits}
  local how = {1, "SMEM", o.a_major == "k" and "K" or "MN",
               o.b_major == "k" and "K" or "MN"}
  if bits == 32 then return tcgen05.MmaTF32Op(shape, table.unpack(how)) end
  if bits == 16 then
    return tcgen05.MmaF16BF16Op(a, o.acc, shape, table.unpack(how))
  elseif a.is_integer then
    return tcgen05.MmaI8Op(a, shape, table.unpack(how))
  end
  return tcgen05.MmaF8F6F4Op(a, b, o.acc, shape, table.unpack(how))
end

-- Returns the tiled copy of `columns` columns of accumulators to registers.
local function load_of(mma, o, columns)
  local repeats = math.min(columns & -columns, 64)
  local layout = mma:make_fragment_C(mma:partition_shape_C {o.tile[1],
                                                            o.tile[2]})
  return tcgen05.make_tmem_copy(
    cute.make_copy_atom(tcgen05.Ld32x32bOp(repeats), o.acc),
    cute.composition(layout({_, _}, 0, 0), {o.tile[1], columns}))
end

-- Splits the list `more`, which begins with the scale factors of A and of B.
-- Returns a list of these factors with their layouts, and the rest of `more`.
local function split_off(o, more, layouts)
  local list = {}
  for i, layout in ipairs(layouts) do
    list[i] = {atom = more[2 * i - 1], coords = more[2 * i], mode = i,
               rows = o.tile[i], smem = layout.smem, tmem = layout.tmem,
               columns = layout.columns}
  end
  return list, {n = more.n - 4, table.unpack(more, 5, more.n)}
end

-- Makes an object that loads an operand's scale factors, like the object that
-- producer.load makes for an operand.
local function load_of_factors(o, f)
  local function partition(at, l)
    return scale_factors.partition({atom = f.atom, coords = f.coords,
      smem = f.stages, tile = o.tile, rows = f.rows, vs = o.vs}, at, l)
  end
  return {atom = f.atom, mode = f.mode, smem = (partition(0, 0)),
          along_k = function(at, l) return select(2, partition(at, l)) end}
end

-- Makes two rings of stages: one in shared memory, which the loader fills with
-- tiles of A and B, and one in tensor memory, which the issuer fills with
-- accumulators.
local function make_rings(o, bytes, maker)
  local one = Group(Agent.Thread)
  return pipeline.PipelineTmaUmma {num_stages = o.stages, tx_count = bytes,
      producer_group = one, consumer_group = one, cluster_shape_mn = o.cluster,
      maker = maker, defer_sync = true},
    pipeline.PipelineUmmaAsync {num_stages = o.parts, producer_group = one,
      consumer_group = Group(Agent.Warp, 4), maker = maker, defer_sync = true}
end

-- Makes the object with which the thread that issues MMAs uses the scale
-- factors of the stages. copy(stage) copies them to tensor memory. a and b are
-- tensors of the factors there, (SF,M,K,PIPE).
local function factors_of(o, x)
  local at = cute.recast_ptr(x.ptr + o.parts * o.tile[2], nil, o.sf)
  local a, b = x.scales[1], x.scales[2]
  local tFA = cute.make_tensor(at, a.tmem)
  local tFB = cute.make_tensor(at + 4 * a.columns, b.tmem)
  local copy_a = scale_factors.copier(a.stages, tFA)
  local copy_b = scale_factors.copier(b.stages, tFB)
  return {a = tFA, b = tFB, copy = function(stage)
    copy_a(stage)
    copy_b(stage)
  end}
end

-- Multiplies the operands of the block's tiles as soon as they arrive. Only one
-- thread calls this function.
local function multiply(o, x)
  local mma, pipe, sums = x.mma, x.pipe, x.sums
  local thr = mma:get_slice(0)
  local tCrA = mma:make_fragment_A(thr:partition_A(x.sA))   -- (1,M,K,PIPE)
  local tCrB = mma:make_fragment_B(thr:partition_B(x.sB))
  local read, part = pipe:make_consumer_state(), sums:make_producer_state()
  local work = x.walk "consumer"
  local factors = o.scales and factors_of(o, x)
  -- Returns stage i of an operand, together with its scale factors if there are
  -- any.
  local function stage(t, f, i)
    return f and {t(_, _, _, i), f(_, _, _, i)} or t(_, _, _, i)
  end
  tile_order.each(o, work, function()
    sums:producer_acquire(part)
    arch.tcgen05_after_thread_sync()
    local acc = x.acc(_, _, _, part.index)
    for k in cute.range(x.k_tiles) do
      pipe:consumer_wait(read)
      mma:set(tcgen05.Field.ACCUMULATE, core.gt(k, 0))
      if factors then
        arch.tcgen05_after_thread_sync()
        factors.copy(read.index)
      end
      cute.gemm(mma, acc, stage(tCrA, factors and factors.a, read.index),
                stage(tCrB, factors and factors.b, read.index), acc)
      pipe:consumer_release(read)
      read:advance()
    end
    sums:producer_commit(part)
    part:advance()
    work:advance_to_next_work()
  end)
end

-- Stores the block's tiles. Releases the accumulators of a tile as soon as the
-- last of them are in registers.
local function store(o, x, out)
  local sums, tile = x.sums, {o.tile[1], x.columns}
  local last = o.tile[2] // tile[2] - 1
  local part, thr = sums:make_consumer_state(), x.load:get_slice(out.thread)
  local shape = thr:partition_D(cute.make_identity_tensor(tile)).shape
  local work = x.walk "consumer"
  tile_order.each(o, work, function()
    sums:consumer_wait(part)
    arch.tcgen05_after_thread_sync()
    local acc = x.acc({_, _}, 0, 0, part.index)              -- (BM,BN)
    local function load(n)
      local to = cute.make_rmem_tensor(shape, o.acc)
      cute.copy(x.load, thr:partition_S(cute.local_tile(acc, tile, {0, n})), to)
      arch.fence_view_async_tmem_load()
      cute.when(core.eq(n, last), function()
        arch.tcgen05_before_thread_sync()
        arch.sync_warp()
        sums:consumer_release(part)
      end)
      return to
    end
    store_tile.store(o, out, load, work:get_current_work())
    part:advance()
    work:advance_to_next_work()
  end)
  if o.pdl then arch.griddepcontrol_launch_dependents() end
  cute.when(out.leader, function() out.pipe:producer_tail() end)
end

--- Makes the kernel for options with all defaults filled in (options.complete).
---@return table {f =, a =, b =, d =, epi_mma =}: a, b and d are layouts of
-- stages and buffers; epi_mma: the copy of tensor memory for o.epi rows and
-- columns
return function(o)
  local bm, bn = o.tile[1], o.tile[2]
  local layout_a = smem.stages(o, bm, o.a_dtype, o.a_major)
  local layout_b = smem.stages(o, bn, o.b_dtype, o.b_major)
  local layout_d = smem.parts(o, o.d_dtype, o.d_major, o.epi_stages)
  local mma = cute.make_tiled_mma(op_of(o))
  local layouts = o.scales and {scale_factors.layouts(mma, o.tile, o.stages,
                                                      o.sf)}
  local columns = o.epi[2] * (o.gated and 2 or 1)
  local epi_mma = load_of(mma, o, o.epi[2])

  local function kernel(tma_a, cA, tma_b, cB, tma_d, cD, tiles_m, tiles_n,
                        k_tiles, D, alpha, beta, ...)
    local more, space = table.pack(...), nil
    if o.shares then space, more.n = more[more.n], more.n - 1 end
    local scales                            -- the scale factors of A and of B
    if o.scales then scales, more = split_off(o, more, layouts) end
    for _, count in ipairs {tiles_m, tiles_n, k_tiles} do
      cute.assume(count, 1, (1 << 31) - 1, 1)
    end
    local tid = arch.thread_idx()
    local warp = arch.make_warp_uniform(arch.warp_idx())
    local loader = tid:eq(32 * LOADER)
    cute.when(loader, function()
      for _, atom in ipairs {tma_a, tma_b, tma_d} do
        cpasync.prefetch_descriptor(atom)
      end
    end)
    local sA = cute.make_smem_tensor(o.a_dtype, layout_a, 1024)
    local sB = cute.make_smem_tensor(o.b_dtype, layout_b, 1024)
    local sD = cute.make_smem_tensor(o.d_dtype, layout_d, 1024)
    local bytes = tma_a.tx_bytes + tma_b.tx_bytes
    for _, f in ipairs(scales or {}) do
      f.stages = cute.make_smem_tensor(o.sf, f.smem, 128)     -- (SF,M,K,PIPE)
      bytes = bytes + f.atom.tx_bytes
    end
    local pipe, sums = make_rings(o, bytes, loader)
    local address = arch.alloc_smem(cute.i32, 1)
    cute.when(warp:eq(ISSUER), function()
      arch.alloc_tmem(o.tmem, address)
      arch.relinquish_tmem_alloc_permit()
    end)
    arch.tcgen05_before_thread_sync()
    pipeline.agent_sync(o.clustered)
    arch.tcgen05_after_thread_sync()
    local ptr = arch.retrieve_tmem_ptr(o.acc, 16, address)
    local acc = cute.make_tensor(ptr, mma:make_fragment_C(    -- (MMA,M,N,PART)
      cute.append(mma:partition_shape_C {bm, bn}, o.parts)).layout)
    local walk = tile_order.walks(o, tiles_m, tiles_n, o.groups and D.shape[1]
      or o.batches and cute.size(cD, 2) or 1, k_tiles, space, loader)
    local x = {mma = mma, pipe = pipe, sums = sums, acc = acc, sA = sA, sB = sB,
               ptr = ptr, scales = scales,
               walk = walk, k_tiles = k_tiles, load = load_of(mma, o, columns),
               columns = columns}

    cute.when(loader, function()
      if o.pdl then arch.griddepcontrol_wait() end
      local m, n = arch.block_in_cluster_idx()
      local a = producer.load(o, {atom = tma_a, coords = cA, smem = sA,
        rows = bm, mode = 2, block = {m, n}, hint = o.a_hint})
      local b = producer.load(o, {atom = tma_b, coords = cB, smem = sB,
        rows = bn, mode = 1, block = {m, n}, hint = o.b_hint})
      local loads = {a, b}
      for i, f in ipairs(scales or {}) do
        loads[2 + i] = load_of_factors(o, f)
      end
      producer.run(o, pipe, loads, walk "producer", 0, k_tiles)
    end)
    cute.when(tid:eq(32 * ISSUER), function() multiply(o, x) end)
    cute.when(warp:lt(LOADER), function()
      if o.pdl then arch.griddepcontrol_wait() end
      store(o, x, store_tile.new(o, {mma = epi_mma, atom = tma_d, coords = cD,
        smem = sD, group = 0, thread = tid, rank = 0, D = D, alpha = alpha,
        beta = beta, more = more}))
    end)
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    cute.when(warp:eq(ISSUER), function() arch.dealloc_tmem(ptr, o.tmem) end)
  end
  return {f = kernel, a = layout_a, b = layout_b, d = layout_d,
          epi_mma = epi_mma}
end
-- SPDX-License-Identifier: MIT
