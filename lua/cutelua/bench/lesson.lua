--- The common part of the GEMM scripts: options, data, verification, benchmark
-- and tables.
--
--     lesson.gemm(arg, {kernel =, tile =, block =, about =})
--
-- lesson.gemm runs a kernel of (A, B, C) or (A, B, C, alpha, beta) for the
-- given command-line arguments. A is (M,K), B is (N,K), and C is (M,N). The
-- table describes a rung, one version of the kernel. Further fields of a rung,
-- with defaults in parentheses:
-- types: element types of A, B and C ({"bf16", "bf16", "bf16"}).
-- sums: the type of alpha and beta ("f32"), or false for a kernel without them.
-- tolerance: limit of the relative error in the Frobenius norm.
-- grid: function(m, n, k) -> the grid (one block per tile of C).
-- layouts: supported layouts among tn, nt, nn, tt (all).
-- layout: the default layout ("tn").
-- tf32: true if the kernel truncates f32 operands to tf32; cuBLAS may round.
-- general: {kernel =} with the same grid and block, for problems that the
--   rung's own kernel does not support. That kernel needs whole tiles, and A
--   and B in the order of `layout`.
-- variants: {{"--flag", help =, kernel =}, ...}: fields that replace the rung's
--   when the flag is given. {"--option", "word", help =, ...} defines a variant
--   for one word of an option.
-- choose: function(m, n, k) -> fields that depend on the size (kernel, tile,
--   block, cluster, grid, arguments, takes).
-- unit: size of one rounding in the sums, for rungs whose tensor cores keep
--   fewer bits than is usual for the types.
-- arguments: function(A, B, C, alpha, beta) -> the kernel's arguments, if the
--   kernel takes others (TMA atoms, for example).
-- takes: function(A, B, C) -> true, or false and the reason why `general` has
--   to run instead (lesson.rows_of_16).
-- needs: a feature that the kernel needs (core/ir/target.h); `general` is for
--   GPUs without it.
-- cluster: extents of a launch's clusters.
--
-- scripts/ladder.lua and the specs run rungs step by step, with lesson.problem,
-- lesson.simulate, lesson.prepare and lesson.bench.
local core = require "cute.core"
local cute = require "cute"
local cli = require "cutelua.program.cli"
local compare = require "cutelua.check.compare"
local lib = require "cutelua.bench.lessonlib"
local measure = require "cutelua.bench.measure"
local sign = require "cute.lang.signature"
local stop, must, say = lib.stop, lib.must, lib.say

local lesson = {}

-- Limits of the relative error, by C's type. Rounding alone causes an error of
-- at most half of the last place of the type. Sums in f32 differ from those in
-- double precision by about 1e-6.
local TOLERANCE = {bf16 = 3e-3, f16 = 6e-4, f32 = 2e-5, f64 = 1e-13, i32 = 0}
local GPU_SIZES = {2048, 4096, 8192}
local SIM_SIZE = 256
-- The largest number of multiply-adds for which the CPU computes a reference.
local CPU_REFERENCE_MAX = 2.0e10
local LAYOUTS = {"tn", "nt", "nn", "tt"}

---------------------------------------------------------------------------
-- Rungs: completing a script's declaration
---------------------------------------------------------------------------

-- Returns the variant of a rung (a version of the kernel) that `flag` names:
-- "--flag" or "--option word".
local function variant(spec, flag)
  for _, v in ipairs(spec.variants or {}) do
    if table.concat(v, " ") == flag then return v end
  end
  return {}
end

--- Returns the fields of a rung: those that the script declares, those of the
-- variant that `flag` names, and defaults.
---@param spec table
---@param flag? string the flag of a variant
function lesson.rung(spec, flag)
  local other = variant(spec, flag)
  local types = other.types or spec.types or {"bf16", "bf16", "bf16"}
  local full = {types = types, sums = "f32", layouts = LAYOUTS, layout = "tn",
                tolerance = TOLERANCE[types[3]],
                grid = function(m, n) return lib.tiles(spec.tile, m, n) end}
  for k, v in pairs(spec) do full[k] = v end
  for k, v in pairs(other) do full[k] = v end
  return full
end

