-- Tests elements of less than a byte, and memory that is viewed with another
-- type. The simulator's results must equal those of the emitted text, compiled
-- for the host. NVRTC must accept all emitted text.
local core = require "cute.core"
local units = require "spec.hardware.units"
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local all = cute._

local N, THREADS = 24, 4  -- words that a thread reads and writes; threads
local ARCHS = {"sm_80", "sm_100a"}

-- Returns `bytes` bytes: a host tensor's elements, packed little-endian.
local function packed(t, count, bytes)
  local bits, out, acc, have = t.dtype.bits, {}, 0, 0
  for i = 0, count - 1 do
    acc = acc | core.to_bits(t.dtype, t[i]) << have
    have = have + bits
    while have >= 8 do
      out[#out + 1] = string.char(acc & 255)
      acc, have = acc >> 8, have - 8
    end
  end
  if have > 0 then out[#out + 1] = string.char(acc & 255) end
  local s = table.concat(out)
  return s .. ("\0"):rep(bytes - #s)
end

local function compiles(call)
  local program = call:trace {block = THREADS}
  for _, arch in ipairs(ARCHS) do kernels.compiled(program, arch) end
end

local SPECIAL = {0, -0.0, 0.25, 0.26, 0.5, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.5,
  6, 7, 7.25, 28, 29, 1e9, -0.3, -3, -1e30, 1 / 0, -1 / 0, 0 / 0}

local on_gpu = false  -- true while a spec tagged "#gpu" runs

-- Asserts that the simulator's results, o and g, equal the GPU's.
local function same_on_gpu(func, i, f, o, g)
  local count = cute.size(i)
  local o2, g2 = cute.zeros({count}, i.dtype), cute.zeros({N}, cute.f32)
  assert(cute.kernel("k", func)(i, f, o2, g2):launch {grid = 1,
    block = THREADS, device = "gpu"})
  for k = 0, count - 1 do
    assert.equal(core.to_bits(o.dtype, o[k]), core.to_bits(o.dtype, o2[k]),
                 ("o[%d]"):format(k))
  end
  for k = 0, N - 1 do
    assert.equal(core.to_bits(cute.f32, g[k]), core.to_bits(cute.f32, g2[k]),
                 ("g[%d]"):format(k))
  end
  return i, f, o, g, count
end

-- Runs f(i, f, o, g) on the simulator and as emitted text on the host, and
-- compares the results. i and o are tensors of `dtype`, the other two of f32.
local function both(dtype, ctype, func, seed)
  local count = N * 32 // dtype.bits
  local i, o = cute.zeros({count}, dtype), cute.zeros({count}, dtype)
  local f, g = cute.zeros({N}, cute.f32), cute.zeros({N}, cute.f32)
  local state = seed or 1
  for k = 0, count - 1 do
    state = (state * 1103515245 + 12345) & 0x7fffffff
    local code = (state >> 8) & ((1 << math.min(dtype.bits, 32)) - 1)
    if dtype.is_float and dtype.bits >= 16 then
      i[k] = (code % 2001 - 1000) / 8
    else
      i[k] = core.from_bits(dtype, code)
    end
  end
  for k = 0, N - 1 do f[k] = SPECIAL[k + 1] end
  local call = cute.kernel("k", func)(i, f, o, g)
  call:launch {grid = 1, block = THREADS, device = "sim:sm_75"}
  if on_gpu then return same_on_gpu(func, i, f, o, g) end
  compiles(call)
  local text = call:trace({block = THREADS}).fn:emit(75)
  local out = kernels.on_host(text, {"-fno-strict-aliasing", "-DN=" .. N,
    "-DTHREADS=" .. THREADS, "-DM=" .. N, "-DINT_ARG=" .. ctype},
    packed(i, count, 4 * N) .. packed(f, N, 4 * N))
  if out then
    local want = packed(o, count, 4 * N)
    if want ~= out:sub(1, 4 * N) then
      assert.equal((want:gsub(".", function(c)
        return ("%02x"):format(c:byte())
      end)), (out:sub(1, 4 * N):gsub(".", function(c)
        return ("%02x"):format(c:byte())
      end)), text)
    end
    for k = 0, N - 1 do
      local v = ("<f"):unpack(out, 4 * N + 4 * k + 1)
      assert.is_true(support.same(v, g[k]),
        ("g[%d]: %s on the simulator, %s\n%s"):format(k, g[k], v, text))
    end
  end
  return i, f, o, g, count
end

local NARROW = {"b1", "u4", "i4", "e2m1", "e2m3", "e3m2"}

local function elements(device)
  for number, name in ipairs(NARROW) do
    local dtype = cute[name]

    it(name .. " are loaded and stored one by one" .. support.long(number),
       function()
      local count = N * 32 // dtype.bits
      local i, _f, o, g = both(dtype, "unsigned char", function(mI, mF, mO, mG)
        local tid = cute.arch.thread_idx()
        for k in cute.range(count // THREADS) do
          local at = k * THREADS + tid
          mO[count - 1 - at] = mI[at]
        end
        for k = 0, N // THREADS - 1 do
          local at = k * THREADS + tid
          mG[at] = mI[at]:to(cute.f32) + 0 * mF[0]
        end
      end)
      for k = 0, count // THREADS * THREADS - 1 do
        assert.equal(i[k], o[count - 1 - k])
      end
      for k = 0, N - 1 do assert.equal(i[k], g[k]) end
    end)

    it(name .. " are what floats are rounded to" .. support.long(number),
       function()
      local _i2, f, o = both(dtype, "unsigned char", function(mI, mF, mO, mG)
        local tid = cute.arch.thread_idx()
        for k = 0, N // THREADS - 1 do
          local at = k * THREADS + tid
          mO[at] = mF[at]:to(dtype)
          mG[at] = mI[at]:to(cute.f32)
        end
      end)
      for k = 0, N - 1 do
        local bits = units.float_to_bits(dtype, core.to_bits(cute.f32, f[k]))
        assert.equal(bits, core.to_bits(dtype, o[k]), "of " .. f[k])
      end
    end)

    it(name .. " go through registers and shared memory", function()
      local count = N * 32 // dtype.bits // 32 * 32
      local i = cute.zeros({count}, dtype)
      local o = cute.zeros({count}, dtype)
      for k = 0, count - 1 do
        i[k] = core.from_bits(dtype, k * 7 % (1 << dtype.bits))
      end
      local call = cute.kernel("k", function(mI, mO)
        local s = cute.make_smem_tensor(dtype, {count})
        local r = cute.make_rmem_tensor({count}, dtype)
        cute.autovec_copy(mI, s)
        cute.arch.sync_warp()
        for k = 0, count - 1 do r[k] = s[count - 1 - k] end
        cute.autovec_copy(r, s)
        cute.autovec_copy(s, mO)
      end)(i, o)
      assert(call:launch {grid = 1, block = 1, device = device})
      if not on_gpu then compiles(call) end
      for k = 0, count - 1 do assert.equal(i[count - 1 - k], o[k]) end
    end)
  end
end

local function widths(device)
  for _, name in ipairs {"b1", "u4", "e2m1"} do
    local dtype = cute[name]
    it(name .. " are moved by whole bytes, 8 to 128 bits", function()
      for _, bits in ipairs {8, 16, 32, 64, 128} do
        local n = bits // dtype.bits
        local i = cute.zeros({32, n}, dtype)
        local o = cute.zeros({32, n}, dtype)
        for t = 0, 31 do
          for v = 0, n - 1 do
            i[{t, v}] = core.from_bits(dtype,
              (t * 5 + v * 3) % (1 << dtype.bits))
          end
        end
        local atom = cute.make_copy_atom("UniversalCopy", dtype, bits)
        local copy = cute.make_tiled_copy(atom, cute.make_layout {32, 1},
                                          cute.make_layout {1, n})
        local call = cute.kernel("k", function(mI, mO)
          local thr = copy:get_slice(cute.arch.thread_idx())
          local s = cute.make_smem_tensor(dtype,
            cute.make_layout({32, n}, {n, 1}))
          local r = cute.make_fragment_like(thr:partition_S(mI))
          cute.copy(copy, thr:partition_S(mI), r)
          cute.copy(copy, r, thr:partition_D(s))
          cute.copy(copy, thr:partition_S(s), r)
          cute.copy(copy, r, thr:partition_D(mO))
        end)(i, o)
        local report = assert(call:launch {grid = 1, block = 32,
                                           device = device})
        for t = 0, 31 do
          for v = 0, n - 1 do assert.equal(i[{t, v}], o[{t, v}]) end
        end
        for _, line in ipairs(on_gpu and {} or report.lines) do
          -- an access by 32 lanes has 32 * bits bits, or 4 * bits bytes
          assert.equal(line.count * 4 * bits, line.bytes)
        end
        local p = call:trace {block = 32}
        local ok = p:compile "sm_80"
        if ok then assert.is_truthy(ok.cubin) end
      end
    end)
  end

  it("are integers that wrap at their width", function()
    for _, case in ipairs {{"i4", -8, 7}, {"u4", 0, 15}} do
      local dtype, lo, hi = cute[case[1]], case[2], case[3]
      local i, _f, o, g, count = both(dtype, "unsigned char",
        function(mI, _mF, mO, mG)
          local tid = cute.arch.thread_idx()
          local n = N * 8
          for k in cute.range(n // THREADS) do
            local at = k * THREADS + tid
            local a, b = mI[at], mI[(at + 1) % n]
            mO[at] = cute.where(a:lt(b), a * b + 3, cute.max(a, b) - a)
            cute.when(at:lt(N), function()
              mG[at] = (a + b):to(cute.f32)
            end)
          end
        end)
      local function wrap(x) return (x - lo) % (hi - lo + 1) + lo end
      for k = 0, count - 1 do
        local a, b = i[k], i[(k + 1) % count]
        local want = a < b and wrap(wrap(a * b) + 3)
                     or wrap(math.max(a, b) - a)
        assert.equal(want, o[k])
        if k < N then assert.equal(wrap(a + b), g[k]) end
      end
    end
  end)

  it("ue8m0 is the nearest power of two #long", function()
    local _i, f, o = both(cute.ue8m0, "unsigned char",
      function(mI, mF, mO, mG)
        local tid = cute.arch.thread_idx()
        for k = 0, N // THREADS - 1 do
          local at = k * THREADS + tid
          mO[at] = mF[at]:to(cute.ue8m0)
          mG[at] = mI[at]:to(cute.f32)
        end
      end)
    for k = 0, N - 1 do
      assert.equal(core.to_bits(cute.ue8m0, f[k]),
                   core.to_bits(cute.ue8m0, o[k]), "of " .. f[k])
    end
    assert.equal(128, core.to_bits(cute.ue8m0, 1.75))
    assert.equal(128, core.to_bits(cute.ue8m0, -2.5))
  end)
end

describe("elements below a byte", function()
  elements "sim:sm_80"
  widths "sim:sm_80"

  it("are checked: bounds, undefined elements, races", function()
    local function kinds(f, ...)
      local r = support.report(cute.kernel("k", f)(...):launch {grid = 1,
        block = 32, device = "sim:sm_80", faults = "return"})
      local list = {}
      for k, x in ipairs(r.reports) do list[k] = x.kind end
      return table.concat(list, " ")
    end
    local t = cute.zeros({40}, cute.u4)
    assert.equal("out-of-bounds", kinds(function(m)
      m[cute.arch.thread_idx() + 9] = m[0]
    end, t))
    assert.equal("uninitialised", kinds(function(m)
      local s = cute.make_smem_tensor(cute.u4, {64})
      m[cute.arch.thread_idx()] = s[cute.arch.thread_idx()]
    end, t))
    -- Two lanes write neighbouring elements of the same byte, which is no race.
    assert.equal("", kinds(function(m)
      local s = cute.make_smem_tensor(cute.u4, {64})
      local tid = cute.arch.thread_idx()
      s[tid] = m[tid]
      cute.arch.sync_warp()
      m[tid] = s[31 - tid]
    end, t))
    assert.truthy(kinds(function(m)
      local s = cute.make_smem_tensor(cute.u4, {64})
      local tid = cute.arch.thread_idx()
      s[tid] = m[tid]
      m[tid] = s[31 - tid]
    end, t):find "race")
  end)
end)

local function other_names(device)
  local function words(dtype, ctype, name, func)
    it(name .. " #long", function() both(dtype, ctype, func, 7) end)
  end

  words(cute.i32, "int", "global memory as bytes, halves and bits",
    function(mI, mF, mO, mG)
      local tid = cute.arch.thread_idx()
      local bytes = cute.recast_tensor(mI, cute.u8)
      local halves = cute.recast_tensor(mO, cute.i16)
      local bits = cute.recast_tensor(mI, cute.b1)
      local floats = cute.recast_tensor(mF, cute.bf16)
      for k = 0, N // THREADS - 1 do
        local at = k * THREADS + tid
        halves[2 * at] = bytes[4 * at + 1]:to(cute.i16) - 200
        halves[2 * at + 1] = floats[2 * at + 1]:to(cute.f32):bitcast(cute.i32)
          :to(cute.i16)
        mG[at] = bits[32 * at + 5]:to(cute.f32) +
                 bits[32 * at + 31]:to(cute.f32) * 2
      end
    end)

  words(cute.i32, "int", "registers of f32 as bf16, of bf16 as f32",
    function(mI, mF, mO, mG)
      local tid = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({N // THREADS}, cute.f32)
      for k = 0, N // THREADS - 1 do r[k] = mF[k * THREADS + tid] end
      local h = cute.recast_tensor(r, cute.bf16)
      for k = 0, N // THREADS - 1 do
        mO[k * THREADS + tid] = h[2 * k + 1]:bitcast(cute.u16):to(cute.i32) -
          h[2 * k]:bitcast(cute.u16):to(cute.i32)
      end
      h[2] = h[5]
      h[7] = (mI[tid]:to(cute.f32) * 0.5):to(cute.bf16)
      local q = cute.make_rmem_tensor({8}, cute.bf16)
      for k = 0, 7 do q[k] = h[k] end
      local back = cute.recast_tensor(q, cute.f32)
      for k = 0, N // THREADS - 1 do
        mG[k * THREADS + tid] = k < 4 and cute.where(
          back[k]:eq(back[k]), back[k], 0.5) or r[k]
      end
    end)

  words(cute.i32, "int", "registers as 128 bits, as bits and as doubles",
    function(mI, mF, mO, mG)
      local tid = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({8}, cute.i32)
      local c = cute.make_rmem_tensor({8}, cute.i32)
      for k = 0, 7 do r[k] = mI[(k * THREADS + tid) % N] end
      cute.autovec_copy(cute.recast_tensor(r, cute.u128),
                        cute.recast_tensor(c, cute.u128))
      local bits = cute.recast_tensor(r, cute.b1)
      bits[3] = bits[40]
      bits[70] = bits[255]
      for k = 0, 2 do mO[k * THREADS + tid] = r[k] end
      for k = 3, 5 do mO[k * THREADS + tid] = c[k] end
      local d = cute.make_rmem_tensor({4}, cute.i32)
      local wide = cute.recast_tensor(d, cute.f64)
      wide[0] = mI[tid]:to(cute.f64) * 0.375
      wide[1] = wide[0] + 1
      for k = 0, 3 do mG[k * THREADS + tid] = d[k]:to(cute.f32) end
      mG[4 * THREADS + tid] = (wide[1] - wide[0]):to(cute.f32)
      mG[5 * THREADS + tid] = mF[0]
    end)

  words(cute.u16, "unsigned short", "registers of 16 bits as f32, and filled",
    function(mI, _mF, mO, mG)
      local tid = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({4}, cute.u16)
      local v = cute.recast_tensor(r, cute.f32)
      v:fill(1.5)
      for k = 0, 3 do mO[k * THREADS + tid] = r[k] + mI[tid] end
      for k = 0, N // THREADS - 1 do mG[k * THREADS + tid] = v[k % 2] end
    end)

  it("shared memory viewed with three types", function()
    local i = cute.zeros({32, 4}, cute.u32)
    local o = cute.zeros({32, 8}, cute.u16)
    local b = cute.zeros({32}, cute.i32)
    for t = 0, 31 do
      for k = 0, 3 do i[{t, k}] = (t * 4 + k) * 2654435761 % 2^32 | 0 end
    end
    local call = cute.kernel("k", function(mI, mO, mB)
      local tid = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.u32,
        cute.make_layout({32, 4}, {4, 1}))
      cute.autovec_copy(mI(tid, all), s(tid, all))
      cute.arch.sync_warp()
      local h = cute.recast_tensor(s, cute.u16)
      cute.autovec_copy(h(31 - tid, all), mO(tid, all))
      local bits = cute.recast_tensor(s, cute.b1)
      mB[tid] = bits[{tid, 0}]:to(cute.i32) + bits[{tid, 127}]:to(cute.i32) * 2
      local q = cute.recast_tensor(s, cute.u128)
      local r = cute.make_rmem_tensor({1}, cute.u128)
      cute.autovec_copy(q(tid, all), r)
    end)(i, o, b)
    assert(call:launch {grid = 1, block = 32, device = device})
    for t = 0, 31 do
      for k = 0, 7 do
        assert.equal(i[{31 - t, k // 2}] >> (k % 2 * 16) & 0xffff, o[{t, k}])
      end
      assert.equal((i[{t, 0}] & 1) + (i[{t, 3}] >> 31) * 2, b[t])
    end
    if not on_gpu then compiles(call) end
  end)
end

describe("memory viewed with another type", function()
  other_names "sim:sm_80"
end)

describe("narrow memory #gpu", function()
  setup(function() on_gpu = true end)
  teardown(function() on_gpu = false end)
  elements "gpu"
  widths "gpu"
  other_names "gpu"
end)

describe("256-bit moves", function()
  local LOAD = "SM100_LOAD_256bit_CACHE_NOALLOCATION"
  local STORE = "SM100_STORE_256bit_CACHE_NOALLOCATION"

  it("are one instruction, with one sector a lane", function()
    for _, name in ipairs {"f32", "bf16", "f64", "u4"} do
      local dtype = cute[name]
      local n = 256 // dtype.bits
      local a, b = cute.zeros({32, n}, dtype), cute.zeros({32, n}, dtype)
      for i = 0, 32 * n - 1 do a[{i // n, i % n}] = i % 13 end
      local ld = cute.make_copy_atom(LOAD, dtype)
      local st = cute.make_copy_atom(STORE, dtype)
      local function kernel(mA, mB)
        local tid = cute.arch.thread_idx()
        local r = cute.make_rmem_tensor({n}, dtype)
        cute.copy(ld, mA(tid, all), r)
        cute.copy(st, r, mB(tid, all))
      end
      local call = cute.kernel("wide", kernel)(a, b)
      local r = call:launch {grid = 1, block = 32, device = "sim:sm_100a"}
      for i = 0, 32 * n - 1 do
        assert.equal(a[{i // n, i % n}], b[{i // n, i % n}])
      end
      for _, line in ipairs(r.lines) do
        assert.same({1, 32, 1024}, {line.count, line.sectors, line.bytes})
      end
      local out = kernels.compiled(call:trace {block = 32}, "sm_100a")
      if not out then return end
      assert.truthy(out.ptx:find("ld.global.L1::no_allocate.v8.b32", 1, true))
      assert.truthy(out.ptx:find("st.global.L1::no_allocate.v8.b32", 1, true))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
