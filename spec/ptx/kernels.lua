--- Kernels of CUDA C in the style of other projects, with expected results
-- computed in Lua. Each entry has a name, the text of the function, launch =
-- {grid, block, smem, cluster}, and a function args(n). args(n) returns the
-- arguments and {output = reference(i)}.
local cute = require "cute"

local function ints(n, f)
  local t = cute.zeros({n}, cute.i32)
  for i = 0, n - 1 do t[i] = f(i) end
  return t
end

local function floats(n, f)
  local t = cute.zeros({n}, cute.f32)
  for i = 0, n - 1 do t[i] = f(i) end
  return t
end

local function noise(i) return (i * 7919 + 13) % 101 - 50 end

local function trunc(a, b)
  local q = math.abs(a) // math.abs(b)
  return (a < 0) ~= (b < 0) and -q or q
end

local INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
local list = {}
local function add(k) list[#list + 1] = k end

add {name = "switch_with_fallthrough", text = INDEX .. [[
  if (i >= n) return;
  int v = x[i], r;
  switch (v % 9) {
    case 0: r = 1; break;
    case 1: r = v * 3; break;
    case 2: v ^= 5;
    case 3: r = v + 7; break;
    case 4: return;
    case 5: r = -v; break;
    case 6: r = v << 2; break;
    default: r = 100;
  }
  y[i] = r;]], params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, function(i) return math.abs(noise(i)) end)
    return {x, ints(n, function() return -7 end), n}, 2, function(i)
      local v = x[i]
      local k = v % 9
      if k == 0 then return 1 elseif k == 1 then return v * 3
      elseif k == 2 then return (v ~ 5) + 7 elseif k == 3 then return v + 7
      elseif k == 4 then return -7 elseif k == 5 then return -v
      elseif k == 6 then return v << 2 end
      return 100
    end
  end}

add {name = "break_continue_goto", text = INDEX .. [[
  if (i >= n) return;
  int c = 0;
  for (int j = 0; j < 40; j++) {
    int v = x[(i + j) % n];
    if (v < -45) break;
    if (v > 20) continue;
    for (int k = 0; k < 5; k++) {
      if (v * k > 60) goto out;
      c += k;
    }
    c++;
  }
  out: y[i] = c;]], params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local c = 0
      for j = 0, 39 do
        local v = x[(i + j) % n]
        if v < -45 then break end
        if v <= 20 then
          for k = 0, 4 do
            if v * k > 60 then return c end
            c = c + k
          end
          c = c + 1
        end
      end
      return c
    end
  end}

add {name = "histogram_in_shared_memory", text = [[
  __shared__ int s[16];
  if (threadIdx.x < 16) s[threadIdx.x] = 0;
  __syncthreads();]] .. INDEX .. [[
  if (i < n) atomicAdd(&s[x[i] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&y[threadIdx.x], s[threadIdx.x]);]],
  params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, function(i) return math.abs(noise(i)) end)
    return {x, ints(16, function() return 0 end), n}, 2, function(b)
      local c = 0
      for i = 0, n - 1 do if x[i] & 15 == b then c = c + 1 end end
      return c
    end
  end}

add {name = "atomic_max_and_cas", text = INDEX .. [[
  if (i < n) {
    atomicMax(&y[0], x[i]);
    int old = atomicAdd(&y[1], 0), want;
    do { want = old; old = atomicCAS(&y[1], want, want + (x[i] & 3)); }
    while (old != want);
  }]], params = "const int *x, int *y, int n", racy = true,
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(2, function() return 0 end), n}, 2, function(k)
      local most, sum = 0, 0
      for i = 0, n - 1 do
        most = math.max(most, x[i])
        sum = sum + (x[i] & 3)
      end
      return k == 0 and most or sum
    end
  end}

add {name = "warp_sum_by_shuffles", text = INDEX .. [[
  int v = i < n ? x[i] : 0;
  for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
  if ((threadIdx.x & 31) == 0) y[i / 32] = v;]],
  params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    local warps = (n + 63) // 64 * 2
    return {x, ints(warps, function() return 0 end), n}, 2, function(w)
      local sum = 0
      for i = 32 * w, math.min(32 * w + 31, n - 1) do sum = sum + x[i] end
      return sum
    end
  end}

