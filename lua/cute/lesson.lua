--- What the GEMM scripts share: options, data, verification, the bench and
-- its tables. `lesson.gemm(arg, {kernel=, tile=, block=, about=})` runs a
-- kernel of (A, B, C) with A (M,K), B (N,K) and C (M,N), all row-major.
local core = require "cute.core"
local cute = require "cute"
local cli = require "cute.cli"

local lesson = {}

-- bf16 keeps 8 bits: rounding the result costs 1.6e-3 in the Frobenius norm
-- (2^-9 at most for one element, uniformly spread).
local TOLERANCE = 3e-3
local GPU_SIZES = {2048, 4096, 8192}
local SIM_SIZE = 256
local CPU_REFERENCE_MAX = 2.0e10  -- multiply-adds verified in full on a CPU

---------------------------------------------------------------------------
-- Ending
---------------------------------------------------------------------------

local function stop(job, message)
  io.stdout:flush()
  io.stderr:write(job.name, ": ", message, "\n")
  os.exit(1, true)
end

local function must(job, value, message)
  if value == nil or value == false then stop(job, message) end
  return value
end

local function say(...)
  io.stdout:write(string.format(...), "\n")
end

--- An aligned table: rows of cells, the first row its head. Numbers to the
-- right, words to the left.
function lesson.print_table(rows, indent)
  local width = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      width[i] = math.max(width[i] or 0, utf8.len(tostring(cell)))
    end
  end
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      local text = tostring(cell)
      local pad = (" "):rep(width[i] - utf8.len(text))
      local left = text:find "^[%a_/(]" and i < 3
      cells[i] = left and text .. pad or pad .. text
    end
    say("%s%s", indent or "", (table.concat(cells, "  "):gsub("%s+$", "")))
  end
end

---------------------------------------------------------------------------
-- Sizes and data
---------------------------------------------------------------------------

local function check_sizes(job, size)
  local tile = job.spec.tile
  for i, name in ipairs {"M", "N", "K"} do
    if size[i] % tile[i] ~= 0 then
      stop(job, ("%s = %d is not a multiple of the tile's %d "
        .. "[shape-mismatch]"):format(name, size[i], tile[i]))
    end
  end
end

-- Elements of an .npy array as a row-major buffer of `dtype`.
local function npy_buffer(array, dtype)
  local b = core.buffer_from(array.dtype, array.bytes)
  if array.fortran and #array.shape == 2 then
    local rows, cols = array.shape[1], array.shape[2]
    local t = core.buffer(array.dtype, rows * cols)
    for i = 0, rows - 1 do
      for j = 0, cols - 1 do t[i * cols + j] = b[j * rows + i] end
    end
    b = t
  end
  return b:to(dtype)
end

local function read_matrix(job, path)
  local npy = require "cute.npy"
  local array = must(job, npy.read(path,
    {dtype = {"f16", "f32", "f64"}, shape = {-1, -1}}))
  return array
end

-- The problems to run: {{m, n, k}, ...}; with files, the one they give.
local function problems(job, default)
  local opt = job.opt
  local a = opt.a and read_matrix(job, opt.a)
  local b = opt.b and read_matrix(job, opt.b)
  local sizes = {}
  if a or b or opt.m or opt.n or opt.k then
    local m = opt.m or a and a.shape[1] or default[1]
    local n = opt.n or b and b.shape[1] or default[1]
    local k = opt.k or a and a.shape[2] or b and b.shape[2] or default[1]
    for _, want in ipairs {{a, opt.a, "A", m, k}, {b, opt.b, "B", n, k}} do
      local array = want[1]
      if array and (array.shape[1] ~= want[4] or array.shape[2] ~= want[5])
      then
        stop(job, ("%s: %s is (%d,%d), and (%d,%d) is needed: C (M,N) = "
          .. "A (M,K) B (N,K)^T [shape-mismatch]"):format(want[2], want[3],
          array.shape[1], array.shape[2], want[4], want[5]))
      end
    end
    sizes[1] = {m, n, k}
  else
    for i, s in ipairs(default) do sizes[i] = {s, s, s} end
  end
  for _, size in ipairs(sizes) do check_sizes(job, size) end
  job.a, job.b = a, b
  return sizes
end

