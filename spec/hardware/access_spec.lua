local sim = require "spec.hardware.units"

-- Returns a list of 32 addresses, in which lane l has the address f(l).
local function lanes(f)
  local t = {}
  for l = 0, 31 do t[l + 1] = f(l) end
  return t
end

local function count(kind, width, f, mask)
  local passes, least = sim.shared_wavefronts(kind, width, lanes(f), mask)
  return passes, least
end

-- Computes the passes for lanes `from` to `to`: the largest number of different
-- 4-byte words in one bank that they access.
local function group_oracle(width, addr, mask, from, to)
  local words, most, active = {}, 0, false
  for l = from, to do
    if mask >> l & 1 == 1 then
      active = true
      for w = addr[l + 1] // 4, (addr[l + 1] + width - 1) // 4 do
        words[w] = true
      end
    end
  end
  local banks = {}
  for w in pairs(words) do
    banks[w % 32] = (banks[w % 32] or 0) + 1
    most = math.max(most, banks[w % 32])
  end
  return most, active
end

local function agree(addr, mask, from, to, d)
  for l = from, to do
    local p = l ~ d
    if mask >> l & 1 == 1 and mask >> p & 1 == 1 and
       addr[l + 1] ~= addr[p + 1] then
      return false
    end
  end
  return true
end

local function oracle(kind, width, addr, mask)
  local total = 0
  local size = width <= 4 and 32 or 128 // width
  local span = kind == "load" and width > 4 and 2 * size or size
  for at = 0, 31, span do
    local step = span
    if span > size and not agree(addr, mask, at, at + span - 1, 1) and
       not agree(addr, mask, at, at + span - 1, 2) then
      step = size
    end
    for g = at, at + span - 1, step do
      total = total + group_oracle(width, addr, mask, g, g + step - 1)
    end
  end
  return total
end

