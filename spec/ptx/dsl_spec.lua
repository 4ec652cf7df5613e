-- Tests kernels in the form of the CuTe DSL's output, by the PTX and IR in
-- spec/ptx/dsl: arguments, extents, grid, cluster, shared memory, tensor maps,
-- LAUNCH files, and what is rejected.
local cute = require "cute"
local mlir = require "cutelua.ptx.mlir"
local support = require "spec.support"

local function text(name) return support.read("spec/ptx/dsl/" .. name) end

-- The kernel computes out = x * factor; its tensors have two modes, and any row
-- stride.
local IR, PTX = text "cute_dsl_scale_clean.mlir", text "scale.sm_90a.ptx"
-- A kernel that copies the box of 4 x 8 elements at column 4 by a tensor map.
-- After the box, it stores the extents of the tensor.
local MAP_IR, MAP = text "cute_dsl_copy_clean.mlir", text "copy.sm_90a.ptx"
local MAP_SM100 = (MAP:gsub("sm_90a", "sm_100a"))

local folder

-- Writes the DSL's files to the folder; without `ptx`, only the IR.
local function keep(name, ir, ptx)
  support.write(("%s/cute_dsl_%s_clean.mlir"):format(folder, name), ir)
  os.remove(folder .. "/" .. name .. ".sm_90a.ptx")
  if ptx then support.write(folder .. "/" .. name .. ".sm_90a.ptx", ptx) end
  return ("%s/cute_dsl_%s_clean.mlir"):format(folder, name)
end

local function matrix(rows, columns, stride)
  local memory = cute.zeros({rows * stride}, cute.f32)
  return cute.make_tensor(memory.iterator,
    cute.make_layout({rows, columns}, {stride, 1}))
end

-- Returns the text with `from` replaced by `to`, which must change it.
local function changed(s, from, to)
  local out, n = s:gsub(from, to)
  assert(n > 0, from)
  return out
end

describe("a kernel of the CuTe DSL", function()
  before_each(function() folder = support.folder() end)
  after_each(function() support.remove(folder) end)

  it("takes the host's arguments, and the rest from the IR", function()
    keep("scale", IR, PTX)
    local k = cute.dsl(folder)
    local x, out = matrix(5, 28, 32), matrix(5, 28, 28)
    for i = 0, 4 do
      for j = 0, 27 do x[{i, j}] = 100 * i + j end
    end
    k(x, out, 0.5):launch {device = "sim:sm_90a"}
    for i = 0, 4 do
      for j = 0, 27 do assert.equal((100 * i + j) / 2, out[{i, j}]) end
    end
    assert.equal("ok", k(x, out, 0.5):check({}).verdict)
    -- 140 elements are 3 tiles of 64. A tile is computed by a cluster of 2
    -- blocks of 32 threads.
    local run = k(x, out, 0.5):compile {device = "sim:sm_90a"}
    assert.same({6, 1, 1}, {table.unpack(run.grid, 1, 3)})
    -- A prepared launch accepts other arguments if the IR gives the same grid.
    local other = matrix(5, 28, 28)
    run(x, other, 2)
    assert.equal(2 * 301, other[{3, 1}])
    local large = matrix(9, 28, 32)
    support.raises({"scale: with these arguments, the IR has the grid (8,1,1), "
      .. "but :compile had (6,1,1)", "compile it again"}, function()
      run(large, matrix(9, 28, 28), 2)
    end)
  end)

  it("gets a grid that the IR does not tell", function()
    keep("scale", changed(IR, "arith.muli %%1", "own.op %%1"), PTX)
    local k = cute.dsl(folder)
    local x, out = matrix(2, 4, 4), matrix(2, 4, 4)
    x[{1, 2}] = 6
    support.raises({"scale: grid depends on own.op, which this reader of the "
      .. "IR does not compute", "pass it: launch {grid = ...}"}, function()
      k(x, out, 2):launch {device = "sim:sm_90a"}
    end)
    k(x, out, 2):launch {grid = 2, device = "sim:sm_90a"}
    assert.equal(12, out[{1, 2}])
  end)

  it("gets a tensor map of the IR's box, and the extents", function()
    keep("copy", MAP_IR, MAP)
    local k = cute.dsl(folder)
    local x, out = matrix(3, 12, 16), cute.zeros({34}, cute.f32)
    for i = 0, 2 do
      for j = 0, 11 do x[{i, j}] = 100 * i + j + 1 end
    end
    for seed = 1, 3 do
      k(x, out):launch {seed = seed, device = "sim:sm_90a"}
    end
    for i = 0, 31 do
      local row, column = i // 8, 4 + i % 8
      assert.equal(row < 3 and 100 * row + column + 1 or 0, out[i])
    end
    local bits = cute.recast_tensor(out, cute.i32)
    assert.same({3, 12}, {bits[32], bits[33]})
  end)

  it("may wait with the state of arrive.expect_tx", function()
    keep("copy", MAP_IR, changed(MAP, "TRY:\n  {.-\n  }\n", [[
AGAIN:
  mbarrier.try_wait.shared.b64 %%p1, [%%r3+128], %%rd3;
  @!%%p1 bra AGAIN;
TRY:
  bar.sync 0;
]]))
    local x, out = matrix(4, 12, 12), cute.zeros({34}, cute.f32)
    for j = 0, 11 do x[{3, j}] = j end
    cute.dsl(folder)(x, out):launch {device = "sim:sm_90a"}
    for j = 0, 7 do assert.equal(4 + j, out[3 * 8 + j]) end
  end)

  it("may raise registers to fewer than fit", function()
    local code = [[
.version 8.8
.target sm_90a
.address_size 64
.visible .entry k() .reqntid 128 %s {
  setmaxnreg.inc.sync.aligned.u32 232;
  ret;
}
]]
    local function launch(limit)
      cute.ptx(code:format(limit)):kernel "k"():launch {
        device = "sim:sm_90a", grid = 1, block = 128}
    end
    for _, limit in ipairs {"", ".maxnreg 240"} do launch(limit) end
  end)
end)

