-- Tests cute.nvgpu.warpgroup: operations by name, canonical layouts, atom
-- fields that loops carry, registers of pending MMAs, and the error for each
-- misuse.
local cute = require "cute"
local kernels = require "spec.kernels"
local warpgroup = cute.nvgpu.warpgroup
local Kind, Field = warpgroup.SmemLayoutAtomKind, warpgroup.Field

local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(tostring(message):find(text, 1, true), message)
end

local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
local mn = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64}, "SMEM", "MN", "MN"))

-- Returns the fragment of descriptors with which the tiled MMA m reads a tile
-- of A, which has layout l in shared memory.
local function descriptors(m, l)
  return m:make_fragment_A((m:get_slice(0):partition_A(l)))
end

describe("the operations of a warpgroup", function()
  it("are CuTe's atoms", function()
    local W = warpgroup
    local function name(op) return op.name end
    assert.equal("SM90_64x200x16_F32F16F16_SS<MN,K>", name(
      W.MmaF16BF16Op("f16", "f32", {64, 200, 16}, "SMEM", "MN", "K")))
    assert.equal("SM90_64x8x16_F16F16F16_RS<K,MN>", name(
      W.MmaF16BF16Op(cute.f16, cute.f16, {64, 8}, "RMEM", "K", "MN")))
    assert.equal("SM90_64x256x32_F16E4M3E5M2_RS_TN", name(
      W.MmaF8Op("e4m3", "e5m2", "f16", {64, 256, 32}, "RMEM")))
    assert.equal("SM90_64x24x32_S32U8S8_SS_TN", name(
      W.MmaI8Op("u8", "i8", "i32", {64, 24}, "SMEM")))
    assert.equal("SM90_64x104x8_F32TF32TF32_SS_TN", name(
      W.MmaTF32Op({64, 104}, "SMEM")))
  end)

  it("are listed in the error", function()
    local op = warpgroup.MmaF16BF16Op
    raises("the accumulators' type is f16; it may be f32 [bad-argument]", op,
           "bf16", "f16", {64, 64}, "SMEM")
    raises("the operands' type is f32; it may be f16, bf16", op, "f32", "f32",
           {64, 64}, "SMEM")
    for _, shape in ipairs {{128, 64}, {64, 60}, {64, 264}, {64, 64, 8},
                            {64}} do
      raises("N a multiple of 8 up to 256, K 16", op, "bf16", "f32",
             shape, "SMEM")
    end
    raises("A in registers must be "
      .. "K-major", op, "bf16", "f32", {64, 64}, "RMEM",
           "MN")
    raises("the major mode must be K or MN, not "
      .. "\"M\"", op, "bf16", "f32", {64, 64},
           "SMEM", "M")
    raises("A must come from SMEM or RMEM, not \"GMEM\"", op, "bf16", "f32",
           {64, 64}, "GMEM")
    raises("operands of this type must be K-major", warpgroup.MmaF8Op, "e4m3",
           "e4m3", "f32", {64, 64}, "SMEM", "K", "MN")
    raises("N must be 8, 24 or a multiple of 16, not "
      .. "40", warpgroup.MmaI8Op, "i8",
           "i8", "i32", {64, 40}, "SMEM")
  end)
end)

describe("canonical shared memory", function()
  it("has CuTe's atoms, their swizzles by elements", function()
    local function atom(kind, dtype)
      return tostring(warpgroup.make_smem_layout_atom(kind, dtype))
    end
    assert.equal("Sw<3,3,3> o 0 o (8,64):(64,1)", atom(Kind.K_SW128, "bf16"))
    assert.equal("Sw<2,3,3> o 0 o (32,8):(1,32)", atom(Kind.MN_SW64, "f16"))
    assert.equal("Sw<1,4,3> o 0 o (8,32):(32,1)", atom(Kind.K_SW32, "e4m3"))
    assert.equal("Sw<3,2,3> o 0 o (8,32):(32,1)", atom(Kind.K_SW128, "tf32"))
    assert.equal("(8,16):(16,1)", atom(Kind.K_INTER, "i8"))
    raises("no shared-memory layout 'K_SW16' (K_ or MN_ and INTER, SW32, "
      .. "SW64, SW128) [unknown-name]", warpgroup.make_smem_layout_atom,
      "K_SW16", "bf16")
  end)

  it("is the memory that descriptors can describe", function()
    local layout = cute.make_layout
    raises("the layout is not canonical: element (1,0) lies 64 elements after "
      .. "the first, not 8", descriptors, mma,
      layout({64, 64}, {64, 1}))
    raises("element (1,0) lies 1 elements after the first, not 64",
      descriptors, mma, cute.tile_to_shape(
        warpgroup.make_smem_layout_atom("MN_SW128", "bf16"), {64, 64}))
    raises("reads A as 64 x 16 elements of 16 bits, M contiguous",
      descriptors, mn, cute.tile_to_shape(
        warpgroup.make_smem_layout_atom("K_SW128", "bf16"), {64, 64}))
    raises("element (0,8) lies 512 elements after the first, not 8",
      descriptors, mma, cute.composition(cute.make_swizzle(3, 3, 3),
        layout({64, {8, 8}}, {64, {1, 512}})))
    raises("the swizzle is not one of Sw<0..3,3,3>, which the instruction "
      .. "supports for 16-bit elements",
      descriptors, mma, cute.tile_to_shape(
        warpgroup.make_smem_layout_atom("K_SW128", "f32"), {64, 64}))
    raises("the tensor is not a partition (V,M,K)", mma.make_fragment_A, mma,
      layout {64, 64})
  end)
end)

