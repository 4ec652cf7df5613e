-- Tests `cutelua task`: the folder that `new` writes, verdicts, exit codes, bad
-- tasks and bad candidates.
local dkjson = require "dkjson"
local schema = require "spec.findings.schema"
local support = require "spec.support"

-- Computes Y[i] = 2 X[i] + Y0[i].
local PTX = [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry axpy(.param .u64 px, .param .u64 p0, .param .u64 py,
                     .param .u32 pn)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [p0];
  ld.param.u64 %rd3, [py];
  ld.param.u32 %r1, [pn];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r2, 128, %r3;
  setp.ge.s32 %p, %r4, %r1;
  @%p bra done;
  mul.wide.s32 %rd4, %r4, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  fma.rn.f32 %f3, %f1, 0f40000000, %f2;
  st.global.f32 [%rd7], %f3;
done:
  ret;
}
]]

local FORM = dkjson.decode(support.read "docs/task.schema.json")

local folder

-- Runs `cutelua task` with these words; returns its output, its errors, and the
-- exit code.
local function task(...) return support.run {"task", ...} end

-- Writes a candidate for the folder's task; returns its path.
local function candidate(text)
  return support.write(folder .. "/candidate.lua", text)
end

-- Returns the solution with one text replaced.
local function changed(from, to)
  return candidate(support.change(support.read(folder .. "/axpy/solution.lua"),
    from, 1, to))
end

-- Makes a folder with a new task, and removes it after the tests.
local function with_task()
  setup(function()
    folder = support.folder()
    local _, err, code = task("new", folder .. "/axpy")
    assert.equal(0, code, err)
  end)
  teardown(function() support.remove(folder) end)
end

describe("the digits that the referee and its workers exchange", function()
  it("are two for each byte, and give the bytes again", function()
    local hex = require "cutelua.task.hex"
    local digits, bytes = {}, {}
    for i = 0, 255 do
      for j, x in ipairs {i, (i * 7 + 3) % 256, 10} do
        digits[3 * i + j] = ("%02x"):format(x)
        bytes[3 * i + j] = string.char(x)
      end
    end
    for n = 765, 768 do  -- n bytes, with and without a byte after the last pair
      local text = table.concat(bytes, "", 1, n)
      assert.equal(table.concat(digits, "", 1, n), hex.encode(text))
      assert.equal(text, hex.decode(hex.encode(text)))
    end
    assert.equal("", hex.decode(hex.encode ""))
  end)
end)