describe("warps of a warpgroup in the CuTe DSL", function()
  before_each(function() folder = support.folder() end)
  after_each(function() support.remove(folder) end)

  it("set one number of registers in several branches", function()
    local ir = changed(IR, "arith.constant 32 :", "arith.constant 128 :")
    local ptx = changed(PTX, "%.reqntid 32, 1, 1", ".reqntid 128, 1, 1")
    local function launch(other)
      keep("scale", ir, changed(ptx, "  ld%.param%.b64 %%rd0", ([[
  mov.u32 %%%%r15, %%%%tid.x;
  setp.lt.u32 %%%%p3, %%%%r15, 32;
  @%%%%p3 bra FIRST;
  setmaxnreg.dec.sync.aligned.u32 %d;
  ret;
FIRST:
  setmaxnreg.dec.sync.aligned.u32 96;
  ld.param.b64 %%%%rd0]]):format(other)))
      cute.dsl(folder)(matrix(2, 4, 4), matrix(2, 4, 4), 2):launch {
        device = "sim:sm_90a"}
    end
    launch(96)
    support.raises("[registers]", launch, 104)
  end)
end)

describe("a tensor map of the CuTe DSL", function()
  before_each(function() folder = support.folder() end)
  after_each(function() support.remove(folder) end)

  it("may have 4-bit elements", function()
    -- The box has 8 rows of 32 elements, 16 bytes each.
    local ir = changed(MAP_IR, "f32, tma_gbasis = <\"%(8,4%)",
                       "f4E2M1FN, tma_gbasis = <\"(32,8)")
    ir = changed(changed(ir, "F32_RN", "U4"),
                 "(memref_gmem_f32 = !cute.memref<)f32", "%1f4E2M1FN")
    keep("copy", ir, changed(MAP_SM100, "mov%.b32 %%r7, 4", "mov.b32 %%r7, 32"))
    local k = cute.dsl(folder)
    local x, out = cute.zeros({5, 96}, cute.e2m1), cute.zeros({34}, cute.f32)
    x = cute.make_tensor(x.iterator, cute.make_layout({5, 80}, {96, 1}))
    local values = {[0] = 0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2,
                    -3, -4, -6}  -- values of the codes 0 to 15 of e2m1
    local function bits_at(i, j) return (7 * i + 3 * j + i * j) % 16 end
    for i = 0, 4 do
      for j = 0, 79 do x[{i, j}] = values[bits_at(i, j)] end
    end
    k(x, out):launch {device = "sim:sm_100a"}
    local got = cute.recast_tensor(out, cute.u32)
    for w = 0, 31 do
      local row, want = w // 4, 0
      for j = 0, 7 do
        local column = 32 + w % 4 * 8 + j
        if row < 5 then want = want | bits_at(row, column) << 4 * j end
      end
      assert.equal(want, got[w])
    end
    assert.same({5, 80}, {got[32], got[33]})
    keep("copy", changed(ir, "<\"%(32,8%)", "<\"(24,8)"), MAP)
    support.raises("rows of the box are 12 bytes: they must be a multiple of "
      .. "16", function() cute.dsl(folder)(x, out):launch {} end)
  end)

  -- The layout has the form of scale factors. 128 one-byte factors, 4 for each
  -- of 32 rows, are contiguous, and each factor belongs to 16 columns.
  it("may traverse the modes of a nested layout", function()
    local ptx = changed(MAP_SM100, "align 1 %.b8 m%[1%]", "align 4 .b8 m[8]")
    ptx = changed(ptx, "2d(%.[^\n]*){%%r7, %%r9}", "3d%1{%%r9, %%r7, %%r11}")
    ptx = changed(ptx, "mov%.b32 %%r7, 4;",
                  "mov.b32 %%r7, 1;\n  mov.b32 %%r11, 2;")
    keep("factors", text "cute_dsl_factors_clean.mlir", ptx)
    local k, out = cute.dsl(folder), cute.zeros({34}, cute.f32)
    -- 96 rows and 130 columns: 3 by 3 blocks of 128 factors. The IR's integers
    -- have no sign.
    local bytes = cute.zeros({3 * 3 * 128}, cute.u8)
    for i = 0, 3 * 3 * 128 - 1 do bytes[i] = (i * 5 + i // 128) % 120 end
    for seed = 1, 2 do
      k(bytes, out, 96, 130):launch {seed = seed, device = "sim:sm_100a"}
    end
    local got = cute.recast_tensor(out, cute.u8)
    local block = (2 * 3 + 1) * 128  -- block 2 of the rows, 1 of the columns
    for i = 0, 127 do assert.equal(bytes[block + i], got[i]) end
    local extents = cute.recast_tensor(out, cute.i32)
    assert.same({3, 3}, {extents[32], extents[33]})
    -- A box may begin after the last rows, where the map has no block.
    k(bytes, out, 64, 130):launch {device = "sim:sm_100a"}
    for i = 0, 127 do assert.equal(0, got[i]) end
  end)
end)

-- Returns IR whose host function launches the kernel `scale` in a loop: from x
-- to out, and then from out to x in the same iteration. `open` and `close` are
-- the texts around the loop's body. The host function has a further argument,
-- %arg3.
local function repeated(open, close)
  local ir = changed(IR, "%%arg2: f32, %%stream", "%%arg2: f32, %%arg3: i32, "
    .. "%%stream")
  local launch = ir:match "%%6 = (cuda.launch_ex[^\n]*\n)"
  local back = changed(launch, "%(%%arg0, %%arg1,", "(%%arg1, %%arg0,")
  ir = changed(ir, "%%3 = cute.kernel_smem_size", (open .. "\n%3 = "
    .. "cute.kernel_smem_size"):gsub("%%", "%%%%"))
  return changed(ir, "%%6 = cuda.launch_ex[^\n]*\n", ("%6 = " .. launch
    .. "%7 = " .. back .. close .. "\n"):gsub("%%", "%%%%"))
end

local FOR = "scf.for %arg9 = %c0_i32 to %arg3 step %c1_i32  : i32 {"
local WHILE = [[
%9 = scf.while (%arg9 = %arg3) : (i32) -> i32 {
  %10 = arith.cmpi sgt, %arg9, %c0_i32 : i32
  scf.condition(%10) %arg9 : i32
} do {
^bb0(%arg9: i32 loc("while":1:2)):]]
local DOWN = "%11 = arith.subi %arg9, %c1_i32 : i32\nscf.yield %11 : i32\n}"

describe("shared memory of a kernel in the CuTe DSL", function()
  local function allocation(n)
    return {op = "cute.memref.alloca", text = ("() {smem.partition_id = 1 : "
      .. 'i32} : !cute.memref<i8, smem, align<16>, "%d:1">'):format(n)}
  end

  it("is that of the larger branch", function()
    local branch = {op = "scf.if", text = "", regions = {
      {allocation(8), allocation(40)}, {allocation(100)}}}
    local loop = {op = "scf.for", text = "", regions = {{allocation(20)}}}
    local function bytes(body) return mlir.shared_bytes({body = body}, {}) end
    assert.equal(16 + 100, bytes {allocation(10), branch})
    assert.equal(112 + 112 + 32 + 5,
                 bytes {branch, branch, loop, allocation(5)})
    assert.equal(0, bytes {{op = "scf.if", text = "", regions = {{}}}})
  end)
end)

describe("launches of a host's function in the CuTe DSL", function()
  before_each(function() folder = support.folder() end)
  after_each(function() support.remove(folder) end)

  it("repeat in loops", function()
    for _, ir in ipairs {repeated(FOR, "}"), repeated(WHILE, DOWN)} do
      keep("scale", ir, PTX)
      local k = cute.dsl(folder)
      for turns = 0, 3 do
        local x, out = matrix(3, 4, 4), matrix(3, 4, 4)
        x[{1, 2}] = 5
        local calls = k(x, out, 2, turns)
        assert.equal(2 * turns, #calls)
        calls:launch {device = "sim:sm_90a"}
        assert.equal(5 * 4 ^ turns, x[{1, 2}])
        assert.equal(turns > 0 and 5 * 4 ^ turns / 2 or 0, out[{1, 2}])
      end
      local x = matrix(3, 4, 4)
      x[{2, 3}] = 1
      assert.is_nil(k(x, matrix(3, 4, 4), 2, 2):check({}).fault)
      assert.equal(16, x[{2, 3}])
      support.raises("launches kernel kernel_scale_0 several times: launch all "
        .. "kernels together", cute.dsl(folder, {kernel = "kernel_scale_0"}),
        x, x, 2, 2)
    end
  end)

  it("stop at the first report", function()
    keep("scale", repeated(FOR, "}"),
         changed(PTX, "(st%.global%.f32 %[%%%w+)", "%1+4096"))
    local k = cute.dsl(folder)
    local x, out = matrix(3, 4, 4), matrix(3, 4, 4)
    local ok, why = k(x, out, 2, 2):launch {device = "sim:sm_90a",
                                           faults = "return"}
    assert.falsy(ok)
    assert.matches("out%-of%-bounds", why)
    assert.equal("out-of-bounds", k(x, out, 2, 2):check({}).fault.kind)
  end)

  it("are rejected in loops whose turns are unknown #long", function()
    keep("scale", repeated("%50 = own.op %arg3 : i32\n"
      .. changed(FOR, "%%arg3", "%%%%50"), "}"), PTX)
    support.raises("a loop with a launch depends on own.op",
      cute.dsl(folder), matrix(3, 4, 4), matrix(3, 4, 4), 2, 2)
    keep("scale", repeated(WHILE, changed(DOWN, "subi", "addi")), PTX)
    support.raises("a launch depends on a loop of more than 4,096 turns",
      cute.dsl(folder), matrix(3, 4, 4), matrix(3, 4, 4), 2, 1)
  end)

  it("run by a LAUNCH file without an entry", function()
    keep("scale", repeated(FOR, "}"), PTX)
    support.write(folder .. "/launch.json", [[
      {"args": ["x", "out", 2.0, 3],
       "memory": {"x": {"dtype": "f32", "shape": [1, 4], "fill": 3.0},
                  "out": {"dtype": "f32", "shape": [1, 4]}},
       "expect": {"x": {"values": [192, 192, 192, 192]}}}]])
    for _, command in ipairs {"run", "check"} do
      local out, err, code = support.run {command, folder, "--launch",
                                          folder .. "/launch.json"}
      assert.equal(0, code, out .. err)
      assert.matches("x: as expected", out)
    end
  end)
end)

describe("cute.dsl", function()
  before_each(function() folder = support.folder() end)
  after_each(function() support.remove(folder) end)

  it("rejects arguments that do not fit", function()
    keep("scale", IR, PTX)
    local k = cute.dsl(folder)
    local x, out = matrix(5, 28, 32), matrix(5, 28, 28)
    local function rejects(message, ...)
      support.raises("scale" .. message, k, ...)
    end
    rejects(" takes 3 arguments, not 2", x, out)
    rejects(": argument 1 must be a tensor, not 3", 3, out, 1)
    rejects(": argument 3 must be a number of 32 bits, not \"a\"", x, out, "a")
    rejects(": argument 2 has elements of f16; the kernel was compiled for f32",
            x, cute.zeros({5, 28}, cute.f16), 1)
    rejects(": argument 2 has 1 extents; the kernel was compiled for 2", x,
            cute.zeros({5}, cute.f32), 1)
    rejects(": argument 1: extent 2 is 27; the kernel was compiled for "
      .. "multiples of 4", matrix(5, 27, 28), out, 1)
    rejects(": argument 1: stride 1 is 30; the kernel was compiled for "
      .. "multiples of 4", matrix(5, 28, 30), out, 1)
    rejects(": argument 1: stride 2 is 5; the kernel was compiled for 1",
      cute.make_tensor(matrix(5, 28, 28).iterator,
        cute.make_layout({5, 28}, {4, 5})), out, 1)
  end)

  it("rejects folders and files that do not fit", function()
    local function rejects(message, path)
      support.raises((path or folder) .. message, cute.dsl, path or folder)
    end
    rejects ": this folder has no IR of the CuTe DSL, cute_dsl_NAME_clean.mlir"
    local path = keep("scale", IR, nil)
    rejects(": there is no PTX beside this file, such as scale.sm_90a.ptx",
            path)
    keep("copy", MAP_IR, MAP)
    rejects(": this folder has the IR of 2 functions: name a file, such as "
      .. "cute_dsl_copy_clean.mlir")
    keep("scale", "module {}\n", PTX)
    rejects(": this is not IR of version 4.8 of the CuTe DSL: it has no "
      .. "cuda.kernel", path)
    keep("scale", changed(IR, "launch_ex", "launch_new"), PTX)
    rejects(": no host function launches a kernel as version 4.8 of the CuTe "
      .. "DSL does", path)
    keep("scale", IR, changed(PTX, "kernel_scale_0", "other"))
    assert.has_error(function() cute.dsl(path) end)
    keep("scale", IR, changed(PTX, "p1%[24%]", "p1[32]"))
    local k = cute.dsl(path)
    support.raises(path .. ": parameter 2 of the kernel has 24 bytes in the "
      .. "IR, but 32 in the PTX", k, matrix(4, 4, 4), matrix(4, 4, 4), 1)
  end)

  it("runs by a LAUNCH file without grid, block and shared bytes", function()
    keep("scale", IR, PTX)
    support.write(folder .. "/launch.json", [[
      {"args": ["x", "out", 0.5],
       "memory": {"x": {"dtype": "f32", "shape": [3, 4], "fill": 3.0},
                  "out": {"dtype": "f32", "shape": [3, 4]}},
       "expect": {"out": {"values": [1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5,
                                     1.5, 1.5, 1.5, 1.5]}}}]])
    for _, command in ipairs {"run", "check"} do
      local out, err, code = support.run {command, folder, "--launch",
                                          folder .. "/launch.json"}
      assert.equal(0, code, out .. err)
      assert.matches("out: as expected", out)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
