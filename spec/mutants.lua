--- Plants one fault in the text of a script or kernel of this repository and
-- runs it on the simulator. Checks that the simulator reports the fault before
-- the result is compared with the reference.
local copylesson = require "cutelua.bench.copylesson"
local harness = require "cutelua.bench.harness"
local lesson = require "cutelua.bench.lesson"
local lib = require "cutelua.bench.lessonlib"
local support = require "spec.support"

local mutants = {}

-- Calls f() while the module of `file` has the text `text`. Reloads all kernels
-- for the call.
local function with(file, text, f)
  local kept, name = {}, file:gsub("^lua/", ""):gsub("%.lua$", "")
  name = name:gsub("/", ".")
  for module, it in pairs(package.loaded) do
    if module:find "^kernels%." or module == name then kept[module] = it end
  end
  for module in pairs(kept) do package.loaded[module] = nil end
  package.preload[name] = assert(load(text, "@" .. file))
  local ok, a, b, c = pcall(f)
  package.preload[name] = nil
  for module in pairs(package.loaded) do
    if module:find "^kernels%." or module == name then
      package.loaded[module] = nil
    end
  end
  for module, it in pairs(kept) do package.loaded[module] = it end
  if not ok then return nil, a end
  return a, b, c
end

-- Returns the first note of a report, or nil.
local function note_of(r) return r:notes()[1] end

local function of_harness(spec, m)
  local p = harness.problem(spec, m.size or spec.sim[1],
    {dtype = m.dtype or spec.dtypes[1], opt = m.opt})
  local ok, reports, wrong = harness.try(p, m.device, {seed = m.seed})
  for _, r in ipairs(reports) do
    if not r.ok then return r.reports[1], ok end
  end
  return false, not ok and wrong or nil, note_of(reports[1])
end

local function of_gemm(spec, m)
  local rung = lesson.rung(spec, m.word)
  local p = lesson.problem(rung, m.size or rung.sim_size or {128, 128, 128},
    {layout = m.layout or rung.layout, alpha = m.alpha, beta = m.beta})
  local r = lesson.simulate(rung, p, m.device, {seed = m.seed})
  if not r.ok then return r.reports[1] end
  local ok, v, how = lesson.verify(rung, p)
  return false, not ok and lesson.what_is_wrong(v, how) or nil, note_of(r)
end

--- Returns the first report of a script with a fault: an element of
-- report.reports, the tracer's message, or false if nothing is reported. Also
-- returns what is wrong with the results, and the first note.
---@param m {script: string, file: string?, from: string, nth: integer?, to:
--- string?, size: integer[]?, dtype: string?, opt: table?, seed: integer?,
--- device: string?, launch: function?}
-- launch: runs a kernel instead of the script, and returns its report
---@return table|string|false told
---@return string? wrong
---@return string? note
function mutants.run(m)
  local path = ("scripts/%s.lua"):format(m.script)
  local file = m.file and m.file .. ".lua" or path
  m.device = m.device or "sim:sm_90a"
  local text = support.change(support.read(file), m.from, m.nth or 1,
                              m.to or "")
  local function run()
    if m.launch then
      local r = m.launch(m)
      return r.reports[1] or false, nil, note_of(r)
    end
    local own = support.read(path)
    local gemm, copy = own:find "bench%.lesson\"", own:find "copylesson"
    local function spec(module, method)
      return assert(lib.script_spec(path, module, method,
                                    not m.file and text or nil))
    end
    if gemm then return of_gemm(spec("cutelua.bench.lesson", "gemm"), m) end
    if not copy then
      return of_harness(spec("cutelua.bench.harness", "run"), m)
    end
    local l = spec("cutelua.bench.copylesson", "run")
    return of_harness(copylesson.lesson(l), m)
  end
  local told, wrong, note = with(file, text, run)
  if told == nil then return tostring(wrong) end
  return told, wrong, note
end

return mutants
-- SPDX-License-Identifier: MIT
