--- Returns the PTX of our own kernels as text, and changes texts at random.
local core = require "cute.core"
local graphs = require "spec.ptx.graphs"
local kernels = require "spec.ptx.kernels"
local mapbuild = require "spec.ptx.mapbuild"

local texts = {}

-- Sparse MMAs with A in shared memory and in registers.
local SPARSE = [[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .align 64 .b8 m[128]) {
  .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %d<4>; .reg .pred %p;
  mov.b64 %d3, m;
  ld.param.v2.u64 {%d0, %d1}, [%d3+16];
  ld.param.u32 %r6, [%d3+4];
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16
    {%f0, %f1, %f2, %f3}, %d0, %d1, %r5, 0, %p, 1, 1, 0, 0;
  wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16
    {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, %d1, %r5, 1, %p, 1, 1, 0;
  wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8
    {%r0, %r1, %r2, %r3}, %d0, %d1, %r4, 0, %p;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  ld.param.u64 %d2, [x];
  st.global.f32 [%d2], %f0;
  ret;
}
]]

-- Calls with scalars and bytes, printf with a string, an assertion, an indirect
-- branch, and the workspace of a grid.
local CALLS = [[
.version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l,
  .param .b64 n, .param .b64 s);
.global .align 1 .b8 $str[8] = {37, 100, 32, 37, 115, 10};
.global .align 1 .b8 $who[3] = {104, 105};
.global .align 8 .u64 table[2] = {$str, generic($who)};
.func (.param .align 4 .b8 r[8]) swap(.param .align 4 .b8 a[8], .reg .b32 n) {
  .reg .b32 x, y; .reg .pred p; .local .align 4 .b8 own[8];
  ld.param.b32 x, [a]; ld.param.b32 y, [a+4];
  setp.lt.s32 p, x, n; @p bra L;
  st.local.b32 [own+4], x; ld.local.b32 x, [own+4];
  st.param.v2.b32 [r], {y, x}; ret;
  L: st.param.b32 [r], x; st.param.b32 [r+4], y;
}
.visible .entry k(.param .u64 x) {
  .local .align 8 .b8 depot[16];
  .reg .b64 %SP, %SPL, d<8>; .reg .b32 r<8>; .reg .pred p;
  mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL;
  ld.param.u64 d0, [x]; ld.global.u32 r0, [d0];
  { .param .align 4 .b8 a[8]; .param .align 4 .b8 b[8];
    st.param.b32 [a], r0; st.param.b32 [a+4], 5;
    setp.eq.u32 p, r0, 3;
    @p call.uni (b), swap, (a, r0);
    ld.param.b32 r1, [b+4]; }
  mov.u64 d1, $str; cvta.global.u64 d2, d1;
  mov.u64 d3, $who; cvta.global.u64 d4, d3;
  add.u64 d5, %SP, 0; st.local.u32 [%SPL], r1; st.local.u64 [%SPL+8], d4;
  { .param .b64 f; .param .b64 v; .param .b32 q;
    st.param.b64 [f], d2; st.param.b64 [v], d5;
    call.uni (q), vprintf, (f, v); ld.param.b32 r2, [q]; }
  @!p call __assertfail, (d2, d4, 7, d2, 1);
  mov.u32 r3, %envreg1; mov.u64 d6, table;
  ld.global.u64 d7, [d6+8]; ld.u8 r4, [d7];
  ts: .branchtargets A, B, A;
  brx.idx r0, ts;
  A: add.u32 r4, r4, r3;
  B: st.global.u32 [d0], r4;
  ret;
}
]]

