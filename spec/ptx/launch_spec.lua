-- Tests LAUNCH files, which describe a launch, and the commands that read them.
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

local LAUNCH = [[{"entry": "twice", "grid": 1, "block": 32,
 "args": ["x", "y", 5],
 "memory": {"x": {"shape": 5, "values": [1, 2, 3, 4, 5]}, "y": {"shape": 5}},
 "expect": {"y": {"values": [2, 4, 6, 8, 10]}}}]]

-- Wrong LAUNCH files: a pattern in the correct file, the text that replaces it,
-- and a pattern of the error.
local WRONG = {
  {'"grid"', '"gird"', "no key 'gird' %(did you mean grid%?%)"},
  {'"twice"', '"thrice"', "no entry 'thrice'"},
  {'"block": 32,', '', "launch 1 has no block, and entry twice has no"},
  {'"y", 5%]', '"y"]', "entry twice takes 3 arguments, not 2"},
  {'"x", "y"', '"x", "z"', "argument 2: no tensor is called 'z'"},
  {'4, 5%]', '4]', "memory.x: 4 values for 5 elements"},
  {'{"shape": 5}', '{"dtype": "f33", "shape": 5}', "no type 'f33'"},
  {"^{", "", "is not valid JSON: byte %d+: [^\n]+ %[bad%-launch%]"},
  {'"y", 5%]', '"y", null]', "byte %d+: null is not allowed"},
  {'"shape": 5, "v', '"npy": "x.npy", "v',
   "memory.x has both npy and values: remove one of them"},
  {'{"shape": 5}', '{"shape": [1099511627776, 4]}',
   "memory.y: its shape has more than %d+ elements"},
  {'8, 10%]', '8, 10], "tolerance": -1', "tolerance is %-1; at least 0"},
  {'"entry"', '"include": [3], "entry"',
   "include: element 1 must be a string, not 3"},
  {'"entry"', '"define": {"N": []}, "entry"',
   "define.N must be a string, a number or a boolean, not {}"},
  {'"y", 5%]', '{"map": {"tensor": "y", "box": [1, 5]}}, 5]',
   "a box of 2 extents, but tensor 'y' has 1"},
  {'{"shape": 5}', '{"shape": 0}', "extent 1 of its shape is 0; at "
   .. "least 1 is needed"},
  {'{"shape": 5}', '{"shape": 2, "strides": 2199023255552}',
   "memory.y: its layout spans 2199023255553 elements"},
  {'"grid": 1', '"grid": [2147483647, 65535, 65535]', "a grid of "
    .. "%(2147483647,65535,65535%) blocks is too large: the simulator runs at "
    .. "most 134217728 blocks %[bad%-launch%]"},
  {'"x", "y"', '"x", {"bytes": "0"}', "argument 2: bytes must be a "
   .. 'string of pairs of hexadecimal digits, such as "00ff"'},
  {'"x", "y"', '"x", {"map": {"tensor": "y"}}',
   "argument 2 has no 'box'; a map needs 'box' or 'bytes'"},
  {'"x", "y"', '"x", {"map": {"tensor": "y", "box": [4], '
   .. '"bytes": "00"}}', "given as bytes, which already contain its box and "
   .. "swizzle: remove 'box' and 'swizzle'"},
  {'"x", "y"', '"x", {"fields": 8}', "fields must be an object of byte "
   .. "offsets and values, not 8"},
  {'"x", "y"', '"x", {"fields": {"z": 8}}', "the key of a field must be "
   .. "its byte offset, not 'z'"},
  {'{"shape": 5}', '{"shape": 5, "pointers": {"4": "x"}}', "memory.y: a key "
   .. "of `pointers` must be a byte offset in the tensor, and a multiple "
   .. "of 8, not '4'"},
  {'{"shape": 5}', '{"shape": 5, "pointers": {"16": "x"}}', "not '16'"},
  {'{"shape": 5}', '{"shape": 5, "pointers": {"8": 3}}', "memory.y.pointers, "
   .. "byte 8 must be a tensor's name or {\"pointer\": ...}, not 3"},
  {'{"shape": 5}', '{"shape": 5, "pointers": {"0": "z"}}', "memory.y.pointers, "
   .. "byte 0: no tensor is called 'z'"},
  {'"values": %[2, 4, 6, 8, 10%]', "", "expect.y has neither 'npy' nor "
   .. "'values'; exactly one of them is needed"},
  {"^{", '{"launches": [{"entry": "twice"}], ', "beside 'launches', "
   .. "'%l+' must be a key of each launch, not of the file"},
}

