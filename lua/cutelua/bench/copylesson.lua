--- Lessons on copies: B equals A bit by bit, both row-major.
--
--     copylesson.run(arg, {kernel =, tile = {BM, BN}, block =, about =})
--
-- copylesson.run runs a kernel of (A, B) in cutelua.bench.harness. Further
-- fields of its options, with defaults in parentheses:
-- dtype: element type (cute.bf16).
-- args: the kernel's arguments, in the form of harness's `make` ({"A", "B"}).
-- cluster: extents of a cluster, in blocks.
-- grid: function(m, n) -> the grid (one block for each tile).
-- refuses: function(p) -> why the kernel cannot copy p, in one sentence.
-- instead: {name, case}: the case that runs if `refuses` returns a reason.
-- transpose: true if B (N,M) is A (M,N) transposed.
-- compare: {{name =, kernel =}, ...}: other kernels, run and timed for
--   comparison.
-- cases: {{dtype =, fields that replace the script's}, ...}, one case for each
--   element type.
-- rungs: {{name =, kernel =, tile =, block =, gain =}, ...}, instead of one
--   kernel: versions, each better than the version before; gain: what a version
--   gains over the version before, in words.
--
--     copylesson.lesson(spec)
--
-- copylesson.lesson returns the lesson that the harness runs.
local compare = require "cutelua.check.compare"
local core = require "cute.core"
local cute = require "cute"
local harness = require "cutelua.bench.harness"
local lib = require "cutelua.bench.lessonlib"
local sign = require "cute.lang.signature"

local copylesson = {}

-- Sizes of A: 64 MiB and 1 GiB of bf16.
local COPY_SIZES = {{4096, 8192}, {65536, 8192}}
local TRANSPOSE_SIZES = {{8192, 8192}}

-- Checks that B equals A bit by bit. A copy preserves all bits, also those of a
-- NaN.
local function verify(transpose)
  return function(p)
    local b = transpose and p.B:transpose(p.n, p.m) or p.B
    local ok, at = p.A:equal(b)
    if ok then return true, "all elements" end
    local i, j = at // p.n, at % p.n
    return false, "all elements", ("A(%d,%d) is %s, and B has %s there"):format(
      i, j, tostring(p.A[at]), tostring(b[at]))
  end
end

local function compared(transpose)
  return function(p)
    local c, cols = compare.begin("reference", "B", 0), transpose and p.m or p.n
    local function want(at)
      return p.A[transpose and at % cols * p.n + at // cols or at]
    end
    c.buffer = p.B
    for at = 0, #p.B - 1 do
      compare.note(c, at, function() return {at // cols, at % cols} end,
                   p.B[at], want(at), 1)
    end
    compare.describe(c, {#p.B // cols, cols}, function(at) return p.B[at] end,
                     want, 1)
    return {c}
  end
end

local function operands(transpose)
  return function(p)
    local file = p.opt.file
    return {
      {"A", {p.m, p.n}, buffer = file and lib.npy_buffer(file,
        core.find_dtype(p.dtype))},
      {"B", transpose and {p.n, p.m} or {p.m, p.n}, out = true}}
  end
end

-- Returns the launch of a kernel for problem p. The table `of` describes the
-- kernel; fields that it lacks are taken from the table `by`.
local function launch(of, by, p)
  local refuses = of.refuses or by.refuses
  local why = refuses and refuses(p)
  if why then
    local instead = of.instead or by.instead
    lib.say("%s copies instead: %s", instead[1], why)
    of, by = instead[2], instead[2]
  end
  return {kernel = of.kernel, block = of.block or by.block,
          args = of.args or by.args, cluster = of.cluster or by.cluster,
          grid = of.grid or by.grid or function(m, n)
            return lib.tiles(of.tile or by.tile, m, n)
          end}
end

-- Returns the script's case for an element type, or `spec` if no case has the
-- type. Fields that a case lacks are taken from `spec`.
local function case_of(spec, dtype)
  for _, case in ipairs(spec.cases or {}) do
    if tostring(case.dtype) == dtype then
      return setmetatable(case, {__index = spec})
    end
  end
  return spec
end

-- Converts the script's list `field`, such as "compare", to the form of
-- harness's `compare`. Kernels differ by element type: kernel i for a problem
-- is entry i of `field` in the case for the problem's type.
local function others(spec, field)
  local list = case_of(spec, spec.cases and tostring(spec.cases[1].dtype))
    [field]
  if not list then return nil end
  local out = {}
  for i, c in ipairs(list) do
    out[i] = {name = c.name, gain = c.gain, make = function(p)
      local case = case_of(spec, p.dtype)
      return launch(case[field][i], case, p)
    end}
  end
  return out
end

--- Returns the lesson of cutelua.bench.harness for a copy script.
---@param spec table see above
---@return table
function copylesson.lesson(spec)
  local dtypes = {}
  for i, case in ipairs(spec.cases or {{dtype = spec.dtype or cute.bf16}}) do
    dtypes[i] = tostring(case.dtype)
  end
  return {
    about = spec.about, from_file = not spec.rungs, dtypes = dtypes,
    every = true, dims = {{"m", "rows of A"}, {"n", "columns of A"}},
    sim = {{256, 256}}, gpu = spec.transpose and TRANSPOSE_SIZES or COPY_SIZES,
    operands = operands(spec.transpose), verify = verify(spec.transpose),
    compared = compared(spec.transpose),
    make = function(p)
      local case = case_of(spec, p.dtype)
      return launch(case, case, p)
    end,
    compare = others(spec, "compare"), rungs = others(spec, "rungs"),
  }
end

--- Runs a copy script with its command-line arguments. Exits with code 1 if the
-- result is wrong or the simulator reports a fault.
---@param words string[]
---@param spec table see above
function copylesson.run(words, spec)
  harness.run(words, copylesson.lesson(spec))
end

return sign.module("cutelua.bench.copylesson", copylesson)
-- SPDX-License-Identifier: MIT