-- wmma with shapes whose M, N and K differ, other types of C and D, and f64.
-- Also calls of a function with 128-bit arguments, direct and through a
-- register.
local MATRICES = [[
.version 8.3
.target sm_90
.address_size 64
.func (.param .b128 r) same(.param .b128 a) {
  .reg .b128 q; ld.param.b128 q, [a]; st.param.b128 [r], q; ret;
}
.visible .entry k(.param .u64 x) {
  .reg .b32 a<8>, b<8>, c<8>, h<4>; .reg .f32 f<8>; .reg .f64 d<6>;
  .reg .b64 p, w; .reg .b128 q<2>;
  ld.param.u64 p, [x];
  wmma.load.a.sync.aligned.row.m32n8k16.global.f16
    {a0, a1, a2, a3, a4, a5, a6, a7}, [p], 16;
  wmma.load.b.sync.aligned.row.m32n8k16.global.f16
    {b0, b1, b2, b3, b4, b5, b6, b7}, [p+64], 8;
  wmma.load.c.sync.aligned.col.m32n8k16.global.f16 {h0, h1, h2, h3}, [p];
  wmma.mma.sync.aligned.row.row.m32n8k16.f32.f16
    {f0, f1, f2, f3, f4, f5, f6, f7}, {a0, a1, a2, a3, a4, a5, a6, a7},
    {b0, b1, b2, b3, b4, b5, b6, b7}, {h0, h1, h2, h3};
  wmma.store.d.sync.aligned.row.m32n8k16.global.f32 [p],
    {f0, f1, f2, f3, f4, f5, f6, f7}, 8;
  wmma.load.a.sync.aligned.col.m8n32k16.global.s8 {a0}, [p], 16;
  wmma.load.b.sync.aligned.col.m8n32k16.global.s8 {b0, b1, b2, b3}, [p], 32;
  wmma.load.c.sync.aligned.row.m8n32k16.global.s32
    {c0, c1, c2, c3, c4, c5, c6, c7}, [p];
  wmma.mma.sync.aligned.col.col.m8n32k16.s32.s8.s8.s32.satfinite
    {c0, c1, c2, c3, c4, c5, c6, c7}, {a0}, {b0, b1, b2, b3},
    {c0, c1, c2, c3, c4, c5, c6, c7};
  wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {d0}, [p];
  wmma.load.b.sync.aligned.col.m8n8k4.global.f64 {d1}, [p], 4;
  wmma.load.c.sync.aligned.col.m8n8k4.global.f64 {d2, d3}, [p];
  wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f64 {d4, d5}, {d0}, {d1},
    {d2, d3};
  wmma.store.d.sync.aligned.col.m8n8k4.global.f64 [p], {d4, d5}, 8;
  mov.b64 w, 8; mov.b128 q0, {w, p};
  call.uni (q1), same, (q0);
  P: .callprototype (.param .b128 _) _ (.param .b128 _);
  mov.b64 w, same;
  call (q1), w, (q0), P;
  st.global.b128 [p], q1;
  ret;
}
]]

-- All operations of tensor memory, an MMA with a computed descriptor, an MMA
-- with scale factors, and the cancellation of a cluster.
local TENSOR = [[
.version 8.8
.target sm_100a
.address_size 64
.shared .align 1024 .b8 tiles[16384];
.visible .entry k(.param .u64 x, .param .u32 n) {
  .reg .b32 t, w, a, r<9>, v<4>; .reg .b64 d<6>; .reg .pred p<4>;
  .reg .b128 q; .shared .align 16 .b8 own[64];
  mov.u32 t, %tid.x; shr.u32 w, t, 5; setp.eq.u32 p0, w, 0;
  setp.eq.u32 p1, t, 0;
  ld.param.u64 d0, [x]; ld.param.u32 r0, [n];
  @p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [own], 64;
  @p0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  @p1 mbarrier.init.shared::cta.b64 [own+8], 1;
  @p1 mbarrier.init.shared::cta.b64 [own+16], 1;
  fence.proxy.async.shared::cta;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  ld.shared.b32 a, [own];
  shl.b32 r1, w, 21; add.u32 r1, r1, a;
  tcgen05.st.sync.aligned.32x32b.x2.b32 [r1], {t, w};
  tcgen05.st.sync.aligned.16x32bx2.x2.b32 [r1+8], 2, {t, w};
  tcgen05.wait::st.sync.aligned;
  mov.b32 r2, tiles; shr.u32 r2, r2, 4; cvt.u64.u32 d1, r2;
  or.b64 d1, d1, 0x4000404000000000;
  setp.ne.b32 p2, r0, 3;
  selp.b32 r3, 0x04040010, 0x08040010, p2;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  @!p1 bra W;
  tcgen05.cp.cta_group::1.32x128b.warpx4 [a+32], d1;
  tcgen05.mma.cta_group::1.kind::f16 [a], d1, d1, r3, 0;
  tcgen05.mma.cta_group::1.kind::f16 [a], d1, d1, r3, {0, 0, 0, 0}, p2;
  tcgen05.mma.cta_group::1.kind::tf32.collector::a::discard [a], [a+8], d1,
    0x08040910, p2;
  and.b32 r8, r0, 48; or.b32 r4, r8, 0x08840000;
  tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [a], d1, d1,
    r4, [a+32], [a+32], p2;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [own+8];
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [own+16], 16;
  clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128
    [own+32], [own+16];
  W: mbarrier.try_wait.parity.shared::cta.b64 p3, [own+8], 0;
  @!p3 bra W;
  V: mbarrier.try_wait.parity.shared::cta.b64 p3, [own+16], 0;
  @!p3 bra V;
  tcgen05.fence::after_thread_sync;
  tcgen05.ld.sync.aligned.32x32b.x4.b32 {v0, v1, v2, v3}, [r1];
  tcgen05.ld.sync.aligned.16x64b.x2.b32 {r5, r6}, [r1+4];
  tcgen05.wait::ld.sync.aligned;
  ld.shared.v2.b64 {d2, d3}, [own+32]; mov.b128 q, {d2, d3};
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p3, q;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 r7, q;
  selp.b32 r7, r7, r5, p3; add.u32 r7, r7, r6; add.u32 r7, r7, v0;
  @p1 st.global.b32 [d0], r7;
  bar.sync 0;
  @p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 a, 64;
  ret;
}
]]

