-- Measures the workshop in a Chromium: the time until the page is ready, and
-- the time of scripts. Scripts run with one thread (page opened as files) and
-- with several (served page). Needs `make web`, node and a Chromium.
local browser = require "spec.browser"
local json = require "dkjson"
local measure = require "spec.measure"

local LOADS, RUNS = 5, 5

-- Scripts: {file, arguments, limit of seconds for a run, number of runs}.
local SCRIPTS = {
  {"gemm3stage", "256", 0.3, RUNS}, {"gemm3stage", "1024", 10, 1},
  {"gemm_hopper", "256", 1, RUNS},
}

local web = (os.getenv "CUTE_BUILD" or "build") .. "/web"
local page <close> = assert(io.popen("realpath " .. web))
local folder = page:read "l"
if not browser.find() or not io.open(web .. "/index.html") then
  print("The workshop not measured: make web, and a Chromium are needed")
  return
end

local LOAD = [[
  const end = Date.now() + 60000;
  while (workshop.state() != "ready" && Date.now() < end) await sleep(1);
  return performance.now() / 1000;]]

local RUN = ("const scripts = %s;"):format(json.encode(SCRIPTS)) .. [[
  const out = [];
  for (const [name, size, , times] of scripts) {
    const text = SHELF.scripts.find(s => s.path == `scripts/${name}.lua`).text;
    const words = ["--m", size, "--n", size, "--k", size], list = [];
    for (let i = 0; i < times; i++) {
      const a = await workshop.engine.ask("run", {name: name + ".lua", text,
                                                  words});
      if (!a.ok) throw new Error(a.error.message);
      list.push(a.seconds);
    }
    out.push(list);
  }
  const threads = /\d+ threads?/.exec($("#version").textContent);
  return [out, threads[0] ];]]

local function visit(url)
  local steps = {}
  for i = 1, LOADS do steps[i] = {url = url, script = LOAD} end
  steps[#steps + 1] = {script = RUN}
  local found = browser.drive(steps, {server = {measure.program, "web",
    "--port", "0", "--folder", folder}})
  local loads = {}
  for i, one in ipairs(found) do
    assert(#one.errors == 0, table.concat(one.errors, "\n"))
    if i <= LOADS then loads[i] = one.value end
  end
  return loads, found[#found].value[1], found[#found].value[2]
end

local t = measure.table "The workshop in a Chromium"
for _, url in ipairs {"/index.html", "file://" .. folder .. "/index.html",
                      "file://" .. folder .. "/workshop.html"} do
  local loads, runs, threads = visit(url)
  local where = ("%s, %s"):format(url:match "^/" and "served"
    or url:match "[^/]+$", threads)
  t:add(where .. ": ready", loads, "s", 2)
  for i, s in ipairs(SCRIPTS) do
    t:add(("%s, %s^3"):format(s[1], s[2]), runs[i], "s", s[3])
  end
end
t:print()
-- SPDX-License-Identifier: MIT
