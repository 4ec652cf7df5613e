--- The part of the library libcutelua (core/library) that is written in Lua. It
-- loads scripts, finds their kernels and functions, and calls them. The library
-- calls this chunk with a table of C functions, and receives the functions of
-- `embedding`.
local host = ...
local core = require "cute.core"
local devices = require "cute.lang.devices"
local report = require "cute.lang.report"
local scripts = require "cute.lang.script"
local source = require "cute.lang.source"

local embedding = {}

-- Local copies of Lua's functions: a script that replaces the globals does not
-- affect this module.
local getmetatable, load = getmetatable, load
local is_kernel, source_of = scripts.is_kernel, scripts.source
local pack, unpack, rawget, type = table.pack, table.unpack, rawget, type

-- Sends what scripts and cutelua print to the application. In states for
-- untrusted scripts, untrusted.lua does this instead.
if host.emit and not host.globals then
  local emit = host.emit
  local out = host.stream(emit, 1)
  rawset(io, "stdout", out)
  rawset(io, "stderr", host.stream(emit, 2))
  rawset(io, "write", function(...) return out:write(...) end)
  rawset(_G, "print", host.printer(emit))
end

-- Returns the globals for a new script: a copy of the state's globals. Used
-- only in trusted states.
local function own_globals()
  local env = {}
  for name, v in pairs(_G) do env[name] = v end
  env._G = env
  return env
end

-- The metatable of the objects that cutelua_load_file and cutelua_load_text
-- return.
local Script = {}

--- Runs a script. Returns an object to pass to embedding.find.
---@param text string
---@param chunk string the chunk's name, which begins with "@" or "="
function embedding.load(text, chunk)
  text = source_of(text, chunk)
  local env = (host.globals or own_globals)()
  local f, message = load(text, chunk, "t", env)
  if not f then error(message, 0) end
  if chunk:sub(1, 1) == "=" then source.add(chunk, text) end
  return setmetatable({env = env, value = f()}, Script)
end

--- Returns a kernel or function of a script: a field of the table that the
-- script returned, or a global variable. The name "" means the returned value.
function embedding.find(script, name)
  if getmetatable(script) ~= Script then
    core.fail("bad-argument", "cutelua_find: the reference names no script")
  end
  local value = script.value
  local found
  if name == "" then found = value end
  if name ~= "" and type(value) == "table" and not is_kernel(value) then
    found = rawget(value, name)
  end
  if found == nil and is_kernel(value) and value.name == name then
    found = value
  end
  if found == nil then found = rawget(script.env, name) end
  if is_kernel(found) or type(found) == "function" then return found end
  core.fail("unknown-name", found == nil
    and ("the script has no kernel or function '%s'"):format(name)
    or ("'%s' of the script is a %s, not a kernel or function")
      :format(name, type(found)))
end

--- Returns a tensor that views a buffer, beginning with element `offset`.
function embedding.tensor(buffer, offset, shape, stride)
  local all = core.make_tensor(buffer, core.make_layout(buffer.count))
  if offset > 0 then all = core.domain_offset(offset, all) end
  return core.make_tensor(all, core.make_layout(shape, stride))
end

local function on_device(opts, place)
  if opts.device then return opts end
  opts.device = place or "sim"
  return opts
end

local function check_kernel(k, what)
  if not is_kernel(k) then
    core.fail("bad-argument", what .. ": the reference names no kernel")
  end
end

--- Launches a kernel. `place` is the GPU that holds the tensors, or nil.
function embedding.launch(k, opts, place, ...)
  check_kernel(k, "cutelua_launch")
  k(...):launch(on_device(opts, place))
end

--- Traces and compiles a kernel for these arguments.
function embedding.compile(k, opts, place, ...)
  check_kernel(k, "cutelua_compile")
  local ready, why = k(...):compile(on_device(opts, place))
  if not ready then report.raise(why) end
  local program = ready.program
  if ready.device.kind == "gpu" then
    local made, message = program:compile()
    if not made then report.raise(message) end
  end
end

-- Copies each result i to the tensor places[i], if there is one. Returns the
-- results that were not copied.
local function deliver(places, n, results)
  local out = {}
  for i = 1, n do
    local to = places[i]
    if to and core.typename(results[i]) ~= "tensor" then
      core.fail("type-mismatch", ("result %d is %s, not a tensor"):format(i,
        core.show(results[i])))
    elseif to then
      to:copy_from(results[i])
    else
      out[i] = results[i]
    end
  end
  return unpack(out, 1, n)
end

--- Calls a function of a script with n arguments.
function embedding.call(f, places, n, ...)
  if type(f) ~= "function" then
    core.fail("bad-argument", "cutelua_call: the reference names "
      .. (is_kernel(f) and "a kernel; cutelua_launch launches it"
      or "no function"))
  end
  return deliver(places, n, pack(f(...)))
end

--- Calls an operation of cute.ops by its name.
function embedding.op(name, places, n, ...)
  local ops = require "cute.ops"
  return deliver(places, n, pack(ops[name](...)))
end

-- Streams of the application, by GPU and handle. They stay open, because
-- closing a stream waits for its GPU.
local streams = {}

--- Returns the stream object for a driver's stream (CUstream) on a GPU.
---@param handle userdata the driver's handle
---@param name? string such as "gpu" or "gpu:1"; nil for the first GPU
function embedding.stream(handle, name)
  local d, why = devices.device(name or "gpu")
  if not d then report.raise(why) end
  if d.kind ~= "gpu" then
    core.fail("bad-launch", ("the launch has a stream of a GPU, but is on %s")
      :format(d.name))
  end
  local of = streams[d] or {}
  streams[d] = of
  local s = of[handle]
  if s then return s end
  s, why = d.dev:foreign_stream(handle)
  if not s then report.raise(why) end
  of[handle] = s
  return s
end

return embedding
-- SPDX-License-Identifier: MIT
