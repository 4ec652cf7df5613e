--- Runs each launch of a script twice on the simulator: directly, and through
-- the PTX that NVRTC makes of its CUDA C. Results are compared bit for bit.
local core = require "cute.core"
local kernel = require "cute.lang.kernel"
local through = require "spec.ptx.through"

local roundtrip = {}

local Call = kernel.Call

local function copy_of(buffer)
  return core.buffer(buffer.dtype, #buffer):copy(buffer, 0, 0, #buffer)
end

-- Returns the buffers among a launch's arguments, by the argument's number.
local function buffers(values)
  local list = {}
  for i, v in ipairs(values) do
    if core.typename(v[1]) == "buffer" then list[i] = v[1] end
  end
  return list
end

local function copies(list)
  local out = {}
  for i, b in pairs(list) do out[i] = copy_of(b) end
  return out
end

local function restore(list, from)
  for i, b in pairs(list) do b:copy(from[i], 0, 0, #b) end
end

-- Returns the number of elements that differ; NaNs are equal.
local function differ(list, from)
  local n = 0
  for i, b in pairs(list) do
    local other = from[i]
    for k = 0, #b - 1 do
      local x, y = b[k], other[k]
      if x ~= y and (x == x or y == y) then n = n + 1 end
    end
  end
  return n
end

-- Returns the number of shared tensors that a run reports as never read.
local function unread(report)
  local n = 0
  for _, note in ipairs(report:notes()) do
    if note:find "never read" then n = n + 1 end
  end
  return n
end

--- Runs a script with every launch doubled; calls found(name, differences).
-- Raises if only the run through PTX has shared tensors that are never read.
---@param script string
---@param arch string
---@param words string[] arguments of the script
---@param found fun(name: string, differences: integer)
function roundtrip.run(script, arch, words, found)
  local compile, launch, busy = Call.compile, Call.launch, false
  local function twice(call, opts, first)
    if busy then return first() end
    local values = core.launch_values(call)
    local list = buffers(values)
    local before = copies(list)
    local result = table.pack(first())
    local direct = copies(list)
    restore(list, before)
    local all = {}
    for k, v in pairs(opts) do all[k] = v end
    all.device, all.arch = "sim:" .. arch, nil
    busy = true
    local ok, why = pcall(function()
      local text, smem = through.call(call, opts, arch)
      local k = through.kernel(text, smem)
      local r = assert(launch(k(through.arguments(values)), all))
      if unread(r) > unread(result[1]) then
        error("through PTX: shared memory that is never read", 0)
      end
    end)
    busy = false
    if not ok then error(why, 0) end
    found(call.kernel.name, differ(list, direct))
    restore(list, direct)
    return table.unpack(result, 1, result.n)
  end
  function Call.launch(call, opts)
    return twice(call, opts, function() return launch(call, opts) end)
  end
  function Call.compile(call, opts)
    local prepared, why = compile(call, opts)
    if not prepared or busy then return prepared, why end
    local run = prepared.launch
    rawset(prepared, "launch", function(self, own)
      return twice(call, opts or {}, function() return run(self, own) end)
    end)
    return prepared, why
  end
  local saved = arg
  _G.arg = table.move(words, 1, #words, 1, {[0] = script})
  local ok, why = pcall(assert(loadfile(script)), table.unpack(words))
  _G.arg, Call.compile, Call.launch = saved, compile, launch
  if not ok then error(why, 0) end
end

return roundtrip
-- SPDX-License-Identifier: MIT
