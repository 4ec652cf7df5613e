--- The harness of lessons that declare their own operands. It parses options,
-- makes data, verifies results, runs the simulator, benchmarks against the
-- driver's copy, and prints tables.
--
--     harness.run(arg, {
--       about = "Softmax of rows.",
--       dims = {{"rows", "rows of x"}, {"n", "elements of a row"}},
--       dtypes = {"bf16", "f16", "f32"},
--       sim = {{8, 300}}, gpu = {{32768, 8192}},
--       operands = function(p)
--         return {{"x", {p.rows, p.n}}, {"y", {p.rows, p.n}, out = true}}
--       end,
--       make = function(p) return softmax {dtype = p.dtype, n = p.n} end,
--       pieces = function(p) return p.rows end,
--       reference = function(p, i) return {y = list of row i} end,
--     })
--
-- A problem p has the extents by the names of `dims`, `dtype`, `opt` (the
-- options), `sm` (such as 90: the device's, if known), and the operands'
-- buffers by name. Fields of a lesson:
-- dims: {{name, description}, ...}: the options that set the extents.
-- tile: extents of a tile, from which check --sizes makes sizes (16 if absent).
-- dtypes: choices of --dtype. Without --dtype, a run uses the first type or,
--   with every = true, all of them.
-- sim, gpu: extents of the runs on the simulator and on a GPU.
-- options: further options, as in cutelua.program.cli.
-- operands: {name, shape, dtype = p.dtype, fill = "normal", out =}, ...:
--   row-major. fill: "normal", "zero", {lo, hi} (integers) or function(buffer,
--   seed). out: a result, which is only filled if `fill` is given. scratch:
--   like out, but not counted in `bytes`.
-- make: function(p) -> {kernel =, grid =, block =, cluster =, args =}, or a
--   list of such launches. grid: a number, a list, or a function of the
--   extents. args (default: all operands): names of operands, {name,
--   function(tensor)} for views of operands, and values.
-- reference: function(p, i) -> piece i of the results: {name = list}. A list
--   starts at element i * #list of its operand, or at `list.at`. p.was has the
--   initial contents of operands that are filled and written.
-- pieces: function(p) -> number of pieces that `reference` divides the results
--   into (1 when absent). As many pieces are checked as contain about `look`
--   elements (2^20 when absent).
-- tolerance: {dtype = error}: limit of |got - want| relative to |want|, or to
--   the root mean square of the piece, whichever is larger.
-- verify: function(p) -> ok, "all elements", the error: used instead of
--   `reference`.
-- compared: function(p) -> comparisons, used instead of harness.compared if
--   there is a `verify`.
-- bytes: function(p) -> the least number of bytes that a launch moves (the
--   bytes of each operand once, when absent).
-- flops: function(p) -> operations of p: speeds are then in TFLOP/s, and the
--   driver's copy is not timed.
-- compare: {{name =, make =}, ...}: other kernels, run and timed for
--   comparison.
-- rungs: {{name =, make =, gain =}, ...}, instead of make: versions of the
--   kernel, each better than the version before. gain: the improvement over the
--   version before, in words.
-- from_file: true if the file of --a provides the first operand and the
--   extents.
-- arch: the target, such as "sm_120a", of a kernel that other GPUs cannot run.
--   Without such a GPU, the script runs on the simulator of this target.
local core = require "cute.core"
local cute = require "cute"
local cli = require "cutelua.program.cli"
local compare = require "cutelua.check.compare"
local crossed = require "cutelua.text.crossed"
local lib = require "cutelua.bench.lessonlib"
local measure = require "cutelua.bench.measure"
local pattern = require "cutelua.bench.pattern"
local report = require "cute.lang.report"
local sign = require "cute.lang.signature"
local stop, must, say = lib.stop, lib.must, lib.say

local harness = {}

-- The period of repeated data is a prime, so data never repeats at a tile's
-- stride.
local PERIOD = (1 << 22) - 3
local MAX_EXTENT = (1 << 31) - 1
local LOOK = 1 << 20
local NAN = 0xff

---------------------------------------------------------------------------
-- Problems: extents, operands and their data
---------------------------------------------------------------------------

local function count(shape)
  local n = 1
  for _, extent in ipairs(shape) do n = n * extent end
  return n
end

local function row_major(b, shape)
  return cute.make_tensor(b, cute.make_layout(shape, cute.LayoutRight))
end

-- Fills a buffer with normally distributed numbers. In a large buffer the
-- numbers repeat.
local function normal(b, seed)
  local n = #b
  if n <= PERIOD then return b:fill_normal(seed) end
  local base = core.buffer(b.dtype, PERIOD):fill_normal(seed)
  for at = 0, n - 1, PERIOD do
    b:copy(base, at, 0, math.min(PERIOD, n - at))
  end
  return b
end

local function fill(b, how, seed)
  if type(how) == "function" then return how(b, seed) end
  if type(how) == "table" then return b:fill_int(seed, how[1], how[2]) end
  if how == "zero" then return b:fill(0) end
  if b.dtype.is_integer then return b:fill_int(seed, -8, 7) end
  return normal(b, seed)
end

local function dtype_of(x)
  return type(x) == "string" and core.find_dtype(x) or x
end

local function bytes_of(o) return count(o.shape) * o.dtype.bits // 8 end

-- Returns the operands that a lesson declares, with defaults for absent fields,
-- as a list and by name.
local function operands(spec, p)
  local list = {}
  for i, o in ipairs(spec.operands(p)) do
    local full = {name = o[1], shape = o[2], out = o.out or o.scratch,
                  fill = o.fill or not (o.out or o.scratch) and "normal",
                  scratch = o.scratch, buffer = o.buffer, place = i,
                  dtype = dtype_of(o.dtype or p.dtype)}
    list[i], list[full.name] = full, full
  end
  return list
end

-- Returns the total number of bytes of a problem's operands, and the least
-- number of bytes that a launch moves.
local function bytes_in_all(p)
  local held, moved = 0, 0
  for _, o in ipairs(p.operands) do
    held = held + bytes_of(o)
    if not o.scratch then
      moved = moved + bytes_of(o) * (o.out and o.fill and 2 or 1)
    end
  end
  return held, moved
end

--- Makes a problem of a lesson: operands and their contents.
---@param spec table see above
---@param size integer[] one per entry of spec.dims
---@param o? table {dtype: string?, seed: integer?, opt: table?, bare: boolean?,
-- job: table?, sm: integer?} bare: the operands need no contents
---@return table p
function harness.problem(spec, size, o)
  o = o or {}
  local p = {size = size, opt = o.opt or {}, seed = o.seed or 0, was = {},
             dtype = o.dtype or spec.dtypes[1], tensors = {}, spec = spec,
             sm = o.sm}
  for i, d in ipairs(spec.dims) do p[d[1]] = size[i] end
  p.operands = operands(spec, p)
  local held, moved = bytes_in_all(p)
  p.bytes = spec.bytes and spec.bytes(p) or moved
  p.flops = spec.flops and spec.flops(p)
  if o.job then
    harness.check_memory(o.job, p, held, lib.host_memory(), "the host's")
  end
  for i, x in ipairs(p.operands) do
    local b = x.buffer
    if not b and (not x.fill or o.bare) then
      p.tensors[x.name] = cute.empty(x.shape, x.dtype)
      b = core.param_memory(p.tensors[x.name])
    end
    p[x.name] = b or fill(core.buffer(x.dtype, count(x.shape)), x.fill,
                          p.seed * 16 + i)
    p.tensors[x.name] = p.tensors[x.name] or row_major(p[x.name], x.shape)
    if x.out and x.fill then p.was[x.name] = p[x.name]:to(x.dtype) end
  end
  return p
end

--- Ends the script with a message if a problem's `bytes` exceed the `free`
-- bytes of the memory that `where` names.
function harness.check_memory(job, p, bytes, free, where)
  if bytes <= free then return end
  stop(job, ("%s %s: its operands need %.2f GB, but only %.2f GB of %s memory "
    .. "are free "
    .. "[out-of-memory]"):format(harness.size(p), p.dtype, bytes * 1e-9,
    free * 1e-9, where))
end

--- Returns a problem's extents as text: "256x1000".
function harness.size(p) return table.concat(p.size, "x") end

-- Restores the initial contents of the results that a problem fills.
local function renew(p)
  for _, o in ipairs(p.operands) do
    if p.was[o.name] then
      p[o.name]:copy(p.was[o.name])
    elseif o.out then
      p.tensors[o.name] = cute.empty(o.shape, o.dtype)
      p[o.name] = core.param_memory(p.tensors[o.name])
    end
  end
end

---------------------------------------------------------------------------
-- Verification
---------------------------------------------------------------------------

-- Compares piece i of the results with the reference: calls each(operand,
-- index, want, scale, most) for each element. Returns the number of elements.
local function look_at(p, i, each)
  local spec, elements = p.spec, 0
  for name, want in pairs(spec.reference(p, i)) do
    local o = p.operands[name]
    local most = spec.tolerance and spec.tolerance[o.dtype.name]
      or compare.TOLERANCE[o.dtype.name] or 0
    local at = want.at or i * #want
    local scale = compare.scale(#want, function(k) return want[k + 1] end)
    for k = 1, #want do each(o, at + k - 1, want[k], scale, most) end
    elements = elements + #want
  end
  return elements
end

-- Returns the numbers of the pieces to check besides piece 0: all other pieces
-- or, if these are too many, the last piece and some pieces between it and
-- piece 0. Also returns whether all pieces are checked.
local function chosen(total, each, look)
  local n = math.max(2, math.ceil(look / math.max(each, 1)))
  local list = {}
  if total <= n then
    for i = 1, total - 1 do list[i] = i end
    return list, true
  end
  for i = 1, n - 2 do list[i] = i * 0x9e3779b1 % total end
  list[n - 1] = total - 1
  return list, false
end

-- Compares all pieces, or a sample of them, with the reference. Returns the
-- number of elements compared, and whether all pieces were compared.
local function look(p, each)
  local spec = p.spec
  local total = spec.pieces and spec.pieces(p) or 1
  local elements = look_at(p, 0, each)
  local list, all = chosen(total, elements, spec.look or LOOK)
  for _, i in ipairs(list) do elements = elements + look_at(p, i, each) end
  return elements, all
end

local function place(o, at)
  return ("%s(%s)"):format(o.name,
    table.concat(pattern.coordinate(o.shape, at), ","))
end

--- Reports whether the results of a problem agree with the reference.
---@return boolean ok
---@return string how "all elements", or the number of elements, and their error
---@return string? wrong
function harness.verify(p)
  if p.spec.verify then return p.spec.verify(p) end
  local worst, wrong, most = {}, nil, 0
  local elements, all = look(p, function(o, at, want, scale, limit)
    local got, w = p[o.name][at], worst[o]
    local d = compare.distance(got, want, scale)
    if not w or d > w.error then
      worst[o] = {error = d, most = limit, at = at, want = want, got = got}
    end
  end)
  for _, o in ipairs(p.operands) do
    local w = worst[o]
    if w and w.error > w.most then
      wrong = wrong or ("%s is %.9g, and %.9g at a relative error of %.1e is "
        .. "right"):format(place(o, w.at), w.got, w.want, w.most)
    end
    most = math.max(most, w and w.error or 0)
  end
  return not wrong, ("error %.1e of %s"):format(most,
    all and "all elements" or elements .. " elements"), wrong
end

--- Returns comparisons (cutelua.check.compare) of a problem's results with the
-- reference. Each has the result's buffer as `buffer`.
---@return table[]
function harness.compared(p)
  local list, by, wants, scales = {}, {}, {}, {}
  local own = p.spec.compared
  if p.spec.verify then return own and own(p) or {} end
  local _, all = look(p, function(o, at, want, scale, most)
    local c = by[o]
    if not c then
      c = compare.begin("reference", o.name, most)
      by[o], c.buffer, list[#list + 1] = c, p[o.name], c
      wants[o], scales[o] = {}, scale
    end
    wants[o][at] = want
    compare.note(c, at, function() return pattern.coordinate(o.shape, at) end,
                 p[o.name][at], want, scale)
  end)
  for o, c in pairs(all and by or {}) do
    if c.of == count(o.shape) then
      compare.describe(c, o.shape, function(at) return p[o.name][at] end,
                       function(at) return wants[o][at] end, scales[o])
    end
  end
  return list
end

---------------------------------------------------------------------------
-- Launches
---------------------------------------------------------------------------

--- Returns the launches of a contestant (a kernel under comparison, made by
-- `make`): {kernel =, grid =, block =, cluster =, args = {...}}.
---@param p table
---@param make function
---@return table[]
function harness.launches(p, make)
  local made = make(p)
  local list = made.kernel and {made} or made
  local all = {}
  for i, o in ipairs(p.operands) do all[i] = o.name end
  local out = {}
  for i, l in ipairs(list) do
    local args, names, given = {n = 0}, {}, l.args or all
    for k = 1, given.n or #given do
      local name, view = given[k], nil
      if type(name) == "table" and type(name[2]) == "function" then
        name, view = name[1], name[2]
      end
      local t = type(name) == "string" and p.tensors[name]
      names[k], args.n = name, k
      if t and view then args[k] = view(t) else args[k] = t or name end
    end
    local grid = l.grid
    if type(grid) == "function" then grid = grid(table.unpack(p.size)) end
    names.n = args.n
    out[i] = {kernel = l.kernel, grid = grid, block = l.block,
              cluster = l.cluster, args = args, names = names}
  end
  return out
end

-- Returns the prepared launches of a compared kernel on a device; `make`
-- returns the launches for problem p.
local function prepare(p, make, device, o)
  local runs, named = {}, nil
  for i, l in ipairs(harness.launches(p, make)) do
    local args = table.move(l.args, 1, l.args.n, 1, {})
    named = named or crossed.named(l.kernel, l.names)
    args[l.args.n + 1] = {grid = l.grid, block = l.block,
      cluster = l.cluster, device = device, seed = o and o.seed,
      threads = o and o.threads, progress = o and o.progress,
      record = o and o.record}
    local run, why = cute.compile(l.kernel,
      table.unpack(args, 1, l.args.n + 1))
    if not run then return nil, why end
    runs[i] = {run = run, grid = l.grid, block = l.block}
  end
  return runs
end

-- Returns the contestants, the kernels to run and compare: the lesson's kernel
-- and those of `compare`, or all rungs.
local function contestants(spec, name)
  if spec.rungs then return spec.rungs end
  return {{name = name, make = spec.make}, table.unpack(spec.compare or {})}
end

---------------------------------------------------------------------------
-- Simulator
---------------------------------------------------------------------------

-- Prints a note on each result that no launch stored, if no launch had a fault.
local function note_unwritten(p, reports)
  for _, r in ipairs(reports) do
    if r == true or not r.ok then return end
  end
  for _, o in ipairs(p.operands) do
    if o.out and not o.fill and not o.scratch and not p[o.name].defined then
      report.note(("no launch stores to operand '%s', which is a result; is a "
        .. "launch missing?"):format(o.name))
    end
  end
end

--- Runs a problem on a simulator or a GPU, with host operands.
---@param p table
---@param device any
---@param o? {seed: integer?, threads: integer?, make: function?}
---@return boolean ok true if the results are right and no launch has a fault
---@return table reports of the launches; on a GPU each entry is true
---@return string? wrong the first wrong element, if no launch had a fault
function harness.try(p, device, o)
  renew(p)
  local reports, ok = {}, true
  for i, r in ipairs(assert(prepare(p, o and o.make or p.spec.make, device,
                                    o))) do
    reports[i] = lib.report(r.run)
    if reports[i] ~= true then ok = ok and reports[i].ok end
  end
  note_unwritten(p, reports)
  if not ok then return false, reports end
  local right, _, wrong = harness.verify(p)
  return right, reports, wrong
end

local function blocks(grid)
  return type(grid) == "table" and count(grid) or grid
end

local function total(reports, what)
  local sum = 0
  for _, r in ipairs(reports) do
    sum = sum + (what == "instructions" and r.instructions or r:total(what))
  end
  return sum
end

-- Returns a row of the table of simulator runs. Its cells: name, size, type,
-- requests to global memory, their sectors, passes of shared memory, bank
-- conflicts, instructions of warps.
local function counts(p, name, reports)
  local row = {name, harness.size(p), p.dtype}
  for _, what in ipairs {"requests", "sectors", "wavefronts", "conflicts",
                         "instructions"} do
    row[#row + 1] = total(reports, what)
  end
  return row
end

local function simulate(job, device, p, c)
  renew(p)
  local start = core.clock()
  local runs = must(job, prepare(p, c.make, device, {seed = job.opt.seed,
    record = job.opt.conflicts,
    progress = lib.progress_line("simulating " .. c.name)}))
  local traced, reports = core.clock() - start, {}
  for i, r in ipairs(runs) do reports[i] = lib.report(r.run) end
  note_unwritten(p, reports)
  local ok, how, wrong = harness.verify(p)
  for _, r in ipairs(runs) do
    say("%-13s %d blocks of %d threads, %d bytes of shared memory each",
      #runs == 1 and c.name or r.run.program.info.name, blocks(r.grid),
      blocks(r.block), r.run.program.info.smem)
  end
  say("verified    %s: %s", wrong or how, ok and "ok" or "WRONG")
  lib.verified(p, ok, how, wrong, harness.compared)
  for i, r in ipairs(reports) do
    ok = lib.say_simulated(r, i == 1 and traced) and ok
    ok = lib.print_resources(runs[i].run.program,
      p.spec.arch and {p.spec.arch} or {"sm_80", "sm_90a"}) and ok
    lib.print_traffic(job, r)
  end
  return ok, counts(p, c.name, reports)
end

local function say_problem(p, device)
  local words = {}
  for i, o in ipairs(p.operands) do
    words[i] = ("%s %s (%s)"):format(o.name, o.dtype.name,
      table.concat(o.shape, ","))
  end
  say("problem     %s, on the %s", table.concat(words, ", "),
    tostring(device))
end

---------------------------------------------------------------------------
-- GPU
---------------------------------------------------------------------------

-- Returns the speed of problem p: TFLOP/s, or TB/s for the bytes moved.
local function speed(p, stat)
  local n = (p.flops or p.bytes) / stat.median * 1e-9
  return (n < 99.5 and "%.3f" or "%.1f"):format(n)
end

-- Copies the operands to the GPU; p.tensors become views of the copies.
local function upload(job, p, dev)
  local buffers = {}
  for _, o in ipairs(p.operands) do
    local d
    if o.out then d = must(job, dev:buffer(o.dtype, count(o.shape)))
    else d = must(job, dev:buffer(p[o.name])) end
    buffers[o.name] = d
    p.tensors[o.name] = core.on_device(p.tensors[o.name], d)
  end
  return buffers
end

-- Verifies the contestants (the kernels to compare) on the GPU one by one.
-- Returns their prepared launches as a list for gpu.bench. Also returns a list
-- of booleans: true if the contestant's result is right.
local function verified(job, device, p, buffers, list)
  local runnable, oks = {}, {}
  for i, c in ipairs(list) do
    for _, o in ipairs(p.operands) do
      if p.was[o.name] then buffers[o.name]:upload(p.was[o.name])
      -- NaNs show which elements of a result a kernel did not write.
      elseif o.out then buffers[o.name]:memset(NAN) end
    end
    local runs = must(job, prepare(p, c.make, device))
    for _, r in ipairs(runs) do r.run:launch() end
    device.dev:sync()
    for _, o in ipairs(p.operands) do
      if o.out and not o.scratch then buffers[o.name]:download(p[o.name]) end
    end
    local how, wrong
    oks[i], how, wrong = harness.verify(p)
    if not oks[i] then say("%s WRONG: %s", c.name, wrong or how) end
    if i == 1 and oks[i] then harness.write_out(job, p) end
    runnable[i] = {name = c.name, launch = #runs == 1 and runs[1].run.run
      or function() for _, r in ipairs(runs) do r.run.run:launch() end end}
  end
  return runnable, oks
end

-- Returns an entry for gpu.bench that lets the driver copy as many bytes as
-- problem p moves; nil if the speed of p is in FLOP/s.
local function driver(job, p, dev)
  if p.flops then return nil end
  local n = math.max(1, p.bytes // 2)
  local from = must(job, dev:buffer("u8", n))
  local to = must(job, dev:buffer("u8", n))
  from:memset(0)
  return {name = "driver", launch = function() return to:copy(from) end,
          from, to}
end

-- Benchmarks the contestants (the kernels to compare). Returns a result for
-- each: {name =, ok =, r = its times, driver = the times of the driver's copy,
-- gain = the expected gain in words, before = the result of the previous rung}.
local function bench(job, device, p, list)
  local dev = device.dev
  local held = bytes_in_all(p)
  harness.check_memory(job, p, held + p.bytes, must(job, dev:free_memory()),
                       "the GPU's")
  local buffers = upload(job, p, dev)
  local runnable, oks = verified(job, device, p, buffers, list)
  local rival, results = nil, {}
  if job.opt.rounds > 0 then
    rival = driver(job, p, dev)
    runnable[#runnable + 1] = rival
    results = must(job, measure.bench(runnable, {rounds = job.opt.rounds}))
  end
  local out = {}
  for i, c in ipairs(list) do
    out[i] = {name = c.name, p = p, ok = oks[i], r = results[i],
              driver = rival and results[#results], gain = c.gain,
              before = job.spec.rungs and results[i - 1]}
  end
  for _, b in pairs(buffers) do b:close() end
  for _, b in ipairs(rival or {}) do b:close() end
  return out
end

local function to_driver(o, which)
  return o.driver and ("%.3f"):format(o.driver[which].median
    / o.r[which].median) or "-"
end

-- Returns four speeds for a contestant's result: the kernel's cold and hot,
-- then the driver's copy cold and hot.
local function speeds(o)
  local d = o.driver
  return speed(o.p, o.r.cold), speed(o.p, o.r.hot),
         d and speed(o.p, d.cold) or "-", d and speed(o.p, d.hot) or "-"
end

local function mebibytes(o) return ("%.0f"):format(o.p.bytes / 2^21) end

local function gpu_row(o)
  local row = {o.name, harness.size(o.p) .. " " .. o.p.dtype, mebibytes(o),
               o.ok and "ok" or "WRONG"}
  if not o.r then return row end
  row[5], row[6], row[7], row[8] = speeds(o)
  return table.move({to_driver(o, "cold"), to_driver(o, "hot"),
    lib.spread(o.r.hot), o.before and lib.gain(o.before, o.r) or ""}, 1, 4, 9,
    row)
end

-- Returns the row that --record writes for a contestant's result: name, size,
-- type, MiB, speeds, and the gain in words.
local function gpu_record(o)
  local row = {o.name, harness.size(o.p), o.p.dtype, mebibytes(o), speeds(o)}
  row[9] = o.gain or ""
  return row
end

---------------------------------------------------------------------------
-- Entry
---------------------------------------------------------------------------

--- Writes the first result of a problem to the file of --out, as a matrix. The
-- last mode becomes the columns.
function harness.write_out(job, p)
  for _, o in ipairs(p.operands) do
    if o.out then
      local cols = o.shape[#o.shape] or 1
      return lib.write_out(job, p[o.name], count(o.shape) // cols, cols)
    end
  end
end

-- Returns the sizes of this run: the lesson's sizes, or the size that options
-- and a file give.
local function sizes_of(job, default)
  local opt, dims = job.opt, job.spec.dims
  local array = opt.a and lib.read_matrix(job, opt.a)
  job.file = array
  local size, told = {}, array ~= nil
  for i, d in ipairs(dims) do
    local x = opt[d[1]]
    if array and x and x ~= array.shape[i] then
      stop(job, ("%s: its matrix is (%d,%d), but --%s is %d "
        .. "[shape-mismatch]"):format(core.visible(opt.a), array.shape[1],
        array.shape[2], d[1], x))
    end
    size[i] = array and array.shape[i] or x or default[1][i]
    told = told or x ~= nil
  end
  return told and {size} or default
end

-- Returns an iterator over the problems of the run. Each step yields a function
-- that makes the problem, and the problem's size. kind: "sim" or "gpu". Without
-- a device, problems have no data.
local function problems(job, kind, device)
  local spec, opt = job.spec, job.opt
  local names = opt.dtype and {opt.dtype}
    or spec.every and spec.dtypes or {spec.dtypes[1]}
  local sizes, i = lib.sizes(sizes_of(job, spec[kind]), spec.tile), 0
  return function()
    i = i + 1
    local size, name = sizes[(i - 1) % #sizes + 1],
                       names[(i - 1) // #sizes + 1]
    if not name then return nil end
    return function()
      return harness.problem(spec, size, {dtype = name, seed = opt.seed,
        opt = setmetatable({file = job.file}, {__index = opt}),
        bare = not device, sm = device and device.sm, job = job})
    end, size
  end
end

local function run_sim(job, device)
  local ok, rows = true, {}
  for make, size in problems(job, "sim", device) do
    lib.attempt(size, function()
      local p = make()
      say_problem(p, device)
      for _, c in ipairs(contestants(job.spec, job.name)) do
        local good, row = simulate(job, device, p, c)
        ok, rows[#rows + 1] = good and ok, row
      end
      if ok then harness.write_out(job, p) end
    end)
  end
  lib.record(job, tostring(device), rows)
  return ok
end

local function say_how(job)
  if job.opt.rounds == 0 then return end
  if job.spec.flops then
    say("TFLOP/s, cold (L2 flushed) and hot (back to back); medians of %d "
      .. "interleaved rounds", job.opt.rounds)
  else
    say("TB/s, read and written, cold (L2 flushed) and hot (back to back), "
      .. "beside the driver's copy\nof the same bytes (MiB of them); medians "
      .. "of %d interleaved rounds", job.opt.rounds)
  end
end

local function run_gpu(job, device)
  local ok, lines, spec = true, {}, job.spec
  local rows = {job.opt.rounds == 0 and {"kernel", "size", "MiB", ""}
    or {"kernel", "size", "MiB", "", "cold", "hot", "driver", "hot",
        "/driver", "hot", "spread", spec.rungs and "gain hot" or ""}}
  local about = ("%s, driver for CUDA %s"):format(tostring(device),
    tostring(device.info.cuda))
  say("device      %s", about)
  for make in problems(job, "gpu", device) do
    local p = make()
    for _, o in ipairs(bench(job, device, p, contestants(spec, job.name))) do
      rows[#rows + 1] = gpu_row(o)
      if o.r then lines[#lines + 1] = gpu_record(o) end
      ok = ok and o.ok
    end
  end
  say_how(job)
  lib.print_table(rows)
  lib.record(job, about, lines)
  return ok
end

local function emit(job)
  local p = problems(job, "sim")()()
  local first = harness.launches(p, contestants(job.spec, job.name)[1].make)
  local l = first[1]
  lib.emit(job, l.kernel(table.unpack(l.args, 1, l.args.n)), l.block,
           l.cluster)
end

local function options(spec)
  local list = {}
  for i, d in ipairs(spec.dims) do
    list[i] = {"--" .. d[1], "int", min = 1, max = MAX_EXTENT, help = d[2]}
  end
  if #spec.dtypes > 1 then
    list[#list + 1] = {"--dtype", "choice", choices = spec.dtypes,
      help = ("type of the elements (default %s)"):format(
        spec.every and "all of these" or spec.dtypes[1])}
  end
  table.move(spec.options or {}, 1, #(spec.options or {}), #list + 1, list)
  list[#list + 1] = {"--rounds", "int", min = 0, default = 9,
    help = "rounds in which a GPU measures all in turn; 0: verifies only"}
  list[#list + 1] = {"--record", "file",
    help = "writes the times, for tools/ladders.lua"}
  return list
end

--- Runs a lesson with its command-line arguments. Exits with code 1 if a result
-- is wrong or the simulator reports a fault.
---@param words string[]
---@param spec table see above
function harness.run(words, spec)
  local name = lib.script_name(words, "lesson")
  local job = {name = name, spec = spec, arch = spec.arch}
  local common = {"device", "arch", "emit", "output", "seed", "out",
                  "conflicts"}
  if spec.rungs then common = {"device", "arch", "seed", "conflicts"} end
  if spec.from_file then table.insert(common, 6, "a") end
  job.opt = cli.parse(words, {name = name, about = spec.about,
                              options = options(spec), common = common})
  lib.run(job, {emit = emit, gpu = run_gpu, sim = run_sim})
end

return sign.module("cutelua.bench.harness", harness)
-- SPDX-License-Identifier: MIT
