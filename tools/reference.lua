-- reference.lua FOLDER: writes the reference of all public names from their
-- comments: as Markdown pages by topic, and as one HTML page with a search box.
-- The reference also has all atoms with their layouts, commands with their
-- options, and environment variables. `make docs` runs this script with
-- cutelua.
local comments = require "cutelua.doc.comments"
local cute = require "cute"
local doc = require "cutelua.doc"
local environment = require "cutelua.doc.environment"
local html = require "cutelua.text.html"
local names = require "cutelua.doc.names"

local reference = {}

---------------------------------------------------------------------------
-- Contents: sections of {title =, items =, text =}
---------------------------------------------------------------------------

local function file_of(title)
  local name = title:match "^([^:,]+)":lower():gsub("[^%w]+", "_")
  return name
end

-- Returns the anchor of a name such as "tensor:fill".
local function anchor(name) return (name:gsub("[^%w_.]", "-")) end

-- Returns the output of `cutelua --help`, and of `cutelua COMMAND --help` for
-- each command.
local function commands(program)
  local out = {}
  local function add(command)
    local p <close> = io.popen(("'%s' %s --help 2>/dev/null"):format(program,
      command))
    local text = p:read "a"
    local name = text:match "^usage: (cutelua[%l ]*)"
    out[#out + 1] = {name = assert(name, command):gsub(" +$", ""), text = text}
  end
  add ""
  for _, row in ipairs(require "cutelua.program.main".commands) do
    add(row[1])
  end
  return out
end

-- Returns the families of atoms of a kind: {name =, count =, atoms =}. The
-- names of a family's atoms differ only in numbers.
local function families(kind)
  local list, by_key = {}, {}
  local i = 0
  while true do
    local name = cute.atom_name(kind, i)
    if not name then break end
    local key = name:gsub("%b<>", "<>"):gsub(",%d+$", "")
      :gsub("_%d+x%d+x%d+_", "_MxNxK_")
    local family = by_key[key]
    if not family then
      family = {name = key, count = 0, atoms = {}}
      by_key[key], list[#list + 1] = family, family
    end
    family.count = family.count + 1
    if family.count <= 4 then table.insert(family.atoms, name) end
    i = i + 1
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local TARGETS = {{"SM90::GMMA", "sm_90a"}, {"Universal", "any"},
                 {"Default", "any"}, {"Auto", "any"}}

local function target_of(name)
  for _, row in ipairs(TARGETS) do
    if name:find("^" .. row[1]) then return row[2] end
  end
  local sm = name:match "SM(%d+)"
  return sm and "sm_" .. sm or "any"
end

local function field(x, name)
  local ok, v = pcall(function() return x[name] end)
  return ok and v ~= nil and tostring(v) or nil
end

-- Returns the row {name, target, {label, layout}...} of an atom.
local function atom_row(kind, name)
  local row = {name, target_of(name)}
  local ok, atom
  if kind == "mma" then
    ok, atom = pcall(cute.make_mma_atom, name)
    for _, f in ipairs {"shape_mnk", "tv_layout_A", "tv_layout_B",
                        "tv_layout_C"} do
      row[#row + 1] = ok and {f, field(atom, f)} or nil
    end
  else
    for _, dtype in ipairs {cute.u8, cute.u16, cute.u32, cute.u64, cute.u128,
                            cute.u4} do
      ok, atom = pcall(cute.make_copy_atom, name, dtype)
      if ok then
        for _, f in ipairs {"thr_id", "layout_src_tv", "layout_dst_tv"} do
          row[#row + 1] = {f, field(atom, f)}
        end
        break
      end
    end
  end
  return row
end

--- Returns the families of all atoms: {title =, families = {name =, count =,
-- rows =}}.
function reference.atoms()
  local out = {}
  for _, kind in ipairs {"mma", "copy"} do
    local list = families(kind)
    for _, family in ipairs(list) do
      family.rows = {}
      for i, name in ipairs(family.atoms) do
        family.rows[i] = atom_row(kind, name)
      end
    end
    out[#out + 1] = {title = kind == "mma" and "MMA atoms" or "Copy atoms",
                     families = list}
  end
  return out
end

--- Returns the sections of the reference in order: {title =, items =}. A class
-- follows the topic that it belongs to.
function reference.sections()
  local by_topic, list = {}, {}
  for _, title in ipairs(names.topics()) do
    by_topic[title] = {title = title, items = {}}
    list[#list + 1] = by_topic[title]
  end
  for _, item in ipairs(names.all()) do
    local section = by_topic[item.topic]
    if section then table.insert(section.items, item) end
  end
  return list
end

---------------------------------------------------------------------------
-- Markdown
---------------------------------------------------------------------------

local function md_cell(text) return (text:gsub("|", "\\|"):gsub("\n", " ")) end

local function md_item(out, item)
  out[#out + 1] = ("### `%s`\n"):format(doc.usage(item))
  local said = item.doc
  if item.same then
    out[#out + 1] = (item.method_of_function and "`%s` as a method.\n"
      or "The same as `%s`.\n"):format(item.same)
    if item.method_of_function then return end
  end
  if item.kind == "field" then
    out[#out + 1] = ("`%s` %s\n"):format(said.type, said.text[1])
    return
  end
  for _, part in ipairs(said.body) do
    if part.text then out[#out + 1] = part.text .. "\n" end
    if part.code then
      out[#out + 1] = "```lua\n" .. table.concat(part.code, "\n") .. "\n```\n"
    end
  end
  local rows = doc.rows(item)
  if #rows > 0 then
    out[#out + 1] = "| | | |\n|---|---|---|"
    for _, r in ipairs(rows) do
      out[#out + 1] = ("| `%s` | %s | %s |"):format(r[1],
        r[2] and "`" .. md_cell(r[2]) .. "`" or "", md_cell(r[3]))
    end
    out[#out + 1] = ""
  end
  local place = doc.place(item)
  if place then out[#out + 1] = "<sub>" .. place .. "</sub>\n" end
end

local function write(path, text)
  local f <close> = assert(io.open(path, "wb"))
  assert(f:write(text))
end

local function md_atoms(atoms)
  local out = {"# All atoms\n\nAtoms that differ in numbers alone are a "
    .. "family; of large ones the first four are shown.\n"}
  for _, part in ipairs(atoms) do
    out[#out + 1] = "## " .. part.title .. "\n"
    for _, family in ipairs(part.families) do
      out[#out + 1] = ("### `%s`\n\n%d %s.\n"):format(family.name, family.count,
        family.count == 1 and "atom" or "atoms")
      for _, row in ipairs(family.rows) do
        out[#out + 1] = ("- `%s` (%s)"):format(row[1], row[2])
        for i = 3, #row do
          if row[i][2] then
            out[#out + 1] = ("  - %s `%s`"):format(row[i][1], row[i][2])
          end
        end
      end
      out[#out + 1] = ""
    end
  end
  return table.concat(out, "\n")
end

local function md_environment()
  local out = {"# Variables of the environment\n\n| | read by | |\n"
    .. "|---|---|---|"}
  for _, row in ipairs(environment) do
    out[#out + 1] = ("| `%s` | %s | %s |"):format(row[1],
      row["for"] or "the program", md_cell(row[2]))
  end
  return table.concat(out, "\n") .. "\n"
end

local function md_commands(list)
  local out = {"# Commands\n"}
  for _, c in ipairs(list) do
    out[#out + 1] = ("## `%s`\n\n```\n%s```\n"):format(c.name, c.text)
  end
  return table.concat(out, "\n")
end

--- Writes reference.md, and a page for each group of topics, to which
-- reference.md links.
function reference.markdown(folder, data)
  local pages, order = {}, {}
  local index = {"# Reference\n\nAll public names, from the comments of the "
    .. "sources: `?name` at the prompt and `cutelua doc NAME` print the "
    .. "same.\n"}
  for _, section in ipairs(data.sections) do
    local file = file_of(section.title)
    if not pages[file] then
      pages[file], order[#order + 1] = {}, file
    end
    local page = pages[file]
    page[#page + 1] = "# " .. section.title .. "\n"
    index[#index + 1] = ("\n## [%s](reference/%s.md)\n"):format(section.title,
      file)
    for _, item in ipairs(section.items) do
      md_item(page, item)
      if item.kind ~= "field" and item.kind ~= "method" then
        index[#index + 1] = ("- `%s`: %s"):format(doc.usage(item),
          comments.summary(item.doc))
      end
    end
  end
  index[#index + 1] = "\n## More\n\n- [all atoms with their layouts]("
    .. "reference/atom_list.md)\n- "
    .. "[commands](reference/commands.md)\n- "
    .. "[variables of the environment](reference/environment.md)\n"
  for _, file in ipairs(order) do
    write(("%s/reference/%s.md"):format(folder, file),
          table.concat(pages[file], "\n"))
  end
  write(folder .. "/reference/atom_list.md", md_atoms(data.atoms))
  write(folder .. "/reference/commands.md", md_commands(data.commands))
  write(folder .. "/reference/environment.md", md_environment())
  write(folder .. "/reference.md", table.concat(index, "\n") .. "\n")
end

---------------------------------------------------------------------------
-- HTML
---------------------------------------------------------------------------

local e = html.escape

local function inline(text)
  return (e(text):gsub("`(.-)`", "<code>%1</code>"))
end

local function html_item(out, item)
  out[#out + 1] = ('<article id="%s"><h3><code>%s</code></h3>'):format(
    anchor(item.name), e(doc.usage(item)))
  local said = item.doc
  if item.same then
    out[#out + 1] = ('<p>%s <a href="#%s"><code>%s</code></a>%s</p>'):format(
      item.method_of_function and "" or "The same as", anchor(item.same),
      e(item.same), item.method_of_function and " as a method." or ".")
  end
  if item.kind == "field" then
    out[#out + 1] = ("<p><code>%s</code> %s</p></article>"):format(
      e(said.type), inline(said.text[1]))
    return
  end
  if not item.method_of_function then
    for _, part in ipairs(said.body) do
      if part.text then
        out[#out + 1] = "<p>" .. inline(part.text) .. "</p>"
      else
        out[#out + 1] = '<pre class="scroll">'
          .. e(table.concat(part.code, "\n")) .. "</pre>"
      end
    end
    local rows = doc.rows(item)
    if #rows > 0 then
      out[#out + 1] = '<div class="scroll"><table>'
      for _, r in ipairs(rows) do
        out[#out + 1] = ("<tr><td><code>%s</code></td><td><code>%s</code></td>"
          .. "<td>%s</td></tr>"):format(e(r[1]), e(r[2] or ""), inline(r[3]))
      end
      out[#out + 1] = "</table></div>"
    end
  end
  local place = doc.place(item)
  if place then
    out[#out + 1] = '<p class="dim place">' .. e(place) .. "</p>"
  end
  out[#out + 1] = "</article>"
end

local STYLE = [[
#search { width: 100%; max-width: 480px; margin: 12px 0; padding: 6px 10px;
  font: inherit; color: var(--fore); background: var(--panel);
  border: 1px solid var(--rule); border-radius: 6px; }
nav { columns: 220px; font-size: 13.5px; } nav a { display: block; }
article { border-top: 1px solid var(--rule); padding: 8px 0; }
article h3 { margin: 0; font-size: 14px; overflow-wrap: anywhere; }
article p { margin: 4px 0; max-width: 76ch; } article pre { margin: 6px 0;
  padding: 8px; background: var(--panel); }
.place { font-size: 12px; } .off { display: none; }
article:target { background: var(--lit); }
]]

-- The search box hides entries that do not have all words of the query. Entries
-- whose name has them come first.
local SCRIPT = [[
(function () {
  var box = document.getElementById("search");
  var entries = [].slice.call(document.querySelectorAll("article"));
  var texts = entries.map(function (a) {
    return a.textContent.toLowerCase(); });
  var sections = [].slice.call(document.querySelectorAll("section"));
  var nav = document.querySelector("nav");
  function show() {
    var words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    entries.forEach(function (a, i) {
      var here = words.every(function (w) { return texts[i].includes(w); });
      a.classList.toggle("off", !here);
    });
    sections.forEach(function (s) {
      s.classList.toggle("off", words.length > 0
        && !s.querySelector("article:not(.off)"));
    });
    nav.classList.toggle("off", words.length > 0);
    document.getElementById("count").textContent = words.length == 0 ? ""
      : document.querySelectorAll("article:not(.off)").length + " found";
  }
  box.oninput = show;
  document.onkeydown = function (event) {
    if (event.key == "/" && document.activeElement != box) {
      event.preventDefault(); box.focus();
    }
  };
  show();
})();
]]

local function html_more(out, data)
  out[#out + 1] = '<section id="commands"><h2>Commands</h2>'
  for _, c in ipairs(data.commands) do
    out[#out + 1] = ('<article><h3><code>%s</code></h3><pre class="scroll">%s'
      .. "</pre></article>"):format(e(c.name), e(c.text))
  end
  out[#out + 1] = '</section><section id="environment"><h2>Variables of the '
    .. "environment</h2>"
  for _, row in ipairs(environment) do
    out[#out + 1] = ("<article><h3><code>%s</code></h3><p>%s%s</p></article>")
      :format(e(row[1]), inline(row[2]), row["for"]
        and ' <span class="dim">(' .. e(row["for"]) .. ")</span>" or "")
  end
  out[#out + 1] = '</section>'
  for _, part in ipairs(data.atoms) do
    out[#out + 1] = ('<section id="%s"><h2>%s</h2>'):format(anchor(part.title),
      e(part.title))
    for _, family in ipairs(part.families) do
      out[#out + 1] = ("<article><h3><code>%s</code></h3><p>%d %s%s</p>")
        :format(e(family.name), family.count, family.count == 1 and "atom"
        or "atoms", family.count > #family.rows and ", the first four:" or "")
      out[#out + 1] = '<div class="scroll"><table class="mono">'
      for _, row in ipairs(family.rows) do
        out[#out + 1] = ("<tr><td>%s</td><td>%s</td></tr>"):format(e(row[1]),
          e(row[2]))
        for i = 3, #row do
          if row[i][2] then
            out[#out + 1] = ('<tr><td class="dim">%s</td><td>%s</td></tr>')
              :format(e(row[i][1]), e(row[i][2]))
          end
        end
      end
      out[#out + 1] = "</table></div></article>"
    end
    out[#out + 1] = "</section>"
  end
end

--- Returns the reference as one HTML page.
---@return string
function reference.html(data)
  local out = {'<input id="search" type="search" placeholder="search: a name, '
    .. 'or words of its text ( / )" aria-label="search"> <span id="count" '
    .. 'class="dim"></span><nav>'}
  local more = {{id = "commands", title = "Commands"},
                {id = "environment", title = "Variables of the environment"}}
  for _, part in ipairs(data.atoms) do
    more[#more + 1] = {id = anchor(part.title), title = part.title}
  end
  for i, section in ipairs(data.sections) do
    out[#out + 1] = ('<a href="#s%d">%s</a>'):format(i, e(section.title))
  end
  for _, link in ipairs(more) do
    out[#out + 1] = ('<a href="#%s">%s</a>'):format(link.id, e(link.title))
  end
  out[#out + 1] = "</nav>"
  for i, section in ipairs(data.sections) do
    out[#out + 1] = ('<section id="s%d"><h2>%s</h2>'):format(i,
      e(section.title))
    for _, item in ipairs(section.items) do html_item(out, item) end
    out[#out + 1] = "</section>"
  end
  html_more(out, data)
  return html.page {title = "cutelua: reference", style = STYLE,
                    script = SCRIPT, body = table.concat(out, "\n")}
end

--- Writes the reference in both forms, Markdown and HTML.
---@param folder string
---@param program string whose commands are described
function reference.write(folder, program)
  os.execute(("mkdir -p '%s/reference'"):format(folder))
  local data = {sections = reference.sections(), atoms = reference.atoms(),
                commands = commands(program)}
  reference.markdown(folder, data)
  write(folder .. "/reference.html", reference.html(data))
  return data
end

if arg and arg[0] and arg[0]:find "reference%.lua$" then
  reference.write(arg[1] or "build/docs", arg[2] or arg[-1]
    or "build/cutelua")
end

return reference
-- SPDX-License-Identifier: MIT
