--- Makes a kernel on a GPU store clock values: the times at which its ranges
-- (cute.arch.range) and its warps begin and end.
local core = require "cute.core"
local cute = require "cute"
local ranges = require "cute.arch.ranges"

local clocks = {}

local STRONG = {sem = "relaxed", scope = "cta"}

local function lowest(arch)
  return core.eq(arch.activemask() & arch.lanemask_lt(), 0)
end

-- Number of words at the start of each warp's part of the buffer; events follow
-- them. The words hold: the number of events; globaltimer and clock64 when the
-- warp begins; the same two when it ends; the index of the SM.
clocks.HEAD = 6

--- Decodes the word of an event, which is never 0. Returns the number that
-- stands for the range's name, whether the event ends the range, and the lower
-- 32 bits of the clock.
---@param word integer
---@return integer, boolean, integer
function clocks.event(word)
  return word >> 16 & 0x7fff, word >> 31 & 1 == 1, word >> 32
end

local Plan = {__closed = true}  -- traces do not record its fields
Plan.__index = Plan

--- Makes a plan. A kernel that is traced with the plan stores clock values in a
-- buffer of i64 elements, at most `room` events for each warp.
---@param room integer
---@param warps integer warps of a block
function clocks.plan(room, warps)
  return setmetatable({room = room, warps = warps, names = {}, number = {}},
                      Plan)
end

-- Returns the index of this warp's first word in the buffer, and the warp's
-- index in its block.
local function place(self)
  local arch = require "cute.arch"
  local bx, by, bz = arch.block_idx()
  local gx, gy = arch.grid_dim()
  local block = bx + gx * (by + gy * bz)
  local tx, ty, tz = arch.thread_idx()
  local nx, ny = arch.block_dim()
  local warp = (tx + nx * (ty + ny * tz)) // 32
  return (block * self.warps + warp) * (clocks.HEAD + self.room), warp
end

-- Stores globaltimer and clock64 at elements `at` + 1 and `at` + 2 of the
-- buffer. Only one lane of the warp executes this code.
local function stamp(self, at)
  local arch = require "cute.arch"
  self.buffer[at + 1] = arch.globaltimer()
  self.buffer[at + 2] = arch.clock64()
end

function Plan:begin(buffer)
  local arch = require "cute.arch"
  self.buffer = buffer
  self.counter = cute.make_smem_tensor(cute.i32,
    cute.make_layout {self.warps}, 4)
  local at, warp = place(self)
  cute.when(lowest(arch), function()
    self.counter[warp] = 0
    stamp(self, at)
    self.buffer[at + 5] = arch.smid():to(cute.i64)
  end)
  arch.sync_warp()
  ranges.plan = self
end

function Plan:finish()
  local arch = require "cute.arch"
  ranges.plan = nil
  local at, warp = place(self)
  arch.sync_warp()
  cute.when(lowest(arch), function()
    stamp(self, at + 2)
    self.buffer[at] = self.counter[warp]:to(cute.i64)
  end)
end

--- Removes the current plan after a trace, whether the trace succeeded or not.
function clocks.forget() ranges.plan = nil end

-- Returns the number that stands for a range's name in events, counted from 0.
local function number_of(self, name)
  if not self.number[name] then
    self.names[#self.names + 1] = name
    self.number[name] = #self.names - 1
  end
  return self.number[name]
end

--- Stores an event of this warp; the warp's lowest active lane does so. The
-- range excludes the time that storing takes: the clock is read last at the
-- range's begin, and first at its end.
function Plan:record(name, ends)
  local arch = require "cute.arch"
  local word = number_of(self, name) << 16 | (ends and 1 << 31 or 0) | 1
  cute.when(lowest(arch), function()
    local before = ends and arch.clock()
    local at, warp = place(self)
    local mine = self.counter.iterator + warp
    local n = arch.load(mine, cute.i32, STRONG)
    arch.store(mine, n + 1, STRONG)
    cute.when(core.lt(n, self.room), function()
      local time = before or arch.clock()
      self.buffer[at + clocks.HEAD + n] = time:to(cute.i64) << 32 | word
    end)
  end)
end

return clocks
-- SPDX-License-Identifier: MIT
