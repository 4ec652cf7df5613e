--- A child process of the tuner that needs no GPU. It computes a candidate's
-- time from the candidate's name and the problem's sizes. $FAKE_TUNE makes
-- candidates misbehave. Its lines are "hang NAME", "crash NAME", "wrong NAME"
-- or "slow SECONDS".
local child = require "cutelua.tune.child"
local time = require "spec.tune.faketime"

local fake = {}

local function answer(...)
  io.stdout:write(child.MARK, table.concat({...}, "\t"), "\n")
  io.stdout:flush()
end

local does = {}
for line in (os.getenv "FAKE_TUNE" or ""):gmatch "[^\n]+" do
  local what, rest = line:match "^(%a+) (.*)$"
  does[what] = does[what] or {}
  does[what][rest] = true
end
does.hang, does.crash = does.hang or {}, does.crash or {}
does.wrong = does.wrong or {}

local VERBS = {}

function VERBS.card()
  answer("card", os.getenv "FAKE_CARD" or "NVIDIA H200", "sm_90a", "132")
end

function VERBS.compile() answer "done" end

function VERBS.measure(problem, _, _, _, cold, ...)
  for _, name in ipairs {...} do
    answer("begin", name)
    if does.hang[name] then repeat until false end
    if does.crash[name] then
      io.stderr:write "an illegal address\n"
      os.exit(9)
    end
    if does.wrong[name] then return answer("fail", name, "wrong: D(0,0)") end
  end
  for seconds in pairs(does.slow or {}) do
    os.execute("sleep " .. seconds)
  end
  for _, name in ipairs {...} do
    local t = ("%.2f"):format(time(problem, name))
    answer("time", name, t, cold == "true" and t or "-")
  end
  answer "done"
end

function fake.main()
  for line in io.lines() do
    local words = {}
    for word in (line .. "\t"):gmatch "([^\t]*)\t" do words[#words + 1] = word
    end
    VERBS[words[1]](table.unpack(words, 2))
  end
end

return fake
-- SPDX-License-Identifier: MIT