describe("a LAUNCH file", function()
  local folder, ptx

  setup(function()
    folder = support.folder()
    ptx = folder .. "/k.ptx"
    support.write(ptx, PTX)
  end)

  teardown(function() support.remove(folder) end)

  local function with(text, words)
    local path = folder .. "/l.json"
    support.write(path, text)
    local list = {support.program}
    for _, w in ipairs(words or {}) do list[#list + 1] = w end
    table.move({ptx, "--launch", path}, 1, 3, #list + 1, list)
    return support.exec(list)
  end

  it("launches an entry and compares its results", function()
    assert.same({"y: as expected\n", "", 0}, {with(LAUNCH)})
  end)

  it("reports results that are not as expected", function()
    local out, err, code = with((LAUNCH:gsub("8, 10", "8, 11")))
    assert.equal("y: 1 of 5 elements differ; element 4 is 10.0, not 11\n", out)
    assert.matches("results are not as expected %[kernel%-fault%]", err)
    assert.equal(1, code)
  end)

  it("serves check", function()
    local out, _, code = with(LAUNCH, {"check", "--no-gpu"})
    assert.matches("^check: kernel twice: ok\n", out)
    assert.equal(0, code)
  end)

  it("serves run, as the file alone does", function()
    assert.same({"y: as expected\n", "", 0}, {with(LAUNCH, {"run"})})
  end)

  it("serves profile", function()
    local out, _, code = with(LAUNCH, {"profile"})
    assert.matches("^kernel twice, grid 1 x 1 x 1, block 32 x 1 x 1: %d+ "
      .. "instructions of warps\nline .*\nk%.ptx:15 +ld%.global +x +1 .*"
      .. "\nk%.ptx:18 +st%.global +y +1 .*\ny: as expected\n$", out)
    assert.equal(0, code)
    local _, why, failed = with(LAUNCH, {"profile", "--kernel", "thrice"})
    assert.matches("no kernel launched 'thrice' .*: there is twice", why)
    assert.equal(1, failed)
  end)

  it("serves estimate", function()
    local out, _, code = with(LAUNCH, {"estimate", "--card", "h100",
                                       "--registers", "16"})
    assert.matches("^kernel twice on H100 SXM: [%d.]+ us .*\nline .*"
      .. "\nk%.ptx:15 .*\ny: as expected\n$", out)
    assert.equal(0, code)
    local _, why, wrong = with(LAUNCH, {"estimate", "--card", "h1000"})
    assert.equal("cutelua: --card: no card 'h1000'; known cards: a100 b200 "
      .. "b300 h100 h200 l40s rtx5090\n", why)
    assert.equal(2, wrong)
  end)

  it("may be a Lua table, with several launches on one memory", function()
    local path = folder .. "/l.lua"
    support.write(path, [[
      local function l(a, b)
        return {entry = "twice", block = 32, args = {a, b, 5}}
      end
      return {launches = {l("x", "y"), l("y", "x")},
        memory = {x = {shape = 5, fill = 1.0}, y = {shape = 5}},
        expect = {x = {values = {4, 4, 4, 4, 4}}}}]])
    assert.same({"x: as expected\n", "", 0},
      {support.exec {support.program, ptx, "--launch", path}})
  end)

  it("is rejected with one sentence where it is wrong #long", function()
    local function wrong(from, to, want)
      local _, err, code = with((LAUNCH:gsub(from, to)))
      assert.matches(want, err)
      assert.equal(1, code)
    end
    for _, row in ipairs(WRONG) do wrong(table.unpack(row)) end
    local _, err = support.exec {support.program, ptx, "--launch", "none.json"}
    assert.equal("cutelua: cannot open none.json: No such file or directory "
      .. "[io]\n", err)
  end)

  it("names the line of PTX that cannot be read", function()
    local bad = folder .. "/bad.ptx"
    for from, want in pairs {
      ["add%.f32 %%f1"] =
        "bad%.ptx: line 16: register %%f9 is not declared here",
      ["%.version 8%.0"] = "bad%.ptx: line 1: PTX version 6.0 is not supported",
      ["OUT:"] = "no label 'OUT' is in scope here",
      ["%}\n$"] = "line %d+: the text ends inside function 'twice'"} do
      local to = {["add%.f32 %%f1"] = "add.f32 %%f9",
                  ["%.version 8%.0"] = ".version 6.0"}
      support.write(bad, (PTX:gsub(from, to[from] or "")))
      support.write(folder .. "/l.json", LAUNCH)
      local _, err, code = support.exec {support.program, bad, "--launch",
                                         folder .. "/l.json"}
      assert.matches(want, err)
      assert.matches("%[bad%-ptx%]", err)
      assert.equal(1, code)
    end
  end)
end)
describe("pointers of a LAUNCH file", function()
  local folder

  setup(function() folder = support.folder() end)
  teardown(function() support.remove(folder) end)

  it("put addresses into tensors", function()
    -- Each block doubles the elements at the address in its element of t.
    local blocks = PTX:gsub("ld.param.u64 %%rd0, %[x%];", [[
ld.param.u64 %%rd0, [x]; mov.u32 %%r2, %%ctaid.x; mul.wide.u32 %%rd2, %%r2, 8;
add.s64 %%rd0, %%rd0, %%rd2; ld.global.u64 %%rd0, [%%rd0];]]):gsub(
      "ld.param.u64 %%rd1, %[y%];", "mov.u64 %%rd1, %%rd0;")
    local path = support.write(folder .. "/blocks.ptx", blocks)
    local l = support.write(folder .. "/blocks.json", [[
      {"grid": 2, "block": 32, "args": ["t", "a", 2],
       "memory": {"t": {"dtype": "i64", "shape": 2, "pointers":
          {"0": "a", "8": {"pointer": {"tensor": "b", "offset": 8}}}},
          "a": {"shape": 2, "values": [1, 2]},
          "b": {"shape": 4, "values": [3, 4, 5, 6]}},
       "expect": {"a": {"values": [2, 4]}, "b": {"values": [3, 4, 10, 12]}}}]])
    for _, command in ipairs {"run", "check"} do
      local out, err = support.run {command, path, "--launch", l}
      assert.matches("a: as expected\nb: as expected\n", out, err)
    end
    support.write(l, (support.read(l):gsub('"a", 2%]', '"a", 3]')))
    local _, err = support.run {"run", path, "--launch", l}
    assert.matches("out%-of%-bounds", err)
  end)
end)
-- SPDX-License-Identifier: MIT
