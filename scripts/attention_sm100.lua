-- Attention for Blackwell: scores, probabilities and results in tensor memory.
--
-- tcgen05.mma stores the scores in tensor memory. A thread loads a whole row
-- from there, so the maximum and the sum of a row need no shuffles. The thread
-- stores the probabilities P to tensor memory, as operand A of the product with
-- V. A block has 256 rows of Q in two groups of 128. While the tensor cores
-- multiply for one group, the softmax warps of the other group compute
-- exponentials. The roles of the warps are:
--   warps 0-3, 4-7  softmax of group 0 and of group 1
--   warps 8-11      correction: multiply O by the factor by which the maxima
--                   of the rows changed, and store O at the end
--   warp 12         one thread issues the MMAs
--   warp 13         one thread loads Q, K and V by TMA
-- An SM computes 16 exponentials or 4096 multiply-adds of MMAs per cycle, so
-- both take equally long for D = 128. Therefore, every fourth exponential is
-- computed by a polynomial on FMA units. The pipelines between softmax,
-- correction and MMAs have two stages, one per group.
--   cutelua scripts/attention_sm100.lua --help
local cute = require "cute"
local harness = require "cutelua.bench.harness"
local oracle = require "cutelua.bench.oracle"
local tiles = require "cute.tiles"
local cpasync, tcgen05 = cute.nvgpu.cpasync, cute.nvgpu.tcgen05
local pipeline, arch, _ = cute.pipeline, cute.arch, cute._
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

local ROWS, GROUPS, STAGES, CHUNK = 128, 2, 3, 32
local CORRECT, MULTIPLY, LOAD, WARPS = 8, 12, 13, 16
local INF = math.huge
local ONCE = {unroll = 1}  -- unrolled loops would need more registers

-- Returns 2^x for x <= 0 on FMA units. x is n + f with |f| <= 1/2. 2^f is
-- approximated by a polynomial with a relative error of 3e-06. n is added to
-- the exponent of the result.
local function exp2_fma(x)
  local MAGIC = 0x1.8p23        -- x + MAGIC has round(x) in its lowest bits
  x = cute.max(x, -127.0)
  local whole = x + MAGIC
  local f = x - (whole - MAGIC)
  local y = 0.0096004
  for _, c in ipairs {0.0559169, 0.2402372, 0.6931220, 1.0} do
    y = cute.fma(f, y, c)
  end
  return (y:bitcast(cute.u32) + (whole:bitcast(cute.u32) << 23))
    :bitcast(cute.f32)
end

