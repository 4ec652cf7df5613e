-- Tests the calls that matrix products make to cuBLAS and cublasLt. Fake
-- libraries (spec/gpu/fakeblas.c) print these calls and compute nothing.
local support = require "spec.support"

local cc = os.getenv "CC" or "cc"
local has_cc = support.read "spec/gpu/fakeblas.c" and
  select(3, support.exec {cc, "--version"}) == 0

local folder

local function build()
  folder = support.folder()
  for name, source in pairs {cuda = "fakecuda", cublas = "fakeblas",
                             cublasLt = "fakeblas"} do
    local _, err, code = support.exec {cc, "-shared", "-fPIC", "-Icore",
      "-o", ("%s/lib%s.so.%d"):format(folder, name, name == "cuda" and 1
      or 13), ("spec/gpu/%s.c"):format(source)}
    assert.equal(0, code, err)
  end
end

-- Returns the library calls that a product of (32,64) and (48,64) makes, as the
-- fake libraries print them. `fields` are options of the product.
local function asked(how, types, fields, algos)
  local a, b, d = types:match "(%w+) (%w+) (%w+)"
  local out, err = support.run_lua({"-e", ([[
    local gpu = require "cute.gpu"
    local core = require "cute.core"
    local dev = assert(gpu.open())
    local function one(x)
      local b = core.buffer("f32", 1)
      b[0] = x
      return assert(dev:buffer(b))
    end
    local t = {m = 32, n = 48, k = 64, A = dev:buffer("%s", 32 * 64),
               B = dev:buffer("%s", 48 * 64), D = dev:buffer("%s", 32 * 48),
               workspace = 4096, %s}
    local can, list, why = pcall(gpu.%s, t)
    if not can or not list then
      print((tostring(why or list):gsub("^.-:%%d+: ", "")))
    else
      local ok, why = pcall(function()
        return (type(list) == "table" and list[1] or list):launch()
      end)
      if not ok then print((why:gsub("^.-:%%d+: ", ""))) end
    end
  ]]):format(a, b, d, fields or "", how)}, {LD_LIBRARY_PATH = folder,
    CUTELUA_NO_CUDA = "0", FAKE_ALGOS = algos})
  return (out .. err):gsub("\n$", "")
end

