-- Tests blocks that pass data to one another through global memory by a release
-- and an acquire. If one of the two is missing, every schedule must report it;
-- the complete kernel must have no reports. Also tests deadlocks of waits for
-- flags. Reports must not depend on the number of host threads.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local SEEDS = 8
local ACQ, REL = {sem = "acquire", scope = "gpu"},
  {sem = "release", scope = "gpu"}
local RLX = {sem = "relaxed", scope = "gpu"}
local gpu = arch.fence_acq_rel_gpu

local function line() return debug.getinfo(2, "l").currentline end
local function zeros(n, dtype) return cute.zeros({n}, dtype or cute.i32) end

-- Returns the report of a launch of f, whose arguments are tensors of zeros of
-- these sizes.
local function launch(opts, f, sizes)
  local args = {}
  for i, n in ipairs(sizes) do args[i] = zeros(n, opts.dtype) end
  local all = {grid = 2, block = 64, device = "sim:sm_90a", output = false,
               faults = "return"}
  for name, v in pairs(opts) do if name ~= "dtype" then all[name] = v end end
  local call = cute.kernel("k", f)(table.unpack(args))
  return support.report(call:launch(all)), args
end

-- Runs f under several seeds. Returns a list of the reports, "kind line line2",
-- and the number of seeds with a report.
local function found(f, sizes, opts)
  local list, some = {}, 0
  for seed = 1, SEEDS do
    local all = {seed = seed, threads = seed % 3 + 1}
    for name, v in pairs(opts or {}) do all[name] = v end
    local r = launch(all, f, sizes)
    if not r.ok then some = some + 1 end
    for _, x in ipairs(r.reports) do
      local text = ("%s %d %s"):format(x.kind, x.line, x.line2 or "-")
      if not list[text] then list[#list + 1] = text end
      list[text] = true
    end
  end
  table.sort(list)
  return table.concat(list, ", "), some
end

local function poll(ptr, how)
  cute.loop(function() return arch.load(ptr, nil, how or ACQ):eq(0) end,
            function() end)
end

-- Runs a kernel in which block 0 stores x[t] and signals by flag 0. Block 1
-- waits for the flag and reads x[t]. `parts` replaces steps of the kernel by
-- name, such as meet or publish.
local function handover(parts)
  local at = support.recorder()
  local function part(name, default) return parts[name] or default end
  local function kernel(x, flag, y)
    local t, b = arch.thread_idx(), arch.block_idx()
    local first = t:eq(0)
    cute.when(b:eq(0), function()
      at[1] = line() + 1
      if not parts.late then x[t] = t + 1 end
      part("meet", arch.sync_threads)()
      cute.when(first, function()
        part("publish", function() arch.store(flag.iterator, 1, REL) end)(flag)
      end)
      if parts.late then x[t] = t + 1 end
    end)
    cute.when(b:eq(1), function()
      cute.when(first, function()
        part("wait", function() poll(flag.iterator) end)(flag)
      end)
      part("met", arch.sync_threads)()
      at[2] = line() + 1
      y[t] = x[63 - t]
    end)
  end
  local text, some = found(kernel, {64, 4, 64}, parts.opts)
  if parts.late then at[1] = at[1] + 5 end
  return text, some, ("block-race %d %d"):format(at[2], at[1])
end

local function whole(parts)
  assert.equal("", (handover(parts)))
end

local function broken(parts)
  local text, some, want = handover(parts)
  assert.equal(want, text)
  assert.equal(SEEDS, some)
end

describe("passing data between blocks", function()
  it("is right with all operations", function()
    whole {}
    whole {publish = function(f)
      gpu()
      arch.store(f.iterator, 1, RLX)
    end, wait = function(f)
      poll(f.iterator, RLX)
      gpu()
    end}
    whole {publish = function(f)
      arch.atomic_add(f.iterator, 1, {sem = "release", scope = "gpu"})
      -- a relaxed atomic continues the release sequence
      arch.atomic_add(f.iterator, 1)
    end}
  end)

  it("data stored after the flag", function() broken {late = true} end)

  it("no barrier before one thread's release", function()
    broken {meet = function() end}
  end)

  it("no barrier after one thread's acquire", function()
    broken {met = function() end}
  end)

  -- Runs a kernel of three blocks. Block 1 signals by flag 1 that it has
  -- started. With `chain`, it waits for block 0 before that.
  local function three(chain, waits)
    local at = support.recorder()
    local text, some = found(function(x, flag, y)
      local t, b = arch.thread_idx(), arch.block_idx()
      cute.when(b:eq(0), function()
        at[1] = line() + 1
        x[t] = t + 1
        arch.sync_threads()
        cute.when(t:eq(0), function() arch.store(flag.iterator, 1, REL) end)
      end)
      cute.when(b:eq(1) & t:eq(0), function()
        if chain then poll(flag.iterator) end
        arch.store(flag.iterator + 1, 1, REL)
      end)
      cute.when(b:eq(2), function()
        poll(flag.iterator + waits)
        at[2] = line() + 1
        y[t] = x[63 - t]
      end)
    end, {64, 4, 64}, {grid = 3})
    return text, some, ("block-race %d %d"):format(at[2], at[1])
  end

  it("the flag of another block #long", function()
    assert.equal("", (three(false, 0)))
    assert.equal("", (three(true, 1)))
    local text, some, want = three(false, 1)
    assert.equal(want, text)
    assert.equal(SEEDS, some)
  end)

  it("a flag that is read once", function()
    local text, some, want = handover {wait = function(f)
      arch.load(f.iterator, nil, ACQ)
    end}
    assert.equal(want, text)
    assert.is_true(some >= SEEDS // 4)
  end)

  it("relaxed on either side, or with too narrow a scope #long", function()
    broken {publish = function(f) arch.store(f.iterator, 1, RLX) end}
    broken {wait = function(f) poll(f.iterator, RLX) end}
    local text, some, want = handover {publish = function(f)
      arch.store(f.iterator, 1, {sem = "release", scope = "cluster"})
    end}  -- cluster scope does not include the other block
    assert.matches("^block%-race %d+ %d+, " .. want:gsub("%-", "%%-") .. "$",
                   text)
    assert.equal(SEEDS, some)
    broken {wait = function(f)
      gpu()
      poll(f.iterator, RLX)
    end}
  end)

  it("a store of the flag by another thread ends what was released", function()
    local function kernel(again)
      return function(x, flag)
        local t, b = arch.thread_idx(), arch.block_idx()
        cute.when(b:eq(0), function()
          cute.when(t:eq(0), function()
            x[0] = 1
            arch.store(flag.iterator, 1, REL)
          end)
          arch.sync_threads()
          cute.when(t:eq(again), function()
            arch.store(flag.iterator, 2, RLX)
          end)
        end)
        cute.when(b:eq(1) & t:eq(0), function()
          cute.loop(function()
            return arch.load(flag.iterator, nil, ACQ):lt(2)
          end, function() end)
          x[1] = x[0]
        end)
      end
    end
    assert.equal("", (found(kernel(0), {2, 1})))
    assert.matches("^block%-race %d+ %d+$", (found(kernel(1), {2, 1})))
  end)
end)

describe("passing data between blocks", function()
  -- Threads of block 0 store data, and block 1 reads the data by a bulk copy.
  it("to an asynchronous copy needs a proxy fence #long", function()
    local at, cpasync = support.recorder(), cute.nvgpu.cpasync
    local g2s = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.i32)
    local function kernel(before, behind)
      return function(x, flag, y)
        local t, b = arch.thread_idx(), arch.block_idx()
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64}, 128)
        local bar = arch.alloc_smem(cute.i64, 1)
        cute.when(t:eq(0), function()
          arch.mbarrier_init(bar, 1)
          arch.mbarrier_init_fence()
        end)
        arch.sync_threads()
        cute.when(b:eq(0), function()
          at[1] = line() + 1
          x[t] = t
          if before then arch.fence_proxy(before) end
          arch.sync_threads()
          cute.when(t:eq(0), function() arch.store(flag.iterator, 1, REL) end)
        end, function()
          cute.when(t:eq(0), function()
            poll(flag.iterator)
            if behind then arch.fence_proxy(behind) end
            arch.mbarrier_arrive_and_expect_tx(bar, 256)
            local from, to = cpasync.group_bulk_copy_modes(x, s)
            at[2] = line() + 1
            cute.copy(g2s, from, to, {mbar_ptr = bar})
          end)
          arch.mbarrier_wait(bar, 0)
          y[t] = s[t]
        end)
      end
    end
    local sizes = {64, 1, 64}
    for _, kind in ipairs {"async", "async.global"} do
      assert.equal("", (found(kernel(kind), sizes)))
      assert.equal("", (found(kernel(nil, kind), sizes)))
    end
    local text, some = found(kernel(), sizes)
    assert.equal(("race %d %d"):format(at[2], at[1]), text)
    assert.equal(SEEDS, some)
    assert.equal(text, (found(kernel("async.shared"), sizes)))
  end)
