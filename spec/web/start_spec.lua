-- Tests the workshop for a first-time user: which script opens first, empty
-- panels, what a run shows and which panels it moves, runs while the user
-- types, and odd scripts. Needs `make web` and a Chromium.
local browser = require "spec.browser"
local json = require "dkjson"
local support = require "spec.support"

local PAGE = "file://" .. support.exec {"realpath",
  (os.getenv "CUTE_BUILD" or "build") .. "/web/index.html"}:gsub("\n", "")

local USER = [[
const ready = () => until(() => workshop.state() == "ready", "not ready");
const cm = workshop.editor.cm;
const ended = () => until(() => workshop.state() == "ready"
  && count("#log .ended"), "no end");
const run = async (text, words) => {
  await ready();
  if (text !== undefined) cm.setValue(text);
  $("#words").value = words || "";
  $("#log").textContent = "";
  click("#run");
  await ended();
  return $("#log").textContent;
};
const open = name => workshop.open({name, text: SHELF.scripts.find(
  s => s.path == "scripts/" + name).text});
// What is wider than the window, and scrolls nowhere.
const cut = () => all("body *").filter(e => {
  if (e.getBoundingClientRect().right <= innerWidth + 0.5) return false;
  for (let p = e; p; p = p.parentElement)
    if (/auto|scroll|hidden|clip/.test(getComputedStyle(p).overflowX)
        && p != document.body && p.id != "workshop") return false;
  return true;
}).map(e => e.tagName + "#" + e.id + "." + e.className);
await ready();
]]

local function visit(steps)
  for _, step in ipairs(steps) do
    step.url = PAGE
    step.script = "localStorage.clear();" .. USER .. step.script
  end
  local values = {}
  for i, one in ipairs(browser.drive(steps)) do
    assert.same({}, one.errors, "step " .. i)
    values[i] = one.value
  end
  return values
end

local function const(name, value)
  return ("const %s = %s;\n"):format(name, json.encode(value))
end

describe("the workshop, opened first,", function()
  if not browser.find() then return end

  it("has a kernel of 20 to 30 lines, which runs and draws", function()
    local v = visit {{script = [[
      const text = workshop.editor.text(), name = $("#name").textContent;
      return [name, text, await run(), $("#tab-pictures .n").textContent,
        $("#words").placeholder];]]}}[1]
    local lines = #support.lines(v[2])
    assert.same({"start.lua", "1"}, {v[1], v[4]})
    assert.is_true(lines >= 20 and lines <= 30, lines)
    assert.truthy(v[2]:find "^%-%- Start here")
    assert.truthy(v[3]:find "y begins with 127, 126: ok\ndone in ")
    assert.equal("none taken", v[5])
  end)

  it("lists the arguments of the script on screen", function()
    local v = visit {{script = [[
      const out = {};
      for (const s of SHELF.scripts) {
        open(s.path.slice(8));
        out[s.path] = $("#words").placeholder;
      }
      workshop.open({name: "own.lua", text: "print(arg[1] == '--rows')"});
      const own = [$("#words").placeholder];
      cm.setValue("print(... )");
      own.push($("#words").placeholder);
      cm.setValue("print(6)  -- arg");
      own.push($("#words").placeholder);
      open("softmax.lua");
      const said = await run(undefined, $("#words").placeholder);
      return [out, own, said];]]}}[1]
    assert.same({"--rows", "arg[1] arg[2] ...", "none taken"}, v[2])
    assert.truthy(v[3]:find "verified" and v[3]:find "done in", v[3])
    local taken = 0
    for path, words in pairs(v[1]) do
      if words:find "^%-%-%w+ %d" then
        local command = {path}
        for word in words:gmatch "%S+" do command[#command + 1] = word end
        command[#command + 1] = "--help"
        local _, err, code = support.run(command)
        assert.same({path, "", 0}, {path, err, code})
        taken = taken + 1
      end
    end
    assert.is_true(taken > 35, taken)
  end)

  it("explains where pictures come from, and draws one", function()
    local v = visit {{script = [[
      click("#tab-pictures");
      const none = $("#drawn").textContent;
      click("#drawn button");
      await until(() => count("#drawn svg"), "nothing is drawn");
      return [none, count("#drawn .c"), $("#tab-pictures .n").textContent];
      ]]}}[1]
    assert.truthy(v[1]:find "^There is no picture yet: cute.draw%(x%) puts one")
    assert.same({64, "1"}, {v[2], v[3]})
  end)

  it("explains why there is no PTX", function()
    local v = visit {{script = [[
      await run();
      click("#tab-kernel");
      return [texts("#tabs [role=tab]"), texts("#bar .missing")];]]}}[1]
    assert.same({"Lua", "CUDA C"}, v[1])
    assert.same({"PTX, SASS and registers are not here: CUDA's compiler makes "
      .. "them, which no page has; `cutelua explain SCRIPT -o k.html` shows "
      .. "them where it is installed"}, v[2])
  end)
end)

describe("the prompt's list", function()
  if not browser.find() then return end

  it("lets Enter run a word that is complete, and pick another", function()
    local v = visit {{script = [[
      workshop.prompt.focus();
      const list = async () => {
        await press("Control- ");
        await until(() => count(".CodeMirror-hint"), "no list");
      };
      await press("cute.gemm");
      await list();
      const first = [count(".CodeMirror-hint") > 1,
        $(".CodeMirror-hint-active .word").textContent];
      await press("Enter");
      await until(() => count("#log .asked"), "it does not run");
      await ready();
      const asked = texts("#log .asked"), left = workshop.prompt.text();
      await press("cute.make_layout");
      await list();
      await press("ArrowDown");
      await press("Enter");
      const picked = workshop.prompt.text();
      workshop.prompt.set("");
      cm.setValue("local g = cute.gemm");
      cm.focus();
      cm.execCommand("goDocEnd");
      await list();
      await press("Enter");
      return [first, asked, left, picked, workshop.editor.text()];]]}}[1]
    assert.same({{true, "gemm"}, {"> cute.gemm"}, "",
      "cute.make_layout_image_mask", "local g = cute.gemm\n"}, v)
  end)
end)

-- A script with two independent faults, one of which causes others.
local FAULTS = [[
local cute = require "cute"
local k = cute.kernel("k", function(x, y)
  local tid = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64})
  s[tid] = x[tid]
  y[tid] = s[63 - tid]
  y[tid + 1] = 1
  x[tid + 7] = 1
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32))
  :launch {grid = 1, block = 64}
]]

