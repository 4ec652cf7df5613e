-- Tests the tutorial's page as a reader uses it, and the button of a kernel's
-- page that leads there. Needs `make web` and a Chromium.
local browser = require "spec.browser"
local learn = require "cutelua.learn"
local support = require "spec.support"

local function absolute(path)
  return support.exec {"realpath", path}:gsub("\n", "")
end

local PAGE = "file://" .. absolute "build/web/index.html"

-- JavaScript functions for the tests here: they wait for a lesson, find its
-- steps and their parts, and run steps.
local READER = [[
const there = () => until(() => workshop.state() == "ready"
  && count(".lesson-next") == 1 && !count(".lesson-step.busy"), "no lesson");
const step = n => all(".lesson-step")[n - 1];
const button = (s, name) => [...s.querySelectorAll("button")].find(b =>
  b.textContent.startsWith(name) && !b.hidden);
const said = s => s.querySelector(".lesson-out").textContent;
const editor = s => s.querySelector(".CodeMirror").CodeMirror;
const ran = async (s, name) => {
  button(s, name || "Run").click();
  await until(() => !s.classList.contains("busy") && said(s), "no answer");
  return said(s);
};
const solved = () => $(".lesson-list summary").textContent;
]]

local function solution(lesson, name)
  return require "dkjson".encode(
    learn.lesson(lesson).exercises[name].solution)
end

-- Returns a test of an exercise: it checks the unsolved exercise, shows hints
-- and the solution, and checks the right answer.
local function exercise(lesson, name)
  return {name = name, script = ([[
    workshop.lesson("%s");
    await there();
    const s = $(".lesson-exercise"), first = await ran(s, "Check");
    const marked = s.querySelectorAll(".wrong").length > 0;
    const notes = texts(".lesson-exercise .note.bad");
    const before = solved(), hints = [];
    for (let b; (b = button(s, "Hint")); ) {
      b.click();
      hints.push(s.querySelectorAll(".lesson-hints li").length);
    }
    button(s, "Solution").click();
    const shown = $(".lesson-solution pre").textContent;
    editor(s).setValue(%s);
    const right = await ran(s, "Check");
    return {first, marked, notes, hints, right, before,
      shown: shown == editor(s).getValue(), after: solved(),
      head: s.querySelector("h3").textContent,
      status: $("#status").textContent};]]):format(lesson,
    solution(lesson, name))}
end

-- Tests that run in one browser, each with a name.
local STEPS = {
  {name = "change", url = PAGE .. "#lesson=tensors", script = [[
    await there();
    const s = step(2), was = editor(s).getValue();
    const plain = await ran(s);  // the step before was not run by anybody
    editor(step(1)).setValue(editor(step(1)).getValue() + "\nmine = 42");
    await ran(step(1));
    editor(s).setValue("print 'hello'\nmine, t.layout --> x");
    const changed = await ran(s);
    editor(s).setValue("t(9, 9)\nx = nothing.at.all");
    const wrong = await ran(s);
    const marked = count(".lesson-step .wrong");
    button(s, "Reset").click();
    return {plain, changed, wrong, marked, back: editor(s).getValue() == was,
      out: said(s), reset: !!button(s, "Reset"),
      reset1: !!button(step(1), "Reset")};]]},
  {name = "again", url = PAGE .. "#lesson=tensors", script = [[
    await there();
    return [editor(step(1)).getValue().endsWith("mine = 42"),
      await ran(step(2)), $(".lesson h2").textContent];]]},
  {name = "picture", script = [[
    workshop.lesson("swizzles");
    await there();
    await until(() => count(".lesson-step figure svg"), "no picture");
    const s = step(3), cells = s.querySelectorAll("svg .c").length;
    editor(s).setValue('cute.layout "(2,2):(1,2)"');
    await ran(s);
    return [cells, s.querySelectorAll("svg .c").length];]]},
  exercise("swizzles", "conflicts"),
  exercise("bugs", "barrier"),
  exercise("pipelines", "three"),
  {name = "stop", script = [[
    workshop.lesson("layouts");
    await there();
    const s = step(1), text = editor(s).getValue();
    editor(s).setValue("while true do end");
    button(s, "Run").click();
    await sleep(300);
    click("#stop");
    await until(() => said(s), "it was not stopped");
    const stopped = said(s);
    await until(() => workshop.state() == "ready");
    editor(s).setValue(text);
    return [stopped, await ran(s), (await ran(step(2))).length > 0];]]},
  {name = "keys", url = PAGE .. "#lesson=layouts/2", width = 390, dark = true,
   script = [[
    await there();
    const here = document.activeElement.id;
    await press("Tab");
    const inEditor = !!document.activeElement.closest(".CodeMirror");
    await press("Control-Enter");
    await until(() => said(step(1)), "Ctrl-Enter did not run");
    await press("Escape");
    await press("Tab");
    return {here, inEditor, said: said(step(1)),
      next: document.activeElement.textContent,
      wide: document.documentElement.scrollWidth,
      right: step(1).getBoundingClientRect().right <= 390,
      label: step(1).getAttribute("aria-label"),
      live: !!step(1).querySelector("[role=status]"),
      field: editor(step(1)).getInputField().getAttribute("aria-label")};]]},
  {name = "next", width = 390, script = [[
    const names = texts(".lesson-next button");
    click(".lesson-next button:last-child");
    await until(() => texts(".lesson h2").some(t => /^2\./.test(t)));
    $(".lesson-list").open = true;
    return [names, texts(".lesson-next button"), $("#lesson-text").scrollTop,
      texts(".lesson-list li").filter(t => t.endsWith("\u2713")), solved()];]]},
}

