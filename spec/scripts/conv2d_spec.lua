-- Tests convolution on the simulator, against its definition. Cases: strides,
-- padding, dilation, partial and tiny tiles. The simulator must detect the
-- removal of any predicate, wait or barrier.
local core = require "cute.core"
local cute = require "cute"
local harness = require "cutelua.bench.harness"
local lessonlib = require "cutelua.bench.lessonlib"
local conv2d = require "kernels.conv2d"
local conv2d_sm90 = require "kernels.conv2d_sm90"
local kernels = require "spec.kernels"
local support = require "spec.support"
local read, change = support.read, support.change

local DEVICE = "sim:sm_90a"

-- Returns a row-major tensor of whole numbers from -2 to 2, and a list of its
-- elements.
local function numbers(dtype, seed, ...)
  local shape, n = {...}, 1
  for _, extent in ipairs(shape) do n = n * extent end
  local b = core.buffer(dtype, n):fill_int(seed, -2, 2)
  local list = {}
  for i = 0, n - 1 do list[i] = b[i] end
  return cute.make_tensor(b, cute.make_layout(shape, cute.LayoutRight)), list
end

local function pair(x) return type(x) == "table" and x or {x, x} end

-- Returns y at pixel (n, p, q) and filter k, by the definition.
local function defined(c, x, w, n, p, q, k)
  local stride, pad, step = pair(c.stride or 1), pair(c.padding or 0),
                            pair(c.dilation or 1)
  local sum = 0
  for r = 0, c.R - 1 do
    for s = 0, c.S - 1 do
      local i = p * stride[1] + r * step[1] - pad[1]
      local j = q * stride[2] + s * step[2] - pad[2]
      if i >= 0 and i < c.H and j >= 0 and j < c.W then
        local at = ((n * c.H + i) * c.W + j) * c.C
        local tap = ((k * c.R + r) * c.S + s) * c.C
        for ch = 0, c.C - 1 do sum = sum + x[at + ch] * w[tap + ch] end
      end
    end
  end
  return sum
end

-- Returns a case's tensors, its launch, and a function that checks y.
local function problem(c, make)
  local large = c.large and 2 or 1
  local o = {tile = c.large and {256, 128, 64} or {64, 64, 32},
             atoms = {2 * large, 2, 1}, permutation = {32 * large, 32, 16},
             stride = c.stride, padding = c.padding, dilation = c.dilation,
             rows = c.rows,
             mma = c.dtype == "f16" and "SM80_16x8x16_F32F16F16F32_TN" or nil}
  local dtype = c.dtype or "bf16"
  local X, x = numbers(dtype, 1, c.N, c.H, c.W, c.C)
  local W, w = numbers(dtype, 2, c.K, c.R, c.S, c.C)
  local conv = (make or conv2d)(o)
  local Y = cute.empty(conv.shape(X, W), c.rows and cute[dtype] or cute.f32)
  for name, t in pairs {x = X, w = W, y = Y} do
    if c.dynamic and c.dynamic:find(name) then
      t:mark_layout_dynamic {leading_dim = 3,
        divisibility = {1, 1, 1, t.shape[4] & -t.shape[4]},
        stride_divisibility = t.shape[4] & -t.shape[4]}
    end
  end
  local function launch(seed)
    return support.report(conv.kernel(X, W, Y):launch {grid = conv.grid(Y),
      block = conv.block, device = DEVICE, seed = seed, faults = "return"})
  end
  local function right()
    local s = Y.shape
    for i = 0, cute.size(Y) - 1 do
      local n, p, q, k = i % s[1], i // s[1] % s[2],
        i // (s[1] * s[2]) % s[3], i // (s[1] * s[2] * s[3])
      if defined(c, x, w, n, p, q, k) ~= Y(n, p, q, k) then return false end
    end
    return true
  end
  return launch, right, conv, {X, W, Y}
end

