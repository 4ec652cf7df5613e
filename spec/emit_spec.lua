-- CUDA C: golden texts of three small kernels, the text's meaning against the
-- simulator (compiled for the host), and what NVRTC says of it.
-- CUTELUA_WRITE_GOLDEN=1 rewrites the golden texts; read them before you
-- commit them.
local cute = require "cute"
local support = require "spec.support"
local _ = cute._

local function program(f, opts, ...)
  return cute.kernel("k", f)(...):trace(opts)
end

local function source(f, opts, ...)
  return program(f, opts, ...):cuda(opts.arch or "sm_80")
end

-- The body's lines without comments and indentation.
local function body(text)
  local out = {}
  for line in text:gsub("^.-\nk%(.-{\n", ""):gmatch "%s*([^\n]*)" do
    if line ~= "" and not line:find "^//" then out[#out + 1] = line end
  end
  out[#out] = nil  -- the closing brace
  return out
end

local function find(text, what)
  assert.is_truthy(text:find(what, 1, true), ("no '%s' in:\n%s"):format(what,
    text))
end

---------------------------------------------------------------------------
-- Golden texts
---------------------------------------------------------------------------

local golden = {}

function golden.saxpy()
  local x, y = cute.zeros({4096}, cute.f32), cute.zeros({4096}, cute.f32)
  return cute.kernel("saxpy", function(a, mX, mY, n)
    local i = cute.arch.block_idx() * cute.arch.block_dim()
      + cute.arch.thread_idx()
    cute.when(i:lt(n), function()
      mY[i] = cute.fma(a, mX[i], mY[i])
    end)
  end)(2.5, x, y, 4000):trace {block = 128}
end

-- The sums of 64 rows of bf16, a warp each, in f32.
function golden.rowsum()
  local m = cute.zeros({64, 1024}, cute.bf16, {1024, 1})
  local sums = cute.zeros({64}, cute.f32)
  return cute.kernel("rowsum", function(mX, mSum)
    local warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
    local row = cute.arch.block_idx() * 4 + warp
    local tXgX = cute.local_tile(mX, {1, 256}, {row, _})   -- (1,256,tiles)
    local sum = 0.0
    for tile in cute.range(4) do
      local part = cute.local_tile(tXgX(0, _, tile), {8}, {lane})  -- (8)
      local v = part:load():to(cute.f32)
      for j = 0, 7 do sum = sum + v[j] end
    end
    local shift = 16
    while shift > 0 do
      sum = sum + cute.arch.shuffle_sync_bfly(sum, shift)
      shift = shift // 2
    end
    cute.when(lane:eq(0), function() mSum[row] = sum end)
  end)(m, sums):trace {block = 128}
end

-- One warp: 16x8 = 16x16 times 8x16, through shared memory.
function golden.warpmma()
  local a = cute.zeros({16, 16}, cute.bf16, {16, 1})
  local b = cute.zeros({8, 16}, cute.bf16, {16, 1})
  local c = cute.zeros({16, 8}, cute.f32, {8, 1})
  local g2s = cute.make_tiled_copy(
    cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.bf16, 128),
    cute.make_layout({16, 2}, {2, 1}), cute.make_layout {1, 8})
  local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
  local s2r = cute.make_tiled_copy_A(
    cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16), mma)
  return cute.kernel("warpmma", function(mA, mB, mC)
    local tid = cute.arch.thread_idx()
    local sA = cute.make_smem_tensor(cute.bf16,
      cute.make_layout({16, 16}, {16, 1}), 128)  -- (M,K)
    local thr = g2s:get_slice(tid)
    cute.copy(g2s, thr:partition_S(mA), thr:partition_D(sA))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    local thr_mma = mma:get_slice(tid)
    local tCgC = thr_mma:partition_C(mC)              -- (MMA,MMA_M,MMA_N)
    local tCrA = thr_mma:partition_fragment_A(sA)     -- (MMA,MMA_M,MMA_K)
    local tCgB = thr_mma:partition_B(mB)              -- (MMA,MMA_N,MMA_K)
    local tCrB = thr_mma:make_fragment_B(tCgB)
    local tCrC = thr_mma:make_fragment_C(tCgC)
    local thr_A = s2r:get_slice(tid)
    cute.copy(s2r, thr_A:partition_S(sA), thr_A:retile(tCrA))
    cute.autovec_copy(tCgB, tCrB)
    tCrC:fill(0)
    cute.gemm(mma, tCrC, tCrA, tCrB, tCrC)
    cute.autovec_copy(tCrC, tCgC)
  end)(a, b, c):trace {block = 32}
end

