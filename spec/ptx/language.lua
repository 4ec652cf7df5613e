--- Kernels of CUDA C with device functions, printf and headers of the toolkit,
-- with expected results computed in Lua. Each entry has a name, a text, the
-- launch's options, and a function make(n). make(n) returns the arguments and a
-- function that returns a message for a wrong result. `toolkit`: which toolkit
-- headers the text includes, "libcu" or "cub".
local cute = require "cute"
local support = require "spec.support"

local function ints(n, f)
  local t = cute.zeros({n}, cute.i32)
  for i = 0, n - 1 do t[i] = f and f(i) or 0 end
  return t
end

local function floats(n, f)
  local t = cute.zeros({n}, cute.f32)
  for i = 0, n - 1 do t[i] = f and f(i) or 0 end
  return t
end

local function noise(i) return (i * 7919 + 13) % 101 - 50 end

-- Returns a check that the first n elements of y are want(i).
local function equals(y, n, want)
  return function()
    for i = 0, n - 1 do
      if y[i] ~= want(i) then
        return ("element %d is %s, not %s"):format(i, y[i], want(i))
      end
    end
  end
end

local list = {}
local function add(k) list[#list + 1] = k end

---------------------------------------------------------------------------
-- Device functions
---------------------------------------------------------------------------

add {name = "structs_by_value_and_pointers_to_local_memory", text = [[
struct P { float a; int b; double c; };
__device__ __noinline__ float sum(float x, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x * i;
  return s;
}
__device__ __noinline__ P change(P p, int k) {
  p.a += k; p.b *= k; p.c -= k;
  return p;
}
__device__ __noinline__ void twice(int *a, int n) {
  for (int i = 0; i < n; i++) a[i] = a[i] * 2 + i;
}
__device__ __noinline__ signed char narrow(signed char c, unsigned short h,
                                           bool q) {
  return q ? c + h : c - h;
}
extern "C" __global__ void k(float *o, const int *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  P p{(float)in[i], i, i * 0.5};
  p = change(p, i % 7);
  int a[8];
  for (int j = 0; j < 8; j++) a[j] = i + j;
  twice(a, 8);
  o[i] = sum(in[i], i % 5) + p.a + p.b + (float)p.c + a[i & 7]
    + narrow((signed char)i, (unsigned short)(i * 3), i & 1);
}]], make = function(n)
  local x, y = ints(n, noise), floats(n)
  local function i8(v) return (v + 128) % 256 - 128 end
  return {y, x, n}, equals(y, n, function(i)
    local k, m, j = i % 7, i % 5, i % 8
    return noise(i) * (m * (m - 1) // 2) + noise(i) + k + i * k + i / 2 - k
      + 2 * (i + j) + j
      + i8(i % 2 == 1 and i8(i) + i * 3 or i8(i) - i * 3)
  end)
end}

add {name = "functions_that_call_functions", text = [[
__device__ __noinline__ int clamp(int v, int least, int most) {
  if (v < least) return least;
  if (v > most) return most;
  return v;
}
__device__ __noinline__ int work(const int *x, int i, int n, int depth) {
  int r = 0;
  for (int k = 0; k < depth; k++) {
    if (k == 5) return -r;
    r += clamp(x[(i + k) % n], -20, 20);
  }
  return r;
}
extern "C" __global__ void k(int *y, const int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = work(x, i, n, i % 8) + clamp(i, 3, 30);
}]], make = function(n)
  local x, y = ints(n, noise), ints(n)
  local function clamp(v, a, b) return math.max(a, math.min(b, v)) end
  return {y, x, n}, equals(y, n, function(i)
    local r = 0
    for k = 0, math.min(i % 8, 5) - 1 do
      r = r + clamp(noise((i + k) % n), -20, 20)
    end
    return (i % 8 > 5 and -r or r) + clamp(i, 3, 30)
  end)
end}

add {name = "a_barrier_inside_a_function", text = [[
__device__ __noinline__ void put(int *to, int v) { *to = v; __syncthreads(); }
extern "C" __global__ void k(int *y, const int *x, int n) {
  __shared__ int s[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  put(&s[t], i < n ? x[i] : 0);
  int v = s[63 - t];
  __syncthreads();
  put(&s[63 - t], v);
  if (i < n) y[i] = s[t];
}]], make = function(n)
  local x, y = ints(n, noise), ints(n)
  return {y, x, n}, equals(y, n, function(i)
    local at = i // 64 * 64 + 63 - (i % 64)
    at = at // 64 * 64 + 63 - (at % 64)
    return at < n and noise(at) or 0
  end)
end}

add {name = "structures_read_by_index", text = [[
struct Modes { int n, size[6]; float scale[6]; };
__device__ __noinline__ float sum(const Modes *m, int i) {
  float r = 0;
  for (int d = 0; d < m->n; d++) {
    r += i % m->size[d] * m->scale[d];
    i /= m->size[d];
  }
  return r;
}
extern "C" __global__ void k(float *y, const __grid_constant__ Modes m,
                             int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sum(&m, i) + m.scale[i % 6];
}]], make = function(n)
  local y, size, scale = floats(n), {3, 5, 2, 4}, {0.5, 8, 64, 256, 7, 9}
  local bytes = ("<i4i4i4i4i4i4i4ffffff"):pack(4, 3, 5, 2, 4, 0, 0,
    table.unpack(scale))
  return {y, bytes, n}, equals(y, n, function(i)
    local r, rest = scale[i % 6 + 1], i
    for d = 1, 4 do
      r, rest = r + rest % size[d] * scale[d], rest // size[d]
    end
    return r
  end)
end}

add {name = "tables_of_pointers", text = [[
__device__ float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
__constant__ float *rows[2] = {a, b + 1};
__constant__ float **both[1] = {rows};
__constant__ int add[3] = {7, 8, 9};
extern "C" __global__ void k(float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = both[0][i & 1][i % 3] + add[i % 3];
}]], make = function(n)
  local y = floats(n)
  return {y, n}, equals(y, n, function(i)
    return (i & 1) * 5 + 1 + i % 3 + 7 + i % 3
  end)
end}

add {name = "pointers_to_three_memories", text = [[
__device__ __noinline__ int sorted(const int *p, int n) {
  int v[16], r = 0;
  for (int i = 0; i < 16; i++) v[i] = p[i * n & 15];
  for (int i = 0; i < 16; i++)
    for (int j = i + 1; j < 16; j++)
      if (v[j] < v[i]) { int t = v[i]; v[i] = v[j]; v[j] = t; }
  for (int i = 0; i < 16; i++) r = r * 3 + v[i];
  return r + v[n & 15];
}
extern "C" __global__ void k(int *y, const int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, own[16];
  __shared__ int all[16];
  for (int j = 0; j < 16; j++) own[j] = x[(i + j) % n];
  if (threadIdx.x < 16) all[threadIdx.x] = x[(threadIdx.x + 5) % n];
  __syncthreads();
  if (i < n) y[i] = sorted(i & 1 ? own : i & 2 ? all : y + n, i);
}]], make = function(n)
  local x, y = ints(n, noise), ints(n + 16, function(i) return i % 7 end)
  return {y, x, n}, equals(y, n, function(i)
    local v, r = {}, 0
    for k = 0, 15 do
      local at = k * i & 15
      v[k + 1] = i & 1 == 1 and noise((i + at) % n)
        or i & 2 == 2 and noise((at + 5) % n) or (n + at) % 7
    end
    table.sort(v)
    for k = 1, 16 do r = r * 3 + v[k] end
    r = r + v[(i & 15) + 1]
    return (r + 2 ^ 31 | 0) % 2 ^ 32 - 2 ^ 31
  end)
end}

---------------------------------------------------------------------------
-- Cooperative groups
---------------------------------------------------------------------------

add {name = "a_grid_that_synchronises", toolkit = "libcu", cooperative = true,
  text = [[
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int *x, int *y, int n) {
  auto g = cg::this_grid();
  int i = g.thread_rank();
  if (i < n) x[i] = i * 3;
  g.sync();
  if (i < n) y[i] = x[n - 1 - i];
  g.sync();
  if (i < n) x[i] = y[n - 1 - i] + 1;
}]], make = function(n)
  local x, y = ints(n), ints(n)
  return {x, y, n}, equals(x, n, function(i) return i * 3 + 1 end)
end}

add {name = "tiles_that_reduce_and_scan", toolkit = "libcu", text = [[
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int *y, const int *x, int n) {
  auto b = cg::this_thread_block();
  auto t = cg::tiled_partition<16>(b);
  int i = b.group_index().x * b.size() + b.thread_rank();
  int v = i < n ? x[i] : 0;
  int s = cg::reduce(t, v, cg::plus<int>());
  int m = cg::reduce(t, v, cg::greater<int>());
  int e = cg::exclusive_scan(t, v);
  auto l = cg::labeled_partition(t, v & 3);
  if (i < n) y[i] = s + 1000 * m + 100000 * e + (int)l.size();
}]], make = function(n)
  local x, y = ints(n, noise), ints(n)
  return {y, x, n}, equals(y, n, function(i)
    local sum, most, before, same = 0, math.mininteger, 0, 0
    for k = i // 16 * 16, i // 16 * 16 + 15 do
      local v = k < n and noise(k) or 0
      sum, most = sum + v, math.max(most, v)
      if k < i then before = before + v end
      if v & 3 == noise(i) & 3 then same = same + 1 end
    end
    return sum + 1000 * most + 100000 * before + same
  end)
end}

add {name = "tiles_of_two_warps", toolkit = "libcu", text = [[
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int *y, const int *x, int n) {
  __shared__ cg::block_tile_memory<64> memory;
  auto b = cg::this_thread_block(memory);
  auto t = cg::tiled_partition<64>(b);
  int i = blockIdx.x * 64 + threadIdx.x, v = i < n ? x[i] : 0, m = 0;
  int s = cg::reduce(t, v, cg::plus<int>());
  if (v > 0) {
    auto c = cg::coalesced_threads();
    m = c.shfl(v, 0) + 100 * c.size() + 10000 * c.thread_rank();
  }
  if (i < n) y[i] = s + 1000000 * m;
}]], make = function(n)
  local x, y = ints(n, noise), ints(n)
  return {y, x, n}, equals(y, n, function(i)
    local sum, first, size, rank = 0, nil, 0, 0
    for k = i // 64 * 64, i // 64 * 64 + 63 do
      local v = k < n and noise(k) or 0
      sum = sum + v
      if k // 32 == i // 32 and v > 0 then
        first, size = first or v, size + 1
        if k < i then rank = rank + 1 end
      end
    end
    local m = noise(i) > 0 and first + 100 * size + 10000 * rank or 0
    return (sum + 1000000 * m + (1 << 31)) % (1 << 32) - (1 << 31)
  end)
end}

