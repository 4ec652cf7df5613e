-- Measures the debugger on scripts/gemm3stage.lua at 256^3. It measures the
-- seconds of a step back, by line and by instruction, from positions
-- distributed over the run. It also measures the seconds of a query for the
-- last change of an element.
local core = require "cute.core"
local cute = require "cute"
local random = require "spec.random"

local script = require "spec.lesson" "scripts/gemm3stage.lua"
local SIZE, PLACES = 256, 40

local t = {}
for i = 1, 3 do
  local b = core.buffer("bf16", SIZE * SIZE)
  if i < 3 then b:fill_normal(i) end
  t[i] = cute.make_tensor(b, cute.make_layout({SIZE, SIZE}, {SIZE, 1}))
end

local function spread(name, times)
  table.sort(times)
  print(("%-24s median %.1f ms, least %.1f, most %.1f (bar 200)"):format(name,
    times[#times // 2 + 1] * 1e3, times[1] * 1e3, times[#times] * 1e3))
end

cute.debug(script.kernel, t[1], t[2], t[3], {
  grid = (SIZE // script.tile[1]) * (SIZE // script.tile[2]),
  block = script.block}, function(s)
    local g = setmetatable({state = 7}, {__index = random.Gen})
    local function rng(lo, hi) return lo - 1 + g:r(hi - lo + 1) end
    while s:continue() do end
    local steps = s.at.step
    print(("%d instructions of warps"):format(steps))
    for _, how in ipairs {"back", "backi"} do
      local times = {}
      for i = 1, PLACES do
        s:go(rng(2, steps - 1))
        local from = core.clock()
        s[how](s)
        times[i] = core.clock() - from
      end
      spread(how, times)
    end
    local times = {}
    for i = 1, PLACES do
      s:go(steps - 1 - i)
      local from = core.clock()
      s:last(("mC(%d,%d)"):format(rng(0, SIZE - 1), rng(0, SIZE - 1)))
      times[i] = core.clock() - from
    end
    spread("last", times)
  end)
-- SPDX-License-Identifier: MIT
