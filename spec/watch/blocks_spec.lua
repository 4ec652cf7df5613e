-- Tests races in global memory between the blocks of a launch. The simulator
-- must report exactly the accesses that the PTX memory model calls a race. The
-- reports must not depend on the number of host threads that run the blocks.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local function line() return debug.getinfo(2, "l").currentline end

local function zeros(n, dtype) return cute.zeros({n}, dtype or cute.i32) end

-- Launches f with one, two and three host threads. Returns the reports, each as
-- "kind line line2 tensor". If an argument is a function, it is called for each
-- launch to make the actual argument.
local function found(grid, block, f, ...)
  local all
  for threads = 1, 3 do
    for seed = 1, 2 do
      local args = {...}
      for i, x in ipairs(args) do
        args[i] = type(x) == "function" and x() or x
      end
      local call = cute.kernel("k", f)(table.unpack(args))
      local r = support.report(call:launch {grid = grid,
        block = block, seed = seed, threads = threads, device = "sim:sm_90a",
        faults = "return", budget = 10000000})
      local list = {}
      for i, x in ipairs(r.reports) do
        list[i] = ("%s %d %s %s"):format(x.kind, x.line, x.line2 or "-",
                                         x.tensor)
      end
      table.sort(list)
      local text = table.concat(list, ", ")
      assert(not all or all == text, ("%d threads, seed %d: %s, not %s")
        :format(threads, seed, text, tostring(all)))
      all = text
    end
  end
  return all
end

local function clean(...) assert.equal("", found(...)) end

describe("blocks that share nothing", function()
  it("write their own parts, however narrow", function()
    for _, t in ipairs {cute.i32, cute.bf16, cute.i8, cute.f64} do
      clean(4, 32, function(a)
        local tid, b = arch.thread_idx(), arch.block_idx()
        -- Neighbouring elements belong to different blocks.
        a[tid * 4 + b] = (tid + b):to(t)
      end, zeros(128, t))
    end
  end)

  it("read shared data, and update their own in place", function()
    clean(4, 32, function(a, b)
      local i = arch.block_idx() * 32 + arch.thread_idx()
      b[i] = b[i] + a[i] + a[0]
    end, zeros(128), zeros(128))
  end)

  it("elements below a byte", function()
    clean(2, 32, function(a)
      local i = arch.thread_idx() * 2 + arch.block_idx()
      a[i] = 3
      a[i] = a[i] + 1
    end, zeros(64, cute.i4))
  end)

  it("launches are ordered", function()
    local A = zeros(64)
    for k = 1, 2 do
      clean(2, 32, function(a)
        local i = arch.block_idx() * 32 + arch.thread_idx()
        a[k == 1 and i or 63 - i] = i
      end, A)
    end
  end)
end)

