-- Tests the sentences that describe how two tensors differ. Each planted
-- pattern must be described, at several shapes; random differences must not.
local cute = require "cute"
local pattern = require "cutelua.bench.pattern"
local support = require "spec.support"

-- Returns sentences on how two tensors (functions of a coordinate) differ.
local function told(shape, got, want, most)
  local function element(f)
    local kept = {}
    return function(at)
      kept[at] = kept[at] or f(table.unpack(pattern.coordinate(shape, at)))
      return kept[at]
    end
  end
  local function close(a, b)
    return a == b or a ~= a and b ~= b
      or math.abs(a - b) <= (most or 1e-9) * math.max(1, math.abs(b))
  end
  return pattern.told {shape = shape, got = element(got), want = element(want),
    close = close, differs = function(a, b) return not close(a, b) end,
    names = {got = "got", want = "want"}}
end

-- Returns a function of a coordinate whose values have no pattern.
local function noise(seed)
  return function(...)
    local x = seed
    for _, c in ipairs {...} do x = (x * 69069 + c * 40503 + 12345) % 2 ^ 31 end
    for _ = 1, 3 do x = (x * 1103515245 + 12345) % 2 ^ 31 end
    return x / 2 ^ 30 - 1
  end
end
local want = noise(1)

-- Returns the sentences for a tensor that is wrong where `where` holds.
local function at(shape, where)
  local other = noise(2)
  return told(shape, function(...)
    return (where(...) and other or want)(...)
  end, want)
end

-- Returns the sentences for a tensor whose elements are f(expected value,
-- coordinate...).
local function values(shape, f)
  return told(shape, function(...) return f(want(...), ...) end, want)
end

describe("a factor", function()
  -- Returns the sentences about got = f(want, coordinates), at a tolerance of
  -- 7 percent.
  local function scaled(f)
    return told({40, 30}, function(i, j) return f(want(i, j), i, j) end, want,
                0.07)
  end
  it("is not named if it is one of many that the tolerance accepts", function()
    local other = noise(5)
    assert.same({}, scaled(function(w, i, j)
      return w * (0.85 + 0.04 * other(i, j))
    end))
    assert.same({"got = 0.85 * want; is a factor missing, or applied twice?"},
                scaled(function(w) return w * 0.85 end))
  end)
  it("near 0 is named as such", function()
    assert.same({"got is almost 0 in each of them"},
                scaled(function(w) return w * 4.6e-40 end))
  end)
end)

describe("the search for a pattern", function()
  it("reads each element a few times if there is none", function()
    local reads, shape = 0, {150, 170}
    local function element(f)
      return function(index)
        reads = reads + 1
        return f(table.unpack(pattern.coordinate(shape, index)))
      end
    end
    local function close(a, b) return math.abs(a - b) <= 1e-9 end
    assert.same({}, pattern.told {shape = shape, got = element(noise(3)),
      want = element(want), close = close,
      differs = function(a, b) return not close(a, b) end,
      names = {got = "got", want = "want"}})
    assert.is_true(reads < 30 * 150 * 170, reads)
  end)
end)

