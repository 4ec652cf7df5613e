-- Runs programs with streams, events and graphs on the simulator and on a GPU.
-- They also run on a fake driver (spec/gpu/fakecuda.c), which records its calls
-- and can delay all work as long as possible.
local fake = require "spec.gpu.fake"
local support = require "spec.support"

-- The kernel axpy computes y = a x + far, in units of 2^40 so that far needs 64
-- bits. The fake driver knows the kernel by its name.
local HEAD = [[
  local cute = require "cute"
  local core = require "cute.core"
  local where = ...
  local one, far = 2.0^40, 1 << 40
  local axpy = cute.kernel("axpy", function(y, x, a, n, shift)
    local i = cute.arch.thread_idx()
    cute.when(i:lt(n), function()
      y[i] = x[i] * a + shift:to(cute.f32)
    end)
  end)
  local function launch(y, x, a, stream)
    axpy(y, x, a * 1.0, 8, far):launch {grid = 1, block = 32, device = where,
                                        stream = stream}
  end
  local function tensor(value, opts)
    opts = opts or {device = where}
    return cute.full({8}, value * one, cute.f32, opts)
  end
  local function get(t)
    local h = t:to "host"
    for i = 1, 7 do assert(h(i) == h(0)) end
    return h(0) / one
  end
  local function message(f, ...)
    local _, text = pcall(f, ...)
    return (text:gsub("^.-:%d+: ", ""))
  end
  local function graph(f) return cute.graph(f, {device = where}) end
  local function close(t) core.param_memory(t):close() end
]]

local UNPINNED = "a copy in a graph needs pinned memory of the host: "
  .. "cute.empty(shape, dtype, {pinned = true}) [in-graph]"

-- Programs by title: {the code, its expected output, line by line}.
local PROGRAMS = {}

PROGRAMS["streams run in order, and wait for each other"] = {[[
  local s, t = cute.stream(where), cute.stream(where)
  local x, y, z = tensor(1), tensor(0), tensor(0)
  for _ = 1, 3 do launch(y, x, 2, s) launch(x, y, 1, s) end
  t:wait(s:record())
  launch(z, y, 3, t)
  print(get(x), get(y), get(z))
  launch(x, z, 0, t)
  s:wait(t)
  launch(y, x, 5, s)
  s:sync()
  print(s:done(), t:done(), get(y))
  s:close()]],
  {"22.0\t21.0\t64.0", "true\ttrue\t6.0"}}

PROGRAMS["events tell the time, and whether they happened"] = {[[
  local s = cute.stream(where)
  local from, to = cute.event(where), cute.event(where)
  from:record(s)
  local x, y = tensor(1), tensor(0)
  for _ = 1, 10 do launch(y, x, 1, s) end
  to:record(s)
  to:sync()
  print(to:done(), from:elapsed(to) >= 0, math.type(from:elapsed(to)))]],
  {"true\ttrue\tfloat"}}

PROGRAMS["what names no stream goes to the current one"] = {[[
  local s = cute.stream(where)
  local x, y = tensor(1), tensor(0)
  print(cute.with_stream(s, function(a)
    launch(y, x, a)
    cute.with_stream(cute.stream(where), function() end)
    y:fill(get(y) * one + 2 * one)
    launch(x, y, 1)
    return get(x), "done"
  end, 4))
  print(pcall(cute.with_stream, s, function() error("mine", 0) end))
  launch(y, x, 1)
  cute.synchronize(where)
  print(get(y))]], {"8.0\tdone", "false\tmine", "9.0"}}

PROGRAMS["copies go both ways beside the host"] = {[[
  local s = cute.stream(where)
  local x, y = tensor(0), tensor(0)
  local from, to = tensor(4, {pinned = true}), tensor(0, {pinned = true})
  for k = 1, 3 do
    x:copy_from(from, {stream = s})
    launch(y, x, k, s)
    to:copy_from(y, {stream = s})
    s:sync()
    print(to(0) / one, to(7) / one)
  end
  local h = y:to("host", {stream = s})
  local again = h:to(where, {stream = s})
  local other = y:clone {stream = s}
  s:sync()
  print(h(3) / one, get(again), get(other))
  from, to, h = nil, nil, nil
  collectgarbage()]], {"5.0\t5.0", "9.0\t9.0", "13.0\t13.0",
                       "13.0\t13.0\t13.0"}}