describe("blocks that share memory without order", function()
  it("stores of different values", function()
    local at = support.recorder()
    local text = found(3, 32, function(a)
      at[1] = line() + 1
      a[arch.thread_idx()] = arch.block_idx()
    end, zeros(32))
    assert.equal(("block-race %d %d a"):format(at[1], at[1]), text)
  end)

  -- These stores are formally a race. However, the memory has the same contents
  -- after each order of the stores, and with each mix of their bytes.
  it("not stores of one value", function()
    clean(3, 32, function(a) a[arch.thread_idx()] = 7 end, zeros(32))
    clean(3, 32, function(a)
      a[arch.thread_idx()] = arch.thread_idx()
      a[arch.thread_idx()] = arch.thread_idx()
    end, zeros(32))
  end)

  -- Each block reads a[0] before it stores, so a store of another block may
  -- change the value that it reads.
  it("stores of one value, if reads race with them", function()
    local at = support.recorder()
    local text = found(3, 1, function(a)
      at[1] = line() + 1
      local x = a[0]
      a[0] = cute.where(x:lt(0), x, 0)
    end, zeros(32))
    assert.equal(("block-race %d %d a, block-race %d %d a")
      :format(at[1], at[1] + 1, at[1] + 1, at[1] + 1), text)
  end)

  it("one value by two blocks, another by a third", function()
    local at = support.recorder()
    local text = found(3, 32, function(a)
      local b = arch.block_idx()
      at[1] = line() + 1
      a[0] = cute.where(b:eq(2), 1, 0)
    end, zeros(32))
    assert.equal(("block-race %d %d a"):format(at[1], at[1]), text)
  end)

  -- Blocks run on several host threads, so another block may already have
  -- stored the value.
  it("one value by all lanes of a block, again and again", function()
    local at = support.recorder()
    local run = cute.kernel("k", function(a)
      local b = arch.block_idx()
      for _ in cute.range(500) do
        at[1] = line() + 1
        a[0] = b
      end
    end)
    for seed = 1, 10 do
      local report = support.report(run(zeros(32)):launch {grid = 4, block = 32,
        seed = seed, threads = 2, device = "sim:sm_90a", faults = "return"})
      assert.equal(1, #report.reports, tostring(report))
      assert.same({"block-race", at[1]}, {report.reports[1].kind,
                                       report.reports[1].line})
    end
  end)
end)

describe("blocks whose parts overlap", function()
  it("a tile that is one element too wide", function()
    local at = support.recorder()
    local A = zeros(129)
    local text = found(4, 33, function(a)
      local i = arch.block_idx() * 32 + arch.thread_idx()
      at[1] = line() + 1
      a[i] = i * 2 + arch.thread_idx()
    end, A)
    assert.equal(("block-race %d %d a"):format(at[1], at[1]), text)
  end)

  it("reads of what another block stores", function()
    local at = support.recorder()
    local text = found(4, 32, function(a)
      local i = arch.block_idx() * 32 + arch.thread_idx()
      at[1] = line() + 1
      local x = a[(i + 1) % 128]
      arch.sync_threads()  -- orders only the threads of one block
      a[i] = x
    end, zeros(128))
    assert.equal(("block-race %d %d a"):format(at[1], at[1] + 2), text)
  end)

  it("through two arguments, of one buffer and of parts of one", function()
    local at = support.recorder()
    local function shift(a, b)
      local i = arch.block_idx() * 32 + arch.thread_idx()
      at[1] = line() + 1
      b[i] = a[i + 32]
    end
    local A = zeros(128)
    local want = "block-race %d %d"
    local text = found(3, 32, shift, A, A)
    assert.equal(want:format(at[1], at[1]), (text:gsub(" %w+$", "")))
    clean(2, 32, shift, A, zeros(64))
    local front = cute.local_tile(A, {64}, {0})
    local back = cute.local_tile(A, {64}, {1})
    text = found(2, 32, function(a, b)
      local i = arch.block_idx() * 32 + arch.thread_idx()
      at[1] = line() + 1
      b[i] = a[63 - i]
    end, front, front)
    assert.equal(want:format(at[1], at[1]), (text:gsub(" %w+$", "")))
    clean(2, 32, function(a, b)
      local i = arch.block_idx() * 32 + arch.thread_idx()
      b[i] = a[63 - i]
    end, front, back)
  end)

  it("vector copies and cp.async", function()
    local g2s = cute.make_tiled_copy(
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
      cute.make_layout {32}, cute.make_layout {4})
    local at = support.recorder()
    local text = found(2, 32, function(a)
      local tid, b = arch.thread_idx(), arch.block_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout {128}, 16)
      local thr = g2s:get_slice(tid)
      cute.when(b:eq(0), function()
        at[1] = line() + 1
        cute.copy(g2s, thr:partition_S(a), thr:partition_D(s))
      end, function() a[tid * 3] = 1 end)
    end, zeros(128, cute.f32))
    assert.equal(("block-race %d %d a"):format(at[1], at[1] + 1), text)
  end)
end)