add {name = "scan_in_dynamic_shared_memory", block = 256, smem = 1024, text = [[
  extern __shared__ int t[];
  int i = threadIdx.x;
  t[i] = i < n ? x[i] : 0;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    int v = i >= d ? t[i - d] : 0;
    __syncthreads();
    t[i] += v;
    __syncthreads();
  }
  if (i < n) y[i] = t[i];]], params = "const int *x, int *y, int n", most = 200,
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local sum = 0
      for k = 0, i do sum = sum + x[k] end
      return sum
    end
  end}

add {name = "shared_memory_of_mixed_widths", block = 128, smem = 2048, text = [[
  extern __shared__ char raw[];
  double *d = (double *)raw;
  short *s = (short *)(raw + 8 * blockDim.x);
  unsigned char *b = (unsigned char *)(s + blockDim.x);
  int i = threadIdx.x;
  if (i < n) {
    b[i] = x[i] & 255;
    s[i] = (short)(x[i] * 3 - 100);
    d[i] = x[i] * 0.5;
  }
  __syncthreads();
  if (i < n) {
    int j = n - 1 - i;
    y[i] = (int)(2 * d[j]) + s[j] + b[j];
  }]], params = "const int *x, int *y, int n", most = 125,
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local v = x[n - 1 - i]
      return v + (v * 3 - 100) + (v & 255)
    end
  end}

add {name = "transpose_with_padding", block = {32, 8}, text = [[
  __shared__ int t[32][33];
  int a = blockIdx.x * 32 + threadIdx.x, b = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (a < n && b + j < 37)
      t[threadIdx.y + j][threadIdx.x] = x[(b + j) * n + a];
  __syncthreads();
  a = blockIdx.y * 32 + threadIdx.x;
  b = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (a < 37 && b + j < n)
      y[(b + j) * 37 + a] = t[threadIdx.x][threadIdx.y + j];]],
  params = "const int *x, int *y, int n",
  grid = function(n) return {(n + 31) // 32, 2} end, most = 100,
  args = function(n)
    local x = ints(37 * n, noise)
    return {x, ints(37 * n, function() return 0 end), n}, 2, function(i)
      return x[i % 37 * n + i // 37]
    end
  end}

add {name = "division_and_remainder", text = INDEX .. [[
  if (i < n) {
    int z = (i % 7) - 3;
    y[i] = z ? x[i] / z * 1000 + x[i] % z : -1;
  }]], params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local z = i % 7 - 3
      if z == 0 then return -1 end
      local q = trunc(x[i], z)
      return q * 1000 + x[i] - q * z
    end
  end}

add {name = "hash_of_64_bits", text = INDEX .. [[
  if (i < n) {
    unsigned long long v = (unsigned)x[i];
    v ^= v >> 33; v *= 0xff51afd7ed558ccdULL; v ^= v >> 29;
    y[i] = (int)(v >> 7) + __popcll(v) + __clzll(v);
  }]], params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local v = x[i] & 0xffffffff
      v = v ~ v >> 33
      v = v * 0xff51afd7ed558ccd
      v = v ~ v >> 29
      local bits, zeros = 0, 64
      for k = 0, 63 do
        if v >> k & 1 == 1 then bits, zeros = bits + 1, 63 - k end
      end
      local sum = (v >> 7 & 0xffffffff) + bits + zeros
      return (sum & 0xffffffff ~ 0x80000000) - 0x80000000
    end
  end}

add {name = "pointers_that_walk", text = [[
  int *e = y + n;
  for (int *p = y + blockIdx.x * blockDim.x + threadIdx.x; p < e;
       p += gridDim.x * blockDim.x) *p = *p * 3 + 1;]],
  params = "const int *x, int *y, int n", grid = function() return 2 end,
  args = function(n)
    return {ints(1, noise), ints(n, noise), n}, 2, function(i)
      return noise(i) * 3 + 1
    end
  end}

add {name = "early_returns_in_loops", text = INDEX .. [[
  if (i >= n) return;
  if (x[i] == 0) { y[i] = -1; return; }
  int c = 0, v = x[i] < 0 ? -x[i] : x[i];
  while (v != 1) {
    if (c == 50) { y[i] = -2; return; }
    v = v & 1 ? 3 * v + 1 : v / 2;
    c++;
  }
  y[i] = c;]], params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      if x[i] == 0 then return -1 end
      local c, v = 0, math.abs(x[i])
      while v ~= 1 do
        if c == 50 then return -2 end
        v = v % 2 == 1 and 3 * v + 1 or v // 2
        c = c + 1
      end
      return c
    end
  end}

add {name = "compaction_by_ballots", text = INDEX .. [[
  unsigned b = __ballot_sync(~0u, i < n && x[i] > 0);
  int before = __popc(b & ((1u << (threadIdx.x & 31)) - 1));
  if (i < n) y[i] = x[i] > 0 ? before : -1;]],
  params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      if x[i] <= 0 then return -1 end
      local c = 0
      for k = i // 32 * 32, i - 1 do if x[k] > 0 then c = c + 1 end end
      return c
    end
  end}

add {name = "one_of_two_pointers", text = INDEX .. [[
  const int *p = n & 1 ? x : z;
  if (i < n) y[i] = p[i] + 1;]],
  params = "const int *x, int *y, int n, const int *z",
  args = function(n)
    local x = ints(n, noise)
    local z = ints(n, function(i) return 1000 + i end)
    return {x, ints(n, function() return 0 end), n, z}, 2, function(i)
      return (n % 2 == 1 and x[i] or z[i]) + 1
    end
  end}

add {name = "vectors_of_four", text = INDEX .. [[
  if (4 * i + 3 < n) {
    int4 v = ((const int4 *)x)[i];
    ((int4 *)y)[i] = make_int4(v.w, v.z, v.y, v.x);
  }]], params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 5 end), n}, 2, function(i)
      return i // 4 * 4 + 3 < n and x[i // 4 * 4 + 3 - i % 4] or 5
    end
  end}

