--- Reads and runs LAUNCH files, which say how to launch the entries of a PTX or
-- CUDA C file. A LAUNCH file is JSON or a Lua table; docs/ptx.md describes it.
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local cute = require "cute"
local dsl = require "cutelua.ptx.dsl"
local fidelity = require "cutelua.program.fidelity"
local json = require "cutelua.text.json"
local kinds = require "cutelua.ptx.kinds"
local map = require "cutelua.ptx.map"
local npy = require "cutelua.text.npy"
local ptx = require "cutelua.ptx"
local script = require "cutelua.program.script"
local sign = require "cute.lang.signature"
local triton = require "cutelua.ptx.triton"

local launch = {}

local LARGEST = 16 << 20  -- largest size of a LAUNCH file, in bytes

local function fail(...) core.fail("bad-launch", string.format(...)) end

--- Keys of the objects in a LAUNCH file, with the types of their values. A spec
-- compares these tables with docs/launch.schema.json.
launch.FORMS = {
  launch = {entry = "string", grid = "integer list", block = "integer list",
            cluster = "integer list", smem = "integer", pdl = "boolean",
            cooperative = "boolean", args = "list", seed = "integer",
            undefined_ok = "list"},
  file = {memory = "object", launches = "list", expect = "object",
          include = "list", define = "object", arch = "string",
          symbols = "object", capture = "integer", files = "object"},
  tensor = {dtype = "string", shape = "integer list", strides = "integer list",
            fill = "string number list", values = "list", npy = "string",
            seed = "integer", pointers = "object"},
  map = {tensor = "string", box = "list", swizzle = "integer",
         bytes = "string", padding = "string", offset = "integer"},
  pointer = {tensor = "string", offset = "integer"},
  expect = {npy = "string", values = "list", tolerance = "number",
            pointers = "object"},
}
local FORMS = launch.FORMS
for k, types in pairs(FORMS.launch) do FORMS.file[k] = types end

local function type_of(v)
  if type(v) == "table" then
    return next(v) == nil and "list object" or #v > 0 and "list" or "object"
  end
  return math.type(v) == "integer" and "integer number"
    or math.type(v) and "number" or type(v)
end

local function is_a(v, types)
  for t in type_of(v):gmatch "%a+" do
    if types:find("%f[%a]" .. t .. "%f[%A]") then return true end
  end
  return false
end

