-- Cooperative launches: all blocks run at once, or the launch is refused.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"

-- Each block stores, meets the others at a counter, and reads what the next
-- one stored.
local meet = cute.kernel("meet", function(x, o, counter)
  local arch = cute.arch
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

-- All of n blocks wait for each other.
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

  it("refuses more blocks than run at once", function()
    local text = "kernel %s: a cooperative grid of %d blocks, and sm_%d runs "
      .. "%d at once: %d multiprocessors with %d each, as many as %s allow "
      .. "[bad-launch]\n  let each block do more: a grid of at most %d"
    assert.equal(text:format("meet", 4225, 90, 4224, 132, 32, "blocks", 4224),
      refused(meet(ints(1), ints(1), ints(1)), {grid = 4225, block = 32,
        device = "sim", cooperative = true}))
    assert.equal(text:format("meet", 217, 80, 216, 108, 2, "threads", 216),
      refused(meet(ints(1), ints(1), ints(1)), {grid = 217, block = 1024,
        device = "sim:sm_80", cooperative = true}))
    local x = ints(265)
    assert.equal(text:format("big", 265, 90, 264, 132, 2, "shared", 264),
      refused(big(x), {grid = 265, block = 32, device = "sim",
                       cooperative = true}))
    assert.equal(text:format("big", 275, 90, 260, 132, 2, "shared", 260),
      refused(big(ints(275)), {grid = 275, block = 32, device = "sim",
                               cluster = 5, cooperative = true}))
    big(x):launch {grid = 264, block = 32, device = "sim", cooperative = true}
    big(x):launch {grid = 265, block = 32, device = "sim"}
  end)

  it("is what it was compiled for", function()
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

  it("runs or is refused on a card, which then goes on #gpu", function()
    for _ = 1, 20 do met(1000, "gpu") end
    local text = refused(meet(ints(1), ints(1), ints(1)),
                         {grid = 100000, block = 32, device = "gpu",
                          cooperative = true})
    assert.matches("a cooperative grid of 100000 blocks, .* is more than .* "
      .. "runs at once", text)
    met(1000, "gpu")
  end)
end)
