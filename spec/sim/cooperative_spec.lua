-- Tests cooperative launches: either all blocks run at the same time, or the
-- launch fails.
local cute = require "cute"
local arch = cute.arch
local kernels = require "spec.kernels"
local support = require "spec.support"

-- Each block stores a value, waits for the others at a counter, and reads the
-- next block's value.
local meet = cute.kernel("meet", function(x, o, counter)
  local b, blocks = arch.block_idx(), arch.grid_dim()
  for _ in cute.when(arch.thread_idx():eq(0)) do
    x[b] = b * 3
    arch.atomic_add(counter.iterator, 1, {sem = "release", scope = "gpu"})
    local seen = 0
    cute.loop(function() return cute.lt(seen, blocks) end, function()
      seen = arch.load(counter.iterator, cute.i32,
                       {sem = "acquire", scope = "gpu"})
    end)
    o[b] = x[(b + 1) % blocks]
  end
end)

local big = cute.kernel("big", function(x)
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout {25600})
  for _ in cute.when(cute.arch.thread_idx():eq(0)) do
    s[0] = 1
    x[cute.arch.block_idx()] = s[0]
  end
end)

local function ints(n) return cute.zeros({n}, "i32") end

local function refused(call, opts)
  return (support.message(function() call:launch(opts) end))
end

-- Runs n blocks that all wait for each other. Checks that each block read its
-- neighbour's value.
local function met(n, device, seed)
  local x, o = ints(n), ints(n)
  meet(x, o, ints(1)):launch {grid = n, block = 32, device = device,
                              cooperative = true, seed = seed}
  for b = 0, n - 1 do assert.equal((b + 1) % n * 3, o(b)) end
end

describe("a cooperative launch", function()
  it("runs blocks that wait for all others", function()
    for seed = 1, 3 do met(48, "sim", seed) end
    kernels.compiles(meet(ints(4), ints(4), ints(1)):trace {block = 32},
                     {"sm_80", "sm_90a"})
  end)

  it("rejects more blocks than run at once", function()
    local function rejected(name, grid, threads, shared, sm, rest)
      return ("kernel %s: a cooperative grid of %d blocks, of %d threads with "
        .. "%d bytes of shared memory each, is more than sm_%d can run at once "
        .. "[bad-launch]\n  let each block do more work: at most %s")
        :format(name, grid, threads, shared, sm, rest)
    end
    assert.equal(rejected("meet", 4225, 32, 0, 90,
        "4224 blocks run, 32 on a multiprocessor, limited by blocks"),
      refused(meet(ints(1), ints(1), ints(1)), {grid = 4225, block = 32,
        device = "sim", cooperative = true}))
    assert.equal(rejected("meet", 217, 1024, 0, 80,
        "216 blocks run, 2 on a multiprocessor, limited by threads"),
      refused(meet(ints(1), ints(1), ints(1)), {grid = 217, block = 1024,
        device = "sim:sm_80", cooperative = true}))
    local x = ints(265)
    assert.equal(rejected("big", 265, 32, 102400, 90,
        "264 blocks run, 2 on a multiprocessor, limited by shared"),
      refused(big(x), {grid = 265, block = 32, device = "sim",
                       cooperative = true}))
    assert.equal(rejected("big", 275, 32, 102400, 90,
        "235 blocks run in 47 clusters of 5, 2 on a multiprocessor, limited "
        .. "by shared"),
      refused(big(ints(275)), {grid = 275, block = 32, device = "sim",
                               cluster = 5, cooperative = true}))
    big(x):launch {grid = 264, block = 32, device = "sim", cooperative = true}
    big(x):launch {grid = 265, block = 32, device = "sim"}
  end)

  -- The expected numbers of clusters are those that an H100 and an H200
  -- accepted or rejected.
  it("knows how many clusters run at once", function()
    local whole = cute.kernel("whole", function(o)
      local s = cute.make_smem_tensor(cute.u8, cute.make_layout {200 << 10})
      s[arch.thread_idx()] = 1
      arch.sync_threads()
      o[arch.block_idx() % 64] = s[arch.thread_idx()]:to(cute.i32)
    end)
    local o = ints(64)
    for size, most in ipairs {132, 66, 39, 30, 22, 17, 15, 15, 9, 7, 7, 7, 7, 7,
                              7, 7} do
      local function go(clusters, cooperative)
        return pcall(whole(o).launch, whole(o), {grid = clusters * size,
          block = 32, cluster = size, cooperative = cooperative,
          device = "sim", seed = 1})
      end
      assert.is_true(go(most, true))
      local ok, why = go(most + 1, true)
      assert.is_false(ok)
      assert.matches(("at most %d blocks run"):format(most * size),
                     tostring(why))
      if size > 14 then assert.is_true(go(most + 1)) end
    end
  end)

  it("counts named barriers, all 16 if a number is traced", function()
    local function go(id, each)
      local launch = cute.kernel("barrier", function(o, i)
        arch.barrier {barrier_id = id or i[0], number_of_threads = 32}
        cute.when(arch.block_idx():eq(0),
                  function() o[arch.thread_idx()] = 1 end)
      end)(ints(32), cute.full({1}, 3, cute.i32))
      local ok, why = pcall(launch.launch, launch, {grid = 132 * each,
        block = 32, cooperative = true, device = "sim", seed = 1})
      return ok or tostring(why):match "at once.-, limited by (%w+)" or why
    end
    -- an SM has 64 barriers, and a block uses 16 here, so 4 blocks fit
    assert.equal(true, go(nil, 4))
    assert.equal("barriers", go(nil, 5))
    assert.equal(true, go(8, 7))       -- a block uses 9 barriers
    assert.equal("barriers", go(8, 8))
    assert.equal(true, go(1, 32))      -- a block uses 2 barriers
  end)

  it("is fixed when it is compiled", function()
    local x = ints(265)
    local go = cute.compile(big, x, {grid = 264, block = 32, device = "sim",
                                     cooperative = true})
    go(x)
    assert.matches("a cooperative grid of 265 blocks", (support.message(
      function() go(x, {grid = 265}) end)))
    assert.matches("cooperative", (support.message(
      function() go(x, {cooperative = false}) end)))
    assert.equal("call:launch: cooperative of 3: a boolean is needed "
      .. "[bad-launch]", refused(big(x), {grid = 1, block = 32,
        device = "sim", cooperative = 3}))
  end)

  it("runs or is rejected on a GPU, which then still works #gpu", function()
    for _ = 1, 20 do met(1000, "gpu") end
    local text = refused(meet(ints(1), ints(1), ints(1)),
                         {grid = 100000, block = 32, device = "gpu",
                          cooperative = true})
    assert.matches("a cooperative grid of 100000 blocks, .* is more than .* "
      .. "runs at once", text)
    met(1000, "gpu")
  end)
end)
-- SPDX-License-Identifier: MIT