local function operand(array, rows, cols, seed)
  local b
  if array then
    b = npy_buffer(array, cute.bf16)
  else
    b = core.buffer("bf16", rows * cols)
    b:fill_normal(seed)
  end
  return cute.make_tensor(b, cute.make_layout({rows, cols}, {cols, 1})), b
end

-- Host tensors of a problem: A, B, C and their buffers.
local function make_data(job, size, with_data)
  local m, n, k = table.unpack(size)
  local p = {m = m, n = n, k = k, size = size}
  if with_data then
    p.A, p.a = operand(job.a, m, k, job.opt.seed * 2 + 1)
    p.B, p.b = operand(job.b, n, k, job.opt.seed * 2 + 2)
  else
    p.a, p.b = core.buffer("bf16", m * k), core.buffer("bf16", n * k)
    p.A = cute.make_tensor(p.a, cute.make_layout({m, k}, {k, 1}))
    p.B = cute.make_tensor(p.b, cute.make_layout({n, k}, {k, 1}))
  end
  p.c = core.buffer("bf16", m * n)
  p.C = cute.make_tensor(p.c, cute.make_layout({m, n}, {n, 1}))
  if job.opt.dynamic then lesson.mark_dynamic(p, job.spec.tile) end
  return p
end

--- Extents become arguments of the kernel: one kernel for all sizes that are
-- multiples of the tile.
function lesson.mark_dynamic(p, tile)
  local bm, bn, bk = table.unpack(tile)
  local function mark(t, rows, cols)
    t:mark_layout_dynamic {leading_dim = 1, divisibility = 8}
    t:mark_compact_shape_dynamic {mode = 0, divisibility = rows}
    t:mark_compact_shape_dynamic {mode = 1, divisibility = cols}
  end
  mark(p.A, bm, bk)
  mark(p.B, bn, bk)
  mark(p.C, bm, bn)
end

local function write_out(job, p)
  if not job.opt.out then return end
  must(job, require "cute.npy".write(job.opt.out, {dtype = "f32",
    shape = {p.m, p.n}, bytes = p.c:to("f32"):bytes()}))
  say("wrote       %s", job.opt.out)
end

---------------------------------------------------------------------------
-- Verification
---------------------------------------------------------------------------

local function verdict(diff)
  return diff.nans == 0 and diff.frobenius <= TOLERANCE
end

-- Against a sum in double precision of the same bf16 operands.
local function verify_cpu(p)
  local diff, how
  if p.m * p.n * p.k <= CPU_REFERENCE_MAX then
    local ref = core.buffer("f32", p.m * p.n)
    core.gemm_reference(p.a, p.b, ref, p.m, p.n, p.k)
    diff, how = p.c:diff(ref), "all elements"
  else
    diff = core.gemm_sample(p.a, p.b, p.c, p.m, p.n, p.k)
    how = diff.count .. " elements"
  end
  local ok = verdict(diff)
  say("verified    relative error %.2e of %s against a double-precision sum: "
    .. "%s", diff.frobenius, how, ok and "ok" or "WRONG")
  return ok
end

---------------------------------------------------------------------------
-- Simulator
---------------------------------------------------------------------------

