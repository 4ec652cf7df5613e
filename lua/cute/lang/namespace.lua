--- Tables of names that say when a name is not there, instead of giving nil:
-- cute, cute.arch and the other modules that users reach through cute.
local core = require "cute.core"

local namespace = {}

-- What the Python DSL has for Hopper and Blackwell alone, by its names.
local LATER = {"mbarrier", "cluster", "elect_one", "warpgroup",
  "setmaxregister", "griddepcontrol", "bulk", "dsmem", "fence_proxy",
  "fence_view", "tma", "tmem", "tcgen05", "packed", "umma", "clc", "tensormap",
  "sm90", "sm100", "sm103", "sm120", "hopper", "blackwell"}

-- Names that stand for something else here.
local ELSEWHERE = {
  nvgpu = "operations of the hardware are atoms here, by their C++ names: "
    .. "cute.make_mma_atom(\"SM80_16x8x16_F32BF16BF16F32_TN\"), "
    .. "cute.make_copy_atom(\"SM75_U32x4_LDSM_N\", cute.bf16)",
}

local function advice(name, names)
  if ELSEWHERE[name] then return "\n  " .. ELSEWHERE[name] end
  local near = require "cute.program.cli".nearest(name, names)
  near = near and "\n  nearest: " .. near or ""
  for _, part in ipairs(LATER) do
    if name:lower():find(part, 1, true) then
      return "\n  what only Hopper and Blackwell have is not there yet" .. near
    end
  end
  return near
end

--- Makes a field of t that is not there an error [unknown-name] with the
-- nearest name.
---@param t table
---@param full string as users write it: "cute.arch"
---@param load? fun(name: string): any what is made when first asked for
---@param more? table[] tables whose keys are names that `load` knows; kept
-- in the metatable as `lazy`, for those who look for all names
---@return table t
function namespace.strict(t, full, load, more)
  return setmetatable(t, {lazy = more, __index = function(_, name)
    local v = load and load(name)
    if v ~= nil then
      t[name] = v
      return v
    end
    local names = {}
    for _, from in ipairs {t, table.unpack(more or {})} do
      for known in pairs(from) do names[#names + 1] = tostring(known) end
    end
    table.sort(names)
    core.fail("unknown-name", ("%s has no '%s'%s"):format(full, tostring(name),
      advice(tostring(name), names)))
  end})
end

return namespace
