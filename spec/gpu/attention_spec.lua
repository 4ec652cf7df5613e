-- Tests attention, its gradients and its decoding on a GPU: results must equal
-- the simulator's bit for bit.
local core = require "cute.core"
local cute = require "cute"
local attention = require "kernels.attention"
local attention_bwd = require "kernels.attention_bwd"
local attention_bwd_sm90 = require "kernels.attention_bwd_sm90"
local attention_decode = require "kernels.attention_decode"
local attention_sm90 = require "kernels.attention_sm90"
local oracle = require "spec.attention"

local NAMES = {"Q", "K", "V", "O", "dO", "LSE", "delta", "dQ", "dK", "dV"}

-- Runs all attention kernels on a device. Returns the problem, whose tensors
-- then have the results.
local function run(o, device)
  local p = oracle.problem(o)
  local how = {head = p.d, window = {p.left or false, p.right or false}}
  local f = attention(how)
  f.kernel(p.Q, p.K, p.V, p.O, p.LSE, p.scale):launch {
    grid = f.grid(p.s, p.h, p.b), block = f.block, device = device}
  for _, k in ipairs(attention_bwd(how)) do
    k.kernel(p.Q, p.K, p.V, p.O, p.dO, p.LSE, p.delta, p.dQ, p.dK, p.dV,
      p.scale):launch {grid = k.grid(p.s, p.t, p.h, p.g, p.b),
                       block = k.block, device = device}
  end
  return p
end

-- Runs the attention kernels for Hopper on a device.
local function hopper(o, device)
  local p = oracle.problem(o)
  local how = {head = p.d, dtype = p.dtype, window = {p.left or false,
                                                      p.right or false}}
  local launch = {scale = p.scale, device = device}
  attention_sm90(how).prepare(p.Q, p.K, p.V, p.O, p.LSE, launch):launch()
  for _, l in ipairs(attention_bwd_sm90(how).prepare(p.Q, p.K, p.V, p.O, p.dO,
    p.LSE, p.dQ, p.dK, p.dV, launch)) do l:launch() end
  return p
end

-- Runs the attention kernel for Hopper on sequences of different lengths, with
-- sinks. Returns O and LSE.
local function ragged(device)
  local Q = cute.randn({500, 4, 128}, cute.bf16, {seed = 1})
  local K = cute.randn({460, 2, 128}, cute.bf16, {seed = 2})
  local O = cute.full({500, 4, 128}, 0 / 0, cute.bf16)
  local LSE = cute.full({4, 500}, 0 / 0, cute.f32)
  attention_sm90 {head = 128, causal = true, ragged = true}.prepare(Q, K, K, O,
    LSE, {device = device, more = {
      cu_q = cute.tensor({0, 200, 200, 264, 500}, cute.i32),
      cu_k = cute.tensor({0, 180, 190, 254, 460}, cute.i32),
      sinks = cute.tensor({0.5, -1, 3, 0}, cute.f32)}}):launch()
  return O, LSE
end

local function decoded(o, device)
  local p = oracle.problem(o)
  local made = attention_decode {head = p.d, group = p.h // p.g, rows = p.s,
                                 bits = o.bits, wgmma = o.wgmma}
  if o.bits then
    p.K = cute.ops.convert(p.K, cute.e4m3, {device = "sim"})
    p.V = cute.ops.convert(p.V, cute.e4m3, {device = "sim"})
  end
  local n, value = made.plan(p.t, p.s, p.h, p.b, o.sms), made.options.value
  local parts = cute.full({n.slots, made.rows, value}, 0 / 0, cute.f32)
  local logs = cute.full({n.slots, made.rows}, 0 / 0, cute.f32)
  if value < p.d then
    p.O = cute.full({p.b, p.s, p.h, value}, 0 / 0, p.dtype)
  end
  for _, k in ipairs(made) do
    k.kernel(p.Q, p.K, p.V, p.O, p.LSE, parts, logs, p.scale):launch {
      grid = k.grid(n, p.s, p.h, p.b), block = k.block, device = device}
  end
  return p
end

local function check(f, o)
  local device = assert(cute.device "gpu")
  local gpu, sim = f(o, device), f(o, "sim:" .. device.arch)
  for _, name in ipairs(NAMES) do
    local a, b = core.param_memory(gpu[name]), core.param_memory(sim[name])
    assert.is_true((a:equal(b)), ("%s, s=%d t=%d d=%d"):format(name, o.s,
      o.t or o.s, o.d))
  end
end

describe("attention on a GPU #gpu", function()
  for _, d in ipairs {32, 64, 96, 128, 192, 256} do
    it("has the simulator's bits with heads of " .. d, function()
      check(run, {s = 256, d = d, h = 2, g = 1})
      check(run, {s = 200, t = 333, d = d, right = 0, dtype = cute.f16})
      check(decoded, {s = 1, t = 1000, d = d, h = 8, g = 2, b = 2, sms = 2})
      check(decoded, {s = 5, t = 500, d = d, h = 8, g = 2, b = 2, sms = 2})
    end)
  end

  it("has the simulator's bits with latent heads", function()
    check(decoded, {s = 1, t = 300, d = 576, h = 16, g = 1, b = 2, sms = 2})
    check(decoded, {s = 2, t = 100, d = 576, h = 23, g = 1, sms = 1})
    if assert(cute.device "gpu").arch == "sm_90a" then
      check(decoded, {s = 2, t = 200, d = 576, h = 23, g = 1, sms = 1,
                      wgmma = true})
    end
  end)

  it("has the simulator's bits with keys of e4m3", function()
    check(decoded, {s = 1, t = 300, d = 128, h = 8, g = 1, sms = 1, bits = 8})
    check(decoded, {s = 5, t = 200, d = 96, h = 8, g = 2, sms = 1, bits = 8})
  end)

  for _, d in ipairs {64, 96, 128, 192, 256} do
    it("has them on wgmma with heads of " .. d, function()
      if assert(cute.device "gpu").arch ~= "sm_90a" then
        pending "needs sm_90a"
        return
      end
      check(hopper, {s = 256, d = d, h = 2, g = 1})
      check(hopper, {b = 2, s = 200, t = 333, d = d, h = 2, right = 0,
                     dtype = cute.f16})
      check(hopper, {s = 333, t = 300, d = d, left = 70, right = 9})
    end)
  end

  it("has them on wgmma for sequences of different lengths", function()
    local device = assert(cute.device "gpu")
    if device.arch ~= "sm_90a" then
      pending "needs sm_90a"
      return
    end
    local gpu, sim = {ragged(device)}, {ragged "sim:sm_90a"}
    for i = 1, 2 do
      local a, b = core.param_memory(gpu[i]), core.param_memory(sim[i])
      assert.is_true((a:equal(b)))
    end
  end)

  it("has them in windows, in batches, at tiny sizes", function()
    check(run, {b = 2, s = 400, t = 450, d = 64, h = 4, g = 2, left = 70,
                right = 9})
    check(run, {s = 1, t = 70, d = 64})
    check(run, {s = 300, t = 64, d = 128, right = 0})
  end)
end)
-- SPDX-License-Identifier: MIT
