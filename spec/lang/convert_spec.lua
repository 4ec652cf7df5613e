-- Tests that x:to(type) behaves as docs/kernels.md describes for each pair of
-- types, in the simulator and, if there is a C++ compiler, in emitted text.
-- Plain Lua computes the expected values.
local core = require "cute.core"
local cudahost = require "spec.cudahost"
local cute = require "cute"

local INTS = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"}
local NAN, INF = 0 / 0, math.huge
local FLOATS = {0.0, 2.5, -2.5, 0.99, -0.99, 127.9, -128.9, 200.75, -200.75,
  255.5, 256.0, 65535.75, -32769.0, 2147483520.0, 2147483648.0, -2147483648.0,
  4294967040.0, 4294967296.0, 1e10, -1e10, 1e30, -1e30, INF, -INF, NAN}

-- Returns the expected integer, as 64 bits, of a conversion of a float.
local function whole(x, from, to)
  local bits, unsigned = cute[to].bits, to:find "^u" ~= nil
  if x ~= x then
    if bits == 64 then return math.mininteger end
    if from ~= "f64" then return 0 end
    if bits == 32 then return unsigned and 1 << 31 or -1 << 31 end
    return unsigned and 0 or -1 << (bits - 1)
  end
  local lo = unsigned and 0.0 or -2.0 ^ (bits - 1)
  local hi = 2.0 ^ (unsigned and bits or bits - 1)
  if x <= lo then return unsigned and 0 or -1 << (bits - 1) end
  if x >= hi then
    return bits == 64 and (unsigned and -1 or math.maxinteger)
      or math.tointeger(hi) - 1
  end
  local t = x < 0 and math.ceil(x) or math.floor(x)
  return math.tointeger(t) or math.tointeger(t - 2.0 ^ 63) ~ math.mininteger
end

local function kernel(to)
  return cute.kernel("k", function(x, y)
    local i = cute.arch.thread_idx()
    y[i] = x[i]:to(cute[to])
  end)
end

-- Converts a list on the simulator and by the emitted text. Returns the
-- simulator's tensor and the emitted text's bytes.
local function converted(list, from, to)
  local x, y = cute.tensor(list, cute[from]), cute.zeros({#list}, cute[to])
  local k = kernel(to)
  k(x, y):launch {grid = 1, block = #list, device = "sim:sm_90a"}
  return y, {text = k(x, y):trace {block = #list}:cuda "sm_90a", grid = 1,
    block = #list, args = {core.param_memory(x):bytes(),
                           ("\0"):rep(#core.param_memory(y):bytes())}}
end

describe("x:to(type)", function()
  it("takes floats toward 0 to the nearest whole number that there is",
     function()
    local runs, bytes = {}, {}
    for _, from in ipairs {"f32", "f64", "f16", "bf16"} do
      for _, to in ipairs(INTS) do
        -- x(i) is FLOATS[i + 1], rounded to the type of the tensor x.
        local x = cute.tensor(FLOATS, cute[from])
        local y, run = converted(FLOATS, from, to)
        for i = 0, #FLOATS - 1 do
          assert.equal(whole(x(i), from, to), y(i),
                       ("%s from %s to %s"):format(x(i), from, to))
        end
        runs[#runs + 1] = run
        bytes[#bytes + 1] = core.param_memory(y):bytes()
      end
    end
    if not cudahost.compiler() then return end
    for k, got in ipairs(cudahost.run(runs)) do
      assert.equal(bytes[k], got[2], runs[k].text)
    end
  end)

  it("takes whole numbers by their lower bits", function()
    local list = {0, 1, -1, 127, 128, 255, 256, 300, -129, 70000, 1 << 31,
                  (1 << 40) + 5, math.mininteger}
    for _, to in ipairs(INTS) do
      local y = converted(list, "i64", to)
      local bits = cute[to].bits
      for i, x in ipairs(list) do
        local low = bits == 64 and x or x & (1 << bits) - 1
        if to:find "^i" and bits < 64 and low >> (bits - 1) == 1 then
          low = low - (1 << bits)
        end
        assert.equal(low, y(i - 1), ("%d to %s"):format(x, to))
      end
    end
  end)

  it("rounds to floats to nearest even; those of 8 bits end at the largest",
     function()
    local function all(list, from, to)
      local y, out = converted(list, from, to), {}
      for i = 0, #list - 1 do out[i + 1] = tostring(y(i)) end
      return table.concat(out, " ")
    end
    assert.equal("2048.0 2052.0 inf -inf inf",
                 all({2049, 2051, 65520, -1e9, INF}, "f32", "f16"))
    assert.equal("16777216.0 16777220.0",
                 all({16777217, 16777219}, "i32", "f32"))
    assert.equal("448.0 -448.0 448.0 16.0 20.0",
                 all({500, -1e9, INF, 17, 19}, "f32", "e4m3"))
    assert.equal("57344.0 57344.0", all({1e9, INF}, "f32", "e5m2"))
    for _, to in ipairs {"f16", "bf16", "e4m3", "e5m2", "f64"} do
      assert.truthy(all({NAN}, "f32", to):find "nan", to)
    end
  end)

  it("rounds to the nearest power of two in ue8m0, half way up", function()
    local list = {0.0, -0.0, -3.0, INF, NAN, 3.4e38, 2.0 ^ -128, 2.0 ^ -149}
    for e = -127, 127, 9 do
      for _, x in ipairs {1, 1.25, 1.5 - 2.0 ^ -20, 1.5, 1.75} do
        list[#list + 1] = x * 2.0 ^ e
      end
    end
    local y, run = converted(list, "f32", "ue8m0")
    for i, x in ipairs(list) do
      local best = 2.0 ^ -127
      for e = -126, 127 do
        local there = 2.0 ^ e
        if math.abs(x) - best >= there - math.abs(x) then best = there end
      end
      local got = y(i - 1)
      assert.is_true(x ~= x and got ~= got or got == best, x)
    end
    if not cudahost.compiler() then return end
    assert.equal(core.param_memory(y):bytes(), cudahost.run({run})[1][2])
  end)

  it("takes all but 0 as true", function()
    local y = converted({0.0, -0.0, 0.5, NAN, -INF}, "f32", "boolean")
    for i, want in ipairs {false, false, true, true, true} do
      assert.equal(want, y(i - 1))
    end
  end)
end)

describe("two types", function()
  it("have the wider one as common type, floats before integers", function()
    local got = {}
    cute.kernel("types", function(n)
      local function of(a, b)
        return (n:to(cute[a]) + n:to(cute[b])).dtype.name
      end
      for _, c in ipairs {{"i32", "f32"}, {"i64", "f16"}, {"f16", "f32"},
          {"f16", "bf16"}, {"i8", "i32"}, {"i32", "u32"}, {"u32", "i64"},
          {"f32", "f64"}, {"e4m3", "f16"}, {"boolean", "i8"}} do
        assert.equal(of(c[1], c[2]), of(c[2], c[1]))
        got[#got + 1] = of(c[1], c[2])
      end
    end)(3):trace {block = 1}
    assert.equal("f32 f16 f32 f32 i32 u32 i64 f64 f16 i8",
                 table.concat(got, " "))
  end)
end)
-- SPDX-License-Identifier: MIT