describe("blocks that share memory without order", function()
  it("names the blocks, the threads and the element", function()
    local A = cute.zeros({4, 8}, cute.i32)
    local call = cute.kernel("k", function(a)
      local x, y = arch.block_idx()
      local tid = arch.thread_idx()
      cute.when(tid:eq(5), function() a[{3, 2}] = x + y * 10 end)
    end)(A)
    local r = support.report(call:launch {grid = {2, 2}, block = 32,
      device = "sim", faults = "return"})
    assert.equal(1, #r.reports)
    local f = r.reports[1]
    assert.equal("write by block (1,1,0) and write by block (0,0,0) with "
      .. "nothing to order them: element 26 of global tensor 'a'", f.message)
    assert.are.same({1, 1, 0}, f.block)
    assert.are.same({5, 0, 0}, f.thread)
    assert.equal("(3,2)", f.coord)
    assert.truthy(tostring(r):find("a release and an acquire of gpu scope", 1,
                                   true))
  end)
end)

describe("atomics", function()
  it("do not race with one another", function()
    for _, how in ipairs {{}, {sem = "relaxed", scope = "sys"},
                          {sem = "acq_rel"}} do
      local A = zeros(4)
      clean(4, 64, function(a)
        arch.atomic_add(a.iterator + arch.thread_idx() % 4, 1, how)
        arch.load(a.iterator, nil, {sem = "relaxed"})
      end, A)
      assert.equal(6 * 64, A[3])  -- six launches
    end
  end)

  it("race with plain accesses of other blocks", function()
    local at = support.recorder()
    local function mixed(plain)
      return found(2, 32, function(a)
        local b, tid = arch.block_idx(), arch.thread_idx()
        cute.when(b:eq(0) & tid:eq(0), function()
          at[1] = line() + 1
          arch.atomic_add(a.iterator, 1)
        end)
        cute.when(b:eq(1) & tid:eq(0), function() plain(a) end)
      end, zeros(2))
    end
    local text = mixed(function(a) a[1] = a[0] end)
    assert.truthy(text:find(("block%%-race %%d+ %d a$"):format(at[1])), text)
    text = mixed(function(a) a[0] = 1 end)
    assert.truthy(text:find(("block%%-race %d %%d+ a$"):format(at[1])), text)
    assert.equal("", mixed(function(a) a[1] = 1 end))
  end)

  it("of a block's scope are no order between blocks", function()
    local at = support.recorder()
    local text = found(2, 32, function(a)
      at[1] = line() + 1
      arch.atomic_add(a.iterator, arch.block_idx() + 1,
                      {sem = "relaxed", scope = "cta"})
    end, zeros(1))
    assert.truthy(text:find(("block-race %d %d a"):format(at[1], at[1]), 1,
                            true), text)
  end)
end)

local gpu, block = arch.fence_acq_rel_gpu, arch.fence_acq_rel_cta

describe("passing data between blocks", function()
  -- Runs blocks that each store a part and increment a counter. The last block
  -- adds the parts.
  local function last_block(count, before, after)
    local lines = support.recorder()
    local P, C, S = zeros(5 * 32), zeros(1), zeros(32)
    local text = found(5, 32, function(parts, counter, sum)
      local tid, b = arch.thread_idx(), arch.block_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {1}, 16)
      lines[1] = line() + 1
      parts[b * 32 + tid] = b + tid
      arch.sync_threads()
      cute.when(tid:eq(0), function()
        if before then before() end
        s[0] = arch.atomic_add(counter.iterator, 1, count) % 5
        if after then after() end
      end)
      arch.sync_threads()
      cute.when(s[0]:eq(4), function()
        local x = 0
        for k = 0, 4 do
          lines[2] = line() + 1
          x = x + parts[k * 32 + tid]
        end
        sum[tid] = x
      end)
    end, P, C, S)
    if text == "" then
      for l = 0, 31 do assert.equal(10 + 5 * l, S[l]) end
    end
    return text, ("block-race %d %d parts"):format(lines[2], lines[1])
  end

  it("the last block adds all parts", function()
    assert.equal("", (last_block({sem = "acq_rel"})))
    assert.equal("", (last_block(nil, gpu, gpu)))
    assert.equal("", (last_block({sem = "acquire"}, gpu)))
    assert.equal("", (last_block({sem = "release"}, nil, gpu)))
    assert.equal("", (last_block({sem = "acq_rel", scope = "sys"})))
  end)

  it("each part of the synchronization is needed #long", function()
    for _, x in ipairs {
      {nil, nil, nil}, {nil, gpu, nil}, {nil, nil, gpu}, {nil, block, gpu},
      {nil, gpu, block}, {{sem = "acquire"}, nil, nil},
      {{sem = "release"}, nil, nil}, {{sem = "acquire"}, block, nil}} do
      local text, want = last_block(x[1], x[2], x[3])
      assert.equal(want, text)
    end
  end)

  -- Runs blocks that each wait for the preceding block and signal the next one.
  local function chain(seen, sent, all)
    local lines = support.recorder()
    local A
    local text = found(5, 64, function(a, f)
      local tid, b = arch.thread_idx(), arch.block_idx()
      cute.when(all or tid:eq(0), function()
        cute.loop(function()
          return b:gt(0) & arch.load(f.iterator + b, nil, seen):eq(0)
        end, function() end)
      end)
      if not all then arch.sync_threads() end
      cute.when(tid:eq(33), function()
        lines[1] = line() + 1
        local x = a[b]
        lines[2] = line() + 1
        a[b + 1] = x + b
      end)
      arch.sync_threads()
      cute.when(tid:eq(0), function()
        arch.store(f.iterator + (b + 1), 1, sent)
      end)
    end, function()
      A = zeros(6)
      return A
    end, function() return zeros(6) end)
    if text == "" then assert.equal(10, A[5]) end
    return text, ("block-race %d %d a"):format(lines[1], lines[2])
  end

  it("from block to block #long", function()
    local acq, rel = {sem = "acquire"}, {sem = "release"}
    assert.equal("", (chain(acq, rel)))
    assert.equal("", (chain(acq, rel, true)))
    local rlx = {sem = "relaxed"}
    local near = {sem = "release", scope = "cluster"}
    for _, x in ipairs {{rlx, rel}, {acq, rlx}, {acq, near}} do
      local text, want = chain(x[1], x[2])
      assert.truthy(text:find(want, 1, true), text)
    end
  end)
end)

