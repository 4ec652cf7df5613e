-- Every script's kernels, directly and through their own PTX: equal results.
local core = require "cute.core"
local roundtrip = require "spec.ptx.roundtrip"
local support = require "spec.support"

local LADDERS = {ladder = true, copy_ladder = true, start = true}
local SM90 = {copy_tma = true, gemm_hopper = true, gemm_tma = true,
              gemm_wgmma = true, gemm_ws = true, gemm_fp8_sm89 = true}

local function scripts()
  local list = {}
  local p <close> = io.popen "ls scripts/*.lua"
  for path in p:lines() do
    local name = path:match "([%w_]+)%.lua$"
    if not LADDERS[name] then list[#list + 1] = name end
  end
  return list
end

describe("our kernels through their own PTX", function()
  if not core.jit_compile("extern \"C\" __global__ void k() {}",
                          "compute_80") then
    pending "needs NVRTC"
    return
  end
  for _, name in ipairs(scripts()) do
    for _, arch in ipairs(SM90[name] and {"sm_90a"} or {"sm_80", "sm_90a"}) do
      it(("%s for %s"):format(name, arch), function()
        local launches = 0
        support.quietly(function()
          roundtrip.run(("scripts/%s.lua"):format(name), arch,
            {"--device", "sim", "--arch", arch}, function(kernel, n)
              launches = launches + 1
              if n > 0 then error(("%s: %d elements differ"):format(kernel, n))
              end
            end)
        end)
        assert.is_true(launches > 0)
      end)
    end
  end
end)
-- SPDX-License-Identifier: MIT
