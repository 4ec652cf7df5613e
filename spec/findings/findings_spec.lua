-- Tests --format json and sarif: the fields of the records, the codes, the
-- lines, and that the edits of a finding repair the script.
local dkjson = require "dkjson"
local changes = require "cutelua.findings.changes"
local codes = require "cutelua.findings.codes"
local faults = require "spec.faults"
local likely = require "cutelua.findings.likely"
local pipelines = require "cutelua.findings.pipelines"
local planted = require "spec.findings.planted"
local schema = require "spec.findings.schema"
local source = require "cute.lang.source"
local support = require "spec.support"

local FORM = dkjson.decode(support.read "docs/findings.schema.json")
local SARIF = dkjson.decode(support.read "spec/findings/sarif.json")

-- Runs a command with a format. Returns its record, exit code and standard
-- error.
local function run(command, format, ...)
  local out, err, code = support.exec {support.program, command, "--format",
                                       format, ...}
  local found, at, why = dkjson.decode(out)
  assert(found, why)
  assert.equal("\n", out:sub(at), "one line")
  schema.check(found, format == "json" and FORM or SARIF)
  return found, code, err
end

local function check(...) return run("check", "json", "--no-gpu", ...) end

local function line_of(path, pattern)
  local n = 0
  for line in io.lines(path) do
    n = n + 1
    if line:find(pattern) then return n, line end
  end
end

local BARRIER = "spec/faults/repair/barrier.lua"

