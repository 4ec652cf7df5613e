-- Tests names of the Python DSL that are aliases here, and small functions of
-- the DSL.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"

local function launch(f, block, ...)
  local call = cute.kernel("k", f)(...)
  call:launch {grid = 1, block = block, device = "sim:sm_90a"}
  kernels.compiles(call:trace {block = block}, {"sm_90a"})
  return call
end

describe("the Python DSL's names", function()
  it("of types are aliases of cute's", function()
    for name, short in pairs {Float4E2M1FN = "e2m1", Float6E2M3FN = "e2m3",
      Float6E3M2FN = "e3m2", Float8E8M0FNU = "ue8m0", Uint4 = "u4",
      Uint128 = "u128", Int4 = "i4"} do
      assert.equal(short, tostring(cute[name]))
    end
    for _, name in ipairs {"Float8E4M3B11FNUZ", "Float8E4M3", "Float8E3M4",
                           "Int128"} do
      assert.equal(("cute has no '%s' [unknown-name]\n  kernels do not support "
        .. "that element type; supported: cute.Float8E4M3FN, Float8E5M2, "
        .. "Float8E8M0FNU, Uint128"):format(name),
        (support.message(function() return cute[name] end)))
    end
  end)

  it("include infinity and NaN if the type has them", function()
    for _, t in ipairs {"f64", "f32", "tf32", "f16", "bf16"} do
      assert.equal(math.huge, cute[t].inf)
      assert.is_true(cute[t].nan ~= cute[t].nan)
    end
    assert.is_true(cute.e4m3.nan ~= cute.e4m3.nan)
    for _, t in ipairs {cute.e4m3, cute.e5m2, cute.e2m1, cute.i32,
                        cute.boolean} do
      assert.equal("a dtype has no field 'inf' [unknown-name]",
                   (support.message(function() return t.inf end)))
    end
  end)

  it("of reductions and masks are accepted by functions", function()
    local x, o = cute.tensor({3, -1, 7, 5}, "i32"), cute.zeros({3}, "i32")
    launch(function(v, out)
      local all = v:load()
      out[0] = all:reduce(cute.ReductionOp.ADD, 0, 0)
      out[1] = all:reduce(cute.ReductionOp.MIN, 100, 0)
      out[2] = all:reduce(cute.ReductionOp.MAX, -100)
    end, 1, x, o)
    assert.same({14, -1, 7}, {o(0), o(1), o(2)})
    local sums = cute.zeros({32}, "i32")
    launch(function(out)
      local lane = cute.arch.lane_idx()
      out[lane] = cute.arch.warp_redux_sync(lane, "add", cute.arch.FULL_MASK)
    end, 32, sums)
    assert.equal(31 * 16, sums(7))
  end)

  it("of plain copies are aliases of UniversalCopy", function()
    local plain = tostring(cute.make_copy_atom("UniversalCopy", cute.f32, 128))
    for _, name in ipairs {"CopyG2ROp", "CopyR2GOp", "CopyS2ROp",
                           "CopyR2SOp"} do
      assert.equal(plain, tostring(cute.make_copy_atom(cute.nvgpu[name](),
        cute.f32, {num_bits_per_copy = 128})))
    end
  end)
end)

describe("cute.append_ones", function()
  it("brings tuples, layouts and tensors to a rank", function()
    assert.equal("(8,4,1,1)", tostring(cute.append_ones({8, 4}, 4)))
    assert.equal("(8,4,1)", tostring(cute.append_ones {8, 4}))
    assert.equal("(8,1)", tostring(cute.append_ones(8)))
    local l = cute.make_layout({8, {2, 2}}, {4, {2, 1}})
    assert.equal("(8,(2,2),1,1):(4,(2,1),0,0)",
                 tostring(cute.append_ones(l, 4)))
    assert.equal(l, cute.append_ones(l, 2))
    local t = cute.append_ones(cute.zeros({4, 3}, "f32"), 3)
    assert.equal("(4,3,1):(3,1,0)", tostring(t.layout))
    assert.equal("cute.append_ones: the rank is 2, already above 1 "
      .. "[bad-argument]",
      (support.message(function() cute.append_ones(l, 1) end)))
  end)
end)

describe("cute.arch.approx", function()
  local function same(instruction, dtype, n, one)
    local x, o, want = cute.zeros({n}, dtype), cute.zeros({n}, dtype),
      cute.zeros({n}, dtype)
    for i = 0, n - 1 do x[i] = (i + 1) / 4 end
    launch(function(a, b, w)
      b:store(cute.arch.approx(instruction, a:load()))
      one(a, w)
    end, 1, x, o, want)
    for i = 0, n - 1 do
      assert.equal(want(i), o(i))
      assert.is_true(o(i) ~= 0)
    end
  end

  it("of a vector is that of each element", function()
    for _, name in ipairs {"ex2.approx.ftz.f32", "rsqrt.approx.f32",
                           "tanh.approx.f32"} do
      same(name, "f32", 5, function(a, w)
        for i = 0, 4 do w[i] = cute.arch.approx(name, a[i]) end
      end)
    end
  end)

  it("of two at once takes pairs", function()
    for name, t in pairs {["tanh.approx.f16x2"] = "f16",
                          ["ex2.approx.ftz.bf16x2"] = "bf16"} do
      same(name, t, 5, function(a, w)
        for i = 0, 4 do
          local word = a[i]:bitcast(cute.u16):to(cute.u32)
          w[i] = cute.arch.approx(name, word):to(cute.u16):bitcast(cute[t])
        end
      end)
    end
    assert.matches("^cute.arch.approx: ex2.approx.f16x2 of a vector of f32: "
      .. "its elements must be f16 %[type%-mismatch%]",
      (support.message(function()
        cute.kernel("k", function(x)
          cute.arch.approx("ex2.approx.f16x2", x:load())
        end)(cute.zeros({4}, "f32")):trace {block = 1}
      end)))
  end)
end)

describe("cute.arch.nanosleep", function()
  it("lets the other warps continue", function()
    local o = cute.zeros({1}, "i32")
    local call
    for seed = 1, 4 do
      call = cute.kernel("k", function(out)
        local tid, arch = cute.arch.thread_idx(), cute.arch
        local flag = cute.make_smem_tensor(cute.i32, cute.make_layout {1})
        for _ in cute.when(tid:eq(0)) do flag[0] = 0 end
        arch.sync_threads()
        for first in cute.cases(tid:eq(0), tid:eq(32)) do
          if first then
            local seen = 0
            cute.loop(function() return cute.eq(seen, 0) end, function()
              seen = arch.load(flag.iterator, cute.i32,
                               {sem = "acquire", scope = "cta"})
              arch.nanosleep(50)
            end)
            out[0] = seen
          else
            for _ in cute.when(tid:eq(32)) do
              arch.store(flag.iterator, 9, {sem = "release", scope = "cta"})
            end
          end
        end
      end)(o)
      call:launch {grid = 1, block = 64, device = "sim:sm_90a", seed = seed}
      assert.equal(9, o(0))
    end
    local program = call:trace {block = 64}
    assert.matches("nanosleep_u32%(50u%);", program.source)
    kernels.compiles(program, {"sm_80", "sm_90a"})
    assert.equal("cute.arch.nanosleep of 2000000 ns; 0 to 1000000 are possible "
      .. "[bad-argument]", (support.message(function()
        cute.kernel("k", function() cute.arch.nanosleep(2000000) end)()
          :trace {block = 1}
      end)))
  end)
end)
-- SPDX-License-Identifier: MIT
