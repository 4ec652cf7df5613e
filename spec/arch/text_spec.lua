-- Tests printf and inline PTX. The simulator must give the expected results,
-- invalid calls must raise errors, and NVRTC must accept the emitted text.
local cute = require "cute"
local kernels = require "spec.kernels"
local arch = cute.arch
local T = require "spec.values"
local raises = require "spec.support".raises
local launch, ok = T.launch, T.ok

describe("printf", function()
  local function print_all(out)
    local t = arch.thread_idx()
    local b = arch.block_idx()
    cute.printf("{} of %d: {} %5.2f %x%%\n", t, b, t:to(cute.f32) / 2,
                t:to(cute.bf16), t * 17)
    arch.sync_threads()
    cute.printf("done {}\n", t:eq(3))
    out[t] = t
  end

  it("writes the threads' output, in their order", function()
    local o = cute.zeros({64}, "i32")
    local want = {}
    for b = 0, 1 do
      for w = 0, 1 do
        for t = w * 32, w * 32 + 31 do
          want[#want + 1] = ("%d of %d: %g %5.2f %x%%\n"):format(t, b, t / 2,
            t * 1.0, t * 17)
        end
        for t = w * 32, w * 32 + 31 do
          want[#want + 1] = ("done %s\n"):format(t == 3)
        end
      end
    end
    for seed = 1, 5 do
      local r = ok(launch(print_all, {o}, {grid = 2, block = 64, seed = seed}))
      assert.equal(table.concat(want), r.output)
    end
    local written = {}
    local file = {write = function(_, text) written[#written + 1] = text end}
    launch(print_all, {o}, {grid = 2, block = 64, output = file})
    assert.same({table.concat(want)}, written)
  end)

  it("prints a value by its type if the conversion does not fit",
    function()
    local o = cute.zeros({1}, "i32")
    local program
    local r = ok(launch(function(_)
      local t = arch.thread_idx()
      cute.printf("%d %3i %.2f %lld\n", t:to(cute.f32) + 1.5, t:to(cute.u8),
                  t + 7, t - 1)
    end, {o}, {grid = 1, block = 1}))
    assert.equal("1.5   0 7.00 -1\n", r.output)
    program = cute.kernel("k", function()
      local t = arch.thread_idx()
      cute.printf("%d %3i %.2f %lld\n", t:to(cute.f32) + 1.5, t:to(cute.u8),
                  t + 7, t - 1)
    end)():trace {block = 1}
    assert.matches('printf%("%%g %%3u %%%.2f %%d\\n"', program.source)
  end)

  it("prints bits as wide as the value", function()
    local o = cute.zeros({1}, "i32")
    o[0] = -1
    local function bits(x)
      cute.printf("%x %o %x %X %lld\n", x[0], x[0], x[0]:to(cute.u16),
                  x[0]:to(cute.i64), x[0]:to(cute.i64))
    end
    local r = ok(launch(bits, {o}, {grid = 1, block = 1}))
    assert.equal("ffffffff 37777777777 ffff FFFFFFFFFFFFFFFF -1\n", r.output)
    local program = cute.kernel("k", bits)(o):trace {block = 1}
    assert.matches('printf%("%%x %%o %%x %%llX %%lld\\n"', program.source)
  end)

  it("checks its format", function()
    local o = cute.zeros({64}, "i32")
    raises("2 conversions and 1 value follows", launch, function(_)
      cute.printf("{} {}\n", arch.lane_idx())
    end, {o})
    for _, bad in ipairs {"%s", "%*d", "%5-5d", "%..2f", "%1.2.3f", "%lllld",
        "%------d", "%5", "%"} do
      raises("is not a conversion", launch, function(_)
        cute.printf(bad, arch.lane_idx())
      end, {o})
    end
    for _, wide in ipairs {"%999999999d", "%1000d", "%.99999999f",
        "%-5.1234e"} do
      raises({"a width or precision has at most three digits", "[limit]"},
        launch, function(_) cute.printf(wide, arch.lane_idx()) end, {o})
    end
    raises("1 conversion and 3 values follow", launch, function(_)
      cute.printf("%d\n", arch.thread_idx())
    end, {o})
    raises("returns three values: write (thread_idx())", launch, function(_)
      cute.printf("%d\n", arch.thread_idx())
    end, {o})
    raises("only meaningful inside a kernel", cute.printf, "hello\n")
  end)
end)

describe("inline PTX", function()
  it("is rejected by the simulator, and accepted by NVRTC", function()
    local o = cute.zeros({32, 4}, "i32")
    raises("the simulator cannot execute inline PTX", launch, T.inline_ptx, {o})
    local program = cute.kernel("k", T.inline_ptx)(o):trace {block = 32}
    assert.is_truthy(program.source:find("max.s32 %0, %1, %2;", 1, true))
    assert.is_truthy(program.source:find("%%laneid", 1, true))
    return kernels.compiles(program, {"sm_90a"}) or
      pending "needs NVRTC"
  end)

  it("has no sums of two 16-bit floats in another block's memory", function()
    local function sum(text)
      return function()
        cute.kernel("k", function(x)
          arch.inline_ptx(text, {read_only_args = {x[0], x[1]}})
        end)(cute.zeros({2}, cute.u32)):trace {block = 1}
      end
    end
    local relaxed = "red.relaxed.cluster.shared::cluster.add.noftz.bf16x2"
    for _, op in ipairs {"red.shared::cluster.add.noftz.f16x2", relaxed} do
      raises(("inline_ptx: %s: ptxas compiles it to an integer add that is "
        .. "not atomic"):format(op), sum(op .. " [{$r0}], {$r1};"))
    end
    sum "red.shared::cta.add.noftz.f16x2 [{$r0}], {$r1};" ()
    sum "red.shared::cluster.add.noftz.f16 [{$r0}], {$r1};" ()
  end)

  it("names its operands", function()
    local o = cute.zeros({1}, "i32")
    raises("{$r1} names no operand", launch, function(_)
      arch.inline_ptx("mov.u32 {$w0}, {$r1};",
        {write_only_types = {cute.i32}, read_only_args = {1}})
    end, {o})
  end)
end)
-- SPDX-License-Identifier: MIT
