-- Tests copies from shared to tensor memory (tcgen05.cp) on the simulator. Each
-- shape copies rows of numbers, which threads then load back. NVRTC must
-- compile each copy for every target that has it.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05 = cute.arch, cute.nvgpu.tcgen05

-- number of columns in tensor memory, and the value that fills them before the
-- copy
local COLUMNS, BEFORE = 8, 7

-- In `tmem`, a lane has the stride 65536. row(lane) returns the row of the
-- source that a lane gets, or nil. `layout` describes the source if it has one
-- row per lane.
local CASES = {
  {"Cp128x256bOp", rows = 128, words = 8, tmem = "(128,8):(65536,1)",
   row = function(lane) return lane end},
  {"Cp128x256bOp", rows = 128, words = 8, tmem = "(128,8):(65536,1)",
   kind = "K_SW32", row = function(lane) return lane end},
  {"Cp128x128bOp", rows = 128, words = 4, tmem = "(128,4):(65536,1)",
   row = function(lane) return lane end},
  {"Cp4x256bOp", rows = 4, words = 8, tmem = "(128,8):(65536,1)",
   layout = "((32,4),(4,2)):((0,4),(1,16))",
   row = function(lane) return lane % 32 == 0 and lane // 32 or nil end},
  {"Cp4x32x128bOp", rows = 32, words = 4,
   tmem = "((32,4),4):((65536,2097152),1)",
   row = function(lane) return lane % 32 end},
  {"Cp2x64x128b0213Op", rows = 64, words = 4,
   tmem = "((64,2),4):((65536,4194304),1)",
   row = function(lane) return lane % 64 end},
  {"Cp2x64x128b0123Op", rows = 64, words = 4,
   tmem = "((32,2,2),4):((65536,4194304,2097152),1)",
   row = function(lane) return lane // 64 * 32 + lane % 32 end},
}

-- Returns a canonical layout of rows that consist of 16-byte pieces: first the
-- first pieces of 8 rows, then their second pieces, and so on.
local function rows_of(c)
  if c.kind then
    return cute.tile_to_shape(tcgen05.make_smem_layout_atom(c.kind, cute.tf32),
                              {c.rows, c.words})
  end
  local group, pieces = math.min(c.rows, 8), c.words // 4
  return cute.make_layout({{group, c.rows // group}, {4, pieces}},
    {{4, 4 * group * pieces}, {1, 4 * group}})
end

-- Returns a kernel that fills columns of tensor memory (unless `bare` is true),
-- copies A over some of them, and stores all of them to C.
local function kernel_of(c, bare)
  local cp = cute.make_copy_atom(tcgen05[c[1]](1), cute.u32)
  local fill = cute.make_copy_atom(tcgen05.St32x32bOp(COLUMNS), cute.u32)
  local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(COLUMNS), cute.u32)
  local rows = rows_of(c)
  local function meet()
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
  end
  return cute.kernel("cp", function(A, C)
    local tid, warp = arch.thread_idx(), arch.warp_idx()
    local s = cute.make_smem_tensor(cute.u32, rows, 1024)
    local bar = arch.alloc_smem(cute.i64, 1)
    local address = arch.alloc_smem(cute.i32, 1)
    cute.when(warp:eq(0), function()
      arch.alloc_tmem(32, address)
      cute.when(tid:eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
      end)
    end)
    cute.when(tid:lt(c.rows), function()
      for w = 0, c.words - 1 do s[{tid, w}] = A[{tid, w}] end
    end)
    arch.fence_view_async_shared()
    meet()
    local ptr = arch.retrieve_tmem_ptr(cute.u32, 16, address)
    local all = cute.make_tensor(ptr, core.layout("(128,8):(65536,1)"))
    local st = tcgen05.make_tmem_copy(fill, all)
    local mine = st:get_slice(tid):partition_D(all)
    local r = cute.make_rmem_tensor(st:get_slice(tid):partition_S(C).shape,
                                    cute.u32)
    r:fill(BEFORE)
    if not bare then
      cute.copy(st, r, mine)
      arch.fence_view_async_tmem_store()
    end
    meet()
    local t = cute.make_tensor(ptr, core.layout(c.tmem))
    local s2t = tcgen05.make_s2t_copy(cp, t)
    local thr = s2t:get_slice(0)
    local source = c.layout
      and cute.make_tensor(s.iterator, core.layout(c.layout)) or s
    local from = tcgen05.get_s2t_smem_desc_tensor(s2t,
                                                  thr:partition_S(source))
    cute.when(tid:eq(0), function()
      cute.copy(s2t, from, thr:partition_D(t))
      tcgen05.commit(bar)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    local ld = tcgen05.make_tmem_copy(load, all):get_slice(tid)
    cute.copy(load, ld:partition_S(all), r)
    arch.fence_view_async_tmem_load()
    cute.basic_copy(r, ld:partition_D(C))
    meet()
    cute.when(warp:eq(0), function() arch.dealloc_tmem(ptr, 32) end)
  end)
end

local function numbers(c)
  local A = cute.zeros({c.rows, c.words}, cute.u32)
  for i = 0, c.rows - 1 do
    for j = 0, c.words - 1 do A[{i, j}] = 100 * i + j + 1000 end
  end
  return A
end

local function check(c)
  local A, C = numbers(c), cute.zeros({128, COLUMNS}, cute.u32)
  local call = kernel_of(c)(A, C)
  local report = support.report(
    call:launch {grid = 1, block = 128, device = "sim:sm_100a"})
  assert.same({}, report:notes())
  for lane = 0, 127 do
    local row = c.row(lane)
    for w = 0, COLUMNS - 1 do
      local want = row and w < c.words and A(row, w) or BEFORE
      if want ~= C(lane, w) then
        assert.equal(want, C(lane, w), ("lane %d, column %d"):format(lane, w))
      end
    end
  end
  return call
end

describe("tcgen05.cp", function()
  it("writes single lanes only if its shape has four rows", function()
    for _, c in ipairs {CASES[1], CASES[4]} do
      local report = support.report(kernel_of(c, true)(numbers(c),
        cute.zeros({128, COLUMNS}, cute.u32)):launch {grid = 1, block = 128,
          device = "sim:sm_100a", faults = "return"})
      assert.equal(c.rows == 128, report.ok)
      if not report.ok then
        assert.matches("column 0 of tensor memory is read, but nothing wrote",
                       report.reports[1].message)
      end
    end
  end)

  for _, c in ipairs(CASES) do
    it(("copies rows: %s %s"):format(c[1], c.kind or ""), function()
      local call = check(c)
      if not cute.jit.version() then return end
      for _, target in ipairs {"sm_100a", "sm_103f", "sm_110a"} do
        local program = call:compile {arch = target, grid = 1, block = 128}
        assert(cute.jit.compile(program.source, {arch = target}))
      end
    end)
  end

  it("rejects sources that no descriptor describes", function()
    local function copy(f)
      return function()
        cute.kernel("s2t", function()
          local s = cute.make_smem_tensor(cute.u32, f.layout, 128)
          local ptr = arch.retrieve_tmem_ptr(cute.u32, 16,
                                             arch.alloc_smem(cute.i32, 1))
          local t = cute.make_tensor(ptr, core.layout "(128,4):(65536,1)")
          local s2t = tcgen05.make_s2t_copy(cute.make_copy_atom(
            tcgen05.Cp128x128bOp(1), cute.u32), t)
          local thr = s2t:get_slice(0)
          local from = thr:partition_S(s)
          if not f.plain then
            from = tcgen05.get_s2t_smem_desc_tensor(s2t, from)
          end
          cute.copy(s2t, from, thr:partition_D(t))
        end)():compile {arch = "sm_100a", grid = 1, block = 128}
      end
    end
    assert.error_matches(copy {layout = core.layout "(128,4):(1,128)"},
      "get_s2t_smem_desc_tensor: the layout is not canonical")
    assert.error_matches(copy {layout = core.layout "(128,4):(4,1)",
                               plain = true},
      "SM100_UTCCP_128dp128bit_1cta reads shared memory through descriptors.*"
      .. "get_s2t_smem_desc_tensor")
    assert.error_matches(function()
      tcgen05.get_s2t_smem_desc_tensor(cute.make_tiled_copy(
        cute.make_copy_atom("UniversalCopy", cute.f32), cute.make_layout(32),
        cute.make_layout(1)), cute.zeros({4}, "f32"))
    end, "get_s2t_smem_desc_tensor: .* does not copy shared to tensor memory")
  end)
end)
-- SPDX-License-Identifier: MIT
