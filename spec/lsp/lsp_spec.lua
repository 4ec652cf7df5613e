-- Tests `cutelua lsp`: diagnostics while a document changes, repairs, replies
-- about names, positions, limits, and replies to invalid messages.
local dkjson = require "dkjson"
local driver = require "spec.lsp.driver"
local support = require "spec.support"

-- The kernel of a script of spec/faults, with characters of several bytes. Line
-- 14, counted from 0, needs a barrier before it.
local RACE = [[
-- Prüfung 😀 of a race
local cute = require "cute"
local arch = cute.arch
local when = cute.when

local k = cute.kernel("faulty", function(x, y)
  local t, w = arch.thread_idx(), arch.warp_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(2), 128)
]] .. support.read "spec/faults/race/second_reduction.lua"
  :match "  local v = x%[t%].*":gsub("%-%- mend: [^\n]*", "--[=[ mend 😀 ]=]")
local URI = "file:///tmp/k%C3%A4rnel.lua"

local d

local function start(...)
  d = driver.start(...)
  return d:initialize()
end

local function stop()
  if not d then return end
  assert.equal(dkjson.null, d:ask("shutdown").result)
  d:notify "exit"
  assert.equal(0, d:close())
  d = nil
end

-- Applies the changes of an edit to a text, independently of cutelua's code.
local function applied(text, changes)
  local lines = {}
  for line in text:gmatch "([^\n]*)\n" do lines[#lines + 1] = line .. "\n" end
  assert.equal(1, #changes)
  local r = changes[1].range
  assert.same({0, 0}, {r.start.character, r["end"].character})
  assert.equal(r.start.line, r["end"].line)
  table.insert(lines, r.start.line + 1, changes[1].newText)
  return table.concat(lines)
end

describe("diagnostics", function()
  before_each(function() start() end)
  after_each(stop)

  it("show a race at its line and vanish after the repair", function()
    d:open(URI, RACE)
    local list = d:diagnostics(URI, 1)
    assert.equal(1, #list)
    local one = list[1]
    assert.same({1, "race/smem/missing-barrier", "cutelua"},
                {one.severity, one.code, one.source})
    assert.same({start = {line = 14, character = 4},
                 ["end"] = {line = 14, character = 18}}, one.range)
    assert.equal(11, one.relatedInformation[1].location.range.start.line)
    assert.equal(URI, one.relatedInformation[1].location.uri)
    local actions = d:actions(URI, one.range)
    -- After a request for actions, the server publishes the diagnostics again,
    -- now with repairs.
    assert.same(list, d:diagnostics(URI, 1))
    assert.equal("quickfix", actions[1].kind)
    assert.is_true(actions[1].isPreferred)
    local mended = applied(RACE, actions[1].edit.changes[URI])
    d:change(URI, 2, mended)
    assert.same({}, d:diagnostics(URI, 2))
    assert.same({}, d:ask("textDocument/codeAction", {context = {
      diagnostics = list, only = {"source.organizeImports"}},
      textDocument = {uri = URI}, range = one.range}).result)
    -- The server offers no repairs that were computed for an older text.
    assert.same({}, d:ask("textDocument/codeAction", {context = {
      diagnostics = {}}, textDocument = {uri = URI}, range = one.range}).result)
    d:change(URI, 3, RACE)
    assert.equal(14, d:diagnostics(URI, 3)[1].range.start.line)
    d:notify("textDocument/didClose", {textDocument = {uri = URI}})
    assert.same({}, d:diagnostics(URI))
  end)

  it("follow changes of ranges in UTF-16 units #long", function()
    d:open(URI, RACE)
    d:diagnostics(URI, 1)
    -- Columns count UTF-16 units: the emoji in the comment counts as two.
    d:change(URI, 2, "arch.sync_threads() --[[", {12, 2, 12, 7})
    d:change(URI, 3, "]]", {12, 35, 12, 38})
    assert.same({}, d:diagnostics(URI, 3))
    d:change(URI, 4, "", {12, 32, 12, 37})
    assert.equal("error/script/lua", d:diagnostics(URI, 4)[1].code)
  end)

  it("show errors of the script and of its text #long", function()
    d:open(URI, (RACE:gsub("arch.lane_idx%(%)", "arch.lane_index()", 1)))
    local one = d:diagnostics(URI, 1)[1]
    assert.same({9, "error/script/unknown-name"},
                {one.range.start.line, one.code})
    d:change(URI, 2, (RACE:gsub("local when =", "local when ==", 1)))
    one = d:diagnostics(URI, 2)[1]
    assert.same({3, "error/script/lua"}, {one.range.start.line, one.code})
  end)

  it("show bank conflicts after the check, and hints at their lines #long",
     function()
    d:open(URI, [[
local cute = require "cute"
local k = cute.kernel(function(y)
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(1024), 128)
  local t = cute.arch.thread_idx()
  s[t * 32] = 1.0
  y[t * 4] = s[t * 32]
end)
k(cute.zeros({128}, cute.f32)):launch {grid = 1, block = 32, device = "sim"}
]])
    local list = d:diagnostics(URI, 1)
    list = #list > 0 and list or d:diagnostics(URI, 1)
    assert.same({2, "performance/smem/bank-conflict"},
                {list[1].severity, list[1].code})
    assert.equal(4, list[1].range.start.line)
    d:facts()
    local hints = d:ask("textDocument/inlayHint", {textDocument = {uri = URI},
      range = {start = {line = 4, character = 0},
               ["end"] = {line = 9, character = 0}}}).result
    local said = {}
    for i, h in ipairs(hints) do
      said[i] = ("%d:%d %s"):format(h.position.line, h.position.character,
                                    h.label)
    end
    -- The 32 lanes store 4 bytes each to 16 sectors of 32 bytes; 4 sectors
    -- would hold these bytes.
    assert.same({"4:17 s: 32 passes a request in place of 1",
                 "5:22 s: 32 passes a request in place of 1",
                 "5:22 y: 25 % of the sectors' bytes are used"}, said)
    assert.matches("31 bank conflicts in 1 request", hints[1].tooltip)
  end)

  it("leave out modules and files without cute #long", function()
    d:open(URI, "local cute = require 'cute'\nreturn {}\n")
    assert.same({}, d:diagnostics(URI, 1))
    d:change(URI, 2, "io.write(nil + 1)\n")
    assert.same({}, d:diagnostics(URI, 2))
  end)
end)

describe("a script", function()
  after_each(stop)

  it("that never ends is stopped, and a change ends its check #long", function()
    start("--seconds", "1")
    local endless = "local cute = require 'cute'\nwhile true do end\n"
    d:open(URI, endless)
    assert.is_truthy(d:diagnostics(URI, 1)[1].message:find("limit is 1 s", 1,
      true))
    d:change(URI, 2, endless)
    os.execute "sleep 0.3"
    d:change(URI, 3, RACE)
    assert.equal(14, d:diagnostics(URI, 3)[1].range.start.line)
    for _, m in ipairs(d.notes) do assert.not_equal(2, m.params.version) end
  end)

  it("has no io unless allowed #long", function()
    local path = os.tmpname()
    start()
    d:open(URI, ("local cute = require 'cute'\nio.open(%q, 'w'):write 'x'\n")
      :format(path))
    assert.is_truthy(d:diagnostics(URI, 1)[1].message:find("no 'io'", 1, true))
    assert.equal("", support.read(path))
    os.remove(path)
  end)

  it("of more than 1 MiB is not checked #long", function()
    start()
    d:open(URI, RACE .. ("-- x\n"):rep(300000))
    assert.is_truthy(d:diagnostics(URI, 1)[1].message:find "at most 1048576")
    assert.same({}, d:at("completion", URI, 100, 0).items)
  end)
end)

local function labels(items)
  local set = {}
  for _, item in ipairs(items) do set[item.label] = item end
  return set
end

describe("answers about names", function()
  setup(function()
    start()
    d:open(URI, RACE)
    d:facts()
  end)
  teardown(stop)

  it("have the layout of a tensor, and the documentation of a name", function()
    local h = d:at("hover", URI, 14, 4)
    assert.is_truthy(h.contents.value:find("s: tensor f32,smem\n2:1", 1, true))
    assert.same({start = {line = 14, character = 4},
                 ["end"] = {line = 14, character = 5}}, h.range)
    local page = support.run {"doc", "arch.warp_idx"}
    h = d:at("hover", URI, 6, 44)
    assert.equal("```text\n" .. page .. "```", h.contents.value)
    assert.is_nil(d:at("hover", URI, 0, 0))
    assert.is_nil(d:at("hover", URI, 99, 99))
  end)

  it("complete names, methods and options #long", function()
    d:change(URI, 2, RACE .. "arch.sync_\nx:fi\n"
      .. "--😀\nlocal 😀 = arch.lane_\nk(x):launch {gri\n")
    local items = labels(d:at("completion", URI, 21, 10).items)
    assert.is_truthy(items.sync_threads)
    assert.is_nil(items.popc)
    assert.same({start = {line = 21, character = 5},
                 ["end"] = {line = 21, character = 10}},
                items.sync_threads.textEdit.range)
    local page = support.run({"doc", "arch.sync_threads"}):gsub("%s+", " ")
    assert.is_truthy(page:find(items.sync_threads.detail, 1, true))
    assert.equal(2, labels(d:at("completion", URI, 22, 4).items).fill.kind)
    items = labels(d:at("completion", URI, 24, 21).items)
    assert.same({start = {line = 24, character = 16},
                 ["end"] = {line = 24, character = 21}},
                items.lane_idx.textEdit.range)
    assert.equal("grid = ",
      labels(d:at("completion", URI, 25, 16).items).grid.textEdit.newText)
    d:change(URI, 3, RACE)
    d:facts()
  end)

  it("complete methods of a traced tensor #long", function()
    d:change(URI, 4, "  s:", {14, 0, 14, 4})
    assert.is_truthy(labels(d:at("completion", URI, 14, 4).items).fill)
    d:change(URI, 5, RACE)
    d:facts()
  end)

  it("have the layout as an inlay hint", function()
    local hints = d:ask("textDocument/inlayHint", {textDocument = {uri = URI},
      range = {start = {line = 7, character = 0},
               ["end"] = {line = 7, character = 9}}}).result
    assert.equal(1, #hints)
    assert.same({": 2:1", {line = 7, character = 9}},
                {hints[1].label, hints[1].position})
  end)
end)

describe("definitions", function()
  local folder

  setup(function()
    folder = support.folder()
    support.write(folder .. "/parts.lua", "local M = {}\n"
      .. "function M.first() end\nM.second = 2\nreturn M\n")
    start()
  end)
  teardown(function()
    stop()
    support.remove(folder)
  end)

  it("are found in scopes and in modules", function()
    local uri = "file://" .. folder .. "/main.lua"
    d:open(uri, [[
local parts = require "parts"
local x, y <const> = 1, 2
local function f(x, z)
  for i = 1, x do
    local y = i
    print(x, y, i, z)
  end
  return x + y
end
print(x, f, parts.first, parts.second)
]])
    local function target(line, character)
      local r = d:at("definition", uri, line, character)
      if not r then return nil end
      return ("%s:%d:%d"):format(r.uri:match "[^/]*$", r.range.start.line,
                                 r.range.start.character)
    end
    assert.equal("main.lua:2:17", target(5, 10))
    assert.equal("main.lua:4:10", target(5, 13))
    assert.equal("main.lua:3:6", target(5, 16))
    assert.equal("main.lua:2:20", target(5, 19))
    assert.equal("main.lua:1:9", target(7, 13))
    assert.equal("main.lua:1:6", target(9, 6))
    assert.equal("main.lua:2:15", target(9, 9))
    assert.equal("parts.lua:1:11", target(9, 18))
    assert.equal("parts.lua:2:2", target(9, 32))
    assert.equal("parts.lua:0:0", target(0, 25))
    assert.is_nil(target(9, 1))
  end)
end)

describe("a message that is not valid", function()
  after_each(stop)

  it("is answered by its code", function()
    d = driver.start()
    assert.equal(-32002, d:ask("shutdown").error.code)
    d:notify("textDocument/didOpen", {})
    assert.equal("utf-16", d:initialize().capabilities.positionEncoding)
    assert.equal(-32600, d:ask("initialize").error.code)
    assert.equal(-32601, d:ask("textDocument/nothing").error.code)
    for _, p in ipairs {{}, {textDocument = 1}, {textDocument = {uri = 7}},
        {textDocument = {uri = "file:///no"}, position = {line = 0,
          character = 0}}} do
      assert.equal(-32602, d:ask("textDocument/hover", p).error.code)
    end
    d:open(URI, "x")
    for _, at in ipairs {{line = -1, character = 0}, {line = 0.5,
        character = 0}, {line = "0", character = 0}, {line = 0}} do
      assert.equal(-32602, d:ask("textDocument/hover", {textDocument = {
        uri = URI}, position = at}).error.code)
    end
    for text, code in pairs {["{"] = -32700, [""] = -32700, ["7"] = -32600,
        ["[]"] = -32600, [("["):rep(100000)] = -32700, ["\0"] = -32700,
        ['{"jsonrpc":"2.0","id":1.5,"method":"shutdown"}'] = -32600,
        ['{"jsonrpc":"2.0","id":"a"}'] = -32600} do
      d:body(text)
      if text:find '"a"' then
        assert.equal(code, d:wait("a").error.code)
      else
        assert.equal(code, d:wait_odd())
      end
    end
    for _, m in ipairs {"didOpen", "didChange", "didClose", "didNothing"} do
      d:notify("textDocument/" .. m, {textDocument = {uri = 1, text = {}}})
    end
  end)

  it("does not end the session if its header is wrong #long", function()
    start()
    d:raw "Content-Type: x\r\n\r\n"
    assert.equal(-32700, d:wait_odd())
    d:raw(("x"):rep(100000))
    local ok = '{"jsonrpc":"2.0","id":"b","method":"no"}'
    d:body(ok)
    assert.equal(-32601, d:wait("b").error.code)
    local large = (16 << 20) + 1
    d:raw(("Content-Length: %d\r\n\r\n%s"):format(large, (" "):rep(large)))
    assert.equal(-32600, d:wait_odd())
    -- The server must accept a message that arrives byte by byte.
    for c in ("Content-Length: 40\r\n\r\n" .. ok:gsub('"b"', '"c"')):gmatch "."
    do
      d:raw(c)
    end
    assert.equal(-32601, d:wait("c").error.code)
  end)
end)

describe("diagnostics of PTX", function()
  local PTX = [[
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
]]
  local LAUNCH = [[{"entry": "k", "grid": 1, "block": 1, "args": ["x"],
    "memory": {"x": {"shape": 4}}}]]
  local folder

  setup(function()
    folder = support.folder()
    support.write(folder .. "/k.json", LAUNCH)
    start()
  end)
  teardown(function()
    stop()
    support.remove(folder)
  end)

  local function uri(name) return ("file://%s/%s"):format(folder, name) end

  -- Waits until the diagnostics of a version of a document are `want`.
  -- Diagnostics of a bug arrive twice: without and with repairs.
  local function has(name, version, want)
    local got
    repeat
      got = {}
      for i, one in ipairs(d:diagnostics(uri(name), version)) do
        assert.is_nil(one.message:find "/tmp/cutelua")
        got[i] = ("%d %s"):format(one.range.start.line, one.code)
      end
    until table.concat(got, ", ") == want
  end

  it("come from the reader if there is no LAUNCH file #long", function()
    d:open(uri "alone.ptx", PTX)
    has("alone.ptx", 1, "")
    d:change(uri "alone.ptx", 2, (PTX:gsub("mov.u32", "mov.u33")))
    has("alone.ptx", 2, "6 error/script/bad-ptx")
    d:change(uri "alone.ptx", 3, (PTX:gsub("ret;", "ret")))
    has("alone.ptx", 3, "9 error/script/bad-ptx")
  end)

  it("come from a check with the LAUNCH file, saved or not #long", function()
    d:open(uri "k.ptx", PTX)
    has("k.ptx", 1, "7 memory/gmem/out-of-bounds")
    d:change(uri "k.ptx", 2, (PTX:gsub("ret;", "rot;")))
    has("k.ptx", 2, "8 error/script/bad-ptx")
    d:change(uri "k.ptx", 3, PTX)
    has("k.ptx", 3, "7 memory/gmem/out-of-bounds")
    d:open(uri "k.json", (LAUNCH:gsub("4", "64")))
    has("k.json", 1, "")
    has("k.ptx", 3, "")
    d:change(uri "k.json", 2, (LAUNCH:gsub("shape", "shaep")))
    has("k.json", 2, "0 error/script/unknown-name")
    d:change(uri "k.json", 3, LAUNCH)
    has("k.json", 3, "0 memory/gmem/out-of-bounds")
  end)

  it("say that launches which never end were stopped #long", function()
    stop()
    start("--seconds", "0.5")
    local endless = PTX:gsub("  mov", "L:\n  mov"):gsub("ret;", "bra L;")
    support.write(folder .. "/loop.json", (LAUNCH:gsub('4', '17')))
    d:open(uri "loop.ptx", endless)
    local list = d:diagnostics(uri "loop.ptx", 1)
    local one = list[1]
    assert.same({3, 8, "not covered: a run was stopped at loop.ptx:9: the "
      .. "limit is seconds = 0.5"}, {one.severity, one.range.start.line,
      one.message})
    d:change(uri "loop.ptx", 2, PTX)
    has("loop.ptx", 2, "")
  end)

  it("leave out other files of JSON", function()
    d:open(uri "other.json", '{"a": 1}')
    has("other.json", 1, "")
  end)
end)

describe("diagnostics of other files", function()
  it("count UTF-16 units in files that are not open", function()
    start("--allow", "io")
    local dir = support.folder()
    local line = "  x[cute.arch.thread_idx() + 1] = 0.0 --[[ 😀 ]] ; return"
    support.write(dir .. "/part.lua", 'local cute = require "cute"\n',
                  "return function(x)\n", line, "\nend\n")
    d:open(URI, ([[
local cute = require "cute"
cute.kernel("k", dofile "%s/part.lua")(cute.zeros({32}, cute.f32)):launch {
  grid = 1, block = 32}
]]):format(dir))
    local one = d:diagnostics(URI, 1)[1]
    support.remove(dir)
    assert.equal("memory/gmem/out-of-bounds", one.code, one.message)
    local where = one.relatedInformation[1].location
    assert.truthy(where.uri:find "/part%.lua$")
    -- utf8.len counts the emoji as one unit; UTF-16 has two.
    assert.same({start = {line = 2, character = 2},
                 ["end"] = {line = 2, character = utf8.len(line) + 1}},
                where.range)
    stop()
  end)
end)

describe("a client", function()
  it("may flood the server with changes #long", function()
    start()
    d:open(URI, RACE)
    for i = 2, 2000 do
      d:change(URI, i, ("-- %d\n"):format(i), {0, 0, 0, 0})
    end
    assert.equal(14 + 1999, d:diagnostics(URI, 2000)[1].range.start.line)
    stop()
  end)

  it("may end without a message", function()
    d = driver.start()
    d:initialize()
    d:open(URI, RACE)
    assert.equal(0, d:close())
    d = driver.start()
    d:initialize()
    d:notify "exit"
    assert.equal(1, d:close())
    d = nil
  end)
end)

-- Neovim opens a file, waits for the diagnostics, inserts a barrier and waits
-- until the diagnostics are gone. It writes all diagnostics that it received.
local NEOVIM = [[
local function report(...)
  io.stdout:write(table.concat({...}, " "), "\n")
end
local id = vim.lsp.start_client {name = "cutelua", root_dir = "/tmp",
                                 cmd = {%q, "lsp"}}
vim.lsp.buf_attach_client(0, id)
local function wait(n)
  assert(vim.wait(20000, function() return #vim.diagnostic.get(0) == n end),
         "no diagnostics")
end
local function ask(method, line, character)
  local all = vim.lsp.buf_request_sync(0, method, {
    textDocument = vim.lsp.util.make_text_document_params(),
    position = {line = line, character = character}}, 20000)
  return all[id].result
end
wait(1)
local d = vim.diagnostic.get(0)[1]
report(d.lnum, d.col, d.code)
report(vim.split(ask("textDocument/hover", 10, 10).contents.value, "\n")[2])
report(ask("textDocument/definition", 14, 4).range.start.line)
vim.api.nvim_buf_set_lines(0, 12, 13, true, {"  arch.sync_threads() -- 😀"})
wait(0)
report("mended")
vim.lsp.stop_client(id)
vim.cmd "qa!"
]]

describe("Neovim", function()
  it("shows the diagnostics of a race until it is repaired", function()
    local _, _, code = support.exec {"nvim", "--version"}
    if code ~= 0 then return pending "needs Neovim" end
    local program = support.absolute(support.program)
    local driving, script = os.tmpname(), os.tmpname()
    support.write(driving, NEOVIM:format(program))
    support.write(script .. ".lua", RACE)
    local out = support.must {"timeout", "60", "nvim", "--headless", "-u",
      "NONE", "-i", "NONE", script .. ".lua", "-c", "luafile " .. driving}
    for _, path in ipairs {driving, script, script .. ".lua"} do
      os.remove(path)
    end
    assert.equal("14 4 race/smem/missing-barrier\n"
      .. "cute.arch.sync_threads()\n7\nmended\n", out)
  end)
end)
-- SPDX-License-Identifier: MIT