add {name = "structure_by_value", text = INDEX .. [[
  if (i < s.n) s.y[i] = s.x[i] * s.a[1] + s.a[0];]], structure =
  "struct S { const int *x; short a[2]; int n; int *y; };",
  params = "S s",
  args = function(n)
    local x, y = ints(n, noise), ints(n, function() return 0 end)
    return {{[0] = x, [8] = {3, "i16"}, [10] = {-7, "i16"},
             [12] = {n, "i32"}, [16] = y}}, y, function(i)
      return x[i] * -7 + 3
    end
  end}

add {name = "last_block_adds_up", text = [[
  __shared__ bool last;]] .. INDEX .. [[
  int v = i < n ? x[i] : 0;
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if ((threadIdx.x & 31) == 0) atomicAdd(&y[2], v);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&y[1], 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    __threadfence();
    y[0] = atomicAdd(&y[2], 0);
  }]],
  params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(3, function() return 0 end), n}, 2, function(k)
      local sum = 0
      for i = 0, n - 1 do sum = sum + x[i] end
      return k == 1 and (n + 63) // 64 or sum
    end
  end}

add {name = "words_that_blocks_exchange", block = 32, text = [[
  if (threadIdx.x > 1) return;
  int at = 2 * blockIdx.x + threadIdx.x, v = at < n ? x[at] : 0;
  unsigned long long got;
  atomicExch(&box[9 + (at ^ 3)], 1ull << 32 | (unsigned)v);
  do got = atomicExch(&box[9 + at], 0); while (!got);
  y[at] = (int)got;]],
  params = "const int *x, int *y, int n, unsigned long long *box",
  grid = function() return 2 end,
  args = function(n)
    n = math.min(n, 4)
    local x = ints(n, noise)
    local box = cute.zeros({256}, cute.u64)
    return {x, ints(4, function() return 0 end), n, box}, 2, function(at)
      return (at ~ 3) < n and x[at ~ 3] or 0
    end
  end}

