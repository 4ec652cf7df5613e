-- Tests the workshop's page in a Chromium in both ways in which users open it:
-- served by `cutelua web`, where it has threads, and as files. Needs `make
-- web`.
local browser = require "spec.browser"
local json = require "dkjson"
local support = require "spec.support"
local same = require "spec.web.same"

local function absolute(path)
  return support.exec {"realpath", path}:gsub("\n", "")
end

local FOLDER = absolute((os.getenv "CUTE_BUILD" or "build") .. "/web")
local SERVED, FILE = "/index.html", "file://" .. FOLDER .. "/index.html"
local WHOLE = "file://" .. FOLDER .. "/workshop.html"

-- JavaScript functions for the tests here, in addition to those of chromium.js.
local USER = [[
const ready = () => until(() => workshop.state() == "ready", "not ready");
const write = text => workshop.editor.cm.setValue(text);
const shelf = name => workshop.open({name, text: SHELF.scripts.find(
  s => s.path == "scripts/" + name).text});
// What the page shows of a run: of the editor's text, or of this one.
const run = async (text, words) => {
  await ready();
  if (text !== undefined) write(text);
  $("#words").value = words || "";
  $("#log").textContent = $("#status").textContent = "";
  click("#run");
  await until(() => workshop.state() == "ready" && (count("#log .ended")
    || /^(arguments|seed): /.test($("#status").textContent)), "no end");
  return $("#log").textContent + $("#status").textContent;
};
// Lines that are underlined, from 1.
const underlined = kind => [...new Set(workshop.editor.cm.getAllMarks()
  .filter(m => m.className == kind && m.find())
  .map(m => m.find().from.line + 1))].sort((a, b) => a - b);
// Drops a file on the page; what the page says of it.
const drop = async (name, bytes) => {
  await ready();
  const data = new DataTransfer();
  data.items.add(new File([bytes], name));
  $("#log").textContent = $("#status").textContent = "";
  document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data,
    bubbles: true, cancelable: true}));
  await until(() => $("#status").textContent || $("#name").textContent == name,
    "nothing was said of " + name);
  return $("#log").textContent;
};
const npy = (head, size) => {
  head += " ".repeat(63 - (10 + head.length) % 64) + "\n";
  const bytes = new Uint8Array(10 + head.length + size);
  bytes.set([0x93, 78, 85, 77, 80, 89, 1, 0, head.length & 255,
             head.length >> 8]);
  bytes.set(new TextEncoder().encode(head), 10);
  for (let i = 0; i < size / 4; i++)
    new DataView(bytes.buffer).setFloat32(10 + head.length + 4 * i, i, true);
  return bytes;
};
const F32 = shape => "{'descr': '<f4', 'fortran_order': False, 'shape': "
  + shape + ", }";
]]

-- Carries out the steps in the browser. There must be no errors, and no
-- requests to other servers.
local function visit(steps)
  for _, step in ipairs(steps) do step.script = USER .. step.script end
  local found = browser.drive(steps, {server = {support.program, "web",
    "--port", "0", "--folder", FOLDER}})
  local values = {}
  for i, one in ipairs(found) do
    assert.same({}, one.errors, "step " .. i)
    for _, url in ipairs(one.asked) do
      local from = url:gsub("^blob:", "")
      assert.truthy(from:find "^http://127%.0%.0%.1:%d+/"
        or from:find("file://" .. FOLDER, 1, true) or from:find "^null/"
        or from:find "^data:", url)
    end
    values[i] = one.value
  end
  return values, found
end

-- Returns JavaScript that defines a constant whose value is a Lua value.
local function const(name, value)
  return ("const %s = %s;\n"):format(name, json.encode(value))
end

