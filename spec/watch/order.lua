-- Kernels for order_spec.lua in which threads of a block pass data to one
-- another. Also collects the simulator's reports over many schedules.
local assert = require "luassert"
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local SEEDS = 6
local ACQ, REL = {sem = "acquire", scope = "cta"}, {sem = "release",
                                                    scope = "cta"}
local RLX, BOTH = {sem = "relaxed", scope = "cta"}, {sem = "acq_rel"}

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.i32, cute.make_layout({n}), 16)
end

local function line() return debug.getinfo(2, "l").currentline end

local function run(seed, block, f, ...)
  return support.report(cute.kernel("k", f)(...):launch {grid = 1,
    block = block, seed = seed, device = "sim:sm_90a", faults = "return",
    budget = 1000000})
end

-- Returns n flags in shared memory. All threads see them as 0, because a
-- barrier follows the stores of 0.
local function flags(n)
  local f, tid = smem(n), arch.thread_idx()
  cute.when(tid:lt(n), function() f[tid] = 0 end)
  arch.sync_threads()
  return f
end

-- Returns shared memory that contains zeros after the next sync_threads(), such
-- as the one in flags().
local function zeroed(n)
  local s, tid = smem(n), arch.thread_idx()
  cute.when(tid:lt(n), function() s[tid] = 0 end)
  return s
end

local function poll(ptr, want, how)
  cute.loop(function() return arch.load(ptr, nil, how):lt(want) end,
            function() end)
end

local function warp(n, f) cute.when(arch.warp_idx():eq(n), f) end
local function lane0(f) cute.when(arch.lane_idx():eq(0), f) end

-- Runs a kernel under all seeds. Returns its reports, each as "kind line
-- line2" with the smaller line first. Fails if the reports of two seeds
-- differ.
local function found(kernel, block, ...)
  local all
  for seed = 1, SEEDS do
    local r = run(seed, block, kernel, ...)
    local kinds, list = {}, {}
    for _, x in ipairs(r.reports) do
      local a, b = x.line, x.line2
      if b and a > b then a, b = b, a end
      local text = ("%s %d %s"):format(x.kind, a, b or "-")
      if not kinds[text] then list[#list + 1] = text end
      kinds[text] = true
    end
    table.sort(list)
    local text = table.concat(list, ", ")
    assert(not all or all == text, ("seed %d: %s, not %s"):format(seed, text,
      tostring(all)))
    all = text
  end
  return all
end

---------------------------------------------------------------------------
-- One warp writes, another reads in reverse order
---------------------------------------------------------------------------

-- Tests one way to pass data: one warp writes and calls publish(flag), another
-- warp calls wait(flag) and reads. Returns the reports, and the expected report
-- of a race between the write and the read.
local function handover(publish, wait, nflag)
  local A, lines = cute.zeros({64}, cute.i32), support.recorder()
  for i = 0, 31 do A[i] = 100 + i end
  local text = found(function(a)
    local tid = arch.thread_idx()
    local f, s = flags(nflag or 1), smem(32)
    warp(0, function()
      lines[1] = line() + 1
      s[tid] = a[tid]
      publish(f)
    end)
    warp(1, function()
      wait(f)
      lines[2] = line() + 1
      a[tid] = s[63 - tid]
    end)
  end, 64, A)
  if text == "" then
    for i = 0, 31 do assert.equal(131 - i, A[32 + i]) end
  end
  return text, ("race %d %d"):format(lines[1], lines[2])
end

local function whole(publish, wait, nflag)
  assert.equal("", (handover(publish, wait, nflag)))
end

local function broken(publish, wait, nflag)
  local text, want = handover(publish, wait, nflag)
  assert.equal(want, text)
end

-- Returns a publish function: lane 0 stores the flag for the whole warp.
local function one_store(how, sync, fence)
  return function(f)
    if sync ~= false then arch.sync_warp() end
    lane0(function()
      if fence then fence() end
      arch.store(f.iterator, 1, how)
    end)
  end
end

local function one_poll(how, sync, fence)
  return function(f)
    lane0(function()
      poll(f.iterator, 1, how)
      if fence then fence() end
    end)
    if sync ~= false then arch.sync_warp() end
  end
end

local function all_poll(how, want, fence)
  return function(f)
    poll(f.iterator, want, how)
    if fence then fence() end
  end
end

local function all_add(how, fence)
  return function(f)
    if fence then fence() end
    arch.atomic_add(f.iterator, 1, how)
  end
end

local FENCES = {arch.fence_acq_rel_cta, arch.fence_acq_rel_gpu,
                arch.fence_acq_rel_sys}

return {
  ACQ = ACQ, REL = REL, RLX = RLX, BOTH = BOTH, FENCES = FENCES, line =
  line, smem = smem, zeroed = zeroed, flags = flags, poll = poll, warp =
  warp, lane0 = lane0, run = run, found = found, whole = whole, broken =
  broken, one_store = one_store, one_poll = one_poll, all_poll = all_poll,
  all_add = all_add}
-- SPDX-License-Identifier: MIT
