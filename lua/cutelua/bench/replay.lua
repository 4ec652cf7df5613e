--- Times work on a GPU as launches of a graph.
--
--     local ms = replay.least(function() ops.gemm(A, B) end, "gpu")
local cute = require "cute"

local replay = {}

--- Captures f as a graph and returns the least time of a launch, in
-- milliseconds.
---@param f function
---@param device any
---@param n? integer launches after the first one: 3 when absent
---@return number
function replay.least(f, device, n)
  local where, least = {device = device}, math.huge
  local graph = cute.graph(f, where)
  for i = 0, n or 3 do
    local from, to = cute.event(device), cute.event(device)
    from:record()
    graph:launch()
    to:record()
    to:sync()
    if i > 0 then least = math.min(least, from:elapsed(to)) end
  end
  graph:close()
  return least
end

--- Returns the bandwidth of ops.copy in GB/s, reads plus writes. (The driver's
-- copy reaches only two thirds of it on an H200.)
---@param device any
---@return number
function replay.copy_speed(device)
  local where, n = {device = device}, 1 << 29
  local from <close> = cute.zeros({n}, cute.bf16, where)
  local to <close> = cute.empty({n}, cute.bf16, where)
  local ms = replay.least(function() cute.ops.copy(from, to, where) end, device,
                          10)
  return 2 * 2 * n / ms / 1e6
end

--- Calls f(ops), where `ops` has the functions of cute.ops, and times each call
-- of such a function. Returns the sum of the calls' least times in
-- milliseconds. A repeated call must give the same results.
---@param f function
---@param device any
---@return number
function replay.sum(f, device)
  local sum = 0
  f(setmetatable({}, {__index = function(_, name)
    local op = cute.ops[name]
    return function(...)
      local list = table.pack(...)
      sum = sum + replay.least(function()
        op(table.unpack(list, 1, list.n))
      end, device)
      return op(...)
    end
  end}))
  return sum
end

return replay
-- SPDX-License-Identifier: MIT
