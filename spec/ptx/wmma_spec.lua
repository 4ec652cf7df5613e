-- Tests nvcuda::wmma in CUDA C against products in Lua: layouts, types of A, B,
-- C and D, matrices in global and shared memory, and odd leading dimensions.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"

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
template <class T, class E, class C, class D, class LA, class LB, int M, int N,
          int K, bool ROW>
__device__ void product(D *d, const E *a, const E *b, const C *c, int la,
                        int lb, int lc, layout_t layout, bool shared) {
  __shared__ alignas(16) E s[32 * 16];
  fragment<matrix_a, M, N, K, T, LA> fa;
  fragment<matrix_b, M, N, K, T, LB> fb;
  fragment<accumulator, M, N, K, C> fc;
  fragment<accumulator, M, N, K, D> fd;
  if (shared) {
    for (int i = threadIdx.x; i < M * K; i += 32)
      s[i] = ROW ? a[i / K * la + i % K] : a[i / M * la + i % M];
    __syncwarp();
    load_matrix_sync(fa, s, ROW ? K : M);
  } else {
    load_matrix_sync(fa, a, la);
  }
  load_matrix_sync(fb, b, lb);
  load_matrix_sync(fc, c, lc, layout);
  mma_sync(fd, fa, fb, fc);
  for (int i = 0; i < fd.num_elements; i++) fd.x[i] = fd.x[i] + fd.x[i];
  store_matrix_sync(d, fd, lc, layout);
}
]]

-- Kernels as {name, type of fragments, type in memory, types of C and D, M, N,
-- K, layout of A, layout of B, layout of C}.
local KINDS = {}
local SHAPES = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}}
for _, t in ipairs {{"__half", "__half", "float", "float"},
                    {"__half", "__half", "__half", "__half"},
                    {"__half", "__half", "__half", "float"},
                    {"__half", "__half", "float", "__half"},
                    {"__nv_bfloat16", "__nv_bfloat16", "float", "float"},
                    {"precision::tf32", "float", "float", "float",
                      {{16, 16, 8}}},
                    {"double", "double", "double", "double", {{8, 8, 4}}},
                    {"signed char", "signed char", "int", "int"},
                    {"unsigned char", "unsigned char", "int", "int"}} do
  for _, shape in ipairs(t[5] or SHAPES) do
    for way = 0, 3 do  -- all combinations of layouts
      local a, b = way & 1, way >> 1
      KINDS[#KINDS + 1] = {"k" .. #KINDS, t[1], t[2], t[3], t[4], shape[1],
        shape[2], shape[3], a, b, a ~ b}
    end
  end
end

local function source(kinds)
  local out = {TEXT}
  for _, k in ipairs(kinds) do
    local function layout(v) return v == 0 and "row_major" or "col_major" end
    out[#out + 1] = ([[
extern "C" __global__ void %s(%s *d, const %s *a, const %s *b,
    const %s *c, int la, int lb, int lc, int shared) {
  product<%s, %s, %s, %s, %s, %s, %d, %d, %d, %s>(d, a, b, c, la, lb, lc, %s,
    shared);
}
]]):format(k[1], k[5], k[3], k[3], k[4], k[2], k[3], k[4], k[5], layout(k[9]),
      layout(k[10]), k[6], k[7], k[8], k[9] == 0,
      k[11] == 0 and "mem_row_major" or "mem_col_major")
  end
  return table.concat(out)
end

local DTYPES = {__half = "f16", __nv_bfloat16 = "bf16", float = "f32",
                int = "i32", ["signed char"] = "i8", ["unsigned char"] = "u8",
                double = "f64"}

-- Returns a tensor for a row- or column-major matrix with the leading dimension
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
  local m, n, depth = k[6], k[7], k[8]
  local ab, unsigned = DTYPES[k[3]], k[3] == "unsigned char" and 5 or 0
  local function fa(i, j) return (i * 7 + j * 3) % 11 - 5 + unsigned end
  local function fb(i, j) return (i * 5 + j * 9) % 7 - 3 + unsigned end
  local function fc(i, j) return (i * 3 + j) % 13 - 6 end
  local la = (k[9] == 1 and m or depth) + more
  local lb, lc = (k[10] == 1 and depth or n) + more,
    (k[11] == 1 and m or n) + more
  local a = matrix(ab, m, depth, k[9], la, fa)
  local b = matrix(ab, depth, n, k[10], lb, fb)
  local c = matrix(DTYPES[k[4]], m, n, k[11], lc, fc)
  local d, at = matrix(DTYPES[k[5]], m, n, k[11], lc, function() return 0 end)
  module:kernel(k[1])(d, a, b, c, la, lb, lc, shared):launch {grid = 1,
    block = 32, device = "sim:sm_90a"}
  for i = 0, m - 1 do
    for j = 0, n - 1 do
      local want = fc(i, j)
      for q = 0, depth - 1 do want = want + fa(i, q) * fb(q, j) end
      if d[at(i, j)] ~= 2 * want then
        error(("%s %s, shared %d: %d, %d: %s, not %s"):format(k[1],
          table.concat(k, " ", 2), shared, i, j, d[at(i, j)], 2 * want))
      end
    end
  end
