-- kernels/gemm_sm90 and the Hopper rungs of the ladder on the simulator: every
-- schedule, cluster and order of D, at odd sizes, small whole numbers against
-- sums on the host; and their text under NVRTC.
local core = require "cute.core"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local jit = require "cute.jit"
local lesson = require "cute.bench.lesson"
local lib = require "cute.bench.lessonlib"
local support = require "spec.support"

local DEVICE = "sim:sm_90a"

-- A matrix whose rows (or, m_major, columns) begin at multiples of 16 bytes.
local function matrix(rows, cols, seed, dtype, m_major)
  local t = core.find_dtype(tostring(dtype or "bf16"))
  local lead = (m_major and rows or cols) + 15 & ~15
  local b = core.buffer(t, (m_major and cols or rows) * lead)
  if seed then b:fill_int(seed, t == core.u8 and 0 or -3, 3)
  elseif t.is_integer then b:fill(77)
  else b:fill(0 / 0) end
  return cute.make_tensor(b, cute.make_layout({rows, cols},
    m_major and {1, lead} or {lead, 1}))
end

-- A B^T, by row.
local function product(A, B)
  local m, n, k = A.shape[1], B.shape[1], A.shape[2]
  local function packed(t)
    local f = core.buffer("f32", t.shape[1] * k)
    for i = 0, t.shape[1] - 1 do
      for j = 0, k - 1 do f[i * k + j] = t(i, j) end
    end
    return f
  end
  local ref = core.gemm_reference(packed(A), packed(B),
                                  core.buffer("f64", m * n), m, n, k)
  return function(i, j) return ref[i * n + j] end
end

local function differs(D, want)
  for i = 0, D.shape[1] - 1 do
    for j = 0, D.shape[2] - 1 do
      if D(i, j) ~= want(i, j) then
        return ("(%d,%d) is %s, not %s"):format(i, j, D(i, j), want(i, j))
      end
    end
  end
end

-- bf16's nearest number.
local cell = core.buffer("bf16", 1)
local function rounded(x)
  cell[0] = x
  return cell[0]
end

local PING = {tile = {128, 128, 64}, stages = 3, schedule = "pingpong"}
local CASES = {
  {"cooperative", {stages = 3}},
  {"one consumer", {tile = {64, 32, 128}, consumers = 1, d_major = "m"}},
  {"a cluster of 2 x 1", {tile = {128, 256, 64}, cluster = {2, 1}, stages = 3}},
  {"a cluster of 1 x 2", {tile = {128, 64, 64}, cluster = {1, 2}, stages = 2,
                          d_major = "m"}},
  {"a cluster of 2 x 2", {tile = {128, 64, 64}, cluster = {2, 2}, stages = 2}},
  {"turns", PING},
  {"turns in a cluster", {tile = {64, 64, 64}, stages = 4, cluster = {1, 2},
                          schedule = "pingpong", d_major = "m"}},
  {"registers passed on", {tile = {256, 208, 64}, stages = 3, epi_stages = 1,
                           cluster = {1, 2}, d_major = "m"}},
  {"K in halves", {tile = {128, 128, 64}, stages = 3, split = 2}},
  {"f16", {tile = {64, 64, 64}, consumers = 1, dtype = cute.f16}},
  {"e4m3", {tile = {128, 64, 128}, dtype = cute.e4m3, d_dtype = cute.f32}},
  {"e5m2 x e4m3, promoted", {tile = {64, 64, 128}, consumers = 1, promote = 2,
    a_dtype = cute.e5m2, b_dtype = cute.e4m3, d_dtype = cute.f32}},
  {"tf32", {tile = {128, 64, 32}, dtype = cute.f32, d_major = "m"}},
  {"i8", {tile = {128, 64, 128}, dtype = cute.i8, schedule = "pingpong",
          stages = 3}},
  {"u8 x i8", {tile = {64, 96, 128}, consumers = 1, a_dtype = cute.u8,
               b_dtype = cute.i8}},
}

-- 12 sizes; which of them a case runs goes round, so that all are met.
local SIZES = {
  {128, 128, 128}, {200, 104, 264}, {1, 1, 128}, {257, 129, 72},
  {64, 300, 130}, {300, 64, 65}, {129, 257, 200}, {511, 40, 128},
  {40, 511, 136}, {320, 320, 70}, {127, 255, 129}, {256, 16, 512},
}

