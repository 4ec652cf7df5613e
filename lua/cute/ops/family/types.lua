--- What the types of a problem's operands are, as families ask.
local types = {}

--- Are both operands of the type with this name?
function types.same(p, name) return p.a.name == name and p.b.name == name end

function types.fp8(t) return t.name == "e4m3" or t.name == "e5m2" end
function types.byte(t) return t.name == "i8" or t.name == "u8" end

--- Why kernels of tensor cores that cp.async feeds have nothing for a problem's
-- device; nil: it has that.
function types.too_old(p)
  return p.sm < 80 and ("cp.async wants sm_80, the device is %s"):format(p.arch)
    or nil
end

return types