describe("shared memory", function()
  it("serves a row in one pass for each 128 bytes", function()
    for width, passes in pairs {[1] = 1, [2] = 1, [4] = 1, [8] = 2,
                                [16] = 4} do
      for _, kind in ipairs {"load", "store", "cp.async"} do
        local n, least = count(kind, width, function(l)
          return l * width
        end)
        assert.equal(passes, n)
        assert.equal(passes, least)
      end
    end
  end)

  it("counts an N-way conflict as N passes", function()
    for ways = 0, 5 do
      local stride = 4 << ways
      assert.equal(1 << ways, (count("load", 4, function(l)
        return l * stride
      end)))
    end
    -- Rows padded to 33 words have no bank conflicts.
    assert.equal(1, (count("store", 4, function(l) return l * 132 end)))
  end)

  it("gives one word to any number of lanes", function()
    assert.equal(1, (count("load", 4, function() return 64 end)))
    assert.equal(1, (count("store", 1, function(l) return l % 4 end)))
    assert.equal(2, (count("load", 4, function(l) return l % 2 * 128 end)))
  end)

  it("merges pairs of wide loads, not of stores", function()
    local function pairwise(l) return l // 2 * 16 end
    assert.equal(2, (count("load", 16, pairwise)))
    assert.equal(4, (count("store", 16, pairwise)))
    local function two_apart(l) return (l // 4 * 2 + l % 2) * 8 end
    assert.equal(1, (count("load", 8, two_apart)))
    assert.equal(2, (count("store", 8, two_apart)))
  end)

  it("leaves out inactive lanes and empty groups", function()
    local function column(l) return l * 128 end
    assert.equal(8, (count("load", 4, column, 0xff)))
    local n, least = count("store", 16, function(l) return l * 16 end, 0xff)
    assert.equal(1, n)
    assert.equal(1, least)
    assert.equal(0, (count("load", 4, column, 0)))
  end)

  it("equals the rule on random accesses", function()
    math.randomseed(7)
    local kinds = {"load", "store", "cp.async"}
    for _ = 1, 6000 do
      local width = 1 << math.random(0, 4)
      local kind = kinds[math.random(3)]
      local range = 1 << math.random(3, 9)
      local shape, addr = math.random(5), {}
      for l = 0, 31 do
        local i = l
        if shape == 1 then i = math.random(0, range)
        elseif shape == 2 then i = l // 2 * math.random(1, 2)
        elseif shape == 3 then i = (l & ~2) * math.random(1, 2)
        elseif shape == 4 then i = l * (range >> 3)
        end
        addr[l + 1] = i * width
      end
      local mask = math.random(3) == 1 and math.random(0, 0xffffffff) or
                   0xffffffff
      assert.equal(oracle(kind, width, addr, mask),
                   (sim.shared_wavefronts(kind, width, addr, mask)))
    end
  end)
end)

describe("ldmatrix and stmatrix", function()
  local function rows(num, f)
    local t = {}
    for i = 0, 8 * num - 1 do t[i + 1] = f(i) end
    return t
  end
  it("serve eight rows of different chunks in one pass", function()
    assert.equal(4, (sim.matrix_wavefronts(4, rows(4, function(i)
      return i * 16
    end))))
  end)
  it("need eight passes for rows 128 bytes apart, one when swizzled",
     function()
    assert.equal(32, (sim.matrix_wavefronts(4, rows(4, function(i)
      return i * 128
    end))))
    local n, least = sim.matrix_wavefronts(4, rows(4, function(i)
      return i * 128 + (i % 8) * 16
    end))
    assert.equal(4, n)
    assert.equal(4, least)
  end)
end)

describe("cp.async.cg", function()
  local src = lanes(function(l) return l * 16 end)
  local function passes(f, mask)
    return sim.cpasync_cg_wavefronts(lanes(f), src, mask)
  end
  it("is free for rows and XOR swizzles", function()
    assert.equal(4, (passes(function(l) return l * 16 end)))
    assert.equal(4, (passes(function(l)
      return l // 8 * 128 + (l % 8 ~ l // 8) * 16
    end)))
  end)
  it("pays for padding", function()
    local n, least = passes(function(l) return l // 8 * 144 + l % 8 * 16 end)
    assert.is_true(n > 4)
    assert.equal(4, least)
    assert.equal(32, (passes(function(l) return l * 144 end)))
    assert.equal(8, (passes(function(l) return l * 144 end, 0xff)))
  end)
  it("pays for each line of global memory", function()
    local dst = lanes(function(l) return l // 8 * 128 + l % 8 * 16 end)
    -- groups of `per` adjacent lanes copy from the same 128-byte line
    for per = 1, 8 do
      local from = lanes(function(l) return l // per * 128 + l % per * 16 end)
      local keys, n = {}, 0
      for l = 0, 31 do
        local key = ("%d %d %d"):format(l // per, l // 8, l % 8 ~ l % per)
        if not keys[key] then n = n + 1 end
        keys[key] = true
      end
      local passed, least = sim.cpasync_cg_wavefronts(dst, from)
      -- If two or more lanes copy from each line, at least one pass per line is
      -- needed.
      local lines = (32 + per - 1) // per
      assert.same({n, per == 1 and 4 or lines}, {passed, least})
    end
  end)
end)

describe("global memory", function()
  it("counts 32-byte sectors", function()
    local function sectors(width, f, mask)
      return sim.global_sectors(width, lanes(f), mask)
    end
    assert.equal(4, sectors(4, function(l) return l * 4 end))
    assert.equal(16, sectors(16, function(l) return l * 16 end))
    assert.equal(32, sectors(4, function(l) return l * 4096 end))
    assert.equal(1, sectors(4, function() return 1 << 40 end))
    assert.equal(5, sectors(4, function(l) return l * 4 + 16 end))
    assert.equal(1, sectors(4, function(l) return l * 4096 end, 1 << 31))
    assert.equal(0, sectors(4, function(l) return l end, 0))
  end)
  it("equals a set of sectors on random accesses", function()
    math.randomseed(11)
    for _ = 1, 3000 do
      local width, mask = 1 << math.random(0, 5), math.random(0, 0xffffffff)
      local range, addr, set, n = 1 << math.random(1, 12), {}, {}, 0
      for l = 0, 31 do
        local a = math.random(0, range) * width
        addr[l + 1] = a
        if mask >> l & 1 == 1 and not set[a // 32] then
          set[a // 32], n = true, n + 1
        end
      end
      assert.equal(n, sim.global_sectors(width, addr, mask))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
