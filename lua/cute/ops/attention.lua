--- Attention, its gradients, and attention of one query to a cache of keys:
-- ops.attention, ops.attention_backward, ops.attention_decode.
--
-- Q and O (B,S,H,D), K and V (B,T,G,D): the last of the S rows is aligned with
-- the last of the T keys. See kernels/attention_sm90.lua (Hopper),
-- kernels/attention.lua (other devices, and operands that the former does not
-- take), kernels/attention_bwd.lua and kernels/attention_decode.lua.
local capture = require "cute.ops.capture"
local core = require "cute.core"
local cute = require "cute"
local decode = require "kernels.attention_decode"
local elementwise = require "cute.ops.elementwise"
local forward = require "kernels.attention"
local gradients = require "kernels.attention_bwd"
local hopper = require "kernels.attention_sm90"
local modes = require "cute.ops.modes"
local numbers = require "cute.ops.numbers"
local rowwise = require "cute.ops.rowwise"
local tensor_op = require "cute.ops.tensor_op"

local attention = {}

local HEADS = {[32] = true, [64] = true, [96] = true, [128] = true,
               [192] = true, [256] = true}
local PAGE = 64  -- pages have a multiple of 64 keys, so no tile crosses pages

---------------------------------------------------------------------------
-- Operands
---------------------------------------------------------------------------

-- Reports whether the kernels accept the layout of an operand: contiguous
-- heads, one stride for each other mode (also those of one element), at
-- multiples of 16 bytes.
local function fits(t)
  local l, rank, step = t.layout, cute.rank(t), 128 // t.element_type.bits
  if rank < 3 then return true end
  for i = 1, rank do
    if type(l.shape[i]) == "table" then return false end
    if i < rank and l.stride[i] % step ~= 0 then return false end
  end
  return l.stride[rank] == 1 and t.alignment % 16 == 0
end

-- Reports whether a result can be stored to this tensor. LSE is stored element
-- by element.
local function apart(t)
  if t.element_type ~= cute.f32 and not fits(t) then return false end
  return rowwise.injective(t)
end

-- Checks the types and shapes of Q, K, V and of further operands like them.
-- Returns the problem: B, S, T, H, G, D. Sequences of different lengths, with
-- cu_seqlens, have no mode B. paged: K and V are pages of T keys, not batches.
local function problem(call, like_q, like_k, paged)
  local Q, K, ragged = call.Q, call.K, call.cu_q ~= nil
  local dtype, rank = Q.element_type, ragged and 3 or 4
  if dtype ~= cute.bf16 and dtype ~= cute.f16 then
    call:fail("Q has elements of type %s; bf16 or f16 is needed", dtype)
  end
  for _, name in ipairs {"Q", "K", "V"} do
    local t = call[name]
    if cute.rank(t) ~= rank then
      call:fail("%s is %s; modes %s are needed", name, t.layout, ragged
        and "(rows, heads, D)" or "(batches, rows, heads, D)")
    elseif t.element_type ~= dtype then
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
              k[rank] ~= p.D and "heads" or "batches")
  elseif not HEADS[p.D] then
    call:fail("Q is %s: heads of %d elements; 32, 64, 96, 128, 192 or 256 are "
      .. "possible", Q.layout, p.D)
  elseif p.G < 1 and p.H > 0 or p.G > 0 and p.H % p.G ~= 0 then
    call:fail("Q has %d heads and K has %d; a multiple is needed", p.H, p.G)
  end
  return p
end

-- Checks cu_q and cu_k, the offsets at which the sequences of Q and K begin.
local function check_sequences(call)
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

-- Returns the scale of the scores and the options of the kernels.
local function options_of(call, p)
  local o, window = call.o, call.o.window
  local scale = o.scale or 1 / math.sqrt(p.D)
  if scale <= 0 or scale ~= scale or scale == math.huge then
    call:fail("scale = %s; a finite number above 0 is needed", core.show(scale))
  end
  for i = 1, 2 do
    local w = window and window[i]
    if w and (math.type(w) ~= "integer" or w < 0) then
      call:fail("window = {%s, %s}; for each side the number of visible keys, "
        .. "0 or more, or false is needed", core.show(window[1]),
        core.show(window[2]))
    end
  end
  return scale, {head = p.D, causal = o.causal, window = window}
