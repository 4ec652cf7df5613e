-- launches.lua: exports the kernels of an example script that uses
-- cutelua.bench.harness, and the arguments of their launches. Programs such as
-- spec/bench/rivals.py read them to launch the kernels without cutelua.
--
--  cutelua tools/launches.lua SCRIPT FOLDER ARCH [--OPTION VALUE]... EXTENT...
--
-- Writes the compiled kernels to FOLDER, and prints JSON: the operands, the
-- launches with their arguments in the order of the kernel's parameters, and
-- the numbers of bytes and operations.
local core = require "cute.core"
local harness = require "cutelua.bench.harness"
local lib = require "cutelua.bench.lessonlib"

local job = {name = "launches"}

-- Returns a Lua value as JSON. A table that is empty or has element 1 becomes a
-- list.
local function json(x)
  if type(x) == "string" then
    return '"' .. x:gsub('[%c"\\]', function(c)
      return ("\\u%04x"):format(c:byte())
    end) .. '"'
  elseif type(x) ~= "table" then
    return x == nil and "null" or math.type(x) == "float"
      and ("%.17g"):format(x) or tostring(x)
  end
  local out = {}
  if x[1] ~= nil or next(x) == nil then
    for i, v in ipairs(x) do out[i] = json(v) end
    return "[" .. table.concat(out, ",") .. "]"
  end
  for k, v in pairs(x) do out[#out + 1] = json(k) .. ":" .. json(v) end
  table.sort(out)
  return "{" .. table.concat(out, ",") .. "}"
end

-- Returns the arguments of a compiled kernel. An argument is {"x"} for the
-- memory of operand x, {"f32", value} for a scalar, or {"x", words} for a
-- tensor map of x. `words` are the map's 16 words of 64 bits. The first word,
-- the address, is 0.
local function arguments(l)
  local out = {}
  for i, v in ipairs(core.launch_values(l.args)) do
    if core.typename(v[1]) == "dtype" then
      out[i] = {v[1].name, v[2]}
    else
      out[i] = {l.names[v.argument], v.tma and core.tma_words(v.tma, 0)}
    end
  end
  return out
end

local function three(x)
  local t = type(x) == "table" and x or {x}
  return {t[1], t[2] or 1, t[3] or 1}
end

local function launch(l, path, arch)
  local program = l.kernel(table.unpack(l.args, 1, l.args.n)):trace {
    block = l.block, arch = arch}
  local made = lib.must(job, program:compile(arch))
  local f <close> = assert(io.open(path, "wb"))
  assert(f:write(made.cubin))
  return {cubin = path, name = select(3, program:cuda(arch)),
          args = arguments(l),
          grid = three(l.grid), block = three(l.block),
          smem = program.info.smem, registers = made.resources.registers}
end

---------------------------------------------------------------------------

local script, folder, arch = arg[1], arg[2], arg[3]
local opt, size, i = {}, {}, 4
while arg[i] do
  local name = arg[i]:match "^%-%-(.*)$"
  if name then
    opt[name], i = tonumber(arg[i + 1]) or arg[i + 1], i + 2
  else
    size[#size + 1], i = assert(math.tointeger(arg[i])), i + 1
  end
end

local spec = lib.must(job, lib.script_spec(script, "cutelua.bench.harness",
                                      "run"))
local p = harness.problem(spec, size, {dtype = opt.dtype, opt = opt,
                                       bare = true})
local launches, operands = {}, {}
for k, l in ipairs(harness.launches(p, spec.make)) do
  launches[k] = launch(l, ("%s/%d.cubin"):format(folder, k), arch)
end
for k, o in ipairs(p.operands) do
  operands[k] = {name = o.name, dtype = o.dtype.name, shape = o.shape,
    out = o.out or false, scratch = o.scratch or false,
    fill = type(o.fill) == "function" and "own" or o.fill or false}
end
print(json {operands = operands, launches = launches, bytes = p.bytes,
            flops = p.flops or false})
-- SPDX-License-Identifier: MIT
