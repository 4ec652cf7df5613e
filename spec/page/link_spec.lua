-- Tests links that contain a script. The page of a kernel writes such links,
-- and the workshop reads them.
local browser = require "spec.browser"
local html = require "cutelua.text.html"
local link = require "cutelua.page.link"
local support = require "spec.support"

-- A link's part with a script, encoded by Python's zlib and base64.
local OBJECT = "#s=eNqrVspLzE1VslJQytbLKU1U0lFQKkmtKAEJFBRl5pUoqKcXHd5zeH6qek"
  .. "weSLI8vyilGCgbraSrmwsSMDNRigVSxampKUBh41oAFPUYYg"
local BAD = {
  {"#s=eNqLNowFAAHTAOo", "the script has no text."},
  {"#s=eNqrVipJrShRAgAKegKF", "the content of the link is not JSON."},
  {"#s=eNqLVipJrShRAgAKegKF", "the link is incomplete or was changed."},
  {"#s=eNqrVipJrShRslJQqlDSUVAqzy9KKQbyog1jawFyWQga",
   "the script's arguments are not a list of words."},
  {OBJECT:sub(1, -2), "the end of the link is missing."},
  {OBJECT:sub(1, -3), "the link is incomplete or was changed."},
  {OBJECT:sub(1, 9), "the link is incomplete or was changed."},
  {OBJECT:sub(1, 8), "the end of the link is missing."},
  {"#s=a", "the end of the link is missing."},
  {"#s=", "the link is incomplete or was changed."},
  {OBJECT .. "!", "a character after #s= is not a letter, digit, - or _."},
}

-- Waits for a promise that another thread of the browser fulfils. While
-- messages are in flight, the browser's virtual time stops.
local REAL = [[
async function real(promise) {
  var done = false, channel = new MessageChannel();
  promise.finally(function () { done = true; }).catch(function () {});
  while (!done) await new Promise(function (f) {
    channel.port1.onmessage = f;
    channel.port2.postMessage(0);
  });
  return promise;
}
]]

describe("a link with a script", function()
  it("is encoded by zlib and base64url, and read back", function()
    if not browser.find() then pending "needs Chromium" end
    local cases = {}
    for i, row in ipairs(BAD) do cases[i] = row[1] end
    local found = browser.visit {{html = html.page {title = "", body = "",
      script = link.script, data = {bad = cases, object = OBJECT}},
      script = REAL .. [[
      async function told(f) {
        try { await cuteUnlink(f); return "nothing"; }
        catch (e) { return e.message; }
      }
      async function all() {
        var long = "-- " + "\u20AC\u0000\\\"<\/script>".repeat(20000) + "\n";
        var own = {name: "a b.lua", text: long, words: [], seed: 0};
        var link = await cuteLink(own);
        return [await cuteUnlink(page.object),
          await Promise.all(page.bad.map(told)),
          JSON.stringify(await cuteUnlink(link)) == JSON.stringify(own),
          await told(await cuteLink({text: " ".repeat(5 << 20)})),
          await cuteUnlink(await cuteLink({text: ""})), link.length < 4000];
      }
      return real(all());]]}}[1]
    assert.same({}, found.errors)
    local object, told, same, huge, least, short = table.unpack(found.value)
    assert.same({name = "k.lua", text = "print 'grüße'\n",
                 words = {"--m", "64"}, seed = 3}, object)
    for i, row in ipairs(BAD) do
      assert.equal("This link holds no script: " .. row[2], told[i])
    end
    assert.is_true(same)
    assert.truthy(huge:find "larger than 4 MB")
    assert.same({name = "script.lua", text = "", words = {}}, least)
    assert.is_true(short)
  end)

  it("is on the page of a kernel, with its words, for any workshop #long",
     function()
    if not browser.find() then pending "needs Chromium" end
    local dir = support.folder()
    local script = dir .. "/k.lua"
    local text = [[
local cute, n = require "cute", tonumber((select(2, ...))) -- "</script>" €
local k = cute.kernel("k", function(x)
  x[cute.arch.thread_idx()] = 1
end)
k(cute.zeros({n}, cute.f32)):launch {grid = 1, block = n, device = "sim"}
]]
    support.write(script, text)
    local pages = {}
    for i, words in ipairs {{}, {"--workshop", "w.html#old"}} do
      local command = {support.program, "explain"}
      table.move(words, 1, #words, #command + 1, command)
      table.move({script, "--n", "32", "-o", dir .. "/k.html"}, 1, 5,
                 #command + 1, command)
      local _, err, code = support.exec(command, {env = {
        CUTELUA_NO_CUDA = "1",
        CUTELUA_WORKSHOP = i == 2 and "https://x.example/" or nil}})
      assert.same({"", 0}, {err, code})
      pages[i] = {html = support.read(dir .. "/k.html"), script = REAL .. [[
        await real(new Promise(function (f) {
          function look() { if (count("#workshop")) f(); }
          new MutationObserver(look).observe(document.body, {childList: true,
            subtree: true});
          look();
        }));
        var a = $("#workshop");
        return [a.textContent, a.getAttribute("href").split("#")[0],
                await real(cuteUnlink(a.hash))];]]}
    end
    support.remove(dir)
    local want = {name = "k.lua", text = text, words = {"--n", "32"}}
    local found = browser.visit(pages)
    for i, address in ipairs {"http://127.0.0.1:5454/", "w.html"} do
      assert.same({}, found[i].errors)
      assert.same({"open in the workshop", address, want}, found[i].value)
    end
  end)

  it("leads nowhere but to a page", function()
    for _, address in ipairs {"javascript:alert(1)", "JavaScript:alert(1)",
        " javascript:alert(1)", "java\nscript:alert(1)", "data:text/html,x",
        "\1javascript:alert(1)", "vbscript:x", "localhost:5454", "w\27[2J"} do
      for words, env in pairs {[{"--workshop", address}] = {},
          [{}] = {CUTELUA_WORKSHOP = address}} do
        local all = {"explain", "-o", "/nowhere/x.html",
                     table.unpack(words)}
        all[#all + 1] = "x.lua"
        local _, err, code = support.run(all, {env = env})
        assert.equal(2, code, err)
        assert.matches("one of http, https or file, or a path, is needed", err,
                       1, true)
        assert.falsy(err:find "\27")
      end
    end
    for _, address in ipairs {"https://a.b/c:d", "FILE:///x", "w/a.html",
        "w.html?a=b:c", "//a:80/"} do
      assert.equal(address, link.address(address .. "#old"))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
