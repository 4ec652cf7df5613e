-- Tests emitted CUDA C. The texts of three small kernels must equal golden
-- texts. Other kernels, compiled for the host, must give the simulator's
-- results, and NVRTC must accept their text. CUTELUA_WRITE_GOLDEN=1 rewrites
-- the golden texts; read them before you commit them.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"

local function program(f, opts, ...)
  return cute.kernel("k", f)(...):trace(opts)
end

local function source(f, opts, ...)
  return program(f, opts, ...):cuda(opts.arch or "sm_80")
end

-- Returns the lines of the kernel's body, without comments and indentation.
local function body(text)
  local out = {}
  for line in text:gsub("^.-\nk%(.-{\n", ""):gmatch "%s*([^\n]*)" do
    if line ~= "" and not line:find "^//" then out[#out + 1] = line end
  end
  out[#out] = nil  -- Drop the function's closing brace.
  return out
end

local function find(text, what)
  assert.is_truthy(text:find(what, 1, true), ("no '%s' in:\n%s"):format(what,
    text))
end

local function compiles(p)
  return kernels.compiles(p, {"sm_80", "sm_90a"}) or
    pending "needs NVRTC"
end

---------------------------------------------------------------------------
-- Golden texts
---------------------------------------------------------------------------

local golden = require "spec.emit.golden_kernels"

describe("golden text of", function()
  for name, make in pairs(golden) do
    local path = "spec/emit/golden_" .. name .. ".cu"
    it(name, function()
      local text = make():cuda "sm_80"
      if os.getenv "CUTELUA_WRITE_GOLDEN" then support.write(path, text) end
      assert.equal(support.read(path), text)
    end)
    it(name .. " compiles", function()
      compiles(make())
    end)
  end
end)

---------------------------------------------------------------------------
-- Names, line numbers, helper functions
---------------------------------------------------------------------------

local ints = cute.zeros({64}, cute.i32)
local floats = cute.zeros({64}, cute.f32)

describe("emitted text", function()
  it("has no #include, and only the helper functions that it uses", function()
    local text = source(function(a) a[0] = a[1] // a[2] end, {block = 1}, ints)
    assert.is_nil(text:find "#include")
    find(text, "floor_div(int a, int b)")
    assert.is_nil(text:find "floor_mod")
    assert.is_nil(text:find "asm")
  end)

  it("keeps the script's names if C allows them", function()
    local text = source(function(double)
      -- a name that is a keyword in C but not in Lua
      local float = double[0] * 3
      local threadIdx = float * float
      double[1] = threadIdx + float
    end, {block = 1}, ints)
    find(text, "int *__restrict__ double_1")
    find(text, "const int float_1 = double_1[0] * 3;")
    find(text, "const int threadIdx_1 = float_1 * float_1;")
  end)

  it("names the script's line of each line", function()
    local function kernel(a)
      local at = a[0] + 1
      a[at] = at * at
    end
    local first = debug.getinfo(kernel, "S").linedefined
    local text, lines = source(kernel, {block = 1}, ints)
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

  -- If b were __restrict__, the compiler would move the read of a[0] above
  -- meet().
  it("has no __restrict__ where threads communicate", function()
    local y = cute.zeros(ints.shape, ints.dtype)
    local function kernel(meet)
      return source(function(a, b)
        local t = cute.arch.thread_idx()
        cute.when(t:eq(0), function() a[0] = 3 end)
        meet()
        b[t] = a[0]
      end, {block = 64}, ints, y)
    end
    for _, meet in ipairs {cute.arch.sync_threads, cute.arch.sync_warp,
                           cute.arch.fence_acq_rel_gpu} do
      assert.is_nil(kernel(meet):find "__restrict__")
    end
    find(kernel(function() end), "int *__restrict__ a")
  end)

  it("declares data that is only read as const", function()
    local y = cute.zeros(ints.shape, ints.dtype)
    local text = source(function(a, b) b[0] = a[0] end, {block = 1}, ints, y)
    find(text, "const int *__restrict__ a")
    find(text, "int *__restrict__ b")
    assert.is_nil(text:find "const int %*__restrict__ b")
  end)

  -- If a were __restrict__, ptxas would move the read of a[0] above the wait.
  it("has no __restrict__ on what the preceding launch may write",
     function()
    local y = cute.zeros(ints.shape, ints.dtype)
    local text = source(function(a, b)
      cute.arch.griddepcontrol_wait()
      b[0] = a[0]
    end, {block = 1, arch = "sm_90a"}, ints, y)
    find(text, "const int *a")
    find(text, "int *__restrict__ b")
  end)

  it("has exactly the parentheses that C needs",
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
      end, {block = 1}, ints)))
    end)
end)

describe("emitted text", function()
  it("has no `--` for two minus signs", function()
    local text = source(function(a)
      local m = cute.var(a[0])
      m.value = a[1]
      a[2] = (a[3] & 0) - -m.value
      a[3] = -(a[3] & 0) - -m.value - a[1]
    end, {block = 1}, ints)
    find(text, "a[2] = -(-m);")
    assert.is_nil(text:find "%-%-m")
  end)

  it("reads a variable late, but not after it changed", function()
    assert.same({
      "int n = a[0];",
      "a[1] = n;",
      "const int old = n;",
      "n += 5;",
      "a[2] = n + old;",
      "for (int i = 0; i < 9; ++i) {",
      "n += i;",
      "}",
      "const int i0 = n;",
      "for (int k0 = 0; k0 < i0; ++k0) {",
      "n -= 1;",
      "}",
    }, body(source(function(a)
      local n = cute.var(a[0])
      a[1] = n.value
      local old = n.value
      n.value = n.value + 5
      a[2] = n.value + old
      for i in cute.range(9) do n.value = n.value + i end
      for _ in cute.range(n.value) do n.value = n.value - 1 end
    end, {block = 1}, ints)))
  end)

  it("has loops and comparisons in their usual form", function()
    assert.same({
      "int v = a[0];",
      "while (v != 1) {",
      "v = v >> 1;",
      "}",
      "if (v > 10) {",
      "a[1] = v;",
      "}",
      "if (v <= 20) {",
      "a[2] = v;",
      "}",
      "#pragma unroll 4",
      "for (int i = 0; i < 8; ++i) {",
      "a[i] = i;",
      "}",
    }, body(source(function(a)
      local v = a[0]
      cute.loop(function() return v:ne(1) end, function() v = v // 2 end)
      cute.when(v:gt(10), function() a[1] = v end)
      cute.when(v:le(20), function() a[2] = v end)
      for i in cute.range(8, {unroll = 4}) do
        a[i] = i
      end
    end, {block = 1}, ints)))
  end)

  it("knows the sign of a stride of the grid", function()
    find(source(function(a, n)
      local first = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
      local grid = cute.arch.grid_dim()
      for i in cute.range(first, n, grid * 32) do
        a[i] = i
      end
    end, {block = 32}, ints, 5), "; i < n; i += grid * 32) {")
  end)

  it("has 32-bit offsets in tensors of fewer than 2^31 elements", function()
    local function touch(a)
      local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
      a[{i - 1, i // 4}] = i
    end
    local small = source(touch, {block = 32}, cute.zeros({40, 40}, cute.i32))
    assert.is_nil(small:find "long long")
    local flat = cute.make_layout({1 << 20, 1 << 20})
    find(source(function(a)
      touch(cute.make_tensor(a.iterator, flat))
    end, {block = 32}, ints), "long long")
  end)

  it("computes a swizzled offset once, and XORs it with constants", function()
    local rows = cute.composition(cute.make_swizzle(3, 3, 3),
                                  cute.make_layout({8, 64}, {64, 1}))
    local text = body(source(function(o, n)
      local s = cute.make_smem_tensor(cute.i32,
        cute.tile_to_shape(rows, {32, 64, 3}), 128)
      local tid = cute.arch.thread_idx()
      for k in cute.range(n) do
        for j = 0, 2 do o[j] = s[{tid, 16 * j + 2, k % 3}] end
      end
    end, {block = 32}, ints, 5))
    assert.same({
      "const int i1 = (i0 ^ ((i0 & 448) >> 3)) + (tid >> 3) * 512 + "
        .. "k_1 % 3 * 2048;",
      "o[0] = s[i1 + 2];",
      "o[1] = s[(i1 ^ 16) + 2];",
      "o[2] = s[(i1 ^ 32) + 2];",
    }, table.move(text, #text - 4, #text - 1, 1, {}))
  end)
end)

describe("emitted text", function()
  it("puts an address's constant part into the instruction", function()
    local function copies(step, dtype)
      dtype = dtype or cute.bf16
      local n = 128 // dtype.bits
      local text = source(function(a)
        local s = cute.make_smem_tensor(dtype,
          cute.make_layout({32, 2 * n}, {2 * n, 1}), 128)
        local g = cute.make_tensor(a.iterator,
          cute.make_layout({32, 2 * n}, {step, 1}))
        local copy = cute.make_tiled_copy(
          cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", dtype, 128),
          cute.make_layout({16, 2}, {2, 1}), cute.make_layout {1, n})
        local thr = copy:get_slice(cute.arch.thread_idx())
        cute.copy(copy, thr:partition_S(g), thr:partition_D(s))
      end, {block = 32}, cute.zeros({64}, dtype))
      local lines = body(text)
      return table.move(lines, #lines - 1, #lines, 1, {})
    end
    assert.same({"cp_async_ca16(s_addr + i0 * 2u, a + i0);",
                 "cp_async_ca16<512, 512>(s_addr + i0 * 2u, a + i0);"},
                copies(16))
    assert.equal("cp_async_ca16<512, -512>(s_addr + i3 * 2u, a + i2);",
                 copies(-16)[2])
    assert.equal(  -- the offset in bytes exceeds the 32 bits of the instruction
      "cp_async_ca16<512>(s_addr + i3 * 2u, a + i2 + 17179869184);",
      copies(1 << 30)[2])
    assert.equal("cp_async_ca16<512, 512>(s_addr + (i0 >> 1), a + (i0 >> 1));",
                 copies(64, cute.u4)[2])
  end)

  -- For comparison, the PTX of the Python DSL's GEMM with this tile has 43
  -- integer additions.
  it("has few integer sums in a GEMM of three stages", function()
    local gemm = require "kernels.gemm_sm80" {tile = {128, 128, 64}}
    local A, B = cute.zeros({512, 512}, cute.bf16),
                 cute.zeros({512, 512}, cute.bf16)
    local out = kernels.compiled(gemm.kernel(A, B, cute.zeros({512, 512},
      cute.bf16)):trace {block = gemm.block}, "sm_80")
    if not out then return pending "needs NVRTC" end
    local sums = 0
    for op, t in out.ptx:gmatch "\n%s*(%l+)%.(%l)%d+ " do
      if (op == "add" or op == "sub") and t ~= "f" then sums = sums + 1 end
    end
    assert.is_true(sums > 20 and sums <= 56, sums .. " sums")
  end)

  it("rounds two neighbours to bf16 in one instruction", function()
    local h = cute.zeros({64}, cute.bf16)
    local text = source(function(a, b)
      b:store(a:load():to(cute.bf16))
    end, {block = 1}, floats, h)
    find(text, "pack_bf16(")
    assert.is_nil(text:find "f32_to_bf16")
  end)

  it("writes a square as a product", function()
    local text = source(function(a, b)
      local i = cute.arch.thread_idx()
      b[i] = a[i] ^ 2 + cute.pow(a[i + 1], 1) + a[i] ^ 3
    end, {block = 32}, cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32))
    find(text, "const float x0 = a[i];")
    find(text, "b[i] = x0 * x0 + a[i + 1] + powf(a[i], 3.0f);")
  end)

  it("writes constants exactly", function()
    local text = source(function(a)
      a[0], a[1], a[2] = 0.1, -2, 1e30
      a[3], a[4], a[5] = 1 / 0, -1 / 0, 0 / 0
    end, {block = 1}, floats)
    for _, s in ipairs {"0.100000001f", "-2.0f", "1.00000002e+30f",
      "__int_as_float(0x7f800000)", "__int_as_float(0xff800000)",
      "__int_as_float(0x7fffffff)"} do
      find(text, "= " .. s .. ";")
    end
  end)
end)

---------------------------------------------------------------------------
-- NVRTC's acceptance of the text
---------------------------------------------------------------------------

describe("NVRTC takes", function()
  local MATH = {"sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2",
    "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "floor",
    "ceil", "trunc", "round", "roundeven", "rcp"}
  for _, t in ipairs {"f32", "f64", "f16", "bf16"} do
    it("every function of " .. t, function()
      local x = cute.zeros({64}, cute[t])
      local n = 0
      compiles(program(function(a)
        for k, name in ipairs(MATH) do
          a[k] = cute[name](a[0])
          n = n + 1
        end
        a[40], a[41], a[42] = a[1] + a[2], a[1] / a[2], -a[1]
        a[43], a[44], a[45] = cute.min(a[1], a[2]), cute.abs(a[1]), a[1] % a[2]
        a[46] = cute.fma(a[1], a[2], a[3])
      end, {block = 1}, x))
      assert.equal(#MATH, n)
    end)
  end

  it("conversions between all types", function()
    local types = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64",
      "f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2"}
    local args = {}
    for k, t in ipairs(types) do args[k] = cute.zeros({64}, cute[t]) end
    compiles(program(function(...)
      local a = {...}
      for i = 1, #types do
        local x = a[i][0]
        for j, to in ipairs(types) do a[j][i] = x:to(cute[to]) end
      end
    end, {block = 1}, table.unpack(args)))
  end)

  it("what warps do together", function()
    local x = cute.zeros({64}, cute.i32)
    compiles(program(function(a)
      local arch = cute.arch
      local v = a[arch.lane_idx()]
      a[0] = arch.shuffle_sync(v, 3) + arch.shuffle_sync_up(v, 1)
      a[1] = arch.shuffle_sync_down(v:to(cute.bf16), 1):to(cute.i32)
      a[2] = arch.vote_ballot_sync(v:lt(3)):to(cute.i32)
      a[3] = cute.where(arch.vote_any_sync(v:lt(3))
        & arch.vote_all_sync(v:gt(1)), 1, 2)
      for k, kind in ipairs {"add", "min", "max", "and", "or", "xor"} do
        a[3 + k] = arch.warp_redux_sync(v, kind)
      end
      arch.barrier(1, 32)
      arch.sync_warp()
      arch.fence_acq_rel_gpu()
    end, {block = 32}, x))
  end)
end)

---------------------------------------------------------------------------
-- Meaning: compiled for the host, run, and compared with the simulator
---------------------------------------------------------------------------

local THREADS, OUT, N = 32, 24, 256

-- Returns a generator of expressions over traced values, by type. `r` is the
-- random source. Every operand is safe (no division by zero, no large shift).
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

-- Fills registers, moves them as vectors and accesses single registers, in
-- about 85 statements per round. Some access one bf16 half of a register or
-- have a predicate.
local function register_kernel(rounds)
  return function(i, f, o, g)
    local tid = cute.arch.thread_idx()
    local a, n = cute.make_rmem_tensor({8}, cute.f32),
      cute.make_rmem_tensor({8}, cute.i32)
    local acc, sum = cute.make_rmem_tensor({OUT}, cute.f32),
      cute.make_rmem_tensor({OUT}, cute.i32)
    local h = cute.make_rmem_tensor({8}, cute.bf16)
    local a_3 = f[tid]  -- so no register of `a` may be named a_3
    acc:fill(0.5)
    sum:fill(3)
    h:fill(1)
    cute.autovec_copy(cute.local_tile(f, {8}, {tid}), a)
    local pred = cute.make_rmem_tensor({2}, cute.boolean)
    pred[0], pred[1] = tid:lt(20), tid:lt(10)
    n:fill(7)
    cute.copy(cute.make_copy_atom("UniversalCopy", cute.i32, 128),
      cute.logical_divide(cute.local_tile(i, {8}, {tid}), {4}),
      cute.logical_divide(n, {4}), {pred = pred})
    for round = 1, rounds do
      for k = 0, OUT - 1 do
        acc[k] = cute.fma(a[k % 8], a[(k + round) % 8], acc[k])
        if k % 3 == 0 then sum[k] = sum[k] + n[(k + round) % 8] end
      end
      h[round % 8] = (acc[round % OUT] + a_3):to(cute.bf16)
      a[round % 8] = h[(round + 1) % 8]:to(cute.f32) * 0.25
    end
    cute.autovec_copy(acc, cute.local_tile(g, {OUT}, {tid}))
    cute.autovec_copy(sum, cute.local_tile(o, {OUT}, {tid}))
  end
end

local function run_sim(kernel)
  local i, f = inputs()
  local o = cute.zeros({THREADS * OUT}, cute.i32)
  local g = cute.zeros({THREADS * OUT}, cute.f32)
  local call = cute.kernel("k", kernel)(i, f, o, g)
  call:launch {grid = 1, block = THREADS, device = "sim:sm_90a"}
  return call, o, g, i, f
end

-- Asserts that the kernel has the same results, bit for bit, on the simulator
-- and on the GPU.
local function gpu_agrees(kernel)
  local call, o, g = run_sim(kernel)
  local sim_o, sim_g = {}, {}
  for k = 0, THREADS * OUT - 1 do sim_o[k], sim_g[k] = o[k], g[k] end
  assert(call:launch {grid = 1, block = THREADS, device = "gpu"})
  for k = 0, THREADS * OUT - 1 do
    assert.equal(sim_o[k], o[k], ("o[%d]"):format(k))
    assert.is_true(support.same(sim_g[k], g[k]),
      ("g[%d]: %s on the simulator, %s"):format(k, sim_g[k], g[k]))
  end
end

-- Asserts that the emitted text, compiled for the host, gives the simulator's
-- results.
local function host_agrees(kernel)
  local call, o, g, i, f = run_sim(kernel)
  -- The text is emitted for sm_75, for which all conversions are plain C that
  -- the host can compile.
  local text = call:trace({block = THREADS}).fn:emit(75)
  local out = kernels.on_host(text, {"-DN=" .. N, "-DTHREADS=" .. THREADS,
    "-DM=" .. THREADS * OUT}, packed(i, "<i4") .. packed(f, "<f"))
  if not out then return pending "needs a C++ compiler" end
  local at = 1
  for k = 0, THREADS * OUT - 1 do
    local v
    v, at = ("<i4"):unpack(out, at)
    assert.equal(o[k], v, ("o[%d]\n%s"):format(k, text))
  end
  for k = 0, THREADS * OUT - 1 do
    local v
    v, at = ("<f"):unpack(out, at)
    assert.is_true(support.same(g[k], v), ("g[%d]: %s on the simulator, %s\n%s")
      :format(k, g[k], v, text))
  end
  return text
end

describe("the text means what the simulator does", function()
  for seed = 1, 8 do
    it("in random expressions, seed " .. seed .. support.long(seed),
      function()
      host_agrees(random_kernel(seed))
    end)
    it("on the GPU #gpu, seed " .. seed, function()
      gpu_agrees(random_kernel(seed))
    end)
  end
  for how, rounds in pairs {arrays = 4, scalars = 16} do
    it("with registers as " .. how .. " #long", function()
      local text = host_agrees(register_kernel(rounds))
      if text then find(text, how == "arrays" and "acc[23] =" or "acc_23 =") end
    end)
    it("with registers as " .. how .. " on the GPU #gpu", function()
      gpu_agrees(register_kernel(rounds))
    end)
  end
end)

-- Kernels with statements that read the memory they write. The emitter must
-- split such a statement into steps, or may merge it with the next ones.
local SELF = {
  ["a fill with what the fragment holds"] = function(i, f, o, g)
    local tid = cute.arch.thread_idx()
    local n, h = cute.make_rmem_tensor({4}, cute.i32),
      cute.make_rmem_tensor({4}, cute.bf16)
    for k = 0, 3 do
      n[k] = i[tid * 4 + k]
      h[k] = f[tid * 4 + k]:to(cute.bf16)
    end
    n:fill(n[1] * 2 + n[2])
    h:fill(h[1] * h[0])
    for k = 0, 3 do
      o[tid * OUT + k] = n[k]
      g[tid * OUT + k] = h[k]:to(cute.f32)
    end
  end,
  ["halves of a word, the second of the first"] = function(_, f, _, g)
    local tid = cute.arch.thread_idx()
    local h = cute.make_rmem_tensor({4}, cute.bf16)
    for k = 0, 3 do h[k] = f[tid * 4 + k]:to(cute.bf16) end
    h[0] = h[2] - h[3]
    h[1] = h[1] * h[0] + h[1]
    h[2] = f[tid]:to(cute.bf16)
    h[3] = (h[2]:to(cute.f32) + 1):to(cute.bf16)
    for k = 0, 3 do g[tid * OUT + k] = h[k]:to(cute.f32) end
  end,
  ["a copy of registers over themselves"] = function(i, _, o)
    local tid = cute.arch.thread_idx()
    local n = cute.make_rmem_tensor({6}, cute.i32)
    local two = cute.make_layout {4}
    for k = 0, 5 do n[k] = i[tid * 6 + k] end
    local atom = cute.make_copy_atom("UniversalCopy", cute.i32, 128)
    cute.copy(atom, cute.make_tensor(n.iterator, two),
              cute.make_tensor(n.iterator + 1, two))
    for k = 0, 5 do o[tid * OUT + k] = n[k] end
    cute.copy(atom, cute.make_tensor(n.iterator + 2, two),
              cute.make_tensor(n.iterator + 1, two))
    for k = 0, 5 do o[tid * OUT + 6 + k] = n[k] end
  end,
  ["a copy into the registers that say where from"] = function(i, _, o)
    local tid = cute.arch.thread_idx()
    local n = cute.make_rmem_tensor({8}, cute.i32)
    for k = 0, 7 do n[k] = i[tid * 8 + k] end
    local from = i[tid] & 7
    n[3] = from
    cute.copy(cute.make_copy_atom("UniversalCopy", cute.i32, 128),
      cute.make_tensor(i.iterator + n[3] * 4, cute.make_layout {4}),
      cute.make_tensor(n.iterator + 3, cute.make_layout {4}))
    for k = 0, 7 do o[tid * OUT + k] = n[k] end
  end,
}

describe("a statement reads all operands before it writes:", function()
  for what, part in pairs(SELF) do
    local function kernel(i, f, o, g)
      part(i, f, o, g)
      -- With these stores, every kernel writes to both tensors, o and g.
      o[23], g[23] = 1, 1
    end
    local one = what == "a copy of registers over themselves"
    it(what .. (one and "" or " #long"), function() host_agrees(kernel) end)
    it(what .. " on the GPU #gpu", function() gpu_agrees(kernel) end)
  end
end)

describe("registers of MMAs", function()
  it("are scalars if many MMAs use them", function()
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
    local function text_of_mmas(n)
      local p = cute.kernel("k", function(mA, mB, mC)
        local thr = mma:get_slice(cute.arch.thread_idx())
        local tA, tB = thr:partition_A(mA), thr:partition_B(mB)
        local tC = thr:partition_C(mC)
        local rA, rB = thr:make_fragment_A(tA), thr:make_fragment_B(tB)
        local rC = thr:make_fragment_C(tC)
        cute.autovec_copy(tA, rA)
        cute.autovec_copy(tB, rB)
        rC:fill(0)
        for _ = 1, n do cute.gemm(mma, rC, rA, rB, rC) end
        cute.autovec_copy(rC, tC)
      end)(cute.zeros({16, 16}, cute.bf16), cute.zeros({8, 16}, cute.bf16),
           cute.zeros({16, 8}, cute.f32)):trace {block = 32}
      compiles(p)
      return p:cuda "sm_90a"
    end
    local call = "SM80_16x8x16_F32BF16BF16F32_TN("
    find(text_of_mmas(60), call .. "&rC[0], &rA[0], &rB[0]);")
    local text = text_of_mmas(110)
    assert.is_nil(text:find "r[ABC]%[%d")
    find(text, call .. "rC_0, rC_1, rC_2, rC_3, rA_0, rA_1, rA_2, rA_3, "
      .. "rB_0, rB_1);")
  end)
end)

describe("registers", function()
  it("copied over themselves are all read before any is written", function()
    assert.same({1, 1, 2, 3, 4, 6}, kernels.run(6, function(o)
      local n = cute.make_rmem_tensor({6}, cute.i32)
      for k = 0, 5 do n[k] = k + 1 end
      cute.copy(cute.make_copy_atom("UniversalCopy", cute.i32, 128),
        cute.make_tensor(n.iterator, cute.make_layout {4}),
        cute.make_tensor(n.iterator + 1, cute.make_layout {4}))
      for k = 0, 5 do o[k] = n[k] end
    end))
  end)

  -- Returns a kernel with n statements acc += x * y.
  local function kernel(dtype, n)
    return function(a, b)
      local x, y = cute.make_rmem_tensor({4}, dtype),
        cute.make_rmem_tensor({4}, dtype)
      cute.autovec_copy(a, x)
      y:fill(0)
      for k = 1, n do y[k % 4] = y[k % 4] + x[(k + 1) % 4] * x[k % 4] end
      cute.autovec_copy(y, b)
    end
  end

  local function text_of(dtype, n, opts)
    local p = cute.kernel("k", kernel(dtype, n))(cute.zeros({4}, dtype),
      cute.zeros({4}, dtype)):trace(opts or {block = 32})
    compiles(p)
    return p:cuda "sm_90a"
  end

  it("are arrays if few places use them", function()
    local text = text_of(cute.f32, 50)
    find(text, "float x[4];")
    find(text, "y[3] = y[3] + x[0] * x[3];")
  end)

  it("are scalars if many places use them", function()
    local text = text_of(cute.f32, 300)
    assert.is_nil(text:find("[xy]%[%d"))
    find(text, "float x_0, x_1, x_2, x_3;")
    find(text, "y_0 = y_1 = y_2 = y_3 = 0.0f;")
    find(text, "y_3 = y_3 + x_0 * x_3;")
    find(text, "x_0 = v.x; x_1 = v.y; x_2 = v.z; x_3 = v.w;")
    find(text, "*(float4 *)b = make_float4(y_0, y_1, y_2, y_3);")
  end)

  it("are accumulated by a macro if many places do so", function()
    local function text_of_sums(dtype, n)
      local p = cute.kernel("k", function(a, b)
        local x, y = cute.make_rmem_tensor({4}, dtype),
          cute.make_rmem_tensor({4}, dtype)
        cute.autovec_copy(a, x)
        y:fill(0)
        for k = 1, n do
          y[k % 4] = cute.fma(x[(k + 1) % 4], x[k % 4], y[k % 4])
        end
        y[0] = cute.fma(x[1], x[2], y[3])
        cute.autovec_copy(y, b)
      end)(cute.zeros({4}, dtype), cute.zeros({4}, dtype)):trace {block = 32}
      compiles(p)
      return p:cuda "sm_90a"
    end
    local text = text_of_sums(cute.f32, 400)
    assert.equal(400, select(2, text:gsub("FMA_TO%(y_%d, x_%d, x_%d%);", "")))
    find(text, "FMA_TO(y_3, x_0, x_3);")
    find(text, "y_0 = fmaf(x_1, x_2, y_3);")
    find(text_of_sums(cute.f32, 50), "y[3] = fmaf(x[0], x[3], y[3]);")
    find(text_of_sums(cute.f64, 400), "y_3 = fma(x_0, x_3, y_3);")
  end)

  it("of less than 32 bits are not packed if only moved #long", function()
    local function passing(bits, others)
      return function(i, _, o, g)
        local tid = cute.arch.thread_idx()
        local t = cute["i" .. bits]
        local function bytes(x, at, stride)
          return cute.make_tensor(cute.recast_tensor(x, t).iterator + at,
                                  cute.make_layout({6}, {stride}))
        end
        local r = cute.make_rmem_tensor({6}, t)
        cute.make_rmem_tensor({others or 1}, cute.f32):fill(0)
        local pred = cute.make_rmem_tensor({6}, cute.boolean)
        for k = 0, 5 do pred[k] = tid:lt(5 * k) end
        r:fill(7)
        cute.basic_copy_if(pred, bytes(i, tid * 2, 3), r)
        cute.autovec_copy(r, bytes(o, tid * OUT * (32 // bits), 2))
        local q = cute.make_rmem_tensor({12}, t)  -- packed; initialized
        q:fill(0)
        cute.copy(cute.make_copy_atom("UniversalCopy", t, bits),
          cute.make_tensor(r.iterator, cute.make_layout {1, 6}),
          cute.make_tensor(q.iterator, cute.make_layout({1, 6}, {0, 2})))
        for k = 0, 11 do o[tid * OUT + 12 + k] = q[k]:to(cute.i32) end
        g[tid * OUT] = 1
      end
    end
    for bits, name in pairs {[8] = "char", [16] = "short"} do
      local text = host_agrees(passing(bits))
      if text then
        find(text, ("signed %s r[6];"):format(name):gsub("signed sh", "sh"))
        find(text, "r[5] = ")
        find(host_agrees(passing(bits, 600)), "r[0] & ")  -- a masked half
      end
    end
  end)

  it("move as vectors of their own type", function()
    for name, vector in pairs {f64 = "double2", i32 = "int4", u32 = "uint4",
                               i64 = "longlong2", u64 = "ulonglong2"} do
      local text = text_of(cute[name], 300)
      find(text, ("= *(const %s *)a;"):format(vector))
      find(text, ("*(%s *)b = make_%s("):format(vector, vector))
    end
  end)

  it("stay arrays if an atom takes a pointer to them", function()
    local text = require("spec.emit.golden_kernels").warpmma():cuda "sm_80"
    find(text, "(&tCrC[0], &tCrA[0], &tCrB[0])")
  end)
end)

describe("loops in emitted text", function()
  -- Returns the emitted text of a kernel with `copies` equal loops, which have
  -- `trips` iterations each.
  local function text_of(copies, trips, opts)
    local p = cute.kernel("k", function(x)
      local tid = cute.arch.thread_idx()
      for c = 1, copies do
        local acc = x[tid + c]
        for k in cute.range(trips, opts) do
          for o = 1, 4 do acc = acc * x[(k * 8 + o + c) % 64] + x[k + o] end
        end
        x[tid + c] = acc
      end
    end)(cute.zeros({1024}, cute.f32)):trace {block = 32}
    return p:cuda()
  end
  local function count(text, what) return select(2, text:gsub(what, "%0")) end

  it("are left to the compiler if unrolling makes few copies", function()
    for _, n in ipairs {{1, 32}, {4, 32}, {32, 2}} do
      local text = text_of(n[1], n[2])
      assert.equal(n[1], count(text, "for %(int k"))
      assert.equal(0, count(text, "#pragma unroll"))
    end
  end)

  it("are not unrolled into many copies unless the script asks", function()
    local text = text_of(64, 32)
    assert.equal(64, count(text, "for %(int k"))
    assert.equal(64, count(text, "#pragma unroll 1\n"))
    text = text_of(64, 32, {unroll = 4})
    assert.equal(64, count(text, "#pragma unroll 4\n"))
    assert.equal(0, count(text, "#pragma unroll 1\n"))
  end)

  it("index registers if they are completely unrolled", function()
    local function looping(n, unroll)
      return cute.kernel("k", function(x, y)
        local r = cute.make_rmem_tensor({12}, cute.f32)
        cute.autovec_copy(x, r)
        for i in cute.range(n, {unroll = unroll}) do r[i] = r[11 - i] * 2 end
        cute.autovec_copy(r, y)
      end)(cute.zeros({12}, cute.f32), cute.zeros({12}, cute.f32)):trace {
        block = 1}
    end
    local p = looping(12, 12)
    local text = p:cuda()
    assert.truthy(text:find(" = r[11 - i];", 1, true), text)
    assert.truthy(text:find("\n    r[i] = ", 1, true), text)
    assert.equal(0, #p.warnings)
    for _, c in ipairs {{12, 11}, {12, nil}} do
      p = looping(c[1], c[2])
      assert.truthy(p:cuda():find "local_register%(r, ")
      assert.equal(1, #p.warnings)
    end
  end)

  it("are not unrolled if they wait for an mbarrier", function()
    local function waiting(opts)
      return (cute.kernel("k", function(x, n)
        local bar = cute.arch.alloc_smem(cute.i64, 1)
        for _ in cute.range(n) do
          for k in cute.range(n, opts) do
            cute.when(x[k]:gt(0), function()
              cute.arch.mbarrier_wait(bar, k & 1)
            end)
          end
          for k in cute.range(n) do x[k] = 1 end
        end
      end)(cute.zeros({32}, cute.f32), 4):trace {block = 32}:cuda())
    end
    local text = waiting()
    assert.equal(3, count(text, "for %("))
    assert.equal(1, count(text, "#pragma unroll"))
    assert.truthy(text:find "#pragma unroll 1\n *for [^{]*{[^}]*mbar_wait")
    assert.equal(1, count(waiting {unroll = 2}, "#pragma unroll 2\n"))
  end)
end)
-- SPDX-License-Identifier: MIT
