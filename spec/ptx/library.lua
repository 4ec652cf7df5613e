--- Launches every kernel of kernels/ and cute.ops at small odd sizes, for specs
-- of the PTX reader. Each entry is {name, archs, run = function(device)}.
local core = require "cute.core"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local grouped = require "spec.grouped"
local harness = require "cutelua.bench.harness"
local hopper = require "spec.hopper"
local lib = require "cutelua.bench.lessonlib"
local odd = require "spec.odd"
local products = require "spec.sparse"
local rows = require "spec.rows"

local BOTH, SM90 = {"sm_80", "sm_90a"}, {"sm_90a"}

local list = {}
local function add(name, archs, run)
  list[#list + 1] = {name = name, archs = archs, run = run}
end

---------------------------------------------------------------------------
-- Scripts at odd sizes
---------------------------------------------------------------------------

local HOPPER = {copy_tma = true, gemm_wgmma = true, gemm_tma = true,
                gemm_ws = true, gemm_hopper = true}

for i, script in ipairs(odd.SCRIPTS) do
  add("odd " .. script, odd.ARCHS[script] or HOPPER[script] and SM90
    or BOTH, function(device)
    for k = 0, 3 do
      local wrong = odd.try(script, k * #odd.SCRIPTS + i - 1, device)
      if wrong then error(wrong) end
      if wrong == false then return end
    end
    error "no size was taken"
  end)
end

---------------------------------------------------------------------------
-- Kernels of the library with other options than their scripts'
---------------------------------------------------------------------------

local function try(spec, size, dtype, opt, device)
  local p = harness.problem(spec, size, {dtype = dtype, opt = opt})
  local ok, reports, wrong = harness.try(p, device)
  if not ok then error(wrong or tostring(reports[1])) end
end

-- Returns the names of options as text, sorted.
local function words_of(o)
  local words = {}
  for k in pairs(o or {}) do words[#words + 1] = " " .. k end
  table.sort(words)
  return table.concat(words)
end

for _, l in ipairs {
  {"rope", {7, 3, 12, 5}, "f32", {interleaved = true}},
  {"rope", {9, 2, 16, 5}, "bf16", {at = true}},
  {"rope", {7, 2, 16, 5}, "f16", {inverse = true}},
  {"attention", {2, 33, 40, 4, 2, 32}, "f16", {causal = true}},
  {"attention", {1, 65, 70, 2, 1, 128}, "bf16", {causal = true}},
  {"attention_backward", {2, 20, 30, 4, 2, 32}, "f16", {causal = true}},
  {"attention_backward", {1, 9, 7, 1, 1, 192}, "bf16"},
  {"attention_decode", {1, 50, 3, 1, 32}, "f16"},
  {"conv2d", {2, 7, 5, 24, 40}, "f16", {stride = 2, dilation = 2}},
  {"gemm_splitk", {65, 40, 200}, "f16", {splits = 3}},
  {"gemm_int4", {5, 48, 256}, "f16", {zeros = true, group = 64}},
  {"gemm_int4", {17, 64, 512}, "bf16", {splits = 2}}} do
  local name, size, dtype, opt = table.unpack(l)
  add(("%s %s %s%s"):format(name, table.concat(size, "x"), dtype,
    words_of(opt)), BOTH, function(device)
    local spec = assert(lib.script_spec(("scripts/%s.lua"):format(name),
                                        "cutelua.bench.harness", "run"))
    try(spec, size, dtype, opt, device)
  end)
end
add("gemm_int4 in a cluster", SM90, function(device)
  try(assert(lib.script_spec("scripts/gemm_int4.lua",
    "cutelua.bench.harness", "run")), {9, 64, 512}, "bf16",
    {splits = 2, cluster = true}, device)
end)

local SPREAD = {{"held", {}}, {"walked", {threads = 64, values = 8}},
  {"staged", {staged = true, values = 8, threads = 64}},
  {"persistent", {persistent = true, resident = 2}}}
local function spread(name, more, size)
  for i, way in ipairs(SPREAD) do
    local o = {}
    for k, v in pairs(more) do o[k] = v end
    for k, v in pairs(way[2]) do o[k] = v end
    local dtype = ({"f32", "bf16", "f16"})[i % 3 + 1]
    add(("%s %s%s"):format(name, way[1], words_of(more)), BOTH,
      function(device)
        try(rows[name](o), size or {9, 333}, dtype, nil, device)
      end)
  end
end
spread("softmax", {})
spread("softmax_backward", {})
spread("norm", {weight = true})
spread("norm", {weight = true, bias = true, layer = true, residual = true,
                save = true})
spread("argmax", {smallest = true})
spread("reduce", {op = "max"})
for _, along in ipairs {"columns", "all"} do
  add("reduce along " .. along, BOTH, function(device)
    try(rows.reduce {op = "sum", along = along, fill = {-3, 3}}, {31, 77},
        "bf16", nil, device)
  end)
end
for _, way in ipairs {
  {"held", {9, 1000}, {resident = 2}},
  {"staged", {9, 1000}, {staged = true, values = 8, threads = 64,
                         resident = 2}},
  {"2 blocks", {9, 1000}, {blocks = 2, threads = 64, stages = 2,
                           resident = 4}},
  {"3 blocks", {11, 3080}, {blocks = 3, threads = 64, resident = 7}}} do
  for _, layer in ipairs {false, true} do
    local o = setmetatable({backward = true, layer = layer, weight = true,
                            bias = layer}, {__index = way[3]})
    add(("%s backward, %s"):format(layer and "layernorm" or "rmsnorm", way[1]),
      BOTH, function(device)
        try(rows.norm(o), way[2], "bf16", nil, device)
      end)
  end
end

local function fresh(shape, dtype, seed)
  local n = cute.product(shape)
  local b = core.buffer(dtype, n)
  if seed then b:fill_int(seed, 0, 5) else b:fill(0) end
  return cute.make_tensor(b, cute.make_layout(shape, cute.LayoutRight))
end

local function launch(k, device, m, ...)
  local grid = type(k.grid) == "function" and k.grid(m) or k.grid
  k.kernel(...):launch {grid = grid, block = k.block, device = device}
end

for _, o in ipairs {{op = "max", dtype = "i32"},
    {exclusive = true, dtype = "bf16"}, {op = "mul", dtype = "f32"}} do
  add(("scan %s of %s"):format(o.op or "exclusive", o.dtype), BOTH,
    function(device)
      local k = require "kernels.scan" {dtype = cute[o.dtype], n = 1003,
                                        op = o.op, exclusive = o.exclusive}
      launch(k, device, 3, fresh({3, 1003}, o.dtype, 1),
        fresh({3, 1003}, o.dtype == "bf16" and "f32" or o.dtype))
    end)
end
add("scan in one pass", BOTH, function(device)
  local k = require "kernels.scan" {dtype = cute.i32, n = 2003, block = 64,
                                    values = 4, one_pass = true}
  launch(k, device, nil, fresh({1, 2003}, "i32", 1), fresh({1, 2003}, "i32"),
         fresh({k.states}, "u64"))
end)
for _, o in ipairs {{k = 8, dtype = "bf16"}, {k = 64, dtype = "f32"},
                    {k = 3, dtype = "f16", smallest = true}} do
  add(("topk %d of %s"):format(o.k, o.dtype), BOTH, function(device)
    local k = require "kernels.topk" {dtype = cute[o.dtype], n = 777, k = o.k,
                                      smallest = o.smallest}
    launch(k, device, 5, fresh({5, 777}, o.dtype, 1), fresh({5, o.k}, o.dtype),
           fresh({5, o.k}, "i32"))
  end)
end
add("histogram of bins", BOTH, function(device)
  local k = require "kernels.histogram" {dtype = cute.f32, n = 1003, bins = 7,
    bin = function(x) return x:to(cute.i32) + 1 end}
  launch(k, device, nil, fresh({1003}, "f32", 1), fresh({7}, "i32"))
end)
add("selective_scan, plain", BOTH, function(device)
  local k = require "kernels.selective_scan" {dtype = cute.f32, states = 8,
                                              softplus = true}
  local x = {2, 9, 21}
  k.kernel(fresh(x, "f32", 1), fresh(x, "f32", 2), fresh({9, 8}, "f32", 3),
    fresh({2, 8, 21}, "f32", 4), fresh({2, 8, 21}, "f32", 5), fresh(x, "f32"))
    :launch {grid = k.grid(2, 9), block = k.block, device = device}
end)

---------------------------------------------------------------------------
-- The GEMM for Hopper in every configuration
---------------------------------------------------------------------------

for i, case in ipairs(hopper.CASES) do
  add("gemm_sm90, " .. case[1], SM90, function(device)
    local wrong = hopper.wrong_at(gemm_sm90(case[2]),
      hopper.SIZES[i % #hopper.SIZES + 1], device, 1)
    if wrong then error(wrong) end
  end)
end

---------------------------------------------------------------------------
-- cute.ops
---------------------------------------------------------------------------

local ops = cute.ops

for _, t in ipairs {"bf16", "f16", "f32", "f64", "i8", "i32", "e4m3"} do
  add("ops.gemm of " .. t, t == "e4m3" and SM90 or BOTH, function(device)
    ops.gemm(fresh({33, 72}, t, 1), fresh({41, 72}, t, 2),
             {device = device, dtype = t == "e4m3" and cute.f32 or nil})
  end)
end
add("ops.gemm of tf32 with C", BOTH, function(device)
  ops.gemm(fresh({33, 72}, "f32", 1), fresh({41, 72}, "f32", 2),
           fresh({33, 41}, "f32", 3), {device = device, tf32 = true,
                                       alpha = 2, beta = -1})
end)
add("ops.gemm of columns and batches", BOTH, function(device)
  local A = fresh({3, 40, 35}, "bf16", 1)
  ops.gemm(cute.select(A, {0, 2, 1}), fresh({24, 40}, "bf16", 2),
           {device = device, dtype = cute.f32})
end)
add("ops.gemm with an epilogue", BOTH, function(device)
  local bias = fresh({41}, "f32", 3)
  ops.gemm(fresh({70, 64}, "bf16", 1), fresh({41, 64}, "bf16", 2),
    {device = device, epilogue = function(acc, at)
      return ops.gelu(acc + at:col(bias))
    end})
end)
add("ops.gemm, gated", BOTH, function(device)
  ops.gemm(fresh({70, 64}, "bf16", 1), fresh({80, 64}, "bf16", 2),
    {device = device, gated = true, epilogue = function(gate, up)
      return ops.silu(gate) * up
    end})
end)
add("ops.gemm with scales", BOTH, function(device)
  ops.gemm(fresh({40, 256}, "bf16", 1), fresh({48, 256}, "i8", 2),
    {device = device, scale_b = fresh({48, 2}, "f32", 3), group = 128})
end)
add("ops.gemm of e4m3 with blocks of scales", SM90, function(device)
  ops.gemm(fresh({70, 256}, "e4m3", 1), fresh({64, 256}, "e4m3", 2),
    {device = device, dtype = cute.f32, scale_a = fresh({70, 2}, "f32", 3),
     scale_b = fresh({1, 2}, "f32", 4), group = 128})
end)
for _, rows_of in ipairs {1, 7, 17} do
  add(("ops.gemm of %d rows"):format(rows_of), BOTH, function(device)
    ops.gemm(fresh({rows_of, 1024}, "bf16", 1), fresh({72, 1024}, "bf16", 2),
             {device = device})
  end)
end
add("ops.gemm of int4", BOTH, function(device)
  ops.gemm(fresh({3, 256}, "bf16", 1),
    ops.int4(function(i, j) return (i * 7 + j) % 16 end, 64, 256),
    {device = device, scale_b = cute.select(fresh({2, 64}, "bf16", 3), {1, 0}),
     group = 128})
end)
for _, way in ipairs {{"gemm_sm90", SM90}, {"gemm_sm80", {"sm_80"}}} do
  local family, archs = way[1], way[2]
  for _, c in ipairs {
    {form = "rows", sizes = {70, 0, 1, 65}, N = 72, K = 96, skip = 3},
    {form = "masked", sizes = {33, 2}, N = 40, K = 64, most = 40},
    {form = "rows", sizes = {64, 3}, N = 40, K = 64, epilogue = true},
    {form = "rows", sizes = {5, 0, 70}, N = 40, K = 64, gated = true}} do
    add(("ops.grouped_gemm by %s, %s%s"):format(family, c.form,
      c.gated and ", gated" or c.epilogue and ", epilogue" or ""), archs,
      function(device)
      local A, B, where, o = grouped.problem(c)
      o.device = device
      grouped.by(family, ops.grouped_gemm, A, B, where, o)
    end)
  end
end
add("ops.grouped_gemm of a list", BOTH, function(device)
  ops.grouped_gemm({{fresh({5, 64}, "bf16", 1), fresh({40, 64}, "bf16", 2)},
    {fresh({70, 64}, "bf16", 3), fresh({40, 64}, "bf16", 4)}},
    {device = device})
end)

for _, case in ipairs(products.CASES) do
  add(("sparse product of %s%s"):format(case[1],
    case[4] and " in registers" or ""), SM90, function(device)
    assert(products.wrong(case, device, 1, 128, 32, 128) == 0)
  end)
end

for _, op in ipairs {"sum", "mean", "max", "argmax", "norm"} do
  for _, by in ipairs {"row", "column", "all"} do
    add(("ops.reduce %s by %s"):format(op, by), BOTH, function(device)
      ops.reduce(fresh({17, 401}, "bf16", 1), op, {by = by, device = device})
    end)
  end
end
add("ops.sample", BOTH, function(device)
  ops.sample(fresh({5, 300}, "bf16", 1), 7, {device = device, top_k = 20,
                                             top_p = 0.8, temperature = 2})
end)
local function indices()
  return cute.tensor({3, 0, 8, 3, 1, 3, 0}, cute.i32)
end
add("ops.embedding", BOTH, function(device)
  ops.embedding(indices(), fresh({9, 44}, "bf16", 1), {device = device})
end)
add("ops.embedding_backward", BOTH, function(device)
  ops.embedding_backward(fresh({7, 44}, "bf16", 1), indices(), 9,
                         {device = device})
end)
add("ops.elementwise", BOTH, function(device)
  ops.elementwise(function(a, b, s) return cute.max(a * s + b, 0) end,
    fresh({9, 77}, "bf16", 1), fresh({77}, "f32", 2), 3, {device = device})
end)
add("ops.transpose", BOTH, function(device)
  ops.transpose(fresh({3, 45, 71}, "bf16", 1), {0, 2, 1}, {device = device})
end)
add("ops.convert", BOTH, function(device)
  ops.convert(fresh({9, 77}, "f32", 1), "e4m3", {device = device})
end)
add("ops.copy", BOTH, function(device)
  ops.copy(cute.select(fresh({40, 70}, "f32", 1), {1, 0}), nil,
           {device = device})
end)

return list
-- SPDX-License-Identifier: MIT
