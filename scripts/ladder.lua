-- The GEMM ladder: measures all GEMM scripts at the given sizes, and compares
-- each with the previous one and with cuBLAS.
--
--   cutelua scripts/ladder.lua                      all rungs
--   cutelua scripts/ladder.lua gemm_base gemm3stage --sizes 2048,4096
--   cutelua scripts/ladder.lua --svg ladder.svg --record ladder.tsv
--
-- On a GPU it prints TFLOP/s and the ratio to cuBLAS. The measurements of all
-- rungs of a kind are interleaved in one process. On the simulator it prints
-- the memory accesses of each rung.
local core = require "cute.core"
local chart = require "cutelua.bench.chart"
local cli = require "cutelua.program.cli"
local lesson = require "cutelua.bench.lesson"
local lib = require "cutelua.bench.lessonlib"
local say = lib.say

local job = {name = "ladder"}

-- The rungs of the ladder. An entry has the script and the difference to the
-- previous rung of its kind. It may also have a flag that selects a variant of
-- the script, and the variant's name.
local RUNGS = {
  {"gemm_simt", gain = "a multiply-add a thread, from global memory"},
  {"sgemm", gain = "shared memory, 8x16 of C in registers, cp.async"},
  {"gemm_base", gain = "tensor cores, one tile at a time"},
  {"gemm2stage", gain = "the next tile under way while multiplying"},
  {"gemm_l2swizzle", gain = "blocks in an order that L2 likes"},
  {"gemm3stage", flag = "--rows",
   gain = "two tiles under way, fragments across tiles (--rows)"},
  {"gemm_sm80_best", gain = "128x256 tiles, C in 16-byte stores"},
  {"gemm_wgmma", gain = "a warpgroup's MMA reads shared memory itself"},
  {"gemm_tma", gain = "the copy engine brings tiles, one thread asks"},
  {"gemm_ws", gain = "a warp that only asks, 128x256 by two warpgroups"},
  {"gemm_hopper", gain = "blocks that stay, clusters of two, C by TMA"},
  {"gemm_tf32", gain = "f32 operands cut to 19 bits"},
  {"gemm_f64", gain = "double precision"},
  {"gemm_int8", gain = "integers, exact"},
  {"gemm_fp8_sm89", gain = "8-bit floats"},
  {"gemm_sm70", gain = "Volta's atom"},
  {"gemm_hopper", flag = "--dtype f16", as = "gemm_hopper_f16",
   gain = "f16 as Hopper wants it"},
  {"gemm_hopper", flag = "--dtype e4m3", as = "gemm_hopper_e4m3",
   gain = "wgmma; sums of 128 products in f32"},
  {"gemm_hopper", flag = "--dtype tf32", as = "gemm_hopper_tf32",
   gain = "wgmma"},
  {"gemm_hopper", flag = "--dtype i8", as = "gemm_hopper_i8", gain = "wgmma"},
}

-- Loads the script of an entry of RUNGS. Returns the table that the script
-- passes to cutelua.bench.lesson.
local function load_rung(entry)
  local rung = lesson.rung(lib.must(job, lib.script_spec(
    lib.folder() .. entry[1] .. ".lua", "cutelua.bench.lesson", "gemm")),
    entry.flag)
  rung.name, rung.gain = entry.as or entry[1], entry.gain
  rung.kind = table.concat(rung.types, " ") .. (rung.tf32 and " tf32" or "")
  return rung
end