describe("the places of differences", function()
  it("are ranges of coordinates", function()
    assert.same({"the last 9 elements (768 to 776) differ, and no others"},
                at({777}, function(i) return i >= 768 end))
    assert.same({"elements 0 to 31 of every 128 differ, and no others"},
                at({777}, function(i) return i % 128 < 32 end))
    assert.same({"all elements of column 3 differ, and no others"},
                at({5, 7}, function(_, j) return j == 3 end))
    assert.same({"all elements of columns 3 and 5 differ, and no others"},
                at({5, 7}, function(_, j) return j == 3 or j == 5 end))
    assert.same({"all elements of rows 2 to 3 and the last 4 columns (3 to 6) "
                 .. "differ, and no others"},
                at({5, 7}, function(i, j) return i // 2 == 1 and j > 2 end))
    assert.same({"all elements of column 1 of every 4 differ, and no others"},
                at({4, 16}, function(_, j) return j % 4 == 1 end))
    assert.same({"all elements of 3 of 16 columns (the first are 1, 2 and 9) "
                 .. "differ, and no others"},
                at({4, 16}, function(_, j) return j < 3 and j > 0 or j == 9
                            end))
    assert.same({"all elements of coordinate 2 of mode 1 differ, and no "
                 .. "others"},
                at({3, 4, 5}, function(_, j) return j == 2 end))
    assert.same({"all differing elements are in the last 4 columns (4 to 7)"},
                at({4, 8}, function(i, j) return j > 3 and i ~= j - 4 end))
  end)

  it("are a side of the diagonal", function()
    for _, n in ipairs {8, 13} do
      local shape = {2, n, n}
      assert.same({"all elements above the diagonal (column > row) differ, and "
                   .. "no others"},
                  at(shape, function(_, i, j) return j > i end))
      assert.same({"all elements below the diagonal (column < row) differ, and "
                   .. "no others"},
                  at(shape, function(_, i, j) return j < i end))
      assert.same({"all differing elements are above the diagonal (column > "
                   .. "row)"},
                  at(shape, function(_, i, j) return j > i and j % 3 > 0 end))
      assert.same({"all elements on the diagonal differ, and no others"},
                  at(shape, function(_, i, j) return j == i end))
    end
  end)

  it("are the elements of one sign", function()
    local other = noise(2)
    assert.same({"exactly the elements in which want is below 0 differ"},
                values({8, 9}, function(w, ...)
                  return w < 0 and other(...) or w
                end))
  end)

  it("have no pattern if they are random", function()
    local random = noise(3)
    assert.same({}, at({16, 16}, function(...) return random(...) > 0 end))
    assert.same({}, at({64}, function(i) return i == 5 end))
    assert.same({}, at({64}, function() return false end))
    assert.same({}, at({16, 16}, function() return true end))
  end)
end)

describe("the values of differences", function()
  local shapes = {{64}, {8, 9}, {3, 4, 5}}

  it("are multiples and sums", function()
    local function product(text)
      return {("got = %s * want; is a factor missing, or applied twice?")
        :format(text)}
    end
    for _, shape in ipairs(shapes) do
      for text, a in pairs {["2"] = 2, ["1/128"] = 1 / 128, ["-3"] = -3,
          ["log2(e)"] = 1 / math.log(2), ["1/sqrt(32)"] = 32 ^ -0.5,
          ["sqrt(2)"] = 2 ^ 0.5, ["0.7123"] = 0.7123} do
        assert.same(product(text), values(shape, function(w) return a * w end))
      end
      assert.same({"got = -want"}, values(shape, function(w) return -w end))
      assert.same({"got = want + 0.25; is a term missing, or added twice?"},
                  values(shape, function(w) return w + 0.25 end))
      assert.same({"got = 3 * want - 1"},
                  values(shape, function(w) return 3 * w - 1 end))
    end
    -- Three of seven elements, which all differ by 1/8, may be a coincidence.
    for _, text in ipairs(values({7}, function(w, i)
      return i % 3 == 0 and w - 0.125 or w
    end)) do
      assert.is_nil(text:find "is a term missing", text)
    end
  end)

  it("are functions of the right values", function()
    for _, shape in ipairs(shapes) do
      assert.same({"exactly the elements in which want is below 0 differ",
                   "got = -want"}, values(shape, math.abs))
      assert.same({"exactly the elements in which want is below 0 differ",
                   "got is 0 in each of them"},
                  values(shape, function(w) return math.max(w, 0.0) end))
      assert.same({"got = exp(want)"}, values(shape, math.exp))
      assert.same({"got = 1 / want"},
                  values(shape, function(w) return 1 / w end))
      local large = noise(5)
      assert.same({"got = floor(want)"}, told(shape, function(...)
        return 100 * large(...) // 1
      end, function(...) return 100 * large(...) end))
    end
  end)

  it("are rounded to narrow types", function()
    for _, name in ipairs {"bf16", "f16", "e4m3", "e5m2"} do
      local one = cute.zeros({1}, cute[name])
      local list = values({64}, function(w)
        one[0] = w
        return one[0]
      end)
      assert.equal(("got is want rounded to %s"):format(name), list[#list])
    end
  end)

  it("are one number, or NaN", function()
    assert.same({"the last 3 elements (61 to 63) differ, and no others",
                 "got is 0 in each of them"},
                values({64}, function(w, i) return i > 60 and 0 or w end))
    assert.same({"the last 3 elements (61 to 63) differ, and no others",
                 "got is NaN in each of them"},
                values({64}, function(w, i) return i > 60 and 0 / 0 or w end))
  end)

  it("have the sentences that hold, not those of other values", function()
    -- All elements are doubled but one.
    assert.same({}, values({8, 9}, function(w, i, j)
      return i == 3 and j == 4 and 3 * w or 2 * w
    end))
  end)
end)

describe("moved elements", function()
  local function moved(shape, from) return told(shape, from, want) end

  it("have exchanged coordinates", function()
    assert.same({"got(i,j) = want(j,i); are two coordinates exchanged?"},
                moved({9, 9}, function(i, j) return want(j, i) end))
    assert.same({"got(i,j,k) = want(i,k,j); are two coordinates exchanged?"},
                moved({3, 8, 8}, function(b, i, j) return want(b, j, i) end))
    assert.same({"got has the elements of want in column-major order; are two "
                 .. "strides exchanged?"},
                moved({8, 12}, function(i, j)
                  local n = i * 12 + j
                  return want(n % 8, n // 8)
                end))
  end)

  it("are shifted or reversed", function()
    assert.same({"elements 0 to 62 differ, and no others",
                 "got(i) = want(i + 1); is an index off by 1?"},
                moved({64}, function(i) return want(i < 63 and i + 1 or i) end))
    assert.same({"got(i,j) = want(i,j - 3); is an index off by 3?"},
                moved({4, 16}, function(i, j) return want(i, j - 3) end))
    assert.same({"got(i,j) = want(i - 2,j); is an index off by 2?"},
                moved({8, 9}, function(i, j) return want(i - 2, j) end))
    assert.same({"got(i,j) = want(i,15 - j): the order is reversed"},
                moved({4, 16}, function(i, j) return want(i, 15 - j) end))
  end)
end)

describe("differences along a mode", function()
  it("are one term, or one factor, for each coordinate", function()
    local v = noise(7)
    assert.same({"got - want has one value in each column; is a vector of 9 "
                 .. "elements, such as a bias, missing or indexed wrongly?"},
                values({8, 9}, function(w, _, j) return w + v(j) end))
    assert.same({"got / want has one value in each row; is a vector of 8 "
                 .. "factors missing or indexed wrongly?"},
                values({8, 9}, function(w, i) return w * v(i) end))
    assert.same({}, values({8, 9}, function(w, i, j) return w + v(i, j) end))
  end)
end)

describe("a script that compares", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  -- A kernel that adds a bias by rows, although the reference adds it by
  -- columns.
  local SCRIPT = [[
local cute = require "cute"
local add = cute.kernel("add", function(x, b, y)
  local i, j = cute.arch.block_idx(), cute.arch.thread_idx()
  y[{i, j}] = x[{i, j}] + %s
end)
local x, b = cute.randn({32, 32}, cute.f32), cute.randn({32}, cute.f32)
local y, want = cute.zeros({32, 32}, cute.f32), cute.zeros({32, 32}, cute.f32)
add(x, b, y):launch {grid = 32, block = 32, device = "sim"}
for i = 0, 31 do for j = 0, 31 do want[{i, j}] = x[{i, j}] + b[j] end end
cute.testing.assert_close(y, want)
]]

  local function check(term, ...)
    support.write(dir .. "/s.lua", SCRIPT:format(term))
    local words = {support.program, "check", "--no-gpu", ...}
    words[#words + 1] = dir .. "/s.lua"
    return support.exec(words)
  end

  it("gets the store of a wrong element from cutelua check", function()
    local out, err, code = check "b[j]"
    assert.equal(0, code, out .. err)
    out, err, code = check "2 * b[j]"
    assert.equal(1, code)
    assert.matches("check: reference: bug: testing.assert_close: 1024 of 1024 "
      .. "elements differ", out)
    assert.matches("written by thread 0 of block %(0,0,0%), at s.lua:4\n"
      .. "    got %- want has one value in each column; is a vector of 32", out)
    assert.matches("> 10 | cute.testing.assert_close", err, 1, true)
  end)

  it("gets an edit that makes the values right #long", function()
    local out = check("b[i]", "--format", "json")
    assert.matches('"description":"index by j"', out, 1, true)
    assert.matches('"role":"store"', out, 1, true)
  end)

  it("gets no edit of the reference or of the comparison #long", function()
    -- The proposed edit of the tolerance to 1e+4 would hide the mistake.
    support.write(dir .. "/s.lua", (SCRIPT:format "cute.sin(b[j])"
      :gsub("close%(y, want%)", "close(y, want, {rtol = 1e-4})")))
    local out = support.exec {support.program, "check", "--no-gpu", "--format",
                              "json", dir .. "/s.lua"}
    assert.matches("testing.assert_close: ", out, 1, true)
    assert.no.matches('"line":10}', out, 1, true)
    assert.no.matches('"edits":[{', out, 1, true)
  end)
end)
-- SPDX-License-Identifier: MIT
