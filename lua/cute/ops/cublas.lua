--- Reproduces the accumulation order of cuBLAS.
--
-- cuBLAS's kernels for Hopper (nvjet, algorithm 66 of cublasLt) accumulate in
-- the order of K. One instruction adds 16 products of 16-bit floats, or 32 of
-- 8-bit floats. For 8-bit floats, each sum of 128 products is added to the
-- total in f32. For some products, K is divided into parts of whole 128-byte
-- tiles, all of equal length except the last. The partial sums of the parts are
-- added in f32, in order. Other kernels (for rows that are not multiples of 16
-- bytes) have other orders. K is never divided for batches. A bias, and a relu
-- after it, are applied to the f32 sums. The number of parts is the one that
-- cuBLAS's heuristics choose for a product with a bias. With C the result is
-- fma(alpha, sum, beta C), rounded once more to D's type. If K is divided, the
-- result is fma(beta, C, alpha sum). With beta = 1 and an undivided K, neither
-- formula reproduces the results bit by bit.
--
-- On a GPU this module queries cuBLAS's heuristics, which cublasGemmEx also
-- uses. Without a GPU it uses recorded results of the heuristics on an H200.
local core = require "cute.core"
local cute = require "cute"
local epilogue = require "cute.ops.epilogue_function"
local operand = require "cute.ops.operand"
local sm90 = require "cute.ops.family.sm90"
local sum_order = require "cute.ops.sum_order"
local tiles = require "cute.tiles"

local cublas = {}

local fail = operand.fail

local NVJET = 66
-- cublasLt's reduction schemes that add partial sums in f32: no reduction (0),
-- and sums in f32 (2).
local IN_F32 = {[0] = true, [2] = true}

-- If D has at least this many elements, cuBLAS never divided K.
local LARGE = 1 << 22

local function like(text, ...) fail("like = \"cublas\": " .. text, ...) end

-- Reports whether mode `lead` of a matrix is contiguous, and the other mode has
-- no gaps.
local function dense(t, lead)
  local other = 3 - lead
  return (t.stride[lead] == 1 or t.shape[lead] == 1)
    and (t.stride[other] == t.shape[lead] or t.shape[other] == 1)
end

-- Returns the mode of a matrix to pass to cuBLAS as the contiguous one: 2 if
-- possible, else 1. Raises an error if the matrix has gaps.
local function lead_of(name, t)
  for lead = 2, 1, -1 do
    if dense(t, lead) then
      if t.alignment % 16 ~= 0 then
        like("%s starts at a multiple of %d bytes; a multiple of 16 is "
          .. "needed", name, t.alignment)
      end
      return lead
    end
  end
  like("%s is %s, which has gaps between its elements", name, t.layout)
end

-- Returns the distance between consecutive matrices of a batch, in elements.
local function step_of(name, t)
  local step = t.stride[3] or 0
  if math.type(step) == nil then
    like("%s is %s: the distance between its matrices is not "
      .. "constant", name, t.layout)
  elseif step * t.element_type.bits % 128 ~= 0 then
    like("matrices of %s are %d elements apart, which is not a multiple of 16 "
      .. "bytes", name,
         step)
  end
  return step
end

---------------------------------------------------------------------------
-- A bias
---------------------------------------------------------------------------

-- Returns "bias" if the epilogue of p only adds this tensor as a bias,
-- "bias_relu" if a relu follows, else nil.
local function kind_of(p, bias)
  if core.typename(bias) ~= "tensor" then return nil end
  local known = require "kernels.tuned.epilogues"  -- requires cute.ops
  for _, name in ipairs {"bias", "bias_relu"} do
    local q = {value = p.value, m = 1, columns = 1, batch = {}, batches = 1}
    epilogue.look(q, (known[name] {col = function()
      return cute.empty({1}, bias.element_type)
    end}))
    if q.fingerprint == p.fingerprint then return name end
  end
end

-- Returns the bias of a call as {bias, epilogue}, the form that cublasLt
-- accepts. Returns nil if the call has no epilogue.
local function bias_of(p, call, leads)
  if not call.f then return nil end
  local bias = call.captured.values[1]
  local kind = kind_of(p, bias)
  if not kind then
    like("the only epilogue supported is a bias for each column, optionally "
      .. "followed by relu")
  elseif p.a.bits ~= 16 or p.d ~= p.a or bias.element_type ~= p.d then
    like("the bias has type %s, D %s, the operands %s; all need the same "
      .. "16-bit type", bias.element_type, p.d, p.a)
  elseif p.c or call.alpha or p.batches > 1 or leads[3] ~= 2 then
    like("a bias cannot be combined with alpha, C or batches, and D's rows "
      .. "must be dense")
  elseif cute.size(bias) > 1 and bias.stride[1] ~= 1 then
    like("the bias is %s, which has gaps between its elements", bias.layout)
  end
  return {bias = bias, epilogue = kind == "bias_relu" and "relu" or nil}
