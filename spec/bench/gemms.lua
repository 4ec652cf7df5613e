-- Measures the GEMMs of spec/gemms.lua on a GPU, in microseconds, as lines of
-- docs/measured/gemm_ways.tsv:
--
--    cutelua spec/bench/gemms.lua [--m 2048] [--n 2048] [--k 2048]
--            [--rounds 3]
--
-- Variants whose result differs from cuBLAS's are reported and not timed.
local card = require "spec.card"
local core = require "cute.core"
local cute = require "cute"
local gemms = require "spec.gemms"
local gpu = require "cute.gpu"
local measure = require "spec.measure"

local device = measure.gpu_device(90)
if not device then return end
local dev = device.dev

local options = card.options {m = "2048", n = "2048", k = "2048", rounds = "3",
                              warm = "15", hot = "15"}
local m, n, k = tonumber(options.m), tonumber(options.n), tonumber(options.k)

-- Returns a tensor with this layout in its own GPU memory. With a seed, its
-- elements are random.
local function tensor(layout, seed)
  local count = cute.cosize(layout)
  local memory = card.matrix(dev, "bf16", count, seed)
  return core.on_device(cute.make_tensor(core.buffer("bf16", count), layout),
                        memory), memory
end

-- Operands A and B and cuBLAS's product D. The key is the number of padding
-- elements after each row.
local operands = {}
local function operand(g)
  local o = operands[g.pad]
  if o then return o end
  local a, b = gemms.layouts(g, m, n, k)
  o = {}
  o.A, o.a = tensor(a, 1)
  o.B, o.b = tensor(b, 1 << 40)
  if g.pad == 0 then
    o.D = card.matrix(dev, "bf16", m * n)
    assert(gpu.cublas {m = m, n = n, k = k, A = o.a, B = o.b,
                       D = o.D}):launch()
    dev:sync()
  end
  operands[g.pad] = o
  return o
end

local list, registers = {}, {}
for _, g in ipairs(gemms.list) do
  local o = operand(g)
  local C, memory = tensor(select(3, gemms.layouts(g, m, n, k)))
  local run = assert(g.make(o.A, o.B, C, {device = "gpu"}))
  run:launch()
  dev:sync()
  local _, wrong = 0, 0
  if o.D then
    _, wrong = card.difference(dev, memory, o.D, 0.0079,
                               4e-6 * math.sqrt(k) * 8)
  end
  if wrong == 0 then
    list[#list + 1] = {name = g.name, launch = run}
    registers[g.name] = run.resources.registers
  end
  if wrong > 0 then print(("# WRONG: %s, %d"):format(g.name, wrong)) end
end

local r = card.bench(list, options)
local p <close> = io.popen "nvidia-smi --query-gpu=driver_version \z
  --format=csv,noheader 2>/dev/null"
print(("# %s, driver %s, %s"):format(device.name, p:read "l" or "unknown",
                                     os.date "%Y-%m-%d"))
for _, c in ipairs(list) do
  local x = r[c.name]
  print(("%s\t%d\t%d\t%d\t%.2f\t%.2f\t%d"):format(c.name, m, n, k,
    x.hot.median * 1e3, x.cold.median * 1e3, registers[c.name]))
end
-- SPDX-License-Identifier: MIT
