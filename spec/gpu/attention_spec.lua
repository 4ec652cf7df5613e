-- Attention, its gradients and its decoding on a GPU: bit-exact with the
-- simulator.
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
-- have the results.
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

local function decoded(o, device)
  local p = oracle.problem(o)
  local parts = cute.full({o.n, p.b, p.h, p.d}, 0 / 0, cute.f32)
  local logs = cute.full({o.n, p.b, p.h}, 0 / 0, cute.f32)
  for _, k in ipairs(attention_decode {head = p.d, group = p.h // p.g}) do
    k.kernel(p.Q, p.K, p.V, p.O, p.LSE, parts, logs, p.scale):launch {
      grid = k.grid(o.n, p.h, p.b), block = k.block, device = device}
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
      check(decoded, {s = 1, t = 1000, d = d, h = 8, g = 2, b = 2, n = 5})
    end)
  end

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

  it("has them in windows, in batches, at tiny sizes", function()
    check(run, {b = 2, s = 400, t = 450, d = 64, h = 4, g = 2, left = 70,
                right = 9})
    check(run, {s = 1, t = 70, d = 64})
    check(run, {s = 300, t = 64, d = 128, right = 0})
  end)
end)
-- SPDX-License-Identifier: MIT