end

-- PTX of a product of small integers or of bits. A is row-major and B
-- column-major. TYPE stands for the type of A and B; C and D are s32.
local SMALL = [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c,
                  .param .u32 lead) {
.reg .b32 r<8>; .reg .b64 p<4>;
ld.param.u64 p0, [d]; ld.param.u64 p1, [a];
ld.param.u64 p2, [b]; ld.param.u64 p3, [c];
ld.param.u32 r6, [lead];
wmma.load.a.sync.aligned.row.SHAPE.global.TYPE {r0}, [p1], r6;
wmma.load.b.sync.aligned.col.SHAPE.TYPE {r1}, [p2], r6;
wmma.load.c.sync.aligned.row.SHAPE.global.s32 {r2, r3}, [p3];
wmma.mma.OPsync.aligned.row.col.SHAPE.s32.TYPE.TYPE.s32 {r4, r5}, {r0}, {r1},
  {r2, r3};
wmma.store.d.sync.aligned.row.SHAPE.global.s32 [p0], {r4, r5};
ret;
}
]]

-- Multiplies random words whose elements have `bits` bits. product(x, y) is
-- what a pair of elements adds to the sum. Rows of A and B have twice as many
-- bytes in memory as in a fragment.
local function small(shape, kind, op, bits, product)
  local k = 128 // bits
  local text = SMALL:gsub("SHAPE", shape):gsub("TYPE", kind):gsub("OP", op)
  local words, side = {}, {}
  for q = 1, 2 do
    side[q] = cute.zeros({64}, cute.u32)
    words[q] = {}
    for i = 0, 63 do
      words[q][i] = (i * 2654435761 ~ q * (i + 7) * 40503) & 0xffffffff
      side[q][i] = words[q][i]
    end
  end
  local function element(q, row, i)
    local at = i * bits
    local v = words[q][row * 8 + at // 32] >> at % 32 & (1 << bits) - 1
    return kind == "s4" and v >= 8 and v - 16 or v
  end
  local c, d = cute.zeros({64}, cute.i32), cute.zeros({64}, cute.i32)
  for i = 0, 63 do c[i] = i * 5 - 99 end
  cute.ptx(text):kernel "k"(d, side[1], side[2], c, 2 * k):launch {grid = 1,
    block = 32, device = "sim:sm_80"}
  for i = 0, 7 do
    for j = 0, 7 do
      local want = c[i * 8 + j]
      for q = 0, k - 1 do
        want = want + product(element(1, i, q), element(2, j, q))
      end
      assert.equal(want, d[i * 8 + j])
    end
  end
end

describe("nvcuda::wmma in CUDA C", function()
  -- NVRTC emits the same instructions for both targets, so each target tests
  -- half of the types and shapes.
  for half, arch in ipairs {"sm_80", "sm_90a"} do
    it("computes products for " .. arch .. support.long(half), function()
      local module, why = core.jit_compile("", "compute_80")
      if not module and tostring(why):find "no%-nvrtc" or not has_headers() then
        pending "needs NVRTC and the CUDA toolkit's headers"
        return
      end
      local kinds = {}
      for i, k in ipairs(KINDS) do
        if (i - 1) // 4 % 2 == half - 1 then kinds[#kinds + 1] = k end
      end
      local kernels = cute.cuda(source(kinds), {arch = arch,
        include = {TOOLKIT}, options = {"--std=c++17"}})
      for _, k in ipairs(kinds) do
        check(kernels, k, 0, 16)
        check(kernels, k, 1, 0)
      end
    end)
  end

  it("multiplies 4-bit integers and bits", function()
    local function times(x, y) return x * y end
    small("m8n8k32", "s4", "", 4, times)
    small("m8n8k32", "u4", "", 4, times)
    small("m8n8k128", "b1", "xor.popc.", 1, function(x, y) return x ~ y end)
    small("m8n8k128", "b1", "and.popc.", 1, times)
  end)

  it("is rejected for other shapes", function()
    local HEAD = [[
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b32 r<8>; .reg .f32 f<8>; .reg .f64 d<4>; .reg .b64 a;
ld.param.u64 a, [p];
]]
    for _, case in ipairs {
      {"wmma.load.a.sync.aligned.row.m16n8k16.global.f16 {r0, r1}, [a];",
        "this shape"},
      {"wmma.load.a.sync.aligned.row.m32n8k16.global.tf32 {r0, r1}, [a];",
        "this type with this shape"},
      {"wmma.load.a.sync.aligned.row.m8n8k32.global.s8 r0, [a];",
        "this type with this shape"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {r0, r1}, [a];",
        "these operands"},
      {"wmma.load.a.sync.aligned.col.m8n8k32.global.s4 r0, [a];",
        "elements of less than 8 bits in this order"},
      {"wmma.load.b.sync.aligned.row.m8n8k128.global.b1 r0, [a];",
        "elements of less than 8 bits in this order"},
      {"wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64 {d0, d1}, {d0}, "
        .. "{d1}, {d2};", "these operands"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {r0}, {r0}, "
        .. "{r1}, {r2};", "these types"},
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
