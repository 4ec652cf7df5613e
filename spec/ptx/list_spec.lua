-- Tests the listing that `cutelua ptx FILE` prints.
local support = require "spec.support"

local PTX = [[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<6>;
  ld.param.u64 %rd0, [x];
  ld.param.u64 %rd1, [y];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p0, %r1, %r0;
  @%p0 bra OUT;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd0, %rd2;
  ld.global.f32 %f0, [%rd3];
  add.f32 %f1, %f0, %f0;
  add.s64 %rd4, %rd1, %rd2;
  st.global.f32 [%rd4], %f1;
OUT:
  ret;
}
]]

describe("cutelua ptx", function()
  local folder, ptx

  setup(function()
    folder = support.folder()
    ptx = folder .. "/k.ptx"
    support.write(ptx, PTX)
  end)

  teardown(function() support.remove(folder) end)

  it("lists entries, parameters and opcodes", function()
    local out, _, code = support.exec {support.program, "ptx", ptx}
    assert.matches("^[%w/._-]+k%.ptx: PTX 8%.0 for sm_90a\n"
      .. "entry twice, line 4\n   1  byte    0  u64  x\n", out)
    assert.matches("\n  13 instructions, %d+ opcodes\n", out)
    assert.matches("\n       1  mul%.wide%.u32\n", out)
    assert.is_nil(out:find("shared memory", 1, true))
    assert.equal(0, code)
  end)

  it("translates copies through maps of any number of modes", function()
    local mapped = folder .. "/mapped.ptx"
    for rank = 1, 5 do
      support.write(mapped, ([[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128])
{
  .reg .b32 %%r<8>; .reg .b64 %%rd<2>;
  .shared .align 128 .b8 s[256];
  mov.b64 %%rd0, map;
  mov.u32 %%r0, s;
  mov.u32 %%r1, 0;
  cp.async.bulk.tensor.%dd.global.shared::cta.tile.bulk_group
    [%%rd0, {%s}], [%%r0];
  ret;
}
]]):format(rank, ("%r1, "):rep(rank - 1) .. "%r1"))
      local out, err, code = support.exec {support.program, "ptx", mapped}
      assert.equal(0, code, out .. err)
    end
  end)

  it("lists what is rejected, and memory", function()
    local bad = folder .. "/rejected.ptx"
    local function listed(from, to)
      support.write(bad, (PTX:gsub(from, to)))
      local out, _, code = support.exec {support.program, "ptx", bad}
      assert.equal(1, code)
      return out
    end
    assert.matches("\n       1  add%.foo%.f32  REJECTED, line 16: "
      .. "modifier %.foo\n", listed("add%.f32", "add.foo.f32"))
    assert.matches("\n       1  tex%.2d  REJECTED, line 16: textures are not "
      .. "modelled\n", listed("add%.f32 [^;]*", "tex.2d"))
    assert.matches("\n  REJECTED: line 16: a call of f: the module has no "
      .. "such function with a body\n",
      listed("add%.f32 [^;]*", "call.uni f"))
    assert.matches("\n       1  suld%.b  REJECTED, line 18 "
      .. "%(user%.cu:9%): surfaces are not modelled\n",
      listed("add%.f32 [^;]*", '.file 1 "/u/user.cu"\n.loc 1 9 2\n'
        .. "suld.b %%f1"))
    assert.matches("\n  REJECTED: .*rejected%.ptx: line 16: 'add%.f32' "
      .. "cannot have 2 operands\n",
      listed("add%.f32 [^;]*", "add.f32 %%f1, %%f0"))
    support.write(bad, (PTX:gsub("%.visible", ".extern .shared .b8 d[];\n"
      .. ".const .b32 c = 7;\n%0"):gsub("%.reg %.pred",
      ".shared .b8 s[40];\n%0"):gsub("%%tid%.x", "c")))
    local out = support.exec {support.program, "ptx", bad}
    assert.matches("\n  shared memory: 40 bytes, and `smem` dynamic ones\n"
      .. "  variable c: 4 bytes of constant memory\n", out)
  end)

  it("needs a file", function()
    local _, err, code = support.run {"ptx"}
    assert.equal("ptx: FILE is needed\n", err:match "^[^\n]*\n")
    assert.equal(2, code)
  end)
end)
-- SPDX-License-Identifier: MIT
