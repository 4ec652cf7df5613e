-- Tests the copy ladder, a series of scripts. At whole, partial and tiny sizes,
-- every script must copy as plain Lua does, without reports. The numbers in the
-- scripts' tables must be right. The simulator must detect the removal of any
-- barrier, wait or predicate. Also tests the scripts' options.
local core = require "cute.core"
local cute = require "cute"
local lessonlib = require "cutelua.bench.lessonlib"
local row_major = require "spec.kernels".row_major
local support = require "spec.support"

local RUNGS = {"copy_basic", "copy_vector", "copy_async", "copy_swizzled",
               "copy_tile", "transpose"}

local text = {}
for _, name in ipairs(RUNGS) do
  text[name] = support.read("scripts/" .. name .. ".lua")
end

-- Returns the cases of a script, as passed to cute.copylesson, with all fields
-- set.
local function cases_of(name, source)
  local spec = assert(lessonlib.script_spec(name .. ".lua",
    "cutelua.bench.copylesson", "run", source or text[name]))
  local cases = {}
  for i, c in ipairs(spec.cases or {{}}) do
    cases[i] = setmetatable(c, {__index = spec})
  end
  return cases
end

-- Copies A to B (m,n) by the kernel of a case. Returns the simulator's report,
-- and the number of wrong elements of B.
local function run(case, m, n, opts)
  opts = opts or {}
  local dtype = case.dtype or cute.bf16
  local a, b = core.buffer(dtype, m * n), core.buffer(dtype, m * n)
  a:fill_int(m * 1000 + n, -128, 127)
  b:fill(999)
  local B = case.transpose and row_major(b, n, m) or row_major(b, m, n)
  local bm, bn = case.tile[1], case.tile[2]
  local call = (opts.kernel or case.kernel)(row_major(a, m, n), B)
  local r = support.report(call:launch {
    grid = ((m + bm - 1) // bm) * ((n + bn - 1) // bn), block = case.block,
    device = opts.device or "sim:sm_80", faults = "return", seed = opts.seed})
  local wrong = 0
  for i = 0, m - 1 do
    for j = 0, n - 1 do
      local got = case.transpose and b[j * m + i] or b[i * n + j]
      if got ~= a[i * n + j] then wrong = wrong + 1 end
    end
  end
  return r, wrong
end

local SIZES = {
  {1, 1}, {1, 2}, {2, 1}, {1, 8}, {1, 17}, {2, 17}, {17, 2}, {17, 17},
  {127, 127}, {127, 129}, {129, 127}, {129, 64}, {128, 2}, {128, 64},
  {130, 72}, {66, 12}, {64, 130}, {8, 257}, {256, 256}, {3, 520}}

local function each_case(f)
  for _, name in ipairs(RUNGS) do
    for _, case in ipairs(cases_of(name)) do f(name, case) end
  end
end

local function check_sizes(device)
  each_case(function(name, case)
    for _, size in ipairs(SIZES) do
      local m, n = size[1], size[2]
      local what = ("%s %s %dx%d"):format(name,
        tostring(case.dtype or cute.bf16), m, n)
      local r, wrong = run(case, m, n, {device = device})
      assert.equal(0, wrong, what)
      if device ~= "gpu" then
        assert.is_true(r.ok, what .. "\n" .. tostring(r))
      end
    end
  end)
end

local function traffic(case, m, n, kernel)
  local r = run(case, m, n, {kernel = kernel})
  assert.is_true(r.ok)
  return r
end

-- Returns a script with the nth occurrence of `from` replaced.
local function change(name, from, to, nth)
  return support.change(text[name], from, nth or 1, to)
end

-- Checks that the simulator reports a fault of one of these kinds.
local function assert_caught(kinds, name, source, m, n)
  local found
  for _, case in ipairs(cases_of(name, source)) do
    found = nil
    for seed = 0, 3 do
      local r = run(case, m, n, {seed = seed})
      for _, report in ipairs(r.reports) do
        found = found or kinds[report.kind]
      end
    end
    assert.truthy(found, name .. ": not caught")
  end
end

describe("the copy ladder", function()
  it("copies any size, without reports #long", function()
    check_sizes "sim:sm_80"
  end)

  it("copies any size on the GPU #gpu", function()
    check_sizes "gpu"
  end)

  it("is right and clean under other schedules and on sm_90a #long", function()
    each_case(function(name, case)
      for seed = 1, 8 do
        local r, wrong = run(case, 130, 136, {
          seed = seed, device = seed % 2 == 0 and "sim:sm_90a" or nil})
        assert.equal(0, wrong, name)
        assert.is_true(r.ok, tostring(r))
      end
    end)
  end)

  it("shows vectors as an eighth of the requests", function()
    local basic = traffic(cases_of("copy_basic")[1], 256, 256)
    local vector = traffic(cases_of("copy_vector")[1], 256, 256)
    assert.equal(basic:total "count", 8 * vector:total "count")
    assert.equal(basic:total "sectors", vector:total "sectors")
    assert.equal(2, basic:total "sectors" / basic:total "requests")
    assert.equal(16, vector:total "sectors" / vector:total "requests")
    assert.is_true(vector.instructions * 4 < basic.instructions)
  end)

  it("moves whole sectors in every rung", function()
    each_case(function(name, case)
      local r = traffic(case, 256, 256)
      assert.equal(r:total "least_sectors", r:total "sectors", name)
      local bytes = 256 * 256 * (case.dtype or cute.bf16).width // 8
      assert.equal(2 * bytes // 32, r:total "sectors", name)
    end)
  end)

  it("has no bank conflicts, and many without the swizzle", function()
    each_case(function(name, case)
      assert.equal(0, traffic(case, 256, 256):total "conflicts", name)
      for _, other in ipairs(case.compare or {}) do
        local r = traffic(case, 256, 256, other.kernel)
        assert.is_true(2 * r:total "conflicts" > r:total "wavefronts", name)
      end
    end)
  end)

  it("passes shared memory by in the last rung", function()
    assert.equal(0, traffic(cases_of("copy_tile")[1], 256, 256)
      :total "wavefronts")
  end)

  it("catches a missing barrier", function()
    for _, name in ipairs(RUNGS) do
      if name ~= "copy_tile" then
        assert_caught({race = true, ["async-in-flight"] = true,
                       uninitialised = true}, name,
          change(name, "cute.arch.sync_threads()", ""), 128, 128)
      end
    end
  end)

  it("catches a missing wait", function()
    for _, name in ipairs {"copy_async", "copy_swizzled"} do
      assert_caught({["async-in-flight"] = true}, name,
        change(name, "cute.arch.cp_async_wait_group(0)", ""), 128, 128)
    end
  end)

  it("catches every missing predicate #long", function()
    for _, name in ipairs {"copy_basic", "copy_vector", "copy_async",
                           "copy_swizzled"} do
      for _, pred in ipairs {"{pred = in_A}", "{pred = in_B}"} do
        assert_caught({["out-of-bounds"] = true}, name,
          change(name, pred, "{}"), 130, 72)
      end
    end
    for nth = 1, 2 do
      assert_caught({["out-of-bounds"] = true}, "copy_tile",
        change("copy_tile", "{pred = inside}", "{}", nth), 130, 72)
    end
    for _, c in ipairs {
      {"{pred = copytile.inside(thr_in, mA, TILE, at)}", "out-of-bounds"},
      {"{pred = copytile.inside(thr_read, mB, turned, at_B)}",
       "uninitialised"},
      {"{pred = copytile.inside(thr_write, mB, turned, at_B)}",
       "out-of-bounds"}} do
      assert_caught({[c[2]] = true}, "transpose",
        change("transpose", c[1], "{}"), 136, 72)
    end
  end)
end)

describe("the copy scripts", function()
  local function script(name, ...)
    return support.run {"scripts/" .. name .. ".lua", ...}
  end

  it("verify, count and report", function()
    for _, name in ipairs(RUNGS) do
      local out, err, code = script(name, "--device", "sim", "--m", "130",
                                    "--n", "72")
      assert.equal("", err)
      assert.equal(0, code)
      assert.truthy(out:find("verified .-: ok"), out)
      assert.truthy(out:find("nothing to report", 1, true), out)
      assert.truthy(out:find(name .. ".lua:%d+ "), out)
    end
  end)

  it("reject invalid sizes", function()
    for _, c in ipairs {{"--m", "0"}, {"--n", "-3"}, {"--m", "x"},
                        {"--n", "99999999999"}, {"--m", "1.5"},
                        {"--rounds", "-1"}, {"--columns", "3"}} do
      local out, err, code = script("copy_vector", c[1], c[2])
      assert.equal("", out)
      assert.equal(2, code)
      assert.truthy(err:find("copy_vector: [^\n]*" .. c[1]:gsub("%-", "%%-")
        .. "[^\n]*\n$"), err)
    end
  end)

  it("report a size beyond the memory", function()
    local _, err, code = script("copy_tile", "--device", "sim", "--m",
                                "2000000000", "--n", "2000000000")
    assert.equal(1, code)
    assert.truthy(err:find("[out-of-memory]", 1, true), err)
  end)

  it("print CUDA that names the script's tensors", function()
    local out, err, code = script("copy_tile", "--emit", "cu")
    assert.equal("", err)
    assert.equal(0, code)
    assert.truthy(out:find("copy_tile(", 1, true))
    assert.truthy(out:find("tArA", 1, true))
  end)

  it("run as one ladder, and record the counts #long", function()
    local dir = support.folder()
    local path = dir .. "/copies.tsv"
    local out, err, code = script("copy_ladder", "--device", "sim", "--m",
                                  "130", "--n", "72", "--record", path)
    assert.equal("", err)
    assert.equal(0, code)
    local lines, names = support.lines(support.read(path)), {}
    assert.equal("# simulator (sm_90a)", lines[1])
    for i = 2, #lines do
      local name, sectors, n = lines[i]:match(
        "^(%S+)\t130x72\tbf16\t%d+\t(%d+)\t%d+\t%d+\t(%d+)$")
      assert.truthy(name, lines[i])
      names[#names + 1] = name
      -- A is read once and B is written once. Each has 130 rows of 144 bytes. n
      -- is the number of instructions.
      assert.is_true(tonumber(sectors) >= 2 * 130 * 144 // 32, lines[i])
      assert.is_true(tonumber(n) > 50)
      assert.truthy(out:find(name .. " +%d+ blocks"), out)
    end
    assert.same({"copy_basic", "copy_vector", "copy_async", "unswizzled",
                 "copy_swizzled", "copy_tile", "copy_tma", "multicast"},
                names)
    local _, refused, no = script("copy_ladder", "--record",
      dir .. "/none/copies.tsv", "--device", "sim", "--m", "8", "--n", "8")
    assert.equal(1, no)
    assert.truthy(refused:find("/none/copies.tsv", 1, true), refused)
    support.remove(dir)
  end)

  it("take A from a file and write B to one", function()
    local npy = require "cute.npy"
    local dir = support.folder()
    local a = core.buffer("f32", 5 * 12)
    for i = 0, 59 do a[i] = i - 30 end
    assert(npy.write(dir .. "/a.npy", {dtype = "f32", shape = {5, 12},
                                       bytes = a:bytes()}))
    local _, err, code = script("transpose", "--device", "sim", "--dtype",
      "bf16", "--a", dir .. "/a.npy", "--out", dir .. "/b.npy")
    assert.equal("", err)
    assert.equal(0, code)
    local b = assert(npy.read(dir .. "/b.npy"))
    local got = core.buffer_from("f32", b.bytes)
    assert.same({12, 5}, {b.shape[1], b.shape[2]})
    for i = 0, 4 do
      for j = 0, 11 do assert.equal(a[i * 12 + j], got[j * 5 + i]) end
    end
    local _, wrong, no = script("copy_basic", "--device", "sim", "--m", "6",
                                "--a", dir .. "/a.npy")
    assert.equal(1, no)
    assert.truthy(wrong:find("[shape-mismatch]", 1, true), wrong)
    support.remove(dir)
  end)
end)
-- SPDX-License-Identifier: MIT
