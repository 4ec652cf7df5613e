-- Tests loops that poll an mbarrier, as cuda::barrier does: `check` must find
-- no fault in any schedule.
local cute = require "cute"

-- Each thread stores a number, and arrives at an mbarrier. After the phase, it
-- adds its neighbour's number to its own. %s: the instruction that tests the
-- phase.
local POLL = [[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 y) {
.reg .pred %%p<4>;
.reg .b32 %%r<9>;
.reg .b64 %%rd<9>;
.shared .align 16 .b8 s[256];
.shared .align 8 .b64 bar;
ld.param.u64 %%rd0, [y];
mov.u32 %%r0, %%tid.x;
mov.u32 %%r1, bar;
mov.u32 %%r2, s;
setp.ne.u32 %%p0, %%r0, 0;
@%%p0 bra READY;
mbarrier.init.shared.b64 [%%r1], 64;
READY:
bar.sync 0;
shl.b32 %%r3, %%r0, 2;
add.u32 %%r4, %%r2, %%r3;
st.shared.u32 [%%r4], %%r0;
mbarrier.arrive.shared.b64 %%rd1, [%%r1];
AGAIN:
%s
selp.b32 %%r5, 1, 0, %%p1;
setp.eq.s32 %%p2, %%r5, 0;
@%%p2 bra AGAIN;
xor.b32 %%r3, %%r3, 252;
add.u32 %%r4, %%r2, %%r3;
ld.shared.u32 %%r6, [%%r4];
add.u32 %%r6, %%r6, %%r0;
mul.wide.u32 %%rd2, %%r0, 4;
add.u64 %%rd3, %%rd0, %%rd2;
st.global.u32 [%%rd3], %%r6;
ret;
}
]]

describe("a loop that polls an mbarrier", function()
  for name, try in pairs {
    token = "mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;",
    ["token, without blocking"] =
      "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;",
    parity = "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;"} do
    it("by " .. name .. " is ok in every schedule", function()
      local k = cute.ptx(POLL:format(try)):kernel "k"
      local y = cute.zeros({64}, cute.Int32)
      local verdict = k(y):check {grid = 1, block = 64, device = "sim"}
      assert.equal("ok", verdict.verdict, tostring(verdict))
      k(y):launch {grid = 1, block = 64, device = "sim"}
      for i = 0, 63 do assert.equal(63, y[i]) end
    end)
  end

  it("is reported if the phase never ends", function()
    local text = POLL:format(
      "mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;")
    local k = cute.ptx((text:gsub("%], 64;", "], 65;"))):kernel "k"
    local y = cute.zeros({64}, cute.Int32)
    local verdict = k(y):check {grid = 1, block = 64, device = "sim"}
    assert.equal("bug", verdict.verdict)
    assert.matches("lacks 1 of 65 arrivals", tostring(verdict))
  end)
end)
-- SPDX-License-Identifier: MIT
