-- Tests the fidelity of launches: which operations a GPU computes with the
-- simulator's bits, and where values that may have other bits matter. The
-- expected class of an operation follows from the kernel's text. How often the
-- operation runs follows from the number of warps.
local cute = require "cute"
local json = require "dkjson"
local support = require "spec.support"

local HEAD = [[
.version 8.4
.target sm_80
.address_size 64
.visible .entry k(.param .u64 px, .param .u64 py)
{
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .f32 %f<12>; .reg .b64 %rd<10>;
  .reg .f64 %d<6>; .reg .b16 %h<4>;
  .shared .align 4 .b8 s[256];
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
]]
local FIRST = select(2, HEAD:gsub("\n", "\n")) + 1  -- the body's first line

local WARPS = 2

-- Runs the instructions of `body` on `device`; returns the fidelity.
local function run(body, device)
  local k = cute.ptx(HEAD .. body .. "\nret;\n}\n"):kernel "k"
  local x, y = cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32)
  for i = 0, 63 do x[i] = i / 64 end
  return k(x, y):launch {grid = 1, block = 32 * WARPS, fidelity = true,
                         device = device or "sim:sm_90"}.fidelity
end

-- Returns the operations that are not exact as text: "1:add (contraction) 2"
-- has the line in the body, the name, the class, and the number of executions.
local function inexact(f)
  local out = {}
  for _, e in ipairs(f.lines) do
    if e.op then
      out[#out + 1] = ("%d:%s (%s) %d"):format(e.line - FIRST + 1, e.op,
                                               e.class, e.count)
    end
  end
  return table.concat(out, "; ")
end

-- Returns a text that lists where a kernel uses inexact values. For example,
-- "3:address from 1" is an address in line 3 that depends on a value of line 1.
local function reached(f)
  local out = {}
  for _, u in ipairs(f.reached) do
    out[#out + 1] = ("%d:%s from %d"):format(u.line - FIRST + 1, u.kind,
                                             u.from_line - FIRST + 1)
  end
  return table.concat(out, "; ")
end

local STORE = "\nst.global.f32 [%rd5], %f3;"

describe("contraction of PTX without a rounding", function()
  local function sums(text) return inexact(run(text .. STORE)) end

  it("names the sum", function()
    assert.equals("2:add (contraction) 2", sums [[
mul.f32 %f2, %f1, %f1;
add.f32 %f3, %f2, %f1;]])
    assert.equals("2:sub (contraction) 2", sums [[
mul.f32 %f2, %f1, %f1;
sub.f32 %f3, %f1, %f2;]])
    assert.equals("2:add (contraction) 2", sums [[
mul.ftz.f32 %f2, %f1, %f1;
add.ftz.f32 %f3, %f2, %f1;]])
    assert.equals("3:add (contraction) 2", sums [[
mul.f32 %f2, %f1, %f1;
neg.f32 %f2, %f2;
add.f32 %f3, %f2, %f1;]])
    assert.equals("3:add (contraction) 2", sums [[
cvt.f64.f32 %d1, %f1;
mul.f64 %d2, %d1, %d1;
add.f64 %d3, %d2, %d1;
cvt.rn.f32.f64 %f3, %d3;]])
    assert.equals("3:add.f16x2 (contraction) 2", sums [[
mov.b32 %r2, %f1;
mul.f16x2 %r3, %r2, %r2;
add.f16x2 %r3, %r3, %r2;
mov.b32 %f3, %r3;]])
  end)

  it("needs a product and a sum, both without .rn", function()
    assert.equals("", sums [[
mul.rn.f32 %f2, %f1, %f1;
add.f32 %f3, %f2, %f1;]])
    assert.equals("", sums [[
mul.f32 %f2, %f1, %f1;
add.rn.f32 %f3, %f2, %f1;]])
    assert.equals("", sums "fma.rn.f32 %f3, %f1, %f1, %f1;")
    assert.equals("", sums [[
add.f32 %f2, %f1, %f1;
mul.f32 %f3, %f2, %f1;]])
    assert.equals("", sums [[
mul.lo.s32 %r2, %r1, %r1;
add.s32 %r2, %r2, %r1;
cvt.rn.f32.s32 %f3, %r2;]])
  end)

  it("follows a product through a register of a loop", function()
    assert.equals("5:add (contraction) 6", sums [[
mov.f32 %f2, 0f00000000;
mov.f32 %f3, 0f00000000;
mov.u32 %r2, 0;
again:
add.f32 %f3, %f3, %f2;
mul.f32 %f2, %f1, %f1;
add.s32 %r2, %r2, 1;
setp.lt.s32 %p1, %r2, 3;
@%p1 bra again;]])
  end)
end)

