--- `cutelua bundle SCRIPT` writes kernels with launch functions in C, which
-- need neither Lua nor a compiler at run time. docs/bundle.md describes the
-- command.
--
--     cute.bundle.add("gemm_relu", function(A, B)
--       return cute.ops.gemm(A, B, {epilogue = cute.ops.relu})
--     end, {A, B})
--
-- While `cutelua bundle` runs the script, each add() becomes a C function.
-- Otherwise add() has no effect.
local expression = require "cutelua.bundle.expression"
local core = require "cute.core"
local kernel = require "cute.lang.kernel"
local sign = require "cute.lang.signature"
local state = require "cutelua.bundle.state"

local bundle = {}

local function fail(text, ...)
  core.fail("bad-argument", "cute.bundle.add: " .. text:format(...))
end

local KEYS = {grid = true, examples = true, names = true, results = true,
              sizes = true, arguments = true, align = true}

local function check_config(config)
  for k in pairs(config) do
    if math.type(k) ~= "integer" and not KEYS[k] and not kernel.OPTIONS[k] then
      local known = {}
      for name in pairs(KEYS) do known[name] = true end
      for name in pairs(kernel.OPTIONS) do known[name] = true end
      sign.unknown("option", k, known)
    end
  end
end

--- Adds a function to the bundle. f is a kernel, or a function of tensors that
-- launches kernels, such as cute.ops.gemm. `config` has the arguments of f and,
-- for a kernel, the options of a launch (grid, block ...). A further call with
-- the same name and other extents adds a specialisation to the function.
---@param name string the C function's name, without the bundle's name
---@param f any a kernel, or a function
---@param config table {arguments..., names: string[], results: string[], align:
-- integer bytes to which the tensors are aligned (as in the script), examples:
-- table[] lists of arguments with which a kernel of symbolic arguments is run}.
-- For a range of sizes: {sizes = {first, last, step}, arguments =
-- function(size), examples: integer[] sizes that are run}. If `last` is "any",
-- one kernel of cute.ops serves all sizes
function bundle.add(name, f, config)
  if not name:find "^%a[%w_]*$" then
    fail("'%s' is not a C identifier", name)
  end
  check_config(config)
  if state.session then state.session:add(name, f, config) end
end

--- Declares that a number among the arguments is a parameter of the C function.
-- Other numbers are constants of the C function. While the script runs, `value`
-- is passed to the Lua function.
---@param name string
---@param value number
function bundle.number(name, value)
  if not name:find "^%a[%w_]*$" then
    core.fail("bad-argument", ("cute.bundle.number: '%s' is not a C "
      .. "identifier"):format(name))
  end
  if not state.session then return value end
  return setmetatable({name = name, value = value}, state.Number)
end

--- Returns the architecture for which `cutelua bundle` runs the script, or nil
-- in other runs. A script can thus add functions for some architectures only.
---@return string?
function bundle.arch() return state.session and state.session.arch or nil end

--- Returns a / b, rounded up; for functions that compute a grid.
---@param a any an integer or an extent
---@param b any
function bundle.ceil_div(a, b) return (a + b - 1) // b end

--- Returns the lesser of two integers or extents; for functions that compute a
-- grid.
function bundle.min(a, b) return expression.min(a, b) end

--- Returns the greater of two integers or extents; for functions that compute a
-- grid.
function bundle.max(a, b) return expression.max(a, b) end

return sign.public("bundle.", bundle, [[
  add(name: string, f: function|kernel, config: table)
  number(name: string, value: number) arch()
  ceil_div(a: integer|extent, b: integer|extent)
  min(a: integer|extent, b: integer|extent)
  max(a: integer|extent, b: integer|extent)]])
-- SPDX-License-Identifier: MIT
