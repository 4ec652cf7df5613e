-- Tests the fast path of repeated calls of cute.ops, which runs no Lua. It must
-- launch with the same kernel parameters as Lua's path. A fake driver prints
-- the parameters of launches.
local fake = require "spec.gpu.fake"
local support = require "spec.support"

local HEAD = [[
local cute = require "cute"
local devices = require "cute.lang.devices"
local ops = cute.ops
local gpu = {device = "gpu"}
local function new(t, ...) return cute.zeros({...}, t or "bf16", gpu) end
local function at(t)
  return core.param_memory(t).address
end
local function say(text) io.stderr:write(text, "\n") end
local function forget()  -- what is ready: Lua runs the next call
  for _, f in ipairs(devices.trims) do f() end
  collectgarbage()
  collectgarbage()
end
local function instructions(f)
  local n = 0
  debug.sethook(function() n = n + 1 end, "", 1)
  f()
  debug.sethook()
  return n
end
]]

-- Lua code that defines f(i). f(1) and f(2) call one operation with equal
-- configurations but different tensors.
local CASES = {
  ["mma.sync, rows that TMA does not take"] = [[
    local A, B, D = {}, new(nil, 40, 41), {}
    for i = 1, 2 do A[i], D[i] = new(nil, 72, 41), new(nil, 72, 40) end
    function f(i) ops.gemm(A[i], B, {out = D[i]}) end]],
  ["matrices that are moved"] = [[
    local A, D, B = {}, {}, new("e4m3", 160, 640)
    local function rows(t, n)
      return cute.make_tensor(new(t, 20, n + 1).iterator,
                              cute.make_layout({20, n}, {n + 1, 1}))
    end
    for i = 1, 2 do A[i], D[i] = rows("e4m3", 640), rows("bf16", 160) end
    function f(i) ops.gemm(A[i], B, {out = D[i], batch_invariant = true}) end]],
  ["TMA, with a new result"] = [[
    local A, B = {new(nil, 64, 64), new(nil, 64, 64)}, new(nil, 64, 64)
    function f(i)
      core.param_memory((ops.gemm(A[i], B))):close()
    end]],
  ["TMA, D^T = B A^T, batches, views"] = [[
    local A, D = new(nil, 4, 8, 64), new(nil, 4, 8, 256)
    local B = new(nil, 256, 64)
    local _ = cute._
    function f(i)
      local from = {2 * i - 2, 0, 0}
      local function part(t)
        return cute.local_tile(t, {2, t.shape[2], t.shape[3]}, {i - 1, 0, 0})
      end
      ops.gemm(part(A), B, {out = part(D)})
    end]],
  ["FMA units, factors that change, C"] = [[
    local A, B, C = new("f32", 40, 40), new("f32", 40, 40), new("f32", 40, 40)
    local D = {new("f32", 40, 40), new("f32", 40, 40)}
    function f(i)
      ops.gemm(A, B, C, {alpha = 2.5 * i, beta = 0.5 + i, out = D[i]})
    end]],
  ["f64, whose factors go in two halves"] = [[
    local A, B, D = new("f64", 40, 40), new("f64", 40, 40), new("f64", 40, 40)
    function f(i)
      local s = i / 3
      ops.gemm(A, B, {alpha = i + 1 / 3, out = D,
                      epilogue = function(acc) return acc * s end})
    end]],
  ["whole numbers as factors of floats"] = [[
    local A, B, D = new(nil, 64, 64), new(nil, 64, 64), new(nil, 64, 64)
    function f(i)
      ops.gemm(A, B, {alpha = 1 + i, scale_a = 3 * i, scale_b = 0.5 * i,
                      out = D})
    end]],
  ["epilogues anew in each call, with what is around them"] = [[
    local A, B, D = new(nil, 64, 64), new(nil, 64, 64), new(nil, 64, 64)
    local bias = {new("f32", 64), new("f32", 64)}
    local lib = {scale = 1.5, mode = "x"}
    local function shifted(x) return x + lib.scale end
    offset = 7
    function f(i)
      local b, seed = bias[i], 1 << 33 | i
      lib.scale, offset = i + 0.25, 3 * i
      ops.gemm(A, B, {out = D, epilogue = function(acc, at)
        return at:dropout(shifted(acc + at:col(b)) + offset * 1.0, 0.5, seed)
      end})
    end]],
  ["further results and reductions"] = [[
    local A, B = {new(nil, 64, 64), new(nil, 64, 64)}, new(nil, 64, 64)
    local function e(acc, at)
      return acc, at:row_reduce("rms", acc), acc:to(cute.f16),
        at:reduce("sum", acc)
    end
    function f(i)
      local r = {ops.gemm(A[i], B, {epilogue = e})}
      for k = 4, 1, -1 do core.param_memory(r[k]):close() end
    end]],
  ["K that is split, with counts"] = [[
    local A, B = {new(nil, 16, 2050), new(nil, 16, 2050)}, new(nil, 16, 2050)
    local D = new(nil, 16, 16)
    function f(i) ops.gemm(A[i], B, {out = D}) end]],
  ["factors of blocks of 8-bit floats"] = [[
    local A, B, D = new("e4m3", 64, 256), new("e4m3", 64, 256), new(nil, 64, 64)
    local a, b = {new("f32", 64, 2), new("f32", 64, 2)}, new("f32", 1, 2)
    function f(i) ops.gemm(A, B, {out = D, scale_a = a[i], scale_b = b}) end]],
  ["weights of 8 bits that are converted"] = [[
    local A, D = {new(nil, 64, 64), new(nil, 64, 64)}, new(nil, 64, 64)
    local B, s = {new("i8", 64, 64), new("i8", 64, 64)}, new("f32", 64)
    local sm80 = require "cute.ops.family.sm80"  -- faster for so few rows
    function sm80.takes() return "it is not asked" end
    function f(i) ops.gemm(A[i], B[i], {out = D, scale_b = s}) end]],
  ["gates"] = [[
    local A, B, D = {new(nil, 64, 64), new(nil, 64, 64)}, new(nil, 64, 64),
      new(nil, 64, 32)
    function f(i)
      ops.gemm(A[i], B, {gated = true, out = D, epilogue = function(g, u)
        return ops.relu(g) * u
      end})
    end]],
  ["weights of 4 bits"] = [[
    local W = ops.int4(function(n, k) return (n + k) % 16 end, 64, 128)
    local S = new(nil, 64)
    local A, D = {new(nil, 8, 128), new(nil, 8, 128)}, new(nil, 8, 64)
    W = {W:to "gpu", W:to "gpu"}
    function f(i) ops.gemm(A[i], W[i], {scale_b = S, out = D}) end]],
}