add {name = "copies_by_cp_async", smem = 1024, text = INDEX .. [[
  extern __shared__ int t[];
  unsigned at = (unsigned)__cvta_generic_to_shared(&t[4 * threadIdx.x]);
  int bytes = 4 * i + 3 < n ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(at), "l"(x + (bytes ? 4 * i : 0)), "r"(bytes));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  int other = blockDim.x - 1 - threadIdx.x;
  int sum = 0;
  for (int k = 0; k < 4; k++) sum += t[4 * other + k];
  if (i < n) y[i] = sum;]], params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local j = i // 64 * 64 + 63 - i % 64
      if 4 * j + 3 >= n then return 0 end
      return x[4 * j] + x[4 * j + 1] + x[4 * j + 2] + x[4 * j + 3]
    end
  end}

add {name = "rounding_of_floats", text = INDEX .. [[
  if (i < n) {
    float v = x[i] * 0.37f;
    y[i] = (int)v + (int)floorf(v) * 100 + __float2int_rn(v) * 10000 +
           (v < 0.5f ? 1 : 0) + (int)fminf(fabsf(v), 3.0f);
  }]], params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    local f = floats(1, function() return 0.37 end)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local v = cute.zeros({1}, cute.f32)
      v[0] = x[i] * f[0]
      v = v[0]
      local near = math.floor(v + 0.5)
      if near - v == 0.5 and near % 2 == 1 then near = near - 1 end
      local cut = v < 0 and math.ceil(v) or math.floor(v)
      return cut + math.floor(v) * 100 + near * 10000 + (v < 0.5 and 1 or 0)
        + math.floor(math.min(math.abs(v), 3.0))
    end
  end}

local CLUSTER = [[
  unsigned rank, at = (unsigned)__cvta_generic_to_shared(&s[0]), there;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));]]
local SYNC = [[
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");]]

add {name = "neighbour_in_a_cluster", cluster = 2, text = [[
  __shared__ int s[64];]] .. CLUSTER .. INDEX .. [[
  s[threadIdx.x] = i < n ? x[i] : 0;]] .. SYNC .. [[
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there) : "r"(at), "r"(rank ^ 1));
  int v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];"
               : "=r"(v) : "r"(there + 4 * threadIdx.x));]] .. SYNC .. [[
  if (i < n) y[i] = v;]], params = "const int *x, int *y, int n",
  grid = function(n) return (n + 127) // 128 * 2 end,
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local j = i ~ 64
      return j < n and x[j] or 0
    end
  end}

add {name = "arrival_at_another_block", cluster = 2, text = [[
  __shared__ int s[64];
  __shared__ unsigned long long bar;]] .. CLUSTER .. INDEX .. [[
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" :: "r"(b));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }]] .. SYNC .. [[
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there) : "r"(at), "r"(rank ^ 1));
  asm volatile("st.shared::cluster.u32 [%0], %1;"
               :: "r"(there + 4 * threadIdx.x), "r"(i < n ? x[i] : 0));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there) : "r"(b), "r"(rank ^ 1));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
               :: "r"(there) : "memory");
  asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster"
    ".shared::cta.b64 p, [%0], 0; @p bra D; bra W; D: }" :: "r"(b) : "memory");
  if (i < n) y[i] = s[threadIdx.x];]] .. SYNC,
  params = "const int *x, int *y, int n",
  grid = function(n) return (n + 127) // 128 * 2 end,
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local j = i ~ 64
      return j < n and x[j] or 0
    end
  end}

add {name = "generic_address_in_a_cluster", cluster = 2, text = [[
  __shared__ int s[64];
  __shared__ int sum;
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));]] .. INDEX .. [[
  s[threadIdx.x] = i < n ? x[i] : 0;
  if (threadIdx.x == 0) sum = 0;]] .. SYNC .. [[
  int *there, *total;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(s), "r"(rank ^ 1));
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(total) : "l"(&sum), "r"(0));
  int v = there[threadIdx.x];
  atomicAdd(total, v);]] .. SYNC .. [[
  if (i < n) y[i] = v;
  if (rank == 0 && threadIdx.x == 0) y[n] = sum;]],
  params = "const int *x, int *y, int n", most = 128,
  grid = function() return 2 end,
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n + 1, function() return 0 end), n}, 2, function(i)
      if i < n then return i ~ 64 < n and x[i ~ 64] or 0 end
      local sum = 0
      for k = 0, n - 1 do sum = sum + x[k] end
      return sum
    end
  end}

