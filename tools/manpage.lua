-- manpage.lua: writes the man page as roff to standard output. `cutelua` runs
-- this script, which takes its texts from `cutelua --help`.
local environment = require "cutelua.doc.environment"
local program = require "cutelua.program.main"

local exe = arg[-1]

local function roff(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("\n%.", "\n\\&.")
    :gsub("^%.", "\\&."):gsub("'", "\\(aq"))
end

-- Returns what `cutelua WORDS --help` prints.
local function help(words)
  local p <close> = assert(io.popen(("'%s' %s --help"):format(exe, words)))
  return (p:read "a":gsub("%s+$", ""))
end

local out = {}
local function put(...)
  for _, line in ipairs {...} do out[#out + 1] = line end
end
local function verbatim(text) put(".nf", roff(text), ".fi") end
-- Returns a text as roff, with Markdown's code spans in bold.
local function words(text)
  return (roff(text):gsub("`([^`]+)`", "\\fB%1\\fR"))
end

put('.TH CUTELUA 1 "" "cutelua" "User Commands"',
  ".SH NAME", "cutelua \\- CuTe layouts, tensors and GPU kernels in Lua",
  ".SH SYNOPSIS", ".B cutelua", "[options] [script [arguments]]", ".br",
  ".B cutelua", ".I COMMAND", "\\&...", ".SH DESCRIPTION")
verbatim(help "")
put(".SH COMMANDS")
for _, row in ipairs(program.commands) do
  put(".SS " .. roff(row[1]))
  verbatim(help(row[1]))
end
put(".SH ENVIRONMENT")
for _, row in ipairs(environment) do
  if not row["for"] then
    put(".TP", ".B " .. roff(row[1]), words(row[2]))
  end
end
put(".SH FILES", ".TP", ".I ~/.cache/cutelua", "compiled kernels", ".TP",
  ".I ~/.local/state/cutelua/history", "lines of the prompt", ".TP",
  ".I ~/.local/share/cutelua/tuned", "what \\fBcutelua tune\\fR measured",
  ".SH EXAMPLES", ".nf", "cutelua scripts/gemm3stage.lua",
  "cutelua check scripts/gemm_tma.lua",
  "cutelua \\-e \\(aqprint(require(\\(dqcute\\(dq).layout(\\(dq(4,8):(8,1)"
    .. "\\(dq))\\(aq",
  ".fi", ".SH SEE ALSO",
  "The documents in \\fI/usr/share/doc/cutelua\\fR, or where they were "
    .. "installed.")
io.write(table.concat(out, "\n"), "\n")
-- SPDX-License-Identifier: MIT