local CASES = {
  {N = 2, H = 7, W = 6, C = 32, K = 24, R = 3, S = 3, padding = 1},
  {N = 1, H = 9, W = 8, C = 16, K = 72, R = 3, S = 3, padding = 1, stride = 2,
   rows = true},
  {N = 2, H = 6, W = 7, C = 8, K = 16, R = 2, S = 3},
  {N = 1, H = 9, W = 11, C = 8, K = 5, R = 3, S = 2, padding = {2, 1},
   stride = {1, 2}, dilation = {2, 3}},
  {N = 1, H = 5, W = 4, C = 5, K = 9, R = 3, S = 3, padding = 2},
  {N = 3, H = 4, W = 5, C = 64, K = 64, R = 1, S = 1, rows = true,
   dtype = "f16"},
  {N = 2, H = 3, W = 3, C = 2, K = 3, R = 5, S = 5, padding = 2},
  {N = 1, H = 6, W = 5, C = 8, K = 8, R = 6, S = 7, padding = 3},
  {N = 1, H = 1, W = 1, C = 1, K = 1, R = 1, S = 1},
  {N = 1, H = 1, W = 1, C = 3, K = 2, R = 3, S = 3, padding = 1},
  -- In these cases, the channels fill several tiles, or the rows cannot be
  -- coalesced into one mode.
  {N = 2, H = 9, W = 7, C = 96, K = 40, R = 3, S = 2, padding = 1,
   stride = {2, 1}},
  {N = 1, H = 6, W = 5, C = 64, K = 16, R = 2, S = 2, padding = 1,
   dilation = 2, dtype = "f16", rows = true},
  {N = 1, H = 18, W = 15, C = 64, K = 24, R = 2, S = 3, padding = 1,
   rows = true, large = true},
  -- The filter has 33 positions, more than the bits of a 32-bit word.
  {N = 1, H = 3, W = 35, C = 2, K = 3, R = 1, S = 33, padding = {0, 16}},
  {N = 2, H = 6, W = 5, C = 16, K = 24, R = 3, S = 3, padding = 1,
   dynamic = "xwy"},
  {N = 2, H = 6, W = 5, C = 64, K = 24, R = 3, S = 3, padding = 1,
   dynamic = "xy"},
}

