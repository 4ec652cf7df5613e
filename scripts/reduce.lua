-- The sum of all elements, the same every time.
--
-- As many blocks as the GPU holds walk the tensor with 16-byte loads, several
-- on their way at once, and leave one number each. Which block is last, a
-- ticket says: an atomic that hands over with a release and takes with an
-- acquire, so that the last block sees all numbers. It adds them up in the
-- order of the blocks: no sum depends on who came first.
--   cutelua scripts/reduce.lua --help
local core = require "cute.core"
local cute = require "cute"
local reduce = require "kernels.reduce"

local function sum(p)
  return reduce.all {op = "sum", n = p.n, dtype = cute[p.dtype]}
end

require "cute.bench.harness".run(arg, {
  about = "The sum of all elements of a tensor.",
  dims = {{"n", "elements"}},
  dtypes = {"f32", "bf16", "f16"},
  sim = {{100000}}, gpu = {{1 << 30}},
  operands = function(p)
    return {{"x", {p.n}}, {"y", {1}, dtype = "f32", out = true},
            {"parts", {sum(p).grid}, dtype = "f32", scratch = true},
            {"tickets", {1}, dtype = "u32", scratch = true, fill = "zero"}}
  end,
  make = sum,
  -- Against the sum in double precision: of n normal numbers it is about
  -- sqrt(n), so that errors show as they are, not as parts of a large sum.
  tolerance = {f32 = 1e-3},
  reference = function(p)
    local ones = core.buffer(p.dtype, p.n):fill(1)
    return {y = {core.gemm_reference(p.x, ones, core.buffer("f64", 1), 1, 1,
                                     p.n)[0]}}
  end,
})
