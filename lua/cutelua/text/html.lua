--- Generates HTML pages that consist of a single file. A page loads no other
-- files, has a light and a dark theme, and is readable on a phone.
--
--     local text = html.page {title = "A kernel", style = "p { color: red }",
--       body = "<p>" .. html.escape(x) .. "</p>", data = {lines = {1, 2}},
--       script = "document.title = page.lines.length"}
--
-- All pages share the following CSS variables for colours. --rule is the colour
-- of separators. --lit is the background of the element under the pointer.
-- --pick is the background of the selected element. --c0 to --c7 are
-- backgrounds of cells whose text has the colour --ink. The other variables are
-- --back, --fore, --dim, --panel, --link, --good, --warn and --bad.
--
-- A page follows the system's theme until the user clicks the page's theme
-- button. The button sets `data-theme` of the root element to "light" or
-- "dark".
local json = require "cutelua.text.json"

local html = {}

local ESCAPES = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;",
                 ['"'] = "&quot;", ["'"] = "&#39;", ["\r"] = "&#13;"}

--- Escapes text for HTML elements and quoted attributes. Invalid UTF-8 and
-- control characters become U+FFFD.
---@param text any
---@return string
function html.escape(text)
  text = tostring(text)
  if not utf8.len(text) then text = text:gsub("[\x80-\xff]", "\u{FFFD}") end
  text = text:gsub("[^\t\n\r\x20-\x7e\x80-\xff]", "\u{FFFD}")
  return (text:gsub("[&<>\"'\r]", ESCAPES))
end

--- Returns a value as JSON that is safe inside a <script> element.
---@param value any any value that cutelua.text.json encodes
---@return string
function html.json(value)
  return (json.encode(value):gsub("<", "\\u003c"))
end

local LIGHT = {
  back = "#ffffff", fore = "#1d2127", dim = "#667080", rule = "#dfe3e8",
  panel = "#f5f7f9", link = "#0b62c4", lit = "#fff2b8", pick = "#ffdf80",
  good = "#1a7f37", warn = "#9a6700", bad = "#c62f2f", ink = "#1d2127",
  c0 = "#a6cbe8", c1 = "#fdd0a2", c2 = "#bfe3b4", c3 = "#d6cdea",
  c4 = "#f9b9b0", c5 = "#d3d6da", c6 = "#f5e08c", c7 = "#a9e0dc",
}
local DARK = {
  back = "#14171b", fore = "#d9dee5", dim = "#8d97a5", rule = "#2d333b",
  panel = "#1c2026", link = "#6cb0ff", lit = "#3a3517", pick = "#5c4f14",
  good = "#57c274", warn = "#d9a93a", bad = "#ff7a72", ink = "#e8ecf1",
  c0 = "#2f5d80", c1 = "#83511f", c2 = "#37663a", c3 = "#57477f",
  c4 = "#83403a", c5 = "#474d55", c6 = "#6e6019", c7 = "#22635f",
}

local function declared(colours)
  local out = {}
  for name, value in pairs(colours) do
    out[#out + 1] = ("--%s: %s;"):format(name, value)
  end
  table.sort(out)
  return table.concat(out, " ")
end

--- The CSS that all pages share: the colours of both themes and the common
-- rules.
html.style = ":root { color-scheme: light; " .. declared(LIGHT) .. [[ }
@media (prefers-color-scheme: dark) {
  :root:not([data-theme=light]) { color-scheme: dark; ]] .. declared(DARK)
  .. [[ }
}
:root[data-theme=dark] { color-scheme: dark; ]] .. declared(DARK) .. [[ }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--fore);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  -webkit-text-size-adjust: 100%; }
.top { display: flex; align-items: center; gap: 12px; padding: 10px 16px;
  border-bottom: 1px solid var(--rule); }
.top h1 { flex: 1 1 0; max-width: 100%; margin: 0; font-size: 17px;
  font-weight: 600; overflow-wrap: break-word; }
main { padding: 0 16px 32px; }
h2 { margin: 24px 0 8px; font-size: 15px; font-weight: 600; }
a { color: var(--link); }
pre, code, .mono, table.mono td { font-family: ui-monospace, SFMono-Regular,
  Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12.5px; }
pre { margin: 0; line-height: 1.45; tab-size: 4; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px 3px 0; text-align: left; vertical-align: top; }
th { color: var(--dim); font-weight: 500; }
td.n, th.n { text-align: right; }
tr + tr td { border-top: 1px solid var(--rule); }
.dim { color: var(--dim); } .good { color: var(--good); }
.warn { color: var(--warn); } .bad { color: var(--bad); }
button, select { font: inherit; font-size: 13px; color: var(--fore);
  background: var(--panel); border: 1px solid var(--rule); border-radius: 6px;
  padding: 4px 10px; cursor: pointer; }
button:hover, select:hover { border-color: var(--dim); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
svg { max-width: 100%; height: auto; }
@media (max-width: 600px) {
  .top, main { padding-left: 10px; padding-right: 10px; }
  .top { flex-wrap: wrap; } .top h1 { font-size: 15px; }
}
@media print { #theme { display: none; } }
]]

-- The JavaScript of the theme button. It stores the selected theme if the
-- browser supports storage for local files.
local THEME = [[
(function () {
  var root = document.documentElement;
  var button = document.getElementById("theme");
  var dark = matchMedia("(prefers-color-scheme: dark)");
  try { root.dataset.theme = localStorage.getItem("theme") || ""; } catch (e) {}
  button.onclick = function () {
    var now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now == "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch (e) {}
  };
})();
]]

--- Returns a whole page. title is plain text and is escaped. body, style and
-- script are inserted unchanged. The script reads data from the variable
-- `page`.
---@param p table {title: string, body: string, style: string?, script: string?,
-- data: any}
---@return string
function html.page(p)
  local title = html.escape(p.title)
  local out = {'<!doctype html>\n<html lang="en">\n<head>\n',
    '<meta charset="utf-8">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
      .. 'style-src \'unsafe-inline\'; script-src \'unsafe-inline\'; '
      .. 'img-src data:">\n',
    "<title>", title, "</title>\n<style>\n", html.style, p.style or "",
    '</style>\n</head>\n<body>\n<header class="top"><h1>', title,
    '</h1><button id="theme" title="light or dark" aria-label="light or dark">',
    "\u{25D0}</button></header>\n<main>\n", p.body, "\n</main>\n<script>\n",
    THEME}
  if p.data ~= nil then
    out[#out + 1] = "var page = " .. html.json(p.data) .. ";\n"
  end
  out[#out + 1] = p.script
  out[#out + 1] = "</script>\n</body>\n</html>\n"
  return table.concat(out)
end

return html
-- SPDX-License-Identifier: MIT
