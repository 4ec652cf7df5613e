-- Kernels of the scripts, of the library and of cute.ops, directly and through
-- their own PTX: equal memory, faults, verdicts and traffic. differences.lua
-- lists what NVRTC changes.
local core = require "cute.core"
local differences = require "spec.ptx.differences"
local library = require "spec.ptx.library"
local roundtrip = require "spec.ptx.roundtrip"
local support = require "spec.support"

-- Scripts that are not compared. The paths of llama.lua and train.lua differ in
-- the last bits of sinf and cosf, those of train.lua also of expf. Gaps of a
-- view that train.lua's rope writes are reported as unwritten, because PTX gets
-- the view's memory as bytes.
local OTHERS = {ladder = true, copy_ladder = true, start = true, llama = true,
                train = true}
local SM90 = {copy_tma = true, gemm_hopper = true, gemm_tma = true,
              gemm_wgmma = true, gemm_ws = true, gemm_fp8_sm89 = true,
              attention_hopper = true,
              attention_backward_hopper = true}
-- The cases that `make test` runs, without verdicts. All cases are #long, with
-- the check of every schedule.
local SHORT = {}
for _, name in ipairs {"script copy_async", "script gemm3stage",
    "script softmax", "script histogram", "script topk", "script gemm_ws",
    "script copy_tma", "ops.gemm of 7 rows", "ops.reduce sum by row",
    "gemm_sm90, tiles by a counter in a cluster"} do
  SHORT[name] = true
end

local function scripts()
  local list = {}
  local p <close> = io.popen "ls scripts/*.lua"
  for path in p:lines() do
    local name = path:match "([%w_]+)%.lua$"
    if not OTHERS[name] then
      list[#list + 1] = {name = "script " .. name,
        archs = SM90[name] and {"sm_90a"} or {"sm_80", "sm_90a"},
        run = function(device)
          roundtrip.script(path, {"--device", "sim", "--arch",
                                  device:match "sm_.*"})
        end}
    end
  end
  return list
end

-- Describes what is wrong with a comparison, or returns nil.
local function complaint(case, pair)
  if not pair.equal then return pair.kernel .. ": memory differs" end
  for _, what in ipairs {"faults", "verdicts"} do
    local a, b = table.unpack(pair[what] or {})
    if a ~= b then
      return ("%s: %s '%s', through PTX '%s'"):format(pair.kernel, what, a, b)
    end
  end
  local direct, ptx = table.unpack(pair.unread)
  if ptx > direct then
    return ("%s: %d shared tensors are never read, through PTX %d"):format(
      pair.kernel, direct, ptx)
  end
  return differences.complaint(case, pair)
end

local function compare(case, arch, checks)
  local launches, wrong = 0, nil
  support.quietly(function()
    roundtrip.during(function() case.run("sim:" .. arch) end, function(pair)
      launches = launches + 1
      wrong = wrong or complaint(case.name, pair)
    end, checks)
  end)
  assert.is_nil(wrong, wrong)
  assert.is_true(launches > 0)
end

describe("our kernels through their own PTX:", function()
  if not core.jit_compile("extern \"C\" __global__ void k() {}",
                          "compute_80") then
    pending "needs NVRTC"
    return
  end
  local function always() return true end
  for _, cases in ipairs {scripts(), library} do
    for _, case in ipairs(cases) do
      for k, arch in ipairs(case.archs) do
        local name = ("%s for %s"):format(case.name, arch)
        if SHORT[case.name] and k == 1 then
          it(name, function() compare(case, arch) end)
        end
        it(name .. ", verdicts #long", function()
          compare(case, arch, always)
        end)
      end
    end
  end
end)
-- SPDX-License-Identifier: MIT
