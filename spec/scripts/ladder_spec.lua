-- Tests the GEMM ladder on the simulator: every script at partial and tiny
-- sizes, in all orders of its operands' modes, with alpha and beta. The
-- simulator must detect the removal of any barrier, wait or predicate.
local core = require "cute.core"
local cute = require "cute"
local planted = require "spec.planted"
local real = require "cutelua.bench.lesson"
local support = require "spec.support"
local read, change = support.read, support.change

local RUNGS = {
  "gemm_simt", "sgemm", "gemm_base", "gemm2stage", "gemm_l2swizzle",
  "gemm3stage", "gemm_sm80_best", "gemm_wgmma", "gemm_tma", "gemm_ws",
  "gemm_hopper", "gemm_sm70", "gemm_int8", "gemm_fp8_sm89", "gemm_tf32",
  "gemm_f64",
}

-- Returns the ladder's script `name` with this text. `modules` has the changed
-- modules that the script loads.
local function rung_of(name, text, modules)
  local stub, kept = {}, {}
  -- `false` makes the script load the module again, with the changed modules.
  if modules then stub["kernels.gemm_sm80"] = false end
  for module, value in pairs(modules or {}) do stub[module] = value end
  for module, value in pairs(stub) do
    kept[module] = package.loaded[module] or false
    package.loaded[module] = value or nil
  end
  local ok, rung = pcall(require "spec.lesson", "scripts/" .. name .. ".lua",
                         nil, text)
  for module, value in pairs(kept) do package.loaded[module] = value or nil end
  assert(ok, rung)
  return rung
end

-- Runs a GEMM. Returns the report, and whether C is right.
local function run(rung, size, o, device, seed)
  local p = real.problem(rung, size, o)
  local r = real.simulate(rung, p, device or "sim:sm_90a", {seed = seed})
  return r, (real.verify(rung, p)), p
end

