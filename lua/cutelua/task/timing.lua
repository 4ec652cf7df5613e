--- Times a candidate and its rival on a GPU. Each runs once, while a graph
-- records its launches; the graphs are then timed in turn, cold and hot. The
-- candidate's own code does not run meanwhile. A recorded stream that the
-- candidate did not join is an error of the driver.
local cute = require "cute"
local gpu = require "cutelua.bench.measure"

local timing = {}

-- Returns tensors on the GPU in place of those of a table of arguments.
local function on_gpu(fields, list)
  local out = {}
  for k, v in pairs(fields) do out[k] = v end
  for _, a in ipairs(list) do out[a.name] = fields[a.name]:to "gpu" end
  return out
end

-- Returns the graph of the launches of a function, and its arguments.
local function graph_of(run, watch, fields, list)
  local own = on_gpu(fields, list)
  return cute.graph(function() run(watch:arguments(own)) end,
                    {device = "gpu"}), own
end

--- Returns times in seconds {cold =, hot =, rival = {cold =, hot =}?}, and the
-- bytes of the outputs by name.
---@param candidate fun(a: table)
---@param rival? fun(a: table)
---@param watch table of cutelua.task.guard
---@param fields table arguments and sizes by name
---@param list table[] arguments in order
---@return table times
---@return table<string, string> outputs
function timing.run(candidate, rival, watch, fields, list)
  local graph, own = graph_of(candidate, watch, fields, list)
  local contestants = {{name = "candidate", launch = graph}}
  if rival then
    contestants[2] = {name = "rival",
                      launch = (graph_of(rival, watch, fields, list))}
  end
  local found = assert(gpu.bench(contestants, {progress = false}))
  local times = {cold = found[1].cold.median / 1e3,
                 hot = found[1].hot.median / 1e3}
  if rival then
    times.rival = {cold = found[2].cold.median / 1e3,
                   hot = found[2].hot.median / 1e3}
  end
  local outputs = {}
  for _, a in ipairs(list) do
    if a.out then
      a.buffer:copy(own[a.name]:to "host".buffer)
      outputs[a.name] = a.buffer:bytes()
    end
  end
  return times, outputs
end

return timing
-- SPDX-License-Identifier: MIT
