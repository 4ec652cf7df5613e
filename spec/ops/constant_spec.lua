-- Tests ops.gemm {constant = "B"}, with which the kernel reads weights before
-- the preceding launch ends. Results must have the same bits as without the
-- option. The kernel must wait before it reads other operands. The simulator
-- must report weights that a preceding launch writes.
local cute = require "cute"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local support = require "spec.support"

local DEVICE = "sim:sm_90a"

local function numbers(rows, cols, dtype, seed)
  return ops.tensor(ops.random(seed), {rows, cols}, dtype, seed, "k")
end

local function text(t)
  local list = {}
  for i, x in t:to "host":elements() do list[i + 1] = ("%a"):format(x) end
  return table.concat(list, " ")
end

-- Returns a copy of the options o with further options added.
local function with(o, more)
  local all = {}
  for _, t in ipairs {o, more} do
    for name, v in pairs(t) do all[name] = v end
  end
  return all
end

-- Returns a list of cases. Each case has A, B, the options, the name of the
-- kernel that ops.gemm chooses, and whether that kernel loads B before it waits
-- for the preceding launch.
local function cases()
  local function of(m, n, k, dtype)
    return numbers(m, k, dtype or "bf16", 1), numbers(n, k, dtype or "bf16", 2)
  end
  local list = {}
  local function add(kernel, early_b, A, B, o)
    list[#list + 1] = {A = A, B = B, o = with(o or {}, {device = DEVICE}),
                       kernel = kernel, ahead = early_b}
  end
  local A, B = of(1, 48, 512)
  add("gemm_skinny", true, A, B)
  A, B = of(2, 300, 72, "f16")  -- K is less than what a warp reads at
                                -- once
  add("gemm_skinny", true, A, B)
  -- K is not a multiple of a run of 32 elements
  A, B = of(8, 64, 520)
  add("gemm_skinny", true, A, B, {epilogue = function(x, at)
    return x, at:row_reduce("amax", x)
  end})
  A, B = of(3, 64, 256)
  add("gemm_skinny", true, A, B, {gated = true, epilogue = function(x, y)
    return x * y
  end})
  add("gemm_skinny", true, numbers(3, 512, "bf16", 1),
      numbers(32, 512, "i8", 2),
      {scale_b = numbers(32, 4, "f32", 3), group = 128})
  A, B = of(64, 128, 512)
  add("gemm_sm90", true, A, B)
  A, B = of(40, 64, 136)                      -- K has fewer tiles than stages
  add("gemm_sm90", true, A, B)
  A, B = of(8, 64, 65)                        -- gemm_sm80 waits first
  add("gemm_sm80", false, A, B)
  local W = cute.ops.int4(function(i, j) return (i * 7 + j) % 16 end, 32, 256)
  add("gemm_int4", false, numbers(2, 256, "bf16", 1), W,
      {scale_b = numbers(32, 1, "bf16", 3), group = 256})
  return list
end

local CONSTANT = {constant = "B", device = DEVICE}

