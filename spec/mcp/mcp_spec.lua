-- Tests `cutelua mcp`: revisions of the protocol, tools, limits, cancellation,
-- and replies to invalid requests.
local dkjson = require "dkjson"
local driver = require "spec.mcp.driver"
local changes = require "cutelua.findings.changes"
local schema = require "spec.findings.schema"
local support = require "spec.support"

local FORM = dkjson.decode(support.read "docs/findings.schema.json")
local META = "io.modelcontextprotocol/"
local BARRIER = support.read "spec/faults/repair/barrier.lua"

-- Returns the field _meta that requests have from revision 2026-07-28 on.
local function modern(version, capabilities)
  return {_meta = {[META .. "protocolVersion"] = version or "2026-07-28",
    [META .. "clientCapabilities"] = capabilities
      or setmetatable({}, {__jsontype = "object"})}}
end

local d

local function start(...)
  d = driver.start(...)
  return d
end

local function stop()
  if d then assert.equal(0, d:close()) end
  d = nil
end

describe("revisions of the protocol", function()
  before_each(function() start() end)
  after_each(stop)

  it("are agreed on by a handshake up to 2025-11-25", function()
    for wanted, got in pairs {["2024-11-05"] = "2024-11-05",
        ["2025-06-18"] = "2025-06-18", ["2025-11-25"] = "2025-11-25",
        ["2026-07-28"] = "2025-11-25", ["1999-01-01"] = "2025-11-25"} do
      local r = d:initialize(wanted).result
      assert.equal(got, r.protocolVersion)
      assert.equal("cutelua", r.serverInfo.name)
      assert.is_nil(r.resultType)
    end
    assert.same({}, d:ask("ping").result)
    assert.equal(10, #d:ask("tools/list").result.tools)
    assert.equal(-32601, d:ask("server/discover").error.code)
  end)

  it("are named by each request from 2026-07-28 on", function()
    local r = d:ask("server/discover", modern()).result
    assert.same({"2026-07-28"}, {table.unpack(r.supportedVersions)})
    assert.same({"complete", "public"}, {r.resultType, r.cacheScope})
    assert.equal("cutelua", r._meta[META .. "serverInfo"].name)
    assert.equal("complete", d:ask("tools/list", modern()).result.resultType)
    local e = d:ask("tools/list", modern "2031-01-01").error
    assert.equal(-32022, e.code)
    assert.same({"2026-07-28", "2031-01-01"},
                {e.data.supported[1], e.data.requested})
    assert.equal(-32602, d:ask("tools/list", {_meta = {
      [META .. "protocolVersion"] = "2026-07-28"}}).error.code)
    assert.equal(-32601, d:ask("ping", modern()).error.code)
    assert.equal(-32601, d:ask("initialize", modern()).error.code)
  end)

  it("are required", function()
    local e = d:ask("tools/list").error
    assert.equal(-32602, e.code)
    assert.matches("initialize first", e.message)
  end)
end)

describe("what is no valid request", function()
  before_each(function() start():initialize() end)
  after_each(stop)

  it("is answered by the code of its error", function()
    for _, row in ipairs {
        {"{", -32700}, {"nul", -32700}, {'{"jsonrpc":"2.0",}', -32700},
        {"[]", -32600}, {'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600},
        {"7", -32600}, {'"x"', -32600}, {"null", -32600}, {"{}", -32600},
        {'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600},
        {'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600},
        {'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600},
        {("["):rep(1000000), -32700},
        {('{"a":'):rep(100000) .. "1" .. ("}"):rep(100000), -32700},
        {'"' .. ("x"):rep(17 << 20), -32600},
        {"\255\254\0", -32700}} do
      d:body(row[1])
      assert.equal(row[2], d:wait_odd(), row[1]:sub(1, 50))
    end
    for _, row in ipairs {
        {'"id":"a","method":"ping"', -32600},
        {'"jsonrpc":"1.0","id":"b","method":"ping"', -32600},
        {'"jsonrpc":"2.0","id":"c"', -32600},
        {'"jsonrpc":"2.0","id":"d","method":7', -32600},
        {'"jsonrpc":"2.0","id":"e","method":"nothing/here"', -32601},
        {'"jsonrpc":"2.0","id":"f","method":"tools/call","params":[]', -32602},
        {'"jsonrpc":"2.0","id":"g","method":"tools/call"', -32602},
        {'"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":'
          .. '"rm"}', -32602},
        {'"jsonrpc":"2.0","id":"i","method":"tools/list","params":{"cursor":'
          .. '"x"}', -32602},
        {'"jsonrpc":"2.0","id":"j","method":"tools/list","params":{"_meta":3}',
          -32602},
        {'"jsonrpc":"2.0","id":"k","method":"resources/read","params":{"uri":'
          .. '"file:///etc/passwd"}', -32002},
        {'"jsonrpc":"2.0","id":"l","method":"prompts/get","params":{"name":'
          .. '"fix-kernel"}', -32602}} do
      d:body("{" .. row[1] .. "}")
      assert.equal(row[2], d:wait(row[1]:match '"id":"(.)"').error.code, row[1])
    end
    assert.same({}, d:ask("ping").result)
  end)

  it("is ignored if it is a notification or an answer", function()
    for _, line in ipairs {'"method":"notifications/initialized"',
        '"method":"unknown"', '"method":"ping","params":[1]',
        '"method":"notifications/cancelled","params":{"requestId":99}',
        '"method":"notifications/cancelled","params":{"requestId":{}}',
        '"id":5,"result":{}', '"id":5,"error":{"code":1,"message":"x"}'} do
      d:body('{"jsonrpc":"2.0",' .. line .. "}")
    end
    d:body ""
    assert.same({}, d:ask("ping").result)
    assert.same({0, 0}, {#d.odd, #d.notes})
  end)

  it("never ends the server", function()
    math.randomseed(56)
    local random = math.random
    local TEXT = '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":'
      .. '{"name":"draw","arguments":{"layout":"(4,4):(4,1)","by":"none"}}}'
    local PIECES = {"", "[", "]", "{", "}", ",", ":", '"', "\\", "0", "null",
                    "\0", "\xff", "1e999", "-", "check", "run", "script"}
    for i = 1, 300 do
      local text = TEXT:gsub('"x"', '"x' .. i .. '"')
      for _ = 1, random(3) do
        local at = random(#text)
        text = text:sub(1, at - 1) .. PIECES[random(#PIECES)]
          .. text:sub(at + random(8))
      end
      d:body((text:gsub("\n", "")))
    end
    assert.same({}, d:ask("ping").result)
    for id, m in pairs(d.answers) do
      assert.truthy(m.result or m.error, tostring(id))
    end
  end)
end)

describe("tools", function()
  before_each(function() start():initialize() end)
  after_each(stop)

  it("check a script, and its edits repair it #long", function()
    local r = d:call("check", {script = BARRIER, name = "b.lua"})
    local found = r.structuredContent
    schema.check(found, FORM)
    assert.equal("bug", found.verdict)
    assert.equal("race/smem/missing-barrier", found.findings[1].code)
    assert.equal("b.lua", found.findings[1].places[1].file)
    assert.equal("  y[t] = s[63 - t]", found.findings[1].places[1].text)
    assert.matches("^check: kernel k: bug", r.content[1].text)
    assert.same(found, (dkjson.decode(r.content[2].text)))
    local text = changes.applied(BARRIER, found.findings[1].edits[1])
    found = d:call("check", {script = text}).structuredContent
    assert.same({"ok", 0}, {found.verdict, #found.findings})
  end)

  it("take scripts and lessons of the root folder, and no others", function()
    local r = d:call("check", {path = "scripts/gemm_base.lua",
      arguments = {"--m", "128", "--n", "128", "--k", "128"}})
    assert.equal("ok", r.structuredContent.verdict)
    for path, why in pairs {["/etc/passwd"] = "within the server's root",
        ["../x.lua"] = "within", ["a/../../x"] = "within", ["-e"] = "no script",
        [""] = "no script"} do
      r = d:call("check", {path = path})
      assert.is_true(r.isError)
      assert.matches(why, r.content[1].text)
    end
  end)

  it("reject links that lead out of the root folder", function()
    local folder = support.folder()
    support.write(folder .. "/out.lua", BARRIER)
    support.exec {"mkdir", folder .. "/top"}
    support.write(folder .. "/top/own.lua", BARRIER)
    support.exec {"ln", "-s", "../out.lua", folder .. "/top/link.lua"}
    support.exec {"ln", "-s", "..", folder .. "/top/up"}
    support.exec {"ln", "-s", "own.lua", folder .. "/top/near.lua"}
    local other = driver.start("--root", folder .. "/top")
    other:initialize()
    for _, path in ipairs {"link.lua", "up/out.lua"} do
      local r = other:call("check", {path = path})
      assert.is_true(r.isError)
      assert.equal(("path '%s' leads through a symbolic link out of the "
        .. "server's root folder: write a path whose file is inside"):format(
        path), r.content[1].text)
    end
    for _, path in ipairs {"own.lua", "near.lua", "up/top/own.lua"} do
      local r = other:call("check", {path = path})
      assert.equal("bug", r.structuredContent.verdict, path)
    end
    other:close()
    support.remove(folder)
  end)

  it("reject arguments by their schema", function()
    local none = setmetatable({}, {__jsontype = "object"})
    for _, row in ipairs {{none, "either script or path"},
        {{script = "", path = "x"}, "either"}, {{script = 3}, "type string"},
        {{script = "", seconds = "x"}, "type number"},
        {{script = "", seconds = 0}, "more than 0"},
        {{script = "", orders = 0}, "out of range"},
        {{script = "", arguments = {1}}, "arguments%[1%]"},
        {{script = "", name = "a/b.lua"}, "letters"},
        {{script = "", name = "-e"}, "letters"},
        {{script = "", speed = 1}, "no argument 'speed'"}} do
      local r = d:call("check", row[1])
      assert.is_true(r.isError)
      assert.matches(row[2], r.content[1].text)
    end
  end)

  it("check PTX", function()
    local PTX = ".version 8.0\n.target sm_80\n.address_size 64\n"
      .. ".visible .entry k(.param .u64 x) {\n"
      .. "  .reg .b64 %rd<2>; .reg .b32 %r<2>;\n  ld.param.u64 %rd0, [x];\n"
      .. "  mov.u32 %r0, 7;\n  st.global.b32 [%rd0+64], %r0;\n  ret;\n}\n"
    local found = d:call("check", {script = PTX, name = "kernel.ptx",
      launch = {entry = "k", grid = 1, block = 1, args = {"x"},
                memory = {x = {shape = 4}}}}).structuredContent
    local f = found.findings[1]
    assert.same({"memory/gmem/out-of-bounds", "kernel.ptx", 8},
                {f.code, f.places[1].file, f.places[1].line})
  end)

  it("run, explain, profile, estimate and compare", function()
    local r = d:call("run", {script = "print('a', ...)", arguments = {"b"}})
    assert.equal("a\tb\n", r.content[1].text)
    local mended = BARRIER:gsub("  y%[t%]", "  arch.sync_threads()\n%0")
    for _, name in ipairs {"explain", "profile", "estimate"} do
      r = d:call(name, {script = mended}).structuredContent
      schema.check(r, FORM)
      assert.same({"ok", name}, {r.verdict, r.command})
      assert.equal(name, r.results[1].kind)
      assert.equal("k", r.results[1].kernel)
      local stores = 0
      for _, line in ipairs(r.results[1].lines) do
        if (line.text or ""):find("y[t] = s", 1, true) then
          stores = stores + line.cuda_lines
          assert.truthy(line.cuda[1]:find("y[", 1, true)
            or line.cuda[#line.cuda]:find("y[", 1, true))
        end
      end
      assert.equal(name == "explain", stores > 0)
    end
    r = d:call("diff", {before = BARRIER:gsub("63 %- t", "t"),
                        after = mended}).structuredContent
    schema.check(r, FORM)
    assert.matches("__syncthreads", r.results[1].cuda)
    assert.is_true(r.results[1].now.instructions
      > r.results[1].before.instructions)
  end)

end)

describe("tools without scripts", function()
  before_each(function() start():initialize() end)
  after_each(stop)

  it("describe, draw, teach", function()
    assert.matches("^cute.make_layout%(shape", d:call("doc",
      {names = {"make_layout"}}).content[1].text)
    assert.matches("| 12 | 13 |", d:call("draw",
      {layout = "(4,4):(4,1)"}).content[1].text)
    local r = d:call("draw", {layout = "(4,4"})
    assert.is_true(r.isError)
    assert.matches("bad%-notation", r.content[1].text)
    assert.matches("1  layouts", d:call("learn").content[1].text)
    r = d:call("learn", {lesson = "1", answer = "os.remove 'x'"})
    assert.is_true(r.isError)
    assert.matches("have no 'os'", r.content[1].text)
    assert.matches("%-%-allow io", d:call("tune",
      {subject = "gemm"}).content[1].text)
  end)

  it("have resources and prompts", function()
    local list = d:ask("resources/list").result.resources
    for _, one in ipairs(list) do
      local r = d:ask("resources/read", {uri = one.uri}).result
      assert.is_true(#r.contents[1].text > 100, one.uri)
    end
    assert.is_true(#list > 20)
    assert.matches("^cute.copy%(", d:ask("resources/read",
      {uri = "cutelua://doc/copy"}).result.contents[1].text)
    local r = d:ask("prompts/get", {name = "write-kernel",
      arguments = {task = "%1 sums"}}).result
    assert.matches("task: %%1 sums\n", r.messages[1].content.text)
    assert.equal(3, #d:ask("prompts/list").result.prompts)
  end)
end)

describe("a script of a client", function()
  after_each(stop)

  it("has no io and os, and can open no file #long", function()
    start():initialize()
    for script, why in pairs {
        ["io.open 'x'"] = "have no 'io'", ["os.exit()"] = "have no 'os'",
        ["require 'io'"] = "not 'io'", ["require 'cute.core'"] = "may load",
        ["require 'cutelua.program.output'"] = "may load",
        ["require 'cute.lang.files'"] = "may load",
        ["string.format = nil table.concat = nil x()"] = "nil value",
        ["load('return os')()"] = "have no 'os'",
        ["return load(string.dump(function() end))()"] = "nil value",
        ["package.loadlib()"] = "nil value", ["debug.getregistry()"] = "nil",
        ["dofile 'README.md'"] = "nil value",
        ["print(_G.io)"] = "have no 'io'",
        ["local c = require 'cute' assert(c.cli.write_file('x', 'y'))"] =
          "[Tt]oo many open files",
        ["local c = require 'cute' assert(c.npy.read 'x.npy')"] = "[Tt]oo many "
          .. "open files"} do
      local r = d:call("run", {script = script})
      assert.equal("error", r.structuredContent.verdict, script)
      assert.matches(why, r.content[1].text)
    end
  end)

  it("has them if the server allows it #long", function()
    start("--allow", "io"):initialize()
    local r = d:call("run", {script = "io.write(os.type or 'x', "
      .. "require 'cute.core' and 'y')"})
    assert.equal("xy", r.content[1].text)
  end)

  it("cannot forge the server's frames", function()
    start():initialize()
    local r = d:call("run", {script = "print('\\0' .. ('0'):rep(32) .. "
      .. "' 16\\n{\"kind\":\"exit\"}') print('\\0 x')"})
    assert.equal("ok", r.structuredContent.verdict)
    assert.matches('"kind":"exit"', r.content[1].text)
  end)

  it("is limited in time, memory and output #long", function()
    start("--memory", "256", "--output", "16"):initialize()
    local r = d:call("run", {script = "print 'x' while true do end",
                             seconds = 0.5})
    assert.is_true(r.isError)
    assert.equal("x\nthe call was stopped: its limit is 0.5 s\n",
                 r.content[1].text)
    r = d:call("run", {script = "local t = {} for i = 1, 1e6 do t[i] = "
      .. "('x'):rep(1 << 20) .. i end"}).structuredContent
    assert.equal("error/environment/out-of-memory", r.findings[1].code)
    r = d:call("run", {script = "print(('x'):rep(100000))"})
    assert.matches("^x+\n%.%.%. more than 16384 bytes of output\n$",
                   r.content[1].text)
    assert.is_true(#r.content[1].text < 17000)
  end)
end)

describe("calls", function()
  after_each(stop)

  it("are cancelled without an answer #long", function()
    start("--jobs", "1"):initialize()
    local long = d:send("tools/call", {name = "run",
      arguments = {script = "while true do end"}})
    local waiting = d:send("tools/call", {name = "run",
      arguments = {script = "print 'no'"}})
    for _, id in ipairs {long, waiting} do
      d:notify("notifications/cancelled", {requestId = id, reason = "spec"})
    end
    local r = d:call("run", {script = "print 'yes'"})
    assert.equal("yes\n", r.content[1].text)
    assert.is_nil(d.answers[long])
    assert.is_nil(d.answers[waiting])
  end)

  it("report progress that increases", function()
    start():initialize()
    local id = d:send("tools/call", {name = "check", arguments = {
      script = BARRIER:gsub("s%[63 %- t%]", "s[t]")},
      _meta = {progressToken = "p"}})
    d:wait(id)
    assert.is_true(#d.notes > 0)
    for i, n in ipairs(d.notes) do
      assert.same({"notifications/progress", "p", i}, {n.method,
        n.params.progressToken, n.params.progress})
    end
  end)

  it("report progress while a launch runs #long", function()
    start():initialize()
    local id = d:send("tools/call", {name = "run", arguments = {seconds = 1.5,
      script = [[
        local cute = require "cute"
        local k = cute.kernel("slow", function(x)
          for i in cute.range(2000000000) do x[0] = x[0] + i end
        end)
        k(cute.zeros({1}, cute.i32)):launch {grid = 1, block = 1}]]},
      _meta = {progressToken = 7}})
    local r = d:wait(id).result
    assert.is_true(r.isError)
    assert.is_true(#d.notes > 0)
    assert.same({7, 1, "kernel slow runs"}, {d.notes[1].params.progressToken,
      d.notes[1].params.progress, d.notes[1].params.message})
  end)

  it("beyond the limit are rejected, the others answered #long", function()
    start():initialize()
    local ids = {}
    for i = 1, 150 do
      ids[i] = d:send("tools/call", {name = "draw",
                                     arguments = {layout = "2:1"}})
    end
    local done, full = 0, 0
    for _, id in ipairs(ids) do
      local m = d:wait(id)
      if m.result then done = done + 1
      else
        full = full + 1
        assert.equal(1001, m.error.code)
      end
    end
    assert.equal(150, done + full)
    assert.is_true(done >= 64)
  end)

  it("end when the client vanishes #long", function()
    start():initialize()
    d:send("tools/call", {name = "run",
      arguments = {script = "while true do end"}})
    local begun = os.time()
    assert.equal(0, d:close())
    d = nil
    assert.is_true(os.time() - begun < 20)
  end)
end)
-- SPDX-License-Identifier: MIT
