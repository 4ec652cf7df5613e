-- Tests swizzles: the swizzle function itself, composed layouts with swizzles,
-- and their slices. Also tests swizzles of traced offsets. Their expressions
-- are simplified if some bits are known.
local cute = require "cute"
local oracle = require "spec.layout.oracle"
local support = require "spec.support"
local ANY = cute._
local raises = support.raises

-- Returns a random swizzle of up to 3 bits, all of which are below bit 13.
local function random_swizzle(r)
  local b, m = r:below(4), r:below(5)
  local s = math.max(b, 1) + r:below(4)
  if r:below(3) == 0 then s = -s end
  return b, m, s
end

describe("a swizzle", function()
  it("XORs one field of bits into another, in either direction", function()
    local r = oracle.random(7)
    for _ = 1, 300 do
      local b, m, s = random_swizzle(r)
      local sw = cute.make_swizzle(b, m, s)
      for _ = 1, 20 do
        local x = r:below(1 << 14)
        assert.equal(oracle.swizzle(b, m, s, x), sw(x))
        assert.equal(x, sw(sw(x)))
      end
    end
  end)

  it("prints, parses and compares", function()
    local sw = cute.make_swizzle(3, 4, -3)
    assert.equal("Sw<3,4,-3>", tostring(sw))
    assert.is_true(sw == cute.parse "Sw<3,4,-3>")
    assert.is_false(sw == cute.make_swizzle(3, 4, 3))
    assert.same({3, 4, -3}, {sw.num_bits, sw.num_base, sw.num_shift})
  end)

  it("is made from the masks of the bits it reads and changes", function()
    assert.equal("Sw<2,2,2>", tostring(cute.make_swizzle(48, 12)))
    assert.equal("Sw<2,2,-2>", tostring(cute.make_swizzle(12, 48)))
    raises("not form a swizzle", cute.make_swizzle, 5, 40)
    raises("[inadmissible]", cute.make_swizzle, 12, 24)
  end)

  it("rejects invalid swizzles", function()
    raises("shift of 2 is smaller than the 3 bits", cute.make_swizzle, 3, 0, 2)
    raises("must not be negative", cute.make_swizzle, -1, 0, 2)
    raises("below bit 58", cute.make_swizzle, 3, 40, 40)
    raises("integer expected", cute.make_swizzle, "a", 0, 2)
    raises("powers of two", cute.upcast, cute.make_swizzle(3, 3, 3), 3)
  end)
end)

local atom = cute.composition(cute.make_swizzle(3, 3, 3),
                              cute.make_layout({8, {8, 8}}, {8, {1, 64}}))

