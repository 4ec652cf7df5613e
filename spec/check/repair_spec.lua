-- Tests the repair search: it must find the synchronization that our kernels
-- need, and put removed synchronization back. spec/faults/repair/ has faulty
-- scripts and the lines that the search must propose for them. To test all
-- kernels, run CUTELUA_ALL=1 SPEC_SECONDS=3600 SPECS=spec/check/repair_spec.lua
-- make test.
local check = require "cutelua.check"
local core = require "cute.core"
local cute = require "cute"
local kernel = require "cute.lang.kernel"
local support = require "spec.support"
local repair = require "cutelua.check.repair"

-- Calls each(program, run) once for each kernel that a script launches.
local function over(script, options, each)
  local known, before, own = {}, kernel.runner, arg
  local words = {[0] = "scripts/" .. script .. ".lua", "--device", "sim"}
  for word in options:gmatch "%S+" do words[#words + 1] = word end
  kernel.runner = {run = function(program, launch)
    if not known[program.info.name] then
      known[program.info.name] = true
      each(program, check.runner(program, launch))
    end
    return core.sim_run(program.fn, launch)
  end}
  local out, print_, stdout = io.output(), print, io.stdout
  local quiet <close> = assert(io.open("/dev/null", "w"))
  io.output(quiet)
  rawset(io, "stdout", quiet)
  _G.print, _G.arg = function() end, words
  local ok, why = pcall(assert(loadfile(words[0])), table.unpack(words))
  io.output(out)
  rawset(io, "stdout", stdout)
  _G.print, _G.arg, kernel.runner = print_, own, before
  assert(ok, why)
end

local GEMM = "--m 128 --n 128 --k "

local SOME = {{"gemm2stage", GEMM .. 192}, {"copy_async", ""},
              {"transpose", ""}, {"histogram", ""}}
local ALL = {{"gemm3stage", GEMM .. 256}, {"gemm_wgmma", GEMM .. 384},
  {"gemm_ws", GEMM .. 768}, {"gemm_tma", GEMM .. 512},
  {"gemm_base", GEMM .. 96}, {"gemm_hopper", GEMM .. 512},
  {"copy_basic", ""}, {"copy_swizzled", ""}, {"copy_vector", ""},
  {"copy_tma", ""}, {"softmax", ""}, {"layernorm", ""}, {"rmsnorm", ""},
  {"scan", ""}, {"topk", ""}, {"selective_scan", ""}, {"attention", ""},
  {"conv2d", ""}, {"gemm_epilogue", ""}, {"argmax", ""}, {"gemm_grouped", ""},
  {"sgemm", GEMM .. 64}, {"gemm_tf32", GEMM .. 96}, {"gemm_int8", GEMM .. 192},
  {"gemm_f64", GEMM .. 48}, {"attention_decode", ""},
  {"gemm_l2swizzle", GEMM .. 96}, {"gemm_sm80_best", GEMM .. 96},
  -- gemm_splitk needs too many registers, so it is not in this list.
  {"reduce", ""}}

if os.getenv "CUTELUA_ALL" then table.move(ALL, 1, #ALL, #SOME + 1, SOME) end

local function ints(n) return cute.zeros({n}, cute.i32) end
local arch = cute.arch

describe("the repair search", function()
  it("restores synchronization removed from our kernels #noasan #long",
     function()
    local planted, first, any, lost = 0, 0, 0, {}
    for _, script in ipairs(SOME) do
      over(script[1], script[2], function(program, run)
        for _, n in ipairs(repair.needs(run, program.fn)) do
          if n.need == "needed" and n.fault then
            planted = planted + 1
            local m = repair.mend(repair.edited(run, repair.without(n.op)),
                                   program.fn, n.fault,
                                   {seconds = 60, gone = n.op})
            local one, some = false, false
            if m then one, some = repair.finds(program.fn, n.op, m) end
            first = first + (one and 1 or 0)
            any = any + (some and 1 or 0)
            if not some then
              lost[#lost + 1] = ("%s: %s:%d %s: %s"):format(program.info.name,
                n.file, n.line, n.words, m and repair.advice(m) or "nothing")
            end
          end
        end
      end)
    end
    local told = ("%d planted, %d mended where they were, %d of them first\n%s")
      :format(planted, any, first, table.concat(lost, "\n"))
    if os.getenv "CUTELUA_ALL" then print(told) end
    assert.is_true(planted >= 7, told)
    assert.is_true(any >= planted * 2 // 3, told)
  end)

  it("reports for each operation of a GEMM whether it is needed", function()
    local function needs(k)
      local list
      over("gemm3stage", GEMM .. k, function(program, run)
        list = repair.needs(run, program.fn)
      end)
      return list
    end
    local list = needs(256)
    assert.equal(4, #list)
    for _, n in ipairs(list) do
      assert.equal("needed", n.need)
      assert.is_nil(n.weaker)
      assert.is_truthy(n.words:find "cp_async_wait_group%(1%)"
        or n.words:find "sync_threads")
    end
    list = needs(32)  -- With a single tile, kernels/gemm_sm80 refills no stage.
    assert.same({"needed", "needed", "not needed", "not needed"},
                {list[1].need, list[2].need, list[3].need, list[4].need})
  end)

  it("weakens a barrier that only one warp needs", function()
    local k = cute.kernel("k", function(x, y)
      local t = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout(32))
      s[t] = x[t]
      cute.arch.sync_threads()
      y[t] = s[31 - t]
      cute.arch.sync_threads()
    end)
    local v = k(cute.randn({32}, cute.f32), cute.zeros({32}, cute.f32)):check {
      grid = 1, block = 32, surgeon = true}
    assert.equal(2, #v.needs)
    assert.equal("needed", v.needs[1].need)
    assert.equal("cute.arch.sync_warp()", v.needs[1].weaker)
    assert.equal("not needed", v.needs[2].need)
    assert.matches("repair_spec.lua:%d+: cute.arch.sync_threads%(%): needed "
      .. "%(without it: warp%-race%); cute.arch.sync_warp%(%) suffices at "
      .. "these sizes\n.*: cute.arch.sync_threads%(%): not needed", tostring(v))
    assert.matches('"needs":%[{"fault":"warp%-race","file":"repair_spec.lua",'
      .. '"line":%d+,"need":"needed","weaker":"cute.arch.sync_warp%(%)"',
      v:json())
  end)

  it("gives back an order that it took, and waits in every block", function()
    local function one(f, o, ...)
      local p = cute.kernel("k", f)(...):compile(o)
      local run = check.runner(p.program, kernel.sim_launch(p, {}, p.values,
                                                            p.grid))
      for _, n in ipairs(repair.needs(run, p.program.fn)) do
        if n.op.op == "order" or n.op.op == "mbarrier.wait" then
          assert.equal("needed", n.need)
          local m = repair.mend(repair.edited(run, repair.without(n.op)),
                                 p.program.fn, n.fault, {gone = n.op})
          assert.is_table(m, n.words)
          assert.is_true(repair.finds(p.program.fn, n.op, m), n.words)
          return m.words
        end
      end
    end
    local how = {grid = 4, block = 64, device = "sim"}
    assert.equal('sem = "acq_rel"', one(function(x, y, c)
      cute.when(arch.thread_idx():eq(0), function()
        x[arch.block_idx()] = 1
        local n = arch.atomic_add(c.iterator, 1, {sem = "acq_rel",
                                                  scope = "gpu"})
        cute.when(n:eq(3), function() y[0] = x[0] + x[3] end)
      end)
    end, how, ints(4), ints(1), ints(1)))
    local want = "mbarrier_wait%(bar %+ n %% 1, n // 1 %% 2%)"
    assert.matches(want, one(function(x)
      local t, b = arch.thread_idx(), arch.block_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))
      local bar = arch.alloc_smem(cute.i64, 1)
      cute.when(t:eq(0), function()
        arch.mbarrier_init(bar, 64)
      end)
      arch.sync_threads()
      s[t] = t
      arch.mbarrier_arrive(bar)
      arch.mbarrier_wait(bar, 0)
      x[b * 64 + t] = s[63 - t]
    end, how, ints(256)))
  end)
end)

-- Uses three barriers in a loop, and one after it. One of the last two in the
-- loop is unnecessary, and so is the one after the loop.
local function three(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(128))
  for _ in cute.range(20) do
    s[t] = x[t]
    arch.sync_threads()
    y[t] = s[127 - t]
    arch.sync_threads()
    arch.sync_threads()
  end
  arch.sync_threads()
end

local function gains(o)
  local launch = {grid = 1, block = 128, surgeon = true}
  for k, v in pairs(o) do launch[k] = v end
  local v = cute.kernel("three", three)(cute.randn({128}, cute.f32),
    cute.empty({128}, cute.f32)):check(launch)
  local needs = {}
  for i, n in ipairs(v.needs) do needs[i] = n.need end
  assert.same({"needed", "not needed", "not needed", "not needed"}, needs)
  assert.is_nil(v.needs[1].gain)
  return v, v.needs
end

describe("the repair search", function()
  it("estimates the gain of removing unnecessary operations", function()
    local v, needs = gains {gpu = false}
    for i = 2, 4 do
      local g = needs[i].gain
      assert.is_true(g.without < g.with, i)
      assert.equal("the model's estimate, H200", g.how)
    end
    assert.is_true(needs[2].gain.without < needs[4].gain.without)  -- 20 times
    -- Either needs[2] or needs[3] can be removed, but not both.
    assert.same({needs[2], needs[4]}, needs.together)
    assert.is_true(needs.gain.without < needs[2].gain.without)
    assert.matches("cute.arch.sync_threads%(%): not needed; %d+.%d+ us without "
      .. "it, %d+.%d+ with %(the model's estimate, H200%)", tostring(v))
    assert.matches("not needed together: repair_spec.lua:%d+, repair_spec.lua"
      .. ":%d+; %d+.%d+ us without them, ", tostring(v))
    assert.matches('"gain":{"how":"the model\'s estimate, H200","with":',
                   v:json())
  end)

  it("reports which of two has to stay", function()
    local v, needs = gains {gpu = false}
    assert.same({needs[2], needs[3]}, needs[2].one_of)
    assert.equal(needs[2].one_of, needs[3].one_of)
    assert.is_nil(needs[4].one_of)
    assert.matches("cute.arch.sync_threads%(%): one of these two is needed, "
      .. "this or repair_spec.lua:" .. needs[3].line, tostring(v))
    assert.matches('"one_of":%[{"file":"repair_spec.lua","line":'
      .. needs[2].line .. "}", v:json())
  end)

  it("reports for any number which one has to stay, and for pairs", function()
    local function of(f)
      local v = cute.kernel("k", f)(cute.randn({64}, cute.f32),
        cute.empty({64}, cute.f32)):check {grid = 1, block = 64,
        surgeon = true, gpu = false}
      assert.equal("ok", v.verdict, tostring(v))
      local sizes = {}
      for i, n in ipairs(v.needs) do
        sizes[i] = n.one_of and #n.one_of or n.need
      end
      return sizes, tostring(v)
    end
    local sizes, text = of(function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
      s[t] = x[t]
      -- The three barriers of the loop are on one line, so they count as one.
      for _ = 1, 3 do arch.sync_threads() end
      arch.sync_threads()
      arch.sync_threads()
      y[t] = s[63 - t]
    end)
    assert.same({3, 3, 3}, sizes, text)
    assert.matches("one of these three is needed, this or repair_spec.lua:%d+ "
      .. "or repair_spec.lua:%d+", text)
    sizes, text = of(function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
      local d = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
      s[t] = x[t]
      arch.sync_threads()
      arch.sync_threads()
      d[t] = s[63 - t]
      arch.sync_threads()
      y[t] = d[63 - t]
    end)
    assert.same({2, 2, "needed"}, sizes, text)
  end)
end)

describe("the repair search", function()
  it("estimates a launch that may overlap the preceding one", function()
    local function add(x, y)  -- no griddepcontrol_wait
      local t = arch.thread_idx()
      arch.sync_warp()
      y[t] = y[t] + x[t]
    end
    local v = cute.kernel("add", add)(cute.zeros({32}, cute.f32),
      cute.zeros({32}, cute.f32)):check {grid = 1, block = 32, pdl = true,
        surgeon = true, gpu = false, device = "sim:sm_90a"}
    assert.equal("not needed", v.needs[1].need)
    assert.is_true(v.needs[1].gain.with > 0)
  end)

  it("reports why the time of a launch is unknown", function()
    -- Waits until the other block arrives. The cost model runs a single block,
    -- in which nobody else arrives.
    local function meet(x, c)
      local t, b = arch.thread_idx(), arch.block_idx()
      x[b * 32 + t] = t
      arch.sync_warp()
      cute.when(t:eq(0), function()
        arch.atomic_add(c.iterator, 1, {sem = "relaxed", scope = "gpu"})
        cute.loop(function()
          return arch.load(c.iterator, cute.i32,
                           {sem = "relaxed", scope = "gpu"}):lt(2)
        end, function() end)
      end)
    end
    local v = cute.kernel("meet", meet)(ints(64), ints(1)):check {grid = 2,
      block = 32, surgeon = true, gpu = false}
    local why = "the launch has a fault (deadlock, found when one cluster ran "
      .. "alone) and is not estimated"
    assert.equal("ok", v.verdict)
    assert.equal("not needed", v.needs[1].need)
    assert.same({why = why}, v.needs[1].gain)
    assert.is_truthy(tostring(v):find(
      "sync_warp(): not needed; time unknown: " .. why, 1, true), tostring(v))
  end)

  it("reports any error of an estimate beside its verdict", function()
    local redundant_sync, estimator = require "cutelua.check.redundant_sync",
      require "cutelua.profile.estimate"
    local of, said = estimator.of, nil
    estimator.of = function() error(said, 0) end
    local function time_of()
      local p = cute.kernel("three", three)(cute.empty({128}, cute.f32),
        cute.empty({128}, cute.f32)):trace {block = 128}
      return pcall(redundant_sync.times, p, {args = {}}, {}, false)
    end
    said = "attempt to index a nil value (local 'x')"
    local ok, times, _, why = time_of()
    said = "interrupted"
    local went_on, stopped = time_of()
    estimator.of = of
    assert.is_true(ok)
    assert.same({}, times)
    assert.same({[0] = "attempt to index a nil value (local 'x')"}, why)
    assert.same({false, "interrupted"}, {went_on, stopped})
  end)

  it("measures it on a GPU #gpu", function()
    local v, needs = gains {gpu = true}
    assert.matches("us without it, %d+.%d+ with %(measured alternately, ",
                   tostring(v))
    assert.matches("^measured alternately, ", needs.gain.how)
    assert.is_true(needs.gain.without > 0 and needs.gain.with > 0)
    -- A second run of the kernel changes x again, so it cannot be measured.
    local k = cute.kernel("k", function(x)
      x[arch.thread_idx()] = x[arch.thread_idx()] + 1
      arch.sync_threads()
    end)
    v = k(cute.zeros({32}, cute.f32)):check {grid = 1, block = 32,
                                             surgeon = true, gpu = true}
    assert.matches("the model's estimate", tostring(v))
  end)
end)

describe("the repair search", function()
  it("changes a function while it is written, and no longer", function()
    local p = cute.kernel("three", three)(cute.empty({128}, cute.f32),
      cute.empty({128}, cute.f32)):trace {block = 128}
    local function barriers()
      return select(2, p.fn:emit(90):gsub("__syncthreads", ""))
    end
    local sites = {}
    for _, s in ipairs(core.sim_sites(p.fn)) do
      if s.op == "bar.sync" then sites[#sites + 1] = s.ref end
    end
    assert.equal(4, barriers())
    local function with(edits, f) return core.with_edits(p.fn, {edits = edits},
                                                         f) end
    assert.equal(3, with({{ref = sites[1], how = "drop"}}, barriers))
    assert.equal(2, with({{ref = sites[1], how = "drop"},
      {ref = sites[3], how = "drop"}}, barriers))
    support.raises("no luck", with, {{ref = sites[1], how = "drop"}},
                   function() error "no luck" end)
    assert.equal(4, barriers())
    support.raises("with_edits: edits must not insert instructions", with,
      {{ref = sites[1], how = "before", op = "syncwarp"}}, barriers)
  end)

  it("rejects invalid edits", function()
    local k = cute.kernel("k", function(x) x[0] = 1 end)
    local x = cute.zeros({1}, cute.f32)
    local p = k(x):compile {grid = 1, block = 1, device = "sim"}
    for _, e in ipairs {{ref = 0, how = "drop"}, {ref = 1 << 20, how = "drop"},
                        {ref = 1, how = "before", op = "add"},
                        {ref = 1, how = "before", op = "mbarrier.wait",
                         mem = 1, count = 1}} do
      local o = {edits = {e}}
      for name, v in pairs(kernel.sim_launch(p, {}, p.values, p.grid)) do
        o[name] = v
      end
      support.raises("sim_run: edit 1 is invalid",
                     function() core.sim_run(p.program.fn, o) end)
    end
  end)
end)

describe("a search without a repair", function()
  it("says how many edits it tried if none is a repair", function()
    local k = cute.kernel("far", function(x, y)
      local t = cute.arch.thread_idx()
      y[t * 2] = x[t]
    end)
    local v = k(cute.rand({32}, cute.f32), cute.zeros({40}, cute.f32)):check {
      grid = 1, block = 32, surgeon = true, gpu = false}
    assert.is_nil(v.mend)
    assert.matches("\n  no repair was found: %d+ edits of the synchronization, "
      .. "or of its operands, were tried$", tostring(v))
    assert.matches('"tried":{"edits":%d+,"late":false}', v:json())
    assert.equal("no repair was found: 1 edit of the synchronization, or of "
      .. "its operands, was tried until the time limit (--seconds)",
      repair.failure {edits = 1, late = true})
    assert.equal("no repair was searched for: without a fault or a reference, "
      .. "nothing shows whether an edit fixes the bug",
      repair.failure {edits = 0})
  end)
end)
-- SPDX-License-Identifier: MIT
