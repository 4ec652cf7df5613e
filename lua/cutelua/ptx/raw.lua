--- Kernels that users write in CUDA C. They are compiled, cached and launched
-- like traced kernels, but run only on a GPU.
--
--     local add = cute.raw_kernel([[
--     extern "C" __global__ void add(const float *x, float *y, int n) {
--       int i = blockIdx.x * blockDim.x + threadIdx.x;
--       if (i < n) y[i] += x[i];
--     }]])
--     add(X, Y, 1000):launch {grid = 8, block = 128}
--     local run = add(X, Y, 1000):compile {grid = 8, block = 128}
--     run:launch()
--
-- For a parameter that is a tensor map (`const __grid_constant__ CUtensorMap
-- map`, or any struct of 128 bytes aligned to 64), pass a TMA atom of
-- cute.nvgpu.cpasync. The map describes the atom's tensor, with the atom's box
-- and swizzle. The CUDA code must be written for this box and swizzle.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local faults = require "cutelua.text.compiler_faults"
local kernel = require "cute.lang.kernel"
local report = require "cute.lang.report"

local raw = {}

---------------------------------------------------------------------------
-- Parameters
---------------------------------------------------------------------------

-- Element types by the name of the C type without the words `int` and `signed`.
local C_TYPES = {
  [""] = "i32", bool = "bool", char = "i8", short = "i16", long = "i64",
  ["long long"] = "i64", float = "f32", double = "f64", unsigned = "u32",
  ["unsigned char"] = "u8", ["unsigned short"] = "u16",
  ["unsigned long"] = "u64", ["unsigned long long"] = "u64", size_t = "u64",
  int8_t = "i8", uint8_t = "u8", int16_t = "i16", uint16_t = "u16",
  int32_t = "i32", uint32_t = "u32", int64_t = "i64", uint64_t = "u64",
}
-- Words that occur in C types: true if the word is part of a name in C_TYPES,
-- false if it can be left out.
local TYPE_WORD = {int = false, signed = false}
for name in pairs(C_TYPES) do
  for word in name:gmatch "%S+" do TYPE_WORD[word] = true end
end

-- All scans of a text take linear time. Patterns with two repetitions could
-- take hours for some texts, and Ctrl-C cannot interrupt them.

-- Returns the position after the string or character literal that begins at
-- position `at`.
local function behind_string(text, at)
  local quote = text:sub(at, at)
  repeat
    at = text:find('["\'\\\n]', at + 1) or #text
    local c = text:sub(at, at)
    if c == "\\" then at = at + 1 end
  until c == quote or c == "\n" or at >= #text
  return at + 1
end

