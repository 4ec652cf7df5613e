-- Tests kernels in the form of Triton's output, by PTX and metadata that this
-- file contains: hidden parameters, tensor descriptors, clusters, LAUNCH files,
-- and what is rejected.
local cute = require "cute"
local json = require "cutelua.text.json"
local support = require "spec.support"

-- Each block of the kernel writes numbers to its part of the scratch memory.
-- Then it copies them to `out` in reverse order, and adds `add`.
local SCRATCH = [[
.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
.visible .entry turn(.param .u64 out, .param .u32 add, .param .u64 scratch,
                     .param .u64 profile)
.reqntid 128
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd0, [out];
  ld.param.u32 %r0, [add];
  ld.param.u64 %rd1, [scratch];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 128, %r1;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r3;
  mov.u32 %r7, global_smem;
  st.shared.u32 [%r7+12], %r2;
  bar.sync 0;
  xor.b32 %r4, %r3, 127;
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.u32 %r5, [%rd5];
  ld.shared.u32 %r8, [%r7+12];
  sub.s32 %r8, %r8, %r2;
  add.s32 %r5, %r5, %r8;
  add.s32 %r6, %r5, %r0;
  add.s64 %rd6, %rd0, %rd2;
  st.global.u32 [%rd6], %r6;
  ret;
}
]]

local META = {name = "turn", num_warps = 4, num_ctas = 1, shared = 16,
  target = {backend = "cuda", arch = 90, warp_size = 32},
  global_scratch_size = 512, global_scratch_align = 128,
  profile_scratch_size = 0, profile_scratch_align = 1, tensordesc_meta = {},
  triton_version = "3.9.0"}

-- A kernel that copies the box at column `at` of the map to `out`, followed by
-- the extents and the first stride. There is no fence after mbarrier.init.
local MAP = [[
.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 global_smem[];
.visible .entry box(.param .align 64 .b8 d[128], .param .u32 rows,
                    .param .u32 columns, .param .u64 across, .param .u64 one,
                    .param .u64 out, .param .u32 at, .param .u64 scratch,
                    .param .u64 profile)
.reqntid 32
{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<9>;
  mov.b32 %r0, d;
  cvt.u64.u32 %rd0, %r0;
  cvta.param.u64 %rd1, %rd0;
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [at];
  mov.u32 %r2, %tid.x;
  mov.b32 %r3, global_smem;
  mov.b32 %r9, 0;
  setp.ne.u32 %p0, %r2, 0;
  @%p0 bra WAIT;
  mbarrier.init.shared::cta.b64 [%r3+1024], 1;
WAIT:
  bar.sync 0;
  @%p0 bra TRY;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+1024], 128;
  add.s32 %r8, %r3, 1024;
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes
    [%r3], [%rd1, {%r1, %r9}], [%r8];
TRY:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3+1024], 0;
  @!%p1 bra TRY;
  shl.b32 %r4, %r2, 2;
  add.s32 %r5, %r3, %r4;
  ld.shared.u32 %r6, [%r5];
  cvt.u64.u32 %rd3, %r4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r6;
  @%p0 bra OUT;
  ld.param.u32 %r10, [rows];
  ld.param.u32 %r11, [columns];
  ld.param.u64 %rd5, [across];
  cvt.u32.u64 %r12, %rd5;
  st.global.u32 [%rd2+128], %r10;
  st.global.u32 [%rd2+132], %r11;
  st.global.u32 [%rd2+136], %r12;
OUT:
  ret;
}
]]

local MAP_META = {name = "box", num_warps = 1, num_ctas = 1, shared = 1032,
  target = META.target, global_scratch_size = 0, profile_scratch_size = 0,
  tensordesc_meta = {{swizzle = 0, elem_size = 4, elem_type = 3,
    block_size = {8, 4}, fp4_padded = false, is_im2col = false}}}

