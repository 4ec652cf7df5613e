-- Tests raw kernels, which the user writes in CUDA C.
local core = require "cute.core"
local cute = require "cute"
local jit = require "cute.jit"
local kernels = require "spec.kernels"
local support = require "spec.support"

local ADD = [[
typedef unsigned u32;
struct Pair { int a, b; };  // what `/* __global__ void no(int) {` is not
extern "C" __global__ void __launch_bounds__(128, 1)
add(const float *__restrict__ x, float *y, int n, const struct Pair p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + p.a * p.b;
}
extern "C" __global__ void none(void) {}
typedef const unsigned   short
  *u16p; typedef unsigned long long int u64;
extern "C" __global__ void each(signed char a, const unsigned long long b,
    bool c, double d, unsigned e, u32 f, float (*g)[4], size_t const h,
    const u64 i, struct Pair j) {}
]]

-- Copies a box of 16 x 8 from one matrix to another.
local BOX = [[
struct __align__(64) CUtensorMap { unsigned long long words[16]; };
extern "C" __global__ void box(const __grid_constant__ CUtensorMap from,
                               const __grid_constant__ CUtensorMap to,
                               int x, int y) {
  __shared__ __align__(128) float s[16 * 8];
  __shared__ unsigned long long bar;
  unsigned at = (unsigned)__cvta_generic_to_shared(s);
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
  asm volatile("fence.proxy.async;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;"
               :: "r"(b) : "memory");
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global"
    ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
    :: "r"(at), "l"(&from), "r"(x), "r"(y), "r"(b) : "memory");
  asm volatile("{ .reg .pred p;\n"
    "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
    "@!p bra WAIT; }" :: "r"(b) : "memory");
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
    " [%0, {%2, %3}], [%1];" :: "l"(&to), "r"(at), "r"(y), "r"(x) : "memory");
  asm volatile("cp.async.bulk.commit_group;\n"
               "cp.async.bulk.wait_group 0;" ::: "memory");
}]]
local cpasync = cute.nvgpu.cpasync

-- Returns two matrices with rows of 40 f32, and TMA atoms that load from the
-- first matrix and store to the second.
local function box_atoms()
  local X = kernels.tensor({20, 40}, cute.f32, function(i) return i end)
  local Y = kernels.tensor({32, 40}, cute.f32, function() return -1 end)
  local function atom(op, t)
    return (cpasync.make_tiled_tma_atom(op(), t,
      cute.make_layout({8, 16}, {16, 1}), {8, 16}))
  end
  return X, Y, atom(cpasync.CopyBulkTensorTileG2SOp, X),
    atom(cpasync.CopyBulkTensorTileS2GOp, Y)
end

local function types(k)
  local list = {}
  for i, p in ipairs(k.params) do
    list[i] = p.pointer and (p.written and "*" or "const *")
      or tostring(p.dtype)
  end
  return table.concat(list, " ")
end