local value, dir = {}, nil

local SCRIPT = [[
local cute, n = require "cute", tonumber((select(2, ...))) -- "</script>" €
local k = cute.kernel("k", function(x)
  x[cute.arch.thread_idx()] = 1
end)
local x = cute.zeros({n}, cute.f32)
k(x):launch {grid = 1, block = n, device = "sim"}
print(n, x(n - 1))
]]

local function add_button()
  support.write(dir .. "/k.lua", SCRIPT)
  local _, err, code = support.run {"explain", "--workshop", PAGE,
    dir .. "/k.lua", "--n", "96", "-o", dir .. "/k.html"}
  assert.same({"", 0}, {err, code})
  STEPS[#STEPS + 1] = {name = "button", url = "file://" .. dir .. "/k.html",
    script = [[ return await until(() => count("#workshop")
      && $("#workshop").href, "no button");]]}
  STEPS[#STEPS + 1] = {name = "led", url = "<", script = [[
    await until(() => workshop.state() == "ready");
    await until(() => $("#name").textContent == "k.lua", "no script");
    const was = [workshop.editor.text(), $("#words").value,
      $("#log").textContent];
    click("#run");
    await until(() => /done/.test($("#log").textContent), "it did not run");
    return was.concat($("#log").textContent);]]}
end

setup(function()
  if not browser.find() then return end
  dir = support.folder()
  add_button()
  local steps = {}
  for i, s in ipairs(STEPS) do
    steps[i] = {url = s.url, width = s.width, dark = s.dark,
                script = READER .. s.script}
  end
  for i, found in ipairs(browser.drive(steps)) do
    assert.same({}, found.errors, STEPS[i].name)
    for _, url in ipairs(found.asked) do
      assert.truthy(url:find "^file://" or url:find "^blob:null/"
        or url:find "^data:" or url == "about:blank", url)
    end
    value[STEPS[i].name] = found.value
  end
end)
teardown(function()
  if dir then support.remove(dir) end
end)

local function test(what, f)
  it(what, function()
    if not browser.find() then pending "needs Chromium" end
    f()
  end)
end

describe("the tutorial in the page", function()
  test("runs each step, keeps changes, and reverts them", function()
    local v = value.change
    assert.equal("t(0, 0)10.0", v.plain)
    assert.equal("hello\nmine, t.layout42, (2,3):(3,1)", v.changed)
    assert.matches("outside of the 2 elements in mode 0", v.wrong)
    assert.same({true, true, "", false, true},
                {v.marked > 0, v.back, v.out, v.reset, v.reset1})
    assert.same({true, "t(0, 0)10.0", "3. Tensors, and a first kernel"},
                value.again)
  end)

  test("draws pictures that are there at once, and redraws them", function()
    assert.same({16, 4}, value.picture)
  end)

  test("checks the three exercises, marks errors, gives hints, and remembers",
    function()
      for i, row in ipairs {{"conflicts", "992 conflicts", 2, true},
                            {"barrier", "[race]", 2, true},
                            {"three", "are no three stages", 3, false}} do
        local name, want, hints, marked = table.unpack(row)
        local v = value[name]
        assert.equal(1, v.first:find("Not yet: ", 1, true))
        assert.truthy(v.first:find(want, 1, true), v.first)
        assert.same({marked, {table.unpack({1, 2, 3}, 1, hints)}, true},
                    {v.marked, v.hints, v.shown})
        assert.same({"Right.", "right", ("Exercise %s: solved"):format(name)},
                    {v.right, v.status, v.head})
        local all = "Lessons: %d of 14 exercises solved"
        assert.same({all:format(i - 1), all:format(i)}, {v.before, v.after})
      end
      assert.truthy(value.barrier.notes[1]:find(
        "write after a read by another warp with no barrier in between: element"
        .. " 0 of shared tensor 's' [race]", 1, true))
      -- The exercises must still be solved after a reload.
      assert.equal(3, #value.next[4])
      assert.equal("Lessons: 3 of 14 exercises solved", value.next[5])
    end)

  test("can be stopped in a step, and continues", function()
    assert.equal("Stopped.", value.stop[1])
    assert.matches("^cute.make_layout", value.stop[2])
    assert.is_true(value.stop[3])
  end)

  test("can be read by keys alone, on a phone too, and links its neighbours",
    function()
      assert.same({here = "lesson-2", inEditor = true, next = "Run",
        said = "cute.make_layout({4, 8}, {8, 1})(4,8):(8,1)l(2, 3)19",
        wide = 390, right = true, label = "Step 1", live = true,
        field = "Step 1"}, value.keys)
      assert.same({"2. The algebra of layouts \u{2192}"}, value.next[1])
      assert.same({"\u{2190} 1. What a layout is",
        "3. Tensors, and a first kernel \u{2192}"}, value.next[2])
      assert.equal(0, value.next[3])
    end)
end)

describe("the button of a kernel's page", function()
  test("opens its script in the workshop, which runs it on request", function()
    assert.equal(1, value.button:find(PAGE .. "#s=", 1, true))
    local text, words, before, after = table.unpack(value.led)
    assert.same({SCRIPT, "--n 96"}, {text, words})
    assert.is_nil(before:find "96")
    assert.matches("96%s+1.0", after)
  end)
end)
-- SPDX-License-Identifier: MIT
