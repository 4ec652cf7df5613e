--- Implements `cutelua tune gemm` and `cutelua tune attention`. It measures the
-- candidates for given sizes, and writes the fastest into a table that ops.gemm
-- and ops.attention read (docs/tuning.md).
local attention = require "cutelua.tune.attention"
local child = require "cutelua.tune.child"
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local epilogues = require "cutelua.tune.epilogues"
local files = require "cute.lang.files"
local products = require "cutelua.tune.products"
local report = require "cute.lang.report"

local tune = {}

-- The subjects of tuning, by the first argument of the command.
local SUBJECTS = {gemm = products, attention = attention}

local SPEC = {
  name = "tune", script = "tune gemm|attention",
  about = "Measures the candidates of ops.gemm for products of M, N and K, or "
    .. "the tiles of ops.attention for B, S, T, H, G and D, on this machine's "
    .. "GPU, each in its own process. Writes the best of each into a table "
    .. "that ops.gemm and ops.attention read. An interrupted run continues "
    .. "where it stopped.",
  args = {name = "SHAPES", many = true,
          help = "as --shapes; any number of them"},
  options = {
    {"--shapes", "string", place = "M,N,K|FILE", help = "extents "
      .. "(B,S,T,H,G,D of attention); slashes separate several values of one "
      .. "(1/8/64,4096,4096); or a file of such lines"},
    {"--types", "string", default = "bf16", place = "A[:B[:D]]",
     help = "types of the matrices: bf16 f16 tf32 f32 f64 e4m3 e5m2 i8 u8; "
      .. "for D also i32"},
    {"--layout", "choice", choices = {"tn", "nt", "nn", "tt"}, default = "tn",
     help = "layout of A and B in BLAS's notation"},
    {"--epilogue", "string", place = "NAME|FILE", help = "the epilogue: "
      .. table.concat(epilogues.NAMES, " ") .. ", or a Lua file "
      .. "that returns a function of the given tensors"},
    {"--columns", "flag", help = "D's columns are contiguous"},
    {"--causal", "flag", help = "causal attention"},
    {"--out", "file", help = "the table (default "
      .. "cutelua/tuned/CARD.lua in $XDG_DATA_HOME)"},
    {"--time", "number", min = 0, place = "S", help = "ends after S seconds"},
    {"--jobs", "int", min = 1, max = 256, help = "processes that compile "
      .. "(default one a core)"},
    {"--limit", "int", min = 1, default = 30, place = "S",
     help = "time limit of a candidate in seconds"},
    {"--look", "number", min = 0.1, default = 8, place = "MS",
     help = "milliseconds of the first measurement of a candidate"},
    {"--warm", "number", min = 0, default = 60, place = "MS",
     help = "milliseconds of the warm-up of each finalist"},
    {"--hot", "number", min = 0.1, default = 50, place = "MS",
     help = "milliseconds of a measurement of a finalist"},
    {"--rounds", "int", min = 1, max = 1000, default = 5,
     help = "measurements of each finalist, in turn with the others"},
    {"--finalists", "int", min = 1, max = 64, default = 5,
     help = "the most finalists"},
    {"--near", "number", min = 1, default = 1.1, help = "finalists are within "
      .. "this factor of the best first measurement"},
    {"--slack", "number", min = 1, default = 2, help = "candidates are "
      .. "within this factor of the shortest time that a model predicts"},
    {"--most", "int", min = 1, default = 24, help = "the most candidates of "
      .. "a product"},
    {"--again", "flag", help = "measures again what the table has"},
    {"--verbose", "flag", help = "reports why candidates failed"},
  }}

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

local function refuse(text, ...)
  error({tune = text:format(...), code = 2}, 0)
end

local LARGEST, PRODUCTS = (1 << 31) - 1, 1 << 16
-- The maximum size of a file of sizes, in bytes.
local LIST = 4 << 20

