-- Tests faults that a GPU usually hides: copies whose source changes during the
-- copy, and instructions that seem to order memory but do not. Each must be
-- reported with its lines and a clear message. The corrected kernel must have
-- no report.
local cute = require "cute"
local order = require "spec.watch.order"
local support = require "spec.support"
local arch, _ = cute.arch, cute._
local found, line, smem = order.found, order.line, order.smem

local function nothing() end

local function tensor(n, dtype) return cute.ones({n}, dtype or cute.f32) end

-- Returns the report of one launch.
local function report(f, block, ...)
  return support.report(cute.kernel("k", f)(...):launch {grid = 1,
    block = block, device = "sim:sm_90a", faults = "return"})
end

-- Runs kernel(f, at) twice. If f does nothing, there must be a fault of this
-- kind at the two lines in `at`. If f is `fix`, there must be no report.
local function planted(kind, fix, block, kernel, make)
  local at = support.recorder()
  local text = found(kernel(nothing, at), block, make())
  assert.equal(("%s %d %d"):format(kind, math.min(at[1], at[2]),
                                   math.max(at[1], at[2])), text)
  assert.equal("", (found(kernel(fix, at), block, make())))
end

describe("sources of copies", function()
  local g2s = cute.make_tiled_copy(
    cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
    cute.make_layout {32}, cute.make_layout {4})

  it("of cp.async change before the wait", function()
    planted("race", function()
      arch.cp_async_wait_group(0)
      arch.sync_warp()
    end, 32, function(fix, at)
      return function(x, y)
        local t = arch.thread_idx()
        local s, thr = smem(128, cute.f32), g2s:get_slice(t)
        at[1] = line() + 1
        cute.copy(g2s, thr:partition_S(x), thr:partition_D(s))
        arch.cp_async_commit_group()
        fix()
        at[2] = line() + 1
        x[t] = 2.0
        arch.cp_async_wait_group(0)
        arch.sync_threads()
        y[t] = s[t]
      end
    end, function() return tensor(128), tensor(32) end)
    local r = report(function(x)
      local t = arch.thread_idx()
      local s, thr = smem(128, cute.f32), g2s:get_slice(t)
      cute.copy(g2s, thr:partition_S(x), thr:partition_D(s))
      arch.cp_async_commit_group()
      x[t * 4] = 2.0
      arch.cp_async_wait_group(0)
    end, 32, tensor(128))
    assert.equal("write after a read by a cp.async whose completion was not "
      .. "waited for: element 0 of global tensor 'x'", r.reports[1].message)
  end)

  local function bulk(kernel)
    local cpasync = cute.nvgpu.cpasync
    local atom = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)
    return function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64}, 128)
      local bar = arch.alloc_smem(cute.i64, 1)
      cute.when(t:eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
      end)
      arch.sync_threads()
      kernel(x, t, function()
        local from, to = cpasync.group_bulk_copy_modes(x, s)
        cute.when(t:eq(0), function()
          arch.mbarrier_arrive_and_expect_tx(bar, 256)
          cute.copy(atom, from, to, {mbar_ptr = bar})
        end)
      end, function() arch.mbarrier_wait(bar, 0) end)
      y[t] = s[t]
    end
  end

  it("of bulk copies change before their end", function()
    for _, early in ipairs {true, false} do
      local r = report(bulk(function(x, t, load, wait)
        load()
        if not early then wait() end
        cute.when(t:lt(32), function() x[t] = 2.0 end)
        if early then wait() end
      end), 64, tensor(64), tensor(64))
      if not early then
        assert.is_true(r.ok)
      else
        assert.equal("race", r.reports[1].kind)
        assert.matches("write after a read by a bulk copy whose completion was "
          .. "not waited for: element %d+ of global tensor 'x'",
          r.reports[1].message)
      end
    end
  end)

  it("of bulk copies were written by threads: a fence is needed", function()
    for fence, told in pairs {["async"] = false, ["async.global"] = false,
                              ["async.shared"] = true, none = true} do
      local r = report(bulk(function(x, t, load, wait)
        x[t] = 2.0
        if fence ~= "none" then arch.fence_proxy(fence) end
        arch.sync_threads()
        load()
        wait()
      end), 64, tensor(64), tensor(64))
      assert.equal(told, not r.ok, fence)
      if told then
        assert.matches("read by a bulk copy after a thread's write, with no "
          .. "fence_proxy.*global tensor 'x'", r.reports[1].message)
        assert.matches('async.global', tostring(r))
      end
    end
  end)
