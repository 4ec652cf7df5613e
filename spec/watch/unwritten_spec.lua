-- Tests reports of outputs that a kernel leaves partly unwritten. A report must
-- have a coordinate and a count. There must be no report if the memory already
-- has a value, if only part of the memory is passed, or if the kernel allows
-- it.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local function report(f, block, ...)
  return support.report(cute.kernel("k", f)(...):launch {grid = 1,
    block = block, device = "sim:sm_90a", faults = "return"})
end

-- Returns a kernel that writes rows 0 to n - 1 of y, except for the last `less`
-- of their 4 columns.
local function rows(n, less, ok)
  return function(y)
    local t = arch.thread_idx()
    if ok then cute.undefined_ok(y) end
    cute.when(t:lt(n), function()
      for j = 0, 3 - less do y[{t, j}] = 1 end
    end)
  end
end

local function told(r, coord, message)
  assert.equal(1, #r.reports, tostring(r))
  assert.equal("unwritten", r.reports[1].kind)
  assert.equal(message, r.reports[1].message)
  assert.equal(coord, r.reports[1].coord)
end

describe("elements of an output", function()
  it("that no thread wrote are reported, for all kinds of layouts", function()
    local function empty(layout)
      return cute.empty(cute.make_layout(table.unpack(layout)), cute.f32)
    end
    told(report(rows(7, 0), 8, empty {{8, 4}, {4, 1}}), "(7,0)",
      "4 of 32 elements of global tensor 'y', an output, were not written: "
      .. "element 28")
    told(report(rows(8, 1), 8, empty {{8, 4}}), "(0,3)",
      "8 of 32 elements of global tensor 'y', an output, were not written: "
      .. "element 24")
    -- gaps between rows do not belong to the output
    assert.is_true(report(rows(8, 0), 8, empty {{8, 4}, {7, 1}}).ok)
    told(report(rows(8, 1), 8, empty {{8, 4}, {7, 1}}), "(0,3)",
      "8 of 32 elements of global tensor 'y', an output, were not written: "
      .. "element 3")
    told(report(rows(8, 1), 8, empty({{8, 4}, {7, 1}}):mark_layout_dynamic()),
      "(0,3)", "8 of 32 elements of global tensor 'y', an output, were not "
      .. "written: element 3")
    assert.is_true(report(rows(8, 0), 8,
      empty({{8, 4}, {7, 1}}):mark_layout_dynamic {leading_dim = 1}).ok)
  end)

  it("are reported if the kernel stores nothing at all", function()
    local x, y = cute.ones({8}, cute.f32), cute.empty({8}, cute.f32)
    local function run(more)
      return report(function(a, b)
        local r = cute.make_rmem_tensor({1}, cute.f32)
        r[0] = a[arch.thread_idx()]
        if more then more(b, r) end
      end, 8, x, y)
    end
    told(run(), "(0)", "8 of 8 elements of global tensor 'b', an output, were "
      .. "not written: element 0")
    for _, more in ipairs {
        function(b) cute.undefined_ok(b) end,
        function(_, r) cute.testing.assert_(cute.eq(r[0], 1)) end,
        function() cute.assume(arch.thread_idx() + 0, 0, 8, 1) end} do
      assert.is_true(run(more).ok)
    end
    y:fill(0)
    assert.is_true(run().ok)
  end)

  it("are reported if all are missing", function()
    told(report(function(y, n)
      local t = arch.thread_idx()
      cute.when(t:lt(n), function() y[{t, 0}] = 1 end)
    end, 8, cute.empty({8, 1}, cute.f32), 0), "(0,0)", "8 of 8 elements of "
      .. "global tensor 'y', an output, were not written: element 0")
  end)

  it("may be written before, by others, or left on purpose", function()
    local function run(y, ...) return report(rows(...), 8, y) end
    assert.is_true(run(cute.zeros({8, 4}, cute.f32), 7, 0).ok)
    assert.is_true(run(cute.empty({8, 4}, cute.f32), 7, 0, true).ok)
    local y = cute.empty({8, 4}, cute.f32)
    assert.is_true(run(cute.local_tile(y, {4, 4}, {1, 0}), 4, 0).ok)
    assert.is_true(run(cute.local_tile(y, {4, 4}, {0, 0}), 3, 0).ok)
    -- No report: the elements that the kernel reads already had values.
    y = cute.empty({8, 4}, cute.f32)
    assert.is_true(report(function(x)
      local t = arch.thread_idx()
      for j = 0, 2 do x[{t, j}] = 1 end
      x[{t, 0}] = x[{t, 1}] + 1
    end, 8, y).ok)
    y = cute.empty({64}, cute.i32)
    assert.is_true(report(function(x, z)
      cute.undefined_ok(x)
      arch.atomic_add(x.iterator, 1)
      z[arch.thread_idx()] = 0
    end, 32, y, cute.empty({32}, cute.i32)).ok)
  end)

  it("that TMA is to store", function()
    for short = 0, 1 do
      local tma = cute.nvgpu.cpasync
      local D = cute.empty(cute.make_layout({32, 24}, {24, 1}), cute.bf16)
      local smem = cute.make_layout({16, 8}, {8, 1})
      local atom, coords = tma.make_tiled_tma_atom(
        tma.CopyBulkTensorTileS2GOp(), D, smem, {16, 8})
      local r = report(function(a, c)
        local t = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.bf16, smem, 128)
        s[{t // 8, t % 8}] = 1.0
        arch.fence_proxy("async.shared")
        arch.sync_threads()
        local g = cute.local_tile(c, {16, 8}, {cute._, cute._})
        local from, to = tma.tma_partition(a, 0, cute.make_layout(1),
          cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
        cute.when(t:eq(0), function()
          for i = 0, 1 do
            for j = 0, 2 - short do
              cute.copy(a, from, to[{cute._, i, j}])
            end
          end
          arch.cp_async_bulk_commit_group()
          arch.cp_async_bulk_wait_group(0)
        end)
      end, 128, atom, coords)
      if short == 0 then
        assert.is_true(r.ok, tostring(r))
      else
        assert.matches("256 of 768 elements of global tensor .*, an output, "
          .. "were not written: element 16", r.reports[1].message)
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
