-- Tests layouts and descriptors of tcgen05. Each element of a tile must have
-- its own position in tensor memory. A descriptor must describe the addresses
-- of its layout.
local cute = require "cute"
local core = require "cute.core"
local descriptor = require "cute.nvgpu.sm100.descriptor"
local smem = require "cute.smem"
local tmem = require "cute.nvgpu.sm100.tmem"

local LANES, COLUMNS = 128, 512

-- Returns the lane and the column of an offset of elements of `bits`.
local function place(offset, bits)
  local per = 32 // bits
  return offset // (per << 16), offset % (per << 16) // per
end

-- Checks that no two elements share a position, and that all are in tensor
-- memory. Returns the number of columns up to the last used one.
local function check_places(layout, bits)
  local seen, last = {}, 0
  for i = 0, core.size(layout) - 1 do
    local at = layout(i)
    assert.is_nil(seen[at], tostring(layout))
    seen[at] = true
    local lane, column = place(at, bits)
    assert.is_true(lane < LANES and column < COLUMNS, tostring(layout))
    last = math.max(last, column)
  end
  return last + 1
end

describe("layouts of tensor memory", function()
  it("give each accumulator a place, and 64 rows half of the lanes #long",
     function()
    local function columns(m, n, rest, bits, of)
      return check_places(of({{m, n}, table.unpack(rest)}, bits), bits)
    end
    assert.equal(128, columns(128, 128, {1, 1}, 32, tmem.accumulators))
    assert.equal(256, columns(128, 64, {2, 2}, 32, tmem.accumulators))
    -- Two tiles of 64 rows share columns: each uses half of the lanes.
    assert.equal(64, columns(64, 64, {2, 1}, 32, tmem.accumulators))
    assert.equal(64, columns(64, 64, {1, 1}, 32, tmem.accumulators))
    assert.equal(64, columns(64, 128, {1, 1}, 32, tmem.all_lanes))
    assert.equal(32, columns(32, 128, {1, 1}, 32, tmem.all_lanes))
    -- Each f16 accumulator has a 32-bit column of its own, but two f16 elements
    -- of A share one.
    assert.equal(128, columns(128, 128, {1, 1}, 16, tmem.accumulators))
    assert.equal(64, columns(128, 128, {1, 1}, 16, tmem.operand))
  end)

  it("place the rows of 64-row tiles in each warp's window", function()
    local l = tmem.accumulators({{64, 8}, 1, 1}, 32)
    for row = 0, 63 do
      assert.equal(row // 16 * 32 + row % 16, (place(l(row), 32)))
    end
  end)

  it("repeat scale factors in the window of each warp", function()
    -- 128 rows of 8-bit scales with 4 blocks along K. The 4 scales of a row
    -- share one 32-bit column.
    local l = tmem.scale_factors({{128, {16, 4}}, 1, 2})
    for row = 0, 127 do
      for copy = 0, 3 do
        for block = 0, 3 do
          for k = 0, 1 do
            local at = l {{{{row % 32, row // 32}, copy}, {3, block}}, 0, k}
            local lane, column = place(at, 8)
            assert.same({copy * 32 + row % 32, k * 4 + row // 32, block},
                        {lane, column, at % 4})
          end
        end
      end
    end
    -- Scales of consecutive K steps fill the four bytes of a column before they
    -- use the next column.
    l = tmem.scale_factors({{128, {32, 1}}, 1, 4})
    for k = 0, 3 do assert.equal(k, l {{{{0, 0}, 0}, {0, 0}}, 0, k}) end
  end)

  it("are rejected for shapes that no instruction has", function()
    assert.error_matches(function() tmem.accumulators({{96, 8}, 1, 1}, 32) end,
                         "no instruction has 96 rows")
    assert.error_matches(function()
      tmem.scale_factors({{48, {32, 1}}, 1, 1})
    end, "48 rows must be a multiple of 32")
    assert.error_matches(function() tmem.accumulators({64, 8}, 32) end,
                         "not the shape %(%(M,N%),Rest...%) of a partition")
  end)
end)

describe("a copy of tensor memory", function()
  it("gives each element to one thread", function()
    for _, case in ipairs {{"32dp32b4x", {128, 64}}, {"16dp256b2x", {64, 64}},
                           {"16dp64b8x", {128, 32}}, {"16dp32b16x", {64, 64}},
                           {"16dp128b4x", {64, 32}}} do
      local layout = tmem.accumulators({case[2], 1, 1}, 32)
      local atom = core.make_copy_atom("SM100_TMEM_LOAD_" .. case[1], core.f32)
      local copy, seen = tmem.make_copy(atom, layout), {}
      assert.equal(128, copy:size())
      for t = 0, 127 do
        local thr = copy:get_slice(t)
        local own, first = thr:partition_D(core.make_layout(layout.shape))
        for i = 0, core.size(own) - 1 do
          local at = first + own(i)
          assert.is_nil(seen[at], case[1])
          seen[at] = t
          -- A warp can access only its own 32 lanes.
          assert.equal(t // 32, place(layout(at), 32) // 32, case[1])
        end
      end
      assert.equal(core.size(layout) - 1, #seen)
    end
  end)
end)

-- ---- descriptors of shared memory ----

-- Decodes a descriptor of shared memory. `lead` and `stride` are in bytes;
-- `span` is the number of 16-byte pieces in a swizzled row.
local function fields(desc)
  local code = desc >> 61 & 7
  return {lead = (desc >> 16 & 0x3fff) * 16,
          stride = (desc >> 32 & 0x3fff) * 16,
          span = ({[0] = 1, 8, 8, [4] = 4, [6] = 2})[code],
          rows = code == 1 and 4 or 8, code = code}
end

local function swizzled(f, at)
  if f.code == 0 then return at end
  if f.code == 1 then return at ~ (at >> 7 & 3) << 5 end
  return at ~ (at >> 7 & f.span - 1) << 4
end

-- Returns the address of element (mn,k) of an operand, as PTX defines the
-- canonical layouts.
local function address(f, major, mn, k, bits)
  local unit = 128 // bits
  local at
  if major == "K" then
    at = mn % 8 * f.span * 16 + mn // 8 * f.stride
      + k // unit * (f.span > 1 and 16 or f.lead) + k % unit * bits // 8
  else
    local u, inside = mn // unit, mn % unit * bits // 8
    at = k % f.rows * f.span * 16 + inside
    if f.span > 1 then
      at = at + u % f.span * 16 + u // f.span * f.lead + k // f.rows * f.stride
    else
      at = at + u * f.stride + k // 8 * f.lead
    end
  end
  return swizzled(f, at)
end

describe("a descriptor of shared memory", function()
  local function check(major, kind, bits, mn, k)
    local atom = smem.atom(major, kind, bits)
    local layout = descriptor.tile_to_mma_shape(atom, {{mn, k}, 2, 4, 1})
    local v = core.composition(core.get_swizzle(layout),
      core.get(core.get_nonswizzle_portion(layout), 0))
    local desc = descriptor.shared(v, bits, major)
    assert.equal(1, desc >> 46 & 7)
    local f = fields(desc)
    for i = 0, mn - 1 do
      for j = 0, k - 1 do
        assert.equal(v {i, j} * bits // 8, address(f, major, i, j, bits),
          ("%s %s (%d,%d)"):format(major, kind, i, j))
      end
    end
  end

  it("names the addresses of the layout's elements", function()
    for _, kind in ipairs {"INTER", "SW32", "SW64", "SW128"} do
      check("K", kind, 16, 64, 16)
      check("K", kind, 8, 128, 32)
      check("K", kind, 32, 64, 8)
      check("MN", kind, 16, 128, 16)
      check("MN", kind, 8, 128, 32)
    end
    check("MN", "SW128_32B", 32, 128, 8)
  end)

  it("is rejected for layouts that no instruction reads", function()
    assert.error_matches(function()
      descriptor.shared(core.layout "(64,16):(16,1)", 16, "K")
    end, "element %(1,0%) lies 16 elements after the first, not 8")
    assert.error_matches(function()
      descriptor.shared(core.composition(core.make_swizzle(2, 3, 3),
        core.layout "(64,16):(24,1)"), 16, "K")
    end, "element %(1,0%) lies 24 elements after the first, not 32")
    assert.error_matches(function()
      descriptor.shared(core.composition(core.make_swizzle(2, 2, 3),
        core.layout "(64,16):(32,1)"), 16, "K")
    end, "the swizzle is not one of")
  end)
end)

describe("an instruction descriptor", function()
  it("has the fields that PTX names", function()
    local d = descriptor.instruction {a = cute.bf16, b = cute.bf16,
      c = cute.f32, m = 128, n = 64, a_major = "MN", b_neg = true}
    assert.equal(1, d >> 4 & 3)        -- f32
    assert.equal(1, d >> 7 & 7)        -- bf16
    assert.equal(1, d >> 10 & 7)
    assert.equal(2, d >> 13 & 3)       -- B is negated
    assert.equal(1, d >> 15 & 3)       -- A is MN-major
    assert.equal(8, d >> 17 & 63)      -- N / 8
    assert.equal(8, d >> 24 & 31)      -- M / 16
    assert.equal(0, d & 15 | d >> 30)
  end)

  it("has the places of scale factors in its 64-bit form", function()
    local d = descriptor.block_scaled {a = cute.e2m1, b = cute.e2m1, m = 128,
      n = 32, scale = cute.ue8m0, packed = true}
    assert.equal(1, d >> 23 & 1)
    assert.equal(1, d >> 7 & 7)
    local wide = descriptor.runtime(d, 2 << 30 | 5, 3 << 30 | 9) >> 32
    assert.equal(3, wide >> 4 & 3)
    assert.equal(2, wide >> 29 & 3)
    assert.equal(d, wide & ~(3 << 4 | 3 << 29))
  end)

  it("is rejected for types and shapes that no instruction has", function()
    local function make(t)
      local d = {a = cute.f16, b = cute.f16, c = cute.f32, m = 128, n = 64}
      for key, value in pairs(t) do d[key] = value end
      return function() descriptor.instruction(d) end
    end
    assert.error_matches(make {a = cute.f64}, "has no operand of type f64")
    assert.error_matches(make {c = cute.bf16},
                         "has no accumulator of type bf16")
    assert.error_matches(make {n = 260}, "N is 260; it may be a multiple of 8")
    assert.error_matches(make {m = 24}, "M is 24; it may be a multiple of 16")
  end)
end)
-- SPDX-License-Identifier: MIT
