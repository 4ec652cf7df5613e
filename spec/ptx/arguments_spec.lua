-- Tests arguments, targets and launches that do not fit a PTX kernel. Each must
-- raise an error of one sentence. Numbers that fit must arrive with all their
-- bits.
local cute = require "cute"
local support = require "spec.support"

local SIM = {grid = 1, block = 1, device = "sim:sm_90a"}

-- Returns a module with an entry k that has the tensor x, further parameters (a
-- list of declarations), and these instructions.
local function module(params, body, more)
  return cute.ptx((([[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x%s) %s {
.reg .b32 r<4>; .reg .b64 d<4>; .reg .b16 h<2>; .reg .pred p<2>;
.shared .align 16 .b8 s[64];
ld.param.u64 d0, [x];
%s
ret;
}
]]):format(params, more or "", body)))
end

-- Runs an entry that stores its parameter n, which has this type and the value
-- `value`. Returns the stored bytes.
local function stored(type, value)
  local bits = type:match "%d+"
  local reg = ({["16"] = "h0", ["32"] = "r0", ["64"] = "d1"})[bits]
  local out = cute.zeros({1}, cute[({["16"] = "u16", ["32"] = "u32",
                                    ["64"] = "u64"})[bits]])
  module((", .param .%s n"):format(type), ("ld.param.b%s %s, [n];\n"
    .. "st.global.b%s [d0], %s;"):format(bits, reg, bits, reg)):kernel "k"(
    out, value):launch(SIM)
  return ("<I" .. bits // 8):pack(out[0] & (1 << bits // 1) - 1)
end

local function message(f, ...)
  local list = table.pack(...)
  return (support.message(function() f(table.unpack(list, 1, list.n)) end))
end

describe("an argument of PTX", function()
  it("arrives with all its bits", function()
    for _, case in ipairs {
      {"u32", 0xffffffff, "I4"}, {"s32", -7, "i4"}, {"u32", true, "I4", 1},
      {"u32", 3.0, "I4", 3}, {"f32", 0.1, "f"}, {"f32", 3, "f"},
      {"b32", {0.1, "f32"}, "f", 0.1}, {"b32", {7, "i32"}, "i4", 7},
      {"u16", 65535, "I2"}, {"s16", -2, "i2"}, {"b32", -1, "i4"}} do
      local type, value, format, want = table.unpack(case)
      assert.equal(("<" .. format):pack(want or value), stored(type, value))
    end
  end)

  it("arrives with all bits of an f64", function()
    local out = cute.zeros({2}, cute.f64)
    local m = module(", .param .f64 n, .param .align 8 .b8 t[16]", [[
      ld.param.b64 d1, [n]; st.global.b64 [d0], d1;
      ld.param.b64 d1, [t+8]; st.global.b64 [d0+8], d1;]])
    m:kernel "k"(out, 0.1, {[0] = 1, [8] = {1 / 3, "f64"}}):launch(SIM)
    assert.same({0.1, 1 / 3}, {out[0], out[1]})
    m:kernel "k"(out, {5, "f64"}, {[8] = {-0.1, "f64"}}):launch(SIM)
    assert.same({5.0, -0.1}, {out[0], out[1]})
  end)

  it("may be a pointer in a register that other values use, too", function()
    local out, y = cute.zeros({4}, cute.i32), cute.zeros({4}, cute.i32)
    y[1] = 42
    local k = module(", .param .u64 y, .param .u32 off", [[
      mov.u64 d1, 4;
      ld.param.u32 r0, [off]; cvt.u64.u32 d2, r0; mul.lo.u64 d2, d2, d1;
      ld.param.u64 d1, [y]; add.u64 d1, d1, d2; ld.global.b32 r1, [d1];
      ld.param.u64 d1, [x]; add.u64 d1, d1, d2; st.global.b32 [d1], r1;
      shr.u32 r1, r1, 1;
      ld.param.u32 r2, [x]; ld.param.u64 d1, [x]; cvt.u32.u64 r3, d1;
      setp.eq.u32 p0, r2, r3; @p0 st.global.b32 [d0], r1;]]):kernel "k"
    k(out, y, 1):launch(SIM)
    assert.same({21, 42}, {out[0], out[1]})
    local _, why = k(out, y, 999):launch {grid = 1, block = 1,
      device = "sim:sm_90a", faults = "return"}
    assert.matches("ptx:10: read at address .* %[out%-of%-bounds%]", why)
  end)

  it("is converted when a prepared launch gets others", function()
    local out = cute.zeros({1}, cute.f64)
    local k = module(", .param .f64 n", "ld.param.b64 d1, [n];\n"
      .. "st.global.b64 [d0], d1;"):kernel "k"
    local run = cute.compile(k, out, 0.1, {grid = 1, block = 1, device = "sim"})
    run:launch()
    assert.equal(0.1, out[0])
    run(out, 0.3)
    assert.equal(0.3, out[0])
    run(out, 7)
    assert.equal(7.0, out[0])
    assert.is_true(run:try({}, out, 0.7))
    assert.equal(0.7, out[0])
    assert.is_false(run:try({}, out))
    assert.matches("entry k takes 2 arguments, not 1", message(run, out))
  end)

  it("is rejected where it does not fit", function()
    local x = cute.zeros({4}, cute.u32)
    local k = module(", .param .u32 n, .param .b32 b, .param .f32 f, "
      .. ".param .align 8 .b8 t[16]", ""):kernel "k"
    local ok = {x, 1, 2, 3.0, ("\0"):rep(16)}
    for _, case in ipairs {
      {2, 1.5, "parameter n must be an integer of 32 bits, not 1.5"},
      {2, 1 << 32, "parameter n must be an integer of 32 bits, not 4294967296"},
      {2, -1 << 32, "n must be an integer of 32 bits"},
      {2, x, "n is a scalar of 32 bits; a tensor is passed to a pointer"},
      {2, {1.5, "f32"}, "parameter n is .u32, not \"f32\""},
      {2, {1, "i64"}, "parameter n is .u32, not \"i64\""},
      {2, {1, "f33"},
       "parameter n must be {value, dtype}, such as {1.5, \"f32\"}"},
      {2, {}, "parameter n must be {value, dtype}"},
      {2, "abc", "parameter n has 4 bytes, got 3"},
      {3, 1.5, "parameter b may be a float or an integer of 32 bits"},
      {4, {1, "i32"}, "parameter f is .f32, not \"i32\""},
      {5, "abc", "parameter t has 16 bytes, got 3"},
      {5, {[0] = {300, "u8"}},
       "t, byte 0 must be an integer of 8 bits, not 300"},
      {5, {[0] = {1, "bf16"}},
       "a scalar must be an integer, f32 or f64, not bf16"},
      {5, {[0] = {1}}, "t, byte 0 must be {value, dtype}"}} do
      local args = table.move(ok, 1, 5, 1, {})
      args[case[1]] = case[2]
      local text = message(k, table.unpack(args))
      assert.matches(case[3], text, 1, true)
      assert.matches("^entry k: [^\n]* %[bad%-argument%]", text)
    end
    assert.matches("^entry k: parameter n is nil", message(k, x, nil, 2, 3.0,
                                                           ok[5]))
    assert.matches("^entry k takes 5 arguments, not 4", message(k, x, 1, 2, 3))
    assert.matches("^entry k takes 5 arguments, not 6", message(k, x, 1, 2, 3,
                                                                ok[5], 1))
  end)
end)

describe("a pointer of PTX", function()
  local function report(first, op)
    local x = cute.zeros({16}, cute.u32)
    local t = cute.make_tensor(x.iterator + first,
                               cute.make_layout {16 - first})
    local call = module("", op):kernel "k"(t)
    return message(function() call:launch(SIM) end)
  end

  it("is reported where it is misaligned", function()
    local load = "ld.global.u64 d1, [d0+%d]; st.global.u64 [d0+%d], d1;"
    for _, case in ipairs {{1, 0}, {1, 8}, {2, 4}, {3, 16}} do
      assert.matches("8 bytes not aligned to its width: .* %[misaligned%]",
        report(case[1], load:format(case[2], case[2])))
    end
    for _, case in ipairs {{0, 0}, {1, 4}, {2, 8}, {3, 12}} do
      local x = cute.zeros({16}, cute.u32)
      local t = cute.make_tensor(x.iterator + case[1],
                                 cute.make_layout {16 - case[1]})
      module("", load:format(case[2], case[2])):kernel "k"(t):launch(SIM)
    end
    assert.matches("16 bytes not aligned", report(2, [[
      cp.async.cg.shared.global [s], [d0], 16; cp.async.wait_all;]]))
    assert.matches("4 bytes not aligned", report(0, [[
      atom.global.add.u32 r1, [d0+2], 1;]]))
  end)

  -- If the simulator does not check such an offset, the address overflows,
  -- which the sanitizer reports.
  it("is reported where its offset is huge", function()
    for _, op in ipairs {"ld.global.u32 r0, [d0+9223372036854775807];",
        "st.global.u64 [d0-9223372036854775807], d0;",
        "ld.global.v4.u32 {r0, r1, r2, r3}, [d0+4611686018427387904];",
        "atom.global.add.u32 r0, [d0-9223372036854775800], 1;",
        "st.shared.u32 [s+9223372036854775800], 1;",
        "mbarrier.init.shared.b64 [s+9223372036854775800], 1;",
        "cp.async.bulk.global.shared::cta.bulk_group "
          .. "[d0+9223372036854775792], [s], 16;"} do
      assert.matches("%[out%-of%-bounds%]", report(0, op))
    end
  end)

  it("is reported where an mbarrier is misaligned", function()
    assert.matches("misaligned address of an mbarrier, which needs a multiple "
      .. "of 8 bytes", report(0, [[
      ld.global.u32 r0, [d0]; add.u32 r0, r0, 4; mov.u32 r1, s;
      add.u32 r1, r1, r0; mbarrier.init.shared.b64 [r1], 1;]]))
  end)
end)

describe("a shuffle of PTX", function()
  it("reads the bits of its segment alone", function()
    local x = cute.zeros({32}, cute.u32)
    module("", [[
      mov.u32 r0, %tid.x; shfl.sync.bfly.b32 r1, r0, 31, -1, -1;
      shfl.sync.idx.b32 r2, r0, 3, 0xffffe0ff, -1;
      mad.lo.u32 r1, r2, 100, r1;
      mul.wide.u32 d1, r0, 4; add.s64 d0, d0, d1;
      st.global.u32 [d0], r1;]]):kernel "k"(x):launch {grid = 1, block = 32,
      device = "sim:sm_90a"}
    -- With c = -1, each lane is a segment of its own. By the pseudo-code in the
    -- PTX ISA, bfly still reads from lanes with lower numbers. With c =
    -- 0xffffe0ff, the whole warp is one segment.
    for lane = 0, 31 do
      assert.equal(300 + (31 - lane <= lane and 31 - lane or lane), x[lane])
    end
  end)
end)

describe("a launch of PTX", function()
  local function why(k, more)
    local opts = {}
    for name, v in pairs(SIM) do opts[name] = v end
    for name, v in pairs(more) do opts[name] = v end
    local call = k(cute.zeros({4}, cute.u32))
    return message(function() call:launch(opts) end)
  end

  it("is rejected on another target", function()
    local k = module("", ""):kernel "k"
    assert.matches("^kernel k is PTX for sm_90a only, not for sm_80 "
      .. "%[wrong%-arch%]$", why(k, {device = "sim:sm_80"}))
  end)

  it("is rejected with a block or cluster that the entry excludes", function()
    local k = module("", "", ".maxntid 16, 2, 1"):kernel "k"
    assert.matches("entry k has .maxntid 16, 2, 1: a block of 33 x 1 x 1 "
      .. "threads is larger %[bad%-launch%]", why(k, {block = 33}))
    k = module("", "", ".reqnctapercluster 2, 1, 1"):kernel "k"
    assert.matches("entry k has .reqnctapercluster 2, 1, 1: launch it with "
      .. "cluster = {2, 1, 1}, not 4 x 1 x 1 %[bad%-launch%]",
      why(k, {grid = 4, cluster = 4}))
  end)

  it("is rejected with an unknown entry", function()
    local m = module("", "")
    assert.matches("no entry 'f' %[bad%-ptx%]\n  entries: k",
                   message(m.kernel, m, "f"))
    local none = cute.ptx ".version 8.0\n.target sm_90\n.address_size 64\n"
    assert.matches("no entry 'f': the module has none %[bad%-ptx%]",
                   message(none.kernel, none, "f"))
  end)

  it("is found by its mangled, plain or qualified name, or a suffix", function()
    local text = ".version 8.0\n.target sm_90\n.address_size 64\n"
    for _, entry in ipairs {"_Z3sumPi", "_ZN1a4max2EPi", "_ZN1b4max2EPi",
                            "block_sum", "_Z11fill_valuesPi", "_Z1gPi"} do
      text = text .. (".visible .entry %s() { ret; }\n"):format(entry)
    end
    local m = cute.ptx(text)
    for name, entry in pairs {_Z3sumPi = "_Z3sumPi", sum = "_Z3sumPi",
        k_sum = "block_sum", ["a::max2"] = "_ZN1a4max2EPi",
        ["b::max2"] = "_ZN1b4max2EPi", fill_values = "_Z11fill_valuesPi",
        g = "_Z1gPi"} do
      assert.equal(entry, m:kernel(name).name)
    end
    assert.matches("several entries match 'max2'",
                   message(m.kernel, m, "max2"))
    -- "f" must not match _Z11fill_valuesPi, whose "1f" looks like a name of
    -- length 1
    for _, name in ipairs {"f", "c::max2", "", "::"} do
      assert.matches("no entry '" .. name .. "'", message(m.kernel, m, name))
    end
  end)

  it("leaves the file of a page alone if it fails", function()
    local folder = support.folder()
    local bad, page = folder .. "/k.ptx", folder .. "/k.html"
    support.write(bad, ".version 8.0\n.target sm_90a\n.address_size 64\n.entry")
    support.write(folder .. "/l.json", "{}")
    support.write(page, "old")
    local _, err, code = support.exec {support.program, "explain", bad,
      "--launch", folder .. "/l.json", "-o", page}
    assert.matches("line 4: .* %[bad%-ptx%]", err)
    assert.equal(1, code)
    assert.equal("old", support.read(page))
    support.remove(folder)
  end)
end)

describe("an option of cute.cuda", function()
  it("is rejected if it has another type", function()
    for name, value in pairs {include = 5, define = "x", arch = 90,
                              options = true} do
      assert.matches("^cute.cuda: " .. name .. " is a %a+, not ",
        message(cute.cuda, "int x;\n", {[name] = value}))
    end
  end)
end)

describe("the option undefined_ok of an entry", function()
  it("permits unwritten elements of a workspace", function()
    local m = cute.ptx [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd0, [x];
  mov.u32 %r0, 1;
  st.global.u32 [%rd0], %r0;
  ret;
}]]
    local function run(opts)
      return support.report(m:kernel("k", opts)(cute.empty({8}, cute.u32))
        :launch {grid = 1, block = 1, device = "sim", faults = "return"})
    end
    assert.equal("unwritten", run().reports[1].kind)
    assert.equal(0, #run({undefined_ok = {1}}).reports)
    for said, list in pairs {["undefined_ok = 1;"] = 1,
        ["a list of parameters' positions, from 1 to 1, is needed"] = {2},
        ["undefined_ok = "] = {"x"}} do
      support.raises(said, m.kernel, m, "k", {undefined_ok = list})
    end
  end)
end)
-- SPDX-License-Identifier: MIT
