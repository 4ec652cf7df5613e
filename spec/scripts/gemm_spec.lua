-- Tests kernels/gemm_sm80 as other kernels use it: with epilogues, with
-- batches, and with operands that have nested modes or are read through a
-- function. Also tests cute.tiles in only some of a block's threads. Operands
-- are small whole numbers, so that results must equal sums on the host exactly.
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local kernels = require "spec.kernels"
local tiles = require "cute.tiles"
local _ = cute._

local DEVICE = "sim:sm_90a"

-- Returns a tensor of whole numbers from -3 to 3, and a function that returns
-- its element at a coordinate.
local function numbers(shape, seed, dtype, layout)
  local t = cute.zeros(layout or shape, dtype or cute.bf16)
  local state = seed or 1
  for i = 0, cute.size(t) - 1 do
    state = (state * 1103515245 + 12345) & 0x7fffffff
    t[i] = (state >> 16) % 7 - 3
  end
  return t
end

-- Caches the rows of matrices as lists; the key is the matrix.
local ROWS = setmetatable({}, {__mode = "k"})

local function rows_of(t)
  local rows = ROWS[t]
  if rows then return rows end
  rows = {}
  for i = 0, cute.size(t, 0) - 1 do
    rows[i] = {}
    for k = 1, cute.size(t, 1) do rows[i][k] = t(i, k - 1) end
  end
  ROWS[t] = rows
  return rows
end

local function product(A, B, i, j)
  local a, b, sum = rows_of(A)[i], rows_of(B)[j], 0
  for k = 1, #b do sum = sum + a[k] * b[k] end
  return sum
end

local SMALL = {tile = {64, 64, 32}, atoms = {2, 2, 1},
               permutation = {32, 32, 16}}

local function small(more)
  local o = {}
  for _, t in ipairs {SMALL, more} do
    for k, v in pairs(t) do o[k] = v end
  end
  return gemm_sm80(o)
end

local function launch(gemm, grid, ...)
  gemm.kernel(...):launch {grid = grid, block = gemm.block, device = DEVICE}
end

-- Checks that C(i, j) is f(i, j) for all i, j.
local function check(C, f)
  for i = 0, cute.size(C, 0) - 1 do
    for j = 0, cute.size(C, 1) - 1 do
      assert.equal(f(i, j), C(i, j), ("at (%d,%d)"):format(i, j))
    end
  end
end

describe("gemm_sm80's epilogue", function()
  local function epilogue(acc, part, bias, residual, scale)
    return cute.max(acc * scale + part.load(bias), 0) + part.load(residual)
  end
  for _, case in ipairs {{64, 64, 32}, {128, 64, 40, rows = true},
                         {70, 72, 33, rows = true}, {65, 35, 20}, {1, 1, 1}} do
    local M, N, K = table.unpack(case)
    it(("adds to %dx%dx%d%s"):format(M, N, K, case.rows and ", in rows" or ""),
      function()
        local A, B = numbers({M, K}, 1), numbers({N, K}, 2)
        local bias, residual = numbers({N}, 3), numbers({M, N}, 4, cute.f32)
        local C = cute.zeros({M, N}, case.rows and cute.bf16 or cute.f32)
        local gemm = small {epilogue = epilogue, rows = case.rows}
        launch(gemm, gemm.grid(M, N), A, B, C, bias, residual, 0.5)
        check(C, function(i, j)
          local x = math.max(product(A, B, i, j) * 0.5 + bias(j), 0)
            + residual(i, j)
          return case.rows and cute.f32 and cute.tensor({x}, cute.bf16)(0)
            or x
        end)
      end)
  end

  it("reads broadcast and transposed tensors, and C itself", function()
    local M, N, K = 64, 72, 32
    local A, B, C = numbers({M, K}, 1), numbers({N, K}, 2),
      numbers({M, N}, 3, cute.f32)
    local was = {}
    for i = 0, M - 1 do
      for j = 0, N - 1 do was[i * N + j] = C(i, j) end
    end
    local column = numbers({M}, 4)
    local across = cute.make_tensor(column.iterator,
                                    cute.make_layout({M, N}, {1, 0}))
    local turned = numbers(nil, 5, cute.bf16, cute.make_layout {M, N})
    local gemm = small {epilogue = function(acc, part, c, u, v)
      return acc + part.load(c) * 2 + part.load(u) * 3 - part.load(v)
    end}
    launch(gemm, gemm.grid(M, N), A, B, C, C, across, turned)
    check(C, function(i, j)
      return product(A, B, i, j) + was[i * N + j] * 2 + column(i) * 3
        - turned(i, j)
    end)
  end)

  it("compiles as it runs", function()
    local gemm = gemm_sm80 {epilogue = epilogue, rows = true}
    local A, B = cute.empty({256, 256}, cute.bf16),
                 cute.empty({256, 256}, cute.bf16)
    local p = gemm.kernel(A, B, cute.empty({256, 256}, cute.bf16),
      cute.empty({256}, cute.bf16), cute.empty({256, 256}, cute.bf16), 1.0)
      :trace {block = gemm.block, arch = "sm_90a"}
    kernels.compiles(p, {"sm_80", "sm_90a"})
  end)
end)

