-- Measures Hopper GEMMs on a GPU: D = A B^T in bf16. One process compares our
-- kernel with cuBLAS, the best algorithm of cublasLt, and handwritten CUDA C:
--
--    cutelua spec/bench/hopper.lua [--only 4096x4096x4096] [--rounds 5]
--
-- The handwritten kernels are gemm_sm90_*.cu in $CUTELUA_REFERENCE_DIR (default
-- ../shared/reference); the first line of each says how to launch it.
local card = require "spec.card"
local core = require "cute.core"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local gpu = require "cute.gpu"
local measure = require "spec.measure"

local device = measure.gpu_device(90)
if not device then return end
local dev = device.dev

local options = card.options {rounds = "5", only = "", warm = "60",
                              hot = "50"}

-- Each problem is {M, N, K, the name of the handwritten CUDA text for that
-- size}. Two fields are for programmatic dependent launch. `pdl` is the name of
-- the handwritten CUDA text that is launched this way. `ours_pdl` has the
-- options of our kernel; without this field, they are those of
-- gemm_sm90.choose.
local SHAPES = {
  {512, 512, 512, "512_cold", pdl = "512",
   ours_pdl = {tile = {64, 64, 64}, stages = 8, consumers = 1,
               persistent = false}},
  {1024, 1024, 1024, "1024", pdl = "1024",
   ours_pdl = {tile = {128, 64, 64}, stages = 8, epi = {64, 32},
               persistent = false}},
  {2048, 2048, 2048, "2048_nopdl", pdl = "2048"},
  {4096, 4096, 4096, "4096"},
  {8192, 1024, 8192, "4096"},
  {8192, 8192, 8192, "8192"},
  {16384, 16384, 16384, "16384"},
  {4096, 11008, 4096, "4096x11008x4096"},
  {4096, 4096, 128, "4096x4096x128", pdl = "4096x4096x128"},
  {128, 8192, 8192, "128x8192x8192", pdl = "128x8192x8192"},
}

---------------------------------------------------------------------------
-- Handwritten kernels
---------------------------------------------------------------------------

local FOLDER = os.getenv "CUTELUA_REFERENCE_DIR" or "../shared/reference"
local SWIZZLE_128, L2_128 = 3, 2

-- Returns a tensor map for rows of `inner` elements, copied in boxes of 64 by
-- `rows`.
local function map(buffer, inner, outer, rows)
  local words = core.encode_tensor_map {
    type = 9, rank = 2, address = buffer.address, extent = {inner, outer},
    stride = {inner * 2}, box = {64, rows}, step = {1, 1},
    swizzle = SWIZZLE_128, l2 = L2_128}
  return string.pack("<" .. ("i8"):rep(#words), table.unpack(words))
end

local function by_text(name, m, n, k, A, B, D, pdl)
  local file <close> = io.open(("%s/gemm_sm90_%s.cu"):format(FOLDER, name))
  if not file then return nil end
  local text = file:read "a"
  local says = {}
  for key, value in text:match "^[^\n]*":gmatch "(%w+)=(%S+)" do
    says[key] = math.tointeger(tonumber(value)) or value
  end
  local cluster = says.cluster
  local tiles = (m + says.BM * says.CM - 1) // (says.BM * says.CM)
    * ((n + says.BN * says.CN - 1) // (says.BN * says.CN))
  local kernel = cute.raw_kernel(text, {name = "gemm", block = says.threads,
                                        smem = says.smem})
  local most = device.info.sms // cluster
  return assert(kernel(map(A, k, m, says.boxAm), map(B, k, n, says.boxBn),
    map(D, m, n, says.EN), m, n, k):compile {
      grid = math.min(tiles, most) * cluster, cluster = cluster,
      pdl = pdl and says.PDL == 1})
end

local function by_ours(choices, m, n, k, A, B, D, pdl)
  local all = {d_major = "m", pdl = pdl}
  for name, v in pairs(choices) do all[name] = v end
  return assert(gemm_sm90(all).prepare(card.tensor(A, m, k),
    card.tensor(B, n, k), card.tensor(D, m, n, true),
    {device = "gpu", sms = device.info.sms}))
end

---------------------------------------------------------------------------

local function contestants(shape, A, B)
  local m, n, k = table.unpack(shape)
  local D = {}
  local function result(name)
    D[name] = card.matrix(dev, "bf16", m * n)
    return D[name]
  end
  local how = {m = m, n = n, k = k, A = A, B = B, m_major = true}
  local function blas(make, name)
    local t = {D = result(name)}
    for key, v in pairs(how) do t[key] = v end
    return assert(make(t))
  end
  local list = {{name = "cuBLAS", launch = blas(gpu.cublas, "cuBLAS")}}
  list[2] = {name = "cublasLt",
             launch = (gpu.best(blas(gpu.cublaslt, "cublasLt")))}
  local function text(name, which, pdl)
    local run = which and by_text(which, m, n, k, A, B, result(name), pdl)
    if run then list[#list + 1] = {name = name, launch = run} end
  end
  local function ours(name, choices, pdl)
    list[#list + 1] = {name = name,
      launch = by_ours(choices, m, n, k, A, B, result(name), pdl)}
  end
  local choices = gemm_sm90.choose(m, n, k, {d_major = "m",
                                             sms = device.info.sms})
  ours("ours", choices)
  if shape.pdl then ours("ours, PDL", shape.ours_pdl or choices, true) end
  text("text", shape[4])
  text("text, PDL", shape.pdl, true)
  return list, D
end

local function compete(shape)
  local m, n, k = table.unpack(shape, 1, 3)
  local A = card.matrix(dev, "bf16", m * k, 1)
  local B = card.matrix(dev, "bf16", n * k, 1 << 40)
  local list, D = contestants(shape, A, B)
  for _, c in ipairs(list) do
    c.launch:launch()
    dev:sync()
    -- 0.0079 is the relative tolerance of an element, for the rounding of D to
    -- bf16. The other number is the absolute tolerance for f32 sums of k
    -- products of N(0,1), added in any order.
    c.error, c.wrong = card.difference(dev, D[c.name], D.cuBLAS, 0.0079,
                                       4e-6 * math.sqrt(k) * 8)
    c.most = 3e-3
  end
  card.compete(("%dx%dx%d"):format(m, n, k), list, "cuBLAS", 2.0 * m * n * k,
               options)
  for _, b in pairs(D) do b:close() end
  A:close()
  B:close()
end

print(("%s; power limit, clock, draw: %s"):format(device.name, card.state()))
print(card.HEAD:format "cuBLAS")
for _, shape in ipairs(SHAPES) do
  local name = ("%dx%dx%d"):format(table.unpack(shape, 1, 3))
  if options.only == "" or options.only == name then compete(shape) end
end
print("after: " .. card.state())
-- SPDX-License-Identifier: MIT
