--- Opens several pages in a headless Chromium, which starts once. Each page is
-- in a frame of the given width. A script of the spec runs there and returns a
-- value.
--
--     local found = browser.visit {
--       {html = text, width = 390, script = "return document.title"},
--       {file = "k.html", script = "hover('#a'); return count('.lit')"}}
--     found[1].value, found[1].errors
--
-- A script's value is passed back as JSON. The script may `await`, and can call
-- $(css), which returns the first element, count(css) and texts(css). It can
-- also call hover(e), leave(e), click(e) and key(e, "ArrowDown"), where e is an
-- element or its CSS selector. `browser.drive` is slower and closer to a user:
-- real time, real keys, requests to servers.
local json = require "dkjson"
local support = require "spec.support"

local browser = {}

local SECONDS = 60

local function answers(name)
  local out, _, code = support.exec {"sh", "-c",
    ("command -v %s >/dev/null && timeout 20 %s --version"):format(name, name)}
  return code == 0 and out:find "Chrom" and true
end

local known

--- Returns the name of a Chromium that starts, or false if there is none.
---@return string | false
function browser.find()
  if known == nil then
    known = false
    for _, name in ipairs {"chromium", "chromium-browser", "google-chrome",
                           "google-chrome-stable"} do
      if answers(name) then
        known = name
        break
      end
    end
  end
  return known
end

