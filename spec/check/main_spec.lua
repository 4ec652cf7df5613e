-- Tests the command `cutelua check`: its verdicts as text and as JSON, saved
-- and replayed schedules, and its exit codes.
local cute = require "cute"
local json = require "cutelua.text.json"
local support = require "spec.support"

local SCRIPT = [[
local cute = require "cute"
local arch = cute.arch
local bad = tonumber(arg[1] or 0)
local function zeros(n) return cute.zeros({n}, cute.i32) end
local copy = cute.kernel("copy", function(x, y)
  y[arch.thread_idx()] = x[arch.thread_idx()]
end)
copy(zeros(32), zeros(32)):launch {grid = 1, block = 32}
copy(zeros(32), zeros(32)):launch {grid = 1, block = 32}
print "copied"
local last = cute.kernel("last", function(x, y, c)
  local t = arch.thread_idx()
  cute.when((t % 32):eq(0), function()
    x[t // 32] = t
    local n = arch.atomic_add(c.iterator, 1, {sem = "acq_rel", scope = "gpu"})
    cute.when(n:eq(bad), function() y[0] = x[0] + x[1] end)
  end)
end)
last(zeros(2), zeros(1), zeros(1)):launch {grid = 1, block = 64}
print "done"
]]

local dir

local function check(...)
  return support.exec {support.program, "check", "--no-gpu", ...}
end

describe("cutelua check", function()
  before_each(function()
    dir = support.folder()
    support.write(dir .. "/s.lua", SCRIPT)
  end)
  after_each(function() support.remove(dir) end)

  it("prints a verdict for each launch, once", function()
    local out, err, code = check(dir .. "/s.lua", "1")
    assert.equal("", err)
    assert.equal(0, code)
    assert.matches("^check: kernel copy: ok\n  1 schedule of 0 steps in 1 "
      .. "block; 1 run\ncopied\ncheck: kernel last: ok\n  2 schedules of 2 "
      .. "steps in 1 block; 3 runs\ndone\n$", out)
  end)

  it("says that a script is no lesson, which has sizes", function()
    local out, err, code = check("--sizes", dir .. "/s.lua", "1")
    assert.equal("cutelua: note: --sizes: only lessons have other sizes, so "
      .. "only the script's own was checked; use the option `sizes` of "
      .. "k:check\n", err)
    assert.matches("kernel last: ok", out)
    assert.equal(0, code)
  end)

  it("continues after a launch whose time is estimated", function()
    support.write(dir .. "/g.lua", [[
      local cute = require "cute"
      local A, B = cute.randn({64, 64}, cute.bf16), cute.randn({64, 64},
                                                               cute.bf16)
      local ops = require "cute.ops"
      ops.gemm(A, B)
      print "done"]])
    local out, err, code = check("--surgeon", dir .. "/g.lua")
    assert.equal("", err)
    assert.equal(0, code)
    assert.matches("not needed; %d+%.%d+ us without it, .*\ndone\n$",
      out)
  end)

  it("ends when its time is over, in whatever it is by then #long", function()
    local SCRIPT_OF_BARRIERS = [[
      local cute = require "cute"
      local k = cute.kernel("k", function(x, n, m)
        local t = cute.arch.thread_idx()
        for i in cute.range(n) do
          x[t] = x[t] + i + m
          %s
        end
      end)
      for m = 1, 1000 do
        k(cute.zeros({64}, cute.i32), %d, m):launch {grid = 1, block = 64}
      end]]
    local clock = require "cute.core".clock
    local function of(times, barriers)
      support.write(dir .. "/t.lua", SCRIPT_OF_BARRIERS:format(
        ("cute.arch.sync_threads()\n"):rep(barriers), times))
      local start = clock()
      local out, err, code = check("--surgeon", "--seconds", "1",
                                   dir .. "/t.lua")
      assert.is_true(clock() - start < 5)
      assert.equal("", err)
      assert.equal(3, code)
      return out
    end
    local LATE = "check: not covered: everything after launch (%d+): the limit "
      .. "is seconds = 1\n$"
    local out = of(200000000, 1)  -- one run takes longer than 1 s
    assert.matches("^check: kernel k: incomplete\n.*not covered: a run was "
      .. "stopped at t.lua:%d+: the limit is seconds = 1\n" .. LATE, out)
    assert.equal("1", out:match(LATE))
    out = of(2000, 200)  -- Each run is short, but the repair search tries 200
                         -- edits.
    assert.matches("unknown.*\n  not all of them were examined: the "
      .. "time limit was reached\n", out)
    out = of(2000, 1)  -- many launches
    assert.matches("kernel k: ok", out)
    assert.is_true(tonumber(out:match(LATE)) < 1000)
  end)

  it("keeps the schedule of a bug, and runs it again", function()
    local file = dir .. "/bug"
    local out, _, code = check("--save", file, dir .. "/s.lua", "0")
    assert.equal(1, code)
    assert.matches("check: kernel last: bug\n  s.lua:16: .* %[race%]", out)
    assert.is_falsy(out:find "done")
    local kept = support.read(file)
    assert.matches("^cutelua schedule 1\nkernel last\nlaunch 2\ncluster ", kept)
    local again, _, rc = check("--replay", file, dir .. "/s.lua", "0")
    assert.equal(1, rc)
    assert.matches("^copied\ncheck: kernel last: bug", again)
    local fine, _, good = check("--replay", file, dir .. "/s.lua", "1")
    assert.equal(0, good)
    assert.matches("check: kernel last: ok", fine)
    support.write(file, (kept:gsub("cluster .*", "cluster all\nwarp\n")))
    local _, why, wrong = check("--replay=" .. file, dir .. "/s.lua")
    assert.equal(2, wrong)
    assert.matches("bug:5: this is not a schedule saved by `cutelua check`: "
      .. "'warp'", why)
    _, why, wrong = check("--save", dir, dir .. "/s.lua", "0")
    assert.equal(1, wrong)
    assert.matches("Is a directory", why)
    support.write(file, (kept:gsub("launch 2", "launch 9")))
    _, why, wrong = check("--replay", file, dir .. "/s.lua", "1")
    assert.equal(1, wrong)
    assert.matches("the script has no launch 9", why)
  end)
end)

describe("cutelua check", function()
  before_each(function()
    dir = support.folder()
    support.write(dir .. "/s.lua", SCRIPT)
  end)
  after_each(function() support.remove(dir) end)

  it("--json prints nothing but verdicts on standard output", function()
    local out, err, code = check("--json", dir .. "/s.lua", "0")
    assert.equal(1, code)
    assert.matches("copied", err)
    local lines = support.lines(out)
    assert.equal(2, #lines)
    assert.matches('^{"blocks":1,"form":1,"kernel":"copy","kind":"check",'
      .. '"launch":1,"open":%[%],"orders":1,"results":1,"runs":1,"seconds":'
      .. '[%d.e-]+,"turns":0,"verdict":"ok"}$', lines[1])
    assert.matches('"fault":{"advice":".-","block":%[0,0,0%],"coord":"%(%d%)",'
      .. '"count":%d+,"file":"s.lua","file2":"s.lua","kind":"race","layout":'
      .. '"%(2%):%(1%)","line":16,"line2":%d+,"message":"', lines[2])
    assert.matches('"schedule":{.*"turns":%[.*"verdict":"bug"}$', lines[2])
    support.write(dir .. "/s.lua", "print 'x' error 'no \"luck\"'")
    out, err, code = check("--json", dir .. "/s.lua")
    assert.equal(1, code)
    assert.matches("x\n", err)
    assert.matches('^{"form":1,"kind":"error","message":".-s.lua:1: no '
      .. '\\"luck\\""}\n$', out)
  end)

  it("exits with 3 if something was not covered", function()
    local out, _, code = check("--orders", "1", dir .. "/s.lua", "1")
    assert.equal(3, code)
    assert.matches("not covered: 1 schedules were left after 1 runs", out)
    assert.matches("done\n$", out)
    out, _, code = check("--kernel", "copy", "--orders=1", dir .. "/s.lua", "1")
    assert.equal(0, code)
    assert.is_falsy(out:find "kernel last")
  end)

  it("checks a launch again if integers in memory differ #long", function()
    local text = [[
local cute = require "cute"
local arch = cute.arch
local T = cute[arg[2] or "i32"]
local last = cute.kernel("last", function(x, y, c)
  local t = cute.partial_ok(y) and arch.thread_idx()
  cute.when((t % 32):eq(0), function()
    x[t // 32] = 1
    local n = arch.atomic_add(c.iterator, 1, {sem = "acq_rel", scope = "gpu"})
    cute.when(n:eq(3), function() y[0] = x[0] + x[1] end)
  end)
end)
local function zeros(n, t) return cute.zeros({n}, t or cute.i32) end
local c = zeros(1)
for i = 1, tonumber(arg[1]) do
  last(zeros(2, T), zeros(1, T), c):launch {grid = 1, block = 64}
  if arg[3] then c[0] = 0 end
end
]]
    support.write(dir .. "/s.lua", text)
    local function count(...)
      local out, err, code = check(dir .. "/s.lua", ...)
      assert.equal("", err)
      return {select(2, out:gsub("kernel last: ok", "")), code}, out
    end
    assert.same({1, 0}, count("1"))
    -- Without "reset", the counter starts at another value in each launch.
    assert.same({2, 0}, count("2"))
    assert.same({1, 0}, count("5", "i32", "reset"))
    assert.same({5, 0}, count("5", "f32"))
    assert.same({15, 0}, count("15"))
    local both, out = count("18", "f32")
    assert.same({16, 3}, both)
    assert.matches("check: kernel last: not covered: 2 launches with other "
      .. "values of integer tensors than the first 16\n$", out)
    out = check("--json", dir .. "/s.lua", "18")
    assert.matches('\n{"count":2,"form":1,"kernel":"last","kind":"left",'
      .. '"message":"kernel last: not covered: 2 launches ', out)
    support.write(dir .. "/s.lua", (text:gsub("eq%(3%)", "eq(2)")))
    local _, code
    out, _, code = check(dir .. "/s.lua", "3")
    assert.equal(1, code)
    assert.matches("^check: kernel last: ok\n[^\n]+\ncheck: kernel last: bug\n"
      .. "  s.lua:9: .* %[race%]", out)
  end)

  it("reports missing tools, and files that it could not write", function()
    local s = dir .. "/s.lua"
    local function said(want, code, ...)
      local out, err, rc = check(...)
      assert.matches(want, err)
      assert.equal(code, rc)
      return out
    end
    said("^cutelua: check: no kernel launched 'lats' %(did you mean last%?%): "
      .. "there are copy last\n$", 1, "--kernel", "lats", s, "1")
    local out = said("no kernel launched 'other': there are copy last\n$", 1,
                     "--json", "--kernel", "other", s, "1")
    assert.matches('^{"form":1,"kind":"error","message":"check: no kernel', out)
    said("check: cannot write /no/where: No such file or directory %[io%]", 1,
         "--save", "/no/where", s, "1")
    said("check: cannot write /dev/full: No space left on device %[io%]", 1,
         "--save", "/dev/full", s, "0")
    said("cannot read /dev/zero: it is a device, not a regular file %[io%]", 2,
         "--replay", "/dev/zero", s)
    for _, words in ipairs {"check --no-gpu --json %q 1 >/dev/full",
                            "check --no-gpu --json %q 1 >&-",
                            "explain -o - %q 1 >/dev/full",
                            "explain -o - %q 1 >&-"} do
      local _, err, code = support.exec {"sh", "-c", ("%q "):format(
        support.program) .. words:format(s)}
      assert.equal(1, code, words)
      assert.matches("cutelua: %l+: cannot write standard output: [^\n]+ %[io%]"
        .. "\n$", err)
    end
    support.write(s, "print 'hi'")
    said("^cutelua: check: the script launched nothing\n$", 1, s)
  end)
end)

describe("cutelua check", function()
  before_each(function()
    dir = support.folder()
    support.write(dir .. "/s.lua", SCRIPT)
  end)
  after_each(function() support.remove(dir) end)

  it("runs a launch with one result once, with its output", function()
    support.write(dir .. "/twice.lua", [[
      local cute, core = require "cute", require "cute.core"
      local run, n = core.sim_run, 0
      function core.sim_run(...) n = n + 1 return run(...) end
      local k = cute.kernel("k", function(y)
        local t = cute.arch.thread_idx()
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout(32))
        s[t] = 1
        y[t] = y[t] * 2
        cute.when(t:eq(5), function() cute.printf("%d\n", y[t]) end)
      end)
      local y = cute.full({32}, 3, cute.i32)
      k(y):launch {grid = 1, block = 32}
      k(y):launch {grid = 1, block = 32}
      print(n, y[0])]])
    local out, err, code = check(dir .. "/twice.lua")
    assert.matches("1 run\n6\ncheck: .*1 run\n12\n2\t12\n$", out)
    assert.matches("'s' is written here but never read", err)
    assert.equal(0, code)
  end)

  it("rejects unknown options #long", function()
    for _, words in ipairs {
      {{}, "check: the script is missing"},
      {{"--order", "1", "x"}, "unknown option '%-%-order'"},
      {{"--orders"}, "'%-%-orders' needs an argument"},
      {{"--orders", "-1", "x"},
        "%-%-orders: a whole number above 0 is needed, got '%-1'"},
      {{"--orders", "0x10", "x"},
        "%-%-orders: a whole number above 0 is needed, got '0x10'"},
      {{"--seconds", "0x10", "x"},
        "%-%-seconds: a number above 0 is needed, got '0x10'"},
      {{"--save", "", "x"}, "'%-%-save' needs an argument"},
      {{"--replay", dir .. "/no", "x"}, "cannot open .*/no: "}} do
      local out, err, code = check(table.unpack(words[1]))
      assert.equal("", out)
      assert.matches(words[2], err)
      assert.equal(2, code)
    end
    support.write(dir .. "/s.lua", "require 'cute'.device 'gpu'")
    local _, err, code = check(dir .. "/s.lua")
    assert.equal(1, code)
    assert.matches("device gpu: this command runs kernels on the "
      .. "simulator only", err)
    local out = check("--help")
    assert.matches("^usage: cutelua check", out)
  end)
end)

describe("JSON", function()
  it("has lists, objects, numbers, strings and null",
     function()
    assert.equal('{"a":[1,2.5,"x\\n\\"\\\\\\u0001"],"b":{"c":true},"d":[],'
      .. '"e":null}', json.encode {a = {1, 2.5, 'x\n"\\\1'}, b = {c = true},
      d = {}, e = 0 / 0})
    assert.equal('"\u{e9}"', json.encode "\u{e9}")
    assert.equal('"\u{FFFD}"', json.encode "\xff")
  end)

  it("of a simulator's report has its faults and lines", function()
    local k = cute.kernel("k", function(x)
      x[cute.arch.thread_idx()] = 1
    end)
    local r = support.report(k(cute.zeros({3}, cute.i32)):launch {grid = 1,
      block = 4, device = "sim", faults = "return"})
    local text = r:json()
    assert.matches('"faults":%[{"advice":.-"kind":"out%-of%-bounds"', text)
    assert.matches('"form":1,.*"kernel":"k","kind":"simulator","lines":%[{'
      .. '"bytes":', text)
  end)
end)
-- SPDX-License-Identifier: MIT
