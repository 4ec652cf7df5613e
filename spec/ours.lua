--- Runs each Hopper kernel of this repository at a given size on the
-- simulator, and describes wrong results. spec/fuzz/hopper.lua runs them at
-- many sizes.
local cute = require "cute"
local copylesson = require "cutelua.bench.copylesson"
local gemm_sm90 = require "kernels.gemm_sm90"
local harness = require "cutelua.bench.harness"
local hopper = require "spec.hopper"
local lesson = require "cutelua.bench.lesson"
local lib = require "cutelua.bench.lessonlib"
local rung_of = require "spec.lesson"
local tma = require "spec.tma"

local DEVICE = "sim:sm_90a"

---@class OurKernel
---@field name string
---@field wrong fun(size: integer[], seed: integer): string? of {M, N, K}
local ours = {}

local function add(name, wrong)
  ours[#ours + 1] = {name = name, wrong = wrong}
end

-- Adds the configurations of kernels/gemm_sm90. Their results must be exact.
for _, case in ipairs(hopper.CASES) do
  local g
  add("gemm_sm90, " .. case[1], function(size, seed)
    g = g or gemm_sm90(case[2])
    return hopper.wrong_at(g, size, DEVICE, seed)
  end)
end

-- Adds a script of the GEMM ladder, or with `word` one of its variants. The
-- script runs with alpha and beta, and with each order of operands.
local function gemm(name, word)
  local rung
  add(name .. (word and " " .. word or ""), function(size, seed)
    rung = rung or rung_of(("scripts/%s.lua"):format(name), word)
    local o = {layout = rung.layouts[seed % #rung.layouts + 1], seed = seed}
    if seed % 2 == 1 then o.layout = rung.layout end
    if seed % 3 == 1 then o.alpha = 2 end
    if seed % 3 == 2 then o.alpha, o.beta = -1, 3 end
    local p = lesson.problem(rung, size, o)
    local r = lesson.simulate(rung, p, DEVICE, {seed = seed})
    if not r.ok then return tostring(r) end
    local ok, v, how = lesson.verify(rung, p)
    return not ok and lesson.what_is_wrong(v, how) or nil
  end)
end
for _, name in ipairs {"gemm_wgmma", "gemm_tma", "gemm_ws", "gemm_hopper"} do
  gemm(name)
end
for _, word in ipairs {"f16", "e4m3", "tf32", "i8"} do
  gemm("gemm_hopper", word)
end

-- Returns the lesson of copies by TMA, and a list of its kernels; the first one
-- is that of copy_tma.
local function copies()
  local path, own = "scripts/copy_tma.lua", arg
  -- copy_tma looks for copy_tile.lua next to this path.
  rawset(_G, "arg", {[0] = path})
  local l = copylesson.lesson(assert(lib.script_spec(path,
    "cutelua.bench.copylesson", "run")))
  rawset(_G, "arg", own)
  return l, table.move(l.compare, 1, #l.compare, 2,
                       {{name = "copy_tma", make = l.make}})
end
for i, name in ipairs {"copy_tma", "multicast", "ring"} do
  local l, list
  add(name, function(size, seed)
    if not l then l, list = copies() end
    local say = lib.say
    -- Suppresses the note that copy_tile replaces copy_tma.
    lib.say = function() end
    local p = harness.problem(l, {size[1], size[2]
      * (seed % 4 > 0 and 8 or 1)})
    local ok, reports, wrong = harness.try(p, DEVICE, {make = list[i].make,
                                                       seed = seed})
    lib.say = say
    return not ok and (wrong or tostring(reports[1])) or nil
  end)
end

-- Returns the kth pseudorandom number of a seed, an integer from 0 to n - 1.
local function pick(n, seed, k) return (seed * 7919 + k * 104729) % n end

add("boxes by TMA", function(size, seed)
  local shape = {size[1] % 90 + 1, size[2] % 70 + 1}
  local tile = {({8, 16, 32})[pick(3, seed, 1) + 1],
                ({1, 4, 16})[pick(3, seed, 2) + 1]}
  shape[1] = (shape[1] + 3) // 4 * 4
  local layout = cute.make_layout(tile)
  local wrong, first = tma.try_load(shape, tile, layout, cute.f32, DEVICE)
  return wrong > 0 and first or nil
end)

add("images unfolded by TMA", function(size, seed)
  local shape = {32, size[1] % 9 + 4, size[2] % 7 + 4, size[3] % 3 + 1}
  local filter, padding, stride = {}, {}, {}
  for i = 1, 2 do
    filter[i], stride[i] = pick(3, seed, i) + 1, pick(2, seed, i + 2) + 1
    padding[i] = pick(filter[i], seed, i + 4)
  end
  local tile = {({8, 16, 32})[pick(3, seed, 7) + 1], 32}
  local wrong, first = tma.try_unfold({shape, padding, padding, stride, filter,
    {1, 1}, tile}, cute.bf16, cute.make_layout(tile, cute.LayoutRight), DEVICE)
  return wrong > 0 and first or nil
end)

return ours
-- SPDX-License-Identifier: MIT
