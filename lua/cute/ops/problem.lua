--- Functions that ops.gemm and ops.grouped_gemm share to describe their
-- problems: gates, types, epilogue, device. cute.ops.choose lists the fields of
-- a problem.
local cute = require "cute"
local epilogue = require "cute.ops.epilogue_function"
local formats = require "cute.ops.formats"
local int4 = require "cute.ops.int4"
local operand = require "cute.ops.operand"
local scales = require "cute.ops.scales"
local targets = require "cute.targets"

local problem = {}

local fail = operand.fail

--- Sets p.gated, and p.columns, the number of columns of D. This is the number
-- of rows of B, or half of it with gates.
---@param p table with p.n, the number of rows of B
---@param call table a call as in cute.ops.plan
---@param B any the matrices B
function problem.gates(p, call, B)
  local o = call.o
  p.gated, p.columns = o.gated or nil, p.n
  if not p.gated then return end
  if p.n % 2 ~= 0 then
    fail("B is %s; with gated = true it needs 2 N rows", B.layout)
  elseif not call.f then
    fail "gated = true needs an epilogue function of (gate, up, at)"
  end
  local other = call.C and (o.accumulate and "accumulate" or "C")
    or call.alpha and "alpha"
    or not formats.are(call.A, call.B, o) and (o.scale_a and "scale_a"
      or o.scale_b and not int4.is(call.B) and "scale_b")
  if other then
    fail("gated = true cannot be combined with the option %s: apply it in the "
      .. "epilogue", other)
  end
  p.columns = p.n // 2
end

--- Sets the fields that follow from the types p.a and p.b: p.tf32, p.sums and
-- p.fused. Also sets the fields for scale factors (scales.look) and for the
-- epilogue's results (epilogue.look).
---@return any like the default type of D
---@return integer[] read the indices of the captured values that the epilogue
-- reads as matrices of D's shape
function problem.types(p, call)
  local o = call.o
  p.tf32 = o.tf32 or call.A.element_type == cute.tf32 or nil
  local like
  p.sums, like = operand.sums_of(p.a, p.b)
  scales.look(p, o)
  if p.value ~= p.sums then like = cute.bf16 end
  if not call.f then return like, {} end
  local made, read = epilogue.look(p, call.f)
  p.fused = true
  return made ~= p.value and made or like, read
end

--- Sets p.device, p.place (the device that holds the operands), and properties
-- of p.device: arch, sm, sms.
function problem.place(p, call)
  p.device, p.place = operand.device(call.A, call.o), call.A.device
  p.arch, p.sm = p.device.arch, p.device.sm
  p.sms = p.device.info and p.device.info.sms or targets.sms(p.sm)
end

return problem
-- SPDX-License-Identifier: MIT