describe("gemm_sm80's batches", function()
  local M, N, K, L = 65, 40, 33, 3
  local function run(A, B, C, o, ...)
    local gemm = small(o or {})
    launch(gemm, gemm.grid(M, N, L), A, B, C, ...)
    for l = 0, L - 1 do
      local a = cute.rank(A) == 3 and A(_, _, cute.size(A, 2) > 1 and l or 0)
        or A
      local b = cute.rank(B) == 3 and B(_, _, l) or B
      check(C(_, _, l), function(i, j)
        return product(a, b, i, j) + (o and l * 100 + i or 0)
      end)
    end
  end

  it("are a third mode, in any order", function()
    run(numbers({M, K, L}, 1, nil, cute.make_layout({M, K, L}, {K, 1, M * K})),
        numbers({N, K, L}, 2, nil, cute.make_layout({N, K, L},
                                                    {L * K, 1, K})),
        cute.zeros(cute.make_layout({M, N, L}, {N, 1, M * N}), cute.f32))
    run(numbers({M, K, L}, 1, nil, cute.make_layout({M, K, L}, {1, M, M * K})),
        numbers({N, K}, 2),
        cute.zeros(cute.make_layout({M, N, L}, {N * L, 1, N}), cute.f32))
  end)

  it("share one matrix if there is only one", function()
    run(numbers({M, K, 1}, 1, nil, cute.make_layout({M, K, 1}, {K, 1, 0})),
        cute.make_tensor(numbers({N, K}, 2).iterator,
                         cute.make_layout({N, K, L}, {K, 1, 0})),
        cute.zeros(cute.make_layout({M, N, L}, {N, 1, M * N}), cute.f32))
  end)

  it("take extents as arguments", function()
    local function dynamic(shape, seed, dtype)
      local l = cute.make_layout(shape, {shape[2], 1, shape[1] * shape[2]})
      return (seed and numbers(nil, seed, dtype, l) or cute.zeros(l, dtype))
        :mark_layout_dynamic {leading_dim = 1}
    end
    run(dynamic({M, K, L}, 1), dynamic({N, K, L}, 2),
        dynamic({M, N, L}, nil, cute.f32))
  end)

  it("have batches beside them in an epilogue", function()
    local D = cute.zeros({M, N, L}, cute.f32)
    for l = 0, L - 1 do
      for i = 0, M - 1 do
        for j = 0, N - 1 do D[{i, j, l}] = l * 100 + i end
      end
    end
    run(numbers({M, K, 1}, 1), numbers({N, K}, 2),
        cute.zeros(cute.make_layout({M, N, L}, {N, 1, M * N}), cute.f32),
        {epilogue = function(acc, part, d) return acc + part.load(d) end}, D)
  end)
end)

