-- Tests products of few rows (kernels/gemm_skinny.lua) against sums in plain
-- Lua, with random configurations, sizes and strides. Also tests for which
-- calls cute.ops chooses this kernel.
local core = require "cute.core"
local cute = require "cute"
local gemm_skinny = require "kernels.gemm_skinny"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local support = require "spec.support"

-- Returns a tensor (..., rows, k) of small whole numbers or, without `seed`, of
-- values that a kernel must not read. Rows begin at multiples of 8 elements.
local function matrix(shape, dtype, seed, pad)
  local rank, stride = #shape, {}
  local at = shape[rank] + (pad or 0)
  stride[rank] = 1
  for i = rank - 1, 1, -1 do stride[i], at = at, at * shape[i] end
  local b = core.buffer(dtype, at)
  local least = dtype == "u8" and 0 or -2
  if seed then b:fill_int(seed, least, 3) else b:fill(0 / 0) end
  return cute.make_tensor(b, cute.make_layout(shape, stride))
end

local function same(_, _, _, sum) return sum end

-- Returns the result of a kernel with configuration `o` on the simulated
-- `device`. S is the tensor of B's scale factors.
local function product(o, A, B, D, device, make, S)
  local m, l = A.shape[1], cute.rank(A) > 2 and A.shape[3] or 1
  local made = (make or gemm_skinny)(o)
  local sums, counts = made.scratch(m, l)
  local list, turns = {A, B}, nil
  for _, t in ipairs {S or D, S and D} do list[#list + 1] = t end
  if sums then
    turns = cute.zeros({counts}, cute.i32)
    table.move({cute.empty({sums}, cute.f32), turns}, 1, 2, #list + 1, list)
  end
  local call = made.kernel(table.unpack(list))
  call:launch {grid = made.grid(m, l), block = made.block, device = device,
               cluster = made.cluster}
  return made, call, turns
end

local WARPS = {{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}, {1, 8}, {4, 2}}

-- Returns a random configuration with operands.
local function problem(number)
  local pick = ops.random(number)
  local dtype = pick {"bf16", "f16"}
  local o = {m = pick {1, 2, 5, 8, 9, 16, 17}, n = pick {1, 7, 16, 40, 67, 130},
             k = 8 * pick {1, 3, 4, 12, 31, 64, 65}, dtype = cute[dtype],
             side = pick {"a", "b"}, count = pick {1, 2, 3},
             unroll = pick {1, 2, 4}, warps = pick(WARPS),
             splits = pick {1, 1, 2, 3}}
  -- The kernel is made for o.m rows, but A may have more or fewer.
  local rows = pick {o.m, 1, 19}
  local A = matrix({rows, o.k}, dtype, 1, pick {0, 8})
  local B = matrix({o.n, o.k}, dtype, 2, pick {0, 8, 24})
  local D = ops.tensor(pick, {rows, o.n}, pick {"f32", dtype})
  return o, A, B, D
end

-- Returns a random problem as `problem` does, but B has 8-bit elements. K is a
-- multiple of 16. Groups of B may have scale factors S. The last result has the
-- elements of B, multiplied by S if there is one.
local function of_bytes(number)
  local o, A, _, D = problem(number)
  local pick = ops.random(number + 1000)
  local b = pick {"i8", "u8", "e4m3", "e5m2"}
  o.k, o.b_dtype = o.k * 2, cute[b]
  local B = matrix({o.n, o.k}, b, 2, pick {0, 16})
  local whole, S = cute.zeros({o.n, o.k}, cute.f32), nil
  o.group = o.side == "a" and pick {false, 64, 128, 64} or nil
  if o.group then
    S = ops.tensor(pick, {o.n, (o.k + o.group - 1) // o.group}, "f32", 5, "k")
  end
  for n = 0, o.n - 1 do
    for k = 0, o.k - 1 do
      whole[{n, k}] = B(n, k) * (S and S(n, k // o.group) or 1)
    end
  end
  A = matrix({A.shape[1], o.k}, tostring(A.element_type), 1, pick {0, 8})
  return o, A, B, D, S, whole
end

describe("gemm_skinny", function()
  it("is right with weights of 8 bits, and their factors #long", function()
    for number = 1, 40 do
      if not support.skipped(number, 3) then
        local o, A, B, D, S, whole = of_bytes(number)
        o.cluster = number % 2 == 1 or nil
        product(o, A, B, D, "sim:sm_90a", nil, S)
        assert.is_nil(ops.differs(A, whole, D, same), number)
      end
    end
  end)

  for first = 1, 60, 10 do
    it(("is right: problems %d to %d"):format(first, first + 9)
       .. support.long(first), function()
      for number = first, first + 9 do
        local o, A, B, D = problem(number)
        local device = number % 2 == 0 and "sim:sm_80" or "sim:sm_90a"
        o.cluster = number % 2 == 1 or nil
        local _, _, turns = product(o, A, B, D, device)
        assert.is_nil(ops.differs(A, B, D, same), number)
        for i = 0, turns and cute.size(turns) - 1 or -1 do
          -- The kernel must leave the counters at 0 for the next launch.
          assert.equal(0, turns(i))
        end
      end
    end)
  end

  it("has no conflicts in shared memory", function()
    local A, B = matrix({8, 512}, "bf16", 1), matrix({64, 512}, "bf16", 2)
    for _, side in ipairs {"a", "b"} do
      local made = gemm_skinny {m = 8, n = 64, k = 512, side = side, count = 2,
                                warps = {2, 4}, unroll = 2}
      local report = made.kernel(A, B, cute.zeros({8, 64}, cute.bf16)):launch {
        grid = made.grid(8), block = made.block, device = "sim:sm_90a"}
      assert.is_true(#report.lines > 0)
      for _, line in ipairs(report.lines) do
        assert.equal(0, line.conflicts)
      end
    end
  end)

  -- Faults planted in the kernel's text: {text, its replacement, number of the
  -- problem}.
  for _, f in ipairs {
    {"row = cute.min(row, last)", "row = row", 16},
    {"cute.lt(piece, pieces)", "cute.ge(piece, 0)", 34},
    {"held(_, _, slot):fill(0)", "", 34},
    {"cute.eq(party, full % step)", "cute.ge(party, 0)", 34},
    {"cute.lt(party, full)", "cute.ge(party, 0)", 34},
    {"at.z * p.warps[2] + at.wk", "at.wk", 33},
    {"at.wn * p.high", "0 * p.high", 33},
    {"threads < p.block and", "false and", 34, file = "splitk_skinny"},
    {"arch.cluster_wait()", "", 33, file = "splitk_skinny",
     cluster = true},
    {"arch.mbarrier_wait(parts.came, 0, {scope = \"cluster\"})", "", 33,
     file = "splitk_skinny", cluster = true},
    {"    arch.mbarrier_init_fence()\n", "", 33, file = "splitk_skinny",
     cluster = true},
    {"arch.cluster_arrive_relaxed()", "", 33, file = "splitk_skinny",
     cluster = true},
    {"4 * cute.size(sums)", "cute.size(sums)", 33, file = "splitk_skinny",
     cluster = true},
    {"for other = 0, parts.others - 1", "for other = 1, parts.others - 1", 33,
     file = "splitk_skinny", cluster = true},
  } do
    it(("reports a fault: %s -> %s"):format(f[1], f[2]), function()
      local made = kernels.changed("gemm_skinny", f)
      local o, A, B, D = problem(f[3])
      o.cluster = f.cluster
      local ok, right = pcall(function()
        product(o, A, B, D, "sim:sm_90a", made)
        return not ops.differs(A, B, D, same)
      end)
      assert.is_false(ok and right)
    end)
  end

  it("loads B by whole lines, and no rows that no lane has", function()
    local function loads(m, n, side)
      local A, B = matrix({m, 512}, "bf16", 1), matrix({n, 512}, "bf16", 2)
      local D = cute.zeros({m, n}, cute.f32)
      local made = gemm_skinny {m = m, n = n, k = 512, side = side, unroll = 2}
      local text = made.kernel(A, B, D):trace {grid = made.grid(m),
        block = made.block}:cuda "sm_90a"
      local _, of_a = text:gsub("= %*%(const uint4 %*%)%(A", "")
      local _, of_b = text:gsub("= ld_l2<128>%(%(const uint4 %*%)%(B", "")
      return of_a, of_b
    end
    -- Each load occurs twice in the text: before the loop and in the loop.
    assert.same({4, 4}, {loads(8, 64, "b")})
    assert.same({8, 4}, {loads(9, 64, "b")})
    assert.same({4, 8}, {loads(8, 64, "a")})
    assert.same({4, 4}, {loads(8, 8, "a")})
  end)

  it("reports that clusters have 8 blocks at most", function()
    local ok, why = pcall(gemm_skinny, {n = 16, k = 16, splits = 9,
                                        cluster = true})
    assert.is_false(ok)
    assert.matches("a cluster of 9 blocks; at most 8 are "
      .. "possible", why, 1, true)
  end)
end)

describe("gemm_skinny", function()
  it("gives a row the same bits among any others", function()
    local k = 1024
    local a, b = core.buffer("bf16", 16 * k), core.buffer("bf16", 48 * k)
    for i = 0, #a - 1 do a[i] = math.sin(i) end
    for i = 0, #b - 1 do b[i] = math.cos(3 * i) / 7 end
    local B = cute.make_tensor(b, cute.make_layout({48, k}, {k, 1}))
    for _, side in ipairs {"a", "b"} do
      local function of(first, m)
        local A = cute.make_tensor(cute.make_tensor(a, cute.make_layout {1})
          .iterator + first * k, cute.make_layout({m, k}, {k, 1}))
        local D = cute.zeros({m, 48}, cute.f32)
        product({m = m, n = 48, k = k, side = side, splits = 2, unroll = 2}, A,
                B, D, "sim:sm_90a")
        return D
      end
      local all = of(0, 16)
      for row = 0, 15, 5 do
        local one = of(row, 1)
        for n = 0, 47 do assert.equal(all(row, n), one(0, n)) end
      end
    end
  end)

  it("rejects unsupported options with a reason", function()
    local function refuses(text, o)
      local ok, why = pcall(gemm_skinny, o)
      assert.is_false(ok)
      assert.is_truthy(why:find(text, 1, true), why)
    end
    refuses("gemm_skinny: K is 12; multiples of 8 are needed",
            {n = 16, k = 12})
    refuses("gemm_skinny: K is 24; multiples of 16 are needed",
            {n = 16, k = 24, b_dtype = cute.i8})
    refuses("gemm_skinny: B has type f16 and A has bf16; B needs",
            {n = 16, k = 16, b_dtype = cute.f16})
    refuses("gemm_skinny: group = 96 with side = \"a\"; a multiple of 64",
            {n = 16, k = 96, b_dtype = cute.i8, group = 96})
    refuses('gated = true with side = "b" and count = 1',
            {n = 16, k = 16, side = "b", gated = true})
    refuses("gemm_skinny: dtype = f32; bf16 or f16 is needed",
            {n = 16, k = 16, dtype = cute.f32})
    refuses("gemm_skinny: unroll = 0; an integer from 1 to 32 is needed",
            {n = 16, k = 16, unroll = 0})
    refuses("gemm_skinny: n = nil; an integer of 1 or more is needed",
            {k = 16})
    refuses("gemm_skinny: 2048 threads in a block", {n = 16, k = 16,
                                                     warps = {8, 8}})
    local o = {n = 16, k = 16}
    local ok, why = pcall(product, o, matrix({4, 16}, "bf16", 1),
      matrix({24, 16}, "bf16", 1), matrix({4, 24}, "bf16"), "sim")
    assert.is_false(ok)
    assert.is_truthy(why:find("N of B is 24, and of the kernel 16", 1, true),
                     why)
  end)
end)

---------------------------------------------------------------------------

local function explain(A, B, o)
  o = o or {}
  o.device = o.device or "sim:sm_90a"
  return cute.ops.explain(A, B, o)
end

-- Problems for cute.ops: operands, and options with every kind of epilogue.
local CASES = {
  {{1, 64}, {40, 64}}, {{8, 520}, {72, 520}}, {{16, 256}, {130, 256}},
  {{31, 264}, {33, 264}}, {{3, 4, 64}, {3, 48, 64}},
  {{2, 3, 5, 72}, {3, 24, 72}},
}

local function check(c, dtype, device, family)
  local A, B = matrix(c[1], dtype, 1), matrix(c[2], dtype, 2)
  local m, n = c[1][#c[1] - 1], c[2][#c[2] - 1]
  local bias, residual = cute.zeros({n}, cute.f32), cute.zeros({m, n}, dtype)
  for j = 0, n - 1 do bias[j] = j % 5 - 2 end
  for i = 0, m - 1 do
    for j = 0, n - 1 do residual[{i, j}] = (i + j) % 3 end
  end
  local o = {device = device, dtype = cute.f32, alpha = 2,
    epilogue = function(acc, at)
      local y = acc + at:col(bias) + at:tile(residual)
      return y, at:row_reduce("sum", y), at:col_reduce("max", y)
    end}
  local function move(t) return device == "gpu" and t:to "gpu" or t end
  bias, residual = move(bias), move(residual)
  assert.equal(family or "gemm_skinny", explain(move(A), move(B), o).kernel)
  local D, rows, columns = cute.ops.gemm(move(A), move(B), o)
  if device == "gpu" then
    D, rows, columns = D:to "host", rows:to "host", columns:to "host"
  end
  local sums, most = {}, {}
  assert.is_nil(ops.differs(A, B, D, function(batch, i, j, sum)
    local y = 2 * sum + j % 5 - 2 + (i + j) % 3
    local key = table.concat(batch, ",")
    sums[key .. ":" .. i] = (sums[key .. ":" .. i] or 0) + y
    most[key .. ":" .. j] = math.max(most[key .. ":" .. j] or -math.huge, y)
    return y
  end))
  for key, want in pairs(sums) do
    local at = {}
    for x in key:gmatch "%d+" do at[#at + 1] = math.tointeger(x) end
    assert.equal(want, rows(table.unpack(at)), key)
  end
  for key, want in pairs(most) do
    local at = {}
    for x in key:gmatch "%d+" do at[#at + 1] = math.tointeger(x) end
    assert.equal(want, columns(table.unpack(at)), key)
  end
end

describe("ops.gemm of few rows", function()
  for number, c in ipairs(CASES) do
    local name = ("(%s) x (%s)"):format(table.concat(c[1], ","),
                                        table.concat(c[2], ","))
    it("is right: " .. name .. support.long(number, 4), function()
      check(c, number % 2 == 0 and "f16" or "bf16",
            number % 2 == 0 and "sim:sm_80" or "sim:sm_90a")
    end)
    it("is right on a card: " .. name .. " #gpu", function()
      check(c, "bf16", "gpu")
    end)
  end

  -- Tests the candidates one by one. Each product has another N, so that
  -- cute.ops cannot reuse an earlier choice.
  it("is right by narrow tiles of gemm_sm90 #long", function()
    local choose, at, most, found = require "cute.ops.choose", 1, 1, {}
    local _ <close> = setmetatable({choose.choose}, {__close = function(t)
      choose.choose = t[1]
    end})
    function choose.choose(p)
      local few = {}
      for _, c in ipairs(choose.list(p)) do
        if c.base == "gemm_sm90" and c.tile[2] <= 64 and c.swap
          and c.split ~= "equal parts" then
          few[#few + 1] = c
        end
      end
      most = #few
      local c = few[math.min(at, most)]
      found[choose.name(c)] = true
      c.others, c.refused, c.why, c.how = {}, {}, "", ""
      return c, {}
    end
    for n, m in ipairs {5, 11, 27, 64} do
      at = 1
      repeat
        check({{m, 264}, {104 + 8 * n + 32 * at, 264}}, "bf16", "sim:sm_90a",
              "gemm_sm90")
        at = at + 1
      until at > most
    end
    for _, name in ipairs {"64x8x128 swap consumers=1",
        "64x8x128 swap consumers=1 min_blocks=2",
        "64x16x128 swap consumers=1 split=2",
        "64x16x128 swap consumers=1 split=2 min_blocks=2",
        "64x64x128 swap consumers=1 split=2"} do
      assert.is_true(found["gemm_sm90 " .. name], name)
    end
  end)

  it("takes few rows with gates, and no tiles that are mostly missing",
     function()
    local gemm = require "cute.ops.gemm"
    local function like(rows, columns)
      return cute.make_tensor(cute.empty({1}, cute.bf16).iterator,
        cute.make_layout({rows, columns}, {columns, 1}))
    end
    -- Measured on an H200: narrow tiles took 225 and 59 us for these two
    -- products, and tiles of 128 rows took 281 and 76 us.
    for _, s in ipairs {{16, 57344, 8192}, {16, 28672, 4096}} do
      local _, list = gemm.offers(like(s[1], s[3]), like(s[2], s[3]),
        {out = like(s[1], s[2] // 2), gated = true, device = "sim:sm_90a",
         epilogue = function(gate, up) return gate * up end})
      assert.equal("gemm_skinny", list[1].base)
      for _, c in ipairs(list) do
        assert.is_true(c.base ~= "gemm_sm90" or c.tile[1] < 128)
      end
    end
  end)

  it("leaves unsupported problems to other families", function()
    local function why(text, A, B, o)
      for _, r in ipairs(explain(A, B, o).refused) do
        if r[1] == "gemm_skinny" then return assert.equal(text, r[2]) end
      end
      error "it was not refused"
    end
    why("gemm_skinny needs K to be a multiple of 8, but it is 68",
        matrix({3, 68}, "bf16", 1, 4), matrix({16, 68}, "bf16", 2, 4))
    why("gemm_skinny needs rows at multiples of 16 bytes, but B is "
      .. "(16,64):(68,1)",
        matrix({3, 64}, "bf16", 1), matrix({16, 64}, "bf16", 2, 4))
    why("gemm_skinny needs rows at multiples of 16 bytes, but A is "
      .. "(3,64):(1,3)",
        cute.make_tensor(core.buffer("bf16", 192):fill(1),
                         cute.make_layout({3, 64}, {1, 3})),
        matrix({16, 64}, "bf16", 2))
    local q = matrix({16, 256}, "i8", 2)
    why("gemm_skinny needs scale factors for multiples of 64 elements of K, "
      .. "not 32",
        matrix({3, 256}, "bf16", 1), q, {group = 32,
          scale_b = matrix({16, 8}, "f32", 3)})
    why("gemm_skinny does not support scale_a with factors for blocks of "
      .. "K", matrix({3, 256}, "bf16"),
        q, {scale_a = matrix({3, 2}, "f32", 3)})
    -- ops.explain must not mention gemm_skinny for these operands.
    for _, c in ipairs {{33, "bf16"}, {3, "f32"}} do
      local e = explain(matrix({c[1], 64}, c[2], 1), matrix({16, 64}, c[2], 2))
      assert.is_true(e.kernel ~= "gemm_skinny")
      for _, r in ipairs(e.refused) do assert.not_equal("gemm_skinny", r[1]) end
    end
  end)
end)

describe("ops.gemm of few rows", function()
  it("has candidates that compile without spills #noasan #long", function()
    for _, s in ipairs {{1, 4096, 4096, cute.bf16}, {8, 1024, 8192, cute.bf16},
                        {16, 8192, 8192, cute.bf16},
                        {32, 4096, 14336, cute.bf16},
                        {32, 4096, 14336, cute.i8, 128}} do
      local m, n, k, b, group = table.unpack(s)
      local function far(rows, columns, dtype)
        return cute.make_tensor(cute.empty({1}, dtype or cute.bf16).iterator,
          cute.make_layout({rows, columns}, {columns, 1}))
      end
      for _, c in ipairs(gemm_skinny.candidates(m, n, k, {dtype = cute.bf16,
          b_dtype = b, group = group, sms = 132, clusters = true})) do
        local made = gemm_skinny(c.options)
        local list = {far(m, k), far(n, k, b)}
        if group then list[3] = far(n, k // group, cute.f32) end
        list[#list + 1] = far(m, n)
        assert.is_nil(made.scratch(m))
        local program = made.kernel(table.unpack(list)):trace {
          block = made.block, cluster = made.cluster, arch = "sm_90a"}
        for _, arch in ipairs(made.cluster and {"sm_90a"}
            or {"sm_80", "sm_90a"}) do
          local out = kernels.compiled(program, arch)
          if not out then return end
          assert.equal(0, out.resources.spill_stores)
        end
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
