-- Tests operations that all lanes must execute together. Every operation with
-- an effect and every intrinsic runs in all lanes and in a divergent branch.
-- The simulator's reports must agree with the table of operations in the IR.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync

local HALF = 8            -- number of lanes that take the divergent branch
local NAMED = (1 << HALF) - 1

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.i32, cute.make_layout({n}), 16)
end

local function rmem(n, dtype)
  return cute.make_rmem_tensor(cute.make_layout({n}), dtype or cute.i32)
end

local function fragments(name)
  local mma = cute.make_tiled_mma(name)
  local thr = mma:get_slice(mma:size() == 1 and 0 or arch.thread_idx())
  local m, n, k = table.unpack(mma.shape_mnk)
  local a = thr:partition_fragment_A(cute.make_layout {m, k})
  local b = thr:partition_fragment_B(cute.make_layout {n, k})
  local c = thr:partition_fragment_C(cute.make_layout {m, n})
  a:fill(1)
  b:fill(1)
  c:fill(0)
  return mma, a, b, c
end

-- Prepares a tile for a warpgroup MMA: writes its operands to shared memory,
-- and issues the fences that the MMA needs. Returns cute.nvgpu.warpgroup, and a
-- function that issues the MMA.
local function warpgroup()
  local wg = cute.nvgpu.warpgroup
  local mma = cute.make_tiled_mma(
    wg.MmaF16BF16Op("bf16", "f32", {64, 8, 16}, "SMEM"))
  local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(
    wg.make_smem_layout_atom("K_INTER", "bf16"), {64, 16}), 1024)
  local tid = arch.thread_idx()
  local thr = mma:get_slice(tid)
  for k = 0, 7 do s[{k * 8 + tid // 16, tid % 16}] = 1 end
  arch.sync_threads()
  local a = mma:make_fragment_A(thr:partition_A(s))
  local b = mma:make_fragment_B(thr:partition_B(cute.local_tile(s, {8, 16},
                                                                {0, 0})))
  local acc = thr:partition_fragment_C(cute.make_layout {64, 8})
  wg.fence()
  mma:set("ACCUMULATE", false)
  return wg, function() cute.gemm(mma, acc, a, b, acc) end
end

-- Allocates 32 columns of tensor memory. Returns a pointer to them.
local function columns()
  local address = smem(1, cute.i32).iterator
  arch.alloc_tmem(32, address)
  arch.sync_warp()
  return arch.retrieve_tmem_ptr(cute.f32, 16, address)
end

-- Returns a sample (see SAMPLES) that copies tensor memory to registers or
-- back.
local function tmem_copy(op)
  return function()
    local atom = cute.make_copy_atom(op, cute.f32)
    local t = cute.make_tensor(columns(),
      cute.make_layout({{1, 32}}, {{0, 1 << 16}}))
    local r = cute.make_rmem_tensor(1, cute.f32)
    r:fill(0)
    return function()
      if cute.nvgpu.tcgen05.is_tmem_load(op) then cute.copy(atom, t, r)
      else cute.copy(atom, r, t) end
    end
  end
end

-- Returns a sample that issues an MMA with accumulators in tensor memory.
local function umma()
  local tcgen05 = cute.nvgpu.tcgen05
  local mma = cute.make_tiled_mma(
    tcgen05.MmaF16BF16Op("bf16", "f32", {64, 8, 16}))
  local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(
    tcgen05.make_smem_layout_atom("K_INTER", "bf16"), {64, 16}), 1024)
  s:fill(0)
  local thr = mma:get_slice(0)
  local a = mma:make_fragment_A(thr:partition_A(s))
  local b = mma:make_fragment_B(thr:partition_B(cute.local_tile(s, {8, 16},
                                                                {0, 0})))
  local layout = mma:make_fragment_C(mma:partition_shape_C {64, 8}).layout
  local acc = cute.make_tensor(columns(), layout)
  mma:set("ACCUMULATE", false)
  return function() cute.gemm(mma, acc, a, b, acc) end
end

-- Returns a sample that copies shared to tensor memory.
local function s2t()
  local tcgen05 = cute.nvgpu.tcgen05
  local s = cute.make_smem_tensor(cute.u32, cute.make_layout({32, 4}, {4, 1}),
                                  128)
  s:fill(0)
  local t = cute.recast_tensor(cute.make_tensor(columns(), cute.make_layout(
    {{32, 4}, 4}, {{1 << 16, 1 << 21}, 1})), cute.u32)
  local copy = tcgen05.make_s2t_copy(cute.make_copy_atom(
    tcgen05.Cp4x32x128bOp(1), cute.u32), t)
  local thr = copy:get_slice(0)
  local from = tcgen05.get_s2t_smem_desc_tensor(copy, thr:partition_S(s))
  return function() cute.copy(copy, from, thr:partition_D(t)) end
end

-- Numbers of threads of a block, for operations that need more than one warp.
local BLOCK = {wgmma = 128, ["wgmma.fence"] = 128, ["wgmma.commit_group"] = 128,
               ["wgmma.wait_group"] = 128}

-- Returns a sample whose operation is f(bar). The sample first makes the
-- mbarrier `bar`, which expects an arrival of each lane of a warp.
local function with_barrier(f)
  return function()
    local bar = smem(1, cute.i64).iterator
    cute.when(arch.lane_idx():eq(0), function()
      arch.mbarrier_init(bar, 32)
    end)
    arch.sync_warp()
    return function() f(bar) end
  end
end

-- ATOMS[sample](x) returns further arguments of the sample's kernel: a TMA atom
-- and its tensor of coordinates.
local ATOMS = {}

-- Returns a sample of a TMA operation on a box of four elements for each lane.
-- f gets the atom, and the lane's shared memory, coordinates and mbarrier.
local function with_box(op, f)
  local function sample(_, atom, coords)
    local lane = arch.lane_idx()
    local s = cute.make_smem_tensor(cute.i32,
      cute.make_layout({4, 32}, {1, 32}), 128)
    local bars = smem(32, cute.i64).iterator
    s(cute._, lane):fill(0)
    arch.mbarrier_init(bars + lane, 1)
    arch.fence_view_async_shared()
    local ts, tg = cpasync.tma_partition(atom, 0, cute.make_layout(1), s,
      cute.zipped_divide(coords, {4}))
    return function()
      f(atom, ts(cute._, lane), tg(cute._, lane + 32), bars + lane)
    end
  end
  ATOMS[sample] = function(x)
    return cpasync.make_tiled_tma_atom(op(), x, cute.make_layout {4}, {4})
  end
  return sample
end

local load_box = with_box(cpasync.CopyBulkTensorTileG2SOp,
  function(atom, ts, tg, bar)
    arch.mbarrier_arrive_and_expect_tx(bar, atom.tx_bytes)
    cute.copy(atom, tg, ts, {tma_bar_ptr = bar})
    arch.mbarrier_wait(bar, 0)
  end)

local store_box = with_box(cpasync.CopyBulkTensorTileS2GOp,
  function(atom, ts, tg)
    cute.copy(atom, ts, tg)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)
  end)