describe("conv2d", function()
  for i, c in ipairs(CASES) do
    local what = ("%dx%dx%dx%d with %dx%dx%d%s%s"):format(c.N, c.H, c.W, c.C,
      c.K, c.R, c.S, c.stride and ", strided" or "",
      c.dynamic and ", extents of " .. c.dynamic .. " as arguments" or "")
    it("is right: " .. what .. support.long(i, 4), function()
      local launch, right = problem(c)
      local r = launch(7)
      assert.is_true(r.ok, tostring(r))
      assert.is_true(right())
    end)
  end

  it("takes an epilogue", function()
    local x, xs = numbers("bf16", 1, 1, 5, 6, 8)
    local w, ws = numbers("bf16", 2, 16, 3, 3, 8)
    local bias = numbers("f32", 3, 16)
    local conv = conv2d {padding = 1, tile = {64, 64, 32},
      epilogue = function(acc, part, b)
        return cute.max(acc + part.load(b), 0)
      end}
    local y = cute.empty(conv.shape(x, w), cute.f32)
    conv.kernel(x, w, y, bias):launch {grid = conv.grid(y),
      block = conv.block, device = DEVICE}
    local c = {H = 5, W = 6, C = 8, R = 3, S = 3, padding = 1}
    for p = 0, 4 do
      for q = 0, 5 do
        for k = 0, 15 do
          assert.equal(math.max(defined(c, xs, ws, 0, p, q, k) + bias(k), 0),
                       y(0, p, q, k))
        end
      end
    end
  end)

  -- Runs a lesson at one size; the default is its first size for the simulator.
  local function lesson(size, o, device, name)
    local spec = lessonlib.script_spec(("scripts/%s.lua"):format(
      name or "conv2d"), "cutelua.bench.harness", "run")
    local p = harness.problem(spec, size or spec.sim[1], o)
    local ok, reports, wrong = harness.try(p, device)
    assert.is_true(ok, wrong or tostring(reports[1]))
  end

  it("is a lesson #long", function()
    lesson(nil, nil, DEVICE)
    lesson({2, 7, 5, 24, 20}, {dtype = "f16", opt = {taps = 2, stride = 2,
                                                    padding = 1}}, DEVICE)
  end)

  it("is right on a GPU #gpu", function()
    for _, size in ipairs {{1, 8, 9, 64, 136}, {3, 17, 31, 128, 128},
                           {2, 7, 5, 24, 20}, {1, 1, 1, 1, 1},
                           -- only the last size is large enough for large tiles
                           {32, 56, 56, 64, 128}} do
      for _, opt in ipairs {{}, {taps = 1}, {taps = 5, stride = 2},
                            {dilation = 2, padding = 2}} do
        lesson(size, {opt = opt}, "gpu")
      end
    end
  end)

  it("is a lesson on wgmma #long", function()
    for _, opt in ipairs {{taps = 1}, {taps = 5, stride = 2},
                          {dilation = 2, padding = 2}} do
      lesson({2, 7, 9, 64, 24}, {opt = opt}, DEVICE, "conv2d_hopper")
    end
  end)

  it("is right on wgmma on a GPU #gpu", function()
    for _, size in ipairs {{1, 8, 9, 64, 136}, {3, 17, 31, 128, 128},
                           {32, 56, 56, 64, 128}, {2, 14, 14, 512, 512}} do
      for _, opt in ipairs {{}, {taps = 1}, {taps = 5, stride = 2},
                            {dilation = 2, padding = 2}} do
        for _, dtype in ipairs {"bf16", "f16"} do
          lesson(size, {opt = opt, dtype = dtype}, "gpu", "conv2d_hopper")
        end
      end
    end
  end)

  local function traced(taps, padding, stride)
    local conv = conv2d {padding = padding, stride = stride, rows = true}
    local x = cute.empty({4, 56, 56, 256}, cute.bf16)
    local w = cute.empty({128, taps, taps, 256}, cute.bf16)
    local y = cute.empty(conv.shape(x, w), cute.bf16)
    local p = conv.kernel(x, w, y):trace {block = conv.block, arch = "sm_90a"}
    return p, p.source:match "for %(int k_tile.*"
  end

  it("copies 16 bytes at a time, and divides outside of its loop", function()
    local p, loop = traced(3, 1)
    local _, divisions = loop:gsub(" [/%%] ", "")
    assert.equal(1, divisions)  -- computes the stage
    -- the loop does not compare with 56, the extent of the image
    assert.is_nil(loop:find(" 56u", 1, true))
    local made = kernels.compiled(p, "sm_90a")
    if made then assert.equal(0, made.resources.spill_stores) end
  end)

  it("keeps repeated reads of its taps in L1", function()
    local function copies(...)
      local _, loop = traced(...)
      local _, kept = loop:gsub("cp_async_ca16", "")
      local _, past = loop:gsub("cp_async_cg16", "")
      return {kept, past}
    end
    assert.same({8, 8}, copies(3, 1, 1))
    assert.same({0, 16}, copies(3, 1, 2))
    assert.same({0, 16}, copies(1, 0, 1))
  end)
end)

-- Makes kernels.conv2d_sm90 with the options of a case.
local function on_wgmma(c)
  return conv2d_sm90 {tile = c.tile or {128, 32, 64}, stages = 3,
    consumers = c.consumers, cluster = c.cluster, split = c.split,
    schedule = c.schedule, dtype = cute[c.dtype or "bf16"],
    stride = c.stride, padding = c.padding, dilation = c.dilation}
