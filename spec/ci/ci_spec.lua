-- Tests `cutelua ci`: the scripts that it finds in folders, its reports, its
-- cache of verdicts, and bad input.
local dkjson = require "dkjson"
local schema = require "spec.findings.schema"
local support = require "spec.support"

local FORM = dkjson.decode(support.read "docs/findings.schema.json")
local SARIF = dkjson.decode(support.read "spec/findings/sarif.json")
local PROGRAM = support.absolute(support.program)
local RACE = support.read "spec/faults/repair/barrier.lua"
local GOOD = [[
local cute = require "cute"
local k = cute.kernel("k", function(x) x[cute.arch.thread_idx()] = 1 end)
k(cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32}
]]

local dir
before_each(function() dir = support.folder() end)
after_each(function() support.remove(dir) end)

local function put(name, text)
  local path = dir .. "/" .. name
  support.must {"mkdir", "-p", path:match "^(.*)/"}
  support.write(path, text)
end

-- Runs `cutelua ci` in the folder; returns output, errors and exit code.
local function ci(...)
  return support.exec({PROGRAM, "ci", ...}, {cwd = dir})
end

-- Returns the SARIF log in file `name` as a table. Fails unless the log is
-- valid.
local function log_of(name)
  local log, at, why = dkjson.decode(support.read(dir .. "/" .. name))
  assert(log, why)
  assert.truthy(at)
  schema.check(log, SARIF)
  return log
end

local function line_of(text, pattern)
  local n = 0
  for line in text:gmatch "([^\n]*)\n" do
    n = n + 1
    if line:find(pattern) then return n end
  end
end

