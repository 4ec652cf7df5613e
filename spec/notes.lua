--- Runs kernels on the simulator and returns the notes that are printed.
local assert = require "luassert"
local cute = require "cute"
local support = require "spec.support"

local notes = {}

local count = 0

--- Runs a kernel with the function `body`, which must cause no fault. Returns
-- the messages.
---@param body function
---@param launch table the options of the launch
---@param ... any the kernel's arguments
---@return string[]
function notes.told(body, launch, ...)
  count = count + 1  -- Each kernel name gets a note only once.
  local k = cute.kernel("k" .. count, body)
  launch.device, launch.faults = "sim", "return"
  local said, r = support.told(function(...)
    return support.report(k(...):launch(launch))
  end, ...)
  assert.is_true(r.ok, tostring(r))
  return said
end

--- Runs a kernel like notes.told. Fails if there is a note.
function notes.quiet(...) assert.same({}, notes.told(...)) end

return notes
-- SPDX-License-Identifier: MIT
