--- The names that the package cutelua adds to the package cute: fields of cute,
-- and methods of calls, prepared launches and reports. cute loads this table
-- when a script uses a name that cute lacks (sign.added). Each row's module is
-- loaded when one of its names is first used.
local core = require "cute.core"
local sign = require "cute.lang.signature"

-- Options of matrix products by cuBLAS and cublasLt.
local PRODUCT = [[{A B D algos alpha batches beta bias epilogue fast_accum k
  layout m m_major n ordinal scale_A scale_B step_A step_B step_D tf32
  workspace}]]

-- Each row has the prefix of the names, the module, and the signatures of its
-- functions. Modules that check arguments themselves have only names here.
local FUNCTIONS = {
  {"cute.", "cutelua.cache.many",
    "compile_all(launches: table, opts?: {jobs})"},
  {"cute.", "cutelua.doc", "doc(x?)"},
  {"cute.", "cutelua.debug", "debug(kernel: kernel, arguments...)"},
  {"cute.", "cutelua.draw", [[
    draw(x, opts?: {as blocks by colour dtype file labels limit line tensor tile
      title width})]]},
  {"cute.", "cutelua.draw.print", [[
    print_layout(layout: layout|tensor) print_latex(x, opts?: {color})
    print_latex_tv(layout_tv: layout, tile_mn, opts?: {color})]]},
  {"cute.", "cutelua.draw.printing", [[
    printf(format: string, values...) print_tensor(tensor: tensor,
      opts?: table)]]},
  {"cute.", "cutelua.profile.swizzle", [[
    find_swizzle(layout: layout, accesses: table,
      opts?: {budget name type})]]},
  {"cute.", "cutelua.program.diff", "diff(before, now)"},
  {"cute.", "cutelua.program.explain", "explain(f: function, out?: function)"},
  {"cute.", "cutelua.ptx", [[
    ptx(text: string)
    cuda(text: string, opts?: {arch define include options})]]},
  {"cute.", "cutelua.ptx.triton",
    "triton(path: string, opts?: {lines undefined_ok})"},
  {"cute.", "cutelua.ptx.dsl",
    "dsl(path: string, opts?: {kernel lines smem})"},
  {"cute.", "cutelua.ptx.raw", "raw_kernel(text: string, opts?: table)"},
  {"cute.utils.", "cutelua.draw.print", [[
    print_latex(x, opts?: {color})
    print_latex_tv(layout_tv: layout, tile_mn, opts?: {color})]]},
  {"jit.", "cutelua.text.compiler", "ptx_lines(text: string)"},
  {"gpu.", "cutelua.bench.measure", "bench best bench_order stats"},
  {"gpu.", "cutelua.bench.blas", ([[
    cublas(options: %s) cublaslt(options: %s)
    cublaslt_first(options: %s)]]):format(PRODUCT, PRODUCT, PRODUCT)},
  {"workshop.", "cutelua.text.choice", "explained"},
  {"workshop.", "cutelua.text.compiler",
    "failed_compile slow_compile with_wgmma_lines"},
  {"workshop.", "cutelua.text.compared", "compared_type"},
  {"workshop.", "cutelua.text.crossed", "crossed"},
  {"workshop.", "cutelua.text.faults", "faults notes"},
  {"workshop.", "cutelua.text.mistakes",
    "always_true argument idle_iterator missing_argument no_field "
      .. "note_traced number_of_arguments odd_launch tested_expression traced"},
  {"workshop.", "cutelua.text.strays", "strays"},
  {"workshop.", "cutelua.text.relaunched", "relaunched"},
  {"workshop.", "cutelua.text.fidelity", "fidelity"},
  {"workshop.", "cutelua.text.foreign",
    "called_namespace indexed_kernel option python_name"},
  {"workshop.", "cutelua.text.surplus", "surplus"},
  {"workshop.", "cutelua.profile.conflict", "profiled"},
  {"workshop.", "cutelua.program.events", "timed_launch"},
  {"workshop.", "cutelua.check.watch",
    "watch_launches watch_error watch_findings"},
  {"workshop.", "cutelua.program.progress", "progress"},
  {"workshop.", "cutelua.tune.tables", "users_table"},
  {"call:", "cutelua.analyses.call", [[
    check(opts?) profile(opts?) find_swizzle(opts?) estimate(opts?)
    timeline(opts?) preflight(target?, opts?)]]},
  {"prepared:", "cutelua.analyses.prepared", "check(opts?) estimate(opts?)"},
  {"report:", "cutelua.analyses.report", [[
    conflicts() find_swizzle(name?) followers() json() notes() traffic()
    total(field: string, op?: string)]]},
}
-- Each row has the prefix of a name, the name, and the module that is its
-- value. `whole` is the public name of the value, if this is not the prefix
-- followed by the name.
local MODULES = {{"cute.", "bundle", "cutelua.bundle"},
  {"cute.", "cli", "cutelua.program.cli"},
  {"cute.", "npy", "cutelua.text.npy"},
  {"cute.", "npz", "cutelua.text.npz"},
  {"cute.", "safetensors", "cutelua.text.safetensors"},
  {"cute.", "gguf", "cutelua.text.gguf"},
  {"cute.", "testing", "cutelua.bench.testing"},
  {"ops.", "reference", "cutelua.bench.reference",
    whole = "cute.ops.reference"},
  {"workshop.", "passes", "cutelua.debug.passes"}}

local workshop = {}

local function add(prefix, name, row)
  workshop[prefix] = workshop[prefix] or {}
  workshop[prefix][name] = row
end

for _, row in ipairs(FUNCTIONS) do
  local prefix, module, text = table.unpack(row)
  if text:find "%(" then
    for name, signature in sign.signatures(text) do
      add(prefix, name, {module = module, signature = signature})
    end
  else
    for name in text:gmatch "[%w_]+" do add(prefix, name, {module = module}) end
  end
end
for _, row in ipairs(MODULES) do
  add(row[1], row[2], {module = row[3], whole = row.whole or row[1] .. row[2]})
end

-- Scripts do not use this table: they require "cute".
return setmetatable(workshop, {__index = function(_, name)
  core.fail("unknown-name", ("module cutelua has no '%s': its functions are "
    .. "fields of cute\n  write local cute = require \"cute\", then "
    .. "cute.%s"):format(tostring(name), tostring(name)))
end})
-- SPDX-License-Identifier: MIT
