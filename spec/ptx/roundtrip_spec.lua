-- Tests kernels of the scripts, of the library and of cute.ops through their
-- own PTX. Memory, faults, verdicts and traffic must equal those of direct
-- runs. differences.lua lists what NVRTC changes.
local core = require "cute.core"
local differences = require "spec.ptx.differences"
local library = require "spec.ptx.library"
local odd = require "spec.odd"
local roundtrip = require "spec.ptx.roundtrip"
local support = require "spec.support"

-- Arguments for scripts whose default problems are too large, or have too many
-- schedules to run all.
local WORDS = {
  copy_ladder = {"--m", "128", "--n", "128"},
  gemm_splitk = {"--splits", "2"},
  ladder = {"--sizes", "128"},
  llama = {"--batch", "2", "--prompt", "5", "--tokens", "3", "--top-k", "4"},
  train = {"--steps", "1", "--batch", "2", "--length", "4"}}
local SM90 = {copy_tma = true, gemm_hopper = true, gemm_tma = true,
              gemm_wgmma = true, gemm_ws = true, gemm_fp8_sm89 = true,
              attention_hopper = true, attention_backward_hopper = true,
              conv2d_hopper = true, ladder = true, start = true}
-- Cases that `make test` runs; all others are #long. Every second case also
-- checks all schedules.
local SHORT = {}
for _, name in ipairs {"script copy_async", "script gemm3stage",
    "script softmax", "script histogram", "script topk", "script gemm_ws",
    "script copy_tma", "script gemm_tcgen05", "script gemm_clc",
    "ops.gemm of 7 rows", "ops.reduce sum by row",
    "gemm_sm90, tiles by a counter in a cluster",
    "sparse product of bf16 in registers"} do
  SHORT[name] = 1  -- only the first architecture
end
-- Runs only with sm_90a, the second architecture, for which the kernel builds
-- tensor maps.
SHORT["ops.grouped_gemm of a list"] = 2

local function scripts()
  local list = {}
  local p <close> = io.popen "ls scripts/*.lua"
  for path in p:lines() do
    local name = path:match "([%w_]+)%.lua$"
    local case = {name = "script " .. name,
      archs = odd.ARCHS[name]
        or (SM90[name] or #list % 2 == 0) and {"sm_90a"} or {"sm_80"},
      run = function(device)
        local words = {"--device", "sim", "--arch", device:match "sm_.*"}
        local own = WORDS[name] or {}
        roundtrip.script(path, table.move(own, 1, #own, #words + 1, words))
      end}
    list[#list + 1] = case
  end
  return list
end

-- Describes a difference that differences.lua does not list, or returns nil.
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

-- Returns a function for roundtrip.during that decides whether the verdicts of
-- a launch are compared. They are not if the set `seen` has a launch with the
-- same PTX and sizes, such as the launch for the preceding architecture. For
-- most kernels, the PTX of sm_80 and of sm_90a differs only in the line
-- `.target`.
local function unless_seen(seen)
  return function(launch, ptx)
    local words = {(ptx:gsub("%.target [^\n]*", ""))}
    for _, list in ipairs {launch.grid, launch.block} do
      table.move(list, 1, 3, #words + 1, words)
    end
    local key = table.concat(words, " ")
    local new = not seen[key]
    seen[key] = true
    return new
  end
end

describe("our kernels through their own PTX:", function()
  if not core.jit_compile("extern \"C\" __global__ void k() {}",
                          "compute_80") then
    pending "needs NVRTC"
    return
  end
  for _, cases in ipairs {scripts(), library} do
    for n, case in ipairs(cases) do
      local seen = {}
      for k, arch in ipairs(case.archs) do
        local name = ("%s for %s"):format(case.name, arch)
        if SHORT[case.name] == k then
          it(name, function() compare(case, arch) end)
        end
        if n % 2 == 0 then  -- neighbours in the list are similar, so only every
                            -- second case compares verdicts
          it(name .. ", verdicts #long", function()
            compare(case, arch, unless_seen(seen))
          end)
        elseif SHORT[case.name] ~= k and n // 2 % #case.archs + 1 == k then
          -- one architecture, because most kernels are the same for both
          it(name .. " #long", function() compare(case, arch) end)
        end
      end
    end
  end
end)
-- SPDX-License-Identifier: MIT