describe("raw kernels", function()
  it("have the parameters of their text", function()
    assert.equal("const * * i32 nil", types(cute.raw_kernel(ADD)))
    assert.equal("", types(cute.raw_kernel(ADD, {name = "none"})))
    assert.equal("i8 u64 boolean f64 u32 u32 * u64 u64 nil",
                 types(cute.raw_kernel(ADD, {name = "each"})))
    assert.equal("raw kernel add", tostring(cute.raw_kernel(ADD)))
  end)

  it("are read in linear time", function()
    local n = 65536
    for _, text in ipairs {"__global__ " .. ("("):rep(n), ("/*"):rep(n),
        "__global__ " .. ("a"):rep(n) .. "(", ("__global__ f("):rep(n // 8),
        "__global__" .. (" "):rep(n) .. "(", ("typedef "):rep(n),
        "typedef" .. (" "):rep(n), "typedef " .. ("a "):rep(n), ("'"):rep(n),
        ('"'):rep(n + 1), ('"\\'):rep(n), ("__global__ ()"):rep(n // 8)} do
      local start = os.clock()
      support.raises("the text has no __global__ function", function()
        cute.raw_kernel(text)
      end)
      assert.truthy(os.clock() - start < 5, text:sub(1, 20))
    end
    local many = cute.raw_kernel("__global__ void f(" .. ("("):rep(n)
      .. "int a" .. (")"):rep(n) .. ") {}")
    assert.equal(1, #many.params)
  end)

  it("see neither comments nor strings as text", function()
    local k = cute.raw_kernel [[
      // __global__ void a(int) {}
      const char *s = "__global__ void b(int) {} // \" /*";
      char c = '"', d = '\''; int e = 1'000'000;
      typedef short /* } */ small; // typedef float small;
      __global__ void no(int); __global__ int none; __global__ /* k */
      void __launch_bounds__(f(1, 2)) /* ( */ k(small /* , */ a, // )
        float *b) { __global__ void inner(); }]]
    assert.equal("k", k.name)
    assert.equal("i16 *", types(k))
    assert.equal("small a", k.params[1].text)
  end)

  it("compile without a GPU, for each architecture once", function()
    if not jit.version() then return pending "needs NVRTC" end
    local k = cute.raw_kernel(ADD, {name = "each"})
    for _, arch in ipairs {"sm_80", "sm_90a"} do
      local out = assert(k:compile(arch))
      assert.equal("\x7fELF", out.cubin:sub(1, 4))
      assert.equal(out, k:compile(arch))
    end
    local ok, message = cute.raw_kernel "__global__ void k(int a) { b = a; }"
      :compile "sm_80"
    assert.is_nil(ok)
    assert.truthy(message:find("kernel 'k' does not compile for sm_80: k.cu:1: "
      .. "error", 1, true), message)
  end)

  it("report wrong arguments", function()
    local k, X = cute.raw_kernel(ADD), cute.zeros({4}, cute.f32)
    local pair = ("\0"):rep(8)
    support.raises("raw_kernel: the text has no __global__ function "
      .. "[bad-argument]", function() cute.raw_kernel "int f() {}" end)
    support.raises("raw_kernel: the text has no kernel 'sub': there are add, "
      .. "none, each [bad-argument]",
      function() cute.raw_kernel(ADD, {name = "sub"}) end)
    support.raises("raw_kernel: no option 'nmae' (did you mean name?)",
      function() cute.raw_kernel(ADD, {nmae = "add"}) end)
    support.raises("raw_kernel: smem = 1.5; integer is needed",
      function() cute.raw_kernel(ADD, {smem = 1.5}) end)
    support.raises("kernel add takes 4 arguments (const float *__restrict__ x, "
      .. "float *y, int n, const struct Pair p), got 2 [bad-launch]",
      function() k(X, X) end)
    support.raises("kernel add: argument 2 is 3, but the parameter `float *y` "
      .. "takes a tensor or a buffer [bad-argument]",
      function() k(X, 3, 4, pair) end)
    support.raises("kernel add: argument 3 is tensor ptr[f32,host] o (4):(1), "
      .. "but the parameter `int n` takes a number",
      function() k(X, X, X, pair) end)
    support.raises("kernel add: argument 4 is 1, but the parameter `const "
      .. "struct Pair p` takes its bytes as a string, {element type, number} "
      .. "or a TMA atom",
      function() k(X, X, 4, 1) end)
    support.raises("kernel add is raw CUDA C, which only a GPU can run: the "
      .. "simulator runs traced kernels [bad-launch]", function()
      k(X, X, 4, pair):launch {grid = 1, block = 32, device = "sim"}
    end)
    support.raises("no option 'budget'", function()
      k(X, X, 4, pair):launch {grid = 1, block = 32, budget = 1}
    end)
    local run = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)
    support.raises("the tensor has neither host nor GPU memory",
      function() k(X, X, 4, run) end)
    local atom = select(3, box_atoms())
    support.raises("the parameter `float *y` takes a tensor or a buffer",
      function() k(X, atom, 4, pair) end)
    if not cute.device "gpu" then
      local ok, why = k(X, X, 4, pair):launch {grid = 1, faults = "return"}
      assert.is_nil(ok)
      assert.truthy(why:find "%[no%-gpu%]", why)
    end
  end)
end)

local CLUSTER = [[
extern "C" __global__ void ranks(unsigned *out) {
  unsigned r, n;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
  extern __shared__ unsigned s[];
  s[blockDim.x - 1 - threadIdx.x] = r + 10 * n;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x];
}]]

describe("raw kernels on a GPU #gpu", function()
  local function iota(n, scale)
    return kernels.tensor({n}, cute.f32, function(i) return scale * i end)
  end

  it("copy host tensors back, except const ones", function()
    local k, X, Y = cute.raw_kernel(ADD), iota(100, 1), iota(100, 0)
    assert.is_true(k(X, Y, 99, string.pack("<i4i4", 3, 5)):launch {
      grid = 4, block = 32})
    for i = 0, 99 do
      assert.equal(i, X[i])
      assert.equal(i < 99 and i + 15 or 0, Y[i])
    end
  end)

  it("work on GPU memory, repeatedly", function()
    local device = assert(cute.device "gpu")
    local x = cute.zeros({64}, cute.u32)
    local b = assert(device.dev:buffer((core.param_memory(x))))
    local k = cute.raw_kernel(CLUSTER, {block = 32, smem = 128})
    local run = assert(k(core.on_device(x, b)):compile {
      grid = 2, cluster = 2, pdl = true})
    assert.is_true(run:launch())
    run:launch_n(3)
    b:download((core.param_memory(x)))
    for i = 0, 63 do assert.equal(20 + i // 32, x[i]) end
  end)

  it("take tensor maps from TMA atoms", function()
    local X, Y, from, to = box_atoms()
    local k = cute.raw_kernel(BOX)
    k(from, to, 24, 16):launch {grid = 1, block = 1, arch = "sm_90a"}
    for i = 0, 31 do
      for j = 0, 39 do
        -- The box at (16,24) of X is copied to (24,16) of Y.
        local x, y = j + 8, i - 8
        local inside = j >= 16 and j < 32 and i >= 24 and i < 32
        local want = inside and y < 20 and x < 40 and X(y, x)
          or inside and 0 or -1
        assert.equal(want, Y(i, j), i .. "," .. j)
      end
    end
    support.raises("kernel argument 1 has 8 bytes, not 128", function()
      cute.raw_kernel 'extern "C" __global__ void k(float2 a) {}' (from)
        :launch {grid = 1, block = 1, arch = "sm_90a"}
    end)
  end)

  it("reject arguments of the wrong size", function()
    support.raises("kernel argument 4 has 8 bytes, not 4", function()
      cute.raw_kernel(ADD)(iota(4, 1), iota(4, 1), 4, {cute.u32, 1}):launch {
        grid = 1, block = 32}
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
