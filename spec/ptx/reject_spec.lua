-- PTX that is rejected: one sentence with the line. The first list holds what
-- libFuzzer found to crash or to pass unseen (`make fuzz-ptx`).
local cute = require "cute"
local support = require "spec.support"

local HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
local BODY = HEAD .. [[
.visible .entry k(.param .u64 x) {
.reg .b32 r<4>; .reg .b64 d<4>; .reg .b16 h<4>; .reg .pred p<2>;
.shared .align 16 .b8 s[64];
]]

-- Reads a text and traces its entry k with a pointer.
local function trace(text)
  local x = cute.zeros({64}, cute.u32)
  cute.ptx(text):kernel "k"(x):trace {block = 32, arch = "sm_90a"}
end

local function message(text)
  return (support.message(function() trace(text) end))
end

-- {instruction, what its error says}
local FOUND = {
  {"ld.param.u64;", "'ld.param.u64' has 0 operands"},
  {"ld.param.u6;", "'ld.param.u6' is not modelled: modifier .u6"},
  {"ld.param.u64 d0, d1;", "an address in brackets is expected"},
  {"ld.param.u64 d0, [d1];", "parameters at computed addresses"},
  {"mad.lo.u64 d0, d1;", "'mad.lo.u64' has 2 operands"},
  {"selp.b64 d0, d1;", "'selp.b64' has 2 operands"},
  {"add.u64 d0, d1;", "'add.u64' has 2 operands"},
  {"mov.b64 d0, {};", "a vector without registers"},
  {"mov.b64 d0, {r0, r1, r2};", "'mov.b64' of a vector of 3 registers"},
  {"mov.b32 {r0, r1, r2}, r3;", "'mov.b32' of a vector of 3 registers"},
  {"prefetch.tensormap d0;", "an address in brackets is expected"},
  {"@.x bra L;", "a predicate is expected behind '@'"},
  {"@5 bra L;", "a predicate is expected behind '@'"},
  {"@_ bra L;", "a predicate is expected behind '@'"},
}

describe("PTX that cannot be read", function()
  it("is rejected with the line", function()
    for _, case in ipairs(FOUND) do
      local text = message(BODY .. case[1] .. "\nL: ret;\n}\n")
      assert.matches(case[2], text, 1, true)
      assert.matches("^line 7: .* %[bad%-ptx%]", text)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
