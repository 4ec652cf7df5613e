--- Times a candidate, and its rival, on a GPU. The code of each runs once,
-- while its launches are recorded as a graph. Then the graphs are launched,
-- cold and hot, without running this code again. If the candidate leaves a
-- recorded stream unjoined, the driver raises an error.
local cute = require "cute"
local gpu = require "cutelua.bench.measure"

local timing = {}

-- Records the launches of `run` as a graph. Returns the graph, and a table of
-- the arguments by name. The tensors in the table are copies on the device.
local function graph_of(run, watch, fields, list, device)
  local own = {}
  for k, v in pairs(fields) do own[k] = v end
  for _, a in ipairs(list) do
    own[a.name] = fields[a.name]:to(device == "sim" and "host" or device)
  end
  return cute.graph(function() run(watch:arguments(own)) end,
                    {device = device}), own
end

-- Fills the outputs with zeros, launches the graph once, and returns the bytes
-- of each output by name.
local function launched(graph, own, fields, list)
  for _, a in ipairs(list) do
    if a.out then own[a.name]:fill(0) end
  end
  graph:launch()
  local outputs = {}
  for _, a in ipairs(list) do
    if a.out then
      if own[a.name] ~= fields[a.name] then
        fields[a.name]:copy_from(own[a.name])
      end
      outputs[a.name] = a.buffer:bytes()
    end
  end
  return outputs
end

local function seconds(result)
  return {cold = result.cold.median / 1e3, hot = result.hot.median / 1e3}
end

--- Runs a candidate. Returns the bytes of its outputs by name, and {differ =
-- whether a later launch had other outputs}. With o.timed, the table also has
-- times in seconds: {cold =, hot =, rival = {cold =, hot =}?}.
---@param candidate fun(a: table)
---@param watch table of cutelua.task.guard
---@param fields table arguments and sizes by name
---@param list table[] arguments in order
---@param o table {device: string, timed: boolean, rival: fun(a: table)?}
---@return table<string, string> outputs
---@return table times
function timing.run(candidate, watch, fields, list, o)
  local graph, own = graph_of(candidate, watch, fields, list, o.device)
  local outputs = launched(graph, own, fields, list)
  local function differ()
    for name, bytes in pairs(launched(graph, own, fields, list)) do
      if bytes ~= outputs[name] then return true end
    end
    return false
  end
  if not o.timed then return outputs, {differ = differ()} end
  local contestants = {{name = "candidate", launch = graph}}
  if o.rival then
    contestants[2] = {name = "rival",
      launch = (graph_of(o.rival, watch, fields, list, o.device))}
  end
  local found = assert(gpu.bench(contestants, {progress = false}))
  local times = seconds(found[1])
  times.rival = found[2] and seconds(found[2])
  times.differ = differ()
  return outputs, times
end

return timing
-- SPDX-License-Identifier: MIT