add {name = "a_grid_that_arrives_and_waits", toolkit = "libcu",
  cooperative = true, text = [[
#include <cooperative_groups.h>
extern "C" __global__ void k(float *x, int n) {
  auto g = cooperative_groups::this_grid();
  for (int t = 0; t < 3; t++) {
    for (unsigned i = g.thread_rank(); i < n; i += g.size())
      x[(t + 1) % 2 * n + i] = 0.5f * (x[t % 2 * n + (i + 1) % n]
                                       + x[t % 2 * n + (i + n - 1) % n]);
    auto token = g.barrier_arrive();
    g.barrier_wait(std::move(token));
  }
}]], make = function(n)
  local x, was = floats(2 * n, noise), {}
  for i = 0, n - 1 do was[i] = noise(i) end
  for _ = 1, 3 do
    local now = {}
    for i = 0, n - 1 do now[i] = (was[(i + 1) % n] + was[(i - 1) % n]) / 2 end
    was = now
  end
  return {x, n}, function()
    for i = 0, n - 1 do
      if x[n + i] ~= was[i] then return ("element %d: %s"):format(i, x[n + i])
      end
    end
  end
end}

---------------------------------------------------------------------------
-- libcu++
---------------------------------------------------------------------------

add {name = "barriers_with_tokens", toolkit = "libcu", text = [[
#include <cuda/barrier>
#include <cooperative_groups.h>
extern "C" __global__ void k(int *y, const int *x, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ int s[64];
  if (threadIdx.x == 0) init(&b, blockDim.x);
  __syncthreads();
  for (int r = 0; r < 3; r++) {
    int i = (blockIdx.x * 3 + r) * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    auto token = b.arrive();
    b.wait(std::move(token));
    if (i < n) y[i] = s[blockDim.x - 1 - threadIdx.x];
    b.arrive_and_wait();
  }
}]], make = function(n)
  local x, y = ints(n, noise), ints(n)
  return {y, x, n}, equals(y, n, function(i)
    local at = i // 64 * 64 + 63 - i % 64
    return at < n and noise(at) or 0
  end)
end}

