-- Compares random kernels on the simulator, bit for bit, with their emitted
-- text, which a C++ compiler compiles for the host. Usage: `kernels.lua SECONDS
-- [SEED]`. On a difference the script shrinks the program and prints it with
-- its text. The exit code is then 1. `kernels.lua 0 SEED` prints the program of
-- one seed.
package.path = "./?.lua;" .. package.path
local random = require "spec.random"

local BATCH = 20  -- number of programs in one compilation
local seconds = tonumber(arg[1]) or 60
local seed = tonumber(arg[2]) or os.time() * 1000

if not require "spec.cudahost".compiler() then
  io.stderr:write("make fuzz needs a C++ compiler (apt-get install g++)\n")
  os.exit(1)
end

-- Returns the class of a failure: the kind in its message, such as "[race]";
-- "simulator" for a difference from the simulator; or "error".
local function sort_of(wrong)
  return wrong and (wrong:match "%[[%l-]+%]" or wrong:match "simulator"
    or "error")
end

local function show(p, wrong)
  print(("seed %d: %s"):format(p.seed, wrong))
  random.shrink(p, function(q)
    return sort_of(random.host {q}[1]) == sort_of(wrong)
  end)
  print("shrunk: " .. tostring(random.host {p}[1]))
  print(random.text(p))
  local ok, text = pcall(random.cuda, p)
  if ok then print(text) end
end

if seconds == 0 then
  local p = random.program(seed)
  print(random.text(p))
  print(random.cuda(p))
end
local stop, count = os.time() + seconds, 0
repeat
  local batch = {}
  for i = 1, seconds == 0 and 1 or BATCH do
    batch[i] = random.program(seed)
    seed = seed + 1
  end
  for i, wrong in ipairs(random.host(batch)) do
    if wrong then
      show(batch[i], wrong)
      os.exit(1)
    end
  end
  count = count + #batch
until os.time() >= stop
print(("kernels: %d programs, text and simulator agree"):format(count))
-- SPDX-License-Identifier: MIT
