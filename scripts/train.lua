-- Trains a small transformer with AdamW. The forward and backward passes use
-- cute.ops.
--
-- The task is to continue arithmetic sequences, x[t] = a + b t mod V. The next
-- token follows from the two tokens before it, so attention is necessary. AdamW
-- stores f32 weights. The products use f16 copies, because f16 rounds more
-- finely than bf16, and these gradients are within its range. The gradients of
-- the first step are compared with finite differences of the loss.
--   cutelua scripts/train.lua --steps 200 --svg loss.svg
local chart = require "cutelua.bench.chart"
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local cute = require "cute"
local lib = require "cutelua.bench.lessonlib"
local ops = cute.ops

local opt = cli.parse(arg, {
  name = "train", about = "Trains a small transformer on counting sequences.",
  options = {
    {"--steps", "int", min = 1, default = 20, help = "steps of AdamW"},
    {"--batch", "int", min = 1, default = 16, help = "sequences of a step"},
    {"--length", "int", min = 2, default = 16, help = "tokens of a sequence"},
    {"--vocab", "int", min = 2, default = 16, help = "different tokens"},
    {"--layers", "int", min = 1, default = 1, help = "layers"},
    {"--heads", "int", min = 1, default = 2, help = "heads of 32 elements"},
    {"--rate", "number", min = 0, default = 3e-3, help = "learning rate"},
    {"--svg", "file", help = "writes a plot of the losses"},
  },
  common = {"device", "arch", "seed"},
})
local B, S, V, H, D = opt.batch, opt.length, opt.vocab, opt.heads, 32
local N, M = H * D, B * S
local job = {name = "train"}
local device = lib.must(job, cute.device(opt.device, opt.arch))
local where = {device = device}

-- Adds the device to the options of an operation.
local function with(o)
  o.device = device
  return o
end

---------------------------------------------------------------------------
-- Weights
---------------------------------------------------------------------------

local weights, list = {}, {}

