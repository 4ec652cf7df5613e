-- Tests kernels/gemm_sm90 and the Hopper scripts of the ladder on the
-- simulator, with every schedule, cluster and layout of D, at odd sizes.
-- Operands are small whole numbers, so that results must equal sums on the host
-- exactly. NVRTC must compile the emitted text.
local core = require "cute.core"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local hopper = require "spec.hopper"
local jit = require "cute.jit"
local lesson = require "cutelua.bench.lesson"
local lib = require "cutelua.bench.lessonlib"
local planted = require "spec.planted"
local support = require "spec.support"

local DEVICE = "sim:sm_90a"
local matrix, product, differs, rounded = hopper.matrix, hopper.product,
  hopper.differs, hopper.rounded

describe("gemm_sm90 on the simulator", function()
  for number, case in ipairs(hopper.CASES) do
    it("is exact: " .. case[1] .. support.long(number), function()
      assert.is_nil(hopper.wrong(number, DEVICE))
    end)
  end

  it("takes beta without alpha", function()
    local A, B, D = matrix(70, 72, 1), matrix(40, 72, 2), matrix(70, 40)
    for i = 0, 69 do
      for j = 0, 39 do D[{i, j}] = i % 5 - j % 3 end
    end
    gemm_sm90({tile = {128, 64, 64}}).prepare(A, B, D, {device = DEVICE,
      beta = 2.0}):launch()
    local want = product(A, B)
    assert.is_nil(differs(D, function(i, j)
      return rounded(want(i, j) + 2 * (i % 5 - j % 3))
    end))
  end)

  it("scales, adds the previous D, and runs an epilogue #long", function()
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
    -- M is a multiple of the tile, but there is an odd number of tiles along M:
    -- the last cluster reaches one tile beyond M.
    local C, was = matrix(128, n, 3), {}
    for i = 0, 127 do
      was[i] = {}
      for j = 0, n - 1 do was[i][j] = C(i, j) end
    end
    local A0 = matrix(128, k, 1)
    want = product(A0, B)
    gemm_sm90({tile = {128, 256, 64}, cluster = {2, 1}, stages = 3})
      .prepare(A0, B, C, {device = DEVICE, sms = 2, alpha = -1.0,
                          beta = 3.0}):launch()
    assert.is_nil(differs(C, function(i, j)
      return rounded(3 * was[i][j] - want(i, j))
    end))
    want = product(A, B)
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
end)

describe("gemm_sm90 on the simulator", function()
  -- Configurations in which the epilogue reads one or two further matrices,
  -- with the types and layouts of these.
  local SOURCES = {
    {{tile = {128, 64, 64}}, "bf16 n"},
    {{tile = {128, 128, 64}, schedule = "pingpong", stages = 3, epi = {64, 32}},
     "bf16 n", "f32 n"},
    {{tile = {128, 128, 64}, schedule = "pingpong", stages = 3, epi = {64, 32},
      epi_loop = true}, "bf16 n", "f32 n"},
    {{tile = {128, 128, 64}, persistent = false, stages = 3, epi = {64, 32},
      epi_loop = true, source_stages = 1}, "bf16 n"},
    {{tile = {64, 64, 64}, schedule = "pingpong", cluster = {1, 2}, stages = 3,
      d_major = "m"}, "f32 m", "f16 m"},
    {{tile = {128, 128, 64}, split = 2, stages = 3}, "bf16 n", "bf16 m"},
    {{tile = {64, 96, 64}, consumers = 1, persistent = false}, "bf16 m"},
    {{tile = {64, 72, 64}, consumers = 1}, "f32 n", "bf16 n"},
    {{tile = {128, 64, 64}, scheduler = "dynamic", source_stages = 1}, "i32 n"},
    {{tile = {128, 64, 64}, cluster = {2, 1}, pdl = true}, "f16 n"},
  }
  for number, case in ipairs(SOURCES) do
    local choices, names = case[1], table.concat(case, ", ", 2)
    it(("brings %s to its epilogue, choice %d"):format(names, number)
       .. support.long(number), function()
      local o = {sources = {}, epilogue = function(acc, place)
        for i = 1, #case - 1 do
          acc = acc + i * place.source(i, cute.f32)
        end
        return acc
      end}
      for name, v in pairs(choices) do o[name] = v end
      for i = 2, #case do
        local dtype, major = case[i]:match "(%w+) (%w)"
        o.sources[i - 1] = {dtype = core.find_dtype(dtype), major = major}
      end
      local g = gemm_sm90(o)
      for turn = 1, 3 do
        if support.skipped(turn + number, 3) then goto next end
        local m, n, k = table.unpack(({{300, 264, 136}, {129, 72, 264},
                                       {64, 200, 200}})[turn])
        local A, B, list = matrix(m, k, 1), matrix(n, k, 2), {}
        for i, s in ipairs(o.sources) do
          list[i] = matrix(m, n, turn + i, s.dtype, s.major == "m")
        end
        local D = matrix(m, n, nil, nil, o.d_major == "m")
        local args = g.arguments(A, B, D, nil, nil, table.unpack(list))
        local grid = g.grid(m, n, 3)
        if o.scheduler then
          args[args.n + 1], args.n = g.workspace(grid), args.n + 1
        end
        g.kernel(table.unpack(args, 1, args.n)):launch {grid = grid,
          block = g.block, cluster = g.cluster, device = DEVICE, seed = turn,
          pdl = o.pdl}
        local want = product(A, B)
        assert.is_nil(differs(D, function(i, j)
          local sum = want(i, j)
          for x, t in ipairs(list) do sum = sum + x * t(i, j) end
          return rounded(sum)
        end))
        ::next::
      end
    end)
  end

  it("adds to the previous D, by TMA both ways", function()
    local g = gemm_sm90 {tile = {128, 64, 64}, epi = {64, 32},
      sources = {{dtype = cute.bf16, major = "n"}},
      epilogue = function(acc, place)
        return acc + place.source(1, cute.f32)
      end}
    local m, n, k = 300, 136, 72
    local A, B, D, was = matrix(m, k, 1), matrix(n, k, 2), matrix(m, n, 3), {}
    for i = 0, m - 1 do
      for j = 0, n - 1 do was[i * n + j] = D(i, j) end
    end
    local args = g.arguments(A, B, D, nil, nil, D)
    g.kernel(table.unpack(args, 1, args.n)):launch {grid = g.grid(m, n, 2),
      block = g.block, cluster = g.cluster, device = DEVICE}
    local want = product(A, B)
    assert.is_nil(differs(D, function(i, j)
      return rounded(want(i, j) + was[i * n + j])
    end))
  end)

  it("reports unsupported sources", function()
    local why = "gemm_sm90: source 1 = {dtype = u8, major = \"n\"}; a type of "
      .. "16 or 32 bits and \"n\" or \"m\" are needed"
    support.raises(why, gemm_sm90, {sources = {{dtype = cute.u8,
                                                major = "n"}}})
    support.raises('split = "stream" cannot be combined with the '
      .. 'option sources', gemm_sm90,
      {split = "stream", sources = {{dtype = cute.f32, major = "n"}}})
    support.raises('groups = "rows" cannot be combined with the option '
      .. 'sources', gemm_sm90,
      {groups = "rows", sources = {{dtype = cute.f32, major = "n"}}})
    local g = gemm_sm90 {sources = {{dtype = cute.f32, major = "n"}},
                         epilogue = function(acc) return acc end}
    local A, B, D = matrix(64, 64, 1), matrix(64, 64, 2), matrix(64, 64)
    support.raises("source 1 is", function()
      g.arguments(A, B, D, nil, nil, D)
    end)
    support.raises("a tensor of f32 is needed", function()
      g.arguments(A, B, D)
    end)
    support.raises("N of source 1 is not contiguous", function()
      g.arguments(A, B, D, nil, nil, matrix(64, 64, 1, "f32", true))
    end)
    local odd = cute.make_tensor(core.buffer("f32", 64 * 65),
                                 cute.make_layout({64, 64}, {65, 1}))
    support.raises("rows of source 1 are 260 bytes apart", function()
      g.arguments(A, B, D, nil, nil, odd)
    end)
  end)
end)

describe("gemm_sm90 on the simulator", function()
  it("loses less of 8-bit floats the more often it adds them in f32 #long",
    function()
      local m, n, k = 64, 32, 4096
      local function normal(rows, seed)
        local b = core.buffer("e4m3", rows * k):fill_normal(seed)
        return cute.make_tensor(b, cute.make_layout({rows, k}, {k, 1}))
      end
      local A, B = normal(m, 1), normal(n, 2)
      local want = product(A, B)
      local function lost(promote)
        local D = matrix(m, n, nil, "f32")
        gemm_sm90({tile = {64, 32, 128}, consumers = 1, dtype = cute.e4m3,
          d_dtype = cute.f32, promote = promote}).prepare(A, B, D,
          {device = DEVICE, sms = 1}):launch()
        local d2, w2 = 0, 0
        for i = 0, m - 1 do
          for j = 0, n - 1 do
            d2, w2 = d2 + (D(i, j) - want(i, j)) ^ 2, w2 + want(i, j) ^ 2
          end
        end
        return math.sqrt(d2 / w2)
      end
      local never, four, each = lost(nil), lost(4), lost(1)
      assert.truthy(never > 3 * four and four > 2 * each)
    end)

  it("begins before the launch that made its operand is done #long", function()
    for number, o in ipairs {
        {tile = {64, 64, 64}, consumers = 1, persistent = false},
        {tile = {128, 64, 64}, stages = 2, split = 2},
        {tile = {128, 64, 64}, stages = 2, cluster = {2, 1}}, hopper.PING,
        {tile = {128, 64, 64}, split = "stream", least = 1},
        {tile = {128, 64, 64}, stages = 3, scheduler = "dynamic"},
        {tile = {64, 64, 64}, consumers = 1, persistent = false, ahead = "b"},
        {tile = {64, 32, 64}, consumers = 1, split = 2, stages = 8,
         ahead = "b"}} do
      local choices = {pdl = true}
      for name, v in pairs(o) do choices[name] = v end
      local g = gemm_sm90(choices)
      local A, B = matrix(96, 144, 1), matrix(144, 144, 2)
      local C, D = matrix(96, 144), matrix(96, 144)
      for seed = 1, 3 do
        if support.skipped(seed + number, 3) then goto next end
        local opts = {device = DEVICE, seed = seed, sms = 4}
        g.prepare(A, B, C, opts):launch()
        local run = g.prepare(C, B, D, opts)
        run:launch_n(2)
        local text = run.program.source
        local wait = text:find "griddepcontrol%.wait"
        local done = text:find "griddepcontrol%.launch_dependents"
        assert.is_true(wait < text:find "tma_load_2d[%w_]*%(sA")
        assert.equal(o.ahead ~= nil, wait > text:find "tma_load_2d[%w_]*%(sB")
        assert.equal(o.ahead ~= nil, done < text:find "tma_store_2d%(&")
        local first = product(A, B)
        local want = product(C, B)
        assert.is_nil(differs(C, function(i, j)
          return rounded(first(i, j))
        end), number)
        assert.is_nil(differs(D, function(i, j)
          return rounded(want(i, j))
        end), number)
        ::next::
      end
    end
  end)

  it("rejects unsupported options", function()
    support.raises("no option 'stage'", gemm_sm90, {stage = 3})
    support.raises("persistent = false gives one tile", gemm_sm90,
                   {schedule = "pingpong", persistent = false})
    local g = gemm_sm90 {split = 2}
    support.raises("K = 64 has 1 tile of 64, fewer than split = 2",
      function()
        g.prepare(matrix(8, 64, 1), matrix(8, 64, 1), matrix(8, 8),
                  {device = DEVICE})
      end)
    local odd = cute.zeros({8, 9}, cute.bf16)
    assert.is_false(g.takes(odd, odd, matrix(8, 8)))
    assert.is_true(g.takes(matrix(8, 9), matrix(8, 9), matrix(8, 8)))
  end)
end)

describe("stream-K in gemm_sm90", function()
  local choices = {tile = {128, 64, 64}, stages = 3, split = "stream",
                   least = 1}
  local m, n, k = 300, 200, 520  -- 12 tiles
  local A, B, want

  setup(function()
    A, B = matrix(m, k, 1), matrix(n, k, 2)
    local exact = product(A, B)
    want = function(x, y) return rounded(exact(x, y)) end
  end)

  -- Runs the kernel on 5 SMs after changes of its text (spec.planted). Returns
  -- the fault, or if there is none, "ends" and what is wrong with D.
  local function changed(...)
    local g = planted.kernel {...}(choices)
    local D = matrix(m, n)
    local ok, why = g.prepare(A, B, D, {device = DEVICE, sms = 5})
      :launch {faults = "return"}
    if ok then return "ends", differs(D, want) end
    return why
  end

  it("is exact for any grid, and restores its workspace #long", function()
    local g = gemm_sm90(choices)
    for _, sms in ipairs {1, 3, 7, 12, 40} do
      local D = matrix(m, n)
      local space = g.workspace(g.grid(m, n, sms))
      local run = g.prepare(A, B, D, {device = DEVICE, sms = sms, seed = sms,
                                      workspace = space})
      for _ = 1, 2 do
        run:launch()
        assert.is_nil(differs(D, want), sms .. " multiprocessors")
        for i = 0, sms - 1 do assert.equal(0, space.turns[i]) end
      end
    end
  end)

  it("takes alpha, beta and an epilogue #long", function()
    local D = matrix(m, n, 3)
    local was = {}
    for i = 0, m * n - 1 do was[i] = D(i // n, i % n) end
    gemm_sm90(choices).prepare(A, B, D, {device = DEVICE, sms = 5, alpha = 2.0,
                                         beta = 0.5}):launch()
    local exact = product(A, B)
    assert.is_nil(differs(D, function(i, j)
      return rounded(2 * exact(i, j) + 0.5 * was[i * n + j])
    end))
  end)

  it("is reported if partial sums are passed wrongly #long", function()
    assert.same({"ends"}, {changed()})
    local race = "read by block .* and write by block .* with nothing to order"
    for _, sem in ipairs {"release", "acquire"} do
      local why = changed {"stream", 'sem = "' .. sem .. '"',
                           'sem = "relaxed"'}
      assert.matches(race, why)
      assert.matches("stream.lua:%d+: read", why)
    end
    assert.matches("bytes arrived that no expect_tx announced", changed {
      "stream", "self.room * self.threads * 16)",
      "self.room * self.threads * 8)"})
    assert.matches("lacks 8 of 8 arrivals", changed {
      "stream", "    pipe:consumer_release(read)\n", ""})
  end)

  it("reports incompatible options", function()
    local why = 'split = "stream" needs consumers that share a tile, and '
      .. "clusters along one mode"
    support.raises(why, gemm_sm90, {split = "stream", schedule = "pingpong"})
    support.raises(why, gemm_sm90, {split = "stream", cluster = {2, 2}})
    local g = gemm_sm90(choices)
    local args = g.arguments(A, B, matrix(m, n))
    support.raises('with split = "stream" or scheduler = "dynamic" the last '
      .. "argument must be a workspace", function()
        g.kernel(table.unpack(args, 1, args.n)):trace {block = g.block}
      end)
    why = 'scheduler = "dynamic" needs persistent = true and split = 1'
    support.raises(why, gemm_sm90, {split = "stream", scheduler = "dynamic"})
    support.raises(why, gemm_sm90, {split = 2, scheduler = "dynamic"})
    support.raises('scheduler = "static "; "static" or "dynamic" is needed',
                   gemm_sm90, {scheduler = "static "})
  end)
end)

local function said(o)
  local c = o.cluster and ("%dx%d"):format(o.cluster[1], o.cluster[2])
  return ("%dx%d %s"):format(o.tile[1], o.tile[2], c or o.schedule
    or o.split or "-")
end

describe("gemm_sm90's rule", function()
  -- {M, N, K, tile and cluster}: the fastest configuration on an H200, or one
  -- at most 1 % slower (docs/performance.md)
  local fastest = {
    {512, 512, 512, "64x32 -"}, {1024, 1024, 1024, "64x128 -"},
    {2048, 2048, 2048, "128x256 -"},
    {4096, 4096, 4096, "128x256 2x1"}, {8192, 1024, 8192, "128x256 2x1"},
    {8192, 8192, 8192, "128x256 2x1"}, {16384, 16384, 16384, "256x200 1x2"},
    {128, 1024, 8192, "64x128 4"}, {1536, 1536, 1536, "128x144 -"},
    {3072, 3072, 3072, "192x192 -"}, {4096, 11008, 4096, "256x200 1x2"},
    {4096, 4096, 128, "128x128 pingpong"}, {128, 8192, 8192, "64x128 -"},
    {8960, 258, 15280, "192x136 1x2"}, {176, 18944, 3584, "192x144 -"},
  }
  for _, row in ipairs {
      {cute.e4m3, nil, "128x128 pingpong", "128x128 pingpong",
       "128x192 pingpong"},
      {cute.e4m3, 1, "128x128 -", "128x208 -", "128x192 -"},
      {cute.i8, nil, "128x128 pingpong", "128x128 pingpong",
       "128x192 pingpong"},
      {cute.f32, nil, "128x256 2x1", "128x256 2x1", "256x208 1x2"}} do
    for j, n in ipairs {2048, 4096, 8192} do
      fastest[#fastest + 1] = {n, n, n, row[j + 2], dtype = row[1],
                               promote = row[2], d_major = "n"}
    end
  end

  it("chooses the fastest configuration", function()
    for _, s in ipairs(fastest) do
      local o = gemm_sm90.choose(s[1], s[2], s[3], {dtype = s.dtype,
        promote = s.promote, d_major = s.d_major or "m"})
      assert.equal(s[4], said(o), ("%dx%dx%d %s"):format(s[1], s[2], s[3],
        tostring(s.dtype)))
      assert.equal(s.d_major or "m", o.d_major)
    end
    assert.is_true(gemm_sm90.choose(16384, 16384, 16384).raster_along_m)
    assert.is_nil(gemm_sm90.choose(4096, 11008, 4096).raster_along_m)
    for _, size in ipairs {{4096, 2048, true}, {4096, 4096, true},
                           {2048, 14336}} do
      local turns
      for _, c in ipairs(gemm_sm90.candidates(size[1], size[2], 4096)) do
        if c.options.schedule == "pingpong" then turns = c.options end
      end
      assert.equal(size[3], turns.raster_along_m)
    end
    assert.is_nil(gemm_sm90.choose(4096, 4096, 4096).persistent)
    assert.is_false(gemm_sm90.choose(2048, 2048, 2048).persistent)
  end)

  it("has blocks side by side that read few rows", function()
    -- Tiles are 64x64. A run is a group of neighbouring tiles along one mode of
    -- D, which consecutive blocks take. Runs have 2 tiles if that makes blocks
    -- read less: 12 blocks then read 2 rows of tiles of one operand and 6 of
    -- the other, instead of 1 and 12. If there are more tiles, runs have 4
    -- tiles, and 12 blocks read 4 and 3.
    for _, s in ipairs {{128, 4096, nil, {2, 64, 1}},
                        {4096, 128, true, {2, 64, 1}},
                        {512, 1024, nil, {4, 16, 2}},
                        {1024, 512, true, {4, 16, 2}},
                        {512, 512, nil, {4, 8, 2}}} do
      local found
      for _, c in ipairs(gemm_sm90.candidates(s[1], s[2], 4096)) do
        local o = c.options
        if o.tile[1] == 64 and o.tile[2] == 64 and not o.split then
          found = o
        end
      end
      assert.equal(s[3], found.raster_along_m)
      assert.same(s[4], gemm_sm90(found).grid(s[1], s[2]))
    end
    assert.same({2, 4, 3}, gemm_sm90({tile = {128, 64, 64}, split = 2,
      raster_along_m = true}).grid(384, 256))
    -- With clusters, raster_along_m does not swap the modes of the
    -- grid.
    assert.same({4, 4, 1}, gemm_sm90({tile = {128, 64, 64}, cluster = {2, 1},
      persistent = false, raster_along_m = true}).grid(384, 256))
  end)

  it("has no more clusters than run at once", function()
    for _, s in ipairs {
      {{1, 1}, nil, {1, 1, 132}}, {{2, 1}, nil, {2, 1, 66}},
      {{2, 2}, nil, {2, 2, 30}}, {{4, 1}, nil, {4, 1, 30}},
      {{4, 2}, nil, {4, 2, 15}}, {{4, 4}, nil, {4, 4, 7}},
      {{2, 2}, 120, {2, 2, 30}}, {{2, 2}, 40, {2, 2, 10}},
      {{2, 2}, 3, {2, 2, 1}}, {{2, 2}, 160, {2, 2, 40}},
    } do
      local g = gemm_sm90 {tile = {128, 256, 64}, cluster = s[1]}
      assert.same(s[3], g.grid(8192, 8192, s[2]))
    end
    local few = gemm_sm90 {tile = {128, 256, 64}, cluster = {2, 2}}
    assert.same({2, 2, 4}, few.grid(512, 1024))
  end)

  it("has every tile in runs, too #long", function()
    local m, n, k = 384, 212, 64
    local A = cute.randint(-3, 4, {m, k}, cute.bf16, {seed = 1})
    local B = cute.randint(-3, 4, {n, k}, cute.bf16, {seed = 2})
    local want = cute.zeros({m, n}, cute.f32)
    local o = {tile = {64, 32, 64}, consumers = 1, stages = 2,
               d_dtype = cute.f32}
    gemm_sm90(o).prepare(A, B, want, {sms = 4}):launch()
    for _, c in ipairs {{nil, {3, 7, 2}}, {true, {7, 6, 1}}} do
      o.persistent, o.raster_along_m = false, c[1]
      local gemm, D = gemm_sm90(o), cute.full({m, n}, 0 / 0, cute.f32)
      assert.same(c[2], gemm.grid(m, n))
      gemm.prepare(A, B, D):launch()
      local wrong = 0
      for i, x in want:elements() do
        if D(i) ~= x then wrong = wrong + 1 end
      end
      assert.equal(0, wrong)
    end
  end)
end)

describe("gemm_sm90's rule", function()
  it("lets blocks exit after one wave, and L2 keep repeated reads",
     function()
    local Hint = cute.nvgpu.cpasync.CacheHint
    local FIRST, LAST = Hint.EVICT_FIRST, Hint.EVICT_LAST
    local function settled(m, n, k, o)
      local c = gemm_sm90.choose(m, n, k, o)
      return c.persistent, c.a_hint, c.b_hint, c.l2_promotion
    end
    assert.same({false}, {settled(1024, 1024, 1024)})
    assert.equal(8, gemm_sm90.choose(1024, 1024, 1024).stages)
    assert.equal(4, gemm_sm90.choose(512, 512, 512).stages)
    assert.same({}, {settled(4096, 4096, 4096)})
    assert.same({}, {settled(4096, 4096, 128)})
    assert.same({n = 4, false, LAST, FIRST, 256},
                table.pack(settled(64, 8192, 8192)))
    assert.same({n = 4, false, FIRST, LAST, 256},
                table.pack(settled(8192, 64, 8192)))
    assert.same({n = 4, true, FIRST, 5, 64}, table.pack(settled(8192, 32, 8192,
      {persistent = true, b_hint = 5, l2_promotion = 64})))
  end)

  it("omits tiles that were slow", function()
    -- tiles of 192 rows for batches and groups, and with scale factors
    for _, o in ipairs {{batches = true}, {groups = "list"}, {blocks = 128}} do
      for _, c in ipairs(gemm_sm90.candidates(256, 256, 256, o)) do
        assert.not_equal(192, c.options.tile[1])
      end
    end
    -- tiles of 256x200, if B's columns are contiguous
    for _, c in ipairs(gemm_sm90.candidates(1216, 10240, 6144,
                                            {b_major = "n"})) do
      assert.equal(0, c.options.tile[2] % 16)
    end
  end)

  it("gives candidates that fit, the best first", function()
    for _, o in ipairs {{}, {dtype = cute.e4m3, promote = 4},
                        {dtype = cute.f32, d_major = "m"}, {dtype = cute.i8},
                        {sms = 20, pdl = true}} do
      local list = gemm_sm90.candidates(300, 200, 64, o)
      assert.is_true(#list > 3)
      for i, c in ipairs(list) do
        assert.is_true(i == 1 or list[i - 1].seconds <= c.seconds)
        assert.equal(o.dtype, c.options.dtype)
        assert.is_nil(c.options.sms)
        local full = gemm_sm90(c.options).options
        local rows = full.rows + (o.promote and 64 or 0)
        assert.is_true(rows * full.tile[2] // 128 <= 216)
        assert.is_true(c.options.stages >= 2)
      end
    end
    -- With factors of blocks, two blocks share the K of a tile.
    local function chosen(blocks)
      return gemm_sm90.choose(128, 2112, 7168, {dtype = cute.e4m3, promote = 1,
                                                blocks = blocks})
    end
    assert.same({{64, 64, 128}, 2}, {chosen(1).tile, chosen(1).split})
    assert.is_nil(chosen(nil).split)
    -- 20 clusters of two blocks need 40 SMs, so they run in one wave.
    local c = gemm_sm90.candidates(2560, 512, 64, {sms = 40})
    for _, x in ipairs(c) do
      if said(x.options) == "128x256 2x1" then
        assert.equal(1.0, x.waves)
        return
      end
    end
    error "no cluster of 2 x 1"
  end)

  it("is right with its own choice", function()
    for i, s in ipairs {{200, 72, 136}, {70, 520, 72}, {130, 264, 520},
                        {70, 60, 1160}} do
      local m, n, k = table.unpack(s)
      local A, B, D = matrix(m, k, i), matrix(n, k, i + 5), matrix(m, n)
      gemm_sm90(gemm_sm90.choose(m, n, k, {sms = 6})).prepare(A, B, D,
        {device = DEVICE, sms = 6}):launch()
      local want = product(A, B)
      assert.is_nil(differs(D, function(x, y)
        return rounded(want(x, y))
      end))
    end
  end)
end)

describe("Hopper's kernels at odd sizes:", function()
  for i, kernel in ipairs(require "spec.ours") do
    it(kernel.name .. support.long(i), function()  -- spec/fuzz/hopper.lua
      for seed = i, i + 1 do
        assert.is_nil(kernel.wrong(hopper.SIZES[seed % 12 + 1], seed))
      end
    end)
  end
end)

describe("the Hopper rung", function()
  for n, name in ipairs {"gemm_tma", "gemm_ws", "gemm_hopper",
                         "gemm_hopper --dtype f16", "gemm_hopper --dtype e4m3",
                         "gemm_hopper --dtype tf32", "gemm_hopper --dtype i8"}
  do
    local script, flag = name:match "^(%S+) ?(.*)$"
    local rung = lesson.rung(assert(lib.script_spec("scripts/" .. script ..
      ".lua", "cutelua.bench.lesson", "gemm")), flag)
    rung.name = name
    it(name .. " is right at 256^3 and odd sizes" .. support.long(n),
       function()
      for i, size in ipairs {{256, 256, 256}, {136, 200, 80}, {64, 520, 320}} do
        local p = lesson.problem(rung, size, {seed = i})
        local report = lesson.simulate(rung, p, DEVICE, {seed = i})
        assert.is_true(report.ok, tostring(report))
        local ok, v, how = lesson.verify(rung, p)
        assert.is_true(ok, lesson.what_is_wrong(v, how))
        assert.equal(script, report.kernel)
      end
      if script == "gemm_hopper" then  -- gemm_hopper is persistent: one block
                                       -- per SM.
        local large = rung.choose and rung.choose(8192, 8192, 8192) or rung
        local g = large.grid(8192, 8192, 8192)
        assert.equal(132, g[1] * g[2] * g[3])
      end
      -- rows of this problem have fewer than 16 bytes, so TMA cannot read them
      local p = lesson.problem(rung, {40, 30, 18},
                               {alpha = 2,
                               beta = rung.sums == "i32" and 3 or 0.5})
      local report = lesson.simulate(rung, p, DEVICE)
      assert.is_true(report.ok, tostring(report))
      assert.is_true((lesson.verify(rung, p)))
    end)
  end
end)

describe("the Hopper scripts", function()
  it("report which kernel runs instead, and why #long", function()
    local function says(name, words, why)
      local out, err, code = support.run {("scripts/%s.lua"):format(name),
        "--device", "sim", table.unpack(words)}
      assert.equal("", err)
      assert.equal(0, code)
      local want = ("\ninstead     of %s, kernels/gemm_sm80.lua: %s\n"):format(
        name, why)
      assert.truthy(out:find(want, 1, true), out)
    end
    for _, name in ipairs {"gemm_tma", "gemm_ws"} do
      says(name, {"--m", "40", "--n", "30", "--k", "20"}, "rows of A are 40 "
        .. "bytes apart, TMA takes multiples of 16")
    end
    says("gemm_hopper", {"--m", "40", "--n", "30", "--k", "24"}, "rows of D "
      .. "are 60 bytes apart; TMA needs multiples of 16")
    says("gemm_hopper", {"--m", "40", "--n", "32", "--k", "20", "--dtype",
      "i8"}, "rows of A are 20 bytes apart; TMA needs multiples of 16")
    says("gemm_wgmma", {"--m", "40", "--n", "30", "--k", "20"},
      "M, N and K must be multiples of 128, 128 and 64")
    says("gemm_ws", {"--layout", "nt", "--m", "40", "--n", "32", "--k", "64"},
      "operands are nt, but it needs tn")
    for name, arch in pairs {gemm_wgmma = 80, gemm_tma = 89, gemm_ws = 100,
                             gemm_hopper = 86} do
      says(name, {"--arch", "sm_" .. arch, "--m", "128", "--n", "128"},
           ("sm_%d has no wgmma"):format(arch))
    end
    local _, err = support.run {"scripts/gemm_tma.lua", "--device", "sim",
                                "--arch", "sm_90"}
    assert.truthy(err:find("it needs sm_90a, the target is sm_90 [wrong-arch]",
                           1, true), err)
  end)

  it("report which argument is wrong #long", function()
    for words, want in pairs {
      ["--m 0"] = "--m: a whole number of at least 1 expected, got '0'",
      ["--n -3"] = "--n: a whole number of at least 1 expected, got '-3'",
      ["--k x"] = "--k: a whole number expected, got 'x'",
      ["--k 1.5"] = "--k: a whole number expected, got '1.5'",
      ["--m 99999999999"] =
        "--m 99999999999; the limit of an extent is 2147483647",
      ["--m 2000000000 --n 2000000000 --k 64"] =
        "2000000000 x 2000000000 x 64 needs ",
      ["--layout xx"] = "--layout: one of tn, nt, nn, tt expected, got 'xx'",
      ["--dtype f64"] =
        "--dtype: one of bf16, f16, e4m3, tf32, i8 expected, got 'f64'",
      ["--dtype"] = "--dtype needs a value",
      ["--dtype i8 --alpha 0.5"] =
        "--alpha and --beta must be integers for integer products",
      ["--alpha nan"] = "--alpha: a finite number expected, got 'nan'",
      ["--rounds -1"] =
        "--rounds: a whole number of at least 0 expected, got '-1'",
      ["--stages 3"] = "unknown option '--stages'"} do
      local list = {"scripts/gemm_hopper.lua", "--device", "sim"}
      for word in words:gmatch "%S+" do list[#list + 1] = word end
      local out, err, code = support.run(list)
      assert.equal("", out)
      assert.is_true(code == 1 or code == 2, err)
      assert.truthy(err:find("gemm_hopper: " .. want, 1, true), err)
    end
  end)
end)

describe("gemm_sm90 as text", function()
  it("uses no local memory and gives no warnings", function()
    if not jit.version() then return pending "needs NVRTC" end
    for _, o in ipairs {hopper.CASES[1][2], hopper.PING, hopper.CASES[8][2],
                        hopper.CASES[9][2],
                        {tile = {256, 208, 64}, stages = 3, epi_stages = 1,
                         cluster = {1, 2}, split = "stream"},
                        {tile = {256, 200, 64}, stages = 3, epi_stages = 1},
                        {tile = {256, 128, 128}, dtype = cute.e4m3,
                         promote = 1}} do
      local g = gemm_sm90(o)
      local full = g.options
      local args = g.arguments(matrix(256, 128, 1, full.a_dtype),
        matrix(256, 128, 1, full.b_dtype),
        matrix(256, 256, nil, full.d_dtype, o.d_major == "m"))
      if full.stream then
        args.n = args.n + 1
        args[args.n] = g.workspace {1, 2, 3}
      end
      local out = assert(g.kernel(table.unpack(args, 1, args.n))
        :trace {block = g.block, cluster = g.cluster}:compile "sm_90a")
      assert.same({}, out.warnings)
      assert.is_true(out.resources.spill_stores <= 16,
                     out.resources.spill_stores .. " bytes spilled")
    end
  end)
end)
-- SPDX-License-Identifier: MIT