-- Adds the PTX texts in the files of spec/ptx/.
local function of_specs(add)
  local p <close> = io.popen "ls spec/ptx/*.lua"
  for path in p:lines() do
    local f <close> = assert(io.open(path, "rb"))
    local n = 0
    for text in f:read "a":gmatch "%.version.-\n}\n" do
      n = n + 1
      add(("%s.%d"):format(path:gsub("/", "-"), n), text)
    end
  end
  for _, space in ipairs(mapbuild.SPACES) do
    add("map-" .. space, mapbuild.text({rank = 2, extent = {38, 19},
      stride = {160}, elemtype = 2, box = {8, 4}, bytes = 128}, space))
  end
  add("sparse", SPARSE)
  add("calls", CALLS)
  add("matrices", MATRICES)
  add("tensor", TENSOR)
  for i = 1, 20 do
    math.randomseed(i)
    add("graph" .. i, graphs.ptx(graphs.random(function(n)
      return math.random(0, n - 1)
    end, 6)))
  end
end

-- Adds the PTX of the kernels of spec/ptx/kernels.lua, if there is NVRTC.
local function of_kernels(add)
  for _, k in ipairs(kernels) do
    local source = ("%s\nextern \"C\" __global__ void %s(%s) {\n%s\n}\n")
      :format(k.structure or "", k.name, k.params, k.text)
    local made = core.jit_compile(source, "compute_90a",
                                  {"-lineinfo", "-default-device"})
    if not made then return end
    add(k.name, made.ptx or made.cubin)
  end
end

--- Calls add(name, text) for each text.
---@param add fun(name: string, text: string)
function texts.each(add)
  of_specs(add)
  of_kernels(add)
end

local function words_of(text)
  local list = {}
  for at, word in text:gmatch "()([%w_%%$.]+)" do
    list[#list + 1] = {at, at + #word - 1}
  end
  return list
end

-- Replaces the text of a random span by the text of another random span.
local function exchange(text, spans)
  if #spans == 0 then return text end
  local to, from = spans[math.random(#spans)], spans[math.random(#spans)]
  local new = text:sub(from[1], from[2])
  local how = math.random(5)
  if how == 1 then new = "" end
  if how == 2 then new = text:sub(to[1], to[2]) .. " " .. new end
  return text:sub(1, to[1] - 1) .. new .. text:sub(to[2] + 1)
end

--- Returns a text with one random change: it is cut off, or tokens or lines of
-- it are exchanged, removed or repeated.
---@param text string
---@return string
function texts.changed(text)
  local how = math.random(10)
  if how == 1 then return text:sub(1, math.random(#text)) end
  if how <= 7 then return exchange(text, words_of(text)) end
  local lines = {}
  for from, to in text:gmatch "()[^\n]*\n()" do
    lines[#lines + 1] = {from, to - 1}
  end
  return exchange(text, lines)
end

return texts
-- SPDX-License-Identifier: MIT
