-- Mamba's selective scan: a recurrence with different factors at each step.
--
-- The states stay in registers for all time steps. The inputs of later time
-- steps are loaded to shared memory at the same time. Four lanes share the 16
-- states of a channel. They sum their contributions to y by exchanging halves,
-- so that each lane ends with the sums of its own time steps.
--   cutelua scripts/selective_scan.lua --help
local cute = require "cute"
local selective_scan = require "kernels.selective_scan"

local N = 16

-- Computes one channel in Lua, as a reference. Returns y and the final states.
local function channel(p, b, d)
  local L, D, y, h = p.time, p.channels, {}, {}
  for n = 0, N - 1 do h[n] = p.h0[(b * D + d) * N + n] end
  for t = 0, L - 1 do
    local at = (b * D + d) * L + t
    local dt = math.log(1 + math.exp(p.delta[at] + p.bias[d]))
    local sum = p.D[d] * p.u[at]
    for n = 0, N - 1 do
      local in_time = (b * N + n) * L + t
      h[n] = math.exp(dt * p.A[d * N + n]) * h[n]
        + dt * p.B[in_time] * p.u[at]
      sum = sum + p.C[in_time] * h[n]
    end
    y[t + 1] = sum * p.z[at] / (1 + math.exp(-p.z[at]))
  end
  return {y = y, h1 = table.move(h, 0, N - 1, 1, {})}
end

require "cutelua.bench.harness".run(arg, {
  about = "Mamba's selective scan, 16 states, softplus and gate.",
  dims = {{"batch", "sequences"}, {"channels", "channels"}, {"time", "steps"}},
  dtypes = {"bf16", "f32", "f16"},
  sim = {{2, 40, 72}},
  gpu = {{8, 2048, 4096}, {1, 4096, 16384}},
  operands = function(p)
    local b, d, l = p.batch, p.channels, p.time
    return {{"u", {b, d, l}}, {"delta", {b, d, l}},
      {"A", {d, N}, dtype = "f32", fill = {-4, -1}}, {"B", {b, N, l}},
      {"C", {b, N, l}}, {"y", {b, d, l}, out = true}, {"z", {b, d, l}},
      {"D", {d}, dtype = "f32"}, {"bias", {d}, dtype = "f32"},
      {"h0", {b, d, N}, dtype = "f32"},
      {"h1", {b, d, N}, dtype = "f32", out = true}}
  end,
  make = function(p)
    return selective_scan {dtype = cute[p.dtype], states = N, softplus = true}
  end,
  pieces = function(p) return p.batch * p.channels end,
  reference = function(p, i)
    return channel(p, i // p.channels, i % p.channels)
  end,
})
-- SPDX-License-Identifier: MIT