-- Returns a text in which a space replaces each comment.
local function without_comments(text)
  local out, from, at = {}, 1, 1
  while true do
    at = text:find("[%w_/\"']", at)
    if not at then break end
    local two = text:sub(at, at + 1)
    if two == "//" or two == "/*" then
      out[#out + 1], out[#out + 2] = text:sub(from, at - 1), " "
      local line = two == "//"
      local first, last = text:find(line and "\n" or "*/", at + 2, true)
      from = line and first or (last or #text) + 1
      at = from
    elseif two:find "^[\"']" then
      at = behind_string(text, at)
    -- Skip a whole name or number at once, because a number such as 1'000
    -- contains quotes.
    else
      at = text:match("^[%w_']*()", at + 1)
    end
  end
  return table.concat(out) .. text:sub(from)
end

-- Returns the tokens of a text that has no comments, and the position of each.
local function tokens_of(text)
  local list, places, at = {}, {}, 1
  while true do
    at = text:find("%S", at)
    if not at then return list, places end
    local after = text:find("^[\"']", at) and behind_string(text, at)
      or text:match("^[%w_]+()", at) or at + 1
    list[#list + 1], places[#places + 1] = text:sub(at, after - 1), at
    at = after
  end
end

-- Returns the element type of a declaration without pointers, or nil. The last
-- word of the declaration may be the parameter's name. `typedefs` maps names
-- that the text defines to their declarations.
local function number_type(text, typedefs)
  local words, number = {}, false
  for word in text:gmatch "[%w_]+" do
    local own = typedefs[word]
    if own then return number_type(own, {}) end
    local known = TYPE_WORD[word]
    number = number or known ~= nil
    if known then words[#words + 1] = word end
  end
  local name = number and C_TYPES[table.concat(words, " ")]
  return name and core.find_dtype(name) or nil
end

-- Returns the typedefs of the text (name -> declaration). Only declarations
-- that consist of words are included.
local function typedefs_of(tokens)
  local list, from = {}, nil
  for i, token in ipairs(tokens) do
    if token == "typedef" then
      from = i + 1
    elseif from and token == ";" and i > from + 1 then
      list[tokens[i - 1]] = table.concat(tokens, " ", from, i - 2)
      from = nil
    elseif not token:find "^[%w_]" then
      from = nil
    end
  end
  return list
end

-- Parses the declaration of one parameter. Returns {pointer = true for a
-- pointer, written = true if the kernel may write the pointee, dtype = the type
-- of a number, text = the declaration}.
local function parameter(text, typedefs)
  local p = {text = text:gsub("%s+", " "):match "^ ?(.-) ?$"}
  if text:find("*", 1, true) then
    p.pointer, p.written = true, not text:match "^[^*]*%f[%w_]const%f[^%w_]"
    return p
  end
  p.dtype = number_type(text, typedefs)
  return p
end

-- Splits a parameter list at its commas. The list extends to the text's end.
local function split(list)
  local parts, depth, from = {}, 0, 1
  for at, c in list:gmatch "()([(),<>])" do
    if c == "(" or c == "<" then depth = depth + 1
    elseif c == ")" or c == ">" then depth = depth - 1
    elseif depth == 0 then
      parts[#parts + 1], from = list:sub(from, at - 1), at + 1
    end
  end
  local last = list:sub(from)
  if last:find "%S" and not last:match "^%s*void%s*$" then
    parts[#parts + 1] = last
  end
  return parts
end

-- Returns the names and parameter lists of the kernels in a text without
-- comments, in order. A kernel's name and parameter list are the last tokens
-- between __global__ and the body.
local function kernels_of(text, tokens, places)
  local list, depth, open, closed = {}, nil, nil, nil
  for i, token in ipairs(tokens) do
    local outside = depth == 0
    if token == "__global__" then
      depth, closed = 0, nil
    elseif not depth then  -- luacheck: ignore 542
    elseif token == "(" then
      open = outside and i or open
      depth = depth + 1
    elseif token == ")" then
      depth = not outside and depth - 1 or nil
      closed = i
    elseif outside and token == "{" then
      local name = closed == i - 1 and tokens[open - 1]
      if name and name:find "^[%a_]" then
        list[#list + 1] = {name = name,
          args = text:sub(places[open] + 1, places[closed] - 1)}
      end
      depth = nil
    elseif outside and (token == ";" or token == "}") then
      depth = nil
    end
  end
  return list
end

-- Returns the kernel with this name, or the first kernel if `name` is nil. Also
-- returns the text's typedefs.
local function find_kernel(text, name)
  text = without_comments(text)
  local tokens, places = tokens_of(text)
  local list, names = kernels_of(text, tokens, places), {}
  for i, k in ipairs(list) do
    if not name or k.name == name then return k, typedefs_of(tokens) end
    names[i] = k.name
  end
  core.fail("bad-argument", #list == 0
    and "raw_kernel: the text has no __global__ function"
    or ("raw_kernel: the text has no kernel '%s': there %s %s")
      :format(name, #list > 1 and "are" or "is", table.concat(names, ", ")))
end

-- Checks value v for parameter i. Returns it in the form that a launch by the
-- driver takes.
local function value_of(k, i, v)
  local p, kind = k.params[i], core.typename(v)
  local function wrong(what)
    core.fail("bad-argument", ("kernel %s: argument %d is %s, but the "
      .. "parameter `%s` takes "
      .. "%s"):format(k.name, i, core.show(v), p.text, what))
  end
  if p.pointer then
    if kind == "tensor" then
      local memory, offset = core.param_memory(v)
      return {memory, offset}
    elseif kind == "buffer" or kind == "devbuf" then
      return {v, 0}
    end
    wrong "a tensor or a buffer"
  elseif p.dtype then
    if type(v) ~= "number" and type(v) ~= "boolean" then wrong "a number" end
    return {p.dtype, v}
  elseif kind == "tma_atom" then
    local memory, offset = core.param_memory(v)
    return {memory, offset, tma = v}
  elseif type(v) ~= "string"
    and not (type(v) == "table" and core.typename(v[1]) == "dtype") then
    wrong "its bytes as a string, {element type, number} or a TMA atom"
  end
  return v
end

---------------------------------------------------------------------------
-- Launching
---------------------------------------------------------------------------

-- Options of a launch, with their types.
local LAUNCH = {grid = "integer table", block = "integer table",
                smem = "integer", cluster = "integer table", pdl = "boolean",
                cooperative = "boolean",
                device = "string table", arch = "string", faults = "string",
                stream = "userdata table"}

-- __closed: traces do not record the object's fields, because it detects
-- changes itself (cute.lang.dependencies). __host: the object cannot be passed
-- to a kernel.
local Prepared = {__closed = true, __host = "prepared launch"}
Prepared.__index = Prepared

function Prepared.__tostring(p)
  return ("raw kernel %s on %s"):format(p.kernel.name, p.device.name)
end

--- Launches the kernel. Returns true when the launch is queued. With host
-- tensors, it returns when the kernel has finished and the tensors are written.
---@param stream? table
---@return true
function Prepared:launch(stream)
  for buffer, copy in pairs(self.copies) do copy.buffer:upload(buffer) end
  self.run:launch(stream)
  for buffer, copy in pairs(self.copies) do
    if copy.written then copy.buffer:download(buffer) end
  end
  return true
end

--- Launches the kernel n times in a row. The GPU's memory is not restored
-- between launches.
---@param n integer
---@param stream? table
---@return true
function Prepared:launch_n(n, stream) return self.run:launch_n(n, stream) end

local Call = {__closed = true, __host = "call of a kernel"}
Call.__index = Call

-- Returns the device of a launch and checks that it is a GPU.
local function gpu_of(call, opts)
  local k = call.kernel
  local device, why = devices.pick(call.values, opts, "gpu")
  if device and device.kind ~= "gpu" then
    core.fail("bad-launch", ("kernel %s is raw CUDA C, which only a GPU can "
      .. "run: the simulator runs traced kernels"):format(k.name))
  end
  return device, why
end

local function loaded(k, device)
  local compiled, message = k:compile(device.arch)
  if not compiled then return nil, message end
  local f = k.loaded[device.dev]
  if f and f:usable() then return f end
  f, message = device.dev:load(compiled.cubin, k.name, #k.params)
  k.loaded[device.dev] = f
  return f, message
end

-- Reports whether the kernel writes to the memory of this argument.
local function written(param, value)
  return param.written or type(value) == "table" and value.tma
    and value.tma.stores
end

--- Prepares a launch: compiles and loads the kernel, and packs its arguments.
---@param opts table {grid: any, block: any, smem: integer, cluster: any, pdl:
-- boolean, stream: table, device: any}; smem: bytes of dynamic shared memory
---@return table? prepared
---@return string? message
function Call:compile(opts)
  opts = opts or {}
  local k = self.kernel
  kernel.check_options(opts, LAUNCH)
  local device, why = gpu_of(self, opts)
  if not device then return nil, why end
  devices.check_places(k.name, self.values, device.place)
  local f
  f, why = loaded(k, device)
  if not f then return nil, why end
  local args, copies = kernel.gpu_values(k.name, device, self.values,
    function(i) return written(k.params[i], self.values[i]) end)
  if not args then return nil, copies end
  local run
  local grid = kernel.extents("grid", opts.grid)
  run, why = f:prepare {
    args = args, grid = grid,
    block = kernel.extents("block", opts.block or k.block),
    smem = opts.smem or k.smem, cluster = kernel.cluster(opts.cluster, grid),
    pdl = opts.pdl, cooperative = opts.cooperative,
    stream = opts.stream}
  if not run then return nil, why end
  return setmetatable({kernel = k, device = device, run = run,
                       copies = copies}, Prepared)
end

--- Compiles and launches the kernel: see prepared:launch. A missing GPU or
-- compiler counts as a failure, which raises an error or, with faults =
-- "return", returns nil and a message.
---@param opts table as for compile
---@return true?
---@return string? message
function Call:launch(opts)
  local p, why = self:compile(opts)
  if p then return p:launch() end
  if opts and opts.faults == "return" then return nil, why end
  report.raise(why)
end

local Raw = {__closed = true, __host = "kernel"}
Raw.__index = Raw

function Raw.__tostring(k) return "raw kernel " .. k.name end

function Raw.__call(k, ...)
  local n, values = select("#", ...), {}
  local tracing, outer = core.tracing()
  if tracing then
    core.fail("inside-kernel", ("kernel '%s' was used inside kernel '%s'\n  "
      .. "launch it outside of the kernel"):format(k.name, outer))
  end
  if n ~= #k.params then
    local names = {}
    for i, p in ipairs(k.params) do names[i] = p.text end
    core.fail("bad-launch", ("kernel %s takes %d argument%s (%s), got %d")
      :format(k.name, #names, #names == 1 and "" or "s",
      table.concat(names, ", "), n))
  end
  for i = 1, n do values[i] = value_of(k, i, (select(i, ...))) end
  return setmetatable({kernel = k, values = values}, Call)
end

-- Prints warnings about known faults of the compiler that affect the kernel.
local function warn(k, made, opts)
  for _, text in ipairs(faults.find(k.source, made, opts)) do
    io.stderr:write(("cutelua: warning: kernel %s, by NVRTC %s: %s\n"):format(
      k.name, made.nvrtc, text))
  end
end

--- Compiles the text for an architecture. No GPU is needed.
---@param arch string "sm_90a"
---@return cute.Compiled? with cubin, resources, warnings, log
---@return string? message
function Raw:compile(arch)
  local made = self.cubins[arch]
  if made then return made end
  local message
  local opts = {arch = arch, name = self.name, options = self.options}
  made, message = require "cute.jit".compile(self.source, opts)
  self.cubins[arch] = made
  if made and not devices.dry then warn(self, made, opts) end
  return made, message
end

local OPTIONS = {name = "string", options = "table", block = "integer table",
                 smem = "integer"}

--- Makes a kernel of CUDA C text, which must not include files. The parameters
-- are parsed from the text, and determine which arguments a call accepts. For a
-- pointer, it accepts a tensor or buffer. A host tensor is copied to the GPU
-- for a launch, and copied back if the pointee is not const. For a C number
-- type, it accepts a number. For any other type, it accepts a string of bytes,
-- {element type, number} or a TMA atom. For a TMA atom, the tensor map is
-- passed, and the atom's tensor is copied back if the atom stores.
---@param text string
---@param opts? table name = name of the kernel (the first of the text when
-- absent), options = further options of NVRTC, block = threads, smem = bytes of
-- dynamic shared memory
---@return table kernel called with arguments; kernel:compile(arch)
function raw.raw_kernel(text, opts)
  for k, v in pairs(opts or {}) do
    local t = math.type(v) or type(v)
    if not OPTIONS[k] then sign.unknown("option", k, OPTIONS, "raw_kernel") end
    if not OPTIONS[k]:find(t, 1, true) then
      core.fail("bad-argument", ("raw_kernel: %s = %s; %s is needed"):format(
        k, core.show(v), (OPTIONS[k]:gsub(" ", " or "))))
    end
  end
  opts = opts or {}
  local found, typedefs = find_kernel(text, opts.name)
  local params = {}
  for i, part in ipairs(split(found.args)) do
    params[i] = parameter(part, typedefs)
  end
  return setmetatable({source = text, name = found.name, params = params,
                       options = opts.options, block = opts.block,
                       smem = opts.smem, cubins = {}, loaded = {}}, Raw)
end

sign.class("raw call", Call, "launch(opts?: table) compile(opts?: table)",
           "kernel values")
sign.class("raw kernel", Raw, "compile(arch: string)",
           "source name params options block smem cubins loaded")
sign.class("prepared raw kernel", Prepared, [[
  launch(stream?) launch_n(n: integer, stream?)
]], "kernel device run copies")

return raw
-- SPDX-License-Identifier: MIT
