--- Kernels that the CuTe DSL compiled, from the PTX and the IR that it keeps in
-- a folder.
--
--     local gemm = cute.dsl "dump"
--     gemm(a, b, c):launch()
--
-- The IR contains the host function that launches the kernel. A call of the
-- kernel takes the host function's arguments. From these, the module computes
-- grid, block, cluster, shared memory and the parameters of the PTX.
local core = require "cute.core"
local files = require "cute.lang.files"
local host = require "cutelua.ptx.host"
local map = require "cutelua.ptx.map"
local mlir = require "cutelua.ptx.mlir"
local ptx = require "cutelua.ptx"
local sign = require "cute.lang.signature"

local dsl = {}

local function fail(path, ...)
  core.fail("bad-argument", core.visible(path) .. ": " .. string.format(...))
end

---------------------------------------------------------------------------
-- Files
---------------------------------------------------------------------------

local KEEP = "compile with CUTE_DSL_KEEP=ptx,ir and CUTE_DSL_DUMP_DIR set to a "
  .. "folder that exists"

local ARCHS = {"sm_90a", "sm_90", "sm_80", "sm_86", "sm_87", "sm_89", "sm_100a",
  "sm_100f", "sm_103a", "sm_120a"}

-- Returns the path of the PTX beside cute_dsl_NAME_clean.mlir. It is
-- NAME.ARCH.ptx, or has the name of the IR with the ending .ptx.
local function ptx_beside(path)
  local folder, name = path:match "^(.*/)([^/]*)$"
  folder, name = folder or "", name or path
  local own = name:gsub("%.mlir$", "")
  local base = own:match "^cute_dsl_(.*)_clean$" or own
  for _, arch in ipairs(ARCHS) do
    local file = ("%s%s.%s.ptx"):format(folder, base, arch)
    if core.file_kind(file) then return file end
  end
  local file = folder .. own .. ".ptx"
  if core.file_kind(file) then return file end
  fail(path, "there is no PTX beside this file, such as %s.sm_90a.ptx\n  %s",
       core.visible(base), KEEP)
end

