-- Tests PTX that cannot be read or launched. The error must be one sentence
-- with the line and the rule that is broken. The list FOUND has wrong texts
-- with which libFuzzer once crashed the reader, or that the reader once
-- accepted (`make fuzz-ptx`).
local attack = require "spec.ptx.attack"
local cute = require "cute"
local metadata = require "spec.ptx.metadata"
local support = require "spec.support"

local HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
local BODY = HEAD .. [[
.visible .entry k(.param .u64 x, .param .u32 n, .param .align 8 .b8 st[16]) {
.reg .b32 r<4>; .reg .b64 d<4>; .reg .b16 h<4>; .reg .pred p<2>;
.shared .align 16 .b8 s[64];
]]

local ZEROS = ("\0"):rep(16)

-- Reads a PTX text and traces its entry k.
local function trace(text)
  local x = cute.zeros({64}, cute.u32)
  cute.ptx(text):kernel "k"(x, 1, ZEROS):trace {block = 32, arch = "sm_90a"}
end

local function message(text)
  return (support.message(function() trace(text) end))
end

local function rejects(cases)
  for _, case in ipairs(cases) do
    local text = message(BODY .. case[1] .. "\nL: ret;\n}\n")
    assert.matches(case[2], text, 1, true)
    assert.matches("^line 7: [^\n]* %[bad%-ptx%]$", text)
  end
end

-- {instruction, a part of its error's message}
local FOUND = {
  {"ld.param.u64;", "'ld.param.u64' cannot have 0 operands"},
  {"ld.param.u6;", "'ld.param.u6' is not modelled: modifier .u6"},
  {"ld.param.u64 d0, d1;", "an address in brackets is expected"},
  {"ld.param.u64 d0, [d1];", "parameters at computed addresses"},
  {"mad.lo.u64 d0, d1;", "'mad.lo.u64' cannot have 2 operands"},
  {"selp.b64 d0, d1;", "'selp.b64' cannot have 2 operands"},
  {"add.u64 d0, d1;", "'add.u64' cannot have 2 operands"},
  {"mov.b64 d0, {};", "a vector without registers"},
  {"mov.b64 d0, {r0, r1, r2};",
    "'mov.b64' cannot have a vector of 3 registers"},
  {"mov.b32 {r0, r1, r2}, r3;",
    "'mov.b32' cannot have a vector of 3 registers"},
  {"st.shared.v2.b32 [s], {r0, r1, r2};", "cannot have 3 registers"},
  {"red.global.v2.f32.add [d0], {r0, r1, r2};", "cannot have 3 registers"},
  {"atom.shared.add.u32 {r0, r1}, [s], r2;", "cannot have 2 registers"},
  {"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [s], "
    .. "{r0, r1}, [s];", "cannot have 2 registers"},
  {"prefetch.tensormap d0;", "an address in brackets is expected"},
  {"@.x bra L;", "a predicate is expected after '@'"},
  {"@5 bra L;", "a predicate is expected after '@'"},
  {"@_ bra L;", "a predicate is expected after '@'"},
  {"lop3.b32 r1, r0, r0, r0, -1;", "operand 5 must be 0 to 255, not -1"},
  {"cp.async.wait_group -1;", "operand 1 must be 0 to 2147483647, not -1"},
  {"wgmma.wait_group.sync.aligned -1;", "operand 1 must be 0 to 2147483647"},
  {"cp.async.bulk.wait_group 4294967296;", "operand 1 must be 0 to 2147483647"},
  {"setmaxnreg.inc.sync.aligned.u32 -8;",
    "operand 1 must be 24 to 256, not -8"},
  {"cp.async.bulk.global.shared::cta.bulk_group [d0], [s], "
    .. "2305843009213693952;", "operand 3 must be 16 to 268435456"},
}

local NAMES = {
  {"{ M: add.u32 r1, r0, r0; } bra M;", "no label 'M' is in scope here; that "
    .. "of line 7 is local to its braces"},
  {"bra M;", "no label 'M' is in scope here"},
  {"bra r0;", "no label 'r0' is in scope here"},
  {"bra;", "'bra' cannot have 0 operands"},
  {"bra 5;", "'bra': a label is expected"},
  {"ret r0;", "'ret' takes no operands"},
  {"add.u32 r9, r0, r0;", "'add.u32': r9 is not declared here"},
  {"{ .reg .b32 q; mov.b32 q, 1; } add.u32 r1, q, q;", "q is not declared"},
  {"call f;", "a call of f: the module has no such function with a body"},
  {"call k;", "a call of k: the module has no such function with a body"},
  {"call;", "'call': a function's name is missing"},
  {"mov.u64 d1, k;", "takes the address of k, but only a .func with a body"},
  {"brx.idx r0, L;", "no .branchtargets 'L' is declared"},
  {"tex.1d.v4.f32.f32 {r0, r0, r0, r0}, [r0, {r1}];", "not modelled"},
  {"add.u64 r0, r1, r1;", "operand r1 must have the "
    .. "instruction's 64 bits, not 32"},
  {"add.u32 r1, p0, r0;", "operand p0 is a predicate"},
  {"@r0 bra L;", "guard 'r0' is no predicate"},
}

local PLACES = {
  {"ld.param.u32 r0, [st+16];", "reads 4 bytes from byte 16 of parameter st, "
    .. "which has 16"},
  {"ld.param.u32 r0, [st-4];", "from byte -4 of parameter st"},
  {"ld.param.u32 r0, [st+4294967296];", "from byte 4294967296 of"},
  {"ld.param.u64 d0, [x+9223372036854775807];", "9223372036854775807 of"},
  {"ld.param.u32 r0, [st+1];", "byte 1 of parameter st is not aligned to 4"},
  {"ld.param.v2.u32 {r0, r1}, [st+4];", "is not aligned to 8 bytes"},
  {"ld.param.v4.u32 {r0, r1}, [st];", "'ld.param.v4.u32' cannot have 2 "
    .. "registers"},
  {"ld.param.u32 r0, [s];", "a parameter's name is expected"},
  {"ld.global.u32 r0, [s];", "s is in .shared, which the instruction does not"},
  {"ld.shared.u32 r0, [x];", "x is in .param, which the instruction does not"},
  {"ld.u32 r0, [x];", "x is in .param, which the instruction does not"},
  {"cp.async.ca.shared.global [x], [d0], 4;", "x is in .param"},
  {"mbarrier.init.shared.b64 [s+4], 1;", "an mbarrier needs an address that is "
    .. "a multiple of 8 bytes"},
  {"st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [s+4], d0, "
    .. "[s+8];", "st.async needs an address that is a multiple of 8 bytes"},
}

local REPLACE = "tensormap.replace.tile."
local FENCED = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic."
  .. "release.gpu.sync.aligned"
local MAPS = {
  {REPLACE .. "global.b1024.b32 [d0], r0;", "a field such as .global_dim is"},
  {REPLACE .. "colour.global.b1024.b32 [d0], r0;", "modifier .colour"},
  {"tensormap.replace.im2col.rank.b1024.b32 [d0], 1;", "modifier .im2col"},
  {"tensormap.replace.rank.b1024.b32 [d0], 1;", ".tile and .b1024 are needed"},
  {REPLACE .. "rank.b32 [d0], 1;", ".tile and .b1024 are needed"},
  {REPLACE .. "rank.b1024 [d0], 1;", "has no type"},
  {REPLACE .. "rank.b1024.b64 [d0], d0;", "the type must be .b32"},
  {REPLACE .. "global_address.b1024.b32 [d0], r0;", "the type must be .b64"},
  {REPLACE .. "global_stride.b1024.b32 [d0], 0, r0;", "the type must be .b64"},
  {REPLACE .. "rank.b1024.b32 [d0], 5;", "operand 2 must be 0 to 4, not 5"},
  {REPLACE .. "rank.b1024.b32 [d0];", "cannot have 1 operands"},
  {REPLACE .. "rank.b1024.b32 [d0], 1, 1;", "cannot have 3 operands"},
  {REPLACE .. "rank.b1024.b32 d0, 1;", "an address in brackets is expected"},
  {REPLACE .. "box_dim.b1024.b32 [d0], 8;", "cannot have 2 operands"},
  {REPLACE .. "box_dim.b1024.b32 [d0], 5, 8;", "operand 2 must be 0 to 4"},
  {REPLACE .. "box_dim.b1024.b32 [d0], r0, 8;", "must be a constant"},
  {REPLACE .. "global_stride.b1024.b64 [d0], 4, d0;", "must be 0 to 3, not 4"},
  {REPLACE .. "elemtype.b1024.b32 [d0], 14;", "must be 0 to 13, not 14"},
  {REPLACE .. "elemtype.b1024.b32 [d0], r0;", "must be a constant"},
  {REPLACE .. "swizzle_mode.b1024.b32 [d0], 4;", "must be 0 to 3, not 4"},
  {REPLACE .. "interleave_layout.b1024.b32 [d0], 3;", "must be 0 to 2, not 3"},
  {REPLACE .. "fill_mode.b1024.b32 [d0], -1;", "must be 0 to 1, not -1"},
  {REPLACE .. "rank.shared::cta.b1024.b32 [s+64], 1;", "multiple of 128 bytes"},
  {REPLACE .. "rank.shared::cta.b1024.b32 [x], 1;", "x is in .param"},
  {FENCED .. " [d0], [s], 64;", "operand 3 must be 128 to 128, not 64"},
  {FENCED .. " [d0], [s];", "cannot have 2 operands"},
  {FENCED:gsub("%.release", "") .. " [d0], [s], 128;", "a modifier is missing"},
  {FENCED:gsub("gpu", "cta") .. " [d0], [s], 128;", "modifier .cta"},
  {"tensormap.wrong [d0];", "'tensormap.wrong' is not modelled"},
  {"fence.proxy.tensormap::generic.acquire.cta [d0], 128;",
    "its scope must be .gpu or .sys"},
  {"fence.proxy.tensormap::generic.acquire.gpu [d0], 256;", "must be 128"},
  {"fence.proxy.tensormap::generic.acquire.gpu;", "cannot have 0 operands"},
  {"fence.proxy.tensormap::generic.acquire.gpu d0, 128;", "in brackets"},
  {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::"
    .. "bytes [s], [x, {r0}], [s];", "x is not a tensor map"},
}

local SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 "
  .. "{r0, r1, r2, r3}, d0, d1, "
local SPARSES = {
  {SPARSE .. "r0, 2, p0, 1, 1, 0, 0;", "operand 5 must be 0 to 1, not 2"},
  {SPARSE .. "r0, r1, p0, 1, 1, 0, 0;", "operand 5 must be a constant"},
  {SPARSE .. "r0, 0, p0, -1, 1, 0, 0;", "imm-scale -1 is not modelled"},
  {SPARSE .. "r0, 0, r1, 1, 1, 0, 0;", "must have the instruction's 8 bits"},
  {SPARSE .. "0, 0, p0, 1, 1, 0, 0;", "a register is expected"},
  {SPARSE .. "d2, 0, p0, 1, 1, 0, 0;", "operand 4 has registers of 64 bits"},
  {SPARSE .. "{r0, r1}, 0, p0, 1, 1, 0, 0;", "operand 4 has 2 registers"},
  {SPARSE .. "r0, 0;", "cannot have 5 operands"},
  {SPARSE:gsub("k32", "k16") .. "r0, 0, p0, 1, 1, 0, 0;", "is not modelled"},
  {SPARSE:gsub("{r0, r1, r2, r3}", "{r0, r1}") .. "r0, 0, p0, 1, 1, 0, 0;",
    "operand 1 has 2 registers, not 4"},
}

local HEADS = {
  {"\n", "line 2: the text ends where '.version' at the beginning of PTX is"},
  {".target sm_90\n", "line 1: '.version' at the beginning of PTX is expected"},
  {".version 6.0\n", "line 1: PTX version 6.0 is not supported; 7.0 to 9.5 "
    .. "are"},
  {".version 9.9\n", "line 1: PTX version 9.9 is not supported"},
  {".version x\n", "line 1: a version such as 8.0 is expected, not 'x'"},
  {".version 8.0\n.target gfx90\n", "line 2: a target such as sm_90a is "
    .. "expected, not 'gfx90'"},
  {".version 8.0\n.target sm_9\n", "line 2: a target such as sm_90a is"},
  {".version 8.0\n.target sm_90x\n", "line 2: a target such as sm_90a is"},
  {".version 8.0\n.target sm_90\n.address_size 32\n", "address_size 32 is not "
    .. "supported; 64 is needed"},
  {HEAD .. ".global .b8 z[4] = {1, 2, 3, 4, 5};\n", "line 4: 'z' has 4 "
    .. "elements, but 5 initial values"},
  {HEAD .. ".file 1 \"abc\n", "line 4: a string that never ends"},
  {BODY .. "/* abc\n", "line 7: a comment `/*` that never ends"},
}

describe("PTX that cannot be read", function()
  it("is rejected with the line #long", function() rejects(FOUND) end)

  it("is rejected for its names", function() rejects(NAMES) end)

  it("is rejected for its places", function() rejects(PLACES) end)

  it("is rejected for its tensor maps #long", function() rejects(MAPS) end)

  it("is rejected for its sparse matrices", function() rejects(SPARSES) end)

  it("is rejected for its head", function()
    for _, case in ipairs(HEADS) do
      local text = message(case[1])
      assert.matches(case[2], text, 1, true)
      assert.matches("^line %d+: [^\n]* %[bad%-ptx%]$", text)
    end
  end)

  it("is rejected without a semicolon in front of a brace", function()
    for _, ins in ipairs {"ret", "add.u32 r0, r1, r1"} do
      local text = message(BODY .. "L:\n" .. ins .. "\n}\n")
      assert.equal("line 9: ';' after an instruction is expected, not '}' "
        .. "[bad-ptx]", text)
    end
  end)

  it("is rejected with the line of its source, too", function()
    local text = message(BODY .. ".loc 1 30 5\n"
      .. 'call.uni (r0), f, (r1);\nret;\n}\n.file 1 "/u/user.cu"\n')
    assert.matches("^line 8: a call of f: the module has no such function "
      .. "with a body %(user.cu:30%) %[bad%-ptx%]$", text)
  end)

  it("is rejected wherever it is cut off", function()
    local whole = BODY .. [[
  .loc 1 2 3, function_name $a, inlined_at 1 4 5
  @!p0 st.global.v2.u32 [d0+4], {r0, 0x10};
  shfl.sync.idx.b32 r1|p1, r0, -1, 0x1f, 0xffffffff; // text
M: mov.b32 r0, 0f3F800000; /* text */ { mov.u32 r2, %tid.x; }
  ret;
}]]
    assert.equal("k", cute.ptx(whole):entries()[1])
    for n = 1, #whole - 1 do
      local ok, text = pcall(cute.ptx, whole:sub(1, n) .. "\n")
      -- A text that has only the head is valid: a module without entries.
      local head = whole:sub(1, n):match "^%.version 8%.0%s+%.target sm_90a%s+"
        and not whole:sub(1, n):find(".visible", 1, true)
      if not head or not ok then
        assert.is_false(ok, whole:sub(1, n))
        assert.matches("^[^\n]*line %d+: [^\n]* %[bad%-ptx%]$", text)
      end
    end
  end)

  it("is rejected or right after random changes", function()
    local counts = {right = 0, rejected = 0}
    for seed = 1, 120 do
      local verdict, why = attack.run(seed)
      assert.is_not_equal("wrong", verdict, ("seed %d: %s"):format(seed,
        tostring(why)))
      counts[verdict] = counts[verdict] + 1
    end
    assert.is_true(counts.rejected > 20 and counts.right > 0)
  end)
end)
describe("what stands beside PTX", function()
  it("is rejected or right after random changes", function()
    local folder = support.folder()
    local counts = {right = 0, rejected = 0}
    for seed = 1, 160 do
      local verdict, why = metadata.run(seed, folder)
      assert.is_not_equal("wrong", verdict, ("seed %d: %s"):format(seed,
        tostring(why)))
      counts[verdict] = counts[verdict] + 1
    end
    support.remove(folder)
    assert.is_true(counts.rejected > 80 and counts.right > 5)
  end)

  it("names the line of IR in another form", function()
    local folder = support.folder()
    local name = "spec/ptx/dsl/cute_dsl_scale_clean.mlir"
    local before, after = support.read(name):match "^(.*\n)(%s+%%3 = .*)$"
    local _, lines = before:gsub("\n", "")
    local ir = before .. "scf.for everything {\n}\n" .. after
    local path = support.write(folder .. "/cute_dsl_scale_clean.mlir", ir)
    support.write(folder .. "/scale.sm_90a.ptx",
                  support.read "spec/ptx/dsl/scale.sm_90a.ptx")
    local x = cute.zeros({4, 4}, cute.f32)
    support.raises((", line %d: this is not the form of version 4.8 of the "
      .. "CuTe DSL"):format(lines + 1), function()
      cute.dsl(path)(x, x, 1.0):launch()
    end)
    support.remove(folder)
  end)
end)
-- SPDX-License-Identifier: MIT
