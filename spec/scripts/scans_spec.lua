-- Tests scans, selections and counts against plain Lua: running sums, Mamba's
-- selective scan, topk and histograms, with any distribution over threads. The
-- simulator must detect the removal of any barrier, wait or predicate, and
-- NVRTC must accept the text.
local core = require "cute.core"
local cute = require "cute"
local harness = require "cutelua.bench.harness"
local kernels = require "spec.kernels"
local support = require "spec.support"

local scans = {}

local function options(o, more) return setmetatable(more, {__index = o}) end

local function row_of(b, i, n)
  local list = {}
  for k = 1, n do list[k] = b[i * n + k - 1] end
  return list
end

local OPS = {add = function(a, b) return a + b end,
             mul = function(a, b) return a * b end,
             max = math.max, min = math.min}

function scans.scan(o, maker)
  maker = maker or require "kernels.scan"
  return {
    dims = {{"m", "rows"}, {"n", "elements"}},
    dtypes = {"f32", "bf16", "f16", "i32", "u32"},
    operands = function(p)
      p.made = maker(options(o, {dtype = cute[p.dtype], n = p.n}))
      return {{"x", {p.m, p.n}, fill = o.fill or {0, 2}},
              {"y", {p.m, p.n}, out = true,
               dtype = p.dtype == "bf16" and "f32" or p.dtype},
              o.one_pass and {"state", {p.made.states}, dtype = "u64",
                              fill = "zero", scratch = true} or nil}
    end,
    make = function(p) return p.made end,
    pieces = function(p) return p.m end,
    reference = function(p, i)
      local f, x, y = OPS[o.op or "add"], row_of(p.x, i, p.n), {}
      local all
      for k, v in ipairs(x) do
        if o.exclusive then y[k] = all or 0 end
        all = all and f(all, v) or v
        if not o.exclusive then y[k] = all end
      end
      return {y = y}
    end}
end

function scans.topk(o, maker)
  maker = maker or require "kernels.topk"
  return {
    dims = {{"m", "rows"}, {"n", "elements"}}, dtypes = {"bf16", "f16", "f32"},
    operands = function(p)
      p.made = maker(options(o, {dtype = cute[p.dtype], n = p.n}))
      return {{"x", {p.m, p.n}, fill = o.fill},
              {"y", {p.m, o.k}, out = true},
              {"i", {p.m, o.k}, dtype = "i32", out = true}}
    end,
    make = function(p) return p.made end,
    pieces = function(p) return p.m end,
    -- NaN counts as larger than inf. If topk selects a NaN, only indices are
    -- compared.
    reference = function(p, row)
      local x, at = row_of(p.x, row, p.n), {}
      for k = 1, p.n do at[k] = k end
      local function rank(k) return x[k] ~= x[k] and 1e999 or x[k] end
      local function nan(k) return x[k] ~= x[k] end
      table.sort(at, function(a, b)
        if nan(a) ~= nan(b) then return nan(o.smallest and b or a) end
        if rank(a) ~= rank(b) then
          if o.smallest then return rank(a) < rank(b) end
          return rank(a) > rank(b)
        end
        return a < b
      end)
      local y, i = {}, {}
      for k = 1, o.k do y[k], i[k] = x[at[k]], at[k] - 1 end
      return {y = not nan(at[1]) and not nan(at[o.k]) and y or nil, i = i}
    end}
end

function scans.histogram(o, maker)
  maker = maker or require "kernels.histogram"
  return {
    dims = {{"n", "elements"}}, dtypes = {"u8", "i32", "f32", "bf16"},
    operands = function(p)
      p.made = maker(options(o, {dtype = cute[p.dtype], n = p.n}))
      return {{"x", {p.n}, fill = o.fill or {0, 99}},
              {"h", {o.bins}, dtype = "i32", fill = {1, 5}, out = true}}
    end,
    make = function(p) return p.made end,
    pieces = function() return 1 end,
    reference = function(p)
      local h = {}
      for b = 1, o.bins do h[b] = p.was.h[b - 1] end
      for i = 0, p.n - 1 do
        local b = (o.plain or function(x) return x end)(p.x[i])
        if h[b + 1] then h[b + 1] = h[b + 1] + 1 end
      end
      return {h = h}
    end}