local function grid_of(job, p)
  local bm, bn = table.unpack(job.spec.tile)
  if job.spec.grid then return job.spec.grid(p.m, p.n, p.k) end
  return (p.m // bm) * (p.n // bn)
end

local function progress_line(label)
  if not core.isatty(2) then return nil end
  return function(done)
    if done >= 1 then
      io.stderr:write("\r\27[K")
    else
      io.stderr:write(("\r\27[K%s %3d %%"):format(label, done * 100 // 1))
    end
    io.stderr:flush()
    return true
  end
end

local function short(file) return (file:gsub("^[@=]", ""):gsub("^.*/", "")) end

local function traffic_table(report)
  local rows = {{"line", "access", "requests", "bytes", "passes", "conflicts",
                 "sectors", "per request"}}
  for _, l in ipairs(report.lines) do
    local shared, global = l.wavefronts > 0, l.requests > 0
    rows[#rows + 1] = {
      short(l.file) .. ":" .. l.line, l.op, l.count, l.bytes,
      shared and l.wavefronts or "-", shared and l.conflicts or "-",
      global and l.sectors or "-",
      global and ("%.1f"):format(l.sectors / l.requests) or "-"}
  end
  return rows
end

local function print_resources(program, archs)
  for _, arch in ipairs(archs) do
    local out, why = program:compile(arch)
    if not out then
      if why:find("[no-nvrtc]", 1, true) then
        say("registers   unknown: NVRTC was not found")
      else
        say("%-11s %s", arch, why)
      end
      return
    end
    local r = out.resources
    say("%-11s %d registers, %d bytes spilled", arch, r.registers or 0,
      (r.spill_stores or 0) + (r.spill_loads or 0))
  end
end

local function run_sim(job, device)
  local ok = true
  for _, size in ipairs(problems(job, {SIM_SIZE})) do
    local p = make_data(job, size, true)
    local grid = grid_of(job, p)
    say("problem     C (%d,%d) = A (%d,%d) B (%d,%d)^T, bf16 with f32 sums",
      p.m, p.n, p.m, p.k, p.n, p.k)
    say("device      %s, %d blocks of %d threads", tostring(device), grid,
      job.spec.block)
    local start = core.clock()
    local run = cute.compile(job.spec.kernel, p.A, p.B, p.C,
      {grid = grid, block = job.spec.block, device = device,
       seed = job.opt.seed, faults = "return",
       progress = progress_line "simulating"})
    local traced = core.clock() - start
    local report = run:launch()
    ok = verify_cpu(p) and ok
    ok = report.ok and ok
    say("simulated   %.2f s (trace %.1f ms), %s", report.seconds,
      traced * 1e3, report.ok and "nothing to report"
        or #report.reports .. " faults:")
    if not report.ok then say("%s", tostring(report)) end
    say("smem        %d bytes a block", run.program.info.smem)
    print_resources(run.program, {"sm_80", "sm_90a"})
    say("traffic")
    lesson.print_table(traffic_table(report), "  ")
    if ok then write_out(job, p) end
  end
  return ok
end

---------------------------------------------------------------------------
-- GPU
---------------------------------------------------------------------------

local function upload(job, dev, host, tensor)
  local b = must(job, dev:buffer(host))
  return b, core.on_device(tensor, b)
end

-- Against cuBLAS, all elements.
local function verify_cublas(job, p, dev, blas)
  local d = core.buffer("bf16", p.m * p.n)
  must(job, blas:launch())
  must(job, dev:sync())
  must(job, p.dd:download(d))
  must(job, p.dc:download(p.c))
  local diff = p.c:diff(d)
  p.ok = verdict(diff)
  p.error = diff.frobenius
end

local function tflops(stat) return ("%.0f"):format(stat.tflops) end

local function ratio(a, b) return ("%.3f"):format(b.median / a.median) end

local function spread(stat)
  return ("%.1f %%"):format(100 * (stat.max - stat.min) / stat.median)
end

local function bench_row(p, r)
  local ours, blas, lt = r[1], r[2], r[3]
  return {("%dx%dx%d"):format(p.m, p.n, p.k),
          ("%.1e"):format(p.error), p.ok and "ok" or "WRONG",
          tflops(ours.cold), tflops(ours.hot),
          tflops(blas.cold), tflops(blas.hot), tflops(lt.cold), tflops(lt.hot),
          ratio(ours.cold, blas.cold), ratio(ours.hot, blas.hot),
          ratio(ours.cold, lt.cold), ratio(ours.hot, lt.hot),
          spread(ours.hot)}
end

local function bench(job, device, size)
  local gpu = require "cute.gpu"
  local dev = device.dev
  local p = make_data(job, size, true)
  p.da, p.A = upload(job, dev, p.a, p.A)
  p.db, p.B = upload(job, dev, p.b, p.B)
  p.dc, p.C = upload(job, dev, p.c, p.C)
  p.dd = must(job, dev:buffer("bf16", p.m * p.n))
  must(job, p.dc:memset(0xff))  -- NaN: what is not written shows
  if job.opt.dynamic then lesson.mark_dynamic(p, job.spec.tile) end
  local run = must(job, cute.compile(job.spec.kernel, p.A, p.B, p.C,
    {grid = grid_of(job, p), block = job.spec.block, device = device}))
  must(job, run:launch())
  must(job, dev:sync())
  local product = {m = p.m, n = p.n, k = p.k, A = p.da, B = p.db, D = p.dd}
  local blas = must(job, gpu.cublas(product))
  local lt = must(job, gpu.best(must(job, gpu.cublaslt(product))))
  verify_cublas(job, p, dev, blas)
  p.run = run
  local results = must(job, gpu.bench(
    {{name = job.name, launch = run.run}, {name = "cuBLAS", launch = blas},
     {name = "cublasLt", launch = lt}},
    {flops = 2.0 * p.m * p.n * p.k, rounds = job.opt.rounds}))
  for _, name in ipairs {"da", "db", "dd", "dc"} do
    if name ~= "dc" or not job.opt.out then p[name]:close() end
  end
  return p, results
end

local function run_gpu(job, device)
  local ok = true
  local rows = {{"size", "error", "", "cold", "hot", "cuBLAS", "hot",
                 "Lt best", "hot", "/cuBLAS", "hot", "/Lt", "hot", "spread"}}
  say("device      %s, driver for CUDA %s", tostring(device),
    tostring(device.info.cuda))
  for i, size in ipairs(problems(job, GPU_SIZES)) do
    local p, results = bench(job, device, size)
    if i == 1 then
      local program = p.run.program
      local r = program:compile(device.arch).resources
      say("kernel      %d registers, %d bytes spilled, %d bytes of shared "
        .. "memory", r.registers, (r.spill_stores or 0)
        + (r.spill_loads or 0), program.info.smem)
    end
    ok = p.ok and ok
    rows[#rows + 1] = bench_row(p, results)
    if ok then write_out(job, p) end
  end
  say("TFLOP/s, cold (L2 flushed) and hot (back to back); medians of %d "
    .. "interleaved rounds; error against cuBLAS", job.opt.rounds)
  lesson.print_table(rows)
  return ok
end

---------------------------------------------------------------------------
-- --emit
---------------------------------------------------------------------------

local function emit(job)
  local opt = job.opt
  local size = problems(job, {SIM_SIZE})[1]
  local p = make_data(job, size, false)
  local arch = opt.arch or "sm_90a"
  local program = job.spec.kernel(p.A, p.B, p.C):trace {
    block = job.spec.block, arch = arch}
  local text
  if opt.emit == "ir" then
    text = program.ir
  elseif opt.emit == "cu" then
    text = program:cuda(arch)
  else
    local out, message = program:compile(arch)
    text = must(job, out, message)[opt.emit]
  end
  must(job, cli.output(opt.output, text))
end

---------------------------------------------------------------------------

local OPTIONS = {
  {"--m", "int", min = 1, help = "rows of A and C"},
  {"--n", "int", min = 1, help = "rows of B, columns of C"},
  {"--k", "int", min = 1, help = "columns of A and B"},
  {"--dynamic", "flag", help = "one kernel for all sizes (extents become "
    .. "arguments)"},
  {"--rounds", "int", min = 1, default = 9,
    help = "interleaved rounds of the bench on a GPU"},
}

--- Is a flag among the words? For scripts whose kernel depends on one that
-- spec.options declares.
function lesson.flag(words, name)
  for _, word in ipairs(words) do
    if word == name then return true end
  end
  return false
end

--- Runs a GEMM script with the words of its command line. Leaves with exit
-- code 1 unless the result verified and the simulator had nothing to report.
---@param words string[]
---@param spec {kernel: any, tile: integer[], block: integer, about: string,
-- options: table[]?} options: the script's own, as cli.parse takes them
function lesson.gemm(words, spec)
  local name = short(words[0] or "gemm"):gsub("%.lua$", "")
  local job = {name = name, spec = spec}
  local options = table.move(spec.options or {}, 1, #(spec.options or {}),
                             #OPTIONS + 1, {table.unpack(OPTIONS)})
  job.opt = cli.parse(words, {name = name, about = spec.about,
                              options = options, common = true})
  if job.opt.emit then
    emit(job)
    return
  end
  local choice = job.opt.device
  local device, why = cute.device(choice ~= "auto" and choice or nil,
                                  job.opt.arch)
  must(job, device, why)
  local ok
  if device.kind == "gpu" then
    ok = run_gpu(job, device)
  else
    ok = run_sim(job, device)
  end
  if not ok then os.exit(1, true) end
end

return lesson