describe("a product of cuBLAS", function()
  setup(build)
  teardown(function() support.remove(folder) end)

  if not has_cc then return pending "needs a C compiler" end

  it("of 8-bit floats is cublasLt's, with K contiguous", function()
    local product = "product sums 68 factors 0\n  attribute 3 = 1\n" ..
      "  attribute 4 = 0\n%s" ..
      "  type 28 64x48 leading 64\n  type 29 64x32 leading 64\n" ..
      "  type 14 48x32 leading 48\n"
    assert.equal((product:format "" ):rep(2) .. "multiplied",
      (asked("cublaslt", "e5m2 e4m3 bf16")))
    -- If D has contiguous columns, its transpose B A^T is computed, so the
    -- scale factors of A and B are exchanged.
    local more = "  attribute 17 = the float 8\n" ..
      "  attribute 18 = the float 0.5\n  attribute 25 = 1\n"
    assert.equal(product:format(more):rep(2) .. "multiplied",
      (asked("cublaslt", "e5m2 e4m3 bf16",
             "scale_A = one(0.5), scale_B = one(8), fast_accum = true")))
    assert.truthy(asked("cublaslt", "e4m3 e4m3 bf16",
      "scale_A = one(0.5), m_major = true"):find(
      "  attribute 17 = the float 0.5\n  type", 1, true))
  end)

  it("is found from types alone, without data", function()
    local function first(words)
      local out, err = support.run_lua({"-e", ([[
        local gpu = require "cute.gpu"
        local ok, t, why = pcall(gpu.cublaslt_first,
                                 {m = 32, n = 48, k = 64, %s})
        if not ok or not t then
          return print((tostring(why or t):gsub("^.-:%%d+: ", "")))
        end
        print(t.algorithm, t.tile, t.split, t.reduction, t.workspace)
      ]]):format(words)}, {LD_LIBRARY_PATH = folder, CUTELUA_NO_CUDA = "0"})
      return out:gsub("\n$", ""), err
    end
    local out, err = first "A = 'bf16', B = 'bf16', D = 'f32', layout = 'nt'"
    assert.equal("100\t101\t102\t103\t0", out)
    assert.equal("product sums 68 factors 0\n  attribute 3 = 0\n"
      .. "  attribute 4 = 1\n  type 14 48x64 leading 48\n"
      .. "  type 14 32x64 leading 32\n  type 0 48x32 leading 48\n", err)
    assert.truthy((first "A = 'bf16', B = 'bf16'"):find "element type")
  end)

  it("has the strides of its batch", function()
    local one = asked("cublas", "bf16 bf16 f32")
    -- If D has contiguous columns, its transpose B A^T is computed, so the
    -- batch strides of A and B are exchanged.
    assert.equal("2 times, 3072 0 1536 apart: " .. one, (asked("cublas",
      "bf16 bf16 f32", "batches = 2, step_A = 0, D = dev:buffer('f32', 3072), "
      .. "B = dev:buffer('bf16', 6144)")))
    local lt = asked("cublaslt", "bf16 bf16 f32", "batches = 2, step_A = 8, "
      .. "step_B = 0, step_D = 1536, D = dev:buffer('f32', 3072), "
      .. "A = dev:buffer('bf16', 2056)")
    for _, step in ipairs {0, 8, 1536} do
      assert.truthy(lt:find(("  layout's 5 = 2\n  layout's 6 = %d\n"):format(
        step), 1, true), lt)
    end
    assert.equal("gpu.cublas: A has no room for 2 matrices of 2048 elements, "
      .. "2048 elements apart [shape-mismatch]", (asked("cublas",
      "bf16 bf16 f32", "batches = 2")))
    assert.equal("gpu.cublas: step_B = -1: the distance between matrices must "
      .. "be 0 or more elements [bad-argument]",
      (asked("cublas", "bf16 bf16 f32", "batches = 2, "
      .. "step_A = 0, step_B = -1")))
    assert.equal("gpu.cublas: batches = 0: a positive integer is needed "
      .. "[bad-argument]", (asked("cublas", "bf16 bf16 f32", "batches = 0")))
  end)

  it("of integers sums in i32, exactly", function()
    assert.equal("gemm 10 48x32x64 types 3 3 10 leading 64 64 48 sums 72",
      (asked("cublas", "i8 i8 i32")))
    assert.truthy(asked("cublaslt", "i8 i8 i32"):find(
      "^product sums 72 factors 10\n"))
  end)
end)