describe("cutelua ci", function()
  it("finds scripts that use cute, and writes one log of all", function()
    put("k/race.lua", RACE)
    put("k/deep/good.lua", GOOD)
    put("k/module.lua", "local cute = require 'cute' return {}")
    put("k/plain.lua", "error 'this is no script of cute'")
    put("k/.hidden/race.lua", RACE)
    put("k/notes.txt", RACE)
    support.must {"ln", "-s", "..", dir .. "/k/deep/loop"}
    local out, err, code = ci("k", "--sarif", "log.sarif")
    assert.same({"", 1}, {err, code})
    local line = line_of(RACE, "y%[t%] =")
    assert.truthy(out:find(("k/race.lua:%d:3: error: "):format(line), 1, true),
                  out)
    assert.matches("3 scripts: 1 with bugs, 1 ok, 1 without launches", out)
    local run = log_of "log.sarif".runs[1]
    assert.equal(1, #log_of "log.sarif".runs)
    local place = run.results[1].locations[1].physicalLocation
    assert.same({"race/smem/missing-barrier", "k/race.lua", line},
      {run.results[1].ruleId, place.artifactLocation.uri,
       place.region.startLine})
    for _, r in ipairs(run.results) do
      assert.equal("k/race.lua",
                   r.locations[1].physicalLocation.artifactLocation.uri)
    end
    assert.same({"k/deep/good.lua", "k/race.lua"},
      {run.properties.checked[1].script, run.properties.checked[2].script})
  end)

  it("writes a report of GitLab and badges #long", function()
    put("race.lua", RACE)
    local _, _, code = ci(".", "--gitlab", "q.json", "--badge", "b.svg")
    assert.equal(1, code)
    local list, prints = dkjson.decode(support.read(dir .. "/q.json")), {}
    for _, one in ipairs(list) do
      assert.same({"race.lua", line_of(RACE, "y%[t%] ="), "major"},
        {one.location.path, one.location.lines.begin, one.severity})
      assert.is_nil(prints[one.fingerprint])
      prints[one.fingerprint] = true
    end
    assert.equal("race/smem/missing-barrier", list[1].check_name)
    local svg = support.read(dir .. "/b.svg")
    assert.matches("^<svg .*1 with bugs.*</svg>\n$", svg)
    if select(3, support.exec {"xmllint", "--version"}) == 0 then
      support.must {"xmllint", "--noout", dir .. "/b.svg"}
    end
    put("race.lua", GOOD)
    _, _, code = ci(".", "--badge", "b.json")
    assert.equal(0, code)
    assert.same({schemaVersion = 1, label = "cutelua", message = "1 ok",
      color = "4c1"}, (dkjson.decode(support.read(dir .. "/b.json"))))
  end)
end)

describe("cutelua ci on PTX and records", function()
  it("checks captured launches, also below a folder #long", function()
    put("c/1/module.ptx", [[
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
    put("c/1/LAUNCH.json", [[{"capture": 1, "entry": "k", "grid": 1,
      "block": 1, "args": ["x"], "memory": {"x": {"shape": 4}}}]])
    local out, _, code = ci("c", "--sarif", "log.sarif", "--cache", "kept")
    assert.equal(1, code)
    assert.matches("c/1/module.ptx:8:3: error: .*%[memory/gmem/out%-of", out)
    local place = log_of "log.sarif".runs[1].results[1].locations[1]
    assert.equal("c/1/module.ptx",
                 place.physicalLocation.artifactLocation.uri)
    assert.matches("; 1 known;", (ci("c", "--cache", "kept")))
    put("c/1/LAUNCH.json", support.read(dir .. "/c/1/LAUNCH.json"):gsub("4}",
                                                                    "17}"))
    out, _, code = ci("c", "--cache", "kept")
    assert.equal(0, code, out)
    assert.matches("1 ok; 0 known;", out)
  end)

  it("shows findings of PTX in a script at the script's first line", function()
    put("s.lua", [==[
      local cute = require "cute"
      local k = cute.ptx [[
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
]]:kernel "k"
      k(cute.zeros({4}, cute.i32)):launch {grid = 1, block = 1}]==])
    ci("s.lua", "--sarif", "log.sarif")
    local r = log_of "log.sarif".runs[1].results[1]
    assert.equal("memory/gmem/out-of-bounds", r.ruleId)
    local place = r.locations[1].physicalLocation
    assert.same({"s.lua", 1}, {place.artifactLocation.uri,
                               place.region.startLine})
    assert.equal("access", r.relatedLocations[1].message.text)
  end)

  it("adds the record of another run #long", function()
    put("race.lua", RACE)
    put("sub/good.lua", GOOD)
    local record = support.exec({PROGRAM, "check", "--format", "json",
                                 "race.lua"}, {cwd = dir})
    put("r.json", record)
    local out, _, code = ci("sub", "--add", "r.json", "--sarif", "log.sarif")
    assert.equal(1, code)
    assert.matches("2 scripts: 1 with bugs, 1 ok", out)
    assert.equal("race/smem/missing-barrier",
                 log_of "log.sarif".runs[1].results[1].ruleId)
    for _, wrong in ipairs {"", "[]", "{\"kind\": \"findings\"}", "1",
        (record:gsub('"code":"[^"]*"', '"code":1')),
        (record:gsub('"verdict":"bug"', '"verdict":"none"')),
        (record:gsub('"line":%d+', '"line":"x"'))} do
      put("r.json", wrong)
      local _, err = ci("sub", "--add", "r.json")
      assert.equal("cutelua: ci: r.json is no record of findings "
        .. "(docs/findings.md)\n", err)
    end
  end)
end)

local program

-- Runs `cutelua ci --cache`. Returns how many verdicts came from the cache, and
-- the exit code.
local function known(...)
  local out, err, code = support.exec({program, "ci", "--cache", "kept", ...},
                                      {cwd = dir})
  assert.equal("", err)
  return tonumber(out:match "; (%d+) known;"), code
end

describe("the verdicts that cutelua ci keeps", function()
  before_each(function()
    program = PROGRAM
    put("s.lua", [[
      local cute = require "cute"
      local n = require "m"
      local f = io.open "data"
      local value = f and f:read "n" or os.getenv "FAKE_VALUE" or 1
      if f then f:close() end
      local k = cute.kernel("k", function(x)
        x[cute.arch.thread_idx() * n] = value
      end)
      k(cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32}]])
    put("lib/m.lua", "return 1")
    put("m/init.lua", "return 1")
    assert.same({0, 0}, {known "s.lua"})
    assert.same({1, 0}, {known "s.lua"})
  end)

  it("do not count if a module, a data file or a variable changes #long",
     function()
    put("m/init.lua", "return 2")
    assert.same({0, 1}, {known "s.lua"})
    assert.same({1, 1}, {known "s.lua"})
    put("m/init.lua", "return 1")
    assert.same({0, 0}, {known "s.lua"})
    -- m.lua comes before m/init.lua in the search path, so `require "m"` now
    -- finds another file.
    put("m.lua", "return 2")
    assert.same({0, 1}, {known "s.lua"})
    support.must {"rm", dir .. "/m.lua"}
    assert.same({0, 0}, {known "s.lua"})
    local out = support.exec({PROGRAM, "ci", "--cache", "kept", "s.lua"},
                             {cwd = dir, env = {FAKE_VALUE = "3"}})
    assert.matches("; 0 known;", out)
    put("data", "4")
    assert.equal(0, (known "s.lua"))
    assert.equal(1, (known "s.lua"))
    put("data", "5")
    assert.equal(0, (known "s.lua"))
  end)

  it("do not count if a file changes while the script runs #long", function()
    put("n", "1")
    put("s.lua", [[
      local cute = require "cute"
      local f = io.open "n"
      local n = f:read "n"
      f:close()
      local k = cute.kernel("k", function(x)
        x[cute.arch.thread_idx() * n] = 1
      end)
      k(cute.zeros({32}, cute.f32)):launch {grid = 1, block = 32}
      io.open("n", "w"):write("2"):close()]])
    assert.same({0, 0}, {known "s.lua"})
    assert.same({0, 1}, {known "s.lua"})
  end)

  it("do not count for another path of modules #long", function()
    support.must {"rm", "-r", dir .. "/m"}
    local function known_with(path)
      local out = support.exec({PROGRAM, "ci", "--cache", "kept", "s.lua"},
                               {cwd = dir, env = {LUA_PATH = path}})
      return (out:match "; (%d known)")
    end
    assert.equal("0 known", known_with "lib/?.lua")
    assert.equal("1 known", known_with "lib/?.lua")
    assert.equal("0 known", known_with "other/?.lua;lib/?.lua")
  end)

  it("do not count for other options or another program #long", function()
    assert.equal(0, (known("--strict", "s.lua")))
    assert.equal(0, (known("--orders", "7", "s.lua")))
    assert.equal(0, (known("--seconds", "50", "s.lua")))
    assert.equal(1, (known "s.lua"))
    support.must {"cp", PROGRAM, dir .. "/other"}
    local f = assert(io.open(dir .. "/other", "ab"))
    f:write "\0"
    f:close()
    program = dir .. "/other"
    assert.equal(0, (known "s.lua"))
    assert.equal(1, (known "s.lua"))
  end)
end)

describe("an entry of cutelua ci", function()
  before_each(function()
    program = PROGRAM
    put("s.lua", GOOD)
    assert.same({0, 0}, {known "s.lua"})
  end)

  it("has the same findings as a check #long", function()
    put("race.lua", RACE)
    assert.same({0, 1}, {known("race.lua", "--sarif", "first")})
    assert.same({1, 1}, {known("race.lua", "--sarif", "again")})
    assert.same(log_of "first".runs[1].results, log_of "again".runs[1].results)
  end)

  it("does not count if it is damaged or could be of others #long", function()
    local entry = support.must({"sh", "-c", "ls kept/*.jit"}, {cwd = dir})
    entry = dir .. "/" .. entry:match "[^\n]+"
    local text = support.read(entry)
    -- Changes a cached verdict "ok" and keeps the hash of the old text.
    local forged = text:gsub('"status":"ok"', '"status":"no"')
    assert(forged ~= text)
    for _, wrong in ipairs {forged, text:sub(1, -2), text .. " ", "",
                            text:sub(1, 200)} do
      support.write(entry, wrong)
      assert.equal(0, (known "s.lua"))
      assert.equal(1, (known "s.lua"))
    end
    support.must {"chmod", "666", entry}
    assert.equal(0, (known "s.lua"))
    if support.exec {"id", "-u"} == "0\n" then
      support.must {"chown", "12345", entry}
      assert.equal(0, (known "s.lua"))
    end
  end)

  it("is not that of a script that starts programs, or of an error #long",
     function()
    put("p.lua", "os.execute 'true'\n" .. GOOD)
    assert.same({0, 0}, {known "p.lua"})
    assert.same({0, 0}, {known "p.lua"})
    put("p.lua", GOOD .. "error 'x'")
    assert.same({0, 1}, {known "p.lua"})
    assert.same({0, 1}, {known "p.lua"})
  end)
end)

describe("bad input of cutelua ci", function()
  it("ends with the scripts, not with the processes that they start", function()
    put("k/child.lua", "os.execute 'sleep 30 &'\n" .. GOOD)
    local out, err, code = ci("k", "--seconds", "10")
    assert.same({"", 0}, {err, code})
    assert.matches("1 script: 1 ok", out)
  end)

  it("ends the processes of a script whose time is over #long", function()
    put("k/waits.lua", "local cute = require 'cute'\n"
      .. "os.execute [[(sleep 4; echo x >left) & setsid sh -c '(sleep 4; "
      .. "echo x >left) & sleep 4; echo x >left' & sleep 30]]\n")
    local _, _, code = ci("k", "--seconds", "0.2")
    assert.equal(1, code)
    support.exec {"sleep", "4"}
    assert.is_nil(io.open(dir .. "/left"))
  end)

  it("rejects two options that name one file", function()
    put("k/a.lua", GOOD)
    local _, err, code = ci("k", "--sarif", "x.json", "--badge", "./x.json")
    assert.same({"cutelua: ci: two options name the same file, x.json\n", 1},
                {err, code})
  end)

  it("gives one sentence for each script that cannot be checked #long",
     function()
    put("k/syntax.lua", "local cute = require 'cute'\nx = = 2\n")
    put("k/endless.lua", "local cute = require 'cute'\nwhile true do end\n")
    put("k/input.lua", "local cute = require 'cute'\nio.read 'a'\n" .. GOOD)
    put("k/memory.lua", "local cute = require 'cute'\nlocal s = 'x'\n"
      .. "while true do s = s .. s end\n")
    put("k/exits.lua", GOOD .. "os.exit(7)")
    put("k/dies.lua", "local cute = require 'cute'\n"
      .. "os.execute 'kill -9 $PPID'\n")
    support.must {"ln", "-s", "/nowhere", dir .. "/k/dangling.lua"}
    put("k/huge.lua", "-- require 'cute'\n" .. (" "):rep(1 << 20))
    local out, err, code = ci("k", "--seconds", "1", "--sarif", "log.sarif",
                              "--memory", "512")
    assert.same({"", 1}, {err, code})
    assert.matches("7 scripts: 6 with errors, 1 ok; 0 known", out)
    local found = {}
    for _, r in ipairs(log_of "log.sarif".runs[1].results) do
      local p = r.locations[1].physicalLocation
      local path = p.artifactLocation.uri
      assert.is_nil(found[path])
      found[path] = {p.region.startLine, r.ruleId}
    end
    assert.same({
      ["k/syntax.lua"] = {2, "error/script/lua"},
      ["k/endless.lua"] = {1, "error/script/limit"},
      ["k/memory.lua"] = {1, "error/environment/out-of-memory"},
      ["k/dies.lua"] = {1, "error/script/limit"},
      ["k/exits.lua"] = {1, "error/script/lua"},
      ["k/huge.lua"] = {1, "error/environment/io"}}, found)
  end)

  it("says that a folder has nothing to check", function()
    put("k/notes.txt", "")
    local out, err, code = ci("k", "--sarif", "log.sarif", "--badge", "b.json")
    assert.same({"cutelua: ci: no script that requires cute, and no captured "
      .. "launch, in k\n", 1}, {err, code})
    assert.matches("^cutelua ci: 0 scripts; 0 known; ", out)
    assert.equal(0, #log_of "log.sarif".runs[1].results)
    assert.equal("nothing checked",
      dkjson.decode(support.read(dir .. "/b.json")).message)
  end)

  it("rejects paths and files that do not exist before a check", function()
    put("s.lua", GOOD)
    local _, err, code = ci "none"
    assert.same({"cutelua: ci: cannot open none: No such file or directory "
      .. "[io]\n", 1}, {err, code})
    _, err, code = ci("s.lua", "--sarif", "none/log.sarif")
    assert.same({"cutelua: ci: cannot write none/log.sarif: No such file or "
      .. "directory [io]\n", 1}, {err, code})
    _, err, code = ci()
    assert.same({"cutelua: ci: which folders or scripts?\n", 2}, {err, code})
  end)

  it("reports a folder of verdicts that cannot be used #long", function()
    put("s.lua", GOOD)
    put("file", "")
    local _, err, code = ci("s.lua", "--cache", "file")
    assert.equal(0, code)
    assert.matches("^cutelua: ci: note: verdicts are not kept: cannot %l+ the "
      .. "[%l ]*folder file: %u[%l ]+\n$", err)
    local mount = {"unshare", "-m", "sh", "-c",
      'mkdir -p kept && mount -t tmpfs -o size=4k,mode=0755"$1" none kept '
      .. '&& "$2" ci s.lua --cache kept; code=$?; ls kept; exit $code', "sh"}
    local function within(options)
      local words = table.move(mount, 1, #mount, 1, {})
      words[#words + 1], words[#words + 2] = options, PROGRAM
      return support.exec(words, {cwd = dir})
    end
    if select(3, support.exec {"unshare", "-m", "true"}) ~= 0 then
      return pending "needs root and unshare"
    end
    for _, row in ipairs {{",ro", "Read-only file system"},
                          {",nr_inodes=1", "No space left on device"}} do
      local out
      out, err, code = within(row[1])
      assert.equal(0, code)
      assert.equal("cutelua: ci: note: verdicts are not kept: cannot write to "
        .. "the cache folder kept: " .. row[2] .. "\n", err)
      assert.matches("1 ok; 0 known; [%d.]+ s\n$", out)
    end
  end)
end)

describe("pytest with --cutelua-findings", function()
  local python = os.getenv "CUTELUA_PYTHON" or "python3"
  local library = support.absolute((os.getenv "CUTE_BUILD" or "build")
    .. "/libcutelua.so")
  local package = support.absolute "python"

  -- Runs the tests of the folder; returns output and exit code.
  local function pytest(...)
    local out, err, code = support.exec({python, "-m", "pytest", "-q", "-p",
      "no:cacheprovider", "-p", "cutelua.pytest_plugin", ...}, {cwd = dir,
      env = {CUTELUA_LIBRARY = library, PYTHONPATH = package,
             PYTHONDONTWRITEBYTECODE = "1", CUTELUA_NO_CUDA = "1"}})
    return out .. err, code
  end

  local KERNELS = [[
    local M = {}
    M.race = cute.kernel("race", function(x)
      local s = cute.make_smem_tensor(cute.f32, 64)
      local t = cute.arch.thread_idx()
      s[t] = x[t]
      x[t] = s[63 - t]
    end)
    function M.wrong(x) return cute.make_layout("8") end
    return M]]
  local TESTS = [[
import array, os, cutelua
m = cutelua.load(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              "k.lua"))
x = array.array("f", range(64))
def test_race(): m.race(x, grid=1, block=64)
def test_wrong(): m.wrong(x)
def test_right(): assert m is not None
]]

  it("writes the findings of all tests with their lines #noasan", function()
    if select(3, support.exec {python, "-c", "import pytest"}) ~= 0 then
      return pending "needs pytest (CUTELUA_PYTHON names a Python that has it)"
    end
    put("k.lua", KERNELS)
    put("test_k.py", TESTS)
    local out, code = pytest("--cutelua-findings", "log.sarif")
    assert.equal(1, code, out)
    assert.matches("2 failed, 1 passed", out)
    local results = log_of "log.sarif".runs[1].results
    for i, row in ipairs {{"race/smem/missing-barrier", 6},
        {"memory/smem/uninitialised", 6}, {"error/script/bad-argument", 8}} do
      local place = results[i].locations[1].physicalLocation
      assert.same({"k.lua", row[2], row[1]}, {place.artifactLocation.uri,
        place.region.startLine, results[i].ruleId})
    end
    assert.equal("bad argument #1 to 'cute.make_layout' (integer or tuple "
      .. "expected, got \"8\")", results[3].message.text:match "^[^\n]*")
    -- The edit that the repair search proposed adds the missing barrier.
    local fix = results[1].fixes[1].artifactChanges[1]
    assert.same({"k.lua", "  cute.arch.sync_threads()\n"},
      {fix.artifactLocation.uri,
       fix.replacements[1].insertedContent.text:match "  cute.*"})

    assert.equal(1, select(2, pytest("--cutelua-findings", "r.json")))
    schema.check((dkjson.decode(support.read(dir .. "/r.json"))), FORM)
    local told, _, ended = ci("--add", "r.json", "--sarif", "log.sarif")
    assert.equal(1, ended)
    assert.matches("k.lua:6:7: error: .*1 script: 1 with bugs", told)
    assert.same(#results, #log_of "log.sarif".runs[1].results)

    -- A test that fails without a finding still counts as an error.
    put("test_k.py", "import cutelua\ndef test(): assert False\n")
    assert.equal(1, select(2, pytest("--cutelua-findings", "r.json")))
    told, _, ended = ci("--add", "r.json")
    assert.equal(1, ended)
    assert.matches("1 script: 1 with errors", told)
    put("test_k.py", "import cutelua\ndef test(): pass\n")
    assert.equal(0, select(2, pytest("--cutelua-findings", "r.json")))
    told, _, ended = ci("--add", "r.json")
    assert.equal(0, ended)
    assert.matches("1 script: 1 ok", told)
  end)
end)

describe("ci/check.sh", function()
  local SCRIPT = support.absolute "ci/check.sh"

  local function check(env, ...)
    return support.exec({"sh", SCRIPT, ...}, {cwd = dir, env = env})
  end

  it("writes all reports and keeps verdicts #long", function()
    put("k/race.lua", RACE)
    for i = 0, 1 do
      local out, err, code = check({CUTELUA = PROGRAM, CUTELUA_OPTIONS =
        "--seconds 9"}, "k")
      assert.same({"", 1}, {err, code})
      assert.matches(("; %d known;"):format(i), out)
    end
    assert.is_true(#log_of "cutelua-reports/cutelua.sarif".runs[1].results > 0)
    for _, name in ipairs {"code-quality.json", "badge.svg"} do
      assert.truthy(support.read(dir .. "/cutelua-reports/" .. name))
    end
  end)

  it("unpacks a package, or says what it lacks #noasan #long", function()
    put("s.lua", GOOD)
    put("deb/DEBIAN/control", "Package: cutelua\nVersion: 1\nArchitecture: "
      .. "all\nMaintainer: a <a@b>\nDescription: x\n")
    put("deb/usr/bin/x", "")
    support.must {"cp", PROGRAM, dir .. "/deb/usr/bin/cutelua"}
    support.must {"dpkg-deb", "-Znone", "--build", dir .. "/deb",
                  dir .. "/c.deb"}
    local out, err, code = check {CUTELUA = "c.deb"}
    assert.same({"", 0}, {err, code})
    assert.matches("1 script: 1 ok", out)
    out, err, code = check {CUTELUA = "none"}
    assert.equal("", out)
    assert.same({"check.sh: there is no program none: set CUTELUA to the "
      .. "program, to a Debian package of a release, or to a folder with the "
      .. "sources\n", 1}, {err, code})
    out, err, code = check {CUTELUA = PROGRAM, CUTELUA_PYTEST = "tests",
                          CUTELUA_PYTHON = "false"}
    assert.same({"check.sh: pytest wrote no findings; does false have pytest "
      .. "and cutelua's wheel?\n", 1}, {err, code})
    assert.equal("", out)
  end)

  it("is what the action runs; its matcher finds the lines #long", function()
    put("k/race.lua", RACE)
    local action = support.read "action.yml"
    local step = action:match "\n      run: |\n(.-)\n    %- "
    assert.truthy(step)
    local out, err, code = support.exec({"sh", "-e", "-c", step}, {cwd = dir,
      env = {ACTION = support.absolute ".", PATHS = "k", CUTELUA = PROGRAM,
             CUTELUA_OPTIONS = "", CUTELUA_PYTEST = ""}})
    assert.same({"", 1}, {err, code})
    local matcher = out:match "^::add%-matcher::([^\n]+)\n"
    local found = support.must({"python3", "-c", [=[
import json, re, sys
m = json.load(open(sys.argv[1]))["problemMatcher"][0]["pattern"][0]
for line in sys.stdin:
    at = re.match(m["regexp"], line.rstrip("\n"))
    if at:
        print(*(at[m[k]] for k in ("file", "line", "severity", "code")))
]=], matcher}, {stdin = out})
    assert.equal(("k/race.lua %d error race/smem/missing-barrier"):format(
      line_of(RACE, "y%[t%] =")), found:match "^[^\n]+")
    -- The action must declare all inputs that it uses, and must name reports as
    -- `cutelua ci` writes them.
    for name in action:gmatch "inputs%.(%l+)" do
      assert.truthy(action:find("\n  " .. name .. ":\n", 1, true), name)
    end
    for path in (action .. support.read "ci/gitlab.yml"):gmatch
      "cutelua%-reports/(%S+)" do
      assert.truthy(support.read(dir .. "/cutelua-reports/" .. path), path)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
