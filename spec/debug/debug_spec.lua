-- Tests the debugger: steps forward and back, visible values, and the steps at
-- which elements changed. The expected values come from the script itself and
-- from runs without the debugger.
local support = require "spec.support"
local cute = require "cute"

local function lines(text)
  local out = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do out[#out + 1] = line end
  return out
end

-- Returns the line of this file that contains `what`, from line `from` on.
local function line_of(what, from)
  local n = 0
  for line in io.lines "spec/debug/debug_spec.lua" do
    n = n + 1
    if n >= (from or 1) and line:find(what, 1, true) then return n end
  end
end

-- Two warps reverse 64 numbers through shared memory.
local turn = cute.kernel("turn", function(x, y, s)
  local tid = cute.arch.thread_idx()
  local sT = cute.make_tensor(cute.arch.alloc_smem(cute.f32, 64),
                              cute.make_layout {8, 8})
  local v = x[tid] * 2
  sT[tid] = v
  cute.arch.sync_threads()
  local sum = 0.0
  for _ = 1, 1 do
    for _ in cute.range(3) do
      sum = sum + sT[63 - tid]
    end
  end
  y[tid] = sum + s
end)

local function operands()
  local x, y = cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32)
  for i = 0, 63 do x[i] = i end
  return x, y
end

local function debugged(f, opts)
  local x, y = operands()
  opts = opts or {}
  opts.grid, opts.block = opts.grid or 1, 64
  local report = cute.debug(turn, x, y, 0.5, opts, f)
  return report, x, y
end

local function place(s) return {s.at.step, s.at.line, s.at.cta, s.at.warp} end

