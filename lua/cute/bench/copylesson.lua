--- What the copy scripts share: options, data, verification, the bench against
-- the driver's own copy, and their tables.
--
--     copylesson.run(arg, {kernel =, tile = {BM, BN}, block =, about =})
--
-- runs a kernel of (A, B), B being A's copy, both row-major. Further fields:
--   dtype      of the elements (cute.bf16)
--   transpose  B (N,M) is A (M,N) transposed
--   compare    {{name =, kernel =}, ...}: run and timed beside it
--   cases      {{fields that differ}, ...}: one lesson for each, by `dtype`
--   rungs      {{name =, kernel =, tile =, block =, gain =}, ...}: in place of
--              one kernel, each a step from the one before; gain: in words
local core = require "cute.core"
local cute = require "cute"
local cli = require "cute.program.cli"
local lib = require "cute.bench.lessonlib"
local stop, must, say = lib.stop, lib.must, lib.say

local copylesson = {}

local COPY_SIZES = {{4096, 8192}, {65536, 8192}}  -- 64 MiB and 1 GiB of bf16
local TRANSPOSE_SIZES = {{8192, 8192}}
local SIM_SIZE = {256, 256}
local PERIOD = (1 << 22) - 3  -- a prime: data repeats, but at no tile's stride
local MAX_EXTENT = (1 << 31) - 1

---------------------------------------------------------------------------
-- Sizes and data
---------------------------------------------------------------------------

local function sizes_of(job, case, default)
  local opt = job.opt
  local a = opt.a and lib.read_matrix(job, opt.a)
  if a then
    local m, n = a.shape[1], a.shape[2]
    if (opt.m or m) ~= m or (opt.n or n) ~= n then
      stop(job, ("%s: A is (%d,%d), not (%d,%d) [shape-mismatch]"):format(
        core.visible(opt.a), m, n, opt.m or m, opt.n or n))
    end
    case.a = lib.npy_buffer(a, case.dtype)
    return {{m, n}}
  end
  if not (opt.m or opt.n) then return default end
  return {{opt.m or default[1][1], opt.n or default[1][2]}}
end

local function fill(b, seed)
  local n = #b
  if n <= PERIOD then return b:fill_normal(seed) end
  local base = core.buffer(b.dtype, PERIOD):fill_normal(seed)
  for at = 0, n - 1, PERIOD do
    b:copy(base, at, 0, math.min(PERIOD, n - at))
  end
  return b
end

local function row_major(b, m, n)
  return cute.make_tensor(b, cute.make_layout({m, n}, {n, 1}))
end

