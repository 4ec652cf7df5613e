--- Kernels in PTX or CUDA C from any source. They are translated for the
-- simulator, or compiled by a GPU's driver.
--
--     local saxpy = cute.ptx("saxpy.ptx"):kernel "saxpy"
--     saxpy(n, 2.0, x, y):launch {grid = 8, block = 128}
--     print(saxpy(n, 2.0, x, y):check {grid = 8, block = 128})
--
-- A kernel takes one argument for each parameter of its entry: a tensor for a
-- pointer, a number for a scalar, a TMA atom for a tensor map. For a structure
-- it takes a string of bytes, or a table of fields by byte offset.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local files = require "cute.lang.files"
local kernel = require "cute.lang.kernel"
local card = require "cutelua.ptx.card"
local map = require "cutelua.ptx.map"
local report = require "cute.lang.report"
local sign = require "cute.lang.signature"

local ptx = {}

-- The module cute is loaded only when it is first used.
local function cute() return require "cute" end

---@class cute.PtxModule
---@field file string chunk name for reports
---@field module userdata of core.ptx_parse
---@field simulated? string the reason why only the simulator runs its entries
---@field text string the PTX
---@field variables table<string, cute.Tensor> memory of variables by name
local Module = {}
Module.__index = Module

-- Calls f, which reads or translates the PTX of a chunk, and returns f's
-- result. If the chunk is a file, errors [bad-ptx] then name the file.
local function of_file(chunk, f, ...)
  if not chunk:find "^@" then return f(...) end
  local ok, result = pcall(f, ...)
  if ok then return result end
  local told = report.parse(tostring(result))
  if told.kind ~= "bad-ptx" then error(result, 0) end
  core.fail(told.kind, ("%s: %s"):format(core.visible(chunk:sub(2)),
    table.concat({told.sentence, table.unpack(told.rest)}, "\n")))
end

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