end)

describe("flags that never come", function()
  it("are reported with who waits, and who wrote the flag last", function()
    local at = support.recorder()
    local r = launch({grid = 3, block = 96}, function(flag, y)
      local t, b = arch.thread_idx(), arch.block_idx()
      cute.when(b:eq(1) & t:eq(0), function()
        at[1] = line() + 1
        arch.store(flag.iterator + 3, 1, REL)
      end)
      cute.when(b:eq(2) & t:eq(64), function()
        at[2] = line() + 2
        cute.loop(function()
          return arch.load(flag.iterator + 3, nil, ACQ):lt(2)
        end, function() end)
        y[0] = 1
      end)
    end, {8, 1})
    assert.equal(1, #r.reports)
    local f = r.reports[1]
    assert.equal("deadlock", f.kind)
    assert.equal("no warp can go on: 1 warp waits (warp 2) at element 3 of "
      .. "global tensor 'flag', which is 1 and was last written by block "
      .. "(1,0,0); 2 warps exited without arriving", f.message)
    assert.same({at[2], at[1]}, {f.line, f.line2})
    assert.same({2, 0, 0}, f.block)
  end)

  it("in shared memory", function()
    local r = launch({grid = 1}, function(y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {2}, 16)
      cute.when(t:lt(2), function() s[t] = 5 end)
      arch.sync_threads()
      cute.when(t:eq(0), function()
        cute.loop(function()
          return arch.load(s.iterator + 1, nil, {sem = "acquire",
                                                 scope = "cta"}):eq(5)
        end, function() end)
      end)
      arch.sync_threads()
      y[t] = s[0]
    end, {64})
    assert.matches("1 thread of warp 0 waits at element 1 of shared tensor "
      .. "'s', which is 5 and was last written by block %(0,0,0%)$",
      r.reports[1].message)
  end)

  it("a lock that no thread releases", function()
    local r = launch({grid = 2, block = 32}, function(lock, y)
      cute.when(arch.thread_idx():eq(0), function()
        cute.loop(function()
          return arch.atomic_cas(lock.iterator, {cmp = 0, val = 1}):ne(0)
        end, function() end)
        y[0] = y[0] + 1
      end)
    end, {1, 1})
    assert.matches("at element 0 of global tensor 'lock', which is 1 and was "
      .. "last written by block %(%d,0,0%)", r.reports[1].message)
  end)
end)

describe("a barrier over all blocks", function()
  local function kernel(count, y)
    local t, b, n = arch.thread_idx(), arch.block_idx(), arch.grid_dim()
    cute.when(t:eq(0), function()
      y[b] = b
      arch.atomic_add(count.iterator, 1, {sem = "release", scope = "gpu"})
      cute.loop(function()
        return arch.load(count.iterator, nil, ACQ):lt(n)
      end, function() end)
    end)
    arch.sync_threads()
    cute.when(t:eq(0), function() y[n + b] = y[(b + 1) % n] end)
  end

  it("completes with any number of host threads", function()
    for _, n in ipairs {2, 40, 300} do
      for threads = 1, 2 do
        local r, args = launch({grid = n, block = 32, threads = threads},
                               kernel, {1, 2 * n})
        assert.is_true(r.ok)
        for b = 0, n - 1 do assert.equal((b + 1) % n, args[2][n + b]) end
      end
    end
  end)

  -- Returns a kernel that runs several rounds of grid barriers. With `own`,
  -- every thread polls; otherwise only the first thread of each block does.
  local function rounds(wait, own)
    return function(count, x, y)
      local t, b, n = arch.thread_idx(), arch.block_idx(), arch.grid_dim()
      for r in cute.range(2) do
        cute.when(t:eq(0), function()
          x[r * n + b] = b + r
          arch.atomic_add(count.iterator + r, 1, REL)
          if not own then wait(count, r, n) end
        end)
        if own then wait(count, r, n) end
        arch.sync_threads()
        cute.when(t:eq(0), function() y[b] = x[r * n + (b + 1) % n] end)
      end
    end
  end

  it("takes instructions and time linear in the blocks #long", function()
    local function by_load(count, r, n)
      cute.loop(function()
        return arch.load(count.iterator + r, nil, ACQ):lt(n)
      end, function() end)
    end
    local function by_atomic(count, r, n)
      local acq = {sem = "acq_rel", scope = "gpu"}
      cute.loop(function()
        return arch.atomic_add(count.iterator + r, 0, acq):lt(n)
      end, function() end)
    end
    for _, k in ipairs {{by_load}, {by_load, true}, {by_atomic}} do
      local function cost(n)
        local r, args = launch({grid = n, block = 32}, rounds(k[1], k[2]),
                               {2, 2 * n, n})
        assert.is_true(r.ok)
        for b = 0, n - 1 do assert.equal((b + 1) % n + 1, args[3][b]) end
        return r.instructions
      end
      local few, many = cost(128), cost(1024)
      assert.is_true(many < 12 * few, ("%d %d"):format(few, many))
    end
  end)

  it("is in progress while blocks wait #long", function()
    local waiting, last = 0, 0
    local r = launch({grid = 4000, block = 32, progress = function(part)
      assert(part >= last)
      last = part
      if part > 0 and part < 0.5 then waiting = waiting + 1 end
    end}, kernel, {1, 8000})
    assert.is_true(r.ok)
    assert.equal(1.0, last)
    assert.is_true(waiting > 0)
  end)

  it("not with more blocks than the SMs hold #long", function()
    -- So much shared memory is used that an SM holds only two of these blocks.
    local function held(count, y)
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {25 << 10})
      s[arch.thread_idx()] = 0
      kernel(count, y)
    end
    for _, c in ipairs {{264, held, "sim:sm_90a", 32},
                        {108, kernel, "sim:sm_89", 1024}} do
      local n, f, device, block = table.unpack(c)
      local o = {grid = n + 1, block = block, device = device}
      local r = launch(o, f, {1, 2 * n + 2})
      assert.equal("deadlock", r.reports[1].kind)
      assert.matches("global tensor 'count', which is " .. n .. " and was last "
        .. "written by block .*; 1 blocks cannot start before others exit: all "
        .. "SMs are full", r.reports[1].message)
      o.grid = n
      assert.is_true((launch(o, f, {1, 2 * n})).ok)
    end
  end)
end)

