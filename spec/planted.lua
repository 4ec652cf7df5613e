--- Runs kernels/gemm_sm90 on the simulator with faults planted in its text, or
-- in the text of its pipelines.
local assert = require "luassert"
local cute = require "cute"
local gemm_sm90 = require "spec.faults.gemm_sm90"
local hopper = require "spec.hopper"
local support = require "spec.support"

local planted = {}

-- Parts of gemm_sm90 in which faults can be planted: files of its pipelines
-- (PIPES), and files of the kernel (KERNEL).
local PIPES = {"state", "sync", "stages"}
local KERNEL = {"options", "smem", "option_rules", "choice", "tile_order",
                "producer", "mainloop", "store_tile", "cluster_splitk",
                "block_scales", "stream", "kernel"}

--- Small configurations of the kernel that have many tiles and reuse each stage
-- several times.
planted.CHOICES = {
  whole = {tile = {128, 64, 64}, stages = 3},
  ["2x1"] = {tile = {128, 64, 64}, stages = 3, cluster = {2, 1}},
  ["1x2"] = {tile = {128, 64, 64}, stages = 3, cluster = {1, 2}},
  ["2x2"] = {tile = {128, 64, 64}, stages = 2, cluster = {2, 2}},
  turns = {tile = {64, 64, 64}, stages = 3, schedule = "pingpong"},
  ["turns 2x1"] = {tile = {64, 64, 64}, stages = 3, schedule = "pingpong",
                   cluster = {2, 1}},
  halves = {tile = {128, 64, 64}, stages = 3, split = 2},
  registers = {tile = {256, 208, 64}, stages = 2, epi_stages = 1},
  overlap = {tile = {128, 64, 64}, stages = 3, pdl = true},
  dynamic = {tile = {128, 64, 64}, stages = 3, scheduler = "dynamic"},
  stream = {tile = {128, 64, 64}, stages = 3, split = "stream", least = 1},
}

-- the module of each element of PIPES and of gemm_sm90
local module = {gemm_sm90 = "kernels.gemm_sm90"}
for _, part in ipairs(PIPES) do module[part] = "cute.pipe." .. part end
for _, part in ipairs(KERNEL) do module[part] = "kernels.gemm_sm90." .. part end

local function path_of(part)
  local path = module[part]:gsub("^cute", "lua/cute"):gsub("%.", "/")
  return path .. ".lua"
end

-- Loads modules from texts, in order. Each module can require the ones before
-- it.
local function loaded(texts, parts)
  local out = {}
  for _, part in ipairs(parts) do
    local text = texts[part] or support.read(path_of(part))
    local it = assert(load(text, "@" .. path_of(part)))()
    package.loaded[module[part]], out[#out + 1] = it, it
  end
  return out
end

-- Returns gemm_sm90 built from the changed texts.
local function gemm_of(texts)
  local pipe = {}
  for _, it in ipairs(loaded(texts, PIPES)) do
    for name, v in pairs(it) do pipe[name] = v end
  end
  rawset(cute, "pipeline", pipe)
  loaded(texts, KERNEL)
  return loaded(texts, {"gemm_sm90"})[1]
end

--- Returns gemm_sm90 after changes of its text, and the changed texts. A
-- change is {file, from, to, nth}, where `file` is an element of PIPES or
-- KERNEL.
---@param changes table[]
---@return function gemm, table<string, string> texts
function planted.kernel(changes)
  local texts, kept, own = {}, {}, cute.pipeline
  for _, name in pairs(module) do kept[name] = package.loaded[name] end
  for _, c in ipairs(changes) do
    local text = texts[c[1]] or support.read(path_of(c[1]))
    texts[c[1]] = support.change(text, c[2], c[4] or 1, c[3])
  end
  local ok, gemm = pcall(gemm_of, texts)
  rawset(cute, "pipeline", own)
  for _, name in pairs(module) do package.loaded[name] = kept[name] end
  assert(ok, gemm)
  return gemm, texts
end

--- Runs D = A B^T of (m,n,k) under a seed. Returns the report and the operands.
-- If `before` is given, it has the operands of the preceding launch, whose D
-- becomes A.
---@param g table a result of gemm_sm90
---@return table report, table operands
function planted.run(g, size, seed, before)
  local m, n, k = table.unpack(size)
  local x = {A = before and before.D or hopper.matrix(m, k, 1),
             B = hopper.matrix(n, k, 2), D = hopper.matrix(m, n)}
  x.run = g.prepare(x.A, x.B, x.D, {device = "sim:sm_90a", sms = 4,
    seed = seed, output = false})
  return support.report(x.run:launch {faults = "return"}), x
end

--- Describes the first wrong element of the D of planted.run, or returns nil.
function planted.differs(x)
  local want = hopper.product(x.A, x.B)
  return hopper.differs(x.D, function(i, j)
    return hopper.rounded(want(i, j))
  end)
end

--- The faults to plant, and the expected report of a fault that makes a warp
-- arrive too early.
planted.FAULTS, planted.EARLY = gemm_sm90.FAULTS, gemm_sm90.EARLY

-- Returns the first line that contains `what`, in the order of KERNEL's files.
local function line(texts, what)
  for _, part in ipairs(KERNEL) do
    local text = texts[part] or support.read(path_of(part))
    local at = text:find(what, 1, true)
    if at then return select(2, text:sub(1, at):gsub("\n", "")) + 1 end
  end
  error(what)
end

--- Reports whether "kind: message" of a report's fault matches one of the
-- patterns.
---@param f table of a report
---@param patterns string|string[]
function planted.told(f, patterns)
  local text = f.kind .. ": " .. f.message
  for _, p in ipairs(type(patterns) == "table" and patterns or {patterns}) do
    if text:find(p) then return true end
  end
  return false
end

--- Returns a sentence on how a report differs from the one that is expected for
-- a fault of FAULTS, or nil.
---@param fault table
---@param r table the report
---@param texts table<string, string> of planted.kernel
function planted.untold(fault, r, texts)
  local first = r.reports[1]
  if not first then return "nothing is told" end
  if not planted.told(first, fault[4]) then return "other words" end
  for i, what in ipairs(fault[5] or {}) do
    local want, got = line(texts, what), i == 1 and first.line or first.line2
    if got ~= want then return ("line %d, not %d"):format(got or 0, want) end
  end
end

return planted
-- SPDX-License-Identifier: MIT
