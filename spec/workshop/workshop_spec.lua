-- Tests the native workshop's responses: to runs, to input at the prompt after
-- a run, and to requests for pages.
local workshop = require "spec.workshop.asked"

-- Returns the responses to requests; each response has the request's output as
-- `out`.
local function asked(requests)
  local list = {}
  for i, one in ipairs(workshop.asked(requests)) do
    list[i] = one.answer
    list[i].out = one.out
  end
  return list
end

local function run(text, request)
  request = request or {}
  request.ask, request.text = "run", text
  return request
end

local function prompt(text) return {ask = "prompt", text = text} end

-- A script with a kernel that has bank conflicts in line 6 and, if racy, a race
-- of lines 9 and 10.
local SCRIPT = [[
local cute = require "cute"
local tile = cute.make_layout({32, 32}, {32, 1})
local turn = cute.kernel("turn", function(x, y, racy)
  local tid = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, tile)
  for i = 0, 31 do s[{tid, i}] = x[i * 32 + tid] end
  cute.arch.sync_threads()
  if racy then
    s[{tid, 0}] = x[tid] + 1
    y[tid] = s[{31 - tid, 0}]
  end
  for i = 0, 31 do y[i * 32 + tid] = s[{i, tid}] end
end)
x = cute.zeros({1024}, cute.f32)
local y = cute.zeros({1024}, cute.f32)
turn(x, y, false):launch {grid = 1, block = 32}
turn(x, y, false):launch {grid = 1, block = 32}
turn(x, y, arg[1] == "racy"):launch {grid = 1, block = 32}
print "turned"
]]

