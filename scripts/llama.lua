-- Generates tokens with a decoder of the Llama family, implemented with
-- cute.ops. Keys and values are cached in pages. On a GPU the prompt and all
-- steps are one graph. Weights are random, or are read from Hugging Face's
-- safetensors files.
--   cutelua scripts/llama.lua --size 8b --tokens 64
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local cute = require "cute"
local lib = require "cutelua.bench.lessonlib"
local npy = require "cute.npy"
local replay = require "cutelua.bench.replay"
local weights = require "cutelua.bench.weights"
local ops, silu = cute.ops, cute.ops.silu

-- For each model size: {width, layers, query heads, key heads, elements per
-- head, width of the SwiGLU, vocabulary size}.
local SIZES = {
  tiny = {64, 2, 4, 2, 32, 96, 50},
  ["1b"] = {2048, 16, 32, 8, 64, 8192, 128256},
  ["8b"] = {4096, 32, 32, 8, 128, 14336, 128256},
  ["70b"] = {8192, 8, 64, 8, 128, 28672, 128256}}
local PAGE, THETA, EPS = 64, 500000, 1e-5

local opt = cli.parse(arg, {
  name = "llama", about = "Generates tokens with a Llama decoder.",
  options = {
    {"--size", "choice", choices = {"tiny", "1b", "8b", "70b"},
     default = "tiny", help = "the model; 70b: eight layers of it"},
    {"--batch", "int", min = 1, default = 1, help = "sequences"},
    {"--prompt", "int", min = 1, default = 16, help = "tokens of the prompt"},
    {"--tokens", "int", min = 1, default = 8, help = "tokens to generate"},
    {"--weights", "string", help = "safetensors files, separated by commas"},
    {"--temperature", "number", default = 1, help = "divides the logits"},
    {"--top-k", "int", min = 1, default = 1, help = "draws from the N "
      .. "likeliest tokens"},
    {"--logits", "file", help = "writes the last logits to a .npy file"},
    {"--kernels", "flag", help = "times the kernels of the prompt"},
  },
  common = {"device", "arch", "seed"},
})
local N, LAYERS, H, G, D, F, V = table.unpack(SIZES[opt.size])
local job, B, S, STEPS = {name = "llama"}, opt.batch, opt.prompt, opt.tokens
local PAGES = cute.ceil_div(S + STEPS, PAGE)
local device = lib.must(job, cute.device(opt.device, opt.arch))
local where = {device = device}

local function with(o) o.device = device return o end

-- Returns a tensor over t's memory that begins at element `from` and has the
-- given shape and stride.
local function view(t, shape, stride, from)
  return cute.make_tensor(t.iterator + (from or 0),
                          cute.make_layout(shape, stride or cute.LayoutRight))
end

-- Returns a tensor whose element at each coordinate is f(coordinate).
local function filled(dtype, shape, f)
  local t = cute.zeros(shape, dtype, where)
  return ops.elementwise(function(_, at) return f(at:coords()) end, t,
                         with {out = t})
end

local weight = weights.open(opt.weights, device, opt.seed)
local embedding, layers = weight:matrix(V, N, "model.embed_tokens"), {}
for i = 1, LAYERS do
  local at = ("model.layers.%d."):format(i - 1)
  local attn, mlp = at .. "self_attn.", at .. "mlp."
  layers[i] = {
    norm1 = weight:vector(N, at .. "input_layernorm"),
    qkv = weight:matrix((H + 2 * G) * D, N, attn .. "q_proj", attn .. "k_proj",
                        attn .. "v_proj"),
    o = weight:matrix(N, H * D, attn .. "o_proj"),
    norm2 = weight:vector(N, at .. "post_attention_layernorm"),
    up = weight:matrix(2 * F, N, mlp .. "gate_proj", mlp .. "up_proj"),
    down = weight:matrix(N, F, mlp .. "down_proj"),
    k = cute.zeros({B * PAGES, PAGE, G, D}, cute.bf16, where),
    v = cute.zeros({B * PAGES, PAGE, G, D}, cute.bf16, where),
  }
end
local norm, head = weight:vector(N, "model.norm"),
                   weight:matrix(V, N, "lm_head")
local pages = filled(cute.i32, {B, PAGES}, function(b, i)
  return b * PAGES + i
end)

