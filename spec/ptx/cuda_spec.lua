-- Tests kernels of CUDA C, compiled to PTX by NVRTC, on the simulator at odd
-- sizes. Results are compared with Lua, and no fault may be reported.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.ptx.kernels"

local SIZES = {1, 63, 65, 125, 200}

-- Returns the arguments of a problem of size n, the options of its launch, and
-- a function that raises an error for a wrong result.
local function problem(k, n)
  local args, out, reference = k.args(n)
  local options = kernels.launch(k, n)
  options.device = "sim"
  local y = type(out) == "number" and args[out] or out
  return args, options, function()
    for i = 0, cute.size(y) - 1 do
      if y[i] ~= reference(i) then
        error(("%s, n = %d: element %d is %s, not %s"):format(k.name, n, i,
          tostring(y[i]), tostring(reference(i))))
      end
    end
  end
end

local function launch(k, kernel, n, seed)
  local args, options, verify = problem(k, n)
  options.seed = seed
  kernel(table.unpack(args)):launch(options)
  if args.behind then kernel(table.unpack(args.behind)):launch(options) end
  verify()
end

-- Runs a problem with 20 seeds. Then checks its launches under all schedules
-- or, if there are too many, under some of them.
local function every_schedule(k, kernel, n)
  for seed = 1, 4 do launch(k, kernel, n, seed) end
  local args, options, verify = problem(k, n)
  options.orders = k.racy and 200 or nil
  for _, values in ipairs {args, args.behind} do
    local call = kernel(table.unpack(values))
    local verdict = call:check(options)
    assert.is_true(verdict.verdict == "ok"
      or k.racy and verdict.verdict == "incomplete", tostring(verdict))
    options.orders = nil
    assert.same({}, call:launch(options):notes())
  end
  verify()
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

    it(("finds nothing wrong in any schedule of %s #long"):format(k.name),
      function()
        local kernel = cute.cuda(texts[i]):kernel(k.name, {smem = k.smem})
        for _, n in ipairs(SIZES) do
          if n <= (k.most or n) then every_schedule(k, kernel, n) end
        end
      end)
  end
end)
-- SPDX-License-Identifier: MIT
