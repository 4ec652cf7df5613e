-- Compares copies from shared to tensor memory (tcgen05.cp) with those of the
-- Python DSL. Version 4.8.1 of the DSL (nvidia-cutlass-dsl) printed the texts
-- below on a host without a GPU. Only layouts are compared. The scripts of
-- spec/faults/tensor-memory run such copies.
local cute = require "cute"
local core = require "cute.core"
local arch, tcgen05 = cute.arch, cute.nvgpu.tcgen05

-- {layout of scale factors in shared memory, layout in tensor memory, layout in
-- shared memory with a mode for the four windows of 32 lanes, the thread's
-- partition of tensor memory}
local SCALES = {
  {"((((32,4),1),(32,2)),1,(2,2),3):((((16,4),0),(0,1)),0,(2,512),1024)",
   "((((32,4),4),(32,2)),1,(2,2)):((((262144,4),8388608),(0,1)),0,(2,16))",
   "((((32,4),1,4),(32,2)),1,(2,2),3):((((16,4),0,0),(0,1)),0,(2,512),1024)",
   "((((32,2),2,(4,4)),1),1,1,2):((((262144,1),2,(4,8388608)),0),0,0,16)"},
  {"((((32,4),1),(16,4)),1,4,3):((((16,4),0),(0,1)),0,512,2048)",
   "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)",
   "((((32,4),1,4),(16,4)),1,4,3):((((16,4),0,0),(0,1)),0,512,2048)",
   "(((32,16,4),1),1,1,4):(((262144,1,8388608),0),0,0,16)"},
  {"((((32,4),2),(16,4)),1,4,3):((((16,4),2048),(0,1)),0,512,4096)",
   "((((32,8),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,32)",
   "((((32,4),2,4),(16,4)),1,4,3):((((16,4),2048,0),(0,1)),0,512,4096)",
   "(((32,16,4),1),2,1,4):(((262144,1,8388608),0),16,0,32)"},
}

-- Traces f with tensors of 8 bits in shared and tensor memory.
local function trace(shared, tensor, f)
  cute.kernel("s2t", function()
    local s = cute.make_smem_tensor(cute.u8, core.layout(shared), 128)
    local address = arch.alloc_smem(cute.i32, 1)
    cute.when(arch.warp_idx():eq(0), function()
      arch.alloc_tmem(64, address)
    end)
    arch.sync_threads()
    local ptr = arch.retrieve_tmem_ptr(cute.u8, 16, address)
    f(s, cute.make_tensor(ptr, core.layout(tensor)))
    arch.sync_threads()
    cute.when(arch.warp_idx():eq(0), function()
      arch.dealloc_tmem(ptr, 64)
    end)
  end)():compile {arch = "sm_100a", grid = 1, block = 128}
end

describe("copies from shared to tensor memory", function()
  it("are those of the Python DSL", function()
    local op = tcgen05.Cp4x32x128bOp(tcgen05.CtaGroup.ONE)
    local atom = cute.make_copy_atom(op, cute.u8)
    for _, c in ipairs(SCALES) do
      local appended, part
      trace(c[1], c[2], function(s, t)
        appended = tcgen05.append_s2t_broadcast_mode(op, s).layout
        local copy = tcgen05.make_s2t_copy(atom, t)
        part = copy:get_slice(0):partition_D(cute.filter_zeros(t)).layout
      end)
      assert.equal(c[3], tostring(appended))
      local want = core.layout(c[4])
      assert.equal(core.size(want), core.size(part))
      for i = 0, core.size(want) - 1 do assert.equal(want(i), part(i)) end
    end
  end)

  it("without a broadcast leave the tensor as it is", function()
    trace(SCALES[1][1], SCALES[1][2], function(s)
      local op = tcgen05.Cp128x128bOp(tcgen05.CtaGroup.ONE)
      assert.equal(s, tcgen05.append_s2t_broadcast_mode(op, s))
      assert.error_matches(function()
        tcgen05.append_s2t_broadcast_mode(tcgen05.Ld32x32bOp(1), s)
      end, "does not copy shared to tensor memory")
    end)
    assert.error_matches(function()
      tcgen05.make_s2t_copy(cute.make_copy_atom("UniversalCopy", cute.u8),
                            cute.zeros({4}, "u8"))
    end, "make_s2t_copy: .* does not copy shared to tensor memory")
    assert.error_matches(function() tcgen05.Cp4x256bOp(3) end,
                         "cta_group must be CtaGroup.ONE or TWO, not 3")
  end)

  it("have an atom for each operation and number of blocks", function()
    for name, atom in pairs {
      Cp128x256bOp = "128dp256bit", Cp128x128bOp = "128dp128bit",
      Cp4x256bOp = "4dp256bit", Cp4x32x128bOp = "4x32dp128bit",
      Cp2x64x128b0213Op = "2x64dp128bitlw0213",
      Cp2x64x128b0123Op = "2x64dp128bitlw0123"} do
      for ctas = 1, 2 do
        assert.equal(("SM100_UTCCP_%s_%dcta"):format(atom, ctas),
          cute.make_copy_atom(tcgen05[name](ctas), cute.u8).name)
      end
    end
  end)
end)

describe("is_tmem_allocation_exclusive", function()
  it("is true for more columns than other targets have", function()
    assert.is_true(arch.is_tmem_allocation_exclusive(576, "sm_107a"))
    assert.is_false(arch.is_tmem_allocation_exclusive(512, "sm_107a"))
    assert.is_false(arch.is_tmem_allocation_exclusive(576, "sm_100a"))
  end)
end)
-- SPDX-License-Identifier: MIT
