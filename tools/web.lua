-- web.lua OUT WASM FILE...: writes the parts of the workshop's page that are
-- made from Lua files to the folder OUT. tools/web.mk runs this script in node,
-- by the WebAssembly build of cutelua.
--
-- view.css and view.js draw kernels and pictures; the pages of other commands
-- also use them. shelf-data.js defines SHELF: the texts of scripts and kernels,
-- the arguments that each script takes, and the names of lessons. parts.js
-- defines workshopParts, the parts that a file:// page cannot fetch.
-- workshop.html is the page with all of these files inside.
--
-- FILE... are the files of scripts/, of kernels/ and of the page. WASM is the
-- program, compressed by gzip and encoded as base64.
local drawing = require "cutelua.draw.html"
local html = require "cutelua.text.html"
local learn = require "cutelua.learn"
local lessonlib = require "cutelua.bench.lessonlib"
local link = require "cutelua.page.link"
local sys = require "cute.sys"
local view = require "cutelua.page.view"

local folder, wasm = arg[1], arg[2]
local page, shelf = {}, {scripts = {}, kernels = {}, lessons = {}}

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

local function write(name, text)
  local f <close> = assert(io.open(folder .. "/" .. name, "wb"))
  assert(f:write(text))
end

local function constant(name, value)
  return ("var %s = %s;\n"):format(name, html.json(value))
end

-- Returns the first sentence of the comment at the top of a file.
local function about(text)
  local words = {}
  for line in text:gmatch "([^\n]*)\n" do
    local said = line:match "^%-%-%-? (.*)"
    if not said then break end
    words[#words + 1] = said
  end
  local all = table.concat(words, " ")
  return all:match "^(.-%.) " or all
end

-- For each module that runs lessons: a function that returns the extents of a
-- lesson, and their defaults on the simulator, such as "--rows 16 --n 1000".
local LESSONS = {
  {"cutelua.bench.lesson", "gemm", function(spec)
    local n = spec.sim_size or 256
    return {{"m"}, {"n"}}, {n, n}
  end},
  {"cutelua.bench.harness", "run", function(spec)
    return spec.dims, spec.sim[1]
  end},
  {"cutelua.bench.copylesson", "run", function()
    return {{"m"}, {"n"}}, {256, 256}
  end},
}
local function words_of(path, text)
  for _, one in ipairs(LESSONS) do
    local module, method, sizes = table.unpack(one)
    local spec = text:find(module .. '"', 1, true)
      and lessonlib.script_spec(path, module, method, text)
    if spec then
      local dims, size = sizes(spec)
      local words = {}
      for i = 1, math.min(2, #dims) do
        words[i] = ("--%s %d"):format(dims[i][1], size[i])
      end
      return table.concat(words, " ")
    end
  end
end

for i = 3, #arg do
  local path = arg[i]
  local room, name = path:match "^(%a+)/(.+)$"
  local list = shelf[room]
  if list then
    local text = read(path)
    list[#list + 1] = {name = name:gsub("%.lua$", ""), path = path,
      about = about(text), text = text,
      words = room == "scripts" and words_of(path, text) or nil}
  else
    page[path:match "[^/]+$"] = read(path)
  end
end
for i in ipairs(learn.names) do
  local lesson, exercises = assert(learn.lesson(i)), {}
  for _, block in ipairs(learn.blocks(lesson)) do
    if block.kind == "exercise" then exercises[#exercises + 1] = block.name end
  end
  shelf.lessons[i] = {name = lesson.name, number = i, title = lesson.title,
                      exercises = exercises}
end
shelf.version = sys.version
page["shelf-data.js"] = constant("SHELF", shelf)

page["view.css"] = html.style .. drawing.style .. view.style
page["view.js"] = drawing.script .. view.script .. link.script
page["parts.js"] = constant("workshopParts", {wasm = read(wasm),
  program = page["cutelua.js"], worker = page["worker.js"]})

local function file(name)
  return page[name] or error("web/index.html names " .. name)
end

-- Escapes a script so that a page can include it.
local function inside(text)
  return (text:gsub("</([sS][cC][rR][iI][pP][tT])", "<\\/%1")
    :gsub("<!%-%-", "<\\!--"))
end

-- Returns the page with its files inside. parts.js goes before the first
-- script. The page's content security policy is changed to allow inline
-- scripts.
local function whole(text)
  local first = true
  text = text:gsub("script%-src 'self'", "script-src 'unsafe-inline'")
  text = text:gsub('<link rel="stylesheet" href="([^"]+)">', function(name)
    return "<style>\n" .. file(name) .. "</style>"
  end)
  return (text:gsub('<script([^>]-) ?src="([^"]+)"></script>',
    function(_, name)
      local out = "<script>\n" .. inside(file(name))
        .. "</script>"
      if first then
        out = "<script>\n" .. page["parts.js"] .. "</script>\n" .. out
        first = false
      end
      return out
    end))
end

for _, name in ipairs {"view.css", "view.js", "shelf-data.js", "parts.js"} do
  write(name, page[name])
end
write("workshop.html", whole(page["index.html"]))
-- SPDX-License-Identifier: MIT
