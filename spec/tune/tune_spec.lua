-- Tests `cutelua tune` from end to end, with child processes that need no GPU
-- (spec/tune/child.lua). The tuner must find the best candidate, even if others
-- misbehave. It must stop and resume, and keep its tables intact.
local choose = require "cute.ops.choose"
local core = require "cute.core"
local cute = require "cute"
local epilogues = require "cutelua.tune.epilogues"
local gemm = require "cute.ops.gemm"
local operands = require "cutelua.tune.operands"
local support = require "spec.support"
local tables = require "cutelua.tune.tables"
local time = require "spec.tune.faketime"
local tuned = require "cute.ops.tuned"

local CLASS = "bf16 bf16 bf16 tn row"

-- Returns the candidates of a problem, in order.
local function offers(problem, make)
  local o = operands.without_memory(problem, make)
  o.options.device = "sim:sm_90a"
  return select(2, gemm.offers(o.A, o.B, o.options, o.C))
end

-- Returns the names of the candidates of a problem, fastest first.
local function candidates(problem, least, make)
  local list = offers(problem, make)
  local names = {}
  for i = 1, math.min(#list, least or 24) do
    if list[i].ns <= 2 * list[1].ns then
      names[#names + 1] = choose.name(list[i])
    end
  end
  table.sort(names, function(a, b) return time(problem, a) < time(problem, b)
  end)
  return names
end

-- Runs the tuner with fake child processes. Returns standard output, error
-- output, exit code.
local function tune(dir, words, does, card)
  for i, word in ipairs(words) do words[i] = ("%q"):format(word) end
  return support.run({"-e", ("os.exit(require 'cutelua.tune'.main({'gemm', "
    .. "%s}, {worker = 'spec.tune.child'}))"):format(table.concat(words,
    ", "))}, {env = {
      XDG_DATA_HOME = dir, FAKE_TUNE = does, FAKE_CARD = card}})
end

local function table_of(dir, name)
  local path = ("%s/cutelua/tuned/%s.lua"):format(dir, name or "h200")
  return assert(tables.read(path))
end

local dir

-- Writes a file that returns an epilogue; `text` has its lines.
local function file(name, text)
  return support.write(("%s/%s"):format(dir, name), text)
end

local function class_of(word)
  local name, make = assert(epilogues.load(word))
  return operands.class(CLASS .. " 64 64 64", make, name), make
end

describe("cutelua tune", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("finds the best of each product, and prints only lines to a pipe",
      function()
    local out, err, code = tune(dir, {"512/1024,1024,512", "--jobs", "2"})
    assert.equal("", err)
    assert.equal(0, code)
    local rows = table_of(dir).gemm[CLASS]
    assert.equal(2, #rows)
    for i, m in ipairs {512, 1024} do
      local problem = ("%s %d 1024 512"):format(CLASS, m)
      local best = candidates(problem)[1]
      assert.same({m, 1024, 512, time(problem, best), time(problem, best),
                   best}, rows[i])
      assert.matches(("%dx1024x512"):format(m), out, 1, true)
      assert.matches(best, out, 1, true)
    end
    assert.falsy(out:find "\r" or out:find "\27")
    assert.matches("2 products measured\n$", out)
  end)

  it("ends a hung candidate, records faulty and wrong ones #long",
      function()
    local problem = CLASS .. " 512 1024 512"
    local names = candidates(problem)
    local out, err, code = tune(dir, {"512,1024,512", "--limit", "1",
      "--verbose"}, ("hang %s\ncrash %s\nwrong %s"):format(names[1], names[2],
      names[3]))
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal(names[4], table_of(dir).gemm[CLASS][1][6])
    for i, why in ipairs {"no answer in 1 s",
        "it ended: it ended with code 9 (an illegal address)",
        "wrong: D(0,0)"} do
      assert.matches(names[i] .. ": " .. why, out, 1, true)
      local journal = support.read(dir .. "/cutelua/tuned/h200.tsv")
      assert.matches(("failed\t%s\t-\t%s\n"):format(why, names[i]), journal, 1,
                     true)
    end
  end)

  it("measures products with an epilogue, which has rows of its own #long",
     function()
    local mine = file("my own.lua", [[
      return function(given)
        local bias, R, by = given:row "f32", given:tile(), 2.0
        return function(acc, at)
          return (acc + at:row(bias)) * by, acc + at:tile(R)
        end
      end]])
    for _, word in ipairs {"bias_gelu", "swiglu", "C", mine} do
      local _, err, code = tune(dir, {"512,1024,512", "--epilogue", word})
      assert.equal("", err)
      assert.equal(0, code)
      local class, make = class_of(word)
      local problem = class .. " 512 1024 512"
      local best = candidates(problem, nil, make)[1]
      assert.same({{512, 1024, 512, time(problem, best), time(problem, best),
                    best}}, table_of(dir).gemm[class])
    end
    assert.matches("^bf16 bf16 bf16 tn row my_own:%x+$", (class_of(mine)))
    assert.equal(CLASS .. " C:bf16", (class_of "C"))
    -- An equal epilogue uses the same rows, even in a file of another name.
    local other = file("other.lua", support.read(mine))
    tune(dir, {"256,1024,512", "--epilogue", other})
    assert.equal(2, #table_of(dir).gemm[class_of(mine)])
    assert.is_nil(table_of(dir).gemm[class_of(other)])
  end)

  it("takes the file that docs/tuning.md shows", function()
    local text = support.read "docs/tuning.md"
      :match "\n(    local cute = .-\n    end\n)"
    local _, err, code = tune(dir, {"512,1024,512", "--epilogue",
                                    file("mine.lua", text)})
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal(1, #table_of(dir).gemm[class_of(dir .. "/mine.lua")])
  end)

  it("reports what is wrong with an epilogue", function()
    for _, case in ipairs {
        {"nothing", "'nothing' is neither a file nor one of C, bias, "},
        {file("a.lua", "return 3"), "a.lua returns 3; a function is needed"},
        {file("b.lua", "return function("), "b.lua:1: "},
        {file("c.lua", "error 'no'"), "c.lua:1: no"},
        {file("d.lua", "return function() end"),
         "returns an epilogue for each product, got nil"},
        {file("e.lua", "return function() return function() end end"),
         "e.lua:1 returns nothing"}} do
      local out, err, code = tune(dir, {"1,2,3", "--epilogue", case[1]})
      assert.equal("", out)
      assert.equal(2, code)
      assert.matches("^cutelua tune: %-%-epilogue: ", err)
      assert.matches(case[2], err, 1, true)
    end
  end)
end)

describe("cutelua tune", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("checks a candidate's results, and rereads a changed file #long",
     function()
    for i, word in ipairs(epilogues.NAMES) do
      local name, make = epilogues.load(word)
      local class = i % 2 == 0 and CLASS or "f16 f16 f16 nt column"
      local o = operands.of(("%s %d 96 64"):format(class, 40 + i), make, "host")
      local set = o.sets[1]
      set.options.device = "sim:sm_80"
      local D = cute.ops.gemm(set.A, set.B, set.C, set.options)
      assert.is_nil(o:wrong(), name)
      D[{o.m - 1, 0}] = D(o.m - 1, 0) + 9
      assert.matches(("wrong: D(%d,0) is "):format(o.m - 1), o:wrong(), 1, true)
    end
    local path = file("x.lua", [[return function()
      return function(acc) return acc * 3.0 end
    end]])
    local problem = class_of(path) .. " 64 64 64"
    file("x.lua", [[return function()
      return function(acc) return acc * 4.0 end
    end]])
    local out = support.run({"-e", ("require 'cutelua.tune.worker'.main(%q)")
      :format(path)}, {stdin = ("compile\t%s\tsm_90a\t132\tx\n"):format(
      problem)})
    assert.matches("fail\tx\tthe epilogue 'x' has changed since the run "
      .. "started", out, 1, true)
  end)

  it("resumes where it was killed", function()
    local words = {"256,1024,512", "512,1024,512", "1024,1024,512"}
    local path = dir .. "/cutelua/tuned/h200.tsv"
    local command = ("XDG_DATA_HOME=%s FAKE_TUNE='slow 0.02' %s -e \"os.exit("
      .. "require 'cutelua.tune'.main({'gemm', '%s'}, {worker = "
      .. "'spec.tune.child'}))\" "
      .. ">/dev/null 2>&1 & echo $!"):format(dir, support.program,
      table.concat(words, "', '"))
    local p <close> = io.popen(command)
    local pid = p:read "l"
    repeat  -- stops the tuner while it measures the second product
      os.execute "sleep 0.02"
      local text = support.read(path) or ""
    until select(2, text:gsub(" 512 1024 512\tlook", "")) >= 3
    os.execute("kill -9 " .. pid)
    local before = support.read(path)
    -- The resumed run must not measure the same candidates again.
    local _, err, code = tune(dir, words)
    assert.equal("", err)
    assert.equal(0, code)
    local after, seen = support.read(path), {}
    assert.equal(before, after:sub(1, #before))
    for line in after:gmatch "[^\n]+" do
      assert.is_nil(seen[line], line)
      seen[line] = true
    end
    local rows = table_of(dir).gemm[CLASS]
    for i, m in ipairs {256, 512, 1024} do
      assert.equal(candidates(("%s %d 1024 512"):format(CLASS, m))[1],
                   rows[i][6])
    end
  end)

  it("resumes with a journal that is truncated anywhere #long", function()
    local function run() return tune(dir, {"256,1024,512"}) end
    local path = dir .. "/cutelua/tuned/h200"
    run()
    local journal, want = support.read(path .. ".tsv"), table_of(dir)
    local head = journal:find "\n"
    local lines = journal:gsub("\t[%d.]+\t[^\t]*\t", function(times)
      local bad = {"\tno\t-\t", "\t1e999\t-\t", "\t-3\t-\t", times}
      return bad[#times % 4 + 1]
    end)
    support.write(path .. ".tsv", lines .. "\n\0\t\t\n")
    os.remove(path .. ".lua")
    assert.same({"", 0}, {select(2, run())})
    assert.same(want, table_of(dir))
    for _, at in ipairs {0, 20, head - 1, #journal - 100, #journal - 14} do
      support.write(path .. ".tsv", journal:sub(1, at))
      os.remove(path .. ".lua")
      local _, err, code = run()
      assert.equal("", err)
      assert.equal(0, code)
      assert.same(want, table_of(dir))
      local last = assert(support.read(path .. ".tsv")):match "([^\n]*)\n$"
      assert.equal(4, select(2, last:gsub("\t", "")))
    end
    for _, text in ipairs {"other\n", "# cutelua tune 2"} do
      support.write(path .. ".tsv", text)
      local _, err, code = run()
      assert.equal(1, code)
      assert.matches("h200.tsv is not a journal of cutelua tune", err, 1, true)
      assert.equal(text, support.read(path .. ".tsv"))
    end
  end)

  it("continues after an impossible product", function()
    local out, err, code = tune(dir, {"2147483647,2147483647,2147483647",
      "64,1024,512"})
    assert.equal("", err)
    assert.equal(0, code)
    assert.matches("^2147483647x2147483647x2147483647 nothing could be "
      .. "measured: [^\n]*does not fit in an extent or stride", out)
    assert.equal(1, #table_of(dir).gemm[CLASS])
    assert.matches(": 1 product measured\n$", out)
    out, err, code = tune(dir, {"64,64,64", "--types", "f64:bf16"})
    assert.same({"", 1}, {err, code})
    assert.matches("measured: no kernel supports these types\n", out, 1, true)
  end)
end)

describe("cutelua tune", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("checks results in coarse types #long", function()
    for _, types in ipairs {"bf16 bf16 e4m3", "e5m2 e4m3 e5m2", "u8 u8 u8",
                            "i8 i8 i8", "bf16 bf16 i8", "i8 i8 i32"} do
      local o = operands.of(types .. " tn row 40 48 200", nil, "host")
      local set = o.sets[1]
      set.options.device = "sim:sm_90a"
      cute.ops.gemm(set.A, set.B, set.options)
      assert.is_nil(o:wrong(), types)
      o.D[{39, 47}] = o.D(39, 47) > 30 and 3 or 60
      assert.matches("wrong: D(39,47) is ", o:wrong(), 1, true)
    end
  end)

  it("distinguishes saturated sums from lost bits and from nothing #long",
    function()
      local o = operands.of("u8 u8 u8 tn row 16 16 512", nil, "host")
      local memory, byte = core.param_memory, nil
      -- Replaces GPU memory by a fake that only records the byte that memset
      -- writes.
      core.param_memory = function()
        return {memset = function(_, x) byte = x end}
      end
      o:spoil()
      core.param_memory = memory
      for i = 0, 255 do o.D[{i // 16, i % 16}] = byte end
      assert.matches("wrong: D(0,0) is 85, not 255", o:wrong(), 1, true)
      o = operands.of("i8 i8 i8 tn row 40 48 4096", nil, "host")
      local set, inside = o.sets[1], 0
      set.options.device = "sim:sm_90a"
      cute.ops.gemm(set.A, set.B, set.options)
      assert.is_nil(o:wrong())
      for _, s in ipairs(o.samples) do
        inside = inside + (math.abs(s.want) < 127 and 1 or 0)
      end
      assert.is_true(inside > 2, inside)
      -- The check must detect a product that sums only the first half of K.
      local function half(t)
        return cute.make_tensor(t.iterator, cute.make_layout(
          {t.layout.shape[1], 2048}, {t.layout.stride[1], 1}))
      end
      cute.ops.gemm(half(set.A), half(set.B), set.options)
      assert.matches("wrong: D(", o:wrong(), 1, true)
      local function quarter() return function(acc) return acc * 0.25 end end
      o = operands.of("i8 i8 i8 tn row 41 48 64", quarter, "host")
      set = o.sets[1]
      set.options.device = "sim:sm_90a"
      cute.ops.gemm(set.A, set.B, set.options)
      assert.is_nil(o:wrong())
    end)

  it("runs twice at once", function()
    local parts = {}
    for i, m in ipairs {"256/512/1024", "2048/128/64"} do
      parts[i] = ("XDG_DATA_HOME=%s FAKE_TUNE='slow 0.005' %s -e \"os.exit("
        .. "require 'cutelua.tune'.main({'gemm', '%s,1024,512'}, "
        .. "{worker = 'spec.tune.child'}))\" >/dev/null"):format(dir,
          support.program, m)
    end
    local _, err, code = support.exec {"sh", "-c", parts[1] .. " & a=$!; "
      .. parts[2] .. "; b=$?; wait $a && exit $b"}
    assert.equal("", err)
    assert.equal(0, code)
    local rows = table_of(dir).gemm[CLASS]
    local ms = {}
    for i, r in ipairs(rows) do ms[i] = r[1] end
    assert.same({64, 128, 256, 512, 1024, 2048}, ms)
    for line in io.lines(dir .. "/cutelua/tuned/h200.tsv") do
      assert.truthy(line:find "^# " or line:find
        "^bf16 bf16 bf16 tn row %d+ 1024 512\t%l+\t[%d.]+\t[%d.-]+\tgemm_%w+ ",
        line)
    end
  end)

  it("leaves a table alone that is none, or of another card", function()
    os.execute("mkdir -p " .. dir .. "/cutelua/tuned")
    local path = dir .. "/cutelua/tuned/h200.lua"
    for _, case in ipairs {
        {"return {format = 1, card", "is not used: ", "The file is unchanged"},
        {"return {format = 9}", "is not used: its format is 9, not 1",
         "move it away"},
        {tables.text {card = "NVIDIA H100", arch = "sm_90a", sms = 132,
                     gemm = {}}, "on NVIDIA H100 (sm_90a), but this GPU is "
          .. "NVIDIA H200", "--out"}} do
      support.write(path, case[1])
      local out, err, code = tune(dir, {"64,1024,512", "--most", "3"})
      assert.equal(1, code)
      assert.equal(case[1], support.read(path))
      assert.equal("", out)
      assert.matches(case[2], err, 1, true)
      assert.matches(case[3], err, 1, true)
    end
    os.remove(path)
    os.execute("mkdir " .. path)
    local _, err, code = tune(dir, {"64,1024,512", "--most", "3"})
    assert.equal(1, code)
    assert.matches("h200.lua is not used: it is not a file", err, 1, true)
    os.execute("rmdir " .. path)
    _, err, code = tune(dir, {"64,1024,512", "--most", "3"})
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal(1, #table_of(dir).gemm[CLASS])
  end)
end)

describe("cutelua tune", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("reports wrong arguments #long", function()
    for _, case in ipairs {
        {{}, "--shapes is needed: M,N,K or a file"},
        {{"12"}, "--shapes: '12' is neither M,N,K nor a file"},
        {{"/"}, "--shapes: '/' is neither M,N,K nor a file"},
        {{"0,1,2"}, "--shapes: '0' is not an extent"},
        {{"1,99999999999999999999,2"},
         "'99999999999999999999' is not an extent"},
        {{"1,2,3", "--types", "bf17"}, "no type 'bf17'"},
        {{"1,2,3", "--types", "f16:f16:f16:f16"}, "has more than three"},
        {{"1,2,3", "--layout", "xy"}, "one of tn, nt, nn, tt expected"},
        {{"1,2,3", "--lok", "3"}, "unknown option '--lok'"},
        {{"1,2,3", "--out", "/nowhere/x.lua"}, "cannot write /nowhere"}} do
      local out, err, code = tune(dir, case[1])
      assert.equal("", out)
      assert.equal(2, code)
      assert.matches("^cutelua tune: ", err)
      assert.matches(case[2], err, 1, true)
    end
    local shapes = file("shapes", "# M N K\n\n")
    local _, err, code = tune(dir, {"--shapes", shapes})
    assert.equal(2, code)
    assert.matches("shapes: the file has no M,N,K", err, 1, true)
    shapes = file("shapes", "# M N K\n64, 64,64\n7 8\n")
    _, err, code = tune(dir, {"--shapes", shapes})
    assert.equal(2, code)
    assert.matches("shapes:3: '7 8' is not M,N,K", err, 1, true)
    local many = ("1/"):rep(1 << 12) .. "1"
    shapes = file("shapes", ("%s,%s,%s"):format(many, many, many))
    _, err, code = tune(dir, {"--shapes", shapes})
    assert.equal(2, code)
    assert.matches("shapes:1: over 65536 products", err, 1, true)
    _, err, code = support.run({"tune", "conv"})
    assert.equal(2, code)
    assert.matches("tune conv: write 'cutelua tune gemm'", err, 1, true)
    local out = support.run {"tune", "gemm", "--help"}
    assert.matches("^usage: cutelua tune gemm", out)
    for line in out:gmatch "[^\n]*" do assert.is_true(#line <= 80, line) end
  end)

  it("has no folder if HOME is unset", function()
    for _, home in ipairs {"", "somewhere"} do
      local _, err, code = support.run({"-e", "os.exit(require 'cutelua.tune'"
        .. ".main({'gemm', '64,64,64'}, {worker = 'spec.tune.child'}))"}, {
          env = {XDG_DATA_HOME = "relative", HOME = home}})
      assert.equal(1, code)
      assert.matches("no folder for tables was found: name a file with "
        .. "--out", err, 1, true)
    end
  end)

  it("reports that there is no GPU", function()
    local _, err, code = support.run({"tune", "gemm", "64,64,64"}, {
      env = {CUTELUA_NO_CUDA = "1", XDG_DATA_HOME = dir}})
    assert.equal(1, code)
    assert.matches("^cutelua tune: no GPU to measure on: ", err)
  end)

  it("shows its progress on a terminal #long", function()
    local out = support.exec({"python3", "spec/program/terminal.py",
      support.program, "-e", "os.exit(require 'cutelua.tune'.main({'gemm', "
      .. "'256,1024,512'}, {worker = 'spec.tune.child'}))"}, {stdin = "",
      env = {XDG_DATA_HOME = dir, FAKE_TUNE = "slow 0.01"}})
    assert.matches("tune 1/1 256x1024x512: 1/%d+ measured", out)
    assert.matches("best [%d.]+ us, [%d.]+ TFLOP/s, gemm_sm%d+ ", out)
  end)
end)


local function problem(m, n, k, more)
  local o = operands.without_memory(("%s %d %d %d"):format(CLASS, m, n, k))
  local p, list = gemm.offers(o.A, o.B, {out = o.D, device = "sim:sm_90a"})
  for name, v in pairs(more or {}) do p[name] = v end
  return p, list
end

-- Returns the choice of ops.explain for a product, in a process in which the
-- user has a table for an invented GPU.
local function explained(text, m, more, class, first)
  os.execute("mkdir -p " .. dir .. "/cutelua/tuned")
  support.write(dir .. "/cutelua/tuned/h1.lua", text)
  return support.run({"-e", ([[
    local choose = require "cute.ops.choose"
    local devices = require "cute.lang.devices"
    local gemm = require "cute.ops.gemm"
    local operands = require "cutelua.tune.operands"
    local d = {info = {name = "NVIDIA H1", sms = 144}}
    for k, v in next, require "cute".device "sim:sm_90a" do d[k] = v end
    d.name = "NVIDIA H1"
    setmetatable(d, devices.Device)
    for _, m in ipairs {%s} do
      local o = operands.without_memory("%s " .. m .. " 1024 512")
      local options = {out = o.D, device = d}
      %s
      local p = gemm.offers(o.A, o.B, options)
      for k, v in pairs {%s} do p[k] = v end
      local c = choose.choose(p)
      print(m, choose.name(c), c.how)
    end]]):format(m, class or CLASS, first or "", more or "")},
    {env = {XDG_DATA_HOME = dir}})
end

local function of(rows, fields)
  local t = {card = "NVIDIA H1", arch = "sm_90a", sms = 144,
             gemm = {[CLASS] = rows}}
  for k, v in pairs(fields or {}) do t[k] = v end
  return tables.text(t)
end

-- Returns how ops.gemm chooses for a product of 512 x 1024 x 512 with this
-- epilogue, and its choice. `rows` maps classes of products to measured
-- candidates.
local function with(rows, f, types)
  local gemms = {}
  for class, name in pairs(rows) do
    gemms[class] = {{512, 1024, 512, 1.0, 1.0, name}}
  end
  local out, err = explained(of({}, {gemm = gemms}), "512", nil, types, ([[
    local cute = require "cute"
    local ops = cute.ops
    local function tensor(...) return cute.empty({...}, o.D.element_type) end
    local bias, rows, R = tensor(1024), tensor(512), tensor(512, 1024)
    local f32, by = cute.empty({1024}, "f32"), 2.0
    options.epilogue = %s]]):format(f))
  assert.equal("", err)
  local name, how = out:match "^512\t([^\t]*)\t([^\n]*)\n$"
  return how, name
end

-- Returns the names of configurations that are candidates for M of 256 and of
-- 512, in the order of candidates().
local function of_both()
  local names, there = {}, {}
  for _, name in ipairs(candidates(CLASS .. " 256 1024 512", 99)) do
    there[name] = true
  end
  for _, name in ipairs(candidates(CLASS .. " 512 1024 512")) do
    if there[name] then names[#names + 1] = name end
  end
  return names
end

describe("tuned tables", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("name each candidate once, whatever the sizes", function()
    for _, s in ipairs {{1, 1024, 4096}, {4096, 4096, 4096}, {33, 128, 264}} do
      local _, list = problem(table.unpack(s))
      local seen = {}
      for _, c in ipairs(list) do
        local name = choose.name(c)
        assert.is_nil(seen[name], name)
        seen[name] = true
      end
    end
  end)

  it("read back as they were written", function()
    local t = {format = 1, card = "A \"card\"", arch = "sm_90a", sms = 7,
      gemm = {[CLASS] = {{1, 2, 3, 1.5, 2.25, "x y"}, {1, 2, 4, 1.0, 2.0, "z"}},
              ["f16 f16 f16 tn row"] = {{9, 9, 9, 3.25, 4.0, "w"}}}}
    assert.same(t, tables.parse(tables.text(t)))
    tables.merge(t, {[CLASS] = {{1, 2, 4, 0.5, 1.0, "new"},
                               {2, 2, 4, 1.0, 1.0, "more"}}})
    assert.same({"x y", "new", "more"}, {t.gemm[CLASS][1][6],
      t.gemm[CLASS][2][6], t.gemm[CLASS][3][6]})
  end)

  it("are not looked for in the working folder", function()
    local at = support.folder()
    for _, name in ipairs {"init.lua", ".lua", ".so"} do
      support.write(at .. "/" .. name, "io.open('ran', 'w'):close()")
    end
    local p <close> = io.popen "pwd"
    local program = support.program:find "^/" and support.program
      or p:read "l" .. "/" .. support.program
    local _, err, code = support.exec({program, "-e", [[
      local cute = require "cute"
      local A = cute.zeros({16, 16}, cute.f16)
      cute.ops.gemm(A, A, {device = "sim:sm_80"})]]}, {cwd = at})
    assert.equal("", err)
    assert.equal(0, code)
    assert.is_nil(support.read(at .. "/ran"))
    support.remove(at)
  end)

  it("are bounded before they are read", function()
    local at = support.folder()
    os.execute("truncate -s 17M " .. at .. "/big; ln -s /dev/zero " .. at
      .. "/zero; mkfifo " .. at .. "/pipe")
    for name, want in pairs {big = "it is larger than 16 "
      .. "MiB", zero = "it is not a file",
        pipe = "it is not a file"} do
      local path = at .. "/" .. name
      assert.same({nil, path .. " is not used: " .. want},
                  {tables.read(path)})
    end
    local out, err, code = support.run {"tune", "gemm", "--shapes",
                                        "/dev/zero"}
    assert.same({"", 2}, {out, code})
    assert.matches("larger than 4 MiB", err)
    support.remove(at)
  end)

  it("hold numbers and words, no programs", function()
    for _, case in ipairs {
        {"while true do end", "line 1: 'return' and a table are needed, got "
         .. "'while'"}, {"return {", "line 1: a table, a number or a word in "
         .. "quotes is needed, got its end"},
        {"return os.exit(3)", "got 'os'"},
        {"return {('x'):rep(1 << 40)}", "got '('"},
        {"goto x ::x::", "got 'goto'"}, {"return 3", "it does not return a "
          .. "table"},
        {'return {"--", (function() repeat until nil end)()\n}', "got '('"},
        {'return {[[ " ]], (function() repeat until nil end)(), [[ " ]]}',
         "got '['"}, {[[return {'"', ("x"):rep(1 << 40), '"'}]], "got '('"},
        {'local a = "x" a = a .. a a = a .. a return {}', "got 'local'"},
        {"return {" .. ("a"):rep(1 << 20) .. "}", "got 'aaaa"},
        {"return " .. ("{"):rep(300) .. ("}"):rep(300), "too many levels"},
        {"--[[\nreturn {}]] while true do end", "a one-line comment"},
        {"--[==[\nreturn {}]==] while true do end", "a one-line comment"},
        {"return {} --[[\n]] , (function() while true do end end)()",
         "a one-line comment"},
        {"return {}\n\nreturn {}", "line 3: the end of the file is needed, got "
          .. "'return'"},
        {"return {[(function() end)()] = 1}", "got '('"},
        {"return {f = function() end}", "got 'function'"},
        {"return {a.b}", "got 'a'"}, {"return {a == 1}", "got 'a'"},
        {"return {1 .. 2}", "',' or '}' is needed, got '.'"},
        {"return {1, 2, 1..2}", "got '1'"}, {"return {'x' 'y'}", "got '''"},
        {"return {{} {}}", "got '{'"}, {"return {-{}}", "got '-'"},
        {"return {#'x'}", "got '#'"}, {"return {'\\q'}", "an escape"},
        {"return {'a\nb'}", "an unfinished string"},
        {"return {'a", "an unfinished string"}, {"return", "got its end"},
        {"return {[0/0] = 1}", "']' is needed"}, {"return {[{}] = 1}", "a key"},
        {"return {format = 1}", "card, arch, sms or gemm is missing"},
        {"\27Lua", "'return' and a table"},
        {'return {format=1,card="",arch="",sms=1,gemm={x={{1,2,3,4,5,6}}}}',
         "row 1 of \"x\" is not {M, N, K, hot, cold, choice}"},
        {'return {format=1,card="",arch="",sms=1,gemm={x={{1,2,3,4,1e999,""}}'
         .. "}}",
         "row 1 of \"x\" is not {M, N, K, hot, cold, choice}"}} do
      local t, why = tables.parse(case[1])
      assert.is_nil(t)
      assert.matches(case[2], why, 1, true)
    end
    local mended = tables.parse([[
      -- it's "mine
      return {format = 1, card = 'a "--" \'b', arch = "\
\\", sms = 1, gemm = {x = {{1, 2, 3, 0x4, 5e-1, "--[["}}}} -- "]])
    assert.same({'a "--" \'b', "\n\\", {1, 2, 3, 4, 0.5, "--[["}},
      {mended.card, mended.arch, mended.gemm.x[1]})
  end)
end)

describe("tuned tables", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("apply to measured products only", function()
    local names = of_both()
    local out, err = explained(of {{256, 1024, 512, 1.0, 1.0, names[5]},
      {512, 1024, 512, 1.0, 1.0, names[6]}}, "256, 300, 512")
    assert.equal("", err)
    local rule = choose.name(select(2, problem(300, 1024, 512))[1])
    assert.equal(("256\t%s\tmeasured\n300\t%s\tby rule\n512\t%s\tmeasured\n")
      :format(names[5], rule, names[6]), out)
  end)

  it("of an epilogue apply to the same one #long", function()
    local class, make = (function()
      local name, m = epilogues.load "bias_silu_residual"
      return operands.class(CLASS .. " 64 64 64", m, name), m
    end)()
    local name = candidates(class .. " 512 1024 512", nil, make)[6]
    local rows = {[class] = name}
    for _, f in ipairs {
        "function(a, p) return ops.silu(a + p:col(bias)) + p:tile(R) end",
        "function(x, at) local y = x + at:col(bias)\n"
        .. "  return ops.silu(y) + at:tile(R) end"} do
      assert.same({"measured", name}, {with(rows, f)})
      assert.same({"measured", name}, {with(rows, f, "f16 f16 f16 tn row")})
    end
    for _, f in ipairs {
        "function(a, p) return ops.silu(a + p:col(bias)) - p:tile(R) end",
        "function(a, p) return ops.silu(a + p:row(rows)) + p:tile(R) end",
        "function(a, p) return ops.silu(a + p:col(f32)) + p:tile(R) end",
        "function(a, p) return ops.silu(a + p:col(bias)) + p:tile(R), a end",
        "function(a, p) return (ops.silu(a + p:col(bias)) + p:tile(R))"
        .. ":to 'f16' end",
        "function(a) return a end", "nil"} do
      assert.equal("by rule", (with(rows, f)), f)
    end
    -- The class of a function depends on its literals, but not on numbers that
    -- it captures.
    local scaled = operands.class(CLASS .. " 64 64 64", function()
      local x = 1.0
      return function(a) return a * x end
    end, "scaled")
    assert.equal("measured", (with({[scaled] = name}, "function(a) return "
      .. "a * by end")))
    assert.equal("by rule", (with({[scaled] = name}, "function(a) return "
      .. "a * 2.0 end")))
    assert.equal("by rule", (with({[CLASS] = name}, "function(a) return "
      .. "a * 2.0 end")))
  end)
end)

describe("tuned tables", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("apply to f16 if only bf16 was measured", function()
    local names = of_both()
    local f16 = "f16 f16 f16 tn row"
    local rows = {{256, 1024, 512, 1.0, 1.0, names[5]},
                  {512, 1024, 512, 1.0, 1.0, names[5]}}
    local out, err = explained(of(rows, {gemm = {[CLASS] = rows,
      [f16] = {{512, 1024, 512, 1.0, 1.0, names[6]}}}}), "256, 512", nil, f16)
    assert.equal("", err)
    assert.equal(("256\t%s\tmeasured\n512\t%s\tmeasured\n"):format(names[5],
      names[6]), out)
    -- Measured rows do not apply if D has another type.
    out = explained(of(rows), "256", nil, "f16 f16 f32 tn row")
    assert.matches("by rule", out, 1, true)
  end)

  it("are used if they are valid, which is reported once #long", function()
    local name = of_both()[7]
    local rows = {{256, 1024, 512, 1.0, 1.0, name},
                  {512, 1024, 512, 1.0, 1.0, name}}
    for _, case in ipairs {
        {of(rows, {card = "NVIDIA H2"}), "by rule", "h1.lua was measured on "
          .. "NVIDIA H2 (sm_90a, 144 multiprocessors) and is not used on "
          .. "NVIDIA H1 (sm_90a, 144 multiprocessors)"},
        {of(rows, {sms = 114}), "by rule",
         "(sm_90a, 114 multiprocessors) and is not used on NVIDIA H1"},
        {of(rows, {arch = "sm_100a"}), "by rule",
         "(sm_100a, 144 multiprocessors) and is not used on"},
        {of {{256, 1024, 512, 1.0, 1.0, "gemm_sm90 1x1x1"},
             {512, 1024, 512, 1.0, 1.0, "gemm_sm90 1x1x1"}}, "by rule",
         "has configurations that no longer exist, such as 'gemm_sm90 1x1x1'"},
        {"return {", "by rule", "h1.lua is not used: "}} do
      local out, err = explained(case[1], "256, 512")
      assert.equal(2, select(2, out:gsub("\t" .. case[2] .. "\n", "")), out)
      assert.equal(1, select(2, err:gsub("\n", "")), err)
      assert.matches(case[3], err, 1, true)
      assert.equal(case[1], support.read(dir .. "/cutelua/tuned/h1.lua"))
    end
  end)

  it("of the repository apply to its GPU; explain says why not #long",
     function()
    -- {name, multiprocessors, whether the repository's table applies, whether
    -- the user has a table}
    for _, case in ipairs {{"NVIDIA H200", 132, true},
        {"NVIDIA H100 80GB HBM3", 132}, {"NVIDIA H100 PCIe", 114},
        {"NVIDIA H20", 78}, {"NVIDIA GH200 480GB", 132},
        {"NVIDIA H200 NVL", 132}, {"NVIDIA H200", 60},
        {"NVIDIA H20", 78, false, true}} do
      local name, sms, applies, own = table.unpack(case)
      if own then
        os.execute("mkdir -p " .. dir .. "/cutelua/tuned")
        support.write(("%s/cutelua/tuned/%s.lua"):format(dir,
          tables.card(name)), tables.text {card = name, arch = "sm_90a",
            sms = sms, gemm = {}})
      end
      local out, err = support.run({"-e", ([[
        local cute = require "cute"
        local devices = require "cute.lang.devices"
        local d = {info = {name = %q, sms = %d}}
        for k, v in next, cute.device "sim:sm_90a" do d[k] = v end
        d.name = %q
        setmetatable(d, devices.Device)
        local A = cute.empty({512, 512}, cute.bf16)
        local e = cute.ops.explain(A, A, {device = d})
        print(e.how, e.unused)
        print(e)]]):format(name, sms, name)}, {env = {XDG_DATA_HOME = dir}})
      assert.equal("", err)
      local why = not (applies or own) and ("kernels.tuned.h200 was measured "
        .. "on NVIDIA H200 (sm_90a, 132 multiprocessors) and is not used on %s "
        .. "(sm_90a, %d multiprocessors)"):format(name, sms)
      assert.equal(("%s\t%s\n"):format(applies and "measured" or "by rule",
        why or "nil"), out:match "^[^\n]*\n", name)
      assert.equal(why and true or false,
        why and out:find("; by rule: " .. why, 1, true) ~= nil or false)
    end
  end)

  it("of the repository name candidates that there are #long", function()
    for class, rows in pairs(require("kernels.tuned.h200").gemm) do
      local name, make = class:match "([%w_]+):%w+$", nil
      if name then
        name, make = assert(epilogues.load(name))
        assert.equal(class, operands.class(class .. " 64 64 64", make, name))
      end
      for _, r in ipairs(rows) do
        local what = ("%s %d %d %d"):format(class, r[1], r[2], r[3])
        local there = {}
        for _, c in ipairs(offers(what, make)) do
          there[choose.name(c)] = true
        end
        assert(there[r[6]], what .. ": " .. r[6])
      end
    end
  end)

  it("have no batches and no factors of blocks", function()
    assert.equal(CLASS, tuned.class((problem(64, 64, 64))))
    for name, v in pairs {batches = 2, group = 128, zeros = false} do
      assert.is_nil(tuned.class((problem(64, 64, 64, {[name] = v}))))
    end
    assert.equal("h200", tables.card "NVIDIA H200")
    assert.equal("geforce-rtx-4090", tables.card "NVIDIA GeForce RTX 4090")
  end)
end)
-- SPDX-License-Identifier: MIT
