-- Tests preflight, which lists the features that a kernel needs and a target
-- lacks. A target must reject the kernel if, and only if, a feature is missing
-- or a limit of blocks, threads or memory is exceeded. Covers all targets.
local core = require "cute.core"
local cute = require "cute"
local devices = require "cute.lang.devices"
local raises = require "spec.support".raises

local function plain()
  return cute.kernel("plain", function(x)
    x[cute.arch.thread_idx()] = 1.0
  end)(cute.zeros({128}, cute.f32))
end

local function async(kb)
  return cute.kernel("async", function(x)
    local tid = cute.arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout {kb * 256})
    local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.f32,
                                     128)
    cute.copy(atom, cute.local_tile(x, {4}, {tid}),
              cute.local_tile(s, {4}, {tid}))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    x[tid] = s[tid * 4]
  end)(cute.zeros({128}, cute.f32))
end

local function clusters()
  return cute.kernel("clusters", function(x)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    x[cute.arch.thread_idx()] = 1.0
  end)(cute.zeros({128}, cute.f32))
end

local function by(r, what)
  for _, c in ipairs(r.checks) do
    if c.what == what then return c end
  end
end

local function names(r)
  local list = {}
  for i, x in ipairs(r.lacks) do list[i] = x.name end
  return table.concat(list, ", ")
end

describe("preflight", function()
  it("reports the missing features of one target, and their lines", function()
    local o = {block = 32, registers = false}
    local r = async(1):preflight("sm_75", o)
    assert.is_false(r.ok)
    assert.equal("cp.async", names(r))
    assert.equal(21, r.lacks[1].line)
    assert.equal("sm_80 and newer", r.lacks[1].needs)
    assert.is_truthy(tostring(r):find("kernel async does not run on sm_75\n",
                                      1, true))
    assert.is_truthy(tostring(r):find("lacks cp.async (preflight_spec.lua:21), "
      .. "which needs sm_80 and newer", 1, true))
    assert.is_true(async(1):preflight("sm_80", o).ok)
    raises("no architecture 'sm_81'", function()
      local x = async(1):preflight("sm_81", o)
      return x
    end)
  end)

  it("counts shared memory, threads, clusters", function()
    local o = {block = 32, registers = false}
    local r = async(100):preflight("sm_86", o)
    assert.is_false(r.ok)
    assert.same({"102400", "101376", false}, {by(r, "shared memory").needs,
      by(r, "shared memory").has, by(r, "shared memory").ok})
    assert.is_true(async(100):preflight("sm_80", o).ok)
    assert.equal(1, async(100):preflight("sm_80", o).blocks)
    o = {block = 64, cluster = 2, registers = false}
    assert.is_false(clusters():preflight("sm_80", o).ok)
    assert.is_true(clusters():preflight("sm_100a", o).ok)
    o.cluster = 16
    local wide = clusters():preflight("sm_90a", o)
    assert.is_true(wide.ok)
    assert.is_nil(by(wide, "cluster").ok)  -- nil: the answer depends on the GPU
  end)

  it("agrees with rejected launches, on all targets", function()
    for _, make in ipairs {plain, function() return async(70) end,
                           function() return async(200) end, clusters} do
      local list = make():preflight {block = 32, registers = false}
      local archs, seen = core.archs(), {}
      for _, r in ipairs(list) do
        local program = make():trace {block = 32}
        local ok = pcall(function()
          local sm = devices.sm(r.target)
          program.fn:check_smem(sm)
          program.fn:check_arch(sm, r.target)
        end)
        assert.equal(ok, r.ok, r.target .. "\n" .. tostring(r))
        seen[archs[r.target]] = true
      end
      for _, name in ipairs(archs) do assert.is_true(seen[archs[name]]) end
    end
  end)

  it("knows features of one chip", function()
    local mma = cute.make_tiled_mma(cute.nvgpu.warpgroup.MmaF16BF16Op(
      cute.bf16, cute.f32, {64, 64, 16}, "SMEM"))
    local l = cute.tile_to_shape(cute.nvgpu.warpgroup.make_smem_layout_atom(
      "K_SW128", cute.bf16), {64, 64})
    local call = cute.kernel("multiply", function(out)
      local tid = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.bf16, l, 1024)
      local thr = mma:get_slice(tid)
      local a = mma:make_fragment_A(thr:partition_A(s))
      local b = mma:make_fragment_B(thr:partition_B(s))
      local c = thr:make_fragment_C(thr:partition_C(out))
      c:fill(0)
      cute.nvgpu.warpgroup.fence()
      cute.gemm(mma, c, a, b, c)
      cute.nvgpu.warpgroup.commit_group()
      cute.nvgpu.warpgroup.wait_group(0)
      cute.autovec_copy(c, thr:partition_C(out))
    end)(cute.make_tensor(cute.zeros({4096}, cute.f32).iterator,
                          cute.make_layout({64, 64}, {64, 1})))
    local o = {block = 128, registers = false}
    assert.is_true(call:preflight("sm_90a", o).ok)
    for _, arch in ipairs {"sm_90", "sm_100a", "sm_120a"} do
      local r = call:preflight(arch, o)
      assert.is_false(r.ok)
      assert.is_truthy(names(r):find("SM90_64x64x16", 1, true), names(r))
      assert.is_truthy(tostring(r):find("which needs sm_90a alone", 1, true),
                       tostring(r))
    end
    local text = tostring(call:preflight(o))
    assert.is_truthy(text:find "\nsm_90a +8192 +232448 +%- +%d+ by")
    assert.is_truthy(text:find "\nsm_100a [^\n]*lacks wgmma and 1 more\n")
  end)

  it("gets registers from NVRTC, if available", function()
    local r = plain():preflight("sm_90a", {block = 128})
    local c = by(r, "registers")
    if not r.registers then
      assert.is_truthy(c.needs:find "^unknown: ")
      assert.is_nil(c.ok)
      return
    end
    assert.is_true(r.registers > 0 and c.ok)
    assert.equal("255", c.has)
    assert.equal("64", by(plain():preflight("sm_90a", {block = 1024}),
                          "registers").has)
    assert.is_truthy(tostring(plain():preflight {block = 128})
      :find("\nsm_90a +0 +232448 +" .. r.registers .. " "))
  end)

  it("gives a source of each limit", function()
    for _, c in ipairs(plain():preflight("sm_100a", {block = 32,
        registers = false}).checks) do
      assert.is_true(#c.source > 10, c.what)
    end
  end)
end)

describe("preflight", function()
  it("rejects unknown options", function()
    raises("no option 'blok' (did you mean block?)", function()
      local x = plain():preflight("sm_80", {blok = 3})
      return x
    end)
    raises("registers = 3; true or false is needed", function()
      local x = plain():preflight("sm_80", {block = 32, registers = 3})
      return x
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