-- Lua code whose calls f(1), f(2) ... differ in one thing. The letters before
-- the code say which calls launch the same kernel: those with equal letters.
local CHANGES = {
  ["a string that the epilogue compares"] = {"AABBA", [[
    local A, B = new(nil, 64, 64), new(nil, 64, 64)
    local mode = "relu"
    function f(i)
      mode = (i == 3 or i == 4) and "none" or "relu"
      ops.gemm(A, B, {epilogue = function(acc)
        return mode == "relu" and ops.relu(acc) or acc
      end})
    end]]},
  ["a function that it calls"] = {"AABB", [[
    local A, B = new(nil, 64, 64), new(nil, 64, 64)
    local function act(x) return ops.relu(x) end
    local function e(acc) return act(acc) end
    function f(i)
      if i == 3 then act = function(x) return x * 2.0 end end
      ops.gemm(A, B, {epilogue = e})
    end]]},
  ["a global function, and a field"] = {"AABCC", [[
    local A, B = new(nil, 64, 64), new(nil, 64, 64)
    local lib = {act = ops.relu}
    function more(x) return x end
    local function e(acc) return more(lib.act(acc)) end
    function f(i)
      if i == 3 then lib.act = ops.silu end
      if i == 4 then function more(x) return x + 1.0 end end
      ops.gemm(A, B, {epilogue = e})
    end]]},
  ["what lies deeper in a table"] = {"AABBA", [[
    local A, B = new(nil, 64, 64), new(nil, 64, 64)
    local cfg = {act = {slope = 0.5}}
    local function e(acc) return acc * cfg.act.slope end
    function f(i)
      cfg.act.slope = (i == 3 or i == 4) and 0.25 or 0.5
      ops.gemm(A, B, {epilogue = e})
    end]]},
  ["what a function in a table takes from around it"] = {"AABB", [[
    local A, B = new(nil, 64, 64), new(nil, 64, 64)
    local slope = 0.5
    local lib = {act = {function(x) return x * slope end}}
    local function e(acc) return lib.act[1](acc) end
    function f(i)
      if i == 3 then slope = 2.0 end
      ops.gemm(A, B, {epilogue = e})
    end]]},
  ["the type of what it captures"] = {"AABBCCA", [[
    local A, B = new(nil, 64, 64), new(nil, 64, 64)
    local with = {2.5, 3.5, new("f32", 1), new("f32", 1), new("bf16", 1),
                  new("bf16", 1), 4.5}
    local function e(acc, at)
      local x = with.now
      return acc * (core.typename(x) == "value" and x or x[0]:to(cute.f32))
    end
    function f(i)
      with.now = with[i]
      ops.gemm(A, B, {epilogue = e})
    end]]},
  ["strides, extents that are marked, and where an operand begins"] =
    {"AABCCD", [[
    local B, t = new(nil, 64, 64), new(nil, 8192)
    local function view(from, m, stride)
      return cute.make_tensor(t.iterator + from,
        cute.make_layout({m, 64}, {stride, 1}))
    end
    local A = {view(0, 64, 64), view(128, 64, 64), view(0, 64, 72),
      view(0, 48, 64), view(0, 48, 64):mark_layout_dynamic(), view(1, 64, 64)}
    function f(i) ops.gemm(A[i], B) end]]},
  ["that two operands are one"] = {"AABB", [[
    local A, B, D = new("f32", 64, 64), new("f32", 64, 64), new("f32", 64, 64)
    local C = {B, B, D, D}
    function f(i) ops.gemm(A, B, C[i], {out = D}) end]]},
}