end

local STATES = 8

-- Returns a lesson of the selective scan. o.without: names of operands that are
-- nil.
function scans.mamba(o, maker)
  maker = maker or require "kernels.selective_scan"
  local no = o.without or {}
  return {
    dims = {{"b", "batch"}, {"d", "channels"}, {"l", "time"}},
    dtypes = {"bf16", "f32"},
    operands = function(p)
      p.made = maker(options(o, {dtype = cute[p.dtype], states = STATES}))
      local b, d, l, list = p.b, p.d, p.l, {}
      for _, x in ipairs {{"u", {b, d, l}},
        {"delta", {b, d, l}, fill = not o.softplus and function(t)
          t:fill_normal(5)
          for i = 0, #t - 1 do t[i] = math.abs(t[i]) end
          return t
        end or nil},
        {"A", {d, STATES}, dtype = "f32", fill = {-4, -1}},
        {"B", {b, STATES, l}}, {"C", {b, STATES, l}},
        {"y", {b, d, l}, out = true}, {"z", {b, d, l}},
        {"D", {d}, dtype = "f32"}, {"bias", {d}, dtype = "f32"},
        {"h0", {b, d, STATES}, dtype = "f32"},
        {"h1", {b, d, STATES}, dtype = "f32", out = true}} do
        if not no[x[1]] then list[#list + 1] = x end
      end
      return list
    end,
    make = function(p)
      local args = {n = 11, "u", "delta", "A", "B", "C", "y", "z", "D", "bias",
                    "h0", "h1"}
      for i = 1, 11 do if no[args[i]] then args[i] = nil end end
      return {kernel = p.made.kernel, block = p.made.block,
              grid = function(b, d) return p.made.grid(b, d) end, args = args}
    end,
    pieces = function(p) return p.b * p.d end,
    reference = function(p, i)
      local b, d, y, h = i // p.d, i % p.d, {}, {}
      for n = 0, STATES - 1 do h[n] = p.h0 and p.h0[i * STATES + n] or 0 end
      for t = 0, p.l - 1 do
        local at = i * p.l + t
        local dt = p.delta[at]
        if o.softplus then
          dt = math.log(1 + math.exp(dt + (p.bias and p.bias[d] or 0)))
        end
        local sum = p.D and p.D[d] * p.u[at] or 0
        for n = 0, STATES - 1 do
          local k = (b * STATES + n) * p.l + t
          h[n] = math.exp(dt * p.A[d * STATES + n]) * h[n]
            + dt * p.B[k] * p.u[at]
          sum = sum + p.C[k] * h[n]
        end
        y[t + 1] = p.z and sum * p.z[at] / (1 + math.exp(-p.z[at])) or sum
      end
      return {y = y, h1 = p.h1 and table.move(h, 0, STATES - 1, 1, {})}
    end}
end

local function words(o)
  local list = {}
  for k, v in pairs(o) do list[#list + 1] = ("%s = %s"):format(k, v) end
  table.sort(list)
  return "{" .. table.concat(list, ", ") .. "}"
end

local function check(name, o, sizes, dtypes, device, launch)
  for _, size in ipairs(sizes) do
    for _, dtype in ipairs(dtypes) do
      local p = harness.problem(scans[name](o), size, {dtype = dtype})
      local ok, reports, wrong = harness.try(p, device or "sim:sm_80", launch)
      assert.is_true(ok, ("%s %s %s %s: %s\n%s"):format(name, words(o),
        harness.size(p), dtype, tostring(wrong), tostring(reports[1])))
    end
  end
end

local function refused(text, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(tostring(err):find(text, 1, true), err)
end

-- Configurations that also run on a GPU; here NVRTC only compiles them.
local BOTH = {"sm_80", "sm_90a"}
local LARGE = {
  {"scan", {}, {33, 1000}, "f32", BOTH}, {"scan", {}, {3, 70001}, "i32"},
  {"scan", {exclusive = true}, {9, 8192}, "bf16"},
  {"scan", {one_pass = true}, {1, 5000000}, "f32", BOTH},
  {"scan", {one_pass = true, block = 64, values = 4}, {1, 1000003}, "i32"},
  {"topk", {k = 8}, {64, 4096}, "bf16", BOTH},
  {"topk", {k = 64, fill = {-9, 9}}, {33, 20000}, "f32", BOTH},
  {"histogram", {bins = 100}, {1000003}, "u8", BOTH},
  {"histogram", {bins = 60, copies = 1}, {100000}, "i32"},
  {"mamba", {softplus = true}, {2, 72, 300}, "f32", BOTH},
  {"mamba", {softplus = true, lanes = 2, time = 64}, {1, 40, 257}, "bf16"},
}

describe("running sums", function()
  it("are right for rows of any length #long", function()
    check("scan", {}, {{5, 1}, {7, 33}, {3, 1000}, {2, 9001}},
          {"f32", "i32", "bf16", "u32"})
    check("scan", {exclusive = true}, {{3, 100}, {2, 5001}}, {"i32", "f32"})
    for _, block in ipairs {32, 128} do
      check("scan", {block = block, values = 8}, {{2, 3000}, {3, 1024}},
            {"f32", "i32"})
    end
    for op in pairs(OPS) do
      local fill = op == "mul" and {1, 1} or op ~= "add" and {-999, 999} or nil
      check("scan", {op = op, fill = fill, block = 64, values = 8},
            {{3, 1500}, {2, 77}}, {"i32", "f32"})
    end
  end)

  it("of one row take one pass, in any order of blocks, repeatedly #long",
     function()
    for seed = 1, 3 do
      check("scan", {one_pass = true, block = 64, values = 4},
            {{1, 20001}, {1, 5}, {1, 256}}, {"i32", "f32"}, "sim",
            {seed = seed})
    end
    check("scan", {one_pass = true, exclusive = true}, {{1, 40000}}, {"f32"})
    check("scan", {one_pass = true, op = "max", fill = {-9999, 9999},
                   block = 64, values = 4}, {{1, 9000}}, {"i32"}, "sim",
          {threads = 2})
    -- Kernels with different tiles, and with any number of blocks, can use the
    -- same `state` one after the other.
    local state = cute.zeros({3000}, cute.u64)
    local x = cute.full({9000}, 1, cute.i32)
    for round = 1, 4 do
      local k = require "kernels.scan" {dtype = cute.i32, n = 9000,
        one_pass = true, block = 64 << round % 3, values = 4}
      local y = cute.zeros({9000}, cute.i32)
      assert.is_true(k.kernel(x, y, state):launch({
        grid = ({k.grid(), 1, 3, 2 * k.grid()})[round], block = k.block,
        device = "sim", seed = round}).ok)
      for _, i in ipairs {0, 1, 4321, 8999} do assert.equal(i + 1, y(i)) end
      assert.equal(round << 32, state(0))
    end
  end)

  it("reject unsupported options", function()
    local scan = require "kernels.scan"
    refused("op must be add, mul, max or min, not sub", scan,
            {dtype = cute.f32, n = 8, op = "sub"})
    refused("block = 32; a power of two from 64 to 1024 is needed", scan,
            {dtype = cute.f32, n = 8, one_pass = true, block = 32})
    refused("one_pass needs 32-bit sums, not f64", scan,
            {dtype = cute.f64, n = 8, one_pass = true})
    local k = scan {dtype = cute.f32, n = 64}
    refused("rows of 64 contiguous elements are needed", function()
      local x = cute.zeros({4, 32}, cute.f32)
      k.kernel(x, x):launch {grid = 4, block = k.block, device = "sim"}
    end)
  end)
end)

describe("topk", function()
  it("finds them in order, with their places #long", function()
    for i, k in ipairs {1, 8, 32, 33, 64} do
      check("topk", {k = k}, {{5, 100}, {2, 3000}},
            {({"bf16", "f32", "f16"})[i % 3 + 1]})
      check("topk", {k = k, fill = {-9, 9}, smallest = i % 2 == 0},
            {{3, 64}, {2, 1001}}, {({"f32", "f16", "bf16"})[i % 3 + 1]})
    end
    check("topk", {k = 10, warps = 4}, {{3, 900}, {5, 32}}, {"f32"})
    check("topk", {k = 40, warps = 2, smallest = true}, {{3, 900}}, {"bf16"})
    check("topk", {k = 5}, {{2, 20000}}, {"bf16"})
  end)

  it("puts NaN above inf, and -inf last #long", function()
    local function fill(b)
      for i = 0, #b - 1 do
        b[i] = i % 7 == 0 and -math.huge or i % 11 == 0 and math.huge or i % 5
      end
      b[10], b[17] = 0 / 0, 0 / 0
      return b
    end
    for _, smallest in ipairs {false, true} do
      for _, t in ipairs {"f32", "bf16"} do
        check("topk", {k = 20, fill = fill, smallest = smallest},
              {{2, 300}, {1, 20}}, {t})
      end
    end
  end)

  it("rejects unsupported options", function()
    local topk = require "kernels.topk"
    refused("k must be from 1 to 64 and at most n = 100, not 65", topk,
            {dtype = cute.f32, n = 100, k = 65})
    refused("k must be from 1 to 64 and at most n = 4, not 5", topk,
            {dtype = cute.f32, n = 4, k = 5})
    refused("the element type must be bf16, f16 or f32, not i32", topk,
            {dtype = cute.i32, n = 9, k = 5})
    refused("rows of 16-bit elements can have at most 65535 elements, not "
      .. "65536", topk,
            {dtype = cute.f16, n = 65536, k = 5})
  end)
end)

describe("histograms", function()
  it("count values, and classes of them", function()
    check("histogram", {bins = 100}, {{1}, {9999}, {40000}},
          {"u8", "i32", "f32"})
    check("histogram", {bins = 60, copies = 3, steps = 1, block = 64},
          {{5001}}, {"i32", "bf16"})
    check("histogram", {bins = 1000, fill = {-50, 1200}}, {{7000}}, {"i32"})
    check("histogram", {bins = 5, grid = 2, fill = {-100, 100},
      bin = function(x) return (x * x) % 7 - 1 end,
      plain = function(x) return (x * x) % 7 - 1 end}, {{7000}}, {"i32"})
  end)

  it("reject unsupported bins", function()
    local k = require "kernels.histogram" {dtype = cute.u8, n = 64, bins = 9}
    local x, h = cute.zeros({64}, cute.u8), cute.zeros({9}, cute.i32)
    refused("64 contiguous elements", function()
      k.kernel(cute.zeros({32}, cute.u8), h):launch {grid = 1, block = k.block}
    end)
    refused("9 contiguous elements", function()
      k.kernel(x, cute.zeros({8}, cute.i32)):launch {grid = 1, block = k.block}
    end)
  end)
end)

describe("the selective scan", function()
  it("is right with and without its parts #long", function()
    check("mamba", {softplus = true}, {{2, 33, 45}, {1, 5, 32}, {1, 1, 1}},
          {"f32", "bf16"})
    check("mamba", {without = {z = true, D = true, bias = true, h0 = true,
                               h1 = true}}, {{2, 33, 45}}, {"f32"})
    for _, lanes in ipairs {1, 2} do
      check("mamba", {softplus = true, lanes = lanes, channels = 64,
        without = {bias = true}}, {{1, 70, 64}}, {"f32", "bf16"})
    end
    check("mamba", {softplus = true, time = 64, channels = 16}, {{1, 20, 130}},
          {"bf16"})
  end)

  it("keeps the digits of small steps", function()
    local n, T = 8, 64  -- all n states are equal, so y = n * softplus(delta)
    local k = require "kernels.selective_scan" {dtype = cute.f32,
                                                states = n, softplus = true}
    local function ones(...) return cute.full({...}, 1, cute.f32) end
    local delta, y = ones(1, 1, T), cute.zeros({1, 1, T}, cute.f32)
    for t = 0, T - 1 do delta[{0, 0, t}] = 8 - t * 1.25 end
    -- With A = -1e38 the decay is 0, so earlier states have no effect.
    local A = cute.full({1, n}, -1e38, cute.f32)
    k.kernel(ones(1, 1, T), delta, A, ones(1, n, T), ones(1, n, T), y, nil, nil,
      nil, nil, nil):launch {grid = k.grid(1, 1), block = k.block,
                             device = "sim"}
    for t = 0, T - 1 do
      local x = delta(0, 0, t)
      -- softplus(x) is log(1 + e); this formula is accurate for small and large
      -- e.
      local e = math.exp(x)
      local want = e < 1e-5 and n * (e - e * e / 2) or n * math.log(1 + e)
      assert.is_true(math.abs(y(0, 0, t) - want) <= 2e-5 * want,
        ("%g: %g instead of %g"):format(x, y(0, 0, t), want))
    end
  end)

  it("continues from a saved state", function()
    local o = {softplus = true}
    local p = harness.problem(scans.mamba(o), {1, 8, 96}, {dtype = "f32"})
    assert.is_true((harness.try(p, "sim")))
    local k, t = p.made, p.tensors
    local y, h = cute.make_tensor(core.buffer("f32", 768), t.y.layout), nil
    for part = 0, 2 do
      local function cut(x)
        return cute.local_tile(x, {1, 8, 32}, {0, 0, part})
      end
      local function states(x)
        return cute.local_tile(x, {1, STATES, 32}, {0, 0, part})
      end
      local after = cute.make_tensor(core.buffer("f32", 8 * STATES),
                                     t.h0.layout)
      assert.is_true(k.kernel(cut(t.u), cut(t.delta), t.A, states(t.B),
        states(t.C), cut(y), cut(t.z), t.D, t.bias, h or t.h0, after):launch({
          grid = k.grid(1, 8), block = k.block, device = "sim"}).ok)
      h = after
    end
    for c = 0, 7 do
      for l = 0, 95 do assert.equal(t.y(0, c, l), y(0, c, l)) end
      for n = 0, STATES - 1 do assert.equal(t.h1(0, c, n), h(0, c, n)) end
    end
  end)

  it("rejects lanes that do not divide the states, and short tiles", function()
    local selective_scan = require "kernels.selective_scan"
    refused("the lanes must be 1, 2 or 4 and divide the 6 states; 4 do not",
            selective_scan, {dtype = cute.f32, states = 6})
    refused("tiles of 8 steps for 4 lanes; at least 16 steps are needed",
            selective_scan, {dtype = cute.f32, states = 8, time = 8})
  end)
end)

describe("scans and selections", function()
  for i, c in ipairs(LARGE) do
    it(("are accepted by NVRTC, %d: %s"):format(i, c[1]) .. support.long(i, 4),
       function()
      kernels.lesson_compiles(scans[c[1]](c[2]), c[3], c[4],
                              c[5] or {"sm_90a"})
    end)
  end

  it("are right on a GPU #gpu", function()
    for _, c in ipairs(LARGE) do check(c[1], c[2], {c[3]}, {c[4]}, "gpu") end
  end)
end)

describe("scans and selections report", function()
  local RACE = {race = true, ["block-race"] = true, uninitialised = true}
  local OUT = {["out-of-bounds"] = true, uninitialised = true}
  local FLIGHT = {["async-in-flight"] = true, uninitialised = true}
  local SYNC = "cute.arch.sync_threads()"

  -- Faults: title, file, text, which occurrence, its replacement, options,
  -- size, dtype.
  local CASES = {
    {"scan", "scan", SYNC, 1, "", {block = 64}, {2, 900}, "f32", RACE},
    {"scan", "scan", "1 - turn", 1, "turn", {block = 64, values = 4},
     {2, 5000}, "f32", RACE},
    {"scan", "scan", SYNC, 2, "", {one_pass = true, block = 64, values = 4},
     {1, 2000}, "f32", RACE},
    {"scan", "scan", SYNC, 3, "", {one_pass = true, block = 64, values = 4},
     {1, 2000}, "f32", RACE},
    {"scan", "scan", "part, held, pred and {pred = pred})", 1, "part, held)",
     {}, {3, 1000}, "f32", OUT},
    {"scan", "scan", "held, part, pred and {pred = pred})", 1, "held, part)",
     {}, {3, 1000}, "f32", OUT},
    {"topk", "topk", SYNC, 1, "", {k = 8, warps = 4}, {3, 900}, "f32", RACE},
    {"topk", "topk", "cute.arch.sync_warp()", 1, "", {k = 8}, {3, 3000},
     "f32", {["warp-race"] = true}},
    {"topk", "topk", "cute.min(at, self.n - self.width)", 1, "at", {k = 8},
     {3, 900}, "f32", OUT},
    {"topk", "topk", "cute.when(there & cute.eq(warp % self.warps, 0), "
     .. "function()", 1, "cute.when(true, function()", {k = 8}, {3, 900},
     "f32", OUT},
    {"histogram", "histogram", SYNC, 1, "", {bins = 100}, {9999}, "u8", RACE},
    {"histogram", "histogram", SYNC, 2, "", {bins = 100}, {9999}, "u8", RACE},
    {"histogram", "histogram", "cute.lt(at, vectors)", 1,
     "cute.le(at, vectors)", {bins = 100}, {9999}, "u8", OUT},
    {"mamba", "selective_scan", SYNC, 1, "", {}, {1, 33, 100}, "f32", RACE},
    {"mamba", "selective_scan", SYNC, 2, "", {}, {1, 33, 100}, "bf16", RACE},
    {"mamba", "selective_scan", "cute.arch.sync_warp()", 1, "", {},
     {1, 33, 100}, "f32", {["warp-race"] = true}},
    {"mamba", "selective_scan", "cute.arch.cp_async_wait_group(0)", 1, "", {},
     {1, 33, 100}, "f32", FLIGHT},
    {"mamba", "selective_scan", "src(_, _, _, k), to, pred)", 1,
     "src(_, _, _, k), to)", {}, {1, 33, 100}, "f32", OUT},
    {"mamba", "selective_scan", "{width, parts}), {pred = pred})", 1,
     "{width, parts}))", {}, {1, 33, 100}, "f32", OUT},
  }

  for i, c in ipairs(CASES) do
    local what, file, from, nth, to, o, size, dtype, kinds = table.unpack(c)
    it(("%s without %s, %d (%s)"):format(what, from, nth, words(o))
       .. support.long(i, 3), function()
      local text = support.change(support.read("kernels/" .. file .. ".lua"),
                                  from, nth, to)
      local maker = assert(load(text, "@" .. file .. ".lua"))()
      for seed = 0, 7 do
        local p = harness.problem(scans[what](o, maker), size,
                                  {dtype = dtype, seed = seed})
        local _, reports = harness.try(p, "sim:sm_80", {seed = seed})
        for _, r in ipairs(reports[1].reports) do
          if kinds[r.kind] then return end
        end
      end
      error "nothing was told"
    end)
  end
end)

describe("the lessons of scans and selections", function()
  it("verify, count and report #long", function()
    for _, name in ipairs {"scan", "selective_scan", "topk", "histogram"} do
      local out, err, code = support.run {"scripts/" .. name .. ".lua",
                                          "--device", "sim"}
      assert.equal(0, code, err)
      assert.truthy(out:find "nothing to report")
    end
  end)
end)
-- SPDX-License-Identifier: MIT
