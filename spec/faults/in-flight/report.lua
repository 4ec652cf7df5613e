-- The example of the error kind `in-flight` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/in-flight/report.lua:38 in main chunk
-- expect: ptx:21: a register of an MMA is used while the MMA is still in flight
--   [in-flight]
-- expect: the MMA: ptx:18
-- expect: commit the MMA with wgmma.commit_group, and before the use wait with
--   wgmma.wait_group 0, or N with the N groups committed since
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)

local START = [[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x) {
  .shared .align 1024 .b8 s[2048];
  .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %d<3>; .reg .pred %p;
  ld.param.u64 %d0, [x];
  mov.u32 %r0, %tid.x;
  shl.b32 %r1, %r0, 4;
  mov.u32 %r2, s;
  add.u32 %r1, %r1, %r2;
  st.shared.v4.b32 [%r1], {0, 0, 0, 0};
  fence.proxy.async.shared::cta;
  bar.sync 0;
  mov.b64 %d1, 0x0000000800080000;  // s, without a swizzle
  setp.ne.u32 %p, %r0, %r0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
    {%f0, %f1, %f2, %f3}, %d1, %d1, %p, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
]]
local WAIT = "  wgmma.wait_group.sync.aligned 0;\n"
local USE = "  @!%p st.global.f32 [%d0], %f0;\n"
local text = START .. USE .. WAIT .. "  ret;\n}\n"  -- wrong
-- mend: local text = START .. WAIT .. USE .. "  ret;\n}\n"
cute.ptx(text):kernel "k"(X):launch {grid = 1, block = 128, device = "sim"}
