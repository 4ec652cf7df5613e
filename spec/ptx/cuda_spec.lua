-- Kernels of CUDA C, compiled to PTX by NVRTC, read back and run on the
-- simulator at odd sizes; results against Lua, and no report of a fault.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.ptx.kernels"

local SIZES = {1, 63, 65, 125, 200}

local function launch(k, kernel, n, seed)
  local args, out, reference = k.args(n)
  local opts = kernels.launch(k, n)
  opts.device, opts.seed = "sim", seed
  kernel(table.unpack(args)):launch(opts)
  local y = type(out) == "number" and args[out] or out
  for i = 0, cute.size(y) - 1 do
    if y[i] ~= reference(i) then
      error(("%s, n = %d: element %d is %s, not %s"):format(k.name, n, i,
        tostring(y[i]), tostring(reference(i))))
    end
  end
end

describe("CUDA C through PTX", function()
  local texts = {}
  for i, k in ipairs(kernels) do texts[i] = kernels.source(k) end
  local module, why = core.jit_compile("", "compute_80")
  if not module and tostring(why):find "no%-nvrtc" then
    pending "needs NVRTC"
    return
  end
  for i, k in ipairs(kernels) do
    it("computes " .. k.name, function()
      local kernel = cute.cuda(texts[i]):kernel(k.name, {smem = k.smem})
      for _, n in ipairs(SIZES) do
        if n <= (k.most or n) then launch(k, kernel, n, n) end
      end
    end)

    it("finds nothing wrong in " .. k.name, function()
      local kernel = cute.cuda(texts[i]):kernel(k.name, {smem = k.smem})
      for seed = 1, 6 do launch(k, kernel, math.min(k.most or 65, 65), seed) end
    end)
  end
end)
-- SPDX-License-Identifier: MIT
