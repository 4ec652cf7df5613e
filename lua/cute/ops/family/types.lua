--- Predicates and phrases about a problem's operands, for families of kernels.
local types = {}

--- Reports whether both operands have the type with this name.
function types.same(p, name) return p.a.name == name and p.b.name == name end

function types.fp8(t) return t.name == "e4m3" or t.name == "e5m2" end
function types.byte(t) return t.name == "i8" or t.name == "u8" end

--- Checks whether a problem's device can run kernels that feed tensor cores by
-- cp.async. Returns the reason if it cannot, else nil.
function types.too_old(p)
  return p.sm < 80 and ("cp.async needs sm_80, but the device is "
    .. "%s"):format(p.arch)
    or nil
end

--- Returns a phrase for the scale factors of blocks of K, or "".
function types.factors(p)
  return p.group and (", with the factors of each %d"):format(p.group) or ""
end

return types
-- SPDX-License-Identifier: MIT
