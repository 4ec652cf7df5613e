-- Tests requests that the tutorial's page sends to the workshop.
local learn = require "cutelua.learn"
local workshop = require "cutelua.workshop"

local function ask(request) return workshop.ask(request) end

-- Returns the number and the text of the nth block of a kind in a lesson.
local function at(lesson, kind, n)
  for i, block in ipairs(ask {ask = "lesson", name = lesson}.blocks) do
    if block.kind == kind then
      n = n - 1
      if n == 0 then return i, block.text end
    end
  end
end

local function block(lesson, index, text, before)
  return ask {ask = "block", lesson = lesson, index = index, text = text,
              before = before}
end

describe("a lesson in the workshop", function()
  it("is its blocks: text as HTML, exercises with hints and solution",
    function()
      for i, name in ipairs(learn.names) do
        local lesson, told = learn.lesson(name), ask {ask = "lesson", name = i}
        assert.same({name, i, lesson.title}, {told.name, told.number,
                                              told.title})
        local blocks = learn.blocks(lesson)
        assert.equal(#blocks, #told.blocks)
        for k, b in ipairs(told.blocks) do
          assert.same({blocks[k].kind, blocks[k].text}, {b.kind, b.text})
          if b.kind == "text" then
            assert.matches("^<[ph]", b.html)
          elseif b.kind == "exercise" then
            local e = lesson.exercises[b.name]
            assert.same({e.solution, #e.hints}, {b.solution, #b.hints})
          end
        end
      end
    end)

  it("runs from any of its blocks on, with the results shown", function()
    for _, name in ipairs(learn.names) do
      local blocks = learn.blocks(learn.lesson(name))
      for i = #blocks, 1, -1 do
        local b = blocks[i]
        if b.kind == "lua" then
          local got = block(name, i, b.text)
          assert.is_true(got.ok, got.error and got.error.text)
          local n, by = 0, {}
          for _, one in ipairs(got.shown) do by[one.line] = one.text end
          for line in (b.text .. "\n"):gmatch "([^\n]*)\n" do
            n = n + 1
            local want = line:match "%-%-> (.*)$"
            assert.equal(want, by[n] and by[n]:gsub("\n.*", ""))
          end
        elseif b.kind == "draw" then
          assert.equal(1, #block(name, i, b.text).pictures)
        end
      end
    end
  end)

  it("uses the learner's own texts, as far as they run", function()
    local first, text = at("layouts", "lua", 1)
    local i = at("layouts", "lua", 3)
    local mine = text:gsub("%(4,8%):%(8,1%)", "(4,8):(1,4)")
    local say = "l, seen --> x"
    local function shown(before)
      return block("layouts", i, say, before).shown[1].text
    end
    assert.equal("(4,8):(8,1), nil", shown())
    assert.equal("(4,8):(1,4), nil", shown {{index = first, text = mine}})
    assert.equal("(4,8):(8,1), nil", shown {{index = first, text = "l = ("}})
    assert.equal("(4,8):(8,1), nil", shown {{index = first, text = "error {}"}})
    -- When a block runs again, it must not see the results of its earlier run.
    block("layouts", first, text .. "\nseen = (seen or 0) + 1")
    local got = block("layouts", first, text .. "\nseen = (seen or 0) + 1")
    assert.is_true(got.ok)
    assert.equal("(4,8):(8,1), 1", shown {{index = first,
      text = text .. "\nseen = (seen or 0) + 1"}})
    assert.equal("(4,8):(8,1), nil", shown())
  end)

  it("shares its globals with the prompt, which does not change them",
     function()
    local i, text = at("layouts", "lua", 1)
    local function prompt(said)
      local got = ask {ask = "prompt", text = said}
      return got.ok or got.error.message
    end
    block("layouts", i, text)
    assert.is_true(prompt "do assert(l(2, 3) == 19 and cute.rank(l) == 2) end")
    assert.is_true(prompt "l = 5")
    assert.is_true(prompt "do assert(l == 5) end")
    block("layouts", i, "error 'no'")
    -- A failed step must leave no results behind.
    assert.is_true(prompt "do assert(l == 5) end")
    block("layouts", i, text)
    assert.is_true(prompt "do assert(l(2, 3) == 19) end")
    assert.matches("attempt to call a nil value", prompt "blocked(1, 1)")
  end)

  it("reports errors at their line, and launches", function()
    local i = at("tensors", "lua", 3)
    local got = block("tensors", i, "x = 1\ny = x.z.w")
    assert.is_false(got.ok)
    assert.same({("tensors-%d.lua"):format(i), 2},
                {got.error.file, got.error.line})
    assert.is_nil(got.shown)
    got = block("tensors", i, "y = = 1")
    assert.equal(1, got.error.line)
    got = block("tensors", i, "os.exit(3)")
    assert.same({false, 3}, {got.ok, got.code})
    assert.is_nil(got.shown)
    local _, text = at("tensors", "lua", 3)
    got = block("tensors", i, text)
    assert.equal("double", got.page.kernels[1].name)
    assert.equal(("tensors-%d.lua"):format(i), got.page.files[1].name)
  end)
end)

describe("a lesson in the workshop", function()
  it("checks exercises: right, or why not and where, with the launches #long",
    function()
      local function exercise(lesson, name, text)
        return ask {ask = "exercise", lesson = lesson, name = name, text = text}
      end
      for _, name in ipairs(learn.names) do
        for _, b in ipairs(ask {ask = "lesson", name = name}.blocks) do
          if b.kind == "exercise" then
            local got = exercise(name, b.name, b.solution)
            assert.is_true(got.right, got.message)
            assert.is_nil(got.message)
            got = exercise(name, b.name, b.text)
            assert.is_false(got.right)
            assert.is_true(#got.message > 10)
          end
        end
      end
      local _, text = at("bugs", "exercise", 1)
      local got = exercise("bugs", "barrier", text)
      assert.matches("%[race%]", got.message)
      assert.equal(5, got.line)
      assert.equal("shift", got.page.kernels[1].name)
      _, text = at("swizzles", "exercise", 1)
      assert.equal(7, exercise("swizzles", "conflicts", text).line)
      got = exercise("bugs", "barrier", "k = (")
      assert.equal(1, got.line)
      assert.matches("unexpected symbol", got.message)
    end)

  it("rejects invalid lessons, blocks and texts", function()
    local function told(request)
      local got = ask(request)
      assert.is_false(got.ok)
      return got.error.message
    end
    assert.matches("no lesson 'layuots' %(did you mean layouts%?",
      told {ask = "lesson", name = "layuots"})
    assert.matches("no lesson 'nil'", told {ask = "lesson"})
    assert.matches("nothing to run in block 1 of lesson layouts",
      told {ask = "block", lesson = 1, index = 1, text = ""})
    assert.matches("nothing to run in block 99 ",
      told {ask = "block", lesson = 1, index = 99, text = ""})
    assert.matches("nothing to run in block nil ",
      told {ask = "block", lesson = 1, text = ""})
    assert.matches("block: the field `text` must be a string",
      told {ask = "block", lesson = 1, index = 2})
    assert.matches("no exercise \"none\" in lesson layouts",
      told {ask = "exercise", lesson = 1, name = "none", text = ""})
    assert.matches("exercise: the field `text` must be a string",
      told {ask = "exercise", lesson = 1, name = "rows", text = 1})
  end)
end)
-- SPDX-License-Identifier: MIT