describe("constant = \"B\"", function()
  it("gives the same bits, by the same kernel", function()
    for number, c in ipairs(cases()) do
      local o = with(c.o, {constant = "B"})
      local without = {cute.ops.gemm(c.A, c.B, c.o)}
      local results = {cute.ops.gemm(c.A, c.B, o)}
      for i, D in ipairs(results) do
        assert.equal(text(without[i]), text(D), number)
      end
      local plain = cute.ops.explain(c.A, c.B, c.o)
      local e = cute.ops.explain(c.A, c.B, o)
      assert.equal(c.kernel, e.kernel, number)
      assert.equal(tostring(plain), (tostring(e):gsub("\n  constant: [^\n]*",
                                                      "")), number)
      assert.is_nil(tostring(plain):find("constant:", 1, true))
      assert.truthy(tostring(e):find(c.ahead and "constant: B is read before "
        .. "the previous launch is "
        .. "complete" or "constant: B waits for the previous launch, like the "
        .. "other operands", 1, true), number)
    end
  end)

  -- Makes two kernels by `make`, one that reads B late and one that reads B
  -- early. Launches both, checks that their results are equal, and returns the
  -- CUDA C of the second one.
  local function products(make, n, arguments, choices)
    local first, source
    for _, early_b in ipairs {false, true} do
      local made = make(with(choices, {pdl = true, ahead = early_b or nil}))
      local D = cute.zeros({made.plan.m, n}, cute.f32)
      local list, sums, counts = arguments(D), made.scratch(made.plan.m)
      if sums then
        list[#list + 1] = cute.empty({sums}, cute.f32)
        list[#list + 1] = cute.zeros({counts}, cute.i32)
      end
      local call = made.kernel(table.unpack(list))
      call:launch {grid = made.grid(made.plan.m), block = made.block,
                   cluster = made.cluster, pdl = true, device = DEVICE}
      local program = call:trace {block = made.block, cluster = made.cluster,
                                  arch = "sm_90a"}
      if early_b then kernels.compiles(program, {"sm_90a"}) end
      source, first = program.source, first or text(D)
      assert.equal(first, text(D))
    end
    return source
  end

  -- Checks that the kernel loads `what` before it waits for the preceding
  -- launch, and `rest` only after the wait. Also checks that the next launch
  -- may begin before the wait.
  local function check_order(source, what, rest)
    source = source:match "__global__.*"
    local before, behind = source:match "^(.-)griddepcontrol%.wait(.*)$"
    assert.truthy(before:find(what), what)
    assert.is_nil(before:find(rest), rest)
    assert.truthy(behind:find(rest), rest)
    assert.truthy(before:find "griddepcontrol%.launch_dependents")
    assert.is_nil(behind:find "griddepcontrol")
  end

  it("reads weights ahead in gemm_skinny, with any split of K", function()
    local gemm_skinny = require "kernels.gemm_skinny"
    local n, k = 40, 600
    local A, B = numbers(3, k, "bf16", 1), numbers(n, k, "bf16", 2)
    for _, o in ipairs {{warps = {1, 4}, unroll = 2}, {side = "b",
        warps = {1, 2}, unroll = 4}, {warps = {2, 2}, unroll = 1, count = 2,
        splits = 2}, {warps = {1, 2}, unroll = 2, splits = 2, cluster = true},
        {warps = {1, 8}, unroll = 4}} do
      check_order(products(gemm_skinny, n, function(D) return {A, B, D} end,
        with(o, {m = 3, n = n, k = k})), "%(B %+", "%(A %+")
    end
  end)

  it("reads weights and their factors ahead in gemm_int4", function()
    local gemm_int4 = require "kernels.gemm_int4"
    local n, k = 64, 512
    local A, S = numbers(4, k, "bf16", 1), numbers(k // 64, n, "bf16", 2)
    local Z = numbers(k // 64, n, "u8", 3)
    local W = gemm_int4.pack(function(i, j) return (5 * i + j) % 16 end, n, k)
    for _, o in ipairs {{zeros = true}, {zeros = true, warps = {2, 2},
        stages = 2}, {zeros = true, splits = 2, cluster = true}} do
      products(gemm_int4, n, function(D) return {A, W, S, Z, D} end,
               with(o, {m = 4, n = n, k = k, group = 64}))
    end
  end)

  it("waits for rows that preceding launches write", function()
    local A, B = numbers(2, 256, "bf16", 1), numbers(256, 256, "bf16", 2)
    local X = cute.zeros({2, 256}, cute.bf16)
    local Y = cute.zeros({2, 256}, cute.bf16)
    local function chain(o)
      cute.ops.gemm(A, B, with(o, {out = X, alpha = 1 / 64}))
      cute.ops.gemm(X, B, with(o, {out = Y, alpha = 1 / 64}))
      cute.ops.gemm(Y, B, with(o, {out = X, alpha = 1 / 64}))
      return text(X)
    end
    assert.equal(chain {device = DEVICE}, chain(CONSTANT))
  end)
end)

describe("constant = \"B\"", function()
  it("is right however launches overlap #gpu", function()
    for _, m in ipairs {1, 8, 64} do
      local W, X = {}, {}
      local A = numbers(m, 1024, "bf16", 1):to "gpu"
      for i = 1, 8 do W[i] = numbers(1024, 1024, "bf16", i + 1):to "gpu" end
      for i = 1, 2 do X[i] = cute.zeros({m, 1024}, cute.bf16):to "gpu" end
      cute.synchronize()
      local function chain(constant)
        local rows = A
        for i = 1, 24 do
          local out = X[i % 2 + 1]
          cute.ops.gemm(rows, W[i % 8 + 1], {out = out, alpha = 1 / 64,
                                             constant = constant})
          rows = out
        end
      end
      chain()
      local want = text(X[1])
      chain "B"
      local g = cute.graph(function() chain "B" end)
      for turn = 1, 40 do
        X[1]:fill(0)
        if turn % 2 == 0 then chain "B" else g:launch() end
        assert.equal(want, text(X[1]), turn)
      end
    end
  end)

  it("is reported if the weights are not constant", function()
    for _, m in ipairs {2, 64} do
      local A, B = numbers(m, 256, "bf16", 1), numbers(64, 256, "bf16", 2)
      local other, W = numbers(64, 256, "bf16", 3), numbers(64, 256, "f32", 4)
      local function raises(who)
        support.raises(("read of memory that %s writes, with no "
          .. "griddepcontrol_wait() in between: element "):format(who),
          cute.ops.gemm, A, B, CONSTANT)
      end
      cute.ops.copy(W, B, {device = DEVICE})
      cute.ops.gemm(A, B, {device = DEVICE})
      -- The preceding product waited for the copy to B, so this one may read B
      -- early.
      cute.ops.gemm(A, B, CONSTANT)
      cute.ops.copy(W, B, {device = DEVICE})
      raises "the previous launch"
      cute.ops.copy(W, B, {device = DEVICE})
      cute.ops.gemm(A, other, CONSTANT)
      raises("an earlier launch, which the previous launch had not waited for "
        .. "when it let this launch start,")
    end
  end)

  -- {blocks, blocks per SM, whether an early read of B is faster}, as measured
  -- on an H200 with 132 SMs.
  it("applies to blocks that begin where preceding ones end", function()
    local early_b = require "cute.ops.family.early_b"
    for _, c in ipairs {{64, 1, true}, {64, 3, true}, {128, 1, true},
        {128, 2}, {96, 2}, {80, 1}, {160, 2}, {256, 3}, {256, 2, true},
        {384, 3, true}, {384, 5}, {448, 2, true}} do
      assert.equal(c[3], early_b.pays(c[1], c[2], 132), c[1] .. ", " .. c[2])
    end
  end)

  it("describes the accepted values", function()
    local A, B = numbers(2, 64, "bf16", 1), numbers(8, 64, "bf16", 2)
    local function raises(what, constant)
      support.raises(what, cute.ops.gemm, A, B, {constant = constant,
                                                 device = DEVICE})
    end
    raises("constant = \"A\"; only \"B\" is possible", "A")
    raises("constant = true: a string is needed", true)
    for _, name in ipairs {"kernels.gemm_skinny", "kernels.gemm_int4"} do
      support.raises("ahead = true needs pdl = true",
        require(name), {m = 2, n = 64, k = 128, ahead = true})
    end
    support.raises("ahead = \"b\" needs dependent launches of blocks with one "
      .. "tile: pdl = true, persistent = false",
      require "kernels.gemm_sm90", {ahead = "b", pdl = true})
  end)
end)
-- SPDX-License-Identifier: MIT