describe("a composed layout", function()
  it("prints with its offset and parses", function()
    assert.equal("Sw<3,3,3> o 0 o (8,(8,8)):(8,(1,64))", tostring(atom))
    assert.is_true(cute.layout(tostring(atom)) == atom)
    local moved = cute.composition(cute.make_swizzle(1, 2, 3), 5,
                                   cute.make_layout(8))
    assert.equal("Sw<1,2,3> o 5 o 8:1", tostring(moved))
    assert.equal(oracle.swizzle(1, 2, 3, 5 + 7), moved(7))
  end)

  it("returns its parts", function()
    assert.equal("Sw<3,3,3>", tostring(cute.get_swizzle_portion(atom)))
    assert.equal("(8,(8,8)):(8,(1,64))",
                 tostring(cute.get_nonswizzle_portion(atom)))
    assert.equal("Sw<0,4,3>",
                 tostring(cute.get_swizzle_portion(cute.make_layout(8))))
  end)

  it("cannot be a mode of another layout", function()
    raises("composed layout cannot be a mode", cute.make_layout, atom, atom)
  end)

  it("is equal in function to another form", function()
    local flat = cute.composition(cute.make_swizzle(3, 3, 3),
                                  cute.layout "(8,8,8):(8,1,64)")
    assert.is_true(atom:equals(flat))
    assert.is_false(atom == flat)
    assert.is_false(atom:equals(cute.get_nonswizzle_portion(flat)))
  end)

  -- Compares every slice of many layouts with full indexing.
  it("has slices that equal full indexing #long", function()
    local r, decayed, kept = oracle.random(11), 0, 0
    for _ = 1, 600 do
      local b, m, s = random_swizzle(r)
      local extents = r:below(3) == 0 and {2, 3, 4, 5} or {2, 4, 4, 8}
      local shape = {r:shape(1, extents), r:shape(1, extents), r:pick(extents)}
      local inner = cute.make_layout(shape, r:compact(shape, r:below(2) == 0))
      local l = cute.make_composed_layout(cute.make_swizzle(b, m, s),
                                          r:below(3) == 0 and r:below(64) or 0,
                                          inner)
      local c, rest = {}, {}
      for i = 1, 3 do
        local n = oracle.size(shape[i])
        if r:below(2) == 0 then
          c[i] = ANY
          rest[#rest + 1] = n
        else
          c[i] = r:below(n)
        end
      end
      if #rest > 0 then
        local part, off = cute.slice_and_offset(c, l)
        if part.is_composed then kept = kept + 1 else decayed = decayed + 1 end
        for i = 0, cute.size(part) - 1 do
          local full, at = {}, i
          for k = 1, 3 do
            if c[k] == ANY then
              local n = oracle.size(shape[k])
              full[k] = at % n
              at = at // n
            else
              full[k] = c[k]
            end
          end
          local x = l.offset + inner(full)
          assert.equal(oracle.swizzle(b, m, s, x), l(full))
          if l(full) ~= off + part(i) then
            error(("%s at %s: %s + %s, wrong at %d"):format(
              l, cute.tuple(c), off, part, i))
          end
        end
      end
    end
    assert.is_true(decayed > 200 and kept > 200,
                   ("%d decayed, %d kept"):format(decayed, kept))
  end)

  it("keeps its function under every rearrangement", function()
    local r = oracle.random(5)
    for _ = 1, 200 do
      local shape = {r:pick {4, 8}, r:pick {4, 8, 16}}
      local l = cute.make_composed_layout(
        cute.make_swizzle(r:below(3), r:below(3), 2 + r:below(3)), r:below(2),
        cute.make_layout(shape, r:compact(shape)))
      local flat = {}
      for i = 0, cute.size(l) - 1 do flat[i] = l(i) end
      for _, x in ipairs {cute.coalesce(l), cute.flatten(l),
                          cute.group_modes(l, 0, 2),
                          cute.with_shape(l, {2, shape[1] * shape[2] // 2})} do
        for i = 0, #flat do assert.equal(flat[i], x(i)) end
      end
      local d = cute.zipped_divide(l, {2, 4})
      for i = 0, 7 do
        for j = 0, cute.size(d, 1) - 1 do
          local m, n = j % (shape[1] // 2), j // (shape[1] // 2)
          assert.equal(l(m * 2 + i % 2, n * 4 + i // 2), d(i, j))
        end
      end
    end
  end)
end)

describe("a composed layout", function()
  it("can be recast to wider or narrower elements", function()
    local up = cute.upcast(atom, 8)
    for i = 0, 7 do
      for j = 0, 7 do
        assert.equal(atom(i, j * 8) // 8, up(i, j))
      end
    end
    assert.is_true(cute.recast_layout(atom, 16, 128) == up)
    assert.is_true(cute.recast_layout(128, 16, atom) == up)
    local down = cute.downcast(atom, 2)
    for i = 0, 63 do
      assert.equal(atom(3, i) * 2, down(3, i * 2))
      assert.equal(atom(3, i) * 2 + 1, down(3, i * 2 + 1))
    end
  end)
end)

-- ---- traced ----

-- Runs f(tid, ...) in 64 threads of the simulator. Returns a tensor whose row i
-- contains the n integers that f returned in thread i.
local function per_thread(n, f, ...)
  local out = cute.zeros({64, n}, cute.i32)
  local args = {...}
  cute.kernel("k", function(mOut, ...)
    local tid = cute.arch.thread_idx()
    for i, v in ipairs {f(tid, ...)} do mOut[{tid, i - 1}] = v end
  end)(out, table.unpack(args)):launch {
    grid = 1, block = 64, device = "sim:sm_90a"}
  return out
end

describe("a traced swizzle", function()
  -- Compares a swizzle of traced sums with plain Lua. The summands are terms of
  -- the thread's index, a number of the launch, and constants, in any order.
  -- Their bits may overlap or not.
  it("equals the plain one after any rewriting #long", function()
    local r = oracle.random(3)
    for _ = 1, 40 do
      local b, m, s = random_swizzle(r)
      local sw = cute.make_swizzle(b, m, s)
      local exprs = {}
      for e = 1, 6 do
        local terms = {}
        for k = 1, 1 + r:below(4) do
          terms[k] = {kind = r:below(4), by = 1 << r:below(9),
                      mod = 1 << (1 + r:below(4)), con = r:below(1 << 10)}
        end
        exprs[e] = terms
      end
      local function value(terms, tid, n)
        local x = 0
        for _, t in ipairs(terms) do
          local v
          if t.kind == 0 then v = t.con
          elseif t.kind == 1 then v = tid % t.mod * t.by
          elseif t.kind == 2 then v = tid // t.mod * t.by
          else v = n * t.by end
          x = x + v
        end
        return x
      end
      local n = r:below(9)
      local out = per_thread(#exprs, function(tid, k)
        local list = {}
        for e, terms in ipairs(exprs) do list[e] = sw(value(terms, tid, k)) end
        return table.unpack(list)
      end, n)
      for tid = 0, 63 do
        for e, terms in ipairs(exprs) do
          local want = oracle.swizzle(b, m, s, value(terms, tid, n))
          if out(tid, e - 1) ~= want then
            error(("Sw<%d,%d,%d> of expression %d at thread %d: %s, not %s")
              :format(b, m, s, e, tid, out(tid, e - 1), want))
          end
        end
      end
    end
  end)

  it("equals the plain one in slices at traced coordinates", function()
    local r = oracle.random(19)
    for _ = 1, 16 do
      local b, m, s = r:below(4), r:below(4), 3 + r:below(2)
      local shape = {8, {r:pick {4, 8}, r:pick {2, 4}}, 3}
      local l = cute.make_composed_layout(
        cute.make_swizzle(b, m, s), 0,
        cute.make_layout(shape, r:compact(shape)))
      local out = per_thread(6, function(tid, stage)
        local part = l(tid % 8, ANY, stage)
        local col = l(ANY, tid // 8, 1)
        return l(tid % 8, tid // 8, stage), part(tid // 8), part(3),
               col(tid % 8), col(0), l(tid)
      end, 2)
      for tid = 0, 63 do
        local i, j = tid % 8, tid // 8
        assert.equal(l(i, j, 2), out(tid, 0))
        assert.equal(l(tid), out(tid, 5))
        -- A slice may move a part of the offset into the tensor's pointer, so
        -- only differences of offsets are compared.
        assert.equal(l(i, j, 2) - l(i, 3, 2), out(tid, 1) - out(tid, 2))
        assert.equal(l(i, j, 1) - l(0, j, 1), out(tid, 3) - out(tid, 4))
      end
    end
  end)

  it("is not applied to constants and whole periods", function()
    local sw = cute.make_swizzle(3, 3, 3)
    local function source(f)
      return cute.kernel("k", function(mOut)
        mOut[cute.arch.thread_idx()] = f(cute.arch.thread_idx())
      end)(cute.zeros({64}, cute.i32)):trace {block = 64}.source
    end
    -- The swizzle leaves bits 0 to 2 and bits from 9 on unchanged, so a
    -- constant in these bits can be added after the XOR.
    local s = source(function(t)
      local row = (t % 8) * 64
      return sw(row + 512 * 7 + 5) - sw(row)
    end)
    assert.is_truthy(s:find("3589", 1, true), s)
    local count = select(2, s:gsub("%^", ""))
    assert.is_true(count <= 1, s)
  end)
end)

describe("a swizzled layout", function()
  it("has inverses, and a complement with unused offsets #long", function()
    local r = oracle.random(5)
    local inverses, free, refused = 0, 0, 0
    for _ = 1, 1500 do
      local shape = r:shape(2, {1, 2, 2, 3, 4, 4, 8})
      while oracle.size(shape) > 128 do shape = r:shape(2, {1, 2, 3, 4}) end
      local l = cute.make_layout(shape, r:compact(shape, r:below(3) == 0))
      local c = cute.composition(
        cute.make_swizzle(1 + r:below(2), r:below(3), r:pick {2, 3, -2}), l)
      local R, L = cute.right_inverse(c), cute.left_inverse(c)
      for i = 0, cute.size(R) - 1 do
        assert.equal(i, c(R(i)), ("%s, %s at %d"):format(c, R, i))
      end
      for i = 0, cute.size(c) - 1 do
        assert.equal(c(i), c(L(c(i))), ("%s, %s at %d"):format(c, L, i))
      end
      inverses = inverses + (cute.size(R) > 1 and 1 or 0)
      local ok, rest = pcall(cute.complement, c, 256)
      if ok then
        local taken = {}
        for i = 0, cute.size(c) - 1 do taken[c(i)] = true end
        for i = 1, cute.size(rest) - 1 do
          assert.is_nil(taken[rest(i)], ("%s, %s at %d"):format(c, rest, i))
        end
        free = free + 1
      else
        refused = refused + 1
        assert.is_truthy(rest:find("offset of the complement", 1, true), rest)
      end
    end
    assert.is_true(inverses > 1000 and free > 1200 and refused > 3,
                   ("%d %d %d"):format(inverses, free, refused))
  end)
end)
-- SPDX-License-Identifier: MIT