end

local function recorded(p, leads, _, bias)
  if leads[1] ~= 2 or leads[2] ~= 2 or p.a.bits ~= 16 or p.d ~= p.a then
    like("without a GPU, the order is known only for 16-bit floats with K "
      .. "contiguous and D of the same type")
  elseif p.n % 8 == 0 and p.k % 8 == 0
    and (p.batches > 1 or p.m * p.n >= LARGE) then
    return 1
  end
  local record = require "kernels.tuned.cublas"
  for _, r in ipairs(record) do
    if r[1] == p.n and r[2] == p.k and p.m <= record.rows then
      local split
      for from, parts in r[p.a.name]:gmatch "(%d+):(%d+)" do
        if p.m >= tonumber(from) then split = math.tointeger(parts) end
      end
      local other = bias and r.biased and r.biased[p.a.name]
      return other and other[p.m] or split
    end
  end
  like("without a GPU, the split of K for %d x %d x %d is unknown: no "
    .. "measurement was recorded", p.m, p.n, p.k)
end

-- Queries cublasLt's heuristics on this GPU and returns the number of parts
-- into which they divide K.
local function asked(p, leads, steps, bias)
  local said, why = p.device.dev:cublaslt_first {
    m = p.m, n = p.n, k = p.k, A = p.a, B = p.b, D = p.d, batches = p.batches,
    step_A = steps[1], step_B = steps[2], step_D = steps[3],
    bias = bias and core.param_memory(bias.bias),
    epilogue = bias and bias.epilogue,
    layout = (leads[1] == 2 and "t" or "n") .. (leads[2] == 2 and "n" or "t"),
    m_major = leads[3] == 1}
  if not said then like("%s", why) end
  if said.algorithm ~= NVJET or not IN_F32[said.reduction] then
    like("for %d x %d x %d cuBLAS uses algorithm %d of cublasLt (tile %d, K in "
      .. "%d, reduction %d), whose order of additions is not "
      .. "supported", p.m, p.n, p.k,
      said.algorithm, said.tile, said.split, said.reduction)
  end
  return math.max(said.split, 1)
end

-- Checks that the call is a plain product D = alpha A B^T + beta C.
local function check(p, call)
  local o = call.o
  if p.arch ~= "sm_90a" then
    like("the order of additions is known only on sm_90a, but the device is "
      .. "%s", p.arch)
  elseif p.a ~= p.b or p.a.name ~= "bf16" and p.a.name ~= "f16"
    and p.a.name ~= "e4m3" then
    like("only products of bf16, f16 and e4m3 are supported, not %s by "
      .. "%s", p.a, p.b)
  elseif o.scale_a or o.scale_b or p.gated then
    like("only D = alpha A B^T + beta C is supported, without "
      .. "%s", p.gated and "gates"
      or "scales")
  elseif p.c and (call.C.element_type ~= p.d or p.a.bits ~= 16) then
    like("C has type %s, D %s, the operands %s; C needs D's type, and the "
      .. "operands must be 16-bit floats", call.C.element_type, p.d, p.a)
  elseif p.batches > 1 and p.a.bits ~= 16 then
    like("batches are supported only for 16-bit floats, not %s", p.a)
  end
end

--- Returns cuBLAS's accumulation order for a problem as cute.ops.sum_order
-- describes it, and the number of parts into which cuBLAS divides K. Raises an
-- error if they are unknown.
---@return string
---@return integer
function cublas.order(p, call)
  check(p, call)
  local leads = {lead_of("A", p.A), lead_of("B", p.B), lead_of("D", p.D)}
  local steps = {step_of("A", p.A), step_of("B", p.B), step_of("D", p.D)}
  local split = (p.device.dev and asked or recorded)(p, leads, steps,
    bias_of(p, call, leads))
  local bk = 1024 // p.a.bits
  if p.c and call.beta == nil and split == 1 then
    like("beta = 1: without a split of K, cuBLAS does not add C to its "
      .. "accumulators")
  end
  return sum_order.in_parts(p.a.bits == 16 and sm90.SIXTEEN
    or sm90.EIGHT:format(128), p.k,
    tiles.count(tiles.count(p.k, bk), split) * bk), split
end

return cublas
-- SPDX-License-Identifier: MIT
