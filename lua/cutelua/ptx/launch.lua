--- LAUNCH files: how to launch the entries of a PTX or CUDA C file. docs/ptx.md
-- describes the form, which is JSON or a Lua table.
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local cute = require "cute"
local json = require "cutelua.text.json"
local npy = require "cute.npy"
local ptx = require "cutelua.ptx"
local script = require "cutelua.program.script"
local sign = require "cute.lang.signature"

local launch = {}

local LARGEST = 16 << 20  -- bytes of a LAUNCH file

local function fail(...) core.fail("bad-launch", string.format(...)) end

local function keys(t, what, known)
  if type(t) ~= "table" then
    fail("%s: a table is expected, not %s", what, core.show(t))
  end
  for k in pairs(t) do
    if not known[k] then sign.unknown("key", k, known, what) end
  end
end

---------------------------------------------------------------------------
-- Reading
---------------------------------------------------------------------------

--- Reads a LAUNCH file. Raises [io] or [bad-launch].
---@param path string
---@return table
function launch.read(path)
  local text, why = cli.read_plain(path, LARGEST)
  if not text then core.fail("io", why) end
  if path:find "%.lua$" then
    local f, message = script.compile(text, "@" .. path, {})
    if not f then fail("%s", message) end
    local ok, t = pcall(f)
    if not ok then fail("%s: %s", path, tostring(t)) end
    if type(t) ~= "table" then fail("%s returns no table", path) end
    return t
  end
  local ok, t, message = pcall(json.decode, text)
  if not ok or t == nil then
    fail("%s is no JSON: %s", path, tostring(ok and message or t))
  end
  return t
end

---------------------------------------------------------------------------
-- Tensors
---------------------------------------------------------------------------

local TENSOR = {dtype = true, shape = true, strides = true, fill = true,
                values = true, npy = true, seed = true}

local function layout_of(shape, strides)
  if strides then return cute.make_layout(shape, strides) end
  return cute.make_layout(shape, cute.LayoutRight)
end