-- ---- in kernels ----

-- Traces f as a kernel of 128 threads, with the operands of a tile of MMAs.
local function trace(f)
  local function kernel(mD)
    local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(
      warpgroup.make_smem_layout_atom("K_SW128", "bf16"), {64, 64, 2}), 1024)
    local thr = mma:get_slice(cute.arch.thread_idx())
    local t = {s = s, thr = thr, D = thr:partition_C(mD)}
    t.a = mma:make_fragment_A(thr:partition_A(s))
    t.b = mma:make_fragment_B(thr:partition_B(s))
    t.acc = mma:make_fragment_C(t.D)
    function t.gemm(stage)
      cute.gemm(mma, t.acc, t.a(cute._, cute._, cute._, stage or 0),
                t.b(cute._, cute._, cute._, stage or 0), t.acc)
    end
    f(t)
  end
  return cute.compile(cute.kernel("tile", kernel), cute.zeros({64, 64}, "f32"),
    {grid = 1, block = 128, device = "sim:sm_90a"}).program
end

local W = warpgroup

describe("registers in flight", function()
  local USED = "register 0 of t_acc is used while the MMA of line "

  local function refuses(text, f)
    local ok, message = pcall(trace, f)
    assert.is_false(ok)
    message = tostring(message)
    assert.truthy(message:find(text, 1, true), message)
    assert.truthy(message:find("[in-flight]", 1, true))
  end

  it("are not read before the wait, whatever else comes between", function()
    refuses(USED, function(t)
      W.fence() t.gemm()
      t.D:store(t.acc:load())
    end)
    refuses(USED, function(t)   -- fault: the MMA is never committed to a group
      W.fence() t.gemm() W.wait_group(0)
      t.D:store(t.acc:load())
    end)
    -- fault: wait_group(1) may leave the group of the MMA pending
    refuses(USED, function(t)
      W.fence() t.gemm() W.commit_group() W.wait_group(1)
      t.D:store(t.acc:load())
    end)
    -- fault: the MMA is still pending when the loop's iteration ends
    refuses(USED, function(t)
      for k in cute.range(4) do
        W.fence() t.gemm(k % 2) W.commit_group() W.wait_group(1)
      end
      t.D:store(t.acc:load())
    end)
    refuses(USED, function(t)   -- fault: only one branch waits for the MMA
      W.fence() t.gemm() W.commit_group()
      cute.when(cute.arch.block_idx():gt(0), function() W.wait_group(0) end)
      t.D:store(t.acc:load())
    end)
    -- fault: a break leaves the loop before the wait for the MMA
    refuses(USED, function(t)
      cute.loop(function() return true end, function()
        W.fence() t.gemm() W.commit_group()
        cute.break_if(cute.arch.block_idx():gt(0))
        W.wait_group(0)
      end)
      t.D:store(t.acc:load())
    end)
  end)

  it("may be read once all groups that they are in are done", function()
    trace(function(t)
      for k in cute.range(4) do
        W.fence() t.gemm(k % 2) W.commit_group() W.wait_group(1)
      end
      W.wait_group(0)
      t.D:store(t.acc:load())
    end)
    trace(function(t)  -- no fault: two groups may stay pending
      W.fence() t.gemm() W.commit_group()
      W.commit_group() W.commit_group() W.wait_group(2)
      t.D:store(t.acc:load())
    end)
    trace(function(t)
      cute.when(cute.arch.block_idx():gt(0), function()
        W.fence() t.gemm() W.commit_group() W.wait_group(0)
        t.D:store(t.acc:load())
      end)
    end)
  end)

  it("are fenced before the first MMA and after every use", function()
    refuses("no fence is between this MMA and register 0 of t_acc, at its "
      .. "beginning", function(t) t.gemm() end)
    refuses("no fence is between this MMA and register 0 of t_acc, used in "
      .. "line ", function(t)
        t.acc:fill(0) t.gemm()
      end)
    -- fault: the accumulators were used in the previous loop iteration
    refuses(", used in line ", function(t)
      W.fence()
      for _ in cute.range(4) do
        t.gemm() W.commit_group() W.wait_group(0)
        t.acc[0] = t.acc[0] * 2
      end
    end)
    trace(function(t)
      t.acc:fill(0)
      for _ in cute.range(4) do
        W.fence() t.gemm() t.gemm(1) W.commit_group() W.wait_group(0)
        t.acc[0] = t.acc[0] * 2
      end
    end)
  end)

  it("are accumulated into by MMAs of one shape", function()
    local function mixed(type, wait)
      local op = type == "e4m3" and W.MmaF8Op(type, type, "f32", {64, 64},
        "SMEM") or W.MmaF16BF16Op(type, "f32", {64, 64}, "SMEM")
      local other = cute.make_tiled_mma(op)
      return function(t)
        local s = cute.make_smem_tensor(cute[type], cute.tile_to_shape(
          W.make_smem_layout_atom("K_SW128", type), {64, 128}), 1024)
        W.fence() t.gemm()
        if wait then W.commit_group() W.wait_group(0) end
        local thr = other:get_slice(cute.arch.thread_idx())
        cute.gemm(other, t.acc, other:make_fragment_A(thr:partition_A(s)),
          other:make_fragment_B(thr:partition_B(s)), t.acc)
        W.commit_group() W.wait_group(0)
      end
    end
    refuses("register 0 of t_acc is accumulated into by an MMA of another "
      .. "shape while the MMA of line ", mixed "e4m3")
    trace(mixed("e4m3", true))
    trace(mixed "f16")
  end)
end)