local function start(folder, words)
  local all = {"timeout", "-k", "2", tostring(SECONDS), browser.find(),
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-dev-shm-usage", "--disable-extensions", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
    "--hide-scrollbars", "--user-data-dir=" .. folder .. "/profile"}
  table.move(words, 1, #words, #all + 1, all)
  local out, err, code = support.exec(all)
  assert(code == 0, ("%s ended with %d\n%s"):format(all[5], code,
    err:sub(-2000)))
  return out
end

-- A script that precedes each page. It records errors, and separates the page's
-- storage from that of other pages.
local CATCH = [[<script>
var specErrors = [];
(function () {
  function add(text) { specErrors.push(String(text)); }
  addEventListener("error", function (e) {
    add(e.message || "cannot load " + (e.target.src || e.target.href));
  }, true);
  addEventListener("unhandledrejection", function (e) { add(e.reason); });
  addEventListener("securitypolicyviolation", function (e) {
    add(e.violatedDirective + " " + e.blockedURI); });
  console.error = add;
  var kept = {};
  Object.defineProperty(window, "localStorage", {value: {
    getItem: function (k) { return k in kept ? kept[k] : null; },
    setItem: function (k, v) { kept[k] = String(v); }}});
})();
</script>
]]

local PROBE = [[<script>
(function () {
  function element(e) { return typeof e == "string" ? $(e) : e; }
  function $(css) {
    var e = document.querySelector(css);
    if (!e) throw new Error("no element " + css);
    return e;
  }
  function all(css) { return Array.from(document.querySelectorAll(css)); }
  function count(css) { return all(css).length; }
  function texts(css) { return all(css).map(function (e) {
    return e.textContent; }); }
  function send(e, names, Kind, more) {
    names.forEach(function (name) { element(e).dispatchEvent(new Kind(name,
      Object.assign({bubbles: true, cancelable: true}, more))); });
  }
  function hover(e) { send(e, ["pointerover", "pointermove"], PointerEvent);
    send(e, ["mouseover", "mousemove"], MouseEvent); }
  function leave(e) { send(e, ["pointerout"], PointerEvent);
    send(e, ["mouseout"], MouseEvent); }
  function click(e) { element(e).click(); }
  function key(e, name) { send(e, ["keydown", "keyup"], KeyboardEvent,
    {key: name}); }
  addEventListener("load", async function () {
    var found = {};
    try { found.value = await (async function () {
%s
    })(); } catch (e) { specErrors.push(String(e)); }
    found.errors = specErrors;
    parent.postMessage([%d, found], "*");
  });
})();
</script>
]]

-- Returns the page with two scripts added: CATCH, and one that runs the probe.
local function probed(page, number)
  local text = page.html or assert(support.read(page.file))
  local head = text:match "^%s*<![^>]*>%s*<html[^>]*>%s*<head[^>]*>()"
    or text:match "^%s*<![^>]*>()" or 1
  return text:sub(1, head - 1) .. CATCH .. text:sub(head)
    .. PROBE:format(page.script or "", number)
end

local FRAMES = [[<!doctype html>
<style>body { margin: 0; } iframe { border: 0; display: block; }</style>
<pre id="found" hidden></pre>
<script>
var found = [];
addEventListener("message", function (e) {
  found.push(e.data);
  document.getElementById("found").textContent =
    encodeURIComponent(JSON.stringify(found));
});
</script>
]]

local function frames(folder, pages)
  local out = {FRAMES}
  for i, page in ipairs(pages) do
    support.write(("%s/%d.html"):format(folder, i), probed(page, i))
    out[#out + 1] = ('<iframe src="%d.html" width="%d" height="%d"></iframe>')
      :format(i, page.width or 1000, page.height or 800)
  end
  return "file://" .. support.write(folder .. "/all.html", table.concat(out))
end

local function in_folder(f)
  local folder = support.folder()
  local ok, result = pcall(f, folder)
  support.remove(folder)
  return ok and result or error(result, 0)
end

--- Opens pages in one browser process; raises an error if a page returns
-- nothing.
---@param pages {file: string?, html: string?, script: string, width: integer?,
-- height: integer?}[]
---@param opt? {dark: boolean} the system's colours
---@return {value: any, errors: string[]}[]
function browser.visit(pages, opt)
  return in_folder(function(folder)
    local dom = start(folder, {"--virtual-time-budget=20000",
      "--blink-settings=preferredColorScheme=" .. (opt and opt.dark and 0 or 1),
      "--dump-dom", frames(folder, pages)})
    local text = dom:match '<pre id="found"[^>]*>([^<]*)</pre>' or ""
    text = text:gsub("%%(%x%x)", function(x)
      return string.char(tonumber(x, 16))
    end)
    local found = {}
    for _, pair in ipairs(json.decode(text) or {}) do
      found[pair[1]] = pair[2]
    end
    for i, page in ipairs(pages) do
      assert(found[i], ("page %d (%s) did not answer"):format(i,
        page.file or "html"))
    end
    return found
  end)
end

--- Writes a screenshot of a page, taken after its script, as a PNG file.
---@param page {file: string?, html: string?, script: string?, width: integer?,
-- height: integer?}
---@param png string
---@param opt? {dark: boolean}
function browser.screenshot(page, png, opt)
  in_folder(function(folder)
    -- A window has a minimum width; the frame in it does not.
    start(folder, {"--virtual-time-budget=20000", "--screenshot=" .. png,
      "--blink-settings=preferredColorScheme=" .. (opt and opt.dark and 0 or 1),
      ("--window-size=%d,%d"):format(page.width or 1000, page.height or 800),
      frames(folder, {page})})
    return true
  end)
end

--- Carries out steps in one browser, in order; spec/web/chromium.js describes a
-- step. Requires node.
---@param steps {url: string?, script: string?, width: integer?, height:
-- integer?, dark: boolean?, png: string?}[]
---@param opt? {server: string[]} a program with its arguments that serves the
-- urls without a host
---@return {value: any, errors: string[], asked: string[]}[]
function browser.drive(steps, opt)
  local words = {"timeout", "-k", "2", "240", "node", "spec/web/chromium.js",
                 browser.find()}
  local server = opt and opt.server or {}
  table.move(server, 1, #server, #words + 1, words)
  local out, err, code = support.exec(words, {stdin = json.encode(steps)})
  assert(code == 0, ("chromium.js ended with %d\n%s"):format(code, err))
  return json.decode(out)
end

return browser
-- SPDX-License-Identifier: MIT