describe("passing data between blocks", function()
  it("only the thread that acquired is ordered", function()
    local lines = support.recorder()
    local text = found(2, 64, function(a, f)
      local tid, b = arch.thread_idx(), arch.block_idx()
      cute.when(b:eq(0), function()
        lines[1] = line() + 1
        a[tid] = tid
        arch.sync_threads()
        cute.when(tid:eq(0), function()
          arch.store(f.iterator, 1, {sem = "release"})
        end)
      end, function()
        cute.when(tid:eq(0), function()
          cute.loop(function()
            return arch.load(f.iterator, nil, {sem = "acquire"}):eq(0)
          end, function() end)
          a[64] = a[1]
        end)
        cute.when(tid:lt(2), function()
          arch.sync_warp(3)
          a[66 + tid] = a[1]
        end)
        cute.when(tid:eq(40), function()
          lines[2] = line() + 1
          a[65] = a[2]
        end)
      end)
    end, zeros(68), function() return zeros(1) end)
    assert.equal(("block-race %d %d a"):format(lines[2], lines[1]), text)
  end)
end)

describe("blocks that wait for each other", function()
  local GPU = {sem = "relaxed", scope = "gpu"}
  local WAYS = {
    load = function(at) return arch.load(at, nil, GPU) end,
    exch = function(at) return arch.atomic_exch(at, 0) end,
    cas = function(at) return arch.atomic_cas(at, {cmp = 7, val = 0}) end,
  }

  -- Returns a kernel in which every block sends 7 to the next one, and the last
  -- block to the first.
  local function ring(take)
    return function(said, heard)
      local b, n = arch.block_idx(), arch.grid_dim()
      cute.when(cute.eq(arch.thread_idx(), 0), function()
        arch.store(said.iterator + (b + 1) % n, 7, GPU)
        local v = cute.var(0)
        cute.loop(function() return cute.ne(v.value, 7) end, function()
          v.value = take(said.iterator + b)
        end)
        heard[b] = v.value + b
      end)
    end
  end

  for name, take in pairs(WAYS) do
    it("go on, by " .. name, function()
      for _, n in ipairs {2, 5, 32} do
        local heard = zeros(n)
        for _, threads in ipairs {1, 2, 3} do
          local r = cute.kernel("ring", ring(take))(zeros(n), heard):launch {
            grid = n, block = 64, threads = threads, device = "sim"}
          assert.is_true(r.ok)
          for b = 0, n - 1 do assert.equal(7 + b, heard(b)) end
        end
      end
    end)
  end

  it("a few of many at a time", function()
    local n = 3000
    local said, sum = zeros(n), zeros(n)
    cute.kernel("pairs", function(a, out)
      local b = arch.block_idx()
      arch.store(a.iterator + b, b + 1, GPU)
      local v = cute.var(0)
      cute.loop(function() return cute.eq(v.value, 0) end, function()
        v.value = arch.load(a.iterator + (b ~ 1), nil, GPU)
      end)
      out[b] = v.value + b
    end)(said, sum):launch {grid = n, block = 1, device = "sim"}
    for b = 0, n - 1 do assert.equal((b ~ 1) + 1 + b, sum(b)) end
  end)

  it("no value is lost between a store and an atomic #long", function()
    local n = 20000
    local words = zeros(2 * n)
    local r = cute.kernel("words", function(a)
      local b = arch.block_idx()
      local function wait(at)
        local v = cute.var(0)
        cute.loop(function() return cute.eq(v.value, 0) end, function()
          v.value = arch.atomic_exch(a.iterator + at, 0)
        end)
      end
      for i in cute.range(n) do
        cute.when(b:eq(0), function()
          arch.store(a.iterator + 2 * i, 1, GPU)
          wait(2 * i + 1)
        end, function()
          wait(2 * i)
          arch.store(a.iterator + 2 * i + 1, 1, GPU)
        end)
      end
    end)(words):launch {grid = 2, block = 1, device = "sim", threads = 2}
    assert.is_true(r.ok)
  end)

  it("in vain", function()
    for threads = 1, 2 do
      local at = support.recorder()
      local r = support.report(cute.kernel("vain", function(a)
        cute.loop(function()
          at[1] = line() + 1
          return cute.eq(arch.load(a.iterator, nil, GPU), 0)
        end, function() end)
        a[arch.block_idx() + 1] = 1
      end)(zeros(4)):launch {grid = 3, block = 32, threads = threads,
        device = "sim", faults = "return"})
      local f = r.reports[1]
      assert.equal("deadlock", f.kind)
      assert.equal(at[1], f.line)
      assert.equal("no warp can go on: 1 warp waits (warp 0) at element 0 of "
        .. "global tensor 'a', which is 0 and was never written",
        f.message)
    end
  end)

  it("until the budget ends, where they count #long", function()
    local r = support.report(cute.kernel("vain", function(a)
      local n = cute.var(0)
      cute.loop(function()
        n.value = n.value + 1
        return cute.eq(arch.load(a.iterator, nil, GPU), 0)
      end, function() end)
      a[arch.block_idx() + 1] = n.value
    end)(zeros(4)):launch {grid = 3, block = 32, device = "sim",
      faults = "return", budget = 100000})
    assert.equal("runaway", r.reports[1].kind)
  end)
end)

