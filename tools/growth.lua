-- growth.lua: measures how time and memory grow with the size of the work.
-- Writes docs/measured/growth.tsv, and a chart for each part
-- (docs/measured/growth_*.svg). `make growth` runs it in under three minutes on
-- two idle cores.
--
-- Each measurement is a process of its own. It prints the processor time of the
-- measured step in seconds, and the process's peak memory in bytes. The natural
-- measure of a part is the quantity to which its time should be proportional.
local chart = require "cutelua.bench.chart"
local core = require "cute.core"
local cute = require "cute"
local measure = require "spec.measure"

local ITSELF, FOLDER = "tools/growth.lua", "docs/measured/"
local SIM = "sim:sm_90a"

local function timed(f)
  local start = os.clock()
  f()
  return os.clock() - start
end

-- Returns a matrix of normally distributed numbers, or of zeros if `seed` is
-- nil.
local function matrix(m, n, seed)
  local b = core.buffer("bf16", m * n)
  if seed then b:fill_normal(seed) end
  return cute.make_tensor(b, cute.make_layout({m, n}, {n, 1}))
end

-- ---- kernels ----

-- Returns a kernel whose threads pass a value to the next warp `barriers`
-- times. There is a barrier before and after each read.
local function ring(warps, barriers)
  return cute.kernel("ring", function(y)
    local tid = cute.arch.thread_idx()
    local s = cute.make_smem_tensor(cute.i32, 32 * warps)
    local v = cute.var(tid)
    for _ in cute.range(barriers // 2) do
      s[tid] = v:get()
      cute.arch.sync_threads()
      v:set(s[(tid + 32) % (32 * warps)])
      cute.arch.sync_threads()
    end
    y[tid] = v:get()
  end)
end

-- Returns a kernel whose warps draw numbers from a counter and store them. n
-- warps have n! different schedules.
local function tickets()
  return cute.kernel("tickets", function(counter, y)
    local tid = cute.arch.thread_idx()
    cute.when((tid % 32):eq(0), function()
      y[tid // 32] = cute.arch.atomic_add(counter.iterator, 1)
    end)
  end)
end

-- Returns a kernel with n unrolled statements.
local function unrolled(n)
  return cute.kernel("unrolled", function(x, y)
    local r = cute.make_rmem_tensor({8}, cute.f32)
    cute.autovec_copy(x, r)
    for k = 1, n do
      r[k % 8] = cute.fma(r[(k + 1) % 8], r[(k + 2) % 8], r[k % 8])
    end
    cute.autovec_copy(r, y)
  end)
end

-- Returns a kernel with n MMAs.
local function products(n)
  local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", {1, 1, 1},
                                  {32, 32, 16})
  return cute.kernel("products", function(A, B, C)
    local thr = mma:get_slice(cute.arch.thread_idx())
    local tA, tB = thr:partition_A(A), thr:partition_B(B)
    local tC = thr:partition_C(C)
    local rA, rB = thr:make_fragment_A(tA), thr:make_fragment_B(tB)
    local rC = thr:make_fragment_C(tC)
    cute.autovec_copy(tA, rA)
    cute.autovec_copy(tB, rB)
    rC:fill(0)
    for _ = 1, n // 8 do cute.gemm(mma, rC, rA, rB, rC) end
    cute.autovec_copy(rC, tC)
  end)
end

local function vectors()
  return cute.ones({8}, cute.f32), cute.zeros({8}, cute.f32)
end

-- ---- measurements of child processes: size -> seconds ----

local child = {}

function child.simulate(size)
  local gemm = require "kernels.gemm_sm80" {tile = {64, 64, 32}, stages = 3,
    mma = "SM80_16x8x16_F32BF16BF16F32_TN", atoms = {2, 2, 1},
    permutation = {32, 32, 16}}
  local call = gemm.kernel(matrix(size, size, 1), matrix(size, size, 2),
                           matrix(size, size))
  local run = call:compile {grid = gemm.grid(size, size), block = gemm.block,
                            device = SIM, threads = 1}
  return timed(function() assert(run:launch().ok) end)
end

local function check(warps, call)
  return timed(function()
    local v = call:check {grid = 1, block = 32 * warps}
    assert(v.verdict == "ok", tostring(v))
  end)
end

local function integers(n) return cute.zeros({n}, cute.i32) end

function child.check_warps(n)
  return check(n, ring(n, 1024)(integers(32 * n)))
end

function child.check_barriers(n) return check(4, ring(4, n)(integers(128))) end

function child.check_tickets(n)
  return check(n, tickets()(integers(1), integers(n)))
end

function child.trace(n)
  local call = unrolled(n)(vectors())
  return timed(function() call:trace {block = 32} end)
end

function child.emit(n)
  local program = unrolled(n)(vectors()):trace {block = 32}
  return timed(function() program:cuda() end)
end

-- Returns the seconds that NVRTC takes to compile the program, and the size of
-- its CUDA C in kilobytes.
local function compile(program)
  local jit = require "cute.jit"
  local text = program:cuda "sm_90a"
  return timed(function()
    assert(jit.compile(text, {arch = "sm_90a", cache = false,
                              options = {"--fmad=false"}}))
  end), #text / 1e3
end

function child.compile(n)
  return compile(unrolled(n)(vectors()):trace {block = 32})
end

function child.compile_mma(n)
  return compile(products(n)(matrix(32, 16), matrix(32, 16),
    cute.zeros({32, 32}, cute.f32)):trace {block = 32})
end

local function high_water()
  for line in io.lines "/proc/self/status" do
    local kb = line:match "^VmHWM:%s*(%d+) kB"
    if kb then return tonumber(kb) * 1024 end
  end
end

if arg[1] then
  local seconds, x = child[arg[1]](tonumber(arg[2]))
  print(seconds, high_water(), x)
  return
end

-- ---- the parts ----

local function cube(size) return size ^ 3 end

local function factorial(n) return n < 2 and 1 or n * factorial(n - 1) end

local SIZES = {64, 128, 256, 512, 1024, 2048}
local STATEMENTS = {300, 1000, 3000, 10000, 20000}

-- Each part is a chart. Its series are {name, child, sizes, natural, value}.
-- natural(size) is the amount of work. Without `natural`, it is the number that
-- the child prints or, if it prints none, the size. value(bytes, size) is the
-- charted value. Without `value`, the chart shows the seconds.
local PARTS = {
  {file = "simulator", title = "The simulator: a GEMM, bf16, one thread",
   x = "multiply-adds (M N K)",
   {"seconds", "simulate", SIZES, cube},
   {"MB beyond the matrices", "simulate", SIZES, cube, function(bytes, size)
     return (bytes - 3 * 2 * size * size) / 1e6
   end}},
  {file = "check", title = "cutelua check: barriers and schedules",
   x = "warps, barriers, schedules",
   {"warps, 1024 barriers", "check_warps", {1, 2, 4, 8, 16, 32}},
   {"barriers, 4 warps", "check_barriers", {64, 1024, 4096, 16384}},
   {"schedules of n warps (n!)", "check_tickets", {1, 2, 3, 4, 5, 6},
    factorial}},
  {file = "trace", title = "Tracing and emission of unrolled statements",
   x = "statements",
   {"trace", "trace", STATEMENTS}, {"emission", "emit", STATEMENTS}},
  {file = "compile", title = "NVRTC for sm_90a, by the size of the text",
   x = "kilobytes of CUDA C",
   {"fmaf, unrolled", "compile", {100, 300, 1000, 2000, 4000}},
   {"mma.sync, unrolled", "compile_mma", {16, 64, 256, 1024}}},
}

-- Measures a series at one size. Returns {amount of work, measured value}.
local function point(series, size)
  local what, natural, value = series[2], series[4], series[5]
  measure.progress(("%s %d"):format(what, size))
  local out = measure.child {ITSELF, what, tostring(size)}
  local seconds, bytes, x = out:match "^(%S+)\t(%S+)\t?(%S*)\n$"
  return {natural and natural(size) or tonumber(x) or size,
          math.max(1e-6, value and value(tonumber(bytes), size)
                           or tonumber(seconds))}
end

-- Returns the exponent of the growth between points p and q: 1 if the value is
-- proportional to the amount of work.
local function exponent(p, q)
  return math.log(q[2] / p[2]) / math.log(q[1] / p[1])
end

local nvrtc = require "cute.jit".version()
local rows = {"part\tseries\tmeasure\tvalue\texponent"}
for _, part in ipairs(PARTS) do
  if part.file ~= "compile" or nvrtc then
    local list = {}
    for i, series in ipairs(part) do
      local points = {}
      for k, size in ipairs(series[3]) do
        points[k] = point(series, size)
        local p = points[k]
        rows[#rows + 1] = ("%s\t%s\t%.4g\t%.4g\t%s"):format(part.file,
          series[1], p[1], p[2], k > 1
          and ("%.2f"):format(exponent(points[k - 1], p)) or "")
      end
      list[i] = {name = series[1], points = points}
    end
    local f <close> = assert(io.open(FOLDER .. "growth_" .. part.file .. ".svg",
                                     "w"))
    assert(f:write(chart.growth {title = part.title, x = part.x,
      y = part.file == "simulator" and "seconds and MB" or "seconds",
      series = list}))
  end
end
measure.progress()
local f <close> = assert(io.open(FOLDER .. "growth.tsv", "w"))
assert(f:write(table.concat(rows, "\n"), "\n"))
print(table.concat(rows, "\n"))
-- SPDX-License-Identifier: MIT
