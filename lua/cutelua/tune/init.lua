--- `cutelua tune gemm ...`: measures the candidates for products of given
-- sizes, and writes the best candidates into a table that ops.gemm reads
-- (docs/tuning.md).
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local epilogues = require "cutelua.tune.epilogues"
local files = require "cute.lang.files"
local operands = require "cutelua.tune.operands"
local report = require "cute.lang.report"

local tune = {}

local SPEC = {
  name = "tune", script = "tune gemm",
  about = "Measures the candidates of ops.gemm for products of M, N and K on "
    .. "this machine's GPU, each in its own process. Writes the best of "
    .. "each product into a table that ops.gemm reads. An interrupted run "
    .. "continues where it stopped.",
  args = {name = "SHAPES", many = true,
          help = "as --shapes; any number of them"},
  options = {
    {"--shapes", "string", place = "M,N,K|FILE", help = "extents; "
      .. "slashes separate several values of one (1/8/64,4096,4096); or a "
      .. "file of such lines"},
    {"--types", "string", default = "bf16", place = "A[:B[:D]]",
     help = "types of the matrices: bf16 f16 tf32 f32 f64 e4m3 e5m2 i8 u8; "
      .. "for D also i32"},
    {"--layout", "choice", choices = {"tn", "nt", "nn", "tt"}, default = "tn",
     help = "layout of A and B in BLAS's notation"},
    {"--epilogue", "string", place = "NAME|FILE", help = "the epilogue: "
      .. table.concat(epilogues.NAMES, " ") .. ", or a Lua file "
      .. "that returns a function of the given tensors"},
    {"--columns", "flag", help = "D's columns are contiguous"},
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
      .. "within this factor of the rule's best prediction"},
    {"--most", "int", min = 1, default = 24, help = "the most candidates of "
      .. "a product"},
    {"--again", "flag", help = "repeats earlier measurements"},
    {"--verbose", "flag", help = "reports why candidates failed"},
  }}

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

local function refuse(text, ...)
  error({tune = text:format(...), code = 2}, 0)
end

local LARGEST, PRODUCTS = (1 << 31) - 1, 1 << 16
-- The largest size of a file of products, in bytes.
local LIST = 4 << 20

-- Returns the extents that are listed in a word, such as the three of "1/8/64".
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

local function add_line(sizes, line, where)
  local words = {}
  for word in line:gmatch "[^%s,]+" do words[#words + 1] = word end
  if #words ~= 3 then
    refuse("%s: '%s' is not M,N,K", where, core.visible(line))
  end
  local ms, ns, ks = extents(words[1], where), extents(words[2], where),
    extents(words[3], where)
  if #sizes + #ms * #ns * #ks > PRODUCTS then
    refuse("%s: over %d products", where, PRODUCTS)
  end
  for _, n in ipairs(ns) do
    for _, k in ipairs(ks) do
      for _, m in ipairs(ms) do sizes[#sizes + 1] = {m, n, k} end
    end
  end
end

-- Adds the extents that a word gives: M,N,K, or the name of a file that has an
-- M,N,K on each line.
local function add_shapes(sizes, word)
  if word:find "^[%d/]+,[%d/]+,[%d/]+$" then
    return add_line(sizes, word, "--shapes")
  end
  local text, why = files.read(word, LIST)
  if not text then
    refuse("--shapes: '%s' is neither M,N,K nor a file that can be read: %s",
      core.visible(word), why)
  end
  local n, before = 0, #sizes
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    n = n + 1
    if n == 1 then line = line:gsub("^\xEF\xBB\xBF", "") end
    line = line:gsub("#.*", ""):match "^%s*(.-)%s*$"
    if line ~= "" then add_line(sizes, line, ("%s:%d"):format(word, n)) end
  end
  if #sizes == before then refuse("%s: the file has no M,N,K", word) end
end

local TYPES = {bf16 = "bf16", f16 = "f16", tf32 = "f32", f32 = "f32",
               f64 = "f64", e4m3 = "bf16", e5m2 = "bf16", i8 = "i32",
               u8 = "i32", i32 = "i32"}

-- Converts "bf16:bf16:f32" to "bf16 bf16 f32".
local function types_of(text)
  local list = {}
  for name in (text .. ":"):gmatch "(.-):" do
    if not TYPES[name] then
      refuse("--types: no type '%s' of products; possible are bf16 f16 tf32 "
        .. "f32 f64 e4m3 e5m2 i8 u8 i32", core.visible(name))
    end
    list[#list + 1] = name
  end
  if #list > 3 then refuse("--types: '%s' has more than three types", text) end
  local a = list[1]
  return ("%s %s %s"):format(a, list[2] or a, list[3] or TYPES[a])
end

-- Returns the class of the product (see cute.ops.tuned) with the epilogue that
-- opt.epilogue names. Sets opt.make to the function that makes the epilogue.
local function with_epilogue(opt, class, size)
  local name, make = epilogues.load(opt.epilogue)
  if not name then refuse("--epilogue: %s", make) end
  local ok, all = pcall(operands.class, ("%s %d %d %d"):format(class,
    table.unpack(size)), make, name)
  if not ok then
    refuse("--epilogue: %s", (tostring(all):gsub("%s*%[[%l-]+%]$", "")))
  end
  opt.make = make
  return all
end

-- Returns the problems to measure as texts, in the given order; each occurs
-- once.
local function problems_of(opt)
  local sizes, list, seen = {}, {}, {}
  if opt.shapes then add_shapes(sizes, opt.shapes) end
  for i = 2, #opt.args do add_shapes(sizes, opt.args[i]) end
  if #sizes == 0 then refuse "--shapes is needed: M,N,K or a file" end
  local class = ("%s %s %s"):format(types_of(opt.types), opt.layout,
    opt.columns and "column" or "row")
  if opt.epilogue then class = with_epilogue(opt, class, sizes[1]) end
  for _, s in ipairs(sizes) do
    local problem = ("%s %d %d %d"):format(class, table.unpack(s))
    if not seen[problem] then
      seen[problem], list[#list + 1] = true, problem
    end
  end
  return list
end

---------------------------------------------------------------------------

local function cores()
  local p <close> = io.popen "nproc 2>/dev/null"
  return p and tonumber(p:read "l") or 2
end

local function command(words, worker)
  local opt, message = cli.try_parse(words, SPEC)
  if not opt then refuse("%s", message) end
  if opt.help then
    io.write(cli.help(SPEC))
    return 0
  end
  if opt.args[1] ~= "gemm" then
    refuse("tune%s: write 'cutelua tune gemm'; --help says more",
           opt.args[1] and " " .. core.visible(opt.args[1]) or "")
  end
  opt.problems = problems_of(opt)
  opt.jobs, opt.worker = opt.jobs or cores(), worker or "cutelua.tune.worker"
  if opt.out then
    local ok, why = cli.writable(opt.out)
    if not ok then refuse("--out: %s", why) end
  end
  local done = require "cutelua.tune.run"(opt)
  print(("%s: %d product%s measured"):format(done.table, done.count,
    done.count == 1 and "" or "s"))
  return done.count > 0 and 0 or 1
end

--- Runs `cutelua tune` with these words. Returns the exit code: 1 if nothing
-- was measured, 2 for invalid words.
---@param words string[] the words after "tune"
---@param worker? string module of the child processes
---@return integer
function tune.main(words, worker)
  local ok, why = pcall(command, words, worker)
  if ok then return why end
  if type(why) ~= "table" or not why.tune then error(why, 0) end
  report.tell("cutelua tune: " .. why.tune)
  return why.code or 1
end

return tune
-- SPDX-License-Identifier: MIT
