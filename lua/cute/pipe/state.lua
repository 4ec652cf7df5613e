--- The states of cute.pipeline. A state holds the current stage of a ring, and
-- the parity of the current round.
--
-- A state is a table of numbers. A traced loop carries them from one iteration
-- to the next, like all fields that its body changes.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local states = {}

--- The names of the two kinds of users of stages, for make_pipeline_state.
states.PipelineUserType = {Producer = "producer", Consumer = "consumer"}

local State = {}
State.__index = State

--- Makes a position in a ring of stages. `index` is the number of the stage.
-- `phase` is the parity of the round, for which mbarriers wait. `count` is the
-- number of stages passed.
---@param stages integer
---@param count? any
---@param index? any
---@param phase? any
function states.PipelineState(stages, count, index, phase)
  if math.type(stages) ~= "integer" or stages < 1 then
    core.fail("bad-argument", "PipelineState: the number of stages must be a "
      .. "Lua integer of 1 or more, not " .. tostring(stages))
  end
  return setmetatable({stages = stages, count = count or 0,
                       index = index or 0, phase = phase or 0}, State)
end

--- Makes the initial state of a producer or consumer. A producer's phase is 1,
-- because it begins with empty stages and must not wait in its first round.
---@param type "producer"|"consumer" from PipelineUserType
---@param stages integer
function states.make_pipeline_state(type, stages)
  sign.one_of("make_pipeline_state", "user", type, "producer consumer")
  local state = states.PipelineState(stages, 0, 0,
                                     type == "producer" and 1 or 0)
  state.user = type
  return state
end

--- Returns a new state object at the same position.
function State:clone()
  local state = states.PipelineState(self.stages, self.count, self.index,
                                     self.phase)
  state.user = rawget(self, "user")
  return state
end

local function known_range(s)
  if not math.type(s.index) then core.assume(s.index, 0, s.stages - 1, 1) end
  if not math.type(s.phase) then core.assume(s.phase, 0, 1, 1) end
end

-- Moves state s by one stage: forward if `by` is 1, back if it is -1.
local function step(s, by)
  local next_index, phase = s.index + by, s.phase
  local edge = by > 0 and s.stages or -1
  local start = by > 0 and 0 or s.stages - 1
  local wraps = core.eq(next_index, edge)
  s.count = s.count + by
  s.index = core.where(wraps, start, next_index)
  s.phase = core.where(wraps, phase ~ 1, phase)
  known_range(s)
end

--- Advances to the next stage, or by `count` stages if other threads use the
-- stages in between.
---@param count? integer|cute.Value 0 or more
---@return table self
function State:advance(count)
  if count == nil or count == 1 then
    step(self, 1)
    return self
  end
  if math.type(count) and (math.type(count) ~= "integer" or count < 0) then
    core.fail("bad-argument", ("advance: %s stages"):format(tostring(count)))
  end
  local place = self.index + count
  local rounds = place // self.stages
  self.count = self.count + count
  self.index = place - rounds * self.stages
  self.phase = (self.phase ~ rounds) & 1
  known_range(self)
  return self
end

--- Moves back to the previous stage.
function State:reverse() step(self, -1) end

--- Resets the count to 0, but not the stage and the phase.
function State:reset_count() self.count = 0 end

function State:__tostring()
  return ("stage %s of %d, phase %s, count %s"):format(tostring(self.index),
    self.stages, tostring(self.phase), tostring(self.count))
end

sign.class("PipelineState", State,
  "clone() advance(count?: integer|value) reverse() reset_count()")

return sign.public("pipeline.", states, [[
  PipelineState(stages: integer, count?: integer|value, index?: integer|value,
    phase?: integer|value)
  make_pipeline_state(user: string, stages: integer)
]])
-- SPDX-License-Identifier: MIT
