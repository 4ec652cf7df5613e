-- Tests polling with random programs of warps that repeatedly read memory and
-- test mbarriers. The oracle enumerates all of their interleavings in plain
-- Lua. The verdict of check must equal the enumeration's: the same number of
-- results, or a fault of a kind that some interleaving has. CUTELUA_SEEDS is
-- the number of programs (default 60).
local cute = require "cute"
local arch = cute.arch

---------------------------------------------------------------------------
-- Programs
---------------------------------------------------------------------------

-- The places of a program's words, and the blocks of its warps. "shared",
-- "global": the words are in this memory space, and all warps are in one block.
-- "blocks", "cluster": the words are in global memory, and the warps are in two
-- blocks of a grid or of a cluster.
local PLACES = {"shared", "global", "blocks", "cluster"}

-- Conditions of spin loops. A loop continues while the condition holds for the
-- value that it read.
local WHILE = {
  ne = function(x, v) return x ~= v end,
  eq = function(x, v) return x == v end,
  lt = function(x, v) return x < v end,
}
local COMPARED = {"ne", "ne", "eq", "lt"}

-- Expands "2 store 1 max" to a list of names: "store" twice, then "max"
-- once.
local function names(text)
  local list = {}
  for n, name in text:gmatch "(%d) (%l+)" do
    for _ = 1, tonumber(n) do list[#list + 1] = name end
  end
  return list
end
local ANY = names [[4 store 1 add 1 max 1 exch 1 load 1 cas 4 wait 1 take
  1 lock 2 put 2 get 1 both 1 bar 1 arrive 1 test 1 mwait]]
local LOOPS = {wait = true, take = true, lock = true, both = true, test = true,
               mwait = true}

-- Returns a random operation for position k of warp w's operations.
local function operation(random, p, w, k)
  local name = ANY[random(#ANY)]
  if LOOPS[name] then
    if p.loops == 0 then name = "store" end
    p.loops = math.max(p.loops - 1, 0)
  end
  local of_block = name == "arrive" or name == "test" or name == "mwait"
  if (of_block and p.per < p.n)
    or (name == "bar" and (w > 2 or p.per < 2)) then
    name = "load"
  end
  local o = {name = name, at = random(2), v = random(0, 3), cmp = random(0, 1),
             strong = random(3) > 1, kept = random(3) > 1,
             how = COMPARED[random(#COMPARED)]}
  o.unless = k > 1 and random(6) == 1 and name ~= "bar"
  return o
end

-- A program's word is 0 while its gate is open or its lock is free. Operations
-- of CLOSE close the gate or take the lock. Operations of ENTER wait until the
-- gate is open.
local CLOSE = names "2 store 1 max 1 exch 2 lock"
local ENTER = names "2 eq 2 ne 2 lock 1 take"

local function gate(random, w)
  local function word(name, v, how)
    return {name = name, at = 1, v = v, how = how, strong = random(9) > 1}
  end
  local ops = {}
  local function add(o) if random(8) > 1 then ops[#ops + 1] = o end end
  for _ = 1, w == 1 and random(2) or 1 do
    local enter = ENTER[random(#ENTER)]
    if w == 1 then add(word(CLOSE[random(#CLOSE)], 1))
    elseif enter == "eq" then add(word("wait", 1, "eq"))
    elseif enter == "ne" then add(word("wait", random(0, 1), "ne"))
    else add(word(enter, 1)) end
    add {name = (w == 1 or random(3) == 1) and "put" or "get"}
    if w == 1 or random(2) == 1 then
      add(word("store", w == 1 and random(6) // 6 or random(0, 1)))
    end
  end
  return ops
end

-- Returns a warp's operations in a program without faults: a lock protects all
-- accesses, or the warps access the data one after the other.
local function right(random, kind, w)
  local function word(name, v, how)
    return {name = name, at = 1, v = v, how = how, strong = true}
  end
  local first = kind == 2 and word("lock", 1) or word("wait", w - 1, "ne")
  return {first, {name = random(2) == 1 and "put" or "get"},
          word("store", kind == 2 and 0 or w)}
end

-- Returns the operations of a warp that counts arrivals: it adds to a word, and
-- waits until the word reaches a sum.
local function counter(random)
  local function word(name, v, how)
    return {name = name, at = 1, v = v, how = how, strong = random(9) > 1}
  end
  local ops = {}
  if random(4) > 1 then
    ops[1] = word("add", random(4) == 1 and random(-1, 2) or 1)
  end
  if random(3) > 1 then
    ops[#ops + 1] = word("wait", random(3), random(2) == 1 and "lt" or "ne")
  end
  ops[#ops + 1] = random(3) == 1 and word("load", 0)
    or {name = random(5) == 1 and "put" or "get"}
  return ops
end

local function program(random)
  local p = {place = PLACES[random(#PLACES)], count = random(2),
             n = random(2, 4), loops = random(3)}
  local two = p.place == "blocks" or p.place == "cluster"
  -- The kinds of programs. 1: a gate, 2: a lock, 3: warps that write in turn,
  -- 4: an arrival counter, 5 and 6: random operations
  local kind = random(6)
  if kind == 1 then p.n = random(2, 3) end
  p.per = two and (p.n + 1) // 2 or p.n
  for w = 1, p.n do
    p[w] = kind == 1 and gate(random, w) or kind == 4 and counter(random)
      or kind > 4 and {} or right(random, kind, w)
    for k = 1, kind > 4 and random(1, ({0, 5, 3, 2})[p.n]) or 0 do
      p[w][k] = operation(random, p, w, k)
    end
    if kind == 1 and random(4) == 1 then
      table.insert(p[w], random(#p[w] + 1), operation(random, p, w, 1))
    end
    for k, o in ipairs(p[w]) do
      if o.name == "put" then o.v = 100 * w + k end
      o.at, o.v, o.cmp = o.at or 1, o.v or 0, o.cmp or 0
      o.kept = o.kept or o.name == "load" or o.name == "cas"
        or o.name == "get"
    end
  end
  -- Blocks that only store do not depend on each other. A load whose result is
  -- stored makes them dependent.
  if p.place == "blocks" then
    p[1][#p[1] + 1] = {name = "load", at = 1, v = 0, cmp = 0, kept = true}
  end
  return p
end

---------------------------------------------------------------------------
-- All interleavings
---------------------------------------------------------------------------

local function copy(t)
  local out = {}
  for k, v in pairs(t) do out[k] = type(v) == "table" and copy(v) or v end
  return out
end

local function join(to, from)
  for u = 1, #to do if from[u] > to[u] then to[u] = from[u] end end
end

local function key_of(s)
  local t = {}
  local function add(x)
    if type(x) ~= "table" then
      t[#t + 1] = tostring(x)
    else
      for i = 1, #x do add(x[i]) end
      t[#t + 1] = ";"
    end
  end
  for _, k in ipairs {"m", "pc", "last", "held", "out", "d", "vc", "wrote",
                      "read", "by", "bar"} do
    add(s[k])
  end
  for at = 1, 2 do add(s.rel[at] or "-") end
  add {s.lack, s.phase}
  add(s.open)
  add(s.done)
  return table.concat(t, ",")
end

local function fill(n, x)
  local t = {}
  for i = 1, n do t[i] = type(x) == "function" and x() or x end
  return t
end

-- Returns the first state of the model. Fields of a state: rel, the vector
-- clock that the last write to a word releases; by, the warp that wrote the
-- word last; wrote and read, the times at which each warp last wrote and read
-- the data d; open and done, the vector clocks of the arrivals in an mbarrier's
-- current phase and in its last complete phase.
local function first_state(p)
  local function zeros() return fill(p.n, 0) end
  return {m = {0, 0}, d = {0}, pc = fill(p.n, 1), last = zeros(),
          held = fill(p.n, -1), out = fill(8 * p.n, 0),
          vc = fill(p.n, zeros), wrote = zeros(), read = zeros(),
          rel = {}, by = {0, 0}, bar = {0}, lack = p.count, phase = 0,
          open = zeros(), done = zeros()}
end

local function acquire(s, w, at)
  if s.rel[at] then join(s.vc[w], s.rel[at]) end
end

-- Stores v in word o.at for warp w, and updates the vector clock that the word
-- releases to an acquire. `rmw`: the store is part of a read-modify-write.
local function write(s, w, o, v, rmw)
  local keep = s.rel[o.at] and (rmw or s.by[o.at] == w)
  if not keep then s.rel[o.at] = nil end
  if o.strong then
    s.rel[o.at] = s.rel[o.at] or fill(#s.pc, 0)
    join(s.rel[o.at], s.vc[w])
  end
  s.by[o.at] = w
  s.m[o.at] = v
end

local function read(s, w, o)
  if o.strong then acquire(s, w, o.at) end
  return s.m[o.at]
end

-- Returns the effect of an atomic operation. The operation reads the old value,
-- stores f(old, o) unless it is nil, and returns the old value.
local function rmw(f)
  return function(s, w, o)
    local old = read(s, w, o)
    local new = f(old, o)
    if new then write(s, w, o, new, true) end
    return old
  end
end

-- Reports whether an access of warp w to the data d is a race with the accesses
-- `others` of other warps.
local function races(s, w, others)
  for u = 1, #s.pc do
    if u ~= w and others[u] > s.vc[w][u] then return true end
  end
  return false
end

-- The result of an attempt that failed and must be repeated.
local AGAIN = {}

-- Effects of operations. Each function returns the result, or AGAIN after a
-- failed attempt, or nil while the operation waits.
local DO = {
  store = function(s, w, o) write(s, w, o, o.v) return 0 end,
  load = read,
  add = rmw(function(old, o) return old + o.v end),
  max = rmw(function(old, o) return math.max(old, o.v) end),
  exch = rmw(function(_, o) return o.v end),
  cas = rmw(function(old, o) return old == o.cmp and o.v or nil end),
  wait = function(s, w, o)
    local x = read(s, w, o)
    return WHILE[o.how](x, o.v) and AGAIN or x
  end,
  take = function(s, w, o)
    local x = read(s, w, o)
    if x == 0 then return AGAIN end
    write(s, w, o, 0, true)
    return x
  end,
  lock = function(s, w, o)
    local x = read(s, w, o)
    if x ~= 0 then return AGAIN end
    write(s, w, o, 1, true)
    return 0
  end,
  -- reads two words, one in each step
  both = function(s, w, o)
    local at = s.held[w] < 0 and 1 or 2
    local x = read(s, w, {at = at, strong = o.strong})
    if at == 1 then s.held[w] = x return AGAIN end
    local a = s.held[w]
    s.held[w] = -1
    if WHILE[o.how](a, o.v) or WHILE[o.how](x, o.v) then return AGAIN end
    return x
  end,
  put = function(s, w, o)
    if races(s, w, s.wrote) or races(s, w, s.read) then s.race = true end
    s.wrote[w] = s.vc[w][w]
    s.d[1] = o.v
    return 0
  end,
  get = function(s, w)
    if races(s, w, s.wrote) then s.race = true end
    s.read[w] = s.vc[w][w]
    return s.d[1]
  end,
  bar = function(s, w)  -- a barrier of warps 1 and 2
    local other = 3 - w
    if s.bar[1] == 0 then s.bar[1] = w return nil end
    if s.bar[1] == w then return nil end
    s.bar[1] = 0
    join(s.vc[w], s.vc[other])
    join(s.vc[other], s.vc[w])
    s.pc[other] = s.pc[other] + 1
    return 0
  end,
  arrive = function(s, w)
    join(s.open, s.vc[w])
    s.lack = s.lack - 1
    if s.lack > 0 then return 0 end
    s.done, s.open = s.open, fill(#s.pc, 0)
    s.lack, s.phase = s.count, s.phase + 1
    return 0
  end,
  mwait = function(s, w, o)
    if s.phase % 2 == o.cmp then return nil end
    join(s.vc[w], s.done)
    return 0
  end,
  test = function(s, w, o)
    if s.phase % 2 == o.cmp then return AGAIN end
    join(s.vc[w], s.done)
    return 0
  end,
}

-- Returns the state after warp w's next step, or nil if w cannot step. Also
-- returns whether the step was a failed attempt.
local function step(p, s, w)
  local o = p[w][s.pc[w]]
  if not o then return nil end
  local t = copy(s)
  t.count = p.count
  t.vc[w][w] = s.vc[w][w] + 1
  if o.unless and s.last[w] % 2 == 1 then
    t.pc[w] = s.pc[w] + 1
    return t
  end
  local got = DO[o.name](t, w, o)
  if got == nil then
    if o.name == "bar" and s.bar[1] == 0 then return t, true end
    return nil
  end
  if got == AGAIN then
    t.vc[w][w] = s.vc[w][w]
    return t, t.held[w] < 0
  end
  t.pc[w] = s.pc[w] + 1
  if o.name == "wait" or o.name == "both" then got = 0 end
  t.last[w] = got
  if o.kept and o.name ~= "bar" then t.out[(w - 1) * 8 + s.pc[w]] = got + 1 end
  return t
end

-- Reports whether no warp can continue unless memory changes.
local function is_stuck(p, s)
  local some = false
  for w = 1, p.n do
    local o = p[w][s.pc[w]]
    if o then
      some = true
      if s.held[w] >= 0 then return false end
      if o.name == "both" then
        if not (WHILE[o.how](s.m[1], o.v) or WHILE[o.how](s.m[2], o.v)) then
          return false
        end
      else
        local t, again = step(p, s, w)
        if t and not again then return false end
        if t and o.name == "bar" then return false end
      end
    end
  end
  return some
end

local MOST_STATES = 15000

-- Returns the number of results of all interleavings, and the kinds of their
-- faults. Returns nil if there are too many states.
local function enumerate(p)
  local seen, n, results, known = {}, 0, 0, {}
  local faults = {}
  local visible = p.place == "global" or p.place == "blocks"
  local stack = {first_state(p)}
  while #stack > 0 do
    local s = table.remove(stack)
    local k = key_of(s)
    if not seen[k] then
      seen[k], n = true, n + 1
      if n > MOST_STATES then return nil end
      if s.race then faults.race, s.race = true, nil end
      local done = true
      for w = 1, p.n do done = done and not p[w][s.pc[w]] end
      if done then
        local r = table.concat(s.out, ",")
        if visible then r = r .. ";" .. table.concat(s.m, ",") .. s.d[1] end
        if not known[r] then known[r], results = true, results + 1 end
      elseif is_stuck(p, s) then
        faults.deadlock = true
      end
      for w = 1, p.n do stack[#stack + 1] = step(p, s, w) end
    end
  end
  return results, faults
end

---------------------------------------------------------------------------
-- The same programs as kernels for the simulator
---------------------------------------------------------------------------

local SCOPE = {shared = "cta", global = "gpu", blocks = "gpu",
               cluster = "cluster"}

local function loop(f) cute.loop(f, function() end) end

-- Functions that emit operations. x has the words of memory, the data and an
-- mbarrier. Each function emits operation o and returns the operation's result.
local EMIT = {
  store = function(x, o) arch.store(x.at(o), o.v, x.put(o)) return 0 end,
  load = function(x, o) return arch.load(x.at(o), cute.i32, x.get(o)) end,
  add = function(x, o) return arch.atomic_add(x.at(o), o.v, x.both(o)) end,
  max = function(x, o) return arch.atomic_max(x.at(o), o.v, x.both(o)) end,
  exch = function(x, o) return arch.atomic_exch(x.at(o), o.v, x.both(o)) end,
  cas = function(x, o) return x.cas(o, o.cmp, o.v) end,
  wait = function(x, o)
    loop(function()
      return cute[o.how](arch.load(x.at(o), cute.i32, x.get(o)), o.v)
    end)
    return 0
  end,
  take = function(x, o)
    local got = cute.var(0)
    cute.loop(function() return got:get():eq(0) end, function()
      got:set(arch.atomic_exch(x.at(o), 0, x.both(o)))
    end)
    return got:get()
  end,
  lock = function(x, o)
    loop(function() return x.cas(o, 0, 1):ne(0) end)
    return 0
  end,
  both = function(x, o)
    loop(function()
      local a = arch.load(x.at {at = 1}, cute.i32, x.get(o))
      local b = arch.load(x.at {at = 2}, cute.i32, x.get(o))
      return cute[o.how](a, o.v) | cute[o.how](b, o.v)
    end)
    return 0
  end,
  put = function(x, o) x.d[0] = o.v return 0 end,
  get = function(x) return x.d[0] + 0 end,
  arrive = function(x) arch.mbarrier_arrive(x.mbar) return 0 end,
  mwait = function(x, o) arch.mbarrier_wait(x.mbar, o.cmp) return 0 end,
  test = function(x, o)
    loop(function() return ~arch.mbarrier_test_wait(x.mbar, o.cmp) end)
    return 0
  end,
}
local function words_of(p, m)
  local scope = SCOPE[p.place]
  local x = {}
  function x.get(o) return {sem = o.strong and "acquire" or "relaxed",
                            scope = scope} end
  function x.put(o) return {sem = o.strong and "release" or "relaxed",
                            scope = scope} end
  function x.both(o) return {sem = o.strong and "acq_rel" or "relaxed",
                             scope = scope} end
  function x.cas(o, cmp, val)
    local how = x.both(o)
    how.cmp, how.val = cmp, val
    return arch.atomic_cas(x.at(o), how)
  end
  local tid = (arch.thread_idx())
  local words = m.iterator
  if p.place == "shared" or p.place == "cluster" then
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout {3})
    cute.when(tid:eq(0), function() for k = 0, 2 do s[k] = 0 end end)
    words = s.iterator
  end
  x.mbar = arch.alloc_smem(cute.i64, 1)
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(x.mbar, p.count)
    if p.place == "cluster" then arch.mbarrier_init_fence() end
  end)
  if p.place == "cluster" then
    arch.cluster_arrive()
    arch.cluster_wait()
    words = arch.map_dsmem_ptr(words, 0)
  else
    arch.sync_threads()
  end
  function x.at(o) return words + (o.at - 1) end
  x.d = cute.make_tensor(words.iterator + 2, cute.make_layout {1})
  return x
end

local function emit_warp(p, x, w, out)
  local last = cute.var(0)
  for k, o in ipairs(p[w]) do
    local function run()
      local got = EMIT[o.name](x, o)
      last:set(got)
      if o.kept then out[(w - 1) * 8 + k - 1] = got + 1 end
    end
    if o.name == "bar" then
      arch.barrier(1, 64)
      last:set(0)
    else
      cute.when((arch.thread_idx() % 32):eq(0), function()
        if o.unless then cute.when((last:get() % 2):eq(0), run) else run() end
      end)
    end
  end
end

local function kernel_of(p)
  return cute.kernel("polls", function(m, out)
    local x = words_of(p, m)
    for w = 1, p.n do
      local block, warp = (w - 1) // p.per, (w - 1) % p.per
      cute.when(cute.eq(arch.block_idx(), block)
                & cute.eq(arch.thread_idx() // 32, warp), function()
        emit_warp(p, x, w, out)
      end)
    end
    if p.place == "cluster" then
      arch.sync_warp()
      arch.cluster_arrive()
      arch.cluster_wait()
    end
  end)
end

local function check(p)
  local two = p.place == "blocks" or p.place == "cluster"
  return kernel_of(p)(cute.zeros({3}, cute.i32), cute.zeros({32}, cute.i32))
    :check {grid = two and 2 or 1, block = 32 * p.per, orders = 50000,
            cluster = p.place == "cluster" and 2 or nil,
            device = "sim:sm_90a"}
end

local function told(p)
  local t = {p.place}
  for w = 1, p.n do
    local ops = {}
    for k, o in ipairs(p[w]) do
      ops[k] = ("%s%s[%d]%s%d,%d%s%s"):format(o.unless and "?" or "", o.name,
        o.at, o.how or "", o.v, o.cmp, o.strong and "!" or "",
        o.kept and "=" or "")
    end
    t[#t + 1] = table.concat(ops, "  ")
  end
  return table.concat(t, "\n")
end

local KIND = {race = "race", ["block-race"] = "race", ["warp-race"] = "race",
              deadlock = "deadlock", runaway = "deadlock"}

-- Reports whether a fault is of a kind that the enumeration does not model: an
-- unordered arrival at an mbarrier, or an unordered draw from a counter.
local function is_misuse(v)
  local f = v.fault
  return f and (f.kind == "mbarrier" or f.message:find "takes a number")
end

-- Returns a text on how verdict v differs from the enumeration, or nil if it
-- agrees.
local function difference(v, want, faults)
  if not next(faults) then
    if v.verdict ~= "ok" then return "there is no fault" end
    return v.results ~= want and ("there are %d results"):format(want) or nil
  end
  if v.verdict ~= "bug" then return "there is a " .. next(faults) end
  return not faults[KIND[v.fault.kind]] and "there is no such fault" or nil
end

describe("polls", function()
  it("of random programs agree with all interleavings #long", function()
    local most = tonumber(os.getenv "CUTELUA_SEEDS") or 60
    local bugs, oks, seed = 0, 0, 0
    while bugs + oks < most do
      seed = seed + 1
      math.randomseed(seed)
      local p = program(math.random)
      local want, faults = enumerate(p)
      local v = want and check(p)
      if v and not is_misuse(v) then
        local why = difference(v, want, faults)
        assert.is_nil(why, why and ("%s: program %d, %s\n%s"):format(why, seed,
          told(p), tostring(v)))
        if v.fault then bugs = bugs + 1 else oks = oks + 1 end
      end
    end
    assert.is_true(bugs > most // 5 and oks > most // 5, bugs .. " " .. oks)
  end)
end)

---------------------------------------------------------------------------
-- Programs for single cases
---------------------------------------------------------------------------

local PUT = {shared = {sem = "release", scope = "cta"},
             global = {sem = "release", scope = "gpu"}}
local GET = {shared = {sem = "acquire", scope = "cta"},
             global = {sem = "acquire", scope = "gpu"}}

-- Returns the verdict of `check` on a kernel whose threads run f(w, x).
-- w(number, g) runs g in the warp with this number or, if the words are in
-- global memory, in the block with this number. x.data(k) is element k of the
-- data. x has these functions on words of memory: store, load, cas, max, and
-- poll(again), which loads until again(value) is false.
local function verdict(place, n, f)
  local shared = place == "shared"
  local k = cute.kernel("k", function(y, m)
    local words = m.iterator
    if shared then
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {4})
      cute.when(arch.thread_idx():eq(0), function()
        for i = 0, 3 do s[i] = 0 end
      end)
      arch.sync_threads()
      words = s.iterator
    end
    local x = {data = cute.make_tensor(words.iterator + 2,
      cute.make_layout {2}), y = y,
               scope = PUT[place].scope}
    function x.store(v, at, how)
      arch.store(words + (at or 0), v, how or PUT[place])
    end
    function x.load(at, how)
      return arch.load(words + (at or 0), cute.i32, how or GET[place])
    end
    function x.poll(again, at, how)
      loop(function() return again(x.load(at, how)) end)
    end
    function x.cas()
      return arch.atomic_cas(words, {cmp = 0, val = 1, sem = "acq_rel",
                                     scope = x.scope})
    end
    function x.max(v)
      arch.atomic_max(words, v, {sem = "acq_rel", scope = x.scope})
    end
    local function at(number, g)
      local mine = shared and arch.thread_idx():eq(32 * number)
        or arch.block_idx():eq(number) & arch.thread_idx():eq(0)
      cute.when(mine, g)
    end
    f(at, x)
  end)
  return k(cute.zeros({4}, cute.i32), cute.zeros({4}, cute.i32)):check {
    grid = shared and 1 or n, block = shared and 32 * n or 32,
    device = "sim:sm_90a"}
end

local function ne(v) return function(x) return x:ne(v) end end

local BUGS = {
  ["a gate that is open, closed and open again"] = function(at, x)
    at(0, function()
      x.store(1)
      x.data[0] = 5
      x.store(0)
    end)
    at(1, function()
      x.poll(ne(0))
      x.y[0] = x.data[0]
    end)
  end,
  ["a gate that stays closed for long"] = function(at, x)
    at(0, function()
      for v = 1, 4 do x.store(v) end
      x.data[0] = 5
      x.store(0)
    end)
    at(1, function()
      x.poll(ne(0))
      x.y[0] = x.data[0]
    end)
  end,
  ["a lock by atomic_cas behind an atomic_max"] = function(at, x)
    at(1, function()
      x.max(1)
      x.data[0] = 5
      x.store(0)
    end)
    at(0, function()
      loop(function() return x.cas():ne(0) end)
      x.y[0] = x.data[0]
      x.store(0)
    end)
  end,
  ["two consumers of one flag"] = function(at, x)
    at(0, function()
      x.data[0] = 5
      x.store(1)
      x.poll(ne(0))
      x.data[0] = 6
      x.store(1)
    end)
    for w = 1, 2 do
      at(w, function()
        x.poll(ne(1))
        x.y[w] = x.data[0]
        x.store(0)
      end)
    end
  end,
  ["a gate of two words in one loop"] = function(at, x)
    at(0, function()
      x.store(1)
      x.data[0] = 5
      x.store(1, 1)
      x.store(0)
      x.store(0, 1)
    end)
    at(1, function()
      loop(function() return x.load():ne(0) | x.load(1):ne(0) end)
      x.y[0] = x.data[0]
    end)
  end,
  -- Warp 1 may read 1, and then acquires the writes that warp 0 made before it
  -- stored 1. It may also read only 2, which acquires nothing.
  ["what a poll that fails would have acquired"] = function(at, x)
    local relaxed = {sem = "relaxed", scope = x.scope}
    at(0, function()
      x.data[0] = 5
      x.store(1)
    end)
    at(1, function()
      x.poll(ne(2))
      x.y[0] = x.data[0]
    end)
    at(2, function()
      x.poll(ne(1), 0, relaxed)
      x.store(2, 0, relaxed)
    end)
  end,
}

local RIGHT = {
  ["a flag"] = function(at, x)
    at(0, function()
      x.data[0] = 5
      x.store(1)
    end)
    at(1, function()
      x.poll(ne(1))
      x.y[0] = x.data[0]
    end)
  end,
  ["a flag that counts"] = function(at, x)
    at(0, function()
      for v = 1, 6 do x.store(v) end
      x.data[0] = 5
      x.store(7)
    end)
    at(1, function()
      x.poll(ne(7))
      x.y[0] = x.data[0]
    end)
  end,
  ["a lock"] = function(at, x)
    for w = 0, 1 do
      at(w, function()
        loop(function() return x.cas():ne(0) end)
        x.data[0] = x.data[0] + 1
        x.store(0)
      end)
    end
  end,
  ["a flag there and back"] = function(at, x)
    at(0, function()
      for v = 1, 3 do
        x.data[0] = v
        x.store(1)
        x.poll(ne(0))
      end
    end)
    at(1, function()
      for v = 1, 3 do
        x.poll(ne(1))
        x.y[v] = x.data[0]
        x.store(0)
      end
    end)
  end,
  ["two flags in one loop"] = function(at, x)
    at(0, function()
      x.data[0] = 5
      x.store(1)
      x.store(1, 1)
    end)
    at(1, function()
      loop(function() return x.load():eq(0) | x.load(1):eq(0) end)
      x.y[0] = x.data[0]
    end)
  end,
}

describe("check", function()
  for _, place in ipairs {"shared", "global"} do
    for name, f in pairs(BUGS) do
      it("finds the fault of " .. name .. ", " .. place, function()
        local v = verdict(place, 3, f)
        assert.equal("bug", v.verdict, tostring(v))
        assert.matches("race$", v.fault.kind)
      end)
    end
    for name, f in pairs(RIGHT) do
      it("is ok with " .. name .. ", " .. place .. ", in few runs", function()
        local v = verdict(place, 3, f)
        assert.equal("ok", v.verdict, tostring(v))
        assert.is_true(v.runs <= 12, tostring(v))
      end)
    end
  end

  it("finds the phases of an mbarrier that a test_wait could pass in",
     function()
    local function kernel(test)
      return cute.kernel("k", function(y)
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout {1})
        local bar = arch.alloc_smem(cute.i64, 1)
        local tid = (arch.thread_idx())
        cute.when(tid:eq(0), function() arch.mbarrier_init(bar, 1) end)
        arch.sync_threads()
        cute.when(tid:eq(0), function()
          for _ = 1, 4 do arch.mbarrier_arrive(bar) end
          s[0] = 5
          arch.mbarrier_arrive(bar)
        end)
        cute.when(tid:eq(32), function()
          loop(function() return ~test(bar, 0) end)
          y[0] = s[0]
        end)
      end)
    end
    for _, test in ipairs {arch.mbarrier_test_wait, arch.mbarrier_try_wait} do
      local v = kernel(test)(cute.zeros({1}, cute.i32)):check {
        grid = 1, block = 64, device = "sim:sm_90a"}
      assert.equal("bug", v.verdict, tostring(v))
      assert.equal("race", v.fault.kind)
    end
  end)

  it("finds a thread that waits forever for another block's memory", function()
    local k = cute.kernel("k", function(y)
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {1})
      cute.when(arch.thread_idx():eq(0), function() s[0] = 0 end)
      arch.cluster_arrive()
      arch.cluster_wait()
      local far = arch.map_dsmem_ptr(s.iterator, 0)
      cute.when(arch.block_idx():eq(1) & arch.thread_idx():eq(0), function()
        loop(function()
          return arch.load(far, cute.i32, {sem = "acquire",
                                           scope = "cluster"}):ne(2)
        end)
        y[0] = 1
      end)
    end)
    local o = {grid = 2, block = 32, cluster = 2, device = "sim:sm_90a"}
    local call = k(cute.zeros({1}, cute.i32))
    local v = call:check(o)
    assert.equal("bug", v.verdict, tostring(v))
    assert.equal("deadlock", v.fault.kind)
    assert.matches("which is 0 and was last written by block %(0,0,0%)",
                   v.fault.message)
    assert.error_matches(function() call:launch(o) end, "no warp can go on")
  end)
end)
-- SPDX-License-Identifier: MIT