-- Returns the path of the only IR file in a folder.
local function only(folder)
  local found = {}
  for _, name in ipairs(core.folder_names(folder) or {}) do
    if name:find "^cute_dsl_.*_clean%.mlir$" then found[#found + 1] = name end
  end
  table.sort(found)
  if #found == 0 then
    fail(folder, "this folder has no IR of the CuTe DSL, "
      .. "cute_dsl_NAME_clean.mlir\n  %s", KEEP)
  elseif #found > 1 then
    fail(folder, "this folder has the IR of %d functions: name a file, such as "
      .. "%s", #found, core.visible(found[1]))
  end
  return folder:gsub("/*$", "/") .. found[1]
end

-- Reads and parses a file with IR. Returns the IR and its host function.
local function ir_of(path)
  local text, why = files.read(path)
  if not text then
    core.fail("io", ("cute.dsl: %s: %s\n  %s"):format(core.visible(path), why,
      KEEP))
  end
  local m = mlir.guard(function() return mlir.read(text) end, function()
    return path
  end)
  local hosts = {}
  for _, f in ipairs(m.hosts) do
    mlir.each(f.body, function(i)
      if i.op:find "^cuda%.launch_ex" and hosts[#hosts] ~= f then
        hosts[#hosts + 1] = f
      end
    end)
  end
  if #hosts == 0 then
    fail(path, next(m.kernels) and "no host function launches a kernel as "
      .. "version 4.8 of the CuTe DSL does" or "this is not IR of "
      .. "version 4.8 of the CuTe DSL: it has no cuda.kernel\n  %s", KEEP)
  elseif #hosts > 1 then
    fail(path, "%d functions of the host launch kernels; one is expected",
         #hosts)
  end
  return m, hosts[1]
end

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

-- Returns a copy of `tuple` whose leaves are replaced by `numbers`. `tuple` is
-- the shape or the strides in a parameter's type, and `numbers` are those of an
-- argument. Raises an error if the number of leaves differs, or if a number
-- does not fit its leaf. kind: "extent" or "stride".
local function fit(tuple, numbers, what, kind)
  local leaves, out = mlir.leaves(tuple), {}
  if #leaves ~= #numbers then
    core.fail("bad-argument", ("%s has %d %ss; the kernel was compiled for %d")
      :format(what, #numbers, kind, #leaves))
  end
  for i, leaf in ipairs(leaves) do
    local n = numbers[i]
    if leaf.n and leaf.n ~= n and kind == "extent" then
      core.fail("bad-argument", ("%s: %s %d is %d; the kernel was compiled for "
        .. "%d"):format(what, kind, i, n, leaf.n))
    elseif leaf.dynamic and n % leaf.div ~= 0 then
      core.fail("bad-argument", ("%s: %s %d is %d; the kernel was compiled for "
        .. "multiples of %d"):format(what, kind, i, n, leaf.div))
    end
    out[i] = {n = n}
  end
  return mlir.with_leaves(tuple, out)
end

-- Raises an error if a static stride of the IR differs from the tensor's
-- stride. Modes with a single element may have any stride.
local function check_strides(layout, extents, strides, what)
  for i, leaf in ipairs(mlir.leaves(layout.stride)) do
    local n = strides[i]
    if leaf.n and leaf.n ~= n and extents[i] > 1 then
      core.fail("bad-argument", ("%s: stride %d is %d; the kernel was compiled "
        .. "for %d"):format(what, i, n, leaf.n))
    end
  end
end

-- Reports whether a tensor with elements of type `own` may be passed where the
-- IR has elements of type `want`. Integer types of the IR have no sign.
local function same_elements(want, own)
  return want == own or want.name:find "^i"
    and own.name == want.name:gsub("^i", "u")
end

-- Returns tensor x as a value of a parameter of the host function.
local function tensor_value(t, x, what)
  if core.typename(x) ~= "tensor" then
    core.fail("bad-argument", ("%s must be a tensor, not %s"):format(what,
      core.show(x)))
  end
  local want = mlir.dtype(t.element)
  if want and not same_elements(want, x.element_type) then
    core.fail("bad-argument", ("%s has elements of %s; the kernel was compiled "
      .. "for %s"):format(what, x.element_type.name, want.name))
  elseif x.iterator.address % (t.align or 1) ~= 0 then
    core.fail("bad-argument", ("%s: its address is not aligned to %d bytes, "
      .. "for which the kernel was compiled"):format(what, t.align))
  end
  if t.name == "cute.ptr" or not t.layout then return {memory = x} end
  local extents = core.flatten_to_tuple(x.shape)
  local strides = core.flatten_to_tuple(x.stride)
  local layout = {shape = fit(t.layout.shape, extents, what, "extent"),
                  stride = fit(t.layout.stride, strides, what, "stride")}
  check_strides(t.layout, extents, strides, what)
  return {memory = x, layout = layout}
end

-- Returns scalar x as a value of a parameter of the host function.
local function scalar_value(t, x, what)
  local kind, bits = t.text:match "^([if])(%d+)$"
  if type(x) == "boolean" then x = x and 1 or 0 end
  if type(x) == "table" and #x == 2 then x = x[1] end
  if not kind then return {unknown = "an argument of type " .. t.text} end
  if type(x) ~= "number" or kind == "i" and not math.tointeger(x) then
    core.fail("bad-argument", ("%s must be %s of %s bits, not %s"):format(what,
      kind == "i" and "an integer" or "a number", bits, core.show(x)))
  end
  return {n = kind == "i" and math.tointeger(x) or x}
end

local function is_memory(t)
  return t.name == "cute.memref" or t.name == "cute.ptr"
end

-- Returns the values of the host function's parameters. The user passes no
-- argument for the parameter that is a stream.
local function host_values(k, args)
  local out, at = {}, 0
  for i, p in ipairs(k.host.parameters) do
    if p.type.name:find "cuda%.stream" then
      out[i] = {unknown = "stream"}
    else
      at = at + 1
      local what = ("%s: argument %d"):format(k.name, at)
      out[i] = (is_memory(p.type) and tensor_value or scalar_value)(p.type,
        args[at], what)
    end
  end
  return out
end

---------------------------------------------------------------------------
-- Parameters of the PTX
---------------------------------------------------------------------------

local function need(v, what)
  if v.unknown then
    core.fail("bad-argument", ("%s depends on %s, which this reader of the IR "
      .. "does not compute"):format(what, v.unknown))
  end
  return v
end

-- Appends a field {value, type, bytes} to a list for each dynamic leaf of
-- `tuple`, which is part of a parameter's type. `value` is the corresponding
-- tuple of argument v.
local function add_leaves(list, tuple, value, v, what)
  local values
  for i, leaf in ipairs(tuple and mlir.leaves(tuple) or {}) do
    if leaf.dynamic then
      values = values or need(v, what) and mlir.leaves(value or {})
      list[#list + 1] = {values[i] and values[i].n, "i" .. leaf.dynamic,
                         leaf.dynamic // 8}
    end
  end
end

-- Returns the list of fields {value, type, bytes} of a kernel parameter. The
-- list is empty if the PTX has no such parameter. A tensor map has no fields:
-- it is returned as the second result.
local function fields_of(t, v, what)
  local list = {}
  if t.name:find "tma" and t.name:find "atom" then
    return {}, need(v, what).map or need({unknown = t.name}, what)
  elseif is_memory(t) then
    list[1] = {need(v, what).memory, nil, 8}
  end
  if t.layout and t.name ~= "cute.ptr" then
    local l = v.layout or v
    add_leaves(list, t.layout.shape, l.shape, v, what)
    add_leaves(list, t.layout.stride, l.stride, v, what)
  elseif t.tuple then
    add_leaves(list, t.tuple, v, v, what)
  end
  local kind, bits = t.text:match "^([if])(%d+)$"
  if kind then
    list[1] = {need(v, what).n, kind .. bits, (bits + 7) // 8}
  elseif t.name == "cute.tiled_mma" or t.name:find "%.mma$"
    or t.name == "cute.fast_divmod_divisor" then
    for i, f in ipairs(v.fields or {}) do
      list[i] = {f.n, "i" .. f.bits, (f.bits + 7) // 8, align = f.align}
    end
    if t.name == "cute.fast_divmod_divisor" then need(v, what) end
  end
  return list
end

-- Sets the byte offset of each field; returns the number of bytes of the
-- structure.
local function place(list)
  local at, align = 0, 1
  for _, f in ipairs(list) do
    local own = f.align or f[3]
    at = (at + own - 1) // own * own
    f.at, at, align = at, at + f[3], math.max(align, own)
  end
  return (at + align - 1) // align * align
end

-- Returns the PTX argument for kernel parameter p. It consists of the fields in
-- `list`, or is the tensor map `made`.
local function argument(p, list, made)
  if made then return {tensor = made.memory, map = map.encode(made)} end
  if not p.array then
    local f = list[1]
    return f[2] and p.kind ~= "f" and f[2]:find "^f" and {f[1], f[2]} or f[1]
  end
  local fields = {}
  for _, f in ipairs(list) do
    local type = f[2]
    if f[2] == nil then
      fields[f.at] = f[1]
    else
      fields[f.at] = {f[1], type == "i1" and "u8" or type}
    end
  end
  return fields
end

-- Returns the PTX arguments for a launch, which is an element of host.run's
-- result.
local function arguments_of(k, launch)
  local out, at = {}, 0
  for i, p in ipairs(k.kernel.parameters) do
    local what = ("%s: parameter %d of the kernel"):format(k.name, i)
    local given = launch.args[i] or {unknown = "nothing"}
    local list, made = fields_of(p.type, given, what)
    local bytes = made and map.BYTES or place(list)
    if bytes > 0 then
      at = at + 1
      local own = k.entry.parameters[at]
      local have = own and own.bits // 8 * own.count
      if have ~= bytes then
        fail(k.path, "parameter %d of the kernel has %d bytes in the IR, but "
          .. "%s in the PTX", i, bytes, have or "none")
      end
      out[at] = argument(own, list, made)
    end
  end
  if at ~= #k.entry.parameters then
    fail(k.path, "the kernel has %d parameters in the IR, but %d in the PTX",
         at, #k.entry.parameters)
  end
  out.n = at
  return out
end

---------------------------------------------------------------------------
-- Kernels
---------------------------------------------------------------------------

-- Runs the host function with the arguments of a call. Returns the launches
-- that it makes.
local function launches_of(k, args)
  local name = k.host.name
  if args.n ~= k.takes then
    core.fail("bad-argument", ("%s takes %d arguments, not %d"):format(name,
      k.takes, args.n))
  end
  local values = mlir.guard(function() return host_values(k, args) end,
                            function() return k.path end)
  return host.run(k.ir, k.host, values, k.path)
end

-- Returns the launch of a kernel that the host function launches exactly once.
local function launch_of(k, args)
  if k.all then return args[1] end
  local found
  for _, l in ipairs(launches_of(k, args)) do
    if l.kernel == k.kernel.name then
      if found then
        fail(k.path, "the host's function launches kernel %s several times: "
          .. "launch all kernels together", k.kernel.name)
      end
      found = l
    end
  end
  return found or fail(k.path, "with these arguments, the host's function does "
    .. "not launch kernel %s", k.kernel.name)
end

-- Returns the integers of a field of a launch, such as its grid. Raises an
-- error if one of them is unknown, because the reader of the IR could not
-- compute it.
local function known(k, list, name)
  local out = {}
  for i, v in ipairs(list) do
    if not v.n then
      core.fail("bad-launch", ("%s: %s depends on %s, which this reader of the "
        .. "IR does not compute\n  pass it: launch {%s = ...}"):format(k.name,
        name, v.unknown, name))
    end
    out[i] = v.n
  end
  return out
end

-- Returns the options of a launch: those that the user gave, completed by those
-- in the IR.
local function options_of(k, given, opts)
  local made = {}
  for name, v in pairs(opts or {}) do made[name] = v end
  local l = launch_of(k, given)
  for _, name in ipairs {"grid", "block", "cluster"} do
    if made[name] == nil and l[name] then
      made[name] = known(k, l[name], name)
    end
  end
  for _, name in ipairs {"pdl", "cooperative"} do
    local v = l[name]
    if made[name] == nil and v and v.n and v.n ~= 0 then made[name] = true end
  end
  return made
end

-- Raises an error if, for these arguments, the IR computes a grid that differs
-- from the grid of a prepared launch.
local function check_grid(k, given, grid)
  local l, want = launch_of(k, given), {}
  for i, v in ipairs(l.grid or {}) do want[i] = v.n or grid[i] end
  for i, n in ipairs(want) do
    if n ~= grid[i] then
      core.fail("bad-launch", ("%s: with these arguments, the IR has the grid "
        .. "(%s), but :compile had (%s); compile it again for these "
        .. "arguments"):format(k.name, table.concat(want, ","),
        table.concat(grid, ",", 1, #want)))
    end
  end
end

---@class cute.DslModule
local Module = {}
Module.__index = Module

--- Returns the names of the kernels that the host function launches.
---@return string[]
function Module:entries()
  local list, seen = {}, {}
  mlir.each(self.host.body, function(i)
    local name = i.op:find "^cuda%.launch_ex" and i.text:match "::@([%w_%.$]+)"
    if name and not seen[name] then
      seen[name] = true
      list[#list + 1] = name
    end
  end)
  return list
end

--- Returns a variable of the PTX as a tensor of bytes.
---@param name string
---@return cute.Tensor
function Module:variable(name) return self.ptx:variable(name) end

-- Returns the number of bytes of dynamic shared memory: the user's number or,
-- without one, that of the host function.
local function smem_of(self, name, given)
  if given then return given end
  -- `made` maps the name of an instruction's first result to the instruction.
  local made, config = {}, nil
  mlir.each(self.host.body, function(i)
    made[i.results[1] or ""] = i
    config = i.op:find "^cuda%.launch_ex"
      and i.text:match "::@([%w_%.$]+)<" == name and i.text:match "<(%%.-)>"
      or config
  end)
  local create = made[config]
  local size = create and create.text:match "dynamicSmemBytes = (%%[%w_%-]+)"
  if not config or create and not size then return 0 end
  local bytes
  local i = made[size]
  if i and i.op == "cute.kernel_smem_size" then
    bytes = mlir.guard(function()
      return mlir.shared_bytes(self.ir.kernels[name], self.ir.aliases)
    end, function() return self.path end)
  elseif i and i.op == "arith.constant" then
    bytes = math.tointeger(tonumber(i.text:match "^(%S+)"))
  end
  return bytes or fail(self.path, "the size of dynamic shared memory is not a "
    .. "constant in the IR\n  pass the number of bytes: {smem = ...}")
end

-- Returns a kernel that takes the arguments of the host function. With `all`,
-- its only argument is one launch that the host function made.
local function kernel_of(self, name, opts, all)
  local entry = core.ptx_entry(self.ptx.module, name)
  local kernel = self.ir.kernels[entry.name]
  if not kernel then
    fail(self.path, "the PTX has kernel %s, but the IR does not", entry.name)
  end
  local k = {path = self.path, ir = self.ir, host = self.host, kernel = kernel,
             entry = entry, takes = self.takes, name = self.host.name,
             all = all}
  local own = {smem = smem_of(self, entry.name, opts and opts.smem),
               lines = opts and opts.lines}
  return ptx.made(self.ptx, entry.name, own, {
    takes = all and 1 or self.takes,
    -- Rules for code of the DSL. All lanes of a warp execute a TMA store,
    -- without electing one. Registers of a tcgen05.ld are used before
    -- tcgen05.wait::ld. Warps of a warpgroup with different tasks set the same
    -- number of registers, each in a separate branch.
    rules = {store_once = true, loads_ordered = true, setmaxnreg_alike = true},
    expand = function(...)
      local l = launch_of(k, table.pack(...))
      return mlir.guard(function() return arguments_of(k, l) end, function()
        return self.path
      end)
    end,
    options = function(call, o, prepared)
      if prepared then return check_grid(k, call.given, prepared) end
      return options_of(k, call.given, o)
    end})
end

--- Returns a kernel of the PTX. The kernel takes the arguments of the host
-- function.
---@param name? string name of the kernel; may be left out if there is one
-- kernel
---@param opts? table {smem, lines} as for PTX
function Module:kernel(name, opts)
  local names = self:entries()
  if not name and #names > 1 then
    fail(self.path, "the host's function launches %s: name one of them",
         table.concat(names, ", "))
  end
  return kernel_of(self, name or names[1], opts)
end

--- Reports whether the host function may make more than one launch: it has
-- several launches, or a launch in a loop.
---@return boolean
function Module:several()
  local places = 0
  local function count(body, weight)
    for _, i in ipairs(body) do
      if i.op:find "^cuda%.launch_ex" then places = places + weight end
      local loop = i.op == "scf.for" or i.op == "scf.while"
      for _, r in ipairs(i.regions or {}) do
        count(r, loop and 2 or weight)
      end
    end
  end
  count(self.host.body, 1)
  return places > 1
end

---@class cute.DslCalls
local Calls = {}
Calls.__index = Calls

--- Launches the kernels in the order of the host function. Returns the results
-- of the last launch, or of the first launch that fails.
---@param opts? table options of each launch
function Calls:launch(opts)
  local ok, why
  for _, c in ipairs(self) do
    ok, why = c:launch(opts or {})
    if not ok and why then break end
  end
  return ok, why
end

--- Checks each launch, then runs it. Returns the first verdict with a fault, or
-- else the last verdict.
---@param opts? table options of each check
---@return table verdict
function Calls:check(opts)
  local verdict
  for _, c in ipairs(self) do
    verdict = c:check(opts or {})
    if verdict.fault then break end
    c:launch {device = opts and opts.device}
  end
  return verdict
end

--- Returns a function that takes the arguments of the host function. It returns
-- a list of the kernel calls that the host function makes; the list has the
-- methods launch and check.
---@param opts? table {smem, lines} as for PTX
---@return function
function Module:calls(opts)
  local kernels = {}
  return function(...)
    local list = {}
    for i, l in ipairs(launches_of(self, table.pack(...))) do
      local k = kernels[l.kernel] or kernel_of(self, l.kernel, opts, true)
      kernels[l.kernel] = k
      list[i] = k(l)
    end
    return setmetatable(list, Calls)
  end
end

--- Reads IR that the CuTe DSL wrote, and the PTX beside it.
---@param path string a folder, or its file cute_dsl_NAME_clean.mlir
---@return cute.DslModule
function dsl.module(path)
  if core.file_kind(path) == "folder" then path = only(path) end
  local ir, f = ir_of(path)
  local module = ptx.ptx(ptx_beside(path))
  local takes = 0
  for _, p in ipairs(f.parameters) do
    if not p.type.name:find "cuda%.stream" then takes = takes + 1 end
  end
  return setmetatable({path = path, file = module.file, ptx = module, ir = ir,
    module = module.module, host = f, takes = takes}, Module)
end

--- Returns a kernel that the CuTe DSL compiled, from the IR that the DSL kept
-- and the PTX beside it. The kernel takes the arguments of the @cute.jit
-- function. Grid, block, cluster and shared memory come from the IR. If the
-- function launches several times, a call of the result returns a list of
-- kernel calls, in order. The methods launch and check of the list apply to all
-- calls.
---@param path string the folder CUTE_DSL_DUMP_DIR, or its file
-- cute_dsl_NAME_clean.mlir if there are several
---@param opts? table {kernel: string names one of several kernels, smem:
-- integer bytes of dynamic shared memory, lines: string "ptx": reports name
-- lines of the PTX}
function dsl.dsl(path, opts)
  local known_options = {kernel = true, smem = true, lines = true}
  for name in pairs(opts or {}) do
    if not known_options[name] then
      sign.unknown("option", name, known_options)
    end
  end
  local module, name = dsl.module(path), opts and opts.kernel
  local own = opts and {smem = opts.smem, lines = opts.lines}
  if not name and module:several() then return module:calls(own) end
  return module:kernel(name, own)
end

sign.class("dsl module", Module, [[
  kernel(name?: string, opts?: {lines smem}) entries() variable(name: string)
  several() calls(opts?: {lines smem})]], "path file ptx ir module host takes")

return dsl
-- SPDX-License-Identifier: MIT
