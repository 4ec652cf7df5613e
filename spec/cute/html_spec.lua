local browser = require "spec.browser"
local html = require "cutelua.text.html"

local NASTY = "a<b>&\"'</script><!--\u{20AC} `${x}` \\ \r\n\tend"

describe("pages", function()
  it("escape markup, and invalid text", function()
    assert.equal("&lt;a href=&quot;x&quot;&gt;&amp;amp;&#39;",
                 html.escape '<a href="x">&amp;\'')
    assert.equal("a\u{FFFD}b\u{FFFD}", html.escape "a\0b\xff")
    assert.equal("1.5", html.escape(1.5))
    assert.equal('{"a":"\\u003c/script>"}', html.json {a = "</script>"})
  end)

  it("name nothing that would be fetched", function()
    local text = html.page {title = "t", body = ""}
    assert.is_nil(text:find "https?://")
    assert.is_nil(text:find "src=")
    assert.is_nil(text:find "<link")
  end)

  local function visit(pages, opt)
    if not browser.find() then pending "needs Chromium" end
    return browser.visit(pages, opt)
  end

  it("show their text: light, dark, on a phone #noasan #long", function()
    local text = html.page {title = NASTY, data = {text = NASTY, n = {1, 2}},
      body = ('<p id="p" title="%s">%s</p>'):format(html.escape(NASTY),
        html.escape(NASTY))
        .. '<div class="scroll"><pre>' .. ("x"):rep(500) .. "</pre></div>",
      style = "#p { color: var(--bad) }", script = "var ran = page.n.length;"}
    local LOOK = [[
      var p = $("#p"), root = document.documentElement;
      function back() {
        return getComputedStyle(document.body).backgroundColor; }
      var was = back();
      click("#theme");
      return {text: p.textContent, title: p.title, data: page.text, ran: ran,
        head: $("h1").textContent, wide: root.scrollWidth, was: was,
        now: back()};]]
    local found = visit({{html = text, width = 360, script = LOOK},
                         {html = text, width = 1200, script = LOOK}})
    for i, width in ipairs {360, 1200} do
      local f = found[i].value
      assert.same({}, found[i].errors)
      for _, name in ipairs {"text", "title", "data", "head"} do
        assert.equal(NASTY, f[name])
      end
      assert.equal(2, f.ran)
      assert.is_true(f.wide <= width)
      assert.equal("rgb(255, 255, 255)", f.was)
      assert.equal("rgb(20, 23, 27)", f.now)
    end
    local dark = visit({{html = text, script = LOOK}}, {dark = true})[1].value
    assert.equal("rgb(20, 23, 27)", dark.was)
    assert.equal("rgb(255, 255, 255)", dark.now)
  end)

  it("report their errors, and reach no network #noasan #long", function()
    local found = visit {
      {html = html.page {title = "", body = "", script = "nothing.at.all;"},
       script = "return 1"},
      {html = html.page {title = "",
         body = '<img src="http://127.0.0.1:9/x.png">'}},
      {html = html.page {title = "", body = ""}, script = "$('#none')"},
      {html = html.page {title = "", body = '<b id="b">x</b>',
         script = [[document.getElementById("b").onpointerover = function () {
           this.className = "lit"; }]]},
       script = "hover('#b'); return [count('.lit'), texts('b')]"}}
    assert.equal(1, found[1].value)
    assert.truthy(found[1].errors[1]:find("nothing is not defined", 1, true))
    assert.truthy(found[2].errors[1]:find("^img%-src http://127"))
    assert.truthy(found[3].errors[1]:find("no element #none", 1, true))
    assert.same({{1, {"x"}}, {}}, {found[4].value, found[4].errors})
  end)
end)
-- SPDX-License-Identifier: MIT
