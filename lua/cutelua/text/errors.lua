--- Formats errors. The text has at most a dozen lines: the message, its
-- position, the lines of source around it, the operands and one suggestion.
--
-- An error of cutelua is the string "file:line: sentence [kind]\noperands".
-- Other errors have no kind and get the kind [lua]: errors of Lua itself,
-- errors of scripts, and errors that are not strings. `errors.capture` is the
-- message handler, which records the stack. `errors.format` makes the text.
local core = require "cute.core"
local libraries = require "cutelua.text.libraries"
local report = require "cute.lang.report"
local source = require "cute.lang.source"

local errors = {}

local MAX_LINES = 12
local MAX_FRAMES = 40

-- Loads, on the first call, the module that explains lines rejected by Lua.
local function suggest() return require "cutelua.text.suggest" end

local function frame_name(info)
  local name = source.names[info.func]
  if name then return name end
  if info.what == "main" then return "main chunk" end
  if info.name and info.name ~= "?" then return info.name end
  return ("function of line %d"):format(info.linedefined)
end

-- Returns the advice that is printed for every error of this kind; nil if there
-- is none.
local function cure_of(kind)
  local row = require "cute.lang.kinds".ERRORS[kind]
  return row and row.cure
end

-- The failure that errors.keep recorded most recently.
local kept

-- Returns an error without the positions of calls that resumed a coroutine.
-- coroutine.wrap adds such a position even if the error has one already.
local function without_resumes(err)
  if type(err) ~= "string" then return err end
  local inner = err:match "^[^%s:]+:%d+: ([^%s:]+:%d+: .*)$"
  return inner and without_resumes(inner) or err
end

