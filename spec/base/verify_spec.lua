-- Tests the comparison of a product with its reference, element by element.
-- Errors that rounding explains must pass. A larger error must be found,
-- whichever element has it.
local core = require "cute.core"
local lesson = require "cutelua.bench.lesson"
local support = require "spec.support"

local NAN, INF = 0 / 0, 1 / 0

-- Parameters of the error bound, by the type of D. Fields: unit, half an ulp of
-- 1; least, the smallest positive number of the type; most, its largest number.
local F32 = {unit = 2^-24, least = 2^-149, most = (2 - 2^-23) * 2.0^127}
local FORMAT = {
  f16 = {unit = 2^-11, least = 2^-24, most = 65504.0},
  bf16 = {unit = 2^-8, least = 2^-133, most = (2 - 2^-7) * 2.0^127},
  f32 = F32, f64 = {unit = 2^-53, least = 2^-1074, most = math.huge},
  i32 = {unit = 0, least = 0, most = math.huge},
}

local function norm(b, first, step, k)
  local sum = 0.0
  for c = 0, k - 1 do sum = sum + b[first + c * step]^2 end
  return sum^0.5
end

-- Returns the bound of element (i, j) from the formula, and the element's sum.
local function bound_of(p, i, j)
  local o, k = p.opts, p.k
  local alpha, beta = o.alpha or 1, o.beta or 0
  local c0 = o.c0 and o.c0[i * p.n + j] or 0
  local sums = FORMAT[o.sums or "f32"]
  local want = alpha * p.ref[i * p.n + j] + beta * c0
  local size = math.abs(alpha) * norm(p.a, i * k, 1, k) * norm(p.b, j * k, 1, k)
    + math.abs(beta * c0)
  local nu = (k + 3) * o.unit
  local e = nu / (1 - nu) * size + (k + 3) * sums.least
  local f = FORMAT[p.d.dtype.name or tostring(p.d.dtype)]
  return e + f.unit * (math.abs(want) + e) + f.least / 2, want
end

local CASES = {
  {"bf16", "bf16", "f32"}, {"f16", "f16", "f32"}, {"bf16", "f32", "f32"},
  {"f32", "f32", "f32"}, {"e4m3", "bf16", "f32"}, {"f64", "f64", "f64"},
  {"i8", "i32", "i32"},
}

local function problem(case, m, n, k, o)
  local p = {m = m, n = n, k = k, a = core.buffer(case[1], m * k),
             b = core.buffer(case[1], n * k), d = core.buffer(case[2], m * n)}
  if case[1] == "i8" then
    p.a:fill_int(1, -100, 100)
    p.b:fill_int(2, -100, 100)
  else
    p.a:fill_normal(1)
    p.b:fill_normal(2)
  end
  p.ref = core.gemm_reference(p.a, p.b, core.buffer("f64", m * n), m, n, k)
  p.opts = {ref = p.ref, sums = case[3],
            unit = ({f32 = 2^-24, f64 = 2^-52, i32 = 0})[case[3]]}
  for name, value in pairs(o or {}) do p.opts[name] = value end
  for i = 0, m * n - 1 do
    p.d[i] = (p.opts.alpha or 1) * p.ref[i]
      + (p.opts.c0 and p.opts.beta * p.opts.c0[i] or 0)
  end
  return p
end

local function check(p)
  return core.gemm_check(p.a, p.b, p.d, p.m, p.n, p.k, p.opts)
end

-- Sets element `place` of D to a number near the error bound: above `want` if
-- `sign` is 1, below it if `sign` is -1. The number is the first whose distance
-- from `want` exceeds the bound; with `within`, it is the last one within the
-- bound.
local function plant(p, place, want, bound, sign, within)
  local far, whole = bound, p.d.dtype.is_integer
  local last = p.d[place]
  repeat
    p.d[place] = whole and want // 1 + sign * (far // 1) or want + sign * far
    local error = math.abs(p.d[place] - want)
    if error <= bound then last = p.d[place] end
    far = far * (1 + 2^-30) + (whole and 1 or far * 2^-13)
  until error > bound * (1 + 1e-12)
  if within then p.d[place] = last end
