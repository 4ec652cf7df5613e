-- Tests lessons of the library's kernels. On the simulator they must be right
-- with every type and option, without reports. The verification must detect a
-- wrong element of any result. NVRTC must accept the GPU kernels, and the
-- export for other programs must work.
local cute = require "cute"
local harness = require "cutelua.bench.harness"
local kernels = require "spec.kernels"
local lib = require "cutelua.bench.lessonlib"
local support = require "spec.support"

-- Returns the target of a lesson's kernels.
local function arch_of(spec) return spec.arch or "sm_90a" end

-- The lessons: name, and further problems {size, dtype, options}. `make test`
-- leaves out the lessons in LONG, because it runs similar lessons and other
-- specs of the same kernels.
local LONG = {attention = " #long", attention_hopper = " #long",
              attention_sm100 = " #long", attention_backward = " #long",
              attention_backward_hopper = " #long",
              attention_decode = " #long", conv2d_hopper = " #long",
              gemm_sm120 = " #long", gemm_mxf8 = " #long",
              gemm_nvf4 = " #long"}
local LESSONS = {
  {"layernorm", {{3, 77}, "f32"}}, {"softmax_backward", {{3, 77}, "f16"}},
  {"argmax", {{5, 33}, "f32", {smallest = true}}},
  {"rope", {{7, 3, 12, 5}, "f32", {interleaved = true}},
           {{7, 2, 16, 5}, "f16", {inverse = true}},
           {{9, 2, 16, 5}, "bf16", {at = true}}},
  {"attention", {{2, 33, 40, 4, 2, 32}, "f16", {causal = true}}},
  {"attention_hopper", {{1, 70, 90, 4, 2, 64}, "f16", {causal = true}}},
  {"attention_sm100", {{1, 40, 70, 4, 2, 128}, "f16", {causal = true}}},
  {"conv2d_hopper", {{2, 7, 6, 128, 40}, "f16", {taps = 2, stride = 2}}},
  {"attention_backward", {{2, 20, 30, 4, 2, 32}, "f16", {causal = true}},
                         {{1, 9, 7, 1, 1, 192}, "bf16"}},
  {"attention_backward_hopper", {{1, 70, 90, 4, 2, 64}, "f16", {causal = true}},
                                {{1, 40, 50, 1, 1, 256}, "bf16"},
                                {{1, 70, 90, 4, 1, 64}, "f16", {splits = 2}},
                                {{1, 70, 90, 4, 1, 64}, "bf16",
                                 {["by-size"] = true}}},
  {"attention_decode", {{1, 50, 3, 1, 32}, "f16"}},
  {"gemm_splitk", {{65, 40, 200}, "f16", {splits = 3}}},
  {"gemm_grouped", {{3, 70, 33, 40}, "f16"}},
  {"gemm_epilogue", {{65, 33, 40}, "f16"}},
  {"gemm_sm120", {{17, 33, 160}, "f32"}, {{129, 3, 26}, "bf16"}},
  {"gemm_mxf8", {{17, 33, 160}, "f32"}, {{129, 3, 32}, "bf16"}},
  {"gemm_nvf4", {{17, 33, 160}, "f32"}, {{129, 3, 32}, "bf16"}},
}

local function spec_of(name)
  return assert(lib.script_spec("scripts/" .. name .. ".lua",
                                "cutelua.bench.harness", "run"))
end

-- Changes the first element of each result in turn, and checks that verify()
-- finds it.
local function finds_what_is_wrong(p)
  for _, o in ipairs(p.operands) do
    if o.out and not o.scratch then
      local b = p[o.name]
      local was = b[0]
      b[0] = was + 1 + math.abs(was)
      local right, _, wrong = harness.verify(p)
      assert.is_false(right, o.name)
      assert.truthy(wrong:find("^" .. o.name .. "%(0"), wrong)
      b[0] = was
    end
  end
end

describe("the lesson", function()
  for _, l in ipairs(LESSONS) do
    local name = l[1]
    it(name .. " is right, and sees what is not" .. (LONG[name] or ""),
       function()
      local spec = spec_of(name)
      for i, c in ipairs {{spec.sim[1], spec.dtypes[1]},
                          table.unpack(l, 2)} do
        local p = harness.problem(spec, c[1], {dtype = c[2], opt = c[3]})
        local ok, reports, wrong = harness.try(p, "sim:" .. arch_of(spec))
        assert.is_true(ok, wrong or tostring(reports[#reports]))
        if i == 1 then finds_what_is_wrong(p) end
      end
    end)

    it(name .. " is accepted by NVRTC" .. (LONG[name] or ""), function()
      local spec = spec_of(name)
      local p = harness.problem(spec, spec.sim[1], {bare = true})
      for _, r in ipairs(harness.launches(p, spec.make)) do
        local program = r.kernel(table.unpack(r.args, 1, r.args.n)):trace {
          block = r.block}
        if not kernels.compiles(program, {arch_of(spec)}) then return end
      end
    end)

    it(name .. " is right on a GPU #gpu", function()
      local spec = spec_of(name)
      if spec.arch and cute.device("gpu").arch ~= spec.arch then
        pending("needs a GPU of target " .. spec.arch)
        return
      end
      local p = harness.problem(spec, spec.sim[1])
      local ok, _, wrong = harness.try(p, "gpu")
      assert.is_true(ok, wrong)
    end)
  end
end)

describe("lessons of the library", function()
  it("print their results", function()
    local out, err, code = support.run {"scripts/gemm_grouped.lua",
                                        "--device", "sim", "--m", "70"}
    assert.equal("", err)
    assert.equal(0, code)
    assert.truthy(out:find("verified .-: ok"), out)
  end)

  it("name an operand whose view a kernel takes", function()
    local p = harness.problem(spec_of "gemm_grouped", {2, 64, 32, 16})
    local l = harness.launches(p, p.spec.make)[1]
    assert.same({"a", "b", "c", "offsets", n = 4}, l.names)
    assert.same({32, 16, 2}, {table.unpack(l.args[2].shape)})
    assert.same({2, 32, 16}, {table.unpack(p.tensors.b.shape)})
  end)

  it("are entries that compete with others", function()
    local text = support.read "spec/bench/rivals.py"
    for _, l in ipairs(LESSONS) do
      local entry = ('@entry("scripts/%s.lua"'):format(l[1])
      -- rivals.py runs on one GPU, so it omits scripts that need another
      -- target.
      assert.truthy(spec_of(l[1]).arch or text:find(entry, 1, true), l[1])
    end
  end)
end)
-- SPDX-License-Identifier: MIT
