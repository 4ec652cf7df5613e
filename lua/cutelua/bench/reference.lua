--- cute.ops.reference: operations of cute.ops by their formulas, in plain Lua
-- and double precision, for tests of kernels. Matrix products of attention are
-- computed on the CPU by cute.gemm_reference.
--
--     local Y = cute.ops.softmax(X)
--     cute.testing.assert_close(Y, cute.ops.reference.softmax(X),
--                               {check_dtype = false})
--
-- The functions have the parameters of their namesakes in cute.ops. They accept
-- tensors of any layout, type and device, and return new tensors of f64 on
-- the host. They are slow and meant for small tensors.
local core = require "cute.core"
local cute = require "cute"
local lists = require "cutelua.bench.attention_lists"
local operand = require "cute.ops.operand"
local sign = require "cute.lang.signature"

local reference = {}

local function fail(text, ...)
  core.fail("bad-argument", text:format(...))
end

-- Returns the options of a call, or an empty table. Raises an error if an
-- option does not have the type that `known` gives for its name.
local function options(what, known, o)
  operand.check_options(what, known, o or {})
  return o or {}
end

---------------------------------------------------------------------------
-- Tensors as lists
---------------------------------------------------------------------------

local function product(shape)
  local n = 1
  for _, extent in ipairs(shape) do n = n * extent end
  return n
end

-- Returns the elements of a tensor as floats, in a list indexed from 0. The
-- last mode varies fastest. The field `shape` has the extents of the modes.
local function list_of(name, t)
  core.outside()
  if core.typename(t) ~= "tensor" or t.memspace == "coord" then
    fail("%s is %s; a tensor is needed", name, core.show(t))
  end
  local shape, stride, c, at = {}, {}, {}, 0
  for i = 0, cute.rank(t) - 1 do shape[i + 1] = cute.size(t, i) end
  local n = 1
  for i = #shape, 1, -1 do stride[i], c[i], n = n, 0, n * shape[i] end
  local list = {shape = shape, n = n, layout = t.layout}
  for _, x in (t:to "host"):elements() do
    list[at] = x == true and 1.0 or x and x + 0.0 or 0.0
    local i = 1
    while i <= #shape do
      c[i], at = c[i] + 1, at + stride[i]
      if c[i] < shape[i] then break end
      c[i], at, i = 0, at - stride[i] * shape[i], i + 1
    end
  end
  return list
end

