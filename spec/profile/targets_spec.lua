-- Tests the table of limits of an SM against NVIDIA's occupancy calculation, if
-- its header is installed.
local assert = require "luassert"
local cute = require "cute"
local support = require "spec.support"
local cards = require "cutelua.profile.cards"
local targets = require "cute.targets"

-- A C program that computes occupancies. It reads lines "major minor threads
-- registers shared barriers", and prints the number of blocks and the limits by
-- registers, shared memory, threads and blocks.
local PROGRAM = [[
#include <cuda_occupancy.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  int major, minor, threads, regs, smem, bars, most, each;
  while (scanf("%d %d %d %d %d %d %d %d", &major, &minor, &threads, &regs,
               &smem, &bars, &most, &each) == 8) {
    cudaOccDeviceProp p;
    cudaOccFuncAttributes a;
    cudaOccDeviceState s;
    cudaOccResult r;
    memset(&p, 0, sizeof p);
    memset(&a, 0, sizeof a);
    memset(&s, 0, sizeof s);
    memset(&r, 0, sizeof r);
    p.computeMajor = major;
    p.computeMinor = minor;
    p.maxThreadsPerBlock = 1024;
    p.maxThreadsPerMultiprocessor = each;
    p.regsPerBlock = p.regsPerMultiprocessor = 65536;
    p.warpSize = 32;
    p.numSms = 1;
    p.sharedMemPerBlock = 49152;
    p.sharedMemPerMultiprocessor = most;
    p.sharedMemPerBlockOptin = most - 1024;
    p.reservedSharedMemPerBlock = major >= 8 ? 1024 : 0;
    if (major < 8) p.sharedMemPerBlockOptin = most;
    a.maxThreadsPerBlock = 1024;
    a.numRegs = regs;
    a.partitionedGCConfig = PARTITIONED_GC_OFF;
    a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    a.maxDynamicSharedSizeBytes = p.sharedMemPerBlockOptin;
    a.numBlockBarriers = bars;
    s.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, threads,
                                                smem) != CUDA_OCC_SUCCESS)
      printf("?\n");
    else
      printf("%d %d %d %d %d\n", r.activeBlocksPerMultiprocessor,
             r.blockLimitRegs, r.blockLimitSharedMem, r.blockLimitWarps,
             r.blockLimitBlocks);
  }
}
]]

local include = (os.getenv "CUDA_HOME" or "/usr/local/cuda") .. "/include"

-- Returns the program's output for each line of input.
local function asked(lines)
  local dir = support.folder()
  support.write(dir .. "/occupancy.c", PROGRAM)
  support.write(dir .. "/in", table.concat(lines, "\n"), "\n")
  local _, err, code = support.exec {os.getenv "CC" or "cc", "-w", "-I"
    .. include, "-o", dir .. "/occupancy", dir .. "/occupancy.c"}
  assert.equal(0, code, err)
  local p <close> = io.popen(dir .. "/occupancy < " .. dir .. "/in")
  local out = support.lines(p:read "a")
  support.remove(dir)
  return out
end

