-- Tests tcgen05.shift on the simulator. Lanes are compared with a shift on the
-- host. Also tests the order of shifts, MMAs and copies of one thread, and
-- misuse. NVRTC must compile each kernel for the targets that have the
-- instruction.
local block = require "spec.tensor_block"
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._

local OPTIONS = {grid = 1, block = 128, device = "sim:sm_100a"}
local COLUMNS, WIDTH = 32, 16

local function meet()
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
end

-- Returns a kernel that stores X to 16 columns of tensor memory, lets one
-- thread call f(pointer, mbarrier), and loads the columns to Y.
local function kernel(f)
  local st = cute.make_copy_atom(tcgen05.St32x32bOp(WIDTH), cute.i32)
  local ld = cute.make_copy_atom(tcgen05.Ld32x32bOp(WIDTH), cute.i32)
  return cute.kernel("shift", function(X, Y)
    local ptr, bar = block.begin(COLUMNS, cute.i32)()
    local t = cute.make_tensor(ptr, core.layout "(128,16):(65536,1)")
    local store = tcgen05.make_tmem_copy(st, t):get_slice(arch.thread_idx())
    local from = store:partition_S(X)
    local r = cute.make_rmem_tensor(from.shape, cute.i32)
    cute.basic_copy(from, r)
    cute.copy(st, r, store:partition_D(t))
    arch.fence_view_async_tmem_store()
    meet()
    cute.when(arch.thread_idx():eq(0), function() f(ptr, bar) end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    block.copy_out(ld, t, Y)
    block.finish(ptr, COLUMNS)
  end)
end

local function call(f)
  local X, Y = cute.zeros({128, WIDTH}, "i32"), cute.zeros({128, WIDTH}, "i32")
  for i = 0, cute.size(X) - 1 do X[i] = i + 1 end
  return kernel(f)(X, Y), X, Y
end

-- Checks that a launch of f reports this text.
local function reports(text, f)
  local ok, why = pcall(function() return (call(f)):launch(OPTIONS) end)
  assert.is_false(ok)
  assert.is_truthy(tostring(why):find(text, 1, true), tostring(why))
end

-- Shifts lanes from lane `lane` on.
local function shift(ptr, lane)
  tcgen05.shift(ptr + (lane << 16))
end

describe("tcgen05.shift", function()
  it("moves 8 columns of 31 lanes to the next lane", function()
    local run, X, Y = call(function(ptr, bar)
      shift(ptr + 4, 32)
      tcgen05.commit(bar)
    end)
    assert.same({}, support.report(run:launch(OPTIONS)):notes())
    for lane = 0, 127 do
      for column = 0, WIDTH - 1 do
        local moves = lane > 32 and lane < 64 and column >= 4 and column < 12
        assert.equal(X(moves and lane - 1 or lane, column), Y(lane, column))
      end
    end
    for _, target in ipairs {"sm_100a", "sm_103a", "sm_110a"} do
      block.compile(run, target)
    end
    for _, target in ipairs {"sm_100f", "sm_103f", "sm_110", "sm_120a",
                             "sm_90a"} do
      local ok, why = pcall(run.compile, run, {arch = target, grid = 1,
                                               block = 128})
      assert.is_false(ok)
      assert.is_truthy(tostring(why):find("tcgen05", 1, true))
    end
    support.raises("tcgen05.shift", run.compile, run,
                   {arch = "sm_100f", grid = 1, block = 128})
  end)

  it("reports lanes, columns and threads that it cannot have", function()
    reports("an operand of a tcgen05.shift starts at lane 16",
            function(ptr, bar)
      shift(ptr, 16)
      tcgen05.commit(bar)
    end)
    reports("of tensor memory are not allocated", function(ptr, bar)
      shift(ptr + 1024, 0)
      tcgen05.commit(bar)
    end)
    reports("column 16 of tensor memory is read, but nothing wrote it",
            function(ptr, bar)
      shift(ptr + 12, 0)
      tcgen05.commit(bar)
    end)
    reports("no tcgen05.commit follows a tcgen05.shift", function(ptr, bar)
      tcgen05.commit(bar)
      shift(ptr, 0)
    end)
    support.raises("cta_group must be CtaGroup.ONE or TWO", tcgen05.shift,
                   cute.make_tensor(cute.zeros({1}, "f32"),
                                    cute.make_layout(1)).iterator, 3)
  end)

  it("is executed after MMAs and before MMAs of its thread", function()
    local mma = cute.make_tiled_mma(
      tcgen05.MmaF16BF16Op("f16", "f32", {128, 16, 16}))
    local layout = cute.tile_to_shape(
      tcgen05.make_smem_layout_atom("K_INTER", cute.f16), {128, 16})
    local ld = cute.make_copy_atom(tcgen05.Ld32x32bOp(16), cute.f32)
    -- Returns a kernel that computes D = A B^T, shifts D, calls `between`, and
    -- then adds A B^T to D.
    local function product(between)
      return cute.kernel("products", function(A, B, C)
        local sA = cute.make_smem_tensor(cute.f16, layout, 1024)
        local sB = cute.make_smem_tensor(cute.f16, cute.tile_to_shape(
          tcgen05.make_smem_layout_atom("K_INTER", cute.f16), {16, 16}), 1024)
        local go = block.begin(32, cute.f32)
        block.copy_in(sA, A)
        block.copy_in(sB, B)
        local ptr, bar = go()
        local thr = mma:get_slice(0)
        local a = mma:make_fragment_A(thr:partition_A(sA))
        local b = mma:make_fragment_B(thr:partition_B(sB))
        local part = thr:partition_C(C)
        local d = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
        cute.when(arch.thread_idx():eq(0), function()
          mma:set(tcgen05.Field.ACCUMULATE, false)
          cute.gemm(mma, d, a, b, d)
          tcgen05.shift(ptr)
          if between then between(ptr) end
          mma:set(tcgen05.Field.ACCUMULATE, true)
          cute.gemm(mma, d, a, b, d)
          tcgen05.commit(bar)
        end)
        arch.mbarrier_wait(bar, 0)
        arch.tcgen05_after_thread_sync()
        block.copy_out(ld, d({_, _}, 0, 0), part({_, _}, 0, 0))
        block.finish(ptr, 32)
      end)
    end
    local A = block.small(cute.zeros({128, 16}, "f16"), 7, -2)
    local B = block.small(cute.zeros({16, 16}, "f16"), 3, -2)
    local C = cute.zeros({128, 16}, "f32")
    local report = support.report(product()(A, B, C):launch(OPTIONS))
    assert.same({}, report:notes())
    local function dot(i, j)
      local s = 0
      for k = 0, 15 do s = s + A(i, k) * B(j, k) end
      return s
    end
    for i = 0, 127 do
      for j = 0, 15 do
        local from = i > 0 and i < 32 and j < 8 and i - 1 or i
        assert.equal(dot(i, j) + dot(from, j), C(i, j))
      end
    end
    -- PTX does not order two shifts.
    local notes = support.report(product(tcgen05.shift)(A, B, C)
      :launch(OPTIONS)):notes()
    assert.is_truthy(tostring(notes[1]):find("tcgen05.shift", 1, true))
  end)
end)
-- SPDX-License-Identifier: MIT
