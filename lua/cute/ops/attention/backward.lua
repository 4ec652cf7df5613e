--- ops.attention_backward: dQ, dK and dV. See kernels/attention_bwd.lua.
local block_mask = require "cute.ops.attention.block_mask"
local cute = require "cute"
local gradients = require "kernels.attention_bwd"
local modes = require "cute.ops.modes"
local problem = require "cute.ops.attention.problem"
local scores = require "cute.ops.attention.scores"
local tensor_op = require "cute.ops.tensor_op"

local backward = {}

local refuse = tensor_op.failing "ops.attention_backward"

local back = problem.operation("ops.attention_backward", {
  names = {"dO", "Q", "K", "V", "O", "LSE"}, tensors = {"cu_q", "cu_k"},
  traced = function(o, list)
    return scores.traced_of(refuse, o, list[2], list[3])
  end,
  options = problem.OPTIONS, captured = problem.FUNCTIONS, plan = function(call)
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
    local p = call:start(8, results)
    if q.B == 0 or q.H * q.D == 0 or q.S + q.T == 0 then return p end
    if q.S == 0 or q.T == 0 then
      call:fail("Q is %s and K is %s: gradients without rows or keys are not "
        .. "computed", call.Q.layout, call.K.layout)
    end
    p.floats = cute.product(rows)
    scores.trace_functions(call, o, p)
    for i, k in ipairs(gradients(o)) do
      p.steps[i] = {kernel = k.kernel, block = k.block, ready = {},
        grid = k.grid(q.S, q.T, q.H, q.G, q.B),
        arguments = function(now, out, work)
          local list = {now.Q, now.K, now.V, now.O, now.dO,
            problem.view(now.LSE, 0, rows), problem.view(work, 0, rows),
            out[1], out[2], out[3], scale, now.cu_q, now.cu_k,
            n = (now.cu_q or now.captured) and 13 or 11}
          return now.captured and scores.push_captured(now, list) or list
        end}
    end
    return p
  end})

--- Returns dQ, dK and dV of ops.attention, whose options it takes. The order of
-- all sums is fixed.
---@param dO any like O
---@param Q any
---@param K any
---@param V any
---@param O any
---@param LSE any
---@param o? table {causal: boolean?, window: any[]?, scale: number?,
-- cu_q: any?, cu_k: any?, out: any}
function backward.attention_backward(dO, Q, K, V, O, LSE, o)
  if o and o.sinks ~= nil then
    refuse("sinks have no gradient; without this option, dQ, dK and dV are "
      .. "right, because LSE contains the sinks")
  end
  o = block_mask.options(refuse, o, Q, K)
  if o then o.blocks, o.listed = nil, nil end
  return back(dO, Q, K, V, O, LSE, o)
end

return backward
-- SPDX-License-Identifier: MIT
