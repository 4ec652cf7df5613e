--- The option of barriers: aligned = false where not all lanes of a warp come
-- together. "" or "_unaligned", the end of the effect's name.
local core = require "cute.core"

---@param what string the function that has it
---@param opts? {aligned: boolean}
---@return string
return function(what, opts)
  local value = opts and opts.aligned
  if value ~= nil and type(value) ~= "boolean" then
    core.fail("bad-argument", ("%s: aligned = %s: a boolean is needed"):format(
      what, core.show(value)))
  end
  return value == false and "_unaligned" or ""
end