describe("cutelua task", function()
  with_task()

  it("accepts the solution that `new` writes", function()
    local out, err, code = task("judge", folder .. "/axpy", "--no-gpu",
      "--format", "json")
    assert.equal(0, code, err)
    local v = dkjson.decode(out)
    assert.equal("accepted", v.verdict)
    schema.check(v, FORM)
    assert.equal(5, #v.cases)
    assert.equal("estimate", v.speed.by)
    assert.is_true(v.score > 0)
  end)

  it("runs the launches of a graph, as on a GPU #long", function()
    local run = [[
local referee = require "cutelua.task.referee"
local folder = require "cutelua.task.folder"
local t = folder.read(%q, {seconds = 60, memory = 1 << 30})
local v = referee.judge(t, {name = "solution.lua",
  text = folder.text(%q)}, {secret = 1, seconds = 60, memory = 4 << 30,
  card = "h200", held = 1, device = %q})
print(v.verdict, v.reason)]]
    for device, want in pairs {sim = "^accepted\tnil\n",
        ["gpu:99"] = "^rejected\ton gpu:99, N = %d+: "} do
      local out, err = support.run {"-e", run:format(folder .. "/axpy",
        folder .. "/axpy/solution.lua", device)}
      assert.matches(want, out, err)
    end
  end)

  it("times the candidate and its rival on a card #gpu", function()
    local out, err, code = task("judge", folder .. "/axpy", "--format", "json")
    assert.equal(0, code, err .. out)
    local v = dkjson.decode(out)
    schema.check(v, FORM)
    local s = v.speed
    assert.equal("gpu", s.by)
    assert.is_true(s.seconds > 0 and s.hot > 0 and s.hot <= 2 * s.seconds)
    assert.is_true(s.rival.cold < 2 * s.seconds)
    assert.is_true(s.seconds < 2 * s.rival.cold)
  end)
end)

describe("cutelua task", function()
  with_task()

  it("accepts a candidate that makes its kernels in each call #long", function()
    local text = support.read(folder .. "/axpy/solution.lua")
    local from = text:find "local axpy"
    local to = text:find "return function"
    local out, err, code = task("judge", folder .. "/axpy",
      candidate(text:sub(1, from - 1) .. support.change(text:sub(to), "(a)\n",
        1, "(a)\n" .. text:sub(from, to - 1))), "--no-gpu")
    assert.equal(0, code, err .. out)
  end)

  it("never overwrites a folder", function()
    local _, err, code = task("new", folder .. "/axpy")
    assert.equal(3, code)
    assert.matches("exists already", err)
  end)

  it("reports a fault at the candidate's line", function()
    local out, _, code = task("run", folder .. "/axpy",
      changed("i:lt(n)", "i:le(n)"))
    assert.equal(1, code)
    assert.matches("candidate.lua:8: .*memory/gmem/out%-of%-bounds", out)
    local v = dkjson.decode((task("run", folder .. "/axpy", "--format", "json",
      folder .. "/candidate.lua")))
    schema.check(v, FORM)
    assert.same({8, "i:le(n)"}, {v.findings[1].places[1].line,
      v.findings[1].places[1].text:match "i:le%(n%)"})
  end)

  it("reports the first wrong element with its bound #long", function()
    local out, _, code = task("run", folder .. "/axpy",
      changed("2 * x", "3 * x"))
    assert.equal(1, code)
    assert.matches("Y%(0%) is .*, expected is .* an error of at most", out)
  end)

  it("accepts functions of cute whose names resemble hidden ones", function()
    local out, err, code = task("run", folder .. "/axpy",
      changed("y[i] = 2 * x[i]", "arch.clock() "
        .. "y[i] = 2 * arch.load(x.iterator + i)"))
    assert.equal(0, code, err .. out)
  end)

  it("finds zeros that a candidate leaves unwritten", function()
    local text = support.read "examples/tasks/bias-relu/solution.lua"
    local out, err, code = task("run", "examples/tasks/bias-relu",
      candidate(support.change(text,
        "    Y[{m, j}] = cute.max(v, 0.0):to(cute.f16)", 1, [[
    cute.undefined_ok(Y)
    cute.when(v:gt(0.0), function() Y[{m, j}] = v:to(cute.f16) end)]])))
    assert.equal(1, code, err)
    assert.matches("expected is 0 .*elements are wrong", out)
  end)

  it("judges PTX with a LAUNCH description #long", function()
    local ptx = support.write(folder .. "/axpy.ptx", PTX)
    local launch = support.write(folder .. "/launch.lua", [[
return {entry = "axpy", grid = (N + 127) // 128, block = 128,
        args = {"X", "Y0", "Y", "N"}}]])
    local function judge()
      return task("judge", folder .. "/axpy", ptx, "--launch", launch,
                  "--no-gpu")
    end
    local out, err, code = judge()
    assert.equal(0, code, err .. out)
    support.write(ptx, support.change(PTX, "0f40000000", 1, "0f40400000"))
    out, err, code = judge()
    assert.equal(1, code, err)
    assert.matches("Y%(0%) is", out)
    err, code = select(2, task("judge", folder .. "/axpy", ptx))
    assert.equal(3, code)
    assert.matches("%-%-launch must name its LAUNCH description", err)
  end)
end)

-- The beginning of a candidate that has a kernel for copies.
local HOST = [[
local cute = require "cute"
local copy = cute.kernel("copy", function(x, s, y, n, z)
  local i = cute.arch.block_idx() * 128 + cute.arch.thread_idx()
  cute.when(i:lt(n), function()
    if z then y[i] = 2 * x[i] + z[i] + (s - x[0]) else y[i] = x[i] + s end
  end)
end)
return function(a)
]]

-- A candidate that reads out of bounds, and ignores the report that the launch
-- returns.
local SWALLOWED = [[
local cute = require "cute"
local k = cute.kernel("k", function(x, z, y, n)
  local i = cute.arch.block_idx() * 128 + cute.arch.thread_idx()
  cute.when(i:le(n), function() y[i] = 2 * x[i] + z[i] end)
end)
return function(a)
  pcall(function()
    k(a.X, a.Y0, a.Y, a.N):launch {grid = (a.N + 127) // 128, block = 128,
                                   faults = "return"}
  end)
end]]

-- A candidate that prints a frame with an exit code, like a worker process.
local FORGED = [==[
print '\0 0123456789abcdef0123456789abcdef 24\n{"kind":"exit","code":0}'
return 7]==]

-- Candidates that fail, and what the referee says about each one.
local BAD = {
  {"return 7", "returned 7, where a function"},
  {"while true do end", "the call was stopped: its limit is 2 s", "2"},
  {"return function() while true do end end", "its limit is 2 s", "2"},
  {"return function(a) return a.X end", "returned a tensor of shape"},
  {"return function(a) return 1 end", "must write its results to Y"},
  {"return function(a) a.Y[0] = 1 end", "the host wrote Y"},
  {"return function(a) end", "launched no kernel"},
  {HOST .. "local t = {} for i = 1, a.N do t[i] = 2 * a.X(i - 1) + a.Y0(i - 1) "
   .. "end copy(cute.tensor(t, cute.f32), 0.0, a.Y, a.N):launch {grid = "
   .. "(a.N + 127) // 128, block = 128} end", "depends on more than the sizes"},
  {HOST .. "copy(a.X, a.X(0), a.Y, a.N, a.Y0):launch {grid = (a.N + 127) // "
   .. "128, block = 128} end", "depends on more than the sizes"},
  {"x = ", "candidate.lua:1:"},
  {"require 'cute'.ptx '/etc/passwd'", "Too many open files"},
  {SWALLOWED, "outside global tensor"},
  {FORGED, "returned 7"},
  {"return function(a) a.X:close() end", ""},
  {"error {}", ""},
  {"local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end",
   "memory"},
  {"for i = 1, 1e9 do print(('x'):rep(10000)) end",
   "printed more than 65536 bytes"},
  {"local function f() return pcall(f) end f() return f", ""},
  {"return setmetatable({}, {__call = error})", "where a function"},
  {"print(('x'):rep(1000)) error('\\0\\255')", ""},
}

-- Task files that are invalid, and what the referee says about each one.
local TASKS = {
  {"reference = function(a)", "refer = function(a)", "field 'refer'"},
  {"reference = function(a)", "reference = nil and function(a)",
   "has no reference"},
  {"2 * a.X(i)", "error 'odd'", "reference of task axpy failed: .*odd"},
  {"2 * a.X(i)", "a.X(i) * a.Z(i)", "reference of task axpy failed"},
  {"2 * a.X(i)", "a.X(i + 1)", "reads element %d+ of mode 0 of X"},
  {"2 * a.X(i)", "{}", "reference of task axpy failed"},
  {'"out"', '"inout"', "only \"out\" is known"},
  {'"f32", {"N"}', '"f31", {"N"}', "which is none"},
  {'{"N"}', '{"K"}', "has no size \"K\""},
  {"{N = 256}", "{N = 0}", "whole number above 0 as size N, not 0"},
  {"{N = 256}", "{N = 1 << 40}", "at most 4194304"},
  {"held = {N = {1", "held = {N = {9000", "held.N = {least, most}"},
  {"held = {N", "held = {M", "held.M, which `sizes` lacks"},
  {"target = 0.5", "target = {}", "needs a number as field target, not {}"},
  {"target = 0.5", "target = 0", "a target above 0 and at most 1, not 0"},
  {"target = 0.5", "seeds = {1}", "needs two integers as seeds, not nil"},
  {"return {", "return 1, {", "where a table is needed"},
  {"return {", "return", "task.lua:"},
  {"2 * a.X(i) + a.Y0(i)", "i", "expected outputs are the same for both seeds"},
  {"return {", "while true do end return {", "did not end within 1 s"},
  {"2 * a.X(i)", "(function() while true do pcall(a.X, -1) end end)()",
   "did not end within 1 s"},
  {'"f32", {"N"}', '"f32", {"N"}, fill = function() repeat until nil end',
   "did not end within 1 s"},
  {"return {", "for i = 1, 1e7 do t = {t, i} end return {",
   "more than 256 MB"},
}

describe("cutelua task says in one sentence", function()
  with_task()

  it("that a signal ended the candidate #long", function()
    local out = support.exec {"sh", "-c", ("ulimit -t 1; exec '%s' task judge "
      .. "'%s/axpy' '%s' --no-gpu"):format(support.program, folder,
      candidate "while true do end")}
    assert.matches("reason: its process ended by signal %d+", out)
  end)

  for i, row in ipairs(BAD) do
    it("what is wrong with candidate " .. row[1]:sub(1, 40)
       .. support.long(i), function()
      local out, err, code = task("judge", folder .. "/axpy",
        candidate(row[1]), "--seconds", row[3] or "60", "--memory", "512",
        "--no-gpu")
      assert.equal(1, code, err .. out)
      assert.equal("", err)
      assert.matches("rejected\n  reason: [^\n]+", out)
      assert.is_truthy(out:find(row[2], 1, true), out)
    end)
  end

  for i, row in ipairs(TASKS) do
    it("what is wrong with a task with " .. row[2] .. support.long(i),
       function()
      local text = support.read(folder .. "/axpy/task.lua")
      os.execute("mkdir -p " .. folder .. "/bad")
      support.write(folder .. "/bad/task.lua", support.change(text, row[1], 1,
        row[2]))
      local out, err, code = task("run", folder .. "/bad",
        folder .. "/axpy/solution.lua", "--seconds", row[3]:match "1 s" and "1"
          or "60", "--memory", "256")
      assert.equal(3, code, out .. err)
      assert.equal("", out)
      assert.matches("^cutelua: task: [^\n]+\n$", err)
      assert.is_truthy(err:find(row[3]), err)
    end)
  end

  it("what is wrong with the command line", function()
    for _, row in ipairs {{2, "a command is needed"},
        {2, "needs a folder", "run"},
        {2, "unknown option", "run", "x", "--hled", "3"},
        {3, "it is not a folder", "run", "/nowhere"},
        {3, "cannot open", "run", folder},
        {3, "cannot open", "judge", folder .. "/axpy", "/nowhere.lua"}} do
      local _, err, code = task(table.unpack(row, 3))
      assert.equal(row[1], code, err)
      assert.is_truthy(err:find(row[2], 1, true), err)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
