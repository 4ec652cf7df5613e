-- Measures Hopper GEMMs of types other than bf16 on a GPU. One process compares
-- our kernel with cuBLAS and the best algorithm of cublasLt:
--
--    cutelua spec/bench/hopper_types.lua [--only e4m3] [--sizes 2048,4096]
--
-- Every result is first compared with cuBLAS's product in double precision.
-- 8-bit floats have two rows. In the row with fast accumulation, sums stay in
-- the tensor cores. In the other row (cublasLt's default), cublasLt and our
-- kernel add partial sums in f32.
local card = require "spec.card"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local gpu = require "cute.gpu"
local measure = require "spec.measure"

local device = measure.gpu_device(90)
if not device then return end
local dev = device.dev

local options = card.options {rounds = "5", only = "", warm = "60", hot = "50",
                              sizes = "2048,4096,8192"}

-- Kinds of products: the type of A and B, the type of D, options of our kernel
-- and of cublasLt.
local KINDS = {
  {"e4m3", "e4m3", "bf16", ours = {promote = 1}},
  {"e4m3 fast", "e4m3", "bf16", lt = {fast_accum = true}},
  {"e5m2 x e4m3", "e4m3", "bf16", ours = {promote = 1, a_dtype = cute.e5m2},
   a = "e5m2", at = 4096},
  {"e4m3 to f32", "e4m3", "f32", ours = {promote = 1}, at = 4096},
  {"tf32", "f32", "f32", lt = {tf32 = true}, blas = true},
  {"i8", "i8", "i32", blas = true},
  {"f16", "f16", "f16", blas = true, at = 4096},
  {"bf16 to f32", "bf16", "f32", blas = true, at = 4096},
  {"e4m3, M", "e4m3", "bf16", ours = {promote = 1}, m_major = true, at = 4096},
  {"tf32, M", "f32", "f32", lt = {tf32 = true}, m_major = true, at = 4096},
  {"i8, M", "i8", "i32", m_major = true, at = 4096},
}

-- PLACE: the relative rounding error of D's type (half an ulp). MOST: the
-- tolerance of the relative error in the norm.
local PLACE = {bf16 = 2^-8, f16 = 2^-11, f32 = 2^-23, i32 = 0}
local MOST = {bf16 = 2e-3, f16 = 3e-4, f32 = 3e-5, i32 = 0x1p-60}

-- Returns the absolute tolerance of an element, and the tolerance in the norm.
-- Tensor cores truncate sums of n products of N(0,1) at 24 fractional bits.
-- Sums of 8-bit floats are truncated at 13 bits. Unless fast accumulation is
-- on, these sums restart every 128 products.
local function bounds(kind, n, fast)
  if kind[2] == "i8" then return 0, MOST.i32 end
  if kind[2] ~= "e4m3" then
    return n * 2^-24 * 5 * math.sqrt(n), MOST[kind[3]]
  end
  return n / 32 * 2^-13 * 5 * math.sqrt(fast and n or 128),
    MOST[kind[3]] + (fast and 2e-3 or 3e-4)
end

local function merged(...)
  local t = {}
  for _, from in ipairs {...} do
    for k, v in pairs(from) do t[k] = v end
  end
  return t
end

local function compete(kind, n)
  local name, ab, d = table.unpack(kind)
  local A = card.matrix(dev, kind.a or ab, n * n, 1)
  local B = card.matrix(dev, ab, n * n, 1 << 40)
  local D = card.matrix(dev, d, n * n)
  local spec = {m = n, n = n, k = n, A = A, B = B, D = D,
                m_major = kind.m_major}
  local right = card.product(dev, spec)
  local list, lt = {}, kind.lt or {}
  local bound, most = bounds(kind, n, lt.fast_accum)
  local function add(who, launch)
    D:memset(0xff)
    launch:launch()
    dev:sync()
    local error, wrong = card.difference(dev, D, right, PLACE[d], bound)
    list[#list + 1] = {name = who, launch = launch, error = error,
                       wrong = wrong, most = most}
  end
  add("cublasLt", (gpu.best(assert(gpu.cublaslt(merged(spec, lt))))))
  if kind.blas then add("cuBLAS", assert(gpu.cublas(merged(spec, lt)))) end
  local dtype = cute[ab]
  local choices = gemm_sm90.choose(n, n, n, merged({dtype = dtype,
    d_dtype = cute[d], d_major = kind.m_major and "m" or nil,
    sms = device.info.sms}, kind.ours or {}))
  add("ours", assert(gemm_sm90(choices).prepare(card.tensor(A, n, n),
    card.tensor(B, n, n), card.tensor(D, n, n, kind.m_major),
    {device = "gpu", sms = device.info.sms})))
  card.compete(("%s %d"):format(name, n), list, "cublasLt", 2.0 * n * n * n,
               options)
  for _, b in ipairs {A, B, D, right} do b:close() end
end

print(("%s; power limit, clock, draw: %s"):format(device.name, card.state()))
print(card.HEAD:format "cublasLt")
for n in options.sizes:gmatch "%d+" do
  for _, kind in ipairs(KINDS) do
    if (options.only == "" or options.only == kind[1])
      and (kind.at or tonumber(n)) == tonumber(n) then
      compete(kind, math.tointeger(n))
    end
  end
end
print("after: " .. card.state())
-- SPDX-License-Identifier: MIT
