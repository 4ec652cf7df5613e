-- Tests PTX on a machine with a GPU. A launch that names the GPU must pass the
-- text and the arguments to the driver, and `check` must compare the results.
-- The fake driver computes axpy; tests with the tag #gpu use a real driver.
local card = require "cutelua.ptx.card"
local machine = require "spec.kernels"
local core = require "cute.core"
local cute = require "cute"
local fake = require "spec.gpu.fake"
local kernels = require "spec.ptx.kernels"
local support = require "spec.support"

-- The kernel axpy, which the fake driver recognizes: y[i] = a x[i] + shift,
-- where the product is rounded before the addition.
local PTX = [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry axpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n,
  .param .u64 shift)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<6>; .reg .b64 %rd<8>;
  ld.param.u64 %rd0, [y];
  ld.param.u64 %rd1, [x];
  ld.param.f32 %f0, [a];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p0, %r1, %r0;
  @%p0 bra OUT;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd0, %rd2;
  add.s64 %rd4, %rd1, %rd2;
  ld.param.u64 %rd5, [shift];
  cvt.rn.f32.s64 %f1, %rd5;
  ld.global.f32 %f2, [%rd4];
  mul.f32 %f3, %f0, %f2;
  add.f32 %f4, %f3, %f1;
  st.global.f32 [%rd3], %f4;
OUT:
  ret;
}
]]

local CODE = ([==[
local cute = require "cute"
local text = [[%s]]
local k = cute.ptx(text):kernel "axpy"
local y, x = cute.ones({32}, cute.f32), cute.ones({32}, cute.f32)
x:fill(3.0)
local launch = {grid = 1, block = 32}
local card = {grid = 1, block = 32, device = "gpu"}
]==]):gsub("%%s", function() return PTX end)

local function run(code, env)
  return fake.run(CODE .. code, nil, env)
end

