--- ops.attention and ops.explain_attention. See kernels/attention_sm90.lua
-- (Hopper) and kernels/attention.lua (other devices, and operands that the
-- former does not take).
local core = require "cute.core"
local cute = require "cute"
local explained = require "cute.ops.attention.explained"
local general = require "kernels.attention"
local hopper = require "kernels.attention_sm90"
local modes = require "cute.ops.modes"
local problem = require "cute.ops.attention.problem"
local scores = require "cute.ops.attention.scores"
local tensor_op = require "cute.ops.tensor_op"

local forward = {}

-- Returns Hopper's kernel for a call, or nil and the reason why it is not
-- suitable. q: the problem.
local function hopper_kernel(call, device, q, o)
  if not core.has(device.sm, "wgmma") or device.arch ~= "sm_90a" then
    return nil, ("wgmma needs sm_90a, but the device is %s"):format(device.arch)
  elseif q.ragged then
    return nil, "it does not support sequences of different lengths"
  elseif q.D < 64 then
    return nil, ("it has no tile for heads of %d"):format(q.D)
  end
  local k = hopper {head = q.D, causal = o.causal, window = o.window,
                    dtype = q.dtype, rows = q.S, modify = o.modify}
  local ok, why = k.takes(call.Q, call.K, call.V, call.out[1])
  if not ok then return nil, why end
  return k
end

-- Returns the launch of Hopper's kernel k as a step of a plan
-- (cute.ops.tensor_op), and the number of counters that its blocks share.
local function hopper_step(k, device, q, scale)
  return {kernel = k.kernel, block = k.block, ready = {},
    grid = k.grid(q.S, q.H, q.B, device.info and device.info.sms),
    arguments = function(now, out, _, turns)
      local counter = turns and cute.make_tensor(turns.iterator,
                                                 cute.make_layout {1})
      local list = k.arguments(now.Q, now.K, now.V, out[1], out[2], scale,
                               k.share(now.Q, now.K, counter))
      return now.captured and scores.push_captured(now, list) or list
    end}, k.options.dynamic and 1 or nil
end

-- Returns the launch of kernel k, which runs on all devices, as a step of a
-- plan (cute.ops.tensor_op).
local function general_step(k, q, scale)
  return {kernel = k.kernel, grid = k.grid(q.S, q.H, q.B), block = k.block,
    ready = {}, arguments = function(now, out)
      local list = {now.Q, now.K, now.V, out[1], out[2], scale, now.cu_q,
                    now.cu_k, n = (now.cu_q or now.captured) and 8 or 6}
      return now.captured and scores.push_captured(now, list) or list
    end}
end

local refuse = tensor_op.failing "ops.attention"

local attend, planned = problem.operation("ops.attention", {
  names = {"Q", "K", "V"}, tensors = {"cu_q", "cu_k"},
  traced = function(o, list)
    return scores.traced_of(refuse, o, list[1], list[2])
  end,
  options = problem.OPTIONS, captured = problem.FUNCTIONS, plan = function(call)
    problem.check_sequences(call)
    local q = problem.of(call, "", "V")
    local scale, o = problem.options_of(call, q)
    if call:dtype("ops.attention", call.Q) ~= q.dtype then
      call:fail("O must have the type of Q, %s, not %s", q.dtype,
                call:dtype("ops.attention", call.Q))
    end
    local results = {{shape = modes.extents(call.Q.layout), dtype = q.dtype},
                     {shape = problem.rows_shape(q), dtype = cute.f32}}
    local p = call:start(5, results)
    if cute.product(results[1].shape) == 0 or q.B == 0 then return p end
    if q.T == 0 then
      p.anew, p.steps = true, problem.nothing(call, p, results)
      return p
    end
    scores.trace_functions(call, o, p)
    local k, refused = hopper_kernel(call, p.device, q, o)
    if k then
      p.steps[1], p.counts = hopper_step(k, p.device, q, scale)
    else
      k = general(o)
      p.steps[1] = general_step(k, q, scale)
    end
    p.chosen = {name = refused and "attention" or "attention_sm90",
                hopper = "attention_sm90",
                options = k.options or k, refused = refused, problem = q}
    return p
  end})

--- Returns O = softmax(scale Q K^T) V, and LSE, the logarithm of each row's sum
-- of exponentials; see docs/ops.md. A row that sees no key gives 0 and -inf.
---@param Q any (B,S,H,D), or (rows,H,D) with cu_q and cu_k
---@param K any (B,T,G,D)
---@param V any (B,T,G,D)
---@param o? table {causal: boolean?, window: any[]?, scale: number?,
-- cu_q: any?, cu_k: any?, score_mod: function?, mask_mod: function?, out: any}
-- score_mod(s, at) replaces the scaled score s. mask_mod(at) reports whether a
-- row sees a key: row at.q, key at.k, head at.h, sequence at.b.
function forward.attention(Q, K, V, o)
  return attend(Q, K, V, o)
end

--- Returns which kernel ops.attention would use: {kernel, tile, stages, refused
-- = {{kernel, reason}}, text, trace()}; tostring returns the text. Takes the
-- arguments of ops.attention, and launches nothing.
---@param Q any
---@param K any
---@param V any
---@param o? table
---@return table
function forward.explain_attention(Q, K, V, o)
  local plan, call = planned(Q, K, V, o)
  return explained.of(plan, call, "ops.explain_attention: O has no elements, "
    .. "or there are no keys: no kernel of attention is launched")
end

return forward
-- SPDX-License-Identifier: MIT
