-- Tests timelines. Ranges must add no code unless they are recorded. In the
-- cost model, they must begin and end at the right times. Also tests the clock
-- values that a GPU stores, and the output made from them.
local assert = require "luassert"
local cute = require "cute"
local kernels = require "spec.kernels"
local clock_plan = require "cutelua.profile.clocks"
local support = require "spec.support"
local cards = require "cutelua.profile.cards"

local H200 = cards.card "h200"
local CYCLE = 1e9 / H200.clock  -- nanoseconds
local EACH = (H200.alu + 1) * CYCLE

local function zeros(n, dtype) return cute.zeros({n}, dtype or cute.f32) end

local function plainly(_, f, ...) return f(...) end

-- Computes n dependent products.
local function chain(v, n)
  for _ = 1, n do v = v * 3.0 end
  return v
end

-- A kernel of two warps. The first one works longer; then both synchronize.
local function meeting(range)
  return cute.kernel("meeting", function(Y)
    local t = cute.arch.thread_idx()
    local v = cute.var(t:to(cute.f32))
    range("work", function()
      cute.when(t:lt(32), function() v:set(chain(v:get(), 300)) end,
        function() v:set(chain(v:get(), 100)) end)
    end)
    range("meet", function() cute.arch.sync_threads() end)
    for _ in cute.range(3) do
      range("after", function() v:set(chain(v:get(), 10)) end)
    end
    Y[t] = v:get()
  end)
end

