-- Tests the documents as web pages.
local browser = require "spec.browser"
local support = require "spec.support"

local dir

setup(function()
  dir = support.folder()
  local list = {support.program, "tools/pages.lua", dir .. "/build/docs",
                "README.md"}
  local found <close> = io.popen "ls docs/*.md docs/measured/*.md"
  for path in found:lines() do list[#list + 1] = path end
  support.exec {"mkdir", "-p", dir .. "/build/docs"}
  assert.same({"", "", 0}, {support.exec(list, {env = {
    CUTELUA_WORKSHOP = "../web/workshop.html"}})})
end)
teardown(function() support.remove(dir) end)

local function page(name)
  return support.read(("%s/build/docs/%s.html"):format(dir, name))
end

describe("pages of the documents", function()
  it("link to existing pages", function()
    local made = {reference = true, tutorial = true}
    local found <close> = io.popen(("ls '%s/build/docs'"):format(dir))
    local names = {}
    for file in found:lines() do
      names[#names + 1] = file:match "^(.*)%.html$"
      made[names[#names]] = true
    end
    assert.is_true(#names > 25)
    local seen = 0
    for _, name in ipairs(names) do
      for href in page(name):gmatch '<a href="([^"]*)"' do
        local path, at = href:match "^([^#]*)#?(.*)$"
        local other = path == "" and name or path:match "^([%w_-]+)%.html$"
        if other then
          assert.is_true(made[other], name .. ": " .. href)
          if at ~= "" and page(other) then
            assert.truthy(page(other):find(('id="%s"'):format(at), 1, true),
                          name .. ": " .. href)
          end
          seen = seen + 1
        elseif path:find "^%.%./%.%./" then
          local f <close> = io.open((path:gsub("^%.%./%.%./", "")))
          assert.truthy(f, name .. ": " .. href)
        else
          assert.truthy(path == "../web/workshop.html"
            or path:find "^https?://", name .. ": " .. href)
        end
      end
    end
    assert.is_true(seen > 700, seen)
    assert.is_nil(made.README)
    assert.is_nil(page "tutorial")
  end)

  it("have the documents' headings, tables and pictures #long", function()
    for name, want in pairs {
        workshop = {"<h1 id=\"the-workshop\">The workshop</h1>",
          "<td>Ctrl-Enter</td><td>runs the script, or the step of a lesson"},
        simulator = {"<ol><li>Two operations of", "for |x| up to 1, 7.8"},
        index = {'href="layouts.html">docs/layouts.md</a>',
          'href="contents.html">docs/README.md</a>'},
        ["measured-few_rows"] = {'href="ops.html#constant-weights"'},
        explain = {'<a href="../web/workshop.html">the workshop itself</a>'},
        ladders = {'<img src="data:image/svg+xml,%3Csvg'}} do
      local text = page(name)
      for _, part in ipairs(want) do
        assert.truthy(text:find(part, 1, true), name .. ": " .. part)
      end
      assert.is_nil(text:find "<!%-%-", name)
    end
    if not browser.find() then return end
    local SCRIPT = [[
      await Promise.all(Array.from(document.images).map(function (i) {
        return i.decode(); }));
      return [count("h1") == 2, count("img"),
              document.documentElement.scrollWidth <= innerWidth];]]
    local found = browser.visit {
      {html = page "ladders", script = SCRIPT},
      {html = page "simulator", width = 390, script = SCRIPT}}
    assert.same({{true, 3, true}, {true, 0, true}}, {found[1].value,
                                                     found[2].value})
    assert.same({{}, {}}, {found[1].errors, found[2].errors})
  end)
end)
-- SPDX-License-Identifier: MIT
