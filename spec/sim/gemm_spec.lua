-- Tests the three-stage GEMM on the simulator: no reports and correct results
-- under 50 schedules. Every wrong wait, barrier or stage index must be found.
local core = require "cute.core"
local row_major = require "spec.kernels".row_major
local support = require "spec.support"
local change = support.change

local SCRIPT = "scripts/gemm3stage.lua"
local M, N, K = 256, 128, 256

local text = support.read(SCRIPT)

-- Returns the kernel, tile and block of the lesson whose text is `source`.
local function kernel_of(source)
  return require "spec.lesson" ("gemm3stage.lua", nil, source)
end

local a, b = core.buffer("bf16", M * K), core.buffer("bf16", N * K)
local ref = core.buffer("f64", M * N)
a:fill_normal(1)
b:fill_normal(2)
core.gemm_reference(a, b, ref, M, N, K)

-- Runs the kernel of a lesson; returns the report, whether C is correct, and C.
local function run(spec, opts)
  local c = core.buffer("bf16", M * N)
  local tile = spec.tile
  local r = support.report(spec.kernel(row_major(a, M, K), row_major(b, N, K),
                                       row_major(c, M, N)):launch {
    grid = (M // tile[1]) * (N // tile[2]), block = spec.block,
    device = "sim:sm_80", faults = "return", seed = opts.seed,
    threads = opts.threads, budget = opts.budget})
  local v = core.gemm_check(a, b, c, M, N, K, {ref = ref, unit = 2 * 2^-24})
  return r, v.ok and v.frobenius < 3e-3, c
end

-- Returns the lines of the script that contain a text.
local function lines_with(what)
  local at, n = {}, 0
  for l in (text .. "\n"):gmatch "(.-)\n" do
    n = n + 1
    if l:find(what, 1, true) then at[#at + 1] = n end
  end
  return at
end

local SYNC = "cute.arch.sync_threads()"

describe("gemm3stage", function()
  local good = kernel_of(text)

  it("is right and free of faults under 50 schedules #long", function()
    local first
    for seed = 1, 50 do
      if support.skipped(seed, 5) then goto next end
      local r, right, c = run(good, {seed = seed})
      assert.are.same({}, r.reports)
      assert.is_true(r.ok and right)
      first = first or c:bytes()
      assert.is_true(first == c:bytes())
      ::next::
    end
  end)

  it("does the work that its sizes say, without bank conflicts", function()
    local r = run(good, {})
    assert.equal(M // 16 * (N // 8) * (K // 16), r.mmas)
    assert.equal(2, r.ctas)
    local async, sectors = 0, 0
    for _, l in ipairs(r.lines) do
      assert.equal(0, l.conflicts)
      if l.op == "cp.async" then
        async, sectors = async + l.bytes, sectors + l.sectors
      end
    end
    local bytes = (128 + 128) * K * 2 * 2  -- bytes of A and B for two tiles
    assert.equal(bytes, async)
    assert.equal(bytes // 32, sectors)
  end)
  local WAIT = "cute.arch.cp_async_wait_group(STAGES - 2)"
  local COMMIT = "cute.arch.cp_async_commit_group()"
  local START = "= STAGES - 1, 0, STAGES - 1"
  local TURN = "smem_write, smem_read = smem_read, (smem_read + 1) % STAGES"
  local faults = {
    {"the first barrier left out", SYNC, 1, ""},
    {"the second barrier left out", SYNC, 2, ""},
    {"the first wait left out", WAIT, 1, ""},
    {"the second wait left out", WAIT, 2, ""},
    {"one group too many pending at first", "(STAGES - 2)", 1,
     "(STAGES - 1)"},
    {"one group too many pending later", "(STAGES - 2)", 2, "(STAGES - 1)"},
    {"the first commit left out", COMMIT, 1, ""},
    {"the second commit left out", COMMIT, 2, ""},
    {"A always into stage 0", "tAsA(_, _, _, stage)", 1, "tAsA(_, _, _, 0)"},
    {"B always into stage 1", "tBsB(_, _, _, stage)", 1, "tBsB(_, _, _, 1)"},
    {"reading starts a stage late", START, 1, "= STAGES - 1, 1, STAGES - 1"},
    {"writing starts at stage 0", START, 1, "= STAGES - 1, 0, 0"},
    {"writing starts at stage 1", START, 1, "= STAGES - 1, 0, 1"},
    {"A read where it is written", "tXsA(_, _, _, stage)", 1,
     "tXsA(_, _, _, smem_write)"},
    {"B read where it is written", "tXsB(_, _, _, stage)", 1,
     "tXsB(_, _, _, smem_write)"},
    {"B read from stage 0", "tXsB(_, _, _, stage)", 1,
     "tXsB(_, _, _, 0)"},
    {"A written where it is read", "tAsA(_, _, _, smem_write)", 1,
     "tAsA(_, _, _, smem_read)"},
    {"B written where it is read", "tBsB(_, _, _, smem_write)", 1,
     "tBsB(_, _, _, smem_read)"},
    {"the stage written never turns", TURN, 1,
     "smem_read = (smem_read + 1) % STAGES"},
    {"the stage read never turns", TURN, 1,
     "smem_write = (smem_write + 1) % STAGES"},
    {"the stage read turns by two", TURN, 1,
     "smem_write, smem_read = smem_read, (smem_read + 2) % STAGES"},
    {"the first fragments from stage 1", "tXsA(_, _, _, 0)", 1,
     "tXsA(_, _, _, 1)"},
    {"accumulators not cleared", "tCrC:fill(0)", 1, ""},
  }
  for i, f in ipairs(faults) do
    it("with " .. f[1] .. ": told" .. support.long(i, 4), function()
      local spec = kernel_of(change(text, f[2], f[3], f[4]))
      for seed = 1, 4 do
        local r = run(spec, {seed = seed, budget = 1000000})
        assert.is_false(r.ok)
        assert.is_true(#r.reports > 0)
      end
    end)
  end

  -- With these faults, all accesses are ordered, but the kernel uses the wrong
  -- data.
  for _, f in ipairs {
    {"the prologue loads tile 0 twice", "tAgA(_, _, _, stage)", 1,
     "tAgA(_, _, _, 0)"},
    {"the next tile never moves on", "k_tile_next = k_tile_next + 1", 1,
     "k_tile_next = k_tile_next + 0"},
    {"the next tile starts one late", START, 1, "= STAGES, 0, STAGES - 1"},
    {"fragments of the wrong block", "tXsA_p(_, _, kb_next)", 1,
     "tXsA_p(_, _, kb)"},
  } do
    it("with " .. f[1] .. ": C is wrong", function()
      local _, right = run(kernel_of(change(text, f[2], f[3], f[4])), {})
      assert.is_false(right)
    end)
  end

  it("names both lines and the tensor", function()
    local r = run(kernel_of(change(text, WAIT, 1, "")), {})
    local first, from = r.reports[1], lines_with "cute.copy(g2s, tAgA"
    assert.equal("async-in-flight", first.kind)
    assert.equal("sA", first.tensor)
    assert.equal(lines_with("cute.copy(s2r_A")[1], first.line)
    assert.equal(from[1], first.line2)
    assert.is_truthy(tostring(r):find(("the cp.async: gemm3stage.lua:%d")
      :format(from[1]), 1, true))
    -- The coordinate is that of a row that ldmatrix reads: stage 0, and element
    -- 0 or 8 of a block of K.
    assert.is_truthy(first.coord:match
      "^%(%(%d,%d+%),%(%(%d+,0%),0%),%(0,0%)%)$", first.coord)
  end)
end)

describe("gemm3stage", function()
  it("reports do not depend on the host's threads", function()
    local spec = kernel_of(change(text, SYNC, 2, ""))
    local function told(threads)
      local r = run(spec, {seed = 7, threads = threads})
      local t = {}
      for i, x in ipairs(r.reports) do
        t[i] = ("%s %d %d %d %d"):format(x.kind, x.line, x.line2 or 0,
                                         x.offset, x.count)
      end
      return t
    end
    local one = told(1)
    for threads = 2, 4 do assert.are.same(one, told(threads)) end
  end)
end)
-- SPDX-License-Identifier: MIT
