-- Tests the copy by TMA. It must be right at whole, partial and tiny sizes,
-- under many schedules, without reports. The simulator must detect the removal
-- of any wait, fence or barrier. If TMA cannot copy a matrix, copy_tile must do
-- so.
local cute = require "cute"
local copylesson = require "cutelua.bench.copylesson"
local harness = require "cutelua.bench.harness"
local kernels = require "spec.kernels"
local lib = require "cutelua.bench.lessonlib"
local support = require "spec.support"

local PATH = "scripts/copy_tma.lua"
local TEXT = support.read(PATH)

local own = arg
local function lesson(text)
  -- copy_tma looks for copy_tile.lua next to this path.
  rawset(_G, "arg", {[0] = PATH})
  local spec = assert(lib.script_spec(PATH, "cutelua.bench.copylesson", "run",
                                      text))
  rawset(_G, "arg", own)
  return copylesson.lesson(spec)
end

local function contestants(l)
  local list = {{name = "copy_tma", make = l.make}}
  return table.move(l.compare, 1, #l.compare, 2, list)
end

-- Sizes (m,n) for TMA: rows are multiples of 16 bytes, or m is 1.
local SIZES = {{1, 1}, {1, 17}, {1, 8}, {2, 24}, {17, 40}, {31, 256}, {32, 264},
               {33, 512}, {64, 130 * 8}, {129, 72}, {130, 520}, {128, 1024},
               {100, 456}}

local function each(l, size, f)
  for _, c in ipairs(contestants(l)) do
    f(c, harness.problem(l, size), ("%s %dx%d"):format(c.name, size[1],
                                                       size[2]))
  end
end

describe("the copy by TMA", function()
  it("copies any size whose rows TMA can reach", function()
    local l = lesson()
    for _, size in ipairs(SIZES) do
      each(l, size, function(c, p, what)
        local ok, reports, wrong = harness.try(p, "sim:sm_90a",
                                               {make = c.make})
        assert.is_true(ok, what .. (wrong or tostring(reports[1])))
        assert.equal(0, reports[1]:total "wavefronts", what)
      end)
    end
  end)

  it("is clean under other schedules", function()
    local l = lesson()
    for seed = 1, 10 do
      each(l, {70, 1032}, function(c, p, what)
        local ok, reports = harness.try(p, "sim:sm_90a", {make = c.make,
                                                          seed = seed})
        assert.is_true(ok, what .. tostring(reports[1]))
      end)
    end
  end)

  it("loads each byte once, without threads", function()
    local l = lesson()
    local p = harness.problem(l, {128, 512})
    local _, reports = harness.try(p, "sim:sm_90a")
    assert.equal(2 * 128 * 512 * 2 // 32, reports[1]:total "sectors")
    assert.equal(0, reports[1]:total "wavefronts")
  end)

  it("uses copy_tile where TMA does not apply", function()
    local l = lesson()
    local say, said = lib.say, {}
    lib.say = function(...) said[#said + 1] = string.format(...) end
    local old = harness.problem(l, {32, 64}, {sm = 80})
    assert.is_nil(l.make(old).args)
    assert.truthy(l.make(harness.problem(l, {32, 64}, {sm = 90})).args)
    assert.same({"copy_tile copies instead: sm_80 has no TMA, sm_90 has"},
                said)
    for _, size in ipairs {{17, 17}, {130, 70}, {2, 1}} do
      each(l, size, function(c, p, what)
        said = {}
        local ok, reports, wrong = harness.try(p, "sim:sm_90a",
                                               {make = c.make})
        assert.is_true(ok, what .. (wrong or tostring(reports[1])))
        assert.equal(1, #said, what)
      end)
    end
    lib.say = say
    local out, err, code = support.run {PATH, "--device", "sim", "--m", "130",
                                        "--n", "70"}
    assert.equal("", err)
    assert.equal(0, code)
    assert.truthy(out:find("copy_tile copies instead: [^\n]*the stride of mode "
      .. "1, 140 bytes, is not a multiple of 16\n"), out)
  end)

  it("is reported with missing synchronization #long", function()
    for _, c in ipairs {
      {"arch.mbarrier_arrive_and_expect_tx(bar, load.tx_bytes)",
       "arch.mbarrier_arrive(bar)", "deadlock"},
      {"arch.mbarrier_arrive_and_expect_tx(bar, load.tx_bytes)",
       "arch.mbarrier_arrive_and_expect_tx(bar, load.tx_bytes - 16)",
       "deadlock"},
      {"arch.mbarrier_wait(full + k % stages, k // stages % 2)", "", "race"},
      {"k // stages % 2", "1 - k // stages % 2", "async-in-flight"},
      {"arch.cp_async_bulk_wait_group(0, true)\n          fetch",
       "fetch", "race"},
      {"arch.cp_async_bulk_wait_group(0, true)  -- the stores have read all "
       .. "stages", "", "exited-block"},
      {"arch.cluster_arrive()  -- both blocks have initialized `full`"
       .. "\n    arch.cluster_wait()", "", "mbarrier"},
      {"mcast_mask = 3", "mcast_mask = 1", "deadlock"},
      {"arch.mbarrier_wait(full, 0)", "", "race"}} do
      local l = lesson(support.change(TEXT, c[1], 1, c[2]))
      local found = {}
      for seed = 0, 3 do
        each(l, {64, 2048}, function(k, p)
          local _, reports = harness.try(p, "sim:sm_90a", {make = k.make,
                                                           seed = seed})
          for _, r in ipairs(reports[1].reports) do
            found[#found + 1] = r.kind
          end
        end)
      end
      found = table.concat(found, " ")
      assert.truthy(found:find(c[3], 1, true), c[1] .. "\n" .. found)
    end
  end)

  it("is accepted by NVRTC", function()
    local l = lesson()
    each(l, {256, 256}, function(c, p)
      local r = harness.launches(p, c.make)[1]
      kernels.compiles(r.kernel(table.unpack(r.args, 1, r.args.n)):trace {
        block = r.block, cluster = r.cluster}, {"sm_90a"})
    end)
  end)

  it("copies any size on the GPU #gpu", function()
    local l = lesson()
    if cute.device("gpu").sm < 90 then return end
    for _, size in ipairs(SIZES) do
      each(l, size, function(c, p, what)
        local ok, _, wrong = harness.try(p, "gpu", {make = c.make})
        assert.is_true(ok, what .. (wrong or ""))
      end)
    end
  end)
end)

describe("the option --device", function()
  it("names a target of the simulator, for which --emit writes", function()
    local out, err, code, _ = support.run {PATH, "--device", "sim:sm_100a",
                                           "--m", "64", "--n", "64"}
    assert.equal("", err)
    assert.equal(0, code)
    assert.is_truthy(out:find("simulator (sm_100a)", 1, true), out)
    out = support.run {PATH, "--device=sim:sm_120a", "--emit", "cu"}
    assert.is_truthy(out:find("for sm_120", 1, true), out)
    _, err, code = support.run {PATH, "--device", "sim:sm_100a", "--arch",
                                "sm_90a"}
    assert.equal("copy_tma: --device sim:sm_100a and --arch sm_90a are two "
      .. "targets: write one\n", err)
    assert.equal(1, code)
  end)
end)
-- SPDX-License-Identifier: MIT
