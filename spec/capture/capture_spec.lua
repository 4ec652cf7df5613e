-- Tests libcutecapture.so: programs record their launches on a fake driver, and
-- the simulator repeats the launches.
local core = require "cute.core"
local support = require "spec.support"
local json = require "cutelua.text.json"

local cc = os.getenv "CC" or "cc"

-- Computes y = a x + y.
local AXPY = [[
  ld.param.f32 %f0, [a];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r4, %r2, %r3, %r1;
  setp.ge.u32 %p0, %r4, %r0;
  @%p0 bra OUT;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd3, %rd0, %rd2;
  add.s64 %rd4, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  ld.global.f32 %f2, [%rd4];
  mul.rn.f32 %f3, %f0, %f2;
  add.rn.f32 %f4, %f3, %f1;
  st.global.f32 [%rd3], %f4;
OUT:
  ret;
}
]]

local PTX = [[
.version 8.0
.target sm_90
.address_size 64
// a comment with .entry other(
.visible .const .align 4 .b8 table[16];
.global .align 4 .u32 count = 7;
.visible .entry axpy(.param .u64 .ptr .global .align 16 y, .param .u64 x,
  .param .f32 a, /* the number */ .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<6>; .reg .b64 %rd<6>;
  ld.param.u64 %rd0, [y];
  ld.param.u64 %rd1, [x];
]] .. AXPY .. [[
.visible .entry table_axpy(.param .u64 t, .param .u64 x, .param .f32 a,
  .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<6>; .reg .b64 %rd<6>;
  ld.param.u64 %rd5, [t];
  ld.global.u64 %rd0, [%rd5];
  ld.global.u64 %rd1, [%rd5+16];
]] .. AXPY .. [[
.visible .entry packed(.param .u64 y, .param .u64 x, .param .f32 a,
  .param .u32 n, .param .align 8 .b8 s[16])
{
  .reg .b32 %r<6>; .reg .f32 %f<6>; .reg .b64 %rd<6>;
  ld.param.u64 %rd0, [y];
  ld.param.u64 %rd1, [s];
  ld.param.u32 %r0, [s+8];
  ld.param.f32 %f0, [s+12];
  ld.const.f32 %f3, [table+4];
  cvt.rn.f32.u32 %f1, %r0;
  ld.global.f32 %f2, [%rd1+4];
  fma.rn.f32 %f2, %f0, %f2, %f1;
  add.rn.f32 %f2, %f2, %f3;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  or.b32 %r1, %r1, %r2;
  .reg .pred %p<1>;
  setp.ne.u32 %p0, %r1, 0;
  @%p0 bra OUT;
  st.global.f32 [%rd0], %f2;
OUT:
  ret;
}
.visible .entry mapped(.param .u64 y, .param .u64 x, .param .f32 a,
  .param .u32 n, .param .align 8 .b8 s[16], .param .align 64 .b8 m[128])
{
  .shared .align 1024 .b8 box[128];
  .shared .align 8 .b64 bar;
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<6>;
  mov.u32 %r0, %ctaid.x;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra DONE;
  mov.b64 %rd0, m;
  ld.param.u64 %rd1, [y];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, box;
  mov.u32 %r5, bar;
  setp.ne.u32 %p0, %r3, 0;
  @%p0 bra WAIT;
  mbarrier.init.shared::cta.b64 [%r5], 1;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 128;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r4], [%rd0, {4, 1}], [%r5];
WAIT:
  bar.sync 0;
TRY:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r5], 0;
  @!%p1 bra TRY;
  shl.b32 %r6, %r3, 2;
  add.u32 %r7, %r4, %r6;
  ld.shared.u32 %r8, [%r7];
  cvt.u64.u32 %rd2, %r6;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r8;
DONE:
  ret;
}
]]

local library = support.absolute(os.getenv "CUTE_BUILD" or "build")
  .. "/libcutecapture.so"
if select(3, support.exec {cc, "--version"}) ~= 0
  or not support.read(library) or os.getenv "CUTE_SANITIZED" then
  describe("libcutecapture", function()
    pending "needs a C compiler and make library"
  end)
  return
end
local folder, image

setup(function()
  folder = support.folder()
  image = support.write(folder .. "/k.ptx", PTX)
  for _, words in ipairs {
    {"-shared", "-fPIC", "-o", folder .. "/libcuda.so.1",
     "spec/capture/fakecuda.c", "spec/capture/fakegraph.c"},
    {"-o", folder .. "/program", "spec/capture/program.c"}} do
    support.must {cc, "-Icore", "-g", table.unpack(words)}
  end
end)
teardown(function() support.remove(folder) end)

