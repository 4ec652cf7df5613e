-- Tests instructions whose modifiers are in an order that ptxas accepts, but
-- that the PTX ISA does not list.
local cute = require "cute"

local PTX = [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 px, .param .u64 py)
{
  .reg .b32 %%r<6>; .reg .b64 %%rd<6>;
  .shared .align 16 .b8 s[128];
  ld.param.u64 %%rd1, [px];
  ld.param.u64 %%rd2, [py];
  mov.u32 %%r1, %%tid.x;
  mul.wide.u32 %%rd3, %%r1, 4;
  add.s64 %%rd1, %%rd1, %%rd3;
  add.s64 %%rd2, %%rd2, %%rd3;
  ld.global.b32 %%r2, [%%rd1];
  mov.u32 %%r3, s;
  mad.lo.u32 %%r4, %%r1, 4, %%r3;
  st.shared.b32 [%%r4], %%r2;
  bar.sync 0;
  and.b32 %%r4, %%r1, 7;
  mad.lo.u32 %%r4, %%r4, 16, %%r3;
  %s {%%r5}, [%%r4];
  st.global.b32 [%%rd2], %%r5;
  ret;
}
]]

describe("ldmatrix with modifiers in another order", function()
  -- Loads the 8 x 8 matrix of the numbers 0 to 63 by ldmatrix. Returns the
  -- elements as the lanes store them: lane l has elements 2 (l % 4) and 2 (l %
  -- 4) + 1 of row l // 4.
  local function loaded(op)
    local x, y = cute.zeros({64}, cute.u16), cute.zeros({64}, cute.u16)
    for i = 0, 63 do x[i] = i end
    cute.ptx(PTX:format(op)):kernel "k"(x, y):launch {grid = 1, block = 32}
    local out = {}
    for i = 0, 63 do out[i + 1] = y[i] end
    return out
  end

  it("loads the rows, or with .trans the columns", function()
    local rows, columns = {}, {}
    for i = 0, 63 do
      rows[i + 1], columns[i + 1] = i, i % 8 * 8 + i // 8
    end
    assert.same(rows, loaded "ldmatrix.sync.aligned.x1.m8n8.shared.b16")
    assert.same(columns,
                loaded "ldmatrix.sync.aligned.x1.trans.m8n8.shared.b16")
    assert.same(columns,
                loaded "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16")
  end)

  it("rejects a modifier that is not known", function()
    assert.has_error(function()
      loaded "ldmatrix.sync.aligned.x1.m8n8.global.b16"
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
