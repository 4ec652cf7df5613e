--- Runs scripts of this repository at odd sizes on the simulator. The simulator
-- must report nothing, and results must be right. spec/fuzz/scripts.lua does
-- this at many sizes.
local core = require "cute.core"
local cute = require "cute"
local copylesson = require "cutelua.bench.copylesson"
local harness = require "cutelua.bench.harness"
local lesson = require "cutelua.bench.lesson"
local lib = require "cutelua.bench.lessonlib"
local support = require "spec.support"

local odd = {}

-- The scripts: copies, GEMMs, row kernels and similar ones.
odd.SCRIPTS = {"copy_basic", "copy_vector", "copy_async", "copy_swizzled",
  "copy_tile", "copy_tma", "transpose", "gemm_simt", "sgemm", "gemm_base",
  "gemm2stage", "gemm3stage", "gemm_l2swizzle", "gemm_sm70", "gemm_sm80_best",
  "gemm_tf32", "gemm_int8", "gemm_f64", "gemm_wgmma", "gemm_tma", "gemm_ws",
  "gemm_hopper", "softmax", "softmax_backward", "layernorm", "rmsnorm",
  "rmsnorm_backward", "argmax", "topk", "scan", "reduce", "histogram",
  "elementwise", "gemm_splitk", "gemm_grouped", "gemm_epilogue", "rope",
  "gemm_sm120", "gemm_tcgen05", "gemm_clc", "gemm_2cta", "gemm_mxf8",
  "gemm_nvf4", "attention", "attention_sm100", "attention_decode",
  "selective_scan", "conv2d"}

-- The targets of scripts for Blackwell, by script. attention_sm100 has none:
-- NVRTC removes some of its loads, so the counters of its PTX differ.
odd.ARCHS = {gemm_sm120 = {"sm_120a"}, gemm_tcgen05 = {"sm_100a"},
             gemm_clc = {"sm_100a"}, gemm_2cta = {"sm_100a"},
             gemm_mxf8 = {"sm_100a"}, gemm_nvf4 = {"sm_100a"},
             attention_sm100 = {}}

local EDGES = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129}

local function extent(most)
  local n = EDGES[math.random(#EDGES)]
  return math.random(2) == 1 and n <= most and n or math.random(most)
end

local function spec_of(script)
  local path = ("scripts/%s.lua"):format(script)
  local text = support.read(path)
  if text:find "copylesson" then
    return "copy", copylesson.lesson(assert(lib.script_spec(path,
      "cutelua.bench.copylesson", "run")))
  elseif text:find "bench%.lesson\"" then
    return "gemm", lesson.rung(assert(lib.script_spec(path,
      "cutelua.bench.lesson", "gemm")))
  end
  return "rows", assert(lib.script_spec(path, "cutelua.bench.harness", "run"))
end

-- Pads the rows (or columns) of operand A or B of a problem in memory.
local function pad(p, name)
  local low, t = name:lower(), cute.testing.padded(p[name])
  p[name], p[low] = t, core.param_memory(t)
  p.strides[low] = {t.stride[1], t.stride[2]}
end

-- Runs a GEMM with random size, alpha, beta and order of operands. Returns what
-- is wrong, or false.
local function gemm(rung, seed, _, device)
  local size = {extent(200), extent(150), extent(200)}
  local o = {layout = rung.layouts[seed % #rung.layouts + 1], seed = seed}
  if seed % 3 == 1 then o.alpha, o.beta = -1, 2 end
  local p = lesson.problem(rung, size, o)
  if seed % 2 == 0 then
    pad(p, "A")
    pad(p, "B")
  end
  local ok, r = pcall(lesson.simulate, rung, p, device, {seed = seed})
  if not ok then return nil, r end
  local what = table.concat(size, "x") .. " " .. o.layout
  if not r.ok then return what .. ": " .. tostring(r) end
  local right, v, how = lesson.verify(rung, p)
  return not right and what .. ": " .. lesson.what_is_wrong(v, how) or false
end

-- Number of extents at the end of a script's sizes that stay unchanged: numbers
-- of heads and of groups, and the size of a head.
local KEPT = {attention = 3, attention_sm100 = 3, attention_decode = 3}

-- The last extent of the script's sizes must be a multiple of this number.
local STEP = {gemm_mxf8 = 32, gemm_nvf4 = 32, gemm_sm120 = 2}

-- Returns random extents for a lesson. The last `kept` extents are not changed.
local function others(size, most, kept)
  local out = {}
  for i, n in ipairs(size) do
    local other = math.random(3) > 1 and i <= #size - kept
    out[i] = other and extent(math.min(n * 2, most)) or n
  end
  return out
end

local function rows(spec, seed, script, device)
  local size = others(spec.sim[1], #spec.sim[1] > 3 and 48 or 1500,
                      KEPT[script] or 0)
  size[#size] = core.round_up(size[#size], STEP[script] or 1)
  local dtype = spec.dtypes[seed % #spec.dtypes + 1]
  local ok, right, reports, wrong = pcall(function()
    local p = harness.problem(spec, size, {dtype = dtype})
    return harness.try(p, device, {seed = seed})
  end)
  if not ok then return nil, right end
  if right then return false end
  for _, r in ipairs(reports) do
    if not r.ok then wrong = tostring(r) break end
  end
  return ("%s %s: %s"):format(table.concat(size, "x"), dtype, wrong)
end

local made = {}

--- Runs a script at a random size. Returns false if nothing is wrong, nil if
-- the script rejects the size with a message, else what is wrong.
---@param script string
---@param seed integer
---@param device? string the simulator of the script's target, or sm_90a, if
-- absent
---@return string|false|nil wrong
---@return any why
function odd.try(script, seed, device)
  math.randomseed(seed)
  made[script] = made[script] or {spec_of(script)}
  local kind, spec = table.unpack(made[script])
  local say = lib.say
  lib.say = function() end
  local wrong, why = (kind == "gemm" and gemm or rows)(spec, seed,
    script, device or "sim:" .. (spec.arch or "sm_90a"))
  lib.say = say
  return wrong, why
end

return odd
-- SPDX-License-Identifier: MIT
