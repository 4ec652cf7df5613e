--- The Lua functions behind calls from Python (core/library/python.c): launches
-- of kernels, operations by name, functions written as text, the shapes of an
-- operation's results, and runs under all checks.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local script = require "cute.lang.script"
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"

local python = {devices = devices}
local is_kernel = script.is_kernel

-- Returns the table of options at the end of the arguments, or nil if there is
-- none. Also returns the number of arguments without it.
local function split(n, ...)
  local last = select(n, ...)
  local options = type(last) == "table" and getmetatable(last) == nil
  return options and last or nil, options and n - 1 or n
end

--- Launches kernel k. The last argument may be a table of launch options.
function python.launch(k, ...)
  if not is_kernel(k) then
    core.fail("bad-argument", ("%s cannot be called: it is neither a function "
      .. "nor a kernel"):format(core.show(k)))
  end
  local opts, n = split(select("#", ...), ...)
  opts = opts or {}
  if not opts.device and devices.simulates then opts.device = "sim" end
  k(table.unpack({...}, 1, n)):launch(opts)
end

--- Returns a function that XLA's runtime calls. Its arguments are the n
-- arguments of f, then a tensor for each result. If f is a kernel, the function
-- launches it with all these tensors and the launch options `options`. If f is
-- a function, it copies f's results to the tensors.
---@param f any
---@param n integer
---@param options? table
function python.for_xla(f, n, options)
  if is_kernel(f) then
    return function(...)
      local args = table.pack(...)
      args[args.n + 1] = options or {}
      python.launch(f, table.unpack(args, 1, args.n + 1))
    end
  end
  return function(...)
    local args = table.pack(...)
    local outs = table.move(args, n + 1, args.n, 1, {n = args.n - n})
    args[n + 1] = options
    local results = table.pack(f(table.unpack(args, 1, options and n + 1 or n)))
    if results.n ~= outs.n then
      core.fail("bad-argument", ("the function returned %d results; the call "
        .. "of cutelua.jax declares %d"):format(results.n, outs.n))
    end
    for i = 1, outs.n do outs[i]:copy_from(results[i]) end
  end
end

---------------------------------------------------------------------------
-- Functions as text
---------------------------------------------------------------------------

local written = {}  -- Maps a text to its function.

--- Returns the function that a text such as "function(x) return x * 2 end"
-- defines. Equal texts return the same function, so that cute.ops finds the
-- plan of an earlier call. The text can use the global variable `cute`.
local function compiled(text)
  local f = written[text]
  if f then return f end
  local chunk = "=" .. (text:match "^%s*([^\n]*)" or "text")
  local code = "return " .. text
  source.add(chunk, code)
  local env = setmetatable({cute = require "cute"}, {__index = _G})
  local make, why = load(code, chunk, "t", env)
  if not make then error(why, 0) end
  f = make()
  written[text] = f
  return f
end

-- Replaces each text in x (or in the tables of x) that begins with "function("
-- by the function that the text defines.
local function with_functions(x)
  if type(x) == "string" and x:find "^%s*function%s*%(" then
    return compiled(x)
  elseif type(x) == "table" and getmetatable(x) == nil then
    for k, v in pairs(x) do x[k] = with_functions(v) end
  end
  return x
end

-- Replaces the names of options in the list o.gradients by the values of these
-- options. ops.attention_backward recognizes tensors by identity, but a tensor
-- that Python passes twice becomes two objects.
local function find_gradients(o)
  for i, v in ipairs(type(o.gradients) == "table" and o.gradients or {}) do
    if type(v) == "string" then o.gradients[i] = o[v] end
  end
end

--- Returns the operation of cute.ops with this name, or nil if there is none.
-- In place of each argument or option that is a function, the returned function
-- accepts the source text of a function.
function python.operation(name)
  local ok, f = pcall(function() return (require "cute.ops")[name] end)
  if not ok or type(f) ~= "function" then return nil end
  return function(...)
    local texts = false
    for i = 1, select("#", ...) do
      local x = select(i, ...)
      if type(x) == "table" then
        with_functions(x)
        if x.gradients then find_gradients(x) end
      end
      texts = texts or type(x) == "string"
    end
    if not texts then return f(...) end
    local args = table.pack(...)
    for i = 1, args.n do args[i] = with_functions(args[i]) end
    return f(table.unpack(args, 1, args.n))
  end
end

---------------------------------------------------------------------------
-- Scripts
---------------------------------------------------------------------------

