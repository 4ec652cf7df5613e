-- Tests tensors without elements, on the host and in kernels, and launches with
-- no blocks.
local cute = require "cute"
local support = require "spec.support"

local arch = cute.arch
local raises = support.raises

describe("host tensors without elements", function()
  it("are made as numpy.zeros and torch.zeros make them", function()
    for _, t in ipairs {
      cute.zeros({0, 8}, cute.f32), cute.empty({0, 8}, cute.f32),
      cute.ones({0, 8}, cute.f32), cute.full({0, 8}, 3, cute.f32),
      cute.rand({0, 8}, cute.f32), cute.randn({0, 8}, cute.f32),
      cute.randint(0, 5, {0, 8}, cute.f32),
      cute.zeros({0, 8}, cute.f32, {pinned = true}),
      cute.zeros(cute.layout "(0,8):(8,1)", cute.f32)} do
      assert.equal("ptr[f32,host] o (0,8):(8,1)", tostring(t))
      assert.equal(0, cute.size(t))
    end
    -- The shapes are those of numpy.array([]) and numpy.array([[], []]).
    assert.equal("0:1", tostring(cute.tensor({}).layout))
    assert.equal("(2,0):(1,1)", tostring(cute.tensor({{}, {}}).layout))
    raises("the tables are ragged: 0 entries are expected at depth 2",
           cute.tensor, {{}, {1}})
    raises("the tables are ragged", cute.tensor, {{}, 1})
    raises("a list of length 0 also has the key \"x\"", cute.tensor, {x = 1})
  end)

  it("are filled, copied and inspected", function()
    local t, u = cute.zeros({0, 8}, cute.f32), cute.ones({0, 8}, cute.f32)
    t:fill(3)
    assert.equal(t, t:copy_from(u))
    assert.equal("ptr[f32,host] o (0,8):(8,1)", tostring(t:clone()))
    assert.equal("(0,8):(8,1)", tostring(cute.zeros_like(t).layout))
    assert.equal("(8,0):(1,8)", tostring(cute.select(t.layout, {1, 0})))
    raises("a tensor of shape (0,8) cannot be copied to one of (0,4)",
           function() cute.zeros({0, 4}, cute.f32):copy_from(t) end)
    for _, c in ipairs {0, {0, 0}} do
      raises("element 0 is outside of the buffer of 0",
             function() return t[c] end)
      raises("element 0 is outside of the buffer of 0",
             function() t[c] = 1 end)
    end
    local n = 0
    for _ in t:elements() do n = n + 1 end
    assert.equal(0, n)
  end)
end)

describe("a launch of no blocks", function()
  local runs = 0
  local k = cute.kernel("k", function(x)
    runs = runs + 1
    x[arch.thread_idx()] = 1.0
    arch.sync_threads()
  end)
  local GRIDS = {0, {0}, {0, 4}, {4, 0, 2}}

  it("runs nothing, and a note says so if the tensor has elements", function()
    local empty = k(cute.zeros({0}, cute.f32)):launch {grid = 0, block = 32,
      device = "sim"}
    assert.equal("simulator: kernel k: nothing to report", tostring(empty))
    runs = 0
    for _, grid in ipairs(GRIDS) do
      local x = cute.zeros({32}, cute.f32)
      local r = k(x):launch {grid = grid, block = 32, device = "sim"}
      assert.is_true(r.ok)
      assert.same({}, r.reports)
      assert.equal(0, r.ctas)
      assert.equal(0, r.instructions)
      assert.equal(0.0, x[0])
      assert.matches("^simulator: kernel k: nothing to report\nnote: "
        .. "empty_spec.lua:%d+: the grid has no blocks, so the launch runs "
        .. "nothing, although no tensor is empty; does the division round up, "
        .. "as in %(n %+ block %- 1%) // block%?$", tostring(r))
    end
    -- A launch without blocks still traces its kernel.
    assert.equal(1, runs)
  end)

  it("is prepared, checked, profiled and part of a graph", function()
    for _, grid in ipairs(GRIDS) do
      local x = cute.zeros({32}, cute.f32)
      local o = {grid = grid, block = 32, device = "sim"}
      local p = cute.compile(k, x, o)
      assert.is_true(p:launch().ok)
      assert.is_true(p(x).ok)
      assert.is_true(p:launch_n(3))
      assert.equal(0.0, x[0])
      assert.is_true(p(x, {grid = 1}).ok)
      assert.equal(1.0, x[0])
      assert.equal("ok", p:check().verdict)
      assert.equal("ok", k(x):check {grid = grid, block = 32,
                                     surgeon = true}.verdict)
      assert.is_true(k(x):profile {grid = grid, block = 32}.ok)
    end
    local x = cute.zeros({32}, cute.f32)
    local g = cute.graph(function()
      k(x):launch {grid = 0, block = 32, device = "sim"}
    end, {device = "sim"})
    g:launch()
    assert.equal(0.0, x[0])
  end)

  it("has clusters, but no time, no block of 0 and no grid below 0", function()
    local x = cute.zeros({32}, cute.f32)
    assert.is_true(k(x):launch {grid = 0, block = 32, cluster = 2,
                                cooperative = true, device = "sim"}.ok)
    for _, f in ipairs {"estimate", "timeline"} do
      raises("kernel k: a grid of 0 x 1 x 1 has no blocks to time [bad-launch]",
        function() k(x)[f](k(x), {grid = 0, block = 32}) end)
    end
    raises("block = 0; one to three integers of at least 1 are needed",
      function() k(x):launch {grid = 0, block = 0, device = "sim"} end)
    raises("grid = -1; one to three integers of at least 0 are needed",
      function() k(x):launch {grid = -1, block = 32, device = "sim"} end)
  end)
end)