-- Returns the fields of a structure as a list in ascending order: {at = offset,
-- value, kind, bits}. `fields` is a table {[offset] = value or {value, dtype}}.
local function sorted(entry, p, fields)
  local list = {}
  for at, value in pairs(fields) do
    if math.type(at) ~= "integer" or at < 0 then
      core.fail("bad-argument", ("entry %s: the key of a field of %s must be "
        .. "its byte offset, not %s"):format(entry.name, p.name, core.show(at)))
    end
    local f = {at = at, value = value, kind = "", bits = 0}
    if type(value) == "table" then
      local dtype = core.find_dtype(value[2])
      f.value, f.kind = value[1], dtype.is_integer and "u" or "f"
      f.bits = dtype.bits
    end
    list[#list + 1] = f
  end
  table.sort(list, function(a, b) return a.at < b.at end)
  return list
end

-- Returns `value` as a signed integer of `bits` bits; nil if it is not an
-- integer or does not fit in `bits` bits.
local function integer_of(value, bits)
  local i = math.tointeger(value)
  if not i or bits == 64 then return i end
  if i < -(1 << bits - 1) or i >= 1 << bits then return nil end
  return i >= 1 << bits - 1 and i - (1 << bits) or i
end

-- Returns a scalar in the form that a program takes. An f64 becomes an integer
-- with the same bits, because a number with a fraction would be passed as f32.
-- `what` begins error messages. `kind` is the kind of a parameter, such as "f"
-- for floats.
local function scalar(value, kind, bits, what)
  if type(value) == "boolean" then value = value and 1 or 0 end
  if type(value) ~= "number" then return value end
  if kind == "f" and bits == 64 then
    return (("<i8"):unpack(("<d"):pack(value)))
  elseif kind == "f" then
    return value + 0.0
  elseif kind == "b" and math.type(value) == "float" then
    core.fail("bad-argument", ("%s may be a float or an integer of %d bits\n  "
      .. "write {%s, \"%s%d\"}"):format(what, bits, core.show(value),
      bits < 32 and "i" or "f", bits))
  end
  local i = integer_of(value, bits)
  if i then return i end
  core.fail("bad-argument", ("%s must be an integer of %d bits, not %s"):format(
    what, bits, core.show(value)))
end

-- Converts `pair`, {value, dtype}. Returns the value in the form that `scalar`
-- returns, its kind, and its number of bits.
local function typed(pair, what)
  local dtype = type(pair[2]) == "string" and core.find_dtype(pair[2])
  if not dtype then
    core.fail("bad-argument", ("%s must be {value, dtype}, such as {1.5, "
      .. "\"f32\"}"):format(what))
  elseif not dtype.is_integer and dtype.bits < 32 or dtype.bits < 8 then
    core.fail("bad-argument", ("%s: a scalar must be an integer, f32 or f64, "
      .. "not %s"):format(what, dtype.name))
  end
  local kind = dtype.is_integer and "u" or "f"
  return scalar(pair[1], kind, dtype.bits, what), kind, dtype.bits
end

-- Returns the argument for parameter p, which is a scalar or a pointer.
local function plain(p, value, what)
  if type(value) == "string" then
    local format = p.kind == "f" and p.bits == 32 and "<f"
      or "<i" .. p.bits // 8
    return (format:unpack(value))
  end
  if type(value) == "table" and getmetatable(value) == nil then
    local v, kind, bits = typed(value, what)
    if bits == p.bits and kind == p.kind then return v end
    if bits == p.bits and p.kind == "b" then
      return kind == "f" and bits == 32 and ("<i4"):unpack(("<f"):pack(v)) or v
    elseif bits == p.bits and kind == "u" and p.kind == "s" then
      return v
    end
    core.fail("bad-argument", ("%s is .%s%d, not %s"):format(what, p.kind,
      p.bits, core.show(value[2])))
  elseif core.typename(value) == "tensor"
      and (p.bits < 64 or p.kind == "f") then
    core.fail("bad-argument", ("%s is a scalar of %d bits; a tensor is passed "
      .. "to a pointer"):format(what, p.bits))
  end
  return scalar(value, p.kind, p.bits, what)
end

-- Returns the fields of a structure with all scalars in the form that a program
-- takes.
local function fields(list, what)
  local out = {}
  for offset, value in pairs(list) do
    out[offset] = value
    if type(value) == "table" and getmetatable(value) == nil then
      local at = ("%s, byte %s"):format(what, core.show(offset))
      out[offset] = {(typed(value, at)), value[2]}
    elseif type(value) == "boolean" then
      out[offset] = value and 1 or 0
    end
  end
  return out
end

-- Checks the arguments of a call, and converts them to the form that a program
-- takes.
local function converted(entry, args)
  if args.n ~= #entry.parameters then
    core.fail("bad-argument", ("entry %s takes %d arguments, not %d"):format(
      entry.name, #entry.parameters, args.n))
  end
  map.resolve(entry, args)
  for i, p in ipairs(entry.parameters) do
    local what = ("entry %s: parameter %s"):format(entry.name, p.name)
    local size = p.bits // 8 * p.count
    if args[i] == nil then
      core.fail("bad-argument", what .. " is nil")
    elseif type(args[i]) == "string" and #args[i] ~= size then
      core.fail("bad-argument", ("%s has %d bytes, got %d"):format(what, size,
        #args[i]))
    elseif not p.array then
      args[i] = plain(p, args[i], what)
    elseif type(args[i]) == "table" and getmetatable(args[i]) == nil then
      args[i] = fields(args[i], what)
    end
  end
end

local function arguments(entry, given)
  local list = {}
  for i, p in ipairs(entry.parameters) do
    local value = given[i]
    if p.array and type(value) == "table" then
      for _, f in ipairs(sorted(entry, p, value)) do
        list[#list + 1] = {p.offset + f.at, f.value, f.kind, f.bits}
      end
    else
      list[#list + 1] = {p.offset, value, p.kind, p.bits}
    end
  end
  return list
end

-- Returns, for each parameter, the form in which a launch passes it: the string
-- of its bytes, its sorted fields, or false for a single value.
local function passed_as(entry, given)
  local list = {}
  for i, p in ipairs(entry.parameters) do
    local v = given[i]
    list[i] = type(v) == "string" and v
    if p.array and type(v) == "table" and getmetatable(v) == nil then
      list[i] = sorted(entry, p, v)
    end
  end
  return list
end

---------------------------------------------------------------------------
-- Modules
---------------------------------------------------------------------------

-- Returns the memory of v, a variable of the module, with its contents. The
-- contents may include addresses of other variables in the list `used`, which
-- also contains v.
local function memory_of(module, v, used)
  local t = module.variables[v.name]
  if t then return t end
  t = cute().zeros({math.max(v.bytes, 1)}, core.find_dtype "u8")
  for i = 1, #v.contents do t[i - 1] = v.contents:byte(i) end
  module.variables[v.name] = t
  for _, a in ipairs(v.addresses) do
    for _, target in ipairs(used) do
      if target.name == a[2] then
        local to = memory_of(module, target, used).iterator.address + a[3]
        for i = 0, 7 do t[a[1] + i] = to >> 8 * i & 255 end
      end
    end
  end
  return t
end

-- The byte of the hidden workspace that says whether a launch is cooperative
-- (core/ptx/calls.h).
local FLAG = 60

local function prepare_workspace(t, cooperative)
  if not t then return end
  for i = 0, cute().size(t) - 1 do t[i] = 0 end
  t[FLAG] = cooperative and 1 or 0
end

local KERNEL = {smem = true, lines = true, undefined_ok = true, optimize = true,
                contract = true}

-- Raises an error unless `list`, the option undefined_ok, consists of positions
-- of the entry's parameters, counted from 1.
local function check_positions(entry, list)
  for _, i in ipairs(type(list) == "table" and list or {0}) do
    if math.type(i) ~= "integer" or i < 1 or i > #entry.parameters then
      core.fail("bad-argument", ("undefined_ok = %s; a list of parameters' "
        .. "positions, from 1 to %d, is needed"):format(core.show(list),
        #entry.parameters))
    end
  end
end

--- Returns an entry of the module as a kernel.
---@param name string the entry's mangled or plain name, or a unique suffix of
-- it
---@param opts? table {smem: integer bytes of dynamic shared memory (0 when
-- absent), lines: string "ptx": reports name lines of the PTX, not of its
-- source, undefined_ok: integer[] positions of parameters whose memory may have
-- elements that nothing writes, such as a workspace, optimize: integer level of
-- the driver's optimisations for a GPU, 0 to 4 (4 when absent), contract:
-- boolean lets the driver contract products and sums (false when absent)}
function Module:kernel(name, opts) return ptx.made(self, name, opts) end

--- Returns an entry of a module as a kernel, like Module:kernel.
---@param module cute.PtxModule
---@param name string
---@param opts? table
---@param own? table for kernels of a compiler that have hidden parameters:
-- {takes = number of arguments, expand = function(...) that returns the
-- arguments for all parameters, with their number n, options = see
-- kernel.resolve, rules = set of rules that the compiler's kernels need}. The
-- rules: init_fenced, each mbarrier.init acts as if a fence.mbarrier_init
-- followed. alloc_fenced, each tcgen05.alloc acts as if a fence.proxy.async
-- followed. store_once, lanes that execute a TMA store together store once.
-- loads_ordered, uses of registers wait for tcgen05.ld. setmaxnreg_alike, warps
-- of a warpgroup may set the same number of registers by different setmaxnreg
-- instructions
function ptx.made(module, name, opts, own)
  opts = opts or {}
  for k in pairs(opts) do
    if not KERNEL[k] then sign.unknown("option", k, KERNEL) end
  end
  local entry = core.ptx_entry(module.module, name)
  local smem = opts.smem or 0
  if math.type(smem) ~= "integer" or smem < 0 then
    core.fail("bad-argument", ("smem = %s: bytes of dynamic shared memory "
      .. "expected"):format(core.show(smem)))
  end
  local level = opts.optimize or 4
  if math.type(level) ~= "integer" or level < 0 or level > 4 then
    core.fail("bad-argument", ("optimize = %s: a level from 0 to 4 expected")
      :format(core.show(level)))
  elseif opts.contract ~= nil and type(opts.contract) ~= "boolean" then
    core.fail("bad-argument", ("contract = %s: true or false expected"):format(
      core.show(opts.contract)))
  end
  local undefined_ok = opts.undefined_ok or {}
  check_positions(entry, undefined_ok)
  local used = core.ptx_variables(module.module, entry.name)
  local n = #entry.parameters
  local passed
  local flags = {lines = opts.lines == "ptx"}
  for rule in pairs(own and own.rules or {}) do flags[rule] = true end
  local made = kernel.kernel((entry.name:gsub("[^%w_]", "_")), {
    block = entry.reqntid}, function(...)
    local given = {...}
    local list = arguments(entry, given)
    passed = passed_as(entry, given)
    for _, i in ipairs(undefined_ok) do
      if core.typename(given[i]) == "tensor" then
        cute().undefined_ok(given[i])
      end
    end
    for i, v in ipairs(used) do
      list[#list + 1] = {v.index, given[n + i], "variable", 0}
    end
    of_file(module.file, core.ptx_translate, module.module, entry.name, list,
            smem, module.file, flags)
  end)
  -- kernel.lua calls this function for each program after its trace.
  rawset(made, "card", function()
    local own_card = card.new(module.text, entry, passed, used, smem, opts)
    own_card.why = own_card.why or module.simulated
    return own_card
  end)
  kernel.resolve(made, own and own.takes or n, function(...)
    local args = own and own.expand(...) or table.pack(...)
    converted(entry, args)
    for i, v in ipairs(used) do
      args[args.n + i] = memory_of(module, v, used)
    end
    return table.unpack(args, 1, args.n + #used)
  end, own and own.options, function(cooperative)
    prepare_workspace(module.variables[card.WORKSPACE], cooperative)
  end)
  return made
end

--- Returns the description of a .global or .const variable of the module, and
-- the descriptions of all variables of an entry that uses it. Returns nil if no
-- entry uses it.
---@param name string
---@return table?
---@return table[]?
function Module:uses(name)
  for _, entry in ipairs(self:entries()) do
    local used = core.ptx_variables(self.module, entry)
    for _, v in ipairs(used) do
      if v.name == name then return v, used end
    end
  end
end

--- Returns a .global or .const variable of the module as a tensor of bytes. All
-- launches of the module share this memory.
---@param name string
---@return cute.Tensor
function Module:variable(name)
  local t = self.variables[name]
  if t then return t end
  local v, used = self:uses(name)
  if v then return memory_of(self, v, used) end
  core.fail("unknown-name", ("the PTX has no global variable '%s', or none of "
    .. "its kernels uses the variable"):format(name))
end

--- Returns the names of the module's entries, in the order of the text.
---@return string[]
function Module:entries() return core.ptx_entries(self.module) end

sign.class("ptx module", Module, [[
  kernel(name: string, opts?: {contract lines optimize smem undefined_ok})
  entries()
  variable(name: string) uses(name: string)]],
           "file module simulated text variables")

local function read(path, name)
  local text, why = files.read(path)
  if not text then
    core.fail("io", ("%s: %s: %s"):format(name, core.visible(path), why))
  end
  return text
end

-- First bytes of machine code: of ELF (a cubin or a program), and of a fat
-- binary.
local MACHINE = {["\x7fELF"] = true, ["\x50\xed\x55\xba"] = true}

local function module(text, file)
  if MACHINE[text:sub(1, 4)] then
    core.fail("bad-ptx", ("%s is machine code, not PTX\n  write PTX by `nvcc "
      .. "-ptx`, extract it by `cuobjdump -ptx`, or copy NAME.ptx from "
      .. "Triton's cache"):format(core.visible(file:sub(2))))
  end
  return setmetatable({module = of_file(file, core.ptx_parse, text),
                       file = file, text = text, variables = {}}, Module)
end

--- Reads PTX. Errors have the kind [bad-ptx] and name the line.
---@param text string the text, or the path of a file (without a line break)
---@return cute.PtxModule
function ptx.ptx(text)
  if text:find "\n" or MACHINE[text:sub(1, 4)] then
    return module(text, "=ptx")
  end
  return module(read(text, "cute.ptx"), "@" .. text)
end

local CUDA = {include = "table", define = "table", arch = "string",
              options = "table"}

--- Compiles CUDA C to PTX with NVRTC, including line information, and reads the
-- PTX. Raises the error [no-nvrtc], or [compile-failed] with the compiler's
-- log.
---@param text string the text, or the path of a file (without a line break)
---@param opts? table {include: string[] folders, define: table name -> value,
-- arch: string ("sm_90a"), options: string[] further options of NVRTC}
---@return cute.PtxModule
function ptx.cuda(text, opts)
  opts = opts or {}
  for k, v in pairs(opts) do
    if not CUDA[k] then
      sign.unknown("option", k, CUDA)
    elseif type(v) ~= CUDA[k] then
      core.fail("bad-argument", ("cute.cuda: %s is a %s, not %s"):format(k,
        CUDA[k], core.show(v)))
    end
  end
  local path
  if not text:find "\n" then
    path, text = text, read(text, "cute.cuda")
  end
  local list = {"-lineinfo", "-default-device"}
  for _, folder in ipairs(opts.include or {}) do
    list[#list + 1] = "-I" .. folder
  end
  local names = {}
  for name, value in pairs(opts.define or {}) do
    if value ~= false then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = opts.define[name]
    list[#list + 1] = ("-D%s%s"):format(name,
      value == true and "" or "=" .. tostring(value))
  end
  table.move(opts.options or {}, 1, #(opts.options or {}), #list + 1, list)
  local arch = opts.arch or devices.ARCH
  -- The key of the cache has only the text, not the headers that the text or an
  -- option includes.
  local headers = text:find("include", 1, true) or #(opts.options or {}) > 0
  local made, why, log = core.jit_compile(text, (arch:gsub("^sm", "compute")),
    list, headers and true or false, nil, nil, path)
  if not made then
    local said, kind = why:match "^(.*) %[([%l-]+)%]$"
    core.fail(kind or "compile-failed", (said or why)
      .. (log and log:find "%S" and "\n" .. log:gsub("%s+$", "") or ""))
  end
  return module(made.ptx or made.cubin, "=ptx")
end

return ptx
-- SPDX-License-Identifier: MIT