local function fill(b, n, spec, what)
  local how = spec.fill
  if spec.values then
    if #spec.values ~= n then
      fail("%s: %d values for %d elements", what, #spec.values, n)
    end
    for i = 1, n do b[i - 1] = spec.values[i] end
  elseif how == nil or how == "zero" then
    return
  elseif how == "normal" then
    b:fill_normal(spec.seed or 0)
  elseif type(how) == "number" then
    b:fill(how)
  elseif type(how) == "table" and #how == 2 then
    b:fill_int(spec.seed or 0, how[1], how[2])
  else
    fail("%s: fill is \"normal\", \"zero\", a number or {lo, hi}, not %s", what,
         core.show(how))
  end
end

-- Makes a tensor on the host from its description: {dtype, shape, strides,
-- fill, values, seed} or {npy}.
local function tensor(spec, what)
  keys(spec, what, TENSOR)
  if spec.npy then return npy.tensor(npy.read(spec.npy)) end
  local dtype = core.find_dtype(spec.dtype or "f32")
  if not dtype then fail("%s: no type '%s'", what, tostring(spec.dtype)) end
  local shape = type(spec.shape) == "number" and {spec.shape} or spec.shape
  if type(shape) ~= "table" then fail("%s has no shape", what) end
  local layout = layout_of(shape, spec.strides)
  local n = math.max(core.cosize(layout), 1)
  local buffer = core.buffer(dtype, n):fill(0)
  fill(buffer, n, spec, what)
  return cute.make_tensor(buffer, layout)
end

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

local MAP = {tensor = true, box = true, swizzle = true}

-- Makes a TMA atom that moves boxes of a tensor.
local function map(spec, memory, what)
  keys(spec, what, MAP)
  local t = memory[spec.tensor]
  if not t then fail("%s: no tensor '%s'", what, tostring(spec.tensor)) end
  local bits = t.element_type.bits
  local smem = cute.make_layout(spec.box, cute.LayoutRight)
  local swizzle = spec.swizzle or 0
  if swizzle ~= 0 then
    local shift = {[32] = 1, [64] = 2, [128] = 3}
    if not shift[swizzle] then
      fail("%s: swizzle = %s: 0, 32, 64 or 128 bytes", what,
           core.show(swizzle))
    end
    local base = math.tointeger(math.log(128 // bits, 2))
    smem = cute.composition(cute.make_swizzle(shift[swizzle], base, 3), smem)
  end
  local cpasync = cute.nvgpu.cpasync
  return (cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), t,
                                      smem, spec.box))
end

local function bytes_of(text, what)
  if #text % 2 ~= 0 or text:find "[^%x]" then
    fail("%s: bytes are pairs of hexadecimal digits", what)
  end
  return (text:gsub("%x%x", function(b)
    return string.char(tonumber(b, 16))
  end))
end

-- Returns one argument from its description: a number, a tensor's name, or a
-- table with one key: tensor, map, bytes, fields, or an element type.
local function argument(a, memory, what)
  if type(a) == "number" or type(a) == "boolean" then return a end
  if type(a) == "string" then
    return memory[a] or fail("%s: no tensor is called '%s'", what, a)
  end
  if type(a) ~= "table" then
    fail("%s: %s is no argument", what, core.show(a))
  end
  if a.tensor then return tensor(a.tensor, what) end
  if a.map then return map(a.map, memory, what) end
  if a.bytes then return bytes_of(a.bytes, what) end
  if a.fields then
    local fields = {}
    for offset, value in pairs(a.fields) do
      local at = math.tointeger(tonumber(offset))
      if not at then fail("%s: no byte offset '%s'", what, offset) end
      fields[at] = argument(value, memory, ("%s, byte %d"):format(what, at))
    end
    return fields
  end
  local name, value = next(a)
  if name and core.find_dtype(name) and next(a, name) == nil then
    return {value, name}
  end
  fail("%s: a number, a tensor's name, or {tensor}, {map}, {bytes}, {fields}, "
    .. "{f32: 1.5} expected, not %s", what, core.show(a))
end

-- Returns the number of a {number, type} pair, since plain parameters know
-- their type.
local function plain(a)
  return type(a) == "table" and a[2] and a[1] ~= nil
    and core.find_dtype(a[2]) and a[1] or a
end

---------------------------------------------------------------------------
-- Launches
---------------------------------------------------------------------------

local LAUNCH = {entry = true, grid = true, block = true, cluster = true,
                smem = true, pdl = true, cooperative = true, args = true,
                seed = true}
local FILE = {memory = true, launches = true, expect = true, include = true,
              define = true, arch = true, symbols = true, device = true}
for k in pairs(LAUNCH) do FILE[k] = true end

--- Reads a file of PTX, or compiles one of CUDA C.
---@param path string
---@param spec table a LAUNCH, for include, define and arch
---@return cute.PtxModule
function launch.module(path, spec)
  if path:find "%.cu$" then
    return ptx.cuda(path, {include = spec.include, define = spec.define,
                           arch = spec.arch})
  end
  return ptx.ptx(path)
end

local function one(module, spec, memory, nth, opt)
  local what = "launch " .. nth
  keys(spec, what, nth == 1 and FILE or LAUNCH)
  if not spec.entry and #module:entries() > 1 then
    fail("%s names no entry: the file has %s", what,
         table.concat(module:entries(), ", "))
  end
  local name = spec.entry or module:entries()[1]
  local k = module:kernel(name, {smem = spec.smem, lines = opt.lines})
  local args = {}
  for i, a in ipairs(spec.args or {}) do
    args[i] = plain(argument(a, memory, ("%s, argument %d"):format(what, i)))
  end
  k(table.unpack(args)):launch {
    grid = spec.grid or 1, block = spec.block or k.block,
    cluster = spec.cluster, pdl = spec.pdl, cooperative = spec.cooperative,
    seed = spec.seed, device = opt.device}
end

local EXPECT = {npy = true, values = true, tolerance = true}

-- Compares the elements of a tensor; returns how many differ, and the first.
local function compare(t, want, tolerance)
  local n, first = 0, nil
  for i = 0, cute.size(t) - 1 do
    local got, w = t[i], want(i)
    local near = got == w or got ~= got and w ~= w
    if not near and tolerance then
      near = math.abs(got - w) <= tolerance * math.max(math.abs(w), 1)
    end
    if not near then
      n = n + 1
      first = first or ("element %d is %s, not %s"):format(i, tostring(got),
                                                           tostring(w))
    end
  end
  return n, first
end

local function expect(spec, memory)
  local wrong
  local names = {}
  for name in pairs(spec) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local e, t = spec[name], memory[name]
    if not t then fail("expect: no tensor '%s'", name) end
    keys(e, "expect." .. name, EXPECT)
    local other = e.npy and npy.tensor(npy.read(e.npy))
    local n, first = compare(t, function(i)
      if other then return other[i] end
      return e.values[i + 1]
    end, e.tolerance)
    print(("%s: %s"):format(name, n == 0 and "as expected"
      or ("%d of %d elements differ; %s"):format(n, cute.size(t), first)))
    wrong = wrong or n > 0
  end
  if wrong then core.fail("kernel-fault", "results are not as expected") end
end

local OPTIONS = {script = "FILE.ptx", name = "ptx",
  about = "Launches the entries of a PTX or CUDA C file as a LAUNCH file says.",
  options = {
    {"--launch", "file", required = true, help = "the LAUNCH file"},
    {"--device", "string", default = "sim", place = "sim|sim:sm_90a",
     help = "where to run"},
    {"--ptx-lines", "flag", help = "reports name lines of the PTX, not of "
      .. "its source"}}}

--- Launches entries of a PTX or CUDA C file as a LAUNCH file describes.
---@param path string FILE.ptx or FILE.cu
---@param words string[] --launch FILE and further options
function launch.main(path, words)
  local opt = cli.parse(words, OPTIONS)
  local spec = launch.read(opt.launch)
  keys(spec, opt.launch, FILE)
  local lines = opt.ptx_lines and "ptx" or nil
  local module = launch.module(path, spec)
  local memory = {}
  for name, t in pairs(spec.memory or {}) do
    memory[name] = tensor(t, "memory." .. name)
  end
  for name, values in pairs(spec.symbols or {}) do
    local v = module:variable(name)
    local bytes = bytes_of(values, "symbols." .. name)
    for i = 1, #bytes do v[i - 1] = bytes:byte(i) end
  end
  local run = {device = opt.device, lines = lines}
  for i, l in ipairs(spec.launches or {spec}) do
    one(module, l, memory, spec.launches and i + 1 or 1, run)
  end
  if spec.expect then expect(spec.expect, memory) end
end

return launch
-- SPDX-License-Identifier: MIT