PROGRAMS["memory that is handed out again waits for other streams"] = {[[
  local s, t = cute.stream(where), cute.stream(where)
  local x, y, z = tensor(1), tensor(0), tensor(0)
  for k = 1, 4 do
    local temp = cute.empty({8}, cute.f32, {device = where})
    launch(temp, x, k, s)
    launch(y, temp, 1, s)
    close(temp)  -- s still works with it
    local other = cute.empty({8}, cute.f32, {device = where})
    launch(other, x, 10 * k, t)
    launch(z, other, 1, t)
    close(other)
    s:sync()
    t:sync()
    print(get(y), get(z))
  end]], {"3.0\t12.0", "4.0\t22.0", "5.0\t32.0", "6.0\t42.0"}}

PROGRAMS["a graph runs when it is launched, with what memory has then"] = {[[
  local x, y, z = tensor(1), tensor(0), tensor(0)
  local g = graph(function()
    launch(y, x, 2)
    launch(z, y, 1)
    z:copy_from(y)
    launch(x, z, 1)
    y:fill(0)
  end)
  print(g.nodes, get(x), get(y), get(z))
  g:launch()
  print(get(x), get(y), get(z))
  local s = cute.stream(where)
  g:launch_n(2, s)
  s:sync()
  print(get(x), get(y), get(z))
  x:fill(5 * one)
  g:launch()
  print(get(x), g.device == (where:find "sim" and "sim" or where))]],
  {"5\t1.0\t0.0\t0.0", "4.0\t0.0\t3.0", "22.0\t0.0\t21.0", "12.0\ttrue"}}

PROGRAMS["a graph keeps its memory, and what it made itself"] = {[[
  local x, out = tensor(1), tensor(0)
  local g
  do
    local y = tensor(7)
    g = graph(function()
      local temp = cute.empty({8}, cute.f32, {device = where})
      launch(temp, x, 3)
      launch(y, temp, 1)
      close(temp)
      local again = cute.empty({8}, cute.f32, {device = where})
      launch(again, y, 2)
      launch(out, again, 1)
    end)
  end
  collectgarbage()
  local others = {}
  for i = 1, 20 do others[i] = tensor(-1) end
  g:launch()
  print(get(out))
  for i = 1, 20 do assert(get(others[i]) == -1) end
  x:fill(2 * one)
  g:launch()
  g = nil
  collectgarbage()
  print(get(out))]], {"12.0", "18.0"}}

