--- Lists the functions that users can call: all functions that have a
-- signature. It finds them by walking the modules and the types, so that a new
-- function is covered without an edit.
local cute = require "cute"
local core = require "cute.core"
local sign = require "cute.lang.signature"

local surface = {}

--- Types whose methods are called by lua/cute, not by users.
surface.PRIMITIVE = {["cute.debug"] = true, ["cute.editor"] = true,
                     ["cute.fn"] = true, ["cute.process"] = true,
                     ["cute.requests"] = true}

-- Modules that scripts load with require, and modules that are fields of cute.
local MODULES = {"cute.arch", "cute.gpu", "cute.jit", "cute.npy",
  "cute.testing", "cute.pipeline", "cute.utils", "cute.tiles", "cute.ops",
  "cute.nvgpu", "cute.nvgpu.sm90.cpasync", "cute.nvgpu.sm90.warpgroup",
  "cute.hopper",
  "cute.persistent_schedulers", "cute.grouped", "cute.tmem_allocator",
  "cutelua.program.cli"}

--- Functions whose first argument is a file path. Random calls replace it by
-- surface.path(name, x), a path where no file can be written.
local PATHS = {["npy.write"] = true, ["npy.read"] = true,
  ["cli.write_file"] = true, ["cli.write_private"] = true,
  ["cli.output"] = true, ["cli.writable"] = true, ["cli.read_plain"] = true}

--- Returns the value to pass instead of x: if x is a file path of function
-- `name`, a path where nothing can be written.
---@param name string the name of the function
---@param x any its first argument
---@return any
function surface.path(name, x)
  return PATHS[name] and type(x) == "string" and "/dev/null/" .. x or x
end

--- Iterates over the metatables of the types that users see, by name.
---@return fun(): string, table
function surface.types()
  return coroutine.wrap(function()
    for name, mt in pairs(debug.getregistry()) do
      if type(name) == "string" and name:find "^cute%." and type(mt) == "table"
        and rawget(mt, "__name") == name and not surface.PRIMITIVE[name] then
        coroutine.yield(name, mt)
      end
    end
  end)
end

-- Adds to `list` the functions of table t that have no signature, although
-- users can call them.
local function unsigned(what, t, list)
  for k, v in pairs(t) do
    if type(k) == "string" and type(v) == "function" and not k:find "^__"
      and not core.signature(v) then
      list[#list + 1] = what .. "." .. k
    end
  end
end

--- Loads all modules. Returns the names of their functions without a signature.
---@return string[]
function surface.nameless()
  local list = {}
  for _, names in ipairs {sign.lazy(cute)} do
    for name in pairs(names) do local _ = cute[name] end
  end
  unsigned("cute", cute, list)
  for _, name in ipairs(MODULES) do
    sign.add_all(name, require(name))
    for field in pairs(sign.lazy(require(name))) do
      local _ = require(name)[field]
    end
    unsigned(name, require(name), list)
  end
  for name, mt in surface.types() do unsigned(name, mt, list) end
  table.sort(list)
  return list
end

--- Returns {f =, signature =, name =} for all functions that have a signature.
---@return table[]
function surface.functions()
  local list, names = {}, {}
  local function gather(t)
    for _, f in pairs(t) do
      if type(f) == "function" then names[f] = core.signature(f) end
    end
  end
  for f, signature in pairs(debug.getregistry()["cute.names"]) do
    names[f] = signature
  end
  gather(core)
  gather(core.value_methods)
  for _, mt in surface.types() do gather(mt) end
  for f, signature in pairs(names) do
    list[#list + 1] = {f = f, signature = signature,
                       name = signature:match "^[^(]+"}
  end
  table.sort(list, function(a, b) return a.signature < b.signature end)
  return list
end

return surface
-- SPDX-License-Identifier: MIT