describe("a kernel with a tensor without elements", function()
  local t = cute.zeros({0, 8}, cute.f32)
  local O = {grid = 1, block = 32, device = "sim"}

  it("is traced with extents of 0", function()
    local seen
    local k = cute.kernel("k", function(x, y)
      seen = tostring(x) .. " " .. cute.size(x)
      cute.autovec_copy(x, y)
      y:fill(0)
      for i in cute.range(cute.size(x)) do y[i] = x[i] end
      cute.when(arch.thread_idx():lt(cute.size(x)), function() y[0] = 1.0 end)
    end)
    assert.is_true(k(t, cute.zeros({0, 8}, cute.f32)):launch(O).ok)
    assert.equal("ptr[f32,gmem] o (0,8):(8,1) 0", seen)
    local d = cute.zeros({0, 8}, cute.f32):mark_layout_dynamic()
    local loop = cute.kernel("loop", function(x)
      for i in cute.range(cute.size(x)) do x[i] = 1.0 end
    end)
    assert.is_true(loop(d):launch(O).ok)
  end)

  it("does not assume that a dynamic extent is 1 or more", function()
    local k = cute.kernel("k", function(x)
      cute.when(arch.thread_idx():lt(cute.size(x)), function() x[0] = 1.0 end)
      cute.when(cute.size(x):gt(0), function() x[0] = 1.0 end)
    end)
    local one = {grid = 1, block = 1, device = "sim"}
    for _, shape in ipairs {{0, 8}, {8, 0}} do
      local d = cute.zeros(shape, cute.f32):mark_layout_dynamic()
      assert.is_true(k(d):launch(one).ok)
    end
    local S = cute.symbolic {dtype = cute.f32, shape = {"m", "n%4"}}
    local p = cute.compile(k, S, {block = 1, device = "sim"})
    local x, y = cute.zeros({0, 8}, cute.f32), cute.zeros({2, 8}, cute.f32)
    assert.is_true(p(x, {grid = 1}).ok)
    assert.is_true(p(x, {grid = 0}).ok)
    assert.is_true(p(y, {grid = 1}).ok)
    assert.equal(1.0, y[0])
    local fake = cute.make_fake_compact_tensor(cute.f32, {0, 8})
    assert.is_true(cute.compile(k, cute.make_fake_tensor(cute.f32, {0, 8},
      {8, 1}), {block = 32, device = "sim"})(x, {grid = 0}).ok)
    assert.equal("(0,8):(1,1)", tostring(fake.layout))
  end)

  it("finds each access out of bounds", function()
    for _, x in ipairs {t, cute.zeros({0, 8}, cute.f32):mark_layout_dynamic(),
                        cute.zeros({0}, cute.f32)} do
      local k = cute.kernel("k", function(y) y[0] = 1.0 end)
      raises("write outside global tensor 'y': element 0 of 0 [out-of-bounds]",
             function() k(x):launch(O) end)
    end
    local tile = cute.kernel("tile", function(y)
      local own = cute.local_tile(y, {4, 4}, {arch.block_idx(), 0})
      own[0] = 1.0
    end)
    raises("coordinate (0,0) of (0,8) [out-of-bounds]",
           function() tile(t):launch(O) end)
  end)

  it("has no memory of its own without elements", function()
    local wrong = {
      make_rmem_tensor = function()
        return cute.make_rmem_tensor({0, 4}, cute.f32)
      end,
      make_smem_tensor = function()
        return cute.make_smem_tensor(cute.f32, {0, 4})
      end}
    for name, f in pairs(wrong) do
      raises(name .. ": an extent of 0 leaves no elements: (0,4) "
        .. "[shape-mismatch]",
        function() cute.kernel(f)():trace {block = 1} end)
    end
    raises("an extent of 0 leaves no elements: (0,8) [shape-mismatch]",
      function() cute.kernel(function(x) x:load() end)(t):trace {block = 1} end)
  end)
end)
-- SPDX-License-Identifier: MIT