-- Each block writes its number to `out`, followed by its rank in the cluster.
local CLUSTER = [[
.version 8.6
.target sm_90a
.address_size 64
.visible .entry ranks(.param .u64 out, .param .u64 a, .param .u64 b)
.reqntid 32
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %clusterid.x;
  mul.wide.u32 %rd1, %r0, 8;
  add.s64 %rd2, %rd0, %rd1;
  st.global.v2.u32 [%rd2], {%r1, %r2};
  ret;
}
]]

-- Returns metadata with the fields of `change`; false removes a field.
local function with(meta, change)
  local out = {}
  for k, v in pairs(meta) do out[k] = v end
  for k, v in pairs(change or {}) do out[k] = v or nil end
  return out
end

-- Wrong metadata: the change, and the message that follows the path.
local WRONG = {
  {{name = "tern"}, "the kernel is 'tern', but %S+/k.ptx has turn"},
  {{num_warps = 8}, "num_warps = 8 are 256 threads, but %S+/k.ptx has 128"},
  {{num_warps = false}, "this is not Triton's metadata: it has no 'num_warps'"},
  {{num_warps = "4"},
   "'num_warps' must be an integer of at least 0, not \"4\""},
  {{num_ctas = 0}, "'num_ctas' must be at least 1, not 0"},
  {{target = {backend = "cuda", arch = 80}},
   "the target is sm_80, but %S+/k.ptx is for sm_90a"},
  {{target = {backend = "hip", arch = "gfx942"}},
   "the kernel was compiled for the backend \"hip\"; only cuda has PTX"},
  {{tensordesc_meta = {{block_size = {8}}}},
   "the metadata describes 1 tensor descriptors, but the PTX has parameters "
   .. "for 0"},
  {{instrumentation_mode = "gsan"}, "instrumentation_mode 'gsan' adds hidden "
   .. "parameters that are not supported; compile without it"},
  {{child_paths = {x = "y"}}, "this file lists the files of a compiled kernel; "
   .. "give the file NAME.json beside it"}}

local folder, base

local function make_folder()
  folder = support.folder()
  base = folder .. "/k"
end

local function remove_folder() support.remove(folder) end

local function write(text, meta)
  support.write(base .. ".ptx", text)
  support.write(base .. ".json", json.encode(meta))
end

local function ints(n) return cute.zeros({n}, cute.i32) end