-- Returns standard output, and the driver's launches between prints of "-".
local function run(code, more)
  local env = {FAKE_PARAMS = "1"}
  for k, v in pairs(more or {}) do env[k] = v end
  local out, err, status = fake.run(HEAD .. code, nil, env)
  assert.equal(0, status, err)
  local parts = {{}}
  for _, line in ipairs(support.lines(err)) do
    if line == "-" then parts[#parts + 1] = {} end
    if line:find "^launch " then table.insert(parts[#parts], line) end
  end
  return out, parts
end

describe("repeated calls", function()
  setup(function() fake.build "-DFAKE_CLUSTERS" end)
  teardown(fake.remove)

  local names = {}
  for name in pairs(CASES) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local code = CASES[name]
    it("launch the same as through Lua: " .. name .. support.long(i, 3),
       function()
      if not require "cute.jit".version() then return pending "needs NVRTC" end
      local out, parts = run("local f\n" .. code .. [[
        f(1)
        say "-"
        f(2)
        say "-"
        print(instructions(function() f(1) end))
        say "-"
        f(2)
        say "-"
        forget()
        f(2)
        say "-"
        forget()
        f(1)]])
      -- `out` is microseconds per call; about 2 are usual
      assert.truthy(tonumber(out) < 250, out)
      assert.equal(6, #parts)
      assert.truthy(#parts[2] > (name:find "moved" and 2 or 0))
      assert.same(parts[5], parts[4])
      assert.same(parts[5], parts[2])
      assert.same(parts[6], parts[3])
      assert.are_not.same(parts[5], parts[6])
    end)
  end

  -- Returns one letter per launch line, such as "ABA"; equal letters mean the
  -- same kernel.
  local function letters(lines)
    local seen, n, out = {}, 0, {}
    for i, line in ipairs(lines) do
      local f = line:match "^launch %S+ (%S+)"
      if not seen[f] then
        seen[f], n = string.char(65 + n), n + 1
      end
      out[i] = seen[f]
    end
    return table.concat(out)
  end

  local changes = {}
  for name in pairs(CHANGES) do changes[#changes + 1] = name end
  table.sort(changes)
  for i, name in ipairs(changes) do
    local c = CHANGES[name]
    it("see that something is another: " .. name .. support.long(i, 3),
       function()
      if not require "cute.jit".version() then return pending "needs NVRTC" end
      local _, parts = run("local f\n" .. c[2] ..
        ("\nfor i = 1, %d do f(i) end"):format(#c[1]))
      assert.equal(c[1], letters(parts[1]))
    end)
  end

  it("are the same without options, with less of Lua", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local out, parts = run [[
      local A, B = new(nil, 64, 64), new(nil, 64, 64)
      for _, o in ipairs {{}, {alpha = 1}} do ops.gemm(A, B, o) end
      ops.gemm(A, B, nil, nil)
      print(instructions(function() ops.gemm(A, B) end))
      print(instructions(function() ops.gemm(A, B, {}) end))]]
    local none, empty = out:match "(%d+)\n(%d+)"
    assert.is_true(tonumber(none) < 0.7 * tonumber(empty), out)
    assert.equal("AAAAA", letters(parts[1]))
  end)

  it("get the same checks as first calls", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local out = run [[
      local A, B, D = new(nil, 64, 64), new(nil, 64, 64), new(nil, 64, 64)
      for _ = 1, 2 do ops.gemm(A, B, {out = D}) end
      local k = 0
      for _, o in ipairs {{out = D, alfa = 2}, {out = A}, {out = D, tf32 = 1},
                          {out = D, epilogue = function(x)
                            k = k + 1
                            return x
                          end}} do
        print((message(ops.gemm, A, B, o)))
      end
      core.param_memory(B):close()
      print((message(ops.gemm, A, B, {out = D})))]]
    local found = support.lines(out)
    for i, want in ipairs {
      "ops.gemm: no option 'alfa'", "ops.gemm: out shares memory with A",
      "ops.gemm: tf32 = 1: a boolean is needed",
      "assigns 'k', which is defined outside of it; a function that "
        .. "cute.ops traces cannot keep state",
      "the device buffer was closed"} do
      assert.truthy(found[i]:find(want, 1, true), found[i])
    end
    assert.equal(5, #found)
  end)
end)

describe("repeated calls", function()
  setup(function() fake.build "-DFAKE_CLUSTERS" end)
  teardown(fake.remove)

  it("are not of streams alone: each has its counts, none waits for another's "
     .. "memory", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local _, parts = run([[
      local A, B, D = new(nil, 16, 2050), new(nil, 16, 2050), new(nil, 16, 16)
      local s = {cute.stream(), cute.stream()}
      local function f(i)
        if i == 3 then ops.gemm(A, B, {out = D})
        else cute.with_stream(s[i], ops.gemm, A, B, {out = D}) end
      end
      for _ = 1, 2 do for i = 1, 3 do f(i) end end
      cute.synchronize()
      say "-"
      for i = 1, 3 do f(i) end
      say "-"
      for i = 1, 3 do f(i) end]], {FAKE_SAY = "1"})
    local first, again = parts[2], parts[3]
    assert.equal(3, #first)
    assert.same(first, again)
    local seen = {}
    -- Compares only the first two launches. The third one runs in the driver's
    -- default stream, which waits for both streams.
    for i = 1, 2 do
      local line, list = first[i], {}
      for word in line:gmatch "%S+" do list[#list + 1] = word end
      for k = 8, 9 do  -- parameters 8 and 9: work counters and turn counters
        assert.is_nil(seen[list[k]])
        seen[list[k]] = true
      end
    end
  end)

  it("do not keep the memory of their operands #long", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local out = run [[
      local function used()
        collectgarbage()
        collectgarbage()
        return cute.gpu.memory().used
      end
      local before = used()
      for i = 1, 3 do
        local row, one, t = new(nil, 64), new("f32", 8), {w = new("f32", 8)}
        ops.gemm(new(nil, 16 * i, 64), new(nil, 64, 64), {
          epilogue = function(acc, at) return acc + at:col(row) end})
        ops.elementwise(function(x) return x * one[0] + t.w[1] end,
                        new("f32", i, 8), {out = new("f32", i, 8)})
        ops.copy(new("f32", i, 24), new("f32", i, 24))
        ops.transpose(ops.convert(new("f32", i, 24), "f16"))
        ops.reduce(new("f32", i, 24), "sum", {by = "row"})
      end
      print(used() - before)]]
    assert.equal("0\n", out)
  end)

  it("return new results without out, also when repeated", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local out = run([[
      local A, B, X = new(nil, 64, 64), new(nil, 64, 64), new("f32", 64, 64)
      local given = new("f32", 64, 64)
      local function two(x) return x, x + x end
      local function same(what, a, b)
        io.write(what, " ", tostring(rawequal(b, given)), " ",
                 tostring(a ~= nil and not rawequal(a, given)), "\n")
      end
      for _ = 1, 3 do
        same("gemm", ops.gemm(A, B, {out = {nil, given}, epilogue = two}))
        same("elementwise", ops.elementwise(two, X, {out = {nil, given}}))
      end]])
    assert.equal(("gemm true true\nelementwise true true\n"):rep(3), out)
  end)

  it("of graphs have their own counters of blocks", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local out, parts = run([[
      local A, B, D = new(nil, 16, 2050), new(nil, 16, 2050), new(nil, 16, 16)
      local x = new("f32", 16)
      local function sums(acc, at) return acc, at:row_reduce("sum", acc) end
      local function f()
        ops.gemm(A, B, {out = D})
        ops.gemm(A, B, {out = {D, x}, epilogue = sums})
      end
      f()
      say "-"
      f()
      say "-"
      local g = cute.graph(f)
      say "-"
      local h = cute.graph(f)
      say "-"
      f()
      print(g.nodes, h.nodes)
      g:launch()
      h:launch()
      g:update(f)
      g:launch()]])
    -- The fake driver prints only kernels, so the script counts the memset
    -- nodes, which zero the counters in each graph.
    assert.equal("2\t2\n", out)
    local owner = {}
    for i = 3, 5 do  -- two launches of graphs, then one in the stream
      assert.equal(i == 5 and 6 or 3, #parts[i])
      for k = 1, 2 do
        local words = {}
        for word in parts[i][k]:gmatch "%S+" do words[#words + 1] = word end
        for at = 8, 9 do  -- parameters 8 and 9: work counters and turn counters
          assert.equal(i, owner[words[at]] or i)
          owner[words[at]] = i
        end
      end
    end
  end)
end)

describe("repeated calls", function()
  setup(function() fake.build "-DFAKE_CLUSTERS" end)
  teardown(fake.remove)

  it("are prepared again after the context is lost", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local out, err, status = fake.run(HEAD .. [[
      local function operands()
        return new(nil, 16, 2050), new(nil, 16, 2050), new(nil, 16, 16)
      end
      local A, B, D = operands()
      local bad = cute.kernel("bad", function(x) x[0] = x[1] end)
      for _ = 1, 3 do ops.gemm(A, B, {out = D}) end
      print(message(function()
        bad(D):launch {grid = 1, block = 1}
        cute.synchronize()
      end))
      print((message(ops.gemm, A, B, {out = D})))
      A, B, D = operands()
      local blocks = {}
      for i = 1, 3 do
        ops.gemm(A, B, {out = D})
        blocks[i] = cute.gpu.memory().misses
      end
      cute.synchronize()
      print(blocks[1] > 3, blocks[3] == blocks[1])]])
    assert.equal(0, status, err)
    local found = support.lines(out)
    -- In a script that is passed as text, lines have no file name.
    assert.truthy(found[1]:find("kernel gemm_sm80", 1, true), found[1])
    assert.truthy(found[1]:find("or kernel bad", 1, true), found[1])
    assert.truthy(found[2]:find("lost", 1, true), found[2])
    assert.equal("true\ttrue", found[3])
  end)

  it("report that there is no room for the counters of blocks", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local out = run [[
      local A, B, D = new(nil, 16, 2050), new(nil, 16, 2050), new(nil, 16, 16)
      local before = cute.gpu.memory().used
      for _ = 1, 3 do ops.gemm(A, B, {out = D}) end
      local m = cute.gpu.memory()
      for _ = 1, 20 do ops.gemm(A, B, {out = D}) end
      local n = cute.gpu.memory()
      print(n.misses == m.misses, n.used == m.used)
      local function fill()
        local used = cute.gpu.memory().used
        return new("u8", (1 << 20) - used - 4096)
      end
      local full = fill()
      print((message(ops.gemm, A, B, {out = D})))
      print((message(ops.gemm, A, B, {out = D, arch = "sm_90a"})))
      full = nil
      print(cute.gpu.trim() > 0, cute.gpu.memory().used == before)
      ops.gemm(A, B, {out = D})
      A, B, D = nil, nil, nil
      cute.gpu.trim()
      print(cute.gpu.memory().pool)]]
    local found = support.lines(out)
    assert.equal("true\ttrue", found[1])
    for i = 2, 3 do
      local n = tonumber(found[i]:match
        "the operation's workspace of (%d+) bytes: the GPU has no %1 ")
      assert.truthy(n and n >= 16384, found[i])
    end
    assert.equal("true\ttrue", found[4])
    assert.equal("0", found[5])
  end)

  it("give a kernel the addresses of their operands", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local out, parts = run [[
      local A, B = new("f32", 40, 40), new("f32", 40, 40)
      for _ = 1, 3 do
        local D = new("f32", 40, 40)
        ops.gemm(A, B, {out = D})
        print(("%x %x %x"):format(at(A), at(B), at(D)))
      end]]
    local want = support.lines(out)
    assert.equal(3, #want)
    for i, line in ipairs(parts[1]) do
      assert.equal(want[i], line:match "^launch gemm_simt %S+ %S+ (.*)")
    end
    assert.are_not.equal(want[1], want[2])
  end)
end)
-- SPDX-License-Identifier: MIT
