-- Takes screenshots of the workshop's page at three widths, light and dark, as
-- build/shots/NAME-WIDTH-COLOURS.png. Usage: shots.lua [FOLDER]. Needs `make
-- web`, node and a Chromium.
local browser = require "spec.browser"

local folder = arg and arg[1] or "build/shots"
local p <close> = io.popen("realpath build/web && mkdir -p " .. folder)
local PAGE = "file://" .. p:read "l" .. "/index.html"

local READY = [[
  const ready = () => until(() => workshop.state() == "ready");
  const run = async name => {
    await ready();
    workshop.open({name, text: SHELF.scripts.find(
      s => s.path == "scripts/" + name).text});
    click("#run");
    await until(() => count("#log .ended"));
    await sleep(200);
  };
  localStorage.clear();
  await ready();
]]

local STATES = {
  {"start", ""},
  {"output", 'await run("transpose.lua");'},
  {"kernel", 'await run("gemm3stage.lua"); click("#tab-kernel");'},
  {"fault", [[
    await run("copy_async.lua");
    const cm = workshop.editor.cm;
    cm.setValue(cm.getValue().replace(/^.*cp_async_wait_group.*$/m, ""));
    click("#run");
    await sleep(100);
    await until(() => count("#log .ended"));
    click("[data-room=source]");]]},
  {"lesson", [[
    workshop.lesson(SHELF.lessons[3].name);
    await until(() => count(".lesson-step"));]]},
  {"shelf", 'click("[data-room=shelf]");'},
}

local steps = {}
for _, state in ipairs(STATES) do
  for _, width in ipairs {1440, 900, 390} do
    for _, dark in ipairs {false, true} do
      steps[#steps + 1] = {url = PAGE, width = width, height = 900, dark = dark,
        script = READY .. state[2] .. "await sleep(500);",
        png = ("%s/%s-%d-%s.png"):format(folder, state[1], width,
                                         dark and "dark" or "light")}
    end
  end
end
for i, one in ipairs(browser.drive(steps)) do
  print(steps[i].png, table.concat(one.errors, "\n"))
end
-- SPDX-License-Identifier: MIT