-- Returns the extents in an argument as a list. For example, "1/8/64" has
-- three.
local function extents(word, where)
  local list = {}
  for text in (word .. "/"):gmatch "(.-)/" do
    local n = text:find "^%d+$" and math.tointeger(tonumber(text))
    if not n or n < 1 or n > LARGEST then
      refuse("%s: '%s' is not an extent; integers from 1 to 2^31-1, separated "
        .. "by slashes, are needed", where, core.visible(text))
    end
    list[#list + 1] = n
  end
  return list
end

-- Appends all combinations of the lists' values to `sizes`. `loops` gives the
-- order of the nested loops.
local function combine(sizes, lists, loops, at, now)
  if not loops[at] then
    sizes[#sizes + 1] = table.move(now, 1, #now, 1, {})
    return
  end
  for _, x in ipairs(lists[loops[at]]) do
    now[loops[at]] = x
    combine(sizes, lists, loops, at + 1, now)
  end
end

local function add_line(subject, sizes, line, where)
  local lists, all, now = {}, 1, {}
  for word in line:gmatch "[^%s,]+" do lists[#lists + 1] = word end
  if #lists ~= subject.count then
    refuse("%s: '%s' is not %s", where, core.visible(line), subject.form)
  end
  for i, word in ipairs(lists) do
    lists[i], now[i] = extents(word, where), 0
    all = all * #lists[i]
    if #sizes + all > PRODUCTS then
      refuse("%s: over %d %ss", where, PRODUCTS, subject.noun)
    end
  end
  combine(sizes, lists, subject.loops, 1, now)
end

-- Adds the sizes that a command-line argument specifies. The argument is M,N,K,
-- or the name of a file that has M,N,K on each line.
local function add_shapes(subject, sizes, word)
  local commas = select(2, word:gsub(",", ","))
  if word:find "^[%d/]+,[%d/,]+$" and commas == subject.count - 1 then
    return add_line(subject, sizes, word, "--shapes")
  end
  local text, why = files.read(word, LIST)
  if not text then
    refuse("--shapes: '%s' is neither %s nor a file that can be read: %s",
      core.visible(word), subject.form, why)
  end
  local n, before = 0, #sizes
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    n = n + 1
    if n == 1 then line = line:gsub("^\xEF\xBB\xBF", "") end
    line = line:gsub("#.*", ""):match "^%s*(.-)%s*$"
    if line ~= "" then
      add_line(subject, sizes, line, ("%s:%d"):format(word, n))
    end
  end
  if #sizes == before then
    refuse("%s: the file has no %s", word, subject.form)
  end
end

-- Returns the problems to measure as a list of texts, in the given order and
-- without duplicates.
local function problems_of(opt)
  local subject = opt.subject
  local sizes, list, seen = {}, {}, {}
  if opt.shapes then add_shapes(subject, sizes, opt.shapes) end
  for i = 2, #opt.args do add_shapes(subject, sizes, opt.args[i]) end
  if #sizes == 0 then
    refuse("--shapes is needed: %s or a file", subject.form)
  end
  local class, why = subject.class(opt, sizes[1])
  if not class then refuse("%s", why) end
  for _, s in ipairs(sizes) do
    local problem = class .. " " .. table.concat(s, " ")
    if not seen[problem] then
      seen[problem], list[#list + 1] = true, problem
    end
  end
  return list
end

---------------------------------------------------------------------------

local function command(words, worker)
  local opt, message = cli.try_parse(words, SPEC)
  if not opt then refuse("%s", message) end
  if opt.help then
    io.write(cli.help(SPEC))
    return 0
  end
  opt.subject = SUBJECTS[opt.args[1]]
  if not opt.subject then
    refuse("tune%s: write 'cutelua tune gemm' or 'cutelua tune attention'; "
      .. "--help says more", opt.args[1] and " " .. core.visible(opt.args[1])
      or "")
  end
  opt.problems = problems_of(opt)
  opt.jobs = opt.jobs or child.cores()
  opt.worker = worker or "cutelua.tune.worker"
  if opt.out then
    local ok, why = cli.writable(opt.out)
    if not ok then refuse("--out: %s", why) end
  end
  local done = require "cutelua.tune.run"(opt)
  print(("%s: %d %s%s measured"):format(done.table, done.count,
    opt.subject.noun, done.count == 1 and "" or "s"))
  return done.count > 0 and 0 or 1
end

--- Runs `cutelua tune`. Returns the exit code: 1 if nothing was measured, 2 for
-- invalid arguments.
---@param words string[] the arguments after "tune"
---@param options? {worker: string?} worker: the module that child processes run
---@return integer
function tune.main(words, options)
  local ok, why = pcall(command, words, options and options.worker)
  if ok then return why end
  if type(why) ~= "table" or not why.tune then error(why, 0) end
  report.tell("cutelua tune: " .. why.tune)
  return why.code or 1
end

return tune
-- SPDX-License-Identifier: MIT