describe("the debugger", function()
  it("steps back before the launch, which precedes no other launch", function()
    -- `k` waits before it reads the preceding launch's results, unlike `late`.
    local k = cute.kernel("dependent", function(x, y)
      local i = cute.arch.thread_idx()
      cute.arch.griddepcontrol_wait()
      y[i] = x[i] + 1
    end)
    local late = cute.kernel("late", function(x, y)
      local i = cute.arch.thread_idx()
      y[i] = x[i] + 1
    end)
    local x, y = operands()
    local opts = {grid = 1, block = 64, pdl = true, device = "sim:sm_90a"}
    k(x, x):launch(opts)  -- precedes `late`; writes only x
    local z = cute.zeros({64}, cute.f32)
    local report = cute.debug(late, z, y, opts, function(s)
      while s:step() do end
      -- After the step back, the debugger runs the kernel again. The kernel's
      -- first run must not count as the preceding launch.
      s:back()
      while s:continue() do end
    end)
    assert.is_true(report.ok)
  end)

  it("does not change a launch's results", function()
    local report, _, y = debugged(function() end)
    assert.is_true(report.ok)
    for i = 0, 63 do assert.equal(3 * 2 * (63 - i) + 0.5, y(i)) end
    local _, _, z = debugged(function(s)
      s:step(3)
      s:back()
      s:go(20)
      s:go(2)
    end)
    for i = 0, 63 do assert.equal(y(i), z(i)) end
  end)

  it("steps through the lines of a warp, and back the same way", function()
    debugged(function(s)
      local seen = {place(s)}
      while s:step() do seen[#seen + 1] = place(s) end
      assert.is_true(s:is_over())
      local first = line_of "local v = x[tid] * 2"
      local want = {0, 1, 2, 5, 6, 5, 6, 5, 6, 5, 9}
      for i, n in ipairs(want) do want[i] = first + n end
      local got = {}
      for i, p in ipairs(seen) do got[i] = p[2] end
      assert.same(want, got)
      assert.is_true(s:go(seen[#seen][1]))
      for i = #seen - 1, 1, -1 do
        assert.truthy(s:back())
        assert.same(seen[i], place(s))
      end
      assert.falsy(s:back())
      assert.same(seen[1], place(s))
    end)
  end)

  it("steps through instructions, and back the same way", function()
    debugged(function(s)
      local seen = {place(s)}
      for _ = 1, 30 do
        s:stepi()
        seen[#seen + 1] = place(s)
      end
      for i = #seen - 1, 1, -1 do
        assert.truthy(s:backi())
        assert.same(seen[i], place(s))
      end
      s:go(seen[20][1])
      assert.same(seen[20], place(s))
    end, {seed = 5})
  end)

  it("shows locals, elements by coordinate, and unwritten memory", function()
    debugged(function(s)
      s:breakpoint(line_of "cute.arch.sync_threads()")
      s:continue()
      local warp = s.at.warp
      local rows = {}
      for r = 0, 3 do
        local row = {}
        for c = 0, 7 do
          row[#row + 1] = ("%3d"):format(2 * (warp * 32 + r * 8 + c))
        end
        rows[#rows + 1] = ("  %2d: %s"):format(r * 8, table.concat(row, " "))
      end
      local said = lines(s:print "v")
      assert.equal("v, by lanes:", said[1])
      for r = 1, 4 do
        assert.equal((rows[r]:gsub("%s+", " ")), (said[r + 1]:gsub("%s+", " ")))
      end
      for i = 0, 63 do
        local there = i // 32 == warp
        assert.equal(("sT(%d,%d) = %s"):format(i % 8, i // 8,
          there and tostring(2 * i) or "?"),
          s:print(("sT(%d,%d)"):format(i % 8, i // 8)))
      end
      assert.truthy(s:print "sT":find "^sT: f32 %(8,8%):%(1,8%), as thread ")
    end)
  end)

  it("shows another warp's view", function()
    debugged(function(s)
      s:go(60)
      for warp = 0, 1 do
        s:look(0, warp, 0)
        assert.truthy(s:print "tid":find(("0: %d %d"):format(warp * 32,
          warp * 32 + 1), 1, true) or s:print "tid":find(" " .. warp * 32))
      end
      assert.has_error.matches(function() s:look(0, 2) end,
        "warp 2 of block 0 is not running now")
      assert.has_error.matches(function() s:look(0, 0, 32) end,
        "lane 32 does not exist: a warp has lanes 0 to 31")
      assert.equal(1, s.focus.warp)
    end)
  end)
end)

describe("the debugger", function()
  -- Finds the changes of an element by comparing it before every instruction.
  local function changes_of(s, what)
    local out, last = {}, nil
    local n = 1
    while s:go(n) do
      local seen, now = pcall(s.print, s, what)
      now = seen and now
      if last and now and now ~= last then out[#out + 1] = n end
      last, n = now, n + 1
    end
    return out
  end

  it("finds when an element changed last, and the writer", function()
    debugged(function(s)
      s:breakpoint(line_of "y[tid] = sum + s")
      s:continue()
      local here = s.at.step
      for _, i in ipairs {0, 27, 40, 63} do
        local what = ("sT(%d,%d)"):format(i % 8, i // 8)
        local met = s:last(what)
        assert.equal(here, s.at.step)
        assert.equal(line_of "sT[tid] = v", met.line)
        assert.equal(i // 32, met.warp)
        assert.equal(1, met.lanes >> i % 32 & 1)
        s:go(2)
        s:look(0, 0, 0)
        local known = changes_of(s, what)
        assert.same({met.step}, known)
        s:go(here)
      end
      assert.is_nil(s:last "y(3)")
    end)
  end)

  it("stops when an element changes, forward and back", function()
    debugged(function(s)
      s:step(1)
      s:watch "sT(3,2)"
      assert.truthy(s:continue())
      assert.equal("change", s.at.why)
      assert.equal(line_of "sT[tid] = v", s.at.met.line)
      assert.truthy(s:where():find("sT(3,2) changed: debug_spec.lua:", 1, true))
      local there = s.at.step
      assert.falsy(s:continue())
      assert.truthy(s:reverse())
      assert.equal(there, s.at.step)
    end)
  end)

  it("stops at lines, of one warp or of any", function()
    debugged(function(s)
      local line = line_of "sT[tid] = v"
      local n = s:breakpoint(line, {cta = 0, warp = 0})
      s:continue()
      assert.same({line, 0}, {s.at.line, s.at.warp})
      assert.falsy(s:continue())
      assert.is_true(s:delete(n))
      assert.is_false(s:delete(n))
      s:go(1)
      s:breakpoint(line)
      local seen = {}
      while s:continue() do seen[s.at.cta * 2 + s.at.warp] = true end
      for i = 0, 5 do assert.is_true(seen[i]) end
    end, {grid = 3})
  end)

  it("stops at faults, and lists the waiting threads at the end", function()
    local bad = cute.kernel("bad", function(x)
      local tid = cute.arch.thread_idx()
      x[tid + 1] = 1
    end)
    local x = cute.zeros({64}, cute.f32)
    local ok, message = pcall(cute.debug, bad, x, {grid = 1, block = 64},
      function(s)
        assert.truthy(s:continue())
        assert.equal("fault", s.at.why)
        assert.truthy(s.at.fault:find "write outside global tensor 'x'")
      end)
    assert.is_false(ok)
    assert.truthy(tostring(message):find "out%-of%-bounds")

    local stuck = cute.kernel("stuck", function()
      local bar = cute.arch.alloc_smem(cute.i64, 2)
      cute.when(cute.arch.thread_idx():eq(0), function()
        cute.arch.mbarrier_init(bar + 1, 3)
      end)
      cute.arch.sync_threads()
      cute.arch.mbarrier_wait(bar + 1, 0)
    end)
    pcall(cute.debug, stuck, {grid = 1, block = 64, device = "sim:sm_90a"},
      function(s)
        assert.truthy(s:continue())
        assert.equal("end", s.at.why)
        assert.truthy(s:warps():find("waits at bar[1], phase 0", 1, true))
        assert.equal("block 0  bar[1]: phase 0, 0 of 3 arrived", s:bars())
        s:quit()
      end)
  end)

  it("leaves memory unchanged", function()
    local x, y = operands()
    local report = cute.debug(turn, x, y, 0.5, {grid = 1, block = 64},
      function(s)
        while s:step() do end
        s:quit()
      end)
    assert.is_nil(report)
    for i = 0, 63 do assert.equal(0, y(i)) end
  end)
end)

describe("the debugger", function()
  it("reports errors", function()
    debugged(function(s)
      local function fails(text, f, ...)
        local ok, why = pcall(f, s, ...)
        assert.is_false(ok)
        assert.truthy(tostring(why):find(text, 1, true), tostring(why))
      end
      fails("no local 'zz' is visible here", s.print, "zz")
      s:step(2)
      fails("(did you mean sT?)", s.print, "sTx")
      fails("'7'; a name, a field or an element is needed", s.print, "7")
      fails("'(1,'; a coordinate of integers is needed", s.print, "sT(1,")
      fails("'v' is not a tensor: it has no element (1)", s.print, "v(1)")
      fails("'sT'; an element is needed", s.watch, "sT")
      fails("debug_spec.lua:1 has no instruction, the next", s.breakpoint,
            1)
      fails("no line of 'x.lua' is in this kernel: its lines are in "
            .. "debug_spec.lua", s.breakpoint, 1, {file = "x.lua"})
      fails("step 0; steps count from 1", s.go, 0)
      fails("(8,0)", s.print, "sT(8,0)")
      while s:step() do end
      fails("the run is over: step back to inspect values", s.print, "v")
    end)
    assert.has_error.matches(function()
      debugged(function() error "mine" end)
    end, "mine")
  end)
end)

describe("cutelua debug", function()
  local function run(commands, words)
    local input, output = os.tmpname(), os.tmpname()
    local f = assert(io.open(input, "w"))
    f:write(commands)
    f:close()
    local ok, _, code = os.execute(("%s debug %s < %s > %s 2>&1"):format(
      support.program, words, input, output))
    f = assert(io.open(output))
    local text = f:read "a"
    f:close()
    os.remove(input)
    os.remove(output)
    return ok and 0 or code, text
  end
  local GEMM = "scripts/gemm3stage.lua --m 256 --n 256 --k 256"
  local copy = 1  -- index of the copy of B in the main loop
  for text in io.lines "scripts/gemm3stage.lua" do
    if text:find("tBgB(_, _, _, k_tile_next)", 1, true) then break end
    copy = copy + 1
  end

  it("takes commands, and continues the script after them", function()
    local code, text = run(("s\nbr %d\nc\np k_tile\nlocals\nrc\n")
      :format(copy), GEMM)
    assert.equal(0, code)
    assert.truthy(text:find "\nk_tile = 0 in all lanes\n")
    assert.truthy(text:find "nothing stopped before here")
    assert.truthy(text:find "verified    relative error")
    code, text = run("c\nb\nq\n", GEMM)
    assert.equal(0, code)
    assert.truthy(text:find "the end is reached")
    assert.falsy(text:find "verified")
  end)

  it("reaches the same registers again #long", function()
    local _, text = run(("br %d\nc\nc\nc\nc\nc\np tCrC\ng 5\ng 900\nb 30\n"
      .. "rc\ng 1\nd 1\nbr %d\nc\nc\nc\nc\nc\np tCrC\nq\n"):format(copy,
      copy), GEMM)
    local first, second = text:match "(tCrC: f32.-)\nstep.*(tCrC: f32.*)$"
    assert.truthy(first and #first > 500)
    assert.equal(first .. "\n", second)
  end)

  it("stops where docs/debugging.md shows", function()
    local f <close> = assert(io.open "docs/debugging.md")
    local docs = f:read "a"
    local _, text = run("br 63\nc\nback\n",
      "scripts/gemm_ws.lua --m 256 --n 256 --k 256")
    for _, line in ipairs {63, 62} do
      local step = ("step %%d+: gemm_ws.lua:%d, [^\n]*"):format(line)
      assert.equal(docs:match(step), text:match(step))
    end
  end)

  it("shows asynchronous agents: MMAs in flight, barriers and their phases",
    function()
      local _, text = run("br 63\nc\np acc\nwarps\nbars\np read\np read.index"
        .. "\nd 1\nbr 69\nc\np acc(0,0,0)\n",
        "scripts/gemm_ws.lua --m 256 --n 256 --k 256")
      assert.truthy(text:find("acc: f32 ((2,2,32),1,1):((1,2,4),0,0), as",
                              1, true))
      assert.truthy(text:find "sees it\n  ~0 ~0 ~0 ~0 ~0 ~0 ~0 ~0\n")
      assert.truthy(text:find("gemm_ws.lua:47 +waits at pipe_empty%[%d%], "
        .. "phase 0, %d operations of agents in flight"))
      assert.truthy(text:find("block 0  pipe_full[0]: phase 1, 0 of 1 arrived",
                              1, true))
      assert.truthy(text:find("49152 bytes to come", 1, true))
      assert.truthy(text:find "read: a table with count, index, phase")
      assert.truthy(text:find "read.index = 0 in all lanes")
      -- No MMA is in flight after wait_group(0), so values are shown.
      assert.truthy(text:find "acc%(0,0,0%) = %-?%d+%.%d+\n")
    end)

  it("reports errors", function()
    local code, text = run("frob\nbr x\nd 7\ns x\n\np\n", GEMM)
    assert.equal(0, code)
    assert.truthy(text:find("no command 'frob'; help lists them", 1, true))
    assert.truthy(text:find("break [FILE:]LINE [block B] [warp W]", 1, true))
    assert.truthy(text:find("there is no breakpoint 7", 1, true))
    assert.truthy(text:find("'x'; a count of at least 1", 1, true))
    code, text = run("", "--kernel nobody " .. GEMM)
    assert.equal(1, code)
    assert.truthy(text:find("'nobody' on the simulator 0 times, not 1", 1,
                            true))
    code, text = run("", "")
    assert.equal(2, code)
    assert.truthy(text:find("a script is needed", 1, true))
    code, text = run("", "nowhere.lua")
    assert.equal(1, code)
    assert.truthy(text:find("cannot open nowhere.lua", 1, true))
  end)
end)
-- SPDX-License-Identifier: MIT
