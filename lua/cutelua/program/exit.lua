--- Makes os.exit end a script without ending the program.
local exit = {}

--- The value that a watched os.exit raises. No pcall catches it.
exit.STOP = {}
local STOP <const> = exit.STOP

-- The function that receives the exit code of a watched os.exit.
local told

-- Raises STOP again if a function such as pcall, xpcall or coroutine.resume
-- caught it. Otherwise returns the function's results.
local function past(ok, e, ...)
  if not ok and rawequal(e, STOP) then error(STOP, 0) end
  return ok, e, ...
end

local pcall, xpcall, resume = pcall, xpcall, coroutine.resume

-- Functions that are replaced while a script is watched: {table, name, original
-- function, replacement}.
local REPLACED = {
  {os, "exit", os.exit, function(how)
    told(how == true and 0 or how == false and 1 or math.tointeger(how) or 0)
    error(STOP, 0)
  end},
  {_G, "pcall", pcall, function(...) return past(pcall(...)) end},
  {_G, "xpcall", xpcall, function(f, handler, ...)
    return past(xpcall(f, type(handler) == "function" and function(e)
      if rawequal(e, STOP) then return e end
      return handler(e)
    end or handler, ...))
  end},
  {coroutine, "resume", resume, function(...) return past(resume(...)) end},
}

local function replace(which)
  for _, one in ipairs(REPLACED) do rawset(one[1], one[2], one[which]) end
end

--- Makes os.exit call tell(code) and raise exit.STOP, until exit.unwatch.
---@param tell fun(code: integer)
function exit.watch(tell)
  told = tell
  replace(4)
end

--- Restores the functions that exit.watch replaced.
function exit.unwatch() replace(3) end

return exit
-- SPDX-License-Identifier: MIT