describe("the results of a run", function()
  if not browser.find() then return end

  it("begin with one fault, the others folded", function()
    local v = visit {{script = const("text", FAULTS) .. [[
      await run(text);
      const shown = () => all("#log .error li").filter(e => e.checkVisibility())
        .map(e => e.firstChild.textContent);
      const first = shown(), folds = texts("#log .error details > summary");
      const notes = all(".CodeMirror .note").map(e =>
        [count(".note"), !!e.querySelector("details:not([open])")]);
      all("#log .error details").forEach(d => { d.open = true; });
      await sleep(100);
      return [first, folds, shown(), notes, $("#log .ended").textContent];
      ]]}}[1]
    assert.equal(1, #v[1])
    assert.truthy(v[2][#v[2]]:find "^%d+ more faults?$", v[2][#v[2]])
    assert.is_true(#v[3] > 2, #v[3])
    assert.same({false, true}, {v[4][1][2], v[4][2][2]})
    assert.truthy(v[5]:find "^failed")
  end)

  it("does not move the code", function()
    local steps = {}
    for _, width in ipairs {1280, 1600, 900} do
      steps[#steps + 1] = {width = width, script = [[
        const at = n => { const c = cm.charCoords({line: n, ch: 0}, "window");
          return [c.left, c.top]; };
        const was = [at(0), at(12)], label = !$("#heat-label").hidden;
        await run();
        await until(() => !$("#heat-label").hidden, "no counters");
        await sleep(300);
        const cells = all(".cell").filter(e => e.textContent).length;
        return [was, [at(0), at(12)], label, cells > 0];]]}
    end
    for _, v in ipairs(visit(steps)) do
      assert.same(v[1], v[2])
      assert.same({false, true}, {v[3], v[4]})
    end
  end)

  it("fit the window of a phone: wider parts scroll", function()
    local v = visit {{width = 390, script = const("text", FAULTS) .. [[
      const out = [];
      const look = name => out.push([name, cut(),
        document.documentElement.scrollWidth]);
      look("start");
      await run();
      look("ran");
      click("#tab-kernel");
      click(all("#pane-cu .r.on").find(r => /sX\[tid\]/.test(r.textContent)));
      const table = $("#line .scroll");
      table.scrollLeft = 1000;
      const traffic = [count("#line td") > 6, table.scrollLeft > 0,
        $("#line").scrollWidth <= $("#line").clientWidth];
      look("kernel");
      click("[data-more=tensors]");
      look("tensors");
      click("#tab-pictures");
      look("pictures");
      await run(text);
      click("[data-room=source]");
      await sleep(200);
      look("fault");
      return [out, traffic];]]}}[1]
    for _, one in ipairs(v[1]) do
      assert.same({one[1], {}, 390}, one)
    end
    assert.same({true, true, true}, v[2])
  end)
end)

describe("the shelf beside results", function()
  if not browser.find() then return end

  -- Opens and closes the shelf after a run with a report, and after a run with
  -- a timeline. Returns by how many pixels elements overflow, and booleans.
  local LOOK = [==[
    const shelf = on => {
      if (document.body.classList.contains("shelved") != on)
        click("#open-shelf");
      return sleep(400);
    };
    // By how many pixels an element is wider than what it is in.
    const beyond = (css, outer) => Math.round(Math.max(0,
      $(css).getBoundingClientRect().right
      - $(outer).getBoundingClientRect().right));
    const out = [];
    await shelf(false);
    open("copy_async.lua");
    await run(cm.getValue().replace(/^.*cp_async_wait_group.*$/m, ""));
    if (innerWidth < 760) click("[data-room=source]");
    await sleep(300);
    out.push(beyond(".CodeMirror .note", "#editor"));
    await shelf(true);
    out.push(beyond(".CodeMirror .note", "#editor"));
    await run();
    out.push(document.body.classList.contains("shelved"));
    await shelf(false);
    open("gemm3stage.lua");
    await run();
    if (innerWidth < 760) click("[data-room=results]");
    click("#tab-timeline");
    await until(() => count("#timeline svg"), "no timeline");
    out.push(beyond("#timeline svg", "#timeline"));
    await shelf(true);
    out.push(beyond("#timeline svg", "#timeline"));
    // The labels of the time axis are apart.
    const axis = all("#timeline svg text.s").map(t => t.getBoundingClientRect())
      .filter(b => b.width);
    out.push(axis.length > 1, axis.every((b, i) => !i
      || b.left >= axis[i - 1].right));
    return out;]==]

  it("covers no report and no timeline", function()
    local steps = {}
    for i, width in ipairs {1280, 390} do
      steps[i] = {width = width, script = LOOK}
    end
    for i, v in ipairs(visit(steps)) do
      local width = steps[i].width
      -- In a narrow window, the shelf closes when a run begins.
      assert.same({0, 0, width >= 1200, 0, 0, true, true}, v, width)
    end
  end)
end)

describe("a run while typing", function()
  if not browser.find() then return end

  it("shows results, stops long runs, and is off at first",
    function()
      local v = visit {{script = [[
        const out = {};
        const type = (text, from) => cm.replaceRange(text, from || {line: 0,
          ch: 0}, from ? undefined : {line: cm.lineCount(), ch: 0}, "+input");
        const said = () => texts("#log .said").join("");
        out.off = $("#live").checked;
        type("print(1)");
        await sleep(1200);
        out.none = said();
        click("#live");
        click("#tab-pictures");
        type("print(2");
        await sleep(1200);
        out.unread = said();
        type("print(2 + 3)");
        await until(() => said() == "5\n", "nothing ran");
        out.view = workshop.results.shown();
        out.focus = document.body.dataset.room;
        // a burst of keys is one run
        let asked = 0;
        const ask = workshop.engine.ask;
        workshop.engine.ask = function (name) {
          if (name == "run") asked++;
          return ask.apply(this, arguments);
        };
        for (let i = 0; i < 8; i++) {
          type("print(" + i + ")");
          await sleep(50);
        }
        await until(() => said() == "7\n", "nothing ran");
        out.asked = asked;
        // what is typed meanwhile ends what goes
        type("while true do end");
        await sleep(900);
        type("print 'on'");
        await until(() => said() == "on\n", "it goes on");
        out.after = $("#status").textContent;
        // what takes long is ended, and what was shown stays
        type("while true do end");
        await until(() => /^stopped after 2 s/.test($("#status").textContent));
        out.kept = said();
        asked = 0;
        type("while true do end -- more");
        await sleep(1000);
        out.slow = [asked, $("#status").textContent];
        cm.setValue("print 'full'");
        click("#run");
        await until(() => said() == "full\n", "Run does not run");
        await ready();
        type("print 'again'");
        await until(() => said() == "again\n", "it does not run again");
        // Run takes over from one that goes
        type("for i = 1, 3e8 do end print 'late'");
        await sleep(750);
        click("#run");
        await until(() => said() == "late\n", "Run was lost");
        await ready();
        out.stored = localStorage.getItem("workshop.live");
        click("#live");
        return out;]]}}[1]
      assert.is_false(v.off)
      assert.same({"", ""}, {v.none, v.unread})
      assert.same({"drawn", "source"}, {v.view, v.focus})
      assert.equal(1, v.asked)
      assert.truthy(v.after:find "^done in ", v.after)
      assert.equal("on\n", v.kept)
      assert.same({0, "this takes longer than 2 s: Run runs it"}, v.slow)
      assert.equal("true", v.stored)
    end)
end)

describe("odd scripts", function()
  if not browser.find() then return end

  it("are text wherever they are shown", function()
    local NASTY = "</script><img src=x onerror=\"window.hit=1\">'\"`${1}&amp;"
    local text = ([[
local cute = require "cute" -- %s
local k = cute.kernel("k", function(x)
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64})
  cute.arch.range(%q, function() s[cute.arch.thread_idx()] = x[0] end)
  x[cute.arch.thread_idx() + 60] = s[0]
end)
print(%q)
cute.draw(cute.make_layout {4, 4}, {title = %q})
k(cute.zeros({64}, cute.f32)):launch {grid = 1, block = 64}
]]):format(NASTY, NASTY, NASTY, NASTY)
    local v = visit {{script = const("text", text) .. const("nasty", NASTY)
      .. [[
      workshop.open({name: nasty + ".lua", text});
      const said = await run();
      const underlined = count(".CodeMirror .wrong") > 0;
      click("#tab-kernel");
      click("[data-more=tensors]");
      click("#tab-pictures");
      const drawn = $("#drawn figcaption").textContent;
      click("#tab-timeline");
      await sleep(1000);
      return [window.hit || 0, count("#room img"), said.includes(nasty), drawn,
        count("#log .error li") > 0, underlined];]]}}[1]
    assert.same({0, 0, true, NASTY, true, true}, v)
  end)

  it("have 100000 lines, and thousands of faults", function()
    local v = visit {{script = [[
      const long = "local x = 0\n" + "x = x + 1\n".repeat(100000) + "print(x)";
      let from = performance.now();
      const said = await run(long);
      const took = (performance.now() - from) / 1000;
      const head = 'local cute = require "cute"\nlocal k = cute.kernel("k", '
        + "function(x)\n";
      const body = Array.from({length: 2000}, (_, i) => "  x[cute.arch"
        + ".thread_idx() + " + (64 + i) + "] = " + i + "\n").join("");
      const faults = await run(head + body + "end)\nk(cute.zeros({64}, "
        + "cute.f32)):launch {grid = 1, block = 32}");
      from = performance.now();
      all("#log .error details").forEach(d => { d.open = true; });
      await sleep(100);
      click("#tab-kernel");
      return [said, took, faults.slice(-200), count("#log .error li"),
        count(".CodeMirror .note"), (performance.now() - from) / 1000,
        await run("print(6 * 7)")];]]}}[1]
    assert.truthy(v[1]:find("100000\ndone in", 1, true), v[1])
    print(("        100000 lines ran and were shown in %.2f s"):format(v[2]))
    assert.truthy(v[3]:find "failed in ", v[3])
    assert.is_true(v[4] >= 1 and v[4] <= 102, v[4])
    assert.is_true(v[5] >= 1 and v[5] <= 200, v[5])
    assert.is_true(v[6] < 5, v[6])
    assert.truthy(v[7]:find "42\ndone")
  end)
end)
-- SPDX-License-Identifier: MIT