describe("the occupancy of an SM", function()
  local name = "is what NVIDIA's own calculation says"
  local header = support.read(include .. "/cuda_occupancy.h")
  if header then
    it(name, function()
      local seeds, lines = math.random, {}
      math.randomseed(7)
      local sms = {70, 75, 80, 86, 87, 89, 90, 100, 110, 120, 121}
      -- CUDA 13.5 added sm_107, the only target with this much shared memory,
      -- and corrected the number of barriers of sm_103.
      local new = header:find "328 %* 1024"
      table.move(new and {103, 107} or {}, 1, 2, #sms + 1, sms)
      local cases = {}
      for i = 1, 6000 do
        local sm = sms[i % #sms + 1]
        local t = targets.limits(sm)
        local c = {sm = sm, threads = seeds(1, 32) * 32 - seeds(0, 1) * 7,
          registers = seeds(16, 255), barriers = seeds(0, 16),
          shared = seeds(0, 3) * seeds(0, 24000)}
        c.threads = math.max(c.threads, 1)
        c.shared = math.min(c.shared, t.shared - 1024)
        cases[i] = c
        lines[i] = ("%d %d %d %d %d %d %d %d"):format(sm // 10, sm % 10,
          c.threads, c.registers, c.shared, c.barriers, t.shared, t.threads)
      end
      local out = asked(lines)
      local seen = {}
      for i, c in ipairs(cases) do
        local blocks, regs, shared, warps, most = out[i]:match
          "^(%d+) (%d+) (%d+) (%d+) (%d+)$"
        local ours = targets.occupancy(c.sm, c)
        local l = ours.limits
        assert.same({tonumber(blocks), tonumber(regs), tonumber(warps),
                     tonumber(most)},
          {ours.blocks, l.registers, l.threads, l.blocks}, lines[i])
        assert.equal(tonumber(shared), l.shared or (1 << 31) - 1, lines[i])
        for _, by in ipairs(ours.by) do seen[by] = true end
      end
      assert.same({registers = true, shared = true, threads = true,
                   blocks = true, barriers = true}, seen)
    end)
  else
    pending(name .. " (needs headers)")
  end

  it("reports the limiting resource", function()
    local o = targets.occupancy(90, {threads = 128, registers = 228,
                                     shared = 98304, barriers = 1})
    assert.same({blocks = 2, by = {"registers", "shared"}, limits = {
      registers = 2, shared = 2, threads = 16, blocks = 32, barriers = 64}}, o)
    assert.same({"barriers"}, targets.occupancy(120, {threads = 64,
      registers = 32, shared = 0, barriers = 16}).by)
    -- Registers set no limit if their number is not given.
    assert.is_nil(targets.occupancy(90, {threads = 64}).limits.registers)
  end)

  -- Expected results: cuOccupancyMaxActiveClusters on an H100 and an H200.
  it("holds clusters as the driver counts them", function()
    local said = {
      {132, 66, 39, 30, 22, 17, 15, 15, 9, 7, 7, 7, 7, 7, 7, 7},
      {264, 132, 79, 62, 47, 39, 32, 30, 23, 21, 16, 16, 14, 14, 14, 14},
      [8] = {1056, 528, 327, 248, 193, 163, 139, 124, [16] = 58},
    }
    for blocks, row in pairs(said) do
      for size, most in pairs(row) do
        assert.equal(most, targets.clusters(132, size, blocks))
      end
    end
    -- clusters of 4 blocks on 100 SMs
    assert.equal(25, targets.clusters(100, 4))
    -- 160 SMs are a GPU that is not in the table
    assert.equal(40, targets.clusters(160, 4))
  end)

  it("is 0 if a block is too large", function()
    assert.equal(0, targets.occupancy(90, {threads = 1024,
                                           registers = 80}).blocks)
    assert.equal(0, targets.occupancy(90, {threads = 32,
                                           shared = 228 * 1024}).blocks)
    assert.equal(0, targets.occupancy(90, {threads = 1056}).blocks)
  end)

  it("is there for every architecture", function()
    for arch, sm in pairs(require "cute.core".archs()) do
      if type(arch) == "string" then
        assert.equal(sm, targets.limits(sm).sm, arch)
        assert.is_true(targets.limits(sm).shared
          >= require "cute.core".smem_budget(sm))
      end
    end
  end)

  it("lists GPUs, and the sources of their numbers", function()
    for _, card in ipairs {"h200", "h100", "a100", "l40s", "b200", "b300",
                            "rtx5090"} do
      local c = cards.card(card)
      assert.is_true(#c.source > 20 and c.dram > 0 and c.sms > 0)
      assert.is_true(targets.limits(cute.device("sim:" .. c.arch).sm).threads
        > 0)
    end
    local ok, err = pcall(cards.card, "b400")
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find(
      'no card "b400"; known cards: a100 b200 b300 h100 h200 l40s rtx5090', 1,
      true), tostring(err))
  end)
end)
-- SPDX-License-Identifier: MIT