describe("the workshop", function()
  it("runs a script; its globals and locals are at the prompt", function()
    local answers = asked {run(SCRIPT, {name = "dir/turn.lua"}),
      prompt "cute.size(x), cute.size(y), arg[0]", run "y = 1",
      prompt "x, y, tile", {ask = "costs", kernel = 1}}
    local answer = answers[1]
    assert.is_nil(answer.error)
    assert.same({true, 0, "turned\n"}, {answer.ok, answer.code, answer.out})
    assert.equal("1024\t1024\tturn.lua\n", answers[2].out)
    assert.equal("nil\t1\tnil\n", answers[4].out)
    assert.equal("nothing was launched yet: run a script first",
                 answers[5].error.message)
  end)

  it("returns the page of a run, its costs and pictures on request", function()
    local answers = asked {run(SCRIPT, {name = "turn.lua"}),
      {ask = "costs", kernel = 1}, {ask = "timeline", kernel = 1},
      {ask = "picture", number = 1}, {ask = "picture", number = 99}}
    local page = answers[1].page
    assert.same({"turn.lua"}, {page.files[1].name})
    assert.equal("local cute = require \"cute\"", page.files[1].lines[1])
    assert.equal(1, #page.kernels)
    local k = page.kernels[1]
    assert.same({"turn", 3, 0, 0}, {k.name, k.launches, page.left,
                                    #page.pictures})
    local conflicts, issued = {}, 0
    for key, c in pairs(k.counts) do
      conflicts[k.keys[tonumber(key)][2]] = c.conflicts
      assert.is_nil(c.issued)
    end
    assert.equal(31 * 32, conflicts[6])
    assert.equal(0, conflicts[12])
    local again = answers[2].kernel
    for _, c in pairs(again.counts) do issued = issued + (c.issued or 0) end
    assert.is_true(issued > 64)
    assert.equal(3, again.launches)
    assert.truthy(again.estimate:find "^kernel turn on H200")
    assert.truthy(answers[3].text:find "^timeline of turn, model of H200")
    assert.is_true(#answers[3].picture.panels[1].bars >= 1)
    assert.is_true(#answers[4].picture.panels >= 1)
    assert.equal("picture: the last run has no picture 99",
                 answers[5].error.message)
  end)

  it("reports a race at its line, and the code of os.exit", function()
    local answers = asked {run(SCRIPT, {name = "turn.lua", words = {"racy"}}),
      run "print 'a' os.exit(3) print 'b'", run "os.exit(true)",
      run "os.exit(false)"}
    local answer = answers[1]
    assert.same({false, 1, "kernel-fault", 18}, {answer.ok, answer.code,
      answer.error.kind, answer.error.line})
    local k = answer.page.kernels[2]
    local note = k.notes[1]
    assert.same({10, 9}, {k.keys[note.key][2], k.keys[note.also][2]})
    assert.same({"a\n", 3, false}, {answers[2].out, answers[2].code,
                                    answers[2].ok})
    assert.same({true, false}, {answers[3].ok, answers[4].ok})
  end)

  it("takes no text that ends too early", function()
    local answers = asked {run "x =", run "x = 1 +", run "return 1",
                           run "x = 1", prompt "x"}
    for i = 1, 2 do
      assert.same({false, "unexpected symbol near <eof>"},
                  {answers[i].ok, answers[i].error.message})
    end
    assert.same({true, true, "1\n"}, {answers[3].ok, answers[4].ok,
                                      answers[5].out})
  end)

  it("schedules launches by its seed, unless they have one", function()
    local text = [[
      local cute = require "cute"
      local k = cute.kernel("order", function(count, at)
        local n = cute.arch.atomic_add(count.iterator, 1)
        at[n] = cute.arch.block_idx():to(cute.i32)
      end)
      local function order(seed)
        local at, list = cute.zeros({8}, cute.i32), {}
        k(cute.zeros({1}, cute.i32), at):launch {grid = 8, block = 1,
                                                 seed = seed}
        for i = 0, 7 do list[i + 1] = tostring(at[i]) end
        print(table.concat(list, " "))
      end
      order()
      order(5)]]
    local answers = asked {run(text), run(text, {seed = 5}),
      run(text, {seed = -1}), run(text, {seed = "x"})}
    local first, own = answers[1].out:match "^([%d ]+)\n([%d ]+)\n$"
    assert.not_equal(first, own)
    assert.equal(own .. "\n" .. own .. "\n", answers[2].out)
    assert.equal("seed = -1; an integer of at least 0 is needed",
                 answers[3].error.message)
    assert.equal('seed = "x"; an integer of at least 0 is needed',
                 answers[4].error.message)
  end)

  it("shows the drawings of cute.draw", function()
    local answers = asked {run [[
      local cute = require "cute"
      cute.draw(cute.make_layout({2, 3}))
      print(#cute.draw("4:1", {as = "svg"}) > 100)]],
      prompt "cute.draw '(4,2):(2,1)'"}
    assert.equal("true\n", answers[1].out)
    assert.same({0, 2, 4, 1, 3, 5},
                answers[1].pictures[1].panels[1].ids.offset)
    assert.equal("(4,2):(2,1)", answers[2].pictures[1].title)
    assert.is_nil(answers[1].page)
  end)
end)

describe("the workshop", function()
  it("has the prompt's inputs, whole and unfinished", function()
    local answers = asked {prompt "for i = 1, 2 do",
      prompt "for i = 1, 2 do print(i) end", prompt "local a = 7", prompt "a",
      prompt "?make_layout", prompt "error 'no'", prompt "1 = 2",
      prompt "cute.make_layout({2, 2})"}
    assert.is_true(answers[1].unfinished)
    assert.same({"1\n2\n", "", "7\n"}, {answers[2].out, answers[3].out,
                                        answers[4].out})
    assert.truthy(answers[5].out:find "^cute.make_layout%(")
    assert.same({"no", 1}, {answers[6].error.message, answers[6].error.line})
    assert.falsy(answers[7].ok)
    assert.truthy(answers[8].out:find "^%(2,2%):%(1,2%)\n")
  end)

  it("completes, explains and reads syntax", function()
    local answers = asked {{ask = "complete", text = "x = cute.make_la"},
      {ask = "complete", text = "cute.zeros({4}, cute.f32):fil"},
      {ask = "about", name = "make_layout"}, {ask = "about", name = "nope"},
      {ask = "syntax", name = "s.lua", text = "#!x\nlocal a = 1"},
      {ask = "syntax", name = "s.lua", text = "local a = 1\nb b"}}
    assert.equal("make_la", answers[1].word)
    assert.same({text = "make_layout",
                 about = "Makes the layout shape:stride."}, answers[1].list[1])
    assert.truthy(answers[3].text:find "^cute.make_layout%(shape")
    assert.truthy(answers[4].message:find "^no public name 'nope'")
    assert.is_nil(answers[5].line)
    assert.same({2, "syntax error near 'b'"}, {answers[6].line,
                                               answers[6].message})
  end)
end)
-- SPDX-License-Identifier: MIT
