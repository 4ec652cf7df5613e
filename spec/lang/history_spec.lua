-- Tests the history of launches: counters on the simulator, and times on a GPU.
-- A fake driver replaces the GPU. Between two events it reports 2 ms, plus 1 ms
-- for each element.
local cute = require "cute"
local fake = require "spec.gpu.fake"
local events = require "cutelua.program.events"
local history = require "cute.lang.history"

-- A script with the kernel axpy, which the fake driver recognizes by its name.
local CODE = [[
  local cute = require "cute"
  local runs = require "cute.lang.history"
  local events = require "cutelua.program.events"
  local axpy = cute.kernel("axpy", function(y, x, a, n, shift)
    local i = cute.arch.thread_idx()
    cute.when(i:lt(n), function()
      y[i] = x[i] * a + shift:to(cute.f32)
    end)
  end)
  local function launch(y, x, stream)
    axpy(y, x, 2.0, 8, 1 << 40):launch {grid = 1, block = 32, device = "gpu",
                                        stream = stream}
  end
  local x = cute.full({8}, 1, cute.f32, {device = "gpu"})
  local y = cute.full({8}, 0, cute.f32, {device = "gpu"})
  local last
  local function watch(p, noted)
    assert(p.program.runs.last == noted)
    last = noted
  end
  runs.watcher = watch
  launch(x, x)
  print(last.device ~= nil, last.seconds, #last.events)
  print(events.seconds(last), last.events, events.seconds(last))
  local s = cute.stream "gpu"
  launch(y, x, s)
  print(events.seconds(last))
  launch(cute.zeros({8}, cute.f32), cute.zeros({8}, cute.f32))
  print(events.seconds(last))
]]

describe("the history of runs", function()
  it("have the counters of the last launch on the simulator", function()
    local k = cute.kernel("k", function(m)
      m[cute.arch.thread_idx()] = 1.0
    end)
    local t = cute.zeros({64}, cute.f32)
    local seen = {}
    history.watcher = function(p, last) seen[#seen + 1] = {p, last} end
    local report = k(t):launch {grid = 1, block = 64, device = "sim"}
    history.watcher = nil
    k(t):launch {grid = 1, block = 64, device = "sim"}
    local p, last = table.unpack(seen[1])
    assert.equal(1, #seen)
    assert.equal("k", p.program.info.name)
    assert.equal(256, last.bytes)
    assert.equal(8, last.sectors)
    assert.equal(2, last.requests)
    assert.equal(0, last.conflicts)
    assert.equal(report.instructions, last.instructions)
    assert.equal(report.seconds, events.seconds(last))
    assert.is_true(p.program.runs.last ~= last)
  end)

  it("has times between two events if recorded", function()
    if not (fake.there and require "cute.jit".version()) then
      return pending "needs a compiler and NVRTC"
    end
    fake.build()
    local out, err = fake.run(CODE)
    fake.remove()
    assert.equal("", err)
    assert.equal("true\tnil\t2\n0.01\tnil\t0.01\n0.01\n0.01\n", out)
  end)
end)
-- SPDX-License-Identifier: MIT