describe("golden text of", function()
  for name, make in pairs(golden) do
    local path = "spec/golden_" .. name .. ".cu"
    it(name, function()
      local text = make():cuda "sm_80"
      if os.getenv "CUTELUA_WRITE_GOLDEN" then support.write(path, text) end
      assert.equal(support.read(path), text)
    end)
    it(name .. " compiles", function()
      local p = make()
      for _, arch in ipairs {"sm_80", "sm_90a"} do
        local out, message = p:compile(arch)
        if not out and message:find "no%-nvrtc" then
          return pending "NVRTC is not here"
        end
        assert.is_nil(message)
        assert.equal(0, out.resources.spill_stores or 0)
      end
    end)
  end
end)

---------------------------------------------------------------------------
-- Names, lines, helpers
---------------------------------------------------------------------------

describe("emitted text", function()
  local x = cute.zeros({64}, cute.i32)
  local f = cute.zeros({64}, cute.f32)

  it("includes nothing and has only the helpers that are used", function()
    local text = source(function(a) a[0] = a[1] // a[2] end, {block = 1}, x)
    assert.is_nil(text:find "#include")
    find(text, "floor_div(int a, int b)")
    assert.is_nil(text:find "floor_mod")
    assert.is_nil(text:find "asm")
  end)

  it("keeps the script's names and makes them C's own", function()
    local text = source(function(double)
      local float = double[0] * 3  -- a keyword of C, none of Lua's
      local threadIdx = float * float
      double[1] = threadIdx + float
    end, {block = 1}, x)
    find(text, "int *__restrict__ double_1")
    find(text, "const int float_1 = double_1[0] * 3;")
    find(text, "const int threadIdx_1 = float_1 * float_1;")
  end)

  it("says which line of the script a line comes from", function()
    local function kernel(a)
      local at = a[0] + 1
      a[at] = at * at
    end
    local first = debug.getinfo(kernel, "S").linedefined
    local text, lines = source(kernel, {block = 1}, x)
    local n, seen = 0, {}
    for line in text:gmatch "([^\n]*)\n" do
      n = n + 1
      seen[line:match "^%s*(.*)"] = lines[n]
    end
    assert.equal(n, #lines)
    assert.equal("emit_spec.lua:" .. first + 1,
      seen["const int at = a[0] + 1;"])
    assert.equal("emit_spec.lua:" .. first + 2, seen["a[at] = at * at;"])
    assert.equal("", lines[1])
  end)

  it("writes what is not written to as const", function()
    local text = source(function(a, b) b[0] = a[0] end, {block = 1}, x, x)
    find(text, "const int *__restrict__ a")
    find(text, "int *__restrict__ b")
    assert.is_nil(text:find "const int %*__restrict__ b")
  end)

  it("puts no parentheses that C does not need, and all that it does",
    function()
      assert.same({
        "const int p = a[0];",
        "const int q = a[1];",
        "a[2] = (p + q) * (p - q);",
        "a[3] = p - (q - p) * 3;",
        "a[4] = -(p * q);",
        "a[5] = (p & 12) << 2;",
        "a[6] = p * 4 + q + 5;",
        "a[7] = p >> 3;",
        "a[8] = p & 7;",
        "a[9] = p < q && q < 5 ? p : q;",
        "a[10] = p > q ? p : q;",
      }, body(source(function(a)
        local p, q = a[0], a[1]
        a[2] = (p + q) * (p - q)
        a[3] = p - (q - p) * 3
        a[4] = -(p * q)
        a[5] = (p & 12) << 2
        a[6] = p * 4 + 5 + q
        a[7] = p // 8
        a[8] = p % 8
        a[9] = cute.where(p:lt(q) & q:lt(5), p, q)
        a[10] = cute.where(~p:le(q), p, q)
      end, {block = 1}, x)))
    end)

  it("divides plainly where nothing is negative", function()
    local text = source(function(a)
      local tid = cute.arch.thread_idx()
      a[tid] = tid // 6 + tid % 6 + a[tid] // 6
    end, {block = 64}, x)
    find(text, "tid / 6 + tid % 6 + floor_div(a[tid], 6)")
  end)

  it("reads a variable late, but not after it changed", function()
    assert.same({
      "int i0 = a[0];",
      "a[1] = i0;",
      "const int old = i0;",
      "i0 += 5;",
      "a[2] = i0 + old;",
      "for (int i = 0; i < 9; ++i) {",
      "i0 += i;",
      "}",
      "const int i1 = i0;",
      "for (int k0 = 0; k0 < i1; ++k0) {",
      "i0 -= 1;",
      "}",
    }, body(source(function(a)
      local n = cute.var(a[0])
      a[1] = n.value
      local old = n.value
      n.value = n.value + 5
      a[2] = n.value + old
      for i in cute.range(9) do n.value = n.value + i end
      for _ in cute.range(n.value) do n.value = n.value - 1 end
    end, {block = 1}, x)))
  end)

  it("rounds two neighbours to bf16 in one instruction", function()
    local h = cute.zeros({64}, cute.bf16)
    local text = source(function(a, b)
      b:store(a:load():to(cute.bf16))
    end, {block = 1}, f, h)
    find(text, "pack_bf16(")
    assert.is_nil(text:find "f32_to_bf16")
  end)

  it("writes constants exactly", function()
    local text = source(function(a)
      a[0], a[1], a[2] = 0.1, -2, 1e30
      a[3], a[4], a[5] = 1 / 0, -1 / 0, 0 / 0
    end, {block = 1}, f)
    for _, s in ipairs {"0.100000001f", "-2.0f", "1.00000002e+30f",
      "__int_as_float(0x7f800000)", "__int_as_float(0xff800000)",
      "__int_as_float(0x7fffffff)"} do
      find(text, "= " .. s .. ";")
    end
  end)
end)

---------------------------------------------------------------------------
-- Meaning: compiled for the host, run, and compared with the simulator
---------------------------------------------------------------------------

local function cxx()
  for _, name in ipairs {"g++", "clang++", "c++"} do
    if os.execute(name .. " --version >/dev/null 2>&1") then return name end
  end
end

local THREADS, OUT, N = 32, 24, 256

-- A generator of expressions over traced values, by type. `r` is the random
-- source; every operand is safe (no division by zero, no wild shift).
local function generator(r, i, f)
  local gen = {}
  local function pick(...) return (select(r(select("#", ...)), ...)) end
  local small = {1, 2, 3, 7, 8, 64, 100, -1, -8, -5}

  function gen.i32(d)
    if d == 0 then return i[r(N) - 1] end
    local a, b = gen.i32(d - 1), nil
    local k = r(18)
    if k == 18 then return a + small[r(#small)] end
    if k <= 8 then b = gen.i32(r(d) - 1) end
    if k == 1 then return a + b end
    if k == 2 then return a - b end
    if k == 3 then return (a % 1024) * (b % 2048 - 1000) end
    if k == 4 then return cute.min(a, b) end
    if k == 5 then return cute.max(a, b) end
    if k == 6 then return a & b end
    if k == 7 then return a | b end
    if k == 8 then return a ~ b end
    if k == 9 then return a // pick(8, 7, -3, 1024) end
    if k == 10 then return a % pick(8, 7, -3, 1024) end
    if k == 11 then return -a end
    if k == 12 then return ~a end
    if k == 13 then return (a & 0xffff) << (gen.i32(d - 1) & 7) end
    if k == 14 then return a >> (gen.i32(d - 1) & 7) end
    if k == 15 then
      return cute.where(gen.bool(d - 1), a, gen.i32(d - 1))
    end
    if k == 16 then return gen[pick("u32", "f32", "i8", "u16")](d - 1)
      :to(cute.i32) end
    return a // ((gen.i32(d - 1) & 7) + 1)
  end

  local function narrow(t)
    return function(d)
      if d == 0 then return gen.i32(0):to(t) end
      local a, b = gen[t.name](d - 1), gen[t.name](d - 1)
      local k = r(5)
      if k == 1 then return a + b end
      if k == 2 then return a - b end
      if k == 3 then return a ~ b end
      if k == 4 then return cute.max(a, b) end
      return -a
    end
  end
  for _, t in ipairs {cute.i8, cute.u8, cute.i16, cute.u16, cute.u32} do
    gen[t.name] = narrow(t)
  end

  function gen.bool(d)
    local k = r(6)
    if d > 0 and k == 1 then return gen.bool(d - 1) & gen.bool(d - 1) end
    if d > 0 and k == 2 then return gen.bool(d - 1) | gen.bool(d - 1) end
    if d > 0 and k == 3 then return ~gen.bool(d - 1) end
    local t = pick("i32", "f32", "u32")
    local e = d > 0 and d - 1 or 0
    local a, b = gen[t](e), gen[t](e)
    return a[pick("lt", "le", "gt", "ge", "eq", "ne")](a, b)
  end

  function gen.f32(d)
    if d == 0 then return f[r(N) - 1] end
    local a, k = gen.f32(d - 1), r(11)
    local b = k <= 6 and gen.f32(r(d) - 1)
    if k == 1 then return a + b end
    if k == 2 then return a - b end
    if k == 3 then return a * b end
    if k == 4 then return a / b end
    if k == 5 then return cute.min(a, b) end
    if k == 6 then return cute.fma(a, b, a) end
    if k == 7 then return -a end
    if k == 8 then return cute.abs(a) end
    if k == 9 then return cute.where(gen.bool(d - 1), a, gen.f32(d - 1)) end
    if k == 10 then return a:to(pick(cute.bf16, cute.tf32, cute.e4m3,
      cute.e5m2)):to(cute.f32) end
    return gen.i32(d - 1):to(cute.f32)
  end
  return gen
end

local function random_kernel(seed)
  local state = seed * 7919 + 1
  local function r(n)
    state = (state * 1103515245 + 12345) & 0x7fffffff
    return (state >> 8) % n + 1
  end
  return function(i, f, o, g)
    local gen = generator(r, i, f)
    local tid = cute.arch.thread_idx()
    local at = tid * OUT
    for k = 0, OUT - 1, 2 do
      o[at + k] = gen.i32(4) + gen.u16(2):to(cute.i32)
      o[at + k + 1] = cute.where(gen.bool(3), gen.u8(3):to(cute.i32),
        gen.i8(3):to(cute.i32)) ~ tid
      g[at + k] = gen.f32(4)
      g[at + k + 1] = gen.f32(3) * gen.f32(2)
    end
  end
end

local function inputs()
  local i, f = cute.zeros({N}, cute.i32), cute.zeros({N}, cute.f32)
  local state = 12345
  for k = 0, N - 1 do
    state = (state * 1103515245 + 12345) & 0x7fffffff
    i[k] = (state >> 4) % 200001 - 100000
    f[k] = ((state >> 7) % 4001 - 2000) / 64
  end
  return i, f
end

local function packed(t, format)
  local out = {}
  for k = 0, N - 1 do out[k + 1] = format:pack(t[k]) end
  return table.concat(out)
end

local function run_sim(seed)
  local i, f = inputs()
  local o = cute.zeros({THREADS * OUT}, cute.i32)
  local g = cute.zeros({THREADS * OUT}, cute.f32)
  local call = cute.kernel("k", random_kernel(seed))(i, f, o, g)
  call:launch {grid = 1, block = THREADS, device = "sim:sm_90a"}
  return call, o, g, i, f
end

local function same(a, b) return a == b or (a ~= a and b ~= b) end

-- The host's results of a text: an iterator over its bytes.
local function run_host(compiler, text, i, f)
  local dir <close> = setmetatable({path = support.folder()}, {
    __close = function(d) support.remove(d.path) end})
  support.write(dir.path .. "/k.cu", text)
  local out, err, code = support.exec({compiler, "-O1", "-w",
    "-ffp-contract=off", "-fwrapv", "-DKERNEL=k", "-DN=" .. N,
    "-DTHREADS=" .. THREADS, "-DM=" .. THREADS * OUT, "-include",
    "spec/cudahost.h", "-x", "c++", dir.path .. "/k.cu", "-o",
    dir.path .. "/k", "-lm"})
  assert.equal("", err .. out, text)
  assert.equal(0, code)
  out, err, code = support.exec({dir.path .. "/k"}, {
    stdin = packed(i, "<i4") .. packed(f, "<f")})
  assert.equal("", err)
  assert.equal(0, code)
  return out
end

describe("the text means what the simulator does", function()
  for seed = 1, 8 do
    it("in random expressions, seed " .. seed, function()
      local compiler = cxx()
      if not compiler then return pending "no C++ compiler here" end
      local call, o, g, i, f = run_sim(seed)
      -- for sm_75 all conversions are plain C
      local text = call:trace({block = THREADS}).fn:emit(75)
      local out = run_host(compiler, text, i, f)
      local at = 1
      for k = 0, THREADS * OUT - 1 do
        local v
        v, at = ("<i4"):unpack(out, at)
        assert.equal(o[k], v, ("o[%d]\n%s"):format(k, text))
      end
      for k = 0, THREADS * OUT - 1 do
        local v
        v, at = ("<f"):unpack(out, at)
        assert.is_true(same(g[k], v), ("g[%d]: %s on the simulator, %s\n%s")
          :format(k, g[k], v, text))
      end
    end)
    it("on the GPU #gpu, seed " .. seed, function()
      local call, o, g = run_sim(seed)
      local sim_o, sim_g = {}, {}
      for k = 0, THREADS * OUT - 1 do sim_o[k], sim_g[k] = o[k], g[k] end
      assert(call:launch {grid = 1, block = THREADS, device = "gpu"})
      for k = 0, THREADS * OUT - 1 do
        assert.equal(sim_o[k], o[k], ("o[%d]"):format(k))
        assert.is_true(same(sim_g[k], g[k]), ("g[%d]: %s on the simulator, "
          .. "%s"):format(k, sim_g[k], g[k]))
      end
    end)
  end
end)
