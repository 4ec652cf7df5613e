--- Returns the source of a function, for `name??` at the prompt: its lines, and
-- the comment above them. Functions written in C have no source here.
local core = require "cute.core"
local names = require "cutelua.doc.names"
local source = require "cute.lang.source"

local code = {}

-- Returns the line number at which the comment above a line of code begins; the
-- number of the line itself if there is no comment.
local function comment_above(chunk, line)
  local first = line
  while first > 1 and source.line(chunk, first - 1):find "^%s*%-%-" do
    first = first - 1
  end
  return first
end

-- Returns the function that value v stands for. For a kernel, this is the
-- traced function.
local function function_of(v)
  if type(v) ~= "table" then return type(v) == "function" and v or nil end
  local mt = debug.getmetatable(v)
  local kind = mt and rawget(mt, "__name")
  local kernel = kind == "kernel" and v
    or (kind == "call" or kind == "program") and rawget(v, "kernel")
  return kernel and kernel.func or nil
end

--- Returns the source of a function or a kernel; nil and the reason if it has
-- no source.
---@param v any
---@return string? text
---@return string? message
function code.text(v)
  local f = function_of(v)
  if not f then return nil, "no function or kernel has that name" end
  local info
  f, info = names.inner(f)
  if info.what == "C" then
    return nil, core.signature(f) and "a function of C"
      or "a function of Lua itself, in C"
  end
  local chunk, last = info.source, info.lastlinedefined
  local place = ("%s:%d"):format(chunk:match "^=%[(.*)%]$"
    or source.short(chunk), info.linedefined)
  if not source.line(chunk, math.max(last, 1)) then
    return nil, core.visible("the source of this function is not there: "
      .. place)
  end
  local out = {"-- " .. place}
  for n = comment_above(chunk, info.linedefined), last do
    out[#out + 1] = source.line(chunk, n)
  end
  return core.visible(table.concat(out, "\n"), true)
end

return code
-- SPDX-License-Identifier: MIT
