-- Tests tcgen05, cancellation of clusters and block-scaled mma.sync in PTX. The
-- tests of other specs run again through the PTX of their kernels: memory and
-- faults must equal those of direct runs. Short PTX texts test what NVRTC does
-- not write: other scale factors, descriptors that a kernel computes, errors.
local core = require "cute.core"
local cute = require "cute"
local roundtrip = require "spec.ptx.roundtrip"
local support = require "spec.support"
local through = require "spec.ptx.through"

-- ---- other specs ----

-- Returns the tests of a spec file as {name, f}.
local function tests_of(path)
  local list, names = {}, {}
  local env = setmetatable({
    describe = function(name, f)
      names[#names + 1] = name
      f()
      names[#names] = nil
    end,
    it = function(name, f)
      list[#list + 1] = {table.concat(names, " ") .. " " .. name, f}
    end}, {__index = _ENV})
  assert(loadfile(path, "t", env))()
  return list
end

-- Returns a text of the kinds of faults, without consecutive repetitions. One
-- call of cute.gemm becomes several instructions, so one fault may have several
-- lines of PTX.
local function once(kinds)
  local list = {}
  for kind in kinds:gmatch "%S+" do
    if kind ~= list[#list] then list[#list + 1] = kind end
  end
  return table.concat(list, " ")
end

-- Runs a test. Compares each launch on the simulator with a launch of its PTX.
-- Returns the number of launches.
local function through_ptx(test)
  local launches = 0
  roundtrip.during(test, function(pair)
    launches = launches + 1
    assert.is_true(pair.equal, pair.kernel .. ": memory differs")
    assert.are.equal(once(pair.faults[1]), once(pair.faults[2]), pair.kernel)
  end)
  return launches
end

local PATHS = {"spec/sim/tcgen05_spec.lua", "spec/sim/tcgen05_cp_spec.lua",
               "spec/sim/pairs_spec.lua", "spec/sim/tcgen05_scales_spec.lua",
               "spec/sim/tcgen05_sparse_spec.lua",
               "spec/sim/tcgen05_shift_spec.lua",
               "spec/sim/tcgen05_ws_spec.lua"}

-- In CUDA C, a store of 4 bits to shared memory is an atomic operation on a
-- word. It also reads bits of the word that nothing has written.
local ATOMIC = "multiplies [^:]*: mxf4"

describe("through PTX:", function()
  if not core.jit_compile("extern \"C\" __global__ void k() {}",
                          "compute_100a") then
    pending "needs NVRTC"
    return
  end
  local launches = 0
  for _, path in ipairs(PATHS) do
    for i, test in ipairs(tests_of(path)) do
      if not test[1]:find(ATOMIC) then
        it(test[1] .. support.long(i, 9), function()
          launches = launches + through_ptx(test[2])
        end)
      end
    end
  end
  it("some kernels were launched", function()
    assert.is_true(launches > 0)
  end)
end)

-- ---- registers of a load ----

describe("a register of a tcgen05.ld", function()
  local function kernel()
    local arch, tcgen05 = cute.arch, cute.nvgpu.tcgen05
    local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(2), cute.u32)
    local store = cute.make_copy_atom(tcgen05.St32x32bOp(2), cute.u32)
    return cute.kernel("k", function(C)
      local address = arch.alloc_smem(cute.i32, 1)
      cute.when(arch.warp_idx():eq(0), function()
        arch.alloc_tmem(32, address)
      end)
      arch.sync_threads()
      local ptr = arch.retrieve_tmem_ptr(cute.u32, 16, address)
      local t = cute.make_tensor(ptr, core.layout "(128,2):(65536,1)")
      local tid = arch.thread_idx()
      local st = tcgen05.make_tmem_copy(store, t):get_slice(tid)
      local r = cute.make_rmem_tensor(st:partition_S(C).shape, cute.u32)
      r:fill(7)
      cute.copy(tcgen05.make_tmem_copy(store, t), r, st:partition_D(t))
      arch.fence_view_async_tmem_store()
      local ld = tcgen05.make_tmem_copy(load, t)
      cute.copy(ld, ld:get_slice(tid):partition_S(t), r)
      arch.fence_view_async_tmem_load()
      cute.basic_copy(r, ld:get_slice(tid):partition_D(C))
      arch.sync_threads()
      cute.when(arch.warp_idx():eq(0), function()
        arch.dealloc_tmem(ptr, 32)
      end)
    end)
  end

  it("must not be used before tcgen05.wait::ld", function()
    local C = cute.zeros({128, 2}, cute.u32)
    local opts = {grid = 1, block = 128, device = "sim:sm_100a",
                  faults = "return"}
    local ok, ptx, smem = pcall(through.call, kernel()(C), opts, "sm_100a")
    if not ok then return pending "needs NVRTC" end
    local function report(text)
      local _, why = through.kernel(text, smem)(C):launch(opts)
      return tostring(why)
    end
    assert.is_nil(report(ptx):find "%[")
    assert.equal(7, C(127, 1))
    local without, n = ptx:gsub("tcgen05%.wait::ld[^\n]*\n", "")
    assert.equal(1, n)
    assert.matches("used before the load from tensor memory has completed.*"
      .. "%[in%-flight%]", report(without))
  end)
end)

-- ---- scale factors of mma.sync ----

-- A PTX entry that stores the result of one MMA with scale factors. Each lane
-- loads A, B and a word of scale factors for A and B.
local SCALED = [[
.version 8.8
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 ab, .param .u64 scales, .param .u64 out) {
.reg .b64 p, q, o, at; .reg .b32 a<4>, b<2>, s, t, lane; .reg .f32 d<4>;
mov.u32 lane, %%tid.x;
ld.param.u64 p, [ab]; ld.param.u64 q, [scales]; ld.param.u64 o, [out];
mad.wide.u32 p, lane, 24, p;
ld.global.v2.b32 {a0, a1}, [p]; ld.global.v2.b32 {a2, a3}, [p+8];
ld.global.v2.b32 {b0, b1}, [p+16];
mad.wide.u32 q, lane, 8, q;
ld.global.v2.b32 {s, t}, [q];
mov.f32 d0, 0f00000000; mov.f32 d1, d0; mov.f32 d2, d0; mov.f32 d3, d0;
%s {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {d0, d1, d2, d3},
{s}, {%d, %d}, {t}, {%d, %d};
mad.wide.u32 o, lane, 16, o;
st.global.v4.f32 [o], {d0, d1, d2, d3};
ret;
}]]

-- Each kind: the text of the instruction, and the number of scale factors per
-- row.
local KINDS = {
  {"mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col"
    .. ".f32.e4m3.e4m3.f32.ue8m0", 1},
  {"mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col"
    .. ".f32.e2m1.e2m1.f32.ue8m0", 2},
  -- Here the modifiers have another order, and mxf4 has another name.
  {"mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X"
    .. ".f32.e2m1.e2m1.f32.ue8m0", 2},
  {"mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col"
    .. ".f32.e2m1.e2m1.f32.ue4m3", 4}}

-- Runs the MMA. `ids` = {byte of A, lanes of A, byte of B, lane of B} says in
-- which byte of which lanes the scale factors are. scale(k) returns the byte of
-- a row's scale factor k. All other bytes are `noise`.
local function scaled(kind, ids, scale, noise)
  local ab, scales = cute.zeros({192}, cute.u32), cute.zeros({64}, cute.u32)
  for i = 0, 191 do  -- the bytes are small numbers both as e4m3 and as e2m1
    local u = 0
    for k = 0, 3 do u = u << 8 | 0x20 + (i * 7 + k * 3) % 0x18 end
    ab[i] = u
  end
  for lane = 0, 31 do
    local quad, j = lane // 4, lane % 4
    for side, rows in ipairs {{[0] = quad, quad + 8}, {[0] = quad}} do
      local first = side == 1 and 2 * ids[2] or ids[4]
      local row, u = rows[j - first], 0
      for byte = 3, 0, -1 do
        local k = byte - (side == 1 and ids[1] or ids[3])
        local own = row and k >= 0 and k < kind[2]
        u = u << 8 | (own and scale(side, row, k) or noise)
      end
      scales[2 * lane + side - 1] = u
    end
  end
  local out = cute.zeros({128}, cute.f32)
  cute.ptx(SCALED:format(kind[1], table.unpack(ids))):kernel "k"(ab, scales,
    out):launch {grid = 1, block = 32, device = "sim:sm_120a"}
  local list = {}
  for i = 0, 127 do list[i + 1] = out[i] end
  return list
end

describe("scale factors of mma.sync", function()
  local function scale(side, row, k)
    return 0x30 + (row * 5 + k * 3 + side) % 16
  end

  for _, kind in ipairs(KINDS) do
    it("are those of the bytes and lanes that it names: "
      .. kind[1]:match "kind::%S*", function()
      local want = scaled(kind, {0, 0, 0, 0}, scale, 0x38)
      local sum = 0
      for _, v in ipairs(want) do sum = sum + math.abs(v) end
      assert.is_true(sum > 0)
      for byte = 0, 4 - kind[2], kind[2] do
        for lanes = 0, 3 do
          assert.same(want, scaled(kind, {byte, lanes // 2, byte, lanes}, scale,
                                   0x33))
        end
      end
    end)
  end
end)

-- ---- PTX that NVRTC does not write ----

local HEAD = [[
.version 8.8
.target %s
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n) {
.reg .b32 r<9>; .reg .b64 d<4>; .reg .pred p<4>; .reg .b128 q;
.shared .align 16 .b8 s[64];
ld.param.u32 r1, [n]; setp.ne.b32 p1, r1, 0;
]]

local function message(line, target)
  local text = HEAD:format(target or "sm_100a") .. line .. "\nret;\n}\n"
  return (support.message(function()
    cute.ptx(text):kernel "k"(cute.zeros({4}, cute.u32), 1):trace {
      block = 32, arch = target or "sm_100a"}
  end))
end

local MMA = "tcgen05.mma.cta_group::1.kind::f16 "
local SPARSE = "tcgen05.mma.sp.cta_group::1.kind::f16 "
local REJECTED = {
  {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s+2], 32;",
    "needs an address that is a multiple of 4 bytes"},
  {"tcgen05.alloc.sync.aligned.shared::cta.b32 [s], 32;",
    "needs .cta_group::1 or .cta_group::2"},
  {"tcgen05.alloc.cta_group::3.sync.aligned.shared::cta.b32 [s], 32;",
    "modifier .cta_group::3"},
  {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s];",
    "cannot have 1 operands"},
  {"tcgen05.dealloc.cta_group::1.sync.aligned.b32 r0;",
    "cannot have 1 operands"},
  {"tcgen05.wait::ld.sync.aligned r0;", "cannot have 1 operands"},
  {"tcgen05.ld.sync.aligned.32x32b.x3.b32 {r0, r1, r2}, [r4];",
    "modifier .x3"},
  {"tcgen05.ld.sync.aligned.16x256b.x64.b32 {r0, r1}, [r4];",
    "its shape and number"},
  {"tcgen05.ld.sync.aligned.32x32b.x4.b32 {r0, r1}, [r4];",
    "its number of registers does not match .num"},
  {"tcgen05.ld.sync.aligned.32x32b.x2.b32 {r0, r1}, r4;",
    "an address in brackets is expected"},
  {"tcgen05.ld.sync.aligned.32x32b.x2.b32 {r0, p1}, [r4];",
    "a register is expected"},
  {"tcgen05.st.sync.aligned.16x32bx2.x2.b32 [r4], 3, {r0, r1};",
    "the columns of the second half do not follow"},
  {"tcgen05.cp.cta_group::1.64x128b [r4], d0;", "its shape"},
  {MMA .. "[r0], d0, d1, 136314896;", "cannot have 4 operands"},
  {MMA .. "[r0], d0, d1, 136314896, p1, 5;", "its scale-input-d is not 0"},
  {MMA .. "[r0], d0, d1, 136314896, {1, 0, 0, 0}, p1;",
    "its mask disable-output-lane is not 0"},
  {MMA .. "[r0], d0, d1, 136314896, r1;", "operand"},
  {MMA .. "[r0], r1, d1, 136314896, p1;",
    "must have the instruction's 64 bits"},
  {MMA .. "[r0], d0, d1, r1, p1;", "its instruction descriptor is not a "
    .. "constant"},
  {MMA .. "[r0], d0, d1, 136314912, p1;",
    "the descriptor 0x08200020: M = 128, N = 128, formats 2 of D"},
  {MMA .. "[r0], d0, d1, 136316944, p1;", "the descriptor 0x08200810"},
  {"tcgen05.mma.cta_group::1.kind::f16.ashift [r0], [r2], d1, 136314896, p1;",
    "modifier .ashift"},
  {"tcgen05.mma.cta_group::1.kind::f17 [r0], d0, d1, 136314896, p1;",
    "modifier .kind::f17"},
  {"tcgen05.mma.cta_group::1 [r0], d0, d1, 136314896, p1;", "needs a .kind"},
  {"tcgen05.mma.ws.cta_group::2.kind::f16 [r0], d0, d1, 136314896, p1;",
    "its .cta_group: .ws has .cta_group::1 only"},
  {"tcgen05.mma.ws.cta_group::1.kind::f16 [r0], d0, d1, 136314896, p1, d1;",
    "its zero-column mask"},
  {"tcgen05.mma.ws.cta_group::1.kind::f16 [r0], d0, d1, 135528464, p1;",
    "the descriptor 0x08140010: M = 128, N = 80"},
  {"tcgen05.mma.ws.sp.cta_group::1.kind::f16 [r0], d0, d1, [r1], 68157460, "
    .. "p1;", "the descriptor 0x04100014: M = 64"},
  {SPARSE .. "[r0], d0, d1, 135266324, p1;", "cannot have 5 operands"},
  {SPARSE .. "[r0], d0, d1, [r1], 135266320, p1;",
    "the descriptor 0x08100010"},
  {SPARSE .. "[r0], d0, d1, [r1], 68157460, p1;",
    "the descriptor 0x04100014: M = 64"},
  {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
    .. "[s+4];", "an mbarrier needs an address that is a multiple of 8"},
  {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster"
    .. ".multicast::cluster.b64 [s];", "cannot have 1 operands"},
  {"tcgen05.shift.cta_group::1.down [r0], r1;", "cannot have 2 operands"},
  {"tcgen05.shift.cta_group::1 [r0];", "its direction"},
  {"tcgen05.shift.down [r0];", "needs .cta_group::1 or .cta_group::2"},
  {"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p1, d0;",
    "a register is expected"},
  {"clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {r0, r1}, q;",
    "its operands"},
  {"clusterlaunchcontrol.query_cancel.b128 r0, q;", "its modifiers"},
  {"mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col"
    .. ".f32.e2m1.e2m1.f32.ue4m3 {r0, r1, r2, r3}, {r0, r1, r2, r3}, {r0, r1},"
    .. " {r0, r1, r2, r3}, {r4}, {0, 0}, {r5};", "cannot have 7 operands",
    "sm_120a"},
  {"mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col"
    .. ".f32.e2m1.e2m1.f32.ue4m3 {r0, r1, r2, r3}, {r0, r1, r2, r3}, {r0, r1},"
    .. " {r0, r1, r2, r3}, {r4}, {0, 0}, {r5}, {0};",
    "cannot have 1 registers", "sm_120a"},
}

describe("PTX for Blackwell", function()
  it("is rejected with its line and the rule that it breaks", function()
    for _, case in ipairs(REJECTED) do
      local ok, text = pcall(message, case[1], case[3])
      assert.is_true(ok, case[1])
      assert.matches("^line %d+: [^\n]* %[bad%-ptx%]$", text)
      assert.matches(case[2], text, 1, true)
    end
  end)

  it("is rejected for targets that lack the instruction", function()
    local wait = "tcgen05.wait::ld.sync.aligned;"
    assert.matches("'tcgen05.wait::ld.sync.aligned' needs sm_100a .*sm_90 ",
                   message(wait, "sm_90a"))
    assert.matches("needs sm_100a .* is sm_120 ", message(wait, "sm_120a"))
    assert.matches("it needs sm_100a or sm_100f, the target is sm_100 ",
                   message(wait, "sm_100"))
    assert.matches("line 8: .* needs sm_90",
                   message("wgmma.fence.sync.aligned;", "sm_100a"))
    assert.matches("'tcgen05.mma.*kind::i8' .* sm_103",
      message("tcgen05.mma.cta_group::1.kind::i8 [r0], d0, d1, 136314912, p1;",
              "sm_103a"))
  end)

  it("selects a column of metadata by the descriptor", function()
    -- Returns the report of a sparse MMA with this descriptor and metadata.
    local function report(desc, column)
      local _, why = cute.ptx(HEAD:format "sm_100a"
        .. "mov.b32 r0, 0; mov.b64 d0, 0; setp.eq.u32 p1, 0, 0;\n" .. SPARSE
        .. ("[r0], d0, d0, [r0+%d], %d, p1;\nret;\n}\n"):format(column, desc))
        :kernel "k"(cute.zeros({4}, cute.u32), 1):launch {grid = 1, block = 1,
        device = "sim:sm_100a", faults = "return"}
      return tostring(why)
    end
    local sel = "the sparsity selector of tcgen05.mma is not "
    assert.matches(sel .. "0 or 1", report(135266326, 0), 1, true)
    assert.matches("the metadata of tcgen05.mma is at an odd column",
                   report(135266324, 3), 1, true)
    assert.matches("not allocated", report(135266325, 2), 1, true)
  end)

  -- Returns the names of the MMAs in a body.
  local function mmas(body)
    local program = cute.ptx(HEAD:format "sm_100a" .. body .. "\nret;\n}\n")
      :kernel "k"(cute.zeros({4}, cute.u32), 1):trace {block = 32,
      arch = "sm_100a"}
    local list = {}
    for name in program.ir:gmatch "SM100_MMA_%S+>" do list[#list + 1] = name end
    return list
  end

  it("has names of its own for some MMAs", function()
    -- kind mxf4nvf4 with one scale factor for 32 elements is kind mxf4
    assert.same({"SM100_MMA_MXF4_SS<float_e2m1_t,float_e2m1_t,float,"
      .. "float_ue8m0_t,128,128,32,K,K>"}, mmas("tcgen05.mma.cta_group::1"
      .. ".kind::mxf4nvf4.block_scale.block32 [r0], d0, d1, 0x08a00480, [r1], "
      .. "[r2], p1;"))
    -- bit 3 of the descriptor requests saturation of sums
    for flags, names in pairs {[0x20] = "", [0x28] = ",One,One,True"} do
      assert.same({("SM100_MMA_S8_SS<uint8_t,uint8_t,int32_t,128,64,K,K%s>")
        :format(names)}, mmas(("tcgen05.mma.cta_group::1.kind::i8 [r0], d0, "
        .. "d1, %d, p1;"):format(0x08100000 | flags)))
    end
  end)

  it("chooses the MMA by a descriptor that it computes", function()
    local function atoms(line)
      return mmas(line .. MMA .. "[r0], d0, d1, r3, {r4, r4, r4, r4}, p1;")
    end
    local function f16(n)
      return ("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,%d,K,K>"):format(n)
    end
    -- N is 128 or 64. A descriptor with a negated A is not supported.
    assert.same({f16(128), f16(64)}, atoms(
      "selp.b32 r3, 0x08200010, 0x08100010, p1; mov.b32 r4, 0;"))
    assert.same({f16(128)}, atoms("selp.b32 r2, 0x2000, 0, p1; "
      .. "or.b32 r3, r2, 0x08200010; mov.b32 r4, 0;"))
  end)
end)
-- SPDX-License-Identifier: MIT