describe("gemm_sm80's operands", function()
  it("may have nested modes", function()
    local H, W, C, R, S, N = 7, 9, 8, 3, 2, 2
    local P, Q, K = H - R + 1, W - S + 1, 24
    local x, w = numbers({N * H * W * C}, 1), numbers({K, R * S * C}, 2)
    local A = cute.make_tensor(x.iterator, cute.make_layout(
      {{Q, P, N}, {C, S, R}}, {{C, W * C, H * W * C}, {1, C, W * C}}))
    local y = cute.zeros({N * P * Q, K}, cute.f32)
    local gemm = small {}
    launch(gemm, gemm.grid(N * P * Q, K), A, w, y)
    check(y, function(i, j) return product(A, w, i, j) end)
    local source = gemm.kernel(A, w, y):trace({block = gemm.block}).source
    assert.is_truthy(source:find("cp_async_cg16_zfill", 1, true))
  end)

  -- Matrices with a nested mode K, (32,k): {shape of k, strides of k} for A and
  -- for B. If an entry is absent, that matrix has no nested mode.
  for what, c in pairs {
    ["the same for both"] = {{{2, 3, 2}, {192, 64, 32}},
                             {{2, 3, 2}, {192, 64, 32}}},
    ["of A"] = {{{3, 2}, {64, 32}}}, ["of B"] = {nil, {{3, 2}, {64, 32}}},
    ["others for A than for B"] = {{{2, 3}, {96, 32}}, {{3, 2}, {64, 32}}},
    ["by a number"] = {{4, 32}, {4, 32}},
    ["by nested ones"] = {{{{2, 2}, 3}, {{96, 192}, 32}},
                          {{{2, 2}, 3}, {{96, 192}, 32}}}} do
    it("may have K in tiles, " .. what, function()
      local M, N, K = 70, 40, 32 * cute.size((c[1] or c[2])[1])
      local function operand(rows, k, seed)
        local x = numbers({rows, K}, seed)
        if not k then return x end
        return cute.make_tensor(x.iterator, cute.make_layout(
          {rows, {32, k[1]}}, {K, {1, k[2]}}))
      end
      local A, B = operand(M, c[1], 1), operand(N, c[2], 2)
      local C = cute.zeros({M, N}, cute.f32)
      local gemm = small {}
      launch(gemm, gemm.grid(M, N), A, B, C)
      check(C, function(i, j) return product(A, B, i, j) end)
      local source = gemm.kernel(A, B, C):trace({block = gemm.block}).source
      assert.is_truthy(source:find("cp_async_cg16", 1, true))
      if what == "the same for both" then
        local loop = source:match "for %(int k_tile.*"
        assert.is_nil(loop:gsub("%% 3;", "", 1):find " [/%%] ")  -- of stages
      end
    end)
  end

  it("are read no wider than the tiles of K are aligned", function()
    local M, N = 64, 64
    local x, w = numbers({M * 100}, 1), numbers({N * 100}, 2)
    local function view(t)
      return cute.make_tensor(t.iterator, cute.make_layout(
        {M, {32, 2}}, {96, {1, 34}}))
    end
    local A, B, C = view(x), view(w), cute.zeros({M, N}, cute.f32)
    local gemm = small {}
    launch(gemm, gemm.grid(M, N), A, B, C)
    check(C, function(i, j) return product(A, B, i, j) end)
  end)

  -- Returns the kinds of operations in the emitted main loop, in order: loads
  -- of tiles, products, copies of A and of B to registers, the wait.
  local function passes(tile)
    local gemm = gemm_sm80 {tile = tile}
    local p = gemm.kernel(cute.empty({256, 512}, cute.bf16),
      cute.empty({256, 512}, cute.bf16), cute.empty({256, 256}, cute.f32))
      :trace {block = gemm.block}
    local loop, out = p.source:match "for %(int k_tile.-\n  }\n", {}
    for line in loop:gmatch "[^\n]+" do
      local what = line:find "LDSM_N" and "fetch" or line:find "_TN%(" and "mma"
        or line:find "wait_group" and "wait"
        or line:match "cp_async_cg16.-%(([AB])_smem"
      if what and out[#out] ~= what then out[#out + 1] = what end
    end
    return table.concat(out, " ")
  end

  it("are loaded between blocks of K", function()
    assert.equal("fetch mma fetch A mma fetch B mma wait fetch mma",
                 passes {128, 128, 64})
    assert.equal("fetch A B mma wait fetch mma", passes {128, 128, 32})
  end)

  it("lend C their stages, whichever have the room #long", function()
    local M, N, K = 256, 64, 96
    for _, tile in ipairs {{128, 32, 32}, {32, 128, 32}, {64, 64, 32}} do
      local A, B = numbers({M, K}, 1), numbers({N * 2, K}, 2)
      local C = cute.zeros({M, N * 2}, cute.bf16)
      local gemm = small {tile = tile, stages = 2, rows = true}
      launch(gemm, gemm.grid(M, N * 2), A, B, C)
      check(C, function(i, j)
        return cute.tensor({product(A, B, i, j)}, cute.bf16)(0)
      end)
      local source = gemm.kernel(A, B, C):trace({block = gemm.block}).source
      assert.is_truthy(source:find("*(uint4 *)(mC + ", 1, true))
      assert.is_nil(source:find("*(unsigned *)(mC + ", 1, true))
    end
  end)
end)

describe("gemm_sm80's operands", function()
  it("may go through a function, of either order", function()
    local M, N, K, rows = 70, 40, 32, {}
    for i = 0, M - 1 do rows[i] = i * 13 % M end
    local x, w = numbers({M, K}, 1), numbers({N, K}, 2)
    local order = cute.zeros({M}, cute.i32)
    for i = 0, M - 1 do order[i] = rows[i] end
    local gemm = small {}
    for vector = 1, 8, 7 do
      local y = cute.zeros({M, N}, cute.f32)
      cute.kernel("gather", function(mX, mOrder, mW, mY)
        gemm.run(cute.make_tensor(mX.iterator, cute.make_composed_layout(
          function(i, k)
            -- The kernel computes addresses of rows after the last one, without
            -- reading them, so the index must be clamped.
            return mOrder[cute.where(cute.lt(i, M), i, 0)] * K + k
          end, {0, 0}, cute.make_identity_layout {M, K},
          {vector = {1, vector}})), mW, mY)
      end)(x, order, w, y):launch {grid = gemm.grid(M, N), block = gemm.block,
                                   device = DEVICE}
      check(y, function(i, j) return product(x, w, rows[i], j) end)
    end
  end)
end)

describe("cute.tiles", function()
  it("walk through tiles by coordinates", function()
    for _, shape in ipairs {5, {5}, {2, 3, 2}, {1, 4, 1}, {3, 1, 2}} do
      local X = {k_shape = shape, k_tiles = cute.size(shape)}
      local walk = tiles.walk(X, X)
      local k = walk.first
      for i = 0, cute.size(shape) - 1 do
        assert.same(type(shape) == "table"
          and cute.idx2crd(i, shape) or i, k)
        assert.is_true(walk.has(k))
        k = walk.next(k)
      end
      assert.is_false(walk.has(k))
    end
  end)

  it("rejects threads that do not divide a tile", function()
    local gemm = gemm_sm80 {tile = {192, 128, 64}, atoms = {3, 2, 1},
                            permutation = {48, 32, 16}}
    local A, B = cute.empty({192, 64}, cute.bf16),
                 cute.empty({128, 64}, cute.bf16)
    local ok, err = pcall(function()
      gemm.kernel(A, B, cute.empty({192, 128}, cute.bf16))
        :trace {block = gemm.block}
    end)
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find("a tile of 64 x 128 elements cannot be "
      .. "divided among 192 threads", 1, true), err)
  end)

  -- Two groups of warps in one block each compute one tile, with stages of
  -- their own.
  it("takes the index of a thread among some", function()
    local M, N, K = 128, 64, 64
    local A, B = numbers({M, K}, 1), numbers({N, K}, 2)
    local C = cute.zeros({M, N}, cute.f32)
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
                                    {2, 2, 1}, {32, 32, 16})
    cute.kernel("groups", function(mA, mB, mC)
      local thread = cute.arch.thread_idx() % 128
      local group = cute.arch.thread_idx() // 128
      for g = 0, 1 do
        cute.when(group:eq(g), function()
          local a = tiles.operand(mA, {of = mma, which = "A", tile = {64, 64},
            at = g, stages = 1, thread = thread})
          local b = tiles.operand(mB, {of = mma, which = "B", tile = {64, 64},
            at = 0, stages = 1, thread = thread})
          local c = tiles.result(mC, mma, {64, 64}, {g, 0}, thread)
          a.load(0, 0)
          b.load(0, 0)
          cute.arch.cp_async_commit_group()
          cute.arch.cp_async_wait_group(0)
          cute.arch.barrier(g + 1, 128)
          c.acc:fill(0)
          for k = 0, a.k_blocks - 1 do
            a.fetch(0, k)
            b.fetch(0, k)
            cute.gemm(mma, c.acc, a.block(k), b.block(k), c.acc)
          end
          c.store()
        end)
      end
    end)(A, B, C):launch {grid = 1, block = 256, device = DEVICE}
    check(C, function(i, j) return product(A, B, i, j) end)
  end)
end)
-- SPDX-License-Identifier: MIT