local function chosen(names)
  if #names == 0 then return RUNGS end
  local list, all = {}, {}
  for i, e in ipairs(RUNGS) do all[i] = e.as or e[1] end
  for _, name in ipairs(names) do
    local found
    for _, e in ipairs(RUNGS) do
      if (e.as or e[1]) == name:gsub("%.lua$", "") then found = e end
    end
    if not found then
      local near = core.nearest(name, all)
      lib.stop(job, ("no rung '%s'%s; there are %s [unknown-name]"):format(
        name, near and (" (did you mean %s?)"):format(near) or "",
        table.concat(all, ", ")))
    end
    list[#list + 1] = found
  end
  return list
end

local function sizes_of(text, default)
  if not text then return default end
  local sizes = {}
  for word in (text .. ","):gmatch "([^,]*)," do
    local n = cli.whole(word)
    if not n or n < 1 or n > 0x7fffffff then
      lib.stop(job, ("--sizes: whole numbers of at least 1, separated by "
        .. "commas, are expected, got '%s'"):format(word))
    end
    sizes[#sizes + 1] = n
  end
  return sizes
end

---------------------------------------------------------------------------
-- Simulator
---------------------------------------------------------------------------

-- Returns a row of the simulator's counters: the size n, accesses of warps,
-- passes through shared memory, bank conflicts, sectors, MMAs, and bytes of
-- shared memory.
local function counts(n, r, run)
  return {n, r:total "count", r:total "wavefronts", r:total "conflicts",
          r:total "sectors", r.mmas, run.program.info.smem}
end

local function run_sim(rungs, device, opt)
  local ok, lines = true, {}
  local rows = {{"rung", "size", "", "error", "accesses", "passes",
                 "conflicts", "sectors", "mma", "smem", "seconds"}}
  for _, n in ipairs(sizes_of(opt.sizes, {256})) do
    for _, rung in ipairs(rungs) do
      local p = lesson.problem(rung, {n, n, n}, {seed = opt.seed})
      local r, run = lesson.simulate(rung, p, device, {seed = opt.seed,
        progress = lib.progress_line(rung.name)})
      local right, diff, how = lesson.verify(rung, p)
      if not right then
        say("%s WRONG: %s", rung.name, lesson.what_is_wrong(diff, how))
      end
      if not r.ok then say("%s", tostring(r)) end
      ok = ok and r.ok and right
      local c = counts(n, r, run)
      rows[#rows + 1] = {rung.name, n, r.ok and right and "ok" or "WRONG",
        ("%.1e"):format(diff.frobenius), table.unpack(c, 2)}
      table.insert(rows[#rows], ("%.2f"):format(r.seconds))
      lines[#lines + 1] = {rung.name, table.unpack(c)}
    end
  end
  lib.record(job, tostring(device), lines)
  say("%s: accesses are a warp's; passes and conflicts of shared memory, "
    .. "sectors of 32 bytes of global memory", tostring(device))
  lib.print_table(rows)
  return ok
end

---------------------------------------------------------------------------
-- GPU
---------------------------------------------------------------------------

-- Groups the rungs that can share their matrices: those of the same kind with
-- the same order of operands.
local function kinds(rungs)
  local list = {}
  for _, rung in ipairs(rungs) do
    local key = rung.kind .. " " .. rung.layout
    if not list[key] then
      list[key] = {}
      list[#list + 1] = list[key]
    end
    table.insert(list[key], rung)
  end
  return list
end

-- Measures the rungs of `list` at size n. Returns a list of entries {rung,
-- size, ok, error, r = times, rival = cuBLAS's times, before = the previous
-- entry}.
local function bench(list, n, device)
  local out = lesson.bench(job, list, {n, n, n}, device)
  for i, o in ipairs(out) do
    if not o.ok then
      say("%s WRONG: %s", o.rung.name, lesson.what_is_wrong(o.verdict, o.how))
    end
    o.size, o.error, o.before = n, o.verdict.frobenius, out[i - 1]
    o.rival = out.blas or out.lt
  end
  return out
end

local function over(a, b, kind)
  return b and ("%.3f"):format(b[kind].median / a[kind].median) or "-"
end

local function gpu_row(o)
  local before = o.before and o.before.r
  return {o.rung.name, o.size, o.ok and "ok" or "WRONG",
          ("%.1e"):format(o.error), ("%.1f"):format(o.r.cold.tflops),
          ("%.1f"):format(o.r.hot.tflops),
          o.rival and ("%.1f"):format(o.rival.hot.tflops) or "-",
          over(o.r, o.rival, "cold"), over(o.r, o.rival, "hot"),
          before and lib.gain(before, o.r) or "-"}
end

local HEAD = {"rung", "size", "", "error", "cold", "hot", "cuBLAS hot",
  "/cuBLAS cold", "hot", "gain hot"}

-- Returns the line of entry o for --record: name, layout, size, TFLOP/s cold
-- and hot, cuBLAS's TFLOP/s cold and hot, error, gain.
local function gpu_record(o)
  return {o.rung.name, o.rung.layout, o.size,
          ("%.2f"):format(o.r.cold.tflops), ("%.2f"):format(o.r.hot.tflops),
          o.rival and ("%.2f"):format(o.rival.cold.tflops) or "-",
          o.rival and ("%.2f"):format(o.rival.hot.tflops) or "-",
          ("%.1e"):format(o.error), o.rung.gain}
end

-- Returns a bar of the chart. Its length is cuBLAS's time divided by the rung's
-- time.
local function gpu_bar(o)
  return {o.rung.name, tostring(o.size),
          o.rival and o.rival.hot.median / o.r.hot.median or 0}
end

local function run_gpu(rungs, device, opt)
  local ok, lines, bars = true, {}, {}
  local sizes = sizes_of(opt.sizes, {2048, 4096, 8192})
  local rows = {HEAD}
  for _, list in ipairs(kinds(rungs)) do
    for _, n in ipairs(sizes) do
      for _, o in ipairs(bench(list, n, device)) do
        rows[#rows + 1] = gpu_row(o)
        lines[#lines + 1], bars[#bars + 1] = gpu_record(o), gpu_bar(o)
        ok = ok and o.ok
      end
    end
  end
  say("%s: TFLOP/s, medians of %d interleaved rounds; the gain is over the "
    .. "rung before it of its kind", tostring(device), opt.rounds)
  lib.print_table(rows)
  lib.record(job, ("%s, CUDA %s"):format(tostring(device),
    tostring(device.info.cuda)), lines)
  if opt.svg then
    lib.must(job, cli.output(opt.svg, chart.grouped(bars, {
      title = "GEMM ladder, " .. tostring(device), mark = 1,
      rival = "cuBLAS", unit = "of cuBLAS, hot"})))
  end
  return ok
end

---------------------------------------------------------------------------

job.opt = cli.parse(arg, {
  name = job.name, about = "All rungs of the GEMM ladder in one table.",
  options = {
    {"--sizes", "string", help = "extents, separated by commas: M = N = K"},
    {"--rounds", "int", min = 1, default = 5,
     help = "rounds in which a GPU measures all in turn"},
    {"--svg", "file", help = "writes a bar chart (GPU)"},
    {"--record", "file", help = "writes the times, for tools/ladders.lua"},
  },
  common = {"device", "arch", "seed"},
  args = {name = "rungs", help = "names of scripts; none: all", many = true},
})
function job.data() return {seed = job.opt.seed} end
local rungs = {}
for i, entry in ipairs(chosen(job.opt.args)) do rungs[i] = load_rung(entry) end

local function timed(run)
  return function(_, device)
    local start = core.clock()
    local ok = run(rungs, device, job.opt)
    say("%.1f s", core.clock() - start)
    return ok
  end
end

lib.run(job, {gpu = timed(run_gpu), sim = timed(run_sim)})
-- SPDX-License-Identifier: MIT