describe("gemm_sm90 on the simulator", function()
  for number, case in ipairs(CASES) do
    it("is exact: " .. case[1], function()
      local g = gemm_sm90(case[2])
      for i = 1, 3 do
        local m, n, k = table.unpack(SIZES[(number * 3 + i * 5) % #SIZES + 1])
        if k <= 64 * (case[2].split or 1) then k = 136 end
        local o = g.options
        local A, B = matrix(m, k, i, o.a_dtype), matrix(n, k, i + 9, o.b_dtype)
        local D = matrix(m, n, nil, o.d_dtype, case[2].d_major == "m")
        local run = g.prepare(A, B, D, {device = DEVICE, sms = 4, seed = i})
        local r = support.report(run:launch {faults = "return"})
        assert.is_true(r.ok, tostring(r))
        local want = product(A, B)
        assert.is_nil(differs(D, function(x, y)
          return o.d_dtype == cute.bf16 and rounded(want(x, y)) or want(x, y)
        end), ("%dx%dx%d"):format(m, n, k))
      end
    end)
  end

  it("scales, adds what was there, and runs an epilogue", function()
    local m, n, k = 130, 72, 136
    local A, B = matrix(m, k, 1), matrix(n, k, 2)
    local want = product(A, B)
    for _, beta in ipairs {0.0, 0.5} do
      local D = matrix(m, n, beta ~= 0 and 3)
      local was = {}
      for i = 0, m - 1 do
        was[i] = {}
        for j = 0, n - 1 do was[i][j] = D(i, j) end
      end
      gemm_sm90({tile = {128, 64, 64}}).prepare(A, B, D, {device = DEVICE,
        sms = 2, alpha = 2.0, beta = beta}):launch()
      assert.is_nil(differs(D, function(i, j)
        return rounded(2 * want(i, j) + (beta ~= 0 and beta * was[i][j] or 0))
      end))
    end
    local bias = cute.zeros({n}, cute.f32)
    for j = 0, n - 1 do bias[j] = j % 5 end
    local g = gemm_sm90 {tile = {128, 64, 64}, epilogue = function(acc, part, b)
      return cute.max(acc + part.load(b), 0)
    end}
    local D = matrix(m, n)
    local args = g.arguments(A, B, D, nil, nil, bias)
    g.kernel(table.unpack(args, 1, args.n)):launch {grid = g.grid(m, n, 2),
      block = g.block, cluster = g.cluster, device = DEVICE}
    assert.is_nil(differs(D, function(i, j)
      return rounded(math.max(want(i, j) + j % 5, 0))
    end))
  end)

  it("refuses what it cannot do", function()
    support.raises("no option 'stage'", gemm_sm90, {stage = 3})
    support.raises("split is 1 or, without clusters and turns, 2", gemm_sm90,
                   {split = 2, cluster = {2, 1}})
    local g = gemm_sm90 {split = 2}
    support.raises("K of 64 is one tile of 64, which cannot be split",
      function()
        g.prepare(matrix(8, 64, 1), matrix(8, 64, 1), matrix(8, 8),
                  {device = DEVICE})
      end)
    local odd = cute.zeros({8, 9}, cute.bf16)
    assert.is_false(g.takes(odd, odd, matrix(8, 8)))
    assert.is_true(g.takes(matrix(8, 9), matrix(8, 9), matrix(8, 8)))
  end)
end)

describe("the Hopper rung", function()
  for _, name in ipairs {"gemm_tma", "gemm_ws", "gemm_hopper"} do
    local rung = lesson.rung(assert(lib.script_spec("scripts/" .. name ..
      ".lua", "cute.bench.lesson", "gemm")))
    rung.name = name
    it(name .. " is right at 256^3 and odd sizes", function()
      for i, size in ipairs {{256, 256, 256}, {136, 200, 72}, {64, 520, 320}} do
        local p = lesson.problem(rung, size, {seed = i})
        local report = lesson.simulate(rung, p, DEVICE, {seed = i})
        assert.is_true(report.ok, tostring(report))
        local ok, v, how = lesson.verify(rung, p)
        assert.is_true(ok, lesson.what_is_wrong(v, how))
      end
      local p = lesson.problem(rung, {40, 30, 20},  -- rows of 40 bytes
                               {alpha = 2, beta = 0.5})
      local report = lesson.simulate(rung, p, DEVICE)
      assert.is_true(report.ok, tostring(report))
      assert.is_true((lesson.verify(rung, p)))
    end)
  end
end)

describe("gemm_sm90 as text", function()
  it("keeps to registers and says nothing", function()
    if not jit.version() then return pending "no NVRTC" end
    for _, o in ipairs {CASES[1][2], PING, CASES[8][2], CASES[9][2],
                        {tile = {256, 200, 64}, stages = 3, epi_stages = 1}} do
      local g = gemm_sm90(o)
      local args = g.arguments(matrix(256, 128, 1), matrix(256, 128, 1),
                               matrix(256, 256, nil, nil, o.d_major == "m"))
      local out = assert(g.kernel(table.unpack(args, 1, args.n))
        :trace {block = g.block, cluster = g.cluster}:compile "sm_90a")
      assert.same({}, out.warnings)
      assert.is_true(out.resources.spill_stores <= 16,
                     out.resources.spill_stores .. " bytes spilled")
    end
  end)
end)