--- Runs a script. Returns its functions and kernels by name: the script's
-- global variables, and the fields of the table that it returned. If the script
-- returned a kernel, the kernel's own name is used. If it returned a function,
-- the name is "main".
---@param text string
---@param chunk string the chunk's name, which begins with "@" or "="
---@return table parts {name = value}
function python.load(text, chunk)
  text = script.source(text, chunk)
  local globals, env = {}, {cute = require "cute"}
  env._G = env
  setmetatable(env, {__index = _G, __newindex = function(t, k, v)
    globals[k] = true
    rawset(t, k, v)
  end})
  source.add(chunk, text)
  local f, message = load(text, chunk, "t", env)
  if not f then error(message, 0) end
  local value, parts = f(), {}
  for name in pairs(globals) do parts[name] = env[name] end
  if is_kernel(value) then
    parts[value.name or "kernel"] = value
  elseif type(value) == "function" then
    parts.main = value
  elseif type(value) == "table" then
    for name, v in pairs(value) do
      if type(name) == "string" then parts[name] = v end
    end
  end
  return parts
end

--- Returns the names of a function's parameters.
function python.arity(f)
  local names = {}
  for i = 1, debug.getinfo(f, "u").nparams do
    names[i] = debug.getlocal(f, i)
  end
  return names
end

---------------------------------------------------------------------------
-- Shapes of results
---------------------------------------------------------------------------

-- The class of extents that are not known before Python calls. An object holds
-- the text of an expression that Python evaluates then.
local Extent = {}
Extent.__index = function(_, k)
  core.fail("bad-argument", ("an extent is a number; it has no field %s")
    :format(core.show(k)))
end

local function text_of(x)
  if getmetatable(x) == Extent then return rawget(x, "text") end
  if math.type(x) ~= "integer" then
    core.fail("bad-argument", ("an extent is %s; an integer is needed")
      :format(core.show(x)))
  end
  return tostring(x)
end

local function extent(text) return setmetatable({text = text}, Extent) end

for event, operator in pairs {__add = "+", __sub = "-", __mul = "*",
                              __idiv = "//", __mod = "%"} do
  Extent[event] = function(a, b)
    return extent(("(%s %s %s)"):format(text_of(a), operator, text_of(b)))
  end
end

local function unknown()
  core.fail("bad-argument", "the extents of a fake tensor have no values: "
    .. "compute with + - * // % only")
end
Extent.__lt, Extent.__le, Extent.__unm = unknown, unknown, unknown

-- Returns a stand-in for argument x of a function that computes shapes. A
-- tensor is given as {tensor = number, rank =, dtype =}. Its stand-in is a
-- table with the tensor's shape.
local function stand_in(x)
  if type(x) ~= "table" or not x.tensor then return x end
  local shape = {}
  for i = 1, x.rank do shape[i] = extent(("s%d_%d"):format(x.tensor, i)) end
  return {shape = shape, dtype = x.dtype, like = x.tensor}
end

--- Calls a script's function that returns {shape = {...}, dtype =} for each
-- result. A result without dtype has the dtype of the first tensor. Returns a
-- list of {shape = expressions, dtype = name}.
function python.shapes(f, ...)
  local args = table.pack(...)
  local first
  for i = 1, args.n do
    args[i] = stand_in(args[i])
    if type(args[i]) == "table" and args[i].like then
      first = first or args[i]
    end
  end
  local results = table.pack(f(table.unpack(args, 1, args.n)))
  local out = {}
  for i = 1, results.n do
    local r = results[i]
    if type(r) ~= "table" or type(r.shape) ~= "table" then
      core.fail("bad-argument", ("result %d of the fake function is %s; {shape "
        .. "= {...}, dtype = ...} is needed"):format(i, core.show(r)))
    end
    local shape = {}
    for k, n in ipairs(r.shape) do shape[k] = text_of(n) end
    -- The element "end" makes the encoder write even an empty `shape` as a
    -- list, not as a table with fields.
    shape[#shape + 1] = "end"
    out[i] = {shape = shape,
              dtype = tostring(r.dtype or first and first.dtype or "f32")}
  end
  return out
end

--- Begins to check each launch on the simulator. Without options, ends the
-- checks and returns the list of faults and notes found (cutelua.check.watch).
function python.watch(opts) return sign.workshop.watch_launches(opts) end

--- Adds an error to the findings of checked launches.
function python.add_error(...) sign.workshop.watch_error(...) end

--- Returns the findings of checked launches as text, in a given format.
function python.findings(...) return sign.workshop.watch_findings(...) end

return python
-- SPDX-License-Identifier: MIT