-- Runs the program with the library. Returns its output and its errors. `env`:
-- variables whose names begin with CUTELUA_CAPTURE or FAKE.
local function record(way, kernel, env, times, file)
  env.LD_LIBRARY_PATH = folder
  env.LD_PRELOAD = library
  local out, err, code = support.exec({folder .. "/program", way,
    file or image, kernel, tostring(times or 1)}, {env = env})
  assert.equal(0, code, err)
  return out, err
end

describe("libcutecapture", function()
  local WAYS = {"dlsym", "proc", "ptsz", "library", "cooperative", "file",
                "link"}

  it("records a launch in every way that a program makes it", function()
    for _, way in ipairs(WAYS) do
      local to = folder .. "/" .. way
      local out, err = record(way, "axpy", {CUTELUA_CAPTURE = to,
        CUTELUA_CAPTURE_AFTER = "1"}, 2)
      assert.equal("", err)
      assert.equal("1 11 20.8\n", out, way)
      -- The expected output is 0.1 x[i] + y[i], which the fake driver computed.
      out, err = support.run {"run", to}
      assert.equal("m0: as expected\n", out, way .. err)
      local l = json.decode(support.read(to .. "/LAUNCH.json"))
      assert.same({4, 1, 1}, l.grid)
      assert.same({32, 1, 1}, l.block)
      assert.equal(64, l.smem)
      assert.same(way == "proc" and {2, 1, 1} or nil, l.cluster)
      assert.equal(way == "proc" or nil, l.pdl)
      assert.equal(way == "proc" or way == "cooperative" or nil, l.cooperative)
      assert.equal("0000803f000000400000404000008040", l.symbols.table)
      assert.equal(PTX, support.read(to .. "/module.ptx"))
    end
  end)

  it("finds a wrong result", function()
    local to = folder .. "/wrong"
    record("dlsym", "axpy", {CUTELUA_CAPTURE = to, CUTELUA_CAPTURE_AFTER = "1"})
    local ptx = PTX:gsub("add.rn.f32 %%f4", "sub.rn.f32 %%f4")
    support.write(to .. "/module.ptx", ptx)
    local out = support.run {"run", to}
    assert.matches("^m0: 100 of 256 elements differ", out)
  end)

  it("selects launches by name and number", function()
    local to = folder .. "/many"
    local _, err = record("dlsym", "packed", {CUTELUA_CAPTURE = to,
      CUTELUA_CAPTURE_KERNEL = "pa*d", CUTELUA_CAPTURE_COUNT = "2",
      CUTELUA_CAPTURE_SKIP = "1"}, 5)
    assert.equal("", err)
    assert.is_truthy(support.read(to .. "/2/LAUNCH.json"))
    assert.is_nil(support.read(to .. "/3/LAUNCH.json"))
    local l = json.decode(support.read(to .. "/1/LAUNCH.json"))
    local y = {tensor = "m0", offset = 512}
    assert.same({"m0", {pointer = y}, {f32 = 0.100000001}, {u32 = 100},
      {fields = {["0"] = {pointer = y}, ["8"] = {u32 = 100},
                 ["12"] = {u32 = 0x40200000}}}}, l.args)
    local out, wrong = support.run {"check", to .. "/2"}
    assert.matches("^check: kernel packed: ok\n", out, wrong)
    out, wrong = support.run {"run", to}
    assert.equal("", out)
    assert.matches("it has a folder for each launch, such as .*/many/1 %[bad",
                   wrong)
    record("dlsym", "packed", {CUTELUA_CAPTURE = folder .. "/none",
      CUTELUA_CAPTURE_KERNEL = "axpy"})
    assert.is_nil(support.read(folder .. "/none/LAUNCH.json"))
  end)

  it("records a tensor map", function()
    -- a tensor of 5 rows of 20 numbers, and boxes of 4 rows of 8 numbers
    local words = core.encode_tensor_map {type = 2, rank = 2, address = 0,
      extent = {20, 5}, stride = {80}, box = {8, 4}}
    local bytes = ("<" .. ("i8"):rep(16)):pack(table.unpack(words))
    local to = folder .. "/map"
    local _, err = record("dlsym", "mapped", {CUTELUA_CAPTURE = to,
      FAKE_MAP = support.write(folder .. "/map.bin", bytes)})
    assert.equal("", err)
    local text = support.read(to .. "/LAUNCH.json")
    local map = json.decode(text).args[6].map
    assert.same({"m0", 512, 256}, {map.tensor, map.offset, #map.bytes})
    local want, npy = {}, support.read(to .. "/m0.npy")
    for row = 1, 4 do
      for column = 4, 11 do
        want[#want + 1] = ("<f"):pack(20 * row + column)
      end
    end
    support.write(to .. "/want.npy", npy:sub(1, 128) .. table.concat(want)
      .. npy:sub(257))
    support.write(to .. "/LAUNCH.json", (text:gsub('"files"',
      '"expect": {"m0": {"npy": "want.npy"}}, "files"')))
    local out, wrong = support.run {"run", to}
    assert.equal("m0: as expected\n", out, wrong)
  end)

  it("warns once and lets the program run", function()
    local to = folder .. "/odd"
    for _, case in ipairs {
      {{CUTELUA_CAPTURE_MB = "0"}, "its allocations have 1 MiB, more than "
        .. "CUTELUA_CAPTURE_MB=0"},
      {{FAKE_SIZE = "4"}, "its parameters do not match those of the PTX"},
      {{CUTELUA_CAPTURE = folder .. "/no/such/folder"},
       "cannot write .*/no/such/folder: No such file"},
      {{CUTELUA_CAPTURE = folder}, "cannot write .*: File exists"},
    } do
      case[1].CUTELUA_CAPTURE = case[1].CUTELUA_CAPTURE or to
      local out, err = record("dlsym", "axpy", case[1], 3)
      assert.equal("1 16 30.7\n", out)
      assert.matches("^cutecapture: [^\n]*" .. case[2] .. "[^\n]*\n$", err)
    end
    local list = support.exec {"ls", folder}
    assert.is_nil(list:find "%.tmp")
    assert.is_nil(list:find "odd")
  end)
end)

describe("libcutecapture with pointers in memory", function()
  it("records allocations that words in memory reach", function()
    local to = folder .. "/table"
    local out, err = record("table", "table_axpy", {CUTELUA_CAPTURE = to,
      CUTELUA_CAPTURE_POINTERS = "1", CUTELUA_CAPTURE_AFTER = "1"})
    assert.equal("", err)
    assert.equal("1 6 10.9\n", out)
    local l = json.decode(support.read(to .. "/LAUNCH.json"))
    local words = {["0"] = "m1", ["16"] = {pointer = {tensor = "m2",
      offset = 64}}, ["24"] = "m0"}
    assert.same({npy = "m0.npy", pointers = words}, l.memory.m0)
    assert.same({npy = "after0.npy", pointers = words}, l.expect.m0)
    assert.same({npy = "m1.npy"}, l.memory.m1)
    assert.is_nil(l.memory.m3)
    out, err = support.run {"run", to}
    assert.equal("m0: as expected\nm1: as expected\nm2: as expected\n", out,
                 err)
    assert.matches("table_axpy: ok", (support.run {"check", to}))
    -- Without CUTELUA_CAPTURE_POINTERS, the addresses in the table are recorded
    -- as plain numbers.
    record("table", "table_axpy", {CUTELUA_CAPTURE = folder .. "/plain"})
    out, err = support.run {"run", folder .. "/plain"}
    assert.equal("", out)
    assert.matches("which belongs to no argument", err)
    record("table", "table_axpy", {CUTELUA_CAPTURE = folder .. "/tight",
      CUTELUA_CAPTURE_POINTERS = "1", CUTELUA_CAPTURE_MB = "0"})
    assert.is_nil(support.read(folder .. "/tight/LAUNCH.json"))
  end)
end)

describe("libcutecapture with graphs", function()
  local function run(to, n)
    for i = 1, n do
      local out, err = support.run {"run", ("%s/%d"):format(to, i)}
      assert.equal("m0: as expected\n", out, err)
    end
  end

  it("records each kernel with the memory before it", function()
    local to = folder .. "/graph"
    -- The graph clears y, adds 0.1 x to it, and then adds 0.2 x.
    local out, err = record("graph", "axpy", {CUTELUA_CAPTURE = to,
      CUTELUA_CAPTURE_COUNT = "2", CUTELUA_CAPTURE_AFTER = "1",
      FAKE_SAY = "1"})
    assert.equal("", err)
    assert.equal("0 15 29.7\n", out)
    run(to, 2)
    local first = json.decode(support.read(to .. "/1/LAUNCH.json"))
    local second = json.decode(support.read(to .. "/2/LAUNCH.json"))
    assert.same({f32 = 0.100000001}, first.args[3])
    assert.same({f32 = 0.200000003}, second.args[3])
    assert.same({nil, {2, 1, 1}}, {first.cluster, second.cluster})
    -- y before the second kernel: 0.1 x
    local npy = support.read(to .. "/2/m0.npy")
    assert.equal(("<f"):pack(("<f"):unpack(("<f"):pack(0.1 * 50))),
                 npy:sub(129 + 200, 132 + 200))
  end)

  it("records launches that a stream captured", function()
    local to = folder .. "/stream"
    local out, err = record("stream", "axpy", {CUTELUA_CAPTURE = to,
      CUTELUA_CAPTURE_COUNT = "3", CUTELUA_CAPTURE_SKIP = "1",
      CUTELUA_CAPTURE_AFTER = "1", FAKE_SAY = "1"}, 3)
    -- The capture stops before the graph's last launch.
    assert.equal("graph launched\n", err)
    assert.equal("1 31 60.4\n", out)
    run(to, 3)
  end)

  it("leaves other graphs to the driver", function()
    local to = folder .. "/host"
    local out, err = record("host", "axpy", {CUTELUA_CAPTURE = to,
      FAKE_SAY = "1"}, 2)
    assert.equal("0 15 29.7\n", out)
    assert.matches("^cutecapture: launches of a graph are not recorded: it has "
      .. "nodes other than kernels, copies and memsets\ngraph launched\n"
      .. "graph launched\n$", err)
    out, err = record("graph", "axpy", {CUTELUA_CAPTURE = to,
      CUTELUA_CAPTURE_KERNEL = "other", FAKE_SAY = "1"})
    assert.equal("0 15 29.7\n", out)
    assert.equal("graph launched\n", err)
    assert.is_nil(support.read(to .. "/LAUNCH.json"))
  end)
end)

describe("the PTX of libcutecapture", function()
  it("finds the PTX beside the same machine code", function()
    local code = "\127ELF" .. ("\0"):rep(28) .. ("<i8i8"):pack(64, 0)
      .. ("\0"):rep(6) .. ("<i2i2i2i2"):pack(56, 1, 0, 0) .. "\0\0"
      .. ("c"):rep(56)
    local to, cubin = folder .. "/machine", folder .. "/k.cubin"
    support.write(cubin, code)
    local _, err = record("dlsym", "axpy", {CUTELUA_CAPTURE = to,
      CUTELUA_CAPTURE_PTX = "/nonexistent"}, 1, cubin)
    assert.matches("its module is machine code: load the PTX itself, or name "
      .. "the folder of X.cubin and X.ptx in CUTELUA_CAPTURE_PTX\n$", err)
    _, err = record("dlsym", "axpy", {CUTELUA_CAPTURE = to,
      CUTELUA_CAPTURE_PTX = folder}, 1, cubin)
    assert.equal("", err)
    assert.equal(PTX, support.read(to .. "/module.ptx"))
  end)

  -- Returns a fat binary that contains PTX texts. Each element of `parts` is
  -- {bytes, size of the compressed data or 0, flags, size after decompression
  -- or 0, architecture}.
  local function fatbin(parts)
    local out = ""
    for _, p in ipairs(parts) do
      local bytes = p[1] .. ("\0"):rep(-#p[1] % 8)
      out = out .. ("<I2I2I4I8I4I4I2I2I4I8I8I8I8"):pack(1, 0x101, 72, #bytes,
        p[2], 64, 0, 8, p[5], 0, p[3], 0, p[4]) .. ("\0"):rep(8) .. bytes
    end
    return ("<I4I2I2I8"):pack(0xba55ed50, 1, 16, #out) .. out
  end

  -- A block of LZ4: some literals, the repetition of 8 blanks, literals.
  local function lz4(text)
    local function literals(s, more)
      local n = #s - 15
      return string.char(0xf0 | more) .. ("\255"):rep(n // 255)
        .. string.char(n % 255) .. s
    end
    return literals(text:sub(1, 100), 3) .. "\1\0" .. literals(text:sub(108), 0)
  end

  it("is found in a fat binary", function()
    local text = PTX:sub(1, 99) .. (" "):rep(8) .. PTX:sub(100)
    local packed, zstd = lz4(text), "\x28\xb5\x2f\xfd no data"
    local other = PTX:gsub("axpy", "axpz")
    local cases = {
      {{{text, 0, 0x11, 0, 90}}, text},
      {{{packed, #packed, 0x2011, #text, 90}}, text},
      {{{PTX, 0, 0x11, 0, 80}, {text, 0, 0x11, 0, 90}}, text},
      {{{text, 0, 0x11, 0, 80}, {other, 0, 0x11, 0, 90}}, text},
      {{{other, 0, 0x11, 0, 90}}, nil, "its fat binary has no PTX of it: "
        .. "compile with nvcc %-gencode arch=compute_90,code=compute_90"},
      {{{zstd, #zstd, 0x8011, 900, 90}}, nil,
       "its PTX is compressed: compile with nvcc %-%-compress%-mode=speed"},
      {{{packed:sub(1, 90), 90, 0x2011, #text, 90}}, nil, "its PTX is compr"},
    }
    for i, case in ipairs(cases) do
      local to = folder .. "/fat" .. i
      local path = support.write(to .. ".bin", fatbin(case[1]))
      local _, err = record("dlsym", "axpy", {CUTELUA_CAPTURE = to}, 1, path)
      assert.equal(case[2], support.read(to .. "/module.ptx"), i .. err)
      if case[3] then assert.matches(case[3], err) end
    end
  end)
end)

describe("dlsym of libcutecapture", function()
  -- Two libraries define `value`. The definition in liba calls the next one, in
  -- libb. If dlsym took another caller than liba, it would find liba's
  -- definition again.
  it("finds the next definition after its caller", function()
    local function compile(name, text, ...)
      local source = support.write(folder .. "/" .. name .. ".c", text)
      local _, err, code = support.exec {cc, "-D_GNU_SOURCE", "-o", folder
        .. "/" .. name, source, ...}
      assert.equal(0, code, err)
    end
    compile("libb.so", "int value(void) { return 2; }", "-shared", "-fPIC")
    compile("liba.so", [[
#include <dlfcn.h>
int value(void) {
  int (*next)(void);
  *(void **)(void *)&next = dlsym(RTLD_NEXT, "value");
  return 10 + next();
}]], "-shared", "-fPIC")
    compile("next", [[
#include <stdio.h>
int value(void);
int main(void) { return printf("%d\n", value()) < 0; }]],
      "-Wl,--no-as-needed", folder .. "/liba.so", folder .. "/libb.so")
    local out, err = support.exec({folder .. "/next"}, {env = {
      LD_LIBRARY_PATH = folder, CUTELUA_CAPTURE = folder .. "/x",
      LD_PRELOAD = library}})
    assert.equal("12\n", out, err)
  end)
end)

describe("a folder of libcutecapture", function()
  it("reports a folder that cannot be read, in one sentence #long", function()
    local to = folder .. "/to"
    record("dlsym", "axpy", {CUTELUA_CAPTURE = to})
    local text = support.read(to .. "/LAUNCH.json")
    local function refuses(why)
      local _, err, code = support.run {"check", to}
      assert.equal(1, code)
      assert.matches("^cutelua: [^\n]*" .. why .. " %[bad%-launch%]\n$", err)
    end
    support.write(to .. "/LAUNCH.json", (text:gsub('"capture": 1',
                                                   '"capture": 2')))
    refuses "LAUNCH.json has version 2 of the format; .* reads version 1"
    support.write(to .. "/LAUNCH.json", (text:gsub('"capture": 1, ', "")))
    refuses "LAUNCH.json has version no of the format; .* reads version 1"
    support.write(to .. "/LAUNCH.json", text:sub(1, -30))
    refuses "LAUNCH.json is not valid JSON: [^\n]*"
    support.write(to .. "/LAUNCH.json", text)
    local npy = support.read(to .. "/m0.npy")
    support.write(to .. "/m0.npy", npy:sub(1, 500))
    refuses "is cut short: m0.npy has 500 bytes, not 1152"
    os.remove(to .. "/m0.npy")
    refuses "is cut short: m0.npy has no bytes, not 1152"
    support.write(to .. "/m0.npy", npy)
    os.remove(to .. "/module.ptx")
    refuses "has no module.ptx, the PTX of the recorded program: record .*"
  end)
end)
-- SPDX-License-Identifier: MIT