--- Records an error and the stack. xpcall uses this function as its message
-- handler.
---@param err any
---@param above? integer number of innermost functions to leave out
---@return table failure
function errors.capture(err, above)
  libraries.restore()
  above, err = above or 0, without_resumes(err)
  if kept and kept.value == err then
    local failure = kept
    kept = nil
    return failure
  end
  local failure = {value = err, frames = {}}
  if type(err) == "string" then
    failure.message = err
  else
    local mt = debug.getmetatable(err)
    local text = mt and mt.__tostring and tostring(err)
    failure.message = text
      or ("error object is a %s value"):format(type(err))
  end
  failure.message = suggest().module(failure.message)
  local seen
  for level = 2 + above, MAX_FRAMES do
    local info = debug.getinfo(level, "Slnf")
    if not info then break end
    if info.currentline > 0 then
      local frame = {
        source = info.source, short = info.short_src,
        line = info.currentline, name = frame_name(info),
        own = core.own_source(info.source)}
      failure.frames[#failure.frames + 1] = frame
      if not frame.own and not seen then
        seen = true
        local more = suggest().value(failure.message, level, frame)
        if more then
          failure.message = failure.message:gsub("^[^\n]*", function(first)
            return first .. "\n  " .. more
          end)
        end
      end
    end
  end
  failure.traceback = debug.traceback("", 2 + above):gsub("^\n", "")
  return failure
end

--- Keeps the stack of an error that a pcall is about to discard. If the same
-- error is raised again, errors.capture uses this stack. If `err` is nil, the
-- kept stack is discarded.
---@param err any
---@param kernel? string name of the kernel that was being traced
---@return any err
function errors.keep(err, kernel)
  kept = nil
  if err == nil then return end
  local failure = errors.capture(err, 1)
  failure.kernel = kernel
  kept = failure
  return err
end

local function at_line(file, line)
  local chunk = "=" .. file
  if not source.text(chunk) then chunk = "@" .. file end
  return {source = chunk, short = file, line = line}
end

-- Returns the stack frame of the user's code to which an error is attributed.
-- It is the frame that the error's position or sentence names, as in "the
-- comparison at script.lua:3", else the innermost frame outside of cutelua.
local function blamed(failure, parts)
  if not parts.file then
    local file, line = parts.sentence:match "%f[%a]at (%S+):(%d+)%f[%D]"
    local named = file and at_line(file, math.tointeger(line))
    if named and source.line(named.source, named.line) then return named end
  end
  local first
  for _, frame in ipairs(failure.frames or {}) do
    if not frame.own and frame.short == parts.file
        and frame.line == parts.line then
      return frame
    end
    if not frame.own and not first then first = frame end
  end
  if parts.file and parts.file:find "^%[cute" then return first end
  if not parts.file then return first end
  local frame = at_line(parts.file, parts.line)
  frame.name = failure.kernel and "kernel " .. failure.kernel
  return frame
end

local function excerpt(frame)
  local lines, width = {}, #tostring(frame.line + 1)
  if not source.line(frame.source, frame.line) then return lines end
  for n = frame.line - 1, frame.line + 1 do
    local text = source.line(frame.source, n)
    if text and (text ~= "" or n == frame.line) then
      if #text > 100 then text = text:sub(1, 97) .. "..." end
      lines[#lines + 1] = (" %s %" .. width .. "d | %s")
        :format(n == frame.line and ">" or " ", n, text)
    end
  end
  return lines
end

local function place(frame)
  local text = ("  %s:%d"):format(frame.short, frame.line)
  return frame.name and text .. " in " .. frame.name or text
end

local function add_all(out, list, limit)
  for i, text in ipairs(list) do
    if i == limit and #list > limit then
      out[#out + 1] = ("    ... %d more lines"):format(#list - limit + 1)
      return
    end
    out[#out + 1] = "    " .. text
  end
end

-- First words of advice in a message. If a message has a line that begins with
-- such a word, no general suggestion is added.
local ADVICE = {write = true, use = true, branch = true, nearest = true,
  predicate = true, choose = true, declare = true, convert = true,
  call = true, pass = true, try = true, ["did"] = true, fewer = true}

local function has_advice(lines)
  for _, line in ipairs(lines) do
    if ADVICE[line:match "^%s*(%a+)"] then return true end
  end
  return false
end

-- Returns the lines of a simulator's report, without faults that may be
-- consequences of other faults.
local function leaders(rest)
  local out, folded = {}, false
  for _, line in ipairs(rest) do
    local more = line:match "^(    %d+ more may follow from it):$"
    folded = folded or more
    if not line:find "^      " then out[#out + 1] = more or line end
  end
  return out, folded
end

-- Labels that precede the second position of a fault in a simulator's report.
local OTHER = {["the other"] = true, ["first access"] = true,
               ["second access"] = true}

-- Adds the faults of a simulator's report, in at most `limit` lines: the first
-- fault with all details, and only the sentences of the others.
local function add_faults(out, rest, limit)
  local folded
  if limit < math.huge then rest, folded = leaders(rest) end
  if #rest + (folded and 1 or 0) <= limit then
    add_all(out, rest, limit)
    if folded then
      out[#out + 1] = "    ... " .. cure_of "kernel-fault"
    end
    return
  end
  local first, others = {}, {}
  for i, line in ipairs(rest) do
    local what, other = line:match "^%s+([%l ]+): ([^,]+)"
    if i > 1 and not line:find "^ " then
      others[#others + 1] = line
    elseif #others == 0 then
      first[#first + 1] = line
    elseif OTHER[what] and not other:find "^block " then
      others[#others] = ("%s, %s: %s"):format(others[#others], what, other)
    end
  end
  add_all(out, first, limit - 1)
  local room = limit - 1 - math.min(#first, limit - 1)
  for i = 1, math.min(room, #others) do out[#out + 1] = "    " .. others[i] end
  local more = #others - room
  out[#out + 1] = "    ... " .. (more > 0 and report.plural(more, "more fault")
    .. "; " or "") .. cure_of "kernel-fault"
end

-- Returns an error's kind: "lua" for errors of Lua and of scripts, nil for an
-- interruption by the user.
local function kind_of(parts)
  return parts.kind or parts.sentence ~= "interrupted" and "lua" or nil
end

local function hint_of(parts)
  return not has_advice(parts.rest) and cure_of(parts.kind) or nil
end

local function misuse(failure, parts, out, max)
  local frame = blamed(failure, parts)
  if frame then out[#out + 1] = place(frame) end
  -- No source lines are added here: the report names the lines of each fault
  -- itself.
  if parts.kind == "kernel-fault" then
    add_faults(out, parts.rest, max - #out)
    return
  end
  for _, line in ipairs(frame and excerpt(frame) or {}) do
    out[#out + 1] = line
  end
  local hint = hint_of(parts)
  if frame and not parts.kind then
    local advice = suggest().syntax(parts.sentence, frame)
    parts.rest[#parts.rest + 1] = advice and "  " .. advice
  end
  add_all(out, parts.rest, max - #out - (hint and 1 or 0))
  if hint then out[#out + 1] = "  hint: " .. hint end
end

--- Returns the text of a failure, in at most a dozen lines. With opt.traceback,
-- returns all lines, followed by Lua's traceback.
---@param failure table|string of errors.capture, or a bare message
---@param opt? {traceback: boolean?, prefix: string?}
---@return string
function errors.format(failure, opt)
  opt = opt or {}
  if type(failure) ~= "table" or not failure.message then
    failure = {message = tostring(failure), frames = {}}
  end
  local parts = report.parse(failure.message)
  local kind = kind_of(parts)
  local tag = kind and " [" .. kind .. "]" or ""
  local out = {(opt.prefix or "") .. parts.sentence:gsub(":$", "") .. tag}
  local max = opt.traceback and math.huge or MAX_LINES
  if report.world[parts.kind] then
    local done = parts.kind == "driver-error"
      -- For a failed launch, add the line of the script that launched the
      -- kernel.
      or parts.sentence:find "^kernel "
    local frame = done and parts.line and blamed(failure, parts)
    if frame then out[2] = place(frame) end
    add_all(out, parts.rest, max - #out)
  elseif parts.sentence == "interrupted" then
    local frame = blamed(failure, parts)
    if frame then out[2] = place(frame) end
  else
    misuse(failure, parts, out, max)
  end
  if opt.traceback and failure.traceback then
    out[#out + 1] = failure.traceback
  end
  return table.concat(out, "\n")
end

--- Returns a failure as data, for programs that display it themselves: the
-- sentence, the user's line to which it belongs, the suggestion, and the text
-- that errors.format returns.
---@param failure table of errors.capture
---@return table told {message =, kind =, file =, line =, chunk = the line's
-- chunk name, hint =, text =}
function errors.told(failure)
  local parts = report.parse(failure.message)
  local frame = blamed(failure, parts)
  local hint = parts.kind ~= "kernel-fault" and hint_of(parts) or nil
  return {message = core.visible(parts.sentence, true), kind = kind_of(parts),
    file = frame and frame.short, line = frame and frame.line, hint = hint,
    chunk = frame and frame.source, text = errors.format(failure)}
end

report.keep = errors.keep

--- Returns the exit code of a program that a failure ends: 130 if the user
-- interrupted it, else 1.
---@param failure table|string of errors.capture, or a bare message
---@return integer
function errors.exit_code(failure)
  local text = type(failure) == "table" and failure.message or nil
  return text and text:find "%f[%a]interrupted$" and 130 or 1
end

return errors
-- SPDX-License-Identifier: MIT