-- Adds a weight with normally distributed elements. The elements are ones if no
-- deviation is given.
local function weight(name, shape, deviation)
  local w = deviation and cute.randn(shape, cute.f32, with {
    seed = opt.seed + #list}) or cute.full(shape, 1, cute.f32, where)
  if deviation then
    ops.elementwise(function(x) return x * deviation end, w, with {out = w})
  end
  local p = {name = name, master = w, m = cute.zeros(shape, cute.f32, where),
             v = cute.zeros(shape, cute.f32, where)}
  p.w = deviation and ops.convert(w, "f16", where) or w
  weights[name], list[#list + 1] = p, p
end

weight("embedding", {V, N}, 1)
for i = 1, opt.layers do
  weight("norm1." .. i, {N})
  weight("qkv." .. i, {3 * N, N}, N ^ -0.5)
  weight("o." .. i, {N, N}, N ^ -0.5)
  weight("norm2." .. i, {N})
  weight("up." .. i, {4 * N, N}, N ^ -0.5)
  weight("down." .. i, {N, 4 * N}, (4 * N) ^ -0.5)
end
weight("norm", {N})
weight("logits", {V, N}, N ^ -0.5)

local function W(name, layer) return weights[name .. "." .. layer] end

local angle = cute.tensor((function()
  local rows = {}
  for t = 0, S - 1 do
    rows[t + 1] = {}
    for i = 0, D // 2 - 1 do rows[t + 1][i + 1] = t * 1e4 ^ (-2 * i / D) end
  end
  return rows
end)(), cute.f32, where)
local Cos = ops.elementwise(cute.cos, angle, where)
local Sin = ops.elementwise(cute.sin, angle, where)

---------------------------------------------------------------------------
-- Forward and backward
---------------------------------------------------------------------------

-- Returns views Q, K and V (B,S,H,D) of a tensor (M,3N).
local function parts(t)
  local out = {}
  for i = 0, 2 do
    local from = cute.domain_offset({0, i * N}, t).iterator
    out[i + 1] = cute.make_tensor(from, cute.make_layout({B, S, H, D},
      {S * 3 * N, 3 * N, D, 1}))
  end
  return table.unpack(out)
end

local function flat(t)
  return cute.make_tensor(t.iterator, cute.make_layout({M, N}, {N, 1}))
end

-- Returns the loss of each token, and the tensors that the backward pass needs.
local function forward(tokens, targets)
  local saved = {tokens = tokens, targets = targets}
  local x = ops.embedding(tokens, weights.embedding.w, where)
  local more  -- the output of the last product, not yet added to x
  for i = 1, opt.layers do
    local s = {}
    saved[i] = s
    if more then
      s.a, x, s.r1 = ops.rmsnorm(x, W("norm1", i).w,
                                 with {residual = more, save = true})
    else
      s.a, s.r1 = ops.rmsnorm(x, W("norm1", i).w, with {save = true})
    end
    s.x1 = x
    local q, k, v = parts(ops.gemm(s.a, W("qkv", i).w, where))
    s.q, s.v = ops.rope(q, Cos, Sin, where), v
    s.k = ops.rope(k, Cos, Sin, where)
    s.o, s.lse = ops.attention(s.q, s.k, s.v, with {causal = true})
    local y = ops.gemm(flat(s.o), W("o", i).w, where)
    s.b, x, s.r2 = ops.rmsnorm(x, W("norm2", i).w,
                               with {residual = y, save = true})
    s.x2 = x
    s.u = ops.gemm(s.b, W("up", i).w, where)
    s.g = ops.elementwise(ops.silu, s.u, where)
    more = ops.gemm(s.g, W("down", i).w, where)
  end
  saved.h, saved.x, saved.r = ops.rmsnorm(x, weights.norm.w,
    with {residual = more, save = true})
  saved.y = ops.gemm(saved.h, weights.logits.w, with {dtype = cute.f32})
  local losses
  losses, saved.lse = ops.cross_entropy(saved.y, targets, where)
  return losses, saved
end

-- Returns dX for Y = X W^T. Stores the gradient of the weight p.
local function back(p, dY, X)
  p.grad = ops.gemm(cute.select(dY, {1, 0}), cute.select(X, {1, 0}),
                    with {dtype = cute.f32})
  return ops.gemm(dY, cute.select(p.w, {1, 0}), where)
end

local mean = cute.full({M}, 1 / M, cute.f32, where)

-- Computes the gradients of the mean loss for all weights, and stores them.
local function backward(s)
  local dy = ops.cross_entropy_backward(mean, s.y, s.targets, s.lse,
                                        with {dtype = cute.f16})
  local dx
  dx, weights.norm.grad = ops.rmsnorm_backward(back(weights.logits, dy, s.h),
    s.x, s.r, weights.norm.w, where)
  for i = opt.layers, 1, -1 do
    local l = s[i]
    local dg = back(W("down", i), dx, l.g)
    local du = ops.elementwise(function(g, u)
      local e = 1 / (1 + cute.exp(-u))
      return g * e * (1 + u * (1 - e))
    end, dg, l.u, where)
    dx, W("norm2", i).grad = ops.rmsnorm_backward(back(W("up", i), du, l.b),
      l.x2, l.r2, W("norm2", i).w, with {residual = dx})
    local do_ = back(W("o", i), dx, flat(l.o))
    do_ = cute.make_tensor(do_.iterator, l.o.layout)
    local dq, dk, dv = ops.attention_backward(do_, l.q, l.k, l.v, l.o, l.lse,
                                              with {causal = true})
    local dqkv = cute.empty({M, 3 * N}, cute.f16, where)
    local to_q, to_k, to_v = parts(dqkv)
    ops.rope(dq, Cos, Sin, with {inverse = true, out = to_q})
    ops.rope(dk, Cos, Sin, with {inverse = true, out = to_k})
    ops.copy(dv, to_v, where)
    dx, W("norm1", i).grad = ops.rmsnorm_backward(back(W("qkv", i), dqkv, l.a),
      l.x1, l.r1, W("norm1", i).w, with {residual = dx})
  end
  weights.embedding.grad = ops.embedding_backward(dx, s.tokens, V,
                                                  with {dtype = cute.f32})
end

---------------------------------------------------------------------------
-- Training
---------------------------------------------------------------------------

local seed = opt.seed

-- Returns new sequences of tokens and the token after each. Both are (M) of
-- i32.
local function batch()
  local tokens, targets = {}, {}
  seed = seed + 1
  local draw = cute.rand({B, 2}, cute.f32, {seed = seed})
  for b = 0, B - 1 do
    local first, step = draw(b, 0) * V // 1, 1 + draw(b, 1) * (V - 1) // 1
    for t = 0, S - 1 do
      tokens[#tokens + 1] = (first + step * t) % V // 1
      targets[#targets + 1] = t == 0 and -100  -- step still unknown
        or (first + step * (t + 1)) % V // 1
    end
  end
  return cute.tensor(tokens, cute.i32, where),
         cute.tensor(targets, cute.i32, where)
end

local scale = S / (S - 1)  -- the first of S tokens has no loss

local function loss_of(tokens, targets)
  local losses, saved = forward(tokens, targets)
  return ops.reduce(losses, "mean", where):to "host"(0) * scale, saved
end

-- Compares gradients with finite differences. For each weight w with gradient
-- g, the derivative of the loss along g is |g|^2. It should equal (L(w + e g) -
-- L(w - e g)) / 2e. Returns the largest relative error.
local function check(tokens, targets)
  local most = 0
  for _, p in ipairs(list) do
    local g2 = ops.reduce(p.grad, "norm", where):to "host"(0) ^ 2 * scale
    local w2 = ops.reduce(p.master, "norm", where):to "host"(0) ^ 2
    local e = 0.01 * (w2 / g2) ^ 0.5
    local saved, got = p.w, {}
    for i, sign in ipairs {1, -1} do
      local by = sign * e
      p.w = ops.elementwise(function(w, g) return w + by * g end, p.master,
                            p.grad, with {dtype = saved.element_type})
      got[i] = loss_of(tokens, targets)
    end
    p.w = saved
    local err = math.abs((got[1] - got[2]) / (2 * e) / g2 - 1)
    print(("  %-12s |g| %.2e  error %.4f"):format(p.name, g2 ^ 0.5, err))
    most = math.max(most, err)
  end
  return most
end

-- Applies one step of AdamW (Loshchilov and Hutter, 2019) to all weights.
local function update(step)
  local b1, b2, eps, decay, rate = 0.9, 0.99, 1e-8, 0.01, opt.rate
  local c1, c2 = 1 / (1 - b1 ^ step), 1 / (1 - b2 ^ step)
  for _, p in ipairs(list) do
    local function adam(w, g, m, v)
      local m1, v1 = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
      return w - rate * (m1 * c1 / (cute.sqrt(v1 * c2) + eps) + decay * w),
             m1, v1
    end
    ops.elementwise(adam, p.master, p.grad, p.m, p.v,
                    with {out = {p.master, p.m, p.v}})
    if p.w ~= p.master then ops.copy(p.master, p.w, where) end
  end
end

local losses = {}
local start = core.clock()
for step = 1, opt.steps do
  local tokens, targets = batch()
  local loss, saved = loss_of(tokens, targets)
  backward(saved)
  if step == 1 then
    print "gradients g, beside differences of losses along g:"
    print(("  largest relative error: %.4f"):format(check(tokens, targets)))
  end
  update(step)
  losses[step] = loss
  if step % math.max(1, opt.steps // 10) == 0 or step == 1 then
    print(("step %4d  loss %.4f"):format(step, loss))
  end
end
print(("%d steps, %.1f s, on %s"):format(opt.steps, core.clock() - start,
                                       tostring(device)))
if opt.svg then
  lib.must(job, cli.write_file(opt.svg, chart.lines {
    title = "Loss of counting sequences", x = "steps", y = "mean loss",
    values = losses}))
end
-- SPDX-License-Identifier: MIT
