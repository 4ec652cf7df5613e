-- Tests a thread's local memory and generic addresses in PTX: accesses of any
-- width, computed addresses, and pointers that a branch chooses.
local cute = require "cute"

local HEAD = [[
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {
.local .align 8 .b8 own[24];
.shared .align 8 .b8 all[512];
.reg .b64 in, out, u, l, s, g;
.reg .b32 t, n, x, y;
.reg .b16 h;
.reg .pred p;
ld.param.u64 in, [pin]; ld.param.u64 out, [pout];
mov.u32 t, %tid.x;
mul.wide.u32 u, t, 4; add.s64 in, in, u; add.s64 out, out, u;
ld.global.b32 n, [in];
]]

local function run(body, values, threads)
  threads = threads or 32
  local x, y = cute.zeros({threads}, cute.i32), cute.zeros({threads}, cute.i32)
  for k = 0, threads - 1 do x[k] = values(k) end
  local kernel = cute.ptx(HEAD .. body .. "\nret;\n}\n"):kernel "k"
  kernel(x, y):launch {grid = 1, block = threads, device = "sim:sm_90a"}
  return function(k) return y[k] end
end

local function each(got, want)
  for k = 0, 31 do assert.equal(want(k), got(k)) end
end

describe("memory of a thread", function()
  it("is read in other widths than it was written", function()
    each(run([[
      mov.u64 l, own;
      st.local.b32 [l+4], n; mov.b32 y, 127; st.local.b8 [l+5], y;
      ld.local.b32 x, [l+4]; st.global.b32 [out], x;]],
      function(k) return k | k << 8 end),
      function(k) return k | 127 << 8 end)
  end)

  it("is read where a thread computes", function()
    each(run([[
      mov.u64 l, own;
      mov.b32 x, 10; st.local.b32 [l], x; mov.b32 x, 20; st.local.b32 [l+4], x;
      mov.b32 x, 30; st.local.b32 [l+8], x;
      mul.wide.u32 u, n, 4; add.s64 l, l, u;
      ld.local.b32 x, [l]; st.global.b32 [out], x;]],
      function(k) return k % 3 end),
      function(k) return 10 + 10 * (k % 3) end)
  end)

  it("reports an address beyond it", function()
    assert.error_matches(function()
      run([[mov.u64 l, own; mov.b32 x, 1; st.local.v2.b32 [l], {x, x};
        mul.wide.u32 u, n, 4; add.s64 l, l, u;
        ld.local.b32 x, [l]; st.global.b32 [out], x;]],
        function(k) return k == 7 and 99 or 0 end)
    end, "out%-of%-bounds")
  end)

  it("reports an address that is not aligned", function()
    assert.error_matches(function()
      run([[mov.u64 l, own; mov.b32 x, 1; st.local.b32 [l], x;
        cvt.u64.u32 u, n; add.s64 l, l, u;
        ld.local.b32 x, [l]; st.global.b32 [out], x;]],
        function(k) return k == 7 and 2 or 0 end)
    end, "is not aligned")
  end)

  it("reports a read of what was never written", function()
    assert.error_matches(function()
      run([[mov.u64 l, own; ld.local.b32 x, [l]; st.global.b32 [out], x;]],
        function() return 0 end)
    end, "uninitialised")
  end)
end)

describe("a generic address", function()
  it("reaches shared, local or global memory, as each thread chooses",
  function()
    each(run([[
      mov.u64 l, own; cvta.local.u64 l, l;
      mov.u64 s, all; cvta.shared.u64 s, s;
      mul.wide.u32 u, t, 4; add.s64 s, s, u;
      mov.b32 x, 1000; st.b32 [l], x; mov.b32 x, 2000; st.b32 [s], x;
      setp.eq.u32 p, n, 0; selp.b64 g, l, s, p;
      setp.eq.u32 p, n, 1; selp.b64 g, in, g, p;
      ld.b32 x, [g]; st.global.b32 [out], x;]],
      function(k) return k % 3 end),
      function(k)
        return k % 3 == 0 and 1000 or k % 3 == 1 and 1 or 2000
      end)
  end)

  it("takes atomics of shared and of global memory", function()
    each(run([[
      mov.u64 s, all; cvta.shared.u64 s, s;
      mul.wide.u32 u, t, 4; add.s64 s, s, u;
      mov.b32 x, 1000; st.b32 [s], x;
      setp.eq.u32 p, n, 1; selp.b64 g, in, s, p;
      atom.add.u32 x, [g], 5; ld.b32 y, [g]; add.s32 x, x, y;
      st.global.b32 [out], x;]],
      function(k) return k % 2 end),
      function(k) return k % 2 == 0 and 2005 or 7 end)
  end)

  it("tells its space", function()
    each(run([[
      mov.u64 l, own; cvta.local.u64 l, l; mov.u64 s, all;
      cvta.shared.u64 s, s; mov.b32 x, 0; st.b32 [l], x;
      isspacep.local p, l; selp.b32 x, 1, 0, p;
      isspacep.shared p, s; selp.b32 y, 2, 0, p; or.b32 x, x, y;
      isspacep.global p, in; selp.b32 y, 4, 0, p; or.b32 x, x, y;
      isspacep.shared p, in; selp.b32 y, 8, 0, p; or.b32 x, x, y;
      isspacep.global p, s; selp.b32 y, 16, 0, p; or.b32 x, x, y;
      st.global.b32 [out], x;]],
      function(k) return k end),
      function() return 7 end)
  end)
end)
-- SPDX-License-Identifier: MIT