-- Returns a sample that runs f on a tensor map. Each lane has its own copy of
-- the atom's tensor map, in shared memory.
local function with_map(f)
  local function sample(x, atom)
    local maps = cute.make_smem_tensor(cute.i64, cute.make_layout {16, 32}, 128)
    local map = maps(cute._, arch.lane_idx())
    cpasync.copy_tensormap(atom, map)
    return function() f(atom, map, x) end
  end
  ATOMS[sample] = ATOMS[load_box]
  return sample
end

-- Prepares a TMA copy through a tensor map in global memory, which is a copy of
-- the atom's map.
local function by_map(x, atom, coords)
  local map = cute.make_tensor(cute.recast_tensor(x, cute.i64).iterator,
                               cute.make_layout(16))
  cute.when(arch.lane_idx():eq(0), function()
    cpasync.copy_tensormap(atom, map)
    cpasync.fence_tma_desc_release()
    cpasync.fence_tma_desc_acquire(map)
  end)
  arch.sync_warp()
  local bars = smem(32, cute.i64).iterator + arch.lane_idx()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout({4, 32}, {1, 32}),
                                  128)
  arch.mbarrier_init(bars, 1)
  arch.fence_view_async_shared()
  local ts, tg = cpasync.tma_partition(atom, 0, cute.make_layout(1), s,
    cute.zipped_divide(coords, {4}))
  return function()
    arch.mbarrier_arrive_and_expect_tx(bars, atom.tx_bytes)
    cute.copy(atom, tg(cute._, 60), ts(cute._, arch.lane_idx()),
              {tma_bar_ptr = bars, tma_desc_ptr = map})
    arch.mbarrier_wait(bars, 0)
  end
end
ATOMS[by_map] = ATOMS[load_box]