local BARRIER = [[
  __shared__ alignas(16) int s[64];
  __shared__ alignas(16) int d[64];
  __shared__ alignas(8) unsigned long long bar;
  unsigned rank, there, count;
  unsigned at = (unsigned)__cvta_generic_to_shared(d);
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;"
                 :: "r"(b) : "memory");
  }]] .. INDEX .. [[
  s[threadIdx.x] = i < n ? x[i] : 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");]] .. SYNC .. [[
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there) : "r"(at), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(count) : "r"(b), "r"(rank ^ 1));]]
local LANDED = [[
  asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster"
    ".shared::cta.b64 p, [%0], 0; @p bra D; bra W; D: }" :: "r"(b) : "memory");
  if (i < n) y[i] = d[threadIdx.x];]] .. SYNC
local function from_neighbour(n)
  local x = ints(n, noise)
  return {x, ints(n, function() return 0 end), n}, 2, function(i)
    local j = i ~ 64
    return j < n and x[j] or 0
  end
end

add {name = "st_async_to_another_block", cluster = 2, text = BARRIER .. [[
  if (threadIdx.x % 4 == 0)
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
      ".v4.b32 [%0], {%2, %3, %4, %5}, [%1];" :: "r"(there + 4 * threadIdx.x),
      "r"(count), "r"(s[threadIdx.x]), "r"(s[threadIdx.x + 1]),
      "r"(s[threadIdx.x + 2]), "r"(s[threadIdx.x + 3]) : "memory");]] .. LANDED,
  params = "const int *x, int *y, int n",
  grid = function(n) return (n + 127) // 128 * 2 end, args = from_neighbour}

add {name = "bulk_copy_to_another_block", cluster = 2, text = BARRIER .. [[
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.shared::cluster.shared::cta"
      ".mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" :: "r"(there),
      "r"((unsigned)__cvta_generic_to_shared(s)), "r"(count) : "memory");]] ..
  LANDED, params = "const int *x, int *y, int n",
  grid = function(n) return (n + 127) // 128 * 2 end, args = from_neighbour}

add {name = "sent_to_another_block", cluster = 2, text = [[
  __shared__ alignas(16) int s[64], got[64], copy[64];
  __shared__ alignas(8) unsigned long long bar;]] .. CLUSTER .. INDEX .. [[
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar), there_got, there_bar;
  int v = i < n ? x[i] : 0;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;"
                 :: "r"(b) : "memory");
  }
  s[threadIdx.x] = v;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");]] .. SYNC .. [[
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there_got)
    : "r"((unsigned)__cvta_generic_to_shared(got)), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there)
    : "r"((unsigned)__cvta_generic_to_shared(copy)), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there_bar)
    : "r"(b), "r"(rank ^ 1));
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32"
    " [%0], %1, [%2];" :: "r"(there_got + 4 * threadIdx.x), "r"(v * 5),
    "r"(there_bar) : "memory");
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.shared::cluster.shared::cta"
      ".mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
      :: "r"(there), "r"(at), "r"(there_bar) : "memory");
  asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster"
    ".shared::cta.b64 p, [%0], 0; @p bra D; bra W; D: }" :: "r"(b) : "memory");
  if (i < n) y[i] = got[threadIdx.x] + copy[63 - threadIdx.x];]] .. SYNC,
  params = "const int *x, int *y, int n",
  grid = function(n) return (n + 127) // 128 * 2 end,
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local j, k = i ~ 64, i ~ 64 ~ 63
      return (j < n and x[j] * 5 or 0) + (k < n and x[k] or 0)
    end
  end}

