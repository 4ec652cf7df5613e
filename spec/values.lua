-- Helpers for specs of single operations: they make inputs, launch kernels, and
-- apply a function to lists.
local assert = require "luassert"
local cute = require "cute"
local specs = require "spec.support"

local support = {}

-- Returns the next number of a 32-bit random generator, which is the same in
-- every run and independent of math.random.
local seed = 12345
function support.random()
  seed = seed * 6364136223846793005 + 1442695040888963407
  return seed >> 32
end

-- Returns m and e such that x = m * 2^e with 0.5 <= m < 1.
function support.frexp(x)
  if x == 0 then return 0.0, 0 end
  local e, m = 0, math.abs(x)
  while m >= 1 do m, e = m / 2, e + 1 end
  while m < 0.5 do m, e = m * 2, e - 1 end
  return m, e
end

local EDGES = {0, 1, 2, 3, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff,
               0xfffffffe, 0x00800000, 0x007fffff, 0xff800000, 0x12345678,
               0xaaaaaaaa, 0x00ff00ff, 0x0000ffff}

--- Launches f on the simulator and returns the report.
---@param f function
---@param tensors table[]
---@param opts? table launch options; by default one block of 32
function support.launch(f, tensors, opts)
  local all = {grid = 1, block = 32, device = "sim", faults = "return",
               output = false}
  for name, value in pairs(opts or {}) do all[name] = value end
  return specs.report(cute.kernel("k", f)(table.unpack(tensors)):launch(all))
end

--- Asserts that the report of a launch is empty.
function support.ok(report)
  assert.is_true(report.ok, tostring(report))
  return report
end

--- Returns the first fault that a launch reports.
function support.first_fault(report)
  assert.is_false(report.ok)
  return report.reports[1]
end

--- Returns n random integers around 0, as an i32 tensor and as a list from
-- index 0 on. The largest one is about mask / 2.
function support.random_words(n, mask)
  local t, list = cute.zeros({n}, "i32"), {}
  for i = 0, n - 1 do
    list[i] = (support.random() & mask) - mask // 2
    t[i] = list[i]
  end
  return t, list
end

--- The function of a kernel of one warp that uses inline PTX. Row t of `out`
-- gets four values: max(t, 5), t + 1, 2 t, and t in the first four lanes or 99
-- in the others.
function support.inline_ptx(out)
  local arch = cute.arch
  local t = arch.lane_idx()
  local a = arch.inline_ptx("max.s32 {$w0}, {$r0}, {$r1};", {
    write_only_types = {cute.i32}, read_only_args = {t, 5}})
  local b, c = arch.inline_ptx(
    "add.s32 {$w0}, {$rw0}, {$r0}; mul.lo.s32 {$rw0}, {$rw0}, 2;",
    {write_only_types = {cute.i32}, read_write_args = {t},
     read_only_args = {1}})
  arch.inline_ptx("bar.warp.sync 0xffffffff;")
  local d = arch.inline_ptx("mov.u32 {$rw0}, %laneid;",
    {read_write_args = {t * 0 + 99}, predicate = t:lt(4)})
  out[{t, 0}], out[{t, 1}], out[{t, 2}], out[{t, 3}] = a, b, c, d
end

--- Returns two lists with all pairs of edge values, followed by random pairs.
function support.pairs32()
  local x, y = {}, {}
  for _, a in ipairs(EDGES) do
    for _, b in ipairs(EDGES) do x[#x + 1], y[#y + 1] = a, b end
  end
  for i = #x + 1, 512 do x[i], y[i] = support.random(), support.random() end
  return x, y
end

function support.words64()
  local x = {0, 1, -1, math.mininteger, math.maxinteger, 1 << 32, 0xffffffff,
             (1 << 32) + 1}
  for i = 9, 64 do x[i] = support.random() << 32 | support.random() end
  return x
end

--- Runs f(values..., extra), which returns a list of results, in one thread per
-- element. Inputs are lists of type `from`; results are lists of type `to`. The
-- device is "sim" by default.
function support.map(inputs, f, from, to, extra, device)
  local n = #inputs[1]
  local blocks = (n + 31) // 32
  local tensors, columns = {}, nil
  for k, list in ipairs(inputs) do
    tensors[k] = cute.zeros({blocks * 32}, from)
    for i = 1, blocks * 32 do tensors[k][i - 1] = list[i] or list[n] end
  end
  local out = cute.zeros({blocks * 32, 64}, to)
  tensors[#tensors + 1] = out
  if extra then tensors[#tensors + 1] = extra end
  local kernel = cute.kernel("k", function(...)
    local t = {...}
    local rest = extra and table.remove(t)
    local o = table.remove(t)
    local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
    for k, x in ipairs(t) do t[k] = x[i] end
    if rest then t[#t + 1] = rest end
    local r = f(table.unpack(t))
    columns = #r
    for j, v in ipairs(r) do o[{i, j - 1}] = v end
  end)
  kernel(table.unpack(tensors)):launch {grid = blocks, block = 32,
                                        device = device or "sim"}
  local got = {}
  for j = 1, columns do
    got[j] = {}
    for i = 1, n do got[j][i] = out(i - 1, j - 1) end
  end
  return got
end

return support
-- SPDX-License-Identifier: MIT