end)

describe("destinations of bulk stores", function()
  -- Thread 0 copies s to y by a bulk store. `wait` says for what it waits: the
  -- end of the store (false), the reads of s (true), or nothing (nil). Then all
  -- threads call f, which accesses y.
  local function run(wait, f)
    local cpasync = cute.nvgpu.cpasync
    local atom = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.f32)
    return report(function(y, z)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64}, 128)
      s[t] = 1.0
      arch.fence_proxy "async.shared"
      arch.sync_threads()
      cute.when(t:eq(0), function()
        local from, to = cpasync.group_bulk_copy_modes(s, y)
        cute.copy(atom, from, to)
        arch.cp_async_bulk_commit_group()
        if wait ~= nil then arch.cp_async_bulk_wait_group(0, wait) end
      end)
      arch.sync_threads()
      f(y, z, t)
    end, 64, cute.zeros({64}, cute.f32), tensor(64))
  end
  local function read(y, z, t) z[t] = y[63 - t] end
  local function write(y, _, t) y[t] = 2.0 end

  it("are read or written only after a wait for the store", function()
    assert.is_true(run(false, read).ok)
    assert.is_true(run(false, write).ok)
    for _, how in ipairs {"read", "not at all"} do
      local wait = how == "read" or nil
      local r = run(wait, read)
      assert.equal("async-in-flight", r.reports[1].kind)
      assert.matches("^read of global memory while a bulk copy to it is in "
        .. ("flight %%(%s%%): element %%d+ of global tensor 'y'$"):format(wait
        and "the wait covered only its reads" or "wait missing"),
        r.reports[1].message)
      assert.matches("without `read`", tostring(r))
      r = run(wait, write)
      assert.equal("race", r.reports[1].kind)
    end
  end)
end)

describe("what does not order memory", function()
  -- Warp 0 reads a stage by ldmatrix, one of its lanes releases the stage, and
  -- warp 1 fills it again.
  it("ldmatrix before a release by one lane", function()
    local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.f16)
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    local tiled = cute.make_tiled_copy_A(ldsm, mma)
    planted("race", arch.sync_warp, 64, function(fix, at)
      return function(y)
        local t, lane = arch.thread_idx(), arch.lane_idx()
        local s = cute.make_smem_tensor(cute.f16, cute.make_layout({16, 16},
          {16, 1}), 128)
        local f = smem(1)
        cute.when(t:eq(0), function() f[0] = 0 end)
        cute.when(t:lt(16), function()
          for k = 0, 15 do s[{t, k}] = 1.0 end
        end)
        arch.sync_threads()
        cute.when(arch.warp_idx():eq(0), function()
          local thr = tiled:get_slice(lane)
          local r = mma:get_slice(lane):make_fragment_A(
            mma:get_slice(lane):partition_A(s))
          at[1] = line() + 1
          cute.copy(tiled, thr:partition_S(s), thr:retile(r))
          fix()
          cute.when(lane:eq(0), function()
            arch.store(f.iterator, 1, order.REL)
          end)
          y[t] = r[0]:to(cute.f32)
        end, function()
          order.poll(f.iterator, 1, order.ACQ)
          at[2] = line() + 1
          s[{lane // 2, lane % 2}] = 2.0
        end)
      end
    end, function() return tensor(32) end)
  end)
end)

local function told(f, block, ...)
  local r = report(f, block, ...)
  assert.equal(1, #r.reports, tostring(r))
  assert.equal("out-of-bounds", r.reports[1].kind)
  return r.reports[1].message, r.reports[1]
end

-- Functions that copy a tile of a tensor of 60 x 200 elements, whose rows are
-- 256 or 200 elements apart. If rows are 200 apart, there are no gaps, so an
-- offset beyond a row is an element of the next row.
local g2r = cute.make_tiled_copy(
  cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.f32, 128),
  cute.make_layout({16, 8}, {8, 1}), cute.make_layout {1, 4})
local g2s = cute.make_tiled_copy(
  cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
  cute.make_layout({16, 8}, {8, 1}), cute.make_layout {1, 4})
local function matrix(row)
  local x = cute.ones(cute.make_layout({64, row}, {row, 1}), cute.f32)
  return cute.make_tensor(x.iterator, cute.make_layout({60, 200}, {row, 1}))
end
local COPIES = {
  function(tile, t)  -- Copies the tile to registers by a tiled copy.
    local from = g2r:get_slice(t):partition_S(tile)
    cute.copy(g2r, from, cute.make_fragment_like(from))
  end,
  function(tile, t)  -- Copies registers to the tile.
    local to = g2r:get_slice(t):partition_D(tile)
    local r = cute.make_fragment_like(to)
    r:fill(1.0)
    cute.copy(g2r, r, to)
  end,
  function(tile, t)
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout({32, 64},
      {64, 1}), 128)
    local thr = g2s:get_slice(t)
    cute.copy(g2s, thr:partition_S(tile), thr:partition_D(s))
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
  end,
  function(tile, t)  -- copies single elements along a row
    local row = cute.local_partition(tile, cute.make_layout {128, 1}, t)
    cute.when(t:lt(32), function()
      row[0] = 1.0
      for k = 1, 63 do row[k] = row[k - 1] end
    end)
  end}

