-- Faults that spec/watch/mutants_spec.lua plants in scripts and kernels for
-- Blackwell, each at one place of the text: tensor memory, commits, fences,
-- pairs of CTAs, cluster launch control, scale factors.
local cute = require "cute"
local hopper = require "spec.hopper"
local support = require "spec.support"

local NONE = ""
local PTR = "ptr + BN, nil, sf"
local B_FACTORS = "factors + 4 * of_a.columns"
local COLUMNS = "local P_AT, O_AT, COLUMNS = 2 * KEYS, 3 * KEYS, 512"
local ALLOC = "arch.alloc_tmem(PARTS * BN, address)"
local SEVEN = "consumer_group = Group(Agent.Warp, 7)"

-- Kinds that the first report of a run can have. In the rows below, the kind
-- "note" means a report that has only notes.
local TMEM, DEAD, RACE = "tensor-memory", "deadlock", "race"
local FLIES, BARRIER, LEFT = "async-in-flight", "mbarrier", "exited-block"
local LOADED = "used before the load from tensor memory in line %d+ has "
  .. "completed %[in%-flight%]"

-- Returns a fault that removes the text.
local function without(text, kind, nth)
  return {{text, NONE}, nth or 1, kind}
end

-- Returns a fault that replaces the text.
local function changed(text, to, kind, nth)
  return {{text, to}, nth or 1, kind}
end

local ATTENTION = {"attention_sm100", device = "sim:sm_100a", seed = 3,
  without("scores:producer_acquire(at_s)", TMEM),
  without("scores:producer_commit(at_s)", DEAD),
  without("powers:consumer_wait(at_p)", BARRIER),
  without("result:producer_acquire(at_o)", TMEM),
  without("powers:consumer_release(at_p)", DEAD),
  without("result:producer_commit(at_o)", DEAD),
  changed("cute.gt(j, 0)", "true", TMEM),
  changed("ACCUMULATE, false", "ACCUMULATE, true", TMEM),
  without("k:consumer_wait(at_k)", FLIES),
  without("k:consumer_wait(at_k)", RACE, 2),
  without("v:consumer_wait(at_v)", RACE),
  without("q:consumer_wait(at_q)", FLIES),
  without("done(k, at_k)", LEFT), without("done(v, at_v)", LEFT),
  without("scores:consumer_wait(at_s)", TMEM),
  without("scores:consumer_release(at_s)", DEAD),
  without("powers:producer_commit(at_p)", DEAD),
  without("powers:producer_acquire(at_p)", TMEM),
  without("arch.fence_view_async_tmem_store()", TMEM),
  without("arch.fence_view_async_tmem_store()", TMEM, 2),
  without("arch.fence_view_async_tmem_load()", LOADED),
  without("arch.fence_view_async_tmem_load()", LOADED, 2),
  without("result:consumer_wait(at_o)", TMEM),
  without("result:consumer_wait(at_o)", TMEM, 2),
  without("result:consumer_release(at_o)", DEAD),
  without("factors:consumer_wait(at_f)", "uninitialised"),
  without("factors:producer_acquire(at_f)", BARRIER),
  changed(COLUMNS, "local P_AT, O_AT, COLUMNS = KEYS, 3 * KEYS, 512", TMEM),
  changed(COLUMNS, "local P_AT, O_AT, COLUMNS = 2 * KEYS, 2 * KEYS, 512", TMEM),
  changed(COLUMNS, "local P_AT, O_AT, COLUMNS = 2 * KEYS, 3 * KEYS, 256", TMEM),
  changed("tid:eq(32 * MULTIPLY)", "warp:eq(MULTIPLY)", TMEM),
  changed("warp:eq(MULTIPLY), function() arch.dealloc_tmem",
          "warp:eq(LOAD), function() arch.dealloc_tmem", TMEM),
  without("arch.sync_threads()", TMEM),
  without("pipeline.agent_sync()", BARRIER),
  without("at_o:advance()", DEAD), without("at_p:advance()", DEAD),
  without("at_s:advance()", DEAD), without("arch.sync_warp()", RACE),
}

