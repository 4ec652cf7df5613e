-- Tests the simulator: small kernels with each kind of fault must have the
-- expected report, and correct kernels must have none over many seeds.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"
local raises = support.raises
local arch = cute.arch

local function ramp(n, dtype)
  local t = cute.zeros({n}, dtype or cute.f32)
  for i = 0, n - 1 do t[i] = i end
  return t
end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout({n}), 16)
end

-- Runs f(tensors...) in a block of the simulator.
local function run(opts, f, ...)
  opts.grid = opts.grid or 1
  opts.device, opts.faults = opts.device or "sim:sm_80", "return"
  return support.report(cute.kernel("k", f)(...):launch(opts))
end

local function line() return debug.getinfo(2, "l").currentline end

-- Returns a report's faults as "kind line line2: message", in the order in
-- which they were detected.
local function faults(report, base)
  local out = {}
  for i, r in ipairs(report.reports) do
    out[i] = ("%s %s %s: %s"):format(r.kind, r.line and r.line - base or "-",
      r.line2 and r.line2 - base or "-", r.message)
  end
  return out
end

local function clean(report)
  assert.are.same({}, faults(report, 0))
  assert.is_true(report.ok)
end

describe("bounds", function()
  it("reads and writes outside a global tensor", function()
    local A, base = ramp(40), nil
    local r = run({block = 64, seed = 1}, function(a)
      local tid = arch.thread_idx()
      base = line()
      local x = a[tid]; arch.sync_threads()
      a[tid - 3] = x
    end, A)
    local f = faults(r, base)
    table.sort(f)
    assert.are.same({
      "out-of-bounds 1 -: read outside global tensor 'a': element 40 of 40",
      "out-of-bounds 2 -: write outside global tensor 'a': "
        .. "element -3 of 40"}, f)
    f = r.reports[1].line - base == 1 and r.reports[1] or r.reports[2]
    assert.are.same({40, "(40)", "(40):(1)", "a"},
                    {f.offset, f.coord, f.layout, f.tensor})
    assert.are.same({8, 0, 0}, {f.thread[1] - 32, f.thread[2], f.thread[3]})
  end)

  it("accesses outside a tensor whose coordinates share one element", function()
    local function first(t, f)
      local r = run({grid = 2, block = 32}, f, t)
      return r.ok or r.reports[1].message
    end
    local function by_block(t)
      local b = arch.block_idx()
      cute.when(arch.thread_idx():eq(0), function() t[b] = 1 end)
    end
    assert.equal("write outside global tensor 't': coordinate (1) of (1)",
                 first(ramp(1), by_block))
    assert.equal(true, first(ramp(2), by_block))
    assert.equal("read outside global tensor 't': coordinate (2) of (2)",
                 first(ramp(1), function(t)
      local row = cute.make_tensor(t.iterator, cute.make_layout({2}, {0}))
      t[0] = row[arch.thread_idx() // 31 * 2]
    end))
  end)

  it("names the coordinate in two modes and in a swizzled layout", function()
    local A = cute.zeros({8, 16}, cute.f32)
    local r = run({block = 32}, function(a)
      local i = arch.thread_idx()
      a[{7 + i // 16, i % 16}] = 1
    end, A)
    assert.equal("(8,0)", r.reports[1].coord)
    local B = ramp(64)
    r = run({block = 32}, function(b)
      local i = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.composition(
        cute.make_swizzle(1, 0, 3), cute.make_layout({8, 8}, {8, 1})), 16)
      b[i] = s[{3, i % 8}]
    end, B)
    assert.equal("uninitialised", r.reports[1].kind)
    assert.equal("(3,0)", r.reports[1].coord)
    assert.equal(25, r.reports[1].offset)  -- the swizzle flips bit 0 of 24
  end)

  it("finds misaligned vectors", function()
    local A, base = ramp(64), nil
    local r = run({block = 8}, function(a)
      local tid = arch.thread_idx()
      local at = cute.assume(tid * 2, 0, 15, 4)
      local v = cute.make_rmem_tensor({4}, cute.f32)
      base = line()
      cute.autovec_copy(cute.local_tile(cute.domain_offset({at}, a), {4},
                                        {0}), v)
    end, A)
    assert.are.same({"assertion -2 -: a value that was assumed to be divisible "
      .. "by 4 is 2", "misaligned 1 -: read of 16 bytes not aligned to its "
      .. "width: element 2 of global tensor 'a'"}, faults(r, base))
    assert.equal(1, r.reports[1].thread[1])
  end)
end)

describe("uninitialised memory", function()
  it("in global, shared and register memory", function()
    local A, B, base = cute.empty({32}, cute.f32), ramp(32), nil
    local r = run({block = 32}, function(a, b)
      local tid = arch.thread_idx()
      local s, v = smem(32), cute.make_rmem_tensor({2}, cute.f32)
      v[0] = 1
      base = line()
      b[tid] = a[tid]
      b[tid] = s[tid]
      b[tid] = v[0] + v[1]
    end, A, B)
    assert.are.same({
      "uninitialised 1 -: read of uninitialised memory: "
        .. "element 0 of global tensor 'a'",
      "uninitialised 2 -: read of uninitialised memory: "
        .. "element 0 of shared tensor 's'",
      "uninitialised 3 -: read of uninitialised memory: "
        .. "element 1 of register tensor 'v'"}, faults(r, base))
  end)

  it("in registers: where it is used, not where it is moved", function()
    local A, B, base = ramp(32), ramp(32), nil
    local function residue(all)
      return run({block = 32}, function(a, b)
        local tid = arch.thread_idx()
        local v, u = cute.make_rmem_tensor({1}, cute.f32),
          cute.make_rmem_tensor({1}, cute.f32)
        base = line()
        cute.when(tid:lt(20), function() v[0] = a[tid] end)
        u[0] = v[0] * 2 + arch.shuffle_sync_bfly(v[0], 1)
        local sum = cute.where(tid:lt(20), u[0], -1)
        cute.when(tid:lt(all and 32 or 20), function() b[tid] = u[0] end)
        a[tid] = sum
      end, A, B)
    end
    clean(residue(false))
    assert.are.same({"uninitialised 4 -: read of uninitialised memory: "
      .. "element 0 of register tensor 'u'"}, faults(residue(true), base))
    A = ramp(32)
    local r = residue(true)
    assert.are.same({20, 1}, {r.reports[1].thread[1], r.reports[1].count})
  end)

  it("in the value to which an atomic compares memory", function()
    local base
    local r = run({block = 32}, function(a)
      local v = cute.make_rmem_tensor({1}, cute.i32)
      cute.when(arch.thread_idx():gt(3), function() v[0] = 0 end)
      base = line()
      arch.atomic_cas(a, {cmp = v[0], val = 1})
    end, cute.zeros({4}, cute.i32))
    assert.are.same({"uninitialised 1 -: read of uninitialised memory: "
      .. "element 0 of register tensor 'v'"}, faults(r, base))
  end)

  it("in conditions and addresses", function()
    local base
    local r = run({block = 32}, function(a)
      local tid = arch.thread_idx()
      local v = cute.make_rmem_tensor({2}, cute.i32)
      cute.when(tid:gt(3), function() v[0], v[1] = 0, 0 end)
      base = line()
      cute.when(v[0]:gt(tid), function() a[tid] = 1 end)
      a[v[1] % 32] = 0
    end, ramp(32))
    local f = faults(r, base)
    assert.equal("uninitialised 1 -: read of uninitialised memory: element 0 "
      .. "of register tensor 'v'", f[1])
    assert.equal("uninitialised 2 -: read of uninitialised memory: element 1 "
      .. "of register tensor 'v'", f[2])
  end)

  it("keeps what an earlier launch wrote", function()
    local A, B = cute.empty({32}, cute.f32), ramp(32)
    clean(run({block = 32}, function(a)
      a[arch.thread_idx()] = 2
    end, A))
    clean(run({block = 32}, function(a, b)
      b[arch.thread_idx()] = a[arch.thread_idx()]
    end, A, B))
    assert.equal(2, B[31])
  end)
end)

describe("races", function()
  local function reverse(sync)
    local base
    local A = ramp(64)
    local r = run({block = 64, seed = 3}, function(a)
      local tid = arch.thread_idx()
      local s = smem(64)
      base = line()
      s[tid] = a[tid]
      if sync then arch.sync_threads() end
      a[tid] = s[63 - tid]
    end, A)
    return r, faults(r, base), A
  end

  it("between warps: both lines, whichever warp is first", function()
    local r, f = reverse(false)
    assert.equal("race 3 1: read of an element that another warp writes, with "
      .. "no barrier between the two lines: element 32 of shared tensor 's'",
      f[1])
    assert.equal("uninitialised", r.reports[2].kind)
    assert.is_nil(r.reports[3])
    assert.are.same({32, {31, 0, 0}, 2}, {r.reports[1].other,
      r.reports[1].thread, r.reports[1].count})
    assert.is_truthy(tostring(r):find("put sync_threads() between the two "
      .. "lines", 1, true))
  end)

  it("of neighbours are the block's where warps have them too", function()
    local function kinds(block, seed)
      local r = run({block = block, seed = seed}, function(a)
        local tid = arch.thread_idx()
        local s = smem(64)
        s[tid] = a[tid]
        a[tid] = s[(tid + 1) % block]
        s[tid] = 1.0
      end, ramp(64))
      local list, seen = {}, {}
      for i, x in ipairs(r.reports) do list[i], seen[x.kind] = x.kind, true end
      return list, seen
    end
    for seed = 1, 8 do
      local list, seen = kinds(64, seed)
      assert.equal("race", list[1])
      assert.is_nil(seen["warp-race"])
      list, seen = kinds(32, seed)
      assert.equal("warp-race", list[1])
      assert.is_nil(seen.race)
    end
  end)

  it("not with a barrier, whatever the schedule", function()
    local r, _, A = reverse(true)
    clean(r)
    for i = 0, 63 do assert.equal(63 - i, A[i]) end
  end)

  it("between lanes of a warp; sync_warp orders them, votes do not", function()
    local base
    local function neighbours(between)
      return run({block = 32}, function(a)
        local tid = arch.thread_idx()
        local s = smem(32)
        base = line()
        s[tid] = a[tid]
        between()
        a[tid] = s[(tid + 1) % 32]
      end, ramp(32))
    end
    local function vote() arch.vote_ballot_sync(arch.lane_idx():lt(3)) end
    for _, between in ipairs {function() end, vote} do
      assert.are.same({"warp-race 3 1: read of an element that another lane of "
        .. "the warp writes, with no __syncwarp between the two lines: element "
        .. "1 of shared tensor 's'"}, faults(neighbours(between), base))
    end
    clean(neighbours(arch.sync_warp))
  end)

  it("lanes that write one place: other values only", function()
    local base
    local function all_write(value)
      return run({block = 32}, function(a)
        local s = smem(4)
        base = line()
        s[0] = value(arch.lane_idx())
        a[arch.lane_idx()] = s[0]
      end, ramp(32))
    end
    clean(all_write(function() return 7 end))
    local f = faults(all_write(function(l) return l:to(cute.f32) end), base)
    assert.equal("warp-race 1 1: two lanes of a warp write one element with no "
      .. "__syncwarp in between: element 0 of shared tensor 's'",
      f[1])
  end)

  it("neighbouring small elements do not race", function()
    clean(run({block = 64}, function(a)
      local tid = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.bf16, cute.make_layout({64}), 16)
      s[tid % 2 * 32 + tid // 2] = a[tid]
      a[tid] = s[tid % 2 * 32 + tid // 2]
    end, ramp(64, cute.bf16)))
  end)
end)

describe("races", function()
  it("named barriers order those that take part, and only those", function()
    local function handover(id2)
      return run({block = 96}, function(a)
        local tid, warp = arch.thread_idx(), arch.warp_idx()
        local s = smem(32)
        cute.when(warp:eq(0), function()
          s[tid] = a[tid]
          arch.barrier_arrive(1, 64)
          arch.barrier_arrive(2, 64)
        end)
        cute.when(warp:gt(0), function()
          cute.when(warp:eq(1), function() arch.barrier(1, 64) end, function()
            arch.barrier(id2, 64)
          end)
          a[tid] = s[31 - tid % 32]
        end)
      end, ramp(96))
    end
    clean(handover(2))
    -- No other warp arrives at barrier 3, where warp 2 waits.
    assert.equal("deadlock", handover(3).reports[1].kind)
  end)
end)

describe("cp.async", function()
  local g2s = cute.make_tiled_copy(
    cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
    cute.make_layout {32}, cute.make_layout {4})

  -- Runs one warp that copies 128 elements and reads them in reverse order.
  local function fetch(wait, order)
    local base
    local A, B = ramp(128), cute.zeros({128}, cute.f32)
    local r = run({block = 32}, function(a, b)
      local tid = arch.thread_idx()
      local s, thr = smem(128), g2s:get_slice(tid)
      base = line()
      cute.copy(g2s, thr:partition_S(a), thr:partition_D(s))
      arch.cp_async_commit_group()
      wait()
      order()
      b[tid] = s[127 - tid]
    end, A, B)
    return r, faults(r, base), B
  end
  local function nothing() end

  it("is complete at the wait", function()
    local r, _, B = fetch(function() arch.cp_async_wait_group(0) end,
                           arch.sync_threads)
    clean(r)
    assert.equal(127, B[0])
    assert.equal(96, B[31])
  end)

  it("is not visible before: both lines", function()
    local want = "async-in-flight 5 1: read of shared memory while a cp.async "
      .. "to it is in flight (wait missing): element 127 of shared tensor 's'"
    local _, f = fetch(nothing, arch.sync_threads)
    assert.are.same({want}, f)
    _, f = fetch(function() arch.cp_async_wait_group(1) end,
                 arch.sync_threads)
    assert.are.same({(want:gsub("wait missing",
                                "the preceding wait left 1 group pending"))}, f)
  end)

  it("is seen by other threads only after a barrier", function()
    local r, f = fetch(function() arch.cp_async_wait_group(0) end, nothing)
    assert.are.same({"warp-race 5 1: read of an element that another lane of "
      .. "the warp writes, with no __syncwarp between the two lines: element "
      .. "127 of shared tensor 's'"}, f)
    assert.equal(31, r.reports[1].other)
  end)

  it("may be left in flight at the end", function()
    clean(run({block = 32}, function(a)
      local s, thr = smem(128), g2s:get_slice(arch.thread_idx())
      cute.copy(g2s, thr:partition_S(a), thr:partition_D(s))
    end, ramp(128)))
  end)

  it("over bytes that others still read is a race", function()
    local r = run({block = 64, seed = 1}, function(a)
      local tid = arch.thread_idx()
      local s, thr = smem(128), g2s:get_slice(tid % 32)
      s[tid * 2], s[tid * 2 + 1] = 1, 2
      arch.sync_threads()
      a[tid] = s[tid]
      cute.when(tid:lt(32), function()
        cute.copy(g2s, thr:partition_S(a), thr:partition_D(s))
      end)
    end, ramp(128))
    local seen = {}
    for _, x in ipairs(r.reports) do seen[x.kind] = x end
    assert.is_truthy(seen.race or seen["async-in-flight"])
  end)
end)

describe("order", function()
  it("a barrier in a branch that part of a warp takes", function()
    local base
    local r = run({block = 64}, function(a)
      local tid = arch.thread_idx()
      base = line()
      cute.when(tid:lt(48), function() arch.sync_threads() end)
      a[tid] = 1
    end, ramp(64))
    assert.are.same({"divergent 1 -: only 16 of the warp's 32 threads reach an "
      .. "operation that all of them must execute together"}, faults(r, base))
  end)

  it("a barrier that a warp never comes to", function()
    local base
    local r = run({block = 96}, function(a)
      local tid = arch.thread_idx()
      base = line()
      cute.when(tid:lt(64), function() arch.sync_threads() end)
      a[tid] = 1
    end, ramp(96))
    assert.are.same({"deadlock 1 -: no warp can go on: 2 warps wait (warp 0, "
      .. "1) at barrier 0, where 64 threads arrived and 96 are needed; 1 warp "
      .. "exited without arriving"}, faults(r, base))
  end)

  it("two barriers that wait for each other", function()
    local base
    local r = run({block = 64}, function(a)
      local tid = arch.thread_idx()
      base = line()
      cute.when(tid:lt(32), function() arch.barrier(1, 64) end, function()
        arch.barrier(2, 64)
      end)
      a[tid] = 1
    end, ramp(64))
    assert.are.same({"deadlock 1 -: no warp can go on: 1 warp waits (warp 0) "
      .. "at barrier 1, where 32 threads arrived and 64 are needed",
      "deadlock 2 -: no warp can go on: 1 warp waits (warp 1) at barrier 2, "
      .. "where 32 threads arrived and 64 are needed"}, faults(r, base))
  end)

  it("barriers for different numbers of threads", function()
    local base
    local r = run({block = 64, seed = 1}, function(a)
      local tid = arch.thread_idx()
      base = line()
      cute.when(tid:lt(32), function() arch.barrier(1, 64) end, function()
        arch.barrier(1, 32)
      end)
      a[tid] = 1
    end, ramp(64))
    assert.equal("barrier-mismatch", r.reports[1].kind)
    r = run({block = 64}, function(a)
      local tid = arch.thread_idx()
      base = line()
      arch.barrier(1, 40)
      a[tid] = 1
    end, ramp(64))
    assert.are.same({"barrier-mismatch 1 -: a barrier for 40 threads, which is "
      .. "not a whole number of warps of the block"}, faults(r, base))
  end)

  it("an endless loop ends with the budget", function()
    local base
    local r = run({block = 32, budget = 1000}, function(a)
      local x = cute.var(0)
      base = line()
      cute.loop(function() return x:get():ge(0) end, function()
        x:set(x:get() * 1)
      end)
      a[arch.thread_idx()] = 1
    end, ramp(32))
    assert.equal("runaway", r.reports[1].kind)
    assert.is_true(line() > base)
    assert.is_truthy(r.reports[1].message:find(
      "^a warp executed 1%d%d%d instructions without finishing$"))
    assert.is_false(r.ok)
  end)

  it("an endless kernel can be stopped from outside", function()
    local calls = 0
    local r = run({grid = 8, block = 32, progress = function()
      calls = calls + 1
      return calls < 2
    end}, function(a)
      cute.loop(function() return a[0]:ge(0) end, function() end)
    end, ramp(32))
    assert.equal(2, calls)
    assert.is_true(r.stopped)
  end)

  it("a shuffle from a lane that takes no part", function()
    local base
    local r = run({block = 32}, function(a)
      local tid = arch.thread_idx()
      base = line()
      cute.when(tid:lt(16), function()
        a[tid] = arch.shuffle_sync_down(a[tid], 1, 32, 0xffff)
      end)
    end, ramp(32))
    assert.are.same({"inactive-lane 2 -: shuffle reads lane 16, which does not "
      .. "take part in it"}, faults(r, base))
  end)
end)

describe("order", function()
  it("the use of what an integer division by zero gave", function()
    local base
    local function quotient(use)
      return run({block = 32}, function(a, n)
        local tid = arch.thread_idx()
        base = line()
        local q = 5 // (tid - 3)
        local r = tid % n
        use(a, tid, q, r)
      end, ramp(32, cute.i32), 0)
    end
    local said = "the result of an integer division by zero is used"
    local r = quotient(function(a, tid, q) a[tid] = q end)
    assert.are.same({"division-by-zero " .. line() - base - 1 .. " 1: "
      .. said}, faults(r, base))
    assert.are.same({3, 0, 0}, r.reports[1].thread)
    r = quotient(function(a, tid, _, m) a[tid] = m end)
    assert.are.same({"division-by-zero " .. line() - base - 1 .. " 2: "
      .. said}, faults(r, base))
    clean(quotient(function(a, tid, q)
      a[tid] = cute.where(tid:eq(3), 0, q)
      cute.when(tid:ne(3), function() a[tid] = a[tid] + q end)
    end))
    clean(run({block = 32}, function(a, n)  -- all threads of the block return
      for k in cute.range(2) do
        local q = 7 // (k + n)
        cute.when(cute.gt(k, 0), function() a[arch.thread_idx()] = q end)
      end
    end, ramp(32, cute.i32), 0))
  end)

  it("warps continue while others wait", function()
    for seed = 1, 20 do
      local A = ramp(128)
      clean(run({block = 128, seed = seed}, function(a)
        local tid = arch.thread_idx()
        local s = smem(128)
        for i in cute.range(5) do
          s[tid] = a[tid] + i:to(cute.f32)
          arch.sync_threads()
          a[tid] = s[127 - tid]
          arch.sync_threads()
        end
      end, A))
      assert.equal(127 - 0 + 10, A[0])
    end
  end)
end)

describe("reports", function()
  local function broken(opts)
    opts.grid, opts.block = 40, 64
    return run(opts, function(a)
      local tid, block = arch.thread_idx(), arch.block_idx()
      local s = smem(64)
      s[tid] = a[tid]
      a[tid + block * 64] = s[63 - tid]
      a[tid] = s[tid] + a[block * 64 + tid + 64 * 39]
    end, ramp(64 * 40))
  end

  local function told(r)
    local t = {}
    for i, x in ipairs(r.reports) do
      t[i] = {x.kind, x.line, x.line2, x.offset, x.count, x.block[1],
              x.thread[1], x.other, x.message}
    end
    return t
  end

  it("do not depend on the number of threads", function()
    local one = told(broken {seed = 5, threads = 1})
    assert.is_true(#one >= 3)
    for threads = 2, 5 do
      assert.are.same(one, told(broken {seed = 5, threads = threads}))
    end
  end)

  it("raise unless the caller asks for them", function()
    raises({"[kernel-fault]", "write outside global tensor 'a': element 32 "
      .. "of 32"}, function()
      cute.kernel("k", function(a)
        a[arch.thread_idx() + 1] = 1
      end)(ramp(32)):launch {grid = 1, block = 32, device = "sim"}
    end)
  end)

  it("are sentences", function()
    local base
    local r = run({block = 32}, function(a)
      base = line()
      a[arch.thread_idx() + 1] = 1
    end, ramp(32))
    assert.equal(([[
simulator: kernel k: 1 fault
sim_spec.lua:%d: write outside global tensor 'a': element 32 of 32 [%s]
    coordinate (32) of (32):(1)
    first in block (0,0,0), thread (31,0,0)
    predicate the access, or check that the tile divides the tensor's shape]])
      :format(base + 1, "out-of-bounds"), tostring(r))
  end)

  it("progress runs on this thread and can stop the run", function()
    local calls = 0
    local r = run({grid = 50, block = 32, threads = 1, progress = function(p)
      calls = calls + 1
      assert(p >= 0 and p <= 1)
      return calls < 10
    end}, function(a) a[arch.thread_idx()] = 1 end, ramp(32))
    assert.equal(10, calls)
    assert.is_true(r.stopped)
    assert.has_error(function()
      run({grid = 5, block = 32, threads = 1,
           progress = function() error("no", 0) end},
          function(a) a[arch.thread_idx()] = 1 end, ramp(32))
    end, "no")
  end)
end)

describe("regions", function()
  it("divergent branches, loops and variables as in plain Lua", function()
    local A = cute.zeros({64}, cute.i32)
    clean(run({block = 64}, function(a)
      local tid = arch.thread_idx()
      local sum = cute.var(0)
      for i in cute.range(tid % 7) do
        cute.when((i % 2):eq(0), function() sum:set(sum:get() + i) end,
          function() sum:set(sum:get() - tid) end)
      end
      local n = cute.var(tid)
      cute.loop(function() return n:get():gt(1) end, function()
        cute.when((n:get() % 2):eq(0), function() n:set(n:get() // 2) end,
          function() n:set(n:get() * 3 + 1) end)
        sum:set(sum:get() + 1)
      end)
      a[tid] = sum:get()
    end, A))
    for t = 0, 63 do
      local sum, n = 0, t
      for i = 0, t % 7 - 1 do sum = i % 2 == 0 and sum + i or sum - t end
      while n > 1 do
        n = n % 2 == 0 and n // 2 or n * 3 + 1
        sum = sum + 1
      end
      assert.equal(sum, A[t])
    end
  end)

  it("integers wrap and divide as in Lua", function()
    local X, Y = cute.zeros({64}, cute.i32), cute.zeros({64, 6}, cute.i32)
    local big = 0x7fffffff
    for i = 0, 63 do X[i] = (i * 715827883 + big) % (1 << 32) - (1 << 31) end
    clean(run({block = 64}, function(x, y)
      local t = arch.thread_idx()
      local v, w = x[t], t % 5 - 7
      y[{t, 0}], y[{t, 1}] = v * 3, v + 0x7fffffff
      y[{t, 2}], y[{t, 3}] = v // w, v % w
      y[{t, 4}], y[{t, 5}] = v >> 3, v << 3
    end, X, Y))
    local function i32(v) return (v + (1 << 31)) % (1 << 32) - (1 << 31) end
    for t = 0, 63 do
      local v, w = X[t], t % 5 - 7
      for k, want in ipairs {v * 3, v + big, v // w, v % w, v >> 3 | 0,
                             v << 3} do
        if k == 5 then want = v // 8 end  -- arithmetic shift
        assert.equal(i32(want), Y[{t, k - 1}])
      end
    end
  end)
end)

describe("shuffles and votes", function()
  it("a butterfly sum", function()
    local A, B = ramp(64), cute.zeros({64}, cute.f32)
    clean(run({block = 64}, function(a, b)
      local t = arch.thread_idx()
      b[t] = arch.warp_reduction(a[t], function(x, y) return x + y end)
    end, A, B))
    assert.equal(496, B[0])
    assert.equal(496 + 32 * 32, B[63])
  end)

  it("by index, up, down; ballots", function()
    local B = cute.zeros({32, 4}, cute.i32)
    clean(run({block = 32}, function(b)
      local t = arch.thread_idx()
      b[{t, 0}] = arch.shuffle_sync(t, 5)
      b[{t, 1}] = arch.shuffle_sync_up(t, 2, 16)
      b[{t, 2}] = arch.shuffle_sync_down(t, 3)
      b[{t, 3}] = arch.warp_redux_sync(t, "add")
    end, B))
    for t = 0, 31 do
      assert.equal(5, B[{t, 0}])
      assert.equal(t % 16 < 2 and t or t - 2, B[{t, 1}])
      assert.equal(t < 29 and t + 3 or t, B[{t, 2}])
      assert.equal(496, B[{t, 3}])
    end
  end)
end)

describe("statistics", function()
  -- Computes the passes of an access of 4 bytes per lane: the largest number of
  -- different words in one bank.
  local function passes(addr)
    local words, most = {}, 0
    for _, a in ipairs(addr) do
      local bank, word = a // 4 % 32, a // 4
      words[bank] = words[bank] or {n = 0}
      if not words[bank][word] then
        words[bank][word] = true
        words[bank].n = words[bank].n + 1
      end
      most = math.max(most, words[bank].n)
    end
    return most
  end

  local function find(r, op)
    for _, l in ipairs(r.lines) do if l.op == op then return l end end
  end

  it("bank conflicts of strided accesses", function()
    for _, stride in ipairs {1, 2, 3, 4, 8, 16, 32, 33} do
      local r = run({block = 64}, function(a)
        local t = arch.thread_idx()
        local s = smem(64 * 33)
        s[t * stride] = a[t]
        a[t] = s[t * stride]
      end, ramp(64))
      clean(r)
      local want = 0
      for w = 0, 1 do
        local addr = {}
        for l = 0, 31 do addr[l + 1] = (w * 32 + l) * stride * 4 end
        want = want + passes(addr)
      end
      for _, op in ipairs {"ld.shared", "st.shared"} do
        local l = find(r, op)
        assert.are.same({2, want, want - 2, 256},
                        {l.count, l.wavefronts, l.conflicts, l.bytes})
      end
    end
  end)

  it("sectors of strided accesses", function()
    for _, stride in ipairs {1, 2, 8, 9} do
      local r = run({block = 32}, function(a, b)
        b[arch.thread_idx()] = a[arch.thread_idx() * stride]
      end, ramp(32 * 9), ramp(32))
      local seen, n = {}, 0
      for l = 0, 31 do
        local sector = l * stride * 4 // 32
        if not seen[sector] then seen[sector], n = true, n + 1 end
      end
      local l = find(r, "ld.global")
      assert.are.same({1, n, 4}, {l.requests, l.sectors, l.least_sectors})
    end
  end)

  it("add up over warps, blocks and loops", function()
    local r = run({grid = 6, block = 96}, function(a)
      local t = arch.thread_idx()
      for i in cute.range(10) do a[t + i * 0] = 1 end
    end, ramp(96))
    local l = find(r, "st.global")
    assert.are.same({180, 720, 180 * 128}, {l.count, l.sectors, l.bytes})
    assert.equal(6, r.ctas)
  end)
end)

describe("arguments", function()
  it("scalars, small floats and 64-bit integers", function()
    local H, L = cute.zeros({32}, cute.f16), cute.zeros({32}, cute.i64)
    clean(run({block = 32}, function(h, l, n, x)
      local t = arch.thread_idx()
      h[t] = (t:to(cute.f32) * x):to(cute.f16)
      l[t] = t:to(cute.i64) * n
    end, H, L, 1 << 40, 0.5))
    assert.equal(15.5, H[31])
    assert.equal(31 << 40, L[31])
  end)

  it("are rejected if the launch does not fit", function()
    local program = cute.kernel("k", function(a) a[0] = 1 end)(ramp(4)):trace {
      block = 32}
    assert.has_error(function()
      core.sim_run(program.fn, {grid = {1, 1, 1}, block = {64, 1, 1},
                                args = {}, sm = 80})
    end)
  end)
end)

describe("the whole of shared memory", function()
  it("is undefined at the start of every block", function()
    local base
    local r = run({grid = 3, block = 32, threads = 1}, function(a)
      local t, b = arch.thread_idx(), arch.block_idx()
      local s = smem(32)
      base = line()
      cute.when(b:gt(0), function() a[t] = s[t] end)
      arch.sync_warp()
      s[t] = 1
    end, ramp(32))
    assert.are.same({"uninitialised 1 -: read of uninitialised memory: "
      .. "element 0 of shared tensor 's'"}, faults(r, base))
    assert.are.same({1, 0, 0}, r.reports[1].block)
    assert.equal(2, r.reports[1].count)
  end)
end)

describe("a NaN as an integer", function()
  -- PTX converts a NaN to the integer with only the top bit set if the source
  -- is f64 or the result has 64 bits; otherwise to 0. For results below 32
  -- bits, CUDA C converts to i32 and then clamps.
  local MIN = math.mininteger
  local FROM = {
    f64 = {i8 = -128, i16 = -32768, i32 = -(1 << 31), i64 = MIN, u8 = 0,
           u16 = 0, u32 = 1 << 31, u64 = MIN},
    f32 = {i8 = 0, i16 = 0, i32 = 0, i64 = MIN, u8 = 0, u16 = 0, u32 = 0,
           u64 = MIN}}
  for from, want in pairs(FROM) do
    it("from " .. from .. " is what the hardware makes of it", function()
      for to, value in pairs(want) do
        local x = cute.full({1}, 0 / 0, cute[from])
        local y = cute.zeros({1}, cute[to])
        cute.kernel("k", function(a, b) b[0] = a[0]:to(cute[to]) end)(x, y)
          :launch {grid = 1, block = 1, device = "sim"}
        assert.equal(value, y[0], from .. " to " .. to)
      end
    end)
  end
end)

describe("a NaN of f32 arithmetic", function()
  -- In PTX, a NaN result is 0x7fffffff, whatever NaNs the operands are.
  -- Negation, selection and moves keep the bits of a NaN. Each operation is
  -- tested in one lane and in all lanes, and with constants.
  local OPS = {
    add = function(a, b) return a + b end,
    sub = function(a, b) return b - a end,
    mul = function(a, b) return a * b end,
    div = function(a, b) return a / b end,
    fma = function(a, b) return cute.fma(b, b, a) end,
    sqrt = function(a) return cute.sqrt(a) end,
    rcp = function(a) return cute.math.rcp(a) end,
    min = function(a) return cute.min(a, -a) end}
  for name, op in pairs(OPS) do
    it("has lost its payload: " .. name, function()
      for _, bits in ipairs {0x7fc00001, 0xffc12345, 0x7f800001} do
        for block = 1, 32, 31 do
          local x = cute.full({32}, bits, cute.u32)
          local y, z = cute.zeros({32}, cute.u32), cute.zeros({32}, cute.u32)
          cute.kernel("k", function(a, b, c)
            local t = arch.thread_idx()
            local nan = a[t]:bitcast(cute.f32)
            b[t] = op(nan, (t + 1):to(cute.f32)):bitcast(cute.u32)
            c[t] = cute.where(t:lt(32), nan, 0):bitcast(cute.u32)
          end)(x, y, z):launch {grid = 1, block = block, device = "sim"}
          assert.equal(0x7fffffff, y[block - 1])
          assert.equal(bits, z[block - 1])
        end
      end
    end)
  end
end)

describe("a NaN, quiet or signaling, and a number", function()
  local NAN = {f64 = {0x7ff8000000000000, 0x7ff0000000000001},
               f32 = {0x7fc00000, 0x7f800001}, f16 = {0x7e00, 0x7c01}}
  for name, list in pairs(NAN) do
    it("are the number in min and max of " .. name, function()
      local t = cute[name]
      for _, bits in ipairs(list) do
        local y = cute.zeros({4}, t)
        cute.kernel("k", function(a, b)
          local number = b[0] + 2
          local nan = a[0]:bitcast(t)
          b[0], b[1] = cute.min(nan, number), cute.min(number, nan)
          b[2], b[3] = cute.max(nan, number), cute.max(number, nan)
        end)(cute.full({1}, bits, cute["u" .. t.bits]), y)
          :launch {grid = 1, block = 1, device = "sim"}
        for i = 0, 3 do assert.equal(2.0, y[i]) end
      end
    end)
  end
end)
-- SPDX-License-Identifier: MIT
