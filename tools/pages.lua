-- pages.lua FOLDER FILE.md...: writes the documents as HTML pages that link to
-- one another. README.md becomes index.html, and docs/README.md becomes
-- contents.html. tutorial.lua writes tutorial.html. `make docs` runs this
-- script with cutelua.
local html = require "cutelua.text.html"
local link = require "cutelua.page.link"
local markdown = require "cutelua.text.markdown"

local folder = arg[1]
local e = html.escape

local function read(path)
  local f <close> = assert(io.open(path))
  return f:read "a"
end

local function write(path, text)
  local f <close> = assert(io.open(path, "wb"))
  assert(f:write(text))
end

local NAMES = {["README.md"] = "index.html",
               ["docs/README.md"] = "contents.html",
               ["docs/measured/README.md"] = "measured.html"}

-- Returns the name of a document's page: docs/explain.md becomes explain.html,
-- and docs/measured/gemm.md becomes measured-gemm.html.
local function page_of(path)
  return NAMES[path]
    or path:gsub("^docs/", ""):gsub("/", "-"):gsub("%.md$", ".html")
end

local STYLE = [[
main { max-width: 1000px; margin: 0 auto; }
h1 { font-size: 22px; margin: 20px 0 10px; } h2 { font-size: 17px; }
p, li { max-width: 84ch; } li { margin: 3px 0; }
pre { background: var(--panel); border-radius: 6px; padding: 10px 12px;
  margin: 12px 0; }
td, th { padding: 4px 14px 4px 0; }
img { max-width: 100%; background: #ffffff; }
nav { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 13px;
  padding: 10px 0; border-bottom: 1px solid var(--rule); }
]]

-- pages: the HTML file of each document. nav: the links at the top of all
-- pages.
local pages, nav = {}, {}
for i = 2, #arg do
  local page = page_of(arg[i])
  pages[arg[i]] = page
  if not arg[i]:find "/measured/." or NAMES[arg[i]] then
    nav[#nav + 1] = ('<a href="%s">%s</a>'):format(page,
      e(page:match "^(.*)%.html$"))
  end
end
nav[#nav + 1] = '<a href="reference.html">reference</a>'
nav[#nav + 1] = ('<a href="%s">the workshop itself</a>'):format(
  e(link.address()))

-- Returns the SVG picture at `path` as a data URL.
local function inside(path)
  return "data:image/svg+xml," .. read(path):gsub("[^%w]", function(c)
    return ("%%%02X"):format(c:byte())
  end)
end

-- Returns the path in the repository of `file`, which is a link's path relative
-- to the folder `room`. For the folder "docs/measured/" and the link
-- "../ops.md", returns "docs/ops.md".
local function resolve(room, file)
  local path = room .. file
  local n
  repeat path, n = path:gsub("[^/]+/%.%./", "", 1) until n == 0
  return path
end

-- Returns a function that maps a link of the document at `path` to an address:
-- of another document's page, or of a file in the repository.
local function address(path)
  local room = path:match "^(.*/)" or ""
  return function(href, picture)
    if picture then return inside(room .. href) end
    local file, rest = href:match "^([^#]*)(.*)$"
    if file == "" or file:find "^%a+:" then return href end
    local target = resolve(room, file)
    if pages[target] then return pages[target] .. rest end
    return "../../" .. target .. rest
  end
end

for i = 2, #arg do
  local text, page = read(arg[i]), page_of(arg[i])
  local title = text:match "^# ([^\n]*)" or page
  if page ~= "tutorial.html" then
    write(folder .. "/" .. page, html.page {
      title = "cutelua: " .. title:gsub("`", ""), style = STYLE,
      body = "<nav>" .. table.concat(nav) .. "</nav>\n"
        .. markdown.html(text, address(arg[i]))})
  end
end
-- SPDX-License-Identifier: MIT
