-- Measures the simulator on the kernel of scripts/gemm3stage.lua with all
-- checks on: its time, its memory, and how both grow with the size of the
-- problem. Also measures the simulator's speed of mma.sync alone.
local core = require "cute.core"
local cute = require "cute"
local lesson = require "cutelua.bench.lessonlib"
local measure = require "spec.measure"

local ITSELF = "spec/bench/sim.lua"
local SIM = "sim:sm_90a"

local function high_water()
  for line in io.lines "/proc/self/status" do
    local kb = line:match "^VmHWM:%s*(%d+) kB"
    if kb then return tonumber(kb) * 1024 end
  end
end

local function gemm(size, threads)
  local script = require "spec.lesson" "scripts/gemm3stage.lua"
  local t = {}
  for i = 1, 3 do
    local b = core.buffer("bf16", size * size)
    if i < 3 then b:fill_normal(i) end
    t[i] = cute.make_tensor(b, cute.make_layout({size, size}, {size, 1}))
  end
  return cute.compile(script.kernel, t[1], t[2], t[3], {
    grid = (size // script.tile[1]) * (size // script.tile[2]),
    block = script.block, device = SIM, threads = threads})
end

-- Runs one launch in this child process. Prints the seconds, and the peak
-- memory without the three matrices, in bytes; it includes Lua and the
-- program.
local function child(size, threads)
  size, threads = tonumber(size), tonumber(threads)
  local run = gemm(size, threads)
  local start = core.clock()
  assert(run:launch().ok)
  print(core.clock() - start, high_water() - 3 * 2 * size * size)
end

-- Returns the simulated multiply-adds per second of m16n8k16, with operands in
-- registers, on one core.
local function mma_rate()
  local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
  local A = cute.ones({16, 16}, cute.bf16)
  local B, C = cute.ones({8, 16}, cute.bf16), cute.zeros({16, 8}, cute.f32)
  local N = 20000
  local run = cute.compile(cute.kernel("mma", function(mA, mB, mC)
    local thr = mma:get_slice(cute.arch.thread_idx())
    local tA, tB = thr:partition_A(mA), thr:partition_B(mB)
    local tC = thr:partition_C(mC)
    local rA, rB = thr:make_fragment_A(tA), thr:make_fragment_B(tB)
    local rC = thr:make_fragment_C(tC)
    cute.autovec_copy(tA, rA)
    cute.autovec_copy(tB, rB)
    rC:fill(0)
    for _ in cute.range(N) do cute.gemm(mma, rC, rA, rB, rC) end
    cute.autovec_copy(rC, tC)
  end), A, B, C, {grid = 1, block = 32, device = SIM, threads = 1})
  local list = {}
  for i = 1, 5 do
    local start = core.clock()
    assert(run:launch().ok)
    list[i] = N * 16 * 8 * 16 / (core.clock() - start) * 1e-6
  end
  return list
end

if arg[1] then return child(arg[1], arg[2]) end

local function launches(n, size, threads)
  local times, memory = {}, 0
  for i = 1, n do
    measure.progress(("simulating %d^3, %d of %d"):format(size, i, n))
    local out = measure.child {ITSELF, tostring(size), tostring(threads)}
    local seconds, bytes = out:match "^(%S+)\t(%S+)"
    times[i], memory = tonumber(seconds), math.max(memory, tonumber(bytes))
  end
  return times, memory / 1e6
end

local t = measure.table "Simulator, gemm3stage, bf16 on sm_90a"
local least = launches(7, 256, 1)
t:add("256^3, one core", least, "s", 0.5)
local last, memory = launches(3, 1024, 2)
t:add("1024^3, two threads", last, "s", 15)
t:add("1024^3, memory beyond the matrices", memory, "MB", 200)
t:add("mma.sync m16n8k16 alone, one core", mma_rate(),
      "million multiply-adds/s")
t:print()

local rows = {{"size", "seconds", "ns a multiply-add", "of 512^3's",
               "MB beyond the matrices"}}
local unit
for _, size in ipairs {512, 768, 1024, 1536} do
  local times, mb = launches(size < 1024 and 3 or 1, size, 2)
  local s = measure.stats(times).median
  local each = s / size ^ 3 * 1e9
  unit = unit or each
  rows[#rows + 1] = {size .. "^3", ("%.2f"):format(s), ("%.3f"):format(each),
                     ("%.2f"):format(each / unit), ("%.0f"):format(mb)}
end
measure.progress()
print "Growth with M*N*K, two threads (linear: 1.00)"
lesson.print_table(rows, "  ")
print()
-- SPDX-License-Identifier: MIT
