--- The child process that compiles for cutelua.cache.pool.
--
-- A request is a line of fields separated by tabs: compile, target, folder of
-- an image's cache or "", options separated by \x1f, source text. In fields,
-- the letters after a backslash stand for characters (escape). The answer is
-- the word done, the seconds, "1" if the code was in a cache, and notes about
-- the caches. If the compilation fails, the answer is the word fail and the
-- message.
local child = require "cutelua.tune.child"
local core = require "cute.core"

local worker = {}

local LETTER = {["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t",
                ["\r"] = "\\r"}
local CHARACTER = {["\\"] = "\\", n = "\n", t = "\t", r = "\r"}

--- Returns text as a field of a line.
---@param text string
---@return string
function worker.escape(text) return (text:gsub("[\\\n\t\r]", LETTER)) end

--- Returns the text of a field.
---@param field string
---@return string
function worker.unescape(field) return (field:gsub("\\(.)", CHARACTER)) end

-- The line break ends a line of the compiler's output that may be unfinished.
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