local CLC = {"gemm_clc", device = "sim:sm_100a", size = {300, 264, 136},
  seed = 3,
  without("answers:consumer_wait(read)", FLIES),
  without("answers:consumer_release(read)", DEAD),
  without("answers:producer_acquire(write)", DEAD),
  without("blocks:advance_to_next_work(answers:producer_get_barrier(write))",
          DEAD),
  changed(SEVEN, "consumer_group = Group(Agent.Warp, 6)", FLIES),
  changed(SEVEN, "consumer_group = Group(Agent.Warp, 8)", BARRIER),
  changed("arch.alloc_smem(cute.i32, 4, 16)", "arch.alloc_smem(cute.i32, 4, 4)",
          "misaligned"),
  without("read:advance()", BARRIER), without("arch.sync_warp()", RACE),
  without("write:advance()", RACE, 2),
  without("sums:consumer_wait(part)", TMEM),
  without("sums:consumer_release(part)", DEAD),
  without("arch.fence_view_async_tmem_load()", LOADED),
  without("pipe:consumer_wait(read)", FLIES),
  without("pipe:consumer_release(read)", DEAD),
  changed(ALLOC, "arch.alloc_tmem(BN, address)", TMEM),
  changed(ALLOC, "arch.alloc_tmem(192, address)",
          "192 columns; a power of two from 32 to 512 is needed"),
  changed("valid = next_work.is_valid_tile",
          "valid = next_work.is_valid_tile & warp:ne(0)", DEAD),
}

local PAIR = {"gemm_2cta", device = "sim:sm_100a", size = {300, 136, 200},
  seed = 3,
  changed("CtaGroup.TWO", "CtaGroup.ONE", "no instruction of shape"),
  changed("CtaGroup.TWO", "CtaGroup.ONE", DEAD, 2),
}

local FACTORS = {"gemm_nvf4", file = "kernels/gemm_block_scaled",
  device = "sim:sm_100a", size = {40, 24, 1152}, seed = 3,
  without("sums:producer_commit(sums:make_producer_state())", DEAD),
  without("copy_a(i)", TMEM), without("pipe:consumer_release(read)", DEAD),
  changed("BN + of_a.columns + of_b.columns", "BN", TMEM),
  changed(PTR, "ptr + (BN - 16), nil, sf", TMEM),
  changed(B_FACTORS, "factors", "note"),
  changed(B_FACTORS, "factors + 2", TMEM),
  changed("+ tma_b.tx_bytes + tma_fb.tx_bytes", "+ tma_b.tx_bytes", DEAD),
  changed("copy_b(i)", "copy_b((i + 1) % stages)", FLIES),
  changed("copy_a(i)", "copy_a(0)", FLIES),
  changed("tFB(_, _, _, i)}", "tFB(_, _, _, stages - 1 - i)}", TMEM),
}

-- scale factors of wrong rows, a wrong part of K, or the wrong operand
local PAIRING = {"gemm_nvf4", file = "kernels/gemm_block_scaled",
  device = "sim:sm_100a", size = {140, 136, 640}, seed = 3,
  changed("{BM, BK}, {bm, _}", "{BM, BK}, {bn, _}", "note"),
  changed("{BN, BK}, {bn, _}", "{BN, BK}, {bm, _}", "note"),
  changed("local_tile(cFA,", "local_tile(cute.domain_offset({0, BK}, cFA),",
          "note"),
  changed("tFB(_, _, _, i)}", "tFA(_, _, _, i)}", "note"),
  changed("loader(tma_fb, sFB, thr:partition_B(\n          "
    .. "cute.local_tile(cFB, {BN, BK}, {bn, _}",
    "loader(tma_fa, sFB, thr:partition_B(\n          "
    .. "cute.local_tile(cFA, {BN, BK}, {bm, _}", "note"),
}