local function spans(t, name, warp)
  local out = {}
  for _, s in ipairs(t.spans) do
    if s.name == name and s.warp == (warp or s.warp) then
      out[#out + 1] = s
    end
  end
  return out
end

local function of(k, opts, ...)
  local o = {grid = 1, block = 64, registers = 64}
  for name, v in pairs(opts or {}) do o[name] = v end
  return assert(k(...):timeline(o))
end

describe("cute.arch.range", function()
  it("does not change the text", function()
    local with = meeting(cute.arch.range)(zeros(64)):trace {block = 64}
    local without = meeting(plainly)(zeros(64)):trace {block = 64}
    assert.equal(without.source, with.source)
    assert.equal(without.ir, with.ir)
  end)

  it("returns its function's results, on the host too", function()
    assert.same({3, nil, "x"}, {cute.arch.range("r", function(a, b)
      return a + b, nil, "x"
    end, 1, 2)})
    local Y = zeros(1)
    cute.kernel("gives", function(Z)
      local a, b = cute.arch.range("r", function(x) return x, x + 1 end, 5)
      Z[0] = (a * b):to(cute.f32) + 0.0
    end)
    local k = cute.kernel("gives", function(Z)
      local a, b = cute.arch.range("r", function(x) return Z[x] + 5, 6 end, 0)
      Z[0] = a * b
    end)
    k(Y):launch {grid = 1, block = 1, device = "sim"}
    assert.equal(30, Y(0))
  end)

  it("rejects other arguments than a name and a function", function()
    for _, c in ipairs {
      {"range: the name is empty", "", print},
      {"range(name: string, f: function", 1, print},
      {"range(name: string, f: function", "x", 1}} do
      local ok, err = pcall(cute.arch.range, c[2], c[3])
      assert.is_false(ok)
      assert.is_truthy(tostring(err):find(c[1], 1, true)
        or tostring(err):find("range", 1, true), tostring(err))
    end
  end)
end)

describe("a timeline of the model", function()
  it("begins and ends ranges at the right times", function()
    local t = of(meeting(cute.arch.range), nil, zeros(64))
    local long, short = spans(t, "work", 0)[1], spans(t, "work", 1)[1]
    assert.near(300 * EACH, long.stop - long.begin, 8 * EACH)
    assert.near(100 * EACH, short.stop - short.begin, 8 * EACH)
    -- The warp that arrives first must wait for the other one.
    local early, late = spans(t, "meet", 1)[1], spans(t, "meet", 0)[1]
    assert.near(200 * EACH + H200.barrier * CYCLE, early.stop - early.begin,
                8 * EACH)
    assert.near(early.stop, late.stop, 2 * EACH)
    local after = spans(t, "after", 0)
    assert.equal(3, #after)
    for i, s in ipairs(after) do
      assert.near(10 * EACH, s.stop - s.begin, 2 * EACH)
      assert.is_true(i == 1 or s.begin >= after[i - 1].stop)
    end
  end)

  it("has all ranges within their warps", function()
    local t = of(meeting(cute.arch.range), {grid = 132 * 3}, zeros(64))
    local warps = {}
    for _, s in ipairs(t.spans) do
      if s.kind == "warp" then warps[s.block .. " " .. s.warp] = s end
    end
    local n = 0
    for _, s in ipairs(t.spans) do
      local w = warps[s.block .. " " .. s.warp]
      assert.is_true(s.begin >= w.begin and s.stop <= w.stop
        and s.begin <= s.stop)
      n = n + (s.kind == "range" and 1 or 0)
    end
    -- only the three blocks of one SM are recorded: 2 warps each, with 5 ranges
    -- per warp
    assert.equal(3 * 2 * 5, n)
  end)

  it("has the agents that work for warps", function()
    local k = cute.kernel("copies", function(X, Y)
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout {128}, 16)
      local t = cute.arch.thread_idx()
      local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.f32,
                                       128)
      local function four(T, at)
        return cute.make_tensor(T.iterator + at, cute.make_layout {4})
      end
      for i = 0, 4 do
        cute.copy(atom, four(X, i * 128 + t * 4), four(s, t * 4))
        cute.arch.cp_async_commit_group()
        cute.arch.range("wait", function()
          cute.arch.cp_async_wait_group(0)
        end)
        Y[i * 32 + t] = s[t * 4]
        cute.arch.sync_warp()
      end
    end)
    local t = of(k, {block = 32}, zeros(640), zeros(160))
    local copies, waits = spans(t, "cp.async"), spans(t, "wait")
    assert.equal(5, #copies)
    assert.equal(5, #waits)
    for i, c in ipairs(copies) do
      assert.equal("agent", c.kind)
      assert.is_true(c.stop - c.begin >= H200.global * CYCLE)
      -- the wait ends when the copy arrives
      assert.near(c.stop, waits[i].stop, 3)
    end
  end)

  it("prints it as text", function()
    local text = tostring(of(meeting(cute.arch.range), nil, zeros(64)))
    assert.is_truthy(text:find("timeline of meeting, model of H200: ", 1, true))
    assert.is_truthy(text:find("\nafter +6 "), text)
  end)
end)

-- Parses the JSON that timelines contain.
local function parse(text)
  local at = 1
  local value
  local function skip() at = text:find("[^%s]", at) or #text + 1 end
  local function expect(c)
    skip()
    assert(text:sub(at, at) == c, ("%s at %d"):format(c, at))
    at = at + 1
  end
  local function list(close, each)
    skip()
    if text:sub(at, at) == close then
      at = at + 1
      return
    end
    repeat
      each()
      skip()
      local c = text:sub(at, at)
      at = at + 1
    until c ~= ","
    assert(text:sub(at - 1, at - 1) == close, "no " .. close)
  end
  local function str()
    expect '"'
    local out = {}
    while text:sub(at, at) ~= '"' do
      local code = text:match("^\\u(%x%x%x%x)", at)
      out[#out + 1] = code and utf8.char(tonumber(code, 16)) or text:sub(at, at)
      assert(code or text:sub(at, at) ~= "\\")
      at = at + (code and 6 or 1)
    end
    at = at + 1
    return table.concat(out)
  end
  function value()
    skip()
    local c, out = text:sub(at, at), {}
    if c == '"' then return str() end
    if c == "{" then
      at = at + 1
      list("}", function()
        skip()
        local k = str()
        expect ":"
        out[k] = value()
      end)
      return out
    elseif c == "[" then
      at = at + 1
      list("]", function() out[#out + 1] = value() end)
      return out
    end
    local n = text:match("^-?%d+%.?%d*", at)
    at = at + #n
    return tonumber(n)
  end
  local out = value()
  skip()
  assert(at > #text, "more behind it")
  return out
end

describe("a timeline is written", function()
  local t = of(meeting(function(name, f)
    return cute.arch.range(name == "work" and 'w"\\<&' or name, f)
  end), {grid = 132 * 2}, zeros(64))

  it("for Perfetto, rows nested as they ask", function()
    local events = parse(t:json()).traceEvents
    local rows, n = {}, 0
    for _, e in ipairs(events) do
      if e.ph == "X" then
        n = n + 1
        local key = e.pid .. " " .. e.tid
        rows[key] = rows[key] or {}
        table.insert(rows[key], e)
      end
    end
    assert.equal(#t.spans, n)
    for _, row in pairs(rows) do
      local open = {}
      for _, e in ipairs(row) do
        while open[1] and open[#open].ts + open[#open].dur <= e.ts + 1e-3 do
          open[#open] = nil
        end
        local around = open[#open]
        assert.is_true(not around
          or e.ts + e.dur <= around.ts + around.dur + 1e-3)
        open[#open + 1] = e
      end
    end
    local names = {}
    for _, e in ipairs(events) do names[e.name] = true end
    assert.is_true(names['w"\\<&'] and names.meet and names.after)
  end)

  it("as a picture", function()
    local svg = t:svg()
    local depth, rects = 0, 0
    for close, name, single in svg:gmatch "<(/?)(%l+)[^<>]-(/?)>" do
      if close == "/" then depth = depth - 1
      elseif single ~= "/" then depth = depth + 1 end
      rects = rects + (close == "" and name == "rect" and 1 or 0)
    end
    assert.equal(0, depth)
    -- rectangles: one for the background, one for each of three names, one for
    -- each span
    assert.equal(1 + 3 + #t.spans, rects)
    assert.is_truthy(svg:find("w&quot;\\&lt;&amp;", 1, true))
    assert.is_true(#t:svg(1) < #svg)
    local text = cute.draw(t, {as = "text", width = 60})
    for line in text:gmatch "[^\n]+" do assert.is_true(#line <= 60, line) end
    assert.is_truthy(text:find "\n *warp 0 |")
    local ok, why = pcall(cute.draw, t, {limit = 3})
    assert.is_truthy(not ok and why:find(("draw: %d spans of 2 blocks are too "
      .. "many; the limit is 3"):format(#t.spans), 1, true), why)
  end)

  it("into files, by their names", function()
    local dir = support.folder()
    t:save(dir .. "/t.json")
    t:save(dir .. "/t.svg")
    assert.equal(t:json(), support.read(dir .. "/t.json"))
    assert.equal(t:svg(), support.read(dir .. "/t.svg"))
    for _, name in ipairs {"t.txt", 7, "svg"} do
      local ok, err = pcall(t.save, t, name)
      assert.is_false(ok)
      assert.is_truthy(tostring(err):find("a name in .json or .svg is needed",
                                          1, true), tostring(err))
    end
    local ok, err = pcall(t.save, t, dir .. "/no/t.svg")
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find("No such file", 1, true))
    support.remove(dir)
  end)
end)

describe("a kernel that stores clocks", function()
  local function traced(room)
    local k = meeting(cute.arch.range)
    local plan = clock_plan.plan(room, 2)
    local with = cute.kernel("meeting", function(buffer, ...)
      plan:begin(buffer)
      k.func(...)
      plan:finish()
    end)
    return with, plan
  end

  it("computes the same, and stores each event", function()
    local with, plan = traced(16)
    local words, Y, Z = zeros(3 * 2 * 22, cute.i64), zeros(64), zeros(64)
    with(words, Y):launch {grid = 3, block = 64, device = "sim"}
    meeting(plainly)(Z):launch {grid = 1, block = 64, device = "sim"}
    for i = 0, 63 do assert.equal(Z(i), Y(i)) end
    assert.same({"work", "meet", "after"}, plan.names)
    for warp = 0, 5 do
      local at = warp * 22
      assert.equal(10, words(at))
      local got, last = {}, words(at + 2)
      for n = 0, 9 do
        local number, ends, clock = clock_plan.event(words(at + 6 + n))
        got[#got + 1] = number * 2 + (ends and 1 or 0)
        assert.is_true(clock >= last and clock <= words(at + 4))
        last = clock
      end
      assert.same({0, 1, 2, 3, 4, 5, 4, 5, 4, 5}, got)
      assert.equal(0, words(at + 16))
    end
  end)

  it("stores no more than there is room for", function()
    local with = traced(3)
    local words = zeros(2 * 9, cute.i64)
    with(words, zeros(64)):launch {grid = 1, block = 64, device = "sim"}
    assert.equal(10, words(0))
    assert.equal(10, words(9))
  end)

  it("is there no longer when it was traced", function()
    traced(16)(zeros(44, cute.i64), zeros(64)):trace {block = 64}
    local text = meeting(cute.arch.range)(zeros(64)):trace {block = 64}.source
    assert.is_nil(text:find "clock64")
  end)

  it("compiles", function()
    kernels.compiles(traced(16)(zeros(44, cute.i64), zeros(64)):trace {
      block = 64}, {"sm_80", "sm_90a"})
  end)

  it("needs a GPU, or reports that", function()
    local gpu = require "cute.gpu"
    if gpu.available() then return end
    local t, why = meeting(cute.arch.range)(zeros(64)):timeline {grid = 1,
      block = 64, device = "gpu"}
    assert.is_nil(t)
    assert.is_truthy(why:find("no-gpu", 1, true), why)
  end)

  it("records on a GPU the events of the model #gpu", function()
    local Y = zeros(64):to "gpu"
    local t = assert(meeting(cute.arch.range)(Y):timeline {grid = 5,
      block = 64, device = "gpu"})
    assert.equal(0, t.dropped)
    assert.is_true(t.overhead.plain > 0 and t.overhead.traced > 0)
    local model = of(meeting(cute.arch.range), nil, zeros(64))
    for _, name in ipairs {"work", "meet", "after"} do
      for warp = 0, 1 do
        assert.equal(5 * #spans(model, name, warp), #spans(t, name, warp))
      end
    end
    for block = 0, 4 do
      local by = {}
      for _, s in ipairs(t.spans) do
        if s.block == block then by[s.name .. s.warp] = s end
      end
      -- the first warp works longer than the other one, which waits for it
      assert.is_true(by.work0.stop - by.work0.begin
        > by.work1.stop - by.work1.begin)
      assert.is_true(by.meet1.stop >= by.work0.stop - 50)
    end
  end)
end)

describe("ranges of the library", function()
  it("are the waits of pipelines, and gemm_sm90's epilogue", function()
    local g = require "kernels.gemm_sm90" {tile = {64, 64, 64}, stages = 2,
                                           consumers = 1}
    local n = 256
    local function tensor() return cute.zeros({n, n}, cute.bf16) end
    local args = g.arguments(tensor(), tensor(), tensor())
    local t = assert(g.kernel(table.unpack(args, 1, args.n)):timeline {
      grid = g.grid(n, n, 4), cluster = g.cluster, registers = 128})
    -- Each of four warps consumes four tiles, which have four steps along K.
    assert.equal(4 * 4 * 4, #spans(t, "consumer_wait"))
    assert.equal(4 * 4, #spans(t, "epilogue"))
    assert.equal(4 * 4, #spans(t, "producer_acquire"))
    local loads, waits = spans(t, "tma.load"), spans(t, "consumer_wait", 0)
    assert.equal(2 * 4 * 4, #loads)  -- one load of A and one of B in each step
    -- A wait ends when both loads for its step have arrived.
    local ends = {}
    for _, s in ipairs(loads) do ends[#ends + 1] = s.stop end
    table.sort(ends)
    for i, w in ipairs(waits) do
      assert.is_true(w.stop >= ends[2 * i] - 1)
    end
  end)

  it("say what grey parts of a warp are", function()
    local launch = {grid = 1, block = 64, registers = 32}
    local t = meeting(cute.arch.range)(zeros(64)):timeline(launch)
    local text = "grey: a warp outside of the kernel's named ranges"
    assert.matches("\n" .. text .. "$", tostring(t))
    assert.matches(text, cute.draw(t, {as = "text"}), 1, true)
    t = meeting(plainly)(zeros(64)):timeline(launch)
    text = "cute.arch.range(name, f) in the kernel gives parts of their work "
      .. "names and colours"
    assert.matches(text, tostring(t), 1, true)
    assert.matches(text, cute.draw(t, {as = "svg"}), 1, true)
  end)
end)
-- SPDX-License-Identifier: MIT
