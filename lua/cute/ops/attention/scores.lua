--- The functions that change or mask the scores of attention: score_mod,
-- mask_mod, softcap, alibi_slopes and bias, combined into one function that the
-- kernels trace.
local capture = require "cute.ops.capture"
local core = require "cute.core"
local cute = require "cute"
local kept = require "kernels.kept"
local modes = require "cute.ops.modes"
local numbers = require "cute.ops.numbers"
local score_gradients = require "kernels.score_gradients"

local scores = {}

-- A list of {option, the statement that this option adds}. The statements
-- change the scaled score s in this order. `shift` is T - S, the number of keys
-- before the key that belongs to row 0. `small` is 1 / softcap.
local CHANGES = {
  {"softcap", "s = capped(s, softcap, small, at)"},
  {"alibi_slopes", "s = s - alibi_slopes[at.h] "
    .. "* abs(at.q + shift - at.k):to(f32)"},
  {"bias", "s = s + bias[{at.b, at.h, at.q, at.k}]:to(f32)"},
  {"score_mod", "s = score_mod(s, at)"}}

local LOG2E = 1.4426950408889634

-- For |x| up to NEAR, tanh(x) is x P(x^2) with a relative error of at most
-- 3e-4. P0, P1 and P2 are the coefficients of P. The hardware's tanh.approx has
-- an error of 5e-4. The unit that computes tanh.approx also computes the
-- exponentials of the softmax. To relieve this unit, every second score uses
-- the polynomial.
local NEAR, P0, P1, P2 = 0.8, 0.9996967, -0.3245739, 0.0935748

-- Returns cap tanh(s / cap), multiplied by log2(e) if at.log2 is set. `inverse`
-- is 1 / cap. The score s is the product of at.raw and at.scale. For at.near
-- see flash.near; for at.i and at.j, flash.change.
local function capped(s, cap, inverse, at)
  local unit = at.log2 and LOG2E or 1.0
  if not at.near then return cap * unit * cute.tanh(s * inverse) end
  local ratio, factor = at.scale * inverse, at.scale * unit
  if (at.i + at.j) % 2 == 1 then
    return cute.tanh(at.raw * ratio) * (cap * unit)
  end
  local square, t = ratio * ratio, at.raw * at.raw
  at.near(t, ratio * (1 / NEAR))
  return at.raw * cute.fma(cute.fma(t, P2 * factor * (square * square),
                                    P1 * factor * square), t, P0 * factor)
end

-- Cached functions that make a score_mod, indexed by the names of the options
-- that the score_mod implements.
local makers = {}