describe("functions and tensor cores", function()
  local BODY = [[
ex2.approx.f32 %f2, %f1;
rsqrt.approx.ftz.f32 %f3, %f2;]] .. STORE

  it("are measured on sm_90, and bounded on other architectures", function()
    local f = run(BODY)
    assert.equals("1:ex2.approx (approximate function) 2; "
      .. "2:rsqrt.approx.ftz.f32 (approximate function) 2", inexact(f))
    assert.same({4, 0}, {f.measured, f.bounded})
    f = run(BODY, "sim:sm_80")
    assert.same({0, 4}, {f.measured, f.bounded})
  end)

  it("of traced kernels have classes", function()
    local function only(f, dtype)
      local x = cute.zeros({32}, dtype)
      return cute.kernel("one", f)(x):launch {grid = 1, block = 32,
        device = "sim", fidelity = true}.fidelity
    end
    local tid = cute.arch.thread_idx
    local function classes(f)
      local out = {}
      for _, e in ipairs(f.lines) do out[#out + 1] = e.class end
      return table.concat(out, " ")
    end
    assert.equals("f64 function", classes(only(function(x)
      local i = tid()
      x[i] = cute.exp(x[i])
    end, cute.f64)))
    local f = only(function(x)
      local i = tid()
      x[i] = cute.tanh(x[i])
    end, cute.f32)
    assert.equals("CUDA function", classes(f))
    assert.equals(1, f.measured)
    f = only(function(x)
      local i = tid()
      x[i] = x[i] * 2.0 + 1.0
    end, cute.f32)
    assert.equals("", classes(f))
    assert.is_true(f.exact > 0)
  end)

  it("of a product depend on the architecture", function()
    local function gemm(device)
      local a = cute.zeros({64, 64}, cute.f16)
      local b = cute.zeros({64, 64}, cute.f16)
      local d = cute.zeros({64, 64}, cute.f32)
      local seen
      local kernel = require "cute.lang.kernel"
      finally(function() kernel.runner = nil end)
      kernel.runner = {run = function(program, launch)
        launch.fidelity = true
        local found = require "cute.core".sim_run(program.fn, launch)
        seen = found.fidelity
        return found
      end}
      cute.ops.gemm(a, b, {out = d, device = device})
      kernel.runner = nil
      return seen
    end
    local f = gemm "sim:sm_80"
    local class
    for _, e in ipairs(f.lines) do class = e.class or class end
    assert.equals("tensor-core sum", class)
    assert.equals(0, f.measured)
    assert.is_true(f.bounded > 0)
    assert.same({}, f.reached)
    f = gemm "sim:sm_90a"
    assert.equals(0, f.bounded)
    assert.is_true(f.measured > 0)
  end)
end)

describe("memory", function()
  it("has weaker orders and atomic sums", function()
    local f = run [[
membar.gl;
fence.sc.cta;
fence.acq_rel.gpu;
ld.volatile.global.f32 %f2, [%rd4];
ld.relaxed.sys.global.f32 %f3, [%rd4];
st.volatile.global.f32 [%rd5], %f3;
red.global.add.f32 [%rd2], %f2;
red.global.max.s32 [%rd2], %r1;
red.global.add.u32 [%rd2], %r1;]]
    assert.equals("1:fence (weaker order) 2; 2:fence (weaker order) 2; "
      .. "4:ld (weaker order) 2; 6:st (weaker order) 2; "
      .. "7:atomic (order of atomic sums) 2", inexact(f))
    assert.same({8, 2}, {f.weaker, f.bounded})
  end)
end)

describe("a value that may differ", function()
  it("is followed to an address, a branch and a selection", function()
    local f = run([[
ex2.approx.f32 %f2, %f1;
cvt.rzi.s32.f32 %r2, %f2;
mul.wide.s32 %rd6, %r2, 4;
add.s64 %rd7, %rd1, %rd6;
ld.global.f32 %f4, [%rd7];
setp.gt.f32 %p1, %f2, 0f3F800000;
selp.f32 %f3, %f4, %f1, %p1;
@%p1 st.global.f32 [%rd5], %f3;
@!%p1 st.global.f32 [%rd5], %f1;]], "sim:sm_80")
    assert.equals("5:address from 1; 7:selection from 1; 8:control flow from 1;"
      .. " 9:control flow from 1", reached(f))
    local text = tostring(f)
    assert.truthy(text:find("ptx:" .. FIRST + 4 .. ": address of ld (2 times), "
      .. "from ex2.approx of ptx:" .. FIRST, 1, true), text)
  end)

  it("is followed through shared memory and shuffles", function()
    assert.equals("9:synchronization from 1; 10:control flow from 1",
                  reached(run([[
ex2.approx.f32 %f2, %f1;
mov.u32 %r3, s;
mad.lo.s32 %r3, %r1, 4, %r3;
st.shared.f32 [%r3], %f2;
bar.sync 0;
ld.shared.b32 %r4, [%r3];
shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;
or.b32 %r5, %r5, -1;
bar.warp.sync %r5;
setp.eq.s32 %p1, %r4, 5;
@%p1 st.global.f32 [%rd5], %f1;]], "sim:sm_80")):gsub("11:", "10:"))
  end)

  it("does not reach what it does not affect", function()
    local body = [[
ex2.approx.f32 %f2, %f1;
setp.gt.f32 %p1, %f1, 0f3F000000;
selp.f32 %f3, %f2, %f1, %p1;
ld.global.f32 %f4, [%rd4];
setp.lt.f32 %p2, %f4, 0f00000000;
@%p2 add.f32 %f3, %f3, %f2;]] .. STORE
    local f = run(body, "sim:sm_80")
    assert.equals("", reached(f))
    assert.truthy(tostring(f):find("No bounded value reached", 1, true))
    assert.truthy(#run(body).reached == 0)
  end)

  it("counts only if the instruction was executed", function()
    local f = run([[
setp.lt.f32 %p1, %f1, 0f00000000;
@%p1 ex2.approx.f32 %f1, %f1;
setp.gt.f32 %p2, %f1, 0f3F000000;
@%p2 st.global.f32 [%rd5], %f1;]], "sim:sm_80")
    assert.equals("", inexact(f))
    assert.equals("", reached(f))
  end)
end)

describe("the fidelity of a launch", function()
  it("is in the report only if it is asked for", function()
    local k = cute.kernel("k", function(x) x[0] = cute.exp(x[0]) end)
    local x = cute.zeros({1}, cute.f32)
    local o = {grid = 1, block = 1, device = "sim"}
    assert.is_nil(k(x):launch(o).fidelity)
    o.fidelity = true
    local report = k(x):launch(o)
    local f = json.decode(report:json()).fidelity
    assert.equals("fidelity", f.kind)
    assert.equals(report.fidelity.measured, f.measured)
    assert.equals(#report.fidelity.lines, #f.lines)
    assert.equals("CUDA function", f.lines[#f.lines].class
                  or f.lines[1].class)
  end)

  it("is printed by run and check", function()
    local folder = support.folder()
    local ptx, launch = folder .. "/k.ptx", folder .. "/k.json"
    support.write(ptx, HEAD .. [[
mul.f32 %f2, %f1, %f1;
add.f32 %f3, %f2, %f1;]] .. STORE .. "\nret;\n}\n")
    support.write(launch, [[{"grid": 1, "block": 64, "args": ["x", "y"],
      "memory": {"x": {"dtype": "f32", "shape": [64]},
                 "y": {"dtype": "f32", "shape": [64]}}}]])
    local function output(words)
      words = words:gsub("FILE", ptx .. " --launch " .. launch)
      local list = {}
      for word in words:gmatch "%S+" do list[#list + 1] = word end
      local out, err = support.run(list)
      return out .. err
    end
    for _, words in ipairs {"run FILE --fidelity", "run --fidelity FILE",
                            "check FILE --fidelity", "check --fidelity FILE"} do
      local text = output(words)
      assert.truthy(text:find "2 bounded, 0 weaker", text)
      assert.truthy(text:find("add (contraction)", 1, true), text)
    end
    for _, words in ipairs {"run FILE --fidelity --format json",
                            "run --fidelity --format json FILE",
                            "check --json --fidelity FILE"} do
      local line = output(words):match '{[^\n]*"kind":"fidelity"[^\n]*}'
      assert.equals(2, json.decode(line).bounded)
    end
    local text = output "run --fidelity --format xml FILE"
    assert.truthy(text:find("--format must be text, json or sarif", 1, true),
                  text)
    support.remove(folder)
  end)
end)
-- SPDX-License-Identifier: MIT