-- A and B must fit into the `free` bytes of `where`.
local function check_memory(job, case, size, free, where)
  local bytes = 2.0 * size[1] * size[2] * (case.dtype.width // 8)
  if bytes > free then
    stop(job, ("%d x %d %s twice need %.2f GB, %.2f GB of %s memory are free "
      .. "[out-of-memory]"):format(size[1], size[2], tostring(case.dtype),
      bytes * 1e-9, free * 1e-9, where))
  end
end

-- The host's part of a problem: A, B, their buffers. `bare`: nobody looks at
-- the elements.
local function problem(job, case, size, bare)
  check_memory(job, case, size, lib.host_memory(), "the host's")
  local m, n = size[1], size[2]
  local p = {m = m, n = n, bytes = 2 * m * n * (case.dtype.width // 8)}
  p.a = case.a or core.buffer(case.dtype, m * n)
  if not (case.a or bare) then fill(p.a, job.opt.seed + 1) end
  p.b = core.buffer(case.dtype, m * n)
  p.rows, p.cols = m, n
  if case.transpose then p.rows, p.cols = n, m end
  p.A, p.B = row_major(p.a, m, n), row_major(p.b, p.rows, p.cols)
  return p
end

-- The lesson's kernel and those that it is compared with, or all rungs.
local function contestants(case)
  if case.rungs then return case.rungs end
  local list = {{name = case.name, kernel = case.kernel, tile = case.tile,
                 block = case.block}}
  for i, c in ipairs(case.compare or {}) do
    list[i + 1] = {name = c.name, kernel = c.kernel, tile = case.tile,
                   block = case.block}
  end
  return list
end

---------------------------------------------------------------------------
-- Verification
---------------------------------------------------------------------------

-- All bits of A in their places in B: copies change none, a NaN's neither.
local function verify(case, p)
  local b = case.transpose and p.b:transpose(p.rows, p.cols) or p.b
  local ok, at = p.a:equal(b)
  if ok then return true, "all elements" end
  local i, j = at // p.n, at % p.n
  return false, ("A(%d,%d) is %s, and B has %s there"):format(i, j,
    tostring(p.a[at]), tostring(b[at]))
end

---------------------------------------------------------------------------
-- Simulator
---------------------------------------------------------------------------

-- name, size, type, requests to global memory and their sectors, passes of
-- shared memory and conflicts, instructions of warps
local function counts(p, case, name, r)
  return {name, p.m .. "x" .. p.n, tostring(case.dtype), r:total "requests",
          r:total "sectors", r:total "wavefronts", r:total "conflicts",
          r.instructions}
end

local function simulate(job, device, case, p, c)
  local name = c.name
  p.b:fill(0)
  local start = core.clock()
  local grid = lib.tiles(c.tile, p.m, p.n)
  local run = cute.compile(c.kernel, p.A, p.B, {grid = grid,
    block = c.block, device = device, seed = job.opt.seed,
    progress = lib.progress_line("simulating " .. name)})
  local traced = core.clock() - start
  local report = lib.report(run)
  local ok, how = verify(case, p)
  say("%-13s %d blocks of %d threads, %d bytes of shared memory each", name,
    grid, c.block, run.program.info.smem)
  say("verified    %s: %s", how, ok and "ok" or "WRONG")
  say("simulated   %.2f s (trace %.1f ms), %d instructions of warps, %s",
    report.seconds, traced * 1e3, report.instructions,
    report.ok and "nothing to report" or #report.reports .. " faults:")
  if not report.ok then say("%s", tostring(report)) end
  lib.print_resources(run.program, {"sm_80", "sm_90a"})
  lib.print_table(lib.traffic_table(report), "  ")
  return ok and report.ok, counts(p, case, name, report)
end

local function run_sim(job, device)
  local ok, rows = true, {}
  for _, case in ipairs(job.cases) do
    for _, size in ipairs(sizes_of(job, case, {SIM_SIZE})) do
      local p = problem(job, case, size)
      say("problem     B (%d,%d) = A (%d,%d)%s in %s, on the %s", p.rows,
        p.cols, p.m, p.n, case.transpose and "^T" or "", tostring(case.dtype),
        tostring(device))
      for _, c in ipairs(contestants(case)) do
        local good, row = simulate(job, device, case, p, c)
        ok, rows[#rows + 1] = good and ok, row
      end
      if ok then lib.write_out(job, p.b, p.rows, p.cols) end
    end
  end
  lib.record(job, tostring(device), rows)
  return ok
end

---------------------------------------------------------------------------
-- GPU
---------------------------------------------------------------------------

local function tbps(p, stat)
  return ("%.3f"):format(p.bytes / stat.median * 1e-9)
end

local function to_driver(r, driver, which)
  return ("%.3f"):format(driver[which].median / r[which].median)
end

-- Prepared launches of the contestants, verified one by one.
local function prepare(job, device, case, p, da, db)
  local list, oks = {}, {}
  local A, B = core.on_device(p.A, da), core.on_device(p.B, db)
  for i, c in ipairs(contestants(case)) do
    local run = must(job, cute.compile(c.kernel, A, B, {
      grid = lib.tiles(c.tile, p.m, p.n), block = c.block, device = device}))
    db:memset(0xff)  -- NaN: what is not written shows
    run:launch()
    device.dev:sync()
    db:download(p.b)
    local how
    oks[i], how = verify(case, p)
    if not oks[i] then say("%s WRONG: %s", c.name, how) end
    list[i] = {name = c.name, launch = run.run}
    if i == 1 and oks[i] then lib.write_out(job, p.b, p.rows, p.cols) end
  end
  list[#list + 1] = {name = "driver", launch = function()
    return db:copy(da)
  end}
  return list, oks
end

-- Each contestant's results beside the driver's: {name =, ok =, r =, driver =,
-- gain = in words, before = the result of the rung before it}, ...
local function bench(job, device, case, size)
  local gpu, dev = require "cute.gpu", device.dev
  check_memory(job, case, size, must(job, dev:free_memory()), "the GPU's")
  local p = problem(job, case, size)
  local da = must(job, dev:buffer(p.a))
  local db = must(job, dev:buffer(case.dtype, p.m * p.n))
  local list, oks = prepare(job, device, case, p, da, db)
  local results = job.opt.rounds > 0
    and must(job, gpu.bench(list, {rounds = job.opt.rounds})) or {}
  local out = {}
  for i, c in ipairs(contestants(case)) do
    out[i] = {name = c.name, case = case, p = p, ok = oks[i], r = results[i],
              driver = results[#results], gain = c.gain,
              before = case.rungs and results[i - 1]}
  end
  da:close()
  db:close()
  return out
end

-- TB/s cold and hot, and the driver's.
local function speeds(o)
  return tbps(o.p, o.r.cold), tbps(o.p, o.r.hot), tbps(o.p, o.driver.cold),
         tbps(o.p, o.driver.hot)
end

local function gpu_row(o)
  local row = {o.name, ("%dx%d %s"):format(o.p.m, o.p.n,
               tostring(o.case.dtype)), ("%.0f"):format(o.p.bytes / 2^21),
               o.ok and "ok" or "WRONG"}
  if not o.r then return row end
  row[5], row[6], row[7], row[8] = speeds(o)
  return table.move({to_driver(o.r, o.driver, "cold"),
    to_driver(o.r, o.driver, "hot"), lib.spread(o.r.hot),
    o.before and lib.gain(o.before, o.r) or ""}, 1, 4, 9, row)
end

-- name, size, type, MiB, speeds, what it adds
local function gpu_record(o)
  local row = {o.name, ("%dx%d"):format(o.p.m, o.p.n), tostring(o.case.dtype),
               ("%.0f"):format(o.p.bytes / 2^21), speeds(o)}
  row[9] = o.gain or ""
  return row
end

local function run_gpu(job, device)
  local ok, lines = true, {}
  local rows = {job.opt.rounds == 0 and {"kernel", "size", "MiB", ""}
    or {"kernel", "size", "MiB", "", "cold", "hot", "driver", "hot",
        "/driver", "hot", "spread", job.cases[1].rungs and "gain hot" or ""}}
  local about = ("%s, driver for CUDA %s"):format(tostring(device),
    tostring(device.info.cuda))
  say("device      %s", about)
  for _, case in ipairs(job.cases) do
    local default = case.transpose and TRANSPOSE_SIZES or COPY_SIZES
    for _, size in ipairs(sizes_of(job, case, default)) do
      for _, o in ipairs(bench(job, device, case, size)) do
        rows[#rows + 1] = gpu_row(o)
        if o.r then lines[#lines + 1] = gpu_record(o) end
        ok = ok and o.ok
      end
    end
  end
  if job.opt.rounds > 0 then
    say("TB/s, read and written, cold (L2 flushed) and hot (back to back), "
      .. "beside the driver's copy\nof the same bytes; medians of %d "
      .. "interleaved rounds", job.opt.rounds)
  end
  lib.print_table(rows)
  lib.record(job, about, lines)
  return ok
end

---------------------------------------------------------------------------
-- Entry
---------------------------------------------------------------------------

local function emit(job)
  local case = job.cases[1]
  local p = problem(job, case, sizes_of(job, case, {SIM_SIZE})[1], true)
  lib.emit(job, case.kernel(p.A, p.B), case.block)
end

local function options(spec)
  local list = {
    {"--m", "int", min = 1, max = MAX_EXTENT, help = "rows of A"},
    {"--n", "int", min = 1, max = MAX_EXTENT, help = "columns of A"},
    {"--rounds", "int", min = 0, default = 9,
      help = "interleaved rounds of the bench on a GPU; 0: verifies only"},
    {"--record", "file", help = "writes the figures, for tools/ladders.lua"}}
  if not spec.cases then return list end
  local names = {}
  for i, case in ipairs(spec.cases) do names[i] = tostring(case.dtype) end
  table.insert(list, 3, {"--dtype", "choice", choices = names,
                         help = "of the elements; all of these without it"})
  return list
end

-- The lessons of this run: fields of spec under those of each case.
local function cases_of(spec, name, opt)
  local cases = {}
  for _, case in ipairs(spec.cases or {{}}) do
    local dtype = case.dtype or spec.dtype or cute.bf16
    if not opt.dtype or opt.dtype == tostring(dtype) then
      cases[#cases + 1] = setmetatable({dtype = dtype, name = name},
        {__index = function(_, k)
          if case[k] ~= nil then return case[k] end
          return spec[k]
        end})
    end
  end
  return cases
end

--- Runs a copy script with the words of its command line. Leaves with exit
-- code 1 unless the result verified and the simulator had nothing to report.
---@param words string[]
---@param spec table see above
function copylesson.run(words, spec)
  local name = lib.script_name(words, "copy")
  local job = {name = name, spec = spec}
  job.opt = cli.parse(words, {name = name, about = spec.about,
    options = options(spec),
    common = spec.rungs and {"device", "arch", "seed"}
      or {"device", "arch", "emit", "output", "seed", "a", "out"}})
  job.cases = cases_of(spec, name, job.opt)
  lib.run(job, {emit = emit, gpu = run_gpu, sim = run_sim})
end

return copylesson
