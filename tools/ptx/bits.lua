-- Compares the results of the simulator with the results of the GPU that it
-- simulates, bit by bit: cutelua bits.lua CASE... Each CASE is a case.json that
-- compare.py --folder keeps. Prints a row for each output, and fails if an
-- output differs.
package.path = arg[0]:gsub("[^/]*$", "?.lua;") .. package.path
local read = require "case".read
local cute = require "cute"

-- Returns a text that states in how many words two buffers differ.
local function difference(sim, gpu)
  local same, first = sim:equal(gpu)
  if same then return "equal" end
  local n = 0
  for i = 0, sim.count - 1 do
    if sim:bytes(i, 1) ~= gpu:bytes(i, 1) then n = n + 1 end
  end
  return ("%d of %d elements differ; element %d is %s, on the GPU %s"):format(n,
    sim.count, first, sim[first], gpu[first])
end

local arch = cute.device "gpu".arch

local count, bad = 0, 0
for _, path in ipairs(arg) do
  local name = path:match "([^/]*)/[^/]*$" or path
  local ok, why = pcall(function()
    local case = read(path)
    local _, _, sim = case:launch {device = "sim:" .. arch}
    local _, _, gpu = case:launch {device = "gpu"}
    local outputs = {}
    for o in pairs(case.outputs) do outputs[#outputs + 1] = o end
    table.sort(outputs)
    for _, o in ipairs(outputs) do
      local text = difference(sim[o].buffer, gpu[o].buffer)
      count, bad = count + 1, bad + (text == "equal" and 0 or 1)
      print(("%-32s %-6s %s"):format(name, o, text))
    end
  end)
  if not ok then
    count, bad = count + 1, bad + 1
    print(("%-32s %s"):format(name, why))
  end
end
print(("%d outputs, %d differ"):format(count, bad))
os.exit(bad == 0)
-- SPDX-License-Identifier: MIT