-- Returns the report of four blocks that each draw a ticket from a counter,
-- which begins at `start`. The block that draws the last ticket adds the parts
-- of all blocks.
local function last_block(start)
  local starts = {0, 0, start}
  local tickets = zeros(3)
  for i, n in ipairs(starts) do tickets[i - 1] = n end
  local r = support.report(cute.kernel("last", function(parts, ticket, y)
    cute.when(arch.thread_idx():eq(0), function()
      parts[arch.block_idx()] = 1
      arch.fence_acq_rel_gpu()
      local t = arch.atomic_add(ticket.iterator + 2, 1)
      cute.when(t:eq(3), function()
        arch.fence_acq_rel_gpu()
        local sum = cute.var(0)
        for k in cute.range(4) do sum.value = sum.value + parts[k] end
        y[0] = sum.value
      end)
    end)
  end)(zeros(4), tickets, zeros(1)):launch {grid = 4, block = 32,
    device = "sim", faults = "return"})
  return r, tostring(r)
end

describe("a race of blocks by a counter", function()
  it("that does not begin at 0 names the counter", function()
    local r, text = last_block(1)
    assert.equal("block-race", r.reports[1].kind)
    assert.truthy(text:find("element 2 of the counter 'ticket' is 1 when the "
      .. "launch begins: does the kernel count from 0? Otherwise let one block",
      1, true), text)
  end)

  it("is not reported if the counter begins at 0", function()
    assert.is_true(last_block(0).ok)
  end)
end)
-- SPDX-License-Identifier: MIT
