--- Checks the operands and options of ops.attention, its gradients and
-- decoding: layouts that the kernels accept, shapes, sequences, scale and
-- window.
--
-- Q and O are (B,S,H,D), K and V are (B,T,G,D). B is the number of sequences, S
-- of rows, T of keys, H of heads of Q, and G of heads of K and V; a head has D
-- elements. The last of the S rows is aligned with the last of the T keys.
local core = require "cute.core"
local cute = require "cute"
local elementwise = require "cute.ops.elementwise"
local modes = require "cute.ops.modes"
local rowwise = require "cute.ops.rowwise"

local problem = {}

local HEADS = {[32] = true, [64] = true, [96] = true, [128] = true,
               [192] = true, [256] = true}

--- Reports whether the kernels accept the layout of an operand: heads are
-- contiguous; the address and the strides of the other modes are multiples of
-- 16 bytes, even for modes of one element; no mode is nested.
function problem.fits(t)
  local l, rank, step = t.layout, cute.rank(t), 128 // t.element_type.bits
  if rank < 3 then return true end
  for i = 1, rank do
    if type(l.shape[i]) == "table" then return false end
    if i < rank and l.stride[i] % step ~= 0 then return false end
  end
  return l.stride[rank] == 1 and t.alignment % 16 == 0
end

-- Reports whether a result can be stored to this tensor: its elements must not
-- share addresses. LSE (f32) may have any other layout, because it is stored
-- element by element.
local function apart(t)
  if t.element_type ~= cute.f32 and not problem.fits(t) then return false end
  return rowwise.injective(t)
end

-- Checks the types and shapes of Q, K, V and of further operands with these
-- shapes. Returns the problem, a table {B = sequences, S = rows, T = keys, H =
-- heads of Q, G = heads of K, D = elements of a head, ...}. Does not check V if
-- its shape differs from K's. Sequences of different lengths (cu_q, cu_k) have
-- no mode B. With `paged`, K and V are pages of T keys, not batches. `narrow`
-- is another type that both K and V may have. With `eight`, Q may have elements
-- of e4m3.
function problem.of(call, like_q, like_k, paged, narrow, eight)
  local Q, K, ragged = call.Q, call.K, call.cu_q ~= nil
  local dtype, rank = Q.element_type, ragged and 3 or 4
  if dtype ~= cute.bf16 and dtype ~= cute.f16
    and not (eight and dtype == cute.e4m3) then
    call:fail("Q has elements of type %s; bf16%s f16%s is needed", dtype,
              eight and "," or " or", eight and " or e4m3" or "")
  end
  for _, name in ipairs {"Q", "K", "V"} do
    local t = call[name]
    if cute.rank(t) ~= rank then
      call:fail("%s is %s; modes %s are needed", name, t.layout, ragged
        and "(rows, heads, D)" or "(batches, rows, heads, D)")
    elseif t.element_type ~= dtype and not (narrow and name ~= "Q"
      and K.element_type == narrow and t.element_type == narrow) then
      call:fail("%s has elements of type %s, but Q has %s", name,
                t.element_type, dtype)
    end
  end
  for names, as in pairs {[like_q] = "Q", [like_k] = "K"} do
    for name in names:gmatch "%S+" do
      if call[name] then call:same(name, call[name], as, call[as]) end
    end
  end
  local q, k = modes.extents(Q.layout), modes.extents(K.layout)
  local p = {dtype = dtype, B = ragged and cute.size(call.cu_q) - 1 or q[1],
             S = q[rank - 2], T = k[rank - 2], H = q[rank - 1],
             G = k[rank - 1], D = q[rank], ragged = ragged}
  if k[rank] ~= p.D or not ragged and not paged and k[1] ~= p.B then
    call:fail("Q is %s and K is %s; equal %s are needed", Q.layout, K.layout,
              k[rank] ~= p.D and "head dimensions" or "batch sizes")
  elseif not HEADS[p.D] then
    call:fail("Q is %s: heads of %d elements; 32, 64, 96, 128, 192 or 256 are "
      .. "possible", Q.layout, p.D)
  elseif p.G < 1 and p.H > 0 or p.G > 0 and p.H % p.G ~= 0 then
    call:fail("Q has %d heads and K has %d; Q needs a multiple of K's heads",
              p.H, p.G)
  end
  return p
end

-- Checks cu_q and cu_k, the offsets at which the sequences of Q and K begin.
function problem.check_sequences(call)
  local a, b = call.cu_q, call.cu_k
  if (a == nil) ~= (b == nil) then
    call:fail "cu_q and cu_k must be given together"
  end
  for name, t in pairs {cu_q = a, cu_k = b} do
    if t.element_type ~= cute.i32 or cute.rank(t) ~= 1 or cute.size(t) < 1
      or cute.size(t) ~= cute.size(a) then
      call:fail("%s is %s of %s; B + 1 elements of i32 are needed", name,
                t.layout, t.element_type)
    end
  end