end

describe("gemm_check", function()
  for _, case in ipairs(CASES) do
    local name = table.concat(case, " ")

    it("finds one element beyond its bound, anywhere: " .. name, function()
      local p = problem(case, 37, 300, 65)
      local v = check(p)
      assert.is_true(v.ok)
      assert.equal(37 * 300, v.count)
      for _, at in ipairs {{0, 0}, {36, 299}, {0, 299}, {36, 0}, {17, 255},
                           {16, 256}, {15, 128}, {20, 111}} do
        local i, j = at[1], at[2]
        local place = i * p.n + j
        local kept, bound, want = p.d[place], bound_of(p, i, j)
        for _, sign in ipairs {1, -1} do
          p.d[place] = kept
          plant(p, place, want, bound, sign, true)
          assert.is_true(check(p).ok, name)
          plant(p, place, want, bound, sign)
          local bad = check(p)
          assert.is_false(bad.ok, name)
          assert.same({1, i, j}, {bad.wrong, bad.row, bad.col})
          assert.equal(p.d[place], bad.got)
          assert.near(want, bad.want, math.abs(want) * 1e-12)
          assert.near(bound, bad.bound, bound * 1e-9)
          assert.equal(37 * 300, bad.count)
        end
        p.d[place] = kept
      end
    end)

    it("reports NaN and infinity where a number belongs: " .. name, function()
      if case[2] == "i32" then return end
      local p = problem(case, 5, 9, 33)
      for _, x in ipairs {NAN, INF, -INF} do
        local kept = p.d[4 * 9 + 7]
        p.d[4 * 9 + 7] = x
        local v = check(p)
        assert.same({false, 1, 4, 7}, {v.ok, v.wrong, v.row, v.col})
        assert.equal(INF, v.frobenius)
        p.d[4 * 9 + 7] = kept
      end
    end)
  end

  it("finds the zero in C(0,0) that a norm hides", function()
    local p = problem({"bf16", "bf16", "f32"}, 256, 256, 1024)
    local before = check(p)
    p.d[0] = 0
    local v = check(p)
    assert.same({false, 1, 0, 0}, {v.ok, v.wrong, v.row, v.col})
    assert.is_true(before.ok and v.frobenius < 1.1e-2)
  end)

  it("expects the user's own NaN and infinity in the right elements", function()
    local p = problem({"f32", "f32", "f32"}, 6, 7, 20)
    p.a[2 * 20 + 3], p.b[5 * 20 + 4] = NAN, INF
    core.gemm_reference(p.a, p.b, p.ref, 6, 7, 20)
    for i = 0, 41 do p.d[i] = p.ref[i] end
    local v = check(p)
    assert.is_true(v.ok)
    assert.is_true(v.frobenius < 1e-6)
    assert.equal(7, v.nans)
    for j = 0, 6 do assert.is_true(p.d[2 * 7 + j] ~= p.d[2 * 7 + j]) end
    assert.equal(math.huge, math.abs(p.d[5]))
    for place, x in pairs {[2 * 7 + 1] = 1.0, [2 * 7] = INF, [5] = NAN,
                           [0 * 7 + 5] = -p.d[5], [1] = NAN} do
      local kept = p.d[place]
      p.d[place] = x
      v = check(p)
      assert.same({false, 1, place // 7, place % 7},
                  {v.ok, v.wrong, v.row, v.col})
      p.d[place] = kept
    end
  end)

  it("lets what is too large for its type be infinite", function()
    local p = problem({"f16", "f16", "f32"}, 2, 2, 4)
    for i = 0, 7 do p.a[i], p.b[i] = 200.0, i < 4 and 200.0 or 1.0 end
    -- The exact sums are 160000, which f16 cannot represent, and 800.
    core.gemm_reference(p.a, p.b, p.ref, 2, 2, 4)
    for i = 0, 3 do p.d[i] = p.ref[i] end
    assert.equal(INF, p.d[0])
    assert.is_true(check(p).ok)
    p.d[0] = -INF
    assert.is_false(check(p).ok)
    p.d[0] = 65504.0
    assert.is_false(check(p).ok)
    p.d[0], p.d[1] = INF, INF
    assert.same({false, 1}, {check(p).ok, check(p).col})
    -- The product 3e38 * 1.5 overflows f32, so any D is accepted.
    p = problem({"f32", "f32", "f32"}, 1, 1, 2)
    p.a[0], p.a[1], p.b[0], p.b[1] = 3e38, 3e38, 1.5, -1.5
    core.gemm_reference(p.a, p.b, p.ref, 1, 1, 2)
    for _, x in ipairs {0.0, INF, -INF, NAN} do
      p.d[0] = x
      assert.is_true(check(p).ok)
    end
  end)
end)

describe("gemm_check", function()
  it("supports alpha, beta, C0 and all layouts", function()
    local m, n, k = 19, 23, 40
    local c0 = core.buffer("f32", m * n):fill_normal(9)
    local p = problem({"f32", "f32", "f32"}, m, n, k,
                      {alpha = -1.5, beta = 0.25, c0 = c0})
    assert.is_true(check(p).ok)
    for _, at in ipairs {{0, 0}, {18, 22}, {7, 11}} do
      local bound, want = bound_of(p, at[1], at[2])
      local kept = p.d[at[1] * n + at[2]]
      p.d[at[1] * n + at[2]] = want + bound * 1.1
      local v = check(p)
      assert.same({1, at[1], at[2]}, {v.wrong, v.row, v.col})
      assert.near(bound, v.bound, bound * 1e-9)
      p.d[at[1] * n + at[2]] = kept
    end
    -- the same matrices and their product, each stored transposed
    local turned = {a = p.a:transpose(m, k), b = p.b:transpose(n, k),
                    d = p.d:transpose(m, n), m = m, n = n, k = k,
                    opts = {a = {1, m}, b = {1, n}, d = {1, m}}}
    for name, value in pairs(p.opts) do turned.opts[name] = value end
    assert.is_true(check(turned).ok)
    turned.d[11 * m + 7] = turned.d[11 * m + 7] + 1
    local v = check(turned)
    assert.same({1, 7, 11}, {v.wrong, v.row, v.col})
  end)

  it("computes sampled elements itself without a reference product", function()
    local p = problem({"bf16", "bf16", "f32"}, 5, 6, 300)
    p.opts.ref, p.opts.samples = nil, 500
    local v = check(p)
    assert.same({true, 500}, {v.ok, v.count})
    p.d[3 * 6 + 4] = p.d[3 * 6 + 4] + 5
    v = check(p)
    assert.is_false(v.ok)
    assert.same({3, 4}, {v.row, v.col})
    assert.is_true(v.wrong > 1 and v.wrong < 100)
  end)

  it("rejects problems without a known bound", function()
    local b = core.buffer("e4m3", 16)
    support.raises("no rounding error bound is known for a D of e4m3",
                   core.gemm_check, b, b, b, 4, 4, 4, {})
    b = core.buffer("f32", 16)
    support.raises("D has 0 by 4 elements", core.gemm_check, b, b, b, 0, 4, 4,
                   {})
    support.raises("ref has 16 elements, 4 by 3 needed", core.gemm_check, b, b,
                   b, 4, 3, 4, {ref = b})
  end)
end)

describe("a lesson's verification", function()
  local function rung_of(name)
    return require "spec.lesson" ("scripts/" .. name .. ".lua")
  end

  for _, name in ipairs {"gemm_base", "gemm_sm70", "gemm_simt", "gemm_tf32",
                         "gemm_f64", "gemm_int8", "gemm_fp8_sm89"} do
    it("names the one element of a script that is wrong: " .. name, function()
      local rung = rung_of(name)
      local p = lesson.problem(rung, {70, 50, 90}, {seed = 3})
      lesson.simulate(rung, p, "sim:sm_90a")
      assert.is_true((lesson.verify(rung, p)))
      for _, at in ipairs {{0, 0}, {69, 49}, {33, 7}} do
        local place = at[1] * 50 + at[2]
        local kept = p.c[place]
        p.c[place] = kept + math.max(1, math.abs(kept) // 64)
        local ok, v, how = lesson.verify(rung, p)
        assert.is_false(ok)
        assert.same({1, at[1], at[2]}, {v.wrong, v.row, v.col})
        local text = lesson.what_is_wrong(v, how)
        assert.is_truthy(text:find(("C(%d,%d) is "):format(at[1], at[2]), 1,
                                   true), text)
        assert.is_truthy(text:find("1 of all elements", 1, true), text)
        p.c[place] = kept
      end
    end)
  end

  it("still finds a small error in all elements", function()
    local rung = rung_of "gemm_base"
    local p = lesson.problem(rung, {64, 64, 8192}, {seed = 1})
    core.gemm_reference(p.a, p.b, p.c, 64, 64, 8192)
    assert.is_true((lesson.verify(rung, p)))
    for i = 0, 64 * 64 - 1 do p.c[i] = p.c[i] * 1.01 end
    local ok, v, how = lesson.verify(rung, p)
    assert.is_false(ok)
    assert.is_true(v.ok)
    assert.is_truthy(lesson.what_is_wrong(v, how):find("relative error 1.", 1,
                                                       true))
  end)

  it("accepts a NaN that the user's operands cause", function()
    local folder = support.folder()
    local values = {}
    for i = 1, 64 * 64 do values[i] = (i % 13 - 6) / 4 end
    values[5 * 64 + 9] = NAN
    local data = {}
    for row = 0, 63 do
      data[row + 1] = string.pack("<" .. ("f"):rep(64), table.unpack(values,
        row * 64 + 1, row * 64 + 64))
    end
    assert(require "cute.npy".write(folder .. "/a.npy", {dtype = "f32",
      shape = {64, 64}, bytes = table.concat(data)}))
    local out, err, code = support.run {"scripts/gemm_base.lua", "--device",
      "sim", "--a", folder .. "/a.npy"}
    support.remove(folder)
    assert.equal("", err)
    assert.equal(0, code)
    assert.is_truthy(out:find("all elements against a double%-precision sum: "
      .. "ok %(256 are NaN"), out)
  end)
end)

describe("a copy's verification", function()
  -- Each thread copies one element, except the thread of element (I, J), which
  -- copies nothing.
  local SCRIPT = [[
    local cute = require "cute"
    local I, J, turned = %d, %d, %s
    local kernel = cute.kernel("k", function(A, B)
      local i, j = cute.arch.block_idx(), cute.arch.thread_idx()
      cute.when(i:ne(I) | j:ne(J), function()
        B[turned and {j, i} or {i, j}] = A[{i, j}]
      end)
    end)
    require "cutelua.bench.copylesson".run({[0] = "s", "--device", "sim",
      "--m", "40", "--n", "32"}, {kernel = kernel, tile = {1, 32}, block = 32,
                     transpose = turned})
  ]]

  it("names the one element that is wrong", function()
    for _, turned in ipairs {false, true} do
      for _, at in ipairs {{0, 0}, {39, 31}, {17, 5}, {40, 32}} do
        local out, _, code = support.run {"-e", SCRIPT:format(at[1], at[2],
                                                              turned)}
        local right = at[1] == 40
        assert.equal(right and 0 or 1, code, out)
        assert.is_truthy(out:find(right and "all elements: ok" or
          ("verified    A(%d,%d) is "):format(at[1], at[2]), 1, true), out)
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