end

-- Returns the extents of a tensor with one number for each query row, such as
-- LSE.
local function rows_shape(p)
  if p.ragged then return {p.H, p.S} end
  return {p.B, p.H, p.S}
end

---------------------------------------------------------------------------
-- Forward
---------------------------------------------------------------------------

local OPTIONS = {causal = "boolean", window = "table", scale = "number"}
local FUNCTIONS = {score_mod = "function", mask_mod = "function",
                   softcap = "number", alibi_slopes = "tensor", bias = "tensor"}
local LAYOUT = {fits = fits, apart = apart, flat = "LSE cu_q cu_k lengths"}

local function operation(what, spec)
  for k, v in pairs(LAYOUT) do spec[k] = v end
  return rowwise.operation(what, spec)
end

-- Returns the launches that set O to 0 and LSE to -inf, for rows without keys.
local function nothing(call, p, results)
  local steps = {}
  for i, value in ipairs {0.0, -math.huge} do
    local r = results[i]
    local t = call.out[i] or cute.empty(r.shape, r.dtype, {device = p.place})
    call.out[i] = t
    for _, s in ipairs(elementwise.filling(t, value, cute.f32, call.o)) do
      local arguments = s.arguments
      function s.arguments(now, out) return arguments(now, {out[i]}) end
      steps[#steps + 1] = s
    end
  end
  return steps
end

---------------------------------------------------------------------------
-- Functions of scores
---------------------------------------------------------------------------

-- Statements that change the scaled score s, in this order, by the option that
-- requires them. 'shift' is the row's position among the keys.
local CHANGES = {
  {"softcap", "s = softcap * tanh(s / softcap)"},
  {"alibi_slopes", "s = s - alibi_slopes[at.h] "
    .. "* abs(at.q + shift - at.k):to(f32)"},
  {"bias", "s = s + bias[{at.b, at.h, at.q, at.k}]:to(f32)"},
  {"score_mod", "s = score_mod(s, at)"}}

local makers = {}  -- by the options that they use

-- Returns the function of scores for the options, or nil.
local function score_of(o, bias, shift)
  local key, lines = {}, {}
  for _, c in ipairs(CHANGES) do
    if o[c[1]] ~= nil then key[#key + 1], lines[#lines + 1] = c[1], c[2] end
  end
  if #lines == 0 then return nil end
  if #lines == 1 and o.score_mod then return o.score_mod end
  key = table.concat(key, " ")
  makers[key] = makers[key] or capture.compile(("local softcap, alibi_slopes, "
    .. "bias, score_mod, shift, tanh, abs, f32 = ... return function(s, at) %s "
    .. "return s end"):format(table.concat(lines, " ")), "scores")
  return makers[key](o.softcap and o.softcap + 0.0, o.alibi_slopes, bias,
                     o.score_mod, shift, cute.tanh, cute.abs, cute.f32)
end

local refuse_forward = tensor_op.failing "ops.attention"
local refuse_backward = tensor_op.failing "ops.attention_backward"

-- Returns the bias as a view (B,H,S,T), in which modes of one element repeat.
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

-- Returns the function that kernels trace, for the options and the operands Q
-- and K of an operation, or nil. The function returns score_mod and mask_mod.
local function traced_of(refuse, o, Q, K)
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
  end
  local score = score_of(o, bias, shift)
  if score or o.mask_mod then return capture.pair(score, o.mask_mod) end
end

-- Returns two functions. The first is `modify` of kernels/attention.lua: its
-- arguments are the captured values. The second, take(captured), replaces
-- score_mod and mask_mod by the functions of another call, which have the same
-- code.
local function modifying(captured)
  local f, bind
  local function take(new) f, bind = new:clone() end
  take(captured)
  return function(...)
    bind {...}
    local score, mask = f()
    return score, mask, bind
  end, take
end

local function push_captured(call, list)
  local nth = 0
  for _, v in ipairs(call.captured.values) do
    if math.type(v) then nth = nth + 1 end
    numbers.pass(list, v, cute.f32, call.at, nth)
  end
  return list
end

-- Raises an error unless score_mod returns a float and mask_mod a boolean. To
-- find out, traces the two functions in a kernel of their own.
local function check_functions(call, modify)
  local list = push_captured(call, {n = 0})
  local program = cute.kernel("score", function(...)
    local score, mask, done = modify(...)
    local r = cute.make_rmem_tensor({1}, cute.f32)
    local t = cute.arch.thread_idx()
    r:fill(1)
    local at = {b = t, h = t, q = t, k = t}
    local x = score and score(r[0], at)
    local seen = mask and mask(at)
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
end

-- Sets the option `modify` of kernels from the functions of a call, and the
-- plan's check before a new launch.
local function trace_functions(call, o, p)
  if not call.captured then return end
  local take
  o.modify, take = modifying(call.captured)
  check_functions(call, o.modify)
  p.check = function(now) take(now.captured) end
end

---------------------------------------------------------------------------
-- Forward
---------------------------------------------------------------------------

-- Returns Hopper's kernel for a call, or nil and the reason why it is not
-- suitable. q: the problem.
local function hopper_kernel(call, device, q, o)
  if o.modify then
    return nil, "it does not trace score_mod and mask_mod"
  elseif not core.has(device.sm, "wgmma") or device.arch ~= "sm_90a" then
    return nil, ("wgmma needs sm_90a, but the device is %s"):format(device.arch)
  elseif q.ragged then
    return nil, "it does not support sequences of different lengths"
  elseif q.D < 64 then
    return nil, ("it has no tile for heads of %d"):format(q.D)
  end
  local k = hopper {head = q.D, causal = o.causal, window = o.window,
                    dtype = q.dtype, rows = q.S}
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
      return k.arguments(now.Q, now.K, now.V, out[1], out[2], scale,
                         k.share(now.Q, now.K, counter))
    end}, k.options.dynamic and 1 or nil
end

-- Returns the launch of kernel k, which runs on all devices, as a step of a
-- plan (cute.ops.tensor_op).
local function general_step(k, q, scale)
  return {kernel = k.kernel, grid = k.grid(q.S, q.H, q.B), block = k.block,
    ready = {}, arguments = function(now, out)
      local list = {now.Q, now.K, now.V, out[1], out[2], scale, now.cu_q,
                    now.cu_k, n = (now.cu_q or now.captured) and 8 or 6}
      return now.captured and push_captured(now, list) or list
    end}
end

local attend, planned = operation("ops.attention", {names = {"Q", "K", "V"},
  tensors = {"cu_q", "cu_k"},
  traced = function(o, list)
    return traced_of(refuse_forward, o, list[1], list[2])
  end,
  options = OPTIONS, captured = FUNCTIONS, plan = function(call)
    check_sequences(call)
    local q = problem(call, "", "V")
    local scale, o = options_of(call, q)
    if call:dtype("ops.attention", call.Q) ~= q.dtype then
      call:fail("O must have the type of Q, %s, not %s", q.dtype,
                call:dtype("ops.attention", call.Q))
    end
    local results = {{shape = modes.extents(call.Q.layout), dtype = q.dtype},
                     {shape = rows_shape(q), dtype = cute.f32}}
    local p = call:start(5, results)
    if cute.product(results[1].shape) == 0 or q.B == 0 then return p end
    if q.T == 0 then
      p.anew, p.steps = true, nothing(call, p, results)
      return p
    end
    trace_functions(call, o, p)
    local k, refused = hopper_kernel(call, p.device, q, o)
    if k then
      p.steps[1], p.counts = hopper_step(k, p.device, q, scale)
    else
      k = forward(o)
      p.steps[1] = general_step(k, q, scale)
    end
    p.chosen = {name = refused and "attention" or "attention_sm90",
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
function attention.attention(Q, K, V, o)
  return attend(Q, K, V, o)
end

local Explained = {}
Explained.__index = Explained
function Explained.__tostring(e) return e.text end

-- Returns a choice as text: the problem, the chosen kernel, and why the other
-- kernel was not chosen.
local function text_of(c, arch)
  local q, o = c.problem, c.options
  local out = {("%s rows, %d keys, %d heads of %d that share %d, %s, on "
    .. "%s"):format(q.ragged and q.S or ("%d x %d"):format(q.B, q.S), q.T, q.H,
    q.D, q.G, q.dtype, arch),
    ("  %s, tile %s%s"):format(c.name, table.concat(o.tile, "x"),
      o.stages and (", %d stages"):format(o.stages) or "")}
  if c.refused then
    out[3] = "  not attention_sm90: " .. c.refused
  end
  return table.concat(out, "\n")
end

--- Returns which kernel ops.attention would use: {kernel, tile, stages, refused
-- = {{kernel, reason}}, text, trace()}; tostring returns the text. Takes the
-- arguments of ops.attention, and launches nothing.
---@param Q any
---@param K any
---@param V any
---@param o? table
---@return table
function attention.explain_attention(Q, K, V, o)
  local plan, call = planned(Q, K, V, o)
  local c = plan.chosen
  if not c then
    core.fail("bad-argument", "ops.explain_attention: O has no elements, or "
      .. "there are no keys: no kernel of attention is launched")
  end
  return setmetatable({kernel = c.name, tile = {table.unpack(c.options.tile)},
    stages = c.options.stages, refused = c.refused
      and {{"attention_sm90", c.refused}} or {},
    text = text_of(c, plan.device.arch),
    trace = function() return tensor_op.trace(plan, call) end}, Explained)
end

---------------------------------------------------------------------------
-- Backward
---------------------------------------------------------------------------

-- Returns a view of the f32 memory that the launches of a call share, from
-- element `from` on.
local function view(work, from, shape)
  return cute.make_tensor(work.iterator + from,
                          cute.make_layout(shape, cute.LayoutRight))
end

local back = operation("ops.attention_backward", {
  names = {"dO", "Q", "K", "V", "O", "LSE"}, tensors = {"cu_q", "cu_k"},
  traced = function(o, list)
    return traced_of(refuse_backward, o, list[2], list[3])
  end,
  options = OPTIONS, captured = FUNCTIONS, plan = function(call)
    check_sequences(call)
    local q = problem(call, "O dO", "V")
    local scale, o = options_of(call, q)
    local rows = rows_shape(q)
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
    trace_functions(call, o, p)
    for i, k in ipairs(gradients(o)) do
      p.steps[i] = {kernel = k.kernel, block = k.block, ready = {},
        grid = k.grid(q.S, q.T, q.H, q.G, q.B),
        arguments = function(now, out, work)
          local list = {now.Q, now.K, now.V, now.O, now.dO,
            view(now.LSE, 0, rows), view(work, 0, rows), out[1], out[2], out[3],
            scale, now.cu_q, now.cu_k,
            n = (now.cu_q or now.captured) and 13 or 11}
          return now.captured and push_captured(now, list) or list
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
function attention.attention_backward(dO, Q, K, V, O, LSE, o)
  return back(dO, Q, K, V, O, LSE, o)
end

---------------------------------------------------------------------------
-- Decoding
---------------------------------------------------------------------------

-- Raises an error unless tensor t, the option `name`, has the extents `shape`
-- and elements of type `dtype`.
local function check_option(call, name, t, shape, dtype)
  if t.element_type ~= dtype or not modes.has(t.layout, shape) then
    call:fail("%s is %s of %s; (%s) of %s is needed", name, t.layout,
              t.element_type, table.concat(shape, ","), dtype)
  end
end

-- Checks the options that describe the cache of keys, and returns the number of
-- keys that the cache has room for in each batch.
local function check_cache(call, q)
  local n, table_, k, v = call.lengths, call.block_table, call.k, call.v
  if n and (n.element_type ~= cute.i32 or cute.size(n) ~= q.B) then
    call:fail("lengths is %s of %s; %d elements of i32 are needed", n.layout,
              n.element_type, q.B)
  elseif (k or v or table_) and not n then
    call:fail("%s the option lengths, the number of keys of each batch",
              table_ and "block_table needs" or "k and v need")
  elseif not k ~= not v then
    call:fail "k and v must be given together"
  end
  if k then
    for _, name in ipairs {"K", "V"} do
      if call.copied[name] then
        call:fail("%s cannot be written: it is %s at a multiple of %d bytes; "
          .. "contiguous heads at multiples of 16 bytes are needed", name,
          call.copied[name].layout, call.copied[name].alignment)
      end
    end
    check_option(call, "k", k, {q.B, 1, q.G, q.D}, q.dtype)
    check_option(call, "v", v, {q.B, 1, q.G, q.D}, q.dtype)
  end
  if not table_ then return q.T end
  local own = modes.extents(table_.layout)
  if table_.element_type ~= cute.i32 or #own ~= 2 or own[1] ~= q.B then
    call:fail("block_table is %s of %s; (%d,pages) of i32 is needed",
              table_.layout, table_.element_type, q.B)
  elseif q.T % PAGE ~= 0 then
    call:fail("K is %s: pages of %d keys; a multiple of %d is needed",
              call.K.layout, q.T, PAGE)
  end
  return own[2] * q.T
end

local step = operation("ops.attention_decode", {names = {"Q", "K", "V"},
  tensors = {"lengths", "block_table", "k", "v"},
  options = {scale = "number"}, plan = function(call)
    local q = problem(call, "", "V", call.block_table)
    local scale, o = options_of(call, q)
    if q.S ~= 1 then
      call:fail("Q is %s; one row for each batch, (B,1,H,D), is needed",
                call.Q.layout)
    elseif call:dtype("ops.attention_decode", call.Q) ~= q.dtype then
      call:fail("O must have the type of Q, %s, not %s", q.dtype,
                call:dtype("ops.attention_decode", call.Q))
    end
    local keys = check_cache(call, q)
    local results = {{shape = modes.extents(call.Q.layout), dtype = q.dtype},
                     {shape = {q.B, q.H, 1}, dtype = cute.f32}}
    local p = call:start(7, results)
    if cute.product(results[1].shape) == 0 then return p end
    if keys == 0 then
      p.anew, p.steps = true, nothing(call, p, results)
      return p
    end
    o.causal, o.window, o.group = nil, nil, q.H // q.G
    if o.group > 64 then
      call:fail("Q has %d heads and K has %d; at most 64 for each are possible",
                q.H, q.G)
    end
    local k = decode(o)
    local splits = k.splits(keys, q.G, q.B)
    local size = splits * q.B * q.H
    local cache = call.block_table or call.k
    p.floats = size * (q.D + 1)
    for i = 1, 2 do
      p.steps[i] = {kernel = k[i].kernel, block = k[i].block, ready = {},
        grid = k[i].grid(splits, q.H, q.B),
        arguments = function(now, out, work)
          return {now.Q, now.K, now.V, out[1], out[2],
            view(work, 0, {splits, q.B, q.H, q.D}),
            view(work, size * q.D, {splits, q.B, q.H}), scale, now.lengths,
            cache and {pages = now.block_table, k = now.k, v = now.v},
            n = cache and 10 or now.lengths and 9 or 8}
        end}
    end
    return p
  end})

--- Returns O and LSE of one query for each batch to many keys. The keys are
-- split among blocks, so that few batches keep the GPU busy.
---@param Q any (B,1,H,D)
---@param K any (B,T,G,D), or pages (P,page,G,D) with block_table
---@param V any like K
---@param o? table {lengths: any?, block_table: any?, k: any?, v: any?,
-- scale: number?, out: any}
-- lengths: the number of keys of each batch, B of i32 (T when absent).
-- block_table: the pages of each batch's keys, (B,n) of i32. k, v (B,1,G,D):
-- the last key and value of each batch, which the call stores in K and V.
function attention.attention_decode(Q, K, V, o)
  return step(Q, K, V, o)
end

return attention
-- SPDX-License-Identifier: MIT
