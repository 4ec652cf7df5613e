--- ops.attention and ops.explain_attention. See kernels/attention_sm90.lua
-- (Hopper) and kernels/attention.lua (other devices, and operands that the
-- kernel for Hopper does not accept).
local block_mask = require "cute.ops.attention.block_mask"
local candidates = require "kernels.attention_sm90.options".candidates
local core = require "cute.core"
local cute = require "cute"
local eight = require "cute.ops.attention.eight"
local explained = require "cute.ops.attention.explained"
local general = require "kernels.attention"
local hopper = require "kernels.attention_sm90"
local modes = require "cute.ops.modes"
local problem = require "cute.ops.attention.problem"
local scores = require "cute.ops.attention.scores"
local tuned = require "cute.ops.tuned"
local tensor_op = require "cute.ops.tensor_op"

local forward = {}

-- Returns Hopper's kernel for a call, or nil and the reason why it does not
-- fit. `q` is the problem (problem.of). With ALiBi, the scores of a row
-- increase towards the row's own key, so this function sets the kernel's option
-- `around`.
local function hopper_kernel(call, device, q, o)
  if not core.has(device.sm, "wgmma") or device.arch ~= "sm_90a" then
    return nil, ("wgmma needs sm_90a, but the device is %s"):format(device.arch)
  elseif q.D < 64 then
    return nil, ("it has no tile for heads of %d"):format(q.D)
  end
  local given = {head = q.D, value = q.value, dtype = q.dtype,
                 causal = o.causal, window = o.window, modify = o.modify,
                 list = o.list, ragged = q.ragged or nil,
                 around = call.o.alibi_slopes and not o.causal or nil,
                 out = q.out, scaled = q.scaled,
                 rows = q.ragged and math.max(q.S // math.max(q.B, 1), 1)
                   or q.S}
  local plain = not (o.window or o.modify or o.list or q.ragged or q.out)
    and q.value == q.D
  given.tile = plain and tuned.tile(q, device, o.causal, function()
    return candidates(given)
  end) or nil
  local how = given.tile and "measured" or "by rule"
  local k = hopper(given)
  local ok, why = k.takes(call.Q, call.K, call.V, call.out[1])
  if not ok then return nil, why end
  return k, nil, given, how
end

-- Checks V, and sets q.value, the number of elements of a head of V.
local function check_values(call, q)
  local v, k = modes.extents(call.V.layout), modes.extents(call.K.layout)
  q.value = v[#v]
  if q.D == 192 and q.value == 128 then k[#k] = 128 end
  if not modes.has(call.V.layout, k) then
    call:same("V", call.V, "K", call.K)
  end
end

-- Returns the optional operands of a call as a table, the kernel's last
-- argument. Returns nil if the call has none of them. `bits` are the bits of
-- the block mask, if the kernel reads them.
local function more_of(now, q, bits)
  problem.check_offsets(now, q)
  if not now.blocks and not now.sinks and not now.cu_q and not q.out then
    return nil
  end
  return {blocks = now.blocks and block_mask.view(now.blocks, q.B, q.H),
          bits = bits and block_mask.view(bits, q.B, q.H),
          sinks = now.sinks, cu_q = now.cu_q, cu_k = now.cu_k,
          q_scale = eight.scale_view(now.q_scale, q, true),
          k_scale = eight.scale_view(now.k_scale, q),
          v_scale = eight.scale_view(now.v_scale, q)}
end

-- Returns the launch of Hopper's kernel k as a step of a plan
-- (cute.ops.tensor_op). Also returns the number of counters that the kernel's
-- blocks share.
local function hopper_step(k, device, q, scale)
  return {kernel = k.kernel, block = k.block, ready = {},
    grid = k.grid(q.S, q.H, q.B, device.info and device.info.sms),
    arguments = function(now, out, _, turns)
      local counter = turns and cute.make_tensor(turns.iterator,
                                                 cute.make_layout {1})
      local list = k.arguments(now.Q, now.K, now.V, out[1], out[2], scale,
                               k.share(now.Q, now.K, counter),
                               more_of(now, q, now.bits))
      return now.captured and scores.push_captured(now, list) or list
    end}, k.options.dynamic and 1 or nil
end

-- Returns the launch of kernel k, which runs on all devices, as a step of a
-- plan (cute.ops.tensor_op).
local function general_step(k, q, scale)
  return {kernel = k.kernel, grid = k.grid(q.S, q.H, q.ragged and q.B + 1
                                           or q.B), block = k.block,
    ready = {}, arguments = function(now, out)
      local list = {now.Q, now.K, now.V, out[1], out[2], scale, now.cu_q,
                    now.cu_k, more_of(now, q), n = 9}
      return now.captured and scores.push_captured(now, list) or list
    end}
end

-- Runs Hopper's kernel on the operands of a call with each possible tile and
-- the given options, and returns the fastest kernel. Without a GPU, returns the
-- kernel with the default tile. A kernel whose compilation fails is skipped.
local function tuned_kernel(call, p, q, given, scale)
  local list, ready, out = {}, {}, {}
  for i, r in ipairs(p.results) do
    out[i] = call.out[i] or cute.empty(r.shape, r.dtype, {device = p.place})
  end
  for _, tile in ipairs(candidates(given)) do
    given.tile = tile
    local k = hopper(given)
    if p.device.kind ~= "gpu" or p.device.dev:capturing() then return k end
    local step = hopper_step(k, p.device, q, scale)
    local a = step.arguments(call, out)
    local ok, made = pcall(function()
      return k.kernel(table.unpack(a, 1, a.n)):compile {
        grid = step.grid, block = step.block, device = p.device}
    end)
    if ok and made then list[#list + 1], ready[#ready + 1] = k, made end
  end
  local _, at = assert(require "cute.gpu".best(ready))
  return list[at]
end

local refuse = tensor_op.failing "ops.attention"

-- The types of the options of ops.attention. block_mask.options replaces the
-- option block_mask by `listed`, the tensor `blocks` and others.
local OPTIONS = {listed = "table", tune = "boolean"}
for name, want in pairs(problem.OPTIONS) do OPTIONS[name] = want end

local attend, planned = problem.operation("ops.attention", {
  names = {"Q", "K", "V"}, tensors = {"cu_q", "cu_k", "blocks", "bits",
                                      "sinks", "q_scale", "k_scale", "v_scale"},
  traced = function(o, list)
    return scores.traced_of(refuse, o, list[1], list[2])
  end,
  options = OPTIONS, captured = problem.FUNCTIONS, plan = function(call)
    problem.check_sequences(call)
    local q = problem.of(call, "", "", nil, nil, true)
    check_values(call, q)
    eight.check(call, q)
    local scale, o = problem.options_of(call, q)
    problem.check_sinks(call, q)
    if not q.out and call:dtype("ops.attention", call.Q) ~= q.dtype then
      call:fail("O must have the type of Q, %s, not %s", q.dtype,
                call:dtype("ops.attention", call.Q))
    end
    local shape = modes.extents(call.Q.layout)
    shape[#shape] = q.value
    local results = {{shape = shape, dtype = q.out or q.dtype},
                     {shape = problem.rows_shape(q), dtype = cute.f32}}
    local p = call:start(10, results)
    if cute.product(results[1].shape) == 0 or q.B == 0 and not q.ragged then
      return p
    end
    if q.T == 0 and not call.sinks then
      problem.nothing(call, p)
      return p
    end
    scores.trace_functions(call, o, p)
    o.list, o.value = call.o.listed, q.value
    local k, refused, given, how = hopper_kernel(call, p.device, q, o)
    if refused and q.out then
      call:fail("Q has elements of e4m3, which only the kernel for Hopper "
        .. "takes: %s", refused)
    end
    if k then
      if call.o.tune then
        k, how = tuned_kernel(call, p, q, given, scale), "measured"
      end
      p.steps[1], p.counts = hopper_step(k, p.device, q, scale)
    else
      k = general(o)
      p.steps[1] = general_step(k, q, scale)
    end
    p.chosen = {name = refused and "attention" or "attention_sm90",
                hopper = "attention_sm90", how = how,
                options = k.options or k, refused = refused, problem = q}
    return p
  end})

--- Returns O = softmax(scale Q K^T) V, and LSE, the logarithm of each row's sum
-- of exponentials; see docs/ops.md. For a row that sees no key, O is 0 and LSE
-- is -inf.
---@param Q any (B,S,H,D), or (rows,H,D) with cu_q and cu_k
---@param K any (B,T,G,D)
---@param V any (B,T,G,D)
---@param o? table {causal: boolean?, window: any[]?, scale: number?,
-- cu_q: any?, cu_k: any?, score_mod: function?, mask_mod: function?,
-- block_mask: table?, sinks: any?, tune: boolean?, q_scale: any?,
-- k_scale: any?, v_scale: any?, dtype: any?, out: any}
-- score_mod(s, at) replaces the scaled score s. mask_mod(at) reports whether a
-- row sees a key: row at.q, key at.k, head at.h, sequence at.b. block_mask: a
-- result of ops.block_mask, in place of mask_mod. Q, K and V may be of e4m3 on
-- sm_90a; q_scale, k_scale and v_scale are then factors of their elements.
function forward.attention(Q, K, V, o)
  return attend(Q, K, V, block_mask.options(refuse, o, Q, K))
end

--- Takes the arguments of ops.attention, and launches nothing. Returns a table
-- that describes the kernel that ops.attention would use: {kernel, tile,
-- stages, how = "measured" or "by rule", refused = {{kernel, reason}}, text,
-- trace()}. tostring returns the text.
---@param Q any
---@param K any
---@param V any
---@param o? table
---@return table
function forward.explain_attention(Q, K, V, o)
  local plan, call = planned(Q, K, V, block_mask.options(refuse, o, Q, K))
  return explained.of(plan, call, "ops.explain_attention: O has no elements, "
    .. "or there are no keys: no kernel of attention is launched")
end

return forward
-- SPDX-License-Identifier: MIT
