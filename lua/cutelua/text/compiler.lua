--- Relates output of NVRTC and ptxas to source lines: the source lines of PTX,
-- the source lines in the log of a failed compilation, and the source lines
-- that made a compilation slow.
local core = require "cute.core"
local jit = require "cute.jit"

local compiler = {}

--- Returns the source line of each line of PTX, for PTX with line information;
-- false for lines without it. For inlined code, this is the source line of the
-- call.
---@param text string
---@return (integer|false)[]
function compiler.ptx_lines(text)
  local at, now, caller = {}, false, {}
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local place = line:match "^%s*%.loc%s+%d+%s+(%d+ %d+)"
    if place then
      local outer = line:match "inlined_at %d+ (%d+ %d+)"
      caller[place] = outer
      now = outer or place
      -- The loop follows inlined calls, up to 8 levels.
      for _ = 1, 8 do now = caller[now] or now end
      now = math.tointeger(now:match "%d+")
      now = now ~= 0 and now  -- line 0: the compiler made this code
    end
    at[#at + 1] = now
  end
  return at
end

-- Returns a log in which source lines replace PTX lines, because users never
-- see the PTX. If the log names PTX lines, the code is compiled again with line
-- information to map them.
local function with_source_lines(source, opts, log)
  local PTX = "ptxas application ptx input, line (%d+); ?"
  if not log:find(PTX) then return log end
  local options = {"-lineinfo"}
  table.move(opts.options or {}, 1, #(opts.options or {}), 2, options)
  local _, _, again = core.jit_compile(source, opts.arch, options, true)
  local ptx = core.jit_compile(source, (opts.arch:gsub("^sm", "compute")),
                               options, true)
  if not ptx or not again then return log end
  local at = compiler.ptx_lines(ptx.ptx or ptx.cubin)
  return (again:gsub(PTX, function(n)
    local line = at[math.tointeger(n)]
    return line and ("k.cu(%s): "):format(line) or nil
  end))
end

--- Adds the line of the first MMA to a log's warnings about warpgroup MMAs.
-- ptxas names no line if it serializes MMAs (C7510 to C7519) or if MMAs lack
-- registers (C7602).
---@param source string
---@param log string
---@return string
function compiler.with_wgmma_lines(source, log)
  local WGMMA = "ptxas %a+%s*: (%(C7[56]%d%d%))"
  if not log:find(WGMMA) then return log end
  local n, at = 0, nil
  for line in source:gmatch "([^\n]*)\n" do
    n = n + 1
    at = at or line:find "^%s+SM90_64x%d+x%d+_" and n
  end
  return at and (log:gsub(WGMMA, ("k.cu(%d): %%1"):format(at))) or log
end

--- Returns the message of a failed compilation, and its log with lines of the
-- script.
---@param source string
---@param opts table options of jit.compile
---@param name string the kernel's name
---@param log string
---@return string message
---@return string log
function compiler.failed_compile(source, opts, name, log)
  log = with_source_lines(source, opts, log)
  log = core.visible(jit.map_log(compiler.with_wgmma_lines(source, log), name,
                                 opts.lines), true)
  local what = log:match "[^\n]*error[^\n]*" or log:match "[^\n]+"
  return ("kernel '%s' does not compile for %s: %s [compile-failed]\n%s")
    :format(name, opts.arch, what, log), log
end

-- Replaces characters of a name that must not be written to a terminal.
local function plain(name) return (name:gsub("[^\x20-\x7e]", "?")) end

--- After a slow compilation, reports the lines of the script that produced most
-- of the generated code.
---@param name string the kernel's name
---@param seconds number
---@param lines? table<integer, string> line of the script, by line of the
-- generated code
function compiler.slow_compile(name, seconds, lines)
  local count, order = {}, {}
  for _, at in ipairs(lines or {}) do
    if at ~= "" and not count[at] then order[#order + 1] = at end
    if at ~= "" then count[at] = (count[at] or 0) + 1 end
  end
  table.sort(order, function(a, b)
    return count[a] > count[b] or count[a] == count[b] and a < b
  end)
  local parts = {}
  for i = 1, math.min(3, #order) do
    parts[i] = ("%d from %s"):format(count[order[i]], plain(order[i]))
  end
  io.stderr:write(("cutelua: kernel %s took %.1f s to compile%s\n"):format(
    name, seconds, #parts > 0 and (": %d lines of CUDA C, %s"):format(#lines,
    table.concat(parts, ", ")) or ""))
end

return compiler
-- SPDX-License-Identifier: MIT
