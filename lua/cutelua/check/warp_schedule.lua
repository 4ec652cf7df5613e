--- Converts a schedule that reproduces a bug to text and to a file. The text
-- lists the turns (scheduling steps) and their lines; `cutelua check --replay
-- FILE` runs the file.
local core = require "cute.core"
local explore = require "cutelua.check.explore"
local source = require "cute.lang.source"

local warp_schedule = {}

local HEAD = "cutelua schedule 1"

--- Returns a bug's schedule: {kernel =, cluster =, turns = {{warp, agent},
-- ...}, path = the source line of each turn, switches = how often consecutive
-- turns belong to different warps}.
---@param result table of explore
---@param name string the kernel's name
function warp_schedule.of(result, name)
  local order = (result.report.orders or {})[1]
  local path = order and order.path or {}
  local turns = explore.words(result.turns)
  return {kernel = name, cluster = result.cluster, turns = turns,
          path = table.move(path, 1, #turns, 1, {}),
          switches = order and order.switches or 0}
end

local function who(turn)
  if turn.agent then
    return ("warp %d's asynchronous operation %d "
      .. "completes"):format(turn.warp, turn.agent)
  end
  return ("warp %d"):format(turn.warp)
end

local function where(turn)
  return turn.line and ("%s:%d"):format(source.short(turn.file or "?"),
    turn.line) or "?"
end

-- Divides the path of a schedule into stretches: consecutive turns of one warp,
-- or of one agent such as the TMA unit. Returns a list of stretches {who =
-- description, "FILE:LINE", ...}.
local function stretches(path)
  local list = {}
  for _, turn in ipairs(path) do
    local last = list[#list]
    if last and last.who == who(turn) then last[#last + 1] = where(turn)
    else list[#list + 1] = {who = who(turn), where(turn)} end
  end
  return list
end

--- Returns the schedule as lines of text.
---@return string[]
function warp_schedule.told(s)
  if #s.turns == 0 then
    return {"schedule: one warp after the other; asynchronous operations "
      .. "complete when no warp can continue"}
  end
  local MOST, list = 20, stretches(s.path)
  local text = {("schedule: %d steps, then one warp after the other")
    :format(#s.turns)}
  for i, one in ipairs(list) do
    if i > MOST then
      text[#text + 1] = ("  ... %d more"):format(#list - MOST)
      break
    end
    local last = one[#one]
    text[#text + 1] = ("  %s: %s%s"):format(one.who, one[1],
      #one > 1 and (" ... %s (%d turns)"):format(last, #one) or "")
  end
  return text
end

--- Returns the text of a schedule file: schedule s of the script's nth launch.
function warp_schedule.text(s, nth)
  local list = {HEAD, "kernel " .. s.kernel, "launch " .. nth,
                s.cluster and "cluster " .. s.cluster or "cluster all"}
  for i, turn in ipairs(s.turns) do
    local at = s.path[i] and "  # " .. where(s.path[i]) or ""
    list[#list + 1] = turn[1] .. (turn[2] > 0 and ":" .. turn[2] or "") .. at
  end
  return table.concat(list, "\n") .. "\n"
end

--- Parses the text of a schedule file; returns nil and a message if it is
-- invalid.
---@return table? schedule, string? message
function warp_schedule.parse(text, name)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  local function bad(i)
    return nil, ("%s:%d: this is not a schedule saved by `cutelua check`: "
      .. "'%s'"):format(name, i,
      core.visible(lines[i] or ""))
  end
  if lines[1] ~= HEAD then return bad(1) end
  local s = {turns = {}}
  s.kernel = (lines[2] or ""):match "^kernel ([%w_]+)$"
  s.nth = math.tointeger((lines[3] or ""):match "^launch (%d+)$")
  local cluster = (lines[4] or ""):match "^cluster (%w+)$"
  s.cluster = math.tointeger(cluster)
  if not s.kernel then return bad(2) end
  if not s.nth then return bad(3) end
  if not (s.cluster or cluster == "all") then return bad(4) end
  for i = 5, #lines do
    local warp, rest = lines[i]:match "^(%d+)(.*)$"
    local agent = rest and rest:match "^:(%d+)"
    local good = rest and (rest:gsub("^:%d+", "")):match "^%s*#?"
    if not warp or not good or #warp > 9 or #(agent or "") > 9 then
      return bad(i)
    end
    s.turns[#s.turns + 1] = {math.tointeger(warp), math.tointeger(agent or 0)}
  end
  return s
end

return warp_schedule
-- SPDX-License-Identifier: MIT