-- Returns a rung with the fields that its function `choose` returns for the
-- size of problem p.
local function sized(rung, p)
  if not rung.choose then return rung end
  p.sized = p.sized or {}
  if not p.sized[rung] then
    local full = rung.choose(p.m, p.n, p.k)
    full.choose = false
    p.sized[rung] = setmetatable(full, {__index = rung})
  end
  return p.sized[rung]
end

---------------------------------------------------------------------------
-- Data
---------------------------------------------------------------------------

local function bytes_of(dtype) return core.find_dtype(dtype).bits / 8 end

-- Returns the number of bytes of A, B and C of a problem, with C counted
-- `copies` times.
local function need(rung, size, copies)
  local m, n, k = table.unpack(size)
  local t = rung.types
  return (m + 0.0) * k * bytes_of(t[1]) + (n + 0.0) * k * bytes_of(t[2])
    + (m + 0.0) * n * bytes_of(t[3]) * (copies or 1)
end

local function gigabytes(x) return ("%.1f GB"):format(x / 1e9) end

-- Checks that a problem of this size fits into `free` bytes of memory, and that
-- no extent exceeds 31 bits.
local function check_size(job, rung, size, free, where, copies)
  for i, name in ipairs {"m", "n", "k"} do
    if size[i] > 0x7fffffff then
      stop(job, ("--%s %d; the limit of an extent is %d"):format(name, size[i],
        0x7fffffff))
    end
  end
  local bytes = need(rung, size, copies)
  if bytes > free then
    stop(job, ("%d x %d x %d needs %s of memory, but only %s are free on %s "
      .. "[out-of-memory]"):format(size[1], size[2], size[3],
      gigabytes(bytes), gigabytes(free), where))
  end
end

-- Returns the sizes to run: {{m, n, k}, ...}. If matrices are read from files,
-- returns the size of the matrices.
local function problems(job, default)
  local opt = job.opt
  local a = opt.a and lib.read_matrix(job, opt.a)
  local b = opt.b and lib.read_matrix(job, opt.b)
  job.a, job.b = a, b
  if not (a or b or opt.m or opt.n or opt.k) then
    local sizes = {}
    for i, s in ipairs(default) do sizes[i] = {s, s, s} end
    return sizes
  end
  local m = opt.m or a and a.shape[1] or default[1]
  local n = opt.n or b and b.shape[1] or default[1]
  local k = opt.k or a and a.shape[2] or b and b.shape[2] or default[1]
  for _, want in ipairs {{a, opt.a, "A", m, k}, {b, opt.b, "B", n, k}} do
    local array = want[1]
    if array and (array.shape[1] ~= want[4] or array.shape[2] ~= want[5])
    then
      stop(job, ("%s: %s is (%d,%d), and (%d,%d) is needed: C (M,N) = "
        .. "A (M,K) B (N,K)^T [shape-mismatch]"):format(
        core.visible(want[2]), want[3], array.shape[1], array.shape[2],
        want[4], want[5]))
    end
  end
  return {{m, n, k}}
end

-- Fills a buffer with small integers for integer types, else with N(0,1).
-- Returns an object whose method wait() waits for the numbers, or nil.
local function fill(b, seed)
  local least = b.dtype.signed and -8 or 0
  if not b.dtype.is_integer then return core.begin_normal(b, seed) end
  b:fill_int(seed, least, 7)
end

local function strides(rows, cols, k_major)
  return k_major and {cols, 1} or {1, rows}
end