end

local HOPPER = {
  {N = 2, H = 7, W = 6, C = 64, K = 24, R = 3, S = 3, padding = 1},
  {N = 1, H = 9, W = 8, C = 64, K = 40, R = 3, S = 3, padding = 1, stride = 2,
   dtype = "f16"},
  {N = 3, H = 6, W = 7, C = 128, K = 16, R = 2, S = 3, cluster = {2, 1}},
  {N = 2, H = 11, W = 9, C = 64, K = 64, R = 3, S = 2, padding = {2, 1},
   stride = {1, 2}, dilation = {2, 3}, cluster = {1, 2}},
  {N = 2, H = 12, W = 13, C = 128, K = 8, R = 1, S = 1,
   tile = {64, 16, 64}, consumers = 1},
  {N = 2, H = 13, W = 12, C = 64, K = 48, R = 3, S = 3, padding = 1,
   tile = {64, 32, 64}, schedule = "pingpong"},
  {N = 1, H = 5, W = 5, C = 64, K = 16, R = 5, S = 5, padding = 2, split = 2},
}

describe("conv2d_sm90", function()
  for i, c in ipairs(HOPPER) do
    it(("is right: %dx%dx%dx%d with %dx%dx%d, case %d%s"):format(c.N, c.H, c.W,
       c.C, c.K, c.R, c.S, i, support.long(i, 4)), function()
      local X, x = numbers(c.dtype or "bf16", 1, c.N, c.H, c.W, c.C)
      local W, w = numbers(c.dtype or "bf16", 2, c.K, c.R, c.S, c.C)
      -- Most weights become 0, so that sums stay exact in bf16 and f16.
      for at = 0, c.K * c.R * c.S * c.C - 1 do
        w[at] = at % 5 == 0 and w[at] or 0
        W[{at // (c.R * c.S * c.C), at // (c.S * c.C) % c.R, at // c.C % c.S,
           at % c.C}] = w[at]
      end
      local conv = on_wgmma(c)
      local Y = cute.full(conv.shape(X, W), -1, cute[c.dtype or "bf16"])
      local r = support.report(conv.prepare(X, W, Y, {device = DEVICE, sms = 2,
        strict = true}):launch {faults = "return", seed = 3})
      assert.is_true(r.ok, tostring(r))
      local exact = c.dtype == "f16" and 2048 or 256
      local s, most = Y.shape, 0
      for at = 0, cute.size(Y) - 1 do
        local n, p, q, k = at % s[1], at // s[1] % s[2],
          at // (s[1] * s[2]) % s[3], at // (s[1] * s[2] * s[3])
        local want = defined(c, x, w, n, p, q, k)
        assert.is_true(math.abs(want) <= exact)
        assert.equal(want, Y(n, p, q, k))
        most = math.max(most, math.abs(want))
      end
      assert.is_true(most > 4)
    end)
  end

  it("is right in all schedules", function()
    local c = {N = 1, H = 5, W = 5, C = 64, K = 8, R = 2, S = 1, padding = 1,
               tile = {64, 8, 64}, consumers = 1}
    local X, W = numbers("bf16", 1, c.N, c.H, c.W, c.C),
                 numbers("bf16", 2, c.K, c.R, c.S, c.C)
    local conv = on_wgmma(c)
    local Y = cute.zeros(conv.shape(X, W), cute.bf16)
    local list = conv.arguments(X, W, Y)
    local v = conv.kernel(table.unpack(list, 1, list.n)):check {
      grid = conv.grid(Y, 1), block = conv.block, gpu = false}
    assert.equal("ok", v.verdict, tostring(v))
  end)

  it("says which operands it cannot take", function()
    local function why(o, x, w)
      local X, W = cute.zeros(x, cute.bf16), cute.zeros(w, cute.bf16)
      local conv = conv2d_sm90(o)
      local Y = cute.zeros(conv.shape(X, W), cute.bf16)
      local takes, reason = conv.takes(X, W, Y)
      assert.is_false(takes)
      local ok, message = pcall(conv.prepare, X, W, Y, {device = DEVICE})
      assert.is_false(ok)
      assert.truthy(message:find(reason .. " (conv2d accepts", 1, true),
                    message)
      return reason
    end
    assert.equal("x has 5 channels; a multiple of 64 is needed",
                 why({}, {1, 4, 4, 5}, {8, 3, 3, 5}))
    assert.equal("y has 6 channels; a multiple of 8 is needed",
                 why({}, {1, 4, 4, 64}, {6, 3, 3, 64}))
    assert.equal("stride = 9; TMA needs 8 or less",
                 why({stride = 9}, {1, 20, 20, 64}, {8, 3, 3, 64}))
    assert.equal("padding = 129 with a filter that reaches 2 pixels further; "
      .. "TMA needs at most 128 and 255, and a difference of at most 127",
      why({padding = 129}, {1, 4, 4, 64}, {8, 3, 3, 64}))
    assert.has_error(function() conv2d_sm90 {tile = {128, 64, 128}} end)
  end)

  it("takes the options that the rule prefers", function()
    for _, c in ipairs {{32, 56, 128, 128, 3}, {32, 14, 512, 512, 3},
                        {128, 56, 64, 64, 1}} do
      local m, k = c[1] * c[2] * c[2], c[3] * c[5] * c[5]
      local o = conv2d_sm90.choose(m, c[4], k, {padding = c[5] // 2})
      local conv = conv2d_sm90(o)
      assert.equal(64, conv.options.tile[3])
      assert.truthy(conv.options.tile[2] <= 2 * c[4])
    end
  end)
end)

describe("conv2d's faults are reported:", function()
  local SYNC, WAIT = "cute.arch.sync_threads()",
                     "cute.arch.cp_async_wait_group(stages - 2)"
  local COMMIT = "cute.arch.cp_async_commit_group()"
  local function loaded(path, f)
    return assert(load(change(read(path), f[1], f[2], f[3] or ""),
                       "@" .. path))()
  end
  -- Returns conv2d after a change of its text, or of gemm_sm80's text.
  local function changed(path, f)
    if path == "kernels/conv2d.lua" then return loaded(path, f) end
    local kept = package.loaded["kernels.gemm_sm80"]
    package.loaded["kernels.gemm_sm80"] = loaded(path, f)
    local conv = loaded("kernels/conv2d.lua", {"", 1})
    package.loaded["kernels.gemm_sm80"] = kept
    return conv
  end
  -- The main loop has 4 tiles along K. The last tile's stage is the shared
  -- memory through which C is stored.
  local CASE = {N = 2, H = 7, W = 7, C = 32, K = 72, R = 2, S = 2, padding = 1,
                rows = true}
  for path, faults in pairs {
    ["kernels/gemm_sm80.lua"] = {
      {WAIT, 1}, {WAIT, 2}, {SYNC, 1}, {SYNC, 2}, {SYNC, 3}, {SYNC, 4},
      {COMMIT, 1}, {COMMIT, 2}, {"C.acc:fill(0)", 2}},
    ["kernels/conv2d.lua"] = {
      {"padded and valid_of(o, x, w, y) or nil", 1, "nil"},
      {"word.down(r) & ", 1}, {" & word.across(s)", 1},
      {"bits(t) << t * #at", 1, "bits(t)"}}} do
    for _, f in ipairs(faults) do
      it(("%s (%d) %s"):format(f[1], f[2], f[3] and "changed" or "left out"),
        function()
          local launch = problem(CASE, changed(path, f))
          for seed = 1, 2 do
            local r = launch(seed)
            assert.is_false(r.ok)
            assert.is_true(#r.reports > 0)
          end
        end)
    end
  end
end)
-- SPDX-License-Identifier: MIT
