--- Runs kernels on the simulator and returns the notes that are printed.
local assert = require "luassert"
local cute = require "cute"
local support = require "spec.support"

local notes = {}

local count = 0

--- Runs a kernel with the function `body`. Returns the messages. The launch
-- must have no faults.
---@param body function
---@param launch table the options of the launch
---@param ... any the kernel's arguments
---@return string[]
function notes.told(body, launch, ...)
  count = count + 1  -- A note is written once for each name of a kernel.
  local k = cute.kernel("k" .. count, body)
  launch.device, launch.faults = "sim", "return"
  local said, r = support.told(function(...)
    return support.report(k(...):launch(launch))
  end, ...)
  assert.is_true(r.ok, tostring(r))
  return said
end

--- As notes.told, for a kernel that must have no notes.
function notes.quiet(...) assert.same({}, notes.told(...)) end

return notes
-- SPDX-License-Identifier: MIT