describe("registers in flight", function()
  it("include A's registers until the wait", function()
    local rs = cute.make_tiled_mma(
      W.MmaF16BF16Op("bf16", "f32", {64, 64}, "RMEM"))
    local function kernel(early)
      return function(t)
        local part = rs:get_slice(cute.arch.thread_idx()):partition_A(
          t.s(cute._, cute._, 0))
        local a = rs:make_fragment_A(part)
        cute.autovec_copy(part, a)
        W.fence()
        cute.gemm(rs, t.acc, a, t.b(cute._, cute._, cute._, 0), t.acc)
        W.commit_group()
        if not early then W.wait_group(0) end
        a:fill(0)
        W.wait_group(0)
      end
    end
    local ok, message = pcall(trace, kernel(true))
    assert.is_false(ok)
    assert.truthy(tostring(message):find("of a is written while the MMA", 1,
                                         true), message)
    trace(kernel(false))
  end)
end)

describe("ACCUMULATE", function()
  local function text(f) return trace(f):cuda "sm_90a" end

  it("is true at first, and known", function()
    local t = text(function(t)
      warpgroup.fence()
      assert.is_true(mma:get(Field.ACCUMULATE))
      t.gemm()
      mma:set(Field.ACCUMULATE, false)
      t.gemm()
      assert.is_false(mma:get(Field.ACCUMULATE))
      warpgroup.commit_group()
    end)
    local flags = {}
    for last in t:gmatch "SM90_[%w_]+%(&.-, ([%w_]+)%);" do
      flags[#flags + 1] = last
    end
    assert.equal("true true true true false true true true",
                 table.concat(flags, " "))
  end)

  it("is carried by loops and merged by branches", function()
    local t = text(function(t)
      mma:set(Field.ACCUMULATE, false)
      for k in cute.range(4) do
        warpgroup.fence()
        t.gemm(k % 2)
        mma:set(Field.ACCUMULATE, true)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
      end
    end)
    local name = t:match "bool (ACCUMULATE[%w_]*) = false;"
    assert.truthy(name, t)
    assert.truthy(t:find(", " .. name .. ");", 1, true), t)
    assert.truthy(t:find("  " .. name .. " = true;", 1, true), t)
    t = text(function(x)
      cute.when(cute.arch.block_idx():gt(0), function()
        mma:set(Field.ACCUMULATE, false)
      end)
      warpgroup.fence()
      x.gemm()
      warpgroup.commit_group()
    end)
    assert.truthy(t:find("bool ACCUMULATE", 1, true), t)
  end)

  it("belongs to each tiled MMA, and is true before a region reads it",
     function()
    -- Cases: {body of a loop, {ACCUMULATE of mma, ACCUMULATE of mn}}, where the
    -- second table has the values after the loop.
    local function yes(k) return cute.arch.block_idx():eq(k) end
    local cases = {
      {function(k) mma:set("ACCUMULATE", k:gt(0)) mn:set("ACCUMULATE", k:gt(3))
       end, {true, false}},
      {function(k) mn:set("ACCUMULATE", k:eq(0)) end, {true, false}},
      {function() mma:set("ACCUMULATE", false)
         cute.when(yes(1), function() mn:set("ACCUMULATE", false) end)
       end, {false, true}},
      {function() mma:set("ACCUMULATE", false)
         cute.when(yes(0), function() mn:set("ACCUMULATE", false) end)
       end, {false, false}},
      {function(k)
         cute.when(mn:get("ACCUMULATE") & k:eq(2), function()
           mma:set("ACCUMULATE", false)
         end)
       end, {false, true}}}
    for n, case in ipairs(cases) do
      local y = cute.zeros({2}, cute.i32)
      cute.kernel("k", function(out)
        for k in cute.range(3) do case[1](k) end
        for i, m in ipairs {mma, mn} do
          out[i - 1] = cute.where(m:get "ACCUMULATE", 1, 0)
        end
      end)(y):launch {grid = 1, block = 1, device = "sim:sm_90a"}
      for i = 1, 2 do assert.equal(case[2][i] and 1 or 0, y(i - 1), n) end
    end
  end)

  it("leaves no variable if each pass sets it", function()
    local t = text(function(t)
      for k in cute.range(4) do
        mma:set(Field.ACCUMULATE, k:gt(0))
        warpgroup.fence()
        t.gemm(k % 2)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
      end
    end)
    assert.falsy(t:find("ACCUMULATE", 1, true), t)
    assert.truthy(t:find(", k > 0);", 1, true), t)
  end)

  it("belongs to a warpgroup's MMA, in a kernel", function()
    raises("only meaningful inside a kernel", mma.set, mma, Field.ACCUMULATE,
           true)
    raises("has no field 'NEGATE_A'", trace, function()
      mma:set("NEGATE_A", true)
    end)
    raises("SM80_16x8x16_F32BF16BF16F32_TN has no field 'ACCUMULATE'", trace,
      function()
        cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
          :set(Field.ACCUMULATE, true)
      end)
  end)
end)

describe("gemm of a warpgroup", function()
  it("takes descriptors, and adds to D", function()
    raises("takes A from shared memory, through descriptors", trace,
      function(t)
        cute.gemm(mma, t.acc, t.thr:partition_A(t.s), t.b, t.acc)
      end)
    raises("D and C must be one fragment", trace, function(t)
      local other = mma:make_fragment_C(t.D)
      cute.gemm(mma, t.acc, t.a, t.b, other)
    end)
    raises("is not in the kernel's memory", trace, function(t) t.a[0] = 1 end)
    raises("a descriptor tensor cannot be recast", trace, function(t)
      cute.recast_tensor(t.a, cute.f32)
    end)
  end)

  it("needs tiles that start at the swizzle's period", function()
    raises("the swizzle requires tiles at multiples of 1024 bytes",
      trace, function(t)
        mma:make_fragment_A(t.thr:partition_A(cute.make_smem_tensor(cute.bf16,
          cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
            "bf16"), {64, 64}))))
      end)
  end)

  it("is sm_90a's alone", function()
    local program = trace(function(t)
      warpgroup.fence() t.gemm() warpgroup.commit_group()
      warpgroup.wait_group(0)
    end)
    for _, arch in ipairs {"sm_80", "sm_90", "sm_100a"} do
      raises("[wrong-arch]", program.cuda, program, arch)
    end
    assert.truthy(kernels.compiled(program, "sm_90a") ~= false)
  end)
end)
-- SPDX-License-Identifier: MIT