-- Returns the score_mod that the options require, or nil.
local function score_of(o, bias, shift)
  local key, lines = {}, {}
  for _, c in ipairs(CHANGES) do
    if o[c[1]] ~= nil then key[#key + 1], lines[#lines + 1] = c[1], c[2] end
  end
  if #lines == 0 then return nil end
  if #lines == 1 and o.score_mod then return o.score_mod end
  key = table.concat(key, " ")
  makers[key] = makers[key] or capture.compile(("local softcap, alibi_slopes, "
    .. "bias, score_mod, shift, small, capped, abs, f32 = ... return "
    .. "function(s, at) %s return s end"):format(table.concat(lines, " ")),
    "scores")
  -- If `shift` is constant, ALiBi's distances have known ranges, so that the
  -- compiler can convert them to floats with an addition instead of a
  -- conversion instruction.
  return makers[key](o.softcap and o.softcap + 0.0, o.alibi_slopes, bias,
                     o.score_mod, shift and cute.constexpr(shift),
                     o.softcap and 1.0 / o.softcap, capped, cute.abs,
                     cute.f32)
end

-- Returns the bias as a view (B,H,S,T). Modes of extent 1 are broadcast.
local function bias_view(refuse, bias, shape)
  if bias == nil then return nil end
  local own = core.typename(bias) == "tensor" and modes.extents(bias.layout)
  local stride = {}
  for i, n in ipairs(shape) do
    if not own or #own ~= 4 or own[i] ~= n and own[i] ~= 1 then
      refuse("bias is %s; (%s), or 1 in place of any extent, is needed",
             own and tostring(bias.layout) or core.show(bias),
             table.concat(shape, ","))
    end
    stride[i] = own[i] == 1 and 0 or bias.stride[i]
  end
  return cute.make_tensor(bias.iterator, cute.make_layout(shape, stride))
end

-- Combines the options of an operation on the operands Q and K. Returns the
-- function that kernels trace, or nil if there is nothing to trace. That
-- function returns score_mod and mask_mod.
function scores.traced_of(refuse, o, Q, K)
  if o.score_mod == nil and o.mask_mod == nil and o.softcap == nil
    and o.alibi_slopes == nil and o.bias == nil then
    return nil
  end
  for _, name in ipairs {"score_mod", "mask_mod"} do
    if o[name] ~= nil and type(o[name]) ~= "function" then
      refuse("%s is %s; a function is needed", name, core.show(o[name]))
    end
  end
  local bias, shift
  local plain = o.alibi_slopes == nil and o.bias == nil
  if not plain and core.typename(Q) == "tensor" and core.typename(K) == "tensor"
    and cute.rank(Q) == 4 and cute.rank(K) == 4 then
    local q, k = modes.extents(Q.layout), modes.extents(K.layout)
    local slopes = o.alibi_slopes
    shift = k[2] - q[2]
    bias = bias_view(refuse, o.bias, {q[1], q[3], q[2], k[2]})
    if slopes ~= nil and (core.typename(slopes) ~= "tensor"
      or slopes.element_type ~= cute.f32 or cute.rank(slopes) ~= 1
      or cute.size(slopes) ~= q[3]) then
      refuse("alibi_slopes is %s; (%d) of f32 is needed",
             core.typename(slopes) == "tensor" and ("%s of %s"):format(
               slopes.layout, slopes.element_type) or core.show(slopes), q[3])
    end
  elseif not plain then
    refuse "alibi_slopes and bias need Q (B,S,H,D) and K (B,T,G,D)"
  end
  local cap = o.softcap
  if cap ~= nil and not (math.type(cap) and cap > 0 and cap < math.huge) then
    refuse("softcap = %s; a finite number above 0 is needed", core.show(cap))
  elseif cap and (cap < 2.0 ^ -126 or cap > 2.0 ^ 126) then
    refuse("softcap = %s; the kernels compute in f32 and need a number from "
      .. "2^-126 to 2^126", core.show(cap))
  end
  local score = score_of(o, bias, shift)
  if score or o.mask_mod then return capture.pair(score, o.mask_mod) end
end

--- Returns the tensors that a function captures.
function scores.captured_tensors(f)
  local list = {}
  for _, v in ipairs(capture.of(f).values) do
    if core.typename(v) == "tensor" then list[#list + 1] = v end
  end
  return list
end

-- Returns two functions. The first is the option `modify` of
-- kernels/attention.lua, which receives the captured values as arguments. The
-- second, take(captured), replaces score_mod and mask_mod by the functions of
-- another call, which have the same code. `near` and `log2` become the fourth
-- and fifth result of `modify`.
local function modifying(captured, near, log2)
  local f, bind
  local function take(new) f, bind = new:clone() end
  take(captured)
  return function(...)
    bind {...}
    local score, mask = f()
    return score, mask, bind, near, log2
  end, take
end

-- Appends the captured values of a call to a list of arguments, and returns
-- this list.
function scores.push_captured(call, list)
  local nth = 0
  for _, v in ipairs(call.captured.values) do
    if math.type(v) then nth = nth + 1 end
    numbers.pass(list, v, cute.f32, call.at, nth)
  end
  return list
end

--- Raises an error if a function has more parameters than arguments are passed.
-- (Python's FlexAttention passes the four indices one by one.)
---@param call table
---@param name string "score_mod"
---@param f function?
---@param gets string the parameters of `f`, separated by commas
function scores.check_parameters(call, name, f, gets)
  local of, n = f and debug.getinfo(f, "u"), select(2, gets:gsub("%a+", ""))
  if of and of.nparams > n then
    call:fail("%s has %d parameters, but is called with (%s): the indices are "
      .. "the fields at.b, at.h, at.q and at.k", name, of.nparams, gets)
  end
end

-- Raises an error unless score_mod returns a float and mask_mod a boolean. For
-- this check, traces the two functions in a separate kernel. `positions` are
-- positions of captured values. If they are given, returns the kinds of reads
-- by which score_mod accesses these values.
local function check_functions(call, modify, positions)
  scores.check_parameters(call, "score_mod", call.o.score_mod, "s, at")
  scores.check_parameters(call, "mask_mod", call.o.mask_mod, "at")
  local list, kinds = scores.push_captured(call, {n = 0}), {}
  local program = cute.kernel("score", function(...)
    local score, mask, done = modify(...)
    local r = cute.make_rmem_tensor({1}, cute.f32)
    local t = cute.arch.thread_idx()
    r:fill(1)
    local at = kept.at(t, t, t, t)
    local x = score and score(r[0], at)
    local seen = mask and mask(at)
    if positions then
      local tensors = {}
      for i, n in ipairs(positions) do tensors[i] = select(n, ...) end
      kinds = score and score_gradients.kinds(score, r[0], tensors) or {}
    end
    done()
    local is = core.typename(x)
    if score and math.type(x) == nil and not (is == "value"
      and x.dtype.is_float) then
      call:fail("score_mod returns %s; a float is needed", core.show(x))
    end
    if mask and type(seen) ~= "boolean" and not (core.typename(seen) == "value"
      and seen.dtype == cute.boolean) then
      call:fail("mask_mod returns %s; a boolean is needed", core.show(seen))
    end
    if mask then r[0] = cute.where(seen, 0.0, 1.0) end
  end)(table.unpack(list, 1, list.n)):trace {block = 32}
  call.captured:check_stores(program)
  return kinds
end

-- Sets the kernels' option `modify` from the functions of a call. Sets plan p's
-- check, which runs before a new launch. `positions` are positions of captured
-- values. If they are given, returns the kinds of reads by which score_mod
-- accesses these values.
function scores.trace_functions(call, o, p, positions)
  if not call.captured then return end
  local take
  local g = call.o
  o.modify, take = modifying(call.captured, g.softcap ~= nil, g.softcap ~= nil
    and g.alibi_slopes == nil and g.bias == nil and g.score_mod == nil)
  local kinds = check_functions(call, o.modify, positions)
  p.check = function(now) take(now.captured) end
  return kinds
end

return scores
-- SPDX-License-Identifier: MIT