PROGRAMS["a graph reuses the memory of closed tensors, and of no others"] = {[[
  local x = tensor(1)
  local function new() return cute.empty({8}, cute.f32, {device = where}) end
  -- Captures n layers, each with 3 temporary tensors. The first layer's result
  -- stays open.
  local function layers(n, closes)
    local out, open, first = tensor(0), {}, nil
    local g = graph(function()
      local h = x
      for i = 1, n do
        local a, c = new(), new()
        local b = cute.zeros({8}, cute.f32, {device = where})
        launch(a, h, 2)
        launch(b, a, 1)
        launch(c, b, 0.25)
        if closes then
          a:close()
          b:close()
          if i > 2 then h:close() end
        end
        open[#open + 1], first, h = {a, b, c}, first or c, c
      end
      launch(out, h, 1)
    end)
    g:launch_n(2)
    return g.bytes, get(out), get(first)
  end
  local most, want, one_layer = layers(12, false)
  local few, same, kept = layers(12, true)
  local more = layers(24, true)
  print(want == same, one_layer, kept, few == more, most > 4 * few)
  local t = tensor(1)
  g = graph(function()
    launch(t, x, 1)
    t:close()
    print(message(launch, t, x, 1):match "closed.*",
          message(launch, x, t, 1):match "closed.*")
  end)
  g:launch()
  print(message(launch, t, x, 1):match "closed.*")
  do local _ <close> = new() end]],
  {"true\t2.0\t2.0\ttrue\ttrue", "closed [closed]\tclosed [closed]",
   "closed [closed]"}}

PROGRAMS["reused memory waits for the streams that used it"] = {[[
  local s, t = cute.stream(where), cute.stream(where)
  local x, y, z = tensor(1), tensor(0), tensor(0)
  local g = cute.graph(function()
    local a = cute.empty({8}, cute.f32, {device = where})
    launch(a, x, 2, s)
    t:wait(s)
    launch(y, a, 1, t)
    a:close()
    local b = cute.empty({8}, cute.f32, {device = where})
    launch(b, x, 5, s)
    launch(z, b, 1, s)
    s:wait(t)
  end, {stream = s})
  g:launch(s)
  s:sync()
  print(get(y), get(z))]], {"4.0\t7.0"}}

PROGRAMS["a graph fills and copies what it makes whenever it runs"] = {[[
  local x, out, same = tensor(1), tensor(0), tensor(0)
  local here = {device = where}
  local g = graph(function()
    local a = cute.zeros({8}, cute.f32, here)
    local b = cute.full({8}, 5 * one, cute.f32, {device = x.device})
    launch(b, b, 1)
    launch(a, a, 1)
    launch(b, a, 3)
    local c = b:clone()
    launch(c, c, 2)
    launch(x, x, 2)
    local d = x:clone()
    launch(out, c, 1)
    same:copy_from(d)
  end)
  for _ = 1, 3 do
    g:launch()
    print(get(out), get(same), get(x))
  end
  print(g.nodes)]], {"10.0\t3.0\t3.0", "10.0\t7.0\t7.0", "10.0\t15.0\t15.0",
                     "11"}}

PROGRAMS["copies to memory that they read"] = {[[
  local t = cute.zeros({64}, cute.f32, {device = where})
  local function view(at, ...)
    return cute.make_tensor(t.iterator + at, cute.make_layout(...))
  end
  local function numbers()
    local h = cute.zeros({64}, cute.f32, {pinned = true})
    for i = 0, 63 do h[i] = i end
    t:copy_from(h)
  end
  local function shown()
    local h, list = t:to "host", {}
    for i = 0, 11 do list[#list + 1] = ("%d"):format(h(i)) end
    print(table.concat(list, " "))
  end
  local s = cute.stream(where)
  for _, o in ipairs {{}, {stream = s}} do
    for _, at in ipairs {{1, 0}, {0, 1}} do
      numbers()
      view(at[1], {60}):copy_from(view(at[2], {60}), o)
      cute.synchronize(where)
      shown()
    end
  end
  numbers()
  t:copy_from(t)
  shown()]], {"0 0 1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10 11 12",
              "0 0 1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10 11 12",
              "0 1 2 3 4 5 6 7 8 9 10 11"}}

PROGRAMS["a graph becomes another"] = {[[
  local x, y, z = tensor(1), tensor(0), tensor(0)
  local g = graph(function() launch(y, x, 2) end)
  g:launch()
  print(get(y), g:update(function() launch(z, x, 5) end) == g)
  g:launch()
  print(get(y), get(z), g.nodes)
  g:update(function() launch(z, x, 6) launch(y, z, 1) launch(x, y, 1) end)
  collectgarbage()
  g:launch()
  print(get(x), get(y), get(z), g.nodes)
  print((message(graph, function() g:launch() end)))
  print(message(g.update, g, function() error("mine", 0) end))
  g:launch()
  print(get(x))]], {"3.0\ttrue", "3.0\t6.0\t1", "9.0\t8.0\t7.0\t3",
                    "a graph cannot be part of another graph: call the "
                      .. "function that it was captured from [in-graph]",
                      "mine", "57.0"}}

PROGRAMS["a graph has branches where streams wait for each other"] = {[[
  local s, t = cute.stream(where), cute.stream(where)
  local x, y, z = tensor(1), tensor(0), tensor(0)
  local g = cute.graph(function()
    t:wait(s)
    launch(y, x, 2, s)
    launch(z, x, 3, t)
    s:wait(t:record())
    launch(x, z, 1, s)
  end, {stream = s})
  g:launch()
  print(get(x), get(y), get(z))
  launch(y, x, 1, t)
  print(get(y))]], {"5.0\t3.0\t4.0", "6.0"}}

PROGRAMS["streams that a graph has may be garbage, or closed"] = {[[
  local x, y, z = tensor(1), tensor(0), tensor(0)
  local s = cute.stream(where)
  local g = cute.graph(function()
    for i = 1, 3 do
      local t = cute.stream(where)
      t:wait(s)
      launch(y, x, 2, t)
      s:wait(t)
      if i == 2 then t:close() end
      t = nil
      collectgarbage()
      collectgarbage()
      launch(x, y, i, s)
    end
    s:close()
  end, {stream = s})
  for _ = 1, 2 do
    g:launch()
    print(get(x), get(y))
  end
  for _ = 1, 70 do
    cute.graph(function()
      local main = cute.stream(where)
      launch(y, x, 0)
    end, {device = where})
  end
  local others = {}
  for i = 1, 60 do others[i] = cute.stream(where) end
  print(#others)]], {"118.0\t39.0", "5734.0\t1911.0", "60"}}

PROGRAMS["what is closed is told wherever it is used"] = {[[
  local s, t, e = cute.stream(where), cute.stream(where), cute.event(where)
  local x, y = tensor(1), tensor(0)
  local ready = axpy(y, x, 1.0, 8, far):compile {grid = 1, block = 32,
                                                 device = where}
  local g = graph(function() launch(y, x, 2) end)
  ready:launch {stream = s}
  for _, thing in ipairs {s, e} do thing:close() thing:close() end
  for _, f in ipairs {function() s:sync() end, function() s:done() end,
                      function() s:record() end, function() s:wait(t) end,
                      function() t:wait(s) end, function() e:record() end,
                      function() launch(y, x, 1, s) end,
                      function() ready:launch {stream = s} end,
                      function() ready(y, x, 1.0, 8, far, {stream = s}) end,
                      function() cute.with_stream(s, print, "no") end,
                      function() cute.graph(print, {stream = s}) end,
                      function() g:launch(s) end,
                      function() x:copy_from(y, {stream = s}) end,
                      function() e:sync() end,
                      function() e:done() end, function() t:wait(e) end,
                      function() t:record(e) end,
                      function() g:close() g:launch() end} do
    io.write(message(f):match "the (%l+) was closed %[closed%]$" or "?", " ")
  end
  print()]], {("stream "):rep(5) .. "event " .. ("stream "):rep(7)
              .. ("event "):rep(4) .. "graph "}}

PROGRAMS["a capture ends with its function, however that ends"] = {[[
  local x, y = tensor(1), tensor(0)
  local s = cute.stream(where)
  print(message(graph, function()
    launch(y, x, 2)
    error("mine", 0)
  end))
  for _, f in ipairs {function() cute.synchronize(where) end,
                      function() s:sync() end, function() s:done() end,
                      function() graph(function() end) end,
                      function() cute.with_stream(s, print, "no") end,
                      function()
                        cute.rand({8}, cute.f32, {device = where})
                      end,
                      function()
                        cute.tensor({1, 2}, cute.f32, {device = where})
                      end} do
    print((message(graph, function() launch(y, x, 2) f() end)))
  end
  launch(y, x, 9)
  print(get(y))
  print((message(coroutine.wrap(function() graph(coroutine.yield) end))
    :gsub("\n.*", "")))
  local g = graph(function() end)
  print(g.nodes, g:launch())]], {"mine",
  "sync waits for the GPU, which runs nothing while a graph is captured "
    .. "[in-graph]",
  "sync waits for the GPU, which runs nothing while a graph is captured "
    .. "[in-graph]",
  "done waits for the GPU, which runs nothing while a graph is captured "
    .. "[in-graph]",
  "a graph cannot be captured inside the capture of another [in-graph]",
  "a stream cannot be chosen while a graph is captured: the capture has a "
    .. "stream of its own [in-graph]", UNPINNED, UNPINNED,
  "10.0", "bad arguments to 'cute.graph' (a callback yields, but it cannot be "
    .. "resumed) [bad-argument]", "0\ttrue"}}

PROGRAMS["streams, events, graphs and launches are the host's"] = {[[
  local s, e, x, y = cute.stream(where), cute.event(where), tensor(1), tensor(0)
  local made = {n = 0}
  local call = axpy(y, x, 1.0, 8, far)
  local o = {grid = 1, block = 32, device = where}
  local ready = call:compile(o)
  local g = graph(function() launch(y, x, 1) end)
  e:record()
  local told = " [inside-kernel]"
  for _, f in ipairs {
    function() cute.stream(where) end, function() cute.event(where) end,
    function() graph(function() end) end,
    function() g:launch() end, function() g:launch_n(2) end,
    function() g:update(function() end) end,
    function() s:sync() end, function() s:done() end,
    function() s:wait(e) end, function() s:record() end,
    function() s:record(e) end, function() e:record() end,
    function() e:sync() end, function() e:done() end,
    function() e:elapsed(e) end,
    function() cute.with_stream(s, function() made.n = made.n + 1 end) end,
    function() cute.synchronize(where) end,
    function() call:launch(o) end, function() call:compile(o) end,
    function() call:trace(o) end, function() ready:launch() end,
    function() ready:launch_n(2) end,
    function() ready(y, x, 1.0, 8, far) end,
    function() ready:try({}, y, x, 1.0, 8, far) end,
    function() cute.testing.benchmark(function() made.n = 1 end) end,
    function() cute.gpu.bench {function() made.n = 1 end} end,
    function() cute.manual_seed(1) end,
    function() cute.buffer("f32", 4) end} do
    local text
    cute.kernel("outer", function()
      text = message(f)
      text = text:match "^[^\n]*"
    end)():trace {block = 32}
    if text:sub(-#told) ~= told then
      print(debug.getinfo(f, "S").linedefined, text)
    end
  end
  e:close() g:close() s:close()
  print(made.n, get(y))]],
  {"0\t0.0"}}

PROGRAMS["random ones are what they are one after the other"] = {[[
  local seed, state
  local function pick(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % n + 1
  end
  local streams, tensors, plain, steps
  -- who wrote and read a tensor last: events by stream, with the capture that
  -- they are of; streams that are part of the one under way
  local wrote, read, branches, root
  local function order(s, list)
    for from, e in pairs(list or {}) do
      if from ~= s and (not root or e.of == branches) then
        streams[s]:wait(pick(2) == 1 and e.event or streams[from])
      end
    end
  end
  -- f on stream s, plainly g, where tensor dst is written and src read
  local function queue(s, dst, src, f, g)
    if root and not branches[s] then
      streams[s]:wait(streams[root])
      branches[s] = true
    end
    order(s, wrote[dst])
    order(s, read[dst])
    order(s, wrote[src])
    f(tensors[dst], tensors[src], streams[s])
    steps[#steps + 1] = function() plain[dst] = g(plain[src]) end
    local e = {event = streams[s]:record(), of = branches}
    wrote[dst], read[dst], read[src] = {[s] = e}, {}, read[src] or {}
    read[src][s] = e
  end
  local function copy(to, from, s) to:copy_from(from, {stream = s}) end
  local function same(x) return x end
  local function step()
    local s, what, dst, src = pick(3), pick(10), pick(5), pick(5)
    if dst == src then return end
    if what == 7 then queue(s, dst, src, copy, same)
    elseif what == 8 then queue(s, 6, src, copy, same)  -- the host's
    elseif what == 9 then queue(s, dst, 6, copy, same)
    elseif what == 10 and not root then
      local value = pick(9)
      queue(s, dst, src, function(to, from, stream)
        cute.with_stream(stream, function()
          to:fill(value * one)
          local temp = cute.empty({8}, cute.f32, {device = where})
          launch(temp, from, 1)
          launch(to, temp, 2)
          close(temp)
        end)
      end, function(x) return (x + 1) * 2 + 1 end)
    else
      local a = pick(3) - 1
      queue(s, dst, src, function(to, from, stream)
        launch(to, from, a, stream)
      end, function(x) return x * a + 1 end)
    end
  end
  local function run(times)
    for _ = 1, times do for _, f in ipairs(steps) do f() end end
    steps = {}
  end
  local function sync()
    for i = 1, 3 do streams[i]:sync() end
    wrote, read = {}, {}
  end
  local function captured()
    local first = pick(3)
    root, branches = first, {[first] = true}
    local g = cute.graph(function()
      for _ = 1, pick(8) do step() end
      for i = 1, 3 do
        if i ~= root and branches[i] then streams[root]:wait(streams[i]) end
      end
    end, {stream = streams[root]})
    root, branches = nil, nil
    return g
  end
  for n = 1, 12 do
    seed, state = n, n * 0x9e3779b97f4a7c15 + 1
    streams, tensors, plain, steps = {}, {}, {}, {}
    for i = 1, 3 do streams[i] = cute.stream(where) end
    for i = 1, 5 do tensors[i], plain[i] = tensor(i), i end
    tensors[6], plain[6] = tensor(0, {pinned = true}), 0
    wrote, read = {}, {}
    for _ = 1, pick(4) do
      for _ = 1, pick(12) do step() end
      run(1)
      if pick(2) == 1 then
        sync()
        local g, times, on = captured(), pick(3), streams[pick(3)]
        for _ = 1, times do g:launch(on) end
        run(times)
        sync()
        on:sync()
        if pick(2) == 1 then g:close() end
      end
    end
    sync()
    for i = 1, 6 do
      if get(tensors[i]) ~= plain[i] then
        print(seed, i, get(tensors[i]), plain[i])
      end
    end
    for i = 1, 3 do streams[i]:close() end
  end
  print "done"]], {"done"}}

-- Programs that run only on a GPU.
local GPU = {}

GPU["a graph cannot wait for copies"] = {[[
  local x, h = tensor(1), tensor(0, {})
  local s = cute.stream()
  for _, f in ipairs {function() x:to "host" end,
                      function() x:copy_from(h) end,
                      function() h:copy_from(x) end,
                      function() h:to "gpu" end,
                      function() launch(h, h, 1) end,
                      function() launch(x, x, 1, s) end,
                      function()
                        axpy(h, h, 1.0, 8, far):launch {grid = 1, block = 32,
                          device = "sim"}
                      end} do
    print((message(graph, f):gsub("\n.*", "")))
  end
  local p = tensor(3, {pinned = true})
  local g = graph(function() x:copy_from(p) end)
  p:fill(6 * one)
  p = nil
  collectgarbage()
  g:launch()
  print(get(x))]], {
  "a copy to the host waits for the GPU, which runs nothing while a graph is "
    .. "captured [in-graph]",
  UNPINNED,
  UNPINNED,
  UNPINNED,
  "kernel axpy: tensors on the host are copied at each launch, which a graph "
    .. "cannot do [in-graph]",
  "the stream does not belong to the graph being captured: let it first wait "
    .. "for an event recorded in the capture [in-graph]",
  "kernel axpy runs on the simulator, but the graph is captured on a GPU: "
    .. 'write cute.graph(f, {device = "sim"}) [in-graph]', "6.0"}}

GPU["a graph keeps pinned memory of copies that it makes itself"] = {[[
  local x, y = tensor(1), tensor(0)
  local p = tensor(3, {pinned = true})
  local g = graph(function()
    launch(y, p:to "gpu", 2)
    x:copy_from(y)
  end)
  p:close()
  print((message(function() return p(0) end)))
  p = nil
  collectgarbage()
  collectgarbage()
  g:launch()
  print(get(x), get(y))]], {"the buffer was closed [closed]", "7.0\t7.0"}}

GPU["operations keep no stream"] = {[[
  local ops, x, y = cute.ops, tensor(1), tensor(0)
  local function twice(v) return v * 2.0 end
  for i = 1, 70 do
    local s = cute.stream(where)
    ops.copy(x, y, {stream = s})
    ops.elementwise(twice, x, {stream = s, out = y})
    ops.reduce(x, "sum", {stream = s})
    if i > 66 then
      cute.graph(function() ops.copy(x, y, {stream = s}) end, {stream = s})
    end
    if i % 3 == 0 then s:close() end
  end
  local s = cute.stream(where)
  s:close()
  print(message(ops.copy, x, y, {stream = s}))]], {
  "ops.copy: the stream was closed [closed]"}}

GPU["streams are of one device"] = {[[
  local x, y = tensor(1), tensor(0)
  print(message(launch, y, x, 1, cute.stream "sim"))
  print(message(function()
    axpy(y:to "host", x:to "host", 1.0, 8, far):launch {grid = 1, block = 32,
      device = "sim", stream = cute.stream()}
  end))
  local list = {}
  print((message(x.copy_from, x, y, {stream = 3}):gsub("\n.*", "")))
  print(message(function()
    for i = 1, 64 do list[i] = cute.stream() end
  end), #list)
  list = nil
  cute.stream()]], {
  "call:launch: the stream belongs to sim, but the launch is on gpu "
    .. "[bad-launch]",
  "call:launch: the stream belongs to gpu, but the launch is on sim "
    .. "[bad-launch]",
  "bad argument to 'tensor:copy_from' (stream expected, got 3) [bad-argument]",
  "cute.stream: 63 streams are open: close some [limit]\t63"}}

local function has_nvrtc() return require "cute.jit".version() ~= nil end

-- Runs a program in its own process.
local function check(program, where, env)
  local out, err, code = support.run_lua({"-e", "local function main(...)\n"
    .. HEAD .. program[1] .. "\nend main '" .. where .. "'"}, env)
  assert.equal("", err)
  assert.equal(0, code)
  local lines = support.lines(out)
  assert.same(program[2], table.move(lines, 1, #program[2], 1, {}))
end

local function each(list, f)
  local names = {}
  for name in pairs(list) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    it(name, function() f(list[name]) end)
  end
end

describe("on the simulator", function()
  each(PROGRAMS, function(p) check(p, "sim", {CUTELUA_NO_CUDA = "1"}) end)
end)

describe("on a GPU #gpu", function()
  each(PROGRAMS, function(p) check(p, "gpu") end)
  each(GPU, function(p) check(p, "gpu") end)
end)

if not fake.there then return end

describe("through a driver", function()
  setup(fake.build)
  teardown(fake.remove)

  local function through(more)
    return function(p)
      if not has_nvrtc() then return pending "needs NVRTC" end
      local env = {LD_LIBRARY_PATH = fake.folder, CUTELUA_NO_CUDA = "0"}
      for name, value in pairs(more) do env[name] = value end
      check(p, "gpu", env)
    end
  end

  describe("that executes each command at once", function()
    each(PROGRAMS, through {})
    each(GPU, through {})
  end)

  describe("that executes commands as late as possible", function()
    each(PROGRAMS, through {FAKE_LATE = "1"})
  end)

  it("for two GPUs, each with its memory, streams and kernels", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    check({[[
      local function run(y, x, a, stream)
        axpy(y, x, a * 1.0, 8, far):launch {grid = 1, block = 32,
                                            stream = stream}
      end
      local x, y = tensor(1, {device = "gpu:1"}), tensor(0, {device = "gpu:1"})
      for k = 1, 2 do  -- traced, then known
        run(y, x, k)
        local far_off = y:to "gpu"
        print(far_off.device, get(far_off), y:clone().device)
        run(far_off, far_off, 2)
        x:copy_from(far_off)
        print(get(x), x.device)
      end
      local s = cute.stream "gpu:1"
      run(y, x, 1, s)
      s:sync()
      print(get(y), s.device)
      print(message(run, tensor(0), tensor(0), 1, s))
      print((message(run, tensor(0), x, 1):gsub("\n.*", "")))
      local g = cute.graph(function() run(y, x, 2) end, {device = "gpu:1"})
      g:launch()
      print(get(y), g.device)
      cute.with_stream(s, run, y, x, 3)
      print(get(y), cute.gpu.memory(1).used > 0)
      print(message(cute.stream, "gpu:2"))]], {
      "gpu\t2.0\tgpu:1", "5.0\tgpu:1", "gpu\t11.0\tgpu:1", "23.0\tgpu:1",
      "24.0\tgpu:1",
      "call:launch: the stream belongs to gpu:1, but the launch is on gpu "
        .. "[bad-launch]",
      "kernel axpy runs on gpu, but its argument 2 is on gpu:1 [bad-launch]",
      "47.0\tgpu:1", "70.0\ttrue",
      "there is no GPU number 2 (2 found) [no-gpu]"}}, "gpu",
      {LD_LIBRARY_PATH = fake.folder, CUTELUA_NO_CUDA = "0", FAKE_GPUS = "2"})
  end)

  it("names launches that may have failed, and their lines", function()
    local script = support.write(fake.folder .. "/steps.lua", fake.HEAD, [[
      local cute = require "cute"
      local function launch(name)
        local f = assert(dev:load(cubin, name, 0))
        assert(f:prepare {grid = 1, block = 1}):launch()
      end
      launch "innocent"
      dev:sync()
      launch "one"
      launch "bad"
      print(message(dev.sync, dev))
      for _ = 1, 3 do launch "one" end
      launch "bad"
      print(message(dev.sync, dev))
      local g = cute.graph(function()
        launch "two"
        launch "bad"
        for i = 1, 20 do launch("kernel_number_" .. i) end
      end)
      launch "three"
      g:launch()
      print(message(dev.sync, dev))
      print(message(g.launch, g))
    ]])
    local out, err = support.run_lua({script}, {LD_LIBRARY_PATH = fake.folder,
                                                CUTELUA_NO_CUDA = "0"})
    assert.equal("", err)
    local dead = ": cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (in words); "
      .. "the context was destroyed and its buffers are closed [driver-error]"
    local at = "steps.lua:12"
    local graph = "graph of kernel two, kernel bad, kernel kernel_number_1, "
      .. "kernel kernel_number_2, ... (steps.lua:28)"
    assert.same({("kernel one (%s) or kernel bad (%s)"):format(at, at) .. dead,
      ("kernel one (first at %s, 3 launches) or kernel bad (%s)"):format(at, at)
        .. dead,
      ("kernel three (%s) or %s"):format(at, graph) .. dead,
      "graph:launch: the graph was lost with its context: kernel three (" .. at
        .. ") or " .. graph .. " failed with CUDA_ERROR_ILLEGAL_ADDRESS "
          .. "[closed]"},
      support.lines(out))
  end)

  it("that detects missing waits between streams", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    check({[[
      local s, t = cute.stream(where), cute.stream(where)
      local x, y, z = tensor(1), tensor(0), tensor(0)
      cute.synchronize(where)
      launch(y, x, 2, s)
      launch(z, y, 3, t)
      print(get(y), get(z))]], {"3.0\t1.0"}}, "gpu",
      {LD_LIBRARY_PATH = fake.folder, CUTELUA_NO_CUDA = "0", FAKE_LATE = "1"})
  end)
end)
-- SPDX-License-Identifier: MIT
