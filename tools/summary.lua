-- A busted output handler that shows failures in full. It writes "PASSED FAILED
-- PENDING" to the file that CUTE_SUMMARY names, then one line for each pending
-- test with what the test needs. Its argument is the list of excluded tags.

-- Returns what a pending test needs. This is "NVRTC" for "needs NVRTC" and for
-- "(needs NVRTC)".
local function need(text)
  return tostring(text):match "needs ([^()\n]+)" or "something else"
end

return function(options)
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()
  local tags = "," .. (options.arguments or {})[1] .. ","
  local needs = {}

  -- Subscribe only when the suite starts. busted's filters are subscribed
  -- earlier, and would otherwise hide these events.
  busted.subscribe({"suite", "start"}, function()
    for _, kind in ipairs {"describe", "it"} do
      busted.subscribe({"register", kind}, function(name)
        if name:find "#gpu" and tags:find ",gpu," then
          needs[#needs + 1] = "a GPU"
        end
        return nil, true
      end, {priority = 1})
    end
    return nil, true
  end)

  local function show(list, what)
    for _, r in ipairs(list) do
      io.write(("FAILED  %s: %s\n"):format(what, tostring(r.name)))
      local message = r.message
      if type(message) ~= "string" then message = tostring(message) end
      local at = r.trace and r.trace.short_src and ("%s:%s: "):format(
        r.trace.short_src, r.trace.currentline) or ""
      io.write("    ", (at .. message):gsub("\n", "\n    "), "\n")
    end
  end

  function handler.suiteEnd()
    show(handler.failures, "failure")
    show(handler.errors, "error")
    for _, r in ipairs(handler.pendings) do
      needs[#needs + 1] = need(("%s\n%s"):format(r.message, r.name))
    end
    local path = os.getenv "CUTE_SUMMARY"
    local f = path and io.open(path, "w")
    if f then
      f:write(handler.successesCount, " ",
        handler.failuresCount + handler.errorsCount, " ", #needs, "\n")
      for _, what in ipairs(needs) do f:write(what, "\n") end
      f:close()
    end
    return nil, true
  end

  busted.subscribe({"suite", "end"}, handler.suiteEnd)
  return handler
end
-- SPDX-License-Identifier: MIT
