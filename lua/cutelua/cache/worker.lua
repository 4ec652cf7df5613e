--- The child process that compiles kernels for cutelua.cache.pool.
--
-- A request is a line of fields separated by tabs. The fields are: compile,
-- target, folder of an image's cache or "", options separated by \x1f, source
-- text. Tabs, line breaks and backslashes in a field are escaped by a backslash
-- and a letter (worker.escape).
--
-- An answer has the fields: done, seconds, "1" if the code was in a cache,
-- notes about the caches. If the compilation fails, the fields are: fail,
-- message.
local child = require "cutelua.tune.child"
local core = require "cute.core"

local worker = {}

local LETTER = {["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t",
                ["\r"] = "\\r"}
local CHARACTER = {["\\"] = "\\", n = "\n", t = "\t", r = "\r"}

--- Escapes text so that it can be a field of a line.
---@param text string
---@return string
function worker.escape(text) return (text:gsub("[\\\n\t\r]", LETTER)) end

--- Returns the text that worker.escape converted to a field.
---@param field string
---@return string
function worker.unescape(field) return (field:gsub("\\(.)", CHARACTER)) end

-- Prints an answer. The line break before it ends any unfinished line of the
-- compiler's output.
local function answer(...)
  io.stdout:write("\n", child.MARK, table.concat({...}, "\t"), "\n")
  io.stdout:flush()
end

--- Answers the requests on standard input until its end.
function worker.main()
  for line in io.lines() do
    local f = child.fields(line)
    for i, field in ipairs(f) do f[i] = worker.unescape(field) end
    local options = {}
    for o in f[4]:gmatch "[^\x1f]+" do options[#options + 1] = o end
    local out, why = core.jit_compile(f[5], f[2], options, false, nil, nil,
      nil, f[3] ~= "" and f[3] or nil)
    if out then
      answer("done", ("%.3f"):format(out.seconds), out.cached and "1" or "0",
             worker.escape(table.concat(out.notes, "\n")))
    else
      answer("fail", worker.escape(why))
    end
  end
end

return worker
-- SPDX-License-Identifier: MIT
