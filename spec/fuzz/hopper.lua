-- Runs two alternating tests of Hopper kernels on the simulator. Usage:
-- `hopper.lua SECONDS [SEED]`. First, a kernel of spec/ours.lua runs at 12 odd
-- sizes and must have right results without reports. Then kernels/gemm_sm90
-- runs with a planted fault (spec/planted.lua) and must have a report.
package.path = "./?.lua;" .. package.path
local ours = require "spec.ours"
local planted = require "spec.planted"

local seconds = tonumber(arg[1]) or 60
local seed = tonumber(arg[2]) or os.time()
local EDGES = {1, 7, 8, 63, 64, 65, 127, 128, 129, 255, 256, 257}

local function fail(what, size, why)
  print(("seed %d: %s, %s: %s"):format(seed, what, table.concat(size, "x"),
                                       why))
  os.exit(1)
end

-- Returns a random extent; half of them are near a multiple of a tile's extent.
local function extent(most)
  if math.random(2) == 1 then return EDGES[math.random(#EDGES)] end
  return math.random(most)
end

local function clean(kernel)
  for i = 1, 12 do
    -- In half of the sizes, rows are multiples of 16 bytes, as TMA requires.
    local by = i % 2 == 0 and 8 or 1
    local size = {extent(400), extent(50) * by, extent(50) * by}
    local wrong = kernel.wrong(size, seed * 12 + i)
    if wrong then fail(kernel.name, size, wrong) end
  end
  return 12
end

local function told(fault)
  local gemm, texts = planted.kernel(fault[2])
  for _, name in ipairs(fault[3]) do
    local size = {math.random(257, 400), math.random(130, 300),
                  math.random(33, 80) * 8}
    local r = planted.run(gemm(planted.CHOICES[name]), size, seed)
    local why = planted.untold(fault, r, texts)
    if why then
      fail(fault[1] .. ", " .. name, size, why .. "\n" .. tostring(r))
    end
  end
  return #fault[3]
end

local stop, right, wrong = os.time() + seconds, 0, 0
repeat
  math.randomseed(seed)
  right = right + clean(ours[seed % #ours + 1])
  wrong = wrong + told(planted.FAULTS[seed % #planted.FAULTS + 1])
  seed = seed + 1
until os.time() >= stop
print(("hopper: %d launches right and clean, %d faults told"):format(right,
  wrong))
-- SPDX-License-Identifier: MIT
