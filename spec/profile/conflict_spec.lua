-- Tests the map of bank conflicts of an access, as text and as a drawing. A
-- launch without `record` must have no map.
local cute = require "cute"

-- Each thread stores a row of a (32,32) tile of `dtype`, and reads a column.
local function columns(dtype, layout)
  return cute.kernel("columns", function(x)
    local tid = cute.arch.thread_idx()
    local sX = cute.make_smem_tensor(dtype, layout)
    for i = 0, 31 do sX[{tid, i}] = x[i * 32 + tid] end
    cute.arch.sync_warp()
    for i = 0, 31 do x[i * 32 + tid] = sX[{i, tid}] end
  end)(cute.zeros({1024}, dtype))
end

local ROWS = cute.make_layout({32, 32}, {32, 1})
local ONE = {grid = 1, block = 32}

-- Copies a (64,64) tile to shared memory by cp.async that bypasses L1. Each of
-- 128 threads copies 8 columns at a time. `threads` is the layout of the
-- threads.
local function copied(threads)
  return cute.kernel("copied", function(x, y)
    local tid, cpasync = cute.arch.thread_idx(), cute.nvgpu.cpasync
    local s = cute.make_smem_tensor(cute.bf16, cute.composition(
      cute.make_swizzle(3, 3, 3), cute.make_layout({64, 64}, {64, 1})), 128)
    local atom = cute.make_copy_atom(
      cpasync.CopyG2SOp(cute.nvgpu.LoadCacheMode.GLOBAL), cute.bf16,
      {num_bits_per_copy = 128})
    local tiled = cute.make_tiled_copy_tv(atom, threads,
                                          cute.make_layout {1, 8})
    local thr = tiled:get_slice(tid)
    cute.copy(tiled, thr:partition_S(x), thr:partition_D(s))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    y[tid] = s[{tid % 64, tid // 64}]
  end)(cute.zeros({64, 64}, cute.bf16), cute.zeros({128}, cute.bf16))
end

describe("bank conflicts", function()
  it("are printed with the report of a profile, and not of a launch", function()
    local call = columns(cute.f32, ROWS)
    local r = call:profile(ONE)
    local text = tostring(r)
    assert.matches("^simulator: kernel columns: profile\n", text)
    for _, part in ipairs {r:traffic(), tostring(r:conflicts()[1]),
        "report:find_swizzle() searches"} do
      assert.matches("\n" .. part, text, 1, true)
    end
    local padded = columns(cute.f32, cute.make_layout({32, 32}, {33, 1}))
    assert.matches("\nno bank conflicts$", tostring(padded:profile(ONE)))
    local plain = call:launch {grid = 1, block = 32, device = "sim"}
    assert.equal("simulator: kernel columns: nothing to report",
      tostring(plain))
  end)
end)

describe("conflicts", function()
  it("are reported for a cp.async that reads many lines", function()
    local block = {grid = 1, block = 128}
    local along = copied(cute.make_layout({16, 8}, {8, 1})):profile(block)
    assert.same({64, 0}, {along.lines[1].wavefronts, along.lines[1].conflicts})
    local across = copied(cute.make_layout {64, 2}):profile(block)
    assert.same({512, 448},
                {across.lines[1].wavefronts, across.lines[1].conflicts})
    local told = tostring(across:conflicts()[1])
    assert.truthy(told:find("448 conflicts in 16 requests of s, ", 1, true))
    assert.truthy(told:find("32 passes where 4 would do", 1, true))
    assert.truthy(told:find("from 32 lines of global memory where 4 would do",
                            1, true), told)
  end)

  it("are reported line by line, with a map of one access", function()
    local r = columns(cute.f32, ROWS):profile(ONE)
    local list = r:conflicts()
    assert.equal(1, #list)
    local c = list[1]
    assert.equal(992, c.conflicts)
    assert.equal(32, c.count)
    assert.equal("sX", c.tensor)
    assert.same({32, 1, 0}, {c.passes, c.least, c.warp})
    local text = tostring(c)
    local head = {
      "conflict_spec.lua:10: 992 conflicts in 32 requests of sX, f32 "
        .. "(32,32):(32,1)",
      "  a store of 4 bytes a lane by warp 0 of block (0,0,0): 32 passes "
        .. "where 1 would do",
      "  bank     0       4       8      12      16      20      24      28",
      "  pass 1   0" .. (" ."):rep(31),
      "  pass 2   1" .. (" ."):rep(31)}
    assert.equal(table.concat(head, "\n"),
                 text:sub(1, #table.concat(head, "\n")))
    assert.is_truthy(text:find("  pass 16 15" .. (" ."):rep(31)
      .. "\n  ... and 16 more passes\n  bank 0 receives requests for 32 words "
      .. "at once, from lanes 0 (0,0), 1 (1,0), 2 (2,0), 3 (3,0), 4 (4,0), 5 "
      .. "(5,0), 6 (6,0), 7 (7,0), ...", 1, true))
  end)

  it("share a word if lanes read the same one", function()
    -- Elements are bf16. In the second layout, rows 2 i and 2 i + 1 share
    -- words, so the lanes read 16 different words of a bank instead of 32.
    local l = cute.make_layout({32, 32}, {64, 1})
    local c = columns(cute.bf16, l):profile(ONE):conflicts()[1]
    assert.equal(32, c.passes)
    c = columns(cute.bf16, cute.make_layout({{2, 16}, 32}, {{1, 64}, 2}))
      :profile(ONE):conflicts()[1]
    assert.equal(16, c.passes)
    assert.is_truthy(tostring(c):find("pass 2   2" .. (" ."):rep(31), 1, true))
    for _, lane in ipairs(c.lanes) do
      assert.equal(lane.lane // 2 + 1, lane.pass)
      assert.equal(1, lane.group)
    end
  end)

  it("are counted by groups of lanes for wide accesses", function()
    local k = cute.kernel("wide", function(x)
      local tid = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout({32, 64},
                                                                 {64, 1}))
      local r = cute.make_rmem_tensor({1, 4}, cute.f32)
      r:fill(1)
      cute.autovec_copy(r, cute.local_tile(s, {1, 4}, {tid, 0}))
      x[tid] = s[{tid, 0}]
    end)
    local list = k(cute.zeros({32}, cute.f32)):profile(ONE):conflicts()
    assert.equal(2, #list)
    local wide = list[1].width == 16 and list[1] or list[2]
    assert.same({32, 4}, {wide.passes, wide.least})
    for _, lane in ipairs(wide.lanes) do
      assert.equal(lane.lane // 8 + 1, lane.group)
      assert.equal(lane.lane + 1, lane.pass)
    end
    local text = tostring(wide)
    assert.is_truthy(text:find("pass 8   7======" .. (" ."):rep(28), 1, true))
    assert.is_truthy(text:find("... and 24 more passes", 1, true))
    assert.is_truthy(text:find("bank 0 receives requests for 8 words at once, "
      .. "from lanes 0 (0,0), 1 (1,0)", 1, true))
  end)

  it("of cp.async past L1 are lines that do not go along", function()
    local k = cute.kernel("past", function(x)
      local tid = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout({32, 4},
                                                                 {8, 1}))
      local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.f32,
                                       128)
      cute.copy(atom, cute.local_tile(x, {4}, {tid}),
        cute.make_tensor(s.iterator + tid * 8, cute.make_layout {4}))
      cute.arch.cp_async_commit_group()
      cute.arch.cp_async_wait_group(0)
      cute.arch.sync_warp()
      x[tid] = s[{tid, 0}]
    end)
    local list = k(cute.zeros({128}, cute.f32)):profile(ONE):conflicts()
    local text = ""
    for _, c in ipairs(list) do
      if c.kind == "cp.async.cg" then text = tostring(c) end
    end
    assert.is_truthy(text:find("a cp.async.cg of 16 bytes a lane", 1, true),
                     text)
    assert.is_truthy(text:find("a pass takes lanes of one line of 128 bytes",
                               1, true))
  end)
end)

describe("conflicts", function()
  -- Computes by brute force which lanes access each element "m,n", and which
  -- lanes each pass serves in each bank.
  local function served(c, layout, width)
    local at, banks, passes = {}, {}, {}
    local bytes = c.dtype.bits // 8
    for m = 0, cute.size(layout, 0) - 1 do
      for n = 0, cute.size(layout, 1) - 1 do
        for _, lane in ipairs(c.lanes) do
          local e = layout(m, n) * bytes
          if e >= lane.at and e < lane.at + width then
            at[m .. "," .. n] = ("L%d P%d"):format(lane.lane, lane.pass)
            for word = e // 4, (e + bytes - 1) // 4 do
              banks[lane.pass .. "," .. word % 32] = tostring(lane.lane)
            end
            passes[lane.pass] = true
          end
        end
      end
    end
    return at, banks, #passes
  end

  local function cells(panel)
    local found = {}
    for i = 1, panel.rows * panel.columns do
      found[panel.row_labels[(i - 1) // panel.columns + 1] .. ","
        .. (i - 1) % panel.columns] = panel.label[i]
    end
    return found
  end

  it("are drawn as one picture of elements and one of banks", function()
    local draw = require "cutelua.draw"
    for text, dtype in pairs {["(32,32):(32,1)"] = cute.f32,
        ["Sw<2,0,3> o 0 o (32,32):(32,1)"] = cute.f32,
        ["(32,32):(48,1)"] = cute.f64} do
      local layout = cute.layout(text)
      local r = columns(dtype, layout):profile(ONE)
      local c = r:conflicts()[1]
      local p = draw.picture(c, {})
      assert.equal(2, #p.panels)
      local at, banks, passes = served(c, layout, dtype.bits // 8)
      assert.same(at, cells(p.panels[1]))
      assert.same(banks, cells(p.panels[2]))
      assert.equal(passes, p.panels[2].rows)
      for i, bank in pairs(p.panels[2].ids.bank) do
        assert.equal((i - 1) % 32, bank)
        assert.equal(bank, p.panels[2].class[i])
      end
      for i, class in pairs(draw.picture(c, {by = "lane"}).panels[1].class) do
        assert.equal(p.panels[1].ids.lane[i], class)
      end
      assert.is_truthy(p.title:find(("%d passes where %d would do"):format(
        c.passes, c.least), 1, true))
      assert.equal(cute.draw(c, {as = "svg"}), c:svg())
      assert.is_nil(cute.draw(c, {as = "text"}):find "\27")
    end
  end)

  it("of a report are drawn line by line", function()
    local draw = require "cutelua.draw"
    local r = columns(cute.f32, ROWS):profile(ONE)
    local p = draw.picture(r, {})
    -- two panels for each access: the store, which has conflicts, and the load
    assert.equal(4, #p.panels)
    assert.same({32, 1}, {p.panels[2].rows, p.panels[4].rows})
    assert.equal("accesses to sX, f32 (32,32):(32,1)", p.title)
    assert.equal(2, #draw.picture(r, {line = 12, tensor = "sX"}).panels)
    local function refused(text, opts)
      local ok, why = pcall(cute.draw, r, opts)
      assert.is_false(ok)
      assert.is_truthy(why:find(text, 1, true), why)
    end
    refused('tensor = "sY"; possible are sX', {tensor = "sY"})
    refused("line = 11; possible are 10 12", {line = 11})
    refused("by = \"thread\"; possible are none lane pass offset bank",
            {by = "thread"})
    refused("cells are too many; the limit is 100", {limit = 100})
    local plain = columns(cute.f32, ROWS):launch {grid = 1, block = 32,
                                                  device = "sim"}
    local ok, why = pcall(cute.draw, plain)
    assert.is_truthy(not ok and why:find("record = true", 1, true))
  end)

  it("are empty if there are none", function()
    local sw = cute.composition(cute.make_swizzle(5, 0, 5), ROWS)
    local r = columns(cute.f32, sw):profile(ONE)
    assert.same({}, r:conflicts())
    assert.equal("no shared tensor has conflicts", tostring(r:find_swizzle()))
    assert.is_truthy(tostring(r:find_swizzle "sX"):find("no conflicts in 64",
                                                        1, true))
  end)

  it("need a recorded launch on the simulator", function()
    local r = columns(cute.f32, ROWS):launch {grid = 1, block = 32,
                                              device = "sim"}
    local said, why = pcall(r.conflicts, r)
    assert.is_false(said)
    assert.is_truthy(why:find("this report has no recorded accesses", 1, true))
    said, why = pcall(r.find_swizzle, r)
    assert.is_truthy(not said and why:find("record = true", 1, true))
    local again = columns(cute.f32, ROWS):launch {grid = 1, block = 32,
      device = "sim", record = true}
    assert.equal(1, #again:conflicts())
    assert.equal(64, #again.requests)
    assert.equal(r:total "wavefronts", again:total "wavefronts")
  end)
end)

describe("conflicts", function()
  it("have lines that name the direction of a copy", function()
    local k = cute.kernel("ways", function(x)
      local tid = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout {32})
      cute.autovec_copy(cute.local_tile(x, {1}, {tid}),
                        cute.local_tile(s, {1}, {tid}))
      cute.autovec_copy(cute.local_tile(s, {1}, {tid}),
                        cute.local_tile(x, {1}, {tid}))
    end)
    local r = k(cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32,
                                                    device = "sim"}
    local text = r:traffic()
    for _, l in ipairs(r.lines) do
      assert.equal(l.line == r.lines[2].line, l.out)
    end
    assert.is_truthy(text:find "x > s" and text:find "s > x", text)
  end)

  it("do not depend on the host's threads, and are kept up to a bound",
     function()
    local k = cute.kernel("many", function(x, n)
      local bx, tid = cute.arch.block_idx(), cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {4096})
      for i in cute.range(n) do
        s[(i * 37 + bx * 101 + tid * 32) % 4096] = tid
        cute.arch.sync_warp()
      end
      x[tid] = s[(bx * 101 + (n - 1) * 37 + tid * 32) % 4096]
    end)
    local x = cute.zeros({32}, cute.i32)
    local one = k(x, 100):profile {grid = 4, block = 32, threads = 1,
                                   faults = "return"}
    local two = k(x, 100):profile {grid = 4, block = 32, threads = 2,
                                   faults = "return"}
    assert.equal(tostring(one:conflicts()[1]), tostring(two:conflicts()[1]))
    assert.equal(0, one.requests:lost())
    assert.is_true(#one.requests > 100)
  end)
end)
-- SPDX-License-Identifier: MIT
