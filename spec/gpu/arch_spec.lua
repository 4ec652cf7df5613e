-- Tests intrinsics, atomics and accesses with hints. Each must compile for the
-- architectures that support it. Its results on a GPU must equal the
-- simulator's bit for bit. The kernels are listed in a table, as in
-- kernels_spec.lua.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local raises = require "spec.support".raises
local T = require "spec.values"
local arch = cute.arch

-- Kernels to run on the simulator and on a GPU. Results must be equal in value;
-- all NaNs count as equal.
local CASES = {}
local function case(c)
  c.bound = 0
  CASES[#CASES + 1] = c
end

local function tensor(dtype, list)
  return kernels.tensor({#list}, dtype, function(i) return list[i + 1] end)
end

-- Adds a case of 512 threads (16 blocks of 32). Each thread writes one row with
-- the results of f for its inputs.
local function rows(name, from, to, columns, f, opts)
  opts = opts or {}
  case {name, grid = 16, block = 32, sm = opts.sm or 80,
    make = function()
      local x, y = T.pairs32()
      if from == "u64" then
        local w = T.words64()
        for i = 1, 512 do x[i], y[i] = w[(i - 1) % 64 + 1], T.random() end
      end
      if opts.values then x, y = opts.values() end
      return {tensor(from, x), tensor(from, y), cute.zeros({512, columns}, to)}
    end,
    kernel = function(a, b, o)
      local i = arch.block_idx() * 32 + arch.thread_idx()
      local r = f(a[i], b[i])
      assert(#r == columns, #r)
      for j, v in ipairs(r) do o[{i, j - 1}] = v end
    end}
end

for _, t in ipairs {"u32", "i32"} do
  rows("bits of " .. t, "u32", "u32", 12, function(a, b)
    a, b = a:to(cute[t]), b:to(cute[t])
    local r = {arch.popc(a), arch.clz(a), arch.brev(a), arch.bfind(a),
               arch.bfe(a, 3, 9), arch.bfe(a, 28, 20),
               arch.bfe(a, b & 63, b >> 8 & 63),
               arch.bfi(a, b, b & 63, b >> 8 & 63), arch.bfi(b, a, 4, 8),
               arch.prmt(a, b, b >> 3), arch.lop3(a, b, a << 1, 0xe8),
               arch.log2_of_pow2_int(core.cvt(1, cute.i32)
                 << (b & 31):to(cute.i32))}
    for i, v in ipairs(r) do r[i] = v:to(cute.u32) end
    return r
  end)
  rows("shifts and products of " .. t, "u32", "u32", 12, function(a, b)
    a, b = a:to(cute[t]), b:to(cute[t])
    local r = {arch.shf(a, b, b & 63), arch.shf(a, b, b & 63, "r"),
               arch.shf(a, b, b & 63, "clamp_left"),
               arch.shf(a, b, b & 63, "clamp_right"), arch.mul_hi(a, b),
               arch.mul_wide(a, b) >> 13,
               arch.mul_wide(a:to(cute[t:gsub("32", "16")]),
                             b:to(cute[t:gsub("32", "16")])),
               arch.mul24(a, b), arch.mul24(a, b, true),
               arch.mad24(a, b, b), arch.mad24(a, b, a, true),
               arch.mul_wide(a, b)}
    for i, v in ipairs(r) do r[i] = v:to(cute.u32) end
    return r
  end)
end

for _, t in ipairs {"bf16", "f16"} do
  rows("pairs of " .. t, "u32", "u32", 20, function(a, b)
    local r = {}
    for _, op in ipairs {"add", "sub", "mul"} do
      r[#r + 1] = arch[op .. "_packed_" .. t .. "x2"](a, b)
    end
    r[4] = arch["fma_packed_" .. t .. "x2"](a, b, a ~ b << 7)
    for _, words in ipairs {
      {arch["cvt_i4x8_to_" .. t .. "x8"](a)},
      {arch["cvt_u4x8_to_" .. t .. "x8"](a, 5)},
      {arch["cvt_i8x4_to_" .. t .. "x4"](b)},
      {arch["cvt_u8x4_to_" .. t .. "x4"](b)},
      {core.intrin("cvt." .. t .. "x2", 0, a:bitcast(cute.f32),
                   b:bitcast(cute.f32)),
       core.intrin("min." .. t .. "x2", 0, a, b),
       core.intrin("max." .. t .. "x2", 0, a, b)}} do
      for _, w in ipairs(words) do r[#r + 1] = w end
    end
    r[20] = arch["fma_packed_" .. t .. "x2"](a, b, {1, -2})
    return r
  end)
end

rows("numbers of 4 bits, saturated sums", "u32", "u32", 13, function(a, b)
  local r = {arch.cvt_f4e2m1x8_to_f16x8(a)}
  for _, words in ipairs {{arch.cvt_i4x8_to_mxf8x8(a)},
      {arch.cvt_i4_to_bf16_with_shuffle_impl(b, 8)},
      {arch.sext_unpacked_i4x4_to_i8x4(b),
       arch.add_sat_int(a:to(cute.i32), b:to(cute.i32)):to(cute.u32),
       arch.sub_sat_int(a:to(cute.i32), b:to(cute.i32)):to(cute.u32)}} do
    table.move(words, 1, #words, #r + 1, r)
  end
  return r
end)

for _, t in ipairs {"u64", "i64"} do
  rows("bits of " .. t, "u64", "u64", 9, function(a, b)
    a, b = a:to(cute[t]), b:to(cute[t])
    local n = b:to(cute.u32)
    local r = {arch.popc(a), arch.clz(a), arch.brev(a), arch.bfind(a),
               arch.bfe(a, n & 127, n >> 8 & 127),
               arch.bfi(a, b, n & 127, n >> 8 & 127), arch.mul_hi(a, b),
               a << (n & 63), a >> (n & 63)}
    for i, v in ipairs(r) do r[i] = v:to(cute.u64) end
    return r
  end)
end

rows("carries", "u32", "u32", 6, function(a, b)
  local s0, s1, s2 = arch.add_cc(a, b), arch.addc(b, a), arch.addc(a, 0)
  local d0, d1 = arch.sub_cc(a, b), arch.subc(b, a)
  arch.mad_cc(a, b, b)
  return {s0, s1, s2, d0, d1, arch.madc(a, b, a)}
end)

-- The inputs are bit patterns of f32, including NaNs, subnormals and zeros.
rows("floats: rules of max and min, rounding", "u32", "u32", 29,
  function(a, b)
    local x, y = a:bitcast(cute.f32), b:bitcast(cute.f32)
    local r = {}
    for _, opts in ipairs {{}, {nan = true}, {abs = true}, {ftz = true},
        {nan = true, abs = true}} do
      r[#r + 1] = arch.fmax(x, y, opts)
      r[#r + 1] = arch.fmin(x, y, opts)
    end
    for _, mode in ipairs {"rz", "rp", "rm"} do
      for _, op in ipairs {"add", "mul", "div"} do
        r[#r + 1] = cute[op](x, y, {rounding = mode})
      end
      for _, op in ipairs {"sqrt", "rcp"} do
        r[#r + 1] = core.intrin(op .. "." .. mode, 0, cute.abs(x))
      end
      r[#r + 1] = core.intrin("fma." .. mode, 0, x, y, x)
    end
    r[#r + 1] = arch.cvt_f32_tf32(x):bitcast(cute.f32)
    for i, v in ipairs(r) do
      -- PTX does not specify which NaN the operation returns.
      r[i] = cute.where(cute.isnan(v), 0x7fffffff, v:bitcast(cute.u32))
    end
    return r
  end, {sm = 86})

rows("classes, powers, remainders", "f32", "f32", 9, function(x, y)
  local function int(p) return p:to(cute.f32) end
  return {int(cute.isnan(x)), int(cute.isinf(x)), int(cute.isfinite(x)),
          int(cute.isnormal(x)), cute.fpowi(x, 3), cute.fpowi(x, -2),
          cute.rem(x, 2.5), cute.clamp(x, -1.0, 1.0),
          cute.add(x, y, {ftz = true})}
end, {values = function()
  local x, y = {}, {}
  for i = 1, 512 do
    x[i] = (T.random() / 2.0 ^ 31 - 1) * 8
    y[i] = (T.random() / 2.0 ^ 31 - 1) * 2.0 ^ -(i % 150)
  end
  return x, y
end})

rows("integers by name", "i32", "i32", 8, function(a, b)
  local small = a % 11 - 5
  local fast = cute.fast_divmod_create_divisor((b & 0xfffff) + 1)
  local n = a & 0x7fffffff
  return {cute.ipowi(small, 5), cute.ipowi(small, b % 9 - 3),
          cute.ipowi(small, -3), cute.rem(a >> 1, 7), n // fast, n % fast,
          cute.clamp(a, -100, 100), cute.absi(a >> 1)}
end, {values = function()
  local x, y = T.pairs32()
  for i = 1, #x do
    if x[i] >= 1 << 31 then x[i] = x[i] - (1 << 32) end
    if y[i] >= 1 << 31 then y[i] = y[i] - (1 << 32) end
  end
  return x, y
end})

rows("lanes: masks, votes, matches", "u32", "u32", 18, function(a, b)
  local v = a & 3
  local p = v:gt(1)
  local function u(x) return x:to(cute.u32) end
  local low, lane = cute.var(0, cute.u32), arch.lane_idx()
  local vote, best = cute.var(0, cute.u32), cute.var(0, cute.u32)
  cute.when(lane:lt(16), function()
    local m = 0xffff
    low:set(arch.match_sync(m, v) + (arch.match_sync(m, v & 0, "all") << 1))
    vote:set(arch.vote_ballot_sync(p, m) + u(arch.vote_uni_sync(p, m))
      + (u(arch.vote_any_sync(p, m)) << 17)
      + (u(arch.vote_all_sync(p, m)) << 18))
    best:set(arch.warp_redux_sync(b, "max", m)
      ~ arch.warp_redux_sync(b:to(cute.i32), "min", m):to(cute.u32)
      ~ arch.warp_redux_sync(b, "add", m) ~ arch.warp_redux_sync(b, "or", m)
      ~ arch.warp_redux_sync(b, "xor", m) ~ arch.warp_redux_sync(b, "and", m))
  end)
  return {arch.lanemask_lt(), arch.lanemask_le(), arch.lanemask_eq(),
          arch.lanemask_ge(), arch.lanemask_gt(), u(arch.vote_any_sync(p)),
          u(arch.vote_all_sync(p)), arch.vote_ballot_sync(p),
          u(arch.vote_uni_sync(p)), arch.match_sync(0xffffffff, v),
          arch.match_sync(0xffffffff, v, "all"),
          arch.match_sync(0xffffffff, v:to(cute.u64) << 40),
          arch.match_sync(0xffffffff, (v & 0):to(cute.u64), "all"),
          arch.activemask(), low:get(), vote:get(), best:get(),
          u(arch.make_warp_uniform(b))}
end)

rows("lanes: groups of a mask each", "u32", "u32", 6, function(a, b)
  local key = a & 3
  local m = arch.match_sync(0xffffffff, key)
  local first = arch.popc((m & -m) - 1)
  local f = (b & 0x7fffff | 0x3f000000):bitcast(cute.f32)
  local function redux(kind, opts)
    return arch.warp_redux_sync(f, kind, m, opts):bitcast(cute.u32)
  end
  return {arch.shuffle_sync(b, first, 32, m),
          arch.warp_redux_sync(b, "add", m),
          arch.vote_ballot_sync((b & 1):eq(1), m), redux "fmax",
          redux "fmin", redux("fmax", {abs = true, nan = true})}
end)

rows("lanes: shuffles and reductions", "u32", "u32", 13, function(a, b)
  local half, lane = cute.var(0, cute.u32), arch.lane_idx()
  cute.when(lane:ge(16), function()
    local m = 0xffff0000
    half:set(arch.shuffle_sync(a, 3, 16, m)
      ~ arch.shuffle_sync_up(a, 2, 8, m) << 1
      ~ arch.shuffle_sync_down(a, 5, 16, m) << 2
      ~ arch.shuffle_sync_bfly(a, 6, 8, m) << 3)
  end)
  local wide = a:to(cute.u64) << 32 | b:to(cute.u64)
  local r = {half:get()}
  for _, kind in ipairs {"idx", "up", "down", "bfly"} do
    for _, clamp in ipairs {31, 0, 0x1807} do
      local w = arch.shuffle_sync_op(wide, (b & 31), nil, clamp, kind)
      -- A lane whose source lane is outside its segment keeps its own value.
      r[#r + 1] = (w >> 32):to(cute.u32) ~ w:to(cute.u32) << 1
    end
  end
  return r
end)

case {"atomics", block = 128, grid = 4, sm = 80,
  make = function()
    local x = {}
    for i = 1, 512 do x[i] = T.random() & 0xffff end
    local t = {tensor("i32", x)}
    for _, type in ipairs {"i32", "u32", "i64", "u64"} do
      t[#t + 1] = tensor(type, {0, 99999, 5, -1 & 0xffff, 0, 0, 1, 1})
    end
    t[#t + 1] = tensor("f32", {0, -1, 99999, 7})
    return t
  end,
  kernel = function(x, ...)
    local t = arch.block_idx() * 128 + arch.thread_idx()
    local v, last = x[t], {...}
    local f = table.remove(last)
    for k, o in ipairs(last) do
      local y = v:to(o.element_type)
      local p = o.iterator
      local opts = k % 2 == 0 and {sem = "relaxed", scope = "gpu"} or nil
      arch.atomic_add(p, y, opts)
      arch.atomic_min(p + 1, y, opts)
      arch.atomic_max(p + 2, y, opts)
      arch.atomic_and(p + 3, y | 0xff, opts)
      arch.atomic_or(p + 4, y, opts)
      arch.atomic_xor(p + 5, y, opts)
      arch.atomic_exch(p + 6, y & 0, opts)
      arch.atomic_cas(p + 7, {cmp = y * 0 + 1, val = y & 0})
    end
    -- The sums are below 2^24, so they are exact in any order.
    local y = (v & 0x7fff):to(cute.f32)
    arch.red(f.iterator, y, {op = "add"})
    arch.atomic_fmax(f.iterator + 1, y)
    arch.atomic_fmin(f.iterator + 2, y)
    arch.atomic_exch(f.iterator + 3, y * 0)
  end}

case {"shared atomics, loads and stores with hints", block = 64, sm = 80,
  make = function()
    local x = {}
    for i = 1, 64 do x[i] = T.random() & 0xffff end
    return {tensor("i32", x), cute.zeros({64, 8}, "i32"),
            cute.zeros({64}, "bf16")}
  end,
  kernel = function(x, o, h)
    local t = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))
    local b = cute.make_smem_tensor(cute.u8, cute.make_layout(64))
    s[t] = core.cvt(0, cute.i32)
    arch.sync_threads()
    arch.atomic_add(s.iterator + t % 8, x[t])
    arch.atomic_max(s.iterator + (t % 8 + 8), x[t],
                    {sem = "acq_rel", scope = "cta"})
    arch.atomic_cas(s.iterator + 20, {cmp = 0, val = 6})
    arch.sync_threads()
    local r = {s[t]}
    for _, cop in ipairs {"ca", "cg", "cs", "cv", "lu"} do
      r[#r + 1] = arch.load(x.iterator + t, nil, {cop = cop})
    end
    r[#r + 1] = arch.load(x.iterator + t, nil, {sem = "acquire"})
    r[#r + 1] = arch.load(x.iterator + t, cute.u32,
      {level1_eviction_priority = "evict_last"}):to(cute.i32)
    for j, v in ipairs(r) do
      arch.store(o.iterator + (t * 8 + (j - 1)), v,
        ({{cop = "wb"}, {cop = "cg"}, {cop = "cs"}, {cop = "wt"},
          {sem = "relaxed"}, {sem = "release", scope = "sys"},
          {level1_eviction_priority = "evict_first"}, {}})[j])
    end
    arch.store(b.iterator + t, (t * 3):to(cute.u8), {sem = "relaxed"})
    local byte = arch.load(b.iterator + t, nil, {sem = "relaxed"})
    arch.store(h.iterator + t, byte:to(cute.bf16), {cop = "wt"})
  end}

case {"barriers by traced numbers", block = 128, grid = 2, sm = 75,
  make = function() return {cute.zeros({256}, "i32")} end,
  kernel = function(o)
    local tid = arch.thread_idx()
    local own = cute.local_tile(o, {128}, {(arch.block_idx())})
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout {128})
    local pair = arch.warp_idx() // 2
    for k in cute.range(6) do
      s[tid] = tid * 3 + k
      arch.barrier(pair * 7 + k + 1, 64)
      own[tid] = own[tid] * 5 + s[tid ~ 32]
      arch.barrier(pair * 7 + k + 2, 64)
    end
    cute.return_if(pair:eq((arch.block_idx())))
    arch.barrier(pair * 7 + 1, 64)
    own[tid] = own[tid] + 1
  end}

case {"structures and a pipeline of cp.async", block = 32, sm = 80,
  make = function()
    local x = {}
    for i = 1, 128 * 6 do x[i] = i % 97 end
    return {tensor("f32", x), cute.zeros({32}, "f32")}
  end,
  kernel = function(A, O)
    local t = arch.thread_idx()
    local pipe = cute.pipeline.PipelineCpAsync {num_stages = 3}
    local S = cute.struct {{"pad", cute.u8, 3},
                           {"tile", cute.f32, 128 * 3, align = 16}}
    local mem = cute.utils.SmemAllocator():allocate(S)
    local s = cute.make_tensor(mem.tile, cute.make_layout({128, 3}, {1, 128}))
    local g = cute.make_tensor(A.iterator,
                               cute.make_layout({128, 6}, {1, 128}))
    local atom = cute.make_copy_atom(
      "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", cute.f32)
    local write = pipe:make_producer_state()
    local read = pipe:make_consumer_state()
    local function fill(k)
      pipe:producer_acquire(write)
      cute.when(cute.lt(k, 6), function()
        cute.copy(atom, cute.local_tile(g(cute._, k), {4}, {t}),
                  cute.local_tile(s(cute._, write.index), {4}, {t}))
      end)
      pipe:producer_commit(write)
      write:advance()
    end
    for k = 0, 1 do fill(k) end
    local sum = core.cvt(0.0, cute.f32)
    for k in cute.range(6) do
      pipe:consumer_wait(read)
      for i = 0, 3 do sum = sum + s[{(t + 9) % 32 * 4 + i, read.index}] end
      pipe:consumer_release(read)
      read:advance()
      fill(k + 2)
    end
    pipe:producer_tail(write)
    O[t] = sum
  end}

---------------------------------------------------------------------------

local ARCHS = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}

describe("names", function()
  for _, c in ipairs(CASES) do
    it("run on the simulator and compile: " .. c[1], function()
      return kernels.check(c, ARCHS) or pending "needs NVRTC"
    end)
  end

  it("that an architecture lacks are rejected by name", function()
    local k = cute.kernel("k", function(o)
      o[0] = arch.aggr_smem_size()
    end)
    raises("needs sm_90 or newer, the target is sm_80", function()
      k(cute.zeros({1}, "i32")):trace {block = 1}:cuda "sm_80"
    end)
  end)

  it("of special registers compile too", function()
    local k = cute.kernel("k", function(o)
      local r = {arch.clock(), arch.clock64(), arch.globaltimer(),
                 arch.globaltimer_lo(), arch.gridid(), arch.nsmid(),
                 arch.nwarpid(), arch.physical_warp_id(), arch.smid(),
                 arch.dynamic_smem_size(), arch.total_smem_size(),
                 arch.aggr_smem_size()}
      for j, v in ipairs(r) do o[j - 1] = v:to(cute.i32) end
      cute.printf("{} %5.2f\n", o[0], o[1]:to(cute.f32))
      cute.testing.assert_(o[2]:ne(-5), "no")
    end)
    local program = k(cute.zeros({12}, "i32")):trace {block = 1}
    return kernels.compiles(program, {"sm_90a", "sm_100a", "sm_120a"}) or
      pending "needs NVRTC"
  end)
end)

describe("names on a GPU #gpu", function()
  for _, c in ipairs(CASES) do
    it("give what the simulator gives: " .. c[1], function()
      kernels.agree(c)
    end)
  end

  it("run inline PTX and the machine's registers", function()
    local o = cute.zeros({32, 8}, "i32")
    local call = cute.kernel("k", function(out)
      T.inline_ptx(out)
      local c0, c1 = arch.clock(), arch.clock()
      local r = {(c1 - c0):gt(0):to(cute.i32), arch.nsmid(),
                 arch.dynamic_smem_size(), arch.smid()}
      for j, v in ipairs(r) do out[{arch.lane_idx(), j + 3}] = v end
    end)(o)
    assert(call:launch {grid = 1, block = 32, device = "gpu"})
    for t = 0, 31 do
      assert.same({math.max(t, 5), t + 1, t * 2, t < 4 and t or 99, 1},
        {o(t, 0), o(t, 1), o(t, 2), o(t, 3), o(t, 4)})
      assert.is_true(o(t, 5) > o(t, 7) and o(t, 6) >= 0)
    end
  end)

  it("are timed", function()
    local k = cute.kernel("k", function(out)
      out[arch.thread_idx()] = arch.thread_idx()
    end)
    local run_it = assert(cute.compile(k, cute.zeros({32}, "i32"),
      {grid = 1, block = 32, device = "gpu"}))
    local us, unit = cute.testing.benchmark(run_it, {iterations = 20})
    assert.equal("us", unit)
    assert.equal("float", math.type(us))
    local info = assert(cute.utils.HardwareInfo())
    assert.is_true(info:get_device_multiprocessor_count() > 0)
  end)
end)
-- SPDX-License-Identifier: MIT