describe("PTX where there is a GPU", function()
  if not fake.there then
    pending "needs a C compiler"
    return
  end
  setup(fake.build)
  teardown(fake.remove)

  it("runs on the simulator by default", function()
    local out, err = run([[k(y, x, 2, 32, 0):launch(launch) print(y[0])]],
                         {FAKE_PTX = "1"})
    assert.equal("6.0\n", out, err)
    assert.equal("", err)
  end)

  it("is compiled by the driver without contraction", function()
    local out, err = run([[k(y, x, 2, 32, 0):launch(card) print(y[0])]],
                         {FAKE_PTX = "1"})
    assert.equal("6.0\n", out, err)
    assert.equal(PTX:gsub("mul.f32", "mul.rn.f32")
                    :gsub("add.f32", "add.rn.f32"), err)
  end)

  it("is compiled by the driver with optimisations of the kernel's level",
     function()
    local _, err = run([[
      for level = 4, 0, -4 do
        k = cute.ptx(text):kernel("axpy", {optimize = level})
        k(y, x, 2, 32, 0):launch(card)
      end
      k(y, x, 2, 32, 0):launch(card)]], {FAKE_LEVEL = "1"})
    assert.equal("O4\nO0\n", err)
    for _, level in ipairs {5, -1, 1.5, true} do
      local _, text = pcall(function()
        cute.ptx(PTX):kernel("axpy", {optimize = level})
      end)
      assert.truthy(text:find("optimize = " .. tostring(level)
        .. ": a level from 0 to 4 expected", 1, true), text)
    end
  end)

  it("passes the bytes of each parameter", function()
    local _, err = run([[
      k(y, x, 0.5, 7, -2):launch(card)
      local all = cute.ptx(".version 8.0\n.target sm_80\n.address_size 64\n"
        .. ".visible .entry all(.param .f64 d, .param .b16 h,"
        .. ".param .align 8 .b8 s[16], .param .align 8 .b8 t[8],"
        .. ".param .u64 p, .param .b8 u[1], .param .align 2 .b8 v[6])"
        .. "{ ret; }"):kernel "all"
      all(1.5, 258, {[0] = {3, "i32"}, [8] = y}, "abcdefgh", 0,
        {[0] = {-2, "i8"}}, {[0] = {-2, "i16"}, [4] = {7, "u8"}})
        :launch(card)]],
      {FAKE_PARAMS = "1"})
    local first, second = err:match "^launch axpy (.-)\nlaunch all (.-)\n$"
    local p = {}
    for w in first:gmatch "%S+" do p[#p + 1] = w end
    assert.equal("3f000000", p[5]:sub(-8))
    assert.equal("7", p[6]:sub(-1))
    assert.equal("fffffffffffffffe", p[7])
    p = {}
    for w in second:gmatch "%S+" do p[#p + 1] = w end
    assert.equal("3ff8000000000000", p[3])
    assert.equal("102", p[4]:sub(-3))
    assert.equal("3", p[5])
    assert.equal("6867666564636261", p[6])
    assert.equal("0", p[7])
    assert.equal("70000fffe", p[9]:sub(-9))
  end)

  it("may be contracted, and is then compared within a bound", function()
    local out, err = run([[
      for i = 0, 31 do x[i] = 1 / (i + 3) end
      for _, text in ipairs {text, (text:gsub("mul.f32", "add.f32"))} do
        k = cute.ptx(text):kernel("axpy", {contract = true})
        local v = k(y, x, 2, 32, 0):check(launch)
        print(v.verdict, v.inexact, v.compared[1].most, v.compared[1].count)
      end
      print(message(function()
        cute.ptx(text):kernel("axpy", {contract = 1})
      end))]], {FAKE_PTX = "1"})
    local why = "contraction of products and sums\t1e-05\t"
    assert.equal("ok\t" .. why .. "0\nbug\t" .. why .. "32\nptx module:kernel: "
      .. "contract = 1: true or false expected [bad-argument]\n", out, err)
    assert.equal(1, select(2, err:gsub("mul.f32", "")))
    assert.is_nil(err:find "add%.rn" or err:find "mul%.rn")
  end)

  it("is compared with the simulator by check", function()
    local out, err = run [[
      local v = k(y, x, 2, 32, 0):check(launch)
      print(v.verdict, v.gpu, v.compared[1].count, v.compared[1].most)
      local other = cute.ptx((text:gsub("mul.f32", "add.f32"))):kernel "axpy"
      print(other(y, x, 2, 32, 0):check(launch).compared[1].count)]]
    assert.matches("^ok\t[^\n]+\t0\t0\n32\n$", out, err)
  end)

end)

describe("PTX on a fake driver", function()
  if not fake.there then
    pending "needs a C compiler"
    return
  end
  setup(fake.build)
  teardown(fake.remove)

  it("is launched by a LAUNCH file with --device gpu #long", function()
    local dir = support.folder()
    local ptx = support.write(dir .. "/k.ptx", PTX)
    local file = support.write(dir .. "/l.json", [[{"block": 32,
      "args": ["y", "x", 2, 3, 1], "memory": {"x": {"shape": 3, "fill": 3.0},
      "y": {"shape": 3}}, "expect": {"y": {"values": [7, 7, 7]}}}]])
    for device, text in pairs {sim = "", gpu = card.exact(PTX)} do
      local out, err = support.exec({support.program, "run", ptx, "--launch",
        file, "--device", device}, {env = {LD_LIBRARY_PATH = fake.folder,
        CUTELUA_NO_CUDA = "0", FAKE_PTX = "1"}})
      assert.equal("y: as expected\n", out, err)
      assert.equal(text, err)
    end
    support.remove(dir)
  end)

  it("is not launched where memory holds addresses", function()
    local dir = support.folder()
    local ptx = support.write(dir .. "/k.ptx", PTX)
    local file = support.write(dir .. "/l.json", [[{"block": 32,
      "args": ["y", "x", 2, 1, 0], "memory": {"x": {"shape": 2,
      "pointers": {"0": "y"}}, "y": {"shape": 3}}}]])
    local _, err = support.exec({support.program, "run", ptx, "--launch", file,
      "--device", "gpu"}, {env = {LD_LIBRARY_PATH = fake.folder,
      CUTELUA_NO_CUDA = "0"}})
    assert.matches("kernel axpy: the tensor x holds addresses, which exist on "
      .. "the simulator only %[bad%-launch%]", err)
    support.remove(dir)
  end)

  it("lowers the version that the driver does not read", function()
    local _, err = run([[
      k = cute.ptx((text:gsub("8.0", "9.4", 1))):kernel "axpy"
      k(y, x, 2, 32, 0):launch(card)
      ]], {FAKE_PTX = "1"})
    assert.matches("^.version 9.0\n", err)
    local out = run([[
      k = cute.ptx((text:gsub("8.0", "9.4 // newest", 1))):kernel "axpy"
      print(message(function() k(y, x, 2, 32, 0):launch(card) end))]],
      {FAKE_CUDA = "12090"})
    assert.matches("^kernel axpy is PTX 9.4, but this driver, of CUDA 12.9, "
      .. "reads PTX up to 8.8\n  install a newer driver, or compile for the "
      .. "older version %(Triton: ptx_version=88%)\n.*: a fault of this text",
      out)
  end)

  it("copies back tensors that a computed address may reach", function()
    -- The kernel uses %rd3 first as a number and then as an address.
    local out, err = run([[
      text = text:gsub("mul.wide.u32 %%rd2",
        "mul.wide.u32 %%rd3, %%r1, 4; %0", 1)
      k = cute.ptx(text):kernel "axpy"
      k(y, x, 2, 32, 0):launch(card)
      print(y[0])
      local v = k(y, x, 2, 32, 0):check(launch)
      print(v.verdict, v.compared[1].count)]], {FAKE_PTX = "1"})
    assert.matches("^6.0\nok\t0\n$", out, err)
  end)

  -- The entry increments `count`, a variable of the module, on the simulator.
  -- The fake driver does the same.
  local COUNT = [[
    local function counted(decl)
      return cute.ptx((text:gsub("size 64", "size 64\n" .. decl, 1)
        :gsub("mov.u32 %%r1", "atom.global.add.u32 %%r2, [count], n; %0", 1)
        :gsub("n; mov", "1; mov", 1)))
    end
  ]]

  it("uses the variables of its module", function()
    local out, err = run(COUNT .. [[
      local module = counted ".global .u32 count = 5;"
      k = module:kernel "axpy"
      for _, where in ipairs {card, card, {grid = 1, block = 1}} do
        k(y, x, 2, 1, 0):launch(where)
        print(module:variable "count"[0])
      end
      local v = k(y, x, 2, 1, 0):check {grid = 1, block = 1}
      print(v.verdict, v.gpu ~= nil)]], {FAKE_PTX = "1"})
    assert.equal("6\n7\n8\nok\ttrue\n", out, err)
    assert.matches("\n%.visible %.global %.u32 count = 5;", err)
  end)

  it("reports variables that the driver lacks or that hold addresses",
     function()
    local out, err = run(COUNT .. [[
      for _, decl in ipairs {".const .u32 other = 7;",
        ".const .u32 other = 7; .global .u64 count = other;"} do
        local module = counted(decl:find "count" and decl
          or ".global .u32 count; " .. decl)
        module = cute.ptx((module.text:gsub("mov.u32 %%r1",
          "ld.const.u32 %%r2, [other]; %0", 1)))
        local k = module:kernel "axpy"
        print(message(function() k(y, x, 2, 1, 0):launch(card) end))
        print(k(y, x, 2, 1, 0):check(launch).not_compared)
      end]])
    local why = "the module's variable count holds addresses, which exist on "
      .. "the simulator only"
    assert.equal("kernel axpy: variable other: cuModuleGetGlobal: "
      .. "CUDA_ERROR_OTHER (in words) [driver-error]\nnil\nkernel axpy: "
      .. why .. " [bad-launch]\n" .. why .. "\n", out, err)
  end)
end)

describe("the text for a driver", function()
  it("has the default rounding wherever a compiler may contract", function()
    for from, to in pairs {
      ["add.f32 a"] = "add.rn.f32 a", ["mul.ftz.f32 a"] = "mul.rn.ftz.f32 a",
      ["@%p1 sub.f64 a"] = "@%p1 sub.rn.f64 a",
      ["mul.sat.f16x2 a"] = "mul.rn.sat.f16x2 a",
      ["add.bf16 a"] = "add.rn.bf16 a", ["add.rz.f32 a"] = "add.rz.f32 a",
      ["mul.wide.u32 a"] = "mul.wide.u32 a", ["add.s32 a"] = "add.s32 a",
      ["atom.global.add.f32 a"] = "atom.global.add.f32 a",
      ["fma.rn.f32 a"] = "fma.rn.f32 a", ["add.f32x2 a"] = "add.rn.f32x2 a",
      ["@%p mul.ftz.f32x2 %d1, a, b;"] =
        "@%p mul.rn.ftz.f32x2 %d1, a, b; or.b64 %d1, %d1, 0;",
      ["fma.rz.f32x2 d,a,b,c; x"] = "fma.rz.f32x2 d,a,b,c; or.b64 d, d, 0; x",
    } do
      assert.equal(to, card.exact(from))
    end
  end)

  it("has no cache hints of cp.async for drivers before CUDA 13.4", function()
    for from, to in pairs {
      ["@p cp.async.cg.shared.global.L2::cache_hint [ %r7 + 0 ], [ %rd9 + 0 ], "
        .. "0x10, %r8, %rd10; ret;"] = "@p cp.async.cg.shared.global [ %r7 + 0 "
        .. "], [ %rd9 + 0 ], 0x10, %r8; ret;",
      ["cp.async.ca.shared::cta.global.L2::cache_hint.L2::128B [d], [a], 4, o;"]
        = "cp.async.ca.shared::cta.global.L2::128B [d], [a], 4;",
      ["cp.async.cg.shared.global.L2::128B [d], [a], 16;"] = true,
      ["cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [d], [s], "
        .. "16, o;"] = true,
      ["ld.global.L2::cache_hint.u32 r, [a], o;"] = true} do
      assert.equal(to == true and from or to, card.unhinted(from))
      local text = ".version 8.0\n" .. from
      assert.equal(".version 8.0\n" .. card.unhinted(from),
                   card.text(text, 13030))
      assert.equal(text, card.text(text, 13040))
    end
  end)

  -- Returns ptxas's machine code for the text, or nil without ptxas.
  local function assembled(arch, text)
    local ptxas = "/usr/local/cuda/bin/ptxas"
    if not support.read(ptxas) then return nil end
    local dir = support.folder()
    support.write(dir .. "/k.ptx", text)
    local _, err, code = support.exec {ptxas, "-arch=" .. arch, "-o",
      dir .. "/k.cubin", dir .. "/k.ptx"}
    assert.equal(0, code, err)
    local cubin = support.read(dir .. "/k.cubin")
    support.remove(dir)
    return cubin
  end

  it("has no contraction in ptxas's machine code", function()
    local counts = {}
    for i, text in ipairs {PTX, card.exact(PTX)} do
      local cubin = assembled("sm_90a", text)
      if not cubin then
        pending "needs ptxas"
        return
      end
      counts[i] = machine.opcodes(cubin)[0x23] or 0
    end
    assert.same({1, 0}, counts)
  end)

  it("has no contraction of pairs of f32 in the machine code #long", function()
    local cases = {
      "mul.f32x2 d, a, b; add.f32x2 d, d, c;",
      "mul.rn.f32x2 d, a, b; sub.rn.f32x2 d, c, d;",
      "mov.b64 d, 0x8000000080000000; fma.rn.f32x2 d, a, b, d; "
        .. "add.rn.f32x2 d, d, c;",
      "@p mul.rm.ftz.f32x2 d, a, b; add.rm.ftz.f32x2 d, d, c;",
    }
    for _, case in ipairs(cases) do
      local cubin = assembled("sm_100a", card.exact([[
        .version 8.7
        .target sm_100a
        .address_size 64
        .visible .entry k(.param .u64 q) {
          .reg .b64 a, b, c, d, x; .reg .pred p;
          ld.param.u64 x, [q]; ld.global.v2.b64 {a, b}, [x];
          ld.global.v2.b64 {c, d}, [x+16]; setp.ne.u64 p, a, 0;
          ]] .. case .. [[ st.global.b64 [x], d; ret; }]]))
      if not cubin then
        pending "needs ptxas"
        return
      end
      local found = machine.opcodes(cubin)
      assert.equal(1, found[machine.FADD2], case)
    end
  end)
end)

describe("PTX on a card", function()
  for _, k in ipairs(kernels) do
    it("has the simulator's bits in " .. k.name .. " #gpu", function()
      local kernel = cute.cuda(kernels.source(k)):kernel(k.name,
                                                         {smem = k.smem})
      local results, n = {}, math.min(k.most or 125, 125)
      for i, device in ipairs {"sim", "gpu"} do
        local args, out = k.args(n)
        local options = kernels.launch(k, n)
        options.device = device
        kernel(table.unpack(args)):launch(options)
        results[i] = core.param_memory(type(out) == "number" and args[out]
          or out)
      end
      assert.is_true((results[1]:equal(results[2])))
    end)
  end

  it("has the module's variables #gpu", function()
    local _, err, code = support.run_lua {"-e", CODE .. [[
      local module = cute.ptx((text:gsub("size 64", "size 64\n"
        .. ".global .u32 count = 5; .const .u32 weight[2] = {3, 4};", 1)
        :gsub("mov.u32 %%r1", "ld.const.u32 %%r3, [weight+4];"
          .. "atom.global.add.u32 %%r2, [count], %%r3; %0", 1)))
      local call = module:kernel "axpy"(y, x, 2, 32, 0)
      for i, where in ipairs {card, card, launch} do
        call:launch(where)
        assert(module:variable "count"[0] == (5 + 128 * i) % 256)
      end
      assert(call:check(launch).gpu)]]}
    assert.equal(0, code, err)
  end)

  it("has the simulator's bits #gpu", function()
    local _, _, code = support.run_lua {"-e", CODE .. [[
      for i = 0, 31 do x[i] = 1 / (i + 3) end
      local v = k(y, x, 0.1, 32, 0):check(launch)
      os.exit(v.verdict == "ok" and v.gpu ~= nil and v.compared[1].count == 0)
    ]]}
    assert.equal(0, code)
  end)
end)
-- SPDX-License-Identifier: MIT