local function operand(p, name, dtype, rows, cols, k_major, fill_with)
  local low = name:lower()
  p[low] = type(fill_with) == "userdata" and fill_with
    or core.buffer(dtype, rows * cols)
  if math.type(fill_with) then
    p.fillings[#p.fillings + 1] = fill(p[low], fill_with)
  end
  p.strides[low] = strides(rows, cols, k_major)
  p[name] = cute.make_tensor(p[low],
    cute.make_layout({rows, cols}, p.strides[low]))
end

-- Returns the contents of an operand: the matrix of a file, or else `seed`,
-- from which random numbers are generated.
local function source(array, dtype, rows, cols, k_major, seed)
  if not array then return seed end
  local b = lib.npy_buffer(array, core.find_dtype(dtype))
  return k_major and b or b:transpose(rows, cols)
end

-- Waits until a problem's matrices are filled.
local function filled(p)
  for _, f in ipairs(p.fillings) do f:wait() end
  p.fillings = {}
end

--- Makes a problem: host tensors A, B, C, their buffers a, b, c and strides.
---@param rung table of lesson.rung
---@param size integer[] {M, N, K}
---@param o? table {layout: string, seed: integer, alpha: number, beta: number,
-- dynamic: boolean, a: table, b: table, empty: boolean, compile: function}
-- layout: tn (A and B with K contiguous), nt, nn or tt; empty: without data;
-- compile: called with the problem while threads fill its matrices
function lesson.problem(rung, size, o)
  o = o or {}
  local m, n, k = table.unpack(size)
  local seed, layout = o.seed or 0, o.layout or rung.layout
  local k_A, k_B = layout:sub(1, 1) == "t", layout:sub(2, 2) == "n"
  local p = {m = m, n = n, k = k, strides = {}, layout = layout,
             fillings = {}}
  local t = rung.types
  operand(p, "A", t[1], m, k, k_A, not o.empty
    and source(o.a, t[1], m, k, k_A, seed * 3 + 1))
  operand(p, "B", t[2], n, k, k_B, not o.empty
    and source(o.b, t[2], n, k, k_B, seed * 3 + 2))
  local alpha, beta = o.alpha or 1, o.beta or 0
  operand(p, "C", t[3], m, n, true, beta ~= 0 and seed * 3 + 3)
  if alpha ~= 1 or beta ~= 0 then
    p.alpha, p.beta = alpha, beta
  end
  if o.dynamic then lesson.mark_dynamic(p, rung.tile) end
  if o.compile then o.compile(p) end
  filled(p)
  if beta ~= 0 then p.c0 = p.c:to(t[3]) end
  return p
end

--- Makes the extents of A, B and C run-time arguments of the kernel. One
-- compiled kernel then serves all sizes that are multiples of the tile; a
-- second serves all other sizes.
function lesson.mark_dynamic(p, tile)
  local function by(extent, div) return extent % div == 0 and div or 1 end
  local function power(n) return math.min(n & -n, 16) end
  local function mark(t, lead, rows, cols)
    local shape, stride = t.shape, t.stride
    local div = {by(shape[1], rows), by(shape[2], cols)}
    div[lead + 1] = math.max(div[lead + 1], power(shape[lead + 1]))
    t:mark_layout_dynamic {leading_dim = lead, divisibility = div,
      stride_divisibility = power(stride[2 - lead])}
  end
  local function lead(t) return t.stride[2] == 1 and 1 or 0 end
  mark(p.A, lead(p.A), tile[1], tile[3])
  mark(p.B, lead(p.B), tile[2], tile[3])
  mark(p.C, 1, tile[1], tile[2])
end

--- Reports whether TMA can load A and B, whose rows are contiguous; returns the
-- reason if not. It is a function for the field `takes`.
---@return boolean, string?
function lesson.rows_of_16(A, B)
  for _, x in ipairs {{"A", A}, {"B", B}} do
    local t = x[2]
    local bits = t.stride[1] * t.element_type.bits
    if bits % 128 ~= 0 then
      return false, ("rows of %s are %d bytes apart, TMA takes multiples of 16")
        :format(x[1], bits // 8)
    end
  end
  return true
end

-- Reports whether the kernel of a rung (a script of the GEMM ladder) supports a
-- problem; returns the reason if not.
local function suits(rung, p)
  local t, takes = rung.tile, rung.takes
  if rung.needs and p.sm and not core.has(p.sm, rung.needs) then
    return false, ("sm_%d has no %s"):format(p.sm, rung.needs)
  end
  if p.layout ~= rung.layout then
    return false, ("operands are %s, but it needs %s"):format(p.layout,
                                                              rung.layout)
  end
  if takes then return takes(p.A, p.B, p.C) end
  if p.m % t[1] == 0 and p.n % t[2] == 0 and p.k % t[3] == 0 then
    return true
  end
  return false, ("M, N and K must be multiples of %d, %d and %d"):format(
    t[1], t[2], t[3])
end

-- Returns the kernel that runs a problem. If it is the general kernel, also
-- returns the reason why the rung's own kernel does not run the problem.
local function kernel_of(rung, p)
  rung = sized(rung, p)
  if not rung.general then return rung.kernel end
  local ok, why = suits(rung, p)
  if ok then return rung.kernel end
  return rung.general.kernel, why or "it does not support these operands"
end

-- Returns the kernel's arguments for a problem.
local function arguments(rung, p)
  rung = sized(rung, p)
  local function scalar(x)
    return x and (rung.sums == "i32" and math.tointeger(x) or x + 0.0)
  end
  local own = rung.arguments and kernel_of(rung, p) == rung.kernel
    and rung.arguments
  if own then return own(p.A, p.B, p.C, scalar(p.alpha), scalar(p.beta)) end
  if not p.alpha then return p.A, p.B, p.C end
  return p.A, p.B, p.C, scalar(p.alpha), scalar(p.beta)
end

-- Returns grid, block and cluster of the launch for a problem.
local function shape_of(rung, p)
  rung = sized(rung, p)
  local general = rung.general
  if general and kernel_of(rung, p) ~= rung.kernel and rung.arguments then
    return general.grid(p.m, p.n), general.block
  end
  return rung.grid(p.m, p.n, p.k), rung.block, rung.cluster
end

---------------------------------------------------------------------------
-- Verification
---------------------------------------------------------------------------

-- Returns the accumulator type, and the largest error of one addition in it.
-- Tensor cores truncate each of the k products of an instruction, and the
-- addend, F bits below the largest. Then they truncate the sum to 23 bits
-- (core/hardware/mma.h). In units of 2^-24, the error per product is (k+1)/k
-- 2^(24-F) + 2/k. F is 23 on Volta (k = 4: error 3), 24 up to Ada (k = 4:
-- 1.75), 25 on Hopper (k = 4: 1.125), 13 for 8-bit floats on Ada. An FMA has an
-- error of 1 unit. The sums of the f64 reference are rounded, too.
local function rounding(rung, sm)
  local from, to = rung.types[1], rung.types[3]
  if core.find_dtype(to).is_integer then return to, 0 end
  if to == "f64" then return to, 0x1p-52 end
  if rung.unit then return "f32", rung.unit end
  if from == "e4m3" and sm < 90 then return "f32", 1.25 * 0x1p-13 end
  return "f32", (sm < 75 and 3 or sm < 90 and 2 or 1.25) * 0x1p-24
end

-- Returns copies of A and B with the values that the kernel multiplies: for
-- rungs with `tf32`, f32 elements are truncated to tf32.
local function exact_operands(rung, p)
  if not rung.tf32 then return p.a, p.b end
  if not p.cut then
    p.cut = {p.a:to("f32"):cut(13), p.b:to("f32"):cut(13)}
  end
  return p.cut[1], p.cut[2]
end

local function product_by_cublas(p, a, b, dev)
  local bytes = 8.0 * (p.m * p.k + p.n * p.k + p.m * p.n)
  if bytes > (dev:free_memory() or 0) * 0.9
      or bytes > lib.host_memory() * 0.5 then
    return nil
  end
  local da, db = dev:buffer(a:to "f64"), dev:buffer(b:to "f64")
  local dd = dev:buffer("f64", p.m * p.n)
  local blas = da and db and dd and require "cute.gpu".cublas {
    m = p.m, n = p.n, k = p.k, A = da, B = db, D = dd, layout = p.layout}
  local ref = blas and pcall(blas.launch, blas) and dd:download() or nil
  for _, buffer in pairs {da, db, dd} do buffer:close() end
  return ref
end

-- Returns A B^T in double precision, computed by cuBLAS on `dev` or by the CPU.
-- Returns nil if the CPU would take too long.
local function product(rung, p, dev)
  if p.product then return p.product end
  local a, b = exact_operands(rung, p)
  if dev then p.product = product_by_cublas(p, a, b, dev) end
  if not p.product and (p.m + 0.0) * p.n * p.k <= CPU_REFERENCE_MAX then
    p.product = core.gemm_reference(a, b, core.buffer("f64", p.m * p.n),
                                    p.m, p.n, p.k, p.strides)
  end
  return p.product
end

local function to_f32(x) return (string.unpack("f", string.pack("f", x))) end

-- Returns the tolerance of the error in the Frobenius norm. It is larger if C
-- has few elements: then each of them may be off by half a unit in the last
-- place.
local function most_error(rung, p)
  return rung.tolerance * (p.m * p.n < 64 and 1.4 or 1)
end

--- Reports whether C is right: each element is within the bounds of rounding
-- (core/base/gemmcheck.h), and the error in the Frobenius norm within the
-- rung's tolerance.
---@param dev? table a GPU whose cuBLAS may compute products too large for a CPU
---@return boolean ok
---@return table verdict of core.gemm_check; its field `most` is the tolerance
-- of the norm
---@return string how "all elements", or their number
function lesson.verify(rung, p, dev)
  local ref = product(rung, p, dev)
  local a, b = exact_operands(rung, p)
  local sums, unit = rounding(rung, p.sm or 70)
  local v = core.gemm_check(a, b, p.c, p.m, p.n, p.k, {
    a = p.strides.a, b = p.strides.b, ref = ref, sums = sums, unit = unit,
    alpha = to_f32(p.alpha or 1), beta = to_f32(p.beta or 0), c0 = p.c0})
  v.most = most_error(rung, p)
  return v.ok and v.frobenius <= v.most, v,
    (ref and "all" or v.count) .. " elements"
end

--- Returns the error in C as a sentence, for a verdict of lesson.verify.
function lesson.what_is_wrong(v, how)
  if v.wrong == 0 then
    return ("relative error %.2e of %s, and %.1e at most is rounding")
      :format(v.frobenius, how, v.most)
  end
  local got = v.got ~= v.got and "nan" or ("%.9g"):format(v.got)
  return ("C(%d,%d) is %s, its sum %.9g, and rounding explains %.1e; "
    .. "%d of %s are beyond that"):format(v.row, v.col, got, v.want, v.bound,
    v.wrong, how)
end

-- Returns comparisons (cutelua.check.compare) of C with the rounded product A
-- B^T. The list is empty if the reference would take too long.
local function compared(rung, p)
  local ref, t = product(rung, p), p.c.dtype
  if not ref then return {} end
  local c = compare.begin("reference", "C", compare.TOLERANCE[t.name] or 0)
  local alpha, beta = to_f32(p.alpha or 1), to_f32(p.beta or 0)
  local function want(i)
    return alpha * ref[i] + (beta ~= 0 and beta * p.c0[i] or 0)
  end
  c.buffer = p.c
  local scale = compare.scale(#ref, want)
  for i = 0, #ref - 1 do
    compare.note(c, i, function() return {i // p.n, i % p.n} end, p.c[i],
                 want(i), scale)
  end
  compare.describe(c, {#ref // p.n, p.n}, function(i) return p.c[i] end, want,
                   scale)
  return {c}
end

local function say_verified(rung, p)
  local ok, v, how = lesson.verify(rung, p)
  lib.verified(p, ok, how, not ok and lesson.what_is_wrong(v, how) or nil,
               function() return compared(rung, p) end)
  if ok then
    say("verified    relative error %.2e of %s against a double-precision "
      .. "sum: ok%s", v.frobenius, how, v.nans > 0 and (" (%d are NaN, "
      .. "as A, B or C have it)"):format(v.nans) or "")
  else
    say("verified    %s: WRONG", lesson.what_is_wrong(v, how))
  end
  return ok
end

---------------------------------------------------------------------------
-- Simulator
---------------------------------------------------------------------------

--- Returns a prepared launch of a rung (a version of the kernel) for a problem.
function lesson.prepare(rung, p, device, o)
  local target = cute.device(device)
  p.sm = target and target.sm
  local args = table.pack(arguments(rung, p))
  local grid, block, cluster = shape_of(rung, p)
  args[args.n + 1] = {
    grid = grid, block = block, cluster = cluster, device = device,
    seed = o and o.seed, progress = o and o.progress,
    threads = o and o.threads, record = o and o.record}
  local kernel = kernel_of(rung, p)
  return cute.compile(kernel, table.unpack(args, 1, args.n + 1))
end

--- Runs a rung on a simulator ("sim:sm_80"); returns its report and the
-- prepared launch.
function lesson.simulate(rung, p, device, o)
  local run = lesson.prepare(rung, p, device, o)
  return lib.report(run), run
end

local function say_problem(job, p)
  local t = job.rung.types
  local scale = p.alpha and ("%g "):format(p.alpha) or ""
  say("problem     C (%d,%d) %s = %sA (%d,%d) %s B (%d,%d)^T %s%s, %s",
    p.m, p.n, t[3], scale, p.m, p.k, t[1], p.n, p.k, t[2],
    p.beta and p.beta ~= 0 and (" + %g C"):format(p.beta) or "", p.layout)
  local kernel, why = kernel_of(job.rung, p)
  if why then
    say("instead     of %s, kernels/%s.lua: %s", job.name, kernel.name, why)
  end
end

local function blocks(grid)
  return type(grid) == "table" and grid[1] * (grid[2] or 1) * (grid[3] or 1)
    or grid
end

-- Runs a problem of one size on a simulator and prints the results. Returns
-- true if C is right and the simulator reports no fault.
local function simulate(job, device, size)
  local rung = job.rung
  check_size(job, rung, size, lib.host_memory(), "this machine", 3)
  local p = lesson.problem(rung, size, job.data())
  p.sm = device.sm
  say_problem(job, p)
  local grid, block = shape_of(rung, p)
  say("device      %s, %d blocks of %d threads", tostring(device),
    blocks(grid), block)
  local start = core.clock()
  local run = lesson.prepare(rung, p, device, {seed = job.opt.seed,
    record = job.opt.conflicts,
    progress = lib.progress_line "simulating"})
  local traced = core.clock() - start
  local report = lib.report(run)
  local ok = say_verified(rung, p)
  ok = lib.say_simulated(report, traced) and ok
  say("smem        %d bytes a block", run.program.info.smem)
  local archs = rung.archs or {"sm_80", "sm_90a"}
  ok = lib.print_resources(run.program, archs) and ok
  say("traffic")
  lib.print_traffic(job, report)
  if ok then lib.write_out(job, p.c, p.m, p.n) end
  return ok
end

local function run_sim(job, device)
  local rung, ok = job.rung, true
  for _, size in ipairs(lib.sizes(problems(job, {rung.sim_size or SIM_SIZE}),
                                  rung.tile)) do
    lib.attempt(size, function() ok = simulate(job, device, size) and ok end)
  end
  return ok
end

---------------------------------------------------------------------------
-- GPU
---------------------------------------------------------------------------

-- Copies a problem's matrices to the GPU buffers da, db and dc. Also allocates
-- dd, into which cuBLAS writes its result. Returns true, or nil and a message.
local function upload(rung, p, dev, o)
  local why
  for _, name in ipairs {"a", "b", "c"} do
    local d, big = "d" .. name, name:upper()
    p[d], why = dev:buffer(p[name])
    if not p[d] then return nil, why end
    p[big] = core.on_device(p[big], p[d])
  end
  p.dd, why = dev:buffer(rung.types[3], p.m * p.n)
  if not p.dd then return nil, why end
  -- NaNs show which elements of C the kernel did not write.
  if not p.c0 then p.dc:memset(0xff) end
  if o.dynamic then lesson.mark_dynamic(p, rung.tile) end
  return true
end

-- Compiles the rungs' kernels for a problem in host memory. In the meantime,
-- the driver creates the GPU's context, and threads fill the matrices. Returns
-- true, or nil and a message.
local function compile(rungs, p, device)
  p.sm = device.sm
  for _, rung in ipairs(rungs) do
    local _, block, cluster = shape_of(rung, p)
    local call = kernel_of(rung, p)(arguments(rung, p))
    local ok, why = call:trace {block = block, cluster = cluster,
                                arch = device.arch}:compile()
    if not ok then return nil, why end
  end
  return true
end

local function release(p)
  for _, name in ipairs {"da", "db", "dc", "dd"} do
    if p[name] then p[name]:close() end
    p[name] = nil
  end
end

-- Returns two products to compare with: cuBLAS's, and the fastest one of
-- cublasLt. Each is nil if the library has none for these types and sizes.
local function rivals(rung, p, with_lt)
  local gpu = require "cute.gpu"
  local spec = {m = p.m, n = p.n, k = p.k, A = p.da, B = p.db, D = p.dd,
                layout = p.layout, tf32 = rung.tf32}
  local blas = gpu.cublas(spec)
  if blas and not pcall(blas.launch, blas) then blas = nil end
  local list = (with_lt or not blas) and gpu.cublaslt(spec) or nil
  return blas, list and #list > 0 and measure.best(list) or nil
end

--- Benchmarks rungs (versions of the kernel) on the same problem on a GPU.
-- Verifies each rung, then times all rungs and cuBLAS alternately, unless
-- opt.rounds is 0.
---@param job {opt: table, data: function} opt.rounds: rounds of measurement
---@param with_lt? boolean times cublasLt, too; without it, cublasLt is timed
-- only if cuBLAS fails
---@return table {{rung =, run =, ok =, verdict =, how =, r = its times}, ...; p
-- = the problem, blas = and lt = the times of cuBLAS and cublasLt}
function lesson.bench(job, rungs, size, device, with_lt)
  device.dev:begin()
  local data = job.data()
  function data.compile(p)
    must(job, compile(rungs, p, device))
    check_size(job, rungs[1], size, device.dev:free_memory() or math.huge,
               "the GPU", 2)
  end
  local p = lesson.problem(rungs[1], size, data)
  must(job, upload(rungs[1], p, device.dev, job.opt))
  local out, list, blas, lt = {p = p}, {}, nil, nil
  for i, rung in ipairs(rungs) do
    if i > 1 then p.dc:memset(0xff) end
    local run = must(job, lesson.prepare(rung, p, device))
    run:launch()
    device.dev:sync()
    if i == 1 and job.opt.rounds > 0 then
      blas, lt = rivals(rung, p, with_lt)
    end
    p.dc:download(p.c)
    local ok, verdict, how = lesson.verify(rung, p, device.dev)
    out[i] = {rung = rung, run = run, ok = ok, verdict = verdict, how = how}
    list[i] = {name = rung.name, launch = run.run}
  end
  if blas then list[#list + 1] = {name = "cuBLAS", launch = blas} end
  if lt then list[#list + 1] = {name = "cublasLt", launch = lt} end
  if job.opt.rounds > 0 then
    local results = must(job, measure.bench(list,
      {flops = 2.0 * p.m * p.n * p.k, rounds = job.opt.rounds}))
    for i, o in ipairs(out) do o.r = results[i] end
    out.blas, out.lt = blas and results.cuBLAS, lt and results.cublasLt
  end
  release(p)
  return out
end

local function tflops(r, kind)
  return r and ("%.1f"):format(r[kind].tflops) or "-"
end

local function ratio(r, rival, kind)
  return rival and ("%.3f"):format(rival[kind].median / r[kind].median) or "-"
end

local HEAD = {"size", "error", "of", "", "cold", "hot", "cuBLAS", "hot",
  "Lt best", "hot", "/cuBLAS", "hot", "/Lt", "hot", "spread"}

local function bench_row(p, o, blas, lt)
  local row = {("%dx%dx%d"):format(p.m, p.n, p.k),
               ("%.1e"):format(o.verdict.frobenius), o.how,
               o.ok and "ok" or "WRONG"}
  local ours = o.r
  if not ours then return row end
  return table.move({
    tflops(ours, "cold"), tflops(ours, "hot"),
    tflops(blas, "cold"), tflops(blas, "hot"),
    tflops(lt, "cold"), tflops(lt, "hot"),
    ratio(ours, blas, "cold"), ratio(ours, blas, "hot"),
    ratio(ours, lt, "cold"), ratio(ours, lt, "hot"),
    lib.spread(ours.hot)}, 1, 11, 5, row)
end

local function run_gpu(job, device)
  local ok, bare = true, job.opt.rounds == 0
  local rows = {bare and table.move(HEAD, 1, 4, 1, {}) or HEAD}
  say("device      %s, driver for CUDA %s", tostring(device),
    tostring(device.info.cuda))
  for i, size in ipairs(problems(job, job.rung.sizes or GPU_SIZES)) do
    check_size(job, job.rung, size, lib.host_memory(), "this machine", 2)
    local out = lesson.bench(job, {job.rung}, size, device, true)
    local p, o = out.p, out[1]
    if i == 1 then
      say_problem(job, p)
      local program = o.run.program
      local compiled = program:compile(device.arch)
      local r = compiled.resources
      say("kernel      %d registers, %d bytes spilled, %d bytes of shared "
        .. "memory", r.registers, (r.spill_stores or 0)
        + (r.spill_loads or 0), program.info.smem)
      ok = lib.check_compiled(compiled) and ok
    end
    ok = o.ok and ok
    if not o.ok then
      say("WRONG       %s", lesson.what_is_wrong(o.verdict, o.how))
    end
    rows[#rows + 1] = bench_row(p, o, out.blas, out.lt)
    if ok then lib.write_out(job, p.c, p.m, p.n) end
  end
  if not bare then
    say("TFLOP/s, cold (L2 flushed) and hot (back to back); medians of %d "
      .. "interleaved rounds", job.opt.rounds)
  end
  lib.print_table(rows)
  return ok
end

---------------------------------------------------------------------------
-- --emit
---------------------------------------------------------------------------

local function emit(job)
  local size = problems(job, {job.rung.sim_size or SIM_SIZE})[1]
  local data = job.data()
  data.empty, data.a, data.b = true, nil, nil
  local p = lesson.problem(job.rung, size, data)
  local _, block, cluster = shape_of(job.rung, p)
  local kernel = kernel_of(job.rung, p)
  lib.emit(job, kernel(arguments(job.rung, p)), block, cluster)
end

---------------------------------------------------------------------------
-- The script
---------------------------------------------------------------------------

local OPTIONS = {
  {"--m", "int", min = 1, help = "rows of A and C"},
  {"--n", "int", min = 1, help = "rows of B, columns of C"},
  {"--k", "int", min = 1, help = "columns of A and B"},
  {"--layout", "choice", choices = LAYOUTS, help = "layout of A and B: K is "
    .. "contiguous in A if the first letter is t, in B if the second is n "
    .. "(default tn)"},
  {"--alpha", "number", default = 1, help = "C = alpha A B^T + beta C"},
  {"--beta", "number", default = 0, help = "see --alpha"},
  {"--dynamic", "flag", help = "one kernel for all sizes (extents become "
    .. "arguments)"},
  {"--rounds", "int", min = 0, default = 9,
    help = "rounds in which a GPU measures all in turn; 0: verifies only"},
}

local function has(list, x)
  for _, v in ipairs(list) do if v == x then return true end end
  return false
end

local function check_options(job)
  local opt, rung = job.opt, job.rung
  opt.layout = opt.layout or rung.layout
  if not has(rung.layouts, opt.layout) then
    stop(job, ("--layout %s; this kernel supports only %s"):format(opt.layout,
      table.concat(rung.layouts, ", ")))
  end
  if not rung.sums and (opt.alpha ~= 1 or opt.beta ~= 0) then
    stop(job, "this kernel does not support --alpha and --beta")
  end
  if rung.sums == "i32" and not (math.tointeger(opt.alpha)
      and math.tointeger(opt.beta)) then
    stop(job, "--alpha and --beta must be integers for integer products")
  end
end

-- Returns all options of a script, including the options of its variants.
local function options_of(spec)
  local options, choices = {table.unpack(OPTIONS)}, {}
  for _, v in ipairs(spec.variants or {}) do
    local name, word = v[1], v[2]
    if not choices[name] then
      choices[name] = {}
      options[#options + 1] = {name, word and "choice" or "flag",
                               choices = choices[name], help = v.help}
    end
    table.insert(choices[name], word)
  end
  return options
end

--- Runs a GEMM script with its command-line arguments. Exits with code 1 if the
-- result is wrong or the simulator reports a fault.
---@param words string[]
---@param spec table a rung: see above
function lesson.gemm(words, spec)
  local name = lib.script_name(words, "gemm")
  local options, flag = options_of(spec), nil
  local job = {name = name, arch = spec.arch}
  job.opt = cli.parse(words, {name = name, about = spec.about,
                              options = options, common = true})
  for _, v in ipairs(spec.variants or {}) do
    local said = job.opt[v[1]:sub(3)]
    if said and (said == v[2] or not v[2]) then flag = table.concat(v, " ") end
  end
  job.rung = lesson.rung(spec, flag)
  job.rung.name = name
  check_options(job)
  function job.data()
    local o = job.opt
    return {layout = o.layout, seed = o.seed, alpha = o.alpha, beta = o.beta,
            dynamic = o.dynamic, a = job.a, b = job.b}
  end
  lib.run(job, {emit = emit, gpu = run_gpu, sim = run_sim})
end

return sign.module("cutelua.bench.lesson", lesson)
-- SPDX-License-Identifier: MIT