-- Returns the report of kernels/gemm_sm100 in a small configuration.
local function launch(o)
  return function(m)
    local given = o()
    local gemm = require "kernels.gemm_sm100"(given)
    local D = cute.make_tensor(hopper.matrix(300, 304).iterator,
                               cute.make_layout({300, 300}, {304, 1}))
    local A, B, factors = hopper.matrix(300, 200, 1), hopper.matrix(300, 200, 2)
    if given.scales then
      factors = {}
      local function operand(seed)
        local q, s = cute.ops.convert(cute.randn({300, 640}, cute.f32,
          {seed = seed}), "nvfp4", {tiled = true, device = "sim"})
        factors[seed] = cute.make_tensor(s.iterator,
                                         cute.make_layout(cute.size(s)))
        return q
      end
      A, B = operand(1), operand(2)
    end
    return support.report(gemm.prepare(A, B, D, {device = m.device, sms = 2,
      seed = 1, factors = factors}):launch {faults = "return"})
  end
end

local PLAIN = launch(function()
  return {tile = {128, 64, 64}, stages = 2}
end)
local NVFP4 = launch(function()
  return {tile = {128, 128, 256}, stages = 2, dtype = cute.e2m1,
          d_dtype = cute.bf16, scales = {cute.e4m3, 16}}
end)

local KERNEL = {"gemm_sm100", file = "kernels/gemm_sm100/kernel",
  device = "sim:sm_100a", launch = PLAIN,
  changed("arch.dealloc_tmem(ptr, o.tmem)", "arch.dealloc_tmem(ptr, 32)", TMEM),
  changed("arch.dealloc_tmem(ptr, o.tmem)", "arch.sync_warp()", TMEM),
  without("arch.sync_threads()", TMEM),
  without("sums:producer_commit(part)", DEAD),
  without("pipe:consumer_release(read)", DEAD),
  without("pipe:consumer_wait(read)", FLIES),
  without("sums:producer_acquire(part)", TMEM),
  changed("core.gt(k, 0)", "core.ge(k, 0)", TMEM),
  changed("core.gt(k, 0)", "false", "note"),
  without("sums:consumer_wait(part)", TMEM),
  without("arch.fence_view_async_tmem_load()", LOADED),
  without("part:advance()", TMEM), without("part:advance()", DEAD, 2),
  without("arch.tcgen05_after_thread_sync()", "note", 3),
  changed("0, 0, part.index)", "0, 0, 1 - part.index)", TMEM),
  changed("tid:eq(32 * ISSUER)", "warp:eq(ISSUER)", TMEM),
  changed("cute.when(warp:eq(ISSUER), function() arch.dealloc",
          "cute.when(warp:eq(LOADER), function() arch.dealloc", TMEM),
  without("pipeline.agent_sync(o.clustered)", BARRIER),
}

local SCALED = {"gemm_sm100", file = "kernels/gemm_sm100/kernel",
  device = "sim:sm_100a", launch = NVFP4,
  without("bytes = bytes + f.atom.tx_bytes", FLIES),
  changed("factors.copy(read.index)", "factors.copy(1 - read.index)", FLIES),
  without("factors.copy(read.index)", TMEM), without("copy_b(stage)", TMEM),
  changed("x.ptr + o.parts * o.tile[2]", "x.ptr + (o.tile[2] - 32)", TMEM),
  changed("at + 4 * a.columns", "at", "note"),
  changed("at + 4 * a.columns", "at + 2 * a.columns", "note"),
  changed("core.eq(n, last)", "core.eq(n, 0)", TMEM),
}

local LAYOUT = {"gemm_sm100", file = "kernels/gemm_sm100/scale_factors",
  device = "sim:sm_100a", launch = NVFP4,
  changed("cute.make_layout(stages, 4 * columns)",
          "cute.make_layout(stages, 2 * columns)", "note"),
  changed("{0, _, at}", "{0, _, 0}", "note"),
  changed("{0, _, at}", "{0, _, at + 1}", "note"),
  changed("{1, WORDS, WORDS * shape[2]}", "{1, WORDS, WORDS}", "note"),
}

return {ATTENTION, CLC, PAIR, FACTORS, PAIRING, KERNEL, SCALED, LAYOUT}
-- SPDX-License-Identifier: MIT
