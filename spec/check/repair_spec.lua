-- The surgeon: what of our kernels' synchronisation is needed, and whether
-- what was taken out is put in again. The whole set: CUTELUA_ALL=1,
-- SPEC_SECONDS=3600 and SPECS=spec/check/repair_spec.lua make test.
local check = require "cutelua.check"
local core = require "cute.core"
local cute = require "cute"
local kernel = require "cute.lang.kernel"
local support = require "spec.support"
local repair = require "cutelua.check.repair"

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

describe("the surgeon", function()
  it("finds again what was taken out of our kernels #noasan", function()
    local planted, first, any, lost = 0, 0, 0, {}
    for _, script in ipairs(SOME) do
      over(script[1], script[2], function(program, run)
        for _, n in ipairs(repair.needs(run, program.fn)) do
          if n.need == "needed" and n.fault then
            planted = planted + 1
            local m = repair.mend(repair.edited(run, repair.without(n.op)),
                                   program.fn, n.fault, 60, n.op)
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

  it("says of each operation of a GEMM whether it is needed", function()
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
    assert.matches("repair_spec.lua:%d+: cute.arch.sync_threads%(%): needed "
      .. "%(without it: warp%-race%); cute.arch.sync_warp%(%) would do at "
      .. "these sizes\n.*: cute.arch.sync_threads%(%): not needed", tostring(v))
    assert.matches('"needs":%[{"fault":"warp%-race","file":"repair_spec.lua",'
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
      .. "repair_spec.lua:" .. here + 3, tostring(v))
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

  -- A bug's mend, and its line behind that of the function.
  local function mended(f, o, ...)
    local first = debug.getinfo(f, "S").linedefined
    local launch = {grid = 1, block = 64, surgeon = true, gpu = false}
    for name, v in pairs(o) do launch[name] = v end
    local v = cute.kernel("k", f)(...):check(launch)
    assert.equal("bug", v.verdict, tostring(v))
    assert.is_table(v.mend, tostring(v))
    for _, p in ipairs(v.mend.places) do p.behind = p.line - first end
    return v.mend, tostring(v)
  end

  local function ints(n) return cute.zeros({n}, cute.i32) end
  local arch = cute.arch

  it("strengthens orders: as many as are needed, and for whom", function()
    local function hand(put, get, of, second)
      return function(x, y, f)
        local w = of()
        cute.when(w:eq(0), function()
          x[0] = 7
          arch.store(f.iterator, 1, put)
        end)
        cute.when(w:eq(second), function()
          cute.loop(function()
            return arch.load(f.iterator, cute.i32, get):eq(0)
          end, function() end)
          y[0] = x[0]
        end)
      end
    end
    local function how(sem, scope) return {sem = sem, scope = scope} end
    local function of(put, get, blocks)
      local who = blocks and arch.block_idx or arch.thread_idx
      return mended(hand(put, get, who, blocks and 1 or 32), blocks or {},
                    ints(1), ints(1), ints(1))
    end
    local m = of(how("relaxed", "gpu"), how("acquire", "gpu"))
    assert.same({'sem = "release"', 1}, {m.words, #m.places})
    local _, text = of(how("relaxed", "gpu"), how("relaxed", "gpu"))
    assert.matches('mended by sem = "release" at repair_spec.lua:%d+ and sem '
      .. '= "acquire" at repair_spec.lua:%d+', text)
    m, text = of(how("release", "gpu"), how("acquire", "cta"),
                 {grid = 2, block = 1})
    assert.equal(1, #m.places)
    assert.matches('mended by scope = "gpu" at', text)
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
                                 p.program.fn, n.fault, 20, n.op)
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

  it("puts in a wait at a ring of mbarriers", function()
    local function ring(full_is, empty_is)
      return function(x, y)
        local t = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout {32, 2})
        local full = arch.alloc_smem(cute.i64, 2)
        local empty = arch.alloc_smem(cute.i64, 2)
        cute.when(t:eq(0), function()
          for i = 0, 1 do
            arch.mbarrier_init(full + i, 32)
            arch.mbarrier_init(empty + i, 32)
          end
        end)
        arch.sync_threads()
        cute.when(t:lt(32), function()
          for k in cute.range(6) do
            if empty_is then
              arch.mbarrier_wait(empty + k % 2, (k // 2 + 1) % 2)
            end
            s[{t, k % 2}] = x[{t, k}]
            arch.mbarrier_arrive(full + k % 2)
          end
        end)
        cute.when(t:ge(32), function()
          for k in cute.range(6) do
            if full_is then arch.mbarrier_wait(full + k % 2, k // 2 % 2) end
            y[{t - 32, k}] = s[{63 - t, k % 2}]
            arch.mbarrier_arrive(empty + k % 2)
          end
        end)
      end
    end
    local function of(...)
      return mended(ring(...), {}, cute.randn({32, 6}, cute.f32),
                    cute.empty({32, 6}, cute.f32))
    end
    local m = of(false, true)
    assert.equal("cute.arch.mbarrier_wait(full + n % 2, n // 2 % 2), n being "
      .. "how often it was there,", m.words)
    assert.equal(24, m.places[1].behind)
    m = of(true, false)  -- before it is filled, or behind that
    assert.matches("^cute.arch.mbarrier_wait%(empty %+ n %% 2, ", m.words)
    assert.is_true(m.places[1].behind >= 13 and m.places[1].behind <= 20)
  end)

  it("puts in arrivals that somebody waits for", function()
    local function copies(how)
      return function(x, y)
        local t = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64), 128)
        local bar = arch.alloc_smem(cute.i64, 1)
        cute.when(t:eq(0), function()
          arch.mbarrier_init(bar, how == "bulk" and 1 or 64)
          arch.mbarrier_init_fence()
        end)
        arch.sync_threads()
        if how == "bulk" then
          cute.when(t:eq(0), function()
            cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkG2SOp(),
              cute.f32), x, s, {mbar_ptr = bar})
          end)
        else
          cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32,
            32), cute.local_tile(x, {1}, {t}), cute.local_tile(s, {1}, {t}))
        end
        arch.mbarrier_wait(bar, 0)
        y[t] = s[63 - t]
      end
    end
    local function of(how)
      local m = mended(copies(how), {}, cute.randn({64}, cute.f32),
                       cute.empty({64}, cute.f32))
      return m.words:match "^(.-%)),", m.places[1].behind
    end
    assert.same({"cute.arch.mbarrier_arrive_and_expect_tx(bar + n % 1, 256)",
                 11}, {of "bulk"})
    assert.same({"cute.arch.cp_async_mbarrier_arrive_noinc(bar + n % 1)", 18},
                {of "cp.async"})
  end)

  it("tells threads that arrive at a named barrier from those that wait",
     function()
    local function roles(o)
      return function(x, y)
        local t = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
        cute.when(t:lt(64), function()
          s[t] = x[t]
          if not o.no_arrive then arch.barrier_arrive(1, 128) end
        end, function()
          if o.arrives then arch.barrier_arrive(1, 128)
          else arch.barrier(1, 128) end
          y[t - 64] = s[127 - t]
        end)
      end
    end
    local function of(o)
      local m = mended(roles(o), {block = 128}, cute.randn({64}, cute.f32),
                       cute.empty({64}, cute.f32))
      return m.words, m.places[1].behind
    end
    assert.same({"cute.arch.barrier_arrive(1, 128)", 3},
                {of {no_arrive = true}})
    assert.same({"cute.arch.barrier(1, 128)", 7}, {of {arrives = true}})
  end)

  it("asks of an atomic no more than is needed", function()
    local function lock(sem)
      return function(l, c)
        cute.when(arch.thread_idx():eq(0), function()
          cute.loop(function()
            return arch.atomic_cas(l.iterator, {cmp = 0, val = 1,
              sem = sem}):ne(0)
          end, function() end)
          c[0] = c[0] + 1
          arch.atomic_exch(l.iterator, 0, {
            sem = sem == "relaxed" and "release" or "relaxed"})
        end)
      end
    end
    for sem, words in pairs {relaxed = 'sem = "acquire"',
                             acquire = 'sem = "release"'} do
      local m = mended(lock(sem), {grid = 2, block = 32}, ints(1), ints(1))
      assert.same({words, 1}, {m.words, #m.places})
    end
  end)

  it("puts in a barrier of some of the block's warps", function()
    local m = mended(function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
      cute.when(t:lt(64), function()
        s[t] = x[t]
        y[t] = s[63 - t]
      end)
    end, {block = 128}, cute.randn({64}, cute.f32), cute.empty({64}, cute.f32))
    assert.same({"cute.arch.barrier(1, 64)", 5}, {m.words, m.places[1].behind})
  end)

  -- Every thread writes to the other block of its cluster and reads what that
  -- wrote, between the cluster's barriers or over mbarriers.
  local function across(o)
    return function(out)
      local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))
      local bar = arch.alloc_smem(cute.i64, 1)
      cute.when(t:eq(0), function()
        arch.mbarrier_init(bar, o.count or 64)
        arch.mbarrier_init_fence()
      end)
      local function meet()
        arch.cluster_arrive()
        arch.cluster_wait()
      end
      meet()
      local peer = cute.make_tensor(arch.map_dsmem_ptr(s.iterator, 1 - rank),
                                    s.layout)
      if o.reads then s[t] = t else peer[t] = rank * 100 + t end
      if o.by then
        arch.mbarrier_arrive(bar, 1 - rank, 1, {scope = o.by})
        if not o.no_wait then
          arch.mbarrier_wait(bar, o.parity or 0, {scope = o.to or o.by})
        end
      elseif o.relaxed then
        arch.cluster_arrive_relaxed()
        arch.cluster_wait()
      elseif not o.no_meet then
        meet()
      end
      out[rank * 64 + t] = (o.reads and peer or s)[63 - t]
      if not o.no_last then meet() end
    end
  end

  it("mends what blocks of a cluster hand over", function()
    local both = "cute.arch.cluster_arrive() cute.arch.cluster_wait()"
    local where = {grid = 2, cluster = 2}
    for _, case in ipairs {
      {{no_meet = true}, both, 27},
      {{reads = true, no_meet = true}, both, 27},
      {{relaxed = true}, "cute.arch.cluster_arrive()", 22},
      {{reads = true, no_last = true}, both, 27},
      {{by = "cta", to = "cluster"}, 'scope = "cluster"', 17},
      {{by = "cluster", to = "cta"}, 'scope = "cluster"', 19},
      {{by = "cluster", parity = 1}, "the other parity of mbarrier_wait", 19},
      {{by = "cluster", count = 96}, "mbarrier_init(..., 64)", 5},
      {{by = "cluster", no_wait = true}, 'cute.arch.mbarrier_wait(bar + n % 1, '
        .. 'n // 1 % 2, {scope = "cluster"}), n being how often it was there,',
        27}} do
      local m, text = mended(across(case[1]), where, ints(128))
      assert.equal(case[2], m.words, text)
      assert.equal(case[3], m.places[1].behind, text)
    end
    local m, text = mended(across {by = "cta"}, where, ints(128))
    assert.is_true(m.together)
    assert.matches('mended by scope = "cluster" at repair_spec.lua:%d+ and '
      .. 'scope = "cluster" at repair_spec.lua:%d+', text)
    m, text = mended(across {reads = true, no_last = true}, where, ints(128))
    assert.is_true(m.places[1].last)
    assert.matches("at the end of the kernel, behind repair_spec.lua", text)
  end)

  it("mends groups of copies", function()
    local function copies(o)
      return function(x, y)
        local t = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout(256), 128)
        cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32,
          128), cute.local_tile(x, {4}, {t}), cute.local_tile(s, {4}, {t}))
        if not o.no_commit then arch.cp_async_commit_group() end
        if o.wait then arch.cp_async_wait_group(o.wait) end
        if not o.no_meet then arch.sync_threads() end
        y[t] = s[255 - t * 4]
      end
    end
    local commit = "cute.arch.cp_async_commit_group()"
    local wait = "cute.arch.cp_async_wait_group(0)"
    local meet = "cute.arch.sync_threads()"
    for _, case in ipairs {
      {{no_commit = true, wait = 0}, commit, 6}, {{}, wait, 7},
      {{wait = 2}, wait, 6}, {{wait = 0, no_meet = true}, meet, 8},
      {{no_commit = true}, commit .. " " .. wait, 7},
      {{no_meet = true}, wait .. " " .. meet, 8},
      {{no_commit = true, no_meet = true}, commit .. " " .. wait .. " " .. meet,
       8}} do
      local m, text = mended(copies(case[1]), {}, cute.randn({256}, cute.f32),
                             cute.empty({64}, cute.f32))
      assert.equal(case[2], m.words, text)
      assert.equal(case[3], m.places[1].behind, text)
    end
  end)

  it("mends copies between blocks, and launches that overlap", function()
    local function sent(o)
      return function(out)
        local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 128)
        local r = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 128)
        local bar = arch.alloc_smem(cute.i64, 1)
        cute.when(t:eq(0), function()
          arch.mbarrier_init(bar, 1)
          arch.mbarrier_init_fence()
          arch.mbarrier_arrive_and_expect_tx(bar, o.bytes or 256)
        end)
        s[t] = t
        if o.fence then arch.fence_proxy(table.unpack(o.fence)) end
        arch.cluster_arrive()
        arch.cluster_wait()
        cute.when(t:eq(0), function()
          cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkS2SOp(),
            cute.i32), s, r, {mbar_ptr = bar, cta_rank = 1 - rank})
        end)
        arch.mbarrier_wait(bar, 0)
        out[rank * 64 + t] = r[63 - t]
      end
    end
    local where = {grid = 2, cluster = 2}
    local m = mended(sent {}, where, ints(128))
    assert.equal("cute.arch.fence_view_async_shared()", m.words)
    m = mended(sent {fence = {"async.global"}}, where, ints(128))
    assert.same({'cute.arch.fence_proxy("async")', 11},
                {m.words, m.places[1].behind})
    m = mended(sent {fence = {"async"}, bytes = 128}, where, ints(128))
    assert.same({"256 bytes expected", 8}, {m.words, m.places[1].behind})

    local x, y = ints(64), ints(64)
    cute.kernel("first", function(a)
      a[arch.thread_idx()] = 1
      arch.griddepcontrol_launch_dependents()
    end)(x):launch {grid = 1, block = 64, device = "sim"}
    m = mended(function(a, b)
      b[arch.thread_idx()] = a[arch.thread_idx()]
      arch.griddepcontrol_wait()
      b[arch.thread_idx()] = a[63 - arch.thread_idx()]
    end, {pdl = true}, x, y)
    assert.same({"cute.arch.griddepcontrol_wait()", 1},
                {m.words, m.places[1].behind})
  end)

  it("mends tensor maps that a kernel makes", function()
    local cpasync = cute.nvgpu.cpasync
    local x = cute.randn({32, 16}, cute.f32)
    local tile, layout = {1, 16}, cute.make_layout({1, 16}, {16, 1})
    local atom, coords = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileG2SOp(), x, layout, tile)
    local function maps(o)
      return function(a, c, m, z)
        local s = cute.make_smem_tensor(cute.f32, layout, 128)
        local bar = arch.alloc_smem(cute.i64, 1)
        local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
          cute.group_modes(s, 0, 2), cute.zipped_divide(c, tile))
        cute.when(arch.thread_idx():eq(0), function()
          arch.mbarrier_init(bar, 1)
          arch.mbarrier_init_fence()
          cpasync.copy_tensormap(a, m)
          if o.release then cpasync.fence_tma_desc_release() end
          if o.acquire then cpasync.fence_tma_desc_acquire(m) end
          arch.mbarrier_arrive_and_expect_tx(bar, a.tx_bytes)
          cute.copy(a, tg(cute._, 0), ts, {tma_bar_ptr = bar, tma_desc_ptr = m})
        end)
        arch.sync_threads()
        arch.mbarrier_wait(bar, 0)
        local t = arch.thread_idx()
        z[t] = s[{0, t}]
      end
    end
    local function of(o)
      local m = mended(maps(o), {block = 16}, atom, coords,
                       cute.zeros({16}, cute.i64), cute.empty({16}, cute.f32))
      return m.words, m.places[1].behind
    end
    local name = "cute.nvgpu.cpasync.fence_tma_desc_"
    assert.same({name .. "release()", 10}, {of {acquire = true}})
    assert.same({name .. "acquire(...) of its map", 12}, {of {release = true}})
  end)

  it("proposes what it saw no fault with, where there is more", function()
    local function draws(x, c)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(256))
      s[t] = t
      cute.when((t % 32):eq(0), function()
        for _ = 1, 3 do
          arch.atomic_add(c.iterator + arch.atomic_add(c.iterator, 1), 1)
        end
      end)
      x[t] = s[255 - t]
    end
    local m, text = mended(draws, {block = 256, seconds = 4}, ints(256),
                           ints(64))
    assert.equal("cute.arch.sync_threads()", m.words)
    assert.is_true(m.open)
    assert.matches("mended by cute.arch.sync_threads%(%) before repair_spec"
      .. ".lua:%d+.- %(in the schedules that were looked at: there are more%)",
      text)
  end)

  -- Of two barriers one is enough; the third is of no use.
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

  it("estimates what is gained without what is not needed", function()
    local v, needs = gains {gpu = false}
    for i = 2, 4 do
      local g = needs[i].gain
      assert.is_true(g.without < g.with, i)
      assert.equal("the model's estimate, H200", g.how)
    end
    assert.is_true(needs[2].gain.without < needs[4].gain.without)  -- 20 times
    assert.same({needs[2], needs[4]}, needs.together)  -- 3 is needed without 2
    assert.is_true(needs.gain.without < needs[2].gain.without)
    assert.matches("cute.arch.sync_threads%(%): not needed; %d+.%d+ us without "
      .. "it, %d+.%d+ with %(the model's estimate, H200%)", tostring(v))
    assert.matches("not needed together: repair_spec.lua:%d+, repair_spec.lua"
      .. ":%d+; %d+.%d+ us without them, ", tostring(v))
    assert.matches('"gain":{"how":"the model\'s estimate, H200","with":',
                   v:json())
  end)

  it("says of which one has to stay", function()
    local v, needs = gains {gpu = false}
    assert.same({needs[2], needs[3]}, needs[2].one_of)
    assert.equal(needs[2].one_of, needs[3].one_of)
    assert.is_nil(needs[4].one_of)
    assert.matches("cute.arch.sync_threads%(%): one of these two is needed, "
      .. "this or repair_spec.lua:" .. needs[3].line, tostring(v))
    assert.matches('"one_of":%[{"file":"repair_spec.lua","line":'
      .. needs[2].line .. "}", v:json())
  end)

  it("says of any number which one has to stay, and of pairs which", function()
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
      for _ = 1, 3 do arch.sync_threads() end  -- one line: one operation
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

  it("estimates a launch that may overlap the one before", function()
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

  it("says why the time of a launch is unknown", function()
    -- The model runs one block alone, which waits for the other one.
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
    local why = "nothing is estimated of a launch at fault (deadlock, with "
      .. "one cluster run alone)"
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
    assert.matches("us without it, %d+.%d+ with %(measured in turns, ",
                   tostring(v))
    assert.matches("^measured in turns, ", needs.gain.how)
    assert.is_true(needs.gain.without > 0 and needs.gain.with > 0)
    local k = cute.kernel("k", function(x)  -- not what it would do again
      x[arch.thread_idx()] = x[arch.thread_idx()] + 1
      arch.sync_threads()
    end)
    v = k(cute.zeros({32}, cute.f32)):check {grid = 1, block = 32,
                                             surgeon = true, gpu = true}
    assert.matches("the model's estimate", tostring(v))
  end)

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
    support.raises("with_edits: nothing is put in", with,
      {{ref = sites[1], how = "before", op = "syncwarp"}}, barriers)
  end)

  it("refuses edits that are none", function()
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
      support.raises("sim_run: edit 1 is none",
                     function() core.sim_run(p.program.fn, o) end)
    end
  end)
end)