add {name = "bulk_copy_of_bytes", text = [[
  __shared__ alignas(128) int s[64];
  __shared__ alignas(8) unsigned long long bar;
  unsigned at = (unsigned)__cvta_generic_to_shared(s);
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;"
                 :: "r"(b) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global"
      ".mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
      :: "r"(at), "l"(x + 64 * blockIdx.x), "r"(b) : "memory");
  }
  asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p,"
    " [%0], 0; @!p bra W; }" :: "r"(b) : "memory");
  s[threadIdx.x] = s[threadIdx.x] * 2 + 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
      :: "l"(y + 64 * blockIdx.x), "r"(at) : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }]], params = "const int *x, int *y, int n",
  args = function(n)
    local all = (n + 63) // 64 * 64
    local x = ints(all, noise)
    return {x, ints(all, function() return 0 end), n}, 2, function(i)
      return x[i] * 2 + 1
    end
  end}

add {name = "dependent_launch", pdl = true, text = [[
  asm volatile("griddepcontrol.wait;" ::: "memory");]] .. INDEX .. [[
  if (i < n) y[i] = x[i] + 1;
  asm volatile("griddepcontrol.launch_dependents;");]],
  params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    local between = ints(n, function() return 0 end)
    local y = ints(n, function() return 0 end)
    return {x, between, n, behind = {between, y, n}}, y, function(i)
      return x[i] + 2
    end
  end}

add {name = "ring_of_cp_async", block = 64, text = [[
  __shared__ int s[3][64];
  int i = threadIdx.x, rounds = (n + 63) / 64, sum = 0;
  unsigned at = (unsigned)__cvta_generic_to_shared(&s[0][i]);
  for (int r = 0; r < 2; r++) {
    if (64 * r + i < n)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                   :: "r"(at + 256 * r), "l"(x + 64 * r + i));
    asm volatile("cp.async.commit_group;");
  }
  for (int r = 0; r < rounds; r++) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    int from = 64 * r + 63 - i;
    if (from < n) sum += s[r % 3][63 - i] * (r + 1);
    int next = r + 2;
    if (64 * next + i < n)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                   :: "r"(at + 256 * (next % 3)), "l"(x + 64 * next + i));
    asm volatile("cp.async.commit_group;");
  }
  y[i] = sum;]], params = "const int *x, int *y, int n", most = 500,
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(64, function() return 0 end), n}, 2, function(i)
      local sum = 0
      for r = 0, (n + 63) // 64 - 1 do
        local from = 64 * r + 63 - i
        if from < n then sum = sum + x[from] * (r + 1) end
      end
      return sum
    end
  end}

add {name = "named_barriers_of_two_roles", block = 128, most = 500, text = [[
  __shared__ int s[2][64];
  int i = threadIdx.x % 64, rounds = (n + 63) / 64;
  if (threadIdx.x < 64) {
    for (int r = 0; r < rounds; r++) {
      if (r > 1) asm volatile("bar.sync %0, 128;" :: "r"(3 + r % 2) : "memory");
      s[r % 2][i] = 64 * r + i < n ? x[64 * r + i] : 0;
      asm volatile("bar.arrive %0, 128;" :: "r"(1 + r % 2) : "memory");
    }
    return;
  }
  for (int r = 0; r < rounds; r++) {
    asm volatile("bar.sync %0, 128;" :: "r"(1 + r % 2) : "memory");
    int v = s[r % 2][i ^ 33];
    if (64 * r + i < n) y[64 * r + i] = v;
    if (r + 2 < rounds)
      asm volatile("bar.arrive %0, 128;" :: "r"(3 + r % 2) : "memory");
  }]], params = "const int *x, int *y, int n",
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(n, function() return 0 end), n}, 2, function(i)
      local j = i ~ 33
      return j < n and x[j] or 0
    end
  end}

---------------------------------------------------------------------------
-- TMA and wgmma
---------------------------------------------------------------------------

local MAP = "struct alignas(64) Map { char bytes[128]; };"
local cpasync = cute.nvgpu.cpasync

-- Returns the tensor map of a matrix, for boxes of this size.
local function map(op, t, box)
  return (cpasync.make_tiled_tma_atom(op, t,
    cute.make_layout(box, cute.LayoutRight), box))
end

local COLUMNS = 20

local function matrix(rows, f)
  local t = cute.make_tensor(cute.zeros({rows * COLUMNS}, cute.i32).iterator,
    cute.make_layout({rows, COLUMNS}, cute.LayoutRight))
  for i = 0, rows - 1 do
    for j = 0, COLUMNS - 1 do t[{i, j}] = f(i * COLUMNS + j) end
  end
  return t