end

--- Checks the option `sinks`.
function problem.check_sinks(call, q)
  local t = call.sinks
  if t then call:floats("sinks", t) end
  if t and (cute.rank(t) ~= 1 or cute.size(t) ~= q.H) then
    call:fail("sinks is %s; a number for each of the %d heads of Q is needed",
              t.layout, q.H)
  end
end

--- Checks the offsets of sequences (cu_q, cu_k) if they are in the host's
-- memory. Offsets in the memory of a GPU are not checked; the kernels clamp
-- them to valid values.
function problem.check_offsets(call, q)
  for name, total in pairs {cu_q = q.S, cu_k = q.T} do
    local t = call[name]
    for i = 0, t and t.device == "host" and cute.size(t) - 1 or -1 do
      local x, least = t[i], i > 0 and t[i - 1] or 0
      if x < least or x > (i > 0 and total or 0) then
        call:fail("%s[%d] = %d; %s is needed", name, i, x, i == 0 and "0"
          or ("an offset from %d to the %d rows"):format(least, total))
      end
    end
  end
end

-- Returns the scale of the scores and the options of the kernels.
function problem.options_of(call, p)
  local o, window = call.o, call.o.window
  local scale = o.scale or 1 / math.sqrt(p.D)
  if scale <= 0 or scale ~= scale or scale == math.huge then
    call:fail("scale = %s; a finite number above 0 is needed", core.show(scale))
  elseif scale < 2.0 ^ -126 or scale > 2.0 ^ 127 then
    call:fail("scale = %s; the kernels multiply in f32 and need a number from "
      .. "2^-126 to 2^127", core.show(scale))
  end
  for key in next, window or {} do
    if key ~= 1 and key ~= 2 then
      call:fail("window has the key %s; a list of two numbers is needed, "
        .. "{left, right}", core.show(key))
    end
  end
  for i = 1, 2 do
    local w = window and window[i]
    if w and (math.type(w) ~= "integer" or w < 0) then
      call:fail("window = {%s, %s}; for each side the number of visible keys, "
        .. "0 or more, or false is needed", core.show(window[1]),
        core.show(window[2]))
    end
  end
  return scale + 0.0, {head = p.D, causal = o.causal, window = window}
end

-- Returns the extents of a tensor with one number for each query row, such as
-- LSE.
function problem.rows_shape(p)
  if p.ragged then return {p.H, p.S} end
  return {p.B, p.H, p.S}
end

-- The types of the options of ops.attention and its gradients. FUNCTIONS lists
-- the options that change or mask scores.
problem.OPTIONS = {causal = "boolean", window = "table", scale = "number"}
problem.FUNCTIONS = {score_mod = "function", mask_mod = "function",
                     softcap = "number", alibi_slopes = "tensor",
                     bias = "tensor"}
local LAYOUT = {fits = problem.fits, apart = apart, dependent = false,
                flat = "LSE cu_q cu_k lengths tree q_scale k_scale v_scale "
                  .. "blocks bits cos sin"}

-- Makes an operation on operands of attention: rowwise.operation with the
-- layouts that kernels of attention accept.
function problem.operation(what, spec)
  for k, v in pairs(LAYOUT) do spec[k] = v end
  return rowwise.operation(what, spec)
end

--- Adds steps (launches) to plan p that fill result i with a value. Makes the
-- result's tensor if the call provides none.
function problem.fill_result(call, p, i, value)
  local r = p.results[i]
  local t = call.out[i] or cute.empty(r.shape, r.dtype, {device = p.place})
  call.out[i], p.anew = t, true
  for _, s in ipairs(elementwise.filling(t, value, cute.f32, call.o)) do
    local arguments = s.arguments
    function s.arguments(now, out) return arguments(now, {out[i]}) end
    p.steps[#p.steps + 1] = s
  end
end

-- Adds steps (launches) to plan p that set O to 0 and LSE to -inf, the results
-- if there are no keys.
function problem.nothing(call, p)
  problem.fill_result(call, p, 1, 0.0)
  problem.fill_result(call, p, 2, -math.huge)
end

-- Returns a view with shape `shape` of `work`, the f32 memory that the launches
-- of a call share. The view begins at element `from`.
function problem.view(work, from, shape)
  return cute.make_tensor(work.iterator + from,
                          cute.make_layout(shape, cute.LayoutRight))
end

return problem
-- SPDX-License-Identifier: MIT