describe("columns beyond their row", function()
  it("lie inside the tensor, and are reported by coordinate", function()
    local x, y = cute.zeros({8, 16}, cute.f32), tensor(64)
    local message, f = told(function(a, b)
      local t = arch.thread_idx()
      b[t] = a[{t // 16, t % 16 + 1}]
    end, 32, x, y)
    assert.equal("read outside global tensor 'a': coordinate (0,16) of (8,16)",
                 message)
    assert.equal("(0,16)", f.coord)
    assert.equal("write outside global tensor 'a': coordinate (63,200) of "
      .. "(64,128)", (told(function(a)
        local t = arch.thread_idx()
        a[{t, cute.where(t:eq(63), 200, 0)}] = 1.0
      end, 64, cute.zeros({64, 128}, cute.f32))))
    assert.equal("write outside global tensor 'a': coordinate (-1,3) of (8,16)",
      (told(function(a)
        a[{arch.thread_idx() - 1, 3}] = 1.0
      end, 8, x)))
  end)

  it("of shared memory, padded rows and dynamic extents", function()
    assert.equal("write outside shared tensor 's': coordinate (0,4) of (8,4)",
      (told(function(y)
        local t = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout({8, 4},
          {8, 1}), 16)
        s[{t // 8, t % 8}] = 1.0
        y[t] = 0.0
      end, 32, tensor(64))))
    assert.equal("read outside global tensor 'a': coordinate (1,6) of (?,6)",
      (told(function(a, b, n)
        local t = arch.thread_idx()
        local v = cute.make_tensor(a.iterator, cute.make_layout({{n, 2}, 6},
          {{6, 12}, 1}))
        b[t] = v[{1, t}]
      end, 7, tensor(64), tensor(64), 2)))
    assert.equal("read outside global tensor 'a': coordinate (3,0) of (3,6)",
      (told(function(a, b, n)
        local t = arch.thread_idx()
        local v = cute.make_tensor(a.iterator, cute.make_layout({n, 6}, {6, 1}))
        b[t] = v[{t, 0}]
      end, 4, tensor(64), tensor(64), 3)))
  end)

  it("of tiles that are copied", function()
    for n = 0, 3 do
      local dynamic, width = n % 2 == 1, n < 2 and 256 or 200
      for i, copy in ipairs(dynamic and {COPIES[4]} or COPIES) do
        local function run(at)
          local x = matrix(width)
          if dynamic then x = x:mark_layout_dynamic {leading_dim = 1} end
          return report(function(a)
            copy(cute.local_tile(a, {32, 64}, at), arch.thread_idx())
          end, 128, x)
        end
        assert.is_true(run({0, 2}).ok, i)
        local r = run({0, 3})
        local f = r.reports[1]
        assert.equal("out-of-bounds", f.kind)
        local row, col = f.message:match("^%a+ outside global tensor 'a': "
          .. "coordinate %((%d+),(%d+)%) of %(60,200%)$")
        assert.truthy(row, f.message)
        assert.is_true(tonumber(col) >= 200 and tonumber(row) < 32)
        r = run({1, 0})  -- Tile (1,0) has rows 60 to 63; x has only 60.
        assert.matches("coordinate %(6[0-3],%d+%) of %(60,200%)$",
                       r.reports[1].message)
      end
    end
  end)
end)

describe("columns beyond their row", function()
  -- Returns the report of 128 threads that run f on a dense 8 x 8 tensor.
  local function dense(f)
    local r = report(f, 128, cute.ones(cute.make_layout({8, 8}, {8, 1}),
                                       cute.f32))
    return r.ok and "" or r.reports[1].message:match "coordinate .*"
  end

  it("of views of dense tensors: tiles of tiles, modes, threads", function()
    for at, told_there in pairs {[0] = "", "coordinate (0,8) of (8,8)"} do
      assert.equal(told_there, dense(function(a)
        -- the tile has columns 6 to 11, but only columns up to 7 exist
        local tile = cute.local_tile(a, {4, 6}, {0, at})
        tile(0, _)[at * 2] = 1.0
      end))
      assert.equal(told_there, dense(function(a)
        local tiles = cute.zipped_divide(a, {4, 6})
        cute.group_modes(tiles, 0, 2)[{{{0, at * 2}, {0, at}}}] = 1.0
      end))
      assert.equal(told_there, dense(function(a)
        cute.domain_offset({0, at * 6}, a)[{0, at * 2}] = 1.0
      end))
      assert.equal(told_there, dense(function(a)
        local t = cute.local_partition(a, cute.make_layout {8, 1}, 0)
        local thread = arch.thread_idx()
        cute.when(thread:eq(0), function() t[thread + at * 8] = 1.0 end)
      end))
    end
    assert.equal("coordinate (5,8) of (8,8)", dense(function(a)
      for k in cute.range(5, 9) do
        cute.when(arch.thread_idx():eq(0), function()
          a(5, _)[k] = 1.0
        end)
      end
    end))
    assert.equal("coordinate (1,-4) of (8,8)", dense(function(a)
      cute.when(arch.thread_idx():eq(0), function()
        local tile = cute.local_tile(a, {1, 4}, {1, arch.thread_idx() - 1})
        cute.autovec_copy(tile, cute.make_fragment_like(tile))
      end)
    end))
  end)

  it("of copies with predicates, vectors of elements too", function()
    local s = cute.make_layout({4, 8}, {8, 1})
    local by4 = cute.make_tiled_copy(cute.make_copy_atom(
      "SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128), cute.make_layout({4, 2},
      {2, 1}), cute.make_layout {1, 4})
    -- Copies rows 4 to 7 and columns 4 to 11 by vectors. Only columns below
    -- `most` pass the predicate.
    local function vectors(most)
      return dense(function(a)
        local t = arch.thread_idx()
        local function part(x)
          return by4:get_slice(t):partition_S(cute.local_tile(
            cute.domain_offset({0, 4}, x), {4, 8}, {1, 0}))
        end
        cute.when(t:lt(8), function()
          local to = by4:get_slice(t):partition_D(
            cute.make_smem_tensor(cute.f32, s, 16))
          local crd = part(cute.make_identity_tensor {8, 8})
          local pred = cute.make_rmem_tensor({1, 1, 1}, cute.Boolean)
          pred[0] = crd(0)[2]:lt(most)
          cute.copy(by4, part(a), to, pred)
        end)
      end)
    end
    assert.equal("", vectors(8))
    assert.equal("coordinate (4,8) of (8,8)", vectors(9))
    -- Each thread copies the elements of a column in the rows below
    -- `most`.
    local function elements(most)
      return dense(function(a)
        local col = cute.local_tile(a, {12, 1}, {0, arch.thread_idx() % 8})
        local pred = cute.make_rmem_tensor({12, 1}, cute.Boolean)
        for i = 0, 11 do pred[i] = (arch.thread_idx() * 0 + i):lt(most) end
        cute.basic_copy_if(pred, col, cute.make_rmem_tensor({12, 1}, cute.f32))
      end)
    end
    assert.equal("", elements(8))
    assert.equal("coordinate (8,0) of (8,8)", elements(9))
  end)

  it("the checks are not in the text", function()
    local function text(seen)
      local call = cute.kernel("k", function(a)
        for k in cute.range(8) do
          COPIES[2](cute.local_tile(seen(a), {32, 64}, {k, 0}),
                    arch.thread_idx())
        end
      end)(matrix(200))
      return (call:trace({block = 128}).fn:emit(90))
    end
    -- A tensor that is made from an iterator does not know the coordinates of
    -- the original tensor.
    local plain = text(function(a)
      return cute.make_tensor(a.iterator, a.layout)
    end)
    assert.equal(plain, text(function(a) return a end))
  end)

  it("have no false report if predicated or known to fit", function()
    local r = report(function(a, b, c)
      local t = arch.thread_idx()
      local row, col = t // 20, t % 20
      cute.when(col:lt(16) & row:lt(8), function() a[{row, col}] = 1.0 end)
      b[t % 64] = c[{t % 8, t % 16}]
    end, 32, cute.zeros({8, 16}, cute.f32), tensor(64),
      cute.zeros({8, 16}, cute.f32))
    assert.is_true(r.ok, tostring(r))
  end)
end)

describe("what cute.assume says", function()
  it("is checked where it is called, in the calling threads", function()
    local function run(n, f)
      return report(function(x, k)
        cute.when(arch.thread_idx():lt(4), function() f(k, x) end)
        x[arch.thread_idx()] = 0.0
      end, 32, tensor(32), n)
    end
    local function by8(k) cute.assume(k, 8) end
    assert.is_true(run(16, by8).ok)
    local r = run(13, by8)
    assert.equal("assertion", r.reports[1].kind)
    assert.equal("a value that was assumed to be divisible by 8 is 13",
                 r.reports[1].message)
    r = run(3, function(k)
      cute.assume(arch.thread_idx() + k, 0, 5, 1)
    end)
    assert.equal("a value that was assumed to lie in [0,5] is 6",
                 r.reports[1].message)
    assert.same({3, 0, 0}, r.reports[1].thread)
    assert.is_true(run(2, function(k)
      cute.assume(arch.thread_idx() + k, 0, 5, 1)
    end).ok)
    assert.is_true(run(13, function(k)  -- never executed
      cute.when(k:eq(16), function() cute.assume(k, 8) end)
    end).ok)
  end)
end)

describe("cute.undefined_ok", function()
  -- Writes rows 0 to n - 1 of a shared tensor. Then reads all rows, but
  -- discards the values of the unwritten ones. With `ok`, the tensor is
  -- declared undefined_ok.
  local function rows(n, ok)
    return report(function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout({8, 4},
        {4, 1}), 16)
      if ok then cute.undefined_ok(s) end
      cute.when((t // 4):lt(n), function() s[{t // 4, t % 4}] = x[t] end)
      arch.sync_threads()
      local row = 7 - t // 4
      local v = s[{row, t % 4}]
      y[t] = cute.where(row:lt(n), v, 0.0)
    end, 32, tensor(32), tensor(32))
  end

  it("permits reads of undefined memory", function()
    assert.is_true(rows(8).ok)
    local r = rows(5)
    assert.equal("uninitialised", r.reports[1].kind)
    assert.is_true(rows(5, true).ok)
  end)

  it("of one tensor, registers and global memory too", function()
    local function run(first, second, sum)
      return report(function(x, y)
        local a = cute.make_rmem_tensor({2}, cute.f32)
        local b = cute.make_rmem_tensor({2}, cute.f32)
        if first then cute.undefined_ok(a) end
        if second then cute.undefined_ok(x) end
        a[0], b[0] = 1.0, 1.0
        y[arch.thread_idx()] = (sum and a[1] or a[0]) + b[0] + x[0]
      end, 32, cute.empty({4}, cute.f32), tensor(32))
    end
    assert.is_true(run(false, true).ok)
    assert.equal("x", run(true, false).reports[1].tensor)
    assert.equal("a", run(false, true, true).reports[1].tensor)
    assert.is_true(run(true, true, true).ok)
  end)

  it("is of kernels", function()
    support.raises("undefined_ok", function()
      cute.undefined_ok(cute.zeros({4}, cute.f32))
    end)
  end)
end)

describe("products of 32 bits", function()
  local function run(n, f)
    return report(function(x, k) f(x, k, arch.thread_idx()) end, 32,
                  tensor(2048), n)
  end

  it("that wrap to an existing element are reported", function()
    local function square(x, n, t) x[t + n * n] = 0.0 end
    assert.is_true(run(40, square).ok)
    local r = run(65536, square)
    assert.equal("index-overflow", r.reports[1].kind)
    assert.equal("an index uses a product that overflows 32 bits: the access "
      .. "reaches element 0 of global tensor 'x'", r.reports[1].message)
    assert.equal("index-overflow", run(65536, function(x, n, t)
      x[(t * n) * n + t] = 0.0
    end).reports[1].kind)
    assert.equal("index-overflow", run(27, function(x, n, t)
      x[((t + 32) << n) + t] = 0.0
    end).reports[1].kind)
  end)

  it("that are used by asynchronous copies and barriers are, too", function()
    local function element(s, at)
      return cute.make_tensor(s.iterator + at, cute.make_layout(4))
    end
    local bulk = cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkG2SOp(),
                                     cute.f32)
    local uses = {}
    function uses.cp_async(x, s, at)
      cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32,
                                    128), element(x, at), element(s, 0))
    end
    function uses.bulk_load(x, s, at, bar)
      arch.mbarrier_arrive_and_expect_tx(bar, 16)
      cute.copy(bulk, element(x, at), element(s, 0), {mbar_ptr = bar})
    end
    function uses.atomic(x, _, at) arch.atomic_add(x.iterator + at, 1.0) end
    function uses.barrier(_, _, at, bar) arch.mbarrier_arrive(bar + at) end
    function uses.store_async(_, s, at, bar)
      arch.mbarrier_arrive_and_expect_tx(bar, 16)
      arch.store_async_dsmem(s.iterator + at, 1.0, bar, 0)
    end
    for name, use in pairs(uses) do
      local r = report(function(x, n)
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout(32), 16)
        local bar = arch.alloc_smem(cute.i64, 1)
        cute.when(arch.thread_idx():eq(0), function()
          arch.mbarrier_init(bar, 1)
          arch.mbarrier_init_fence()
          use(x, s, n * n * 4, bar)
        end)
      end, 32, tensor(2048), 65536)
      assert.equal("index-overflow", r.reports[1] and r.reports[1].kind, name)
    end
  end)

  it("that lead out of bounds are named as the cause", function()
    local r = run(46341, function(x, n, t) x[t + n * n] = 0.0 end)
    assert.equal(1, #r.reports)
    assert.equal("index-overflow", r.reports[1].kind)
    assert.equal("an index uses a product that overflows 32 bits: the access "
      .. "reaches element -2147479015 of global tensor 'x'",
      r.reports[1].message)
    -- This product does not overflow, so the only report is that the index is
    -- out of bounds.
    assert.equal("out-of-bounds", run(4634, function(x, n, t)
      x[t + n * n] = 0.0
    end).reports[1].kind)
  end)

  it("are reported only where the address or number is used", function()
    assert.is_true(run(65536, function(x, n, t)
      local at = t + n * n
      cute.when(n:lt(100), function() x[at] = 0.0 end)
      x[t] = 0.0
    end).ok)
    assert.is_true(run(65537, function(x, n, t)  -- no report: a hash
      x[(t * n * n) & 1023] = (n * n):to(cute.f32)
    end).ok)
  end)
end)

describe("signed results of 32 bits", function()
  local MOST, LEAST = 0x7fffffff, -0x80000000

  -- Returns the kinds of the reports of a launch of f(x, n, thread).
  local function kinds(n, f)
    local list = {}
    for _, r in ipairs(report(function(x, k) f(x, k, arch.thread_idx()) end, 32,
                              tensor(2048), n).reports) do
      list[#list + 1] = r.kind
    end
    return table.concat(list, " ")
  end

  local uses = {
    lt = function(v, w) return v:lt(w) end,
    ge = function(v, w) return v:ge(w) end,
    eq = function(v, w) return v:eq(w) end,
    ne = function(v, w) return v:ne(w) end,
    quotient = function(v) return (v // 3):gt(0) end,
    remainder = function(v) return (v % 3):gt(0) end,
    shift = function(v) return (v >> 1):gt(0) end,
    most = function(v, w) return cute.max(v, w):gt(0) end,
    magnitude = function(v) return cute.abs(v):gt(0) end}
  local results = {
    sum = {MOST, function(n) return n + 1 end},
    difference = {LEAST, function(n) return n - 1 end},
    product = {1 << 20, function(n) return n * 4096 end},
    negation = {LEAST, function(n) return -n end},
    ["left shift"] = {1 << 20, function(n) return n << 11 end},
    ["a sum of products"] = {1 << 30, function(n) return n * 1 + n * 1 end}}

  it("that wrap are reported when they are compared or divided", function()
    for what, of in pairs(results) do
      for how, use in pairs(uses) do
        assert.equal("signed-overflow", kinds(of[1], function(x, n, t)
          cute.when(use(of[2](n), n), function() x[t] = 1.0 end)
        end), what .. ", " .. how)
        assert.equal("", kinds(5, function(x, n, t)
          cute.when(use(of[2](n), n), function() x[t] = 1.0 end)
        end), what .. ", " .. how)
      end
    end
  end)

  it("are reported with both lines", function()
    local r = report(function(x, n)
      local more = n + 1
      cute.when(more:gt(n), function() x[0] = 1.0 end)
    end, 1, tensor(2048), MOST).reports[1]
    assert.equal(1, r.line - r.line2)
    assert.matches("a result that overflows 32 bits is compared", r.message)
  end)

  it("are not reported if nothing depends on their size", function()
    assert.equal("", kinds(MOST, function(x, n, t)  -- a hash
      x[t] = ((n * 1103515245 + 12345) & 255):to(cute.f32)
    end))
    -- No report: unsigned arithmetic wraps on purpose.
    assert.equal("", kinds(MOST, function(x, n, t)
      local u = n:to(cute.u32) + 1
      cute.when(u:gt(n:to(cute.u32)), function() x[t] = 1.0 end)
    end))
    -- No report: only an inactive lane's result would overflow.
    assert.equal("", kinds(MOST, function(x, n, t)
      cute.when(n:lt(5), function()
        cute.when((n + 1):lt(5), function() x[t] = 1.0 end)
      end)
      x[t] = 0.0
    end))
    assert.equal("", kinds(MOST, function(x, n, t)  -- wide enough
      cute.when((n:to(cute.i64) + 1):gt(n:to(cute.i64)), function()
        x[t] = 1.0
      end)
    end))
  end)
end)

describe("explanations", function()
  it("a cp.async that nobody committed belongs to no group", function()
    local copy = cute.make_tiled_copy(
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
      cute.make_layout {32}, cute.make_layout {4})
    local r = report(function(x, y)
      local t = arch.thread_idx()
      local s, thr = smem(128, cute.f32), copy:get_slice(t)
      cute.copy(copy, thr:partition_S(x), thr:partition_D(s))
      arch.cp_async_wait_group(0)
      arch.sync_threads()
      y[t] = s[t]
    end, 32, tensor(128), tensor(32))
    assert.equal("read of shared memory while a cp.async to it is in flight "
      .. "(it is in no group: commit missing): element 0 of shared tensor 's'",
      r.reports[1].message)
    assert.matches("cp_async_commit_group", tostring(r))
  end)

  it("a missing barrier comes before what was read too early", function()
    for seed = 1, 6 do
      local r = order.run(seed, 128, function(y)
        local t, s = arch.thread_idx(), smem(128)
        s[t] = t
        y[t] = s[127 - t]
      end, cute.zeros({128}, cute.i32))
      assert.equal("race", r.reports[1].kind)
      assert.matches("put sync_threads%(%) between the two lines", tostring(r))
    end
  end)

  it("an operation of 32 threads in a warp of fewer", function()
    local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.f16)
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    local tiled = cute.make_tiled_copy_A(ldsm, mma)
    local r = report(function(y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f16, cute.make_layout({16, 16},
        {16, 1}), 128)
      for k = 0, 15 do s[{t % 16, k}] = 1.0 end
      arch.sync_threads()
      local thr = tiled:get_slice(t % 32)
      local r = mma:get_slice(t % 32):make_fragment_A(
        mma:get_slice(t % 32):partition_A(s))
      cute.copy(tiled, thr:partition_S(s), thr:retile(r))
      y[t] = r[0]:to(cute.f32)
    end, 48, tensor(48))
    assert.equal("an operation needs 32 threads, but its warp has 16",
                 r.reports[1].message)
  end)
end)
-- SPDX-License-Identifier: MIT
