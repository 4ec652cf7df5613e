--- Converts the subset of Markdown that lessons and documents use to HTML. The
-- subset has paragraphs, headings, lists without nesting, tables, code,
-- emphasis, links and images. Comments are removed. Text is escaped, so it
-- cannot contain HTML elements.
local html = require "cutelua.text.html"

local markdown = {}

-- Reports whether a link target is safe. Only http and https URLs and relative
-- paths are safe.
local function is_safe(href)
  return href:find "^https?://" or not href:find "^[%s/\\]*[%w+.-]*:"
end

--- Converts one line, which may contain code, emphasis and links.
---@param text string
---@param page? fun(href: string, picture: boolean): string maps link targets
---@return string html
function markdown.inline(text, page)
  local codes = {}
  local out = html.escape(text):gsub("`([^`]+)`", function(code)
    codes[#codes + 1] = code
    -- html.escape removes \0, so this placeholder cannot occur in the text.
    return ("\0%d\0"):format(#codes)
  end)
  out = out:gsub("(!?)%[([^%[%]]+)%]%(([^()%s]+)%)", function(mark, said, href)
    if not is_safe(href) then return nil end
    local form = mark == "!" and '<img src="%s" alt="%s">'
      or '<a href="%s">%s</a>'
    return form:format(page and page(href, mark == "!") or href, said)
  end)
  out = out:gsub("%*%*([^%s*][^*]*)%*%*", "<strong>%1</strong>")
    :gsub("%*(%a[^*]*)%*", "<em>%1</em>")
  return (out:gsub("%z(%d+)%z", function(n)
    return "<code>" .. codes[tonumber(n)] .. "</code>"
  end))
end

local function row(line, cell, inline)
  local out = {}
  line = line:gsub("\\|", "\0")
  for text in (line:match "^|(.*)|%s*$" .. "|"):gmatch "%s*(.-)%s*|" do
    out[#out + 1] = ("<%s>%s</%s>"):format(cell, inline(text:gsub("%z", "|")),
                                           cell)
  end
  return "<tr>" .. table.concat(out) .. "</tr>"
end

local function table_of(lines, inline)
  local out = {'<div class="scroll"><table>'}
  for i, line in ipairs(lines) do
    if i ~= 2 then
      out[#out + 1] = row(line, i == 1 and "th" or "td", inline)
    end
  end
  out[#out + 1] = "</table></div>"
  return table.concat(out)
end

local ITEMS = {ul = "^%- (.*)$", ol = "^%d+%. (.*)$"}

local function list_of(kind, lines, inline)
  local items = {}
  for _, line in ipairs(lines) do
    local text = line:match(ITEMS[kind])
    if text then items[#items + 1] = text
    else items[#items] = items[#items] .. " " .. line:match "^%s*(.*)$" end
  end
  for i, text in ipairs(items) do items[i] = inline(text) end
  local first = kind == "ol" and lines[1]:match "^%d+" or "1"
  return ("<%s%s><li>%s</li></%s>"):format(kind, first ~= "1"
    and (' start="%s"'):format(first) or "",
    table.concat(items, "</li><li>"), kind)
end

-- Returns the anchor of a heading: the heading's words, joined by hyphens.
local function anchor(title)
  return (title:lower():gsub("[^%w _-]", ""):gsub(" ", "-"))
end

--- Converts a text that consists of blocks such as paragraphs and lists.
---@param text string
---@param page? fun(href: string, picture: boolean): string maps link targets;
-- if present, headings get anchors
---@return string html
function markdown.html(text, page)
  local out, block, kind = {}, {}, nil
  local function inline(said) return markdown.inline(said, page) end
  local function close()
    local said = table.concat(block, "\n")
    if kind == "code" then
      out[#out + 1] = '<pre class="scroll">' .. html.escape(said) .. "</pre>"
    elseif ITEMS[kind] then out[#out + 1] = list_of(kind, block, inline)
    elseif kind == "table" then out[#out + 1] = table_of(block, inline)
    elseif kind == "text" then
      out[#out + 1] = "<p>" .. inline(said) .. "</p>"
    end
    block, kind = {}, nil
  end
  local function add(want, line)
    if kind ~= want then close() end
    kind, block[#block + 1] = want, line
  end
  local function heading(level, title)
    close()
    out[#out + 1] = ("<h%d%s>%s</h%d>"):format(level,
      page and (' id="%s"'):format(anchor(title)) or "", inline(title), level)
  end
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local level, title = line:match "^(#+) (.*)$"
    if line:find "^```" then
      local open = kind ~= "code"
      close()
      kind = open and "code" or nil
    elseif kind == "code" then block[#block + 1] = line
    elseif line == "" or line:find "^<!%-%-.*%-%->$" then close()
    elseif level then heading(#level, title)
    elseif line:find "^|.*|%s*$" then add("table", line)
    elseif line:find(ITEMS.ul) then add("ul", line)
    elseif kind ~= "text" and line:find(ITEMS.ol) then add("ol", line)
    elseif ITEMS[kind] then add(kind, line)
    else add("text", line) end
  end
  close()
  return table.concat(out, "\n")
end

return markdown
-- SPDX-License-Identifier: MIT