describe("results that blocks compute together", function()
  it("are the same on any host, sums of floats in an order, too", function()
    local first
    for threads = 1, 3 do
      local _, args = launch({grid = 50, block = 32, threads = threads,
                              dtype = cute.f32}, function(sum, taken)
        local b = arch.block_idx()
        arch.atomic_add(sum.iterator, 1 / (b + 3):to(cute.f32))
        cute.when(arch.thread_idx():eq(0), function()
          taken[b] = arch.atomic_add(taken.iterator + 50, 1.0)
        end)
      end, {1, 51})
      local text = {("%a"):format(args[1][0])}
      for b = 0, 49 do text[b + 2] = ("%g"):format(args[2][b]) end
      text = table.concat(text, " ")
      first = first or text
      assert.equal(first, text)
    end
  end)
end)

describe("accesses with an order, of two blocks", function()
  -- The scope of each of the two accesses must include the other block,
  -- whichever access is first.
  local WIDTH = {cta = 1, cluster = 2, gpu = 3, sys = 4}
  for _, cluster in ipairs {1, 2} do
    it("race where one is for its own block, clusters of " .. cluster,
        function()
      for writer, wide in pairs(WIDTH) do
        for reader, width in pairs(WIDTH) do
          for first = 0, 1 do
            local r = launch({cluster = cluster, block = 32, seed = first},
              function(x, y)
                cute.when(arch.thread_idx():eq(0), function()
                  local write = arch.block_idx():eq(first)
                  cute.when(write, function()
                    arch.store(x.iterator, 1, {sem = "relaxed",
                                               scope = writer})
                  end)
                  cute.when(~write, function()
                    y[0] = arch.load(x.iterator, nil, {sem = "relaxed",
                                                       scope = reader})
                  end)
                end)
              end, {1, 1})
            local ok = math.min(wide, width) >= (cluster == 2 and 2 or 3)
            assert.equal(ok, r.ok, writer .. reader .. first)
            if not ok then
              assert.equal(cluster == 2 and "race" or "block-race",
                           r.reports[1].kind)
            end
          end
        end
      end
    end)
  end
end)