describe("findings of cutelua check", function()
  it("names the two lines, the operands and the thread of a race", function()
    local found, code, err = check(BARRIER)
    assert.equal(1, code)
    assert.equal(1, found.exit_code)
    assert.equal("bug", found.verdict)
    assert.matches("^check: kernel k: bug", err)
    local f = found.findings[1]
    assert.equal("race/smem/missing-barrier", f.code)
    assert.equal("k", f.kernel)
    local read, text = line_of(BARRIER, "y%[t%] =")
    local write = line_of(BARRIER, "s%[t%] =")
    assert.same({BARRIER, read, 3, #text + 1, text}, {f.places[1].file,
      f.places[1].line, f.places[1].column, f.places[1].end_column,
      f.places[1].text})
    assert.equal(write, f.places[2].line)
    assert.truthy(f.places[1].cuda.text:find("y", 1, true))
    assert.is_true(f.places[1].cuda.line > f.places[2].cuda.line)
    assert.equal("s", f.operands.tensor)
    -- Thread t of one warp reads the element that thread 63 - t of the other
    -- warp writes.
    assert.equal(63, f.counterexample.thread[1] + f.counterexample.other_thread)
    assert.same({64, 1, 1}, {table.unpack(found.checked[1].block)})
  end)

  it("has a schedule that replays the bug #long", function()
    local dir = support.folder()
    support.write(dir .. "/s.lua", [[
      local cute = require "cute"
      local arch = cute.arch
      local last = cute.kernel("last", function(x, y, c)
        local t = arch.thread_idx()
        cute.when((t % 32):eq(0), function()
          x[t // 32] = t
          local n = arch.atomic_add(c.iterator, 1, {sem = "acq_rel",
                                                    scope = "gpu"})
          cute.when(n:eq(0), function() y[0] = x[0] + x[1] end)
        end)
      end)
      local function zeros(n) return cute.zeros({n}, cute.i32) end
      last(zeros(2), zeros(1), zeros(1)):launch {grid = 1, block = 64}]])
    local found = check(dir .. "/s.lua")
    support.write(dir .. "/bug",
                  found.findings[1].counterexample.schedule.replay)
    local again, code = check("--replay", dir .. "/bug", dir .. "/s.lua")
    assert.equal(1, code)
    assert.equal(found.findings[1].code, again.findings[1].code)
    support.remove(dir)
  end)

  it("says what was checked and what was not", function()
    local found, code = check("scripts/gemm_base.lua", "--m", "128", "--n",
                              "128", "--k", "128")
    assert.same({"ok", 0}, {found.verdict, code})
    assert.equal("gemm_base", found.checked[1].kernel)
    assert.equal(1, found.checked[1].schedules)
    assert.equal(1, found.checked[1].count)
    assert.same({"--m", "128"}, {found.arguments[1], found.arguments[2]})
    assert.equal("sizes", found.not_checked[1].what)
  end)

end)

-- Checks a script. Then applies each of the first three edits of its first
-- finding, the best first, to the original script. Returns the number of the
-- edit that repairs the script, and the edit. Returns nil if no edit does.
local function repaired(path, text)
  support.write(path, text)
  local found = check(path)
  assert.not_equal("ok", found.verdict, path)
  for i, edit in ipairs(found.findings[1].edits or {}) do
    if i > 3 then return nil end
    assert.equal(path, edit.changes[1].file)
    support.write(path, changes.applied(text, edit))
    local again, code = check(path)
    if again.verdict == "ok" then
      assert.equal(0, code)
      return i, edit
    end
  end
end

describe("edits of findings", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  for i, name in ipairs {"barrier", "named_arrive", "cluster_last",
      "cp_async_wait_count", "cluster_count", "cluster_wait_scope",
      "cluster_parity", "cluster_relaxed", "expect_tx_bytes",
      "release_and_acquire", "proxy_fence_global", "lock_acquire",
      "ring_full", "ring_empty", "arrive_expect_tx", "tensormap_acquire"} do
    it("repair the script at once: " .. name .. support.long(i), function()
      local text = support.read(("spec/faults/repair/%s.lua"):format(name))
      assert.equal(1, repaired(("%s/%s.lua"):format(dir, name), text))
    end)
  end

  for i, name in ipairs {"async-in-flight/arrivals_no_wait",
      "async-in-flight/box_no_wait", "warp-race/arrivals_no_advance",
      "deadlock/multicast_mask", "deadlock/arrivals_group_64",
      "mbarrier/every_thread_inits", "tensor-map/map_acquired_once",
      "race/tile_number", "async-in-flight/ring_wrong_dest_stage",
      "warp-race/sum_lanes_write", "async-in-flight/letters_no_expect",
      "async-in-flight/ring_wrong_full_stage", "deadlock/pipe_one_tile_more"} do
    it(("repair %s%s"):format(name, support.long(i)), function()
      local text = support.read(("spec/faults/%s.lua"):format(name))
      assert.truthy(repaired(dir .. "/s.lua", (faults.version(text, false))))
    end)
  end

  -- The maximum starts at 0. If x had zeros, as with x[{i, i}], the result
  -- would be right.
  it("do not change the inputs", function()
    support.write(dir .. "/s.lua", [[
local cute = require "cute"
local largest = cute.kernel("largest", function(x, y)
  local t, most = cute.arch.thread_idx(), cute.var(0.0)
  for j = 0, 3 do
    most.value = cute.where(x[{t, j}]:gt(most.value), x[{t, j}], most.value)
  end
  y[t] = most.value
end)
local x, y = cute.zeros({8, 4}, cute.f32), cute.zeros({8}, cute.f32)
local want = cute.zeros({8}, cute.f32)
for i = 0, 7 do for j = 0, 3 do x[{i, j}] = i + j - 30 end end
for i = 0, 7 do want[i] = math.max(x(i, 0), x(i, 1), x(i, 2), x(i, 3)) end
largest(x, y):launch {grid = 1, block = 8}
cute.testing.assert_close(y, want)]])
    local found = check(dir .. "/s.lua")
    assert.equal("result/reference/wrong", found.findings[1].code)
    for _, e in ipairs(found.findings[1].edits or {}) do
      local line = e.changes[1].start.line
      assert.is_true(line < 9 or line == 13, line)
    end
  end)

  -- Uses only faults of planted.lua whose check takes little time.
  for i, nth in ipairs {19, 21, 25, 17, 5, 13, 14, 16, 18, 24, 26, 27, 28} do
    local f = planted.list()[nth]
    it(("repair a planted fault: %s in %s%s"):format(f.kind, f.file,
       support.long(i)), function()
      assert.truthy(select(2, planted.try(f)))
    end)
  end
end)

-- A script that sums the columns of x in a kernel and compares the result with
-- sums on the host.
local SUMS = [[
local cute = require "cute"
local ROWS, COLUMNS = 8, 100
local sums = cute.kernel("sums", function(x, y)
  local t = cute.arch.block_idx() * 64 + cute.arch.thread_idx()
  local acc = cute.make_rmem_tensor(2, cute.f32)
  acc:fill(0)
  cute.when(cute.lt(t, COLUMNS), function()
    for k in cute.range(ROWS // 2) do
      acc[0] = acc[0] + x[{2 * k, t}]
      acc[1] = acc[1] + x[{2 * k + 1, t}]
    end
    y[t] = acc[0] + acc[1]
  end)
end)
local x = cute.rand({ROWS, COLUMNS}, cute.f32)
local y = cute.zeros({COLUMNS}, cute.f32)
sums(x, y):launch {grid = cute.ceil_div(COLUMNS, 64), block = 64}
for t = 0, COLUMNS - 1 do
  local want = 0
  for k = 0, ROWS - 1 do want = want + x[{k, t}] end
  assert(math.abs(want - y[t]) < 1e-4, "the sums are wrong")
end
]]

-- A script whose blocks count how often each integer occurs, and sum the
-- integers.
local COUNTS = [[
local cute = require "cute"
local arch = cute.arch
local N, HALF, T = 200, 16, 64

local count = cute.kernel("count", function(x, h, sum, n)
  local t, block = arch.thread_idx(), arch.block_idx()
  local own = cute.make_smem_tensor(cute.i32, cute.make_layout(2 * HALF))
  local part = cute.make_smem_tensor(cute.i32, cute.make_layout(T))
  cute.when(t:lt(2 * HALF), function() own[t] = 0 end)
  part[t] = 0
  arch.sync_threads()
  local i = block * T + t
  cute.when(i:lt(n), function() part[t] = x[i] end)
  cute.when(i:lt(n), function() arch.atomic_add(own.iterator + x[i], 1) end)
  arch.sync_threads()
  for _, half in ipairs {32, 16, 8, 4, 2, 1} do
    cute.when(t:lt(half), function()
      part[t] = part[t] + part[t + half]
    end)
    arch.sync_threads()
  end
  cute.when(t:lt(2 * HALF), function()
    arch.atomic_add(h.iterator + t, own[t])
  end)
  cute.when(t:eq(0), function() arch.atomic_add(sum.iterator, part[0]) end)
end)
local x = cute.randint(0, 2 * HALF, {N}, cute.i32)
local h, sum = cute.zeros({2 * HALF}, cute.i32), cute.zeros({1}, cute.i32)
count(x, h, sum, N):launch {grid = cute.ceil_div(N, T), block = T,
                            device = "sim"}
local want, all = {}, 0
for i = 0, N - 1 do want[x(i)], all = (want[x(i)] or 0) + 1, all + x(i) end
assert(sum(0) == all, "the sum is wrong")
for b = 0, 2 * HALF - 1 do
  assert(h(b) == (want[b] or 0), "the counts are wrong")
end
]]

describe("edits that were tried", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  local function repairs_of(found)
    for _, r in ipairs(found.results or {}) do
      if r.kind == "repairs" then return r end
    end
  end

  for i, row in ipairs {
      {"registers that are not cleared", SUMS, "  acc:fill(0)\n", ""},
      {"a bound one too large", SUMS, "cute.lt(t", "cute.le(t"},
      {"exchanged coordinates", SUMS, "{2 * k, t}", "{t, 2 * k}"},
      {"a grid one short", SUMS, "grid = cute.ceil_div(COLUMNS, 64)",
       "grid = COLUMNS // 64"},
      {"a misspelt name", SUMS, "y[t] = acc", "y[t] = ac"},
      {"a barrier in a branch", COUNTS, "    end)\n    arch.sync_threads()\n",
       "      arch.sync_threads()\n    end)\n"},
      {"sums of blocks without atomics", COUNTS,
       "arch.atomic_add(sum.iterator, part[0])", "sum[0] = sum[0] + part[0]"},
      {"counts that are not cleared", COUNTS,
       "  cute.when(t:lt(2 * HALF), function() own[t] = 0 end)\n", ""},
      {"sums that are not cleared", COUNTS, "cute.zeros({1}", "cute.empty({1}"},
      {"an access without bounds", COUNTS,
       "cute.when(i:lt(n), function() part[t] = x[i] end)", "part[t] = x[i]"},
      {"half a bound", COUNTS, "t:lt(2 * HALF), function() own",
       "t:lt(HALF), function() own"},
      {"an index of the block", COUNTS, "part[t] = 0", "part[block] = 0"}} do
    it("repair " .. row[1] .. support.long(i), function()
      local text = support.change(row[2], row[3], 1, row[4])
      support.write(dir .. "/s.lua", text)
      local found = check(dir .. "/s.lua")
      local edit
      for _, f in ipairs(found.findings) do
        edit = edit or f.edits and f.edits[1]
      end
      assert.is_nil(edit.unchecked)
      local result = repairs_of(found)
      assert.is_true(result.tried >= result.clean and result.clean >= 1)
      support.write(dir .. "/s.lua", changes.applied(text, edit))
      assert.equal("ok", check(dir .. "/s.lua").verdict)
    end)
  end

  it("are none if all of them fail, and end at the time limit #long", function()
    support.write(dir .. "/s.lua", (SUMS:gsub("\nlocal x =", [[

error "nothing helps"
local x =]])))
    local found, _, err = check("--seconds", "3", dir .. "/s.lua")
    assert.equal("error/script/lua", found.findings[1].code)
    local result = repairs_of(found)
    assert.equal(0, result.clean)
    assert.is_true(result.seconds < 6, result.seconds)
    for _, e in ipairs(found.findings[1].edits or {}) do
      assert.is_true(e.unchecked)
    end
    assert.matches("check: repairs: %d+ edits? of the script tried in", err)
  end)

  it("limits trials by processor time, not by the time of the clock #long",
      function()
    local out = support.run {"-e", [[
      local core = require "cute.core"
      local trials = require "cutelua.findings.trials"
      local t = trials.start(function(request)
        local began = core.clock()
        if request.texts.busy then while true do end end
        os.execute "sleep 1.5"
        return core.clock() - began < 0.5 and "ok" or "incomplete", {}
      end)
      t.sizes, t.modules = {}, {}
      print((t:try({}, 0.1, 99)), (t:try({busy = ""}, 0.1, 99)))
      t:close()]]}
    assert.equal("ok\terror\n", out)
  end)

  it("run in a state without the globals of the script", function()
    support.write(dir .. "/s.lua", "assert(not ran, 'again') ran = true\n"
      .. SUMS:gsub("  acc:fill%(0%)\n", ""))
    local found = check(dir .. "/s.lua")
    assert.is_nil(found.findings[1].edits[1].unchecked)
  end)

  it("do not change the problem #long", function()
    -- Without the store, the kernel has no results to compare.
    support.write(dir .. "/s.lua", (SUMS:gsub("y%[t%] = acc.-\n",
      "y[t] = cute.f32(unknown)\n")))
    for _, f in ipairs(check(dir .. "/s.lua").findings) do
      for _, e in ipairs(f.edits or {}) do
        assert.truthy(e.unchecked or e.changes[1].start.line > 3)
      end
    end
  end)

  it("see the changed text of modules #long", function()
    local head, tail = SUMS:match "^(.*)(local x = cute.*)$"
    support.write(dir .. "/sums_of.lua", (head:gsub("cute%.lt%(t",
      "cute.le(t")) .. "return sums\n")
    support.write(dir .. "/s.lua", 'local cute = require "cute"\n'
      .. "local ROWS, COLUMNS = 8, 100\nlocal sums = require \"sums_of\"\n"
      .. tail)
    local found = check(dir .. "/s.lua")
    local edit = found.findings[1].edits[1]
    assert.is_nil(edit.unchecked)
    assert.equal(dir .. "/sums_of.lua", edit.changes[1].file)
  end)
end)

describe("the error of a script", function()
  it("may be very long: the record has its begin", function()
    local dir = support.folder()
    local path = support.write(dir .. "/s.lua",
      'require "cute"\nerror(("\xc3\xa9"):rep(1000000))\n')
    local found = run("run", "json", path)
    local f = found.findings[1]
    assert.equal(("\xc3\xa9"):rep(2047) .. "...", f.message)
    assert.is_true(#f.details < 66000)
    assert.equal(2, f.places[1].line)
    support.remove(dir)
  end)
end)

describe("likely edits", function()
  -- Applies each of the likely edits of a line to a text. Returns the set of
  -- the resulting texts.
  local function outcomes(kind, text, line)
    source.add("@few", text)
    local set = {}
    for _, e in ipairs(likely.edits({kind = kind, message = "m", file = "@few",
        line = line}, {["@few"] = {[line] = true}}, {})) do
      set[changes.applied(text, e)] = true
    end
    source.add("@few", nil)
    return set
  end

  it("exchange the bounds of two comparisons", function()
    local wrong = "when(cute.lt(i, n) & cute.lt(j, m), f)"
    assert.is_true(outcomes("uninitialised", wrong, 1)
      ["when(cute.lt(i, m) & cute.lt(j, n), f)"])
  end)

  it("commit the MMAs for which a statement waits", function()
    local head = "  cute.gemm(mma, d, a, b, d)\n"
    local wait = "  warpgroup.wait_group(0)\n"
    local all = outcomes("in-flight", head .. wait .. "  use(d)\n", 3)
    assert.is_true(all[head .. "  cute.nvgpu.warpgroup.commit_group()\n" .. wait
      .. "  use(d)\n"])
  end)

  it("take the arguments of the five nearest calls", function()
    local lines = {}
    for n = 1, 90 do lines[n] = ("f(a%d)"):format(n) end
    local all = outcomes("race", table.concat(lines, "\n"), 50)
    local taken = {}
    for n = 1, 90 do
      local changed = table.move(lines, 1, 90, 1, {})
      changed[50] = ("f(a%d)"):format(n)
      if n ~= 50 and all[table.concat(changed, "\n")] then
        taken[#taken + 1] = n
      end
    end
    assert.same({47, 48, 49, 51, 52}, taken)
  end)

  it("have the same order in each process", function()
    local function order()
      return (support.run_lua {"-e", [[
        require "cute"
        local likely = require "cutelua.findings.likely"
        local lines = {}
        for n = 1, 150 do lines[n] = true end
        local path = "@kernels/gemm_sm100/kernel.lua"
        for _, e in ipairs(likely.edits({kind = "deadlock", message = "m",
            file = path, line = 40}, {[path] = lines}, {})) do
          local c = e.changes[1]
          print(c.start.line, c.start.column, c.stop.column, c.text,
                e.description)
        end]]})
    end
    local first = order()
    assert.is_true(#first > 10000)
    for _ = 1, 3 do assert.equal(first, order()) end
  end)

  it("are not searched for in texts of many or long lines", function()
    local r = {kind = "deadlock", message = "m", file = "@big", line = 1}
    local function edits(text)
      source.add("@big", text)
      local began = os.clock()
      local list = likely.edits(r, {["@big"] = {[1] = true}}, {})
      assert.is_true(os.clock() - began < 10)
      return list
    end
    local line = "for k in cute.range(n + 1) do end"
    assert.is_true(#edits(line) > 1)
    assert.equal(0, #edits((line .. "\n"):rep(10000)))
    local rounds = "local p, s\n"
      .. ("for k in cute.range(n) do\n  p:consumer_release(s)\nend\n"):rep(1000)
    assert.equal(0, #edits(rounds))
    source.add("@big", nil)
  end)
end)

describe("edits of bank conflicts", function()
  it("replace the layout of the shared tensor", function()
    local dir = support.folder()
    local path = support.write(dir .. "/s.lua", [[
local cute = require "cute"
local k = cute.kernel("k", function(x)
  local t = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout({32, 32},
                                                             {32, 1}))
  for i = 0, 31 do s[{i, t}] = x[{i, t}] end
  cute.arch.sync_warp()
  for i = 0, 31 do x[{i, t}] = s[{t, i}] end
end)
local x = cute.rand({32, 32}, cute.f32)
k(x):launch {grid = 1, block = 32, device = "sim"}
]])
    local f = run("profile", "json", path).findings[1]
    assert.equal("performance/smem/bank-conflict", f.code)
    support.write(path, changes.applied(support.read(path), f.edits[1]))
    assert.same({}, run("profile", "json", path).findings)
    assert.equal("ok", check(path).verdict)
    support.remove(dir)
  end)
end)

describe("rounds of pipelines", function()
  local ROUNDS = [[
local read, write = pipe:make_consumer_state(), pipe:make_producer_state()
for k in cute.range(4) do
  x.pipe:producer_acquire(write)
  local full = x.pipe:producer_get_barrier(write)
  cute.copy(a, b, {tma_bar_ptr = full})
  write:advance()
end
for k in cute.range(4) do
  x.pipe:consumer_wait(read)
  use(s[read.index])  -- x.pipe:consumer_wait(read)
  cute.when(leader, function()
    x.pipe:consumer_release(read)
  end)
  read:advance()
end
]]
  local function lacks(without)
    local lines = {}
    for line in (support.change(ROUNDS, without, 1, "")):gmatch "[^\n]+" do
      lines[#lines + 1] = line
    end
    local list = {}
    for i, o in ipairs(pipelines.lacks(lines)) do
      list[i] = ("%d %s%s"):format(o.line, o.behind and "behind " or "", o.code)
    end
    return table.concat(list, "; ")
  end

  it("are complete, or lack one operation", function()
    assert.equal("", lacks "")
    assert.equal("2 behind x.pipe:producer_acquire(write)",
                 lacks "  x.pipe:producer_acquire(write)\n")
    assert.equal("5 behind write:advance()", lacks "  write:advance()\n")
    assert.equal("8 behind x.pipe:consumer_wait(read)",
                 lacks "  x.pipe:consumer_wait(read)\n")
    assert.equal("13 x.pipe:consumer_release(read)",
                 lacks "    x.pipe:consumer_release(read)\n")
    assert.equal("12 behind read:advance()", lacks "  read:advance()\n")
  end)
end)

describe("the edits of a finding", function()
  -- Returns the edits that `cutelua check` proposes for a script.
  local function edits_of(text)
    local dir = support.folder()
    support.write(dir .. "/s.lua", text)
    local found = check(dir .. "/s.lua")
    support.remove(dir)
    return found.findings[1].edits or {}
  end

  it("come last, and unchecked, if they cause a note #long", function()
    -- The axes of the grid are exchanged. The predicate that the advice names
    -- would remove the fault, but then some columns would never be stored.
    local list = edits_of(support.read
      "spec/faults/out-of-bounds/axes_of_grid.lua")
    assert.matches("^swap ", list[1].description)
    assert.is_nil(list[1].unchecked)
    assert.matches("^only where ", list[#list].description)
    assert.is_true(list[#list].unchecked)
  end)

  it("add a lower bound, and the size of a cluster", function()
    local list = edits_of(support.read
      "spec/faults/out-of-bounds/below_zero.lua")
    assert.equal("require at >= 0", list[1].description)
    list = edits_of [[
      local cute = require "cute"
      local k = cute.kernel("k", function(y)
        local s = cute.make_smem_tensor(cute.f32, 32)
        s[cute.arch.thread_idx()] = 1
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        local rank = cute.arch.block_idx_in_cluster()
        local other = cute.arch.map_dsmem_ptr(s.iterator, rank ~ 1)
        y[cute.arch.block_idx()] = cute.arch.load(other)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
      end)
      local y = cute.zeros({2}, cute.f32)
      k(y):launch {grid = 2, block = 32}]]
    assert.equal("launch with cluster = {2, 1, 1}", list[1].description)
  end)
end)

describe("the record of cutelua check", function()
  it("has notes with the lines of the script", function()
    local dir = support.folder()
    support.write(dir .. "/s.lua", [[
      local cute = require "cute"
      local k = cute.kernel("k", function(x)
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout(32))
        s[cute.arch.thread_idx()] = 1
        x[cute.arch.thread_idx()] = 2
      end)
      k(cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32}]])
    local found, code = check("--surgeon", dir .. "/s.lua")
    assert.same({"ok", 0, 1}, {found.verdict, code, #found.findings})
    local f = found.findings[1]
    assert.same({"note/run/never-read", "note", 4, dir .. "/s.lua"},
      {f.code, f.severity, f.places[1].line, f.places[1].file})
    assert.same({"needs", "k"}, {found.results[1].kind,
                                 found.results[1].kernel})
    support.remove(dir)
  end)

  it("has notes on the script, with its line", function()
    local dir = support.folder()
    support.write(dir .. "/s.lua", [[
      local cute = require "cute"
      local k = cute.kernel("k", function(x, y)
        y[cute.arch.thread_idx()] = 2
      end)
      local x, y = cute.zeros({32}, cute.f32), cute.zeros({32}, cute.f32)
      k(x, y):launch {grid = 1, block = 32}]])
    for _, command in ipairs {"check", "run"} do
      local found, code = run(command, "json", dir .. "/s.lua")
      assert.same({"ok", 0, 1}, {found.verdict, code, #found.findings})
      local f = found.findings[1]
      assert.same({"note/script/unlikely", "note", "k", 2, dir .. "/s.lua"},
        {f.code, f.severity, f.kernel, f.places[1].line, f.places[1].file})
      assert.matches("does not use argument 'x'", f.message)
    end
    support.remove(dir)
  end)

  it("has the values and the store of a wrong result #long", function()
    local dir = support.folder()
    local text = support.read "scripts/gemm_base.lua"
    local wrong = text:gsub("alpha or 1, tCrC", "(alpha or 1) * 2, tCrC")
    assert(wrong ~= text)
    support.write(dir .. "/g.lua", wrong)
    local found, code = check(dir .. "/g.lua", "--m", "128", "--n", "128",
                              "--k", "64")
    assert.same({"bug", 1, 1}, {found.verdict, code, #found.findings})
    local f = found.findings[1]
    assert.equal("result/reference/wrong", f.code)
    assert.truthy(f.places[1].text:find("* 2, tCrC", 1, true))
    local v = f.counterexample.values
    local ratio = tonumber(v.got) / tonumber(v.want)
    assert.is_true(math.abs(ratio - 2) < 0.05, ratio)
    support.remove(dir)
  end)

  it("reports a script without launches, and an error at its line", function()
    local dir = support.folder()
    support.write(dir .. "/s.lua", "print 'hello'\n")
    local found, code = check(dir .. "/s.lua")
    assert.same({"error", 1}, {found.verdict, code})
    support.write(dir .. "/s.lua", "local cute = require 'cute'\n"
      .. "\tlocal e = '\u{e9}', cute.make_layout('8')\n")
    found, code = check(dir .. "/s.lua")
    local f = found.findings[1]
    assert.same({1, "error/script/bad-argument", "bad-argument", 2, 2, 38},
      {code, f.code, f.kind, f.places[1].line, f.places[1].column,
       f.places[1].end_column})
    support.remove(dir)
  end)

  it("ends with the script, whatever it does at its end", function()
    local dir = support.folder()
    support.write(dir .. "/s.lua", "print 'x' os.exit(7)")
    local found, code, err = run("run", "json", dir .. "/s.lua")
    assert.same({7, 7, "error", "x\n"},
                {code, found.exit_code, found.verdict, err})
    support.remove(dir)
  end)

  it("rejects other formats", function()
    local _, err, code = support.exec {support.program, "check", "--format",
                                       "xml", BARRIER}
    assert.equal("cutelua: check: --format must be text, json or sarif, not "
      .. "\"xml\"\n", err)
    assert.equal(2, code)
    _, err, code = support.exec {support.program, "check", "--json", "--format",
                                 "json", BARRIER}
    assert.equal("cutelua: check: --json and --format exclude each other\n",
                 err)
    assert.equal(2, code)
  end)
end)

describe("findings of cutelua run", function()
  it("has the faults of the schedule that ran", function()
    local found, code = run("run", "json", BARRIER)
    assert.same({"bug", 1}, {found.verdict, code})
    assert.equal("race", found.findings[1].kind)
    assert.equal(1, found.findings[2].follows)
    local what = {}
    for i, o in ipairs(found.not_checked) do what[i] = o.what end
    assert.same({"schedules", "sizes"}, what)
  end)

  it("has the lines of PTX", function()
    local dir = support.folder()
    support.write(dir .. "/k.ptx", [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) {
  .reg .b64 %rd<2>; .reg .b32 %r<2>;
  ld.param.u64 %rd0, [x];
  mov.u32 %r0, 7;
  st.global.b32 [%rd0+64], %r0;
  ret;
}
]])
    support.write(dir .. "/k.json", [[{"entry": "k", "grid": 1, "block": 1,
      "args": ["x"], "memory": {"x": {"shape": 4}}}]])
    local found, code = run("check", "json", "--no-gpu", dir .. "/k.ptx",
                            "--launch", dir .. "/k.json")
    assert.same({"bug", 1}, {found.verdict, code})
    local f = found.findings[1]
    assert.equal("memory/gmem/out-of-bounds", f.code)
    assert.same({dir .. "/k.ptx", 8, "  st.global.b32 [%rd0+64], %r0;"},
      {f.places[1].file, f.places[1].line, f.places[1].text})
    support.remove(dir)
  end)
end)

describe("cutelua diff", function()
  it("prints what differs between the kernels of two scripts", function()
    local dir = support.folder()
    local text = support.read(BARRIER):gsub("63 %- t", "t")
    support.write(dir .. "/a.lua", text)
    support.write(dir .. "/b.lua", (text:gsub("s%[t%] = x%[t%]", "%0 * 2")))
    local out, err, code = support.exec {support.program, "diff",
                                         dir .. "/a.lua", dir .. "/b.lua"}
    assert.same({"", 0}, {err, code})
    assert.matches("^kernel k, before and after\n", out)
    assert.matches("\n  %- *s%[t%] = x%[t%];\n  %+ *s%[t%] = ", out)
    out, err, code = support.exec {support.program, "diff", dir .. "/a.lua"}
    assert.same({"", "cutelua: diff: which two scripts?\n", 2},
                {out, err, code})
    support.remove(dir)
  end)

  it("has a record and an exit code for each outcome", function()
    local dir = support.folder()
    local good, idle = dir .. "/good.lua", dir .. "/idle.lua"
    support.write(good, (support.read(BARRIER):gsub("63 %- t", "t")))
    support.write(idle, "local n = 1")
    local function outcome(...)
      local found, code = run("diff", "json", ...)
      local f = found.findings[1]
      return {found.verdict, code, f and f.code, #(found.results or {})}
    end
    assert.same({"ok", 0, nil, 1}, outcome(good, good))
    assert.same({"bug", 1, "race/smem/missing-barrier", 0},
                outcome(BARRIER, good))
    assert.same({"bug", 1, "race/smem/missing-barrier", 0},
                outcome(good, BARRIER))
    assert.same({"error", 1, "error/script/lua", 0}, outcome(good, idle))
    assert.same({"error", 1, "error/environment/io", 0},
                outcome(dir .. "/absent.lua", good))
    support.remove(dir)
  end)
end)

describe("SARIF", function()
  it("has the line, the rule, the fix and the steps of a bug", function()
    local log, code = run("check", "sarif", "--no-gpu", BARRIER)
    assert.equal(1, code)
    local r = log.runs[1].results[1]
    local place = r.locations[1].physicalLocation
    assert.same({BARRIER, (line_of(BARRIER, "y%[t%] ="))},
      {place.artifactLocation.uri, place.region.startLine})
    assert.equal("race/smem/missing-barrier",
      log.runs[1].tool.driver.rules[r.ruleIndex + 1].id)
    local fix = r.fixes[1].artifactChanges[1].replacements[1]
    assert.equal("  cute.arch.sync_threads()\n", fix.insertedContent.text)
    assert.equal(fix.deletedRegion.startLine, fix.deletedRegion.endLine)
  end)
end)

describe("codes", function()
  it("have a section in docs/errors.md for each kind, and the reverse",
    function()
      local heads, kinds = {}, {}
      for line in io.lines "docs/errors.md" do
        local name = line:match "^##+ ([%l-]+)$"
        if name then heads[name] = true end
      end
      for _, c in ipairs(codes.list()) do
        assert.truthy(c.code:find "^%l+/%l+/[%l-]+$", c.code)
        kinds[c.kind] = true
        assert.truthy(heads[c.kind] or c.kind == "json-reports"
          or c.kind:find "%.md$", c.kind)
      end
      for name in pairs(heads) do assert.truthy(kinds[name], name) end
    end)

  it("have a row for each fault that the simulator reports", function()
    local known = {}
    for _, c in ipairs(codes.list()) do known[c.code] = true end
    for _, path in ipairs {"race/sum_two_warps_write",
        "deadlock/box_few_bytes", "deadlock/arrivals_no_release",
        "in-flight/example", "misaligned/example"} do
      local found = run("run", "json", ("spec/faults/%s.lua"):format(path))
      local f = found.findings[1]
      assert.truthy(known[f.code], f.code)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
