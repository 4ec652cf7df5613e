-- tutorial.lua FOLDER: writes the lessons of `cutelua learn` as Markdown pages
-- with pictures, and as one HTML page. `make docs` runs this script with
-- cutelua.
local html = require "cutelua.text.html"
local learn = require "cutelua.learn"
local link = require "cutelua.page.link"
local markdown = require "cutelua.text.markdown"

local folder = arg[1] or "build/docs"
local e = html.escape

local function write(path, text)
  local f <close> = assert(io.open(path, "w"))
  assert(f:write(text))
end

-- Returns an HTML link that opens code block `index` of a lesson in the
-- workshop.
local function try(lesson, index, said)
  return ('<a class="try" href="%s#lesson=%s/%d">%s</a>'):format(
    e(link.address()), e(lesson.name), index, said)
end

local function exercise(out, lesson, block, index)
  local x = lesson.exercises[block.name]
  out[#out + 1] = ('<div class="exercise"><h3>Exercise: %s</h3><p>To be tried '
    .. "%s, or with <code>cutelua learn %s</code>. Begin with</p>"):format(
    e(block.name), try(lesson, index, "in the workshop"), e(lesson.name))
  out[#out + 1] = '<pre class="scroll">' .. e(block.text) .. "</pre>"
  for i, hint in ipairs(x.hints) do
    out[#out + 1] = ("<details><summary>Hint %d</summary>%s</details>")
      :format(i, markdown.html(hint))
  end
  out[#out + 1] = ('<details><summary>A solution</summary><pre class="scroll">'
    .. "%s</pre></details></div>"):format(e(x.solution))
end

local function section(out, lesson)
  local env = learn.env()
  out[#out + 1] = ('<section id="%s"><h2>%d. %s</h2>'):format(lesson.name,
    lesson.number, e(lesson.title))
  for i, block in ipairs(learn.blocks(lesson)) do
    if block.kind == "lua" then
      out[#out + 1] = ('<div class="step">%s<pre class="scroll">%s</pre></div>')
        :format(try(lesson, i, "try it"), e(learn.run(block, env)))
    elseif block.kind == "draw" then
      out[#out + 1] = ('<figure>%s</figure>'):format(learn.draw(block, env,
        "svg"))
    elseif block.kind == "exercise" then
      exercise(out, lesson, block, i)
    else
      out[#out + 1] = markdown.html(block.text)
    end
  end
  out[#out + 1] = "</section>"
end

local STYLE = [[
main { max-width: 860px; margin: 0 auto; }
pre { background: var(--panel); border-radius: 6px; padding: 10px 12px;
  margin: 12px 0; }
figure { margin: 16px 0; overflow-x: auto; }
nav { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 16px 0; }
.exercise { border-left: 3px solid var(--link); padding: 0 14px;
  margin: 20px 0; }
.exercise h3 { margin: 0; font-size: 15px; }
.step { position: relative; }
.step .try { position: absolute; right: 8px; top: 6px; font-size: 12px;
  background: var(--panel); padding: 0 4px; }
summary { cursor: pointer; color: var(--link); }
]]

local function lessons()
  local i = 0
  return function()
    i = i + 1
    return learn.names[i] and assert(learn.lesson(i))
  end
end

os.execute(("mkdir -p '%s/tutorial'"):format(folder))
local body = {"<nav>"}
for lesson in lessons() do
  body[#body + 1] = ('<a href="#%s">%d. %s</a>'):format(lesson.name,
    lesson.number, e(lesson.title))
end
body[#body + 1] = "</nav>"
for lesson in lessons() do
  section(body, lesson)
  local pictures = 0
  write(("%s/tutorial/%02d-%s.md"):format(folder, lesson.number, lesson.name),
    learn.markdown(lesson, function(block, env)
      pictures = pictures + 1
      local name = ("%02d-%s-%d.svg"):format(lesson.number, lesson.name,
        pictures)
      write(folder .. "/tutorial/" .. name, learn.draw(block, env, "svg"))
      return ("![%s](%s)"):format(block.text:gsub("%s+", " "), name)
    end))
end
write(folder .. "/tutorial.html", html.page {title = "cutelua: tutorial",
  style = STYLE, body = table.concat(body, "\n")})
-- SPDX-License-Identifier: MIT