---------------------------------------------------------------------------
-- Accesses that a later, or an earlier, access of the same thread hides
---------------------------------------------------------------------------

local GPU = {sem = "relaxed", scope = "gpu"}
local function add(p, how) arch.atomic_add(p, 1, how) end

-- Returns the report of a launch in which block 1 executes f, and block 0 adds
-- to the same counters.
local function report(f, cluster, used, seed)
  return support.report(cute.kernel("k", function(x, y)
    cute.when(arch.thread_idx():eq(0), function()
      cute.when(arch.block_idx():eq(1), function() f(x.iterator) end,
        function()
          for i = 0, 1 do
            local old = arch.atomic_add(x.iterator, 1, GPU)
            if used then y[i] = old end
          end
        end)
    end)
  end)(cute.zeros({1}, cute.i32), cute.zeros({2}, cute.i32)):launch {
    grid = 2, cluster = cluster, block = 32, device = "sim:sm_90a",
    seed = seed, faults = "return"})
end

describe("an access that is weaker than other blocks' atomics", function()
  local CTA = {sem = "relaxed", scope = "cta"}
  local function first(p) return cute.make_tensor(p, cute.make_layout(1)) end

  local WEAK = {
    function(p) arch.store(p, 5, CTA) end,
    function(p) add(p, CTA) end,
    function(p) first(p)[0] = 5 end,
  }
  -- Other accesses to the counter in the same thread, before or after `weak`,
  -- the access that is tested.
  local AROUND = {
    function(p, weak) weak(p) end,
    function(p, weak) weak(p) add(p, GPU) end,
    function(p, weak) weak(p) arch.store(p, 3, GPU) end,
    function(p, weak) arch.store(p, 3, GPU) weak(p) end,
    function(p, weak) arch.load(p, nil, GPU) weak(p) end,
  }
  local function each(f)
    for cluster = 1, 2 do
      for seed = 1, 4 do
        for _, used in ipairs {true, false} do f(cluster, used, seed) end
      end
    end
  end

  it("is reported in all schedules, whatever else its thread does #long",
     function()
    for i, around in ipairs(AROUND) do
      for j, weak in ipairs(WEAK) do
        each(function(cluster, used, seed)
          local r = report(function(p) around(p, weak) end, cluster, used, seed)
          local name = ("%d %d, cluster %d"):format(i, j, cluster)
          assert.is_false(r.ok, name)
          assert.equal(cluster == 1 and "block-race" or "race",
                       r.reports[1].kind, name)
        end)
      end
    end
  end)

  it("by a read before an atomic, too", function()
    each(function(cluster, used, seed)
      assert.is_false(report(function(p)
        arch.atomic_add(p, first(p)[0], GPU)
      end, cluster, used, seed).ok)
    end)
  end)

  it("by an atomic of block scope, hidden by one of GPU scope", function()
    each(function(cluster, used, seed)
      assert.is_false(report(function(p) add(p, GPU) arch.store(p, 5, CTA) end,
                             cluster, used, seed).ok)
    end)
  end)

  it("is right if all have GPU scope", function()
    each(function(cluster, used, seed)
      local r = report(function(p)
        arch.load(p, nil, GPU)
        add(p, GPU)
        if not used then arch.store(p, 3, GPU) end
        add(p, GPU)
      end, cluster, used, seed)
      assert.is_true(r.ok, tostring(r))
    end)
  end)

  -- All blocks add to y and then draw a ticket. The block with the last ticket
  -- reads the sum.
  it("a sum that is read behind a relaxed ticket alone", function()
    local function run(how, seed)
      return support.report(cute.kernel("k", function(y, z, ticket)
        local t = arch.thread_idx()
        arch.atomic_add(y.iterator + t, 1)
        local last = cute.make_smem_tensor(cute.i32, cute.make_layout(1))
        arch.sync_threads()
        cute.when(t:eq(0), function()
          last[0] = arch.atomic_add(ticket.iterator, 1, {sem = how})
        end)
        arch.sync_threads()
        cute.when(last[0]:eq(2), function() z[t] = y[t] end)
      end)(cute.zeros({64}, cute.i32), cute.zeros({64}, cute.i32),
           cute.zeros({1}, cute.i32)):launch {grid = 3, block = 64,
        device = "sim:sm_90a", seed = seed, faults = "return"})
    end
    for seed = 1, 6 do
      assert.is_true(run("acq_rel", seed).ok)
      local f = run("relaxed", seed).reports[1]
      assert.equal("block-race", f.kind)
      assert.equal("y", f.tensor)
    end
  end)
end)