-- Returns a new tensor with the elements of a list that is indexed from 0.
local function tensor_of(list, shape, dtype)
  local t = cute.zeros(#shape > 0 and shape or {1}, dtype or cute.f64)
  local memory = core.param_memory(t)
  for i = 0, product(shape) - 1 do memory[i] = list[i] end
  return t
end

local function same(shape, other)
  if #shape ~= #other then return false end
  for i, n in ipairs(shape) do
    if n ~= other[i] then return false end
  end
  return true
end

local function text(shape) return "(" .. table.concat(shape, ",") .. ")" end

-- Broadcasts shapes as numpy does and returns the common extents. The last
-- `own` modes of each shape take no part.
local function joined(what, shapes, own)
  local out, rank = {}, 0
  for _, s in ipairs(shapes) do rank = math.max(rank, #s - own) end
  for i = 1, rank do out[i] = 1 end
  for _, s in ipairs(shapes) do
    for i = 1, #s - own do
      local k, n = rank - (#s - own) + i, s[i]
      if out[k] ~= 1 and n ~= 1 and n ~= out[k] then
        fail("%s: %s and %s do not broadcast", what, text(shapes[1]), text(s))
      elseif n ~= 1 then
        out[k] = n
      end
    end
  end
  return out
end

-- Raises an error unless a tensor with extents `shape` broadcasts to `all`.
local function check_broadcast(what, shape, all)
  if not same(joined(what, {all, shape}, 0), all) then
    fail("%s: %s does not broadcast to %s", what, text(shape), text(all))
  end
end

-- Returns the index of the element that is broadcast to element i of the
-- extents `all`. The tensor has the extents `shape`, of which the last `own`
-- are ignored.
local function index(shape, own, all, i)
  local at, step, rank = 0, 1, #shape - own
  for k = #all, 1, -1 do
    local mine = k - #all + rank
    local n = mine >= 1 and shape[mine] or 1
    if n > 1 then at, step = at + i % all[k] * step, step * n end
    i = i // all[k]
  end
  return at
end

-- Returns the numbers of rows and columns of a tensor (...,N), and its extents
-- without N.
local function rows_of(what, list)
  local shape = {table.unpack(list.shape)}
  if #shape < 1 then fail("%s: X has no modes", what) end
  local n = table.remove(shape)
  return product(shape), n, shape
end

---------------------------------------------------------------------------
-- Products and element-wise functions
---------------------------------------------------------------------------

-- Returns a function factor(row) for a scale x. x is a number, a tensor of one
-- element, or a tensor with one element for each of n rows.
local function factors(name, x, n)
  if x == nil or type(x) == "number" then
    return function() return x or 1 end
  end
  local list = list_of("gemm: " .. name, x)
  if list.n ~= 1 and list.n ~= n then
    fail("gemm: %s is %s; a number, or a factor for each of %d rows is "
      .. "needed", name, list.layout, n)
  end
  return function(i) return list[list.n > 1 and i or 0] end
end

-- Returns a function from an element's index in D to the element of C that is
-- broadcast to it.
local function addend(C, all, m, n)
  if not C then return nil end
  local list = list_of("gemm: C", C)
  local full = {table.unpack(all)}
  full[#full + 1], full[#full + 2] = m, n
  check_broadcast("gemm: C", list.shape, full)
  return function(i) return list[index(list.shape, 0, full, i)] end
end

local GEMM = {alpha = "number", beta = "number", scale_a = "number tensor",
              scale_b = "number tensor"}

--- Returns alpha A B^T + beta C of A (...,M,K) and B (...,N,K), whose leading
-- modes broadcast. C has the shape of the product, or broadcasts to it.
---@param A table
---@param B table
---@param C? table
---@param o? {alpha: number, beta: number, scale_a: any, scale_b: any} scale_a,
-- scale_b: factors of A and B, each a number or a tensor with one factor per
-- row
---@return table
function reference.gemm(A, B, C, o)
  if core.typename(C) == "table" then C, o = nil, C end
  o = options("gemm", GEMM, o)
  local a, b = list_of("gemm: A", A), list_of("gemm: B", B)
  local ra, rb = #a.shape, #b.shape
  if ra < 2 or rb < 2 or a.shape[ra] ~= b.shape[rb] then
    fail("gemm: A is %s and B is %s; (...,M,K) and (...,N,K) are needed",
      a.layout, b.layout)
  end
  local m, n, k = a.shape[ra - 1], b.shape[rb - 1], a.shape[ra]
  local all = joined("gemm", {a.shape, b.shape}, 2)
  local add, d = addend(C, all, m, n), {}
  local fa, fb = factors("scale_a", o.scale_a, m),
    factors("scale_b", o.scale_b, n)
  local alpha, beta = o.alpha or 1, o.beta or 1
  for l = 0, product(all) - 1 do
    local from_a = index(a.shape, 2, all, l) * m * k
    local from_b = index(b.shape, 2, all, l) * n * k
    for i = 0, m - 1 do
      for j = 0, n - 1 do
        local sum, at, bt = 0.0, from_a + i * k, from_b + j * k
        for x = 0, k - 1 do sum = sum + a[at + x] * b[bt + x] end
        local where = (l * m + i) * n + j
        sum = alpha * fa(i) * fb(j) * sum
        if add and beta ~= 0 then sum = sum + beta * add(where) end
        d[where] = sum
      end
    end
  end
  all[#all + 1], all[#all + 2] = m, n
  return tensor_of(d, all)
end

--- Returns f(x, y, ...) for each element of tensors that broadcast. f gets
-- numbers; functions of cute such as cute.max accept them.
---@param f function
---@param ... table|number tensors and numbers
---@return table
function reference.elementwise(f, ...)
  local inputs, shapes = {...}, {}
  for i = 1, select("#", ...) do
    local x = inputs[i]
    if type(x) == "number" then inputs[i] = {[0] = x, shape = {}}
    else inputs[i] = list_of("elementwise: operand " .. i, x) end
    shapes[i] = inputs[i].shape
  end
  local all, out, args = joined("elementwise", shapes, 0), {}, {}
  for at = 0, product(all) - 1 do
    for i, x in ipairs(inputs) do args[i] = x[index(x.shape, 0, all, at)] end
    out[at] = f(table.unpack(args))
    if type(out[at]) == "boolean" then out[at] = out[at] and 1 or 0 end
    if type(out[at]) ~= "number" then
      fail("elementwise: the function returns %s; a number is needed",
        core.show(out[at]))
    end
  end
  return tensor_of(out, all)
end

---------------------------------------------------------------------------
-- Rows
---------------------------------------------------------------------------

-- Returns the largest element of a row of n elements from `at` on, and the sum
-- of e^(x - that element).
local function exponentials(x, at, n)
  local most, sum = -math.huge, 0.0
  for i = at, at + n - 1 do
    if x[i] ~= x[i] then return x[i], x[i] end
    most = math.max(most, x[i])
  end
  for i = at, at + n - 1 do sum = sum + math.exp(x[i] - most) end
  return most, sum
end

--- Returns e^X / sum(e^X) along the last mode.
---@param X table (...,N)
---@return table
function reference.softmax(X)
  local x, y = list_of("softmax: X", X), {}
  local m, n = rows_of("softmax", x)
  for r = 0, m - 1 do
    local most, sum = exponentials(x, r * n, n)
    for i = r * n, r * n + n - 1 do y[i] = math.exp(x[i] - most) / sum end
  end
  return tensor_of(y, x.shape)
end

--- Returns the losses log(sum(e^X)) - X[T] of the rows, and the logarithms
-- log(sum(e^X)). The loss is 0 if the target is o.ignore, and NaN if another
-- target is outside of the row.
---@param X table (...,N)
---@param T table integers, one for each row
---@param o? {ignore: integer} -100 when absent
---@return table losses, table logarithms
function reference.cross_entropy(X, T, o)
  local x, t = list_of("cross_entropy: X", X), list_of("cross_entropy: T", T)
  local m, n, shape = rows_of("cross_entropy", x)
  if t.n ~= m then
    fail("cross_entropy: T is %s; %d targets are needed, one for each row of X",
      t.layout, m)
  end
  o = options("cross_entropy", {ignore = "integer"}, o)
  local ignore, loss, lse = o.ignore or -100, {}, {}
  for r = 0, m - 1 do
    local most, sum = exponentials(x, r * n, n)
    lse[r] = most + math.log(sum)
    local inside = t[r] >= 0 and t[r] < n
    loss[r] = t[r] == ignore and 0.0
      or inside and lse[r] - x[r * n + (t[r] // 1 | 0)] or 0 / 0
  end
  return tensor_of(loss, shape), tensor_of(lse, shape)
end

local NORM = {eps = "number", residual = "tensor", save = "boolean"}

-- Returns the results of rmsnorm or layernorm: Y, then H = X + residual if
-- there is a residual, then, if o.save is set, Mean of layernorm and Rstd.
local function normalized(what, X, W, B, o, centred)
  o = options(what, NORM, o)
  local x = list_of(what .. ": X", X)
  local m, n, shape = rows_of(what, x)
  local residual = o.residual and list_of(what .. ": residual", o.residual)
  if residual and not same(residual.shape, x.shape) then
    fail("%s: residual is %s; the shape of X, %s, is needed", what,
         residual.layout, x.layout)
  end
  local function vector(name, v)
    local list = v and list_of(("%s: %s"):format(what, name), v)
    if list and list.n ~= n then
      fail("%s: %s is %s; %d elements are needed", what, name, list.layout, n)
    end
    return list
  end
  local w, b, y, means, rstds = vector("W", W), vector("B", B), {}, {}, {}
  for i = 0, residual and m * n - 1 or -1 do x[i] = x[i] + residual[i] end
  for r = 0, m - 1 do
    local mean, squares = 0.0, 0.0
    if centred then
      for i = r * n, r * n + n - 1 do mean = mean + x[i] / n end
    end
    for i = r * n, r * n + n - 1 do squares = squares + (x[i] - mean) ^ 2 end
    local rstd = 1 / math.sqrt(squares / n + (o.eps or centred and 1e-5
      or 1e-6))
    means[r], rstds[r] = mean, rstd
    for i = 0, n - 1 do
      y[r * n + i] = (x[r * n + i] - mean) * rstd * (w and w[i] or 1)
        + (b and b[i] or 0)
    end
  end
  local out = {tensor_of(y, x.shape)}
  if residual then out[#out + 1] = tensor_of(x, x.shape) end
  if o.save and centred then out[#out + 1] = tensor_of(means, shape) end
  if o.save then out[#out + 1] = tensor_of(rstds, shape) end
  return table.unpack(out)
end

--- Returns Y = H / sqrt(mean(H^2) + eps) * W along the last mode, where H = X +
-- residual. Then returns H if there is a residual, and 1 / sqrt(mean(H^2) +
-- eps) if `save` is true.
---@param X table (...,N)
---@param W? table (N)
---@param o? {eps: number, residual: any, save: boolean} eps: 1e-6 when absent
---@return table Y, table ...
function reference.rmsnorm(X, W, o)
  if core.typename(W) == "table" then W, o = nil, W end
  return normalized("rmsnorm", X, W, nil, o, false)
end

--- Returns Y = (H - mean) / sqrt(variance + eps) * W + B along the last mode,
-- where H = X + residual. Then returns H if there is a residual, and the mean
-- and 1 / sqrt(variance + eps) if `save` is true.
---@param X table (...,N)
---@param W? table (N)
---@param B? table (N)
---@param o? {eps: number, residual: any, save: boolean} eps: 1e-5 when absent
---@return table Y, table ...
function reference.layernorm(X, W, B, o)
  if core.typename(W) == "table" then W, B, o = nil, nil, W end
  if core.typename(B) == "table" then B, o = nil, B end
  return normalized("layernorm", X, W, B, o, true)
end

local REDUCTIONS = {
  sum = function(s, x) return s + x, 0.0 end,
  prod = function(s, x) return s * x, 1.0 end,
  max = function(s, x) return x > s and x or s, -math.huge end,
  min = function(s, x) return x < s and x or s, math.huge end,
  amax = function(s, x) return math.abs(x) > s and math.abs(x) or s, 0.0 end,
  norm = function(s, x) return s + x * x, 0.0 end}
REDUCTIONS.mean, REDUCTIONS.rms = REDUCTIONS.sum, REDUCTIONS.norm
local AT_END = {
  mean = function(s, n) return s / n end, norm = math.sqrt,
  rms = function(s, n) return math.sqrt(s / n) end}

-- Returns the set of modes, counted from 1, that the option `by` reduces.
local function modes_of(rank, o)
  local by = options("reduce", {by = "string table"}, o).by or "all"
  local named = {row = {rank - 1}, column = {rank - 2}, all = {}}
  for i = 1, rank do named.all[i] = i - 1 end
  local list, gone = type(by) == "table" and by or named[by], {}
  if not list then sign.unknown("way 'by'", by, named, "reduce") end
  for _, i in ipairs(list) do
    if math.type(i) ~= "integer" or i < 0 or i >= rank then
      fail("reduce: by = %s: X has no mode %s; it has modes 0 to %d",
        core.show(by), core.show(i), rank - 1)
    end
    gone[i + 1] = true
  end
  return gone
end

--- Reduces modes of X by `op`: sum, mean, prod, max, min, amax, norm or rms.
-- max, min and amax ignore NaNs.
---@param X table
---@param op string
---@param o? {by: string|integer[]} "row" (the last mode), "column" (the mode
-- before it), "all" (when absent), or a list of modes, counted from 0
---@return table
function reference.reduce(X, op, o)
  local step, x = REDUCTIONS[op], list_of("reduce: X", X)
  if not step then sign.unknown("operation", op, REDUCTIONS, "reduce") end
  local gone, shape, count = modes_of(#x.shape, o), {}, 1
  for i, n in ipairs(x.shape) do
    if gone[i] then count = count * n else shape[#shape + 1] = n end
  end
  local out, start = {}, select(2, step(0, 0))
  for r = 0, product(shape) - 1 do out[r] = start end
  for i = 0, x.n - 1 do
    local to, one, rest = 0, 1, i
    for k = #x.shape, 1, -1 do
      if not gone[k] then
        to, one = to + rest % x.shape[k] * one, one * x.shape[k]
      end
      rest = rest // x.shape[k]
    end
    out[to] = step(out[to], x[i])
  end
  local finish = AT_END[op]
  for r = 0, finish and product(shape) - 1 or -1 do
    out[r] = finish(out[r], count)
  end
  return tensor_of(out, shape)
end

---------------------------------------------------------------------------
-- Attention
---------------------------------------------------------------------------

-- Returns a tensor of `count` numbers, one for each head, as a list indexed
-- from 0.
local function of_heads(what, name, t, count)
  local list = list_of(("%s: %s"):format(what, name), t)
  if list.n ~= count then
    fail("%s: %s is %s; a number for each of %d heads is needed", what, name,
      list.layout, count)
  end
  return list
end

-- Returns f(score, batch, head, row, key), which changes and masks scores as
-- the options request; nil if no option does.
local function modifier(what, p, o)
  local slopes = o.alibi_slopes and of_heads(what, "alibi_slopes",
    o.alibi_slopes, p.h)
  local bias = o.bias and list_of(what .. ": bias", o.bias)
  if not (o.softcap or slopes or bias or o.score_mod or o.mask_mod) then
    return nil
  end
  local all = {p.b, p.h, p.s, p.t}
  if bias then check_broadcast(what .. ": bias", bias.shape, all) end
  return function(s, b, h, q, k)
    local at = {b = b, h = h, q = q, k = k}
    if o.softcap then s = o.softcap * cute.tanh(s / o.softcap) end
    if slopes then s = s - slopes[h] * math.abs(q + p.t - p.s - k) end
    if bias then
      s = s + bias[index(bias.shape, 0, all, ((b * p.h + h) * p.s + q) * p.t
        + k)]
    end
    if o.score_mod then s = o.score_mod(s, at) end
    if type(s) ~= "number" then
      fail("%s: score_mod returns %s; a number is needed", what, core.show(s))
    end
    if o.mask_mod and not o.mask_mod(at) then return -math.huge end
    return s
  end
end

local ATTENTION = {alibi_slopes = "tensor", bias = "tensor",
  causal = "boolean", mask_mod = "function", scale = "number",
  score_mod = "function", sinks = "tensor", softcap = "number",
  window = "table"}

-- Returns the numbers of keys that a row sees before and after its own
-- position; nil means all.
local function window_of(what, window)
  for i = 1, window and 2 or 0 do
    local n = window[i]
    if n ~= false and (math.type(n) ~= "integer" or n < 0) then
      fail("%s: window = %s; for each side a number of keys, or false, is "
        .. "needed", what, core.show(window))
    end
  end
  if not window then return nil, nil end
  return window[1] or nil, window[2] or nil
end

-- Returns a problem for attention_lists, made of the operands and options.
local function problem(what, Q, K, V, o)
  o = options(what, ATTENTION, o)
  local q, k, v = list_of(what .. ": Q", Q), list_of(what .. ": K", K),
    list_of(what .. ": V", V)
  if #q.shape ~= 4 or #k.shape ~= 4 or not same(k.shape, v.shape)
    or q.shape[1] ~= k.shape[1] or q.shape[4] ~= k.shape[4]
    or k.shape[3] == 0 or q.shape[3] % k.shape[3] ~= 0 then
    fail("%s: Q is %s, K is %s and V is %s; Q (B,S,H,D) and K, V (B,T,G,D) are "
      .. "needed, where H is a multiple of G", what, q.layout, k.layout,
      v.layout)
  end
  local left, right = window_of(what, o.window)
  local p = {b = q.shape[1], s = q.shape[2], h = q.shape[3], d = q.shape[4],
    t = k.shape[2], g = k.shape[3], q = q, k = k, v = v,
    left = left, right = right,
    scale = o.scale or 1 / math.sqrt(q.shape[4])}
  if o.causal then p.right = 0 end
  p.modify = modifier(what, p, o)
  if o.sinks then
    p.sinks = table.move(of_heads(what, "sinks", o.sinks, p.h), 0, p.h - 1, 1,
      {})
  end
  return p
end

--- Returns O and LSE of attention: softmax(scale Q K^T) V for each head, and
-- the logarithms of the sums of exponentials (B,H,S).
---@param Q table (B,S,H,D)
---@param K table (B,T,G,D)
---@param V table (B,T,G,D)
---@param o? table {causal: boolean, window: table, scale: number,
-- softcap: number, alibi_slopes: any, bias: any, sinks: any,
-- score_mod: function, mask_mod: function} score_mod and mask_mod get numbers
---@return table O, table LSE
function reference.attention(Q, K, V, o)
  local p = problem("attention", Q, K, V, o)
  local out, lse = lists.forward(p)
  return tensor_of(out, p.q.shape), tensor_of(lse, {p.b, p.h, p.s})
end

--- Returns dQ, dK and dV: the gradients of sum(O dO), where O is the result of
-- reference.attention. score_mod is differentiated by difference quotients.
---@param dO table (B,S,H,D)
---@param Q table
---@param K table
---@param V table
---@param o? table options of reference.attention
---@return table dQ, table dK, table dV
function reference.attention_backward(dO, Q, K, V, o)
  local p = problem("attention_backward", Q, K, V, o)
  p.go = list_of("attention_backward: dO", dO)
  if not same(p.go.shape, p.q.shape) then
    fail("attention_backward: dO is %s; the shape of Q, %s, is needed",
         p.go.layout, p.q.layout)
  end
  local dq, dk, dv = lists.backward(p)
  return tensor_of(dq, p.q.shape), tensor_of(dk, p.k.shape),
    tensor_of(dv, p.v.shape)
end

return sign.public("ops.reference.", reference, [[
  gemm(A: tensor, B: tensor, C?: tensor|table,
    opts?: {alpha beta scale_a scale_b})
  elementwise(f: function, values...)
  softmax(X: tensor)
  cross_entropy(X: tensor, T: tensor, opts?: {ignore})
  rmsnorm(X: tensor, W?: tensor|table, opts?: {eps residual save})
  layernorm(X: tensor, W?: tensor|table, B?: tensor|table,
    opts?: {eps residual save})
  reduce(X: tensor, op: string, opts?: {by})
  attention(Q: tensor, K: tensor, V: tensor, opts?: {alibi_slopes bias causal
    mask_mod scale score_mod sinks softcap window})
  attention_backward(dO: tensor, Q: tensor, K: tensor, V: tensor, opts?:
    {alibi_slopes bias causal mask_mod scale score_mod sinks softcap window})
]])
-- SPDX-License-Identifier: MIT