describe("the page", function()
  it("loads, with its Worker, served and as files, and requests no more",
    function()
      local steps, script = {}, [[
        const said = await run("print(6 * 7)");
        return [said, $("#version").textContent, self.crossOriginIsolated];]]
      for i, url in ipairs {SERVED, FILE, WHOLE} do
        steps[i] = {url = url, script = script}
      end
      local values, found = visit(steps)
      for i = 1, 3 do
        assert.truthy(values[i][1]:find "42\ndone in ")
        assert.equal(i == 1, values[i][3])
      end
      assert.truthy(values[2][2]:find ", 1 thread$")
      assert.equal(1, #found[3].asked - #support.lines(
        (table.concat(found[3].asked, "\n"):gsub("file:[^\n]*\n?", ""))))
      local all = table.concat(found[1].asked, "\n")
      assert.truthy(all:find "cutelua[-%w]*%.wasm")
      -- The list of requests includes those of Workers.
      assert.truthy(all:find "worker%.js")
      assert.truthy(all:find "cutelua[-%w]*%.js")
    end)

  it("may not reach other servers", function()
    local found = browser.drive({{url = SERVED, script = [[
      const out = [];
      document.addEventListener("securitypolicyviolation",
        e => out.push(e.effectiveDirective));
      await fetch("http://example.com/").catch(() => {});
      new Image().src = "http://example.com/i.png";
      const s = document.createElement("script");
      s.src = "http://example.com/s.js";
      document.head.append(s);
      await until(() => out.length == 3);
      return out.sort();]]}}, {server = {support.program, "web", "--port", "0",
        "--folder", FOLDER}})
    assert.same({"connect-src", "img-src", "script-src-elem"}, found[1].value)
    assert.is_true(#found[1].errors > 0)
  end)

  it("leads from the editor to lines that stand in kernels", function()
    local v = visit {{url = FILE, script = [[
      const text = SHELF.scripts.find(s => s.path == "scripts/gemm_hopper.lua")
        .text;
      await run();
      const own = [$("#heat-label").hidden, $("#elsewhere").hidden];
      await run(text, "--m 128 --n 128 --k 128");
      const theirs = [$("#heat-label").hidden, $("#elsewhere").hidden,
        $("#elsewhere").textContent];
      click("#elsewhere");
      return [own, theirs, $("#kernel").hidden, $("#pane-lua").hidden,
        texts("#pane-lua .file"), texts("#pane-lua .c").some(x => x),
        $("#name").textContent];]]}}[1]
    assert.same({false, true}, v[1])
    assert.same({true, false, "by line, in kernels.gemm_sm90.kernel"}, v[2])
    assert.same({false, false}, {v[3], v[4]})
    assert.equal("[kernels.gemm_sm90.mainloop]", v[5][5])
    assert.same({true, "start.lua"}, {v[6], v[7]})
  end)

  it("gives the same C, reports and counters as the native program",
    function()
      local list = {"scripts/gemm3stage.lua", "scripts/gemm_hopper.lua",
        "scripts/transpose.lua", "scripts/softmax.lua",
        "scripts/gemm_int8.lua"}
      local all = same.requests(list)
      local here = same.native(all)
      local script = const("paths", list) .. const("asks", all) .. [[
        const engine = workshop.engine, out = [];
        await ready();
        for (const path of paths)
          await engine.put(path, SHELF.scripts.find(s => s.path == path).text);
        for (const {ask, ...fields} of asks) {
          let said = "";
          const answer = await engine.ask(ask, fields, t => { said += t; });
          out.push({out: said, answer});
        }
        return [out, $("#version").textContent];]]
      local values = visit {{url = SERVED, script = script},
                            {url = WHOLE, script = script}}
      for v = 1, 2 do
        assert.equal(#all, #values[v][1])
        for i, there in ipairs(values[v][1]) do
          same.answers(list[(i + 1) // 2], here[i], there)
        end
      end
    end)
end)

describe("the page", function()
  it("shows a script's CUDA C and its counters by line", function()
    local cu = support.run {"scripts/gemm3stage.lua", "--emit", "cu"}
    -- The page collapses helper functions, so only the other text is compared.
    cu = cu:match "__global__.*"
    local v = visit {{url = FILE, script = [[
      shelf("gemm3stage.lua");
      const said = await run();
      click("#tab-kernel");
      $("#heat").value = "sectors";
      $("#heat").dispatchEvent(new Event("change", {bubbles: true}));
      const heat = {};
      const cm = workshop.editor.cm;
      cm.eachLine(h => {
        const cell = (h.gutterMarkers || {}).heat;
        if (cell) heat[cm.getLineNumber(h) + 1] = cell.textContent;
      });
      return [said, $("#kernel").textContent, heat];]]}}[1]
    assert.truthy(v[1]:find ": ok\n")
    local n = 0
    for _, line in ipairs(support.lines(cu)) do
      if line:find ";$" and not line:find "smem" then
        n = n + 1
        assert.truthy(v[2]:find(line:gsub("^%s+", ""), 1, true), line)
      end
    end
    assert.is_true(n > 40)
    local line = 0
    for text in io.lines "scripts/gemm3stage.lua" do
      line = line + 1
      if text:find "cute.copy%(g2s, tAgA" then
        assert.truthy(v[3][tostring(line)]:find "%d", line)
      end
    end
  end)
end)

describe("a fault in a script", function()
  -- Returns the text without its nth line that contains `what`.
  local function without(path, what, nth)
    local out, at = {}, {}
    for line in io.lines(path) do
      if line:find(what, 1, true) then
        nth = nth - 1
        if nth == 0 then line = "" end
      end
      out[#out + 1] = line
    end
    assert(nth <= 0, what)
    return table.concat(out, "\n") .. "\n", at
  end

  it("is reported at its lines, which are underlined", function()
    local cases = {
      {"gemm3stage", "cute.arch.sync_threads()", 2, "[async-in-flight]"},
      {"transpose", "cute.arch.sync_threads()", 1, "[race]"},
      {"copy_async", "cute.arch.cp_async_wait_group(0)", 1,
       "[async-in-flight]"}}
    local given, native = {}, {}
    for i, c in ipairs(cases) do
      local text = without("scripts/" .. c[1] .. ".lua", c[2], c[3])
      given[i] = {name = c[1] .. ".lua", text = text}
      native[i] = {ask = "run", name = c[1] .. ".lua", text = text, words = {}}
    end
    local here = same.native(native)
    local values = visit {{url = SERVED, script = const("cases", given) .. [[
      const out = [];
      for (const {name, text} of cases) {
        workshop.open({name, text: ""});
        const said = await run(text);
        out.push([said, underlined("wrong"), texts(".CodeMirror .note")
          .join("\n"), SHELF.scripts.length]);
      }
      return out;]]}}[1]
    for i, c in ipairs(cases) do
      -- the lines that the native program's reports name
      local lines, list = {}, {}
      for _, k in ipairs(here[i].answer.page.kernels) do
        for _, note in ipairs(k.notes) do
          if note.kind == "bad" then lines[k.keys[note.key][2]] = true end
        end
      end
      for line in pairs(lines) do list[#list + 1] = line end
      table.sort(list)
      assert.is_true(#list > 0, c[1])
      assert.same(list, values[i][2], c[1])
      assert.truthy(values[i][3]:find(c[4], 1, true), values[i][3])
      assert.truthy(values[i][1]:find(("%s.lua:%d: "):format(c[1], list[1]), 1,
                                      true))
    end
  end)

  it("is in view on a phone when its source is", function()
    local text = without("scripts/copy_async.lua",
                         "cute.arch.cp_async_wait_group(0)", 1)
    local v = visit {{url = FILE, width = 390, script = const("text", text)
      .. [[
      await run(text);
      const room = document.body.dataset.room;
      click("[data-room=source]");
      await sleep(200);
      const wrong = $(".CodeMirror .wrong").getBoundingClientRect();
      const pane = $(".CodeMirror").getBoundingClientRect();
      return [room, wrong.top > pane.top && wrong.bottom < pane.bottom];]]}}[1]
    assert.same({"results", true}, v)
  end)
end)

describe("Stop", function()
  it("ends an endless loop at once, of Lua and of a kernel", function()
    local endless = {"while true do end", [[
      local cute = require "cute"
      local x = cute.zeros({1}, cute.i32)
      cute.kernel("k", function(x)
        local i = cute.var(0)
        cute.loop(function() return i.value:lt(1 << 30) end,
                  function() i.value = i.value + 1 end)
        x[0] = i.value
      end)(x):launch {grid = 1, block = 32}]]}
    local values = visit {{url = SERVED, script = const("endless", endless)
      .. [[
      const out = [];
      for (const text of endless) {
        await ready();
        write(text);
        click("#run");
        await sleep(300);
        const was = workshop.state(), from = performance.now();
        click("#stop");
        await until(() => workshop.state() == "ready");
        const took = performance.now() - from;
        const said = $("#log").textContent;
        out.push([was, took / 1000, said, await run("print(6 * 7)")]);
      }
      return out;]]}}[1]
    for _, v in ipairs(values) do
      assert.equal("running", v[1])
      assert.is_true(v[2] < 3, v[2] .. " s")
      print(("        stopped after %.2f s"):format(v[2]))
      assert.truthy(v[3]:find "stopped")
      assert.truthy(v[4]:find "42\ndone")
    end
  end)
end)

describe("output", function()
  it("arrives in few messages, and is drawn up to the stated limit", function()
    local v = visit {{url = FILE, script = [[
      await ready();
      let messages = 0;
      const text = "for i = 1, 300000 do print(i) end";
      const answer = await workshop.engine.ask("run",
        {name: "n.lua", text, words: []}, () => { messages++; });
      const lines = await run(text);
      const log = $("#log");
      await until(() => Math.abs(log.scrollHeight - log.scrollTop
        - log.clientHeight) < 2, "its end is not in view");
      const blocks = texts("#log .said");
      const note = $("#log .dropped").textContent;
      const long = await run("for i = 1, 100000 do io.write('<', i, '>') end "
        + "io.stderr:write 'warned'");
      const shown = texts("#log .said").join("");
      return [messages, answer.dropped, answer.seconds, note,
        blocks.join("").length, blocks.length, lines.slice(-300),
        shown.length, shown.slice(-16), $("#log .dropped").textContent,
        texts("#log .warned")];]]}}[1]
    local all = 0  -- number of characters that the script has printed
    for i = 1, 300000 do all = all + #tostring(i) + 1 end
    -- The Worker sends a message every 50 ms. After each 50 ms without output,
    -- which a busy machine causes, it also sends the first 64 lines one by
    -- one.
    assert.is_true(v[1] < 65 * (v[3] / 0.05 + 2), v[1])
    assert.equal(all - (1 << 20), v[2])
    print(("        300000 lines in %.2f s, %d messages"):format(v[3], v[1]))
    assert.is_true(v[5] <= 400000 and v[5] > 390000, v[5])
    assert.is_true(v[6] >= 40 and v[6] <= 60, v[6])
    local dropped = tonumber(v[4]:match
      "^(%d+) characters of output in front were dropped$")
    assert.is_true((1 << 20) - dropped - v[5] < 1, v[4])
    assert.truthy(v[7]:find(("%d bytes more are not shown: 1 MiB are kept of "
      .. "what a run prints\n"):format(v[2]), 1, true), v[7])
    -- If a line is longer than the limit of shown output, the page shows its
    -- end.
    assert.is_true(v[8] > 399900 and v[8] <= 400000, v[8])
    assert.equal("<99999><100000>", v[9]:sub(-15))
    assert.truthy(v[10]:find "^%d+ characters of output in front")
    assert.same({"warned"}, v[11])
  end)
end)

describe("dropped files", function()
  it("is a script in a link, and a draft that is kept", function()
    local text = ("-- \u{e4}\u{1f600} <&> %s\nprint(#arg, arg[1])\n")
      :format(("x"):rep(5000))
    local SHARE = [[
      await ready();
      click("#share");
      return await until(() => document.querySelector("#link")
        && $("#link").value);]]
    local values = visit {
      {url = SERVED, script = const("text", text) .. [[
        workshop.open({name: "mine.lua", text, words: "--m '2 3'",
          seed: 7});]] .. SHARE},
      {script = "localStorage.clear(); sessionStorage.clear(); return 1"},
      {url = SERVED, script = "localStorage.clear(); return 1"},
      {script = SHARE},
    }
    local link = values[1]
    assert.truthy(link:find "#s=[%w_-]+$")
    assert.is_true(#link < 1000, #link)
    local address = link:match "#.*"
    values = visit {{url = SERVED .. address, script = [[
        await ready();
        await until(() => $("#name").textContent == "mine.lua");
        const found = [workshop.editor.text(), $("#name").textContent,
          $("#words").value, $("#seed").value, await run(undefined,
            $("#words").value)];
        write("print 'changed'");
        await sleep(400);
        return found;]]},
      {url = SERVED, script = [[ return workshop.editor.text(); ]]}}
    local v = values[1]
    assert.equal(text, v[1])
    assert.same({"mine.lua", "--m \"2 3\"", "7"}, {v[2], v[3], v[4]})
    assert.truthy(v[5]:find "2\t%-%-m\n")
    assert.equal("print 'changed'", values[2])
  end)

  it("are .npy files, as tensors, and what scripts write", function()
    local v = visit {{url = SERVED, script = [[
      const said = await drop("two-d.npy", npy(F32("(2, 3)"), 24));
      const run1 = await run("print(two_d, two_d(1, 2))\n"
        + "local f <close> = io.open('b.txt', 'w') f:write 'hello'");
      await until(() => count("[data-file]"));
      let blob, name;
      const make = URL.createObjectURL;
      URL.createObjectURL = b => make(blob = b);
      document.addEventListener("click", e => {
        if (!e.target.download) return;
        name = e.target.download;
        e.preventDefault();
      }, true);
      click("[data-file]");
      const file = [name, blob.size];
      click("#save");
      const own = [name, await blob.text()];
      workshop.engine.seconds = 1;
      const late = await run("while true do end");   // another Worker has it
      workshop.engine.seconds = 60;
      return [said, run1, file, own, late, await run("print(two_d(0, 1))")];
      ]]}}[1]
    assert.equal("two-d.npy is the global two_d: f32 (2,3)", v[1])
    assert.truthy(v[2]:find("5.0\n", 1, true), v[2])
    assert.same({"b.txt", 5}, v[3])
    assert.equal("start.lua", v[4][1])
    assert.truthy(v[4][2]:find "two_d%(1, 2%)")
    assert.truthy(v[5]:find("the limit of time", 1, true), v[5])
    assert.truthy(v[6]:find("1.0\n", 1, true), v[6])
  end)
end)

describe("with keys alone", function()
  it("a script is found, changed, run, and prompted", function()
    local v = visit {{url = SERVED, script = [[
      await ready();
      const out = [], here = () => document.activeElement;
      await press("Tab");
      out.push(here().textContent);               // the first: a jump
      await press("Enter");
      out.push(!!here().closest(".CodeMirror"));
      await press("Control-a");
      await press("print(6 * 7)");
      await until(() => workshop.editor.text() == "print(6 * 7)");
      await press("Control-Enter");
      await until(() => count("#log .ended"));
      out.push($("#log .said").textContent);
      await press("F6");
      out.push(here().id);
      await press("ArrowRight");
      out.push(here().id, $("#kernel").hidden);
      await press("ArrowLeft");
      await press("F6");
      out.push(here().id);
      await press("x = 21 * 2 return x");
      await press("Enter");
      await until(() => /42$/.test($("#log").textContent.trim()));
      await press("F6");
      out.push(here().id);
      await press("transpose");
      await press("Tab");
      for (let i = 0; i < 12 && here().dataset.script != "transpose.lua"; i++)
        await press("Tab");
      await press("Enter");
      out.push($("#name").textContent);
      return out;]]}}[1]
    assert.same({"Go to the editor", true, "42\n", "tab-output", "tab-kernel",
      false, "prompt", "find", "transpose.lua"}, v)
  end)
end)

local LINKS = {
  {"#s=abc", "This link holds no script: the link is incomplete or was "
    .. "changed"},
  {"#s=abcde", "This link holds no script: the end of the link is missing"},
  {"#s=a%%bc", "a character after #s= is not a letter, digit, - or _"},
  {"#s=eJyrVspLzE1VslJQKkktLlGqBQAqCQT1", "This link holds no script"},
  {"#script=nothing.lua", "nothing.lua, which is not on the shelf"},
  {"#lesson=nothing", "the lesson nothing, which there is not"},
}

local X = 'local cute = require "cute"\nlocal x = cute.zeros({8}, cute.f32)\n'
local function kernel(body, launch)
  return X .. 'cute.kernel("k", function(x)\n' .. body .. "\nend)(x):launch "
    .. (launch or "{grid = 1, block = 32}")
end
-- Each case has a script, or {a script, its time limit in seconds}; the
-- message; and the number of the underlined line.
local SCRIPTS = {
  {"local x = 1\nlocal y = = 2", "unexpected symbol near '='", 2},
  {"print('abc", "unfinished string", 1},
  {"x =", "unexpected symbol near <eof>", 1},
  {"\27Lua\0\1", "this is compiled Lua: the workshop runs source text"},
  {X .. "cute.draw(cute.make_layout{32768, 32768})",
   "32768 x 32768 = 1073741824 cells are too many", 3},
  {X .. "x = cute.zeros({1 << 31}, cute.f32)",
   "2147483648 elements of f32 are too many", 3},
  {X .. "x = cute.zeros({1 << 33}, cute.u8)", "are too many", 3},
  {X .. 'cute.kernel("k", function()\n  local s = cute.make_smem_tensor('
   .. "cute.f32, cute.make_layout{1 << 31})\nend)():launch {grid = 1, "
   .. "block = 32}", "shared memory of 8589934592 bytes is over the budget",
   4},
  {kernel("x[0] = 1", "{grid = 1, block = 2048}"),
   "a block of 2048 threads; the limit is 1024", 3},
  {{kernel("x[0] = 1", "{grid = 1 << 26, block = 32}"), 1},
   "this took longer than 1 s, the limit of time, and was stopped"},
  {{"while true do end", 1},
   "this took longer than 1 s, the limit of time, and was stopped"},
  {kernel "x[cute.arch.thread_idx()] = 1",
   "write outside global tensor 'x': element 8 of 8", 4},
  {kernel("x[0] = 1", '{grid = 1, block = 1, device = "gpu"}'),
   "the workshop has only the simulator: a page cannot reach a GPU", 3},
  {kernel("error {1}"), "error object is a table value", 4},
  {'require "nothere"', "module 'nothere' not found", 1},
  {"error({1, 2})", "error object is a table value", 1},
  {"error(nil)", "error object is a nil value", 1},
  {"error(setmetatable({}, {__tostring = function() error 'no' end}))", "no",
   1},
  {"local function f() return 1 + f() end\nf()", "stack overflow", 1},
  {"local function g() return string.gsub('a', 'a', g) end\ng()",
   "C stack overflow", 1},
  {"print(#('x'):rep(1 << 40))", "resulting string too large", 1},
  {"local s = 'x'\nwhile true do s = s .. s end", "not enough memory"},
  {"coroutine.wrap(function() local x = nil + 1 end)()",
   "attempt to perform arithmetic on a nil value", 1},
  {"for l in io.lines('nothing.txt') do end", "nothing.txt", 1},
  {"print(io.read())", "there is no standard input here"},
  {"for i = 1, 60000 do print(i, ('x'):rep(40)) end",
   "bytes more are not shown: 1 MiB are kept of what a run prints"},
  {"os.exit(3)", "it ended with code 3"},
  {"for k in pairs(string) do string[k] = nil end\nprint = nil", "done"},
  {"local c = require 'cute.core' for k in pairs(c) do c[k] = nil end",
   "the program"},
}
local WORDS = {
  {"--m abc", "--m: a whole number expected, got 'abc'"},
  {"--nothing", "unknown option '--nothing'"},
  {"'a b", "arguments: ' is not closed"},
}
local FILES = {
  {"lies.npy", "npy(F32('(200000, 30000)'), 24)",
   "24000000000 bytes of elements expected"},
  {"short.npy", "npy(F32('(2, 3)'), 20)", "24 bytes of elements expected"},
  {"object.npy", [[npy(F32("(2,)").replace("<f4", "|O"), 24)]],
   "element type '|O' is not supported"},
  {"huge.npy", "npy(F32('(4294967296, 4294967296)'), 24)",
   "has a shape too large to count"},
  {"cut.npy", "npy(F32('(2, 3)').slice(0, 20), 0)", "has a broken header"},
  {"text.npy", "'hello'", "text.npy is not a .npy file"},
  {"empty.npy", "''", "empty.npy is empty"},
  {"k.png", "new Uint8Array([137, 80, 78, 71])",
   ".npy files and .lua scripts are taken"},
}

describe("errors are sentences, and the page keeps working:",
         function()
  it("scripts, arguments and files", function()
    local given = {}
    for i, c in ipairs(SCRIPTS) do
      local text, seconds = c[1], 30
      if type(text) == "table" then text, seconds = table.unpack(text) end
      given[i] = {text = text, seconds = seconds}
    end
    local drops = {}
    for i, f in ipairs(FILES) do
      drops[i] = ("[%q, () => %s]"):format(f[1], f[2])
    end
    local v = visit {{url = SERVED, script = const("scripts", given)
      .. const("words", WORDS) .. ("const files = [%s];"):format(
        table.concat(drops, ", ")) .. [[
      shelf("gemm3stage.lua");
      const own = workshop.editor.text(), out = [];
      const good = "local cute = require 'cute'\n"
        + "local x = cute.zeros({2}, cute.f32)\n"
        + "cute.kernel('k', function(x) x[0] = 42 end)(x)"
        + ":launch {grid = 1, block = 32}\nprint(x[0])";
      const works = async () => {
        workshop.engine.seconds = 30;
        return /42.0\n/.test(await run(good));
      };
      for (const {text, seconds} of scripts) {
        workshop.engine.seconds = seconds;
        out.push([(await run(text)).slice(-3000), underlined("wrong"),
                  await works()]);
      }
      for (const [line] of words)
        out.push([await run(own, line), [], await works()]);
      for (const [name, bytes] of files)
        out.push([await drop(name, bytes()), [], await works()]);
      return out;]]}}[1]
    local all = table.move(SCRIPTS, 1, #SCRIPTS, 1, {})
    for _, c in ipairs(WORDS) do all[#all + 1] = c end
    for _, c in ipairs(FILES) do all[#all + 1] = {c[1], c[3]} end
    assert.equal(#all, #v)
    for i, c in ipairs(all) do
      local what = json.encode(c[1])
      assert.truthy(v[i][1]:find(c[2], 1, true),
                    ("%s: %q expected in %q"):format(what, c[2], v[i][1]))
      if c[3] then
        local lines = {}
        for _, n in ipairs(v[i][2]) do lines[n] = true end
        assert.is_true(lines[c[3]], what)
      end
      assert.is_true(v[i][3], "the page works on behind " .. what)
    end
  end)
end)

describe("errors are sentences, and the page keeps working:",
         function()
  it("links", function()
    local steps = {}
    for i, c in ipairs(LINKS) do
      steps[i] = {url = SERVED .. c[1], script = [[
        await ready();
        const said = await until(() => document.querySelector("#log .error"));
        return [said.textContent, await run("print(6 * 7)")];]]}
    end
    for i, v in ipairs(visit(steps)) do
      assert.truthy(v[1]:find(LINKS[i][2], 1, true), v[1])
      assert.truthy(v[2]:find "42\ndone")
    end
  end)
end)
-- SPDX-License-Identifier: MIT
