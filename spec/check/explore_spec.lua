-- Tests systematic schedules. Random programs are compared with all of their
-- interleavings, enumerated in plain Lua. Bugs that only one schedule reveals
-- must be found. Kernels of this repository must pass.
local cute = require "cute"
local planted = require "spec.planted"
local hopper = require "spec.hopper"
local support = require "spec.support"
local arch = cute.arch

local HOW = {sem = "relaxed", scope = "gpu"}
local GET = {sem = "acquire", scope = "gpu"}
local PUT = {sem = "release", scope = "gpu"}

local function zeros(n) return cute.zeros({n}, cute.i32) end

local function first_lane(w, f)
  cute.when(arch.thread_idx():eq(32 * w), f)
end

---------------------------------------------------------------------------
-- Random programs
---------------------------------------------------------------------------

-- Effects of operations on memory m, a list of words. Each function returns the
-- operation's result, or nil while the operation waits.
local MEANS = {
  add = function(m, o) m[o.at] = m[o.at] + o.v return m[o.at] - o.v end,
  exch = function(m, o)
    local old = m[o.at]
    m[o.at] = o.v
    return old
  end,
  load = function(m, o) return m[o.at] end,
  store = function(m, o) m[o.at] = o.v return 0 end,
  cas = function(m, o)
    local old = m[o.at]
    if old == o.cmp then m[o.at] = o.v end
    return old
  end,
}

local EMIT = {
  add = function(p, o) return arch.atomic_add(p, o.v, HOW) end,
  exch = function(p, o) return arch.atomic_exch(p, o.v, HOW) end,
  load = function(p) return arch.load(p, cute.i32, HOW) end,
  store = function(p, o) arch.store(p, o.v, HOW) return 0 end,
  cas = function(p, o)
    return arch.atomic_cas(p, {cmp = o.cmp, val = o.v, sem = "relaxed",
                               scope = "gpu"})
  end,
}

local NAMES = {"add", "add", "exch", "load", "store", "cas"}