describe("a product of cuBLAS", function()
  setup(build)
  teardown(function() support.remove(folder) end)

  it("that does not exist is reported by name", function()
    local no = " has no algorithm for %s (32,48) = %s (32,64) times %s " ..
      "(48,64) transposed, layout %s%s [driver-error]"
    local bytes = ": 8-bit types need layout tn and rows of a multiple of 16 "
      .. "bytes"
    local function says(library, d, a, b, layout, more)
      return library .. no:format(d, a, b, layout, more)
    end
    assert.equal(says("cublasGemmEx", "bf16", "e4m3", "e5m2", "tn",
      ": only cublasLt supports 8-bit floats"),
      (asked("cublas", "e4m3 e5m2 bf16")))
    assert.equal(says("cublasGemmEx", "i32", "i8", "i8", "tt", bytes),
      (asked("cublas", "i8 i8 i32", "layout = 'tt'")))
    local lt = asked("cublaslt", "bf16 bf16 f32", "layout = 'nt'", 0)
    assert.equal(says("cublasLt", "f32", "bf16", "bf16", "nt", ""),
      lt:match "cublasLt has[^\n]*")
    assert.truthy(asked("cublaslt", "e5m2 e5m2 bf16", nil, 0):find(
      says("cublasLt", "bf16", "e5m2", "e5m2", "tn", bytes), 1, true))
  end)

  it("takes one f32 factor for each operand of 8-bit floats only", function()
    assert.equal("gpu.cublaslt: scale_A is of f64, not of f32 " ..
      "[type-mismatch]", (asked("cublaslt", "e4m3 e4m3 bf16",
      "scale_A = dev:buffer('f64', 1)")))
    assert.equal("gpu.cublaslt: scale_B is valid only for an operand " ..
      "of 8-bit floats, not of bf16 [type-mismatch]",
      (asked("cublaslt", "bf16 bf16 bf16", "scale_B = one(2)")))
    assert.equal("gpu.cublaslt: fast_accum: fast accumulation needs 8-bit "
      .. "floats, not f16 [type-mismatch]", (asked("cublaslt",
      "f16 f16 f16", "fast_accum = true")))
    assert.equal("gpu.cublaslt: scale_A is a number, not a device buffer " ..
      "[bad-argument]",
      (asked("cublaslt", "e4m3 e4m3 bf16", "scale_A = 2")))
  end)

  it("adds the old D, and has cublasLt's epilogues", function()
    assert.equal(asked("cublas", "bf16 bf16 bf16") .. " and -0.5 D",
                 (asked("cublas", "bf16 bf16 bf16", "beta = -0.5")))
    assert.truthy(asked("cublas", "f64 f64 f64", "beta = 2"):find(
      " and 2 D", 1, true))
    assert.equal(asked("cublas", "bf16 bf16 bf16") .. " by 0.5 and 2 D",
                 (asked("cublas", "bf16 bf16 bf16", "alpha = 0.5, beta = 2")))
    local plain = asked("cublaslt", "bf16 bf16 bf16")
    local function with(lines)
      return (plain:gsub("(  attribute 4 = %d\n)", "%1" .. lines))
    end
    local bias = "(function() local b = core.buffer('bf16', 48) "
      .. "return assert(dev:buffer(b)) end)()"
    assert.equal(with "  attribute 7 = 32\n",
      (asked("cublaslt", "bf16 bf16 bf16", "epilogue = 'gelu'")))
    assert.equal(with "  attribute 7 = 6\n  attribute 8 = the float 0\n",
      (asked("cublaslt", "bf16 bf16 bf16", "epilogue = 'relu', bias = "
        .. bias)))
    assert.equal(with "  attribute 7 = 4\n  attribute 8 = the float 0\n",
      (asked("cublaslt", "bf16 bf16 bf16", "bias = " .. bias)))
    for _, case in ipairs {
      {"epilogue is 'tanh', not relu or gelu [bad-argument]",
       "epilogue = 'tanh'"},
      {"bias needs a D in which N is contiguous: remove m_major = true "
       .. "[type-mismatch]", "m_major = true, bias = " .. bias},
      {"bias must have D's type bf16, not f32 [type-mismatch]",
       "bias = dev:buffer('f32', 48)"},
      {"bias has 47 elements, 1 by 48 needed [shape-mismatch]",
       "bias = dev:buffer('bf16', 47)"}} do
      assert.equal("gpu.cublaslt: " .. case[1],
                   (asked("cublaslt", "bf16 bf16 bf16", case[2])))
    end
    assert.equal("gpu.cublas: beta needs a D of floats, not of i32 "
      .. "[type-mismatch]",
                 (asked("cublas", "i8 i8 i32", "beta = 1")))
    assert.equal("gpu.cublas: alpha needs a D of floats, not of i32 "
      .. "[type-mismatch]",
                 (asked("cublas", "i8 i8 i32", "alpha = 2")))
  end)
end)
-- SPDX-License-Identifier: MIT