local function publish(x, atom)
  local map = cute.make_smem_tensor(cute.i64, cute.make_layout(16), 128)
  cute.when(arch.lane_idx():eq(0), function()
    cpasync.copy_tensormap(atom, map)
  end)
  arch.sync_warp()
  local to = cute.recast_tensor(x, cute.i64).iterator
  return function() cpasync.cp_fence_tma_desc_release(to, map) end
end
ATOMS[publish] = ATOMS[load_box]

-- Returns a sample of a bulk copy without a tensor map, between x and shared
-- memory.
local function with_run(op, f)
  return function(x)
    local lane = arch.lane_idx()
    local function pieces()
      return cute.make_smem_tensor(cute.i32, cute.make_layout {4, 32}, 16)
    end
    local s, t, bars = pieces(), pieces(), smem(32, cute.i64).iterator
    s(cute._, lane):fill(0)
    arch.mbarrier_init(bars + lane, 1)
    arch.fence_view_async_shared()
    local atom = cute.make_copy_atom(op(), cute.i32)
    local boxes = cute.zipped_divide(x, {4})
    return function()
      f(atom, s(cute._, lane), boxes(cute._, lane + 32), bars + lane,
        t(cute._, lane))
    end
  end
end

-- One sample of each operation. A sample is a function that prepares the
-- operation before the branch and returns a function that executes it. The
-- returned function gets a mask if the operation has one.
local SAMPLES = {
  gmem = function() return function() end end,
  smem = function() return function() smem(4) end end,
  rmem = function() return function() rmem(4):fill(0) end end,
  ld = function(x) return function() return x[arch.lane_idx()] end end,
  st = function(x) return function() x[arch.lane_idx()] = 1 end end,
  fill = function()
    local r = rmem(4)
    return function() r:fill(arch.lane_idx()) end
  end,
  pick = function()
    local r = rmem(4)
    r:fill(0)
    return function() return r[arch.lane_idx() % 4] end
  end,
  put = function()
    local r = rmem(4)
    return function() r[arch.lane_idx() % 4] = 1 end
  end,
  copy = function(x)
    local r = rmem(4)
    return function()
      cute.autovec_copy(cute.local_tile(x, {4}, {arch.lane_idx()}), r)
    end
  end,
  ["cp.async"] = function(x)
    local s = smem(256)
    local g2s = cute.make_tiled_copy(
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.i32, 128),
      cute.make_layout {32}, cute.make_layout {4})
    local thr = g2s:get_slice(arch.thread_idx())
    local from, to = thr:partition_S(x), thr:partition_D(s)
    return function() cute.copy(g2s, from, to) end
  end,
  ["cp.async.commit"] = function() return arch.cp_async_commit_group end,
  ["cp.async.wait"] = function()
    return function() arch.cp_async_wait_group(0) end
  end,
  matrix = function()
    local s = smem(64, cute.f16)
    local ldsm = cute.make_copy_atom("SM75_U32x1_LDSM_N", cute.f16)
    local tiled = cute.make_tiled_copy(ldsm,
      cute.make_layout({8, 4}, {4, 1}), cute.make_layout({1, 2}))
    local thr = tiled:get_slice(arch.thread_idx())
    local tile = cute.make_tensor(s.iterator, cute.make_layout({8, 8}, {8, 1}))
    tile[{arch.lane_idx() // 4, arch.lane_idx() % 4 * 2}] = 1.0
    tile[{arch.lane_idx() // 4, arch.lane_idx() % 4 * 2 + 1}] = 1.0
    arch.sync_warp()
    local from = thr:partition_S(tile)
    local to = cute.make_fragment_like(thr:partition_D(tile))
    return function() cute.copy(tiled, from, to) end
  end,
  ["bar.sync"] = function() return arch.sync_threads end,
  ["bar.arrive"] = function()
    return function() arch.barrier_arrive(3, 32) end
  end,
  syncwarp = function() return arch.sync_warp end,
  fence = function() return arch.fence_acq_rel_gpu end,
  atomic = function(x)
    return function() arch.atomic_add(x.iterator, 1) end
  end,
  printf = function() return function() cute.printf "here\n" end end,
  trap = function()
    return function() cute.testing.assert_(arch.lane_idx():lt(99), "no") end
  end,
  var = function() return function() cute.var(1) end end,
  get = function()
    local v = cute.var(1)
    return function() return v:get() end
  end,
  set = function()
    local v = cute.var(1)
    return function() v:set(arch.lane_idx()) end
  end,
  ["for"] = function(x)
    return function() for i in cute.range(3) do x[i + 200] = 1 end end
  end,
  loop = function(x)
    return function()
      local n = cute.var(0)
      cute.loop(function() return n:get():lt(3) end, function()
        x[n:get() + 200] = 1
        n:set(n:get() + 1)
      end)
    end
  end,
  ["if"] = function(x)
    return function()
      cute.when(arch.lane_idx():lt(3), function() x[200] = 1 end,
        function() x[201] = 1 end)
    end
  end,
  once = function(x)
    return function()
      cute.func(function()
        cute.return_if(x[200]:eq(3))
        x[201] = 1
      end)()
    end
  end,
  ["exit.if"] = function(x)
    return function() cute.return_if(x[200]:eq(3)) end
  end,
  ["mbarrier.init"] = function()
    local bar = smem(32, cute.i64).iterator
    return function() arch.mbarrier_init(bar + arch.lane_idx(), 1) end
  end,
  ["mbarrier.inval"] = function()
    local bar = smem(32, cute.i64).iterator + arch.lane_idx()
    arch.mbarrier_init(bar, 1)
    return function() arch.mbarrier_inval(bar) end
  end,
  ["mbarrier.arrive"] = with_barrier(arch.mbarrier_arrive),
  ["mbarrier.arrive.token"] = with_barrier(function(bar)
    arch.mbarrier_arrive(bar, nil, 1, {token = true})
  end),
  ["mbarrier.expect_tx"] = with_barrier(function(bar)
    arch.mbarrier_expect_tx(bar, 0)
  end),
  ["mbarrier.wait"] = with_barrier(function(bar)
    arch.mbarrier_wait(bar, 1)
  end),
  ["mbarrier.try_wait"] = with_barrier(function(bar)
    cute.var(arch.mbarrier_try_wait(bar, 1))
  end),
  ["st.async"] = with_barrier(function(bar)
    arch.store_async_dsmem(smem(1).iterator, 1, bar, 0)
  end),
  ptr = function(x)
    return function() cute.make_ptr("f32", x[1]:to(cute.i64)) end
  end,
  dsmem = function()
    local s = smem(32)
    return function() arch.map_dsmem_ptr(s.iterator, 0) end
  end,
  ["cp.async.mbarrier.arrive"] = with_barrier(
    arch.cp_async_mbarrier_arrive_noinc),
  wgmma = function() return (select(2, warpgroup())) end,
  ["wgmma.fence"] = function() return warpgroup().fence end,
  ["wgmma.commit_group"] = function() return warpgroup().commit_group end,
  ["wgmma.wait_group"] = function()
    local wg = warpgroup()
    return function() wg.wait_group(0) end
  end,
  tmem = function()
    local address = smem(1, cute.i32).iterator
    arch.alloc_tmem(32, address)
    arch.sync_warp()
    return function() arch.retrieve_tmem_ptr(cute.f32, 16, address) end
  end,
  ["tcgen05.alloc"] = function()
    local address = smem(1, cute.i32).iterator
    return function() arch.alloc_tmem(32, address) end
  end,
  ["tcgen05.dealloc"] = function()
    local ptr = columns()
    return function() arch.dealloc_tmem(ptr, 32) end
  end,
  ["tcgen05.relinquish_alloc_permit"] = function()
    return function() arch.relinquish_tmem_alloc_permit() end
  end,
  ["tcgen05.mma"] = umma,
  ["tcgen05.cp"] = s2t,
  ["tcgen05.shift"] = function()
    local ptr = columns()
    return function() cute.nvgpu.tcgen05.shift(ptr) end
  end,
  ["clc.try_cancel"] = with_barrier(function(bar)
    arch.issue_clc_query(bar, arch.alloc_smem(cute.i32, 4, 16))
  end),
  ["tcgen05.commit"] = with_barrier(cute.nvgpu.tcgen05.commit),
  ["tcgen05.ld"] = tmem_copy(cute.nvgpu.tcgen05.Ld32x32bOp(1)),
  ["tcgen05.st"] = tmem_copy(cute.nvgpu.tcgen05.St32x32bOp(1)),
  ["tcgen05.wait::st"] = function()
    return function() arch.fence_view_async_tmem_store() end
  end,
  ["tcgen05.fence"] = function()
    return function() arch.tcgen05_after_thread_sync() end
  end,
  tmap = load_box, ["tma.load"] = load_box, ["tma.store"] = store_box,
  ["bulk.commit"] = store_box, ["bulk.wait"] = store_box,
  ["tma.prefetch"] = with_box(cpasync.CopyBulkTensorTileG2SOp,
    function(atom, _, tg) cpasync.prefetch(atom, tg) end),
  ["tmap.at"] = by_map, ["tmap.publish"] = publish,
  ["tmap.copy"] = with_map(function(atom, map)
    cpasync.copy_tensormap(atom, map)
  end),
  ["tmap.address"] = with_map(function(atom, map, x)
    cpasync.update_tma_descriptor(atom, x, map)
  end),
  ["tmap.acquire"] = with_map(function(_, map)
    cpasync.fence_tma_desc_acquire(map)
  end),
  ["bulk.load"] = with_run(cpasync.CopyBulkG2SOp, function(atom, s, g, bar)
    arch.mbarrier_arrive_and_expect_tx(bar, 16)
    cute.copy(atom, g, s, {mbar_ptr = bar})
    arch.mbarrier_wait(bar, 0)
  end),
  ["bulk.store"] = with_run(cpasync.CopyBulkS2GOp, function(atom, s, g)
    cute.copy(atom, s, g)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)
  end),
  ["bulk.send"] = with_run(cpasync.CopyBulkS2SOp,
    function(atom, s, _, bar, t)
      arch.mbarrier_arrive_and_expect_tx(bar, 16)
      cute.copy(atom, s, t, {mbar_ptr = bar, cta_rank = 0})
      arch.mbarrier_wait(bar, 0)
    end),
  setmaxnreg = function()
    return function() arch.setmaxregister_decrease(24) end
  end,
  ["griddepcontrol.wait"] = function() return arch.griddepcontrol_wait end,
  ["griddepcontrol.launch_dependents"] = function()
    return arch.griddepcontrol_launch_dependents
  end,
}
SAMPLES["break.if"], SAMPLES["else"] = SAMPLES.loop, SAMPLES["if"]
SAMPLES["end"] = SAMPLES["if"]
SAMPLES["tmap.set"] = SAMPLES["tmap.address"]

-- Samples of operations whose properties are not in ops.h but in other tables:
-- those of atoms and of intrin.h. `full` needs all lanes; `lane` does not.
local ROWS = {
  mma = {
    full = function()
      local mma, a, b, c = fragments "SM80_16x8x16_F32F16F16F32_TN"
      return function() cute.gemm(mma, c, a, b, c) end
    end,
    lane = function()
      local mma, a, b, c = fragments "SM61_DP4A"
      return function() cute.gemm(mma, c, a, b, c) end
    end},
  ask = {},
  ["cluster.arrive"] = {
    warp = function() return arch.cluster_arrive end,
    lane = function()
      return function() arch.cluster_arrive {aligned = false} end
    end},
  ["cluster.wait"] = {
    warp = function()
      return function()
        arch.cluster_arrive()
        arch.cluster_wait()
      end
    end,
    lane = function()
      arch.cluster_arrive()
      return function() arch.cluster_wait {aligned = false} end
    end},
  -- `lane` is absent: only PTX from elsewhere can contain a wait of one
  -- lane.
  ["tcgen05.wait::ld"] = {
    full = function()
      return function() arch.fence_view_async_tmem_load() end
    end},
}

local NAMES = {}
for _, op in ipairs(core.ops()) do NAMES[op.name] = true end

-- Runs a sample in lanes 0 to n - 1. Returns the kinds of the simulator's
-- reports, and the number of each operation in the sample's IR.
local function try(sample, n, mask, what)
  local block = what and BLOCK[what]
  local kernel = cute.kernel("k", function(x, ...)
    local act = sample(x, ...)
    if n == 32 then act(mask) else
      cute.when(arch.lane_idx():lt(n), function() act(mask) end)
    end
    x[0] = 1
  end)
  local x = cute.zeros({256}, "i32")
  local blackwell = what and (what:find "^tcgen05" or what:find "^clc"
    or what == "tmem")
  local opts = {grid = 1, block = block or 32, faults = "return",
                output = false,
                device = blackwell and "sim:sm_100a" or "sim:sm_90a"}
  local args = ATOMS[sample] and table.pack(x, ATOMS[sample](x)) or {x, n = 1}
  args[args.n + 1] = opts
  local report = support.report(kernel(table.unpack(args, 1, args.n)):launch(
    opts))
  local program, ops = cute.compile(kernel, table.unpack(args)), {}
  for line in program.ir:gmatch "[^\n]+" do
    local op = line:match "^%s*%S+ = %S+ (%S+)" or line:match "%S+"
    -- Removes the flags after the operation's name.
    while not NAMES[op] and op:find "%." do
      op = op:match "^(.*)%."
    end
    ops[op] = (ops[op] or 0) + 1
  end
  local kinds = {}
  for _, r in ipairs(report.reports) do kinds[r.kind] = true end
  return kinds, ops
end

local function demands(who, sample, what)
  local function kinds(n, mask)
    local found = try(sample, n, mask, what)
    -- ignored: a lane that skips an operation leaves its result undefined
    found["uninitialised"] = nil
    -- ignored: lanes of a warp that all access one element collide
    found["warp-race"] = nil
    found["race"] = nil
    found["mbarrier"] = nil       -- ignored: with fewer arrivals, phases do not
                                  -- end
    -- ignored: several threads issue an MMA, and the columns are never freed
    found["tensor-memory"] = nil
    -- ignored: no block waits for the data that st.async sends
    found["exited-block"] = nil
    local list = {}
    for kind in pairs(found) do list[#list + 1] = kind end
    return what .. ": " .. table.concat(list, " ")
  end
  local good, bad = what .. ": ", what .. ": divergent"
  assert.equal(good, kinds(32), "all lanes")
  assert.equal(who == "lane" and good or bad, kinds(HALF), "some lanes")
  if who ~= "mask" then return end
  assert.equal(good, kinds(HALF, NAMED), "the lanes of the mask")
  assert.equal(bad, kinds(HALF, NAMED << 1), "a lane beyond the mask")
  assert.equal(bad, kinds(HALF, NAMED >> 1), "fewer than the mask")
  assert.equal(bad, kinds(32, NAMED), "more than the mask")
  assert.equal(bad, kinds(HALF, 0xffffffff), "fewer than all")
end

describe("an operation", function()
  for _, op in ipairs(core.ops()) do
    local name, who = op.name, op.who
    if op.effect and who == "text" then
      it(name .. " is not the simulator's", function()
        assert.has_error(function()
          try(function() return function() arch.inline_ptx("bar.sync 0;") end
          end, 32, nil, name)
        end)
      end)
    elseif op.effect and who == "row" then
      it(name .. " is done as its row says", function()
        for want, sample in pairs(assert(ROWS[name], name)) do
          local _, ops = try(sample, 32, nil, name)
          assert.is_truthy(ops[name])
          demands(want, sample, name)
        end
      end)
    elseif op.effect then
      it(("%s is done by: %s"):format(name, who), function()
        local sample = assert(SAMPLES[name], "no sample of " .. name)
        local _, ops = try(sample, 32, nil, name)
        assert.is_truthy(ops[name], "the sample makes no " .. name)
        assert.is_truthy(({lane = 1, mask = 1, warp = 1, full = 1})[who])
        demands(who, sample, name)
      end)
    else
      it(name .. " has no effect and is each lane's own", function()
        assert.equal("lane", who)
      end)
    end
  end
end)

describe("an intrinsic", function()
  local TYPES = {p = "boolean", s = "i16", w = "u16", i = "i32", u = "u32",
                 I = "i64", U = "u64", f = "f32"}

  -- Returns operands for a row's operation. A lane's operands depend only on
  -- the lane itself, so no lane reads the result of another one.
  local function operands(row, letters)
    local list, lane = {}, arch.lane_idx()
    for letter in letters:gmatch "." do
      local x = lane
      if row.name:find "^shfl" and #list == 1 then
        x = row.name == "shfl.idx" and lane or lane * 0
      end
      list[#list + 1] = letter == "p" and (lane:lt(99)) or
        core.cvt(x, core[TYPES[letter]])
    end
    return list
  end

  for nth, row in ipairs(core.intrinsics()) do
    local letters = row.signature:match ":(.*)$"
    local class = row.class
    local who = class == "M" and "mask" or "lane"
    it(("%s (%s) is done by: %s%s"):format(row.name, row.signature, who,
       support.long(nth, 3)),
      function()
        assert.is_truthy(class:find "^[PKLAM]$")
        local function sample()
          local list = operands(row, letters)
          return function(mask)
            local all, imm = {table.unpack(list)}, 31
            if who == "mask" then all[#all] = mask or 0xffffffff end
            if row.name == "shfl.up" then imm = 0 end
            cute.var(core.intrin(row.name, imm, table.unpack(all)))
          end
        end
        if class == "M" or class == "A" then
          local _, ops = try(sample, 32)
          assert.is_truthy(ops.ask)
          demands(who, sample, row.name)
        end
      end)
  end
end)
-- SPDX-License-Identifier: MIT
