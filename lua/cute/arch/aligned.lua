--- The option of barriers: aligned = false where not all lanes of a warp come
-- together. "" or "_unaligned", the end of the effect's name.
local core = require "cute.core"

---@param what string the function that has it
---@param opts? {aligned: boolean}
---@return string
return function(what, opts)
  for key, value in pairs(opts or {}) do
    if key ~= "aligned" or type(value) ~= "boolean" then
      core.fail("unknown-name", ("%s: no option %s = %s (aligned = false)")
        :format(what, tostring(key), tostring(value)))
    end
  end
  return opts and opts.aligned == false and "_unaligned" or ""
end