-- Returns a list of types in words: "an integer or a list" for "integer list".
local function words_of(types)
  local words = {}
  for t in types:gmatch "%a+" do
    words[#words + 1] = (t:find "^[io]" and "an " or "a ") .. t
  end
  return table.concat(words, " or ")
end

-- Checks the keys of an object and the types of their values.
local function check(t, what, form)
  if type(t) ~= "table" then
    fail("%s: an object is expected, not %s", what, core.show(t))
  end
  for k, v in pairs(t) do
    local types = form[k]
    if not types then sign.unknown("key", tostring(k), form, what) end
    if not is_a(v, types) then
      fail("%s: %s must be %s, not %s", what, k, words_of(types), core.show(v))
    end
  end
end

-- Checks that all elements of a list have a type.
local function check_list(t, what, types)
  for i = 1, type(t) == "table" and #t or 0 do
    if not is_a(t[i], types) then
      fail("%s: element %d must be %s, not %s", what, i, words_of(types),
           core.show(t[i]))
    end
  end
end

---------------------------------------------------------------------------
-- Reading
---------------------------------------------------------------------------

-- Globals that a LAUNCH file in Lua can use.
local LIBRARY = {assert = assert, error = error, ipairs = ipairs, math = math,
  pairs = pairs, select = select, string = string, table = table,
  tonumber = tonumber, tostring = tostring, type = type}

-- Returns the position of the first `null` outside of strings in a JSON text;
-- nil if the text has no `null`.
local function null_in(text)
  local function blank(s) return (" "):rep(#s) end
  return (text:gsub("\\.", blank):gsub('"[^"]*"', blank)):find("null", 1, true)
end

--- Reads a LAUNCH file. Errors have the kind [io] or [bad-launch].
---@param path string
---@return table
function launch.read(path)
  local text, why = cli.read_plain(path, LARGEST)
  if not text then core.fail("io", (why:gsub(" %[io%]$", ""))) end
  if path:find "%.lua$" then
    local env = setmetatable({}, {__index = LIBRARY})
    local f, message = script.compile(text, "@" .. path, env)
    if not f then fail("%s", message) end
    local ok, t = pcall(f)
    if not ok then fail("%s: %s", path, tostring(t)) end
    if type(t) ~= "table" then fail("%s does not return a table", path) end
    return t
  end
  text = text:gsub("^\xEF\xBB\xBF", "")
  local t, message = json.decode(text)
  if message then
    fail("%s is not valid JSON: %s", path, (message:gsub("^no JSON: ", "")))
  end
  local null = null_in(text)
  if null then fail("%s: byte %d: null is not allowed", path, null) end
  return t
end

---------------------------------------------------------------------------
-- Tensors
---------------------------------------------------------------------------

local function layout_of(spec, shape, what)
  local strides = spec.strides
  if strides == nil then return cute.make_layout(shape, cute.LayoutRight) end
  if type(strides) == "number" then strides = {strides} end
  if #strides ~= #shape then
    fail("%s: %d strides for %d extents; one for each is needed", what,
         #strides, #shape)
  end
  return cute.make_layout(shape, strides)
end

local function fill(b, n, spec, what)
  local how = spec.fill
  if spec.values then
    if #spec.values ~= n then
      fail("%s: %d values for %d elements; one for each is needed", what,
           #spec.values, n)
    end
    check_list(spec.values, what .. ".values", "number boolean")
    for i = 1, n do b[i - 1] = spec.values[i] end
  elseif how == nil or how == "zero" then
    return
  elseif how == "normal" then
    b:fill_normal(spec.seed or 0)
  elseif type(how) == "number" then
    b:fill(how)
  elseif type(how) == "table" and #how == 2 then
    check_list(how, what .. ".fill", "integer")
    b:fill_int(spec.seed or 0, how[1], how[2])
  else
    fail("%s: fill must be \"normal\", \"zero\", a number or [lo, hi], not %s",
         what, core.show(how))
  end
end

local MOST = 1 << 40  -- largest number of elements of a tensor

-- Reads a .npy file as a tensor.
local function of_file(path, what, dtype)
  local array, why = npy.read(path, {dtype = dtype})
  if not array then
    -- If the file cannot be opened, the reason names the file and ends in an
    -- error kind, which is removed here.
    why = why:gsub(" %[[%l-]+%]$", "")
    if not why:find(core.visible(path), 1, true) then
      why = core.visible(path) .. ": " .. why
    end
    fail("%s: %s", what, why)
  end
  return npy.tensor(array)
end

-- Makes a tensor on the host from its description: {dtype, shape, strides,
-- fill, values, seed} or {npy}.
local function tensor(spec, what)
  check(spec, what, FORMS.tensor)
  if spec.npy then
    for k in pairs(spec) do
      if k ~= "npy" and k ~= "dtype" and k ~= "pointers" then
        fail("%s has both npy and %s: remove one of them", what, k)
      end
    end
    return of_file(spec.npy, what, spec.dtype)
  end
  local dtype = core.find_dtype(spec.dtype or "f32")
  if not dtype then fail("%s: no type '%s'", what, spec.dtype) end
  local shape = type(spec.shape) == "number" and {spec.shape} or spec.shape
  if not shape then fail("%s has no shape", what) end
  check_list(shape, what .. ".shape", "integer")
  check_list(spec.strides, what .. ".strides", "integer")
  local n = 1
  for i, extent in ipairs(shape) do
    if extent < 1 then
      fail("%s: extent %d of its shape is %d; at least 1 is needed", what, i,
           extent)
    elseif extent > MOST // n then
      fail("%s: its shape has more than %d elements", what, MOST)
    end
    n = n * extent
  end
  local layout = layout_of(spec, shape, what)
  n = math.max(core.cosize(layout), 1)
  if n > MOST then
    fail("%s: its layout spans %d elements; the limit is 2^40", what, n)
  end
  local buffer = core.buffer(dtype, n):fill(0)
  fill(buffer, n, spec, what)
  return cute.make_tensor(buffer, layout)
end

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

local function bytes_of(text, what)
  if type(text) ~= "string" or #text % 2 ~= 0 or text:find "[^%x]" then
    fail("%s: bytes must be a string of pairs of hexadecimal digits, such as "
      .. "\"00ff\"", what)
  end
  return (text:gsub("%x%x", function(b)
    return string.char(tonumber(b, 16))
  end))
end

local function named(memory, name, what)
  return memory[name] or fail("%s: no tensor is called '%s'", what,
                              tostring(name))
end

-- Makes the argument for a tensor descriptor of Triton. The box and the swizzle
-- of the tensor map come from the compiled kernel.
local function descriptor(spec, t, what)
  for _, key in ipairs {"box", "swizzle", "bytes"} do
    if spec[key] then
      fail("%s: Triton's metadata has the box and the swizzle of the tensor "
        .. "map: remove '%s'", what, key)
    end
  end
  return {map = t, padding = spec.padding}
end

-- Returns the memory of a tensor from byte `offset` on, as a tensor of bytes.
local function from_byte(t, offset, what)
  if not offset or offset == 0 then return t end
  local bytes = core.cosize(t.layout) * t.element_type.bits // 8
  if offset < 0 or offset >= bytes then
    fail("%s: offset %d, but the tensor has %d bytes", what, offset, bytes)
  end
  return cute.make_tensor(cute.recast_ptr(t.iterator, cute.u8) + offset,
                          cute.make_layout(bytes - offset))
end

-- Returns the tensor for a pointer argument: the memory of the tensor that spec
-- names, from byte spec.offset on.
local function pointer(spec, memory, what)
  check(spec, what, FORMS.pointer)
  return from_byte(named(memory, spec.tensor, what), spec.offset, what)
end

-- Returns the argument for a tensor map: a TMA atom made of the map's bytes, or
-- a TMA atom that moves boxes of a tensor.
local function tensor_map(spec, memory, what, described)
  check(spec, what, FORMS.map)
  local t = from_byte(named(memory, spec.tensor, what), spec.offset, what)
  if described then return descriptor(spec, t, what) end
  if spec.padding then
    fail("%s: only a tensor descriptor of Triton has 'padding'", what)
  end
  if spec.bytes then
    if spec.box or spec.swizzle then
      fail("%s: the map is given as bytes, which already contain its box and "
        .. "swizzle: remove 'box' and 'swizzle'", what)
    end
    return map.atom(bytes_of(spec.bytes, what), t, nil, what)
  end
  if not spec.box then
    fail("%s has no 'box'; a map needs 'box' or 'bytes'", what)
  end
  check_list(spec.box, what .. ".box", "integer")
  if #spec.box ~= cute.rank(t) then
    fail("%s: a box of %d extents, but tensor '%s' has %d", what, #spec.box,
         spec.tensor, cute.rank(t))
  end
  local bits = t.element_type.bits
  local smem = cute.make_layout(spec.box, cute.LayoutRight)
  local swizzle = spec.swizzle or 0
  if swizzle ~= 0 then
    local shift = {[32] = 1, [64] = 2, [128] = 3}
    if not shift[swizzle] then
      fail("%s: swizzle = %s; 0, 32, 64 or 128 is needed", what,
           core.show(swizzle))
    end
    local base = math.tointeger(math.log(128 // bits, 2))
    smem = cute.composition(cute.make_swizzle(shift[swizzle], base, 3), smem)
  end
  local cpasync = cute.nvgpu.cpasync
  return (cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), t,
                                      smem, spec.box))
end

local argument

local function fields_of(list, memory, what)
  if type(list) ~= "table" then
    fail("%s: fields must be an object of byte offsets and values, not %s",
         what, core.show(list))
  end
  local fields = {}
  for offset, value in pairs(list) do
    local at = math.tointeger(tonumber(offset))
    if not at then
      fail("%s: the key of a field must be its byte offset, not '%s'", what,
           offset)
    end
    fields[at] = argument(value, memory, ("%s, byte %d"):format(what, at))
  end
  return fields
end

local SCALARS = {}
for name in ("u8 u16 u32 u64 i8 i16 i32 i64 f32 f64"):gmatch "%S+" do
  SCALARS[name] = true
end
launch.SCALARS = SCALARS

-- Stores addresses in a tensor. `list` maps the byte offset of a word to the
-- tensor whose address is stored there.
local function set_pointers(t, list, memory, what)
  local words = core.cosize(t.layout) * t.element_type.bits // 64
  local view = cute.make_tensor(cute.recast_ptr(t.iterator, cute.u8),
                                cute.make_layout(math.max(8 * words, 1)))
  for offset, value in pairs(list or {}) do
    local at = math.tointeger(tonumber(offset))
    if not at or at < 0 or at % 8 ~= 0 or at >= 8 * words then
      fail("%s: a key of `pointers` must be a byte offset in the tensor, and a "
        .. "multiple of 8, not '%s'", what, offset)
    end
    local where = ("%s.pointers, byte %d"):format(what, at)
    local to = argument(value, memory, where)
    if core.typename(to) ~= "tensor" then
      fail("%s must be a tensor's name or {\"pointer\": ...}, not %s", where,
           core.show(value))
    end
    local address = to.iterator.address
    for i = 0, 7 do view[at + i] = address >> 8 * i & 255 end
  end
end

-- The functions that create an argument from its description, by the
-- description's key.
local KINDS = {
  tensor = function(v, _, what) return tensor(v, what) end,
  map = tensor_map,
  pointer = pointer,
  bytes = function(v, _, what) return bytes_of(v, what) end,
  fields = fields_of,
}

-- Returns an argument from its description: a number, a tensor's name, or a
-- table with one key. The key is tensor, pointer, map, bytes, fields, or an
-- element type. `described` is true for kernels of Triton, whose maps are
-- tensor descriptors.
function argument(a, memory, what, described)
  if type(a) == "number" or type(a) == "boolean" then return a end
  if type(a) == "string" then return named(memory, a, what) end
  local name, value
  if type(a) == "table" then name, value = next(a) end
  if name and next(a, name) == nil then
    if KINDS[name] then
      return KINDS[name](value, memory, what, described)
    end
    if SCALARS[name] and is_a(value, "number boolean") then
      return {value, name}
    end
  end
  fail("%s: a number, a tensor's name, or {tensor}, {pointer}, {map}, "
    .. "{bytes}, {fields}, {f32: 1.5} expected, not %s", what, core.show(a))
end

---------------------------------------------------------------------------
-- Launches
---------------------------------------------------------------------------

--- Reads the kernels of a file or folder: PTX, metadata of Triton, or a folder
-- of the CuTe DSL. Compiles CUDA C first.
---@param path string
---@param spec table a LAUNCH, whose include, define and arch are used for CUDA
-- C
---@return cute.PtxModule|cute.TritonModule|cute.DslModule
function launch.module(path, spec)
  local kind = kinds.of(path)
  if kind == "triton" then return triton.module(path) end
  if kind == "dsl" or core.file_kind(path) == "folder" then
    return dsl.module(path)
  end
  if kind == "cuda" then
    return ptx.cuda(path, {include = spec.include, define = spec.define,
                           arch = spec.arch})
  end
  return ptx.ptx(path)
end

local function one(module, spec, memory, what, opt)
  local all = not spec.entry and module.host and module:several()
  if not spec.entry and not all and #module:entries() ~= 1 then
    fail("%s names no entry: the file has %s", what,
         table.concat(module:entries(), ", "))
  end
  local name = spec.entry or module:entries()[1]
  local k = all and module:calls {smem = spec.smem, lines = opt.lines}
    or module:kernel(name, {smem = spec.smem, lines = opt.lines,
                            undefined_ok = spec.undefined_ok})
  local block = spec.block or not all and k.block or nil
  if not (all or block) then
    fail("%s has no block, and entry %s has no .reqntid", what, name)
  end
  local args = {}
  for i, a in ipairs(spec.args or {}) do
    args[i] = argument(a, memory, ("%s, argument %d"):format(what, i),
                       module.own ~= nil)
  end
  k(table.unpack(args)):launch {
    grid = spec.grid or not module.host and 1 or nil,
    block = block,
    cluster = spec.cluster, pdl = spec.pdl, cooperative = spec.cooperative,
    seed = spec.seed, device = opt.device}
end

-- Returns a view of a tensor in which element i is the element at position i in
-- memory.
local function in_memory(t)
  return cute.make_tensor(t.iterator, cute.make_layout(cute.cosize(t.layout)))
end

-- Returns the extents and strides of a tensor of a LAUNCH file as two lists.
local function modes(t)
  local shape, stride = t.shape, t.stride
  if type(shape) == "number" then return {shape}, {stride} end
  return shape, stride
end

-- Returns a view of a tensor whose last extent varies fastest, as in NumPy.
local function row_major(t)
  local shape, stride, rs, rd = {}, {}, modes(t)
  for i = 1, #rs do
    shape[i], stride[i] = rs[#rs + 1 - i], rd[#rs + 1 - i]
  end
  return cute.make_tensor(t.iterator, cute.make_layout(shape, stride))
end

-- Returns the coordinate of element i of row_major(t) as text, such as "(1,
-- 0)".
local function coordinate(t, i)
  local shape, at = modes(t), {}
  for k = #shape, 1, -1 do
    at[k], i = tostring(i % shape[k]), i // shape[k]
  end
  return #at == 1 and at[1] or "(" .. table.concat(at, ", ") .. ")"
end

-- Compares the elements of tensor t with those of `want`, a list or tensor
-- whose first index is `base`. Returns the number of elements that differ, the
-- index of the first of them, and a text about it.
local function compare(t, want, base, tolerance)
  local n, at, first = 0, nil, nil
  for i = 0, cute.size(t) - 1 do
    local got, w = t[i], want[i + base]
    local near = got == w or got ~= got and w ~= w
    if not near and tolerance then
      near = math.abs(got - w) <= tolerance * math.max(math.abs(w), 1)
    end
    if not near then
      n = n + 1
      at = at or i
      first = first or ("is %s, not %s"):format(tostring(got), tostring(w))
    end
  end
  return n, at, first
end

-- Compares a tensor with the values, or with the file, that a LAUNCH file
-- expects. Returns the number of elements that differ, the number of all
-- elements, and a text about the first difference.
local function differences(t, e, what, memory)
  local other = e.npy and of_file(e.npy, what)
  if other then set_pointers(other, e.pointers, memory, what) end
  local own = other and row_major(t) or in_memory(t)
  local have, size = other and cute.size(other) or #e.values, cute.size(own)
  if have ~= size then
    fail("%s: %d values for %d elements; one for each is needed", what, have,
         size)
  end
  local want = other and row_major(other) or e.values
  local n, at, first = compare(own, want, other and 0 or 1, e.tolerance)
  return n, size, n > 0 and ("element %s %s"):format(
    other and coordinate(t, at) or at, first) or nil
end

local function expect(spec, memory)
  local wrong
  local names = {}
  for name in pairs(spec) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local e, what = spec[name], "expect." .. name
    local t = named(memory, name, "expect")
    check(e, what, FORMS.expect)
    if (e.npy == nil) == (e.values == nil) then
      fail("%s has %s; exactly one of them is needed", what,
           e.npy and "both 'npy' and 'values'" or "neither 'npy' nor 'values'")
    end
    check_list(e.values, what .. ".values", "number boolean")
    if (e.tolerance or 0) < 0 then
      fail("%s: tolerance is %s; at least 0 is needed", what,
           core.show(e.tolerance))
    end
    local n, size, first = differences(t, e, what, memory)
    print(("%s: %s"):format(name, n == 0 and "as expected"
      or ("%d of %d elements differ; %s"):format(n, size, first)))
    wrong = wrong or n > 0
  end
  if wrong then core.fail("kernel-fault", "results are not as expected") end
end

local OPTIONS = {script = "FILE.ptx", name = "ptx",
  about = "Launches the entries of a file of PTX or CUDA C, or the kernel of "
    .. "Triton's metadata, as a LAUNCH file says.",
  options = {
    {"--launch", "file", help = "the LAUNCH file"},
    {"--device", "string", default = "sim", place = "sim|sim:sm_90a|gpu",
     help = "where to run"},
    {"--fidelity", "flag", help = "prints which operations a GPU computes "
      .. "with the same bits"},
    {"--format", "string", default = "text", place = "text|json",
     help = "the form of --fidelity"},
    {"--ptx-lines", "flag", help = "reports name lines of the PTX, not of "
      .. "its source"}}}

-- Checks the form of a LAUNCH file; returns its launches.
local function launches_of(spec, what)
  check(spec, what, FORMS.file)
  check_list(spec.include, what .. ".include", "string")
  for name, value in pairs(spec.define or {}) do
    if not is_a(value, "string number boolean") then
      fail("%s: define.%s must be a string, a number or a boolean, not %s",
           what, tostring(name), core.show(value))
    end
  end
  if not spec.launches then return {spec} end
  if #spec.launches == 0 then
    fail("%s: launches is empty; it must list a launch", what)
  end
  for k in pairs(FORMS.launch) do
    if spec[k] ~= nil then
      fail("%s: beside 'launches', '%s' must be a key of each launch, not of "
        .. "the file", what, k)
    end
  end
  for i, l in ipairs(spec.launches) do
    check(l, ("%s: launch %d"):format(what, i), FORMS.launch)
  end
  return spec.launches
end

-- Stores bytes at the beginning of a variable of a module.
local function set_symbol(module, name, values)
  local v, bytes = module:variable(name), bytes_of(values, "symbols." .. name)
  if #bytes > cute.size(v) then
    fail("symbols.%s: %d bytes, but the variable has %d", name, #bytes,
         cute.size(v))
  end
  for i = 1, #bytes do v[i - 1] = bytes:byte(i) end
end

-- Starts printing how closely the simulator models launches (their fidelity) if
-- the options ask for it.
local function start_fidelity(opt)
  if not fidelity.FORMATS[opt.format] then
    core.fail("bad-argument", ("--format must be text or json, not %s"):format(
      core.show(opt.format)))
  end
  if not opt.fidelity then return end
  local ok, why = fidelity.start(opt.format)
  if not ok then error(why, 0) end
end

--- Launches entries of a PTX or CUDA C file as a LAUNCH file describes; or
-- launches what a folder has recorded.
---@param path string FILE.ptx, FILE.cu, NAME.json of Triton, or a folder from
-- libcutecapture
---@param words string[] --launch FILE and further options
function launch.main(path, words)
  if not core.file_kind(path) then
    core.fail("io", ("cannot open %s: No such file or directory"):format(
      core.visible(path)))
  end
  local opt = cli.parse(words, OPTIONS)
  start_fidelity(opt)
  local spec
  if kinds.of(path) == "capture" then
    if opt.launch then
      fail("%s is a folder with its own LAUNCH.json: leave out --launch", path)
    end
    path, opt.launch = path .. "/module.ptx", path .. "/LAUNCH.json"
    spec = require "cutelua.ptx.capture".read(path, opt.launch)
  elseif not opt.launch then
    fail("%s: --launch FILE is missing", path)
  end
  spec = spec or launch.read(opt.launch)
  local launches = launches_of(spec, opt.launch)
  local module = launch.module(path, spec)
  local memory = {}
  for name, t in pairs(spec.memory or {}) do
    memory[name] = tensor(t, "memory." .. name)
  end
  for name, t in pairs(spec.memory or {}) do
    set_pointers(memory[name], t.pointers, memory, "memory." .. name)
    if t.pointers then
      module.simulated = ("the tensor %s holds addresses, which exist on the "
        .. "simulator only"):format(name)
    end
  end
  for name, values in pairs(spec.symbols or {}) do
    -- A capture also contains variables that this entry does not use.
    if not spec.capture or module:uses(name) then
      set_symbol(module, name, values)
    end
  end
  local run = {device = opt.device, lines = opt.ptx_lines and "ptx" or nil}
  for i, l in ipairs(launches) do
    one(module, l, memory, "launch " .. i, run)
  end
  if spec.expect then expect(spec.expect, memory) end
end

return launch
-- SPDX-License-Identifier: MIT
