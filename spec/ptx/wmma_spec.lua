-- Tests nvcuda::wmma in CUDA C against products in Lua: all layouts, types of
-- A, B, C and D, matrices in global and shared memory, and odd leading extents.
local core = require "cute.core"
local cute = require "cute"

local TOOLKIT = "/usr/local/cuda/include"

local function has_headers()
  local f = io.open(TOOLKIT .. "/mma.h")
  return f and f:close()
end

local TEXT = [[
#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using namespace nvcuda::wmma;
template <class T, class E, class C, class LA, class LB, int K, bool ROW>
__device__ void product(C *d, const E *a, const E *b, const C *c, int la,
                        int lb, int lc, layout_t layout, bool shared) {
  __shared__ alignas(16) E s[16 * 16];
  fragment<matrix_a, 16, 16, K, T, LA> fa;
  fragment<matrix_b, 16, 16, K, T, LB> fb;
  fragment<accumulator, 16, 16, K, C> fc, fd;
  if (shared) {
    for (int i = threadIdx.x; i < 16 * K; i += 32)
      s[i] = ROW ? a[i / K * la + i % K] : a[i / 16 * la + i % 16];
    __syncwarp();
    load_matrix_sync(fa, s, ROW ? K : 16);
  } else {
    load_matrix_sync(fa, a, la);
  }
  load_matrix_sync(fb, b, lb);
  load_matrix_sync(fc, c, lc, layout);
  mma_sync(fd, fa, fb, fc);
  for (int i = 0; i < fd.num_elements; i++) fd.x[i] = fd.x[i] + fc.x[i];
  store_matrix_sync(d, fd, lc, layout);
}
]]

-- Kernels as {name, type of fragments, type in memory, type of C, K, layout of
-- A, layout of B, layout of C}.
local KINDS = {}
for _, t in ipairs {{"__half", "__half", "float", 16},
                    {"__half", "__half", "__half", 16},
                    {"__nv_bfloat16", "__nv_bfloat16", "float", 16},
                    {"precision::tf32", "float", "float", 8},
                    {"signed char", "signed char", "int", 16}} do
  for way = 0, 7 do
    KINDS[#KINDS + 1] = {"k" .. #KINDS, t[1], t[2], t[3], t[4], way & 1,
      way >> 1 & 1, way >> 2}
  end
end

local function source()
  local out = {TEXT}
  for _, k in ipairs(KINDS) do
    local function layout(v) return v == 0 and "row_major" or "col_major" end
    out[#out + 1] = ([[
extern "C" __global__ void %s(%s *d, const %s *a, const %s *b,
    const %s *c, int la, int lb, int lc, int shared) {
  product<%s, %s, %s, %s, %s, %d, %s>(d, a, b, c, la, lb, lc, %s,
    shared);
}
]]):format(k[1], k[4], k[3], k[3], k[4], k[2], k[3], k[4], layout(k[6]),
      layout(k[7]), k[5], k[6] == 0,
      k[8] == 0 and "mem_row_major" or "mem_col_major")
  end
  return table.concat(out)
end

local DTYPES = {__half = "f16", __nv_bfloat16 = "bf16", float = "f32",
                int = "i32", ["signed char"] = "i8"}

-- Returns a tensor of a matrix, row- or column-major with leading extent
-- `lead`, and a function that indexes it.
local function matrix(dtype, rows, columns, col, lead, f)
  local t = cute.zeros({lead * (col == 1 and columns or rows)}, cute[dtype])
  local function at(i, j) return col == 1 and j * lead + i or i * lead + j end
  for i = 0, rows - 1 do
    for j = 0, columns - 1 do t[at(i, j)] = f(i, j) end
  end
  return t, at
end

local function check(module, k, shared, more)
  local depth, ab, cd = k[5], DTYPES[k[3]], DTYPES[k[4]]
  local function fa(i, j) return (i * 7 + j * 3) % 11 - 5 end
  local function fb(i, j) return (i * 5 + j * 9) % 7 - 3 end
  local function fc(i, j) return (i * 3 + j) % 13 - 6 end
  local la = (k[6] == 1 and 16 or depth) + more
  local lb, lc = (k[7] == 1 and depth or 16) + more, 16 + more
  local a = matrix(ab, 16, depth, k[6], la, fa)
  local b = matrix(ab, depth, 16, k[7], lb, fb)
  local c = matrix(cd, 16, 16, k[8], lc, fc)
  local d, at = matrix(cd, 16, 16, k[8], lc, function() return 0 end)
  module:kernel(k[1])(d, a, b, c, la, lb, lc, shared):launch {grid = 1,
    block = 32, device = "sim:sm_90a"}
  for i = 0, 15 do
    for j = 0, 15 do
      local want = 2 * fc(i, j)
      for q = 0, depth - 1 do want = want + fa(i, q) * fb(q, j) end
      if d[at(i, j)] ~= want then
        error(("%s %s, shared %d: %d, %d: %s, not %s"):format(k[1],
          table.concat(k, " ", 2), shared, i, j, d[at(i, j)], want))
      end
    end
  end
end

describe("nvcuda::wmma in CUDA C", function()
  for _, arch in ipairs {"sm_80", "sm_90a"} do
    it("computes products for " .. arch, function()
      local module, why = core.jit_compile("", "compute_80")
      if not module and tostring(why):find "no%-nvrtc" or not has_headers() then
        pending "needs NVRTC and the CUDA toolkit's headers"
        return
      end
      local kernels = cute.cuda(source(), {arch = arch, include = {TOOLKIT},
        options = {"--std=c++17"}})
      for _, k in ipairs(KINDS) do
        check(kernels, k, 0, 16)
        check(kernels, k, 1, 0)
      end
    end)
  end

  it("is rejected for other shapes", function()
    local support = require "spec.support"
    local HEAD = [[
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b32 r<8>; .reg .f32 f<8>; .reg .f64 d<4>; .reg .b64 a;
ld.param.u64 a, [p];
]]
    for _, case in ipairs {
      {"wmma.load.a.sync.aligned.row.m32n8k16.global.f16 {r0, r1}, [a];",
        "shapes other than m16n16k16"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {r0, r1}, [a];",
        "these operands"},
      {"wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64 {d0, d1}, {d0}, "
        .. "{d1}, {d2, d3};", "shapes other than m16n16k16"},
      {"wmma.fill r0, r1;", "this instruction"}} do
      assert.matches(case[2], support.message(function()
        local x = cute.zeros({64}, cute.f32)
        cute.ptx(HEAD .. case[1] .. "\nret;\n}\n"):kernel "k"(x):trace {
          block = 32, arch = "sm_90a"}
      end), 1, true)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
