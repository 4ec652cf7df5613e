--- Checks the option `aligned` of barriers; false means that the lanes of a
-- warp may arrive one by one. Returns the suffix of the barrier instruction's
-- name in the IR: "" or "_unaligned".
local core = require "cute.core"

---@param what string the function that takes the option
---@param opts? {aligned: boolean}
---@return string
return function(what, opts)
  local value = opts and opts.aligned
  if value ~= nil and type(value) ~= "boolean" then
    core.fail("bad-argument", ("%s: aligned = %s; a boolean is needed"):format(
      what, core.show(value)))
  end
  return value == false and "_unaligned" or ""
end
-- SPDX-License-Identifier: MIT
