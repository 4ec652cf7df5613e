--- Makes specs faster. luassert builds an object for every word of an assertion
-- before it compares. With this file, an assertion that holds needs no objects
-- and takes a hundredth of the time. Only an assertion that fails calls
-- luassert.
local assert = require "luassert"

-- The garbage collector starts when memory is four times as large as after the
-- previous collection, instead of twice. Specs with many traces then take a
-- tenth less time.
collectgarbage("incremental", 400)

local holds = {
  equal = function(a, b) return a == b end,
  is_true = function(x) return x == true end,
  is_false = function(x) return x == false end,
  is_nil = function(x) return x == nil end,
  is_truthy = function(x) return x end,
  is_falsy = function(x) return not x end}

for name, check in pairs(holds) do
  local least = name == "equal" and 2 or 1
  rawset(assert, name, function(...)
    if select("#", ...) >= least and check(...) then return ... end
    return assert.state()[name](...)
  end)
end
assert.truthy, assert.falsy = assert.is_truthy, assert.is_falsy

return assert
-- SPDX-License-Identifier: MIT