describe("a kernel of Triton", function()
  setup(make_folder)
  teardown(remove_folder)

  it("gets scratch memory, threads and shared memory", function()
    write(SCRATCH, META)
    local k, out = cute.triton(base .. ".json"), ints(5 * 128)
    -- The second launch has more blocks, so it needs more scratch memory.
    for _, blocks in ipairs {2, 5} do
      local call = k(out, 7)
      call:launch {grid = blocks}
      for i = 0, blocks * 128 - 1 do assert.equal((i ~ 127) + 7, out[i]) end
    end
    assert.equal("ok", k(out, 7):check({grid = 5}).verdict)
    assert.matches("turn", tostring(k(out, 7):trace({block = 128}).ir))
    local p = k(out, 7):compile {grid = 3, device = "sim"}
    p(out, 9)
    assert.equal(127 + 9, out[0])
    for _, f in ipairs {function() p(out, 9, {grid = 4}) end,
                        function() p:launch {grid = 4} end} do
      local _, why = pcall(f)
      assert.matches("kernel turn has hidden arguments that depend on the grid "
        .. "of :compile; compile it again for another grid", why)
    end
  end)

  it("of an older version has one hidden parameter, or none", function()
    write(SCRATCH, with(META, {profile_scratch_size = false}))
    local k = cute.triton(base .. ".json")
    local out, own = ints(128), cute.zeros({512}, cute.u8)
    local _, why = pcall(k, out, 7)
    assert.matches("Triton's kernel turn takes 3 arguments, not 2", why)
    write(SCRATCH, with(META, {profile_scratch_size = false,
                               global_scratch_size = false}))
    k = cute.triton(base .. ".json", {undefined_ok = {3}})
    k(out, 7, own, own):launch {grid = 1}
    assert.equal(127 + 7, out[0])
  end)

  it("takes a tensor descriptor as one argument", function()
    write(MAP, MAP_META)
    local x = cute.make_tensor(ints(10 * 12).iterator,
                               cute.make_layout({10, 12}, {12, 1}))
    for i = 0, 9 do for j = 0, 11 do x[{i, j}] = 100 * i + j end end
    local k, out = cute.triton(base .. ".json"), ints(35)
    for _, d in ipairs {x, {map = x}} do
      k(d, out, 8):launch {grid = 1, device = "sim:sm_90a"}
      for i = 0, 31 do assert.equal(100 * (i // 4) + 8 + i % 4, out[i]) end
      assert.same({10, 12, 12}, {out[32], out[33], out[34]})
    end
    local function rejects(d, message)
      local _, why = pcall(k, d, out, 8)
      assert.matches("Triton's kernel box: argument 1" .. message, why)
    end
    rejects(3, " is a tensor descriptor: write {map = x} with a tensor x")
    rejects(ints(8), ": the descriptor's tensor needs 2 modes, with stride "
      .. "1 in the last one; its layout is %(8%):%(1%)")
    rejects(cute.make_tensor(ints(32).iterator, cute.make_layout({8, 4})),
      ": the descriptor's tensor needs 2 modes, with stride 1 in the last ")
    rejects(cute.make_tensor(cute.zeros({32}, cute.f16).iterator,
      cute.make_layout({8, 4}, {4, 1})),
      ": elements of 4 bytes are needed, not f16")
    rejects({map = x, padding = "one"},
      ': padding = "one"; "zero" or "nan" is needed')
    rejects({map = x, box = 3}, ": {map =, padding =} has no field \"box\"")
  end)

  it("may use an mbarrier in its block without a fence", function()
    write(MAP, MAP_META)
    local x = ints(8 * 4)
    local bytes = cute.nvgpu.cpasync.make_tiled_tma_atom(
      cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp(), cute.make_tensor(
        x.iterator, cute.make_layout({8, 4}, {4, 1})),
      cute.make_layout({8, 4}, {4, 1}), {8, 4})
    local own = cute.zeros({1}, cute.u8)
    local k = cute.ptx(base .. ".ptx"):kernel("box", {smem = 1032})
    local ok, why = k(bytes, 8, 4, 4, 1, ints(35), 0, own, own):launch {
      grid = 1, device = "sim:sm_90a", faults = "return"}
    assert.falsy(ok)
    assert.matches("no mbarrier_init_fence%(%) after its mbarrier_init", why)
  end)

  it("runs a program in each cluster of num_ctas blocks", function()
    local meta = with(META, {name = "ranks", num_warps = 1, num_ctas = 2,
                             shared = 0})
    write(CLUSTER, meta)
    local k, out = cute.triton(base .. ".json"), ints(12)
    k(out):launch {grid = 3, device = "sim:sm_90a"}
    local got = {}
    for i = 0, 11 do got[i + 1] = out[i] end
    assert.same({0, 0, 1, 0, 0, 1, 1, 1, 0, 2, 1, 2}, got)
    local _, why = pcall(function() k(out):launch {grid = 3, cluster = 3} end)
    assert.matches("Triton's kernel ranks has num_ctas = 2: the option cluster "
      .. "must be 2 or absent", why)
  end)

  it("starts with the registers of .maxnreg", function()
    for _, row in ipairs {{".maxnreg 66", 64}, {"", 256},
                          {".minnctapersm 4", 128}} do
      local k = cute.ptx([[
        .version 8.6
        .target sm_90a
        .address_size 64
        .visible .entry k(.param .u64 out) .reqntid 128 ]] .. row[1] .. [[
        { setmaxnreg.dec.sync.aligned.u32 256; ret; }]]):kernel "k"
      local ok, why = k(ints(1)):launch {grid = 1, device = "sim:sm_90a",
                                         faults = "return"}
      assert.equal(row[2] == 256, ok ~= nil)
      if not ok then
        assert.matches(("setmaxnreg.dec cannot change %d registers a thread to "
          .. "256"):format(row[2]), why)
      end
    end
  end)
end)

describe("metadata of Triton", function()
  setup(make_folder)
  teardown(remove_folder)

  local function run(command, launch, ...)
    support.write(folder .. "/l.json", launch)
    local words = {support.program, command, base .. ".json"}
    if launch ~= "" then
      table.move({"--launch", folder .. "/l.json"}, 1, 2, #words + 1, words)
    end
    return support.exec(table.move({...}, 1, select("#", ...), 3, words))
  end

  local BOX = [[{"args": [{"map": {"tensor": "x"MORE}}, "y", 4],
    "memory": {"x": {"dtype": "i32", "shape": [8, 8], "fill": 3},
               "y": {"dtype": "i32", "shape": 35}},
    "expect": {"y": {"values": [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
      3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 8, 8, 8]}}}]]

  it("runs from the command line", function()
    write(MAP, MAP_META)
    local launch = BOX:gsub("MORE", "")
    assert.same({"y: as expected\n", "", 0}, {run("run", launch)})
    local out, _, code = run("check", launch)
    assert.matches("^check: kernel box: ok\n", out)
    assert.equal(0, code)
    out = run("ptx", "")
    assert.matches("1  byte    0  b8%[128%]  d  %(argument 1: map%)\n", out)
    assert.matches("4  byte  136  u64  across  %(argument 1: stride%)\n", out)
    assert.matches("7  byte  160  u32  at  %(argument 3%)\n", out)
    assert.matches("u64  scratch  %(hidden: global_scratch, 0 bytes", out)
    assert.not_matches("REJECTED", out)
    local _, err
    _, err, code = run("run", (BOX:gsub("MORE", ', "box": [8, 4]')))
    assert.matches("argument 1: Triton's metadata has the box and the swizzle "
      .. "of the tensor map: remove 'box'", err)
    assert.equal(1, code)
  end)

  it("is rejected with one sentence if its files do not fit", function()
    local path = base .. ".json"
    local function rejects(message)
      local ok, why = pcall(cute.triton, path)
      assert.is_false(ok)
      local head = why:match "^[^\n]+"
      assert.matches("k%.json: " .. message .. " %[[%l-]+%]$", head)
    end
    for _, row in ipairs(WRONG) do
      write(SCRATCH, with(META, row[1]))
      rejects(row[2])
    end
    write(SCRATCH:gsub(".param .u64 profile", ".param .u32 profile"), META)
    rejects("Triton adds 2 hidden pointers, but the last of the 4 parameters "
      .. "in %S+/k.ptx are not pointers")
    write(MAP, with(MAP_META, {tensordesc_meta = {}}))
    rejects("the metadata describes 0 tensor descriptors, but the PTX has more")
    support.write(path, "{")
    rejects("not valid JSON: byte 2: .*")
    support.write(path, "[1]")
    rejects("this is not Triton's metadata: it has no 'name'")
    write(SCRATCH, META)
    os.remove(base .. ".ptx")
    rejects("the PTX %S+/k.ptx does not exist")
    support.write(base .. ".cubin", "x")
    rejects("this folder has only a cubin, no %S+/k.ptx: copy the PTX from "
      .. "Triton's cache, or write compiled.asm%[\"ptx\"%] to that file")
    os.remove(base .. ".cubin")
    os.remove(path)
    rejects("No such file or directory")
  end)

  it("is read, not machine code in place of PTX", function()
    local cubin = folder .. "/k.cubin"
    support.write(cubin, "\x7fELF\2\n")
    support.write(folder .. "/l.json", "{}")
    for _, command in ipairs {"run", "check"} do
      local _, err, code = support.exec {support.program, command, cubin,
        "--launch", folder .. "/l.json"}
      assert.matches("k.cubin is machine code, not PTX %[bad%-ptx%]", err)
      assert.matches("extract it by `cuobjdump %-ptx`", err)
      assert.equal(1, code)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