describe("an access that is weaker than other blocks' atomics", function()
  it("in shared memory is told: no barrier behind what thread 0 put there",
    function()
    local function run(sync, seed)
      return support.report(cute.kernel("k", function(y)
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout(1))
        local t = arch.thread_idx()
        cute.when(t:eq(0), function()
          s[0] = 0
          if not sync then add(s.iterator, GPU) end
        end)
        if sync then arch.sync_threads() end
        cute.when(t:gt(0), function() add(s.iterator, GPU) end)
        arch.sync_threads()
        y[t] = s[0]
      end)(cute.zeros({64}, cute.i32)):launch {grid = 1, block = 64,
        device = "sim:sm_90a", seed = seed, faults = "return"})
    end
    for seed = 1, 6 do
      assert.is_true(run(true, seed).ok)
      assert.is_false(run(false, seed).ok)
    end
  end)
end)

---------------------------------------------------------------------------
-- Counters that are reset
---------------------------------------------------------------------------

describe("a queue of tiles", function()
  it("that a block resets while others draw is reported", function()
    for seed = 1, 6 do
      local r = support.report(cute.kernel("k", function(count, y)
        local b = arch.block_idx()
        cute.when(arch.thread_idx():eq(0), function()
          cute.when(b:eq(1), function()
            arch.store(count.iterator, 0, {sem = "relaxed"})
          end)
          y[b] = arch.atomic_add(count.iterator, 1)
        end)
      end)(cute.zeros({1}, cute.i32), cute.zeros({4}, cute.i32)):launch {
        grid = 4, block = 32, device = "sim:sm_90a", seed = seed,
        faults = "return"})
      assert.equal("block-race", r.reports[1].kind)
      assert.matches("takes a number from a counter that block %(1,0,0%)",
                     r.reports[1].message)
    end
  end)

  local TILES, GRID = 12, 4
  local RELAXED = {sem = "relaxed", scope = "gpu"}
  local PUT = {
    store = function(c) arch.store(c, 0, RELAXED) end,
    exchange = function(c) arch.atomic_exch(c, 0) end,
    plain = function(c) cute.make_tensor(c, cute.make_layout(1))[0] = 0 end,
  }

  -- The block that draws ticket number `at` from the counter resets it.
  local function numbers(put, at, seed)
    local counter = cute.zeros({1}, cute.i32)
    local lines = support.recorder()
    local r = support.report(cute.kernel("k", function(count, y)
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(1))
      local tile = cute.var(0)
      local function draw()
        cute.when(arch.thread_idx():eq(0), function()
          lines.draw = line() + 1
          local drawn = arch.atomic_add(count.iterator, 1)
          cute.when(drawn:eq(at), function() put(count.iterator) end)
          s[0] = drawn
        end)
        arch.sync_threads()
        tile:set(s[0])
        arch.sync_threads()
      end
      draw()
      cute.loop(function() return tile:get():lt(TILES) end, function()
        y[tile:get() * 32 + arch.thread_idx()] = tile:get()
        draw()
      end)
    end)(counter, cute.zeros({TILES * 32}, cute.i32)):launch {grid = GRID,
      block = 32, device = "sim:sm_90a", seed = seed, faults = "return"})
    return r, counter[0], lines
  end

  it("is reset by the last draw #long", function()
    for name, put in pairs(PUT) do
      for seed = 1, 4 do
        local r, left = numbers(put, TILES + GRID - 1, seed)
        assert.is_true(r.ok, name .. tostring(r))
        assert.equal(0, left)
      end
    end
  end)

  it("too early is told, though tiles are the same twice #long", function()
    for name, put in pairs(PUT) do
      for seed = 1, 2 do
        for early = 1, 3 do
          local r, _, at = numbers(put, TILES + GRID - 1 - early, seed)
          local f = r.reports[1]
          assert.equal("block-race", f.kind)
          if name ~= "plain" then
            assert.equal(at.draw, f.line)
            assert.matches("^block %(%d,0,0%) takes a number from a counter "
              .. "that block %(%d,0,0%) resets, with nothing to order the "
              .. "reset after every take: element 0 of global tensor "
              .. "'count'$", f.message)
          end
        end
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