-- 25 sizes in which any two modes have every pair of these extents. Each script
-- of the ladder runs every third size.
local EXTENTS = {1, 2, 17, 127, 129}
local sizes = {}
for i = 1, 5 do
  for j = 1, 5 do
    sizes[#sizes + 1] = {EXTENTS[i], EXTENTS[j], EXTENTS[(i + 2 * j) % 5 + 1]}
  end
end

describe("the GEMM ladder", function()
  for number, name in ipairs(RUNGS) do
    it("is right at every size: " .. name .. support.long(number), function()
      local rung = rung_of(name)
      for i, size in ipairs(sizes) do
        if (i + number) % 3 ~= 0 then goto next end
        local o = {layout = rung.layouts[i % #rung.layouts + 1], seed = i}
        if i % 3 == 1 then o.alpha = 2 end
        if i % 3 == 2 then o.alpha, o.beta = -1, 3 end
        local r, right = run(rung, size, o, nil, i)
        local what = ("%s %dx%dx%d %s"):format(name, size[1], size[2],
                                               size[3], o.layout)
        assert.is_true(r.ok, what .. "\n" .. tostring(r))
        assert.is_true(right, what)
        ::next::
      end
    end)
  end

  it("does not read C if beta is 0", function()
    local rung = rung_of "gemm_base"
    for _, size in ipairs {{100, 50, 30}, {128, 128, 64}} do
      local p = real.problem(rung, size, {alpha = 3})
      for i = 0, size[1] * size[2] - 1 do p.c[i] = 0 / 0 end
      assert.is_true(real.simulate(rung, p, "sim:sm_80").ok)
      assert.is_true((real.verify(rung, p)))
    end
  end)

  it("uses the general kernel for unsupported problems #long", function()
    for _, name in ipairs {"gemm_base", "gemm3stage"} do
      local rung = rung_of(name)
      for _, case in ipairs {
        {{256, 128, 64}, own = true}, {{256, 128, 64}, layout = "tt"},
        {{255, 128, 64}}, {{256, 129, 64}}, {{256, 128, 65}}} do
        local r, right = run(rung, case[1], {layout = case.layout})
        assert.is_true(r.ok and right)
        for _, l in ipairs(r.lines) do
          assert.equal(case.own, l.file:find(name, 1, true) and true)
        end
      end
    end
  end)

  it("takes extents as arguments", function()
    local rung = rung_of "gemm2stage"
    for _, size in ipairs {{256, 128, 192}, {300, 130, 72}, {33, 65, 9}} do
      local p = real.problem(rung, size, {dynamic = true})
      local r, prepared = real.simulate(rung, p, "sim:sm_80")
      assert.is_true(r.ok, tostring(r))
      assert.is_true((real.verify(rung, p)))
      assert.is_truthy(prepared.program:cuda("sm_80"):find("int mA_", 1, true)
        or prepared.program:cuda("sm_80"):find("long long mA_", 1, true))
    end
    local count = 0
    for _ in pairs(rung.kernel.programs) do count = count + 1 end
    -- three programs: for whole tiles, for rows that are multiples of 16 bytes,
    -- and for any rows
    assert.equal(3, count)
  end)

  it("has no predicate, and no conflict, if tiles fit #long", function()
    for _, name in ipairs {"gemm_base", "gemm_sm80_best", "sgemm"} do
      local rung = rung_of(name)
      local r = run(rung, {256, 256, 256})
      local p = real.problem(rung, {256, 256, 256})
      local _, prepared = real.simulate(rung, p, "sim:sm_80")
      assert.is_nil(prepared.program:cuda("sm_80"):find("_zfill", 1, true))
      for _, l in ipairs(r.lines) do assert.equal(0, l.conflicts) end
    end
  end)

  it("names an operand's memory by the script's local", function()
    local rung = rung_of "gemm2stage"
    local p = real.problem(rung, {128, 128, 64})
    local _, prepared = real.simulate(rung, p, "sim:sm_80")
    local text = prepared.program:cuda "sm_80"
    for _, want in ipairs {"A_smem_addr", "B_frag_", "C_acc_"} do
      assert.is_truthy(text:find(want, 1, true), want)
    end
  end)
end)

---------------------------------------------------------------------------
-- Faults
---------------------------------------------------------------------------

local SYNC = "cute.arch.sync_threads()"
local COMMIT = "cute.arch.cp_async_commit_group()"
local WAIT0 = "cute.arch.cp_async_wait_group(0)"
local CLEAR = "C.acc:fill(0)"
local ASK, FULL = "pipe:producer_acquire(write)", "pipe:consumer_wait(read)"
local EMPTY = "cute.when(cute.gt(k_tile, 0), "
  .. "function() pipe:consumer_release(before) end)"
local CLOSE, WAIT1 = "warpgroup.commit_group()", "warpgroup.wait_group(1)"
local WHOLE, RAGGED = {256, 128, 256}, {129, 129, 256}

local IN_SCRIPTS = {
  gemm_base = {{SYNC, 1}, {SYNC, 2}, {WAIT0, 1}, {COMMIT, 1},
    {"tCrC:fill(0)", 1}, size = WHOLE},
  gemm2stage = {{SYNC, 1}, {WAIT0, 1}, {COMMIT, 1}, {COMMIT, 2}, {CLEAR, 1},
    {"k_tile + 1, 1 - stage", 1, "k_tile + 1, stage"}},
  gemm_l2swizzle = {{SYNC, 1}, {WAIT0, 1}, {COMMIT, 1}, {COMMIT, 2},
    {CLEAR, 1}},
  gemm_wgmma = {{SYNC, 1}, {"cute.arch.cp_async_wait_group(STAGES - 2)", 1},
    {COMMIT, 1}, {"cute.arch.fence_view_async_shared()", 1},
    {WAIT1, 1}, {WAIT1, 1, "warpgroup.wait_group(2)"},
    {"% STAGES, read", 1, "% STAGES, write"},
    {"k_tile + STAGES - 1, write", 1, "k_tile + STAGES - 1, read"},
    size = {256, 128, 512}},
  gemm_tma = {{ASK, 1}, {FULL, 1}, {"warpgroup.fence()", 1}, {CLOSE, 1},
    {WAIT1, 1}, {WAIT1, 1, "warpgroup.wait_group(2)"},
    {"warpgroup.wait_group(0)", 1}, {EMPTY, 1}, {"write:advance()", 1},
    {"read:advance()", 1}, {"before.index = read.index", 1},
    {"ask(k_tile + STAGES - 1)", 1},
    {"ask(k_tile + STAGES - 1)", 1, "ask(k_tile + STAGES - 2)"},
    size = {256, 128, 512}},
  gemm_ws = {{ASK, 1}, {FULL, 1}, {"warpgroup.fence()", 1}, {CLOSE, 1},
    {WAIT1, 1}, {WAIT1, 1, "warpgroup.wait_group(2)"},
    {"warpgroup.wait_group(0)", 1}, {EMPTY, 1}, {"write:advance()", 1},
    {"read:advance()", 1}, {"before.index = read.index", 1},
    {"tma_a.tx_bytes + tma_b.tx_bytes", 1, "tma_a.tx_bytes"},
    {"Group(Agent.Warp, 4 * WARPGROUPS)", 1, "Group(Agent.Warp, WARPGROUPS)"},
    {"cute.when(tid:eq(mma:size()), function()", 1,
     "cute.when(tid:ge(mma:size()), function()"}, size = {128, 256, 640}},
  gemm_sm70 = {{SYNC, 1}, {SYNC, 2}, {SYNC, 3}, {CLEAR, 1}},
  gemm_simt = {{CLEAR, 1}},
}

local WAIT = "cute.arch.cp_async_wait_group(stages - 2)"
local IN_SM80 = {
  {WAIT, 1}, {WAIT, 2}, {SYNC, 3}, {SYNC, 4}, {COMMIT, 1}, {COMMIT, 2},
  {CLEAR, 2}, {"asked, write, read = write", 1, "asked, write, read = read"},
  {"read, (read + 1) % stages", 1, "read, read"},
  {"walk.has(k)", 1, "true"},
}

local IN_SM90 = {  -- faults in the text of each file of kernels/gemm_sm90/
  producer = {{ASK, 1}, {"pipe:producer_tail(write)", 1},
    {"write:advance()", 1}},
  mainloop = {{FULL, 1}, {"warpgroup.fence()", 1}, {CLOSE, 1}, {WAIT1, 1},
    {WAIT1, 1, "warpgroup.wait_group(2)"}, {"warpgroup.wait_group(0)", 1},
    {"cute.when(core.gt(k, 0), function() pipe:consumer_release(before) end)",
     1},
    {"pipe:consumer_release(before)", 2}, {"read:advance()", 1},
    {"before.index = read.index", 1}},
  store_tile = {{"cute.when(leader, function() pipe:producer_acquire() end)",
     1},
    {"barrier:arrive_and_wait()", 1}, {"barrier:arrive_and_wait()", 2},
    {"cute.arch.fence_view_async_shared()", 1},
    {"      pipe:producer_commit()", 1}},
  kernel = {{"cute.when(out.leader, function() out.pipe:producer_tail() end)",
     1}, {"if not made then pipeline.agent_sync(true, true) end", 1}},
}

-- Returns the title of a test from a text change.
local function title(name, f)
  return ("%s: %s (%d) %s"):format(name, f[1], f[2],
    f[3] and "is " .. f[3] or "left out")
end

-- Checks that the simulator reports a fault, or that tracing raises an error
-- about registers in flight.
local function assert_told(rung, size)
  for seed = 1, 2 do
    local ok, r = pcall(run, rung, size, nil, nil, seed)
    if not ok then return assert.matches("%[in%-flight%]", r) end
    assert.is_false(r.ok)
    assert.is_true(#r.reports > 0)
  end
end

-- These are hundreds of runs, so the sanitizers do not repeat them; they do run
-- spec/watch/planted_spec.lua.
describe("the ladder's faults are reported #noasan #long:", function()
  for name, faults in pairs(IN_SCRIPTS) do
    local text = read("scripts/" .. name .. ".lua")
    for _, f in ipairs(faults) do
      it(title(name, f), function()
        assert_told(rung_of(name, change(text, f[1], f[2], f[3] or "")),
                    faults.size or RAGGED)
      end)
    end
  end

  local sm80 = read "kernels/gemm_sm80.lua"
  local function with_sm80(name, f)
    local module = assert(load(change(sm80, f[1], f[2], f[3] or ""),
                               "@kernels/gemm_sm80.lua"))()
    return rung_of(name, nil, {["kernels.gemm_sm80"] = module})
  end
  for _, f in ipairs(IN_SM80) do
    for _, name in ipairs {"sgemm", "gemm_sm80_best", "gemm_int8"} do
      it(title(name, f), function()
        local k = name == "gemm_int8" and 1024 or name == "sgemm" and 128
          or 512
        assert_told(with_sm80(name, f), {129, 129, k})
      end)
    end
  end
  for part, faults in pairs(IN_SM90) do
    for _, f in ipairs(faults) do
      it(title("gemm_hopper", f), function()
        local module = planted.kernel {{part, f[1], f[3] or "", f[2]}}
        local rung = rung_of("gemm_hopper", nil,
                             {["kernels.gemm_sm90"] = module})
        -- Keeps the script's own options, with clusters and persistent blocks,
        -- at any size.
        rung.choose = nil
        assert_told(rung, {300, 520, 648})
      end)
    end
  end
  -- These two barriers belong to the store of C through shared memory.
  for _, f in ipairs {{SYNC, 1}, {SYNC, 2}} do
    it(title("gemm_sm80_best", f), function()
      assert_told(with_sm80("gemm_sm80_best", f), {136, 264, 64})
    end)
  end
  for _, f in ipairs {
    {"X.put(asked)", 1}, {"X.put(asked)", 1, "X.put(at)"},
    {"X.take(k)", 1}, {"X.take(k)", 2}} do
    it(title("sgemm, operands turned,", f), function()
      local rung = with_sm80("sgemm", f)
      local r, right = run(rung, {128, 128, 64}, {layout = "tn"})
      assert.is_false(r.ok and right)
    end)
  end
  it("after the last tile, a stage that was never written", function()
    assert_told(with_sm80("gemm_sm80_best", {
      "at = cute.where(cute.lt(k_tile + 1, A.k_tiles), read, at)", 1,
      "at = read"}), {128, 256, 64})
  end)
end)

describe("the ladder's predicates are needed #long:", function()
  local text = read "lua/cute/tiles.lua"
  local function with_tiles(name, f)
    local module = assert(load(change(text, f[1], f[2], f[3]),
                               "@lua/cute/tiles.lua"))()
    return rung_of(name, nil, {["cute.tiles"] = module})
  end
  for _, f in ipairs {
    {"rows of A and B", "if rows then ok = cute.lt(row[i], M) end", 1,
     ""},
    {"columns of A and B",
     "if alike then common = cute.lt(crd(0, 0, 0, k_tile)[2], K) end", 1, ""},
    {"of a tile through registers", "cute.copy(g2s, from_tile, held, pred)", 1,
     "cute.copy(g2s, from_tile, held)"},
    {"zeros behind it", "held:fill(0)", 1, ""},
    {"zeros where all lies behind", "held:fill(0)", 2, ""},
    {"of C", "local pred = inside_result(C, C.width)", 1, "local pred"},
  } do
    it(f[1], function()
      local rung = with_tiles("gemm2stage", {f[2], f[3], f[4]})
      local told = false
      for _, size in ipairs {{127, 129, 17}, {129, 127, 72}, {128, 128, 17}} do
        told = told or not run(rung, size).ok
      end
      assert.is_true(told)
    end)
  end
  for _, f in ipairs {
    {"the last row instead of a row outside",
     "+ (cute.min(at, M - 1) - at) * t.stride[1]", 1, ""},
    {"zeros behind the columns of a turned operand", "held:fill(0)", 2, ""},
  } do
    it(f[1], function()
      local rung = with_tiles("sgemm", {f[2], f[3], f[4]})
      local r, right = run(rung, {127, 129, 20}, {layout = "tn"})
      assert.is_false(r.ok and right)
    end)
  end
  it("of gemm_simt's loads", function()
    local rung = with_tiles("gemm_simt", {
      "cute.basic_copy_if(pred, part(_, _, _, k_tile), frag)", 1,
      "cute.basic_copy(part(_, _, _, k_tile), frag)"})
    assert.is_false((run(rung, {65, 63, 7})).ok)
  end)
end)

describe("matrices of one column", function()
  it("have a register for each element", function()
    local seen
    cute.kernel("k", function()
      local f = cute.make_fragment_like(
        cute.layout "((2,2),4,8):((1,8),32,32)", cute.f32)
      seen = f.layout
    end)():trace {block = 32}
    local at = {}
    for i = 0, 127 do at[seen(i)] = true end
    for i = 0, 127 do assert.is_true(at[i]) end
  end)
end)

describe("gemm_int8", function()
  it("is exact", function()
    local rung = rung_of "gemm_int8"
    local _, right, p = run(rung, {65, 77, 99}, {alpha = 3, beta = -2})
    assert.is_true(right)
    assert.equal(core.i32, p.c.dtype)
  end)
end)
-- SPDX-License-Identifier: MIT
