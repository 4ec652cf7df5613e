--- Prints which NVRTC libraries are installed, and why one of them is used.
local core = require "cute.core"

local compilers = {}

-- Returns the reason why a library of `list` was chosen, as text.
local function reason(list, driver)
  local named = os.getenv "CUTELUA_NVRTC"
  if named and named ~= "" then return "CUTELUA_NVRTC names it" end
  local by = driver and ("the driver is for CUDA %s"):format(driver)
    or "there is no driver"
  if #list == 1 then return ("the only one found; %s"):format(by) end
  local usable = 0
  for _, v in ipairs(list) do usable = usable + (v.why and 0 or 1) end
  return ("the newest of %d that %s; %s"):format(usable,
    driver and "the driver can run" or "were found", by)
end

--- Prints the NVRTC libraries found: the chosen one first.
function compilers.print()
  local list, driver = core.nvrtc_list()
  local chosen
  for _, v in ipairs(list) do chosen = v.chosen and v or chosen end
  if not chosen then
    local _, why = core.nvrtc_version()
    print("no NVRTC: " .. core.visible((why:gsub(" %[[%l-]+%]$", ""))))
  else
    print(core.visible(("NVRTC %s: %s (%s)"):format(chosen.version,
      chosen.path, reason(list, driver))))
  end
  for _, v in ipairs(list) do
    if v ~= chosen and chosen then
      print(core.visible(("  not used: NVRTC %s: %s (%s)"):format(
        v.version or "?", v.path, v.why or v.version == chosen.version
          and "found later" or "older")))
    end
  end
end

return compilers
-- SPDX-License-Identifier: MIT