end

local function flat(t)
  return cute.make_tensor(t.iterator, cute.make_layout(cute.size(t)))
end

-- Device functions for mbarriers; each inline asm has one line or several.
local MBARRIER = [[
  static __device__ void init(unsigned b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(b), "r"(n));
  }
  static __device__ void expect(unsigned b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(b), "r"(bytes) : "memory");
  }
  static __device__ void arrive(unsigned b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                 :: "r"(b) : "memory");
  }
  static __device__ void wait(unsigned b, int parity) {
    int done = 0;
    while (!done)
      asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,"
        " [%1], %2; selp.s32 %0, 1, 0, p; }"
        : "=r"(done) : "r"(b), "r"(parity) : "memory");
  }
  static __device__ void box(unsigned to, const Map *m, int c, int r,
                             unsigned b) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      :: "r"(to), "l"(m), "r"(c), "r"(r), "r"(b) : "memory");
  }
]]

add {name = "boxes_by_tma", structure = MAP .. MBARRIER, text = [[
  __shared__ alignas(128) int s[16 * 8];
  __shared__ alignas(8) unsigned long long bar;
  unsigned at = (unsigned)__cvta_generic_to_shared(s);
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  int c = 8 * blockIdx.y, r = 16 * blockIdx.x;
  if (threadIdx.x == 0) {
    init(b, 1);
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(b, 512);
    box(at, &from, c, r, b);
  }
  wait(b, 0);
  for (int k = threadIdx.x; k < 128; k += blockDim.x) s[k] = s[k] * 3 + 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
    " [%0, {%1, %2}], [%3];" :: "l"(&to), "r"(c), "r"(r), "r"(at) : "memory");
  asm volatile("cp.async.bulk.commit_group;");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");]],
  params = "const __grid_constant__ Map from, const __grid_constant__ Map to",
  grid = function(n) return {(n + 15) // 16, 3} end,
  args = function(n)
    local x, y = matrix(n, noise), matrix(n, function() return 0 end)
    local box, a, b = {16, 8}, flat(x), flat(y)
    return {map(cpasync.CopyBulkTensorTileG2SOp(), x, box),
            map(cpasync.CopyBulkTensorTileS2GOp(), y, box)}, b, function(i)
      return a[i] * 3 + 1
    end
  end}

-- D (64,8) += A (64,16) B (8,16)^T. The operands consist of core matrices of 8
-- rows of 16 bytes. `along` is the number of bytes between the two core
-- matrices along K. Core matrices along the rows are 128 bytes apart.
local WGMMA = [[
  static __device__ unsigned long long operand(unsigned at, unsigned along) {
    return (unsigned long long)(at >> 4 & 0x3fff) |
           (unsigned long long)(along >> 4) << 16 | 8ull << 32;
  }
  static __device__ void multiply(float *d, unsigned a, unsigned b, int more) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{.reg .pred p; setp.ne.b32 p, %6, 0;"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"
      " {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(operand(a, 1024)), "l"(operand(b, 128)), "r"(more));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  static __device__ void store(int *y, const float *d, int first, int rows) {
    int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4;
    for (int r = 0; r < 4; r++) {
      int i = first + row + r / 2 * 8, j = t % 4 * 2 + r % 2;
      if (i < rows) y[8 * i + j] = (int)d[r];
    }
  }
]]

local function product(n, a, b)
  return function(at)
    local i, j, sum = at // 8, at % 8, 0
    for k = 0, n - 1 do sum = sum + a(i, k) * b(j, k) end
    return sum
  end
end

add {name = "product_by_wgmma", block = 128, structure = WGMMA, text = [[
  __shared__ alignas(128) unsigned short a[2][64][8], b[2][8][8];
  unsigned at = (unsigned)__cvta_generic_to_shared(a);
  unsigned bt = (unsigned)__cvta_generic_to_shared(b);
  float d[4];
  for (int k = 0; k < n; k += 16) {
    for (int e = threadIdx.x; e < 72 * 16; e += blockDim.x) {
      int row = e / 16, c = e % 16, i = 64 * blockIdx.x + row;
      int v = 0;
      if (k + c < n && row >= 64) v = x[(5 * (row - 64) + k + c) % n];
      else if (k + c < n && i < n) v = x[(i + 3 * (k + c)) % n];
      unsigned short h = __float_as_uint((float)v) >> 16;
      if (row < 64) a[c / 8][row][c % 8] = h;
      else b[c / 8][row - 64][c % 8] = h;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    multiply(d, at, bt, k > 0);
    __syncthreads();
  }
  store(y, d, 64 * blockIdx.x, n);]], params = "const int *x, int *y, int n",
  grid = function(n) return (n + 63) // 64 end,
  args = function(n)
    local x = ints(n, noise)
    return {x, ints(8 * n, function() return 0 end), n}, 2, product(n,
      function(i, k) return x[(i + 3 * k) % n] end,
      function(j, k) return x[(5 * j + k) % n] end)
  end}

add {name = "ring_of_tma_into_wgmma", block = 160,
  structure = MAP .. MBARRIER .. WGMMA, text = [[
  __shared__ alignas(128) char s[2][2 * 1024 + 2 * 128];
  __shared__ alignas(8) unsigned long long bars[4];
  unsigned at = (unsigned)__cvta_generic_to_shared(s);
  unsigned full = (unsigned)__cvta_generic_to_shared(bars), empty = full + 16;
  int rounds = (n + 15) / 16, first = 64 * blockIdx.x;
  if (threadIdx.x == 0) {
    for (int q = 0; q < 2; q++) {
      init(full + 8 * q, 1);
      init(empty + 8 * q, 128);
    }
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    if (threadIdx.x > 128) return;
    for (int k = 0; k < rounds; k++) {
      int q = k & 1;
      unsigned to = at + 2304 * q, b = full + 8 * q;
      wait(empty + 8 * q, ~(k >> 1) & 1);
      expect(b, 2304);
      for (int h = 0; h < 2; h++) {
        box(to + 1024 * h, &ma, 16 * k + 8 * h, first, b);
        box(to + 2048 + 128 * h, &mb, 16 * k + 8 * h, 0, b);
      }
    }
    return;
  }
  float d[4];
  for (int k = 0; k < rounds; k++) {
    int q = k & 1;
    wait(full + 8 * q, k >> 1 & 1);
    multiply(d, at + 2304 * q, at + 2304 * q + 2048, k > 0);
    arrive(empty + 8 * q);
  }
  store(y, d, first, n);]], params = "const __grid_constant__ Map ma, "
    .. "const __grid_constant__ Map mb, int *y, int n",
  grid = function(n) return (n + 63) // 64 end,
  args = function(n)
    local wide = (n + 7) // 8 * 8
    local function operand(rows, f)
      local t = cute.make_tensor(cute.zeros({rows * wide}, cute.bf16).iterator,
                                 cute.make_layout({rows, n}, {wide, 1}))
      for i = 0, rows - 1 do
        for k = 0, n - 1 do t[{i, k}] = f(i * 31 + k) end
      end
      return t
    end
    local A, B = operand(n, noise), operand(8, noise)
    local load = cpasync.CopyBulkTensorTileG2SOp()
    return {map(load, A, {64, 8}), map(load, B, {8, 8}),
            ints(8 * n, function() return 0 end), n}, 3, product(n, A, B)
  end}

--- Returns the CUDA C of a kernel.
---@param k table
---@return string
function list.source(k)
  return ("%s\nextern \"C\" __global__ void %s(%s) {\n%s\n}\n"):format(
    k.structure or "", k.name, k.params, k.text)
end

--- Returns the options of a kernel's launch for n elements.
---@param k table
---@param n integer
---@return table
function list.launch(k, n)
  local block = k.block or 64
  local threads = type(block) == "table" and block[1] or block
  local grid = k.grid and k.grid(n) or k.most and 1
    or (n + threads - 1) // threads
  return {grid = grid, block = block, cluster = k.cluster, pdl = k.pdl}
end

return list
-- SPDX-License-Identifier: MIT
