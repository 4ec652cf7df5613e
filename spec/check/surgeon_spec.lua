-- The surgeon: what of our kernels' synchronisation is needed, and whether
-- what was taken out is put in again. The whole set: CUTELUA_ALL=1, and
-- SPECS=spec/check/surgeon_spec.lua make test.
local check = require "cute.check"
local core = require "cute.core"
local cute = require "cute"
local kernel = require "cute.lang.kernel"
local support = require "spec.support"
local surgeon = require "cute.check.surgeon"

-- Calls each(program, run) for each kernel that a script launches.
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
  {"reduce", ""}}  -- not gemm_splitk, which ends the process: it spills

if os.getenv "CUTELUA_ALL" then table.move(ALL, 1, #ALL, #SOME + 1, SOME) end

-- Operations that the surgeon can put in.
local function can_put(o)
  return o.op ~= "order" and o.op ~= "mbarrier.wait"
    and not (o.op == "bar.sync" and o.imm > 0)
end

describe("the surgeon", function()
  it("finds again what was taken out of our kernels #noasan", function()
    local planted, first, any, lost = 0, 0, 0, {}
    for _, script in ipairs(SOME) do
      over(script[1], script[2], function(program, run)
        for _, n in ipairs(surgeon.needs(run, program.fn)) do
          if n.need == "needed" and n.fault and can_put(n.op) then
            planted = planted + 1
            local m = surgeon.mend(surgeon.edited(run, surgeon.without(n.op)),
                                   program.fn, n.fault, 60, n.op)
            local one, some = false, false
            if m then one, some = surgeon.finds(program.fn, n.op, m) end
            first = first + (one and 1 or 0)
            any = any + (some and 1 or 0)
            if not some then
              lost[#lost + 1] = ("%s: %s:%d %s: %s"):format(program.info.name,
                n.file, n.line, n.words, m and surgeon.advice(m) or "nothing")
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

  it("says of each operation of a GEMM whether it is needed", function()
    local function needs(k)
      local list
      over("gemm3stage", GEMM .. k, function(program, run)
        list = surgeon.needs(run, program.fn)
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
    list = needs(32)  -- kernels/gemm_sm80, one tile: no stage is filled again
    assert.same({"needed", "needed", "not needed", "not needed"},
                {list[1].need, list[2].need, list[3].need, list[4].need})
  end)

  it("weakens a barrier that one warp meets at", function()
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
    assert.matches("surgeon_spec.lua:%d+: cute.arch.sync_threads%(%): needed "
      .. "%(without it: warp%-race%); cute.arch.sync_warp%(%) would do at "
      .. "these sizes\n.*: cute.arch.sync_threads%(%): not needed", tostring(v))
    assert.matches('"needs":%[{"fault":"warp%-race","file":"surgeon_spec.lua",'
      .. '"line":%d+,"need":"needed","weaker":"cute.arch.sync_warp%(%)"',
      v:json())
  end)

  it("proposes the line that a bug lacks", function()
    local function bug(f)
      local k = cute.kernel("k", function(x, y)
        local t = cute.arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
        f(x, y, s, t)
      end)
      local v = k(cute.randn({64}, cute.f32), cute.zeros({64}, cute.f32))
        :check {grid = 1, block = 64, surgeon = true}
      assert.equal("bug", v.verdict)
      return v
    end
    local here = debug.getinfo(1, "l").currentline
    local v = bug(function(x, y, s, t)
      s[t] = x[t]
      y[t] = s[63 - t]
    end)
    assert.equal("cute.arch.sync_threads()", v.mend.words)
    assert.equal(1, #v.mend.places)
    assert.equal(here + 3, v.mend.places[1].line)
    assert.matches("mended by cute.arch.sync_threads%(%) before "
      .. "surgeon_spec.lua:" .. here + 3, tostring(v))
    here = debug.getinfo(1, "l").currentline
    v = bug(function(x, y, s, t)
      for _ in cute.range(3) do
        s[t] = x[t]
        cute.arch.sync_threads()
        y[t] = y[t] + s[63 - t]
      end
    end)
    assert.equal("cute.arch.sync_threads()", v.mend.words)
    local lines = {}
    for _, p in ipairs(v.mend.places) do lines[p.line] = true end
    assert.is_true(lines[here + 3])  -- before it is filled again
    v = bug(function(x, y, s, t)
      s[t] = x[t]
      y[t] = s[t ~ 1]
    end)
    assert.equal("cute.arch.sync_warp()", v.mend.words)
  end)

  it("refuses edits that are none", function()
    local k = cute.kernel("k", function(x) x[0] = 1 end)
    local x = cute.zeros({1}, cute.f32)
    local p = k(x):compile {grid = 1, block = 1, device = "sim"}
    for _, e in ipairs {{ref = 0, how = "drop"}, {ref = 1 << 20, how = "drop"},
                        {ref = 1, how = "before", op = "add"}} do
      local o = {edits = {e}}
      for name, v in pairs(kernel.sim_launch(p, {}, p.values, p.grid)) do
        o[name] = v
      end
      support.raises("sim_run: edit 1 is none",
                     function() core.sim_run(p.program.fn, o) end)
    end
  end)
end)