-- Returns the kernel for heads of D elements.
local function make(D, dtype, causal)
  local KEYS = D == 64 and 128 or 64  -- keys per step: columns of scores
  -- registers per thread of softmax, correction and other warps; 128 on average
  local REGISTERS = {152, 104, 104}
  local function stages(kind, shape, order)
    return cute.tile_to_shape(tcgen05.make_smem_layout_atom(kind, dtype), shape,
                              order)
  end
  local layout = {q = stages("K_SW128", {ROWS, D, GROUPS}, {0, 1, 2}),
                  k = stages("K_SW128", {KEYS, D, STAGES}, {0, 1, 2}),
                  v = stages("MN_SW128", {D, KEYS, STAGES}, {1, 0, 2})}
  local mma_s = cute.make_tiled_mma(
    tcgen05.MmaF16BF16Op(dtype, cute.f32, {ROWS, KEYS, 16}))
  local mma_o = cute.make_tiled_mma(tcgen05.MmaF16BF16Op(dtype, cute.f32,
    {ROWS, D, 16}, 1, tcgen05.OperandSource.TMEM, "K", "MN"))
  -- The columns of tensor memory hold two groups of scores, then P in 16 bits,
  -- then O.
  local P_AT, O_AT, COLUMNS = 2 * KEYS, 3 * KEYS, 512

  local kernel = cute.kernel("attention_sm100", {block = 32 * WARPS,
    min_blocks = 1, fastmath = true},
    function(tma_q, cQ, tma_k, cK, tma_v, cV, O, LSE, scale)
    local tid, warp = arch.thread_idx(), arch.make_warp_uniform(arch.warp_idx())
    local tile, h, b = arch.block_idx()
    local S, T = cute.size(cQ, 0), cute.size(cK, 0)
    local first, g = tile * ROWS * GROUPS, h // (cute.size(cQ, 2)
      // cute.size(cK, 2))
    -- Returns the first key that the mask hides from a row.
    local function limit(row)
      -- Without `causal`, this is T. As a constant, T would let the compiler
      -- unroll the masks, and a register would spill.
      return cute.min(row + (causal and T - S + 1 or T), T)
    end
    local steps = cute.max(cute.ceil_div(limit(cute.min(
      first + ROWS * GROUPS, S) - 1), KEYS), 1)

    local sQ = cute.make_smem_tensor(dtype, layout.q, 1024)
    local sK = cute.make_smem_tensor(dtype, layout.k, 1024)
    local sV = cute.make_smem_tensor(dtype, layout.v, 1024)
    local factor = cute.make_smem_tensor(cute.f32, {ROWS, GROUPS})
    local one, warps = Group(Agent.Thread), Group(Agent.Warp, 4)
    local function ring(atom, count)
      return pipeline.PipelineTmaUmma {num_stages = count,
        tx_count = atom.tx_bytes, producer_group = one, consumer_group = one,
        defer_sync = true}
    end
    local function pair(class, from, to)
      return class {num_stages = GROUPS, producer_group = from,
                    consumer_group = to, defer_sync = true}
    end
    local q, k, v = ring(tma_q, GROUPS), ring(tma_k, STAGES),
      ring(tma_v, STAGES)
    local scores = pair(pipeline.PipelineUmmaAsync, one, warps)
    local powers = pair(pipeline.PipelineAsyncUmma, warps, one)
    local result = pair(pipeline.PipelineUmmaAsync, one, warps)
    local factors = pair(pipeline.PipelineAsync, warps, warps)
    local address = arch.alloc_smem(cute.i32, 1)
    cute.when(warp:eq(MULTIPLY), function()
      arch.alloc_tmem(COLUMNS, address)
      arch.relinquish_tmem_alloc_permit()
    end)
    arch.tcgen05_before_thread_sync()
    pipeline.agent_sync()
    arch.tcgen05_after_thread_sync()
    local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
    local function accumulators(mma, n, at)                -- (MMA,M,N,GROUP)
      return cute.make_tensor(ptr + at, mma:make_fragment_C(
        cute.append(mma:partition_shape_C {ROWS, n}, GROUPS)).layout)
    end
    local tS, tO = accumulators(mma_s, KEYS, 0), accumulators(mma_o, D, O_AT)
    local tP = cute.make_tensor(cute.recast_ptr(ptr + P_AT, dtype),
      mma_o:make_fragment_A(cute.append(                   -- (MMA,M,K,GROUP)
        mma_o:partition_shape_A {ROWS, KEYS}, GROUPS)).layout)
    -- Returns a tiled copy for 32 columns of t, a tensor (128,n) in tensor
    -- memory, and a function that maps i to this thread's part of chunk i.
    local function chunks(op, t)
      local copy = tcgen05.make_tmem_copy(cute.make_copy_atom(op,
        t.element_type), cute.local_tile(t, {ROWS, CHUNK}, {0, 0}))
      local mine = copy:get_slice(tid % ROWS)
      return copy, function(i)
        local part = cute.local_tile(t, {ROWS, CHUNK}, {0, i})
        if tcgen05.is_tmem_load(copy) then return mine:partition_S(part) end
        return mine:partition_D(part)
      end
    end
    local function rows_of(t, group, n)                    -- (128,n)
      local l = t({_, _}, 0, _, group)
      return cute.make_tensor(l.iterator, cute.make_layout({ROWS, n},
        {65536 * 32 // t.element_type.bits, 1}))
    end

    local function load()
      local function fill(x, atom, coords, smem, turned)
        local state = x:make_producer_state()
        local s, c = cute.group_modes(smem, 0, 2), cute.local_tile(coords,
          {cute.size(smem, 0), cute.size(smem, 1)}, {_, _, _, _})
        local into, from = cpasync.tma_partition(atom, 0, cute.make_layout(1),
          s, cute.group_modes(c, 0, 2))
        return function(n, head)
          x:producer_acquire(state)
          cute.copy(atom, turned and from(_, 0, n, head, b)
            or from(_, n, 0, head, b), into(_, state.index),
            {tma_bar_ptr = x:producer_get_barrier(state)})
          state:advance()
        end
      end
      local ask_q = fill(q, tma_q, cQ, sQ)
      local ask_k, ask_v = fill(k, tma_k, cK, sK), fill(v, tma_v, cV, sV, true)
      for i = 0, GROUPS - 1 do ask_q(tile * GROUPS + i, h) end
      ask_k(0, g)
      for j in cute.range(1, steps, 1, ONCE) do
        ask_k(j, g)
        ask_v(j - 1, g)
      end
      ask_v(steps - 1, g)
    end

    local function multiply()
      local thr_s, thr_o = mma_s:get_slice(0), mma_o:get_slice(0)
      local tQ = mma_s:make_fragment_A(thr_s:partition_A(sQ))
      local tK = mma_s:make_fragment_B(thr_s:partition_B(sK))
      local tV = mma_o:make_fragment_B(thr_o:partition_B(sV))
      local at_q, at_k, at_v = q:make_consumer_state(), k:make_consumer_state(),
        v:make_consumer_state()
      local at_s, at_o = scores:make_producer_state(),
        result:make_producer_state()
      local at_p = powers:make_consumer_state()
      local function score(i)  -- S = Q K^T of group i
        scores:producer_acquire(at_s)
        arch.tcgen05_after_thread_sync()
        local acc = tS(_, _, _, i)
        mma_s:set(tcgen05.Field.ACCUMULATE, false)
        cute.gemm(mma_s, acc, tQ(_, _, _, i), tK(_, _, _, at_k.index), acc)
        scores:producer_commit(at_s)
        at_s:advance()
      end
      local function add(i, j)  -- O += P V of group i
        powers:consumer_wait(at_p)
        result:producer_acquire(at_o)
        arch.tcgen05_after_thread_sync()
        local acc = tO(_, _, _, i)
        mma_o:set(tcgen05.Field.ACCUMULATE, cute.gt(j, 0))
        cute.gemm(mma_o, acc, tP(_, _, _, i), tV(_, _, _, at_v.index), acc)
        powers:consumer_release(at_p)
        result:producer_commit(at_o)
        at_p:advance()
        at_o:advance()
      end
      local function done(x, state)
        x:consumer_release(state)
        state:advance()
      end
      k:consumer_wait(at_k)
      for i = 0, GROUPS - 1 do
        q:consumer_wait(at_q)
        at_q:advance()
        score(i)
      end
      done(k, at_k)
      for j in cute.range(0, steps - 1, 1, ONCE) do
        k:consumer_wait(at_k)
        v:consumer_wait(at_v)
        for i = 0, GROUPS - 1 do
          score(i)
          add(i, j)
        end
        done(k, at_k)
        done(v, at_v)
      end
      v:consumer_wait(at_v)
      for i = 0, GROUPS - 1 do add(i, steps - 1) end
      done(v, at_v)
    end

    local function softmax()
      arch.setmaxregister_increase(REGISTERS[1])
      local group, row = warp // 4, tid % ROWS
      local at_s, at_p = scores:make_consumer_state(),
        powers:make_producer_state()
      local at_f = factors:make_producer_state()
      for _, state in ipairs {at_s, at_p, at_f} do state:advance(group) end
      local from, part = chunks(tcgen05.Ld32x32bOp(CHUNK),
                                rows_of(tS, group, KEYS))
      local to, place = chunks(tcgen05.St32x32bOp(CHUNK // 2),
                               rows_of(tP, group, KEYS))
      local top = first + group * ROWS  -- the first row of the group
      local hidden, first_hidden = limit(top + row), limit(top)
      local by = scale * (1 / math.log(2))
      local most, sum = -INF, 0.0
      -- Passes the factor for the thread's row to the correction warps.
      local function pass(x)
        factors:producer_acquire(at_f)
        factor[{row, group}] = x
        arch.sync_warp()
        factors:producer_commit(at_f)
        at_f:advance(GROUPS)
      end
      -- Returns chunk n of the thread's scores for step j. Each chunk is loaded
      -- twice, because a thread has too few registers to keep all scores.
      local function chunk(n, j)
        local r = cute.make_rmem_tensor({CHUNK, 1, 1}, cute.f32)
        cute.copy(from, part(n), r)
        arch.fence_view_async_tmem_load()
        local key = j * KEYS + n * CHUNK
        cute.when(cute.gt(key + CHUNK, first_hidden), function()
          local count = cute.max(hidden - key, 0)  -- number of visible keys
          local bits = cute.where(cute.lt(count, CHUNK),
                                  ~(-1 << cute.min(count, CHUNK - 1)), -1)
          for i = 0, CHUNK - 1 do
            r[i] = cute.where(cute.ne((bits >> i) & 1, 0), r[i], -INF)
          end
        end)
        return r
      end
      for j in cute.range(0, steps, 1, ONCE) do
        scores:consumer_wait(at_s)
        arch.tcgen05_after_thread_sync()
        local now, add = most, 0.0
        for n = 0, KEYS // CHUNK - 1 do
          local r = chunk(n, j)
          for i = 0, CHUNK - 1 do now = cute.max(now, r[i]) end
        end
        -- The maximum of a row is -infinity if all of its keys so far are
        -- hidden.
        local base = cute.where(cute.eq(now, -INF), 0.0, now) * by
        local change = cute.math.exp2(most * by - base)
        pass(change)
        powers:producer_acquire(at_p)
        arch.tcgen05_after_thread_sync()
        for n = 0, KEYS // CHUNK - 1 do
          local r = chunk(n, j)
          local p = cute.make_rmem_tensor({CHUNK, 1, 1}, dtype)
          for i = 0, CHUNK - 1 do
            local x = cute.fma(r[i], by, -base)
            x = i % 4 == 3 and exp2_fma(x) or cute.math.exp2(x)
            p[i], add = x:to(dtype), add + x
          end
          cute.copy(to, p, place(n))
        end
        arch.fence_view_async_tmem_store()
        arch.tcgen05_before_thread_sync()
        arch.sync_warp()
        scores:consumer_release(at_s)
        powers:producer_commit(at_p)
        at_s:advance(GROUPS)
        at_p:advance(GROUPS)
        sum = sum * change + add
        most = now
      end
      pass(cute.where(cute.gt(sum, 0.0), 1.0 / sum, 0.0))
      cute.when(cute.lt(top + row, S), function()
        local none = cute.eq(sum, 0.0)
        local log = cute.math.log(cute.where(none, 1.0, sum))
        LSE[{b, h, top + row}] = cute.where(none, -INF, most * scale + log)
      end)
    end

    local function correct()
      arch.setmaxregister_decrease(REGISTERS[2])
      local row = tid % ROWS
      local at_f, at_o = factors:make_consumer_state(),
        result:make_consumer_state()
      local function take(i, unused)
        factors:consumer_wait(at_f)
        local x = not unused and factor[{row, i}]
        arch.sync_warp()
        factors:consumer_release(at_f)
        at_f:advance()
        return x
      end
      -- Calls f(i, r) for each chunk r of the results of group i, when they are
      -- complete.
      local function each_chunk(i, f)
        local from, part = chunks(tcgen05.Ld32x32bOp(CHUNK), rows_of(tO, i, D))
        for n = 0, D // CHUNK - 1 do
          local r = cute.make_rmem_tensor({CHUNK, 1, 1}, cute.f32)
          cute.copy(from, part(n), r)
          arch.fence_view_async_tmem_load()
          f(n, r)
        end
      end
      for i = 0, GROUPS - 1 do take(i, true) end  -- true: no results so far
      for _ in cute.range(1, steps, 1, ONCE) do
        for i = 0, GROUPS - 1 do
          local x = take(i)
          result:consumer_wait(at_o)
          arch.tcgen05_after_thread_sync()
          local to, place = chunks(tcgen05.St32x32bOp(CHUNK),
                                   rows_of(tO, i, D))
          cute.when(arch.vote_any_sync(cute.ne(x, 1.0)), function()
            each_chunk(i, function(n, r)
              r:store(r:load() * x)
              cute.copy(to, r, place(n))
            end)
            arch.fence_view_async_tmem_store()
          end)
          arch.tcgen05_before_thread_sync()
          arch.sync_warp()
          result:consumer_release(at_o)
          at_o:advance()
        end
      end
      for i = 0, GROUPS - 1 do
        local x, at = take(i), first + i * ROWS + row
        result:consumer_wait(at_o)
        arch.tcgen05_after_thread_sync()
        each_chunk(i, function(n, r)
          local out = cute.make_rmem_tensor({CHUNK}, dtype)
          out:store((cute.make_tensor(r.iterator, {CHUNK}):load() * x)
            :to(dtype))
          cute.when(cute.lt(at, S), function()
            cute.autovec_copy(out, cute.local_tile(O(b, at, h, _), {CHUNK},
                                                   {n}))
          end)
        end)
        at_o:advance()
      end
    end

    cute.when(warp:lt(CORRECT), softmax)
    cute.when(warp:ge(CORRECT) & warp:lt(MULTIPLY), correct)
    cute.when(warp:ge(MULTIPLY), function()
      arch.setmaxregister_decrease(REGISTERS[3])
      cute.when(tid:eq(32 * MULTIPLY), multiply)
      cute.when(tid:eq(32 * LOAD), load)
    end)
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    cute.when(warp:eq(MULTIPLY), function() arch.dealloc_tmem(ptr, COLUMNS) end)
  end)

  -- Creates the TMA atom and the coordinates of q, k or v, a tensor (B,S,H,D).
  local function map(name, t)
    local s = layout[name](_, _, 0)
    return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(),
      cute.make_tensor(t.iterator, cute.select(t.layout,
        name == "v" and {3, 1, 2, 0} or {1, 3, 2, 0})), s,
      {cute.size(s, 0), cute.size(s, 1)})
  end
  return {kernel = kernel, block = 32 * WARPS, map = map}
end

harness.run(arg, {
  about = "Attention forward on tcgen05 and TMA (sm_100a).",
  dims = {{"b", "batches"}, {"s", "rows of q"}, {"t", "keys"},
          {"h", "heads of q"}, {"g", "heads of k and v, a divisor of h"},
          {"d", "elements of a head: 64 or 128"}},
  arch = "sm_100a", tile = {ROWS, ROWS, 64}, dtypes = {"bf16", "f16"},
  options = {{"--causal", "flag", help = "a row sees the keys up to its own"}},
  sim = {{1, 130, 130, 2, 1, 64}}, gpu = {{4, 4096, 4096, 16, 16, 128}},
  operands = function(p)
    if p.d ~= 64 and p.d ~= 128 then
      error(("--d %d: 64 or 128 elements of a head are possible"):format(p.d),
            0)
    end
    local q, k = {p.b, p.s, p.h, p.d}, {p.b, p.t, p.g, p.d}
    return {{"q", q}, {"k", k}, {"v", k}, {"o", q, out = true},
            {"lse", {p.b, p.h, p.s}, dtype = "f32", out = true}}
  end,
  make = function(p)
    local k = make(p.d, cute[p.dtype], p.opt.causal)
    local args = {n = 9}
    for i, name in ipairs {"q", "k", "v"} do
      args[2 * i - 1] = {name, function(t) return (k.map(name, t)) end}
      args[2 * i] = {name, function(t) return select(2, k.map(name, t)) end}
    end
    args[7], args[8], args[9] = "o", "lse", 1 / math.sqrt(p.d)
    return {kernel = k.kernel, block = k.block, args = args,
            grid = {tiles.count(p.s, ROWS * GROUPS), p.h, p.b}}
  end,
  pieces = function(p) return p.b * p.h * p.s end,
  reference = function(p, i) return oracle.attention(p, i, p.opt.causal) end,
  look = 1 << 12,
  tolerance = {bf16 = 2e-2, f16 = 3e-3, f32 = 1e-5},
  flops = function(p)
    local all = 4.0 * p.b * p.h * p.s * p.t * p.d
    return p.opt.causal and all / 2 or all
  end,
})
-- SPDX-License-Identifier: MIT