-- Returns a tensor (positions, D/2) of f(angle) for each position and each pair
-- of elements.
local function turns(f)
  local step = -2 / D * math.log(THETA, 2)
  return filled(cute.f32, {PAGES * PAGE, D // 2}, function(t, i)
    return f(t:to(cute.f32) * cute.exp2(i:to(cute.f32) * step))
  end)
end
local Cos, Sin = turns(cute.cos), turns(cute.sin)

-- Returns the logits (B,V) of the token that follows the tokens (B,n).
-- attend(layer, heads) must return the attention (B,n,H,D). heads(i, count)
-- returns `count` heads from head i on. The heads of q come first, then those
-- of k, then those of v.
local function forward(tokens, attend)
  local n = tokens.shape[2]
  local x, more = ops.embedding(tokens, embedding, where), nil
  -- Returns the norm of x + more. Closes both, and assigns their sum to x.
  local function normed(w)
    local a, sum = ops.rmsnorm(x, w, with {residual = more, eps = EPS})
    if more then
      more:close()
      x:close()
      x = sum
    end
    return a
  end
  -- Returns the product of a and a weight. Closes a.
  local function times(a, w, o)
    o.constant = "B"
    local y = ops.gemm(a, w, with(o))
    a:close()
    return y
  end
  for _, w in ipairs(layers) do
    local y = times(normed(w.norm1), w.qkv, {})
    local function heads(first, count)
      return view(y, {B, n, count, D}, {y.stride[1], y.stride[2], D, 1},
                  first * D)
    end
    local o = attend(w, heads)
    y:close()
    more = times(view(o, {B, n, H * D}), w.o, {})
    local u = times(normed(w.norm2), w.up, {gated = true,
      epilogue = function(gate, up) return silu(gate) * up end})
    more = times(u, w.down, {})
  end
  local h = normed(norm)
  x:close()
  return times(h(cute._, n - 1, cute._), head, {dtype = cute.f32})
end

local prompt = filled(cute.i32, {B, S}, function(b, t)
  return (b * 31 + t * 7 + opt.seed) % V
end)
local lengths, seed = cute.empty({B}, cute.i32, where),
                      cute.empty({1}, cute.i64, where)
local out, logits = cute.empty({B, STEPS}, cute.i32, where), nil

-- Samples token i from the logits.
local function draw(i)
  local token = ops.sample(logits, seed, with {temperature = opt.temperature,
                                               top_k = opt.top_k})
  ops.copy(token, out(cute._, i), where)
  for _, t in ipairs {lengths, seed} do
    ops.elementwise(function(x) return x + 1 end, t, with {out = t})
  end
  return view(token, {B, 1})
end

local function read_prompt()
  logits = forward(prompt, function(w, heads)
    local turned, rows = heads(0, H + G), {PAGES * PAGE * G * D, G * D, D, 1}
    ops.rope(turned, Cos, Sin, with {out = turned})  -- in place
    local q, k, v = heads(0, H), heads(H, G), heads(H + G, G)
    ops.copy(k, view(w.k, {B, S, G, D}, rows), where)
    ops.copy(v, view(w.v, {B, S, G, D}, rows), where)
    return ops.attention(q, k, v, with {causal = true})
  end)
end

-- Generates all tokens, beginning with the logits of the prompt.
local function generate()
  lengths:fill(S)
  seed:fill(opt.seed)
  local token = draw(0)
  for i = 1, STEPS - 1 do
    logits:close()
    logits = forward(token, function(w, heads)
      return ops.attention_decode(heads(0, H), w.k, w.v, with {
        k = heads(H, G), v = heads(H + G, G), cos = Cos, sin = Sin,
        lengths = lengths, block_table = pages, constant = "cache",
        even = true})
    end)
    token = draw(i)
  end
end

local function run() read_prompt() generate() end
run()
cute.print_tensor(out:to "host")
local last = npy.of_buffer(core.param_memory(logits:to "host"), {B, V})
if opt.logits then lib.must(job, npy.write(opt.logits, last)) end
if device.kind == "gpu" then
  local all, copy = replay.least(run, device, 1), replay.copy_speed(device)
  local first, each = replay.least(read_prompt, device),
                      replay.least(generate, device) / math.max(STEPS - 1, 1)
  local keys = LAYERS * G * D * B * (S + STEPS / 2)
  local bytes = weight.bytes - 2 * V * N + 4 * keys
  print(("all %.1f ms, prompt %.2f ms; a step %.3f ms of %.2f GB, %.0f GB/s "
    .. "(%.2f of a copy's %.0f), %.0f tokens/s"):format(all, first, each,
    bytes / 1e9, bytes / each / 1e6, bytes / each / 1e6 / copy, copy,
    B / each * 1e3))
  if opt.kernels then
    print(("prompt: %.3f of its kernels' least times"):format(first
      / replay.sum(function(timed) ops = timed read_prompt() end, device)))
  end
end
-- SPDX-License-Identifier: MIT
