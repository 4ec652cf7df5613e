--- Helpers for specs of attention. They make problems and compute the expected
-- results by the formulas of ops.reference, in plain Lua and double precision.
local core = require "cute.core"
local cute = require "cute"
local lists = require "cutelua.bench.attention_lists"
local oracle = require "cutelua.bench.oracle"
local support = require "spec.support"

local attention = {}

local text = {}

-- Loads kernels/`file`.lua with the nth `from` replaced by `to`. Returns the
-- compiled chunk.
local function changed_chunk(file, from, nth, to)
  local path = ("kernels/%s.lua"):format(file)
  text[path] = text[path] or support.read(path)
  return assert(load(support.change(text[path], from, nth, to or ""),
                     "@" .. path))
end

--- Returns the function that kernels/`user`.lua exports, after the nth `from`
-- in kernels/`file`.lua is replaced by `to`.
function attention.changed(user, file, from, nth, to)
  local name, kept = "kernels." .. file:gsub("/", "."), {}
  local function is_changed(module)
    return module == "kernels.flash" or module:find("kernels." .. user, 1, true)
  end
  for module, it in pairs(package.loaded) do
    if is_changed(module) then kept[module] = it end
  end
  for module in pairs(kept) do package.loaded[module] = nil end
  package.preload[name] = changed_chunk(file, from, nth, to)
  local ok, make = pcall(require, "kernels." .. user)
  package.preload[name] = nil
  for module in pairs(package.loaded) do
    if is_changed(module) then package.loaded[module] = kept[module] end
  end
  for module, it in pairs(kept) do package.loaded[module] = it end
  return assert(ok and make, make)
end

--- Returns the title of a test of a changed kernel. f has the file, the text to
-- replace, the number of its occurrence, and optionally its replacement.
function attention.title(f)
  return ("%s: %s (%d)%s"):format(f[1], f[2], f[3],
                                  f[4] and " is " .. f[4] or " left out")
end

-- Returns a tensor of normally distributed numbers, and a table of its elements
-- with indices from 0.
local function normal(shape, dtype, seed)
  local t = cute.zeros(shape, dtype)
  local b = core.param_memory(t):fill_normal(seed)
  return t, oracle.run(b, 0, #b)
end

--- Returns the tensors of a problem, and the elements of its inputs as lists.
-- The tensors are Q, O, dO, dQ (b,s,h,d); K, V, dK, dV (b,t,g,d); LSE and delta
-- (b,h,s).
---@param o {b: integer?, s: integer, t: integer?, h: integer?, g: integer?,
-- d: integer, dtype: any?, left: integer?, right: integer?, seed: integer?} Two
-- fields of the result may be set: `modify`, a function (score, batch, head,
-- row, key) that returns another score; and `sinks`, a list with a number x for
-- each head, where e^x is added to the sums of rows.
function attention.problem(o)
  local p = {b = o.b or 1, s = o.s, t = o.t or o.s, h = o.h or 1,
             g = o.g or o.h or 1, d = o.d, left = o.left, right = o.right,
             scale = 1 / math.sqrt(o.d), dtype = o.dtype or cute.bf16}
  local rows, keys = {p.b, p.s, p.h, p.d}, {p.b, p.t, p.g, p.d}
  local seed = o.seed or 1
  p.Q, p.q = normal(rows, p.dtype, seed)
  p.K, p.k = normal(keys, p.dtype, seed + 1)
  p.V, p.v = normal(keys, p.dtype, seed + 2)
  p.dO, p.go = normal(rows, p.dtype, seed + 3)
  p.dQ, p.dK = cute.full(rows, 0 / 0, p.dtype), cute.full(keys, 0 / 0, p.dtype)
  p.dV = cute.full(keys, 0 / 0, p.dtype)
  p.delta = cute.full({p.b, p.h, p.s}, 0 / 0, cute.f32)
  p.O = cute.full(rows, 0 / 0, p.dtype)
  p.LSE = cute.full({p.b, p.h, p.s}, 0 / 0, cute.f32)
  return p
end

attention.forward, attention.backward = lists.forward, lists.backward

--- Returns two measures of how a tensor differs from a list: the RMS of the
-- difference relative to the RMS of the list, and the largest difference of an
-- element. Infinities must be equal; a NaN makes both infinite.
function attention.distance(t, want)
  local values, abs = core.param_memory(t):list(), math.abs
  local off, all, most = 0.0, 0.0, 0.0
  for i = 0, #want do
    local got, x = values[i + 1], want[i]
    if got ~= x then
      local e = abs(got - x)
      if e ~= e or e == math.huge then return math.huge, math.huge end
      off = off + e * e
      if e > most then most = e end
    end
    if abs(x) < math.huge then all = all + x * x end
  end
  if off == 0 then return 0, 0 end
  return math.sqrt(off / all), most / math.sqrt(all / (#want + 1))
end

return attention
-- SPDX-License-Identifier: MIT
