-- A busted output handler: failures in full, then one line for the file.
-- Writes "PASSED FAILED" to the file that CUTE_SUMMARY names.

return function(options)
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()
  local started = os.time()

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
    local passed = handler.successesCount
    local failed = handler.failuresCount + handler.errorsCount
    show(handler.failures, "failure")
    show(handler.errors, "error")
    for _, r in ipairs(handler.pendings) do
      io.write("pending ", tostring(r.name), "\n")
    end
    io.write(("%s  %s: %d passed, %d failed, %d pending, %d s\n"):format(
      failed == 0 and "ok    " or "FAILED",
      table.concat(options.arguments or {}, " "), passed, failed,
      handler.pendingsCount, os.time() - started))
    local path = os.getenv "CUTE_SUMMARY"
    local f = path and io.open(path, "w")
    if f then
      f:write(passed, " ", failed, "\n")
      f:close()
    end
    return nil, true
  end

  busted.subscribe({"suite", "end"}, handler.suiteEnd)
  return handler
end
