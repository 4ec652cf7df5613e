-- Tests random forms of instructions, made of the modifiers in the rows of
-- core/ptx/rows.c. The reader must accept each form, or name it in an error.
local cute = require "cute"
local ptxdoc = dofile "tools/ptxdoc.lua"

local FORMS = 600
local ANY = {"a0", "b0", "h0", "p0", "!p0", "q0", "_", "5", "0f3F800000",
             "0d3FF0000000000000", "%tid.x", "[b0]", "[in]", "[sm]", "[lo+4]",
             "sm", "{a0, a1}", "{b0, b1}", "{a0, a1, a2, a3}", "a0|p0",
             "p0|p1", "f0", "d0", "L"}
local OF_WIDTH = {["8"] = {"a0", "h0", "b1"}, ["16"] = {"h0", "h1", "3"},
                  ["32"] = {"a0", "a1", "f0", "40"},
                  ["64"] = {"b0", "b1", "d0", "9"}, ["128"] = {"q0", "q1"},
                  pred = {"p0", "p1", "!p0"}, x2 = {"a0", "a1"}}
local PLACES = {"[in]", "[sm]", "[lo]", "[b0]", "[in+8]"}

local HEAD = [[
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin) {
.shared .align 16 .b8 sm[256];
.local .align 16 .b8 lo[64];
.reg .b32 a<4>; .reg .b64 b<2>; .reg .b128 q<2>; .reg .b16 h<2>;
.reg .pred p<2>; .reg .f32 f<1>; .reg .f64 d<1>; .reg .b64 in;
ld.param.u64 in, [pin];
mov.b32 a0, 1; mov.b32 a1, 2; mov.b32 a2, 3; mov.b32 a3, 4;
mov.b64 b0, in; mov.b64 b1, 5; mov.b16 h0, 1; mov.b16 h1, 2;
setp.eq.u32 p0, a0, a1; setp.ne.u32 p1, a0, a1;
mov.f32 f0, 0f3F800000; mov.f64 d0, 0d3FF0000000000000;
]]

local function pick(list) return list[math.random(#list)] end

local function form(rows)
  local row, takes = pick(rows), {}
  for word in row.takes:gmatch "[^%s*]+" do takes[#takes + 1] = word end
  local op, args = row.name, {}
  for _ = 1, #takes > 0 and math.random(0, 4) or 0 do
    op = op .. "." .. pick(takes)
  end
  local width = op:find "%d+x2" and "x2" or op:find "%.pred" and "pred"
    or op:match "%.[busf]+(%d+)"
  for k = 1, math.random(1, 5) do
    args[k] = pick(math.random() < 0.75 and OF_WIDTH[width] or ANY)
  end
  if row.family == "memory" then
    args[(op:find "^st" or op:find "^red") and 1 or 2] = pick(PLACES)
  end
  local guard = math.random() < 0.15 and "@p0 " or ""
  return guard .. op .. " " .. table.concat(args, ", ") .. ";"
end

describe("a form of an instruction", function()
  it("is taken or rejected by name", function()
    math.randomseed(5)
    local rows, x, taken = ptxdoc.rows(), cute.zeros({4096}, cute.u64), 0
    for _ = 1, FORMS do
      local text = form(rows)
      local ok, message = pcall(function()
        local module = cute.ptx(HEAD .. text .. "\nL: ret;\n}\n")
        module:kernel "k"(x):trace {block = 32, arch = "sm_90a"}
      end)
      if ok then taken = taken + 1
      else assert.matches("%[bad%-ptx%]", tostring(message), nil, nil, text) end
    end
    assert.is_true(taken > FORMS // 20)
  end)

  it("takes one register in braces", function()
    local x = cute.full({8}, 7, cute.i32)
    cute.ptx(HEAD .. "ld.global.b32 {a2}, [in+4]; add.s32 a2, a2, a1;\n"
      .. "st.global.b32 [in], {a2}; ret;\n}\n"):kernel "k"(x):launch {
      grid = 1, block = 1, device = "sim:sm_90a"}
    assert.equal(9, x[0])
  end)

  -- Triton's loads have eviction priorities; NVRTC keeps cache policies in PTX.
  it("ignores cache policies and priorities", function()
    local x, y = cute.zeros({256}, cute.f32), cute.zeros({256}, cute.f32)
    for i = 0, 255 do x[i] = i end
    cute.ptx([[
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 px, .param .u64 py) {
.reg .b64 x, y, p<3>; .reg .f32 f<5>; .reg .b32 i; .reg .b64 at;
ld.param.u64 x, [px];
ld.param.u64 y, [py];
createpolicy.fractional.L2::evict_last.b64 p0, 1.0;
createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 p1, 0.5;
createpolicy.range.global.L2::evict_first.b64 p2, [x], 64, 256;
mov.u32 i, %tid.x;
mul.wide.u32 at, i, 16;
add.s64 x, x, at;
add.s64 y, y, at;
ld.global.L1::evict_last.L2::cache_hint.v4.f32 {f0, f1, f2, f3}, [x], p0;
ld.global.L2::cache_hint.L2::128B.f32 f4, [x], p2;
applypriority.global.L2::evict_normal [x], 128;
add.f32 f0, f0, f4;
st.global.L1::evict_first.L2::cache_hint.v4.f32 [y], {f0, f1, f2, f3}, p1;
ret;
}]]):kernel "k"(x, y):launch {grid = 1, block = 64, device = "sim"}
    for i = 0, 255 do assert.equal(i % 4 == 0 and 2 * i or i, y(i)) end
  end)
end)
-- SPDX-License-Identifier: MIT
