--- ops.attention_backward: dQ, dK and dV. See kernels/attention_bwd_sm90.lua
-- (Hopper) and kernels/attention_bwd.lua (other devices, and operands that the
-- kernels for Hopper do not accept).
local block_mask = require "cute.ops.attention.block_mask"
local core = require "cute.core"
local captured = require "cute.ops.attention.captured"
local cute = require "cute"
local explained = require "cute.ops.attention.explained"
local gradients = require "kernels.attention_bwd"
local hopper = require "kernels.attention_bwd_sm90"
local modes = require "cute.ops.modes"
local operand = require "cute.ops.operand"
local problem = require "cute.ops.attention.problem"
local scores = require "cute.ops.attention.scores"
local tensor_op = require "cute.ops.tensor_op"
local tiles = require "kernels.attention_bwd_sm90.options"

local backward = {}

local refuse = tensor_op.failing "ops.attention_backward"

-- Returns the kernels for Hopper, or nil and the reason why they do not fit.
-- `q` is the problem (problem.of). `extra` is the result of captured.gradients,
-- or nil.
local function hopper_kernels(call, device, q, o, extra)
  if extra then
    return nil, "it does not compute gradients of captured tensors"
  elseif not core.has(device.sm, "wgmma") or device.arch ~= "sm_90a" then
    return nil, ("wgmma needs sm_90a, but the device is %s"):format(device.arch)
  elseif not tiles.has(q.D) then
    return nil, ("it has no tile for heads of %d"):format(q.D)
  end
  -- Sequences of different lengths count as if their lengths were equal.
  local n = q.ragged and math.max(q.B, 1) or 1
  local k = hopper {head = q.D, causal = o.causal, window = o.window,
                    dtype = q.dtype, deterministic = call.o.deterministic,
                    ragged = q.ragged or nil, modify = o.modify,
                    list = o.list and true,
                    rows = (q.S + n - 1) // n, keys = (q.T + n - 1) // n,
                    heads = q.G * q.B, group = q.H // q.G,
                    sms = device.info and device.info.sms or 132}
  local ok, why = k.takes(call.Q, call.K, call.V, call.dO, call.out[2],
                          call.out[3])
  if not ok then return nil, why end
  return k
end

-- Sets the steps (launches) of plan p to the kernels k for Hopper. Returns a
-- function of `work`, the memory that the launches share. The function returns
-- the tensor in `work` with each row's sum of O dO. For concatenated sequences,
-- also returns the number of rows of a tile (padding in
-- kernels/attention_bwd_sm90/sequences.lua).
local function hopper_steps(call, p, k, q, scale)
  local sizes, place = k.sizes(q.S, q.T, q.H, q.G, q.B), {}
  p.floats = 0
  for _, name in ipairs {"sums", "parts", "logs", "delta", "turns"} do
    place[name], p.floats = p.floats, p.floats + sizes[name]
  end
  local more = call.blocks and block_mask.by_keys(call, p, q, k.options.tile)
  p.main = #p.steps + 2
  for i, s in ipairs(k.launches(q.S, q.T, q.H, q.G, q.B)) do
    p.steps[#p.steps + 1] = {kernel = s.kernel, grid = s.grid,
      block = s.block, ready = {}, arguments = function(now, out, work)
        problem.check_offsets(now, q)
        local memory = {}
        for name, from in pairs(place) do
          memory[name] = problem.view(work, from, {sizes[name]})
        end
        memory.turns = cute.recast_tensor(memory.turns, cute.i32)
        local list = k.arguments(i, {Q = now.Q, K = now.K, V = now.V,
          O = now.O, dO = now.dO, dQ = out[1], dK = out[2], dV = out[3],
          LSE = problem.view(now.LSE, 0, problem.rows_shape(q))}, scale, memory,
          more and more(now, work) or now)
        return i == 2 and now.captured and scores.push_captured(now, list)
          or list
      end}
  end
  return function(work)
    return k.delta(problem.view(work, place.delta, {sizes.delta}), q.S, q.H,
                   q.B)
  end, q.ragged and k.options.tile[1] or nil
end

-- Sets the steps (launches) of plan p to the kernels for all devices. `extra`
-- is the result of captured.gradients, or nil. Returns a function of `work`,
-- the memory that the launches share. The function returns the tensor in `work`
-- with each row's sum of O dO.
local function general_steps(call, p, q, scale, o, extra)
  local rows = problem.rows_shape(q)
  local function delta(work) return problem.view(work, 0, rows) end
  p.floats = cute.product(rows)
  o.gradients = extra and extra.options
  local list = gradients(o)
  if extra then extra:begin(p, list.tile[1]) end
  local lists = call.blocks and block_mask.by_keys(call, p, q, list.turned)
  for _, k in ipairs(list) do
    p.steps[#p.steps + 1] = {kernel = k.kernel, block = k.block, ready = {},
      grid = k.grid(q.S, q.T, q.H, q.G, q.ragged and q.B + 1 or q.B),
      arguments = function(now, out, work)
        problem.check_offsets(now, q)
        local more = lists and lists(now, work)
        if extra then more = extra:memory(work, more) end
        local a = {now.Q, now.K, now.V, now.O, now.dO,
          problem.view(now.LSE, 0, rows), delta(work), out[1], out[2], out[3],
          scale, now.cu_q, now.cu_k, more, n = 14}
        return now.captured and scores.push_captured(now, a) or a
      end}
  end
  if extra then extra:finish(p, call) end
  return delta
