-- Tests the tutorial. Its Lua must give the results shown. Its exercises must
-- check what a learner has to do. `cutelua learn` must accept right answers.
local browser = require "spec.browser"
local learn = require "cutelua.learn"
local support = require "spec.support"

describe("lesson", function()
  for _, name in ipairs(learn.names) do
    local lesson = learn.lesson(name)
    local env, named = learn.env(), {}
    for i, block in ipairs(learn.blocks(lesson)) do
      local what = ("%s, block %d: "):format(name, i)
      if block.kind == "lua" then
        it(what .. "gives what it says", function()
          local want = {}
          for code, text in block.text:gmatch "([^\n]-)%s*%-%-> ?([^\n]*)" do
            want[#want + 1] = {code, text}
          end
          local got = {}
          for code, text in learn.run(block, env)
              :gmatch "([^\n]-)%s*%-%-> ?([^\n]*)" do
            got[#got + 1] = {code, text}
          end
          assert.same(want, got)
        end)
      elseif block.kind == "draw" then
        it(what .. "is drawn", function()
          assert.is_true(#learn.draw(block, env, "text") > 100)
          assert.truthy(learn.draw(block, env, "svg"):find "^<svg")
        end)
      elseif block.kind == "exercise" then
        named[block.name] = true
        it(what .. "begins wrong, and can be solved", function()
          local e = lesson.exercises[block.name]
          local right, why = learn.check(lesson, block.name, block.text, env)
          assert.is_nil(right)
          assert.is_true(#why > 10)
          assert.is_true(learn.check(lesson, block.name, e.solution, env))
          assert.is_true(#e.hints > 0)
        end)
      end
    end
    it(name .. " has an exercise, and no answers to others", function()
      local count = 0
      for exercise in pairs(lesson.exercises) do
        assert.is_true(named[exercise], exercise)
        count = count + 1
      end
      assert.is_true(count > 0)
    end)
  end

  it("answers that are no Lua, raise, or return nothing are reported",
     function()
    local lesson = learn.lesson "layouts"
    for text, want in pairs {["l ="] = "unexpected symbol",
        ["error 'mine'"] = "mine", ["l = nil"] = "makes no global l",
        ["l = 5"] = "attempt to call a number value"} do
      local right, why = learn.check(lesson, "rows", text)
      assert.is_nil(right)
      assert.truthy(why:find(want, 1, true), why)
    end
  end)
end)

local dir

local program = support.program

-- Runs `cutelua learn` in the folder `dir` with these lines as input. Returns
-- output and exit code.
local function run(words, input)
  local p <close> = io.popen(("cd '%s' && HOME='%s' XDG_STATE_HOME= "
    .. "NO_COLOR=1 '%s' learn %s 2>&1 <<'END'\n%sEND\necho \"code $?\"")
    :format(dir, dir, program, words, input or ""))
  local text, code = p:read("a"):match "^(.-)code (%d+)\n$"
  return text, tonumber(code)
end

describe("cutelua learn", function()
  setup(function() dir = support.folder() end)
  teardown(function() support.remove(dir) end)

  if program:sub(1, 1) ~= "/" then
    program = support.exec({"pwd"}):gsub("%s+$", "") .. "/" .. program
  end

  it("lists the lessons, and the solved exercises", function()
    local text, code = run ""
    assert.equal(0, code)
    for _, name in ipairs(learn.names) do assert.truthy(text:find(name)) end
    assert.truthy(text:find "layouts .* 0 of 2\n")
    text = run("layouts", ":hint\n\n:hm\nl = cute.make_layout({6, 10}, {16, 1})"
      .. "\n:solution\n:skip\n")
    for _, want in ipairs {"learn> One row further is 16",
        "Not yet: l(1, 0) is 10, and should be 16", "no command :hm",
        "learn> Right.", "4,16", "Next: cutelua learn 2, algebra"} do
      assert.truthy(text:find(want, 1, true), want)
    end
    assert.truthy(run "":find "layouts [^\n]* 1 of 2\n")
  end)

  it("takes an answer from the file, and leaves it as it is", function()
    local path = dir .. "/layouts-rows.lua"
    support.write(path, "l = cute.layout '(6,10):(16,1)'\n")
    local text = run("1", "\n:quit\n")
    assert.truthy(text:find("Your layouts-rows.lua is there", 1, true))
    assert.truthy(text:find("learn> Right.", 1, true))
    assert.equal("l = cute.layout '(6,10):(16,1)'\n", support.read(path))
    assert.same({"right\n", 0}, {run "1 --check layouts-rows.lua"})
    text = run "1 --check layouts-rows.lua --exercise blocks"
    assert.truthy(text:find "l%(%d, %d%) is %d+, and should be")
  end)

  it("is interrupted in an answer without end #long", function()
    support.write(dir .. "/endless.lua", "while true do end\n")
    local p <close> = io.popen(("cd '%s' && HOME='%s' timeout -s INT "
      .. "--preserve-status 1 '%s' learn 1 --check endless.lua 2>&1; "
      .. "echo $?"):format(dir, dir, program))
    assert.matches("interrupted.*\n130\n$", p:read "a")
  end)

  it("names the file and the line of an error in it, and of a report",
     function()
    local at = support.folder()
    local function check(text, words)
      support.write(at .. "/mine.lua", text)
      local out, _, code = support.run {"learn", table.unpack(words)}
      assert.equal(1, code, out)
      return out
    end
    local place = at .. "/mine.lua"
    local rows = {"1", "--check", place}
    assert.truthy(check("x = 1\ny = = 2\n", rows):find(
      ("\n  %s:2\n   1 | x = 1\n > 2 | y = = 2\n"):format(place), 1, true))
    assert.truthy(check("x = 1\nl = cute.mak_layout {8}\n", rows):find(
      ("\n  %s:2 in main chunk\n"):format(place), 1, true))
    assert.equal(place .. " makes no global l, which is what is asked for\n",
                 check("x = 1\n", rows))
    support.remove(at)
  end)

  it("edits lines on a terminal: TAB, history, cursor keys, Ctrl-C #long",
     function()
    local at = support.folder()
    local steps = {{"", "leaves -- "}}
    for _, block in ipairs(learn.blocks(learn.lesson(1))) do
      if block.kind == "exercise" then break end
      if block.kind == "lua" then steps[#steps + 1] = {"\n", " "} end
    end
    steps[#steps][2] = "learn> "
    for _, step in ipairs {{"l = cute.make_lay", "lay"}, {"\t", "out"},
        {"\t", "learn> l = cute.make_layout"}, {"\3", "^C\r\nlearn> "},
        {":hi", ":hi"}, {"\t", "nt"}, {"\n", "learn> "},
        {"\27[A\n", "learn> "}, {"x = = 1\n", "learn> "},
        {"while true do end\n", "end\r\n"}, {"\3", "learn> ", 300},
        {"l = 10, 16" .. ("\27[D"):rep(6) .. "(\5)\n", "learn> "},
        {"l = cute.make_layout({6, 10}, {16, 1})\n", "learn> "},
        {":quit\n", ""}} do
      steps[#steps + 1] = step
    end
    local text = support.terminal(steps,
      {TERM = "xterm", HOME = at, XDG_STATE_HOME = at, NO_COLOR = "1"},
      {"learn", "1"}, at)
    for _, want in ipairs {
        "\nmake_layout_tv          Returns two values: the tile", "Right.",
        "need not be the number of columns", "(answer):1",
        "One row further is 16 elements", "Not yet: interrupted",
        "l = (10, 16)"} do
      assert.truthy(text:find(want, 1, true), want .. " in " .. text)
    end
    support.remove(at)
  end)

  it("ends with its input", function()
    local text, code = run("1", "")
    assert.equal(0, code)
    assert.truthy(text:find "learn> $")
  end)
end)

describe("cutelua learn", function()
  setup(function() dir = support.folder() end)
  teardown(function() support.remove(dir) end)

  it("is written as pages, with pictures #long", function()
    if os.getenv "CUTE_SANITIZED" then return end
    local out, err, code = support.exec {support.program,
      "tools/tutorial.lua", dir .. "/docs"}
    assert.same({"", "", 0}, {out, err, code})
    local page = support.read(dir .. "/docs/tutorial.html")
    for i, name in ipairs(learn.names) do
      assert.truthy(page:find(('<section id="%s">'):format(name), 1, true))
      local file = ("%s/docs/tutorial/%02d-%s"):format(dir, i, name)
      local text = support.read(file .. ".md")
      assert.truthy(text:find("^# " .. i .. "%. "))
      local pictures = 0
      for picture in text:gmatch "!%[[^\n]*%]%(([^)]*)%)" do
        pictures = pictures + 1
        local svg = support.read(dir .. "/docs/tutorial/" .. picture)
        assert.truthy(svg:find "^<svg")
        assert.truthy(page:find(svg, 1, true))
      end
      local _, drawn = learn.lesson(i).text:gsub("\n```draw\n", "")
      assert.equal(drawn, pictures)
    end
    assert.is_nil(page:find "src=")
    for _, name in ipairs(learn.names) do
      for i, block in ipairs(learn.blocks(learn.lesson(name))) do
        local href = ('"http://127.0.0.1:5454/#lesson=%s/%d"'):format(name, i)
        assert.equal(block.kind == "lua" or block.kind == "exercise",
                     page:find(href, 1, true) ~= nil, href)
      end
    end
    if not browser.find() then return end
    local found = browser.visit {{html = page, width = 390, script = [[
      $("details").open = true;
      return [count("section"), count(".exercise"), count("figure svg"),
              $("details p").offsetHeight > 0,
              document.documentElement.scrollWidth <= 390];]]}}
    assert.same({}, found[1].errors)
    local exercises, drawn = 0, 0
    for _, name in ipairs(learn.names) do
      for _, block in ipairs(learn.blocks(learn.lesson(name))) do
        if block.kind == "exercise" then exercises = exercises + 1 end
        if block.kind == "draw" then drawn = drawn + 1 end
      end
    end
    assert.same({#learn.names, exercises, drawn, true, true}, found[1].value)
  end)

  it("reports what is wrong with its arguments #long", function()
    for words, want in pairs {["layuots"] = "did you mean layouts",
        ["99"] = "no lesson '99'; there are layouts",
        ["--check x"] = "of which lesson", ["1 2"] = "unexpected argument",
        ["1 --check nowhere"] = "cannot read nowhere: No such file",
        ["1 --check /dev/zero"] = "cannot read /dev/zero: it is larger than 64 "
          .. "MiB",
        ["1 --exercise zzz"] = "no exercise 'zzz' in lesson layouts: there",
        ["1 --exercise \27[2J --check x"] = "no exercise '\\x1b[2J' in",
        ["1 --check x --print"] = "--check and --print are two things",
        ["1 --check . --exercise none"] = "no exercise 'none'"} do
      local text, code = run(words)
      assert.equal(2, code, words)
      assert.truthy(text:find(want, 1, true), text)
    end
  end)

  it("shows an answer that ends the program, or has escapes, as wrong #long",
     function()
    local at = support.folder()
    for text, want in pairs {["os.exit(0)"] = "os.exit ends the program",
        ["_G.os.exit(true)"] = "os.exit ends the program",
        ["error('\27]0;x\7')"] = "\\x1b]0;x\\x07",
        ["x = '\27[2J' y ="] = "\\x1b[2J"} do
      support.write(at .. "/a.lua", text)
      local out, _, code = support.run {"learn", "1", "--check",
                                        at .. "/a.lua"}
      assert.equal(1, code, text)
      assert.truthy(out:find(want, 1, true), out)
      assert.falsy(out:find "[\27\7]")
    end
    support.remove(at)
  end)
end)
-- SPDX-License-Identifier: MIT
