-- Tests the workshop under node, web/engine.js with web/worker.js: requests
-- that only a page sends, and the messages for users' mistakes in them.
local misuse = require "spec.workshop.misuse"
local npy = require "cute.npy"
local workshop = require "spec.workshop.asked"

local put = workshop.put

local function run(text, request)
  request = request or {}
  request.ask, request.text = "run", text
  return request
end

-- Returns a .npy file of f32 (2,3) with changed fields of its header.
local function file(changes, bytes)
  local text = npy.make_header("f32", {2, 3})
  for from, to in pairs(changes or {}) do
    local at, to_at = text:find(from, 1, true)
    text = text:sub(1, at - 1) .. to .. text:sub(to_at + 1)
  end
  local head = 10
  text = text:sub(1, 8) .. ("<I2"):pack(#text - head) .. text:sub(head + 1)
  return text .. (bytes or ("<f"):rep(6):pack(0, 1, 2, 3, 4, 5))
end

describe("the workshop under node reports", function()
  local requests, answers = {{engine = {seconds = 30}}}, nil
  for i, row in ipairs(misuse.list) do requests[i + 1] = misuse.request(row) end

  for i, row in ipairs(misuse.list) do
    it(i .. ": " .. misuse.name(row), function()
      answers = answers or workshop.under_node(requests)
      misuse.check(row, answers[i + 1].answer, answers[i + 1].out)
    end)
  end
end)

describe("the workshop under node", function()
  it("returns its version, and prompts before any run", function()
    local all = workshop.under_node {{engine = {}}, {ask = "prompt",
      text = "cute.make_layout({2, 3}), x"}}
    local about = all[1].answer
    assert.equal("Lua 5.4", about.lua)
    assert.equal(2 << 30, about.memory)
    assert.equal(1, about.threads)
    assert.truthy(all[2].out:find "^%(2,3%):%(1,2%)")
  end)

  it("stops endless code soon, and continues", function()
    local loops = {"while true do end", "print 'begun' while true do end",
      "while true do pcall(error) end",
      "coroutine.wrap(function() while true do end end)()",
      "io.stdout:setvbuf 'no' while true do print 'x' end"}
    local asks = {{engine = {}}, put("a.npy", file())}
    for _, text in ipairs(loops) do
      asks[#asks + 1] = run(text, {stop = 0.3})
      asks[#asks + 1] = run("print(a, x) x = 1")
    end
    local all = workshop.under_node(asks)
    local took = {}
    for i = 3, #asks, 2 do
      assert.same({ok = false, stopped = true}, all[i].answer)
      took[#took + 1] = all[i].stopped
      assert.equal("ptr[f32,host] o (2,3):(3,1)\tnil\n", all[i + 1].out)
    end
    assert.equal("begun\n", all[5].out)
    -- The slowest request is not checked, because the machine may have been
    -- busy once.
    table.sort(took)
    assert.is_true(took[#took - 1] < 3, took[#took - 1])
  end)

  it("ends runs that exceed their time limit", function()
    local all = workshop.under_node {{engine = {seconds = 0.4}},
      run "while true do end", run "print 'on'"}
    assert.same({ok = false, stopped = true, late = true, error = {message =
      "this took longer than 0.4 s, the limit of time, and was stopped"}},
      all[2].answer)
    assert.equal("on\n", all[3].out)
  end)

  it("answers other requests during a run, but runs one at a time", function()
    local all = workshop.under_node {{engine = {}},
      run("while true do end", {stop = 0.2, with = {ask = "syntax",
        text = "x x"}}),
      run("while true do end", {stop = 0.2, with = {ask = "complete",
        text = "x = cute.make_la .. y", at = 16}}),
      run("while true do end", {stop = 0.2, with = run "print(1)"})}
    assert.equal(1, all[2].during.line)
    assert.same({9, "make_layout"}, {all[3].during.from,
                                     all[3].during.list[1].text})
    assert.equal("something runs: wait for its end, or stop it",
                 all[4].during.error.message)
  end)

  it("keeps a MiB of output, and reports what it dropped", function()
    local all = workshop.under_node {{engine = {}},
      run "for _ = 1, 1e5 do print(('x'):rep(99)) end",
      run "io.stdout:write(('y'):rep(100000000)) io.stderr:write 'end'",
      run "print 'on'"}
    for i, n in ipairs {10000000, 100000003} do
      local out, dropped = all[i + 1].out, n - (1 << 20)
      assert.equal(dropped, all[i + 1].answer.dropped)
      assert.equal(("\n... %d bytes more are not shown: 1 MiB are kept of "
        .. "what a run prints\n"):format(dropped), out:sub((1 << 20) + 1))
    end
    assert.equal("on\n", all[4].out)
  end)

  it("has no standard input", function()
    local all = workshop.under_node {{engine = {}},
      run "print(io.read(), io.read 'n', io.read 'a')"}
    assert.equal("cutelua: there is no standard input here, io.read gives "
      .. "nil\nnil\tnil\t\n", all[2].out)
  end)

  it("has files: those that were put, and those that scripts wrote", function()
    local all = workshop.under_node {{engine = {}},
      put("mine.lua", "return {v = 42}"), put("sub/b.lua", "return 7"),
      run [[print(require "mine".v, (require "sub.b"))
        io.open("out.txt", "w"):write "\xff\0!":close()
        io.open("sub/b.lua", "w"):write "return 8":close()]],
      {ask = "files"}, run "print((require 'sub.b'))",
      put("../x", ""), put("", ""), put("sub", "x")}
    assert.equal("42\t7\n", all[4].out)
    assert.same({{name = "out.txt", bytes = workshop.base64 "\xff\0!"},
      {name = "sub/b.lua", bytes = workshop.base64 "return 8"}},
      all[5].answer.files)
    assert.equal("8\n", all[6].out)
    for i, name in ipairs {"../x", ""} do
      assert.equal("no name of a file: '" .. name .. "'",
                   all[6 + i].answer.error.message)
    end
    assert.equal("sub of 1 bytes cannot be kept: there is something else of "
      .. "that name", all[9].answer.error.message)
  end)
end)

describe("the workshop under node", function()
  it("makes tensors of .npy files, and reports wrong ones", function()
    local HUGE = "(100000, 100000, 1000)"
    local lies = {
      {"x is not a .npy file (it does not start with \\x93NUMPY)", "hello"},
      {"x is empty", ""}, {"x ends within its header", file():sub(1, 30)},
      {"x is too short: 24 bytes of elements expected for shape (2,3) of f32, "
        .. "got 20", file():sub(1, -5)},
      {"x is too short: 40000000000000 bytes of elements expected for shape "
        .. "(100000,100000,1000) of f32, got 24", file {["(2, 3)"] = HUGE}},
      {"x element type '|O' is not supported", file {["<f4"] = "|O"}},
      {"x big-endian elements ('>f4') are not supported: in Python, "
        .. "a.astype('<f4') converts them",
        file {["<f4"] = ">f4"}},
      {"x structured element types are not supported",
        file {["'<f4'"] = "[('a', '<f4')]"}},
      {"x: npy.tensor: a buffer cannot have elements of complex_f64",
        file({["<f4"] = "<c16"}, ("\0"):rep(96))},
      {"x has the unknown .npy version 9.0",
        (file():gsub("^(.......)", "%1", 1):gsub("^(......).", "%1\9", 1))}}
    local asks = {{engine = {}}, put("my data-1.npy", file()),
      put("end.npy", file {False = "True"}), put("9.npy", file()),
      put("print.npy", file()), put("cute.npy", file()),
      run "print(my_data_1(1, 2), end_(1, 2), _9) my_data_1[{1, 2}] = 9",
      run "print(my_data_1(1, 2))", {ask = "prompt", text = "end_(1, 0)"}}
    local first = #asks
    for _, lie in ipairs(lies) do
      asks[#asks + 1] = put("x.npy", lie[2])
    end
    local all = workshop.under_node(asks)
    for i, global in ipairs {"my_data_1", "end_", "_9", "print_", "cute_"} do
      assert.same({ok = true, dtype = "f32", shape = {2, 3}, global = global},
                  all[i + 1].answer)
    end
    assert.equal("5.0\t5.0\tptr[f32,host] o (2,3):(3,1)\n", all[7].out)
    assert.equal("5.0\n", all[8].out)
    assert.equal("1.0\n", all[9].out)
    for i, lie in ipairs(lies) do
      local e = all[first + i].answer.error
      assert.equal(lie[1]:gsub("^x", "x.npy"), e and e.message)
    end
  end)

  it("takes large scripts, and rejects those over 64 MiB", function()
    local all = workshop.under_node {{engine = {}},
      run("print(#arg) --", {pad = 8 << 20}),
      run("print(#arg) --", {pad = (64 << 20) + 1})}
    assert.equal("0\n", all[2].out)
    assert.equal("a script of 67108865 bytes; the limit is 64 MiB",
                 all[3].answer.error.message)
  end)

  it("starts a program anew that a script broke", function()
    local all = workshop.under_node {{engine = {}}, run "x = 1",
      run "local t = require 'cute.core' for k in pairs(t) do t[k] = nil end",
      run "print(x, require 'cute'.make_layout {4})"}
    assert.equal("the script crashed the program, which was restarted",
                 all[3].answer.error.message)
    assert.equal("nil\t(4):(1)\n", all[4].out)
  end)

  it("gives large memory back when the next script begins, keeps files",
    function()
      local all = workshop.under_node {{engine = {}}, put("a.npy", file()),
        run [[cute = require "cute"
          t = {}
          for i = 1, 6 do t[i] = cute.zeros({1 << 25}, cute.f32) end
          io.open("b.txt", "w"):write "kept":close()]],
        {ask = "prompt", text = "#t, t[6](3)"},
        run [[local s = io.open("b.txt"):read "a" print(t, s, a(1, 2))]],
        {ask = "files"}, {ask = "prompt", text = "a(0, 1)"}}
      for i = 3, 4 do
        assert.is_true(all[i].answer.ok)
        assert.is_true(all[i].answer.large > 6 << 27)
      end
      assert.equal("6\t0.0\n", all[4].out)
      assert.equal("nil\tkept\t5.0\n", all[5].out)
      assert.is_nil(all[5].answer.large)
      assert.equal("b.txt", all[6].answer.files[1].name)
      assert.equal("1.0\n", all[7].out)
    end)

  it("reports insufficient memory, and recovers it", function()
    local all = workshop.under_node {{engine = {}},
      run "local s = 'x' while true do s = s .. s end",
      run [[local cute = require "cute"
        t = {}
        for i = 1, 100 do t[i] = cute.zeros({1 << 25}, cute.f32) end]],
      run "require 'cute'.zeros({1 << 33}, require 'cute'.u8)",
      run "print 'on'"}
    assert.equal("not enough memory: a page has 2 GiB at most",
                 all[2].answer.error.message)
    assert.equal("cute.zeros: 8589934592 elements are too many for a buffer",
                 all[4].answer.error.message)
    local e = all[3].answer.error
    assert.same({"out-of-memory", "out of memory (134217728 bytes requested)"},
                {e.kind, e.message})
    assert.equal("on\n", all[5].out)
  end)
end)
-- SPDX-License-Identifier: MIT