end

-- The types of the options of ops.attention_backward. `deterministic` selects a
-- fixed order of sums. `gradients` is the text of captured.positions. `listed`
-- has the extents of a block of the mask.
local OPTIONS = {deterministic = "boolean", gradients = "string",
                 listed = "table"}
for name, kind in pairs(problem.OPTIONS) do OPTIONS[name] = kind end

local back, planned = problem.operation("ops.attention_backward", {
  names = {"dO", "Q", "K", "V", "O", "LSE"},
  tensors = {"cu_q", "cu_k", "blocks", "sinks"},
  traced = function(o, list)
    return scores.traced_of(refuse, o, list[2], list[3])
  end,
  options = OPTIONS, captured = problem.FUNCTIONS, plan = function(call)
    problem.check_sequences(call)
    local q = problem.of(call, "O dO", "V")
    local scale, o = problem.options_of(call, q)
    local rows = problem.rows_shape(q)
    if call.LSE.element_type ~= cute.f32
      or cute.size(call.LSE) ~= cute.product(rows) then
      call:fail("LSE is %s of %s; (%s) of f32 is needed", call.LSE.layout,
                call.LSE.element_type, table.concat(rows, ","))
    elseif call:dtype("ops.attention_backward", call.Q) ~= q.dtype then
      call:fail("the gradients must have the type of Q, %s, not %s", q.dtype,
                call:dtype("ops.attention_backward", call.Q))
    end
    local shape = modes.extents(call.K.layout)
    local results = {{shape = modes.extents(call.Q.layout), dtype = q.dtype},
      {shape = shape, dtype = q.dtype}, {shape = shape, dtype = q.dtype}}
    problem.check_sinks(call, q)
    local tensors = captured.tensors(call)
    for i, t in ipairs(tensors) do
      results[3 + i] = {shape = modes.extents(t.layout),
                        dtype = operand.plain(t.element_type)}
    end
    local p = call:start(9, results)
    if q.B == 0 and not q.ragged or q.H * q.D == 0 or q.S + q.T == 0 then
      captured.nothing(call, p)
      return p
    end
    if q.S == 0 or q.T == 0 then
      call:fail("Q is %s and K is %s; at least one row and one key are "
        .. "needed", call.Q.layout, call.K.layout)
    end
    local extra = captured.gradients(call, p, q, o)
    o.list = call.o.listed
    local k, refused = hopper_kernels(call, p.device, q, o, extra)
    local delta, padding
    if k then
      delta, padding = hopper_steps(call, p, k, q, scale)
    else
      delta = general_steps(call, p, q, scale, o, extra)
    end
    for i, t in ipairs(tensors) do
      if rawequal(t, call.sinks) then
        captured.sinks(p, q, 3 + i, delta, padding)
      end
    end
    p.chosen = {name = refused and "attention_bwd" or "attention_bwd_sm90",
                hopper = "attention_bwd_sm90", refused = refused,
                options = k and k.options, problem = q}
    return p
  end})

-- Returns the options of a call. Replaces the option block_mask by its contents
-- (block_mask.options), and the option gradients by text (captured.positions).
local function options_of(o, Q, K)
  o = block_mask.options(refuse, o, Q, K)
  if o and o.bits then
    o = tensor_op.with(o)
    o.bits = nil
  end
  if o and o.gradients ~= nil then
    o = tensor_op.with(o)
    o.gradients = captured.positions(refuse, o, scores.traced_of(refuse, o, Q,
                                                                 K))
  end
  return o
end

--- Returns dQ, dK and dV, then the gradients of the tensors that the option
-- `gradients` lists. Also accepts the options of ops.attention. The order of
-- sums is fixed unless `deterministic` is false. docs/ops.md describes how
-- gradients of captured tensors are summed.
---@param dO any like O
---@param Q any
---@param K any
---@param V any
---@param O any
---@param LSE any
---@param o? table {causal: boolean?, window: any[]?, scale: number?,
-- deterministic: boolean?, cu_q: any?, cu_k: any?, sinks: any?,
-- gradients: any[]?, out: any}
-- gradients: the tensor `sinks`, and tensors of floats that score_mod captures
-- or that the options alibi_slopes and bias give
function backward.attention_backward(dO, Q, K, V, O, LSE, o)
  return back(dO, Q, K, V, O, LSE, options_of(o, Q, K))
end

--- Takes the arguments of ops.attention_backward, and launches nothing. Returns
-- a table that describes the kernels that ops.attention_backward would use,
-- like the result of ops.explain_attention.
---@param dO any
---@param Q any
---@param K any
---@param V any
---@param O any
---@param LSE any
---@param o? table
---@return table
function backward.explain_attention_backward(dO, Q, K, V, O, LSE, o)
  local plan, call = planned(dO, Q, K, V, O, LSE, options_of(o, Q, K))
  return explained.of(plan, call, "ops.explain_attention_backward: dQ has no "
    .. "elements: no kernel of attention is launched")
end

return backward
-- SPDX-License-Identifier: MIT