local function staged(text)
  return [[
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int *y, const int *x, int n) {
  int tiles = n / 64, f = 0;
]] .. text .. "}\n"
end

-- Makes the problem of reversing each tile of 64 elements.
local function reversed(n)
  local x, y = ints(n, noise), ints(n)
  return {y, x, n}, equals(y, n // 64 * 64, function(i)
    return noise(i // 64 * 64 + 63 - i % 64)
  end)
end

add {name = "a_pipeline_of_a_thread", toolkit = "libcu", one = true,
  text = staged [[
  __shared__ int s[3][64];
  auto pipe = cuda::make_pipeline();
  for (int t = 0; t < tiles; t++) {
    for (; f < tiles && f < t + 3; f++) {
      pipe.producer_acquire();
      cuda::memcpy_async(&s[f % 3][threadIdx.x], x + f * 64 + threadIdx.x,
                         cuda::aligned_size_t<4>(4), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    __syncthreads();
    y[t * 64 + threadIdx.x] = s[t % 3][63 - threadIdx.x];
    __syncthreads();
    pipe.consumer_release();
  }]], make = reversed}

add {name = "a_pipeline_of_a_block", toolkit = "libcu", one = true,
  text = staged [[
  __shared__ int s[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto b = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(b, &state);
  for (int t = 0; t < tiles; t++) {
    for (; f < tiles && f < t + 2; f++) {
      pipe.producer_acquire();
      cuda::memcpy_async(b, &s[f % 2][0], x + f * 64, sizeof(int) * 64, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    y[t * 64 + threadIdx.x] = s[t % 2][63 - threadIdx.x];
    pipe.consumer_release();
  }]], make = reversed}

add {name = "roles_of_a_pipeline", toolkit = "libcu", one = true,
  text = staged [[
  __shared__ int s[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto b = cg::this_thread_block();
  auto w = cg::tiled_partition<32>(b);
  bool first = b.thread_rank() < 32;
  auto pipe = cuda::make_pipeline(b, &state, first
    ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  for (; f < tiles; f++) {
    if (first) {
      pipe.producer_acquire();
      cuda::memcpy_async(w, &s[f % 2][0], x + f * 64,
                         cuda::aligned_size_t<4>(256), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      for (int j = threadIdx.x - 32; j < 64; j += 32)
        y[f * 64 + j] = s[f % 2][63 - j];
      pipe.consumer_release();
    }
  }]], make = reversed}

add {name = "copies_with_a_barrier", toolkit = "libcu", one = true,
  text = "#include <cuda/barrier>\n" .. staged [[
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(16) int s[64];
  auto b = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  b.sync();
  for (; f < tiles; f++) {
    cuda::memcpy_async(b, s, x + f * 64, cuda::aligned_size_t<4>(256), bar);
    bar.arrive_and_wait();
    y[f * 64 + threadIdx.x] = s[63 - threadIdx.x];
    bar.arrive_and_wait();
  }]], make = reversed}

add {name = "copies_of_a_group", toolkit = "libcu", one = true,
  text = "#include <cooperative_groups/memcpy_async.h>\n" .. staged [[
  __shared__ int s[2][64];
  auto b = cg::this_thread_block();
  if (tiles) cg::memcpy_async(b, s[0], x, 256);
  for (; f < tiles; f++) {
    if (f + 1 < tiles) {
      cg::memcpy_async(b, s[(f + 1) % 2], x + (f + 1) * 64, 256);
      cg::wait_prior<1>(b);
    } else {
      cg::wait(b);
    }
    y[f * 64 + threadIdx.x] = s[f % 2][63 - threadIdx.x];
    b.sync();
  }]], make = reversed}

add {name = "bulk_copies_with_tokens", toolkit = "libcu", one = true,
  arch = "sm_90a", text = "#include <cuda/barrier>\n#include <cuda/ptx>\n"
  .. staged [[
  namespace ptx = cuda::ptx;
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(16) int s[64];
  __shared__ Barrier bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  for (; f < tiles; f++) {
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
      cuda::device::memcpy_async_tx(s, x + f * 64,
                                    cuda::aligned_size_t<16>(256), bar);
      token = cuda::device::barrier_arrive_tx(bar, 1, 256);
    } else {
      token = bar.arrive();
    }
    bar.wait(std::move(token));
    int v = s[63 - threadIdx.x];
    __syncthreads();
    s[threadIdx.x] = v;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + f * 64, s,
                         256);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    __syncthreads();
  }]], make = reversed}

add {name = "atomic_references", toolkit = "libcu", text = [[
#include <cuda/atomic>
extern "C" __global__ void k(int *c, int *y, unsigned long long *z, float *w,
                             int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> a(c[0]), d(c[1]);
  y[a.fetch_add(1, cuda::std::memory_order_relaxed)] = 1;
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> b(*z);
  b.fetch_max(1000ull * i);
  cuda::atomic_ref<float, cuda::thread_scope_device>(*w).fetch_add(0.5f);
  int e = d.load();
  while (!d.compare_exchange_weak(e, e + 3)) {}
}]], make = function(n)
  local c, y = ints(2), ints(n)
  local z, w = cute.zeros({1}, cute.u64), floats(1)
  return {c, y, z, w, n}, function()
    if c[0] ~= n or c[1] ~= 3 * n or w[0] ~= n / 2 or z[0] ~= 1000 * (n - 1)
    then
      return ("%s, %s, %s, %s"):format(c[0], c[1], w[0], z[0])
    end
    return equals(y, n, function() return 1 end)()
  end
end}

---------------------------------------------------------------------------
-- CUB
---------------------------------------------------------------------------

-- Types of the CUDA runtime that CUB mentions but NVRTC does not define.
list.cub = [[
typedef int cudaError_t;
enum {cudaSuccess};
enum cudaSharedMemConfig {cudaSharedMemBankSizeDefault,
  cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte};
]]

add {name = "cub_reduces_and_scans", toolkit = "cub", text = [[
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_scan.cuh>
extern "C" __global__ void k(int *y, const int *x, int n) {
  typedef cub::BlockReduce<int, 64> Reduce;
  typedef cub::BlockScan<int, 64> Scan;
  typedef cub::WarpScan<int> Warp;
  __shared__ typename Reduce::TempStorage r;
  __shared__ typename Scan::TempStorage s;
  __shared__ typename Warp::TempStorage w[2];
  int i = blockIdx.x * 64 + threadIdx.x, v = i < n ? x[i] : 0, e, all, f;
  int sum = Reduce(r).Sum(v);
  Scan(s).ExclusiveSum(v, e, all);
  Warp(w[threadIdx.x / 32]).InclusiveSum(v, f);
  if (threadIdx.x == 0) e += sum - all;
  if (i < n) y[i] = e * 10000 + f;
}]], make = function(n)
  local x, y = ints(n, noise), ints(n)
  return {y, x, n}, equals(y, n, function(i)
    local e, f = 0, 0
    for k = i // 64 * 64, i do
      if k < i then e = e + noise(k) end
      if k // 32 == i // 32 then f = f + noise(k) end
    end
    return e * 10000 + f
  end)
end}

add {name = "cub_sorts", toolkit = "cub", one = true, text = [[
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/block/block_radix_sort.cuh>
extern "C" __global__ void k(int *y, const int *x, int n) {
  typedef cub::BlockRadixSort<int, 64, 4> Sort;
  typedef cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_TRANSPOSE> Load;
  typedef cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_TRANSPOSE> Store;
  __shared__ union {
    typename Sort::TempStorage s;
    typename Load::TempStorage l;
    typename Store::TempStorage w;
  } t;
  int keys[4];
  Load(t.l).Load(x, keys, n, 0x7fffffff);
  __syncthreads();
  Sort(t.s).Sort(keys);
  __syncthreads();
  Store(t.w).Store(y, keys, n);
}]], make = function(n)
  local x, y, sorted = ints(n, noise), ints(n), {}
  for i = 0, n - 1 do sorted[i + 1] = noise(i) end
  table.sort(sorted)
  return {y, x, n}, equals(y, n, function(i) return sorted[i + 1] end)
end}

---------------------------------------------------------------------------
-- Faults
---------------------------------------------------------------------------

-- Kernels of the list with a planted fault: {name, text, its replacement, part
-- of a line that the report must name}.
list.faults = {}
for _, f in ipairs {
  {"a_pipeline_of_a_block", "pipe.consumer_wait();", "", "s[t %"},
  {"barriers_with_tokens", "b.wait(std::move(token));", "", "y[i] ="},
  {"copies_with_a_barrier", "bar.arrive_and_wait();\n    y", "\n    y", "y["},
  {"copies_of_a_group", "cg::wait_prior<1>(b);", "", "y["},
  {"a_grid_that_synchronises", "g.sync();", "", "y[i] ="},
  {"tiles_that_reduce_and_scan", "if (i < n) y[i]", "y[i]", "y[i] ="},
  {"cub_reduces_and_scans", "int sum = Reduce(r).Sum(v);",
    "int sum = Reduce(r).Sum(v); Reduce(r).Sum(v);", "Sum(v)"}} do
  for _, k in ipairs(list) do
    if k.name == f[1] then
      list.faults[#list.faults + 1] = {name = "wrong_" .. k.name,
        text = support.change(k.text, f[2], 1, f[3]),
        toolkit = k.toolkit, one = k.one, cooperative = k.cooperative,
        make = k.make, line = f[4]}
    end
  end
end

return list
-- SPDX-License-Identifier: MIT