-- Returns a program of two or three warps with a few operations each. An
-- operation with unless = true runs only if the warp's previous result is even.
-- The result of an operation with kept = true is stored.
local function program(random)
  local warps = {}
  for w = 1, random(2, 3) do
    warps[w] = {}
    for k = 1, random(1, w < 3 and 3 or 2) do
      warps[w][k] = {name = NAMES[random(#NAMES)], at = random(2),
                     v = random(3), cmp = random(0, 2), kept = random(3) > 1,
                     unless = k > 1 and random(3) == 1}
    end
  end
  return warps
end

-- Visits all states that a program of n warps can reach from `state`. Calls
-- `each` for each state in which no warp can step: a final state or a deadlock.
-- key(state) is equal for equal states. step(state, warp) returns the next
-- state, or nil.
local function enumerate(state, n, step, key, each)
  local seen = {}
  local function visit(s)
    local k = key(s)
    if seen[k] then return end
    seen[k] = true
    local some = false
    for w = 1, n do
      local t = step(s, w)
      if t then
        some = true
        visit(t)
      end
    end
    if not some then each(s, k) end
  end
  visit(state)
end

local function copy(t)
  local out = {}
  for k, v in pairs(t) do out[k] = type(v) == "table" and copy(v) or v end
  return out
end

local function flat(s)
  return table.concat(s.m, ",") .. ";" .. table.concat(s.out, ",") .. ";"
    .. table.concat(s.pc, ",") .. ";" .. table.concat(s.last, ",")
end

-- Returns how many different results the interleavings of a program's warps
-- have.
local function results_of(warps)
  local start = {m = {0, 0}, out = {}, pc = {}, last = {}}
  for i = 1, 9 do start.out[i] = 0 end
  for w = 1, #warps do start.pc[w], start.last[w] = 1, 0 end
  local n, known = 0, {}
  enumerate(start, #warps, function(s, w)
    local o = warps[w][s.pc[w]]
    if not o then return nil end
    local t = copy(s)
    t.pc[w] = s.pc[w] + 1
    if o.unless and s.last[w] % 2 == 1 then return t end
    local got = MEANS[o.name](t.m, o)
    t.last[w] = got
    if o.kept then t.out[(w - 1) * 3 + s.pc[w]] = got + 1 end
    return t
  end, flat, function(s)
    local k = table.concat(s.m, ",") .. ";" .. table.concat(s.out, ",")
    n, known[k] = known[k] and n or n + 1, true
  end)
  return n
end

local function kernel_of(warps)
  return cute.kernel("random", function(m, out)
    for w, ops in ipairs(warps) do
      first_lane(w - 1, function()
        local last = cute.var(0)
        for k, o in ipairs(ops) do
          local function run()
            local got = EMIT[o.name](m.iterator + (o.at - 1), o)
            last:set(got)
            if o.kept then out[(w - 1) * 3 + k - 1] = got + 1 end
          end
          if o.unless then cute.when((last:get() % 2):eq(0), run) else run() end
        end
      end)
    end
  end)
end

---------------------------------------------------------------------------
-- Random programs of identical warps
---------------------------------------------------------------------------

-- Returns a program of identical warps. Each operation adds the previous result
-- to its operands. A warp whose last result is `bad` takes another branch.
local function alike(random)
  local ops = {n = random(2, 4), bad = random(0, 3)}
  for k = 1, random(1, ops.n < 3 and 3 or 2) do
    ops[k] = {name = NAMES[random(#NAMES)], at = random(2), v = random(3),
              cmp = random(0, 2), unless = k > 1 and random(3) == 1}
  end
  return ops
end

-- Returns how many different results the interleavings of the warps have, and
-- whether in some interleaving a warp's last result is `bad`.
local function alike_results(ops)
  local start = {m = {0, 0}, pc = {}, last = {}, out = {}}
  for w = 1, ops.n do start.pc[w], start.last[w] = 1, 0 end
  local n, known, bad = 0, {}, false
  enumerate(start, ops.n, function(s, w)
    local o = ops[s.pc[w]]
    if not o then return nil end
    local t = copy(s)
    t.pc[w] = s.pc[w] + 1
    if o.unless and s.last[w] % 2 == 1 then return t end
    t.last[w] = MEANS[o.name](t.m, {at = o.at, v = o.v + s.last[w],
                                    cmp = o.cmp})
    return t
  end, flat, function(s)
    for w = 1, ops.n do bad = bad or s.last[w] == ops.bad end
    local k = table.concat(s.m, ",")
    n, known[k] = known[k] and n or n + 1, true
  end)
  return n, bad
end

local function alike_kernel(ops, who)
  return cute.kernel("alike", function(m, x)
    cute.when(who():eq(0), function()
      local last = cute.var(0)
      for _, o in ipairs(ops) do
        local function run()
          last:set(EMIT[o.name](m.iterator + (o.at - 1),
            {v = o.v + last:get(), cmp = o.cmp}))
        end
        if o.unless then cute.when((last:get() % 2):eq(0), run) else run() end
      end
      cute.when(last:get():eq(ops.bad), function()
        x[last:get() + 9] = 1
      end)
    end)
  end)
end

---------------------------------------------------------------------------
-- Random mbarriers
---------------------------------------------------------------------------

local PHASES = {"arrive", "arrive", "wait", "test"}

local function barrier_program(random)
  local warps = {count = random(2)}
  for w = 1, random(2, 3) do
    warps[w] = {}
    for k = 1, random(1, 3) do
      warps[w][k] = {name = PHASES[random(#PHASES)], parity = random(0, 1)}
    end
  end
  return warps
end

-- Returns the number of different results of all interleavings of the warps,
-- and the number of deadlocks. A deadlock also counts as a result.
local function phases_of(warps)
  local start = {lack = warps.count, phase = 0, out = {}, pc = {}}
  for i = 1, 9 do start.out[i] = 0 end
  for w = 1, #warps do start.pc[w] = 1 end
  local n, known, stuck = 0, {}, 0
  enumerate(start, #warps, function(s, w)
    local o = warps[w][s.pc[w]]
    if not o then return nil end
    local over = s.phase % 2 ~= o.parity
    if o.name == "wait" and not over then return nil end
    local t = copy(s)
    t.pc[w] = s.pc[w] + 1
    if o.name == "test" then
      t.out[(w - 1) * 3 + s.pc[w]] = over and 2 or 1
    elseif o.name == "arrive" then
      t.lack = s.lack - 1
      if t.lack == 0 then t.lack, t.phase = warps.count, s.phase + 1 end
    end
    return t
  end, function(s)
    return ("%d,%d;"):format(s.lack, s.phase) .. table.concat(s.out, ",")
      .. ";" .. table.concat(s.pc, ",")
  end, function(s)
    for w = 1, #warps do
      if warps[w][s.pc[w]] then stuck = stuck + 1 return end
    end
    local k = table.concat(s.out, ",")
    n, known[k] = known[k] and n or n + 1, true
  end)
  return n, stuck
end

local function barrier_kernel(warps)
  return cute.kernel("phases", function(out)
    local bar = arch.alloc_smem(cute.i64, 1)
    first_lane(0, function() arch.mbarrier_init(bar, warps.count) end)
    arch.sync_threads()
    for w, ops in ipairs(warps) do
      first_lane(w - 1, function()
        for k, o in ipairs(ops) do
          if o.name == "arrive" then
            arch.mbarrier_arrive(bar)
          elseif o.name == "wait" then
            arch.mbarrier_wait(bar, o.parity)
          else
            local over = arch.mbarrier_test_wait(bar, o.parity)
            out[(w - 1) * 3 + k - 1] = cute.where(over, 2, 1)
          end
        end
      end)
    end
  end)
end

local function randomly(n, f)
  for seed = 1, n do
    math.randomseed(seed)
    f(math.random, seed)
  end
end

-- Reports whether a fault has no effect on results: unordered or unused
-- arrivals, or two warps that draw the same number.
local function is_misuse(v)
  local f = v.fault
  return f and (f.kind == "mbarrier" or f.message:find "takes a number")
end

describe("all schedules", function()
  it("of random programs have the results that all interleavings have #long",
     function()
    local most = 0
    randomly(40, function(random, seed)
      local warps = program(random)
      local want = results_of(warps)
      local v = kernel_of(warps)(zeros(2), zeros(9)):check {
        grid = 1, block = 32 * #warps, orders = 1000000}
      assert.equal("ok", v.verdict, seed .. "\n" .. tostring(v))
      assert.equal(want, v.results, seed)
      most = math.max(most, want)
    end)
    assert.is_true(most > 10)
  end)

  it("of warps in blocks of their own, too #long", function()
    local oks = 0
    randomly(20, function(random, seed)
      local warps = program(random)
      local blocks = cute.kernel("blocks", function(m, out)
        for w, ops in ipairs(warps) do
          cute.when(arch.block_idx():eq(w - 1), function()
            for k, o in ipairs(ops) do
              local got = EMIT[o.name](m.iterator + (o.at - 1), o)
              if o.kept then out[(w - 1) * 3 + k - 1] = got + 1 end
            end
          end)
        end
      end)
      for _, ops in ipairs(warps) do
        for _, o in ipairs(ops) do
          o.unless = false
          if not o.kept and o.name ~= "store" then o.kept = true end
        end
      end
      local v = blocks(zeros(2), zeros(9)):check {grid = #warps, block = 1,
                                                   orders = 1000000}
      if is_misuse(v) then return end
      assert.equal("ok", v.verdict, seed .. "\n" .. tostring(v))
      assert.equal(results_of(warps), v.results, seed)
      oks = oks + 1
    end)
    assert.is_true(oks > 10)
  end)

  it("of identical blocks, or warps, up to renaming #long",
     function()
    local bugs, oks, most = 0, 0, 0
    local function lane() return arch.thread_idx() % 32 end
    randomly(60, function(random, seed)
      local ops = alike(random)
      local want, bad = alike_results(ops)
      local blocks = seed % 2 == 0
      local v = alike_kernel(ops, blocks and arch.thread_idx or lane)(
        zeros(2), zeros(2)):check {grid = blocks and ops.n or 1,
        block = blocks and 32 or 32 * ops.n, orders = 1000000}
      local told = seed .. "\n" .. tostring(v)
      if is_misuse(v) then return end
      if bad then
        assert.equal("out-of-bounds", v.fault and v.fault.kind, told)
        bugs = bugs + 1
      else
        assert.equal("ok", v.verdict, told)
        assert.equal(want, v.results, told)
        oks, most = oks + 1, math.max(most, want)
      end
    end)
    assert.is_true(bugs > 5 and oks > 10 and most > 3,
                   ("%d %d %d"):format(bugs, oks, most))
  end)

  it("of eight that draw tickets are one, if the number is not used",
     function()
    local function draw(who, number)
      return cute.kernel("draw", function(y, c)
        cute.when(who():eq(0), function()
          local n = arch.atomic_add(c.iterator, 1)
          y[n] = number and number() or n
        end)
      end)
    end
    local function lane() return arch.thread_idx() % 32 end
    local function of(k, o) return k(zeros(8), zeros(1)):check(o) end
    local v = of(draw(arch.thread_idx), {grid = 8, block = 32})
    assert.same({"ok", 1, 1}, {v.verdict, v.orders, v.results})
    v = of(draw(lane), {grid = 1, block = 256})
    assert.same({"ok", 1, 1}, {v.verdict, v.orders, v.results})
    v = of(draw(arch.thread_idx, arch.block_idx), {grid = 4, block = 32})
    assert.same({"ok", 24, 24}, {v.verdict, v.orders, v.results})
    v = of(draw(lane, arch.warp_idx), {grid = 1, block = 128})
    assert.same({"ok", 24, 24}, {v.verdict, v.orders, v.results})
    v = of(draw(lane, arch.thread_idx), {grid = 1, block = 128})
    assert.same({"ok", 24, 24}, {v.verdict, v.orders, v.results})
  end)

  it("of random mbarriers: their results and deadlocks #long",
     function()
    local bugs, oks = 0, 0
    randomly(100, function(random, seed)
      local warps = barrier_program(random)
      local want, stuck = phases_of(warps)
      local v = barrier_kernel(warps)(zeros(9)):check {
        grid = 1, block = 32 * #warps, device = "sim:sm_90a", orders = 1000000}
      local told = seed .. "\n" .. tostring(v)
      if is_misuse(v) then return end
      if stuck > 0 then
        assert.equal("bug", v.verdict, told)
        assert.equal("deadlock", v.fault.kind, told)
        bugs = bugs + 1
      else
        assert.equal("ok", v.verdict, told)
        assert.equal(want, v.results, told)
        oks = oks + 1
      end
    end)
    assert.is_true(bugs > 20 and oks > 20, bugs .. " " .. oks)
  end)
end)

---------------------------------------------------------------------------
-- Verdicts
---------------------------------------------------------------------------

local function hand_over(how, fields)
  return cute.kernel("hand", function(x, y, f)
    first_lane(0, function()
      x[0] = 7
      arch.store(f.iterator, 1, fields or PUT)
    end)
    first_lane(1, function() how(x, y, f) end)
  end)
end

local function spin(f)
  cute.loop(function()
    return arch.load(f.iterator, cute.i32, GET):eq(0)
  end, function() end)
end

describe("a verdict", function()
  it("is ok if a flag is waited for, a bug if it is read once", function()
    local good = hand_over(function(x, y, f)
      spin(f)
      y[0] = x[0]
    end)
    local v = good(zeros(1), zeros(1), zeros(1)):check {grid = 1, block = 64}
    assert.equal("ok", v.verdict)
    assert.equal(1, v.orders)
    local bad = hand_over(function(x, y, f)
      local _ = arch.load(f.iterator, cute.i32, GET)
      y[0] = x[0]
    end)
    v = bad(zeros(1), zeros(1), zeros(1)):check {grid = 1, block = 64}
    assert.equal("bug", v.verdict)
    assert.equal("race", v.fault.kind)
    assert.matches("schedule: 1 steps.*warp 1: explore_spec.lua:%d+",
                   tostring(v))
  end)

  it("reports the only schedule with a deadlock, and leaves memory unchanged",
     function()
    local k = cute.kernel("turns", function(c, d)
      cute.when((arch.thread_idx() % 32):eq(0), function()
        local n = arch.atomic_add(c.iterator, 1)
        cute.when(n:eq(0) & arch.thread_idx():eq(96), function() spin(d) end)
      end)
    end)
    local c = zeros(1)
    local v = k(c, zeros(1)):check {grid = 1, block = 128}
    assert.equal("bug", v.verdict)
    assert.equal("deadlock", v.fault.kind)
    assert.same({{3, 0}}, v.schedule.turns)
    assert.equal(0, c(0))
  end)

  it("is incomplete if schedules remain, lanes meet or the clock is read",
     function()
    local ticket = cute.kernel("ticket", function(y, c)
      cute.when((arch.thread_idx() % 32):eq(0), function()
        y[arch.atomic_add(c.iterator, 1)] = arch.thread_idx()
      end)
    end)
    local v = ticket(zeros(8), zeros(1)):check {grid = 1, block = 256,
                                                orders = 50}
    assert.equal("incomplete", v.verdict)
    assert.equal("bound", v.open[1].why)
    assert.matches("schedules were left after 50 runs, .* orders = 50",
                   tostring(v))
    v = ticket(zeros(8), zeros(1)):check {grid = 1, block = 128}
    assert.equal("ok", v.verdict)
    assert.equal(24, v.orders)
    assert.equal(24, v.results)
    local lanes = cute.kernel("lanes", function(y, c)
      y[arch.atomic_add(c.iterator, 1)] = arch.thread_idx()
    end)
    v = lanes(zeros(32), zeros(1)):check {grid = 1, block = 32}
    assert.equal("incomplete", v.verdict)
    assert.matches("lanes of one warp .*explore_spec.lua:%d+", v.open[1].text)
    local clock = cute.kernel("clock", function(y)
      y[0] = arch.clock()
    end)
    v = clock(zeros(1)):check {grid = 1, block = 1}
    assert.equal("incomplete", v.verdict)
    assert.matches("clock or on its SM %(explore_spec.lua:%d+%)",
                   v.open[1].text)
    v = cute.kernel("sm", function(y) y[0] = arch.smid() end)(zeros(1)):check {
      grid = 1, block = 1}
    assert.matches("its SM %(explore_spec.lua:%d+%)", v.open[1].text)
  end)

  it("of a barrier over blocks is ok, relaxed it is a bug", function()
    local function grid(how)
      return cute.kernel("meet", function(x, y, c, n)
        local b = arch.block_idx()
        x[b] = b
        arch.atomic_add(c.iterator, 1, how)
        cute.loop(function()
          return arch.load(c.iterator, cute.i32, GET):lt(n)
        end, function() end)
        y[b] = x[0] + x[n - 1]
      end)
    end
    local v = grid(PUT)(zeros(4), zeros(4), zeros(1), 4)
      :check {grid = 4, block = 1}
    assert.equal("ok", v.verdict, tostring(v))
    assert.equal(1, v.results)
    v = grid(HOW)(zeros(4), zeros(4), zeros(1), 4):check {grid = 4, block = 1}
    assert.equal("bug", v.verdict)
    assert.equal("block-race", v.fault.kind)
  end)

  it("rejects unsupported options", function()
    local k = cute.kernel("k", function(x) x[0] = 1 end)
    support.raises("check: orders = 0; a number above 0 is needed",
                   function() k(zeros(1)):check {grid = 1, block = 1,
                                                   orders = 0} end)
    local p = cute.compile(k, zeros(1), {grid = 1, block = 1, device = "sim"})
    support.raises("seconds of \"x\": a number is needed",
                   function() p:check {seconds = "x"} end)
    support.raises("there is nothing to check",
                   function() p:forget() p:check() end)
  end)
end)

-- Makes a kernel in which warp 0 fills a ring of tiles that two other warps
-- sum. Each warp tests the next stage with try_wait in advance.
local function ring(flaw)
  local Group = cute.pipeline.CooperativeGroup
  local agent = cute.pipeline.Agent.Thread
  return cute.kernel("ring", function(x, y)
    local tid, b = arch.thread_idx(), arch.block_idx()
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout({32, 3}), 16)
    local pipe = cute.pipeline.PipelineAsync {num_stages = 3,
      producer_group = Group(agent, 32), consumer_group = Group(agent, 64)}
    cute.when(tid:lt(32), function()
      local write = pipe:make_producer_state()
      local token = cute.var(pipe:producer_try_acquire(write))
      for k in cute.range(6) do
        if flaw ~= "acquire" then
          pipe:producer_acquire(write, token:get())
        end
        s[{tid, write.index}] = x[{tid, k}]
        pipe:producer_commit(write)
        write:advance()
        token:set(pipe:producer_try_acquire(write))
      end
    end, function()
      local read, sum = pipe:make_consumer_state(), cute.var(0)
      local token = cute.var(pipe:consumer_try_wait(read))
      for _ in cute.range(6) do
        if flaw ~= "wait" then pipe:consumer_wait(read, token:get()) end
        sum:set(sum:get() + s[{tid % 32, read.index}])
        if flaw ~= "release" then pipe:consumer_release(read) end
        if flaw == "token" then token:set(pipe:consumer_try_wait(read)) end
        read:advance()
        if flaw ~= "token" then token:set(pipe:consumer_try_wait(read)) end
      end
      y[{tid - 32, b}] = sum:get()
    end)
  end)
end

-- Makes a kernel in which two warps of each block draw the numbers of the rows
-- that they write from a counter. With `flaw`, the warp that draws the last row
-- writes nothing.
local function draws(flaw)
  return cute.kernel("draws", function(y)
    local tid, b = arch.thread_idx(), arch.block_idx()
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(1))
    cute.when(tid:eq(0), function() s[0] = 0 end)
    arch.sync_threads()
    first_lane(0, function() y[{arch.atomic_add(s.iterator, 1), b}] = tid end)
    first_lane(1, function()
      local row = arch.atomic_add(s.iterator, 1)
      cute.when(row:ne(1) | (not flaw), function() y[{row, b}] = tid end)
    end)
  end)
end

describe("of blocks that do not synchronize", function()
  local function verdict(k, inputs, rows, blocks, block)
    local y = cute.empty({rows, blocks}, cute.i32)
    inputs[#inputs + 1] = y
    return k(table.unpack(inputs)):check {grid = blocks, block = block}
  end

  it("elements written in another schedule are not unwritten", function()
    local v = verdict(draws(), {}, 2, 3, 64)
    assert.equal("ok", v.verdict, tostring(v))
    -- The first run, and one more schedule for each of the 3 blocks: in it, the
    -- block's two warps draw in the other order.
    assert.equal(4, v.orders)
    assert.equal(2, v.results)
  end)

  it("elements left unwritten in one schedule only", function()
    local v = verdict(draws(true), {}, 2, 3, 64)
    assert.equal("bug", v.verdict)
    assert.equal("unwritten", v.fault.kind)
    assert.matches("1 of 6 elements", v.fault.message)
    assert.same({{0, 0}}, v.schedule.turns)
  end)

  it("a try_wait and its wait count as one", function()
    local x = cute.ones({32, 6}, cute.i32)
    local v = verdict(ring(), {x}, 64, 3, 96)
    assert.equal("ok", v.verdict, tostring(v))
    assert.equal(1, v.orders)
    for flaw, kind in pairs {acquire = "deadlock", wait = "race",
                             release = "deadlock", token = "race"} do
      v = verdict(ring(flaw), {x}, 64, 3, 96)
      assert.equal("bug", v.verdict, flaw)
      assert.equal(kind, v.fault.kind, flaw)
    end
  end)

  it("an answer for another barrier is no wait for this one", function()
    local function kernel(asked)
      return cute.kernel("other", function(x, y)
        local tid = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout(32), 16)
        local bars = arch.alloc_smem(cute.i64, 2)
        cute.when(tid:eq(0), function()
          for k = 0, 1 do arch.mbarrier_init(bars + k, 32) end
          arch.mbarrier_init_fence()
        end)
        arch.sync_threads()
        cute.when(tid:lt(32), function()
          arch.mbarrier_arrive(bars)
          s[tid] = x[tid]
          arch.mbarrier_arrive(bars + 1)
        end, function()
          local token = arch.mbarrier_try_wait(bars + asked, 0)
          cute.when(token, function() end, function()
            arch.mbarrier_wait(bars + 1, 0)
          end)
          y[tid - 32] = s[tid - 32]
        end)
      end)
    end
    local x = cute.ones({32}, cute.i32)
    assert.equal("ok", verdict(kernel(1), {x}, 32, 1, 64).verdict)
    local v = verdict(kernel(0), {x}, 32, 1, 64)
    assert.equal("bug", v.verdict)
    assert.equal("race", v.fault.kind)
  end)
end)

describe("Hopper's GEMM #noasan", function()
  local SIZE = {260, 136, 264}

  local function verdict(gemm, choice)
    local m, n, k = table.unpack(SIZE)
    local run = gemm(choice).prepare(hopper.matrix(m, k, 1),
      hopper.matrix(n, k, 2), hopper.matrix(m, n),
      {device = "sim:sm_90a", sms = 4, output = false})
    return run:check {orders = 100}
  end

  it("is ok in one schedule with any cluster and configuration #long",
     function()
    local gemm = planted.kernel {}
    for name, choice in pairs(planted.CHOICES) do
      local v = verdict(gemm, choice)
      -- Blocks of the dynamic scheduler draw their tiles from a counter, so
      -- there are too many schedules to try all.
      if name == "dynamic" then
        assert.equal("bound", v.open[1].why)
      else
        assert.equal("ok", v.verdict, name .. "\n" .. tostring(v))
        assert.equal(1, v.orders)
      end
    end
  end)

  it("with a fault in its text is a bug #long", function()
    for number, fault in ipairs(planted.FAULTS) do
      if number % 8 == 0 or os.getenv "CUTELUA_ALL" then
        local gemm, texts = planted.kernel(fault[2])
        local name = fault[3][number % #fault[3] + 1]
        local v = verdict(gemm, planted.CHOICES[name])
        assert.equal("bug", v.verdict, fault[1])
        assert.is_nil(planted.untold(fault, v.report, texts), fault[1])
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
