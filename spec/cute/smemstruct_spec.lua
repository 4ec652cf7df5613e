-- Tests structures of shared memory: the offsets and types of their fields, and
-- errors.
local cute = require "cute"
local arch, utils = cute.arch, cute.utils
local T = require "spec.values"
local raises = require "spec.support".raises
local launch = T.launch
local _ = cute._

describe("structures", function()
  it("have offsets, alignments and sizes", function()
    local S = cute.struct {{"a", cute.f32, 5}, {"b", cute.bf16, 3},
                           {"c", cute.i64, 2, align = 64}, {"d", cute.u8}}
    assert.same({0, 20, 64, 80}, {S:offsetof "a", S:offsetof "b",
                                  S:offsetof "c", S:offsetof "d"})
    assert.equal(128, S:size_in_bytes())
    assert.equal(64, S:align_in_bytes())
    local U = cute.union {{"x", cute.u8, 3}, {"s", S, 2}}
    assert.equal(256, U:size_in_bytes())
    assert.equal(0, U:offsetof "s")
    raises("two fields 'a'", cute.struct, {{"a", cute.f32}, {"a", cute.f32}})
    raises("no field 'z'", S.offsetof, S, "z")
    raises("an element type or a structure", cute.struct, {{"a", 5}})
    raises("not a power of two", cute.struct, {{"a", cute.f32, 1, align = 3}})
  end)

  it("have counts and alignments by position or name, and nothing else",
     function()
    local f16 = cute.f16
    local s = cute.struct
    for _, fields in ipairs {
      {{"a", cute.u8}, {"sA", f16, 64, 128}},
      {{"a", cute.u8}, {"sA", f16, count = 64, align = 128}},
      {{"a", cute.u8}, {"sA", "f16", 64, align = 128}},
      {{"a", cute.u8}, {"sA", s.Align(s.MemRange(f16, 64), 128)}},
      {{"a", cute.u8}, {"sA", s.MemRange(f16, 64), align = 128}},
      {a = cute.u8, sA = {f16, 64, 128}},
      {a = cute.u8, sA = s.Align(s.MemRange("f16", 64), 128)},
    } do
      assert.equal("struct of 256 bytes {a at 0: u8[1]; sA at 128: f16[64]}",
                   tostring(s(fields)))
    end
    raises("field 'sA' has no option 'algin' (did you mean align?): there are "
      .. "align count", s, {{"sA", f16, 64, algin = 128}})
    raises("field 'sA' has no option 'cout'", s, {sA = {f16, cout = 64}})
    raises("field 'sA' has an entry too many, 3", s, {{"sA", f16, 64, 128, 3}})
    raises("field 'sA' has the count 64 and also count = 3", s,
           {{"sA", f16, 64, count = 3}})
    raises("an alignment of \"128\" bytes", s, {{"sA", f16, 64, "128"}})
    raises("cute.struct is a function, which has no field 'MemRang' (did you "
      .. "mean MemRange?) [unknown-name]", function() return s.MemRang end)
  end)

  it("hold tensors and pointers by the Python DSL's names", function()
    local S = cute.struct {{"sA", cute.f32, 32, 128}, {"n", cute.i32, 32}}
    local out = cute.zeros({32}, cute.f32)
    local k = cute.kernel("k", function(x)
      local tid, s = arch.thread_idx(), utils.SmemAllocator():allocate(S)
      local sA = s.sA:get_tensor(cute.make_layout {4, 8},
                                 cute.make_swizzle(1, 1, 1))
      local bits = s.sA:get_tensor(cute.make_layout(64), nil, cute.f16)
      assert.equal("f16", tostring(bits.element_type))
      arch.store(s.n:data_ptr() + tid, 2)
      sA[tid] = tid:to(cute.f32)
      arch.sync_threads()
      x[tid] = sA[31 - tid] * s.n:get_tensor(cute.make_layout(32))[tid]
        :to(cute.f32)
    end)
    k(out):launch {grid = 1, block = 32, device = "sim"}
    for i = 0, 31 do assert.equal(2.0 * (31 - i), out(i)) end
  end)

  it("are allocated by SmemAllocator, within the budget", function()
    local Inner = cute.struct {{"v", cute.f32, 4}}
    local S = cute.struct {{"x", cute.i32, 32}, {"in2", Inner, 2},
                           {"u", cute.union {{"f", cute.f32}, {"i", cute.u32}}}}
    local O = cute.zeros({32, 5}, "i32")
    local k = cute.kernel("k", function(out)
      local t = arch.thread_idx()
      local smem = utils.SmemAllocator()
      local s = smem:allocate(S)
      local x = cute.make_tensor(s.x, cute.make_layout(32))
      local y = smem:allocate_tensor(cute.f32, cute.make_layout({8, 4}), 128,
                                     cute.make_swizzle(1, 1, 1))
      local z = smem:allocate_array(cute.i32, 32)
      local one = smem:allocate(cute.i32)
      local raw = smem:allocate(64, 16)
      assert.equal(cute.u8, raw.element_type)
      x[t] = t * 2
      y[{t % 8, t // 8}] = t:to(cute.f32)
      arch.store(z + t, t * 5)
      cute.when(t:eq(0), function()
        arch.store(one, 11)
        arch.store(s.in2[2].v + 3, 2.5)
        arch.store(s.u.f, 1.0)
      end)
      arch.sync_threads()
      out[{t, 0}] = x[31 - t]
      out[{t, 1}] = y[{(t + 1) % 8, t // 8}]:to(cute.i32)
      out[{t, 2}] = arch.load(z + (t ~ 1))
      out[{t, 3}] = arch.load(one) + (arch.load(s.in2[2].v + 3) * 2)
        :to(cute.i32)
      out[{t, 4}] = arch.load(s.u.i):to(cute.i32)
    end)
    local call = k(O)
    local run = call:compile {grid = 1, block = 32, device = "sim"}
    local r = run:launch {faults = "return"}
    assert.is_true(r.ok, tostring(r))
    for t = 0, 31 do
      assert.same({(31 - t) * 2, t // 8 * 8 + (t + 1) % 8, (t ~ 1) * 5, 16,
                   0x3f800000}, {O(t, 0), O(t, 1), O(t, 2), O(t, 3), O(t, 4)})
    end
    assert.is_true(utils.get_kernel_smem_size(run) >= 164 + 128 + 128 + 4 + 64)
    assert.equal(utils.get_kernel_smem_size(run),
      utils.get_kernel_smem_size(call:trace {block = 32}))
    raises("[smem-budget]", launch, function(_)
      utils.SmemAllocator():allocate(300 * 1024)
    end, {O})
  end)

  it("fit the capacity of an architecture", function()
    assert.equal(163 * 1024, utils.get_smem_capacity_in_bytes "sm_80")
    assert.equal(227 * 1024, utils.get_smem_capacity_in_bytes())
    assert.equal(99 * 1024, utils.get_smem_capacity_in_bytes "sm_120")
    raises("no architecture", utils.get_smem_capacity_in_bytes, "sm_42")
  end)
end)

---------------------------------------------------------------------------
-- SPDX-License-Identifier: MIT
